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
use crate::budget::Account;
use crate::spill::{PARTITIONS, Spill};
use crate::state::{self, Change, Kind, Piece, Restored, Saved, Share};

/// The first half, with the program before it fused in.
pub(crate) struct PreparedPartial {
    pub(crate) aggregate: Arc<dyn PreparedAggregate>,
    pub(crate) spec: Arc<AggregateSpec>,
}

impl PreparedPartial {
    pub(crate) fn open(&self, account: Option<Account>) -> Box<dyn Operator> {
        Box::new(Partial {
            account: account.filter(|_| !self.spec.keys.is_empty()),
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
    /// Where its groups are counted, if that matters.
    account: Option<Account>,
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
        out.report(&mut self.errors)?;
        // Too many groups: they go to the second half, which can put them on disk.
        if let (Some(account), Some(table)) = (&mut self.account, &mut self.table)
            && account.holds(table.memory_bytes())
        {
            account.holds(0);
            self.parts = 0;
            let full = std::mem::replace(table, self.aggregate.table());
            out.emit_partial(Arc::new(full))?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        self.account = None;
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
    pub(crate) fn open(&self, task: usize, account: Option<Account>) -> Box<dyn Operator> {
        Box::new(Final {
            table: Some(GroupTable::new(&self.spec)),
            account: account.filter(|_| !self.spec.keys.is_empty()),
            spill: None,
            partition: 0,
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
    /// Where its groups are counted, if that matters.
    account: Option<Account>,
    /// Groups on disk, by the hash of their keys, and the partition that is to be given next.
    spill: Option<Spill>,
    partition: usize,
    /// Parts that the table was saved in since it was last saved whole.
    saved_parts: usize,
    results: VecDeque<Batch>,
    given: u64,
}

impl Final {
    /// Puts all groups on disk.
    fn put_away(&mut self) -> Result<(), RunError> {
        let (Some(table), Some(account)) = (&mut self.table, &mut self.account) else { return Ok(()) };
        let spill = match &mut self.spill {
            Some(spill) => spill,
            None => self.spill.insert(Spill::new(&self.spec.node, account.budget())?),
        };
        for partition in 0..PARTITIONS {
            let mut share = GroupTable::new(&self.spec);
            // A task's share of the hashes is divided further.
            share
                .merge_partition(table, self.part * PARTITIONS + partition, self.parts * PARTITIONS)
                .map_err(|error| failed(&self.spec.node, error))?;
            if !share.is_empty() {
                spill.write(partition, &Saved::Groups(share.freeze(true)).archive()?)?;
            }
        }
        *table = GroupTable::new(&self.spec);
        account.holds(0);
        Ok(())
    }

    /// The groups of the next partition, put together.
    fn next_partition(&mut self) -> Result<Option<GroupTable>, RunError> {
        let Some(spill) = self.spill.as_ref().filter(|spill| self.partition < spill.partitions()) else {
            return Ok(None);
        };
        let mut table = GroupTable::new(&self.spec);
        for block in spill.blocks(self.partition) {
            let part = state::groups(&self.spec, &[spill.read(block)?])?;
            table.merge_partition(&part, 0, 1).map_err(|error| failed(&self.spec.node, error))?;
        }
        self.partition += 1;
        Ok(Some(table))
    }
}

impl Operator for Final {
    fn push(&mut self, _batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        Err(RunError::Plan(format!("`{}` was given rows instead of the first half of an aggregate", out.operator())))
    }

    fn merge(&mut self, partial: Arc<GroupTable>, _out: &mut Out<'_>) -> Result<usize, RunError> {
        match &mut self.table {
            Some(table) => {
                let merged = table.merge_partition(&partial, self.part, self.parts);
                let merged = merged.map_err(|error| failed(&self.spec.node, error))?;
                let bytes = self.account.as_ref().map_or(0, |_| table.memory_bytes());
                if self.account.as_mut().is_some_and(|account| account.holds(bytes)) {
                    self.put_away()?;
                }
                Ok(merged)
            }
            None => Ok(0),
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if self.spill.is_some() && self.table.is_some() {
            self.put_away()?;
            self.table = None;
        }
        while self.results.is_empty()
            && let Some(mut table) = self.next_partition()?
        {
            let results = table.finish(&self.spec, BATCH_ROWS);
            self.results.extend(results.map_err(|error| failed(&self.spec.node, error))?);
        }
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
        let on_disk = self.spill.as_ref().is_some_and(|spill| self.partition < spill.partitions());
        Ok(self.results.is_empty() && !on_disk)
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
