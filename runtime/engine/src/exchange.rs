//! Bounded queues between stages: rows change tasks here, and a slow reader holds its writers back (D1).
//!
//! An exchange has one lane for each reading task when rows are dealt out by hash, else one lane that all reading tasks share.
//! Where the writing stage is ordered a lane puts packets back in order before anyone reads them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use dfc_batch::Batch;
use dfc_table::GroupTable;

use crate::reorder::Reorder;
use crate::schedule::{Scheduler, TaskId};

/// What travels between stages.
#[derive(Clone)]
pub(crate) enum Packet {
    /// What a task made of one packet or source batch: none, one or several batches, kept together so that order can be restored.
    Rows {
        /// Number of the input it was made from.
        seq: u64,
        /// The rows.
        batches: Vec<Batch>,
    },
    /// The first half of an aggregate, for every reader.
    Partial(Arc<GroupTable>),
}

/// What a reader got.
pub(crate) enum Received {
    /// Something.
    Packet(Packet),
    /// Nothing yet; the task is woken when there is.
    Empty,
    /// Nothing, ever.
    End,
}

struct Lane {
    ready: VecDeque<Packet>,
    reorder: Option<Reorder<Packet>>,
    /// Tasks that may still write.
    writers: usize,
    /// Tasks that may still read.
    readers: usize,
    waiting_writers: Vec<TaskId>,
    waiting_readers: Vec<TaskId>,
    /// The reader hasn't started and can't before some of the writers have ended: nobody may be held back.
    unbounded: bool,
}

/// How an exchange is set up.
pub(crate) struct ExchangeShape {
    /// Number of lanes.
    pub(crate) lanes: usize,
    /// Writing tasks, of all stages.
    pub(crate) writers: usize,
    /// Reading tasks of each lane.
    pub(crate) readers: usize,
    /// Whether lanes restore the order.
    pub(crate) ordered: bool,
    /// Whether it takes everything until the reading stage has started.
    pub(crate) unbounded: bool,
}

/// A set of queues from some tasks to others.
pub(crate) struct Exchange {
    lanes: Vec<Mutex<Lane>>,
    capacity: usize,
    scheduler: Arc<Scheduler>,
}

impl Exchange {
    pub(crate) fn new(shape: &ExchangeShape, scheduler: Arc<Scheduler>) -> Exchange {
        let lane = || Lane {
            ready: VecDeque::new(),
            reorder: shape.ordered.then(Reorder::new),
            writers: shape.writers,
            readers: shape.readers,
            waiting_writers: Vec::new(),
            waiting_readers: Vec::new(),
            unbounded: shape.unbounded,
        };
        Exchange {
            lanes: (0..shape.lanes).map(|_| Mutex::new(lane())).collect(),
            // Two packets a task on either side keep both busy; more only cost memory.
            capacity: 2 * shape.writers.max(shape.readers).max(1),
            scheduler,
        }
    }

    /// Number of lanes.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Writes; gives the packet back when the lane is full. Then `task` is woken when it isn't any more.
    pub(crate) fn push(&self, lane: usize, task: TaskId, packet: Packet) -> Result<(), Packet> {
        let mut lane = self.lock(lane);
        if lane.readers == 0 {
            return Ok(());
        }
        if !lane.accepts(&packet, self.capacity) {
            if !lane.waiting_writers.contains(&task) {
                lane.waiting_writers.push(task);
            }
            return Err(packet);
        }
        let Lane { ready, reorder, .. } = &mut *lane;
        match (reorder, packet) {
            (Some(reorder), Packet::Rows { seq, batches }) => {
                reorder.put(seq, Packet::Rows { seq, batches }, ready);
            }
            (_, packet) => ready.push_back(packet),
        }
        let woken = lane.wake_readers();
        drop(lane);
        self.scheduler.wake_all(woken);
        Ok(())
    }

    /// Reads.
    pub(crate) fn pop(&self, lane: usize, task: TaskId) -> Received {
        let mut lane = self.lock(lane);
        match lane.ready.pop_front() {
            Some(packet) => {
                let woken = std::mem::take(&mut lane.waiting_writers);
                drop(lane);
                self.scheduler.wake_all(woken);
                Received::Packet(packet)
            }
            None if lane.writers == 0 => Received::End,
            None => {
                if !lane.waiting_readers.contains(&task) {
                    lane.waiting_readers.push(task);
                }
                Received::Empty
            }
        }
    }

    /// A writing task has ended.
    pub(crate) fn writer_done(&self) {
        for lane in 0..self.lanes.len() {
            let mut lane = self.lock(lane);
            lane.writers -= 1;
            if lane.writers == 0 {
                let Lane { ready, reorder: Some(reorder), .. } = &mut *lane else {
                    let woken = std::mem::take(&mut lane.waiting_readers);
                    drop(lane);
                    self.scheduler.wake_all(woken);
                    continue;
                };
                reorder.flush(ready);
            }
            let mut woken = std::mem::take(&mut lane.waiting_readers);
            woken.append(&mut lane.waiting_writers);
            drop(lane);
            self.scheduler.wake_all(woken);
        }
    }

    /// A reading task has ended, perhaps before it read everything.
    pub(crate) fn reader_done(&self, lane: usize) {
        let mut lane = self.lock(lane);
        lane.readers -= 1;
        if lane.readers == 0 {
            lane.ready.clear();
            lane.reorder = None;
            let woken = std::mem::take(&mut lane.waiting_writers);
            drop(lane);
            self.scheduler.wake_all(woken);
        }
    }

    /// Whether nobody reads any more.
    pub(crate) fn abandoned(&self) -> bool {
        (0..self.lanes.len()).all(|lane| self.lock(lane).readers == 0)
    }

    /// The reading stage has started: from now on writers are held back.
    pub(crate) fn bound(&self) {
        (0..self.lanes.len()).for_each(|lane| self.lock(lane).unbounded = false);
    }

    fn lock(&self, lane: usize) -> MutexGuard<'_, Lane> {
        self.lanes[lane].lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Lane {
    fn accepts(&self, packet: &Packet, capacity: usize) -> bool {
        if self.unbounded {
            return true;
        }
        let held = self.reorder.as_ref().map_or(0, Reorder::held);
        if self.ready.len() + held < capacity {
            return true;
        }
        match (&self.reorder, packet) {
            // Whoever has what the others wait for must get through; and if all the others wait already, the last one goes on, lest
            // the number that is missing never come.
            (Some(reorder), Packet::Rows { seq, .. }) if self.ready.is_empty() => {
                reorder.is_next(*seq) || self.waiting_writers.len() + 1 >= self.writers
            }
            _ => false,
        }
    }

    fn wake_readers(&mut self) -> Vec<TaskId> {
        if self.ready.is_empty() { Vec::new() } else { std::mem::take(&mut self.waiting_readers) }
    }
}
