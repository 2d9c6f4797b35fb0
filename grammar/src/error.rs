//! Syntax errors: their data, and the table of their codes.
//!
//! Every error is made with one of the constants below, so the table is complete by construction. Codes are never reused.

use crate::ast::Span;

/// One mistake, said once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SyntaxError {
    /// Its code, a row of [`CODES`].
    pub code: &'static str,
    /// What is wrong, in the user's words.
    pub message: String,
    /// Where, in bytes from the start of the file.
    pub span: Span,
    /// Short text at the place.
    pub label: String,
    /// Other places that matter, such as the bracket that was left open.
    pub related: Vec<(Span, String)>,
    /// A change to make.
    pub help: Option<String>,
    /// The change as an edit, where it is certain: replace the span's text by this one.
    pub fix: Option<(Span, String)>,
}

impl SyntaxError {
    /// An error with its place; the rest is added with the methods below.
    pub fn new(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        SyntaxError {
            code: code.0,
            message: message.into(),
            span,
            label: label.into(),
            related: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// Adds a change to make.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a change that is certain, as an edit.
    pub fn fix(mut self, span: Span, text: impl Into<String>) -> Self {
        self.fix = Some((span, text.into()));
        self
    }

    /// Adds another place that matters.
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }

    /// The same error `by` bytes further on: from item-relative to file-absolute.
    pub(crate) fn shift(mut self, by: u32) -> Self {
        self.span = self.span.shift(by);
        for (span, _) in &mut self.related {
            *span = span.shift(by);
        }
        if let Some((span, _)) = &mut self.fix {
            *span = span.shift(by);
        }
        self
    }
}

/// A code of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub &'static str);

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*

        /// Every code with its title, in order: the error reference is written from it.
        pub const CODES: &[(&str, &str)] = &[$(($code, $title)),*];
    };
}

codes! {
    UNKNOWN_CHARACTER = "E0101", "a character that has no meaning here";
    UNTERMINATED = "E0102", "a string, a name or a comment without its end";
    BAD_ESCAPE = "E0103", "an escape that does not exist";
    BAD_NUMBER = "E0104", "a number that cannot be read";
    BAD_DATE = "E0105", "a date or a time that does not exist";
    UNCLOSED = "E0106", "a bracket that is not closed";
    STRAY_CLOSER = "E0107", "a closing bracket without its opening one";
    UNKNOWN_ITEM = "E0108", "a top-level word that does not exist";
    EXPECTED_VALUE = "E0109", "a value is missing";
    EXPECTED_NAME = "E0110", "a name is missing";
    EXPECTED_TYPE = "E0111", "a type is missing";
    UNEXPECTED = "E0112", "something that cannot stand here";
    COLON_OR_EQUALS = "E0113", "`=`, `:` and `==` mixed up";
    FOREIGN_OPERATOR = "E0114", "an operator of another language";
    SINGLE_QUOTES = "E0115", "single quotes around a text";
    SEMICOLON = "E0116", "a semicolon too many or too few";
    CHAIN_ARROW = "E0117", "a chain continued with something else than `|>`";
    BARE_LINK = "E0118", "an operator without its parentheses";
    CHAINED_COMPARISON = "E0119", "a comparison of a comparison";
    RESERVED_NAME = "E0120", "a reserved word as a name";
    SQL = "E0121", "a statement of SQL";
    IF_FORM = "E0122", "an `if` in another language's form";
    FORMAT_STRING = "E0123", "a fault in a format string";
    TOO_DEEP = "E0124", "nested too deeply, or too many operators in one expression";
    FILE_TOO_LARGE = "E0125", "a file that is too large";
    COMMENT_FORM = "E0126", "a comment in another language's form";
    MATCH_ELSE = "E0127", "an `else` arm that is not the last one";
    MISSING_COMMA = "E0128", "a comma is missing";
    LIST_TYPE = "E0129", "a list type without the type of its elements";
    NAME_TOO_LONG = "E0130", "a name that is too long";
}

#[cfg(test)]
mod tests {
    use super::CODES;

    #[test]
    fn codes_are_in_order_without_gaps() {
        for (i, (code, title)) in CODES.iter().enumerate() {
            assert_eq!(*code, format!("E01{:02}", i + 1));
            assert!(!title.is_empty());
        }
    }
}
