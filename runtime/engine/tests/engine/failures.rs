//! Whatever fails, and whenever: one cause is reported, nothing hangs, nothing is left behind (D15).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dfc_batch::{Batch, RowError};
use dfc_connect::{
    ConnectError, Encoded, Encoder, Next, OpenContext, Reader, Sink, SinkSummary, Source, SourceCounters,
};
use dfc_engine::{ConnectorSet, MemoryConnectors, RunError, Silent, run_with};
use dfc_ir::plan::{SinkSpec, SourceSpec};
use dfc_ir::stage::{Partition, StageOp};
use dfc_ir::{Schema, StagePlan};

use crate::support::*;

/// Where it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    OpenSource,
    OpenSink,
    Reader,
    Read(u64),
    ReadPanics(u64),
    Encoder,
    Encode(u64),
    Write(u64),
    Finish,
    Cancelled(u64),
    /// The source waits as it opens, until it is told to stop.
    OpenWaits,
    OpenPanics,
    Nowhere,
}

/// Tables in memory whose connectors fail at one point. What fails is the source `in` and the sink `out`.
#[derive(Clone)]
struct Faulty {
    inner: MemoryConnectors,
    state: Arc<State>,
}

struct State {
    at: At,
    calls: AtomicU64,
    cancelled: Arc<AtomicBool>,
    /// What became of each sink, in order of time.
    ends: Mutex<Vec<String>>,
}

fn broken(what: &str) -> ConnectError {
    ConnectError { code: "R0299", message: format!("{what} is broken"), help: Some("mend it".into()) }
}

impl State {
    fn check(&self, at: At) -> Result<(), ConnectError> {
        if self.at == at { Err(broken(&format!("{at:?}"))) } else { Ok(()) }
    }

    /// Fails at the n-th call.
    fn count(&self, at: impl Fn(u64) -> At) -> Result<(), ConnectError> {
        if std::mem::discriminant(&self.at) != std::mem::discriminant(&at(0)) {
            return Ok(());
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.check(at(call))
    }
}

impl ConnectorSet for Faulty {
    fn open_source(&self, spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
        self.state.check(At::OpenSource)?;
        assert!(self.state.at != At::OpenPanics, "no way in");
        if self.state.at == At::OpenWaits {
            self.state.cancelled.store(true, Ordering::Relaxed);
            while !cx.cancelled.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            return Err(broken("interrupted"));
        }
        Ok(Box::new(FaultySource(self.inner.open_source(spec, cx)?, self.state.clone())))
    }

    fn open_sink(&self, spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
        let fails = spec.connector == "out";
        if fails {
            self.state.check(At::OpenSink)?;
        }
        let inner = self.inner.open_sink(spec, schema, cx)?;
        let name = spec.connector.clone();
        Ok(Box::new(FaultySink { inner, name, fails, state: self.state.clone() }))
    }
}

struct FaultySource(Box<dyn Source>, Arc<State>);

impl Source for FaultySource {
    fn reader(&self, task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        self.1.check(At::Reader)?;
        Ok(Box::new(FaultyReader(self.0.reader(task)?, self.1.clone())))
    }

    fn total_bytes(&self) -> Option<u64> {
        self.0.total_bytes()
    }

    fn max_tasks(&self) -> usize {
        self.0.max_tasks()
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.0.counters()
    }
}

struct FaultyReader(Box<dyn Reader>, Arc<State>);

impl Reader for FaultyReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        self.1.count(At::Read)?;
        if self.1.count(At::ReadPanics).is_err() {
            panic!("the reader lost its mind");
        }
        if self.1.count(At::Cancelled).is_err() {
            self.1.cancelled.store(true, Ordering::Relaxed);
        }
        if self.1.cancelled.load(Ordering::Relaxed) {
            // Long enough for the flag to be seen, whatever the machine is doing.
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        self.0.next(errors)
    }
}

struct FaultySink {
    inner: Box<dyn Sink>,
    name: String,
    fails: bool,
    state: Arc<State>,
}

impl FaultySink {
    fn end(&self, how: &str) {
        self.state.ends.lock().unwrap().push(format!("{} {how}", self.name));
    }
}

impl Sink for FaultySink {
    fn encoder(&self, task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        if self.fails {
            self.state.check(At::Encoder)?;
        }
        Ok(Box::new(FaultyEncoder(self.inner.encoder(task)?, self.fails, self.state.clone())))
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        if self.fails {
            self.state.count(At::Write)?;
        }
        self.inner.write(encoded, rows)
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        if self.fails {
            self.state.check(At::Finish)?;
        }
        self.end("finished");
        self.inner.finish()
    }

    fn abort(&self) {
        self.end("aborted");
        self.inner.abort();
    }
}

struct FaultyEncoder(Box<dyn Encoder>, bool, Arc<State>);

impl Encoder for FaultyEncoder {
    fn encode(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        if self.1 {
            self.2.count(At::Encode)?;
        }
        self.0.encode(batch, errors)
    }
}

/// A source that feeds two sinks directly and one over a sort.
fn three_sinks(schema: &Schema) -> StagePlan {
    let mut first = stage("a", source("in", schema), vec![], sink("first"), schema);
    first.outputs.push(to(0, Partition::Gather));
    first.outputs.push(sink("out"));
    let sort = StageOp::Sort { node: "sort".into(), keys: vec![key(col(schema, 1), false, false)], limit: None };
    plan(vec![first, stage("b", from(0, schema), vec![sort], sink("last"), schema)], 1, 0)
}

fn run_faulty(at: At, parallelism: usize) -> (Result<dfc_engine::Summary, RunError>, Vec<String>, MemoryConnectors) {
    let mut rng = Rng(40);
    let schema = left_schema();
    let inner = MemoryConnectors::default();
    inner.put("in", batches(&schema, &left_rows(&mut rng, 2_000, 9), &mut rng, 20));
    let options = options(parallelism);
    let cancelled = options.cancelled.clone();
    let state = Arc::new(State { at, calls: AtomicU64::new(0), cancelled, ends: Mutex::default() });
    let faulty = Faulty { inner: inner.clone(), state: state.clone() };
    let result = run_with(&faulty, &three_sinks(&schema), options, Arc::new(Silent));
    let ends = state.ends.lock().unwrap().clone();
    (result, ends, inner)
}

#[test]
fn a_failure_is_reported_once_and_leaves_nothing() {
    let everywhere = [
        At::OpenSource,
        At::OpenSink,
        At::Reader,
        At::Read(0),
        At::Read(77),
        At::ReadPanics(5),
        At::Encoder,
        At::Encode(0),
        At::Encode(90),
        At::Write(0),
        At::Write(60),
    ];
    for at in everywhere {
        for parallelism in 1..=3 {
            let (result, ends, tables) = run_faulty(at, parallelism);
            let error = result.unwrap_err();
            match at {
                At::ReadPanics(_) => assert_eq!(error.to_string(), "`a` broke down: the reader lost its mind"),
                _ => {
                    let RunError::Connect { error, .. } = &error else { panic!("{at:?}: {error}") };
                    assert_eq!(error, &broken(&format!("{at:?}")));
                }
            }
            assert!(ends.iter().all(|end| end.ends_with("aborted")), "{ends:?}");
            let opened = match at {
                At::OpenSource => 0,
                At::OpenSink => 1,
                _ => 3,
            };
            assert_eq!(ends.len(), opened, "{at:?} {ends:?}");
            assert!(["first", "out", "last"].iter().all(|name| tables.get(name).is_none()));
        }
    }
}

#[test]
fn without_a_failure_all_finish_in_order() {
    let (result, ends, tables) = run_faulty(At::Nowhere, 3);
    assert_eq!(result.unwrap().rows_out(), 6_000);
    assert_eq!(ends, ["first finished", "out finished", "last finished"]);
    assert!(["first", "out", "last"].iter().all(|name| tables.get(name).is_some()));
}

#[test]
fn a_failure_at_the_very_end_says_what_is_visible() {
    let (result, ends, _) = run_faulty(At::Finish, 2);
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "`out`: Finish is broken; already written: first");
    assert_eq!(ends, ["first finished", "out aborted", "last aborted"]);
}

#[test]
fn cancellation_leaves_nothing() {
    for call in [0, 30] {
        for parallelism in 1..=3 {
            let (result, ends, tables) = run_faulty(At::Cancelled(call), parallelism);
            assert_eq!(result.unwrap_err(), RunError::Cancelled);
            assert_eq!(ends, ["first aborted", "out aborted", "last aborted"]);
            assert!(tables.get("out").is_none());
        }
    }
}

#[test]
fn opening_can_be_cancelled_and_may_panic() {
    let (result, ends, _) = run_faulty(At::OpenWaits, 2);
    assert_eq!((result.unwrap_err(), ends.len()), (RunError::Cancelled, 0));
    let (result, ends, _) = run_faulty(At::OpenPanics, 2);
    assert_eq!((result.unwrap_err().to_string().as_str(), ends.len()), ("`setup` broke down: no way in", 0));
}
