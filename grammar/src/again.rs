//! Tokens and cuts of a text of which an earlier one was parsed: what stands before and behind the change is taken over.
//!
//! The lexer looks at nothing before a token, and hardly behind it; where an item with a known word starts, the cutter
//! forgets what was before. So both can start again a little before the change, and stop where they meet what they made of the
//! earlier text. It may not know what items mean.

use crate::Parse;
use crate::ast::{Item, Span};
use crate::items::{self, Cut};
use crate::token::{Token, TokenKind, lex, lex_from};

/// A text's tokens and cuts, and how many of the cuts are the earlier text's.
pub(crate) struct Again {
    pub tokens: Vec<Token>,
    pub cuts: Vec<Cut>,
    /// Cuts at the start that were there before, at the same place.
    front: usize,
    /// Cuts at the end that were there before, so many bytes nearer to the start.
    back: usize,
    shift: i64,
}

impl Again {
    /// Of a text that shares nothing with an earlier one.
    pub fn afresh(text: &str) -> Again {
        let tokens = lex(text);
        let cuts = items::cut(text, &tokens);
        Again { tokens, cuts, front: 0, back: 0, shift: 0 }
    }

    /// The earlier item of a cut that was taken over, if it was sound.
    pub fn item(&self, earlier: &Parse, number: usize) -> Option<Item> {
        let start = i64::from(self.tokens[self.cuts[number].tokens.start].span.start);
        let before = match (number < self.front, number + self.back >= self.cuts.len()) {
            (true, _) => start,
            (false, true) => start - self.shift,
            (false, false) => return None,
        };
        let items = &earlier.file.items;
        let found = items.binary_search_by_key(&before, |item| i64::from(item.start)).ok()?;
        Some(Item { start: start as u32, ..items[found].clone() })
    }

    /// Which bytes of the earlier text its cuts that are not taken over span, at most.
    pub fn changed(&self, earlier_text: &str, earlier: &Parse) -> std::ops::Range<u32> {
        let at = |cut: Option<&Cut>| cut.and_then(|cut| Some(earlier.tokens.get(cut.tokens.start)?.span.start));
        let cuts = &earlier.cuts;
        let start = at(cuts.get(self.front)).unwrap_or(0);
        start..at(cuts.get(cuts.len() - self.back)).unwrap_or(earlier_text.len() as u32)
    }
}

/// Cuts before the change that are made anew: what the cutter looks ahead may reach so far.
const BEFORE: usize = 3;
/// Cuts behind the change that are made anew, the first of which must come out as it was.
const BEHIND: usize = 3;

/// The tokens and cuts of a text; the same as those of [`Again::afresh`].
pub(crate) fn again(text: &str, earlier_text: &str, earlier: &Parse) -> Again {
    let Some(lexed) = lex_again(text, earlier_text, &earlier.tokens) else { return Again::afresh(text) };
    let Lexed { tokens, kept, tail } = lexed;
    let shift = text.len() as i64 - earlier_text.len() as i64;
    let Some((cuts, front, back)) = cut_again(text, &tokens, kept, tail, earlier) else {
        let cuts = items::cut(text, &tokens);
        return Again { tokens, cuts, front: 0, back: 0, shift };
    };
    Again { tokens, cuts, front, back, shift }
}

/// A text's tokens, of which some are the earlier text's.
struct Lexed {
    tokens: Vec<Token>,
    /// How many at the start.
    kept: usize,
    /// How many at the end.
    tail: usize,
}

/// Tokens whose end was looked for in the whole rest of the text, in vain.
fn looked_far(token: &Token, text: &str) -> bool {
    match token.kind {
        TokenKind::BlockComment => !token.text(text).ends_with("*/"),
        TokenKind::TripleString => {
            let content = token.text(text).strip_prefix("\"\"\"");
            !content.is_some_and(|content| content.ends_with("\"\"\""))
        }
        _ => false,
    }
}

fn lex_again(text: &str, earlier_text: &str, earlier: &[Token]) -> Option<Lexed> {
    let (new, old) = (text.as_bytes(), earlier_text.as_bytes());
    let prefix = same_start(new, old);
    let suffix = same_end(&new[prefix..], &old[prefix..]);
    // No token looks past the end of its line, but for those that end on no line. A mark of the byte order is one at the start only.
    let line = old[..prefix].iter().rposition(|byte| *byte == b'\n')? as u32;
    let kept = earlier.partition_point(|token| token.span.end <= line);
    if kept == 0 || earlier[..kept].iter().any(|token| looked_far(token, earlier_text)) {
        return None;
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(earlier.len() + 64);
    tokens.extend_from_slice(&earlier[..kept]);
    let start = earlier[kept - 1].span.end as usize;
    let (unchanged, shift) = (new.len() - suffix, new.len() as i64 - old.len() as i64);
    let mut meeting = kept;
    for token in lex_from(text, start) {
        let place = i64::from(token.span.start) - shift;
        if token.span.start as usize >= unchanged {
            while earlier.get(meeting).is_some_and(|old| i64::from(old.span.start) < place) {
                meeting += 1;
            }
            if earlier.get(meeting).is_some_and(|old| i64::from(old.span.start) == place) {
                let moved = |at: u32| (i64::from(at) + shift) as u32;
                let rest = earlier[meeting..].iter().map(|old| Token {
                    kind: old.kind,
                    span: Span { start: moved(old.span.start), end: moved(old.span.end) },
                });
                tokens.extend(rest);
                return Some(Lexed { tokens, kept, tail: earlier.len() - meeting });
            }
        }
        tokens.push(token);
    }
    Some(Lexed { tokens, kept, tail: 0 })
}

/// Bytes that are compared at once.
const CHUNK: usize = 256;

/// How many bytes two texts share at the start.
fn same_start(a: &[u8], b: &[u8]) -> usize {
    let chunks = CHUNK * a.chunks(CHUNK).zip(b.chunks(CHUNK)).take_while(|(a, b)| a.len() == CHUNK && a == b).count();
    chunks + a[chunks..].iter().zip(&b[chunks..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes two texts share at the end.
fn same_end(a: &[u8], b: &[u8]) -> usize {
    let chunks = CHUNK * a.rchunks(CHUNK).zip(b.rchunks(CHUNK)).take_while(|(a, b)| a.len() == CHUNK && a == b).count();
    let rest = a[..a.len() - chunks].iter().rev().zip(b[..b.len() - chunks].iter().rev());
    chunks + rest.take_while(|(a, b)| a == b).count()
}

/// The cuts, and how many at the start and at the end are the earlier ones.
fn cut_again(
    text: &str,
    tokens: &[Token],
    kept: usize,
    tail: usize,
    earlier: &Parse,
) -> Option<(Vec<Cut>, usize, usize)> {
    let cuts = &earlier.cuts;
    let moved = |at: usize| at + tokens.len() - earlier.tokens.len();
    let known = |cut: &Cut| cut.word.is_some();
    // The first cut that is made anew starts with a known word, as it did.
    let whole = cuts.partition_point(|cut| cut.tokens.end <= kept);
    let front = cuts[..whole.checked_sub(BEFORE)? + 1].iter().rposition(known)?;
    let from = cuts[front].first;
    // The first one that must come out as it was.
    let behind = cuts.partition_point(|cut| cut.first < earlier.tokens.len() - tail);
    let meeting = behind + cuts[behind..].iter().position(known)?;
    let to = cuts.get(meeting + BEHIND).map_or(tokens.len(), |cut| moved(cut.tokens.start));
    let met = moved(cuts[meeting].first);
    let window = items::cut(text, tokens.get(from..to)?);
    let position = window.iter().position(|cut| cut.first + from == met && cut.word.is_some())?;
    let mut made: Vec<Cut> = Vec::with_capacity(cuts.len() + 4);
    made.extend_from_slice(&cuts[..front]);
    let anew = window[..position].iter().map(|cut| Cut {
        tokens: cut.tokens.start + from..cut.tokens.end + from,
        first: cut.first + from,
        word: cut.word,
    });
    made.extend(anew);
    // Its documentation stands before it.
    if let Some(first) = made.get_mut(front) {
        first.tokens.start = cuts[front].tokens.start;
    }
    let back = cuts[meeting..].iter().map(|cut| Cut {
        tokens: moved(cut.tokens.start)..moved(cut.tokens.end),
        first: moved(cut.first),
        word: cut.word,
    });
    made.extend(back);
    let mut taken_over = cuts.len() - meeting;
    if let Some(met) = made.get_mut(front + position) {
        met.tokens.start = window[position].tokens.start + from;
        if met.tokens.start < tokens.len() - tail {
            taken_over -= 1;
        }
    }
    Some((made, front, taken_over))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key in one of a thousand streams: the rest of the text is neither cut into tokens nor into items anew.
    #[test]
    fn most_is_taken_over() {
        let streams = (0..1000).map(|n| format!("/// Step {n}.\nstream s{n} = r |> filter(id > {n})\n\n"));
        let text: String = streams.collect();
        let earlier = crate::parse(&text);
        for (from, to) in [
            ("id > 500", "id > 5000"),
            ("s500 =", "s500="),
            ("/// Step 500.", "/// Step 500"),
            ("r |> filter(id > 500)", "("),
        ] {
            let edited = text.replacen(from, to, 1);
            let made = again(&edited, &text, &earlier);
            assert!(made.front + made.back > 990, "{to}: {} and {}", made.front, made.back);
            let changed = made.changed(&text, &earlier);
            assert!(changed.len() < 500, "{to}: {changed:?}");
        }
        // A text over several lines may end anywhere.
        let made = again(&text.replacen("s500", "\"\"\"", 1), &text, &earlier);
        assert!(made.front > 490, "{}", made.front);
    }
}
