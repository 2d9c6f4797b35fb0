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
        // Somebody who looks sees nothing before the end, and nothing else beside it. (What goes on after the end has a hidden copy.)
        let visible = || folder.names().into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>();
        let sizes = std::cell::RefCell::new(Vec::new());
        let look = |_: usize| {
            assert!(visible().is_empty() || visible() == [file]);
            sizes.borrow_mut().extend(std::fs::metadata(folder.path(file)).map(|meta| meta.len()));
        };
        let summary = write_with_kills(connector, &pairs, &schema, &rows, seed, &look).unwrap();
        let size = std::fs::metadata(folder.path(file)).unwrap().len();
        prop_assert!(sizes.borrow().iter().all(|seen| *seen == size), "whole whenever it is there: {sizes:?} of {size}");
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

/// Rows are added behind those of the last run; a file that is replaced is taken back and written on, as it was.
#[test]
fn a_later_run_of_the_same_lineage_goes_on() {
    for (mode, rows) in [("append", 1), ("overwrite", 3)] {
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
        assert_eq!(sink.finish().unwrap().rows, rows, "{mode}");
        assert_eq!(std::fs::read_to_string(folder.path("t.csv")).unwrap(), "n\n0\n1\n2\n", "{mode}");
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

/// The rows in all parts of a folder, in the order of the parts' names.
fn parts(folder: &Folder, pattern: &str, connector: &str, schema: &Schema) -> Vec<Vec<Value<'static>>> {
    let pairs = [("path", text(&folder.name(pattern)))];
    match crate::files::expand(&folder.name(pattern)) {
        Ok(_) => read(connector, &pairs, schema).unwrap().rows,
        Err(_) => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_folder_gets_every_row_once_however_often_the_job_is_killed(count in 0usize..200, seed in any::<u64>(), kind in 0usize..6, roll in 1i64..600) {
        let (schema, rows) = numbers(count);
        let folder = Folder::new();
        let (connector, more) = [
            ("csv", vec![]),
            ("csv", vec![("mode", name("append"))]),
            ("csv", vec![("compression", name("gzip"))]),
            ("jsonl", vec![("compression", name("zstd")), ("mode", name("fail"))]),
            ("jsonl", vec![]),
            ("parquet", vec![]),
        ][kind].clone();
        let mut pairs = vec![("path", text(&folder.name("out/"))), ("roll", int(roll))];
        pairs.extend(more);
        // Who looks sees nothing that no whole checkpoint covers, nothing twice, and nothing vanish.
        let seen = std::cell::Cell::new(0);
        let look = |covered: usize| {
            let visible = parts(&folder, "out/part-*", connector, &schema);
            assert!((seen.get()..=covered).contains(&visible.len()) && visible == rows[..visible.len()]);
            seen.set(visible.len());
        };
        let summary = write_with_kills(connector, &pairs, &schema, &rows, seed, &look).unwrap();
        prop_assert_eq!(summary.rows, count as u64);
        prop_assert_eq!(parts(&folder, "out/part-*", connector, &schema), rows);
        // What stays hidden says how far the job came, and nothing else.
        let hidden: Vec<_> = std::fs::read_dir(folder.path("out")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
        prop_assert_eq!(hidden.len(), 1);
        prop_assert_eq!(std::fs::read_dir(&hidden[0]).unwrap().count(), 1);
    }

    #[test]
    fn a_parquet_file_is_whole_or_not_there_however_often_the_job_is_killed(count in 0usize..200, seed in any::<u64>(), fail in any::<bool>()) {
        let (schema, rows) = numbers(count);
        let folder = Folder::new();
        let mode = if fail { "fail" } else { "overwrite" };
        let pairs = [("path", text(&folder.name("t.parquet"))), ("mode", name(mode)), ("row_group_rows", int(30))];
        let look = |_: usize| assert!(!folder.path("t.parquet").exists() || folder.names() == ["t.parquet"]);
        let summary = write_with_kills("parquet", &pairs, &schema, &rows, seed, &look).unwrap();
        prop_assert_eq!(summary.rows, count as u64);
        prop_assert_eq!(read("parquet", &pairs[..1], &schema).unwrap().rows, rows);
        prop_assert_eq!(folder.names(), ["t.parquet"]);
    }
}

/// D20: killed when the file stands and the end isn't noted: a file without rows is known again too, and is nobody else's.
#[test]
fn an_empty_parquet_file_is_known_after_a_kill() {
    let (folder, spool) = (Folder::new(), Folder::new());
    let (schema, _) = numbers(0);
    let pairs = [("path", text(&folder.name("t.parquet"))), ("mode", name("fail"))];
    let spec = SinkSpec { connector: "parquet".into(), options: options(&pairs) };
    let open = |resume| {
        let epochs = SinkEpochs { lineage: LINEAGE.into(), spool: spool.path(""), resume };
        crate::open_sink(&spec, &schema, &OpenContext { epochs: Some(epochs), ..context() })
    };
    let sink = open(None).unwrap();
    let sealed = sink.seal(1).unwrap();
    sink.finish().unwrap();
    drop(sink);
    let sink = open(resume(&[sealed])).unwrap();
    assert_eq!(sink.finish().unwrap().rows, 0);
    drop(sink);
    assert_eq!(folder.names(), ["t.parquet"]);
    assert_eq!(open(None).err().unwrap().code, "R0207");
}

/// D20: killed after a part was moved and before that was noted. The next process writes already while the epoch is applied once more: its
/// new part must not have the name under which the old one is asked for.
#[test]
fn a_part_that_was_moved_unnoted_keeps_its_name_to_itself() {
    let folder = Folder::new();
    let (pairs, spool) = ([("path", text(&folder.name("out/")))], Folder::new());
    let sink = open(&pairs, &spool, None).unwrap();
    let marker = folder.path(&format!("out/.dfc-{}/applied", &LINEAGE[..12]));
    let before = std::fs::read(&marker).unwrap();
    put_numbers(&*sink, 0..3);
    let sealed = sink.seal(1).unwrap();
    sink.apply(&sealed).unwrap();
    drop(sink);
    std::fs::write(&marker, before).unwrap();
    let sink = open(&pairs, &spool, resume(std::slice::from_ref(&sealed))).unwrap();
    put_numbers(&*sink, 3..9);
    sink.apply(&sealed).unwrap();
    sink.apply(&sink.seal(2).unwrap()).unwrap();
    sink.finish().unwrap();
    assert_eq!(parts(&folder, "out/part-*", "csv", &numbers(0).0), numbers(9).1);
}

fn by_day(connector: &str) -> (Schema, Vec<Vec<Value<'static>>>, Vec<(&'static str, OptionValue)>) {
    let rows = (0..40).map(|n| {
        let day = if n % 4 == 0 { Value::Null } else { Value::Date(n % 4) };
        vec![Value::Int(n.into()), day, Value::string(["a", "x/y=1%", ""][n as usize % 3])]
    });
    let pairs = vec![("by", OptionValue::Names(vec!["day".into(), "k".into()]))];
    let _ = connector;
    (schema("n: int64; day: date?; k: string"), rows.collect(), pairs)
}

#[test]
fn rows_lie_in_partitions_in_hives_style() {
    for connector in ["csv", "jsonl", "parquet"] {
        let folder = Folder::new();
        let (fields, rows, mut pairs) = by_day(connector);
        pairs.push(("path", text(&folder.name("out/"))));
        write_with_kills(connector, &pairs, &fields, &rows, 5, &|_| ()).unwrap();
        let left = schema("n: int64");
        let mut all = 0;
        for (day, name) in [
            (None, "__HIVE_DEFAULT_PARTITION__"),
            (Some(1), "1970-01-02"),
            (Some(2), "1970-01-03"),
            (Some(3), "1970-01-04"),
        ] {
            for (k, escaped) in [("a", "a"), ("x/y=1%", "x%2Fy%3D1%25"), ("", "")] {
                let mut found = parts(&folder, &format!("out/day={name}/k={escaped}/part-*"), connector, &left);
                let wanted =
                    rows.iter().filter(|row| row[1] == day.map_or(Value::Null, Value::Date) && row[2] == Value::str(k));
                let wanted: Vec<_> = wanted.map(|row| vec![row[0].clone()]).collect();
                found.sort_by_key(|row| format!("{:?}", row[0]).len());
                all += wanted.len();
                assert_eq!(found, wanted, "{connector}: {name} {k}");
            }
        }
        assert_eq!(all, 40);
    }
}

#[test]
fn a_folder_is_replaced_added_to_or_left_alone() {
    let (fields, rows) = numbers(10);
    let folder = Folder::new();
    let pairs = |mode: &str| [("path", text(&folder.name("out/"))), ("mode", name(mode))];
    let put = |mode: &str, rows: &[Vec<Value>]| write("csv", &pairs(mode), &fields, vec![batch(&fields, rows)]);
    let found = || {
        let mut found = parts(&folder, "out/part-*", "csv", &fields);
        found.sort_by_key(|row| format!("{row:?}"));
        found
    };
    assert_eq!(put("fail", &rows[..4]).unwrap().0.rows, 4);
    assert_eq!(put("fail", &rows[..4]).unwrap_err().code, "R0207");
    put("append", &rows[4..6]).unwrap();
    assert_eq!(found(), rows[..6]);
    put("overwrite", &rows[6..7]).unwrap();
    assert_eq!(found(), rows[6..7]);
    // Rows that never came replace too.
    put("overwrite", &[]).unwrap();
    assert!(found().is_empty());
    // Without checkpoints nothing hidden stays.
    assert_eq!(std::fs::read_dir(folder.path("out")).unwrap().count(), 0);
    // What others have put there is not removed.
    folder.file("out/notes.txt", "precious");
    assert_eq!(put("overwrite", &rows).unwrap_err().code, "R0207");
    put("append", &rows[..1]).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path("out/notes.txt")).unwrap(), "precious");
    // A job that fails leaves nothing.
    let spec = SinkSpec { connector: "csv".into(), options: options(&pairs("append")) };
    let before = folder.names().len() + std::fs::read_dir(folder.path("out")).unwrap().count();
    let sink = crate::open_sink(&spec, &fields, &context()).unwrap();
    crate::testing::put(&*sink, vec![batch(&fields, &rows)]).unwrap();
    sink.abort();
    drop(sink);
    assert_eq!(folder.names().len() + std::fs::read_dir(folder.path("out")).unwrap().count(), before);
}

#[test]
fn only_partitions_that_get_rows_are_replaced() {
    let (fields, rows, mut pairs) = by_day("csv");
    let folder = Folder::new();
    pairs.push(("path", text(&folder.name("out/"))));
    let only = |day: i32| rows.iter().filter(|row| row[1] == Value::Date(day)).cloned().collect::<Vec<_>>();
    write("csv", &pairs, &fields, vec![batch(&fields, &rows)]).unwrap();
    write("csv", &pairs, &fields, vec![batch(&fields, &only(1)[..1])]).unwrap();
    let left = schema("n: int64");
    assert_eq!(
        parts(&folder, "out/day=1970-01-02/*/part-*", "csv", &left).len(),
        only(1).len() - only(1).iter().filter(|row| row[2] == only(1)[0][2]).count() + 1
    );
    assert_eq!(parts(&folder, "out/day=1970-01-03/*/part-*", "csv", &left).len(), only(2).len());
}

#[test]
fn folders_refuse_what_does_not_fit() {
    let folder = Folder::new();
    let fields = schema("n: int64; j: json");
    let code = |pairs: &[(&str, OptionValue)]| write("csv", pairs, &fields, vec![]).unwrap_err().code;
    let names = |names: &[&str]| OptionValue::Names(names.iter().map(|n| n.to_string()).collect());
    let path = ("path", text(&folder.name("out/")));
    assert_eq!(code(&[path.clone(), ("by", names(&["x"]))]), "R0202");
    assert_eq!(code(&[path.clone(), ("by", names(&["j"]))]), "R0202");
    assert_eq!(code(&[("path", text(&folder.name("t.csv"))), ("by", names(&["n"]))]), "R0202");
    assert_eq!(code(&[("path", text(&folder.name("t.csv"))), ("roll", int(9))]), "R0202");
    let pairs = [("path", text(&folder.name("t.parquet"))), ("mode", name("append"))];
    assert_eq!(write("parquet", &pairs, &fields, vec![]).unwrap_err().code, "R0202");
    let all = schema("n: int64");
    assert_eq!(write("csv", &[path.clone(), ("by", names(&["n"]))], &all, vec![]).unwrap_err().code, "R0202");
    // Names in a checkpoint don't lead out of the folder.
    let spool = Folder::new();
    let sink = open(std::slice::from_ref(&path), &spool, None).unwrap();
    put_numbers(&*sink, 0..5);
    let mut sealed = sink.seal(1).unwrap();
    for hostile in ["../x.csv", "/tmp/x.csv"] {
        sealed.state = serde_json::json!({ "names": [hostile] });
        assert_eq!(sink.apply(&sealed).unwrap_err().code, "R0218");
    }
}

#[test]
fn names_with_nul_are_refused() {
    let (fields, _) = numbers(0);
    for connector in ["csv", "jsonl", "parquet"] {
        let pairs = [("path", text("a\0b"))];
        assert_eq!(read(connector, &pairs, &fields).err().unwrap().code, "R0204");
        assert_eq!(write(connector, &pairs, &fields, vec![]).unwrap_err().code, "R0204");
        assert_eq!(write(connector, &[("path", text("a\0b/"))], &fields, vec![]).unwrap_err().code, "R0204");
    }
}
