//! Plans, tables and random rows for the tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use dfc_batch::{Batch, ColumnBuilder, Locate, Origin, Place, value_at};
use dfc_engine::{MemoryConnectors, RunError, RunOptions, Silent, Summary, run_with};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{Job, SinkSpec, SortKey, SourceSpec};
use dfc_ir::stage::{Partition, Program, Stage, StageInput, StageOp, StageOutput, Step};
use dfc_ir::{DataType, Expr, ExprKind, Field, Schema, Site, StagePlan, Type, Value};

/// A row.
pub type Row = Vec<Value<'static>>;

/// A small random number generator (splitmix64), the same in every run.
pub struct Rng(pub u64);

impl Rng {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    /// A number below `n`, or null about every eighth time.
    pub fn int(&mut self, n: u64) -> Value<'static> {
        if self.below(8) == 0 { Value::Null } else { Value::Int(self.below(n) as i128) }
    }

    /// A short or long text, or null about every eighth time.
    pub fn text(&mut self, n: u64) -> Value<'static> {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::string(format!("a rather longer text, number {}", self.below(n))),
            _ => Value::string(format!("t{}", self.below(n))),
        }
    }
}

/// `k: int64?, s: string?, n: int64` where n counts the rows.
pub fn left_schema() -> Schema {
    schema(&[("k", int().with_nullable(true)), ("s", text()), ("n", int())])
}

/// Random rows of [`left_schema`].
pub fn left_rows(rng: &mut Rng, count: usize, keys: u64) -> Vec<Row> {
    (0..count).map(|n| vec![rng.int(keys), rng.text(keys), Value::Int(n as i128)]).collect()
}

pub fn int() -> DataType {
    DataType::of(Type::INT64)
}

pub fn text() -> DataType {
    DataType::optional(Type::String)
}

pub fn schema(fields: &[(&str, DataType)]) -> Schema {
    Schema { fields: fields.iter().map(|(name, ty)| Field::new(*name, ty.clone())).collect() }
}

/// Where test rows come from: row k of batch b is "line" 1000 b + k.
struct Lines(u64);

impl Locate for Lines {
    fn place(&self, row: usize) -> Place {
        let line = self.0 * 1000 + row as u64;
        Place { source: "memory".into(), line: Some(line), offset: Some(10 * line), row: None }
    }

    fn raw(&self, row: usize) -> Option<String> {
        Some(format!("raw {}", self.0 * 1000 + row as u64))
    }
}

/// Rows as batches of random sizes below `most`, with origins.
pub fn batches(schema: &Schema, rows: &[Row], rng: &mut Rng, most: u64) -> Vec<Batch> {
    let mut out = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() || out.is_empty() {
        let size = (rng.below(most) as usize).min(rest.len());
        let (these, after) = rest.split_at(size);
        let seq = out.len() as u64;
        let mut batch = batch(schema, these);
        batch.seq = seq;
        batch.origin = Some(Origin { locate: Arc::new(Lines(seq)), rows: None });
        out.push(batch);
        rest = after;
    }
    out
}

pub fn batch(schema: &Schema, rows: &[Row]) -> Batch {
    let column = |(k, field): (usize, &Field)| {
        let mut builder = ColumnBuilder::new(&field.ty, rows.len());
        rows.iter().for_each(|row| builder.push(&row[k]));
        builder.finish()
    };
    Batch::new(schema.fields.iter().enumerate().map(column).collect(), rows.len(), 0)
}

/// All rows of some batches.
pub fn rows(schema: &Schema, batches: &[Batch]) -> Vec<Row> {
    let row = |batch: &Batch, row: usize| -> Row {
        assert_eq!(batch.columns.len(), schema.len());
        let value = |(column, field): (&arrow_array::ArrayRef, &Field)| {
            value_at(column.as_ref(), &field.ty.ty, row).into_owned()
        };
        batch.columns.iter().zip(&schema.fields).map(value).collect()
    };
    batches.iter().flat_map(|batch| (0..batch.rows).map(|k| row(batch, k)).collect::<Vec<_>>()).collect()
}

/// A column of a schema.
pub fn col(schema: &Schema, index: usize) -> Expr {
    Expr::column(index, schema.fields[index].ty.clone())
}

pub fn lit(n: i64) -> Expr {
    Expr::literal(Value::Int(n.into()), int())
}

pub fn binary(op: BinaryOp, a: Expr, b: Expr, ty: Type) -> Expr {
    let nullable = a.ty.nullable || b.ty.nullable;
    let ty = DataType { ty, nullable };
    Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), ty, site: Site::default() }
}

pub fn key(expr: Expr, descending: bool, nulls_first: bool) -> SortKey {
    SortKey { expr, descending, nulls_first }
}

pub fn source(name: &str, schema: &Schema) -> StageInput {
    let spec = SourceSpec {
        connector: name.into(),
        options: BTreeMap::new(),
        schema: schema.clone(),
        projection: (0..schema.len()).collect(),
    };
    StageInput::Source { node: name.into(), spec, site: Site::default() }
}

pub fn from(id: usize, schema: &Schema) -> StageInput {
    StageInput::Exchange { id, schema: schema.clone() }
}

pub fn sink(name: &str) -> StageOutput {
    let spec = SinkSpec { connector: name.into(), options: BTreeMap::new() };
    StageOutput::Sink { node: name.into(), spec, site: Site::default() }
}

pub fn to(id: usize, partition: Partition) -> StageOutput {
    StageOutput::Exchange { id, partition }
}

pub fn stage(name: &str, input: StageInput, ops: Vec<StageOp>, output: StageOutput, schema: &Schema) -> Stage {
    let (max_tasks, ordered) = (None, true);
    Stage { name: name.into(), input, ops, outputs: vec![output], max_tasks, ordered, schema: schema.clone() }
}

pub fn plan(stages: Vec<Stage>, exchanges: usize, tables: usize) -> StagePlan {
    StagePlan { job: Job { name: "test".into(), ..Job::default() }, stages, exchanges, tables, sites: Vec::new() }
}

/// A program that passes all columns on after some steps.
pub fn steps(name: &str, schema: &Schema, steps: Vec<Step>) -> StageOp {
    StageOp::Program(Program {
        name: name.into(),
        inputs: schema.types(),
        steps,
        outputs: (0..schema.len()).map(|k| col(schema, k)).collect(),
        schema: schema.clone(),
    })
}

pub fn options(parallelism: usize) -> RunOptions {
    // Groups are handed on early, so that it happens with few rows too.
    RunOptions { parallelism, threads: 3, groups_at_once: 16, ..RunOptions::default() }
}

/// Runs a plan over tables in memory.
pub fn run(tables: &MemoryConnectors, plan: &StagePlan, parallelism: usize) -> Result<Summary, RunError> {
    run_with(tables, plan, options(parallelism), Arc::new(Silent))
}

/// Runs a plan that has a source `in` and a sink `out`: the rows that come out.
pub fn through(plan: &StagePlan, input: Vec<Batch>, output: &Schema, parallelism: usize) -> Vec<Row> {
    let tables = MemoryConnectors::default();
    tables.put("in", input);
    run(&tables, plan, parallelism).unwrap_or_else(|e| panic!("{e}"));
    rows(output, &tables.get("out").expect("the sink has finished"))
}

/// Rows as text in a fixed order, to compare where any order will do.
pub fn sorted(rows: Vec<Row>) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort_unstable();
    rows
}
