//! The bodies against their declarations: nothing missing, nothing too much, nothing panics, every result of its type.

use super::{CallTypes, TABLE, lookup};
use crate::DECLARATIONS;
use crate::calendar::{DAY_MICROS, MAX_DAY, MAX_MICROS, MIN_DAY, MIN_MICROS};
use dfc_grammar::ast::{Item, ItemKind, Native, NativeOutput, NativeRole, ParamKind, TypeExpr, TypeKind};
use dfc_ir::types::{Field, IntType};
use dfc_ir::{DataType, Type, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Declared, but forms of the IR rather than bodies.
const FORMS: [&str; 3] = ["coalesce", "now", "today"];
/// Bodies of operators.
const OPERATORS: [&str; 3] = ["json_path", "like", "matches"];

fn declared() -> Vec<(Item, Native)> {
    let mut all = Vec::new();
    for (name, text) in DECLARATIONS.iter().filter(|(name, _)| name.starts_with("functions/")) {
        let parse = dfc_grammar::parse(text);
        assert_eq!(parse.errors, vec![], "{name}");
        for item in parse.file.items {
            match item.kind.as_ref() {
                ItemKind::Native(native) => all.push((item.clone(), native.clone())),
                _ => panic!("{name} declares something that is no function"),
            }
        }
    }
    all
}

fn functions() -> Vec<Native> {
    declared().into_iter().map(|(_, native)| native).filter(|native| native.role == NativeRole::Fn).collect()
}

#[test]
fn the_table_is_sorted_and_found() {
    assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
    for native in TABLE {
        assert_eq!(lookup(native.name).map(|found| found.name), Some(native.name));
    }
    assert!(lookup("").is_none() && lookup("zzz").is_none() && lookup("uppe").is_none());
}

#[test]
fn every_declaration_has_a_body_and_every_body_a_declaration() {
    let declared: BTreeSet<String> = functions().into_iter().map(|native| native.name.text).collect();
    let mut bodies: BTreeSet<String> = TABLE.iter().map(|native| native.name.to_owned()).collect();
    for operator in OPERATORS {
        assert!(bodies.remove(operator), "{operator}");
    }
    bodies.extend(FORMS.map(str::to_owned));
    assert_eq!(declared, bodies);
}

#[test]
fn aggregates_are_those_of_the_plan() {
    let aggregates = declared().into_iter().filter(|(_, native)| native.role == NativeRole::Agg);
    let declared: BTreeSet<String> = aggregates.map(|(_, native)| native.name.text).collect();
    let known: BTreeSet<String> = dfc_ir::plan::AggFunction::ALL.iter().map(|(_, name)| (*name).to_owned()).collect();
    assert_eq!(declared, known);
}

#[test]
fn everything_is_documented_and_functions_have_examples() {
    for (item, native) in declared() {
        let doc = item.doc.unwrap_or_default();
        let name = &native.name.text;
        assert!(doc.trim().len() > 10, "{name} has no doc");
        assert!(native.role == NativeRole::Agg || doc.contains("example: "), "{name} has no example: {doc}");
    }
}

#[test]
fn strict_functions_are_declared_without_optional_parameters() {
    for native in functions() {
        let optional: BTreeSet<bool> = native.params.iter().map(|param| type_of(&param.kind).nullable).collect();
        assert!(optional.len() < 2, "{} mixes strict and optional parameters", native.name.text);
        if let Some(body) = lookup(&native.name.text) {
            assert_eq!(body.strict, !optional.contains(&true), "{}", native.name.text);
        }
    }
}

#[test]
fn rules_are_those_described() {
    for (_, native) in declared() {
        if let NativeOutput::Rule(rule) = &native.output {
            assert!(["avg", "coalesce", "median", "round", "sum"].contains(&rule.text.as_str()), "{}", rule.text);
        }
    }
}

fn type_of(kind: &ParamKind) -> &TypeExpr {
    match kind {
        ParamKind::Const(ty) => ty,
        other => panic!("a function takes values, not {other:?}"),
    }
}

/// The types that a variable of a class stands for, few of each kind.
fn members(class: &str) -> Vec<Type> {
    let integers = IntType::ALL.map(Type::Int).to_vec();
    let floats = vec![Type::Float32, Type::Float64];
    let decimals = vec![Type::Decimal(38, 0), Type::Decimal(38, 38), Type::Decimal(15, 2), Type::Decimal(1, 0)];
    let number = [integers.clone(), floats.clone(), decimals.clone()].concat();
    let temporal = vec![Type::Date, Type::Time, Type::DateTime, Type::Timestamp];
    let ordered =
        [number.clone(), temporal.clone(), vec![Type::Bool, Type::String, Type::Bytes, Type::Duration]].concat();
    match class {
        "integer" => integers,
        "float" => floats,
        "decimal" => decimals,
        "number" => number,
        "temporal" => temporal,
        "text" => vec![Type::String],
        "ordered" => ordered,
        "any" => {
            let fields = vec![
                Field::new("a", DataType::optional(Type::Decimal(9, 4))),
                Field::new("b \"", DataType::of(Type::List(Box::new(DataType::optional(Type::Json))))),
            ];
            let list = Type::List(Box::new(DataType::optional(Type::String)));
            [ordered, vec![Type::Json, list, Type::Record(fields)]].concat()
        }
        other => panic!("no class `{other}`"),
    }
}

/// Any value of a type, often an extreme one.
fn values(ty: &Type) -> BoxedStrategy<Value<'static>> {
    let micros =
        || prop_oneof![Just(MIN_MICROS), Just(MAX_MICROS), MIN_MICROS..=MAX_MICROS, -DAY_MICROS..DAY_MICROS].boxed();
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        &Type::Int(int) => {
            let (low, high) = (int.min(), int.max());
            let small = low.max(-70)..=high.min(70);
            prop_oneof![Just(low), Just(high), low..=high, small].prop_map(Value::Int).boxed()
        }
        Type::Float32 => finite()
            .prop_map(|x| x as f32)
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| Value::Float(x.into()))
            .boxed(),
        Type::Float64 => finite().prop_map(Value::Float).boxed(),
        Type::Decimal(precision, _) => {
            let limit = 10i128.pow(u32::from(*precision)) - 1;
            let small = -limit.min(1_000)..=limit.min(1_000);
            prop_oneof![Just(-limit), Just(limit), -limit..=limit, small].prop_map(Value::Decimal).boxed()
        }
        Type::String => texts().prop_map(Value::string).boxed(),
        Type::Bytes => proptest::collection::vec(any::<u8>(), 0..20).prop_map(|b| Value::Bytes(b.into())).boxed(),
        Type::Date => prop_oneof![Just(MIN_DAY), Just(MAX_DAY), MIN_DAY..=MAX_DAY].prop_map(Value::Date).boxed(),
        Type::Time => (0..DAY_MICROS).prop_map(Value::Time).boxed(),
        Type::DateTime => micros().prop_map(Value::DateTime).boxed(),
        Type::Timestamp => micros().prop_map(Value::Timestamp).boxed(),
        Type::Duration => any::<i64>().prop_map(Value::Duration).boxed(),
        Type::Json => {
            prop_oneof![Just("null"), Just("{\"a\": [1, {\"\": \"\\ud800\"}]}"), Just("[1.50, \"x\"]"), Just("7")]
                .prop_map(Value::str)
                .boxed()
        }
        Type::List(item) => proptest::collection::vec(typed(item), 0..4).prop_map(Value::List).boxed(),
        Type::Record(fields) => {
            fields.iter().map(|field| typed(&field.ty)).collect::<Vec<_>>().prop_map(Value::Record).boxed()
        }
        Type::Secret | Type::Null => Just(Value::Null).boxed(),
    }
}

fn typed(ty: &DataType) -> BoxedStrategy<Value<'static>> {
    if ty.nullable { prop_oneof![1 => Just(Value::Null), 4 => values(&ty.ty)].boxed() } else { values(&ty.ty) }
}

fn finite() -> BoxedStrategy<f64> {
    let any = proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO;
    prop_oneof![Just(f64::MAX), Just(f64::MIN), Just(-0.0), any, -100.0..100.0].boxed()
}

/// Texts of all sorts, many of them with a meaning for some function.
fn texts() -> BoxedStrategy<String> {
    let meaningful = proptest::sample::select(vec![
        "",
        " ",
        "%",
        "a%_\\",
        "\\",
        "(",
        "(a)(?<n>b)?",
        "$1",
        "${n}x",
        "$",
        "\\1",
        "{}",
        "{{}}",
        "}",
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "year",
        "month",
        "week",
        "day",
        "hour",
        "microsecond",
        "second",
        "%Y-%m-%d",
        "%d.%m.%y %I:%M:%S%.f %p",
        "%j%z%A%b",
        "2026-01-31",
        "31.01.26 10:30:00.5 PM",
        "031+08:00SaturdayJan",
        "aGk=",
        "dns",
        "a@b.c",
        "é",
        "ß",
        "😀",
        "\0",
        "[1]",
        "{\"a\": 1}",
    ]);
    prop_oneof![meaningful.prop_map(str::to_owned), ".{0,12}", "[a-c%_\\\\(){}$.*+?|]{0,8}"].boxed()
}

/// A declared type with its variables replaced.
fn resolve(ty: &TypeExpr, variables: &[(String, Type)]) -> DataType {
    let resolved = match &ty.kind {
        TypeKind::List(item) => Type::List(Box::new(resolve(item, variables).with_nullable(true))),
        TypeKind::Name(name) => match variables.iter().find(|(variable, _)| variable == name) {
            Some((_, ty)) => ty.clone(),
            None => [Type::Bool, Type::String, Type::Bytes, Type::Date, Type::Time, Type::DateTime, Type::Timestamp]
                .into_iter()
                .chain([Type::Json, Type::Float64, Type::Duration])
                .chain(IntType::ALL.map(Type::Int))
                .find(|ty| ty.to_string() == *name)
                .unwrap_or_else(|| panic!("no type `{name}`")),
        },
        other => panic!("{other:?} in a function's declaration"),
    };
    DataType { ty: resolved, nullable: ty.nullable }
}

/// Whether a value is one of its type.
fn belongs(value: &Value<'_>, ty: &DataType) -> bool {
    match (value, &ty.ty) {
        (Value::Null, _) => ty.nullable,
        (Value::Int(n), &Type::Int(int)) => (int.min()..=int.max()).contains(n),
        (Value::Float(x), Type::Float32) => x.is_finite() && f64::from(*x as f32) == *x,
        (Value::Float(x), Type::Float64) => x.is_finite(),
        (Value::Decimal(n), Type::Decimal(precision, _)) => n.unsigned_abs() < 10u128.pow(u32::from(*precision)),
        (Value::Str(text), Type::Json) => crate::json_scan::valid(text),
        (Value::Date(day), Type::Date) => (MIN_DAY..=MAX_DAY).contains(day),
        (Value::Time(micros), Type::Time) => (0..DAY_MICROS).contains(micros),
        (Value::DateTime(micros), Type::DateTime) | (Value::Timestamp(micros), Type::Timestamp) => {
            (MIN_MICROS..=MAX_MICROS).contains(micros)
        }
        (Value::List(items), Type::List(item)) => items.iter().all(|value| belongs(value, item)),
        (Value::Record(values), Type::Record(fields)) => {
            values.len() == fields.len() && values.iter().zip(fields).all(|(value, field)| belongs(value, &field.ty))
        }
        (Value::Bool(_), Type::Bool)
        | (Value::Str(_), Type::String)
        | (Value::Bytes(_), Type::Bytes)
        | (Value::Duration(_), Type::Duration) => true,
        _ => false,
    }
}

/// A call: the declaration's name, the arguments with their types, the result's type.
type Call = (String, Vec<Value<'static>>, Vec<DataType>, DataType);

fn calls(native: &Native) -> BoxedStrategy<Call> {
    let classes: Vec<_> =
        native.generics.iter().map(|(name, class)| (name.text.clone(), members(&class.text))).collect();
    let variables: Vec<_> = classes
        .into_iter()
        .map(|(name, types)| proptest::sample::select(types).prop_map(move |ty| (name.clone(), ty)))
        .collect();
    let (native, extra) = (native.clone(), 0usize..4);
    (variables, extra, 0u8..=40)
        .prop_flat_map(move |(variables, extra, scale)| {
            let mut types = Vec::new();
            for param in &native.params {
                let times = if param.variadic { extra } else { 1 };
                types.extend(std::iter::repeat_n(resolve(type_of(&param.kind), &variables), times));
            }
            let result = match &native.output {
                NativeOutput::Type(ty) => resolve(ty, &variables),
                NativeOutput::Rule(rule) => rule_result(&rule.text, &types, scale),
                other => panic!("{other:?}"),
            };
            let name = native.name.text.clone();
            let args: Vec<_> = types.iter().map(typed).collect();
            args.prop_map(move |args| (name.clone(), args, types.clone(), result.clone())).boxed()
        })
        .boxed()
}

/// A type that the rule could give; `scale` is one of several that a decimal could have.
fn rule_result(rule: &str, args: &[DataType], scale: u8) -> DataType {
    let first = args[0].clone();
    match (rule, &first.ty) {
        ("round", Type::Decimal(precision, s)) if scale < *s => {
            DataType::of(Type::Decimal(precision - s + scale + 1, scale))
        }
        ("round" | "coalesce", _) => first,
        (other, _) => panic!("no function has the rule `{other}`"),
    }
}

fn check(call: &Call) -> Result<(), TestCaseError> {
    let (name, args, types, result) = call;
    let Some(native) = lookup(name) else { return Ok(()) };
    let types = CallTypes { args: types, result };
    match (native.call)(args, &types) {
        Ok(value) => prop_assert!(belongs(&value, result), "{name}{args:?} gives {value:?}, which is no {result}"),
        Err(error) => {
            prop_assert!(["R0101", "R0102", "R0105"].contains(&error.code), "{error:?}");
            prop_assert!(!error.message.is_empty());
            // Only the compiler's mistakes may be answered like this.
            prop_assert!(!error.message.starts_with("argument "), "{name}{args:?}: {}", error.message);
        }
    }
    Ok(())
}

/// No function panics on arguments of its types, and each gives a value of its type or an error with a code.
#[test]
fn any_arguments_give_a_value_of_the_type_or_an_error() {
    for native in functions() {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
        runner
            .run(&calls(&native), |call| check(&call))
            .unwrap_or_else(|fault| panic!("{}: {fault}", native.name.text));
    }
}

/// The operators' bodies, which have no declaration.
#[test]
fn operators_take_any_texts() {
    let text = || values(&Type::String);
    let steps = proptest::collection::vec(prop_oneof![text(), values(&Type::INT64)], 0..4);
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&(text(), text(), values(&Type::Json), steps), |(s, pattern, json, steps)| {
            for name in ["like", "matches"] {
                let types = vec![DataType::of(Type::String); 2];
                check(&(name.to_owned(), vec![s.clone(), pattern.clone()], types, DataType::of(Type::Bool)))?;
            }
            let args: Vec<_> = [json].into_iter().chain(steps).collect();
            check(&("json_path".to_owned(), args, vec![], DataType::optional(Type::Json)))
        })
        .unwrap_or_else(|fault| panic!("{fault}"));
}

/// A body that is called wrongly refuses; it does not panic.
#[test]
fn wrong_arguments_are_refused() {
    let odd = [
        Value::Null,
        Value::Bool(true),
        Value::Int(i128::MIN),
        Value::Decimal(i128::MAX),
        Value::Date(i32::MIN),
        Value::DateTime(i64::MIN),
    ];
    for native in TABLE {
        for count in 0..4 {
            for value in &odd {
                let args = vec![value.clone(); count];
                let types = CallTypes { args: &[], result: &DataType::of(Type::INT64) };
                let _ = (native.call)(&args, &types);
            }
        }
    }
}
