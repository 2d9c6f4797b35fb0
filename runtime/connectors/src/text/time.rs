//! Dates and times from text in their ISO form, without allocation. As with numbers, `None` only means that
//! `dfc_eval::parse_value` must be asked.

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// Year, month and day of a number of days since 1970-01-01. After Neri and Schneider, "Euclidean affine functions and their application to
/// calendar algorithms" (2022): years that begin in March, their months and days by products and shifts.
#[inline]
pub(crate) fn civil_from_days(days: i32) -> (i32, u32, u32) {
    // So many times 400 years earlier nothing is negative.
    const ERAS: i64 = 14_700;
    let from_march = (i64::from(days) + 719_468 + ERAS * 146_097) as u64;
    let quarters = 4 * from_march + 3;
    let (century, of_century) = (quarters / 146_097, (quarters % 146_097 / 4) as u32);
    let product = u64::from(4 * of_century + 3) * 2_939_745;
    let (year, of_year) = (century * 100 + (product >> 32), product as u32 / 2_939_745 / 4);
    let months = 2_141 * of_year + 197_913;
    let (month, day) = (months >> 16, (months & 0xffff) / 2_141 + 1);
    let next = of_year >= 306;
    let year = year as i64 - ERAS * 400 + i64::from(next);
    (year as i32, if next { month - 12 } else { month }, day)
}

#[inline]
fn two(text: &[u8], at: usize) -> Option<u32> {
    let (a, b) = (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0'));
    (a <= 9 && b <= 9).then(|| u32::from(a) * 10 + u32::from(b))
}

/// `YYYY-MM-DD`, years 0001 to 9999: days since 1970-01-01.
#[inline]
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    let (days, is_date) = ten_bytes(text.try_into().ok()?);
    is_date.then_some(days)
}

/// The same without a branch, and whether it is a date.
#[inline(always)]
pub(crate) fn ten_bytes(text: &[u8; 10]) -> (i32, bool) {
    let [c0, c1, y0, y1, a, m0, m1, b, d0, d1] = *text;
    // Eight bytes at once: that of a digit becomes at most 9, that of a dash 0; what is more has its highest bit set by the sum.
    const FORM: u64 = u64::from_le_bytes(*b"00-00-00");
    const TOP: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes([y0, y1, a, m0, m1, b, d0, d1]) ^ FORM;
    let head = u64::from(u16::from_le_bytes([c0, c1])) ^ 0x3030;
    let above = (word.wrapping_add(0x7676_7f76_767f_7676) | word | (head + 0x7676) | head) & TOP;
    // Each byte ten times, and the one after it: two digits are a number where the first of them stood.
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let two = |at: u32| (pairs >> (8 * at)) as usize & 0xff;
    let century = (head * 10 + (head >> 8)) as usize & 0xff;
    let year = YEARS[century & 127][two(0) & 127];
    let (month, day) = (two(3), two(6));
    let number = DAYS[(year & 1) as usize][month & 15][day & 31];
    let fits = (above == 0) & (month < 16) & (day < 32) & (year != 0) & (number != 0);
    ((year >> 1) as i32 + i32::from(number) - 719_164, fits)
}

/// One and the days from 0001-01-01 to each year, and in the lowest bit whether it has a leap day. By century and year of it; the year 0 and
/// what is none have 0.
static YEARS: [[u32; 128]; 128] = {
    let mut years = [[0; 128]; 128];
    let (mut year, mut before) = (1, 1);
    while year < 10_000 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        years[year / 100][year % 100] = before << 1 | leap as u32;
        before += 365 + leap as u32;
        year += 1;
    }
    years
};

/// The number of each day in its year, by month and day of it, in years without and with a leap day; what is no day has 0.
static DAYS: [[[u16; 32]; 16]; 2] = {
    let mut days = [[[0; 32]; 16]; 2];
    let mut leap = 0;
    while leap < 2 {
        let lengths = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let (mut month, mut number) = (1, 0);
        while month <= 12 {
            let mut day = 1;
            while day <= lengths[month - 1] {
                number += 1;
                days[leap][month][day] = number;
                day += 1;
            }
            month += 1;
        }
        leap += 1;
    }
    days
};

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

    /// Days since 1970-01-01 of a proleptic Gregorian date, by another way than [`date`] goes. The year is 1 or later.
    fn days_from_civil(year: u32, month: u32, day: u32) -> i32 {
        let (y, shifted) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
        let day_of_year = (153 * shifted + 2) / 5 + day - 1;
        (y * 365 + y / 4 - y / 100 + y / 400 + day_of_year) as i32 - 719_468
    }

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
            "1900-02-29",
            "2100-02-29",
            "2026-04-31",
            "2026-00-10",
            "2026-99-10",
            "2026-10-00",
            "2026-10-99",
            "/026-10-09",
            ":026-10-09",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
        for days in (-719_162..2_932_897).step_by(5) {
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
