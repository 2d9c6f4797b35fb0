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
