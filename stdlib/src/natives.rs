//! Bodies of the native functions, by name. One file a subject, each with its table; here they become one.
//!
//! A body may not know rows, columns, files or the time: same arguments, same result.

mod args;
mod conditionals;
mod dates;
mod hashes;
mod json;
mod lists;
mod numbers;
mod patterns;
mod strings;

pub use dates::validate_unit;
pub use patterns::{Pattern, validate_regex};

use dfc_ir::{DataType, Value};

/// Why a function has no value for its arguments: becomes a row error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FnError {
    /// `R0…`
    pub code: &'static str,
    /// The rule that was broken, in the user's words.
    pub message: String,
}

/// What a body may know beside its arguments.
#[derive(Debug, Clone, Copy)]
pub struct CallTypes<'a> {
    /// The declared types of the arguments, after conversion.
    pub args: &'a [DataType],
    /// The type of the result: a body returns a value of exactly this type.
    pub result: &'a DataType,
}

/// The body of a function.
pub type Body = for<'a> fn(&[Value<'a>], &CallTypes<'_>) -> Result<Value<'static>, FnError>;

/// A native function.
#[derive(Clone, Copy)]
pub struct Native {
    /// Its name in the language; one body serves all overloads and looks at the values' tags.
    pub name: &'static str,
    /// A strict function gives null for a null argument without running; then it never sees `Value::Null`.
    pub strict: bool,
    /// The body. Deterministic: same arguments, same result.
    pub call: Body,
}

impl Native {
    /// A strict function.
    const fn strict(name: &'static str, call: Body) -> Self {
        Native { name, strict: true, call }
    }

    /// A function that sees nulls.
    const fn with_nulls(name: &'static str, call: Body) -> Self {
        Native { name, strict: false, call }
    }
}

/// The function of this name.
pub fn lookup(name: &str) -> Option<&'static Native> {
    TABLE.binary_search_by(|native| native.name.cmp(name)).ok().map(|index| &TABLE[index])
}

/// All functions, sorted by name.
pub static TABLE: &[Native] = &SORTED;

const TABLES: [&[Native]; 8] = [
    conditionals::TABLE,
    dates::TABLE,
    hashes::TABLE,
    json::TABLE,
    lists::TABLE,
    numbers::TABLE,
    patterns::TABLE,
    strings::TABLE,
];

const COUNT: usize = {
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

/// The tables joined and sorted (by insertion) while this is compiled.
static SORTED: [Native; COUNT] = {
    let mut all = [TABLES[0][0]; COUNT];
    let (mut filled, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut entry = 0;
        while entry < TABLES[table].len() {
            let native = TABLES[table][entry];
            let mut place = filled;
            while place > 0 && before(native.name, all[place - 1].name) {
                all[place] = all[place - 1];
                place -= 1;
            }
            all[place] = native;
            filled += 1;
            entry += 1;
        }
        table += 1;
    }
    all
};

/// `a < b`, byte by byte; `Ord` does not work in constants yet.
const fn before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

#[cfg(test)]
mod declared_tests;
#[cfg(test)]
mod tests;
