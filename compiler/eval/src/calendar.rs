//! Days and moments to calendar parts and back: the proleptic Gregorian calendar, years 0001 to 9999.
//!
//! The day algorithms are Howard Hinnant's, "chrono-Compatible Low-Level Date Algorithms" (`days_from_civil`, `civil_from_days`).

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

/// Year, month (1–12) and day (1–31) of a day.
pub fn civil_from_days(days: i32) -> (i32, u32, u32) {
    let shifted = i64::from(days) + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    let year = (year_of_era + era * 400 + i64::from(month <= 2)) as i32;
    (year, month, day)
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
