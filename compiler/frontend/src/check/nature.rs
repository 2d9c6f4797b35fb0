//! What rows are beside their fields: whether they stand in an order that can be relied on, and whether they ever end (D6).
//!
//! Both follow from the clauses of the operators' declarations (`orders`, `reorders`, `whole`, `bounded`), not from their names.

use dfc_grammar::ast::Call;
use dfc_ir::Options;
use dfc_ir::plan::OptionValue;
use dfc_typeck::{Loc, LocalDiagnostic};

use super::ItemContext;
use crate::guarantees::is_stream;
use crate::operators::Operator;
use crate::places::PartIndex;

/// The nature of the rows of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Nature {
    /// Where their order was lost; `None`: they stand as their source gives them, or sorted.
    pub unordered: Option<Cause>,
    /// The source that makes them endless; `None`: they end.
    pub endless: Option<Cause>,
}

/// An operator that gave the rows their nature, and where it stands (counted).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The operator's name.
    pub operator: String,
    /// Its name in the text.
    pub loc: Loc,
}

impl Cause {
    fn new(call: &Call, places: &PartIndex) -> Self {
        Cause { operator: call.name.text.clone(), loc: places.place(call.name.span) }
    }
}

impl Nature {
    /// The nature of a source's rows.
    pub(super) fn of_source(operator: &Operator, options: &Options, call: &Call, places: &PartIndex) -> Self {
        let cause = || Cause::new(call, places);
        Nature {
            unordered: operator.clause_for("reorders", options).is_some().then(cause),
            endless: operator.clause_for("bounded", options).is_none().then(cause),
        }
    }

    /// The nature of rows behind an operator. Another side that never ends has been refused, and changes nothing.
    pub(super) fn after(self, operator: &Operator, call: &Call, places: &PartIndex) -> Self {
        let unordered = if operator.clause("orders").is_some() {
            None
        } else if operator.clause("reorders").is_some() {
            Some(Cause::new(call, places))
        } else {
            self.unordered
        };
        // What must have seen every row has been refused such rows: behind it they would have ended.
        let endless = self.endless.filter(|_| operator.clause("whole").is_none());
        Nature { unordered, endless }
    }
}

impl ItemContext<'_> {
    /// Refuses rows that never end where an operator must have seen them all.
    pub(super) fn must_end(&mut self, nature: &Nature, operator: &Operator, call: &Call) {
        if operator.clause("whole").is_some() {
            self.never_ends(nature, call, "must have seen every row, and these rows never end");
        }
    }

    /// Refuses a side of a join that is read whole and never ends.
    pub(super) fn side_must_end(&mut self, right: &Nature, call: &Call) {
        self.never_ends(right, call, "reads its other side whole, and that never ends");
    }

    fn never_ends(&mut self, nature: &Nature, call: &Call, why: &str) {
        let name = &call.name.text;
        let help = format!("make the source end, or leave this `{name}` to a job that reads what this one writes");
        self.waits_for_ever(nature, call, why, help);
    }

    /// Refuses rows that never end where the target shows nothing before the last one.
    pub(super) fn target_must_come(&mut self, nature: &Nature, operator: &Operator, options: &Options, call: &Call) {
        let path = options.get("path").and_then(OptionValue::text);
        if operator.clause_for("whole", options).is_none() || path.is_some_and(is_stream) {
            return;
        }
        let (why, help) = if operator.writes_folders() {
            let path = path.unwrap_or("out").trim_end_matches('/');
            let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
            (
                "writes a single file, which appears when the last row has come, and these rows never end",
                format!("write a folder of parts, which appear checkpoint by checkpoint: `\"{stem}/\"`"),
            )
        } else {
            (
                "replaces the table when the last row has come, and these rows never end",
                "write `mode: insert` or `mode: upsert`: rows appear checkpoint by checkpoint then".to_owned(),
            )
        };
        self.waits_for_ever(nature, call, why, help);
    }

    fn waits_for_ever(&mut self, nature: &Nature, call: &Call, why: &str, help: String) {
        let Some(cause) = &nature.endless else { return };
        let name = &call.name.text;
        let problem =
            LocalDiagnostic::error("E0316", self.loc(call.name.span), format!("`{name}` {why}"), "waits for the end")
                .related(cause.loc.clone(), format!("`{}` goes on for ever", cause.operator))
                .help(help);
        self.error(problem);
    }

    /// A lint where a result depends on an order that the rows don't have.
    pub(super) fn order_matters(&mut self, nature: &Nature, what: &str, at: Loc) {
        let Some(cause) = &nature.unordered else { return };
        let problem = LocalDiagnostic::warning(
            "W0507",
            at,
            format!("{what} depends on the rows' order, and they stand in none here"),
            "another run may give another result",
        )
        .related(cause.loc.clone(), format!("the order ends at this `{}`", cause.operator))
        .help("put a `sort(…)` before it");
        self.error(problem);
    }
}
