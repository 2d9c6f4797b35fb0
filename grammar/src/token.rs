//! Tokens: what the lexer cuts a file into.
//!
//! Lossless: the texts of a file's tokens, joined, are the file. A token carries its kind and its place, never a
//! decoded value: decoding (and complaining about the content) is `crate::literal`'s. Item words such as `job` and
//! `stream` are plain names here; only reserved words have kinds of their own. What other languages write (`&&`, `'…'`,
//! `#`) has kinds too, so that it can be answered with what is written here.

use crate::ast::Span;
use crate::scan;
use logos::{Lexer, Logos};

/// One token with its absolute place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands, in bytes from the start of the file.
    pub span: Span,
}

impl Token {
    /// The token's text in the file it was cut from.
    pub fn text<'a>(&self, file: &'a str) -> &'a str {
        file.get(self.span.start as usize..self.span.end as usize).unwrap_or("")
    }
}

/// The kinds of tokens.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// Spaces, tabs and line ends.
    #[regex(r"[ \t\r\n]+")]
    Whitespace,
    /// `// …` to the end of the line.
    #[regex(r"//[^\n]*", priority = 5, allow_greedy = true)]
    Comment,
    /// `/// …`: documents the item, field or parameter below.
    #[regex(r"///([^/\n][^\n]*)?", priority = 10, allow_greedy = true)]
    Doc,
    /// `//! …`: documents the file.
    #[regex(r"//![^\n]*", priority = 10, allow_greedy = true)]
    FileDoc,
    /// `/* … */`, which the language does not have.
    #[token("/*", |l| bump(l, scan::block_comment))]
    BlockComment,
    /// `# …`, which the language does not have.
    #[regex(r"#[^\n]*", allow_greedy = true)]
    HashComment,

    /// A name, item words included.
    #[regex(r"[\p{XID_Start}_]\p{XID_Continue}*", priority = 2)]
    Name,
    /// A name in backticks.
    #[token("`", |l| bump(l, |rest| scan::to_delimiter(rest, b'`')))]
    QuotedName,
    /// A run of digits with the letters after it: numbers, durations, sizes.
    #[regex(r"[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?\p{XID_Continue}*")]
    Number,
    /// `@2026-01-31`, `@10:00:00` and their like.
    #[token("@", |l| bump(l, scan::date_time))]
    DateTime,
    /// `"…"`
    #[token("\"", |l| bump(l, scan::string))]
    String,
    /// `r"…"`
    #[token("r\"", |l| bump(l, |rest| scan::to_delimiter(rest, b'"')))]
    RawString,
    /// `"""…"""`
    #[token("\"\"\"", |l| bump(l, scan::triple_string))]
    TripleString,
    /// `f"…"`, nested expressions included.
    #[token("f\"", |l| bump(l, scan::format_string))]
    FormatString,
    /// `'…'`, which the language does not have.
    #[token("'", |l| bump(l, |rest| scan::to_delimiter(rest, b'\'')))]
    SingleQuoted,

    /// `and`
    #[token("and")]
    And,
    /// `or`
    #[token("or")]
    Or,
    /// `not`
    #[token("not")]
    Not,
    /// `in`
    #[token("in")]
    In,
    /// `is`
    #[token("is")]
    Is,
    /// `between`
    #[token("between")]
    Between,
    /// `like`
    #[token("like")]
    Like,
    /// `matches`
    #[token("matches")]
    Matches,
    /// `as`
    #[token("as")]
    As,
    /// `if`
    #[token("if")]
    If,
    /// `else`
    #[token("else")]
    Else,
    /// `match`
    #[token("match")]
    Match,
    /// `true`
    #[token("true")]
    True,
    /// `false`
    #[token("false")]
    False,
    /// `null`
    #[token("null")]
    Null,
    /// `div`
    #[token("div")]
    Div,

    /// `(`
    #[token("(")]
    LParen,
    /// `)`
    #[token(")")]
    RParen,
    /// `[`
    #[token("[")]
    LBracket,
    /// `]`
    #[token("]")]
    RBracket,
    /// `{`
    #[token("{")]
    LBrace,
    /// `}`
    #[token("}")]
    RBrace,
    /// `,`
    #[token(",")]
    Comma,
    /// `:`
    #[token(":")]
    Colon,
    /// `=`
    #[token("=")]
    Assign,
    /// `==`
    #[token("==")]
    EqEq,
    /// `!=`
    #[token("!=")]
    NotEq,
    /// `<`
    #[token("<")]
    Lt,
    /// `<=`
    #[token("<=")]
    Le,
    /// `>`
    #[token(">")]
    Gt,
    /// `>=`
    #[token(">=")]
    Ge,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `/`
    #[token("/")]
    Slash,
    /// `%`
    #[token("%")]
    Percent,
    /// `?`
    #[token("?")]
    Question,
    /// `??`
    #[token("??")]
    Coalesce,
    /// `.`
    #[token(".")]
    Dot,
    /// `..`
    #[token("..")]
    Range,
    /// `...`
    #[token("...")]
    Ellipsis,
    /// `|>`
    #[token("|>")]
    Pipe,
    /// `|`
    #[token("|")]
    Bar,
    /// `->`
    #[token("->")]
    Arrow,
    /// `=>`
    #[token("=>")]
    FatArrow,
    /// `;`
    #[token(";")]
    Semicolon,

    /// An operator of other languages: `&&`, `||`, `!`, `<>`, `===`, `!==`, `++`, `**`, `&`.
    #[token("&&")]
    #[token("||")]
    #[token("!")]
    #[token("<>")]
    #[token("===")]
    #[token("!==")]
    #[token("**")]
    #[token("&")]
    ForeignOperator,
    /// A character that has no meaning here.
    Unknown,
}

impl TokenKind {
    /// Whether the parser leaves it out: blanks and comments, documentation included.
    pub fn is_trivia(self) -> bool {
        use TokenKind::*;
        matches!(self, Whitespace | Comment | Doc | FileDoc | BlockComment | HashComment)
    }

    /// Whether it is one of the reserved words.
    pub fn is_reserved(self) -> bool {
        use TokenKind::*;
        matches!(
            self,
            And | Or | Not | In | Is | Between | Like | Matches | As | If | Else | Match | True | False | Null | Div
        )
    }

    /// The reserved word that `text` is, if it is one.
    pub fn reserved(text: &str) -> Option<TokenKind> {
        let mut lexer = TokenKind::lexer(text);
        match (lexer.next(), lexer.remainder()) {
            (Some(Ok(kind)), "") if kind.is_reserved() => Some(kind),
            _ => None,
        }
    }
}

/// Takes as many bytes after the token's start as `length` says.
fn bump(lexer: &mut Lexer<TokenKind>, length: impl Fn(&str) -> usize) {
    let taken = length(lexer.remainder());
    lexer.bump(taken);
}

/// The length of `{name}` at the start of a text; 0: something else stands there.
fn placeholder(text: &str) -> usize {
    let inner = text.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(inner, _)| inner);
    let is_name = |inner: &str| {
        inner.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && inner.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    inner.filter(|inner| is_name(inner)).map_or(0, |inner| inner.len() + 2)
}

/// Cuts `text` into tokens, trivia included. Any text will do; the tokens' texts joined are `text`.
pub fn lex(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::with_capacity(text.len() / 3);
    tokens.extend(lex_from(text, 0));
    tokens
}

/// The tokens of `text` from a byte on where one starts.
pub(crate) fn lex_from(text: &str, start: usize) -> impl Iterator<Item = Token> {
    let mut lexer = TokenKind::lexer(text.get(start..).unwrap_or(""));
    std::iter::from_fn(move || {
        let result = lexer.next()?;
        let first = start + lexer.span().start;
        // A byte order mark is no part of the text, whichever editor put it there.
        let kind = match result {
            Ok(kind) => kind,
            Err(()) if first == 0 && lexer.slice() == "\u{feff}" => TokenKind::Whitespace,
            Err(()) => {
                // `${name}` of other languages is one mistake, not a brace in the wrong place.
                if lexer.slice() == "$" {
                    bump(&mut lexer, placeholder);
                }
                TokenKind::Unknown
            }
        };
        Some(Token { kind, span: Span::new(first, start + lexer.span().end) })
    })
}
