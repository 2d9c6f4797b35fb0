//! Tables of groups as bytes and back: whole and in parts, whatever the aggregates, and never a wrong table from damaged bytes (D11, D13).

use dfc_batch::{Batch, ColumnBuilder};
use dfc_eval::Env;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Expr, Field, Schema, Site, Type, Value};
use dfc_table::GroupTable;

const FUNCTIONS: [(AggFunction, usize); 14] = [
    (AggFunction::Count, 0),
    (AggFunction::Sum, 0),
    (AggFunction::Avg, 0),
    (AggFunction::Min, 0),
    (AggFunction::Max, 1),
    (AggFunction::Min, 1),
    (AggFunction::First, 1),
    (AggFunction::Last, 0),
    (AggFunction::CountDistinct, 1),
    (AggFunction::ApproxCountDistinct, 0),
    (AggFunction::Stddev, 0),
    (AggFunction::Median, 0),
    (AggFunction::Collect, 1),
    (AggFunction::Variance, 0),
];

fn types() -> [DataType; 3] {
    [DataType::of(Type::INT64), DataType::optional(Type::String), DataType::of(Type::INT64)]
}

/// Groups by a text that may be null, with every kind of state.
fn spec() -> AggregateSpec {
    let types = types();
    let result = |function, arg: usize| match function {
        AggFunction::Count | AggFunction::CountDistinct | AggFunction::ApproxCountDistinct => DataType::of(Type::INT64),
        AggFunction::Avg | AggFunction::Stddev | AggFunction::Variance | AggFunction::Median => {
            DataType::optional(Type::Float64)
        }
        AggFunction::Collect => DataType::of(Type::List(Box::new(DataType::of(Type::String)))),
        _ => types[arg].with_nullable(true),
    };
    let aggregates: Vec<Aggregate> = FUNCTIONS
        .iter()
        .map(|&(function, arg)| Aggregate {
            function,
            args: vec![Expr::column(arg, types[arg].clone())],
            filter: None,
            ty: result(function, arg),
            site: Site::default(),
        })
        .collect();
    let mut fields = vec![Field::new("key", types[1].clone())];
    fields.extend(aggregates.iter().enumerate().map(|(n, a)| Field::new(format!("a{n}"), a.ty.clone())));
    AggregateSpec {
        node: "groups".into(),
        inputs: types.to_vec(),
        keys: vec![Expr::column(1, types[1].clone())],
        aggregates,
        output: Schema { fields },
    }
}

fn batch(seq: u64, rows: u64) -> Batch {
    let types = types();
    let mut columns: Vec<ColumnBuilder> = types.iter().map(|ty| ColumnBuilder::new(ty, rows as usize)).collect();
    for row in 0..rows {
        let mixed = (seq * 7_919 + row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let text = match mixed % 11 {
            0 => Value::Null,
            1 => Value::string(format!("a longer text, number {}", mixed % 300)),
            _ => Value::string(format!("k{}", mixed % 700)),
        };
        let values = [Value::Int((mixed % 1_000) as i128 - 500), text, Value::Int(row as i128)];
        columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(value));
    }
    Batch::new(columns.into_iter().map(ColumnBuilder::finish).collect(), rows as usize, seq)
}

fn update(table: &mut GroupTable, seq: u64) {
    table.update_batch(&batch(seq, 500), &spec(), &Env::default(), &mut |row, error| panic!("row {row}: {error:?}"));
}

fn results(table: GroupTable) -> Vec<String> {
    let spec = spec();
    let batches = [table.results(&spec, 0..table.len()).expect("every group has its results")];
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.rows {
            let values = batch.columns.iter().zip(&spec.output.fields);
            rows.push(format!("{:?}", values.map(|(c, f)| dfc_batch::value_at(c, &f.ty.ty, row)).collect::<Vec<_>>()));
        }
    }
    rows.sort_unstable();
    rows
}

#[test]
fn parts_make_the_table_that_they_were_frozen_from() {
    let spec = spec();
    let (mut plain, mut frozen) = (GroupTable::new(&spec), GroupTable::new(&spec));
    let mut parts = Vec::new();
    for seq in 0..12 {
        update(&mut plain, seq);
        update(&mut frozen, seq);
        let part = frozen.freeze(seq == 5);
        if part.whole {
            parts.clear();
        }
        // What comes after a freeze doesn't change what was frozen.
        update(&mut plain, 100 + seq);
        update(&mut frozen, 100 + seq);
        parts.push(part.archive().expect("it can be archived"));
    }
    assert_eq!(parts.len(), 7, "one whole part, then what changed");
    let mut restored = GroupTable::from_parts(&spec, &parts).expect("the parts fit");
    // The last batch came after the last freeze.
    update(&mut restored, 111);
    assert_eq!(results(restored), results(plain));
}

/// Large state is written in pieces: whatever their size, they make the same table, and none can be missing.
#[test]
fn pieces_of_parts_make_the_same_table() {
    let spec = spec();
    for limit in [20_000, 70_000, 400_000, usize::MAX] {
        let mut table = GroupTable::new(&spec);
        let mut parts = Vec::new();
        for seq in 0..6 {
            update(&mut table, seq);
            let pieces = table.freeze(seq == 3).split(limit).expect("keys");
            assert!(limit == usize::MAX || pieces.len() > 1, "{} pieces of {limit} bytes", pieces.len());
            if pieces[0].whole {
                parts.clear();
            }
            parts.extend(pieces.into_iter().map(|piece| piece.archive().expect("it can be archived")));
        }
        let restored = GroupTable::from_parts(&spec, &parts).expect("the parts fit");
        for missing in (0..parts.len()).filter(|_| limit == 70_000).step_by(3) {
            let mut others = parts.clone();
            others.remove(missing);
            // The last pages and values of a table may be those of an earlier part: only the whole can be told.
            if let Ok(short) = GroupTable::from_parts(&spec, &others) {
                assert!(missing > 0 && short.len() == restored.len(), "piece {missing} is missing");
            }
        }
        assert_eq!(results(restored), results(table));
    }
}

#[test]
fn a_copy_is_the_whole_table() {
    let spec = spec();
    let mut table = GroupTable::new(&spec);
    (0..5).for_each(|seq| update(&mut table, seq));
    let copy = table.copy_whole().archive().expect("it can be archived");
    let restored = GroupTable::from_parts(&spec, &[copy]).expect("it fits");
    assert_eq!(results(restored), results(table));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let spec = spec();
    let mut table = GroupTable::new(&spec);
    update(&mut table, 0);
    let first = table.freeze(true).archive().expect("archived");
    update(&mut table, 1);
    let second = table.freeze(false).archive().expect("archived");
    let refused = |parts: &[Vec<u8>], words: &str| match GroupTable::from_parts(&spec, parts) {
        Ok(_) => panic!("`{words}` was expected"),
        Err(error) => assert!(error.to_string().contains(words), "{error}"),
    };
    refused(std::slice::from_ref(&second), "a part is missing before it");
    refused(&[first.clone(), first.clone()], "a part is missing before it");
    refused(&[first.clone(), second.clone(), second], "where");
    let mut other = spec.clone();
    other.aggregates.swap(0, 1);
    assert!(GroupTable::from_parts(&other, &[first]).is_err_and(|error| error.to_string().contains("it was made for")));
}

/// Check sums find flipped bits before this is asked; but whatever comes through must not bring it down.
#[test]
fn damaged_bytes_never_panic() {
    let spec = spec();
    let mut table = GroupTable::new(&spec);
    update(&mut table, 0);
    let bytes = table.freeze(true).archive().expect("archived");
    for at in (0..bytes.len()).step_by(1_499) {
        for flip in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            drop(GroupTable::from_parts(&spec, &[damaged]));
        }
        drop(GroupTable::from_parts(&spec, &[bytes[..at].to_vec()]));
    }
}
