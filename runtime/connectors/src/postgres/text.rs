//! Rows in the text form of `COPY … FROM STDIN`, which is also the form of the spool: tabs between fields, a line a row, `\N` for null.
//! It may not know which table they are for.

use arrow_array::{Array, ArrayRef};
use dfc_batch::{Batch, RowError, value_at};
use dfc_ir::{DataType, Schema, Type, Value};

use crate::database::{Class, UNFIT, check, mark_last};
use crate::rows::shown;
use crate::text::format::{WriteText, writer};
use crate::{ConnectError, Encoded, Encoder};

/// A column as it is written.
#[derive(Debug, Clone)]
pub(crate) struct WriteColumn {
    pub class: Class,
    /// Each value is looked at.
    pub checked: bool,
}

/// Turns batches into lines.
pub(crate) struct Lines {
    pub schema: std::sync::Arc<Schema>,
    pub columns: std::sync::Arc<[WriteColumn]>,
    /// The column of the batches that comes last.
    pub mark: Option<usize>,
}

/// How a column's values become text.
enum Form {
    /// Digits, dates: nothing in it means something to `COPY`.
    Plain,
    /// Anything: escaped, and without NUL.
    Text,
    /// JSON, in which `\u0000` is refused too.
    Json,
    Bytes,
    Interval,
    Array,
}

fn form(ty: &Type, class: &Class) -> Form {
    match (ty, class) {
        (Type::Bytes, _) => Form::Bytes,
        (Type::Duration, Class::Duration) => Form::Interval,
        (Type::List(_), Class::List(_)) => Form::Array,
        (Type::String | Type::Json | Type::List(_) | Type::Record(_), Class::Json) => Form::Json,
        (Type::Bool | Type::Int(_) | Type::Float32 | Type::Float64 | Type::Decimal(..), _) => Form::Plain,
        (ty, _) if ty.is_temporal() => Form::Plain,
        _ => Form::Text,
    }
}

impl Encoder for Lines {
    fn encode(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let batch = mark_last(batch, self.mark);
        let columns: Vec<(&Type, &ArrayRef, Form, WriteText, &WriteColumn)> = self
            .schema
            .fields
            .iter()
            .zip(&batch.columns)
            .zip(self.columns.iter())
            .map(|((field, array), column)| {
                let ty = &field.ty.ty;
                (ty, array, form(ty, &column.class), writer(array, ty), column)
            })
            .collect();
        let mut out = Vec::with_capacity(batch.rows * (columns.len() * 10 + 1));
        let (mut scratch, mut written) = (Vec::new(), 0);
        'rows: for row in 0..batch.rows {
            let start = out.len();
            for (at, (ty, array, form, write, column)) in columns.iter().enumerate() {
                if at > 0 {
                    out.push(b'\t');
                }
                if array.is_null(row) {
                    out.extend_from_slice(b"\\N");
                    continue;
                }
                let done = match column.checked {
                    true => check(&value_at(array, ty, row), ty, &column.class),
                    false => Ok(()),
                };
                if let Err(rule) = done.and_then(|()| put(&mut out, &mut scratch, array, ty, form, write, row)) {
                    out.truncate(start);
                    errors.push(RowError {
                        place: batch.origin.as_ref().map(|origin| origin.place(row)),
                        raw: batch.origin.as_ref().and_then(|origin| origin.raw(row)),
                        field: self.schema.fields.get(at).map(|field| field.external_name().to_string()),
                        value: Some(shown(dfc_eval::format_value(&value_at(array, ty, row), ty).as_bytes())),
                        ..RowError::new(UNFIT, rule)
                    });
                    continue 'rows;
                }
            }
            out.push(b'\n');
            written += 1;
        }
        Ok((Encoded::Bytes(out), written))
    }
}

/// Appends a value that isn't null.
fn put(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    array: &ArrayRef,
    ty: &Type,
    form: &Form,
    write: &WriteText,
    row: usize,
) -> Result<(), String> {
    match form {
        Form::Plain => write(row, out),
        Form::Bytes => {
            if let Value::Bytes(bytes) = value_at(array, ty, row) {
                out.extend_from_slice(b"\\\\x");
                hex(out, &bytes);
            }
        }
        Form::Interval => {
            if let Value::Duration(micros) = value_at(array, ty, row) {
                out.extend_from_slice(format!("{micros} microseconds").as_bytes());
            }
        }
        Form::Array => {
            let mut text = String::new();
            array_text(&mut text, &value_at(array, ty, row), ty);
            escaped(out, text.as_bytes())?;
        }
        Form::Text | Form::Json => {
            scratch.clear();
            write(row, scratch);
            if matches!(form, Form::Json) && holds_nul(scratch) {
                return Err("the JSON holds `\\u0000`, which PostgreSQL doesn't store".into());
            }
            escaped(out, scratch)?;
        }
    }
    Ok(())
}

fn hex(out: &mut impl Extend<u8>, bytes: &[u8]) {
    let digit = |n: u8| b"0123456789abcdef"[usize::from(n)];
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

/// Whether a JSON text has an escaped NUL: an odd number of backslashes before `u0000`.
fn holds_nul(json: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        if json[at..].starts_with(b"\\u0000") {
            return true;
        }
        at = (at + 2).min(json.len());
    }
    false
}

/// Appends a text, with what means something to `COPY` escaped.
fn escaped(out: &mut Vec<u8>, text: &[u8]) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| matches!(b, b'\\' | b'\n' | b'\r' | b'\t' | 0)) {
        out.extend_from_slice(&rest[..at]);
        let letter = match rest[at] {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0 => return Err("the text holds a NUL character, which PostgreSQL doesn't store".into()),
            other => other,
        };
        out.extend_from_slice(&[b'\\', letter]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The text of an array: `{1,NULL,"a \"b\""}`.
fn array_text(out: &mut String, value: &Value, ty: &Type) {
    let (Value::List(items), Type::List(item)) = (value, ty) else { return };
    let DataType { ty: item, .. } = &**item;
    out.push('{');
    for (at, value) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let text = match value {
            Value::Null => {
                out.push_str("NULL");
                continue;
            }
            Value::List(_) => {
                array_text(out, value, item);
                continue;
            }
            Value::Bytes(bytes) => {
                let mut text = b"\\x".to_vec();
                hex(&mut text, bytes);
                String::from_utf8_lossy(&text).into_owned()
            }
            Value::Duration(micros) => format!("{micros} microseconds"),
            other => dfc_eval::format_value(other, item),
        };
        out.push('"');
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_nul_is_refused() {
        let text = |text: &str| {
            let mut out = Vec::new();
            escaped(&mut out, text.as_bytes()).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(text("a\tb\\c\nd\r"), Ok("a\\tb\\\\c\\nd\\r".into()));
        assert_eq!(text("\\N"), Ok("\\\\N".into()));
        assert!(text("a\0").is_err());
        assert!(holds_nul(br#"{"a": "\u0000"}"#) && holds_nul(br#""\\\u0000""#));
        assert!(!holds_nul(br#""\\u0000""#) && !holds_nul(br#""\"#) && !holds_nul(br#""\n0""#));
        let list = Type::List(Box::new(DataType::optional(Type::String)));
        let mut out = String::new();
        array_text(&mut out, &Value::List(vec![Value::str("a\"b\\"), Value::Null, Value::str("NULL")]), &list);
        assert_eq!(out, r#"{"a\"b\\",NULL,"NULL"}"#);
    }
}
