//! A sink as the tasks see it: they encode in parallel and offer what they made; whoever finds the line free writes, one at a time,
//! in order where the stage has one.
//!
//! Barriers are aligned here as in an exchange; then the sink closes its epoch (F2).

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use dfc_connect::{ConnectError, Encoded, Sealed, Sink, SinkSummary, passing};
use dfc_trial::{Planted, planted, turns};

use crate::RunError;
use crate::align::Alignment;
use crate::observe::Progress;
use crate::reorder::Reorder;
use crate::schedule::{Scheduler, TaskId};

/// What a task made of one packet, with the number of rows in each piece.
pub(crate) type Pieces = Vec<(Encoded, u64)>;

/// Hears of a closed epoch: its number, and what the sink says.
pub(crate) type SealedTo = Arc<dyn Fn(u64, Result<Sealed, ConnectError>) + Send + Sync>;

enum Item {
    Pieces(Pieces),
    Barrier(u64),
}

struct Line {
    ready: VecDeque<Item>,
    reorder: Option<Reorder<Pieces>>,
    /// A task is writing.
    writing: bool,
    /// Tasks that may still offer.
    tasks: usize,
    waiting: Vec<TaskId>,
    alignment: Alignment,
    /// The newest barrier that is wanted, and the newest that went into the line.
    wanted: u64,
    passed: u64,
    /// The target is too far behind: nothing more is taken.
    held: bool,
}

impl Line {
    /// Whether this task has given a barrier that others haven't.
    fn holds_back(&self, task: TaskId) -> bool {
        self.alignment.holds_back(task) && !planted(Planted::SinkNotAligned)
    }

    /// What is held back for its order's sake goes on.
    fn release(&mut self) {
        if let Line { ready, reorder: Some(reorder), .. } = self {
            let mut rest = Vec::new();
            reorder.release(&mut rest);
            ready.extend(rest.into_iter().map(Item::Pieces));
        }
    }

    fn accepts(&self, seq: u64, capacity: usize) -> bool {
        let held = self.reorder.as_ref().map_or(0, Reorder::held);
        if self.ready.len() + held < capacity {
            return true;
        }
        // As in an exchange: what the others wait for must get through, and not all may wait.
        let next = self.reorder.as_ref().is_none_or(|reorder| reorder.is_next(seq));
        self.ready.is_empty() && (next || self.waiting.len() + 1 >= self.tasks)
    }
}

/// An opened sink and the line before it.
pub(crate) struct SinkPort {
    /// The operator's name.
    pub(crate) node: Arc<str>,
    sink: Box<dyn Sink>,
    line: Mutex<Line>,
    capacity: usize,
    /// Where its rows go, as the user would name it.
    pub(crate) target: Option<String>,
    scheduler: Arc<Scheduler>,
    progress: Arc<Progress>,
    sealed: OnceLock<SealedTo>,
}

impl SinkPort {
    pub(crate) fn new(
        node: Arc<str>,
        sink: Box<dyn Sink>,
        tasks: usize,
        ordered: bool,
        first: u64,
        target: Option<String>,
        scheduler: Arc<Scheduler>,
        progress: Arc<Progress>,
    ) -> SinkPort {
        let line = Line {
            ready: VecDeque::new(),
            reorder: (ordered && tasks > 1).then(|| Reorder::new(first)),
            writing: false,
            tasks,
            waiting: Vec::new(),
            alignment: Alignment::default(),
            wanted: 0,
            passed: 0,
            held: false,
        };
        let sealed = OnceLock::new();
        SinkPort { node, sink, line: Mutex::new(line), capacity: 4 * tasks, target, scheduler, progress, sealed }
    }

    /// The connector's side.
    pub(crate) fn sink(&self) -> &dyn Sink {
        self.sink.as_ref()
    }

    /// Offers what was made of packet `seq`. Gives it back when too much is waiting; then `task` is woken when there is room.
    pub(crate) fn offer(&self, seq: u64, task: TaskId, pieces: Pieces) -> Result<Option<Pieces>, RunError> {
        turns::pass();
        let mut line = self.lock();
        if line.held || line.holds_back(task) || !line.accepts(seq, self.capacity) {
            if !line.waiting.contains(&task) {
                line.waiting.push(task);
            }
            return Ok(Some(pieces));
        }
        let Line { ready, reorder, .. } = &mut *line;
        match reorder {
            Some(reorder) => {
                let mut next = Vec::new();
                reorder.put(seq, pieces, &mut next);
                ready.extend(next.into_iter().map(Item::Pieces));
            }
            None => ready.push_back(Item::Pieces(pieces)),
        }
        self.drain(line)?;
        Ok(None)
    }

    /// The first number is this one after all.
    pub(crate) fn start_at(&self, first: u64) {
        if let Some(reorder) = &mut self.lock().reorder {
            reorder.start_at(first);
        }
    }

    /// Where closed epochs go.
    pub(crate) fn hand_sealed_to(&self, sealed: SealedTo) {
        // Set once: a run is set up once.
        let _ = self.sealed.set(sealed);
    }

    /// A task gives a barrier.
    pub(crate) fn barrier(&self, task: TaskId, number: u64) -> Result<(), RunError> {
        turns::pass();
        let mut line = self.lock();
        line.alignment.give(task, number);
        // Whoever gave one that was given up may go on.
        let woken = std::mem::take(&mut line.waiting);
        self.pass(line)?;
        self.scheduler.wake_all(woken);
        Ok(())
    }

    /// A barrier is wanted; where all tasks have ended nobody else will give it.
    pub(crate) fn want(&self, number: u64) -> Result<(), RunError> {
        let mut line = self.lock();
        line.wanted = number;
        self.pass(line)
    }

    /// Stops taking rows, or takes them again.
    pub(crate) fn hold(&self, held: bool) {
        let mut line = self.lock();
        let woken = if held { Vec::new() } else { std::mem::take(&mut line.waiting) };
        line.held = held;
        drop(line);
        self.scheduler.wake_all(woken);
    }

    /// Puts a barrier that all tasks have given into the line.
    fn pass<'l>(&'l self, mut line: MutexGuard<'l, Line>) -> Result<(), RunError> {
        let tasks = line.tasks;
        let number = match line.alignment.complete(tasks) {
            Some(number) => number,
            None if line.tasks == 0 && line.wanted > line.passed => line.wanted,
            None => return self.drain(line),
        };
        line.passed = number;
        line.release();
        line.ready.push_back(Item::Barrier(number));
        let woken = std::mem::take(&mut line.waiting);
        self.drain(line)?;
        self.scheduler.wake_all(woken);
        Ok(())
    }

    /// A task has ended: it counts as having given every barrier.
    pub(crate) fn task_done(&self, task: TaskId) -> Result<(), RunError> {
        turns::pass();
        let mut line = self.lock();
        line.tasks -= 1;
        line.alignment.ended(task);
        if line.tasks == 0 {
            // Whoever gave the last barrier gave it before it ended.
            if let Some(number) = line.alignment.complete(0) {
                line.wanted = line.wanted.max(number);
            }
            line.release();
        }
        let woken = std::mem::take(&mut line.waiting);
        self.pass(line)?;
        self.scheduler.wake_all(woken);
        Ok(())
    }

    /// Makes the result visible.
    pub(crate) fn finish(&self) -> Result<SinkSummary, ConnectError> {
        passing("finish")?;
        let done = self.sink.finish()?;
        passing("finished")?;
        Ok(done)
    }

    /// Removes what was written.
    pub(crate) fn abort(&self) {
        self.sink.abort();
    }

    /// Writes what is ready, unless another task does already: then that one takes it along.
    fn drain<'l>(&'l self, mut line: MutexGuard<'l, Line>) -> Result<(), RunError> {
        if line.writing {
            return Ok(());
        }
        line.writing = true;
        while let Some(item) = line.ready.pop_front() {
            let woken = std::mem::take(&mut line.waiting);
            drop(line);
            self.scheduler.wake_all(woken);
            turns::pass();
            let pieces = match item {
                Item::Pieces(pieces) => pieces,
                Item::Barrier(number) => {
                    let sealed = passing("spool-seal").and_then(|()| self.sink.seal(number));
                    let after = if sealed.is_ok() { passing("spool-sealed") } else { Ok(()) };
                    if let Some(to) = self.sealed.get() {
                        to(number, sealed);
                        // What is closed stays closed: it belongs to the next checkpoint then.
                        if let Err(error) = after {
                            to(number, Err(error));
                        }
                    }
                    Pieces::new()
                }
            };
            for (encoded, rows) in pieces {
                // On a failure the line stays closed: the run is over.
                passing("spool-write")
                    .and_then(|()| self.sink.write(encoded, rows))
                    .map_err(|error| self.failed(error))?;
                self.progress.rows_out.fetch_add(rows, Ordering::Relaxed);
            }
            line = self.lock();
        }
        line.writing = false;
        Ok(())
    }

    fn failed(&self, error: ConnectError) -> RunError {
        RunError::Connect { node: self.node.to_string(), error }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(|e| e.into_inner())
    }
}
