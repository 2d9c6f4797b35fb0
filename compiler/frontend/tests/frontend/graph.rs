//! The graph: cycles, names, what nothing reads, sources and sinks in their places (D6).

use crate::{HEAD, check, expect};

#[test]
fn a_cycle_is_spelled_out_once() {
    let text = "stream a = union(orders, b)\nstream b = a |> filter(id > 1)\nsink b |> print()\n";
    expect(text, &["E0301"]);
    let checked = check(&format!("{HEAD}{text}"));
    assert!(checked.diagnostics[0].message.contains("`a` → `b` → `a`"), "{}", checked.diagnostics[0].message);
}

#[test]
fn a_stream_that_reads_itself() {
    expect("stream a = a |> filter(x > 1)\nstream b = orders |> take(1)\nsink b |> print()\n", &["E0301"]);
}

#[test]
fn an_unknown_stream_does_not_leave_the_meant_one_unread() {
    expect("sink ordrs |> print()\n", &["E0302"]);
}

#[test]
fn what_nothing_reads() {
    expect("stream a = orders |> take(1)\nsink orders |> print()\n", &["E0303"]);
    expect("source b = csv(\"b.csv\", schema: Order)\nsink orders |> print()\n", &["E0304"]);
}

#[test]
fn sources_and_sinks_in_the_middle() {
    expect("stream a = orders |> csv(\"u.csv\", schema: User) |> take(1)\nsink a |> print()\n", &["E0305"]);
    expect("stream a = orders |> print() |> take(1)\nsink a |> print()\n", &["E0306"]);
    expect("stream a = csv(\"u.csv\", schema: User) |> take(1)\nsink { a |> print() orders |> print() }\n", &["E0307"]);
    expect("source a = csv(\"u.csv\", schema: User) |> take(1)\nsink { a |> print() orders |> print() }\n", &["E0308"]);
    expect("source a = orders\nsink { a |> print() }\n", &["E0308"]);
    expect("sink orders |> take(1)\n", &["E0309"]);
    expect("sink orders\n", &["E0309"]);
    expect("stream a = orders |> csv(\"out.csv\")\n", &["E0310"]);
    expect("stream a = filter(id > 1)\nsink { a |> print() orders |> print() }\n", &["E0314"]);
}

#[test]
fn a_job_has_one_sink_and_a_source() {
    expect("stream a = orders |> take(1)\n", &["E0311"]);
    expect("sink { }\n", &["E0311"]);
    expect("sink orders |> print()\nsink orders |> discard()\n", &["E0312"]);
    let codes: Vec<_> =
        check("job j {}\nstream a = b\nsink a |> print()\n").diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E0302"]);
    let codes: Vec<_> = check("job j {}\nsink {}\n").diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E0311"]);
}

#[test]
fn a_library_needs_no_sink() {
    let codes: Vec<_> =
        check("record R { id: int64 }\nfn f(x: int64) = x + 1\n").diagnostics.iter().map(|d| d.code).collect();
    assert!(codes.is_empty(), "{codes:?}");
}

#[test]
fn operators_of_later_versions_are_refused_by_name() {
    expect("stream a = orders |> unnest(id)\nsink a |> print()\n", &["E0220"]);
    expect("sink orders |> kafka(topic: \"x\")\n", &["E0220"]);
    expect("stream a = rejected(orders)\nsink { a |> print() orders |> print() }\n", &["E0220"]);
    expect("source k = kafka(topic: \"x\")\nsink { k |> print() orders |> print() }\n", &["E0220"]);
}

/// D6: unique paths where an operator demands them.
#[test]
fn rows_come_into_a_union_by_one_path() {
    expect("sink union(orders, orders) |> print()\n", &["E0317"]);
    expect("stream a = orders\nstream b = a\nsink union(orders, b) |> print()\n", &["E0317"]);
    // Each of two ways that end in one stream.
    let two = "stream a = orders\nstream b = orders\n";
    expect(&format!("{two}sink union(a, b) |> print()\n"), &["E0317"]);
    // A union of unions, and one inside another.
    let more = "source more = csv(\"more.csv\", schema: Order)\n";
    expect(&format!("{more}stream all = union(orders, more)\nsink union(all, more) |> print()\n"), &["E0317"]);
    expect(&format!("{more}sink union(union(orders, more), more) |> print()\n"), &["E0317"]);
    expect(&format!("{more}sink union(orders, more, orders, orders) |> print()\n"), &["E0317", "E0317"]);
    // Rows that an operator has changed or chosen are others.
    expect("sink union(orders, orders |> filter(id > 1)) |> print()\n", &[]);
    expect("sink union(orders |> derive(x: 1), orders |> derive(x: 2)) |> print()\n", &[]);
    expect(&format!("{more}stream a = orders |> take(9)\nsink union(a, orders, more) |> print()\n"), &[]);
    // A circle is one mistake, and so is a name that isn't there.
    expect("stream a = union(orders, a)\nstream b = union(a, orders)\nsink b |> print()\n", &["E0301"]);
    expect("sink union(orders, ordres) |> print()\n", &["E0302"]);
}

/// One mistake, one message: what an operator that isn't there would have read isn't called unread.
#[test]
fn a_stream_named_for_an_unknown_operator_is_not_unread() {
    let users = "source users = csv(\"u.csv\", schema: User)\n";
    for (chain, code) in [
        ("orders |> lokup(users, on: id)", "E0401"),
        ("orders |> lokup(users |> take(3), on: id)", "E0401"),
        ("unoin(orders, users)", "E0401"),
        ("orders |> join(with: users, on: id)", "E0601"),
        ("orders |> join(other: users |> take(3), on: id)", "E0601"),
    ] {
        expect(&format!("{users}sink {chain} |> print()\n"), &[code]);
    }
}

#[test]
fn what_is_declared_and_never_used() {
    let declared =
        "param since: date = @2026-01-01\nconst vat = 0.19\nrecord Line { id: int64 }\nfn net(x: int64) = x - 1\n";
    expect(&format!("{declared}sink orders |> print()\n"), &["W0403"; 4]);
    let used = "source lines = csv(\"l.csv\", schema: Line)\n\
        stream a = lines |> derive(start: since, net: net(id), vat: vat)\nsink { a |> print() orders |> discard() }\n";
    expect(&format!("{declared}{used}"), &[]);
    // Used by a declaration that is used; what an unused one uses counts as used.
    expect("const a = 1\nconst b = a + 1\nsink orders |> filter(id > b) |> print()\n", &[]);
    expect("const a = 1\nconst b = a + 1\nsink orders |> print()\n", &["W0403"]);
    // A stream of the same name is no use of it, wherever a stream is read; beside streams its name counts.
    let users = "source users = csv(\"u.csv\", schema: User)\nparam users: int64 = 1\n";
    for read in [
        "sink { orders |> join(users, on: user_id == right.id) |> discard() users |> print() }",
        "sink { orders |> lookup(users, on: user_id == right.id) |> discard() users |> print() }",
        "sink { union(users, users |> filter(id > 1)) |> discard() orders |> print() }",
        "sink { orders |> join(users |> take(1), on: user_id == right.id) |> discard() }",
    ] {
        expect(&format!("{users}{read}\n"), &["W0403"]);
        expect(&format!("{users}{}\n", read.replacen("orders |>", "orders |> filter(user_id > users) |>", 1)), &[]);
    }
    // In settings, types of parameters and results, formats, other declarations, bodies of operators.
    for (declared, used) in [
        ("param tasks: int64 = 2", "job j { parallelism: tasks }"),
        ("const who = \"a\"", "sink orders |> derive(x: f\"{who}-{id}\") |> print()"),
        (
            "record A { x: int64 }",
            "record B { a: A }\nsource c = jsonl(\"c.jsonl\", schema: B)\nsink { c |> discard() orders |> print() }",
        ),
        ("record A { x: int64 }", "fn f(a: A) = a.x\nsink orders |> derive(y: f({ x: id })) |> print()"),
        (
            "const start = 1",
            "operator o(x: row int64) -> input { state n: int64 = start by [x]\n on row { emit row; } }\nsink orders |> o(x: id) |> print()",
        ),
    ] {
        let text = format!("{HEAD}{declared}\n{used}\n");
        let text = if used.starts_with("job") {
            text.replace("job example {}", "") + "sink orders |> print()\n"
        } else {
            text
        };
        let found = check(&text).diagnostics;
        assert!(found.iter().all(|problem| problem.code != "W0403"), "{text}{found:?}");
    }
    // Nothing is said where a name with a mistake may have meant it, in a library, and where a comment allows it.
    expect("param since: date = @2026-01-01\nsink orders |> filter(date(at) > sinze) |> print()\n", &["E0410"]);
    expect("const a = 1 // allow W0403: for later\nsink orders |> print()\n", &[]);
    let library = crate::compiler(&[
        ("main.df", &format!("{HEAD}use \"lib.df\"\nsink orders |> print()\n")),
        ("lib.df", "const a = 1\nrecord A { x: int64 }\nfn f(x: int64) = x\n"),
    ]);
    for root in ["main.df", "lib.df"] {
        let found = library.check(std::path::Path::new(root)).diagnostics;
        assert!(found.is_empty(), "{root}: {found:?}");
    }
    // A library may read what the pipeline declares.
    let back = crate::compiler(&[
        ("main.df", &format!("{HEAD}use \"lib.df\"\nconst a = 1\nsink orders |> filter(f(id) > 1) |> print()\n")),
        ("lib.df", "fn f(x: int64) = x + a\n"),
    ]);
    let found = back.check(std::path::Path::new("main.df")).diagnostics;
    assert!(found.is_empty(), "{found:?}");
}
