//! A file's types and the declared ones: which fit, and arrays of the first as arrays of the second. Nothing is rounded on the way:
//! what a declared type can't hold exactly is a row error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema, TimeUnit};
use dfc_batch::{ColumnBuilder, arrow_type};
use dfc_ir::types::{IntType, SHORT_PRECISION};
use dfc_ir::{DataType, Field, Type, Value};

use crate::rows::{Fault, Faults};
use crate::text::value::{MISFIT, unexpected_null};

/// First and last day of the calendar: 0001-01-01 and 9999-12-31.
const DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The declared type that values of a file's type have of themselves.
pub(crate) fn natural(arrow: &ArrowType) -> Option<Type> {
    let of_field =
        |field: &ArrowField| Some(DataType { ty: natural(field.data_type())?, nullable: field.is_nullable() });
    Some(match arrow {
        ArrowType::Boolean => Type::Bool,
        ArrowType::Int8 => Type::Int(IntType::I8),
        ArrowType::Int16 => Type::Int(IntType::I16),
        ArrowType::Int32 => Type::Int(IntType::I32),
        ArrowType::Int64 => Type::Int(IntType::I64),
        ArrowType::UInt8 => Type::Int(IntType::U8),
        ArrowType::UInt16 => Type::Int(IntType::U16),
        ArrowType::UInt32 => Type::Int(IntType::U32),
        ArrowType::UInt64 => Type::Int(IntType::U64),
        ArrowType::Float32 => Type::Float32,
        ArrowType::Float64 => Type::Float64,
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) | ArrowType::Decimal128(p, s) => {
            Type::Decimal(*p, u8::try_from(*s).ok()?)
        }
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => Type::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            Type::Bytes
        }
        ArrowType::Date32 | ArrowType::Date64 => Type::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => Type::Time,
        ArrowType::Timestamp(_, None) => Type::DateTime,
        ArrowType::Timestamp(_, Some(_)) => Type::Timestamp,
        ArrowType::Duration(_) => Type::Duration,
        ArrowType::List(item) | ArrowType::LargeList(item) => Type::List(Box::new(of_field(item)?)),
        ArrowType::Struct(fields) => {
            Type::Record(fields.iter().map(|f| Some(Field::new(f.name(), of_field(f)?))).collect::<Option<Vec<_>>>()?)
        }
        ArrowType::Dictionary(_, values) => natural(values)?,
        _ => return None,
    })
}

/// Whether values of a file's type may be read as a declared one: exactly, without loss, or checked row by row.
pub(crate) fn fits(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::List(a), Type::List(b)) => fits(&a.ty, &b.ty),
        (Type::Record(a), Type::Record(b)) => b.iter().all(|field| match find(a, field) {
            Some(at) => fits(&a[at].ty.ty, &field.ty.ty),
            None => field.ty.nullable,
        }),
        (Type::Int(_), Type::Int(_) | Type::Decimal(..)) => true,
        (Type::Int(int), Type::Float64) => int.bits() <= 32,
        (Type::Decimal(_, 0), Type::Int(_)) => true,
        (Type::Decimal(_, from), Type::Decimal(_, to)) => from <= to,
        (Type::Float32, Type::Float64) | (Type::Date, Type::DateTime) | (Type::String, Type::Json) => true,
        // No type for these in a file: they are kept as whole numbers of microseconds.
        (Type::Int(IntType::I64), Type::Duration) => true,
        _ => from == to,
    }
}

fn find(fields: &[Field], wanted: &Field) -> Option<usize> {
    fields.iter().position(|f| f.name == wanted.external_name())
}

/// The schema to ask the reader for: the file's, with texts as views and short decimals as 64-bit numbers, which it can make at
/// once.
pub(crate) fn wished(file: &ArrowSchema) -> ArrowSchema {
    let fields = file.fields().iter().map(|field| {
        let ty = match field.data_type() {
            ArrowType::Utf8 | ArrowType::LargeUtf8 => ArrowType::Utf8View,
            ArrowType::Binary | ArrowType::LargeBinary => ArrowType::BinaryView,
            ArrowType::Decimal128(p, s) if *p <= SHORT_PRECISION => ArrowType::Decimal64(*p, *s),
            ArrowType::Dictionary(_, values) if matches!(**values, ArrowType::Utf8 | ArrowType::LargeUtf8) => {
                ArrowType::Utf8View
            }
            other => other.clone(),
        };
        field.as_ref().clone().with_data_type(ty)
    });
    ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), file.metadata().clone())
}

/// A column of a file as an array of the declared type. Rows that don't fit are pushed to `faults`.
pub(crate) fn column(array: &ArrayRef, field: &Field, position: usize, faults: &mut Faults) -> ArrayRef {
    let nulls_fit = field.ty.nullable || array.null_count() == 0;
    if nulls_fit && *array.data_type() == arrow_type(&field.ty.ty) && in_range(array, &field.ty.ty) {
        return array.clone();
    }
    if nulls_fit && let (ArrowType::Int32, Type::Int(IntType::I64)) = (array.data_type(), &field.ty.ty) {
        let wide: Int64Array = array.as_primitive::<Int32Type>().unary(i64::from);
        return Arc::new(wide);
    }
    let Some(from) = natural(array.data_type()) else {
        // Refused when the file was opened.
        return arrow_array::new_null_array(&arrow_type(&field.ty.ty), array.len());
    };
    // A row that doesn't fit leaves a hole, which goes with it.
    let mut builder = ColumnBuilder::new(&field.ty.with_nullable(true), array.len());
    for row in 0..array.len() {
        let value = value_of(array, row).map_err(|rule| Fault { code: MISFIT, rule, value: None });
        match value.and_then(|value| coerce(value, &from, &field.ty)) {
            Ok(value) => builder.push(&value),
            Err(fault) => {
                faults.push(row, position, Some(field.external_name()), fault);
                builder.push_null();
            }
        }
    }
    builder.finish()
}

/// Whether all values of an array of the declared form are values of the declared type. `false`: look at each.
fn in_range(array: &ArrayRef, ty: &Type) -> bool {
    // Values under a null count too: then each is looked at, which is only slower.
    match ty {
        Type::Float32 => array.as_primitive::<Float32Type>().values().iter().all(|x| x.is_finite()),
        Type::Float64 => array.as_primitive::<Float64Type>().values().iter().all(|x| x.is_finite()),
        Type::Date => {
            let outside = |d: &i32| d.wrapping_sub(*DAYS.start()) as u32 > (DAYS.end() - DAYS.start()) as u32;
            // Without a way out, so that many are compared at once.
            !array.as_primitive::<Date32Type>().values().iter().fold(false, |any, d| any | outside(d))
        }
        Type::DateTime | Type::Timestamp => {
            array.as_primitive::<TimestampMicrosecondType>().values().iter().all(|t| moment_fits(*t))
        }
        Type::Time => array.as_primitive::<Time64MicrosecondType>().values().iter().all(|t| (0..DAY).contains(t)),
        Type::Decimal(p, _) if *p <= SHORT_PRECISION => {
            let limit = 10i64.pow(u32::from(*p));
            within(array.as_primitive::<Decimal64Type>().values(), limit - 1)
        }
        Type::Decimal(p, _) => {
            let limit = 10i128.pow(u32::from(*p));
            array.as_primitive::<Decimal128Type>().values().iter().all(|n| (-limit < *n) & (*n < limit))
        }
        Type::Json | Type::List(_) | Type::Record(_) => false,
        _ => true,
    }
}

/// Whether no number is larger than the limit, or smaller than its negative. Sums have their highest bit set where it is: many at once, with no
/// comparison of 64 bits, which small processors lack.
fn within(numbers: &[i64], limit: i64) -> bool {
    numbers.iter().fold(0, |any, &n| any | limit.wrapping_sub(n) | limit.wrapping_add(n)) >= 0
}

fn moment_fits(micros: i64) -> bool {
    DAYS.contains(&(micros.div_euclid(DAY) as i32)) && micros.unsigned_abs() < 1 << 62
}

/// A value of a file's type as one of the declared type.
pub(super) fn coerce<'a>(value: Value<'a>, from: &Type, to: &DataType) -> Result<Value<'a>, Fault> {
    let fault = |rule: String, value: &Value| {
        let value = (!value.is_null()).then(|| dfc_eval::format_value(value, from));
        Err(Fault { code: MISFIT, rule, value })
    };
    match (value, from, &to.ty) {
        (Value::Null, ..) if to.nullable => Ok(Value::Null),
        (Value::Null, ..) => Err(unexpected_null(&to.ty)),
        (Value::List(items), Type::List(a), Type::List(b)) => {
            items.into_iter().map(|item| coerce(item, &a.ty, b)).collect::<Result<_, _>>().map(Value::List)
        }
        (Value::Record(mut values), Type::Record(a), Type::Record(b)) => b
            .iter()
            .map(|field| match find(a, field) {
                Some(at) => coerce(std::mem::replace(&mut values[at], Value::Null), &a[at].ty.ty, &field.ty),
                None => coerce(Value::Null, &field.ty.ty, &field.ty),
            })
            .collect::<Result<_, _>>()
            .map(Value::Record),
        (Value::Int(n), Type::Int(_), Type::Duration) => Ok(Value::Duration(n as i64)),
        (Value::Float(x), ..) if !x.is_finite() => {
            fault(format!("{x} is no {}: only finite numbers are", to.ty), &Value::Null)
        }
        (value @ Value::Date(d), ..) if !DAYS.contains(&d) => {
            fault("the date lies outside the years 0001 to 9999".into(), &value)
        }
        (Value::DateTime(t) | Value::Timestamp(t), ..) if !moment_fits(t) => {
            fault("the moment lies outside the years 0001 to 9999".into(), &Value::Null)
        }
        (Value::Time(t), ..) if !(0..DAY).contains(&t) => {
            fault("the time of day is not below 24 hours".into(), &Value::Null)
        }
        (value @ Value::Decimal(n), Type::Decimal(p, _), _) if n.unsigned_abs() >= 10u128.pow(u32::from(*p)) => {
            fault(format!("the number has more than the {p} digits that its type has in the file"), &value)
        }
        (value, from, to) if from == to => Ok(value),
        (Value::Str(text), Type::String, Type::Json) => crate::text::value::read(text.as_bytes(), &Type::Json, None),
        (value, from, to) => {
            let text = dfc_eval::format_value(&value, from);
            dfc_eval::cast_value(value, from, to).map_err(|error| Fault {
                code: MISFIT,
                rule: error.message,
                value: Some(text),
            })
        }
    }
}

/// The value at a row of an array of any type that [`natural`] knows.
///
/// # Errors
/// A moment finer than microseconds.
fn value_of<'a>(array: &'a ArrayRef, row: usize) -> Result<Value<'a>, String> {
    macro_rules! at {
        ($arrow:ty) => {
            array.as_primitive::<$arrow>().value(row)
        };
    }
    let finer = |nanos: i64| match nanos % 1000 {
        0 => Ok(nanos / 1000),
        _ => Err(format!("{nanos} nanoseconds are finer than the microseconds that dates and times have")),
    };
    let coarser = |n: i64, factor: i64| n.checked_mul(factor).ok_or_else(|| format!("{n} is far outside the calendar"));
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        ArrowType::Boolean => Value::Bool(array.as_boolean().value(row)),
        ArrowType::Int8 => Value::Int(at!(Int8Type).into()),
        ArrowType::Int16 => Value::Int(at!(Int16Type).into()),
        ArrowType::Int32 => Value::Int(at!(Int32Type).into()),
        ArrowType::Int64 => Value::Int(at!(Int64Type).into()),
        ArrowType::UInt8 => Value::Int(at!(UInt8Type).into()),
        ArrowType::UInt16 => Value::Int(at!(UInt16Type).into()),
        ArrowType::UInt32 => Value::Int(at!(UInt32Type).into()),
        ArrowType::UInt64 => Value::Int(at!(UInt64Type).into()),
        ArrowType::Float32 => Value::Float(at!(Float32Type).into()),
        ArrowType::Float64 => Value::Float(at!(Float64Type)),
        ArrowType::Decimal32(..) => Value::Decimal(at!(Decimal32Type).into()),
        ArrowType::Decimal64(..) => Value::Decimal(at!(Decimal64Type).into()),
        ArrowType::Decimal128(..) => Value::Decimal(at!(Decimal128Type)),
        ArrowType::Utf8 => Value::str(array.as_string::<i32>().value(row)),
        ArrowType::LargeUtf8 => Value::str(array.as_string::<i64>().value(row)),
        ArrowType::Utf8View => Value::str(array.as_string_view().value(row)),
        ArrowType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).into()),
        ArrowType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).into()),
        ArrowType::BinaryView => Value::Bytes(array.as_binary_view().value(row).into()),
        ArrowType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).into()),
        ArrowType::Date32 => Value::Date(at!(Date32Type)),
        ArrowType::Date64 => Value::Date(
            i32::try_from(at!(Date64Type).div_euclid(86_400_000))
                .map_err(|_| "the date is far outside the calendar")?,
        ),
        ArrowType::Time32(TimeUnit::Second) => Value::Time(i64::from(at!(Time32SecondType)) * 1_000_000),
        ArrowType::Time32(_) => Value::Time(i64::from(at!(Time32MillisecondType)) * 1000),
        ArrowType::Time64(TimeUnit::Microsecond) => Value::Time(at!(Time64MicrosecondType)),
        ArrowType::Time64(_) => Value::Time(finer(at!(Time64NanosecondType))?),
        ArrowType::Timestamp(unit, zone) => {
            let micros = match unit {
                TimeUnit::Second => coarser(at!(TimestampSecondType), 1_000_000)?,
                TimeUnit::Millisecond => coarser(at!(TimestampMillisecondType), 1000)?,
                TimeUnit::Microsecond => at!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => finer(at!(TimestampNanosecondType))?,
            };
            if zone.is_some() { Value::Timestamp(micros) } else { Value::DateTime(micros) }
        }
        ArrowType::Duration(unit) => Value::Duration(match unit {
            TimeUnit::Second => coarser(at!(DurationSecondType), 1_000_000)?,
            TimeUnit::Millisecond => coarser(at!(DurationMillisecondType), 1000)?,
            TimeUnit::Microsecond => at!(DurationMicrosecondType),
            TimeUnit::Nanosecond => finer(at!(DurationNanosecondType))?,
        }),
        ArrowType::List(_) => {
            let list = array.as_list::<i32>();
            let (start, end) = (list.value_offsets()[row] as usize, list.value_offsets()[row + 1] as usize);
            Value::List((start..end).map(|i| value_of(list.values(), i)).collect::<Result<_, _>>()?)
        }
        ArrowType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (start, end) = (list.value_offsets()[row] as usize, list.value_offsets()[row + 1] as usize);
            Value::List((start..end).map(|i| value_of(list.values(), i)).collect::<Result<_, _>>()?)
        }
        ArrowType::Struct(_) => {
            Value::Record(array.as_struct().columns().iter().map(|c| value_of(c, row)).collect::<Result<_, _>>()?)
        }
        ArrowType::Dictionary(key, _) => match **key {
            ArrowType::Int8 => dictionary::<Int8Type>(array, row)?,
            ArrowType::Int16 => dictionary::<Int16Type>(array, row)?,
            ArrowType::Int64 => dictionary::<Int64Type>(array, row)?,
            ArrowType::UInt8 => dictionary::<UInt8Type>(array, row)?,
            ArrowType::UInt16 => dictionary::<UInt16Type>(array, row)?,
            ArrowType::UInt32 => dictionary::<UInt32Type>(array, row)?,
            ArrowType::UInt64 => dictionary::<UInt64Type>(array, row)?,
            _ => dictionary::<Int32Type>(array, row)?,
        },
        other => return Err(format!("values of the type {other} can't be read")),
    })
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &ArrayRef, row: usize) -> Result<Value<'_>, String> {
    let dictionary = array.as_dictionary::<K>();
    dictionary.key(row).map_or(Ok(Value::Null), |key| value_of(dictionary.values(), key))
}
