//! Brackets and depth: checked before the grammar sees an item.
//!
//! The grammar gets balanced brackets only, so that a mistake inside a pair stays inside it, and no tree is built that is
//! higher than later passes, which recurse, can bear.

use crate::LIMITS;
use crate::ast::Span;
use crate::error::{self, SyntaxError};
use crate::symbols::{Sym, Symbol};
use crate::token::TokenKind as T;

/// What was found.
pub(crate) enum Balance {
    /// Every bracket has its partner.
    Balanced,
    /// These openers (indices of symbols, outermost first) have none; the parse must end before symbol `before`.
    Unclosed { openers: Vec<usize>, before: usize },
    /// Closers without a partner, the first at symbol `first` as the symbols were before they were mended.
    Stray { first: usize, faults: Vec<SyntaxError> },
    /// A limit was passed: the item is not parsed.
    TooDeep(SyntaxError),
}

/// The closing bracket of an opening one, with its text.
pub(crate) fn closer(open: T) -> Option<(T, &'static str)> {
    match open {
        T::LParen => Some((T::RParen, ")")),
        T::LBracket => Some((T::RBracket, "]")),
        T::LBrace => Some((T::RBrace, "}")),
        _ => None,
    }
}

/// The bracket that a symbol opens.
pub(crate) fn opens(symbol: &Symbol<'_>) -> Option<T> {
    match symbol.sym {
        Sym::Token(kind @ (T::LParen | T::LBracket | T::LBrace)) => Some(kind),
        _ => None,
    }
}

/// Whether a symbol is a closing bracket.
pub(crate) fn closes(symbol: &Symbol<'_>) -> bool {
    matches!(symbol.sym, Sym::Token(T::RParen | T::RBracket | T::RBrace))
}

/// Whether a symbol makes the tree of the expression it stands in one level higher.
fn raises(symbol: &Symbol<'_>) -> bool {
    let Sym::Token(kind) = symbol.sym else { return false };
    matches!(
        kind,
        T::And
            | T::Or
            | T::Not
            | T::In
            | T::Is
            | T::Between
            | T::Like
            | T::Matches
            | T::As
            | T::If
            | T::Div
            | T::EqEq
            | T::NotEq
            | T::Lt
            | T::Le
            | T::Gt
            | T::Ge
            | T::Plus
            | T::Minus
            | T::Star
            | T::Slash
            | T::Percent
            | T::Coalesce
            | T::Dot
            | T::LBracket
    )
}

/// Whether a symbol begins another expression on the same level.
fn separates(symbols: &[Symbol<'_>], i: usize) -> bool {
    match symbols[i].sym {
        Sym::Token(T::Comma | T::Colon | T::Semicolon | T::Pipe | T::Ellipsis) => true,
        // After a block of statements; `else if` goes on.
        Sym::Token(T::RBrace) => {
            let next = symbols.get(i + 1);
            next.is_some_and(|next| next.is(T::If) || next.is_name())
        }
        _ => false,
    }
}

/// Checks the brackets of an item. Stray and mixed-up closers are mended in place.
pub(crate) fn balance(symbols: &mut Vec<Symbol<'_>>, text: &str) -> Balance {
    let mut first = None;
    let mut errors: Vec<SyntaxError> = Vec::new();
    // Openers with the operators counted on the level outside them.
    let mut open: Vec<(usize, T, usize)> = Vec::new();
    let (mut here, mut outside) = (0usize, 0usize);
    let mut stray: Vec<usize> = Vec::new();
    for i in 0..symbols.len() {
        if raises(&symbols[i]) {
            here += 1;
        }
        if here + outside > LIMITS.operators {
            return Balance::TooDeep(too_many(symbols[i].span));
        }
        if let Some(kind) = opens(&symbols[i]) {
            if open.len() == LIMITS.nesting {
                return Balance::TooDeep(too_deep(symbols[i].span));
            }
            open.push((i, kind, here));
            outside += here;
            here = 0;
        } else if closes(&symbols[i]) {
            let matching =
                open.iter().rposition(|(_, kind, _)| closer(*kind).is_some_and(|(close, _)| symbols[i].is(close)));
            match (matching, open.last().copied()) {
                (_, None) => {
                    first.get_or_insert(i);
                    errors.push(stray_closer(symbols[i].span, text));
                    stray.push(i);
                }
                (Some(at), Some(_)) => {
                    if at + 1 < open.len() {
                        let openers = open[at + 1..].iter().map(|(i, ..)| *i).collect();
                        return Balance::Unclosed { openers, before: i };
                    }
                }
                (None, Some((opener, kind, _))) => {
                    first.get_or_insert(i);
                    if let Some((close, meant)) = closer(kind) {
                        // `x])`: the right one follows, so this one is too many.
                        if symbols.get(i + 1).is_some_and(|next| next.is(close)) {
                            errors.push(stray_closer(symbols[i].span, text));
                            stray.push(i);
                            continue;
                        }
                        errors.push(mixed_up(symbols[i].span, symbols[opener].span, text, meant));
                        symbols[i].sym = Sym::Token(close);
                    }
                }
            }
            if let Some((_, _, counted)) = open.pop() {
                outside -= counted;
                here = counted;
            }
        }
        if separates(symbols, i) {
            here = 0;
        }
    }
    if !open.is_empty() {
        let openers = open.iter().map(|(i, ..)| *i).collect();
        return Balance::Unclosed { openers, before: symbols.len() };
    }
    for i in stray.into_iter().rev() {
        symbols.remove(i);
    }
    match first {
        Some(first) => Balance::Stray { first, faults: errors },
        None => Balance::Balanced,
    }
}

fn too_deep(span: Span) -> SyntaxError {
    let message = format!("more than {} brackets inside one another", LIMITS.nesting);
    SyntaxError::new(error::TOO_DEEP, span, message, "this one is too many")
        .help("split it: a `fn` or a `const` can hold a part")
}

fn too_many(span: Span) -> SyntaxError {
    let message = format!("more than {} operators in one expression", LIMITS.operators);
    SyntaxError::new(error::TOO_DEEP, span, message, "this one is too many")
        .help("split it: a `fn`, a `derive` before or a list (`x in [1, 2]`) can hold a part")
}

pub(crate) fn stray_closer(span: Span, text: &str) -> SyntaxError {
    let shown = text.get(span.start as usize..span.end as usize).unwrap_or("");
    SyntaxError::new(error::STRAY_CLOSER, span, format!("this `{shown}` closes nothing"), "no bracket is open here")
        .help("remove it, or put the opening bracket where it belongs")
        .fix(span, "")
}

fn mixed_up(span: Span, opener: Span, text: &str, meant: &str) -> SyntaxError {
    let get = |span: Span| text.get(span.start as usize..span.end as usize).unwrap_or("");
    let (found, open) = (get(span), get(opener));
    SyntaxError::new(
        error::STRAY_CLOSER,
        span,
        format!("`{found}` cannot close `{open}`"),
        format!("expected `{meant}`"),
    )
    .related(opener, format!("this `{open}` is open"))
    .help(format!("write `{meant}`"))
    .fix(span, meant)
}
