//! Tests of the Parquet connector.

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex};

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Date32Array, Date64Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use dfc_batch::Batch;
use dfc_ir::{DataType, Field, Type, Value};
use parquet::arrow::ArrowWriter;

use crate::OpenContext;
use crate::testing::*;

/// A file as another program would write it.
fn foreign(path: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn what_is_written_is_read_with_nested_values_and_row_groups() {
    let folder = Folder::new();
    let item = Type::Record(vec![Field::new("sku", ty("string")), Field::new("n", ty("int64?"))]);
    let mut schema = schema("id: int64; d: decimal(12,2)?; w: decimal(38,4); s: string?; l: duration; j: json?");
    schema.fields.push(Field::new("items", DataType::optional(Type::List(Box::new(DataType::of(item))))));
    let rows: Vec<Vec<Value>> = (0..50_000)
        .map(|i| {
            let record = Value::Record(vec![Value::string(format!("sku {i}")), Value::Null]);
            vec![
                Value::Int(i),
                if i % 3 == 0 { Value::Null } else { Value::Decimal(i * 7 - 1000) },
                Value::Decimal(-(10i128.pow(37)) - i),
                Value::string(format!("a text longer than twelve {i}")),
                Value::Duration(i as i64),
                Value::str("[1]"),
                if i % 2 == 0 { Value::List(vec![record]) } else { Value::Null },
            ]
        })
        .collect();
    for compression in ["zstd", "snappy", "gzip", "none"] {
        let path = folder.name(compression);
        let pairs = [("path", text(&path)), ("compression", name(compression)), ("row_group_rows", int(20_000))];
        let batches = vec![batch(&schema, &rows[..30_000]), batch(&schema, &rows[30_000..])];
        let (summary, errors) = write("parquet", &pairs, &schema, batches).unwrap();
        assert_eq!((summary.rows, errors.len()), (50_000, 0));
        assert_eq!(summary.bytes, std::fs::metadata(&path).unwrap().len());
        let found = read("parquet", &[("path", text(&path))], &schema).unwrap();
        assert!(found.rows == rows, "{compression}");
    }
    let spec = source_spec("parquet", &[("path", text(&folder.name("zstd")))], &schema);
    for limit in [0, 1, 20_001, 40_000, 90_000] {
        let cx = OpenContext { limit_rows: Some(limit), ..context() };
        let found = drain(&*crate::open_source(&spec, &cx).unwrap(), &schema).unwrap();
        assert!(found.rows[..] == rows[..(limit as usize).min(50_000)]);
    }
    let mut spec = spec;
    spec.projection = vec![0, 3];
    let source = crate::open_source(&spec, &context()).unwrap();
    assert_eq!(source.max_tasks(), 2);
    let found = drain(&*source, &spec.projected()).unwrap();
    assert!(found.rows.iter().zip(&rows).all(|(a, b)| a[0] == b[0] && a[1] == b[3]));
    spec.projection = vec![];
    assert_eq!(drain(&*crate::open_source(&spec, &context()).unwrap(), &spec.projected()).unwrap().batches.len(), 5);
}

/// Writes batches from several threads, in order: the answer's file.
fn write_from(threads: usize, pairs: &[(&str, dfc_ir::plan::OptionValue)], schema: &dfc_ir::Schema, batches: &[Batch]) {
    let spec = dfc_ir::plan::SinkSpec { connector: "parquet".into(), options: options(pairs) };
    let sink = crate::open_sink(&spec, schema, &context()).unwrap();
    let (next, turn) = (Mutex::new(0), Condvar::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (sink, next, turn) = (&*sink, &next, &turn);
            scope.spawn(move || {
                let mut encoder = sink.encoder(thread).unwrap();
                for number in (thread..batches.len()).step_by(threads) {
                    let (encoded, rows) = encoder.encode(batches[number].clone(), &mut Vec::new()).unwrap();
                    let mut next = turn.wait_while(next.lock().unwrap(), |next| *next != number).unwrap();
                    sink.write(encoded, rows).unwrap();
                    *next += 1;
                    turn.notify_all();
                }
            });
        }
    });
    sink.finish().unwrap();
}

/// D2, F7: bytes, row groups and the borders of parts are those of the rows alone.
#[test]
fn what_is_written_is_the_same_from_however_many_threads() {
    let folder = Folder::new();
    let item = Type::Record(vec![Field::new("sku", ty("string")), Field::new("n", ty("int64?"))]);
    let mut schema = schema("id: int64; d: decimal(12,2)?; s: string?; b: bool");
    schema.fields.push(Field::new("items", DataType::optional(Type::List(Box::new(DataType::of(item))))));
    let row = |i: i128| {
        let record = Value::Record(vec![Value::string(format!("sku {i}")), Value::Int(i)]);
        let text = if i % 5 == 0 { Value::Null } else { Value::string(format!("text {}", i * 7919 % 10_007)) };
        let items = if i % 2 == 0 { Value::List(vec![record; i as usize % 3]) } else { Value::Null };
        vec![Value::Int(i), Value::Decimal(i * 7 - 1000), text, Value::Bool(i % 3 == 0), items]
    };
    let rows: Vec<Vec<Value>> = (0..20_000).map(row).collect();
    let batches: Vec<Batch> = rows.chunks(619).map(|rows| batch(&schema, rows)).collect();
    for threads in [1, 4] {
        let file = folder.name(&format!("{threads}.parquet"));
        let pairs = [("path", text(&file)), ("row_group_rows", int(6_999))];
        write_from(threads, &pairs, &schema, &batches);
        let parts = folder.name(&format!("{threads}/"));
        write_from(threads, &[("path", text(&parts)), ("roll", int(100_000))], &schema, &batches);
    }
    let bytes = |name: &str| std::fs::read(folder.name(name)).unwrap();
    assert!(bytes("1.parquet") == bytes("4.parquet"));
    let found = read("parquet", &[("path", text(&folder.name("4.parquet")))], &schema).unwrap();
    assert!(found.rows == rows);
    let parts = |name: &str| {
        let parts = std::fs::read_dir(folder.name(name)).unwrap().map(|entry| entry.unwrap().path());
        let mut parts: Vec<_> = parts.filter(|path| path.is_file()).collect();
        parts.sort();
        parts.iter().map(|part| std::fs::read(part).unwrap()).collect::<Vec<_>>()
    };
    let (one, four) = (parts("1"), parts("4"));
    assert!(one.len() > 3 && one == four, "{} parts", one.len());
}

#[test]
fn types_of_other_programs_are_converted_exactly_or_rejected() {
    let folder = Folder::new();
    let path = folder.name("t.parquet");
    let words = DictionaryArray::<Int32Type>::from_iter([Some("x"), None, Some("x")]);
    foreign(
        &path,
        vec![
            ("i", Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))),
            ("s", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
            ("l", Arc::new(LargeStringArray::from(vec!["a text longer than twelve", "b", "c"]))),
            ("k", Arc::new(words)),
            ("d", Arc::new(Decimal128Array::from(vec![150, -1, 0]).with_precision_and_scale(10, 2).unwrap())),
            ("ms", Arc::new(TimestampMillisecondArray::from(vec![1000, -1, 0]).with_timezone("UTC"))),
            ("ns", Arc::new(TimestampNanosecondArray::from(vec![1000, 2000, 1]))),
            ("day", Arc::new(Date64Array::from(vec![0, 86_400_000, 0]))),
            ("big", Arc::new(Int64Array::from(vec![1, 2, 300]))),
            ("f", Arc::new(Float64Array::from(vec![0.5, f64::NAN, 1.0]))),
        ],
    );
    let cell = |fields: &str| {
        let schema = schema(fields);
        let found = read("parquet", &[("path", text(&path))], &schema).unwrap();
        (
            found.texts(&schema),
            found.errors.into_iter().map(|e| (e.code, e.place.unwrap().row, e.field)).collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        cell("i: int64?; s: string; l: string; k: string?; d: decimal(12,4); ms: timestamp; day: date").0,
        [
            "1|a|a text longer than twelve|x|1.5000|1970-01-01T00:00:01Z|1970-01-01",
            "∅|b|b|∅|-0.0100|1969-12-31T23:59:59.999000Z|1970-01-02",
            "3|c|c|x|0.0000|1970-01-01T00:00:00Z|1970-01-01",
        ]
    );
    assert_eq!(cell("i: int64").1, [("R0302", Some(2), Some("i".into()))]);
    assert_eq!(cell("big: int8").1, [("R0301", Some(3), Some("big".into()))]);
    assert_eq!(cell("ns: datetime").1, [("R0301", Some(3), Some("ns".into()))]);
    assert_eq!(cell("f: float64?").1, [("R0301", Some(2), Some("f".into()))]);
    assert_eq!(cell("i: float64?").0, ["1.0", "∅", "3.0"]);
    assert_eq!(cell("d: decimal(10,2)").0, ["1.50", "-0.01", "0.00"]);
}

#[test]
fn files_that_do_not_fit_are_refused_before_they_are_read() {
    let folder = Folder::new();
    let path = folder.name("t.parquet");
    foreign(&path, vec![("id", Arc::new(Int64Array::from(vec![1]))), ("x", Arc::new(StringArray::from(vec!["a"])))]);
    let refused = |path: &str, fields: &str| match read("parquet", &[("path", text(path))], &schema(fields)) {
        Ok(_) => panic!("the source opens"),
        Err(error) => error,
    };
    let error = refused(&path, "idd: int64");
    assert_eq!(error.code, "R0210");
    assert!(error.message.contains("it has `id`, `x`") && error.help.unwrap().contains("`id`"));
    let error = refused(&path, "id: string");
    assert_eq!(error.code, "R0213");
    assert!(error.message.contains("is int64, string is declared"), "{error:?}");
    assert_eq!(refused(&path, "x: date").code, "R0213");
    let text_file = folder.file("t.csv", "id\n1\n");
    assert_eq!(refused(&text_file, "id: int64").code, "R0212");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 9);
    let cut = folder.file("cut.parquet", bytes);
    assert_eq!(refused(&cut, "id: int64").code, "R0212");
    assert_eq!(refused("-", "id: int64").code, "R0202");
}

#[test]
fn an_aborted_file_leaves_nothing() {
    let folder = Folder::new();
    let schema = schema("id: int64");
    let spec = dfc_ir::plan::SinkSpec {
        connector: "parquet".into(),
        options: options(&[("path", text(&folder.name("t.parquet")))]),
    };
    let sink = crate::open_sink(&spec, &schema, &context()).unwrap();
    put(&*sink, vec![batch(&schema, &[vec![Value::Int(1)]])]).unwrap();
    sink.abort();
    assert!(folder.names().is_empty());
}

#[test]
fn every_row_comes_once_wherever_barriers_are() {
    let folder = Folder::new();
    let fields = schema("a: int64");
    for (file, rows) in [("1.parquet", 0..25_000), ("2.parquet", 25_000..25_001), ("3.parquet", 25_001..60_000)] {
        let rows: Vec<Vec<Value>> = rows.map(|n| vec![Value::Int(n)]).collect();
        let pairs = [("path", text(&folder.name(file))), ("row_group_rows", int(9_000))];
        write("parquet", &pairs, &fields, vec![batch(&fields, &rows)]).unwrap();
    }
    let spec = source_spec("parquet", &[("path", text(&folder.name("*.parquet")))], &fields);
    for seed in 0..40 {
        let rows = read_in_runs(&|cx| crate::open_source(&spec, cx), &fields, seed).unwrap();
        assert!(
            rows.iter().enumerate().all(|(n, row)| row[0] == Value::Int(n as i128)) && rows.len() == 60_000,
            "seed {seed}"
        );
    }
}

#[test]
fn a_file_that_is_another_is_refused_by_name() {
    let folder = Folder::new();
    let fields = schema("a: int64");
    let put = |file: &str, rows: i128| {
        let rows: Vec<Vec<Value>> = (0..rows).map(|n| vec![Value::Int(n)]).collect();
        let pairs = [("path", text(&folder.name(file))), ("row_group_rows", int(1000))];
        write("parquet", &pairs, &fields, vec![batch(&fields, &rows)]).unwrap();
    };
    put("1.parquet", 3000);
    let spec = source_spec("parquet", &[("path", text(&folder.name("*.parquet")))], &fields);
    let source = crate::open_source(&spec, &context()).unwrap();
    let (rows, positions) = read_to_barrier(&*source, &fields, 1, &mut |_| 0, 1).unwrap();
    assert_eq!((rows.len(), &positions.splits[0].position["row_groups"]), (1000, &1.into()));
    let go_on = |continues, positions: &crate::Positions| {
        let cx = OpenContext { positions: Some(positions.clone()), continues, ..context() };
        drain(&*crate::open_source(&spec, &cx)?, &fields).map(|read| read.rows.len())
    };
    assert_eq!(go_on(false, &positions), Ok(2000));
    for rows in [2000, 9000] {
        put("1.parquet", rows);
        assert_eq!(go_on(false, &positions).unwrap_err().code, "R0216");
    }
    put("1.parquet", 3000);
    put("2.parquet", 10);
    assert_eq!((go_on(false, &positions), go_on(true, &positions)), (Ok(2000), Ok(2010)));
    let mut damaged = positions;
    damaged.splits[0].position = "x".into();
    assert_eq!(go_on(false, &damaged).unwrap_err().code, "R0217");
}

#[test]
fn numbers_and_days_at_the_edge_of_their_type_are_told_apart() {
    let folder = Folder::new();
    let path = folder.name("t.parquet");
    let edge = 99_999i64;
    let numbers: Vec<i128> =
        [0, edge, -edge, edge + 1, -edge - 1, i64::MAX, i64::MIN].into_iter().map(i128::from).collect();
    let days = vec![0, 2_932_896, -719_162, 2_932_897, -719_163, i32::MAX, i32::MIN];
    foreign(
        &path,
        vec![
            ("n", Arc::new(Decimal128Array::from(numbers).with_precision_and_scale(18, 0).unwrap())),
            ("day", Arc::new(Date32Array::from(days))),
        ],
    );
    let rows = |fields: &str| {
        let found = read("parquet", &[("path", text(&path))], &schema(fields)).unwrap();
        (found.rows.len(), found.errors.iter().map(|e| e.place.as_ref().unwrap().row.unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(rows("n: decimal(5,0)"), (3, vec![4, 5, 6, 7]));
    assert_eq!(rows("day: date?"), (3, vec![4, 5, 6, 7]));
}
