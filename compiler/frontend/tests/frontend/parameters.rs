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
