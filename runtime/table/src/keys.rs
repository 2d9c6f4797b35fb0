//! Keys by their numbers. Keys of one length lie side by side, and their hashes are computed when somebody asks;
//! of others it is noted where they lie, and their hashes. It may not know what keys mean.

use crate::arena::{Arena, FrozenBytes, Pieces, Place};
use crate::key::hash_key;

/// Keys that are looked at together.
pub(crate) const AT_ONCE: usize = 64;

struct Entry {
    hash: u64,
    /// Where its key lies in the arena.
    key: Place,
    /// Bytes of its key.
    len: u32,
}

/// Entries of a block.
const BLOCK: usize = 4096;

/// Entries in blocks: more of them need no other place for those before, and no more memory than a block beyond their own.
#[derive(Default)]
struct Entries {
    blocks: Vec<Vec<Entry>>,
    count: usize,
}

impl Entries {
    fn push(&mut self, entry: Entry) {
        if self.count.is_multiple_of(BLOCK) {
            // The first grows, as most tables are small.
            self.blocks.push(Vec::with_capacity(if self.count == 0 { 0 } else { BLOCK }));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(entry);
        }
        self.count += 1;
    }

    #[inline]
    fn get(&self, number: usize) -> &Entry {
        &self.blocks[number / BLOCK][number % BLOCK]
    }
}

enum Form {
    /// All of one length.
    Even(Pieces),
    Uneven(Entries, Arena),
}

/// Keys by number.
pub(crate) struct Keys(Form);

impl Keys {
    /// None yet. `width`: bytes of every key, if they all have as many.
    pub fn new(width: Option<usize>) -> Keys {
        Keys(match width {
            Some(width @ 1..) => Form::Even(Pieces::new(width)),
            _ => Form::Uneven(Entries::default(), Arena::default()),
        })
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Even(pieces) => pieces.len(),
            Form::Uneven(entries, _) => entries.count,
        }
    }

    /// Adds a key. `hash` is its [`hash_key`].
    #[inline]
    pub fn push(&mut self, key: &[u8], hash: u64) {
        match &mut self.0 {
            Form::Even(pieces) => pieces.push(key),
            Form::Uneven(entries, arena) => entries.push(Entry { hash, key: arena.add(key), len: key.len() as u32 }),
        }
    }

    /// A key's bytes.
    ///
    /// Panics if there are not so many.
    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        match &self.0 {
            Form::Even(pieces) => pieces.get(number),
            Form::Uneven(entries, arena) => {
                let entry = entries.get(number);
                arena.get(entry.key, entry.len as usize)
            }
        }
    }

    /// Whether this key has that number.
    ///
    /// Panics if there are not so many.
    #[inline]
    pub fn is(&self, number: usize, key: &[u8]) -> bool {
        let there = self.get(number);
        match (<&[u8; 8]>::try_from(there), <&[u8; 8]>::try_from(key)) {
            // Without a call, as most keys are one number.
            (Ok(there), Ok(key)) => there == key,
            _ => there == key,
        }
    }

    /// The hashes of the keys from a number on, as many as there are and find room.
    pub fn hashes<'h>(&self, first: usize, room: &'h mut [u64; AT_ONCE]) -> &'h [u64] {
        let hashes = &mut room[..AT_ONCE.min(self.len().saturating_sub(first))];
        let numbered = hashes.iter_mut().zip(first..);
        match &self.0 {
            Form::Even(pieces) => numbered.for_each(|(hash, number)| *hash = hash_of(pieces.get(number))),
            Form::Uneven(entries, _) => numbered.for_each(|(hash, number)| *hash = entries.get(number).hash),
        }
        hashes
    }

    /// All that were added from a number on, as they are for ever.
    pub fn freeze(&self, from: usize) -> FrozenBytes {
        match &self.0 {
            Form::Even(pieces) => pieces.freeze(from),
            Form::Uneven(entries, arena) => {
                let place = if from < entries.count { entries.get(from).key } else { arena.end() };
                arena.freeze(Some(place))
            }
        }
    }

    /// Bytes that a key takes beside its own.
    pub fn entry_bytes(&self) -> usize {
        match &self.0 {
            Form::Even(_) => 0,
            Form::Uneven(..) => size_of::<Entry>(),
        }
    }

    /// Bytes of memory that they hold.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Form::Even(pieces) => pieces.memory_bytes(),
            Form::Uneven(entries, arena) => {
                let blocks = entries.blocks.iter().map(|block| block.capacity() * size_of::<Entry>());
                blocks.sum::<usize>() + arena.memory_bytes()
            }
        }
    }
}

/// [`hash_key`], for the most usual length without a loop.
#[inline]
fn hash_of(key: &[u8]) -> u64 {
    match <&[u8; 8]>::try_from(key) {
        Ok(word) => hash_key(word),
        Err(_) => hash_key(key),
    }
}
