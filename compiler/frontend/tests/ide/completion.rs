//! Completion: what is offered at a place, in which order, and that nothing else is.

use std::path::Path;

use dfc_compiler::ide::{Completion, CompletionKind as Kind, completion};

use crate::{MAIN, at, of};

fn all(text: &str) -> Vec<Completion> {
    let (compiler, cursors) = at(text);
    completion(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0])
}

/// The labels of one kind, in order.
fn of_kind(text: &str, kind: Kind) -> Vec<String> {
    all(text).into_iter().filter(|c| c.kind == kind).map(|c| c.label).collect()
}

fn fields(text: &str) -> Vec<String> {
    of_kind(text, Kind::Field)
}

/// Every label.
fn labels(text: &str) -> Vec<String> {
    all(text).into_iter().map(|c| c.label).collect()
}

fn one(text: &str, label: &str) -> Completion {
    let found = all(text);
    let labels: Vec<String> = found.iter().map(|c| c.label.clone()).collect();
    found.into_iter().find(|c| c.label == label).unwrap_or_else(|| panic!("no {label} among {labels:?}"))
}

#[test]
fn fields_at_this_point_of_the_chain() {
    let row = ["id", "user_id", "status", "price", "discount", "at"];
    assert_eq!(fields("stream a = orders |> filter($0)\n"), row);
    assert_eq!(fields("stream a = orders |> select(id, total: price) |> filter($0 > 1)\n"), ["id", "total"]);
    assert_eq!(
        fields("stream a = orders |> derive(revenue: price * 2) |> drop(price, at) |> filter(id > 1 and $0"),
        ["id", "user_id", "status", "discount", "revenue"]
    );
    assert_eq!(
        fields("stream a = orders |> aggregate(by: [user_id], total: sum(price)) |> filter($0)"),
        ["user_id", "total"]
    );
    let detail = one("stream a = orders |> filter($0)\n", "discount");
    assert_eq!(detail.detail.as_deref(), Some("decimal(4, 2)?"));
}

#[test]
fn fields_in_a_link_that_is_half_written() {
    assert_eq!(fields("stream a = orders |> filter(pri$0"), ["price"]);
    assert_eq!(fields("stream a = orders |> filter(status == \"x\" and pr$0\nsink a |> print()\n"), ["price"]);
    assert_eq!(fields("stream a = orders\n    |> filter(id > $0\n    |> select(id)\nsink a |> print()\n"), {
        ["id", "user_id", "price", "discount", "status", "at"]
    });
    // A link before it is broken: what it would have done is not known.
    assert!(fields("stream a = orders |> derive(x: ) |> filter($0)\n").contains(&"price".to_string()));
}

#[test]
fn fields_of_a_stream_whose_text_is_broken_now() {
    let (mut compiler, cursors) = at("stream a = orders |> select(id, total: price)\nstream b = a |> filter($0)\n");
    let main = Path::new(MAIN);
    let names = |compiler: &dfc_compiler::Compiler, offset| -> Vec<String> {
        let found = completion(compiler, main, main, offset);
        found.into_iter().filter(|c| c.kind == Kind::Field).map(|c| c.label).collect()
    };
    assert_eq!(names(&compiler, cursors[0]), ["id", "total"]);
    let text = crate::text(&compiler);
    let broken = text.replace("select(id, total: price)", "select(id, total: price");
    compiler.set_file(main, broken);
    assert_eq!(names(&compiler, cursors[0] - 1), ["id", "total"]);
}

#[test]
fn fields_stand_in_backticks_where_they_have_to() {
    let text = "source s = csv(\"s.csv\", schema: record { `order id`: int64 })\nstream a = s |> filter($0)\n";
    assert_eq!(one(text, "order id").insert, "`order id`");
}

#[test]
fn both_sides_of_a_join() {
    let on = "stream a = orders |> join(users, on: $0)\n";
    let found = labels(on);
    for wanted in ["user_id", "name", "country", "left.id", "right.id", "id", "left", "right"] {
        assert!(found.contains(&wanted.to_string()), "{wanted}: {found:?}");
    }
    assert_eq!(fields("stream a = orders |> join(users, on: user_id == right.$0)\n"), ["id", "name", "country"]);
    assert_eq!(labels("stream a = orders |> join(users, on: user_id == right.$0)\n").len(), 3);
    assert_eq!(
        fields("stream a = orders |> join(users, on: left.$0 == right.id)\n"),
        ["id", "user_id", "status", "price", "discount", "at"]
    );
    assert_eq!(
        fields("stream a = orders |> lookup(csv(\"u.csv\", schema: User), on: user_id == right.id, take: [na$0])\n"),
        ["name"]
    );
    assert_eq!(fields("stream a = orders |> join(users |> select(id, nick: name), on: id, take: [$0"), ["id", "nick"]);
    // The chain inside an argument has its own fields.
    assert_eq!(fields("stream a = orders |> join(users |> filter($0), on: id)\n"), ["id", "name", "country"]);
}

#[test]
fn fields_of_records() {
    let text = "source s = jsonl(\"s\", schema: record { a: record { b: record { c: int64 }, d: string } })\n";
    assert_eq!(fields(&format!("{text}stream x = s |> filter(a.$0)\n")), ["b", "d"]);
    assert_eq!(fields(&format!("{text}stream x = s |> filter(a.b.$0)\n")), ["c"]);
}

#[test]
fn operators_by_role() {
    let links = labels("stream a = orders |> $0\n");
    for wanted in ["filter", "derive", "select", "aggregate", "join", "lookup"] {
        assert!(links.contains(&wanted.to_string()), "{wanted}");
    }
    for other in ["csv", "print", "union", "id", "orders"] {
        assert!(!links.contains(&other.to_string()), "{other}");
    }
    let sinks = labels("sink orders |> $0\n");
    assert!(sinks.contains(&"print".to_string()) && sinks.contains(&"filter".to_string()));
    let sinks = labels("sink {\n    orders |> print()\n    users |> $0\n}\n");
    assert!(sinks.contains(&"print".to_string()) && sinks.contains(&"filter".to_string()));
    let sources = labels("source s = $0\n");
    assert!(sources.contains(&"csv".to_string()) && sources.contains(&"jsonl".to_string()));
    assert!(!sources.contains(&"print".to_string()) && !sources.contains(&"orders".to_string()));
    let filter = one("stream a = orders |> fil$0\n", "filter");
    assert_eq!(filter.insert, "filter($1)");
    assert!(filter.doc.expect("doc").contains("Keeps the rows"));
    // The brackets are there already.
    assert_eq!(one("stream a = orders |> fil$0(id > 1)\n", "filter").insert, "filter");
    assert_eq!(labels("stream a = orders |> join(users |> sel$0, on: id)\n"), ["select"]);
}

#[test]
fn heads_of_chains() {
    let found = labels("stream a = $0\n");
    assert_eq!(found, ["orders", "users", "union"]);
    assert_eq!(labels("sink $0\n"), ["orders", "users", "union"]);
    assert_eq!(
        of_kind("stream b = orders\nstream a = orders |> join($0, on: id)\n", Kind::Stream),
        ["b", "orders", "users"]
    );
    let table = labels("stream a = orders |> lookup($0, on: id)\n");
    assert!(table.contains(&"csv".to_string()) && table.contains(&"users".to_string()));
    assert_eq!(of_kind("stream b = orders\nstream a = union(b, $0)\n", Kind::Stream), ["b", "orders", "users"]);
    // A stream doesn't read itself.
    assert_eq!(of_kind("stream a = $0\nsink a |> print()\n", Kind::Stream), ["orders", "users"]);
}

#[test]
fn parameters_that_are_not_given_yet() {
    let parameters = |text: &str| of_kind(text, Kind::Parameter);
    let csv = parameters("source s = csv(\"s.csv\", $0)\n");
    assert!(csv.contains(&"schema".to_string()) && csv.contains(&"header".to_string()));
    assert!(!csv.contains(&"path".to_string()));
    let csv = parameters("source s = csv(\"s.csv\", header: true, $0, nulls: \"\")\n");
    assert!(!csv.contains(&"header".to_string()) && !csv.contains(&"nulls".to_string()));
    let delimiter = one("source s = csv(\"s.csv\", $0)\n", "delimiter");
    assert_eq!(delimiter.detail.as_deref(), Some("string = \",\" range 1..16"));
    assert_eq!(delimiter.insert, "delimiter: \"$1\"");
    assert!(delimiter.doc.expect("doc").contains("between two fields"));
    // What has to be given comes first.
    assert_eq!(labels("stream a = orders |> join(users, $0)\n")[0], "on");
    assert_eq!(parameters("stream a = orders |> aggregate($0)\n"), ["by"]);
    assert_eq!(parameters("stream a = orders |> aggregate(by: [id], n: count(), $0)\n"), Vec::<String>::new());
    assert_eq!(parameters("stream a = orders |> aggregate(by: [id], n: sum(price, $0))\n"), ["where"]);
}

#[test]
fn names_that_a_parameter_takes() {
    assert_eq!(labels("source s = csv(\"s.csv\", schema: Order, encoding: $0)\n"), ["gbk", "latin1", "utf8"]);
    assert_eq!(labels("stream a = orders |> join(users, on: id, kind: l$0)\n"), ["left", "full"]);
    assert_eq!(labels("stream a = orders |> sort(desc(id, nulls: $0))\n"), ["first", "last"]);
    assert_eq!(labels("source s = csv(\"s.csv\", schema: Order, header: $0)\n")[..2], ["true", "false"]);
    assert_eq!(one("stream a = union(orders, orders, fill: $0)\n", "null").insert, "null");
}

#[test]
fn nothing_of_rows_where_no_row_is() {
    for text in [
        "source s = csv(\"s.csv\", schema: Order, delimiter: $0)\n",
        "stream a = orders |> take($0)\n",
        "param x: int64 = $0\n",
        "const x: int64 = $0\n",
        "job other { parallelism: $0 }\n",
    ] {
        assert_eq!(fields(text), Vec::<String>::new(), "{text}");
    }
    assert!(labels("const limit = 10\nstream a = orders |> take($0)\n").contains(&"limit".to_string()));
    // What fits the type comes first.
    let found = of_kind("const limit = 10\nconst name = \"x\"\nstream a = orders |> take($0)\n", Kind::Const);
    assert_eq!(found, ["limit", "vat", "name"]);
}

#[test]
fn what_fits_the_type_comes_first() {
    assert_eq!(fields("stream a = orders |> derive(x: upper($0))\n")[0], "status");
    assert_eq!(fields("stream a = orders |> aggregate(x: sum($0))\n")[..4], ["id", "user_id", "price", "discount"]);
    assert_eq!(fields("stream a = orders |> filter(\"x\" == $0)\n")[0], "status");
    assert_eq!(fields("stream a = orders |> filter(since <= $0)\n")[0], "at");
}

#[test]
fn functions_with_their_documentation() {
    let upper = one("stream a = orders |> derive(x: upp$0)\n", "upper");
    assert_eq!(upper.detail.as_deref(), Some("upper(s: string) -> string"));
    assert!(upper.doc.expect("doc").contains("capital letters"));
    assert_eq!(upper.insert, "upper($1)");
    assert_eq!(one("stream a = orders |> derive(x: now$0)\n", "now").insert, "now()");
    let net = one("stream a = orders |> derive(x: ne$0)\n", "net");
    assert_eq!(net.detail.as_deref(), Some("net(price: decimal(15, 2), discount: decimal(4, 2)?) -> decimal(21, 4)"));
    assert_eq!(net.doc.as_deref(), Some("The price without the discount."));
    // Aggregates only where rows are grouped.
    assert!(!labels("stream a = orders |> derive(x: su$0)\n").contains(&"sum".to_string()));
    let aggregates = labels("stream a = orders |> aggregate(by: [user_id], x: $0)\n");
    assert!(aggregates.contains(&"sum".to_string()) && aggregates.contains(&"user_id".to_string()));
    assert!(!aggregates.contains(&"price".to_string()));
    assert!(!labels("stream a = orders |> aggregate(x: sum(co$0))\n").contains(&"count".to_string()));
}

#[test]
fn parameters_of_a_function_in_its_body() {
    let found = of_kind("fn f(first: int64, other: string?) = $0\n", Kind::Param);
    assert_eq!(found[..2], ["first", "other"]);
    assert_eq!(fields("fn f(first: int64) = $0\n"), Vec::<String>::new());
}

#[test]
fn types() {
    let found = labels("record R { a: $0 }\n");
    assert!(found.contains(&"int64".to_string()) && found.contains(&"Order".to_string()));
    assert!(!found.contains(&"orders".to_string()));
    for text in [
        "param x: $0\n",
        "const x: $0 = 1\n",
        "fn f(a: $0) = a\n",
        "fn f(a: int64) -> $0 = a\n",
        "stream a = orders |> derive(x: price as $0)\n",
        "stream a = orders |> derive(x: price as? $0)\n",
        "source s = jsonl(\"x\", schema: record { a: list<$0 })\n",
    ] {
        assert!(labels(text).contains(&"string".to_string()), "{text}");
    }
    assert_eq!(labels("source s = csv(\"s.csv\", schema: $0)\n"), ["Order", "User", "record"]);
    assert_eq!(one("record R { a: dec$0 }\n", "decimal").insert, "decimal(${1:18}, ${2:2})");
}

#[test]
fn items_and_settings() {
    let items = labels("$0");
    for wanted in ["param", "const", "record", "source", "stream", "sink", "fn", "use"] {
        assert!(items.contains(&wanted.to_string()), "{wanted}: {items:?}");
    }
    assert!(!items.contains(&"orders".to_string()));
    assert!(labels("stream a = orders |> filter(id > 1)\nsi$0\n").contains(&"sink".to_string()));
    assert_eq!(labels("stream $0\n"), Vec::<String>::new());
    let (compiler, cursors) = of(&[(MAIN, "job x {\n    parallelism: 4\n    $0\n}\n")]);
    let found = completion(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]);
    let labels: Vec<&str> = found.iter().map(|c| c.label.as_str()).collect();
    assert!(labels.contains(&"errors") && labels.contains(&"checkpoint"), "{labels:?}");
    assert!(!labels.contains(&"parallelism"));
    let (compiler, cursors) = of(&[(MAIN, "job x { errors { limit: 3, $0 } }\n")]);
    let found = completion(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]);
    let labels: Vec<&str> = found.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["ratio", "to"]);
    assert!(found[0].doc.is_some());
}

#[test]
fn nothing_in_comments_texts_and_numbers() {
    for text in [
        "// $0\n",
        "/// $0\nstream a = orders\n",
        "const x = \"or$0\"\n",
        "const x = 1$0\n",
        "const x = @2026-01$0\n",
        "stream a = orders |> filter(id > 10$0)\n",
    ] {
        assert_eq!(labels(text), Vec::<String>::new(), "{text}");
    }
    // But in the code of a format string.
    assert_eq!(fields("stream a = orders |> derive(x: f\"{sta$0}-{id}\")\n"), ["status"]);
    assert_eq!(fields("stream a = orders |> derive(x: f\"sta$0\")\n"), Vec::<String>::new());
}

#[test]
fn words_behind_a_value() {
    let found = labels("stream a = orders |> filter(id > 1 a$0)\n");
    assert!(found.contains(&"and".to_string()) && !found.contains(&"at".to_string()), "{found:?}");
    let found = labels("stream a = orders |> filter(discount is $0)\n");
    assert_eq!(found, ["null", "not null"]);
    assert!(labels("stream a = orders |> derive(x: price $0)\n").contains(&"as".to_string()));
}

#[test]
fn files_of_the_project() {
    let listed = |written: &str| -> Vec<(String, String)> {
        let text = format!("source s = csv(\"{written}$0\", schema: record {{ a: int64 }})\n");
        let files = [
            ("p/sub/main.df", text.as_str()),
            ("p/sub/orders.csv", ""),
            ("p/sub/data/one.csv", ""),
            ("p/sub/data/two.csv", ""),
            ("p/outside.csv", ""),
            ("p/sub/.hidden", ""),
        ];
        let (compiler, cursors) = of(&files);
        let main = Path::new("p/sub/main.df");
        completion(&compiler, main, main, cursors[0]).into_iter().map(|c| (c.label, c.insert)).collect()
    };
    let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
    assert_eq!(listed(""), [pair("data", "data/"), pair("main.df", "main.df"), pair("orders.csv", "orders.csv")]);
    assert_eq!(listed("data/"), [pair("one.csv", "one.csv"), pair("two.csv", "two.csv")]);
    assert_eq!(listed("data/t"), [pair("two.csv", "two.csv")]);
    assert_eq!(listed("./data/"), [pair("one.csv", "one.csv"), pair("two.csv", "two.csv")]);
    // Not outside of the project's folder.
    assert_eq!(listed("../"), []);
    assert_eq!(listed("/"), []);
    assert_eq!(listed("s3://bucket/"), []);
}

#[test]
fn files_to_use() {
    let files = [("p/main.df", "use \"$0\"\n"), ("p/lib.df", ""), ("p/data.csv", "")];
    let (compiler, cursors) = of(&files);
    let found = completion(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]);
    let labels: Vec<&str> = found.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["lib.df", "main.df"]);
}

#[test]
fn branches_of_an_if() {
    let list = |text: &str| labels(&format!("stream a = orders |> derive(x: if {text})\n"));
    let has = |text: &str, label: &str| list(text).iter().any(|l| l == label);
    assert!(has("id > 1 $0", "then") && !has("id > 1 $0", "else"));
    assert!(has("id > 1 th$0", "then"));
    assert!(has("id > 1 then $0", "status") && !has("id > 1 then $0", "and"));
    assert!(has("id > 1 then sta$0", "status"));
    assert!(has("id > 1 then status $0", "else") && !has("id > 1 then status $0", "then"));
    assert!(has("id > 1 then (if id > 2 then status else status) $0", "else"));
    assert!(has("id > 1 then status else $0", "status"));
    assert!(!has("id > 1 then status else status $0", "else"));
}

#[test]
fn lists_of_fields() {
    assert_eq!(
        fields("stream a = orders |> aggregate(by: [id, $0], n: count())\n"),
        ["user_id", "status", "price", "discount", "at"]
    );
    assert_eq!(fields("stream a = orders |> drop(id, $0)\n"), ["user_id", "status", "price", "discount", "at"]);
    assert_eq!(one("stream a = orders |> rename($0)\n", "price").insert, "${1:new_name}: price");
    assert_eq!(one("stream a = orders |> aggregate(by: $0)\n", "status").insert, "[status]");
    assert!(labels("stream a = orders |> aggregate(by: [day: da$0])\n").contains(&"date".to_string()));
    assert_eq!(one("stream a = orders |> cast($0)\n", "id").insert, "id as ${1:int64}");
    assert_eq!(one("stream a = orders |> derive($0)\n", "price").insert, "price: $0");
}

#[test]
fn the_word_under_way_is_replaced() {
    let (compiler, cursors) = at("stream a = orders |> filter(pr$0ice > 1)\n");
    let found = completion(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]);
    let text = crate::text(&compiler);
    assert_eq!(&text[found[0].range.start..found[0].range.end], "price");
    let (compiler, cursors) = at("stream a = orders |> filter($0price > 1)\n");
    let found = completion(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]);
    assert_eq!(found[0].range.start, found[0].range.end);
}

#[test]
fn operators_of_ones_own() {
    let total = "/// Adds up.\noperator running(amount: row decimal(18, 2), key: row any) -> input + { total: decimal(38, 2) } {\n    \
        state total: decimal(38, 2) = 0 by [key]\n    on row { total = $0; emit { ...row, total: total }; }\n}\n";
    let inside = of_kind(total, Kind::Param);
    assert_eq!(inside[..3], ["total", "amount", "key"]);
    let whole = total.replace("$0", "total + amount");
    let call = format!("{whole}stream a = orders |> runn$0\n");
    assert_eq!(one(&call, "running").doc.as_deref(), Some("Adds up."));
    let args = labels(&format!("{whole}stream a = orders |> running($0)\n"));
    assert_eq!(args[0], "key");
    assert!(args.contains(&"amount".to_string()) && args.contains(&"price".to_string()));
    let statements = labels(&total.replace("total = $0;", "$0"));
    assert!(statements.contains(&"emit".to_string()) && !statements.contains(&"on row".to_string()), "{statements:?}");
}
