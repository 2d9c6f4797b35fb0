//! A job whose checkpoints are in a bucket, killed with SIGKILL at moments drawn at random and started again, now and then on another
//! machine (D13, D20): its result is that of a run nobody disturbed, and no secret lies anywhere.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::databases::{psql, server as postgres};
use crate::support::random::Random;
use crate::support::s3::S3Server;
use crate::support::{binary, files_below, folder, read, run};

const PIPELINE: &str = "job shop { checkpoint { interval: 50ms, storage: \"s3://dfc/jobs\" } }\n\
                        record R { id: int64, k: int64 }\nsource a = csv(\"a.csv\", schema: R)\n\
                        sink a |> derive(twice: id * 2) |> csv(\"out.csv\")\n";
const ROWS: usize = 3_000_000;

fn dfc(machine: &Path, server: &S3Server, args: &[&str]) -> Command {
    let mut command = binary();
    command.current_dir(machine).args(args).envs(server.variables());
    command
}

#[test]
fn killed_and_started_again_from_a_bucket() {
    let server = S3Server::start();
    let rows: String = (0..ROWS).map(|id| format!("{id},{}\n", id % 97)).collect();
    let dir = folder(&[("p.df", PIPELINE), ("a.csv", &format!("id,k\n{rows}"))]);
    let expected: String = (0..ROWS).map(|id| format!("{id},{},{}\n", id % 97, id * 2)).collect();
    let expected = format!("id,k,twice\n{expected}");
    let mut random = Random(7);
    let mut resumed = 0;
    for kill in 0..30 {
        let mut child = dfc(dir.path(), &server, &["run", "p.df"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        // Between the first checkpoint and the end lie some seconds; a machine with much to do takes its time to the former.
        std::thread::sleep(Duration::from_millis(300 + 50 * kill + random.below(900) as u64));
        // It is this test's own child; it may have ended before.
        let _ = child.kill();
        let output = child.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&output.stderr);
        resumed += u32::from(said.contains("going on from checkpoint"));
        if kill > 7 && resumed > 2 {
            break;
        }
        if output.status.success() {
            // From the start.
            continue;
        }
        assert_eq!(output.status.code(), None, "kill {kill}: {said}");
        // It may have been killed right after its last step.
        let shown = dir.path().join("out.csv");
        assert!(!shown.exists() || read(&shown) == expected, "kill {kill}: a result that isn't whole");
    }
    let last = run(&mut dfc(dir.path(), &server, &["run", "p.df"]));
    assert_eq!(last.code, 0, "{}", last.stderr);
    assert!(read(&dir.path().join("out.csv")) == expected, "another result than without kills");
    assert!(resumed > 0, "no run has gone on from a checkpoint");
    let verify = run(&mut dfc(dir.path(), &server, &["checkpoint", "verify", "p.df"]));
    assert_eq!(verify.code, 0, "{}", verify.stdout);
    let left = files_below(dir.path());
    assert!(left.iter().all(|path| !path.to_string_lossy().contains(".part")), "{left:?}");
    for path in left {
        let bytes = std::fs::read(dir.path().join(&path)).expect("a file");
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "a secret is in {}", path.display());
    }
}

/// Every run is on another machine, which has the bucket and the target, but nothing of the disks of those before it: the rows that were spooled
/// there are in the bucket too (D13).
#[test]
fn another_machine_goes_on_from_the_bucket() {
    let Some(url) = postgres() else { return };
    psql(
        &url,
        "DROP SCHEMA IF EXISTS moved CASCADE; CREATE SCHEMA moved; CREATE TABLE moved.t (id bigint PRIMARY KEY, k bigint NOT NULL)",
    );
    let server = S3Server::start();
    let text = "job moved { checkpoint { interval: 50ms, storage: \"s3://dfc/jobs\" } }\n\
                record R { id: int64, k: int64 }\nsource a = csv(\"a.csv\", schema: R)\n\
                sink a |> postgres(url: secret(\"PG_URL\"), table: \"moved.t\")\n";
    let rows: String = (0..ROWS / 5).map(|id| format!("{id},{}\n", id % 97)).collect();
    let machine = || folder(&[("p.df", text), ("a.csv", &format!("id,k\n{rows}"))]);
    let on = |machine: &Path, args: &[&str]| {
        let mut command = dfc(machine, &server, args);
        command.env("PG_URL", &url);
        command
    };
    let mut random = Random(11);
    let mut resumed = 0;
    for kill in 0..40 {
        let dir = machine();
        let mut child =
            on(dir.path(), &["run", "p.df"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
        std::thread::sleep(Duration::from_millis(400 + random.below(500) as u64 + 30 * kill));
        // It is this test's own child; it may have ended before.
        let _ = child.kill();
        let output = child.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&output.stderr);
        resumed += u32::from(said.contains("going on from checkpoint"));
        assert!(output.status.success() || output.status.code().is_none(), "kill {kill}: {said}");
        if output.status.success() || resumed > 3 {
            break;
        }
    }
    let dir = machine();
    let verify = run(&mut on(dir.path(), &["checkpoint", "verify", "p.df"]));
    assert_eq!(verify.code, 0, "{}", verify.stdout);
    let last = run(&mut on(dir.path(), &["run", "p.df", "--parallelism", "3"]));
    assert_eq!(last.code, 0, "{}", last.stderr);
    assert!(resumed > 0, "no run has gone on from a checkpoint");
    let count = psql(&url, "SELECT count(*), count(DISTINCT id), sum(k) FROM moved.t");
    let sum: usize = (0..ROWS / 5).map(|id| id % 97).sum();
    assert_eq!(count, format!("{0}|{0}|{sum}\n", ROWS / 5));
}
