//! The fields of one column to an Arrow array: a typed loop a column, without allocation a field; texts are views into the
//! chunk. What the loop's fast form can't read goes to the one full reading, which also says what is wrong.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, ScalarBuffer};
use dfc_batch::{ColumnBuilder, arrow_type};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Type, Value};

use super::cells::{Cell, Cells, Form};
use crate::rows::{Fault, Faults, shown};
use crate::text::pattern::Patterns;
use crate::text::value::{DAMAGED, bad_encoding, read, unexpected_null};
use crate::text::{number, time};

/// What the parsing of a column needs to know.
pub(crate) struct ColumnContext<'a> {
    /// The chunk's text.
    pub text: &'a Buffer,
    /// The whole chunk is UTF-8.
    pub utf8: bool,
    /// The text that stands for null.
    pub nulls: &'a [u8],
    /// Forms of dates and times.
    pub patterns: &'a Patterns,
    /// The field.
    pub field: &'a Field,
    /// Its position in the batch.
    pub position: usize,
}

/// Parses a column. Rows that don't fit are pushed to `faults`; what stands in the array there has no meaning.
pub(crate) fn parse(cells: &Cells, cx: &ColumnContext, faults: &mut Faults) -> ArrayRef {
    macro_rules! ints {
        ($arrow:ty) => {
            fixed::<$arrow>(cells, cx, faults, |data, start, end| number::int64_in(data, start, end)?.try_into().ok())
        };
    }
    macro_rules! text_of {
        ($arrow:ty, $read:path) => {
            fixed::<$arrow>(cells, cx, faults, |data, start, end| $read(&data[start..end]))
        };
    }
    if cx.patterns.of(&cx.field.ty.ty).is_some() {
        return by_value(cells, cx, faults);
    }
    match &cx.field.ty.ty {
        Type::String => text(cells, cx, faults, |_| true),
        Type::Json => text(cells, cx, faults, |t| dfc_eval::parse_value(t, &Type::Json).is_ok()),
        Type::Int(IntType::I8) => ints!(Int8Type),
        Type::Int(IntType::I16) => ints!(Int16Type),
        Type::Int(IntType::I32) => ints!(Int32Type),
        Type::Int(IntType::I64) => ints!(Int64Type),
        Type::Int(IntType::U8) => ints!(UInt8Type),
        Type::Int(IntType::U16) => ints!(UInt16Type),
        Type::Int(IntType::U32) => ints!(UInt32Type),
        Type::Int(IntType::U64) => ints!(UInt64Type),
        Type::Float32 => text_of!(Float32Type, number::float32),
        Type::Float64 => text_of!(Float64Type, number::float64),
        Type::Decimal(p, s) if *p <= dfc_ir::types::SHORT_PRECISION => {
            let decimals = number::ShortDecimals::new(*s, 10i64.pow(u32::from(*p)));
            fixed::<Decimal64Type>(cells, cx, faults, |data, start, end| decimals.read(data, start, end))
        }
        Type::Decimal(p, s) => {
            let (scale, limit) = (*s, 10i128.pow(u32::from(*p)));
            fixed::<Decimal128Type>(cells, cx, faults, |data, start, end| {
                number::wide_decimal(&data[start..end], scale, limit)
            })
        }
        Type::Date => text_of!(Date32Type, time::date),
        Type::Time => text_of!(Time64MicrosecondType, time::time),
        Type::DateTime => text_of!(TimestampMicrosecondType, time::datetime),
        Type::Timestamp => text_of!(TimestampMicrosecondType, time::timestamp),
        _ => by_value(cells, cx, faults),
    }
}

/// A native value out of a [`Value`] of the column's type.
trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($native:ty),*) => { $(
        impl FromValue for $native {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Int(n) | Value::Decimal(n) => <$native>::try_from(*n).ok(),
                    Value::Date(n) => <$native>::try_from(*n).ok(),
                    Value::Time(n) | Value::DateTime(n) | Value::Timestamp(n) => <$native>::try_from(*n).ok(),
                    _ => None,
                }
            }
        }
    )* };
}
from_value!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

impl FromValue for f32 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Float(x) = value { Some(*x as f32) } else { None }
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Float(x) = value { Some(*x) } else { None }
    }
}

/// `fast` reads what stands between two places of the text in its common forms; of an empty field it says nothing.
fn fixed<T: ArrowPrimitiveType>(
    cells: &Cells,
    cx: &ColumnContext,
    faults: &mut Faults,
    fast: impl Fn(&[u8], usize, usize) -> Option<T::Native>,
) -> ArrayRef
where
    T::Native: FromValue,
{
    let mut values: Vec<T::Native> = Vec::with_capacity(cells.len());
    let mut valid = Validity::new(&cx.field.ty, cells.len());
    let (data, nulls) = (cells.data(), (!cx.nulls.is_empty()).then_some(cx.nulls));
    cells.read_all(&mut values, |row, start, end| {
        let is_read = start <= end && nulls.is_none_or(|nulls| data[start..end] != *nulls);
        let value = match is_read.then(|| fast(data, start, end)).flatten() {
            Some(value) => Some(value),
            None => seldom::<T>(cells, cx, row, faults),
        };
        valid.push(value.is_some());
        value.unwrap_or_default()
    });
    let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), valid.finish());
    Arc::new(array.with_data_type(arrow_type(&cx.field.ty.ty)))
}

/// What the fast form didn't read.
#[cold]
fn seldom<T: ArrowPrimitiveType>(
    cells: &Cells,
    cx: &ColumnContext,
    row: usize,
    faults: &mut Faults,
) -> Option<T::Native>
where
    T::Native: FromValue,
{
    match slow(cells, cx, row) {
        Ok(value) => value.and_then(|value| T::Native::from_value(&value)),
        Err(fault) => {
            faults.push(cells.number(row), cx.position, Some(cx.field.external_name()), fault);
            None
        }
    }
}

/// The value of a field by the full reading; `None`: null.
fn slow(cells: &Cells, cx: &ColumnContext, row: usize) -> Result<Option<Value<'static>>, Fault> {
    let ty = &cx.field.ty;
    match cells.cell(row) {
        Cell::Missing if ty.nullable => Ok(None),
        Cell::Missing => Err(unexpected_null(&ty.ty)),
        Cell::Plain(text) if text == cx.nulls => {
            if ty.nullable {
                Ok(None)
            } else {
                Err(unexpected_null(&ty.ty))
            }
        }
        Cell::Plain(text) => read(text, &ty.ty, Some(cx.patterns)).map(Some),
        Cell::Quoted(text) => read(&text, &ty.ty, Some(cx.patterns)).map(Some),
        Cell::Damaged(text) => Err(damaged(text)),
    }
}

fn damaged(text: &[u8]) -> Fault {
    Fault {
        code: DAMAGED,
        rule: "text follows the closing quote of the field; a quote inside a quoted field must be doubled (or follow the `escape` character)"
            .into(),
        value: Some(shown(text)),
    }
}

/// Null bits of a column, none where the type has no null.
enum Validity {
    Never,
    Some(NullBufferBuilder),
}

impl Validity {
    fn new(ty: &DataType, rows: usize) -> Self {
        if ty.nullable { Validity::Some(NullBufferBuilder::new(rows)) } else { Validity::Never }
    }

    #[inline]
    fn push(&mut self, valid: bool) {
        if let Validity::Some(bits) = self {
            bits.append(valid);
        }
    }

    fn finish(self) -> Option<NullBuffer> {
        match self {
            Validity::Never => None,
            Validity::Some(mut bits) => bits.finish(),
        }
    }
}

/// Texts: views into the chunk, or into a buffer beside it where escapes had to be taken out.
fn text(cells: &Cells, cx: &ColumnContext, faults: &mut Faults, accepts: impl Fn(&str) -> bool) -> ArrayRef {
    let ty = &cx.field.ty;
    let is_json = ty.ty == Type::Json;
    let data = cx.text.as_slice();
    let mut views: Vec<u128> = Vec::with_capacity(cells.len());
    let mut valid = Validity::new(ty, cells.len());
    let mut beside: Vec<u8> = Vec::new();
    let (mut in_chunk, simple) = (false, cx.utf8 && !is_json);
    cells.read_all(&mut views, |row, start, end| {
        if simple && start <= end {
            let bounds = match cells.form(start, end) {
                Form::Plain if ty.nullable && &data[start..end] == cx.nulls => {
                    valid.push(false);
                    return 0;
                }
                Form::Plain => Some((start, end)),
                Form::Enclosed => Some((start + 1, end - 1)),
                Form::Dressed => None,
            };
            if let Some((start, end)) = bounds {
                in_chunk |= end - start > 12;
                valid.push(true);
                return view_into(data, start, end, 0);
            }
        }
        let view = match any_text(cells, cx, row, &accepts) {
            Ok(None) => None,
            Ok(Some(Cow::Borrowed(text))) => {
                // Borrowed from the chunk: its place there is the distance of the addresses.
                let start = text.as_ptr() as usize - data.as_ptr() as usize;
                in_chunk |= text.len() > 12;
                Some(view_into(data, start, start + text.len(), 0))
            }
            Ok(Some(Cow::Owned(text))) => {
                let start = beside.len();
                beside.extend_from_slice(&text);
                Some(view_into(&beside, start, start + text.len(), 1))
            }
            Err(fault) => {
                faults.push(cells.number(row), cx.position, Some(cx.field.external_name()), fault);
                None
            }
        };
        valid.push(view.is_some());
        view.unwrap_or(0)
    });
    // A column of short texts doesn't keep the chunk.
    let chunk = if in_chunk { cx.text.clone() } else { Buffer::from_vec(Vec::<u8>::new()) };
    let buffers: Arc<[Buffer]> = match (in_chunk, beside.is_empty()) {
        (false, true) => Arc::new([]),
        (_, true) => Arc::new([chunk]),
        (_, false) => Arc::new([chunk, Buffer::from_vec(beside)]),
    };
    // SAFETY: every view was made by `view_into` from bounds within the buffer that it names. Its text is UTF-8: it was checked
    // alone, or the whole chunk was checked and the text's bounds are those of the chunk, of delimiters (whole UTF-8 texts) and
    // of single ASCII bytes, so it starts and ends between characters.
    Arc::new(unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(views), buffers, valid.finish()) })
}

/// A text of any form; `None`: null.
fn any_text<'a>(
    cells: &Cells<'a>,
    cx: &ColumnContext,
    row: usize,
    accepts: &impl Fn(&str) -> bool,
) -> Result<Option<Cow<'a, [u8]>>, Fault> {
    let ty = &cx.field.ty;
    let text = match cells.cell(row) {
        Cell::Missing if ty.nullable => return Ok(None),
        Cell::Missing => return Err(unexpected_null(&ty.ty)),
        Cell::Plain(text) if text == cx.nulls && ty.nullable => return Ok(None),
        Cell::Plain(text) if text == cx.nulls && ty.ty == Type::Json => return Err(unexpected_null(&ty.ty)),
        Cell::Plain(text) => Cow::Borrowed(text),
        Cell::Quoted(text) => text,
        Cell::Damaged(text) => return Err(damaged(text)),
    };
    match std::str::from_utf8(&text) {
        Err(_) => Err(bad_encoding(&text)),
        Ok(t) if !accepts(t) => Err(read(&text, &ty.ty, None).err().unwrap_or_else(|| bad_encoding(&text))),
        Ok(_) => Ok(Some(text)),
    }
}

/// The view of a text: up to 12 bytes in the view itself, longer ones by prefix, buffer and offset.
#[inline(always)]
fn view_into(data: &[u8], start: usize, end: usize, buffer: u32) -> u128 {
    let len = end - start;
    if len <= 12 {
        let inline = match data.get(start..start + 16) {
            Some(window) => {
                // 16 bytes at once, then only those of the text.
                let bytes = u128::from_le_bytes(window.try_into().unwrap_or_default());
                bytes & ((1u128 << (8 * len)) - 1)
            }
            None => {
                let mut bytes = [0; 16];
                bytes[..len].copy_from_slice(&data[start..end]);
                u128::from_le_bytes(bytes)
            }
        };
        return (inline << 32) | len as u128;
    }
    let prefix = u32::from_le_bytes([data[start], data[start + 1], data[start + 2], data[start + 3]]);
    len as u128 | u128::from(prefix) << 32 | u128::from(buffer) << 64 | (start as u128) << 96
}

/// Any type, value by value.
fn by_value(cells: &Cells, cx: &ColumnContext, faults: &mut Faults) -> ArrayRef {
    // Rejected rows may leave a hole in a column that is never null: it is built as if it could be, and the hole goes with the row.
    let mut builder = ColumnBuilder::new(&cx.field.ty.with_nullable(true), cells.len());
    for row in 0..cells.len() {
        match slow(cells, cx, row) {
            Ok(Some(value)) => builder.push(&value),
            Ok(None) => builder.push_null(),
            Err(fault) => {
                faults.push(cells.number(row), cx.position, Some(cx.field.external_name()), fault);
                builder.push_null();
            }
        }
    }
    builder.finish()
}
