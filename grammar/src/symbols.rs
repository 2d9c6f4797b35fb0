//! From an item's tokens to the symbols that the grammar sees.
//!
//! Here literals are decoded, format strings opened into their parts, words told apart that matter only in places, and
//! what other languages write is answered and replaced by what was meant (`foreign`), so that one such mistake is one
//! message and the grammar goes on. Spans are relative to the item's first byte. Brackets are [`crate::brackets`]'s.

mod foreign;

use crate::LIMITS;
use crate::ast::{Literal, Span};
use crate::error::{self, SyntaxError};
use crate::items::item_word;
use crate::literal::{self, Piece};
use crate::token::{Token, TokenKind, lex};
use foreign::lookalike;
use std::collections::HashMap;

/// Format strings inside format strings that are still read.
const FORMAT_NESTING: usize = 8;

/// Words that mean something only in some places; everywhere else they are names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    Job,
    Param,
    Const,
    Record,
    Source,
    Stream,
    Sink,
    Fn,
    Operator,
    Use,
    Native,
    NativeSource,
    NativeShuffle,
    NativeSink,
    NativeFn,
    NativeAgg,
    /// `list` before `<`, where it begins a type.
    List,
    /// `record` before `{`, where it begins a type.
    RecordType,
    /// `rule` after `->`.
    Rule,
    Then,
    Row,
    Agg,
    Pair,
    Range,
    State,
    On,
    Let,
    Emit,
    By,
    Decimal,
}

/// Words that the grammar itself takes as names where they mean nothing.
const SOFT_WORDS: &[(&str, Word)] = &[
    ("then", Word::Then),
    ("row", Word::Row),
    ("agg", Word::Agg),
    ("pair", Word::Pair),
    ("range", Word::Range),
    ("state", Word::State),
    ("on", Word::On),
    ("let", Word::Let),
    ("emit", Word::Emit),
    ("by", Word::By),
    ("decimal", Word::Decimal),
];

/// The roles of native declarations.
pub(crate) const ROLES: &[(&str, Word)] = &[
    ("source", Word::NativeSource),
    ("shuffle", Word::NativeShuffle),
    ("sink", Word::NativeSink),
    ("fn", Word::NativeFn),
    ("agg", Word::NativeAgg),
];

/// What the grammar calls a terminal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sym<'a> {
    Name(&'a str),
    Int(i128),
    String(String),
    Literal(Literal),
    FormatStart,
    FormatText(String),
    FormatEnd,
    /// A place where a mistake was reported.
    Error,
    Word(Word),
    /// A reserved word or a punctuation mark.
    Token(TokenKind),
}

/// A terminal with its place in the item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symbol<'a> {
    pub sym: Sym<'a>,
    pub span: Span,
    pub first_on_line: bool,
    /// A name written in backticks: never one of the words.
    quoted: bool,
}

impl<'a> Symbol<'a> {
    /// A symbol that stands for others or for none.
    pub fn put(sym: Sym<'a>, span: Span) -> Self {
        Symbol { sym, span, first_on_line: false, quoted: false }
    }

    /// Whether it is this reserved word or punctuation mark.
    pub fn is(&self, kind: TokenKind) -> bool {
        self.sym == Sym::Token(kind)
    }

    /// Whether it can be a name.
    pub fn is_name(&self) -> bool {
        matches!(self.sym, Sym::Name(_) | Sym::Word(_))
    }
}

/// The documentation inside an item, by the place of what it documents.
#[derive(Debug, Default)]
pub struct Docs {
    above: HashMap<u32, String>,
}

impl Docs {
    /// The text of the `///` lines directly above the token at this byte of the item.
    pub(crate) fn above(&self, start: u32) -> Option<String> {
        self.above.get(&start).cloned()
    }
}

/// The text of a doc comment's line, without its mark and one blank.
pub(crate) fn doc_line(text: &str) -> &str {
    let line = text.get(3..).unwrap_or("");
    line.strip_prefix(' ').unwrap_or(line).trim_end()
}

/// An item ready for the grammar.
#[derive(Debug, Default)]
pub(crate) struct Prepared<'a> {
    pub symbols: Vec<Symbol<'a>>,
    pub docs: Docs,
    /// Mistakes found so far, relative to the item.
    pub errors: Vec<SyntaxError>,
    /// A literal or a comment without its end may have swallowed anything: nothing more can be said about the item.
    pub swallowed: bool,
}

/// Turns an item's tokens into symbols. `start` is the item's first byte.
pub(crate) fn prepare<'a>(text: &'a str, tokens: &[Token], start: u32, word: Word) -> Prepared<'a> {
    let mut builder =
        Builder { text, start, word, out: Prepared::default(), line_start: true, docs: Vec::new(), lost: false };
    builder.out.symbols.reserve(tokens.len());
    builder.push_all(tokens, 0, 0);
    builder.words();
    builder.out
}

struct Builder<'a> {
    text: &'a str,
    start: u32,
    word: Word,
    out: Prepared<'a>,
    line_start: bool,
    docs: Vec<&'a str>,
    /// A text or a comment over several lines has no end: what follows is probably its content.
    lost: bool,
}

impl<'a> Builder<'a> {
    /// Adds tokens whose spans are `base` bytes short of the file's.
    fn push_all(&mut self, tokens: &[Token], base: u32, nesting: usize) {
        let mut unknown_end = None;
        for token in tokens {
            if self.lost {
                return;
            }
            let at = token.span.shift(base);
            let text = self.text.get(at.start as usize..at.end as usize).unwrap_or("");
            let span = Span { start: at.start - self.start, end: at.end - self.start };
            if token.kind == TokenKind::Unknown
                && let Some(name) = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'))
            {
                self.out.errors.push(
                    SyntaxError::new(
                        error::UNKNOWN_CHARACTER,
                        span,
                        format!("`{text}` has no meaning here"),
                        "a variable of another language",
                    )
                    .help(format!(
                        "a parameter or a field is written by its name, `{name}`; in a text: `f\"{{{name}}}\"`"
                    ))
                    .fix(span, name),
                );
                self.emit(Sym::Name(name), span, false);
                continue;
            }
            if token.kind == TokenKind::Unknown {
                // A run of unknown characters is one mistake.
                if unknown_end != Some(at.start) || lookalike(text).is_some() {
                    self.unknown(text, span);
                }
                unknown_end = Some(at.end);
                continue;
            }
            self.push(token.kind, text, span, nesting);
        }
    }

    fn emit(&mut self, sym: Sym<'a>, span: Span, quoted: bool) {
        if !self.docs.is_empty() {
            let doc = std::mem::take(&mut self.docs).join("\n");
            self.out.docs.above.insert(span.start, doc);
        }
        let first_on_line = std::mem::take(&mut self.line_start);
        self.out.symbols.push(Symbol { sym, span, first_on_line, quoted });
    }

    /// Runs a reader of a literal and places its faults.
    fn read<T>(&mut self, span: Span, reader: impl FnOnce(&mut Vec<SyntaxError>) -> T) -> T {
        let mut faults = Vec::new();
        let value = reader(&mut faults);
        self.out.errors.extend(faults.into_iter().map(|fault| fault.shift(span.start)));
        value
    }

    fn push(&mut self, kind: TokenKind, text: &'a str, span: Span, nesting: usize) {
        use TokenKind::*;
        match kind {
            Whitespace | Comment | FileDoc => self.line_start |= text.contains('\n'),
            Doc => self.docs.push(doc_line(text)),
            BlockComment | HashComment => self.comment(kind, text, span),
            Name => self.emit(Sym::Name(text), span, false),
            QuotedName => self.quoted_name(text, span),
            Number => {
                let sym = match self.read(span, |faults| literal::number(text, faults)) {
                    Literal::Int(value) => Sym::Int(value),
                    other => Sym::Literal(other),
                };
                self.emit(sym, span, false);
            }
            DateTime => {
                let value = self.read(span, |faults| literal::date_time(text, faults));
                self.emit(Sym::Literal(value), span, false);
            }
            String => self.text_literal(span, |faults| literal::string(text, "\"", "\"", true, faults)),
            RawString => self.text_literal(span, |faults| literal::string(text, "r\"", "\"", false, faults)),
            TripleString => {
                self.text_literal(span, |faults| literal::triple(text, faults));
                self.lost |= self.out.swallowed;
            }
            FormatString => self.format(text, span, nesting),
            SingleQuoted => self.single_quoted(text, span),
            ForeignOperator => self.foreign(text, span),
            Semicolon if self.word != Word::Operator && self.line_start => {
                self.out.errors.push(
                    SyntaxError::new(error::COMMENT_FORM, span, "comments do not start with `;`", "not a comment here")
                        .help("start every line of a comment with `//`")
                        .fix(span, "//"),
                );
            }
            Semicolon if self.word != Word::Operator => self.out.errors.push(
                SyntaxError::new(error::SEMICOLON, span, "nothing is ended with `;` here", "not needed")
                    .help("leave it out; only statements of an operator end in `;`")
                    .fix(span, ""),
            ),
            _ => self.emit(Sym::Token(kind), span, false),
        }
    }

    fn text_literal(&mut self, span: Span, reader: impl FnOnce(&mut Vec<SyntaxError>) -> (String, bool)) {
        let (value, closed) = self.read(span, reader);
        if !closed {
            self.out.swallowed = true;
            // Where one quote is missing, what stands before it on its line was the inside of a text.
            let before = self.text.get(self.start as usize..(self.start + span.start) as usize).unwrap_or("");
            let line = before.rfind('\n').map_or(0, |at| at as u32 + 1);
            self.out.errors.retain(|fault| fault.span.start < line || fault.span.start >= span.start);
        }
        self.emit(Sym::String(value), span, false);
    }

    fn comment(&mut self, kind: TokenKind, text: &str, span: Span) {
        let (open, closed) =
            if kind == TokenKind::HashComment { ("#", true) } else { ("/*", text.ends_with("*/") && text.len() > 3) };
        let fault = if closed {
            let line = Span::new(span.start as usize, span.start as usize + open.len());
            SyntaxError::new(
                error::COMMENT_FORM,
                line,
                format!("comments do not start with `{open}`"),
                "not a comment here",
            )
            .help("start every line of a comment with `//`")
        } else {
            self.out.swallowed = true;
            self.lost = true;
            literal::unterminated(text, "this comment", "*/")
                .shift(span.start)
                .help("comments are lines that start with `//`")
        };
        let fault = if open == "#" { fault.fix(Span { end: span.start + 1, ..span }, "//") } else { fault };
        self.out.errors.push(fault);
        self.line_start |= text.contains('\n');
    }

    fn quoted_name(&mut self, text: &'a str, span: Span) {
        let name = text.strip_prefix('`').unwrap_or(text);
        let name = match name.strip_suffix('`') {
            Some("") => {
                self.out.errors.push(
                    SyntaxError::new(error::EXPECTED_NAME, span, "there is no name between these backticks", "empty")
                        .help("write the name: `` `order id` ``"),
                );
                "_"
            }
            Some(name) => name,
            None => {
                let fault = literal::unterminated(text, "this name", "`").shift(span.start);
                self.out.errors.push(fault);
                self.out.swallowed = true;
                name
            }
        };
        self.emit(Sym::Name(name), span, true);
    }

    fn format(&mut self, text: &'a str, span: Span, nesting: usize) {
        if nesting >= FORMAT_NESTING {
            let message = format!("more than {FORMAT_NESTING} format strings inside one another");
            self.out.errors.push(
                SyntaxError::new(error::TOO_DEEP, span, message, "too deep")
                    .help("compute the inner texts in a `derive` before"),
            );
            return self.emit(Sym::String(String::new()), span, false);
        }
        let (pieces, closed) = self.read(span, |faults| literal::format(text, faults));
        if !closed {
            self.out.swallowed = true;
            return self.emit(Sym::String(String::new()), span, false);
        }
        let at = |from: usize, to: usize| Span::new(span.start as usize + from, span.start as usize + to);
        self.emit(Sym::FormatStart, at(0, 2), false);
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.emit(Sym::FormatText(text), span, false),
                Piece::Code(from, to) => {
                    self.emit(Sym::Token(TokenKind::LBrace), at(from - 1, from), false);
                    let code = text.get(from..to).unwrap_or("");
                    self.push_all(&lex(code), self.start + span.start + from as u32, nesting + 1);
                    self.emit(Sym::Token(TokenKind::RBrace), at(to, to + 1), false);
                }
            }
        }
        self.emit(Sym::FormatEnd, at(text.len() - 1, text.len()), false);
    }

    /// Tells the words apart, now that their neighbours are known.
    fn words(&mut self) {
        let symbols = &mut self.out.symbols;
        for i in 0..symbols.len() {
            let Sym::Name(text) = symbols[i].sym else { continue };
            if symbols[i].quoted {
                continue;
            }
            let before = i.checked_sub(1).map(|i| &symbols[i]);
            let after = symbols.get(i + 1);
            let word = match (text, i) {
                (_, 0) => item_word(text),
                (_, 1) if self.word == Word::Native => {
                    ROLES.iter().find(|(role, _)| *role == text).map(|(_, word)| *word)
                }
                ("list", _) => begins_list_type(&symbols[i + 1..]).then_some(Word::List),
                ("record", _) => (after.is_some_and(|a| a.is(TokenKind::LBrace))
                    && before.is_some_and(may_precede_type))
                .then_some(Word::RecordType),
                ("rule", _) => (before.is_some_and(|b| b.is(TokenKind::Arrow)) && after.is_some_and(Symbol::is_name))
                    .then_some(Word::Rule),
                _ => SOFT_WORDS.iter().find(|(soft, _)| *soft == text).map(|(_, word)| *word),
            };
            if let Some(word) = word {
                symbols[i].sym = Sym::Word(word);
            }
        }
    }
}

/// What stands before a type `record { … }`; elsewhere `record` is a name (`match record { … }`).
const TYPE_MAY_FOLLOW: &[TokenKind] = &[
    TokenKind::Colon,
    TokenKind::LParen,
    TokenKind::Comma,
    TokenKind::Lt,
    TokenKind::As,
    TokenKind::Question,
    TokenKind::Arrow,
];

fn may_precede_type(symbol: &Symbol<'_>) -> bool {
    TYPE_MAY_FOLLOW.iter().any(|kind| symbol.is(*kind))
        || matches!(symbol.sym, Sym::Word(Word::Row | Word::Agg | Word::Pair))
}

/// Whether what follows `list` makes it a type: in `list < 3` it is a field.
fn begins_list_type(rest: &[Symbol<'_>]) -> bool {
    let mut rest = rest;
    // Deeper types than this are refused anyway; the bound keeps the look ahead short.
    for _ in 0..LIMITS.nesting {
        let [open, inner, after, ..] = rest else { return false };
        if !open.is(TokenKind::Lt) || !inner.is_name() {
            return false;
        }
        let kinds = [TokenKind::Gt, TokenKind::Ge, TokenKind::Question];
        match &inner.sym {
            _ if kinds.iter().any(|kind| after.is(*kind)) => return true,
            Sym::Name("decimal") | Sym::Word(Word::Decimal) => return after.is(TokenKind::LParen),
            Sym::Name("record") => return after.is(TokenKind::LBrace),
            Sym::Name("list") => rest = &rest[2..],
            _ => return false,
        }
    }
    true
}
