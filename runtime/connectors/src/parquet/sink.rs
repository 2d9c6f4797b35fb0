//! The Parquet sink. Encoding a column of a row group needs all its values in order, so rows are put into the columns' lanes where they are
//! written, and encoded by all tasks that bring more.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use dfc_batch::{Batch, RowError, arrow_schema};
use dfc_ir::Schema;
use dfc_ir::plan::SinkSpec;
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{Compression as Codec, Encoding, GzipLevel, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

use super::epochs::JoinedSink;
use super::lanes::Lanes;
use super::writer::Writer;
use crate::files::{
    Checked, Compression, FolderOptions, FolderSink, MakePart, Mode, Output, OutputOptions, PartWriter, Partitions,
    Place, ROLL, io_error, refuse_folder_options,
};
use crate::options::OptionReader;
use crate::text::sink::closed;
use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink, SinkSummary};

/// Bytes of the largest dictionary of numbers.
const NUMBERS: usize = 256 << 10;

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
        .set_created_by(concat!("dfc ", env!("CARGO_PKG_VERSION")).into());
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
        let lanes = Lanes::new(&path, schema.len(), cx.tasks);
        let properties = encodings(properties, &path, &schema)?;
        let parts = parts(&path, &schema, properties, &lanes, Some(folder.roll));
        let make = move || match &by {
            Some(by) => by.encoder(Box::new(PassOn(lanes.clone()))),
            None => Box::new(PassOn(lanes.clone())) as Box<dyn Encoder>,
        };
        return Ok(Box::new(FolderSink::open(folder, cx, Box::new(make), parts)?));
    }
    refuse_folder_options(&options, &path)?;
    if mode == Mode::Append {
        return Err(ConnectError::new("R0202", "nothing can be added to a Parquet file")
            .help("end the path with `/` for a folder of parts, to which parts can be added"));
    }
    let properties = encodings(properties, &path, schema)?;
    let output = OutputOptions { path: path.clone(), mode, compression: Compression::None };
    let output = match (Place::find(&path)?, &cx.epochs) {
        (Place::File { target, claim, .. }, Some(epochs)) => {
            let target = (target, claim);
            return Ok(Box::new(JoinedSink::open(&path, mode, target, schema, properties, epochs, cx.tasks)?));
        }
        (place, _) => Output::open_at(place, &output)?,
    };
    let name = output.name().to_string();
    let arrow = arrow_schema(schema);
    let forgets = (!output.is_file()).then(|| format!("rows that were written to `{name}` can't be taken back"));
    let lanes = Lanes::new(&name, schema.len(), cx.tasks);
    let writer = Writer::new(&name, output, arrow.clone(), properties, lanes.clone(), None)?;
    Ok(Box::new(ParquetSink {
        name,
        arrow,
        forgets,
        lanes,
        state: Mutex::new(State { writer: Some(writer), rows: 0 }),
    }))
}

/// What columns have where they have no dictionary (any more). Whole numbers, and what is stored as such: a dictionary only while it is small,
/// then differences packed into bits, which are a fraction of the plain numbers for the compression to chew on, and for the file to hold.
/// Texts: one after the other behind their lengths, which are packed in the same way.
fn encodings(
    properties: WriterPropertiesBuilder,
    name: &str,
    schema: &Schema,
) -> Result<WriterProperties, ConnectError> {
    let parquet = ArrowSchemaConverter::new().convert(&arrow_schema(schema)).map_err(|e| failed(name, e))?;
    let set = parquet.columns().iter().fold(properties, |properties, column| {
        let path = column.path();
        match column.physical_type() {
            Physical::INT32 | Physical::INT64 => properties
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_page_size_limit(path.clone(), NUMBERS),
            Physical::BYTE_ARRAY => properties.set_column_encoding(path.clone(), Encoding::DELTA_LENGTH_BYTE_ARRAY),
            _ => properties,
        }
    });
    Ok(set.build())
}

/// Parts of rows, closed at about `roll` bytes.
pub(super) fn parts(
    name: &str,
    schema: &Schema,
    properties: WriterProperties,
    lanes: &Arc<Lanes>,
    roll: Option<u64>,
) -> MakePart {
    let (name, arrow, lanes) = (name.to_string(), arrow_schema(schema), lanes.clone());
    Box::new(move |file| {
        let writer = Writer::new(&name, file, arrow.clone(), properties.clone(), lanes.clone(), roll)?;
        Ok(Box::new(ParquetPart { name: name.clone(), arrow: arrow.clone(), writer }))
    })
}

struct ParquetPart {
    name: String,
    arrow: SchemaRef,
    writer: Writer<Checked>,
}

impl PartWriter for ParquetPart {
    fn write(&mut self, encoded: Encoded) -> Result<(), ConnectError> {
        let record = record(&self.name, &self.arrow, encoded)?;
        self.writer.write(record.columns(), record.num_rows())
    }

    fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    fn close(self: Box<Self>) -> Result<Checked, ConnectError> {
        self.writer.close()
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
    lanes: Arc<Lanes>,
    state: Mutex<State>,
}

struct State {
    writer: Option<Writer<Output>>,
    rows: u64,
}

/// Rows go on as they are; before, some of those that wait are encoded.
pub(super) struct PassOn(pub(super) Arc<Lanes>);

impl Encoder for PassOn {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        self.0.help()?;
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
        Ok(Box::new(PassOn(self.lanes.clone())))
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        let record = record(&self.name, &self.arrow, encoded)?;
        let mut state = self.state();
        state.writer.as_mut().ok_or_else(closed)?.write(record.columns(), record.num_rows())?;
        state.rows += rows;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let mut state = self.state();
        let writer = state.writer.take().ok_or_else(closed)?;
        let bytes = writer.close()?.finish()?;
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
