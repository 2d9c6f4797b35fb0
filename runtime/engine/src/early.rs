//! Conditions that a source may ask before it reads a row's other fields: those of the filters that stand right behind it, as long as
//! they have an answer for every row; and behind these, whether a row has a partner in the join that follows, where without one it leads to
//! nothing and the right side was chosen from. The stage asks them again, so that a source needn't know them.
//!
//! Which conditions these are follows from the pipeline alone, not from its data or its machine: a row that one of them drops may have
//! a wrong value in a field that is read later, and whether that is noticed mustn't depend on luck.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use dfc_batch::Batch;
use dfc_connect::{Condition, RowFilter};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::JoinKind;
use dfc_ir::stage::{Program, Stage, StageInput, StageOp, StageOutput, Step};
use dfc_ir::{Expr, ExprKind, Schema, StagePlan};
use dfc_jit::{CompileReport, has_value, outputs_fail, prepare_program};

use crate::RunOptions;
use crate::setup::input_types;
use crate::table::TableSlot;

/// A join table, once there is a place for it.
pub(crate) type Later = Arc<OnceLock<Arc<TableSlot>>>;

/// The conditions for a stage's source; `None`: there is none that spares it anything. `tables` are those of the plan.
pub(crate) fn row_filter(
    stage: &Stage,
    plan: &StagePlan,
    tables: &[Later],
    options: &RunOptions,
    report: &mut dyn FnMut(CompileReport),
) -> Option<RowFilter> {
    // The first so many rows are those that were read.
    if options.limit_rows.is_some() {
        return None;
    }
    let types = input_types(stage);
    let mut left: BTreeSet<usize> = (0..types.len()).collect();
    let mut conditions = Vec::new();
    let program = match stage.ops.first() {
        Some(StageOp::Program(program)) => Some(program),
        _ => None,
    };
    for (columns, exprs) in program.map_or_else(Vec::new, grouped) {
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
            name: format!("{} (early)", program.map_or("", |program| &program.name)),
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
    if let Some((table, columns)) = partners(stage, plan) {
        left.retain(|column| !columns.contains(column));
        if let Some(table) = tables.get(table).filter(|_| !left.is_empty()) {
            let table = table.clone();
            let pass = move |columns: Vec<ArrayRef>, rows| {
                // A stage reads nothing before its tables are complete.
                let found = table.get()?.get()?.partnered(&columns, rows);
                (found.len() < rows).then_some(found)
            };
            conditions.push(Condition { columns, pass: Arc::new(pass) });
        }
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

/// The join table in which rows of a stage's source have to have a partner, or lead to nothing, and the source's columns that are the keys.
fn partners(stage: &Stage, plan: &StagePlan) -> Option<(usize, Vec<usize>)> {
    let mut ops = stage.ops.iter();
    let mut op = ops.next()?;
    let mut sources: Vec<Option<usize>> = (0..input_types(stage).len()).map(Some).collect();
    if let StageOp::Program(program) = op {
        if may_fail(program) {
            return None;
        }
        let inputs = sources.len();
        let source = |expr: &Expr| match expr.kind {
            ExprKind::Column(column) if column < inputs => Some(column),
            _ => None,
        };
        sources = program.outputs.iter().map(source).collect();
        op = ops.next()?;
    }
    let StageOp::Probe { table, join, .. } = op else { return None };
    if join.required || !matches!(join.kind, JoinKind::Inner | JoinKind::Semi) || !chosen(plan, *table) {
        return None;
    }
    let column = |key: &Expr| match key.kind {
        ExprKind::Column(column) => sources.get(column).copied().flatten(),
        _ => None,
    };
    let columns: Vec<usize> = join.left_keys.iter().map(column).collect::<Option<_>>()?;
    (!columns.is_empty()).then_some((*table, columns))
}

/// Whether a program may reject a row: then none may be left out before it.
fn may_fail(program: &Program) -> bool {
    let fails = |step: &Step| match step {
        Step::Filter(expr) | Step::Let(expr) => !has_value(expr),
        Step::Require(..) => true,
    };
    program.steps.iter().any(fails) || outputs_fail(program)
}

/// Whether rows were left out on the way into a join table. Where none were, most left rows have a partner, and asking for it twice doesn't pay.
fn chosen(plan: &StagePlan, table: usize) -> bool {
    let builds = |stage: &&Stage| {
        stage.outputs.iter().any(|to| matches!(to, StageOutput::Build { table: id, .. } if *id == table))
    };
    let narrows = |op: &StageOp| match op {
        StageOp::Program(program) => program.steps.iter().any(|step| matches!(step, Step::Filter(_))),
        StageOp::Probe { join, .. } => matches!(join.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Anti),
        StageOp::Take { .. } => true,
        _ => false,
    };
    plan.stages.iter().filter(builds).any(|stage| {
        let before = match &stage.input {
            StageInput::Exchange { id, .. } => Some(*id),
            StageInput::Source { .. } => None,
        };
        let writes = |stage: &&Stage| {
            stage.outputs.iter().any(|to| matches!(to, StageOutput::Exchange { id, .. } if Some(*id) == before))
        };
        stage.ops.iter().any(narrows) || plan.stages.iter().filter(writes).any(|stage| stage.ops.iter().any(narrows))
    })
}
