//! Which column of a file a field is read from: by the header's names, or by position.

use crate::ConnectError;
use crate::files::distance;
use dfc_ir::Schema;

/// Where the fields stand in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Columns of the file.
    pub width: usize,
    /// For each projected field its column.
    pub columns: Vec<usize>,
}

/// Without a header: the schema's fields in order.
pub(crate) fn by_position(schema: &Schema, projection: &[usize]) -> Layout {
    Layout { width: schema.len(), columns: projection.to_vec() }
}

/// With a header: the columns whose names are the fields' outside names.
///
/// # Errors
/// A declared field that the header doesn't have, or has twice. (All declared fields, read or not: a file without one is another file.)
pub(crate) fn by_name(
    schema: &Schema,
    projection: &[usize],
    header: &[String],
    file: &str,
) -> Result<Layout, ConnectError> {
    let mut at: std::collections::HashMap<&str, (usize, bool)> = std::collections::HashMap::new();
    for (i, name) in header.iter().enumerate() {
        at.entry(name.as_str()).and_modify(|(_, twice)| *twice = true).or_insert((i, false));
    }
    let mut missing: Vec<&str> = Vec::new();
    let mut columns: Vec<Option<usize>> = Vec::with_capacity(schema.len());
    for field in &schema.fields {
        let name = field.external_name();
        match at.get(name) {
            Some((_, true)) => {
                return Err(ConnectError::new("R0211", format!("`{file}` has the column `{name}` more than once"))
                    .help("rename one of them in the file, or read it by position with `header: false, skip: 1`"));
            }
            Some((i, false)) => columns.push(Some(*i)),
            None => {
                missing.push(name);
                columns.push(None);
            }
        }
    }
    if !missing.is_empty() {
        return Err(missing_columns(&missing, missing.len() < schema.len(), header, file));
    }
    Ok(Layout { width: header.len(), columns: projection.iter().filter_map(|&i| columns[i]).collect() })
}

/// `some`: other declared fields are there, so the first line is a header.
fn missing_columns(missing: &[&str], some: bool, header: &[String], file: &str) -> ConnectError {
    let list = |names: &mut dyn Iterator<Item = &str>| names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let what = if missing.len() == 1 { "column" } else { "columns" };
    let mut message = format!("`{file}` has no {what} {}", list(&mut missing.iter().copied()));
    let more = if header.len() > 20 { format!(" and {} more", header.len() - 20) } else { String::new() };
    message += &format!("; it has {}{more}", list(&mut header.iter().take(20).map(String::as_str)));
    let error = ConnectError::new("R0210", message);
    let near = header
        .iter()
        .map(|name| (distance(&missing[0].to_lowercase(), &name.trim().to_lowercase()), name))
        .min()
        .filter(|(d, _)| *d <= 1.max(missing[0].chars().count() / 3));
    match near {
        Some((_, name)) => error.help(format!("is it `{name}`? write `{}: … = \"{name}\"` in the record", missing[0])),
        None if some => error
            .help("give the column's name in the file, `name: … = \"its name\"`, or leave the field out of the record"),
        None if header.len() == 1 => error.help("is `delimiter` the right one? The header has only one column"),
        None => error.help("if the first line isn't a header, write `header: false`"),
    }
}
