//! Applies closed epochs to their targets, in order, beside the computing of the next ones (D12): the same again until it is done.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use dfc_checkpoint::Job;
use dfc_connect::{ConnectError, Sealed, passing};
use dfc_trial::{Planted, planted, turns};

use crate::RunError;
use crate::run::LOST;
use crate::schedule::broke_down;
use crate::sink::SinkPort;

/// First pause after an attempt that failed, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// A target may be away for so long, all pauses together.
const PATIENCE: Duration = Duration::from_secs(900);

struct Line {
    /// Epochs that are part of a whole checkpoint, by sink, oldest first.
    waiting: Vec<VecDeque<Sealed>>,
    /// The last applied number, by sink.
    applied: Vec<u64>,
    /// Nothing more will come.
    closed: bool,
    failure: Option<RunError>,
}

/// The epochs on their way to the targets.
pub(crate) struct Applier {
    sinks: Vec<Arc<SinkPort>>,
    line: Mutex<Line>,
    changed: Condvar,
    lineage: String,
    job_name: Arc<str>,
}

impl Applier {
    /// `applied`: how far each sink is.
    pub(crate) fn new(sinks: Vec<Arc<SinkPort>>, applied: Vec<u64>, lineage: String, job_name: Arc<str>) -> Applier {
        let waiting = sinks.iter().map(|_| VecDeque::new()).collect();
        let line = Mutex::new(Line { waiting, applied, closed: false, failure: None });
        Applier { sinks, line, changed: Condvar::new(), lineage, job_name }
    }

    /// An epoch is part of a whole checkpoint.
    pub(crate) fn add(&self, sink: usize, sealed: Sealed) {
        let mut line = self.lock();
        if sealed.number > line.applied[sink] {
            line.waiting[sink].push_back(sealed);
        }
        self.changed.notify_all();
    }

    /// Checkpoints' epochs that wait, at the sink that is furthest behind.
    pub(crate) fn behind(&self) -> usize {
        self.lock().waiting.iter().map(VecDeque::len).max().unwrap_or(0)
    }

    /// How far a sink is.
    pub(crate) fn applied(&self, sink: usize) -> u64 {
        self.lock().applied[sink]
    }

    /// Why nothing is applied any more.
    pub(crate) fn failure(&self) -> Option<RunError> {
        self.lock().failure.clone()
    }

    /// No more epochs will come: [`Applier::run`] ends when all are applied.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits until everything is applied, for `time` at most; false: it isn't.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let busy = |line: &mut Line| line.failure.is_none() && line.waiting.iter().any(|w| !w.is_empty());
        let line = self.lock();
        let line = turns::wait_while(&self.line, &self.changed, line, Some(time), busy);
        line.failure.is_none() && line.waiting.iter().all(VecDeque::is_empty)
    }

    /// Applies until [`Applier::close`] or a failure that doesn't pass; `stopped` ends it between two attempts.
    pub(crate) fn run(&self, job: &Job, stopped: &dyn Fn() -> bool) {
        // Whoever waits for what is to be applied would wait for ever if this broke down unseen.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work(job, stopped))) {
            self.lock().failure = Some(broke_down("apply", panic.as_ref()));
            self.changed.notify_all();
        }
    }

    fn work(&self, job: &Job, stopped: &dyn Fn() -> bool) {
        loop {
            let mut line = self.lock();
            let next = loop {
                if let Some(sink) = line.waiting.iter().position(|waiting| !waiting.is_empty()) {
                    break line.waiting[sink].front().cloned().map(|sealed| (sink, sealed));
                }
                if line.closed || stopped() {
                    return;
                }
                let idle = |line: &mut Line| !line.closed && line.waiting.iter().all(VecDeque::is_empty);
                line = turns::wait_while(&self.line, &self.changed, line, Some(Duration::from_millis(50)), idle);
            };
            drop(line);
            turns::pass();
            let Some((sink, sealed)) = next else { return };
            let outcome = self.insist(sink, &sealed, stopped);
            let mut line = self.lock();
            match outcome {
                Ok(true) => {
                    line.waiting[sink].pop_front();
                    line.applied[sink] = sealed.number;
                    drop(line);
                    turns::pass();
                    let node = &self.sinks[sink].node;
                    if sealed.rows > 0 || !sealed.files.is_empty() {
                        tracing::info!(job = %self.job_name, operator = %node, checkpoint = sealed.number, rows = sealed.rows, event = "committed");
                    }
                    self.note(job, node, sealed.number, stopped);
                }
                Ok(false) => return,
                Err(error) => {
                    let node = self.sinks[sink].node.to_string();
                    line.failure = Some(RunError::Connect { node, error });
                    self.changed.notify_all();
                    return;
                }
            }
            self.changed.notify_all();
        }
    }

    /// Applies an epoch, again after errors that may pass; false: stopped.
    fn insist(&self, sink: usize, sealed: &Sealed, stopped: &dyn Fn() -> bool) -> Result<bool, ConnectError> {
        let mut pause = PAUSES.0;
        let mut waited = Duration::ZERO;
        loop {
            let applied = passing("apply").and_then(|()| self.sinks[sink].sink().apply(sealed));
            let error = match applied.and_then(|()| passing("applied")) {
                Ok(()) => return Ok(true),
                Err(_) if planted(Planted::FailedApplyBelieved) => return Ok(true),
                Err(error) => error,
            };
            // What the rows themselves break, they break each time; rows that are gone, to another run perhaps, don't come back.
            if error.code.starts_with("R06") || error.code == LOST || waited >= PATIENCE {
                return Err(error);
            }
            let node = &self.sinks[sink].node;
            tracing::warn!(job = %self.job_name, operator = %node, checkpoint = sealed.number, %error, pause_ms = pause.as_millis() as u64, event = "commit_retried");
            if !rest(pause, stopped) {
                return Ok(false);
            }
            waited += pause;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Notes how far a sink is: before the next epoch is applied, with which this one's spool goes. Whoever looks for that must know that it
    /// is needed no more. A note that can't be written in the end only means that more is kept.
    fn note(&self, job: &Job, node: &str, number: u64, stopped: &dyn Fn() -> bool) {
        let mut pause = PAUSES.0;
        let mut waited = Duration::ZERO;
        while let Err(error) = job.note_applied(&self.lineage, node, number) {
            tracing::warn!(job = %self.job_name, operator = %node, checkpoint = number, %error, event = "note_retried");
            // The end of the job is noted too, and with it all that wasn't.
            let over = || stopped() || self.lock().closed;
            if waited >= PATIENCE || !rest(pause, &over) {
                return;
            }
            waited += pause;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Waits for a pause to pass; false: `over` before that.
fn rest(pause: Duration, over: &dyn Fn() -> bool) -> bool {
    let mut left = pause;
    while left > Duration::ZERO {
        if over() {
            return false;
        }
        let part = left.min(Duration::from_millis(50));
        turns::sleep(part);
        left -= part;
    }
    true
}
