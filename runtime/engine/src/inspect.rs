//! A checkpoint's state as people read it (D17, D18): groups with their keys and results so far, rows, keys that came. Entry by entry, so
//! that a large state needn't be held as text. It may not know how it is written down.

use std::sync::Arc;

use dfc_batch::{Batch, arrow_type, value_at};
use dfc_checkpoint::Manifest;
use dfc_ir::stage::{AggregateSpec, Stage, StageInput, StageOp};
use dfc_ir::{DataType, Field, Schema, StagePlan, Type, Value};
use serde_json::{Map, Value as Json, json};

use crate::RunError;
use crate::checkpoint::{differences, print};
use crate::rowkey::RowKeys;
use crate::state::{self, Kind};

/// Keys that are decoded at once.
const KEYS: usize = 8192;

/// Reads the state of a checkpoint with the pipeline that made it.
pub struct Inspector<'a> {
    plan: &'a StagePlan,
}

/// Where an operator's entries go.
pub type Give<'g> = &'g mut dyn FnMut(Json) -> Result<(), RunError>;

impl<'a> Inspector<'a> {
    /// `Err`: why this pipeline doesn't tell what the state means, as the end of a sentence.
    ///
    /// # Errors
    /// As said.
    pub fn new(plan: &'a StagePlan, manifest: &Manifest) -> Result<Inspector<'a>, String> {
        let mut changed = differences(&manifest.pipeline, &print(plan, &[]), true);
        match changed.is_empty() && manifest.stages.len() == plan.stages.len() {
            true => Ok(Inspector { plan }),
            false => {
                changed.truncate(3);
                Err(format!("the pipeline has changed since: {}", changed.join("; ")))
            }
        }
    }

    /// Gives the entries of an operator of stage `stage`, whose parts come one after another.
    ///
    /// # Errors
    /// A part is damaged, doesn't come, or is of a kind that isn't known; what `give` says.
    pub fn entries(
        &self,
        stage: usize,
        node: &str,
        kind: &str,
        mut parts: impl Iterator<Item = Result<Vec<u8>, RunError>>,
        give: Give,
    ) -> Result<(), RunError> {
        let unknown =
            || RunError::State(format!("`{node}` has state of kind `{kind}`, which this version doesn't know"));
        let stage = self.plan.stages.get(stage).ok_or_else(unknown)?;
        match Kind::by_name(kind).ok_or_else(unknown)? {
            Kind::Groups => groups(spec(stage, node).ok_or_else(unknown)?, parts, give),
            Kind::Seen => {
                let schema = keys(stage, node).ok_or_else(unknown)?;
                parts.try_for_each(|part| seen(&schema, node, &part?, &mut *give))
            }
            Kind::Results => {
                let schema = &spec(stage, node).ok_or_else(unknown)?.output;
                parts.try_for_each(|part| rows(schema, &part?, &mut *give))
            }
            Kind::Rows => {
                let schema = before(stage, node).ok_or_else(unknown)?;
                parts.try_for_each(|part| rows(&schema, &part?, &mut *give))
            }
            Kind::Build => parts.try_for_each(|part| rows(&stage.schema, &part?, &mut *give)),
            Kind::Queue => {
                let schema = input(stage);
                parts.try_for_each(|part| rows(&schema, &part?, &mut *give))
            }
            Kind::Marks => parts.try_for_each(|part| {
                let matched: u32 = state::numbers(&part?)?.iter().map(|word| word.count_ones()).sum();
                give(json!({ "rows_with_a_partner": matched }))
            }),
            Kind::Numbers => parts.try_for_each(|part| give(json!({ "numbers": state::numbers(&part?)? }))),
        }
    }
}

/// The fields that come into a stage.
fn input(stage: &Stage) -> Schema {
    match &stage.input {
        StageInput::Source { spec, .. } => spec.projected(),
        StageInput::Exchange { schema, .. } => schema.clone(),
    }
}

/// The fields that come into an operator.
fn before(stage: &Stage, name: &str) -> Option<Schema> {
    let mut schema = input(stage);
    for op in &stage.ops {
        let (node, after) = match op {
            StageOp::Program(program) => (&program.name, Some(&program.schema)),
            StageOp::AggregatePartial(spec) => (&spec.node, None),
            StageOp::AggregateFinal(spec) => (&spec.node, Some(&spec.output)),
            StageOp::Probe { node, output, .. } => (node, Some(output)),
            StageOp::Distinct { node, .. } | StageOp::Sort { node, .. } | StageOp::Take { node, .. } => (node, None),
        };
        if node == name {
            return Some(schema);
        }
        if let Some(after) = after {
            schema = after.clone();
        }
    }
    None
}

/// The aggregate of this name; before a stage that hasn't started its groups stand under the name of the stage's input.
fn spec<'s>(stage: &'s Stage, name: &str) -> Option<&'s AggregateSpec> {
    let specs = stage.ops.iter().filter_map(|op| match op {
        StageOp::AggregatePartial(spec) | StageOp::AggregateFinal(spec) => Some(spec),
        _ => None,
    });
    let specs: Vec<&AggregateSpec> = specs.collect();
    specs.iter().find(|spec| spec.node == name).or(specs.first()).copied()
}

/// The fields that a `distinct` compares.
fn keys(stage: &Stage, name: &str) -> Option<Schema> {
    let schema = before(stage, name)?;
    let keys = stage.ops.iter().find_map(|op| match op {
        StageOp::Distinct { node, keys, .. } if node == name => Some(keys),
        _ => None,
    })?;
    match keys.is_empty() {
        true => Some(schema),
        false => Some(Schema { fields: keys.iter().filter_map(|at| schema.fields.get(*at).cloned()).collect() }),
    }
}

fn groups(
    spec: &AggregateSpec,
    parts: impl Iterator<Item = Result<Vec<u8>, RunError>>,
    give: Give,
) -> Result<(), RunError> {
    // A later part changes groups of earlier ones.
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let table = state::groups(spec, &parts)?;
    drop(parts);
    let (keys, results) = spec.output.fields.split_at(spec.keys.len());
    for group in table.first()..table.len() {
        let (key, so_far) = table.entry(group);
        let key = named(keys, key.iter());
        let so_far: Map<String, Json> = results
            .iter()
            .zip(so_far)
            .map(|(field, value)| match value {
                Ok(value) => (field.name.clone(), shown(&value, &field.ty.ty)),
                Err(error) => (field.name.clone(), json!({ "error": error.message })),
            })
            .collect();
        give(json!({ "key": key, "so_far": so_far }))?;
    }
    Ok(())
}

fn seen(schema: &Schema, node: &str, part: &[u8], give: Give) -> Result<(), RunError> {
    let types: Vec<(DataType, _)> = schema.fields.iter().map(|field| (field.ty.clone(), Default::default())).collect();
    let keys = state::seen(part)?;
    if types.is_empty() {
        return keys.iter().try_for_each(|_| give(json!({})));
    }
    let decoder = RowKeys::new(Arc::from(node), &types)?;
    let keys: Vec<&[u8]> = keys.iter().collect();
    for some in keys.chunks(KEYS) {
        given(schema, &Batch::new(decoder.decode(some)?, some.len(), 0), &mut *give)?;
    }
    Ok(())
}

fn rows(schema: &Schema, part: &[u8], give: Give) -> Result<(), RunError> {
    state::rows(part, Some(schema.fields.len()))?.batches.iter().try_for_each(|batch| given(schema, batch, &mut *give))
}

/// Gives a batch's rows.
fn given(schema: &Schema, batch: &Batch, give: Give) -> Result<(), RunError> {
    let fit = |(field, column): (&Field, &arrow_array::ArrayRef)| *column.data_type() == arrow_type(&field.ty.ty);
    if !schema.fields.iter().zip(&batch.columns).all(fit) {
        return Err(RunError::State("saved rows have columns of other types than the pipeline".into()));
    }
    for row in 0..batch.rows {
        let values: Vec<Value> =
            schema.fields.iter().zip(&batch.columns).map(|(f, column)| value_at(column, &f.ty.ty, row)).collect();
        give(named(&schema.fields, values.iter()))?;
    }
    Ok(())
}

fn named<'v>(fields: &[Field], values: impl Iterator<Item = &'v Value<'v>>) -> Json {
    fields.iter().zip(values).map(|(f, value)| (f.name.clone(), shown(value, &f.ty.ty))).collect::<Map<_, _>>().into()
}

/// A value: numbers, truth and null as JSON has them, all else as the language writes it.
fn shown(value: &Value, ty: &Type) -> Json {
    match (value, ty) {
        (_, Type::Secret) => json!("(secret)"),
        (Value::Null, _) => Json::Null,
        (Value::Bool(v), _) => json!(v),
        (Value::Float(v), _) => json!(v),
        (Value::Int(v), _) if i64::try_from(*v).is_ok() => json!(*v as i64),
        (Value::List(items), Type::List(item)) => items.iter().map(|value| shown(value, &item.ty)).collect(),
        (value, ty) => json!(dfc_eval::format_value(value, ty)),
    }
}
