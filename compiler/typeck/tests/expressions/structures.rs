//! Lists, records, json, f-strings, casts, types.

use crate::support::{check_with, errors, refused, type_of, typed};

#[test]
fn fields_and_items() {
    assert_eq!(typed("address.zip"), "address.1: int32?");
    assert!(refused("address.ctiy", "E0419").contains("did you mean `city`?"));
    assert_eq!(typed("tags[0]"), "list_get(tags, 0): string?");
    assert_eq!(typed("doc.a[0].b"), "json_path(doc, \"a\", 0, \"b\"): json?");
    assert_eq!(typed("doc[name]"), "json_get(doc, name): json?");
    assert!(refused("day2.year", "E0410").contains("day"));
    assert!(refused("due.year", "E0516").contains("`year("));
    refused("name[0]", "E0517");
    refused("tags[name]", "E0517");
}

#[test]
fn records_and_spreads() {
    assert_eq!(type_of("{ a: 1, b: nick }"), "record { a: int64, b: string? }");
    assert_eq!(type_of("{ ...address, zip: 5 }"), "record { city: string, zip: int64 }");
    assert_eq!(typed("{ ...address, zip: 5 }"), "{address.0, 5}: record { city: string, zip: int64 }");
    refused("{ a: 1, a: 2 }", "E0425");
    refused("{ ...id }", "E0522");
    refused("{ a: null }", "E0507");
}

#[test]
fn lists() {
    assert_eq!(type_of("[1, 2.5]"), "list<decimal(2, 1)>");
    assert_eq!(type_of("[id, null]"), "list<int64?>");
    assert_eq!(type_of("[] as list<string>"), "list<string>");
    refused("[]", "E0507");
    refused("[1, \"a\"]", "E0510");
}

#[test]
fn formatted_text() {
    assert_eq!(typed("f\"{name}-{id}\""), "concat(name, \"-\", (id as string)): string");
    assert_eq!(typed("f\"{nick}!\""), "concat(nick, \"!\"): string?");
}

#[test]
fn casts() {
    assert_eq!(typed("id as int32"), "(id as int32): int32");
    assert_eq!(typed("discount as float64?"), "(discount as float64?): float64?");
    assert_eq!(typed("nick as string"), "(nick as string): string");
    assert_eq!(typed("name as? int64"), "(name as? int64): int64?");
    assert_eq!(typed("name as string"), "name: string");
    assert_eq!(typed("name as string?"), "name: string?");
    refused("flag as date", "E0508");
    refused("tags as int64", "E0508");
    assert_eq!(type_of("doc.a as int64?"), "int64?");
}

#[test]
fn types_as_written() {
    assert_eq!(type_of("null as Point?"), "record { x: int64 }?");
    assert!(refused("id as integer", "E0423").contains("int32"));
    assert!(refused("id as strng", "E0423").contains("string"));
    assert!(refused("id as decimal(40, 2)", "E0519").contains("1 to 38"));
    refused("id as decimal(4, 5)", "E0519");
    refused("id as decimal", "E0519");
    refused("name as list<secret>", "E0525");
    let fix = check_with("id as varchar?", None, "").diagnostics[0].fixes[0].2.clone();
    assert_eq!(fix, "string?");
}

#[test]
fn streams_and_types_are_no_values() {
    refused("orders |> filter(true)", "E0427");
    refused("list<int64>", "E0427");
}

#[test]
fn depth_and_size_are_limited() {
    assert_eq!(type_of(&format!("{}1", "id + ".repeat(300))), "int64");
    let brackets = format!("{}id{}", "(id + ".repeat(100), ")".repeat(100));
    assert_eq!(type_of(&brackets), "int64");
    for form in ["id + ", "flag or ", "nick ?? "] {
        let deep = format!("{}id", form.repeat(3_000));
        if dfc_grammar::parse(&format!("stream s = x |> f({deep})\n")).errors.is_empty() {
            let all = errors(&deep);
            assert!(all[0].starts_with("E0422") || all[0].starts_with("E05"), "{form}: {all:?}");
        }
    }
    let doubling = format!("{}flag{}", "(".repeat(40), " between maybe and true)".repeat(40));
    assert!(errors(&doubling)[0].starts_with("E0422"), "{:?}", errors(&doubling));
    let doubling =
        format!("{}flag{}", "match ".repeat(40), " { maybe => true, flag => false, else => false }".repeat(40));
    assert!(errors(&doubling)[0].starts_with("E0422"), "{:?}", errors(&doubling));
    refused("id between null and 5", "E0506");
}
