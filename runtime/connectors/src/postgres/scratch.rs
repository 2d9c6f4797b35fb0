//! A table like another in a schema of its own.

use dfc_ir::plan::{OptionValue, SinkSpec};

use super::address::Address;
use super::catalogue::{parts, table};
use super::session::Session;
use crate::ConnectError;
use crate::database::quoted;
use crate::options::OptionReader;

/// `"schema"."table"` of a table's name, whatever its own schema; what is no name stays as it is, and is refused where it is used.
pub(crate) fn in_schema(schema: &str, name: &str) -> String {
    match parts(name).and_then(|(_, table)| quoted(&table)) {
        Ok(table) => format!("\"{schema}\".{table}"),
        Err(_) => name.to_string(),
    }
}

/// Makes the schema, and in it a table with the columns, defaults, keys and checks of the real one, if there is one.
///
/// # Errors
/// What the server says: no right to make a schema, say.
pub(crate) fn copy_table(real: &SinkSpec, led: &SinkSpec, schema: &str) -> Result<(), ConnectError> {
    let session = session(real)?;
    let schema = quoted(schema)?;
    let made = session.run(&format!("CREATE SCHEMA {schema}"));
    made.map_err(|error| error.help("the user needs the right to make a schema: `GRANT CREATE ON DATABASE …`"))?;
    let name = real.options.get("table").and_then(OptionValue::text).unwrap_or_default();
    let copy = led.options.get("table").and_then(OptionValue::text).unwrap_or_default();
    match table(&session, name)? {
        Some(found) => session.run(&format!("CREATE TABLE {copy} (LIKE {} INCLUDING ALL)", found.sql)),
        None => Ok(()),
    }
}

/// Drops the schema and all that is in it.
///
/// # Errors
/// What the server says.
pub(crate) fn drop_schema(real: &SinkSpec, schema: &str) -> Result<(), ConnectError> {
    session(real)?.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(schema)?))
}

fn session(spec: &SinkSpec) -> Result<Session, ConnectError> {
    let options = OptionReader::new("postgres", &spec.options);
    Session::open(&Address::parse(&options.secret("url")?)?, true)
}
