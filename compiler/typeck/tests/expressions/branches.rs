//! `if`, `match`, `??`.

use crate::support::{errors, refused, type_of, typed};

#[test]
fn branches_have_a_common_type() {
    assert_eq!(typed("if flag then 1 else price"), "case { flag => 1.00, else => price }: decimal(15, 2)");
    assert_eq!(typed("if flag then id else n32"), "case { flag => id, else => (n32 as int64) }: int64");
    assert_eq!(typed("if flag then null else id"), "case { flag => null, else => id }: int64?");
    assert_eq!(typed("if maybe then nick else name"), "case { maybe => nick, else => name }: string?");
    assert!(refused("if flag then 1 else name", "E0510").contains("int64 and string"));
    refused("if flag then null else null", "E0507");
    refused("if id then 1 else 2", "E0502");
}

#[test]
fn matching() {
    assert_eq!(
        typed("match name { \"a\" => 1, \"b\", \"c\" => 2, else => 0 }"),
        "case { (name == \"a\") => 1, (name in [\"b\", \"c\"]) => 2, else => 0 }: int64"
    );
    assert_eq!(
        typed("match { id > 5 => \"big\", else => \"small\" }"),
        "case { (id > 5) => \"big\", else => \"small\" }: string"
    );
    assert_eq!(
        typed("match nick { null => \"none\", else => \"some\" }"),
        "case { (nick is null) => \"none\", else => \"some\" }: string"
    );
    assert_eq!(typed("match flag { true => 1, false => 0 }"), "case { (flag == true) => 1, else => 0 }: int64");
    refused("match maybe { true => 1, false => 0 }", "E0511");
    refused("match name { \"a\" => 1 }", "E0511");
    refused("match name { 1 => 1, else => 0 }", "E0501");
    refused("match { id => 1, else => 0 }", "E0502");
}

#[test]
fn the_first_that_is_not_null() {
    assert_eq!(typed("nick ?? name"), "coalesce(nick, name): string");
    assert_eq!(typed("discount ?? 0"), "coalesce(discount, 0.00): decimal(4, 2)");
    assert_eq!(typed("discount ?? 10000"), "coalesce((discount as decimal(7, 2)?), 10000.00): decimal(7, 2)");
    assert_eq!(typed("coalesce(nick, name)"), "coalesce(nick, name): string");
    assert_eq!(type_of("coalesce(nick, null)"), "string?");
    assert_eq!(type_of("nick ?? null ?? name"), "string");
    assert!(errors("name ?? \"x\"")[0].starts_with("W0505"));
    refused("nick ?? 1", "E0510");
}
