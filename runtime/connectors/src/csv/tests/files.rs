//! Files of a CSV source: globs, compression, places of rows, limits, and what is wrong with them.

use std::io::Write;

use crate::testing::*;
use crate::{ConnectError, OpenContext};
use dfc_ir::plan::OptionValue;

fn open_error(pairs: &[(&str, OptionValue)], fields: &str) -> ConnectError {
    match crate::open_source(&source_spec("csv", pairs, &schema(fields)), &context()) {
        Ok(_) => panic!("the source opens"),
        Err(error) => error,
    }
}

#[test]
fn globs_are_read_in_the_order_of_names() {
    let folder = Folder::new();
    folder.file("b.csv", "a\n3\n");
    folder.file("a.csv", "a\n1\n2");
    folder.file("c.csv", "a\n");
    folder.file("d.csv", "b,a\n0,4\n");
    // Hidden: what a job that was killed left behind, say.
    folder.file(".e.csv", "a\n5\n");
    let fields = schema("a: int64");
    folder.file("F.CSV", "a\n6\n");
    let texts = |pattern: &str| read("csv", &[("path", text(&folder.name(pattern)))], &fields).unwrap().texts(&fields);
    assert_eq!(texts("*.csv"), ["1", "2", "3", "4"]);
    assert_eq!(texts("**/[ab].csv"), ["1", "2", "3"]);
    assert_eq!(texts(".*.csv"), ["5"]);
}

#[cfg(unix)]
#[test]
fn a_glob_leaves_no_file_out_for_its_name() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new();
    let path = folder.file("a.csv", "a\n1\n");
    let beside = std::path::Path::new(&path).with_file_name(std::ffi::OsStr::from_bytes(b"b\xff.csv"));
    std::fs::write(beside, "a\n2\n").unwrap();
    let error = open_error(&[("path", text(&folder.name("*.csv")))], "a: int64");
    assert_eq!(error.code, "R0204");
    assert!(error.message.contains("its name is not UTF-8"), "{error:?}");
    let fields = schema("a: int64");
    assert_eq!(read("csv", &[("path", text(&folder.name("a*.csv")))], &fields).unwrap().texts(&fields), ["1"]);
}

#[test]
fn compressed_files_are_read_by_suffix_or_parameter() {
    let folder = Folder::new();
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let members = [gzip("a\n1\n2"), gzip("3\n4\n")].concat();
    let fields = schema("a: int64");
    let path = folder.file("t.csv.gz", &members);
    assert_eq!(read("csv", &[("path", text(&path))], &fields).unwrap().texts(&fields), ["1", "23", "4"]);
    let path = folder.file("t.bin", &members);
    let pairs = [("path", text(&path)), ("compression", name("gzip"))];
    assert_eq!(read("csv", &pairs, &fields).unwrap().rows.len(), 3);
    let frames = [zstd::encode_all(&b"a\n1\n"[..], 1).unwrap(), zstd::encode_all(&b"2\n"[..], 1).unwrap()].concat();
    let path = folder.file("t.csv.zst", frames);
    assert_eq!(read("csv", &[("path", text(&path))], &fields).unwrap().texts(&fields), ["1", "2"]);
    let path = folder.file("broken.csv.gz", &members[..members.len() - 12]);
    let error = read("csv", &[("path", text(&path))], &fields).err().unwrap();
    assert!(error.message.contains("broken.csv.gz"), "{error:?}");
}

#[test]
fn row_errors_name_file_byte_line_field_value_and_row() {
    let folder = Folder::new();
    let content = "a,\"B b\"\n1,2\n\"x\ny\",3\n4,oops\n5,6\n";
    let path = folder.file("t.csv", content);
    let mut fields = schema("a: string; b: int64");
    fields.fields[1].external = Some("B b".into());
    let read = read("csv", &[("path", text(&path))], &fields).unwrap();
    assert_eq!(read.rows.len(), 3);
    let error = &read.errors[0];
    let place = error.place.as_ref().unwrap();
    assert_eq!(place.source, path);
    assert_eq!(place.offset, content.find("4,oops").map(|n| n as u64));
    assert_eq!(place.line, Some(5));
    assert_eq!(error.field.as_deref(), Some("B b"));
    assert_eq!(error.value.as_deref(), Some("oops"));
    assert_eq!(error.raw.as_deref(), Some("4,oops"));
    // Sound rows are still found after the bad one was left out.
    let origin = read.batches[0].origin.as_ref().unwrap();
    assert_eq!(
        (origin.place(2).line, origin.raw(1), origin.raw(2)),
        (Some(6), Some("\"x\ny\",3".into()), Some("5,6".into()))
    );
}

#[test]
fn limit_rows_gives_exactly_the_first_ones() {
    let folder = Folder::new();
    folder.file("1.csv", "a,b\n1,\"x\n\"\n\n2,y\n");
    folder.file("2.csv", "a,b\nbad,z\n4,z\n");
    let fields = schema("a: int64; b: string");
    for (limit, rows, errors) in [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 1), (9, 3, 1)] {
        for chunk in [None, Some(1), Some(8)] {
            let cx = OpenContext { limit_rows: Some(limit), ..context() };
            let spec = source_spec("csv", &[("path", text(&folder.name("*.csv")))], &fields);
            let read = drain(&*super::super::open_with_chunk(&spec, &cx, chunk).unwrap(), &fields).unwrap();
            assert_eq!((read.rows.len(), read.errors.len()), (rows, errors), "limit {limit}, chunk {chunk:?}");
        }
    }
}

#[test]
fn a_cancelled_source_is_at_its_end() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "a\n1\n");
    let cx = context();
    let fields = schema("a: int64");
    let source = crate::open_source(&source_spec("csv", &[("path", text(&path))], &fields), &cx).unwrap();
    cx.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(drain(&*source, &fields).unwrap().rows.is_empty());
}

#[test]
fn only_the_projected_fields_are_read() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "a,b,c\nx,oops,2026-01-31\n");
    let fields = schema("a: string; b: int64; c: date");
    let mut spec = source_spec("csv", &[("path", text(&path))], &fields);
    spec.projection = vec![2];
    let source = crate::open_source(&spec, &context()).unwrap();
    assert_eq!(drain(&*source, &spec.projected()).unwrap().texts(&spec.projected()), ["2026-01-31"]);
    spec.projection = vec![];
    let source = crate::open_source(&spec, &context()).unwrap();
    assert_eq!(drain(&*source, &spec.projected()).unwrap().rows.len(), 1);
}

#[test]
fn a_missing_file_names_the_nearest_one() {
    let folder = Folder::new();
    folder.file("orders.csv", "a\n");
    let error = open_error(&[("path", text(&folder.name("order.csv")))], "a: int64");
    assert_eq!(error.code, "R0203");
    assert!(error.help.unwrap().contains("orders.csv"));
    let error = open_error(&[("path", text(&folder.name("no/such/file.csv")))], "a: int64");
    assert!(error.help.unwrap().contains("no/such"));
    let error = open_error(&[("path", text(&folder.name("x-*.csv")))], "a: int64");
    assert!(error.message.contains("no file matches") && error.help.unwrap().contains("orders.csv"));
    let error = open_error(&[("path", text(&folder.name("")))], "a: int64");
    assert!(error.message.contains("it is a folder"), "{error:?}");
}

#[test]
fn a_header_that_does_not_fit_is_refused_by_name() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "id,Name,x,x\n");
    let error = open_error(&[("path", text(&path))], "id: int64; name: string");
    assert_eq!(error.code, "R0210");
    assert!(error.message.contains("no column `name`; it has `id`, `Name`, `x`, `x`"), "{error:?}");
    assert!(error.help.unwrap().contains("`Name`"));
    let error = open_error(&[("path", text(&path))], "id: int64; x: string");
    assert_eq!(error.code, "R0211");
    assert!(read("csv", &[("path", text(&path))], &schema("id: int64")).is_ok(), "twice, but not needed");
    let empty = folder.file("empty.csv", "");
    assert_eq!(open_error(&[("path", text(&empty))], "a: int64").code, "R0210");
    let pairs = [("path", text(&empty)), ("header", flag(false))];
    assert!(read("csv", &pairs, &schema("a: int64")).unwrap().rows.is_empty());
    let semicolons = folder.file("s.csv", "id;name\n1;x\n");
    let error = open_error(&[("path", text(&semicolons))], "id: int64; name: string");
    assert!(error.help.unwrap().contains("`delimiter`"));
    let mac = folder.file("m.csv", "a,b\r1,x\r2,y\r");
    let error = open_error(&[("path", text(&mac))], "a: int64; b: string");
    assert!(!error.message.contains('\r'), "no orders to the terminal: {error:?}");
    assert!(error.help.unwrap().contains("carriage return alone"));
    // A column that is another field's is not what was meant.
    let taken = folder.file("k.csv", "name,other\n");
    let error = open_error(&[("path", text(&taken))], "name: string; names: string");
    assert!(!error.help.unwrap().contains("is it"));
    let utf16 = folder.file("u.csv", b"\xff\xfea\0\n\0");
    assert_eq!(open_error(&[("path", text(&utf16))], "a: int64").code, "R0209");
    // The second of several files is compared before the first is read.
    folder.file("z1.csv", "id\n1\n");
    folder.file("z2.csv", "di\n1\n");
    let error = open_error(&[("path", text(&folder.name("z?.csv")))], "id: int64");
    assert!(error.message.contains("z2.csv"), "{error:?}");
}

#[test]
fn arguments_that_contradict_each_other_are_refused() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "a\n");
    for pair in [
        ("delimiter", text("")),
        ("delimiter", text("\n")),
        ("delimiter", text("\"")),
        ("quote", text("ab")),
        ("quote", text("1")),
        ("encoding", name("utf16")),
        ("header", text("yes")),
        ("skip", int(-1)),
        ("date_format", text("%Q")),
        ("date_format", text("%Y")),
    ] {
        assert_eq!(open_error(&[("path", text(&path)), pair.clone()], "a: int64").code, "R0202", "{pair:?}");
    }
}
