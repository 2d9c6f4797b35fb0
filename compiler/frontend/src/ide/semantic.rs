//! Semantic tokens: what each word of a file is.
//!
//! The lexer says what texts, numbers and words of the language are; names are told by what they mean.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use dfc_grammar::{Token, TokenKind as T};

use super::TextRange;
use super::cursor::ITEM_WORDS;
use super::meanings::{Meaning, Meanings, TokenClass, meanings};
use super::view::{View, range};
use crate::Compiler;
use crate::items::parse;

/// A word and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SemanticToken {
    /// Where. A text in three quotes or a comment may go over lines.
    pub range: TextRange,
    /// What it is.
    pub class: TokenClass,
    /// Whether it is declared here.
    pub declares: bool,
    /// Whether it is built in.
    pub library: bool,
    /// Whether it documents something.
    pub documentation: bool,
}

/// The tokens of a file that meet a range, by place; none overlaps another.
pub fn semantic_tokens(compiler: &Compiler, root: &Path, file: &Path, wanted: TextRange) -> Vec<SemanticToken> {
    let view = View::new(compiler, root, file);
    let names = names(&view, wanted);
    let mut out = Vec::new();
    let first = view.tokens.partition_point(|token| (token.span.end as usize) < wanted.start);
    let mut name = names.partition_point(|name| name.range.end < wanted.start);
    for token in &view.tokens[first..] {
        let at = range(token.span);
        if at.start > wanted.end {
            break;
        }
        while names.get(name).is_some_and(|name| name.range.start < at.start) {
            name += 1;
        }
        let own = |class: TokenClass| SemanticToken {
            range: at,
            class,
            declares: false,
            library: false,
            documentation: matches!(token.kind, T::Doc | T::FileDoc),
        };
        match token.kind {
            T::FormatString => {
                // The text between the names in it.
                let mut done = at.start;
                while let Some(inner) = names.get(name).filter(|name| name.range.end <= at.end) {
                    if inner.range.start > done {
                        out.push(SemanticToken {
                            range: TextRange::new(done, inner.range.start),
                            ..own(TokenClass::String)
                        });
                    }
                    out.push(*inner);
                    done = inner.range.end;
                    name += 1;
                }
                out.push(SemanticToken { range: TextRange::new(done, at.end), ..own(TokenClass::String) });
            }
            _ => match names.get(name).filter(|name| name.range.start == at.start) {
                Some(found) => out.push(*found),
                None if token.kind == T::Name && SOFT_WORDS.contains(&token.text(view.text)) => {
                    out.push(own(TokenClass::Keyword));
                }
                None => out.extend(lexical(token.kind).map(own)),
            },
        }
    }
    out.retain(|token| token.range.start < token.range.end);
    out
}

/// Words of the language that are names elsewhere.
const SOFT_WORDS: &[&str] = &["then", "by", "state", "on", "let", "emit", "row", "rule"];

/// What the lexer knows of a token.
fn lexical(kind: T) -> Option<TokenClass> {
    Some(match kind {
        T::Comment | T::Doc | T::FileDoc => TokenClass::Comment,
        T::String | T::RawString | T::TripleString => TokenClass::String,
        T::Number | T::DateTime => TokenClass::Number,
        T::And | T::Or | T::Not | T::In | T::Is | T::Between | T::Like | T::Matches | T::As | T::If | T::Else => {
            TokenClass::Keyword
        }
        T::Match | T::True | T::False | T::Null | T::Div => TokenClass::Keyword,
        T::Pipe | T::Arrow | T::FatArrow | T::Plus | T::Minus | T::Star | T::Slash | T::Percent => TokenClass::Symbol,
        T::EqEq | T::NotEq | T::Lt | T::Le | T::Gt | T::Ge | T::Coalesce | T::Assign => TokenClass::Symbol,
        _ => return None,
    })
}

/// The names that are known, by place: those of sound items, and in broken ones those that were known before.
fn names(view: &View<'_>, wanted: TextRange) -> Vec<SemanticToken> {
    let mut out: Vec<SemanticToken> = Vec::new();
    let keyword = |at: TextRange| SemanticToken {
        range: at,
        class: TokenClass::Keyword,
        declares: false,
        library: false,
        documentation: false,
    };
    for (item, _, start) in view.items_in(wanted) {
        let found: &Arc<Meanings> = meanings(view.db, view.root, item);
        out.extend(item_word(view, start as usize).map(keyword));
        out.extend(found.words.iter().map(|word| SemanticToken {
            range: range(word.span.shift(start)),
            class: word.class,
            declares: word.declares,
            library: word.meanings.is_empty() && is_library(word.class),
            documentation: false,
        }));
    }
    let broken = &parse(view.db, view.file).broken;
    for item in broken.iter().filter(|item| range(item.span).meets(wanted)) {
        out.extend(item_word(view, item.span.start as usize).map(keyword));
        let remembered = view.node_at(item.span.start).filter(|node| node.remembered(view.db));
        let known = remembered.map(|node| known(meanings(view.db, view.root, node))).unwrap_or_default();
        let mut before = None;
        let solid: Vec<&Token> = view.tokens.iter().filter(|token| !token.kind.is_trivia()).collect();
        let first = solid.partition_point(|token| token.span.start < item.span.start);
        for (at, token) in solid.iter().enumerate().skip(first).take_while(|(_, t)| t.span.end <= item.span.end) {
            let behind = solid.get(at + 1).map(|token| token.kind);
            let class = match (before, token.kind, behind) {
                (Some(T::Pipe), T::Name, _) => Some(TokenClass::Operator),
                (_, T::Name, Some(T::LParen)) => Some(TokenClass::Function),
                (_, T::Name, Some(T::Colon)) => Some(TokenClass::Label),
                (_, T::Name, _) => known.get(token.text(view.text)).copied(),
                _ => None,
            };
            out.extend(class.map(|class| SemanticToken { class, ..keyword(range(token.span)) }));
            before = Some(token.kind);
        }
    }
    out.sort_by_key(|token| (token.range.start, token.range.end));
    out.dedup_by_key(|token| token.range.start);
    out
}

/// The item word at the start of an item, behind its documentation.
fn item_word(view: &View<'_>, start: usize) -> Option<TextRange> {
    let first = view.tokens.partition_point(|token| (token.span.start as usize) < start);
    let token = view.tokens[first..].iter().find(|token| !token.kind.is_trivia())?;
    ITEM_WORDS.contains(&token.text(view.text)).then(|| range(token.span))
}

/// Whether a name that means nothing in the program is one of the library's.
fn is_library(class: TokenClass) -> bool {
    matches!(class, TokenClass::Operator | TokenClass::Function | TokenClass::Aggregate | TokenClass::Type)
}

/// What the names of an item are, by name.
fn known(found: &Meanings) -> HashMap<String, TokenClass> {
    let names = found.words.iter().flat_map(|word| word.meanings.iter().map(move |meaning| (meaning, word.class)));
    let named = names.filter_map(|(meaning, class)| match meaning {
        Meaning::Item(key) => Some((key.name.clone(), class)),
        Meaning::Field(_, _, name) => Some((name.clone(), class)),
        Meaning::Local(..) => None,
    });
    named.collect()
}
