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
use crate::state::{self, Change, Kind, Piece, Restored, Saved, Share};

/// The first half, with the program before it fused in.
pub(crate) struct PreparedPartial {
    pub(crate) aggregate: Arc<dyn PreparedAggregate>,
    pub(crate) spec: Arc<AggregateSpec>,
}

impl PreparedPartial {
    pub(crate) fn open(&self) -> Box<dyn Operator> {
        Box::new(Partial {
            table: Some(self.aggregate.table()),
            aggregate: self.aggregate.clone(),
            spec: self.spec.clone(),
            parts: 0,
            errors: Vec::new(),
        })
    }
}

/// A table is saved whole after so many parts that only say what changed, so that a restart needn't read more.
const MOST_PARTS: usize = 16;

/// What changed in a table, or all of it.
fn save_groups(table: &mut GroupTable, parts: &mut usize, fresh: bool) -> Piece {
    let whole = fresh || *parts >= MOST_PARTS;
    *parts = if whole { 1 } else { *parts + 1 };
    let frozen = table.freeze(whole);
    let change = if frozen.whole { Change::Replace } else { Change::Append };
    Piece { kind: Kind::Groups, change, saved: Some(Saved::Groups(frozen)) }
}

struct Partial {
    aggregate: Arc<dyn PreparedAggregate>,
    spec: Arc<AggregateSpec>,
    /// Parts that the table was saved in since it was last saved whole.
    parts: usize,
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

    fn save(&mut self, fresh: bool) -> Vec<Piece> {
        self.table.iter_mut().map(|table| save_groups(table, &mut self.parts, fresh)).collect()
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        if !share.takes(state.position) {
            return Ok(());
        }
        let restored = state::groups(&self.spec, &state.parts)?;
        match &mut self.table {
            Some(table) if self.spec.keys.is_empty() || !table.is_empty() => {
                table.merge_partition(&restored, 0, 1).map_err(|error| failed(&self.spec.node, error))?;
            }
            table => *table = Some(restored),
        }
        Ok(())
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
            saved_parts: 0,
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
    /// Parts that the table was saved in since it was last saved whole.
    saved_parts: usize,
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
            // Of what a checkpoint found finished, and of the groups: an aggregate without keys has one row, wherever it was.
            if !self.spec.keys.is_empty() || self.results.is_empty() {
                let results = table.finish(&self.spec, BATCH_ROWS);
                self.results.extend(results.map_err(|error| failed(&self.spec.node, error))?);
            }
        }
        if let Some(batch) = self.results.pop_front() {
            out.emit(Batch { seq: self.given, ..batch })?;
            self.given += 1;
        }
        Ok(self.results.is_empty())
    }

    fn save(&mut self, fresh: bool) -> Vec<Piece> {
        let mut pieces: Vec<Piece> =
            self.table.iter_mut().map(|table| save_groups(table, &mut self.saved_parts, fresh)).collect();
        if !self.results.is_empty() {
            let batches = self.results.iter().cloned().collect();
            pieces.push(Piece::whole(Kind::Results, Saved::Rows { batches, arrivals: Vec::new() }));
        }
        pieces
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        match (state.kind, &mut self.table) {
            (Kind::Groups, Some(table)) => {
                let restored = state::groups(&self.spec, &state.parts)?;
                let merged = table.merge_partition(&restored, share.part, share.parts);
                merged.map(drop).map_err(|error| failed(&self.spec.node, error))
            }
            (Kind::Results, _) if share.takes(state.position) => {
                for part in &state.parts {
                    self.results.extend(state::rows(part, Some(self.spec.output.len()))?.batches);
                }
                Ok(())
            }
            _ => Ok(()),
        }
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
