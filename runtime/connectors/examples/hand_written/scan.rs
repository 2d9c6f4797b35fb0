//! Rows of a CSV file: where fields end, 64 bytes at a time, and what a thread's share of the file is. It may not know what the fields mean.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi8, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
};
use std::os::unix::fs::FileExt;

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// The rows of a piece, of so many fields each.
pub(crate) struct Rows<'a, const WIDTH: usize> {
    text: &'a [u8],
    /// Where fields end, one after the other, behind a first entry that stands for the end before the first.
    ends: &'a [u32],
}

impl<const WIDTH: usize> Rows<'_, WIDTH> {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() / WIDTH
    }

    #[inline(always)]
    pub(crate) fn field(&self, row: usize, field: usize) -> &[u8] {
        let at = row * WIDTH + field;
        &self.text[self.ends[at].wrapping_add(1) as usize..self.ends[at + 1] as usize]
    }
}

/// A decimal of scale 2 whose point may be missing and whose decimals may be fewer.
#[inline(always)]
pub(crate) fn decimal(text: &[u8]) -> i64 {
    let (mut n, mut decimals) = (0i64, 0);
    let mut behind = false;
    for &byte in text {
        if byte == b'.' {
            behind = true;
        } else {
            n = n * 10 + i64::from(byte & 15);
            decimals += u32::from(behind);
        }
    }
    n * [100, 10, 1][decimals as usize]
}

/// A whole number of no sign.
#[inline(always)]
pub(crate) fn number(text: &[u8]) -> i64 {
    text.iter().fold(0, |n, byte| n * 10 + i64::from(byte & 15))
}

/// Where fields end in a text that starts at a row; how long its whole rows are, and how many entries theirs.
///
/// # Safety
/// The processor has AVX2 and PCLMULQDQ.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt")]
unsafe fn find(text: &[u8], ends: &mut [u32]) -> (usize, usize) {
    let equal = |block: &[u8; 64], byte: u8| {
        let pattern = _mm256_set1_epi8(byte as i8);
        // SAFETY: both loads stay within the 64 bytes and may be unaligned.
        let (low, high) = unsafe {
            let at = block.as_ptr().cast::<__m256i>();
            (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)))
        };
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, pattern)) as u32;
        u64::from(low) | u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, pattern)) as u32) << 32
    };
    ends[0] = u32::MAX;
    let (mut count, mut within, mut base, mut whole) = (1, 0u64, 0, (0, 1));
    let (blocks, rest) = text.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain([&last]) {
        let quotes = equal(block, b'"');
        let product = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(quotes as i64), _mm_set1_epi8(-1));
        let inside = _mm_cvtsi128_si64(product) as u64 ^ within;
        within = (inside as i64 >> 63) as u64;
        let lines = equal(block, b'\n') & !inside;
        let mut bits = lines | equal(block, b',') & !inside;
        if lines != 0 {
            let end = 63 - lines.leading_zeros();
            whole = (base + end as usize + 1, count + (bits & (!0 >> (63 - end))).count_ones() as usize);
        }
        let (slots, found) = (&mut ends[count..count + 64], bits.count_ones() as usize);
        for slot in &mut slots[..12] {
            *slot = base as u32 + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        for slot in slots.iter_mut().take(found).skip(12) {
            *slot = base as u32 + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        count += found;
        base += 64;
    }
    whole
}

/// Hands the rows that begin in a part of the file to `take`.
pub(crate) fn read<const WIDTH: usize>(file: &File, part: Range<u64>, size: u64, mut take: impl FnMut(Rows<WIDTH>)) {
    // At most a field a byte: there is always room for the writes of 64.
    let (mut buffer, mut room) = (vec![0; PIECE], vec![0; PIECE + 65]);
    // The first line is the header; elsewhere a row begins behind the first line feed.
    let (mut at, mut begun) = (part.start.saturating_sub(1), false);
    while at < part.end {
        let len = PIECE.min((size - at) as usize);
        file.read_exact_at(&mut buffer[..len], at).expect("the file is read");
        let mut text = &buffer[..len];
        if !begun {
            let feed = text.iter().position(|&byte| byte == b'\n').expect("a line ends in its first piece");
            (text, begun) = (&text[feed + 1..], true);
            at += feed as u64 + 1;
        }
        // SAFETY: the caller has looked for the features.
        let (mut whole, count) = unsafe { find(text, &mut room) };
        let mut ends = &room[..count];
        assert!(whole > 0, "a row is longer than a piece, or the last has no line feed");
        if at + whole as u64 > part.end {
            // Rows that begin in the next part are the next thread's.
            while ends.len() > WIDTH + 1 && at + u64::from(ends[ends.len() - WIDTH - 1]) + 1 >= part.end {
                ends = &ends[..ends.len() - WIDTH];
            }
            whole = ends[ends.len() - 1] as usize + 1;
        }
        take(Rows { text, ends });
        at += whole as u64;
    }
}

/// What each thread has gathered of its share of a file.
pub(crate) fn gather<const WIDTH: usize, T: Send>(
    path: &Path,
    threads: u64,
    new: impl Fn() -> T + Sync,
    take: impl Fn(&mut T, Rows<WIDTH>) + Sync,
) -> Vec<T> {
    assert!(std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("pclmulqdq"));
    let file = File::open(path).expect("the file is there");
    let size = file.metadata().expect("its size").len();
    let work = |part: Range<u64>| {
        let mut gathered = new();
        read(&file, part, size, |rows| take(&mut gathered, rows));
        gathered
    };
    at_once(threads, |k| work(size * k / threads..size * (k + 1) / threads))
}

/// Each thread's answer.
pub(crate) fn at_once<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|k| scope.spawn(move || work(k))).collect();
        running.into_iter().map(|thread| thread.join().expect("a thread's answer")).collect()
    })
}
