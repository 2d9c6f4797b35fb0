//! The types that the walks over every pair go through: here, and in the tests of the front end.

use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Type};

/// One of each kind, and the widths that matter.
fn representatives() -> Vec<Type> {
    let list = |item: Type| Type::List(Box::new(DataType::of(item)));
    vec![
        Type::Bool,
        Type::Int(IntType::I8),
        Type::Int(IntType::I32),
        Type::INT64,
        Type::Int(IntType::U64),
        Type::Float32,
        Type::Float64,
        Type::Decimal(4, 2),
        Type::Decimal(15, 2),
        Type::Decimal(15, 4),
        Type::Decimal(38, 0),
        Type::Decimal(38, 30),
        Type::String,
        Type::Bytes,
        Type::Date,
        Type::Time,
        Type::DateTime,
        Type::Timestamp,
        Type::Duration,
        Type::Json,
        list(Type::INT64),
        list(Type::String),
        Type::Record(vec![Field::new("a", DataType::of(Type::INT32))]),
    ]
}

/// Every type, plain and optional.
pub fn types() -> Vec<DataType> {
    representatives().into_iter().flat_map(|ty| [DataType::of(ty.clone()), DataType::optional(ty)]).collect()
}
