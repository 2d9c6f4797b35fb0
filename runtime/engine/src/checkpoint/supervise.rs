//! A run with checkpoints, from its first barrier to the moment when everything is visible. It may not know how tasks work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dfc_connect::{Ledger as TargetLedger, Positions, Residue, passing};
use dfc_ir::StagePlan;
use dfc_trial::{Planted, planted, turns};

use super::apply::Applier;
use super::coordinator::{Coordinator, Ledger, Scene};
use super::load::Loaded;
use super::start::Begun;
use crate::barrier::{Barriers, Participants, Stored};
use crate::observe::Event;
use crate::run::{JobCx, finish};
use crate::schedule::{Runnable, broke_down};
use crate::setup::{Built, slot_of};
use crate::sink::SinkPort;
use crate::summary::SinkReport;
use crate::{RunError, RunOptions};

/// A run with checkpoints.
pub(crate) struct Supervised {
    job: Arc<JobCx>,
    tasks: Vec<Box<dyn Runnable>>,
    sinks: Vec<Arc<SinkPort>>,
    coordinator: Coordinator,
    applier: Arc<Applier>,
    checkpoints: Arc<dfc_checkpoint::Job>,
}

impl Supervised {
    /// Connects tasks, exchanges and sinks with the checkpoints; compares what the targets know with what the checkpoint says.
    ///
    /// # Errors
    /// When they don't fit.
    pub(crate) fn new(
        plan: &StagePlan,
        options: &RunOptions,
        job: &Arc<JobCx>,
        begun: &Begun,
        built: Built,
        sinks: &[Arc<SinkPort>],
        progressed: &Arc<AtomicBool>,
    ) -> Result<Supervised, RunError> {
        let Built { tasks, stages, sources, exchanges, parallelism } = built;
        let loaded = begun.loaded.as_ref();
        let rejects = loaded.map(|loaded| &loaded.manifest.rejects);
        job.errors.take_checkpoints(
            &begun.lineage,
            loaded.zip(rejects).map(|(l, rejects)| (l.manifest.number, rejects.count, rejects.sealed.as_slice())),
        )?;
        let ordinals = loaded.map_or(0, |loaded| loaded.manifest.ordinal_base);
        let barriers = Arc::new(Barriers::new(job.scheduler.clone(), ordinals));
        barriers.enrol(&Participants { tasks: tasks.iter().map(|task| task.stage()).collect(), stages: stages.len() });
        // Set once: a run is set up once.
        let _ = job.barriers.set(barriers.clone());
        for (id, (exchange, reader)) in exchanges.iter().enumerate() {
            let (barriers, reader) = (barriers.clone(), *reader);
            exchange.hand_held_to(Arc::new(move |lane, number, held| barriers.hold(reader, id, lane, number, held)));
        }
        for (id, port) in sinks.iter().enumerate() {
            let barriers = barriers.clone();
            port.hand_sealed_to(Arc::new(move |number, sealed| barriers.seal(id, number, sealed)));
        }
        let outputs = |stage: usize| plan.stages[stage].outputs.len();
        let stored: Stored = loaded.map_or_else(Stored::new, |loaded| {
            loaded.stored(|stage, node, kind| slot_of(&stages[stage].slots, outputs(stage), node, kind))
        });
        let applied = check_targets(begun, sinks)?;
        begun.go_back()?;
        let applier = Arc::new(Applier::new(sinks.to_vec(), applied, begun.lineage.clone(), job.job.clone()));
        let sealed: Vec<Vec<_>> = match loaded {
            Some(loaded) => sinks.iter().map(|port| loaded.sink(&port.node).sealed).collect(),
            None => sinks.iter().map(|_| Vec::new()).collect(),
        };
        let rows_out = loaded.map_or(0, |loaded| loaded.manifest.counters.rows_out);
        if let Some(loaded) = loaded {
            job.progress.rows_out.store(rows_out, Ordering::Relaxed);
            if begun.is_resumed() {
                say_resumed(job, begun, loaded);
            }
            say_cleaned_up(job, loaded.manifest.number, sinks);
        }
        for (sink, sealed) in sealed.iter().enumerate().filter(|_| !planted(Planted::ApplySkipped)) {
            sealed.iter().for_each(|sealed| applier.add(sink, sealed.clone()));
        }
        let ledger = Ledger {
            lineage: begun.lineage.clone(),
            print: begun.print.clone(),
            stored,
            sealed,
            rejects: rejects.map(|rejects| rejects.sealed.clone()).unwrap_or_default(),
            rows_out,
            taken: false,
        };
        let scene = Scene {
            job: job.clone(),
            barriers,
            stages,
            sources,
            exchanges,
            sinks: sinks.to_vec(),
            parallelism,
            now_micros: options.env.now,
        };
        let settings = plan.job.checkpoint.clone().unwrap_or_default();
        let checkpoints = begun.job.clone();
        let coordinator =
            Coordinator::new(scene, checkpoints.clone(), settings, ledger, applier.clone(), progressed.clone());
        Ok(Supervised { job: job.clone(), tasks, sinks: sinks.to_vec(), coordinator, applier, checkpoints })
    }

    /// Whether a checkpoint was taken.
    pub(crate) fn taken(&self) -> bool {
        self.coordinator.ledger.taken
    }

    /// Runs the tasks, takes checkpoints beside them and a last one after them, applies everything and makes it visible.
    ///
    /// # Errors
    /// What stops the job.
    pub(crate) fn run(
        &mut self,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<(Vec<SinkReport>, Option<PathBuf>), RunError> {
        let tasks = std::mem::take(&mut self.tasks);
        let Supervised { job, sinks, coordinator, applier, checkpoints, .. } = self;
        let over = AtomicBool::new(false);
        let failed = AtomicBool::new(false);
        job.scheduler.winds_down.store(true, Ordering::Relaxed);
        let number = std::thread::scope(|scope| {
            let stopped = || failed.load(Ordering::Acquire);
            let applying = {
                let (applier, checkpoints) = (applier.clone(), checkpoints.clone());
                turns::spawn(scope, "dfc-apply", move || applier.run(&checkpoints, &stopped))
            };
            let applying = match applying {
                Ok(thread) => thread,
                Err(error) => return Err(no_thread(&error)),
            };
            let scheduler = job.scheduler.clone();
            let over = &over;
            let coordinating = turns::spawn(scope, "dfc-checkpoint", move || {
                // If it broke down unseen the tasks could wait for a barrier for ever.
                let result = whole("checkpoint", || coordinator.run(over, cancelled));
                if let Err(error) = &result {
                    scheduler.stop(error.clone());
                }
                (coordinator, result)
            });
            let ran = match &coordinating {
                Ok(_) => job.scheduler.run(tasks, threads, cancelled),
                Err(error) => Err(no_thread(error)),
            };
            over.store(true, Ordering::Release);
            if let Ok(thread) = &coordinating {
                thread.unpark();
            }
            let ended = coordinating.map(|thread| thread.join());
            let result = match (ran, ended) {
                // What it failed at may have ended with the tasks: what it held is no longer whole.
                (Ok(()), Ok(Ok((_, Err(error))))) => Err(error),
                (Ok(()), Ok(Ok((coordinator, Ok(()))))) => {
                    // Also here: the thread that applies must hear of the end.
                    whole("checkpoint", || job.errors.judge().and_then(|()| coordinator.conclude()))
                }
                (Err(error), _) => Err(error),
                (Ok(()), _) => Err(RunError::Internal {
                    node: "checkpoint".into(),
                    message: "the thread that takes checkpoints has broken down".into(),
                }),
            };
            failed.store(result.is_err(), Ordering::Release);
            applier.close();
            if let Err(panic) = applying.join() {
                std::panic::resume_unwind(panic);
            }
            result
        })?;
        let rejects = self.job.errors.finish()?;
        // What can't be made visible now is what the next run has to go on with.
        let reports = finish(sinks, false)?;
        self.coordinator.finished(number);
        Ok((reports, rejects))
    }
}

/// The work's result; a panic as an error of its own.
fn whole<T>(node: &str, work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(broke_down(node, panic.as_ref())))
}

fn no_thread(error: &std::io::Error) -> RunError {
    RunError::Internal { node: "checkpoint".into(), message: format!("no thread could be started: {error}") }
}

/// How far each target is, compared with the checkpoint from which the job goes on.
fn check_targets(begun: &Begun, sinks: &[Arc<SinkPort>]) -> Result<Vec<u64>, RunError> {
    let number = begun.loaded.as_ref().map_or(0, |loaded| loaded.manifest.number);
    let notes = begun.job.applied().map_err(RunError::Checkpoint)?;
    let mut applied = Vec::new();
    for port in sinks {
        let noted = notes.of(&begun.lineage, &port.node);
        if port.sink().visible_at_end() {
            applied.push(number);
            continue;
        }
        let known = passing("restore-ledger")
            .and_then(|()| port.sink().ledger())
            .map_err(|error| RunError::Connect { node: port.node.to_string(), error })?;
        let target = |message: String, help: &str| RunError::Target {
            node: port.node.to_string(),
            message,
            help: help.to_owned(),
        };
        applied.push(match known {
            TargetLedger::Applied(applied)
                if applied > number && begun.loaded.is_some() && !begun.accept_duplicates =>
            {
                return Err(target(
                    format!("the target has been given checkpoint {applied}, but the one to go on from is {number}"),
                    "go on from a newer checkpoint, or give the target its rows again with `--accept-duplicates`; `--fresh` starts anew",
                ));
            }
            TargetLedger::Applied(applied) => {
                if noted < applied && applied <= number {
                    // Whoever died between the two hasn't noted it. Without the note only more is kept.
                    let _ = begun.job.note_applied(&begun.lineage, &port.node, applied);
                }
                applied
            }
            TargetLedger::Missing if noted > 0 => {
                return Err(target(
                    format!("the target doesn't know this job any more, though it was given checkpoint {noted}"),
                    "if the table was made anew, start anew too: `dfc run FILE --fresh`",
                ));
            }
            TargetLedger::Missing => 0,
            TargetLedger::Idempotent | TargetLedger::Forgetful => noted,
        });
    }
    Ok(applied)
}

fn say_resumed(job: &JobCx, begun: &Begun, loaded: &Loaded) {
    let mut sources = Vec::new();
    for source in &loaded.manifest.sources {
        let (text, exact) = words(&source.positions);
        tracing::info!(
            job = %job.job,
            operator = source.node,
            checkpoint = loaded.manifest.number,
            position = text,
            exact,
            rows = source.rows,
            event = "restored"
        );
        sources.push((source.node.clone(), text, exact));
    }
    job.observer.event(&Event::Resumed {
        number: loaded.manifest.number,
        taken_micros: loaded.manifest.created_micros,
        sources,
        changed: begun.changed.clone(),
    });
}

/// What the sinks have removed when they were opened: what runs of this lineage had written behind the checkpoint (D12, D14).
fn say_cleaned_up(job: &JobCx, checkpoint: u64, sinks: &[Arc<SinkPort>]) {
    for port in sinks {
        let Residue { files, bytes } = port.sink().residue();
        if files > 0 {
            tracing::info!(job = %job.job, operator = %port.node, checkpoint, files, bytes, event = "cleaned_up");
        }
    }
}

/// Where a source goes on, in words; whether it gets there by a jump.
fn words(positions: &Positions) -> (String, bool) {
    let open: Vec<_> = positions.splits.iter().filter(|split| !split.ended).collect();
    let exact = open.iter().all(|split| split.exact);
    let text = match &open[..] {
        [] => "at its end".to_owned(),
        [one] => place(one),
        several => {
            let begun = several.iter().find(|split| !split.position.is_null());
            let first = begun.map_or_else(String::new, |split| format!(", {}", place(split)));
            format!("{} of {} splits to be read{first}", several.len(), positions.splits.len())
        }
    };
    (text, exact)
}

fn place(split: &dfc_connect::SplitPosition) -> String {
    let number = |name: &str| split.position.get(name).and_then(serde_json::Value::as_u64);
    if split.position.is_null() {
        return format!("`{}` from its start", split.split);
    }
    // The numbers come first in what connectors write down; what proves that it is the same file is for the connector alone.
    match (number("byte"), number("line"), number("row")) {
        (Some(byte), Some(line), _) => format!("`{}` at byte {byte}, line {line}", split.split),
        (Some(byte), None, _) => format!("`{}` at byte {byte}", split.split),
        (None, _, Some(row)) => match number("row_groups") {
            Some(group) => format!("`{}` at row {row} of row group {group}", split.split),
            None => format!("`{}` at row {row}", split.split),
        },
        _ => format!("`{}` at {}", split.split, split.position),
    }
}
