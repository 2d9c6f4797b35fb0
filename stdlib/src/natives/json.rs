//! JSON: reading values out of it, writing values as it.

use super::args::{Result, check_size, count, int, string, text, value, wrong_kind};
use super::hashes::hex;
use super::{CallTypes, Native};
use crate::calendar;
use crate::json_scan;
use dfc_ir::{Type, Value};
use std::fmt::Write as _;

pub(super) const TABLE: &[Native] = &[
    Native::strict("json_get", |args, _| step_into(args, 1)),
    Native::strict("json_path", |args, _| step_into(args, args.len().saturating_sub(1))),
    Native::strict("json_text", |args, _| {
        let json = text(args, 0)?;
        let found = if args.len() > 1 { json_scan::member(json, text(args, 1)?) } else { Some(json) };
        found.filter(|json| !json_scan::is_null(json)).map_or(Ok(Value::Null), |json| string(json_scan::text_of(json)))
    }),
    Native::strict("json_length", |args, _| {
        let length = json_scan::length(text(args, 0)?).and_then(|length| usize::try_from(length).ok());
        length.map_or(Ok(Value::Null), count)
    }),
    Native::strict("json_valid", |args, _| Ok(Value::Bool(json_scan::valid(text(args, 0)?)))),
    Native::strict("to_json", |args, types: &CallTypes<'_>| {
        let ty = types.args.first().map_or(&Type::Null, |ty| &ty.ty);
        let mut out = String::new();
        write_value(&mut out, value(args, 0)?, ty)?;
        string(out)
    }),
];

/// Follows the first `steps` arguments after the JSON: texts are names of members, integers places of items.
fn step_into(args: &[Value<'_>], steps: usize) -> Result {
    let mut at = text(args, 0)?;
    for index in 1..=steps {
        let next = match value(args, index)? {
            Value::Str(key) => json_scan::member(at, key),
            _ => json_scan::item(at, int(args, index)?),
        };
        match next {
            Some(next) => at = next,
            None => return Ok(Value::Null),
        }
    }
    if json_scan::is_null(at) { Ok(Value::Null) } else { string(at) }
}

/// Appends a value as JSON. What JSON has no form for is a string of its canonical text.
fn write_value(out: &mut String, value: &Value<'_>, ty: &Type) -> super::args::Checked<()> {
    check_size(Some(out.len()))?;
    // Writing to a `String` cannot fail.
    let _ = match (value, ty) {
        (Value::Null, _) => out.write_str("null"),
        (Value::Bool(v), _) => write!(out, "{v}"),
        (Value::Int(v), _) => write!(out, "{v}"),
        // The digits that read back as the same value.
        (Value::Float(v), Type::Float32) => out.write_str(ryu::Buffer::new().format(*v as f32)),
        (Value::Float(v), _) => out.write_str(ryu::Buffer::new().format(*v)),
        (Value::Decimal(v), Type::Decimal(_, scale)) => write_decimal(out, *v, usize::from(*scale)),
        (Value::Decimal(v), _) => write!(out, "{v}"),
        (Value::Str(v), Type::Json) => out.write_str(v),
        (Value::Str(v), _) => write_string(out, v),
        (Value::Bytes(v), _) => {
            check_size(v.len().checked_mul(2))?;
            quoted(out, |out| out.write_str(&hex(v)))
        }
        (Value::Date(v), _) => quoted(out, |out| write_date(out, *v)),
        (Value::Time(v), _) => quoted(out, |out| write_time(out, *v)),
        (Value::DateTime(v), _) => quoted(out, |out| write_moment(out, *v)),
        (Value::Timestamp(v), _) => quoted(out, |out| write_moment(out, *v).and_then(|()| out.write_str("Z"))),
        (Value::Duration(v), _) => quoted(out, |out| write_duration(out, *v)),
        (Value::List(items), Type::List(item)) => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_value(out, value, &item.ty)?;
            }
            out.write_str("]")
        }
        (Value::Record(values), Type::Record(fields)) => {
            out.push('{');
            for (index, (value, field)) in values.iter().zip(fields).enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                let _ = write_string(out, field.external_name());
                out.push_str(": ");
                write_value(out, value, &field.ty.ty)?;
            }
            out.write_str("}")
        }
        (Value::List(_) | Value::Record(_), _) => return Err(wrong_kind(0, "of its declared type")),
    };
    Ok(())
}

fn quoted(out: &mut String, write: impl FnOnce(&mut String) -> std::fmt::Result) -> std::fmt::Result {
    out.push('"');
    write(out)?;
    out.write_str("\"")
}

fn write_string(out: &mut String, s: &str) -> std::fmt::Result {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => write!(out, "\\u{:04x}", c as u32)?,
            c => out.push(c),
        }
    }
    out.write_str("\"")
}

fn write_decimal(out: &mut String, mantissa: i128, scale: usize) -> std::fmt::Result {
    let sign = if mantissa < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", mantissa.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale > 0 { "." } else { "" };
    write!(out, "{sign}{whole}{point}{fraction}")
}

fn write_date(out: &mut String, days: i32) -> std::fmt::Result {
    let (year, month, day) = calendar::civil(days);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

fn write_time(out: &mut String, micros: i64) -> std::fmt::Result {
    let seconds = micros / 1_000_000;
    write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    match micros % 1_000_000 {
        0 => Ok(()),
        fraction => write!(out, ".{fraction:06}"),
    }
}

fn write_moment(out: &mut String, micros: i64) -> std::fmt::Result {
    let (days, time) = calendar::split(micros);
    write_date(out, days)?;
    out.push('T');
    write_time(out, time)
}

/// `1d2h30m`, `-1.500000s`, `0s`.
fn write_duration(out: &mut String, micros: i64) -> std::fmt::Result {
    let size = micros.unsigned_abs();
    let (seconds, fraction) = (size / 1_000_000, size % 1_000_000);
    if micros < 0 {
        out.push('-');
    }
    for (amount, unit) in [(seconds / 86_400, 'd'), (seconds / 3_600 % 24, 'h'), (seconds / 60 % 60, 'm')] {
        if amount > 0 {
            write!(out, "{amount}{unit}")?;
        }
    }
    match (seconds % 60, fraction) {
        (0, 0) if size > 0 => Ok(()),
        (whole, 0) => write!(out, "{whole}s"),
        (whole, _) => write!(out, "{whole}.{fraction:06}s"),
    }
}
