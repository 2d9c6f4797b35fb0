//! Two tiers for a stage's fused programs: machine code by cranelift, and the interpreter.
//!
//! It may not know tasks, queues or connectors.

use dfc_batch::{Batch, RowError};

/// Which tier runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Machine code, the interpreter for what can't be compiled.
    #[default]
    Jit,
    /// The interpreter for everything: the oracle.
    Interpreter,
}

/// What became of a program: for `run -v`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileReport {
    /// The program's name.
    pub program: String,
    /// Microseconds spent compiling.
    pub micros: u64,
    /// Bytes of machine code; 0 if interpreted.
    pub code_bytes: usize,
    /// Expressions that can't be compiled (their text), so that the program is interpreted.
    pub not_compiled: Vec<String>,
}

/// A program made ready. Shared by the tasks of a stage.
pub trait PreparedProgram: Send + Sync {
    /// Runs it over a batch. Rejected rows are pushed to `errors` with place and raw text from the batch's origin (`node` is the
    /// program's name). The result keeps the sequence number, and the origin narrowed to the rows that are left.
    fn run(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Batch;
}

