//! Conversions: one table from pairs of kinds to functions.
//!
//! A cast gives the nearest value of the target type or fails; it never wraps and never cuts digits off silently where text is
//! concerned. Rounding is half away from zero: a float or a decimal to an integer, a decimal to a smaller scale, a float to a
//! decimal (from the float's shortest decimal digits, so that 0.615 gives 0.62). Numbers to floats give the nearest float.
//! Bytes and text convert as UTF-8; only where bytes must be shown (text files, JSON) are they hexadecimal.

use dfc_ir::{DataType, Type, Value};

use crate::calendar::DAY;
use crate::decimal::{self, Decimal};
use crate::json::{parse_text, push_json};
use crate::parse::parse_value;
use crate::{CAST_FAILED, EvalError, UNEXPECTED_NULL, arith, format_value};

/// Types that are converted alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Float,
    Decimal,
    String,
    Bytes,
    Date,
    Time,
    DateTime,
    Timestamp,
    Duration,
    Json,
    List,
    Record,
}

fn kind(ty: &Type) -> Option<Kind> {
    Some(match ty {
        Type::Bool => Kind::Bool,
        Type::Int(_) => Kind::Int,
        Type::Float32 | Type::Float64 => Kind::Float,
        Type::Decimal(..) => Kind::Decimal,
        Type::String => Kind::String,
        Type::Bytes => Kind::Bytes,
        Type::Date => Kind::Date,
        Type::Time => Kind::Time,
        Type::DateTime => Kind::DateTime,
        Type::Timestamp => Kind::Timestamp,
        Type::Duration => Kind::Duration,
        Type::Json => Kind::Json,
        Type::List(_) => Kind::List,
        Type::Record(_) => Kind::Record,
        Type::Secret | Type::Null => return None,
    })
}

/// A conversion of a value that is not null.
type Convert = for<'v> fn(Value<'v>, &Type, &Type) -> Result<Value<'v>, EvalError>;

/// What can be converted to what, beside a kind to itself where nothing changes.
const TABLE: &[(Kind, Kind, Convert)] = {
    use Kind::*;
    &[
        (Bool, Int, bool_to_number),
        (Bool, Float, bool_to_number),
        (Bool, Decimal, bool_to_number),
        (Int, Bool, int_to_bool),
        (Int, Int, to_int),
        (Int, Float, to_float),
        (Int, Decimal, to_decimal),
        (Float, Int, to_int),
        (Float, Float, to_float),
        (Float, Decimal, to_decimal),
        (Decimal, Int, to_int),
        (Decimal, Float, to_float),
        (Decimal, Decimal, to_decimal),
        (Date, DateTime, date_to_datetime),
        (DateTime, Date, datetime_to_date),
        (DateTime, Time, datetime_to_time),
        (Bool, String, to_text),
        (Int, String, to_text),
        (Float, String, to_text),
        (Decimal, String, to_text),
        (Bytes, String, bytes_to_text),
        (Date, String, to_text),
        (Time, String, to_text),
        (DateTime, String, to_text),
        (Timestamp, String, to_text),
        (Duration, String, to_text),
        (Json, String, keep),
        (List, String, to_text),
        (Record, String, to_text),
        (String, Bool, from_text),
        (String, Int, from_text),
        (String, Float, from_text),
        (String, Decimal, from_text),
        (String, Bytes, text_to_bytes),
        (String, Date, from_text),
        (String, Time, from_text),
        (String, DateTime, from_text),
        (String, Timestamp, from_text),
        (String, Duration, from_text),
        (String, Json, from_text),
        (String, List, from_text),
        (String, Record, from_text),
        (Bool, Json, to_json),
        (Int, Json, to_json),
        (Float, Json, to_json),
        (Decimal, Json, to_json),
        (Bytes, Json, to_json),
        (Date, Json, to_json),
        (Time, Json, to_json),
        (DateTime, Json, to_json),
        (Timestamp, Json, to_json),
        (Duration, Json, to_json),
        (List, Json, to_json),
        (Record, Json, to_json),
        (Json, Bool, from_json),
        (Json, Int, from_json),
        (Json, Float, from_json),
        (Json, Decimal, from_json),
        (Json, Bytes, from_json),
        (Json, Date, from_json),
        (Json, Time, from_json),
        (Json, DateTime, from_json),
        (Json, Timestamp, from_json),
        (Json, Duration, from_json),
        (Json, List, from_json),
        (Json, Record, from_json),
        (List, List, list_to_list),
        (Record, Record, record_to_record),
        (Bool, Bool, keep),
        (String, String, keep),
        (Bytes, Bytes, keep),
        (Date, Date, keep),
        (Time, Time, keep),
        (DateTime, DateTime, keep),
        (Timestamp, Timestamp, keep),
        (Duration, Duration, keep),
        (Json, Json, keep),
    ]
};

fn conversion(from: &Type, to: &Type) -> Option<Convert> {
    let (from, to) = (kind(from)?, kind(to)?);
    TABLE.iter().find(|(f, t, _)| (*f, *t) == (from, to)).map(|(_, _, convert)| *convert)
}

/// Whether values of `from` can be converted to `to` at all (a given value may still fail).
///
/// `datetime` ↔ `timestamp` is not: that takes a zone.
pub fn can_cast(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Null, _) => true,
        (Type::List(from), Type::List(to)) => can_cast(&from.ty, &to.ty),
        (Type::Record(from), Type::Record(to)) => {
            to.iter().all(|field| match from.iter().find(|f| f.name == field.name) {
                Some(source) => can_cast(&source.ty.ty, &field.ty.ty),
                None => field.ty.nullable,
            })
        }
        _ => conversion(from, to).is_some(),
    }
}

/// A value of type `from` as one of type `to`. A null stays null; a JSON `null` becomes one.
///
/// Errors: `R0101` out of the target's range, `R0103` text or JSON that doesn't stand for such a value, or a pair that
/// [`can_cast`] refuses, `R0104` a null inside a list or record whose type has none.
pub fn cast_value<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    if value.is_null() || from == to {
        return Ok(value);
    }
    match conversion(from, to) {
        Some(convert) => convert(value, from, to),
        None => Err(unlike(&value, from, to)),
    }
}

fn unlike(value: &Value, from: &Type, to: &Type) -> EvalError {
    EvalError::new(CAST_FAILED, format!("{from} can't be converted to {to}")).with_value(format_value(value, from))
}

fn out_of_range(value: &Value, from: &Type, to: &Type) -> EvalError {
    let text = format_value(value, from);
    let range = match *to {
        Type::Int(int) => format!(", whose values are {} to {}", int.min(), int.max()),
        Type::Decimal(p, s) => format!(", which has {} digits before the point", p - s),
        _ => String::new(),
    };
    EvalError::new(crate::OVERFLOW, format!("`{text}` doesn't fit {to}{range}")).with_value(text)
}

fn keep<'v>(value: Value<'v>, _: &Type, _: &Type) -> Result<Value<'v>, EvalError> {
    Ok(value)
}

fn bool_to_number<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Bool(v) => cast_value(Value::Int(v.into()), &Type::INT64, to),
        other => Err(unlike(&other, from, to)),
    }
}

fn int_to_bool<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Int(0) => Ok(Value::Bool(false)),
        Value::Int(1) => Ok(Value::Bool(true)),
        other => {
            let text = format_value(&other, from);
            Err(EvalError::new(CAST_FAILED, format!("`{text}` is not a {to}: only 0 and 1 are")).with_value(text))
        }
    }
}

fn to_int<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    let Type::Int(int) = to else {
        return Err(unlike(&value, from, to));
    };
    let number = match &value {
        Value::Int(n) => Some(*n),
        Value::Decimal(n) => Some(decimal::to_whole(Decimal { mantissa: *n, scale: decimal::shape(from).1 })),
        // `round` goes half away from zero; a float past 10²⁰ is past every integer type.
        Value::Float(x) => Some(x.round()).filter(|x| x.abs() < 1e20).map(|x| x as i128),
        _ => None,
    };
    let fitting = number.and_then(|number| arith::in_range(number, *int).ok());
    fitting.map(Value::Int).ok_or_else(|| out_of_range(&value, from, to))
}

fn to_float<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    let single = *to == Type::Float32;
    let number = match &value {
        Value::Int(n) if single => f64::from(*n as f32),
        Value::Int(n) => *n as f64,
        Value::Float(x) if single => f64::from(*x as f32),
        Value::Float(x) => *x,
        // The text of a decimal is its exact value: reading it gives the nearest float.
        Value::Decimal(_) => return parse_value(&format_value(&value, from), to),
        _ => return Err(unlike(&value, from, to)),
    };
    arith::finite(number, to).map_err(|_| out_of_range(&value, from, to))
}

fn to_decimal<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    let (precision, scale) = decimal::shape(to);
    let number = match &value {
        Value::Int(n) => Some(Decimal { mantissa: *n, scale: 0 }),
        Value::Decimal(n) => Some(Decimal { mantissa: *n, scale: decimal::shape(from).1 }),
        Value::Float(x) => float_digits(*x, from),
        _ => None,
    };
    let fitting = number.and_then(|number| decimal::rescale(number, precision, scale).ok());
    fitting.map(Value::Decimal).ok_or_else(|| out_of_range(&value, from, to))
}

/// The shortest decimal digits of a float. `None` if the number is past 38 digits before the point.
fn float_digits(x: f64, ty: &Type) -> Option<Decimal> {
    let text = format_value(&Value::Float(x), ty);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    let mantissa: i128 = digits.replace('.', "").parse().ok()?;
    match fraction - exponent {
        scale @ 0..=255 => Some(Decimal { mantissa, scale: scale as u8 }),
        256.. => Some(Decimal { mantissa: 0, scale: 0 }),
        zeros => mantissa
            .checked_mul(10i128.checked_pow(zeros.unsigned_abs())?)
            .map(|mantissa| Decimal { mantissa, scale: 0 }),
    }
}

fn date_to_datetime<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Date(day) => Ok(Value::DateTime(i64::from(day) * DAY)),
        other => Err(unlike(&other, from, to)),
    }
}

fn datetime_to_date<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        // A datetime is of the years 0001 to 9999: its day fits.
        Value::DateTime(at) => Ok(Value::Date(at.div_euclid(DAY) as i32)),
        other => Err(unlike(&other, from, to)),
    }
}

fn datetime_to_time<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::DateTime(at) => Ok(Value::Time(at.rem_euclid(DAY))),
        other => Err(unlike(&other, from, to)),
    }
}

fn to_text<'v>(value: Value<'v>, from: &Type, _: &Type) -> Result<Value<'v>, EvalError> {
    Ok(Value::string(format_value(&value, from)))
}

fn from_text<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Str(text) => parse_value(&text, to),
        other => Err(unlike(&other, from, to)),
    }
}

fn bytes_to_text<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Bytes(bytes) => String::from_utf8(bytes.into_owned()).map(Value::string).map_err(|error| {
            let at = error.utf8_error().valid_up_to() + 1;
            let shown = format_value(&Value::Bytes(error.into_bytes().into()), from);
            EvalError::new(CAST_FAILED, format!("the bytes are not UTF-8 text: byte {at} is part of no character"))
                .with_value(shown)
        }),
        other => Err(unlike(&other, from, to)),
    }
}

fn text_to_bytes<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Str(text) => Ok(Value::Bytes(text.into_owned().into_bytes().into())),
        other => Err(unlike(&other, from, to)),
    }
}

fn to_json<'v>(value: Value<'v>, from: &Type, _: &Type) -> Result<Value<'v>, EvalError> {
    let mut text = String::new();
    push_json(&mut text, &value, from);
    Ok(Value::string(text))
}

fn from_json<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match value {
        Value::Str(text) => parse_text(&text, to),
        other => Err(unlike(&other, from, to)),
    }
}

/// An item or a field, whose target type may have no null.
fn nested<'v>(value: Value<'v>, from: &Type, to: &DataType, what: impl Fn() -> String) -> Result<Value<'v>, EvalError> {
    let value = cast_value(value, from, &to.ty)?;
    if value.is_null() && !to.nullable {
        return Err(EvalError::new(UNEXPECTED_NULL, format!("{} is null, its type {to} has no null", what())));
    }
    Ok(value)
}

fn list_to_list<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match (value, from, to) {
        (Value::List(items), Type::List(source), Type::List(target)) => items
            .into_iter()
            .enumerate()
            .map(|(i, item)| nested(item, &source.ty, target, || format!("item {i}")))
            .collect::<Result<_, _>>()
            .map(Value::List),
        (other, ..) => Err(unlike(&other, from, to)),
    }
}

/// Fields are matched by name.
fn record_to_record<'v>(value: Value<'v>, from: &Type, to: &Type) -> Result<Value<'v>, EvalError> {
    match (value, from, to) {
        (Value::Record(mut values), Type::Record(sources), Type::Record(targets)) => targets
            .iter()
            .map(|target| {
                let what = || format!("field `{}`", target.name);
                match sources.iter().position(|source| source.name == target.name) {
                    Some(at) => {
                        let value = std::mem::replace(&mut values[at], Value::Null);
                        nested(value, &sources[at].ty.ty, &target.ty, what)
                    }
                    None => nested(Value::Null, &Type::Null, &target.ty, what),
                }
            })
            .collect::<Result<_, _>>()
            .map(Value::Record),
        (other, ..) => Err(unlike(&other, from, to)),
    }
}
