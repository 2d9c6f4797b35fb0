//! The four outcomes walked in full (D8): every pair of a fixed list of types, at every place where two types meet. What the
//! tables of conversions say is what the checker does there, and one mistake gives one message.

use dfc_diagnostics::Severity;
use dfc_ir::{DataType, Expr, Type};
use dfc_typeck::conversions::{Outcome, assign_outcome, common_type};
use dfc_typeck::{Column, LocalDiagnostic, NoSites, Scope, Target};

use crate::representatives::types;
use crate::support::{checker, globals, loc_of, parse_one};

/// Checks with `x` and `y` of these types in scope.
fn over<T>(
    x: &DataType,
    y: &DataType,
    work: impl FnOnce(&mut dfc_typeck::Checker<'_>) -> T,
) -> (T, Vec<LocalDiagnostic>) {
    let globals = globals("");
    let columns = [
        Column::new("x", x.clone(), Vec::new()),
        Column::new("y", y.clone(), Vec::new()),
        Column::new("c", DataType::of(Type::Bool), Vec::new()),
    ];
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    let result = work(&mut checker);
    (result, std::mem::take(&mut checker.diagnostics))
}

fn errors(found: &[LocalDiagnostic]) -> Vec<&'static str> {
    found.iter().filter(|d| d.severity == Severity::Error).map(|d| d.code).collect()
}

fn warnings(found: &[LocalDiagnostic], code: &str) -> usize {
    found.iter().filter(|d| d.code == code).count()
}

#[test]
fn assigning_follows_the_table_at_every_place() {
    let places = [
        Target::SinkColumn { column: "c".into(), declared: None },
        Target::UnionBranch { column: "c".into(), other: None },
        Target::Parameter { operator: "o".into(), name: "p".into() },
        Target::Declaration { kind: "constant", name: "k".into() },
        Target::FnParameter { function: "f".into(), name: "p".into(), declared: loc_of("f") },
        Target::FnResult { function: "f".into() },
    ];
    let e = parse_one("x");
    for from in &types() {
        for to in &types() {
            for place in &places {
                let (result, found) = over(from, to, |checker| {
                    let column = checker.check(&e, None).expect("a field");
                    checker.assign(column, to, e.span, place)
                });
                let what = format!("{from} given to {to} at {}: {found:?}", place.words());
                let errors = errors(&found);
                match assign_outcome(from, to) {
                    Outcome::Exact | Outcome::Widening => {
                        assert!(found.is_empty(), "{what}");
                        assert_eq!(result.map(|e| e.ty), Some(to.clone()), "{what}");
                    }
                    Outcome::Checked(_) if place.allows_checked() => {
                        assert!(errors.is_empty(), "{what}");
                        assert_eq!(warnings(&found, "W0501") + warnings(&found, "W0506"), 1, "{what}");
                        assert_eq!(result.map(|e| e.ty), Some(to.clone()), "{what}");
                    }
                    Outcome::Checked(_) => {
                        assert!(result.is_none(), "{what}");
                        assert!(matches!(errors.as_slice(), ["E0504" | "E0505"]), "{what}");
                    }
                    Outcome::Incompatible => {
                        assert!(result.is_none(), "{what}");
                        assert!(matches!(errors.as_slice(), ["E0503" | "E0509"]), "{what}");
                    }
                }
            }
        }
    }
}

/// Whether `==` is there for values of a type.
fn comparable(ty: &Type) -> bool {
    match ty {
        Type::Json | Type::Secret => false,
        Type::List(item) => comparable(&item.ty),
        Type::Record(fields) => fields.iter().all(|field| comparable(&field.ty.ty)),
        _ => true,
    }
}

#[test]
fn comparing_takes_a_common_type_at_every_place() {
    let places = [
        ("x == y", false),
        ("x != y", false),
        ("x < y", true),
        ("x in [y]", false),
        ("x not in [y, y]", false),
        ("x between y and y", true),
        ("match x { y => true, else => false }", false),
    ];
    for x in &types() {
        for y in &types() {
            let common = common_type(x, y).map(|common| common.ty);
            for (text, ordered) in places {
                let sound = common.as_ref().is_some_and(|ty| comparable(ty) && (!ordered || ty.is_ordered()));
                let (result, found) = over(x, y, |checker| checker.check(&parse_one(text), None));
                let what = format!("`{text}` for {x} and {y}: {found:?}");
                one_message(sound, result, &found, &what);
            }
        }
    }
}

#[test]
fn keys_of_joins_take_a_common_type() {
    let globals = globals("");
    let e = parse_one("left.x == right.y");
    for x in &types() {
        for y in &types() {
            let (left, right) = ([Column::new("x", x.clone(), Vec::new())], [Column::new("y", y.clone(), Vec::new())]);
            let mut sites = NoSites;
            let mut checker = checker(&globals, Scope::Pair { left: &left, right: &right }, &mut sites);
            let result = checker.check(&e, None);
            let found = std::mem::take(&mut checker.diagnostics);
            let sound = common_type(x, y).is_some_and(|common| comparable(&common.ty));
            one_message(sound, result, &found, &format!("a key of {x} and {y}: {found:?}"));
        }
    }
}

#[test]
fn values_that_meet_take_a_common_type() {
    let places = ["if c then x else y", "match { c => x, else => y }", "coalesce(x, y)", "[x, y]"];
    for x in &types() {
        for y in &types() {
            let common = common_type(x, y);
            for text in places {
                let (result, found) = over(x, y, |checker| checker.check(&parse_one(text), None));
                let what = format!("`{text}` for {x} and {y}: {found:?}");
                one_message(common.is_some(), result.clone(), &found, &what);
                if let (Some(common), Some(result)) = (&common, &result) {
                    let ty = match &result.ty.ty {
                        Type::List(item) if text.starts_with('[') => &item.ty,
                        ty => ty,
                    };
                    assert_eq!(*ty, common.ty, "{what}");
                }
            }
            if x.nullable {
                let (result, found) = over(x, y, |checker| checker.check(&parse_one("x ?? y"), None));
                one_message(common.is_some(), result, &found, &format!("`x ?? y` for {x} and {y}: {found:?}"));
            }
        }
    }
}

fn one_message(sound: bool, result: Option<Expr>, found: &[LocalDiagnostic], what: &str) {
    assert_eq!(result.is_some(), sound, "{what}");
    assert_eq!(errors(found).len(), usize::from(!sound), "{what}");
}
