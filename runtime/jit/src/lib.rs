//! Two tiers for a stage's fused programs: machine code by cranelift, and the interpreter.
//!
//! A program is compiled once and run by many threads: whatever changes while a batch passes is in a context of that call.
//! It may not know tasks, queues or connectors.

mod aggregate;
mod columns;
mod compiled;
mod context;
mod fused;
mod helpers;
mod interpret;
mod islands;
mod kind;
mod lower;
mod machine;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

pub use aggregate::PreparedAggregate;
use arrow_array::ArrayRef;
use dfc_batch::{Batch, RowError};
pub use dfc_eval::Env;
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Expr, Program, Schema};
pub use lower::{infallible as has_value, outputs_fail};

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

/// What a program makes of a batch, without the batch's numbers.
pub struct Evaluated {
    /// One array an output, of the rows that are kept.
    pub columns: Vec<ArrayRef>,
    /// The rows of the batch that are kept, ascending; `None`: all of them.
    pub kept: Option<Vec<u32>>,
}

/// A program made ready. Shared by the tasks of a stage.
pub trait PreparedProgram: Send + Sync {
    /// Passes a batch's rows through it. Rejected rows are pushed to `errors`, ascending, with place and raw text from the batch's
    /// origin (`node` is the program's name).
    fn evaluate(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Evaluated;

    /// Runs it over a batch; errors as in [`PreparedProgram::evaluate`]. The result keeps the sequence number, and the origin narrowed
    /// to the rows that are left.
    fn run(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Batch {
        let Evaluated { columns, kept } = self.evaluate(batch, errors);
        let rows = kept.as_ref().map_or(batch.rows, Vec::len);
        let origin = match &kept {
            Some(kept) => batch.origin.as_ref().map(|origin| origin.select(kept)),
            None => batch.origin.clone(),
        };
        Batch { columns, rows, seq: batch.seq, origin }
    }
}

/// Makes a program ready. With [`Tier::Jit`] it falls back to the interpreter for a program that can't be compiled; the report says why.
pub fn prepare_program(program: &Program, tier: Tier, env: Env) -> (Arc<dyn PreparedProgram>, CompileReport) {
    let interpreted = |not_compiled, micros| {
        let made: Arc<dyn PreparedProgram> = Arc::new(interpret::Interpreted { program: program.clone(), env });
        (made, CompileReport { program: program.name.clone(), micros, code_bytes: 0, not_compiled })
    };
    if tier == Tier::Interpreter {
        return interpreted(Vec::new(), 0);
    }
    let start = Instant::now();
    let result = compiled::CompiledProgram::new(program, env);
    let micros = start.elapsed().as_micros() as u64;
    match result {
        Ok((made, code_bytes)) => {
            let report = CompileReport { program: program.name.clone(), micros, code_bytes, not_compiled: Vec::new() };
            (Arc::new(made), report)
        }
        Err(refusal) => interpreted(vec![refusal.text()], micros),
    }
}

/// Makes several expressions over a batch ready: keys of joins, sorts and exchanges. `name` is the operator's, for errors. The rows for
/// which one of them has no value are rejected: see [`Evaluated::kept`].
pub fn prepare_exprs(
    name: &str,
    inputs: &[DataType],
    exprs: &[Expr],
    tier: Tier,
    env: Env,
) -> (Arc<dyn PreparedProgram>, CompileReport) {
    // Keys are no fields that a user knows: without a name an error says only where the expression stands.
    let fields = exprs.iter().map(|expr| dfc_ir::Field::new(String::new(), expr.ty.clone()));
    let program = Program {
        name: name.to_string(),
        inputs: inputs.to_vec(),
        steps: Vec::new(),
        outputs: exprs.to_vec(),
        schema: Schema { fields: fields.collect() },
    };
    prepare_program(&program, tier, env)
}

/// Makes an aggregate ready, fused with the program before it, whose outputs are the aggregate's input. With [`Tier::Jit`] what can't be
/// fused is done one after the other; the report says why.
pub fn prepare_aggregate(
    program: Option<&Program>,
    spec: &AggregateSpec,
    tier: Tier,
    env: Env,
) -> (Arc<dyn PreparedAggregate>, CompileReport) {
    let name = program.map_or(&spec.node, |program| &program.name).clone();
    let mut not_fused = None;
    if tier == Tier::Jit {
        let start = Instant::now();
        let before = program.cloned().unwrap_or_else(|| fused::identity(spec));
        match fused::Fused::new(before, spec, env) {
            Ok(made) => {
                let (micros, code_bytes) = (start.elapsed().as_micros() as u64, made.code_bytes());
                let report = CompileReport { program: name, micros, code_bytes, not_compiled: Vec::new() };
                return (Arc::new(made), report);
            }
            Err(refusal) => not_fused = Some(refusal.text()),
        }
    }
    let (program, mut report) = match program.map(|program| prepare_program(program, tier, env)) {
        Some((program, report)) => (Some(program), report),
        None => (None, CompileReport { program: name, micros: 0, code_bytes: 0, not_compiled: Vec::new() }),
    };
    report.not_compiled.extend(not_fused);
    report.not_compiled.dedup();
    (Arc::new(aggregate::Separate { program, spec: spec.clone(), env }), report)
}

/// The cranelift function of a program, or of a program and the aggregate fused with it, for `dfc plan --emit clif`. Errors: the text
/// of what can't be compiled.
pub fn emit_clif(program: &Program, aggregate: Option<&AggregateSpec>) -> Result<String, String> {
    let result = match aggregate {
        Some(spec) => lower::UpdateStates::new(spec).map(|mut ending| compiled::clif(program, &mut ending)),
        None => lower::WriteOutputs::new(program).map(|mut ending| compiled::clif(program, &mut ending)),
    };
    match result {
        Ok(text) => text.map_err(compiled::Refusal::text),
        Err(lower::Unsupported(text)) => Err(text),
    }
}
