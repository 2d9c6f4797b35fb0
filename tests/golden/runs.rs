//! `runs/NAME/`: a pipeline with its data, run in a copy of the folder. `expected/` holds `code`, `stdout`, `stderr` (times
//! and rates taken out) and every file that the run made. `args`, if there, holds further arguments, `stdin` what is fed in.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use crate::support::golden::Golden;
use crate::support::{binary, copy_folder, files_below, read, root, run};

#[test]
fn runs() {
    let mut golden = Golden::default();
    let folder = root().join("tests/golden/runs");
    let mut cases: Vec<_> =
        std::fs::read_dir(&folder).expect("golden/runs").map(|e| e.expect("an entry").path()).collect();
    cases.sort();
    for case in cases {
        for tier in ["jit", "interpreter"] {
            one(&case, tier, &mut golden);
        }
    }
    golden.finish();
}

fn one(case: &Path, tier: &str, golden: &mut Golden) {
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_folder(case, copy.path());
    std::fs::remove_dir_all(copy.path().join("expected")).ok();
    let before = files_below(copy.path());
    let extra = if case.join("args").exists() { read(&case.join("args")) } else { String::new() };
    let mut command = binary();
    command.current_dir(copy.path()).args(["run", "pipeline.df", "--engine", tier]).args(extra.split_whitespace());
    if case.join("stdin").exists() {
        let input = std::fs::File::open(case.join("stdin")).expect("stdin can be read");
        command.stdin(Stdio::from(input));
    }
    let output = run(&mut command);
    let expected = case.join("expected");
    golden.check(&expected.join("code"), &format!("{}\n", output.code));
    golden.check(&expected.join("stdout"), &output.stdout);
    golden.check(&expected.join("stderr"), &without_times(&output.stderr));
    let made: Vec<_> = files_below(copy.path()).into_iter().filter(|file| !before.contains(file)).collect();
    let list: String = made.iter().map(|file| format!("{}\n", file.display())).collect();
    golden.check(&expected.join("files"), &list);
    for file in made.iter().filter(|file| file.extension().is_some_and(|e| e == "csv" || e == "jsonl")) {
        golden.check(&expected.join(file), &read(&copy.path().join(file)));
    }
}

/// Every code that the sources can give at run time has a page, and every page of such a code belongs to one that they give.
#[test]
fn codes_at_run_time_have_pages() {
    let mut given = BTreeSet::new();
    for folder in ["compiler/eval/src", "runtime", "stdlib/src"] {
        for file in files_below(&root().join(folder)) {
            let is_test = file.iter().any(|part| part == "tests");
            if file.extension().is_some_and(|e| e == "rs") && !is_test {
                let text = read(&root().join(folder).join(&file));
                let codes = text.split("\"R0").skip(1).filter_map(|rest| rest.split_once('"'));
                given.extend(codes.filter(|(digits, _)| digits.len() == 3).map(|(digits, _)| format!("R0{digits}")));
            }
        }
    }
    let pages: BTreeSet<String> =
        dfc_diagnostics::codes::CODES.iter().map(|c| c.code.to_owned()).filter(|c| c.starts_with('R')).collect();
    assert_eq!(given, pages);
}

/// Takes out what differs from run to run: `done in 3 ms` and `(1.2 MB/s)`.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.split_once(": done in ").map_or(line.to_owned(), |(job, _)| format!("{job}: done in …"));
        let line = match (line.find(" ("), line.find("/s)")) {
            (Some(from), Some(to)) if from < to => format!("{}{}", &line[..from], &line[to + 3..]),
            _ => line,
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}
