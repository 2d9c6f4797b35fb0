//! Finds fields and rows 64 bytes at a time, for one-byte delimiters and doubled quotes. Whether a byte stands within quotes
//! is the parity of the quotes before it; that holds as long as every opening quote is the first character of its field
//! or follows a closing one, which is checked on the way. Where it isn't so, the exact walk must decide.
//!
//! The idea of bit masks over blocks, and of parity by prefix xor: Langdale and Lemire, "Parsing Gigabytes of JSON per
//! Second" (2019). The comparisons run with AVX2 where the processor has it, else eight bytes at a time in plain registers.

/// Fields and rows of a chunk.
#[derive(Default)]
pub(crate) struct RawIndex {
    /// Where each field ends, in order.
    pub ends: Vec<u32>,
    /// For each row the number of fields up to its end.
    pub row_ends: Vec<u32>,
    /// Where each row starts.
    pub starts: Vec<u32>,
    /// The last row ends within quotes.
    pub unclosed: bool,
}

impl RawIndex {
    /// Empties it, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.row_ends.clear();
        self.starts.clear();
        self.unclosed = false;
    }
}

/// A quote stands where only the exact walk knows what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Irregular;

/// Finds all fields and rows of data that starts at a row and ends at a row's or the file's end.
///
/// # Errors
/// When quotes stand where parity can't tell; `index` has no meaning then.
pub(crate) fn index(data: &[u8], delimiter: u8, quote: Option<u8>, index: &mut RawIndex) -> Result<(), Irregular> {
    index.clear();
    let mut fields = Fields { index };
    let inside = scan(data, delimiter, quote, &mut fields)?;
    index.unclosed = inside;
    let ended = index.row_ends.last().map_or(0, |&n| index.ends[n as usize - 1] as usize + 1);
    if inside || ended < data.len() {
        index.ends.push(data.len() as u32);
        index.row_ends.push(index.ends.len() as u32);
    }
    let mut start = 0;
    index.starts.reserve(index.row_ends.len());
    for &end in &index.row_ends {
        index.starts.push(start);
        start = index.ends[end as usize - 1] + 1;
    }
    Ok(())
}

/// The end of the last whole row of data that starts at a row.
///
/// # Errors
/// When quotes stand where parity can't tell.
pub(crate) fn last_row_end(data: &[u8], delimiter: u8, quote: u8) -> Result<Option<usize>, Irregular> {
    let mut last = LastRow(None);
    scan(data, delimiter, Some(quote), &mut last)?;
    Ok(last.0)
}

/// Takes the separators of one block after the other.
trait Take {
    /// Bit k stands for byte `base + k`; `lines` are those of the separators that are line ends.
    fn take(&mut self, base: usize, separators: u64, lines: u64);
}

struct Fields<'a> {
    index: &'a mut RawIndex,
}

impl Take for Fields<'_> {
    #[inline(always)]
    fn take(&mut self, base: usize, separators: u64, lines: u64) {
        let before = self.index.ends.len() as u32;
        let mut rest = lines;
        while rest != 0 {
            let upto = rest ^ (rest - 1);
            self.index.row_ends.push(before + (separators & upto).count_ones());
            rest &= rest - 1;
        }
        // Eight at a time without a branch for each: most blocks have few.
        let count = separators.count_ones() as usize;
        let mut positions = [0u32; 64];
        let mut rest = separators;
        for group in positions.chunks_exact_mut(8).take(count.div_ceil(8)) {
            for slot in group {
                *slot = base as u32 + (rest.trailing_zeros() & 63);
                rest &= rest.wrapping_sub(1);
            }
        }
        self.index.ends.extend_from_slice(&positions[..count]);
    }
}

struct LastRow(Option<usize>);

impl Take for LastRow {
    #[inline(always)]
    fn take(&mut self, base: usize, _separators: u64, lines: u64) {
        if lines != 0 {
            self.0 = Some(base + 64 - lines.leading_zeros() as usize);
        }
    }
}

fn scan(data: &[u8], delimiter: u8, quote: Option<u8>, take: &mut impl Take) -> Result<bool, Irregular> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has just been found to have the features that the function is compiled for.
        return unsafe { scan_avx2(data, delimiter, quote, take) };
    }
    match quote {
        Some(quote) => blocks::<Plain, true>(data, delimiter, quote, take),
        None => blocks::<Plain, false>(data, delimiter, 0, take),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn scan_avx2(data: &[u8], delimiter: u8, quote: Option<u8>, take: &mut impl Take) -> Result<bool, Irregular> {
    match quote {
        Some(quote) => blocks::<Avx2, true>(data, delimiter, quote, take),
        None => blocks::<Avx2, false>(data, delimiter, 0, take),
    }
}

/// Gives whether the data ends within quotes.
#[inline(always)]
fn blocks<B: Block, const QUOTED: bool>(
    data: &[u8],
    delimiter: u8,
    quote: u8,
    take: &mut impl Take,
) -> Result<bool, Irregular> {
    // All ones while within quotes.
    let mut within = 0u64;
    // Whether the byte before the block lets a quote open.
    let mut may_open = 1u64;
    let (whole, rest) = data.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    let tail = (!rest.is_empty()).then_some((&last, (1u64 << rest.len()) - 1));
    let mut base = 0;
    for (block, valid) in whole.iter().map(|b| (b, !0)).chain(tail) {
        let mut lines = B::equal(block, b'\n') & valid;
        let mut separators = (B::equal(block, delimiter) & valid) | lines;
        if QUOTED {
            let quotes = B::equal(block, quote) & valid;
            if quotes | within != 0 {
                let inside = prefix_xor(quotes) ^ within;
                separators &= !inside;
                lines &= !inside;
                let opens = quotes & inside;
                let closes = quotes & !inside;
                let allowed = ((separators | closes) << 1) | may_open;
                if opens & !allowed != 0 {
                    return Err(Irregular);
                }
                may_open = (separators | closes) >> 63;
                within = ((inside as i64) >> 63) as u64;
            } else {
                may_open = separators >> 63;
            }
        }
        take.take(base, separators, lines);
        base += 64;
    }
    Ok(within != 0)
}

/// Bit k: the parity of the bits up to and with k.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Compares the bytes of a block with one byte.
trait Block {
    /// Bit k: byte k equals `byte`.
    fn equal(block: &[u8; 64], byte: u8) -> u64;
}

struct Plain;

impl Block for Plain {
    #[inline(always)]
    fn equal(block: &[u8; 64], byte: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let pattern = u64::from_ne_bytes([byte; 8]);
        let mut mask = 0;
        for (i, word) in block.as_chunks::<8>().0.iter().enumerate() {
            let x = u64::from_le_bytes(*word) ^ pattern;
            // The high bit of every byte that is zero, exactly.
            let zero = !(((x & LOW) + LOW) | x | LOW);
            mask |= ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
        }
        mask
    }
}

#[cfg(target_arch = "x86_64")]
struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Block for Avx2 {
    #[inline(always)]
    fn equal(block: &[u8; 64], byte: u8) -> u64 {
        use std::arch::x86_64::{
            __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
        };
        // SAFETY: only `scan_avx2` uses this type, so the processor has AVX2; both loads stay within the 64 bytes of the
        // block and may be unaligned.
        unsafe {
            let pattern = _mm256_set1_epi8(byte as i8);
            let low = _mm256_loadu_si256(block.as_ptr().cast::<__m256i>());
            let high = _mm256_loadu_si256(block.as_ptr().add(32).cast::<__m256i>());
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, pattern)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, pattern)) as u32;
            u64::from(low) | (u64::from(high) << 32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_compare_agree() {
        let mut block = [0u8; 64];
        for seed in 0..2000u32 {
            for (i, byte) in block.iter_mut().enumerate() {
                *byte = ((seed.wrapping_mul(2_654_435_761).rotate_left(i as u32) % 7) as u8).wrapping_mul(0x2b);
            }
            for byte in [0, 0x2b, 0x56, 0x81, 0xac, 0xff] {
                let naive = block.iter().enumerate().fold(0u64, |m, (i, b)| m | (u64::from(*b == byte) << i));
                assert_eq!(Plain::equal(&block, byte), naive);
            }
        }
    }

    #[test]
    fn quotes_in_the_middle_of_a_field_are_irregular() {
        let mut found = RawIndex::default();
        assert_eq!(index(b"a,5\" pipe,c\n", b',', Some(b'"'), &mut found), Err(Irregular));
        assert_eq!(index(b"a,\"x\"\"y\n\",c\n", b',', Some(b'"'), &mut found), Ok(()));
        assert_eq!((found.ends.as_slice(), found.row_ends.as_slice()), (&[1, 9, 11][..], &[3][..]));
    }
}
