//! Fields as a `record` in the language's text: what `dfc schema` prints to be pasted, and what the lock file holds.

use dfc_ir::{DataType, Field, Schema, Type};
use dfc_typeck::written;

/// `record Name { … }` with one field a line; without a name as it stands behind `schema:`.
pub fn record(name: Option<&str>, schema: &Schema) -> String {
    let name = name.map(|name| format!("{} ", written(name))).unwrap_or_default();
    let fields: String = schema.fields.iter().map(|f| format!("    {},\n", field(f))).collect();
    format!("record {name}{{\n{fields}}}")
}

/// A literal of this text.
pub fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn field(field: &Field) -> String {
    let outside = field.external.as_ref().map(|name| format!(" = {}", text(name))).unwrap_or_default();
    format!("{}: {}{outside}", written(&field.name), data_type(&field.ty))
}

/// A type as it is written. (How types are shown in messages leaves out outside names and backticks.)
pub fn data_type(ty: &DataType) -> String {
    let plain = match &ty.ty {
        Type::List(item) => format!("list<{}>", data_type(item)),
        Type::Record(fields) => {
            format!("record {{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    };
    format!("{plain}{}", if ty.nullable { "?" } else { "" })
}
