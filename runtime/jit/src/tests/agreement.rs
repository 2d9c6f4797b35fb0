//! Random programs on random batches: compiled code gives what the interpreter gives, values and errors alike.

use dfc_batch::{Batch, value_at};
use dfc_ir::{Program, Value};

use crate::compiled::draft;
use crate::lower::WriteOutputs;
use crate::machine::Registers;
use crate::testing::{self, Random};
use crate::{Env, PreparedProgram, Tier, prepare_program};

/// The same value, floats bit for bit.
pub(super) fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Runs a program both ways and compares. Whether it was compiled.
pub(super) fn check(program: &Program, batch: &Batch, what: &str) -> bool {
    check_all(program, [(batch.clone(), what.to_string())])
}

/// As [`check`], for several batches.
pub(super) fn check_all(program: &Program, batches: impl IntoIterator<Item = (Batch, String)>) -> bool {
    let env = Env { now: 1_769_853_600_123_456 };
    let (jit, report) = prepare_program(program, Tier::Jit, env);
    let (oracle, _) = prepare_program(program, Tier::Interpreter, env);
    for (batch, what) in batches {
        agree(program, jit.as_ref(), oracle.as_ref(), &batch, &what);
    }
    report.not_compiled.is_empty()
}

fn agree(program: &Program, jit: &dyn PreparedProgram, oracle: &dyn PreparedProgram, batch: &Batch, what: &str) {
    let (mut jit_errors, mut oracle_errors) = (Vec::new(), Vec::new());
    let got = jit.evaluate(batch, &mut jit_errors);
    let expected = oracle.evaluate(batch, &mut oracle_errors);
    let show = || {
        let text = dfc_ir::text::program(program, &|column| format!("#{column}"), "  ");
        format!("{what}: inputs {:?}\n{text}", program.inputs.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    for (at, (got, expected)) in jit_errors.iter().zip(&oracle_errors).enumerate() {
        assert_eq!(got, expected, "error {at}, {}", show());
    }
    assert_eq!(jit_errors.len(), oracle_errors.len(), "errors {jit_errors:?} {oracle_errors:?}, {}", show());
    assert_eq!(got.kept, expected.kept, "kept rows, {}", show());
    let expected_rows = expected.kept.clone();
    for (k, field) in program.schema.fields.iter().enumerate() {
        assert_eq!(got.columns[k].data_type(), expected.columns[k].data_type(), "column {k}, {}", show());
        assert_eq!(got.columns[k].len(), expected.columns[k].len(), "column {k}, {}", show());
        for row in 0..expected.columns[k].len() {
            let got = value_at(&got.columns[k], &field.ty.ty, row);
            let expected = value_at(&expected.columns[k], &field.ty.ty, row);
            let read = || {
                let row = expected_rows.as_ref().map_or(row, |kept| kept[row] as usize);
                let types = program.inputs.iter().enumerate();
                types.map(|(k, ty)| value_at(&batch.columns[k], &ty.ty, row)).collect::<Vec<_>>()
            };
            assert!(
                same(&got, &expected),
                "column {k}, row {row}: compiled {got:?}, interpreted {expected:?}, inputs {:?}, {}",
                read(),
                show()
            );
        }
        got.columns[k].to_data().validate_full().unwrap_or_else(|error| panic!("column {k}: {error}, {}", show()));
    }
}

/// Seeds to try: many with `DFC_SEEDS` in the environment.
pub(super) fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("DFC_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let first = std::env::var("DFC_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    first..first + count
}

#[test]
fn compiled_programs_do_what_interpreted_ones_do() {
    let mut compiled = 0;
    let seeds = seeds();
    for seed in seeds.clone() {
        let random = &mut Random::new(seed);
        let program = testing::program(random);
        for rows in [0, 1, 40] {
            let batch = testing::batch(random, &program.inputs, rows);
            compiled += u64::from(check(&program, &batch, &format!("seed {seed}, {rows} rows")));
        }
    }
    let all = 3 * (seeds.end - seeds.start);
    assert_eq!(compiled, all, "every scalar program compiles");
}

/// A program with so many outputs that its registers are given in one pass, by each of the random ones in turn.
#[test]
fn large_programs_do_what_interpreted_ones_do() {
    let seeds = seeds();
    for seed in seeds.start..seeds.start + (seeds.end - seeds.start) / 20 {
        let random = &mut Random::new(seed);
        let mut program = testing::program(random);
        while registers(&program) == Registers::BestCode {
            program.outputs.extend_from_within(..);
            program.schema.fields.extend_from_within(..);
        }
        let batch = testing::batch(random, &program.inputs, 40);
        assert!(check(&program, &batch, &format!("large, seed {seed}")), "it compiles");
    }
}

/// How a program's registers are given.
fn registers(program: &Program) -> Registers {
    let mut ending = WriteOutputs::new(program).unwrap_or_else(|refused| panic!("{}", refused.0));
    let Ok(draft) = draft(program, &mut ending, Registers::BestCode) else { panic!("every scalar program compiles") };
    Registers::fit_for(&draft.function)
}
