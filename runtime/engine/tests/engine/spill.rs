//! State on disk: with next to no memory every operator gives what it gives with all of it (`--memory`).

use std::sync::Arc;

use dfc_engine::{MemoryConnectors, RunError, RunOptions, Silent, run_with};
use dfc_ir::plan::{JoinKind, MatchMode, OptionValue};
use dfc_ir::stage::{Partition, StageInput, StageOp};
use dfc_ir::{Schema, StagePlan, Value};

use crate::aggregates::plan_by;
use crate::support::*;

/// Runs a plan with so much memory: the rows that come out. Nothing stays in the folder where state goes.
fn with_memory(
    plan: &StagePlan,
    input: Vec<dfc_batch::Batch>,
    output: &Schema,
    parallelism: usize,
    memory: Option<u64>,
) -> Result<Vec<Row>, RunError> {
    let tables = MemoryConnectors::default();
    tables.put("in", input);
    let folder = tempfile::tempdir().unwrap();
    let spill_folder = folder.path().join("state");
    let options = RunOptions { memory, spill_folder: spill_folder.clone(), ..options(parallelism) };
    run_with(&tables, plan, options, Arc::new(Silent))?;
    assert_eq!(spill_folder.exists(), memory.is_some(), "state went to disk");
    assert!(!spill_folder.exists() || std::fs::read_dir(&spill_folder).unwrap().next().is_none());
    Ok(rows(output, &tables.get("out").expect("the sink has finished")))
}

/// Bytes with which every batch, and every tenth or so, is too much.
const LITTLE: [u64; 2] = [1, 60_000];

#[test]
fn groups_on_disk_are_the_same_groups() {
    let mut rng = Rng(21);
    let input = left_rows(&mut rng, 6_000, 900);
    for keys in [vec![0], vec![0, 1]] {
        let (plan, output) = plan_by(&keys, 300);
        let batches = |rng: &mut Rng| batches(&left_schema(), &input, rng, 200);
        let expected = sorted(with_memory(&plan, batches(&mut rng), &output, 2, None).unwrap());
        assert!(expected.len() > 800);
        for (parallelism, memory) in [(1, LITTLE[0]), (3, LITTLE[0]), (1, LITTLE[1]), (2, LITTLE[1])] {
            let found = with_memory(&plan, batches(&mut rng), &output, parallelism, Some(memory)).unwrap();
            assert!(sorted(found) == expected, "{memory} bytes, {parallelism} tasks");
        }
    }
}

#[test]
fn sorted_runs_are_merged_stably() {
    let mut rng = Rng(22);
    let schema = left_schema();
    let input = left_rows(&mut rng, 12_000, 50);
    for limit in [None, Some(7_000)] {
        let keys = vec![key(col(&schema, 0), true, true), key(col(&schema, 1), false, false)];
        let sort = StageOp::Sort { node: "sort".into(), keys, limit };
        let stages = vec![
            stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema),
            stage("b", from(0, &schema), vec![sort], sink("out"), &schema),
        ];
        let plan = plan(stages, 1, 0);
        let batches = |rng: &mut Rng| batches(&schema, &input, rng, 500);
        let expected = with_memory(&plan, batches(&mut rng), &schema, 2, None).unwrap();
        assert_eq!(expected.len(), limit.unwrap_or(12_000) as usize);
        for (parallelism, memory) in [(1, LITTLE[0]), (3, LITTLE[1]), (2, 700_000)] {
            let found = with_memory(&plan, batches(&mut rng), &schema, parallelism, Some(memory)).unwrap();
            assert!(found == expected, "{memory} bytes, {parallelism} tasks, limit {limit:?}");
        }
    }
}

fn distinct(keys: &[usize], order: Vec<dfc_ir::plan::SortKey>) -> StagePlan {
    let schema = left_schema();
    let op = StageOp::Distinct { node: "distinct".into(), keys: keys.to_vec(), order };
    let by = if keys.is_empty() { vec![0, 1, 2] } else { keys.to_vec() };
    let stages = vec![
        stage("a", source("in", &schema), vec![], to(0, Partition::Hash(by)), &schema),
        stage("b", from(0, &schema), vec![op], sink("out"), &schema),
    ];
    plan(stages, 1, 0)
}

#[test]
fn a_key_comes_once_though_those_before_are_on_disk() {
    let mut rng = Rng(23);
    let schema = left_schema();
    let input = left_rows(&mut rng, 8_000, 700);
    let batches = |rng: &mut Rng| batches(&schema, &input, rng, 200);
    for keys in [vec![0], vec![1, 0], vec![]] {
        let plan = distinct(&keys, Vec::new());
        let expected = sorted(with_memory(&plan, batches(&mut rng), &schema, 1, None).unwrap());
        // A key takes a dozen bytes.
        for memory in [LITTLE[0], 6_000] {
            // One task sees the rows in their order, so that the first of each key is known.
            let found = with_memory(&plan, batches(&mut rng), &schema, 1, Some(memory)).unwrap();
            assert!(sorted(found) == expected, "{memory} bytes by {keys:?}");
            let found = with_memory(&plan, batches(&mut rng), &schema, 3, Some(memory)).unwrap();
            assert_eq!(found.len(), expected.len());
        }
    }
    for keys in [vec![0], vec![1, 0]] {
        let plan = distinct(&keys, vec![key(col(&schema, 1), true, true)]);
        let expected = sorted(with_memory(&plan, batches(&mut rng), &schema, 2, None).unwrap());
        for (parallelism, memory) in [(1, LITTLE[0]), (3, LITTLE[1])] {
            let found = with_memory(&plan, batches(&mut rng), &schema, parallelism, Some(memory)).unwrap();
            assert!(sorted(found) == expected, "the best by {keys:?}, {memory} bytes");
        }
    }
}

#[test]
fn a_source_without_an_end_is_refused() {
    let mut plan = distinct(&[0], Vec::new());
    let StageInput::Source { spec, .. } = &mut plan.stages[0].input else { panic!("a source") };
    spec.options.insert("follow".into(), OptionValue::Value(Value::Bool(true)));
    let schema = left_schema();
    let error = with_memory(&plan, batches(&schema, &[], &mut Rng(1), 2), &schema, 1, Some(1)).unwrap_err();
    assert_eq!(error.code(), "R0404");
    assert!(error.to_string().starts_with("`in`: it is followed without an end"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let schema = left_schema();
    let tables = MemoryConnectors::default();
    tables.put("in", batches(&schema, &left_rows(&mut Rng(3), 500, 400), &mut Rng(1), 100));
    let file = tempfile::NamedTempFile::new().unwrap();
    let options = RunOptions { memory: Some(1), spill_folder: file.path().join("state"), ..options(1) };
    let error = run_with(&tables, &distinct(&[0], Vec::new()), options, Arc::new(Silent)).unwrap_err();
    assert_eq!(error.code(), "R0404");
    assert!(error.to_string().contains("/state`") && error.help().unwrap().contains("make room"), "{error}");
}

/// Runs a join with so much memory.
fn joined(
    plan: &StagePlan,
    [left, right]: [Vec<dfc_batch::Batch>; 2],
    parallelism: usize,
    memory: Option<u64>,
) -> Result<(Vec<Row>, bool), RunError> {
    let tables = MemoryConnectors::default();
    tables.put("in", left);
    tables.put("right", right);
    let folder = tempfile::tempdir().unwrap();
    let spill_folder = folder.path().join("state");
    let options = RunOptions { memory, spill_folder: spill_folder.clone(), ..options(parallelism) };
    let summary = run_with(&tables, plan, options, Arc::new(Silent))?;
    let said = summary.operators.iter().any(|o| o.note.as_ref().is_some_and(|note| note.contains("joined on disk")));
    assert_eq!(said, spill_folder.exists());
    assert!(!said || std::fs::read_dir(&spill_folder).unwrap().next().is_none(), "nothing stays");
    Ok((rows(&crate::joins::output_schema(), &tables.get("out").expect("the sink has finished")), said))
}

/// All kinds, rows, partners and what is left over in the order that they have in memory.
#[test]
fn a_right_side_on_disk_gives_the_same_rows_in_the_same_order() {
    let mut rng = Rng(41);
    let schema = left_schema();
    let kinds = crate::joins::KINDS;
    for (turn, keys) in [7, 300, 1_000, 1].into_iter().enumerate() {
        let left = left_rows(&mut rng, 1_200, keys);
        let right = left_rows(&mut rng, [120, 1_500, 2_500, 0][turn], keys);
        for kind in kinds {
            for matches in [MatchMode::All, MatchMode::First] {
                if matches == MatchMode::First && !matches!(kind, JoinKind::Inner | JoinKind::Left) {
                    continue;
                }
                let mut join = crate::joins::join(kind, &schema, &schema);
                join.matches = matches;
                let plan = crate::joins::plan_of(join);
                let sides = |rng: &mut Rng| [batches(&schema, &left, rng, 300), batches(&schema, &right, rng, 200)];
                let (expected, on_disk) = joined(&plan, sides(&mut rng), 2, None).unwrap();
                assert!(!on_disk);
                for (parallelism, memory) in [(1, 1), (3, 1), (2, 60_000), (2, 1 << 30)] {
                    let (found, on_disk) = joined(&plan, sides(&mut rng), parallelism, Some(memory)).unwrap();
                    assert!(
                        found == expected,
                        "{kind:?} {matches:?} by {keys} keys, {memory} bytes, {parallelism} tasks"
                    );
                    assert_eq!(on_disk, memory == 1 && !right.is_empty() || memory == 60_000 && right.len() > 1_000);
                }
            }
        }
    }
}

/// Right rows of one key that don't fit together are told by name; so is a join that may reject rows.
#[test]
fn a_right_side_that_cannot_be_divided_is_named() {
    let schema = left_schema();
    let row = |n: i128| vec![Value::Int(7), Value::string(format!("a text longer than twelve {n}")), Value::Int(n)];
    let right: Vec<Row> = (0..2_000).map(row).collect();
    let refused = |change: &dyn Fn(&mut dfc_ir::plan::Join)| {
        let mut join = crate::joins::join(JoinKind::Inner, &schema, &schema);
        change(&mut join);
        let mut rng = Rng(5);
        let sides = [batches(&schema, &right[..3], &mut rng, 2), batches(&schema, &right, &mut rng, 200)];
        joined(&crate::joins::plan_of(join), sides, 2, Some(1)).unwrap_err()
    };
    let error = refused(&|_| {});
    assert_eq!(error.code(), "R0404");
    assert!(error.to_string().contains("right rows of one key are joined in memory"), "{error}");
    let error = refused(&|join| join.required = true);
    assert_eq!(error.code(), "R0404");
    assert!(error.to_string().contains("since it may reject rows, whose places are lost on disk"), "{error}");
    assert_eq!(refused(&|join| join.matches = MatchMode::One).code(), "R0404");
}
