//! Joins against nested loops, for keys of every form.

use arrow_array::ArrayRef;
use dfc_batch::{Batch, ColumnBuilder, value_at};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Type, Value};
use dfc_table::JoinTable;

/// A generator of numbers: the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn random_value(random: &mut Random, ty: &DataType) -> Value<'static> {
    let n = random.below(9) as i128;
    if ty.nullable && n == 0 {
        return Value::Null;
    }
    match &ty.ty {
        Type::Bool => Value::Bool(n > 4),
        Type::Int(IntType::U64) => Value::Int(n << 60),
        Type::Int(int) => Value::Int(if int.signed() { n - 4 } else { n }),
        Type::Float64 => Value::Float([0.0, -0.0, 1.5][n as usize % 3]),
        Type::Decimal(..) => Value::Decimal((n - 4) * 1_000),
        Type::String => Value::string("a text that grows ".repeat(n as usize / 3)),
        Type::Bytes => Value::Bytes(vec![0; n as usize].into()),
        Type::Date => Value::Date(n as i32),
        Type::Timestamp => Value::Timestamp(n as i64 - 5),
        Type::List(item) => Value::List((0..n / 3).map(|_| random_value(random, item)).collect()),
        other => panic!("{other}"),
    }
}

fn column(ty: &DataType, values: &[Value]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(ty, values.len());
    values.iter().for_each(|value| builder.push(value));
    builder.finish()
}

/// Rows by column.
fn random_columns(random: &mut Random, types: &[DataType], rows: usize) -> Vec<Vec<Value<'static>>> {
    types.iter().map(|ty| (0..rows).map(|_| random_value(random, ty)).collect()).collect()
}

fn check(left_types: &[Type], random: &mut Random, left_rows: usize, parts: &[usize]) {
    let right_types: Vec<DataType> = left_types.iter().cloned().map(DataType::optional).collect();
    // The left side may have no null at all.
    let left_types: Vec<DataType> =
        left_types.iter().map(|ty| DataType { ty: ty.clone(), nullable: left_rows.is_multiple_of(2) }).collect();
    let left = random_columns(random, &left_types, left_rows);
    let payload = DataType::of(Type::INT64);
    let (mut right, mut built) = (vec![Vec::new(); right_types.len()], Vec::new());
    for &rows in parts {
        let keys = random_columns(random, &right_types, rows);
        let first = right.first().map_or(0, Vec::len) as i128;
        let numbers: Vec<Value> = (0..rows as i128).map(|n| Value::Int(first + n)).collect();
        // A slice, whose first value isn't its buffer's.
        let arrays = keys.iter().zip(&right_types).map(|(values, ty)| {
            column(ty, &[&values[..values.len().min(1)], values].concat()).slice(rows.min(1), rows)
        });
        built.push((Batch::new(vec![column(&payload, &numbers)], rows, 0), arrays.collect()));
        right.iter_mut().zip(keys).for_each(|(all, keys)| all.extend(keys));
    }
    let count: usize = parts.iter().sum();
    let table = JoinTable::build(&[payload], &right_types, built).unwrap();
    assert_eq!(table.rows(), count);

    let mut expected = (Vec::new(), Vec::new());
    for l in 0..left_rows {
        for r in 0..count {
            if left.iter().zip(&right).all(|(left, right)| !left[l].is_null() && left[l] == right[r]) {
                expected.0.push(l as u32);
                expected.1.push(r as u32);
            }
        }
    }
    let keys: Vec<ArrayRef> = left.iter().zip(&left_types).map(|(values, ty)| column(ty, values)).collect();
    let found = table.probe(&keys, left_rows);
    assert_eq!(found, expected, "{left_types:?}");

    let numbered = |row: &u32| value_at(table.columns()[0].as_ref(), &Type::INT64, *row as usize);
    if !right.is_empty() {
        assert!(found.1.iter().all(|row| numbered(row) == Value::Int((*row).into())));
    }
    table.mark(&found.1);
    let unmarked: Vec<u32> = (0..count as u32).filter(|row| !expected.1.contains(row)).collect();
    assert_eq!(table.unmarked(), unmarked);
}

#[test]
fn joins_equal_nested_loops() {
    let mut random = Random(5);
    let list = Type::List(Box::new(DataType::of(Type::INT32)));
    let mut keys: Vec<Vec<Type>> = IntType::ALL.into_iter().map(|int| vec![Type::Int(int)]).collect();
    keys.extend([
        vec![],
        vec![Type::Bool],
        vec![Type::Float64],
        vec![Type::Decimal(18, 2)],
        vec![Type::Decimal(38, 2)],
        vec![Type::String],
        vec![Type::Bytes],
        vec![Type::Date],
        vec![Type::Timestamp],
        vec![list],
        vec![Type::INT64, Type::INT32],
        vec![Type::String, Type::Date],
        vec![Type::Bytes, Type::String, Type::Float64],
    ]);
    for types in keys {
        for (left_rows, parts) in [(0, &[][..]), (5, &[]), (4, &[0]), (7, &[1]), (40, &[13, 0, 30]), (61, &[64, 1])] {
            check(&types, &mut random, left_rows, parts);
        }
    }
}

#[test]
fn large_tables_find_every_row() {
    let ty = DataType::of(Type::INT64);
    let values: Vec<Value> = (0..100_000).map(|n| Value::Int(n << 20)).collect();
    let keys = column(&ty, &values);
    let table = JoinTable::build(
        &[],
        std::slice::from_ref(&ty),
        vec![(Batch::new(vec![], values.len(), 0), vec![keys.clone()])],
    )
    .unwrap();
    let (left, right) = table.probe(&[keys], values.len());
    assert_eq!((left.len(), left == right), (100_000, true));
}
