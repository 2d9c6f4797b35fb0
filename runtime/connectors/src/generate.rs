//! Made-up rows: each value follows from the seed, the row's number, the field's position and its type, on every machine alike.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfc_batch::{Batch, ColumnBuilder, Origin, RowError};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{DataType, Type, Value};

use crate::barriers::{Answered, Noticed, Wanted};
use crate::files::bad_position;
use crate::locate::NumberedRows;
use crate::options::OptionReader;
use crate::{ConnectError, Next, OpenContext, Positions, Reader, Source, SourceCounters, SplitPosition};

/// Rows of a batch.
const BATCH: u64 = 8192;
/// All rows are one split.
const SPLIT: &str = "rows";
/// Days from 2000-01-01 that dates lie within, and the first of them.
const DAYS: (u64, i32) = (10_957, 10_957);
/// Microseconds of a day.
const DAY: u64 = 86_400_000_000;

/// Opens it.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    let options = OptionReader::new("generate", &spec.options);
    let rows =
        options.count("rows")?.ok_or_else(|| ConnectError::new("R0202", "`rows` of `generate` must be given"))?;
    let seed = match spec.options.get("seed") {
        Some(dfc_ir::plan::OptionValue::Value(Value::Int(seed))) => *seed as u64,
        _ => 1,
    };
    let columns = spec.projection.iter().map(|&i| (i as u64, spec.schema.fields[i].ty.clone())).collect();
    let first = match cx.positions.as_ref().and_then(|positions| positions.splits.first()) {
        Some(split) => split.position["row"].as_u64().ok_or_else(|| bad_position(SPLIT, &split.position))?,
        None => 0,
    };
    Ok(Box::new(Generate {
        shared: Arc::new(Shared {
            rows: rows.min(first.saturating_add(cx.limit_rows.unwrap_or(u64::MAX))),
            first,
            seed,
            columns,
            wanted: Wanted::default(),
            state: Mutex::new(State { given: 0, noticed: Noticed::default() }),
            cancelled: cx.cancelled.clone(),
            counters: Arc::default(),
        }),
        tasks: cx.tasks.max(1),
    }))
}

struct Generate {
    shared: Arc<Shared>,
    tasks: usize,
}

struct Shared {
    /// Number of the first row to make, and of the first one that isn't, from 0.
    first: u64,
    rows: u64,
    seed: u64,
    /// Position in the declared schema, so that a value doesn't depend on what else is read.
    columns: Vec<(u64, DataType)>,
    wanted: Wanted,
    state: Mutex<State>,
    cancelled: Arc<AtomicBool>,
    counters: Arc<SourceCounters>,
}

struct State {
    /// Batches given out.
    given: u64,
    noticed: Noticed<u64>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Two numbers and a list are whole whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The row after the batches that were given.
    fn reached(&self, given: u64) -> u64 {
        self.first.saturating_add(given * BATCH).min(self.rows.max(self.first))
    }
}

impl Source for Generate {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        Ok(Box::new(Maker { shared: self.shared.clone(), answered: Answered::default(), ended: false }))
    }

    fn total_bytes(&self) -> Option<u64> {
        None
    }

    fn max_tasks(&self) -> usize {
        let left = self.shared.rows.saturating_sub(self.shared.first);
        self.tasks.min(left.div_ceil(BATCH).max(1).try_into().unwrap_or(usize::MAX))
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.shared.counters.clone()
    }

    fn resumable(&self) -> Result<(), String> {
        Ok(())
    }

    fn mark(&self, number: u64) {
        self.shared.wanted.want(number);
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        let shared = &*self.shared;
        let mut state = shared.state();
        let given = state.given;
        state.noticed.notice(&shared.wanted, || shared.reached(given));
        let row = state.noticed.report(number);
        let row = row.ok_or_else(|| ConnectError::new("R0499", format!("there was no barrier {number}")))?;
        let split = SplitPosition {
            split: SPLIT.into(),
            position: serde_json::json!({ "row": row }),
            ended: row >= shared.rows,
            exact: true,
        };
        Ok(Positions { splits: vec![split] })
    }
}

struct Maker {
    shared: Arc<Shared>,
    answered: Answered,
    ended: bool,
}

impl Reader for Maker {
    fn next(&mut self, _errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        let shared = &*self.shared;
        let mut state = shared.state();
        let seq = state.given;
        state.noticed.notice(&shared.wanted, || shared.reached(seq));
        if self.ended {
            return Ok(Next::End);
        }
        if let Some(number) = state.noticed.answer(&mut self.answered) {
            return Ok(Next::Barrier(number));
        }
        let first = shared.reached(seq);
        if first >= shared.rows || shared.cancelled.load(Ordering::Relaxed) {
            self.ended = true;
            return Ok(Next::End);
        }
        state.given += 1;
        drop(state);
        let rows = BATCH.min(shared.rows - first);
        let columns = shared.columns.iter().map(|(column, ty)| {
            let mut builder = ColumnBuilder::new(ty, rows as usize);
            for row in first..first + rows {
                builder.push(&value(mix(mix(shared.seed, *column), row), ty));
            }
            builder.finish()
        });
        let columns = columns.collect();
        shared.counters.rows.fetch_add(rows, Ordering::Relaxed);
        let locate = Arc::new(NumberedRows { source: "generate".into(), first: first + 1 });
        Ok(Next::Batch(Batch { columns, rows: rows as usize, seq, origin: Some(Origin { locate, rows: None }) }))
    }
}

/// Mixes a number into a state: SplitMix64's finaliser (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014).
fn mix(state: u64, number: u64) -> u64 {
    let mut z = state.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The value of a hash. An optional type is null for one in eight.
fn value(hash: u64, ty: &DataType) -> Value<'static> {
    if ty.nullable && hash.is_multiple_of(8) {
        return Value::Null;
    }
    let hash = mix(hash, 0);
    let micros = |hash: u64| i64::from(DAYS.1) * DAY as i64 + (hash % (DAYS.0 * DAY)) as i64;
    match &ty.ty {
        Type::Bool => Value::Bool(hash & 1 == 1),
        Type::Int(int) => Value::Int(i128::from(hash % 1_000_000) % ((*int).max() + 1)),
        Type::Float32 | Type::Float64 => Value::Float((hash % 1_000_000) as f64 / 1024.0),
        Type::Decimal(p, _) => Value::Decimal(i128::from(hash % 1_000_000_000) % 10i128.pow(u32::from(*p))),
        Type::String => Value::string(word(hash)),
        Type::Json => Value::string(format!("{{\"n\": {}}}", hash % 1000)),
        Type::Bytes => Value::Bytes(hash.to_be_bytes()[..(hash % 9) as usize].to_vec().into()),
        Type::Date => Value::Date(DAYS.1 + (hash % DAYS.0) as i32),
        Type::Time => Value::Time((hash % 86_400) as i64 * 1_000_000),
        Type::DateTime => Value::DateTime(micros(hash)),
        Type::Timestamp => Value::Timestamp(micros(hash)),
        Type::Duration => Value::Duration((hash % DAY) as i64),
        Type::List(item) => Value::List((0..hash % 4).map(|i| value(mix(hash, i), item)).collect()),
        Type::Record(fields) => {
            Value::Record(fields.iter().enumerate().map(|(i, f)| value(mix(hash, i as u64), &f.ty)).collect())
        }
        Type::Secret | Type::Null => Value::Null,
    }
}

/// 1 to 16 letters.
fn word(hash: u64) -> String {
    let mut rest = mix(hash, 1);
    (0..hash % 16 + 1)
        .map(|_| {
            let letter = b'a' + (rest % 26) as u8;
            rest = rest.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            char::from(letter)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    const FIELDS: &str = "a: int8; b: string?; c: decimal(4,2); d: date; e: timestamp; f: float32; g: uint64?; h: bool; i: bytes; j: json; k: time; l: duration; m: datetime";

    #[test]
    fn values_follow_from_seed_row_and_type() {
        let all = schema(FIELDS);
        let pairs = [("rows", int(20_000)), ("seed", int(7))];
        let first = read("generate", &pairs, &all).unwrap();
        assert_eq!(first.rows.len(), 20_000);
        assert_eq!(first.rows, read("generate", &pairs, &all).unwrap().rows);
        assert_ne!(first.rows, read("generate", &[("rows", int(20_000))], &all).unwrap().rows);
        // What else is read changes nothing.
        let mut spec = source_spec("generate", &pairs, &all);
        spec.projection = vec![3];
        let one = drain(&*crate::open_source(&spec, &context()).unwrap(), &spec.projected()).unwrap();
        assert!(one.rows.iter().zip(&first.rows).all(|(a, b)| a[0] == b[3]));
        let place = first.batches[1].origin.as_ref().unwrap().place(0);
        assert_eq!((place.source.as_str(), place.row), ("generate", Some(8193)));
        let cx = crate::OpenContext { limit_rows: Some(3), ..context() };
        let spec = source_spec("generate", &pairs, &all);
        assert_eq!(drain(&*crate::open_source(&spec, &cx).unwrap(), &all).unwrap().rows.len(), 3);
    }

    #[test]
    fn every_row_comes_once_wherever_barriers_are() {
        let fields = schema("a: int64; b: string?");
        let spec = source_spec("generate", &[("rows", int(50_001))], &fields);
        let all = read("generate", &[("rows", int(50_001))], &fields).unwrap();
        for seed in 0..20 {
            assert!(
                read_in_runs(&|cx| crate::open_source(&spec, cx), &fields, seed).unwrap() == all.rows,
                "seed {seed}"
            );
        }
        let split = crate::SplitPosition { split: "rows".into(), position: "x".into(), ended: false, exact: true };
        let cx = crate::OpenContext { positions: Some(crate::Positions { splits: vec![split] }), ..context() };
        assert_eq!(crate::open_source(&spec, &cx).err().unwrap().code, "R0217");
    }

    /// What the canonical text of any value is must be read back from CSV as the same value.
    #[test]
    fn every_type_goes_through_csv_jsonl_and_parquet() {
        let folder = Folder::new();
        let all = schema(FIELDS);
        let made = read("generate", &[("rows", int(3000))], &all).unwrap();
        for connector in ["csv", "jsonl", "parquet"] {
            let pairs = [("path", text(&folder.name(connector)))];
            let (summary, errors) = write(connector, &pairs, &all, made.batches.clone()).unwrap();
            assert_eq!((summary.rows, errors.len()), (3000, 0), "{connector}");
            let back = read(connector, &pairs, &all).unwrap();
            assert_eq!(back.errors, []);
            assert_eq!(back.rows, made.rows, "{connector}");
        }
    }
}
