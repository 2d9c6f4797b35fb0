//! Columns of Parquet files, encoded beside one another. Rows come to a file one batch after the other, so each column of a row group has
//! a *lane*: what waits for it, in order, and its writer. Any thread may take a lane that nobody works on and encode all that waits there;
//! those that bring rows do so before they go on, so that the engine's threads are all that is needed. It may not know what a lane's column
//! belongs to, nor where the bytes go.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::leaf::{self, LeafChunk, LeafWriter};
use super::sink::failed;
use crate::ConnectError;

/// Batches that may wait before those who bring more encode some of them: few, as a task that finds nothing to encode goes on to where the
/// rows are taken, and waits there for the one that encodes.
const WAITING: usize = 1;
/// Batches that may wait at all.
const MOST_WAITING: usize = 32;

/// The lanes of a sink's files.
pub(super) struct Lanes {
    /// The target, as the user would name it.
    name: String,
    /// Columns of a file.
    columns: usize,
    /// Tasks that bring rows, at most.
    tasks: usize,
    /// How columns are written down, once rows have shown it: the same in all files of a sink.
    pub(super) chosen: OnceLock<WriterProperties>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lanes: BTreeMap<u64, Lane>,
    next: u64,
    /// Arrays that wait in all lanes.
    waiting: usize,
    /// How many wait until lanes are empty.
    settling: usize,
    /// Why a lane was lost: the first reason.
    lost: Option<ConnectError>,
}

struct Lane {
    field: FieldRef,
    waiting: Vec<ArrayRef>,
    /// Nothing more comes.
    last: bool,
    work: Work,
    /// Bytes encoded so far, about.
    bytes: usize,
}

enum Work {
    /// Nobody works on it: the writers of its leaves.
    Free(Vec<LeafWriter>),
    /// A thread has its writers.
    Busy,
    /// All is encoded.
    Done(Vec<LeafChunk>),
    /// Encoding failed.
    Lost,
}

/// The lanes of one row group, a run of numbers. Dropped, it is given up.
pub(super) struct Group {
    lanes: Arc<Lanes>,
    numbers: Range<u64>,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.lanes.remove(self);
    }
}

/// What a thread works on.
struct Taken {
    lane: u64,
    field: FieldRef,
    arrays: Vec<ArrayRef>,
    last: bool,
    writers: Vec<LeafWriter>,
}

impl Lanes {
    /// For files of so many columns, whose rows so many tasks bring.
    pub(super) fn new(name: &str, columns: usize, tasks: usize) -> Arc<Lanes> {
        let (columns, chosen, state) = (columns.max(1), OnceLock::new(), Mutex::default());
        Arc::new(Lanes { name: name.into(), columns, tasks, chosen, state, changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held: lists are changed, no more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a row group: for each column its field and the writers of its leaves.
    pub(super) fn open(self: &Arc<Self>, columns: Vec<(FieldRef, Vec<LeafWriter>)>) -> Group {
        let mut state = self.state();
        let first = state.next;
        for (field, writers) in columns {
            let lane = Lane { field, waiting: Vec::new(), last: false, work: Work::Free(writers), bytes: 0 };
            let number = state.next;
            state.lanes.insert(number, lane);
            state.next += 1;
        }
        Group { lanes: self.clone(), numbers: first..state.next }
    }

    /// Appends an array to each lane of a group. Where too much waits, some of it is encoded first.
    ///
    /// # Errors
    /// When encoding fails.
    pub(super) fn put(&self, group: &Group, columns: &[ArrayRef]) -> Result<(), ConnectError> {
        let mut state = self.state();
        for (lane, column) in group.numbers.clone().zip(columns) {
            if let Some(lane) = state.lanes.get_mut(&lane) {
                lane.waiting.push(column.clone());
            }
        }
        state.waiting += columns.len();
        if state.settling > 0 {
            self.changed.notify_all();
        }
        while state.waiting > MOST_WAITING * self.columns {
            match state.take(|_| true) {
                Some(taken) => {
                    drop(state);
                    self.work(taken)?;
                    state = self.state();
                }
                None => state = self.wait(state)?,
            }
        }
        Ok(())
    }

    /// Encodes while much waits and a lane is free.
    ///
    /// # Errors
    /// When encoding fails.
    pub(super) fn help(&self) -> Result<(), ConnectError> {
        let mut state = self.state();
        while state.waiting > WAITING * self.columns || state.settling > 0 {
            let Some(taken) = state.take(|_| true) else { break };
            drop(state);
            self.work(taken)?;
            state = self.state();
        }
        Ok(())
    }

    /// Encodes all that waits in a group. Gives its bytes so far, about.
    ///
    /// # Errors
    /// When encoding fails.
    pub(super) fn settle(&self, group: &Group) -> Result<usize, ConnectError> {
        self.state().settling += 1;
        let settled = self.empty(group);
        self.state().settling -= 1;
        settled
    }

    /// Ends a group: gives the chunks of its columns, in order.
    ///
    /// # Errors
    /// When encoding fails.
    pub(super) fn close(&self, group: &Group) -> Result<Vec<LeafChunk>, ConnectError> {
        for (_, lane) in self.state().lanes.range_mut(group.numbers.clone()) {
            lane.last = true;
        }
        self.settle(group)?;
        let mut chunks = Vec::new();
        for lane in self.remove(group) {
            match lane.work {
                Work::Done(done) => chunks.extend(done),
                Work::Free(_) | Work::Busy | Work::Lost => return Err(self.lost(&self.state())),
            }
        }
        Ok(chunks)
    }

    /// The same where no task brings rows any more: threads of its own help in their place.
    ///
    /// # Errors
    /// When encoding fails.
    pub(super) fn close_last(&self, group: &Group) -> Result<Vec<LeafChunk>, ConnectError> {
        std::thread::scope(|scope| {
            for _ in 1..self.tasks {
                let help = || self.settle(group);
                // Without a thread to spare this one does it all. Whatever fails is found by this one too.
                let _ = std::thread::Builder::new().name("dfc-encode".into()).spawn_scoped(scope, help);
            }
            self.close(group)
        })
    }

    /// Bytes of a group so far, about.
    pub(super) fn bytes(&self, group: &Group) -> usize {
        self.state().lanes.range(group.numbers.clone()).map(|(_, lane)| lane.bytes).sum()
    }

    /// Forgets a group.
    fn remove(&self, group: &Group) -> Vec<Lane> {
        let mut state = self.state();
        let lanes: Vec<Lane> = group.numbers.clone().filter_map(|lane| state.lanes.remove(&lane)).collect();
        state.waiting -= lanes.iter().map(|lane| lane.waiting.len()).sum::<usize>();
        lanes
    }

    fn empty(&self, group: &Group) -> Result<usize, ConnectError> {
        let mut state = self.state();
        loop {
            if let Some(taken) = state.take(|lane| group.numbers.contains(&lane)) {
                drop(state);
                self.work(taken)?;
                state = self.state();
                continue;
            }
            let mut lanes = state.lanes.range(group.numbers.clone());
            if lanes.any(|(_, lane)| matches!(lane.work, Work::Busy)) {
                state = self.wait(state)?;
                continue;
            }
            if state.lost.is_some() {
                return Err(self.lost(&state));
            }
            return Ok(state.lanes.range(group.numbers.clone()).map(|(_, lane)| lane.bytes).sum());
        }
    }

    /// Until something has changed.
    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> Result<MutexGuard<'s, State>, ConnectError> {
        if state.lost.is_some() {
            return Err(self.lost(&state));
        }
        Ok(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner))
    }

    fn lost(&self, state: &State) -> ConnectError {
        let other = || ConnectError::new("R0499", format!("a column of `{}` was lost while it was encoded", self.name));
        state.lost.clone().unwrap_or_else(other)
    }

    fn work(&self, taken: Taken) -> Result<(), ConnectError> {
        let Taken { lane, field, arrays, last, mut writers } = taken;
        // Whatever happens, those who wait for the lane are told.
        let mut back = Back { lanes: self, lane, work: Work::Lost, bytes: 0, why: None };
        let done = encode(&field, &arrays, &mut writers).and_then(|()| {
            back.bytes = writers.iter().map(LeafWriter::bytes).sum();
            Ok(match last {
                true => Work::Done(writers.into_iter().map(LeafWriter::close).collect::<Result<Vec<_>, _>>()?),
                false => Work::Free(writers),
            })
        });
        match done {
            Ok(work) => back.work = work,
            Err(error) => {
                let error = failed(&self.name, error);
                back.why = Some(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl State {
    /// Takes a free lane in which most waits, of those that are wanted; where a group is being ended, the one with most bytes: whoever works on
    /// the longest of all when nothing else is left lets the others wait.
    fn take(&mut self, wanted: impl Fn(u64) -> bool) -> Option<Taken> {
        let free = self.lanes.iter().filter(|(number, lane)| {
            matches!(lane.work, Work::Free(_)) && (lane.last || !lane.waiting.is_empty()) && wanted(**number)
        });
        let ends = self.settling > 0;
        let most = |(_, lane): &(&u64, &Lane)| if ends { lane.bytes } else { lane.waiting.len() };
        let number = free.max_by_key(most).map(|(number, _)| *number)?;
        let lane = self.lanes.get_mut(&number)?;
        match std::mem::replace(&mut lane.work, Work::Busy) {
            Work::Free(writers) => {
                let arrays = std::mem::take(&mut lane.waiting);
                self.waiting -= arrays.len();
                Some(Taken { lane: number, field: lane.field.clone(), arrays, last: lane.last, writers })
            }
            other => {
                lane.work = other;
                None
            }
        }
    }
}

/// Puts a lane back.
struct Back<'l> {
    lanes: &'l Lanes,
    lane: u64,
    work: Work,
    bytes: usize,
    why: Option<ConnectError>,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        let mut state = self.lanes.state();
        let work = std::mem::replace(&mut self.work, Work::Lost);
        if matches!(work, Work::Lost) {
            let why = self.why.take().unwrap_or_else(|| self.lanes.lost(&state));
            state.lost.get_or_insert(why);
        }
        // A group that was given up is gone.
        if let Some(lane) = state.lanes.get_mut(&self.lane) {
            (lane.work, lane.bytes) = (work, self.bytes);
        }
        drop(state);
        self.lanes.changed.notify_all();
    }
}

fn encode(field: &FieldRef, arrays: &[ArrayRef], writers: &mut [LeafWriter]) -> Result<(), ParquetError> {
    arrays.iter().try_for_each(|array| leaf::write(field, array, writers))
}
