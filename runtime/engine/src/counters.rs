//! Counters and timeline of one task's operators: counted without sharing, handed over when the task closes (D17, D19).
//!
//! A task's time is always on exactly one operator's account: the one that was entered last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dfc_batch::RowError;

use crate::RunError;
use crate::barrier::Barriers;
use crate::budget::Budget;
use crate::observe::{Event, Moment, OperatorId};
use crate::run::JobCx;
use crate::summary::OperatorSummary;
use crate::task::StageCx;

struct Slot {
    operator: Arc<str>,
    rows_in: u64,
    rows_out: u64,
    batches: u64,
    busy: Duration,
    opened: Option<Duration>,
    first_row: Option<Duration>,
    note: Option<String>,
}

/// What a task's operators share: counters, and the way to report rejected rows. Slot 0 is the input, then come the operators, then
/// the outputs.
pub(crate) struct TaskCx {
    job: Arc<JobCx>,
    stage: usize,
    task: usize,
    slots: Vec<Slot>,
    current: usize,
    since: Instant,
    /// The last barrier that was passed.
    passed: u64,
}

impl TaskCx {
    pub(crate) fn new(job: Arc<JobCx>, stage: &StageCx, task: usize) -> TaskCx {
        let slot = |operator: &Arc<str>| Slot {
            operator: operator.clone(),
            rows_in: 0,
            rows_out: 0,
            batches: 0,
            busy: Duration::ZERO,
            opened: None,
            first_row: None,
            note: None,
        };
        let slots = stage.slots.iter().map(slot).collect();
        TaskCx { job, stage: stage.index, task, slots, current: 0, since: Instant::now(), passed: 0 }
    }

    /// Where tasks and checkpoints meet, if any are taken.
    pub(crate) fn barriers(&self) -> Option<Arc<Barriers>> {
        self.job.barriers.get().cloned()
    }

    /// What the run's state may take, if that is limited.
    pub(crate) fn budget(&self) -> Option<&Arc<Budget>> {
        self.job.budget.as_ref()
    }

    /// What is rejected from now on belongs to a later checkpoint.
    pub(crate) fn passed(&mut self, barrier: u64) {
        self.passed = barrier;
    }

    /// The task is being stepped.
    pub(crate) fn resume(&mut self) {
        self.since = Instant::now();
    }

    /// The step is over.
    pub(crate) fn pause(&mut self) {
        let current = self.current;
        self.enter(current);
    }

    /// From now on time is `slot`'s; gives the one before.
    pub(crate) fn enter(&mut self, slot: usize) -> usize {
        let now = Instant::now();
        self.slots[self.current].busy += now - self.since;
        self.since = now;
        std::mem::replace(&mut self.current, slot)
    }

    /// `slot` was given a batch.
    pub(crate) fn given(&mut self, slot: usize, rows: usize) {
        self.slots[slot].rows_in += rows as u64;
        self.slots[slot].batches += 1;
    }

    /// The source left out rows that don't pass the filters of the first operator, as if that had dropped them.
    pub(crate) fn left_out(&mut self, rows: u64) {
        if let [source, first, ..] = &mut self.slots[..] {
            source.rows_in += rows;
            source.rows_out += rows;
            first.rows_in += rows;
        }
    }

    /// Something that the run's summary says of `slot`'s operator; what the last task says counts.
    pub(crate) fn note(&mut self, slot: usize, text: String) {
        self.slots[slot].note = Some(text);
    }

    /// `slot` gave rows.
    pub(crate) fn gave(&mut self, slot: usize, rows: usize) {
        self.slots[slot].rows_out += rows as u64;
        if rows > 0 && self.slots[slot].first_row.is_none() {
            self.slots[slot].first_row = Some(self.job.started.elapsed());
            self.tell(slot, Moment::FirstRow);
        }
    }

    /// Hands rejected rows on, with the name of the operator that rejected them where that is missing.
    pub(crate) fn report(&self, errors: &mut Vec<RowError>, node: &str) -> Result<(), RunError> {
        if errors.is_empty() {
            return Ok(());
        }
        for error in errors.iter_mut().filter(|error| error.node.is_empty()) {
            node.clone_into(&mut error.node);
        }
        self.job.errors.report(errors, self.passed)
    }

    /// The name of `slot`'s operator.
    pub(crate) fn operator(&self, slot: usize) -> Arc<str> {
        self.slots[slot].operator.clone()
    }

    /// The first task of its stage begins.
    pub(crate) fn stage_started(&self, stage: &StageCx) {
        let at = self.job.started.elapsed();
        let event = Event::StageStarted { stage: stage.index, name: stage.name.clone(), tasks: stage.tasks, at };
        self.job.observer.event(&event);
    }

    /// The last task of its stage has ended.
    pub(crate) fn stage_finished(&self) {
        self.job.observer.event(&Event::StageFinished { stage: self.stage, at: self.job.started.elapsed() });
    }

    /// All operators are ready for rows.
    pub(crate) fn opened(&mut self) {
        for slot in 0..self.slots.len() {
            self.slots[slot].opened = Some(self.job.started.elapsed());
            self.tell(slot, Moment::Opened);
        }
    }

    /// All operators have given all their rows: the task's numbers go to the job's.
    pub(crate) fn closed(&mut self) {
        self.pause();
        for slot in 0..self.slots.len() {
            let &Slot { rows_in, rows_out, batches, busy, .. } = &self.slots[slot];
            self.tell(slot, Moment::Closed { rows_in, rows_out, batches, busy });
        }
        let closed = self.job.started.elapsed();
        let mut stats = self.job.stats.lock().unwrap_or_else(|e| e.into_inner());
        for (slot, sum) in self.slots.iter().zip(&mut stats[self.stage]) {
            add(sum, slot, closed);
        }
    }

    fn tell(&self, slot: usize, moment: Moment) {
        let operator = self.slots[slot].operator.clone();
        let id = OperatorId { job: self.job.job.clone(), operator, stage: self.stage, task: self.task };
        self.job.observer.event(&Event::Operator { id, moment, at: self.job.started.elapsed() });
    }
}

fn add(sum: &mut OperatorSummary, slot: &Slot, closed: Duration) {
    let earliest = |a: Option<Duration>, b: Option<Duration>| a.into_iter().chain(b).min();
    sum.tasks += 1;
    sum.rows_in += slot.rows_in;
    sum.rows_out += slot.rows_out;
    sum.batches += slot.batches;
    sum.busy += slot.busy;
    sum.opened = earliest(sum.opened, slot.opened);
    sum.first_row = earliest(sum.first_row, slot.first_row);
    if slot.note.is_some() {
        sum.note.clone_from(&slot.note);
    }
    sum.closed = sum.closed.max(Some(closed));
}
