//! The four outcomes at places of different kinds.

use dfc_ir::{DataType, Type};
use dfc_typeck::Target;

use crate::support::assigned;

fn sink() -> Target {
    Target::SinkColumn { column: "c".into(), declared: None }
}

fn parameter() -> Target {
    Target::Parameter { operator: "op".into(), name: "p".into() }
}

#[test]
fn silent_conversions() {
    let none = Vec::<String>::new();
    assert_eq!(
        assigned("n32", DataType::of(Type::INT64), &parameter()),
        (Some("(n32 as int64): int64".into()), none.clone())
    );
    assert_eq!(
        assigned("name", DataType::optional(Type::String), &parameter()),
        (Some("name: string?".into()), none.clone())
    );
    assert_eq!(
        assigned("id", DataType::of(Type::String), &sink()),
        (Some("(id as string): string".into()), none.clone())
    );
    assert_eq!(
        assigned("5", DataType::of(Type::Decimal(4, 2)), &parameter()),
        (Some("5.00: decimal(4, 2)".into()), none)
    );
}

#[test]
fn checked_conversions_are_allowed_at_a_sink_with_a_warning() {
    let (expr, all) = assigned("name", DataType::of(Type::Date), &sink());
    assert_eq!(expr.as_deref(), Some("(name as date): date"));
    assert!(all.len() == 1 && all[0].starts_with("W0501"), "{all:?}");
    let (expr, all) = assigned("discount", DataType::of(Type::Decimal(4, 2)), &sink());
    assert!(expr.is_some() && all[0].starts_with("W0501") && all[0].contains("null"), "{all:?}");
    let union = Target::UnionBranch { column: "c".into(), other: None };
    let (_, all) = assigned("id", DataType::of(Type::Float64), &union);
    assert!(all[0].starts_with("W0506"), "{all:?}");
}

#[test]
fn elsewhere_they_must_be_written() {
    let (expr, all) = assigned("name", DataType::of(Type::INT64), &parameter());
    assert!(expr.is_none() && all[0].starts_with("E0504") && all[0].contains("as int64"), "{all:?}");
    let (_, all) = assigned("\"2026-01-31\"", DataType::of(Type::Date), &parameter());
    assert!(all[0].contains("write `@2026-01-31`"), "{all:?}");
    let (_, all) = assigned("discount", DataType::of(Type::Decimal(4, 2)), &parameter());
    assert!(all[0].starts_with("E0505") && all[0].contains("??"), "{all:?}");
}

#[test]
fn incompatible_types() {
    for (text, ty, code) in [
        ("flag", Type::Date, "E0503"),
        ("tags", Type::INT64, "E0503"),
        ("id", Type::Date, "E0503"),
        ("at", Type::Timestamp, "E0509"),
        ("address", Type::String, "E0503"),
    ] {
        let (expr, all) = assigned(text, DataType::of(ty), &sink());
        assert!(expr.is_none() && all.len() == 1 && all[0].starts_with(code), "{text}: {all:?}");
        assert!(all[0].contains(" | "), "{text}: a cure is missing: {all:?}");
    }
}
