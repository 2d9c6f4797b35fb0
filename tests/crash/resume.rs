//! Every example and every golden pipeline that runs: with a checkpoint every few milliseconds, at parallelism 2, killed at several moments,
//! resumed at 3, also after its newest checkpoint was damaged, it leaves what a run without a fault leaves (D13, F1, F3).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::{Output, binary, copy_folder, files_below, parquet_rows, read, root, run, write};

/// A pipeline in a copy of its folder.
struct Case {
    folder: PathBuf,
    pipeline: PathBuf,
    args: Vec<String>,
}

/// Where the first run is killed. Reading is slow, so that several checkpoints are taken of a few rows. The first manifest says no more than
/// that the job has begun.
const MOMENTS: &[&str] = &[
    "source-read=slow,source-read=kill@3",
    "source-read=slow,spool-sealed=kill@2",
    "source-read=slow,manifest-there=kill@2",
    "source-read=slow,manifest-there=kill@3",
    "source-read=slow,manifest-there=kill@4",
    "finish=kill",
    "finished=kill",
];

/// Pipelines that say that they take no checkpoints, whatever is asked of them: one shows rows as they come, one limits its
/// memory.
const WITHOUT: &[&str] = &[
    "examples/orders/orders.df",
    "tests/golden/runs/memory-spills/pipeline.df",
    "tests/golden/runs/orders/pipeline.df",
];

/// A run that ends well only where checkpoints are switched off: its join needs the disk.
const ONLY_WITHOUT: &str = "memory-join-spills";

/// Pipelines that take checkpoints, at least; and those among them that go on from the middle.
const PIPELINES: usize = 30;
const HALFWAY: usize = 25;

/// What the manifest of a checkpoint that isn't the last one says.
const REGULAR: &str = "\"kind\": \"regular\"";

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let examples = root().join("examples");
    for pipeline in files_below(&examples).into_iter().filter(|file| file.extension().is_some_and(|e| e == "df")) {
        if read(&examples.join(&pipeline)).lines().any(|line| line.starts_with("job ")) {
            cases.push(Case { folder: examples.clone(), pipeline, args: Vec::new() });
        }
    }
    let golden = root().join("tests/golden/runs");
    let mut folders: Vec<_> = std::fs::read_dir(&golden).expect("runs").map(|e| e.expect("an entry").path()).collect();
    folders.sort();
    for folder in folders {
        let runs = read(&folder.join("expected/code")).trim() == "0" && !folder.ends_with(ONLY_WITHOUT);
        if runs && !folder.join("stdin").exists() {
            let args = std::fs::read_to_string(folder.join("args")).unwrap_or_default();
            // The number of tasks is this test's.
            let args = args.replace("--parallelism 1", "");
            let args = args.split_whitespace().map(str::to_owned).collect();
            cases.push(Case { folder, pipeline: "pipeline.df".into(), args });
        }
    }
    cases
}

impl Case {
    /// A copy of its folder without what was left there, with a checkpoint every few milliseconds.
    fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().expect("a temporary folder");
        copy_folder(&self.folder, copy.path());
        std::fs::remove_dir_all(copy.path().join("expected")).ok();
        let beside = self.pipeline.parent().unwrap_or(Path::new(""));
        for left in ["out", "rejected", ".dfc"] {
            std::fs::remove_dir_all(copy.path().join(beside).join(left)).ok();
        }
        let pipeline = copy.path().join(&self.pipeline);
        let text = read(&pipeline).replace("checkpoint: off", "");
        let job = text.lines().position(|line| line.starts_with("job ")).expect("a job");
        let setting = "{ checkpoint { interval: 4ms }\n";
        let with = |(number, line): (usize, &str)| match number == job {
            true => format!("{}\n", line.replacen('{', setting, 1)),
            false => format!("{line}\n"),
        };
        write(&pipeline, &text.lines().enumerate().map(with).collect::<String>());
        copy
    }

    fn go(&self, dir: &Path, parallelism: &str, point: Option<&str>, more: &[&str]) -> Output {
        let mut command = binary();
        let pipeline = self.pipeline.display().to_string();
        command
            .current_dir(dir)
            .args(["run", &pipeline])
            .args(&self.args)
            .args(["--parallelism", parallelism])
            .args(more);
        if let Some(point) = point {
            command.env("DFC_POINT", point);
        }
        run(&mut command)
    }

    fn name(&self) -> String {
        let path = self.folder.join(&self.pipeline);
        path.strip_prefix(root()).unwrap_or(&path).display().to_string()
    }

    /// The manifests of its job, the newest one last.
    fn manifests(&self, dir: &Path) -> Vec<PathBuf> {
        manifests(&dir.join(self.pipeline.parent().unwrap_or(Path::new("")).join(".dfc")))
    }

    fn takes_checkpoints(&self) -> bool {
        !WITHOUT.contains(&self.name().as_str())
    }
}

/// The files that were made, their rows sorted: a job with several tasks promises no order behind an exchange.
fn made(dir: &Path, before: &[PathBuf]) -> Vec<(PathBuf, Vec<String>)> {
    let made = files_below(dir).into_iter().filter(|file| !before.contains(file));
    let lines = |file: PathBuf| {
        let mut lines = match file.extension().is_some_and(|e| e == "parquet") {
            true => parquet_rows(dir, &file.display().to_string()),
            false => {
                let bytes = std::fs::read(dir.join(&file)).expect("a result can be read");
                let text = String::from_utf8_lossy(&bytes).into_owned();
                text.lines().map(str::to_owned).collect()
            }
        };
        lines.sort_unstable();
        (file, lines)
    };
    made.map(lines).collect()
}

/// The manifests below a folder, in their order.
fn manifests(dir: &Path) -> Vec<PathBuf> {
    fn walk(at: &Path, found: &mut Vec<PathBuf>) {
        for path in std::fs::read_dir(at).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                walk(&path, found);
            } else if path.parent().is_some_and(|folder| folder.ends_with("manifests")) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, &mut found);
    found.sort();
    found
}

/// How many go on is counted by pipeline: each that takes checkpoints must have gone on from one at least once, and most of them from one
/// that was taken halfway, not from that of the end.
#[test]
fn every_pipeline_goes_on_to_the_same_result() {
    let cases = cases();
    let (mut resumed, mut halfway) = (BTreeSet::new(), BTreeSet::new());
    for case in &cases {
        let plain = case.copy();
        let before = files_below(plain.path());
        let whole = case.go(plain.path(), "1", None, &[]);
        assert_eq!(whole.code, 0, "{}: {}", case.name(), whole.stderr);
        let without = whole.stderr.contains("no checkpoints are taken");
        assert_eq!(without, !case.takes_checkpoints(), "{}: {}", case.name(), whole.stderr);
        if without {
            continue;
        }
        let expected = made(plain.path(), &before);
        for moment in MOMENTS {
            let dir = case.copy();
            let first = case.go(dir.path(), "2", Some(moment), &[]);
            assert!(matches!(first.code, 0 | -1), "{}, {moment}: {}", case.name(), first.stderr);
            if first.code == 0 {
                // It has no such moment.
                continue;
            }
            let newest = case.manifests(dir.path()).pop().map_or(String::new(), |manifest| read(&manifest));
            let second = case.go(dir.path(), "3", None, &[]);
            assert_eq!(second.code, 0, "{}, {moment}: {}", case.name(), second.stderr);
            if second.stderr.contains("going on from checkpoint") {
                resumed.insert(case.name());
                if newest.contains(REGULAR) {
                    halfway.insert(case.name());
                }
            }
            assert_eq!(made(dir.path(), &before), expected, "{}, {moment}", case.name());
        }
    }
    let all: BTreeSet<String> = cases.iter().filter(|case| case.takes_checkpoints()).map(Case::name).collect();
    println!("{} pipelines, of which {} went on from the middle", all.len(), halfway.len());
    let never: Vec<&String> = all.difference(&resumed).collect();
    assert!(never.is_empty(), "they went on from no checkpoint: {never:?}");
    assert!(all.len() >= PIPELINES && halfway.len() >= HALFWAY, "{} and {}", all.len(), halfway.len());
}

#[test]
fn a_damaged_newest_checkpoint_is_refused_and_an_older_one_gives_the_same_result() {
    let mut refused = 0;
    for case in cases().iter().filter(|case| case.takes_checkpoints()) {
        let dir = case.copy();
        let before = files_below(dir.path());
        // The last checkpoint stands, the result isn't visible yet.
        let first = case.go(dir.path(), "2", Some("source-read=slow,finish=kill"), &[]);
        assert_eq!(first.code, -1, "{}: {}", case.name(), first.stderr);
        let manifest = case.manifests(dir.path()).pop().expect("a manifest");
        let mut bytes = std::fs::read(&manifest).expect("it can be read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x20;
        std::fs::write(&manifest, bytes).expect("damaged");
        let second = case.go(dir.path(), "3", None, &[]);
        assert_eq!(second.code, 1, "{}: {}", case.name(), second.stderr);
        assert!(second.stderr.contains("error[R0503]"), "{}: {}", case.name(), second.stderr);
        let third = case.go(dir.path(), "3", None, &["--allow-older"]);
        assert_eq!(third.code, 0, "{}: {}", case.name(), third.stderr);
        let plain = case.copy();
        assert_eq!(case.go(plain.path(), "1", None, &[]).code, 0);
        assert_eq!(made(dir.path(), &before), made(plain.path(), &before), "{}", case.name());
        refused += 1;
    }
    assert!(refused >= PIPELINES, "{refused} pipelines");
}
