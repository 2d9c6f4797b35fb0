//! What a run is told beside its plan.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dfc_eval::Env;
use dfc_jit::Tier;

use crate::checkpoint::Checkpointing;

/// Settings of one run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Tasks of a stage at most. 0: the job's own setting, without one the number of `threads`.
    pub parallelism: usize,
    /// Worker threads. 0: as many as the machine has cores.
    pub threads: usize,
    /// Groups that the first half of an aggregate gathers before it hands them on. 0: as many as fit a processor's cache.
    pub groups_at_once: usize,
    /// Machine code or interpreter.
    pub tier: Tier,
    /// What expressions see beside their row: the fixed `now()`.
    pub env: Env,
    /// Read at most so many rows of each source.
    pub limit_rows: Option<u64>,
    /// Set by the caller to stop the run (Ctrl-C). Looked at between batches and by waiting connectors.
    pub cancelled: Arc<AtomicBool>,
    /// The job takes checkpoints, where its settings and its sources and sinks allow it. `None`: it doesn't.
    pub checkpoints: Option<Checkpointing>,
    /// Folder for the rejected rows. `None`: the job's `errors { to }` as it stands; without that they are counted, not kept.
    pub rejects_folder: Option<PathBuf>,
    /// Bytes of memory that the run may take, about; state that passes that goes to disk. `None`: as much as there is.
    pub memory: Option<u64>,
    /// Where state goes then: a folder, which is made where it is missing, and in which nothing stays.
    pub spill_folder: PathBuf,
}
