//! The whole compiler on damaged pipelines: no panic, no hang, and `check` agrees with `plan`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dfc_compiler::Compiler;
use dfc_compiler::files::MemoryFiles;

use crate::support::random::Random;
use crate::support::{files_below, read, root};

/// Every pipeline of the project.
fn pipelines() -> Vec<(PathBuf, String)> {
    let mut out = Vec::new();
    for folder in ["examples", "tests/golden"] {
        let folder = root().join(folder);
        let files = files_below(&folder).into_iter().filter(|f| f.extension().is_some_and(|e| e == "df"));
        out.extend(files.map(|file| (file.clone(), read(&folder.join(&file)))));
    }
    assert!(out.len() > 20);
    out
}

/// Words that a mutation puts in.
const WORDS: [&str; 30] = [
    "job",
    "stream",
    "source",
    "sink",
    "record",
    "fn",
    "param",
    "use",
    "|>",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "null",
    "?",
    "99999999999999999999",
    "\"",
    "f\"{",
    "@2026-02-30",
    "as int8",
    "left.",
    "??",
    "match",
    "...",
    "金",
];

/// Removes, doubles, swaps or replaces tokens, or cuts the text at any byte.
fn mutated(text: &str, random: &mut Random) -> String {
    let tokens = dfc_grammar::lex(text);
    let mut parts: Vec<&str> = tokens.iter().map(|t| &text[t.span.start as usize..t.span.end as usize]).collect();
    for _ in 0..1 + random.below(4) {
        if parts.is_empty() {
            break;
        }
        let at = random.below(parts.len());
        match random.below(5) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[at]),
            2 => parts.insert(at, WORDS[random.below(WORDS.len())]),
            3 => parts[at] = WORDS[random.below(WORDS.len())],
            _ => {
                let other = random.below(parts.len());
                parts.swap(at, other);
            }
        }
    }
    let mut out = parts.concat();
    if random.below(10) == 0 {
        let mut cut = random.below(out.len());
        while !out.is_char_boundary(cut) {
            cut -= 1;
        }
        out.truncate(cut);
    }
    out
}

#[test]
fn damaged_pipelines_give_findings_and_never_a_panic() {
    let pipelines = pipelines();
    let libraries: BTreeMap<PathBuf, String> =
        pipelines.iter().map(|(path, text)| (PathBuf::from(path.file_name().expect("a name")), text.clone())).collect();
    let mut random = Random(0x5eed);
    let rounds = if std::env::var_os("CI").is_some() { 6_000 } else { 2_000 };
    let mut planned = 0;
    for round in 0..rounds {
        let (_, text) = &pipelines[random.below(pipelines.len())];
        let text = mutated(text, &mut random);
        let mut files = libraries.clone();
        files.insert(PathBuf::from("pipeline.df"), text.clone());
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
            let checked = compiler.check(Path::new("pipeline.df"));
            for diagnostic in &checked.diagnostics {
                assert!(dfc_diagnostics::codes::explain(diagnostic.code).is_some(), "{} has no page", diagnostic.code);
            }
            dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false);
            let plan = compiler.plan(Path::new("pipeline.df"));
            assert!(plan.is_err() || !checked.has_errors(), "a plan in spite of errors");
            assert!(plan.is_ok() || checked.has_errors() || checked.summary.job.is_none(), "no plan and no error");
            plan.is_ok_and(|plan| {
                dfc_planner::plan_stages(&plan);
                true
            })
        }));
        match result {
            Ok(ran) => planned += usize::from(ran),
            Err(_) => panic!("round {round} panicked on:\n{text}"),
        }
        assert!(start.elapsed() < Duration::from_secs(5), "round {round} took {:?} on:\n{text}", start.elapsed());
    }
    assert!(planned > 0, "no mutation left a sound pipeline: the plans were never tried");
}
