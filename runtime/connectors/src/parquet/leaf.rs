//! What writes a leaf of a Parquet file's columns: [`Column`], or the library's writer for what that leaves to it. It may not know which rows
//! belong together.

use std::io::Write;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;

use super::column::{self, Column};

/// A leaf's writer.
pub(super) enum LeafWriter {
    Own(Box<Column>),
    Library(Box<ArrowColumnWriter>),
}

/// A leaf's column chunk.
pub(super) enum LeafChunk {
    Own(column::Chunk),
    Library(ArrowColumnChunk),
}

impl LeafWriter {
    /// Bytes so far, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            LeafWriter::Own(column) => column.bytes(),
            LeafWriter::Library(writer) => writer.get_estimated_total_bytes(),
        }
    }

    /// Ends the chunk.
    ///
    /// # Errors
    /// When what is left can't be encoded.
    pub(super) fn close(self) -> Result<LeafChunk, ParquetError> {
        Ok(match self {
            LeafWriter::Own(column) => LeafChunk::Own(column.close()?),
            LeafWriter::Library(writer) => LeafChunk::Library(writer.close()?),
        })
    }
}

impl LeafChunk {
    /// Appends it to a row group.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn append<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        match self {
            LeafChunk::Own(chunk) => chunk.append(group),
            LeafChunk::Library(chunk) => chunk.append_to_row_group(group),
        }
    }
}

/// Gives the values of a root column to the writers of its leaves.
///
/// # Errors
/// When they can't be encoded.
pub(super) fn write(field: &FieldRef, array: &ArrayRef, writers: &mut [LeafWriter]) -> Result<(), ParquetError> {
    if let [LeafWriter::Own(column)] = writers {
        return column.write(array);
    }
    for (leaf, writer) in compute_leaves(field, array)?.iter().zip(writers) {
        match writer {
            LeafWriter::Library(writer) => writer.write(leaf)?,
            // Only a column without others is written by one of its own.
            LeafWriter::Own(column) => column.write(array)?,
        }
    }
    Ok(())
}
