//! `dfc checkpoint show --state` (D17, D18): what operators hold, as JSON, of a checkpoint that a running job took.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{binary, dfc, folder, read, write};

const PIPELINE: &str = "job p { parallelism: 2, checkpoint { interval: 20ms } }
record R { id: int64, k: int64, v: decimal(10, 2) }
record S { k: int64, name: string }
source rows = csv(\"in.csv\", schema: R)
source names = csv(\"names.csv\", schema: S)
sink {
    rows |> aggregate(by: [k], n: count(), total: sum(v), ids: count_distinct(id)) |> csv(\"groups.csv\")
    rows |> distinct(by: [k]) |> csv(\"once.csv\")
    rows |> join(names, on: k, kind: left) |> csv(\"named.csv\")
}
";

/// What the newest checkpoint shows; `None`: it was removed meanwhile, or there is none.
fn shown(dir: &std::path::Path) -> Option<Value> {
    let output = dfc(dir, &["checkpoint", "show", "p.df", "--state"]);
    (output.code == 0)
        .then(|| serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", output.stdout)))
}

/// The entries of a kind, of all operators and tasks.
fn entries(state: &Value, kind: &str) -> Vec<Value> {
    let all = state["state"].as_array().expect("a list").iter().filter(|operator| operator["kind"] == kind);
    all.flat_map(|operator| operator["entries"].as_array().expect("entries").clone()).collect()
}

#[test]
fn groups_keys_and_join_rows_are_shown() {
    let rows: String = (0..1_000_000).map(|id| format!("{id},{},{}.25\n", id % 997, id % 50)).collect();
    let names: String = (0..500).map(|k| format!("{k},name {k}\n")).collect();
    let dir = folder(&[
        ("p.df", PIPELINE),
        ("in.csv", &format!("id,k,v\n{rows}")),
        ("names.csv", &format!("k,name\n{names}")),
    ]);
    let mut command = binary();
    command.current_dir(dir.path()).args(["run", "p.df"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("dfc starts");
    let begun = Instant::now();
    // Until a checkpoint in the midst of the rows stands.
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint with groups was taken");
        std::thread::sleep(Duration::from_millis(50));
        if shown(dir.path()).is_some_and(|state| !entries(&state, "groups").is_empty()) {
            break;
        }
    }
    child.kill().expect("the test's own child is killed");
    child.wait().expect("it ends");
    let state = shown(dir.path()).expect("the newest checkpoint stays");
    let read_rows =
        state["sources"].as_array().expect("sources").iter().find(|s| s["node"] == "rows").expect("rows")["rows"]
            .as_u64();
    // Groups count what the source had given at the barrier, neither more nor less.
    let groups = entries(&state, "groups");
    let n: u64 = groups.iter().map(|group| group["so_far"]["n"].as_u64().expect("a count")).sum();
    assert_eq!(Some(n), read_rows);
    let ids: u64 = groups.iter().map(|group| group["so_far"]["ids"].as_u64().expect("a count")).sum();
    assert_eq!(ids, n, "every id is another");
    let group = &groups[0];
    assert!(group["key"]["k"].is_i64() && group["so_far"]["total"].is_string(), "{group}");
    let seen: BTreeSet<i64> = entries(&state, "seen").iter().map(|key| key["k"].as_i64().expect("a key")).collect();
    assert!(!seen.is_empty() && seen.iter().all(|k| (0..997).contains(k)), "{seen:?}");
    let build: BTreeSet<String> =
        entries(&state, "build").iter().map(|row| row["name"].as_str().expect("a name").into()).collect();
    assert!(!build.is_empty() && build.iter().all(|name| name.starts_with("name ")), "{build:?}");

    // Another pipeline doesn't know what the state means.
    write(&dir.path().join("p.df"), &read(&dir.path().join("p.df")).replace("sum(v)", "max(v)"));
    let state = shown(dir.path()).expect("it is shown all the same");
    let operator = &state["state"][0];
    assert!(
        operator["not_shown"].as_str().is_some_and(|why| why.contains("the pipeline has changed since")),
        "{operator}"
    );
    assert!(operator["parts"][0]["bytes"].is_u64(), "{operator}");
}
