//! Days and moments to calendar parts and back: the proleptic Gregorian calendar, years 0001 to 9999.
//!
//! The way to days is Howard Hinnant's ("chrono-Compatible Low-Level Date Algorithms"), the way back Neri and Schneider's
//! ("Euclidean affine functions and their application to calendar algorithms", 2023): one division.

use crate::{EvalError, OVERFLOW};

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
/// 0001-01-01, in days since 1970-01-01.
pub const FIRST_DAY: i32 = -719_162;
/// 9999-12-31, in days since 1970-01-01.
pub const LAST_DAY: i32 = 2_932_896;

/// Days since 1970-01-01 of a calendar date. The date must exist: see [`days_in_month`].
pub fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month as i32 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i32 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month (1–12) and day (1–31) of a day, which is one of the years 0001 to 9999.
pub fn civil_from_days(days: i32) -> (i32, u32, u32) {
    // Days and years are counted from March: 719,468 days before 1970 a March began.
    let quarters = (days.wrapping_add(719_468) as u32).wrapping_mul(4).wrapping_add(3);
    let (century, day_of_century) = (quarters / 146_097, quarters % 146_097 / 4);
    // A fraction of 2^32 days: its upper half is the year, its lower the day of it.
    let product = 2_939_745 * u64::from(4 * day_of_century + 3);
    let (year_of_century, day_of_year) = ((product >> 32) as u32, product as u32 / 2_939_745 / 4);
    let month_and_day = 2_141 * day_of_year + 197_913;
    let (month, day) = (month_and_day >> 16, (month_and_day & 0xFFFF) / 2_141 + 1);
    let after_new_year = day_of_year >= 306;
    let year = (100 * century + year_of_century + u32::from(after_new_year)) as i32;
    (year, if after_new_year { month - 12 } else { month }, day)
}

/// Number of days of a month (1–12).
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A day inside the years 0001 to 9999. Errors: `R0101`.
pub fn check_day(day: i128) -> Result<i32, EvalError> {
    i32::try_from(day).ok().filter(|day| (FIRST_DAY..=LAST_DAY).contains(day)).ok_or_else(out_of_years)
}

/// Microseconds since 1970 inside the years 0001 to 9999. Errors: `R0101`.
pub fn check_moment(micros: i128) -> Result<i64, EvalError> {
    let (first, end) = (i64::from(FIRST_DAY) * DAY, (i64::from(LAST_DAY) + 1) * DAY);
    i64::try_from(micros).ok().filter(|micros| (first..end).contains(micros)).ok_or_else(out_of_years)
}

fn out_of_years() -> EvalError {
    EvalError::new(OVERFLOW, "the result lies outside the years 0001 to 9999")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_its_date() {
        let mut expected = (1, 1, 1);
        for day in FIRST_DAY..=LAST_DAY {
            assert_eq!(civil_from_days(day), expected);
            assert_eq!(days_from_civil(expected.0, expected.1, expected.2), day);
            let (year, month, date) = expected;
            expected = if date < days_in_month(year, month) {
                (year, month, date + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
        }
        assert_eq!(expected, (10_000, 1, 1));
    }
}
