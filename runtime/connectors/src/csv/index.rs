//! The fields of a chunk as a rectangle: every sound row has the same number of fields, blank lines and comments are gone,
//! ragged rows are put aside.

use super::exact::{self, Found};
use super::fast::{self, Ends};
use crate::chunks::Whole;
use crate::text::dialect::Dialect;

/// What happens with rows that have too few or too many fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ragged {
    /// They are row errors.
    Error,
    /// Missing fields are null; too many are a row error.
    Pad,
    /// Surplus fields are dropped; too few are a row error.
    Truncate,
}

/// A row that is not in the rectangle.
pub(crate) struct Misfit {
    /// Where it starts.
    pub start: u32,
    /// How many fields it has.
    pub fields: u32,
    /// Whether it ends within quotes.
    pub unclosed: bool,
}

/// The rectangle.
#[derive(Default)]
pub(crate) struct Index {
    /// Start of each row.
    pub starts: Vec<u32>,
    /// End of each field, row by row, `width` a row. A missing field (padded) ends before it starts, at 0.
    pub ends: Ends,
    /// Fields a row.
    pub width: usize,
    /// Rows that don't fit.
    pub misfits: Vec<Misfit>,
    /// The chunk is known to hold nothing but ASCII characters.
    pub ascii: bool,
    /// The chunk may hold quotes.
    pub quotes: bool,
    raw: RawIndex,
    /// What [`Index::find`] has found out about the data that comes next, and how long that is.
    found: Option<(fast::Found, usize)>,
}

/// Fields and rows as they stand.
#[derive(Default)]
struct RawIndex {
    /// Where each field ends, in order.
    ends: Ends,
    /// For each row the number of fields up to its end.
    row_ends: Vec<u32>,
    /// Where each row starts.
    starts: Vec<u32>,
    /// The last row ends within quotes.
    unclosed: bool,
}

impl Index {
    /// The whole rows of data that starts at a row; with `all`, the data ends where a row does. What is found on the way needn't be found
    /// again when the rows are indexed next.
    pub(crate) fn find(&mut self, data: &[u8], dialect: &Dialect, all: bool) -> Option<Whole> {
        self.found = None;
        if all {
            return Some(Whole::counted(data, data.len()));
        }
        self.quotes = has_quotes(data, dialect);
        let Some((delimiter, quote)) = fast_dialect(self.quotes, dialect) else { return whole_rows(data, dialect) };
        match fast::whole_field_ends(data, delimiter, quote, &mut self.raw.ends) {
            Ok(found) => {
                let (found, whole) = found?;
                self.found = Some((found, whole.end));
                Some(whole)
            }
            Err(fast::Irregular) => exact::last_row_end(data, dialect).map(|end| Whole::counted(data, end)),
        }
    }

    /// Finds the rows of `width` fields in a chunk.
    pub(crate) fn build(&mut self, data: &[u8], dialect: &Dialect, width: usize, ragged: Ragged) {
        self.width = width;
        self.misfits.clear();
        let comment = dialect.comment.as_deref();
        let found = match self.found.take() {
            Some((found, len)) if len == data.len() => Some(found),
            _ => {
                self.quotes = has_quotes(data, dialect);
                fast_ends(data, self.quotes, dialect, &mut self.raw.ends)
            }
        };
        self.ascii = found.is_some_and(|found| found.ascii);
        if comment.is_none()
            && let Some(fast::Found { rows, unclosed: false, .. }) = found
            && self.rectangle(data, rows)
        {
            return;
        }
        self.raw.fill(data, dialect, found);
        self.sort_out(data, comment, ragged);
        if width > 0 {
            for row in 0..self.starts.len() {
                let end = &mut self.ends[row * width + width - 1];
                *end -= without_return(data, self.starts[row], *end, width);
            }
        }
    }

    /// Takes the fields over if each of so many rows has the width.
    fn rectangle(&mut self, data: &[u8], rows: usize) -> bool {
        let Index { starts, ends, raw, width, .. } = self;
        let width = *width;
        if width == 0 || raw.ends.len() != rows * width {
            return false;
        }
        starts.clear();
        starts.reserve(rows);
        let mut start = 0;
        // If as many fields as there are rows, each `width` after the other, end a row, then no other does.
        for end in raw.ends.iter_mut().skip(width - 1).step_by(width) {
            if data.get(*end as usize).is_some_and(|&byte| byte != b'\n') {
                // Those before get back the carriage returns that were taken off, for the rows to be told by their line feeds.
                for end in raw.ends.iter_mut().skip(width - 1).step_by(width).take(starts.len()) {
                    *end += u32::from(data.get(*end as usize).is_some_and(|&byte| byte != b'\n'));
                }
                return false;
            }
            starts.push(start);
            let next = *end + 1;
            *end -= without_return(data, start, *end, width);
            start = next;
        }
        std::mem::swap(ends, &mut raw.ends);
        true
    }

    fn sort_out(&mut self, data: &[u8], comment: Option<&[u8]>, ragged: Ragged) {
        let (width, raw) = (self.width, &self.raw);
        self.starts.clear();
        self.ends.clear();
        let mut first = 0;
        for (row, (&start, &row_end)) in raw.starts.iter().zip(&raw.row_ends).enumerate() {
            let fields = &raw.ends[first..row_end as usize];
            first = row_end as usize;
            let last = row + 1 == raw.row_ends.len();
            let unclosed = raw.unclosed && last;
            if is_blank(data, start, fields, width) || comment.is_some_and(|c| data[start as usize..].starts_with(c)) {
                continue;
            }
            let fits = match ragged {
                Ragged::Error => fields.len() == width,
                Ragged::Pad => fields.len() <= width,
                Ragged::Truncate => fields.len() >= width,
            };
            if unclosed || !fits {
                self.misfits.push(Misfit { start, fields: fields.len() as u32, unclosed });
                continue;
            }
            self.starts.push(start);
            let taken = fields.len().min(width);
            fields[..taken].iter().for_each(|&end| self.ends.push(end as usize));
            if taken < width {
                // The last field there is may carry the line's carriage return.
                let end = self.ends.len() - 1;
                self.ends[end] -= without_return(data, start, self.ends[end], 1);
                self.ends.pad(width - taken);
            }
        }
    }

    /// Number of rows in the rectangle.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len()
    }
}

/// Whether a row is an empty line: no row at all, unless every row has just one field.
fn is_blank(data: &[u8], start: u32, fields: &[u32], width: usize) -> bool {
    width != 1 && fields.len() == 1 && {
        let text = &data[start as usize..fields[0] as usize];
        text.is_empty() || text == b"\r" && data.get(fields[0] as usize) == Some(&b'\n')
    }
}

/// 1 if the last field of a row that starts and ends there takes a carriage return for its own that belongs to the line end, else 0.
fn without_return(data: &[u8], start: u32, end: u32, width: usize) -> u32 {
    // A field that isn't the first of its row has at least a delimiter before it.
    let first = if width == 1 { start } else { 1 };
    u32::from(end > first && data[end as usize - 1] == b'\r' && data.get(end as usize) == Some(&b'\n'))
}

/// Whether there is a quote anywhere in the data.
pub(crate) fn has_quotes(data: &[u8], dialect: &Dialect) -> bool {
    dialect.quote.is_some_and(|quote| memchr::memchr(quote, data).is_some())
}

/// Where fields end, by the fast scan; `None` where it isn't sure.
fn fast_ends(data: &[u8], quotes: bool, dialect: &Dialect, ends: &mut Ends) -> Option<fast::Found> {
    let (delimiter, quote) = fast_dialect(quotes, dialect)?;
    fast::field_ends(data, delimiter, quote, ends).ok()
}

/// The delimiter, and the quote if the data hold one, for the fast scan, if it may be asked.
fn fast_dialect(quotes: bool, dialect: &Dialect) -> Option<(u8, Option<u8>)> {
    let &[delimiter] = dialect.delimiter.as_slice() else { return None };
    match dialect.quote.filter(|_| quotes) {
        Some(_) if !dialect.doubles() || dialect.comment.is_some() => None,
        quote => Some((delimiter, quote)),
    }
}

impl RawIndex {
    /// Finds rows: in what the fast scan found, or by the exact walk.
    fn fill(&mut self, data: &[u8], dialect: &Dialect, found: Option<fast::Found>) {
        self.starts.clear();
        self.row_ends.clear();
        self.unclosed = false;
        let Some(found) = found else {
            self.ends.clear();
            return exact::walk(data, dialect, &mut Fill { raw: self });
        };
        self.unclosed = found.unclosed;
        let mut start = 0;
        for (&end, number) in self.ends.iter().zip(1..) {
            if data.get(end as usize).is_none_or(|&byte| byte == b'\n') {
                self.starts.push(start);
                self.row_ends.push(number);
                start = end + 1;
            }
        }
    }
}

struct Fill<'a> {
    raw: &'a mut RawIndex,
}

impl Found for Fill<'_> {
    fn row_starts(&mut self, at: usize) {
        self.raw.starts.push(at as u32);
    }
    fn field_ends(&mut self, at: usize) {
        self.raw.ends.push(at);
    }
    fn row_ends(&mut self, _: usize, _: bool, unclosed: bool) -> bool {
        self.raw.row_ends.push(self.raw.ends.len() as u32);
        self.raw.unclosed |= unclosed;
        true
    }
    fn comment_ends(&mut self, _: usize, _: bool) {}
}

/// The whole rows of data that starts at a row: where the last of them ends, and the line feeds up to there.
pub(crate) fn whole_rows(data: &[u8], dialect: &Dialect) -> Option<Whole> {
    let Some(quote) = dialect.quote.filter(|q| memchr::memchr(*q, data).is_some()) else {
        return memchr::memrchr(b'\n', data).map(|n| Whole::counted(data, n + 1));
    };
    if let &[delimiter] = dialect.delimiter.as_slice()
        && dialect.doubles()
        && dialect.comment.is_none()
        && let Ok(whole) = fast::whole_rows(data, delimiter, quote)
    {
        return whole;
    }
    exact::last_row_end(data, dialect).map(|end| Whole::counted(data, end))
}

/// Number of rows, blank lines and comments not counted, at most `max`, and the end of the last one counted.
pub(crate) fn count_rows(data: &[u8], dialect: &Dialect, width: usize, max: u64) -> (u64, usize) {
    let mut raw = RawIndex::default();
    let found = fast_ends(data, has_quotes(data, dialect), dialect, &mut raw.ends);
    raw.fill(data, dialect, found);
    let (mut rows, mut first) = (0, 0);
    for (&start, &row_end) in raw.starts.iter().zip(&raw.row_ends) {
        let fields = &raw.ends[first..row_end as usize];
        first = row_end as usize;
        let comment = dialect.comment.as_deref().is_some_and(|c| data[start as usize..].starts_with(c));
        if comment || is_blank(data, start, fields, width) {
            continue;
        }
        rows += 1;
        if rows == max {
            let end = fields.last().map_or(start, |&e| e) as usize;
            return (rows, (end + 1).min(data.len()));
        }
    }
    (rows, data.len())
}
