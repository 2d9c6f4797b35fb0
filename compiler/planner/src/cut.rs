//! Cuts the plan into stages.
//!
//! A *flow* is a stage under construction: it starts at a source or an exchange and takes operators until one needs rows
//! from elsewhere (aggregate, distinct, sort, union), or until several operators read it; then it is closed with its
//! outputs and the next flow starts at the exchange. A join's right side closes into a join table, its left side goes on.

use dfc_ir::Schema;
use dfc_ir::plan::{Join, JoinKind, Node, NodeId, Op, Plan};
use dfc_ir::stage::{AggregateSpec, Partition, Stage, StageInput, StageOp, StageOutput, StagePlan};

use crate::fuse::Pending;

/// Cuts a (pruned) plan.
pub fn cut(plan: &Plan) -> StagePlan {
    let mut cutter = Cutter { plan, consumers: consumers(plan), out: StagePlan::default(), flows: Vec::new() };
    for id in 0..plan.nodes.len() {
        let flow = cutter.node(NodeId(id));
        let flow = flow.map(|flow| cutter.share(id, flow));
        cutter.flows.push(flow.unwrap_or_default());
    }
    StagePlan { job: plan.job.clone(), sites: plan.sites.clone(), ..cutter.out }
}

/// For each node, how many inputs read it.
fn consumers(plan: &Plan) -> Vec<usize> {
    let mut count = vec![0; plan.nodes.len()];
    plan.nodes.iter().flat_map(|node| &node.inputs).for_each(|input| count[input.0] += 1);
    count
}

/// A stage under construction.
struct Flow {
    names: Vec<String>,
    input: StageInput,
    ops: Vec<StageOp>,
    pending: Pending,
    max_tasks: Option<usize>,
    ordered: bool,
}

impl Flow {
    fn new(input: StageInput, schema: &Schema, max_tasks: Option<usize>, ordered: bool) -> Self {
        Flow { names: Vec::new(), input, ops: Vec::new(), pending: Pending::new(schema), max_tasks, ordered }
    }

    fn named(&mut self, name: &str) {
        if self.names.last().is_none_or(|last| last != name) {
            self.names.push(name.to_owned());
        }
    }

    /// Turns what is pending into a program, and goes on with its columns.
    fn settle(&mut self) -> Schema {
        let schema = self.pending.schema().clone();
        let pending = std::mem::replace(&mut self.pending, Pending::new(&schema));
        self.ops.extend(pending.finish().map(StageOp::Program));
        schema
    }

    /// Appends an operator that gives rows of this schema.
    fn push(&mut self, op: StageOp, schema: &Schema) {
        self.settle();
        self.ops.push(op);
        self.pending = Pending::new(schema);
    }
}

/// The flows that read one node's rows, one for each reader.
type Readers = Vec<Flow>;

struct Cutter<'p> {
    plan: &'p Plan,
    consumers: Vec<usize>,
    out: StagePlan,
    /// For each node so far: a flow for each operator that will read it.
    flows: Vec<Readers>,
}

impl Cutter<'_> {
    /// The flow after this node; `None` after a sink.
    fn node(&mut self, id: NodeId) -> Option<Flow> {
        let node = &self.plan.nodes[id.0];
        if let Op::Source(spec) = &node.op {
            let input = StageInput::Source { node: node.name.clone(), spec: spec.clone(), site: node.site };
            let mut flow = Flow::new(input, &node.schema, None, true);
            flow.named(&node.name);
            return Some(flow);
        }
        if matches!(node.op, Op::Union) {
            return Some(self.union(node));
        }
        let mut flow = self.take_flow(node.inputs[0]);
        match &node.op {
            Op::Source(_) | Op::Union => unreachable!("handled above"),
            Op::Filter(condition) => flow.pending.filter(&node.name, condition, &node.schema),
            Op::Require { condition, message } => {
                flow.pending.require(&node.name, condition, message, &node.schema);
            }
            Op::Project(exprs) => flow.pending.project(&node.name, exprs, &node.schema),
            Op::Aggregate { keys, aggregates } => {
                let inputs = flow.settle().types();
                let spec = AggregateSpec {
                    node: node.name.clone(),
                    inputs,
                    keys: keys.clone(),
                    aggregates: aggregates.clone(),
                    output: node.schema.clone(),
                };
                flow.named(&node.name);
                flow.push(StageOp::AggregatePartial(spec.clone()), &node.schema);
                let (partition, tasks) =
                    if keys.is_empty() { (Partition::Gather, Some(1)) } else { (Partition::Hash(Vec::new()), None) };
                flow = self.exchange(flow, partition, tasks, false);
                flow.push(StageOp::AggregateFinal(spec), &node.schema);
            }
            Op::Distinct { keys, order } => {
                let all: Vec<usize> = (0..node.schema.len()).collect();
                let by = if keys.is_empty() { all } else { keys.clone() };
                flow.named(&node.name);
                flow = self.exchange(flow, Partition::Hash(by), None, false);
                let op = StageOp::Distinct { node: node.name.clone(), keys: keys.clone(), order: order.clone() };
                flow.push(op, &node.schema);
            }
            Op::Join(join) => self.join(node, join, &mut flow),
            Op::Sort(keys) => {
                flow.named(&node.name);
                flow = self.exchange(flow, Partition::Gather, Some(1), true);
                let limit = self.limit_after(id);
                flow.push(StageOp::Sort { node: node.name.clone(), keys: keys.clone(), limit }, &node.schema);
            }
            Op::Take { limit, offset } => {
                if flow.max_tasks != Some(1) {
                    let ordered = flow.ordered;
                    flow = self.exchange(flow, Partition::Gather, Some(1), ordered);
                }
                let op = StageOp::Take { node: node.name.clone(), limit: *limit, offset: *offset };
                flow.push(op, &node.schema);
            }
            Op::Sink(spec) => {
                flow.named(&node.name);
                let output = StageOutput::Sink { node: node.name.clone(), spec: spec.clone(), site: node.site };
                self.close(flow, vec![output]);
                return None;
            }
        }
        flow.named(&node.name);
        Some(flow)
    }

    fn take_flow(&mut self, id: NodeId) -> Flow {
        self.flows[id.0].pop().unwrap_or_else(|| unreachable!("more readers than were counted"))
    }

    /// Ends a stage.
    fn close(&mut self, mut flow: Flow, outputs: Vec<StageOutput>) {
        let schema = flow.settle();
        let Flow { names, input, ops, max_tasks, ordered, .. } = flow;
        let name = names.join(" → ");
        self.out.stages.push(Stage { name, input, ops, outputs, max_tasks, ordered, schema });
    }

    /// Ends a stage with an exchange, and starts the next one there.
    fn exchange(&mut self, mut flow: Flow, partition: Partition, tasks: Option<usize>, ordered: bool) -> Flow {
        let schema = flow.settle();
        let id = self.out.exchanges;
        self.out.exchanges += 1;
        self.close(flow, vec![StageOutput::Exchange { id, partition }]);
        Flow::new(StageInput::Exchange { id, schema: schema.clone() }, &schema, tasks, ordered)
    }

    /// A flow for each reader of node `id`.
    fn share(&mut self, id: usize, mut flow: Flow) -> Readers {
        let readers = self.consumers[id];
        if readers <= 1 {
            return vec![flow];
        }
        let schema = flow.settle();
        let first = self.out.exchanges;
        self.out.exchanges += readers;
        let (ordered, max_tasks) = (flow.ordered, flow.max_tasks);
        let partition = if max_tasks == Some(1) { Partition::Gather } else { Partition::Any };
        let output = |id| StageOutput::Exchange { id, partition: partition.clone() };
        self.close(flow, (first..first + readers).map(output).collect());
        let reader = |id| Flow::new(StageInput::Exchange { id, schema: schema.clone() }, &schema, max_tasks, ordered);
        (first..first + readers).map(reader).collect()
    }

    /// All inputs send into one exchange.
    fn union(&mut self, node: &Node) -> Flow {
        let id = self.out.exchanges;
        self.out.exchanges += 1;
        for input in &node.inputs {
            let mut flow = self.take_flow(*input);
            flow.named(&node.name);
            self.close(flow, vec![StageOutput::Exchange { id, partition: Partition::Any }]);
        }
        let mut flow = Flow::new(StageInput::Exchange { id, schema: node.schema.clone() }, &node.schema, None, false);
        flow.named(&node.name);
        flow
    }

    fn join(&mut self, node: &Node, join: &Join, left: &mut Flow) {
        let mut right = self.take_flow(node.inputs[1]);
        right.named(&node.name);
        let right_schema = right.settle();
        let table = self.out.tables;
        self.out.tables += 1;
        self.close(right, vec![StageOutput::Build { table, keys: join.right_keys.clone() }]);
        let left_schema = left.settle();
        // Rows of the right side without a partner come at the end, from whichever task is last.
        left.ordered &= !matches!(join.kind, JoinKind::Right | JoinKind::Full);
        let op = StageOp::Probe {
            node: node.name.clone(),
            table,
            join: join.clone(),
            left: left_schema,
            right: right_schema,
            output: node.schema.clone(),
            site: node.site,
        };
        left.push(op, &node.schema);
    }

    /// How many rows of a sort's result are wanted, if its only reader is a `take` (projections between keep the order).
    fn limit_after(&self, id: NodeId) -> Option<u64> {
        let mut id = id;
        loop {
            if self.consumers[id.0] != 1 {
                return None;
            }
            let next = self.plan.nodes.iter().position(|n| n.inputs.contains(&id))?;
            match &self.plan.nodes[next].op {
                Op::Take { limit, offset } => return limit.checked_add(*offset),
                Op::Project(_) => id = NodeId(next),
                _ => return None,
            }
        }
    }
}
