//! A program and the aggregate after it as one piece of compiled code.

use dfc_batch::{Batch, RowError};
use dfc_eval::{Env, EvalError};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{Expr, Program, Schema, Value};
use dfc_table::{GroupIndex, GroupTable};

use crate::aggregate::PreparedAggregate;
use crate::columns::Inputs;
use crate::compiled::{Compiled, Refusal, Rows, compile, disagreement};
use crate::context::Context;
use crate::interpret::{Outcome, eval_error, pass_row, row_error};
use crate::lower::{CACHE_ENTRIES, Unsupported, UpdateStates};

/// An aggregate that runs as machine code.
pub(crate) struct Fused {
    /// What comes before; the identity if there is nothing.
    program: Program,
    spec: AggregateSpec,
    env: Env,
    compiled: Compiled,
    /// Words of an entry of the group cache.
    entry_words: usize,
}

/// A program that hands its input on.
pub(crate) fn identity(spec: &AggregateSpec) -> Program {
    let outputs: Vec<Expr> = spec.inputs.iter().enumerate().map(|(k, ty)| Expr::column(k, ty.clone())).collect();
    let fields =
        spec.inputs.iter().enumerate().map(|(k, ty)| dfc_ir::Field::new(format!("column {}", k + 1), ty.clone()));
    Program {
        name: spec.node.clone(),
        inputs: spec.inputs.clone(),
        steps: Vec::new(),
        schema: Schema { fields: fields.collect() },
        outputs,
    }
}

impl Fused {
    /// Compiles it.
    pub(crate) fn new(program: Program, spec: &AggregateSpec, env: Env) -> Result<Self, Refusal> {
        let mut ending = UpdateStates::new(spec).map_err(|Unsupported(text)| Refusal::Expression(text))?;
        let mut compiled = compile(&program, &mut ending)?;
        let entry_words = ending.cached_words.map_or(0, |words| words + 1);
        compiled.built.pool.keys = spec.keys.iter().map(|key| key.ty.clone()).collect();
        Ok(Fused { program, spec: spec.clone(), env, compiled, entry_words })
    }

    /// Bytes of machine code.
    pub(crate) fn code_bytes(&self) -> usize {
        self.compiled.code.bytes
    }

    /// What is wrong with a row that the code rejected.
    fn explain(&self, batch: &Batch, row: usize, context: &Context) -> RowError {
        let mut error = None;
        let outcome = pass_row(&self.program, &self.env, batch, row, &mut |values| {
            error = self.evaluate(values).err();
        });
        if let Outcome::Failed(failure) = outcome {
            return row_error(&self.program, batch, row, failure);
        }
        let overflow = context.overflows.iter().find(|(at, _)| *at as usize == row);
        let error = error.unwrap_or_else(|| match overflow {
            Some((_, number)) => {
                let aggregate = &self.spec.aggregates[*number];
                let message = format!("the `{}` has more than 38 digits", aggregate.function.name());
                EvalError::new(dfc_eval::OVERFLOW, message).at(aggregate.site)
            }
            None => disagreement(),
        });
        eval_error(&self.spec.node, batch, row, error)
    }

    /// Evaluates keys, conditions and arguments as the table would.
    fn evaluate(&self, values: &[Value<'_>]) -> Result<(), EvalError> {
        for key in &self.spec.keys {
            dfc_eval::eval(key, values, &self.env)?;
        }
        for aggregate in &self.spec.aggregates {
            let counts = match &aggregate.filter {
                Some(condition) => dfc_eval::eval(condition, values, &self.env)? == Value::Bool(true),
                None => true,
            };
            for arg in aggregate.args.iter().filter(|_| counts) {
                dfc_eval::eval(arg, values, &self.env)?;
            }
        }
        Ok(())
    }
}

impl PreparedAggregate for Fused {
    fn table(&self) -> GroupTable {
        GroupTable::new(&self.spec)
    }

    fn update(&self, batch: &Batch, table: &mut GroupTable, errors: &mut Vec<RowError>) {
        let Compiled { code, built } = &self.compiled;
        let inputs = Inputs::new(batch, &self.program.inputs, &built.used);
        let mut context = Context::new(&built.pool, batch, self.env);
        context.columns = inputs.columns.as_ptr();
        // Entries hold addresses of this table's rows, and views of this batch: the cache is as old as the pass.
        let mut cache = vec![u64::MAX; CACHE_ENTRIES * self.entry_words];
        context.cache = match self.spec.keys.is_empty() {
            true => table.state_row(GroupIndex(0)),
            false => cache.as_mut_ptr().cast(),
        };
        context.table = std::ptr::from_mut(table).cast();
        let rows = Rows::new(&mut context, batch.rows);
        // SAFETY: inputs have the program's types; the table is one of this aggregate and used by nothing else; the cache has the size
        // that the code was compiled for; all of it lives until the end.
        unsafe { code.run(&mut context, batch.rows) };
        // SAFETY: the code has run; it writes no selection.
        let failed = unsafe { rows.failed(&context) };
        errors.extend(failed.into_iter().map(|row| self.explain(batch, row as usize, &context)));
    }
}
