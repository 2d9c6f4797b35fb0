//! What the connectors' tests share: declared schemas in short, whole sources read to rows of texts, files in a folder that goes away.

use std::path::PathBuf;
use std::sync::Arc;

use dfc_batch::{Batch, RowError, value_at};
use dfc_ir::plan::{OptionValue, Options, SinkSpec, SourceSpec};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Schema, Type, Value};

use crate::{ConnectError, Encoded, Next, OpenContext, Sink, SinkSummary, Source};

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
    let mut rows = Vec::new();
    for (seq, batch) in batches.iter().enumerate() {
        assert_eq!(batch.seq, seq as u64, "sequence numbers have no gap");
        assert_eq!(batch.columns.len(), schema.len());
        for (column, field) in batch.columns.iter().zip(&schema.fields) {
            assert_eq!(column.len(), batch.rows);
            assert_eq!(*column.data_type(), dfc_batch::arrow_type(&field.ty.ty));
            assert!(field.ty.nullable || column.null_count() == 0, "no null in a column that has none");
        }
        for row in 0..batch.rows {
            let values = batch.columns.iter().zip(&schema.fields).map(|(c, f)| value_at(c, &f.ty.ty, row).into_owned());
            rows.push(values.collect());
        }
    }
    let counted = source.counters().rows.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(counted, (rows.len() + errors.len()) as u64, "all rows are counted, rejected ones too");
    Ok(Read { rows, errors, batches })
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
