//! Writes a Parquet file: cuts rows into row groups, whose columns go through [`Lanes`], and appends groups that are whole, in order. What
//! is written depends on the rows alone, not on who encodes what when.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::lanes::{Group, Lanes};
use super::sink::failed;
use crate::ConnectError;

/// Rows after which a file's size is looked at, at most.
const MEASURE: u64 = 64 << 10;

/// A file that is being written.
pub(super) struct Writer<W: Write + Send> {
    name: String,
    arrow: SchemaRef,
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    lanes: Arc<Lanes>,
    /// The row group that is open, with its rows.
    group: Option<(Group, usize)>,
    /// Rows of a row group.
    most: usize,
    measured: Option<Measured>,
}

/// For a file whose size decides something: looked at only where all rows are encoded, so that it is that of the rows alone.
struct Measured {
    /// After so many rows.
    every: u64,
    rows: u64,
    /// Bytes of the open group then.
    bytes: usize,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file. `roll`: it will be closed at about so many bytes.
    ///
    /// # Errors
    /// When nothing can be written.
    pub(super) fn new(
        name: &str,
        out: W,
        arrow: SchemaRef,
        properties: WriterProperties,
        lanes: Arc<Lanes>,
        roll: Option<u64>,
    ) -> Result<Self, ConnectError> {
        let most = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        // The library's own writer knows how types are written down.
        let begun =
            ArrowWriter::try_new(out, arrow.clone(), Some(properties)).and_then(ArrowWriter::into_serialized_writer);
        let (file, factory) = begun.map_err(|e| failed(name, e))?;
        let columns = arrow.fields().len().max(1) as u64;
        // No value takes less than a bit, few take less than two bytes.
        let every = |roll: u64| (roll / 8 / 2 / columns).clamp(1, MEASURE);
        let measured = roll.map(|roll| Measured { every: every(roll), rows: 0, bytes: 0 });
        Ok(Writer { name: name.into(), arrow, file, factory, lanes, group: None, most, measured })
    }

    /// Takes rows: their columns, all of `rows` rows.
    ///
    /// # Errors
    /// When they can't be encoded or written.
    pub(super) fn write(&mut self, columns: &[ArrayRef], rows: usize) -> Result<(), ConnectError> {
        let mut from = 0;
        while from < rows {
            let (group, has) = match self.group.take() {
                Some(open) => open,
                None => (self.begin().map_err(|e| failed(&self.name, e))?, 0),
            };
            let some = (rows - from).min(self.most - has);
            let slices: Vec<ArrayRef> = match some == rows {
                true => columns.to_vec(),
                false => columns.iter().map(|column| column.slice(from, some)).collect(),
            };
            let put = self.lanes.put(&group, &slices);
            self.group = Some((group, has + some));
            put?;
            from += some;
            if has + some == self.most {
                self.flush()?;
            }
        }
        if let Some(measured) = &mut self.measured {
            measured.rows += rows as u64;
            if measured.rows >= measured.every {
                let group = self.group.as_ref();
                measured.bytes = group.map_or(Ok(0), |(group, _)| self.lanes.settle(group))?;
                measured.rows = 0;
            }
        }
        Ok(())
    }

    /// Bytes so far, about.
    pub(super) fn bytes(&self) -> u64 {
        let open = match (&self.measured, &self.group) {
            (_, None) => 0,
            (Some(measured), Some(_)) => measured.bytes,
            (None, Some((group, _))) => self.lanes.bytes(group),
        };
        (self.file.bytes_written() + open) as u64
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When what is left can't be written.
    pub(super) fn close(mut self) -> Result<W, ConnectError> {
        self.flush()?;
        let Writer { name, file, .. } = self;
        file.into_inner().map_err(|e| failed(&name, e))
    }

    /// Opens the lanes of a row group.
    fn begin(&mut self) -> Result<Group, ParquetError> {
        let number = self.file.flushed_row_groups().len();
        let mut columns: Vec<_> = self.arrow.fields().iter().map(|field| (field.clone(), Vec::new())).collect();
        let schema = self.file.schema_descr();
        for (leaf, writer) in self.factory.create_column_writers(number)?.into_iter().enumerate() {
            columns[schema.get_column_root_idx(leaf)].1.push(writer);
        }
        Ok(self.lanes.open(columns))
    }

    /// Ends the open row group.
    fn flush(&mut self) -> Result<(), ConnectError> {
        let Some((group, _)) = self.group.take() else { return Ok(()) };
        if let Some(measured) = &mut self.measured {
            measured.bytes = 0;
        }
        let chunks = self.lanes.close(&group)?;
        let append = || {
            let mut writer = self.file.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut writer)?;
            }
            writer.close().map(|_| ())
        };
        append().map_err(|e| failed(&self.name, e))
    }
}
