//! A sink as the tasks see it: they encode in parallel and offer what they made; whoever finds the line free writes, one at a time,
//! in order where the stage has one.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use dfc_connect::{ConnectError, Encoded, Sink, SinkSummary};

use crate::RunError;
use crate::observe::Progress;
use crate::reorder::Reorder;
use crate::schedule::{Scheduler, TaskId};

/// What a task made of one packet, with the number of rows in each piece.
pub(crate) type Pieces = Vec<(Encoded, u64)>;

struct Line {
    ready: VecDeque<Pieces>,
    reorder: Option<Reorder<Pieces>>,
    /// A task is writing.
    writing: bool,
    /// Tasks that may still offer.
    tasks: usize,
    waiting: Vec<TaskId>,
}

impl Line {
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
    scheduler: Arc<Scheduler>,
    progress: Arc<Progress>,
}

impl SinkPort {
    pub(crate) fn new(
        node: Arc<str>,
        sink: Box<dyn Sink>,
        tasks: usize,
        ordered: bool,
        scheduler: Arc<Scheduler>,
        progress: Arc<Progress>,
    ) -> SinkPort {
        let reorder = (ordered && tasks > 1).then(Reorder::new);
        let line = Line { ready: VecDeque::new(), reorder, writing: false, tasks, waiting: Vec::new() };
        SinkPort { node, sink, line: Mutex::new(line), capacity: 4 * tasks, scheduler, progress }
    }

    /// The connector's side.
    pub(crate) fn sink(&self) -> &dyn Sink {
        self.sink.as_ref()
    }

    /// Offers what was made of packet `seq`. Gives it back when too much is waiting; then `task` is woken when there is room.
    pub(crate) fn offer(&self, seq: u64, task: TaskId, pieces: Pieces) -> Result<Option<Pieces>, RunError> {
        let mut line = self.lock();
        if !line.accepts(seq, self.capacity) {
            if !line.waiting.contains(&task) {
                line.waiting.push(task);
            }
            return Ok(Some(pieces));
        }
        let Line { ready, reorder, .. } = &mut *line;
        match reorder {
            Some(reorder) => reorder.put(seq, pieces, ready),
            None => ready.push_back(pieces),
        }
        self.drain(line)?;
        Ok(None)
    }

    /// A task has ended.
    pub(crate) fn task_done(&self) -> Result<(), RunError> {
        let mut line = self.lock();
        line.tasks -= 1;
        if line.tasks == 0
            && let Line { ready, reorder: Some(reorder), .. } = &mut *line
        {
            reorder.flush(ready);
        }
        let woken = std::mem::take(&mut line.waiting);
        self.drain(line)?;
        self.scheduler.wake_all(woken);
        Ok(())
    }

    /// Makes the result visible.
    pub(crate) fn finish(&self) -> Result<SinkSummary, ConnectError> {
        self.sink.finish()
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
        while let Some(pieces) = line.ready.pop_front() {
            let woken = std::mem::take(&mut line.waiting);
            drop(line);
            self.scheduler.wake_all(woken);
            for (encoded, rows) in pieces {
                // On a failure the line stays closed: the run is over.
                self.sink.write(encoded, rows).map_err(|error| self.failed(error))?;
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
