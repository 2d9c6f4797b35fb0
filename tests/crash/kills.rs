//! Real kills of the real binary (D12, D13, D20, F1–F4, F9): a job is killed with SIGKILL at random moments, also while it recovers, started
//! again with another parallelism, and ends as if nothing had happened. An outside reader looks at the targets after each kill: it sees
//! nothing that isn't whole.
//!
//! `DFC_KILLS=1000 cargo test -p dfc crash` kills as often; a seed that fails is in its message, `DFC_SEED` begins there.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::random::Random;
use crate::support::{binary, files_below, folder, parquet_rows, read, run};

/// A job, its inputs, and how its targets are looked at.
struct Job {
    name: &'static str,
    pipeline: &'static str,
    /// Rows of `in.csv`: `id,k,v`.
    rows: u64,
    /// What the targets show, the same for equal content.
    shown: fn(&Path) -> Vec<String>,
}

const CHAIN: &str = "job chain { checkpoint { interval: 60ms } }
record R { id: int64, k: int64, v: decimal(10, 2) }
source rows = csv(\"in.csv\", schema: R)
stream kept = rows |> filter(v > 1) |> derive(twice: v * 2)
sink kept |> csv(\"out/kept.csv\")
";

const BRANCHES: &str = "job branches { checkpoint { interval: 60ms } errors { limit: 100000, to: \"bad\" } }
record R { id: int64, k: int64, v: decimal(10, 2) }
record S { k: int64, name: string }
source rows = csv(\"in.csv\", schema: R)
source names = csv(\"names.csv\", schema: S)
stream sound = rows |> require(v != 13, \"unlucky\")
stream groups = sound |> aggregate(by: [k], n: count(), total: sum(v), least: min(id))
stream named = groups |> join(names, on: k, kind: left)
stream once = sound |> distinct(by: [k], order: [desc(id)])
sink {
    named |> csv(\"out/named.csv\")
    once  |> jsonl(\"out/once.jsonl.gz\")
    sound |> csv(\"out/sound.csv\")
}
";

const PARTS: &str = "job parts { checkpoint { interval: 60ms } }
record R { id: int64, k: int64, v: decimal(10, 2) }
source rows = csv(\"in.csv\", schema: R)
sink {
    rows |> csv(\"out/parts/\")
    rows |> parquet(\"out/rows.parquet\")
}
";

fn sorted_lines(path: &Path) -> Vec<String> {
    let mut lines: Vec<String> = read(path).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn chain(dir: &Path) -> Vec<String> {
    read(&dir.join("out/kept.csv")).lines().map(str::to_owned).collect()
}

fn branches(dir: &Path) -> Vec<String> {
    let mut all = sorted_lines(&dir.join("out/named.csv"));
    all.extend(read(&dir.join("out/sound.csv")).lines().map(str::to_owned));
    let rejects = sorted_lines(&dir.join("bad/branches-rejects.jsonl"));
    all.push(format!(
        "{} rejected, {} values",
        rejects.len(),
        rejects.iter().filter(|r| r.contains("unlucky")).count()
    ));
    let unpacked = Command::new("gzip").arg("-dc").arg(dir.join("out/once.jsonl.gz")).output().expect("gzip runs");
    let mut once: Vec<String> = String::from_utf8_lossy(&unpacked.stdout).lines().map(str::to_owned).collect();
    once.sort_unstable();
    all.extend(once);
    all
}

fn parts(dir: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for part in files_below(&dir.join("out/parts")).iter().filter(|part| part.extension().is_some_and(|e| e == "csv")) {
        lines.extend(
            read(&dir.join("out/parts").join(part)).lines().filter(|line| *line != "id,k,v").map(str::to_owned),
        );
    }
    lines.sort_unstable();
    lines.extend(parquet_rows(dir, "out/rows.parquet"));
    lines
}

const JOBS: [Job; 3] = [
    Job { name: "chain", pipeline: CHAIN, rows: 250_000, shown: chain },
    Job { name: "branches", pipeline: BRANCHES, rows: 150_000, shown: branches },
    Job { name: "parts", pipeline: PARTS, rows: 150_000, shown: parts },
];

fn input(rows: u64) -> String {
    let mut random = Random(5);
    let mut text = String::from("id,k,v\n");
    for id in 0..rows {
        let (k, cents) = (random.below(5_000), random.below(10_000));
        text.push_str(&format!("{id},{k},{}.{:02}\n", cents / 100, cents % 100));
    }
    text
}

fn prepared(job: &Job) -> tempfile::TempDir {
    let names: String = (0..4_000).map(|k| format!("{k},name {k}\n")).collect();
    folder(&[("p.df", job.pipeline), ("in.csv", &input(job.rows)), ("names.csv", &format!("k,name\n{names}"))])
}

fn start(dir: &Path, parallelism: usize) -> std::process::Child {
    let mut command = binary();
    command.current_dir(dir).args(["run", "p.df", "--parallelism", &parallelism.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dfc starts")
}

/// Hidden files of unfinished work.
fn residue(dir: &Path) -> Vec<String> {
    let hidden = |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let files = files_below(dir).into_iter().filter(|file| hidden(file) && !file.starts_with("out/parts/"));
    files.map(|file| file.display().to_string()).collect()
}

fn survives(job: &Job) {
    let plain = prepared(job);
    let whole = run(binary().current_dir(plain.path()).args(["run", "p.df"]));
    assert_eq!(whole.code, 0, "{}: {}", job.name, whole.stderr);
    let expected = (job.shown)(plain.path());
    assert!(expected.len() > 1_000, "{}: {} lines", job.name, expected.len());

    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = number("DFC_KILLS").unwrap_or(18);
    let (mut done, mut resumed, mut seed) = (0, 0, number("DFC_SEED").unwrap_or(1));
    // As many as are wanted, and on until one came after a checkpoint.
    while done < kills || (resumed == 0 && done < 200) {
        let mut random = Random(seed);
        let dir = prepared(job);
        let mut here = 0;
        loop {
            let mut child = start(dir.path(), 1 + random.below(4));
            // After so many kills it may come to its end.
            if here < 9 {
                std::thread::sleep(Duration::from_millis(20 + random.below(700) as u64));
                // The test's own child; it may have ended before.
                let _ = child.kill();
            }
            let output = child.wait_with_output().expect("dfc ends");
            let said = String::from_utf8_lossy(&output.stderr);
            resumed += u64::from(said.contains("going on from checkpoint"));
            if output.status.success() {
                break;
            }
            assert_eq!(output.status.code(), None, "{}, seed {seed}, kill {here}: {said}", job.name);
            (done, here) = (done + 1, here + 1);
        }
        assert!((job.shown)(dir.path()) == expected, "{}, seed {seed}: another result than without kills", job.name);
        assert_eq!(residue(dir.path()), residue(plain.path()), "{}, seed {seed}: residue", job.name);
        seed += 1;
    }
    assert!(resumed > 0, "{}: no run went on from a checkpoint", job.name);
}

#[test]
fn a_chain_survives_kills_byte_for_byte() {
    survives(&JOBS[0]);
}

#[test]
fn groups_joins_rejects_and_several_targets_survive_kills() {
    survives(&JOBS[1]);
}

#[test]
fn folders_of_parts_and_parquet_files_survive_kills() {
    survives(&JOBS[2]);
}

/// What a run says that goes on after a kill; the first one of `rows` rows was killed when its third manifest stood.
fn after_a_kill(rows: u64) -> String {
    let dir = prepared(&Job { rows, ..JOBS[0] });
    let mut child = start(dir.path(), 2);
    let manifests = dir.path().join(".dfc/chain/manifests");
    let begun = std::time::Instant::now();
    while std::fs::read_dir(&manifests).map_or(0, Iterator::count) < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint was taken");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("the test's own child is killed");
    child.wait().expect("it ends");
    assert!(!dir.path().join("out/kept.csv").exists(), "nothing is visible yet");
    run(binary().current_dir(dir.path()).args(["run", "p.df"])).stderr
}

/// The three-minute proof of F9: run, kill, run again, see the position.
#[test]
fn the_first_lines_say_where_it_goes_on() {
    // On a busy machine this test may look so late that all rows are read: then with more of them.
    let mut said = after_a_kill(2_000_000);
    if said.contains("  `rows`: at its end") {
        said = after_a_kill(12_000_000);
    }
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("going on from checkpoint ") && lines[0].contains(" taken "), "{said}");
    assert!(lines[1].starts_with("  `rows`: ") && lines[1].contains("in.csv"), "{said}");
}
