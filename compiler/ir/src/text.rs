//! The text form of the IR, for `dfc plan` and golden tests. Stable: a change here changes golden files.

use std::fmt::Write;

use crate::plan::{Aggregate, Join, JoinColumn, Op, OptionValue, Options, Plan, SortKey};
use crate::stage::{Partition, Program, StageInput, StageOp, StageOutput, StagePlan, Step};
use crate::{BinaryOp, CastMode, DataType, Expr, ExprKind, Schema, UnaryOp, Value};

/// Writes an expression; `column` gives the names of its columns.
pub fn expr(expr: &Expr, column: &dyn Fn(usize) -> String) -> String {
    let list = |items: &[Expr]| items.iter().map(|e| self::expr(e, column)).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Literal(value) => literal(value, &expr.ty),
        ExprKind::Column(index) => column(*index),
        ExprKind::Unary(UnaryOp::Neg, x) => format!("-{}", self::expr(x, column)),
        ExprKind::Unary(UnaryOp::Not, x) => format!("not {}", self::expr(x, column)),
        ExprKind::Binary(op, l, r) => format!("({} {} {})", self::expr(l, column), symbol(*op), self::expr(r, column)),
        ExprKind::IsNull(x) => format!("({} is null)", self::expr(x, column)),
        ExprKind::Coalesce(items) => format!("coalesce({})", list(items)),
        ExprKind::Case { arms, otherwise } => {
            let mut out = String::from("case {");
            for (condition, value) in arms {
                let _ = write!(out, " {} => {},", self::expr(condition, column), self::expr(value, column));
            }
            let _ = write!(out, " else => {} }}", self::expr(otherwise, column));
            out
        }
        ExprKind::InList(x, values) => {
            let values: Vec<_> = values.iter().map(|v| literal(v, &x.ty)).collect();
            format!("({} in [{}])", self::expr(x, column), values.join(", "))
        }
        ExprKind::Cast(x, CastMode::Strict) => {
            format!("({} as {})", self::expr(x, column), expr.ty)
        }
        ExprKind::Cast(x, CastMode::Try) => {
            format!("({} as? {})", self::expr(x, column), expr.ty.ty)
        }
        ExprKind::Call(name, args) => format!("{name}({})", list(args)),
        ExprKind::Field(x, index) => format!("{}.{index}", self::expr(x, column)),
        ExprKind::Record(items) => format!("{{{}}}", list(items)),
        ExprKind::List(items) => format!("[{}]", list(items)),
        ExprKind::Now => "now()".into(),
        ExprKind::Today => "today()".into(),
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::IntDiv => "div",
        BinaryOp::Mod => "%",
    }
}

/// A constant with its type where the value alone does not tell it.
fn literal(value: &Value<'_>, ty: &DataType) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Float(v) => format!("{v:?}f"),
        Value::Decimal(v) => match ty.ty {
            crate::Type::Decimal(_, scale) => decimal(*v, scale),
            _ => v.to_string(),
        },
        Value::Str(v) => format!("{v:?}"),
        Value::Bytes(v) => format!("bytes({})", v.len()),
        Value::Date(v) => format!("date({v})"),
        Value::Time(v) => format!("time({v})"),
        Value::DateTime(v) => format!("datetime({v})"),
        Value::Timestamp(v) => format!("timestamp({v})"),
        Value::Duration(v) => format!("duration({v})"),
        Value::List(items) => {
            let inner = match &ty.ty {
                crate::Type::List(item) => (**item).clone(),
                _ => ty.clone(),
            };
            format!("[{}]", items.iter().map(|v| literal(v, &inner)).collect::<Vec<_>>().join(", "))
        }
        Value::Record(items) => {
            let text = |(i, v): (usize, &Value<'_>)| match &ty.ty {
                crate::Type::Record(fields) if i < fields.len() => literal(v, &fields[i].ty),
                _ => literal(v, ty),
            };
            format!("{{{}}}", items.iter().enumerate().map(text).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The plain text of a decimal: all digits of its scale.
fn decimal(mantissa: i128, scale: u8) -> String {
    let digits = format!("{:0width$}", mantissa.unsigned_abs(), width = scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    let sign = if mantissa < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn names(schema: &Schema) -> impl Fn(usize) -> String + '_ {
    move |index| schema.fields.get(index).map_or_else(|| format!("#{index}"), |f| f.name.clone())
}

fn fields(schema: &Schema) -> String {
    schema.fields.iter().map(|f| format!("{}: {}", f.name, f.ty)).collect::<Vec<_>>().join(", ")
}

fn options(options: &Options) -> String {
    let text = |value: &OptionValue| match value {
        OptionValue::Value(v) => literal(v, &DataType::of(crate::Type::Null)),
        OptionValue::Name(name) => name.clone(),
        OptionValue::Names(names) => format!("[{}]", names.join(", ")),
        OptionValue::Secret(secret) => secret.to_string(),
        OptionValue::Absent => "absent".into(),
    };
    options.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect::<Vec<_>>().join(", ")
}

fn sort_keys(keys: &[SortKey], column: &dyn Fn(usize) -> String) -> String {
    let text = |key: &SortKey| {
        let nulls = if key.nulls_first { " nulls first" } else { "" };
        format!("{}{}{nulls}", expr(&key.expr, column), if key.descending { " desc" } else { "" })
    };
    keys.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn aggregate(aggregate: &Aggregate, column: &dyn Fn(usize) -> String) -> String {
    let args: Vec<_> = aggregate.args.iter().map(|e| expr(e, column)).collect();
    let filter = aggregate.filter.as_ref().map_or(String::new(), |e| format!(" where {}", expr(e, column)));
    format!("{}({}){filter}", aggregate.function.name(), args.join(", "))
}

fn join(join: &Join, left: &Schema, right: &Schema) -> String {
    let (left_name, right_name) = (names(left), names(right));
    let keys: Vec<_> = join
        .left_keys
        .iter()
        .zip(&join.right_keys)
        .map(|(l, r)| format!("{} == right.{}", expr(l, &left_name), expr(r, &right_name)))
        .collect();
    let both = |i: usize| {
        if i < left.len() { left_name(i) } else { format!("right.{}", right_name(i - left.len())) }
    };
    let residual = join.residual.as_ref().map_or(String::new(), |e| format!(" and {}", expr(e, &both)));
    let output: Vec<_> = join
        .output
        .iter()
        .map(|column| match *column {
            JoinColumn::Left(i) => left_name(i),
            JoinColumn::Right(i) => format!("right.{}", right_name(i)),
            JoinColumn::Merged(l, r) => format!("{} ?? right.{}", left_name(l), right_name(r)),
        })
        .collect();
    let required = if join.required { " required" } else { "" };
    let kind = format!("{:?}", join.kind).to_lowercase();
    let matches = format!("{:?}", join.matches).to_lowercase();
    format!("{kind}{required} match {matches} on {}{residual} take [{}]", keys.join(" and "), output.join(", "))
}

/// A name as it must be written: in backticks where it is no identifier or reserved.
pub fn written(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "and", "or", "not", "in", "is", "between", "like", "matches", "as", "if", "else", "match", "true", "false",
        "null", "div",
    ];
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
        && !RESERVED.contains(&name);
    if plain { name.to_owned() } else { format!("`{name}`") }
}

/// The logical plan: one operator a line, its expressions below it.
pub fn plan(plan: &Plan) -> String {
    let mut out = format!("job {}\n", plan.job.name);
    for (id, node) in plan.nodes.iter().enumerate() {
        let inputs: Vec<_> = node.inputs.iter().map(|i| format!("%{}", i.0)).collect();
        let input = node.inputs.first().map(|i| &plan.nodes[i.0].schema);
        let empty = Schema::default();
        let column = names(input.unwrap_or(&empty));
        let what = match &node.op {
            Op::Source(spec) => {
                format!("source {}({}) reads {:?}", spec.connector, options(&spec.options), spec.projection)
            }
            Op::Filter(e) => format!("filter {}", expr(e, &column)),
            Op::Require { condition, message } => {
                format!("require {} else {message:?}", expr(condition, &column))
            }
            Op::Project(exprs) => {
                let pairs = exprs.iter().zip(&node.schema.fields);
                let text = pairs.map(|(e, f)| format!("{}: {}", f.name, expr(e, &column)));
                format!("project {}", text.collect::<Vec<_>>().join(", "))
            }
            Op::Aggregate { keys, aggregates } => {
                let keys: Vec<_> = keys.iter().map(|e| expr(e, &column)).collect();
                let calls: Vec<_> = aggregates.iter().map(|a| aggregate(a, &column)).collect();
                format!("aggregate by [{}]: {}", keys.join(", "), calls.join(", "))
            }
            Op::Distinct { keys, order } => {
                let keys: Vec<_> = keys.iter().map(|&i| column(i)).collect();
                format!("distinct by [{}] order [{}]", keys.join(", "), sort_keys(order, &column))
            }
            Op::Join(j) => {
                let right = node.inputs.get(1).map_or(&empty, |i| &plan.nodes[i.0].schema);
                format!("join {}", join(j, input.unwrap_or(&empty), right))
            }
            Op::Union => "union".into(),
            Op::Sort(keys) => format!("sort {}", sort_keys(keys, &column)),
            Op::Take { limit, offset } => format!("take {limit} offset {offset}"),
            Op::Sink(spec) => format!("sink {}({})", spec.connector, options(&spec.options)),
        };
        let from = if inputs.is_empty() { String::new() } else { format!(" <- {}", inputs.join(", ")) };
        let _ = writeln!(out, "%{id} {}{from}\n    {what}\n    -> {}", node.name, fields(&node.schema));
    }
    out
}

/// A program, one step a line, each line indented by `indent`.
pub fn program(program: &Program, input: &dyn Fn(usize) -> String, indent: &str) -> String {
    let mut out = String::new();
    let arity = program.inputs.len();
    let column = |i: usize| {
        if i < arity { input(i) } else { format!("${}", i - arity) }
    };
    let mut lets = 0;
    for step in &program.steps {
        let _ = match step {
            Step::Filter(e) => writeln!(out, "{indent}filter {}", expr(e, &column)),
            Step::Require(e, message) => {
                writeln!(out, "{indent}require {} else {message:?}", expr(e, &column))
            }
            Step::Let(e) => {
                lets += 1;
                writeln!(out, "{indent}let ${} = {}", lets - 1, expr(e, &column))
            }
        };
    }
    for (e, field) in program.outputs.iter().zip(&program.schema.fields) {
        let _ = writeln!(out, "{indent}{}: {} = {}", field.name, e.ty, expr(e, &column));
    }
    out
}

/// The stage plan: one stage a block.
pub fn stages(plan: &StagePlan) -> String {
    stages_with(plan, &|_| Vec::new())
}

/// The same with what whoever runs a stage says of its source, a line each.
pub fn stages_with(plan: &StagePlan, source: &dyn Fn(usize) -> Vec<String>) -> String {
    let mut out = format!("job {}\n", plan.job.name);
    for (id, stage) in plan.stages.iter().enumerate() {
        let tasks = stage.max_tasks.map_or("tasks: any".into(), |n| format!("tasks: {n}"));
        let order = if stage.ordered { ", in order" } else { "" };
        let _ = writeln!(out, "stage {id} ({tasks}{order}) {}", stage.name);
        let mut schema = match &stage.input {
            StageInput::Source { node, spec, .. } => {
                let read = spec.projected();
                let _ = writeln!(out, "  source {node}: {}({})", spec.connector, options(&spec.options));
                let _ = writeln!(out, "    reads {}", fields(&read));
                for line in source(id) {
                    let _ = writeln!(out, "    {line}");
                }
                read
            }
            StageInput::Exchange { id, schema } => {
                let _ = writeln!(out, "  exchange {id}: {}", fields(schema));
                schema.clone()
            }
        };
        for op in &stage.ops {
            let before = schema.clone();
            let column = names(&before);
            schema = match op {
                StageOp::Program(p) => {
                    let _ = write!(out, "  program {}\n{}", p.name, program(p, &column, "    "));
                    p.schema.clone()
                }
                StageOp::AggregatePartial(spec) => {
                    let keys: Vec<_> = spec.keys.iter().map(|e| expr(e, &column)).collect();
                    let _ = writeln!(out, "  aggregate partial {} by [{}]", spec.node, keys.join(", "));
                    for call in &spec.aggregates {
                        let _ = writeln!(out, "    {}: {}", aggregate(call, &column), call.ty);
                    }
                    spec.output.clone()
                }
                StageOp::AggregateFinal(spec) => {
                    let _ = writeln!(out, "  aggregate final {}", spec.node);
                    spec.output.clone()
                }
                StageOp::Distinct { node, keys, order } => {
                    let keys: Vec<_> = keys.iter().map(|&i| column(i)).collect();
                    let order = sort_keys(order, &column);
                    let _ = writeln!(out, "  distinct {node} by [{}] order [{order}]", keys.join(", "));
                    schema
                }
                StageOp::Probe { node, table, join: j, left, right, output, .. } => {
                    let _ = writeln!(out, "  probe {node} table {table}: {}", join(j, left, right));
                    output.clone()
                }
                StageOp::Sort { node, keys, limit } => {
                    let limit = limit.map_or(String::new(), |n| format!(" first {n}"));
                    let _ = writeln!(out, "  sort {node} by {}{limit}", sort_keys(keys, &column));
                    schema
                }
                StageOp::Take { node, limit, offset } => {
                    let _ = writeln!(out, "  take {node} {limit} offset {offset}");
                    schema
                }
            };
        }
        let column = names(&schema);
        for output in &stage.outputs {
            let _ = match output {
                StageOutput::Exchange { id, partition } => {
                    let how = match partition {
                        Partition::Any => "any".into(),
                        Partition::Gather => "gather".into(),
                        Partition::Hash(keys) if keys.is_empty() => "hash of the group".into(),
                        Partition::Hash(keys) => {
                            format!("hash of [{}]", keys.iter().map(|&i| column(i)).collect::<Vec<_>>().join(", "))
                        }
                    };
                    writeln!(out, "  => exchange {id} ({how})")
                }
                StageOutput::Build { table, keys } => {
                    let keys: Vec<_> = keys.iter().map(|e| expr(e, &column)).collect();
                    writeln!(out, "  => table {table} by [{}]", keys.join(", "))
                }
                StageOutput::Sink { node, spec, .. } => {
                    writeln!(out, "  => sink {node}: {}({})", spec.connector, options(&spec.options))
                }
            };
        }
    }
    out
}

/// The logical plan as a Graphviz graph.
pub fn dot(plan: &Plan) -> String {
    let mut out = String::from("digraph job {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n");
    for (id, node) in plan.nodes.iter().enumerate() {
        let label = node.name.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(out, "  n{id} [label=\"{label}\"];");
        for input in &node.inputs {
            let _ = writeln!(out, "  n{} -> n{id};", input.0);
        }
    }
    out.push_str("}\n");
    out
}
