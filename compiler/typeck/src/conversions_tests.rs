//! Walks every pair of a fixed list of types through the conversion tables.

use super::*;

fn plain(ty: Type) -> DataType {
    DataType::of(ty)
}

/// One of each kind, and the widths that matter.
fn representatives() -> Vec<Type> {
    let mut types = vec![Type::Bool];
    types.extend(IntType::ALL.map(Type::Int));
    types.extend([
        Type::Float32,
        Type::Float64,
        Type::Decimal(4, 2),
        Type::Decimal(15, 2),
        Type::Decimal(15, 4),
        Type::Decimal(19, 0),
        Type::Decimal(38, 10),
        Type::String,
        Type::Bytes,
        Type::Date,
        Type::Time,
        Type::DateTime,
        Type::Timestamp,
        Type::Duration,
        Type::Json,
        Type::List(Box::new(plain(Type::INT64))),
        Type::List(Box::new(DataType::optional(Type::String))),
        Type::Record(vec![Field::new("a", plain(Type::INT32))]),
        Type::Record(vec![Field::new("b", plain(Type::INT32))]),
        Type::Secret,
    ]);
    types
}

#[test]
fn every_pair_obeys_the_laws() {
    for from in &representatives() {
        for to in &representatives() {
            let outcome = outcome(from, to);
            let pair = format!("{from} → {to}");
            assert_eq!(outcome == Outcome::Exact, from == to, "{pair}");
            if !matches!(outcome, Outcome::Incompatible) && *to != Type::Secret {
                assert!(castable(from, to), "{pair}: what can be assigned can be cast");
            }
            let common = common_type(&plain(from.clone()), &plain(to.clone()));
            assert_eq!(common, common_type(&plain(to.clone()), &plain(from.clone())), "{pair}: common is symmetric");
            if let Some(common) = common {
                for side in [from, to] {
                    assert_ne!(super::outcome(side, &common.ty), Outcome::Incompatible, "{pair} in {common}");
                }
            }
            if (*from == Type::String) != (*to == Type::String) {
                let common = common_type(&plain(from.clone()), &plain(to.clone()));
                assert_eq!(common, None, "{pair}: text meets text only");
            }
            if needs_zone(from, to) {
                assert_eq!(outcome, Outcome::Incompatible, "{pair} needs a zone");
                assert!(!castable(from, to), "{pair} needs a zone");
            }
        }
    }
}

#[test]
fn nullability_is_part_of_the_outcome() {
    for ty in representatives() {
        let (must, may) = (plain(ty.clone()), DataType::optional(ty.clone()));
        assert_eq!(assign_outcome(&must, &may), Outcome::Widening, "{ty}");
        assert_eq!(assign_outcome(&may, &must), Outcome::Checked(NULLS), "{ty}");
        assert_eq!(assign_outcome(&DataType::optional(Type::Null), &may), Outcome::Widening);
        assert_eq!(common_type(&must, &may), Some(may.clone()));
        assert_eq!(common_type(&must, &DataType::optional(Type::Null)), Some(may));
    }
}

#[test]
fn the_examples_of_the_language_hold() {
    use Outcome::*;
    let of = |a: Type, b: Type| outcome(&a, &b);
    let widening = [
        (Type::INT32, Type::INT64),
        (Type::INT32, Type::Float64),
        (Type::INT64, Type::Decimal(19, 0)),
        (Type::Date, Type::DateTime),
        (Type::INT64, Type::String),
        (Type::Decimal(15, 2), Type::String),
    ];
    for (a, b) in widening {
        assert_eq!(of(a.clone(), b.clone()), Widening, "{a} → {b}");
    }
    let checked = [
        (Type::String, Type::INT64),
        (Type::String, Type::Date),
        (Type::Decimal(15, 4), Type::Decimal(15, 2)),
        (Type::INT64, Type::INT32),
        (Type::Float64, Type::INT64),
        (Type::INT64, Type::Float64),
    ];
    for (a, b) in checked {
        assert!(matches!(of(a.clone(), b.clone()), Checked(_)), "{a} → {b}");
    }
    let list = Type::List(Box::new(plain(Type::INT64)));
    for (a, b) in [(Type::Bool, Type::Date), (list, Type::INT64), (Type::DateTime, Type::Timestamp)] {
        assert_eq!(of(a.clone(), b.clone()), Incompatible, "{a} → {b}");
    }
}

#[test]
fn common_types_of_numbers() {
    let common = |a: Type, b: Type| common_type(&plain(a), &plain(b)).map(|t| t.ty);
    assert_eq!(common(Type::Int(IntType::I8), Type::Int(IntType::U8)), Some(Type::Int(IntType::I16)));
    assert_eq!(common(Type::Int(IntType::U64), Type::Int(IntType::I8)), Some(Type::Decimal(20, 0)));
    assert_eq!(common(Type::INT64, Type::Decimal(15, 2)), Some(Type::Decimal(21, 2)));
    assert_eq!(common(Type::Decimal(38, 30), Type::INT64), Some(Type::Decimal(38, 19)));
    assert_eq!(common(Type::Float32, Type::Int(IntType::I16)), Some(Type::Float32));
    assert_eq!(common(Type::Float32, Type::INT64), Some(Type::Float64));
    assert_eq!(common(Type::Decimal(4, 2), Type::Float32), Some(Type::Float64));
}
