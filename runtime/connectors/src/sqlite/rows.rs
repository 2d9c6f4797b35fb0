//! Rows in the spool of a SQLite sink: for each value a tag and its bytes. It may not know which table they are for.

use dfc_ir::{Type, Value};
use rusqlite::types::ValueRef;

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// Appends a value. Not for integers beyond 64 bits, which no column takes.
pub(crate) fn push(out: &mut Vec<u8>, value: &Value, ty: &Type) {
    let mut long = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        // A value of 4 GiB is more than SQLite takes.
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => out.push(NULL),
        Value::Str(text) => long(TEXT, text.as_bytes()),
        Value::Bytes(bytes) => long(BLOB, bytes),
        Value::Bool(yes) => short(out, INTEGER, i64::from(*yes).to_le_bytes()),
        Value::Int(n) => short(out, INTEGER, (*n as i64).to_le_bytes()),
        Value::Float(x) => short(out, REAL, x.to_le_bytes()),
        other => long(TEXT, dfc_eval::format_value(other, ty).as_bytes()),
    }
}

fn short(out: &mut Vec<u8>, tag: u8, bytes: [u8; 8]) {
    out.push(tag);
    out.extend_from_slice(&bytes);
}

/// Reads values from the start of `bytes`, which are cut off behind it. `None`: the value isn't whole.
pub(crate) fn take<'a>(bytes: &mut &'a [u8]) -> Option<ValueRef<'a>> {
    let (&tag, rest) = bytes.split_first()?;
    let number = |rest: &'a [u8]| rest.split_first_chunk::<8>();
    let long = |rest: &'a [u8]| {
        let (length, rest) = rest.split_first_chunk::<4>()?;
        rest.split_at_checked(u32::from_le_bytes(*length) as usize)
    };
    let (value, rest) = match tag {
        INTEGER => number(rest).map(|(n, rest)| (ValueRef::Integer(i64::from_le_bytes(*n)), rest))?,
        REAL => number(rest).map(|(x, rest)| (ValueRef::Real(f64::from_le_bytes(*x)), rest))?,
        TEXT => long(rest).map(|(text, rest)| (ValueRef::Text(text), rest))?,
        BLOB => long(rest).map(|(blob, rest)| (ValueRef::Blob(blob), rest))?,
        _ => (ValueRef::Null, rest),
    };
    *bytes = rest;
    Some(value)
}
