//! The traps of production (F10) and the complaints (A1–A9), each with the right answer, with the real binary. What is shown elsewhere:
//!
//! | | test |
//! |---|---|
//! | F10 another parallelism on restore | `crash::kills`, every start with another one; `checkpoints` of the engine |
//! | F10 a full storage | the tests of `dfc-checkpoint` with a quota and with a disk that is full |
//! | F10 a half-written file | `cases::files` |
//! | F10 drift of columns, A3 | `cases::schemas`; the connectors' `Server::connect` at every reconnect |
//! | F10, F5 late rows, ties, nulls | `ties_that_are_committed_late_are_read` and its neighbours in the connectors |
//! | A2 a server that is away | `cases::databases::a_restart_of_the_server_needs_nobody` |
//! | F9 source against target | `cases::audit` |
//!
//! The others are here.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::databases::{psql, server, sqlite};
use crate::support::{binary, dfc, folder, read, run, write};

const COPY: &str = "job copy {}\nrecord R { id: int64, at: string }\n\
    source s = sqlite(\"a.db\", table: \"t\", schema: R, increment: at)\nsink s |> sqlite(\"b.db\", table: \"t\", create: if_missing)\n";

/// F10: a table without a key, an order without an index: refused before the first row, with the cure.
#[test]
fn no_key_and_no_index_are_refused_before_the_first_row() {
    for (table, cause, cure) in [
        (
            "CREATE TABLE t (id INTEGER NOT NULL, at TEXT NOT NULL)",
            "has no key that tells rows with the same `at` apart",
            "`tiebreak: [id]`",
        ),
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT NOT NULL)",
            "`at` of the table `t` has no index",
            "`CREATE INDEX ON",
        ),
    ] {
        let dir = folder(&[("p.df", COPY)]);
        sqlite(dir.path(), "a.db", &format!("{table};;INSERT INTO t VALUES (1, 'a')"));
        let output = dfc(dir.path(), &["run", "p.df"]);
        let said = &output.stderr;
        assert!(
            output.code == 1 && said.contains("error[R0233]") && said.contains(cause) && said.contains(cure),
            "{said}"
        );
    }
}

/// F10, A1: the time zone of server and session moves no position; the nightly second run takes what is new and nothing else.
#[test]
fn a_server_that_moves_to_another_zone_moves_no_position() {
    let Some(server) = server() else { return };
    let name = format!("zone_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    psql(
        &url,
        "CREATE TABLE a (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now()); CREATE INDEX ON a (at); CREATE TABLE b (id bigint, at timestamptz);
         INSERT INTO a SELECT i, now() - i * interval '1 hour' FROM generate_series(0, 47) i",
    );
    let dir = folder(&[(
        "p.df",
        "job zones {}\nrecord R { id: int64, at: timestamp }\nsource s = postgres(secret(\"PG_URL\"), table: \"a\", schema: R, increment: at)\n\
         sink s |> postgres(secret(\"PG_URL\"), table: \"b\")\n",
    )]);
    for (expected, zone) in (48..).zip(["UTC", "America/New_York", "Asia/Tokyo", "Pacific/Apia"]) {
        psql(&url, &format!("ALTER DATABASE {name} SET timezone = '{zone}'"));
        let output = run(binary().current_dir(dir.path()).env("PG_URL", &url).env("TZ", zone).args(["run", "p.df"]));
        assert_eq!(output.code, 0, "{zone}: {}", output.stderr);
        let counts = psql(&url, "SELECT count(*), count(DISTINCT id) FROM b");
        assert_eq!(counts, format!("{expected}|{expected}\n"), "{zone}");
        psql(&url, &format!("INSERT INTO a VALUES ({expected})"));
    }
    let differ = "SELECT count(*) FROM (TABLE b EXCEPT ALL TABLE a) q";
    assert_eq!(psql(&url, differ), "0\n", "the instants are the same");
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}

/// F10, A7: a compressed file can't be entered in the middle; it is read again up to there, exactly, and nobody claims otherwise.
#[test]
fn a_compressed_file_is_never_called_exact() {
    let rows: String = (0..1_500_000).map(|id| format!("{id},value {}\n", id % 977)).collect();
    let text = "job gz { checkpoint { interval: 20ms } }\nrecord R { id: int64, v: string }\n\
        source rows = csv(\"in.csv.gz\", schema: R)\nsink rows |> csv(\"out.csv\")\n";
    let dir = folder(&[("p.df", text), ("in.csv", &format!("id,v\n{rows}"))]);
    let packed = run(std::process::Command::new("gzip").arg("-k").arg(dir.path().join("in.csv")));
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    let mut command = binary();
    command.current_dir(dir.path()).args(["run", "p.df"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("dfc starts");
    let (manifests, begun) = (dir.path().join(".dfc/gz/manifests"), Instant::now());
    while std::fs::read_dir(&manifests).map_or(0, Iterator::count) < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint was taken");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("the test's own child is killed");
    child.wait().expect("it ends");
    let shown = dfc(dir.path(), &["checkpoint", "show", "p.df"]).stdout;
    assert!(shown.contains(": is read again up to there") && !shown.contains("goes on exactly there"), "{shown}");
    let output = dfc(dir.path(), &["run", "p.df"]);
    assert!(output.stderr.contains("what stands before is read again and left out"), "{}", output.stderr);
    assert!(read(&dir.path().join("out.csv")) == read(&dir.path().join("in.csv")), "the copy is another");
}

/// A1, A4, A9: the tool keeps the position between runs; the log has every operator's life and each epoch's; the status has the success rate
/// and the times.
#[test]
fn a_nightly_run_takes_what_is_new_and_can_be_followed() {
    let dir = folder(&[("p.df", COPY)]);
    sqlite(
        dir.path(),
        "a.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT NOT NULL);;CREATE INDEX i ON t (at);;INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    );
    let first = dfc(dir.path(), &["run", "p.df", "--log-format", "json"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let log: Vec<Value> = first.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let at = |event: &str, operator: Option<&str>| {
        let found =
            log.iter().position(|line| line["event"] == event && operator.is_none_or(|o| line["operator"] == o));
        found.unwrap_or_else(|| panic!("no `{event}` of {operator:?} in {}", first.stderr))
    };
    for operator in ["s", "sink.sqlite"] {
        let life = ["opened", "first_row", "closed"].map(|event| at(event, Some(operator)));
        assert!(life.is_sorted(), "{operator}: {life:?}");
    }
    let epoch = [at("started", None), at("staged", None), at("committed", Some("sink.sqlite")), at("finished", None)];
    assert!(epoch.is_sorted(), "{epoch:?}");
    // The second run takes the third row, the third run nothing.
    sqlite(dir.path(), "a.db", "INSERT INTO t VALUES (0, 'b')");
    for _ in 0..2 {
        let again = dfc(dir.path(), &["run", "p.df"]);
        assert!(again.code == 0 && again.stderr.starts_with("going on from checkpoint "), "{}", again.stderr);
        assert_eq!(sqlite(dir.path(), "b.db", "SELECT id FROM t ORDER BY id"), "0\n1\n2\n");
    }
    let status = dfc(dir.path(), &["status", "p.df", "--format", "json"]);
    let status: Value = serde_json::from_str(&status.stdout).expect("JSON");
    assert!(status["taken"].as_u64() >= Some(3) && status["taken"] == status["begun"], "{status}");
    assert!(
        status["median_ms"].is_u64()
            && status["longest_ms"].is_u64()
            && status["stops_us"]["p99"].is_u64()
            && status["last"]["age_seconds"].is_u64(),
        "{status}"
    );
}

/// A5: a date in another form is told with its place and the parameter that cures it; the form itself is tried before the run.
#[test]
fn dates_in_another_form_are_told_with_the_cure() {
    let text = "job days {}\nrecord R { day: date, n: int64 }\nsource s = csv(\"in.csv\", schema: R)\nsink s |> csv(\"out.csv\")\n";
    let dir = folder(&[("p.df", text), ("in.csv", "day,n\n31.01.2026,2\n")]);
    let output = dfc(dir.path(), &["run", "p.df"]);
    assert!(output.code == 1 && output.stderr.contains("`in.csv` line 2"), "{}", output.stderr);
    assert!(
        output.stderr.contains("`31.01.2026` is not a date") && output.stderr.contains("`date_format:`"),
        "{}",
        output.stderr
    );
    write(&dir.path().join("p.df"), &text.replace("schema: R", "schema: R, date_format: \"%d.%m.%Y\""));
    assert_eq!(dfc(dir.path(), &["run", "p.df"]).code, 0);
    assert_eq!(read(&dir.path().join("out.csv")), "day,n\n2026-01-31,2\n");
    write(&dir.path().join("p.df"), &text.replace("schema: R", "schema: R, date_format: \"%d.%m.%Q\""));
    let checked = dfc(dir.path(), &["check", "p.df"]);
    assert!(checked.code == 1 && checked.stderr.contains("%Q"), "{}", checked.stderr);
}

/// A6: a job at work shows how old its last checkpoint is and what a crash would cost.
#[test]
fn what_a_crash_would_cost_is_shown() {
    let text = "job slow { checkpoint { interval: 30ms } }\nrecord R { id: int64 }\nsource s = csv(\"in.csv\", schema: R)\n\
        sink s |> sqlite(\"b.db\", table: \"t\", create: if_missing, rate: 20000)\n";
    let rows: String = (0..200_000).map(|id| format!("{id}\n")).collect();
    let dir = folder(&[("p.df", text), ("in.csv", &format!("id\n{rows}"))]);
    let mut command = binary();
    command.current_dir(dir.path()).args(["run", "p.df"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("dfc starts");
    let begun = Instant::now();
    let stake = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is at stake");
        std::thread::sleep(Duration::from_millis(50));
        let status = dfc(dir.path(), &["status", "p.df", "--format", "json"]).stdout;
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        if status["at_stake"]["seconds"].is_u64() {
            break status;
        }
    };
    let _ = child.kill();
    child.wait().expect("it ends");
    assert!(stake["running"].is_object() && stake["last"]["number"].is_u64(), "{stake}");
}

/// A6: an interval that costs too much is said with what it costs, by the run and by `status`.
#[test]
fn what_checkpoints_cost_is_measured() {
    let text = "job often { checkpoint { interval: 1ms } }\nrecord R { n: int64 }\nsource s = generate(schema: R, rows: 30000000)\n\
        sink s |> aggregate(by: [k: n % 500000], n: count()) |> csv(\"out.csv\")\n";
    let dir = folder(&[("p.df", text)]);
    let output = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let note = output.stderr.lines().find(|line| line.contains(" % of the time a checkpoint was being taken ("));
    assert!(note.is_some_and(|note| note.contains("would make it about 5 %")), "{}", output.stderr);
    let status = dfc(dir.path(), &["status", "p.df"]).stdout;
    let cost = status.lines().find(|line| line.starts_with("  cost ")).expect("the cost is shown");
    assert!(cost.contains(" % of the time one is being taken; `interval: "), "{cost}");
}

/// A8: how many connections write has nothing to do with the job's parallelism.
#[test]
fn connections_are_their_own_setting() {
    let Some(server) = server() else { return };
    let name = format!("lanes_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    let rows: String = (0..60_000).map(|id| format!("{id}\n")).collect();
    let text = "job lanes { parallelism: 1 }\nrecord R { id: int64 }\nsource s = csv(\"in.csv\", schema: R)\n\
        sink s |> postgres(secret(\"PG_URL\"), table: \"b\", create: if_missing, connections: 3)\n";
    let dir = folder(&[("p.df", text), ("in.csv", &format!("id\n{rows}"))]);
    let output = run(binary().current_dir(dir.path()).env("PG_URL", &url).args(["run", "p.df"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(psql(&url, "SELECT count(*), count(DISTINCT id) FROM b"), "60000|60000\n");
    assert_eq!(psql(&url, "SELECT count(*) FROM _dfc_ledger"), "3\n", "an entry for each connection");
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}
