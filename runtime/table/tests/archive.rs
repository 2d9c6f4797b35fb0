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
    results_of(&table, &spec())
}

fn results_of(table: &GroupTable, spec: &AggregateSpec) -> Vec<String> {
    let batch = table.results(spec, 0..table.len()).expect("every group has its results");
    let mut rows = Vec::new();
    for row in 0..batch.rows {
        let values = batch.columns.iter().zip(&spec.output.fields);
        rows.push(format!("{:?}", values.map(|(c, f)| dfc_batch::value_at(c, &f.ty.ty, row)).collect::<Vec<_>>()));
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

/// A checkpoint writes what changed: the bytes of an archive are at most 1.3 times those of the pages that changed and of the new keys, whatever
/// else the table holds.
#[test]
fn an_archive_holds_what_changed_and_little_more() {
    let spec = spec_in_rows();
    let mut table = GroupTable::new(&spec);
    let add = |table: &mut GroupTable, keys: std::ops::Range<u64>| {
        for key in keys {
            let bytes = key.to_be_bytes();
            let group = table.group(&bytes, dfc_table::hash_key(&bytes));
            table.state_row(group);
        }
    };
    add(&mut table, 0..200_000);
    let row_bytes = table.state_layout().row_bytes;
    let whole = table.freeze(true).archive().expect("archived").len();
    for (touched, new) in [(0, 0), (10_000, 0), (0, 10_000), (50_000, 50_000)] {
        let known = table.len() as u64;
        add(&mut table, 1_000..1_000 + touched);
        add(&mut table, known..known + new);
        let archive = table.freeze(false).archive().expect("archived");
        // Whole pages: one more at either end. Of a key its length too.
        let page = 64 * 1024;
        let changed = (touched + new) as usize * row_bytes + new as usize * 12 + 3 * page;
        assert!(archive.len() * 10 <= changed * 13, "{} bytes for {changed} that changed, of {whole}", archive.len());
    }
}

/// Groups by the number, with states that lie in their rows.
fn spec_in_rows() -> AggregateSpec {
    let whole = spec();
    let aggregates = whole.aggregates[..4].to_vec();
    let mut fields = vec![Field::new("key", types()[0].clone())];
    fields.extend(whole.output.fields[1..5].iter().cloned());
    AggregateSpec { keys: vec![Expr::column(0, types()[0].clone())], aggregates, output: Schema { fields }, ..whole }
}

/// Whatever number of tasks takes their shares out of stored tables, which may have groups in common and groups that were given on, all
/// shares together are what was stored; from the middle of it a part is missed.
#[test]
fn shares_of_parts_are_the_whole() {
    for spec in [spec(), spec_in_rows()] {
        let tables = [0u64, 1].map(|first| {
            let mut table = GroupTable::new(&spec);
            let mut parts = Vec::new();
            for seq in 0..5 {
                let batch = batch(first + 3 * seq, 900);
                table.update_batch(&batch, &spec, &Env::default(), &mut |row, error| panic!("row {row}: {error:?}"));
                if seq == 3 {
                    table.forget_before(100 * first as usize);
                }
                let pieces = table.freeze(seq == 1).split(60_000).expect("keys");
                if pieces[0].whole {
                    parts.clear();
                }
                parts.extend(pieces.into_iter().map(|piece| piece.archive().expect("it can be archived")));
            }
            (table, parts)
        });
        let mut whole = GroupTable::new(&spec);
        for (table, _) in &tables {
            whole.merge_partition(table, 0, 1).expect("merged");
        }
        assert!(tables[1].0.first() == 100 && whole.len() < tables[0].0.len() + tables[1].0.len() - 100);
        let expected = results_of(&whole, &spec);
        for of in [1, 2, 3, 7] {
            let mut found = Vec::new();
            for part in 0..of {
                let mut share = GroupTable::new(&spec);
                for (_, parts) in &tables {
                    share.take_share(&spec, parts, part, of).expect("the parts fit");
                }
                found.extend(results_of(&share, &spec));
            }
            found.sort_unstable();
            assert_eq!(found, expected, "{of} shares");
        }
        let (_, mut parts) = tables.into_iter().next().expect("two tables");
        parts.remove(0);
        assert!(GroupTable::new(&spec).take_share(&spec, &parts, 0, 2).is_err());
    }
}

/// Large state is written in pieces: whatever their size, they make the same table, and none can be missing.
#[test]
fn pieces_of_parts_make_the_same_table() {
    let spec = spec();
    for limit in [20_000, 70_000, 400_000, usize::MAX] {
        let mut table = GroupTable::new(&spec);
        let mut parts: Vec<Vec<u8>> = Vec::new();
        // Memory that is used again, as what comes after another holds it: nothing of that may be left in it.
        let mut room = Default::default();
        for seq in 0..6 {
            update(&mut table, seq);
            let pieces = table.freeze(seq == 3).split(limit).expect("keys");
            assert!(limit == usize::MAX || pieces.len() > 1, "{} pieces of {limit} bytes", pieces.len());
            if pieces[0].whole {
                parts.clear();
            }
            for piece in pieces {
                room = piece.archive_in(room).expect("it can be archived");
                parts.push(room.to_vec());
            }
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
    let first = table.freeze(true).archive().expect("archived").to_vec();
    update(&mut table, 1);
    let second = table.freeze(false).archive().expect("archived").to_vec();
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
    for spec in [spec(), spec_in_rows()] {
        let mut table = GroupTable::new(&spec);
        table.update_batch(&batch(0, 500), &spec, &Env::default(), &mut |row, error| panic!("row {row}: {error:?}"));
        let bytes = table.freeze(true).archive().expect("archived").to_vec();
        let looked_at = |bytes: Vec<u8>| {
            let share = GroupTable::new(&spec).take_share(&spec, std::slice::from_ref(&bytes), 1, 2);
            drop((GroupTable::from_parts(&spec, &[bytes]), share));
        };
        for at in (0..bytes.len()).step_by(1_499) {
            for flip in [0x01, 0x80] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                looked_at(damaged);
            }
            looked_at(bytes[..at].to_vec());
        }
    }
}
