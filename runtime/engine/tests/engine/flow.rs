//! How stages are connected: unions, branches, diamonds, and what can be watched.

use std::sync::{Arc, Mutex};

use dfc_engine::{Event, MemoryConnectors, Moment, Observer, Progress, run_with};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{Join, JoinColumn, JoinKind, MatchMode};
use dfc_ir::stage::{Partition, StageOp, StageOutput, Step};
use dfc_ir::{Schema, Site, StagePlan, Type, Value};

use crate::support::*;

#[test]
fn a_union_has_all_rows_of_all_inputs() {
    let mut rng = Rng(30);
    let schema = left_schema();
    let (a, b) = (left_rows(&mut rng, 2_000, 9), left_rows(&mut rng, 300, 9));
    let mut plan = plan(
        vec![
            stage("a", source("a", &schema), vec![], to(0, Partition::Any), &schema),
            stage("b", source("b", &schema), vec![], to(0, Partition::Any), &schema),
            stage("c", from(0, &schema), vec![], sink("out"), &schema),
        ],
        1,
        0,
    );
    plan.stages[2].ordered = false;
    let expected = sorted(a.iter().chain(&b).cloned().collect());
    for parallelism in 1..=3 {
        let tables = MemoryConnectors::default();
        tables.put("a", batches(&schema, &a, &mut rng, 30));
        tables.put("b", batches(&schema, &b, &mut rng, 30));
        run(&tables, &plan, parallelism).unwrap();
        assert_eq!(sorted(rows(&schema, &tables.get("out").unwrap())), expected);
    }
}

#[test]
fn every_branch_gets_every_row() {
    let mut rng = Rng(31);
    let schema = left_schema();
    let input = left_rows(&mut rng, 3_000, 9);
    let mut first = stage("a", source("in", &schema), vec![], to(0, Partition::Any), &schema);
    first.outputs.push(to(1, Partition::Gather));
    first.outputs.push(sink("direct"));
    let even = binary(BinaryOp::Lt, col(&schema, 0), lit(4), Type::Bool);
    let plan = plan(
        vec![
            first,
            stage("b", from(0, &schema), vec![steps("f", &schema, vec![Step::Filter(even)])], sink("few"), &schema),
            stage("c", from(1, &schema), vec![], sink("all"), &schema),
        ],
        2,
        0,
    );
    for parallelism in 1..=3 {
        let tables = MemoryConnectors::default();
        tables.put("in", batches(&schema, &input, &mut rng, 30));
        let summary = run(&tables, &plan, parallelism).unwrap();
        let few: Vec<Row> = input.iter().filter(|r| matches!(r[0], Value::Int(k) if k < 4)).cloned().collect();
        assert_eq!(rows(&schema, &tables.get("direct").unwrap()), input);
        assert_eq!(rows(&schema, &tables.get("all").unwrap()), input);
        assert_eq!(rows(&schema, &tables.get("few").unwrap()), few);
        let written: Vec<(&str, u64)> = summary.sinks.iter().map(|s| (s.node.as_str(), s.written.rows)).collect();
        assert_eq!(written, [("direct", 3_000), ("few", few.len() as u64), ("all", 3_000)]);
    }
}

/// A stream that is joined with what was made of itself: one branch sorts everything (or passes a filter) and builds the table that the
/// other one waits for.
pub fn diamond(schema: &Schema) -> StagePlan {
    let mut first = stage("a", source("in", schema), vec![], to(0, Partition::Any), schema);
    first.outputs.push(to(1, Partition::Gather));
    let sort = StageOp::Sort { node: "sort".into(), keys: vec![key(col(schema, 2), true, false)], limit: Some(100) };
    let build = StageOutput::Build { table: 0, keys: vec![col(schema, 2)] };
    let join = Join {
        kind: JoinKind::Inner,
        left_keys: vec![col(schema, 2)],
        right_keys: vec![col(schema, 2)],
        residual: None,
        matches: MatchMode::All,
        required: false,
        left_width: 3,
        output: (0..3).map(JoinColumn::Left).collect(),
    };
    let probe = StageOp::Probe {
        node: "join".into(),
        table: 0,
        join,
        left: schema.clone(),
        right: schema.clone(),
        output: schema.clone(),
        site: Site::default(),
    };
    plan(
        vec![
            first,
            stage("sorted", from(1, schema), vec![sort], build, schema),
            stage("joined", from(0, schema), vec![probe], sink("out"), schema),
        ],
        2,
        1,
    )
}

#[test]
fn diamonds_do_not_lock() {
    let mut rng = Rng(32);
    let schema = left_schema();
    let input = left_rows(&mut rng, 5_000, 9);
    for parallelism in 1..=3 {
        // Hundreds of batches: far more than the queues hold.
        let batches = batches(&schema, &input, &mut rng, 20);
        assert_eq!(through(&diamond(&schema), batches, &schema, parallelism), input[4_900..]);
    }
}

#[test]
fn empty_inputs_come_through() {
    let schema = left_schema();
    for parallelism in 1..=3 {
        let batches = batches(&schema, &[], &mut Rng(1), 20);
        assert_eq!(through(&diamond(&schema), batches, &schema, parallelism), Vec::<Row>::new());
    }
}

#[derive(Default)]
struct Watch {
    events: Mutex<Vec<String>>,
    progress: Mutex<Option<Arc<Progress>>>,
}

impl Observer for Watch {
    fn event(&self, event: &Event) {
        let text = match event {
            Event::Started { progress, .. } => {
                *self.progress.lock().unwrap() = Some(progress.clone());
                "started".to_owned()
            }
            Event::Compiled { report, .. } => format!("compiled {}", report.program),
            Event::StageStarted { name, tasks, .. } => format!("stage {name} × {tasks}"),
            Event::StageFinished { stage, .. } => format!("stage {stage} finished"),
            Event::Resumed { .. }
            | Event::BegunAnew { .. }
            | Event::WithoutCheckpoints { .. }
            | Event::Checkpoint { .. }
            | Event::CheckpointAbandoned { .. }
            | Event::QuotaNearlyUsed { .. } => panic!("this run takes no checkpoints"),
            Event::Operator { id, moment, .. } => {
                let moment = match moment {
                    Moment::Opened => "opened",
                    Moment::FirstRow => "first row",
                    Moment::Closed { .. } => "closed",
                };
                format!("{} {} {} {moment}", id.job, id.operator, id.task)
            }
        };
        self.events.lock().unwrap().push(text);
    }
}

/// Serves D17 and D19.
#[test]
fn a_run_can_be_watched() {
    let mut rng = Rng(33);
    let schema = left_schema();
    let input = left_rows(&mut rng, 1_000, 9);
    let filter = binary(BinaryOp::Lt, col(&schema, 2), lit(100), Type::Bool);
    let ops = vec![steps("f", &schema, vec![Step::Filter(filter)])];
    let plan = plan(vec![stage("a", source("in", &schema), ops, sink("out"), &schema)], 0, 0);
    let tables = MemoryConnectors::default();
    tables.put("in", batches(&schema, &input, &mut rng, 100));
    let watch = Arc::new(Watch::default());
    let summary = run_with(&tables, &plan, options(1), watch.clone()).unwrap();

    let events = watch.events.lock().unwrap();
    let expected = [
        "compiled f (early)",
        "compiled f",
        "started",
        "stage a × 1",
        "test in 0 opened",
        "test f 0 opened",
        "test out 0 opened",
        "test in 0 first row",
        "test f 0 first row",
        "test out 0 first row",
        "test in 0 closed",
        "test f 0 closed",
        "test out 0 closed",
        "stage 0 finished",
    ];
    assert_eq!(*events, expected);
    let progress = watch.progress.lock().unwrap().clone().unwrap();
    assert_eq!((progress.rows_in(), progress.rows_out(), progress.rejected()), (1_000, 100, 0));

    assert_eq!((summary.rows_in, summary.rows_out()), (1_000, 100));
    let counted: Vec<_> = summary.operators.iter().map(|o| (o.operator.as_str(), o.rows_in, o.rows_out)).collect();
    assert_eq!(counted, [("in", 1_000, 1_000), ("f", 1_000, 100), ("out", 100, 100)]);
    assert!(summary.operators.iter().all(|o| o.opened <= o.first_row && o.first_row <= o.closed && o.tasks == 1));
}

#[test]
fn plans_that_contradict_themselves_are_refused() {
    let schema = left_schema();
    let tables = MemoryConnectors::default();
    tables.put("in", Vec::new());
    let one = |input, output, exchanges, joins| {
        let plan = plan(vec![stage("a", input, vec![], output, &schema)], exchanges, joins);
        run(&tables, &plan, 1).unwrap_err().to_string()
    };
    let build = StageOutput::Build { table: 3, keys: vec![] };
    for (error, part) in [
        (one(from(0, &schema), sink("out"), 1, 0), "nobody before it writes"),
        (one(from(7, &schema), sink("out"), 1, 0), "nobody before it writes"),
        (one(source("in", &schema), to(0, Partition::Any), 1, 0), "nobody reads exchange 0"),
        (one(source("in", &schema), to(5, Partition::Any), 1, 0), "doesn't exist"),
        (one(source("in", &schema), build, 0, 1), "doesn't exist"),
    ] {
        assert!(error.contains(part), "{error}");
    }
}
