//! Aggregate expressions.

use crate::support::aggregated;

#[test]
fn aggregates_become_columns_after_the_keys() {
    let (exprs, aggregates, all) =
        aggregated(&["name"], &["sum(price) / count()", "count()", "upper(name)", "sum(price) * 2"]);
    assert_eq!(all, Vec::<String>::new());
    assert_eq!(aggregates, ["sum(price): decimal(38, 2)", "count(): int64"]);
    assert_eq!(exprs[0].as_deref(), Some("(#1 / (#2 as decimal(19, 0))): decimal(38, 6)"));
    assert_eq!(exprs[1].as_deref(), Some("#2: int64"));
    assert_eq!(exprs[2].as_deref(), Some("upper(#0): string"));
    assert_eq!(exprs[3].as_deref(), Some("(#1 * 2): decimal(38, 2)"));
}

#[test]
fn nullability() {
    let (_, aggregates, _) = aggregated(&[], &["sum(id)", "count()", "avg(n32)", "min(name)", "collect(nick)"]);
    assert_eq!(
        aggregates,
        [
            "sum(id): int64?",
            "count(): int64",
            "avg(n32): float64?",
            "min(name): string?",
            "collect(nick): list<string>"
        ]
    );
    let (_, aggregates, _) =
        aggregated(&["flag"], &["sum(n32)", "max(due)", "sum(id, where: flag)", "stddev(ratio)", "count(nick)"]);
    assert_eq!(
        aggregates,
        [
            "sum((n32 as int64)): int64",
            "max(due): date?",
            "sum(id) where flag: int64?",
            "stddev(ratio): float64?",
            "count(nick): int64"
        ]
    );
}

#[test]
fn what_aggregates_refuse() {
    let one = |by: &[&str], text: &str| aggregated(by, &[text]).2.join("; ");
    assert!(one(&["name"], "price").starts_with("E0415"), "{}", one(&["name"], "price"));
    assert!(one(&["name"], "sum(price) + price").starts_with("E0415"));
    assert!(one(&[], "sum(max(price))").starts_with("E0421"));
    assert!(one(&[], "sum(name)").starts_with("E0512"), "{}", one(&[], "sum(name)"));
    assert!(one(&[], "sum(id, where: id)").starts_with("E0502"));
    assert!(one(&[], "sum(prise)").starts_with("E0410"));
    assert!(one(&[], "string_agg(name, nick)").starts_with("E0417"));
    assert!(one(&[], "group_concat(name)").contains("string_agg"));
    assert_eq!(one(&["name"], "string_agg(nick, \", \")"), "");
}
