//! Random groups against a plain map, in one table and merged from several; every aggregate, with nulls and conditions.

use std::collections::{BTreeMap, BTreeSet};

use dfc_batch::{Batch, ColumnBuilder, value_at};
use dfc_eval::{Env, format_value};
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::IntType;
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Field, Schema, Site, Type, Value};
use dfc_table::GroupTable;

/// A generator of numbers: the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn optional(ty: Type) -> DataType {
    DataType::optional(ty)
}

/// The input: three keys, and a column of every sort that aggregates take.
fn inputs() -> Vec<DataType> {
    vec![
        optional(Type::String),
        optional(Type::INT32),
        DataType::of(Type::Float64),
        optional(Type::INT64),
        optional(Type::Int(IntType::U64)),
        optional(Type::Decimal(10, 2)),
        optional(Type::Decimal(38, 4)),
        optional(Type::Float64),
        optional(Type::Float32),
        optional(Type::String),
        optional(Type::Bool),
        optional(Type::Date),
        optional(Type::Duration),
        optional(Type::Bytes),
    ]
}

const KEYS: usize = 3;

fn random_value(random: &mut Random, column: usize, ty: &DataType) -> Value<'static> {
    if ty.nullable && random.below(4) == 0 {
        return Value::Null;
    }
    let small = random.below(40) as i128 - 20;
    match (&ty.ty, column) {
        (Type::String, 0) => Value::string(["", "a", "b", "a long text that no view holds"][random.below(4) as usize]),
        (Type::Int(_), 1) => Value::Int(random.below(3) as i128 - 1),
        (Type::Float64, 2) => Value::Float([0.0, -0.0, 1.5][random.below(3) as usize]),
        (Type::Int(int), _) => Value::Int(if int.signed() { small } else { small + (1 << 63) }),
        (Type::Decimal(..), _) => Value::Decimal(small * 1_001),
        (Type::Float64 | Type::Float32, _) => Value::Float(small as f64 / 4.0),
        (Type::String, _) => Value::string(format!("text {small}")),
        (Type::Bool, _) => Value::Bool(small > 15),
        (Type::Date, _) => Value::Date(small as i32),
        (Type::Duration, _) => Value::Duration(small as i64),
        (Type::Bytes, _) => Value::Bytes(vec![small as u8; random.below(3) as usize].into()),
        other => panic!("{other:?}"),
    }
}

/// The type of an aggregate over a column.
fn result_type(function: AggFunction, arg: Option<&DataType>) -> DataType {
    use AggFunction::*;
    let arg = arg.map_or(Type::Null, |arg| arg.ty.clone());
    match (function, arg) {
        (Count | CountDistinct | ApproxCountDistinct, _) => DataType::of(Type::INT64),
        (Collect, item) => DataType::of(Type::List(DataType::of(item).into())),
        (Stddev | Variance, _) => optional(Type::Float64),
        (Sum, Type::Int(_)) => optional(Type::Decimal(38, 0)),
        (Sum, Type::Decimal(_, s)) => optional(Type::Decimal(38, s)),
        (Avg, Type::Decimal(p, s)) => optional(Type::Decimal(38, s.max(12.min(38 - (p - s))))),
        (Median, Type::Decimal(p, s)) => optional(Type::Decimal((p + 1).min(38), if p < 38 { s + 1 } else { s })),
        (Sum, Type::Float32 | Type::Float64) | (Avg | Median, Type::Int(_) | Type::Float32 | Type::Float64) => {
            optional(Type::Float64)
        }
        (_, arg) => optional(arg),
    }
}

fn aggregate(function: AggFunction, column: Option<usize>, conditional: bool) -> Aggregate {
    let types = inputs();
    let mut args: Vec<Expr> = column.map(|c| Expr::column(c, types[c].clone())).into_iter().collect();
    if function == AggFunction::StringAgg {
        args.push(Expr::literal(Value::str("; "), DataType::of(Type::String)));
    }
    // Only rows whose third key is above 1.
    let condition = Expr {
        kind: ExprKind::Binary(
            BinaryOp::Gt,
            Expr::column(2, types[2].clone()).into(),
            Expr::literal(Value::Float(1.0), DataType::of(Type::Float64)).into(),
        ),
        ty: DataType::of(Type::Bool),
        site: Site(1),
    };
    let ty = result_type(function, column.map(|c| &types[c]));
    Aggregate { function, args, filter: conditional.then_some(condition), ty, site: Site(2) }
}

/// Every function over every column that it takes.
fn all_aggregates() -> Vec<Aggregate> {
    use AggFunction::*;
    let types = inputs();
    let mut all = vec![aggregate(Count, None, false), aggregate(Count, None, true)];
    for (function, _) in AggFunction::ALL {
        for (column, ty) in types.iter().enumerate().skip(KEYS) {
            let takes = match function {
                Sum | Avg => ty.ty.is_numeric() || ty.ty == Type::Duration,
                Stddev | Variance | Median => ty.ty.is_numeric(),
                StringAgg => ty.ty == Type::String,
                BoolAnd | BoolOr => ty.ty == Type::Bool,
                _ => true,
            };
            if takes {
                all.push(aggregate(function, Some(column), column % 2 == 0));
            }
        }
    }
    all
}

fn spec(keys: usize, aggregates: Vec<Aggregate>) -> AggregateSpec {
    let types = inputs();
    let mut fields: Vec<Field> = (0..keys).map(|k| Field::new(format!("k{k}"), types[k].clone())).collect();
    fields.extend(aggregates.iter().enumerate().map(|(i, a)| Field::new(format!("a{i}"), a.ty.clone())));
    AggregateSpec {
        node: "test".into(),
        keys: (0..keys).map(|k| Expr::column(k, types[k].clone())).collect(),
        inputs: types,
        aggregates,
        output: Schema { fields },
    }
}

type Rows = Vec<Vec<Value<'static>>>;

fn random_rows(random: &mut Random, count: usize) -> Rows {
    let types = inputs();
    let row = |random: &mut Random| types.iter().enumerate().map(|(c, ty)| random_value(random, c, ty)).collect();
    (0..count).map(|_| row(random)).collect()
}

fn batch(rows: &[Vec<Value<'static>>], seq: u64) -> Batch {
    let columns = inputs().into_iter().enumerate().map(|(c, ty)| {
        let mut builder = ColumnBuilder::new(&ty, rows.len());
        rows.iter().for_each(|row| builder.push(&row[c]));
        builder.finish()
    });
    Batch::new(columns.collect(), rows.len(), seq)
}

/// A key as text: equal keys have equal texts.
fn key_text(values: &[Value], types: &[DataType]) -> String {
    let part = |(value, ty): (&Value, &DataType)| match value {
        Value::Null => "null".to_string(),
        Value::Float(x) if *x == 0.0 => "zero".to_string(),
        value => format!("{:?}", format_value(value, &ty.ty)),
    };
    values.iter().zip(types).map(part).collect::<Vec<_>>().join("|")
}

/// The result of an aggregate over rows, the plain way.
fn oracle(aggregate: &Aggregate, rows: &[&Vec<Value<'static>>]) -> Value<'static> {
    use AggFunction::*;
    let rows: Vec<_> =
        rows.iter().filter(|row| aggregate.filter.is_none() || matches!(row[2], Value::Float(x) if x > 1.0)).collect();
    let Some(ExprKind::Column(column)) = aggregate.args.first().map(|arg| arg.kind.clone()) else {
        return Value::Int(rows.len() as i128);
    };
    let ty = &inputs()[column].ty;
    let values: Vec<Value> = rows.iter().map(|row| row[column].clone()).filter(|value| !value.is_null()).collect();
    let scale = |ty: &Type| if let Type::Decimal(_, s) = ty { i32::from(*s) } else { 0 };
    let whole = |value: &Value| match value {
        Value::Int(n) | Value::Decimal(n) => *n,
        Value::Duration(n) => i128::from(*n),
        other => panic!("{other:?}"),
    };
    let float = |value: &Value| match value {
        Value::Float(x) => *x,
        other => whole(other) as f64 / 10f64.powi(scale(ty)),
    };
    let sum_float = || values.iter().map(float).sum::<f64>();
    let sum = || values.iter().map(whole).sum::<i128>();
    let sorted = || {
        let mut sorted = values.clone();
        sorted.sort_by(|a, b| dfc_eval::compare(a, b).unwrap());
        sorted
    };
    match function_over(aggregate.function, values.is_empty()) {
        None => Value::Null,
        Some(Count) => Value::Int(values.len() as i128),
        Some(CountDistinct | ApproxCountDistinct) => {
            Value::Int(values.iter().map(|value| format_value(value, ty)).collect::<BTreeSet<_>>().len() as i128)
        }
        Some(Sum) => match &aggregate.ty.ty {
            Type::Float64 => Value::Float(sum_float()),
            Type::Duration => Value::Duration(sum() as i64),
            _ => Value::Decimal(sum()),
        },
        Some(Avg) => match &aggregate.ty.ty {
            Type::Float64 => Value::Float(sum_float() / values.len() as f64),
            other => {
                let (top, count) = (sum() * 10i128.pow((scale(other) - scale(ty)) as u32), values.len() as i128);
                let half_away = (2 * top.abs() + count) / (2 * count) * top.signum();
                if *other == Type::Duration { Value::Duration(half_away as i64) } else { Value::Decimal(half_away) }
            }
        },
        Some(Min | BoolAnd) => sorted().first().unwrap().clone(),
        Some(Max | BoolOr) => sorted().last().unwrap().clone(),
        Some(First | AnyValue) => values.first().unwrap().clone(),
        Some(Last) => values.last().unwrap().clone(),
        Some(function @ (Stddev | Variance)) => {
            let mean = sum_float() / values.len() as f64;
            let variance = values.iter().map(|v| (float(v) - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0);
            match values.len() {
                1 => Value::Null,
                _ => Value::Float(if function == Stddev { variance.sqrt() } else { variance }),
            }
        }
        Some(Median) => {
            let sorted = sorted();
            let (low, high) = (&sorted[(sorted.len() - 1) / 2], &sorted[sorted.len() / 2]);
            match &aggregate.ty.ty {
                Type::Decimal(38, _) => {
                    let twice = whole(low) + whole(high);
                    Value::Decimal((twice + twice.signum()) / 2)
                }
                Type::Decimal(..) => Value::Decimal((whole(low) + whole(high)) * 5),
                _ => Value::Float((float(low) + float(high)) / 2.0),
            }
        }
        Some(Collect) => Value::List(values),
        Some(StringAgg) => {
            Value::string(values.iter().map(|value| value.as_str().unwrap()).collect::<Vec<_>>().join("; "))
        }
    }
}

/// The function, unless it has no value over no values.
fn function_over(function: AggFunction, empty: bool) -> Option<AggFunction> {
    use AggFunction::*;
    (!empty || matches!(function, Count | CountDistinct | ApproxCountDistinct | Collect)).then_some(function)
}

/// Results by key.
fn results(spec: &AggregateSpec, batches: &[Batch], into: &mut BTreeMap<String, Vec<Value<'static>>>) {
    let types = spec.output.types();
    for batch in batches {
        for row in 0..batch.rows {
            let values: Vec<_> = batch
                .columns
                .iter()
                .zip(&types)
                .map(|(column, ty)| value_at(column.as_ref(), &ty.ty, row).into_owned())
                .collect();
            let key = key_text(&values[..spec.keys.len()], &types);
            assert!(into.insert(key, values[spec.keys.len()..].to_vec()).is_none(), "a group twice");
        }
    }
}

#[track_caller]
fn same(left: &Value, right: &Value, what: &str) {
    match (left, right) {
        (Value::Float(a), Value::Float(b)) => assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{what}: {a} {b}"),
        _ => assert_eq!(left, right, "{what}"),
    }
}

fn check(keys: usize, rows: &Rows, tasks: usize, parts: usize, batch_rows: usize) {
    let spec = spec(keys, all_aggregates());
    let types = inputs();
    let mut groups: BTreeMap<String, Vec<&Vec<Value>>> = BTreeMap::new();
    for row in rows {
        groups.entry(key_text(&row[..keys], &types)).or_default().push(row);
    }
    if keys == 0 {
        groups.entry(String::new()).or_default();
    }

    // Batches go to the tasks in turn; the last task sees them backwards.
    let mut partial: Vec<GroupTable> = (0..tasks).map(|_| GroupTable::new(&spec)).collect();
    let batches: Vec<Batch> = rows.chunks(batch_rows).zip(0..).map(|(rows, seq)| batch(rows, seq)).collect();
    for (task, table) in partial.iter_mut().enumerate() {
        let mut mine: Vec<&Batch> = batches.iter().skip(task).step_by(tasks).collect();
        if task + 1 == tasks && tasks > 1 {
            mine.reverse();
        }
        for batch in mine {
            let mut fails = |row, error| panic!("row {row}: {error:?}");
            table.update_batch(batch, &spec, &Env::default(), &mut fails);
        }
    }
    let mut found = BTreeMap::new();
    for part in 0..parts {
        let mut table = GroupTable::new(&spec);
        for other in &partial {
            table.merge_partition(other, part, parts).unwrap();
        }
        let batches = (0..table.len()).step_by(7).map(|first| first..table.len().min(first + 7));
        let batches: Vec<Batch> = batches.map(|groups| table.results(&spec, groups).unwrap()).collect();
        results(&spec, &batches, &mut found);
    }

    assert_eq!(found.keys().collect::<Vec<_>>(), groups.keys().collect::<Vec<_>>());
    for (key, rows) in &groups {
        for (aggregate, value) in spec.aggregates.iter().zip(&found[key]) {
            let what = format!("{} of {:?} in {key}", aggregate.function.name(), aggregate.args.first());
            match (aggregate.function, value, oracle(aggregate, rows)) {
                (AggFunction::ApproxCountDistinct, Value::Int(n), Value::Int(exact)) => {
                    assert!((n - exact).abs() <= (exact / 20).max(1), "{what}: {n} {exact}");
                }
                (_, value, expected) => same(value, &expected, &what),
            }
        }
    }
}

#[test]
fn groups_equal_a_plain_map() {
    let mut random = Random(1);
    for (count, tasks, parts, batch_rows) in
        [(1, 1, 1, 1), (50, 1, 1, 8), (400, 2, 3, 16), (400, 3, 2, 7), (900, 4, 1, 64)]
    {
        let rows = random_rows(&mut random, count);
        for keys in 1..=KEYS {
            check(keys, &rows, tasks, parts, batch_rows);
        }
        check(0, &rows, tasks, 1, batch_rows);
    }
}

#[test]
fn over_no_rows_there_is_one_row_without_keys_and_none_with() {
    check(0, &Vec::new(), 1, 1, 1);
    check(2, &Vec::new(), 2, 2, 1);
}

#[test]
fn many_groups_grow_the_table() {
    let key = |n: i128| vec![Value::Int(n)];
    let mut aggregates = spec(0, vec![aggregate(AggFunction::Count, None, false)]);
    aggregates.inputs = vec![DataType::of(Type::INT64)];
    aggregates.keys = vec![Expr::column(0, DataType::of(Type::INT64))];
    aggregates.output.fields.insert(0, Field::new("k", DataType::of(Type::INT64)));
    let mut table = GroupTable::new(&aggregates);
    let mut bytes = Vec::new();
    for n in 0..300_000 {
        table.key_layout().encode_key(&key(n % 100_000), &mut bytes);
        let group = table.group(&bytes, dfc_table::hash_key(&bytes));
        assert_eq!(group.0 as i128, n % 100_000, "groups are numbered as they come");
        table.update(group, 0, &[], 0).unwrap();
    }
    assert_eq!(table.len(), 100_000);
    assert!(table.memory_bytes() > 100_000 * 16 && table.row_bytes() >= 16);
    let batch = table.results(&aggregates, 8_192..16_384).unwrap();
    assert_eq!(batch.rows, 8_192);
    let row = |row| batch.columns.iter().map(|c| value_at(c.as_ref(), &Type::INT64, row)).collect::<Vec<_>>();
    assert_eq!(row(5), [Value::Int(8_197), Value::Int(3)]);
}

#[test]
fn rows_without_a_key_or_an_argument_are_reported_and_count_nowhere() {
    let types = inputs();
    let int = |n| Expr::literal(Value::Int(n), DataType::of(Type::INT64));
    let mut failing = aggregate(AggFunction::Sum, Some(3), false);
    failing.args[0] = Expr {
        kind: ExprKind::Binary(BinaryOp::IntDiv, int(6).into(), Expr::column(3, types[3].clone()).into()),
        ty: types[3].clone(),
        site: Site(9),
    };
    failing.ty = optional(Type::INT64);
    let spec = spec(0, vec![aggregate(AggFunction::Count, None, false), failing]);
    let mut rows = random_rows(&mut Random(3), 3);
    for (row, n) in rows.iter_mut().zip([2, 0, 3]) {
        row[3] = Value::Int(n);
    }
    let (mut table, mut errors) = (GroupTable::new(&spec), Vec::new());
    table.update_batch(&batch(&rows, 0), &spec, &Env::default(), &mut |row, error| {
        errors.push((row, error.code, error.site));
    });
    assert_eq!(errors, [(1, "R0102", Site(9))]);
    let result = table.results(&spec, 0..1).unwrap();
    assert_eq!(value_at(result.columns[0].as_ref(), &Type::INT64, 0), Value::Int(2));
    assert_eq!(value_at(result.columns[1].as_ref(), &Type::INT64, 0), Value::Int(5));
}

#[test]
fn results_that_do_not_fit_are_errors() {
    let run = |aggregate: Aggregate, values: &[Value]| {
        let spec = spec(0, vec![aggregate]);
        let mut table = GroupTable::new(&spec);
        let group = table.group(&[], dfc_table::hash_key(&[]));
        for (value, ordinal) in values.iter().zip(0..) {
            table.update(group, 0, std::slice::from_ref(value), ordinal)?;
        }
        table
            .results(&spec, 0..1)
            .map(|batch| value_at(batch.columns[0].as_ref(), &spec.output.fields[0].ty.ty, 0).into_owned())
    };
    let with_type = |function, column, ty| Aggregate { ty, ..aggregate(function, Some(column), false) };
    let sum = || with_type(AggFunction::Sum, 3, optional(Type::INT64));
    let most = Value::Int(i64::MAX.into());
    // What passes the type on the way and comes back is no error: the order of the rows doesn't matter.
    assert_eq!(run(sum(), &[most.clone(), Value::Int(5), Value::Int(-5)]), Ok(most.clone()));
    let error = run(sum(), &[most.clone(), Value::Int(1)]).unwrap_err();
    assert_eq!((error.code, error.site), ("R0101", Site(2)));

    let large = Value::Decimal(10i128.pow(38) - 1);
    let decimals = || aggregate(AggFunction::Sum, Some(6), false);
    assert_eq!(run(decimals(), &[large.clone(), large.clone()]).unwrap_err().code, "R0101");
    let small = Value::Decimal(5);
    assert_eq!(run(decimals(), &[large.clone(), small]).unwrap_err().code, "R0101");
    assert_eq!(run(aggregate(AggFunction::Median, Some(6), false), &[large.clone(), large.clone()]), Ok(large));

    let float = aggregate(AggFunction::Sum, Some(7), false);
    assert_eq!(run(float, &[Value::Float(f64::MAX), Value::Float(f64::MAX)]).unwrap_err().code, "R0101");
    let never_null = with_type(AggFunction::Min, 3, DataType::of(Type::INT64));
    assert_eq!(run(never_null, &[Value::Null]).unwrap_err().code, "R0104");
    // 0.01 / 3 and 0.02 / 3 at 12 places.
    let mean = aggregate(AggFunction::Avg, Some(5), false);
    let cents = |last| [Value::Decimal(0), Value::Decimal(0), Value::Decimal(last)];
    assert_eq!(run(mean.clone(), &cents(1)), Ok(Value::Decimal(3_333_333_333)));
    assert_eq!(run(mean, &cents(-2)), Ok(Value::Decimal(-6_666_666_667)));
}
