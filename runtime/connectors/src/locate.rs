//! Places of rows in a chunk of a text file, for messages. It may not know the format: the reader says how long a row is.

use std::sync::Arc;

use arrow_buffer::Buffer;
use dfc_batch::{Locate, Place};

/// Longest raw text of a row that a message carries, in bytes.
const RAW_LIMIT: usize = 64 << 10;

/// A piece of a text file that holds whole rows.
#[derive(Clone)]
pub(crate) struct Chunk {
    /// Number of the chunk in the whole source, from 0.
    pub seq: u64,
    /// The text.
    pub text: Buffer,
    /// The file as the user would name it.
    pub file: Arc<str>,
    /// Offset of the first byte in the (decompressed) file; `None` where the text was decoded from another encoding.
    pub offset: Option<u64>,
    /// Line of the first byte, from 1.
    pub line: u64,
}

impl Chunk {
    /// The place of the row that starts at byte `start` of the text.
    pub(crate) fn place(&self, start: usize) -> Place {
        let before = &self.text[..start.min(self.text.len())];
        Place {
            source: self.file.to_string(),
            offset: self.offset.map(|o| o + start as u64),
            line: Some(self.line + memchr::memchr_iter(b'\n', before).count() as u64),
            row: None,
        }
    }

    /// The text from `start` to `end` without its line end, shortened where it is huge.
    pub(crate) fn raw(&self, start: usize, end: usize) -> String {
        let mut row = &self.text[start..end.clamp(start, self.text.len())];
        row = row.strip_suffix(b"\n").map_or(row, |r| r.strip_suffix(b"\r").unwrap_or(r));
        let mut text = String::from_utf8_lossy(&row[..row.len().min(RAW_LIMIT)]).into_owned();
        if row.len() > RAW_LIMIT {
            text.push('…');
        }
        text
    }
}

/// Locates the rows of a batch that was read from a chunk.
pub(crate) struct ChunkRows<F> {
    /// The chunk, kept while its rows live.
    pub chunk: Chunk,
    /// Start of each row of the batch in the chunk's text.
    pub starts: Vec<u32>,
    /// Where the row that starts there ends.
    pub row_end: F,
}

impl<F: Fn(&[u8], usize) -> usize + Send + Sync> Locate for ChunkRows<F> {
    fn place(&self, row: usize) -> Place {
        self.chunk.place(self.starts[row] as usize)
    }

    fn raw(&self, row: usize) -> Option<String> {
        let start = self.starts[row] as usize;
        Some(self.chunk.raw(start, (self.row_end)(&self.chunk.text, start)))
    }
}

/// Locates rows that have a number rather than a line.
pub(crate) struct NumberedRows {
    /// The file or source as the user would name it.
    pub source: Arc<str>,
    /// Number of the batch's first row, from 1.
    pub first: u64,
}

impl Locate for NumberedRows {
    fn place(&self, row: usize) -> Place {
        Place { source: self.source.to_string(), row: Some(self.first + row as u64), ..Place::default() }
    }

    fn raw(&self, _row: usize) -> Option<String> {
        None
    }
}
