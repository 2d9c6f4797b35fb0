//! Numbers and dates of up to 64 fields at once, in their common forms: the same steps for each field and none that depends on what stands
//! in it, so that the compiler does them for several fields by one instruction. A field of another form is only marked: the readings of
//! single texts (`number`, `time`) are asked next. It may not know where the fields come from.

use super::number::POWERS;

/// Fields of a block.
pub(crate) const BLOCK: usize = 64;

/// Where the fields of a block stand in their text. A field that isn't there ends before it starts.
pub(crate) struct Bounds {
    /// Their first bytes.
    pub starts: [u32; BLOCK],
    /// The bytes behind their last ones.
    pub ends: [u32; BLOCK],
}

/// Eight times the digit 0.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The highest bit of each byte.
const TOP: u64 = 0x8080_8080_8080_8080;
/// Signs and points as they stand when digits are numbers.
const MINUS: u64 = (b'-' ^ b'0') as u64;
const POINT: u64 = (b'.' ^ b'0') as u64;

/// Most decimals of a number whose point is among its last eight bytes.
pub(crate) const MOST_DECIMALS: u8 = 7;

/// How numbers of one type are read.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    /// Where the point of a number with all its decimals stands in its last eight bytes, in bits.
    point: u32,
    has_point: bool,
    /// By what a number without a point is multiplied.
    factor: u64,
    /// All numbers are nearer to zero.
    limit: i64,
}

impl Numbers {
    /// Whole numbers.
    pub(crate) fn whole() -> Self {
        Numbers { point: 0, has_point: false, factor: 1, limit: i64::MAX }
    }

    /// Decimals. `scale` is at most [`MOST_DECIMALS`]; more digits than 18 are in none of those that are read.
    pub(crate) fn decimals(precision: u8, scale: u8) -> Self {
        let point = 8 * u32::from(MOST_DECIMALS - scale);
        let (factor, limit) = (POWERS[usize::from(scale)] as u64, POWERS[usize::from(precision.min(18))]);
        Numbers { point, has_point: true, factor, limit }
    }

    /// Reads up to 15 digits with a sign and a point; bit k of what it gives: field k has another form, or its number isn't among them.
    pub(crate) fn read(&self, data: &[u8], bounds: &Bounds, out: &mut [i64; BLOCK]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has just been found to have the feature that the function is compiled for.
            return unsafe { numbers_avx2(self, data, bounds, out) };
        }
        self.read_here(data, bounds, out)
    }

    #[inline(always)]
    fn read_here(&self, data: &[u8], bounds: &Bounds, out: &mut [i64; BLOCK]) -> u64 {
        let mut lens = [0; BLOCK];
        let mut longest = 0;
        for ((len, start), end) in lens.iter_mut().zip(bounds.starts).zip(bounds.ends) {
            *len = i64::from(end.wrapping_sub(start));
            longest = longest.max(end.wrapping_sub(start));
        }
        let low = words(data, &bounds.ends, 8);
        match (longest > 8, self.has_point) {
            (false, false) => self.of_words::<false, false>(&lens, &low, &[0; BLOCK], out),
            (false, true) => self.of_words::<false, true>(&lens, &low, &[0; BLOCK], out),
            (true, false) => self.of_words::<true, false>(&lens, &low, &words(data, &bounds.ends, 16), out),
            (true, true) => self.of_words::<true, true>(&lens, &low, &words(data, &bounds.ends, 16), out),
        }
    }

    /// Of the last eight bytes of each field and, where one is longer, the eight before. All comparisons are of signed numbers, and products
    /// of halves of words, as these are what AVX2 has.
    #[inline(always)]
    fn of_words<const LONG: bool, const WITH_POINT: bool>(
        &self,
        lens: &[i64; BLOCK],
        low: &[u64; BLOCK],
        high: &[u64; BLOCK],
        out: &mut [i64; BLOCK],
    ) -> u64 {
        let below = (1u64 << self.point) - 1;
        let most = if LONG { 16 } else { 8 };
        let mut bad = [0u64; BLOCK];
        let mut any = 0;
        for k in 0..BLOCK {
            let len = lens[k];
            let is_long = LONG && len > 8;
            // What stands before the number is shifted out, and a sign becomes a zero before it.
            let shift = if is_long { 0 } else { (64 - 8 * len) as u64 & 63 };
            let word = (low[k] ^ ZEROS) >> shift;
            let high_shift = (128 - 8 * len) as u64 & 63;
            let upper = if is_long { (high[k] ^ ZEROS) >> high_shift } else { 0 };
            let negative = if is_long { upper } else { word } & 0xff == MINUS;
            let sign = if negative { 0xff } else { 0 };
            let mut word = if is_long { word } else { (word & !sign) << shift };
            let upper = (upper & !sign) << high_shift;
            let digits = len - i64::from(negative);
            let mut fits = (digits > 0) & (len <= most);
            let mut n;
            if WITH_POINT {
                let pointed = word >> self.point & 0xff == POINT;
                // The point goes out, what stands before it moves up a byte. A point alone is no number.
                let without = word & (!below << 8) | (word & below) << 8;
                fits &= !pointed | (digits > 1);
                word = if pointed { without } else { word };
                n = number_of(word);
                if LONG {
                    // The digits of both words without a point may be too many for what they are multiplied by.
                    fits &= pointed | !is_long;
                    n += product(number_of(upper), 10_000_000);
                } else {
                    n = product(n, if pointed { 1 } else { self.factor });
                }
                if LONG && !pointed {
                    n = n.wrapping_mul(self.factor);
                }
            } else {
                n = number_of(word);
                if LONG {
                    n += product(number_of(upper), 100_000_000);
                }
            }
            let n = n as i64;
            fits &= ((not_digits(word) | not_digits(upper)) & TOP == 0) & (n < self.limit);
            let sign = -i64::from(negative);
            out[k] = (n ^ sign).wrapping_sub(sign);
            bad[k] = u64::from(!fits);
            any |= bad[k];
        }
        if any == 0 { 0 } else { mask(&bad) }
    }
}

/// Of numbers that fit 32 bits.
#[inline(always)]
fn product(a: u64, b: u64) -> u64 {
    (a & 0xffff_ffff) * (b & 0xffff_ffff)
}

/// The bits of what is marked.
fn mask(bad: &[u64; BLOCK]) -> u64 {
    bad.iter().enumerate().fold(0, |mask, (k, bad)| mask | bad << k)
}

/// The eight bytes that begin so many before each end.
#[inline(always)]
fn words(data: &[u8], ends: &[u32; BLOCK], back: usize) -> [u64; BLOCK] {
    let mut words = [0; BLOCK];
    for (word, end) in words.iter_mut().zip(ends) {
        let start = (*end as usize).wrapping_sub(back);
        let bytes = data.get(start..start.wrapping_add(8)).and_then(|bytes| bytes.first_chunk());
        // Where there aren't so many before, what stands there is no digit.
        *word = bytes.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
    }
    words
}

/// Has a highest bit where a byte is above 9.
#[inline(always)]
fn not_digits(word: u64) -> u64 {
    word.wrapping_add(0x7676_7676_7676_7676) | word
}

/// What eight digits say, the first in the lowest byte: by pairs, by fours, all.
#[inline(always)]
fn number_of(digits: u64) -> u64 {
    let pairs = (digits << 3).wrapping_add(digits << 1).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 6).wrapping_add(pairs << 5).wrapping_add(pairs << 2).wrapping_add(pairs >> 16);
    product(fours & 0xffff, 10_000) + (fours >> 32 & 0xffff)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn numbers_avx2(how: &Numbers, data: &[u8], bounds: &Bounds, out: &mut [i64; BLOCK]) -> u64 {
    how.read_here(data, bounds, out)
}

/// Reads dates as `time::date` does; bit k of what it gives: field k is none, or stands so near the data's start that it wasn't read.
pub(crate) fn dates(data: &[u8], bounds: &Bounds, out: &mut [i32; BLOCK]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been found to have the feature that the function is compiled for.
        return unsafe { dates_avx2(data, bounds, out) };
    }
    dates_here(data, bounds, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dates_avx2(data: &[u8], bounds: &Bounds, out: &mut [i32; BLOCK]) -> u64 {
    dates_here(data, bounds, out)
}

#[inline(always)]
fn dates_here(data: &[u8], bounds: &Bounds, out: &mut [i32; BLOCK]) -> u64 {
    // That of a digit becomes at most 9, that of a dash 0; what is more has its highest bit set by the sum.
    const FORM: u64 = u64::from_le_bytes(*b"00-00-00");
    let (low, high) = (words(data, &bounds.ends, 8), words(data, &bounds.ends, 16));
    let mut bad = [0u64; BLOCK];
    let mut any = 0;
    for k in 0..BLOCK {
        let len = bounds.ends[k].wrapping_sub(bounds.starts[k]);
        let (word, head) = (low[k] ^ FORM, high[k] >> 48 ^ 0x3030);
        let above = word.wrapping_add(0x7676_7f76_767f_7676) | word | head.wrapping_add(0x7676) | head;
        // Each byte ten times, and the one after it: two digits are a number where the first of them stood.
        let pairs = (word << 3).wrapping_add(word << 1).wrapping_add(word >> 8);
        let century = (head << 3).wrapping_add(head << 1).wrapping_add(head >> 8) & 0xff;
        let (in_century, month, day) = (pairs & 0xff, pairs >> 24 & 0xff, pairs >> 48 & 0xff);
        let leap = u64::from((if in_century == 0 { century } else { in_century }) & 3 == 0);
        // The year before: what leap days there were by then.
        let year = product(century, 100) + in_century;
        let before = year.wrapping_sub(1);
        let centuries = century.wrapping_sub(u64::from(in_century == 0));
        let leap_days = (before >> 2).wrapping_sub(centuries).wrapping_add(centuries >> 2);
        // The days before a month if February had 30: twelfths of a year that has 367.
        let days = product(product(367, month).wrapping_sub(362), 43_691) >> 19;
        let missing = if month as i64 > 2 { 2 - leap } else { 0 };
        let length = if month == 2 { 28 + leap } else { 30 + ((month ^ month >> 3) & 1) };
        let number = product(before, 365).wrapping_add(leap_days).wrapping_add(days).wrapping_sub(missing);
        out[k] = number.wrapping_add(day) as i32 - 719_163;
        let fits = (above & TOP == 0) & (len == 10) & (year != 0) & (month.wrapping_sub(1) < 12);
        let fits = fits & (day != 0) & (day as i64 <= length as i64);
        bad[k] = u64::from(!fits);
        any |= bad[k];
    }
    if any == 0 { 0 } else { mask(&bad) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::number::tests::TEXTS;
    use crate::text::number::{int64, short_decimal};
    use crate::text::time;

    /// Where a block's reading answers, it answers as that of a single text, whatever stands before and behind it; with `answers` decimals are
    /// all read.
    fn agrees(texts: &[String], before: &str, after: &str, answers: bool) {
        for texts in texts.chunks(BLOCK) {
            let mut data = String::from(before);
            let mut bounds = Bounds { starts: [0; BLOCK], ends: [0; BLOCK] };
            for (k, text) in texts.iter().enumerate() {
                bounds.starts[k] = data.len() as u32;
                data.push_str(text);
                bounds.ends[k] = data.len() as u32;
                data.push_str(after);
            }
            let data = data.as_bytes();
            let check = |how: Numbers, name: &str, one: &dyn Fn(&[u8]) -> Option<i64>| {
                let (mut fast, mut plain) = ([0; BLOCK], [0; BLOCK]);
                let unread = how.read(data, &bounds, &mut fast);
                assert_eq!(how.read_here(data, &bounds, &mut plain), unread, "{name}");
                for (k, text) in texts.iter().enumerate() {
                    if unread >> k & 1 == 0 {
                        assert_eq!(Some(fast[k]), one(text.as_bytes()), "`{text}` after `{before}` as {name}");
                        assert_eq!(plain[k], fast[k], "`{text}` as {name}");
                    } else {
                        assert!(!answers, "`{text}` as {name} isn't read");
                    }
                }
            };
            if !answers {
                check(Numbers::whole(), "int", &int64);
            }
            for (precision, scale) in [(15, 2), (18, 0), (18, 1), (18, 6), (18, 7), (3, 2)] {
                let limit = POWERS[precision as usize];
                if !answers || (precision, scale) == (15, 2) {
                    let one = |text: &[u8]| short_decimal(text, scale, limit);
                    check(Numbers::decimals(precision, scale), &format!("decimal({precision}, {scale})"), &one);
                }
            }
            let mut days = [0; BLOCK];
            let unread = dates(data, &bounds, &mut days);
            for (k, text) in texts.iter().enumerate() {
                let date = time::date(text.as_bytes());
                // The first field may be too near the start.
                if unread >> k & 1 == 0 || bounds.ends[k] >= 16 {
                    assert_eq!((unread >> k & 1 == 0).then_some(days[k]), date, "`{text}` as date");
                }
            }
        }
    }

    #[test]
    fn fields_are_read_where_they_stand() {
        let dates = [
            "1996-02-29",
            "1900-02-29",
            "0000-01-01",
            "9999-12-31",
            "1996-13-01",
            "1996-00-10",
            "1996-01-00",
            "1996-01-32",
            "1996/01/01",
            "1996-1-011",
            "199:-01-01",
        ];
        let texts: Vec<String> = TEXTS.into_iter().chain(dates).map(String::from).collect();
        for before in ["", "7,", "12345678901234567,", "-", "1.", "123456789012345-"] {
            for after in ["", ",1", ".5", ",12345678901234567890"] {
                agrees(&texts, before, after, false);
            }
        }
    }

    /// What is common is read here, wherever a block's fields begin.
    #[test]
    fn common_forms_are_fast() {
        let texts =
            ["0", "17", "-42", "0.04", "-0.04", "21168.23", "-1168.23", "104949.50", "-999999999999.99", "12345678"]
                .map(String::from);
        agrees(&texts, "a row before, ", ",", true);
    }

    /// Every day of four centuries, of the first year and the last, and what would be the days around the months' ends.
    #[test]
    fn days_are_counted() {
        let years = [0, 1, 4, 99, 100, 9999].into_iter().chain(1600..2001);
        let texts: Vec<String> = years
            .flat_map(|year| (0..14).flat_map(move |month| [0, 1, 28, 29, 30, 31, 32].map(|day| (year, month, day))))
            .map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"))
            .collect();
        agrees(&texts, "a row before, ", ",", false);
    }

    proptest! {
        #[test]
        fn any_texts_agree(texts in prop::collection::vec("[-+]?[0-9]{0,12}[.]?[0-9]{0,8}|[0-9a/:.-]{1,12}|[12][0-9]{3}-[01][0-9]-[0-3][0-9]", 1..80)) {
            agrees(&texts, "", "", false);
            agrees(&texts, "99999999999999999999,", ",", false);
        }
    }
}
