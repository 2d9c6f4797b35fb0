//! Fields from operator to operator (D7, D8), and what a refused one silences.

use std::path::Path;

use crate::{HEAD, compiler, expect};

/// The fields that the sink is given.
fn fields(chain: &str) -> Vec<String> {
    let text = format!(
        "{HEAD}source users = csv(\"u.csv\", schema: User)\nsink {{ {chain} |> discard() users |> discard() }}\n"
    );
    let compiler = compiler(&[("p/main.df", &text)]);
    let checked = compiler.check(Path::new("p/main.df"));
    let shown = dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false);
    assert!(!checked.has_errors(), "{shown}");
    let schema = compiler.summary(Path::new("p/main.df")).sinks[0].schema.clone().unwrap_or_default();
    schema.fields.iter().map(|f| format!("{}: {}", f.name, f.ty)).collect()
}

#[test]
fn rows() {
    assert_eq!(fields("orders |> select(id, d: discount)"), ["id: int64", "d: decimal(4, 2)?"]);
    assert_eq!(
        fields("orders |> select(id, discount) |> filter(discount is not null and id > 1)"),
        ["id: int64", "discount: decimal(4, 2)"]
    );
    assert_eq!(fields("orders |> select(id) |> derive(id: id as string, n: id)"), ["id: string", "n: int64"]);
    assert_eq!(
        fields("orders |> drop(user_id, status, price, at) |> rename(key: id)"),
        ["key: int64", "discount: decimal(4, 2)?"]
    );
    assert_eq!(fields("orders |> select(id, user_id) |> cast(user_id as int32)"), ["id: int64", "user_id: int32"]);
    assert_eq!(
        fields("orders |> select(id, user_id) |> rename(id: user_id, user_id: id)"),
        ["user_id: int64", "id: int64"]
    );
}

#[test]
fn groups() {
    assert_eq!(
        fields("orders |> aggregate(by: [user_id, day: date(at)], n: count(), mean: sum(price) / count())")[..3],
        ["user_id: int64", "day: date", "n: int64"]
    );
    assert_eq!(fields("orders |> aggregate(total: sum(price), n: count())"), ["total: decimal(38, 2)?", "n: int64"]);
    assert_eq!(
        fields("orders |> select(id, status) |> distinct(by: [status], order: desc(id))"),
        ["id: int64", "status: string"]
    );
}

#[test]
fn joins() {
    let left = "orders |> select(id, user_id)";
    assert_eq!(
        fields(&format!("{left} |> join(users, on: user_id == right.id)")),
        ["id: int64", "user_id: int64", "name: string", "country: string?"]
    );
    assert_eq!(
        fields(&format!("{left} |> join(users, on: user_id == right.id, kind: left, take: [who: name])")),
        ["id: int64", "user_id: int64", "who: string?"]
    );
    assert_eq!(
        fields(&format!("{left} |> join(users, on: id, kind: full)")),
        ["id: int64", "user_id: int64?", "name: string?", "country: string?"]
    );
    // A key that is taken from the right too is not merged: it tells which side a row comes from.
    assert_eq!(
        fields(&format!("{left} |> join(users, on: id, kind: full, take: [other: right.id])")),
        ["id: int64?", "user_id: int64?", "other: int64?"]
    );
    // A second right key can differ in a row without a left side, so it stays.
    assert_eq!(
        fields(&format!("{left} |> join(users |> select(a: id, b: id), on: id == a and id == b, kind: right)")),
        ["id: int64", "user_id: int64?", "b: int64"]
    );
    assert_eq!(fields(&format!("{left} |> join(users, on: id, kind: anti)")), ["id: int64", "user_id: int64"]);
    assert_eq!(
        fields(&format!(
            "{left} |> lookup(users, on: user_id == right.id and right.country == \"NL\", take: [name], missing: fail)"
        )),
        ["id: int64", "user_id: int64", "name: string"]
    );
}

#[test]
fn unions() {
    assert_eq!(
        fields("union(orders |> select(id, status), orders |> select(status, id: id as int32))"),
        ["id: int64", "status: string"]
    );
    assert_eq!(
        fields("union(orders |> select(id), orders |> select(id, status), fill: null)"),
        ["id: int64", "status: string?"]
    );
    expect("sink union(orders |> select(id), orders |> select(id, status)) |> print()\n", &["E0406"]);
    expect("sink union(orders |> select(id), orders |> select(id: at)) |> print()\n", &["E0408"]);
    expect("sink union(orders) |> print()\n", &["E0602"]);
}

#[test]
fn joins_that_are_refused() {
    let users = "source users = csv(\"u.csv\", schema: User)\n";
    let refused = |on: &str, code: &'static str| {
        expect(&format!("{users}sink orders |> join(users, {on}) |> print()\n"), &[code])
    };
    refused("on: user_id > right.id", "E0617");
    refused("on: user_id == right.idd", "E0410");
    refused("on: id == 1", "E0412");
    refused("on: user_id == right.id, kind: semi, take: [name]", "E0608");
    expect(
        &format!(
            "{users}sink orders |> join(orders |> select(id, status), on: id) |> join(users, on: id) |> print()\n"
        ),
        &["E0407"],
    );
}

#[test]
fn unknown_fields_silence_what_follows() {
    expect(
        "sink orders |> derive(x: pricee * 2) |> filter(x > 1) |> derive(y: x + 1) |> sort(y) |> print()\n",
        &["E0410"],
    );
    expect("sink orders |> rename(key: idd) |> filter(key > 1) |> print()\n", &["E0404"]);
    expect("sink orders |> select(id, x: nope) |> aggregate(by: [x], n: count()) |> print()\n", &["E0410"]);
    expect("stream a = orders |> join(orders, on: nope) |> filter(whatever > 1)\nsink a |> print()\n", &["E0410"]);
}

#[test]
fn a_target_is_checked() {
    let sink = |fields: &str, codes: &[&str]| {
        expect(
            &format!("sink orders |> select(id, discount, at) |> csv(\"o.csv\", schema: record {{ {fields} }})\n"),
            codes,
        );
    };
    sink("id: int64, discount: decimal(4, 2)?, at: datetime", &[]);
    sink("id: date, discount: decimal(4, 2)?, at: datetime", &["E0503"]);
    sink("id: int64, discount: decimal(4, 2), at: datetime", &["E0452"]);
    sink("id: int64, discount: decimal(4, 2)?", &["E0451"]);
    sink("id: int64, discount: decimal(4, 2)?, att: datetime", &["E0450"]);
}

#[test]
fn keys_and_orders_need_fitting_types() {
    let source = "source j = jsonl(\"j.jsonl\", schema: record { id: int64, data: json })\n";
    expect(
        &format!("{source}sink {{ orders |> print() j |> aggregate(by: [data], n: count()) |> print() }}\n"),
        &["E0453"],
    );
    expect(&format!("{source}sink {{ orders |> print() j |> sort(data) |> print() }}\n"), &["E0454"]);
}

#[test]
fn names_in_an_output_are_distinct() {
    expect("sink orders |> select(id, id) |> print()\n", &["E0403"]);
    expect("sink orders |> rename(id: user_id) |> print()\n", &["E0403"]);
    expect("sink orders |> aggregate(by: [id], id: count()) |> print()\n", &["E0403"]);
    expect("sink orders |> select(id) |> drop(id) |> print()\n", &["E0456"]);
}
