//! Writes a Parquet file: cuts rows into row groups, whose columns go through [`Lanes`], and appends groups that are whole, in order. What
//! is written depends on the rows alone, not on who encodes what when. How columns are written down is chosen by the first rows ([`choose`]),
//! which are held until then.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::choice::{SAMPLE, choose};
use super::column::Column;
use super::lanes::{Group, Lanes};
use super::leaf::{LeafChunk, LeafWriter};
use super::sink::failed;
use crate::ConnectError;
use crate::files::io_error;

/// Rows after which a file's size is looked at, at most.
const MEASURE: u64 = 64 << 10;
/// Bytes that are written at once, at least: the library copies column chunks in smaller pieces.
const AT_ONCE: usize = 256 << 10;

/// A file that is being written.
pub(super) struct Writer<W: Write + Send> {
    name: String,
    arrow: SchemaRef,
    file: SerializedFileWriter<BufWriter<W>>,
    given: WriterProperties,
    /// Makes the columns' writers, by these properties; `None`: it isn't chosen yet how.
    factory: Option<(ArrowRowGroupWriterFactory, WriterProperties)>,
    /// The rows by which that will be chosen: their columns, and how many they are.
    held: Vec<(Vec<ArrayRef>, usize)>,
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
        let out = BufWriter::with_capacity(AT_ONCE, out);
        let begun = ArrowWriter::try_new(out, arrow.clone(), Some(properties.clone()))
            .and_then(ArrowWriter::into_serialized_writer);
        let (file, _) = begun.map_err(|e| failed(name, e))?;
        let columns = arrow.fields().len().max(1) as u64;
        // No value takes less than a bit, few take less than two bytes.
        let every = |roll: u64| (roll / 8 / 2 / columns).clamp(1, MEASURE);
        let measured = roll.map(|roll| Measured { every: every(roll), rows: 0, bytes: 0 });
        let (given, factory, held) = (properties, None, Vec::new());
        Ok(Writer { name: name.into(), arrow, file, given, factory, held, lanes, group: None, most, measured })
    }

    /// Takes rows: their columns, all of `rows` rows.
    ///
    /// # Errors
    /// When they can't be encoded or written.
    pub(super) fn write(&mut self, columns: &[ArrayRef], rows: usize) -> Result<(), ConnectError> {
        if self.factory.is_some() {
            return self.put(columns, rows);
        }
        self.held.push((columns.to_vec(), rows));
        let held: usize = self.held.iter().map(|(_, rows)| rows).sum();
        match held < SAMPLE && self.lanes.chosen.get().is_none() {
            true => Ok(()),
            false => self.release(),
        }
    }

    /// Chooses how columns are written down, if that is possible yet, and takes the rows that were held.
    fn release(&mut self) -> Result<(), ConnectError> {
        let held = std::mem::take(&mut self.held);
        let chosen = match self.lanes.chosen.get() {
            Some(chosen) => chosen.clone(),
            None => {
                let chosen = self.choose(&held).map_err(|e| failed(&self.name, e))?;
                chosen.map_or_else(|| self.given.clone(), |chosen| self.lanes.chosen.get_or_init(|| chosen).clone())
            }
        };
        // Column writers come from a file writer with their properties; where that one's bytes would go is no matter.
        let factory = ArrowWriter::try_new(std::io::sink(), self.arrow.clone(), Some(chosen.clone()))
            .and_then(ArrowWriter::into_serialized_writer);
        self.factory = Some((factory.map_err(|e| failed(&self.name, e))?.1, chosen));
        held.into_iter().try_for_each(|(columns, rows)| self.put(&columns, rows))
    }

    /// By the first rows, if there are enough of them.
    fn choose(&self, held: &[(Vec<ArrayRef>, usize)]) -> Result<Option<WriterProperties>, ParquetError> {
        let mut first: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.arrow.fields().len()];
        let mut left = SAMPLE;
        for (columns, rows) in held {
            let some = left.min(*rows);
            columns.iter().zip(&mut first).for_each(|(column, first)| first.push(column.slice(0, some)));
            left -= some;
        }
        if left > 0 || first.is_empty() {
            return Ok(None);
        }
        let joined = first.iter().map(|pieces| {
            let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
            concat(&pieces)
        });
        let columns: Vec<ArrayRef> = joined.collect::<Result<_, _>>()?;
        choose(&self.arrow, &self.given, &columns).map(Some)
    }

    fn put(&mut self, columns: &[ArrayRef], rows: usize) -> Result<(), ConnectError> {
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
                self.flush(Lanes::close)?;
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
        if !self.held.is_empty() {
            self.release()?;
        }
        self.flush(Lanes::close_last)?;
        let Writer { name, file, .. } = self;
        let out = file.into_inner().map_err(|e| failed(&name, e))?;
        out.into_inner().map_err(|e| io_error("write", &name, e.error()))
    }

    /// Opens the lanes of a row group.
    fn begin(&mut self) -> Result<Group, ParquetError> {
        let number = self.file.flushed_row_groups().len();
        let mut columns: Vec<_> = self.arrow.fields().iter().map(|field| (field.clone(), Vec::new())).collect();
        let schema = self.file.schema_descr();
        let Some((factory, properties)) = &self.factory else { return Ok(self.lanes.open(columns)) };
        for (leaf, writer) in factory.create_column_writers(number)?.into_iter().enumerate() {
            let root = schema.get_column_root_idx(leaf);
            let own = Column::new(&schema.column(leaf), self.arrow.field(root).data_type(), properties);
            columns[root]
                .1
                .push(own.map_or_else(|| LeafWriter::Library(Box::new(writer)), |own| LeafWriter::Own(Box::new(own))));
        }
        Ok(self.lanes.open(columns))
    }

    /// Ends the open row group, whose lanes are closed so.
    fn flush(
        &mut self,
        close: impl Fn(&Lanes, &Group) -> Result<Vec<LeafChunk>, ConnectError>,
    ) -> Result<(), ConnectError> {
        let Some((group, _)) = self.group.take() else { return Ok(()) };
        if let Some(measured) = &mut self.measured {
            measured.bytes = 0;
        }
        let chunks = close(&self.lanes, &group)?;
        let append = || {
            let mut writer = self.file.next_row_group()?;
            for chunk in chunks {
                chunk.append(&mut writer)?;
            }
            writer.close().map(|_| ())
        };
        append().map_err(|e| failed(&self.name, e))
    }
}
