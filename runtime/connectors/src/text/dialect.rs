//! What separates, quotes and hides text in a delimited file, checked for contradictions.

use crate::ConnectError;
use crate::options::OptionReader;

/// The rules of a delimited file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Between fields: one or more bytes.
    pub delimiter: Vec<u8>,
    /// Around fields; `None`: nothing is quoted.
    pub quote: Option<u8>,
    /// Before a quote within quotes (the quote itself: doubled quotes) or before itself.
    pub escape: u8,
    /// Lines that start so are no rows.
    pub comment: Option<Vec<u8>>,
    /// Blanks and tabs around fields don't count.
    pub trim: bool,
}

impl Dialect {
    /// From a source's or sink's arguments.
    ///
    /// # Errors
    /// Characters that can't be what they are to be, or that contradict each other.
    pub(crate) fn read(options: &OptionReader) -> Result<Self, ConnectError> {
        let delimiter = options.text("delimiter")?.unwrap_or(",").as_bytes().to_vec();
        let quote = one_character(options, "quote", "\"")?;
        // The default stands for "as the quote", whatever that is.
        let escape = match one_character(options, "escape", "\"")? {
            Some(escape) if escape != b'"' => escape,
            _ => quote.unwrap_or(b'"'),
        };
        let comment = options.text("comment")?.filter(|c| !c.is_empty()).map(|c| c.as_bytes().to_vec());
        let refuse = |what: String| Err(ConnectError::new("R0202", what));
        if delimiter.is_empty() {
            return refuse("`delimiter` must have at least one character".into());
        }
        if delimiter.iter().any(|b| matches!(b, b'\n' | b'\r')) {
            return refuse("`delimiter` can't hold a line break: that ends a row".into());
        }
        if let Some(quote) = quote
            && delimiter.contains(&quote)
        {
            return refuse("`delimiter` and `quote` must differ".into());
        }
        if quote.is_some() && delimiter.contains(&escape) {
            return refuse("`delimiter` and `escape` must differ".into());
        }
        Ok(Dialect { delimiter, quote, escape, comment, trim: options.flag("trim", false)? })
    }

    /// Whether quotes within quotes are doubled, rather than marked by another character.
    pub(crate) fn doubles(&self) -> bool {
        self.quote == Some(self.escape)
    }
}

/// A parameter of one ASCII punctuation character; the empty text means none.
fn one_character(options: &OptionReader, name: &str, default: &str) -> Result<Option<u8>, ConnectError> {
    let text = options.text(name)?.unwrap_or(default);
    match text.as_bytes() {
        [] => Ok(None),
        [byte] if byte.is_ascii_punctuation() && !b"+-.".contains(byte) => Ok(Some(*byte)),
        _ => Err(ConnectError::new("R0202", format!("`{name}` can't be `{text}`"))
            .help("one ASCII punctuation character other than `+`, `-` and `.` is expected, or \"\" for none")),
    }
}
