//! Which sinks of a plan are copies of a source, and which columns come from where. It may not know what is in them.

use dfc_ir::expr::ExprKind;
use dfc_ir::plan::{Node, Op, OptionValue, Options, Plan, SinkSpec, SourceSpec};
use dfc_ir::{Type, Value};

/// What leads a source on, or says how a sink writes: the other side is read to its end, as it is.
const NOT_READ: [&str; 5] = ["poll", "lag", "follow", "mode", "split_by"];

/// A column of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// In the target.
    pub name: String,
    pub ty: Type,
    /// Positions among the source's declared fields, and among the sink's.
    pub at: (usize, usize),
}

/// A sink that holds a row for each row of a source.
pub struct Pair {
    /// The operators' names.
    pub source: String,
    pub sink: String,
    /// How the sides are read.
    pub from: SourceSpec,
    pub to: SourceSpec,
    /// Columns that are the same in both.
    pub shared: Vec<Shared>,
    /// The sink's other columns.
    pub computed: Vec<String>,
    /// The source's increment, if the target has it.
    pub increment: Option<Shared>,
    /// By what ranges are made.
    pub key: Option<Shared>,
}

/// Every sink with what it is a copy of, or why it is none, as the end of a sentence.
pub fn pairs(plan: &Plan) -> Vec<(String, Result<Pair, String>)> {
    let sinks = plan.nodes.iter().filter_map(|node| match &node.op {
        Op::Sink(spec) => Some((node, spec)),
        _ => None,
    });
    sinks.map(|(node, spec)| (node.name.clone(), pair(plan, node, spec))).collect()
}

fn pair(plan: &Plan, sink: &Node, spec: &SinkSpec) -> Result<Pair, String> {
    if names(&spec.options, "delete").is_some() {
        return Err("rows that say what is removed (`delete:`) are in no target".into());
    }
    let to = target(sink, spec)?;
    // By column of the sink: where it stands in the node that is looked at.
    let mut columns: Vec<Option<usize>> = (0..sink.schema.fields.len()).map(Some).collect();
    let mut node = sink;
    let from = loop {
        match &node.op {
            Op::Source(spec) => break spec,
            Op::Sink(_) | Op::Require { .. } | Op::Sort(_) => {}
            Op::Project(expressions) => {
                for column in &mut columns {
                    *column = column.and_then(|at| match expressions.get(at)?.kind {
                        ExprKind::Column(below) => Some(below),
                        _ => None,
                    });
                }
            }
            Op::Filter(_) | Op::Distinct { .. } | Op::Take { .. } => {
                return Err(format!("`{}` lets only some of the rows pass, so it is no copy of a source", node.name));
            }
            Op::Aggregate { .. } | Op::Join(_) | Op::Union => {
                return Err(format!("`{}` makes rows of its own, so it is no copy of one source", node.name));
            }
        }
        node = match node.inputs.first().and_then(|input| plan.nodes.get(input.0)) {
            Some(below) => below,
            None => return Err(format!("`{}` has no input", node.name)),
        };
    };
    if from.connector == "generate" {
        return Err("what is generated is nowhere to be compared with".into());
    }
    if from.options.get("path").and_then(OptionValue::text) == Some("-") {
        return Err(format!("`{}` is the standard input, which is read once", node.name));
    }
    let (mut shared, mut computed) = (Vec::new(), Vec::new());
    for (at, (field, column)) in sink.schema.fields.iter().zip(&columns).enumerate() {
        // A source's node gives its projection.
        let below = column.and_then(|below| from.projection.get(below)).copied();
        match below.filter(|below| from.schema.fields.get(*below).is_some_and(|f| f.ty.ty == field.ty.ty)) {
            Some(below) => shared.push(Shared { name: field.name.clone(), ty: field.ty.ty.clone(), at: (below, at) }),
            None => computed.push(field.name.clone()),
        }
    }
    let of_source = |option: &str| {
        let name = names(&from.options, option)?.into_iter().next()?;
        shared.iter().find(|shared| from.schema.fields[shared.at.0].name == name).cloned()
    };
    let of_sink = || {
        let name = names(&spec.options, "key")?.into_iter().next()?;
        shared.iter().find(|shared| shared.name == name).cloned()
    };
    let increment = of_source("increment");
    let key = of_sink().or_else(|| of_source("tiebreak")).or_else(|| of_source("split_by"));
    let key = key.or_else(|| shared.first().cloned()).or_else(|| increment.clone());
    let from = SourceSpec { options: plain(&from.options), ..from.clone() };
    Ok(Pair { source: node.name.clone(), sink: sink.name.clone(), from, to, shared, computed, increment, key })
}

/// How a target is read.
pub fn target(sink: &Node, spec: &SinkSpec) -> Result<SourceSpec, String> {
    let mut options = plain(&spec.options);
    match spec.connector.as_str() {
        "print" | "discard" => return Err(format!("`{}` keeps nothing that could be read", spec.connector)),
        "csv" | "jsonl" | "parquet" => {
            let path = options.get("path").and_then(OptionValue::text).unwrap_or_default().to_string();
            if names(&options, "by").is_some() {
                return Err("a folder that is partitioned by fields is not read back".into());
            }
            match path.as_str() {
                "-" => return Err("the standard output keeps nothing that could be read".into()),
                folder if folder.ends_with('/') => {
                    let all = Value::string(format!("{folder}*.{}*", spec.connector));
                    options.insert("path".into(), OptionValue::Value(all));
                }
                _ => {}
            }
        }
        _ => {}
    }
    let projection = (0..sink.schema.fields.len()).collect();
    Ok(SourceSpec { connector: spec.connector.clone(), options, schema: sink.schema.clone(), projection })
}

fn plain(options: &Options) -> Options {
    let kept = options.iter().filter(|(name, _)| !NOT_READ.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn names(options: &Options, name: &str) -> Option<Vec<String>> {
    match options.get(name) {
        Some(OptionValue::Names(names)) if !names.is_empty() => Some(names.clone()),
        Some(OptionValue::Name(name)) => Some(vec![name.clone()]),
        _ => None,
    }
}
