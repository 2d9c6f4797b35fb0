//! The meaning of an expression in plain Rust, row by row: the oracle that compiled code is tested against, the fallback
//! where there is no compiled code, and the compiler's constant folding.
//!
//! Written apart from the JIT and its helpers on purpose: two independent readings of `dfc_ir::expr`.

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

/// Why an expression has no value on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalError {
    /// `R0…`: `R0101` overflow, `R0102` division by zero, `R0103` a cast failed, `R0104` null where none may be,
    /// `R0105` a function refused its arguments, `R0106` `require` not met.
    pub code: &'static str,
    /// The rule that was broken, in the user's words.
    pub message: String,
    /// The offending value as text, where there is one.
    pub value: Option<String>,
    /// The innermost expression that failed.
    pub site: Site,
}
