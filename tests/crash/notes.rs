//! A kill between what has happened and its note (D12, D14, D20): rows are in the target, or have their final names, and nothing says so yet.
//! Nobody takes that for damage, the next run gives no row twice, and no spool stays behind.

use std::path::Path;

use crate::support::databases::sqlite;
use crate::support::slow::{EACH, FILES, ended, pipeline, prepared, start};
use crate::support::{dfc, files_below, read};

const SINKS: &str = "    rows |> csv(\"parts/\")\n    rows |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n    rows |> csv(\"out.csv\")\n";

/// All rows once in each target, and no spool.
fn is_whole(dir: &Path, what: &str) {
    let all = FILES * EACH;
    let parts = files_below(&dir.join("parts"));
    let parts = parts.iter().filter(|part| part.extension().is_some_and(|e| e == "csv"));
    let mut ids: Vec<u64> = parts
        .flat_map(|part| read(&dir.join("parts").join(part)).lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
        .map(|line| line.split(',').next().and_then(|id| id.parse().ok()).expect("an id"))
        .collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..all), "{what}: other parts");
    let counts = sqlite(dir, "t.db", "SELECT count(*), count(DISTINCT id) FROM t");
    assert_eq!(counts, format!("{all}|{all}\n"), "{what}");
    assert_eq!(read(&dir.join("out.csv")).lines().count() as u64, all + 1, "{what}");
    let spool = files_below(&dir.join(".dfc/slow/spool"));
    assert_eq!(spool, Vec::<std::path::PathBuf>::new(), "{what}: rows that nobody needs any more");
}

#[test]
fn what_was_not_noted_is_neither_damage_nor_residue() {
    // Epochs of the three sinks are applied one after another; notes that can't be written are tried again.
    for point in [
        "table-loaded=kill@2",
        "parts-placed=kill@2",
        "applied=kill@4",
        "applied=kill@5",
        "applied=kill@6",
        "note-applied=kill@5",
        "note-applied=enospc@4,note-applied=enospc@5,note-applied=kill@6",
    ] {
        let dir = prepared(&pipeline("interval: 60ms", SINKS));
        let killed = ended(start(dir.path(), &format!(",{point}"), &[]));
        assert_eq!(killed.code, -1, "{point}: {}", killed.stderr);
        let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
        assert_eq!(verify.code, 0, "{point}: {}{}", verify.stdout, verify.stderr);
        let savepoint = dfc(dir.path(), &["savepoint", "p.df"]);
        assert_eq!(savepoint.code, 0, "{point}: {}", savepoint.stderr);
        let again = dfc(dir.path(), &["run", "p.df"]);
        assert!(again.code == 0 && again.stderr.starts_with("going on from checkpoint "), "{point}: {}", again.stderr);
        is_whole(dir.path(), point);
    }
}

/// A target that has all rows of the newest checkpoint when the job goes on: the rest of the job needs no other epoch, and the spool of what
/// was brought along goes too.
#[test]
fn epochs_that_the_target_has_leave_no_spool() {
    let dir = prepared(&pipeline("interval: 1h", SINKS));
    // The last checkpoint's rows are in the table and nothing is left to read.
    let killed = ended(start(dir.path(), ",finish=kill@1", &[]));
    assert_eq!(killed.code, -1, "{}", killed.stderr);
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df"]);
    assert_eq!(verify.code, 0, "{}{}", verify.stdout, verify.stderr);
    let again = dfc(dir.path(), &["run", "p.df"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    is_whole(dir.path(), "killed at its end");
}
