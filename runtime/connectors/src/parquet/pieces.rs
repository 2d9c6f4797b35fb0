//! A file as the Parquet library reads it: by column chunk, each from front to back, a page's head and then the page. What is read is kept
//! a piece at a time for each of the columns, so that a head costs no call and a page no copy.

use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// Bytes of the first piece of a column, and of one that doesn't follow what was read before: enough for a page's head.
const FIRST: usize = 16 << 10;
/// Bytes of the largest.
const MOST: usize = 512 << 10;

/// Bytes of one file for readers of one row group.
#[derive(Clone)]
pub(super) struct Pieces(Arc<Inner>);

struct Inner {
    file: File,
    length: u64,
    /// For each column chunk where it begins and ends, ascending, and the piece that is held.
    chunks: Vec<(u64, u64, Mutex<Piece>)>,
}

#[derive(Default)]
struct Piece {
    start: u64,
    bytes: Bytes,
    /// Bytes to read next, if what is wanted follows.
    next: usize,
}

impl Pieces {
    /// Of column chunks that stand there.
    pub(super) fn new(file: File, chunks: impl Iterator<Item = (u64, u64)>) -> std::io::Result<Pieces> {
        let length = file.metadata()?.len();
        let mut chunks: Vec<_> =
            chunks.map(|(start, length)| (start, start.saturating_add(length), Mutex::default())).collect();
        chunks.sort_by_key(|(start, ..)| *start);
        Ok(Pieces(Arc::new(Inner { file, length, chunks })))
    }

    fn read(&self, start: u64, length: usize) -> std::io::Result<Bytes> {
        let left = usize::try_from(self.0.length.saturating_sub(start)).unwrap_or(usize::MAX);
        if length > left {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = Vec::with_capacity(length);
        let mut at = At { file: &self.0.file, place: start };
        (&mut at).take(length as u64).read_to_end(&mut bytes)?;
        match bytes.len() == length {
            true => Ok(bytes.into()),
            false => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// At least `least` bytes from `start` on, or up to the column chunk's end if `least` is 0.
    fn from(&self, start: u64, least: usize) -> std::io::Result<Bytes> {
        let chunk = self.0.chunks.partition_point(|(from, ..)| *from <= start).checked_sub(1);
        let Some((_, end, piece)) = chunk.map(|chunk| &self.0.chunks[chunk]).filter(|(_, end, _)| start < *end) else {
            return self.read(start, least.max(1));
        };
        let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
        let held = start.checked_sub(piece.start).and_then(|skip| usize::try_from(skip).ok());
        let held = held.filter(|&skip| skip <= piece.bytes.len());
        if let Some(skip) = held
            && piece.bytes.len() - skip >= least.max(1)
        {
            return Ok(piece.bytes.slice(skip..));
        }
        let left = usize::try_from((*end).min(self.0.length).saturating_sub(start)).unwrap_or(usize::MAX);
        let wanted = if held.is_some() { piece.next } else { FIRST };
        let bytes = self.read(start, wanted.clamp(least.max(FIRST), MOST.max(least)).min(left.max(least)))?;
        *piece = Piece { start, bytes: bytes.clone(), next: (2 * wanted.max(FIRST)).min(MOST) };
        Ok(bytes)
    }
}

/// Reads on from a place.
struct At<'f> {
    file: &'f File,
    place: u64,
}

impl Read for At<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(to, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

/// Reads from a place on, as far as that is wanted.
pub(super) struct Onward {
    pieces: Pieces,
    place: u64,
    bytes: Cursor<Bytes>,
}

impl Read for Onward {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.bytes.position() as usize >= self.bytes.get_ref().len() && !to.is_empty() {
            if self.place >= self.pieces.0.length {
                return Ok(0);
            }
            self.bytes = Cursor::new(self.pieces.from(self.place, 0)?);
        }
        let read = self.bytes.read(to)?;
        self.place += read as u64;
        Ok(read)
    }
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.0.length
    }
}

impl ChunkReader for Pieces {
    type T = Onward;

    fn get_read(&self, start: u64) -> Result<Onward, ParquetError> {
        Ok(Onward { pieces: self.clone(), place: start, bytes: Cursor::new(Bytes::new()) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.from(start, length)?.slice(..length))
    }
}
