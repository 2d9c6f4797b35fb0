//! Walks an item's tokens in step with its tree and writes commands; comments are carried along.
//!
//! The tree says what comes next, the cursor takes it: every token is written once, in order, with the comments around
//! it. A comment on a token's own line after it stays at that line's end; all others stand on lines of their own before
//! the next token. A token that is not the one the tree promises ends the walk: the item is left as it is.

use super::layout::{Cmd, WIDTH};
use crate::token::{Token, TokenKind};

/// The tree and the tokens do not agree; nothing is formatted then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mismatch;

pub(super) type Walk = Result<(), Mismatch>;

/// A comment on a line of its own, and whether an empty line stands above it.
#[derive(Debug, Clone, Copy)]
struct Above<'a> {
    text: &'a str,
    blank: bool,
}

/// A token that is no trivia, with the comments around it.
#[derive(Debug, Clone)]
struct Solid<'a> {
    kind: TokenKind,
    text: &'a str,
    above: Vec<Above<'a>>,
    /// Whether an empty line stands directly above the token.
    blank: bool,
    /// The comment after it on its line.
    after: Option<&'a str>,
}

/// Whether a comment is one of `// allow W0401`.
fn switches_off(comment: &str) -> bool {
    let code = comment.strip_prefix("//").and_then(|rest| rest.trim_start().strip_prefix("allow "));
    code.is_some_and(|code| {
        let code = code.trim_start().as_bytes();
        matches!(code.first(), Some(b'W' | b'E' | b'R')) && code.get(1).is_some_and(u8::is_ascii_digit)
    })
}

/// The place in an item's tokens, and the commands written so far.
pub(super) struct Cursor<'a> {
    tokens: Vec<Solid<'a>>,
    at: usize,
    pub out: Vec<Cmd<'a>>,
}

impl<'a> Cursor<'a> {
    /// The tokens of one item in the text of its file.
    pub fn new(text: &'a str, tokens: &[Token]) -> Self {
        let mut solid: Vec<Solid<'a>> = Vec::with_capacity(tokens.len() / 2);
        let mut above: Vec<Above<'a>> = Vec::new();
        // Line ends since the last token or comment.
        let mut ends = 0usize;
        // The brackets that the line at hand has opened.
        let mut open: Vec<usize> = Vec::new();
        for token in tokens {
            let shown = token.text(text);
            match token.kind {
                TokenKind::Whitespace => ends += shown.matches('\n').count(),
                TokenKind::Comment | TokenKind::FileDoc if ends == 0 && above.is_empty() && !solid.is_empty() => {
                    // What switches a lint off for its line stays with what starts there.
                    let bracket = open.first().copied().filter(|_| switches_off(shown));
                    let at = bracket.unwrap_or(solid.len() - 1);
                    solid[at].after = Some(shown.trim_end());
                }
                kind if kind.is_trivia() => {
                    above.push(Above { text: shown.trim_end(), blank: ends > 1 });
                    ends = 0;
                }
                kind => {
                    let above = std::mem::take(&mut above);
                    if ends > 0 {
                        open.clear();
                    }
                    match kind {
                        TokenKind::LParen | TokenKind::LBracket | TokenKind::LBrace => open.push(solid.len()),
                        TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace => drop(open.pop()),
                        _ => {}
                    }
                    let blank = std::mem::take(&mut ends) > 1;
                    solid.push(Solid { kind, text: shown, above, blank, after: None });
                }
            }
        }
        Cursor { tokens: solid, at: 0, out: Vec::new() }
    }

    fn put(&mut self, cmd: Cmd<'a>) {
        self.out.push(cmd);
    }

    /// The kind of the next token.
    pub fn peek(&self) -> Option<TokenKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    /// Whether the next token is of this kind.
    pub fn next_is(&self, kind: TokenKind) -> bool {
        self.peek() == Some(kind)
    }

    /// Whether the next token is this one.
    pub fn next_text(&self, text: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.text == text)
    }

    /// Whether an empty line stands above what comes next, its comments included.
    fn blank_ahead(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.above.first().map_or(token.blank, |first| first.blank))
    }

    /// Writes the comments above the next token now, so that they stand outside a group that it starts.
    pub fn comments(&mut self) {
        let Some(token) = self.tokens.get_mut(self.at) else { return };
        if token.above.is_empty() {
            return;
        }
        let above = std::mem::take(&mut token.above);
        let blank = std::mem::take(&mut token.blank);
        self.put(Cmd::Fresh);
        for (i, comment) in above.iter().enumerate() {
            if i > 0 {
                self.put(Cmd::Hard { blank: comment.blank });
            }
            self.put(Cmd::Text(comment.text));
        }
        self.put(Cmd::Hard { blank });
    }

    /// Writes the next token, whatever it is.
    pub fn any(&mut self) -> Walk {
        self.comments();
        let token = self.tokens.get(self.at).ok_or(Mismatch)?;
        let (text, after) = (token.text, token.after);
        self.at += 1;
        self.put(Cmd::Text(text));
        self.out.extend(after.map(Cmd::Comment));
        Ok(())
    }

    /// Writes the next token, which is of this kind.
    pub fn token(&mut self, kind: TokenKind) -> Walk {
        if kind == TokenKind::Gt && self.next_is(TokenKind::Ge) {
            return self.split_ge();
        }
        if self.peek() != Some(kind) { Err(Mismatch) } else { self.any() }
    }

    /// Writes the `>` of a `>=` that closes a list's type; the `=` stays as the next token.
    fn split_ge(&mut self) -> Walk {
        self.comments();
        let token = self.tokens.get_mut(self.at).ok_or(Mismatch)?;
        (token.kind, token.text) = (TokenKind::Assign, "=");
        self.put(Cmd::Text(">"));
        Ok(())
    }

    /// Takes the next token, which is of this kind, without writing it. Its comments stay.
    pub fn drop(&mut self, kind: TokenKind) -> Walk {
        let token = self.tokens.get(self.at).filter(|token| token.kind == kind).ok_or(Mismatch)?;
        let (above, after, blank) = (token.above.clone(), token.after, token.blank);
        self.at += 1;
        match self.tokens.get_mut(self.at) {
            Some(next) if !above.is_empty() => {
                next.blank |= blank && next.above.is_empty();
                next.above.splice(0..0, above);
            }
            None if !above.is_empty() => return Err(Mismatch),
            _ => {}
        }
        self.out.extend(after.map(Cmd::Comment));
        Ok(())
    }

    /// A blank, except at the start of a line.
    pub fn space(&mut self) {
        self.put(Cmd::Space);
    }

    /// A group that is laid flat where it fits.
    pub fn open(&mut self) {
        self.put(Cmd::Open { limit: WIDTH });
    }

    /// A group that is laid flat where its line has at most `limit` columns then; never with 0.
    pub fn open_within(&mut self, limit: usize) {
        self.put(Cmd::Open { limit });
    }

    /// The end of a group.
    pub fn close(&mut self) {
        self.put(Cmd::Close);
    }

    /// One step to the right from the next line on.
    pub fn indent(&mut self) {
        self.put(Cmd::Indent);
    }

    /// One step back.
    pub fn dedent(&mut self) {
        self.put(Cmd::Dedent);
    }

    /// The end of the first column of a table.
    pub fn column(&mut self) {
        self.put(Cmd::Column);
    }

    /// A break inside an expression, where empty lines are not kept; with the comments that follow it.
    pub fn line(&mut self, space: bool) {
        self.put(Cmd::Line { space, blank: false });
        self.comments();
    }

    /// A break of a list that is filled line by line.
    pub fn fill(&mut self) {
        self.put(Cmd::Fill);
        self.comments();
    }

    /// A break between two parts, where one empty line is kept; with the comments that follow it.
    pub fn part(&mut self, space: bool) {
        let blank = self.blank_ahead();
        self.put(Cmd::Line { space, blank });
        self.comments();
    }

    /// Writes an opening bracket, and goes to the right of it. `space`: with a blank inside the brackets where they
    /// are flat.
    pub fn enter(&mut self, open: TokenKind, space: bool) -> Walk {
        self.token(open)?;
        self.indent();
        self.line(space);
        Ok(())
    }

    /// Writes a closing bracket below what it closes.
    pub fn leave(&mut self, close: TokenKind, space: bool) -> Walk {
        self.comments_at_end();
        self.dedent();
        self.put(Cmd::Line { space, blank: false });
        self.token(close)
    }

    /// Comments before a closing bracket: they belong to what is inside.
    fn comments_at_end(&mut self) {
        let Some(token) = self.tokens.get_mut(self.at) else { return };
        if token.above.is_empty() {
            return;
        }
        let above = std::mem::take(&mut token.above);
        token.blank = false;
        // Directly after the opening bracket no empty line is kept.
        let mut inside = !matches!(self.out.last(), Some(Cmd::Indent));
        for comment in above {
            self.put(Cmd::Hard { blank: comment.blank && inside });
            self.put(Cmd::Text(comment.text));
            inside = true;
        }
    }

    /// Whether comments stand above the next token.
    pub fn has_comments(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|token| !token.above.is_empty())
    }

    /// A comma between two parts.
    pub fn comma(&mut self) -> Walk {
        self.put(Cmd::Text(","));
        self.drop(TokenKind::Comma)
    }

    /// A comma between two parts where they share a line, none where each has its own.
    pub fn light_comma(&mut self) -> Walk {
        self.put(Cmd::IfFlat(","));
        if self.next_is(TokenKind::Comma) { self.drop(TokenKind::Comma) } else { Ok(()) }
    }

    /// The comma after the last part: where each has its own line, or never.
    pub fn last_comma(&mut self, broken: &'static str) -> Walk {
        self.put(Cmd::IfBroken(broken));
        if self.next_is(TokenKind::Comma) { self.drop(TokenKind::Comma) } else { Ok(()) }
    }

    /// Whether everything was taken.
    pub fn finished(&self) -> bool {
        self.at == self.tokens.len()
    }
}
