//! A file's header: its names, and which column a field is read from, by the names or by position.

use std::ops::Range;

use dfc_ir::Schema;

use super::exact;
use super::index::{Index, Ragged};
use super::places::Places;
use crate::ConnectError;
use crate::files::distance;
use crate::text::cells::{Cell, Cells};
use crate::text::dialect::Dialect;

/// Where the fields stand in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Columns of the file.
    pub width: usize,
    /// For each projected field its column.
    pub columns: Vec<usize>,
}

/// Where the header's line stands: after `skip` lines, the first row that is neither comment nor blank. `None`: more bytes are
/// needed (never when `whole`).
///
/// # Errors
/// There is no header.
pub(crate) fn find(
    data: &[u8],
    skip: u64,
    whole: bool,
    dialect: &Dialect,
    file: &str,
) -> Result<Option<Range<usize>>, ConnectError> {
    let Some(mut at) = skipped(data, skip, whole, Some(file))? else { return Ok(None) };
    loop {
        if at == data.len() && whole {
            return Err(ConnectError::new("R0210", format!("`{file}` is empty: it has no header"))
                .help("a file without header and rows is read with `header: false` and a `schema:`"));
        }
        let (end, closed) = exact::row_end(data, at, dialect);
        if !whole && !closed {
            return Ok(None);
        }
        let line = &data[at..end];
        let is_comment = dialect.comment.as_ref().is_some_and(|c| line.starts_with(c));
        if is_comment {
            at += memchr::memchr(b'\n', line).map_or(line.len(), |n| n + 1);
            continue;
        }
        if line.iter().all(|b| matches!(b, b'\r' | b'\n')) {
            at = end;
            continue;
        }
        return Ok(Some(at..end));
    }
}

/// The byte after `skip` lines. `None`: more bytes are needed (never when `whole`).
///
/// # Errors
/// There are fewer lines, and a header has to follow them in `file`.
pub(crate) fn skipped(data: &[u8], skip: u64, whole: bool, file: Option<&str>) -> Result<Option<usize>, ConnectError> {
    let mut at = 0;
    for skipped in 0..skip {
        match (memchr::memchr(b'\n', &data[at..]), file) {
            (Some(n), _) => at += n + 1,
            (None, _) if !whole => return Ok(None),
            (None, Some(file)) => {
                return Err(ConnectError::new(
                    "R0210",
                    format!("`{file}` has only {skipped} lines: `skip` leaves no header"),
                )
                .help("give a smaller `skip`, or `header: false` if there is no header"));
            }
            (None, None) => return Ok(Some(data.len())),
        }
    }
    Ok(Some(at))
}

/// The names in a header's line, which may end with its line break.
///
/// # Errors
/// Damaged quotes, or a name that is no UTF-8.
pub(crate) fn names(line: &[u8], dialect: &Dialect, file: &str) -> Result<Vec<String>, ConnectError> {
    let width = width(line, dialect);
    let mut index = Index::default();
    index.build(line, dialect, width, Ragged::Error);
    if index.misfits.iter().any(|misfit| misfit.unclosed) {
        return Err(ConnectError::new("R0210", format!("`{file}`: a quote is opened in the header and never closed"))
            .help("a quoted name ends with its quote; if the file has no quotes, give `quote: \"\"`"));
    }
    let mut places = Places::default();
    (0..width)
        .map(|column| {
            places.take(&index, column, column, None, dialect.delimiter.len());
            let text = match Cells::new(line, places.column(column), dialect, true).cell_of_first_row() {
                Some(Cell::Plain(text)) => text.to_vec(),
                Some(Cell::Quoted(text)) => text.into_owned(),
                _ => {
                    return Err(ConnectError::new(
                        "R0210",
                        format!("`{file}`: a quote is damaged in the header, at column {}", column + 1),
                    )
                    .help("a quoted name ends with its quote; quotes inside are doubled"));
                }
            };
            String::from_utf8(text).map_err(|e| {
                let name = String::from_utf8_lossy(e.as_bytes()).into_owned();
                ConnectError::new(
                    "R0209",
                    format!("`{file}`: the header's column {} (`{name}`) is not in the file's encoding", column + 1),
                )
                .help("if the file is written in another encoding, give `encoding:`")
            })
        })
        .collect()
}

/// Number of fields in a row.
pub(crate) fn width(row: &[u8], dialect: &Dialect) -> usize {
    let mut fields = Fields::default();
    exact::walk(row, dialect, &mut fields);
    fields.count
}

/// Counts the fields of one row.
#[derive(Default)]
struct Fields {
    count: usize,
}

impl exact::Found for Fields {
    fn row_starts(&mut self, _: usize) {}
    fn field_ends(&mut self, _: usize) {
        self.count += 1;
    }
    fn row_ends(&mut self, _: usize, _: bool, _: bool) -> bool {
        false
    }
    fn comment_ends(&mut self, _: usize, _: bool) {}
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
        return Err(missing_columns(&missing, schema, header, file));
    }
    Ok(Layout { width: header.len(), columns: projection.iter().filter_map(|&i| columns[i]).collect() })
}

fn missing_columns(missing: &[&str], schema: &Schema, header: &[String], file: &str) -> ConnectError {
    // A control character in a name would be an order to the terminal.
    let shown =
        |name: &str| if name.contains(char::is_control) { name.escape_debug().to_string() } else { name.into() };
    let list =
        |names: &mut dyn Iterator<Item = &str>| names.map(|n| format!("`{}`", shown(n))).collect::<Vec<_>>().join(", ");
    // Where other declared fields are there, the first line is a header.
    let some = missing.len() < schema.len();
    let what = if missing.len() == 1 { "column" } else { "columns" };
    let mut message = format!("`{file}` has no {what} {}", list(&mut missing.iter().copied()));
    let more = if header.len() > 20 { format!(" and {} more", header.len() - 20) } else { String::new() };
    message += &format!("; it has {}{more}", list(&mut header.iter().take(20).map(String::as_str)));
    let error = ConnectError::new("R0210", message);
    if header.iter().any(|name| name.contains('\r')) {
        return error
            .help("its lines end with a carriage return alone: turn them into line feeds first, `tr '\\r' '\\n'`");
    }
    let free = |name: &&String| !schema.fields.iter().any(|field| field.external_name() == name.as_str());
    let near = header
        .iter()
        .filter(free)
        .map(|name| (distance(&missing[0].to_lowercase(), &name.trim().to_lowercase()), name))
        .min()
        .filter(|(d, _)| *d <= missing[0].chars().count() / 3);
    match near {
        Some((_, name)) => error.help(format!("is it `{name}`? write `{}: … = \"{name}\"` in the record", missing[0])),
        None if some => error
            .help("give the column's name in the file, `name: … = \"its name\"`, or leave the field out of the record"),
        None if header.len() == 1 => error.help("is `delimiter` the right one? The header has only one column"),
        None => error.help("if the first line isn't a header, write `header: false`"),
    }
}
