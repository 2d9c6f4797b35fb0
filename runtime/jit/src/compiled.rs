//! The compiled tier: a program's code with what it refers to, and a pass over a batch.

use arrow_array::UInt32Array;
use cranelift_codegen::ir::Function;
use cranelift_jit::JITModule;
use dfc_batch::{Batch, RowError};
use dfc_eval::{Env, EvalError};
use dfc_ir::Program;

use crate::columns::{Inputs, Output};
use crate::context::{Context, TextBlocks};
use crate::interpret::{Failure, Outcome, pass_row, row_error};
use crate::lower::{Built, Ending, OutputPlan, Unsupported, WriteOutputs, build};
use crate::machine::{self, Code, Registers};
use crate::{Evaluated, PreparedProgram};

/// Why there is no code.
pub(crate) enum Refusal {
    /// This expression has no compiled form.
    Expression(String),
    /// The code generator refused: a defect.
    Backend(String),
}

impl Refusal {
    /// For the report.
    pub(crate) fn text(self) -> String {
        match self {
            Refusal::Expression(text) => text,
            Refusal::Backend(text) => format!("(the code generator refused: {text})"),
        }
    }
}

/// Code and what it refers to.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    pub(crate) built: Built,
}

/// A function that was built, and the module that it was built for.
pub(crate) struct Draft {
    module: JITModule,
    pub(crate) function: Function,
    built: Built,
}

/// Builds a program's function with this ending.
pub(crate) fn draft(program: &Program, ending: &mut dyn Ending, registers: Registers) -> Result<Draft, Refusal> {
    let mut module = machine::module(registers).map_err(Refusal::Backend)?;
    let mut function = machine::empty_function(&module);
    match build(&mut function, &mut module, program, ending) {
        Ok(built) => Ok(Draft { module, function, built }),
        Err(Unsupported(text)) => {
            // SAFETY: nothing was compiled in it.
            unsafe { module.free_memory() };
            Err(Refusal::Expression(text))
        }
    }
}

/// Compiles a program with this ending.
pub(crate) fn compile(program: &Program, ending: &mut dyn Ending) -> Result<Compiled, Refusal> {
    let mut drafted = draft(program, ending, Registers::BestCode)?;
    // How large the function is shows when it is built, and a module's settings are fixed before: a large one is built once more.
    let registers = Registers::fit_for(&drafted.function);
    if registers != Registers::BestCode {
        // SAFETY: nothing was compiled in it.
        unsafe { drafted.module.free_memory() };
        drafted = draft(program, ending, registers)?;
    }
    let Draft { module, function, built } = drafted;
    let code = machine::compile(module, function).map_err(Refusal::Backend)?;
    Ok(Compiled { code, built })
}

/// The function's text form.
pub(crate) fn clif(program: &Program, ending: &mut dyn Ending) -> Result<String, Refusal> {
    let Draft { module, function, .. } = draft(program, ending, Registers::BestCode)?;
    // SAFETY: nothing was compiled in it.
    unsafe { module.free_memory() };
    Ok(function.display().to_string())
}

/// A program that runs as machine code.
pub(crate) struct CompiledProgram {
    program: Program,
    env: Env,
    plans: Vec<OutputPlan>,
    compiled: Compiled,
}

impl CompiledProgram {
    /// Compiles it; also the code's size in bytes.
    pub(crate) fn new(program: &Program, env: Env) -> Result<(Self, usize), Refusal> {
        let mut ending = WriteOutputs::new(program).map_err(|Unsupported(text)| Refusal::Expression(text))?;
        let compiled = compile(program, &mut ending)?;
        let bytes = compiled.code.bytes;
        Ok((CompiledProgram { program: program.clone(), env, plans: ending.plans, compiled }, bytes))
    }
}

/// Room for row numbers, with its addresses given to the context.
pub(crate) struct Rows {
    selection: Vec<u32>,
    failed: Vec<u32>,
}

impl Rows {
    /// For a batch of so many rows.
    pub(crate) fn new(context: &mut Context, rows: usize) -> Self {
        let mut made = Rows { selection: Vec::with_capacity(rows), failed: Vec::with_capacity(rows) };
        context.selection = made.selection.as_mut_ptr();
        context.failed = made.failed.as_mut_ptr();
        made
    }

    /// The rows that were kept and those that failed.
    ///
    /// # Safety
    /// The code that was given the addresses must have run, and have written the selection.
    pub(crate) unsafe fn finish(mut self, context: &Context) -> (Vec<u32>, Vec<u32>) {
        for (row, place) in self.selection.spare_capacity_mut()[..context.unselected as usize].iter_mut().enumerate() {
            place.write(row as u32);
        }
        // SAFETY: written, by the caller's promise.
        unsafe {
            self.selection.set_len(context.kept as usize);
            self.failed.set_len(context.failed_count as usize);
        }
        (self.selection, self.failed)
    }

    /// The rows that failed.
    ///
    /// # Safety
    /// The code that was given the addresses must have run.
    pub(crate) unsafe fn failed(mut self, context: &Context) -> Vec<u32> {
        // SAFETY: written, by the caller's promise.
        unsafe { self.failed.set_len(context.failed_count as usize) };
        self.failed
    }
}

/// Finds by the interpreter what is wrong with the rows that compiled code rejected.
pub(crate) fn explain(program: &Program, env: &Env, batch: &Batch, failed: &[u32], errors: &mut Vec<RowError>) {
    for &row in failed {
        let row = row as usize;
        let failure = match pass_row(program, env, batch, row, &mut |_| {}) {
            Outcome::Failed(failure) => failure,
            Outcome::Kept | Outcome::Dropped => Failure { error: disagreement(), output: None },
        };
        errors.push(row_error(program, batch, row, failure));
    }
}

/// The error for a row that compiled code rejects and the interpreter doesn't.
pub(crate) fn disagreement() -> EvalError {
    EvalError::new(
        "R0199",
        "compiled code rejected this row, the interpreter doesn't: this is a defect of dfc, please report it",
    )
}

impl PreparedProgram for CompiledProgram {
    fn evaluate(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Evaluated {
        let Compiled { code, built } = &self.compiled;
        let inputs = Inputs::new(batch, &self.program.inputs, &built.used);
        let mut buffers: Vec<Output> = self
            .plans
            .iter()
            .filter_map(|plan| match plan {
                OutputPlan::Pass(_) => None,
                OutputPlan::Computed { kind, nullable, .. } => Some(Output::new(*kind, *nullable, batch.rows)),
            })
            .collect();
        let outputs: Vec<_> = buffers.iter_mut().map(Output::column).collect();
        let mut context = Context::new(&built.pool, batch, self.env);
        context.columns = inputs.columns.as_ptr();
        context.outputs = outputs.as_ptr();
        context.texts.resize_with(outputs.len(), TextBlocks::default);
        let rows = Rows::new(&mut context, batch.rows);
        // SAFETY: inputs have the program's types, outputs and row numbers have room for every row, and all of it lives until the end.
        unsafe { code.run(&mut context, batch.rows) };
        let kept_rows = context.kept as usize;
        let (kept, failed) = if built.keeps_all || kept_rows == batch.rows {
            (None, Vec::new())
        } else {
            // SAFETY: the code has run, and writes the selection unless it keeps all by its nature.
            let (kept, failed) = unsafe { rows.finish(&context) };
            (Some(kept), failed)
        };
        explain(&self.program, &self.env, batch, &failed, errors);
        let passes = self.plans.iter().any(|plan| matches!(plan, OutputPlan::Pass(_)));
        let indices = kept.as_ref().filter(|_| passes).map(|kept| UInt32Array::from(kept.clone()));
        let mut texts = std::mem::take(&mut context.texts).into_iter();
        let mut buffers = buffers.into_iter();
        let columns = self
            .plans
            .iter()
            .zip(&self.program.schema.fields)
            .filter_map(|(plan, field)| match plan {
                OutputPlan::Pass(index) => {
                    let column = &batch.columns[*index];
                    Some(indices.as_ref().map_or_else(|| column.clone(), |rows| dfc_batch::take(column, rows)))
                }
                OutputPlan::Computed { .. } => {
                    let (buffer, texts) = (buffers.next()?, texts.next()?);
                    // SAFETY: the code has written so many values of this field's kind.
                    Some(unsafe { buffer.finish(&field.ty, kept_rows, texts) })
                }
            })
            .collect();
        Evaluated { columns, kept }
    }
}
