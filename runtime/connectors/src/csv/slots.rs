//! Fields of one column, written column by column before rows are put together: each with its delimiter behind it in a slot of fixed size, by
//! steps that are the same for all of a block, so that the compiler does many of them for several fields at once. What is written
//! beyond a field stands in the next slots, which come later. It may not know how rows are put together.

use crate::text::time::civil_from_days;

/// Rows of a block, at most.
pub(super) const BLOCK: usize = 64;
/// Bytes of a slot: any number of 64 bits, its sign, point and delimiter.
pub(super) const SLOT: usize = 32;
/// Bytes of the longest text that fits a slot with two quotes and its delimiter.
pub(super) const TEXT: usize = SLOT - 3;
/// Bytes from a slot's start on that may be written.
const REACH: usize = 2 * SLOT;

/// Numbers below this have eight digits.
const EIGHT: u64 = 100_000_000;

/// The fields of a block.
pub(super) struct Slots {
    bytes: Vec<u8>,
    /// Of each field with its delimiter.
    lens: [u8; BLOCK],
}

/// Numbers of a block: how far they are from zero, and 1 where they are below.
pub(super) struct Numbers {
    pub of: [u64; BLOCK],
    pub negative: [u8; BLOCK],
}

impl Numbers {
    /// All are zero.
    pub(super) fn new() -> Self {
        Numbers { of: [0; BLOCK], negative: [0; BLOCK] }
    }
}

impl Slots {
    /// For blocks of so many rows.
    pub(super) fn new(rows: usize) -> Self {
        Slots { bytes: vec![0; rows * SLOT + REACH - SLOT], lens: [0; BLOCK] }
    }

    /// A slot and the length of the field in it.
    #[inline(always)]
    pub(super) fn get(&self, row: usize) -> (&[u8; SLOT], usize) {
        (&self.bytes.as_chunks().0[row], usize::from(self.lens[row]))
    }

    /// Where a slot's field and what goes beyond it are written.
    #[inline(always)]
    fn at(&mut self, row: usize) -> &mut [u8] {
        &mut self.bytes[row * SLOT..row * SLOT + REACH]
    }

    /// A null: nothing but its delimiter.
    pub(super) fn put_null(&mut self, row: usize, delimiter: u8) {
        (self.bytes[row * SLOT], self.lens[row]) = (delimiter, 1);
    }

    /// A text of at most [`TEXT`] bytes by its first 16 bytes and its last ones, as [`ends`] gives them; with quotes around it, or none.
    #[inline(always)]
    pub(super) fn put_text(
        &mut self,
        row: usize,
        (first, last): (&[u8; 16], &[u8; 16]),
        len: usize,
        quote: Option<u8>,
        delimiter: u8,
    ) {
        let slot = self.at(row);
        let quotes = usize::from(quote.is_some());
        // What follows takes the place of a quote that isn't wanted.
        slot[0] = quote.unwrap_or_default();
        slot[quotes..quotes + 16].copy_from_slice(first);
        let (end, from) = (quotes + len, quotes + len.max(16) - 16);
        slot[from..from + 16].copy_from_slice(last);
        slot[end] = quote.unwrap_or_default();
        slot[end + quotes] = delimiter;
        self.lens[row] = (end + quotes) as u8 + 1;
    }

    /// The first `count` numbers, of that many decimals, at most 18.
    #[inline(always)]
    pub(super) fn put_numbers(&mut self, numbers: &Numbers, count: usize, scale: usize, delimiter: u8) {
        let bits = numbers.of[..count].iter().fold(0, |bits, n| bits | n);
        match (bits < EIGHT && scale < 8, bits < EIGHT * EIGHT && scale < 16, scale) {
            (true, _, 0) => self.put_eight::<true>(numbers, count, 0, delimiter),
            (true, _, _) => self.put_eight::<false>(numbers, count, scale, delimiter),
            (_, true, 0) => self.put_sixteen::<true>(numbers, count, 0, delimiter),
            (_, true, _) => self.put_sixteen::<false>(numbers, count, scale, delimiter),
            _ => {
                for row in 0..count {
                    let negative = usize::from(numbers.negative[row]);
                    let slot = self.at(row);
                    slot[0] = b'-';
                    let len = negative + large(&mut slot[negative..], numbers.of[row], scale);
                    slot[len] = delimiter;
                    self.lens[row] = len as u8 + 1;
                }
            }
        }
    }

    /// Of eight digits. All of them are made, the zeros before the number are then shifted out.
    #[inline(always)]
    fn put_eight<const WHOLE: bool>(&mut self, numbers: &Numbers, count: usize, scale: usize, delimiter: u8) {
        // (So that it is known how far the writes below reach.)
        let scale = scale & 7;
        let mut short = [0; BLOCK];
        short.iter_mut().zip(&numbers.of).for_each(|(short, n)| *short = *n as u32);
        let digits = eights(&short);
        for row in 0..count {
            let zeros = ((digits[row] | 1 << 56).trailing_zeros() / 8) as usize;
            let digits = ascii(digits[row]);
            let whole = (8 - zeros).saturating_sub(scale).max(1);
            let negative = usize::from(numbers.negative[row] & 1);
            let slot = self.at(row);
            slot[0] = b'-';
            // Of the digits before the point only so many are there.
            slot[negative..negative + 8].copy_from_slice(&(digits >> (8 * (8 - scale - whole))).to_le_bytes());
            let mut len = negative + whole;
            if !WHOLE {
                slot[len] = b'.';
                slot[len + 1..len + 9].copy_from_slice(&(digits >> (8 * (8 - scale))).to_le_bytes());
                len += 1 + scale;
            }
            slot[len] = delimiter;
            self.lens[row] = len as u8 + 1;
        }
    }

    /// The same of sixteen.
    #[inline(always)]
    fn put_sixteen<const WHOLE: bool>(&mut self, numbers: &Numbers, count: usize, scale: usize, delimiter: u8) {
        let scale = scale & 15;
        let (mut high, mut low) = ([0; BLOCK], [0; BLOCK]);
        for ((high, low), n) in high.iter_mut().zip(&mut low).zip(&numbers.of) {
            (*high, *low) = ((n / EIGHT) as u32, (n % EIGHT) as u32);
        }
        let (high, low) = (eights(&high), eights(&low));
        for row in 0..count {
            let digits = u128::from(high[row]) | u128::from(low[row]) << 64;
            let zeros = ((digits | 1 << 120).trailing_zeros() / 8) as usize;
            let digits = digits | u128::from_le_bytes([b'0'; 16]);
            let whole = (16 - zeros).saturating_sub(scale).max(1);
            let negative = usize::from(numbers.negative[row] & 1);
            let slot = self.at(row);
            slot[0] = b'-';
            slot[negative..negative + 16].copy_from_slice(&(digits >> (8 * (16 - scale - whole))).to_le_bytes());
            let mut len = negative + whole;
            if !WHOLE {
                slot[len] = b'.';
                slot[len + 1..len + 17].copy_from_slice(&(digits >> (8 * (16 - scale))).to_le_bytes());
                len += 1 + scale;
            }
            slot[len] = delimiter;
            self.lens[row] = len as u8 + 1;
        }
    }

    /// Days since 1970-01-01, as dates.
    #[inline(always)]
    pub(super) fn put_dates(&mut self, days: &[i32], delimiter: u8) {
        const DASH: u64 = b'-' as u64;
        let mut dates = [0; BLOCK];
        for (date, days) in dates.iter_mut().zip(days) {
            let (year, month, day) = civil_from_days(*days);
            *date = year as u32 * 10_000 + month * 100 + day;
        }
        for (row, digits) in eights(&dates).into_iter().take(days.len()).enumerate() {
            let digits = ascii(digits);
            let start = digits & 0xffff_ffff | DASH << 32 | (digits >> 32 & 0xffff) << 40 | DASH << 56;
            let slot = self.at(row);
            slot[..8].copy_from_slice(&start.to_le_bytes());
            slot[8..10].copy_from_slice(&((digits >> 48) as u16).to_le_bytes());
            slot[10] = delimiter;
            self.lens[row] = 11;
        }
    }
}

/// Writes any number of that many decimals; gives its length.
fn large(out: &mut [u8], magnitude: u64, scale: usize) -> usize {
    // (A scale is at most 18, so there is a zero for the place before the point.)
    let mut digits = [b'0'; 20];
    let (mut rest, mut first) = (magnitude, 20);
    while rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let (whole, decimals) = digits[first.min(19 - scale)..].split_at(20 - scale - first.min(19 - scale));
    out[..whole.len()].copy_from_slice(whole);
    if scale == 0 {
        return whole.len();
    }
    out[whole.len()] = b'.';
    out[whole.len() + 1..whole.len() + 1 + scale].copy_from_slice(decimals);
    whole.len() + 1 + scale
}

/// The digits of numbers below 10⁸, each in its byte, the first in the lowest. Halves of words throughout, as several of those are multiplied by
/// one instruction.
#[inline(always)]
fn eights(numbers: &[u32; BLOCK]) -> [u64; BLOCK] {
    let mut digits = [0; BLOCK];
    for (to, n) in digits.iter_mut().zip(numbers) {
        let high = n / 10_000;
        let low = n.wrapping_sub(high.wrapping_mul(10_000));
        *to = u64::from(four_digits(high)) | u64::from(four_digits(low)) << 32;
    }
    digits
}

/// The digits of a number below 10⁴: two and one at a time are divided off, all at once.
#[inline(always)]
fn four_digits(n: u32) -> u32 {
    let hundreds = n.wrapping_mul(10_486) >> 20;
    let twos = hundreds | n.wrapping_sub(hundreds.wrapping_mul(100)) << 16;
    let tens = twos.wrapping_mul(103) >> 10 & 0x000f_000f;
    tens | twos.wrapping_sub(tens.wrapping_mul(10)) << 8
}

/// The first 16 bytes of a text that begins there and its last ones, which overlap; of a shorter text both are its bytes and some that follow.
#[inline(always)]
pub(super) fn ends(data: &[u8], start: usize, len: usize) -> Option<(&[u8; 16], &[u8; 16])> {
    let last = start + len.max(16) - 16;
    Some((data.get(start..start + 16)?.first_chunk()?, data.get(last..last + 16)?.first_chunk()?))
}

/// Digits as characters.
#[inline(always)]
fn ascii(digits: u64) -> u64 {
    digits | 0x3030_3030_3030_3030
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(slots: &Slots, row: usize) -> &str {
        let (slot, len) = slots.get(row);
        assert_eq!(slot[len - 1], b',');
        std::str::from_utf8(&slot[..len - 1]).unwrap()
    }

    #[test]
    fn numbers_are_written_as_the_library_writes_them() {
        let magnitudes = (0..20).flat_map(|n| {
            let power = 10u64.saturating_pow(n);
            [power - 1, power, power + 1, power / 7, power.saturating_mul(9)]
        });
        let others = [u64::MAX, 99_999_999, 100_000_000, 9_999_999_999_999_999, 10_203_040];
        let magnitudes: Vec<u64> = magnitudes.chain(others).collect();
        let mut slots = Slots::new(BLOCK);
        // Each by itself, and beside others that need more digits.
        for some in magnitudes.chunks(1).chain(magnitudes.chunks(7)).chain(magnitudes.chunks(BLOCK)) {
            for scale in 0..19 {
                for all_negative in [false, true] {
                    let mut numbers = Numbers::new();
                    numbers.of[..some.len()].copy_from_slice(some);
                    let negative = |row: usize| all_negative ^ (some.len() > 1 && row % 2 == 1);
                    (0..some.len()).for_each(|row| numbers.negative[row] = negative(row).into());
                    slots.put_numbers(&numbers, some.len(), scale, b',');
                    for (row, magnitude) in some.iter().enumerate() {
                        let digits = format!("{magnitude:0width$}", width = scale + 1);
                        let (whole, decimals) = digits.split_at(digits.len() - scale);
                        let (sign, point) = (if negative(row) { "-" } else { "" }, if scale > 0 { "." } else { "" });
                        assert_eq!(written(&slots, row), format!("{sign}{whole}{point}{decimals}"), "scale {scale}");
                    }
                }
            }
        }
        let eight = |n: u32| ascii(eights(&[n; BLOCK])[5]).to_le_bytes();
        assert!((0..100_000_000u32).step_by(9_973).all(|n| eight(n) == *format!("{n:08}").as_bytes()));
        assert!((0..10_000).all(|n| eight(n) == *format!("{n:08}").as_bytes()));
    }

    #[test]
    fn dates_nulls_and_short_texts_have_their_delimiter() {
        let mut slots = Slots::new(4);
        slots.put_dates(&[0, -719_162, 2_932_896, 9_204], b',');
        slots.put_null(3, b',');
        assert_eq!([0, 1, 2, 3].map(|row| written(&slots, row)), ["1970-01-01", "0001-01-01", "9999-12-31", ""]);
        let text = "a text of so many bytes, and some more behind it";
        for (len, quote) in (0..=TEXT).flat_map(|len| [(len, None), (len, Some(b'"'))]) {
            slots.put_text(1, ends(text.as_bytes(), 2, len).unwrap(), len, quote, b',');
            let quote = if quote.is_some() { "\"" } else { "" };
            assert_eq!(written(&slots, 1), format!("{quote}{}{quote}", &text[2..2 + len]));
        }
        assert!(ends(b"fifteen bytes..", 0, 3).is_none() && ends(text.as_bytes(), 30, 19).is_none());
    }
}
