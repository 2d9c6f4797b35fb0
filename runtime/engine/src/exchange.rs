//! Bounded queues between stages: rows change tasks here, and a slow reader holds its writers back (D1).
//!
//! An exchange has one lane for each reading task when rows are dealt out by hash, else one lane that all reading tasks share.
//! Where the writing stage is ordered a lane puts packets back in order before anyone reads them.
//!
//! Barriers (F2) are aligned here: once a writer has given barrier n, what it gives further is held back until all have; then every reader
//! gets the barrier once. A lane whose readers haven't started gives what it holds to the checkpoint instead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use dfc_batch::Batch;
use dfc_table::GroupTable;
use dfc_trial::{Planted, planted, turns};

use crate::align::Alignment;
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
    /// What follows belongs to the next checkpoint.
    Barrier(u64),
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

/// Packets of a lane that nobody has begun to read, as they stood at a barrier.
pub(crate) type Held = Vec<Packet>;

/// Takes what a lane holds at a barrier: the exchange's number, the lane's, the barrier's, the packets.
pub(crate) type HeldSink = Arc<dyn Fn(usize, u64, Held) + Send + Sync>;

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
    alignment: Alignment,
    /// The readers that have taken the barrier at the front.
    taken: Vec<TaskId>,
    /// Its readers don't start before this barrier is complete: what it holds then is state.
    recording: Option<u64>,
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
    /// Number of the first packet, where they are numbered.
    pub(crate) first: u64,
}

/// A set of queues from some tasks to others.
pub(crate) struct Exchange {
    lanes: Vec<Mutex<Lane>>,
    capacity: usize,
    scheduler: Arc<Scheduler>,
    held: OnceLock<HeldSink>,
}

impl Exchange {
    pub(crate) fn new(shape: &ExchangeShape, scheduler: Arc<Scheduler>) -> Exchange {
        let lane = || Lane {
            ready: VecDeque::new(),
            reorder: shape.ordered.then(|| Reorder::new(shape.first)),
            writers: shape.writers,
            readers: shape.readers,
            waiting_writers: Vec::new(),
            waiting_readers: Vec::new(),
            unbounded: shape.unbounded,
            alignment: Alignment::default(),
            taken: Vec::new(),
            recording: None,
        };
        Exchange {
            lanes: (0..shape.lanes).map(|_| Mutex::new(lane())).collect(),
            // Two packets a task on either side keep both busy; more only cost memory.
            capacity: 2 * shape.writers.max(shape.readers).max(1),
            scheduler,
            held: OnceLock::new(),
        }
    }

    /// Where what unread lanes hold at a barrier goes.
    pub(crate) fn hand_held_to(&self, sink: HeldSink) {
        // Set once: a run is set up once.
        let _ = self.held.set(sink);
    }

    /// Puts back what a checkpoint found here, before anything else.
    pub(crate) fn refill(&self, lane: usize, packet: Packet) {
        self.lock(lane).ready.push_back(packet);
    }

    /// Numbers the packets that were put back so that the writers' follow them, which begin at `first`; gives the first number. What kept
    /// them may have left gaps, and a reader behind could wait for none of them.
    pub(crate) fn number_refilled(&self, first: u64) -> u64 {
        let [lane] = &self.lanes[..] else { return first };
        let mut lane = lane.lock().unwrap_or_else(|e| e.into_inner());
        let rows = |packet: &Packet| matches!(packet, Packet::Rows { .. });
        // There were at least as many numbers as packets, but for those that have none.
        let Some(start) = first.checked_sub(lane.ready.iter().filter(|p| rows(p)).count() as u64) else { return first };
        let mut next = start;
        for packet in &mut lane.ready {
            if let Packet::Rows { seq, batches } = packet {
                *seq = next;
                batches.iter_mut().for_each(|batch| batch.seq = next);
                next += 1;
            }
        }
        start
    }

    /// The writers' first number is this one after all.
    pub(crate) fn start_at(&self, first: u64) {
        for lane in 0..self.lanes.len() {
            if let Some(reorder) = &mut self.lock(lane).reorder {
                reorder.start_at(first);
            }
        }
    }

    /// Its readers haven't started and won't before barrier `number` is complete: what it holds then goes to the checkpoint. Nobody is held
    /// back meanwhile, or the barrier wouldn't come through.
    pub(crate) fn record(&self, number: u64) {
        for lane in 0..self.lanes.len() {
            turns::pass();
            let mut guard = self.lock(lane);
            guard.recording = Some(number);
            let woken = std::mem::take(&mut guard.waiting_writers);
            // Without a writer left there is nothing to wait for.
            let held = self.complete(&mut guard, Some(number));
            drop(guard);
            self.give(lane, held);
            self.scheduler.wake_all(woken);
        }
    }

    /// Number of lanes.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Writes; gives the packet back when the lane is full. Then `task` is woken when it isn't any more.
    pub(crate) fn push(&self, lane: usize, task: TaskId, packet: Packet) -> Result<(), Packet> {
        turns::pass();
        let number_of = lane;
        let mut lane = self.lock(lane);
        if lane.readers == 0 {
            return Ok(());
        }
        if let Packet::Barrier(number) = packet {
            lane.alignment.give(task, number);
            let held = self.complete(&mut lane, None);
            let woken = lane.wake_all();
            drop(lane);
            self.give(number_of, held);
            self.scheduler.wake_all(woken);
            return Ok(());
        }
        if !lane.accepts(&packet, self.capacity) || lane.holds_back(task) {
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
        turns::pass();
        let mut lane = self.lock(lane);
        if planted(Planted::RowOvertakesBarrier)
            && matches!(lane.ready.front(), Some(Packet::Barrier(_)))
            && matches!(lane.ready.get(1), Some(Packet::Rows { .. }))
        {
            lane.ready.swap(0, 1);
        }
        if let Some(&Packet::Barrier(number)) = lane.ready.front() {
            if lane.taken.contains(&task) {
                if !lane.waiting_readers.contains(&task) {
                    lane.waiting_readers.push(task);
                }
                return Received::Empty;
            }
            lane.taken.push(task);
            let woken = lane.past_barrier();
            drop(lane);
            self.scheduler.wake_all(woken);
            return Received::Packet(Packet::Barrier(number));
        }
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

    /// A writing task has ended: it counts as having given every barrier.
    pub(crate) fn writer_done(&self, task: TaskId) {
        for number in 0..self.lanes.len() {
            turns::pass();
            let mut lane = self.lock(number);
            lane.writers -= 1;
            lane.alignment.ended(task);
            if lane.writers == 0
                && let Lane { ready, reorder: Some(reorder), .. } = &mut *lane
            {
                reorder.flush(ready);
            }
            let recording = lane.recording.filter(|_| lane.writers == 0);
            let held = match planted(Planted::EndedInputBlocks) {
                true => None,
                false => self.complete(&mut lane, recording),
            };
            let woken = lane.wake_all();
            drop(lane);
            self.give(number, held);
            self.scheduler.wake_all(woken);
        }
    }

    /// Lets a barrier through that every writer has given (`ended`: that none will give any more): into the queue, or, where nobody reads
    /// yet, all that is held out to the checkpoint.
    fn complete(&self, lane: &mut Lane, ended: Option<u64>) -> Option<(u64, Held)> {
        let number = lane.alignment.complete(lane.writers).max(ended.filter(|_| lane.writers == 0))?;
        if let Lane { ready, reorder: Some(reorder), .. } = lane {
            // Rows from a task's end, which have no number: at a barrier they can't wait any longer.
            reorder.release(ready);
        }
        // A barrier before this one that was to be recorded was given up.
        let recorded = lane.recording.take_if(|recorded| *recorded <= number);
        if recorded == Some(number) {
            return Some((number, lane.ready.iter().cloned().collect()));
        }
        if lane.writers > 0 {
            lane.ready.push_back(Packet::Barrier(number));
        }
        None
    }

    fn give(&self, lane: usize, held: Option<(u64, Held)>) {
        if let (Some((number, held)), Some(sink)) = (held, self.held.get()) {
            sink(lane, number, held);
        }
    }

    /// A reading task has ended, perhaps before it read everything.
    pub(crate) fn reader_done(&self, lane: usize, task: TaskId) {
        turns::pass();
        let mut lane = self.lock(lane);
        lane.readers -= 1;
        lane.taken.retain(|&reader| reader != task);
        let mut woken = Vec::new();
        if lane.readers == 0 {
            lane.ready.clear();
            lane.reorder = None;
            lane.alignment.clear();
            woken = std::mem::take(&mut lane.waiting_writers);
        } else if matches!(lane.ready.front(), Some(Packet::Barrier(_))) {
            woken = lane.past_barrier();
        }
        drop(lane);
        self.scheduler.wake_all(woken);
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
        if self.unbounded || self.recording.is_some() {
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

    /// Whether this writer has given a barrier that others haven't.
    fn holds_back(&self, writer: TaskId) -> bool {
        self.alignment.holds_back(writer) && !planted(Planted::ExchangeNotAligned)
    }

    /// Takes the barrier at the front out when every reader has it, and gives whom to wake.
    fn past_barrier(&mut self) -> Vec<TaskId> {
        if self.taken.len() < self.readers {
            return Vec::new();
        }
        self.taken.clear();
        self.ready.pop_front();
        self.wake_all()
    }

    fn wake_all(&mut self) -> Vec<TaskId> {
        let mut woken = std::mem::take(&mut self.waiting_readers);
        woken.append(&mut self.waiting_writers);
        woken
    }

    fn wake_readers(&mut self) -> Vec<TaskId> {
        if self.ready.is_empty() { Vec::new() } else { std::mem::take(&mut self.waiting_readers) }
    }
}
