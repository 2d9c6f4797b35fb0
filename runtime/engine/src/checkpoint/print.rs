//! What a checkpoint remembers of the pipeline, and whether it still fits the pipeline that wants to go on from it.
//!
//! What holds state or positions must be the same: sources, sinks, operators with state, how rows are dealt out. Programs (filters,
//! computed columns) may have changed: from the checkpoint on the new ones are in force.

use dfc_checkpoint::{OperatorPrint, PlanPrint};
use dfc_ir::StagePlan;
use dfc_ir::plan::{OptionValue, Options};
use dfc_ir::stage::{StageInput, StageOp, StageOutput};
use sha2::{Digest, Sha256};

/// What a program's print says it is: it has no state.
const PROGRAM: &str = "program";
/// What the print of a value given for a parameter says it is.
const PARAMETER: &str = "parameter";

/// What to remember of a plan: stage by stage, input, operators, outputs.
pub(crate) fn print(plan: &StagePlan, parameters: &[(String, String)]) -> PlanPrint {
    let mut operators: Vec<OperatorPrint> = Vec::new();
    let mut add = |name: &str, what: String, depends: String| {
        let mut distinct = name.to_owned();
        let mut number = 2;
        while operators.iter().any(|operator| operator.name == distinct) {
            distinct = format!("{name}.{number}");
            number += 1;
        }
        // Its own name is no part of what it does: a renamed one is known again.
        let depends = depends.replace(&format!("{name:?}"), "_");
        operators.push(OperatorPrint { name: distinct, what, hash: hash(&depends) });
    };
    for (index, stage) in plan.stages.iter().enumerate() {
        match &stage.input {
            StageInput::Source { node, spec, .. } => {
                let depends = format!("{} {:?} {:?}", spec.connector, given(&spec.options), spec.schema);
                add(node, called(&spec.connector, &spec.options), depends);
            }
            StageInput::Exchange { id, schema } => {
                add(&format!("stage {index} from exchange {id}"), "exchange".into(), format!("{schema:?}"));
            }
        }
        for op in &stage.ops {
            match op {
                StageOp::Program(program) => add(&program.name, PROGRAM.into(), format!("{program:?}")),
                StageOp::AggregatePartial(spec) => {
                    add(&format!("{} (first half)", spec.node), "aggregate".into(), format!("{spec:?}"));
                }
                StageOp::AggregateFinal(spec) => add(&spec.node, "aggregate".into(), format!("{spec:?}")),
                StageOp::Distinct { node, .. } => add(node, "distinct".into(), format!("{op:?}")),
                StageOp::Probe { node, .. } => add(node, "join".into(), format!("{op:?}")),
                StageOp::Sort { node, .. } => add(node, "sort".into(), format!("{op:?}")),
                StageOp::Take { node, .. } => add(node, "take".into(), format!("{op:?}")),
            }
        }
        for output in &stage.outputs {
            match output {
                StageOutput::Exchange { id, partition } => {
                    add(&format!("stage {index} to exchange {id}"), "exchange".into(), format!("{partition:?}"));
                }
                StageOutput::Build { table, keys } => {
                    let depends = format!("{keys:?} {:?}", stage.schema);
                    add(&format!("join table {table} of stage {index}"), "join table".into(), depends);
                }
                StageOutput::Sink { node, spec, .. } => {
                    let depends = format!("{} {:?} {:?}", spec.connector, given(&spec.options), stage.schema);
                    add(node, called(&spec.connector, &spec.options), depends);
                }
            }
        }
    }
    let mut given = parameters.to_vec();
    given.sort();
    for (name, value) in given {
        add(&format!("--set {name}"), PARAMETER.into(), value);
    }
    PlanPrint { job: plan.job.name.clone(), operators }
}

/// Without what nobody said: a later dfc with a parameter more goes on from checkpoints of before.
fn given(options: &Options) -> Options {
    let said = options.iter().filter(|(_, value)| **value != OptionValue::Absent);
    said.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What doesn't fit any more, each in a sentence. Empty: the checkpoint can be gone on from.
///
/// `next_run`: the run that took the checkpoint had ended; parameters may have other values.
pub(crate) fn differences(then: &PlanPrint, now: &PlanPrint, next_run: bool) -> Vec<String> {
    let stateful = |print: &PlanPrint| -> Vec<OperatorPrint> {
        print
            .operators
            .iter()
            .filter(|operator| operator.what != PROGRAM && !(next_run && operator.what == PARAMETER))
            .cloned()
            .collect()
    };
    let (then, now) = (stateful(then), stateful(now));
    let renamed = renamed(&then, &now);
    let mut found: Vec<String> = renamed
        .iter()
        .map(|(old, new)| format!("`{}` ({}) is called `{}` now", old.name, old.what, new.name))
        .collect();
    for old in then.iter().filter(|old| !renamed.iter().any(|(renamed, _)| renamed == old)) {
        match now.iter().find(|new| new.name == old.name && kind(&new.what) == kind(&old.what)) {
            None => found.push(format!("`{}` ({}) is gone", old.name, old.what)),
            Some(new) if new.hash == old.hash => {}
            Some(new) if new.what == PARAMETER => found.push(format!("`{}` has another value", new.name)),
            Some(new) if new.what == old.what => {
                found.push(format!("`{}` ({}) has other arguments or fields", new.name, new.what));
            }
            Some(new) => found.push(format!("`{}` was {} and is {}", new.name, old.what, new.what)),
        }
    }
    for new in now.iter().filter(|new| !renamed.iter().any(|(_, renamed)| renamed == new)) {
        if !then.iter().any(|old| new.name == old.name && kind(&new.what) == kind(&old.what)) {
            found.push(format!("`{}` ({}) is new", new.name, new.what));
        }
    }
    if found.is_empty() && then.iter().map(|old| &old.hash).ne(now.iter().map(|new| &new.hash)) {
        found.push("its operators stand in another order".into());
    }
    found.dedup();
    found
}

/// Operators that do the same under another name, where it is certain which is which.
fn renamed<'a>(then: &'a [OperatorPrint], now: &'a [OperatorPrint]) -> Vec<(&'a OperatorPrint, &'a OperatorPrint)> {
    let named = |list: &[OperatorPrint], name: &str| list.iter().any(|operator| operator.name == name);
    let gone: Vec<&OperatorPrint> = then.iter().filter(|old| old.what != PARAMETER && !named(now, &old.name)).collect();
    let come: Vec<&OperatorPrint> = now.iter().filter(|new| !named(then, &new.name)).collect();
    let same = |a: &OperatorPrint, b: &OperatorPrint| a.what == b.what && a.hash == b.hash;
    let only =
        |list: &[&OperatorPrint], like: &OperatorPrint| list.iter().filter(|other| same(other, like)).count() == 1;
    let pairs = gone.iter().filter_map(|old| Some((*old, *come.iter().find(|new| same(old, new))?)));
    pairs.filter(|(old, _)| only(&gone, old) && only(&come, old)).collect()
}

/// The programs that have changed: their new rules are in force from the checkpoint on.
pub(crate) fn changed_programs(then: &PlanPrint, now: &PlanPrint) -> Vec<String> {
    let programs = now.operators.iter().filter(|operator| operator.what == PROGRAM);
    let changed = programs.filter(|new| !then.operators.iter().any(|old| old.what == PROGRAM && old.hash == new.hash));
    changed.map(|new| new.name.clone()).collect()
}

fn kind(what: &str) -> &str {
    what.split('(').next().unwrap_or(what)
}

/// `csv("orders.csv")`: a connector with what tells it from others.
fn called(connector: &str, options: &Options) -> String {
    let named = ["path", "table", "query"].iter().find_map(|name| options.get(*name).and_then(OptionValue::text));
    match named {
        Some(text) => format!("{connector}(\"{text}\")"),
        None => format!("{connector}()"),
    }
}

/// 16 hexadecimal digits over a text in which places in the pipeline's file don't count.
fn hash(text: &str) -> String {
    let mut digest = Sha256::new();
    let mut rest = text;
    while let Some(at) = rest.find("Site(") {
        digest.update(&rest.as_bytes()[..at]);
        rest = rest[at + 5..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    digest.update(rest.as_bytes());
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_nobody_gives_changes_no_print() {
        let said = ("path".to_owned(), OptionValue::Name("a".into()));
        let old: Options = [said.clone()].into_iter().collect();
        let new: Options = [said, ("suffix".to_owned(), OptionValue::Absent)].into_iter().collect();
        assert_eq!(given(&new), old);
    }
}
