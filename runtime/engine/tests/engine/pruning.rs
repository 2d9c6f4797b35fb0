//! Parquet files of which parts are left unread: the rows that come out are those of the conditions, whatever the file says of its values.

use std::collections::BTreeMap;
use std::sync::Arc;

use dfc_connect::{ConnectError, OpenContext, RowFilter, Sink, Source};
use dfc_engine::{Builtin, ConnectorSet, MemoryConnectors, Silent, run_with};
use dfc_eval::{Env, eval};
use dfc_ir::expr::{BinaryOp, UnaryOp};
use dfc_ir::plan::{OptionValue, SinkSpec, SourceSpec};
use dfc_ir::stage::{StageInput, StageOutput, Step};
use dfc_ir::{DataType, Expr, ExprKind, Schema, Site, Type, Value};

use crate::support::*;

/// Parquet files, and tables in memory.
#[derive(Clone, Default)]
struct Both {
    memory: MemoryConnectors,
    /// Sources aren't told what bounds may exclude.
    boundless: bool,
    /// Sources are told no conditions.
    unasked: bool,
}

impl ConnectorSet for Both {
    fn open_source(&self, spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
        let mut cx = cx.clone();
        if let Some(RowFilter(conditions)) = &mut cx.filter
            && self.boundless
        {
            conditions.iter_mut().for_each(|condition| condition.possible = None);
        }
        cx.filter = cx.filter.filter(|_| !self.unasked);
        if spec.connector == "parquet" { Builtin.open_source(spec, &cx) } else { self.memory.open_source(spec, &cx) }
    }

    fn open_sink(&self, spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
        match spec.connector == "parquet" {
            true => Builtin.open_sink(spec, schema, cx),
            false => self.memory.open_sink(spec, schema, cx),
        }
    }
}

fn fields() -> Schema {
    let optional = DataType::optional;
    schema(&[
        ("i", int()),
        ("n", optional(Type::INT32)),
        ("s", text()),
        ("d", DataType::of(Type::Date)),
        ("m", optional(Type::Decimal(12, 2))),
        ("w", DataType::of(Type::Decimal(30, 3))),
        ("t", optional(Type::Timestamp)),
        ("b", optional(Type::Bool)),
        ("f", DataType::of(Type::Float64)),
        ("last", int()),
    ])
}

/// A value near others of its time.
fn value(ty: &DataType, time: i128, rng: &mut Rng) -> Value<'static> {
    let n = time * 20 + rng.below(30) as i128;
    if ty.nullable && (time % 7 == 3 || rng.below(20) == 0) {
        return Value::Null;
    }
    match &ty.ty {
        Type::Int(_) => Value::Int(n),
        Type::String => {
            Value::string(format!("{n:06} {}", "a text longer than sixty-four bytes ".repeat(rng.below(3) as usize)))
        }
        Type::Date => Value::Date(n as i32),
        Type::Decimal(..) => Value::Decimal(n * 100 - 5000),
        Type::Timestamp => Value::Timestamp(n as i64 * 1_000_000),
        Type::Bool => Value::Bool(time % 5 > 2),
        _ => Value::Float(n as f64 / 4.0),
    }
}

fn condition(rng: &mut Rng, fields: &Schema, times: u64, depth: u64) -> Expr {
    let of = |kind, nullable| Expr { kind, ty: DataType { ty: Type::Bool, nullable }, site: Site::default() };
    let column = rng.below(fields.len() as u64 - 1) as usize;
    let ty = &fields.fields[column].ty;
    let literal = |rng: &mut Rng| {
        let ty = ty.with_nullable(false);
        let time = rng.below(times) as i128;
        Expr::literal(value(&ty, time, rng), ty)
    };
    let ops = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
    let op = ops[rng.below(6) as usize];
    let deeper = |rng: &mut Rng| Box::new(condition(rng, fields, times, depth - 1));
    match rng.below(if depth > 0 { 9 } else { 5 }) {
        0 => of(ExprKind::IsNull(Box::new(col(fields, column))), false),
        1 if ty.ty != Type::Float64 => {
            let mut items: Vec<Value> = Vec::new();
            for _ in 0..1 + rng.below(4) {
                let ExprKind::Literal(item) = literal(rng).kind else { continue };
                items.push(item);
            }
            items.sort_by(|a, b| dfc_eval::compare(a, b).unwrap());
            items.dedup();
            of(ExprKind::InList(Box::new(col(fields, column)), items), ty.nullable)
        }
        2 => binary(op, literal(rng), col(fields, column), Type::Bool),
        1..=4 => binary(op, col(fields, column), literal(rng), Type::Bool),
        5 => {
            let x = deeper(rng);
            let nullable = x.ty.nullable;
            of(ExprKind::Unary(UnaryOp::Not, x), nullable)
        }
        6 => {
            let (a, b) = (deeper(rng), deeper(rng));
            binary(BinaryOp::Or, *a, *b, Type::Bool)
        }
        7 => {
            let x = deeper(rng);
            of(
                ExprKind::Coalesce(vec![*x, Expr::literal(Value::Bool(rng.below(2) == 0), DataType::of(Type::Bool))]),
                false,
            )
        }
        _ => {
            let (a, b) = (deeper(rng), deeper(rng));
            binary(BinaryOp::And, *a, *b, Type::Bool)
        }
    }
}

#[test]
fn conditions_on_a_file_give_the_same_rows_however_much_of_it_is_left_unread() {
    let folder = tempfile::tempdir().unwrap();
    let fields = fields();
    let mut rng = Rng(77);
    let mut skipped = 0;
    for file in 0..8 {
        let count = 2000 + rng.below(40_000) as usize;
        let times = count as u64 / 500 + 1;
        let row = |row: usize, rng: &mut Rng| -> Row {
            fields.fields.iter().map(|field| value(&field.ty, row as i128 / 500, rng)).collect()
        };
        let table: Vec<Row> = (0..count).map(|k| row(k, &mut rng)).collect();
        let path = folder.path().join(format!("{file}.parquet"));
        let path = OptionValue::Value(Value::string(path.to_str().unwrap()));
        let group = OptionValue::Value(Value::Int(200 + rng.below(20_000) as i128));
        let spec = SinkSpec {
            connector: "parquet".into(),
            options: BTreeMap::from([("path".to_owned(), path.clone()), ("row_group_rows".to_owned(), group)]),
        };
        let to_file = StageOutput::Sink { node: "file".into(), spec, site: Site::default() };
        let connectors = Both::default();
        connectors.memory.put("in", batches(&fields, &table, &mut rng, 9000));
        let writes = plan(vec![stage("write", source("in", &fields), vec![], to_file, &fields)], 0, 0);
        run_with(&connectors, &writes, options(2), Arc::new(Silent)).unwrap();
        for k in 0..12 {
            let condition = condition(&mut rng, &fields, times, k % 3);
            let spec = SourceSpec {
                connector: "parquet".into(),
                options: BTreeMap::from([("path".to_owned(), path.clone())]),
                schema: fields.clone(),
                projection: (0..fields.len()).collect(),
            };
            let input = StageInput::Source { node: "file".into(), spec, site: Site::default() };
            let filter = steps("filter", &fields, vec![Step::Filter(condition.clone())]);
            let reads = plan(vec![stage("read", input, vec![filter], sink("out"), &fields)], 0, 0);
            let passes = |row: &&Row| eval(&condition, *row, &Env::default()).unwrap() == Value::Bool(true);
            let expected: Vec<Row> = table.iter().filter(passes).cloned().collect();
            for (boundless, unasked) in [(false, false), (true, false), (false, true)] {
                let connectors = Both { memory: MemoryConnectors::default(), boundless, unasked };
                let summary = run_with(&connectors, &reads, options(2), Arc::new(Silent)).unwrap();
                let found = rows(&fields, &connectors.memory.get("out").unwrap());
                assert!(found == expected, "{} rows for {} of {condition:?}", found.len(), expected.len());
                assert_eq!(summary.rows_in, count as u64, "rows that are passed over count as read");
                let said = summary.operators[0].note.is_some();
                assert!(!said || (!boundless && !unasked));
                skipped += usize::from(said);
            }
        }
    }
    assert!(skipped > 15, "{skipped} of 96 runs left something unread");
}
