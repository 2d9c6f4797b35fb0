//! Jobs that take seconds over a few rows: many small files, read by a source that is slow (`DFC_POINT`), so that checkpoints are taken in
//! the middle however fast or busy the machine is.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Output, binary, dfc, folder};

/// Files of the input, each of which takes 20 ms.
pub const FILES: u64 = 400;
/// Rows of each.
pub const EACH: u64 = 40;
/// Rows of one long file: some thirty times 20 ms.
pub const LONG: u64 = 500_000;

/// Rows as lines: an id, and a text that no compression makes small.
fn rows(ids: std::ops::Range<u64>) -> String {
    let text = |id: u64| format!("{:016x}", (id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ids.map(|id| format!("{id},{}\n", text(id))).collect()
}

/// A pipeline with `rows` (`id`, `text`) as its source; `settings` are those of its checkpoints, `sinks` what the sink block holds.
pub fn pipeline(settings: &str, sinks: &str) -> String {
    format!(
        "job slow {{ parallelism: 1, checkpoint {{ {settings} }} }}\nrecord R {{ id: int64, text: string }}\n\
         source rows = csv(\"in/*.csv\", schema: R)\nsink {{\n{sinks}}}\n"
    )
}

/// A folder with this pipeline and its input.
pub fn prepared(pipeline: &str) -> tempfile::TempDir {
    let dir = folder(&[("p.df", pipeline)]);
    for file in 0..FILES {
        let text = format!("id,text\n{}", rows(file * EACH..(file + 1) * EACH));
        super::write(&dir.path().join(format!("in/{file:03}.csv")), &text);
    }
    dir
}

/// The same with one long file, so that a checkpoint says little of its source; with its content.
pub fn prepared_long(pipeline: &str) -> (tempfile::TempDir, String) {
    let text = format!("id,text\n{}", rows(0..LONG));
    (folder(&[("p.df", pipeline), ("in/all.csv", &text)]), text)
}

/// All rows as a file of them.
pub fn all_rows() -> String {
    format!("id,text\n{}", rows(0..FILES * EACH))
}

/// Starts it; `points` is what happens where, beside the slow source.
pub fn start(dir: &Path, points: &str, more: &[&str]) -> Child {
    let mut command = binary();
    command.current_dir(dir).args(["run", "p.df"]).args(more);
    command.env("DFC_POINT", format!("source-read=slow{points}"));
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dfc starts")
}

/// Its end.
pub fn ended(child: Child) -> Output {
    let output = child.wait_with_output().expect("dfc ends");
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::new(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The checkpoints as `dfc checkpoint list` gives them, oldest first, without the start.
pub fn listed(dir: &Path) -> Vec<Value> {
    let list = dfc(dir, &["checkpoint", "list", "p.df", "--format", "json"]).stdout;
    let all = list.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    all.filter(|checkpoint| checkpoint["kind"] != "start").collect()
}

/// The newest checkpoint's number, 0: there is none. Cheap: by the names of the manifests.
pub fn newest(dir: &Path) -> u64 {
    let names = std::fs::read_dir(dir.join(".dfc/slow/manifests")).into_iter().flatten().flatten();
    let number = |name: std::ffi::OsString| name.to_string_lossy().strip_suffix(".json")?.parse::<u64>().ok();
    names.filter_map(|entry| number(entry.file_name())).max().unwrap_or(0)
}

/// Waits until the job has a checkpoint with this number, or a later one.
pub fn wait_for(dir: &Path, number: u64) {
    let begun = Instant::now();
    while newest(dir) < number {
        assert!(begun.elapsed() < Duration::from_secs(60), "checkpoint {number} isn't taken");
        std::thread::sleep(Duration::from_millis(5));
    }
}
