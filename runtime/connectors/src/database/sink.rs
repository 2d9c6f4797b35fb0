//! The sink over a database: rows are spooled, sealed at barriers and applied with a ledger (D12, F7). Without checkpoints all rows are
//! applied in one transaction at the end. It may not know SQL.
//!
//! A *lane* is what one connection writes: a file of each epoch, and an entry of the ledger that moves in the same transaction as the
//! lane's rows. Usually there is one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dfc_batch::Batch;
use dfc_ir::{Schema, Type};
use serde_json::{Value as Json, json};

use super::spool::{OpenFile, SpoolReader, keep_only, sync_folder};
use super::{LEDGER, SPOOL};
use crate::options::OptionReader;
use crate::passing;
use crate::{ConnectError, Encoded, Encoder, Ledger, OpenContext, Residue, Sealed, Sink, SinkSummary, SpoolFile};
use dfc_trial::{Planted, planted};

/// Bytes of rows that an idle database is given before a checkpoint is due: loading them takes so long that the checkpoint costs little.
const WORTH_LOADING: u64 = 16 << 20;

/// What happens with the rows of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Insert,
    Upsert,
    Replace,
    Truncate,
}

/// The modes by name; the first is the default.
pub(crate) const MODES: [(&str, Mode); 4] =
    [("insert", Mode::Insert), ("upsert", Mode::Upsert), ("replace", Mode::Replace), ("truncate", Mode::Truncate)];

/// The columns of `key:`, which goes with `mode: upsert` and with nothing else.
///
/// # Errors
/// One without the other.
pub(crate) fn upsert_key(options: &OptionReader, mode: Mode, schema: &Schema) -> Result<Vec<String>, ConnectError> {
    let wrong = |message: &str| Err(ConnectError::new("R0202", message));
    let external = |name: &String| match schema.index_of(name) {
        Some(at) => schema.fields[at].external_name().to_string(),
        None => name.clone(),
    };
    match (mode, options.names("key")?) {
        (Mode::Upsert, Some(key)) if !key.is_empty() => Ok(key.iter().map(external).collect()),
        (Mode::Upsert, _) => {
            wrong("`mode: upsert` needs `key`, the fields that find the row that is there: `key: [id]`")
        }
        (_, None) => Ok(Vec::new()),
        (_, Some(_)) => wrong("`key` goes with `mode: upsert` only"),
    }
}

/// Where the field stands by which rows say that the row of their key is to be removed: `delete:`, which goes with `mode: upsert`. It is
/// no column of the target.
///
/// # Errors
/// Another mode; no such field, one that isn't a `bool`, one of the key.
pub(crate) fn delete_mark(
    options: &OptionReader,
    mode: Mode,
    schema: &Schema,
    key: &[String],
) -> Result<Option<usize>, ConnectError> {
    let wrong = |message: String| Err(ConnectError::new("R0202", message));
    let Some(name) = options.names("delete")?.and_then(|names| names.into_iter().next()) else { return Ok(None) };
    let Some(at) = schema.index_of(&name) else {
        return wrong(format!("`delete` names `{name}`, which is no field"));
    };
    let field = &schema.fields[at];
    match mode {
        Mode::Upsert if field.ty.ty != Type::Bool => {
            wrong(format!("`delete` takes a field of type bool, `{name}` is {}", field.ty.ty))
        }
        Mode::Upsert if key.iter().any(|column| column == field.external_name()) => {
            wrong(format!("`{name}` can't be part of the key and say what is deleted"))
        }
        Mode::Upsert => Ok(Some(at)),
        _ => wrong("`delete` goes with `mode: upsert` only: rows are found by their `key`".into()),
    }
}

/// The fields that become columns: without the mark.
pub(crate) fn unmarked(schema: &Schema, mark: Option<usize>) -> Schema {
    let kept = schema.fields.iter().enumerate().filter(|(at, _)| Some(*at) != mark);
    Schema { fields: kept.map(|(_, field)| field.clone()).collect() }
}

/// A batch's columns with the mark as the last one.
pub(crate) fn mark_last(mut batch: Batch, mark: Option<usize>) -> Batch {
    if let Some(at) = mark {
        batch.columns[at..].rotate_left(1);
    }
    batch
}

/// An entry of a target's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LedgerRow {
    pub lineage: String,
    pub lane: u32,
    /// The last epoch that is in the table.
    pub n: u64,
    /// Rows of all epochs.
    pub rows: u64,
    /// The job has ended, and what had to be swapped is swapped.
    pub finished: bool,
}

/// Whose entries they are.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub lineage: String,
    pub job: String,
    /// The sink's name in the job.
    pub sink: String,
    /// The table that rows are loaded into until the end, where the mode is `replace`.
    pub staging: Option<String>,
}

/// A move of a ledger's entry: compare and set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move<'a> {
    pub owner: &'a Owner,
    pub lane: u32,
    pub from: u64,
    pub to: u64,
    pub rows: u64,
}

/// Rows that are loaded in one transaction.
pub(crate) struct Load<'a> {
    /// `None`: the job takes no checkpoints, so nothing is kept of it.
    pub ledger: Option<Move<'a>>,
    /// Make the table first, if it isn't there.
    pub create: bool,
    /// Remove all rows first.
    pub clear: bool,
    pub rows: SpoolReader,
    pub throttle: Throttle,
}

/// What became of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// The rows are in the table.
    Done,
    /// Nothing was done: the entry didn't stand where it should.
    Elsewhere,
}

/// A table as the sink needs it.
pub(crate) trait Target: Send + Sync {
    /// For messages and the summary.
    fn describe(&self) -> String;

    /// Turns batches into the spool's form.
    fn encoder(&self) -> Box<dyn Encoder>;

    /// A connection.
    ///
    /// # Errors
    /// When there is none to be had.
    fn connect(&self) -> Result<Box<dyn Session>, ConnectError>;
}

/// A connection that writes.
pub(crate) trait Session: Send {
    /// The ledger's entries of a job's sink, of all lineages; none where there is no ledger.
    fn entries(&mut self, owner: &Owner) -> Result<Vec<LedgerRow>, ConnectError>;

    /// Makes what has to be there before the first row: the table, if asked for, the ledger, an entry for each lane, the staging table.
    fn prepare(&mut self, owner: &Owner, lanes: u32) -> Result<(), ConnectError>;

    /// Loads rows in one transaction.
    fn load(&mut self, load: Load) -> Result<Loaded, ConnectError>;

    /// Swaps the staging table in, if there is one, and marks the entries as finished, in one transaction.
    fn finish(&mut self, owner: &Owner) -> Result<(), ConnectError>;

    /// Removes the entries and the staging table of a lineage.
    fn forget(&mut self, owner: &Owner) -> Result<(), ConnectError>;
}

/// What a sink was told.
pub(crate) struct TargetOptions {
    pub mode: Mode,
    pub create: bool,
    pub lanes: u32,
    /// Rows a second.
    pub rate: Option<u64>,
}

/// Keeps to a rate.
#[derive(Clone)]
pub(crate) struct Throttle {
    rate: Option<u64>,
    start: Instant,
    rows: u64,
    cancelled: Arc<AtomicBool>,
}

impl Throttle {
    /// So many rows were written: waits until that was slow enough.
    pub(crate) fn pass(&mut self, rows: u64) {
        self.rows += rows;
        let Some(rate) = self.rate else { return };
        let due = self.start + Duration::from_secs_f64(self.rows as f64 / rate as f64);
        while Instant::now() < due && !self.cancelled.load(Ordering::Relaxed) {
            std::thread::sleep((due - Instant::now()).min(Duration::from_millis(50)));
        }
    }
}

/// A sealed file with its lane and its rows.
type Closed = (SpoolFile, u32, u64);

struct State {
    open: Vec<Option<OpenFile>>,
    /// Closed, and part of no epoch yet.
    closed: Vec<Closed>,
    next_lane: usize,
    serial: u64,
    rows: u64,
    bytes: u64,
}

/// An opened sink over a database.
pub(crate) struct DatabaseSink {
    target: Box<dyn Target>,
    options: TargetOptions,
    folder: PathBuf,
    /// Removed with the sink, where the job takes no checkpoints.
    _own: Option<tempfile::TempDir>,
    owner: Option<Owner>,
    resumed_at: Option<u64>,
    state: Mutex<State>,
    /// Where the entry of each lane stands; empty until it was read.
    applied: Mutex<Vec<u64>>,
    /// Files of epochs that are in the table: removed when the next one is, since only then everybody knows that they aren't needed.
    spent: Mutex<Vec<PathBuf>>,
    /// By number: files of the epochs that the checkpoint has brought along. Those that the table has are spent as soon as that is known.
    brought: Mutex<Vec<(u64, Vec<PathBuf>)>>,
    /// What was removed when it was opened.
    residue: Residue,
    sessions: Mutex<Vec<Box<dyn Session>>>,
    cancelled: Arc<AtomicBool>,
}

impl DatabaseSink {
    /// Makes the spool and, with checkpoints, what has to be in the database before the first row.
    ///
    /// # Errors
    /// The spool's folder can't be used; the database refuses.
    pub(crate) fn open(
        target: Box<dyn Target>,
        session: Box<dyn Session>,
        options: TargetOptions,
        cx: &OpenContext,
    ) -> Result<DatabaseSink, ConnectError> {
        let mut own = None;
        let folder = match &cx.epochs {
            Some(epochs) => epochs.spool.clone(),
            None => {
                let made = tempfile::Builder::new().prefix("dfc-spool-").tempdir();
                let made = made.map_err(|error| {
                    ConnectError::new("R0205", format!("a folder for the spool can't be made: {error}"))
                })?;
                own.insert(made).path().to_path_buf()
            }
        };
        let owner = cx.epochs.as_ref().map(|epochs| Owner {
            lineage: epochs.lineage.clone(),
            job: cx.job.clone(),
            sink: cx.node.clone(),
            staging: (options.mode == Mode::Replace).then(|| staging_name(&epochs.lineage, &cx.node)),
        });
        let resume = cx.epochs.as_ref().and_then(|epochs| epochs.resume.as_ref());
        let kept: Vec<&str> = resume
            .iter()
            .flat_map(|resume| &resume.sealed)
            .flat_map(|sealed| &sealed.files)
            .map(|f| f.path.as_str())
            .collect();
        let residue = if owner.is_some() { keep_only(&folder, &kept)? } else { Residue::default() };
        let brought = resume.iter().flat_map(|resume| &resume.sealed).map(|sealed| {
            let files = sealed.files.iter().map(|file| folder.join(&file.path));
            (sealed.number, files.collect())
        });
        let brought = brought.collect();
        let serial =
            kept.iter().filter_map(|name| name.split('-').nth(1)?.parse::<u64>().ok()).max().map_or(0, |n| n + 1);
        let sink = DatabaseSink {
            resumed_at: resume.map(|resume| resume.number),
            state: Mutex::new(State {
                open: (0..options.lanes).map(|_| None).collect(),
                closed: Vec::new(),
                next_lane: 0,
                serial,
                rows: 0,
                bytes: 0,
            }),
            applied: Mutex::default(),
            spent: Mutex::default(),
            brought: Mutex::new(brought),
            residue,
            sessions: Mutex::new(vec![session]),
            cancelled: cx.cancelled.clone(),
            target,
            options,
            folder,
            _own: own,
            owner,
        };
        sink.prepare(cx.fresh)?;
        Ok(sink)
    }

    /// What has to be in the database before the first row.
    fn prepare(&self, fresh: bool) -> Result<(), ConnectError> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let mut session = self.session()?;
        let entries = session.entries(owner)?;
        let ours = entries.iter().filter(|entry| entry.lineage == owner.lineage).count();
        // An entry that somebody has removed isn't made again: nobody would notice.
        if ours == 0 && self.resumed_at.is_none_or(|number| number == 0) {
            if !fresh {
                self.alone(owner, &entries)?;
            }
            // Of runs that have ended nothing needs to be remembered; of others only if nobody gave them up.
            let mut over: Vec<&LedgerRow> = entries.iter().filter(|entry| fresh || entry.finished).collect();
            over.dedup_by_key(|entry| entry.lineage.clone());
            for entry in over {
                let staging = owner.staging.as_ref().map(|_| staging_name(&entry.lineage, &owner.sink));
                session.forget(&Owner { lineage: entry.lineage.clone(), staging, ..owner.clone() })?;
            }
            session.prepare(owner, self.options.lanes)?;
        }
        self.give_back(session);
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session>, ConnectError> {
        let kept = lock(&self.sessions).pop();
        kept.map_or_else(|| self.target.connect(), Ok)
    }

    fn give_back(&self, session: Box<dyn Session>) {
        lock(&self.sessions).push(session);
    }

    fn throttle(&self) -> Throttle {
        let lanes = u64::from(self.options.lanes.max(1));
        Throttle {
            rate: self.options.rate.map(|rate| (rate / lanes).max(1)),
            start: Instant::now(),
            rows: 0,
            cancelled: self.cancelled.clone(),
        }
    }

    /// Refuses where another run of the job hasn't ended.
    fn alone(&self, owner: &Owner, entries: &[LedgerRow]) -> Result<(), ConnectError> {
        if let Some(other) = entries.iter().find(|entry| entry.lineage != owner.lineage && !entry.finished) {
            let message = format!(
                "{} is being written by another run of this job (lineage {}, epoch {}), which has not ended",
                self.target.describe(),
                &other.lineage.get(..12).unwrap_or(&other.lineage),
                other.n
            );
            return Err(ConnectError::new(LEDGER, message)
                .help("go on with that run where its checkpoints are; if they are lost, start with `--fresh`: what that run wrote stays in the table"));
        }
        Ok(())
    }

    /// Reads the entries of this lineage, and refuses where the target belongs to another one.
    fn stand(&self, owner: &Owner) -> Result<Option<Vec<u64>>, ConnectError> {
        let mut session = self.session()?;
        let entries = session.entries(owner)?;
        self.give_back(session);
        self.alone(owner, &entries)?;
        let mut lanes: Vec<&LedgerRow> = entries.iter().filter(|entry| entry.lineage == owner.lineage).collect();
        lanes.sort_by_key(|entry| entry.lane);
        let stand: Vec<u64> = lanes.iter().map(|entry| entry.n).collect();
        lock(&self.applied).clone_from(&stand);
        if let Some(&done) = stand.iter().min() {
            let mut brought = lock(&self.brought);
            let (over, left) = std::mem::take(&mut *brought).into_iter().partition(|(number, _)| *number <= done);
            *brought = left;
            let over: Vec<(u64, Vec<PathBuf>)> = over;
            lock(&self.spent).extend(over.into_iter().flat_map(|(_, files)| files));
        }
        Ok((!stand.is_empty()).then_some(stand))
    }

    /// Applies one lane's share of an epoch.
    fn apply_lane(
        &self,
        owner: &Owner,
        lane: u32,
        from: u64,
        sealed: &Sealed,
        files: Vec<Closed>,
    ) -> Result<(), ConnectError> {
        let to = sealed.number;
        let rows = files.iter().map(|(_, _, rows)| rows).sum();
        let files = files.into_iter().map(|(file, ..)| file).collect();
        let mut session = self.session()?;
        let load = Load {
            ledger: Some(Move { owner, lane, from, to, rows }),
            create: false,
            clear: self.options.mode == Mode::Truncate && lane == 0 && from == 0,
            rows: SpoolReader::new(&self.folder, files),
            throttle: self.throttle(),
        };
        // Whatever fails, the session is given up: its state isn't known.
        passing("table-load")?;
        session.load(load)?;
        passing("table-loaded")?;
        // What was reported is not believed; what stands in the ledger is.
        let entries = session.entries(owner)?;
        let stands =
            entries.iter().find(|entry| entry.lineage == owner.lineage && entry.lane == lane).map(|entry| entry.n);
        if stands != Some(to) {
            let message = match stands {
                None => format!("the entry of this job in the ledger of {} is gone", self.target.describe()),
                Some(n) => format!(
                    "{} was written by another process: its ledger says epoch {n}, this run has applied {from} and comes with {to}",
                    self.target.describe()
                ),
            };
            return Err(ConnectError::new(LEDGER, message).help("is the job running somewhere else, too?"));
        }
        self.give_back(session);
        lock(&self.applied)[lane as usize] = to;
        Ok(())
    }
}

/// The staging table of a lineage's sink: short enough for every database.
fn staging_name(lineage: &str, sink: &str) -> String {
    format!("_dfc_{}_{:08x}", lineage.get(..12).unwrap_or(lineage), crc32fast::hash(sink.as_bytes()))
}

impl Sink for DatabaseSink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(self.target.encoder())
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        let Encoded::Bytes(bytes) = encoded else {
            return Err(ConnectError::new("R0499", "rows that are not encoded were given to a database"));
        };
        let mut state = lock(&self.state);
        let state = &mut *state;
        let lane = state.next_lane;
        state.next_lane = (lane + 1) % state.open.len();
        let file = match &mut state.open[lane] {
            Some(file) => file,
            none => {
                let lineage = self.owner.as_ref().map_or("rows", |owner| owner.lineage.get(..12).unwrap_or("rows"));
                let file = OpenFile::create(&self.folder, format!("{lineage}-{:08}-{lane}.rows", state.serial))?;
                state.serial += 1;
                none.insert(file)
            }
        };
        file.put(&bytes, rows)?;
        state.rows += rows;
        state.bytes += bytes.len() as u64;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let target = Some(self.target.describe());
        let Some(owner) = &self.owner else {
            let files = close(&mut lock(&self.state))?;
            let mut session = self.session()?;
            session.load(Load {
                ledger: None,
                create: self.options.create,
                clear: matches!(self.options.mode, Mode::Truncate | Mode::Replace),
                rows: SpoolReader::new(&self.folder, files.into_iter().map(|(file, ..)| file).collect()),
                throttle: self.throttle(),
            })?;
            let state = lock(&self.state);
            return Ok(SinkSummary { target, rows: state.rows, bytes: state.bytes });
        };
        remove_all(std::mem::take(&mut *lock(&self.spent)));
        let mut session = self.session()?;
        session.finish(owner)?;
        let entries = session.entries(owner)?;
        self.give_back(session);
        let rows = entries.iter().filter(|entry| entry.lineage == owner.lineage).map(|entry| entry.rows).sum();
        Ok(SinkSummary { target, rows, bytes: lock(&self.state).bytes })
    }

    fn abort(&self) {
        let Some(owner) = &self.owner else { return };
        // What can't be removed now is recognised by its lineage, and does no harm.
        if let Ok(mut session) = self.session() {
            let _ = session.forget(owner);
        }
        let _ = keep_only(&self.folder, &[]);
    }

    fn epochs(&self) -> Result<(), String> {
        Ok(())
    }

    fn residue(&self) -> Residue {
        self.residue
    }

    fn open_bytes(&self) -> u64 {
        let state = lock(&self.state);
        state.open.iter().flatten().map(OpenFile::bytes).chain(state.closed.iter().map(|(file, ..)| file.to)).sum()
    }

    fn worth_applying(&self) -> Option<u64> {
        Some(WORTH_LOADING)
    }

    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        let mut state = lock(&self.state);
        close(&mut state)?;
        sync_folder(&self.folder)?;
        let closed = std::mem::take(&mut state.closed);
        Ok(Sealed {
            number,
            rows: closed.iter().map(|(.., rows)| rows).sum(),
            bytes: closed.iter().map(|(file, ..)| file.to).sum(),
            state: json!({ "lanes": closed.iter().map(|(_, lane, rows)| json!([lane, rows])).collect::<Vec<_>>() }),
            files: closed.into_iter().map(|(file, ..)| file).collect(),
        })
    }

    fn apply(&self, sealed: &Sealed) -> Result<(), ConnectError> {
        let Some(owner) = &self.owner else {
            return Err(ConnectError::new("R0499", "a sink of a job without checkpoints was asked to apply an epoch"));
        };
        let closed = files_of(sealed)?;
        if lock(&self.applied).is_empty() {
            self.stand(owner)?;
        }
        let stand = lock(&self.applied).clone();
        if stand.is_empty() {
            return Err(ConnectError::new(
                LEDGER,
                format!("the entry of this job in the ledger of {} is gone", self.target.describe()),
            )
            .help("somebody has removed it from the table `_dfc_ledger`: put it back, or start with `--fresh`"));
        }
        if let Some((_, lane, _)) = closed.iter().find(|(_, lane, _)| *lane as usize >= stand.len()) {
            return Err(ConnectError::new(
                SPOOL,
                format!("epoch {} has rows for the connection {lane}, which isn't in the ledger", sealed.number),
            ));
        }
        let pending: Vec<(u32, u64)> =
            (0u32..).zip(stand).filter(|(_, n)| *n < sealed.number || planted(Planted::AppliedTwice)).collect();
        let work = |(lane, from): (u32, u64)| {
            let files = closed.iter().filter(|(_, of, _)| *of == lane).cloned().collect();
            self.apply_lane(owner, lane, from, sealed, files)
        };
        // The first one may have to clear the table before the others write.
        let Some((&first, rest)) = pending.split_first() else { return Ok(()) };
        let result = if rest.is_empty() || (self.options.mode == Mode::Truncate && first.1 == 0) {
            work(first).and_then(|()| side_by_side(rest, work))
        } else {
            side_by_side(&pending, work)
        };
        match &result {
            // What stands there now has to be read again.
            Err(_) => lock(&self.applied).clear(),
            // The rows are in the table for good.
            Ok(()) => {
                let files = closed.iter().map(|(file, ..)| self.folder.join(&file.path)).collect();
                remove_all(std::mem::replace(&mut *lock(&self.spent), files));
            }
        }
        result
    }

    fn ledger(&self) -> Result<Ledger, ConnectError> {
        let Some(owner) = &self.owner else { return Ok(Ledger::Forgetful) };
        Ok(match self.stand(owner)? {
            Some(lanes) => Ledger::Applied(lanes.into_iter().min().unwrap_or(0)),
            None => Ledger::Missing,
        })
    }
}

/// Does the work of several lanes at once, and gives the first failure.
fn side_by_side(
    lanes: &[(u32, u64)],
    work: impl Fn((u32, u64)) -> Result<(), ConnectError> + Sync,
) -> Result<(), ConnectError> {
    match lanes {
        [] => Ok(()),
        [one] => work(*one),
        many => std::thread::scope(|scope| {
            let work = &work;
            let running: Vec<_> = many.iter().map(|lane| scope.spawn(move || work(*lane))).collect();
            let results = running.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(ConnectError::new("R0499", "applying an epoch broke down")))
            });
            // All are waited for.
            results.collect::<Vec<_>>().into_iter().collect()
        }),
    }
}

/// Closes the open files; what was closed before a failure stays closed.
fn close(state: &mut State) -> Result<Vec<Closed>, ConnectError> {
    for (lane, slot) in (0u32..).zip(&mut state.open) {
        if let Some(file) = slot {
            let closed = file.close()?;
            state.closed.push((closed, lane, file.rows));
            *slot = None;
        }
    }
    Ok(state.closed.clone())
}

/// The files of an epoch with their lanes and rows.
fn files_of(sealed: &Sealed) -> Result<Vec<Closed>, ConnectError> {
    let broken =
        || ConnectError::new(SPOOL, format!("what the checkpoint says of epoch {} makes no sense", sealed.number));
    let lanes = sealed.state.get("lanes").and_then(Json::as_array).ok_or_else(broken)?;
    if lanes.len() != sealed.files.len() {
        return Err(broken());
    }
    let files = sealed.files.iter().zip(lanes).map(|(file, lane)| {
        // A name of the spool's folder, and nothing else.
        let plain = Path::new(&file.path).file_name().is_some_and(|name| name == file.path.as_str());
        let lane_number = lane.get(0).and_then(Json::as_u64).and_then(|lane| u32::try_from(lane).ok());
        match (plain, lane_number, lane.get(1).and_then(Json::as_u64)) {
            (true, Some(number), Some(rows)) => Ok((file.clone(), number, rows)),
            _ => Err(broken()),
        }
    });
    files.collect()
}

/// A file that can't be removed now goes with the next start's residue.
fn remove_all(files: Vec<PathBuf>) {
    files.into_iter().for_each(|file| drop(std::fs::remove_file(file)));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is locked is whole between two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
