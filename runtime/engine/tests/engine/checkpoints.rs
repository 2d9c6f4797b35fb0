//! Runs that break down and go on, against runs that don't (D13, D20, F1–F4): every kind of state, at changing parallelism, with targets
//! that are away, answers that are lost and spools that can't be closed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dfc_checkpoint::Place;
use dfc_engine::{Checkpointing, Event, Observer, Progress, RunError, RunOptions, Start, run_with};
use dfc_ir::plan::{CheckpointSettings, JoinKind};
use dfc_ir::stage::{Partition, StageOp};
use dfc_ir::{Schema, StagePlan};

use crate::model::World;
use crate::support::*;
use crate::{aggregates, flow, joins};

/// Counts what happened.
#[derive(Default)]
struct Watch {
    taken: AtomicUsize,
    resumed: AtomicUsize,
    abandoned: AtomicUsize,
    /// Of the last run.
    progress: Mutex<Arc<Progress>>,
}

impl Observer for Watch {
    fn event(&self, event: &Event) {
        match event {
            Event::Started { progress, .. } => {
                *self.progress.lock().unwrap() = progress.clone();
                0
            }
            Event::Checkpoint { .. } => self.taken.fetch_add(1, Ordering::Relaxed),
            Event::Resumed { .. } => self.resumed.fetch_add(1, Ordering::Relaxed),
            Event::CheckpointAbandoned { .. } => self.abandoned.fetch_add(1, Ordering::Relaxed),
            Event::WithoutCheckpoints { why } => panic!("no checkpoints: {why}"),
            _ => 0,
        };
    }
}

fn often(mut plan: StagePlan) -> StagePlan {
    plan.job.checkpoint = Some(CheckpointSettings { interval_ms: 1, tolerate: 1_000, ..CheckpointSettings::default() });
    plan
}

fn checkpointed(folder: &Path, parallelism: usize) -> RunOptions {
    let place = Place::open(None, folder).expect("a folder can be a storage");
    let checkpoints = Checkpointing {
        place,
        chosen: true,
        start: Start::Newest,
        allow_older: false,
        accept_duplicates: false,
        parameters: Vec::new(),
    };
    RunOptions { checkpoints: Some(checkpoints), ..options(parallelism) }
}

/// Runs to the end with breakdowns at random: what the sink `out` shows, and how often the job went on.
fn broken(
    plan: &StagePlan,
    inputs: &[(&str, Vec<dfc_batch::Batch>)],
    output: &Schema,
    rng: &mut Rng,
) -> (Vec<Row>, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = often(plan.clone());
    let world = World::default();
    inputs.iter().for_each(|(name, batches)| world.put(name, batches.clone()));
    let watch = Arc::new(Watch::default());
    for attempt in 0.. {
        assert!(attempt < 200, "the job doesn't come to its end");
        world.fuse(if attempt < 12 { rng.below(40) as i64 } else { -1 });
        let parallelism = 1 + rng.below(3) as usize;
        match run_with(&world, &plan, checkpointed(folder.path(), parallelism), watch.clone()) {
            Ok(_) => break,
            Err(RunError::Connect { error, .. }) if error.message == "the lights went out" => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(watch.taken.load(Ordering::Relaxed) > 0, "no checkpoint was taken");
    assert_eq!(world.spooled("out"), 0, "everything was applied");
    (rows(output, &world.rows("out")), watch.resumed.load(Ordering::Relaxed))
}

/// Compares runs with breakdowns with one without, as bags of rows.
fn compare(name: &str, plan: &StagePlan, inputs: &[(&str, Vec<dfc_batch::Batch>)], output: &Schema, in_order: bool) {
    let tables = dfc_engine::MemoryConnectors::default();
    inputs.iter().for_each(|(name, batches)| tables.put(name, batches.clone()));
    run(&tables, plan, 2).unwrap_or_else(|e| panic!("{name}: {e}"));
    let whole = rows(output, &tables.get("out").expect("the sink has finished"));
    let rounds: u64 = std::env::var("DFC_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let mut resumed = 0;
    for seed in 0..rounds {
        let (pieces, times) = broken(plan, inputs, output, &mut Rng(1_000 + seed));
        resumed += times;
        match in_order {
            true => assert_eq!(pieces, whole, "{name}, seed {seed}"),
            false => assert_eq!(sorted(pieces), sorted(whole.clone()), "{name}, seed {seed}"),
        }
    }
    assert!(resumed > 0, "{name}: no run went on from a checkpoint");
}

fn input(seed: u64, count: usize, keys: u64) -> Vec<dfc_batch::Batch> {
    let mut rng = Rng(seed);
    let rows = left_rows(&mut rng, count, keys);
    batches(&left_schema(), &rows, &mut rng, 60)
}

#[test]
fn rows_pass_in_their_order() {
    let schema = left_schema();
    let plan = plan(vec![stage("a", source("in", &schema), vec![], sink("out"), &schema)], 0, 0);
    compare("straight", &plan, &[("in", input(1, 4_000, 9))], &schema, true);
}

#[test]
fn rows_pass_through_exchanges() {
    let schema = left_schema();
    for partition in [Partition::Any, Partition::Gather, Partition::Hash(vec![0])] {
        let in_order = partition != Partition::Hash(vec![0]);
        let mut last = stage("b", from(0, &schema), vec![], sink("out"), &schema);
        last.ordered = in_order;
        let plan = plan(vec![stage("a", source("in", &schema), vec![], to(0, partition), &schema), last], 1, 0);
        compare("exchange", &plan, &[("in", input(2, 4_000, 9))], &schema, in_order);
    }
}

#[test]
fn groups_are_kept() {
    for keys in [&[0][..], &[0, 1], &[]] {
        let (plan, output) = aggregates::plan_by(keys, 100);
        compare("aggregate", &plan, &[("in", input(3, 4_000, 50))], &output, false);
    }
}

#[test]
fn joins_keep_their_tables_and_marks() {
    let (left, right) = (left_schema(), joins::right_schema());
    let mut rng = Rng(4);
    let right_rows: Vec<Row> = left_rows(&mut rng, 1_500, 200);
    let right_batches = batches(&right, &right_rows, &mut rng, 60);
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti] {
        let plan = joins::plan_of(joins::join(kind, &left, &right));
        let inputs = [("in", input(5, 2_500, 250)), ("right", right_batches.clone())];
        compare(&format!("{kind:?}"), &plan, &inputs, &joins::output_schema(), false);
    }
}

#[test]
fn what_stands_before_a_stage_that_waits_is_kept() {
    let schema = left_schema();
    compare("diamond", &flow::diamond(&schema), &[("in", input(6, 4_000, 9))], &schema, false);
}

#[test]
fn sorted_rows_are_kept() {
    let schema = left_schema();
    for limit in [None, Some(300)] {
        let by = vec![key(col(&schema, 0), false, true)];
        let sort = StageOp::Sort { node: "sort".into(), keys: by, limit };
        let take = StageOp::Take { node: "take".into(), limit: limit.unwrap_or(u64::MAX / 2), offset: 7 };
        let mut last = stage("b", from(0, &schema), vec![sort, take], sink("out"), &schema);
        last.max_tasks = Some(1);
        let first = stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema);
        compare("sort", &plan(vec![first, last], 1, 0), &[("in", input(7, 4_000, 90))], &schema, true);
    }
}

#[test]
fn keys_that_came_are_kept() {
    let schema = left_schema();
    let by = vec![key(col(&schema, 2), true, false)];
    // Which row of a key comes first is open where rows are dealt out: one column only.
    for (keys, order) in [(vec![0], by), (vec![0, 1, 2], vec![])] {
        let distinct = StageOp::Distinct { node: "distinct".into(), keys: keys.clone(), order };
        let mut last = stage("b", from(0, &schema), vec![distinct], sink("out"), &schema);
        last.ordered = false;
        let first = stage("a", source("in", &schema), vec![], to(0, Partition::Hash(keys)), &schema);
        compare("distinct", &plan(vec![first, last], 1, 0), &[("in", input(8, 4_000, 300))], &schema, false);
    }
}

/// From any number of tasks to any other, 1 to 8 each: state is dealt out anew and none of it is lost or dealt twice.
#[test]
fn any_number_of_tasks_goes_on_from_any_other() {
    let (plan, output) = aggregates::plan_by(&[0], 100);
    let input = input(10, 2_000, 300);
    let tables = dfc_engine::MemoryConnectors::default();
    tables.put("in", input.clone());
    run(&tables, &plan, 2).unwrap_or_else(|e| panic!("{e}"));
    let whole = sorted(rows(&output, &tables.get("out").expect("the sink has finished")));
    let mut resumed = 0;
    for (before, after) in (1..=8).flat_map(|before| (1..=8).map(move |after| (before, after))) {
        let (folder, world) = (tempfile::tempdir().expect("a folder"), World::default());
        world.put("in", input.clone());
        let watch = Arc::new(Watch::default());
        for (fuse, parallelism) in [(45, before), (-1, after)] {
            world.fuse(fuse);
            let ran = run_with(&world, &often(plan.clone()), checkpointed(folder.path(), parallelism), watch.clone());
            assert_eq!(ran.is_err(), fuse > 0, "{before} to {after}: {:?}", ran.err());
        }
        assert_eq!(sorted(rows(&output, &world.rows("out"))), whole, "{before} to {after}");
        resumed += watch.resumed.load(Ordering::Relaxed);
    }
    assert!(resumed > 48, "{resumed} of 64 went on from a checkpoint");
}

/// What is counted is counted once, wherever a run breaks down (D17): a checkpoint's counters are those at its barrier, on both sides, and
/// the last run's are those of a run without a break.
#[test]
fn rows_are_counted_once() {
    const ROWS: usize = 3_000;
    let schema = left_schema();
    let straight = plan(vec![stage("a", source("in", &schema), vec![], sink("out"), &schema)], 0, 0);
    let first = stage("a", source("in", &schema), vec![], to(0, Partition::Any), &schema);
    let exchange = plan(vec![first, stage("b", from(0, &schema), vec![], sink("out"), &schema)], 1, 0);
    for (name, mut plan) in [("straight", straight), ("exchange", exchange)] {
        let every = CheckpointSettings { retain: 10_000, interval_ms: 1, tolerate: 1_000, ..Default::default() };
        plan.job.checkpoint = Some(every);
        let mut compared = 0;
        for fuse in [3, 11, 20, 34, 47, 61] {
            let (folder, world) = (tempfile::tempdir().expect("a folder"), World::default());
            world.put("in", input(13, ROWS, 9));
            let watch = Arc::new(Watch::default());
            for fuse in [fuse, fuse / 2, -1] {
                world.fuse(fuse);
                let ran = run_with(&world, &plan, checkpointed(folder.path(), 2), watch.clone());
                assert_eq!(ran.is_err(), fuse >= 0, "{name}, {fuse}: {:?}", ran.err());
                if let Ok(summary) = ran {
                    assert_eq!((summary.rows_in, summary.rows_out()), (ROWS as u64, ROWS as u64), "{name}, {fuse}");
                }
                let place = Place::open(None, folder.path()).expect("a place");
                let all = dfc_checkpoint::Checkpoints::new(place, &plan.job.name).manifests().expect("manifests");
                for (number, manifest) in all {
                    let counters = manifest.expect("a whole checkpoint").counters;
                    assert_eq!(counters.rows_in, counters.rows_out, "{name}, {fuse}: checkpoint {number}");
                    compared += 1;
                }
            }
            let progress = watch.progress.lock().unwrap().clone();
            assert_eq!((progress.rows_in(), progress.rows_out()), (ROWS as u64, ROWS as u64), "{name}, {fuse}");
        }
        assert!(compared > 20, "{name}: {compared} checkpoints");
    }
}

/// A table is stored in parts that say what changed, and after 16 of them whole: however many checkpoints there were, a restart reads no more.
#[test]
fn chains_of_parts_are_bounded() {
    let (mut plan, _) = aggregates::plan_by(&[0], 100);
    let every = CheckpointSettings { retain: 10_000, interval_ms: 1, tolerate: 1_000, ..CheckpointSettings::default() };
    plan.job.checkpoint = Some(every);
    // How many there are depends on the machine: of a busy one's more rows are asked.
    for times in 1.. {
        let rows = left_rows(&mut Rng(11), 30_000 * times, 400);
        let input = batches(&left_schema(), &rows, &mut Rng(12), 12);
        let (folder, world) = (tempfile::tempdir().expect("a folder"), World::default());
        world.fuse(input.len() as i64 - 5);
        world.put("in", input);
        let ran = run_with(&world, &plan, checkpointed(folder.path(), 2), Arc::new(Watch::default()));
        ran.expect_err("the lights go out");
        let place = Place::open(None, folder.path()).expect("a place");
        let all = dfc_checkpoint::Checkpoints::new(place, &plan.job.name).manifests().expect("manifests");
        let whole = all.iter().filter_map(|(_, manifest)| manifest.as_ref().ok());
        let operators = whole.flat_map(|manifest| &manifest.stages).flat_map(|stage| &stage.operators);
        let longest = operators.filter(|operator| operator.kind == "groups").map(|operator| operator.parts.len()).max();
        assert!(longest.is_some_and(|parts| parts <= 16), "{longest:?} parts");
        if all.len() > 20 && longest > Some(8) {
            break;
        }
        assert!(times < 8, "{} checkpoints, {longest:?} parts", all.len());
    }
}

/// Rows are applied while further ones are read, long before a checkpoint is due, where the target says that it is worth it.
#[test]
fn a_target_that_has_nothing_to_do_is_given_rows_early() {
    let schema = left_schema();
    let mut plan = plan(vec![stage("a", source("in", &schema), vec![], sink("out"), &schema)], 0, 0);
    let hour = CheckpointSettings { interval_ms: 3_600_000, tolerate: 1_000, ..CheckpointSettings::default() };
    plan.job.checkpoint = Some(hour);
    let input = input(9, 40_000, 9);
    for (rows, early) in [(0, false), (100, true), (1_000_000, false)] {
        let (folder, world) = (tempfile::tempdir().expect("a folder"), World::default());
        world.put("in", input.clone());
        world.fuse(-1);
        world.eager(rows);
        let watch = Arc::new(Watch::default());
        run_with(&world, &plan, checkpointed(folder.path(), 2), watch.clone()).unwrap_or_else(|e| panic!("{e}"));
        let taken = watch.taken.load(Ordering::Relaxed);
        assert_eq!(taken > 1, early, "worth it from {rows} rows on: {taken} checkpoints");
        let read: usize = world.rows("out").iter().map(|batch| batch.rows).sum();
        assert_eq!(read, 40_000);
    }
}
