//! The interpreter's tier: a program row by row through `dfc-eval`. Also finds what is wrong with a row that compiled code rejected.
//!
//! It may not know compiled code.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ArrayRef;
use dfc_batch::{Batch, ColumnBuilder, RowError, value_at};
use dfc_eval::{Env, EvalError, Row};
use dfc_ir::{DataType, Program, Site, Step, Value};

use crate::{Evaluated, PreparedProgram};

/// A row of a batch, followed by the values of the lets before.
pub(crate) struct BatchRow<'b> {
    pub(crate) batch: &'b Batch,
    pub(crate) inputs: &'b [DataType],
    pub(crate) row: usize,
    pub(crate) lets: &'b [Value<'static>],
}

impl Row for BatchRow<'_> {
    fn get(&self, column: usize) -> Value<'_> {
        match self.inputs.get(column) {
            Some(ty) => value_at(&self.batch.columns[column], &ty.ty, self.row),
            None => dfc_eval::borrow(&self.lets[column - self.inputs.len()]),
        }
    }
}

/// What became of a row.
pub(crate) enum Outcome {
    /// It passed; its outputs were emitted.
    Kept,
    /// A filter dropped it.
    Dropped,
    /// It has no result.
    Failed(Failure),
}

/// Why a row has no result.
pub(crate) struct Failure {
    pub(crate) error: EvalError,
    /// The output concerned, unless it was a step.
    pub(crate) output: Option<usize>,
}

/// Passes one row through the program; `emit` gets its outputs if it is kept. A panic in a function's body becomes a failure.
pub(crate) fn pass_row(
    program: &Program,
    env: &Env,
    batch: &Batch,
    row: usize,
    emit: &mut dyn FnMut(&[Value<'_>]),
) -> Outcome {
    // After a panic nothing that was borrowed here is looked at again: the row's values are dropped, `emit` did not run.
    match catch_unwind(AssertUnwindSafe(|| pass(program, env, batch, row, emit))) {
        Ok(Ok(true)) => Outcome::Kept,
        Ok(Ok(false)) => Outcome::Dropped,
        Ok(Err(failure)) => Outcome::Failed(failure),
        Err(_) => Outcome::Failed(Failure {
            error: EvalError {
                code: dfc_eval::DEFECT,
                message: "a function broke down on this row: this is a defect of the function, please report it".into(),
                value: None,
                site: Site::default(),
            },
            output: None,
        }),
    }
}

fn pass(
    program: &Program,
    env: &Env,
    batch: &Batch,
    row: usize,
    emit: &mut dyn FnMut(&[Value<'_>]),
) -> Result<bool, Failure> {
    let step = |error| Failure { error, output: None };
    let mut lets: Vec<Value<'static>> = Vec::new();
    for s in &program.steps {
        let here = BatchRow { batch, inputs: &program.inputs, row, lets: &lets };
        match s {
            Step::Filter(condition) => {
                if dfc_eval::eval(condition, &here, env).map_err(step)? != Value::Bool(true) {
                    return Ok(false);
                }
            }
            Step::Require(condition, message) => {
                if dfc_eval::eval(condition, &here, env).map_err(step)? != Value::Bool(true) {
                    let (message, site) = (message.clone(), condition.site);
                    return Err(step(EvalError { code: "R0106", message, value: None, site }));
                }
            }
            Step::Let(expr) => {
                let value = dfc_eval::eval(expr, &here, env).map_err(step)?.into_owned();
                lets.push(value);
            }
        }
    }
    let here = BatchRow { batch, inputs: &program.inputs, row, lets: &lets };
    let mut values = Vec::with_capacity(program.outputs.len());
    for (index, expr) in program.outputs.iter().enumerate() {
        let failed = |error| Failure { error, output: Some(index) };
        let value = dfc_eval::eval(expr, &here, env).map_err(failed)?;
        if value.is_null() && !program.schema.fields[index].ty.nullable {
            let message = format!("null in `{}`, which may not be null", program.schema.fields[index].name);
            return Err(failed(EvalError { code: "R0104", message, value: None, site: expr.site }));
        }
        values.push(value);
    }
    emit(&values);
    Ok(true)
}

/// The row error for a failure: with the row's place and text, and the output's field.
pub(crate) fn row_error(program: &Program, batch: &Batch, row: usize, failure: Failure) -> RowError {
    let Failure { error, output } = failure;
    let mut made = eval_error(&program.name, batch, row, error);
    made.field = output.map(|index| program.schema.fields[index].name.clone()).filter(|name| !name.is_empty());
    made
}

/// The row error for an evaluation that failed in the operator `node`.
pub(crate) fn eval_error(node: &str, batch: &Batch, row: usize, error: EvalError) -> RowError {
    let origin = batch.origin.as_ref();
    RowError {
        code: error.code,
        node: node.to_string(),
        place: origin.map(|origin| origin.place(row)),
        field: None,
        value: error.value.map(|text| shorten(&text)),
        rule: error.message,
        site: error.site,
        raw: origin.and_then(|origin| origin.raw(row)),
    }
}

/// Longest text of a value in an error, in characters.
const SHOWN: usize = 200;

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// A program that is interpreted.
pub(crate) struct Interpreted {
    pub(crate) program: Program,
    pub(crate) env: Env,
}

impl PreparedProgram for Interpreted {
    fn evaluate(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Evaluated {
        let program = &self.program;
        let mut builders: Vec<ColumnBuilder> =
            program.schema.fields.iter().map(|field| ColumnBuilder::new(&field.ty, batch.rows)).collect();
        let mut kept = Vec::with_capacity(batch.rows);
        for row in 0..batch.rows {
            let outcome = pass_row(program, &self.env, batch, row, &mut |values| {
                for (builder, value) in builders.iter_mut().zip(values) {
                    builder.push(value);
                }
            });
            match outcome {
                Outcome::Kept => kept.push(row as u32),
                Outcome::Dropped => {}
                Outcome::Failed(failure) => errors.push(row_error(program, batch, row, failure)),
            }
        }
        let columns: Vec<ArrayRef> = builders.into_iter().map(ColumnBuilder::finish).collect();
        let kept = (kept.len() < batch.rows).then_some(kept);
        Evaluated { columns, kept }
    }
}
