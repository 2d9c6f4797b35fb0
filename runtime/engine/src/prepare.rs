//! A stage's operators made ready once for all its tasks: programs compiled, keys typed.

use std::sync::Arc;

use dfc_ir::plan::SortKey;
use dfc_ir::stage::{Stage, StageOp};
use dfc_ir::{DataType, Expr};
use dfc_jit::{CompileReport, PreparedProgram, prepare_aggregate, prepare_exprs, prepare_program};

use crate::ops::{
    PreparedDistinct, PreparedFinal, PreparedOp, PreparedPartial, PreparedProbe, PreparedRows, PreparedSort,
    PreparedTake,
};
use crate::rowkey::KeyOrder;
use crate::setup::{input_types, output_types};
use crate::table::TableSlot;
use crate::{RunError, RunOptions};

/// The operators of a stage.
pub(crate) struct PreparedOps {
    pub(crate) ops: Vec<PreparedOp>,
    /// Their names.
    pub(crate) names: Vec<Arc<str>>,
}

/// Prepares a stage's operators; `report` hears of every program.
pub(crate) fn prepare_ops(
    stage: &Stage,
    options: &RunOptions,
    tasks: usize,
    tables: &[Arc<TableSlot>],
    report: &mut dyn FnMut(CompileReport),
) -> Result<PreparedOps, RunError> {
    let mut types = input_types(stage);
    let mut prepared = PreparedOps { ops: Vec::new(), names: Vec::new() };
    let mut ops = stage.ops.iter().peekable();
    while let Some(op) = ops.next() {
        let mut keys = |node: &str, types: &[DataType], exprs: &[Expr]| {
            let (program, said) = prepare_exprs(node, types, exprs, options.tier, options.env);
            report(said);
            program
        };
        let (name, op_ready) = match op {
            StageOp::Program(program) => match ops.peek() {
                Some(StageOp::AggregatePartial(spec)) => {
                    ops.next();
                    let (aggregate, said) = prepare_aggregate(Some(program), spec, options.tier, options.env);
                    report(said);
                    (
                        format!("{} → {}", program.name, spec.node),
                        PreparedOp::Partial(PreparedPartial::new(aggregate, spec, options)),
                    )
                }
                _ => {
                    let (rows, said) = prepare_program(program, options.tier, options.env);
                    report(said);
                    (program.name.clone(), PreparedOp::Program(PreparedRows(rows)))
                }
            },
            StageOp::AggregatePartial(spec) => {
                let (aggregate, said) = prepare_aggregate(None, spec, options.tier, options.env);
                report(said);
                (spec.node.clone(), PreparedOp::Partial(PreparedPartial::new(aggregate, spec, options)))
            }
            StageOp::AggregateFinal(spec) => {
                let last = PreparedFinal { spec: Arc::new(spec.clone()), parts: tasks };
                (spec.node.clone(), PreparedOp::Final(last))
            }
            StageOp::Distinct { node, keys: columns, order } => {
                let all: Vec<usize> = (0..types.len()).collect();
                let columns = if columns.is_empty() { &all } else { columns };
                let typed = |&column: &usize| types.get(column).map(|ty| (column, ty.clone()));
                let columns: Option<Vec<_>> = columns.iter().map(typed).collect();
                let columns =
                    columns.ok_or_else(|| RunError::Plan(format!("`{node}` has a key column that doesn't exist")))?;
                let order = (!order.is_empty()).then(|| sort_keys(node, &types, order, &mut keys));
                let distinct = PreparedDistinct { node: node.as_str().into(), keys: columns, order };
                (node.clone(), PreparedOp::Distinct(distinct))
            }
            StageOp::Probe { node, table, join, left, right, site, .. } => {
                let left_keys = keys(node, &left.types(), &join.left_keys);
                let both: Vec<DataType> = left.types().into_iter().chain(right.types()).collect();
                let residual =
                    join.residual.as_ref().map(|condition| keys(node, &both, std::slice::from_ref(condition)));
                let probe =
                    PreparedProbe::new(node, join, *site, left.types(), left_keys, residual, &tables[*table], tasks);
                (node.clone(), PreparedOp::Probe(Arc::new(probe)))
            }
            StageOp::Sort { node, keys: by, limit } => {
                let (program, by) = sort_keys(node, &types, by, &mut keys);
                let sort = PreparedSort { node: node.as_str().into(), program, keys: by, limit: *limit };
                (node.clone(), PreparedOp::Sort(Arc::new(sort)))
            }
            StageOp::Take { node, limit, offset } => {
                (node.clone(), PreparedOp::Take(PreparedTake { limit: *limit, offset: *offset }))
            }
        };
        types = output_types(op).unwrap_or(types);
        prepared.ops.push(op_ready);
        prepared.names.push(name.into());
    }
    Ok(prepared)
}

type Compile<'c> = dyn FnMut(&str, &[DataType], &[Expr]) -> Arc<dyn PreparedProgram> + 'c;

fn sort_keys(
    node: &str,
    types: &[DataType],
    keys: &[SortKey],
    compile: &mut Compile<'_>,
) -> (Arc<dyn PreparedProgram>, Vec<(DataType, KeyOrder)>) {
    let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
    let order =
        |key: &SortKey| (key.expr.ty.clone(), KeyOrder { descending: key.descending, nulls_first: key.nulls_first });
    (compile(node, types, &exprs), keys.iter().map(order).collect())
}
