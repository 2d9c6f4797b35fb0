//! Kills as others see them (D12, D13, F1–F4): somebody who looks at the targets all the while; a process that is stopped, given up for dead
//! and wakes up beside its successor; a disk that is full in earnest.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dfc_checkpoint::{Checkpoints, Place};

use crate::support::databases::{psql, server, sqlite};
use crate::support::random::Random;
use crate::support::{binary, dfc, files_below, folder, read, run, write};

const ROWS: u64 = 300_000;

fn input() -> String {
    let rows: String = (0..ROWS).map(|id| format!("{id},{}\n", id * 7919 % 1000)).collect();
    format!("id,k\n{rows}")
}

/// One source, read in its order, into a folder of parts and tables, which take so many rows a second; 0: as many as they can.
fn pipeline(rate: u64, more: &str) -> String {
    let rate = if rate == 0 { String::new() } else { format!(", rate: {rate}") };
    format!(
        "job watched {{ parallelism: 1, checkpoint {{ interval: 30ms }} }}\nrecord R {{ id: int64, k: int64 }}\n\
         source rows = csv(\"in.csv\", schema: R)\nsink {{\n    rows |> csv(\"parts/\")\n\
             rows |> sqlite(\"rows.db\", table: \"t\", create: if_missing{rate})\n{more}}}\n"
    )
}

fn start(dir: &Path, url: &str, parallelism: usize) -> Child {
    let mut command = binary();
    command.current_dir(dir).env("PG_URL", url).args(["run", "p.df", "--parallelism", &parallelism.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dfc starts")
}

/// What a target shows: how many rows, the largest id and the sum of all.
type Shown = (u64, u64, u64);

fn parts(dir: &Path) -> Shown {
    let mut shown = (0, 0, 0);
    let mut files = files_below(&dir.join("parts"));
    // What is hidden is not shown.
    files.retain(|file| file.extension().is_some_and(|e| e == "csv") && !file.to_string_lossy().starts_with('.'));
    for file in files {
        for line in read(&dir.join("parts").join(file)).lines().skip(1) {
            let id: u64 = line.split(',').next().and_then(|id| id.parse().ok()).expect("an id");
            shown = (shown.0 + 1, shown.1.max(id), shown.2 + id);
        }
    }
    shown
}

fn numbers(text: &str) -> Shown {
    let numbers: Vec<u64> = text.trim().split('|').map(|number| number.parse().expect("a number")).collect();
    (numbers[0], numbers[1], numbers[2])
}

const SHOWN: &str = "SELECT count(*), coalesce(max(id), 0), coalesce(sum(id), 0) FROM t";

fn in_sqlite(dir: &Path) -> Shown {
    let made = "CREATE TABLE IF NOT EXISTS t (id INTEGER, k INTEGER)";
    match dir.join("rows.db").exists() {
        true => numbers(&sqlite(dir, "rows.db", &format!("{made};;{SHOWN}"))),
        false => (0, 0, 0),
    }
}

fn checkpoints(dir: &Path) -> Checkpoints {
    Checkpoints::new(Place::open(None, dir).expect("a place"), "watched")
}

/// Rows that the newest checkpoint covers. Only its manifest counts here: that its rows have just been given to a target, and their spool
/// removed, is no damage.
fn covered(dir: &Path) -> u64 {
    // While one is looked at retention may remove it: then there is a newer one.
    let newest = (0..100).find_map(|_| {
        let manifests = checkpoints(dir).manifests().ok()?;
        manifests.last().map_or(Some(None), |(_, newest)| newest.as_ref().ok().cloned().map(Some))
    });
    let newest = newest.expect("the newest checkpoint");
    newest.map_or(0, |manifest| manifest.sources.iter().map(|source| source.rows).sum())
}

/// All rows once.
fn is_whole(dir: &Path, what: &str) {
    let whole = (ROWS, ROWS - 1, ROWS * (ROWS - 1) / 2);
    assert_eq!((parts(dir), in_sqlite(dir)), (whole, whole), "{what}");
}

/// Nothing hidden left behind.
fn is_clean(dir: &Path, what: &str) {
    let spool = files_below(&dir.join(".dfc/watched/spool"));
    assert_eq!(spool, Vec::<std::path::PathBuf>::new(), "{what}: rows that nobody needs any more");
}

/// Whoever looks at the targets again and again, while the job is killed and started again, sees only rows that a whole checkpoint covers, all of them up to some
/// row, and never sees one vanish.
#[test]
fn an_outside_reader_sees_what_is_covered_and_sees_nothing_vanish() {
    let server = server();
    let name = format!("watched_{}", std::process::id());
    let url = server.as_ref().map_or(String::new(), |server| {
        psql(server, &format!("CREATE DATABASE {name}"));
        format!("{}/{name}", server.rsplit_once('/').expect("a URL").0)
    });
    let more = match server {
        Some(_) => {
            psql(&url, "CREATE TABLE t (id bigint, k bigint)");
            "    rows |> postgres(secret(\"PG_URL\"), table: \"t\", rate: 60000)\n"
        }
        None => "",
    };
    let dir = folder(&[("p.df", &pipeline(60_000, more)), ("in.csv", &input())]);
    let over = AtomicBool::new(false);
    let halfway = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let looks: [(&str, &dyn Fn() -> Shown); 3] = [
                ("parts", &|| parts(dir.path())),
                ("sqlite", &|| in_sqlite(dir.path())),
                ("postgres", &|| if url.is_empty() { (0, 0, 0) } else { numbers(&psql(&url, SHOWN)) }),
            ];
            let (mut before, mut halfway) = ([0; 3], [0; 3]);
            while !over.load(Ordering::Relaxed) {
                for (target, (name, look)) in looks.iter().enumerate() {
                    let (count, most, sum) = look();
                    let covered = covered(dir.path());
                    assert!(count <= covered, "{name} shows {count} rows, checkpoints cover {covered}");
                    assert!(
                        count == 0 || (count, sum) == (most + 1, most * count / 2),
                        "{name}: {count} rows up to {most}"
                    );
                    assert!(count >= before[target], "{name}: {} rows were there, now {count}", before[target]);
                    halfway[target] += u32::from(count > before[target] && count < ROWS);
                    before[target] = count;
                }
            }
            halfway
        });
        let mut random = Random(11);
        for kill in 0.. {
            assert!(kill < 60, "the job doesn't come to its end");
            // Only order tells which rows are covered.
            let mut child = start(dir.path(), &url, 1);
            if kill < 10 {
                std::thread::sleep(Duration::from_millis(80 + random.below(350) as u64));
                // The test's own child; it may have ended before.
                let _ = child.kill();
            }
            let output = child.wait_with_output().expect("it ends");
            if output.status.success() || reader.is_finished() {
                break;
            }
            assert_eq!(output.status.code(), None, "kill {kill}: {}", String::from_utf8_lossy(&output.stderr));
        }
        over.store(true, Ordering::Relaxed);
        reader.join()
    });
    let halfway = halfway.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    is_whole(dir.path(), "in the end");
    is_clean(dir.path(), "in the end");
    assert!(halfway.iter().any(|&looks| looks > 0), "no target was seen halfway: {halfway:?}");
    if let Some(server) = server {
        assert_eq!(numbers(&psql(&url, SHOWN)).0, ROWS);
        psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = run(Command::new("kill").args([name, &child.id().to_string()]));
    assert_eq!(sent.code, 0, "{}", sent.stderr);
}

/// A process is stopped, its lock is lost, as on a network's disk, and another one takes its place; then it wakes up. Whoever comes second
/// says that there is another one and stops; no row is lost or there twice.
#[test]
fn a_process_that_wakes_beside_its_successor_is_stopped() {
    let mut fenced = 0;
    for seed in 1..=30 {
        // Some jobs end before they can be stopped.
        if seed > 8 && fenced > 1 {
            break;
        }
        let mut random = Random(seed);
        // Something to compute for each row, so that it is at work still when it is stopped.
        let slow = "stream rows = read |> filter(sha256(sha256(sha256(f\"{id}\"))) != \"\")\nsink {";
        let text = pipeline(0, "").replace("source rows", "source read").replace("sink {", slow);
        let dir = folder(&[("p.df", &text), ("in.csv", &input())]);
        let mut first = start(dir.path(), "", 1 + random.below(3));
        let begun = Instant::now();
        let newest =
            || checkpoints(dir.path()).manifests().map_or(0, |all| all.last().map_or(0, |(number, _)| *number));
        while newest() < 2 && first.try_wait().expect("the test's own child").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint was taken");
            std::thread::sleep(Duration::from_millis(2));
        }
        // One that has ended can be stopped as long as nobody has asked how it ended.
        if first.try_wait().expect("the test's own child").is_some() {
            continue;
        }
        std::thread::sleep(Duration::from_millis(random.below(60) as u64));
        signal(&first, "-STOP");
        if first.try_wait().expect("the test's own child").is_some() {
            continue;
        }
        std::fs::remove_file(dir.path().join(".dfc/watched/lock")).expect("the lock is lost");
        let second = start(dir.path(), "", 1 + random.below(3));
        std::thread::sleep(Duration::from_millis(random.below(700) as u64));
        signal(&first, "-CONT");
        // Where the first one's last checkpoint stood when it was stopped both come to the end, and do the same there.
        let (mut ended, mut anew) = (0, false);
        for (name, mut child) in [("first", first), ("second", second)] {
            let begun = Instant::now();
            while child.try_wait().expect("the test's own child").is_none() {
                assert!(begun.elapsed() < Duration::from_secs(120), "seed {seed}: the {name} doesn't end");
                std::thread::sleep(Duration::from_millis(10));
            }
            let output = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            // The first one had come to its end and was only about to go: the second is another run of the job, which inserts all rows again.
            anew |= output.status.success() && name == "second" && !said.contains("going on from checkpoint");
            match output.status.code() {
                Some(0) => ended += 1,
                // The manifest's number, the target's ledger, rows that are gone or files that are there tell that there is another one.
                Some(1) if ["R0504", "R0603", "R0218", "R0205"].iter().any(|code| said.contains(code)) => fenced += 1,
                code => panic!("seed {seed}: the {name} ended with {code:?}: {said}"),
            }
        }
        if anew {
            continue;
        }
        if ended == 0 {
            let last = dfc(dir.path(), &["run", "p.df"]);
            assert_eq!(last.code, 0, "seed {seed}: {}", last.stderr);
        }
        // The one that was stopped may leave rows of an epoch that was the other's: it can't know.
        is_whole(dir.path(), &format!("seed {seed}"));
    }
    assert!(fenced > 1, "{fenced} were stopped");
}

/// A file system of its own, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, said loudly, where nothing may be mounted.
    fn new(kilobytes: u64) -> Option<SmallDisk> {
        let dir = tempfile::tempdir().expect("a folder");
        let size = format!("size={kilobytes}k");
        let mounted = run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.path()));
        if mounted.code == 0 {
            return Some(SmallDisk(dir));
        }
        eprintln!("NOT TESTED: a small disk can't be mounted here: {}", mounted.stderr);
        None
    }

    fn grow(&self) {
        let grown = run(Command::new("mount").args(["-o", "remount,size=1g"]).arg(self.0.path()));
        assert_eq!(grown.code, 0, "{}", grown.stderr);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

/// The disk on which targets and checkpoints lie is full at some moment: a clear error, every checkpoint whole; with room the same command
/// ends as if nothing had happened.
#[test]
fn a_disk_that_is_full_costs_no_row() {
    let mut refused = 0;
    for kilobytes in [300, 2_000, 4_000, 6_000, 9_000, 20_000] {
        let Some(disk) = SmallDisk::new(kilobytes) else { return };
        let dir = disk.0.path();
        let elsewhere = folder(&[("in.csv", &input())]);
        let source = elsewhere.path().join("in.csv").display().to_string();
        write(&dir.join("p.df"), &pipeline(0, "").replace("in.csv", &source));
        let mut child = start(dir, "", 1);
        let begun = Instant::now();
        while child.try_wait().expect("the test's own child").is_none() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // What still waits for room, since a target's failure may pass, finds it.
        disk.grow();
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        let refuses = output.status.code() == Some(1) && said.contains("error[R0");
        assert!(output.status.success() || refuses, "{kilobytes} kB: {said}");
        refused += u32::from(refuses);
        if refuses {
            let verified = dfc(dir, &["checkpoint", "verify", "p.df"]);
            assert_eq!(verified.code, 0, "{kilobytes} kB: {}{}", verified.stdout, verified.stderr);
            let second = dfc(dir, &["run", "p.df"]);
            assert_eq!(second.code, 0, "{kilobytes} kB: {}", second.stderr);
        }
        is_whole(dir, &format!("{kilobytes} kB"));
        is_clean(dir, &format!("{kilobytes} kB"));
    }
    assert!(refused > 1, "{refused} times there was no room");
}
