//! Values of fixed width as bytes: the form they have in keys and states.
//!
//! Little-endian, two's complement, of the width that the value has in an Arrow array: bool 1 byte (0 or 1), integers their own
//! width, `float32` 4, `float64` 8, decimals 8 up to 18 digits and 16 above, `date` 4, `time`, `datetime`, `timestamp`,
//! `duration` 8.

use dfc_ir::types::SHORT_PRECISION;
use dfc_ir::{Type, Value};

/// Bytes of a value of this type, if all have the same number.
pub fn width(ty: &Type) -> Option<usize> {
    Some(match ty {
        Type::Bool => 1,
        Type::Int(int) => int.bits() as usize / 8,
        Type::Float32 | Type::Date => 4,
        Type::Float64 | Type::Time | Type::DateTime | Type::Timestamp | Type::Duration => 8,
        Type::Decimal(p, _) if *p <= SHORT_PRECISION => 8,
        Type::Decimal(..) => 16,
        _ => return None,
    })
}

/// The bytes of a value of fixed width; those from its width on are no part of it. A null, or a value without fixed width, is 0.
pub(crate) fn encode(value: &Value, ty: &Type) -> [u8; 16] {
    let number: i128 = match value {
        Value::Bool(v) => (*v).into(),
        Value::Int(v) | Value::Decimal(v) => *v,
        Value::Float(v) if *ty == Type::Float32 => (*v as f32).to_bits().into(),
        Value::Float(v) => v.to_bits().into(),
        Value::Date(v) => (*v).into(),
        Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => (*v).into(),
        Value::Null | Value::Str(_) | Value::Bytes(_) | Value::List(_) | Value::Record(_) => 0,
    };
    number.to_le_bytes()
}

/// The value that `bytes` (as many as its type's width) stand for.
pub(crate) fn decode(bytes: &[u8], ty: &Type) -> Value<'static> {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = i128::from_le_bytes(wide);
    // Moves the sign bit to the top and back.
    let shift = 128 - 8 * bytes.len() as u32;
    let signed = unsigned.checked_shl(shift).unwrap_or(0) >> shift.min(127);
    match ty {
        Type::Bool => Value::Bool(unsigned != 0),
        Type::Int(int) => Value::Int(if int.signed() { signed } else { unsigned }),
        Type::Float32 => Value::Float(f32::from_bits(unsigned as u32).into()),
        Type::Float64 => Value::Float(f64::from_bits(unsigned as u64)),
        Type::Decimal(..) => Value::Decimal(signed),
        Type::Date => Value::Date(signed as i32),
        Type::Time => Value::Time(signed as i64),
        Type::DateTime => Value::DateTime(signed as i64),
        Type::Timestamp => Value::Timestamp(signed as i64),
        Type::Duration => Value::Duration(signed as i64),
        _ => Value::Null,
    }
}
