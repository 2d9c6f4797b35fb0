//! The Parquet sink. Encoding a file's row group needs all its rows in order, so batches are passed on and encoded where they are
//! written.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use dfc_batch::{Batch, RowError, arrow_schema};
use dfc_ir::Schema;
use dfc_ir::plan::SinkSpec;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::epochs::JoinedSink;
use crate::files::{
    Checked, Compression, FolderOptions, FolderSink, MakePart, Mode, Output, OutputOptions, PartWriter, Partitions,
    Place, ROLL, io_error, refuse_folder_options,
};
use crate::options::OptionReader;
use crate::text::sink::closed;
use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink, SinkSummary};

#[derive(Clone, Copy)]
enum Kind {
    Zstd,
    Snappy,
    Gzip,
    None,
}

/// Opens it.
pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    let options = OptionReader::new("parquet", &spec.options);
    let level = options.count("level")?;
    let refuse = |top: u32| {
        ConnectError::new(
            "R0202",
            format!("`level` must be 1 to {top} with this compression, not {}", level.unwrap_or(0)),
        )
    };
    let given = u32::try_from(level.unwrap_or(3)).unwrap_or(u32::MAX);
    let kinds = [("zstd", Kind::Zstd), ("snappy", Kind::Snappy), ("gzip", Kind::Gzip), ("none", Kind::None)];
    let codec = match options.choice("compression", &kinds)? {
        Kind::Zstd => {
            Codec::ZSTD(i32::try_from(given).ok().and_then(|l| ZstdLevel::try_new(l).ok()).ok_or_else(|| refuse(22))?)
        }
        Kind::Gzip => Codec::GZIP(GzipLevel::try_new(given).map_err(|_| refuse(9))?),
        Kind::Snappy => Codec::SNAPPY,
        Kind::None => Codec::UNCOMPRESSED,
    };
    let group = options.count("row_group_rows")?.unwrap_or(1_000_000).max(1);
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_max_row_group_row_count(Some(usize::try_from(group).unwrap_or(usize::MAX)))
        .set_created_by(concat!("dfc ", env!("CARGO_PKG_VERSION")).into())
        .build();
    let path = options.required("path")?.to_string();
    let modes = [("overwrite", Mode::Overwrite), ("append", Mode::Append), ("fail", Mode::Fail)];
    let mode = options.choice("mode", &modes)?;
    let by = options.names("by")?.unwrap_or_default();
    if path.ends_with('/') {
        let (by, schema) = match by.is_empty() {
            true => (None, schema.clone()),
            false => Partitions::new(&by, schema).map(|(by, rest)| (Some(by), rest))?,
        };
        let folder = FolderOptions {
            mode,
            roll: options.count("roll")?.unwrap_or(ROLL),
            extension: "parquet".into(),
            partitioned: by.is_some(),
            path: path.clone(),
        };
        let make = move || match &by {
            Some(by) => by.encoder(Box::new(PassOn)),
            None => Box::new(PassOn) as Box<dyn Encoder>,
        };
        let parts = parts(&path, &schema, properties);
        return Ok(Box::new(FolderSink::open(folder, cx, Box::new(make), parts)?));
    }
    refuse_folder_options(&options, &path)?;
    if mode == Mode::Append {
        return Err(ConnectError::new("R0202", "nothing can be added to a Parquet file")
            .help("end the path with `/` for a folder of parts, to which parts can be added"));
    }
    let output = OutputOptions { path: path.clone(), mode, compression: Compression::None };
    let output = match (Place::find(&path)?, &cx.epochs) {
        (Place::File { target, claim, .. }, Some(epochs)) => {
            let target = (target, claim);
            return Ok(Box::new(JoinedSink::open(&path, mode, target, schema, properties, epochs)?));
        }
        (place, _) => Output::open_at(place, &output)?,
    };
    let name = output.name().to_string();
    let arrow = arrow_schema(schema);
    let forgets = (!output.is_file()).then(|| format!("rows that were written to `{name}` can't be taken back"));
    let writer = ArrowWriter::try_new(output, arrow.clone(), Some(properties)).map_err(|e| failed(&name, e))?;
    Ok(Box::new(ParquetSink { name, arrow, forgets, state: Mutex::new(State { writer: Some(writer), rows: 0 }) }))
}

/// Parts of rows.
pub(super) fn parts(name: &str, schema: &Schema, properties: WriterProperties) -> MakePart {
    let (name, arrow) = (name.to_string(), arrow_schema(schema));
    Box::new(move |file| {
        let writer = ArrowWriter::try_new(file, arrow.clone(), Some(properties.clone()));
        let writer = writer.map_err(|e| failed(&name, e))?;
        Ok(Box::new(ParquetPart { name: name.clone(), arrow: arrow.clone(), writer }))
    })
}

struct ParquetPart {
    name: String,
    arrow: SchemaRef,
    writer: ArrowWriter<Checked>,
}

impl PartWriter for ParquetPart {
    fn write(&mut self, encoded: Encoded) -> Result<(), ConnectError> {
        let record = record(&self.name, &self.arrow, encoded)?;
        self.writer.write(&record).map_err(|e| failed(&self.name, e))
    }

    fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    fn close(self: Box<Self>) -> Result<Checked, ConnectError> {
        let ParquetPart { name, writer, .. } = *self;
        writer.into_inner().map_err(|e| failed(&name, e))
    }
}

/// Rows in the library's form.
fn record(name: &str, arrow: &SchemaRef, encoded: Encoded) -> Result<RecordBatch, ConnectError> {
    let Encoded::Rows(batch) = encoded else {
        return Err(ConnectError::new("R0499", "a Parquet file takes rows, not bytes"));
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    RecordBatch::try_new_with_options(Arc::clone(arrow), batch.columns, &options)
        .map_err(|e| ConnectError::new("R0205", format!("can't write `{name}`: {e}")))
}

/// What went wrong: a failed write by its cause, anything else as the library says it.
pub(super) fn failed(name: &str, error: ParquetError) -> ConnectError {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => io_error("write", name, &cause),
            Err(other) => ConnectError::new("R0205", format!("can't write `{name}`: {other}")),
        },
        other => ConnectError::new("R0205", format!("can't write `{name}`: {other}")),
    }
}

struct ParquetSink {
    name: String,
    arrow: SchemaRef,
    /// Why it can't take rows back, if it can't.
    forgets: Option<String>,
    state: Mutex<State>,
}

struct State {
    writer: Option<ArrowWriter<Output>>,
    rows: u64,
}

/// Rows are encoded where they are written.
pub(super) struct PassOn;

impl Encoder for PassOn {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let rows = batch.rows as u64;
        Ok((Encoded::Rows(batch), rows))
    }
}

impl ParquetSink {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A task that panicked while writing ends the job: what is left is to abort.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for ParquetSink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(Box::new(PassOn))
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        let record = record(&self.name, &self.arrow, encoded)?;
        let mut state = self.state();
        state.writer.as_mut().ok_or_else(closed)?.write(&record).map_err(|e| failed(&self.name, e))?;
        state.rows += rows;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let mut state = self.state();
        let writer = state.writer.take().ok_or_else(closed)?;
        let output = writer.into_inner().map_err(|e| failed(&self.name, e))?;
        let bytes = output.finish()?;
        Ok(SinkSummary { target: Some(self.name.clone()), rows: state.rows, bytes })
    }

    fn abort(&self) {
        // Dropping an unfinished output removes it.
        self.state().writer = None;
    }
    fn epochs(&self) -> Result<(), String> {
        self.forgets.clone().map_or(Ok(()), Err)
    }
}
