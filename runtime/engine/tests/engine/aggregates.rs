//! Aggregates over one to three tasks against plain maps. (The functions themselves are tested where they are.)

use std::collections::BTreeMap;

use dfc_engine::{MemoryConnectors, RunError};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::{AggregateSpec, Partition, StageOp, Step};
use dfc_ir::{DataType, Expr, Schema, Site, StagePlan, Type, Value};

use crate::support::*;

fn aggregate(function: AggFunction, args: Vec<Expr>, ty: DataType) -> Aggregate {
    Aggregate { function, args, filter: None, ty, site: Site::default() }
}

/// `count()`, `count(s)`, `sum(n)`, `min(s)`, `first(n)`, `last(n)` by some columns, after a filter `n >= least`.
pub fn plan_by(keys: &[usize], least: i64) -> (StagePlan, Schema) {
    let schema = left_schema();
    let optional = int().with_nullable(true);
    let mut fields: Vec<(String, DataType)> =
        keys.iter().map(|&k| (schema.fields[k].name.clone(), schema.fields[k].ty.clone())).collect();
    let aggregates = vec![
        aggregate(AggFunction::Count, vec![], int()),
        aggregate(AggFunction::Count, vec![col(&schema, 1)], int()),
        aggregate(AggFunction::Sum, vec![col(&schema, 2)], optional.clone()),
        aggregate(AggFunction::Min, vec![col(&schema, 1)], text()),
        aggregate(AggFunction::First, vec![col(&schema, 2)], optional.clone()),
        aggregate(AggFunction::Last, vec![col(&schema, 2)], optional),
    ];
    fields.extend(aggregates.iter().enumerate().map(|(k, a)| (format!("a{k}"), a.ty.clone())));
    let fields: Vec<(&str, DataType)> = fields.iter().map(|(name, ty)| (name.as_str(), ty.clone())).collect();
    let output = self::schema(&fields);
    let spec = AggregateSpec {
        node: "aggregate".into(),
        inputs: schema.types(),
        keys: keys.iter().map(|&k| col(&schema, k)).collect(),
        aggregates,
        output: output.clone(),
    };
    let filter = Step::Filter(binary(BinaryOp::Ge, col(&schema, 2), lit(least), Type::Bool));
    let ops = vec![steps("f", &schema, vec![filter]), StageOp::AggregatePartial(spec.clone())];
    let partition = if keys.is_empty() { Partition::Gather } else { Partition::Hash(vec![]) };
    let mut last = stage("b", from(0, &output), vec![StageOp::AggregateFinal(spec)], sink("out"), &output);
    last.ordered = false;
    (plan(vec![stage("a", source("in", &schema), ops, to(0, partition), &output), last], 1, 0), output)
}

fn naive(keys: &[usize], least: i64, input: &[Row]) -> Vec<Row> {
    let mut groups: BTreeMap<String, (Row, Vec<&Row>)> = BTreeMap::new();
    if keys.is_empty() {
        groups.entry(String::new()).or_default();
    }
    for row in input.iter().filter(|row| row[2].as_int().unwrap() >= least.into()) {
        let key: Row = keys.iter().map(|&k| row[k].clone()).collect();
        let text = if keys.is_empty() { String::new() } else { format!("{key:?}") };
        groups.entry(text).or_insert((key, Vec::new())).1.push(row);
    }
    let result = |(mut out, rows): (Row, Vec<&Row>)| {
        let texts: Vec<&str> = rows.iter().filter_map(|row| row[1].as_str()).collect();
        let numbers: Vec<i128> = rows.iter().filter_map(|row| row[2].as_int()).collect();
        let or_null = |n: Option<i128>| n.map_or(Value::Null, Value::Int);
        out.push(Value::Int(rows.len() as i128));
        out.push(Value::Int(texts.len() as i128));
        out.push(or_null(numbers.iter().copied().reduce(|a, b| a + b)));
        out.push(texts.iter().min().map_or(Value::Null, |text| Value::string(*text)));
        out.push(or_null(numbers.first().copied()));
        out.push(or_null(numbers.last().copied()));
        out
    };
    groups.into_values().map(result).collect()
}

#[test]
fn groups_equal_plain_maps() {
    let mut rng = Rng(60);
    let schema = left_schema();
    for (count, distinct) in [(0, 5), (3, 5), (4_000, 7), (6_000, 3_000)] {
        let input = left_rows(&mut rng, count, distinct);
        for keys in [&[0][..], &[1], &[1, 0], &[]] {
            for least in [0, 900] {
                let (plan, output) = plan_by(keys, least);
                for parallelism in 1..=3 {
                    let batches = batches(&schema, &input, &mut rng, 200);
                    let out = through(&plan, batches, &output, parallelism);
                    assert_eq!(sorted(out), sorted(naive(keys, least, &input)), "{keys:?} {least} {parallelism}");
                }
            }
        }
    }
}

/// The groups on their way from the first half to the second count as rows: nothing in the summary seems to have no input.
#[test]
fn groups_count_as_rows_between_the_halves() {
    let schema = left_schema();
    let (plan, _) = plan_by(&[0], 0);
    for parallelism in 1..=3 {
        let mut rng = Rng(62);
        let input = left_rows(&mut rng, 5_000, 50);
        let tables = MemoryConnectors::default();
        tables.put("in", batches(&schema, &input, &mut rng, 200));
        let summary = run(&tables, &plan, parallelism).unwrap();
        let made = summary.rows_out();
        let last: Vec<_> =
            summary.operators.iter().filter(|o| o.stage == 1).map(|o| (o.operator.as_str(), o.rows_in)).collect();
        let first = summary.operators.iter().rfind(|o| o.stage == 0).map(|o| (o.rows_in, o.rows_out));
        let sent = first.unwrap().0;
        assert_eq!(first, Some((sent, sent)));
        assert!(sent >= made, "{sent} groups of all tasks are at least the {made} of the result");
        assert_eq!(last, [("from exchange 0", sent), ("aggregate", sent), ("out", made)], "{parallelism}");
    }
}

#[test]
fn a_sum_that_overflows_stops_the_job_and_names_the_aggregate() {
    let schema = left_schema();
    let input: Vec<Row> = (0..4).map(|_| vec![Value::Int(1), Value::Null, Value::Int(i64::MAX.into())]).collect();
    let (mut plan, _) = plan_by(&[0], 0);
    plan.job.errors.limit = Some(1_000);
    for parallelism in 1..=3 {
        let tables = MemoryConnectors::default();
        tables.put("in", batches(&schema, &input, &mut Rng(61), 2));
        let error = run(&tables, &plan, parallelism).unwrap_err();
        let RunError::Group(row) = &error else { panic!("{error}") };
        assert_eq!((row.code, row.node.as_str()), ("R0101", "aggregate"));
        assert!(tables.get("out").is_none());
    }
}
