//! The meaning of an expression in plain Rust, row by row: the oracle that compiled code is tested against, the fallback
//! where there is no compiled code, and the compiler's constant folding.
//!
//! Written apart from the JIT and its helpers on purpose: two independent readings of `dfc_ir::expr`.
//! It may not know how columns are stored.

pub mod arith;
pub mod calendar;
mod cast;
mod compare;
pub mod decimal;
mod evaluate;
mod format;
mod json;
mod parse;
mod wide;

pub use cast::{can_cast, cast_value};
pub use compare::compare;
pub use evaluate::{eval, eval_constant};
pub use format::{format_value, push_value};
pub use json::{read_json, special_in_string};
pub use parse::parse_value;

use dfc_ir::{Site, Value};

/// What an expression may see beside its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Env {
    /// `now()`: microseconds since the epoch, fixed for the run.
    pub now: i64,
}

/// A row: its columns by position.
pub trait Row {
    /// The value of column `column`.
    fn get(&self, column: usize) -> Value<'_>;
}

/// Values side by side are a row.
impl Row for [Value<'_>] {
    fn get(&self, column: usize) -> Value<'_> {
        borrow(&self[column])
    }
}

impl<const N: usize> Row for [Value<'_>; N] {
    fn get(&self, column: usize) -> Value<'_> {
        borrow(&self[column])
    }
}

impl Row for Vec<Value<'_>> {
    fn get(&self, column: usize) -> Value<'_> {
        borrow(&self[column])
    }
}

/// The same value, its text and bytes borrowed from `value`.
pub fn borrow<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::Str(text) => Value::str(text),
        Value::Bytes(bytes) => Value::Bytes((&**bytes).into()),
        Value::List(items) => Value::List(items.iter().map(borrow).collect()),
        Value::Record(items) => Value::Record(items.iter().map(borrow).collect()),
        Value::Null => Value::Null,
        Value::Bool(v) => Value::Bool(*v),
        Value::Int(v) => Value::Int(*v),
        Value::Float(v) => Value::Float(*v),
        Value::Decimal(v) => Value::Decimal(*v),
        Value::Date(v) => Value::Date(*v),
        Value::Time(v) => Value::Time(*v),
        Value::DateTime(v) => Value::DateTime(*v),
        Value::Timestamp(v) => Value::Timestamp(*v),
        Value::Duration(v) => Value::Duration(*v),
    }
}

/// A result passes the range of its type.
pub const OVERFLOW: &str = "R0101";
/// Division by zero.
pub const DIVISION_BY_ZERO: &str = "R0102";
/// A cast failed.
pub const CAST_FAILED: &str = "R0103";
/// A null where none may be.
pub const UNEXPECTED_NULL: &str = "R0104";
/// A function or an operator refused its arguments.
pub const REFUSED: &str = "R0105";
/// An expression that the checker should not have let through, or a function that broke down: a defect of this program.
pub const DEFECT: &str = "R0199";

/// Why an expression has no value on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalError {
    /// `R0…`: `R0101` overflow, `R0102` division by zero, `R0103` a cast failed, `R0104` null where none may be,
    /// `R0105` a function refused its arguments, `R0106` `require` not met, `R0199` a defect of this program.
    pub code: &'static str,
    /// The rule that was broken, in the user's words.
    pub message: String,
    /// The offending value as text, where there is one.
    pub value: Option<String>,
    /// The innermost expression that failed.
    pub site: Site,
}

impl EvalError {
    /// An error without value, at an unknown place.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        EvalError { code, message: message.into(), value: None, site: Site::default() }
    }

    /// The same error, about this value.
    pub fn with_value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// The same error, at this place unless it has one.
    pub fn at(mut self, site: Site) -> Self {
        if self.site == Site::default() {
            self.site = site;
        }
        self
    }
}
