//! PostgreSQL's binary form of values, as values of declared types. It knows the form of `COPY … BINARY`, not what is copied.

use std::borrow::Cow;

use dfc_eval::arith::in_range;
use dfc_ir::{Type, Value};

use super::catalogue::Form;
use crate::rows::{Fault, shown};
use crate::text::value::{MISFIT, unexpected_null};

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Whether values in this form are read as this type without a detour over text.
pub(crate) fn direct(form: &Form, ty: &Type) -> bool {
    match (form, ty) {
        (Form::Bool, Type::Bool) => true,
        (Form::Int(_), Type::Int(_) | Type::Float64 | Type::Decimal(..)) => true,
        (Form::Float4 | Form::Float8, Type::Float32 | Type::Float64) => true,
        (Form::Numeric, Type::Decimal(..)) => true,
        (Form::Text | Form::Uuid, Type::String) => true,
        (Form::Json | Form::Jsonb, Type::Json | Type::String) => true,
        (Form::Bytes, Type::Bytes) | (Form::Date, Type::Date) | (Form::Time, Type::Time) => true,
        (Form::Timestamp, Type::DateTime | Type::Timestamp) | (Form::Interval, Type::Duration) => true,
        (Form::Array(item), Type::List(ty)) => direct(item, &ty.ty),
        _ => false,
    }
}

fn misfit(what: &str, ty: &Type) -> Fault {
    Fault { code: MISFIT, rule: format!("{what} is no {ty}"), value: Some(what.trim_matches('`').into()) }
}

fn broken() -> Fault {
    Fault { code: MISFIT, rule: "the server's form of the value is not understood".into(), value: None }
}

fn number<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Fault> {
    bytes.try_into().map_err(|_| broken())
}

fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| broken())
}

/// The value of a field that isn't null.
///
/// # Errors
/// Why it is no value of the type.
pub(crate) fn read<'a>(bytes: &'a [u8], form: &Form, ty: &Type) -> Result<Value<'a>, Fault> {
    match form {
        Form::Bool => Ok(Value::Bool(number::<1>(bytes)?[0] != 0)),
        Form::Int(_) => integer(int(bytes)?, ty),
        Form::Float4 => float(f32::from_be_bytes(number(bytes)?).into(), ty),
        Form::Float8 => float(f64::from_be_bytes(number(bytes)?), ty),
        Form::Numeric => numeric(bytes, ty).map(Value::Decimal),
        Form::Text | Form::Json => Ok(Value::str(text(bytes)?)),
        Form::Jsonb => match bytes.split_first() {
            Some((1, json)) => Ok(Value::str(text(json)?)),
            _ => Err(broken()),
        },
        Form::Bytes => Ok(Value::Bytes(Cow::Borrowed(bytes))),
        Form::Uuid => uuid(bytes).map(Value::string),
        Form::Date => match i32::from_be_bytes(number(bytes)?) {
            i32::MAX | i32::MIN => Err(misfit("an infinite date", ty)),
            days => dfc_eval::calendar::check_day(i128::from(days) + i128::from(EPOCH_DAYS))
                .map(Value::Date)
                .map_err(|error| Fault { code: MISFIT, rule: error.message, value: None }),
        },
        Form::Time => match i64::from_be_bytes(number(bytes)?) {
            micros @ 0..DAY => Ok(Value::Time(micros)),
            _ => Err(misfit("`24:00:00`", ty)),
        },
        Form::Timestamp => match i64::from_be_bytes(number(bytes)?) {
            i64::MAX | i64::MIN => Err(misfit("an infinite time", ty)),
            micros => {
                let moment = dfc_eval::calendar::check_moment(i128::from(micros) + i128::from(EPOCH_MICROS));
                let moment = moment.map_err(|error| Fault { code: MISFIT, rule: error.message, value: None })?;
                Ok(if *ty == Type::Timestamp { Value::Timestamp(moment) } else { Value::DateTime(moment) })
            }
        },
        Form::Interval => interval(bytes, ty),
        Form::Array(item) => array(bytes, item, ty),
        Form::AsText => {
            let text = text(bytes)?;
            let fault = |rule| Fault { code: MISFIT, rule, value: Some(shown(bytes)) };
            match ty {
                Type::String => Ok(Value::str(text)),
                // `bool`'s own text.
                Type::Bool if text == "t" || text == "f" => Ok(Value::Bool(text == "t")),
                // PostgreSQL writes zones as `+00`.
                Type::Timestamp => dfc_eval::parse_value(&text.replace("+00", "Z"), ty).map_err(|e| fault(e.message)),
                _ => dfc_eval::parse_value(text, ty).map_err(|error| fault(error.message)),
            }
        }
    }
}

/// An integer of any width.
fn int(bytes: &[u8]) -> Result<i64, Fault> {
    match *bytes {
        [a, b] => Ok(i16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Ok(i32::from_be_bytes([a, b, c, d]).into()),
        _ => Ok(i64::from_be_bytes(number(bytes)?)),
    }
}

/// The text of a key's field, as the server reads it again. `None`: its form isn't one of keys.
pub(crate) fn key_text(bytes: &[u8], form: &Form) -> Option<String> {
    match form {
        Form::Int(_) => int(bytes).ok().map(|n| n.to_string()),
        Form::Text | Form::AsText => std::str::from_utf8(bytes).ok().map(String::from),
        Form::Uuid => uuid(bytes).ok(),
        _ => None,
    }
}

fn integer(n: i64, ty: &Type) -> Result<Value<'static>, Fault> {
    let fault = |rule: String| Fault { code: MISFIT, rule, value: Some(n.to_string()) };
    match ty {
        Type::Int(int) => in_range(n.into(), *int).map(Value::Int).map_err(|error| fault(error.message)),
        Type::Float64 if n.unsigned_abs() <= 1 << 53 => Ok(Value::Float(n as f64)),
        Type::Decimal(p, s) => i128::from(n)
            .checked_mul(10i128.pow(u32::from(*s)))
            .filter(|m| m.unsigned_abs() < 10u128.pow(u32::from(*p)))
            .map(Value::Decimal)
            .ok_or_else(|| fault(format!("`{n}` is no {ty}"))),
        _ => Err(fault(format!("`{n}` is no {ty}"))),
    }
}

fn float(x: f64, ty: &Type) -> Result<Value<'static>, Fault> {
    let fits = x.is_finite() && (*ty != Type::Float32 || (x as f32).is_finite());
    let value = if *ty == Type::Float32 { f64::from(x as f32) } else { x };
    if fits { Ok(Value::Float(value)) } else { Err(misfit(&format!("`{x}`"), ty)) }
}

/// A `numeric`: groups of four digits.
fn numeric(bytes: &[u8], ty: &Type) -> Result<i128, Fault> {
    let Type::Decimal(precision, scale) = ty else { return Err(broken()) };
    let word = |at: usize| bytes.get(at..at + 2).map(|b| i16::from_be_bytes([b[0], b[1]])).ok_or_else(broken);
    let (groups, weight) = (word(0)?, i32::from(word(2)?));
    let negative = match word(4)? as u16 {
        0x0000 => false,
        0x4000 => true,
        0xC000 => return Err(misfit("`NaN`", ty)),
        _ => return Err(misfit("an infinite number", ty)),
    };
    let mut mantissa = 0i128;
    let too_large = || Fault { code: MISFIT, rule: format!("the number has more digits than {ty}"), value: None };
    for at in 0..i32::from(groups) {
        let group = i128::from(word(8 + 2 * at as usize)?);
        // The power of ten of the group's last digit, counted from the mantissa's.
        let power = 4 * (weight - at) + i32::from(*scale);
        mantissa = match power {
            0.. => {
                let unit = 10i128.checked_pow(power as u32);
                let part = unit.and_then(|unit| group.checked_mul(unit));
                part.and_then(|part| mantissa.checked_add(part))
                    .filter(|_| group != 0)
                    .or((group == 0).then_some(mantissa))
            }
            -3..0 => {
                let unit = 10i128.pow(power.unsigned_abs());
                (group % unit == 0).then(|| mantissa + group / unit)
            }
            _ => (group == 0).then_some(mantissa),
        }
        .ok_or_else(too_large)?;
    }
    match mantissa.unsigned_abs() < 10u128.pow(u32::from(*precision)) {
        true => Ok(if negative { -mantissa } else { mantissa }),
        false => Err(too_large()),
    }
}

fn uuid(bytes: &[u8]) -> Result<String, Fault> {
    let bytes = number::<16>(bytes)?;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            // Below 16, so a digit.
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    Ok(text)
}

fn interval(bytes: &[u8], ty: &Type) -> Result<Value<'static>, Fault> {
    let parts: [u8; 16] = number(bytes)?;
    let (micros, rest) = parts.split_at(8);
    let (days, months) = rest.split_at(4);
    let (micros, days, months) =
        (i64::from_be_bytes(number(micros)?), i32::from_be_bytes(number(days)?), i32::from_be_bytes(number(months)?));
    if months != 0 {
        return Err(misfit("an interval of months, which have no fixed length,", ty));
    }
    let all = i64::from(days).checked_mul(DAY).and_then(|days| days.checked_add(micros));
    all.map(Value::Duration).ok_or_else(|| misfit("an interval of this length", ty))
}

fn array<'a>(bytes: &'a [u8], form: &Form, ty: &Type) -> Result<Value<'a>, Fault> {
    let Type::List(item) = ty else { return Err(broken()) };
    let word =
        |at: usize| bytes.get(at..at + 4).map(|b| i32::from_be_bytes([b[0], b[1], b[2], b[3]])).ok_or_else(broken);
    match word(0)? {
        0 => return Ok(Value::List(Vec::new())),
        1 => {}
        _ => return Err(misfit("an array of several dimensions", ty)),
    }
    let count = word(12)?;
    let mut at = 20;
    let mut items = Vec::new();
    for _ in 0..count {
        let length = word(at)?;
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            if !item.nullable {
                return Err(unexpected_null(&item.ty));
            }
            items.push(Value::Null);
            continue;
        };
        let field = bytes.get(at..at + length).ok_or_else(broken)?;
        items.push(read(field, form, &item.ty)?);
        at += length;
    }
    Ok(Value::List(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(weight: i16, sign: u16, digits: &[i16]) -> Vec<u8> {
        let words = [digits.len() as i16, weight, sign as i16, 0];
        words.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn numerics_are_exact_or_refused() {
        let ty = Type::Decimal(9, 2);
        let decimal = |bytes: &[u8]| numeric(bytes, &ty).map_err(|fault| fault.rule);
        assert_eq!(decimal(&groups(1, 0, &[123, 4567, 8900])), Ok(123_456_789));
        assert_eq!(decimal(&groups(0, 0x4000, &[1, 5000])), Ok(-150));
        assert_eq!(decimal(&groups(-1, 0, &[100])), Ok(1));
        assert_eq!(decimal(&groups(0, 0, &[])), Ok(0));
        for bytes in
            [groups(-1, 0, &[12]), groups(2, 0, &[1]), groups(0, 0xC000, &[]), groups(0, 0xD000, &[]), vec![0; 3]]
        {
            assert!(decimal(&bytes).is_err(), "{bytes:?}");
        }
    }

    /// Never a panic, whatever comes.
    #[test]
    fn bytes_that_make_no_sense_are_row_errors() {
        let forms = [
            Form::Bool,
            Form::Int(8),
            Form::Float4,
            Form::Float8,
            Form::Numeric,
            Form::Text,
            Form::Jsonb,
            Form::Date,
            Form::Time,
            Form::Timestamp,
            Form::Interval,
            Form::Uuid,
            Form::Array(Box::new(Form::Int(4))),
            Form::AsText,
        ];
        let list = Type::List(Box::new(dfc_ir::DataType::of(Type::INT32)));
        for form in &forms {
            for ty in [Type::Bool, Type::INT64, Type::Decimal(38, 10), Type::Date, Type::Duration, list.clone()] {
                for length in 0..40 {
                    for byte in [0u8, 1, 127, 255] {
                        let _ = read(&vec![byte; length], form, &ty);
                    }
                }
            }
        }
    }
}
