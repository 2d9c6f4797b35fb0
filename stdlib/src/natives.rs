//! Bodies of the native functions, by name.

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

/// A native function.
pub struct Native {
    /// Its name in the language; one body serves all overloads and looks at the values' tags.
    pub name: &'static str,
    /// A strict function gives null for a null argument without running; then it never sees `Value::Null`.
    pub strict: bool,
    /// The body. Deterministic: same arguments, same result.
    pub call: for<'a> fn(&[Value<'a>], &CallTypes<'_>) -> Result<Value<'static>, FnError>,
}

/// The function of this name.
pub fn lookup(name: &str) -> Option<&'static Native> {
    TABLE.iter().find(|native| native.name == name)
}

/// All functions.
pub static TABLE: &[Native] = &[];
