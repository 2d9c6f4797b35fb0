//! State on disk (`--memory`) goes with the process: it lies in files without a name, so a run that is killed leaves nothing behind that
//! could grow from run to run, and the next one ends as if nothing had happened.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{binary, dfc, folder, read};

const PIPELINE: &str = "job many { memory: 8MB, checkpoint: off }
record R { id: int64, k: int64 }
source made = generate(rows: 500000, schema: R)
stream groups = made |> aggregate(by: [id], n: count(), least: min(k)) |> sort(id)
sink groups |> csv(\"out.csv\")
";

/// Bytes that the process holds in files without a name.
fn without_a_name(process: u32) -> u64 {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return 0 };
    let unnamed = open.filter_map(Result::ok).filter(|entry| {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        target.to_string_lossy().contains("/.dfc/") && target.to_string_lossy().ends_with("(deleted)")
    });
    unnamed.filter_map(|entry| std::fs::metadata(entry.path()).ok()).map(|file| file.len()).sum()
}

fn files_of_state(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir.join(".dfc")) else { return Vec::new() };
    entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_run_that_is_killed_leaves_no_state_on_disk() {
    let dir = folder(&[("p.df", PIPELINE)]);
    for _ in 0..2 {
        let mut command = binary();
        command.current_dir(dir.path()).args(["run", "p.df"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("dfc starts");
        let begun = Instant::now();
        while without_a_name(child.id()) < 200_000 {
            assert!(begun.elapsed() < Duration::from_secs(120), "no state has gone to disk");
            assert_eq!(child.try_wait().expect("its own child"), None, "it ended before state went to disk");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("its own child");
        child.wait().expect("its own child");
        assert_eq!(files_of_state(dir.path()), Vec::<String>::new());
    }
    let output = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let limited = read(&dir.path().join("out.csv"));
    let output = dfc(dir.path(), &["run", "p.df", "--memory", "64GB"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(limited == read(&dir.path().join("out.csv")), "with little memory and with much: not the same");
    assert_eq!(files_of_state(dir.path()), Vec::<String>::new());
}
