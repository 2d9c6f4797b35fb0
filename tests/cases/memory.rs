//! Memory that doesn't grow with the data: jobs without state hold a few batches, whatever they read (constant memory of database sources,
//! and of files).

use std::path::Path;
use std::process::Command;

use crate::support::databases::{psql, server, sqlite};
use crate::support::{binary, folder, run};

/// Ten times the rows, 90 MB more and above, may take so many more kilobytes: queues fill as far as the machine's other work lets them, and the
/// allocator keeps some. (From a table to a table 100,000 rows, which are one range, take 107 MB, 300,000 133, one
/// million 149 to 153, three million 150.)
const MORE: u64 = 48_000;

/// Peak memory of `dfc run p.df` in kilobytes.
fn peak(dir: &Path, url: &str) -> u64 {
    let measure = "import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(ended)";
    let mut command = Command::new("python3");
    command.current_dir(dir).env("PG_URL", url).args(["-c", measure]).arg(binary().get_program());
    let output = run(command.args(["run", "p.df"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.stdout.trim().parse().expect("kilobytes")
}

/// Memory for `few` rows and for ten times as many. What other work on the machine adds to one run it doesn't add to three.
fn flat(what: &str, few: u64, peak_of: impl Fn(u64) -> u64) {
    let one = peak_of(few);
    let mut ten = Vec::new();
    while ten.len() < 3 && ten.last().is_none_or(|ten| *ten >= one + MORE) {
        ten.push(peak_of(few * 10));
    }
    let least = ten.iter().min().copied().unwrap_or(u64::MAX);
    assert!(least < one + MORE, "{what}: {one} kB for {few} rows, {ten:?} kB for ten times as many");
}

const RECORD: &str = "record R { id: int64, text: string }\n";

fn pipeline(source: &str, sink: &str) -> String {
    format!("job flat {{ parallelism: 2 }}\n{RECORD}source rows = {source}\nsink rows |> filter(id >= 0) |> {sink}\n")
}

#[test]
fn a_file_is_streamed() {
    let peak_of = |rows: u64| {
        let line = |id: u64| format!("{id},{:0>90}\n", id * 7);
        let text: String = (0..rows).map(line).collect();
        let text = format!("id,text\n{text}");
        let pipeline = pipeline("csv(\"in.csv\", schema: R)", "csv(\"out.csv\")");
        peak(folder(&[("p.df", &pipeline), ("in.csv", &text)]).path(), "")
    };
    // Enough that all buffers are in use.
    flat("csv", 300_000, peak_of);
}

#[test]
fn a_database_file_is_streamed() {
    let peak_of = |rows: u64| {
        let source = "sqlite(\"a.db\", table: \"t\", schema: R, increment: id)";
        let dir = folder(&[("p.df", &pipeline(source, "csv(\"out.csv\")"))]);
        let insert = format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT NOT NULL);;
            WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows})
            INSERT INTO t SELECT i, printf('%090d', i) FROM r"
        );
        sqlite(dir.path(), "a.db", &insert);
        peak(dir.path(), "")
    };
    flat("sqlite", 100_000, peak_of);
}

#[test]
fn a_server_is_streamed() {
    let Some(url) = server() else { return };
    let peak_of = |rows: u64, order: &str, sink: &str| {
        psql(
            &url,
            &format!(
                "DROP SCHEMA IF EXISTS flat CASCADE; CREATE SCHEMA flat;
                 CREATE TABLE flat.t (id bigint PRIMARY KEY, text text NOT NULL);
                 INSERT INTO flat.t SELECT i, lpad(i::text, 90, '0') FROM generate_series(1, {rows}) i;
                 CREATE TABLE flat.u (LIKE flat.t INCLUDING ALL)"
            ),
        );
        let source = format!("postgres(url: secret(\"PG_URL\"), table: \"flat.t\", schema: R{order})");
        let dir = folder(&[("p.df", &pipeline(&source, sink))]);
        peak(dir.path(), &url)
    };
    for order in ["", ", increment: id"] {
        let sink = "csv(\"out.csv\")";
        flat(order, 100_000, |rows| peak_of(rows, order, sink));
    }
    let sink = "postgres(url: secret(\"PG_URL\"), table: \"flat.u\")";
    // Enough that ranges wait for those before them.
    flat("to a table", 300_000, |rows| peak_of(rows, "", sink));
}
