//! Barriers and positions of text files (F1, F3, F4): where they are put and by how many readers changes no row, and a file that is no
//! longer the same is told apart.

use std::io::Write;
use std::sync::Mutex;

use dfc_ir::plan::OptionValue;
use dfc_ir::{Schema, Value};
use proptest::prelude::*;

use crate::testing::*;
use crate::{ConnectError, Next, OpenContext, Positions, Source};

fn open_csv(
    pairs: &[(&str, OptionValue)],
    schema: &Schema,
    cx: &OpenContext,
    chunk: Option<usize>,
) -> Result<Box<dyn Source>, ConnectError> {
    crate::csv::open_with_chunk(&source_spec("csv", pairs, schema), cx, chunk)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Lines in which quoted line breaks, empty lines and long fields are frequent.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![
        3 => "[a-c]{0,6}",
        1 => Just("\"x\ny\"".to_string()),
        1 => Just("\"say \"\"hi\"\"\n\n\"".to_string()),
        1 => Just("订单".to_string()),
        1 => "[a-z]{50}",
    ];
    proptest::collection::vec((any::<i32>(), text).prop_map(|(n, text)| format!("{n},{text}")), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_row_comes_once_in_order_wherever_barriers_are(
        files in proptest::collection::vec((lines(), any::<bool>()), 1..4),
        header in any::<bool>(),
        mark in any::<bool>(),
        kind in 0usize..5,
        chunk in prop_oneof![1usize..60, 60usize..400],
        seed in any::<u64>(),
    ) {
        let folder = Folder::new();
        for (number, (rows, ends_in_line)) in files.iter().enumerate() {
            let mut text = String::from(if mark && kind < 3 { "\u{feff}" } else { "" });
            if header { text += "n,text\n"; }
            text += &rows.join(if number == 1 { "\r\n" } else { "\n" });
            if *ends_in_line { text.push('\n'); }
            match kind {
                0 => folder.file(&format!("{number}.csv"), &text),
                1 => folder.file(&format!("{number}.csv.gz"), gzip(text.as_bytes())),
                2 => folder.file(&format!("{number}.csv.zst"), zstd::encode_all(text.as_bytes(), 1).unwrap()),
                3 => folder.file(&format!("{number}.csv"), crate::files::encode(&text, crate::files::Encoding::Gbk).unwrap()),
                _ => folder.file(&format!("{number}.csv"), &text),
            };
        }
        let schema = schema("n: int64; text: string");
        let mut pairs = vec![("path", text(&folder.name("*.csv*"))), ("header", flag(header)), ("nulls", text("∅"))];
        if kind == 3 { pairs.push(("encoding", name("gbk"))); }
        let all = drain(&*open_csv(&pairs, &schema, &context(), None).unwrap(), &schema).unwrap();
        prop_assert_eq!(all.errors.len(), 0, "{:?}", all.errors);
        let rows = read_in_runs(&|cx| open_csv(&pairs, &schema, cx, Some(chunk)), &schema, seed).unwrap();
        prop_assert_eq!(rows, all.rows);
    }

    /// Pieces are read at once and cut in their order; a barrier falls between two of them wherever they are read just then.
    #[test]
    fn threads_that_read_at_once_lose_and_repeat_nothing(
        lines in proptest::collection::vec(lines(), 1..12),
        chunk in prop_oneof![1usize..60, 60usize..400],
        threads in 2usize..5,
        barrier_after in 0usize..6,
    ) {
        let folder = Folder::new();
        let content = format!("n,text\n{}", lines.concat().join("\n"));
        let pairs = vec![("path", text(&folder.file("t.csv", &content))), ("nulls", text("∅"))];
        let schema = schema("n: int64; text: string");
        let all = drain(&*open_csv(&pairs, &schema, &context(), None).unwrap(), &schema).unwrap();
        let source = open_csv(&pairs, &schema, &OpenContext { tasks: threads, ..context() }, Some(chunk)).unwrap();
        let batches = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for task in 0..threads {
                let (source, batches) = (&source, &batches);
                scope.spawn(move || {
                    let (mut reader, mut errors) = (source.reader(task).unwrap(), Vec::new());
                    while let Next::Batch(batch) = reader.next(&mut errors).unwrap() {
                        let count = {
                            let mut batches = batches.lock().unwrap();
                            batches.push(batch);
                            batches.len()
                        };
                        if count == barrier_after {
                            source.mark(1);
                        }
                    }
                });
            }
        });
        let mut batches = batches.into_inner().unwrap();
        if batches.len() < barrier_after || barrier_after == 0 {
            source.mark(1);
        }
        let positions = source.positions(1).unwrap();
        batches.sort_by_key(|batch| batch.seq);
        prop_assert!(batches.iter().zip(0..).all(|(batch, seq)| batch.seq == seq));
        let mut rows = values(&batches, &schema);
        let cx = OpenContext { positions: Some(positions), ..context() };
        rows.extend(drain(&*open_csv(&pairs, &schema, &cx, None).unwrap(), &schema).unwrap().rows);
        prop_assert_eq!(rows, all.rows);
    }

    #[test]
    fn json_lines_too(numbers in proptest::collection::vec(any::<i64>(), 0..60), chunk in 1usize..100, seed in any::<u64>()) {
        let folder = Folder::new();
        let line = |n: &i64| format!("{{\"n\": {n}, \"x\": \"{}\"}}\n", "y".repeat((n.unsigned_abs() % 30) as usize));
        let path = folder.file("t.jsonl", numbers.iter().map(line).collect::<String>());
        let schema = schema("n: int64");
        let spec = source_spec("jsonl", &[("path", text(&path))], &schema);
        let rows = read_in_runs(&|cx| crate::jsonl::open_with_chunk(&spec, cx, Some(chunk)), &schema, seed).unwrap();
        prop_assert_eq!(rows, numbers.iter().map(|n| vec![Value::Int((*n).into())]).collect::<Vec<_>>());
    }
}

/// Reads a file of four rows up to its second.
fn half_read(
    folder: &Folder,
    content: impl AsRef<[u8]>,
    file: &str,
) -> (Vec<(&'static str, OptionValue)>, Schema, Positions) {
    let path = folder.file(file, content);
    let pairs = vec![("path", text(&path)), ("header", flag(false))];
    let schema = schema("a: int64");
    let half = (0..5).find_map(|steps| {
        let source = open_csv(&pairs, &schema, &context(), Some(2)).unwrap();
        let (rows, positions) = read_to_barrier(&*source, &schema, 1, &mut |_| 0, steps).unwrap();
        (rows.len() == 2).then_some(positions)
    });
    (pairs, schema, half.expect("a chunk ends after the second row"))
}

fn go_on(
    pairs: &[(&str, OptionValue)],
    schema: &Schema,
    positions: &Positions,
    continues: bool,
) -> Result<Vec<String>, ConnectError> {
    let cx = OpenContext { positions: Some(positions.clone()), continues, ..context() };
    Ok(drain(&*open_csv(pairs, schema, &cx, Some(2))?, schema)?.texts(schema))
}

#[test]
fn a_position_says_where_it_is_and_whether_that_is_exact() {
    let folder = Folder::new();
    let (pairs, fields, positions) = half_read(&folder, "1\n2\n3\n4\n", "t.csv");
    let split = &positions.splits[0];
    assert_eq!((split.position["byte"].as_u64(), split.position["line"].as_u64()), (Some(4), Some(3)));
    assert_eq!((split.exact, split.ended, split.split.as_str()), (true, false, folder.name("t.csv").as_str()));
    assert_eq!(go_on(&pairs, &fields, &positions, false).unwrap(), ["3", "4"]);
    // Compressed: everything before is read again, and nobody says otherwise (A7).
    let (pairs, fields, positions) = half_read(&folder, gzip(b"1\n2\n3\n4\n"), "t.csv.gz");
    assert_eq!((positions.splits[0].exact, positions.splits[0].position["byte"].as_u64()), (false, Some(4)));
    assert_eq!(go_on(&pairs, &fields, &positions, false).unwrap(), ["3", "4"]);
}

#[test]
fn places_of_rows_go_on_too() {
    let folder = Folder::new();
    let (pairs, fields, positions) = half_read(&folder, "1\n2\nx\n4\n", "t.csv");
    let cx = OpenContext { positions: Some(positions), ..context() };
    let read = drain(&*open_csv(&pairs, &fields, &cx, None).unwrap(), &fields).unwrap();
    let place = read.errors[0].place.as_ref().unwrap();
    assert_eq!((place.offset, place.line), (Some(4), Some(3)));
}

#[test]
fn a_file_that_is_another_is_refused_by_name() {
    let refused = |content: &[u8], file: &str, start: &[u8]| {
        let folder = Folder::new();
        let (pairs, schema, positions) = half_read(&folder, start, file);
        folder.file(file, content);
        let error = go_on(&pairs, &schema, &positions, false).unwrap_err();
        assert_eq!(error.code, "R0216", "{error:?}");
        assert!(error.message.contains(file), "{error:?}");
        error.message
    };
    let start = b"1\n2\n3\n4\n";
    assert!(refused(b"1\n2\n3\n", "t.csv", start).ends_with("it has 6 bytes, and had 8"));
    assert!(refused(b"", "t.csv", start).ends_with("it has 0 bytes, and had 8"));
    assert!(refused(b"9\n2\n3\n4\n", "t.csv", start).ends_with("its first 8 bytes are others"));
    // Longer than a block: the start is the same, what stands before the position isn't.
    let long = |second: &str| format!("{:05000}\n{second:0>5000}\n{:05000}\n{:05000}\n", 1, 3, 4).into_bytes();
    assert!(refused(&long("9"), "t.csv", &long("2")).contains("what stands before byte 10002 "));
    refused(&gzip(&long("9")), "t.csv.gz", &gzip(&long("2")));
}

/// The time of change is no proof of anything: the content decides.
#[test]
fn times_and_nodes_are_hints_only() {
    let folder = Folder::new();
    let (pairs, schema, positions) = half_read(&folder, "1\n2\n3\n4\n", "t.csv");
    let path = folder.path("t.csv");
    let then = std::fs::metadata(&path).unwrap().modified().unwrap();
    let set = |time| std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    std::fs::remove_file(&path).unwrap();
    folder.file("t.csv", "1\n2\n3\n4\n");
    assert_eq!(go_on(&pairs, &schema, &positions, false).unwrap(), ["3", "4"]);
    folder.file("t.csv", "1\n5\n3\n4\n");
    set(then);
    assert_eq!(go_on(&pairs, &schema, &positions, false).unwrap_err().code, "R0216");
}

#[test]
fn what_was_read_to_its_end_may_be_gone() {
    let folder = Folder::new();
    folder.file("1.csv", "a\n1\n");
    folder.file("2.csv", "a\n2\n3\n");
    let pairs = [("path", text(&folder.name("*.csv")))];
    let fields = schema("a: int64");
    let source = open_csv(&pairs, &fields, &context(), Some(2)).unwrap();
    let (rows, positions) = read_to_barrier(&*source, &fields, 1, &mut |_| 0, 2).unwrap();
    assert_eq!((rows.len(), positions.splits[0].ended), (2, true));
    std::fs::remove_file(folder.path("1.csv")).unwrap();
    // What a bounded run reads is what it had found at first.
    folder.file("0.csv", "a\n9\n");
    let grown = "a\n2\n3\n4\n";
    folder.file("2.csv", grown);
    assert_eq!(go_on(&pairs, &fields, &positions, false).unwrap(), ["3"]);
    std::fs::remove_file(folder.path("2.csv")).unwrap();
    assert_eq!(go_on(&pairs, &fields, &positions, false).unwrap_err().code, "R0203");
}

#[test]
fn a_later_run_takes_what_came_since() {
    let folder = Folder::new();
    folder.file("1.csv", "a\n1\n");
    folder.file("2.csv", "a\n2\n3");
    let pairs = [("path", text(&folder.name("*.csv")))];
    let fields = schema("a: int64");
    let source = open_csv(&pairs, &fields, &context(), None).unwrap();
    let (rows, positions) = read_to_barrier(&*source, &fields, 2, &mut alternate(), 9).unwrap();
    assert_eq!(rows.len(), 3);
    assert!(go_on(&pairs, &fields, &positions, true).unwrap().is_empty());
    folder.file("0.csv", "a\n9\n");
    folder.file("1.csv", "a\n1\n5\n");
    // Its last line had no end, and has one now.
    folder.file("2.csv", "a\n2\n3\r\n4\n");
    assert_eq!(go_on(&pairs, &fields, &positions, true).unwrap(), ["5", "4", "9"]);
    folder.file("2.csv", "a\n2\n34\n");
    let error = go_on(&pairs, &fields, &positions, true).unwrap_err();
    assert!(error.message.contains("its line 3 was read without its end"), "{error:?}");
}

#[test]
fn a_file_that_grows_while_it_is_read_gives_whole_rows() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "a\n1\n2\n3");
    let fields = schema("a: int64");
    let source = open_csv(&[("path", text(&path))], &fields, &context(), Some(2)).unwrap();
    std::fs::File::options().append(true).open(&path).unwrap().write_all(b"4\n5\n").unwrap();
    assert_eq!(drain(&*source, &fields).unwrap().texts(&fields), ["1", "2"]);
    let source = open_csv(&[("path", text(&path))], &fields, &context(), Some(2)).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
    let error = drain(&*source, &fields).err().unwrap();
    assert!(error.message.contains("became shorter while it was read"), "{error:?}");
}

#[test]
fn damaged_positions_are_refused() {
    let folder = Folder::new();
    let (pairs, schema, positions) = half_read(&folder, "1\n2\n3\n4\n", "t.csv");
    let mut hostile = vec![serde_json::json!(null), serde_json::json!({"byte": -1}), serde_json::json!([1])];
    for (key, value) in [("byte", 1u64), ("line", 0)] {
        let mut position = positions.splits[0].position.clone();
        position[key] = value.into();
        hostile.push(position);
    }
    let mut position = positions.splits[0].position.clone();
    position["before"]["bytes"] = u64::MAX.into();
    hostile.push(position);
    for position in hostile {
        let mut positions = positions.clone();
        positions.splits[0].position = position.clone();
        let error = go_on(&pairs, &schema, &positions, false).unwrap_err();
        assert!(matches!(error.code, "R0217" | "R0216"), "{position}: {error:?}");
    }
}

#[test]
fn what_can_be_read_only_once_says_so() {
    let files = crate::files::expand("-").unwrap().into_iter().map(super::Tracked::found);
    let files: Vec<_> = files.collect::<Result<_, _>>().unwrap();
    assert_eq!(super::opening::read_once(&files).as_deref(), Some("the standard input can be read only once"));
}

/// The readers in turn.
fn alternate() -> impl FnMut(usize) -> usize {
    let mut turn = 0;
    move |readers| {
        turn += 1;
        turn % readers
    }
}
