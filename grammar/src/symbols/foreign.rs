//! What other languages write — their quotes, operators and characters — answered and replaced by what was meant.

use super::{Builder, Sym};
use crate::ast::Span;
use crate::error::{self, SyntaxError};
use crate::literal;
use crate::token::{TokenKind, lex};

/// Characters that are written for others, and what is meant.
const LOOKALIKES: &[(char, &str)] = &[
    ('，', ","),
    ('、', ","),
    ('：', ":"),
    ('（', "("),
    ('）', ")"),
    ('［', "["),
    ('］', "]"),
    ('｛', "{"),
    ('｝', "}"),
    ('＝', "="),
    ('＋', "+"),
    ('－', "-"),
    ('−', "-"),
    ('–', "-"),
    ('×', "*"),
    ('÷', "/"),
    ('＜', "<"),
    ('＞', ">"),
    ('≤', "<="),
    ('≥', ">="),
    ('≠', "!="),
    ('→', "->"),
    ('…', "..."),
];

/// Operators of other languages: what they are called here, and the token that is meant.
const FOREIGN: &[(&str, &str, TokenKind)] = &[
    ("&&", "and", TokenKind::And),
    ("&", "and", TokenKind::And),
    ("||", "or", TokenKind::Or),
    ("!", "not", TokenKind::Not),
    ("<>", "!=", TokenKind::NotEq),
    ("===", "==", TokenKind::EqEq),
    ("!==", "!=", TokenKind::NotEq),
];
impl<'a> Builder<'a> {
    pub(super) fn single_quoted(&mut self, text: &'a str, span: Span) {
        let closed = text.len() > 1 && text.ends_with('\'');
        if !closed && self.line_start && !self.out.symbols.is_empty() {
            // What follows on its line is in the token.
            let mark = Span { end: span.start + 1, ..span };
            let fault =
                SyntaxError::new(error::COMMENT_FORM, mark, "comments do not start with `'`", "not a comment here");
            self.out.errors.push(fault.help("start every line of a comment with `//`").fix(mark, "//"));
            return;
        }
        let content = text.get(1..text.len() - usize::from(closed)).unwrap_or("").trim_end();
        let mut fault = SyntaxError::new(
            error::SINGLE_QUOTES,
            Span { end: span.start + text.trim_end().len() as u32, ..span },
            "a text stands in double quotes, not in single ones",
            "single quotes",
        )
        .help("write `\"…\"`");
        if closed && !content.contains(['"', '\\']) {
            let written = format!("\"{content}\"");
            let is_name = content.starts_with(|c: char| c.is_ascii_alphabetic())
                && content.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            fault = fault.help(match is_name {
                true => format!("write `{written}` for a text; a field or a name stands without quotes: `{content}`"),
                false => format!("write `{written}`"),
            });
            fault = fault.fix(span, written);
        }
        // `f'{id}'`, `date '2026-01-31'`: what stands before belongs to it.
        let mut whole = span;
        let prefix = match self.out.symbols.last().map(|last| (&last.sym, last.span)) {
            Some((Sym::Name(name), at)) => Some((name.to_lowercase(), at)),
            _ => None,
        };
        match prefix.as_ref().map(|(name, at)| (name.as_str(), *at)) {
            Some((kind @ ("f" | "r"), at)) if at.end == span.start => {
                let text = format!("{kind}\"{content}\"");
                fault = fault.help(format!("write `{text}`")).fix(at.to(span), text);
                self.out.symbols.pop();
            }
            Some((kind @ ("date" | "datetime" | "timestamp" | "time"), at)) => {
                whole = at.to(span);
                let literal = literal::moment(content).map(|literal| match kind {
                    "datetime" | "timestamp" if !literal.contains(':') => format!("{literal}T00:00:00"),
                    _ => literal,
                });
                let message = "dates and times stand behind `@`, not in quotes";
                fault = SyntaxError::new(error::SINGLE_QUOTES, whole, message, "a literal of SQL").help(match &literal {
                    Some(literal) if kind == "timestamp" && literal.contains('T') && !literal.ends_with('Z') => {
                        format!("write `{literal}`, a time of the wall clock; with `Z` at its end it is an instant in UTC")
                    }
                    Some(literal) => format!("write `{literal}`"),
                    None => "a date is written `@2026-01-31`, a time `@10:00:00`, both `@2026-01-31T10:00:00`".into(),
                });
                if let Some(literal) = literal {
                    fault = fault.fix(whole, literal);
                }
                self.out.symbols.pop();
            }
            Some(("interval", _)) => {
                fault = SyntaxError::new(error::SINGLE_QUOTES, fault.span, fault.message, fault.label)
                    .help("a duration is written `3d`, `2h`, `30s`, without `interval`; months are added with `add_months(day, 1)`");
                self.out.symbols.pop();
            }
            _ => {
                if let Some(literal) = literal::moment(content).filter(|_| closed) {
                    let message = "dates and times stand behind `@`, texts in double quotes";
                    fault = SyntaxError::new(error::SINGLE_QUOTES, fault.span, message, "single quotes")
                        .help(format!("write `{literal}`, or for a text `\"{content}\"`"));
                }
            }
        }
        self.out.errors.push(fault);
        self.out.swallowed |= !closed;
        self.emit(Sym::String(content.to_owned()), whole, false);
    }

    pub(super) fn foreign(&mut self, text: &str, span: Span) {
        if text == "<>" && self.out.symbols.last().is_some_and(|last| last.sym == Sym::Name("list")) {
            self.out.errors.push(
                SyntaxError::new(error::LIST_TYPE, span, "a list needs the type of its elements", "a list of what?")
                    .help("write `list<string>`, with a type between `<` and `>`"),
            );
            return;
        }
        let Some((_, here, kind)) = FOREIGN.iter().find(|(foreign, ..)| *foreign == text) else {
            self.out.errors.push(
                SyntaxError::new(
                    error::FOREIGN_OPERATOR,
                    span,
                    format!("there is no operator `{text}`"),
                    "not an operator",
                )
                .help("a power is written `power(x, 2)`"),
            );
            return self.emit(Sym::Token(TokenKind::Star), span, false);
        };
        let next = self.text.get((self.start + span.end) as usize..).unwrap_or("").trim_start();
        let beside = matches!(self.out.symbols.last().map(|s| &s.sym), Some(Sym::String(_) | Sym::FormatEnd));
        if text == "||" && (beside || next.starts_with(['"', '\'']) || next.starts_with("f\"")) {
            self.out.errors.push(
                SyntaxError::new(
                    error::FOREIGN_OPERATOR,
                    span,
                    "texts are not joined with `||`",
                    "no operator of texts",
                )
                .help("write `concat(a, b)` or `f\"{a}{b}\"`; between conditions `||` is written `or`"),
            );
            return self.emit(Sym::Token(*kind), span, false);
        }
        let edit = if *here == "not" { "not ".to_owned() } else { (*here).to_owned() };
        self.out.errors.push(
            SyntaxError::new(
                error::FOREIGN_OPERATOR,
                span,
                format!("`{text}` is written `{here}`"),
                format!("write `{here}`"),
            )
            .help(match text {
                "||" => "write `or`; texts are joined with `concat(a, b)` or `f\"{a}{b}\"`".to_owned(),
                _ => format!("write `{here}`"),
            })
            .fix(span, edit),
        );
        self.emit(Sym::Token(*kind), span, false);
    }

    pub(super) fn unknown(&mut self, text: &str, span: Span) {
        if let Some(meant) = lookalike(text) {
            self.out.errors.push(
                SyntaxError::new(
                    error::UNKNOWN_CHARACTER,
                    span,
                    format!("`{text}` looks like `{meant}` and is another character"),
                    format!("write `{meant}`"),
                )
                .help(format!("write `{meant}`"))
                .fix(span, meant),
            );
            if let Some(token) = lex(meant).first() {
                self.emit(Sym::Token(token.kind), span, false);
            }
            return;
        }
        let shown = text.chars().next().unwrap_or(' ');
        let fault = |message: String| SyntaxError::new(error::UNKNOWN_CHARACTER, span, message, "means nothing here");
        self.out.errors.push(match shown {
            '“' | '”' | '„' | '«' | '»' | '「' | '」' => {
                self.out.swallowed = true;
                fault(format!("`{shown}` does not quote a text")).help("write `\"`")
            }
            c if c.is_whitespace() || c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c) || c == '\u{feff}' => {
                fault(format!("there is a character here that cannot be seen (U+{:04X})", c as u32))
                    .help("replace it by a blank")
                    .fix(span, " ")
            }
            '$' => fault("the character `$` has no meaning here".into())
                .help("a parameter or a field is written by its bare name")
                .fix(span, ""),
            '^' => fault("the character `^` has no meaning here".into()).help("a power is written `power(x, 2)`"),
            '~' => fault("the character `~` has no meaning here".into())
                .help("a pattern is tested with `matches`: `name matches r\"^a\"`"),
            '\\' => fault("the character `\\` has no meaning here".into())
                .help("leave it out: an item may go on over any number of lines"),
            c => fault(format!("the character `{c}` has no meaning here"))
                .help("remove it, or put the name it belongs to in backticks, or the text in `\"…\"`"),
        });
    }
}

/// What is meant by a single character that looks like another.
pub(super) fn lookalike(text: &str) -> Option<&'static str> {
    let mut chars = text.chars();
    let (first, rest) = (chars.next()?, chars.next());
    let (_, meant) = LOOKALIKES.iter().find(|(c, _)| *c == first)?;
    rest.is_none().then_some(*meant)
}
