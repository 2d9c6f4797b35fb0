//! Keys, one after another, in chunks that never move: of any length, or all of one. What was written is never changed, so a freeze shares it and copies nothing
//! (D11, D13). It may not know what the bytes mean.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of the first chunk; each further one has twice as many, up to the largest.
const FIRST: usize = 4 * 1024;
const LARGEST: usize = 1024 * 1024;

/// Memory of which only the arena writes what lies behind all that anybody reads.
struct Chunk {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: bytes are read only where they were written before the reader came to know of them, and are never written again.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn layout(capacity: usize) -> Layout {
        // Can't fail: bytes need no alignment, and nobody asks for more than the address space.
        Layout::array::<u8>(capacity).expect("a chunk fits the address space")
    }

    /// `capacity` isn't 0.
    fn new(capacity: usize) -> Chunk {
        let layout = Self::layout(capacity);
        // SAFETY: the layout's size isn't 0.
        let start = unsafe { alloc(layout) };
        Chunk { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), capacity }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and given up nowhere else.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity)) }
    }
}

/// Where something lies in an [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    chunk: u32,
    offset: u32,
}

/// Pieces of bytes that are added and never changed or removed.
#[derive(Default)]
pub struct Arena {
    /// Each with its bytes that were written.
    chunks: Vec<(Arc<Chunk>, usize)>,
}

impl Arena {
    /// Adds these bytes, which will lie together.
    pub fn add(&mut self, bytes: &[u8]) -> Place {
        let free = self.chunks.last().map_or(0, |(chunk, used)| chunk.capacity - used);
        if free < bytes.len() || self.chunks.is_empty() {
            let next = self.chunks.last().map_or(FIRST, |(chunk, _)| (chunk.capacity * 2).min(LARGEST));
            self.chunks.push((Arc::new(Chunk::new(next.max(bytes.len()))), 0));
        }
        let number = self.chunks.len() - 1;
        let (chunk, used) = &mut self.chunks[number];
        // SAFETY: so many bytes are free there, and only this value, which is borrowed alone, knows of them.
        unsafe { chunk.start.as_ptr().add(*used).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
        // A chunk is larger than `LARGEST` only for one piece alone, which begins at 0.
        let place = Place { chunk: number as u32, offset: *used as u32 };
        *used += bytes.len();
        place
    }

    /// So many bytes from a place on.
    ///
    /// Panics if not so many were written there.
    #[inline]
    pub fn get(&self, place: Place, len: usize) -> &[u8] {
        let (chunk, used) = &self.chunks[place.chunk as usize];
        let offset = place.offset as usize;
        assert!(offset + len <= *used, "{len} bytes at {offset} of {used}");
        // SAFETY: these bytes were written, and are never written again.
        unsafe { std::slice::from_raw_parts(chunk.start.as_ptr().add(offset), len) }
    }

    /// Where the next bytes come, or a place before it.
    pub fn end(&self) -> Place {
        let offset = self.chunks.last().map_or(0, |(_, used)| *used as u32);
        Place { chunk: self.chunks.len().saturating_sub(1) as u32, offset }
    }

    /// All that was added from a place on (`None`: from the beginning), as it is for ever.
    pub fn freeze(&self, from: Option<Place>) -> FrozenBytes {
        let from = from.unwrap_or(Place { chunk: 0, offset: 0 });
        let chunks = self.chunks.iter().enumerate().skip(from.chunk as usize).map(|(number, (chunk, used))| {
            let start = if number == from.chunk as usize { from.offset as usize } else { 0 };
            (chunk.clone(), start, *used)
        });
        FrozenBytes { parts: chunks.filter(|(_, start, end)| start < end).collect() }
    }

    /// Bytes of memory that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|(chunk, _)| chunk.capacity).sum()
    }
}

/// Pieces of a chunk.
const PIECES: usize = 4096;
/// Of the first one, as most tables are small: it is moved to a larger one until it has as many as the others.
const FIRST_PIECES: usize = 64;

/// Pieces of one length that are added and never changed or removed, found by their numbers.
pub(crate) struct Pieces {
    chunks: Vec<Arc<Chunk>>,
    /// Bytes of a piece; not 0.
    width: usize,
    count: usize,
    /// Pieces that the chunks have room for.
    room: usize,
}

impl Pieces {
    /// No piece yet. `width` isn't 0.
    pub fn new(width: usize) -> Pieces {
        Pieces { chunks: Vec::new(), width, count: 0, room: 0 }
    }

    /// Number of pieces.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a piece.
    ///
    /// Panics if it hasn't the length of all.
    #[inline]
    pub fn push(&mut self, piece: &[u8]) {
        assert_eq!(piece.len(), self.width);
        if self.count == self.room {
            self.grow();
        }
        let chunk = &self.chunks[self.count / PIECES];
        // SAFETY: the chunk has room for this piece, and only this value, which is borrowed alone, knows of it.
        unsafe {
            let to = chunk.start.as_ptr().add(self.count % PIECES * self.width);
            to.copy_from_nonoverlapping(piece.as_ptr(), piece.len());
        }
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.count < PIECES;
        let pieces = if first { (self.count * 2).clamp(FIRST_PIECES, PIECES) } else { PIECES };
        let chunk = Chunk::new(pieces * self.width);
        if first && let Some(smaller) = self.chunks.pop() {
            // SAFETY: so many bytes were written in the smaller one; the other has room for them, and nobody else knows of it yet. Whoever
            // shares the smaller one keeps it as it is.
            unsafe { chunk.start.as_ptr().copy_from_nonoverlapping(smaller.start.as_ptr(), self.count * self.width) }
        }
        self.room += pieces - if first { self.count } else { 0 };
        self.chunks.push(Arc::new(chunk));
    }

    /// A piece.
    ///
    /// Panics if there are not so many.
    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        assert!(number < self.count, "piece {number} of {}", self.count);
        let chunk = &self.chunks[number / PIECES];
        // SAFETY: these bytes were written, and are never written again.
        unsafe { std::slice::from_raw_parts(chunk.start.as_ptr().add(number % PIECES * self.width), self.width) }
    }

    /// All that were added from a number on, as they are for ever.
    pub fn freeze(&self, from: usize) -> FrozenBytes {
        let chunks = self.chunks.iter().zip((0..).step_by(PIECES)).skip(from / PIECES);
        let parts = chunks.map(|(chunk, first)| {
            let (start, end) = (from.saturating_sub(first), (self.count - first).min(PIECES));
            (chunk.clone(), start * self.width, end * self.width)
        });
        FrozenBytes { parts: parts.filter(|(_, start, end)| start < end).collect() }
    }

    /// Bytes of memory that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.room * self.width
    }
}

/// Bytes that an [`Arena`] held when it was frozen. No piece that was added lies in two parts.
pub struct FrozenBytes {
    /// Chunks, each with the first byte that belongs here and the one behind the last.
    parts: Vec<(Arc<Chunk>, usize, usize)>,
}

impl FrozenBytes {
    /// Its parts, in the order in which they were written.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|(chunk, start, end)| {
            // SAFETY: these bytes were written before the freeze, and are never written again.
            unsafe { std::slice::from_raw_parts(chunk.start.as_ptr().add(*start), end - start) }
        })
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|(_, start, end)| end - start).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Takes the first `bytes` bytes out, or all.
    pub fn take_front(&mut self, bytes: usize) -> FrozenBytes {
        let mut taken = Vec::new();
        let mut left = bytes;
        self.parts.retain_mut(|(chunk, start, end)| {
            let part = left.min(*end - *start);
            if part > 0 {
                taken.push((chunk.clone(), *start, *start + part));
            }
            *start += part;
            left -= part;
            start < end
        });
        FrozenBytes { parts: taken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: usize) -> Vec<u8> {
        vec![number as u8; number * 7919 % 300]
    }

    /// What was frozen stays what it was, whatever is added meanwhile, and from freeze to freeze nothing is missing.
    #[test]
    fn what_is_frozen_stays() {
        let mut arena = Arena::default();
        let mut places = Vec::new();
        let (mut from, mut frozen, mut since) = (None, Vec::new(), Vec::new());
        for number in 0..20_000 {
            let bytes = if number == 777 { vec![1; 3 * LARGEST] } else { piece(number) };
            since.extend_from_slice(&bytes);
            places.push((arena.add(&bytes), bytes));
            if number % 1_234 == 5 {
                frozen.push((arena.freeze(from), std::mem::take(&mut since)));
                from = Some(arena.end());
            }
        }
        assert!(arena.chunks.len() > 5);
        for (place, bytes) in &places {
            assert_eq!(arena.get(*place, bytes.len()), bytes);
        }
        drop(arena);
        for (mut bytes, expected) in frozen {
            assert_eq!(bytes.len(), expected.len());
            let front = bytes.take_front(expected.len() / 3);
            let all: Vec<u8> = front.parts().chain(bytes.parts()).flatten().copied().collect();
            assert!(all == expected);
        }
    }

    /// The same of pieces of one length, the first of which are moved while there are few.
    #[test]
    fn pieces_that_are_frozen_stay() {
        for width in [1, 8, 13] {
            let piece = |number: usize| -> Vec<u8> { (0..width).map(|k| (number * 31 + k) as u8).collect() };
            let mut pieces = Pieces::new(width);
            let (mut from, mut frozen, mut since) = (0, Vec::new(), Vec::new());
            for number in 0..3 * PIECES + 7 {
                pieces.push(&piece(number));
                since.extend_from_slice(&piece(number));
                if number.is_power_of_two() || number % 1_234 == 5 || number % PIECES == 0 {
                    frozen.push((pieces.freeze(from), std::mem::take(&mut since)));
                    from = pieces.len();
                    assert!(pieces.freeze(from).is_empty());
                }
            }
            assert!((0..pieces.len()).all(|number| pieces.get(number) == piece(number)));
            assert_eq!(pieces.memory_bytes(), 4 * PIECES * width);
            drop(pieces);
            for (mut bytes, expected) in frozen {
                assert_eq!(bytes.len(), expected.len());
                let front = bytes.take_front(expected.len() / 3);
                let all: Vec<u8> = front.parts().chain(bytes.parts()).flatten().copied().collect();
                assert!(all == expected);
            }
        }
    }

    #[test]
    fn nothing_is_in_an_empty_one() {
        let mut arena = Arena::default();
        assert!(arena.freeze(None).is_empty() && arena.freeze(Some(arena.end())).is_empty());
        let empty = arena.add(&[]);
        assert_eq!(arena.get(empty, 0), &[] as &[u8]);
        assert_eq!(arena.freeze(None).len(), 0);
    }
}
