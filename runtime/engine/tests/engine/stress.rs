//! Random graphs of branches, unions, joins and operators that see everything, with far more batches than the queues hold: whatever the
//! number of tasks and threads, every graph comes to its end with the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use dfc_engine::{MemoryConnectors, RunOptions, Silent, run_with};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{Join, JoinColumn, JoinKind, MatchMode};
use dfc_ir::stage::{Partition, Stage, StageInput, StageOp, StageOutput, Step};
use dfc_ir::{Schema, Site, StagePlan, Type, Value};

use crate::support::*;

const ROWS: i128 = 120;

/// An operator of a random graph; inputs are earlier operators.
#[derive(Debug, Clone, Copy)]
enum Node {
    Source,
    AtLeast(usize, i64),
    Union(usize, usize),
    Sort(usize),
    Distinct(usize),
    /// Rows of the first that have (or don't have) a partner in the second.
    Partner(usize, usize, JoinKind),
}

impl Node {
    fn inputs(self) -> Vec<usize> {
        match self {
            Node::Source => vec![],
            Node::AtLeast(a, _) | Node::Sort(a) | Node::Distinct(a) => vec![a],
            Node::Union(a, b) | Node::Partner(a, b, _) => vec![a, b],
        }
    }
}

fn random_graph(rng: &mut Rng) -> Vec<Node> {
    let mut nodes = vec![Node::Source];
    if rng.below(2) == 0 {
        nodes.push(Node::Source);
    }
    let mut unions = 0;
    for _ in 0..2 + rng.below(8) {
        let mut any = || rng.below(nodes.len() as u64) as usize;
        let (a, b) = (any(), any());
        let node = match rng.below(7) {
            0 => Node::AtLeast(a, rng.below(60) as i64),
            // A union of unions doubles the rows: not too often.
            1 | 2 if unions < 4 => {
                unions += 1;
                Node::Union(a, b)
            }
            3 => Node::Sort(a),
            4 => Node::Distinct(a),
            5 => Node::Partner(a, b, JoinKind::Anti),
            _ => Node::Partner(a, b, JoinKind::Semi),
        };
        nodes.push(node);
    }
    nodes
}

/// How often each row comes out of each operator.
fn expected(nodes: &[Node]) -> Vec<BTreeMap<i128, usize>> {
    let mut out: Vec<BTreeMap<i128, usize>> = Vec::new();
    for node in nodes {
        out.push(match *node {
            Node::Source => (0..ROWS).map(|n| (n, 1)).collect(),
            Node::AtLeast(a, least) => out[a].range(i128::from(least)..).map(|(&n, &count)| (n, count)).collect(),
            Node::Union(a, b) => {
                let mut sum = out[a].clone();
                out[b].iter().for_each(|(&n, &count)| *sum.entry(n).or_default() += count);
                sum
            }
            Node::Sort(a) => out[a].clone(),
            Node::Distinct(a) => out[a].keys().map(|&n| (n, 1)).collect(),
            Node::Partner(a, b, kind) => {
                let wanted = |n: &i128| out[b].contains_key(n) == (kind == JoinKind::Semi);
                out[a].iter().filter(|(n, _)| wanted(n)).map(|(&n, &count)| (n, count)).collect()
            }
        });
    }
    out
}

/// One stage an operator.
fn plan_of(nodes: &[Node], schema: &Schema) -> (StagePlan, Vec<usize>) {
    let mut stages: Vec<Stage> = Vec::new();
    let (mut exchanges, mut tables) = (0, 0);
    let mut read = vec![false; nodes.len()];
    for (id, &node) in nodes.iter().enumerate() {
        let inputs = node.inputs();
        inputs.iter().for_each(|&input| read[input] = true);
        let exchange = exchanges;
        let mut ops = Vec::new();
        let mut partition = Partition::Any;
        let mut feeding = inputs.clone();
        match node {
            Node::Source | Node::Union(..) => {}
            Node::AtLeast(_, least) => {
                let least = binary(BinaryOp::Ge, col(schema, 2), lit(least), Type::Bool);
                ops.push(steps("f", schema, vec![Step::Filter(least)]));
            }
            Node::Sort(_) => {
                partition = Partition::Gather;
                let keys = vec![key(col(schema, 2), true, false)];
                ops.push(StageOp::Sort { node: "sort".into(), keys, limit: None });
            }
            Node::Distinct(_) => {
                partition = Partition::Hash(vec![2]);
                ops.push(StageOp::Distinct { node: "distinct".into(), keys: vec![2], order: vec![] });
            }
            Node::Partner(_, right, kind) => {
                feeding.truncate(1);
                let join = Join {
                    kind,
                    left_keys: vec![col(schema, 2)],
                    right_keys: vec![col(schema, 2)],
                    left_width: schema.len(),
                    residual: None,
                    matches: MatchMode::All,
                    required: false,
                    output: (0..schema.len()).map(JoinColumn::Left).collect(),
                };
                stages[right].outputs.push(StageOutput::Build { table: tables, keys: vec![col(schema, 2)] });
                ops.push(StageOp::Probe {
                    node: "join".into(),
                    table: tables,
                    join,
                    left: schema.clone(),
                    right: schema.clone(),
                    output: schema.clone(),
                    site: Site::default(),
                });
                tables += 1;
            }
        }
        for &input in &feeding {
            stages[input].outputs.push(to(exchange, partition.clone()));
        }
        exchanges += usize::from(!feeding.is_empty());
        let input: StageInput = if feeding.is_empty() { source("in", schema) } else { from(exchange, schema) };
        let mut stage = stage(&format!("{id}"), input, ops, sink("unused"), schema);
        stage.outputs.clear();
        stage.ordered = false;
        stages.push(stage);
    }
    let ends: Vec<usize> = (0..nodes.len()).filter(|&id| !read[id]).collect();
    for &end in &ends {
        stages[end].outputs.push(sink(&format!("out{end}")));
    }
    (plan(stages, exchanges, tables), ends)
}

#[test]
fn random_graphs_come_to_their_end() {
    let mut rng = Rng(70);
    let schema = left_schema();
    let input: Vec<Row> = (0..ROWS).map(|n| vec![Value::Int(n % 7), Value::Null, Value::Int(n)]).collect();
    for turn in 0..120 {
        let nodes = random_graph(&mut rng);
        let (plan, ends) = plan_of(&nodes, &schema);
        let expected = expected(&nodes);
        let tables = MemoryConnectors::default();
        tables.put("in", batches(&schema, &input, &mut rng, 3));
        let (parallelism, threads) = (1 + turn % 3, 1 + turn % 4);
        let options = RunOptions { parallelism, threads, ..RunOptions::default() };
        let result = run_with(&tables, &plan, options, Arc::new(Silent));
        assert!(result.is_ok(), "{parallelism} tasks, {threads} threads, {nodes:?}: {result:?}");
        for &end in &ends {
            let mut counted: BTreeMap<i128, usize> = BTreeMap::new();
            for row in rows(&schema, &tables.get(&format!("out{end}")).unwrap()) {
                *counted.entry(row[2].as_int().unwrap()).or_default() += 1;
            }
            assert_eq!(counted, expected[end], "{parallelism} tasks, {threads} threads, operator {end} of {nodes:?}");
        }
    }
}
