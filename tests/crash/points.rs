//! Every place at which an operation of the outside world happens, and everything that can go wrong there (D12, D13, D20, F1–F4): the job ends
//! in a clear error, or goes on by itself; the run after it ends with the targets of a run without a fault, and nothing is left behind.
//!
//! A seeded sample; `DFC_FULL=1 cargo test -p dfc --test all crash::points` takes all of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use dfc_checkpoint::{Checkpoints, Kind, Place};

use crate::support::random::Random;
use crate::support::{Output, binary, files_below, folder, read, run};

/// The places of a run from its start, in about the order in which they are passed.
const RUNNING: &[&str] = &[
    "restore-ledger",
    "source-read",
    "spool-write",
    "spool-seal",
    "file-sync",
    "spool-sync",
    "spool-sealed",
    "storage-write",
    "storage-sync",
    "storage-name",
    "storage-named",
    "manifest",
    "manifest-there",
    "apply",
    "parts-place",
    "parts-placed",
    "table-load",
    "table-loaded",
    "applied",
    "note-applied",
    "storage-remove",
    "retain-manifests",
    "retain-parts",
    "finish",
    "file-publish",
    "file-published",
    "finished",
];

/// Those that a run passes before it goes on from a checkpoint.
const RECOVERING: &[&str] = &["storage-read", "restore-ledger", "apply", "applied"];

const ACTIONS: &[&str] = &["panic", "kill", "eio", "enospc", "stall"];

/// Where rows were lost once while the run ended well: a folder's part that couldn't be synced, a spool that couldn't be sealed behind a
/// closed epoch. Taken always.
const ONCE_LOST: &[&str] = &[
    "file-sync=eio@1",
    "file-sync=eio@2",
    "file-sync=enospc@1",
    "spool-sync=eio@1",
    "spool-seal=eio@1",
    "spool-seal=eio@2",
];

const PIPELINE: &str = "job points {
    checkpoint { interval: 20ms, retain: 1 }
    errors { limit: 100000, to: \"bad\" }
    restart { attempts: 2, backoff: 50ms }
}
record R { id: int64, k: int64, v: int64 }
source rows = csv(\"in.csv\", schema: R)
stream sound = rows |> require(v != 13, \"unlucky\")
stream groups = sound |> aggregate(by: [k], n: count(), total: sum(v))
sink {
    groups |> csv(\"out/groups.csv\")
    sound  |> csv(\"out/sound.csv\")
    sound  |> csv(\"out/parts/\")
    sound  |> sqlite(\"out/rows.db\", table: \"rows\", create: if_missing)
}
";

fn prepared() -> tempfile::TempDir {
    let mut random = Random(7);
    let mut text = String::from("id,k,v\n");
    for id in 0..20_000 {
        text.push_str(&format!("{id},{},{}\n", random.below(500), random.below(100)));
    }
    let dir = folder(&[("p.df", PIPELINE), ("in.csv", &text)]);
    std::fs::create_dir(dir.path().join("out")).expect("a folder");
    dir
}

fn go(dir: &Path, point: Option<&str>) -> Output {
    let mut command = binary();
    command.current_dir(dir).args(["run", "p.df", "--parallelism", "2"]);
    if let Some(point) = point {
        command.env("DFC_POINT", point);
    }
    run(&mut command)
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// What the targets show, and the rejected rows.
fn shown(dir: &Path) -> Vec<Vec<String>> {
    let out = dir.join("out");
    let mut parts = String::new();
    for part in files_below(&out.join("parts")).iter().filter(|part| part.extension().is_some_and(|e| e == "csv")) {
        parts.extend(read(&out.join("parts").join(part)).lines().skip(1).map(|line| format!("{line}\n")));
    }
    let program = "import sqlite3
for row in sqlite3.connect('out/rows.db').execute('select id, k, v from rows'): print(','.join(map(str, row)))";
    let table = run(Command::new("python3").current_dir(dir).args(["-c", program]));
    assert_eq!(table.code, 0, "{}", table.stderr);
    vec![
        sorted(&read(&out.join("groups.csv"))),
        read(&out.join("sound.csv")).lines().map(str::to_owned).collect(),
        sorted(&parts),
        sorted(&table.stdout),
        sorted(&read(&dir.join("bad/points-rejects.jsonl"))),
    ]
}

/// Hidden files of unfinished work.
fn residue(dir: &Path) -> Vec<String> {
    let hidden = |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let files = files_below(dir).into_iter().filter(|file| hidden(file) && !file.starts_with("out/parts/"));
    files.map(|file| file.display().to_string()).collect()
}

/// The places that a run has passed, as `DFC_POINT` with `log` writes them.
fn passed(output: &Output) -> BTreeSet<&str> {
    output.stderr.lines().filter_map(|line| line.strip_prefix("point ")).collect()
}

/// A job that was cut off when its first checkpoints were there.
fn cut_off() -> tempfile::TempDir {
    let dir = prepared();
    let output = go(dir.path(), Some("applied=kill@3"));
    assert_eq!(output.code, -1, "{}", output.stderr);
    dir
}

/// Whether the job had noted its end, and was only tidying up: the next run would be another one, which inserts all rows again.
fn has_finished(dir: &Path) -> bool {
    let at = Checkpoints::new(Place::open(None, dir).expect("a place"), "points");
    let newest = at.newest(true).ok().flatten().filter(|newest| newest.kind == Kind::Terminal);
    newest.is_some_and(|newest| at.applied().is_ok_and(|applied| applied.finished(&newest.lineage) >= newest.number))
}

/// What isn't as it should be after an action at a place.
fn wrong(dir: &Path, point: &str, expected: &[Vec<String>]) -> Result<(), String> {
    let first = go(dir, Some(point));
    let kills = point.contains("=kill@");
    match first.code {
        0 => {}
        -1 if kills => {}
        1 if first.stderr.contains("error[R0") => {}
        // Before the run begins there is nothing that a panic could harm.
        101 if point.starts_with("storage-read=panic") => {}
        code => return Err(format!("it ended with {code}: {}", first.stderr)),
    }
    if first.code != 0 && !has_finished(dir) {
        let second = go(dir, None);
        if second.code != 0 {
            return Err(format!(
                "after {}the run after it ended with {}: {}",
                first.stderr, second.code, second.stderr
            ));
        }
    }
    let found = shown(dir);
    let names = ["groups", "sound", "parts", "table", "rejects"];
    for ((name, found), expected) in names.iter().zip(&found).zip(expected) {
        if found != expected {
            return Err(format!("{name}: {} lines instead of {}; {}", found.len(), expected.len(), first.stderr));
        }
    }
    match residue(dir).as_slice() {
        [] => Ok(()),
        residue => Err(format!("left behind: {residue:?}")),
    }
}

#[test]
fn whatever_fails_wherever_it_fails_costs_no_row() {
    let plain = prepared();
    let whole = go(plain.path(), Some("none=log"));
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let expected = shown(plain.path());
    assert!(expected.iter().all(|lines| lines.len() > 100));
    // Every place is in the table, and every place of the table is passed.
    let table: BTreeSet<&str> = RUNNING.iter().copied().collect();
    let known: BTreeSet<&str> = table.iter().chain(RECOVERING).copied().collect();
    let seen = passed(&whole);
    assert!(seen.is_subset(&known), "not in the table: {:?}", seen.difference(&known));
    assert!(table.is_subset(&seen), "not passed: {:?}", table.difference(&seen));
    let resumed = cut_off();
    let log = go(resumed.path(), Some("none=log"));
    assert!(RECOVERING.iter().all(|point| passed(&log).contains(point)), "{:?}", passed(&log));

    let running = RUNNING.iter().map(|point| (false, point));
    let all = running.chain(RECOVERING.iter().map(|point| (true, point)));
    let all: Vec<_> = all.flat_map(|(late, point)| ACTIONS.iter().map(move |action| (late, point, action))).collect();
    let full = std::env::var("DFC_FULL").is_ok_and(|full| full == "1");
    let seed = std::env::var("DFC_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random(seed);
    let mut failures = Vec::new();
    for point in ONCE_LOST {
        if let Err(what) = wrong(prepared().path(), point, &expected) {
            failures.push(format!("DFC_POINT={point}: {what}"));
        }
    }
    for (late, point, action) in all {
        let times: &[u32] = if full { &[1, 2, 5] } else { &[[1, 2, 5][random.below(3)]] };
        if !full && random.below(6) > 0 {
            continue;
        }
        for time in times {
            let dir = if late { cut_off() } else { prepared() };
            let point = format!("{point}={action}@{time}");
            if let Err(what) = wrong(dir.path(), &point, &expected) {
                failures.push(format!("{}DFC_POINT={point}: {what}", if late { "going on, " } else { "" }));
            }
        }
    }
    assert!(failures.is_empty(), "seed {seed}: {} failed:\n{}", failures.len(), failures.join("\n"));
}

/// A planted fault: a target that doesn't look into its ledger when it applies an epoch gives rows twice after an answer that was lost.
#[test]
fn a_target_without_a_ledger_is_seen() {
    for planted in [false, true] {
        let dir = prepared();
        let mut command = binary();
        command.current_dir(dir.path()).args(["run", "p.df"]).env("DFC_POINT", "table-loaded=eio");
        if planted {
            command.env("DFC_PLANTED", "applied-twice");
        }
        let output = run(&mut command);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let rows = &shown(dir.path())[3];
        let once: BTreeSet<&String> = rows.iter().collect();
        assert_eq!(once.len() < rows.len(), planted, "{} rows, {} of them once", rows.len(), once.len());
    }
}

/// The program that is shipped has no such places, and no planted fault: nothing but tests asks for them.
#[test]
fn only_tests_have_such_places() {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(crate::support::root());
    let tree = run(command.args(["tree", "--offline", "-p", "dfc", "-e", "normal,build,features", "--prefix", "none"]));
    assert_eq!(tree.code, 0, "{}", tree.stderr);
    assert!(tree.stdout.contains("dfc-trial feature \"default\""), "{}", tree.stdout);
    assert!(!tree.stdout.contains("dfc-trial feature \"on\""), "{}", tree.stdout);
}
