//! Rows of eight-byte words packed by their columns, as counters, sums and keys are: of a column whose values lie near each other only the bytes in
//! which they differ are stored ("frame of reference": Goldstein, Ramakrishnan, Shaft, Compressing Relations and Indexes, 1998; here in
//! whole bytes). Several times as fast as a compressor that knows nothing of rows. It may not know what the words mean: how many a row has it
//! guesses block by block.
//!
//! ```text
//! 0  length of the packed blocks u32   4  words of a row in each block, u8 (0: it isn't packed)   the packed blocks   the other blocks' bytes
//! ```
//! A block has 64 KiB, the last one what is left. A packed block: for each column its least value i64 and the bytes of a difference u8; then column
//! by column the differences, little-endian, in so many bytes; then as they are the bytes that make no whole row.

/// Bytes of a block.
const BLOCK: usize = 64 << 10;
const WORD: usize = size_of::<u64>();
/// Most words of a row.
const MOST: usize = 32;
/// Words of a block that tell how many a row has.
const SAMPLE: usize = 4 * MOST;
/// A block is packed if it shrinks to this part of it at most: what doesn't is better left to a compressor.
const WORTH: usize = 2;
/// Bytes of a column's head.
const HEAD: usize = WORD + 1;

/// Packs the blocks for which it pays into `out`, and appends the bytes of the others to `rest`. If it pays for none, nothing is done.
pub(crate) fn pack(raw: &[u8], out: &mut Vec<u8>, rest: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + size_of::<u32>() + raw.len().div_ceil(BLOCK), 0);
    let body = out.len();
    let (mut words, mut before) = (0, 0);
    let mut packed = false;
    for (number, block) in raw.chunks(BLOCK).enumerate() {
        let at = out.len();
        let mut size = pack_block(block, words, out);
        // Blocks of the same rows shrink alike.
        if size.is_none_or(|size| size.abs_diff(before) > before / 8) {
            out.truncate(at);
            words = row_of(block);
            size = pack_block(block, words, out);
        }
        match size {
            Some(size) => {
                out[start + size_of::<u32>() + number] = words as u8;
                (before, packed) = (size, true);
            }
            None => {
                out.truncate(at);
                rest.extend_from_slice(block);
                words = 0;
            }
        }
    }
    let length = u32::try_from(out.len() - body);
    match length {
        Ok(length) if packed => out[start..start + size_of::<u32>()].copy_from_slice(&length.to_le_bytes()),
        _ => {
            out.truncate(start);
            rest.clear();
            return false;
        }
    }
    true
}

/// How many words a row has, by what changes least from one to the next.
fn row_of(block: &[u8]) -> usize {
    let mut sample = [0; SAMPLE];
    // From the middle: a table begins with what is rare.
    let first = (block.len() / 2).saturating_sub(SAMPLE * WORD / 2) / WORD * WORD;
    let words = block[first..].chunks_exact(WORD).map(word);
    let filled = sample.iter_mut().zip(words).map(|(sample, word)| *sample = word).count();
    let sample = &sample[..filled];
    let change = |words: usize| -> u64 {
        let bits = sample
            .iter()
            .zip(sample.get(words..).unwrap_or_default())
            .map(|(a, b)| u64::BITS - (a ^ b).leading_zeros());
        // Of as many words for every length of a row.
        bits.take(SAMPLE - MOST).map(u64::from).sum()
    };
    (1..=MOST).min_by_key(|words| change(*words)).unwrap_or(1)
}

/// A little-endian number of eight bytes, or of fewer.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Appends a packed block: its size, if it is small enough. If it isn't, what was appended is of no use.
fn pack_block(block: &[u8], words: usize, out: &mut Vec<u8>) -> Option<usize> {
    let row = words * WORD;
    if words == 0 || block.len() < row {
        return None;
    }
    let rows = block.chunks_exact(row);
    let tail = rows.remainder();
    let (mut least, mut most) = ([i64::MAX; MOST], [i64::MIN; MOST]);
    for row in rows.clone() {
        let ranges = least[..words].iter_mut().zip(&mut most[..words]);
        for ((least, most), bytes) in ranges.zip(row.chunks_exact(WORD)) {
            let value = word(bytes) as i64;
            *least = value.min(*least);
            *most = value.max(*most);
        }
    }
    let start = out.len();
    let mut widths = [0; MOST];
    for column in 0..words {
        let range = most[column].wrapping_sub(least[column]) as u64;
        widths[column] = (u64::BITS - range.leading_zeros()).div_ceil(8) as usize;
        out.extend_from_slice(&least[column].to_le_bytes());
        out.push(widths[column] as u8);
    }
    let bytes: usize = widths.iter().sum::<usize>() * rows.len();
    let size = words * HEAD + bytes + tail.len();
    if size > block.len() / WORTH {
        return None;
    }
    let mut at = out.len();
    // A difference is written as a whole word, of which the next one takes back what isn't its own.
    out.resize(at + bytes + WORD, 0);
    for column in 0..words {
        if widths[column] == 0 {
            continue;
        }
        for row in rows.clone() {
            let value = word(&row[column * WORD..(column + 1) * WORD]).wrapping_sub(least[column] as u64);
            out[at..at + WORD].copy_from_slice(&value.to_le_bytes());
            at += widths[column];
        }
    }
    out.truncate(at);
    out.extend_from_slice(tail);
    debug_assert_eq!(out.len() - start, size);
    Some(size)
}

/// A packed form, taken apart.
pub(crate) struct Packed<'b> {
    words: &'b [u8],
    blocks: &'b [u8],
    /// The bytes of the other blocks, as they were stored.
    pub rest: &'b [u8],
    length: usize,
}

impl<'b> Packed<'b> {
    /// That of `length` bytes.
    ///
    /// # Errors
    /// When it is cut off.
    pub fn new(bytes: &'b [u8], length: u64) -> Result<Packed<'b>, String> {
        let cut = || "it is cut off".to_owned();
        let length = usize::try_from(length).map_err(|_| cut())?;
        let (size, bytes) = bytes.split_first_chunk::<{ size_of::<u32>() }>().ok_or_else(cut)?;
        let (words, bytes) = bytes.split_at_checked(length.div_ceil(BLOCK)).ok_or_else(cut)?;
        let (blocks, rest) = bytes.split_at_checked(u32::from_le_bytes(*size) as usize).ok_or_else(cut)?;
        Ok(Packed { words, blocks, rest, length })
    }

    /// Bytes of the blocks that aren't packed.
    pub fn rest_bytes(&self) -> usize {
        let blocks = (0..self.words.len()).filter(|block| self.words[*block] == 0);
        blocks.map(|block| BLOCK.min(self.length - block * BLOCK)).sum()
    }

    /// Appends the bytes to `raw`; `rest` has those of the blocks that aren't packed.
    ///
    /// # Errors
    /// When what is packed can't be.
    pub fn unpack(&self, mut rest: &[u8], raw: &mut Vec<u8>) -> Result<(), String> {
        let mut packed = self.blocks;
        for (number, words) in self.words.iter().enumerate() {
            let length = BLOCK.min(self.length - number * BLOCK);
            let wrong = || format!("block {number} of it isn't one");
            if *words == 0 {
                let (block, after) = rest.split_at_checked(length).ok_or_else(wrong)?;
                raw.extend_from_slice(block);
                rest = after;
            } else {
                packed = unpack_block(packed, (*words).into(), length, raw).ok_or_else(wrong)?;
            }
        }
        match packed.is_empty() && rest.is_empty() {
            true => Ok(()),
            false => Err("there are bytes behind its last block".into()),
        }
    }
}

/// Appends so many bytes of a block; what follows the block, if it is one.
fn unpack_block<'b>(block: &'b [u8], words: usize, length: usize, raw: &mut Vec<u8>) -> Option<&'b [u8]> {
    if words > MOST {
        return None;
    }
    let (rows, start) = (length / (words * WORD), raw.len());
    let (heads, mut block) = block.split_at_checked(words * HEAD)?;
    raw.resize(start + length, 0);
    for (column, head) in heads.chunks_exact(HEAD).enumerate() {
        let (least, width) = (word(&head[..WORD]), usize::from(head[WORD]));
        if width > WORD {
            return None;
        }
        let (values, after) = block.split_at_checked(width * rows)?;
        // Differences are read as whole words, of which the bytes that aren't theirs are taken away: the last ones need some behind them.
        let mask = if width == WORD { u64::MAX } else { (1 << (8 * width)) - 1 };
        let into = raw[start..].chunks_exact_mut(words * WORD).map(|row| &mut row[column * WORD..(column + 1) * WORD]);
        for (row, into) in into.enumerate() {
            let at = row * width;
            let difference = match block.get(at..at + WORD) {
                Some(bytes) => word(bytes) & mask,
                None => word(&values[at..at + width]),
            };
            into.copy_from_slice(&least.wrapping_add(difference).to_le_bytes());
        }
        block = after;
    }
    let (tail, after) = block.split_at_checked(length % (words * WORD))?;
    raw[start + rows * words * WORD..].copy_from_slice(tail);
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(raw: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut out, mut rest) = (Vec::new(), Vec::new());
        pack(raw, &mut out, &mut rest).then_some((out, rest))
    }

    fn unpacked(out: &[u8], rest: &[u8], length: usize) -> Result<Vec<u8>, String> {
        let packed = Packed::new(out, length as u64)?;
        let mut raw = Vec::new();
        packed.unpack(rest, &mut raw)?;
        Ok(raw)
    }

    /// Rows of so many words, which count up from `first` in steps of their column's number.
    fn rows(words: usize, count: usize, first: i64) -> Vec<u8> {
        let value = |i: usize| first.wrapping_add((i / words * (i % words)) as i64);
        (0..words * count).flat_map(|i| value(i).to_le_bytes()).collect()
    }

    #[test]
    fn rows_are_found_and_packed() {
        for words in 1..=MOST {
            let raw = rows(words, 40_000 / words, -1000);
            let (out, rest) = packed(&raw).unwrap();
            assert!(rest.is_empty());
            assert!(
                out.len() < raw.len() * 3 / 8 + 1000,
                "rows of {words} words: {} bytes of {}",
                out.len(),
                raw.len()
            );
            assert_eq!(unpacked(&out, &rest, raw.len()).unwrap(), raw);
        }
    }

    #[test]
    fn what_has_no_rows_is_left() {
        let noise: Vec<u8> = (0..50_000u32).flat_map(|n| n.wrapping_mul(2_654_435_769).to_le_bytes()).collect();
        assert!(packed(&noise).is_none());
        // Between what has some.
        let mixed = [rows(6, 5000, 5), noise, rows(7, 5000, i64::MIN)].concat();
        let (out, rest) = packed(&mixed).unwrap();
        assert!(rest.len() > 130_000 && out.len() < 200_000, "{} and {}", rest.len(), out.len());
        assert_eq!(Packed::new(&out, mixed.len() as u64).unwrap().rest_bytes(), rest.len());
        assert_eq!(unpacked(&out, &rest, mixed.len()).unwrap(), mixed);
        assert!(packed(&[]).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn what_was_packed_is_unpacked(
            words in 1usize..40, count in 0usize..3000, first: i64, tail in proptest::collection::vec(any::<u8>(), 0..20), wild: bool,
        ) {
            let mut raw = rows(words, count, first);
            if wild {
                raw.chunks_mut(1000).for_each(|part| part[0] ^= 0xff);
            }
            raw.extend_from_slice(&tail);
            if let Some((out, rest)) = packed(&raw) {
                prop_assert_eq!(unpacked(&out, &rest, raw.len()).unwrap(), raw);
            }
        }

        /// Bytes that nobody packed give an error or other bytes, as many as are asked for.
        #[test]
        fn hostile_blocks_are_refused(at in 0usize..400, with in 1u8.., cut in 0usize..400) {
            let raw = rows(3, 4000, 77);
            let (mut out, rest) = packed(&raw).unwrap();
            let at = at % out.len();
            out[at] ^= with;
            if let Ok(other) = unpacked(&out, &rest, raw.len()) {
                prop_assert_eq!(other.len(), raw.len());
            }
            out.truncate(out.len().saturating_sub(1 + cut));
            prop_assert!(unpacked(&out, &rest, raw.len()).is_err());
        }
    }
}
