//! In which order a table or a query is read, so that a job can go on where it stopped: by the increment and a tie-breaker, or by a
//! unique key (F3, F5, F10). It knows the catalogue's answers, not how they are asked for.

use std::time::Duration;

use dfc_ir::plan::SourceSpec;

use super::{ORDER, listed};
use crate::ConnectError;
use crate::options::OptionReader;

/// Where rows come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum From {
    Table(String),
    Query(String),
}

impl From {
    /// For messages.
    pub(crate) fn name(&self) -> String {
        match self {
            From::Table(table) => format!("the table `{table}`"),
            From::Query(_) => "the query".into(),
        }
    }

    /// In places of rows: short.
    pub(crate) fn short(&self) -> &str {
        match self {
            From::Table(table) => table,
            From::Query(_) => "query",
        }
    }
}

/// What becomes of rows whose increment is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    Error,
    First,
    Skip,
}

/// A source's arguments about its order; columns by their names outside.
#[derive(Debug, Clone)]
pub(crate) struct OrderOptions {
    pub from: From,
    pub increment: Option<String>,
    pub tiebreak: Option<Vec<String>>,
    pub split_by: Option<String>,
    pub nulls: Nulls,
    pub allow_unindexed: bool,
    pub poll: Option<Duration>,
    pub lag: Option<Duration>,
}

impl OrderOptions {
    /// From a source's arguments.
    ///
    /// # Errors
    /// Arguments that contradict each other.
    pub(crate) fn read(connector: &str, spec: &SourceSpec) -> Result<OrderOptions, ConnectError> {
        let options = OptionReader::new(connector, &spec.options);
        let wrong = |message: String| ConnectError::new("R0202", message);
        let from = match (options.text("table")?, options.text("query")?) {
            (Some(table), None) => From::Table(table.into()),
            (None, Some(query)) => From::Query(query.trim_end().trim_end_matches(';').into()),
            _ => {
                return Err(wrong(format!("`{connector}` takes `table` or `query`, and one of both must be given")));
            }
        };
        let outside = |names: Vec<String>| -> Vec<String> {
            let external = |name: String| match spec.schema.index_of(&name) {
                Some(at) => spec.schema.fields[at].external_name().to_string(),
                None => name,
            };
            names.into_iter().map(external).collect()
        };
        let one = |name: &str| Ok::<_, ConnectError>(options.names(name)?.and_then(|names| outside(names).pop()));
        let read = OrderOptions {
            from,
            increment: one("increment")?,
            tiebreak: options.names("tiebreak")?.map(outside),
            split_by: one("split_by")?,
            nulls: options
                .choice("nulls", &[("error", Nulls::Error), ("first", Nulls::First), ("skip", Nulls::Skip)])?,
            allow_unindexed: options.flag("allow_unindexed", false)?,
            poll: options.duration("poll")?,
            lag: options.duration("lag")?,
        };
        if read.increment.is_none() && (read.poll.is_some() || read.lag.is_some()) {
            let given = if read.poll.is_some() { "poll" } else { "lag" };
            return Err(wrong(format!(
                "`{given}` of `{connector}` needs `increment`, the field that grows with new rows"
            )));
        }
        Ok(read)
    }
}

/// What a catalogue says of a table; of a query nothing is known but its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    /// Columns, and whether they may be null.
    pub columns: Vec<(String, bool)>,
    /// Unique keys whose columns are never null, the primary key first.
    pub keys: Vec<Vec<String>>,
    /// First columns of indexes over all rows.
    pub indexed: Vec<String>,
}

/// In which order rows are read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Order {
    /// The columns; none: rows have no order, and are read in one go or not at all.
    pub columns: Vec<String>,
    /// Whether the first may be null.
    pub nulls: bool,
    /// Whether the first is an increment.
    pub increment: bool,
}

impl Order {
    /// Decides.
    ///
    /// # Errors
    /// A column that isn't there; no key; no index.
    pub(crate) fn decide(options: &OrderOptions, catalogue: &Catalogue) -> Result<Order, ConnectError> {
        let name = options.from.name();
        let is_table = matches!(options.from, From::Table(_));
        let lead = options.increment.as_ref().or(options.split_by.as_ref());
        for column in lead.into_iter().chain(options.tiebreak.iter().flatten()) {
            if !catalogue.columns.iter().any(|(known, _)| known == column) {
                let known = listed(catalogue.columns.iter().map(|(name, _)| name));
                return Err(ConnectError::new(super::COLUMNS, format!("{name} has no column `{column}`"))
                    .help(format!("it has {known}")));
            }
        }
        let may_be_null =
            |column: &String| catalogue.columns.iter().any(|(name, nullable)| name == column && *nullable);
        let is_lead = |column: &String| Some(column) == lead;
        let rest: Option<Vec<String>> = match &options.tiebreak {
            Some(given) => Some(given.clone()),
            None if lead.is_some() && catalogue.keys.iter().any(|key| key.iter().all(is_lead)) => Some(Vec::new()),
            // SQLite's keys may have columns that may be null: rows that get one later would stand in no order.
            None => catalogue.keys.iter().find(|key| !is_table || !key.iter().any(may_be_null)).cloned(),
        };
        let Some(mut rest) = rest else {
            let Some(lead) = lead else { return Ok(Order::default()) };
            let message = format!(
                "{name} has no key that tells rows with the same `{lead}` apart, so the job couldn't go on between them"
            );
            return Err(ConnectError::new(ORDER, message)
                .help("name the fields of a unique key: `tiebreak: [id]`, or give the table a primary key"));
        };
        rest.retain(|column| !is_lead(column));
        if let Some(column) = rest.iter().find(|column| is_table && may_be_null(column)) {
            return Err(ConnectError::new(
                ORDER,
                format!("the column `{column}` of {name} may be null, so it can't break ties"),
            )
            .help("name fields that are `NOT NULL`: `tiebreak: [id]`; or read `query:`, if none of its rows has a null there"));
        }
        let columns: Vec<String> = lead.cloned().into_iter().chain(rest).collect();
        if is_table && !options.allow_unindexed {
            let unique = catalogue.keys.iter().any(|key| key.iter().all(|column| columns.contains(column)));
            if !unique {
                let message = format!(
                    "no unique key of {name} is among {}: rows could be read twice, or not at all",
                    listed(&columns)
                );
                return Err(ConnectError::new(ORDER, message)
                    .help("name the fields of a unique key, or write `allow_unindexed: true` if they are unique without an index"));
            }
            let first = &columns[0];
            if !catalogue.indexed.contains(first) {
                let message =
                    format!("`{first}` of {name} has no index: every run and every range would read the whole table");
                return Err(ConnectError::new(ORDER, message)
                    .help(format!("`CREATE INDEX ON … ({})`, or write `allow_unindexed: true`", columns.join(", "))));
            }
        }
        Ok(Order {
            // Of a query nothing is known.
            nulls: !is_table || lead.is_some_and(may_be_null),
            increment: options.increment.is_some(),
            columns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(increment: Option<&str>, tiebreak: Option<&[&str]>, split_by: Option<&str>) -> OrderOptions {
        OrderOptions {
            from: From::Table("t".into()),
            increment: increment.map(String::from),
            tiebreak: tiebreak.map(|names| names.iter().map(|n| n.to_string()).collect()),
            split_by: split_by.map(String::from),
            nulls: Nulls::Error,
            allow_unindexed: false,
            poll: None,
            lag: None,
        }
    }

    fn decide(options: &OrderOptions, keys: &[&[&str]], indexed: &[&str]) -> Result<Vec<String>, String> {
        let columns = ["id", "at", "name"].map(|name| (name.to_string(), name == "name"));
        let catalogue = Catalogue {
            columns: columns.to_vec(),
            keys: keys.iter().map(|key| key.iter().map(|c| c.to_string()).collect()).collect(),
            indexed: indexed.iter().map(|c| c.to_string()).collect(),
        };
        Order::decide(options, &catalogue).map(|order| order.columns).map_err(|error| error.message)
    }

    /// F5, F10: no key, no index, ties.
    #[test]
    fn the_order_follows_from_keys_and_arguments() {
        let id: &[&[&str]] = &[&["id"]];
        let names = |names: &[&str]| Ok(names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(decide(&options(None, None, None), id, &["id"]), names(&["id"]));
        assert_eq!(decide(&options(None, None, None), &[], &[]), names(&[]));
        // SQLite's `TEXT PRIMARY KEY` may be null: another key, or none.
        assert_eq!(decide(&options(None, None, None), &[&["name"]], &["name"]), names(&[]));
        assert_eq!(decide(&options(None, None, None), &[&["name", "id"], &["id"]], &["name", "id"]), names(&["id"]));
        assert_eq!(decide(&options(Some("at"), None, None), id, &["id", "at"]), names(&["at", "id"]));
        assert_eq!(decide(&options(Some("id"), None, None), id, &["id"]), names(&["id"]));
        assert_eq!(decide(&options(None, None, Some("name")), id, &["id", "name"]), names(&["name", "id"]));
        for (options, keys, indexed, what) in [
            (options(Some("at"), None, None), &[][..], &["at"][..], "no key that tells"),
            (options(Some("at"), None, None), id, &["id"], "has no index"),
            (options(Some("at"), Some(&["name"]), None), id, &["at"], "may be null"),
            (options(Some("nix"), None, None), id, &["at"], "no column `nix`"),
            (options(None, Some(&["at"]), None), id, &["at"], "no unique key"),
        ] {
            let message = decide(&options, keys, indexed).unwrap_err();
            assert!(message.contains(what), "{message}");
        }
    }
}
