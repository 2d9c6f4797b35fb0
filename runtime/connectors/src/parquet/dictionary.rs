//! Dictionaries of columns that are written: each value has the number of its first appearance. Looked up in open tables, whose entries
//! tell most values apart by themselves. It may not know how values are written down, but for the texts' plain form, in which they are kept.

use xxhash_rust::xxh64::xxh64;

use super::encode::Whole;

/// Mixes bits: the golden ratio's.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// Entries of a new table.
const FIRST: usize = 64;
/// No value's number.
const FREE: u32 = u32::MAX;
/// Texts up to so many bytes stand in their views.
pub(super) const IN_VIEW: usize = 12;

/// Of whole numbers.
pub(super) struct NumberTable<T> {
    /// Powers of two, at most half of them taken.
    entries: Vec<(T, u32)>,
    pub values: Vec<T>,
}

impl<T: Whole> NumberTable<T> {
    pub(super) fn new() -> Self {
        NumberTable { entries: vec![(T::default(), FREE); FIRST], values: Vec::new() }
    }

    /// Appends the values' numbers.
    pub(super) fn find(&mut self, values: &[T], numbers: &mut Vec<u32>) {
        numbers.extend(values.iter().map(|value| self.number(*value)));
    }

    #[inline(always)]
    fn number(&mut self, value: T) -> u32 {
        let mut at = place(value.bits(), self.entries.len());
        loop {
            let (found, number) = self.entries[at];
            if number == FREE {
                return self.add(value, at);
            }
            if found == value {
                return number;
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    #[cold]
    fn add(&mut self, value: T, at: usize) -> u32 {
        let number = self.values.len() as u32;
        self.values.push(value);
        self.entries[at] = (value, number);
        if 2 * self.values.len() > self.entries.len() {
            let more = vec![(T::default(), FREE); 2 * self.entries.len()];
            for entry in std::mem::replace(&mut self.entries, more).into_iter().filter(|(_, number)| *number != FREE) {
                let at = free(entry.0.bits(), &self.entries, |(_, number)| *number == FREE);
                self.entries[at] = entry;
            }
        }
        number
    }
}

/// Where a table of this size is asked first.
#[inline(always)]
fn place(bits: u64, entries: usize) -> usize {
    (bits.wrapping_mul(MIX) >> 32) as usize & (entries - 1)
}

fn free<E>(bits: u64, entries: &[E], is_free: impl Fn(&E) -> bool) -> usize {
    let mut at = place(bits, entries.len());
    while !is_free(&entries[at]) {
        at = (at + 1) & (entries.len() - 1);
    }
    at
}

/// Of texts.
pub(super) struct TextTable {
    /// A short text's view, or what tells a long one apart, mostly; and its number.
    entries: Vec<(u128, u32)>,
    /// All of them, each behind its length.
    pub plain: Vec<u8>,
    /// Where each begins, with its length.
    places: Vec<(usize, u32)>,
}

impl TextTable {
    pub(super) fn new() -> Self {
        TextTable { entries: vec![(0, FREE); FIRST], plain: Vec::new(), places: Vec::new() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The text of a number.
    pub(super) fn text(&self, number: u32) -> &[u8] {
        let (start, len) = self.places[number as usize];
        &self.plain[start..start + len as usize]
    }

    /// The number of a text of at most 12 bytes, by its view.
    #[inline(always)]
    pub(super) fn short(&mut self, view: u128) -> u32 {
        let mut at = place(mixed(view), self.entries.len());
        loop {
            let (found, number) = self.entries[at];
            if number == FREE {
                let text = (view >> 32).to_le_bytes();
                return self.add(view, at, &text[..view as u32 as usize]);
            }
            if found == view {
                return number;
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    /// The number of a longer one.
    #[inline(always)]
    pub(super) fn long(&mut self, text: &[u8]) -> u32 {
        let tag = u128::from(digest(text)) << 64 | text.len() as u128;
        let mut at = place(mixed(tag), self.entries.len());
        loop {
            let (found, number) = self.entries[at];
            if number == FREE {
                return self.add(tag, at, text);
            }
            if found == tag && self.text(number) == text {
                return number;
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    #[cold]
    fn add(&mut self, tag: u128, at: usize, text: &[u8]) -> u32 {
        let number = self.places.len() as u32;
        self.plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.places.push((self.plain.len(), text.len() as u32));
        self.plain.extend_from_slice(text);
        self.entries[at] = (tag, number);
        if 2 * self.places.len() > self.entries.len() {
            let more = vec![(0, FREE); 2 * self.entries.len()];
            for entry in std::mem::replace(&mut self.entries, more).into_iter().filter(|(_, number)| *number != FREE) {
                let at = free(mixed(entry.0), &self.entries, |(_, number)| *number == FREE);
                self.entries[at] = entry;
            }
        }
        number
    }
}

#[inline(always)]
fn mixed(tag: u128) -> u64 {
    let (low, high) = (tag as u64, (tag >> 64) as u64);
    low.wrapping_mul(MIX) ^ high.rotate_left(29)
}

/// Of a text of more than 12 bytes. Those of up to 32 are told apart by both their ends, which cover them.
#[inline(always)]
fn digest(text: &[u8]) -> u64 {
    let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) else { return xxh64(text, 0) };
    if text.len() > 32 {
        return xxh64(text, 0);
    }
    let (first, last) = (u128::from_le_bytes(*first), u128::from_le_bytes(*last));
    let half = |bits: u128, by: u64| ((bits as u64) ^ by).wrapping_mul(MIX) ^ ((bits >> 64) as u64).rotate_left(31);
    half(first, 1).wrapping_mul(MIX).rotate_left(23) ^ half(last, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_the_number_of_its_first_appearance() {
        let mut pick = crate::testing::random(3);
        let values: Vec<i64> = (0..20_000).map(|_| pick(3000) as i64 * 1_000_003 - 900_000_000).collect();
        let (mut table, mut numbers) = (NumberTable::new(), Vec::new());
        values.chunks(1000).for_each(|values| table.find(values, &mut numbers));
        assert!(numbers.iter().zip(&values).all(|(number, value)| table.values[*number as usize] == *value));
        let mut seen = std::collections::HashSet::new();
        let first: Vec<i64> = values.into_iter().filter(|value| seen.insert(*value)).collect();
        assert_eq!(table.values, first);
    }

    #[test]
    fn texts_of_all_lengths_are_told_apart() {
        let mut pick = crate::testing::random(4);
        let mut table = TextTable::new();
        let mut expected: Vec<String> = Vec::new();
        for _ in 0..20_000 {
            let len = [0, 1, 5, 11, 12, 13, 15, 16, 17, 31, 32, 33, 40][pick(13)];
            let text: String = (0..len).map(|_| char::from(b'a' + pick(if len > 5 { 2 } else { 9 }) as u8)).collect();
            // Many differ in one place alone.
            let text = if pick(2) == 0 { "x".repeat(len) + &text[len..] } else { text };
            let number = match len <= IN_VIEW {
                true => {
                    let mut view = [0; 16];
                    view[..4].copy_from_slice(&(len as u32).to_le_bytes());
                    view[4..4 + len].copy_from_slice(text.as_bytes());
                    table.short(u128::from_le_bytes(view))
                }
                false => table.long(text.as_bytes()),
            };
            if number as usize == expected.len() {
                expected.push(text.clone());
            }
            assert_eq!(expected[number as usize], text);
            assert_eq!(table.text(number), text.as_bytes());
        }
        let distinct: std::collections::HashSet<&String> = expected.iter().collect();
        assert_eq!((distinct.len(), table.len()), (expected.len(), expected.len()));
    }
}
