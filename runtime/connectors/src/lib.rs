//! Connectors: how rows get in and out. One folder a system, all behind the traits of this file.
//!
//! A connector may not know what happens between source and sink, nor in how many tasks it runs.

mod barriers;
mod chunks;
mod csv;
mod database;
mod discard;
mod epoch;
mod files;
mod filter;
mod generate;
mod infer;
mod jsonl;
mod locate;
mod options;
mod parquet;
mod postgres;
mod print;
pub mod registry;
mod rows;
mod schema;
pub mod scratch;
mod sqlite;
#[cfg(test)]
mod testing;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

pub use epoch::{Ledger, Next, Positions, Residue, Sealed, SinkEpochs, SinkResume, SplitPosition, SpoolFile, Wake};

pub use filter::{Bounds, Condition, Possible, RowFilter};

use dfc_batch::{Batch, RowError};
use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};

pub use files::passing;
pub use schema::{Reach, added_columns, find_schema, schema_reach};

/// A failure outside the rows: a file that can't be opened, a header that doesn't fit, a full disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    /// `R02xx`.
    pub code: &'static str,
    /// What failed, with the file or table: "can't read `data/a.csv`: permission denied".
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl ConnectError {
    /// An error without help.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        ConnectError { code, message: message.into(), help: None }
    }

    /// With what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConnectError {}

/// What a connector is told when it opens.
#[derive(Clone, Default)]
pub struct OpenContext {
    /// The operator's name, for messages.
    pub node: String,
    /// The job's name: a target's ledger carries it.
    pub job: String,
    /// The state of earlier runs was given up on purpose (`--fresh`): what a target remembers of them is forgotten.
    pub fresh: bool,
    /// Number of tasks that will read or encode at most.
    pub tasks: usize,
    /// Set when the job is cancelled: long waits look at it.
    pub cancelled: Arc<AtomicBool>,
    /// At most so many rows are wanted from the source (`--limit-rows`), over all tasks.
    pub limit_rows: Option<u64>,
    /// Sources: go on from here instead of the start.
    pub positions: Option<Positions>,
    /// Sources: the run that the positions are from has ended, and what came since is to be read (A1). Otherwise what a bounded source
    /// reads is what that run had found.
    pub continues: bool,
    /// Sources: rows that don't pass aren't wanted. A source that can tell so early needn't read the rest of such a row; others don't look.
    pub filter: Option<RowFilter>,
    /// Sources: called when a reader that waits has something.
    pub wake: Wake,
    /// Sinks: the job takes checkpoints, so rows are spooled, sealed and applied. `None`: they are written and become visible with
    /// [`Sink::finish`].
    pub epochs: Option<SinkEpochs>,
}

/// Counters of a source, for progress and the summary. Updated by the readers, read by anyone.
#[derive(Debug, Default)]
pub struct SourceCounters {
    /// Bytes taken from outside (as stored: compressed bytes for compressed files).
    pub bytes: AtomicU64,
    /// Rows read, rejected ones included.
    pub rows: AtomicU64,
}

/// An opened source: what is to be read is known, the outside schema has been compared with the declared one.
pub trait Source: Send + Sync {
    /// A reader for one task. The readers of one source share its work: together they give every row once.
    ///
    /// # Errors
    /// When nothing can be read at all.
    fn reader(&self, task: usize) -> Result<Box<dyn Reader>, ConnectError>;

    /// Bytes to read in all, where that is known before.
    fn total_bytes(&self) -> Option<u64>;

    /// The most tasks that have something to do at once.
    fn max_tasks(&self) -> usize;

    /// Its counters.
    fn counters(&self) -> Arc<SourceCounters>;

    /// What it hasn't read, since no row there can pass [`OpenContext::filter`]: as the end of a sentence ("3 of 7 row groups").
    fn skipped(&self) -> Option<String> {
        None
    }

    /// Whether the batches' numbers are the source's order. Otherwise readers work on splits of their own, side by side.
    fn ordered(&self) -> bool {
        true
    }

    /// Whether it can say how far it was read, and go on from there. `Err`: why not, as the end of a sentence ("the standard input can be
    /// read only once").
    fn resumable(&self) -> Result<(), String> {
        Err("it can't go on in the middle".into())
    }

    /// Barrier `number` is wanted, larger than all before: every reader answers it with [`Next::Barrier`] as soon as it can. Must not wait.
    fn mark(&self, number: u64) {
        let _ = number;
    }

    /// How far it had been read at barrier `number`. Asked once, after every reader has answered the barrier or ended.
    ///
    /// # Errors
    /// When that isn't known.
    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        Err(ConnectError::new("R0499", format!("a source without positions was asked for those at barrier {number}")))
    }
}

/// Reads a share of a source.
pub trait Reader: Send {
    /// The next batch of the projected columns, a barrier, or the end. Rows that don't fit are pushed to `errors` (`node` left empty)
    /// and left out. `Batch::seq` runs over the whole source from 0 without gaps, in the source's order, whatever reader a batch comes
    /// from: a chunk whose rows were all rejected, or an empty one, still gives an (empty) batch.
    ///
    /// # Errors
    /// When the source can't be read further.
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError>;

    /// Rows that it has left out since this was last asked, because they didn't pass [`OpenContext::filter`].
    fn left_out(&mut self) -> u64 {
        0
    }
}

/// What a sink has written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SinkSummary {
    /// Where the result is, as the user would name it; `None` for `discard`.
    pub target: Option<String>,
    /// Rows written.
    pub rows: u64,
    /// Bytes written (compressed ones count as stored).
    pub bytes: u64,
}

/// Rows in a sink's own form.
pub enum Encoded {
    /// Finished bytes.
    Bytes(Vec<u8>),
    /// Rows still to be encoded by `write` (for formats that can't be encoded in pieces).
    Rows(Batch),
    /// Pieces that belong to different places in the target, each with its own: `day=2026-01-31`.
    Parts(Vec<(String, Encoded)>),
}

/// An opened sink. Encoding runs in the tasks, in parallel; writing is one at a time, in order where there is one.
pub trait Sink: Send + Sync {
    /// An encoder for one task.
    ///
    /// # Errors
    /// When the target's form can't be made.
    fn encoder(&self, task: usize) -> Result<Box<dyn Encoder>, ConnectError>;

    /// Writes. The engine calls it from one task at a time, in the order of sequence numbers where the stage is ordered.
    ///
    /// # Errors
    /// When the target can't be written.
    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError>;

    /// Makes the result visible under its final name: the last thing that happens, and atomic. With checkpoints it is called after the last
    /// epoch was applied, and again if the process died in between.
    ///
    /// # Errors
    /// When that can't be done; then nothing has changed under the final name.
    fn finish(&self) -> Result<SinkSummary, ConnectError>;

    /// Removes everything that was written. Called when the job failed or was cancelled before `finish`; with checkpoints only when their
    /// lineage is given up.
    fn abort(&self);

    /// Whether it can spool, seal and apply epochs. `Err`: why not, as the end of a sentence ("rows on the standard output can't be taken
    /// back").
    fn epochs(&self) -> Result<(), String> {
        Err("it can't take rows back".into())
    }

    /// Whether its rows become visible only with [`Sink::finish`]: then every epoch is needed until then; otherwise until it was applied.
    fn visible_at_end(&self) -> bool {
        false
    }

    /// What it has removed when it was opened.
    fn residue(&self) -> Residue {
        Residue::default()
    }

    /// Bytes in the open epoch.
    fn open_bytes(&self) -> u64 {
        0
    }

    /// From so many bytes of the open epoch on it is worth a checkpoint before its time, if the target has nothing else to do: rows are then
    /// loaded while further ones are read. `None`: applying costs the same however many rows there are.
    fn worth_applying(&self) -> Option<u64> {
        None
    }

    /// Closes the open epoch and makes it durable. Called when all its rows were written and none after them.
    ///
    /// # Errors
    /// When it can't be made durable; its rows then belong to the next epoch.
    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        Err(ConnectError::new("R0499", format!("a sink without epochs was asked to seal {number}")))
    }

    /// Makes an epoch visible that is part of a whole checkpoint, for targets where epochs become visible one by one; for others it does
    /// nothing. Called in the order of the numbers, from one thread at a time, beside [`Sink::write`]. Can be repeated: after an error, and
    /// after a crash in another process.
    ///
    /// # Errors
    /// When that can't be done now (`R02xx`), or never (a broken constraint: `R06xx`).
    fn apply(&self, sealed: &Sealed) -> Result<(), ConnectError> {
        Err(ConnectError::new("R0499", format!("a sink without epochs was asked to apply {}", sealed.number)))
    }

    /// What the target itself knows about this job's lineage.
    ///
    /// # Errors
    /// When it can't be asked.
    fn ledger(&self) -> Result<Ledger, ConnectError> {
        Ok(Ledger::Forgetful)
    }
}

/// Turns batches into a sink's own form.
pub trait Encoder: Send {
    /// Encodes a batch. Rows that can't be written are pushed to `errors` (`node` left empty) and left out.
    ///
    /// # Errors
    /// When the target's form can't be made.
    fn encode(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError>;
}

/// Opens a source by its connector's name.
///
/// # Errors
/// Unknown connector, or what the connector says.
pub fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    registry::open_source(spec, cx)
}

/// Opens a sink by its connector's name. Nothing is visible under the final name before [`Sink::finish`].
///
/// # Errors
/// Unknown connector, or what the connector says (`mode: fail` and the target exists, …).
pub fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    registry::open_sink(spec, schema, cx)
}

/// Hidden files beside a sink's file that jobs with checkpoints have not finished, each with the first digits of the lineage whose it is.
pub fn unfinished_beside(spec: &SinkSpec) -> Vec<(String, std::path::PathBuf)> {
    let path = spec.options.get("path").and_then(dfc_ir::plan::OptionValue::text);
    let file = path.filter(|path| *path != "-" && !path.ends_with('/'));
    // What can't be looked at is said when it is to be written.
    file.map(|path| files::unfinished_beside(std::path::Path::new(path)).unwrap_or_default()).unwrap_or_default()
}

/// Whether a sink can spool, seal and apply epochs, as far as that is known before it is opened: what can only be written as the rows come
/// mustn't be opened twice. `Err`: why not, as the end of a sentence.
///
/// # Errors
/// As said.
pub fn takes_epochs(spec: &SinkSpec) -> Result<(), String> {
    if spec.connector == "print" {
        return Err("what has been shown can't be taken back".into());
    }
    match spec.options.get("path").and_then(dfc_ir::plan::OptionValue::text) {
        Some("-") => Err("what has gone to the standard output can't be taken back".into()),
        Some(path) => match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(format!("`{path}` is a pipe or a device")),
            _ => Ok(()),
        },
        None => Ok(()),
    }
}
