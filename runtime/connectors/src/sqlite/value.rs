//! Values of SQLite, which have types of their own, as values of declared types. It may not know where they stand.

use dfc_eval::parse_value;
use dfc_ir::{Type, Value};
use rusqlite::types::ValueRef;

use crate::rows::{Fault, shown};
use crate::text::value::MISFIT;

/// Significant digits that a float64 is sure to keep.
const DIGITS: usize = 15;
/// Whole numbers that a float64 has all of.
const WHOLE: i64 = 1 << 53;

/// The value of a declared type; nulls are the caller's.
///
/// # Errors
/// Why it is none.
pub(crate) fn read(value: ValueRef, ty: &Type) -> Result<Value<'static>, Fault> {
    let misfit = |kind: &str, text: String| Fault {
        code: MISFIT,
        rule: format!("{kind} `{text}` is no {ty}"),
        value: Some(text),
    };
    match (value, ty) {
        (ValueRef::Null, _) => Ok(Value::Null),
        (ValueRef::Integer(n), Type::Int(int)) => dfc_eval::arith::in_range(n.into(), *int)
            .map(Value::Int)
            .map_err(|error| Fault { code: MISFIT, rule: error.message, value: Some(n.to_string()) }),
        (ValueRef::Integer(n @ 0..=1), Type::Bool) => Ok(Value::Bool(n == 1)),
        (ValueRef::Integer(n), Type::Float64 | Type::Float32) if n.unsigned_abs() <= WHOLE as u64 => {
            Ok(Value::Float(n as f64))
        }
        (ValueRef::Integer(n), Type::Decimal(..) | Type::Json) => text(&n.to_string(), ty),
        (ValueRef::Integer(n), Type::String) => Ok(Value::string(n.to_string())),
        (ValueRef::Integer(n), _) => Err(misfit("the integer", n.to_string())),
        (ValueRef::Real(x), Type::Float64) if x.is_finite() => Ok(Value::Float(x)),
        (ValueRef::Real(x), Type::Float32) if (x as f32).is_finite() => Ok(Value::Float(f64::from(x as f32))),
        (ValueRef::Real(x), Type::Int(_)) if x.fract() == 0.0 && x.abs() <= WHOLE as f64 => {
            read(ValueRef::Integer(x as i64), ty)
        }
        (ValueRef::Real(x), Type::Decimal(..)) if x.is_finite() => {
            // What a number column made of `0.1` shows the digits of a float; those that count are the first.
            text(&format!("{x}"), ty).or_else(|_| text(&rounded(x), ty))
        }
        (ValueRef::Real(x), Type::String | Type::Json) if x.is_finite() => {
            Ok(Value::string(ryu::Buffer::new().format(x)))
        }
        (ValueRef::Real(x), _) => Err(misfit("the number", x.to_string())),
        (ValueRef::Blob(bytes), Type::Bytes) => Ok(Value::Bytes(bytes.to_vec().into())),
        (ValueRef::Blob(bytes), _) => Err(misfit("the bytes", shown(bytes))),
        (ValueRef::Text(bytes), Type::Bytes) => Ok(Value::Bytes(bytes.to_vec().into())),
        (ValueRef::Text(bytes), _) => match std::str::from_utf8(bytes) {
            Ok(found) => text(found, ty),
            Err(_) => Err(misfit("the text, which is no UTF-8,", shown(bytes))),
        },
    }
}

/// A float's first digits, as a decimal without exponent.
fn rounded(x: f64) -> String {
    let whole = if x == 0.0 { 0.0 } else { x.abs().log10().floor() };
    let places = (DIGITS as f64 - 1.0 - whole).clamp(0.0, 40.0) as usize;
    let text = format!("{x:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn text(text: &str, ty: &Type) -> Result<Value<'static>, Fault> {
    let fault = |rule: String| Fault { code: MISFIT, rule, value: Some(shown(text.as_bytes())) };
    match ty {
        Type::String => Ok(Value::string(text)),
        Type::Json => match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Ok(Value::string(text)),
            Err(_) => Err(fault(format!("`{}` is no JSON", shown(text.as_bytes())))),
        },
        Type::Bool => match text {
            "1" | "t" => Ok(Value::Bool(true)),
            "0" | "f" => Ok(Value::Bool(false)),
            _ => parse_value(text, ty).map_err(|error| fault(error.message)),
        },
        // SQLite's own functions give UTC, and don't say so.
        Type::Timestamp => parse_value(text, ty)
            .or_else(|error| parse_value(&format!("{text}Z"), ty).map_err(|_| error))
            .map_err(|error| fault(error.message)),
        _ => parse_value(text, ty).map_err(|error| fault(error.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ty;

    #[test]
    fn values_take_the_declared_type_or_say_why_not() {
        let show = |value: ValueRef, name: &str| {
            let ty = ty(name).ty;
            read(value, &ty).map(|v| dfc_eval::format_value(&v, &ty)).map_err(|fault| fault.rule)
        };
        let text = |t: &'static str| ValueRef::Text(t.as_bytes());
        for (value, ty, expected) in [
            (ValueRef::Integer(7), "int8", "7"),
            (ValueRef::Real(7.0), "int8", "7"),
            (ValueRef::Real(0.1 + 0.2), "decimal(9,2)", "0.30"),
            (ValueRef::Real(1234567.89), "decimal(9,2)", "1234567.89"),
            (ValueRef::Real(1e15), "decimal(18,2)", "1000000000000000.00"),
            (ValueRef::Integer(3), "decimal(4,2)", "3.00"),
            (ValueRef::Integer(1), "bool", "true"),
            (text("2026-01-31 10:00:00"), "timestamp", "2026-01-31T10:00:00Z"),
            (text("2026-01-31 10:00:00"), "datetime", "2026-01-31T10:00:00"),
            (ValueRef::Integer(5), "string", "5"),
            (text("{\"a\": 1}"), "json", "{\"a\": 1}"),
        ] {
            assert_eq!(show(value, ty).as_deref(), Ok(expected), "{value:?} {ty}");
        }
        for (value, ty) in [
            (ValueRef::Integer(300), "int8"),
            (ValueRef::Integer(2), "bool"),
            (ValueRef::Real(1.5), "int64"),
            (ValueRef::Real(f64::INFINITY), "float64"),
            (ValueRef::Real(1.239), "decimal(9,2)"),
            (ValueRef::Blob(b"x"), "string"),
            (ValueRef::Text(b"\xff"), "string"),
            (text("{"), "json"),
            (ValueRef::Integer(5), "date"),
        ] {
            assert!(show(value, ty).is_err(), "{value:?} {ty} {:?}", show(value, ty));
        }
    }
}
