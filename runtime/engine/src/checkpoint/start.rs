//! How a run begins: whether it goes on from a checkpoint, and from which (D13, F3, A1).

use std::sync::Arc;

use dfc_checkpoint::{Checkpoints, Error, Job, Kind, Manifest, Place, PlanPrint, StorageError};
use dfc_ir::StagePlan;
use dfc_ir::plan::Rerun;

use super::coordinator::now_micros;
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
    /// There are later checkpoints than the one that was loaded: the next run must not go on from those.
    pub(crate) goes_back: bool,
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
        Some(manifest) if matches!(how.start, Start::From(_)) && ends_for_good(&job, &manifest, plan)? => {
            return Err(RunError::Checkpoint(Error::Ended { number: manifest.number }));
        }
        Some(manifest) if job.has_finished(&manifest).map_err(RunError::Checkpoint)? => {
            match plan.job.rerun.unwrap_or(Rerun::Restart) {
                Rerun::Restart => (None, None),
                Rerun::Continue => {
                    continues = true;
                    (Some(next_run(manifest)), None)
                }
            }
        }
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
            goes_back: false,
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
    let asked = how.allow_older || matches!(how.start, Start::From(_));
    let later = || job.manifests().map(|all| all.iter().any(|(number, _)| *number > manifest.number));
    let goes_back = asked && later().map_err(RunError::Checkpoint)?;
    let loaded = Some(Loaded::new(&job, manifest.clone(), continues).map_err(|error| match (error, how.start) {
        (RunError::Checkpoint(Error::Damaged { damaged, .. }), Start::Newest) => {
            RunError::Checkpoint(Error::Damaged { damaged, older: job.instead_of(&manifest) })
        }
        (error, _) => error,
    })?);
    // Before anything is removed that a run before this one, which may only have been stopped, could still name.
    job.fence().map_err(RunError::Checkpoint)?;
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
        goes_back,
    }))
}

/// Locks the job for a trial run, which reads some rows and takes no checkpoints; `None`: nothing is kept of it, so there is nothing to lock.
///
/// # Errors
/// It is running; or it has something to go on from, and the trial's rows would come between.
pub(crate) fn begin_trial(how: &Checkpointing, plan: &StagePlan) -> Result<Option<Job>, RunError> {
    let job = match Job::open(how.place.clone(), &plan.job.name, now_micros()) {
        Err(Error::Storage(StorageError::Location { .. })) if !how.chosen => return Ok(None),
        job => job.map_err(RunError::Checkpoint)?,
    };
    match job.newest(true).map_err(RunError::Checkpoint)? {
        Some(manifest) if !ends_for_good(&job, &manifest, plan)? => Err(RunError::Trial { number: manifest.number }),
        _ => Ok(Some(job)),
    }
}

impl Begun {
    /// Where the job goes back on purpose: makes its checkpoint the newest one, so that whatever becomes of this run, the next one goes on
    /// here and not where the targets have been taken back from. To be called when it is known that the targets can go on from it.
    pub(crate) fn go_back(&self) -> Result<(), RunError> {
        let (Some(loaded), true) = (&self.loaded, self.goes_back && self.is_resumed()) else { return Ok(()) };
        if loaded.continues {
            // The end of the run before is no place in the middle of one.
            return Ok(());
        }
        let again = Manifest {
            number: self.job.next_number(),
            kind: Kind::Regular,
            savepoint_note: None,
            ..loaded.manifest.clone()
        };
        self.job.publish(&again).map(drop).map_err(RunError::Checkpoint)
    }

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

/// The checkpoint from which the next run goes on, by what lies there; `None`: there is none.
pub(crate) fn goes_on_from(how: &Checkpointing, plan: &StagePlan) -> Option<u64> {
    let at = Checkpoints::new(how.place.clone(), &plan.job.name);
    let newest = at.newest(false).ok().flatten().filter(|newest| newest.kind != Kind::Start)?;
    (how.start != Start::Fresh && !at.has_finished(&newest).ok()?).then_some(newest.number)
}

/// Whether a job has come to its end with this checkpoint, and a later run doesn't go on from it.
fn ends_for_good(job: &Job, manifest: &Manifest, plan: &StagePlan) -> Result<bool, RunError> {
    let finished = job.has_finished(manifest).map_err(RunError::Checkpoint)?;
    Ok(finished && plan.job.rerun.unwrap_or(Rerun::Restart) == Rerun::Restart)
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
