//! Numbers from text in their common forms, exact and without allocation. `None` says nothing: the one reading of all forms,
//! and the reason why a text is none of them, is `dfc_eval::parse_value`, which is asked next.

/// Largest power of ten in 64 bits, and all below it.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Digits with an optional sign.
#[inline]
pub(crate) fn int64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut n = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n = n * 10 + i64::from(digit);
    }
    Some(if negative { -n } else { n })
}

/// What eight digits say, the first in the lowest byte; `None` where one is none.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    number_of(word ^ ZEROS)
}

/// The same with digits as numbers.
#[inline]
fn number_of(digits: u64) -> Option<u64> {
    const TOP: u64 = 0x8080_8080_8080_8080;
    // A byte above 9 has its highest bit set by the sum.
    if (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & TOP != 0 {
        return None;
    }
    // Pairs, then all four pairs at once: as in Lemire's `fast_float`.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let odd = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let even = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some(odd.wrapping_add(even) >> 32)
}

/// Eight times the digit 0.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The last 16 bytes up to `end`, those before `start`, at most 16 bytes back, taken for zeros: the last one in the highest byte.
/// `None` where the data doesn't begin early enough.
#[inline]
fn window(data: &[u8], start: usize, end: usize) -> Option<u128> {
    let bytes = data.get(end.checked_sub(16)?..end)?;
    let word = u128::from_le_bytes(bytes.try_into().ok()?);
    let before = (1u128 << (8 * (16 - (end - start)))) - 1;
    Some(word & !before | (u128::from(ZEROS) << 64 | u128::from(ZEROS)) & before)
}

/// The same for at most 8 bytes.
#[inline]
fn short_window(data: &[u8], start: usize, end: usize) -> Option<u64> {
    let bytes = data.get(end.checked_sub(8)?..end)?;
    let word = u64::from_le_bytes(bytes.try_into().ok()?);
    let before = (1u64 << (8 * (8 - (end - start)))) - 1;
    Some(word & !before | ZEROS & before)
}

#[inline]
fn sixteen_digits(word: u128) -> Option<u64> {
    Some(eight_digits(word as u64)? * 100_000_000 + eight_digits((word >> 64) as u64)?)
}

/// [`int64`] of what stands between these places of the data.
#[inline]
pub(crate) fn int64_in(data: &[u8], start: usize, end: usize) -> Option<i64> {
    let negative = data.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let n = match end.wrapping_sub(first) {
        1..=8 => short_window(data, first, end).and_then(eight_digits),
        9..=16 => window(data, first, end).and_then(sixteen_digits),
        _ => None,
    };
    match n {
        Some(n) => Some(if negative { -(n as i64) } else { n as i64 }),
        None => int64(&data[start..end]),
    }
}

/// Reads decimals of one type whose mantissas fit 64 bits. What depends on the type alone is worked out before the first of them.
#[derive(Clone, Copy)]
pub(crate) struct ShortDecimals {
    scale: u8,
    limit: i64,
    /// By what a number without a point is multiplied.
    factor: i64,
    /// Where the point stands in the last eight bytes, in bits; `None`: not there.
    point: Option<u32>,
}

impl ShortDecimals {
    /// Those of a scale of at most 18; `limit` is 10^precision.
    pub(crate) fn new(scale: u8, limit: i64) -> Self {
        let point = 7u32.checked_sub(scale.into()).map(|at| 8 * at);
        ShortDecimals { scale, limit, factor: POWERS[usize::from(scale)], point }
    }

    /// [`short_decimal`] of what stands between these places of the data.
    #[inline(always)]
    pub(crate) fn read(&self, data: &[u8], start: usize, end: usize) -> Option<i64> {
        self.up_to_eight(data, start, end).or_else(|| self.longer(data, start, end))
    }

    /// At most eight bytes with all decimals or none of them: most numbers there are.
    #[inline(always)]
    fn up_to_eight(&self, data: &[u8], start: usize, end: usize) -> Option<i64> {
        let point = self.point?;
        let negative = data.get(start) == Some(&b'-');
        let len = end.wrapping_sub(start + usize::from(negative));
        if !(1..=8).contains(&len) {
            return None;
        }
        let bytes = data.get(end.checked_sub(8)?..end)?;
        // What stands before the number is shifted out.
        let before = 64 - 8 * len as u32;
        let word = (u64::from_le_bytes(bytes.try_into().ok()?) ^ ZEROS) >> before << before;
        // A point alone is no number.
        let n = if word >> point & 0xff == u64::from(b'.' ^ b'0') && len > 1 {
            let below = (1 << point) - 1;
            // The point goes out, what stands before it moves up a byte.
            number_of(word & (!below << 8) | (word & below) << 8)? as i64
        } else {
            // At most eight digits, and at most seven more.
            number_of(word)? as i64 * self.factor
        };
        (n < self.limit).then_some(if negative { -n } else { n })
    }

    fn longer(&self, data: &[u8], start: usize, end: usize) -> Option<i64> {
        let negative = data.get(start) == Some(&b'-');
        let first = start + usize::from(negative);
        let places = u32::from(self.scale);
        // All its decimals, and a digit before the point at least.
        let n = match end.wrapping_sub(first) {
            len @ 9..=16 if (1..len as u32 - 1).contains(&places) => window(data, first, end).and_then(|word| {
                let point = 8 * (15 - places);
                let below = (1u128 << point) - 1;
                let digits = word & (!below << 8) | (word & below) << 8 | u128::from(b'0');
                (word >> point & 0xff == u128::from(b'.')).then(|| sixteen_digits(digits)).flatten()
            }),
            _ => None,
        };
        match n {
            Some(n) if (n as i64) < self.limit => Some(if negative { -(n as i64) } else { n as i64 }),
            _ => short_decimal(&data[start..end], self.scale, self.limit),
        }
    }
}

#[inline]
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// A decimal whose mantissa fits 64 bits (precision ≤ 18). `limit` is 10^precision.
pub(crate) fn short_decimal(text: &[u8], scale: u8, limit: i64) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    // 18 digits and a point don't overflow; 19 digits may, and are refused after the loop.
    let mut n = 0i64;
    let mut at = 0;
    while at < digits.len() {
        let digit = digits[at].wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        n = n.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let mut missing = usize::from(scale);
    if at == digits.len() {
        if at > 18 {
            return None;
        }
    } else {
        if digits[at] != b'.' || digits.len() == 1 {
            return None;
        }
        let fraction = &digits[at + 1..];
        missing = missing.checked_sub(fraction.len())?;
        for &byte in fraction {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            n = n * 10 + i64::from(digit);
        }
    }
    let n = n.checked_mul(POWERS[missing])?;
    (n < limit).then_some(if negative { -n } else { n })
}

/// A decimal of up to 38 digits. `limit` is 10^precision.
pub(crate) fn wide_decimal(text: &[u8], scale: u8, limit: i128) -> Option<i128> {
    let (negative, digits) = sign(text);
    // 38 digits and a point: no overflow below.
    if digits.is_empty() || digits.len() > 39 {
        return None;
    }
    let point = memchr::memchr(b'.', digits).unwrap_or(digits.len());
    let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > 38 {
        return None;
    }
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    let mut n = 0i128;
    for &byte in whole.iter().chain(fraction) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n = n * 10 + i128::from(digit);
    }
    let n = n.checked_mul(10i128.pow(missing as u32))?;
    (n < limit).then_some(if negative { -n } else { n })
}

/// A finite float64.
pub(crate) fn float64(text: &[u8]) -> Option<f64> {
    let value: f64 = float_text(text)?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// A finite float32.
pub(crate) fn float32(text: &[u8]) -> Option<f32> {
    let value: f32 = float_text(text)?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Leaves out `inf`, `nan` and the like, which the standard library reads.
fn float_text(text: &[u8]) -> Option<&str> {
    if !text.iter().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
        return None;
    }
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use dfc_ir::{Type, Value};

    use super::*;

    const TEXTS: [&str; 40] = [
        "0",
        "-0",
        "-7",
        "+7",
        "007",
        "1.2",
        "-1.25",
        "+.5",
        "5.",
        ".",
        "-",
        "-.",
        "",
        "1e5",
        "1,5",
        "1.2.3",
        "NaN",
        "inf",
        "-Infinity",
        " 1",
        "1 ",
        "0x1",
        "1_000",
        "1.230",
        "1.234",
        "9999999999999.99",
        "-9999999999999.99",
        "10000000000000",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "123456789012345678",
        "1234567890123456789.1",
        "99999999999999999999999999999999999999",
        "999999999999999999999999999999999999.99",
        "1e999",
        "1.5E-3",
        "٣",
        "--1",
        "+-1",
    ];

    /// Where the fast form answers, it answers as the full one.
    #[test]
    fn fast_forms_agree_with_the_full_reading() {
        for text in TEXTS {
            let bytes = text.as_bytes();
            let full = |ty: Type| dfc_eval::parse_value(text, &ty).ok();
            if let Some(n) = int64(bytes) {
                assert_eq!(full(Type::INT64), Some(Value::Int(n.into())), "{text}");
            }
            if let Some(n) = short_decimal(bytes, 2, 10i64.pow(15)) {
                assert_eq!(full(Type::Decimal(15, 2)), Some(Value::Decimal(n.into())), "{text}");
            }
            if let Some(n) = wide_decimal(bytes, 2, 10i128.pow(38)) {
                assert_eq!(full(Type::Decimal(38, 2)), Some(Value::Decimal(n)), "{text}");
            }
            if let Some(n) = float64(bytes) {
                assert_eq!(full(Type::Float64), Some(Value::Float(n)), "{text}");
            }
            if let Some(n) = float32(bytes) {
                assert_eq!(full(Type::Float32), Some(Value::Float(n.into())), "{text}");
            }
        }
    }

    /// What stands around a field changes nothing.
    #[test]
    fn fields_are_read_where_they_stand() {
        for text in TEXTS.iter().copied().chain([
            "12345678",
            "123456789",
            "-1234567.89",
            "123456.78",
            "0.04",
            "1234567890123456",
            "12345678.",
            ".12345678",
            "123456.7",
            "123456789.",
            ".123456789012345",
            "12345678.9",
            "1.2.3456789",
            "..12345678",
        ]) {
            for before in ["", "7,", "12345678901234567,", "-"] {
                for after in ["", ",1", ".5"] {
                    let line = format!("{before}{text}{after}");
                    let (data, start, end) = (line.as_bytes(), before.len(), before.len() + text.len());
                    assert_eq!(int64_in(data, start, end), int64(text.as_bytes()), "{line}");
                    for (scale, limit) in [(2, 15), (0, 15), (1, 18), (6, 18), (14, 18), (18, 18), (2, 3)] {
                        let limit = 10i64.pow(limit);
                        let alone = short_decimal(text.as_bytes(), scale, limit);
                        assert_eq!(
                            ShortDecimals::new(scale, limit).read(data, start, end),
                            alone,
                            "{line} at scale {scale}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn common_forms_are_fast() {
        assert_eq!(int64(b"-42"), Some(-42));
        assert_eq!(short_decimal(b"21168.23", 2, 10i64.pow(15)), Some(2_116_823));
        assert_eq!(short_decimal(b"17", 2, 10i64.pow(15)), Some(1700));
        assert_eq!(short_decimal(b"1.234", 2, 10i64.pow(15)), None);
        assert_eq!(short_decimal(b"10000000000000", 2, 10i64.pow(15)), None);
        assert_eq!(wide_decimal(b"-1.5", 2, 10i128.pow(38)), Some(-150));
        assert_eq!(float64(b"1e5"), Some(1e5));
    }
}
