//! `dfc drill` (F9, D20): kills a job on a scratch folder, or in a schema of its own, and says what was lost or repeated. The real targets
//! stay as they are.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::databases::{psql, server, sqlite};
use crate::support::{Output, binary, files_below, folder, run};

const RECORD: &str = "record R { id: int64, k: int64, v: decimal(10, 2) }\nsource rows = csv(\"in.csv\", schema: R)\n";

fn prepared(rows: u64, rest: &str) -> tempfile::TempDir {
    let mut text = String::from("id,k,v\n");
    (0..rows).for_each(|id| text.push_str(&format!("{id},{},{}.25\n", id * 7919 % 5_000, id % 100)));
    folder(&[("p.df", &format!("job drilled {{}}\n{RECORD}{rest}")), ("in.csv", &text)])
}

fn drill(dir: &Path, kills: &str, url: &str) -> Output {
    let mut command = binary();
    run(command.current_dir(dir).env("PG_URL", url).args(["drill", "p.df", "--kills", kills, "--seed", "3"]))
}

/// It ended well, and has compared so many rows.
fn nothing_lost(output: &Output, rows: &str) {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    for words in ["reads `rows` (", "without a kill: ", "lost rows: 0, repeated rows: 0"] {
        assert!(output.stdout.contains(words), "`{words}` is missing: {}", output.stdout);
    }
    assert!(!output.stdout.contains("went on from a checkpoint 0 times"), "{}", output.stdout);
    assert!(output.stdout.ends_with(&format!(" of {rows} compared\n")), "{}", output.stdout);
}

/// Into a file; what depends on the time can be compared too.
#[test]
fn a_drill_finds_nothing_lost() {
    let dir = prepared(400_000, "sink rows |> filter(v > 1) |> derive(at: now()) |> csv(\"out/kept.csv\")\n");
    let before = files_below(dir.path());
    let output = drill(dir.path(), "4", "");
    nothing_lost(&output, "396,000");
    // More often where it hasn't gone on from a checkpoint by then.
    let kills =
        output.stdout.lines().find_map(|line| line.strip_prefix("killed ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(kills.is_some_and(|kills| kills >= 4), "{}", output.stdout);
    assert_eq!(files_below(dir.path()), before, "targets and checkpoints are elsewhere");
}

/// Folders of parts, partitions and Parquet are read back; rejected rows are compared too.
#[test]
fn folders_and_parquet_are_drilled() {
    let dir = prepared(
        200_000,
        "stream sound = rows |> require(v != 13.25, \"unlucky\")
sink {
    sound |> derive(rest: k % 3) |> csv(\"out/by/\", by: [rest])
    sound |> derive(rest: k % 3) |> parquet(\"out/by-parquet/\", by: [rest])
    rows |> jsonl(\"out/parts/\")
    rows |> parquet(\"out/rows.parquet\")
}
",
    );
    let text = crate::support::read(&dir.path().join("p.df"));
    let text = text.replace("job drilled {}", "job drilled { errors { limit: 100000, to: \"bad\" } }");
    crate::support::write(&dir.path().join("p.df"), &text);
    let before = files_below(dir.path());
    nothing_lost(&drill(dir.path(), "3", ""), "796,000");
    assert_eq!(files_below(dir.path()), before);
}

/// A database file is drilled on a copy, with its triggers and checks; a source in one is counted first.
#[test]
fn a_database_file_is_drilled() {
    let dir = folder(&[(
        "p.df",
        "job drilled {}
record R { id: int64, k: int64 }
source rows = sqlite(\"a.db\", table: \"t\", schema: R, increment: id, poll: 1s)
sink rows |> sqlite(\"b.db\", table: \"u\", mode: upsert, key: [id])
",
    )]);
    sqlite(
        dir.path(),
        "a.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER NOT NULL);;
        WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 150000) INSERT INTO t SELECT i, i % 97 FROM r",
    );
    let target = "CREATE TABLE p (k INTEGER PRIMARY KEY);;
        WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 96) INSERT INTO p SELECT i FROM r;;
        CREATE TABLE u (id INTEGER PRIMARY KEY, k INTEGER NOT NULL REFERENCES p (k));;INSERT INTO u VALUES (-1, 5)";
    sqlite(dir.path(), "b.db", target);
    let before = std::fs::read(dir.path().join("b.db")).expect("it is there");
    let output = drill(dir.path(), "3", "");
    nothing_lost(&output, "150,001");
    assert!(output.stdout.starts_with("reads `rows` (150,000 rows)\n"), "{}", output.stdout);
    assert_eq!(std::fs::read(dir.path().join("b.db")).expect("it is there"), before);
}

/// On a server, in schemas that are gone afterwards; the table's keys and checks count there too.
#[test]
fn a_server_is_drilled() {
    let Some(url) = server() else { return };
    psql(
        &url,
        "DROP SCHEMA IF EXISTS drill CASCADE; CREATE SCHEMA drill;
        CREATE TABLE drill.a (id bigint PRIMARY KEY, k bigint NOT NULL);
        INSERT INTO drill.a SELECT i, i % 97 FROM generate_series(1, 150000) i;
        CREATE TABLE drill.b (id bigint PRIMARY KEY, k bigint NOT NULL CHECK (k < 97), made timestamptz DEFAULT now());
        INSERT INTO drill.b VALUES (-1, 5)",
    );
    let dir = folder(&[(
        "p.df",
        "job drilled {}
record R { id: int64, k: int64 }
source rows = postgres(url: secret(\"PG_URL\"), table: \"drill.a\", schema: R, increment: id)
sink rows |> postgres(url: secret(\"PG_URL\"), table: \"drill.b\", mode: insert)
",
    )]);
    let output = drill(dir.path(), "3", &url);
    nothing_lost(&output, "150,000");
    assert!(output.stdout.contains(" and the schema `dfc_drill_"), "{}", output.stdout);
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'dfc\\_drill%'; SELECT count(*) FROM drill.b";
    assert_eq!(psql(&url, left), "0\n1\n");
    // What the table refuses ends the drill with its words, and leaves nothing either.
    psql(&url, "ALTER TABLE drill.b DROP CONSTRAINT b_k_check, ADD CHECK (k < 50)");
    let output = drill(dir.path(), "1", &url);
    assert!(output.code == 1 && output.stderr.contains("b_k_check"), "{}{}", output.stdout, output.stderr);
    assert_eq!(psql(&url, left), "0\n1\n");
}

/// A source that changes meanwhile is no loss, and isn't called well either.
#[test]
fn a_source_that_changes_is_told_apart() {
    let dir = folder(&[(
        "p.df",
        "job drilled {}
record R { id: int64 }
source rows = sqlite(\"a.db\", table: \"t\", schema: R, increment: id)
sink rows |> csv(\"out.csv\")
",
    )]);
    sqlite(
        dir.path(),
        "a.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY);;
        WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 100000) INSERT INTO t SELECT i FROM r",
    );
    let done = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                sqlite(dir.path(), "a.db", "INSERT INTO t SELECT max(id) + 1 FROM t");
            }
        });
        let output = drill(dir.path(), "2", "");
        done.store(true, Ordering::Relaxed);
        output
    });
    assert!(
        output.code == 1 && output.stdout.contains("two runs without a kill differ as well"),
        "{}{}",
        output.stdout,
        output.stderr
    );
}

/// A job that goes on from nothing shows nothing, and that isn't said to be well; what can't be compared is refused.
#[test]
fn a_drill_that_shows_nothing_says_so() {
    let dir = prepared(20_000, "sink rows |> aggregate(by: [id], n: count()) |> csv(\"out.csv\")\n");
    let text = crate::support::read(&dir.path().join("p.df")).replace("drilled {}", "drilled { memory: 256MB }");
    crate::support::write(&dir.path().join("p.df"), &text);
    let output = drill(dir.path(), "1", "");
    assert!(output.code == 1 && output.stderr.contains("that shows nothing"), "{}{}", output.stdout, output.stderr);
    for (sink, why) in [
        ("print()", "is print; targets that are compared are csv, jsonl, parquet, sqlite, postgres"),
        ("csv(\"-\")", "is the standard output, which keeps nothing"),
    ] {
        let dir = prepared(10, &format!("sink rows |> {sink}\n"));
        let refused = drill(dir.path(), "1", "");
        assert!(refused.code == 1 && refused.stderr.contains(why), "{}", refused.stderr);
    }
}
