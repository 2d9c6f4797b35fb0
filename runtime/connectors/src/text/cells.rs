//! One column of a chunk as texts: where each field's text is, with quotes, blanks and escapes taken off. It may not know types.

use std::borrow::Cow;

use super::blocks::{BLOCK, Bounds};
use super::dialect::Dialect;
use super::window::{any, window};

/// Where the fields of one column stand.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    /// For each row where what stands before the field ends: its delimiter is between.
    pub before: &'a [u32],
    /// For each row where the field ends.
    pub ends: &'a [u32],
}

/// What nothing separates, quotes or hides.
static BARE: Dialect = Dialect { delimiter: Vec::new(), quote: None, escape: 0, comment: None, trim: false };

/// The fields of one column.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    data: &'a [u8],
    places: Column<'a>,
    /// Bytes of a delimiter.
    delimiter: u32,
    /// The rows' numbers in the chunk; `None`: they are all of its rows.
    rows: Option<&'a [u32]>,
    /// The dialect.
    pub dialect: &'a Dialect,
    /// The chunk has a quote somewhere, or blanks have to be taken off: a field's bytes aren't always its text.
    pub dressed: bool,
}

/// A field's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    /// The row has no such field.
    Missing,
    /// Unquoted text.
    Plain(&'a [u8]),
    /// Quoted text, quotes and escapes taken off.
    Quoted(Cow<'a, [u8]>),
    /// Text follows the closing quote.
    Damaged(&'a [u8]),
}

/// How a field that is there is dressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its bytes are its text.
    Plain,
    /// Its text stands between two quotes, nothing in it is escaped.
    Enclosed,
    /// Only [`Cells::cell`] knows.
    Dressed,
}

impl<'a> Cells<'a> {
    /// Fields that stand there in a delimited text.
    pub(crate) fn new(data: &'a [u8], places: Column<'a>, dialect: &'a Dialect, has_quotes: bool) -> Self {
        Cells {
            data,
            places,
            delimiter: dialect.delimiter.len() as u32,
            rows: None,
            dialect,
            dressed: has_quotes || dialect.trim,
        }
    }

    /// Fields that are the text between these bounds; one that ends before it starts isn't there.
    pub(crate) fn bare(data: &'a [u8], starts: &'a [u32], ends: &'a [u32]) -> Self {
        Cells::new(data, Column { before: starts, ends }, &BARE, false)
    }

    /// Only these rows of the chunk were taken out: here they are numbered anew.
    pub(crate) fn of(self, rows: Option<&'a [u32]>) -> Self {
        Cells { rows, ..self }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.places.ends.len()
    }

    /// A row's number in the chunk.
    #[inline]
    pub(crate) fn number(&self, row: usize) -> usize {
        self.rows.map_or(row, |rows| rows[row] as usize)
    }

    /// The chunk's text.
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Start and end of a field in the chunk. A missing field's end is before its start.
    #[inline]
    pub(crate) fn bounds(&self, row: usize) -> (usize, usize) {
        let start = self.places.before[row].wrapping_add(self.delimiter);
        (start as usize, self.places.ends[row] as usize)
    }

    /// Gives `take` the bounds of up to [`BLOCK`] fields at a time, with the row of the first of them here, and their number.
    #[inline(always)]
    pub(crate) fn blocks(&self, mut take: impl FnMut(usize, usize, &Bounds)) {
        let Cells { places, delimiter, .. } = *self;
        let mut bounds = Bounds { starts: [0; BLOCK], ends: [0; BLOCK] };
        for (number, (before, ends)) in places.before.chunks(BLOCK).zip(places.ends.chunks(BLOCK)).enumerate() {
            for (start, before) in bounds.starts.iter_mut().zip(before) {
                *start = before.wrapping_add(delimiter);
            }
            bounds.ends[..ends.len()].copy_from_slice(ends);
            take(number * BLOCK, ends.len(), &bounds);
        }
    }

    /// How the field between these bounds is dressed.
    #[inline]
    pub(crate) fn form(&self, start: usize, end: usize) -> Form {
        if !self.dressed {
            return Form::Plain;
        }
        let bytes = &self.data[start..end];
        match (self.dialect.trim, self.dialect.quote, bytes) {
            (true, ..) => Form::Dressed,
            (false, Some(quote), [first, inner @ .., last]) if *first == quote => {
                let escape = self.dialect.escape;
                let escaped = || match window(self.data, start + 1, inner.len()) {
                    Some(window) => any(window, inner.len(), |b| u8::from((b == quote) | (b == escape))) != 0,
                    None => memchr::memchr2(quote, escape, inner).is_some(),
                };
                let enclosed = *last == quote && !escaped();
                if enclosed { Form::Enclosed } else { Form::Dressed }
            }
            (false, Some(quote), [only]) if *only == quote => Form::Dressed,
            _ => Form::Plain,
        }
    }

    /// The field's text.
    pub(crate) fn cell(&self, row: usize) -> Cell<'a> {
        let (start, end) = self.bounds(row);
        let Some(mut bytes) = self.data.get(start..end) else { return Cell::Missing };
        if self.dialect.trim {
            bytes = trim(bytes);
        }
        match self.dialect.quote {
            Some(quote) if bytes.first() == Some(&quote) => self.unquote(bytes, quote),
            _ => Cell::Plain(bytes),
        }
    }

    /// The field's text in the first row, if there is one.
    pub(crate) fn cell_of_first_row(&self) -> Option<Cell<'a>> {
        (self.len() > 0).then(|| self.cell(0))
    }

    fn unquote(&self, bytes: &'a [u8], quote: u8) -> Cell<'a> {
        let [_, inner @ .., last] = bytes else { return Cell::Damaged(bytes) };
        if *last != quote {
            return Cell::Damaged(bytes);
        }
        let escape = self.dialect.escape;
        if memchr::memchr2(quote, escape, inner).is_none() {
            return Cell::Quoted(Cow::Borrowed(inner));
        }
        let mut text = Vec::with_capacity(inner.len());
        let mut at = 0;
        while let Some(n) = memchr::memchr2(quote, escape, &inner[at..]) {
            text.extend_from_slice(&inner[at..at + n]);
            at += n;
            match inner.get(at + 1) {
                // An escape stands for what follows, if that needs one; elsewhere it is itself.
                Some(&next) if inner[at] == escape && (next == quote || next == escape) => {
                    text.push(next);
                    at += 2;
                }
                Some(_) if inner[at] == escape && escape != quote => {
                    text.push(escape);
                    at += 1;
                }
                _ => return Cell::Damaged(bytes),
            }
        }
        text.extend_from_slice(&inner[at..]);
        Cell::Quoted(Cow::Owned(text))
    }
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
