//! The operators inside stages, one file each. A batch is pushed into the first one; what it emits goes straight to the next.

mod aggregate;
mod distinct;
mod grace;
mod probe;
mod program;
mod runs;
mod sort;
mod take;

use std::sync::Arc;

use dfc_batch::{Batch, RowError};
use dfc_table::GroupTable;
use dfc_trial::turns;

use crate::RunError;
use crate::budget::{Account, Budget};
use crate::counters::TaskCx;
use crate::state::{Piece, Restored, Share};

pub(crate) use aggregate::{PreparedFinal, PreparedPartial};
pub(crate) use distinct::PreparedDistinct;
pub(crate) use grace::{keys_of, put};
pub(crate) use probe::PreparedProbe;
pub(crate) use program::PreparedRows;
pub(crate) use sort::PreparedSort;
pub(crate) use take::PreparedTake;

/// Rows of a batch that an operator makes itself.
pub(crate) fn batch_rows() -> usize {
    turns::batch_rows(32 * 1024)
}

/// An operator of one task.
pub(crate) trait Operator: Send {
    /// Takes a batch.
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError>;

    /// Takes the first half of an aggregate; gives how many of its groups are this task's.
    fn merge(&mut self, _table: Arc<GroupTable>, out: &mut Out<'_>) -> Result<usize, RunError> {
        Err(RunError::Plan(format!("`{}` can't take the first half of an aggregate", out.operator())))
    }

    /// The input has ended: gives what is held, as much as fits a batch. Called until it says true: everything was given.
    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError>;

    /// What it holds now, for a checkpoint; nothing where it holds nothing. `fresh`: nothing was saved before by this operator.
    fn save(&mut self, fresh: bool) -> Vec<Piece> {
        let _ = fresh;
        Vec::new()
    }

    /// Takes its share of what operators like it held at a checkpoint. Called before the first batch, once for each entry of the bag.
    fn restore(&mut self, state: &Restored, _share: Share) -> Result<(), RunError> {
        Err(RunError::State(format!("an operator without state was given `{}`", state.kind.name())))
    }

    /// It will emit nothing more, whatever is pushed.
    fn satisfied(&self) -> bool {
        false
    }
}

/// An operator of a stage, to be opened by each task.
pub(crate) enum PreparedOp {
    Program(PreparedRows),
    Partial(PreparedPartial),
    Final(PreparedFinal),
    Distinct(PreparedDistinct),
    Probe(Arc<PreparedProbe>),
    Sort(Arc<PreparedSort>),
    Take(PreparedTake),
}

impl PreparedOp {
    /// The operator for task `task`.
    pub(crate) fn open(&self, task: usize, budget: Option<&Arc<Budget>>) -> Result<Box<dyn Operator>, RunError> {
        let account = || budget.map(|budget| Account::new(budget.clone()));
        match self {
            PreparedOp::Program(op) => Ok(op.open()),
            PreparedOp::Partial(op) => Ok(op.open(account())),
            PreparedOp::Final(op) => Ok(op.open(task, account())),
            PreparedOp::Distinct(op) => op.open(account()),
            PreparedOp::Probe(op) => op.open(budget),
            PreparedOp::Sort(op) => op.open(account()),
            PreparedOp::Take(op) => Ok(op.open()),
        }
    }
}

/// What leaves a stage's last operator.
pub(crate) enum Made {
    /// Rows.
    Batch(Batch),
    /// The first half of an aggregate.
    Partial(Arc<GroupTable>),
}

impl Made {
    /// Rows, or groups.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Made::Batch(batch) => batch.rows,
            Made::Partial(table) => table.len(),
        }
    }
}

/// Where an operator's rows go: the operators after it.
pub(crate) struct Out<'a> {
    rest: &'a mut [Box<dyn Operator>],
    slot: usize,
    cx: &'a mut TaskCx,
    made: &'a mut Vec<Made>,
}

impl<'a> Out<'a> {
    /// `slot`: the one that emits.
    pub(crate) fn new(
        rest: &'a mut [Box<dyn Operator>],
        slot: usize,
        cx: &'a mut TaskCx,
        made: &'a mut Vec<Made>,
    ) -> Self {
        Out { rest, slot, cx, made }
    }

    /// Passes a batch on; an empty one ends here.
    pub(crate) fn emit(&mut self, batch: Batch) -> Result<(), RunError> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.cx.gave(self.slot, batch.rows);
        let Some((next, rest)) = self.rest.split_first_mut() else {
            self.made.push(Made::Batch(batch));
            return Ok(());
        };
        let slot = self.slot + 1;
        let before = self.cx.enter(slot);
        self.cx.given(slot, batch.rows);
        next.push(batch, &mut Out { rest, slot, cx: self.cx, made: self.made })?;
        self.cx.enter(before);
        Ok(())
    }

    /// Passes the first half of an aggregate on. A group counts as a row: as it is made, and in the task that takes it.
    pub(crate) fn emit_partial(&mut self, table: Arc<GroupTable>) -> Result<(), RunError> {
        let Some((next, rest)) = self.rest.split_first_mut() else {
            self.cx.gave(self.slot, table.len());
            self.made.push(Made::Partial(table));
            return Ok(());
        };
        let slot = self.slot + 1;
        let before = self.cx.enter(slot);
        let groups = next.merge(table, &mut Out { rest, slot, cx: self.cx, made: self.made })?;
        self.cx.enter(before);
        self.cx.given(self.slot, groups);
        self.cx.gave(self.slot, groups);
        self.cx.given(slot, groups);
        Ok(())
    }

    /// Hands rejected rows on.
    pub(crate) fn report(&mut self, errors: &mut Vec<RowError>) -> Result<(), RunError> {
        self.cx.report(errors, &self.cx.operator(self.slot))
    }

    /// Something that the run's summary says of the operator that emits.
    pub(crate) fn note(&mut self, text: String) {
        self.cx.note(self.slot, text);
    }

    /// The name of the operator that emits.
    pub(crate) fn operator(&self) -> Arc<str> {
        self.cx.operator(self.slot)
    }
}
