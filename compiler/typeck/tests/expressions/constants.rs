//! Constant folding and constants.

use dfc_ir::{DataType, Type, Value};
use dfc_typeck::{NoSites, Scope, Target};

use crate::support::{checker, columns, globals, line, parse_one, refused, typed};

#[test]
fn constants_are_folded() {
    assert_eq!(typed("1 + 2 * 3"), "7: int64");
    assert_eq!(typed("upper(\"ab\") == \"AB\""), "true: bool");
    assert_eq!(typed("\"5\" as int32"), "5: int32");
    assert_eq!(typed("\"x\" as? int32"), "null: int32?");
    assert_eq!(typed("id + (2 + 3)"), "(id + 5): int64");
    assert_eq!(typed("f\"a{1}b\""), "\"a1b\": string");
    assert_eq!(typed("true and flag"), "flag: bool");
    assert_eq!(typed("[1, 2][0]"), "1: int64?");
}

#[test]
fn failing_constants_are_errors() {
    refused("1 div 0", "E0513");
    assert!(refused("300 as int8", "E0514").contains("int8"));
    refused("\"abc\" as int64", "E0514");
    refused("9223372036854775807 + 1", "E0513");
    refused("sqrt(-1)", "E0513");
    refused("chr(-1)", "E0513");
}

#[test]
fn constants_that_are_never_reached_are_left_alone() {
    assert_eq!(typed("if false then 1 div 0 else 2"), "2: int64");
    assert_eq!(typed("false and 1 div 0 == 1"), "false: bool");
}

fn constant(text: &str, ty: DataType) -> Result<Value<'static>, String> {
    let columns = columns("record R { a: int64 }");
    let globals = globals("");
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    let target = Target::Parameter { operator: "take".into(), name: "n".into() };
    let value = checker.constant(&parse_one(text), &ty, &target);
    value.ok_or_else(|| checker.diagnostics.iter().map(line).collect::<Vec<_>>().join("; "))
}

#[test]
fn constants_where_only_those_may_stand() {
    let int = || DataType::of(Type::INT64);
    assert_eq!(constant("limit * 2", int()), Ok(Value::Int(20)));
    assert_eq!(constant("5", DataType::of(Type::Float64)), Ok(Value::Float(5.0)));
    assert_eq!(constant("null", DataType::optional(Type::String)), Ok(Value::Null));
    assert!(constant("a + 1", int()).is_err_and(|e| e.starts_with("E0417") && e.contains("field `a`")));
    assert!(constant("unset + 1", int()).is_ok());
    assert!(constant("epoch_seconds(now())", int()).is_err_and(|e| e.contains("`now()`")));
    assert!(constant("\"5\"", int()).is_err_and(|e| e.starts_with("E0504") && e.contains("write `5`")));
    assert!(constant("1.5", int()).is_err_and(|e| e.starts_with("E0514")));
    assert!(
        constant("300", DataType::of(Type::Int(dfc_ir::types::IntType::I8))).is_err_and(|e| e.starts_with("E0514"))
    );
    assert!(constant("null", int()).is_err_and(|e| e.starts_with("E0505")));
}
