//! dfc-grammar
pub mod ast;
pub mod token;

pub use token::{Token, TokenKind};
use ast::Span;

/// Cuts `text` into tokens.
pub fn lex(_text: &str) -> Vec<Token> {
    Vec::new()
}

/// What [`parse`] gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parse {
    /// The tree of the sound items.
    pub file: ast::File,
    /// Every token.
    pub tokens: Vec<Token>,
    /// Every syntax error, in source order.
    pub errors: Vec<SyntaxError>,
}

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SyntaxError {
    /// Its code, `E0101` ….
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where, absolute.
    pub span: Span,
    /// Short text at the place.
    pub label: String,
    /// Other places that matter.
    pub related: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
    /// A certain edit.
    pub fix: Option<(Span, String)>,
}

/// Limits on what is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in a file.
    pub file_bytes: usize,
    /// Brackets inside brackets.
    pub nesting: usize,
}

/// The limits in force.
pub const LIMITS: Limits = Limits { file_bytes: 16 << 20, nesting: 128 };

/// Parses a file.
pub fn parse(_text: &str) -> Parse {
    Parse::default()
}

/// Tokens as text.
pub fn dump_tokens(_parse: &Parse, _text: &str) -> String {
    String::new()
}

/// Tree as text.
pub fn dump_ast(_parse: &Parse) -> String {
    String::new()
}
