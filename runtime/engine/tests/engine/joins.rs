//! Every kind of join against two nested loops.

use dfc_engine::{MemoryConnectors, RunError};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{Join, JoinColumn, JoinKind, MatchMode};
use dfc_ir::stage::{StageOp, StageOutput};
use dfc_ir::{Expr, Schema, Site, StagePlan, Type, Value};

use crate::support::*;

pub const KINDS: [JoinKind; 6] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti];

pub fn right_schema() -> Schema {
    schema(&[("k", int().with_nullable(true)), ("t", text()), ("m", int())])
}

pub fn output_schema() -> Schema {
    schema(&[
        ("k", int().with_nullable(true)),
        ("n", int().with_nullable(true)),
        ("t", text()),
        ("m", int().with_nullable(true)),
    ])
}

pub fn join(kind: JoinKind, left: &Schema, right: &Schema) -> Join {
    let mut output = vec![JoinColumn::Merged(0, 0), JoinColumn::Left(2), JoinColumn::Right(1), JoinColumn::Right(2)];
    if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
        output = vec![JoinColumn::Left(0), JoinColumn::Left(2), JoinColumn::Left(1), JoinColumn::Left(0)];
    }
    Join {
        kind,
        left_keys: vec![col(left, 0)],
        right_keys: vec![col(right, 0)],
        residual: None,
        matches: MatchMode::All,
        required: false,
        left_width: 3,
        output,
    }
}

/// `left.n + right.m` is even, written without a remainder: `(n + m) div 2 * 2 == n + m`.
fn even_sum() -> Expr {
    let (left, right) = (left_schema(), right_schema());
    let mut m = col(&right, 2);
    m.map_columns(&|column| column + left.len());
    let sum = || binary(BinaryOp::Add, col(&left, 2), m.clone(), Type::INT64);
    let half = binary(BinaryOp::IntDiv, sum(), lit(2), Type::INT64);
    binary(BinaryOp::Eq, binary(BinaryOp::Mul, half, lit(2), Type::INT64), sum(), Type::Bool)
}

pub fn plan_of(join: Join) -> StagePlan {
    let (left, right, output) = (left_schema(), right_schema(), output_schema());
    let keys = join.right_keys.clone();
    let probe = StageOp::Probe {
        node: "join".into(),
        table: 0,
        join,
        left: left.clone(),
        right: right.clone(),
        output: output.clone(),
        site: Site::default(),
    };
    plan(
        vec![
            stage("right", source("right", &right), vec![], StageOutput::Build { table: 0, keys }, &right),
            stage("left", source("in", &left), vec![probe], sink("out"), &output),
        ],
        0,
        1,
    )
}

fn naive(join: &Join, left: &[Row], right: &[Row]) -> Vec<Row> {
    let residual = join.residual.is_some();
    let int = |value: &Value<'_>| value.as_int().unwrap();
    let mut marked = vec![false; right.len()];
    let mut out = Vec::new();
    let value = |column: &JoinColumn, l: Option<&Row>, r: Option<&Row>| match *column {
        JoinColumn::Left(c) => l.map_or(Value::Null, |l| l[c].clone()),
        JoinColumn::Right(c) => r.map_or(Value::Null, |r| r[c].clone()),
        JoinColumn::Merged(a, b) => l.map(|l| l[a].clone()).or(r.map(|r| r[b].clone())).unwrap(),
    };
    let joined = |l: Option<&Row>, r: Option<&Row>| -> Row { join.output.iter().map(|c| value(c, l, r)).collect() };
    for l in left {
        let mut partners = Vec::new();
        for (k, r) in right.iter().enumerate() {
            let equal = !l[0].is_null() && l[0] == r[0];
            if equal && (!residual || (int(&l[2]) + int(&r[2])) % 2 == 0) {
                partners.push(k);
            }
        }
        if join.matches == MatchMode::First {
            partners.truncate(1);
        }
        partners.iter().for_each(|&k| marked[k] = true);
        match join.kind {
            JoinKind::Semi if !partners.is_empty() => out.push(joined(Some(l), None)),
            JoinKind::Anti if partners.is_empty() => out.push(joined(Some(l), None)),
            JoinKind::Semi | JoinKind::Anti => {}
            JoinKind::Left | JoinKind::Full if partners.is_empty() => out.push(joined(Some(l), None)),
            _ => out.extend(partners.iter().map(|&k| joined(Some(l), Some(&right[k])))),
        }
    }
    if matches!(join.kind, JoinKind::Right | JoinKind::Full) {
        out.extend(right.iter().zip(&marked).filter(|(_, m)| !**m).map(|(r, _)| joined(None, Some(r))));
    }
    out
}

#[test]
fn all_kinds_of_joins() {
    let mut rng = Rng(20);
    let (left_schema, right_schema) = (left_schema(), right_schema());
    for turn in 0..4 {
        let keys = [5, 40, 500, 3][turn];
        let left = left_rows(&mut rng, 700, keys);
        let right = left_rows(&mut rng, [60, 200, 300, 0][turn], keys);
        for kind in KINDS {
            for (residual, matches) in
                [(false, MatchMode::All), (true, MatchMode::All), (false, MatchMode::First), (true, MatchMode::First)]
            {
                let mut join = join(kind, &left_schema, &right_schema);
                join.residual = residual.then(even_sum);
                join.matches = matches;
                let expected = naive(&join, &left, &right);
                let plan = plan_of(join);
                for parallelism in 1..=3 {
                    let tables = MemoryConnectors::default();
                    tables.put("in", batches(&left_schema, &left, &mut rng, 90));
                    tables.put("right", batches(&right_schema, &right, &mut rng, 30));
                    run(&tables, &plan, parallelism).unwrap();
                    let out = rows(&output_schema(), &tables.get("out").unwrap());
                    // Left rows in their order, partners in the right side's, then the right rows that were left over.
                    assert_eq!(out, expected, "{kind:?} residual {residual} {matches:?} tasks {parallelism}");
                }
            }
        }
    }
}

#[test]
fn lookups_demand_one_partner() {
    let (left_schema, right_schema) = (left_schema(), right_schema());
    let left: Vec<Row> = [1, 2, 3].iter().map(|&k| vec![Value::Int(k), Value::Null, Value::Int(k * 10)]).collect();
    let right: Vec<Row> = [1, 3, 3].iter().map(|&k| vec![Value::Int(k), Value::string("x"), Value::Int(0)]).collect();
    let run_it = |required: bool, matches: MatchMode, limit: u64| {
        let mut join = join(JoinKind::Left, &left_schema, &right_schema);
        join.required = required;
        join.matches = matches;
        let mut plan = plan_of(join);
        plan.job.errors.limit = Some(limit);
        let tables = MemoryConnectors::default();
        tables.put("in", batches(&left_schema, &left, &mut Rng(3), 5));
        tables.put("right", batches(&right_schema, &right, &mut Rng(4), 5));
        let result = run(&tables, &plan, 2);
        (result, tables.get("out").map(|out| rows(&output_schema(), &out).len()))
    };
    let (result, _) = run_it(true, MatchMode::All, 0);
    let Err(RunError::RowLimit { first, .. }) = result else { panic!("{result:?}") };
    assert_eq!((first.code, first.node.as_str()), ("R0107", "join"));
    assert!(first.place.is_some() && first.raw.is_some());

    let (result, _) = run_it(false, MatchMode::One, 0);
    let Err(RunError::RowLimit { first, .. }) = result else { panic!("{result:?}") };
    assert_eq!(first.code, "R0108");

    let (result, out) = run_it(true, MatchMode::One, 5);
    assert_eq!(result.unwrap().rejected, 2);
    assert_eq!(out, Some(1));
}

#[test]
fn a_failing_condition_rejects_the_left_row_once() {
    let (left_schema, right_schema) = (left_schema(), right_schema());
    // `n div m` fails where m is 0.
    let mut m = col(&right_schema, 2);
    m.map_columns(&|column| column + 3);
    let quotient = binary(BinaryOp::IntDiv, col(&left_schema, 2), m, Type::INT64);
    let mut join = join(JoinKind::Full, &left_schema, &right_schema);
    join.residual = Some(binary(BinaryOp::Ge, quotient, lit(0), Type::Bool));
    let left: Vec<Row> = [1, 2].iter().map(|&k| vec![Value::Int(k), Value::Null, Value::Int(7)]).collect();
    let right: Vec<Row> = [(1, 0), (1, 1), (1, 0), (2, 1)]
        .iter()
        .map(|&(k, m)| vec![Value::Int(k), Value::Null, Value::Int(m)])
        .collect();
    let mut plan = plan_of(join);
    plan.job.errors.limit = Some(9);
    let tables = MemoryConnectors::default();
    tables.put("in", batches(&left_schema, &left, &mut Rng(3), 5));
    tables.put("right", batches(&right_schema, &right, &mut Rng(4), 5));
    let summary = run(&tables, &plan, 1).unwrap();
    assert_eq!(summary.rejected, 1);
    // Row 2 with its partner; then the three rows that only the rejected one would have met.
    let out = rows(&output_schema(), &tables.get("out").unwrap());
    assert_eq!(out.len(), 4, "{out:?}");
    assert_eq!(out[0][0], Value::Int(2));
}

#[test]
fn without_keys_every_row_meets_every_row() {
    let mut rng = Rng(22);
    let (left_schema, right_schema) = (left_schema(), right_schema());
    let left = left_rows(&mut rng, 500, 9);
    let right = left_rows(&mut rng, 700, 9);
    let mut join = join(JoinKind::Inner, &left_schema, &right_schema);
    (join.left_keys, join.right_keys) = (Vec::new(), Vec::new());
    join.residual = Some(even_sum());
    let plan = plan_of(join);
    for parallelism in 1..=3 {
        let tables = MemoryConnectors::default();
        // One left batch leads to more pairs than one batch holds.
        tables.put("in", batches(&left_schema, &left, &mut Rng(5), 2_000));
        tables.put("right", batches(&right_schema, &right, &mut Rng(6), 30));
        run(&tables, &plan, parallelism).unwrap();
        let out = rows(&output_schema(), &tables.get("out").unwrap());
        assert_eq!(out.len(), 500 * 700 / 2);
        let pairs: Vec<(i128, i128)> =
            out.iter().map(|row| (row[1].as_int().unwrap(), row[3].as_int().unwrap())).collect();
        assert!(pairs.is_sorted());
    }
}
