//! The smallest edits between a text and its formatted form, so that an editor keeps its cursor, marks and folds.

use super::Edit;
use crate::ast::Span;
use crate::token::{TokenKind, lex};

/// What stands between blanks: a token or a comment without the blanks at its end.
struct Piece<'a> {
    kind: TokenKind,
    text: &'a str,
    start: usize,
}

impl Piece<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether the formatter may leave it out or put it in.
    fn is_free(&self) -> bool {
        matches!(self.kind, TokenKind::Comma | TokenKind::Semicolon)
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let solid = lex(text).into_iter().filter(|token| token.kind != TokenKind::Whitespace);
    solid
        .map(|token| {
            let shown = token.text(text);
            let shown = if token.kind.is_trivia() { shown.trim_end() } else { shown };
            Piece { kind: token.kind, text: shown, start: token.span.start as usize }
        })
        .collect()
}

/// The edits that make `new` of `old`, in order, none overlapping another.
pub(super) fn between(old: &str, new: &str) -> Vec<Edit> {
    if old == new {
        return Vec::new();
    }
    let (before, after) = (pieces(old), pieces(new));
    let mut edits = Vec::new();
    // The ends of the last piece that both have.
    let (mut old_end, mut new_end) = (0, 0);
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (before.get(i), after.get(j)) {
        if a.text == b.text {
            edits.extend(gap(old, new, (old_end, a.start), (new_end, b.start)));
            (old_end, new_end) = (a.end(), b.end());
            (i, j) = (i + 1, j + 1);
        } else if a.is_free() {
            i += 1;
        } else if b.is_free() {
            j += 1;
        } else {
            // A comment changed places with a comma: the rest is one edit.
            break;
        }
    }
    edits.extend(gap(old, new, (old_end, old.len()), (new_end, new.len())));
    edits
}

/// The edit of one gap, without what both ends share.
fn gap(old: &str, new: &str, from: (usize, usize), to: (usize, usize)) -> Option<Edit> {
    let (a, b) = (old.get(from.0..from.1)?, new.get(to.0..to.1)?);
    if a == b {
        return None;
    }
    let same = |(x, y): &(u8, u8)| x == y && x.is_ascii();
    let most = a.len().min(b.len());
    let head = a.bytes().zip(b.bytes()).take(most).take_while(same).count();
    let tail = a.bytes().rev().zip(b.bytes().rev()).take(most - head).take_while(same).count();
    // `\r\n` is one line end: an editor has no place inside it.
    let splits = |text: &str, at: usize| at > 0 && text[..at].ends_with('\r') && text[at..].starts_with('\n');
    let head = head - usize::from(splits(a, head) || splits(b, head));
    let tail = tail - usize::from(tail > 0 && (splits(a, a.len() - tail) || splits(b, b.len() - tail)));
    let text = b.get(head..b.len() - tail)?.to_owned();
    Some(Edit { span: Span::new(from.0 + head, from.1 - tail), text })
}
