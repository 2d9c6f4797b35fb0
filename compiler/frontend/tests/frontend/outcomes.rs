//! The four outcomes where fields meet (D8): every pair of a fixed list of types, from one stream to a target's field, from two streams
//! into a union, and as keys of a join. What expressions do with the table is tested where they are checked (`dfc-typeck`).

use std::path::Path;

use dfc_diagnostics::Severity;
use dfc_ir::{DataType, Type};
use dfc_typeck::conversions::{Outcome, assign_outcome, common_type, needs_zone, outcome};

use crate::compiler;
use representatives::types;

#[path = "../../../typeck/tests/expressions/representatives.rs"]
mod representatives;

/// A pipeline whose source has a field `f0`, `f1` … of each type, and whose sink has a line for the type `a` with each other one; what is
/// found on each of these lines.
fn found(types: &[DataType], line: impl Fn(usize) -> String) -> Vec<Vec<(&'static str, Severity)>> {
    let fields: String = types.iter().enumerate().map(|(n, ty)| format!("f{n}: {ty}, ")).collect();
    let lines: String = (0..types.len()).map(|other| line(other) + "\n").collect();
    let head = format!("job pairs {{}}\nsource s = jsonl(\"s.jsonl\", schema: record {{ {fields} }})\nsink {{\n");
    let text = format!("{head}{lines}}}\n");
    let checked = compiler(&[("main.df", &text)]).check(Path::new("main.df"));
    let mut found = vec![Vec::new(); types.len()];
    for problem in &checked.diagnostics {
        let at = text[..problem.place.start as usize].matches('\n').count();
        let line = at.checked_sub(3).and_then(|at| found.get_mut(at));
        line.unwrap_or_else(|| panic!("not on a line of its own: {problem:?}")).push((problem.code, problem.severity));
    }
    found
}

#[test]
fn a_target_takes_a_field_as_the_table_says() {
    let types = types();
    for (n, from) in types.iter().enumerate() {
        let line = |other: usize| {
            let to = &types[other];
            format!("s |> select(c: f{n}) |> jsonl(\"{other}.jsonl\", schema: record {{ c: {to} }})")
        };
        for (to, found) in types.iter().zip(found(&types, line)) {
            let codes: Vec<&str> = found.iter().map(|(code, _)| *code).collect();
            let what = format!("{from} written as {to}: {codes:?}");
            match assign_outcome(from, to) {
                // A null is none of the target's values, whatever the type.
                _ if from.nullable && !to.nullable => assert_eq!(codes, ["E0452"], "{what}"),
                Outcome::Exact | Outcome::Widening => assert!(codes.is_empty(), "{what}"),
                Outcome::Checked(_) => assert_eq!(codes, ["W0501"], "{what}"),
                Outcome::Incompatible if needs_zone(&from.ty, &to.ty) => assert_eq!(codes, ["E0509"], "{what}"),
                Outcome::Incompatible => assert_eq!(codes, ["E0503"], "{what}"),
            }
        }
    }
}

#[test]
fn a_union_takes_the_common_type() {
    let types = types();
    for (n, one) in types.iter().enumerate() {
        let line = |other: usize| format!("union(s |> select(c: f{n}), s |> select(c: f{other})) |> discard()");
        for (other, found) in types.iter().zip(found(&types, line)) {
            let errors = found.iter().filter(|(_, severity)| *severity == Severity::Error).count();
            let sound = common_type(one, other).is_some();
            assert_eq!(errors, usize::from(!sound), "a union of {one} and {other}: {found:?}");
        }
    }
}

#[test]
fn keys_of_two_streams_take_a_common_type() {
    fn comparable(ty: &Type) -> bool {
        match ty {
            Type::Json => false,
            Type::List(item) => comparable(&item.ty),
            Type::Record(fields) => fields.iter().all(|field| comparable(&field.ty.ty)),
            _ => true,
        }
    }
    let types = types();
    for (n, one) in types.iter().enumerate() {
        let line =
            |other: usize| format!("s |> join(s |> select(k: f{other}), on: f{n} == right.k, kind: semi) |> discard()");
        for (other, found) in types.iter().zip(found(&types, line)) {
            let errors = found.iter().filter(|(_, severity)| *severity == Severity::Error).count();
            // A key is compared as it is written down: both sides become the common type without losing anything.
            let exact = |common: &DataType| {
                [one, other].iter().all(|side| outcome(&side.ty, &common.ty).is_silent()) || common.ty == Type::Float64
            };
            let common = common_type(one, other).filter(exact);
            let sound = common.is_some_and(|common| comparable(&common.ty));
            // A key of lists or records has a type, and no join has it.
            let sound = sound && !matches!(one.ty, Type::List(_) | Type::Record(_));
            assert_eq!(errors, usize::from(!sound), "a key of {one} and {other}: {found:?}");
        }
    }
}
