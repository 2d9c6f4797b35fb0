//! How a run begins: whether it goes on from a checkpoint, and from which (D13, F3, A1).

use std::sync::Arc;

use dfc_checkpoint::{Error, Job, Kind, Manifest, Place, PlanPrint, StorageError};
use dfc_ir::StagePlan;
use dfc_ir::Value;
use dfc_ir::plan::{OptionValue, Rerun};
use dfc_ir::stage::StageInput;

use super::coordinator::{FINISHED, now_micros};
use super::load::Loaded;
use super::print::{changed_programs, differences, print};
use crate::RunError;

/// That and how a run takes checkpoints.
#[derive(Clone)]
pub struct Checkpointing {
    /// Where they are kept.
    pub place: Place,
    /// Somebody chose the place: without it there is no run. Otherwise a job whose checkpoints can't be kept runs without.
    pub chosen: bool,
    /// Where the run begins.
    pub start: Start,
    /// If the newest checkpoint is damaged an older one will do.
    pub allow_older: bool,
    /// Rows may be given to a target a second time (with [`Start::From`]).
    pub accept_duplicates: bool,
    /// The values given for the pipeline's parameters: a job goes on with those that it began with.
    pub parameters: Vec<(String, String)>,
}

impl std::fmt::Debug for Checkpointing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpointing")
            .field("chosen", &self.chosen)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

/// Where a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the newest checkpoint, if there is one whose job hasn't ended; else anew.
    Newest,
    /// Anew, whatever there is.
    Fresh,
    /// At this checkpoint.
    From(u64),
}

/// How a run begins.
pub(crate) struct Begun {
    pub(crate) job: Arc<Job>,
    pub(crate) lineage: String,
    /// Number of the manifest that says that the state begins; `None`: there is more than that.
    pub(crate) first: Option<u64>,
    /// It is still to be published, before anything is written.
    pub(crate) unfounded: bool,
    pub(crate) loaded: Option<Loaded>,
    pub(crate) print: PlanPrint,
    /// Programs that are other ones than those that took the checkpoint.
    pub(crate) changed: Vec<String>,
    /// The state of before that was given up: its newest checkpoint.
    pub(crate) given_up: Option<Manifest>,
    /// Rows may be given to a target a second time.
    pub(crate) accept_duplicates: bool,
}

/// Locks the job and decides. `None`: checkpoints can't be kept here and nobody asked for them; with the reason.
pub(crate) fn begin(how: &Checkpointing, plan: &StagePlan) -> Result<Result<Begun, String>, RunError> {
    let job = match Job::open(how.place.clone(), &plan.job.name, now_micros()) {
        Err(Error::Storage(StorageError::Location { place, why, .. })) if !how.chosen => {
            return Ok(Err(format!("nothing can be kept in `{place}`: {why}")));
        }
        job => Arc::new(job.map_err(RunError::Checkpoint)?),
    };
    let newest = match how.start {
        Start::From(number) => Some(job.read(number).map_err(RunError::Checkpoint)?),
        Start::Newest => job.newest(how.allow_older).map_err(RunError::Checkpoint)?,
        // What is damaged stands in nobody's way here.
        Start::Fresh => job.newest(true).unwrap_or_default(),
    };
    let print = print(plan, &how.parameters);
    let mut continues = false;
    let (going_on, given_up) = match newest {
        Some(manifest) if how.start == Start::Fresh => (None, Some(manifest)),
        Some(manifest) if has_finished(&job, &manifest)? => match plan.job.rerun.unwrap_or(default_rerun(plan)) {
            Rerun::Restart => (None, None),
            Rerun::Continue => {
                continues = true;
                (Some(next_run(manifest)), None)
            }
        },
        newest => (newest, None),
    };
    let Some(manifest) = going_on else {
        let (lineage, first) = job.begin_lineage();
        return Ok(Ok(Begun {
            job,
            lineage,
            first: Some(first),
            unfounded: true,
            loaded: None,
            print,
            changed: Vec::new(),
            given_up,
            accept_duplicates: false,
        }));
    };
    // The next night's run may have other values; a run that was cut off may not.
    let different = differences(&manifest.pipeline, &print, continues);
    if !different.is_empty() || !Loaded::fits(&manifest, plan) {
        return Err(RunError::Changed { number: manifest.number, differences: different });
    }
    let changed = changed_programs(&manifest.pipeline, &print);
    let lineage = manifest.lineage.clone();
    // A run that ended before its first checkpoint: nothing to go on from, but what it left is known by its lineage.
    let first = (manifest.kind == Kind::Start).then_some(manifest.number);
    let loaded = Some(Loaded::new(&job, manifest, continues)?);
    Ok(Ok(Begun {
        job,
        lineage,
        first,
        unfounded: false,
        loaded,
        print,
        changed,
        given_up: None,
        accept_duplicates: how.accept_duplicates,
    }))
}

impl Begun {
    /// Makes the beginning of a new state durable: from now on what the run leaves behind is recognised.
    pub(crate) fn found(&self, now_micros_of_job: i64) -> Result<(), RunError> {
        let (Some(number), true) = (self.first, self.unfounded) else { return Ok(()) };
        let manifest = Manifest {
            created_micros: now_micros(),
            now_micros: now_micros_of_job,
            ..Manifest::new(Kind::Start, number, self.lineage.clone(), self.print.clone())
        };
        self.job.publish(&manifest).map(drop).map_err(RunError::Checkpoint)
    }

    /// Forgets a state that has begun and come to nothing.
    pub(crate) fn forget(&self) {
        if let Some(number) = self.first {
            // What stays behind is a beginning without anything in it: the next run goes on from there, which is the same.
            let _ = self.job.remove(number);
            self.job.vanish();
        }
    }

    /// Whether there is a checkpoint to go on from.
    pub(crate) fn is_resumed(&self) -> bool {
        self.first.is_none()
    }
}

fn has_finished(job: &Job, manifest: &Manifest) -> Result<bool, RunError> {
    let applied = job.applied().map_err(RunError::Checkpoint)?;
    Ok(manifest.kind == Kind::Terminal && applied.of(&manifest.lineage, FINISHED) >= manifest.number)
}

/// The next run of a job that keeps its positions from run to run: nothing of the last one is in flight.
fn next_run(mut manifest: Manifest) -> Manifest {
    manifest.stages.clear();
    manifest.sinks.iter_mut().for_each(|sink| sink.sealed.clear());
    manifest.rejects = Default::default();
    manifest.counters = Default::default();
    manifest.sources.iter_mut().for_each(|source| (source.rows, source.bytes, source.ended) = (0, 0, false));
    manifest
}

/// Sources that know what is new keep their positions; plain files are read anew.
fn default_rerun(plan: &StagePlan) -> Rerun {
    let given = |value: Option<&OptionValue>| match value {
        None | Some(OptionValue::Absent | OptionValue::Value(Value::Bool(false) | Value::Null)) => false,
        Some(OptionValue::Names(names)) => !names.is_empty(),
        Some(_) => true,
    };
    let mut sources = plan.stages.iter().filter_map(|stage| match &stage.input {
        StageInput::Source { spec, .. } => Some(spec),
        StageInput::Exchange { .. } => None,
    });
    let continues = sources.any(|spec| {
        spec.connector == "kafka" || given(spec.options.get("increment")) || given(spec.options.get("follow"))
    });
    if continues { Rerun::Continue } else { Rerun::Restart }
}
