//! Comparisons, conditions, null tests, lists, patterns, narrowing.

use crate::support::{errors, filter, ir, refused, typed};

#[test]
fn both_sides_meet_in_a_common_type() {
    assert_eq!(typed("small < n32"), "((small as int32) < n32): bool");
    assert_eq!(typed("id == price"), "((id as decimal(21, 2)) == (price as decimal(21, 2))): bool");
    assert_eq!(typed("due < at"), "((due as datetime?) < at): bool?");
    assert_eq!(typed("nick == \"x\""), "(nick == \"x\"): bool?");
    assert_eq!(typed("flag == true"), "(flag == true): bool");
    assert_eq!(typed("tags == [\"a\"]"), "(tags == [\"a\"]): bool");
}

#[test]
fn text_meets_text_only() {
    assert!(refused("name == 1", "E0501").contains("name as int64"));
    assert!(refused("id == \"1\"", "E0501").contains("write `1`"));
    assert!(refused("due >= \"2026-01-31\"", "E0501").contains("write `@2026-01-31`"));
    assert!(refused("at >= \"2026-01-31 10:00:00\"", "E0501").contains("write `@2026-01-31T10:00:00`"));
    refused("name == doc", "E0501");
    refused("flag == 1", "E0501");
    refused("tags == id", "E0501");
}

#[test]
fn zones_are_types() {
    assert!(refused("at < moment", "E0509").contains("to_timestamp"));
    assert!(refused("moment == due", "E0509").contains("time zone"));
    refused("moment as datetime", "E0509");
    assert!(refused("moment as date", "E0509").contains("date(moment, \"Asia/Shanghai\")"));
    refused("at as timestamp", "E0509");
    assert_eq!(typed("to_timestamp(at, \"UTC\") == moment"), "(to_timestamp(at, \"UTC\") == moment): bool");
}

#[test]
fn null_is_tested_with_is() {
    assert!(refused("nick == null", "E0506").contains("nick is null"));
    assert!(refused("null != nick", "E0506").contains("nick is not null"));
    assert_eq!(typed("nick is null"), "(nick is null): bool");
    assert_eq!(typed("nick is not null"), "not (nick is null): bool");
    refused("id in [1, null]", "E0515");
    refused("null", "E0507");
    assert_eq!(typed("null as int64?"), "null: int64?");
    refused("null as int64", "E0505");
}

#[test]
fn conditions_are_bools() {
    assert!(refused("id and flag", "E0502").contains("!= 0"));
    assert!(refused("not name", "E0502").contains("`not` takes bool"));
    assert_eq!(typed("flag and maybe"), "(flag and maybe): bool?");
    assert_eq!(errors("id and name").len(), 2);
}

#[test]
fn what_has_no_order() {
    refused("doc == doc", "E0518");
    refused("tags < tags", "E0518");
    refused("address < address", "E0518");
}

#[test]
fn lists_of_values() {
    assert_eq!(typed("id in [3, 1, 3]"), "(id in [1, 3]): bool");
    assert_eq!(typed("nick not in [\"b\", \"a\"]"), "not (nick in [\"a\", \"b\"]): bool?");
    assert_eq!(typed("price in [1, 2.5]"), "(price in [1.00, 2.50]): bool");
    assert_eq!(typed("id in [n32, 5]"), "((id == (n32 as int64)) or (id == 5)): bool");
    assert_eq!(typed("id in []"), "(id in []): bool");
    assert_eq!(typed("id in codes"), "(id in [1, 3]): bool");
    refused("name in [1]", "E0501");
    assert_eq!(typed("name in tags"), "list_contains(tags, name): bool");
    refused("id in tags", "E0523");
    refused("id in id", "E0523");
    assert_eq!(typed("5 in [1, 5]"), "true: bool");
    assert_eq!(typed("3 in codes"), "true: bool");
    assert_eq!(typed("2 in codes"), "false: bool");
}

#[test]
fn decimals_that_no_type_holds_both_are_compared_as_they_are() {
    let (fine, long) = ("(price as decimal(38, 24))", "(price as decimal(38, 7))");
    assert_eq!(typed(&format!("{fine} < {long}")), format!("({fine} < {long}): bool"));
    assert_eq!(typed(&format!("{fine} == id")), format!("({fine} == (id as decimal(19, 0))): bool"));
}

#[test]
fn between_and_patterns() {
    assert_eq!(typed("id between 1 and 5"), "((id >= 1) and (id <= 5)): bool");
    assert_eq!(typed("id not between 1 and 5"), "not ((id >= 1) and (id <= 5)): bool");
    assert_eq!(typed("name like \"a%\""), "like(name, \"a%\"): bool");
    assert_eq!(typed("nick not matches r\"^a\""), "not matches(nick, \"^a\"): bool?");
    refused("name matches \"(\"", "E0520");
    refused("id like \"1%\"", "E0501");
}

#[test]
fn a_null_test_narrows_what_follows() {
    assert_eq!(
        typed("nick is not null and nick == \"x\""),
        "(not (nick is null) and ((nick as string) == \"x\")): bool"
    );
    assert_eq!(
        ir("if nick is not null then nick else \"\""),
        "case { not (nick is null) => (nick as string), else => \"\" }: string"
    );
    let (predicate, all) = filter("discount is not null and flag and nick is not null");
    assert!(all.is_empty(), "{all:?}");
    assert_eq!(predicate.expect("sound").narrowed.len(), 2);
    let (predicate, _) = filter("discount is not null or flag");
    assert!(predicate.expect("sound").narrowed.is_empty());
}

#[test]
fn lints() {
    let (_, all) = filter("nick != \"x\"");
    assert!(all.len() == 1 && all[0].starts_with("W0503"), "{all:?}");
    for fine in ["nick is null or nick != \"x\"", "nick is not null and nick != \"x\"", "name != \"x\""] {
        assert_eq!(filter(fine).1, Vec::<String>::new(), "{fine}");
    }
    let (_, all) = filter("1 > 2");
    assert!(all.len() == 1 && all[0].starts_with("W0504"), "{all:?}");
    assert!(errors("ratio == ratio32")[0].starts_with("W0502"));
}
