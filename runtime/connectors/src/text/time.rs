//! Dates and times from text in their ISO form, without allocation. As with numbers, `None` only means that
//! `dfc_eval::parse_value` must be asked.

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// Days since 1970-01-01 of a proleptic Gregorian date. After Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
/// The year is 1 or later.
#[inline]
pub(crate) fn days_from_civil(year: u32, month: u32, day: u32) -> i32 {
    let (y, shifted) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    (y * 365 + y / 4 - y / 100 + y / 400 + day_of_year) as i32 - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn civil_from_days(days: i32) -> (i32, u32, u32) {
    let z = i64::from(days) + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted + 2) / 5 + 1) as u32;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
    let year = (year_of_era + era * 400) as i32 + i32::from(month <= 2);
    (year, month, day)
}

#[inline]
fn two(text: &[u8], at: usize) -> Option<u32> {
    let (a, b) = (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0'));
    (a <= 9 && b <= 9).then(|| u32::from(a) * 10 + u32::from(b))
}

/// `YYYY-MM-DD`, years 0001 to 9999: days since 1970-01-01.
#[inline]
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    let &[y0, y1, y2, y3, a, m0, m1, b, d0, d1] = text else { return None };
    // All bytes at once: that of a digit becomes at most 9, that of a dash 0; what is more has its highest bit set by the sum.
    const FORM: u64 = u64::from_le_bytes(*b"0000-00-");
    const TOP: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes([y0, y1, y2, y3, a, m0, m1, b]) ^ FORM;
    let digit = |at: u32| (word >> (8 * at)) as u32 & 0xff;
    let (tens, ones) = (d0.wrapping_sub(b'0'), d1.wrapping_sub(b'0'));
    if (word.wrapping_add(0x7f76_767f_7676_7676) | word) & TOP != 0 || tens > 9 || ones > 9 {
        return None;
    }
    let year = digit(0) * 1000 + digit(1) * 100 + digit(2) * 10 + digit(3);
    let (month, day) = (digit(5) * 10 + digit(6), u32::from(tens) * 10 + u32::from(ones));
    if year == 0 || !(1..=12).contains(&month) || day == 0 || day > 28 && day > days_in_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// `HH:MM:SS`, `HH:MM:SS.f` with up to six digits: microseconds since midnight.
pub(crate) fn time(text: &[u8]) -> Option<i64> {
    if text.len() < 8 || text[2] != b':' || text[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (two(text, 0)?, two(text, 3)?, two(text, 6)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = match &text[8..] {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) => {
            (0..6).fold(0, |n, i| n * 10 + i64::from(digits.get(i).map_or(0, |d| d - b'0')))
        }
        _ => return None,
    };
    Some(i64::from(hour * 3600 + minute * 60 + second) * SECOND + fraction)
}

/// A date, `T` or a blank, and a time: microseconds since 1970-01-01T00:00:00.
pub(crate) fn datetime(text: &[u8]) -> Option<i64> {
    if text.len() < 19 || !matches!(text[10], b'T' | b' ') {
        return None;
    }
    Some(i64::from(date(&text[..10])?) * DAY + time(&text[11..])?)
}

/// The same with `Z`: microseconds since the epoch. (Offsets are left to the full reading.)
pub(crate) fn timestamp(text: &[u8]) -> Option<i64> {
    datetime(text.strip_suffix(b"Z")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_of_the_calendar() {
        assert_eq!(date(b"1970-01-01"), Some(0));
        assert_eq!(date(b"2000-02-29"), Some(11_016));
        assert_eq!(date(b"0001-01-01"), Some(-719_162));
        for text in [
            "0000-00-00",
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "31/12/2026",
            "2026-01-01 ",
            "",
            "2026-0a-01",
            "2026-01:01",
            "20-6-01-01",
            "2026/01/01",
            "2026-01-1\u{b2}",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
        for days in (-719_162..2_932_897).step_by(97) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y as u32, m, d), days);
            assert_eq!(date(format!("{y:04}-{m:02}-{d:02}").as_bytes()), Some(days));
        }
    }

    /// Where the fast form answers, it answers as the full one.
    #[test]
    fn fast_forms_agree_with_the_full_reading() {
        use dfc_ir::{Type, Value};
        for text in [
            "10:20",
            "10:20:30",
            "10:20:30.5",
            "10:20:30.",
            "10:20:30.1234567",
            "24:00:00",
            "00:60:00",
            "1970-01-02 00:00:01",
            "1970-01-02T00:00:01.000001",
            "1970-01-01T00:00:00Z",
            "1970-01-01T08:00:00+08:00",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
            "1970-01-01T00:00:00z",
            "2026-02-30T00:00:00",
            "",
            "T",
        ] {
            let full = |ty: Type| dfc_eval::parse_value(text, &ty).ok();
            if let Some(t) = time(text.as_bytes()) {
                assert_eq!(full(Type::Time), Some(Value::Time(t)), "{text}");
            }
            if let Some(t) = datetime(text.as_bytes()) {
                assert_eq!(full(Type::DateTime), Some(Value::DateTime(t)), "{text}");
            }
            if let Some(t) = timestamp(text.as_bytes()) {
                assert_eq!(full(Type::Timestamp), Some(Value::Timestamp(t)), "{text}");
            }
        }
        assert_eq!(datetime(b"1970-01-02 00:00:01"), Some(DAY + SECOND));
        assert_eq!(timestamp(b"1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(time(b"10:20:30.5"), Some(37_230_500_000));
    }
}
