//! Values of a column's open page: numbers and texts, by their numbers in a dictionary or as they are, with the least and the greatest of
//! them. It may not know what a page is made of besides.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType as ArrowType;
use parquet::basic::Encoding;

use super::dictionary::{IN_VIEW, NumberTable, TextTable};
use super::encode::{self, Whole};

/// The values of one page, written down.
pub(super) struct Written {
    pub encoding: Encoding,
    /// The least and the greatest; none where there are only nulls.
    pub bounds: Option<(Bound, Bound)>,
    /// Bytes of its texts.
    pub text_bytes: Option<i64>,
}

/// A bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    Narrow(i32),
    Wide(i64),
    Text(Vec<u8>),
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Bound::Narrow(a), Bound::Narrow(b)) => Some(a.cmp(b)),
            (Bound::Wide(a), Bound::Wide(b)) => Some(a.cmp(b)),
            (Bound::Text(a), Bound::Text(b)) => Some(a.cmp(b)),
            // A column has bounds of one kind.
            _ => None,
        }
    }
}

/// A column's values.
pub(super) enum Values {
    Narrow(Numbers<i32>),
    Wide(Numbers<i64>),
    Texts(Texts),
}

/// Rows of an array that are there: all, or those of a list.
pub(super) enum Rows {
    All(Range<usize>),
    Some(Vec<usize>),
}

impl Rows {
    /// Those of a range that aren't null.
    pub(super) fn there(range: Range<usize>, nulls: Option<&NullBuffer>) -> Rows {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => Rows::Some(range.filter(|row| nulls.is_valid(*row)).collect()),
            None => Rows::All(range),
        }
    }
}

impl Values {
    /// Appends rows of an array.
    pub(super) fn push(&mut self, array: &ArrayRef, rows: &Rows) {
        match self {
            Values::Narrow(numbers) => match array.as_primitive_opt::<Decimal64Type>() {
                // Short decimals are stored in half the bits.
                Some(decimals) => numbers.push(&narrowed(decimals.values()), rows),
                None => numbers.push(narrow(array), rows),
            },
            Values::Wide(numbers) => numbers.push(wide(array), rows),
            Values::Texts(texts) => texts.push(array.as_string_view(), rows),
        }
    }

    /// How many of some rows the open page takes before it has so many bytes: one at least.
    pub(super) fn within(&self, array: &ArrayRef, rows: Range<usize>, bytes: usize) -> usize {
        let Values::Texts(_) = self else { return rows.len() };
        let (mut left, rows) = (bytes.saturating_sub(self.bytes()), &array.as_string_view().views()[rows]);
        let ends = rows.iter().position(|view| {
            let len = *view as u32 as usize;
            left = left.saturating_sub(len);
            left == 0
        });
        ends.map_or(rows.len(), |last| last + 1)
    }

    /// Bytes of the open page, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Values::Narrow(numbers) => numbers.bytes(),
            Values::Wide(numbers) => numbers.bytes(),
            Values::Texts(texts) => texts.keys.len() / 2 + texts.bytes.len() + texts.lens.len(),
        }
    }

    /// Bytes of the dictionary, if there is one.
    pub(super) fn dictionary_bytes(&self) -> Option<usize> {
        match self {
            Values::Narrow(numbers) => numbers.dictionary.as_ref().map(|table| 4 * table.values.len()),
            Values::Wide(numbers) => numbers.dictionary.as_ref().map(|table| 8 * table.values.len()),
            Values::Texts(texts) => texts.dictionary.as_ref().map(|table| table.plain.len()),
        }
    }

    /// Ends the use of a dictionary: gives it written down, with the number of its values.
    pub(super) fn take_dictionary(&mut self) -> Option<(Vec<u8>, usize)> {
        fn plain<T: Whole, const N: usize>(table: NumberTable<T>, bytes: impl Fn(T) -> [u8; N]) -> (Vec<u8>, usize) {
            (table.values.iter().flat_map(|value| bytes(*value)).collect(), table.values.len())
        }
        match self {
            Values::Narrow(numbers) => Some(plain(numbers.dictionary.take()?, i32::to_le_bytes)),
            Values::Wide(numbers) => Some(plain(numbers.dictionary.take()?, i64::to_le_bytes)),
            Values::Texts(texts) => texts.dictionary.take().map(|table| {
                let values = table.len();
                (table.plain, values)
            }),
        }
    }

    /// Ends the open page: appends its values as they are written down.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Written {
        match self {
            Values::Narrow(numbers) => numbers.write(out, Bound::Narrow),
            Values::Wide(numbers) => numbers.write(out, Bound::Wide),
            Values::Texts(texts) => texts.write(out),
        }
    }
}

/// The values of an array that are stored in 32 bits as they are.
fn narrow(array: &ArrayRef) -> &[i32] {
    match array.data_type() {
        ArrowType::Date32 => array.as_primitive::<Date32Type>().values(),
        _ => array.as_primitive::<Int32Type>().values(),
    }
}

/// The same of 64.
fn wide(array: &ArrayRef) -> &[i64] {
    match array.data_type() {
        ArrowType::Decimal64(..) => array.as_primitive::<Decimal64Type>().values(),
        ArrowType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().values(),
        ArrowType::Timestamp(..) => array.as_primitive::<TimestampMicrosecondType>().values(),
        _ => array.as_primitive::<Int64Type>().values(),
    }
}

/// Those of decimals of up to nine digits.
fn narrowed(values: &[i64]) -> Vec<i32> {
    values.iter().map(|value| *value as i32).collect()
}

/// Whole numbers.
pub(super) struct Numbers<T> {
    dictionary: Option<NumberTable<T>>,
    /// Numbers in it.
    keys: Vec<u32>,
    values: Vec<T>,
    bounds: Option<(T, T)>,
}

impl<T: Whole> Numbers<T> {
    pub(super) fn new(dictionary: bool) -> Self {
        Numbers { dictionary: dictionary.then(NumberTable::new), keys: Vec::new(), values: Vec::new(), bounds: None }
    }

    fn push(&mut self, values: &[T], rows: &Rows) {
        let some: Vec<T>;
        let values = match rows {
            Rows::All(range) => &values[range.clone()],
            Rows::Some(rows) => {
                some = rows.iter().map(|row| values[*row]).collect();
                &some
            }
        };
        let Some(first) = values.first() else { return };
        let (least, most) = self.bounds.unwrap_or((*first, *first));
        let fold = |(least, most): (T, T), value: &T| (least.min(*value), most.max(*value));
        self.bounds = Some(values.iter().fold((least, most), fold));
        match &mut self.dictionary {
            Some(table) => table.find(values, &mut self.keys),
            None => self.values.extend_from_slice(values),
        }
    }

    fn bytes(&self) -> usize {
        self.keys.len() / 2 + self.values.len() * size_of::<T>()
    }

    fn write(&mut self, out: &mut Vec<u8>, bound: impl Fn(T) -> Bound) -> Written {
        let encoding = match &self.dictionary {
            Some(table) => write_keys(&mut self.keys, table.values.len(), out),
            None => {
                encode::differences(&self.values, out);
                self.values.clear();
                Encoding::DELTA_BINARY_PACKED
            }
        };
        let bounds = self.bounds.take().map(|(least, most)| (bound(least), bound(most)));
        Written { encoding, bounds, text_bytes: None }
    }
}

/// Numbers in a dictionary of so many values, behind the bits that each has.
fn write_keys(keys: &mut Vec<u32>, values: usize, out: &mut Vec<u8>) -> Encoding {
    let width = encode::width(values.saturating_sub(1) as u64);
    out.push(width as u8);
    encode::runs(keys, width, out);
    keys.clear();
    Encoding::RLE_DICTIONARY
}

/// Texts.
pub(super) struct Texts {
    dictionary: Option<TextTable>,
    keys: Vec<u32>,
    /// For each text of the dictionary the page in which it was seen last.
    seen: Vec<u32>,
    page: u32,
    /// Without a dictionary: the texts one after the other, and how long they are.
    bytes: Vec<u8>,
    lens: Vec<i32>,
    least: Edge,
    most: Edge,
    text_bytes: i64,
}

/// The least or the greatest text, with its first bytes as a number.
#[derive(Default)]
struct Edge {
    head: u32,
    text: Option<Vec<u8>>,
}

impl Edge {
    /// Becomes a text that is beyond it.
    #[inline(always)]
    fn meet(&mut self, head: u32, text: &[u8], beyond: Ordering) {
        let order = if self.text.is_some() { head.cmp(&self.head) } else { beyond };
        if order == beyond.reverse() {
            return;
        }
        self.meet_closely(head, text, beyond);
    }

    #[cold]
    fn meet_closely(&mut self, head: u32, text: &[u8], beyond: Ordering) {
        if self.text.as_deref().is_none_or(|edge| text.cmp(edge) == beyond) {
            (self.head, self.text) = (head, Some(text.to_vec()));
        }
    }
}

impl Texts {
    pub(super) fn new(dictionary: bool) -> Self {
        Texts {
            dictionary: dictionary.then(TextTable::new),
            keys: Vec::new(),
            seen: Vec::new(),
            page: 0,
            bytes: Vec::new(),
            lens: Vec::new(),
            least: Edge::default(),
            most: Edge::default(),
            text_bytes: 0,
        }
    }

    fn push(&mut self, texts: &StringViewArray, rows: &Rows) {
        match rows {
            Rows::All(rows) => self.push_rows(texts, rows.clone()),
            Rows::Some(rows) => self.push_rows(texts, rows.iter().copied()),
        }
    }

    #[inline(always)]
    fn push_rows(&mut self, texts: &StringViewArray, rows: impl Iterator<Item = usize>) {
        let (views, buffers) = (texts.views(), texts.data_buffers());
        for row in rows {
            let view = views[row];
            let len = view as u32 as usize;
            let short = (view >> 32).to_le_bytes();
            let text = match len <= IN_VIEW {
                true => &short[..len],
                false => &buffers[(view >> 64) as u32 as usize][(view >> 96) as u32 as usize..][..len],
            };
            self.text_bytes += len as i64;
            // The first four bytes of a text stand behind its length; where it has fewer, zeros do.
            let head = ((view >> 32) as u32).swap_bytes();
            let Some(table) = &mut self.dictionary else {
                self.lens.push(len as i32);
                self.bytes.extend_from_slice(text);
                self.least.meet(head, text, Ordering::Less);
                self.most.meet(head, text, Ordering::Greater);
                continue;
            };
            let key = if len <= IN_VIEW { table.short(view) } else { table.long(text) };
            self.keys.push(key);
            if self.seen.len() <= key as usize {
                self.seen.push(u32::MAX);
            }
            if self.seen[key as usize] != self.page {
                self.seen[key as usize] = self.page;
                self.least.meet(head, text, Ordering::Less);
                self.most.meet(head, text, Ordering::Greater);
            }
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Written {
        let encoding = match &self.dictionary {
            Some(table) => write_keys(&mut self.keys, table.len(), out),
            None => {
                encode::differences(&self.lens, out);
                out.extend_from_slice(&self.bytes);
                self.lens.clear();
                self.bytes.clear();
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
        };
        self.page += 1;
        let bounds = self.least.text.take().zip(self.most.text.take());
        let bounds = bounds.map(|(least, most)| (Bound::Text(least), Bound::Text(most)));
        Written { encoding, bounds, text_bytes: Some(std::mem::take(&mut self.text_bytes)) }
    }
}
