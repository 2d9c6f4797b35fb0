//! The CSV sink: quoting, modes, encodings, and that nothing appears before it is whole.

use crate::testing::*;
use crate::{ConnectError, OpenContext};
use dfc_ir::plan::{OptionValue, SinkSpec};
use dfc_ir::{Schema, Value};

fn sample() -> (Schema, Vec<Vec<Value<'static>>>) {
    let rows = vec![
        vec![Value::Int(1), Value::str("plain"), Value::Null],
        vec![Value::Int(-2), Value::str("a,b"), Value::str("")],
        vec![Value::Int(3), Value::str("say \"hi\"\n"), Value::str(" x ")],
    ];
    (schema("id: int64; a b: string; c: string?"), rows)
}

fn written(pairs: &[(&str, OptionValue)]) -> String {
    let folder = Folder::new();
    let (schema, rows) = sample();
    let mut pairs = pairs.to_vec();
    pairs.push(("path", text(&folder.name("out/deep/t.csv"))));
    let (summary, errors) = write("csv", &pairs, &schema, vec![batch(&schema, &rows)]).unwrap();
    assert_eq!((summary.rows, errors.len()), (3, 0));
    let bytes = std::fs::read(folder.path("out/deep/t.csv")).unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn fields_are_quoted_only_where_they_must_be() {
    assert_eq!(written(&[]), "id,a b,c\n1,plain,\n-2,\"a,b\",\"\"\n3,\"say \"\"hi\"\"\n\", x \n");
    let pairs = [("quote_all", flag(true)), ("line_ending", name("crlf")), ("nulls", text("NULL"))];
    assert_eq!(
        written(&pairs),
        "\"id\",\"a b\",\"c\"\r\n\"1\",\"plain\",NULL\r\n\"-2\",\"a,b\",\"\"\r\n\"3\",\"say \"\"hi\"\"\n\",\" x \"\r\n"
    );
    let pairs = [("delimiter", text("-")), ("header", flag(false)), ("quote", text("'"))];
    assert_eq!(written(&pairs), "1-plain-\n'-2'-a,b-''\n3-'say \"hi\"\n'- x \n");
    let pairs = [("nulls", text("1"))];
    assert!(written(&pairs).contains("\n\"1\",plain,1\n"));
}

#[test]
fn what_cannot_be_written_is_a_row_error() {
    let folder = Folder::new();
    let (schema, rows) = sample();
    let pairs = [("path", text(&folder.name("t.csv"))), ("quote", text(""))];
    let (summary, errors) = write("csv", &pairs, &schema, vec![batch(&schema, &rows)]).unwrap();
    assert_eq!((summary.rows, errors.len()), (1, 2));
    assert_eq!(
        (errors[0].code, errors[0].field.as_deref(), errors[0].value.as_deref()),
        ("R0310", Some("a b"), Some("a,b"))
    );
    let text_schema = super::super::super::testing::schema("a: string");
    let pairs = [("path", text(&folder.name("l.csv"))), ("encoding", name("latin1"))];
    let rows = [vec![Value::str("ä")], vec![Value::str("单")]];
    let (summary, errors) = write("csv", &pairs, &text_schema, vec![batch(&text_schema, &rows)]).unwrap();
    assert_eq!((summary.rows, errors.len()), (1, 1));
    assert!(errors[0].rule.contains('单'));
    assert_eq!(std::fs::read(folder.path("l.csv")).unwrap(), b"a\n\xe4\n");
}

#[test]
fn gbk_and_compression_round_trip() {
    let folder = Folder::new();
    let (schema, rows) = sample();
    for (file, more) in [
        ("t.csv", vec![("encoding", name("gbk"))]),
        ("t.csv.gz", vec![]),
        ("t.csv.zst", vec![]),
        ("t.x", vec![("compression", name("zstd"))]),
    ] {
        let mut pairs = vec![("path", text(&folder.name(file)))];
        pairs.extend(more);
        write("csv", &pairs, &schema, vec![batch(&schema, &rows)]).unwrap();
        assert_eq!(read("csv", &pairs, &schema).unwrap().rows, rows, "{file}");
    }
}

#[test]
fn dates_are_written_in_the_form_asked_for() {
    let folder = Folder::new();
    let schema = schema("a: date; b: date?");
    let path = folder.name("t.csv");
    let pairs = [("path", text(&path)), ("date_format", text("%d,%m,%Y"))];
    let rows = [vec![Value::Date(0), Value::Null]];
    write("csv", &pairs, &schema, vec![batch(&schema, &rows)]).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a,b\n\"01,01,1970\",\n");
    assert_eq!(read("csv", &pairs, &schema).unwrap().rows, rows);
}

fn open(pairs: &[(&str, OptionValue)], schema: &Schema) -> Result<Box<dyn crate::Sink>, ConnectError> {
    let spec = SinkSpec { connector: "csv".into(), options: options(pairs) };
    crate::open_sink(&spec, schema, &OpenContext { tasks: 1, ..context() })
}

#[test]
fn nothing_is_visible_before_the_end_and_nothing_stays_after_an_abort() {
    let folder = Folder::new();
    let (schema, rows) = sample();
    let path = folder.file("t.csv", "old");
    let pairs = [("path", text(&path))];
    let sink = open(&pairs, &schema).unwrap();
    put(&*sink, vec![batch(&schema, &rows)]).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    sink.abort();
    assert_eq!(folder.names(), ["t.csv"]);
    assert!(sink.finish().is_err());
    drop(open(&pairs, &schema).unwrap());
    assert_eq!(folder.names(), ["t.csv"]);
    let sink = open(&pairs, &schema).unwrap();
    sink.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "id,a b,c\n");
    assert_eq!(folder.names(), ["t.csv"]);
}

#[test]
fn an_existing_file_is_replaced_kept_or_refused() {
    let folder = Folder::new();
    let schema = schema("a: int64");
    let path = folder.name("t.csv");
    let with = |mode: &str| [("path", text(&path)), ("mode", name(mode))];
    let one = |n: i128| vec![batch(&schema, &[vec![Value::Int(n)]])];
    write("csv", &with("fail"), &schema, one(1)).unwrap();
    let error = open(&with("fail"), &schema).err().unwrap();
    assert_eq!(error.code, "R0207");
    write("csv", &with("append"), &schema, one(2)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n1\n2\n");
    std::fs::write(&path, "a\n1").unwrap();
    let sink = open(&with("append"), &schema).unwrap();
    put(&*sink, one(3)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n1");
    sink.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n1\n3\n");
    write("csv", &with("overwrite"), &schema, one(4)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n4\n");
    // Made by someone else in the meantime: `fail` doesn't replace it.
    let other = folder.name("other.csv");
    let sink = open(&[("path", text(&other)), ("mode", name("fail"))], &schema).unwrap();
    std::fs::write(&other, "theirs").unwrap();
    assert!(sink.finish().is_err());
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
    assert_eq!(folder.names(), ["other.csv", "t.csv"]);
}

#[test]
fn rows_are_added_only_below_the_same_columns() {
    let folder = Folder::new();
    let schema = schema("a: int64; b: string?");
    let path = folder.name("t.csv");
    let to = [("path", text(&path)), ("mode", name("append"))];
    let row = || vec![batch(&schema, &[vec![Value::Int(1), Value::Null]])];
    for (before, problem) in [
        ("\u{feff}\"a\",b\r\n0,x\r\n", None),
        ("b,a\nx,0\n", Some("has the columns `b`, `a`")),
        ("a\n0\n", Some("has the columns `a`, and `a`, `b` would be added")),
        ("0,x\n", Some("has the columns `0`, `x`")),
    ] {
        std::fs::write(&path, before).unwrap();
        match (write("csv", &to, &schema, row()), problem) {
            (Ok(_), None) => assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{before}1,\n")),
            (Err(error), Some(problem)) => {
                assert_eq!(error.code, "R0210", "{before}");
                assert!(error.message.contains(problem), "{before}: {}", error.message);
                assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "nothing changed");
            }
            (result, _) => panic!("{before}: {}", result.is_ok()),
        }
    }
    let without_header = [("path", text(&path)), ("mode", name("append")), ("header", flag(false))];
    std::fs::write(&path, "0,x\n").unwrap();
    write("csv", &without_header, &schema, row()).unwrap();
    assert_eq!(folder.names(), ["t.csv"]);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay_and_devices_are_not_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let schema = schema("a: int64");
    let real = folder.file("real.csv", "old");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, folder.path("link.csv")).unwrap();
    write("csv", &[("path", text(&folder.name("link.csv")))], &schema, vec![]).unwrap();
    assert!(folder.path("link.csv").symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "a\n");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    // A link to a file that isn't there yet stays too.
    std::os::unix::fs::symlink("later.csv", folder.path("early.csv")).unwrap();
    write("csv", &[("path", text(&folder.name("early.csv")))], &schema, vec![]).unwrap();
    assert!(folder.path("early.csv").symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(folder.path("later.csv")).unwrap(), "a\n");
    write("csv", &[("path", text("/dev/null"))], &schema, vec![]).unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn one_file_is_written_by_one_sink_at_a_time() {
    let folder = Folder::new();
    let schema = schema("a: int64");
    let first = open(&[("path", text(&folder.name("t.csv")))], &schema).unwrap();
    let again = [("path", text(&folder.name("./t.csv"))), ("mode", name("append"))];
    assert_eq!(open(&again, &schema).err().unwrap().code, "R0214");
    first.finish().unwrap();
    drop(open(&again, &schema).unwrap());
    drop(open(&again, &schema).unwrap());
    assert_eq!(folder.names(), ["t.csv"]);
}

#[test]
fn a_name_may_be_as_long_as_the_file_system_allows() {
    let folder = Folder::new();
    let long = "é".repeat(127);
    write("csv", &[("path", text(&folder.name(&long)))], &schema("a: int64"), vec![]).unwrap();
    assert_eq!(folder.names(), [long]);
}
