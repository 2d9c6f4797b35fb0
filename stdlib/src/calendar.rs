//! Arithmetic on the proleptic Gregorian calendar: days, months, units of time. Plain integers, no zone, no text.
//!
//! The conversions between days and dates are Howard Hinnant's `days_from_civil` and `civil_from_days`
//! (<https://howardhinnant.github.io/date_algorithms.html>).

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;
/// 0001-01-01 in days since 1970-01-01: the first day of type `date`.
pub const MIN_DAY: i32 = -719_162;
/// 9999-12-31 in days since 1970-01-01: the last day of type `date`.
pub const MAX_DAY: i32 = 2_932_896;
/// 0001-01-01T00:00:00 in microseconds since 1970-01-01T00:00:00.
pub const MIN_MICROS: i64 = MIN_DAY as i64 * DAY_MICROS;
/// 9999-12-31T23:59:59.999999 in microseconds since 1970-01-01T00:00:00.
pub const MAX_MICROS: i64 = (MAX_DAY as i64 + 1) * DAY_MICROS - 1;

/// Year, month (1..=12) and day (1..=31) of a day since 1970-01-01. Total: any `i32`.
pub fn civil(days: i32) -> (i32, u32, u32) {
    let z = i64::from(days) + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = (if mp < 10 { mp + 3 } else { mp - 9 }) as u32;
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year as i32, month, day)
}

/// The day since 1970-01-01 of a date that exists; `None` where it does not, or lies outside the years 1 to 9999.
pub fn from_civil(year: i64, month: u32, day: u32) -> Option<i32> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let mp = i64::from((month + 9) % 12);
    let doy = (153 * mp + 2) / 5 + i64::from(day) - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    Some((era * 146_097 + doe - 719_468) as i32)
}

/// Whether the year has a February 29.
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The length of a month (1..=12) in days.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since Monday: Monday 0 to Sunday 6.
pub fn weekday(days: i32) -> u32 {
    (i64::from(days) + 3).rem_euclid(7) as u32
}

/// The day of its year, 1..=366.
pub fn day_of_year(days: i32) -> u32 {
    let (year, month, day) = civil(days);
    let before: u32 = (1..month).map(|m| days_in_month(i64::from(year), m)).sum();
    before + day
}

/// The week of the year by ISO 8601, 1..=53.
pub fn iso_week(days: i32) -> u32 {
    // A week belongs to the year of its Thursday.
    let thursday = (i64::from(days) - i64::from(weekday(days)) + 3) as i32;
    (day_of_year(thursday) - 1) / 7 + 1
}

/// The same day some months later (or earlier), or the month's last day where it has no such day; `None` outside the
/// years 1 to 9999.
pub fn add_months(days: i32, months: i64) -> Option<i32> {
    let (year, month, day) = civil(days);
    let total = (i64::from(year) * 12 + i64::from(month) - 1).checked_add(months)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Microseconds since 1970 split into the day and the microseconds since midnight.
pub fn split(micros: i64) -> (i32, i64) {
    (micros.div_euclid(DAY_MICROS) as i32, micros.rem_euclid(DAY_MICROS))
}

/// A unit of the calendar or the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// So many months: year 12, quarter 3, month 1.
    Months(i64),
    /// So many days: week 7 (from Monday), day 1.
    Days(i64),
    /// So many microseconds, a divisor of a day.
    Micros(i64),
}

/// Units by name, long before short.
pub const UNITS: [(&str, Unit); 10] = [
    ("year", Unit::Months(12)),
    ("quarter", Unit::Months(3)),
    ("month", Unit::Months(1)),
    ("week", Unit::Days(7)),
    ("day", Unit::Days(1)),
    ("hour", Unit::Micros(3_600_000_000)),
    ("minute", Unit::Micros(60_000_000)),
    ("second", Unit::Micros(1_000_000)),
    ("millisecond", Unit::Micros(1_000)),
    ("microsecond", Unit::Micros(1)),
];

impl Unit {
    /// The unit of this name, in any case; the error names those that there are.
    pub fn by_name(name: &str) -> Result<Unit, String> {
        let found = UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name));
        found.map(|(_, unit)| *unit).ok_or_else(|| {
            let names: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
            format!("`{name}` is no unit of time; units are {}", names.join(", "))
        })
    }

    /// The number of the unit that the instant lies in, counted from some fixed one: equal inside a unit, one more in
    /// the next.
    pub fn index(self, micros: i64) -> i64 {
        match self {
            Unit::Months(n) => {
                let (year, month, _) = civil(split(micros).0);
                (i64::from(year) * 12 + i64::from(month) - 1).div_euclid(n)
            }
            // Day −3 of 1970's count is a Monday.
            Unit::Days(7) => (i64::from(split(micros).0) + 3).div_euclid(7),
            Unit::Days(n) => i64::from(split(micros).0).div_euclid(n),
            Unit::Micros(n) => micros.div_euclid(n),
        }
    }

    /// The start of the unit that `micros` lies in; `None` before year 1.
    pub fn start(self, micros: i64) -> Option<i64> {
        let start = match self {
            Unit::Months(n) => {
                let first = self.index(micros) * n;
                let day = from_civil(first.div_euclid(12), first.rem_euclid(12) as u32 + 1, 1)?;
                i64::from(day) * DAY_MICROS
            }
            Unit::Days(7) => (self.index(micros) * 7 - 3) * DAY_MICROS,
            Unit::Days(n) => self.index(micros) * n * DAY_MICROS,
            Unit::Micros(n) => micros - micros.rem_euclid(n),
        };
        (start >= MIN_MICROS).then_some(start)
    }

    /// The instant so many units later; `None` outside the years 1 to 9999.
    pub fn add(self, micros: i64, amount: i64) -> Option<i64> {
        let result = match self {
            Unit::Months(n) => {
                let (day, time) = split(micros);
                i64::from(add_months(day, amount.checked_mul(n)?)?) * DAY_MICROS + time
            }
            Unit::Days(n) => micros.checked_add(amount.checked_mul(n)?.checked_mul(DAY_MICROS)?)?,
            Unit::Micros(n) => micros.checked_add(amount.checked_mul(n)?)?,
        };
        (MIN_MICROS..=MAX_MICROS).contains(&result).then_some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    /// Every day of the years 1 to 9999 agrees with chrono.
    #[test]
    fn agrees_with_chrono_on_every_day() {
        let mut date = NaiveDate::from_ymd_opt(1, 1, 1).unwrap();
        for days in MIN_DAY..=MAX_DAY {
            assert_eq!(civil(days), (date.year(), date.month(), date.day()));
            assert_eq!(from_civil(i64::from(date.year()), date.month(), date.day()), Some(days));
            assert_eq!(weekday(days), date.weekday().num_days_from_monday());
            assert_eq!(day_of_year(days), date.ordinal());
            assert_eq!(iso_week(days), date.iso_week().week());
            date = date.succ_opt().unwrap();
        }
        assert_eq!((date.year(), date.month(), date.day()), (10_000, 1, 1));
    }

    #[test]
    fn any_number_of_days_is_a_date() {
        for days in [i32::MIN, i32::MIN + 1, -1, 0, i32::MAX] {
            let (_, month, day) = civil(days);
            assert!((1..=12).contains(&month) && (1..=31).contains(&day));
            assert!((1..=53).contains(&iso_week(days)));
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for (y, m, d) in
            [(2026, 2, 29), (2026, 13, 1), (2026, 0, 1), (2026, 4, 31), (0, 1, 1), (10_000, 1, 1), (2026, 1, 0)]
        {
            assert_eq!(from_civil(y, m, d), None, "{y}-{m}-{d}");
        }
        assert_eq!(from_civil(2000, 2, 29), Some(11_016));
        assert_eq!(from_civil(1900, 2, 29), None);
    }

    #[test]
    fn months_keep_the_day_or_take_the_last() {
        let day = |y, m, d| from_civil(y, m, d).unwrap();
        assert_eq!(add_months(day(2026, 1, 31), 1), Some(day(2026, 2, 28)));
        assert_eq!(add_months(day(2028, 2, 29), 12), Some(day(2029, 2, 28)));
        assert_eq!(add_months(day(2026, 1, 31), -13), Some(day(2024, 12, 31)));
        assert_eq!(add_months(day(2026, 1, 31), i64::MAX), None);
        assert_eq!(add_months(day(9999, 12, 31), 1), None);
    }

    #[test]
    fn units_start_count_and_add() {
        let at = |d: i32, t: i64| i64::from(d) * DAY_MICROS + t;
        let day = |y, m, d| from_civil(y, m, d).unwrap();
        assert_eq!(Unit::Days(7).start(at(day(2026, 2, 1), 5)), Some(at(day(2026, 1, 26), 0)));
        assert_eq!(Unit::Months(3).start(at(day(2026, 6, 30), 5)), Some(at(day(2026, 4, 1), 0)));
        assert_eq!(Unit::Micros(1_000_000).start(-1), Some(-1_000_000));
        // 0001-01-01 is a Monday: its week does not start before the calendar.
        assert_eq!(Unit::Days(7).start(MIN_MICROS), Some(MIN_MICROS));
        assert_eq!(Unit::Days(1).add(MAX_MICROS, 1), None);
        assert_eq!(Unit::Micros(1).add(i64::MAX, i64::MAX), None);
        assert!(Unit::by_name("decade").unwrap_err().contains("quarter"));
    }
}
