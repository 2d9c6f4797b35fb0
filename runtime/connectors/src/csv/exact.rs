//! Finds fields and rows by the letter, byte by byte where it must: every dialect, every oddity. The fast scan
//! (`fast.rs`) must agree with it wherever it claims to know.
//!
//! A field is quoted if a quote is its first character (after blanks, with `trim`). Within quotes nothing separates. Text
//! after the closing quote belongs to the field, which is then damaged: that is found when the field is read.

use memchr::{memchr, memchr2};

use crate::text::dialect::Dialect;

/// Takes what the walk finds, in order.
pub(crate) trait Found {
    /// A row starts here (not: a comment).
    fn row_starts(&mut self, at: usize);
    /// A field ends before this byte.
    fn field_ends(&mut self, at: usize);
    /// The row is over; the next begins at `next`. `closed`: by a line end, not by the end of the data. `unclosed`: within quotes.
    /// Gives whether to go on.
    fn row_ends(&mut self, next: usize, closed: bool, unclosed: bool) -> bool;
    /// A comment line ended, the next line begins at `next`.
    fn comment_ends(&mut self, next: usize, closed: bool);
}

/// Walks over the data, which starts at a row.
pub(crate) fn walk(data: &[u8], dialect: &Dialect, found: &mut impl Found) {
    let mut at = 0;
    'rows: while at < data.len() {
        if let Some(comment) = &dialect.comment
            && data[at..].starts_with(comment)
        {
            let end = memchr(b'\n', &data[at..]);
            at = end.map_or(data.len(), |n| at + n + 1);
            found.comment_ends(at, end.is_some());
            continue;
        }
        found.row_starts(at);
        loop {
            let (body, unclosed) = after_quotes(data, at, dialect);
            match next_separator(data, body, &dialect.delimiter) {
                Some(end) if data[end] == b'\n' => {
                    found.field_ends(end);
                    at = end + 1;
                    if !found.row_ends(at, true, false) {
                        return;
                    }
                    continue 'rows;
                }
                Some(end) => {
                    found.field_ends(end);
                    at = end + dialect.delimiter.len();
                }
                None => {
                    found.field_ends(data.len());
                    found.row_ends(data.len(), false, unclosed);
                    return;
                }
            }
        }
    }
}

/// The position after a field's closing quote, or its start if it isn't quoted; and whether the closing quote is missing.
fn after_quotes(data: &[u8], start: usize, dialect: &Dialect) -> (usize, bool) {
    let Some(quote) = dialect.quote else { return (start, false) };
    let mut at = start;
    if dialect.trim {
        while at < data.len() && matches!(data[at], b' ' | b'\t') && !data[at..].starts_with(&dialect.delimiter) {
            at += 1;
        }
    }
    if data.get(at) != Some(&quote) {
        return (start, false);
    }
    at += 1;
    loop {
        let found =
            if dialect.doubles() { memchr(quote, &data[at..]) } else { memchr2(quote, dialect.escape, &data[at..]) };
        let Some(n) = found else { return (data.len(), true) };
        at += n;
        if dialect.doubles() {
            if data.get(at + 1) == Some(&quote) {
                at += 2;
                continue;
            }
            return (at + 1, false);
        }
        if data[at] == dialect.escape {
            at += 2;
            if at > data.len() {
                return (data.len(), true);
            }
            continue;
        }
        return (at + 1, false);
    }
}

fn next_separator(data: &[u8], from: usize, delimiter: &[u8]) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr2(delimiter[0], b'\n', &data[at..])?;
        if data[at] == b'\n' || delimiter.len() == 1 || data[at..].starts_with(delimiter) {
            return Some(at);
        }
        at += 1;
    }
}

/// The end of the row that starts at `start` (comments before it included), its line end included; and whether it has one.
pub(crate) fn row_end(data: &[u8], start: usize, dialect: &Dialect) -> (usize, bool) {
    struct First(usize, bool);
    impl Found for First {
        fn row_starts(&mut self, _: usize) {}
        fn field_ends(&mut self, _: usize) {}
        fn row_ends(&mut self, next: usize, closed: bool, _: bool) -> bool {
            (self.0, self.1) = (next, closed);
            false
        }
        fn comment_ends(&mut self, _: usize, _: bool) {}
    }
    let mut first = First(data.len() - start, false);
    walk(&data[start..], dialect, &mut first);
    (start + first.0, first.1)
}

/// The end of the last whole row or comment.
pub(crate) fn last_row_end(data: &[u8], dialect: &Dialect) -> Option<usize> {
    struct Last(Option<usize>);
    impl Found for Last {
        fn row_starts(&mut self, _: usize) {}
        fn field_ends(&mut self, _: usize) {}
        fn row_ends(&mut self, next: usize, closed: bool, _: bool) -> bool {
            if closed {
                self.0 = Some(next);
            }
            true
        }
        fn comment_ends(&mut self, next: usize, closed: bool) {
            if closed {
                self.0 = Some(next);
            }
        }
    }
    let mut last = Last(None);
    walk(data, dialect, &mut last);
    last.0
}
