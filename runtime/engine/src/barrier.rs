//! Where the tasks and the checkpoints meet (F2): which barrier is wanted, who has passed it, and what was handed over at it.
//!
//! A barrier is *complete* when every task has passed it or had ended before, every sink has closed its epoch, and every lane before a
//! stage that hasn't started has given what it holds. What tasks hand over is collected by key; a barrier that is given up loses nothing,
//! because everything stays collected for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use dfc_checkpoint::Part;
use dfc_connect::{ConnectError, Sealed};
use dfc_trial::{Planted, planted, turns};
use rkyv::util::AlignedVec;

use crate::exchange::{Held, Packet};
use crate::schedule::{Scheduler, TaskId};
use crate::state::{Change, Kind, Piece, Saved};

/// Whose state: a stage's operator (slot as for counters), or the exchange before a stage, in one task's copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Position of the stage in the plan.
    pub(crate) stage: usize,
    /// Input 0, then the operators, then the outputs.
    pub(crate) slot: usize,
    /// What kind of state.
    pub(crate) kind: Kind,
    /// Which task's, or which lane's; from [`RESTORED`] on: of a run before this one.
    pub(crate) copy: u64,
}

/// Copies with this number or a larger one were read from a checkpoint.
pub(crate) const RESTORED: u64 = 1 << 32;

/// Something that was handed over and isn't part of a checkpoint yet.
pub(crate) struct Pending {
    /// Whose.
    pub(crate) key: Key,
    /// What it does to what is stored.
    pub(crate) change: Change,
    /// The state.
    pub(crate) content: Content,
}

/// State on its way to the storage.
pub(crate) enum Content {
    /// As it was handed over.
    Saved(Saved),
    /// Archived, for a checkpoint that failed: its bytes and rows.
    Archived(AlignedVec, u64),
    /// Stored, for a checkpoint that failed.
    Stored(Part),
}

/// A complete barrier.
pub(crate) struct Complete {
    /// Its number.
    pub(crate) number: u64,
    /// What is to be stored for it, in order.
    pub(crate) pending: Vec<Pending>,
    /// Keys whose state is no longer any: what is stored for them is not part of it.
    pub(crate) live: BTreeSet<Key>,
    /// Stages that hadn't started at the barrier.
    pub(crate) unstarted: Vec<bool>,
    /// Stages whose tasks had all ended.
    pub(crate) ended: Vec<bool>,
    /// What the sinks closed, by sink; also for barriers before that were given up.
    pub(crate) sealed: Vec<(usize, Sealed)>,
    /// By stage: rows that this run had read from its source at the barrier.
    pub(crate) rows: Vec<u64>,
    /// Above every number that a batch has had.
    pub(crate) ordinals: u64,
    /// From the first task's passing to the last one's.
    pub(crate) alignment: Duration,
    /// The longest that a task stood still to hand over its state.
    pub(crate) stop: Duration,
}

struct TaskEntry {
    stage: usize,
    done: bool,
    /// Rows it had read from a source when it ended.
    rows: u64,
}

struct Flight {
    number: u64,
    tasks: BTreeSet<TaskId>,
    lanes: BTreeSet<(usize, usize)>,
    sinks: BTreeSet<usize>,
    unstarted: Vec<bool>,
    /// Keys of the tasks that have passed.
    live: BTreeSet<Key>,
    /// Stages of tasks that have passed: at the barrier they hadn't ended, whatever they do now.
    alive: BTreeSet<usize>,
    /// Rows that the tasks had read from a source when they passed.
    rows: BTreeMap<TaskId, u64>,
    failed: Option<ConnectError>,
    first: Option<Instant>,
    last: Option<Instant>,
    stop: Duration,
}

impl Flight {
    fn is_complete(&self) -> bool {
        self.tasks.is_empty() && self.lanes.is_empty() && self.sinks.is_empty()
    }
}

struct State {
    tasks: Vec<TaskEntry>,
    started: Vec<bool>,
    flight: Option<Flight>,
    /// Handed over, by the barrier it belongs to.
    pending: Vec<(u64, Pending)>,
    /// What ended tasks leave for ever: rows of join tables.
    kept: BTreeSet<Key>,
    sealed: Vec<(usize, Sealed)>,
    ordinals: u64,
}

/// The meeting place.
pub(crate) struct Barriers {
    wanted: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    scheduler: Arc<Scheduler>,
}

/// Who must pass a barrier.
pub(crate) struct Participants {
    /// Stage of each task.
    pub(crate) tasks: Vec<usize>,
    /// Number of stages.
    pub(crate) stages: usize,
}

/// How a flight stands.
pub(crate) enum Standing {
    /// Still going on.
    Flying,
    /// A sink couldn't close its epoch.
    Failed(usize, ConnectError),
    /// All have passed.
    Complete(Complete),
}

impl Barriers {
    pub(crate) fn new(scheduler: Arc<Scheduler>, ordinals: u64) -> Barriers {
        Barriers {
            wanted: AtomicU64::new(0),
            state: Mutex::new(State {
                tasks: Vec::new(),
                started: Vec::new(),
                flight: None,
                pending: Vec::new(),
                kept: BTreeSet::new(),
                sealed: Vec::new(),
                ordinals,
            }),
            changed: Condvar::new(),
            scheduler,
        }
    }

    /// The tasks of the run, before any of them begins.
    pub(crate) fn enrol(&self, participants: &Participants) {
        let mut state = self.lock();
        state.tasks = participants.tasks.iter().map(|&stage| TaskEntry { stage, done: false, rows: 0 }).collect();
        state.started = vec![false; participants.stages];
    }

    /// The newest barrier that is wanted; 0: none.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Acquire)
    }

    /// Whether a stage may start now: not while a barrier is on its way that counts it as not started.
    pub(crate) fn may_start(&self, stage: usize) -> bool {
        let mut state = self.lock();
        if state.flight.as_ref().is_some_and(|flight| flight.unstarted[stage]) {
            return false;
        }
        state.started[stage] = true;
        true
    }

    /// Begins a barrier: from now on no stage starts that hasn't. `participants` gives the lanes and the sinks that must answer, given those
    /// stages; the tasks hear of it with [`Barriers::want`].
    pub(crate) fn begin(
        &self,
        number: u64,
        participants: impl FnOnce(&[bool]) -> (BTreeSet<(usize, usize)>, BTreeSet<usize>),
    ) -> Vec<bool> {
        let mut state = self.lock();
        let unstarted: Vec<bool> = state.started.iter().map(|started| !started).collect();
        let tasks = state.tasks.iter().enumerate().filter(|(_, task)| !task.done).map(|(id, _)| id).collect();
        let (lanes, sinks) = participants(&unstarted);
        state.flight = Some(Flight {
            number,
            tasks,
            lanes,
            sinks,
            unstarted: unstarted.clone(),
            live: BTreeSet::new(),
            alive: BTreeSet::new(),
            rows: BTreeMap::new(),
            failed: None,
            first: None,
            last: None,
            stop: Duration::ZERO,
        });
        unstarted
    }

    /// The tasks are to pass this barrier.
    pub(crate) fn want(&self, number: u64) {
        self.wanted.store(number, Ordering::Release);
        self.scheduler.wake_everyone();
    }

    /// Gives up the barrier on its way; what it collects all the same belongs to the next one.
    pub(crate) fn give_up(&self) {
        self.lock().flight = None;
        self.scheduler.wake_everyone();
    }

    /// A task has passed a barrier: its state, by slot, and how long it took to hand it over.
    pub(crate) fn pass(
        &self,
        task: TaskId,
        number: u64,
        pieces: Vec<(usize, Piece)>,
        ordinals: u64,
        rows: u64,
        stop: Duration,
    ) {
        turns::pass();
        let mut state = self.lock();
        let stage = state.tasks[task].stage;
        state.ordinals = state.ordinals.max(ordinals);
        let mut keys = Vec::new();
        for (slot, Piece { kind, change, saved }) in pieces {
            let key = Key { stage, slot, kind, copy: task as u64 };
            if kind == Kind::Build {
                state.kept.insert(key.clone());
            }
            if let Some(saved) = saved {
                state.pending.push((number, Pending { key: key.clone(), change, content: Content::Saved(saved) }));
            }
            keys.push(key);
        }
        let now = Instant::now();
        if let Some(flight) = state.flight.as_mut().filter(|flight| flight.number == number) {
            flight.tasks.remove(&task);
            flight.live.extend(keys);
            flight.alive.insert(stage);
            flight.rows.insert(task, rows);
            flight.first.get_or_insert(now);
            flight.last = Some(now);
            flight.stop = flight.stop.max(stop);
        }
        self.changed.notify_all();
    }

    /// A task has ended; `rest`: what it leaves behind for good, which belongs to the barrier after the last one that it passed.
    pub(crate) fn end(&self, task: TaskId, passed: u64, rest: Vec<(usize, Piece)>, ordinals: u64, rows: u64) {
        turns::pass();
        let mut state = self.lock();
        let stage = state.tasks[task].stage;
        state.tasks[task].done = true;
        state.tasks[task].rows = rows;
        state.ordinals = state.ordinals.max(ordinals);
        for (slot, Piece { kind, change, saved }) in rest {
            let key = Key { stage, slot, kind, copy: task as u64 };
            state.kept.insert(key.clone());
            if let Some(saved) = saved {
                state.pending.push((passed + 1, Pending { key, change, content: Content::Saved(saved) }));
            }
        }
        if let Some(flight) = &mut state.flight {
            flight.tasks.remove(&task);
        }
        self.changed.notify_all();
    }

    /// What a lane before a stage that hasn't started holds at a barrier.
    pub(crate) fn hold(&self, stage: usize, exchange: usize, lane: usize, number: u64, held: Held) {
        let mut batches = Vec::new();
        let mut tables = Vec::new();
        for packet in held {
            match packet {
                // A packet's batches keep together by its number.
                Packet::Rows { seq, batches: rows } => {
                    batches.extend(rows.into_iter().map(|batch| dfc_batch::Batch { seq, ..batch }));
                }
                Packet::Partial(table) => tables.push(table),
                Packet::Barrier(_) => {}
            }
        }
        if planted(Planted::WaitingRowsForgotten) {
            batches.clear();
        }
        turns::pass();
        let mut state = self.lock();
        let key = |kind, copy| Key { stage, slot: 0, kind, copy };
        let mut keys = vec![key(Kind::Queue, lane as u64)];
        let saved =
            Saved::Rows { batches: batches.into_iter().map(crate::store::to_hold).collect(), arrivals: Vec::new() };
        state
            .pending
            .push((number, Pending { key: keys[0].clone(), change: Change::Replace, content: Content::Saved(saved) }));
        // Every lane gets the same tables, each for its share of the keys: one lane's are enough.
        for (n, table) in tables.iter().enumerate().filter(|_| lane == 0) {
            let key = key(Kind::Groups, n as u64);
            let saved = Saved::Table(table.clone());
            state
                .pending
                .push((number, Pending { key: key.clone(), change: Change::Replace, content: Content::Saved(saved) }));
            keys.push(key);
        }
        if let Some(flight) = state.flight.as_mut().filter(|flight| flight.number == number) {
            flight.lanes.remove(&(exchange, lane));
            flight.live.extend(keys);
        }
        self.changed.notify_all();
    }

    /// A sink has closed its epoch, or couldn't.
    pub(crate) fn seal(&self, sink: usize, number: u64, sealed: Result<Sealed, ConnectError>) {
        turns::pass();
        let mut state = self.lock();
        match sealed {
            Ok(sealed) => {
                state.sealed.push((sink, sealed));
                if let Some(flight) = state.flight.as_mut().filter(|flight| flight.number == number) {
                    flight.sinks.remove(&sink);
                }
            }
            Err(error) => {
                if let Some(flight) = state.flight.as_mut().filter(|flight| flight.number == number) {
                    flight.failed = Some(error);
                    flight.sinks.insert(sink);
                }
            }
        }
        self.changed.notify_all();
    }

    /// How the barrier on its way stands, after at most `wait`.
    pub(crate) fn standing(&self, wait: Duration) -> Standing {
        let state = self.lock();
        let flying = |state: &mut State| state.flight.as_ref().is_some_and(|f| f.failed.is_none() && !f.is_complete());
        let mut state = turns::wait_while(&self.state, &self.changed, state, Some(wait), flying);
        let Some(flight) = &mut state.flight else { return Standing::Flying };
        if let Some(error) = flight.failed.take() {
            return Standing::Failed(flight.sinks.first().copied().unwrap_or_default(), error);
        }
        if !flight.is_complete() {
            return Standing::Flying;
        }
        let Some(flight) = state.flight.take() else { return Standing::Flying };
        let number = flight.number;
        let (now, later) = std::mem::take(&mut state.pending).into_iter().partition(|(of, _)| *of <= number);
        state.pending = later;
        let now: Vec<(u64, Pending)> = now;
        let stages = state.started.len();
        let mut ended = vec![true; stages];
        state.tasks.iter().filter(|task| !task.done).for_each(|task| ended[task.stage] = false);
        flight.alive.iter().for_each(|&stage| ended[stage] = false);
        let mut rows = vec![0; stages];
        for (id, task) in state.tasks.iter().enumerate() {
            rows[task.stage] += flight.rows.get(&id).copied().unwrap_or(task.rows);
        }
        let (sealed, open) = std::mem::take(&mut state.sealed).into_iter().partition(|(_, s)| s.number <= number);
        state.sealed = open;
        let live = flight.live.iter().chain(&state.kept).cloned().collect();
        let complete = Complete {
            number,
            pending: now.into_iter().map(|(_, pending)| pending).collect(),
            live,
            unstarted: flight.unstarted,
            ended,
            sealed,
            rows,
            ordinals: state.ordinals,
            stop: flight.stop,
            alignment: flight.last.zip(flight.first).map_or(Duration::ZERO, |(last, first)| last - first),
        };
        drop(state);
        // Stages that had to wait may start.
        self.scheduler.wake_everyone();
        Standing::Complete(complete)
    }

    /// Puts back what a checkpoint that failed was to store.
    pub(crate) fn put_back(&self, number: u64, pending: Vec<Pending>, sealed: Vec<(usize, Sealed)>) {
        let pending = if planted(Planted::AbandonedStateDropped) { Vec::new() } else { pending };
        let sealed = if planted(Planted::AbandonedRowsDropped) { Vec::new() } else { sealed };
        let mut state = self.lock();
        let later = std::mem::take(&mut state.pending);
        state.pending = pending.into_iter().map(|pending| (number, pending)).chain(later).collect();
        let open = std::mem::take(&mut state.sealed);
        state.sealed = sealed.into_iter().chain(open).collect();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// State as it is stored, by key, in order.
pub(crate) type Stored = BTreeMap<Key, Vec<Part>>;
