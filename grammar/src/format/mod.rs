//! The formatter: one style for every file.
//!
//! [`format()`] keeps what a file means and what its comments say, and changes nothing but blanks, line ends and the commas
//! and semicolons that may be left out. An item with a syntax error stays as it is, byte for byte, and so do the blanks
//! around it. The style follows from the tokens alone, except that an empty line between parts is kept; so formatting
//! twice gives the same as formatting once. It is described in `docs/language.md`.
//!
//! An item's tree says what is printed (`items`, `exprs`), its tokens are taken in step with it, comments on the way
//! (`cursor`), and `layout` breaks lines. At the end the result is parsed and compared with the original: should the two
//! ever differ, the original stands.

mod cursor;
mod edits;
mod exprs;
mod items;
mod layout;

use crate::ast::{Item, Span};
use crate::items::Cut;
use crate::token::{Token, TokenKind, lex};
use crate::{LIMITS, Parse, dump, parse};
use cursor::Cursor;

/// A text's formatted form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// The whole new text.
    pub text: String,
    /// The same as edits of the old text: in order, none overlapping another, none where nothing changes.
    pub edits: Vec<Edit>,
}

/// A replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced: bytes of the old text.
    pub span: Span,
    /// What stands there instead.
    pub text: String,
}

/// Formats a file. Any text will do.
pub fn format(text: &str) -> Formatted {
    run(text, None)
}

/// Formats the items of a file that `range` (bytes) touches, and what stands between them.
pub fn format_range(text: &str, range: Span) -> Formatted {
    run(text, Some(range))
}

fn run(text: &str, range: Option<Span>) -> Formatted {
    let unchanged = || Formatted { text: text.to_owned(), edits: Vec::new() };
    if text.len() > LIMITS.file_bytes {
        return unchanged();
    }
    let before = parse(text);
    let new = assemble(text, &before, range);
    if new == text || !same_meaning(text, &before, &new, &parse(&new)) {
        return unchanged();
    }
    let edits = edits::between(text, &new);
    Formatted { text: new, edits }
}

/// What ends the lines of a text: that of its first one.
pub fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The new text: items and what stands between them, each by itself.
fn assemble(text: &str, before: &Parse, range: Option<Span>) -> String {
    let tokens = &before.tokens;
    let end = line_end(text);
    let touches = |from: u32, to: u32| range.is_none_or(|range| from <= range.end && range.start <= to);
    let covers = |from: u32, to: u32| range.is_none_or(|range| range.start <= from && to <= range.end);
    let as_is = |from: usize, to: usize| text.get(from..to).unwrap_or("");
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut sound = before.file.items.iter().peekable();
    // The tokens and the bytes that are done, and whether what follows may be touched.
    let (mut done, mut done_to, mut free) = (0, 0, true);
    let cuts = crate::items::cut(text, tokens);
    for cut in &cuts {
        let tail = tail(text, &tokens[cut.tokens.end..]);
        let own = &tokens[cut.tokens.start..cut.tokens.end + tail];
        let (Some(first), Some(last)) = (own.first(), own.last()) else { continue };
        // A carriage return after a comment belongs to the line end.
        let (from, to) = (first.span.start, last.span.start + last.text(text).trim_end().len() as u32);
        let item = sound.next_if(|item| item.start == from);
        let gap = &tokens[done..cut.tokens.start];
        let next = Next { first: done == 0, last: false };
        match gap_text(text, gap, next, end).filter(|_| free && item.is_some() && covers(done_to, from)) {
            Some(new) => out.push_str(&new),
            None => out.push_str(as_is(done_to as usize, from as usize)),
        }
        match item.filter(|_| touches(from, to)).and_then(|item| item_text(text, own, cut, item, end)) {
            Some(new) => out.push_str(&new),
            None => out.push_str(as_is(from as usize, to as usize)),
        }
        (done, done_to, free) = (cut.tokens.end + tail, to, item.is_some());
    }
    let gap = &tokens[done..];
    let next = Next { first: done == 0, last: true };
    match gap_text(text, gap, next, end).filter(|_| free && covers(done_to, text.len() as u32)) {
        Some(new) => out.push_str(&new),
        None => out.push_str(as_is(done_to as usize, text.len())),
    }
    out
}

/// How many tokens behind an item are the comment on its last line, with the blanks before it.
fn tail(text: &str, behind: &[Token]) -> usize {
    let blank = usize::from(
        behind.first().is_some_and(|token| token.kind == TokenKind::Whitespace && !token.text(text).contains('\n')),
    );
    match behind.get(blank).map(|token| token.kind) {
        Some(TokenKind::Comment | TokenKind::FileDoc) => blank + 1,
        _ => 0,
    }
}

/// What stands around a gap between items.
struct Next {
    /// No item stands before it.
    first: bool,
    /// No item stands after it.
    last: bool,
}

/// Blanks and comments between items; `None` where it holds comments that are a mistake.
fn gap_text(text: &str, gap: &[Token], next: Next, end: &str) -> Option<String> {
    let mut out = String::new();
    let mut ends = 0usize;
    // Nothing is printed yet on the file's first line.
    let mut start = next.first;
    let separate = |out: &mut String, ends: usize, start: bool| {
        if !start {
            out.push_str(end);
            if ends > 1 {
                out.push_str(end);
            }
        }
    };
    for token in gap {
        let shown = token.text(text);
        match token.kind {
            TokenKind::Whitespace if shown == "\u{feff}" => out.push_str(shown),
            TokenKind::Whitespace => ends += shown.matches('\n').count(),
            TokenKind::Comment | TokenKind::FileDoc | TokenKind::Doc => {
                separate(&mut out, ends, start);
                out.push_str(shown.trim_end());
                (ends, start) = (0, false);
            }
            _ => return None,
        }
    }
    if next.last {
        // A file ends in one line end.
        out.push_str(if start { "" } else { end });
    } else {
        separate(&mut out, ends, start);
    }
    Some(out)
}

/// An item's new text; `None` where it must stay as it is.
fn item_text(text: &str, tokens: &[Token], cut: &Cut, item: &Item, end: &str) -> Option<String> {
    let mut cursor = Cursor::new(text, tokens);
    items::item(&mut cursor, &item.kind).ok()?;
    if cut.word.is_none() || !cursor.finished() {
        return None;
    }
    let new = layout::render(&cursor.out, end);
    let old = text.get(item.start as usize..tokens.last()?.span.end as usize)?;
    let again = parse(&new);
    let same = again.errors.is_empty()
        && matches!(again.file.items.as_slice(), [one] if dump::outline(one) == dump::outline(item))
        && essence(old) == essence(&new);
    same.then_some(new)
}

/// Everything but blanks and the commas and semicolons that may be left out: tokens, then comments.
fn essence(text: &str) -> (String, String) {
    let (mut solid, mut comments) = (String::with_capacity(text.len()), String::new());
    for token in lex(text) {
        let shown = token.text(text);
        match token.kind {
            TokenKind::Whitespace | TokenKind::Comma | TokenKind::Semicolon => {}
            kind if kind.is_trivia() => comments.extend(shown.chars().filter(|c| !c.is_whitespace())),
            _ => solid.push_str(shown),
        }
    }
    (solid, comments)
}

/// Whether two texts have the same tree, the same mistakes and the same comments.
fn same_meaning(old: &str, before: &Parse, new: &str, after: &Parse) -> bool {
    let mistakes = |parse: &Parse| -> Vec<(&str, String)> {
        parse.errors.iter().map(|error| (error.code, error.message.clone())).collect()
    };
    let items = before.file.items.iter().map(dump::outline);
    before.file.doc == after.file.doc
        && items.eq(after.file.items.iter().map(dump::outline))
        && mistakes(before) == mistakes(after)
        && essence(old) == essence(new)
}
