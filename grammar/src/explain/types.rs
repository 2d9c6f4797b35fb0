//! Types and fields as other languages declare them: `varchar(20)`, `array<string>`, `id int64 not null`, `"id": int64`.

use super::{Answer, Place, Repair};
use crate::error::{self, SyntaxError};
use crate::symbols::{Sym, Word};
use crate::token::TokenKind as T;

/// Names of types elsewhere that take arguments, by their beginning, and the type here; `(…)` takes the arguments over.
const SIZED: &[(&str, &str)] = &[
    ("varchar", "string"),
    ("nvarchar", "string"),
    ("char", "string"),
    ("character", "string"),
    ("string", "string"),
    ("text", "string"),
    ("numeric", "decimal(…)"),
    ("number", "decimal(…)"),
    ("dec", "decimal(…)"),
    ("int", "int64"),
    ("bigint", "int64"),
    ("smallint", "int16"),
    ("tinyint", "int8"),
    ("float", "float64"),
    ("double", "float64"),
    ("varbinary", "bytes"),
    ("binary", "bytes"),
    ("datetime", "datetime"),
    ("timestamp", "timestamp"),
    ("time", "time"),
];

/// Names of types elsewhere that hold another type.
const HOLDERS: &[(&str, bool)] = &[
    ("array", true),
    ("vector", true),
    ("vec", true),
    ("set", true),
    ("sequence", true),
    ("list", true),
    ("optional", false),
    ("union", false),
    ("option", false),
    ("nullable", false),
    ("maybe", false),
];

/// Words behind a field's type in SQL, with what to do.
const CONSTRAINTS: &[(&str, &str)] = &[
    ("primary", "leave it out: the key of a target is its `key: [id]`"),
    ("unique", "leave it out: the key of a target is its `key: [id]`"),
    ("key", "leave it out: the key of a target is its `key: [id]`"),
    ("default", "leave it out: a value in null's place is written with `??`, as in `derive(id: id ?? 0)`"),
    ("unsigned", "whole numbers without a sign are `uint64` (`uint32`, `uint16`, `uint8`)"),
    ("auto_increment", "leave it out: a record only says which fields there are"),
    ("references", "leave it out: a record only says which fields there are"),
    ("check", "leave it out: a condition is checked with `|> require(condition)`"),
    ("comment", "a field is described by a line above it that starts with `///`"),
    ("optional", "a type that takes nulls ends in `?`: `string?`"),
    ("nullable", "a type that takes nulls ends in `?`: `string?`"),
];

/// The beginnings of names that are types here.
const TYPES: &[&str] =
    &["int", "uint", "float", "decimal", "string", "bool", "bytes", "date", "time", "varchar", "text"];

impl<'a> Place<'_, 'a> {
    /// Whether the symbol `by` before the place stands where a type is read.
    fn type_before(&self, by: usize) -> bool {
        let Some(mark) = self.before(by + 1) else { return false };
        mark.is(T::As)
            || mark.is(T::Arrow)
            || (mark.is(T::Colon) && matches!(self.word, Word::Record | Word::Param | Word::Fn))
    }

    /// `int64 | None`, `int64 or null`, `int64??`: a type that takes nulls, as other languages say it.
    pub(super) fn may_be_null(&self) -> Option<Answer<'a>> {
        let ty = self.before(1).filter(|ty| ty.is_name() || ty.is(T::Question))?;
        let name = if ty.is(T::Question) { self.before(2)? } else { ty };
        let typed = self.type_before(if ty.is(T::Question) { 2 } else { 1 });
        if !typed || ![T::Bar, T::Or, T::Coalesce, T::Question].iter().any(|kind| self.is(*kind)) {
            return None;
        }
        let other = self.after().filter(|next| next.is_name() || next.is(T::Null));
        let null = other.is_none_or(|other| {
            ["null", "none", "nil", "undefined"].contains(&self.source(other).to_lowercase().as_str())
        });
        if !null {
            return None;
        }
        let end = other.filter(|_| self.is(T::Bar) || self.is(T::Or)).map_or(self.span(), |other| other.span);
        let span = name.span.to(end);
        let text = super::source(self.text, span);
        let fault = SyntaxError::new(error::UNEXPECTED, span, format!("there is no type `{text}`"), "unknown type")
            .help(format!("a type that takes nulls ends in `?`: `{}?`", self.source(name)));
        Some((Some(fault), Repair::Region))
    }

    /// `varchar(20)`, `array<string>`, `string[]`
    pub(super) fn foreign_type(&self) -> Option<Answer<'a>> {
        let name = self.before(1).filter(|name| name.is_name() && name.sym != Sym::Word(Word::Decimal))?;
        if !self.type_before(1) {
            return None;
        }
        let text = self.source(name);
        let lower = text.to_lowercase();
        let (close, help) = if self.is(T::LParen) {
            let (_, ty) = SIZED.iter().find(|(theirs, _)| *theirs == lower).unwrap_or(&("", ""));
            (
                T::RParen,
                match *ty {
                    "" if lower.starts_with("dec") || lower.starts_with("num") => {
                        format!("write `decimal{}`", self.arguments().unwrap_or("(15, 2)".into()))
                    }
                    "" => "a type has no arguments but `decimal(15, 2)`".to_owned(),
                    ty => format!("write `{}`", ty.replace("(…)", &self.arguments().unwrap_or("(15, 2)".into()))),
                },
            )
        } else if self.is(T::Lt) {
            let inner = self.after().filter(|inner| inner.is_name()).map_or("string", |inner| self.source(inner));
            let holder = HOLDERS.iter().find(|(theirs, _)| *theirs == lower);
            (
                T::Gt,
                match holder {
                    Some((_, true)) => format!("write `list<{inner}>`"),
                    Some((_, false)) => format!("a type that takes nulls ends in `?`: `{inner}?`"),
                    None => "only `list<string>` holds another type; other values are `json`".to_owned(),
                },
            )
        } else if self.is(T::LBracket) {
            let inner = self.after().filter(|inner| inner.is_name()).map(|inner| self.source(inner));
            let holder = HOLDERS.iter().find(|(theirs, _)| *theirs == lower);
            (
                T::RBracket,
                match (holder, inner) {
                    (Some((_, true)), Some(inner)) => format!("write `list<{inner}>`"),
                    (Some((_, false)), Some(inner)) => format!("a type that takes nulls ends in `?`: `{inner}?`"),
                    _ => format!("write `list<{text}>`"),
                },
            )
        } else {
            return None;
        };
        let end = self.symbols[self.at..].iter().take_while(|s| !s.first_on_line).find(|s| s.is(close));
        let span = name.span.to(end.map_or(self.span(), |end| end.span));
        let message = format!("there is no type `{}`", super::source(self.text, span));
        let fault = SyntaxError::new(error::UNEXPECTED, span, message, "unknown type").help(help);
        Some((Some(fault), Repair::Region))
    }

    /// `(10, 2)` at the place, if it has two numbers.
    fn arguments(&self) -> Option<String> {
        match self.symbols.get(self.at..self.at + 5)? {
            [_, p, comma, s, close] if comma.is(T::Comma) && close.is(T::RParen) => {
                let number = |symbol: &crate::symbols::Symbol<'_>| matches!(symbol.sym, Sym::Int(_));
                (number(p) && number(s)).then(|| format!("({}, {})", self.source(p), self.source(s)))
            }
            [_, p, close, ..] if close.is(T::RParen) && matches!(p.sym, Sym::Int(_)) => {
                Some(format!("({}, 0)", self.source(p)))
            }
            _ => None,
        }
    }

    /// `id: int64 not null`, `id: int64 primary key`: constraints of SQL behind a field's type.
    pub(super) fn constraint(&self) -> Option<Answer<'a>> {
        if self.word != Word::Record {
            return None;
        }
        let text = |at: usize| self.symbols.get(at).map_or("", |symbol| self.source(symbol));
        let says = |at: usize, word: &str| text(at).eq_ignore_ascii_case(word);
        // A word that could name the next field is only refused at what follows it.
        let before = self.at.checked_sub(1);
        let (from, to, help) = if let Some(not) = before.filter(|before| says(*before, "not") && says(self.at, "null"))
        {
            (not, self.at, "leave it out: only a type with `?` takes nulls")
        } else if says(self.at, "not") && says(self.at + 1, "null") {
            (self.at, self.at + 1, "leave it out: only a type with `?` takes nulls")
        } else if let Some(alias) = self.alias() {
            return Some(alias);
        } else if says(self.at, "null") {
            (self.at, self.at, "a type that takes nulls ends in `?`: `string?`")
        } else {
            let word = before?;
            let lower = text(word).to_lowercase();
            let (_, help) = CONSTRAINTS.iter().find(|(theirs, _)| *theirs == lower)?;
            if self.is(T::Colon) {
                return None;
            }
            (word, if says(self.at, "key") { self.at } else { word }, *help)
        };
        let (first, last) = (self.symbols.get(from)?, self.symbols.get(to)?);
        let behind = from.checked_sub(1).map(|at| &self.symbols[at])?;
        let begins = [T::Comma, T::LBrace, T::Colon].iter().any(|kind| behind.is(*kind));
        if begins || first.first_on_line {
            return None;
        }
        let span = first.span.to(last.span);
        let words = super::source(self.text, span).to_lowercase();
        let message = format!("a field's type has no `{words}` behind it");
        Some((Some(SyntaxError::new(error::UNEXPECTED, span, message, "not needed").help(help)), Repair::Region))
    }

    /// `name: string as title`: a field's name outside, as SQL writes another name.
    fn alias(&self) -> Option<Answer<'a>> {
        let at = match self.is(T::As) {
            true => self.at,
            false => self.at.checked_sub(1)?,
        };
        let (word, name) = (self.symbols.get(at)?, self.symbols.get(at + 1)?);
        let says = self.source(word).eq_ignore_ascii_case("as");
        if !says || word.first_on_line || !name.is_name() || name.first_on_line {
            return None;
        }
        let field =
            self.symbols[..at].iter().rposition(|symbol| symbol.is(T::Colon)).and_then(|at| at.checked_sub(1))?;
        let (outside, ty) = (&self.symbols[field], self.symbols.get(field + 2)?);
        let ty = super::source(self.text, ty.span.to(self.symbols[at - 1].span));
        let message = format!("a field has no `{}` behind its type", self.source(word));
        let fault = SyntaxError::new(error::UNEXPECTED, word.span.to(name.span), message, "not here").help(format!(
            "where the name outside is another than the one here, it stands behind the type: `{}: {ty} = \"{}\"`",
            self.source(name),
            self.source(outside).trim_matches('`'),
        ));
        Some((Some(fault), Repair::Region))
    }

    /// `int64 id`, `id?: int64`: a field's parts in another order.
    pub(super) fn field_turned_round(&self) -> Option<Answer<'a>> {
        let (name, here) = (self.before(1)?, self.here()?);
        if self.word != Word::Record || !self.expected.has(":") || here.first_on_line || !name.is_name() {
            return None;
        }
        let (text, other) = (self.source(name), self.source(here));
        if self.is(T::Question) {
            let ty = self.type_from(self.at + 2).unwrap_or("int64");
            let fault = self
                .fault(error::UNEXPECTED, "the `?` of a field stands behind its type", "not here")
                .help(format!("write `{text}: {ty}?`"));
            return Some((Some(fault), Repair::Region));
        }
        let lower = text.to_lowercase();
        let ty =
            TYPES.iter().any(|ty| lower.strip_prefix(ty).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit())));
        if !ty || !here.is_name() {
            return None;
        }
        let message = format!("a field's name stands before its type: expected `:` between `{text}` and `{other}`");
        let fault = SyntaxError::new(error::COLON_OR_EQUALS, name.span.to(here.span), message, "turned round")
            .help(format!("write `{other}: {text}`"))
            .fix(name.span.to(here.span), format!("{other}: {text}"));
        Some((Some(fault), Repair::Region))
    }

    /// The text of the type that starts with a symbol, its brackets included.
    fn type_from(&self, first: usize) -> Option<&'a str> {
        let start = self.symbols.get(first).filter(|ty| ty.is_name())?.span.start;
        let mut end = start;
        let mut depth = 0usize;
        for (at, symbol) in self.symbols.iter().enumerate().skip(first) {
            if symbol.is(T::LParen) || symbol.is(T::Lt) {
                depth += 1;
            } else if depth == 0 && at > first {
                break;
            } else if symbol.is(T::RParen) || symbol.is(T::Gt) {
                depth -= 1;
                if depth == 0 {
                    return self.text.get(start as usize..symbol.span.end as usize);
                }
            }
            end = symbol.span.end;
            if depth == 0 && !self.symbols.get(at + 1).is_some_and(|next| next.is(T::LParen) || next.is(T::Lt)) {
                break;
            }
        }
        self.text.get(start as usize..end as usize)
    }

    /// `"id": int64`, `rename("state": status)`: a name in quotes.
    pub(super) fn quoted_field(&self) -> Option<Answer<'a>> {
        let at = if self.is(T::Colon) && !self.expected.has(":") { self.at.checked_sub(1)? } else { self.at };
        let symbol = self.symbols.get(at)?;
        let Sym::String(text) = &symbol.sym else { return None };
        let colon = self.symbols.get(at + 1).is_some_and(|next| next.is(T::Colon));
        let named = at == self.at || self.opener().is_some_and(|open| open.is(T::LParen) || open.is(T::LBracket));
        if !colon || !named || !(at != self.at || self.expected.has("name")) {
            return None;
        }
        let inner = self.source(symbol).strip_prefix('"').and_then(|text| text.strip_suffix('"'))?;
        let plain = inner == text && inner.chars().all(|c| c.is_alphanumeric() || c == '_');
        let plain = plain && inner.chars().next().is_some_and(|c| !c.is_ascii_digit());
        let name = if plain { inner.to_owned() } else { format!("`{inner}`") };
        let shown = if plain { format!("`{name}`") } else { format!("`` {name} ``") };
        let fault =
            SyntaxError::new(error::EXPECTED_NAME, symbol.span, "a name stands without quotes", "a text, not a name")
                .help(format!("write {shown}"))
                .fix(symbol.span, name);
        Some((Some(fault), Repair::Replace(at, vec![Sym::Name(inner)])))
    }
}
