//! `failures/CODE-situation.out`: what a run says when something outside the pipeline stands in its way, word for word. Each situation is made
//! here; paths, processes and identities are taken out of what is said.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use dfc_checkpoint::{Job, Manifest, Place};
use serde_json::json;

use crate::support::databases::psql;
use crate::support::golden::Golden;
use crate::support::halfway::{hidden_file, mend, stopped};
use crate::support::{binary, dfc, folder, root, run, write};

const COPY: &str = "job copy { rerun: continue }\nrecord R { id: int64 }\nsource rows = csv(\"in.csv\", schema: R)\n\
                    sink rows |> csv(\"out/\")\n";

/// A job that has ended, and takes what is new in each run.
fn copied() -> tempfile::TempDir {
    let dir = folder(&[("p.df", COPY), ("in.csv", "id\n1\n2\n3\n")]);
    let ran = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    dir
}

fn job(dir: &Path, name: &str) -> Job {
    Job::open(Place::open(None, dir).expect("a place"), name, 0).expect("it can be locked")
}

/// Publishes the newest checkpoint once more, changed.
fn change(dir: &Path, change: impl FnOnce(&mut Manifest)) {
    let job = job(dir, "copy");
    let mut manifest = job.newest(false).expect("whole").expect("a checkpoint");
    manifest.number = job.next_number();
    change(&mut manifest);
    job.publish(&manifest).expect("published");
    job.note_finished(&manifest.lineage, manifest.number).expect("noted");
}

/// A SQLite file made by these statements.
fn sqlite(dir: &Path, sql: &str) {
    let program = "import sqlite3, sys\nc = sqlite3.connect('t.db')\nc.executescript(sys.argv[1])\nc.commit()";
    let made = run(Command::new("python3").current_dir(dir).args(["-c", program, sql]));
    assert_eq!(made.code, 0, "{}", made.stderr);
}

/// A job between `in.csv`, with rows 1 to 3, and a SQLite file.
fn with_sqlite(sql: &str, source: &str, sink: &str) -> tempfile::TempDir {
    let text = format!("job copy {{}}\nrecord R {{ id: int64 }}\nsource rows = {source}\nsink rows |> {sink}\n");
    let dir = folder(&[("p.df", &text), ("in.csv", "id\n1\n2\n3\n")]);
    sqlite(dir.path(), sql);
    dir
}

const READ: &str = "csv(\"in.csv\", schema: R)";

/// A bucket that creates objects whether they are there or not.
fn careless_bucket() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                let mut block = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut block) {
                    seen.extend_from_slice(&block[..n]);
                    let text = String::from_utf8_lossy(&seen).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length =
                        head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                    if body.len() < length.unwrap_or(0) {
                        continue;
                    }
                    seen.clear();
                    let status = if head.starts_with("DELETE") { "204 No Content" } else { "200 OK" };
                    let answer = format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\nContent-Length: 0\r\n\r\n");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    endpoint
}

#[test]
fn failures() {
    let mut golden = Golden::default();
    let mut said = |name: &str, dir: &Path, stderr: String| {
        let text = plain(&stderr, dir);
        assert!(text.contains(&format!("error[{}]", name.split('-').next().expect("a code"))), "{name}: {text}");
        golden.check(&root().join("tests/golden/failures").join(format!("{name}.out")), &text);
    };
    let failed = |dir: &Path, more: &[&str]| {
        let ran = dfc(dir, &[&["run", "p.df"], more].concat());
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        ran.stderr
    };

    let dir = copied();
    let running = job(dir.path(), "copy");
    said("R0502-running", dir.path(), failed(dir.path(), &[]));
    drop(running);
    write(&dir.path().join("in.csv"), "id\n1\n");
    said("R0216-shorter", dir.path(), failed(dir.path(), &[]));
    write(&dir.path().join("in.csv"), "id\n1\n5\n3\n4\n");
    said("R0216-mended", dir.path(), failed(dir.path(), &[]));
    write(&dir.path().join("p.df"), &COPY.replace("out/", "other/"));
    said("R0512-another-target", dir.path(), failed(dir.path(), &[]));
    write(&dir.path().join("p.df"), &COPY.replace("source rows", "source new").replace("sink rows", "sink new"));
    said("R0512-renamed", dir.path(), failed(dir.path(), &[]));

    let dir = copied();
    change(dir.path(), |manifest| manifest.sources[0].positions.splits[0].position = json!({ "byte": -1 }));
    said("R0217-position", dir.path(), failed(dir.path(), &[]));

    let dir = stopped("csv(\"out.csv\")");
    std::fs::remove_file(hidden_file(dir.path(), ".part")).expect("removed");
    said("R0218-gone", dir.path(), failed(dir.path(), &[]));

    let sink = "csv(\"out.csv\", mode: append)";
    let dir = stopped(sink);
    // The rows are added to what was there: nothing, when it began.
    write(&dir.path().join("out.csv"), "id\n7\n");
    mend(&dir, sink);
    said("R0219-changed", dir.path(), failed(dir.path(), &[]));

    let server = "postgres(secret(\"NO_SUCH_URL\"), table: \"t\", schema: R)";
    let text = COPY.replace("csv(\"in.csv\", schema: R)", server).replace("{ rerun: continue }", "{}");
    let dir = folder(&[("p.df", &text)]);
    said("R0236-not-set", dir.path(), failed(dir.path(), &[]));
    let away =
        run(binary().current_dir(dir.path()).env("NO_SUCH_URL", "postgres://me@127.0.0.1:1/x").args(["run", "p.df"]));
    said("R0230-away", dir.path(), away.stderr);

    let dir = with_sqlite(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY)",
        "sqlite(\"t.db\", table: \"order\", schema: R)",
        "csv(\"o.csv\")",
    );
    said("R0231-no-table", dir.path(), failed(dir.path(), &[]));
    let dir = with_sqlite("CREATE TABLE t (name TEXT NOT NULL)", READ, "sqlite(\"t.db\", table: \"t\")");
    said("R0232-columns", dir.path(), failed(dir.path(), &[]));
    let dir = with_sqlite(
        "CREATE TABLE t (n INTEGER PRIMARY KEY, id INTEGER NOT NULL)",
        "sqlite(\"t.db\", table: \"t\", schema: R, increment: id)",
        "csv(\"o.csv\")",
    );
    said("R0233-no-index", dir.path(), failed(dir.path(), &[]));

    let dir = with_sqlite(
        "CREATE TABLE t (id INTEGER UNIQUE); INSERT INTO t VALUES (2)",
        READ,
        "sqlite(\"t.db\", table: \"t\")",
    );
    said("R0601-unique", dir.path(), failed(dir.path(), &[]));
    let spool = dir.path().join(".dfc/copy/spool/sink.sqlite");
    let file = std::fs::read_dir(&spool).expect("the spool").next().expect("spooled rows").expect("a file").path();
    let mut bytes = std::fs::read(&file).expect("spooled rows");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    said("R0604-damaged", dir.path(), failed(dir.path(), &[]));
    std::fs::remove_dir_all(dir.path().join(".dfc")).expect("removed");
    said("R0603-another-run", dir.path(), failed(dir.path(), &[]));

    if let Some(server) = crate::support::databases::server() {
        let (host, _) = server.rsplit_once('/').expect("a URL");
        psql(&server, "DROP DATABASE IF EXISTS hosts WITH (FORCE)");
        psql(&server, "CREATE DATABASE hosts");
        let url = format!("{host}/hosts");
        psql(&url, "CREATE TABLE hosts (id bigint, address inet)");
        let text = "job copy {}\nrecord H { id: int64, address: string }\nsource rows = csv(\"in.csv\", schema: H)\n\
                    sink rows |> postgres(secret(\"PG_URL\"), table: \"hosts\")\n";
        let dir = folder(&[("p.df", text), ("in.csv", "id,address\n1,10.0.0.1\n2,::1\n3,300.1.1.1\n")]);
        let ran = run(binary().current_dir(dir.path()).env("PG_URL", &url).args(["run", "p.df"]));
        let place = host.rsplit_once('@').map_or(host, |(_, place)| place);
        said("R0602-no-address", dir.path(), ran.stderr.replace(place, "localhost:5432"));
        psql(&server, "DROP DATABASE hosts WITH (FORCE)");
    }

    let text = COPY.replace("rerun: continue", "checkpoint { storage: \"s3://dfc/jobs\" }");
    let dir = folder(&[("p.df", &text), ("in.csv", "id\n1\n")]);
    let mut command = binary();
    command.current_dir(dir.path()).args(["run", "p.df"]).env("AWS_ENDPOINT_URL", careless_bucket());
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret").env("AWS_REGION", "us-east-1");
    said("R0506-careless-bucket", dir.path(), run(&mut command).stderr);
    golden.finish();
}

/// Takes out what differs from run to run.
fn plain(text: &str, dir: &Path) -> String {
    let real = std::fs::canonicalize(dir).expect("the folder is there").display().to_string();
    let text = text.replace(&real, "DIR").replace(&dir.display().to_string(), "DIR");
    let mut out = String::new();
    // What is said before is where the run goes on.
    for line in text.lines().skip_while(|line| !line.starts_with("error[")) {
        let line = match line.split_once(": process ") {
            Some((start, _)) => format!("{start}: process PID on HOST"),
            None => line.to_owned(),
        };
        out.push_str(&without_lineages(&line));
        out.push('\n');
    }
    out
}

/// `.out.csv.dfc-0c3f9a51b2d4.part` → `.out.csv.dfc-….part`: runs of 12 or more hexadecimal digits are taken out.
fn without_lineages(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let end = rest[start..].find(|c: char| !c.is_ascii_hexdigit()).map_or(rest.len(), |end| start + end);
        out.push_str(&rest[..start]);
        out.push_str(if end - start >= 12 { "…" } else { &rest[start..end] });
        rest = &rest[end..];
    }
    out + rest
}
