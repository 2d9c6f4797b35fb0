//! Takes checkpoints while a job runs (D11, F2): wants a barrier, waits until it is complete, has stored what was handed over (`store`),
//! publishes the manifest, and passes the closed epochs on to be applied.
//!
//! It runs in a thread of its own; the tasks never wait for it but at a barrier, or when the targets are too far behind.

mod store;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dfc_checkpoint::{HistoryEntry, Job, Kind as CheckpointKind, Outcome, PlanPrint, SavepointAnswer};
use dfc_connect::Sealed;
use dfc_ir::plan::CheckpointSettings;
use dfc_trial::turns;

use super::apply::Applier;
use crate::RunError;
use crate::barrier::{Barriers, Complete, Standing, Stored};
use crate::exchange::Exchange;
use crate::observe::Event;
use crate::run::JobCx;
use crate::setup::SourcePort;
use crate::sink::SinkPort;
use crate::task::StageCx;

/// How often the coordinator looks around.
const LOOK: Duration = Duration::from_millis(20);
/// A checkpoint that isn't due follows the one before only after so many times what that one took: large state isn't stored over and over.
const REST: u32 = 19;
/// Identifies the form of stored state: raised when it changes.
pub(super) const STATE_SCHEMA: u64 = 4;

/// The run as the coordinator sees it.
pub(crate) struct Scene {
    pub(crate) job: Arc<JobCx>,
    pub(crate) barriers: Arc<Barriers>,
    pub(crate) stages: Vec<Arc<StageCx>>,
    /// By stage: its source, with the connector's name.
    pub(crate) sources: Vec<Option<(Arc<SourcePort>, String)>>,
    /// By exchange: itself and the stage that reads it.
    pub(crate) exchanges: Vec<(Arc<Exchange>, usize)>,
    pub(crate) sinks: Vec<Arc<SinkPort>>,
    pub(crate) parallelism: usize,
    /// The fixed `now()`, in microseconds since 1970.
    pub(crate) now_micros: i64,
}

/// What is kept from checkpoint to checkpoint.
pub(crate) struct Ledger {
    pub(crate) lineage: String,
    pub(crate) print: PlanPrint,
    pub(crate) stored: Stored,
    /// By sink: the epochs that are still needed.
    pub(crate) sealed: Vec<Vec<Sealed>>,
    pub(crate) rejects: Vec<Sealed>,
    /// Rows of all epochs up to the newest checkpoint.
    pub(crate) rows_out: u64,
    /// Whether a manifest of this run may exist that is more than the start: also one whose answer was lost.
    pub(crate) taken: bool,
}

/// The coordinator of a run.
pub(crate) struct Coordinator {
    pub(crate) scene: Scene,
    pub(crate) checkpoints: Arc<Job>,
    pub(crate) settings: CheckpointSettings,
    pub(crate) ledger: Ledger,
    pub(crate) applier: Arc<Applier>,
    /// Checkpoints abandoned in a row.
    abandoned: u32,
    /// The number of the last barrier.
    last: u64,
    /// Until then no checkpoint is taken only to keep a target busy.
    not_early_before: Instant,
    /// Parts stored by this run.
    parts: u64,
    /// It was said that the quota is nearly used.
    tight: bool,
    /// What helps against that for which a checkpoint was given up last.
    cure: Option<String>,
    progressed: Arc<AtomicBool>,
}

/// Why a checkpoint wasn't stored.
enum Setback {
    /// It is given up, because of this, and this helps; the job goes on.
    GivenUp(String, Option<String>),
    /// The job stops.
    Fatal(Box<RunError>),
}

/// How an attempt at a checkpoint ended.
enum Taken {
    Published(u64),
    /// It was given up; the job goes on.
    Abandoned(String),
    /// The run is over.
    Stopped,
}

impl Coordinator {
    pub(crate) fn new(
        scene: Scene,
        checkpoints: Arc<Job>,
        settings: CheckpointSettings,
        ledger: Ledger,
        applier: Arc<Applier>,
        progressed: Arc<AtomicBool>,
    ) -> Coordinator {
        let last = checkpoints.next_number().saturating_sub(1);
        Coordinator {
            scene,
            checkpoints,
            settings,
            ledger,
            applier,
            abandoned: 0,
            last,
            not_early_before: turns::now(),
            parts: 0,
            tight: false,
            cure: None,
            progressed,
        }
    }

    /// Takes checkpoints until `over` is set, the run fails, or it is cancelled: then with a last one.
    ///
    /// # Errors
    /// What stops the job.
    pub(crate) fn run(&mut self, over: &AtomicBool, cancelled: &AtomicBool) -> Result<(), RunError> {
        let interval = Duration::from_millis(self.settings.interval_ms);
        let mut due = turns::now() + interval;
        let mut asked = turns::now();
        let mut held = false;
        loop {
            if over.load(Ordering::Acquire) || self.stopping() {
                return Ok(());
            }
            if let Some(failure) = self.applier.failure() {
                return Err(failure);
            }
            if cancelled.load(Ordering::Relaxed) {
                return self.wind_down();
            }
            let spooled = self.waiting_bytes();
            let full = spooled >= self.settings.max_epoch_bytes;
            let behind = self.applier.behind() >= self.settings.max_unapplied as usize;
            let early = turns::now() >= self.not_early_before && self.worth_it();
            if held != (full && behind) {
                held = full && behind;
                self.hold_sinks(held);
            }
            let savepoint = if (turns::now() - asked) >= Duration::from_millis(200) {
                asked = turns::now();
                self.checkpoints.savepoints_asked().unwrap_or_default().into_iter().next()
            } else {
                None
            };
            if let Some(request) = savepoint {
                let answer = match self.take(CheckpointKind::Savepoint, request.note.clone())? {
                    Taken::Published(number) => {
                        let kept = dfc_checkpoint::Kept { note: request.note.clone(), at_micros: now_micros() };
                        match self.checkpoints.keep(number, &kept) {
                            Ok(()) => SavepointAnswer::Taken(number),
                            Err(error) => SavepointAnswer::Refused(error.to_string()),
                        }
                    }
                    Taken::Abandoned(why) => SavepointAnswer::Refused(why),
                    Taken::Stopped => SavepointAnswer::Refused("the job has ended".into()),
                };
                // Whoever asked has a time limit of its own.
                let _ = self.checkpoints.answer_savepoint(&request, &answer);
                due = turns::now() + interval;
            } else if !behind && (full || early || turns::now() >= due) {
                self.take(CheckpointKind::Regular, None)?;
                due = turns::now() + interval;
            }
            // Whoever sets `over` ends the wait.
            turns::park(LOOK.min(due.saturating_duration_since(turns::now()).max(Duration::from_millis(1))));
        }
    }

    /// The job was cancelled: a last checkpoint, so that nothing of its work is lost.
    fn wind_down(&mut self) -> Result<(), RunError> {
        let taken = self.take(CheckpointKind::Regular, None)?;
        let cause = match taken {
            Taken::Published(checkpoint) => {
                self.applier.wait(Duration::from_secs(60));
                RunError::Interrupted { checkpoint }
            }
            Taken::Abandoned(_) | Taken::Stopped => RunError::Cancelled,
        };
        self.scene.job.scheduler.stop(cause);
        Ok(())
    }

    /// The last checkpoint, when every task has ended; then everything is applied.
    ///
    /// # Errors
    /// What stops the job.
    pub(crate) fn conclude(&mut self) -> Result<u64, RunError> {
        let mut attempts = 0;
        let number = loop {
            match self.take(CheckpointKind::Terminal, None)? {
                Taken::Published(number) => break number,
                Taken::Abandoned(_) if attempts < self.settings.tolerate => attempts += 1,
                Taken::Abandoned(why) => return Err(self.too_many(&why)),
                Taken::Stopped => return Err(RunError::Cancelled),
            }
        };
        while !self.applier.wait(Duration::from_secs(1)) {
            if let Some(failure) = self.applier.failure() {
                return Err(failure);
            }
        }
        Ok(number)
    }

    /// Notes that the job has ended and everything is visible.
    pub(crate) fn finished(&self, number: u64) {
        // Without the note the next run looks whether anything is left to do.
        let _ = self.checkpoints.note_finished(&self.ledger.lineage, number);
        // Nobody goes on from an older one: what it names has become the result.
        self.retain_newest(1);
    }

    /// Bytes of rows that wait to be applied. Those of a file that appears whole at the end wait for that, whatever is taken before.
    fn waiting_bytes(&self) -> u64 {
        let sinks = self.scene.sinks.iter().map(|port| port.sink());
        sinks.filter(|sink| !sink.visible_at_end()).map(|sink| sink.open_bytes()).sum()
    }

    /// Whether a target that has nothing to do could be given rows.
    fn worth_it(&self) -> bool {
        let worth = |port: &Arc<SinkPort>| {
            let sink = port.sink();
            sink.worth_applying().is_some_and(|worth| sink.open_bytes() >= worth)
        };
        self.applier.behind() == 0 && self.scene.sinks.iter().any(worth)
    }

    fn stopping(&self) -> bool {
        self.scene.job.scheduler.stopping().load(Ordering::Relaxed)
    }

    fn hold_sinks(&self, held: bool) {
        match held {
            true => self.scene.job.scheduler.hold(),
            false => self.scene.job.scheduler.release(),
        }
        self.scene.sinks.iter().for_each(|port| port.hold(held));
        if held {
            tracing::warn!(job = %self.scene.job.job, behind = self.applier.behind(), event = "held_back");
        }
    }

    /// One checkpoint.
    fn take(&mut self, kind: CheckpointKind, note: Option<String>) -> Result<Taken, RunError> {
        let number = self.checkpoints.next_number().max(self.last + 1);
        self.last = number;
        let begun = turns::now();
        let at_micros = now_micros();
        self.scene.job.scheduler.hold();
        let complete = self.fly(number, begun);
        if !matches!(complete, Ok(Flown::Complete(_))) {
            // Stages that had to wait for it may start.
            self.scene.barriers.give_up();
        }
        self.scene.job.scheduler.release();
        let mut report = HistoryEntry {
            number,
            at_micros,
            duration_ms: 0,
            alignment_ms: 0,
            stop_micros: 0,
            state_bytes: 0,
            spool_bytes: 0,
            outcome: Outcome::Taken,
        };
        let stored = match complete? {
            Flown::Stopped => return Ok(Taken::Stopped),
            Flown::Failed(why) => Err(Setback::GivenUp(why, None)),
            Flown::Complete(complete) => self.store(complete, kind, note, begun, at_micros, &mut report),
        };
        report.duration_ms = (turns::now() - begun).as_millis() as u64;
        self.not_early_before = turns::now() + (turns::now() - begun) * REST;
        match stored {
            Ok(()) => {
                self.abandoned = 0;
                self.progressed.store(true, Ordering::Release);
                // For people only.
                let _ = self.checkpoints.record(report);
                self.retain();
                Ok(Taken::Published(number))
            }
            Err(Setback::Fatal(error)) => Err(*error),
            Err(Setback::GivenUp(why, cure)) => {
                self.abandoned += 1;
                self.cure = cure;
                tracing::warn!(job = %self.scene.job.job, checkpoint = number, %why, event = "checkpoint_abandoned");
                self.scene.job.observer.event(&Event::CheckpointAbandoned { number, why: why.clone() });
                let _ = self.checkpoints.record(HistoryEntry { outcome: Outcome::Abandoned(why.clone()), ..report });
                if self.abandoned > self.settings.tolerate {
                    return Err(self.too_many(&why));
                }
                Ok(Taken::Abandoned(why))
            }
        }
    }

    fn too_many(&self, why: &str) -> RunError {
        RunError::CheckpointsFail { count: self.abandoned.max(1), why: why.to_owned(), cure: self.cure.clone() }
    }

    /// Sends the barrier through the job.
    fn fly(&self, number: u64, begun: Instant) -> Result<Flown, RunError> {
        let Scene { barriers, sources, exchanges, sinks, .. } = &self.scene;
        let unstarted = barriers.begin(number, |unstarted| {
            let lanes = exchanges.iter().enumerate().filter(|(_, (_, reader))| unstarted[*reader]);
            let lanes = lanes.flat_map(|(id, (exchange, _))| (0..exchange.lanes()).map(move |lane| (id, lane)));
            (lanes.collect(), (0..sinks.len()).collect::<BTreeSet<_>>())
        });
        turns::pass();
        // From here on no stage starts: what stands before those that haven't is recorded before any source sends the barrier.
        for (exchange, _) in exchanges.iter().filter(|(_, reader)| unstarted[*reader]) {
            exchange.record(number);
        }
        for (port, _) in sources.iter().flatten() {
            turns::pass();
            port.source.mark(number);
        }
        turns::pass();
        barriers.want(number);
        for port in sinks {
            turns::pass();
            port.want(number)?;
        }
        let timeout = Duration::from_millis(self.settings.timeout_ms);
        loop {
            match barriers.standing(LOOK) {
                Standing::Complete(complete) => return Ok(Flown::Complete(complete)),
                Standing::Failed(sink, error) => {
                    let node = &sinks[sink].node;
                    return Ok(Flown::Failed(format!("`{node}` can't close its rows: {error}")));
                }
                Standing::Flying if self.stopping() => return Ok(Flown::Stopped),
                Standing::Flying if (turns::now() - begun) >= timeout => return Ok(Flown::Failed(self.too_late())),
                Standing::Flying => {}
            }
        }
    }

    /// An error of the storage that may pass, or a full disk, costs this checkpoint; anything else the job.
    fn weigh(&self, error: RunError) -> Setback {
        use dfc_checkpoint::{Error, StorageError};
        let passes = matches!(
            &error,
            RunError::Checkpoint(Error::Storage(StorageError::Failed { .. } | StorageError::Full { .. }))
        );
        if let RunError::Checkpoint(Error::Storage(StorageError::Full { .. })) = &error {
            // What has been applied since the last checkpoint needn't be kept for the next one.
            self.retain();
        }
        match passes {
            true => Setback::GivenUp(error.to_string(), error.help()),
            false => Setback::Fatal(Box::new(error)),
        }
    }

    /// Looks how much of the quota is left, if there is one, and says once when that is little.
    fn measure(&mut self) -> Result<(), RunError> {
        let Some(quota) = self.settings.quota_bytes else { return Ok(()) };
        let room = self.checkpoints.measure(quota).map_err(RunError::Checkpoint)?;
        if room.is_tight() && !self.tight {
            tracing::warn!(job = %self.scene.job.job, used = room.used, quota, event = "quota_nearly_used");
            self.scene.job.observer.event(&Event::QuotaNearlyUsed { used: room.used, quota });
        }
        self.tight = room.is_tight();
        Ok(())
    }

    /// Given up where it takes too long: what is stored by then is taken over by the next one.
    fn in_time(&self, begun: Instant) -> Result<(), Setback> {
        match (turns::now() - begun) >= Duration::from_millis(self.settings.timeout_ms) {
            true => Err(Setback::GivenUp(self.too_late(), None)),
            false => Ok(()),
        }
    }

    fn too_late(&self) -> String {
        let seconds = Duration::from_millis(self.settings.timeout_ms).as_secs_f64();
        format!("it took longer than its time limit of {seconds} s")
    }

    fn retain(&self) {
        self.retain_newest(self.settings.retain.max(1));
    }

    fn retain_newest(&self, keep: u32) {
        match self.checkpoints.retain(keep) {
            Ok(removed) if removed.checkpoints.is_empty() && removed.parts == 0 => {}
            Ok(removed) => tracing::info!(
                job = %self.scene.job.job,
                checkpoints = removed.checkpoints.len(),
                bytes = removed.bytes,
                event = "cleaned_up"
            ),
            Err(error) => tracing::warn!(job = %self.scene.job.job, %error, event = "clean_up_failed"),
        }
    }
}

enum Flown {
    Complete(Complete),
    Failed(String),
    Stopped,
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    // A clock before 1970 is a broken clock; it is only for people.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
