//! What compiled code relies on: the bytes of keys, their hash, the places of states.

use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Expr, Field, Schema, Site, Type, Value};
use dfc_table::{
    GroupTable, HASH_END, HASH_SEED, HASH_WORD, KeyLayout, StateKind, StateLayout, StateSlot, find_or_insert, fold,
    hash_key, partition,
};

fn encoded(layout: &KeyLayout, values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    layout.encode_key(values, &mut bytes);
    bytes
}

#[test]
fn keys_are_written_as_documented() {
    let types = [
        DataType::of(Type::Int(IntType::U16)),
        DataType::optional(Type::Date),
        DataType::of(Type::String),
        DataType::optional(Type::Float64),
    ];
    let layout = KeyLayout::new(types.clone());
    let offsets: Vec<_> = layout.parts.iter().map(|part| part.offset).collect();
    assert_eq!(offsets, [Some(0), Some(2), Some(7), None]);
    assert_eq!(layout.fixed_bytes, None);
    let key = [Value::Int(0x0102), Value::Date(-1), Value::str("ab"), Value::Null];
    let bytes = encoded(&layout, &key);
    assert_eq!(bytes, [2, 1, 1, 255, 255, 255, 255, 2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(layout.decode_key(&bytes), key);
    assert_eq!(KeyLayout::new(types[..2].to_vec()).fixed_bytes, Some(7));
    assert_eq!(KeyLayout::new([]).fixed_bytes, Some(0));
}

#[test]
fn every_type_of_key_reads_back_and_zeros_are_equal() {
    let point = Type::Record(vec![
        Field::new("a", DataType::optional(Type::String)),
        Field::new("b", DataType::of(Type::List(Box::new(DataType::optional(Type::Bool))))),
    ]);
    let mut samples = vec![
        (Type::Bool, Value::Bool(true)),
        (Type::Float32, Value::Float(-0.1f32 as f64)),
        (Type::Float64, Value::Float(1e300)),
        (Type::Decimal(18, 2), Value::Decimal(-5)),
        (Type::Decimal(38, 2), Value::Decimal(-(10i128.pow(38) - 1))),
        (Type::String, Value::str("金额")),
        (Type::Json, Value::str("{}")),
        (Type::Bytes, Value::Bytes(vec![0, 255].into())),
        (Type::Date, Value::Date(-719_162)),
        (Type::Time, Value::Time(86_399_999_999)),
        (Type::DateTime, Value::DateTime(-1)),
        (Type::Timestamp, Value::Timestamp(i64::MIN)),
        (Type::Duration, Value::Duration(-7)),
        (point, Value::Record(vec![Value::Null, Value::List(vec![Value::Null, Value::Bool(true)])])),
    ];
    for int in IntType::ALL {
        samples.extend([(Type::Int(int), Value::Int(int.min())), (Type::Int(int), Value::Int(int.max()))]);
    }
    for (ty, value) in samples {
        // Two columns, so that each must end where it says.
        let layout = KeyLayout::new([DataType::of(ty.clone()), DataType::optional(ty.clone())]);
        for second in [value.clone(), Value::Null] {
            let key = [value.clone(), second];
            assert_eq!(layout.decode_key(&encoded(&layout, &key)), key, "{ty}");
        }
    }
    let layout = KeyLayout::new([DataType::of(Type::Float64)]);
    assert_eq!(encoded(&layout, &[Value::Float(-0.0)]), encoded(&layout, &[Value::Float(0.0)]));
}

#[test]
fn hashes_are_as_documented_and_spread() {
    let first = fold(HASH_SEED ^ 0x030201, HASH_WORD);
    assert_eq!(hash_key(&[1, 2, 3]), fold(first ^ 3, HASH_END));
    let eight = fold(HASH_SEED ^ 0x0807_0605_0403_0201, HASH_WORD);
    assert_eq!(hash_key(&[1, 2, 3, 4, 5, 6, 7, 8]), fold(eight ^ 8, HASH_END));
    assert_eq!(hash_key(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), fold(fold(eight ^ 9, HASH_WORD) ^ 9, HASH_END));
    let texts = KeyLayout::new([DataType::of(Type::String)]);
    let zeros = ["", "\0", "\0\0", "\0\0\0"].map(|text| hash_key(&encoded(&texts, &[Value::str(text)])));
    assert!(zeros.iter().zip(&zeros[1..]).all(|(a, b)| a != b));
    assert_ne!(hash_key(&[]), hash_key(&[0]));
    assert_ne!(hash_key(&[0]), hash_key(&[0, 0]));
    let mut parts = [0usize; 7];
    let mut low = [0usize; 64];
    for n in 0..70_000u64 {
        let hash = hash_key(&n.to_le_bytes());
        parts[partition(hash, 7)] += 1;
        low[hash as usize % 64] += 1;
    }
    assert!(parts.iter().all(|&count| (9_000..11_000).contains(&count)), "{parts:?}");
    assert!(low.iter().all(|&count| (850..1_350).contains(&count)), "{low:?}");
}

fn aggregate(function: AggFunction, arg: Option<Type>, ty: Type) -> Aggregate {
    let args = arg.into_iter().map(|ty| Expr::column(0, DataType::optional(ty))).collect();
    Aggregate { function, args, filter: None, ty: DataType::optional(ty), site: Site(1) }
}

#[test]
fn states_are_aligned_and_apart() {
    use AggFunction::*;
    let mut aggregates = vec![aggregate(Count, None, Type::INT64)];
    let narrow = Type::Decimal(15, 2);
    for ty in
        [Type::Bool, Type::INT32, Type::Float32, Type::Float64, narrow, Type::Decimal(38, 2), Type::String, Type::Date]
    {
        for (function, _) in AggFunction::ALL {
            aggregates.push(aggregate(function, Some(ty.clone()), ty.clone()));
        }
    }
    let stored = StateLayout::stored(&aggregates);
    let is_narrow = |slot: &StateSlot| matches!(slot.kind, StateKind::NarrowSum | StateKind::NarrowMean);
    assert!(!stored.slots.iter().any(is_narrow));
    apart(&stored);
    let spec = AggregateSpec {
        node: "test".into(),
        inputs: vec![DataType::of(Type::INT64)],
        keys: vec![Expr::column(0, DataType::of(Type::INT64))],
        aggregates,
        output: Schema::default(),
    };
    let held = StateLayout::new(&spec);
    assert!(held.slots.iter().any(is_narrow) && held.row_bytes < stored.row_bytes);
    apart(&held);
}

/// No two states share a byte, and all are aligned.
fn apart(layout: &StateLayout) {
    assert_eq!(layout.row_bytes % 16, 0);
    let mut used = vec![false; layout.row_bytes];
    let mut take = |offset: usize, size: usize| {
        assert_eq!(offset % size, 0);
        for byte in &mut used[offset..offset + size] {
            assert!(!std::mem::replace(byte, true), "two states share a byte");
        }
    };
    for slot in &layout.slots {
        let (value, second) = match slot.kind {
            StateKind::Count | StateKind::Side => (8, 0),
            StateKind::Sum => (16, 1),
            StateKind::SumFloat | StateKind::NarrowSum => (8, 1),
            StateKind::Mean => (16, 8),
            StateKind::MeanFloat | StateKind::NarrowMean => (8, 8),
            StateKind::Least(width) | StateKind::Largest(width) => (width, 1),
        };
        take(slot.offset, value);
        match second {
            0 => assert_eq!(slot.second, slot.offset),
            size => take(slot.second, size),
        }
    }
}

#[test]
fn compiled_code_may_write_the_rows_itself() {
    use AggFunction::*;
    let spec = AggregateSpec {
        node: "test".into(),
        inputs: vec![DataType::of(Type::INT64)],
        keys: vec![Expr::column(0, DataType::of(Type::INT64))],
        aggregates: vec![
            aggregate(Count, None, Type::INT64),
            aggregate(Sum, Some(Type::INT64), Type::INT64),
            aggregate(Max, Some(Type::INT64), Type::INT64),
        ],
        output: Schema::default(),
    };
    let (mut compiled, mut interpreted) = (GroupTable::new(&spec), GroupTable::new(&spec));
    let slots = compiled.state_layout().slots.clone();
    let mut first_row = None;
    for n in 0..10_000i64 {
        let (key, value) = ((n % 3_000).to_le_bytes(), n * 7 % 1_000 - 500);
        let group = interpreted.group(&key, hash_key(&key));
        for aggregate in 0..3 {
            let args = [Value::Int(value.into())];
            interpreted.update(group, aggregate, if aggregate == 0 { &[] } else { &args }, 0).unwrap();
        }
        // SAFETY: the table is alive and used by nothing else; the key is eight bytes; the row's states are where the
        // layout says, and of these types.
        unsafe {
            let row = find_or_insert(&mut compiled, key.as_ptr(), key.len(), hash_key(&key));
            assert_eq!(row as usize % 16, 0);
            if key == [0; 8] {
                assert_eq!(*first_row.get_or_insert(row), row, "rows don't move");
            }
            *row.add(slots[0].offset).cast::<u64>() += 1;
            *row.add(slots[1].offset).cast::<i128>() += i128::from(value);
            *row.add(slots[1].second) = 1;
            let largest = row.add(slots[2].offset).cast::<i64>();
            if *row.add(slots[2].second) == 0 || value > *largest {
                *largest = value;
                *row.add(slots[2].second) = 1;
            }
        }
    }
    let output = ["k", "count", "sum", "max"].map(|name| Field::new(name, DataType::optional(Type::INT64)));
    let spec = AggregateSpec { output: Schema { fields: output.to_vec() }, ..spec };
    let [left, right] = [compiled, interpreted].map(|table| table.results(&spec, 0..table.len()).unwrap());
    assert_eq!(left.rows, 3_000);
    assert_eq!(left.columns, right.columns);
}
