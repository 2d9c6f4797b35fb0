//! Every pipeline in `examples/` checks without a finding and runs; its result does not depend on parallelism or tier.

use std::path::{Path, PathBuf};

use crate::support::{copy_folder, dfc, files_below, read, root};

/// The pipelines that hold a job, relative to `examples/`.
fn pipelines() -> Vec<PathBuf> {
    let folder = root().join("examples");
    let files = files_below(&folder).into_iter().filter(|file| file.extension().is_some_and(|e| e == "df"));
    let jobs: Vec<_> = files.filter(|file| read(&folder.join(file)).lines().any(|l| l.starts_with("job "))).collect();
    assert!(jobs.len() >= 10, "{jobs:?}");
    jobs
}

#[test]
fn they_check_without_a_finding() {
    for pipeline in pipelines() {
        let output = dfc(&root().join("examples"), &["check", &pipeline.display().to_string(), "--format", "json"]);
        assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{}", pipeline.display());
    }
}

#[test]
fn they_give_the_same_result_at_any_parallelism_and_in_both_tiers() {
    for pipeline in pipelines() {
        let base = results(&pipeline, &["--parallelism", "1"]);
        assert!(!base.is_empty(), "{} made no result", pipeline.display());
        for args in [["--parallelism", "3"], ["--engine", "interpreter"]] {
            assert_eq!(results(&pipeline, &args), base, "{} {args:?}", pipeline.display());
        }
    }
}

/// The files that a run makes, text files with their lines sorted where the job promises no order.
fn results(pipeline: &Path, args: &[&str]) -> Vec<(PathBuf, Vec<String>)> {
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_folder(&root().join("examples"), copy.path());
    // Somebody may have run the examples where they are.
    let folder = copy.path().join(pipeline.parent().expect("an example has a folder"));
    for left in ["out", "rejected"] {
        std::fs::remove_dir_all(folder.join(left)).ok();
    }
    let before = files_below(copy.path());
    let name = pipeline.display().to_string();
    let mut all = vec!["run", name.as_str()];
    all.extend(args);
    let output = dfc(copy.path(), &all);
    assert_eq!(output.code, 0, "{name} {args:?}: {}", output.stderr);
    let made = files_below(copy.path()).into_iter().filter(|file| !before.contains(file));
    made.map(|file| {
        let bytes = std::fs::read(copy.path().join(&file)).expect("a result can be read");
        // Parquet files are compared by their size in rows elsewhere; here by their being made.
        let mut lines: Vec<String> = match String::from_utf8(bytes) {
            Ok(text) if file.extension().is_some_and(|e| e != "parquet") => text.lines().map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        if name.contains("highcard") {
            lines.sort();
        }
        (file, lines)
    })
    .collect()
}
