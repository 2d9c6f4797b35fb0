//! `dfc savepoint` beside a job that runs (D11): the process that runs it takes one and goes on, retention leaves it alone, and the job can
//! go on from it.

use crate::support::slow::{all_rows, ended, listed, newest, pipeline, prepared, start, wait_for};
use crate::support::{dfc, read};

/// D11, D16, F8: of the checkpoints around it only the newest stay; the savepoint does, and the job goes back to it.
#[test]
fn a_job_at_work_takes_one_and_goes_on() {
    let dir = prepared(&pipeline("interval: 40ms, retain: 2", "    rows |> csv(\"out.csv\")\n"));
    let mut child = start(dir.path(), "", &[]);
    wait_for(dir.path(), 2);
    let taken = dfc(dir.path(), &["savepoint", "p.df", "--note", "before the move"]);
    assert_eq!((taken.code, taken.stderr.as_str()), (0, ""));
    let said = taken.stdout.strip_prefix("savepoint ").and_then(|rest| rest.split_once(' '));
    let number: u64 = said.and_then(|(number, _)| number.parse().ok()).expect("a number");
    assert_eq!(
        taken.stdout,
        format!("savepoint {number} of job slow is taken; `dfc run FILE --from {number}` goes on from it\n")
    );
    assert_eq!(child.try_wait().expect("the test's own child"), None, "the job goes on");
    // More than `retain` others come after it.
    wait_for(dir.path(), number + 6);
    child.kill().expect("the test's own child is killed");
    child.wait().expect("it ends");
    let list = listed(dir.path());
    let kept = list.iter().find(|checkpoint| checkpoint["number"] == number).expect("the savepoint stays");
    assert_eq!((kept["kind"].as_str(), kept["note"].as_str()), (Some("savepoint"), Some("before the move")));
    let gone = |other: u64| list.iter().all(|checkpoint| checkpoint["number"] != other);
    assert!(gone(number - 1) && gone(number + 1), "its neighbours are gone: {list:?}");
    let verify = dfc(dir.path(), &["checkpoint", "verify", "p.df", &number.to_string()]);
    assert_eq!(verify.code, 0, "{}", verify.stdout);

    let last = newest(dir.path());
    let back = dfc(dir.path(), &["run", "p.df", "--from", &number.to_string()]);
    assert_eq!(back.code, 0, "{}", back.stderr);
    assert!(
        back.stderr.starts_with(&format!("going on from checkpoint {number}, ")) && number < last,
        "{}",
        back.stderr
    );
    assert!(read(&dir.path().join("out.csv")) == all_rows(), "another result");
    assert!(listed(dir.path()).iter().any(|checkpoint| checkpoint["number"] == number), "it stays after the end, too");
}

/// F7: a table has later rows than the savepoint's: going back is refused, and with leave gives rows twice, no more.
#[test]
fn a_table_is_given_rows_twice_with_leave_only() {
    let sink = "    rows |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n";
    let dir = prepared(&pipeline("interval: 40ms, retain: 2", sink));
    let child = start(dir.path(), "", &[]);
    wait_for(dir.path(), 2);
    let taken = dfc(dir.path(), &["savepoint", "p.df"]);
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    let number = taken.stdout.split(' ').nth(1).expect("a number").to_owned();
    wait_for(dir.path(), number.parse::<u64>().expect("a number") + 4);
    let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    assert_eq!(ended(child).code, 130);
    let refused = dfc(dir.path(), &["run", "p.df", "--from", &number]);
    assert!(refused.code == 1 && refused.stderr.contains("error[R0513]"), "{}", refused.stderr);
    let allowed = dfc(dir.path(), &["run", "p.df", "--from", &number, "--accept-duplicates"]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    let counts = crate::support::databases::sqlite(dir.path(), "t.db", "SELECT count(DISTINCT id) FROM t");
    assert_eq!(counts, format!("{}\n", crate::support::slow::FILES * crate::support::slow::EACH));
}
