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
use dfc_connect::{Condition, RowFilter, registry};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::JoinKind;
use dfc_ir::stage::{Program, Stage, StageInput, StageOp, StageOutput, Step};
use dfc_ir::{Expr, ExprKind, Schema, StagePlan, text};
use dfc_jit::{CompileReport, has_value, outputs_fail, prepare_program};

use crate::RunOptions;
use crate::bounds::possible;
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
    let mut conditions = Vec::new();
    let program = first_program(stage);
    let asked = asked(stage, plan);
    for (columns, mut exprs) in asked.conditions {
        for expr in &mut exprs {
            // The expression's columns are these.
            expr.map_columns(&|old| columns.iter().position(|&column| column == old).unwrap_or(old));
        }
        let possible = possible(&exprs, options.env);
        let test = Program {
            name: format!("{} (early)", program.map_or("", |program| &program.name)),
            inputs: columns.iter().map(|&column| types[column].clone()).collect(),
            steps: exprs.into_iter().map(Step::Filter).collect(),
            outputs: Vec::new(),
            schema: Schema { fields: Vec::new() },
        };
        let (test, said) = prepare_program(&test, options.tier, options.env);
        report(said);
        let pass = move |columns, rows| test.evaluate(&Batch::new(columns, rows, 0), &mut Vec::new()).kept;
        conditions.push(Condition { columns, pass: Arc::new(pass), possible });
    }
    if let Some((table, columns)) = asked.partners
        && let Some(table) = tables.get(table)
    {
        let table = table.clone();
        let pass = move |columns: Vec<ArrayRef>, rows| {
            // A stage reads nothing before its tables are complete.
            let found = table.get()?.get()?.partnered(&columns, rows);
            (found.len() < rows).then_some(found)
        };
        conditions.push(Condition { columns, pass: Arc::new(pass), possible: None });
    }
    (!conditions.is_empty()).then_some(RowFilter(conditions))
}

/// What is asked of a source's rows first.
struct Asked {
    /// The columns that conditions read, and the conditions.
    conditions: Vec<(Vec<usize>, Vec<Expr>)>,
    /// The join table that has to have a partner, and the columns that are its keys.
    partners: Option<(usize, Vec<usize>)>,
}

/// What is asked first, as long as that leaves a column which may go unread.
fn asked(stage: &Stage, plan: &StagePlan) -> Asked {
    let mut left: BTreeSet<usize> = (0..input_types(stage).len()).collect();
    let mut spares = |columns: &[usize]| {
        left.retain(|column| !columns.contains(column));
        !left.is_empty()
    };
    let conditions = first_program(stage).map_or_else(Vec::new, grouped).into_iter();
    let conditions = conditions.take_while(|(columns, _)| spares(columns)).collect();
    let partners = partners(stage, plan).filter(|(_, columns)| spares(columns));
    Asked { conditions, partners }
}

fn first_program(stage: &Stage) -> Option<&Program> {
    match stage.ops.first() {
        Some(StageOp::Program(program)) => Some(program),
        _ => None,
    }
}

/// What a stage's source asks of a row before it reads the rest of it, for people: a line each.
pub fn asked_first(plan: &StagePlan, stage: usize) -> Vec<String> {
    let Some(stage) = plan.stages.get(stage) else { return Vec::new() };
    let StageInput::Source { spec, .. } = &stage.input else { return Vec::new() };
    if !registry::filters(&spec.connector) {
        return Vec::new();
    }
    let schema = spec.projected();
    let name = |column: usize| schema.fields.get(column).map_or_else(String::new, |field| field.name.clone());
    let Asked { conditions, partners } = asked(stage, plan);
    let conditions = conditions.iter().flat_map(|(_, conditions)| conditions);
    let mut lines: Vec<String> =
        conditions.map(|condition| format!("asks first {}", text::expr(condition, &name))).collect();
    if let Some((table, columns)) = partners {
        let columns: Vec<String> = columns.into_iter().map(name).collect();
        lines.push(format!("asks first whether table {table} has [{}]", columns.join(", ")));
    }
    lines
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
