//! What the connectors' tests share: declared schemas in short, whole sources read to rows of texts, files in a folder that goes away.

use std::path::PathBuf;

use dfc_batch::{Batch, RowError, value_at};
use dfc_ir::plan::{OptionValue, Options, SinkSpec, SourceSpec};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Schema, Type, Value};

use crate::{
    ConnectError, Encoded, Ledger, Next, OpenContext, Positions, Sealed, Sink, SinkEpochs, SinkResume, SinkSummary,
    Source,
};

/// A folder for one test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file and gives its name.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).expect("the test's file is written");
        self.name(name)
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }
}

/// A type by its name in the language, scalars only.
pub(crate) fn ty(text: &str) -> DataType {
    let (name, nullable) = text.strip_suffix('?').map_or((text, false), |n| (n, true));
    let ty = match name {
        "bool" => Type::Bool,
        "float32" => Type::Float32,
        "float64" => Type::Float64,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "date" => Type::Date,
        "time" => Type::Time,
        "datetime" => Type::DateTime,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "json" => Type::Json,
        _ => match IntType::ALL.iter().find(|t| t.name() == name) {
            Some(int) => Type::Int(*int),
            None => {
                let (p, s) = name.strip_prefix("decimal(").unwrap().strip_suffix(')').unwrap().split_once(',').unwrap();
                Type::Decimal(p.trim().parse().unwrap(), s.trim().parse().unwrap())
            }
        },
    };
    DataType { ty, nullable }
}

/// `id: int64; name: string?`
pub(crate) fn schema(text: &str) -> Schema {
    let fields =
        text.split("; ").map(|f| f.split_once(": ").unwrap()).map(|(name, t)| Field::new(name, ty(t))).collect();
    Schema { fields }
}

pub(crate) fn options(pairs: &[(&str, OptionValue)]) -> Options {
    pairs.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()
}

pub(crate) fn text(value: &str) -> OptionValue {
    OptionValue::Value(Value::string(value))
}

pub(crate) fn name(value: &str) -> OptionValue {
    OptionValue::Name(value.into())
}

pub(crate) fn flag(value: bool) -> OptionValue {
    OptionValue::Value(Value::Bool(value))
}

pub(crate) fn int(value: i64) -> OptionValue {
    OptionValue::Value(Value::Int(value.into()))
}

pub(crate) fn context() -> OpenContext {
    OpenContext { node: "test".into(), tasks: 2, ..OpenContext::default() }
}

pub(crate) fn source_spec(connector: &str, pairs: &[(&str, OptionValue)], schema: &Schema) -> SourceSpec {
    SourceSpec {
        connector: connector.into(),
        options: options(pairs),
        schema: schema.clone(),
        projection: (0..schema.len()).collect(),
    }
}

/// Rows as values, in order, and the row errors.
pub(crate) struct Read {
    pub rows: Vec<Vec<Value<'static>>>,
    pub errors: Vec<RowError>,
    pub batches: Vec<Batch>,
}

impl Read {
    /// Rows as text; null is `∅`.
    pub(crate) fn texts(&self, schema: &Schema) -> Vec<String> {
        self.rows
            .iter()
            .map(|row| {
                let values = row.iter().zip(&schema.fields).map(|(v, f)| match v {
                    Value::Null => "∅".to_string(),
                    v => dfc_eval::format_value(v, &f.ty.ty),
                });
                values.collect::<Vec<_>>().join("|")
            })
            .collect()
    }

    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.errors.iter().map(|e| e.code).collect()
    }
}

/// Reads a source by two readers in turn, and checks what every source promises.
pub(crate) fn drain(source: &dyn Source, schema: &Schema) -> Result<Read, ConnectError> {
    let mut readers = [source.reader(0)?, source.reader(1)?];
    let (mut batches, mut errors): (Vec<Batch>, Vec<RowError>) = (Vec::new(), Vec::new());
    let mut ended = [false, false];
    while ended != [true, true] {
        for (reader, ended) in readers.iter_mut().zip(&mut ended) {
            match reader.next(&mut errors)? {
                Next::Batch(batch) => batches.push(batch),
                Next::End => *ended = true,
                Next::Barrier(_) | Next::Wait(_) => {}
            }
        }
    }
    batches.sort_by_key(|b| b.seq);
    for (seq, batch) in batches.iter().enumerate() {
        assert_eq!(batch.seq, seq as u64, "sequence numbers have no gap");
        assert_eq!(batch.columns.len(), schema.len());
        for (column, field) in batch.columns.iter().zip(&schema.fields) {
            assert_eq!(column.len(), batch.rows);
            assert_eq!(*column.data_type(), dfc_batch::arrow_type(&field.ty.ty));
            assert!(field.ty.nullable || column.null_count() == 0, "no null in a column that has none");
        }
    }
    let rows = values(&batches, schema);
    let counted = source.counters().rows.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(counted, (rows.len() + errors.len()) as u64, "all rows are counted, rejected ones too");
    Ok(Read { rows, errors, batches })
}

/// Reads by several readers in turn (`picks` says which comes when) until a barrier that is wanted after `steps`: the rows before it, and
/// the positions there, gone through their text.
pub(crate) fn read_to_barrier(
    source: &dyn Source,
    schema: &Schema,
    readers: usize,
    picks: &mut dyn FnMut(usize) -> usize,
    steps: usize,
) -> Result<(Vec<Vec<Value<'static>>>, Positions), ConnectError> {
    let mut readers: Vec<_> = (0..readers).map(|task| source.reader(task)).collect::<Result<_, _>>()?;
    let mut batches: Vec<Batch> = Vec::new();
    let mut answered = vec![false; readers.len()];
    let mut ended = vec![false; readers.len()];
    let mut errors = Vec::new();
    let mut step = 0;
    while !answered.iter().zip(&ended).all(|(a, e)| *a || *e) || step <= steps {
        if step == steps {
            source.mark(7);
        }
        step += 1;
        let pick = picks(readers.len());
        match readers[pick].next(&mut errors)? {
            Next::Batch(batch) if !answered[pick] => {
                assert!(!ended[pick], "nothing comes after the end");
                batches.push(batch);
            }
            Next::Batch(_) | Next::Wait(_) => {}
            Next::Barrier(number) => {
                assert!((number, answered[pick], ended[pick]) == (7, false, false), "a barrier comes once");
                answered[pick] = true;
            }
            Next::End => ended[pick] = true,
        }
    }
    let positions = serde_json::to_string(&source.positions(7)?).expect("positions are plain data");
    batches.sort_by_key(|b| b.seq);
    assert!(
        batches.iter().enumerate().all(|(seq, batch)| batch.seq == seq as u64),
        "what is before a barrier has no gap"
    );
    Ok((values(&batches, schema), serde_json::from_str(&positions).expect("positions are plain data")))
}

/// Reads a source by several runs, each stopped at a barrier and gone on with by another number of readers; all rows, in order.
pub(crate) fn read_in_runs(
    open: &dyn Fn(&OpenContext) -> Result<Box<dyn Source>, ConnectError>,
    schema: &Schema,
    seed: u64,
) -> Result<Vec<Vec<Value<'static>>>, ConnectError> {
    let mut random = random(seed);
    let (mut rows, mut positions) = (Vec::new(), None);
    for _ in 0..1000 {
        let source = open(&OpenContext { positions: positions.take(), ..context() })?;
        assert_eq!(source.resumable(), Ok(()));
        let (readers, steps) = (1 + random(3), random(8));
        let (read, at) = read_to_barrier(&*source, schema, readers, &mut random, steps)?;
        rows.extend(read);
        if at.splits.iter().all(|split| split.ended) {
            return Ok(rows);
        }
        positions = Some(at);
    }
    panic!("the source comes to no end")
}

/// All values, row by row.
pub(crate) fn values(batches: &[Batch], schema: &Schema) -> Vec<Vec<Value<'static>>> {
    let row = |batch: &Batch, row: usize| {
        batch.columns.iter().zip(&schema.fields).map(|(c, f)| value_at(c, &f.ty.ty, row).into_owned()).collect()
    };
    batches.iter().flat_map(|batch| (0..batch.rows).map(move |n| row(batch, n))).collect()
}

/// Opens and reads a source.
pub(crate) fn read(connector: &str, pairs: &[(&str, OptionValue)], schema: &Schema) -> Result<Read, ConnectError> {
    drain(&*crate::open_source(&source_spec(connector, pairs, schema), &context())?, schema)
}

/// Opens a sink, writes the batches, finishes.
pub(crate) fn write(
    connector: &str,
    pairs: &[(&str, OptionValue)],
    schema: &Schema,
    batches: Vec<Batch>,
) -> Result<(SinkSummary, Vec<RowError>), ConnectError> {
    let spec = SinkSpec { connector: connector.into(), options: options(pairs) };
    let sink = crate::open_sink(&spec, schema, &context())?;
    let errors = put(&*sink, batches)?;
    Ok((sink.finish()?, errors))
}

/// Writes batches to a sink.
pub(crate) fn put(sink: &dyn Sink, batches: Vec<Batch>) -> Result<Vec<RowError>, ConnectError> {
    let mut errors = Vec::new();
    let mut encoder = sink.encoder(0)?;
    for batch in batches {
        let (encoded, rows) = encoder.encode(batch, &mut errors)?;
        if let Encoded::Rows(batch) = &encoded {
            assert_eq!(batch.rows as u64, rows);
        }
        sink.write(encoded, rows)?;
    }
    Ok(errors)
}

/// A batch of values.
pub(crate) fn batch(schema: &Schema, rows: &[Vec<Value>]) -> Batch {
    let columns = schema.fields.iter().enumerate().map(|(i, field)| {
        let mut builder = dfc_batch::ColumnBuilder::new(&field.ty, rows.len());
        rows.iter().for_each(|row| builder.push(&row[i]));
        builder.finish()
    });
    Batch::new(columns.collect(), rows.len(), 0)
}

/// Random numbers of a seed.
pub(crate) fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        // Knuth's linear congruential generator: any sequence does.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    }
}

/// Writes rows as a job with checkpoints does that is killed at random moments and started again, until it is done: rows are written,
/// epochs sealed, checkpoints become whole or are given up, epochs applied, in any order that a job may have. `look` is called whenever
/// somebody could look at the target, with the number of rows that a whole checkpoint covers.
pub(crate) fn write_with_kills(
    connector: &str,
    pairs: &[(&str, OptionValue)],
    schema: &Schema,
    rows: &[Vec<Value>],
    seed: u64,
    look: &dyn Fn(usize),
) -> Result<SinkSummary, ConnectError> {
    struct Whole {
        number: u64,
        sealed: Vec<Sealed>,
        at: usize,
    }
    let mut random = random(seed);
    let folder = Folder::new();
    let spec = SinkSpec { connector: connector.into(), options: options(pairs) };
    let (mut whole, mut number): (Option<Whole>, u64) = (None, 0);
    let mut applied_before = 0;
    for _ in 0..10_000 {
        let resume = whole.as_ref().map(|w| SinkResume { number: w.number, sealed: w.sealed.clone() });
        let epochs = SinkEpochs { lineage: format!("{:032x}", 0xabc0_0000_u64 + seed), spool: folder.path(""), resume };
        let sink = crate::open_sink(&spec, schema, &OpenContext { epochs: Some(epochs), ..context() })?;
        assert_eq!(sink.epochs(), Ok(()));
        let mut sealed = whole.as_ref().map_or_else(Vec::new, |w| w.sealed.clone());
        let mut applied = match sink.ledger()? {
            _ if sink.visible_at_end() => u64::MAX,
            Ledger::Applied(number) => number,
            Ledger::Idempotent => 0,
            ledger => panic!("{ledger:?}"),
        };
        assert!(applied >= applied_before, "what was applied stays so");
        let mut at = whole.as_ref().map_or(0, |w| w.at);
        let killed = loop {
            match random(10) {
                0 => break true,
                1..=3 if at == rows.len() && random(3) == 0 => break false,
                1..=5 => {
                    let end = rows.len().min(at + random(40));
                    assert_eq!(put(&*sink, vec![batch(schema, &rows[at..end])])?, []);
                    at = end;
                }
                6 | 7 => {
                    number += 1;
                    sealed.push(sink.seal(number)?);
                    // Otherwise the checkpoint is given up, and its epoch belongs to the next one.
                    if random(4) > 0 {
                        if !sink.visible_at_end() {
                            sealed.retain(|s| s.number > applied);
                        }
                        whole = Some(Whole { number, sealed: sealed.clone(), at });
                    }
                }
                _ => {
                    let reached = whole.as_ref().map_or(0, |w| w.number);
                    for epoch in sealed.iter().filter(|s| s.number > applied && s.number <= reached).take(1 + random(2))
                    {
                        sink.apply(epoch)?;
                        if random(3) == 0 {
                            sink.apply(epoch)?;
                        }
                        applied_before = applied_before.max(epoch.number);
                    }
                    applied = if sink.visible_at_end() { u64::MAX } else { applied_before };
                }
            }
            look(whole.as_ref().map_or(0, |w| w.at));
        };
        if killed {
            drop(sink);
            continue;
        }
        number += 1;
        sealed.push(sink.seal(number)?);
        whole = Some(Whole { number, sealed: sealed.clone(), at });
        if random(3) == 0 {
            continue;
        }
        for epoch in sealed.iter().filter(|s| s.number > applied) {
            sink.apply(epoch)?;
            applied_before = epoch.number;
        }
        let summary = sink.finish()?;
        // It died after the end, or not.
        match random(3) {
            0 => continue,
            1 => assert_eq!(sink.finish()?, summary),
            _ => {}
        }
        return Ok(summary);
    }
    panic!("the job comes to no end")
}
