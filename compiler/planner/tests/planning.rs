//! Plans made by hand, and the stages that are cut from them, as text.

use dfc_ir::plan::{
    AggFunction, Aggregate, Join, JoinColumn, JoinKind, MatchMode, Node, NodeId, Op, Plan, SinkSpec, SortKey,
    SourceSpec,
};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Field, Schema, Site, Type, Value, text};
use dfc_planner::plan_stages;

const INT: Type = Type::INT64;

fn int() -> DataType {
    DataType::of(INT)
}

fn schema(names: &[&str]) -> Schema {
    Schema { fields: names.iter().map(|name| Field::new(*name, int())).collect() }
}

fn col(index: usize) -> Expr {
    Expr::column(index, int())
}

fn lit(value: i128) -> Expr {
    Expr::literal(Value::Int(value), int())
}

fn binary(op: BinaryOp, l: Expr, r: Expr) -> Expr {
    let ty = if matches!(op, BinaryOp::Gt | BinaryOp::Eq) { DataType::of(Type::Bool) } else { int() };
    Expr { kind: ExprKind::Binary(op, Box::new(l), Box::new(r)), ty, site: Site::default() }
}

/// Builds a plan node by node.
#[derive(Default)]
struct Builder(Plan);

impl Builder {
    fn node(&mut self, name: &str, op: Op, inputs: &[NodeId], schema: Schema) -> NodeId {
        self.0.nodes.push(Node { name: name.into(), op, inputs: inputs.to_vec(), schema, site: Site::default() });
        NodeId(self.0.nodes.len() - 1)
    }

    fn source(&mut self, name: &str, fields: &[&str]) -> NodeId {
        let schema = schema(fields);
        let spec = SourceSpec {
            connector: "csv".into(),
            options: Default::default(),
            projection: (0..schema.len()).collect(),
            schema: schema.clone(),
        };
        self.node(name, Op::Source(spec), &[], schema)
    }

    fn sink(&mut self, input: NodeId) {
        let schema = self.0.nodes[input.0].schema.clone();
        let op = Op::Sink(SinkSpec { connector: "csv".into(), options: Default::default() });
        self.node("sink.csv", op, &[input], schema);
    }

    fn filter(&mut self, input: NodeId, condition: Expr) -> NodeId {
        let schema = self.0.nodes[input.0].schema.clone();
        self.node("filter", Op::Filter(condition), &[input], schema)
    }

    fn stages(&self) -> String {
        text::stages(&plan_stages(&self.0))
    }
}

#[test]
fn columns_that_nobody_reads_are_not_read() {
    let mut plan = Builder::default();
    let a = plan.source("a", &["x", "y", "z", "w"]);
    let kept = plan.filter(a, binary(BinaryOp::Gt, col(3), lit(1)));
    let picked = plan.node("select", Op::Project(vec![col(1)]), &[kept], schema(&["y"]));
    plan.sink(picked);
    let stages = plan.stages();
    assert!(stages.contains("reads y: int64, w: int64\n"), "{stages}");
    assert_eq!(stages.matches("stage ").count(), 1, "{stages}");
    assert!(stages.contains("filter (w > 1)\n    y: int64 = y\n"), "{stages}");
}

#[test]
fn a_value_used_twice_is_computed_once() {
    let mut plan = Builder::default();
    let a = plan.source("a", &["x", "y"]);
    let sum = binary(BinaryOp::Add, col(0), col(1));
    let derived = plan.node("derive", Op::Project(vec![col(0), sum]), &[a], schema(&["x", "s"]));
    let twice = binary(BinaryOp::Mul, col(1), col(1));
    let squared = plan.node("select", Op::Project(vec![twice]), &[derived], schema(&["q"]));
    plan.sink(squared);
    let stages = plan.stages();
    assert!(stages.contains("let $0 = (x + y)\n    q: int64 = ($0 * $0)\n"), "{stages}");
}

#[test]
fn what_a_filter_reads_is_handed_on_and_not_computed_again() {
    let mut plan = Builder::default();
    let a = plan.source("a", &["x", "y"]);
    let sum = binary(BinaryOp::Add, col(0), col(1));
    let derived = plan.node("derive", Op::Project(vec![sum]), &[a], schema(&["s"]));
    let kept = plan.filter(derived, binary(BinaryOp::Gt, col(0), lit(5)));
    plan.sink(kept);
    let stages = plan.stages();
    assert!(stages.contains("let $0 = (x + y)\n    filter ($0 > 5)\n    s: int64 = $0\n"), "{stages}");
}

#[test]
fn groups_are_exchanged_by_hash_and_totals_gathered() {
    for (keys, exchange, tasks) in [(vec![col(0)], "hash of the group", "tasks: any"), (vec![], "gather", "tasks: 1")] {
        let mut plan = Builder::default();
        let a = plan.source("a", &["k", "v"]);
        let total = Aggregate {
            function: AggFunction::Sum,
            args: vec![col(1)],
            filter: None,
            ty: int(),
            site: Site::default(),
        };
        let names: &[&str] = if keys.is_empty() { &["total"] } else { &["k", "total"] };
        let op = Op::Aggregate { keys, aggregates: vec![total] };
        let grouped = plan.node("aggregate", op, &[a], schema(names));
        plan.sink(grouped);
        let stages = plan.stages();
        assert!(stages.contains(&format!("=> exchange 0 ({exchange})")), "{stages}");
        assert!(stages.contains(&format!("stage 1 ({tasks}) ")), "{stages}");
        assert!(stages.contains("aggregate final aggregate"), "{stages}");
    }
}

#[test]
fn a_sort_before_a_take_keeps_only_the_first_rows() {
    let mut plan = Builder::default();
    let a = plan.source("a", &["x"]);
    let key = SortKey { expr: col(0), descending: true, nulls_first: false };
    let sorted = plan.node("sort", Op::Sort(vec![key]), &[a], schema(&["x"]));
    let first = plan.node("take", Op::Take { limit: 10, offset: 5 }, &[sorted], schema(&["x"]));
    plan.sink(first);
    let stages = plan.stages();
    assert!(stages.contains("sort sort by x desc first 15"), "{stages}");
    assert_eq!(stages.matches("stage ").count(), 2, "the take runs in the sort's one task: {stages}");
}

fn join(plan: &mut Builder, left: NodeId, right: NodeId, kind: JoinKind) -> NodeId {
    let join = Join {
        kind,
        left_keys: vec![col(0)],
        right_keys: vec![col(0)],
        left_width: 2,
        residual: Some(binary(BinaryOp::Gt, col(1), col(4))),
        matches: MatchMode::All,
        required: false,
        output: vec![JoinColumn::Left(0), JoinColumn::Left(1), JoinColumn::Right(1)],
    };
    plan.node("join", Op::Join(join), &[left, right], schema(&["k", "a", "b"]))
}

#[test]
fn a_join_builds_its_right_side_first_and_both_sides_are_pruned() {
    let mut plan = Builder::default();
    let left = plan.source("l", &["k", "a"]);
    let right = plan.source("r", &["k", "b", "c", "unused"]);
    let joined = join(&mut plan, left, right, JoinKind::Inner);
    let picked = plan.node("select", Op::Project(vec![col(2)]), &[joined], schema(&["b"]));
    plan.sink(picked);
    let stages = plan.stages();
    assert!(stages.contains("reads k: int64, b: int64, c: int64\n"), "{stages}");
    assert!(stages.contains("=> table 0 by [k]"), "{stages}");
    assert!(stages.contains("inner match all on k == right.k and (a > right.c) take [right.b]"), "{stages}");
    let build = stages.find("table 0 by").expect("the build");
    assert!(build < stages.find("probe join").expect("the probe"), "{stages}");
}

#[test]
fn rows_without_a_partner_on_the_right_come_out_of_order() {
    for (kind, in_order) in
        [(JoinKind::Left, true), (JoinKind::Inner, true), (JoinKind::Right, false), (JoinKind::Full, false)]
    {
        let mut plan = Builder::default();
        let left = plan.source("l", &["k", "a"]);
        let right = plan.source("r", &["k", "b", "c"]);
        let joined = join(&mut plan, left, right, kind);
        plan.sink(joined);
        let stages = plan_stages(&plan.0);
        assert_eq!(stages.stages[1].ordered, in_order, "{kind:?}");
    }
}

#[test]
fn a_stream_that_feeds_both_sides_of_a_join_is_read_once() {
    let mut plan = Builder::default();
    let a = plan.source("a", &["k", "v", "w"]);
    let right = plan.filter(a, binary(BinaryOp::Gt, col(1), lit(0)));
    let left = plan.node("select", Op::Project(vec![col(0), col(1)]), &[a], schema(&["k", "v"]));
    let joined = join(&mut plan, left, right, JoinKind::Inner);
    plan.sink(joined);
    let stages = plan.stages();
    assert_eq!(stages.matches("source a").count(), 1, "{stages}");
    assert!(stages.contains("=> exchange 0 (any)\n  => exchange 1 (any)"), "{stages}");
}

#[test]
fn a_union_matches_its_inputs_after_pruning() {
    let mut plan = Builder::default();
    let a = plan.source("a", &["x", "y"]);
    let b = plan.source("b", &["x", "y"]);
    let kept = plan.filter(b, binary(BinaryOp::Eq, col(1), lit(3)));
    let all = plan.node("union", Op::Union, &[a, kept], schema(&["x", "y"]));
    let picked = plan.node("select", Op::Project(vec![col(0)]), &[all], schema(&["x"]));
    plan.sink(picked);
    let stages = plan_stages(&plan.0);
    let text = text::stages(&stages);
    assert!(stages.stages[..2].iter().all(|stage| stage.schema == schema(&["x"])), "{text}");
    assert!(text.contains("reads x: int64\n") && text.contains("reads x: int64, y: int64\n"), "{text}");
}
