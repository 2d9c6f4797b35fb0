//! Cuts a file's tokens into items.
//!
//! An item starts at an item word that is first on its line and followed by a name (or a text after `use`, `{` after
//! `sink`), whatever the bracket depth: a bracket left open costs one item. Where no bracket is open, a line that starts
//! with two words in a row starts an unknown item, so that a misspelt item word costs only itself as well.

use crate::symbols::Word;
use crate::token::{Token, TokenKind};
use std::ops::Range;

/// The item words with what they declare.
pub(crate) const ITEM_WORDS: &[(&str, Word)] = &[
    ("job", Word::Job),
    ("param", Word::Param),
    ("const", Word::Const),
    ("record", Word::Record),
    ("source", Word::Source),
    ("stream", Word::Stream),
    ("sink", Word::Sink),
    ("fn", Word::Fn),
    ("operator", Word::Operator),
    ("use", Word::Use),
    ("native", Word::Native),
];

/// Words that begin a statement of an operator.
const OPERATOR_WORDS: &[&str] = &["state", "on", "let", "emit"];

/// Words that begin a line of an SQL statement.
pub(crate) const SQL_WORDS: &[&str] = &[
    "select", "from", "where", "group", "order", "having", "limit", "insert", "update", "delete", "create", "with",
    "values", "set", "inner", "left", "right", "full", "join", "union", "into",
];

/// The tokens of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Indices of its tokens: from its documentation, if it has one, to its last token.
    pub tokens: Range<usize>,
    /// Index of its first token that is no trivia.
    pub first: usize,
    /// The item word; `None` for text that belongs to no item.
    pub word: Option<Word>,
}

/// The item word that `text` is.
pub(crate) fn item_word(text: &str) -> Option<Word> {
    ITEM_WORDS.iter().find(|(word, _)| *word == text).map(|(_, word)| *word)
}

/// The item word that `text` was probably meant to be.
pub(crate) fn nearest_item_word(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let near = ITEM_WORDS.iter().map(|(word, _)| (distance(&lower, word), *word)).min();
    near.filter(|(distance, word)| *distance <= 2 && *distance < word.len().min(lower.chars().count()))
        .map(|(_, word)| word)
}

/// Edits between two words, a swap of neighbours counted as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(20).collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// A token that is no trivia.
struct Solid {
    index: usize,
    kind: TokenKind,
    first_on_line: bool,
    /// A text or a comment over several lines has no end before this token: what follows is probably its content.
    lost: bool,
}

/// Cuts the tokens of `text` into items and the text between them, in order, nothing left out but trivia.
pub(crate) fn cut(text: &str, tokens: &[Token]) -> Vec<Cut> {
    let mut solid: Vec<Solid> = Vec::with_capacity(tokens.len() / 2);
    let mut line_start = true;
    let mut lost = false;
    for (index, token) in tokens.iter().enumerate() {
        if token.kind.is_trivia() {
            line_start |= token.text(text).contains('\n');
            lost |= token.kind == TokenKind::BlockComment && !token.text(text).ends_with("*/");
        } else {
            solid.push(Solid { index, kind: token.kind, first_on_line: line_start, lost });
            line_start = false;
            let content = token.text(text).strip_prefix("\"\"\"");
            lost = token.kind == TokenKind::TripleString && !content.is_some_and(|content| content.ends_with("\"\"\""));
        }
    }

    let mut starts: Vec<(usize, Option<Word>)> = Vec::new();
    let mut depth = 0usize;
    let mut lost = false;
    for (i, token) in solid.iter().enumerate() {
        lost |= token.lost;
        if token.first_on_line || i == 0 {
            let start =
                Start { text, tokens, solid: &solid, i, depth, current: starts.last().map(|(at, word)| (*at, *word)) };
            if let Some(word) = start.find().filter(|word| i == 0 || word.is_some() || !lost) {
                starts.push((i, word));
                depth = 0;
                lost = token.lost && i == 0;
            }
        }
        match token.kind {
            TokenKind::LParen | TokenKind::LBracket | TokenKind::LBrace => depth += 1,
            TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
    }

    let mut cuts = Vec::with_capacity(starts.len());
    for (n, (at, word)) in starts.iter().enumerate() {
        let end = starts.get(n + 1).map_or(solid.len(), |(next, _)| *next);
        let first = solid[*at].index;
        // Documentation belongs to the item below it.
        let before = at.checked_sub(1).map_or(0, |before| solid[before].index + 1);
        let documented = (before..first).find(|i| tokens[*i].kind == TokenKind::Doc);
        cuts.push(Cut { tokens: documented.unwrap_or(first)..solid[end - 1].index + 1, first, word: *word });
    }
    cuts
}

/// A place where an item may start.
struct Start<'a> {
    text: &'a str,
    tokens: &'a [Token],
    solid: &'a [Solid],
    /// Index into `solid`.
    i: usize,
    depth: usize,
    /// Where the item before starts, and what it is.
    current: Option<(usize, Option<Word>)>,
}

impl Start<'_> {
    fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.solid.get(self.i + ahead).map(|token| token.kind)
    }

    fn word_at(&self, ahead: usize) -> &str {
        self.solid.get(self.i + ahead).map_or("", |token| self.tokens[token.index].text(self.text))
    }

    /// `Some` where an item starts: with its word, or `None` inside where it has none that is known.
    fn find(&self) -> Option<Option<Word>> {
        use TokenKind::*;
        let word = if self.kind(0) == Some(Name) { item_word(self.word_at(0)) } else { None };
        if word.is_some_and(|word| self.follows(word)) {
            return Some(word);
        }
        if self.i == 0 {
            return Some(None);
        }
        (self.depth == 0 || self.at_column_zero()).then(|| self.unknown()).flatten().map(|()| None)
    }

    /// Whether what comes after an item word makes it one.
    fn follows(&self, word: Word) -> bool {
        use TokenKind::*;
        // After its word a reserved word or a punctuation mark is a mistake, but outside all brackets nothing else
        // could be meant.
        let outside = self.i == 0 || (self.depth == 0 && self.previous_may_end());
        match (word, self.kind(1)) {
            (Word::Use, Some(next)) => matches!(next, String | RawString) || (outside && next == Name),
            (Word::Native, Some(next)) => next == Name,
            (Word::Sink, Some(LBrace)) => true,
            (_, Some(Name | QuotedName)) => self.word_at(1) != "then",
            (_, Some(LBrace | Assign)) => outside,
            (_, Some(Number)) => outside,
            (_, Some(next)) => {
                outside && next.is_reserved() && self.kind(2).is_some_and(|k| !matches!(k, Name | Number | LParen))
            }
            (_, None) => outside,
        }
    }

    fn at_column_zero(&self) -> bool {
        let start = self.tokens[self.solid[self.i].index].span.start as usize;
        start == 0 || self.text.as_bytes()[start - 1] == b'\n'
    }

    /// Whether the token before can end an item.
    fn previous_may_end(&self) -> bool {
        use TokenKind::*;
        match self.i.checked_sub(1).map(|i| self.solid[i].kind) {
            None => true,
            Some(kind) => matches!(
                kind,
                Name | QuotedName
                    | Number
                    | DateTime
                    | String
                    | RawString
                    | TripleString
                    | FormatString
                    | SingleQuoted
                    | True
                    | False
                    | Null
                    | RParen
                    | RBracket
                    | RBrace
                    | Question
                    | Gt
                    | Semicolon
            ),
        }
    }

    /// `Some` where two words in a row start a line outside all brackets: an item word that does not exist.
    fn unknown(&self) -> Option<()> {
        use TokenKind::*;
        let (at, word) = self.current?;
        let here = self.word_at(0);
        if self.kind(0) != Some(Name) || here == "then" || !self.previous_may_end() || self.i == at + 1 {
            return None;
        }
        let lower = here.to_lowercase();
        let two_words = matches!(self.kind(1), Some(Name | QuotedName)) && self.word_at(1) != "then";
        let of_operator = word == Some(Word::Operator) && OPERATOR_WORDS.contains(&here);
        if self.depth > 0 {
            // Inside a bracket left open only a word that is nearly an item word will do.
            let like_item = matches!(self.kind(2), Some(Assign | LBrace | Colon | LParen | Pipe));
            return (two_words && like_item && !of_operator && nearest_item_word(here).is_some()).then_some(());
        }
        let statement = lower == "select" && matches!(self.kind(1), Some(Star | Number));
        // The clauses of a native declaration and the lines of a statement are words in a row.
        let goes_on = match word {
            Some(Word::Native) => !self.at_column_zero(),
            Some(Word::Operator) => of_operator,
            Some(_) => false,
            None => {
                let first = self.tokens[self.solid[at].index].text(self.text).to_lowercase();
                SQL_WORDS.contains(&first.as_str()) && SQL_WORDS.contains(&lower.as_str())
            }
        };
        ((two_words || statement) && !goes_on).then_some(())
    }
}
