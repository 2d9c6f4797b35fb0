//! Sources that follow (A1, F3): what is added and what comes later is read, once and whole; what isn't ready isn't a file yet.

use std::io::Write;
use std::time::{Duration, SystemTime};

use dfc_ir::plan::OptionValue;
use dfc_ir::{Schema, Value};
use proptest::prelude::*;

use crate::testing::*;
use crate::{ConnectError, Next, OpenContext, Positions, Reader, Source};

fn pairs(path: &str, more: &[(&'static str, OptionValue)]) -> Vec<(&'static str, OptionValue)> {
    let mut pairs =
        vec![("path", text(path)), ("follow", flag(true)), ("poll", OptionValue::Value(Value::Duration(500)))];
    pairs.extend(more.iter().cloned());
    pairs
}

fn open(
    pairs: &[(&str, OptionValue)],
    schema: &Schema,
    positions: Option<Positions>,
) -> Result<Box<dyn Source>, ConnectError> {
    let cx = OpenContext { positions, ..context() };
    crate::csv::open_with_chunk(&source_spec("csv", pairs, schema), &cx, Some(5))
}

/// Reads until nothing comes for a while.
fn all_there(reader: &mut dyn Reader, schema: &Schema) -> Result<Vec<String>, ConnectError> {
    let (mut batches, mut errors, mut waits) = (Vec::new(), Vec::new(), 0);
    while waits < 4 {
        match reader.next(&mut errors)? {
            Next::Batch(batch) => {
                waits = 0;
                batches.push(batch);
            }
            Next::Wait(time) => {
                waits += 1;
                std::thread::sleep(time);
            }
            Next::Barrier(_) => panic!("nobody wanted a barrier"),
            Next::End => panic!("it ends"),
        }
    }
    assert!(errors.is_empty(), "{errors:?}");
    let rows = batches.iter().flat_map(|b| (0..b.rows).map(move |row| (b, row)));
    let of = |(b, row): (&dfc_batch::Batch, usize)| {
        dfc_eval::format_value(
            &dfc_batch::value_at(&b.columns[0], &schema.fields[0].ty.ty, row),
            &schema.fields[0].ty.ty,
        )
    };
    Ok(rows.map(of).collect())
}

fn append(folder: &Folder, file: &str, content: &str) {
    let mut file = std::fs::File::options().append(true).create(true).open(folder.path(file)).unwrap();
    file.write_all(content.as_bytes()).unwrap();
}

fn positions(source: &dyn Source, reader: &mut dyn Reader, number: u64) -> Positions {
    source.mark(number);
    // Answered at once, though there is nothing to read.
    assert!(matches!(reader.next(&mut Vec::new()), Ok(Next::Barrier(n)) if n == number));
    source.positions(number).unwrap()
}

#[test]
fn lines_are_read_when_they_are_ended_and_files_when_they_come() {
    let folder = Folder::new();
    let fields = schema("a: int64");
    let pairs = pairs(&folder.name("*.csv"), &[]);
    // Nothing is there yet.
    let source = open(&pairs, &fields, None).unwrap();
    assert_eq!((source.total_bytes(), source.resumable()), (None, Ok(())));
    let mut reader = source.reader(0).unwrap();
    assert!(all_there(&mut *reader, &fields).unwrap().is_empty());
    append(&folder, "1.csv", "a");
    assert!(all_there(&mut *reader, &fields).unwrap().is_empty());
    append(&folder, "1.csv", "\n1\n2");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["1"]);
    append(&folder, "1.csv", "2\n3\n4");
    append(&folder, "0.csv", "a\n9\n");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["22", "3", "9"]);
    let at = positions(&*source, &mut *reader, 3);
    assert!(at.splits.iter().all(|split| split.exact));
    append(&folder, "2.csv", "a\n5\n");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["5"]);
    drop(reader);
    // What came while nobody looked is read too, and nothing twice.
    append(&folder, "1.csv", "\n");
    append(&folder, "0.csv", "8\n");
    let source = open(&pairs, &fields, Some(at)).unwrap();
    let mut reader = source.reader(0).unwrap();
    let mut rows = all_there(&mut *reader, &fields).unwrap();
    rows.sort();
    assert_eq!(rows, ["4", "5", "8"]);
    // A file that was removed after it was read stays read.
    std::fs::remove_file(folder.path("1.csv")).unwrap();
    append(&folder, "0.csv", "7\n");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["7"]);
    let at = positions(&*source, &mut *reader, 4);
    assert!(all_there(&mut *open(&pairs, &fields, Some(at)).unwrap().reader(0).unwrap(), &fields).unwrap().is_empty());
}

#[test]
fn cut_replaced_and_renamed_files_are_told() {
    let change: [(&str, &dyn Fn(&Folder)); 4] = [
        ("it has 4 bytes, and had 8", &|folder| drop(folder.file("log.csv", "a\n1\n"))),
        ("its first 8 bytes are others", &|folder| drop(folder.file("log.csv", "a\n1\n9\n9\n9\n"))),
        ("it was renamed to", &|folder| {
            std::fs::rename(folder.path("log.csv"), folder.path("log.csv.1")).unwrap();
            folder.file("log.csv", "a\n");
        }),
        ("it was renamed to", &|folder| std::fs::rename(folder.path("log.csv"), folder.path("log.csv.1")).unwrap()),
    ];
    for (why, change) in change {
        let folder = Folder::new();
        let fields = schema("a: int64");
        folder.file("log.csv", "a\n1\n2\n3\n");
        let pairs = pairs(&folder.name("log.csv*"), &[]);
        let source = open(&pairs, &fields, None).unwrap();
        let mut reader = source.reader(0).unwrap();
        assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["1", "2", "3"]);
        change(&folder);
        let error = all_there(&mut *reader, &fields).unwrap_err();
        assert_eq!(error.code, "R0216", "{error:?}");
        // The new `log.csv` of a rotation is shorter; both say what happened.
        assert!(error.message.contains(why) || error.message.contains("it has 2 bytes, and had 8"), "{error:?}");
        // The end of a source stays its end.
        assert!(matches!(reader.next(&mut Vec::new()), Ok(Next::End)));
    }
}

#[test]
fn half_written_files_are_left_alone_by_a_declared_rule() {
    let folder = Folder::new();
    let fields = schema("a: int64");
    folder.file("old.csv", "a\n1");
    folder.file("new.csv", "a\n2\n");
    let old = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options().append(true).open(folder.path("old.csv")).unwrap().set_modified(old).unwrap();
    let by_age = [
        ("path", text(&folder.name("*.csv"))),
        ("ready", name("age")),
        ("age", OptionValue::Value(Value::Duration(60_000_000))),
    ];
    assert_eq!(read("csv", &by_age, &fields).unwrap().texts(&fields), ["1"], "a run that ends leaves them alone too");
    let pairs = pairs(&folder.name("*"), &[("ready", name("marker"))]);
    let source = open(&pairs, &fields, None).unwrap();
    let mut reader = source.reader(0).unwrap();
    assert!(all_there(&mut *reader, &fields).unwrap().is_empty());
    folder.file("old.csv.done", "");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["1"], "a ready file is whole: its last line needs no end");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"a\n5\n6\n").unwrap();
    folder.file("z.csv.gz", encoder.finish().unwrap());
    folder.file("z.csv.gz.done", "");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["5", "6"]);
    let at = positions(&*source, &mut *reader, 1);
    let source = open(&pairs, &fields, Some(at)).unwrap();
    let mut reader = source.reader(0).unwrap();
    folder.file("new.csv.done", "");
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["2"]);
    // Something is added to a file that was said to be whole, in the middle of its last line.
    append(&folder, "old.csv", "7\n");
    let error = all_there(&mut *reader, &fields).unwrap_err();
    assert!(error.code == "R0216" && error.message.contains("read without its end"), "{error:?}");
}

/// A file whose writer renames it when it is whole is no file before (A1): neither for a run that ends nor for one that follows, which
/// reads it once, under its own name.
#[test]
fn half_written_files_are_known_by_their_suffix() {
    let folder = Folder::new();
    let fields = schema("a: int64");
    folder.file("1.csv", "a\n1\n");
    folder.file("2.csv.part", "a\n2");
    folder.file("3.csv.tmp", "a\n3");
    let ready = |more: &[(&'static str, OptionValue)]| {
        let mut rule = vec![("ready", name("suffix"))];
        rule.extend(more.iter().cloned());
        rule
    };
    let mut ends = ready(&[("suffix", text(".tmp"))]);
    ends.push(("path", text(&folder.name("*.csv*"))));
    assert_eq!(read("csv", &ends, &fields).unwrap().texts(&fields), ["1", "2"]);
    ends[1].1 = text(".part");
    assert_eq!(read("csv", &ends, &fields).unwrap().texts(&fields), ["1", "3"]);
    std::fs::remove_file(folder.path("3.csv.tmp")).unwrap();

    let pairs = pairs(&folder.name("*"), &ready(&[]));
    let source = open(&pairs, &fields, None).unwrap();
    let mut reader = source.reader(0).unwrap();
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["1"]);
    append(&folder, "2.csv.part", "2\n33");
    assert!(all_there(&mut *reader, &fields).unwrap().is_empty());
    std::fs::rename(folder.path("2.csv.part"), folder.path("2.csv")).unwrap();
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["22", "33"], "it is whole: its last line needs no end");
    let at = positions(&*source, &mut *reader, 1);
    folder.file("4.csv.part", "a\n4\n");
    let source = open(&pairs, &fields, Some(at)).unwrap();
    let mut reader = source.reader(0).unwrap();
    assert!(all_there(&mut *reader, &fields).unwrap().is_empty());
    std::fs::rename(folder.path("4.csv.part"), folder.path("4.csv")).unwrap();
    assert_eq!(all_there(&mut *reader, &fields).unwrap(), ["4"]);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = Folder::new();
    let fields = schema("a: int64");
    let path = folder.file("t.csv", "a\n");
    let zipped = folder.file("t.csv.gz", "");
    let soon = || OptionValue::Value(Value::Duration(1000));
    let code = |pairs: &[(&str, OptionValue)]| open(pairs, &fields, None).err().map(|error| error.code);
    for wrong in [
        vec![("path", text(&path)), ("poll", soon())],
        vec![("path", text(&path)), ("age", soon())],
        vec![("path", text(&path)), ("marker", text(".x"))],
        vec![("path", text(&path)), ("marker", text(".x")), ("ready", name("age"))],
        vec![("path", text(&path)), ("marker", text("/x")), ("ready", name("marker"))],
        vec![("path", text(&path)), ("suffix", text(".x"))],
        vec![("path", text(&path)), ("suffix", text(".x")), ("ready", name("marker"))],
        vec![("path", text(&path)), ("marker", text(".x")), ("ready", name("suffix"))],
        vec![("path", text(&path)), ("suffix", text("")), ("ready", name("suffix"))],
        pairs(&zipped, &[]),
        pairs(&path, &[("encoding", name("latin1"))]),
        pairs("-", &[]),
    ] {
        assert_eq!(code(&wrong), Some("R0202"), "{wrong:?}");
    }
    // A name that isn't there is more probably a mistake than a file to come.
    assert_eq!(code(&pairs(&folder.name("nothing.csv"), &[])), Some("R0203"));
    assert_eq!(code(&pairs(&folder.name("nowhere/*.csv"), &[])), Some("R0203"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_line_comes_once_however_it_is_written(
        lines in proptest::collection::vec(prop_oneof!["[0-9]{1,8}", Just("\"1\n2\"".to_string()), Just("\"\"\"\"".to_string())], 1..20),
        seed in any::<u64>(),
    ) {
        let folder = Folder::new();
        let fields = schema("a: string");
        let content: String = std::iter::once("a".to_string()).chain(lines.iter().cloned()).map(|line| line + "\n").collect();
        let mut random = random(seed);
        let pairs = pairs(&folder.name("*.csv"), &[]);
        let (mut at, mut kept, mut rows) = (0, None, Vec::new());
        while at < content.len() {
            let source = open(&pairs, &fields, kept.take()).unwrap();
            let mut reader = source.reader(0).unwrap();
            for _ in 0..random(4) {
                let end = content.len().min(at + random(20));
                append(&folder, "t.csv", &content[at..end]);
                at = end;
                if random(2) == 0 {
                    rows.extend(all_there(&mut *reader, &fields).unwrap());
                }
            }
            rows.extend(all_there(&mut *reader, &fields).unwrap());
            kept = Some(positions(&*source, &mut *reader, 1));
            // What is read after the barrier is read again by the next run.
            append(&folder, "t.csv", &content[at..content.len().min(at + 3)]);
            at = content.len().min(at + 3);
            all_there(&mut *reader, &fields).unwrap();
        }
        let source = open(&pairs, &fields, kept).unwrap();
        rows.extend(all_there(&mut *source.reader(0).unwrap(), &fields).unwrap());
        let plain = |line: &String| match line.as_str() { "\"\"\"\"" => "\"".to_string(), line => line.trim_matches('"').to_string() };
        prop_assert_eq!(rows, lines.iter().map(plain).collect::<Vec<_>>());
    }
}
