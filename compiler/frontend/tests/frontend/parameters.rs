//! Parameters against the declarations (D9).

use crate::{HEAD, check, expect};

#[test]
fn unknown_missing_twice() {
    expect("sink orders |> csv(\"o.csv\", delimitr: \";\")\n", &["E0601"]);
    expect("sink orders |> csv(header: true)\n", &["E0602"]);
    expect("sink orders |> csv(\"o.csv\", header: true, header: false)\n", &["E0603"]);
    expect("sink orders |> filter() |> print()\n", &["E0602"]);
    expect("sink orders |> select() |> print()\n", &["E0602"]);
    expect("sink orders |> discard(1)\n", &["E0609"]);
    expect("sink orders |> take(n: 1, 2) |> print()\n", &["E0607"]);
}

#[test]
fn names_of_other_tools_are_translated() {
    let help = |call: &str| {
        let checked = check(&format!("{HEAD}sink orders |> {call}\n"));
        checked.diagnostics.first().and_then(|d| d.help.clone()).unwrap_or_default()
    };
    assert!(help("csv(\"o.csv\", sep: \";\")").contains("`delimiter`"));
    assert!(help("csv(\"o.csv\", writeMode: overwrite)").contains("`mode`"));
    assert!(help("aggregate(group_by: [id], n: count()) |> print()").contains("`by`"));
    assert!(help("where(id > 1) |> print()").contains("filter"));
    assert!(help("csv(\"o.csv\", errorLimit: 5)").contains("errors { limit"));
}

#[test]
fn values() {
    expect("sink orders |> csv(\"o.csv\", mode: replace)\n", &["E0605"]);
    expect("sink orders |> csv(\"o.csv\", mode: \"append\")\n", &["E0605"]);
    expect("sink orders |> csv(\"o.csv\", quote: \"''\")\n", &["E0606"]);
    expect("sink orders |> csv(\"o.csv\", date_format: \"%Q\")\n", &["E0606"]);
    expect("sink orders |> csv(\"o.csv\", header: 1)\n", &["E0503"]);
    expect("sink orders |> take(-1) |> print()\n", &["E0606"]);
    expect("sink orders |> take(id) |> print()\n", &["E0410"]);
}

#[test]
fn schemas() {
    expect("source b = csv(\"b.csv\")\nsink { b |> print() orders |> print() }\n", &["E0703"]);
    expect("source b = csv(\"b.csv\", schema: Usr)\nsink { b |> print() orders |> print() }\n", &["E0423"]);
    expect("source b = csv(\"b.csv\", schema: int64)\nsink { b |> print() orders |> print() }\n", &["E0604"]);
    expect(
        "source b = csv(\"b.csv\", schema: record { t: list<string> })\nsink { b |> print() orders |> print() }\n",
        &["E0702"],
    );
    expect(
        "source b = jsonl(\"b.jsonl\", schema: record { t: list<string> })\nsink { b |> print() orders |> print() }\n",
        &[],
    );
}

#[test]
fn labels_are_asked_for() {
    expect("sink orders |> derive(price * 2) |> print()\n", &["E0611"]);
    expect("sink orders |> aggregate(by: [date(at)], n: count()) |> print()\n", &["E0611"]);
    expect("sink orders |> aggregate(by: id, n: count()) |> print()\n", &["E0612"]);
    expect("sink orders |> rename(id) |> print()\n", &["E0611"]);
    expect("sink orders |> cast(id) |> print()\n", &["E0612"]);
    expect("sink orders |> drop(\"id\") |> print()\n", &["E0612"]);
    expect("sink orders |> sort(desc(id, nulls: middle)) |> print()\n", &["E0615"]);
}

/// What no run could begin with is said before the start; of a parameter that has no value yet nothing is known but its type.
#[test]
fn what_no_run_could_begin_with() {
    let source = |call: &str| format!("source b = {call}\nsink {{ b |> csv(\"b/\") orders |> print() }}\n");
    for (call, code) in [
        ("csv(\"a\\u{0}.csv\", schema: User)", "E0606"),
        ("csv(f\"{folder}/\", schema: User)", "E0606"),
        ("csv(\".\", schema: User)", "E0606"),
        ("csv(\"file:///data/a.csv\", schema: User)", "E0606"),
        ("sqlite(\"-\", table: \"users\", schema: User)", "E0606"),
        ("sqlite(\"a.db\", table: \"\", schema: User)", "E0606"),
        ("sqlite(\"a.db\", table: \"t\", schema: User, increment: id, lag: 0s)", "E0606"),
        ("csv(\"*.csv\", schema: User, ready: marker, marker: \"\")", "E0606"),
        ("csv(\"*.csv\", schema: User, escape: \".\")", "E0606"),
        ("csv(\"*.csv\", schema: User, delimiter: \"a\\\\b\", escape: \"\\\\\")", "E0608"),
        ("csv(\"a.zst\", schema: User, follow: true)", "E0608"),
    ] {
        expect(
            &format!("const folder = \"data\" // allow W0403: not every source takes it\n{}", source(call)),
            &[code],
        );
    }
    for call in [
        "csv(\"a.csv.gz\", schema: User, follow: true, ready: age)",
        "csv(\"a.csv.gz\", schema: User, follow: true, compression: none)",
        "csv(\"./-\", schema: User)",
        "csv(\"-\", schema: User, follow: false)",
        "csv(\"a.csv\", schema: User, delimiter: \"\\\"\", quote: \"'\")",
        "postgres(\"postgres://me@h/x?sslmode=disable\", table: \"\\\"a.b\\\".\\\"c\\\"\\\"d\\\"\", schema: User)",
    ] {
        expect(&source(call), &[]);
    }
    let unknown = "param path: string\nparam mark: string\nparam every: duration\n";
    let call = "csv(path, schema: User, delimiter: mark, follow: true, poll: every)";
    expect(&format!("{unknown}{}", source(call)), &[]);
}
