//! What a connector and a checkpoint say to one another (D11–D13, F1, F2): positions of sources, epochs of sinks.
//!
//! A *barrier* with a number divides a job's rows: what was read before barrier n belongs to checkpoint n, all else to later ones. An
//! *epoch* of a sink is what it was given between two barriers. It may not know who takes checkpoints, or where they are kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dfc_batch::Batch;
pub use dfc_epoch::{Positions, Sealed, SplitPosition, SpoolFile};

/// What a reader has.
pub enum Next {
    /// Rows.
    Batch(Batch),
    /// Everything that belongs to this barrier was given by this reader before; what it gives from now on doesn't. Comes once for each
    /// [`crate::Source::mark`] and reader, unless the reader has ended before.
    Barrier(u64),
    /// Nothing yet. The engine asks again after this time, or when [`Wake`] was called.
    Wait(Duration),
    /// Nothing, ever.
    End,
}

/// Tells the engine that a reader that answered [`Next::Wait`] has something. Cheap; may be called from any thread, too often too.
#[derive(Clone)]
pub struct Wake(Arc<dyn Fn() + Send + Sync>);

impl Wake {
    /// Calls this.
    pub fn new(call: impl Fn() + Send + Sync + 'static) -> Wake {
        Wake(Arc::new(call))
    }

    /// There is something.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl Default for Wake {
    fn default() -> Self {
        Wake::new(|| {})
    }
}

/// What a sink is told when the job takes checkpoints.
#[derive(Debug, Clone)]
pub struct SinkEpochs {
    /// The identity of the job's state (32 hexadecimal digits): names of temporary files and the ledger's entry carry it, so that
    /// residue of this job, and only of this job, is recognised (D14).
    pub lineage: String,
    /// A local folder of this sink alone for its spool; it exists. What is in it and not named by `resume` may be removed.
    pub spool: PathBuf,
    /// Where the job goes on. `None`: it starts.
    pub resume: Option<SinkResume>,
}

/// Where a sink goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkResume {
    /// The newest whole checkpoint: rows sealed under later numbers, and unsealed ones, are residue.
    pub number: u64,
    /// Every sealed epoch that the checkpoint still names, ascending: those that may be unapplied, and, for targets that become visible
    /// only at the end, all.
    pub sealed: Vec<Sealed>,
}

/// What a target itself records about this job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ledger {
    /// It has an entry: applied up to this number (0: none yet).
    Applied(u64),
    /// It has no entry, though it is a target that keeps them: nothing was applied, or somebody removed it.
    Missing,
    /// It keeps none: applying an epoch again gives the same rows.
    Idempotent,
    /// It can neither remember nor repeat (standard output).
    Forgetful,
}

/// What a sink has removed when it was opened: what runs of the same lineage had written since the checkpoint (D12, D14).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Residue {
    /// Files that were removed, or cut back.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl Residue {
    /// One more file.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}
