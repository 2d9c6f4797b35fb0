//! Files of jobs that are killed, follow and write folders, with the real binary (F1, F3, F9, F10, A1).

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::random::Random;
use crate::support::{Output, binary, dfc, folder, read};

const FOLLOWS: &str = r#"
job follows { checkpoint { interval: 200ms } }
record Row { id: int64, name: string }
source rows = csv("in-*.csv", schema: Row, follow: true, poll: 50ms)
sink rows |> jsonl("live/", mode: append)
"#;

fn start(folder: &Path) -> Child {
    let mut command = binary();
    command.current_dir(folder).args(["run", "pipeline.df"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("dfc starts")
}

fn append(path: &Path, text: &str) {
    let file = std::fs::File::options().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("the input can be written");
}

/// The lines of all parts of a folder, those in partitions too.
fn parts(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return lines };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') {
            lines.extend(parts(&path));
        } else if name.starts_with("part-") {
            lines.extend(read(&path).lines().map(str::to_owned));
        }
    }
    lines
}

fn wait_for(what: &str, mut found: impl FnMut() -> bool) {
    let start = Instant::now();
    while !found() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what} doesn't come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ends the child at once, as `kill -9` does.
fn kill(mut child: Child) {
    child.kill().expect("the job can be killed");
    child.wait().expect("the job has ended");
}

/// Whoever writes never waits: between a look at the file's size and one at its bytes it has grown. It is the same file all the same.
#[test]
fn a_file_that_grows_all_the_time_is_followed() {
    let settings = FOLLOWS.replace("200ms", "20ms").replace("50ms", "1ms");
    let dir = folder(&[("pipeline.df", &settings), ("in-1.csv", "id,name\n")]);
    let mut child = start(dir.path());
    let mut file = std::fs::File::options().append(true).open(dir.path().join("in-1.csv")).expect("it is there");
    let (begun, mut lines) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(4) {
        let text: String = (lines..lines + 20).map(|id| format!("{id},name {id}\n")).collect();
        file.write_all(text.as_bytes()).expect("the input can be written");
        lines += 20;
        std::thread::sleep(Duration::from_micros(500));
        if let Some(status) = child.try_wait().expect("its state is known") {
            let output = child.wait_with_output().expect("it has ended");
            panic!("{status}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    wait_for("every line", || parts(&dir.path().join("live")).len() == lines);
    kill(child);
}

#[test]
fn a_job_that_follows_and_is_killed_again_and_again_writes_every_row_once() {
    let folder = folder(&[("pipeline.df", FOLLOWS)]);
    let mut random = Random(11);
    let mut rows = 0;
    for round in 0..5 {
        let child = start(folder.path());
        let file = folder.path().join(format!("in-{}.csv", round / 2));
        if !file.exists() {
            append(&file, "id,name\n");
        }
        for _ in 0..random.below(6) {
            // A line in pieces; what looks sees whole rows, in order, none twice.
            append(&file, &format!("{rows},\"a\n"));
            std::thread::sleep(Duration::from_millis(random.below(120) as u64));
            append(&file, "b\"\n");
            rows += 1;
            let lines = parts(&folder.path().join("live"));
            for (number, line) in lines.iter().enumerate() {
                assert_eq!(*line, format!("{{\"id\":{number},\"name\":\"a\\nb\"}}"));
            }
        }
        kill(child);
    }
    let child = start(folder.path());
    wait_for("the last row", || parts(&folder.path().join("live")).len() >= rows);
    kill(child);
    let lines = parts(&folder.path().join("live"));
    let wanted: Vec<_> = (0..rows).map(|number| format!("{{\"id\":{number},\"name\":\"a\\nb\"}}")).collect();
    assert_eq!(lines, wanted);
    // A file that was cut meanwhile is told, and nothing is read.
    std::fs::write(folder.path().join("in-0.csv"), "id,name\n").expect("the input can be cut");
    let Output { code, stderr, .. } = dfc(folder.path(), &["run", "pipeline.df"]);
    assert!(code != 0 && stderr.contains("error[R0216]") && stderr.contains("in-0.csv"), "{code}: {stderr}");
    assert_eq!(parts(&folder.path().join("live")).len(), rows);
}

#[test]
fn a_folder_has_partitions_that_are_replaced() {
    let pipeline = |mode: &str, more: &str| {
        format!(
            "job parts {{}}\nrecord Row {{ id: int64, day: date? }}\n\
             source rows = csv(\"in.csv\", schema: Row)\nsink rows |> csv(\"out/\", mode: {mode}{more})\n"
        )
    };
    let by = pipeline("overwrite", ", by: [day], roll: 1MB");
    let folder = folder(&[("in.csv", "id,day\n1,2026-01-31\n2,\n3,2026-01-31\n"), ("pipeline.df", &by)]);
    let run = || dfc(folder.path(), &["run", "pipeline.df"]);
    let ran = run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let out = folder.path().join("out");
    assert_eq!(parts(&out.join("day=2026-01-31")), ["id", "1", "3"]);
    assert_eq!(parts(&out.join("day=__HIVE_DEFAULT_PARTITION__")), ["id", "2"]);
    crate::support::write(&folder.path().join("in.csv"), "id,day\n4,2026-01-31\n");
    let ran = run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(parts(&out.join("day=2026-01-31")), ["id", "4"]);
    assert_eq!(parts(&out.join("day=__HIVE_DEFAULT_PARTITION__")), ["id", "2"]);
    // What is there is refused where it may not be replaced.
    crate::support::write(&folder.path().join("pipeline.df"), &pipeline("fail", ""));
    let ran = run();
    assert!(ran.code != 0 && ran.stderr.contains("error[R0207]"), "{}", ran.stderr);
}

/// A1: a file that each run replaces holds everything after each run, also with a source that knows what is new; a night without news
/// changes nothing. With `rerun: continue` such a file is refused.
#[test]
fn a_file_that_each_run_replaces_holds_everything() {
    let load = "job load {}\nrecord R { id: int64 }\nsource s = csv(\"new.csv\", schema: R)\n\
                sink s |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n";
    let nightly = "job nightly {}\nrecord R { id: int64 }\n\
                   source s = sqlite(\"t.db\", table: \"t\", schema: R, increment: id, tiebreak: [id], allow_unindexed: true)\n\
                   sink s |> csv(\"all.csv\")\n";
    let folder = folder(&[("load.df", load), ("nightly.df", nightly), ("new.csv", "id\n1\n2\n")]);
    let run = |file: &str| {
        let ran = dfc(folder.path(), &["run", file]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    run("load.df");
    for _ in 0..2 {
        run("nightly.df");
        assert_eq!(read(&folder.path().join("all.csv")), "id\n1\n2\n");
    }
    crate::support::write(&folder.path().join("new.csv"), "id\n3\n");
    run("load.df");
    run("nightly.df");
    assert_eq!(read(&folder.path().join("all.csv")), "id\n1\n2\n3\n");
    crate::support::write(&folder.path().join("nightly.df"), &nightly.replace("{}", "{ rerun: continue }"));
    let refused = dfc(folder.path(), &["run", "nightly.df"]);
    assert!(refused.code == 1 && refused.stderr.contains("[E0803]"), "{}", refused.stderr);
    // What is new goes into a folder of parts, and only that.
    let parts = nightly.replace("nightly {}", "news { rerun: continue }").replace("all.csv", "parts/");
    crate::support::write(&folder.path().join("nightly.df"), &parts);
    run("nightly.df");
    crate::support::write(&folder.path().join("new.csv"), "id\n4\n");
    run("load.df");
    run("nightly.df");
    let rows: Vec<String> = self::parts(&folder.path().join("parts")).into_iter().filter(|line| line != "id").collect();
    assert_eq!(rows, ["1", "2", "3", "4"]);
}

/// Rejected rows are kept wherever `to` says, also above the pipeline: the checkpoint names their file by its whole path.
#[test]
fn rejected_rows_are_kept_above_the_pipeline() {
    let rows: String = (0..1_000).map(|n| if n % 100 == 7 { "bad\n".into() } else { format!("{n}\n") }).collect();
    let pipeline = "job r { errors { limit: 10, to: \"../kept\" } }\nrecord R { id: int64 }\nsource s = csv(\"r.csv\", schema: R)\n\
                    sink s |> csv(\"out.csv\", mode: overwrite)\n";
    let dir = folder(&[("sub/p.df", pipeline), ("sub/r.csv", &format!("id\n{rows}"))]);
    let sub = dir.path().join("sub");
    for _ in 0..2 {
        let output = dfc(&sub, &["run", "p.df"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(read(&dir.path().join("kept/r-rejects.jsonl")).lines().count(), 10);
        let verified = dfc(&sub, &["checkpoint", "verify", "p.df"]);
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    }
}
