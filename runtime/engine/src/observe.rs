//! What can be watched while a job runs: events as they happen, counters to be polled (D17, D19).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dfc_connect::SourceCounters;
use dfc_jit::CompileReport;

/// Watches a run. Called from the worker threads, so it should be quick.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn event(&self, event: &Event);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: &Event) {}
}

/// Which operator of which task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorId {
    /// The job's name.
    pub job: Arc<str>,
    /// The operator's name.
    pub operator: Arc<str>,
    /// Position of its stage in the plan.
    pub stage: usize,
    /// Number of the task within its stage, from 0.
    pub task: usize,
}

/// A point in an operator's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It is ready for rows.
    Opened,
    /// It gave its first row.
    FirstRow,
    /// It has given all its rows.
    Closed {
        /// Rows it was given.
        rows_in: u64,
        /// Rows it gave.
        rows_out: u64,
        /// Batches it was given.
        batches: u64,
        /// Working time.
        busy: Duration,
    },
}

/// What happened. Times are since the run's start.
#[derive(Clone)]
pub enum Event {
    /// Sources and sinks are open; the counters can be polled from now on.
    Started {
        /// The job's name.
        job: Arc<str>,
        /// The counters.
        progress: Arc<Progress>,
        /// Checkpoints are taken.
        checkpoints: bool,
    },
    /// A program of a stage was compiled, or is going to be interpreted.
    Compiled {
        /// Position of the stage in the plan.
        stage: usize,
        /// What became of it.
        report: CompileReport,
    },
    /// A stage's inputs are complete and its tasks begin.
    StageStarted {
        /// Position of the stage in the plan.
        stage: usize,
        /// Its name.
        name: Arc<str>,
        /// Number of its tasks.
        tasks: usize,
        /// When.
        at: Duration,
    },
    /// All tasks of a stage are done.
    StageFinished {
        /// Position of the stage in the plan.
        stage: usize,
        /// When.
        at: Duration,
    },
    /// The job goes on from a checkpoint.
    Resumed {
        /// Its number.
        number: u64,
        /// When it was taken, in microseconds since 1970.
        taken_micros: i64,
        /// For each source its name and where it goes on; `false`: everything before is read again and thrown away.
        sources: Vec<(String, String, bool)>,
        /// Programs that are others than those that took the checkpoint.
        changed: Vec<String>,
    },
    /// The job begins anew, as it was asked to, though there is something to go on from.
    BegunAnew {
        /// The newest checkpoint of before.
        number: u64,
        /// Rows that were written up to it.
        rows: u64,
    },
    /// The job takes no checkpoints, though its settings say so, because of this.
    WithoutCheckpoints {
        /// Why.
        why: String,
    },
    /// A checkpoint was taken.
    Checkpoint {
        /// Its number.
        number: u64,
        /// From its barrier to its manifest.
        duration: Duration,
    },
    /// A checkpoint was given up.
    CheckpointAbandoned {
        /// Its number.
        number: u64,
        /// Why.
        why: String,
    },
    /// Less than a tenth is left of what the checkpoints may take.
    QuotaNearlyUsed {
        /// Bytes taken.
        used: u64,
        /// Bytes that may be.
        quota: u64,
    },
    /// A point in the life of an operator in one task.
    Operator {
        /// Which.
        id: OperatorId,
        /// What.
        moment: Moment,
        /// When.
        at: Duration,
    },
}

/// Counters of a running job, readable at any time.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) sources: Mutex<Vec<Arc<SourceCounters>>>,
    pub(crate) total_bytes: Mutex<Option<u64>>,
    pub(crate) rows_out: AtomicU64,
    pub(crate) rejected: AtomicU64,
}

impl Progress {
    /// Bytes read so far, as stored.
    pub fn bytes_in(&self) -> u64 {
        self.sum(|source| &source.bytes)
    }

    /// Rows read so far, rejected ones included.
    pub fn rows_in(&self) -> u64 {
        self.sum(|source| &source.rows)
    }

    /// Bytes to be read in all, if every source knows.
    pub fn total_bytes(&self) -> Option<u64> {
        *self.total_bytes.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Rows written by all sinks so far.
    pub fn rows_out(&self) -> u64 {
        self.rows_out.load(Ordering::Relaxed)
    }

    /// Rows rejected so far.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    fn sum(&self, counter: impl Fn(&SourceCounters) -> &AtomicU64) -> u64 {
        let sources = self.sources.lock().unwrap_or_else(|e| e.into_inner());
        sources.iter().map(|source| counter(source).load(Ordering::Relaxed)).sum()
    }
}
