//! Values to text, from Arrow arrays without a detour: byte for byte what `dfc_eval::format_value` gives.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use dfc_batch::value_at;
use dfc_ir::Type;
use dfc_ir::types::IntType;

use super::time::{DAY, civil_from_days};

/// Appends the text of a row's value. Not to be asked about nulls.
pub(crate) type WriteText<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Writes the values of a column.
pub(crate) fn writer<'a>(array: &'a ArrayRef, ty: &'a Type) -> WriteText<'a> {
    macro_rules! ints {
        ($arrow:ty) => {{
            let values = array.as_primitive::<$arrow>().values();
            Box::new(move |row, out| out.extend_from_slice(itoa::Buffer::new().format(values[row]).as_bytes()))
        }};
    }
    match ty {
        Type::Int(IntType::I8) => ints!(Int8Type),
        Type::Int(IntType::I16) => ints!(Int16Type),
        Type::Int(IntType::I32) => ints!(Int32Type),
        Type::Int(IntType::I64) => ints!(Int64Type),
        Type::Int(IntType::U8) => ints!(UInt8Type),
        Type::Int(IntType::U16) => ints!(UInt16Type),
        Type::Int(IntType::U32) => ints!(UInt32Type),
        Type::Int(IntType::U64) => ints!(UInt64Type),
        Type::Bool => {
            let values = array.as_boolean();
            Box::new(move |row, out| out.extend_from_slice(if values.value(row) { b"true" } else { b"false" }))
        }
        Type::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            Box::new(move |row, out| out.extend_from_slice(ryu::Buffer::new().format(values[row]).as_bytes()))
        }
        Type::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            Box::new(move |row, out| out.extend_from_slice(ryu::Buffer::new().format(values[row]).as_bytes()))
        }
        Type::Decimal(p, s) if *p <= dfc_ir::types::SHORT_PRECISION => {
            let (values, scale) = (array.as_primitive::<Decimal64Type>().values(), usize::from(*s));
            Box::new(move |row, out| {
                let value = values[row];
                decimal(out, value < 0, itoa::Buffer::new().format(value.unsigned_abs()).as_bytes(), scale);
            })
        }
        Type::Decimal(_, s) => {
            let (values, scale) = (array.as_primitive::<Decimal128Type>().values(), usize::from(*s));
            Box::new(move |row, out| {
                let value = values[row];
                decimal(out, value < 0, itoa::Buffer::new().format(value.unsigned_abs()).as_bytes(), scale);
            })
        }
        Type::Date => {
            let values = array.as_primitive::<Date32Type>().values();
            Box::new(move |row, out| date(out, values[row]))
        }
        Type::Time => {
            let values = array.as_primitive::<Time64MicrosecondType>().values();
            Box::new(move |row, out| time(out, values[row]))
        }
        Type::DateTime => {
            let values = array.as_primitive::<TimestampMicrosecondType>().values();
            Box::new(move |row, out| moment(out, values[row]))
        }
        Type::Timestamp => {
            let values = array.as_primitive::<TimestampMicrosecondType>().values();
            Box::new(move |row, out| {
                moment(out, values[row]);
                out.push(b'Z');
            })
        }
        Type::String | Type::Json => {
            let values = array.as_string_view();
            Box::new(move |row, out| out.extend_from_slice(values.value(row).as_bytes()))
        }
        _ => Box::new(move |row, out| {
            out.extend_from_slice(dfc_eval::format_value(&value_at(array, ty, row), ty).as_bytes());
        }),
    }
}

fn decimal(out: &mut Vec<u8>, negative: bool, digits: &[u8], scale: usize) {
    if negative {
        out.push(b'-');
    }
    if scale == 0 {
        out.extend_from_slice(digits);
        return;
    }
    if digits.len() <= scale {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
        return;
    }
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.extend_from_slice(whole);
    out.push(b'.');
    out.extend_from_slice(fraction);
}

fn two(n: u32) -> [u8; 2] {
    [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]
}

fn date(out: &mut Vec<u8>, days: i32) {
    let (year, month, day) = civil_from_days(days);
    let year = year as u32;
    let ([a, b], [c, d], [e, f], [g, h]) = (two(year / 100), two(year), two(month), two(day));
    out.extend_from_slice(&[a, b, c, d, b'-', e, f, b'-', g, h]);
}

fn time(out: &mut Vec<u8>, micros: i64) {
    let seconds = (micros / 1_000_000) as u32;
    let ([a, b], [c, d], [e, f]) = (two(seconds / 3600), two(seconds / 60 % 60), two(seconds % 60));
    out.extend_from_slice(&[a, b, b':', c, d, b':', e, f]);
    let fraction = (micros % 1_000_000) as u32;
    if fraction != 0 {
        let ([a, b], [c, d], [e, f]) = (two(fraction / 10_000), two(fraction / 100), two(fraction));
        out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
    }
}

fn moment(out: &mut Vec<u8>, micros: i64) {
    date(out, micros.div_euclid(DAY) as i32);
    out.push(b'T');
    time(out, micros.rem_euclid(DAY));
}

#[cfg(test)]
mod tests {
    use dfc_batch::ColumnBuilder;
    use dfc_ir::{DataType, Value};

    use super::*;

    #[test]
    fn text_is_the_canonical_one() {
        let numbers = [0, 1, -1, 5, 99, 100, -1234, 12_345_678, 127, -128];
        let micros = [0, 1, 999_999, 1_000_000, DAY - 1, DAY + 61_000_001, -1, -62_135_596_800_000_000];
        let mut cases: Vec<(Type, Vec<Value>)> = vec![
            (Type::Bool, vec![Value::Bool(true), Value::Bool(false)]),
            (Type::String, vec![Value::str(""), Value::str("ä longer text than twelve bytes")]),
            (Type::Bytes, vec![Value::Bytes(vec![0, 255].into())]),
            (Type::Date, [0, -719_162, 2_932_896, 20_000].map(Value::Date).to_vec()),
            (Type::Time, vec![Value::Time(0), Value::Time(1), Value::Time(DAY - 1)]),
            (Type::DateTime, micros.map(Value::DateTime).to_vec()),
            (Type::Timestamp, micros.map(Value::Timestamp).to_vec()),
            (Type::Duration, micros.map(Value::Duration).to_vec()),
            (
                Type::List(Box::new(DataType::of(Type::INT64))),
                vec![Value::List(vec![Value::Int(1), Value::Int(2)]), Value::List(vec![])],
            ),
        ];
        for int in IntType::ALL {
            let values = numbers.into_iter().chain([int.min(), int.max()]);
            let values = values.filter(|n| (int.min()..=int.max()).contains(n));
            cases.push((Type::Int(int), values.map(Value::Int).collect()));
        }
        for (p, s) in [(4, 0), (9, 2), (18, 18), (38, 0), (38, 38), (20, 7)] {
            let values = numbers.iter().filter(|n| n.abs() < 10i128.pow(p.into())).map(|n| Value::Decimal(*n));
            cases.push((Type::Decimal(p, s), values.collect()));
        }
        let floats = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1.5e-7, 123_456.789, -2.5e300, 1e-5, 9.9e-6, 5e-324];
        cases.push((Type::Float64, floats.map(Value::Float).to_vec()));
        cases
            .push((Type::Float32, [0.0f32, 1.0, 0.1, 1e12, 1e13, 1e-6, 9e-7].map(|x| Value::Float(x.into())).to_vec()));
        for (ty, values) in cases {
            let mut builder = ColumnBuilder::new(&DataType::of(ty.clone()), values.len());
            values.iter().for_each(|v| builder.push(v));
            let array = builder.finish();
            let write = writer(&array, &ty);
            for (row, value) in values.iter().enumerate() {
                let mut out = Vec::new();
                write(row, &mut out);
                assert_eq!(String::from_utf8(out).unwrap(), dfc_eval::format_value(value, &ty), "{ty}");
            }
        }
    }
}
