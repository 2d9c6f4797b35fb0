//! Tests of the JSON lines connector.

use dfc_ir::{DataType, Field, Schema, Type, Value};
use proptest::prelude::*;

use super::places::Places;
use super::source::{Lines, batch as batch_of, line_by_line, open_with_chunk};
use crate::locate::Chunk;
use crate::testing::*;

fn nested() -> Schema {
    let item = Type::Record(vec![Field::new("sku", ty("string")), Field::new("n", ty("int64?"))]);
    let mut schema = schema("id: uint64; price: decimal(38,4)?; at: date?; raw: json?; ok: bool?; x: float64?");
    schema.fields.push(Field::new("items", DataType::optional(Type::List(Box::new(DataType::of(item))))));
    schema
}

#[test]
fn objects_are_read_by_key_with_nested_values() {
    let folder = Folder::new();
    let content = concat!(
        r#"{"id": 18446744073709551615, "price": 1.5, "at": "2026-01-31", "raw": {"a": [1, 2]}, "items": [{"sku": "x\u00e4\n", "n": 1}, {"sku": "y"}]}"#,
        "\n\n",
        r#" {"unknown": [[], {}], "x": 1e3, "id": 1, "id": 2, "ok": true, "price": "12345678901234567890123456789012.5", "raw": null} "#,
        "\r\n{\"\\u0069d\":3}",
    );
    let path = folder.file("t.jsonl", content);
    let schema = nested();
    let spec = source_spec("jsonl", &[("path", text(&path))], &schema);
    for chunk in [None, Some(1), Some(100)] {
        let read = drain(&*open_with_chunk(&spec, &context(), chunk).unwrap(), &schema).unwrap();
        assert_eq!(read.errors, []);
        assert_eq!(
            read.texts(&schema),
            [
                r#"18446744073709551615|1.5000|2026-01-31|{"a": [1, 2]}|∅|∅|[{"sku": "xä\n", "n": 1}, {"sku": "y", "n": null}]"#,
                "2|12345678901234567890123456789012.5000|∅|∅|true|1000.0|∅",
                "3|∅|∅|∅|∅|∅|∅",
            ]
        );
    }
}

#[test]
fn what_does_not_fit_is_a_row_error() {
    let folder = Folder::new();
    let schema = schema("id: int8; s: string?; at: date?; d: decimal(4,2)?");
    for (line, code, field, rule) in [
        (r#"{"id": 128}"#, "R0301", Some("id"), "-128 to 127"),
        (r#"{"id": 1.0}"#, "R0301", Some("id"), "int8"),
        (r#"{"id": [1]}"#, "R0301", Some("id"), "single value"),
        (r#"{"id": true}"#, "R0301", Some("id"), "true"),
        (r#"{"id": null}"#, "R0302", Some("id"), "never null"),
        (r#"{}"#, "R0302", Some("id"), "the key is missing"),
        (r#"{"id": 1, "at": 20260131}"#, "R0301", Some("at"), "a string is expected"),
        (r#"{"id": 1, "at": "31.01.2026"}"#, "R0301", Some("at"), "2026-01-31"),
        (r#"{"id": 1, "d": 1.234}"#, "R0301", Some("d"), "3 digits after the point"),
        (r#"{"id": 1, "s": "\ud800"}"#, "R0301", Some("s"), "surrogate"),
        (r#"{"id": 1"#, "R0305", None, "byte 9: a comma or `}` is expected"),
        (r#"[1]"#, "R0305", None, "an object"),
        (r#"{"id": 1} {"id": 2}"#, "R0305", None, "one object a line"),
        (r#"{"id": 01}"#, "R0305", None, "byte 9"),
        (r#"{"id": NaN}"#, "R0305", None, "a value is expected"),
        ("{\"id\": 1, \"s\": \"a\tb\"}", "R0305", None, "control character"),
    ] {
        let path = folder.file("t.jsonl", format!("{{\"id\": 7}}\n{line}\n{{\"id\": 8}}\n"));
        let read = read("jsonl", &[("path", text(&path))], &schema).unwrap();
        assert_eq!(read.rows.len(), 2, "{line}");
        let error = &read.errors[0];
        assert_eq!((error.code, error.field.as_deref()), (code, field), "{line}: {error:?}");
        assert!(error.rule.contains(rule), "{line}: {}", error.rule);
        let place = error.place.as_ref().unwrap();
        assert_eq!((place.line, place.offset), (Some(2), Some(10)));
        assert_eq!(error.raw.as_deref(), Some(line));
    }
    let deep = format!("{{\"id\": 1, \"x\": {}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    let path = folder.file("deep.jsonl", deep);
    assert_eq!(read("jsonl", &[("path", text(&path))], &schema).unwrap().codes(), ["R0305"]);
    let path = folder.file("bad.jsonl", b"{\"id\": 1, \"s\": \"\xff\"}\n");
    assert_eq!(read("jsonl", &[("path", text(&path))], &schema).unwrap().codes(), ["R0304"]);
}

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new();
    let schema = nested();
    let item = |sku: &'static str, n| Value::Record(vec![Value::str(sku), n]);
    let rows = vec![
        vec![
            Value::Int(7),
            Value::Decimal(-15_000),
            Value::Date(1),
            Value::str("{\"a\":\n1}"),
            Value::Bool(false),
            Value::Float(0.1),
            Value::List(vec![item("\"\u{1}\\", Value::Null), item("ä", Value::Int(1))]),
        ],
        vec![Value::Int(8), Value::Null, Value::Null, Value::Null, Value::Null, Value::Null, Value::Null],
    ];
    for file in ["t.jsonl", "t.jsonl.gz"] {
        let pairs = [("path", text(&folder.name(file)))];
        let (summary, errors) = write("jsonl", &pairs, &schema, vec![batch(&schema, &rows)]).unwrap();
        assert_eq!((summary.rows, errors.len()), (2, 0));
        let mut expected = rows.clone();
        expected[0][3] = Value::str("{\"a\": 1}");
        assert_eq!(read("jsonl", &pairs, &schema).unwrap().rows, expected);
    }
    let content = std::fs::read_to_string(folder.path("t.jsonl")).unwrap();
    assert!(
        content.ends_with("{\"id\":8,\"price\":null,\"at\":null,\"raw\":null,\"ok\":null,\"x\":null,\"items\":null}\n"),
        "{content}"
    );
}

#[test]
fn limit_rows_gives_exactly_the_first_ones() {
    let folder = Folder::new();
    let path = folder.file("t.jsonl", "{\"id\":1}\n\n{\"id\":2}\n{\"id\":3}");
    let schema = schema("id: int64");
    for limit in 0..5 {
        let cx = crate::OpenContext { limit_rows: Some(limit), ..context() };
        let source = crate::open_source(&source_spec("jsonl", &[("path", text(&path))], &schema), &cx).unwrap();
        assert_eq!(drain(&*source, &schema).unwrap().rows.len() as u64, limit.min(3));
    }
}

proptest! {
    #[test]
    fn hostile_lines_give_rows_or_errors(data in proptest::collection::vec(
        prop_oneof![
            Just(b"{\"id\":".to_vec()), Just(b"}".to_vec()), Just(b"\n".to_vec()), Just(b"1".to_vec()), Just(b"\"".to_vec()),
            Just(b"\\".to_vec()), Just(b"[".to_vec()), Just(b",".to_vec()), any::<u8>().prop_map(|b| vec![b]),
        ], 0..60), chunk in 1usize..30) {
        let folder = Folder::new();
        let path = folder.file("t.jsonl", data.concat());
        let schema = schema("id: int64?; s: string?");
        let spec = source_spec("jsonl", &[("path", text(&path))], &schema);
        // UTF-16's mark is refused when the file is opened.
        if let Ok(source) = open_with_chunk(&spec, &context(), Some(chunk)) {
            drain(&*source, &schema).unwrap();
        }
    }
}

/// A member of an object: keys that are wanted, others, and such as are written in an odd way; values of every form, some of which fit.
fn member() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        8 => prop::sample::select(vec!["id", "s", "at", "ts", "d", "w", "x", "ok", "raw", "items", "u", "rec", "rec"]).prop_map(|key| format!("\"{key}\"")),
        2 => prop::sample::select(vec!["\"other\"", "\"\"", "\"i\\u0064\"", "\"k\u{e4}\"", "id", "\"id"]).prop_map(String::from),
    ];
    let value = prop::sample::select(vec![
        "0",
        "7",
        "-12",
        "128",
        "01",
        "-",
        "1.5",
        "1.50",
        "1.",
        ".5",
        "1e3",
        "1E-2",
        "1e",
        "12345678901234567890",
        "0.001",
        "18446744073709551615",
        "null",
        "nul",
        "true",
        "false",
        "True",
        "\"\"",
        "\"7\"",
        "\"1.25\"",
        "\"a\"",
        "\"true\"",
        "\"null\"",
        "\"a longer text than a view holds\"",
        "\"h\u{e9}llo w\u{f6}rld \u{1f600}\"",
        "\"a\\nb\"",
        "\"\\ud800\"",
        "\"\\q\"",
        "\"a\tb\"",
        "\"open",
        "\"2026-01-31\"",
        "\"2026-02-30\"",
        "\"2026-01-31T10:00:00\"",
        "\"2026-01-31T10:00:00.5Z\"",
        "\"2026-01-31T10:00:00+02:00\"",
        "[]",
        "[{}]",
        "[{\"sku\": \"x\", \"n\": 1}]",
        "{\"a\": [1, \"}\"]}",
        "{",
        "[1,]",
        "{\"a\" 1}",
    ]);
    let record = prop::sample::select(vec![
        r#"{}"#,
        r#"null"#,
        r#"{"n":1,"s":"x"}"#,
        r#"{"n": 2, "deep": {"at": "2026-01-31", "list": [1]}}"#,
        r#"{"s":"\u00e4","n":3,"n":4}"#,
        r#"{"n":5,"deep":null}"#,
        r#"{"n":null}"#,
        r#"{"n":6,"deep":{},"raw":null,"ok":true}"#,
        r#"{"n":"x"}"#,
        r#"{"n":7,"s":"\ud800"}"#,
        r#"{"n":8,"deep":{"at":"2026-01-31"},"deep":{"list":[]}}"#,
        r#"{"n":9,"raw":[1, {}],"other":{"n":1}}"#,
        r#"{"n":1"#,
        r#"{"n":10,"deep":7}"#,
    ]);
    let blank = prop::sample::select(vec!["", "", "", " ", "\t", "  "]);
    let any = (key, blank.clone(), blank, value).prop_map(|(key, a, b, value)| format!("{key}{a}:{b}{value}"));
    prop_oneof![3 => any, 1 => record.prop_map(|record| format!("\"rec\":{record}"))]
}

/// A line: an object, or what isn't one.
fn line() -> impl Strategy<Value = String> {
    let separator = prop::sample::select(vec![",", ",", ", ", " , ", " "]);
    let object = (prop::collection::vec(member(), 0..7), separator).prop_map(|(members, by)| members.join(by)).boxed();
    prop_oneof![
        12 => object.clone().prop_map(|inner| format!("{{{inner}}}")),
        2 => object.clone().prop_map(|inner| format!(" {{ {inner} }} \r")),
        1 => object.prop_map(|inner| format!("{{{inner}")),
        1 => prop::sample::select(vec!["", "  ", "\r", "[1]", "{} {}", "{}x", "null"]).prop_map(String::from),
    ]
}

proptest! {
    /// Lines that are walked over with ease give what each gives alone: rows, errors, and their places. Lines mostly look like the one before.
    #[test]
    fn easy_lines_are_read_as_each_alone(lines in prop::collection::vec((line(), 1usize..4), 0..60), ends in any::<bool>(), strict in any::<bool>()) {
        let id = if strict { "id: int8" } else { "id: int8?" };
        let mut schema = schema(
            &format!("{id}; s: string?; at: date?; ts: timestamp?; d: decimal(4,2)?; w: decimal(25,3)?; x: float64?; ok: bool?; raw: json?; u: uint64?"),
        );
        schema.fields.push(nested().fields.pop().unwrap());
        let list = Field::new("list", DataType::optional(Type::List(Box::new(ty("int64")))));
        let at = Field::new("at", ty("date?"));
        let deep = Field::new("deep", DataType::optional(Type::Record(vec![at, list])));
        let mut inner = vec![Field::new("n", ty("int32")), Field::new("s", ty("string?")), deep];
        inner.extend([Field::new("raw", ty("json?")), Field::new("ok", ty("bool?"))]);
        schema.fields.push(Field::new("rec", DataType { ty: Type::Record(inner), nullable: !strict || ends }));
        let lines: Vec<String> = lines.into_iter().flat_map(|(line, times)| std::iter::repeat_n(line, times)).collect();
        let content = lines.join("\n") + if ends { "\n" } else { "" };
        let keys = schema.fields.iter().enumerate().map(|(at, field)| (field.external_name().to_string(), at)).collect();
        let format = Lines { fields: schema.fields.clone(), keys };
        let chunk = Chunk { seq: 3, text: content.into_bytes().into(), file: "t".into(), offset: Some(10), line: 5 };
        let (mut errors, mut expected_errors) = (Vec::new(), Vec::new());
        let (columns, starts) = line_by_line(&format, &chunk, &mut expected_errors);
        let got = batch_of(&format, &mut Places::new(&format.fields), chunk, &mut errors);
        prop_assert_eq!(got.rows, starts.len());
        prop_assert_eq!(errors, expected_errors);
        for (position, field) in schema.fields.iter().enumerate() {
            prop_assert_eq!(got.columns[position].data_type(), columns[position].data_type());
            for row in 0..got.rows {
                let value = |columns: &[arrow_array::ArrayRef]| dfc_batch::value_at(&columns[position], &field.ty.ty, row).into_owned();
                prop_assert_eq!(value(&got.columns), value(&columns), "{} of row {}", &field.name, row);
            }
        }
        let places = |row: usize| got.origin.as_ref().map(|origin| origin.locate.place(row).offset);
        for (row, start) in starts.iter().enumerate() {
            prop_assert_eq!(places(row), Some(Some(10 + u64::from(*start))));
        }
    }
}
