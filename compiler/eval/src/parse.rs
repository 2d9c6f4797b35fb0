//! Text to values: what a cast from text does (to bytes apart). The forms are those that [`crate::format_value`] writes, and a few more.

use std::str::FromStr;

use dfc_ir::types::IntType;
use dfc_ir::{Type, Value};

use crate::calendar::{DAY, days_from_civil, days_in_month};
use crate::wide::pow10;
use crate::{CAST_FAILED, EvalError};

/// What can be said against a text: the rest of a sentence that starts with the text, as "is no date: …".
type Fault = String;

/// The value of type `ty` that `text` stands for. Blanks around it are not skipped.
///
/// | type | accepted |
/// |---|---|
/// | `bool` | `true`, `false`, in any case of letters |
/// | integers | digits with an optional sign |
/// | `decimal(p, s)` | digits with an optional sign and an optional fraction; digits that the scale would cut off must be 0 |
/// | floats | as decimals, and an exponent; not `nan`, `inf` |
/// | `string` | anything |
/// | `json` | valid JSON |
/// | `bytes` | pairs of hexadecimal digits |
/// | `date` | `2026-01-31` |
/// | `time` | `10:00:00` with up to six digits of fraction |
/// | `datetime` | date, `T` or a space, time |
/// | `timestamp` | the same and `Z` or an offset `+08:00` |
/// | `duration` | numbers with units `d h m s ms us`, largest first, an optional sign in front: `1d12h`, `1.5s` |
/// | lists, records | JSON |
///
/// Errors: `R0103`, with the text as value.
pub fn parse_value(text: &str, ty: &Type) -> Result<Value<'static>, EvalError> {
    let parsed = match ty {
        Type::Bool => parse_bool(text),
        Type::Int(int) => parse_int(text, *int),
        Type::Float32 | Type::Float64 => parse_float(text, ty),
        Type::Decimal(p, s) => parse_decimal(text, *p, *s),
        Type::String => Ok(Value::string(text)),
        Type::Bytes => parse_bytes(text),
        Type::Date => whole(text, date).map(Value::Date).ok_or_else(|| {
            if whole(text, moment).is_some() || parse_timestamp(text).is_ok() {
                return "is not a date: it has a time of day; read as a datetime or timestamp, `date(…)` takes its day"
                    .into();
            }
            expected("date", "a day of the calendar as 2026-01-31")
        }),
        Type::Time => whole(text, time)
            .map(Value::Time)
            .ok_or_else(|| expected("time", "10:00:00, with up to six digits of fraction")),
        Type::DateTime => whole(text, moment)
            .map(Value::DateTime)
            .ok_or_else(|| expected("datetime", "2026-01-31T10:00:00, or a space for the T")),
        Type::Timestamp => parse_timestamp(text),
        Type::Duration => parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| expected("duration", "numbers with the units d, h, m, s, ms, us, as 1d12h or 1.5s")),
        Type::Json | Type::List(_) | Type::Record(_) => return crate::json::parse_text(text, ty),
        Type::Secret | Type::Null => Err(format!("can't be read as a value of type {ty}")),
    };
    parsed.map_err(|fault| EvalError::new(CAST_FAILED, format!("`{}` {fault}", shorten(text))).with_value(text))
}

/// At most 60 characters of a text, for a message.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_string(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn expected(what: &str, form: &str) -> Fault {
    format!("is not a {what}: expected {form}")
}

fn parse_bool(text: &str) -> Result<Value<'static>, Fault> {
    if text.eq_ignore_ascii_case("true") {
        Ok(Value::Bool(true))
    } else if text.eq_ignore_ascii_case("false") {
        Ok(Value::Bool(false))
    } else {
        Err("is not a bool: expected true or false".into())
    }
}

/// Splits a sign off.
fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_int(text: &str, int: IntType) -> Result<Value<'static>, Fault> {
    let (negative, digits) = sign(text);
    if digits.is_empty() || !is_digits(digits) {
        return Err(format!("is not a number of type {}: digits with an optional sign are expected", int.name()));
    }
    digits
        .parse::<i128>()
        .ok()
        .map(|number| if negative { -number } else { number })
        .filter(|number| (int.min()..=int.max()).contains(number))
        .map(Value::Int)
        .ok_or_else(|| format!("doesn't fit {}, whose values are {} to {}", int.name(), int.min(), int.max()))
}

fn parse_float(text: &str, ty: &Type) -> Result<Value<'static>, Fault> {
    // The library's parser takes `inf`, `nan` and `infinity` too: only digits, signs, point and exponent pass.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    let number = match ty {
        Type::Float32 => f32::from_str(text).map(f64::from),
        _ => f64::from_str(text),
    };
    match number {
        Ok(number) if plain && number.is_finite() => Ok(Value::Float(number)),
        Ok(_) if plain => Err(format!("is too large for {ty}")),
        _ => Err(format!("is not a number of type {ty}: expected digits, as 1.5 or 2e10")),
    }
}

fn parse_decimal(text: &str, precision: u8, scale: u8) -> Result<Value<'static>, Fault> {
    let (negative, unsigned) = sign(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(format!("is not a number of type decimal({precision}, {scale}): expected digits, as 12.50"));
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > usize::from(scale) {
        return Err(format!(
            "has {} digits after the point, decimal({precision}, {scale}) takes {scale}: round it first, or widen the type",
            fraction.len()
        ));
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() > usize::from(precision - scale) {
        return Err(format!(
            "has {} digits before the point, decimal({precision}, {scale}) takes {}",
            whole.len(),
            precision - scale
        ));
    }
    // At most 38 digits.
    let digits = |text: &str| text.bytes().fold(0i128, |number, byte| number * 10 + i128::from(byte - b'0'));
    let mantissa =
        digits(whole) * pow10(scale.into()) + digits(fraction) * pow10(u32::from(scale) - fraction.len() as u32);
    Ok(Value::Decimal(if negative { -mantissa } else { mantissa }))
}

fn parse_bytes(text: &str) -> Result<Value<'static>, Fault> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs
        .collect::<Option<Vec<u8>>>()
        .map(|bytes| Value::Bytes(bytes.into()))
        .ok_or_else(|| "is not bytes: expected pairs of hexadecimal digits, as 00ff".into())
}

/// A reader of a prefix: the value and what is left.
type Reader<T> = fn(&[u8]) -> Option<(T, &[u8])>;

/// The value that all of `text` stands for.
fn whole<T>(text: &str, read: Reader<T>) -> Option<T> {
    read(text.as_bytes()).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// Exactly `count` digits.
fn number(text: &[u8], count: usize) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(count)?;
    let value = digits.iter().try_fold(0, |n, byte| byte.is_ascii_digit().then(|| n * 10 + u32::from(byte - b'0')))?;
    Some((value, rest))
}

fn date(text: &[u8]) -> Option<(i32, &[u8])> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = number(rest.strip_prefix(b"-")?, 2)?;
    let exists = year >= 1 && (1..=12).contains(&month) && (1..=days_in_month(year as i32, month)).contains(&day);
    exists.then(|| (days_from_civil(year as i32, month, day), rest))
}

fn time(text: &[u8]) -> Option<(i64, &[u8])> {
    let (hour, rest) = number(text, 2)?;
    let (minute, rest) = number(rest.strip_prefix(b":")?, 2)?;
    let (second, mut rest) = number(rest.strip_prefix(b":")?, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut micros = (i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=6).contains(&count) {
            return None;
        }
        let (value, after) = number(fraction, count)?;
        micros += i64::from(value) * 10i64.pow(6 - count as u32);
        rest = after;
    }
    Some((micros, rest))
}

fn moment(text: &[u8]) -> Option<(i64, &[u8])> {
    let (day, rest) = date(text)?;
    let rest = rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b" "))?;
    let (micros, rest) = time(rest)?;
    Some((i64::from(day) * DAY + micros, rest))
}

/// An offset from UTC, in minutes.
fn offset(text: &[u8]) -> Option<i64> {
    let sign = match text.first()? {
        b'Z' => return (text.len() == 1).then_some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2)?;
    let (minutes, rest) = number(rest.strip_prefix(b":")?, 2)?;
    (rest.is_empty() && hours <= 23 && minutes <= 59).then(|| sign * i64::from(hours * 60 + minutes))
}

fn parse_timestamp(text: &str) -> Result<Value<'static>, Fault> {
    let fault = || expected("timestamp", "2026-01-31T10:00:00Z, or an offset as +08:00 for the Z");
    let (local, rest) = moment(text.as_bytes()).ok_or_else(fault)?;
    let minutes = offset(rest).ok_or_else(fault)?;
    let micros = i128::from(local) - i128::from(minutes) * 60_000_000;
    crate::calendar::check_moment(micros)
        .map(Value::Timestamp)
        .map_err(|_| "lies outside the years 0001 to 9999 in UTC".into())
}

fn parse_duration(text: &str) -> Option<i64> {
    const UNITS: [(&str, i128); 6] =
        [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];
    let (negative, mut rest) = sign(text);
    let (mut total, mut next) = (0i128, 0);
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let at = UNITS.iter().position(|(name, _)| *name == unit).filter(|at| *at >= next)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || number.ends_with('.') || fraction.len() > 9 || !is_digits(fraction) {
            return None;
        }
        // Parts of a microsecond must be 0.
        let billionths = whole.parse::<i128>().ok()?.checked_mul(1_000_000_000)?;
        let part = format!("{fraction:0<9}").parse::<i128>().ok()?;
        let scaled = billionths.checked_add(part)?.checked_mul(UNITS[at].1)?;
        if scaled % 1_000_000_000 != 0 {
            return None;
        }
        total = total.checked_add(scaled / 1_000_000_000)?;
        (rest, next) = (after, at + 1);
    }
    if next == 0 {
        return None;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}
