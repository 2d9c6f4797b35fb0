//! A copy of a database file.

use dfc_ir::plan::{OptionValue, SinkSpec};

use super::{Access, failed, open};
use crate::ConnectError;

/// Copies the file of a sink, if it is there, without what jobs have noted in it: constraints may look at any of its tables.
///
/// # Errors
/// It can't be read, or not be copied.
pub(crate) fn copy_file(real: &SinkSpec, led: &SinkSpec) -> Result<(), ConnectError> {
    let path = |spec: &SinkSpec| spec.options.get("path").and_then(OptionValue::text).unwrap_or_default().to_string();
    let (from, to) = (path(real), path(led));
    if !std::path::Path::new(&from).exists() {
        return Ok(());
    }
    let connection = open(&from, Access::Read)?;
    connection.execute("VACUUM INTO ?1", [&to]).map_err(|error| failed(&from, &error))?;
    let copy = open(&to, Access::Write)?;
    copy.execute_batch("DROP TABLE IF EXISTS _dfc_ledger").map_err(|error| failed(&to, &error))
}
