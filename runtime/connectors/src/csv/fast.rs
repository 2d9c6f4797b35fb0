//! Finds fields and rows 64 bytes at a time, for one-byte delimiters and doubled quotes. Whether a byte stands within quotes
//! is the parity of the quotes before it; that holds as long as every opening quote is the first character of its field
//! or follows a closing one, which is checked on the way. Where it isn't so, the exact walk must decide.
//!
//! The idea of bit masks over blocks, and of parity by a product without carries: Langdale and Lemire, "Parsing Gigabytes of JSON
//! per Second" (2019). The comparisons run with AVX2 where the processor has it, else eight bytes at a time in plain registers.
//! Nothing here branches on what stands in a block, as half the blocks of a file with quoted texts have a quote.

use crate::chunks::Whole;

/// Where fields end, in order, with room that is kept from chunk to chunk.
#[derive(Default)]
pub(crate) struct Ends {
    room: Vec<u32>,
    count: usize,
}

/// Room that a block may need, rounded up to whole groups.
const BLOCK_ROOM: usize = 64;
/// Most blocks have no more separators than this; so many are written without a look at their number.
const USUAL: usize = 12;

impl Ends {
    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// One more.
    pub(crate) fn push(&mut self, end: usize) {
        if self.room.len() == self.count {
            self.grow();
        }
        self.room[self.count] = end as u32;
        self.count += 1;
    }

    /// So many zeros more.
    pub(crate) fn pad(&mut self, count: usize) {
        (0..count).for_each(|_| self.push(0));
    }

    #[cold]
    fn grow(&mut self) {
        self.room.resize((self.room.len() * 2).max(16 * BLOCK_ROOM), 0);
    }

    /// Forgets all behind the first so many.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// Appends `base` plus the place of each bit.
    #[inline(always)]
    fn push_bits(&mut self, base: u32, mut bits: u64) {
        let count = bits.count_ones() as usize;
        let slots = loop {
            match self.room.get_mut(self.count..self.count + BLOCK_ROOM) {
                Some(slots) => break slots,
                None => self.grow(),
            }
        };
        let (usual, rest) = slots.split_at_mut(USUAL);
        for slot in usual {
            *slot = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        if count > USUAL {
            for slot in &mut rest[..count - USUAL] {
                *slot = base + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
        }
        self.count += count;
    }
}

impl std::ops::Deref for Ends {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.room[..self.count]
    }
}

impl std::ops::DerefMut for Ends {
    fn deref_mut(&mut self) -> &mut [u32] {
        &mut self.room[..self.count]
    }
}

/// A quote stands where only the exact walk knows what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Irregular;

/// What was found beside the fields' ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Number of rows.
    pub rows: usize,
    /// The last one ends within quotes.
    pub unclosed: bool,
    /// Every byte is an ASCII character.
    pub ascii: bool,
}

/// Finds where all fields end in data that starts at a row and ends at a row's or the file's end. A field ends a row if a line feed
/// or nothing follows it.
///
/// # Errors
/// When quotes stand where parity can't tell; `ends` has no meaning then.
pub(crate) fn field_ends(data: &[u8], delimiter: u8, quote: Option<u8>, ends: &mut Ends) -> Result<Found, Irregular> {
    ends.clear();
    let mut fields = Fields { ends, rows: 0, feeds: 0 };
    let Scanned { unclosed, ascii } = scan(data, delimiter, quote, &mut fields)?;
    let Fields { ends, mut rows, .. } = fields;
    let closed = ends.last().is_some_and(|&end| end as usize + 1 == data.len() && data[end as usize] == b'\n');
    if unclosed || !closed && !data.is_empty() {
        ends.push(data.len());
        rows += 1;
    }
    Ok(Found { rows, unclosed, ascii })
}

/// The same for the whole rows only of data that starts at a row; also where the last of them ends, and the line feeds up to there.
///
/// # Errors
/// When quotes stand where parity can't tell; `ends` has no meaning then.
pub(crate) fn whole_field_ends(
    data: &[u8],
    delimiter: u8,
    quote: Option<u8>,
    ends: &mut Ends,
) -> Result<Option<(Found, Whole)>, Irregular> {
    ends.clear();
    let mut fields = Fields { ends, rows: 0, feeds: 0 };
    let Scanned { ascii, .. } = scan(data, delimiter, quote, &mut fields)?;
    let Fields { ends, rows, feeds } = fields;
    let Some(last) = ends.iter().rposition(|&end| data[end as usize] == b'\n') else { return Ok(None) };
    ends.truncate(last + 1);
    let end = ends[last] as usize + 1;
    let lines = feeds - memchr::memchr_iter(b'\n', &data[end..]).count();
    Ok(Some((Found { rows, unclosed: false, ascii }, Whole { end, lines })))
}

/// The whole rows of data that starts at a row.
///
/// # Errors
/// When quotes stand where parity can't tell.
pub(crate) fn whole_rows(data: &[u8], delimiter: u8, quote: u8) -> Result<Option<Whole>, Irregular> {
    let mut last = LastRow { base: 0, lines: 0, feeds: 0 };
    scan(data, delimiter, Some(quote), &mut last)?;
    let LastRow { base, lines, feeds } = last;
    if lines == 0 {
        return Ok(None);
    }
    let end = base + 64 - lines.leading_zeros() as usize;
    Ok(Some(Whole { end, lines: feeds - memchr::memchr_iter(b'\n', &data[end..]).count() }))
}

/// Takes what was found in one block after the other. Bit k of a mask stands for byte `base + k`.
trait Take {
    /// `separators` and `lines`, those of them that are line ends, stand outside quotes; `feeds` are all line feeds.
    fn take(&mut self, base: usize, separators: u64, lines: u64, feeds: u64);
}

struct Fields<'a> {
    ends: &'a mut Ends,
    rows: usize,
    feeds: usize,
}

impl Take for Fields<'_> {
    #[inline(always)]
    fn take(&mut self, base: usize, separators: u64, lines: u64, feeds: u64) {
        self.rows += lines.count_ones() as usize;
        self.feeds += feeds.count_ones() as usize;
        self.ends.push_bits(base as u32, separators);
    }
}

/// The last block that has a line end.
struct LastRow {
    base: usize,
    lines: u64,
    feeds: usize,
}

impl Take for LastRow {
    #[inline(always)]
    fn take(&mut self, base: usize, _separators: u64, lines: u64, feeds: u64) {
        self.feeds += feeds.count_ones() as usize;
        (self.base, self.lines) = if lines == 0 { (self.base, self.lines) } else { (base, lines) };
    }
}

/// What a scan finds out about all of the data.
struct Scanned {
    /// It ends within quotes.
    unclosed: bool,
    /// Every byte is an ASCII character.
    ascii: bool,
}

fn scan(data: &[u8], delimiter: u8, quote: Option<u8>, take: &mut impl Take) -> Result<Scanned, Irregular> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt")]
fn scan_avx2(data: &[u8], delimiter: u8, quote: Option<u8>, take: &mut impl Take) -> Result<Scanned, Irregular> {
    match quote {
        Some(quote) => blocks::<Avx2, true>(data, delimiter, quote, take),
        None => blocks::<Avx2, false>(data, delimiter, 0, take),
    }
}

#[inline(always)]
fn blocks<B: Block, const QUOTED: bool>(
    data: &[u8],
    delimiter: u8,
    quote: u8,
    take: &mut impl Take,
) -> Result<Scanned, Irregular> {
    let mut walk = Walk::<B, QUOTED> { delimiter, quote, base: 0, within: 0, may_open: 1, irregular: 0, bits: B::NONE };
    let (whole, rest) = data.as_chunks::<64>();
    for block in whole {
        walk.pass(block, !0, take);
    }
    if !rest.is_empty() {
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        walk.pass(&last, (1 << rest.len()) - 1, take);
    }
    match walk.irregular {
        0 => Ok(Scanned { unclosed: walk.within != 0, ascii: !B::high(walk.bits) }),
        _ => Err(Irregular),
    }
}

/// What is known of the blocks so far.
struct Walk<B: Block, const QUOTED: bool> {
    delimiter: u8,
    quote: u8,
    base: usize,
    /// All ones while within quotes.
    within: u64,
    /// Whether the byte before the block lets a quote open.
    may_open: u64,
    /// Quotes that open where they may not.
    irregular: u64,
    /// The bits that any byte has.
    bits: B::Bits,
}

impl<B: Block, const QUOTED: bool> Walk<B, QUOTED> {
    /// The next block, of which only these bytes are there.
    #[inline(always)]
    fn pass(&mut self, block: &[u8; 64], valid: u64, take: &mut impl Take) {
        self.bits = B::or(self.bits, block);
        let feeds = B::equal(block, b'\n') & valid;
        let mut separators = (B::equal(block, self.delimiter) & valid) | feeds;
        let mut lines = feeds;
        if QUOTED {
            let quotes = B::equal(block, self.quote) & valid;
            let inside = B::prefix_xor(quotes) ^ self.within;
            separators &= !inside;
            lines &= !inside;
            let before = separators | (quotes & !inside);
            self.irregular |= quotes & inside & !((before << 1) | self.may_open);
            self.may_open = before >> 63;
            self.within = ((inside as i64) >> 63) as u64;
        }
        take.take(self.base, separators, lines, feeds);
        self.base += 64;
    }
}

/// What is done with a block of bytes and its masks.
trait Block {
    /// Bit k: byte k equals `byte`.
    fn equal(block: &[u8; 64], byte: u8) -> u64;

    /// The bits that any byte of some blocks has.
    type Bits: Copy;

    /// No bits.
    const NONE: Self::Bits;

    /// With those of another block.
    fn or(bits: Self::Bits, block: &[u8; 64]) -> Self::Bits;

    /// Whether a byte has its highest bit.
    fn high(bits: Self::Bits) -> bool;

    /// Bit k: the parity of the bits up to and with k.
    #[inline(always)]
    fn prefix_xor(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }
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

    type Bits = u64;

    const NONE: u64 = 0;

    #[inline(always)]
    fn or(bits: u64, block: &[u8; 64]) -> u64 {
        block.as_chunks::<8>().0.iter().fold(bits, |bits, word| bits | u64::from_le_bytes(*word))
    }

    fn high(bits: u64) -> bool {
        bits & 0x8080_8080_8080_8080 != 0
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

    type Bits = std::arch::x86_64::__m256i;

    // SAFETY: any 32 bytes are such a register.
    const NONE: Self::Bits = unsafe { std::mem::transmute([0u8; 32]) };

    #[inline(always)]
    fn or(bits: Self::Bits, block: &[u8; 64]) -> Self::Bits {
        use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_or_si256};
        // SAFETY: as in `equal`.
        unsafe {
            let low = _mm256_loadu_si256(block.as_ptr().cast::<__m256i>());
            let high = _mm256_loadu_si256(block.as_ptr().add(32).cast::<__m256i>());
            _mm256_or_si256(bits, _mm256_or_si256(low, high))
        }
    }

    #[inline(always)]
    fn high(bits: Self::Bits) -> bool {
        // SAFETY: as in `equal`.
        unsafe { std::arch::x86_64::_mm256_movemask_epi8(bits) != 0 }
    }

    #[inline(always)]
    fn prefix_xor(bits: u64) -> u64 {
        use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi8};
        // SAFETY: only `scan_avx2` uses this type, so the processor has PCLMULQDQ.
        unsafe {
            let product = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(bits as i64), _mm_set1_epi8(-1));
            _mm_cvtsi128_si64(product) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_look_at_a_block_agree() {
        let mut block = [0u8; 64];
        for seed in 0..2000u32 {
            for (i, byte) in block.iter_mut().enumerate() {
                *byte = ((seed.wrapping_mul(2_654_435_761).rotate_left(i as u32) % 7) as u8).wrapping_mul(0x2b);
            }
            assert_eq!(Plain::high(Plain::or(Plain::NONE, &block)), !block.is_ascii());
            for byte in [0, 0x2b, 0x56, 0x81, 0xac, 0xff] {
                let naive = block.iter().enumerate().fold(0u64, |m, (i, b)| m | (u64::from(*b == byte) << i));
                assert_eq!(Plain::equal(&block, byte), naive);
                let parity = (0..64).fold(0u64, |m, k| m | u64::from((naive << (63 - k)).count_ones() & 1) << k);
                assert_eq!(Plain::prefix_xor(naive), parity);
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("pclmulqdq") {
                    assert_eq!((Avx2::equal(&block, byte), Avx2::prefix_xor(naive)), (naive, parity));
                    assert_eq!(Avx2::high(Avx2::or(Avx2::NONE, &block)), !block.is_ascii());
                }
            }
        }
    }

    #[test]
    fn quotes_in_the_middle_of_a_field_are_irregular() {
        let mut ends = Ends::default();
        assert_eq!(field_ends(b"a,5\" pipe,c\n", b',', Some(b'"'), &mut ends), Err(Irregular));
        assert_eq!(
            field_ends(b"a,\"x\"\"y\n\",c\n", b',', Some(b'"'), &mut ends),
            Ok(Found { rows: 1, unclosed: false, ascii: true })
        );
        assert_eq!(&ends[..], &[1, 9, 11]);
        let data = b"a,\"x\n\"\nb\n\"c\n";
        let found = Found { rows: 2, unclosed: false, ascii: true };
        assert_eq!(whole_field_ends(data, b',', Some(b'"'), &mut ends), Ok(Some((found, Whole { end: 9, lines: 3 }))));
        assert_eq!(&ends[..], &[1, 6, 8]);
        assert_eq!(whole_field_ends(b"a,b", b',', None, &mut ends), Ok(None));
        let whole = whole_rows(b"a,\"x\n\"\nb\n\"c\n", b',', b'"');
        assert_eq!(whole, Ok(Some(Whole { end: 9, lines: 3 })));
    }

    #[test]
    fn a_block_may_be_nothing_but_separators() {
        let mut ends = Ends::default();
        assert_eq!(
            field_ends(&[b','; 200], b',', None, &mut ends),
            Ok(Found { rows: 1, unclosed: false, ascii: true })
        );
        assert!(ends.iter().copied().eq(0..=200));
    }
}
