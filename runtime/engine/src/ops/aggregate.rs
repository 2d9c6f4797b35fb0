//! Aggregates in two halves: each task groups what it sees, then each reader merges its share of the keys from all of them.
//!
//! A first half whose table outgrows the processor's cache hands its groups on and begins anew, as long as most of them are groups that
//! haven't come before: looking up a row's group costs little then, and no group is held twice for long. Where the same groups come again
//! and again it keeps them.

use std::collections::VecDeque;
use std::sync::Arc;

use dfc_batch::{Batch, RowError};
use dfc_eval::EvalError;
use dfc_ir::stage::AggregateSpec;
use dfc_jit::PreparedAggregate;
use dfc_table::{DamagedState, Estimate, GroupTable, Rebuilding, ShareError};

use super::{Operator, Out, batch_rows};
use crate::budget::Account;
use crate::spill::{PARTITIONS, Spill};
use crate::state::{self, Change, Kind, Piece, Restored, Saved, Share, Unpacked};
use crate::{RunError, RunOptions};

/// The first half, with the program before it fused in.
pub(crate) struct PreparedPartial {
    aggregate: Arc<dyn PreparedAggregate>,
    spec: Arc<AggregateSpec>,
    /// Groups that are handed on at once.
    at_once: usize,
}

/// Groups whose table, of which a lookup reads anything, fits the second-level cache of most processors beside the rows that are read.
const AT_ONCE: usize = 1 << 13;

impl PreparedPartial {
    pub(crate) fn new(aggregate: Arc<dyn PreparedAggregate>, spec: &AggregateSpec, options: &RunOptions) -> Self {
        let at_once = if options.groups_at_once == 0 { AT_ONCE } else { options.groups_at_once };
        PreparedPartial { aggregate, spec: Arc::new(spec.clone()), at_once }
    }

    pub(crate) fn open(&self, account: Option<Account>) -> Box<dyn Operator> {
        Box::new(Partial {
            account: account.filter(|_| !self.spec.keys.is_empty()),
            table: Some(self.aggregate.table()),
            aggregate: self.aggregate.clone(),
            spec: self.spec.clone(),
            handed: (!self.spec.keys.is_empty()).then(|| HandedOn {
                at_once: self.at_once,
                groups: 0,
                seen: Estimate::new(),
            }),
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

/// Groups that a first half has handed on.
struct HandedOn {
    at_once: usize,
    groups: u64,
    /// The different ones among them.
    seen: Estimate,
}

impl HandedOn {
    /// Whether the groups of this table are to be handed on. Whoever says so does it.
    fn worth(&mut self, table: &GroupTable) -> bool {
        table.see_keys(&mut self.seen);
        self.groups += table.len() as u64;
        // At least three in four were new.
        self.seen.count() * 4 >= self.groups * 3
    }
}

struct Partial {
    /// What was handed on; `None`: nothing is until the end.
    handed: Option<HandedOn>,
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
        let Some(table) = &mut self.table else { return Ok(()) };
        let mut full = false;
        if let Some(handed) = self.handed.as_mut().filter(|handed| table.len() >= handed.at_once) {
            full = handed.worth(table);
            if !full {
                self.handed = None;
            }
        }
        // Too many groups: they go to the second half, which can put them on disk.
        full |= self.account.as_mut().is_some_and(|account| account.holds(table.memory_bytes()));
        if full {
            if let Some(account) = &mut self.account {
                account.holds(0);
            }
            self.parts = 0;
            let mut next = self.aggregate.table();
            // As many again, without growing to it.
            next.reserve(table.len());
            let full = std::mem::replace(table, next);
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
        let table = self.table.get_or_insert_with(|| self.aggregate.table());
        take_table(table, &self.spec, state)
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
            giving: None,
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
    /// Until all its groups were given.
    table: Option<GroupTable>,
    /// Once the input has ended: how many of the table's groups were given.
    giving: Option<usize>,
    /// Where its groups are counted, if that matters.
    account: Option<Account>,
    /// Groups on disk, by the hash of their keys, and the partition that is to be given next.
    spill: Option<Spill>,
    partition: usize,
    /// Parts that the table was saved in since it was last saved whole.
    saved_parts: usize,
    /// What a checkpoint found finished.
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

    /// The next groups' results, from this group of the table on.
    fn next_results(&mut self, mut first: usize) -> Result<Option<Batch>, RunError> {
        loop {
            if let Some(table) = self.table.as_ref().filter(|table| first < table.len()) {
                let rows = batch_rows().min(table.len() - first);
                self.giving = Some(first + rows);
                let results = table.results(&self.spec, first..first + rows);
                return results.map(Some).map_err(|error| failed(&self.spec.node, error));
            }
            self.table = self.next_partition()?;
            if self.table.is_none() {
                return Ok(None);
            }
            first = 0;
        }
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
        if self.giving.is_none() && self.spill.is_some() {
            self.put_away()?;
            self.table = None;
        }
        // Of what a checkpoint found finished, and of the groups: an aggregate without keys has one row, wherever it was.
        if self.spec.keys.is_empty() && !self.results.is_empty() {
            self.table = None;
        }
        let given = self.table.as_ref().map_or(0, GroupTable::first);
        let first = *self.giving.get_or_insert(given);
        let batch = match self.results.pop_front() {
            Some(batch) => Some(batch),
            None => self.next_results(first)?,
        };
        match batch {
            Some(batch) => {
                out.emit(Batch { seq: self.given, ..batch })?;
                self.given += 1;
                // With the last row it has ended: a checkpoint between the two would find nothing, and give a row without keys again.
                let left = self.table.as_ref().is_some_and(|table| self.giving.unwrap_or(0) < table.len());
                let on_disk = self.spill.as_ref().is_some_and(|spill| self.partition < spill.partitions());
                Ok(self.results.is_empty() && !left && !on_disk)
            }
            None => Ok(true),
        }
    }

    fn save(&mut self, fresh: bool) -> Vec<Piece> {
        if let (Some(first), Some(table)) = (self.giving, &mut self.table) {
            table.forget_before(first);
        }
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
            // What each task had is its own again, as the same hashes are.
            (Kind::Groups, Some(table)) if state.tasks == Some(share.parts) => match share.takes(state.position) {
                true => take_table(table, &self.spec, state),
                false => Ok(()),
            },
            (Kind::Groups, Some(table)) => take_groups(table, &self.spec, &state.parts.all_for(share)?, share),
            (Kind::Results, _) if share.takes(state.position) => {
                for part in state.parts.all()? {
                    self.results.extend(state::rows(&part, Some(self.spec.output.len()))?.batches);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Takes a stored table, which is this task's alone, into a table.
fn take_table(table: &mut GroupTable, spec: &AggregateSpec, state: &Restored) -> Result<(), RunError> {
    let damaged = |why: DamagedState| RunError::State(why.to_string());
    let mut stored = Rebuilding::new(spec, usize::try_from(state.parts.entries()).unwrap_or(0));
    state.parts.consume(|part| stored.take(part).map_err(damaged))?;
    let stored = stored.finish().map_err(damaged)?;
    if table.is_empty() && stored.first() == 0 {
        *table = stored;
        return Ok(());
    }
    table.merge_partition(&stored, 0, 1).map_err(|error| failed(&spec.node, error))?;
    if spec.keys.is_empty() {
        // It is there from the start, so that it was given on has to be known.
        table.forget_before(stored.first());
    }
    Ok(())
}

/// Takes a task's share of stored groups into a table.
fn take_groups(table: &mut GroupTable, spec: &AggregateSpec, parts: &[Unpacked], share: Share) -> Result<(), RunError> {
    table.take_share(spec, parts, share.part, share.parts).map_err(|error| match error {
        ShareError::Damaged(why) => RunError::State(why.to_string()),
        ShareError::Value(error) => failed(&spec.node, error),
    })
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
