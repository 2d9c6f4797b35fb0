//! The command line: exit codes, what goes where, signals, standard input and output (D19).

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{binary, dfc, files_below, folder, read, root, write};

const COPY: &str = "job copy {}\nrecord R { n: int64, s: string? }\nsource a = csv(\"in.csv\", schema: R)\n\
                    stream b = a |> filter(n > 1)\nsink b |> csv(\"out/b.csv\")\n";

#[test]
fn init_makes_a_pipeline_that_checks_and_runs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let made = dfc(dir.path(), &["init", "shop"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let check = dfc(dir.path(), &["check", "shop/pipeline.df", "--format", "json"]);
    assert_eq!((check.code, check.stdout.as_str()), (0, ""), "{}", check.stderr);
    let run = dfc(dir.path(), &["run", "shop/pipeline.df"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(read(&dir.path().join("shop/out/by_country.csv")).lines().count(), 4);
    assert!(run.stdout.contains("country"), "the result is printed: {}", run.stdout);
    let again = dfc(dir.path(), &["init", "shop"]);
    assert_eq!(again.code, 1, "nothing is overwritten: {}", again.stderr);
}

#[test]
fn exit_codes() {
    let dir = folder(&[("good.df", COPY), ("bad.df", "job x {}\nstream"), ("in.csv", "n,s\n1,a\n2,b\n")]);
    assert_eq!(dfc(dir.path(), &["check", "good.df"]).code, 0);
    assert_eq!(dfc(dir.path(), &["check", "bad.df"]).code, 1);
    assert_eq!(dfc(dir.path(), &["check", "missing.df"]).code, 1);
    assert_eq!(dfc(dir.path(), &["run", "bad.df"]).code, 1);
    assert_eq!(dfc(dir.path(), &["check"]).code, 2);
    assert_eq!(dfc(dir.path(), &["frobnicate"]).code, 2);
    assert_eq!(dfc(dir.path(), &["run", "good.df", "--parallelism", "0"]).code, 2);
    assert!(
        dfc(dir.path(), &["run", "good.df", "--parallelism", "x"]).stderr.contains("a whole number from 1 to 1024")
    );
    assert_eq!(dfc(dir.path(), &["run", "good.df", "--set", "novalue"]).code, 2);
    assert_eq!(dfc(dir.path(), &["explain", "E9999"]).code, 2);
    assert_eq!(dfc(dir.path(), &["functions", "uper"]).code, 2);
    assert_eq!(dfc(dir.path(), &["run", "good.df"]).code, 0);
}

#[test]
fn reference_commands_answer() {
    let here = root();
    assert!(dfc(&here, &["functions"]).stdout.contains("upper"));
    assert!(dfc(&here, &["functions", "upper"]).stdout.contains("example: upper("));
    assert!(dfc(&here, &["operators"]).stdout.contains("lookup"));
    let csv = dfc(&here, &["operators", "csv"]).stdout;
    assert!(csv.contains("source csv") && csv.contains("sink csv") && csv.contains("delimiter"), "{csv}");
    assert!(dfc(&here, &["explain", "e0401"]).stdout.starts_with("# E0401"));
    assert!(dfc(&here, &["explain"]).stdout.lines().count() > 60);
}

#[test]
fn the_main_jobs_are_compiled_whole() {
    for workload in ["q1", "q3", "q6", "sync", "highcard"] {
        let out = tempfile::tempdir().expect("a temporary folder");
        let set = format!("out={}", out.path().display());
        let run = dfc(&root(), &["run", &format!("examples/tpch/{workload}.df"), "-v", "--set", &set]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stderr.contains("compiled in"), "{workload}: {}", run.stderr);
        assert!(!run.stderr.contains("is interpreted"), "{workload}: {}", run.stderr);
    }
}

#[test]
fn standard_input_and_output() {
    let pipeline = COPY.replace("in.csv", "-").replace("out/b.csv", "-");
    let dir = folder(&[("p.df", &pipeline)]);
    let mut child = binary()
        .current_dir(dir.path())
        .args(["run", "p.df"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dfc starts");
    child.stdin.take().expect("piped").write_all(b"n,s\n1,a\n2,\n3,\"x,y\"\n").expect("dfc reads");
    let output = child.wait_with_output().expect("dfc ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n,s\n2,\n3,\"x,y\"\n");
}

#[test]
fn limit_rows_takes_the_first() {
    let dir = folder(&[("p.df", &COPY.replace("n > 1", "n > 0")), ("in.csv", "n,s\n1,a\n2,b\n3,c\n")]);
    let run = dfc(dir.path(), &["run", "p.df", "--limit-rows", "2"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(read(&dir.path().join("out/b.csv")), "n,s\n1,a\n2,b\n");
}

#[test]
fn the_log_is_json_with_job_operator_and_task() {
    let dir = folder(&[("p.df", COPY), ("in.csv", "n,s\n1,a\n2,b\n")]);
    let run = dfc(dir.path(), &["run", "p.df", "--log-format", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<serde_json::Value> = run.stderr.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    for event in ["opened", "first_row", "closed"] {
        let line = lines.iter().find(|l| l["event"] == event && l["operator"] == "a");
        let line = line.unwrap_or_else(|| panic!("no `{event}` of the source: {}", run.stderr));
        assert_eq!((line["job"].as_str(), line["task"].as_u64()), (Some("copy"), Some(0)), "{line}");
    }
    let foreign: Vec<_> = lines.iter().filter(|l| l["job"] != "copy" || l["event"].is_null()).collect();
    assert!(foreign.is_empty(), "every line is an event of the job: {foreign:#?}");
    let opened = lines.iter().filter(|l| l["event"] == "opened" && l["operator"] == "a").count();
    assert_eq!(opened, 1, "everything is said once: {}", run.stderr);
    assert!(lines.iter().any(|l| l["event"] == "finished" && l["rows_out"] == 1), "{}", run.stderr);
}

/// What only a run needs is said too, not just refused.
#[test]
fn what_has_no_plan_is_told_why() {
    let without_value = COPY.replace("n > 1", "n > m").replace("record", "param m: int64\nrecord");
    let library = "record R { n: int64 }\n";
    let dir = folder(&[("p.df", &without_value), ("library.df", library), ("in.csv", "n,s\n1,a\n2,b\n")]);
    for (file, code) in [("p.df", "E0622"), ("library.df", "E0")] {
        let run = dfc(dir.path(), &["run", file]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(
            run.stderr.contains(&format!("[{code}")) && run.stderr.contains("1 error; nothing was run"),
            "{}",
            run.stderr
        );
    }
    assert_eq!(dfc(dir.path(), &["run", "p.df", "--set", "m=1"]).code, 0);
}

/// `dfc run p.df`, its standard input held open.
fn started(folder: &Path) -> Child {
    binary()
        .current_dir(folder)
        .args(["run", "p.df"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dfc starts")
}

/// A signal that comes before the program watches for it ends the program: the kernel says when it does.
fn wait_until_signals_are_caught(child: &Child) {
    const SIGINT_BIT: u64 = 1 << 1;
    let status = format!("/proc/{}/status", child.id());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        if caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & SIGINT_BIT != 0)
        {
            // The run itself is what is to be stopped: let it begin.
            std::thread::sleep(Duration::from_millis(200));
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("dfc does not watch for Ctrl-C");
}

/// Ctrl-C ends a run that waits for its standard input, too.
#[test]
fn ctrl_c_while_nothing_comes_in() {
    let dir = folder(&[("p.df", &COPY.replace("in.csv", "-"))]);
    let mut child = started(dir.path());
    let stdin = child.stdin.take().expect("piped");
    wait_until_signals_are_caught(&child);
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    let output = child.wait_with_output().expect("dfc ends");
    drop(stdin);
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("R0402"), "{stderr}");
    assert_eq!(files_below(dir.path()), [std::path::Path::new("p.df")], "{stderr}");
}

/// Where standard error is no terminal, a line every few seconds says how far the run is.
#[test]
fn progress_without_a_terminal_is_a_line_now_and_then() {
    let dir = folder(&[("p.df", &COPY.replace("in.csv", "-"))]);
    let mut child = started(dir.path());
    let mut stdin = child.stdin.take().expect("piped");
    // More than the source takes to be open.
    stdin.write_all(format!("n,s\n{}", "1,a\n2,b\n".repeat(20_000)).as_bytes()).expect("dfc reads");
    std::thread::sleep(Duration::from_millis(5500));
    drop(stdin);
    let output = child.wait_with_output().expect("dfc ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("s: read ")).collect();
    assert_eq!(lines.len(), 1, "one line every five seconds: {stderr}");
}

#[test]
fn ctrl_c_without_checkpoints_leaves_no_result_and_no_residue() {
    let (stderr, files) = interrupted("job long { checkpoint: off }");
    assert!(stderr.contains("no result was written"), "{stderr}");
    assert_eq!(files, ["p.df"], "{stderr}");
}

/// A last checkpoint is taken: the same command goes on from there.
#[test]
fn ctrl_c_leaves_what_the_next_run_goes_on_from() {
    let (stderr, files) = interrupted("job long {}");
    assert!(stderr.contains("interrupted; the job goes on from checkpoint 1"), "{stderr}");
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files[0].starts_with("out/.b.csv.dfc-") && files[0].ends_with(".part"), "{files:?}");
}

/// Interrupts a job that would run for long: what it says, and what it leaves.
fn interrupted(job: &str) -> (String, Vec<String>) {
    // More rows than can be written before the signal.
    let pipeline = "record R { n: int64, s: string }\nsource a = generate(rows: 2000000000, schema: R)\n\
                    stream b = a |> filter(n != 7)\nsink b |> csv(\"out/b.csv\")\n";
    let dir = folder(&[("p.df", &format!("{job}\n{pipeline}"))]);
    let mut child = binary()
        .current_dir(dir.path())
        .args(["run", "p.df"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dfc starts");
    let start = Instant::now();
    while !dir.path().join("out").exists() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    // Twice: from the terminal, and from a wrapper that passes it on. That is one wish to stop, and the run still cleans up.
    for pause in [2, 0] {
        let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        std::thread::sleep(Duration::from_millis(pause));
    }
    let status = child.wait().expect("dfc ends");
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    assert_eq!(status.code(), Some(130), "{stderr}");
    (stderr, files_below(dir.path()).iter().map(|file| file.display().to_string()).collect())
}

#[test]
fn a_run_without_rejected_rows_leaves_no_older_rejects_behind() {
    let pipeline = COPY.replace("job copy {}", "job copy { errors { limit: 5, to: \"bad\" } }");
    let dir = folder(&[("p.df", &pipeline), ("in.csv", "n,s\n1,a\nx,b\n")]);
    let rejects = dir.path().join("bad/copy-rejects.jsonl");
    assert_eq!(dfc(dir.path(), &["run", "p.df"]).code, 0);
    assert!(read(&rejects).contains("\"value\":\"x\""));
    write(&dir.path().join("in.csv"), "n,s\n1,a\n");
    assert_eq!(dfc(dir.path(), &["run", "p.df"]).code, 0);
    assert!(!rejects.exists(), "the earlier run's rejects would be taken for this one's");
}

#[test]
fn an_existing_result_stays_whole_until_the_new_one_is() {
    let dir = folder(&[("p.df", COPY), ("in.csv", "n,s\n1,a\nnot a number,b\n")]);
    write(&dir.path().join("out/b.csv"), "old\n");
    let run = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(read(&dir.path().join("out/b.csv")), "old\n");
    for word in ["in.csv", "line 3", "not a number", "int64"] {
        assert!(run.stderr.contains(word), "`{word}` is missing: {}", run.stderr);
    }
}
