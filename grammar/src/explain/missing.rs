//! What is missing: a comma, a value, a name, a type, an end. What the rules before these haven't seen ends up here.

use super::{Answer, ITEM_WORDS, Place, Repair, clauses, item_name, shown};
use crate::ast::Span;
use crate::error::{self, SyntaxError};
use crate::symbols::{Sym, Symbol, Word};
use crate::token::TokenKind as T;

impl<'a> Place<'_, 'a> {
    /// Something that begins a value or a name right behind another: a comma is missing, or a habit of SQL or Python.
    pub(super) fn comma(&self) -> Option<Answer<'a>> {
        let symbol = self.here()?;
        let starts = match symbol.sym {
            Sym::Token(kind) => kind.is_reserved() || [T::LBrace, T::LBracket, T::Ellipsis].contains(&kind),
            Sym::Error | Sym::FormatText(_) | Sym::FormatEnd => false,
            _ => true,
        };
        let sink_block = self.expected.has("|>") && !self.expected.has(")");
        if !starts || !self.expected.has(",") || sink_block {
            return None;
        }
        let last = self.before(1)?;
        if let Some(fault) = self.words_in_a_row(last, symbol) {
            return Some((Some(fault), Repair::Region));
        }
        if let Some(fault) = self.prefix_of_a_text(last, symbol).or_else(|| self.one_condition(last)) {
            return Some((Some(fault), Repair::Region));
        }
        let end = Span { start: last.span.end, end: last.span.end };
        let fault = self.fault(
            error::MISSING_COMMA,
            format!("expected `,` or an operator between {} and {}", self.before_text(), self.here_text()),
            "expected `,` before this",
        );
        if self.after().is_some_and(|s| s.is(T::Colon)) || self.is(T::Else) {
            let fault = fault.help("write `,`").fix(end, ",");
            return Some((Some(fault), Repair::Insert(vec![Sym::Token(T::Comma)])));
        }
        let text = |symbol: &Symbol<'_>| matches!(symbol.sym, Sym::String(_) | Sym::FormatStart | Sym::FormatEnd);
        let fault = fault.help(match text(last) || text(symbol) {
            true => "write `,` between two arguments; texts are joined with `concat(a, b)` or `f\"{a}{b}\"`",
            false => "write `,` between two arguments, or the operator that joins two values, such as `+` or `==`",
        });
        Some((Some(fault), Repair::Region))
    }

    /// `date"2026-01-31"`, `b"x"`: a name that touches a text.
    fn prefix_of_a_text(&self, last: &Symbol<'a>, symbol: &Symbol<'a>) -> Option<SyntaxError> {
        if !matches!(symbol.sym, Sym::String(_)) || !last.is_name() || last.span.end != symbol.span.start {
            return None;
        }
        let message = format!("a text has no `{}` before it", self.source(last));
        let fault = SyntaxError::new(error::UNEXPECTED, last.span, message, "not needed")
            .help("a text is `\"…\"`, one with values in it `f\"{a}\"`, one without escapes `r\"…\"`; a date is `@2026-01-31`");
        Some(fault)
    }

    /// `filter(id 1)`: two values where there is room for one.
    fn one_condition(&self, last: &Symbol<'a>) -> Option<SyntaxError> {
        let open = self.opener().and_then(|open| self.symbols.iter().position(|symbol| symbol.span == open.span))?;
        if self.callee() != Some("filter") || self.symbols[open + 1..self.at].iter().any(|s| s.is(T::Comma)) {
            return None;
        }
        let message = format!("expected an operator between {} and {}", self.before_text(), self.here_text());
        let here = self.here().map_or("1", |symbol| self.source(symbol));
        let fault = self.fault(error::UNEXPECTED, message, "expected an operator before this");
        Some(fault.help(match last.is_name() {
            true => format!(
                "two values are compared, as in `{} == {here}`; two conditions are joined with `and`",
                self.source(last)
            ),
            false => "two values are compared, as in `a == b`; two conditions are joined with `and`".to_owned(),
        }))
    }

    /// What is missing, where nothing special is known.
    pub(super) fn general(&self) -> SyntaxError {
        let e = self.expected;
        let (before, found, sum) = (self.before_text(), self.here_text(), e.summary());
        let after = if before.is_empty() { String::new() } else { format!(" after {before}") };
        let expected = format!("expected {sum}");
        if e.0.is_empty() || (e.has("|>") && self.opener().is_none()) {
            return self.complete();
        }
        let sized = (1..4).any(|by| self.before(by).is_some_and(|symbol| symbol.sym == Sym::Word(Word::Decimal)));
        if sized && (self.is(T::RParen) || !e.value()) && !e.type_() {
            let digits = self.before(1).filter(|digits| matches!(digits.sym, Sym::Int(_)));
            return self.fault(error::UNEXPECTED, format!("{expected}{after}, found {found}"), expected).help(format!(
                "write `decimal({}, 2)`: the digits in all, then those after the point",
                digits.map_or("15", |digits| self.source(digits))
            ));
        }
        if e.after_value() {
            let message = format!("{found} cannot stand{after}");
            return self.helped(self.fault(error::UNEXPECTED, message, expected));
        }
        if e.value() {
            let closing = e.has(")") || e.has("]") || e.has("}");
            let message = if closing {
                format!("expected {sum}{after}, found {found}")
            } else {
                format!("expected a value{after}, found {found}")
            };
            return self.helped(self.fault(error::EXPECTED_VALUE, message, "expected a value, a name or `(`"));
        }
        if e.type_() {
            return self
                .fault(error::EXPECTED_TYPE, format!("expected a type{after}, found {found}"), "expected a type")
                .help(
                    "a type is `int64`, `string?`, `decimal(15, 2)`, `list<string>`, `record { … }` or a record's name",
                );
        }
        if e.name() && !e.has(",") && !e.has("}") {
            let fault = self.fault(error::EXPECTED_NAME, format!("{expected}{after}, found {found}"), expected);
            let text = self.here().is_some_and(|s| matches!(s.sym, Sym::String(_)));
            return match text {
                true => fault.help("a name stands without quotes; put an unusual one in backticks"),
                false if self.at == 1 => fault.help(clauses::form(item_name(self.word))),
                false => self.helped(fault),
            };
        }
        if e.has(":") && (self.is(T::Comma) || self.is(T::RBrace) || self.is(T::RParen)) {
            let what = match self.word {
                Word::Record => Some("field"),
                Word::Fn | Word::Operator => Some("parameter"),
                _ => None,
            };
            if let Some(what) = what {
                let name = self.before(1).map_or("name", |name| self.source(name));
                return self
                    .fault(error::EXPECTED_TYPE, format!("the {what} {before} has no type"), "expected `:` and a type")
                    .help(format!("write its type behind it, such as `{name}: string` or `{name}: int64`"));
            }
        }
        self.helped(self.fault(error::UNEXPECTED, format!("{expected}{after}, found {found}"), expected))
    }

    /// Something behind an item that could have ended.
    fn complete(&self) -> SyntaxError {
        let item = item_name(self.word);
        let chain = matches!(self.word, Word::Source | Word::Stream | Word::Sink);
        let statement = self.before(1).filter(|s| self.source(s).eq_ignore_ascii_case("select"));
        if let (true, Some(word)) = (chain, statement) {
            let text = self.source(word);
            let message = format!("`{text}` begins a statement of SQL, not a chain");
            return SyntaxError::new(error::SQL, word.span, message, "not a stream")
                .help("write a chain: `stream x = orders |> filter(…) |> select(…)`");
        }
        // `const x = a if b else c`: an expression that could have ended.
        if let (false, Some(last), Some(symbol)) = (chain, self.before(1), self.here())
            && !symbol.first_on_line
            && let Some(fault) = self.words_in_a_row(last, symbol)
        {
            return fault;
        }
        let found = self.here_text();
        if let Some(symbol) = self.here().filter(|symbol| symbol.first_on_line && !symbol.is(T::Pipe)) {
            let assigned = self.after().is_some_and(|next| next.is(T::Assign)) && symbol.is_name();
            let known = ITEM_WORDS.iter().any(|(word, _)| *word == self.source(symbol));
            let form = match known {
                true => Some(clauses::form(self.source(symbol))),
                false => {
                    let name = self.after().filter(|next| next.is_name()).map(|next| self.source(next));
                    clauses::foreign_item(self.source(symbol), name).filter(|_| symbol.is_name())
                }
            };
            let several = self.word == Word::Sink && self.after().is_some_and(|next| next.is(T::Pipe));
            if !several {
                let name = self.source(symbol);
                return self.fault(error::UNKNOWN_ITEM, format!("{found} does not begin an item"), "not an item").help(
                    match (form, assigned) {
                        (Some(form), _) => form.to_owned(),
                        (None, true) => {
                            format!("a stream is named with `stream {name} = …`, a value with `const {name} = …`")
                        }
                        (None, false) if symbol.is_name() && self.after().is_some_and(|next| next.is(T::Pipe)) => {
                            clauses::bare_chain(name)
                        }
                        // A bullet before the next link.
                        (None, false) if chain && self.after().is_some_and(|next| next.is(T::Pipe)) => {
                            format!("take the {found} out: the chain goes on with `|>`")
                        }
                        (None, false) if chain => {
                            format!("the next operator of a chain stands after `|>`; {}", clauses::items())
                        }
                        (None, false) => clauses::items(),
                    },
                );
            }
        }
        let goes_on = if chain { "expected `|>` or the end of it" } else { "expected the end of it" };
        let fault = self.fault(error::UNEXPECTED, format!("the `{item}` is complete before {found}"), goes_on);
        let next_item = self.here().is_some_and(|s| ITEM_WORDS.iter().any(|(name, _)| *name == self.source(s)));
        match self.word {
            _ if next_item => fault.help("an item starts on a line of its own"),
            Word::Sink if self.is(T::Assign) => {
                fault.help("a sink has no name: write the stream that it writes, `sink orders |> csv(\"out.csv\")`")
            }
            Word::Sink if self.is(T::Pipe) => fault.help(
                "the chain belongs inside the braces, `sink { orders |> … }`, or stands without them: `sink orders |> …`",
            ),
            Word::Sink if self.is(T::Comma) || self.after().is_some_and(|next| next.is(T::Pipe)) => {
                fault.help("several targets stand in braces: `sink { a |> csv(\"a.csv\")  b |> print() }`")
            }
            _ if chain => fault.help("the next operator of a chain stands after `|>`"),
            _ => fault,
        }
    }

    /// A general message with what is probably meant.
    fn helped(&self, fault: SyntaxError) -> SyntaxError {
        match self.meant() {
            Some(help) => fault.help(help),
            None => fault,
        }
    }

    /// What is probably meant where a general message only says what was expected.
    fn meant(&self) -> Option<String> {
        self.missing_value()
            .or_else(|| self.of_a_comparison())
            .or_else(|| self.of_a_bracket())
            .or_else(|| self.of_an_item())
    }

    fn missing_value(&self) -> Option<String> {
        let (before, callee) = (self.before(1)?, self.before(2));
        let called = |name: &str| callee.is_some_and(|name_| self.source(name_).eq_ignore_ascii_case(name));
        if before.is(T::LParen) && self.is(T::Star) {
            let link = self.before(3).is_some_and(|symbol| symbol.is(T::Pipe));
            return match callee.filter(|name| name.is_name()) {
                Some(_) if called("count") => Some("write `count()`: it counts rows".into()),
                Some(_) if called("select") => {
                    Some("leave it out: without `select` all fields are passed on; `drop(…)` takes some away".into())
                }
                Some(name) if !link => {
                    Some(format!("`*` is no value: name a field in its place, `{}(…)`", self.source(name)))
                }
                _ => None,
            };
        }
        let in_text = callee.is_some_and(|s| matches!(s.sym, Sym::FormatStart | Sym::FormatText(_)));
        if before.is(T::LBrace) && self.is(T::RBrace) && in_text {
            return Some("put a value between the braces; a plain brace is `{{`".into());
        }
        if self.is(T::Comma) && (before.is(T::Comma) || before.is(T::LParen) || before.is(T::LBracket)) {
            return Some("take the comma out, or write what is missing before it".into());
        }
        let fraction = self.after().filter(|digits| matches!(digits.sym, Sym::Int(_)));
        if let (true, Some(digits)) = (self.is(T::Dot) && self.expected.value(), fraction) {
            return Some(format!("write `0.{}`", self.source(digits)));
        }
        if before.is(T::Pipe) {
            return Some("write the next operator, such as `filter(…)`, or take the `|>` out".into());
        }
        let operator = [T::Plus, T::Minus, T::Star, T::Slash, T::EqEq, T::NotEq, T::Lt, T::Le, T::Gt, T::Ge];
        let operator = operator.iter().any(|kind| before.is(*kind)) || before.is(T::And) || before.is(T::Or);
        (operator && self.expected.value())
            .then(|| format!("write a value behind it, or take the {} out", shown(self.source(before))))
    }

    /// `in (1, 2)`, `is not 1`, `between 1, 9`
    fn of_a_comparison(&self) -> Option<String> {
        let opener = self.opener().and_then(|open| self.symbols.iter().position(|s| s.span == open.span));
        let list = opener.filter(|at| self.symbols[*at].is(T::LParen)).and_then(|at| at.checked_sub(1));
        let list = list.map(|at| &self.symbols[at]);
        if let Some(word) = list.filter(|word| word.is(T::In) || word.is(T::Colon)) {
            if self.before(1).is_some_and(|s| self.source(s).eq_ignore_ascii_case("select")) {
                return Some("rows that another stream has too are kept by `|> join(other, on: …, kind: semi)`".into());
            }
            if self.is(T::Comma) {
                return Some(match word.is(T::In) {
                    true => "write the values in square brackets: `in [1, 2]`".into(),
                    false => "a list stands in square brackets: `[a, b]`".into(),
                });
            }
        }
        let negated = self.before(1).is_some_and(|s| s.is(T::Not));
        if self.expected.has("null") && self.before(1 + usize::from(negated)).is_some_and(|s| s.is(T::Is)) {
            let word = self.here().map_or("", |symbol| self.source(symbol)).to_lowercase();
            let not = if negated { "not " } else { "" };
            return Some(match (word.as_str(), negated) {
                ("none" | "nil" | "nan" | "empty" | "undefined", _) => format!("write `is {not}null`"),
                ("true" | "false", _) => "a bool is a condition by itself: write `paid` or `not paid`".into(),
                (_, true) => "write `a != b`; `is not` compares with `null` only".into(),
                (_, false) => "write `a == b`; `is` compares with `null` only".into(),
            });
        }
        let between = self.before(2).is_some_and(|s| s.is(T::Between));
        (between && self.is(T::Comma)).then(|| "the bounds are joined with `and`: `between 1 and 9`".into())
    }

    /// `status[0:3]`, `f"{price:.2f}"`, `id::string`
    fn of_a_bracket(&self) -> Option<String> {
        if (self.is(T::Arrow) || self.is(T::FatArrow)) && self.expected.after_value() {
            return Some("a value is named by `name: value`; a field is renamed with `rename(new: old)`".into());
        }
        if !self.is(T::Colon) || !self.expected.after_value() {
            return None;
        }
        if let Some(ty) = self.after().filter(|next| next.is(T::Colon)).and(self.symbols.get(self.at + 2)) {
            let value = self.before(1).map_or("x", |value| self.source(value));
            return Some(format!("a value is converted with `as`: `{value} as {}`", self.source(ty)));
        }
        let open = self.opener()?;
        let at = self.symbols.iter().position(|symbol| symbol.span == open.span)?;
        let before = at.checked_sub(1).map(|at| &self.symbols[at]);
        if open.is(T::LBracket) {
            return Some("a part of a text is `substring(x, start, count)`, counted from 1".into());
        }
        let in_text = before.is_some_and(|s| matches!(s.sym, Sym::FormatStart | Sym::FormatText(_)));
        (open.is(T::LBrace) && in_text).then(|| {
            "there are no format codes: compute the value, `round(price, 2)` or `format_date(day, \"%d.%m.%Y\")`".into()
        })
    }

    /// `record R = { … }`, `fn f(x: int64) { … }`, `job nightly-report {}`, `use lib`
    fn of_an_item(&self) -> Option<String> {
        let e = self.expected;
        let outside = self.opener().is_none();
        match self.word {
            Word::Job if e.has("{") && outside => {
                Some("write `job name {}`; the name is one word, as `revenue_by_country`".into())
            }
            Word::Record if e.has("{") && outside => Some(clauses::form("record")),
            Word::Record if e.has("string") && self.before(1).is_some_and(|s| s.is(T::Assign)) => Some(
                "`=` gives the name outside, `id: int64 = \"Order No\"`; in null's place a value is put by `derive(id: id ?? 0)`"
                    .into(),
            ),
            Word::Fn if e.has("=") && outside => {
                Some("a function is one expression behind `=`: `fn next(x: int64) = x + 1`".into())
            }
            Word::Use if e.has("string") => {
                let name = self.here().filter(|s| Symbol::is_name(s)).map_or("lib", |s| self.source(s));
                Some(format!("write the file's path: `use \"{name}.df\"`"))
            }
            _ => None,
        }
    }
}
