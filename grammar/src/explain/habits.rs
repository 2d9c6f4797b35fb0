//! Habits of other languages: comments of SQL, lambdas, reserved words in capitals, an `if` in another form.
//!
//! Rules of [`super::Place::explain`]: each knows one mistake, and says nothing where it sees another.

use super::{Answer, Place, Repair, SQL_WORDS};
use crate::error::{self, SyntaxError};
use crate::symbols::{Sym, Symbol};
use crate::token::{TokenKind, TokenKind as T};

/// How a value is chosen by a condition.
const FORM: &str = "write `if condition then value else value`";

/// How a value is chosen among several.
pub(super) const CHOICE: &str =
    "write `match { condition => value, else => value }`, or `if condition then value else value`";

/// How the units of durations are written out, and the unit of each.
const DURATIONS: &[(&str, &str)] =
    &[("milli", "ms"), ("sec", "s"), ("min", "m"), ("hour", "h"), ("hrs", "h"), ("day", "d")];

/// Operators and clauses of SQL and other languages behind a value, and what does it here.
const ROWS: &[(&str, &str)] = &[
    ("ilike", "write `lower(name) like \"%a%\"`"),
    ("rlike", "a pattern is tested with `matches`: `name matches r\"^a\"`"),
    ("regexp", "a pattern is tested with `matches`: `name matches r\"^a\"`"),
    ("over", "there are no window functions: the newest row of each group is `distinct(by: [id], order: desc(day))`"),
    ("mod", "the remainder is written `a % b`"),
    ("isnull", "write `is null`"),
    ("notnull", "write `is not null`"),
    ("contains", "write `contains(text, part)`"),
];

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

    /// `derive((net: price * 2))`
    pub(super) fn argument_in_parentheses(&self) -> Option<Answer<'a>> {
        let (callee, label) = super::argument_in_parentheses(self.symbols, self.at)?;
        let (callee, label) = (super::source(self.text, callee), super::source(self.text, label));
        let fault = SyntaxError::new(
            error::UNEXPECTED,
            self.before(2)?.span,
            format!("the argument `{label}:` stands in parentheses of its own"),
            "not needed",
        )
        .help(format!("take these parentheses out: `{callee}({label}: …)`"));
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

    /// `match x { "a" -> 1, "b": 2 }`
    pub(super) fn match_arm(&self) -> Option<Answer<'a>> {
        if !self.expected.has("=>") || !(self.is(T::Colon) || self.is(T::Arrow)) {
            return None;
        }
        let message = format!("expected `=>` after {}, found {}", self.before_text(), self.here_text());
        let fault = self
            .fault(error::COLON_OR_EQUALS, message, "expected `=>`")
            .help("the value of an arm stands after `=>`")
            .fix(self.span(), "=>");
        Some((Some(fault), self.replace(&[T::FatArrow])))
    }

    /// Two words in a row that mean something elsewhere: `id desc`, `3 days`, `count(distinct id)`, `a if b else c`.
    pub(super) fn words_in_a_row(&self, last: &Symbol<'a>, symbol: &Symbol<'a>) -> Option<SyntaxError> {
        let (before, here) = (self.source(last), self.source(symbol));
        let (first, second) = (before.to_lowercase(), here.to_lowercase());
        let both = last.span.to(symbol.span);
        let says = |code, span, message: String, label: &str, help: String| {
            Some(SyntaxError::new(code, span, message, label).help(help))
        };
        if first == "case" || (symbol.is(T::LBrace) && last.is(T::RParen)) {
            let span = if first == "case" { last.span } else { symbol.span };
            let message =
                if first == "case" { format!("there is no `{before}`") } else { "braces can't stand here".into() };
            return says(error::IF_FORM, span, message, "not a word of the language", CHOICE.into());
        }
        if symbol.is(T::If) {
            return says(
                error::IF_FORM,
                symbol.span,
                "an `if` stands before its values".into(),
                "not behind a value",
                FORM.into(),
            );
        }
        if second == "desc" || second == "asc" {
            let message =
                format!("an order is written around its value: `{here}` can't stand behind {}", self.before_text());
            return says(
                error::MISSING_COMMA,
                both,
                message,
                "the order of a field",
                format!("write `{second}({before})`"),
            );
        }
        if second == "nulls" {
            return says(
                error::MISSING_COMMA,
                both,
                "where nulls stand is said inside the order".into(),
                "behind a value",
                "write `asc(field, nulls: first)`, or `desc(field, nulls: first)`; without it they stand last".into(),
            );
        }
        if first == "distinct" {
            let select = self.callee() == Some("select");
            return says(
                error::MISSING_COMMA,
                both,
                "`distinct` can't stand before a field".into(),
                "not a word of its own here",
                match select {
                    true => format!("write `select({here}) |> distinct()`"),
                    false => format!("distinct values are counted with `count_distinct({here})`"),
                },
            );
        }
        if let (Sym::String(text), "date" | "datetime" | "timestamp" | "time") = (&symbol.sym, first.as_str())
            && let Some(literal) = crate::literal::moment(text)
        {
            let message = "dates and times stand behind `@`, not in quotes".into();
            return says(error::MISSING_COMMA, both, message, "a literal of SQL", format!("write `{literal}`"));
        }
        if first == "interval" {
            let unit = self.after().map(|unit| self.source(unit).to_lowercase());
            let unit = unit.and_then(|unit| DURATIONS.iter().find(|(word, _)| unit.starts_with(word)));
            let help = match (&symbol.sym, unit) {
                (Sym::Int(_), Some((_, unit))) => format!("write `{here}{unit}`"),
                (Sym::String(_) | Sym::Int(_), _) => {
                    "a duration is written `3d`, `2h`, `30s`; months are added with `add_months(day, 1)`".into()
                }
                _ => format!("write `{here}`"),
            };
            let message = "a duration stands without `interval`".into();
            return says(error::MISSING_COMMA, both, message, "a literal of SQL", help);
        }
        let unit = DURATIONS.iter().find(|(word, _)| second.starts_with(word));
        if let (Sym::Int(_), Some((_, unit))) = (&last.sym, unit) {
            let message = format!("a duration is one word: `{before} {here}` is none");
            return says(error::BAD_NUMBER, both, message, "number and unit", format!("write `{before}{unit}`"));
        }
        if let Some((_, help)) = ROWS.iter().find(|(word, _)| *word == second) {
            let message = format!("there is no `{here}`");
            return says(error::FOREIGN_OPERATOR, symbol.span, message, "not a word of the language", (*help).into());
        }
        if first == "lambda" {
            let help =
                "an operator takes the expression itself, with the fields by their bare names: `derive(x: id + 1)`";
            return says(
                error::UNEXPECTED,
                last.span,
                "there are no functions of rows".into(),
                "not needed",
                help.into(),
            );
        }
        if second == "from" && self.opener().is_some_and(|open| open.is(T::LParen)) {
            let help = format!("parts of a date are functions: `{first}(day)`");
            return says(
                error::FOREIGN_OPERATOR,
                symbol.span,
                format!("there is no `{here}`"),
                "not a word of the language",
                help,
            );
        }
        let label = ["on", "using", "where"].iter().find(|word| **word == second || **word == first);
        if let Some(word) = label {
            let word = if *word == "using" { "on" } else { word };
            let message =
                format!("expected `,` or an operator between {} and {}", self.before_text(), self.here_text());
            let help = format!("an argument has its name and `:` before it: `{word}: …`");
            return says(error::MISSING_COMMA, symbol.span, message, "two words in a row", help);
        }
        if SQL_WORDS.contains(&second.as_str()) {
            let message = format!("`{here}` can't stand here: a clause of SQL is an operator of its own");
            let help = "write `|> filter(…) |> select(…)`";
            return says(error::MISSING_COMMA, symbol.span, message, "a clause of SQL", help.into());
        }
        None
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
        // `IS NOT NULL` is one thing to its writer.
        let (mut span, mut text, mut small) = (symbol.span, text.to_owned(), lower);
        if kind == T::Is {
            let more = self.symbols[at + 1..].iter().map_while(|symbol| {
                let word = self.source(symbol);
                ["not", "null"].contains(&word.to_lowercase().as_str()).then_some((symbol.span, word))
            });
            for (at, word) in more.take(2) {
                (span, text, small) =
                    (span.to(at), format!("{text} {word}"), format!("{small} {}", word.to_lowercase()));
            }
        }
        let message = format!("`{text}` is written `{small}`");
        let fault = SyntaxError::new(error::FOREIGN_OPERATOR, span, message, "not in capitals")
            .help(format!("write `{small}`"))
            .fix(span, small);
        Some((Some(fault), Repair::Replace(at, vec![Sym::Token(kind)])))
    }

    pub(super) fn conditional(&self) -> Option<Answer<'a>> {
        let e = self.expected;
        let text = self.here().map_or("", |symbol| self.source(symbol));
        if e.after_value() && self.is(T::Question) && self.after().is_some_and(|next| next.is(T::Dot)) {
            let fault = self
                .fault(error::IF_FORM, "there is no `?.`", "not an operator here")
                .help("leave the `?` out: a part of null is null");
            return Some((Some(fault), Repair::Region));
        }
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
        let further = ["elif", "elsif", "elseif"].contains(&text.to_lowercase().as_str());
        let help = if further { "a further condition is written `else if condition then value`" } else { FORM };
        Some((Some(self.fault(error::IF_FORM, message, format!("expected `{word}`")).help(help)), Repair::Region))
    }
}
