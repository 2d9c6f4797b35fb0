//! Puts a mistake in words, and says how to go on after it.
//!
//! The grammar only knows at which symbol it stopped and which it could have taken. What was probably meant is guessed
//! here, from the symbols around: first the mistakes that people bring from other languages, then what is missing in
//! general. A long list of what could stand here is never shown; it is summed up.

mod clauses;
mod expected;
mod habits;
mod methods;
mod missing;
mod types;

pub(crate) use expected::Expected;

use crate::ast::Span;
use crate::brackets;
use crate::error::{self, Code, SyntaxError};
use crate::items::{ITEM_WORDS, SQL_WORDS, nearest_item_word};
use crate::symbols::{Sym, Symbol, Word};
use crate::token::{Token, TokenKind, TokenKind as T};
use crate::tree::Refusal;

/// Comparisons, none of which can follow another.
const COMPARISONS: &[(T, &str)] = &[
    (T::EqEq, "=="),
    (T::NotEq, "!="),
    (T::Lt, "<"),
    (T::Le, "<="),
    (T::Gt, ">"),
    (T::Ge, ">="),
    (T::In, "in"),
    (T::Is, "is"),
    (T::Between, "between"),
    (T::Like, "like"),
    (T::Matches, "matches"),
    (T::Not, "not"),
];

/// How to go on after a mistake.
pub(crate) enum Repair<'a> {
    /// Put these for the symbol with this index.
    Replace(usize, Vec<Sym<'a>>),
    /// Put these before the symbol at the place.
    Insert(Vec<Sym<'a>>),
    /// Give up the part around the place.
    Region,
}

type Answer<'a> = (Option<SyntaxError>, Repair<'a>);

/// A place where the grammar stopped.
pub(crate) struct Place<'s, 'a> {
    /// The item's text.
    pub text: &'a str,
    /// The item's word.
    pub word: Word,
    /// All its symbols.
    pub symbols: &'s [Symbol<'a>],
    /// The index of the symbol that could not be taken; the number of symbols at the item's end.
    pub at: usize,
    /// What could have been taken.
    pub expected: &'s Expected,
}

fn source(text: &str, span: Span) -> &str {
    text.get(span.start as usize..span.end as usize).unwrap_or("")
}

/// A piece of source as it is shown in a message: one line, not long.
fn shown(text: &str) -> String {
    let line: String = text.chars().take_while(|c| *c != '\n').take(30).collect();
    let more = if line.len() < text.len() { "…" } else { "" };
    format!("`{line}{more}`")
}

/// What an item is called in messages.
fn item_name(word: Word) -> &'static str {
    ITEM_WORDS.iter().find(|(_, item)| *item == word).map_or("item", |(name, _)| name)
}

impl<'s, 'a> Place<'s, 'a> {
    fn here(&self) -> Option<&'s Symbol<'a>> {
        self.symbols.get(self.at)
    }

    fn before(&self, by: usize) -> Option<&'s Symbol<'a>> {
        self.at.checked_sub(by).and_then(|i| self.symbols.get(i))
    }

    fn after(&self) -> Option<&'s Symbol<'a>> {
        self.symbols.get(self.at + 1)
    }

    fn is(&self, kind: T) -> bool {
        self.here().is_some_and(|symbol| symbol.is(kind))
    }

    fn source(&self, symbol: &Symbol<'_>) -> &'a str {
        source(self.text, symbol.span)
    }

    /// Where to point: the symbol that could not be taken, or the last one of the item.
    fn span(&self) -> Span {
        self.here().or(self.before(1)).map_or(Span::default(), |symbol| symbol.span)
    }

    fn before_text(&self) -> String {
        // A symbol that was put in has no text.
        self.before(1).map(|symbol| self.source(symbol)).filter(|text| !text.is_empty()).map(shown).unwrap_or_default()
    }

    fn here_text(&self) -> String {
        self.here()
            .map_or_else(|| format!("the end of the `{}`", item_name(self.word)), |symbol| shown(self.source(symbol)))
    }

    fn fault(&self, code: Code, message: impl Into<String>, label: impl Into<String>) -> SyntaxError {
        SyntaxError::new(code, self.span(), message, label)
    }

    /// The bracket that encloses the place.
    fn opener(&self) -> Option<&'s Symbol<'a>> {
        let mut depth = 0usize;
        for symbol in self.symbols[..self.at.min(self.symbols.len())].iter().rev() {
            if brackets::closes(symbol) {
                depth += 1;
            } else if brackets::opens(symbol).is_some() {
                if depth == 0 {
                    return Some(symbol);
                }
                depth -= 1;
            }
        }
        None
    }

    /// The name of the operator among whose arguments the place is.
    fn callee(&self) -> Option<&'a str> {
        let open = self.opener().filter(|open| open.is(T::LParen))?;
        let at = self.symbols.iter().position(|symbol| symbol.span == open.span)?;
        let [link, name] = self.symbols.get(at.checked_sub(2)?..at)? else { return None };
        (name.is_name() && (link.is(T::Pipe) || (link.is(T::Assign) && self.word == Word::Source)))
            .then(|| self.source(name))
    }

    /// The text from the place to the end of its link.
    fn rest_of_link(&self) -> &'a str {
        let mut depth = 0usize;
        let mut rest: Option<Span> = None;
        for symbol in &self.symbols[self.at.min(self.symbols.len())..] {
            if depth == 0
                && (symbol.is(T::Pipe) || brackets::closes(symbol) || (symbol.first_on_line && rest.is_some()))
            {
                break;
            }
            if brackets::opens(symbol).is_some() {
                depth += 1;
            } else if brackets::closes(symbol) {
                depth -= 1;
            }
            rest = Some(rest.map_or(symbol.span, |rest| rest.to(symbol.span)));
        }
        rest.map_or("", |span| source(self.text, span))
    }

    /// The mistake in words, `None` where it needs none, and how to go on.
    pub fn explain(&self) -> Answer<'a> {
        let special = [
            Self::dashes,
            Self::line_above,
            Self::match_arm,
            Self::argument_in_parentheses,
            Self::colon_or_equals,
            Self::lambda,
            Self::constraint,
            Self::may_be_null,
            Self::foreign_type,
            Self::field_turned_round,
            Self::quoted_field,
            Self::method,
            Self::arrow,
            Self::clause,
            Self::bare_link,
            Self::comparison,
            Self::upper_case,
            Self::conditional,
            Self::chain_head,
            Self::reserved_name,
            Self::statement_end,
            Self::list_type,
            Self::call_of_a_value,
            Self::colon,
            Self::comma,
        ];
        special.iter().find_map(|rule| rule(self)).unwrap_or_else(|| (Some(self.general()), Repair::Region))
    }

    fn replace(&self, kinds: &[T]) -> Repair<'a> {
        Repair::Replace(self.at, kinds.iter().map(|kind| Sym::Token(*kind)).collect())
    }

    fn colon_or_equals(&self) -> Option<Answer<'a>> {
        let e = self.expected;
        let found = [(T::Assign, "="), (T::Colon, ":"), (T::EqEq, "==")];
        let (kind, text) = found.into_iter().find(|(kind, _)| self.is(*kind))?;
        let (here, name) = (self.span(), self.before_text());
        if kind == T::Assign && self.word == Word::Param && e.has(":") && self.opener().is_none() {
            let fault = self
                .fault(error::EXPECTED_TYPE, format!("the param {name} has no type"), "expected `:` and a type")
                .help(format!("write `param {}: int64 = 1`", self.before(1).map_or("name", |s| self.source(s))));
            return Some((Some(fault), Repair::Region));
        }
        if kind == T::Assign && e.has(":") && e.has("==") {
            let (meant, repair) = match self.callee() {
                // An operator's condition, or what it computes and is told.
                Some("filter" | "require" | "where" | "having") => (Some("=="), T::EqEq),
                Some(_) => (Some(":"), T::Colon),
                None if self.in_match() => (Some("=="), T::EqEq),
                None => (None, T::Colon),
            };
            let fault = self.fault(
                error::COLON_OR_EQUALS,
                match meant {
                    Some(meant) => format!("expected `{meant}` after {name}, found `=`"),
                    None => format!("`=` after {name} neither names nor compares"),
                },
                meant.map_or("`:` or `==`?".into(), |meant| format!("expected `{meant}`")),
            );
            let fault = fault.help("`name: value` names an argument, `a == b` compares");
            let fault = match meant {
                Some(meant) => fault.fix(here, meant),
                None => fault,
            };
            return Some((Some(fault), self.named(repair)));
        }
        let (meant, kind, why) = match kind {
            T::Colon if self.word == Word::Fn && e.has("->") => {
                ("->", T::Arrow, "the type of a result stands after `->`")
            }
            T::Assign if e.has(":") => (":", T::Colon, "a name and what belongs to it are parted by `:`"),
            T::EqEq if e.has(":") => (":", T::Colon, "a name and what belongs to it are parted by `:`"),
            T::Assign if e.has("==") => ("==", T::EqEq, "values are compared with `==`"),
            // In a record a `:` too many is another field whose name is missing.
            T::Colon if self.word == Word::Record && !self.after().is_some_and(|s| matches!(s.sym, Sym::String(_))) => {
                return None;
            }
            T::Colon | T::EqEq if e.has("=") => ("=", T::Assign, "a name is bound with `=`"),
            _ => return None,
        };
        let fault = self
            .fault(
                error::COLON_OR_EQUALS,
                format!("expected `{meant}` after {name}, found `{text}`"),
                format!("expected `{meant}`"),
            )
            .help(format!("{why}: write `{meant}`"))
            .fix(here, meant);
        Some((Some(fault), self.named(kind)))
    }

    /// Goes on with another mark; before a record's type, which was read before it was known to be one, with the next part.
    fn named(&self, kind: T) -> Repair<'a> {
        let block = self.symbols.get(self.at + 2).is_some_and(|symbol| symbol.is(T::LBrace));
        match kind == T::Colon && block && self.after().is_some_and(|next| self.source(next) == "record") {
            true => Repair::Region,
            false => self.replace(&[kind]),
        }
    }

    /// Whether the place is in a `match`.
    fn in_match(&self) -> bool {
        let open = self.opener().filter(|open| open.is(T::LBrace));
        let at = open.and_then(|open| self.symbols.iter().position(|symbol| symbol.span == open.span));
        at.is_some_and(|at| crate::recover::arms(self.symbols, at + 1))
    }

    fn arrow(&self) -> Option<Answer<'a>> {
        let symbol = self.here()?;
        let dot_call = symbol.is(T::Dot) && self.symbols.get(self.at + 2).is_some_and(|s| s.is(T::LParen));
        // `rename(old -> new)` is no chain; `sink a > csv(…)` is one.
        let call =
            self.after().is_some_and(Symbol::is_name) && self.symbols.get(self.at + 2).is_some_and(|s| s.is(T::LParen));
        let arrow = [T::Arrow, T::Bar, T::FatArrow].iter().any(|kind| symbol.is(*kind));
        let arrow = arrow && (call || self.opener().is_none()) || (symbol.is(T::Gt) && call && self.opener().is_none());
        if !self.expected.has("|>") || !(dot_call || arrow) {
            return None;
        }
        let found = self.here_text();
        let help = match self.link(self.at).filter(|_| dot_call) {
            Some(link) => format!("write `{link}`"),
            None => "write `|>`".to_owned(),
        };
        let fault = self
            .fault(error::CHAIN_ARROW, format!("a chain goes on with `|>`, not with {found}"), "expected `|>`")
            .help(help)
            .fix(symbol.span, if dot_call { " |> " } else { "|>" });
        Some((Some(fault), self.replace(&[T::Pipe])))
    }

    fn bare_link(&self) -> Option<Answer<'a>> {
        let (name, pipe) = (self.before(1)?, self.before(2)?);
        if !name.is_name() || !pipe.is(T::Pipe) || !self.expected.has("(") {
            return None;
        }
        let text = self.source(name);
        let ends = match self.here() {
            None => true,
            Some(symbol) => {
                symbol.first_on_line || [T::Pipe, T::RBrace, T::RParen, T::Comma].iter().any(|k| symbol.is(*k))
            }
        };
        let fault = SyntaxError::new(
            error::BARE_LINK,
            name.span,
            format!("`{text}` needs parentheses"),
            "expected `(` after it",
        );
        let end = Span { start: name.span.end, end: name.span.end };
        Some(if ends {
            let fault = fault.help(format!("write `{text}()`, with its arguments between them")).fix(end, "()");
            (Some(fault), Repair::Insert(vec![Sym::Token(T::LParen), Sym::Token(T::RParen)]))
        } else {
            let arguments = Some(self.rest_of_link()).filter(|rest| rest.len() <= 40 && !rest.contains('\n'));
            (
                Some(fault.help(format!("put its arguments in them: `{text}({})`", arguments.unwrap_or("…")))),
                Repair::Region,
            )
        })
    }

    fn comparison(&self) -> Option<Answer<'a>> {
        let (_, text) = COMPARISONS.iter().find(|(kind, _)| self.is(*kind))?;
        // A list's `>` that touches the `=` of a default.
        if self.is(T::Ge) && self.expected.has(">") && !self.expected.has(">=") {
            return Some((None, self.replace(&[T::Gt, T::Assign])));
        }
        if self.expected.has(text) || !self.expected.has("and") || !self.expected.has("or") {
            return None;
        }
        let fault = self
            .fault(
                error::CHAINED_COMPARISON,
                format!("`{text}` cannot follow another comparison"),
                "a second comparison",
            )
            .help("join two comparisons with `and` (`a < b and b < c`), or put one in parentheses");
        Some((Some(fault), Repair::Region))
    }

    fn reserved_name(&self) -> Option<Answer<'a>> {
        if let Some(before) = self.before(1)
            && self.expected.0.len() == 1
            && self.expected.has(":")
            && matches!(before.sym, Sym::Token(kind) if kind.is_reserved())
        {
            if self.here().is_some_and(|symbol| !symbol.is(T::Comma) && !brackets::closes(symbol)) {
                let text = self.source(before);
                let message = format!("expected a value before `{text}`");
                let fault =
                    SyntaxError::new(error::EXPECTED_VALUE, before.span, message, "expected a value before this");
                return Some((Some(fault), Repair::Region));
            }
            // `select(in, out)`: taken for an argument's name.
            return Some(self.reserved(before, self.at - 1));
        }
        let symbol = self.here()?;
        let Sym::Token(kind) = symbol.sym else { return None };
        if !kind.is_reserved() || !self.expected.has("name") || self.expected.after_value() {
            return None;
        }
        let separates = |s: Option<&Symbol<'_>>| {
            s.is_none_or(|s| {
                [T::Comma, T::LParen, T::LBracket, T::RParen, T::RBracket, T::Pipe].iter().any(|k| s.is(*k))
            })
        };
        if self.expected.value() && !(separates(self.before(1)) && separates(self.after())) {
            return None;
        }
        Some(self.reserved(symbol, self.at))
    }

    fn reserved(&self, symbol: &Symbol<'a>, at: usize) -> Answer<'a> {
        let text = self.source(symbol);
        let quoted = format!("`{text}`");
        let message = format!("{quoted} is a reserved word and cannot be a name as it is");
        let fault = SyntaxError::new(error::RESERVED_NAME, symbol.span, message, "reserved")
            .help(format!("write the name in backticks: `` {quoted} ``"))
            .fix(symbol.span, quoted);
        (Some(fault), Repair::Replace(at, vec![Sym::Name(text)]))
    }

    fn statement_end(&self) -> Option<Answer<'a>> {
        let ends = self.here().is_none_or(|symbol| symbol.first_on_line || symbol.is(T::RBrace));
        if !self.expected.has(";") || !ends {
            return None;
        }
        let last = self.before(1)?;
        let end = Span { start: last.span.end, end: last.span.end };
        let fault = SyntaxError::new(error::SEMICOLON, last.span, "a statement ends in `;`", "expected `;` after this")
            .help("write `;`")
            .fix(end, ";");
        Some((Some(fault), Repair::Insert(vec![Sym::Token(T::Semicolon)])))
    }

    fn list_type(&self) -> Option<Answer<'a>> {
        let before = self.before(1)?;
        if !self.is(T::Lt) || self.source(before) != "list" || self.expected.has("<") {
            return None;
        }
        let fault =
            SyntaxError::new(error::LIST_TYPE, before.span, "a list needs the type of its elements", "a list of what?")
                .help("write `list<string>`, with a type between `<` and `>`");
        Some((Some(fault), Repair::Region))
    }

    fn call_of_a_value(&self) -> Option<Answer<'a>> {
        if !self.is(T::LParen) || !self.expected.after_value() {
            return None;
        }
        let name = self.before_text();
        let fault = self.fault(error::UNEXPECTED, format!("{name} cannot be called here"), "only a name can be called");
        Some((Some(fault), Repair::Region))
    }

    /// Something else than a name where a chain starts.
    fn chain_head(&self) -> Option<Answer<'a>> {
        let symbol = self.here()?;
        let chains = matches!(self.word, Word::Source | Word::Stream | Word::Sink);
        let item = self.opener().is_none() && self.expected.name() && (self.at == 1 || self.before(1)?.is(T::Assign));
        let line = self.word == Word::Sink && symbol.first_on_line && self.expected.has("|>");
        let named = self.word != Word::Sink && self.at == 1;
        let goes_on = self.after().is_some_and(|next| !next.is(T::Pipe) && !next.first_on_line);
        let reserved = matches!(symbol.sym, Sym::Token(kind) if kind.is_reserved());
        let value = matches!(symbol.sym, Sym::Int(_) | Sym::String(_) | Sym::Literal(_) | Sym::FormatStart)
            || [T::LBrace, T::LBracket, T::LParen, T::Minus].iter().any(|kind| symbol.is(*kind));
        if !chains || named || !(item || line) || !(value || (reserved && goes_on)) {
            return None;
        }
        let message = format!("a chain starts with the name of a stream or a source, not with {}", self.here_text());
        let fault = self
            .fault(error::EXPECTED_NAME, message, "expected a name")
            .help(match &symbol.sym {
                Sym::String(path) if self.word == Word::Source => {
                    format!("name the connector that reads it: `csv(\"{path}\")`, `jsonl(\"…\")`, `parquet(\"…\")`")
                }
                _ if line && self.after().is_some_and(|next| next.is(T::Pipe)) => {
                    format!("take the {} out: the chain goes on with `|>`", self.here_text())
                }
                _ => "begin with a stream, `union(a, b)` or `rejected(a)`; values are computed in operators: `|> derive(total: …)`".into(),
            });
        Some((Some(fault), Repair::Region))
    }

    /// `id int64`: the colon is missing.
    fn colon(&self) -> Option<Answer<'a>> {
        let (symbol, name) = (self.here()?, self.before(1)?);
        let starts = symbol.is_name() || matches!(symbol.sym, Sym::Int(_) | Sym::String(_) | Sym::Literal(_));
        let e = self.expected;
        if !e.has(":") || e.has(",") || e.has("=") || !starts || !name.is_name() || symbol.first_on_line {
            return None;
        }
        let end = Span { start: name.span.end, end: name.span.end };
        let fault = SyntaxError::new(
            error::COLON_OR_EQUALS,
            symbol.span,
            format!("expected `:` between {} and {}", self.before_text(), self.here_text()),
            "expected `:` before this",
        )
        .help("a name and what belongs to it are parted by `:`")
        .fix(end, ":");
        // What follows was read before it was known to be a type.
        let block = self.after().is_some_and(|next| next.is(T::LBrace));
        Some((Some(fault), if block { Repair::Region } else { Repair::Insert(vec![Sym::Token(T::Colon)]) }))
    }

    /// A line that ends in `:` or `=` took the next line's name for its value.
    fn line_above(&self) -> Option<Answer<'a>> {
        let (name, mark) = (self.before(1)?, self.before(2)?);
        if !self.is(T::Colon) || !name.first_on_line || !(mark.is(T::Colon) || mark.is(T::Assign)) {
            return None;
        }
        let code = if self.word == Word::Record { error::EXPECTED_TYPE } else { error::EXPECTED_VALUE };
        let what = if self.word == Word::Record { "a type" } else { "a value" };
        let text = shown(self.source(mark));
        let fault = SyntaxError::new(
            code,
            mark.span,
            format!("expected {what} after {text}"),
            format!("expected {what} after this"),
        )
        .help(match self.word {
            Word::Record => "write one, such as `string`, `int64` or `date?`",
            _ => "write one, or take the line out",
        });
        // The next line is a field of its own.
        let repair = match self.word == Word::Record && mark.is(T::Colon) {
            true => Repair::Replace(self.at - 1, vec![Sym::Error, name.sym.clone()]),
            false => Repair::Region,
        };
        Some((Some(fault), repair))
    }
}

/// A bracket that is not closed: said at the last symbol before the place where it should have been.
pub(crate) fn unclosed(text: &str, symbols: &[Symbol<'_>], before: usize, opener: usize) -> SyntaxError {
    let open = symbols.get(opener);
    let last = before.checked_sub(1).and_then(|i| symbols.get(i)).or(open).map_or(Span::default(), |s| s.span);
    let at = open.map_or(Span::default(), |s| s.span);
    let close = open.and_then(brackets::opens).and_then(brackets::closer).map_or("", |(_, close)| close);
    let name = opener.checked_sub(1).and_then(|i| symbols.get(i)).filter(|s| s.is_name() && close == ")");
    let what = match (close, name) {
        (")", Some(name)) => format!("`{}(`", source(text, name.span)),
        _ => format!("this `{}`", source(text, at)),
    };
    let end = Span { start: last.end, end: last.end };
    if let Some((callee, label)) =
        argument_in_parentheses(symbols, before).filter(|_| before.checked_sub(2) == Some(opener))
    {
        let (callee, label) = (source(text, callee), source(text, label));
        return SyntaxError::new(
            error::UNCLOSED,
            at,
            format!("this `(` before `{label}:` is one too many, and is not closed"),
            "one too many",
        )
        .help(format!("an argument stands right in the brackets: `{callee}({label}: …)`"))
        .fix(at, "");
    }
    let fault = SyntaxError::new(
        error::UNCLOSED,
        last,
        format!("expected `{close}` to close {what}"),
        format!("expected `{close}` after this"),
    )
    .related(at, "opened here");
    // `id // 2)`: the bracket stands in what became a comment.
    let rest = text.get(last.end as usize..).and_then(|rest| rest.lines().next()).unwrap_or("").trim_start();
    if rest.starts_with("//") && rest.contains(close) {
        return fault
            .help("`//` begins a comment, which hides the rest of the line; whole division is written `a div b`");
    }
    fault.help(format!("write `{close}` here, or where it belongs")).fix(end, close)
}

/// `derive((net: price * 2)`: the places of the operator's name and of the argument's, where the symbol `at` is the colon.
fn argument_in_parentheses(symbols: &[Symbol<'_>], at: usize) -> Option<(Span, Span)> {
    let [callee, outer, inner, label] = symbols.get(at.checked_sub(4)?..at)? else { return None };
    let colon = symbols.get(at).is_some_and(|symbol| symbol.is(T::Colon));
    (colon && callee.is_name() && outer.is(T::LParen) && inner.is(T::LParen) && label.is_name())
        .then_some((callee.span, label.span))
}

/// A closing bracket whose opening one is missing before the symbol `at`.
pub(crate) fn missing_opener(text: &str, symbols: &[Symbol<'_>], at: usize, closer: usize, open: T) -> SyntaxError {
    let mark = match open {
        T::LParen => "(",
        T::LBracket => "[",
        _ => "{",
    };
    let (here, close) = (symbols[at].span, symbols[closer].span);
    let before = Span { start: here.start, end: here.start };
    let message = format!("expected `{mark}` before {}", shown(source(text, here)));
    SyntaxError::new(error::STRAY_CLOSER, here, message, format!("expected `{mark}` before this"))
        .related(close, "closed here")
        .help(format!("write `{mark}` here, or where it belongs, or remove the `{}`", source(text, close)))
        .fix(before, mark)
}

/// A mistake that an action of the grammar found.
pub(crate) fn refusal(refusal: Refusal) -> SyntaxError {
    match refusal {
        Refusal::ElseNotLast(span) => SyntaxError::new(
            error::MATCH_ELSE,
            span,
            "`else` is not the last arm of this `match`",
            "arms below are never reached",
        )
        .help("put `else => …` last, once"),
    }
}

/// Text that belongs to no item. `tokens` are absolute, and start with one that is no trivia.
pub(crate) fn unknown_item(text: &str, tokens: &[Token]) -> SyntaxError {
    let Some(first) = tokens.first() else {
        return SyntaxError::new(error::UNKNOWN_ITEM, Span::default(), "expected an item", "");
    };
    let word = first.text(text);
    let all = clauses::items();
    let known = ITEM_WORDS.iter().any(|(item, _)| *item == word);
    let second = tokens[1..].iter().find(|token| !token.kind.is_trivia()).filter(|token| token.kind == TokenKind::Name);
    let name = second.map(|token| token.text(text));
    if let Some(form) = clauses::foreign_item(word, name).filter(|_| first.kind == TokenKind::Name) {
        let message = format!("{} does not begin an item", shown(word));
        return SyntaxError::new(error::UNKNOWN_ITEM, first.span, message, "not an item").help(form);
    }
    if first.kind == TokenKind::Name
        && tokens[1..].iter().find(|token| !token.kind.is_trivia()).is_some_and(|token| token.kind == TokenKind::Pipe)
    {
        let message = format!("{} does not begin an item", shown(word));
        return SyntaxError::new(error::UNKNOWN_ITEM, first.span, message, "not an item")
            .help(clauses::bare_chain(word));
    }
    if first.kind == TokenKind::Name && SQL_WORDS.contains(&word.to_lowercase().as_str()) {
        return SyntaxError::new(
            error::SQL,
            first.span,
            format!("`{word}` begins a statement of SQL, not an item"),
            "not an item",
        )
        .help(clauses::statement(word));
    }
    if known {
        let message = format!("`{word}` is not followed by a name");
        return SyntaxError::new(error::EXPECTED_NAME, first.span, message, "expected a name after this")
            .help(clauses::form(word));
    }
    let fault = SyntaxError::new(
        error::UNKNOWN_ITEM,
        first.span,
        format!("{} does not begin an item", shown(word)),
        "not an item",
    );
    match nearest_item_word(word) {
        Some(near) if first.kind == TokenKind::Name => {
            fault.help(format!("did you mean `{near}`?")).fix(first.span, near)
        }
        _ => fault.help(all),
    }
}
