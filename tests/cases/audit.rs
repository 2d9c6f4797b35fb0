//! `dfc audit` (F9): sources compared with targets up to where they were read, on real databases and files: equal, a row missing, a row
//! changed, and what can't be compared.

use crate::support::databases::{psql, server, sqlite};
use crate::support::{Output, binary, dfc, folder, read, run, write};

const PIPELINE: &str = "job copy {}
record R { id: int64, name: string?, price: decimal(9, 2), at: timestamp }
source s = sqlite(\"a.db\", table: \"t\", schema: R, increment: at)
sink s |> rename(label: name) |> derive(twice: price * 2) |> sqlite(\"b.db\", table: \"u\", mode: upsert, key: [id], create: if_missing)
";

const ROWS: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC NOT NULL, at TEXT NOT NULL);;CREATE INDEX by_at ON t (at);;
    WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 5000)
    INSERT INTO t SELECT i, CASE WHEN i % 3 THEN 'n' || i END, i / 4.0, '2026-01-01T00:00:' || printf('%02d', i / 100) || 'Z' FROM k";

fn audit(dir: &std::path::Path, more: &[&str]) -> Output {
    dfc(dir, &[&["audit", "p.df"], more].concat())
}

/// Without the first line, which has a time in it.
fn found(output: &Output) -> &str {
    output.stdout.split_once('\n').map_or("", |(_, rest)| rest)
}

#[test]
fn a_copy_is_compared_up_to_where_the_source_was_read() {
    let dir = folder(&[("p.df", PIPELINE)]);
    sqlite(dir.path(), "a.db", ROWS);
    let ran = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let equal = "  `s` → `sink.sqlite`
    rows      5,000, equal
    greatest  `at` 2026-01-01T00:00:50Z, equal
";
    let output = audit(dir.path(), &[]);
    assert_eq!((output.code, found(&output)), (0, equal), "{}", output.stderr);
    assert!(output.stdout.starts_with("job copy up to checkpoint "), "{}", output.stdout);
    // What has come since is nobody's fault.
    sqlite(
        dir.path(),
        "a.db",
        "INSERT INTO t VALUES (6001, 'new', 1, '2026-01-01T00:00:50Z'), (6002, 'new', 1, '2026-01-01T00:01:00Z')",
    );
    assert_eq!(found(&audit(dir.path(), &[])), equal);
    let output = audit(dir.path(), &["--hash"]);
    assert_eq!(output.code, 0, "{}", output.stdout);
    assert!(
        output.stdout.contains(" ranges of `id`, equal\n") && output.stdout.contains("computes them: `twice`"),
        "{}",
        output.stdout
    );

    sqlite(dir.path(), "b.db", "UPDATE u SET label = 'other' WHERE id = 4711");
    assert_eq!(audit(dir.path(), &[]).code, 0, "the number of rows is the same");
    let output = audit(dir.path(), &["--hash"]);
    assert_eq!(output.code, 1);
    let json = audit(dir.path(), &["--hash", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let different = json["sinks"][0]["content"]["different"].as_array().expect("ranges");
    let end = |name: &str| different[0][name].as_str().expect("a key").parse::<i64>().expect("a number");
    assert!(different.len() == 1 && end("from") <= 4711 && end("to") >= 4711 && end("to") - end("from") < 16, "{json}");

    sqlite(dir.path(), "b.db", "DELETE FROM u WHERE id = 17 OR at >= '2026-01-01T00:00:50'");
    let output = audit(dir.path(), &[]);
    assert_eq!(output.code, 1);
    assert_eq!(
        found(&output),
        "  `s` → `sink.sqlite`
    rows      5,000 in the source, 4,998 in the target: DIFFERENT
    greatest  `at` 2026-01-01T00:00:50Z in the source, 2026-01-01T00:00:49Z in the target: DIFFERENT
"
    );
}

#[test]
fn tables_of_a_server_are_compared() {
    let Some(server) = server() else { return };
    let name = format!("audit_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    psql(
        &url,
        "CREATE TABLE a (id bigint PRIMARY KEY, name text, at timestamptz NOT NULL, n numeric(9, 2)); CREATE INDEX ON a (at);
         INSERT INTO a SELECT i * 3, CASE WHEN i % 5 > 0 THEN 'n' || i END, now() - i * interval '1 second', i / 7.0 FROM generate_series(1, 30000) i;
         CREATE TABLE b (LIKE a INCLUDING ALL)",
    );
    let dir = folder(&[(
        "p.df",
        "job copy {}\nrecord R { id: int64, name: string?, at: timestamp, n: decimal(9, 2)? }\n\
         source s = postgres(secret(\"PG_URL\"), table: \"a\", schema: R, increment: at)\nsink s |> postgres(secret(\"PG_URL\"), table: \"b\")\n",
    )]);
    let with = |args: &[&str]| run(binary().current_dir(dir.path()).env("PG_URL", &url).args(args));
    let ran = with(&["run", "p.df"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    psql(&url, "INSERT INTO a VALUES (1, 'new', now(), 1)");
    let output = with(&["audit", "p.df", "--hash"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("rows      30,000, equal"), "{}", output.stdout);
    psql(&url, "UPDATE b SET n = n + 0.01 WHERE id = 30; DELETE FROM b WHERE id = 60000");
    let output = with(&["audit", "p.df", "--hash"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("30,000 in the source, 29,999 in the target: DIFFERENT"), "{}", output.stdout);
    assert!(output.stdout.contains("    content   2 of "), "{}", output.stdout);
    assert!(output.stdout.contains(" rows in both, with other values\n"), "{}", output.stdout);
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}

#[test]
fn files_are_compared_and_what_is_no_copy_is_refused_by_name() {
    let text = "job all {}\nrecord R { id: int64, v: string }\nsource s = csv(\"in.csv\", schema: R)\n\
        sink {\n    s |> jsonl(\"out.jsonl\")\n    s |> csv(\"parts/\")\n    s |> filter(id > 1) |> csv(\"some.csv\")\n    s |> aggregate(n: count()) |> csv(\"n.csv\")\n    s |> discard()\n}\n";
    let dir = folder(&[("p.df", text), ("in.csv", "id,v\n1,a\n2,b\n3,c\n")]);
    let ran = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let output = audit(dir.path(), &["--hash"]);
    assert_eq!(output.code, 1, "what can't be compared isn't equal");
    for line in [
        "  `s` → `sink.jsonl`\n    rows      3, equal\n    content   3 ranges of `id`, equal\n",
        "  `s` → `sink.csv`\n    rows      3, equal\n    content   3 ranges of `id`, equal\n",
        "can't be compared: `sink.filter` lets only some of the rows pass, so it is no copy of a source\n",
        "can't be compared: `sink.aggregate` makes rows of its own, so it is no copy of one source\n",
        "can't be compared: `discard` keeps nothing that could be read\n",
    ] {
        assert!(output.stdout.contains(line), "{line} is missing in {}", output.stdout);
    }
    let file = dir.path().join("out.jsonl");
    write(&file, &read(&file).replace("\"b\"", "\"x\""));
    let output = audit(dir.path(), &["--hash"]);
    assert!(
        output
            .stdout
            .contains("1 of 3 ranges of `id`: DIFFERENT\n                2: 1 rows in both, with other values\n"),
        "{}",
        output.stdout
    );
}
