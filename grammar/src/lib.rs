//! The grammar of `.df` files: from text to tokens and a syntax tree.
//!
//! [`lex`] is lossless. [`parse`] takes any text and gives the tree of the sound items, all tokens, and every mistake
//! once. It works in steps, each with a module of its own:
//!
//! 1. [`token`] (with `scan`) cuts the text into tokens;
//! 2. `items` cuts the tokens into items, so that a mistake costs one item at most;
//! 3. `symbols` (with `literal`) decodes an item's tokens and tells contextual words apart;
//! 4. `brackets` balances them and limits their depth;
//! 5. `df.lalrpop` is the grammar of one item, `recover` runs it until every mistake in the item is found, `explain`
//!    puts each in words.
//!
//! Recovery is done between runs of the parser and not by its own `!` tokens: after a mistake the smallest part around it
//! — an argument, a link, a setting; brackets are known to balance — is replaced by one symbol and the item parsed again.
//! So one mistake is one message, and the grammar has no recovery rules that could make valid files ambiguous.
//!
//! This crate knows no file system, no query system and no meaning of names.

mod again;
pub mod ast;
mod brackets;
mod dump;
pub mod error;
mod explain;
mod format;
mod items;
mod literal;
mod recover;
mod scan;
mod symbols;
pub mod token;
mod tree;
mod walk;

#[allow(missing_docs, unused, clippy::all)]
mod df {
    include!(concat!(env!("OUT_DIR"), "/df.rs"));
}

pub use dump::{dump_ast, dump_tokens};
pub use error::{CODES, SyntaxError};
pub use format::{Edit, Formatted, format, format_range, line_end};
pub use literal::size;
pub use token::{Token, TokenKind, lex};

use std::collections::HashMap;
use std::sync::Arc;

use again::{Again, again};
use ast::{File, Item, Span};
use items::Cut;

/// What [`parse`] gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parse {
    /// The tree: every sound item.
    pub file: File,
    /// Every token, trivia included; empty where the file is too large.
    pub tokens: Vec<Token>,
    /// Every mistake, in source order.
    pub errors: Vec<SyntaxError>,
    /// The items that are not in the tree because of a mistake, in source order.
    pub broken: Vec<Broken>,
    /// Where the items start and end, for the next time.
    cuts: Vec<Cut>,
}

/// An item with a mistake, as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Broken {
    /// Where it stands in the file, its documentation included.
    pub span: Span,
    /// Its item word, `stream`; `None` for text that belongs to no item.
    pub word: Option<&'static str>,
    /// Its name, where one stands after the item word.
    pub name: Option<String>,
    /// What can be read of it: the item without its mistakes, with errors ([`ast::ExprKind::Error`], empty names) where they are.
    pub mended: Option<Item>,
}

/// Limits on what is parsed. Passing one is an error by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub file_bytes: usize,
    /// Brackets inside one another.
    pub nesting: usize,
    /// Operators that stand over one another in the tree of one expression, those outside its brackets included. No
    /// expression tree is higher than this and twice the nesting together.
    pub operators: usize,
    /// Bytes of a name.
    pub name_bytes: usize,
}

/// The limits in force.
pub const LIMITS: Limits = Limits { file_bytes: 16 << 20, nesting: 128, operators: 500, name_bytes: 1_000 };

/// Parses a file. Any text will do.
pub fn parse(text: &str) -> Parse {
    if text.len() > LIMITS.file_bytes { too_large() } else { parse_cuts(text, Again::afresh(text), |_, _| None) }
}

/// Parses a file of which an earlier text was parsed before: gives what [`parse`] gives, and takes over the items whose
/// text is still the same. Their trees are shared.
pub fn parse_again(text: &str, earlier_text: &str, earlier: &Parse) -> Parse {
    if text.len() > LIMITS.file_bytes {
        return too_large();
    }
    let made = again(text, earlier_text, earlier);
    // Items that stand where the change was, or were moved by it.
    let changed = made.changed(earlier_text, earlier);
    let inside = earlier.file.items.iter().filter(|item| changed.contains(&item.start));
    let known = inside.filter_map(|item| {
        let (start, end) = (item.start as usize, (item.start + item.len) as usize);
        Some((earlier_text.get(start..end)?, item))
    });
    let known: Known<'_> = known.collect();
    parse_cuts(text, made, |made, number| {
        made.item(earlier, number).or_else(|| take_over(text, &made.tokens, &made.cuts[number], &known))
    })
}

/// Sound items by their text.
type Known<'a> = HashMap<&'a str, &'a Item, foldhash::fast::FixedState>;

fn too_large() -> Parse {
    let message = format!("a file has {} MiB at most, this one is larger", LIMITS.file_bytes >> 20);
    let fault = SyntaxError::new(error::FILE_TOO_LARGE, Span::new(0, 0), message, "")
        .help("split it, and take the parts in with `use`");
    Parse { errors: vec![fault], ..Parse::default() }
}

/// `known`: a cut's item, if it was parsed before.
fn parse_cuts(text: &str, made: Again, known: impl Fn(&Again, usize) -> Option<Item>) -> Parse {
    let (mut errors, mut broken) = (Vec::new(), Vec::new());
    let (tokens, cuts) = (&made.tokens, &made.cuts);
    errors.extend(tokens.iter().filter_map(long_name));
    let mut file = File { doc: file_doc(text, tokens), items: Vec::with_capacity(cuts.len()) };
    let mut end = 0;
    for (number, cut) in cuts.iter().enumerate() {
        stray_comments(text, &tokens[end..cut.tokens.start], &mut errors);
        match known(&made, number).map_or_else(|| parse_item(text, tokens, cut, &mut errors), Ok) {
            Ok(item) => file.items.push(item),
            Err(mended) => broken.extend(broken_item(text, tokens, cut, mended)),
        }
        end = cut.tokens.end;
    }
    stray_comments(text, &tokens[end..], &mut errors);
    errors.sort_by_key(|error| (error.span.start, error.span.end));
    let Again { tokens, cuts, .. } = made;
    Parse { file, tokens, errors, broken, cuts }
}

/// A name past the limit: it would be copied into every message and every plan.
fn long_name(token: &Token) -> Option<SyntaxError> {
    let length = (token.span.end - token.span.start) as usize;
    let name = matches!(token.kind, TokenKind::Name | TokenKind::QuotedName);
    (name && length > LIMITS.name_bytes).then(|| {
        let message = format!("a name has {} bytes at most, this one has {length}", LIMITS.name_bytes);
        SyntaxError::new(error::NAME_TOO_LONG, Span { end: token.span.start, ..token.span }, message, "too long")
            .help("give it a shorter name")
    })
}

/// What is known of an item that has a mistake.
fn broken_item(text: &str, tokens: &[Token], cut: &Cut, mended: Option<Item>) -> Option<Broken> {
    let own = tokens.get(cut.tokens.clone())?;
    let span = own.first()?.span.to(own.last()?.span);
    let word = items::ITEM_WORDS.iter().find(|(_, word)| Some(*word) == cut.word).map(|(text, _)| *text);
    let after = tokens.get(cut.first + 1..cut.tokens.end)?.iter().find(|token| !token.kind.is_trivia());
    let name = after.filter(|token| matches!(token.kind, TokenKind::Name | TokenKind::QuotedName));
    Some(Broken { span, word, name: name.map(|token| token.text(text).trim_matches('`').to_owned()), mended })
}

/// The text of the `//!` lines above everything else.
fn file_doc(text: &str, tokens: &[Token]) -> Option<String> {
    let lines: Vec<&str> = tokens
        .iter()
        .take_while(|token| token.kind.is_trivia())
        .filter(|token| token.kind == TokenKind::FileDoc)
        .map(|token| symbols::doc_line(token.text(text)))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Comments of other languages outside all items.
fn stray_comments(text: &str, tokens: &[Token], errors: &mut Vec<SyntaxError>) {
    let comments: Vec<Token> =
        tokens.iter().filter(|t| matches!(t.kind, TokenKind::BlockComment | TokenKind::HashComment)).copied().collect();
    if comments.is_empty() {
        return;
    }
    errors.extend(symbols::prepare(text, &comments, 0, symbols::Word::Job).errors);
}

/// An item as it was parsed before. A sound item's tree depends on its own text and nothing else.
fn take_over(text: &str, tokens: &[Token], cut: &Cut, known: &Known<'_>) -> Option<Item> {
    cut.word?;
    let own = tokens.get(cut.tokens.clone())?;
    let (start, end) = (own.first()?.span.start, own.last()?.span.end);
    let item = known.get(text.get(start as usize..end as usize)?)?;
    Some(Item { start, ..(*item).clone() })
}

/// Parses one item; where it has a mistake, which is then among the errors, gives what can be read of it.
fn parse_item(text: &str, tokens: &[Token], cut: &Cut, errors: &mut Vec<SyntaxError>) -> Result<Item, Option<Item>> {
    let own = &tokens[cut.tokens.clone()];
    let Some(word) = cut.word else {
        errors.push(explain::unknown_item(text, &tokens[cut.first..cut.tokens.end]));
        return Err(None);
    };
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return Err(None) };
    let (start, end) = (first.span.start, last.span.end);
    let mut prepared = symbols::prepare(text, own, start, word);
    let doc = prepared.symbols.first().and_then(|symbol| prepared.docs.above(symbol.span.start));
    let item_text = text.get(start as usize..end as usize).unwrap_or("");
    let kind = recover::parse(item_text, word, &mut prepared);
    let sound = prepared.errors.is_empty();
    errors.extend(prepared.errors.into_iter().map(|error| error.shift(start)));
    let item = |kind| Item { start, len: end - start, doc, kind: Arc::new(kind) };
    match kind {
        Some(kind) if sound => Ok(item(kind)),
        kind => Err(kind.map(|kind| item(named_fields(kind, item_text)))),
    }
}

/// A mended record's fields with a mistake get their names back, where one starts what is written of them.
fn named_fields(mut kind: ast::ItemKind, text: &str) -> ast::ItemKind {
    if let ast::ItemKind::Record(record) = &mut kind {
        for field in record.fields.iter_mut().filter(|field| field.name.text.is_empty()) {
            let written = text.get(field.span.start as usize..field.span.end as usize).unwrap_or("");
            if let Some(name) =
                lex(written).first().filter(|token| matches!(token.kind, TokenKind::Name | TokenKind::QuotedName))
            {
                field.name.text = name.text(written).trim_matches('`').to_owned();
                field.name.span = name.span.shift(field.span.start);
            }
        }
    }
    kind
}
