//! Small texts that several answers share: names as they are written, fields on a line, Markdown.

use dfc_grammar::{TokenKind, lex};
use dfc_ir::DataType;
use dfc_typeck::Column;

/// What is said of the type of a field that has none because of an error.
pub const UNKNOWN: &str = "not known: an error hides it";

/// A name as it is written in a pipeline: in backticks where it has to be.
pub fn written(name: &str) -> String {
    match lex(name).as_slice() {
        [token] if token.kind == TokenKind::Name => name.to_string(),
        _ => format!("`{name}`"),
    }
}

/// `id: int64`
pub fn field(name: &str, ty: &DataType) -> String {
    format!("{}: {ty}", written(name))
}

/// A column as `name: type`; of one whose expression was refused only the name.
pub fn column(column: &Column) -> String {
    if column.broken { format!("{}: ?", written(&column.name)) } else { field(&column.name, &column.ty) }
}

/// Code in Markdown.
pub fn code(text: &str) -> String {
    format!("```df\n{text}\n```")
}

/// A row's fields as Markdown, one a line, each with where it is from.
pub fn table(columns: &[Column], from: impl Fn(&Column) -> String) -> String {
    let mut out = String::from("| field | type | from |\n|---|---|---|\n");
    for column in columns {
        let ty = if column.broken { UNKNOWN.to_string() } else { column.ty.to_string() };
        out.push_str(&format!("| `{}` | `{ty}` | {} |\n", cell(&column.name), cell(&from(column))));
    }
    out
}

/// A text in a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// Text in a snippet: what would be a place to fill in is escaped.
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}

/// Whether the letters of `prefix` come one after another in `name`, whatever their case.
pub fn fits(name: &str, prefix: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    prefix.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
}
