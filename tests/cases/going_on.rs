//! Going on, going back, and what stands in the way (D12, D13, D16, F3): damage is named and costs nothing, savepoints can be gone back to.
//!
//! Jobs here are stopped in the middle by a row that breaks a rule, and go on when the rule is another: nothing depends on a moment.

use std::path::Path;
use std::process::Stdio;

use crate::support::databases::sqlite;
use crate::support::halfway::{ROWS, hidden_file, manifest, mend, numbers, output, pipeline, run, stopped};
use crate::support::{binary, dfc, folder, read, write};

fn done(dir: &tempfile::TempDir, more: &[&str]) {
    let ran = run(dir, more);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("the hidden file");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("written");
}

/// Damage of what is not visible yet costs no data, is named at once, and `--allow-older` goes on before it.
#[test]
fn a_damaged_hidden_file_is_named_and_kept() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    let numbers = numbers(dir.path());
    let newest = *numbers.last().expect("checkpoints");
    let sealed = manifest(dir.path(), newest)["sinks"][0]["sealed"].clone();
    let ranges = sealed.as_array().expect("epochs").iter().map(|epoch| &epoch["files"][0]);
    let range = ranges.rev().find(|file| file["to"].as_u64() > file["from"].as_u64()).expect("an epoch with rows");
    let part = hidden_file(dir.path(), ".part");
    flip(&part, range["to"].as_u64().expect("a number") as usize - 2);
    let bytes = std::fs::read(&part).expect("the hidden file");
    mend(&dir, sink);
    for _ in 0..2 {
        let refused = run(&dir, &[]);
        assert_eq!(refused.code, 1);
        let first = refused.stderr.lines().find(|line| line.starts_with("error")).expect("an error");
        assert_eq!(
            first, "error[R0218]: `sink.csv`: rows for `out.csv` that the checkpoint holds are damaged",
            "{}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains("bring it back") && refused.stderr.contains("`--allow-older`"),
            "{}",
            refused.stderr
        );
        assert!(std::fs::read(&part).expect("it is still there") == bytes, "it was changed");
    }
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df", &newest.to_string()]);
    assert!(verify.code == 1 && verify.stdout.contains("don't have the check sum"), "{}", verify.stdout);
    // A savepoint of it would be worth nothing.
    let savepoint = dfc(dir.path(), &["savepoint", "p.df"]);
    assert!(savepoint.code == 1 && savepoint.stderr.contains("error[R0503]"), "{}", savepoint.stderr);
    done(&dir, &["--allow-older"]);
    assert!(read(&dir.path().join("out.csv")) == output(), "another result");
    assert!(!part.exists());
}

/// A damaged part of the state names `--allow-older` too, which goes on before it.
#[test]
fn a_damaged_part_of_the_state_names_the_way_round() {
    let sink = "aggregate(by: [id], n: count()) |> csv(\"out.csv\")";
    let dir = stopped(sink);
    let newest = *numbers(dir.path()).last().expect("checkpoints");
    let manifest = manifest(dir.path(), newest);
    let operators = manifest["stages"].as_array().expect("stages").iter().flat_map(|stage| {
        stage["operators"]
            .as_array()
            .expect("operators")
            .iter()
            .flat_map(|operator| operator["parts"].as_array().expect("parts"))
    });
    let part = operators.rev().find(|part| part["created_by"].as_u64() == Some(newest));
    let name = part.expect("a part of its own")["name"].as_str().expect("a name").to_owned();
    flip(&dir.path().join(".dfc/going/parts").join(name), 40);
    mend(&dir, sink);
    let refused = run(&dir, &[]);
    assert!(refused.code == 1 && refused.stderr.contains("error[R0503]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`dfc run FILE --allow-older` goes on from there"), "{}", refused.stderr);
    done(&dir, &["--allow-older"]);
    let (mut found, mut expected): (Vec<String>, Vec<String>) = (
        read(&dir.path().join("out.csv")).lines().skip(1).map(str::to_owned).collect(),
        (0..ROWS).map(|id| format!("{id},1")).collect(),
    );
    found.sort_unstable();
    expected.sort_unstable();
    assert!(found == expected, "another result");
}

/// A savepoint can be gone back to after the job has ended, where its file is replaced by each run; otherwise it is said what to do.
#[test]
fn a_savepoint_can_be_gone_back_to_after_the_end() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    assert_eq!(dfc(dir.path(), &["savepoint", "p.df"]).code, 0);
    let savepoint = numbers(dir.path()).last().expect("checkpoints").to_string();
    mend(&dir, sink);
    done(&dir, &[]);
    let end = numbers(dir.path()).last().expect("checkpoints").to_string();
    assert!(read(&dir.path().join("out.csv")) == output(), "another result");
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
    assert_eq!(verify.code, 0, "{}", verify.stdout);
    // Other rules hold from the savepoint on.
    write(&dir.path().join("p.df"), &pipeline(sink, false).replace(&format!("id != {ROWS}"), "id >= 0"));
    let back = run(&dir, &["--from", &savepoint]);
    assert!(
        back.code == 0 && back.stderr.contains(&format!("going on from checkpoint {savepoint}, ")),
        "{}",
        back.stderr
    );
    assert!(read(&dir.path().join("out.csv")) == output(), "another result");
    let nothing = run(&dir, &["--from", &end]);
    assert!(nothing.code == 1 && nothing.stderr.contains("error[R0510]"), "{}", nothing.stderr);

    let sink = "csv(\"out.csv\", mode: append)";
    let dir = stopped(sink);
    assert_eq!(dfc(dir.path(), &["savepoint", "p.df"]).code, 0);
    let savepoint = numbers(dir.path()).last().expect("checkpoints").to_string();
    mend(&dir, sink);
    done(&dir, &[]);
    let refused = run(&dir, &["--from", &savepoint]);
    assert!(refused.code == 1 && refused.stderr.contains("error[R0218]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`out.csv` was finished"), "{}", refused.stderr);
    assert!(read(&dir.path().join("out.csv")) == output(), "it was changed");

    let sink = "csv(\"out/\")";
    let dir = stopped(sink);
    let first = numbers(dir.path())[0].to_string();
    mend(&dir, sink);
    let refused = run(&dir, &["--from", &first]);
    assert!(refused.code == 1 && refused.stderr.contains("error[R0513]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`--accept-duplicates`"), "{}", refused.stderr);
    done(&dir, &["--from", &first, "--accept-duplicates"]);
}

/// Whoever goes back and is stopped before a first checkpoint goes on from where it went back to, not from where it had been.
#[test]
fn going_back_outlives_a_failure() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    let numbers = numbers(dir.path());
    let older = numbers[numbers.len() / 2].to_string();
    write(&dir.path().join("p.df"), &pipeline(sink, true).replace(&format!("id != {}", ROWS - 1), "id < 0"));
    let failed = run(&dir, &["--from", &older]);
    assert!(failed.code == 1 && failed.stderr.contains("stop here"), "{}", failed.stderr);
    mend(&dir, sink);
    done(&dir, &[]);
    assert!(read(&dir.path().join("out.csv")) == output(), "another result");
}

/// A stream that got another name and nothing else is no other one.
#[test]
fn a_renamed_stream_has_not_changed() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    write(&dir.path().join("p.df"), &pipeline(sink, true).replace("kept", "sound"));
    let ran = run(&dir, &[]);
    assert!(ran.stderr.contains("going on from checkpoint ") && ran.stderr.contains("stop here"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("has changed since"), "{}", ran.stderr);
    mend(&dir, sink);
    let ran = run(&dir, &[]);
    assert!(ran.code == 0 && ran.stderr.contains("`kept.require` has changed since"), "{}", ran.stderr);
}

/// A row that was mended without changing its length, before the position and far from the file's ends.
#[test]
fn a_mended_row_of_the_same_length_is_noticed() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    let newest = *numbers(dir.path()).last().expect("checkpoints");
    let byte = manifest(dir.path(), newest)["sources"][0]["positions"]["splits"][0]["position"]["byte"].as_u64();
    let at = byte.expect("a position") as usize - 40_000;
    let path = dir.path().join("in.csv");
    let mut bytes = std::fs::read(&path).expect("the input");
    let digit = (at..).find(|at| bytes[*at].is_ascii_digit()).expect("a row");
    bytes[digit] = if bytes[digit] == b'7' { b'8' } else { b'7' };
    std::fs::write(&path, bytes).expect("written");
    mend(&dir, sink);
    let refused = run(&dir, &[]);
    assert!(refused.code == 1 && refused.stderr.contains("error[R0216]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("is not what was read there"), "{}", refused.stderr);
}

/// A trial run takes the job's lock, leaves nothing of its own, and doesn't come between two parts of a run.
#[test]
fn a_trial_run_keeps_out_of_the_way() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    let refused = run(&dir, &["--limit-rows", "3"]);
    assert!(refused.code == 1 && refused.stderr.contains("error[R0515]"), "{}", refused.stderr);
    assert!(!dir.path().join("out.csv").exists());
    mend(&dir, sink);
    let job = dfc_checkpoint::Job::open(dfc_checkpoint::Place::open(None, dir.path()).expect("a place"), "going", 0);
    let locked = run(&dir, &["--limit-rows", "3"]);
    assert!(locked.code == 1 && locked.stderr.contains("error[R0502]"), "{}", locked.stderr);
    drop(job.expect("locked"));
    done(&dir, &[]);
    done(&dir, &["--limit-rows", "3"]);
    assert_eq!(read(&dir.path().join("out.csv")), "id\n0\n1\n2\n");
    let fresh = folder(&[("p.df", &pipeline(sink, false)), ("in.csv", "id\n1\n2\n")]);
    done(&fresh, &["--limit-rows", "1"]);
    assert!(!fresh.path().join(".dfc").exists(), "a trial leaves nothing but its result");
}

/// D14: unfinished files of a job that has another name now, or takes no checkpoints any more, are named, and left for whoever knows.
#[test]
fn what_another_lineage_has_left_is_named() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    let part = hidden_file(dir.path(), ".part");
    let name = part.file_name().expect("a name").to_string_lossy().into_owned();
    let ended = pipeline(sink, false);
    let checkpoints = "checkpoint { interval: 5ms, retain: 1000 }";
    for other in [ended.replace("job going", "job renamed"), ended.replace(checkpoints, "checkpoint: off")] {
        write(&dir.path().join("p.df"), &other);
        let ran = run(&dir, &[]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("note: `") && ran.stderr.contains(&name), "{}", ran.stderr);
        assert!(part.exists());
    }
    write(&dir.path().join("p.df"), &ended);
    let ran = run(&dir, &[]);
    assert!(ran.code == 0 && !ran.stderr.contains("note: "), "{}", ran.stderr);
    assert!(!part.exists());
}

/// A job that can't take checkpoints says so, once, and why; `dfc check -v` doesn't say otherwise.
#[test]
fn a_job_without_checkpoints_says_so() {
    let text = pipeline("print(rows: 1)", false);
    let dir = folder(&[("p.df", &text), ("in.csv", "id\n1\n2\n")]);
    let ran = run(&dir, &[]);
    assert_eq!(
        ran.stderr.lines().next(),
        Some(
            "warning: no checkpoints are taken: `sink.print`: what has been shown can't be taken back; a run that fails starts again from the beginning (`checkpoint: off` says that it may)"
        ),
        "{}",
        ran.stderr
    );
    let checked = dfc(dir.path(), &["check", "p.df", "-v"]);
    assert!(
        checked.stdout.contains(
            "after a failure: a run starts again from the beginning: `print` can't take back what it has written"
        ),
        "{}",
        checked.stdout
    );
    write(&dir.path().join("p.df"), &text.replace("checkpoint { interval: 5ms, retain: 1000 }", "checkpoint: off"));
    let ran = run(&dir, &[]);
    assert!(ran.code == 0 && !ran.stderr.contains("warning"), "{}", ran.stderr);
}

/// What is verified while the job runs, gives rows to its target and removes checkpoints is whole all the while.
#[test]
fn a_running_job_is_verified_whole() {
    let text = "job live { checkpoint { interval: 10ms } }\nrecord R { id: int64 }\n\
                source rows = csv(\"in-*.csv\", schema: R, follow: true, poll: 10ms)\n\
                sink { rows |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n rows |> csv(\"out/\") }\n";
    let dir = folder(&[("p.df", text), ("in-0.csv", "id\n")]);
    let mut command = binary();
    command.current_dir(dir.path()).args(["run", "p.df"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut job = command.spawn().expect("dfc starts");
    let mut looked = 0;
    for round in 0..60 {
        let rows: Vec<String> = (0..2_000).map(|row| format!("{}\n", round * 2_000 + row)).collect();
        let path = dir.path().join("in-0.csv");
        let file = std::fs::File::options().append(true).open(path);
        file.and_then(|mut file| std::io::Write::write_all(&mut file, rows.concat().as_bytes())).expect("written");
        let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
        assert!(verify.code == 0 && !verify.stdout.contains("damaged"), "{}{}", verify.stdout, verify.stderr);
        looked += verify.stdout.lines().filter(|line| line.contains(": whole (")).count();
    }
    job.kill().expect("the test's own child is killed");
    job.wait().expect("it ends");
    assert!(looked > 60, "{looked} checkpoints were looked at");
}

/// A password may be another one when the job goes on, and nothing of it is kept, not even its check sum; other parameters stay what they
/// were.
#[test]
fn a_secret_may_be_another_one_when_the_job_goes_on() {
    let sink = "csv(\"out.csv\")";
    let dir = stopped(sink);
    let with = |stops: bool| format!("{}param pw: secret\nparam day: string = \"\"\n", pipeline(sink, stops));
    write(&dir.path().join("p.df"), &with(true));
    let begun = run(&dir, &["--fresh", "--set", "pw=hunter2", "--set", "day=monday"]);
    assert!(begun.code == 1 && begun.stderr.contains("stop here"), "{}", begun.stderr);
    let shown = dfc(dir.path(), &["checkpoint", "show", "p.df", "--set", "pw=", "--format", "json"]);
    let kept = serde_json::from_str::<serde_json::Value>(&shown.stdout).expect("JSON")["pipeline"].to_string();
    assert!(kept.contains("--set day") && !kept.contains("--set pw"), "{kept}");
    write(&dir.path().join("p.df"), &with(false));
    let other = run(&dir, &["--set", "pw=another", "--set", "day=tuesday"]);
    assert!(other.code == 1 && other.stderr.contains("`--set day` has another value"), "{}", other.stderr);
    let gone_on = run(&dir, &["--set", "pw=another", "--set", "day=monday"]);
    assert!(gone_on.code == 0 && gone_on.stderr.contains("going on from checkpoint"), "{}", gone_on.stderr);
    assert_eq!(read(&dir.path().join("out.csv")), output());
}

/// Who begins anew is told what is given up, and that rows which were added stay.
#[test]
fn beginning_anew_says_what_is_given_up() {
    let text = "job rows {}\nrecord R { id: int64 }\nsource rows = csv(\"in.csv\", schema: R)\n\
                sink rows |> sqlite(\"out.db\", table: \"t\", create: if_missing)\n";
    let dir = folder(&[("p.df", text), ("in.csv", "id\n1\n2\n3\n")]);
    done(&dir, &[]);
    let anew = run(&dir, &["--fresh"]);
    assert_eq!(anew.code, 0, "{}", anew.stderr);
    let said = anew.stderr.lines().next().unwrap_or_default();
    let ends =
        "is given up, with the 3 rows that were written up to it; a target that rows are added to still has them";
    assert!(said.starts_with("beginning anew: checkpoint ") && said.ends_with(ends), "{}", anew.stderr);
    assert_eq!(sqlite(dir.path(), "out.db", "SELECT count(*) FROM t"), "6\n");
    let first = run(&folder(&[("p.df", text), ("in.csv", "id\n1\n")]), &["--fresh"]);
    assert!(first.code == 0 && !first.stderr.contains("beginning anew"), "there was nothing: {}", first.stderr);
}
