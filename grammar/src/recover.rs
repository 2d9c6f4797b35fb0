//! Runs the grammar over an item until every mistake in it is found.
//!
//! After a mistake the item is mended where it is clear what was meant (`=` for `:`), otherwise the smallest part around
//! the mistake is replaced by one `error` symbol, and the item is parsed again. What follows from a mistake already
//! reported is not reported.

use crate::ast::ItemKind;
use crate::brackets::{self, Balance};
use crate::df::ItemParser;
use crate::error::SyntaxError;
use crate::explain::{self, Expected, Place, Repair};
use crate::symbols::{Docs, Prepared, Sym, Symbol, Word};
use crate::token::TokenKind as T;
use crate::tree::Refusal;
use lalrpop_util::ParseError;
use std::cell::Cell;
use std::ops::Range;

/// Parses of one item at most: more mistakes than these wait until the first are mended.
const ATTEMPTS: usize = 40;

/// Places tried for an opening bracket that is missing.
const LOOK_BACK: usize = 6;

/// A mistake the grammar met: the index of the symbol it could not take (the number of symbols at the end), and what it
/// could have taken.
struct Stop {
    at: usize,
    expected: Expected,
}

enum Failure {
    Stop(Stop),
    Refused(Refusal),
}

/// Parses an item. Where it has mistakes, which are then among its errors, the tree is that of the item as it was mended, with
/// errors in the place of what was given up; `None` where too little is left for one. `text` is the item's text.
pub(crate) fn parse<'a>(text: &'a str, word: Word, prepared: &mut Prepared<'a>) -> Option<ItemKind> {
    if prepared.swallowed {
        return None;
    }
    let as_written = prepared.symbols.clone();
    match brackets::balance(&mut prepared.symbols, text) {
        Balance::Balanced => {}
        Balance::Stray { first, faults } => {
            if let Some(fault) = missing_opener(text, &as_written, &prepared.docs, first, faults.len() > 1) {
                prepared.errors.push(fault);
                return None;
            }
            // After a second one it is not clear what belongs together.
            if faults.len() > 1 {
                prepared.errors.push(brackets::stray_closer(as_written[first].span, text));
                return None;
            }
            prepared.errors.extend(faults);
        }
        Balance::TooDeep(fault) => {
            prepared.errors.push(fault);
            return None;
        }
        Balance::Unclosed { openers, before } => {
            let place = unclosed(text, word, prepared, &openers, before);
            // What follows from a bracket put in is no news.
            let found = prepared.errors.len();
            close(&mut prepared.symbols, &openers, before, place);
            let mended = mend(text, word, prepared);
            prepared.errors.truncate(found);
            return mended;
        }
    }
    mend(text, word, prepared)
}

/// Runs the grammar until it takes the item, and mends it on the way.
fn mend<'a>(text: &'a str, word: Word, prepared: &mut Prepared<'a>) -> Option<ItemKind> {
    // Where the last mistake was mended, so that its neighbours' complaints can be told from new mistakes.
    let mut mended: Option<usize> = None;
    for _ in 0..ATTEMPTS {
        let stop = match run(&prepared.symbols, &prepared.docs) {
            Ok(kind) => return Some(kind),
            Err(Failure::Refused(refusal)) => {
                prepared.errors.push(explain::refusal(refusal));
                return None;
            }
            Err(Failure::Stop(stop)) => stop,
        };
        let symbols = &mut prepared.symbols;
        let reported = already_reported(symbols, stop.at, &prepared.errors);
        let follows = [Some(stop.at), stop.at.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|i| symbols.get(i).is_some_and(|symbol| symbol.sym == Sym::Error));
        let place = Place { text, word, symbols, at: stop.at, expected: &stop.expected };
        let (fault, repair) = if follows { (None, Repair::Region) } else { place.explain() };
        let fault = fault.filter(|fault| {
            // Where a part of an argument was given up, or mended, what is left of it may not fit together.
            let between = [crate::error::MISSING_COMMA.0, crate::error::UNEXPECTED.0].contains(&fault.code);
            let quoted = stop.at.checked_sub(1).and_then(|before| symbols.get(before)).is_some_and(|before| {
                let quotes = |known: &&SyntaxError| known.code == crate::error::SINGLE_QUOTES.0;
                prepared.errors.iter().filter(quotes).any(|known| known.span == before.span)
            });
            !reported && !(between && (quoted || given_up(symbols, stop.at)))
        });
        // A second word mended right after the first (`IS NULL`) is the same mistake.
        let again = mended.is_some_and(|at| at + 1 == stop.at && matches!(repair, Repair::Replace(..)));
        if let Some(fault) = fault
            && !again
        {
            prepared.errors.push(fault);
        }
        mended = None;
        match repair {
            Repair::Replace(at, with) => {
                let span = symbols[at].span;
                symbols.splice(at..at + 1, with.into_iter().map(|sym| Symbol::put(sym, span)));
                mended = Some(at);
            }
            Repair::Insert(with) => {
                let end = stop.at.checked_sub(1).map_or(0, |i| symbols[i].span.end);
                let span = crate::ast::Span { start: end, end };
                symbols.splice(stop.at..stop.at, with.into_iter().map(|sym| Symbol::put(sym, span)));
            }
            Repair::Region => {
                let (region, with) = outward(symbols, word, stop.at)?;
                let first = symbols.get(region.start).or(symbols.last())?;
                let span =
                    region.clone().filter_map(|i| symbols.get(i)).fold(first.span, |span, symbol| span.to(symbol.span));
                let line = first.first_on_line;
                let mut put: Vec<Symbol<'_>> = with.into_iter().map(|sym| Symbol::put(sym, span)).collect();
                if let Some(head) = put.first_mut() {
                    head.first_on_line = line;
                }
                symbols.splice(region, put);
            }
        }
    }
    None
}

/// Whether a mistake was already reported at a symbol, or between it and the one before it.
fn already_reported(symbols: &[Symbol<'_>], at: usize, errors: &[SyntaxError]) -> bool {
    let here = symbols.get(at).map(|symbol| symbol.span);
    let gap = (at.checked_sub(1).map_or(0, |i| symbols[i].span.end), here.map_or(u32::MAX, |span| span.start));
    errors.iter().any(|fault| Some(fault.span) == here || (gap.0 <= fault.span.start && fault.span.end <= gap.1))
}

/// One run of the grammar.
fn run(symbols: &[Symbol<'_>], docs: &Docs) -> Result<ItemKind, Failure> {
    let taken = Cell::new(0usize);
    let stream = symbols.iter().map(|symbol| {
        taken.set(taken.get() + 1);
        Ok::<_, Refusal>((symbol.span.start, symbol.sym.clone(), symbol.span.end))
    });
    ItemParser::new().parse(docs, stream).map_err(|fault| match fault {
        ParseError::UnrecognizedToken { expected, .. } => {
            Failure::Stop(Stop { at: taken.get().saturating_sub(1), expected: Expected::new(&expected) })
        }
        ParseError::UnrecognizedEof { expected, .. } => {
            Failure::Stop(Stop { at: symbols.len(), expected: Expected::new(&expected) })
        }
        ParseError::User { error } => Failure::Refused(error),
        // The parser never meets a token that its grammar does not know, nor one after an accepted item.
        ParseError::InvalidToken { .. } | ParseError::ExtraToken { .. } => {
            Failure::Stop(Stop { at: taken.get().saturating_sub(1), expected: Expected::new(&[]) })
        }
    })
}

/// Whether something of the argument before a symbol was given up.
fn given_up(symbols: &[Symbol<'_>], at: usize) -> bool {
    let mut depth = 0usize;
    for symbol in symbols[..at.min(symbols.len())].iter().rev() {
        if brackets::closes(symbol) {
            depth += 1;
        } else if depth > 0 {
            depth -= usize::from(brackets::opens(symbol).is_some());
        } else if symbol.sym == Sym::Error {
            return true;
        } else if brackets::opens(symbol).is_some() || symbol.is(T::Comma) {
            return false;
        }
    }
    false
}

/// The innermost bracket that is open before a symbol.
fn enclosing(symbols: &[Symbol<'_>], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for i in (0..at.min(symbols.len())).rev() {
        if brackets::closes(&symbols[i]) {
            depth += 1;
        } else if brackets::opens(&symbols[i]).is_some() {
            if depth == 0 {
                return Some(i);
            }
            depth -= 1;
        }
    }
    None
}

/// The smallest part around a mistake that is not given up yet.
fn outward<'a>(symbols: &[Symbol<'_>], word: Word, at: usize) -> Option<(Range<usize>, Vec<Sym<'a>>)> {
    let mut at = at;
    loop {
        let (part, with) = region(symbols, word, at)?;
        let same =
            part.len() == with.len() && symbols[part.clone()].iter().zip(&with).all(|(old, new)| old.sym == *new);
        if !same {
            return Some((part, with));
        }
        at = enclosing(symbols, at)?;
    }
}

/// The part around a mistake that is given up, and what is put there. `None`: the whole item.
fn region<'a>(symbols: &[Symbol<'_>], word: Word, at: usize) -> Option<(Range<usize>, Vec<Sym<'a>>)> {
    let opener = enclosing(symbols, at);
    let open = opener.map(|i| &symbols[i].sym);
    let block = matches!(open, Some(Sym::Token(T::LBrace)));
    let inside = opener.map_or(0, |i| i + 1);
    if word == Word::Operator && block && opener.and_then(|i| enclosing(symbols, i)).is_none() {
        return None;
    }
    // In blocks that need no commas a line is a part.
    let lines = block && matches!(word, Word::Record | Word::Job | Word::Sink) && !arms(symbols, inside);
    let separates = |i: usize| symbols[i].is(T::Comma) || (symbols[i].is(T::Semicolon) && block);
    let new_line = |i: usize| lines && i > inside && symbols[i].first_on_line && !symbols[i].is(T::Pipe);
    // A line that cannot begin like this, unless the line above stops in the middle.
    let begins = |i: usize| i == at && !symbols[i - 1].is(T::Colon) && !symbols[i - 1].is(T::Assign);

    // Walks over whole bracket pairs, forwards from the opener to the end of the part.
    let (mut from, mut i, mut depth) = (inside, inside, 0usize);
    let mut links: Vec<usize> = Vec::new();
    let mut assigned = None;
    let mut to = symbols.len();
    while i < symbols.len() {
        if depth == 0 {
            if brackets::closes(&symbols[i])
                || (i >= at && i > from && new_line(i) && !begins(i))
                || (i >= at && separates(i))
            {
                to = i;
                break;
            }
            if separates(i) {
                from = i + 1;
                links.clear();
            } else if new_line(i) {
                from = i;
                links.clear();
            } else if symbols[i].is(T::Pipe) {
                links.push(i);
            } else if symbols[i].is(T::Assign) && assigned.is_none() {
                assigned = Some(i);
            }
        }
        if brackets::opens(&symbols[i]).is_some() {
            depth += 1;
        } else if brackets::closes(&symbols[i]) {
            depth -= 1;
        }
        i += 1;
    }

    let part = from..to;
    if block && symbols[part.clone()].iter().any(|symbol| symbol.is(T::FatArrow)) {
        return Some((part, vec![Sym::Error, Sym::Token(T::FatArrow), Sym::Error]));
    }
    let chain = opener.is_some() || matches!(word, Word::Stream | Word::Source | Word::Sink);
    let last_before = links.iter().rev().find(|link| **link < at).copied();
    let next = links.iter().find(|link| **link >= at).copied().unwrap_or(to);
    if let (true, Some(link)) = (chain, last_before) {
        return Some((link + 1..next.max(link + 1), vec![Sym::Error]));
    }
    match opener {
        None => {
            let head = match (word, assigned) {
                (Word::Stream | Word::Source, Some(assign)) if assign < at => assign + 1,
                (Word::Sink, _) if at > 0 => 1,
                _ => return None,
            };
            let end = next.max(head);
            // What is left after a whole chain is no part of it.
            Some((head..end, vec![Sym::Error]))
        }
        Some(i) if block && is_record_literal(symbols, i, word) => {
            Some((part, vec![Sym::Token(T::Ellipsis), Sym::Error]))
        }
        // An empty part: something is missing between two separators.
        Some(_) if !links.is_empty() && next < to => Some((from..next, vec![Sym::Error])),
        Some(_) => Some((part, vec![Sym::Error])),
    }
}

/// Whether the block that starts here is that of a `match`.
pub(crate) fn arms(symbols: &[Symbol<'_>], inside: usize) -> bool {
    let mut depth = 0usize;
    for symbol in &symbols[inside..] {
        if depth == 0 && symbol.is(T::FatArrow) {
            return true;
        }
        if brackets::opens(symbol).is_some() {
            depth += 1;
        } else if brackets::closes(symbol) {
            if depth == 0 {
                return false;
            }
            depth -= 1;
        }
    }
    false
}

/// Whether a `{` begins a record literal and not a declaration's or a setting's block, a format string's part or a type.
fn is_record_literal(symbols: &[Symbol<'_>], opener: usize, word: Word) -> bool {
    let Some(before) = opener.checked_sub(1).map(|i| &symbols[i]) else { return false };
    if matches!(before.sym, Sym::FormatStart | Sym::FormatText(_)) || before.is(T::RBrace) || before.is(T::Else) {
        return false;
    }
    match word {
        Word::Operator => {
            before.is(T::Colon)
                || before.is(T::Comma)
                || before.is(T::Assign)
                || before.is(T::LParen)
                || before.sym == Sym::Word(Word::Emit)
        }
        _ => {
            !before.is_name()
                && !before.is(T::RParen)
                && !before.is(T::Arrow)
                && before.sym != Sym::Word(Word::RecordType)
        }
    }
}

/// Where the opening bracket of a stray closer was probably meant to be: where the grammar stops before it, or shortly
/// before that, and goes on past the closer with the bracket put in.
fn missing_opener(
    text: &str,
    symbols: &[Symbol<'_>],
    docs: &Docs,
    closer: usize,
    several: bool,
) -> Option<SyntaxError> {
    let openers = [T::LParen, T::LBracket, T::LBrace];
    let open =
        openers.into_iter().find(|open| brackets::closer(*open).is_some_and(|(close, _)| symbols[closer].is(close)))?;
    let stop = match run(symbols, docs) {
        Err(Failure::Stop(stop)) if stop.at <= closer => stop.at,
        _ => closer,
    };
    // The closer alone is the mistake.
    if stop == closer && !several {
        return None;
    }
    let mut trial = symbols.to_vec();
    for at in (1..=stop).rev().take(LOOK_BACK) {
        trial.insert(at, Symbol::put(Sym::Token(open), symbols[at].span));
        let past = match run(&trial, docs) {
            Ok(_) => true,
            Err(Failure::Stop(stop)) => stop.at > closer + 2,
            Err(Failure::Refused(_)) => false,
        };
        if past && at < closer {
            return Some(explain::missing_opener(text, symbols, at, closer, open));
        }
        trial.remove(at);
    }
    None
}

/// Puts in the closing brackets that are missing: that of the innermost opener at a place, the others at the end, where what
/// cannot belong to the item any more is taken out.
fn close(symbols: &mut Vec<Symbol<'_>>, openers: &[usize], before: usize, place: usize) {
    let end = symbols.get(before).map(|symbol| symbol.span.start);
    let kept = symbols.split_off(before);
    for (number, opener) in openers.iter().rev().enumerate() {
        let Some((close, _)) = brackets::opens(&symbols[*opener]).and_then(brackets::closer) else { continue };
        let at = if number == 0 { place.clamp(opener + 1, symbols.len()) } else { symbols.len() };
        let start = symbols.get(at).map(|next| next.span.start).or(end);
        let start = start.unwrap_or_else(|| symbols[at - 1].span.end);
        symbols.insert(at, Symbol::put(Sym::Token(close), crate::ast::Span { start, end: start }));
    }
    // A closer that stands here belongs to a bracket further out.
    symbols.extend(kept);
}

/// Reports a bracket without its partner, at the most telling place; gives the symbol before which it probably ends.
fn unclosed(text: &str, word: Word, prepared: &mut Prepared<'_>, openers: &[usize], before: usize) -> usize {
    let symbols = &prepared.symbols;
    let innermost = openers.last().copied().unwrap_or(0);
    let mut place = (before, innermost);
    // A line that goes on with `|>` inside a bracket opened on a line above: the bracket was meant to end before.
    let link = (innermost + 1..before)
        .find(|i| symbols[*i].first_on_line && symbols[*i].is(T::Pipe) && enclosing(symbols, *i) == Some(innermost));
    if let Some(link) = link {
        place.0 = link;
    }
    // Or where the grammar cannot go on and would take the closing bracket.
    let mut other = None;
    if let Err(Failure::Stop(stop)) = run(&symbols[..before], &prepared.docs)
        && stop.at < place.0
        && stop.at < before
    {
        let opener = enclosing(symbols, stop.at);
        let close = opener.and_then(|i| brackets::opens(&symbols[i])).and_then(brackets::closer);
        match (opener, close) {
            (Some(opener), Some((_, close))) if stop.expected.has(close) => place = (stop.at, opener),
            _ => other = Place { text, word, symbols, at: stop.at, expected: &stop.expected }.explain().0,
        }
    }
    let fault = explain::unclosed(text, symbols, place.0, place.1);
    prepared.errors.extend(other);
    prepared.errors.push(fault);
    if place.1 == innermost { place.0 } else { before }
}
