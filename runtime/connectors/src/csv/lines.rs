//! Rows as lines of the usual style: one-byte delimiter, quotes where they must be, UTF-8. A block of rows is made column by column, each
//! field in a slot (`slots`) or as the view of a text; then its rows are put together from pieces of fixed size wherever the buffer has
//! room, as most fields are shorter than a call to copy them is long, and with few branches that depend on what stands in them.
//! What is seldom (other types, texts with quotes in them) is left to the sink's own way, which writes every style; both give the same bytes.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer};
use dfc_ir::Type;
use dfc_ir::types::{IntType, SHORT_PRECISION};

use super::slots::{BLOCK, Numbers, SLOT, Slots, TEXT, ends};
use crate::text::format::{WriteText, writer};
use crate::text::window::{WINDOW, any, any_of_ends, window, windows};

/// Texts up to so many bytes stand in their views.
const IN_VIEW: usize = 12;
/// Bytes that the slots of a block may take: they are to stay in the first-level cache with what is written.
const SLOTS: usize = 20 << 10;
/// Texts in buffers of more bytes than this aren't in the cache, as those of a join's right side.
const CACHED: usize = 1 << 20;

/// How the lines are written: a null as nothing, so that an empty text has quotes.
pub(super) struct LineStyle<'a> {
    pub delimiter: u8,
    pub quote: u8,
    pub escape: u8,
    pub line_end: &'a [u8],
}

/// Gives the numbers of some rows; whether they all fit.
type Load<'a> = Box<dyn Fn(Range<usize>, &mut Numbers) -> bool + 'a>;

/// Values of one column.
enum Values<'a> {
    /// Numbers of so many decimals, and how one that doesn't fit 64 bits is written.
    Numbers(Load<'a>, usize, WriteText<'a>),
    Dates(&'a [i32]),
    /// Texts: their views, also as bytes; whether they may stand anywhere.
    Texts(&'a [u128], &'a [u8], &'a [Buffer], bool),
    /// Anything else, and whether it may need quotes.
    Others(WriteText<'a>, bool),
}

/// A column to be written.
pub(super) struct LineColumn<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

impl<'a> LineColumn<'a> {
    /// `quotable`: its text may hold what has to be quoted.
    pub(super) fn new(array: &'a ArrayRef, ty: &'a Type, quotable: bool) -> Self {
        macro_rules! numbers {
            ($arrow:ty, $scale:expr, $value:ident => $magnitude:expr, $negative:expr) => {{
                let values = array.as_primitive::<$arrow>().values();
                let load = move |rows: Range<usize>, numbers: &mut Numbers| {
                    let to = numbers.of.iter_mut().zip(&mut numbers.negative);
                    for ((of, negative), &$value) in to.zip(&values[rows]) {
                        (*of, *negative) = ($magnitude, u8::from($negative));
                    }
                    true
                };
                Values::Numbers(Box::new(load), $scale, writer(array, ty))
            }};
            (signed $arrow:ty) => { numbers!($arrow, 0, n => u64::from(n.unsigned_abs()), n < 0) };
            (unsigned $arrow:ty) => { numbers!($arrow, 0, n => u64::from(n), false) };
        }
        let values = match ty {
            Type::Int(IntType::I8) => numbers!(signed Int8Type),
            Type::Int(IntType::I16) => numbers!(signed Int16Type),
            Type::Int(IntType::I32) => numbers!(signed Int32Type),
            Type::Int(IntType::I64) => numbers!(signed Int64Type),
            Type::Int(IntType::U8) => numbers!(unsigned UInt8Type),
            Type::Int(IntType::U16) => numbers!(unsigned UInt16Type),
            Type::Int(IntType::U32) => numbers!(unsigned UInt32Type),
            Type::Int(IntType::U64) => numbers!(unsigned UInt64Type),
            Type::Decimal(precision, scale) if *precision <= SHORT_PRECISION => {
                numbers!(Decimal64Type, usize::from(*scale), n => n.unsigned_abs(), n < 0)
            }
            Type::Decimal(_, scale) if *scale < 18 => {
                let values = array.as_primitive::<Decimal128Type>().values();
                let load = move |rows: Range<usize>, numbers: &mut Numbers| {
                    let to = numbers.of.iter_mut().zip(&mut numbers.negative);
                    let mut beyond = 0;
                    for ((of, negative), n) in to.zip(&values[rows]) {
                        let magnitude = n.unsigned_abs();
                        (*of, *negative) = (magnitude as u64, u8::from(*n < 0));
                        beyond |= (magnitude >> 64) as u64;
                    }
                    beyond == 0
                };
                Values::Numbers(Box::new(load), usize::from(*scale), writer(array, ty))
            }
            Type::Date => Values::Dates(array.as_primitive::<Date32Type>().values()),
            Type::String => {
                let texts: &StringViewArray = array.as_string_view();
                let buffers = texts.data_buffers();
                let anywhere = buffers.iter().map(Buffer::len).sum::<usize>() > CACHED;
                Values::Texts(texts.views(), texts.views().inner(), buffers, anywhere)
            }
            _ => Values::Others(writer(array, ty), quotable),
        };
        LineColumn { nulls: array.nulls(), values }
    }

    fn buffers(&self) -> &'a [Buffer] {
        match self.values {
            Values::Texts(_, _, buffers, _) => buffers,
            _ => &[],
        }
    }

    /// Whether a row has a value.
    #[inline(always)]
    fn is_there(&self, row: usize) -> bool {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row))
    }
}

/// What a block has of one column.
struct Made {
    slots: Slots,
    /// The fields stand in the slots; else they are the texts that these views show.
    in_slots: bool,
    views: [u128; BLOCK],
    /// Bit k: text k has quotes around it.
    quoted: u64,
    /// Texts that were made here: the buffer behind the column's own.
    beside: Vec<u8>,
}

/// Appends a text as it must be written.
type Quote<'a> = &'a dyn Fn(&[u8], &mut Vec<u8>);

/// The lines of so many rows; `guess`: bytes that they may need. `quote` appends a text with quotes if it must have them.
pub(super) fn lines(
    style: &LineStyle<'_>,
    columns: &[LineColumn<'_>],
    rows: usize,
    guess: usize,
    quote: Quote<'_>,
) -> Vec<u8> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has just been found to have the features that the function is compiled for.
        return unsafe { lines_avx2(style, columns, rows, guess, quote) };
    }
    lines_here(style, columns, rows, guess, quote)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn lines_avx2(
    style: &LineStyle<'_>,
    columns: &[LineColumn<'_>],
    rows: usize,
    guess: usize,
    quote: Quote<'_>,
) -> Vec<u8> {
    lines_here(style, columns, rows, guess, quote)
}

#[inline(always)]
fn lines_here(
    style: &LineStyle<'_>,
    columns: &[LineColumn<'_>],
    rows: usize,
    guess: usize,
    quote: Quote<'_>,
) -> Vec<u8> {
    let width = columns.len().max(1);
    let block = (SLOTS / SLOT / width).clamp(1, BLOCK).min(rows.max(1));
    let new = || Made { slots: Slots::new(block), in_slots: false, views: [0; BLOCK], quoted: 0, beside: Vec::new() };
    let mut made: Vec<Made> = columns.iter().map(|_| new()).collect();
    // What rows take beside long texts, and what is written beyond their end.
    let most = block * (width * (SLOT + 2) + 2) + WINDOW;
    let (mut bytes, mut at) = (vec![0; guess + most], 0);
    // One byte or two.
    let line_end = [style.line_end[0], *style.line_end.last().unwrap_or(&b'\n')];
    for first in (0..rows).step_by(block) {
        let count = block.min(rows - first);
        let mut room = most;
        for (column, made) in columns.iter().zip(&mut made) {
            room += make(style, column, first..first + count, quote, made);
        }
        if bytes.len() - at < room {
            let len = (bytes.len() * 3 / 2).max(at + room);
            bytes.resize(len, 0);
        }
        for row in 0..count {
            for (column, made) in columns.iter().zip(&made) {
                if made.in_slots {
                    let (slot, len) = made.slots.get(row);
                    bytes[at..at + SLOT].copy_from_slice(slot);
                    at += len;
                } else {
                    let quoted = (made.quoted >> row & 1) as usize;
                    // What follows takes the place of a quote that isn't wanted.
                    bytes[at] = style.quote;
                    at += quoted;
                    at += put_text(made.views[row], column.buffers(), &made.beside, &mut bytes[at..]);
                    bytes[at] = style.quote;
                    at += quoted;
                    bytes[at] = style.delimiter;
                    at += 1;
                }
            }
            // Takes the place of the last delimiter.
            at -= usize::from(!columns.is_empty());
            bytes[at..at + 2].copy_from_slice(&line_end);
            at += style.line_end.len();
        }
    }
    bytes.truncate(at);
    bytes
}

/// Copies the text of a view, for which there is room, and perhaps what follows it. Gives its length.
#[inline(always)]
fn put_text(view: u128, buffers: &[Buffer], beside: &[u8], out: &mut [u8]) -> usize {
    let len = view as u32 as usize;
    if len <= IN_VIEW {
        out[..16].copy_from_slice(&(view >> 32).to_le_bytes());
        return len;
    }
    let (buffer, start) = text_of(view, buffers, beside);
    if let Some(window) = window(buffer, start, len) {
        out[..WINDOW].copy_from_slice(window);
        return len;
    }
    let text = &buffer[start..start + len];
    match windows(text) {
        Some(windows) => windows.for_each(|(at, window)| out[at..at + WINDOW].copy_from_slice(window)),
        None => out[..len].copy_from_slice(text),
    }
    len
}

/// Makes the fields of some rows. Gives the bytes of the texts that aren't in slots.
#[inline(always)]
fn make(
    style: &LineStyle<'_>,
    column: &LineColumn<'_>,
    rows: Range<usize>,
    quote: Quote<'_>,
    made: &mut Made,
) -> usize {
    let count = rows.len();
    made.beside.clear();
    made.in_slots = true;
    match &column.values {
        Values::Numbers(load, scale, write) => {
            let mut numbers = Numbers::new();
            if !load(rows.clone(), &mut numbers) {
                return make_others(column, rows, write, None, made);
            }
            made.slots.put_numbers(&numbers, count, *scale, style.delimiter);
        }
        Values::Dates(days) => made.slots.put_dates(&days[rows.clone()], style.delimiter),
        Values::Texts(views, bytes, buffers, anywhere) => {
            if *anywhere {
                fetch(&views[rows.clone()], buffers);
            }
            made.views[..count].copy_from_slice(&views[rows.clone()]);
            return make_texts(style, column, bytes, rows, quote, made);
        }
        Values::Others(write, quotable) => {
            return make_others(column, rows, write, quotable.then_some(quote), made);
        }
    }
    if column.nulls.is_some_and(|nulls| nulls.null_count() > 0) {
        for (k, row) in rows.enumerate() {
            if !column.is_there(row) {
                made.slots.put_null(k, style.delimiter);
            }
        }
    }
    0
}

/// Looks at texts that may stand anywhere, where they begin and where they end: here the loads don't wait for each other, and whoever copies
/// them finds them in the cache.
#[inline(always)]
fn fetch(views: &[u128], buffers: &[Buffer]) {
    let looked = views.iter().filter(|&&view| view as u32 as usize > IN_VIEW).fold(0, |all, view| {
        let (start, len) = ((view >> 96) as u32 as usize, *view as u32 as usize);
        let text = buffers.get((view >> 64) as u32 as usize).and_then(|buffer| buffer.get(start..start + len));
        all ^ text.map_or(0, |text| text[0] ^ text[len - 1])
    });
    std::hint::black_box(looked);
}

/// A text has a delimiter or a line break.
const PARTED: u8 = 1;
/// It has a quote, or what stands before one that is part of a text.
const ESCAPED: u8 = 2;

/// Finds which texts need quotes, and writes those down in which more is needed. Gives the bytes of those that aren't in slots.
#[inline(always)]
fn make_texts(
    style: &LineStyle<'_>,
    column: &LineColumn<'_>,
    views: &[u8],
    rows: Range<usize>,
    quote: Quote<'_>,
    made: &mut Made,
) -> usize {
    let (first_row, count, buffers) = (rows.start, rows.len(), column.buffers());
    let mut there = !0;
    if column.nulls.is_some_and(|nulls| nulls.null_count() > 0) {
        for (k, (view, row)) in made.views.iter_mut().zip(rows).enumerate() {
            if !column.is_there(row) {
                (*view, there) = (0, there & !(1 << k));
            }
        }
    }
    let marks = |byte: u8| {
        let parted = (byte == style.delimiter) | (byte == b'\n') | (byte == b'\r');
        let escaped = (byte == style.quote) | (byte == style.escape);
        (u8::from(parted) * PARTED) | (u8::from(escaped) * ESCAPED)
    };
    // Short texts are looked at where their views stand: what has just been written in halves can't be read as a whole without waiting.
    let of_view = |k: usize| ends(views, (first_row + k) * 16 + 4, 0).map(|(text, _)| text);
    let views = &made.views[..count];
    let longest = views.iter().fold(0, |longest, view| longest.max(*view as u32)) as usize;
    if longest <= TEXT {
        made.in_slots = true;
        for (k, &view) in views.iter().enumerate() {
            let len = view as u32 as usize;
            let inline;
            let both = if len <= IN_VIEW {
                let text = match of_view(k) {
                    Some(text) => text,
                    None => {
                        inline = (view >> 32).to_le_bytes();
                        &inline
                    }
                };
                Some((text, text))
            } else {
                let (buffer, start) = text_of(view, buffers, &[]);
                ends(buffer, start, len)
            };
            let Some((first, last)) = both else {
                made.in_slots = false;
                break;
            };
            let has = any_of_ends(first, last, len, marks);
            // An empty one has quotes, a null has none.
            let quoted = (has == PARTED) | (len == 0 && there >> k & 1 != 0);
            made.slots.put_text(k, (first, last), len, quoted.then_some(style.quote), style.delimiter);
            if has & ESCAPED != 0 {
                made.in_slots = false;
                break;
            }
        }
        if made.in_slots {
            return 0;
        }
    }
    made.in_slots = false;
    let (mut quoted, mut escaped, mut bytes) = (0, 0, 0);
    for (k, &view) in views.iter().enumerate() {
        let len = view as u32 as usize;
        let has = if len <= IN_VIEW {
            let inline = (view >> 32).to_le_bytes();
            let text = of_view(k).unwrap_or(&inline);
            any_of_ends(text, text, len, marks) | u8::from(len == 0)
        } else {
            bytes += len;
            let (buffer, start) = text_of(view, buffers, &[]);
            match window(buffer, start, len) {
                Some(window) => any(window, len, marks),
                None => any_of(&buffer[start..start + len], marks),
            }
        };
        quoted |= u64::from(has & PARTED) << k;
        escaped |= u64::from(has / ESCAPED) << k;
    }
    made.quoted = quoted & !escaped & there;
    while escaped != 0 {
        let k = escaped.trailing_zeros() as usize;
        escaped &= escaped - 1;
        let (start, len) = (made.beside.len(), made.views[k] as u32 as usize);
        let inline = (made.views[k] >> 32).to_le_bytes();
        if len <= IN_VIEW {
            quote(&inline[..len], &mut made.beside);
        } else {
            let (buffer, from) = text_of(made.views[k], buffers, &[]);
            quote(&buffer[from..from + len], &mut made.beside);
        }
        made.views[k] = view_beside(&made.beside, start);
    }
    bytes + made.beside.len()
}

/// What the bytes of a text have, one of more than a window or at its buffer's end.
#[inline(always)]
fn any_of(text: &[u8], marks: impl Fn(u8) -> u8) -> u8 {
    match windows(text) {
        Some(windows) => windows.fold(0, |all, (_, window)| all | any(window, WINDOW, &marks)),
        None => text.iter().fold(0, |all, &byte| all | marks(byte)),
    }
}

/// Writes texts of other types down; `quote` if they may need quotes. Gives their bytes.
fn make_others(
    column: &LineColumn<'_>,
    rows: Range<usize>,
    write: &WriteText<'_>,
    quote: Option<Quote<'_>>,
    made: &mut Made,
) -> usize {
    (made.in_slots, made.quoted) = (false, 0);
    let mut scratch = Vec::new();
    for (k, row) in rows.enumerate() {
        if !column.is_there(row) {
            made.views[k] = 0;
            continue;
        }
        let start = made.beside.len();
        match quote {
            None => write(row, &mut made.beside),
            Some(quote) => {
                scratch.clear();
                write(row, &mut scratch);
                quote(&scratch, &mut made.beside);
            }
        }
        made.views[k] = view_beside(&made.beside, start);
    }
    made.beside.len()
}

/// The number of the buffer beside a column's own.
const BESIDE: u32 = u32::MAX;

/// The view of what stands there from this byte on. Where a view has a text's first bytes it has those of the start that don't fit elsewhere.
fn view_beside(beside: &[u8], start: usize) -> u128 {
    let text = &beside[start..];
    if text.len() <= IN_VIEW {
        let mut inline = [0; 16];
        inline[4..4 + text.len()].copy_from_slice(text);
        return u128::from_le_bytes(inline) | text.len() as u128;
    }
    let (high, low) = ((start as u64 >> 32) as u128, start as u32);
    text.len() as u128 | high << 32 | u128::from(BESIDE) << 64 | u128::from(low) << 96
}

/// The buffer of a long text, and where it begins there.
#[inline(always)]
fn text_of<'b>(view: u128, buffers: &'b [Buffer], beside: &'b [u8]) -> (&'b [u8], usize) {
    let start = (view >> 96) as u32 as usize;
    match buffers.get((view >> 64) as u32 as usize) {
        Some(buffer) => (buffer, start),
        None => (beside, start | ((view >> 32) as u32 as usize) << 32),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const STYLE: LineStyle = LineStyle { delimiter: b',', quote: b'"', escape: b'"', line_end: b"\n" };

    fn written(texts: Vec<Option<String>>, style: &LineStyle) -> String {
        let array: ArrayRef = Arc::new(StringViewArray::from(texts.clone()));
        let columns = [LineColumn::new(&array, &Type::String, true), LineColumn::new(&array, &Type::String, true)];
        let quote = |text: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(b"<");
            out.extend_from_slice(text);
            out.extend_from_slice(b">");
        };
        String::from_utf8(lines(style, &columns, texts.len(), 0, &quote)).unwrap()
    }

    /// Texts with quotes in them are left to the sink's way; others have quotes around them or not.
    #[test]
    fn texts_of_any_length_are_copied_and_looked_at() {
        for len in 0..150 {
            let plain: String = (0..len).map(|k| char::from(b'a' + (k % 26) as u8)).collect();
            // The last of them ends where its buffer does.
            let same = |n: usize| vec![Some(plain.clone()); n];
            let field = if len == 0 { "\"\"" } else { &plain };
            assert_eq!(written(same(3), &STYLE), format!("{field},{field}\n").repeat(3));
            for at in (0..len).filter(|at| *at < 20 || len - at < 20 || at % 16 < 2) {
                for (byte, open, close) in [(",", "\"", "\""), ("\n", "\"", "\""), ("\r", "\"", "\""), ("\"", "<", ">")]
                {
                    let mut text = plain.clone();
                    text.replace_range(at..=at, byte);
                    let field = format!("{open}{text}{close}");
                    let mixed = [same(1), vec![Some(text), None], same(1)].concat();
                    let plain_line = format!("{plain},{plain}\n");
                    let expected = format!("{plain_line}{field},{field}\n,\n{plain_line}");
                    assert_eq!(written(mixed, &STYLE), expected, "{byte:?} at {at} of {len}");
                }
            }
        }
    }

    #[test]
    fn blocks_of_any_number_of_rows_and_columns_are_lines() {
        let style = LineStyle { line_end: b"\r\n", ..STYLE };
        for (rows, width) in [(0, 3), (1, 1), (63, 2), (64, 2), (65, 2), (200, 3), (7, 200), (3, 2000), (5, 0)] {
            let text = |row: usize| {
                if row.is_multiple_of(3) { format!("a longer text, of row {row}") } else { row.to_string() }
            };
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..rows).map(text)));
            let numbers: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(0..rows as i32));
            let column = |n: usize| match n % 2 {
                0 => LineColumn::new(&texts, &Type::String, true),
                _ => LineColumn::new(&numbers, &Type::Int(IntType::I32), false),
            };
            let columns: Vec<LineColumn> = (0..width).map(column).collect();
            let field = |row: usize, n: usize| match (n % 2, row % 3) {
                (0, 0) => format!("\"{}\"", text(row)),
                _ => row.to_string(),
            };
            let line = |row: usize| (0..width).map(|n| field(row, n)).collect::<Vec<_>>().join(",") + "\r\n";
            let lines = lines(&style, &columns, rows, 10, &|_, _| unreachable!("no text has a quote"));
            assert_eq!(String::from_utf8(lines).unwrap(), (0..rows).map(line).collect::<String>());
        }
    }

    #[test]
    fn other_escapes_are_left_to_the_sink() {
        let style = LineStyle { escape: b'\\', ..STYLE };
        let texts = ["a\\b", "a longer text with \\ in it", "plain", "a,b"].map(|text| Some(text.to_string()));
        let expected = ["<a\\b>", "<a longer text with \\ in it>", "plain", "\"a,b\""];
        assert_eq!(written(texts.to_vec(), &style), expected.map(|text| format!("{text},{text}\n")).concat());
    }
}
