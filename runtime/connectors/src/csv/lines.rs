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
    // One byte or two.
    let line_end = [style.line_end[0], *style.line_end.last().unwrap_or(&b'\n')];
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
        lines.room(0);
        lines.bytes[lines.at..lines.at + 2].copy_from_slice(&line_end);
        lines.at += style.line_end.len();
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
                let digits = ascii(eight_digits(year as u32 * 10_000 + month * 100 + day));
                let dash = u64::from(b'-');
                let start = digits & 0xffff_ffff | dash << 32 | (digits >> 32 & 0xffff) << 40 | dash << 56;
                self.bytes[self.at..self.at + 8].copy_from_slice(&start.to_le_bytes());
                self.bytes[self.at + 8..self.at + 10].copy_from_slice(&((digits >> 48) as u16).to_le_bytes());
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
                let text = &buffer[start..start + len];
                self.room(len);
                if self.copied(text, style) {
                    self.at += len;
                } else {
                    quoted(text, scratch);
                    self.take(scratch);
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

    /// Copies a text of more than 12 bytes to its place, for which there is room. Gives whether it may stand there without quotes.
    #[inline]
    fn copied(&mut self, text: &[u8], style: &LineStyle<'_>) -> bool {
        let out = &mut self.bytes[self.at..self.at + text.len()];
        let (Some(last), Some(end)) = (text.last_chunk::<PIECE>(), out.last_chunk_mut::<PIECE>()) else {
            out.copy_from_slice(text);
            return !text.iter().fold(false, |hit, &byte| hit | is_special(byte, style));
        };
        // The last piece covers some bytes again.
        *end = *last;
        let mut hit = special(last, style);
        for (piece, out) in text.as_chunks::<PIECE>().0.iter().zip(out.as_chunks_mut::<PIECE>().0) {
            *out = *piece;
            hit |= special(piece, style);
        }
        !hit
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
        const EIGHT: u64 = 100_000_000;
        let out = &mut self.bytes[self.at..self.at + 64];
        out[0] = b'-';
        let sign = usize::from(negative);
        let out = &mut out[sign..];
        // All digits are made at once; the zeros before the number are then shifted out.
        if magnitude < EIGHT && scale < 8 {
            let digits = eight_digits(magnitude as u32);
            let zeros = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
            let digits = ascii(digits);
            let whole = (8 - zeros).saturating_sub(scale).max(1);
            // Of the digits before the point only so many are written.
            out[..8].copy_from_slice(&(digits >> (8 * (8 - scale - whole))).to_le_bytes());
            if scale == 0 {
                self.at += sign + whole;
                return;
            }
            out[whole] = b'.';
            out[whole + 1..whole + 9].copy_from_slice(&(digits >> (8 * (8 - scale))).to_le_bytes());
            self.at += sign + whole + 1 + scale;
        } else if magnitude < EIGHT * EIGHT && scale < 16 {
            let (high, low) = (eight_digits((magnitude / EIGHT) as u32), eight_digits((magnitude % EIGHT) as u32));
            let digits = u128::from(high) | u128::from(low) << 64;
            let zeros = ((digits | 1 << 120).trailing_zeros() / 8) as usize;
            let digits = u128::from(ascii(high)) | u128::from(ascii(low)) << 64;
            let whole = (16 - zeros).saturating_sub(scale).max(1);
            out[..16].copy_from_slice(&(digits >> (8 * (16 - scale - whole))).to_le_bytes());
            if scale == 0 {
                self.at += sign + whole;
                return;
            }
            out[whole] = b'.';
            out[whole + 1..whole + 17].copy_from_slice(&(digits >> (8 * (16 - scale))).to_le_bytes());
            self.at += sign + whole + 1 + scale;
        } else {
            self.at += sign + large(out, magnitude, scale);
        }
    }
}

/// Writes any number of that many decimals; gives its length.
fn large(out: &mut [u8], magnitude: u64, scale: usize) -> usize {
    // (A scale is at most 18, so there is a zero for the place before the point.)
    let mut digits = [b'0'; 20];
    let (mut rest, mut first) = (magnitude, 20);
    while rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let (whole, decimals) = digits[first.min(19 - scale)..].split_at(20 - scale - first.min(19 - scale));
    out[..whole.len()].copy_from_slice(whole);
    if scale == 0 {
        return whole.len();
    }
    out[whole.len()] = b'.';
    out[whole.len() + 1..whole.len() + 1 + scale].copy_from_slice(decimals);
    whole.len() + 1 + scale
}

/// The digits of a number below 10⁸, each in its byte, the first in the lowest: four, two and one at a time are divided off, all at once.
#[inline]
fn eight_digits(n: u32) -> u64 {
    let fours = u64::from(n / 10_000) | u64::from(n % 10_000) << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// Digits as characters.
#[inline]
fn ascii(digits: u64) -> u64 {
    digits | 0x3030_3030_3030_3030
}

/// Whether one of the bytes has to be quoted.
#[inline]
fn special(piece: &[u8; PIECE], style: &LineStyle<'_>) -> bool {
    // Without a branch, so that all bytes are compared at once.
    piece.iter().fold(0, |hit, &byte| hit | is_special(byte, style) as u8) != 0
}

#[inline]
fn is_special(byte: u8, style: &LineStyle<'_>) -> bool {
    (byte == style.delimiter) | (byte == style.quote) | (byte == b'\n') | (byte == b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_library_writes_them() {
        let magnitudes = (0..20).flat_map(|n| {
            let power = 10u64.saturating_pow(n);
            [power - 1, power, power + 1, power / 7, power.saturating_mul(9)]
        });
        for magnitude in magnitudes.chain([u64::MAX, 99_999_999, 100_000_000, 9_999_999_999_999_999, 10_203_040]) {
            for scale in 0..19 {
                for negative in [false, true] {
                    let mut lines = Lines { bytes: vec![b'x'; 2 * ROOM], at: 3 };
                    lines.number(negative, magnitude, scale);
                    let digits = format!("{magnitude:0width$}", width = scale + 1);
                    let (whole, decimals) = digits.split_at(digits.len() - scale);
                    let (sign, point) = (if negative { "-" } else { "" }, if scale > 0 { "." } else { "" });
                    let expected = format!("xxx{sign}{whole}{point}{decimals}");
                    assert_eq!(std::str::from_utf8(&lines.bytes[..lines.at]), Ok(expected.as_str()), "scale {scale}");
                }
            }
        }
        assert!(
            (0..100_000_000u32)
                .step_by(997)
                .all(|n| ascii(eight_digits(n)).to_le_bytes() == *format!("{n:08}").as_bytes())
        );
    }

    #[test]
    fn texts_of_any_length_are_copied_and_looked_at() {
        let style = LineStyle { delimiter: b',', quote: b'"', line_end: b"\n" };
        for len in 13..70 {
            let plain: Vec<u8> = (0..len).map(|k| b'a' + (k % 26) as u8).collect();
            let mut lines = Lines { bytes: vec![0; len + ROOM], at: 1 };
            assert!(lines.copied(&plain, &style));
            assert_eq!(lines.bytes[1..=len], plain);
            for at in 0..len {
                for byte in *b",\"\n\r" {
                    let mut text = plain.clone();
                    text[at] = byte;
                    assert!(!lines.copied(&text, &style), "{byte} at {at} of {len}");
                }
            }
        }
    }
}
