//! Aggregates in two halves: each task groups what it sees, then each reader merges its share of the keys from all of them.

use std::collections::VecDeque;
use std::sync::Arc;

use dfc_batch::{Batch, RowError};
use dfc_eval::EvalError;
use dfc_ir::stage::AggregateSpec;
use dfc_jit::PreparedAggregate;
use dfc_table::GroupTable;

use super::{BATCH_ROWS, Operator, Out};
use crate::RunError;

/// The first half, with the program before it fused in.
pub(crate) struct PreparedPartial(pub(crate) Arc<dyn PreparedAggregate>);

impl PreparedPartial {
    pub(crate) fn open(&self) -> Box<dyn Operator> {
        Box::new(Partial { table: Some(self.0.table()), aggregate: self.0.clone(), errors: Vec::new() })
    }
}

struct Partial {
    aggregate: Arc<dyn PreparedAggregate>,
    /// Until it was given.
    table: Option<GroupTable>,
    errors: Vec<RowError>,
}

impl Operator for Partial {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        if let Some(table) = &mut self.table {
            self.aggregate.update(&batch, table, &mut self.errors);
        }
        out.report(&mut self.errors)
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        match self.table.take() {
            Some(table) => out.emit_partial(Arc::new(table)).map(|()| true),
            None => Ok(true),
        }
    }
}

/// The second half.
pub(crate) struct PreparedFinal {
    pub(crate) spec: Arc<AggregateSpec>,
    /// Number of tasks that share the keys.
    pub(crate) parts: usize,
}

impl PreparedFinal {
    pub(crate) fn open(&self, task: usize) -> Box<dyn Operator> {
        Box::new(Final {
            table: Some(GroupTable::new(&self.spec)),
            spec: self.spec.clone(),
            part: task,
            parts: self.parts,
            results: VecDeque::new(),
            given: 0,
        })
    }
}

struct Final {
    spec: Arc<AggregateSpec>,
    part: usize,
    parts: usize,
    /// Until the input has ended.
    table: Option<GroupTable>,
    results: VecDeque<Batch>,
    given: u64,
}

impl Operator for Final {
    fn push(&mut self, _batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        Err(RunError::Plan(format!("`{}` was given rows instead of the first half of an aggregate", out.operator())))
    }

    fn merge(&mut self, partial: Arc<GroupTable>, _out: &mut Out<'_>) -> Result<usize, RunError> {
        match &mut self.table {
            Some(table) => {
                let merged = table.merge_partition(&partial, self.part, self.parts);
                merged.map_err(|error| failed(&self.spec.node, error))
            }
            None => Ok(0),
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if let Some(mut table) = self.table.take() {
            let results = table.finish(&self.spec, BATCH_ROWS);
            self.results = results.map_err(|error| failed(&self.spec.node, error))?.into();
        }
        if let Some(batch) = self.results.pop_front() {
            out.emit(Batch { seq: self.given, ..batch })?;
            self.given += 1;
        }
        Ok(self.results.is_empty())
    }
}

/// A group has no value: no single row is to blame, so none can be rejected instead.
fn failed(node: &str, error: EvalError) -> RunError {
    RunError::Group(Box::new(RowError {
        node: node.to_owned(),
        value: error.value,
        site: error.site,
        ..RowError::new(error.code, error.message)
    }))
}
