//! What a run did.

use std::path::PathBuf;
use std::time::Duration;

use dfc_connect::SinkSummary;

/// The numbers of a finished run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Rows read from all sources, rejected ones included.
    pub rows_in: u64,
    /// Bytes read from all sources, as stored.
    pub bytes_in: u64,
    /// What each sink wrote, in the plan's order.
    pub sinks: Vec<SinkReport>,
    /// Rows rejected.
    pub rejected: u64,
    /// Where the rejected rows are, if there were any and they were kept.
    pub rejects: Option<PathBuf>,
    /// Wall time of the run.
    pub elapsed: Duration,
    /// Each operator of each stage, in the plan's order.
    pub operators: Vec<OperatorSummary>,
}

impl Summary {
    /// Rows written by all sinks.
    pub fn rows_out(&self) -> u64 {
        self.sinks.iter().map(|sink| sink.written.rows).sum()
    }
}

/// What a sink wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkReport {
    /// The operator's name.
    pub node: String,
    /// What it says it wrote.
    pub written: SinkSummary,
}

/// An operator's counters over all its tasks. Times are since the run's start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatorSummary {
    /// Position of its stage in the plan.
    pub stage: usize,
    /// Its name.
    pub operator: String,
    /// Tasks that ran it.
    pub tasks: usize,
    /// Rows it was given.
    pub rows_in: u64,
    /// Rows it gave.
    pub rows_out: u64,
    /// Batches it was given.
    pub batches: u64,
    /// Working time, summed over its tasks.
    pub busy: Duration,
    /// When its first task opened it.
    pub opened: Option<Duration>,
    /// When it gave its first row.
    pub first_row: Option<Duration>,
    /// When its last task closed it.
    pub closed: Option<Duration>,
    /// What else there is to say of it.
    pub note: Option<String>,
}
