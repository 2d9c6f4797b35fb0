//! One line by itself: its values, or what is wrong with it. The full reading, which knows every form.

use std::borrow::Cow;

use dfc_ir::{Type, Value};

use super::scan;
use super::source::Lines;
use crate::rows::{Fault, shown};
use crate::text::value::{DAMAGED, MISFIT, bad_encoding, read, unexpected_null};
use crate::text::{number, time};

/// The values of one line; on failure the field's outside name and what is wrong.
pub(super) fn row<'a, 'f>(
    line: &'a [u8],
    format: &'f Lines,
    texts: &mut Vec<Option<&'a str>>,
    values: &mut Vec<Value<'a>>,
) -> Result<(), (Option<&'f str>, Fault)> {
    let Ok(line) = std::str::from_utf8(line) else {
        let fault = bad_encoding(line);
        return Err((None, Fault { rule: "the line is no UTF-8 text, which JSON must be".into(), ..fault }));
    };
    texts.iter_mut().for_each(|text| *text = None);
    let count = format.fields.len();
    // Lines mostly have the same keys in the same order.
    let mut next = 0;
    let walked = scan::object(line, |key, value| {
        let inner = &key[1..key.len() - 1];
        let found = if next < count && inner == format.fields[next].external_name() {
            Some(next)
        } else if inner.contains('\\') {
            serde_json::from_str::<String>(key).ok().and_then(|key| format.keys.get(&key).copied())
        } else {
            format.keys.get(inner).copied()
        };
        if let Some(at) = found {
            // Of equal keys the last one counts.
            texts[at] = Some(value);
            next = at + 1;
        }
    });
    if let Err(error) = walked {
        let rule = format!("the line is no JSON object: byte {}: {}", error.at + 1, error.why);
        return Err((
            None,
            Fault {
                code: DAMAGED,
                rule,
                value: Some(shown(&line.as_bytes()[error.at.min(line.len())..])).filter(|v| !v.is_empty()),
            },
        ));
    }
    for (field, text) in format.fields.iter().zip(texts.iter()) {
        let value = value(text.unwrap_or("null"), &field.ty.ty).and_then(|value| {
            if value.is_null() && !field.ty.nullable {
                let mut fault = unexpected_null(&field.ty.ty);
                if text.is_none() {
                    fault.rule = format!("the key is missing, and {} is never null; `{0}?` takes nulls", field.ty.ty);
                }
                return Err(fault);
            }
            Ok(value)
        });
        values.push(value.map_err(|fault| (Some(field.external_name()), fault))?);
    }
    Ok(())
}

/// The value of a JSON text, which is well formed. The rules are those of `dfc_eval`'s JSON; the common forms are read here directly.
pub(super) fn value<'a>(json: &'a str, ty: &Type) -> Result<Value<'a>, Fault> {
    if json == "null" {
        return Ok(Value::Null);
    }
    if matches!(ty, Type::Json) {
        return Ok(Value::str(json));
    }
    if matches!(ty, Type::List(_) | Type::Record(_)) {
        return in_record(json, ty);
    }
    let text = match json.as_bytes().first() {
        Some(b'"') if !json.contains('\\') => Cow::Borrowed(&json[1..json.len() - 1]),
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => Cow::Owned(text),
            Err(_) => {
                let rule = "the string holds half of a surrogate pair, which is no character".to_string();
                return Err(Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) });
            }
        },
        Some(b'{' | b'[') if !matches!(ty, Type::String) => {
            let rule = format!("`{}` is no {ty}: a single value is expected", shown(json.as_bytes()));
            return Err(Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) });
        }
        Some(b't' | b'f') if matches!(ty, Type::Bool) => return Ok(Value::Bool(json == "true")),
        // A number or a word: only numbers, bools and texts can be made of it.
        _ if ty.is_numeric() || matches!(ty, Type::String) => Cow::Borrowed(json),
        _ => {
            let wanted = if matches!(ty, Type::Bool) { "`true` or `false`" } else { "a string" };
            let rule = format!("`{json}` is no {ty}: {wanted} is expected");
            return Err(Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) });
        }
    };
    let bytes = text.as_bytes();
    let fast = match ty {
        Type::String => return Ok(Value::Str(text)),
        Type::Int(int) => {
            number::int64(bytes).map(i128::from).filter(|n| ((*int).min()..=(*int).max()).contains(n)).map(Value::Int)
        }
        Type::Float64 => number::float64(bytes).map(Value::Float),
        Type::Decimal(p, s) => number::wide_decimal(bytes, *s, 10i128.pow(u32::from(*p))).map(Value::Decimal),
        Type::Date => time::date(bytes).map(Value::Date),
        Type::DateTime => time::datetime(bytes).map(Value::DateTime),
        Type::Timestamp => time::timestamp(bytes).map(Value::Timestamp),
        _ => None,
    };
    match fast {
        Some(value) => Ok(value),
        None => read(bytes, ty, None),
    }
}

/// The value of a JSON text that stands in a record or list, or is one.
pub(super) fn in_record<'a>(json: &str, ty: &Type) -> Result<Value<'a>, Fault> {
    let fault = |rule: String| Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) };
    dfc_eval::read_json(json, ty).map_err(|error| fault(error.message))
}
