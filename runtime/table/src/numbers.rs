//! From numbers to rows, for joins by one number: an array where numbers lie close together, else open addressing, with a bit for each number
//! of their range in front where that is small. It may not know rows.

use crate::key::{HASH_SEED, HASH_WORD, fold};

/// No row: a number that isn't there.
pub(crate) const NONE: u32 = u32::MAX;

/// Numbers that are looked up together.
pub(crate) const AT_ONCE: usize = 64;

/// So many places of an array a row take no more memory than its slots would.
const DIRECT: u64 = 8;
/// So many bits a row are a quarter of its slots.
const BITS: u64 = 64;

/// A free slot, or a number and its row.
#[derive(Clone, Copy)]
struct Slot {
    number: u64,
    row: u32,
}

/// Rows by number, of each number one.
pub(crate) struct Numbers {
    /// The least number.
    base: u64,
    form: Form,
}

enum Form {
    /// The row of each number from the least on.
    Direct(Vec<u32>),
    Hashed {
        /// Open addressing; a power of two, at least half of them free.
        slots: Vec<Slot>,
        /// Which numbers from the least on are there; empty: it isn't known.
        there: Vec<u64>,
    },
}

impl Numbers {
    /// For at most `count` numbers between these two, both included.
    pub fn new(least: u64, largest: u64, count: usize) -> Numbers {
        let (range, rows) = (largest.saturating_sub(least), count as u64);
        let form = if range < rows * DIRECT {
            Form::Direct(vec![NONE; range as usize + 1])
        } else {
            let there = if range < rows * BITS { vec![0; range as usize / 64 + 1] } else { Vec::new() };
            Form::Hashed { slots: vec![Slot { number: 0, row: NONE }; (count * 2).next_power_of_two()], there }
        };
        Numbers { base: least, form }
    }

    /// Gives a number a row; the one that it had, or [`NONE`].
    pub fn put(&mut self, number: u64, row: u32) -> u32 {
        let place = number.wrapping_sub(self.base) as usize;
        match &mut self.form {
            Form::Direct(rows) => std::mem::replace(&mut rows[place], row),
            Form::Hashed { slots, there } => {
                if let Some(word) = there.get_mut(place / 64) {
                    *word |= 1 << (place % 64);
                }
                let at = find(slots, number);
                std::mem::replace(&mut slots[at], Slot { number, row }).row
            }
        }
    }

    /// The rows of at most [`AT_ONCE`] numbers, or [`NONE`]: loads that don't wait for each other.
    pub fn rows(&self, numbers: &[u64], found: &mut [u32]) {
        match &self.form {
            Form::Direct(rows) => {
                for (number, found) in numbers.iter().zip(found) {
                    *found = rows.get(number.wrapping_sub(self.base) as usize).copied().unwrap_or(NONE);
                }
            }
            Form::Hashed { slots, there } => {
                found.fill(NONE);
                let mut left = if numbers.is_empty() { 0 } else { !0 >> (AT_ONCE - numbers.len()) };
                if !there.is_empty() {
                    left = numbers.iter().zip(0..).fold(0, |left, (number, k)| {
                        let place = number.wrapping_sub(self.base);
                        let word = there.get((place / 64) as usize).copied().unwrap_or(0);
                        left | (word >> (place % 64) & 1) << k
                    });
                }
                let mut seen = left;
                let mut slot = 0;
                while seen != 0 {
                    slot ^= slots[start(slots, numbers[seen.trailing_zeros() as usize])].number;
                    seen &= seen - 1;
                }
                // What follows finds the slots in the cache.
                std::hint::black_box(slot);
                while left != 0 {
                    let k = left.trailing_zeros() as usize;
                    found[k] = slots[find(slots, numbers[k])].row;
                    left &= left - 1;
                }
            }
        }
    }
}

/// Where the search for a number begins.
#[inline]
fn start(slots: &[Slot], number: u64) -> usize {
    fold(number ^ HASH_SEED, HASH_WORD) as usize & (slots.len() - 1)
}

/// Where the slot of a number is, or would be.
#[inline]
fn find(slots: &[Slot], number: u64) -> usize {
    let mut at = start(slots, number);
    while slots[at].row != NONE && slots[at].number != number {
        at = (at + 1) & (slots.len() - 1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the form, numbers have the rows that they were given last, and others have none.
    #[test]
    fn numbers_have_the_rows_that_they_were_given() {
        for (step, least) in [(1, 0), (1, u64::MAX - 999), (7, 5), (40, 1 << 40), (1 << 50, 3), (12_345_678_901, 0)] {
            let numbers: Vec<u64> = (0..1_000u64).map(|n| n.wrapping_mul(step).wrapping_add(least)).collect();
            let (first, last) = (numbers.iter().min().unwrap(), numbers.iter().max().unwrap());
            let mut table = Numbers::new(*first, *last, 1_000);
            for (number, row) in numbers.iter().zip(0..).filter(|(_, row)| row % 3 != 0) {
                assert_eq!(table.put(*number, row + 5_000), NONE);
                assert_eq!(table.put(*number, row), row + 5_000);
            }
            let asked: Vec<u64> = numbers.iter().flat_map(|&n| [n, n.wrapping_add(1), n.wrapping_sub(step)]).collect();
            for asked in asked.chunks(AT_ONCE).chain([&[][..]]) {
                let mut found = [7; AT_ONCE];
                table.rows(asked, &mut found[..asked.len()]);
                for (number, found) in asked.iter().zip(found) {
                    let row = numbers.iter().position(|there| there == number).filter(|row| row % 3 != 0);
                    assert_eq!(found, row.map_or(NONE, |row| row as u32), "{number} of {step} from {least}");
                }
            }
        }
    }
}
