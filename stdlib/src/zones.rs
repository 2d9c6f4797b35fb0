//! Time zones: between the wall clock and the instant, by the full IANA rules. Microseconds on both sides.

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Tz);

/// Whether this names a time zone; the error says what would.
pub fn validate_zone(name: &str) -> Result<(), String> {
    Zone::by_name(name).map(|_| ())
}

/// The IANA names of all zones.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
}

impl Zone {
    /// The zone of this IANA name (`Asia/Shanghai`, `UTC`), as it is spelt there.
    pub fn by_name(name: &str) -> Result<Zone, String> {
        name.parse().map(Zone).map_err(|_| {
            let near = chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
            match near {
                Some(zone) => format!("`{name}` is no time zone; it is written `{}`", zone.name()),
                None => format!("`{name}` is no time zone; write an IANA name such as `Asia/Shanghai` or `UTC`"),
            }
        })
    }

    /// How far the zone's clocks are ahead of UTC at an instant, in seconds. `None` for instants that chrono can't
    /// hold.
    pub fn offset_at(self, instant: i64) -> Option<i32> {
        let utc = naive(instant)?;
        Some(self.0.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    }

    /// What the zone's clocks show at an instant.
    pub fn to_local(self, instant: i64) -> Option<i64> {
        instant.checked_add(i64::from(self.offset_at(instant)?) * 1_000_000)
    }

    /// The instant at which the zone's clocks show `local`: the earlier one of a time shown twice; a time that is
    /// skipped is moved on by the length of the gap, as PostgreSQL does.
    pub fn to_instant(self, local: i64) -> Option<i64> {
        let clock = naive(local)?;
        let offset = match self.0.offset_from_local_datetime(&clock).earliest() {
            Some(offset) => offset,
            // In a gap the offset before it counts, and `local` read as UTC, less a day, is an instant before it: gaps
            // are an hour or two, or a whole day where a zone that was far behind UTC crossed the date line.
            None => self.0.offset_from_utc_datetime(&clock.checked_sub_signed(TimeDelta::days(1))?),
        };
        local.checked_sub(i64::from(offset.fix().local_minus_utc()) * 1_000_000)
    }
}

fn naive(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|instant| instant.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{DAY_MICROS, from_civil};

    fn at(y: i64, m: u32, d: u32, hour: i64, minute: i64) -> i64 {
        i64::from(from_civil(y, m, d).unwrap()) * DAY_MICROS + (hour * 60 + minute) * 60_000_000
    }

    fn zone(name: &str) -> Zone {
        Zone::by_name(name).unwrap()
    }

    #[test]
    fn plain_times_go_there_and_back() {
        let shanghai = zone("Asia/Shanghai");
        assert_eq!(shanghai.to_instant(at(2026, 1, 31, 10, 0)), Some(at(2026, 1, 31, 2, 0)));
        assert_eq!(shanghai.to_local(at(2026, 1, 31, 2, 0)), Some(at(2026, 1, 31, 10, 0)));
        // Shanghai had summer time in 1988.
        assert_eq!(shanghai.to_local(at(1988, 7, 1, 0, 0)), Some(at(1988, 7, 1, 9, 0)));
    }

    #[test]
    fn a_gap_moves_on() {
        let new_york = zone("America/New_York");
        assert_eq!(new_york.to_instant(at(2026, 3, 8, 2, 30)), Some(at(2026, 3, 8, 7, 30)));
        assert_eq!(new_york.to_local(at(2026, 3, 8, 7, 30)), Some(at(2026, 3, 8, 3, 30)));
        // Samoa left out a whole day.
        let apia = zone("Pacific/Apia");
        assert_eq!(apia.to_instant(at(2011, 12, 30, 12, 0)), Some(at(2011, 12, 30, 22, 0)));
        assert_eq!(apia.to_local(at(2011, 12, 30, 22, 0)), Some(at(2011, 12, 31, 12, 0)));
    }

    #[test]
    fn of_two_the_earlier() {
        let berlin = zone("Europe/Berlin");
        assert_eq!(berlin.to_instant(at(2026, 10, 25, 2, 30)), Some(at(2026, 10, 25, 0, 30)));
    }

    #[test]
    fn unknown_names_are_refused_with_advice() {
        assert!(Zone::by_name("Asia/Atlantis").unwrap_err().contains("IANA"));
        assert!(Zone::by_name("asia/shanghai").unwrap_err().contains("`Asia/Shanghai`"));
        assert!(Zone::by_name("").is_err());
    }

    #[test]
    fn extremes_do_not_panic() {
        for name in ["UTC", "Pacific/Kiritimati", "America/St_Johns"] {
            for micros in [i64::MIN, i64::MIN + 1, crate::calendar::MIN_MICROS, crate::calendar::MAX_MICROS, i64::MAX] {
                let _ = (zone(name).to_local(micros), zone(name).to_instant(micros), zone(name).offset_at(micros));
            }
        }
    }
}
