//! Habits of other languages: comments of SQL, lambdas, reserved words in capitals, an `if` in another form.
//!
//! Rules of [`super::Place::explain`]: each knows one mistake, and says nothing where it sees another.

use super::{Answer, Place, Repair};
use crate::error::{self, SyntaxError};
use crate::symbols::Sym;
use crate::token::{TokenKind, TokenKind as T};

impl<'a> Place<'_, 'a> {
    /// `-- a comment of SQL` on a line of its own.
    pub(super) fn dashes(&self) -> Option<Answer<'a>> {
        let (symbol, next) = (self.here()?, self.after()?);
        if !symbol.first_on_line || !symbol.is(T::Minus) || !next.is(T::Minus) || symbol.span.end != next.span.start {
            return None;
        }
        let marks = symbol.span.to(next.span);
        let fault =
            SyntaxError::new(error::COMMENT_FORM, marks, "comments do not start with `--`", "not a comment here")
                .help("start every line of a comment with `//`")
                .fix(marks, "//");
        Some((Some(fault), Repair::Region))
    }

    /// `filter(o => o.id > 1)`
    pub(super) fn lambda(&self) -> Option<Answer<'a>> {
        let (opener, name) = (self.opener()?, self.before(1)?);
        if !self.is(T::FatArrow) || !opener.is(T::LParen) || !(name.is_name() || name.is(T::RParen)) {
            return None;
        }
        let fault = self
            .fault(
                error::UNEXPECTED,
                "there are no functions of rows: an operator takes the expression itself",
                "not needed",
            )
            .help("leave out the name and `=>`, and write the fields by their bare names: `filter(id > 1)`");
        Some((Some(fault), Repair::Region))
    }

    /// `AND`, `Is`, `NULL`: reserved words are lower-case.
    pub(super) fn upper_case(&self) -> Option<Answer<'a>> {
        let try_at = |at: usize, taken: bool| {
            let symbol = self.symbols.get(at)?;
            let text = match symbol.sym {
                Sym::Name(text) => text,
                _ => return None,
            };
            let lower = text.to_lowercase();
            let kind = TokenKind::reserved(&lower).filter(|_| lower != text)?;
            // After a value a name cannot stand anyway, an operator can; a value only where it is expected.
            let operator = ![T::True, T::False, T::Null, T::If, T::Match].contains(&kind) && !self.expected.value();
            (!taken || operator || self.expected.has(&lower)).then_some((at, symbol, text, lower, kind))
        };
        let (at, symbol, text, lower, kind) = try_at(self.at, true).or_else(|| {
            let prefix = self.at.checked_sub(1).and_then(|at| try_at(at, false))?;
            [T::Not, T::If, T::Match].contains(&prefix.4).then_some(prefix)
        })?;
        let fault = SyntaxError::new(
            error::FOREIGN_OPERATOR,
            symbol.span,
            format!("`{text}` is written `{lower}`"),
            "not in capitals",
        )
        .help(format!("write `{lower}`"))
        .fix(symbol.span, lower);
        Some((Some(fault), Repair::Replace(at, vec![Sym::Token(kind)])))
    }

    pub(super) fn conditional(&self) -> Option<Answer<'a>> {
        const FORM: &str = "write `if condition then value else value`";
        let e = self.expected;
        let text = self.here().map_or("", |symbol| self.source(symbol));
        if e.after_value() && self.is(T::Question) {
            let fault = self.fault(error::IF_FORM, "there is no `? :`", "not an operator here").help(FORM);
            return Some((Some(fault), Repair::Region));
        }
        let called = self.opener().is_some_and(|open| {
            let at = self.symbols.iter().position(|symbol| symbol.span == open.span);
            at.and_then(|at| at.checked_sub(1)).is_some_and(|at| self.symbols[at].is(T::If))
        });
        if called && self.is(T::Comma) {
            let fault = self.fault(error::IF_FORM, "`if` is not a function", "no arguments here").help(FORM);
            return Some((Some(fault), Repair::Region));
        }
        if e.value() && !e.has("if") && self.is(T::If) {
            let fault = self
                .fault(
                    error::IF_FORM,
                    format!("an `if` after {} needs parentheses", self.before_text()),
                    "put it in parentheses",
                )
                .help("write `(if condition then value else value)`");
            return Some((Some(fault), Repair::Region));
        }
        if e.value() && !e.has("not") && self.is(T::Not) {
            let fault = self
                .fault(
                    error::UNEXPECTED,
                    format!("a `not` after {} needs parentheses", self.before_text()),
                    "put it in parentheses",
                )
                .help("write `(not …)`");
            return Some((Some(fault), Repair::Region));
        }
        // Where a name fits, these words are names.
        let word = ["then", "else"].into_iter().find(|word| e.has(word) && !e.has("name"))?;
        if self.is(T::Assign) || self.is(T::EqEq) {
            return None;
        }
        let message = match (word, text) {
            ("then", "{") => "the value of an `if` stands after `then`, not in braces".to_owned(),
            ("then", _) => format!("expected `then` after the condition, found {}", self.here_text()),
            _ => format!("an `if` needs an `else`: expected `else`, found {}", self.here_text()),
        };
        Some((Some(self.fault(error::IF_FORM, message, format!("expected `{word}`")).help(FORM)), Repair::Region))
    }
}
