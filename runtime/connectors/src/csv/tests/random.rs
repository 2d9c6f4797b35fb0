//! Random tables in every dialect, cut everywhere, against what was written and against a naive parser; and hostile bytes.

use proptest::prelude::*;

use super::super::sink::{CsvEncoder, CsvStyle};
use super::super::{exact, fast, index};
use crate::options::OptionReader;
use crate::testing::*;
use crate::text::dialect::Dialect;
use crate::{Condition, Next, OpenContext, RowFilter};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use dfc_ir::Value;

/// A field's text as it may stand in a file: the letters that matter are frequent.
fn field_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            4 => "[a-c]",
            1 => Just("\"".to_string()),
            1 => Just(",".to_string()),
            1 => Just("|".to_string()),
            1 => Just("\n".to_string()),
            1 => Just("\r".to_string()),
            1 => Just("'".to_string()),
            1 => Just(" ".to_string()),
            1 => Just("订".to_string()),
            1 => Just("\\".to_string()),
            1 => Just("NA".to_string()),
        ],
        0..20,
    )
    .prop_map(|parts| parts.concat())
}

#[derive(Debug, Clone)]
struct Shape {
    delimiter: &'static str,
    quote: &'static str,
    nulls: &'static str,
    quote_all: bool,
    crlf: bool,
    header: bool,
    chunk: usize,
}

fn shape() -> impl Strategy<Value = Shape> {
    (
        prop_oneof![Just(","), Just("|"), Just("||"), Just(";"), Just("订"), Just("\t")],
        prop_oneof![Just("\""), Just("'")],
        prop_oneof![Just(""), Just("NA"), Just("a")],
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![1usize..40, 40usize..300],
    )
        .prop_map(|(delimiter, quote, nulls, quote_all, crlf, header, chunk)| Shape {
            delimiter,
            quote,
            nulls,
            quote_all,
            crlf,
            header,
            chunk,
        })
}

/// The letter of RFC 4180, one byte at a time, for one-byte delimiters and doubled quotes.
fn naive(data: &[u8], delimiter: u8, quote: u8) -> Vec<Vec<(usize, usize)>> {
    let (mut rows, mut row, mut start, mut at) = (Vec::new(), Vec::new(), 0, 0);
    let mut in_quotes = false;
    while at < data.len() {
        let byte = data[at];
        if in_quotes {
            if byte == quote {
                if data.get(at + 1) == Some(&quote) {
                    at += 1;
                } else {
                    in_quotes = false;
                }
            }
        } else if byte == quote && at == start {
            in_quotes = true;
        } else if byte == delimiter {
            row.push((start, at));
            start = at + 1;
        } else if byte == b'\n' {
            row.push((start, at));
            rows.push(std::mem::take(&mut row));
            start = at + 1;
        }
        at += 1;
    }
    if start < data.len() || !row.is_empty() {
        row.push((start, data.len()));
        rows.push(row);
    }
    rows
}

fn plain_dialect() -> Dialect {
    Dialect { delimiter: b",".to_vec(), quote: Some(b'"'), escape: b'"', comment: None, trim: false }
}

struct Walked {
    rows: Vec<Vec<(usize, usize)>>,
    row: Vec<(usize, usize)>,
    start: usize,
}

impl exact::Found for Walked {
    fn row_starts(&mut self, at: usize) {
        self.start = at;
    }
    fn field_ends(&mut self, at: usize) {
        self.row.push((self.start, at));
        self.start = at + 1;
    }
    fn row_ends(&mut self, _: usize, _: bool, _: bool) -> bool {
        self.rows.push(std::mem::take(&mut self.row));
        true
    }
    fn comment_ends(&mut self, _: usize, _: bool) {}
}

/// Bytes in which everything that has a meaning is frequent.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(
        prop_oneof![
            3 => Just(b'"'), 3 => Just(b','), 2 => Just(b'\n'), 1 => Just(b'\r'), 4 => Just(b'a'), 1 => Just(b'1'),
            1 => Just(b' '), 1 => Just(b'#'), 1 => Just(b'\\'), 1 => any::<u8>(),
        ],
        0..400,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_is_read(
        shape in shape(),
        rows in proptest::collection::vec((field_text(), proptest::option::of(field_text()), any::<i64>(), proptest::option::of(any::<i32>())), 0..30),
    ) {
        let folder = Folder::new();
        let path = folder.name("t.csv");
        let schema = schema("a: string; b: string?; 数: int64; d: decimal(12,2)?");
        let rows: Vec<Vec<Value>> = rows.into_iter().map(|(a, b, c, d)| vec![
            Value::string(a),
            b.map_or(Value::Null, Value::string),
            Value::Int(c.into()),
            d.map_or(Value::Null, |d| Value::Decimal(d.into())),
        ]).collect();
        let pairs = [
            ("path", text(&path)), ("delimiter", text(shape.delimiter)), ("quote", text(shape.quote)), ("nulls", text(shape.nulls)),
            ("quote_all", flag(shape.quote_all)), ("header", flag(shape.header)),
            ("line_ending", name(if shape.crlf { "crlf" } else { "lf" })),
        ];
        let (_, errors) = write("csv", &pairs, &schema, vec![batch(&schema, &rows)]).unwrap();
        prop_assert_eq!(errors.len(), 0);
        let spec = source_spec("csv", &pairs, &schema);
        let source = super::super::open_with_chunk(&spec, &context(), Some(shape.chunk)).unwrap();
        let read = drain(&*source, &schema).unwrap();
        prop_assert_eq!(read.errors.len(), 0, "{:?}", read.errors);
        prop_assert_eq!(read.rows, rows);
    }

    /// Fields of a row that doesn't pass aren't read; those that decide it are.
    #[test]
    fn filters_leave_out_what_does_not_pass_and_nothing_else(
        rows in proptest::collection::vec((0i64..40, any::<bool>(), any::<bool>(), 0i64..9), 0..60),
        chunk in 1usize..60,
    ) {
        let folder = Folder::new();
        let line = |&(a, a_fits, b_fits, c): &(i64, bool, bool, i64)| {
            format!("{},{a}{},{c}\n", if b_fits { "7" } else { "seven" }, if a_fits { "" } else { "x" })
        };
        let path = folder.file("t.csv", rows.iter().map(line).collect::<String>());
        let schema = schema("b: int64; a: int64; c: int64");
        let spec = source_spec("csv", &[("path", text(&path)), ("header", flag(false))], &schema);
        let where_it_is = |column: usize, wanted: fn(i64) -> bool| Condition {
            columns: vec![column],
            pass: std::sync::Arc::new(move |columns, rows| {
                let values = columns[0].as_primitive::<Int64Type>();
                let kept: Vec<u32> = (0..rows as u32).filter(|&row| wanted(values.value(row as usize))).collect();
                (kept.len() < rows).then_some(kept)
            }),
            possible: None,
        };
        let filter = RowFilter(vec![where_it_is(1, |a| a % 2 == 0), where_it_is(2, |c| c < 7)]);
        let cx = OpenContext { filter: Some(filter), ..context() };
        let source = super::super::open_with_chunk(&spec, &cx, Some(chunk)).unwrap();
        let mut reader = source.reader(0).unwrap();
        let (mut read, mut errors, mut left_out) = (Vec::new(), Vec::new(), 0);
        while let Next::Batch(batch) = reader.next(&mut errors).unwrap() {
            left_out += reader.left_out();
            for row in 0..batch.rows {
                let value = |column: usize| batch.columns[column].as_primitive::<Int64Type>().value(row);
                let line = batch.origin.as_ref().and_then(|origin| origin.place(row).line);
                read.push((line.unwrap_or(0), value(1), value(2)));
            }
        }
        let passes = |a: i64, c: i64| a % 2 == 0 && c < 7;
        let numbered = || (1u64..).zip(&rows);
        let expected: Vec<_> = numbered().filter(|(_, (a, a_fits, b_fits, c))| *a_fits && *b_fits && passes(*a, *c)).map(|(line, (a, _, _, c))| (line, *a, *c)).collect();
        prop_assert_eq!(read, expected);
        let wrong: Vec<_> = numbered().filter_map(|(line, (a, a_fits, b_fits, c))| match (a_fits, b_fits) {
            (false, _) => Some((line, "a")),
            (true, false) => passes(*a, *c).then_some((line, "b")),
            (true, true) => None,
        }).collect();
        let told: Vec<_> = errors.iter().map(|error| (error.place.as_ref().and_then(|place| place.line).unwrap_or(0), error.field.as_deref().unwrap_or(""))).collect();
        prop_assert_eq!(told, wrong);
        let dropped = rows.iter().filter(|(a, a_fits, _, c)| *a_fits && !passes(*a, *c)).count();
        prop_assert_eq!(left_out, dropped as u64);
    }

    #[test]
    fn both_ways_to_write_give_the_same_lines(
        rows in proptest::collection::vec((field_text(), proptest::option::of(any::<i64>()), any::<i64>(), any::<i32>(), -719_162i32..2_932_896), 0..30),
        crlf in any::<bool>(),
    ) {
        let schema = schema("a: string; b: int64?; c: decimal(12,2); d: int32; e: date; f: decimal(18,18); g: decimal(38,4); h: decimal(9,0); i: float64; j: json");
        let rows: Vec<Vec<Value>> = rows.into_iter().map(|(a, b, c, d, e)| vec![
            Value::string(a.clone()),
            b.map_or(Value::Null, |b| Value::Int(b.into())),
            Value::Decimal((c % 1_000_000_000_000).into()),
            Value::Int(d.into()),
            Value::Date(e),
            Value::Decimal((c % 1_000_000_000_000_000_000).into()),
            Value::Decimal(i128::from(c) * i128::from(d) * 1_000),
            Value::Decimal((d % 1_000_000_000).into()),
            Value::Float(f64::from(d)),
            Value::string(format!("{:?}", a.len())),
        ]).collect();
        let pairs = [("path", text("x")), ("line_ending", name(if crlf { "crlf" } else { "lf" }))];
        let style = CsvStyle::read(&OptionReader::new("csv", &options(&pairs))).unwrap();
        let batch = batch(&schema, &rows);
        let mut encoder = CsvEncoder::new(style.into(), schema.into());
        let usual = encoder.usual_lines(&batch).expect("the usual style");
        let (any, written) = encoder.any_lines(&batch, &mut Vec::new());
        prop_assert_eq!(String::from_utf8(usual).unwrap(), String::from_utf8(any).unwrap());
        prop_assert_eq!(written, rows.len() as u64);
    }

    #[test]
    fn all_scans_find_the_same_fields(data in hostile()) {
        let oracle = naive(&data, b',', b'"');
        let mut walked = Walked { rows: Vec::new(), row: Vec::new(), start: 0 };
        exact::walk(&data, &plain_dialect(), &mut walked);
        prop_assert_eq!(&walked.rows, &oracle);
        let mut found = fast::Ends::default();
        if let Ok(fast::Found { rows, .. }) = fast::field_ends(&data, b',', Some(b'"'), &mut found) {
            let ends: Vec<usize> = oracle.iter().flatten().map(|(_, end)| *end).collect();
            prop_assert_eq!(found.iter().map(|e| *e as usize).collect::<Vec<_>>(), ends);
            prop_assert_eq!(rows, oracle.len());
        }
        let whole = index::whole_rows(&data, &plain_dialect());
        prop_assert_eq!(whole.map(|whole| whole.end), exact::last_row_end(&data, &plain_dialect()));
        if let Some(whole) = whole {
            prop_assert_eq!(whole.lines, data[..whole.end].iter().filter(|byte| **byte == b'\n').count());
        }
    }

    #[test]
    fn hostile_bytes_give_rows_or_errors(data in hostile(), chunk in 1usize..50, kind in 0usize..6) {
        let folder = Folder::new();
        let path = folder.file("t.csv", &data);
        let schema = schema("x: string; y: int64?; z: date?");
        let mut pairs = vec![("path", text(&path)), ("header", flag(false))];
        match kind {
            0 => pairs.push(("ragged", name("pad"))),
            1 => pairs.push(("ragged", name("truncate"))),
            2 => pairs.extend([("escape", text("\\")), ("comment", text("#"))]),
            3 => pairs.push(("trim", flag(true))),
            4 => pairs.push(("encoding", name("gbk"))),
            _ => pairs.push(("delimiter", text(",a"))),
        }
        let whole = drain(&*crate::open_source(&source_spec("csv", &pairs, &schema), &context()).unwrap(), &schema).unwrap();
        let source = super::super::open_with_chunk(&source_spec("csv", &pairs, &schema), &context(), Some(chunk)).unwrap();
        let cut = drain(&*source, &schema).unwrap();
        // Where the chunks end changes nothing.
        prop_assert_eq!(whole.rows, cut.rows);
        prop_assert_eq!(whole.errors.len(), cut.errors.len());
    }
}
