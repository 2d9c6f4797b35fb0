//! Arrays from single values.
//!
//! The slow, general road, for whatever has no typed loop of its own. It may not know where values come from.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, ListArray, NullArray, PrimitiveArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use dfc_ir::types::{IntType, SHORT_PRECISION};
use dfc_ir::{DataType, Field, Type, Value};

use crate::arrays::{arrow_fields, arrow_type, item_field};

/// Builds the array of a column, value by value.
///
/// The caller keeps the column's contract: values of the declared type, in its range, and no null in a column that is
/// never null. A break of it is a defect of the caller and panics.
pub struct ColumnBuilder {
    ty: DataType,
    data: Data,
    valid: NullBufferBuilder,
}

/// The values so far, one for each row; an arbitrary one stands where a row is null.
enum Data {
    Null,
    Bool(BooleanBufferBuilder),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I128(Vec<i128>),
    Str(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    List { ends: Vec<i32>, items: Box<ColumnBuilder> },
    Record(Vec<ColumnBuilder>),
}

impl Data {
    fn new(ty: &Type, capacity: usize) -> Data {
        match ty {
            Type::Null => Data::Null,
            Type::Bool => Data::Bool(BooleanBufferBuilder::new(capacity)),
            Type::Int(IntType::I8) => Data::I8(Vec::with_capacity(capacity)),
            Type::Int(IntType::I16) => Data::I16(Vec::with_capacity(capacity)),
            Type::Int(IntType::I32) | Type::Date => Data::I32(Vec::with_capacity(capacity)),
            Type::Int(IntType::U8) => Data::U8(Vec::with_capacity(capacity)),
            Type::Int(IntType::U16) => Data::U16(Vec::with_capacity(capacity)),
            Type::Int(IntType::U32) => Data::U32(Vec::with_capacity(capacity)),
            Type::Int(IntType::U64) => Data::U64(Vec::with_capacity(capacity)),
            Type::Int(IntType::I64) | Type::Time | Type::DateTime | Type::Timestamp | Type::Duration => {
                Data::I64(Vec::with_capacity(capacity))
            }
            Type::Decimal(p, _) if *p <= SHORT_PRECISION => Data::I64(Vec::with_capacity(capacity)),
            Type::Decimal(..) => Data::I128(Vec::with_capacity(capacity)),
            Type::Float32 => Data::F32(Vec::with_capacity(capacity)),
            Type::Float64 => Data::F64(Vec::with_capacity(capacity)),
            Type::String | Type::Json | Type::Secret => Data::Str(StringViewBuilder::with_capacity(capacity)),
            Type::Bytes => Data::Bytes(BinaryViewBuilder::with_capacity(capacity)),
            Type::List(item) => {
                let mut ends = Vec::with_capacity(capacity + 1);
                ends.push(0);
                Data::List { ends, items: Box::new(ColumnBuilder::new(item, capacity)) }
            }
            Type::Record(fields) => {
                Data::Record(fields.iter().map(|field| ColumnBuilder::new(&field.ty, capacity)).collect())
            }
        }
    }
}

/// A number that its column's type must hold.
fn narrow<T: TryFrom<i128>>(number: i128, ty: &DataType) -> T {
    T::try_from(number).unwrap_or_else(|_| panic!("{number} pushed to a column of type {ty}"))
}

impl ColumnBuilder {
    /// A builder for a column of type `ty`, with room for `capacity` rows.
    pub fn new(ty: &DataType, capacity: usize) -> Self {
        ColumnBuilder { ty: ty.clone(), data: Data::new(&ty.ty, capacity), valid: NullBufferBuilder::new(capacity) }
    }

    /// Number of rows so far.
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    /// Whether there is no row yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value, or a null.
    ///
    /// Panics if the value isn't one of the column's type: see [`ColumnBuilder`].
    pub fn push(&mut self, value: &Value) {
        let ty = &self.ty;
        match (&mut self.data, value) {
            (_, Value::Null) => return self.push_null(),
            (Data::Bool(to), Value::Bool(v)) => to.append(*v),
            (Data::I8(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::I16(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::I32(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::I32(to), Value::Date(v)) => to.push(*v),
            (Data::I64(to), Value::Int(v) | Value::Decimal(v)) => to.push(narrow(*v, ty)),
            (Data::I64(to), Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v)) => {
                to.push(*v)
            }
            (Data::U8(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::U16(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::U32(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::U64(to), Value::Int(v)) => to.push(narrow(*v, ty)),
            (Data::F32(to), Value::Float(v)) => to.push(*v as f32),
            (Data::F64(to), Value::Float(v)) => to.push(*v),
            (Data::I128(to), Value::Decimal(v)) => to.push(*v),
            (Data::Str(to), Value::Str(v)) => to.append_value(v),
            (Data::Bytes(to), Value::Bytes(v)) => to.append_value(v),
            (Data::List { ends, items }, Value::List(values)) => {
                values.iter().for_each(|item| items.push(item));
                ends.push(narrow(items.len() as i128, ty));
            }
            (Data::Record(columns), Value::Record(values)) => {
                assert_eq!(columns.len(), values.len(), "a record of type {ty}");
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
            (_, other) => panic!("{other:?} pushed to a column of type {ty}"),
        }
        self.valid.append_non_null();
    }

    /// Appends a null.
    ///
    /// Panics if the column is never null.
    pub fn push_null(&mut self) {
        assert!(self.ty.nullable || self.ty.ty == Type::Null, "a null pushed to a column of type {}", self.ty);
        self.fill();
        self.valid.append_null();
    }

    /// Appends a row that nobody sees: under a null record.
    fn push_hidden(&mut self) {
        self.fill();
        if self.ty.nullable {
            self.valid.append_null();
        } else {
            self.valid.append_non_null();
        }
    }

    /// Appends an arbitrary value to the data.
    fn fill(&mut self) {
        match &mut self.data {
            Data::Null => {}
            Data::Bool(to) => to.append(false),
            Data::I8(to) => to.push(0),
            Data::I16(to) => to.push(0),
            Data::I32(to) => to.push(0),
            Data::I64(to) => to.push(0),
            Data::U8(to) => to.push(0),
            Data::U16(to) => to.push(0),
            Data::U32(to) => to.push(0),
            Data::U64(to) => to.push(0),
            Data::F32(to) => to.push(0.0),
            Data::F64(to) => to.push(0.0),
            Data::I128(to) => to.push(0),
            Data::Str(to) => to.append_value(""),
            Data::Bytes(to) => to.append_value(b""),
            Data::List { ends, items } => ends.push(narrow(items.len() as i128, &self.ty)),
            Data::Record(columns) => columns.iter_mut().for_each(ColumnBuilder::push_hidden),
        }
    }

    /// The array.
    pub fn finish(mut self) -> ArrayRef {
        let rows = self.len();
        let valid = self.valid.finish();
        fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, valid: Option<NullBuffer>, ty: &Type) -> ArrayRef {
            Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), valid).with_data_type(arrow_type(ty)))
        }
        let ty = &self.ty.ty;
        match self.data {
            Data::Null => Arc::new(NullArray::new(rows)),
            Data::Bool(mut bits) => Arc::new(BooleanArray::new(bits.finish(), valid)),
            Data::I8(values) => primitive::<Int8Type>(values, valid, ty),
            Data::I16(values) => primitive::<Int16Type>(values, valid, ty),
            Data::I32(values) if *ty == Type::Date => primitive::<Date32Type>(values, valid, ty),
            Data::I32(values) => primitive::<Int32Type>(values, valid, ty),
            Data::I64(values) => match ty {
                Type::Decimal(..) => primitive::<Decimal64Type>(values, valid, ty),
                Type::Time => primitive::<Time64MicrosecondType>(values, valid, ty),
                Type::DateTime | Type::Timestamp => primitive::<TimestampMicrosecondType>(values, valid, ty),
                Type::Duration => primitive::<DurationMicrosecondType>(values, valid, ty),
                _ => primitive::<Int64Type>(values, valid, ty),
            },
            Data::U8(values) => primitive::<UInt8Type>(values, valid, ty),
            Data::U16(values) => primitive::<UInt16Type>(values, valid, ty),
            Data::U32(values) => primitive::<UInt32Type>(values, valid, ty),
            Data::U64(values) => primitive::<UInt64Type>(values, valid, ty),
            Data::F32(values) => primitive::<Float32Type>(values, valid, ty),
            Data::F64(values) => primitive::<Float64Type>(values, valid, ty),
            Data::I128(values) => primitive::<Decimal128Type>(values, valid, ty),
            Data::Str(mut texts) => masked(texts.finish(), valid, |a, valid| {
                let (views, buffers, _) = a.into_parts();
                Arc::new(arrow_array::StringViewArray::new(views, buffers, valid))
            }),
            Data::Bytes(mut bytes) => masked(bytes.finish(), valid, |a, valid| {
                let (views, buffers, _) = a.into_parts();
                Arc::new(arrow_array::BinaryViewArray::new(views, buffers, valid))
            }),
            Data::List { ends, items } => {
                let field = item_field(&items.ty);
                Arc::new(ListArray::new(field, OffsetBuffer::new(ScalarBuffer::from(ends)), items.finish(), valid))
            }
            Data::Record(columns) => {
                let fields: Vec<Field> = match ty {
                    Type::Record(fields) => fields.clone(),
                    _ => Vec::new(),
                };
                let arrays: Vec<ArrayRef> = columns.into_iter().map(ColumnBuilder::finish).collect();
                Arc::new(match arrays.is_empty() {
                    true => StructArray::new_empty_fields(rows, valid),
                    false => StructArray::new(arrow_fields(&fields), arrays, valid),
                })
            }
        }
    }
}

/// Puts a mask on an array of views that was built without one.
fn masked<A: Array + 'static>(
    array: A,
    valid: Option<NullBuffer>,
    put: impl FnOnce(A, Option<NullBuffer>) -> ArrayRef,
) -> ArrayRef {
    match valid {
        None => Arc::new(array),
        some => put(array, some),
    }
}
