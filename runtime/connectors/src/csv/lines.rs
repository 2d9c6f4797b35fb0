//! Rows as lines of the usual style: one-byte delimiter, quotes where they must be, UTF-8. The bytes go straight to their place in one
//! large buffer, in pieces of fixed size wherever the buffer has room, as most fields are shorter than a call to copy them is long.
//! What is seldom (other types, quoted texts) is left to the sink's own way, which writes every style; both give the same bytes.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal64Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer};
use dfc_ir::Type;
use dfc_ir::types::{IntType, SHORT_PRECISION};

use crate::text::format::{WriteText, writer};
use crate::text::time::civil_from_days;

/// Room for any field of a fixed width, its delimiter, and the pieces that are written beyond its end.
const ROOM: usize = 96;
/// Bytes that are looked at at once.
const PIECE: usize = 16;
/// Texts up to so many bytes stand in their views.
const IN_VIEW: u32 = 12;
/// Texts up to so many bytes are copied by one piece where that is possible.
const SHORT: usize = 32;

/// Rows whose texts are fetched together.
const TOGETHER: usize = 64;

/// How the lines are written: a null as nothing, so that an empty text has quotes.
pub(super) struct LineStyle<'a> {
    pub delimiter: u8,
    pub quote: u8,
    pub line_end: &'a [u8],
}

/// Values of one column.
enum Values<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    /// With its scale.
    Decimal(&'a [i64], usize),
    Wide(&'a [i128], usize, WriteText<'a>),
    Date(&'a [i32]),
    Text(&'a [u128], &'a [Buffer]),
    /// Anything else that never needs quotes.
    Plain(WriteText<'a>),
    /// Anything else.
    Quotable(WriteText<'a>),
}

impl Values<'_> {
    /// Looks at these rows' texts. They may stand anywhere, as those of a join's right side do: here the loads don't wait for each other,
    /// and whoever writes them finds them in the cache.
    fn fetch(&self, rows: Range<usize>) {
        let Values::Text(views, buffers) = self else { return };
        let long = views[rows].iter().filter(|&&view| view as u32 > IN_VIEW);
        let first = |view: &u128| buffers.get((view >> 64) as u32 as usize)?.get((view >> 96) as u32 as usize).copied();
        std::hint::black_box(long.filter_map(first).fold(0, |all, byte| all ^ byte));
    }
}

/// A column to be written.
pub(super) struct LineColumn<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

impl<'a> LineColumn<'a> {
    /// `quotable`: its text may hold what has to be quoted.
    pub(super) fn new(array: &'a ArrayRef, ty: &'a Type, quotable: bool) -> Self {
        let values = match ty {
            Type::Int(IntType::I32) => Values::Int32(array.as_primitive::<Int32Type>().values()),
            Type::Int(IntType::I64) => Values::Int64(array.as_primitive::<Int64Type>().values()),
            Type::Decimal(precision, scale) if *precision <= SHORT_PRECISION => {
                Values::Decimal(array.as_primitive::<Decimal64Type>().values(), usize::from(*scale))
            }
            Type::Decimal(_, scale) if *scale < 18 => {
                Values::Wide(array.as_primitive::<Decimal128Type>().values(), usize::from(*scale), writer(array, ty))
            }
            Type::Date => Values::Date(array.as_primitive::<Date32Type>().values()),
            Type::String => {
                let texts: &StringViewArray = array.as_string_view();
                Values::Text(texts.views(), texts.data_buffers())
            }
            _ if quotable => Values::Quotable(writer(array, ty)),
            _ => Values::Plain(writer(array, ty)),
        };
        LineColumn { nulls: array.nulls(), values }
    }
}

/// Lines under construction.
struct Lines {
    bytes: Vec<u8>,
    at: usize,
}

/// The lines of so many rows; `guess`: bytes that they may need. `quoted` appends a text with quotes.
pub(super) fn lines(
    style: &LineStyle<'_>,
    columns: &[LineColumn<'_>],
    rows: usize,
    guess: usize,
    quoted: &dyn Fn(&[u8], &mut Vec<u8>),
) -> Vec<u8> {
    let mut lines = Lines { bytes: vec![0; guess], at: 0 };
    let mut scratch = Vec::new();
    for row in 0..rows {
        if row % TOGETHER == 0 {
            columns.iter().for_each(|column| column.values.fetch(row..rows.min(row + TOGETHER)));
        }
        for column in columns {
            lines.room(0);
            if column.nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                lines.value(style, &column.values, row, &mut scratch, quoted);
            }
            // Takes the place of what a piece left there.
            lines.bytes[lines.at] = style.delimiter;
            lines.at += 1;
        }
        lines.at -= usize::from(!columns.is_empty());
        lines.append(style.line_end);
    }
    lines.bytes.truncate(lines.at);
    lines.bytes
}

impl Lines {
    /// Makes room for so many bytes and what may be written beyond them.
    #[inline]
    fn room(&mut self, bytes: usize) {
        if self.bytes.len() - self.at < bytes + ROOM {
            self.grow(bytes + ROOM);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.bytes.resize((self.bytes.len() * 3 / 2).max(self.at + bytes), 0);
    }

    fn append(&mut self, text: &[u8]) {
        self.room(text.len());
        self.bytes[self.at..self.at + text.len()].copy_from_slice(text);
        self.at += text.len();
    }

    /// Appends a value; there is room for one of a fixed width.
    #[inline]
    fn value(
        &mut self,
        style: &LineStyle<'_>,
        values: &Values<'_>,
        row: usize,
        scratch: &mut Vec<u8>,
        quoted: &dyn Fn(&[u8], &mut Vec<u8>),
    ) {
        match values {
            Values::Int32(values) => self.number(values[row] < 0, values[row].unsigned_abs().into(), 0),
            Values::Int64(values) => self.number(values[row] < 0, values[row].unsigned_abs(), 0),
            Values::Decimal(values, scale) => self.number(values[row] < 0, values[row].unsigned_abs(), *scale),
            Values::Wide(values, scale, write) => match u64::try_from(values[row].unsigned_abs()) {
                Ok(magnitude) => self.number(values[row] < 0, magnitude, *scale),
                Err(_) => self.other(write, row, scratch),
            },
            Values::Date(values) => {
                let (year, month, day) = civil_from_days(values[row]);
                let year = year as u32;
                let ([a, b], [c, d]) = (pair(year / 100), pair(year % 100));
                let ([e, f], [g, h]) = (pair(month), pair(day));
                self.bytes[self.at..self.at + 10].copy_from_slice(&[a, b, c, d, b'-', e, f, b'-', g, h]);
                self.at += 10;
            }
            Values::Text(views, buffers) => {
                let view = views[row];
                let len = view as u32 as usize;
                if len <= IN_VIEW as usize {
                    // The text stands in the view, with zeros behind it.
                    let piece = (view >> 32).to_le_bytes();
                    self.bytes[self.at..self.at + PIECE].copy_from_slice(&piece);
                    if len == 0 || special(&piece, style) {
                        quoted(&piece[..len], scratch);
                        self.take(scratch);
                    } else {
                        self.at += len;
                    }
                    return;
                }
                let buffer = buffers[(view >> 64) as u32 as usize].as_slice();
                let start = (view >> 96) as u32 as usize;
                self.room(len);
                match buffer.get(start..start + SHORT) {
                    Some(window) if len <= SHORT => self.bytes[self.at..self.at + SHORT].copy_from_slice(window),
                    _ => self.bytes[self.at..self.at + len].copy_from_slice(&buffer[start..start + len]),
                }
                let end = self.at + len;
                self.bytes[end..end + PIECE].fill(0);
                let written = &self.bytes[self.at..end + PIECE];
                let hit = written.as_chunks::<PIECE>().0.iter().fold(false, |hit, piece| hit | special(piece, style));
                if hit {
                    quoted(&buffer[start..start + len], scratch);
                    self.take(scratch);
                } else {
                    self.at = end;
                }
            }
            Values::Plain(write) => self.other(write, row, scratch),
            Values::Quotable(write) => {
                write(row, scratch);
                let text = std::mem::take(scratch);
                quoted(&text, scratch);
                self.take(scratch);
            }
        }
    }

    fn other(&mut self, write: &WriteText<'_>, row: usize, scratch: &mut Vec<u8>) {
        write(row, scratch);
        self.take(scratch);
    }

    fn take(&mut self, scratch: &mut Vec<u8>) {
        self.append(scratch);
        scratch.clear();
    }

    /// A number of that many decimals.
    #[inline]
    fn number(&mut self, negative: bool, magnitude: u64, scale: usize) {
        // Digits up to byte 20; what is copied beyond them doesn't count.
        let mut digits = [b'0'; 48];
        let mut rest = magnitude;
        let mut first = 20;
        while rest >= 100 {
            first -= 2;
            digits[first..first + 2].copy_from_slice(&pair((rest % 100) as u32));
            rest /= 100;
        }
        if rest >= 10 {
            first -= 2;
            digits[first..first + 2].copy_from_slice(&pair(rest as u32));
        } else {
            first -= 1;
            digits[first] = b'0' + rest as u8;
        }
        let out = &mut self.bytes[self.at..self.at + 64];
        out[0] = b'-';
        let sign = usize::from(negative);
        if scale == 0 {
            out[sign..sign + 20].copy_from_slice(&digits[first..first + 20]);
            self.at += sign + 20 - first;
            return;
        }
        // A zero stands before the point at least. (A scale is at most 18, so there is one before the digits.)
        let first = first.min(19 - scale);
        let whole = 20 - scale - first;
        out[sign..sign + 20].copy_from_slice(&digits[first..first + 20]);
        out[sign + whole] = b'.';
        out[sign + whole + 1..sign + whole + 21].copy_from_slice(&digits[20 - scale..40 - scale]);
        self.at += sign + whole + 1 + scale;
    }
}

/// Two digits.
#[inline]
fn pair(n: u32) -> [u8; 2] {
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[0; 2]; 100];
        let mut n = 0;
        while n < 100 {
            pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
            n += 1;
        }
        pairs
    };
    PAIRS[n as usize % 100]
}

/// Whether one of the bytes has to be quoted.
#[inline]
fn special(piece: &[u8; PIECE], style: &LineStyle<'_>) -> bool {
    // Without a branch, so that all bytes are compared at once.
    let of = |byte: &u8| {
        (*byte == style.delimiter) as u8
            | (*byte == style.quote) as u8
            | (*byte == b'\n') as u8
            | (*byte == b'\r') as u8
    };
    piece.iter().fold(0, |hit, byte| hit | of(byte)) != 0
}
