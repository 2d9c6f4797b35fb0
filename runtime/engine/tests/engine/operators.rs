//! Each operator against the plainest way to do the same, over random batches and 1 to 3 tasks.

use std::cmp::Ordering;

use dfc_ir::Type;
use dfc_ir::Value;
use dfc_ir::expr::BinaryOp;
use dfc_ir::stage::{Partition, StageOp, Step};

use crate::support::*;

#[test]
fn filters_keep_the_order_of_their_input() {
    let mut rng = Rng(1);
    let schema = left_schema();
    let input = left_rows(&mut rng, 5_000, 10);
    let expected: Vec<Row> = input.iter().filter(|row| matches!(row[0], Value::Int(k) if k < 5)).cloned().collect();
    let filter = binary(BinaryOp::Lt, col(&schema, 0), lit(5), Type::Bool);
    let plan = plan(
        vec![stage(
            "a",
            source("in", &schema),
            vec![steps("f", &schema, vec![Step::Filter(filter)])],
            sink("out"),
            &schema,
        )],
        0,
        0,
    );
    for parallelism in 1..=3 {
        let batches = batches(&schema, &input, &mut rng, 100);
        assert_eq!(through(&plan, batches, &schema, parallelism), expected);
    }
}

#[test]
fn order_is_kept_over_several_exchanges() {
    let mut rng = Rng(2);
    let schema = left_schema();
    let input = left_rows(&mut rng, 4_000, 10);
    let filter =
        || steps("f", &schema, vec![Step::Filter(binary(BinaryOp::Ge, col(&schema, 2), lit(700), Type::Bool))]);
    let plan = plan(
        vec![
            stage("a", source("in", &schema), vec![], to(0, Partition::Any), &schema),
            stage("b", from(0, &schema), vec![filter()], to(1, Partition::Any), &schema),
            stage("c", from(1, &schema), vec![], to(2, Partition::Gather), &schema),
            stage("d", from(2, &schema), vec![], to(3, Partition::Any), &schema),
            stage("e", from(3, &schema), vec![], sink("out"), &schema),
        ],
        4,
        0,
    );
    for parallelism in 1..=3 {
        let batches = batches(&schema, &input, &mut rng, 50);
        assert_eq!(through(&plan, batches, &schema, parallelism), input[700..]);
    }
}

#[test]
fn take_gives_the_first_rows_and_stops_reading() {
    let mut rng = Rng(3);
    let schema = left_schema();
    let input = left_rows(&mut rng, 20_000, 10);
    for (limit, offset) in [(0, 0), (1, 0), (10, 3), (1_000, 500), (19_995, 10), (50_000, 0)] {
        let take = StageOp::Take { node: "take".into(), limit, offset };
        let plan = plan(
            vec![
                stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema),
                stage("b", from(0, &schema), vec![take], sink("out"), &schema),
            ],
            1,
            0,
        );
        let first = (offset as usize).min(input.len());
        let last = ((limit + offset) as usize).min(input.len());
        for parallelism in 1..=3 {
            let batches = batches(&schema, &input, &mut rng, 50);
            let tables = dfc_engine::MemoryConnectors::default();
            tables.put("in", batches);
            let summary = run(&tables, &plan, parallelism).unwrap();
            assert_eq!(rows(&schema, &tables.get("out").unwrap()), input[first..last]);
            if limit <= 10 {
                assert!(summary.rows_in < 5_000, "{} rows were read", summary.rows_in);
            }
        }
    }
}

#[test]
fn limited_runs_read_the_first_rows() {
    let mut rng = Rng(4);
    let schema = left_schema();
    let input = left_rows(&mut rng, 1_000, 10);
    let tables = dfc_engine::MemoryConnectors::default();
    tables.put("in", batches(&schema, &input, &mut rng, 50));
    let plan = plan(vec![stage("a", source("in", &schema), vec![], sink("out"), &schema)], 0, 0);
    let options = dfc_engine::RunOptions { limit_rows: Some(123), ..options(3) };
    dfc_engine::run_with(&tables, &plan, options, std::sync::Arc::new(dfc_engine::Silent)).unwrap();
    assert_eq!(rows(&schema, &tables.get("out").unwrap()), input[..123]);
}

fn compare(a: &Value<'_>, b: &Value<'_>, descending: bool, nulls_first: bool) -> Ordering {
    let nulls = if nulls_first { Ordering::Less } else { Ordering::Greater };
    let order = match (a, b) {
        (Value::Null, Value::Null) => return Ordering::Equal,
        (Value::Null, _) => return nulls,
        (_, Value::Null) => return nulls.reverse(),
        (Value::Int(a), Value::Int(b)) | (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap(),
        _ => panic!("not in these tests"),
    };
    if descending { order.reverse() } else { order }
}

#[test]
fn sorts_are_stable_and_place_nulls() {
    let mut rng = Rng(5);
    let schema = left_schema();
    let input = left_rows(&mut rng, 6_000, 6);
    for turn in 0..8u64 {
        let (d0, n0, d1, n1) = (turn & 1 == 1, turn & 2 == 2, turn & 4 == 4, turn & 1 == 0);
        let limit = (turn % 3 == 2).then_some(100 * turn);
        let sort = StageOp::Sort {
            node: "sort".into(),
            keys: vec![key(col(&schema, 0), d0, n0), key(col(&schema, 1), d1, n1)],
            limit,
        };
        let plan = plan(
            vec![
                stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema),
                stage("b", from(0, &schema), vec![sort], sink("out"), &schema),
            ],
            1,
            0,
        );
        let mut expected = input.clone();
        expected.sort_by(|a, b| compare(&a[0], &b[0], d0, n0).then(compare(&a[1], &b[1], d1, n1)));
        expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        for parallelism in 1..=3 {
            let batches = batches(&schema, &input, &mut rng, 400);
            assert_eq!(through(&plan, batches, &schema, parallelism), expected);
        }
    }
}

#[test]
fn sorts_with_a_limit_let_rows_go() {
    let mut rng = Rng(6);
    let schema = left_schema();
    let input: Vec<Row> = left_rows(&mut rng, 300_000, 1_000_000);
    let sort = StageOp::Sort { node: "sort".into(), keys: vec![key(col(&schema, 0), true, false)], limit: Some(50) };
    let plan = plan(
        vec![
            stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema),
            stage("b", from(0, &schema), vec![sort], sink("out"), &schema),
        ],
        1,
        0,
    );
    let mut expected = input.clone();
    expected.sort_by(|a, b| compare(&a[0], &b[0], true, false));
    expected.truncate(50);
    assert_eq!(through(&plan, batches(&schema, &input, &mut rng, 20_000), &schema, 2), expected);
}

#[test]
fn decimals_and_floats_are_sorted_by_value() {
    use dfc_ir::DataType;
    let mut rng = Rng(7);
    let schema = schema(&[
        ("d", DataType::optional(Type::Decimal(12, 2))),
        ("w", DataType::optional(Type::Decimal(38, 10))),
        ("f", DataType::optional(Type::Float64)),
        ("n", int()),
    ]);
    let mut input = Vec::new();
    for n in 0..500 {
        let d = rng.below(20) as i128 - 10;
        let f = [0.0, -0.0, 1.5, -2.25, 1e300][rng.below(5) as usize];
        let null = rng.below(6);
        let or_null = |which: u64, value: Value<'static>| if null == which { Value::Null } else { value };
        input.push(vec![
            or_null(0, Value::Decimal(d / 4)),
            or_null(1, Value::Decimal(d / 3 * 1_000_000_000_000_000_000_000)),
            or_null(2, Value::Float(f)),
            Value::Int(n),
        ]);
    }
    let keys = [(0, true), (2, false), (1, true)];
    let sort = StageOp::Sort {
        node: "sort".into(),
        keys: keys.iter().map(|&(column, down)| key(col(&schema, column), down, false)).collect(),
        limit: None,
    };
    let plan = plan(
        vec![
            stage("a", source("in", &schema), vec![], to(0, Partition::Gather), &schema),
            stage("b", from(0, &schema), vec![sort], sink("out"), &schema),
        ],
        1,
        0,
    );
    let mut expected = input.clone();
    // Stable, and −0 equals 0.
    expected.sort_by(|a, b| {
        keys.iter().map(|&(c, down)| compare(&a[c], &b[c], down, false)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    });
    assert_eq!(through(&plan, batches(&schema, &input, &mut rng, 30), &schema, 2), expected);
}

#[test]
fn distinct_keeps_one_row_a_key() {
    let mut rng = Rng(8);
    let schema = left_schema();
    let input = left_rows(&mut rng, 5_000, 30);
    for keys in [vec![0], vec![0, 1], vec![]] {
        let by = if keys.is_empty() { vec![0, 1, 2] } else { keys.clone() };
        let distinct = StageOp::Distinct { node: "distinct".into(), keys: keys.clone(), order: vec![] };
        let plan = plan(
            vec![
                stage("a", source("in", &schema), vec![], to(0, Partition::Hash(by.clone())), &schema),
                stage("b", from(0, &schema), vec![distinct], sink("out"), &schema),
            ],
            1,
            0,
        );
        let key_of = |row: &Row| by.iter().map(|&k| row[k].clone()).collect::<Row>();
        let mut seen = std::collections::HashSet::new();
        let expected: Vec<Row> = input.iter().filter(|row| seen.insert(key_of(row))).cloned().collect();
        for parallelism in 1..=3 {
            let out = through(&plan, batches(&schema, &input, &mut rng, 300), &schema, parallelism);
            if parallelism == 1 {
                assert_eq!(out, expected);
            }
            // Any row of a key will do, but it must be one of the input.
            assert!(out.iter().all(|row| input.contains(row)));
            assert_eq!(sorted(out.iter().map(key_of).collect()), sorted(expected.iter().map(key_of).collect()));
        }
    }
}

#[test]
fn distinct_keeps_the_first_row_in_an_order() {
    let mut rng = Rng(9);
    let schema = left_schema();
    // Many more rows than keys, so that rows are let go on the way.
    let input = left_rows(&mut rng, 120_000, 7);
    let order = vec![key(col(&schema, 1), true, true)];
    let distinct = StageOp::Distinct { node: "distinct".into(), keys: vec![0], order };
    let plan = plan(
        vec![
            stage("a", source("in", &schema), vec![], to(0, Partition::Hash(vec![0])), &schema),
            stage("b", from(0, &schema), vec![distinct], sink("out"), &schema),
        ],
        1,
        0,
    );
    let mut ranked = input.clone();
    ranked.sort_by(|a, b| compare(&a[1], &b[1], true, true));
    let mut seen = std::collections::HashSet::new();
    let expected: Vec<Row> = ranked.into_iter().filter(|row| seen.insert(row[0].clone())).collect();
    for parallelism in 1..=3 {
        let out = through(&plan, batches(&schema, &input, &mut rng, 9_000), &schema, parallelism);
        assert_eq!(sorted(out), sorted(expected.clone()));
    }
}

#[test]
fn zero_and_minus_zero_are_one_key() {
    use dfc_ir::DataType;
    let schema = schema(&[("f", DataType::of(Type::Float64))]);
    let input: Vec<Row> = [0.0, -0.0, 1.0, -0.0, 1.0].iter().map(|&f| vec![Value::Float(f)]).collect();
    let distinct = StageOp::Distinct { node: "distinct".into(), keys: vec![0], order: vec![] };
    let plan = plan(
        vec![
            stage("a", source("in", &schema), vec![], to(0, Partition::Hash(vec![0])), &schema),
            stage("b", from(0, &schema), vec![distinct], sink("out"), &schema),
        ],
        1,
        0,
    );
    for parallelism in 1..=3 {
        assert_eq!(through(&plan, batches(&schema, &input, &mut Rng(10), 3), &schema, parallelism).len(), 2);
    }
}
