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
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, ScalarBuffer};
use dfc_batch::{ColumnBuilder, arrow_type};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Type, Value};

use super::blocks::{self, BLOCK, Bounds, Numbers};
use super::cells::{Cell, Cells, Form};
use super::decimals::Decimals;
use super::pattern::Patterns;
use super::value::{DAMAGED, bad_encoding, read, unexpected_null};
use super::{number, time};
use crate::rows::{Fault, Faults, shown};

/// What the parsing of a column needs to know.
pub(crate) struct ColumnContext<'a> {
    /// The chunk's text.
    pub text: &'a Buffer,
    /// The whole chunk is UTF-8.
    pub utf8: bool,
    /// The text that stands for null, if one does.
    pub nulls: Option<&'a [u8]>,
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
            fixed::<$arrow>(cells, cx, faults, &Ints(Numbers::whole()))
        };
    }
    macro_rules! text_of {
        ($arrow:ty, $read:path) => {
            fixed::<$arrow>(cells, cx, faults, &Single($read))
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
            let (scale, limit) = (*s, 10i64.pow(u32::from(*p)));
            let one = move |text: &[u8]| number::short_decimal(text, scale, limit);
            fixed::<Decimal64Type>(cells, cx, faults, &Decimals::new(*p, *s, one))
        }
        Type::Decimal(p, s) => {
            let (scale, limit) = (*s, 10i128.pow(u32::from(*p)));
            let one = move |text: &[u8]| number::wide_decimal(text, scale, limit);
            fixed::<Decimal128Type>(cells, cx, faults, &Decimals::new(*p, *s, one))
        }
        Type::Date => fixed::<Date32Type>(cells, cx, faults, &Dates),
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

/// How values in their common forms are read.
pub(super) trait Fast<T> {
    /// One value; `None` says nothing.
    fn one(&self, text: &[u8]) -> Option<T>;

    /// The values of fields of the data, which are there; bit k of what it gives: field k was not read.
    fn block(&self, data: &[u8], bounds: &Bounds, out: &mut [T; BLOCK]) -> u64;
}

/// One after the other.
struct Single<F>(F);

impl<T, F: Fn(&[u8]) -> Option<T>> Fast<T> for Single<F> {
    #[inline(always)]
    fn one(&self, text: &[u8]) -> Option<T> {
        self.0(text)
    }

    #[inline(always)]
    fn block(&self, data: &[u8], bounds: &Bounds, out: &mut [T; BLOCK]) -> u64 {
        let mut unread = 0;
        for (k, (&start, &end)) in bounds.starts.iter().zip(&bounds.ends).enumerate() {
            match data.get(start as usize..end as usize).and_then(&self.0) {
                Some(value) => out[k] = value,
                None => unread |= 1 << k,
            }
        }
        unread
    }
}

/// Whole numbers.
struct Ints(Numbers);

impl<T: TryFrom<i64> + Default> Fast<T> for Ints {
    fn one(&self, text: &[u8]) -> Option<T> {
        number::int64(text)?.try_into().ok()
    }

    #[inline(always)]
    fn block(&self, data: &[u8], bounds: &Bounds, out: &mut [T; BLOCK]) -> u64 {
        let mut numbers = [0; BLOCK];
        let mut unread = self.0.read(data, bounds, &mut numbers);
        for (k, (value, number)) in out.iter_mut().zip(numbers).enumerate() {
            let fits = T::try_from(number);
            unread |= u64::from(fits.is_err()) << k;
            *value = fits.unwrap_or_default();
        }
        unread
    }
}

/// Dates.
struct Dates;

impl Fast<i32> for Dates {
    fn one(&self, text: &[u8]) -> Option<i32> {
        time::date(text)
    }

    #[inline(always)]
    fn block(&self, data: &[u8], bounds: &Bounds, out: &mut [i32; BLOCK]) -> u64 {
        blocks::dates(data, bounds, out)
    }
}

/// `fast` reads values in their common forms.
fn fixed<T: ArrowPrimitiveType>(
    cells: &Cells,
    cx: &ColumnContext,
    faults: &mut Faults,
    fast: &impl Fast<T::Native>,
) -> ArrayRef
where
    T::Native: FromValue,
{
    let mut values: Vec<T::Native> = Vec::with_capacity(cells.len());
    let mut valid = Validity::new(&cx.field.ty, cells.len());
    let (data, nulls) = (cells.data(), cx.nulls.filter(|nulls| !nulls.is_empty()));
    let (nullable, empty_is_null) = (cx.field.ty.nullable, cx.nulls == Some(b""));
    let mut block = [T::Native::default(); BLOCK];
    cells.blocks(|first, count, bounds| {
        let all = !0 >> (BLOCK - count);
        let mut unread = fast.block(data, bounds, &mut block) & all;
        let text = |k: usize| data.get(bounds.starts[k] as usize..bounds.ends[k] as usize);
        if let Some(nulls) = nulls {
            unread |= (0..count).fold(0, |are, k| are | u64::from(text(k) == Some(nulls)) << k);
        }
        let mut null = 0;
        let mut rest = unread;
        while rest != 0 {
            let k = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            // What isn't there, or is empty.
            if nullable && text(k).is_none_or(|text| empty_is_null && text.is_empty()) {
                null |= 1 << k;
                block[k] = T::Native::default();
                continue;
            }
            let one = text(k).filter(|text| !text.is_empty() && nulls != Some(text)).and_then(|text| fast.one(text));
            let value = one.or_else(|| seldom::<T>(cells, cx, first + k, faults));
            null |= u64::from(value.is_none()) << k;
            block[k] = value.unwrap_or_default();
        }
        valid.push_block(count, null);
        values.extend_from_slice(&block[..count]);
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
        Cell::Plain(text) if Some(text) == cx.nulls => {
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
    Some(BooleanBufferBuilder),
}

impl Validity {
    fn new(ty: &DataType, rows: usize) -> Self {
        if ty.nullable { Validity::Some(BooleanBufferBuilder::new(rows)) } else { Validity::Never }
    }

    /// So many, of which those are null whose bits are set.
    #[inline]
    fn push_block(&mut self, count: usize, null: u64) {
        if let Validity::Some(bits) = self {
            bits.append_packed_range(0..count, &(!null).to_le_bytes());
        }
    }

    fn finish(self) -> Option<NullBuffer> {
        match self {
            Validity::Never => None,
            Validity::Some(mut bits) => Some(NullBuffer::new(bits.finish())).filter(|nulls| nulls.null_count() > 0),
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
    let (empty_is_null, has_words) = (cx.nulls == Some(b""), cx.nulls.is_some_and(|nulls| !nulls.is_empty()));
    let mut block = [0; BLOCK];
    cells.blocks(|first, count, bounds| {
        let mut undone = !0 >> (BLOCK - count);
        let mut null = 0;
        if simple && (!ty.nullable || !has_words) && !cells.dialect.trim {
            let quote = if cells.dressed { cells.dialect.quote } else { None };
            let (not_plain, empty, longest) = plain_views(data, bounds, quote, &mut block);
            null = if ty.nullable && empty_is_null { empty & undone } else { 0 };
            undone &= not_plain & !null;
            in_chunk |= longest > INLINE;
        }
        while undone != 0 {
            let k = undone.trailing_zeros() as usize;
            undone &= undone - 1;
            let (start, end) = (bounds.starts[k] as usize, bounds.ends[k] as usize);
            if simple && start <= end {
                let inner = match cells.form(start, end) {
                    Form::Plain if ty.nullable && Some(&data[start..end]) == cx.nulls => {
                        null |= 1 << k;
                        block[k] = 0;
                        continue;
                    }
                    Form::Plain => Some((start, end)),
                    Form::Enclosed => Some((start + 1, end - 1)),
                    Form::Dressed => None,
                };
                if let Some((start, end)) = inner {
                    in_chunk |= end - start > INLINE;
                    block[k] = view_into(data, start, end, 0);
                    continue;
                }
            }
            let row = first + k;
            let view = match any_text(cells, cx, row, &accepts) {
                Ok(None) => None,
                Ok(Some(Cow::Borrowed(text))) => {
                    // Borrowed from the chunk: its place there is the distance of the addresses.
                    let start = text.as_ptr() as usize - data.as_ptr() as usize;
                    in_chunk |= text.len() > INLINE;
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
            null |= u64::from(view.is_none()) << k;
            block[k] = view.unwrap_or(0);
        }
        valid.push_block(count, null);
        views.extend_from_slice(&block[..count]);
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

/// Longest text that stands in its view.
const INLINE: usize = 12;

/// Bytes of a view before the text in it.
const HEAD: usize = 4;

/// What of the bytes that stand from [`HEAD`] before a text on belongs into its view, by its length: up to 12 bytes of it, of longer ones four.
static IN_VIEW: [u128; INLINE + 2] = {
    let mut masks = [0; INLINE + 2];
    let mut len = 0;
    while len < masks.len() {
        let bytes = if len <= INLINE { len } else { HEAD };
        masks[len] = ((1 << (8 * bytes)) - 1) << (8 * HEAD);
        len += 1;
    }
    masks
};

/// The views of fields that are their text, none of which begins with this quote. Bit k of what it gives: field k isn't one of these; and
/// field k is empty; and the length of the longest that is one.
#[inline(always)]
fn plain_views(data: &[u8], bounds: &Bounds, quote: Option<u8>, views: &mut [u128; BLOCK]) -> (u64, u64, usize) {
    // No byte equals what is more than one.
    let quote = quote.map_or(u32::MAX, u32::from);
    let (mut others, mut empty, mut longest) = (0, 0, 0);
    for (k, view) in views.iter_mut().enumerate() {
        let (start, len) = (bounds.starts[k], bounds.ends[k].wrapping_sub(bounds.starts[k]));
        // The text stands there where it stands in a view.
        let from = (start as usize).wrapping_sub(HEAD);
        let window = data.get(from..from.wrapping_add(16)).and_then(|window| window.first_chunk());
        let bytes = window.map_or(0, |window| u128::from_le_bytes(*window));
        let first = (bytes >> (8 * HEAD)) as u32 & 0xff;
        let is_plain = window.is_some() & (len <= i32::MAX as u32) & (first != quote);
        let place = if len > INLINE as u32 { u128::from(start) << 96 } else { 0 };
        *view = bytes & IN_VIEW[(len as usize).min(INLINE + 1)] | place | u128::from(len);
        longest = longest.max(if is_plain { len } else { 0 });
        others |= u64::from(!is_plain) << k;
        empty |= u64::from(len == 0) << k;
    }
    (others, empty, longest as usize)
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
        Cell::Plain(text) if Some(text) == cx.nulls && ty.nullable => return Ok(None),
        Cell::Plain(text) if Some(text) == cx.nulls && ty.ty == Type::Json => return Err(unexpected_null(&ty.ty)),
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
    if len <= INLINE {
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
