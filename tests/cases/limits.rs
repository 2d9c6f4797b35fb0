//! What bounds a job's checkpoints (F2, F8, D16): their time limit, the number that may fail in a row, the room that they may take, the size
//! of an epoch. Whatever is reached: a named error or a checkpoint before its time, nothing lost, and the same command goes on.

use serde_json::Value;

use crate::support::databases::sqlite;
use crate::support::slow::{LONG, all_rows, ended, listed, newest, pipeline, prepared, prepared_long, start};
use crate::support::{dfc, read, write};

fn status(dir: &std::path::Path) -> Value {
    serde_json::from_str(&dfc(dir, &["status", "p.df", "--format", "json"]).stdout).expect("JSON")
}

/// F2, D16: checkpoints that take longer than their limit, because a sink can't close its rows or the storage is slow, are given up; after
/// more than `tolerate` in a row the job ends with the reason, and goes on from the last one that succeeded.
#[test]
fn checkpoints_that_take_too_long_end_the_job() {
    let stalls = |point: &str, range: std::ops::Range<u32>| -> String {
        range.map(|passing| format!(",{point}=stall@{passing}")).collect()
    };
    let groups = "    rows |> aggregate(by: [text], n: count(), id: min(id)) |> csv(\"out.csv\")\n";
    for (what, sink, points) in [
        ("a sink that stalls", "    rows |> csv(\"out.csv\")\n", stalls("spool-seal", 4..10)),
        ("a storage that stalls", groups, stalls("storage-write", 12..40)),
    ] {
        let dir = prepared(&pipeline("interval: 40ms, timeout: 400ms, tolerate: 2", sink));
        let stopped = ended(start(dir.path(), &points, &[]));
        assert_eq!(stopped.code, 1, "{what}: {}", stopped.stderr);
        let given_up = "was given up: it took longer than its time limit of 0.4 s\n";
        assert!(stopped.stderr.matches(given_up).count() >= 3, "{what}: {}", stopped.stderr);
        let reason = "error[R0514]: 3 checkpoints in a row couldn't be taken, the last one because it took longer than its time limit of 0.4 s\n\
                      help: the last whole checkpoint stands: see to the cause and run the job again\n";
        assert!(stopped.stderr.contains(reason), "{what}: {}", stopped.stderr);
        let last = listed(dir.path()).last().expect("a checkpoint before")["number"].as_u64().expect("a number");
        let shown = status(dir.path());
        assert!(shown["given_up"]["number"].as_u64() > Some(last), "{what}: {shown}");
        assert!(shown["failed"]["why"].as_str().is_some_and(|why| why.contains("in a row")), "{what}: {shown}");
        assert!(shown["begun"].as_u64() >= shown["taken"].as_u64().map(|taken| taken + 3), "{what}: {shown}");

        // Nothing stalls any more, and whoever runs it gives it more time.
        write(&dir.path().join("p.df"), &pipeline("interval: 40ms, tolerate: 2", sink));
        let again = dfc(dir.path(), &["run", "p.df"]);
        assert_eq!(again.code, 0, "{what}: {}", again.stderr);
        assert!(again.stderr.starts_with(&format!("going on from checkpoint {last}, ")), "{what}: {}", again.stderr);
        let (mut found, mut expected): (Vec<String>, Vec<String>) = (
            read(&dir.path().join("out.csv")).lines().skip(1).map(str::to_owned).collect(),
            all_rows().lines().skip(1).map(str::to_owned).collect(),
        );
        if sink == groups {
            // Each text once, with its id.
            let group =
                |row: &String| row.split_once(',').map(|(id, text)| format!("{text},1,{id}")).expect("two cells");
            expected = expected.iter().map(group).collect();
            found.sort_unstable();
            expected.sort_unstable();
        }
        assert!(found == expected, "{what}: another result");
    }
}

/// D16, F10: a target is away and the rows that wait for it fill what the checkpoints may take: a warning from nine tenths on, which
/// everybody sees, then the named error; every checkpoint is whole, and with a greater quota the same command goes on to the same result.
#[test]
fn a_quota_warns_then_ends_the_job_and_costs_no_row() {
    let sink = "    rows |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n";
    let settings = "interval: 60ms, max_epoch: 6MB, max_unapplied: 1000, tolerate: 1, quota: 6MB";
    let (dir, _) = prepared_long(&pipeline(settings, sink));
    // One failure after another: longer than the job needs to fill its quota.
    let stopped = ended(start(dir.path(), &",apply=eio".repeat(12), &[]));
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    let warnings: Vec<&str> =
        stopped.stderr.lines().filter(|line| line.starts_with("warning: checkpoints take ")).collect();
    assert_eq!(warnings.len(), 1, "once: {}", stopped.stderr);
    assert!(
        warnings[0].ends_with(
            " of the 6.0 MB of their `quota`: make room with `dfc checkpoint prune`, lower `retain` or raise it"
        ),
        "{}",
        warnings[0]
    );
    let taken: f64 = warnings[0].split(' ').nth(3).and_then(|number| number.parse().ok()).expect("a number");
    assert!(taken > 5.4, "{}", warnings[0]);
    let full = "was given up: there is no room for checkpoints: can't write `";
    assert_eq!(stopped.stderr.matches(full).count(), 2, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("error[R0514]: 2 checkpoints in a row couldn't be taken"), "{}", stopped.stderr);
    assert!(stopped.stderr.contains(" are to be added, and the job's quota is 6000000\n"), "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("help: make room, lower `retain`, raise `quota`, or remove savepoints"),
        "{}",
        stopped.stderr
    );

    let last = newest(dir.path());
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
    assert_eq!(verify.code, 0, "{}", verify.stdout);
    assert!(verify.stdout.contains(&format!("checkpoint {last}: whole (")), "{}", verify.stdout);
    assert_eq!(status(dir.path())["quota"], 6_000_000);

    write(&dir.path().join("p.df"), &pipeline(&settings.replace("quota: 6MB", "quota: 100MB"), sink));
    let again = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.starts_with(&format!("going on from checkpoint {last}, ")), "{}", again.stderr);
    assert!(!again.stderr.contains("warning:"), "{}", again.stderr);
    let counts = sqlite(dir.path(), "t.db", "SELECT count(*), count(DISTINCT id), sum(id) FROM t");
    assert_eq!(counts, format!("{LONG}|{LONG}|{}\n", LONG * (LONG - 1) / 2));
}

/// The quota counts what is about to be written, not only what is there: state that doesn't fit any more is written nowhere.
#[test]
fn state_that_does_not_fit_in_the_quota_is_not_written() {
    let sink = "    rows |> distinct(by: [text]) |> csv(\"out.csv\")\n";
    let settings = "interval: 60ms, max_epoch: 3MB, tolerate: 0, retain: 1, quota: 3MB";
    let (dir, content) = prepared_long(&pipeline(settings, sink));
    let stopped = ended(start(dir.path(), "", &[]));
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("error[R0514]: a checkpoint couldn't be taken: there is no room for checkpoints"),
        "{}",
        stopped.stderr
    );
    let bytes: u64 = crate::support::files_below(&dir.path().join(".dfc/slow"))
        .iter()
        .map(|file| dir.path().join(".dfc/slow").join(file).metadata().map_or(0, |meta| meta.len()))
        .sum();
    // What is only noted (the history) is small, and not asked for leave.
    assert!(bytes <= 3_050_000, "{bytes} bytes are there");
    assert_eq!(dfc(dir.path(), &["checkpoint", "verify", "p.df"]).code, 0);
    write(&dir.path().join("p.df"), &pipeline(&settings.replace("quota: 3MB", "quota: 100MB"), sink));
    let again = dfc(dir.path(), &["run", "p.df"]);
    assert!(again.code == 0 && again.stderr.starts_with("going on from checkpoint "), "{}", again.stderr);
    assert!(read(&dir.path().join("out.csv")) == content, "another result");
}

/// A job whose checkpoints are due every hour takes them when so many bytes wait to be applied; without that setting one at its end is all.
/// A file that appears whole at the end waits for that and not for checkpoints.
#[test]
fn many_waiting_bytes_are_a_checkpoint_before_its_time() {
    let taken = |settings: &str, target: &str| {
        let dir = prepared(&pipeline(settings, &format!("    rows |> csv(\"{target}\")\n")));
        let ran = ended(start(dir.path(), "", &[]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        if target == "out.csv" {
            assert!(read(&dir.path().join("out.csv")) == all_rows(), "another result");
        }
        status(dir.path())["taken"].as_u64().expect("a number")
    };
    let bytes = all_rows().len() as u64;
    assert_eq!(taken("interval: 1h", "out/"), 1);
    // As many as there are epochs of this size, but for what comes while it is looked for.
    let many = taken("interval: 1h, max_epoch: 20KB", "out/");
    assert!(many > 4 && many <= bytes / 20_000 + 1, "{many} checkpoints of {bytes} bytes");
    assert_eq!(taken("interval: 1h, max_epoch: 20KB", "out.csv"), 1);
}
