//! Tests of what is left unread: bounds hold, and nothing but the time to read shows that rows were passed over.

use std::fs::File;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, Time32MillisecondArray, Time64MicrosecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt32Array, UInt64Array,
};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Schema, Value};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::convert;
use super::statistics::Leaf;
use crate::rows::Faults;
use crate::testing::*;
use crate::{Bounds, Condition, Next, OpenContext, RowFilter};

const ROWS: usize = 1200;

/// Columns of other programs, with nulls here and there, in runs that lie apart.
fn columns(seed: u64) -> Vec<(&'static str, ArrayRef)> {
    let mut pick = random(seed);
    let mut whole = |spread: i64, step: i64| -> Vec<Option<i64>> {
        let start = pick(spread as usize) as i64 - spread / 2;
        let row = |row: usize| start + (row / 100) as i64 * step + pick(50) as i64;
        let rows: Vec<i64> = (0..ROWS).map(row).collect();
        let nulls = pick(3);
        rows.into_iter().map(|n| (nulls == 0 || pick(40 * nulls) > 0).then_some(n)).collect()
    };
    let mut narrow =
        |spread, step| -> Vec<Option<i32>> { whole(spread, step).into_iter().map(|n| n.map(|n| n as i32)).collect() };
    let days = narrow(20_000, 40);
    let i32s = narrow(100, 7);
    let millis_of_day: Vec<Option<i32>> =
        narrow(1000, 9000).into_iter().map(|n| n.map(|n| n.rem_euclid(86_400_000))).collect();
    let big = |n: &Option<i64>| n.map(|n| i128::from(n) * 1_000_000_007_000_000);
    let wide: Vec<Option<i64>> = whole(1_000_000, 100);
    let texts: Vec<Option<String>> = whole(3000, 90)
        .into_iter()
        .map(|n| {
            n.map(|n| {
                format!(
                    "{}{}",
                    char::from_u32(0x60 + n.unsigned_abs() as u32 * 37 % 0x900).unwrap_or('x'),
                    "\u{10FFFF}é".repeat(n.unsigned_abs() as usize % 40)
                )
            })
        })
        .collect();
    let floats: Vec<Option<f64>> =
        whole(100, 3).iter().enumerate().map(|(k, n)| n.map(|n| if k == 77 { f64::NAN } else { n as f64 })).collect();
    let decimal = |precision, scale, values: Vec<Option<i128>>| {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
    };
    let short: Vec<Option<i128>> = wide.iter().map(|n| n.map(i128::from)).collect();
    vec![
        ("i16", Arc::new(Int16Array::from(i32s.iter().map(|n| n.map(|n| n as i16)).collect::<Vec<_>>()))),
        ("i32", Arc::new(Int32Array::from(i32s.clone()))),
        ("i64", Arc::new(Int64Array::from(wide.clone()))),
        ("u8", Arc::new(UInt8Array::from(i32s.iter().map(|n| n.map(|n| n as u8)).collect::<Vec<_>>()))),
        ("u32", Arc::new(UInt32Array::from(i32s.iter().map(|n| n.map(|n| n as u32)).collect::<Vec<_>>()))),
        ("u64", Arc::new(UInt64Array::from(wide.iter().map(|n| n.map(|n| n as u64)).collect::<Vec<_>>()))),
        ("d9", decimal(9, 2, short.clone())),
        ("d18", decimal(18, 4, short)),
        ("d38", decimal(38, 6, wide.iter().map(big).collect())),
        ("day", Arc::new(Date32Array::from(days.clone()))),
        ("far", Arc::new(Date32Array::from(days.iter().map(|n| n.map(|n| n * 180)).collect::<Vec<_>>()))),
        (
            "day64",
            Arc::new(Date64Array::from(days.iter().map(|n| n.map(|n| i64::from(n) * 86_400_000)).collect::<Vec<_>>())),
        ),
        ("t32", Arc::new(Time32MillisecondArray::from(millis_of_day.clone()))),
        (
            "t64",
            Arc::new(Time64MicrosecondArray::from(
                millis_of_day.iter().map(|n| n.map(|n| i64::from(n) * 1000)).collect::<Vec<_>>(),
            )),
        ),
        (
            "t64n",
            Arc::new(Time64NanosecondArray::from(
                millis_of_day.iter().map(|n| n.map(|n| i64::from(n) * 1001)).collect::<Vec<_>>(),
            )),
        ),
        ("s", Arc::new(TimestampSecondArray::from(wide.clone()))),
        ("ms", Arc::new(TimestampMillisecondArray::from(wide.clone()).with_timezone("UTC"))),
        ("us", Arc::new(TimestampMicrosecondArray::from(wide.clone()))),
        ("ns", Arc::new(TimestampNanosecondArray::from(wide))),
        ("text", Arc::new(StringArray::from(texts))),
        (
            "bool",
            Arc::new(BooleanArray::from((0..ROWS).map(|row| (row % 500 > 0).then_some(row > 600)).collect::<Vec<_>>())),
        ),
        ("float", Arc::new(Float64Array::from(floats))),
    ]
}

const DECLARED: [(&str, &str); 34] = [
    ("i16", "int16?"),
    ("i16", "int8?"),
    ("i32", "int32"),
    ("i32", "int64?"),
    ("i32", "uint8?"),
    ("i32", "decimal(6,2)?"),
    ("i32", "decimal(4,2)?"),
    ("i32", "float64?"),
    ("i64", "int64?"),
    ("i64", "int64"),
    ("i64", "int16?"),
    ("i64", "duration?"),
    ("u8", "uint8?"),
    ("u32", "uint32?"),
    ("u32", "int32?"),
    ("u64", "uint64?"),
    ("u64", "int64?"),
    ("d9", "decimal(9,2)?"),
    ("d9", "decimal(20,4)?"),
    ("d9", "decimal(6,2)?"),
    ("d18", "decimal(18,4)?"),
    ("d38", "decimal(38,6)?"),
    ("d38", "decimal(20,6)?"),
    ("day", "date?"),
    ("far", "date?"),
    ("day64", "date?"),
    ("t32", "time?"),
    ("t64", "time?"),
    ("t64n", "time?"),
    ("s", "datetime?"),
    ("ms", "timestamp?"),
    ("us", "datetime?"),
    ("text", "string?"),
    ("bool", "bool?"),
];

/// Bounds of a row group or a page are given only if all its values fit, and then hold them all.
#[test]
fn bounds_hold_every_value_or_there_are_none() {
    let folder = Folder::new();
    let (mut given, mut not_given) = (0, 0);
    for seed in 0..12 {
        let path = folder.name(&format!("{seed}.parquet"));
        let columns = columns(seed);
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let statistics =
            [EnabledStatistics::Page, EnabledStatistics::Chunk, EnabledStatistics::None][seed as usize % 7 % 3];
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(500))
            .set_data_page_row_count_limit(64)
            .set_write_batch_size(64)
            .set_statistics_enabled(statistics)
            .set_statistics_truncate_length(Some(7))
            .set_column_index_truncate_length(Some(5));
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = File::open(&path).unwrap();
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let file = ArrowReaderMetadata::load(&file, options).unwrap();
        let others = [("ns", "datetime?"), ("float", "float64?")];
        for (name, declared) in DECLARED.into_iter().chain(others) {
            let schema = schema(&format!("{name}: {declared}"));
            let field = &schema.fields[0];
            let root = file.schema().index_of(name).unwrap();
            let leaf = Leaf::find(file.metadata(), root, file.schema().field(root).data_type(), field).unwrap();
            let mut holds = |bounds: Option<Bounds>, from: usize, rows: usize| {
                let array = batch.column(root).slice(from, rows);
                let mut faults = Faults::default();
                let column = convert::column(&array, field, 0, &mut faults);
                let Some(bounds) = bounds else {
                    not_given += 1;
                    return;
                };
                assert!(faults.is_empty(), "{name} as {declared}, {rows} rows from {from}: {bounds:?}");
                given += usize::from(bounds.low.is_some());
                for row in 0..rows {
                    let value = dfc_batch::value_at(&*column, &field.ty.ty, row);
                    if value.is_null() {
                        assert!(bounds.nulls, "{name}");
                        continue;
                    }
                    assert!(bounds.values, "{name}");
                    let above = |low: &Value| dfc_eval::compare(low, &value).unwrap().is_le();
                    let below = |high: &Value| dfc_eval::compare(&value, high).unwrap().is_le();
                    assert!(bounds.low.as_ref().is_none_or(above), "{name} as {declared}: {value:?} {bounds:?}");
                    assert!(bounds.high.as_ref().is_none_or(below), "{name} as {declared}: {value:?} {bounds:?}");
                }
            };
            let mut from = 0;
            for (group, meta) in file.metadata().row_groups().iter().enumerate() {
                let rows = meta.num_rows() as usize;
                holds(leaf.of_group(meta), from, rows);
                if let Some(index) = file.metadata().page_index()
                    && let Some(values) = index.column_index(group, leaf.number)
                    && let Some(pages) = index.page_locations(group, leaf.number)
                {
                    for (page, place) in pages.iter().enumerate() {
                        let end = pages.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
                        let first = place.first_row_index as usize;
                        holds(leaf.of_page(values, page, (end - first) as u64), from + first, end - first);
                    }
                }
                from += rows;
            }
            if matches!(name, "ns" | "float" | "t64n") {
                let group = leaf.of_group(file.metadata().row_group(0));
                assert!(group.is_none_or(|bounds| !bounds.values), "{name}: what may not fit is looked at");
            }
        }
    }
    assert!(given > 1500 && not_given > 500, "{given} bounds, {not_given} times none");
}

/// `column >= least` over an int64 at this position of the projection.
fn at_least(position: usize, least: i64, pruned: bool) -> Condition {
    Condition {
        columns: vec![position],
        pass: Arc::new(move |columns, rows| {
            let values = columns[0].as_primitive::<Int64Type>();
            let kept: Vec<u32> = (0..rows as u32).filter(|&row| values.value(row as usize) >= least).collect();
            (kept.len() < rows).then_some(kept)
        }),
        possible: pruned.then(|| {
            let possible = move |bounds: &[Bounds]| match &bounds[0].high {
                Some(Value::Int(high)) => *high >= i128::from(least),
                _ => true,
            };
            Arc::new(possible) as crate::Possible
        }),
    }
}

/// What passes, with places, and what is told of the others.
#[derive(Debug, PartialEq)]
struct Outcome {
    rows: Vec<(u64, Vec<Value<'static>>)>,
    errors: Vec<(u64, Option<String>, &'static str)>,
    looked_at: u64,
}

fn outcome(
    spec: &SourceSpec,
    fields: &Schema,
    conditions: Vec<Condition>,
    wanted: &dyn Fn(&[Value]) -> bool,
) -> (Outcome, String) {
    let cx = OpenContext { filter: Some(RowFilter(conditions)), ..context() };
    let source = crate::open_source(spec, &cx).unwrap();
    let mut readers = [source.reader(0).unwrap(), source.reader(1).unwrap()];
    let (mut errors, mut rows, mut numbers, mut left_out) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut ended = [false; 2];
    while ended != [true; 2] {
        for (reader, ended) in readers.iter_mut().zip(&mut ended) {
            match reader.next(&mut errors).unwrap() {
                Next::Batch(batch) => {
                    numbers.push(batch.seq);
                    let places = (0..batch.rows).map(|row| batch.origin.as_ref().unwrap().place(row).row.unwrap());
                    let places: Vec<u64> = places.collect();
                    rows.extend(places.into_iter().zip(values(&[batch], fields)));
                }
                Next::End => *ended = true,
                Next::Barrier(_) | Next::Wait(_) => {}
            }
            left_out += reader.left_out();
        }
    }
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "sequence numbers have no gap");
    let looked_at = rows.len() as u64 + errors.len() as u64 + left_out;
    assert_eq!(source.counters().rows.load(std::sync::atomic::Ordering::Relaxed), looked_at);
    rows.sort_by_key(|(place, _)| *place);
    // The source may leave the conditions unasked.
    rows.retain(|(_, row)| wanted(row));
    let mut errors: Vec<_> = errors.into_iter().map(|e| (e.place.unwrap().row.unwrap(), e.field, e.code)).collect();
    errors.sort();
    (Outcome { rows, errors, looked_at }, source.skipped().unwrap_or_default())
}

/// Rows, places and errors are the same whether row groups and pages are passed over or not, whether conditions are asked first or not.
#[test]
fn what_is_passed_over_changes_nothing() {
    let folder = Folder::new();
    let mut skips = 0;
    for seed in 0..16 {
        let mut pick = random(1000 + seed);
        let count = 2000 + pick(20_000);
        let calm = pick(2) == 0;
        // Nulls, which don't fit, in some stretches of each column: they are told, where the row isn't left out before they are read.
        let mut stretch = |chance: usize, step: i64| -> Vec<Option<i64>> {
            let bad = pick(count);
            let wide = if calm { 0 } else { pick(300) };
            let row = |row: usize| {
                let fits = !(bad..bad + wide).contains(&row) || pick(chance) > 0;
                fits.then(|| row as i64 / 400 * step + pick(10) as i64)
            };
            (0..count).map(row).collect()
        };
        let (a, b) = (stretch(4, 10), stretch(5, -10));
        let c = stretch(6, 1);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", Arc::new(Int64Array::from(a))),
            ("b", Arc::new(Int64Array::from(b))),
            ("c", Arc::new(Int64Array::from(c))),
            ("d", Arc::new(StringArray::from_iter_values((0..count).map(|n| format!("text number {n}"))))),
        ];
        let path = folder.name(&format!("{seed}.parquet"));
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(500 + pick(10_000)))
            .set_data_page_row_count_limit(100 + pick(2000))
            .set_write_batch_size(100);
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let fields = schema("d: string; c: int64; b: int64; a: int64");
        let spec = source_spec("parquet", &[("path", text(&path))], &fields);
        let top = count as i64 / 40;
        let (least_a, least_b) = (pick(top as usize + 1) as i64, -(pick(top as usize + 1) as i64));
        let wanted = |row: &[Value]| {
            let at = |column: usize| row[column].as_int().unwrap() as i64;
            at(3) >= least_a && at(2) >= least_b
        };
        let both = |pruned| vec![at_least(3, least_a, pruned), at_least(2, least_b, pruned)];
        let (plain, none) = outcome(&spec, &fields, both(false), &wanted);
        let (pruned, some) = outcome(&spec, &fields, both(true), &wanted);
        assert_eq!(none, "");
        assert!(pruned == plain, "seed {seed}");
        assert_eq!(plain.looked_at, count as u64, "seed {seed}");
        skips += usize::from(!some.is_empty());
        if calm {
            let (unasked, _) = outcome(&spec, &fields, Vec::new(), &wanted);
            assert!(unasked == plain && plain.errors.is_empty(), "seed {seed}");
        }
    }
    assert!(skips > 8, "{skips} of 16 passed something over");
}

/// A barrier may fall anywhere, and a run that goes on from it gives the rest, wherever row groups are passed over.
#[test]
fn every_row_comes_once_wherever_barriers_and_gaps_are() {
    for group in [1_000, 20_000, 60_000] {
        every_row_comes_once(group);
    }
}

fn every_row_comes_once(group: i64) {
    let folder = Folder::new();
    let fields = schema("a: int64; b: int64");
    for (file, rows) in [("1.parquet", 0..25_000), ("2.parquet", 25_000..25_001), ("3.parquet", 25_001..60_000)] {
        // Some row groups of the first and the last, and the second as a whole, have only small values.
        let rows: Vec<Vec<Value>> = rows.map(|n| vec![Value::Int(n / 5000 % 2 * 10), Value::Int(n)]).collect();
        let pairs = [("path", text(&folder.name(file))), ("row_group_rows", int(group))];
        write("parquet", &pairs, &fields, vec![batch(&fields, &rows)]).unwrap();
    }
    let spec = source_spec("parquet", &[("path", text(&folder.name("*.parquet")))], &fields);
    let open = |cx: &OpenContext| {
        let filter = Some(RowFilter(vec![at_least(0, 5, true)]));
        crate::open_source(&spec, &OpenContext { filter, ..cx.clone() })
    };
    let skipped = open(&context()).unwrap().skipped();
    assert!(group > 1_000 || skipped.is_some_and(|said| said.contains(" of 61 row groups")));
    let expected: Vec<i128> = (0..60_000).filter(|n| n / 5000 % 2 == 1).collect();
    for seed in 0..20 {
        let rows = read_in_runs(&open, &fields, seed).unwrap();
        let rows = rows.iter().filter(|row| row[0] == Value::Int(10)).map(|row| row[1].as_int().unwrap());
        assert!(rows.eq(expected.iter().copied()), "groups of {group}, seed {seed}");
    }
}

/// A file of one row group is gone on with inside it (A7), and every row counts once, whether the conditions are asked first or not.
#[test]
fn a_row_group_is_left_and_entered_inside() {
    const ROWS: i64 = 600_000;
    let folder = Folder::new();
    let fields = schema("a: int64; b: int64");
    let all: Vec<Vec<Value>> = (0..ROWS).map(|n| vec![Value::Int((n % 10).into()), Value::Int(n.into())]).collect();
    let pairs = [("path", text(&folder.name("t.parquet"))), ("row_group_rows", int(ROWS))];
    write("parquet", &pairs, &fields, vec![batch(&fields, &all)]).unwrap();
    let spec = source_spec("parquet", &[("path", text(&folder.name("t.parquet")))], &fields);
    for least in [0, 9] {
        let conditions = || (least > 0).then(|| RowFilter(vec![at_least(0, least, true)]));
        let (mut positions, mut inside, mut counted) = (None, 0, 0);
        let mut numbers = Vec::new();
        for run in 0.. {
            let cx = OpenContext { filter: conditions(), positions, ..context() };
            let source = crate::open_source(&spec, &cx).unwrap();
            let mut reader = source.reader(0).unwrap();
            let (mut errors, mut batches) = (Vec::new(), 0);
            loop {
                let next = reader.next(&mut errors).unwrap();
                counted += reader.left_out();
                match next {
                    Next::Batch(batch) => {
                        counted += batch.rows as u64;
                        batches += 1;
                        numbers.extend(values(&[batch], &fields).into_iter().map(|row| row[1].as_int().unwrap()));
                        if batches == 3 + run {
                            source.mark(1);
                        }
                    }
                    Next::Barrier(_) | Next::End => break,
                    Next::Wait(_) => {}
                }
            }
            if batches < 3 + run {
                break;
            }
            let at = source.positions(1).unwrap();
            inside += usize::from(at.splits[0].position["row"].as_u64().is_some_and(|row| row > 0));
            assert!(at.splits[0].exact);
            positions = Some(at);
        }
        assert!(inside > 0, "at least {least}: never inside");
        assert_eq!(counted, ROWS as u64, "at least {least}");
        numbers.retain(|n| n % 10 >= i128::from(least));
        assert!(numbers.into_iter().eq((0..i128::from(ROWS)).filter(|n| n % 10 >= i128::from(least))));
    }
}
