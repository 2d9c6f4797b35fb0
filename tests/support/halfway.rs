//! Jobs that are stopped in the middle, with checkpoints to go on from, by a row that breaks a rule; they go on when the rule is another.
//! Nothing depends on a moment.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Output, dfc, files_below, folder, write};

/// Rows of the input.
pub const ROWS: u64 = 1_500_000;

/// A job that stops at its last row, with many checkpoints before. `sink` is what it ends in.
pub fn pipeline(sink: &str, stops: bool) -> String {
    let at = if stops { ROWS - 1 } else { ROWS };
    format!(
        "job going {{ parallelism: 1, checkpoint {{ interval: 5ms, retain: 1000 }} }}\nrecord R {{ id: int64 }}\n\
         source rows = csv(\"in.csv\", schema: R)\nstream kept = rows |> require(id != {at}, \"stop here\")\nsink kept |> {sink}\n"
    )
}

fn input() -> String {
    let rows: Vec<String> = (0..ROWS).map(|id| format!("{id:07}\n")).collect();
    format!("id\n{}", rows.concat())
}

/// The result of a run that nothing has stopped.
pub fn output() -> String {
    let rows: Vec<String> = (0..ROWS).map(|id| format!("{id}\n")).collect();
    format!("id\n{}", rows.concat())
}

/// A job that was stopped in the middle, with three checkpoints at least: where the disk is slow that may take another try.
pub fn stopped(sink: &str) -> tempfile::TempDir {
    for _ in 0..20 {
        let dir = folder(&[("p.df", &pipeline(sink, true)), ("in.csv", &input())]);
        let ran = run(&dir, &[]);
        assert!(ran.code == 1 && ran.stderr.contains("stop here"), "{}", ran.stderr);
        if numbers(dir.path()).len() > 2 {
            return dir;
        }
    }
    panic!("too few checkpoints, however often it is tried");
}

/// From now on nothing stops it.
pub fn mend(dir: &tempfile::TempDir, sink: &str) {
    write(&dir.path().join("p.df"), &pipeline(sink, false));
}

/// Runs it, with further arguments.
pub fn run(dir: &tempfile::TempDir, more: &[&str]) -> Output {
    dfc(dir.path(), &[&["run", "p.df"], more].concat())
}

/// The checkpoints, oldest first, without the start.
pub fn numbers(dir: &Path) -> Vec<u64> {
    let list = dfc(dir, &["checkpoint", "list", "p.df", "--format", "json"]).stdout;
    let number = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["number"].as_u64().expect("a number");
    list.lines().map(number).filter(|number| *number > 0).collect()
}

/// A checkpoint as JSON.
pub fn manifest(dir: &Path, number: u64) -> Value {
    let shown = dfc(dir, &["checkpoint", "show", "p.df", &number.to_string(), "--format", "json"]);
    serde_json::from_str(&shown.stdout).expect("JSON")
}

/// A hidden file beside the target, by the end of its name.
pub fn hidden_file(dir: &Path, end: &str) -> PathBuf {
    let hidden = |file: &PathBuf| file.to_string_lossy().starts_with('.') && file.to_string_lossy().ends_with(end);
    dir.join(files_below(dir).into_iter().find(hidden).expect("a hidden file"))
}
