//! Rows that are rejected, and what the job's `errors { limit, ratio, to }` makes of them (D15).

use std::sync::Arc;

use dfc_engine::{MemoryConnectors, RunError, RunOptions, Silent, Summary, run_with};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::ErrorPolicy;
use dfc_ir::stage::Step;
use dfc_ir::{StagePlan, Type, Value};

use crate::support::*;

const ROWS: usize = 5_000;

/// Demands `k != 0` of rows whose k is 0 in rows 500, 1500, 2500 …
fn plan_with(errors: ErrorPolicy) -> StagePlan {
    let schema = left_schema();
    let require = Step::Require(binary(BinaryOp::Ne, col(&schema, 0), lit(0), Type::Bool), "k is not 0".into());
    let ops = vec![steps("f", &schema, vec![require])];
    let mut plan = plan(vec![stage("a", source("in", &schema), ops, sink("out"), &schema)], 0, 0);
    plan.job.errors = errors;
    plan
}

fn run_with_errors(
    errors: ErrorPolicy,
    parallelism: usize,
    folder: Option<&std::path::Path>,
) -> (Result<Summary, RunError>, Option<usize>) {
    let schema = left_schema();
    let input: Vec<Row> =
        (0..ROWS).map(|n| vec![Value::Int(i128::from(n % 1_000 != 500)), Value::Null, Value::Int(n as i128)]).collect();
    let tables = MemoryConnectors::default();
    let mut input = batches(&schema, &input, &mut Rng(50), 2);
    // One row a batch: a row's number is its batch's.
    input.retain(|batch| batch.rows > 0);
    for (seq, batch) in input.iter_mut().enumerate() {
        batch.seq = seq as u64;
    }
    tables.put("in", input);
    let options = RunOptions { rejects_folder: folder.map(Into::into), ..options(parallelism) };
    let result = run_with(&tables, &plan_with(errors), options, Arc::new(Silent));
    (result, tables.get("out").map(|out| rows(&schema, &out).len()))
}

fn limit(limit: u64) -> ErrorPolicy {
    ErrorPolicy { limit: Some(limit), ..ErrorPolicy::default() }
}

fn ratio(ratio_ppm: u64) -> ErrorPolicy {
    ErrorPolicy { ratio_ppm: Some(ratio_ppm), ..ErrorPolicy::default() }
}

#[test]
fn by_default_the_first_rejected_row_stops_the_job() {
    for parallelism in 1..=3 {
        let (result, out) = run_with_errors(ErrorPolicy::default(), parallelism, None);
        let error = result.unwrap_err();
        let RunError::RowLimit { first, count, rejects, .. } = &error else { panic!("{error}") };
        assert_eq!((first.code, first.node.as_str(), first.rule.as_str()), ("R0106", "f", "k is not 0"));
        assert_eq!((*count, rejects), (1, &None));
        let place = first.place.as_ref().unwrap();
        let line = place.line.unwrap();
        assert_eq!(first.raw, Some(format!("raw {line}")));
        assert_eq!(error.to_string(), format!("`f`: `memory` line {line} (byte {}): k is not 0", 10 * line));
        assert!(error.help().unwrap().contains("errors { limit: 100"));
        assert_eq!(out, None);
    }
}

#[test]
fn tolerated_rows_are_counted_and_kept() {
    for parallelism in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("rejected");
        let (result, out) = run_with_errors(limit(5), parallelism, Some(&kept));
        let summary = result.unwrap();
        assert_eq!((summary.rejected, summary.rows_in, out), (5, 5_000, Some(4_995)));
        let path = summary.rejects.unwrap();
        assert_eq!(path, kept.join("test-rejects.jsonl"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 5);
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(row["operator"], "f");
            assert_eq!(row["source"], "memory");
            assert_eq!(row["code"], "R0106");
            assert_eq!(row["rule"], "k is not 0");
            assert_eq!(row["offset"].as_u64().unwrap(), 10 * row["line"].as_u64().unwrap());
            assert_eq!(row["raw"], format!("raw {}", row["line"]));
        }
        // Nothing else is left in the folder.
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1);
    }
}

#[test]
fn one_more_than_the_limit_stops_the_job_and_keeps_the_rows() {
    for parallelism in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let (result, out) = run_with_errors(limit(2), parallelism, Some(folder.path()));
        let error = result.unwrap_err();
        let RunError::RowLimit { count, exceeded, rejects, .. } = &error else { panic!("{error}") };
        assert!((3..=5).contains(count), "{count}");
        assert_eq!(exceeded.as_deref(), Some("2 rows"));
        let path = rejects.clone().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count() as u64, *count);
        assert!(error.help().unwrap().contains(path.to_str().unwrap()));
        assert_eq!(out, None);
    }
}

#[test]
fn a_share_is_judged_while_running_and_at_the_end() {
    // One in a thousand is rejected.
    let (result, out) = run_with_errors(ratio(2_000), 2, None);
    assert_eq!((result.unwrap().rejected, out), (5, Some(4_995)));
    let (result, out) = run_with_errors(ratio(900), 1, None);
    let error = result.unwrap_err();
    let RunError::RowLimit { exceeded, count, .. } = &error else { panic!("{error}") };
    let exceeded = exceeded.clone().unwrap();
    assert!(exceeded.starts_with("0.09 % of the rows, of which ") && out.is_none(), "{exceeded}");
    // Row 500 is before the first thousand, row 1500 (2 of 1501: more than is tolerated) stops it.
    assert_eq!(*count, 2);
    // Both count.
    let both = ErrorPolicy { limit: Some(3), ratio_ppm: Some(500_000), to: None };
    let (result, _) = run_with_errors(both, 1, None);
    assert!(matches!(result, Err(RunError::RowLimit { count: 4, .. })));
}

#[test]
fn rejects_that_can_not_be_written_stop_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let (result, out) = run_with_errors(limit(100), 2, Some(&file));
    let error = result.unwrap_err();
    assert!(matches!(error, RunError::Rejects { .. }), "{error}");
    assert_eq!(out, None);
}
