//! Semantic tokens: what each word is.

use dfc_compiler::ide::{self, TextRange, TokenClass};
use ls_types::*;

use crate::positions::Text;
use crate::snapshot::{Failure, Snapshot};

/// The classes with their names in the protocol, in the legend's order.
const CLASSES: &[(TokenClass, &str)] = &[
    (TokenClass::Keyword, "keyword"),
    (TokenClass::Comment, "comment"),
    (TokenClass::String, "string"),
    (TokenClass::Number, "number"),
    (TokenClass::Symbol, "operator"),
    (TokenClass::Job, "namespace"),
    (TokenClass::Stream, "variable"),
    (TokenClass::Operator, "method"),
    (TokenClass::Function, "function"),
    (TokenClass::Aggregate, "macro"),
    (TokenClass::Parameter, "parameter"),
    (TokenClass::Label, "property"),
    (TokenClass::Field, "property"),
    (TokenClass::Type, "type"),
    (TokenClass::Record, "struct"),
    (TokenClass::Constant, "variable"),
    (TokenClass::EnumValue, "enumMember"),
    (TokenClass::Setting, "property"),
];

/// The modifiers, bit by bit.
const MODIFIERS: &[&str] = &["declaration", "readonly", "defaultLibrary", "documentation"];

/// The names of types in the legend: each once.
fn types() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, name) in CLASSES {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names
}

/// What the numbers in the answers mean.
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: types().into_iter().map(SemanticTokenType::new).collect(),
        token_modifiers: MODIFIERS.iter().map(|name| SemanticTokenModifier::new(name)).collect(),
    }
}

/// `textDocument/semanticTokens/full`
pub fn full(snapshot: &Snapshot, params: SemanticTokensParams) -> Result<Option<SemanticTokensResult>, Failure> {
    let asked = snapshot.asked(&params.text_document)?;
    let range = TextRange::new(0, asked.text.text.len());
    let tokens = ide::semantic_tokens(&snapshot.compiler, &asked.root, &asked.file, range);
    Ok(Some(SemanticTokensResult::Tokens(SemanticTokens {
        result_id: None,
        data: encode(snapshot, &asked.text, &tokens),
    })))
}

/// `textDocument/semanticTokens/range`
pub fn range(
    snapshot: &Snapshot,
    params: SemanticTokensRangeParams,
) -> Result<Option<SemanticTokensRangeResult>, Failure> {
    let asked = snapshot.asked(&params.text_document)?;
    let range = asked.text.bytes(params.range, snapshot.client.encoding);
    let tokens = ide::semantic_tokens(&snapshot.compiler, &asked.root, &asked.file, range);
    let data = encode(snapshot, &asked.text, &tokens);
    Ok(Some(SemanticTokensRangeResult::Tokens(SemanticTokens { result_id: None, data })))
}

/// The tokens as the protocol wants them: each after the one before, none over a line's end.
fn encode(snapshot: &Snapshot, text: &Text, tokens: &[ide::SemanticToken]) -> Vec<SemanticToken> {
    let types = types();
    let mut out = Vec::new();
    let (mut line, mut column) = (0, 0);
    for token in tokens {
        let name = CLASSES.iter().find(|(class, _)| *class == token.class).map_or("", |(_, name)| name);
        let Some(token_type) = types.iter().position(|known| *known == name) else { continue };
        let bits = [token.declares, token.class == TokenClass::Constant, token.library, token.documentation];
        let modifiers = bits.iter().enumerate().filter(|(_, set)| **set).fold(0, |all, (bit, _)| all | (1 << bit));
        for at in text.line_of(token.range.start)..=text.line_of(token.range.end.saturating_sub(1)) {
            let own = text.line(at);
            let (start, end) = (token.range.start.max(own.start), token.range.end.min(own.end));
            if start >= end {
                continue;
            }
            let position = snapshot.position(text, start);
            let length = snapshot.client.encoding.len(&text.text[start..end]) as u32;
            let same = position.line == line;
            out.push(SemanticToken {
                delta_line: position.line - line,
                delta_start: if same { position.character - column } else { position.character },
                length,
                token_type: token_type as u32,
                token_modifiers_bitset: modifiers,
            });
            (line, column) = (position.line, position.character);
        }
    }
    out
}
