//! From a checkpoint to what the tasks of a new run begin with (D13). It may not know how the run is set up.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dfc_checkpoint::{Job, Manifest, OperatorState, Part, StoredPart};
use dfc_connect::{Positions, SinkResume};
use dfc_ir::StagePlan;
use dfc_trial::{Planted, planted};

use super::coordinator::STATE_SCHEMA;
use crate::RunError;
use crate::barrier::{Key, RESTORED, Stored};
use crate::state::{Kind, Parts, Restored};

/// Most bytes that a part of state may hold.
const LARGEST_PART: u64 = 2 << 30;

/// A checkpoint, loaded.
pub(crate) struct Loaded {
    /// The checkpoint.
    pub(crate) manifest: Manifest,
    /// The run that took it had ended: this one takes what is new since.
    pub(crate) continues: bool,
    /// Its parts by stage and operator's name.
    pub(crate) states: Vec<Vec<(String, Restored)>>,
    /// Number of the first copy of each part list, as [`crate::barrier::Key`]s count restored ones; by stage, in the order of `states`.
    pub(crate) copies: Vec<Vec<u64>>,
}

impl Loaded {
    /// Reads all state of a checkpoint whose stages are those of the plan, and looks at every byte of it. It isn't unpacked: that is left to
    /// the tasks, which do it all at once, while the sources read.
    ///
    /// # Errors
    /// When a part is damaged or missing.
    pub(crate) fn new(job: &Job, manifest: Manifest, continues: bool) -> Result<Loaded, RunError> {
        manifest.stages.iter().flat_map(|stage| &stage.operators).try_for_each(is_known)?;
        let mut parts = read(job, &manifest)?.into_iter();
        let mut states = Vec::new();
        let mut copies = Vec::new();
        let mut copy = RESTORED;
        for stage in &manifest.stages {
            let mut of_stage = Vec::new();
            let mut numbers = Vec::new();
            // Entries of one kind of one operator are numbered, so that tasks can share them.
            let mut positions: BTreeMap<(&str, &str), usize> = BTreeMap::new();
            for operator in &stage.operators {
                let position = positions.entry((&operator.node, &operator.kind)).or_default();
                // Room is made for no more than may well be there.
                let entries = operator.parts.iter().map(|part| part.rows.min(part.bytes.saturating_mul(8))).sum();
                let parts = Arc::new(Parts::new(parts.by_ref().take(operator.parts.len()), entries));
                let kind = Kind::by_name(&operator.kind).ok_or_else(|| unknown(operator))?;
                let alike = |other: &&OperatorState| (&other.node, &other.kind) == (&operator.node, &operator.kind);
                let tasks = stage.operators.iter().filter(alike).count();
                let tasks = (stage.tasks as usize == tasks).then_some(tasks);
                of_stage.push((operator.node.clone(), Restored { kind, position: *position, tasks, parts }));
                numbers.push(copy);
                *position += 1;
                copy += 1;
            }
            states.push(of_stage);
            copies.push(numbers);
        }
        Ok(Loaded { manifest, continues, states, copies })
    }

    /// Positions of a source: every split once.
    pub(crate) fn positions(&self, node: &str) -> Option<Positions> {
        let source = self.manifest.sources.iter().find(|source| source.node == node)?;
        let mut positions = source.positions.clone();
        let unread = positions.splits.iter().rposition(|split| !split.ended);
        if let Some(last) = unread.filter(|_| planted(Planted::SplitLost)) {
            positions.splits.remove(last);
        }
        if let Some(last) = unread.filter(|_| planted(Planted::SplitDealtTwice)) {
            positions.splits.push(positions.splits[last].clone());
        }
        Some(positions)
    }

    /// Where a sink goes on.
    pub(crate) fn sink(&self, node: &str) -> SinkResume {
        let sealed = self.manifest.sinks.iter().find(|sink| sink.node == node).map(|sink| sink.sealed.clone());
        SinkResume { number: self.manifest.number, sealed: sealed.unwrap_or_default() }
    }

    /// Whether a stage had ended.
    pub(crate) fn ended(&self, stage: usize) -> bool {
        self.manifest.stages.get(stage).is_some_and(|stage| stage.ended)
    }

    /// The parts as they are stored, by key; `slot` finds an operator's slot in a stage by its name.
    pub(crate) fn stored(&self, slot: impl Fn(usize, &str, Kind) -> Option<usize>) -> Stored {
        let mut stored = Stored::new();
        for (stage, state) in self.manifest.stages.iter().enumerate() {
            for (operator, &copy) in state.operators.iter().zip(&self.copies[stage]) {
                let Some(kind) = Kind::by_name(&operator.kind) else { continue };
                if let Some(slot) = slot(stage, &operator.node, kind) {
                    stored.insert(Key { stage, slot, kind, copy }, operator.parts.clone());
                }
            }
        }
        stored
    }

    /// Whether the checkpoint's stages can be those of this plan.
    pub(crate) fn fits(manifest: &Manifest, plan: &StagePlan) -> bool {
        manifest.stages.is_empty() || manifest.stages.len() == plan.stages.len()
    }
}

/// Whether this version reads an operator's state.
fn is_known(operator: &OperatorState) -> Result<(), RunError> {
    if Kind::by_name(&operator.kind).is_none() {
        return Err(unknown(operator));
    }
    if let Some(part) = operator.parts.iter().find(|part| part.schema != STATE_SCHEMA) {
        return Err(RunError::State(format!(
            "`{}` has state of form {}, and this version of dfc reads form {STATE_SCHEMA}: go on with the version that wrote it, or \
             start again with `--fresh`",
            operator.node, part.schema
        )));
    }
    Ok(())
}

fn unknown(operator: &OperatorState) -> RunError {
    RunError::State(format!(
        "`{}` has state of kind `{}`, which this version doesn't know",
        operator.node, operator.kind
    ))
}

/// Parts of so many bytes are read by several threads.
const MANY_BYTES: u64 = 8 << 20;

/// All parts of a checkpoint, in their order.
fn read(job: &Job, manifest: &Manifest) -> Result<Vec<StoredPart>, RunError> {
    let parts: Vec<&Part> = manifest.parts().collect();
    let one = |part: &Part| job.read_stored(part, LARGEST_PART).map_err(RunError::Checkpoint);
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let threads = match bytes >= MANY_BYTES {
        true => std::thread::available_parallelism().map_or(1, NonZero::get).min(parts.len()),
        false => 1,
    };
    if threads < 2 {
        return parts.into_iter().map(one).collect();
    }
    let next = AtomicUsize::new(0);
    let found: Vec<OnceLock<Result<StoredPart, RunError>>> = parts.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while let Some((part, found)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| parts.get(n).zip(found.get(n)))
        {
            // Set once: each number is drawn once.
            let _ = found.set(one(part));
        }
    };
    std::thread::scope(|scope| {
        // Without a thread to spare this one reads them all.
        let spare = (1..threads)
            .filter_map(|_| std::thread::Builder::new().name("dfc-read".into()).spawn_scoped(scope, work).ok());
        let spare: Vec<_> = spare.collect();
        work();
        drop(spare);
    });
    found.into_iter().zip(parts).map(|(found, part)| found.into_inner().unwrap_or_else(|| one(part))).collect()
}
