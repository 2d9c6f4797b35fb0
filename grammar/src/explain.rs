//! Puts a mistake in words, and says how to go on after it.
//!
//! The grammar only knows at which symbol it stopped and which it could have taken. What was probably meant is guessed
//! here, from the symbols around: first the mistakes that people bring from other languages, then what is missing in
//! general. A long list of what could stand here is never shown; it is summed up.

mod habits;

use crate::ast::Span;
use crate::brackets;
use crate::error::{self, Code, SyntaxError};
use crate::items::{ITEM_WORDS, SQL_WORDS, nearest_item_word};
use crate::symbols::{Sym, Symbol, Word};
use crate::token::{Token, TokenKind, TokenKind as T};
use crate::tree::Refusal;
use std::collections::HashSet;

/// The terminals that could have stood at a place.
pub(crate) struct Expected(HashSet<String>);

impl Expected {
    /// From the parser's list, whose names are quoted.
    pub fn new(list: &[String]) -> Self {
        Expected(list.iter().map(|name| name.trim_matches('"').to_owned()).filter(|name| name != "error").collect())
    }

    /// Whether this terminal could have stood there.
    pub fn has(&self, terminal: &str) -> bool {
        self.0.contains(terminal)
    }

    /// Whether a value could have begun there.
    fn value(&self) -> bool {
        self.has("int")
    }

    /// Whether an expression was complete there.
    fn after_value(&self) -> bool {
        self.has("+") && self.has("and")
    }

    fn type_(&self) -> bool {
        self.has("list") && !self.value()
    }

    fn name(&self) -> bool {
        self.has("name") && !self.value()
    }

    /// A short sum of it: "a value, a name or `(`".
    fn summary(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if self.value() {
            parts.push("a value".into());
        } else if self.type_() {
            parts.push("a type".into());
        } else if self.name() && !self.after_value() {
            parts.push("a name".into());
        } else if self.has("string") {
            parts.push("a text in double quotes".into());
        }
        if self.after_value() {
            parts.push("an operator".into());
        }
        if self.has("native fn") {
            parts.push("`source`, `shuffle`, `sink`, `fn` or `agg`".into());
        }
        let of_value = ["(", "[", "{", "if", "match", "-", "not"];
        let of_operator = ["(", "[", ":", "?", "+", "-", "not", "in", "is", "as", ".", "and", "<", ">"];
        for terminal in SUMMED {
            let covered =
                (self.value() && of_value.contains(terminal)) || (self.after_value() && of_operator.contains(terminal));
            // Where any name fits these words are names.
            let word = terminal.starts_with(|c: char| c.is_ascii_alphabetic()) && self.has("name");
            if self.has(terminal) && !covered && !word {
                parts.push(format!("`{terminal}`"));
            }
        }
        parts.truncate(4);
        match parts.split_last() {
            None => "the end of the item".into(),
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        }
    }
}

/// Terminals worth naming, the most telling first.
const SUMMED: &[&str] = &[
    "|>", "then", "else", "=>", "->", ";", ":", "=", ",", ")", "]", "}", "(", "{", "[", "and", "null", "..", "<", ">",
    "by",
];

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

    /// The mistake in words, `None` where it needs none, and how to go on.
    pub fn explain(&self) -> Answer<'a> {
        let special = [
            Self::dashes,
            Self::line_above,
            Self::colon_or_equals,
            Self::lambda,
            Self::arrow,
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
                .help("write `param name: int64 = 1`");
            return Some((Some(fault), Repair::Region));
        }
        if kind == T::Assign && e.has(":") && e.has("==") {
            let fault = self
                .fault(error::COLON_OR_EQUALS, format!("`=` after {name} neither names nor compares"), "`:` or `==`?")
                .help("`name: value` names an argument, `a == b` compares");
            return Some((Some(fault), self.replace(&[T::Colon])));
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
        Some((Some(fault), self.replace(&[kind])))
    }

    fn arrow(&self) -> Option<Answer<'a>> {
        let symbol = self.here()?;
        let dot_call = symbol.is(T::Dot) && self.symbols.get(self.at + 2).is_some_and(|s| s.is(T::LParen));
        let arrow = [T::Arrow, T::Bar, T::FatArrow].iter().any(|kind| symbol.is(*kind));
        if !self.expected.has("|>") || !(dot_call || arrow) {
            return None;
        }
        let found = self.here_text();
        let fault = self
            .fault(error::CHAIN_ARROW, format!("a chain goes on with `|>`, not with {found}"), "expected `|>`")
            .help("write `|>`")
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
            (Some(fault.help(format!("put its arguments in them: `{text}(…)`"))), Repair::Region)
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
        let method = self.before(2).is_some_and(|symbol| symbol.is(T::Dot));
        let fault = self.fault(error::UNEXPECTED, format!("{name} cannot be called here"), "only a name can be called");
        let fault =
            if method { fault.help("a value has no methods: write `upper(x)` instead of `x.upper()`") } else { fault };
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
            .help("begin with a stream, `union(a, b)` or `rejected(a)`; values are computed in operators: `|> derive(total: …)`");
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
        );
        Some((Some(fault), Repair::Region))
    }

    fn comma(&self) -> Option<Answer<'a>> {
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
        let end = Span { start: last.span.end, end: last.span.end };
        let certain = self.after().is_some_and(|s| s.is(T::Colon)) || self.is(T::Else);
        let lower = self.source(symbol).to_lowercase();
        if self.source(last).eq_ignore_ascii_case("case") {
            let text = self.source(last);
            let fault = SyntaxError::new(
                error::IF_FORM,
                last.span,
                format!("there is no `{text}`"),
                "not a word of the language",
            )
            .help("write `match { condition => value, else => value }`, or `if condition then value else value`");
            return Some((Some(fault), Repair::Region));
        }
        let fault = self.fault(
            error::MISSING_COMMA,
            format!("expected `,` or an operator between {} and {}", self.before_text(), self.here_text()),
            "expected `,` before this",
        );
        let fault = match self.opener() {
            _ if certain => fault.help("write `,`").fix(end, ","),
            _ if lower == "desc" || lower == "asc" => {
                fault.help(format!("the order is written around the value: `{lower}({})`", self.source(last)))
            }
            Some(_) if self.source(last).eq_ignore_ascii_case("distinct") => {
                fault.help(format!("distinct values are counted with `count_distinct({})`", self.source(symbol)))
            }
            _ if SQL_WORDS.contains(&lower.as_str()) => {
                fault.help("clauses of SQL are operators of their own here: `|> filter(…) |> select(…)`")
            }
            _ => fault.help("write `,` between two arguments; texts are joined with `concat(a, b)` or `f\"{a}{b}\"`"),
        };
        Some((Some(fault), if certain { Repair::Insert(vec![Sym::Token(T::Comma)]) } else { Repair::Region }))
    }

    /// What is missing, where nothing special is known.
    fn general(&self) -> SyntaxError {
        let e = self.expected;
        let (before, found, sum) = (self.before_text(), self.here_text(), e.summary());
        let after = if before.is_empty() { String::new() } else { format!(" after {before}") };
        let expected = format!("expected {sum}");
        if e.0.is_empty() || (e.has("|>") && self.opener().is_none()) {
            let item = item_name(self.word);
            let chain = matches!(self.word, Word::Source | Word::Stream | Word::Sink);
            let statement = self.before(1).filter(|s| self.source(s).eq_ignore_ascii_case("select"));
            if let (true, Some(word)) = (chain, statement) {
                let text = self.source(word);
                let message = format!("`{text}` begins a statement of SQL, not a chain");
                return SyntaxError::new(error::SQL, word.span, message, "not a stream")
                    .help("write a chain: `stream x = orders |> filter(…) |> select(…)`");
            }
            let goes_on = if chain { "expected `|>` or the end of it" } else { "expected the end of it" };
            let fault = self.fault(error::UNEXPECTED, format!("the `{item}` is complete before {found}"), goes_on);
            let next_item = self.here().is_some_and(|s| ITEM_WORDS.iter().any(|(name, _)| *name == self.source(s)));
            return match chain {
                _ if next_item => fault.help("an item starts on a line of its own"),
                true => fault.help("the next operator of a chain stands after `|>`"),
                false => fault,
            };
        }
        let sized = (1..4).any(|by| self.before(by).is_some_and(|symbol| symbol.sym == Sym::Word(Word::Decimal)));
        if sized && (self.is(T::RParen) || !e.value()) && !e.type_() {
            return self
                .fault(error::UNEXPECTED, format!("{expected}{after}, found {found}"), expected)
                .help("write `decimal(15, 2)`: the digits in all, then those after the point");
        }
        if e.after_value() {
            let message = format!("{found} cannot stand{after}");
            return self.fault(error::UNEXPECTED, message, expected);
        }
        if e.value() {
            let closing = e.has(")") || e.has("]") || e.has("}");
            let message = if closing {
                format!("expected {sum}{after}, found {found}")
            } else {
                format!("expected a value{after}, found {found}")
            };
            let fault = self.fault(error::EXPECTED_VALUE, message, "expected a value, a name or `(`");
            let counts =
                self.is(T::Star) && self.before(2).is_some_and(|s| self.source(s).eq_ignore_ascii_case("count"));
            let all = self.is(T::Star) && self.before(2).is_some_and(|s| self.source(s).eq_ignore_ascii_case("select"));
            return match (counts, all) {
                (true, _) => fault.help("write `count()`: it counts rows"),
                (_, true) => {
                    fault.help("leave it out: without `select` all fields are passed on; `drop(…)` takes some away")
                }
                _ => fault,
            };
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
            return if text {
                fault.help("a name stands without quotes; put an unusual one in backticks")
            } else {
                fault
            };
        }
        let field = self.word == Word::Record && e.has(":") && (self.is(T::Comma) || self.is(T::RBrace));
        if field {
            return self
                .fault(error::EXPECTED_TYPE, format!("the field {before} has no type"), "expected `:` and a type")
                .help("write `name: int64`");
        }
        self.fault(error::UNEXPECTED, format!("{expected}{after}, found {found}"), expected)
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
    SyntaxError::new(
        error::UNCLOSED,
        last,
        format!("expected `{close}` to close {what}"),
        format!("expected `{close}` after this"),
    )
    .related(at, "opened here")
    .help(format!("write `{close}` here, or where it belongs"))
    .fix(end, close)
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
    let words = ITEM_WORDS.iter().filter(|(_, word)| *word != Word::Native).map(|(word, _)| format!("`{word}`"));
    let all = format!("a file consists of {}", words.collect::<Vec<_>>().join(", "));
    let known = ITEM_WORDS.iter().any(|(item, _)| *item == word);
    if first.kind == TokenKind::Name && SQL_WORDS.contains(&word.to_lowercase().as_str()) {
        return SyntaxError::new(
            error::SQL,
            first.span,
            format!("`{word}` begins a statement of SQL, not an item"),
            "not an item",
        )
        .help("write a chain: `stream x = orders |> filter(…) |> select(…)`");
    }
    if known {
        let message = format!("`{word}` is not followed by a name");
        return SyntaxError::new(error::EXPECTED_NAME, first.span, message, "expected a name after this").help(all);
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
