//! Conditions that a source may ask before it reads a row's other fields: those of the filters that stand right behind it, as long as
//! they have an answer for every row. The stage's program asks them again, so that a source needn't know them.
//!
//! Which conditions these are follows from the pipeline alone, not from its data or its machine: a row that one of them drops may have
//! a wrong value in a field that is read later, and whether that is noticed mustn't depend on luck.

use std::collections::BTreeSet;
use std::sync::Arc;

use dfc_batch::Batch;
use dfc_connect::{Condition, RowFilter};
use dfc_ir::expr::BinaryOp;
use dfc_ir::stage::{Program, Stage, StageOp, Step};
use dfc_ir::{Expr, ExprKind, Schema};
use dfc_jit::{CompileReport, has_value, prepare_program};

use crate::RunOptions;
use crate::setup::input_types;

/// The conditions for a stage's source; `None`: there is none that spares it anything.
pub(crate) fn row_filter(
    stage: &Stage,
    options: &RunOptions,
    report: &mut dyn FnMut(CompileReport),
) -> Option<RowFilter> {
    // The first so many rows are those that were read.
    if options.limit_rows.is_some() {
        return None;
    }
    let Some(StageOp::Program(program)) = stage.ops.first() else { return None };
    let types = input_types(stage);
    let mut left: BTreeSet<usize> = (0..types.len()).collect();
    let mut conditions = Vec::new();
    for (columns, exprs) in grouped(program) {
        left.retain(|column| !columns.contains(column));
        if left.is_empty() {
            break;
        }
        let steps = exprs.into_iter().map(|mut expr| {
            // The expression's columns are these.
            expr.map_columns(&|old| columns.iter().position(|&column| column == old).unwrap_or(old));
            Step::Filter(expr)
        });
        let test = Program {
            name: format!("{} (early)", program.name),
            inputs: columns.iter().map(|&column| types[column].clone()).collect(),
            steps: steps.collect(),
            outputs: Vec::new(),
            schema: Schema { fields: Vec::new() },
        };
        let (test, said) = prepare_program(&test, options.tier, options.env);
        report(said);
        let pass = move |columns, rows| test.evaluate(&Batch::new(columns, rows, 0), &mut Vec::new()).kept;
        conditions.push(Condition { columns, pass: Arc::new(pass) });
    }
    (!conditions.is_empty()).then_some(RowFilter(conditions))
}

/// What the filters ask before anything else happens: each condition by itself, those in a row that read the same columns together.
fn grouped(program: &Program) -> Vec<(Vec<usize>, Vec<Expr>)> {
    let mut asked = Vec::new();
    for step in &program.steps {
        let Step::Filter(condition) = step else { break };
        // What comes after a condition that may fail isn't asked for the rows on which it fails.
        if !conjuncts(condition, &mut asked) {
            break;
        }
    }
    let mut groups: Vec<(Vec<usize>, Vec<Expr>)> = Vec::new();
    for condition in asked {
        let columns = condition.columns();
        match groups.last_mut() {
            Some((same, conditions)) if *same == columns => conditions.push(condition),
            _ => groups.push((columns, vec![condition])),
        }
    }
    groups
}

/// Adds the conditions that `and` joins, up to the first that may fail: then false.
fn conjuncts(condition: &Expr, to: &mut Vec<Expr>) -> bool {
    if let ExprKind::Binary(BinaryOp::And, left, right) = &condition.kind {
        return conjuncts(left, to) && conjuncts(right, to);
    }
    let asked = has_value(condition) && !condition.columns().is_empty();
    if asked {
        to.push(condition.clone());
    }
    asked
}
