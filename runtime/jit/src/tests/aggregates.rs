//! Random aggregates after random programs: fused code leaves the table that the interpreter leaves.

use dfc_batch::{Batch, ColumnBuilder, RowError, value_at};
use dfc_eval::EvalError;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::IntType;
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Field, Program, Schema, Site, Step, Type, Value};

use super::agreement::{same, seeds};
use crate::testing::{self, Random};
use crate::{Env, PreparedAggregate, Tier, prepare_aggregate};

/// The groups after some batches, and the errors in an order of their own.
fn run(
    prepared: &dyn PreparedAggregate,
    spec: &AggregateSpec,
    batches: &[Batch],
) -> (Result<Vec<Vec<Value<'static>>>, EvalError>, Vec<RowError>) {
    let mut table = prepared.table();
    let mut errors = Vec::new();
    for batch in batches {
        let mut met = Vec::new();
        prepared.update(batch, &mut table, &mut met);
        met.sort_by_key(|error| format!("{error:?}"));
        errors.extend(met);
    }
    let rows = table.results(spec, 0..table.len()).map(|batch| {
        let types = spec.output.types();
        let row = |batch: &Batch, row: usize| {
            types.iter().zip(&batch.columns).map(|(ty, column)| value_at(column, &ty.ty, row).into_owned()).collect()
        };
        (0..batch.rows).map(|k| row(&batch, k)).collect()
    });
    (rows, errors)
}

#[test]
fn fused_aggregates_do_what_interpreted_ones_do() {
    let env = Env { now: 1_769_853_600_123_456 };
    let mut fused = 0;
    for seed in seeds() {
        let random = &mut Random::new(seed ^ 0x5eed);
        let program = testing::program(random);
        let after_program = random.one_in(2);
        let inputs = if after_program { program.schema.types() } else { program.inputs.clone() };
        let spec = testing::aggregate(random, &inputs);
        let before = after_program.then_some(&program);
        let (jit, report) = prepare_aggregate(before, &spec, Tier::Jit, env);
        let (oracle, _) = prepare_aggregate(before, &spec, Tier::Interpreter, env);
        fused += usize::from(report.not_compiled.is_empty());
        let batches: Vec<Batch> = [0, 50, 1, 30].map(|rows| testing::batch(random, &program.inputs, rows)).into();
        let (rows, errors) = run(&*jit, &spec, &batches);
        let (expected_rows, expected_errors) = run(&*oracle, &spec, &batches);
        let show = || format!("seed {seed}: {before:?} {spec:?}");
        assert_eq!(errors, expected_errors, "{}", show());
        match (rows, expected_rows) {
            (Ok(rows), Ok(expected)) => {
                assert_eq!(rows.len(), expected.len(), "groups, {}", show());
                for (row, expected) in rows.iter().zip(&expected) {
                    let all = row.iter().zip(expected).all(|(a, b)| same(a, b));
                    assert!(all, "fused {row:?}, interpreted {expected:?}, {}", show());
                }
            }
            (rows, expected) => assert_eq!(rows, expected, "{}", show()),
        }
    }
    assert!(fused * 2 > seeds().count(), "most of them are fused: {fused}");
}

/// Sums that are held in 64 bits go on past them, also where a row doesn't count, and without a key.
#[test]
fn narrow_sums_are_carried() {
    let decimal = |nullable| DataType::of(Type::Decimal(15, 2)).with_nullable(nullable);
    let inputs = vec![DataType::of(Type::INT64), decimal(false), decimal(true)];
    let aggregate = |function, arg: usize, ty: Type| Aggregate {
        function,
        args: vec![Expr::column(arg, inputs[arg].clone())],
        filter: None,
        ty: DataType::optional(ty),
        site: Site::default(),
    };
    let aggregates: Vec<Aggregate> = [(AggFunction::Sum, 2), (AggFunction::Avg, 12)]
        .into_iter()
        .flat_map(|(function, scale)| [1, 2].map(|arg| aggregate(function, arg, Type::Decimal(38, scale))))
        .collect();
    let rows = 50_000;
    let mut columns: Vec<ColumnBuilder> = inputs.iter().map(|ty| ColumnBuilder::new(ty, rows)).collect();
    for row in 0..rows as i128 {
        let value = Value::Decimal(if row % 2 == 0 { 999_999_999_999_999 } else { -999_999_999_999_998 });
        columns[0].push(&Value::Int(row % 2));
        columns[1].push(&value);
        columns[2].push(if row % 10 < 2 { &Value::Null } else { &value });
    }
    let columns: Vec<_> = columns.into_iter().map(ColumnBuilder::finish).collect();
    let batches = [0, 1].map(|seq| Batch::new(columns.clone(), rows, seq));
    for keys in [vec![Expr::column(0, inputs[0].clone())], Vec::new()] {
        let mut fields: Vec<Field> = keys.iter().map(|key| Field::new("key", key.ty.clone())).collect();
        fields.extend(aggregates.iter().enumerate().map(|(n, a)| Field::new(format!("a{n}"), a.ty.clone())));
        let (inputs, aggregates) = (inputs.clone(), aggregates.clone());
        let spec =
            AggregateSpec { node: "sums".into(), inputs, keys: keys.clone(), aggregates, output: Schema { fields } };
        let (jit, report) = prepare_aggregate(None, &spec, Tier::Jit, Env::default());
        assert!(report.not_compiled.is_empty());
        let (oracle, _) = prepare_aggregate(None, &spec, Tier::Interpreter, Env::default());
        let (found, expected) = (run(&*jit, &spec, &batches), run(&*oracle, &spec, &batches));
        assert_eq!(found, expected);
        let largest = i128::from(i64::MAX);
        let passes = |value: &Value| matches!(value, Value::Decimal(sum) if sum.abs() > largest);
        assert_eq!(found.0.iter().flatten().flatten().any(passes), !keys.is_empty());
    }
}

/// Without keys states are held in registers, and filled from blocks of rows where nothing but whole numbers is asked for: all types that
/// stand in lanes, with and without nulls, behind filters and conditions of their own, in batches around the ends of blocks.
#[test]
fn blocks_of_rows_fill_states_without_keys() {
    let random = &mut Random::new(77);
    let types = [
        Type::Int(IntType::I8),
        Type::Int(IntType::U8),
        Type::Int(IntType::I16),
        Type::Int(IntType::U16),
        Type::Int(IntType::I32),
        Type::Int(IntType::U32),
        Type::INT64,
        Type::Int(IntType::U64),
        Type::Decimal(15, 2),
        Type::Decimal(18, 2),
        Type::Date,
        Type::Timestamp,
        Type::Float64,
    ];
    for ty in types {
        for nullable in [false, true] {
            let inputs =
                vec![DataType { ty: ty.clone(), nullable }, DataType::of(Type::Date), DataType::of(Type::String)];
            let [value, day, text] = [0, 1, 2].map(|k| Expr::column(k, inputs[k].clone()));
            let compare = |left: &Expr, op: BinaryOp, right: Value<'static>, ty: Type| {
                let right = Box::new(Expr::literal(right, DataType::of(ty)));
                let kind = ExprKind::Binary(op, Box::new(left.clone()), right);
                Expr { kind, ty: DataType::of(Type::Bool), site: Site(1) }
            };
            let late = compare(&day, BinaryOp::Gt, Value::Date(0), Type::Date);
            let never = compare(&text, BinaryOp::Eq, Value::str("nobody has this"), Type::String);
            let some = compare(&text, BinaryOp::Ne, Value::str(""), Type::String);
            let aggregate = |function, ty: Type, filter: Option<&Expr>| Aggregate {
                function,
                args: if function == AggFunction::Count && filter.is_none() { Vec::new() } else { vec![value.clone()] },
                filter: filter.cloned(),
                ty: DataType::optional(ty),
                site: Site(2),
            };
            let sums = match &ty {
                Type::Decimal(_, scale) => Some((Type::Decimal(38, *scale), Type::Decimal(38, *scale))),
                Type::Int(_) => Some((Type::INT64, Type::Float64)),
                Type::Float64 => Some((Type::Float64, Type::Float64)),
                _ => None,
            };
            let mut aggregates = Vec::new();
            for condition in [None, Some(&late), Some(&some)] {
                aggregates.push(aggregate(AggFunction::Count, Type::INT64, condition));
                aggregates.push(aggregate(AggFunction::Min, ty.clone(), condition));
                aggregates.push(aggregate(AggFunction::Max, ty.clone(), condition));
                if let Some((sum, mean)) = sums.clone().filter(|_| ty != Type::Int(IntType::U64)) {
                    aggregates.push(aggregate(AggFunction::Sum, sum, condition));
                    aggregates.push(aggregate(AggFunction::Avg, mean, condition));
                }
            }
            let alone: Vec<Vec<Aggregate>> = aggregates.iter().map(|one| vec![one.clone()]).collect();
            for aggregates in [vec![aggregates]].into_iter().chain([alone]).flatten() {
                let fields = aggregates.iter().enumerate().map(|(n, a)| Field::new(format!("a{n}"), a.ty.clone()));
                let output = Schema { fields: fields.collect() };
                let (inputs, keys) = (inputs.clone(), Vec::new());
                let spec = AggregateSpec { node: "blocks".into(), inputs, keys, aggregates, output };
                for conditions in [vec![], vec![&late], vec![&late, &some], vec![&never]] {
                    let program = Program {
                        steps: conditions.into_iter().cloned().map(Step::Filter).collect(),
                        ..crate::fused::identity(&spec)
                    };
                    let (jit, report) = prepare_aggregate(Some(&program), &spec, Tier::Jit, Env::default());
                    assert!(report.not_compiled.is_empty(), "{:?}", report.not_compiled);
                    let (oracle, _) = prepare_aggregate(Some(&program), &spec, Tier::Interpreter, Env::default());
                    let sizes = [random.below(40), 0, 16, 31, 33, 100];
                    let batches = sizes.map(|rows| testing::batch(random, &program.inputs, rows));
                    let (found, expected) = (run(&*jit, &spec, &batches), run(&*oracle, &spec, &batches));
                    let show = || format!("{program:?} {spec:?}");
                    assert_eq!(found.1, expected.1, "{}", show());
                    match (found.0, expected.0) {
                        (Ok(rows), Ok(expected)) => {
                            let all = rows[0].iter().zip(&expected[0]).all(|(a, b)| same(a, b));
                            assert!(all, "blocks {rows:?}, interpreted {expected:?}, {}", show());
                        }
                        (rows, expected) => assert_eq!(rows, expected, "{}", show()),
                    }
                }
            }
        }
    }
}
