//! A job that is asked to stop (F8, D20): Ctrl-C and SIGTERM take a last checkpoint, apply it, and say how to go on; whoever asks twice
//! waits for nothing.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::support::databases::sqlite;
use crate::support::slow::{EACH, FILES, all_rows, ended, listed, newest, pipeline, prepared, start, wait_for};
use crate::support::{dfc, read};

const SINKS: &str = "    rows |> csv(\"out.csv\")\n    rows |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n";

fn signal(child: &Child, name: &str) {
    let kill = std::process::Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
}

/// All rows once, in the file and in the table.
fn is_whole(dir: &Path, what: &str) {
    assert!(read(&dir.join("out.csv")) == all_rows(), "{what}: another file");
    let counts = sqlite(dir, "t.db", "SELECT count(*), count(DISTINCT id), count(DISTINCT text) FROM t");
    let all = FILES * EACH;
    assert_eq!(counts, format!("{all}|{all}|{all}\n"), "{what}");
}

/// Each signal ends the job resumable: with exit code 130, a checkpoint of the moment, applied, and the way to go on; the next run ends with
/// what a run that nobody has stopped leaves.
#[test]
fn a_signal_takes_a_last_checkpoint_and_the_next_run_goes_on() {
    for name in ["-TERM", "-INT", "-HUP"] {
        // No other checkpoint than the one that the signal asks for would be due again.
        let dir = prepared(&pipeline("interval: 1h, max_epoch: 100KB", SINKS));
        let child = start(dir.path(), "", &[]);
        wait_for(dir.path(), 1);
        let before = newest(dir.path());
        signal(&child, name);
        let stopped = ended(child);
        assert_eq!(stopped.code, 130, "{name}: {}", stopped.stderr);
        let last = newest(dir.path());
        assert!(last > before, "{name}: no checkpoint was taken for it");
        for words in [
            "stopping after a last checkpoint (again to stop at once)\n".to_owned(),
            format!(
                "error[R0402]: interrupted; the job goes on from checkpoint {last}\nhelp: run the same command again\n"
            ),
        ] {
            assert!(stopped.stderr.contains(&words), "{name}: {words}{}", stopped.stderr);
        }
        // What the checkpoint covers is in the table, no more and no less.
        let list = listed(dir.path());
        let rows = list.last().expect("a checkpoint")["rows_in"].as_u64().expect("a number");
        assert!(rows > 0 && rows < FILES * EACH, "{name}: {rows} rows");
        assert_eq!(sqlite(dir.path(), "t.db", "SELECT count(*) FROM t"), format!("{rows}\n"), "{name}");
        assert!(!dir.path().join("out.csv").exists(), "{name}: a file appears whole");

        let again = dfc(dir.path(), &["run", "p.df"]);
        assert_eq!(again.code, 0, "{name}: {}", again.stderr);
        assert!(again.stderr.starts_with(&format!("going on from checkpoint {last}, ")), "{name}: {}", again.stderr);
        is_whole(dir.path(), name);
    }
}

/// The target takes long to be given the last checkpoint's rows: a second signal doesn't wait for that, and costs nothing.
#[test]
fn a_second_signal_ends_the_job_at_once() {
    let dir = prepared(&pipeline("interval: 1h, max_epoch: 100KB", SINKS));
    // A minute, which nobody waits for.
    let points = ",apply=stall@2".repeat(60);
    let child = start(dir.path(), &points, &[]);
    wait_for(dir.path(), 1);
    signal(&child, "-TERM");
    // What comes sooner is the same wish.
    std::thread::sleep(Duration::from_millis(1_500));
    signal(&child, "-TERM");
    let stopped = ended(child);
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("stopping after a last checkpoint"), "{}", stopped.stderr);
    assert!(!stopped.stderr.contains("R0402"), "it came to its own end: {}", stopped.stderr);
    let again = dfc(dir.path(), &["run", "p.df"]);
    assert!(again.code == 0 && again.stderr.starts_with("going on from checkpoint "), "{}", again.stderr);
    is_whole(dir.path(), "after a second signal");
}

/// The last checkpoint can't be taken, since the storage is full, say: the job ends resumable all the same, from the one before.
#[test]
fn without_a_last_checkpoint_it_goes_on_from_the_one_before() {
    let dir = prepared(&pipeline("interval: 1h, max_epoch: 100KB", SINKS));
    // The start is the first manifest, the second one is waited for, the third is the signal's.
    let child = start(dir.path(), ",manifest=enospc@3,manifest=enospc@4", &[]);
    wait_for(dir.path(), 1);
    signal(&child, "-TERM");
    let stopped = ended(child);
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    let last = newest(dir.path());
    assert!(stopped.stderr.contains("was given up: there is no room for checkpoints"), "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains(&format!("interrupted; the job goes on from checkpoint {last}\n")),
        "{}",
        stopped.stderr
    );
    let again = dfc(dir.path(), &["run", "p.df"]);
    assert!(
        again.code == 0 && again.stderr.starts_with(&format!("going on from checkpoint {last}, ")),
        "{}",
        again.stderr
    );
    is_whole(dir.path(), "without a last checkpoint");
}
