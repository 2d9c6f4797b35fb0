//! Values go into arrays and come out again unchanged, for every type; rows are selected and joined.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use dfc_batch::{Batch, ColumnBuilder, Locate, Origin, Place, arrow_schema, arrow_type, concat, select, value_at};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Schema, Type, Value};

/// Every type with some of its values, the extreme ones among them.
fn samples() -> Vec<(Type, Vec<Value<'static>>)> {
    let mut samples: Vec<(Type, Vec<Value<'static>>)> = IntType::ALL
        .into_iter()
        .map(|int| (Type::Int(int), vec![Value::Int(int.min()), Value::Int(1), Value::Int(int.max())]))
        .collect();
    let point = Type::Record(vec![
        Field::new("x", DataType::of(Type::INT64)),
        Field::new("label", DataType::optional(Type::String)),
        Field::new("tags", DataType::of(Type::List(Box::new(DataType::of(Type::Date))))),
    ]);
    samples.extend([
        (Type::Bool, vec![Value::Bool(true), Value::Bool(false)]),
        (Type::Float32, vec![Value::Float(0.5), Value::Float(f32::MAX as f64), Value::Float(-0.0)]),
        (Type::Float64, vec![Value::Float(0.1), Value::Float(f64::MIN)]),
        (Type::Decimal(18, 2), vec![Value::Decimal(999_999_999_999_999_999), Value::Decimal(-1)]),
        (Type::Decimal(38, 10), vec![Value::Decimal(10i128.pow(38) - 1), Value::Decimal(-(10i128.pow(38) - 1))]),
        (Type::String, vec![Value::str(""), Value::str("a text of more than twelve bytes"), Value::str("金额")]),
        (Type::Json, vec![Value::str(r#"{"a": 1}"#)]),
        (Type::Bytes, vec![Value::Bytes(vec![0, 255].into()), Value::Bytes(vec![7; 40].into())]),
        (Type::Date, vec![Value::Date(-719_162), Value::Date(2_932_896)]),
        (Type::Time, vec![Value::Time(0), Value::Time(86_399_999_999)]),
        (Type::DateTime, vec![Value::DateTime(-1), Value::DateTime(1_700_000_000_000_000)]),
        (Type::Timestamp, vec![Value::Timestamp(-1), Value::Timestamp(1_700_000_000_000_000)]),
        (Type::Duration, vec![Value::Duration(i64::MIN), Value::Duration(i64::MAX)]),
        (
            Type::List(Box::new(DataType::optional(Type::INT32))),
            vec![Value::List(vec![Value::Int(1), Value::Null]), Value::List(vec![])],
        ),
        (
            point.clone(),
            vec![Value::Record(vec![Value::Int(3), Value::Null, Value::List(vec![Value::Date(4), Value::Date(5)])])],
        ),
        (
            Type::List(Box::new(DataType::optional(point))),
            vec![Value::List(vec![
                Value::Null,
                Value::Record(vec![Value::Int(1), Value::str("l"), Value::List(vec![])]),
            ])],
        ),
        (Type::Record(vec![]), vec![Value::Record(vec![])]),
    ]);
    samples
}

fn build(ty: &DataType, values: &[Value]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(ty, values.len());
    values.iter().for_each(|value| builder.push(value));
    assert_eq!(builder.len(), values.len());
    builder.finish()
}

fn read(array: &ArrayRef, ty: &Type) -> Vec<Value<'static>> {
    (0..array.len()).map(|row| value_at(array.as_ref(), ty, row).into_owned()).collect()
}

#[test]
fn every_type_keeps_its_values() {
    for (ty, values) in samples() {
        let plain = build(&DataType::of(ty.clone()), &values);
        assert_eq!(plain.data_type(), &arrow_type(&ty));
        assert_eq!(plain.null_count(), 0);
        assert_eq!(read(&plain, &ty), values, "{ty}");

        let mut with_nulls = vec![Value::Null];
        for value in &values {
            with_nulls.extend([value.clone(), Value::Null]);
        }
        let optional = build(&DataType::optional(ty.clone()), &with_nulls);
        assert_eq!(optional.data_type(), &arrow_type(&ty));
        assert_eq!(read(&optional, &ty), with_nulls, "{ty}?");
        // A slice, whose offset is not 0.
        assert_eq!(read(&optional.slice(1, 2), &ty), with_nulls[1..3], "{ty}? sliced");
    }
}

#[test]
fn rows_are_selected_and_joined_for_every_type() {
    for (ty, values) in samples() {
        let column = build(&DataType::of(ty.clone()), &values);
        let batch = Batch::new(vec![column], values.len(), 7);
        let last = values.len() as u32 - 1;
        let picked = select(&batch, &[last, 0, last]);
        assert_eq!((picked.rows, picked.seq), (3, 7));
        let expected = vec![values[last as usize].clone(), values[0].clone(), values[last as usize].clone()];
        assert_eq!(read(&picked.columns[0], &ty), expected, "{ty}");

        let joined = concat(&[batch.clone(), picked]);
        assert_eq!(joined.rows, values.len() + 3);
        assert_eq!(read(&joined.columns[0], &ty), [values, expected].concat(), "{ty}");
    }
}

#[test]
fn a_batch_without_columns_has_rows() {
    let batch = Batch::new(vec![], 3, 0);
    assert_eq!(select(&batch, &[1]).rows, 1);
    assert_eq!(concat(&[batch.clone(), batch]).rows, 6);
    assert_eq!(concat(&[]).rows, 0);
}

struct Lines;

impl Locate for Lines {
    fn place(&self, row: usize) -> Place {
        Place { line: Some(row as u64 + 1), ..Place::default() }
    }
    fn raw(&self, _: usize) -> Option<String> {
        None
    }
}

#[test]
fn a_selection_of_a_selection_still_knows_its_lines() {
    let mut batch = Batch::new(vec![], 10, 0);
    batch.origin = Some(Origin { locate: Arc::new(Lines), rows: None });
    let twice = select(&select(&batch, &[2, 5, 9]), &[2, 0]);
    let origin = twice.origin.unwrap();
    assert_eq!((origin.place(0).line, origin.place(1).line), (Some(10), Some(3)));
}

#[test]
fn a_schema_has_outside_names() {
    let mut field = Field::new("created_at", DataType::optional(Type::DateTime));
    field.external = Some("Created At".into());
    let schema = arrow_schema(&Schema { fields: vec![field, Field::new("id", DataType::of(Type::INT64))] });
    assert_eq!(schema.field(0).name(), "Created At");
    assert!(schema.field(0).is_nullable());
    assert!(!schema.field(1).is_nullable());
}

#[test]
#[should_panic(expected = "a null pushed to a column of type int64")]
fn a_null_in_a_column_that_has_none_is_a_defect() {
    ColumnBuilder::new(&DataType::of(Type::INT64), 1).push(&Value::Null);
}
