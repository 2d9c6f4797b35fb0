//! Files of jobs with checkpoints (D12, D14, F7): killed anywhere, they appear whole or not at all, with every row once.

use std::io::Write;

use dfc_ir::plan::{OptionValue, SinkSpec};
use dfc_ir::{Schema, Value};
use proptest::prelude::*;

use crate::testing::*;
use crate::{ConnectError, OpenContext, Sealed, Sink, SinkEpochs, SinkResume};

const LINEAGE: &str = "0123456789abcdef0123456789abcdef";

fn numbers(count: usize) -> (Schema, Vec<Vec<Value<'static>>>) {
    (schema("n: int64"), (0..count).map(|n| vec![Value::Int(n as i128)]).collect())
}

fn open(
    pairs: &[(&str, OptionValue)],
    spool: &Folder,
    resume: Option<SinkResume>,
) -> Result<Box<dyn Sink>, ConnectError> {
    let epochs = SinkEpochs { lineage: LINEAGE.into(), spool: spool.path(""), resume };
    let spec = SinkSpec { connector: "csv".into(), options: options(pairs) };
    crate::open_sink(&spec, &numbers(0).0, &OpenContext { epochs: Some(epochs), ..context() })
}

fn resume(sealed: &[Sealed]) -> Option<SinkResume> {
    Some(SinkResume { number: sealed.last()?.number, sealed: sealed.to_vec() })
}

fn put_numbers(sink: &dyn Sink, numbers: std::ops::Range<i128>) {
    let rows: Vec<Vec<Value>> = numbers.map(|n| vec![Value::Int(n)]).collect();
    put(sink, vec![batch(&schema("n: int64"), &rows)]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_file_is_whole_or_not_there_however_often_the_job_is_killed(count in 0usize..300, seed in any::<u64>(), kind in 0usize..8) {
        let (schema, rows) = numbers(count);
        let folder = Folder::new();
        let (connector, file, more) = [
            ("csv", "t.csv", vec![]),
            ("csv", "t.csv.gz", vec![]),
            ("csv", "t.csv.zst", vec![("header", flag(false))]),
            ("csv", "t.csv", vec![("mode", name("fail"))]),
            ("csv", "t.csv", vec![("mode", name("append"))]),
            ("jsonl", "t.jsonl", vec![]),
            ("jsonl", "t.jsonl.gz", vec![("mode", name("append"))]),
            ("csv", "t.csv", vec![("line_ending", name("crlf"))]),
        ][kind].clone();
        let mut pairs = vec![("path", text(&folder.name(file)))];
        pairs.extend(more);
        // Somebody who looks sees nothing before the end.
        let look = |_: usize| assert!(!folder.path(file).exists() || folder.names() == [file]);
        let summary = write_with_kills(connector, &pairs, &schema, &rows, seed, &look).unwrap();
        let size = std::fs::metadata(folder.path(file)).unwrap().len();
        prop_assert_eq!((summary.rows, summary.bytes), (count as u64, size));
        prop_assert_eq!(read(connector, &pairs, &schema).unwrap().rows, rows);
        prop_assert_eq!(folder.names(), [file]);
    }
}

#[test]
fn rows_are_added_behind_the_old_ones_once() {
    let (folder, spool) = (Folder::new(), Folder::new());
    let pairs = [("path", text(&folder.file("t.csv", "n\n7"))), ("mode", name("append"))];
    let sink = open(&pairs, &spool, None).unwrap();
    put_numbers(&*sink, 0..2);
    let sealed = vec![sink.seal(1).unwrap()];
    put_numbers(&*sink, 2..9);
    drop(sink);
    let sink = open(&pairs, &spool, resume(&sealed)).unwrap();
    put_numbers(&*sink, 2..3);
    sink.seal(4).unwrap();
    assert_eq!(sink.finish().unwrap().rows, 3);
    assert_eq!(std::fs::read_to_string(folder.path("t.csv")).unwrap(), "n\n7\n0\n1\n2\n");
    drop(sink);
    // Somebody else adds to the file meanwhile: their rows must not get lost.
    let sink = open(&pairs, &spool, None).unwrap();
    std::fs::File::options().append(true).open(folder.path("t.csv")).unwrap().write_all(b"8\n").unwrap();
    put_numbers(&*sink, 0..2);
    sink.seal(1).unwrap();
    assert_eq!(sink.finish().unwrap_err().code, "R0219");
}

#[test]
fn a_later_run_of_the_same_lineage_begins_anew() {
    for (mode, content) in [("append", "n\n0\n1\n2\n"), ("overwrite", "n\n2\n")] {
        let (folder, spool) = (Folder::new(), Folder::new());
        let pairs = [("path", text(&folder.name("t.csv"))), ("mode", name(mode))];
        let sink = open(&pairs, &spool, None).unwrap();
        put_numbers(&*sink, 0..2);
        let mut sealed = vec![sink.seal(1).unwrap()];
        sink.finish().unwrap();
        drop(sink);
        // Nothing new: nothing happens.
        let sink = open(&pairs, &spool, resume(&sealed)).unwrap();
        sealed.push(sink.seal(2).unwrap());
        assert_eq!(sink.finish().unwrap().rows, 2);
        drop(sink);
        assert_eq!(std::fs::read_to_string(folder.path("t.csv")).unwrap(), "n\n0\n1\n");
        let sink = open(&pairs, &spool, resume(&sealed)).unwrap();
        put_numbers(&*sink, 2..3);
        sealed.push(sink.seal(3).unwrap());
        drop(sink);
        let sink = open(&pairs, &spool, resume(&sealed)).unwrap();
        assert_eq!(sink.finish().unwrap().rows, 1);
        assert_eq!(std::fs::read_to_string(folder.path("t.csv")).unwrap(), content, "{mode}");
    }
}

#[test]
fn rows_that_are_gone_or_changed_are_told() {
    let pairs_of = |folder: &Folder| [("path", text(&folder.name("t.csv")))];
    let part = ".t.csv.dfc-0123456789ab.part";
    let spoil: [(&str, &dyn Fn(&std::path::Path)); 3] = [
        ("gone", &|path| std::fs::remove_file(path).unwrap()),
        ("cut off", &|path| std::fs::write(path, "n\n0").unwrap()),
        ("damaged", &|path| std::fs::write(path, "n\n0\n3\n2\n3\n4\n").unwrap()),
    ];
    for (why, spoil) in spoil {
        let (folder, spool) = (Folder::new(), Folder::new());
        let sink = open(&pairs_of(&folder), &spool, None).unwrap();
        put_numbers(&*sink, 0..5);
        let sealed = vec![sink.seal(1).unwrap()];
        drop(sink);
        spoil(&folder.path(part));
        let error = open(&pairs_of(&folder), &spool, resume(&sealed)).and_then(|sink| sink.finish()).unwrap_err();
        assert_eq!(error.code, "R0218", "{error:?}");
        assert!(error.message.contains(why), "{error:?}");
        assert!(!folder.path("t.csv").exists());
    }
}

#[test]
fn damaged_states_are_refused() {
    let (folder, spool) = (Folder::new(), Folder::new());
    let pairs = [("path", text(&folder.name("t.csv")))];
    let sink = open(&pairs, &spool, None).unwrap();
    put_numbers(&*sink, 0..5);
    let sealed = sink.seal(1).unwrap();
    drop(sink);
    let mut hostile = vec![sealed.clone(), sealed.clone(), sealed.clone()];
    hostile[0].state = "x".into();
    hostile[1].files[0].from = 3;
    hostile[2].files[0].to = u64::MAX;
    for sealed in hostile {
        assert_eq!(open(&pairs, &spool, resume(&[sealed])).err().unwrap().code, "R0218");
    }
}

#[test]
fn only_residue_of_the_own_lineage_is_removed() {
    let (folder, spool) = (Folder::new(), Folder::new());
    let pairs = [("path", text(&folder.name("t.csv")))];
    folder.file(".t.csv.dfc-0123456789ab.part", "left behind");
    folder.file(".t.csv.dfc-fedcba987654.part", "another job's");
    let sink = open(&pairs, &spool, None).unwrap();
    put_numbers(&*sink, 0..1);
    sink.abort();
    drop(sink);
    assert_eq!(folder.names(), [".t.csv.dfc-fedcba987654.part"]);
    // A job that may not replace a file is refused before its first row.
    folder.file("t.csv", "n\n");
    let pairs = [("path", text(&folder.name("t.csv"))), ("mode", name("fail"))];
    assert_eq!(open(&pairs, &spool, None).err().unwrap().code, "R0207");
    // What comes up meanwhile is not replaced either.
    std::fs::remove_file(folder.path("t.csv")).unwrap();
    let sink = open(&pairs, &spool, None).unwrap();
    put_numbers(&*sink, 0..1);
    let sealed = vec![sink.seal(1).unwrap()];
    folder.file("t.csv", "n\n9\n");
    assert!(sink.finish().is_err());
    drop(sink);
    assert_eq!(open(&pairs, &spool, resume(&sealed)).err().unwrap().code, "R0207");
    assert_eq!(std::fs::read_to_string(folder.path("t.csv")).unwrap(), "n\n9\n");
}

#[test]
fn what_cannot_be_taken_back_says_so() {
    let spool = Folder::new();
    for path in ["-", "/dev/null"] {
        let sink = open(&[("path", text(path)), ("header", flag(false))], &spool, None).unwrap();
        let why = sink.epochs().unwrap_err();
        assert!(why.contains("can't be taken back"), "{why}");
        sink.abort();
    }
}
