//! Sums of small values are held in 64 bits: their results are those of 128, however far they go, and so are the bytes that are stored.

use dfc_batch::{Batch, ColumnBuilder, value_at};
use dfc_eval::Env;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Expr, Field, Schema, Site, Type, Value};
use dfc_table::{GroupTable, StateLayout};

/// Sums and means by a number, over decimals of so many digits: one that may be null and one that may not.
fn spec(digits: u8) -> AggregateSpec {
    let decimal = Type::Decimal(digits, 2);
    let inputs = vec![DataType::of(Type::INT64), DataType::of(decimal.clone()), DataType::optional(decimal)];
    let aggregate = |function, arg: usize, ty| Aggregate {
        function,
        args: vec![Expr::column(arg, inputs[arg].clone())],
        filter: None,
        ty,
        site: Site::default(),
    };
    let sum = || DataType::optional(Type::Decimal(38, 2));
    let aggregates = vec![
        aggregate(AggFunction::Sum, 1, sum()),
        aggregate(AggFunction::Sum, 2, sum()),
        aggregate(AggFunction::Avg, 1, DataType::optional(Type::Decimal(38, 12))),
        aggregate(AggFunction::Avg, 2, DataType::optional(Type::Decimal(38, 12))),
        aggregate(AggFunction::Min, 1, inputs[1].clone()),
        aggregate(AggFunction::Count, 0, DataType::of(Type::INT64)),
    ];
    let mut fields = vec![Field::new("key", inputs[0].clone())];
    fields.extend(aggregates.iter().enumerate().map(|(n, a)| Field::new(format!("a{n}"), a.ty.clone())));
    let keys = vec![Expr::column(0, inputs[0].clone())];
    AggregateSpec { node: "sums".into(), inputs, keys, aggregates, output: Schema { fields } }
}

/// Group 0 has large values, group 1 their opposites, group 2 both; the others small ones.
fn value(row: usize) -> (usize, i128) {
    let large = 999_999_999_999_999 - (row % 7) as i128;
    match row % 8 {
        0..=3 => (0, large),
        4 | 5 => (1, -large),
        6 => (2, if row % 16 == 6 { large } else { -large }),
        _ => (3 + row % 4_001, row as i128 % 100 - 50),
    }
}

/// The rows of a part, of which every third has no second value.
fn batch(spec: &AggregateSpec, rows: std::ops::Range<usize>) -> Batch {
    let mut columns: Vec<_> = spec.inputs.iter().map(|ty| ColumnBuilder::new(ty, rows.len())).collect();
    for row in rows.clone() {
        let (key, value) = value(row);
        columns[0].push(&Value::Int(key as i128));
        columns[1].push(&Value::Decimal(value));
        columns[2].push(&if row % 3 == 0 { Value::Null } else { Value::Decimal(value) });
    }
    Batch::new(columns.into_iter().map(ColumnBuilder::finish).collect(), rows.len(), 0)
}

fn update(table: &mut GroupTable, spec: &AggregateSpec, rows: std::ops::Range<usize>) {
    let batch = batch(spec, rows);
    table.update_batch(&batch, spec, &Env::default(), &mut |row, error| panic!("row {row}: {error:?}"));
}

fn results(spec: &AggregateSpec, tables: &[GroupTable]) -> Vec<String> {
    let mut rows = Vec::new();
    for table in tables {
        let batch = table.results(spec, 0..table.len()).expect("every group has its results");
        let value = |column: usize, row| value_at(&batch.columns[column], &spec.output.fields[column].ty.ty, row);
        rows.extend((0..batch.rows).map(|row| format!("{:?}", (0..7).map(|c| value(c, row)).collect::<Vec<_>>())));
    }
    rows.sort_unstable();
    rows
}

const ROWS: usize = 48_000;

#[test]
fn sums_go_on_past_64_bits() {
    let (narrow, wide) = (spec(15), spec(18));
    let row_bytes = |spec: &AggregateSpec| StateLayout::new(spec).row_bytes;
    assert_eq!((row_bytes(&narrow), row_bytes(&wide)), (72, 112));
    let all = [&narrow, &wide].map(|spec| {
        let mut table = GroupTable::new(spec);
        update(&mut table, spec, 0..ROWS);
        results(spec, &[table])
    });
    let sum: i128 = (0..ROWS).map(value).filter(|(key, _)| *key == 0).map(|(_, value)| value).sum();
    assert!(sum > 2 * i128::from(i64::MAX) && all[0].iter().any(|row| row.contains(&format!("Decimal({sum})"))));
    assert!(all[0] == all[1]);
    // Halves that are put together.
    let [mut first, mut second] = [0..ROWS / 2, ROWS / 2..ROWS].map(|rows| {
        let mut table = GroupTable::new(&narrow);
        update(&mut table, &narrow, rows);
        table
    });
    second.merge_partition(&first, 0, 1).expect("merged");
    assert!(results(&narrow, &[second]) == all[0]);
    let mut empty = GroupTable::new(&narrow);
    empty.merge_partition(&first, 0, 1).expect("merged");
    assert!(results(&narrow, &[empty]) == results(&narrow, std::slice::from_ref(&first)));
    // What is given on is no part of it any more, nor are its sums.
    first.forget_before(3);
    let mut rest = GroupTable::new(&narrow);
    rest.merge_partition(&first, 0, 1).expect("merged");
    assert_eq!(rest.len(), first.len() - 3);
}

/// The bytes are those of sums that are held in 128 bits, whole and in parts, and make the table again (D11, D13).
#[test]
fn what_is_stored_says_nothing_of_how_it_was_held() {
    let specs = [spec(15), spec(18)];
    let parts = specs.each_ref().map(|spec| {
        let mut table = GroupTable::new(spec);
        let mut parts = Vec::new();
        for part in 0..5 {
            update(&mut table, spec, part * ROWS / 5..(part + 1) * ROWS / 5);
            let pieces = table.freeze(false).split(100_000).expect("keys");
            parts.extend(pieces.into_iter().map(|piece| piece.archive().expect("it can be archived")));
        }
        assert!(table.copy_whole().archive().is_ok());
        (table, parts)
    });
    let [(table, stored), (_, as_wide)] = parts;
    assert!(stored.len() > 5);
    for (narrow, wide) in stored.iter().zip(&as_wide) {
        // But for the argument's type, which stands in it.
        let mut narrow = narrow.clone();
        for at in 0..narrow.len().saturating_sub(6) {
            if narrow[at..].starts_with(b"(15, 2)") {
                narrow[at + 2] = b'8';
            }
        }
        assert!(narrow[..] == wide[..], "{} and {} bytes", narrow.len(), wide.len());
    }
    let restored = GroupTable::from_parts(&specs[0], &stored).expect("the parts fit");
    let expected = results(&specs[0], &[table]);
    assert!(results(&specs[0], &[restored]) == expected);
    for of in [1, 3] {
        let shares = (0..of).map(|part| {
            let mut share = GroupTable::new(&specs[0]);
            share.take_share(&specs[0], &stored, part, of).expect("the parts fit");
            share
        });
        assert!(results(&specs[0], &shares.collect::<Vec<_>>()) == expected);
    }
    // A table that was put together from its parts goes on.
    let mut restored = GroupTable::from_parts(&specs[0], &stored).expect("the parts fit");
    update(&mut restored, &specs[0], 0..ROWS);
    let mut twice = GroupTable::new(&specs[0]);
    [0, 1].into_iter().for_each(|_| update(&mut twice, &specs[0], 0..ROWS));
    assert!(results(&specs[0], &[restored]) == results(&specs[0], &[twice]));
}

/// Where rows may count nowhere, or there is no key, a sum says whether it has seen a value.
#[test]
fn a_sum_of_nothing_is_null() {
    let keyed = spec(15);
    let keyless = AggregateSpec { keys: Vec::new(), ..spec(15) };
    let mut fields = keyless.output.fields.clone();
    fields.remove(0);
    // (A minimum of nothing has no value either, and none is allowed.)
    let aggregates = keyless.aggregates[..4].to_vec();
    fields.truncate(4);
    let keyless = AggregateSpec { aggregates, output: Schema { fields }, ..keyless };
    let batch = GroupTable::new(&keyless).results(&keyless, 0..1).expect("a row");
    assert!((0..4).all(|column| batch.columns[column].is_null(0)));
    let mut table = GroupTable::new(&keyed);
    update(&mut table, &keyed, 0..1);
    let batch = table.results(&keyed, 0..1).expect("a row");
    let nulls: Vec<bool> = (1..7).map(|column| batch.columns[column].is_null(0)).collect();
    assert_eq!(nulls, [false, true, false, true, false, false]);
}
