//! What the grammar could have taken at a place, and how that is summed up: a long list is never shown.

use std::collections::HashSet;

/// The terminals that could have stood at a place.
pub(crate) struct Expected(pub(super) HashSet<String>);

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
    pub fn value(&self) -> bool {
        self.has("int")
    }

    /// Whether an expression was complete there.
    pub fn after_value(&self) -> bool {
        self.has("+") && self.has("and")
    }

    pub fn type_(&self) -> bool {
        self.has("list") && !self.value()
    }

    pub fn name(&self) -> bool {
        self.has("name") && !self.value()
    }

    /// A short sum of it: "a value, a name or `(`".
    pub fn summary(&self) -> String {
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
