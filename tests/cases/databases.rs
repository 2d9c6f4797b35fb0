//! Databases from end to end: files of SQLite and a PostgreSQL server (its URL in `DFC_POSTGRES`, see `tests/servers`), with kills.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::databases::{psql, server, sqlite};
use crate::support::random::Random;
use crate::support::{binary, dfc, folder, read, run, write};

/// Runs a pipeline, killing it at random moments, until it has ended by itself. How often it was killed.
fn run_with_kills(folder: &Path, url: &str, kills: u64, seed: u64) -> u64 {
    let mut random = Random(seed);
    for kill in 0..200 {
        let mut command = binary();
        command.current_dir(folder).env("PG_URL", url).args(["run", "p.df"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dfc can be started");
        if kill < kills {
            std::thread::sleep(Duration::from_millis(20 + random.below(500) as u64));
            // It may have ended.
            let _ = child.kill();
        }
        let output = child.wait_with_output().expect("dfc ends");
        // Killed behind its end, it is done all the same: another run would be a new one, which inserts everything again.
        let status = dfc(folder, &["status", "p.df"]).stdout;
        if output.status.success() || status.contains("(end)") && !status.contains("unapplied") {
            return kill;
        }
        assert_eq!(output.status.code(), None, "{}", String::from_utf8_lossy(&output.stderr));
    }
    panic!("it doesn't end");
}

/// From text into a table, and from the table, whose fields the catalogue tells, into text again.
#[test]
fn a_table_is_made_written_and_read() {
    let dir = folder(&[
        ("in.csv", "id,name,price\n2,b,1.50\n1,a,\n"),
        (
            "in.df",
            "job load {}\nrecord R { id: int64, name: string, price: decimal(9, 2)? }\nsource s = csv(\"in.csv\", schema: R)\n\
             sink s |> sqlite(\"t.db\", table: \"t\", mode: upsert, key: [id], create: if_missing)\n",
        ),
        ("out.df", "job unload {}\nsource s = sqlite(\"t.db\", table: \"t\")\nsink s |> csv(\"out.csv\")\n"),
    ]);
    for _ in 0..2 {
        let output = dfc(dir.path(), &["run", "in.df"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(sqlite(dir.path(), "t.db", "SELECT * FROM t ORDER BY id"), "1|a|None\n2|b|1.5\n");
    }
    let output = dfc(dir.path(), &["run", "out.df"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(crate::support::read(&dir.path().join("out.csv")), "id,name,price\n1,a,\n2,b,1.50\n");
}

/// Parameters that only the declarations know are checked before anything is opened.
#[test]
fn arguments_are_checked() {
    for (text, code) in [
        ("source s = sqlite(\"t.db\", table: \"t\", query: \"SELECT 1\", schema: R)", "E0608"),
        ("source s = sqlite(\"t.db\", table: \"t\", schema: R, increment: idd)", "E0404"),
        ("source s = sqlite(\"t.db\", table: \"t\", schema: R, tiebreak: id)", "E0612"),
        ("source s = postgres(url: secrets(\"X\"), table: \"t\", schema: R)", "E0604"),
        ("source s = postgres(url: secret(1), table: \"t\", schema: R)", "E0604"),
        ("source s = postgres(secret(\"X\"), table: \"t\", schema: R, splitPk: id)", "E0601"),
    ] {
        let dir = folder(&[("p.df", &format!("job j {{}}\nrecord R {{ id: int64 }}\n{text}\nsink s |> print()\n"))]);
        let output = dfc(dir.path(), &["check", "p.df"]);
        assert!(output.code == 1 && output.stderr.contains(code), "{text}: {}", output.stderr);
    }
    let dir = folder(&[(
        "p.df",
        "job j {}\nrecord R { id: int64 }\nsource s = csv(\"a.csv\", schema: R)\nsink s |> sqlite(\"t.db\", table: \"t\", mode: upsert, key: [no])\n",
    )]);
    let output = dfc(dir.path(), &["check", "p.df"]);
    assert!(output.stderr.contains("E0404"), "{}", output.stderr);
}

/// A secret is named, never shown: not in a plan, a message, or anything that a run leaves.
#[test]
fn secrets_are_shown_nowhere() {
    let canary = "c4n4ry";
    let text = "job j {}\nparam pw: secret\nrecord R { id: int64 }\nsource s = postgres(url: secret(\"PG_URL\"), table: \"t\", schema: R)\n\
                sink s |> postgres(url: pw, table: \"u\")\n";
    let dir = folder(&[("p.df", text)]);
    let url = format!("postgres://me:{canary}@127.0.0.1:1/x");
    let given = format!("pw={url}");
    for args in [["plan", "p.df"], ["run", "p.df"], ["check", "p.df"]] {
        let output = run(binary().current_dir(dir.path()).env("PG_URL", &url).args(args).args(["--set", &given]));
        assert!(!output.stdout.contains(canary) && !output.stderr.contains(canary), "{args:?}: {output:?}");
        if args[0] == "run" {
            assert!(output.stderr.contains("R0230"), "{}", output.stderr);
        }
    }
    let found = run(Command::new("grep").args(["-r", canary, "."]).current_dir(dir.path()));
    assert_eq!(found.stdout, "");
    let missing = run(binary().current_dir(dir.path()).env_remove("PG_URL").args(["run", "p.df", "--set", &given]));
    assert!(missing.stderr.contains("R0236") && missing.stderr.contains("`PG_URL` isn't set"), "{}", missing.stderr);
}

const COPY_SQLITE: &str = "job copy { parallelism: 2, checkpoint { interval: 100ms } }\nrecord R { id: int64, name: string?, n: int64 }\n\
    source s = sqlite(\"a.db\", table: \"t\", schema: R)\n\
    sink s |> filter(n >= 0) |> sqlite(\"b.db\", table: \"t\")\n";

/// However many tasks read ranges of a table, its rows stand in the order of its key: the last of several with one key is what stays.
#[test]
fn rows_of_many_tasks_stand_in_the_order_of_the_key() {
    const ROWS: u64 = 250_000;
    let check = |url: &str, table: &str, dir: &Path| {
        let pipeline = format!(
            "job ordered {{ parallelism: 4 rerun: restart checkpoint {{ interval: 100ms }} }}
             record R {{ id: int64, k: int64, text: string }}
             source rows = {table}
             sink {{
                 rows |> csv(\"out.csv\")
                 rows |> aggregate(by: [k], first: first(id), last: last(id)) |> csv(\"ends.csv\")
                 rows |> sqlite(\"o.db\", table: \"o\", mode: upsert, key: [k], create: if_missing)
             }}"
        );
        write(&dir.join("p.df"), &pipeline);
        let output = run(binary().current_dir(dir).env("PG_URL", url).args(["run", "p.df"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
        let ids: Vec<String> =
            read(&dir.join("out.csv")).lines().skip(1).map(|l| l.split(',').next().expect("an id").into()).collect();
        let all: Vec<String> = (0..ROWS).map(|id| id.to_string()).collect();
        assert!(ids == all, "{table}: the rows stand in another order");
        for line in read(&dir.join("ends.csv")).lines().skip(1) {
            let n: Vec<u64> = line.split(',').map(|n| n.parse().expect("a number")).collect();
            assert_eq!((n[1], n[2]), (n[0], ROWS - 1000 + n[0]), "{table}: {line}");
        }
        let kept = sqlite(dir, "o.db", &format!("SELECT count(*), sum(id >= {ROWS} - 1000) FROM o"));
        assert_eq!(kept, "1000|1000\n", "{table}: an older row was kept");
    };
    let dir = folder(&[]);
    let made = format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, text TEXT NOT NULL);;
         WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < {ROWS} - 1)
         INSERT INTO t SELECT i, i % 1000, printf('%0*d', 1 + abs(random() % 80), i) FROM r"
    );
    sqlite(dir.path(), "a.db", &made);
    check("", "sqlite(\"a.db\", table: \"t\", schema: R)", dir.path());
    let other = folder(&[]);
    std::fs::copy(dir.path().join("a.db"), other.path().join("a.db")).expect("the file is copied");
    check("", "sqlite(\"a.db\", table: \"t\", schema: R, increment: id)", other.path());
    let Some(url) = server() else { return };
    psql(
        &url,
        &format!(
            "DROP SCHEMA IF EXISTS ordered CASCADE; CREATE SCHEMA ordered;
             CREATE TABLE ordered.t AS SELECT i::bigint AS id, (i % 1000)::bigint AS k, repeat('x', 1 + i % 80) AS text
             FROM generate_series(0, {ROWS} - 1) i;
             ALTER TABLE ordered.t ADD PRIMARY KEY (id); ANALYZE ordered.t"
        ),
    );
    check(&url, "postgres(url: secret(\"PG_URL\"), table: \"ordered.t\", schema: R)", folder(&[]).path());
    psql(&url, "DROP SCHEMA ordered CASCADE");
}

/// D20: killed at random moments, the target is that of a run without a kill.
#[test]
fn sqlite_to_sqlite_survives_kills() {
    let dir = folder(&[("p.df", COPY_SQLITE)]);
    sqlite(
        dir.path(),
        "a.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER NOT NULL);;
         WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 150000)
         INSERT INTO t SELECT i * 3, CASE WHEN i % 5 THEN 'n' || i END, i % 1000 FROM k",
    );
    let sum = "SELECT count(*), count(DISTINCT id), sum(id), sum(n), count(name) FROM t";
    for seed in [1, 2] {
        sqlite(
            dir.path(),
            "b.db",
            "DROP TABLE IF EXISTS t;;DROP TABLE IF EXISTS _dfc_ledger;;CREATE TABLE t (id INTEGER, name TEXT, n INTEGER)",
        );
        let _ = std::fs::remove_dir_all(dir.path().join(".dfc"));
        run_with_kills(dir.path(), "", 4, seed);
        assert_eq!(sqlite(dir.path(), "b.db", sum), sqlite(dir.path(), "a.db", sum), "seed {seed}");
    }
}

/// The same between two tables of a server.
#[test]
fn postgres_to_postgres_survives_kills() {
    let Some(server) = server() else { return };
    let name = format!("e2e_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    psql(
        &url,
        "CREATE TABLE a (id bigint PRIMARY KEY, name text, at timestamptz NOT NULL, n numeric(9, 2));
         INSERT INTO a SELECT i * 3, CASE WHEN i % 5 > 0 THEN 'n' || i END, now() - i * interval '1 second', i / 7.0
           FROM generate_series(1, 300000) i; ANALYZE a; CREATE TABLE b (LIKE a INCLUDING ALL)",
    );
    let text = "job copy { parallelism: 2, checkpoint { interval: 100ms } }\nsource s = postgres(secret(\"PG_URL\"), table: \"a\", schema: R)\n\
        record R { id: int64, name: string?, at: timestamp, n: decimal(9, 2)? }\n\
        sink s |> postgres(secret(\"PG_URL\"), table: \"b\")\n";
    let dir = folder(&[("p.df", text)]);
    for seed in [1, 2] {
        psql(&url, "TRUNCATE b; DROP TABLE IF EXISTS _dfc_ledger");
        let _ = std::fs::remove_dir_all(dir.path().join(".dfc"));
        write(&dir.path().join("p.df"), text);
        if seed == 2 {
            // Without a key nothing but the ledger keeps a row from being inserted twice; nor over several connections.
            psql(&url, "DROP TABLE b; CREATE TABLE b (LIKE a)");
            write(
                &dir.path().join("p.df"),
                &text.replace("table: \"b\"", "table: \"b\", mode: insert, connections: 2"),
            );
        }
        run_with_kills(dir.path(), &url, 4, seed);
        let differ = "SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) q";
        assert_eq!(psql(&url, differ), "0\n", "seed {seed}");
    }
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}

/// A2: the server is restarted, as after a crash, while the job runs; nobody has to do anything.
#[test]
fn a_restart_of_the_server_needs_nobody() {
    if server().is_none() {
        return;
    }
    let script = crate::support::root().join("tests/servers/postgres");
    let servers = tempfile::Builder::new().prefix("dfc-servers-").tempdir_in("/tmp").expect("a folder");
    run(Command::new("chmod").arg("755").arg(servers.path()));
    let own = servers.path().join("own");
    let control = |word: &str| {
        let output = run(Command::new(&script).arg(word).arg(&own));
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stdout.trim().to_owned()
    };
    let url = control("start");
    psql(
        &url,
        "CREATE TABLE a (id bigint PRIMARY KEY, name text); INSERT INTO a SELECT i, 'n' || i FROM generate_series(1, 400000) i; ANALYZE a",
    );
    // Without a key: a row that came twice would stay.
    psql(&url, "CREATE TABLE b (LIKE a)");
    let text = "job copy { checkpoint { interval: 200ms }, restart { attempts: 20, backoff: 200ms } }\nrecord R { id: int64, name: string }\n\
        source s = postgres(secret(\"PG_URL\"), table: \"a\", schema: R)\nsink s |> postgres(secret(\"PG_URL\"), table: \"b\", rate: 150000)\n";
    let dir = folder(&[("p.df", text)]);
    let mut command = binary();
    command.current_dir(dir.path()).env("PG_URL", &url).args(["run", "p.df"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dfc can be started");
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(900));
        control("restart");
    }
    let output = child.wait_with_output().expect("dfc ends");
    let differ = "SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) q";
    let differ = psql(&url, differ);
    control("stop");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(differ, "0\n");
}

/// A8: rows come to a target no faster than `rate:` says, over any part of a run: here between its beginning and its end.
#[test]
fn rows_come_no_faster_than_the_rate() {
    let (rows, rate) = (5000u64, 2000u64);
    let least = Duration::from_secs_f64(rows as f64 / rate as f64);
    let text = format!(
        "job copy {{ checkpoint {{ interval: 100ms }} }}\nrecord R {{ id: int64, name: string }}\n\
         source s = csv(\"in.csv\", schema: R)\nsink s |> TARGET, table: \"t\", rate: {rate})\n"
    );
    let lines: String = (0..rows).map(|id| format!("{id},n{id}\n")).collect();
    let dir = folder(&[("in.csv", &format!("id,name\n{lines}")), ("p.df", &text.replace("TARGET", "sqlite(\"t.db\""))]);
    sqlite(dir.path(), "t.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    let timed = |url: &str| {
        let start = std::time::Instant::now();
        let output = run(binary().current_dir(dir.path()).env("PG_URL", url).args(["run", "p.df", "--fresh"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
        start.elapsed()
    };
    let took = timed("");
    assert_eq!(sqlite(dir.path(), "t.db", "SELECT count(*) FROM t"), format!("{rows}\n"));
    assert!(took >= least, "{rows} rows in {took:?}, which is more than {rate} a second");

    let Some(server) = server() else { return };
    let name = format!("rate_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    for more in ["", ", connections: 2"] {
        psql(&url, "DROP TABLE IF EXISTS t, _dfc_ledger; CREATE TABLE t (id bigint PRIMARY KEY, name text)");
        let call = text.replace("TARGET", "postgres(secret(\"PG_URL\")").replace(", rate", &format!("{more}, rate"));
        write(&dir.path().join("p.df"), &call);
        let took = timed(&url);
        assert_eq!(psql(&url, "SELECT count(*) FROM t"), format!("{rows}\n"));
        assert!(took >= least, "{more}: {rows} rows in {took:?}, which is more than {rate} a second");
    }
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}

/// Of several rows of a key the last one counts, be it that it is removed; running it again changes nothing.
#[test]
fn rows_that_say_so_are_removed() {
    let changes = "id,op,name\n1,u,a\n2,u,b\n1,d,\n3,u,c\n3,d,c\n3,u,again\n9,d,\n4,u,\n";
    let text = "job sync {}\nrecord C { id: int64, op: string, name: string? }\nsource changes = csv(\"in.csv\", schema: C)\n\
        sink changes |> derive(gone: op == \"d\") |> drop(op) |> TARGET, table: \"t\", mode: upsert, key: [id], delete: gone)\n";
    let tables = "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)";
    let before = "INSERT INTO t VALUES (1, 'old'), (3, 'old'), (7, 'stays')";
    let dir = folder(&[("in.csv", changes), ("p.df", &text.replace("TARGET", "sqlite(\"t.db\""))]);
    sqlite(dir.path(), "t.db", &format!("{tables};;{before}"));
    for _ in 0..2 {
        let output = dfc(dir.path(), &["run", "p.df"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(sqlite(dir.path(), "t.db", "SELECT * FROM t ORDER BY id"), "2|b\n3|again\n4|None\n7|stays\n");
    }
    let refused = dfc(dir.path(), &["audit", "p.df"]);
    assert!(refused.stdout.contains("are in no target"), "{}", refused.stdout);
    write(
        &dir.path().join("p.df"),
        &text.replace("TARGET", "sqlite(\"t.db\"").replace("mode: upsert, key: [id], ", ""),
    );
    let output = dfc(dir.path(), &["run", "p.df", "--fresh"]);
    assert!(output.code == 1 && output.stderr.contains("`delete` goes with `mode: upsert` only"), "{}", output.stderr);

    let Some(server) = server() else { return };
    let name = format!("delete_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    psql(&url, &format!("{tables}; {before}"));
    write(&dir.path().join("p.df"), &text.replace("TARGET", "postgres(secret(\"PG_URL\")"));
    for _ in 0..2 {
        let output = run(binary().current_dir(dir.path()).env("PG_URL", &url).args(["run", "p.df"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(psql(&url, "SELECT * FROM t ORDER BY id"), "2|b\n3|again\n4|\n7|stays\n");
    }
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}

/// D20: removals under kills leave what the last change of each key says.
#[test]
fn removals_survive_kills() {
    let text = "job sync { parallelism: 1, checkpoint { interval: 60ms } }\nrecord C { seq: int64, id: int64, op: string, n: int64 }\n\
        source s = sqlite(\"a.db\", table: \"c\", schema: C)\n\
        sink s |> derive(gone: op == \"d\") |> select(id, n, gone) |> sqlite(\"b.db\", table: \"t\", mode: upsert, key: [id], delete: gone)\n";
    let dir = folder(&[("p.df", text)]);
    sqlite(
        dir.path(),
        "a.db",
        "CREATE TABLE c (seq INTEGER PRIMARY KEY, id INTEGER NOT NULL, op TEXT NOT NULL, n INTEGER NOT NULL);;
         WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 120000)
         INSERT INTO c SELECT i, (i * 7919) % 10007, CASE WHEN (i * 31) % 5 = 0 THEN 'd' ELSE 'u' END, i FROM k",
    );
    sqlite(dir.path(), "b.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)");
    run_with_kills(dir.path(), "", 5, 3);
    let last = "SELECT id, n FROM c WHERE seq IN (SELECT max(seq) FROM c GROUP BY id) AND op <> 'd' ORDER BY id";
    assert_eq!(sqlite(dir.path(), "b.db", "SELECT id, n FROM t ORDER BY id"), sqlite(dir.path(), "a.db", last));

    let Some(server) = server() else { return };
    let name = format!("removals_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    psql(
        &url,
        "CREATE TABLE c (seq bigint PRIMARY KEY, id bigint NOT NULL, op text NOT NULL, n bigint NOT NULL);
         INSERT INTO c SELECT i, (i * 7919) % 10007, CASE WHEN (i * 31) % 5 = 0 THEN 'd' ELSE 'u' END, i
           FROM generate_series(1, 120000) i; ANALYZE c",
    );
    for seed in [4, 5] {
        psql(&url, "DROP TABLE IF EXISTS t, _dfc_ledger; CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL)");
        let _ = std::fs::remove_dir_all(dir.path().join(".dfc"));
        let tables = text.replace("sqlite(\"a.db\"", "postgres(secret(\"PG_URL\")");
        write(&dir.path().join("p.df"), &tables.replace("sqlite(\"b.db\"", "postgres(secret(\"PG_URL\")"));
        run_with_kills(dir.path(), &url, 5, seed);
        assert_eq!(psql(&url, "SELECT id, n FROM t ORDER BY id"), psql(&url, last), "seed {seed}");
    }
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}
