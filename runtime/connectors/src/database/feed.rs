//! The source over a database: threads that read splits, and readers that hand out what these have. It may not know SQL.
//!
//! A thread keeps to one split and one connection, and stops when enough of it is waiting; a reader never waits for it. Rows are handed
//! out split by split, so that they stand in the order of the key however many threads read: while the first split that hasn't ended is
//! handed out, others fill. All that is handed out is handed out under one lock, which makes a barrier's positions one cut through all
//! splits (F2, F4).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::ArrayRef;
use dfc_batch::{Batch, Locate, Origin, Place, RowError, value_at};
use dfc_ir::Type;

use super::ORDER;
use super::keys::{Key, KeyValue};
use super::order::{Nulls, Order, OrderOptions};
use super::splits::{Split, SplitState};
use super::window::{Reached, Seen, Tail, Window};
use crate::barriers::{Answered, Noticed, Wanted};
use crate::rows::Faults;
use crate::{ConnectError, Next, OpenContext, Positions, Reader, Source, SourceCounters, Wake};

/// How often a lost connection is made again without a row in between.
const ATTEMPTS: u32 = 6;
/// The wait before the first attempt; doubled for each further one.
const BACKOFF: Duration = Duration::from_millis(200);
/// Fewer rows are not worth several ranges.
const ROWS_OF_A_RANGE: u64 = 20_000;
/// Ranges for each task, so that a slow one doesn't hold up the end.
const RANGES_OF_A_TASK: usize = 2;
/// Rows of a range in large tables: so few that one can wait whole while the one before is handed out.
const ROWS_THAT_WAIT: u64 = 100_000;
/// Ranges at most.
const RANGES: u64 = 1024;
/// Bytes of a split that wait at most, and chunks that may in any case.
const WAITING: (u64, usize) = (16 << 20, 2);

/// Up to which value of the first order column may be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cap {
    pub value: KeyValue,
    /// Not this value itself.
    pub below: bool,
}

/// What is to be read of a split.
pub(crate) struct Span<'a> {
    pub split: &'a Split,
    /// Only rows after this key.
    pub after: Option<&'a Key>,
    /// Rows that are left out.
    pub seen: &'a Seen,
    /// Chunks are to say which of their last rows have one increment.
    pub ties: bool,
    pub cap: Option<&'a Cap>,
    /// At most so many rows.
    pub limit: Option<u64>,
}

/// Rows as they were read.
pub(crate) struct Chunk {
    /// The projected columns.
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
    /// What is wrong with some of them.
    pub faults: Faults,
    pub locate: Arc<dyn Locate>,
    /// The last row's key, also of one that was left out.
    pub last: Option<Key>,
    /// The last rows with one increment, if that was wanted.
    pub tail: Tail<Key>,
    /// Bytes taken from the database.
    pub bytes: u64,
}

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// The connection is gone: another one may do.
    Lost(ConnectError),
    /// It won't work.
    Fatal(ConnectError),
}

/// What is known of the first order column before it is read.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// About how many rows there are.
    pub rows: u64,
    /// Whether some have a null there.
    pub nulls: bool,
}

/// A database as a source needs it.
pub(crate) trait Database: Send + Sync {
    /// A connection for one thread.
    fn connect(&self) -> Result<Box<dyn Connection>, ReadFailure>;

    /// Whether a split is read in several queries, so that its end has to be fixed before.
    fn in_pages(&self) -> bool;
}

/// A connection that reads.
pub(crate) trait Connection {
    /// About how many rows, and whether nulls are among the first order column.
    fn survey(&mut self) -> Result<Survey, ReadFailure>;

    /// Up to where may be read now; `None`: there is no row.
    fn newest(&mut self) -> Result<Option<Cap>, ReadFailure>;

    /// Distinct values of the first order column, ascending, that cut the rows up to the cap into about `parts` equal parts.
    fn bounds(&mut self, parts: usize, cap: Option<&Cap>) -> Result<Vec<KeyValue>, ReadFailure>;

    /// Reads, and gives chunk by chunk until `give` says no.
    fn read(&mut self, span: &Span, give: &mut dyn FnMut(Chunk) -> bool) -> Result<(), ReadFailure>;
}

/// What a source was told.
pub(crate) struct Settings {
    pub options: OrderOptions,
    pub order: Order,
    /// Whose the splits are, for messages.
    pub what: String,
}

/// What was read of a split and waits to be handed out.
#[derive(Default)]
struct Waiting {
    /// Chunks, with the place after each.
    chunks: VecDeque<(Box<Chunk>, Box<Reached>)>,
    bytes: u64,
    /// Nothing comes behind them.
    ended: bool,
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.chunks.len() >= WAITING.1 && self.bytes >= WAITING.0
    }
}

struct State {
    splits: Vec<SplitState>,
    /// Whether a thread has taken it.
    claimed: Vec<bool>,
    /// By split.
    waiting: Vec<Waiting>,
    error: Option<ConnectError>,
    noticed: Noticed<Positions>,
    seq: u64,
    /// Rows still wanted.
    wanted_rows: Option<u64>,
}

impl State {
    /// The split that is handed out: the first that hasn't ended.
    fn current(&self) -> usize {
        self.splits.iter().position(|split| !split.ended).unwrap_or(self.splits.len())
    }

    /// Notes how far everything has been handed out at the barriers that are wanted.
    fn notice(&mut self, shared: &Shared) {
        let (splits, order) = (&self.splits, &shared.settings.order.columns);
        self.noticed.notice(&shared.wanted, || Positions {
            splits: splits.iter().map(|split| split.position(order, !order.is_empty())).collect(),
        });
    }
}

struct Shared {
    database: Box<dyn Database>,
    settings: Settings,
    state: Mutex<State>,
    room: Condvar,
    wanted: Wanted,
    stop: AtomicBool,
    cancelled: Arc<AtomicBool>,
    counters: Arc<SourceCounters>,
    wake: Wake,
    /// Threads that read.
    threads: usize,
    /// Up to where the top split is read, in a run that ends.
    cap: Option<Cap>,
}

/// An opened source over a database.
pub(crate) struct DatabaseSource {
    shared: Arc<Shared>,
    threads: usize,
    started: Once,
    splits: usize,
}

impl DatabaseSource {
    /// Finds the splits, or takes those of a checkpoint.
    ///
    /// # Errors
    /// The database can't be asked; nulls in the increment; positions of another order.
    pub(crate) fn open(
        database: Box<dyn Database>,
        settings: Settings,
        cx: &OpenContext,
    ) -> Result<DatabaseSource, ConnectError> {
        let plain = |failure| match failure {
            ReadFailure::Lost(error) | ReadFailure::Fatal(error) => error,
        };
        let order = &settings.order;
        let mut connection = database.connect().map_err(plain)?;
        let keyed = !order.columns.is_empty();
        let cap = match keyed && (order.increment || database.in_pages()) {
            true => connection.newest().map_err(plain)?,
            false => None,
        };
        // Rows that appear late with a smaller value are waited for before the first is read.
        if let Some(lag) = settings.options.lag {
            sleep(lag, &cx.cancelled);
        }
        let kept = cx.positions.as_ref().filter(|kept| !kept.splits.is_empty());
        let mut splits = Vec::new();
        match kept {
            Some(kept) => {
                for split in &kept.splits {
                    let state = SplitState::resume(split, &order.columns).map_err(|why| {
                        ConnectError::new(ORDER, format!("{} can't be gone on with: {why}", settings.what))
                            .help("bring the key back as it was, or start anew with `--fresh`")
                    })?;
                    splits.push(state);
                }
                // A run that had ended, and is run again: what is new appears at the top, and among the nulls.
                if cx.continues && order.increment && splits.iter().all(|split| split.ended) {
                    splits.retain(|state| state.split.is_top() || state.split.nulls);
                    splits.iter_mut().for_each(|state| state.ended = false);
                }
            }
            None => {
                let survey = if keyed { connection.survey().map_err(plain)? } else { Survey::default() };
                let nulls = order.nulls && survey.nulls;
                let lead = order.columns.first().map_or("", String::as_str);
                if nulls && !order.increment && settings.options.split_by.is_none() {
                    let message = format!("`{lead}` of {} is null in some rows, so it can't break ties", settings.what);
                    return Err(
                        ConnectError::new(ORDER, message).help("name fields that are never null: `tiebreak: [id]`")
                    );
                }
                if nulls && order.increment && settings.options.nulls == Nulls::Error {
                    return Err(ConnectError::new(ORDER, format!("`{lead}` of {} is null in some rows", settings.what))
                        .help("say what becomes of them: `nulls: first` reads them before the others, `nulls: skip` leaves them out"));
                }
                if nulls && !(order.increment && settings.options.nulls == Nulls::Skip) {
                    splits.push(SplitState::new(Split { nulls: true, ..Split::default() }));
                }
                let worth = (survey.rows / ROWS_OF_A_RANGE).min(1024) as usize;
                let parts = match cx.tasks > 1 && cx.limit_rows.is_none() && keyed {
                    true => {
                        worth.min(cx.tasks * RANGES_OF_A_TASK).max((survey.rows / ROWS_THAT_WAIT).min(RANGES) as usize)
                    }
                    false => 1,
                };
                let bounds = match parts > 1 {
                    true => connection.bounds(parts, cap.as_ref()).map_err(plain)?,
                    false => Vec::new(),
                };
                splits.extend(Split::between(bounds).into_iter().map(SplitState::new));
            }
        }
        let open = splits.iter().filter(|state| !state.ended).count();
        let threads = open.min(cx.tasks.max(1)).max(1);
        Ok(DatabaseSource {
            splits: open.max(1),
            threads,
            started: Once::new(),
            shared: Arc::new(Shared {
                database,
                state: Mutex::new(State {
                    claimed: splits.iter().map(|state| state.ended).collect(),
                    waiting: splits.iter().map(|_| Waiting::default()).collect(),
                    splits,
                    error: None,
                    noticed: Noticed::default(),
                    seq: 0,
                    wanted_rows: cx.limit_rows,
                }),
                settings,
                room: Condvar::new(),
                wanted: Wanted::default(),
                stop: AtomicBool::new(false),
                cancelled: cx.cancelled.clone(),
                counters: Arc::default(),
                wake: cx.wake.clone(),
                threads,
                cap,
            }),
        })
    }

    fn start(&self) {
        self.started.call_once(|| {
            for number in 0..self.threads {
                let shared = self.shared.clone();
                let named = std::thread::Builder::new().name(format!("dfc-rows-{number}"));
                if let Err(error) = named.spawn(move || shared.feed()) {
                    let message = format!("a thread for reading can't be started: {}", error.kind());
                    self.shared.fail(ConnectError::new("R0205", message));
                }
            }
        });
    }
}

impl Drop for DatabaseSource {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.room.notify_all();
    }
}

impl Source for DatabaseSource {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        self.start();
        Ok(Box::new(DatabaseReader { shared: self.shared.clone(), answered: Answered::default() }))
    }

    fn total_bytes(&self) -> Option<u64> {
        None
    }

    fn max_tasks(&self) -> usize {
        self.splits
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.shared.counters.clone()
    }

    fn resumable(&self) -> Result<(), String> {
        match self.shared.settings.order.columns.is_empty() {
            false => Ok(()),
            true => Err(format!("{} has no key by which it could go on in the middle", self.shared.settings.what)),
        }
    }

    fn mark(&self, number: u64) {
        self.shared.wanted.want(number);
        self.shared.wake.wake();
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        let mut state = self.shared.lock();
        // Readers that have ended notice nothing any more.
        state.notice(&self.shared);
        state.noticed.report(number).ok_or_else(|| {
            ConnectError::new("R0499", format!("the positions at barrier {number} were asked for, which nobody wanted"))
        })
    }
}

struct DatabaseReader {
    shared: Arc<Shared>,
    answered: Answered,
}

impl Reader for DatabaseReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        let shared = &*self.shared;
        let mut guard = shared.lock();
        let state = &mut *guard;
        state.notice(shared);
        if let Some(number) = state.noticed.answer(&mut self.answered) {
            return Ok(Next::Barrier(number));
        }
        loop {
            let current = state.current();
            let Some(waiting) = state.waiting.get_mut(current) else { break };
            match waiting.chunks.pop_front() {
                None if waiting.ended => {
                    state.splits[current].ended = true;
                    // A thread may wait for this one to take the next.
                    shared.room.notify_all();
                }
                Some((chunk, reached)) => {
                    waiting.bytes -= chunk.bytes;
                    state.splits[current].reached = *reached;
                    let seq = state.seq;
                    state.seq += 1;
                    drop(guard);
                    shared.room.notify_all();
                    shared.counters.bytes.fetch_add(chunk.bytes, Ordering::Relaxed);
                    shared.counters.rows.fetch_add(chunk.rows as u64, Ordering::Relaxed);
                    let Chunk { columns, rows, faults, locate, .. } = *chunk;
                    return Ok(Next::Batch(match faults.is_empty() {
                        true => Batch { columns, rows, seq, origin: Some(Origin { locate, rows: None }) },
                        false => faults.leave_out(columns, rows, seq, locate, errors),
                    }));
                }
                None => break,
            }
        }
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        if state.splits.iter().all(|split| split.ended) || shared.stopped() {
            return Ok(Next::End);
        }
        Ok(Next::Wait(Duration::from_millis(100)))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What a thread panicked over is reported by that thread; the state is whole between two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancelled.load(Ordering::Relaxed)
    }

    fn fail(&self, error: ConnectError) {
        self.lock().error.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
        self.room.notify_all();
        self.wake.wake();
    }

    /// Waits until something holds. `None`: nobody wants anything any more.
    fn wait_for(&self, holds: impl Fn(&State) -> bool) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        while !holds(&state) {
            if self.stopped() {
                return None;
            }
            // The cancelled flag has no bell.
            state = self.room.wait_timeout(state, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(state)
    }

    /// Adds rows to what waits of a split, as soon as there is room. False: nobody wants them any more.
    fn put(&self, split: usize, chunk: Chunk, reached: Reached) -> bool {
        let Some(mut state) = self.wait_for(|state| !state.waiting[split].is_full()) else { return false };
        let mut enough = false;
        if let Some(wanted) = &mut state.wanted_rows {
            *wanted = wanted.saturating_sub(chunk.rows as u64);
            enough = *wanted == 0;
        }
        state.waiting[split].bytes += chunk.bytes;
        state.waiting[split].chunks.push_back((Box::new(chunk), Box::new(reached)));
        drop(state);
        self.wake.wake();
        !enough && !self.stopped()
    }

    /// Nothing comes behind what waits of a split.
    fn end(&self, split: usize) {
        self.lock().waiting[split].ended = true;
        self.wake.wake();
    }

    /// The next split that nobody reads, as soon as it is near the one that is handed out: what is read of it waits until then.
    fn claim(&self) -> Option<(usize, Split, Reached)> {
        let next = |state: &State| state.claimed.iter().position(|claimed| !claimed);
        let near = |at: usize, state: &State| at <= state.current() + self.threads;
        let mut state = self.wait_for(|state| next(state).is_none_or(|at| near(at, state)))?;
        let at = next(&state)?;
        state.claimed[at] = true;
        Some((at, state.splits[at].split.clone(), state.splits[at].reached.clone()))
    }

    /// A thread's work.
    fn feed(&self) {
        let work = std::panic::AssertUnwindSafe(|| self.feed_splits());
        match std::panic::catch_unwind(work) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(error),
            Err(_) => self.fail(ConnectError::new("R0499", format!("reading {} broke down", self.settings.what))),
        }
    }

    fn feed_splits(&self) -> Result<(), ConnectError> {
        let mut connection: Option<Box<dyn Connection>> = None;
        while let Some((at, split, mut reached)) = self.claim() {
            let (mut failures, mut given) = (0, false);
            loop {
                let before = reached.clone();
                match self.feed_split(&mut connection, at, &split, &mut reached, &mut given) {
                    Ok(()) => break,
                    Err(ReadFailure::Fatal(error)) => return Err(error),
                    Err(ReadFailure::Lost(error)) => {
                        connection = None;
                        failures = if reached == before { failures + 1 } else { 1 };
                        let again = failures <= ATTEMPTS && !(given && self.settings.order.columns.is_empty());
                        if !again {
                            return Err(error);
                        }
                        self.pause(BACKOFF * 2u32.pow(failures - 1));
                    }
                }
                if self.stopped() {
                    return Ok(());
                }
            }
            if self.stopped() {
                return Ok(());
            }
            self.end(at);
        }
        Ok(())
    }

    /// Reads a split from where it stands to its end; the top one, where the source follows, for ever.
    fn feed_split(
        &self,
        connection: &mut Option<Box<dyn Connection>>,
        at: usize,
        split: &Split,
        reached: &mut Reached,
        given: &mut bool,
    ) -> Result<(), ReadFailure> {
        let connection = match connection {
            Some(open) => open,
            None => connection.insert(self.database.connect()?),
        };
        let options = &self.settings.options;
        let follows = options.poll.filter(|_| split.is_top());
        let mut cap = self.cap.clone();
        loop {
            let limit = self.lock().wanted_rows;
            // Without a row there is nothing up to which could be read.
            let nothing = self.settings.order.increment && cap.is_none() && !split.nulls;
            if !nothing && limit != Some(0) {
                let order = &self.settings.order;
                let ties = order.increment && !split.nulls && order.columns.len() > 1;
                let from = reached.clone();
                let mut window = Window::new(&from);
                let seen = window.seen.clone();
                let span = Span {
                    split,
                    after: from.start(),
                    seen: &seen,
                    ties,
                    cap: cap.as_ref().filter(|_| split.is_top()),
                    limit: limit.map(|rows| rows + seen.len() as u64),
                };
                connection.read(&span, &mut |mut chunk| {
                    *given = true;
                    let tail = std::mem::take(&mut chunk.tail);
                    match &chunk.last {
                        Some(last) if ties => *reached = window.advance(last.clone(), tail),
                        Some(last) => *reached = Reached { last: Some(last.clone()), ..Reached::default() },
                        None => {}
                    }
                    // Only rows that have been read before: nothing is new.
                    if chunk.rows == 0 && chunk.faults.is_empty() {
                        return !self.stopped();
                    }
                    self.put(at, chunk, reached.clone())
                })?;
            }
            let Some(poll) = follows.filter(|_| limit.is_none()) else { return Ok(()) };
            self.pause(poll);
            if self.stopped() {
                return Ok(());
            }
            cap = connection.newest()?;
            if let Some(lag) = options.lag {
                self.pause(lag);
            }
            if self.stopped() {
                return Ok(());
            }
        }
    }

    fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.stopped() && Instant::now() < end {
            std::thread::sleep((end - Instant::now()).min(Duration::from_millis(50)));
        }
    }
}

fn sleep(time: Duration, cancelled: &AtomicBool) {
    let end = Instant::now() + time;
    while !cancelled.load(Ordering::Relaxed) && Instant::now() < end {
        std::thread::sleep((end - Instant::now()).min(Duration::from_millis(50)));
    }
}

/// Locates rows by their key.
pub(crate) struct KeyedRows {
    /// The table, or `query`.
    pub source: Arc<str>,
    /// The key's columns: name, values, type.
    pub keys: Vec<(String, ArrayRef, Type)>,
}

impl Locate for KeyedRows {
    fn place(&self, row: usize) -> Place {
        let value = |(name, array, ty): &(String, ArrayRef, Type)| {
            format!("{name} = {}", dfc_eval::format_value(&value_at(array, ty, row), ty))
        };
        let key: Vec<String> = self.keys.iter().map(value).collect();
        let source = match key.is_empty() {
            true => self.source.to_string(),
            false => format!("{} ({})", self.source, key.join(", ")),
        };
        Place { source, ..Place::default() }
    }

    fn raw(&self, _row: usize) -> Option<String> {
        None
    }
}
