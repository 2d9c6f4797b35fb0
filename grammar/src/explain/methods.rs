//! Methods of other languages: `status.upper()`, `when(a, b).otherwise(c)`, `orders.filter(…)`.
//!
//! A rule of [`super::Place::explain`]. It knows what the usual methods are here, and not which functions there are.

use super::{Answer, Place, Repair};
use crate::brackets;
use crate::error;
use crate::symbols::Symbol;
use crate::token::TokenKind as T;

/// Methods, in lower case and without `_`, and what is written in their place: `{x}` is the value, `{a}` the arguments.
const METHODS: &[(&[&str], &str)] = &[
    (&["isnull", "isna", "isnone"], "write `{x} is null`"),
    (&["isnotnull", "notnull", "notna"], "write `{x} is not null`"),
    (&["fillna", "ifnull", "getorelse", "orelse", "coalesce"], "write `{x} ?? {a}`"),
    (&["cast", "astype"], "the type stands behind `as`: `{x} as int64`"),
    (&["toint", "int"], "write `{x} as int64`"),
    (&["tofloat", "todouble", "float"], "write `{x} as float64`"),
    (&["tostring", "str"], "write `{x} as string`"),
    (&["alias", "named"], "a value has its name before it: `name: {x}`"),
    (&["isin"], "write `{x} in [{a}]`"),
    (&["between"], "write `{x} between 1 and 9`"),
    (&["startswith"], "write `starts_with({x}, {a})`"),
    (&["endswith"], "write `ends_with({x}, {a})`"),
    (&["includes"], "write `contains({x}, {a})`"),
    (&["len", "length", "size"], "write `length({x})`"),
    (&["strip", "trim"], "write `trim({x})`"),
    (&["upper", "touppercase", "toupper"], "write `upper({x})`"),
    (&["lower", "tolowercase", "tolower"], "write `lower({x})`"),
    (&["substr", "substring", "slice"], "a part of a text is `substring({x}, start, count)`, counted from 1"),
    (
        &["over"],
        "there are no window functions: the newest row of each group is `distinct(by: [id], order: desc(day))`",
    ),
];

/// Operators that take a stream: in their arguments a `.` may have been meant for `|>`.
const OF_STREAMS: [&str; 3] = ["join", "lookup", "union"];

impl<'a> Place<'_, 'a> {
    /// A method of a value.
    pub(super) fn method(&self) -> Option<Answer<'a>> {
        let dot = if self.is(T::Dot) { self.at } else { self.at.checked_sub(2)? };
        let [point, name, open] = self.symbols.get(dot..dot + 3)? else { return None };
        let called = point.is(T::Dot) && name.is_name() && open.is(T::LParen);
        if !called || !self.of_a_value() || !(self.is(T::Dot) || self.expected.after_value()) {
            return None;
        }
        let text = self.source(name);
        let code = error::UNEXPECTED;
        let fault = error::SyntaxError::new(
            code,
            name.span,
            format!("a value has no methods: `{text}` can't be called on it"),
            "not a method",
        );
        Some((Some(fault.help(self.instead(dot, text))), Repair::Region))
    }

    /// `|> filter(id > 1)` for `.filter(id > 1)`, where it is short.
    pub(super) fn link(&self, dot: usize) -> Option<String> {
        let name = self.symbols.get(dot + 1).map(|name| self.source(name))?;
        let before = dot.checked_sub(1).map(|at| self.source(&self.symbols[at]))?;
        let (_, arguments) = self.between(dot + 2);
        Some(format!("{before} |> {name}({arguments})"))
    }

    /// Whether the place is inside an expression, and not where a chain may go on.
    fn of_a_value(&self) -> bool {
        let Some(open) = self.opener() else { return false };
        let at = self.symbols.iter().position(|symbol| symbol.span == open.span);
        let before = at.and_then(|at| at.checked_sub(1)).map(|at| self.source(&self.symbols[at]));
        // A sink's block.
        !open.is(T::LBrace) && !before.is_some_and(|name| OF_STREAMS.contains(&name))
    }

    /// What to write for a method.
    fn instead(&self, dot: usize, name: &str) -> String {
        let (value, (count, arguments)) = (self.value_before(dot), self.between(dot + 2));
        let plain = name.replace('_', "").to_lowercase();
        if plain == "otherwise" || plain == "when" {
            return match self.condition(dot) {
                Some((condition, then)) if plain == "otherwise" => {
                    format!("write `if {condition} then {then} else {arguments}`")
                }
                _ => super::habits::CHOICE.to_owned(),
            };
        }
        // The accessors of a data frame.
        let value = value.trim_end_matches(".str").trim_end_matches(".dt");
        match METHODS.iter().find(|(names, _)| names.contains(&plain.as_str())) {
            Some((_, form)) => form.replace("{x}", value).replace("{a}", arguments),
            None if count == 0 => format!("a function takes the value as its argument: `{name}({value})`"),
            None => format!("a function takes the value as its first argument: `{name}({value}, {arguments})`"),
        }
    }

    /// The condition and the value of `when(condition, value)` before a dot.
    fn condition(&self, dot: usize) -> Option<(&'a str, &'a str)> {
        let open = self.opens(dot.checked_sub(1)?)?;
        let name = open.checked_sub(1).map(|at| self.source(&self.symbols[at]))?;
        if !name.eq_ignore_ascii_case("when") {
            return None;
        }
        let mut depth = 0usize;
        let comma = (open + 1..dot - 1).find(|at| {
            let symbol = &self.symbols[*at];
            depth += usize::from(brackets::opens(symbol).is_some());
            depth -= usize::from(brackets::closes(symbol));
            depth == 0 && symbol.is(T::Comma)
        })?;
        let part = |from: usize, to: usize| {
            let (first, last) = (self.symbols.get(from)?, self.symbols.get(to)?);
            Some(super::source(self.text, first.span.to(last.span))).filter(|text| text.len() <= 40)
        };
        Some((part(open + 1, comma.checked_sub(1)?)?, part(comma + 1, dot.checked_sub(2)?)?))
    }

    /// The bracket that a closing one closes.
    fn opens(&self, closer: usize) -> Option<usize> {
        if !self.symbols.get(closer).is_some_and(brackets::closes) {
            return None;
        }
        let mut depth = 0usize;
        (0..=closer).rev().find(|at| {
            let symbol = &self.symbols[*at];
            depth += usize::from(brackets::closes(symbol));
            depth -= usize::from(brackets::opens(symbol).is_some());
            depth == 0
        })
    }

    /// The value before a dot as it is written; a long one is `x`.
    fn value_before(&self, dot: usize) -> &'a str {
        let Some(last) = dot.checked_sub(1) else { return "x" };
        // `f(x)`, a value in brackets, or a name.
        let begin = |last: usize| match self.opens(last) {
            Some(open) => open.checked_sub(1).filter(|at| self.symbols[*at].is_name()).unwrap_or(open),
            None => last,
        };
        let mut first = begin(last);
        while let Some(before) = first.checked_sub(2)
            && self.symbols[first - 1].is(T::Dot)
        {
            first = begin(before);
        }
        let text = super::source(self.text, self.symbols[first].span.to(self.symbols[last].span));
        if text.is_empty() || text.len() > 40 || text.contains('\n') { "x" } else { text }
    }

    /// How many symbols stand between a bracket and its closing one, and their text; that of many is `…`.
    fn between(&self, open: usize) -> (usize, &'a str) {
        let mut depth = 0usize;
        let inside: Vec<&Symbol<'a>> = self.symbols[open.min(self.symbols.len())..]
            .iter()
            .take_while(|symbol| {
                depth += usize::from(brackets::opens(symbol).is_some());
                depth = depth.saturating_sub(usize::from(brackets::closes(symbol)));
                depth > 0
            })
            .skip(1)
            .collect();
        let text = match (inside.first(), inside.last()) {
            (Some(first), Some(last)) => super::source(self.text, first.span.to(last.span)),
            _ => "",
        };
        (inside.len(), if text.len() > 40 || text.contains('\n') { "…" } else { text })
    }
}
