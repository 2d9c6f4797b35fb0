//! Names: fields, sides, parameters, unknown ones.

use dfc_ir::DataType;
use dfc_typeck::{NoSites, Scope};

use crate::support::{check_with, checker, columns, errors, globals, line, parse_one, refused, typed};

#[test]
fn unknown_names_offer_the_nearest() {
    assert!(refused("prise * 2", "E0410").contains("did you mean `price`?"));
    let checked = check_with("prise", None, "");
    assert_eq!(checked.diagnostics[0].fixes[0].2, "price");
    assert!(checked.diagnostics[0].notes[0].starts_with("the fields here are `id`, `small`"));
    assert!(checked.diagnostics[0].notes[0].ends_with("more"));
    assert!(refused("orders", "E0410").contains("is a stream"));
    assert!(refused("upper", "E0410").contains("call it"));
    assert_eq!(errors("prise + nmae").len(), 2);
}

#[test]
fn parameters_and_constants() {
    assert_eq!(typed("id > limit"), "(id > 10): bool");
    assert_eq!(typed("id + unset"), "(id + param(\"unset\")): int64");
    assert!(refused("day", "E0411").contains("parameter"));
}

#[test]
fn broken_names_are_silent() {
    let columns = columns("record R { a: int64 }");
    let globals = globals("");
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    assert_eq!(checker.check(&parse_one("a + shattered"), None), None);
    assert!(checker.diagnostics.is_empty());
    let mut broken = columns.clone();
    broken[0].broken = true;
    checker.scope = Scope::None;
    let mut sites = NoSites;
    let mut checker = crate::support::checker(&globals, Scope::Row(&broken), &mut sites);
    assert_eq!(checker.check(&parse_one("a + 1"), None), None);
    assert!(checker.diagnostics.is_empty());
}

#[test]
fn two_sides() {
    let left = columns("record L { id: int64, user_id: int64, name: string }");
    let right = columns("record R { id: int32, country: string?, name: string }");
    let globals = globals("");
    let check = |text: &str| {
        let mut sites = NoSites;
        let mut checker = checker(&globals, Scope::Pair { left: &left, right: &right }, &mut sites);
        let e = checker.check(&parse_one(text), Some(&DataType::of(dfc_ir::Type::Bool)));
        match e {
            Some(e) => dfc_ir::text::expr(&e, &|i| format!("#{i}")),
            None => checker.diagnostics.iter().map(line).collect::<Vec<_>>().join("; "),
        }
    };
    assert_eq!(check("user_id == right.id"), "(#1 == (#3 as int64))");
    assert_eq!(check("left.name == right.name"), "(#2 == #5)");
    assert_eq!(check("country is null"), "(#4 is null)");
    assert!(
        check("name == \"x\"").starts_with("E0412: both sides have a field `name` | write `left.name` or `right.name`")
    );
    assert!(check("left.country is null").starts_with("E0410: the left side has no field `country`"));
    assert!(check("right.nam == \"x\"").contains("did you mean `name`?"));
}

#[test]
fn sides_need_a_join() {
    assert!(refused("left.name", "E0424").contains("write `name`"));
}

#[test]
fn constants_see_no_fields() {
    let globals = globals("");
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::None, &mut sites);
    assert_eq!(checker.check(&parse_one("sinse"), None), None);
    let text = line(&checker.diagnostics[0]);
    assert!(text.contains("no parameter or constant `sinse`") && text.contains("`since`"), "{text}");
}
