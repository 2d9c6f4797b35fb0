//! How values and their numbers in a dictionary are written down in a page: packed bits, runs, differences. As Parquet's description
//! ("Encodings") has them. It may not know where values come from, nor what a page is.

/// Whole numbers as they are stored.
pub(super) trait Whole: Copy + Ord + Default + Send + 'static {
    /// Differences that share a number of bits.
    const SHARING: usize;

    /// The difference, in the same number of bits.
    fn minus(self, other: Self) -> Self;
    /// Its bits without a sign.
    fn bits(self) -> u64;
    /// The number.
    fn long(self) -> i64;
}

impl Whole for i32 {
    const SHARING: usize = 32;

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    fn bits(self) -> u64 {
        u64::from(self as u32)
    }

    fn long(self) -> i64 {
        self.into()
    }
}

impl Whole for i64 {
    const SHARING: usize = 64;

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    fn bits(self) -> u64 {
        self as u64
    }

    fn long(self) -> i64 {
        self
    }
}

/// Groups of differences in a block, each with bits of its own.
const GROUPS: usize = 4;
/// Numbers of a group of packed bits.
const EIGHT: usize = 8;
/// A run is worth its own head if it would take so many bits otherwise.
const RUN: usize = 64;

/// Appends a number, seven bits a byte.
pub(super) fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn zigzag(n: i64) -> u64 {
    (n << 1 ^ n >> 63) as u64
}

/// Bits that a number needs.
pub(super) fn width(n: u64) -> u32 {
    64 - n.leading_zeros()
}

/// Packs numbers of so many bits each, from the lowest bit on.
#[inline(always)]
fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0, 0);
    for number in numbers {
        word |= number << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&u64::to_le_bytes(word));
            filled -= 64;
            word = if filled == 0 { 0 } else { number >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// DELTA_BINARY_PACKED: the first number, then differences, above the least of their block, in as many bits as their group needs.
pub(super) fn differences<T: Whole>(numbers: &[T], out: &mut Vec<u8>) {
    let block = GROUPS * T::SHARING;
    out.reserve(size_of_val(numbers) / 2);
    varint(block as u64, out);
    varint(GROUPS as u64, out);
    varint(numbers.len() as u64, out);
    varint(zigzag(numbers.first().map_or(0, |n| n.long())), out);
    let mut room = [T::default(); GROUPS * 64];
    for start in (1..numbers.len()).step_by(block) {
        let these = &numbers[start..numbers.len().min(start + block)];
        let differences = &mut room[..block];
        let pairs = these.iter().zip(&numbers[start - 1..]);
        differences.iter_mut().zip(pairs).for_each(|(to, (number, before))| *to = number.minus(*before));
        let least = differences[..these.len()].iter().copied().min().unwrap_or_default();
        differences[..these.len()].iter_mut().for_each(|difference| *difference = difference.minus(least));
        differences[these.len()..].fill(T::default());
        varint(zigzag(least.long()), out);
        let groups = differences.chunks_exact(T::SHARING);
        let mut widths = [0; GROUPS];
        for (of_group, group) in widths.iter_mut().zip(groups.clone()) {
            *of_group = width(group.iter().fold(0, |bits, n| bits | n.bits())) as u8;
        }
        out.extend_from_slice(&widths);
        // Groups without numbers have no bits.
        for (group, width) in groups.zip(widths).take(these.len().div_ceil(T::SHARING)) {
            pack(group.iter().map(|n| n.bits()), width.into(), out);
        }
    }
}

/// The mix of runs and packed bits in which numbers of so many bits are written.
pub(super) fn runs(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let value_bytes = width.div_ceil(8) as usize;
    let run = |len: usize, number: u32, out: &mut Vec<u8>| {
        varint((len as u64) << 1, out);
        out.extend_from_slice(&number.to_le_bytes()[..value_bytes]);
    };
    let packed = |numbers: &[u32], out: &mut Vec<u8>| {
        if numbers.is_empty() {
            return;
        }
        let groups = numbers.len().div_ceil(EIGHT);
        varint((groups as u64) << 1 | 1, out);
        let missing = groups * EIGHT - numbers.len();
        pack(numbers.iter().map(|n| u64::from(*n)).chain(std::iter::repeat_n(0, missing)), width, out);
    };
    out.reserve(numbers.len() * width as usize / 8 + 16);
    let (mut from, mut at) = (0, 0);
    while let Some(group) = numbers[at..].first_chunk::<EIGHT>() {
        let same = group.iter().fold(0, |differ, n| differ | (n ^ group[0])) == 0;
        let len = if same { numbers[at..].iter().take_while(|n| **n == group[0]).count() } else { 0 };
        if same && (len * width as usize >= RUN || width == 0) {
            packed(&numbers[from..at], out);
            run(len, group[0], out);
            at += len;
            from = at;
        } else {
            // (All of a run that is no run of its own, as far as it fills groups.)
            at += EIGHT * (len / EIGHT).max(1);
        }
    }
    packed(&numbers[from..], out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads packed bits.
    fn unpack(bytes: &[u8], width: u32, count: usize) -> Vec<u64> {
        let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
        (0..count).map(|k| (0..width as usize).fold(0, |n, b| n | bit(k * width as usize + b) << b)).collect()
    }

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        let mut n = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        n
    }

    fn read_runs(mut bytes: &[u8], width: u32, count: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let head = read_varint(&mut bytes);
            let (len, of_value) = ((head >> 1) as usize, width.div_ceil(8) as usize);
            if head & 1 == 0 {
                let mut value = [0; 8];
                value[..of_value].copy_from_slice(&bytes[..of_value]);
                bytes = &bytes[of_value..];
                numbers.extend(std::iter::repeat_n(u64::from_le_bytes(value), len));
            } else {
                let size = len * width as usize;
                numbers.extend(unpack(&bytes[..size], width, len * 8));
                bytes = &bytes[size..];
            }
        }
        assert!(bytes.is_empty() && numbers.len() < count + 8);
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn runs_are_short() {
        let size = |numbers: &[u32], width| {
            let mut out = Vec::new();
            runs(numbers, width, &mut out);
            out.len()
        };
        assert_eq!((size(&[5; 20_000], 3), size(&[0; 20_000], 0), size(&[], 3)), (4, 3, 0));
        // 2 bits each, and the packed numbers' head.
        let mixed: Vec<u32> = (0..20_000).map(|n| n * n / 7 % 4).collect();
        assert!(size(&mixed, 2) <= 5_003 + 8);
    }

    proptest! {
        #[test]
        fn runs_and_packed_bits_can_be_read(
            pieces in prop::collection::vec((0u32..1 << 9, 0usize..90, any::<bool>()), 0..12), more in 0u32..8,
        ) {
            let numbers = pieces.iter().flat_map(|(n, len, same)| (0..*len as u32).map(move |k| if *same { *n } else { (n + k * 37) % 512 }));
            let numbers: Vec<u32> = numbers.collect();
            let all = numbers.iter().fold(0, |bits, n| bits | n);
            let width = width(all.into()) + more;
            let mut out = Vec::new();
            runs(&numbers, width, &mut out);
            prop_assert_eq!(read_runs(&out, width, numbers.len()), numbers.iter().map(|n| u64::from(*n)).collect::<Vec<_>>());
        }
    }
}
