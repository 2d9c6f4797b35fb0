//! Column pruning: every operator keeps only the columns that a later one reads, down to the sources' projections.
//!
//! Two passes over the nodes. From the sinks up: which of its columns are needed. From the sources down: each node is
//! rewritten over its narrowed inputs. Aggregate keys, join keys and everything else that decides *which* rows there are
//! is always needed.

use std::collections::BTreeSet;

use dfc_ir::plan::{Aggregate, Join, JoinColumn, Node, NodeId, Op, Plan, SourceSpec};
use dfc_ir::{Expr, Schema};

/// The same job without the columns that nothing reads.
pub fn prune(plan: &Plan) -> Plan {
    let needed = needed_columns(plan);
    let mut out = Rewriter { nodes: Vec::new(), columns: Vec::new() };
    for (node, needed) in plan.nodes.iter().zip(&needed) {
        out.rewrite(node, needed);
    }
    Plan { job: plan.job.clone(), nodes: out.nodes, sites: plan.sites.clone() }
}

/// For each node, the columns of its result that someone reads.
fn needed_columns(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let mut needed = vec![BTreeSet::new(); plan.nodes.len()];
    for (id, node) in plan.nodes.iter().enumerate().rev() {
        let width = |input: usize| plan.nodes[node.inputs[input].0].schema.len();
        let reads = node.op.reads(&needed[id], node.inputs.len(), &width);
        for (input, read) in node.inputs.iter().zip(reads) {
            needed[input.0].extend(read);
        }
    }
    needed
}

/// The nodes rewritten so far.
struct Rewriter {
    nodes: Vec<Node>,
    /// For each node of the old plan: its new id, and for each of its new columns the old one.
    columns: Vec<(NodeId, Vec<usize>)>,
}

impl Rewriter {
    fn rewrite(&mut self, node: &Node, needed: &BTreeSet<usize>) {
        let inputs: Vec<(NodeId, Vec<usize>)> = node.inputs.iter().map(|i| self.columns[i.0].clone()).collect();
        let kept: Vec<usize> = needed.iter().copied().collect();
        let narrowed =
            |kept: &[usize]| Schema { fields: kept.iter().map(|&i| node.schema.fields[i].clone()).collect() };
        let ids: Vec<NodeId> = inputs.iter().map(|(id, _)| *id).collect();
        // An expression over the first input's old columns, over its new ones.
        let moved = |e: &Expr| {
            let mut e = e.clone();
            e.map_columns(&|old| position(&inputs[0].1, old));
            e
        };
        let sorted = |keys: &[dfc_ir::plan::SortKey]| {
            keys.iter().map(|k| dfc_ir::plan::SortKey { expr: moved(&k.expr), ..k.clone() }).collect::<Vec<_>>()
        };
        let (op, columns) = match &node.op {
            Op::Source(spec) => {
                let projection = kept.iter().map(|&i| spec.projection[i]).collect();
                (Op::Source(SourceSpec { projection, ..spec.clone() }), kept)
            }
            Op::Sink(spec) => (Op::Sink(spec.clone()), (0..node.schema.len()).collect()),
            Op::Filter(e) => (Op::Filter(moved(e)), inputs[0].1.clone()),
            Op::Require { condition, message } => {
                (Op::Require { condition: moved(condition), message: message.clone() }, inputs[0].1.clone())
            }
            Op::Project(exprs) => (Op::Project(kept.iter().map(|&i| moved(&exprs[i])).collect()), kept),
            Op::Aggregate { keys, aggregates } => {
                let kept: Vec<usize> =
                    (0..keys.len()).chain(kept.iter().copied().filter(|&i| i >= keys.len())).collect();
                let move_aggregate = |a: &Aggregate| Aggregate {
                    args: a.args.iter().map(moved).collect(),
                    filter: a.filter.as_ref().map(moved),
                    ..a.clone()
                };
                let aggregates =
                    kept[keys.len()..].iter().map(|&i| move_aggregate(&aggregates[i - keys.len()])).collect();
                (Op::Aggregate { keys: keys.iter().map(moved).collect(), aggregates }, kept)
            }
            Op::Distinct { keys, order } => {
                let keys = keys.iter().map(|&old| position(&inputs[0].1, old)).collect();
                (Op::Distinct { keys, order: sorted(order) }, inputs[0].1.clone())
            }
            Op::Join(join) => (Op::Join(rewrite_join(join, &kept, &inputs)), kept),
            Op::Union => {
                let ids = inputs.iter().map(|(id, has)| self.select(*id, has, &kept, node)).collect();
                let schema = narrowed(&kept);
                self.push(Node { op: Op::Union, inputs: ids, schema, name: node.name.clone(), site: node.site }, kept);
                return;
            }
            Op::Sort(keys) => (Op::Sort(sorted(keys)), inputs[0].1.clone()),
            Op::Take { limit, offset } => (Op::Take { limit: *limit, offset: *offset }, inputs[0].1.clone()),
        };
        let schema = match &node.op {
            // What a sink is given is what its input has: names and types were settled by the compiler.
            Op::Sink(_) => node.schema.clone(),
            _ => narrowed(&columns),
        };
        let id = self.push(Node { op, inputs: ids, schema, name: node.name.clone(), site: node.site }, columns.clone());
        // A filter's own columns end here if nothing later reads them.
        if matches!(node.op, Op::Filter(_) | Op::Require { .. }) && columns.len() > needed.len() {
            let wanted: Vec<usize> = needed.iter().copied().collect();
            let id = self.select(id, &columns, &wanted, node);
            // The projection takes the filter's place for its consumers.
            if let Some(last) = self.columns.last_mut() {
                *last = (id, wanted);
            }
        }
    }

    /// A projection of node `id`, whose columns were `has`, to `wanted`; the node itself if that is what it has.
    fn select(&mut self, id: NodeId, has: &[usize], wanted: &[usize], node: &Node) -> NodeId {
        if has == wanted {
            return id;
        }
        let from = &self.nodes[id.0].schema;
        let picked: Vec<usize> = wanted.iter().map(|&old| position(has, old)).collect();
        let schema = Schema { fields: picked.iter().map(|&i| from.fields[i].clone()).collect() };
        let exprs = picked.iter().map(|&i| Expr { site: node.site, ..Expr::column(i, from.fields[i].ty.clone()) });
        let op = Op::Project(exprs.collect());
        self.nodes.push(Node { name: node.name.clone(), op, inputs: vec![id], schema, site: node.site });
        NodeId(self.nodes.len() - 1)
    }

    fn push(&mut self, node: Node, columns: Vec<usize>) -> NodeId {
        self.nodes.push(node);
        let id = NodeId(self.nodes.len() - 1);
        self.columns.push((id, columns));
        id
    }
}

/// Where an old column stands among the new ones. The pass from the sinks marked every column that is read, so it is there.
fn position(columns: &[usize], old: usize) -> usize {
    columns.iter().position(|&c| c == old).unwrap_or_else(|| unreachable!("column {old} was read but not needed"))
}

fn rewrite_join(join: &Join, kept: &[usize], inputs: &[(NodeId, Vec<usize>)]) -> Join {
    let (left, right) = (&inputs[0].1, &inputs[1].1);
    let over = |keys: &[Expr], columns: &[usize]| {
        let mut keys = keys.to_vec();
        keys.iter_mut().for_each(|e| e.map_columns(&|old| position(columns, old)));
        keys
    };
    let mut residual = join.residual.clone();
    if let Some(e) = &mut residual {
        // Old positions: left columns, then right ones. The old left width is what `left_width` says.
        let split = join.left_width;
        e.map_columns(&|old| {
            if old < split { position(left, old) } else { left.len() + position(right, old - split) }
        });
    }
    let output = kept
        .iter()
        .map(|&i| match join.output[i] {
            JoinColumn::Left(l) => JoinColumn::Left(position(left, l)),
            JoinColumn::Right(r) => JoinColumn::Right(position(right, r)),
            JoinColumn::Merged(l, r) => JoinColumn::Merged(position(left, l), position(right, r)),
        })
        .collect();
    Join {
        left_keys: over(&join.left_keys, left),
        right_keys: over(&join.right_keys, right),
        residual,
        output,
        left_width: left.len(),
        ..join.clone()
    }
}
