//! Where a place of a text is in its syntax, told by tokens alone: which item, which calls and brackets are open around it,
//! which part of a chain or an argument it is in.
//!
//! No tree is needed, so half-written text is as good as any. It may not know what names mean.

use dfc_grammar::{Token, TokenKind};

use super::TextRange;
use super::view::range;

/// The words that items start with.
pub const ITEM_WORDS: &[&str] =
    &["job", "param", "const", "record", "source", "stream", "sink", "fn", "operator", "use", "native"];

/// What a place is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// Code.
    Code,
    /// A text: its token.
    Text(Token),
    /// A comment, a number, a date: nothing that names could stand in.
    Other,
}

/// An open bracket, or the item itself, on the way to a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The bracket; `None` for the item.
    pub open: Option<TokenKind>,
    /// Where in [`Cursor::solid`] the bracket stands.
    pub at: usize,
    /// For `name(`: where the name stands.
    pub callee: Option<usize>,
    /// Arguments (or elements, or fields) before this one.
    pub index: usize,
    /// Where the part that holds the place starts: an argument, a setting, a chain of a sink block.
    pub part: usize,
    /// Where the `|>` of that part stand.
    pub pipes: Vec<usize>,
    /// Where the first `=` of that part stands.
    pub assign: Option<usize>,
    /// The labels of the parts before.
    pub labels: Vec<String>,
}

/// A place in a text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    pub text: &'a str,
    /// The place.
    pub offset: usize,
    /// The word that ends at the place or goes on after it; empty where there is none.
    pub word: TextRange,
    /// The word up to the place.
    pub prefix: &'a str,
    pub inside: Inside,
    /// The item's tokens before the word, without blanks and comments.
    pub solid: Vec<Token>,
    /// The tokens behind the word, to the end of the item.
    pub behind: Vec<Token>,
    /// The open brackets, outermost first; the first frame is the item's own.
    pub frames: Vec<Frame>,
    /// Whether nothing but blanks is before the word on its line.
    pub first_on_line: bool,
    /// Whether the word is at the very start of its line.
    pub column_zero: bool,
}

impl<'a> Cursor<'a> {
    /// Looks at a place. Inside the code of a format string the tokens of that code stand in the place of the string.
    pub fn new(text: &'a str, tokens: &[Token], offset: usize) -> Self {
        let spliced = spliced(text, tokens, offset).or_else(|| angles(text, tokens, offset));
        let tokens = spliced.as_deref().unwrap_or(tokens);
        let (inside, word) = word_at(text, tokens, offset);
        Cursor::before(text, tokens, offset, inside, word)
    }

    /// Looks at a token: the place before it.
    pub fn on(text: &'a str, tokens: &[Token], at: usize) -> Self {
        let word = range(tokens[at].span);
        Cursor::before(text, tokens, word.start, Inside::Code, word)
    }

    fn before(text: &'a str, tokens: &[Token], offset: usize, inside: Inside, word: TextRange) -> Self {
        let (from, to) = match inside {
            Inside::Text(token) => (token.span.start as usize, token.span.end as usize),
            _ => (word.start, word.end),
        };
        let end = tokens.partition_point(|t| (t.span.start as usize) < from);
        let start = item_start(text, tokens, end);
        let solid: Vec<Token> = tokens[start..end].iter().filter(|t| !t.kind.is_trivia()).copied().collect();
        let next = tokens.partition_point(|t| (t.span.start as usize) < to);
        let behind = behind(text, tokens, next);
        let line = text[..word.start].rfind('\n').map_or(0, |at| at + 1);
        let mut cursor = Cursor {
            text,
            offset,
            word,
            prefix: text.get(word.start..offset).unwrap_or(""),
            inside,
            solid,
            behind,
            frames: Vec::new(),
            first_on_line: text[line..word.start].trim().is_empty(),
            column_zero: line == word.start,
        };
        cursor.frames = cursor.open_frames();
        cursor
    }

    /// The whole word at the place.
    pub fn word_text(&self) -> &'a str {
        self.text.get(self.word.start..self.word.end).unwrap_or("")
    }

    /// The text of a token of [`Cursor::solid`].
    pub fn str(&self, at: usize) -> &'a str {
        self.solid.get(at).map_or("", |token| token.text(self.text))
    }

    pub fn kind(&self, at: usize) -> Option<TokenKind> {
        self.solid.get(at).map(|token| token.kind)
    }

    /// The name that a token is, without backticks.
    pub fn name(&self, at: usize) -> &'a str {
        self.str(at).trim_matches('`')
    }

    /// The last token before the word.
    pub fn last(&self) -> Option<TokenKind> {
        self.solid.last().map(|token| token.kind)
    }

    /// The word that starts the item.
    pub fn item_word(&self) -> &'a str {
        match self.solid.first() {
            Some(token) if token.kind == TokenKind::Name => {
                let word = self.str(0);
                if ITEM_WORDS.contains(&word) { word } else { "" }
            }
            _ => "",
        }
    }

    /// The item's name, where it has one.
    pub fn item_name(&self) -> Option<&'a str> {
        is_name(self.kind(1)?).then(|| self.name(1))
    }

    /// The innermost frame.
    pub fn innermost(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// The text between two tokens of [`Cursor::solid`], `to` not taken.
    pub fn slice(&self, from: usize, to: usize) -> Option<TextRange> {
        let last = self.solid.get(to.checked_sub(1)?)?;
        let first = self.solid.get(from)?;
        (first.span.start < last.span.end).then(|| TextRange::new(first.span.start as usize, last.span.end as usize))
    }

    /// The label of a frame's part, where it has one: `label:`.
    pub fn label(&self, frame: &Frame) -> Option<&'a str> {
        let named = is_word(self.kind(frame.part)?) && self.kind(frame.part + 1) == Some(TokenKind::Colon);
        named.then(|| self.name(frame.part))
    }

    /// Where the value of a frame's part starts, behind its label.
    pub fn value_start(&self, frame: &Frame) -> usize {
        frame.part + if self.label(frame).is_some() { 2 } else { 0 }
    }

    /// Every label of a frame's bracket, before and behind the place, the part at the place left out.
    pub fn labels_given(&self, frame: &Frame) -> Vec<String> {
        let mut labels = frame.labels.clone();
        let deeper = self.frames.iter().skip_while(|f| f.at != frame.at || f.open != frame.open).count().max(1) - 1;
        let mut depth = deeper as i64;
        let mut fresh = false;
        for (i, token) in self.behind.iter().enumerate() {
            match token.kind {
                kind if opens(kind) => depth += 1,
                kind if closes(kind) => {
                    depth -= 1;
                    if depth < 0 {
                        break;
                    }
                }
                TokenKind::Comma if depth == 0 => fresh = true,
                kind if fresh && depth == 0 && is_word(kind) => {
                    if self.behind.get(i + 1).is_some_and(|next| next.kind == TokenKind::Colon) {
                        labels.push(token.text(self.text).trim_matches('`').to_string());
                    }
                    fresh = false;
                }
                _ => fresh = false,
            }
        }
        labels
    }

    /// The token behind the word.
    pub fn next(&self) -> Option<TokenKind> {
        self.behind.first().map(|token| token.kind)
    }

    fn open_frames(&self) -> Vec<Frame> {
        let new = |open, at, callee, part| Frame {
            open,
            at,
            callee,
            index: 0,
            part,
            pipes: Vec::new(),
            assign: None,
            labels: Vec::new(),
        };
        let mut frames = vec![new(None, 0, None, 0)];
        for (i, token) in self.solid.iter().enumerate() {
            let blocks = self.is_line_block(&frames);
            let depth = frames.len();
            // There is always the item's frame.
            let Some(frame) = frames.last_mut() else { break };
            if blocks && i > frame.part && self.starts_part(frame, i) {
                let label = self.label(frame).map(str::to_string);
                frame.labels.extend(label);
                frame.index += 1;
                (frame.part, frame.assign) = (i, None);
                frame.pipes.clear();
            }
            match token.kind {
                kind if opens(kind) => {
                    let before = i.checked_sub(1);
                    let callee = before.filter(|b| kind == TokenKind::LParen && is_name(self.solid[*b].kind));
                    // The opening brace of a format string is shown as a bracket here, and calls nothing.
                    let callee = callee.filter(|_| token.text(self.text) == "(");
                    // The parameters of a declaration are no arguments.
                    let callee = callee.filter(|b| !(depth == 1 && *b == 1 && self.declares_parameters()));
                    frames.push(new(Some(kind), i, callee, i + 1));
                }
                kind if closes(kind) => {
                    // A closer without its opener closes nothing.
                    if let Some(open) = frames.iter().rposition(|f| f.open.is_some_and(|open| closes_it(open, kind))) {
                        frames.truncate(open);
                    }
                }
                TokenKind::Comma => {
                    let label = self.label(frame).map(str::to_string);
                    frame.labels.extend(label);
                    frame.index += 1;
                    (frame.part, frame.assign) = (i + 1, None);
                    frame.pipes.clear();
                }
                TokenKind::Pipe => frame.pipes.push(i),
                TokenKind::Assign if frame.assign.is_none() => frame.assign = Some(i),
                _ => {}
            }
        }
        // The word itself may start a part of a block.
        if self.is_line_block(&frames)
            && let Some(frame) = frames.last_mut()
            && frame.part < self.solid.len()
            && self.starts_part(frame, self.solid.len())
        {
            let label = self.label(frame).map(str::to_string);
            frame.labels.extend(label);
            frame.index += 1;
            (frame.part, frame.assign) = (self.solid.len(), None);
            frame.pipes.clear();
        }
        frames
    }

    fn declares_parameters(&self) -> bool {
        matches!(self.item_word(), "fn" | "operator")
    }

    /// Whether the innermost bracket is that of a declaration's block, where commas may be left out.
    fn is_line_block(&self, frames: &[Frame]) -> bool {
        match frames.last() {
            Some(Frame { open: Some(TokenKind::LBrace), at, .. }) => {
                matches!(self.item_word(), "record" | "job") || (self.item_word() == "sink" && *at == 1)
            }
            _ => false,
        }
    }

    /// Whether a token (the word, where `i` is one past the last) starts a new part of a block without commas.
    fn starts_part(&self, frame: &Frame, i: usize) -> bool {
        let (kind, start) = match self.solid.get(i) {
            Some(token) => (Some(token.kind), token.span.start as usize),
            None => (None, self.word.start),
        };
        if kind.is_some_and(|kind| !is_word(kind)) {
            return false;
        }
        let Some(before) = i.checked_sub(1).and_then(|b| self.solid.get(b)) else { return false };
        if self.item_word() == "sink" {
            // `a |> print() b`: what comes behind a call or a name is a chain of its own.
            return before.kind == TokenKind::RParen || (is_name(before.kind) && i - 1 > frame.at);
        }
        let gap = self.text.get(before.span.end as usize..start).unwrap_or("");
        let ends = !matches!(before.kind, TokenKind::Colon | TokenKind::Assign | TokenKind::Comma | TokenKind::LBrace);
        ends && gap.contains('\n')
    }
}

/// What a place is in, and the word that it touches.
fn word_at(text: &str, tokens: &[Token], offset: usize) -> (Inside, TextRange) {
    let here = TextRange::empty(offset);
    // The token that the place is inside of or at the end of.
    let Some(token) = tokens.partition_point(|t| (t.span.start as usize) < offset).checked_sub(1).map(|at| tokens[at])
    else {
        return (Inside::Code, here);
    };
    let at_end = token.span.end as usize <= offset;
    match token.kind {
        TokenKind::Comment | TokenKind::Doc | TokenKind::FileDoc | TokenKind::HashComment => (Inside::Other, here),
        TokenKind::BlockComment if at_end && token.text(text).ends_with("*/") => (Inside::Code, here),
        TokenKind::BlockComment => (Inside::Other, here),
        TokenKind::String
        | TokenKind::RawString
        | TokenKind::TripleString
        | TokenKind::FormatString
        | TokenKind::SingleQuoted => {
            if at_end && is_closed(token, text) {
                (Inside::Code, here)
            } else {
                (Inside::Text(token), here)
            }
        }
        TokenKind::Number | TokenKind::DateTime => (Inside::Other, here),
        TokenKind::QuotedName if at_end && token.text(text).len() > 1 && token.text(text).ends_with('`') => {
            (Inside::Code, here)
        }
        kind if is_word(kind) => (Inside::Code, range(token.span)),
        _ => (Inside::Code, here),
    }
}

/// The tokens with the format string at an offset replaced by its code there; `None` where the offset is in none's code.
pub fn spliced(text: &str, tokens: &[Token], offset: usize) -> Option<Vec<Token>> {
    let at = tokens.partition_point(|t| (t.span.start as usize) < offset).checked_sub(1)?;
    let string = *tokens.get(at).filter(|token| token.kind == TokenKind::FormatString)?;
    let code = format_code(text, string, offset)?;
    let tokens = [&tokens[..at], &code, &tokens[at + 1..]].concat();
    // Format strings inside format strings.
    Some(spliced(text, &tokens, offset).unwrap_or(tokens))
}

/// The tokens with the `<>` around an offset, one word of other languages, as the two brackets of a list's type.
fn angles(text: &str, tokens: &[Token], offset: usize) -> Option<Vec<Token>> {
    let at = tokens.partition_point(|t| (t.span.start as usize) < offset).checked_sub(1)?;
    let both = *tokens.get(at).filter(|token| token.text(text) == "<>" && (token.span.end as usize) > offset)?;
    let one = |kind, start| Token { kind, span: dfc_grammar::ast::Span::new(start, start + 1) };
    let two = [one(TokenKind::Lt, offset - 1), one(TokenKind::Gt, both.span.end as usize - 1)];
    Some([&tokens[..at], &two, &tokens[at + 1..]].concat())
}

/// The tokens of the code of a format string that an offset is in; `None` where it is in its text.
fn format_code(text: &str, string: Token, offset: usize) -> Option<Vec<Token>> {
    let quoted = string.text(text);
    let base = string.span.start as usize;
    let bytes = quoted.as_bytes();
    let mut at = 2;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'{' if bytes.get(at + 1) == Some(&b'{') => at += 1,
            b'{' => {
                let code = quoted.get(at + 1..)?;
                let mut tokens = Vec::new();
                let mut depth = 0usize;
                for token in dfc_grammar::lex(code) {
                    match token.kind {
                        TokenKind::LBrace => depth += 1,
                        TokenKind::RBrace if depth == 0 => break,
                        TokenKind::RBrace => depth -= 1,
                        _ => {}
                    }
                    let span = token.span.shift((base + at + 1) as u32);
                    tokens.push(Token { span, ..token });
                }
                let start = base + at + 1;
                let end = tokens.last().map_or(start, |token| token.span.end as usize);
                if (start..=end).contains(&offset) {
                    // A bracket in the place of the opening brace keeps the code apart from what is before it.
                    let open = Token { kind: TokenKind::LParen, span: dfc_grammar::ast::Span::new(start - 1, start) };
                    let close = Token { kind: TokenKind::RParen, span: dfc_grammar::ast::Span::new(end, end) };
                    tokens.insert(0, open);
                    tokens.push(close);
                    return Some(tokens);
                }
                at = end - base;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a text has its closing quote.
fn is_closed(token: Token, text: &str) -> bool {
    let all = token.text(text);
    let body = all.trim_start_matches(['r', 'f']);
    match token.kind {
        TokenKind::TripleString => body.len() >= 6 && body.ends_with("\"\"\""),
        TokenKind::SingleQuoted => body.len() >= 2 && body.ends_with('\''),
        _ => body.len() >= 2 && body.ends_with('"'),
    }
}

/// Where the item that holds token `before` starts.
fn item_start(text: &str, tokens: &[Token], before: usize) -> usize {
    (0..before).rev().find(|at| starts_item(text, tokens, *at)).unwrap_or(0)
}

/// The tokens from `from` to the end of the item, without blanks and comments.
fn behind(text: &str, tokens: &[Token], from: usize) -> Vec<Token> {
    let rest = tokens.get(from..).unwrap_or(&[]);
    let end = (0..rest.len()).find(|at| starts_item(text, tokens, from + at)).unwrap_or(rest.len());
    rest[..end].iter().filter(|t| !t.kind.is_trivia()).copied().collect()
}

/// Whether an item starts at a token: an item word, first on its line, and behind it what an item has there.
fn starts_item(text: &str, tokens: &[Token], at: usize) -> bool {
    let token = tokens[at];
    if token.kind != TokenKind::Name || !ITEM_WORDS.contains(&token.text(text)) {
        return false;
    }
    let line = text[..token.span.start as usize].rfind('\n').map_or(0, |nl| nl + 1);
    if !text[line..token.span.start as usize].trim().is_empty() {
        return false;
    }
    let mut next = tokens[at + 1..].iter().filter(|t| !t.kind.is_trivia());
    let follows = next.next().map(|t| t.kind);
    match token.text(text) {
        "use" => matches!(follows, Some(TokenKind::String | TokenKind::RawString) | None),
        // What it writes may be missing still, or be a word like `or` so far.
        "sink" if follows.is_some_and(|kind| kind == TokenKind::Pipe || kind.is_reserved()) => {
            line == token.span.start as usize
        }
        "sink" => {
            matches!(follows, Some(TokenKind::Name | TokenKind::QuotedName | TokenKind::LBrace) | None)
                && next.next().is_none_or(|t| t.kind != TokenKind::Colon)
        }
        _ if line == token.span.start as usize => {
            !matches!(follows, Some(TokenKind::Colon | TokenKind::Comma | TokenKind::RParen | TokenKind::Dot))
        }
        _ => matches!(follows, Some(TokenKind::Name | TokenKind::QuotedName)),
    }
}

/// Whether a token can be a name where names are wanted.
pub fn is_name(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Name | TokenKind::QuotedName)
}

/// Whether a token is a name or a reserved word.
pub fn is_word(kind: TokenKind) -> bool {
    is_name(kind) || kind.is_reserved()
}

/// Whether a value can end with a token, so that an operator and no value comes next.
pub fn ends_value(kind: TokenKind) -> bool {
    use TokenKind::*;
    matches!(
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
    )
}

pub fn opens(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::LParen | TokenKind::LBracket | TokenKind::LBrace)
}

pub fn closes(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace)
}

fn closes_it(open: TokenKind, close: TokenKind) -> bool {
    matches!(
        (open, close),
        (TokenKind::LParen, TokenKind::RParen)
            | (TokenKind::LBracket, TokenKind::RBracket)
            | (TokenKind::LBrace, TokenKind::RBrace)
    )
}
