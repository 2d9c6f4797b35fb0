//! Connectors with positions and epochs whose outside world outlives a run: a run that fails half-way is a crash that leaves exactly what
//! real ones would.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dfc_batch::{Batch, RowError};
use dfc_checkpoint::disk::ModelDisk;
use dfc_connect::{
    ConnectError, Encoded, Encoder, Ledger, Next, OpenContext, Positions, Reader, Sealed, Sink, SinkSummary, Source,
    SourceCounters, SplitPosition,
};
use dfc_engine::{Builtin, ConnectorSet};
use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};
use dfc_trial::turns;
use serde_json::json;

/// The outside world.
#[derive(Clone, Default)]
pub struct World(Arc<Inner>);

#[derive(Default)]
struct Inner {
    sources: Mutex<HashMap<String, Arc<Vec<Batch>>>>,
    targets: Mutex<HashMap<String, Target>>,
    /// By sinks without epochs.
    written: Mutex<HashMap<String, Vec<Batch>>>,
    /// So many batches are read before the run breaks down; below 0: it doesn't.
    fuse: AtomicI64,
    /// Seeds what goes wrong at random.
    dice: AtomicU64,
    /// From so many rows on it is worth applying them early; 0: never.
    worth: AtomicU64,
    /// The machine's disk: each operation of the connectors counts as one of its, and when it has stopped they have too.
    disk: Option<ModelDisk>,
    /// Before the operation of this number somebody presses Ctrl-C.
    cancel_at: AtomicU64,
    cancelled: Mutex<Arc<AtomicBool>>,
}

/// A target with a ledger.
#[derive(Default)]
struct Target {
    applied: u64,
    rows: Vec<Batch>,
    spool: BTreeMap<u64, Vec<Batch>>,
}

impl World {
    /// The world around a machine with this disk.
    pub fn around(disk: &ModelDisk) -> World {
        World(Arc::new(Inner {
            fuse: AtomicI64::new(-1),
            disk: Some(disk.clone()),
            cancel_at: AtomicU64::new(u64::MAX),
            ..Inner::default()
        }))
    }

    /// Sets this flag before the operation of this number.
    pub fn cancel_at(&self, operation: u64, cancelled: &Arc<AtomicBool>) {
        *self.0.cancelled.lock().unwrap() = cancelled.clone();
        self.0.cancel_at.store(operation, Ordering::SeqCst);
    }

    /// Something is about to happen outside.
    fn operation(&self) -> Result<(), ConnectError> {
        let Some(disk) = &self.0.disk else { return Ok(()) };
        if disk.operations() >= self.0.cancel_at.load(Ordering::SeqCst) {
            self.0.cancelled.lock().unwrap().store(true, Ordering::SeqCst);
        }
        disk.elsewhere().map_err(|error| match disk.is_stopped() {
            // Nothing that would be tried again.
            true => ConnectError::new("R0699", "the machine has stopped"),
            false => ConnectError::new("R0203", error.to_string()),
        })
    }

    fn is_stopped(&self) -> bool {
        self.0.disk.as_ref().is_some_and(ModelDisk::is_stopped)
    }

    pub fn put(&self, name: &str, batches: Vec<Batch>) {
        self.0.sources.lock().unwrap().insert(name.into(), Arc::new(batches));
    }

    /// Breaks the next run down after so many batches.
    pub fn fuse(&self, batches: i64) {
        self.0.fuse.store(batches, Ordering::SeqCst);
    }

    /// Targets that have nothing to do want so many rows before a checkpoint is due.
    pub fn eager(&self, rows: u64) {
        self.0.worth.store(rows, Ordering::SeqCst);
    }

    /// What a target shows.
    pub fn rows(&self, name: &str) -> Vec<Batch> {
        self.targets().get(name).map(|target| target.rows.clone()).unwrap_or_default()
    }

    /// What was written without epochs.
    pub fn written(&self, name: &str) -> Vec<Batch> {
        self.0.written.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    /// Epochs that are still spooled.
    pub fn spooled(&self, name: &str) -> usize {
        self.targets().get(name).map_or(0, |target| target.spool.len())
    }

    fn targets(&self) -> MutexGuard<'_, HashMap<String, Target>> {
        self.0.targets.lock().unwrap()
    }

    fn unlucky(&self, one_in: u64) -> bool {
        if let Some(random) = turns::random(one_in) {
            return random == 0;
        }
        let mut z = self.0.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).is_multiple_of(one_in)
    }
}

impl ConnectorSet for World {
    fn open_source(&self, spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
        self.operation()?;
        if ["generate", "csv"].contains(&spec.connector.as_str()) {
            return Ok(Box::new(Slow { world: self.clone(), source: Builtin.open_source(spec, cx)? }));
        }
        let batches = self.0.sources.lock().unwrap().get(&spec.connector).cloned().unwrap_or_default();
        let at = |positions: &Positions| positions.splits[0].position["batch"].as_u64().unwrap_or(0) as usize;
        let first = cx.positions.as_ref().map_or(0, at);
        let state = State { next: first, mark: 0, at_mark: 0 };
        Ok(Box::new(ModelSource {
            world: self.clone(),
            batches,
            first,
            state: Arc::new(Mutex::new(state)),
            counters: Arc::default(),
        }))
    }

    fn open_sink(&self, spec: &SinkSpec, _schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
        self.operation()?;
        let mut targets = self.targets();
        let target = targets.entry(spec.connector.clone()).or_default();
        match cx.epochs.as_ref().and_then(|epochs| epochs.resume.as_ref()) {
            Some(resume) => target.spool.retain(|number, _| resume.sealed.iter().any(|s| s.number == *number)),
            None => *target = Target::default(),
        }
        Ok(Box::new(ModelSink { world: self.clone(), name: spec.connector.clone(), open: Mutex::default() }))
    }
}

struct State {
    next: usize,
    mark: u64,
    at_mark: usize,
}

struct ModelSource {
    world: World,
    batches: Arc<Vec<Batch>>,
    first: usize,
    state: Arc<Mutex<State>>,
    counters: Arc<SourceCounters>,
}

impl Source for ModelSource {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        Ok(Box::new(ModelReader {
            world: self.world.clone(),
            batches: self.batches.clone(),
            first: self.first,
            state: self.state.clone(),
            counters: self.counters.clone(),
            seen: 0,
        }))
    }

    fn total_bytes(&self) -> Option<u64> {
        None
    }

    fn max_tasks(&self) -> usize {
        self.batches.len().max(1)
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.counters.clone()
    }

    fn resumable(&self) -> Result<(), String> {
        Ok(())
    }

    fn mark(&self, number: u64) {
        let mut state = self.state.lock().unwrap();
        (state.mark, state.at_mark) = (number, state.next);
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        let state = self.state.lock().unwrap();
        assert_eq!(state.mark, number, "asked for the positions of another barrier");
        let ended = state.at_mark >= self.batches.len();
        let position = json!({ "batch": state.at_mark });
        Ok(Positions { splits: vec![SplitPosition { split: "all".into(), position, ended, exact: true }] })
    }
}

struct ModelReader {
    world: World,
    batches: Arc<Vec<Batch>>,
    first: usize,
    state: Arc<Mutex<State>>,
    counters: Arc<SourceCounters>,
    seen: u64,
}

impl Reader for ModelReader {
    fn next(&mut self, _errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        turns::pass();
        let mut state = self.state.lock().unwrap();
        if state.mark > self.seen {
            self.seen = state.mark;
            return Ok(Next::Barrier(state.mark));
        }
        let Some(batch) = self.batches.get(state.next) else { return Ok(Next::End) };
        if self.world.unlucky(8) {
            return Ok(Next::Wait(Duration::from_micros(200)));
        }
        if self.world.0.fuse.load(Ordering::SeqCst) >= 0 && self.world.0.fuse.fetch_sub(1, Ordering::SeqCst) == 0 {
            return Err(ConnectError::new("R0203", "the lights went out"));
        }
        self.world.operation()?;
        let seq = (state.next - self.first) as u64;
        state.next += 1;
        drop(state);
        // So long that checkpoints fall between batches.
        turns::sleep(Duration::from_micros(300));
        self.counters.rows.fetch_add(batch.rows as u64, Ordering::Relaxed);
        Ok(Next::Batch(Batch { seq, ..batch.clone() }))
    }
}

/// A source as it is shipped, so slow that checkpoints fall between its batches.
struct Slow {
    world: World,
    source: Box<dyn Source>,
}

struct SlowReader {
    world: World,
    reader: Box<dyn Reader>,
}

impl Source for Slow {
    fn reader(&self, task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        Ok(Box::new(SlowReader { world: self.world.clone(), reader: self.source.reader(task)? }))
    }

    fn total_bytes(&self) -> Option<u64> {
        self.source.total_bytes()
    }

    fn max_tasks(&self) -> usize {
        self.source.max_tasks()
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.source.counters()
    }

    fn resumable(&self) -> Result<(), String> {
        self.source.resumable()
    }

    fn mark(&self, number: u64) {
        self.source.mark(number);
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        self.source.positions(number)
    }
}

impl Reader for SlowReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        self.world.operation()?;
        turns::sleep(Duration::from_micros(300));
        self.reader.next(errors)
    }
}

struct ModelSink {
    world: World,
    name: String,
    open: Mutex<Vec<Batch>>,
}

impl Sink for ModelSink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(Box::new(AsTheyAre))
    }

    fn write(&self, encoded: Encoded, _rows: u64) -> Result<(), ConnectError> {
        self.world.operation()?;
        if let Encoded::Rows(batch) = encoded {
            self.open.lock().unwrap().push(batch);
        }
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        self.world.operation()?;
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        self.world.0.written.lock().unwrap().insert(self.name.clone(), open);
        let rows = self.world.rows(&self.name).iter().map(|batch| batch.rows as u64).sum();
        Ok(SinkSummary { target: Some(self.name.clone()), rows, bytes: 0 })
    }

    fn abort(&self) {
        if self.world.is_stopped() {
            return;
        }
        // As a ledger's entry that nothing was applied to, it is forgotten.
        let mut targets = self.world.targets();
        match targets.get_mut(&self.name) {
            Some(target) if target.applied == 0 => drop(targets.remove(&self.name)),
            Some(target) => target.spool.clear(),
            None => {}
        }
    }

    fn epochs(&self) -> Result<(), String> {
        Ok(())
    }

    fn open_bytes(&self) -> u64 {
        self.open.lock().unwrap().iter().map(|batch| batch.rows as u64).sum()
    }

    fn worth_applying(&self) -> Option<u64> {
        Some(self.world.0.worth.load(Ordering::SeqCst)).filter(|rows| *rows > 0)
    }

    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        self.world.operation()?;
        if self.world.unlucky(12) {
            return Err(ConnectError::new("R0205", "the spool is out of paper"));
        }
        let batches = std::mem::take(&mut *self.open.lock().unwrap());
        let rows = batches.iter().map(|batch| batch.rows as u64).sum();
        self.world.targets().entry(self.name.clone()).or_default().spool.insert(number, batches);
        Ok(Sealed { number, rows, bytes: rows, files: Vec::new(), state: serde_json::Value::Null })
    }

    fn apply(&self, sealed: &Sealed) -> Result<(), ConnectError> {
        self.world.operation()?;
        turns::pass();
        let mut targets = self.world.targets();
        let target = targets.entry(self.name.clone()).or_default();
        if sealed.number > target.applied {
            let batches = target.spool.get(&sealed.number).cloned().expect("an epoch that is applied is spooled");
            if self.world.unlucky(9) {
                return Err(ConnectError::new("R0203", "the target was away"));
            }
            target.rows.extend(batches);
            target.applied = sealed.number;
            target.spool.remove(&sealed.number);
        }
        drop(targets);
        turns::pass();
        // The answer's way back.
        self.world.operation()?;
        if self.world.unlucky(9) {
            return Err(ConnectError::new("R0203", "the answer was lost"));
        }
        Ok(())
    }

    fn ledger(&self) -> Result<Ledger, ConnectError> {
        self.world.operation()?;
        let targets = self.world.targets();
        Ok(targets.get(&self.name).map_or(Ledger::Missing, |target| Ledger::Applied(target.applied)))
    }
}

struct AsTheyAre;

impl Encoder for AsTheyAre {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let rows = batch.rows as u64;
        Ok((Encoded::Rows(batch), rows))
    }
}
