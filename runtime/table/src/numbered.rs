//! Distinct keys, numbered from 0 in the order of their arrival: what every table of keyed state is built on (groups, keys that have come).
//! Open addressing over 4-byte slots (a key's number, and in the bits that it leaves some of the hash). It may not know what keys mean, nor
//! what is kept for them.

use crate::arena::FrozenBytes;
use crate::keys::{AT_ONCE, Keys};

/// Most keys in so many slots: a search for a new one ends at a free slot, about seven on where so many are taken, in one or two lines of
/// the cache, and of those before it hardly any has the same half of the hash.
fn filled(slots: usize) -> usize {
    slots / 4 * 3
}

/// Most slots: a key's number has 32 bits.
const MOST_SLOTS: usize = 1 << 32;

/// What a slot keeps of a hash, above the bits of `mask`: bits that neither say where the search begins (the lowest) nor which task a key belongs
/// to (the highest), as long as there are so many.
#[inline]
fn mark(hash: u64, mask: usize) -> u32 {
    (hash >> 16) as u32 & !(mask as u32)
}

/// Distinct keys.
pub struct KeyTable {
    /// 0: free; else the key's number plus 1 in as many low bits as slots have numbers, and a mark of the hash above them.
    slots: Vec<u32>,
    keys: Keys,
}

impl KeyTable {
    /// No key yet. `width`: bytes of every key, if they all have as many.
    pub fn new(width: Option<usize>) -> KeyTable {
        KeyTable { slots: vec![0; 64], keys: Keys::new(width) }
    }

    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.len() == 0
    }

    /// A key's bytes.
    ///
    /// Panics if there are not so many.
    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        self.keys.get(number)
    }

    /// The number of this key, and whether it is new: then it was added. `hash` is its [`crate::hash_key`].
    ///
    /// Panics past three quarters of 2³² keys, or if it hasn't the width of all.
    #[inline]
    pub fn insert(&mut self, key: &[u8], hash: u64) -> (usize, bool) {
        match self.find(key, hash) {
            Ok(number) => (number as usize, false),
            Err(at) => (self.add(key, hash, at) as usize, true),
        }
    }

    /// The number of this key, or the slot that it would have.
    #[inline]
    pub(crate) fn find(&self, key: &[u8], hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mark = mark(hash, mask);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            if slot & !(mask as u32) == mark {
                let number = (slot & mask as u32) - 1;
                if self.keys.is(number as usize, key) {
                    return Ok(number);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a key whose slot is free.
    pub(crate) fn add(&mut self, key: &[u8], hash: u64, at: usize) -> u32 {
        let number = self.keys.len() as u32;
        // Slots are never all filled: a number plus 1 is less than theirs.
        self.slots[at] = mark(hash, self.slots.len() - 1) | (number + 1);
        self.keys.push(key, hash);
        if self.keys.len() > filled(self.slots.len()) {
            self.grow();
        }
        number
    }

    #[cold]
    fn grow(&mut self) {
        assert!(self.slots.len() < MOST_SLOTS, "more than 3,221,225,472 keys in one table");
        self.spread(self.slots.len() * 2);
    }

    /// Gives the table so many slots, a power of two.
    fn spread(&mut self, slots: usize) {
        let mask = slots - 1;
        let mut slots = vec![0; slots];
        let mut room = [0; AT_ONCE];
        for first in (0..self.len()).step_by(AT_ONCE) {
            for (hash, number) in self.keys.hashes(first, &mut room).iter().zip(first as u32 + 1..) {
                let mut at = *hash as usize & mask;
                while slots[at] != 0 {
                    at = (at + 1) & mask;
                }
                slots[at] = mark(*hash, mask) | number;
            }
        }
        self.slots = slots;
    }

    /// Makes room for so many keys in all.
    pub fn reserve(&mut self, keys: usize) {
        let mut slots = self.slots.len();
        while keys > filled(slots) && slots < MOST_SLOTS {
            slots *= 2;
        }
        if slots > self.slots.len() {
            self.spread(slots);
        }
    }

    /// Loads that don't wait for each other: who asks for keys with these hashes next finds their slots in the cache.
    #[inline]
    pub fn foresee(&self, hashes: impl Iterator<Item = u64>) {
        let mask = self.slots.len() - 1;
        let slots = hashes.map(|hash| self.slots[hash as usize & mask]);
        std::hint::black_box(slots.fold(0, |all, slot| all ^ slot));
    }

    /// The hashes of the keys from a number on, as many as there are and find room.
    pub(crate) fn hashes<'h>(&self, first: usize, room: &'h mut [u64; AT_ONCE]) -> &'h [u64] {
        self.keys.hashes(first, room)
    }

    /// All keys from a number on, one after another, as they are for ever.
    pub fn freeze(&self, from: usize) -> FrozenBytes {
        self.keys.freeze(from)
    }

    /// Bytes that a key takes beside its own and its slots.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.keys.entry_bytes()
    }

    /// Bytes of memory that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.slots.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash_key;

    /// Keys of one width and of several get their numbers once, and are found and frozen under them, however many come.
    #[test]
    fn keys_are_numbered_once() {
        for width in [None, Some(3)] {
            let key = |number: u32| match width {
                Some(width) => number.to_le_bytes()[..width].to_vec(),
                None => number.to_string().into_bytes(),
            };
            let mut table = KeyTable::new(width);
            table.reserve(500);
            for round in 0..2 {
                for number in 0..10_000 {
                    let key = key(number);
                    let hash = hash_key(&key);
                    table.foresee([hash].into_iter());
                    assert_eq!(table.insert(&key, hash), (number as usize, round == 0));
                }
            }
            assert_eq!((table.len(), table.is_empty()), (10_000, false));
            assert!((0..10_000).all(|number| table.get(number as usize) == key(number)));
            let since: Vec<u8> = table.freeze(9_000).parts().flatten().copied().collect();
            assert_eq!(since, (9_000..10_000).flat_map(key).collect::<Vec<u8>>());
            assert!(table.freeze(10_000).is_empty());
            assert!(table.memory_bytes() > 10_000 * 7);
        }
        let mut none = KeyTable::new(Some(0));
        assert_eq!((none.insert(&[], hash_key(&[])), none.insert(&[], hash_key(&[]))), ((0, true), (0, false)));
    }
}
