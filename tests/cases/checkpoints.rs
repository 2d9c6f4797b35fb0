//! The commands about a job's checkpoints, exact to the letter: list, show, verify, prune, status, savepoint (D11, D16, D17).

use std::path::Path;
use std::time::{Duration, Instant};

use dfc_checkpoint::*;
use serde_json::{Value, json};

use crate::support::{binary, dfc, folder, read, write};

const PIPELINE: &str = "job shop { checkpoint { retain: 1 } }\nrecord R { n: int64 }\n\
                        source a = csv(\"a.csv\", schema: R)\nsink a |> csv(\"out.csv\")\n";
/// 2026-09-21 14:13:20 UTC
const NOON: i64 = 1_790_000_000_000_000;

fn open(dir: &Path) -> Job {
    Job::open(Place::open(None, dir).expect("a place"), "shop", NOON).expect("opens")
}

fn sealed(number: u64) -> Sealed {
    Sealed { number, rows: 400, bytes: 3000, files: vec![], state: Value::Null }
}

/// A job with checkpoints 0 to 3, of which the sink has been given 2.
fn job() -> (tempfile::TempDir, String) {
    let dir = folder(&[("p.df", PIPELINE), ("a.csv", "n\n1\n")]);
    let job = open(dir.path());
    let operator = OperatorPrint { name: "a".into(), what: "csv(\"a.csv\")".into(), hash: "1".into() };
    let print = PlanPrint { job: "shop".into(), operators: vec![operator] };
    let (lineage, first) = job.begin_lineage();
    job.publish(&Manifest {
        created_micros: NOON,
        ..Manifest::new(Kind::Start, first, lineage.clone(), print.clone())
    })
    .expect("begins");
    for number in 1..=3u64 {
        let part = job.write_part(number, "groups", 1, &[7; 5000], &mut Vec::new()).expect("a part");
        let split =
            |split: &str, position: Value, ended| SplitPosition { split: split.into(), position, ended, exact: true };
        let positions = Positions {
            splits: vec![
                split("a.csv", json!({ "offset": 1234, "line": 56 }), false),
                split("b.csv", Value::Null, false),
                split("c.csv", json!({ "offset": 99 }), true),
            ],
        };
        let manifest = Manifest {
            created_micros: NOON + number as i64 * 30_000_000,
            now_micros: NOON,
            parallelism: 2,
            sources: vec![SourceState {
                node: "a".into(),
                connector: "csv".into(),
                positions,
                rows: number * 1000,
                bytes: number * 12_345,
                ended: false,
            }],
            stages: vec![StageState {
                name: "by_day".into(),
                ended: false,
                tasks: 1,
                operators: vec![OperatorState {
                    node: "by_day.aggregate".into(),
                    kind: "groups".into(),
                    parts: vec![Part { rows: 625, ..part }],
                }],
            }],
            sinks: vec![SinkState {
                node: "sink.csv".into(),
                target: Some("out.csv".into()),
                at_end: false,
                sealed: vec![sealed(number - 1), sealed(number)],
            }],
            counters: Counters { rows_in: number * 1000, rows_out: number * 400 },
            spool_bytes: 6000,
            duration_ms: 12,
            alignment_ms: 3,
            ..Manifest::new(Kind::Regular, number, lineage.clone(), print.clone())
        };
        job.publish(&manifest).expect("published");
        let outcome = if number == 2 {
            Outcome::Abandoned("`sink.csv` can't close its rows: the disk is full".into())
        } else {
            Outcome::Taken
        };
        let entry = HistoryEntry {
            number,
            at_micros: NOON,
            duration_ms: 12 * number,
            alignment_ms: 3,
            stop_micros: 40 * number,
            state_bytes: 5000,
            spool_bytes: 3000,
            outcome,
        };
        job.record(entry).expect("recorded");
    }
    job.note_applied(&lineage, "sink.csv", 2).expect("noted");
    (dir, lineage)
}

/// Without the first line's size, which depends on the names of this machine.
fn without_size(text: &str) -> String {
    let (first, rest) = text.split_once('\n').expect("a line");
    format!("{}\n{rest}", first.rsplit_once(", ").expect("a size").0)
}

#[test]
fn they_are_listed() {
    let (dir, lineage) = job();
    open(dir.path()).keep(1, &Kept { note: Some("before the move".into()), at_micros: NOON }).expect("kept");
    let list = dfc(dir.path(), &["checkpoint", "list", "p.df"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    assert_eq!(
        without_size(&list.stdout),
        "job shop: 4 checkpoints in .dfc/shop
  number  taken                    kind        took  state   spool  rows read
       3  2026-09-21 14:14:50 UTC  regular    12 ms   54 B  6.0 kB      3,000
       2  2026-09-21 14:14:20 UTC  regular    12 ms   54 B  6.0 kB      2,000
       1  2026-09-21 14:13:50 UTC  savepoint  12 ms   54 B  6.0 kB      1,000  “before the move”
       0  2026-09-21 14:13:20 UTC  start       0 ms    0 B     0 B          0
"
    );
    let json = dfc(dir.path(), &["checkpoint", "list", "p.df", "--format", "json"]);
    let lines: Vec<Value> = json.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[1]["kind"], &lines[1]["note"]), (&json!("savepoint"), &json!("before the move")));
    assert_eq!(lines[3]["lineage"], json!(lineage));

    let none = folder(&[("p.df", PIPELINE), ("a.csv", "n\n1\n")]);
    for command in
        [&["checkpoint", "list", "p.df"][..], &["checkpoint", "verify", "p.df"], &["checkpoint", "prune", "p.df"]]
    {
        let said = dfc(none.path(), command);
        assert_eq!((said.code, said.stdout.as_str()), (0, "job shop has no checkpoints in .dfc/shop\n"));
    }
    assert!(!none.path().join(".dfc").exists(), "looking creates nothing");
    assert_eq!(dfc(none.path(), &["checkpoint", "list", "missing.df"]).code, 1);
}

#[test]
fn one_is_shown() {
    let (dir, lineage) = job();
    let shown = dfc(dir.path(), &["checkpoint", "show", "p.df"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(
        shown.stdout.replace(&lineage, "LINEAGE"),
        "checkpoint 3 of job shop (regular), taken 2026-09-21 14:14:50 UTC
  lineage   LINEAGE
  took      12 ms, inputs were held back for 3 ms at most
  rows      3,000 read, 1,200 written, 0 rejected
  now()     2026-09-21 14:13:20 UTC
  tasks     2 a stage
sources
  a (csv): 3,000 rows, 37.0 kB
    `a.csv` at {\"offset\":1234,\"line\":56}: goes on exactly there
    1 split read to the end
    1 split not begun
state
  by_day.aggregate (groups): 625 entries, 5.0 kB, 54 B stored in 1 part
sinks
  sink.csv to out.csv: 400 rows (3.0 kB) up to checkpoint 3 are staged, not applied
"
    );
    let second = dfc(dir.path(), &["checkpoint", "show", "p.df", "2"]).stdout;
    assert!(second.ends_with("sinks\n  sink.csv to out.csv: all applied\n"), "{second}");
    let state = dfc(dir.path(), &["checkpoint", "show", "p.df", "1", "--state"]).stdout;
    let state: Value = serde_json::from_str(&state).expect("JSON");
    assert_eq!(state["state"][0]["node"], json!("by_day.aggregate"));
    let unknown = dfc(dir.path(), &["checkpoint", "show", "p.df", "9"]);
    assert_eq!(unknown.code, 1);
    assert_eq!(
        unknown.stderr,
        "error[R0510]: there is no checkpoint 9; there are 0, 1, 2, 3
help: `dfc checkpoint list FILE` shows those that there are
more: dfc explain R0510
"
    );
}

#[test]
fn damage_is_named() {
    let (dir, _) = job();
    let whole = dfc(dir.path(), &["checkpoint", "verify", "p.df", "3"]);
    assert_eq!(whole.code, 0, "{}", whole.stdout);
    assert!(whole.stdout.starts_with("checkpoint 3: whole (2 files, "), "{}", whole.stdout);
    let manifest = dir.path().join(".dfc/shop/manifests/0000000003.json");
    let text = read(&manifest);
    write(&manifest, &text.replace("3000", "9000"));
    let bytes = text.rsplit_once(" of ").expect("the last line").1.trim().trim_end_matches(" bytes").to_owned();
    let why = format!("bytes 0 to {bytes} don't have the check sum of its last line");
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
    assert_eq!(verify.code, 1);
    let last: Vec<&str> = verify.stdout.lines().skip(3).collect();
    assert_eq!(last, ["checkpoint 3: damaged", &format!("  .dfc/shop/manifests/0000000003.json: {why}")]);
    let shown = dfc(dir.path(), &["checkpoint", "show", "p.df"]);
    assert_eq!(
        shown.stderr,
        format!(
            "error[R0503]: checkpoint 3 is damaged: `.dfc/shop/manifests/0000000003.json`: {why}
help: checkpoint 2 before it is whole: `dfc run FILE --allow-older` goes on from there where the targets allow it
more: dfc explain R0503
"
        )
    );
    let list = dfc(dir.path(), &["checkpoint", "list", "p.df"]);
    assert_eq!(list.code, 1);
    let row = list.stdout.lines().nth(2).expect("a row");
    assert!(row.starts_with("       3  error[R0503]: checkpoint 3 is damaged: "), "{row}");
    let status = dfc(dir.path(), &["status", "p.df"]);
    assert!(
        status.code == 1 && status.stdout.contains("  damaged    error[R0503]: checkpoint 3 is damaged: "),
        "{status:?}"
    );
    write(&manifest, &text);
    let part =
        std::fs::read_dir(dir.path().join(".dfc/shop/parts")).expect("a folder").next().expect("a part").expect("it");
    std::fs::write(part.path(), "x").expect("overwritten");
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
    assert!(
        verify.code == 1 && verify.stdout.contains(": it has 1 bytes, the manifest says 54\n"),
        "{}",
        verify.stdout
    );
}

#[test]
fn they_are_pruned() {
    let (dir, _) = job();
    let numbers = || {
        let list = dfc(dir.path(), &["checkpoint", "list", "p.df", "--format", "json"]).stdout;
        list.lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["number"].as_u64())
            .collect::<Vec<_>>()
    };
    let pruned = dfc(dir.path(), &["checkpoint", "prune", "p.df", "--keep", "2"]);
    assert_eq!((pruned.code, pruned.stdout.as_str()), (0, "removed checkpoints 0, 1 and 1 part of state (54 B)\n"));
    assert_eq!(numbers(), [Some(2), Some(3)]);
    open(dir.path()).keep(2, &Kept { note: None, at_micros: NOON }).expect("kept");
    let pruned = dfc(dir.path(), &["checkpoint", "prune", "p.df"]);
    assert_eq!(
        pruned.stdout,
        "nothing to remove: what is there is among the newest, a savepoint, or not applied yet\n"
    );
    let newest = dfc(dir.path(), &["checkpoint", "prune", "p.df", "3"]);
    assert_eq!(
        (newest.code, newest.stderr.as_str()),
        (1, "error: checkpoint 3 is the newest: the job goes on from it; `dfc run FILE --fresh` starts without\n")
    );
    let pruned = dfc(dir.path(), &["checkpoint", "prune", "p.df", "2"]);
    assert_eq!(pruned.stdout, "removed checkpoint 2 and 1 part of state (54 B)\n");
    assert_eq!(numbers(), [Some(3)]);
    let running = open(dir.path());
    let refused = dfc(dir.path(), &["checkpoint", "prune", "p.df"]);
    let first = refused.stderr.lines().next().expect("a line");
    let pid = std::process::id();
    assert!(
        first.starts_with(&format!("error[R0502]: another run of job `shop` is going on: process {pid} on ")),
        "{first}"
    );
    drop(running);
}

/// `5 days 2 h ago` → `AGO`: times that pass while the test runs.
fn without_ages(text: &str) -> String {
    let line = |line: &str| match line.find(" ago") {
        Some(end) => {
            let start = line[..end].rfind(", ").map_or(13, |at| at + 2);
            format!("{}AGO{}", &line[..start], &line[end + 4..])
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_job_says_how_it_stands() {
    let (dir, _) = job();
    let status = dfc(dir.path(), &["status", "p.df"]);
    assert_eq!((status.code, status.stderr.as_str()), (0, ""));
    let text = without_ages(&status.stdout);
    let kept = text.lines().find(|line| line.starts_with("  kept")).expect("a line").to_owned();
    assert!(kept.starts_with("  kept       4 checkpoints; "), "{kept}");
    assert_eq!(
        text.replace(&kept, "  kept"),
        "job shop in .dfc/shop
  running    no
  last       checkpoint 3 (regular), AGO (2026-09-21 14:14:50 UTC)
  kept
  taken      2 of 3 (66.7 %), in 36 ms (median), 36 ms (longest)
  stops      0.12 ms (median), 0.12 ms (99 %), 0.12 ms (longest) of the task that stands still the longest at a checkpoint
  unapplied  sink.csv: 400 rows (3.0 kB) staged; applied up to 2
  given up   checkpoint 2, AGO: `sink.csv` can't close its rows: the disk is full"
    );
    // While it runs: what is at stake, and that the last checkpoint is much older than it should be.
    let running = open(dir.path());
    running.record_failure(NOON, "`sink.csv`: connection reset").expect("recorded");
    let text = without_ages(&dfc(dir.path(), &["status", "p.df"]).stdout);
    let pid = std::process::id();
    for line in [
        format!("  running    process {pid} on "),
        "  at stake   ".into(),
        "  warning    a checkpoint is due every 30.00 s, and the last one is much older".into(),
        "  failed     AGO: `sink.csv`: connection reset".into(),
    ] {
        assert!(text.lines().any(|said| said.starts_with(&line)), "{line}\n{text}");
    }
    let json = dfc(dir.path(), &["status", "p.df", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["running"]["pid"], json!(pid));
    assert_eq!((&json["begun"], &json["taken"], &json["median_ms"]), (&json!(3), &json!(2), &json!(36)));
    assert_eq!(json["unapplied"], json!([{ "sink": "sink.csv", "rows": 400, "bytes": 3000, "applied": 2 }]));
    // 1,000 rows in 30 seconds.
    let (seconds, rows) = (json["at_stake"]["seconds"].as_u64(), json["at_stake"]["rows"].as_u64());
    assert_eq!(rows, seconds.map(|seconds| (seconds as f64 * 1000.0 / 30.0) as u64));
    drop(running);
    let none = folder(&[("p.df", PIPELINE), ("a.csv", "n\n1\n")]);
    assert_eq!(
        dfc(none.path(), &["status", "p.df"]).stdout,
        "job shop in .dfc/shop\n  running    no\n  last       no checkpoint\n  kept       0 checkpoints; 0 B\n"
    );
}

#[test]
fn a_savepoint_of_a_job_that_does_not_run() {
    let (dir, _) = job();
    let made = dfc(dir.path(), &["savepoint", "p.df", "--note", "before the move"]);
    assert_eq!(
        (made.code, made.stdout.as_str()),
        (
            0,
            "job shop isn't running: its newest checkpoint, 3, is a savepoint now; `dfc run FILE --from 3` goes on from it\n"
        )
    );
    assert!(dfc(dir.path(), &["checkpoint", "show", "p.df"]).stdout.contains("\n  note      “before the move”\n"));
    let ended = folder(&[("p.df", PIPELINE), ("a.csv", "n\n1\n")]);
    assert_eq!(dfc(ended.path(), &["run", "p.df"]).code, 0);
    assert_eq!(
        dfc(ended.path(), &["savepoint", "p.df"]).stdout,
        "job shop has come to its end with checkpoint 1, which is a savepoint now; there is nothing left to go on with, `dfc run FILE` computes it anew\n"
    );
    let none = folder(&[("p.df", PIPELINE), ("a.csv", "n\n1\n")]);
    let nothing = dfc(none.path(), &["savepoint", "p.df"]);
    assert_eq!(
        (nothing.code, nothing.stderr.as_str()),
        (1, "error: job shop isn't running and has no checkpoints in .dfc/shop: there is nothing to keep\n")
    );
}

#[test]
fn a_savepoint_of_a_job_that_runs() {
    let (dir, _) = job();
    let running = open(dir.path());
    let ask = |wait: &str| {
        binary()
            .current_dir(dir.path())
            .args(["savepoint", "p.df", "--note", "now", "--wait", wait])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("starts")
    };
    let asked = |job: &Job| {
        let begun = Instant::now();
        loop {
            if let Some(request) = job.savepoints_asked().expect("a list").into_iter().next() {
                return request;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody asks");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let answers = [
        (SavepointAnswer::Taken(4), 0, "savepoint 4 of job shop is taken; `dfc run FILE --from 4` goes on from it\n"),
        (
            SavepointAnswer::Refused("the disk is full".into()),
            1,
            "error: the job could not take a savepoint: the disk is full\n",
        ),
    ];
    for (answer, code, text) in answers {
        let child = ask("60");
        let request = asked(&running);
        assert_eq!(request.note.as_deref(), Some("now"));
        running.answer_savepoint(&request, &answer).expect("answers");
        let output = child.wait_with_output().expect("ends");
        let said = if code == 0 { output.stdout } else { output.stderr };
        assert_eq!((output.status.code(), String::from_utf8_lossy(&said).as_ref()), (Some(code), text));
    }
    // It doesn't answer; then it ends.
    let output = ask("0").wait_with_output().expect("ends");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: no savepoint was taken: the job has not answered in time; `--wait SECONDS` gives it more\n"
    );
    assert_eq!(running.savepoints_asked(), Ok(vec![]), "the request is taken back");
    let child = ask("60");
    asked(&running);
    drop(running);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: no savepoint was taken: the job has ended before it took one; ask again: the newest checkpoint becomes it\n"
    );
}
