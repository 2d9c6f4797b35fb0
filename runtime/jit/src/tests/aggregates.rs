//! Random aggregates after random programs: fused code leaves the table that the interpreter leaves.

use dfc_batch::{Batch, RowError, value_at};
use dfc_eval::EvalError;
use dfc_ir::Value;
use dfc_ir::stage::AggregateSpec;

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
