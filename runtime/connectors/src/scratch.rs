//! Targets elsewhere: where a sink writes while its job is tried out, with the constraints of the real target and none of its rows touched.
//! It may not know why the job is tried out.

use std::path::Path;

use dfc_ir::Value;
use dfc_ir::plan::{OptionValue, SinkSpec};

use crate::{ConnectError, postgres, sqlite};

/// What a sink of its own in `folder` is: a file, a folder of parts, a database file, or a table in a schema of its own. The folder's last two
/// names are that schema's, so they have to be nobody else's.
pub fn elsewhere(spec: &SinkSpec, folder: &Path, name: &str) -> SinkSpec {
    let mut led = spec.clone();
    let mut set = |option: &str, value: OptionValue| drop(led.options.insert(option.into(), value));
    let text = |text: String| OptionValue::Value(Value::string(text));
    match spec.connector.as_str() {
        "postgres" => {
            let table = spec.options.get("table").and_then(OptionValue::text).unwrap_or_default();
            set("table", text(postgres::in_schema(&schema(folder), table)));
            set("ledger_schema", OptionValue::Absent);
        }
        connector => {
            let path = spec.options.get("path").and_then(OptionValue::text).unwrap_or_default();
            let end = if path.ends_with('/') { "/".into() } else { format!(".{connector}") };
            set("path", text(format!("{}{end}", folder.join(name).display())));
            // A file's own; what Parquet does within one stays.
            if connector != "parquet" && spec.options.contains_key("compression") {
                set("compression", OptionValue::Name("none".into()));
            }
        }
    }
    led
}

/// Makes what [`elsewhere`] needs: a copy of a database file, an empty table with the real one's columns, keys and checks.
///
/// # Errors
/// The real target can't be read, or the copy can't be made.
pub fn prepare(real: &SinkSpec, folder: &Path, name: &str) -> Result<(), ConnectError> {
    let led = elsewhere(real, folder, name);
    match real.connector.as_str() {
        "sqlite" => sqlite::copy_file(real, &led),
        "postgres" => postgres::copy_table(real, &led, &schema(folder)),
        _ => Ok(()),
    }
}

/// Removes what [`prepare`] made and doesn't lie in the folder.
///
/// # Errors
/// What the server says.
pub fn remove(real: &SinkSpec, folder: &Path) -> Result<(), ConnectError> {
    match real.connector.as_str() {
        "postgres" => postgres::drop_schema(real, &schema(folder)),
        _ => Ok(()),
    }
}

/// What [`remove`] removes, for people; `None`: nothing.
pub fn outside(real: &SinkSpec, folder: &Path) -> Option<String> {
    (real.connector == "postgres").then(|| format!("the schema `{}`", schema(folder)))
}

/// A schema's name of the last two names of a path.
fn schema(folder: &Path) -> String {
    let names = folder.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy());
    let names: Vec<String> = names.map(|name| name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")).collect();
    names.into_iter().rev().collect::<Vec<_>>().join("_").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(connector: &str, options: &[(&str, &str)]) -> Vec<String> {
        let options = options.iter().map(|(name, value)| ((*name).into(), OptionValue::Value(Value::string(*value))));
        let spec = SinkSpec { connector: connector.into(), options: options.collect() };
        let led = elsewhere(&spec, Path::new("/tmp/dfc-drill-aB1/plain"), "out");
        let given = led.options.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.text()?)));
        given.collect()
    }

    #[test]
    fn every_target_stays_of_its_kind() {
        assert_eq!(led("csv", &[("path", "a/b.csv.gz")]), ["path /tmp/dfc-drill-aB1/plain/out.csv"]);
        assert_eq!(led("parquet", &[("path", "a/b/")]), ["path /tmp/dfc-drill-aB1/plain/out/"]);
        assert_eq!(
            led("sqlite", &[("path", "a.db"), ("table", "t")]),
            ["path /tmp/dfc-drill-aB1/plain/out.sqlite", "table t"]
        );
        assert_eq!(
            led("postgres", &[("table", "sales.\"or.ders\""), ("ledger_schema", "x")]),
            ["table \"dfc_drill_ab1_plain\".\"or.ders\""]
        );
    }
}
