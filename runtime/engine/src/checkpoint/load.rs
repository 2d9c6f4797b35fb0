//! From a checkpoint to what the tasks of a new run begin with (D13). It may not know how the run is set up.

use std::collections::BTreeMap;

use dfc_checkpoint::{Job, Manifest, OperatorState};
use dfc_connect::{Positions, SinkResume};
use dfc_ir::StagePlan;

use super::coordinator::STATE_SCHEMA;
use crate::RunError;
use crate::barrier::{Key, RESTORED, Stored};
use crate::state::{Kind, Restored};

/// Most bytes that a part of state may hold.
const LARGEST_PART: u64 = 2 << 30;

/// A checkpoint, loaded.
pub(crate) struct Loaded {
    /// The checkpoint.
    pub(crate) manifest: Manifest,
    /// The run that took it had ended: this one takes what is new since.
    pub(crate) continues: bool,
    /// Its parts' bytes by stage and operator's name.
    pub(crate) states: Vec<Vec<(String, Restored)>>,
    /// Number of the first copy of each part list, as [`crate::barrier::Key`]s count restored ones; by stage, in the order of `states`.
    pub(crate) copies: Vec<Vec<u64>>,
}

impl Loaded {
    /// Reads all state of a checkpoint whose stages are those of the plan.
    ///
    /// # Errors
    /// When a part is damaged or missing.
    pub(crate) fn new(job: &Job, manifest: Manifest, continues: bool) -> Result<Loaded, RunError> {
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
                of_stage.push((operator.node.clone(), read(job, operator, *position)?));
                numbers.push(copy);
                *position += 1;
                copy += 1;
            }
            states.push(of_stage);
            copies.push(numbers);
        }
        Ok(Loaded { manifest, continues, states, copies })
    }

    /// Positions of a source.
    pub(crate) fn positions(&self, node: &str) -> Option<&Positions> {
        self.manifest.sources.iter().find(|source| source.node == node).map(|source| &source.positions)
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

fn read(job: &Job, operator: &OperatorState, position: usize) -> Result<Restored, RunError> {
    let kind = Kind::by_name(&operator.kind).ok_or_else(|| {
        RunError::State(format!(
            "`{}` has state of kind `{}`, which this version doesn't know",
            operator.node, operator.kind
        ))
    })?;
    if let Some(part) = operator.parts.iter().find(|part| part.schema != STATE_SCHEMA) {
        return Err(RunError::State(format!(
            "`{}` has state of form {}, and this version of dfc reads form {STATE_SCHEMA}: go on with the version that wrote it, or \
             start again with `--fresh`",
            operator.node, part.schema
        )));
    }
    let parts = operator.parts.iter().map(|part| job.read_part(part, LARGEST_PART).map_err(RunError::Checkpoint));
    Ok(Restored { kind, position, parts: parts.collect::<Result<_, _>>()? })
}
