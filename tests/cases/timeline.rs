//! The log as a timeline (A4, A7, D12–D14): what was staged, committed, cleaned up and restored are fixed events with the checkpoint's number;
//! restored ones say the position, and whether it is entered there or read again up to there.

use serde_json::{Value, json};

use crate::support::slow::{EACH, FILES, ended, listed, pipeline, prepared, start};
use crate::support::{dfc, folder, read};

/// The events of a log, in their order.
fn events(log: &str) -> Vec<Value> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| !line["event"].is_null())
        .collect()
}

fn named<'a>(events: &'a [Value], event: &str) -> Vec<&'a Value> {
    events.iter().filter(|line| line["event"] == event).collect()
}

fn numbers(events: &[&Value]) -> Vec<u64> {
    events.iter().map(|line| line["checkpoint"].as_u64().unwrap_or_else(|| panic!("no number in {line}"))).collect()
}

/// A job is killed between two checkpoints and goes on: the first run's log says what was staged, committed and no longer kept, the second
/// one's where each source goes on and how, what was removed behind the checkpoint, and what was committed of it.
#[test]
fn a_kill_and_what_comes_after_it_can_be_read_in_the_log() {
    let sinks = "    rows |> csv(\"parts/\")\n    rows |> sqlite(\"t.db\", table: \"t\", create: if_missing)\n    packed |> csv(\"packed.csv\")\n";
    let text = pipeline("interval: 40ms, retain: 1", sinks)
        .replace("sink {", "source packed = csv(\"packed.csv.gz\", schema: R)\nsink {");
    let dir = prepared(&text);
    let rows: String = (0..2_000).map(|id| format!("{id},{id}\n")).collect();
    crate::support::write(&dir.path().join("packed.csv"), &format!("id,text\n{rows}"));
    let gzip = crate::support::run(std::process::Command::new("gzip").arg(dir.path().join("packed.csv")));
    assert_eq!(gzip.code, 0, "{}", gzip.stderr);
    // At a barrier of one of the three sinks: the rows since the one before belong to no checkpoint.
    let first = ended(start(dir.path(), ",spool-seal=kill@30", &["--log-format", "json"]));
    assert_eq!(first.code, -1, "{}", first.stderr);
    let log = events(&first.stderr);
    let staged = named(&log, "staged");
    let taken = numbers(&staged);
    assert!(taken.len() > 3 && taken.is_sorted(), "{taken:?}");
    for line in &staged {
        assert!(line["job"] == "slow" && line["kind"] == "regular" && line["rows_in"].is_u64(), "{line}");
        assert!(
            ["state_bytes", "spool_bytes", "duration_ms", "alignment_ms"].iter().all(|of| line[of].is_u64()),
            "{line}"
        );
    }
    for sink in ["sink.csv", "sink.sqlite"] {
        let committed: Vec<&Value> =
            named(&log, "committed").into_iter().filter(|line| line["operator"] == sink).collect();
        let numbers = numbers(&committed);
        assert!(!numbers.is_empty() && numbers.is_sorted(), "{sink}: {numbers:?}");
        assert!(numbers.iter().all(|number| taken.contains(number)), "{sink}: {numbers:?} of {taken:?}");
        // An epoch is staged before it is committed.
        let at = |event: &str, number: u64| {
            log.iter().position(|line| {
                line["event"] == event
                    && line["checkpoint"] == number
                    && (event == "staged" || line["operator"] == sink)
            })
        };
        assert!(numbers.iter().all(|&number| at("staged", number) < at("committed", number)), "{sink}");
    }
    // Only the newest is kept: those before it were removed, and that is said.
    let removed: u64 =
        named(&log, "cleaned_up").iter().map(|line| line["checkpoints"].as_u64().expect("a number")).sum();
    assert!(removed > 0, "{}", first.stderr);

    let list = listed(dir.path());
    let newest = list.last().expect("a checkpoint")["number"].clone();
    let second = dfc(dir.path(), &["run", "p.df", "--log-format", "json"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let log = events(&second.stderr);
    let restored = named(&log, "restored");
    assert_eq!(restored.len(), 2, "each source once: {}", second.stderr);
    let of = |source: &str| *restored.iter().find(|line| line["operator"] == source).expect("the source's");
    for line in &restored {
        assert!(line["job"] == "slow" && line["checkpoint"] == newest, "{line}");
    }
    let (exact, again) = (of("rows"), of("packed"));
    let position = exact["position"].as_str().expect("a position");
    assert!(position.contains(&format!(" of {FILES} splits to be read")), "{position}");
    assert_eq!(exact["exact"], json!(true), "{exact}");
    assert!(exact["rows"].as_u64().is_some_and(|rows| rows > 0 && rows < FILES * EACH), "{exact}");
    // A packed file that was read to its end isn't read again; one that wasn't is, and isn't called exact.
    assert!(again["exact"] == json!(again["position"] == "at its end"), "{again}");

    // What was behind the checkpoint, by operator.
    let cleaned: Vec<&Value> =
        named(&log, "cleaned_up").into_iter().filter(|line| line["operator"].is_string()).collect();
    assert!(!cleaned.is_empty(), "{}", second.stderr);
    for line in &cleaned {
        assert!(line["checkpoint"] == newest && line["files"].as_u64() > Some(0) && line["bytes"].is_u64(), "{line}");
    }
    let at = |event: &str| log.iter().position(|line| line["event"] == event);
    let order = [at("restored"), at("cleaned_up"), at("committed"), at("finished")];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}: {}", second.stderr);
    let kinds: Vec<&str> = named(&log, "staged").iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds.last(), Some(&"end"), "{kinds:?}");
}

/// A7: a packed file that is read again up to its position is said to be, in the log as on the screen.
#[test]
fn what_is_read_again_is_not_called_exact() {
    let text = "job gz { parallelism: 1, checkpoint { interval: 40ms } }\nrecord R { id: int64, text: string }\n\
                source rows = csv(\"long.csv.gz\", schema: R)\nsink rows |> csv(\"out.csv\")\n";
    let rows: String = (0..1_000_000).map(|id| format!("{id},{id}\n")).collect();
    let dir = folder(&[("p.df", text), ("long.csv", &format!("id,text\n{rows}"))]);
    let packed = crate::support::run(std::process::Command::new("gzip").arg(dir.path().join("long.csv")));
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    let first = ended(start(dir.path(), ",manifest-there=kill@5", &[]));
    assert_eq!(first.code, -1, "{}", first.stderr);
    let second = dfc(dir.path(), &["run", "p.df", "--log-format", "json"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let log = events(&second.stderr);
    let restored = named(&log, "restored");
    assert_eq!((restored.len(), &restored[0]["exact"]), (1, &json!(false)), "{restored:?}");
    assert!(restored[0]["position"].as_str().is_some_and(|at| at.contains("long.csv.gz` at byte ")), "{restored:?}");
    assert!(second.stderr.contains("what stands before is read again and left out"), "{}", second.stderr);
    assert!(read(&dir.path().join("out.csv")) == format!("id,text\n{rows}"), "the copy is another");
}
