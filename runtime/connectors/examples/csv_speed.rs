//! How fast CSV is read: MB/s of a file of the shape of TPC-H's lineitem, all columns and the four that a filter needs, in one
//! task and in two.
//!
//! `cargo run --release -p dfc-connect --example csv_speed [FILE]`; without FILE it makes one of about 200 MB.

use std::fmt::Write as _;
use std::time::Instant;

use dfc_connect::{Next, OpenContext, open_source};
use dfc_ir::plan::{OptionValue, SourceSpec};
use dfc_ir::{DataType, Field, Schema, Type, Value};

const FIELDS: [(&str, Type); 16] = [
    ("l_orderkey", Type::INT64),
    ("l_partkey", Type::INT64),
    ("l_suppkey", Type::INT64),
    ("l_linenumber", Type::INT32),
    ("l_quantity", Type::Decimal(15, 2)),
    ("l_extendedprice", Type::Decimal(15, 2)),
    ("l_discount", Type::Decimal(15, 2)),
    ("l_tax", Type::Decimal(15, 2)),
    ("l_returnflag", Type::String),
    ("l_linestatus", Type::String),
    ("l_shipdate", Type::Date),
    ("l_commitdate", Type::Date),
    ("l_receiptdate", Type::Date),
    ("l_shipinstruct", Type::String),
    ("l_shipmode", Type::String),
    ("l_comment", Type::String),
];

fn sample(quoted: bool) -> String {
    let mut text: String = FIELDS.map(|(name, _)| name).join(",");
    text.push('\n');
    for i in 0u64..1_600_000 {
        let day = i % 28 + 1;
        let comment = if quoted && i % 4 == 0 {
            "\"carefully, final \"\"deposits\"\"\""
        } else {
            "egular courts above the carefully"
        };
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "{i},{},{},{},{},{}.{:02},0.0{},0.0{},N,O,1996-03-{day:02},1996-02-{day:02},1996-04-{day:02},DELIVER IN PERSON,TRUCK,{comment}",
            i * 31 % 200_000,
            i * 7 % 10_000,
            i % 7,
            i % 50,
            i * 13 % 90_000,
            i % 100,
            i % 10,
            i % 9,
        );
    }
    text
}

fn main() {
    let files = match std::env::args().nth(1) {
        Some(path) => vec![(path.clone(), path)],
        None => [("plain", false), ("with quotes", true)]
            .map(|(label, quoted)| {
                let path = std::env::temp_dir().join(format!("dfc-csv-speed-{quoted}.csv"));
                std::fs::write(&path, sample(quoted)).expect("the sample is written");
                (label.to_string(), path.display().to_string())
            })
            .into(),
    };
    let schema = Schema { fields: FIELDS.map(|(name, ty)| Field::new(name, DataType::of(ty))).into() };
    for (label, path) in &files {
        let bytes = std::fs::metadata(path).expect("the file is there").len();
        for (columns, projection) in [("all columns", (0..16).collect()), ("4 columns", vec![4, 5, 6, 10])] {
            for tasks in [1, 2] {
                let spec = SourceSpec {
                    connector: "csv".into(),
                    options: [("path".to_string(), OptionValue::Value(Value::string(path.clone())))].into(),
                    schema: schema.clone(),
                    projection: projection.clone(),
                };
                let cx = OpenContext { node: "bench".into(), tasks, ..OpenContext::default() };
                let mut best = f64::MAX;
                for _ in 0..3 {
                    let source = open_source(&spec, &cx).expect("the source opens");
                    let start = Instant::now();
                    std::thread::scope(|scope| {
                        for task in 0..tasks {
                            let mut reader = source.reader(task).expect("a reader");
                            scope.spawn(move || {
                                let mut errors = Vec::new();
                                while let Next::Batch(_) = reader.next(&mut errors).expect("the file is read") {}
                                assert!(errors.is_empty(), "{:?}", errors[0]);
                            });
                        }
                    });
                    best = best.min(start.elapsed().as_secs_f64());
                }
                println!("{label}, {columns}, {tasks} task(s): {:.0} MB/s", bytes as f64 / 1e6 / best);
            }
        }
    }
}
