//! Row errors: a row that doesn't fit its declaration, or for which an expression has no value.

use dfc_ir::Site;

/// Where a row stands outside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file as the user would name it, or the table.
    pub source: String,
    /// Byte offset of the row's first byte in the (decompressed) file.
    pub offset: Option<u64>,
    /// Line of the row's first byte, from 1.
    pub line: Option<u64>,
    /// Row number in the file, from 1, where lines mean nothing (Parquet, `generate`).
    pub row: Option<u64>,
}

/// A rejected row. With `errors { limit }` it is written to the rejects, without it stops the job; either way it says where and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// `R0101` …: see the registry of codes in `dfc-diagnostics`.
    pub code: &'static str,
    /// The operator's name. Empty until the engine, which knows it, fills it in.
    pub node: String,
    /// Where the row comes from, if that is still known.
    pub place: Option<Place>,
    /// The field concerned (its outside name at a border, else the column's name).
    pub field: Option<String>,
    /// The offending value as text, shortened to 200 characters.
    pub value: Option<String>,
    /// The rule that it breaks, in the user's words: "`abc` is no int64", "division by zero in `a / b`".
    pub rule: String,
    /// The expression concerned.
    pub site: Site,
    /// The row's text as it stands in the source.
    pub raw: Option<String>,
}

impl RowError {
    /// An error with code and rule, everything else to be filled in.
    pub fn new(code: &'static str, rule: impl Into<String>) -> Self {
        RowError {
            code,
            node: String::new(),
            place: None,
            field: None,
            value: None,
            rule: rule.into(),
            site: Site::default(),
            raw: None,
        }
    }
}
