//! Numbers from text in their common forms, exact and without allocation. `None` says nothing: the one reading of all forms,
//! and the reason why a text is none of them, is `dfc_eval::parse_value`, which is asked next.

/// Largest power of ten in 64 bits, and all below it.
pub(crate) const POWERS: [i64; 19] = {
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
    // By as many digits as 64 bits hold.
    let (mut n, mut of_some, mut tens) = (0i128, 0u64, 1u64);
    for &byte in whole.iter().chain(fraction) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if tens == POWERS[18] as u64 {
            n = n * i128::from(tens) + i128::from(of_some);
            (of_some, tens) = (0, 1);
        }
        (of_some, tens) = (of_some * 10 + u64::from(digit), tens * 10);
    }
    let n = n * i128::from(tens) + i128::from(of_some);
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
pub(crate) mod tests {
    use dfc_ir::{Type, Value};

    use super::*;

    /// Texts that are numbers, and some that nearly are.
    pub(crate) const TEXTS: [&str; 65] = [
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
        "-.5",
        "-.25",
        "1_0",
        "12345678",
        "123456789",
        "-12345678",
        "-1234567.89",
        "-12345.67",
        "123456.78",
        "0.04",
        "1234567890123456",
        "12345678901234567",
        "-123456789012345",
        "12345678.",
        ".12345678",
        ".1234567",
        "123456.7",
        "123456789.",
        ".123456789012345",
        "12345678.9",
        "1.2.3456789",
        "..12345678",
        "9.99",
        "10.00",
        "1234567.8901234",
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
