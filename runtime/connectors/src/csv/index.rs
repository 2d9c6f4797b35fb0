//! The fields of a chunk as a rectangle: every sound row has the same number of fields, blank lines and comments are gone,
//! ragged rows are put aside.

use super::dialect::Dialect;
use super::exact::{self, Found};
use super::fast::{self, RawIndex};

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
    pub ends: Vec<u32>,
    /// Fields a row.
    pub width: usize,
    /// Rows that don't fit.
    pub misfits: Vec<Misfit>,
    raw: RawIndex,
}

impl Index {
    /// Finds the rows of `width` fields in a chunk.
    pub(crate) fn build(&mut self, data: &[u8], dialect: &Dialect, width: usize, ragged: Ragged) {
        self.width = width;
        self.misfits.clear();
        raw_index(data, dialect, &mut self.raw);
        let raw = &mut self.raw;
        let comment = dialect.comment.as_deref();
        let regular = comment.is_none()
            && !raw.unclosed
            && raw.ends.len() == raw.row_ends.len() * width
            && raw.row_ends.iter().enumerate().all(|(r, &end)| end as usize == (r + 1) * width);
        if regular {
            std::mem::swap(&mut self.starts, &mut raw.starts);
            std::mem::swap(&mut self.ends, &mut raw.ends);
        } else {
            self.sort_out(data, comment, ragged);
        }
        // A carriage return before the line end belongs to it.
        if width > 0 {
            for (row, &start) in self.starts.iter().enumerate() {
                let end = &mut self.ends[row * width + width - 1];
                let first = if width == 1 { start } else { 1 };
                if *end > first && data[*end as usize - 1] == b'\r' && data.get(*end as usize) == Some(&b'\n') {
                    *end -= 1;
                }
            }
        }
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
            self.ends.extend_from_slice(&fields[..taken]);
            if taken < width {
                // The last field there is may carry the line's carriage return.
                let end = self.ends.len() - 1;
                let at = self.ends[end] as usize;
                if at > start as usize && data[at - 1] == b'\r' && data.get(at) == Some(&b'\n') {
                    self.ends[end] -= 1;
                }
                self.ends.resize(self.starts.len() * width, 0);
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

/// Fields and rows as they stand, by the fast scan where it is sure.
fn raw_index(data: &[u8], dialect: &Dialect, raw: &mut RawIndex) {
    let quote = dialect.quote.filter(|q| memchr::memchr(*q, data).is_some());
    let known = match (dialect.delimiter.as_slice(), quote) {
        (&[delimiter], None) => fast::index(data, delimiter, None, raw).is_ok(),
        (&[delimiter], Some(_)) if dialect.doubles() && dialect.comment.is_none() => {
            fast::index(data, delimiter, quote, raw).is_ok()
        }
        _ => false,
    };
    if !known {
        raw.clear();
        exact::walk(data, dialect, &mut Fill { raw });
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
        self.raw.ends.push(at as u32);
    }
    fn row_ends(&mut self, _: usize, _: bool, unclosed: bool) -> bool {
        self.raw.row_ends.push(self.raw.ends.len() as u32);
        self.raw.unclosed |= unclosed;
        true
    }
    fn comment_ends(&mut self, _: usize, _: bool) {}
}

/// The end of the last whole row of data that starts at a row.
pub(crate) fn last_row_end(data: &[u8], dialect: &Dialect) -> Option<usize> {
    let Some(quote) = dialect.quote.filter(|q| memchr::memchr(*q, data).is_some()) else {
        return memchr::memrchr(b'\n', data).map(|n| n + 1);
    };
    if let &[delimiter] = dialect.delimiter.as_slice()
        && dialect.doubles()
        && dialect.comment.is_none()
        && let Ok(end) = fast::last_row_end(data, delimiter, quote)
    {
        return end;
    }
    exact::last_row_end(data, dialect)
}

/// Number of rows, blank lines and comments not counted, at most `max`, and the end of the last one counted.
pub(crate) fn count_rows(data: &[u8], dialect: &Dialect, width: usize, max: u64) -> (u64, usize) {
    let mut raw = RawIndex::default();
    raw_index(data, dialect, &mut raw);
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
