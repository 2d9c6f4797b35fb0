//! Which Arrow type a declared type has, and single values in and out of arrays.
//!
//! The slow, general road: connectors and compiled code have their own typed loops. It may not know where values come from.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit};
use dfc_ir::types::{IntType, SHORT_PRECISION};
use dfc_ir::{DataType, Field, Schema, Type, Value};

/// The Arrow type of arrays that hold values of `ty`.
///
/// | declared | Arrow |
/// |---|---|
/// | `int8 … uint64`, `float32`, `float64`, `bool` | the same |
/// | `decimal(p, s)` | `Decimal64(p, s)` for p ≤ 18, else `Decimal128(p, s)` |
/// | `string`, `json`, `secret` | `Utf8View` |
/// | `bytes` | `BinaryView` |
/// | `date` | `Date32` |
/// | `time` | `Time64(Microsecond)` |
/// | `datetime` | `Timestamp(Microsecond, None)` |
/// | `timestamp` | `Timestamp(Microsecond, "UTC")` |
/// | `duration` | `Duration(Microsecond)` |
/// | `list<T>` | `List` of a field `item`, nullable as declared |
/// | `record` | `Struct` of the fields' outside names, nullable as declared |
/// | the literal `null`'s | `Null` |
pub fn arrow_type(ty: &Type) -> ArrowType {
    match ty {
        Type::Bool => ArrowType::Boolean,
        Type::Int(IntType::I8) => ArrowType::Int8,
        Type::Int(IntType::I16) => ArrowType::Int16,
        Type::Int(IntType::I32) => ArrowType::Int32,
        Type::Int(IntType::I64) => ArrowType::Int64,
        Type::Int(IntType::U8) => ArrowType::UInt8,
        Type::Int(IntType::U16) => ArrowType::UInt16,
        Type::Int(IntType::U32) => ArrowType::UInt32,
        Type::Int(IntType::U64) => ArrowType::UInt64,
        Type::Float32 => ArrowType::Float32,
        Type::Float64 => ArrowType::Float64,
        Type::Decimal(p, s) if *p <= SHORT_PRECISION => ArrowType::Decimal64(*p, *s as i8),
        Type::Decimal(p, s) => ArrowType::Decimal128(*p, *s as i8),
        Type::String | Type::Json | Type::Secret => ArrowType::Utf8View,
        Type::Bytes => ArrowType::BinaryView,
        Type::Date => ArrowType::Date32,
        Type::Time => ArrowType::Time64(TimeUnit::Microsecond),
        Type::DateTime => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        Type::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Duration => ArrowType::Duration(TimeUnit::Microsecond),
        Type::List(item) => ArrowType::List(item_field(item)),
        Type::Record(fields) => ArrowType::Struct(arrow_fields(fields)),
        Type::Null => ArrowType::Null,
    }
}

/// The Arrow schema of batches with these fields: outside names, nullability as declared.
pub fn arrow_schema(schema: &Schema) -> SchemaRef {
    Arc::new(ArrowSchema::new(arrow_fields(&schema.fields)))
}

/// The field of a list's items.
pub(crate) fn item_field(item: &DataType) -> Arc<ArrowField> {
    Arc::new(ArrowField::new("item", arrow_type(&item.ty), item.nullable))
}

/// The fields of a record.
pub fn arrow_fields(fields: &[Field]) -> Fields {
    fields.iter().map(|f| ArrowField::new(f.external_name(), arrow_type(&f.ty.ty), f.ty.nullable)).collect()
}

/// The value at `row`, null or not. Text and bytes are borrowed from the array, nested ones too.
///
/// Panics if the array hasn't the type that [`arrow_type`] gives for `ty`, or is shorter than `row`.
pub fn value_at<'a>(array: &'a dyn Array, ty: &Type, row: usize) -> Value<'a> {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! primitive {
        ($arrow:ty) => {
            array.as_primitive::<$arrow>().value(row)
        };
    }
    match ty {
        Type::Bool => Value::Bool(array.as_boolean().value(row)),
        Type::Int(IntType::I8) => Value::Int(primitive!(Int8Type).into()),
        Type::Int(IntType::I16) => Value::Int(primitive!(Int16Type).into()),
        Type::Int(IntType::I32) => Value::Int(primitive!(Int32Type).into()),
        Type::Int(IntType::I64) => Value::Int(primitive!(Int64Type).into()),
        Type::Int(IntType::U8) => Value::Int(primitive!(UInt8Type).into()),
        Type::Int(IntType::U16) => Value::Int(primitive!(UInt16Type).into()),
        Type::Int(IntType::U32) => Value::Int(primitive!(UInt32Type).into()),
        Type::Int(IntType::U64) => Value::Int(primitive!(UInt64Type).into()),
        Type::Float32 => Value::Float(primitive!(Float32Type).into()),
        Type::Float64 => Value::Float(primitive!(Float64Type)),
        Type::Decimal(p, _) if *p <= SHORT_PRECISION => Value::Decimal(primitive!(Decimal64Type).into()),
        Type::Decimal(..) => Value::Decimal(primitive!(Decimal128Type)),
        Type::String | Type::Json | Type::Secret => Value::str(array.as_string_view().value(row)),
        Type::Bytes => Value::Bytes(array.as_binary_view().value(row).into()),
        Type::Date => Value::Date(primitive!(Date32Type)),
        Type::Time => Value::Time(primitive!(Time64MicrosecondType)),
        Type::DateTime => Value::DateTime(primitive!(TimestampMicrosecondType)),
        Type::Timestamp => Value::Timestamp(primitive!(TimestampMicrosecondType)),
        Type::Duration => Value::Duration(primitive!(DurationMicrosecondType)),
        Type::List(item) => {
            let list = array.as_list::<i32>();
            let (start, end) = (list.value_offsets()[row], list.value_offsets()[row + 1]);
            let values: &'a ArrayRef = list.values();
            Value::List((start..end).map(|i| value_at(values.as_ref(), &item.ty, i as usize)).collect())
        }
        Type::Record(fields) => {
            let columns = array.as_struct().columns();
            Value::Record(
                fields
                    .iter()
                    .zip(columns)
                    .map(|(field, column)| value_at(column.as_ref(), &field.ty.ty, row))
                    .collect(),
            )
        }
        Type::Null => Value::Null,
    }
}
