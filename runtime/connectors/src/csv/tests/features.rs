//! What the text of a CSV file may look like, one feature a test.

use crate::testing::*;
use dfc_ir::plan::OptionValue;

/// Reads a text as CSV with every size of chunk from tiny to whole; all must give the same.
fn csv(content: &[u8], pairs: &[(&str, OptionValue)], fields: &str) -> (Vec<String>, Vec<(&'static str, String)>) {
    let folder = Folder::new();
    let path = folder.file("t.csv", content);
    let schema = schema(fields);
    let mut pairs = pairs.to_vec();
    pairs.push(("path", text(&path)));
    let mut result = None;
    for chunk in [1, 2, 3, 5, 16, 64, 4096] {
        let spec = source_spec("csv", &pairs, &schema);
        let source = super::super::open_with_chunk(&spec, &context(), Some(chunk)).unwrap();
        let read = drain(&*source, &schema).unwrap();
        let mut errors = read.errors.clone();
        errors.sort_by_key(|e| e.place.as_ref().and_then(|p| p.line));
        let found = (read.texts(&schema), errors.into_iter().map(|e| (e.code, e.rule)).collect::<Vec<_>>());
        match &result {
            None => result = Some(found),
            Some(first) => assert_eq!(*first, found, "chunks of {chunk} bytes"),
        }
    }
    result.unwrap()
}

fn rows(content: impl AsRef<[u8]>, pairs: &[(&str, OptionValue)], fields: &str) -> Vec<String> {
    let (rows, errors) = csv(content.as_ref(), pairs, fields);
    assert_eq!(errors, []);
    rows
}

fn codes(content: impl AsRef<[u8]>, pairs: &[(&str, OptionValue)], fields: &str) -> Vec<&'static str> {
    csv(content.as_ref(), pairs, fields).1.into_iter().map(|e| e.0).collect()
}

#[test]
fn quotes_hide_delimiters_line_breaks_and_doubled_quotes() {
    let content = "a,b\n\"x,y\",1\n\"line\nbreak\",2\n\"say \"\"hi\"\"\",3\n\"\"\"\",4\n";
    assert_eq!(rows(content, &[], "a: string; b: int64"), ["x,y|1", "line\nbreak|2", "say \"hi\"|3", "\"|4"]);
}

#[test]
fn a_quoted_number_is_a_number() {
    assert_eq!(rows("a,b\n\"7\",\"2026-01-31\"\n", &[], "a: int64; b: date"), ["7|2026-01-31"]);
}

#[test]
fn an_unquoted_empty_field_is_null_and_a_quoted_one_is_text() {
    assert_eq!(rows("a,b,c\n1,,\"\"\n", &[], "a: int64; b: string?; c: string?"), ["1|∅|"]);
}

#[test]
fn the_null_text_is_itself_in_a_plain_string_and_an_error_elsewhere() {
    let pairs = [("nulls", text("NA"))];
    assert_eq!(rows("a,b\nNA,NA\n\"NA\",\"NA\"\n", &pairs, "a: string; b: string?"), ["NA|∅", "NA|NA"]);
    assert_eq!(codes("a\nNA\n", &pairs, "a: int64"), ["R0302"]);
    assert_eq!(codes("a\n-1\n", &[("nulls", text("-1"))], "a: int64"), ["R0302"]);
    assert_eq!(rows("a,b\n-1,1\n", &[("nulls", text("-1"))], "a: int64?; b: int64"), ["∅|1"]);
}

#[test]
fn a_byte_order_mark_is_no_text() {
    assert_eq!(rows("\u{feff}a,b\n1,2\n", &[], "a: int64; b: int64"), ["1|2"]);
    assert_eq!(rows("\u{feff}1,2\n", &[("header", flag(false))], "a: int64; b: int64"), ["1|2"]);
}

#[test]
fn columns_are_matched_by_name_and_others_are_left_out() {
    assert_eq!(rows("x,b,a\n9,2,1\n", &[], "a: int64; b: int64"), ["1|2"]);
}

#[test]
fn headers_need_not_be_identifiers() {
    assert_eq!(rows("\"order id\",订单号\n1,二\n", &[], "订单号: string; order id: int64"), ["二|1"]);
}

#[test]
fn without_a_header_columns_go_by_position() {
    assert_eq!(rows("1,2\n", &[("header", flag(false))], "a: int64; b: int64"), ["1|2"]);
}

#[test]
fn delimiters_may_have_several_characters() {
    let pairs = [("delimiter", text("||"))];
    assert_eq!(rows("a||b\nx|y||\"p||q\"\n", &pairs, "a: string; b: string"), ["x|y|p||q"]);
    assert_eq!(rows("a→b\n1→2\n", &[("delimiter", text("→"))], "a: int64; b: int64"), ["1|2"]);
    assert_eq!(rows("a\tb\n1\t\n", &[("delimiter", text("\t"))], "a: int64; b: string?"), ["1|∅"]);
}

#[test]
fn quote_and_escape_can_be_chosen() {
    let content = "a,b\n'it''s',\"x\"\n";
    assert_eq!(rows(content, &[("quote", text("'"))], "a: string; b: string"), ["it's|\"x\""]);
    let content = "a,b\n\"a\\\"b\\\\\",\"c:\\d\"\n";
    assert_eq!(rows(content, &[("escape", text("\\"))], "a: string; b: string"), ["a\"b\\|c:\\d"]);
    assert_eq!(rows("a,b\n\"x\",y\"\n", &[("quote", text(""))], "a: string; b: string"), ["\"x\"|y\""]);
}

#[test]
fn a_quote_inside_an_unquoted_field_is_text() {
    assert_eq!(rows("a,b\n5\" pipe,2\n3,x\"\"y\n", &[], "a: string; b: string"), ["5\" pipe|2", "3|x\"\"y"]);
}

#[test]
fn text_after_a_closing_quote_is_damage() {
    assert_eq!(codes("a,b\n\"x\"y,1\nz,2\n", &[], "a: string; b: int64"), ["R0305"]);
}

#[test]
fn a_quote_that_never_closes_is_one_row_error() {
    let (rows, errors) = csv(b"a,b\nx,1\n\"y,2\nz,3\n", &[], "a: string; b: int64");
    assert_eq!(rows, ["x|1"]);
    assert_eq!(errors[0].0, "R0305");
    assert!(errors[0].1.contains("never closed"));
}

#[test]
fn the_last_line_may_lack_its_end() {
    assert_eq!(rows("a,b\n1,2\n3,4", &[], "a: int64; b: int64"), ["1|2", "3|4"]);
    assert_eq!(rows("a,b\n1,", &[], "a: int64; b: string?"), ["1|∅"]);
    assert_eq!(rows("a,b\n1,\"x\"", &[], "a: int64; b: string"), ["1|x"]);
}

#[test]
fn carriage_returns_before_line_ends_belong_to_them() {
    assert_eq!(rows("a,b\r\n1,x\r\n2,\"y\"\r\n", &[], "a: int64; b: string"), ["1|x", "2|y"]);
    assert_eq!(rows("a\r\nx\r\n", &[], "a: string"), ["x"]);
}

#[test]
fn a_lone_carriage_return_is_text() {
    assert_eq!(rows("a,b\nx\ry,1\n", &[], "a: string; b: int64"), ["x\ry|1"]);
    assert_eq!(rows("a,b\n\"x\r\",\"y\r\"\n", &[], "a: string; b: string"), ["x\r|y\r"]);
}

#[test]
fn blank_lines_are_no_rows_but_values_of_a_single_column() {
    assert_eq!(rows("a,b\n\n1,2\n\r\n\n3,4\n\n", &[], "a: int64; b: int64"), ["1|2", "3|4"]);
    assert_eq!(rows("a\nx\n\ny\n", &[], "a: string?"), ["x", "∅", "y"]);
}

#[test]
fn comments_and_skipped_lines_are_no_rows() {
    let pairs = [("comment", text("#")), ("skip", int(2))];
    let content = "made by hand\n\"in June\n# first\na,b\n1,2\n#\"3,4\n\"#5\",6\n# \"\n7,8\n";
    assert_eq!(rows(content, &pairs, "a: string; b: int64"), ["1|2", "#5|6", "7|8"]);
    assert_eq!(rows("# x\na,b\n#y\n1,2\n#z", &[("comment", text("#"))], "a: int64; b: int64"), ["1|2"]);
}

#[test]
fn blanks_around_fields_can_be_trimmed() {
    let content = "a,b\n 1 , \"x \" \n2,\t y\n";
    assert_eq!(rows(content, &[("trim", flag(true))], "a: int64; b: string"), ["1|x ", "2|y"]);
    assert_eq!(codes(content, &[], "a: int64; b: string"), ["R0301"]);
}

#[test]
fn ragged_rows_are_errors_or_padded_or_cut() {
    let content = "a,b,c\n1\n1,2\n1,2,3\n1,2,3,4\n1,2\r\n";
    let fields = "a: int64; b: int64?; c: int64?";
    assert_eq!(codes(content, &[], fields), ["R0303"; 4]);
    let (padded, errors) = csv(content.as_bytes(), &[("ragged", name("pad"))], fields);
    assert_eq!(padded, ["1|∅|∅", "1|2|∅", "1|2|3", "1|2|∅"]);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].1.contains("the row has 4 fields, 3 are expected"), "{errors:?}");
    let (cut, errors) = csv(content.as_bytes(), &[("ragged", name("truncate"))], fields);
    assert_eq!((cut, errors.len()), (vec!["1|2|3".to_string(), "1|2|3".to_string()], 3));
    assert_eq!(codes("a,b\n1\n", &[("ragged", name("pad"))], "a: int64; b: int64"), ["R0302"]);
}

#[test]
fn values_that_do_not_fit_are_row_errors_with_the_rule() {
    let one = |value: &str, t: &str| {
        let (rows, errors) = csv(format!("a,b\n{value},1\n").as_bytes(), &[], &format!("a: {t}; b: int64"));
        assert!(rows.is_empty(), "{value} as {t}: {rows:?}");
        assert_eq!(errors[0].0, "R0301");
        errors[0].1.clone()
    };
    for (value, t) in [
        ("0000-00-00", "date"),
        ("2026-02-30", "date"),
        ("NaN", "float64"),
        ("inf", "float64"),
        ("1e999", "float64"),
        ("1e5", "int64"),
        ("-1", "uint8"),
        ("256", "uint8"),
        ("18446744073709551616", "uint64"),
        ("1.234", "decimal(15,2)"),
        ("99999999999999", "decimal(15,2)"),
        ("yes", "bool"),
        ("2026-01-31T10:00:00", "timestamp"),
        ("{", "json"),
        ("zz", "bytes"),
    ] {
        one(value, t);
    }
    let rule = one("31/12/2026", "date");
    assert!(rule.contains("31/12/2026") && rule.contains("2026-01-31") && rule.contains("`date_format:`"), "{rule}");
}

#[test]
fn every_type_is_read() {
    let fields = "a: bool; b: int8; c: uint64; d: float32; e: decimal(38,4); f: bytes; g: time; h: datetime; i: timestamp; j: duration; k: json";
    let content = "a,b,c,d,e,f,g,h,i,j,k\nTRUE,-128,18446744073709551615,1.5,-12.5,00ff,10:00:00.5,2026-01-31 10:00:00,\
                   2026-01-31T10:00:00+08:00,1h30m,\"{\"\"x\"\": [1]}\"\n";
    assert_eq!(
        rows(content, &[], fields),
        [
            "true|-128|18446744073709551615|1.5|-12.5000|00ff|10:00:00.500000|2026-01-31T10:00:00|2026-01-31T02:00:00Z|1h30m|{\"x\": [1]}"
        ]
    );
}

#[test]
fn dates_can_have_another_form() {
    let pairs = [
        ("date_format", text("%d/%m/%Y")),
        ("datetime_format", text("%Y%m%d %H%M%S")),
        ("timestamp_format", text("%Y-%m-%d %H:%M:%S %z")),
        ("time_format", text("%H.%M")),
    ];
    let content = "a,b,c,d\n31/12/2026,20260131 102030,2026-01-31 10:00:00 +0800,10.30\n";
    let expected = "2026-12-31|2026-01-31T10:20:30|2026-01-31T02:00:00Z|10:30:00";
    assert_eq!(rows(content, &pairs, "a: date; b: datetime; c: timestamp; d: time"), [expected]);
    assert_eq!(codes("a\n2026-12-31\n", &pairs, "a: date"), ["R0301"]);
}

#[test]
fn bad_utf8_is_a_row_error_where_it_is_read() {
    let content = b"a,b\nok,1\n\xff\xfe,2\nfine \xc3\xa4 and long enough,3\n";
    let (rows, errors) = csv(content, &[], "a: string; b: int64");
    assert_eq!(rows, ["ok|1", "fine ä and long enough|3"]);
    assert_eq!(errors[0].0, "R0304");
    assert_eq!(csv(content, &[], "b: int64").0, ["1", "2", "3"]);
}

#[test]
fn other_encodings_are_decoded() {
    let gbk = encoding_rs::GBK.encode("订单号,b\n很长的一段中文文字,\"二,三\"\n").0;
    let pairs = [("encoding", name("gbk"))];
    assert_eq!(rows(&gbk, &pairs, "订单号: string; b: string"), ["很长的一段中文文字|二,三"]);
    assert_eq!(codes(b"a,b\n\xff\xff,1\nx,2\n", &pairs, "a: string; b: int64"), ["R0304"]);
    assert_eq!(rows(b"a\n\xe4\x80\n", &[("encoding", name("latin1"))], "a: string"), ["ä\u{80}"]);
}

#[test]
fn wide_rows_and_long_fields_are_read() {
    let names: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let values: Vec<String> = (0..10_000).map(|i| i.to_string()).collect();
    let folder = Folder::new();
    let path = folder.file("wide.csv", format!("{}\n{}\n", names.join(","), values.join(",")));
    let wanted = schema("c9999: int64; c0: int64");
    assert_eq!(read("csv", &[("path", text(&path))], &wanted).unwrap().texts(&wanted), ["9999|0"]);
    let long = "x\n".repeat(8 << 20);
    let path = folder.file("long.csv", format!("a,b\n1,\"{long}\"\n2,y\n"));
    let wanted = schema("a: int64; b: string");
    let read = read("csv", &[("path", text(&path))], &wanted).unwrap();
    assert_eq!(read.rows.len(), 2);
    assert_eq!(read.rows[0][1].as_str().map(str::len), Some(16 << 20));
}

/// Whatever the lines' numbers of fields are, also where too many and too few make up for each other, lines that end as Windows ends them are
/// read as others are.
#[test]
fn rows_of_any_width_are_the_same_with_carriage_returns() {
    let forms = ["", "1", "2,x", "3,y,EXTRA", "4,z,a,b"];
    let mut files: Vec<Vec<&str>> = vec![Vec::new()];
    for _ in 0..4 {
        let longer = files
            .iter()
            .filter(|lines| lines.len() < 4)
            .flat_map(|lines| forms.map(|form| [&lines[..], &[form]].concat()));
        files = [Vec::new()].into_iter().chain(longer).collect();
    }
    for mode in ["error", "truncate", "pad"] {
        let pairs = [("ragged", OptionValue::Name(mode.into()))];
        for lines in &files {
            let of = |end: &str| ["id,c"].iter().chain(lines).map(|line| format!("{line}{end}")).collect::<String>();
            let read = |end: &str| csv(of(end).as_bytes(), &pairs, "id: int64; c: string?");
            assert_eq!(read("\r\n"), read("\n"), "{mode}: {lines:?}");
        }
    }
}
