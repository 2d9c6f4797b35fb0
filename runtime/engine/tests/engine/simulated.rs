//! Simulated schedules (D11–D14, D20, F1–F4): the engine as it is shipped, its threads one at a time in an order drawn from a seed, over a
//! modelled disk and modelled targets. The machine stops before any operation, storage and targets fail, somebody presses Ctrl-C; then the job
//! goes on with other numbers of tasks and threads. It must end, with the rows of a run without faults, and leave nothing behind.
//!
//! The same with a planted fault: every one of them must be found within the same seeds.
//!
//! `DFC_SCHEDULES=20000 cargo test -p dfc-engine simulated` runs so many; a failure names its seed, and `DFC_SEED=… DFC_SCHEDULES=1` runs
//! that one alone.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use dfc_checkpoint::disk::{Crash, Disk, ModelDisk};
use dfc_checkpoint::{LocalStorage, Object, Place, Storage, StorageError};
use dfc_engine::{Checkpointing, Event, MemoryConnectors, Observer, Progress, RunError, RunOptions, Start, run_with};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{CheckpointSettings, ErrorPolicy, JoinKind, OptionValue};
use dfc_ir::stage::{Partition, StageInput, StageOp, Step};
use dfc_ir::{Schema, StagePlan, Type, Value};
use dfc_trial::Planted;
use dfc_trial::turns::{self, Simulated, Simulation};

use crate::model::World;
use crate::support::*;
use crate::{aggregates, flow, joins};

/// A job and what it gives without faults.
struct Case {
    name: String,
    plan: StagePlan,
    inputs: Vec<(&'static str, Vec<dfc_batch::Batch>)>,
    outputs: Vec<(&'static str, Schema)>,
    in_order: bool,
    /// Rejected rows are kept in a file.
    keeps_rejects: bool,
    /// Rows by sink, and how many are rejected.
    expected: (Vec<Vec<String>>, u64),
    /// Rows that are read.
    read: u64,
    /// What is read, where that isn't a table in memory.
    _files: Option<tempfile::TempDir>,
}

const ROWS: usize = 160;

fn input(seed: u64, keys: u64) -> Vec<dfc_batch::Batch> {
    let mut rng = Rng(seed);
    let rows = left_rows(&mut rng, ROWS, keys);
    batches(&left_schema(), &rows, &mut rng, 16)
}

impl Case {
    fn new(name: &str, plan: StagePlan, output: &Schema, in_order: bool) -> Case {
        Case {
            name: name.to_owned(),
            plan,
            inputs: vec![("in", input(1, 30))],
            outputs: vec![("out", output.clone())],
            in_order,
            keeps_rejects: false,
            expected: (Vec::new(), 0),
            read: 0,
            _files: None,
        }
    }

    /// With what it gives: run once, without checkpoints.
    fn known(mut self) -> Case {
        let tables = MemoryConnectors::default();
        self.inputs.iter().for_each(|(name, batches)| tables.put(name, batches.clone()));
        let summary = match self.inputs.is_empty() {
            true => {
                let disk = ModelDisk::new(0);
                let world = World::around(&disk);
                let summary = run_with(&world, &self.plan, options(1), Arc::new(dfc_engine::Silent));
                self.outputs.iter().for_each(|(name, _)| tables.put(name, world.written(name)));
                summary
            }
            false => run(&tables, &self.plan, 2),
        };
        let summary = summary.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let shown = |(name, schema): &(&str, Schema)| self.shown(rows(schema, &tables.get(name).expect("a table")));
        self.expected = (self.outputs.iter().map(shown).collect(), summary.rejected);
        self.read = summary.rows_in;
        self
    }

    fn shown(&self, rows: Vec<Row>) -> Vec<String> {
        match self.in_order {
            true => rows.iter().map(|row| format!("{row:?}")).collect(),
            false => sorted(rows),
        }
    }
}

fn cases() -> Vec<Case> {
    let schema = left_schema();
    let straight = || vec![stage("a", source("in", &schema), vec![], sink("out"), &schema)];
    let mut cases = vec![Case::new("straight", plan(straight(), 0, 0), &schema, true)];

    for (name, partition) in
        [("any", Partition::Any), ("gather", Partition::Gather), ("hash", Partition::Hash(vec![0]))]
    {
        let mut last = stage("b", from(0, &schema), vec![], sink("out"), &schema);
        last.ordered = name != "hash";
        let first = stage("a", source("in", &schema), vec![], to(0, partition), &schema);
        // Behind an exchange that restores no order the rows are compared, not their order.
        cases.push(Case::new(name, plan(vec![first, last], 1, 0), &schema, name == "gather"));
    }

    for keys in [&[0][..], &[]] {
        let (plan, output) = aggregates::plan_by(keys, 5);
        cases.push(Case::new(&format!("groups by {keys:?}"), plan, &output, false));
    }

    for kind in [JoinKind::Inner, JoinKind::Full, JoinKind::Anti] {
        let (left, right) = (left_schema(), joins::right_schema());
        let mut rng = Rng(4);
        let right_rows = left_rows(&mut rng, ROWS / 2, 40);
        let right_batches = batches(&right, &right_rows, &mut rng, 16);
        let plan = joins::plan_of(joins::join(kind, &left, &right));
        let mut case = Case::new(&format!("{kind:?}"), plan, &joins::output_schema(), false);
        case.inputs.push(("right", right_batches));
        cases.push(case);
    }

    cases.push(Case::new("diamond", flow::diamond(&schema), &schema, false));

    let by = vec![key(col(&schema, 0), false, true)];
    let sort = StageOp::Sort { node: "sort".into(), keys: by, limit: Some(60) };
    let take = StageOp::Take { node: "take".into(), limit: 50, offset: 3 };
    let mut last = stage("b", from(0, &schema), vec![sort, take], sink("out"), &schema);
    last.max_tasks = Some(1);
    let first = stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema);
    cases.push(Case::new("sort", plan(vec![first, last], 1, 0), &schema, true));

    // Many batches at a task's end, in front of others that read them slowly.
    let by = vec![key(col(&schema, 2), true, false)];
    let sort = StageOp::Sort { node: "sort".into(), keys: by, limit: None };
    let mut middle = stage("b", from(0, &schema), vec![sort], to(1, Partition::Any), &schema);
    middle.max_tasks = Some(1);
    let mut last = stage("c", from(1, &schema), vec![], sink("out"), &schema);
    last.ordered = false;
    let first = stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema);
    cases.push(Case::new("sort, then any", plan(vec![first, middle, last], 2, 0), &schema, false));

    for (keys, order) in [(vec![0], vec![key(col(&schema, 2), true, false)]), (vec![0, 1, 2], vec![])] {
        let distinct = StageOp::Distinct { node: "distinct".into(), keys: keys.clone(), order };
        let mut last = stage("b", from(0, &schema), vec![distinct], sink("out"), &schema);
        last.ordered = false;
        let first = stage("a", source("in", &schema), vec![], to(0, Partition::Hash(keys.clone())), &schema);
        cases.push(Case::new(&format!("distinct by {keys:?}"), plan(vec![first, last], 1, 0), &schema, false));
    }

    for keeps_rejects in [false, true] {
        let require =
            Step::Require(binary(BinaryOp::Ge, col(&schema, 2), lit(0), Type::Bool), "n isn't negative".into());
        let refuse = Step::Require(binary(BinaryOp::Ne, col(&schema, 0), lit(3), Type::Bool), "k isn't 3".into());
        let mut plan = plan(
            vec![stage(
                "a",
                source("in", &schema),
                vec![steps("f", &schema, vec![require, refuse])],
                sink("out"),
                &schema,
            )],
            0,
            0,
        );
        plan.job.errors = ErrorPolicy { limit: Some(1_000), ..ErrorPolicy::default() };
        cases.push(Case { keeps_rejects, ..Case::new("rejects", plan, &schema, true) });
    }

    // Two sinks, one of them behind an exchange.
    let mut first = stage("a", source("in", &schema), vec![], sink("out"), &schema);
    first.outputs.push(to(0, Partition::Any));
    let mut last = stage("b", from(0, &schema), vec![], sink("second"), &schema);
    last.ordered = true;
    let mut two = Case::new("two targets", plan(vec![first, last], 1, 0), &schema, false);
    two.outputs.push(("second", schema.clone()));
    cases.push(two);

    // A source as it is shipped.
    let narrow = self::schema(&[("n", int())]);
    let StageInput::Source { node, mut spec, site } = source("generate", &narrow) else { return cases };
    spec.options.insert("rows".into(), OptionValue::Value(Value::Int(60_000)));
    let made = stage("a", StageInput::Source { node, spec, site }, vec![], sink("out"), &narrow);
    cases.push(Case { inputs: Vec::new(), ..Case::new("generate", plan(vec![made], 0, 0), &narrow, true) });

    // Another one, of many splits.
    let files = tempfile::tempdir().expect("a folder");
    for number in 0..7 {
        let rows: String = (0..9).map(|row| format!("{}\n", number * 9 + row)).collect();
        std::fs::write(files.path().join(format!("{number}.csv")), rows).expect("a file");
    }
    let StageInput::Source { node, mut spec, site } = source("csv", &narrow) else { return cases };
    let path = files.path().join("*.csv").display().to_string();
    spec.options.insert("path".into(), OptionValue::Value(Value::string(path)));
    spec.options.insert("header".into(), OptionValue::Value(Value::Bool(false)));
    let read = stage("a", StageInput::Source { node, spec, site }, vec![], sink("out"), &narrow);
    let _files = Some(files);
    cases.push(Case { inputs: Vec::new(), _files, ..Case::new("files", plan(vec![read], 0, 0), &narrow, true) });

    cases.into_iter().map(Case::known).collect()
}

/// Notes the checkpoints' numbers: they only rise.
#[derive(Default)]
struct Watch {
    taken: Mutex<Vec<u64>>,
    /// Of the last run.
    progress: Mutex<Arc<Progress>>,
}

impl Observer for Watch {
    fn event(&self, event: &Event) {
        match event {
            Event::Checkpoint { number, .. } => {
                let mut taken = self.taken.lock().unwrap();
                assert!(taken.last().is_none_or(|last| last < number), "checkpoint {number} after {taken:?}");
                taken.push(*number);
            }
            Event::Started { progress, .. } => *self.progress.lock().unwrap() = progress.clone(),
            Event::WithoutCheckpoints { why } => panic!("no checkpoints: {why}"),
            _ => {}
        }
    }
}

/// A storage that fails now and then, before or after it has done what was wanted.
struct Flaky {
    storage: LocalStorage,
    /// One in so many writes; 0: none.
    one_in: u64,
    /// Only manifests' writes fail, and they have done what was wanted: the answer is lost.
    loses_answers: bool,
    /// That of the manifest that is written after so many others is lost; below 0: of none.
    loses_answer_after: AtomicI64,
}

impl Flaky {
    fn write<T>(&self, name: &str, write: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
        let manifest = name.contains("/manifests/");
        if manifest && self.loses_answer_after.fetch_sub(1, Ordering::SeqCst) == 0 {
            write()?;
            return Err(StorageError::Failed {
                doing: format!("can't write `{name}`"),
                why: "the answer was lost".into(),
            });
        }
        let may_fail = self.one_in > 0 && (!self.loses_answers || manifest);
        let fails = may_fail && turns::random(self.one_in) == Some(0);
        let done = if fails && !self.loses_answers && turns::random(2) == Some(0) { None } else { Some(write()?) };
        match done {
            Some(done) if !fails => Ok(done),
            _ => Err(StorageError::Failed { doing: format!("can't write `{name}`"), why: "it is flaky".into() }),
        }
    }
}

impl Storage for Flaky {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StorageError> {
        self.write(name, || self.storage.create(name, bytes))
    }
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        self.write(name, || self.storage.put(name, bytes))
    }
    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, StorageError> {
        self.storage.get(name, limit)
    }
    fn list(&self, below: &str) -> Result<Vec<Object>, StorageError> {
        self.storage.list(below)
    }
    fn delete(&self, names: &[String]) -> Result<(), StorageError> {
        self.storage.delete(names)
    }
    fn probe(&self, below: &str) -> Result<(), StorageError> {
        self.storage.probe(below)
    }
    fn local_path(&self, name: &str) -> Option<PathBuf> {
        self.storage.local_path(name)
    }
    fn place(&self, name: &str) -> String {
        self.storage.place(name)
    }
}

fn place(disk: &ModelDisk, one_in: u64, loses_answers: bool, loses_answer_after: i64) -> Place {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let storage = LocalStorage::new(shared.clone(), PathBuf::from("/p/.dfc"));
    let storage = Flaky { storage, one_in, loses_answers, loses_answer_after: AtomicI64::new(loses_answer_after) };
    Place { storage: Arc::new(storage), local: PathBuf::from("/p/.dfc"), disk: shared }
}

/// A run that keeps its checkpoints in this place.
fn checkpointed_at(place: Place, parallelism: usize) -> RunOptions {
    let checkpoints = Checkpointing {
        place,
        chosen: true,
        start: Start::Newest,
        allow_older: false,
        accept_duplicates: false,
        parameters: Vec::new(),
    };
    RunOptions { checkpoints: Some(checkpoints), tier: dfc_jit::Tier::Interpreter, ..options(parallelism) }
}

/// Whether a run without a stop of the machine may end with this: faults of what is outside, and Ctrl-C.
fn is_expected(error: &RunError) -> bool {
    let passes = |code: &str| code.starts_with("R02");
    match error {
        RunError::Cancelled | RunError::Interrupted { .. } => true,
        RunError::Connect { error, .. } | RunError::Finish { error, .. } => passes(error.code),
        RunError::Checkpoint(error) => matches!(
            error,
            dfc_checkpoint::Error::Storage(
                StorageError::Failed { .. } | StorageError::Full { .. } | StorageError::Location { .. }
            )
        ),
        _ => false,
    }
}

/// What went wrong outside.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
struct Mishaps {
    attempts: u64,
    stops: u64,
    checkpoints: usize,
}

/// One simulated life of a job. Panics with what isn't as it should be.
fn live(case: &Case, rng: &mut Rng) -> Mishaps {
    let disk = ModelDisk::new(rng.below(u64::MAX));
    let world = World::around(&disk);
    case.inputs.iter().for_each(|(name, batches)| world.put(name, batches.clone()));
    let watch = Arc::new(Watch::default());
    let rejects = tempfile::tempdir().expect("a folder");
    let mut plan = case.plan.clone();
    plan.job.checkpoint = Some(CheckpointSettings {
        interval_ms: [1, 1, 3, 10][rng.below(4) as usize],
        timeout_ms: u64::MAX / 4,
        retain: 1 + rng.below(3) as u32,
        tolerate: 1_000,
        max_unapplied: 1 + rng.below(3) as u32,
        max_epoch_bytes: [40, u64::MAX][rng.below(2) as usize],
        ..CheckpointSettings::default()
    });
    plan.job.restart.attempts = 0;
    let mut mishaps = Mishaps::default();
    let bad = rng.below(7);
    let (flaky, loses) = [(0, false), (0, false), (6, false), (20, false), (3, true)][rng.below(5) as usize];
    let summary = loop {
        assert!(mishaps.attempts < 60, "the job doesn't come to its end");
        let before = disk.operations();
        // Early, or anywhere.
        let reach = [30, 150, 600][rng.below(3) as usize];
        let crash = [Crash::Process, Crash::Power][rng.below(2) as usize];
        let cancelled = Arc::new(AtomicBool::new(false));
        world.cancel_at(u64::MAX, &cancelled);
        if mishaps.attempts < bad {
            // Several of them may come together.
            if rng.below(8) == 0 {
                world.cancel_at(before + rng.below(reach), &cancelled);
            }
            if rng.below(3) == 0 {
                let kind = [ErrorKind::StorageFull, ErrorKind::Other][rng.below(2) as usize];
                disk.fault_at(before + rng.below(reach), kind);
            }
            if rng.below(8) > 0 {
                disk.crash_at(before + rng.below(reach), crash);
            }
        }
        mishaps.attempts += 1;
        let place = place(&disk, if mishaps.attempts <= bad { flaky } else { 0 }, loses, -1);
        let options = RunOptions {
            threads: 1 + rng.below(3) as usize,
            cancelled,
            rejects_folder: case.keeps_rejects.then(|| rejects.path().to_owned()),
            ..checkpointed_at(place, 1 + rng.below(3) as usize)
        };
        let result = run_with(&world, &plan, options, watch.clone());
        let stopped = disk.is_stopped();
        if stopped {
            mishaps.stops += 1;
            disk.restart(crash);
        }
        match result {
            Ok(summary) => break summary,
            Err(_) if stopped => {}
            Err(error) if is_expected(&error) => {}
            Err(error) => panic!("{error}"),
        }
    };
    for ((name, schema), expected) in case.outputs.iter().zip(&case.expected.0) {
        let found = case.shown(rows(schema, &world.rows(name)));
        if found != *expected {
            let there: HashSet<_> = found.iter().collect();
            let lost = expected.iter().filter(|row| !there.contains(row)).count();
            let first = found.iter().zip(expected).position(|(found, expected)| found != expected);
            panic!(
                "`{name}` has {} rows instead of {}, {lost} are lost, the first difference is at {first:?}",
                found.len(),
                expected.len()
            );
        }
        assert_eq!(world.spooled(name), 0, "`{name}`: everything was applied");
    }
    assert_eq!(summary.rejected, case.expected.1, "rejected rows are counted once");
    let progress = watch.progress.lock().unwrap().clone();
    let written = case.expected.0.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!((progress.rows_in(), progress.rows_out()), (case.read, written), "rows are counted once");
    if let Some(path) = summary.rejects {
        let lines = std::fs::read_to_string(&path).expect("the rejects").lines().count() as u64;
        assert_eq!(lines, case.expected.1, "rejected rows are kept once");
    }
    mishaps.checkpoints = watch.taken.lock().unwrap().len();
    mishaps
}

/// A seed's life: how it went, or what wasn't as it should be.
fn simulate(case: &Case, seed: u64, planted: Option<Planted>) -> Result<(Mishaps, Simulated), String> {
    let simulation = Simulation { planted, ..Simulation::new(seed) };
    let lived = catch_unwind(AssertUnwindSafe(|| simulation.run(|| live(case, &mut Rng(seed ^ 0x5eed)))));
    lived.map_err(what_was_wrong)
}

/// What a panic says.
fn what_was_wrong(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or("a panic".into())
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn jobs_end_as_if_nothing_had_happened() {
    let cases = cases();
    let (first, count) = (number("DFC_SEED", 1), number("DFC_SCHEDULES", 300));
    let mut all = Mishaps::default();
    for seed in first..first + count {
        let case = &cases[seed as usize % cases.len()];
        match simulate(case, seed, None) {
            Ok((mishaps, _)) => {
                all.attempts += mishaps.attempts;
                all.stops += mishaps.stops;
                all.checkpoints += mishaps.checkpoints;
            }
            Err(what) => panic!("{}, DFC_SEED={seed}: {what}", case.name),
        }
    }
    println!("{count} schedules: {all:?}");
    // So that the test can't pass because nothing happens any more.
    assert!(count < 100 || (all.stops > count && all.checkpoints as u64 > 2 * count), "{all:?}");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for (seed, case) in (1..).zip(&cases()) {
        let runs = [simulate(case, seed, None), simulate(case, seed, None)];
        assert_eq!(runs[0], runs[1], "{}, seed {seed}", case.name);
    }
}

/// A fault is found when some life isn't as it should be: which one, and what was seen first.
fn find(cases: &[Case], fault: Planted) -> Option<(u64, String, String)> {
    let best = BEST_SEEN.iter().find(|(of, _)| *of == fault).map(|(_, name)| *name);
    let cases: Vec<&Case> = cases.iter().filter(|case| best.is_none_or(|best| case.name == best)).collect();
    (1..=number("DFC_FAULT_SCHEDULES", 1_500)).find_map(|seed| {
        let case = cases[seed as usize % cases.len()];
        let what = simulate(case, seed, Some(fault)).err()?;
        Some((seed, case.name.clone(), what))
    })
}

/// A run whose only checkpoint may be there, since no more than the answer was lost, ends: the next one goes on from it, so its rows stay.
fn after_a_lost_answer(case: &Case, planted: Option<Planted>) -> Result<(), String> {
    let life = || {
        let disk = ModelDisk::new(1);
        let world = World::around(&disk);
        case.inputs.iter().for_each(|(name, batches)| world.put(name, batches.clone()));
        let mut plan = case.plan.clone();
        // One that fails is one too many.
        let often = CheckpointSettings { interval_ms: 1, tolerate: 0, ..CheckpointSettings::default() };
        plan.job.checkpoint = Some(often);
        plan.job.restart.attempts = 0;
        let run = |after: i64| {
            run_with(&world, &plan, checkpointed_at(place(&disk, 0, false, after), 2), Arc::new(Watch::default()))
        };
        // The first manifest is no checkpoint: it says that the job begins.
        let failed = run(1).expect_err("the first run ends with its first checkpoint");
        assert!(failed.to_string().contains("the answer was lost"), "{failed}");
        // Whatever else fails outside passes.
        let ended = (0..50).any(|_| run(-1).is_ok());
        assert!(ended, "the job doesn't come to its end");
        for ((name, schema), expected) in case.outputs.iter().zip(&case.expected.0) {
            assert_eq!(case.shown(rows(schema, &world.rows(name))), *expected, "`{name}`");
        }
    };
    let lived = catch_unwind(AssertUnwindSafe(|| Simulation { planted, ..Simulation::new(1) }.run(life)));
    lived.map(drop).map_err(what_was_wrong)
}

#[test]
fn a_lost_answer_is_not_forgotten() {
    let cases = cases();
    let forgotten = Some(Planted::LostAnswerForgotten);
    for case in cases.iter().filter(|case| ["straight", "two targets"].contains(&case.name.as_str())) {
        assert_eq!(after_a_lost_answer(case, None), Ok(()), "{}", case.name);
        let seen = after_a_lost_answer(case, forgotten).expect_err("without its rows the job can't go on");
        println!("{}: {seen}", case.name);
    }
}

/// These need a target as it is shipped, two runs at once, or more luck than so many seeds have: the tests that see them, each in its file.
const ELSEWHERE: [(Planted, &str, &str); 3] = [
    (Planted::LostAnswerForgotten, "a_lost_answer_is_not_forgotten", include_str!("simulated.rs")),
    (Planted::AppliedTwice, "a_target_without_a_ledger_is_seen", include_str!("../../../../tests/crash/points.rs")),
    (
        Planted::ManifestOverwritten,
        "an_overwritten_manifest_is_seen",
        include_str!("../../../checkpoint/src/tests/races.rs"),
    ),
];

/// What only one of the jobs shows, or shows so much more often that it is looked for there alone.
const BEST_SEEN: [(Planted, &str); 5] = [
    (Planted::SplitLost, "files"),
    (Planted::SplitDealtTwice, "files"),
    (Planted::BarrierBeforeBufferedRows, "sort, then any"),
    (Planted::EndedInputBlocks, "diamond"),
    (Planted::StateLost, "groups by [0]"),
];

/// Whether a fault is looked for here: `DFC_FAULT` asks for one alone.
fn is_looked_for(fault: Planted) -> bool {
    let elsewhere = ELSEWHERE.iter().any(|(other, ..)| *other == fault);
    std::env::var("DFC_FAULT").map_or(!elsewhere, |name| name == fault.name())
}

/// What would be wrong with the protocol if it were built otherwise is found (the proof's proof): each planted fault within the seeds of CI.
#[test]
fn every_planted_fault_is_found() {
    let cases = cases();
    let mut hidden = Vec::new();
    for &fault in Planted::ALL.iter().filter(|&&fault| is_looked_for(fault)) {
        match find(&cases, fault) {
            Some((seed, case, what)) => println!("{}: seed {seed}, {case}: {what}", fault.name()),
            None => hidden.push(fault.name()),
        }
    }
    assert!(hidden.is_empty(), "not found: {hidden:?}");
}

#[test]
fn what_is_not_looked_for_here_is_seen_elsewhere() {
    for (fault, test, file) in ELSEWHERE {
        let plants = file.contains(fault.name()) || file.contains(&format!("{fault:?}"));
        assert!(file.contains(&format!("#[test]\nfn {test}()")) && plants, "{test} plants {}", fault.name());
    }
}
