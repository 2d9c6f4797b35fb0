//! The canonical text of a value: what a cast to text gives (of bytes apart), and what text sinks write.

use std::fmt::Write;

use dfc_ir::{Type, Value};

use crate::calendar::{DAY, civil_from_days};
use crate::json::push_json;

/// The canonical text of a value. [`crate::parse_value`] reads it back to the same value.
///
/// | type | text |
/// |---|---|
/// | `bool` | `true`, `false` |
/// | integers | `-42` |
/// | `decimal(p, s)` | exactly s digits after the point, none if s = 0: `1.50` |
/// | floats | shortest digits that read back: `0.1`, `1.0`; with an exponent from 10¹⁶ on and below 10⁻⁵ (`float32`: 10¹³, 10⁻⁶): `1e16`, `2.5e-7`; exactly what the `ryu` crate writes |
/// | `string`, `json` | as it is |
/// | `bytes` | two lower-case hexadecimal digits a byte |
/// | `date` | `2026-01-31` |
/// | `time` | `10:00:00`, with six digits of fraction if it isn't 0: `10:00:00.250000` |
/// | `datetime` | `2026-01-31T10:00:00`, fraction as above |
/// | `timestamp` | as datetime, in UTC, and `Z` |
/// | `duration` | days, hours, minutes, seconds, those that aren't 0: `1d2h30m`, `1.500000s`, `-5m`, `0s` |
/// | lists, records | JSON |
///
/// A null has no text: it gives the empty string.
pub fn format_value(value: &Value, ty: &Type) -> String {
    let mut text = String::new();
    push_value(&mut text, value, ty);
    text
}

/// Appends the canonical text of a value: see [`format_value`].
pub fn push_value(out: &mut String, value: &Value, ty: &Type) {
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        Value::Int(v) => push(out, format_args!("{v}")),
        Value::Float(v) => push_float(out, *v, ty),
        Value::Decimal(v) => push_decimal(out, *v, crate::decimal::shape(ty).1),
        Value::Str(v) => out.push_str(v),
        Value::Bytes(v) => v.iter().for_each(|byte| push(out, format_args!("{byte:02x}"))),
        Value::Date(v) => push_date(out, *v),
        Value::Time(v) => push_time(out, *v),
        Value::DateTime(v) => push_moment(out, *v),
        Value::Timestamp(v) => {
            push_moment(out, *v);
            out.push('Z');
        }
        Value::Duration(v) => push_duration(out, *v),
        Value::List(_) | Value::Record(_) => push_json(out, value, ty),
    }
}

fn push(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a string can't fail.
    let _ = out.write_fmt(text);
}

fn push_float(out: &mut String, x: f64, ty: &Type) {
    let mut buffer = ryu::Buffer::new();
    out.push_str(match ty {
        Type::Float32 => buffer.format_finite(x as f32),
        _ => buffer.format_finite(x),
    });
}

pub(crate) fn push_decimal(out: &mut String, mantissa: i128, scale: u8) {
    if mantissa < 0 {
        out.push('-');
    }
    let digits = format!("{:0width$}", mantissa.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    out.push_str(whole);
    if scale > 0 {
        out.push('.');
        out.push_str(fraction);
    }
}

fn push_date(out: &mut String, day: i32) {
    let (year, month, date) = civil_from_days(day);
    push(out, format_args!("{year:04}-{month:02}-{date:02}"));
}

fn push_time(out: &mut String, micros: i64) {
    let seconds = micros / 1_000_000;
    push(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    let fraction = micros % 1_000_000;
    if fraction != 0 {
        push(out, format_args!(".{fraction:06}"));
    }
}

fn push_moment(out: &mut String, micros: i64) {
    push_date(out, micros.div_euclid(DAY) as i32);
    out.push('T');
    push_time(out, micros.rem_euclid(DAY));
}

fn push_duration(out: &mut String, micros: i64) {
    if micros == 0 {
        out.push_str("0s");
        return;
    }
    if micros < 0 {
        out.push('-');
    }
    let size = micros.unsigned_abs();
    let (seconds, fraction) = (size / 1_000_000, size % 1_000_000);
    for (count, unit) in [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m")] {
        if count > 0 {
            push(out, format_args!("{count}{unit}"));
        }
    }
    match (seconds % 60, fraction) {
        (0, 0) => {}
        (whole, 0) => push(out, format_args!("{whole}s")),
        (whole, _) => push(out, format_args!("{whole}.{fraction:06}s")),
    }
}
