//! The canary of secrets (security): a job with a password from its environment is killed, looked at, gone on with to its end, logging all
//! that it can; the password is in nothing that is written or shown.

use std::path::Path;
use std::process::Command;

use crate::support::databases::{psql, server};
use crate::support::slow::{EACH, FILES};
use crate::support::{Output, binary, dfc, folder, run};

const CANARY: &str = "c4n4ry-0f-th3-p4ssw0rd";

const PIPELINE: &str =
    "job secrets { parallelism: 2, checkpoint { interval: 20ms, retain: 5 }, restart { attempts: 1, backoff: 50ms } }
param url: secret = secret(\"PG_URL\")
record R { id: int64, v: string }
source rows = postgres(url, table: \"a\", schema: R, increment: id)
stream groups = rows |> aggregate(by: [v], n: count())
sink {
    rows |> postgres(url, table: \"b\")
    groups |> postgres(secret(\"PG_URL\"), table: \"c\", create: if_missing)
}
";

fn go(dir: &Path, url: &str, point: &str, args: &[&str]) -> Output {
    let mut command = binary();
    command.current_dir(dir).args(args).env("PG_URL", url).env("DFC_LOG", "trace").env("DFC_POINT", point);
    // What a crash would tell.
    run(command.env("RUST_BACKTRACE", "full"))
}

/// Whether no file below the folder, and no name of one, holds the canary.
fn is_nowhere(dir: &Path, when: &str) {
    let found = run(Command::new("grep").args(["-r", "-l", "-a", CANARY, "."]).current_dir(dir));
    assert_eq!(found.stdout, "", "{when}");
    let names = run(Command::new("find").current_dir(dir).args([".", "-name", &format!("*{CANARY}*")]));
    assert_eq!(names.stdout, "", "{when}");
}

#[test]
fn a_password_is_in_nothing_that_is_written_or_shown() {
    let Some(server) = server() else { return };
    let name = format!("canary_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let plain = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    // The server of the tests asks nobody for it: it is sent along all the same.
    let url = plain.replacen('@', &format!(":{CANARY}@"), 1);
    let rows = FILES * EACH;
    psql(
        &plain,
        &format!(
            "CREATE TABLE a (id bigint PRIMARY KEY, v text NOT NULL); CREATE TABLE b (id bigint, v text);
             INSERT INTO a SELECT i, 'v' || i % 100 FROM generate_series(1, {rows}) i"
        ),
    );
    let dir = folder(&[("p.df", PIPELINE)]);
    let mut said = Vec::new();
    let mut take = |what: &str, output: Output| {
        for text in [&output.stdout, &output.stderr] {
            assert!(!text.contains(CANARY), "{what}: {text}");
        }
        said.push((what.to_owned(), output.clone()));
        output
    };
    for emit in ["stages", "ir"] {
        take("plan", go(dir.path(), &url, "", &["plan", "p.df", "--emit", emit]));
    }
    take("check", go(dir.path(), &url, "", &["check", "p.df", "--connect", "-v"]));
    let log = ["run", "p.df", "-v", "--log-format", "json"];
    // The thread that applies breaks down with a backtrace, then the process is killed while rows are on their way.
    let broken = take("a panic", go(dir.path(), &url, "source-read=slow,apply=panic@3", &log));
    assert_eq!(broken.code, 1, "{}", broken.stderr);
    is_nowhere(dir.path(), "after a panic");
    let killed = take("a kill", go(dir.path(), &url, "source-read=slow,table-loaded=kill@2", &log));
    assert_eq!(killed.code, -1, "{}", killed.stderr);
    is_nowhere(dir.path(), "after a kill");
    for args in [
        &["status", "p.df"][..],
        &["status", "p.df", "--format", "json"],
        &["checkpoint", "list", "p.df", "--format", "json"],
        &["checkpoint", "show", "p.df"],
        &["checkpoint", "show", "p.df", "--state"],
        &["checkpoint", "verify", "p.df"],
        &["savepoint", "p.df", "--note", "canary"],
    ] {
        let shown = take(&args.join(" "), go(dir.path(), &url, "", args));
        assert_eq!(shown.code, 0, "{args:?}: {}", shown.stderr);
    }
    // A session that is lost is told, and begun anew.
    let ended = take("the rest", go(dir.path(), &url, "table-load=eio@1", &log));
    assert!(ended.code == 0 && ended.stderr.contains("going on from checkpoint "), "{}", ended.stderr);
    assert!(ended.stderr.contains("\"event\":\"restored\""), "it logs: {}", ended.stderr);
    take("audit", go(dir.path(), &url, "", &["audit", "p.df", "--hash"]));
    is_nowhere(dir.path(), "at the end");
    let all = format!("{rows}|{rows}\n");
    assert_eq!(psql(&plain, "SELECT count(*), count(DISTINCT id) FROM b"), all);
    assert_eq!(psql(&plain, "SELECT count(*), sum(n) FROM c"), format!("100|{rows}\n"));
    let ledger = psql(&plain, "SELECT * FROM _dfc_ledger");
    assert!(!ledger.is_empty() && !ledger.contains(CANARY), "{ledger}");
    // The test itself would see it.
    let seen = dfc(dir.path(), &["run", "p.df", "--set", &format!("nothing={CANARY}")]);
    assert!(seen.code != 0, "there is no such parameter");
    assert!(
        said.iter().all(|(what, output)| !output.stdout.is_empty() || !output.stderr.is_empty() || what == "check")
    );
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}
