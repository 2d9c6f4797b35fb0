//! Time zones: between the wall clock and the instant, by the full IANA rules, those for years to come included. Microseconds on both
//! sides. The rules come with the program: the same pipeline gives the same on every machine.

use std::sync::LazyLock;

use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, civil::DateTime};

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

static RULES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| RULES.available().map(|name| name.as_str().to_owned()).collect());

/// Whether this names a time zone; the error says what would.
pub fn validate_zone(name: &str) -> Result<(), String> {
    Zone::by_name(name).map(|_| ())
}

/// The IANA names of all zones.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(String::as_str)
}

impl Zone {
    /// The zone of this IANA name (`Asia/Shanghai`, `UTC`), as it is spelt there.
    pub fn by_name(name: &str) -> Result<Zone, String> {
        match zone_names().find(|known| known.eq_ignore_ascii_case(name)) {
            Some(known) if known == name => {
                RULES.get(name).map(Zone).map_err(|error| format!("the rules of `{name}` can't be read: {error}"))
            }
            Some(known) => Err(format!("`{name}` is no time zone; it is written `{known}`")),
            None => Err(format!("`{name}` is no time zone; write an IANA name such as `Asia/Shanghai` or `UTC`")),
        }
    }

    /// How far the zone's clocks are ahead of UTC at an instant, in seconds.
    pub fn offset_at(&self, instant: i64) -> i32 {
        self.0.to_offset(timestamp(instant)).seconds()
    }

    /// What the zone's clocks show at an instant. `None`: what an i64 can't hold.
    pub fn to_local(&self, instant: i64) -> Option<i64> {
        instant.checked_add(i64::from(self.offset_at(instant)) * 1_000_000)
    }

    /// The instant at which the zone's clocks show `local`: the earlier one of a time shown twice; a time that is
    /// skipped is moved on by the length of the gap, as PostgreSQL does. `None`: what an i64 can't hold.
    pub fn to_instant(&self, local: i64) -> Option<i64> {
        let offset = match self.0.to_ambiguous_timestamp(clock(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
        };
        local.checked_sub(i64::from(offset.seconds()) * 1_000_000)
    }
}

/// The instant; the last one that the library knows for those after it (the last day of the year 9999, when no clock is changed).
fn timestamp(micros: i64) -> Timestamp {
    let end = if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(micros).unwrap_or(end)
}

/// What a clock shows, with the same exception.
fn clock(micros: i64) -> DateTime {
    Offset::UTC.to_datetime(timestamp(micros))
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
    fn clocks_are_changed_for_ever() {
        let berlin = zone("Europe/Berlin");
        for year in [2026, 2037, 2038, 2099, 2100, 2101, 2150, 9998] {
            assert_eq!(berlin.offset_at(at(year, 7, 1, 0, 0)), 7200, "{year}");
            assert_eq!(berlin.offset_at(at(year, 1, 1, 0, 0)), 3600, "{year}");
        }
        assert_eq!(zone("America/New_York").to_instant(at(2101, 7, 1, 0, 0)), Some(at(2101, 7, 1, 4, 0)));
        // Summer in the south, over the end of the calendar.
        let sydney = zone("Australia/Sydney");
        assert_eq!(sydney.offset_at(crate::calendar::MAX_MICROS), 39_600);
        assert_eq!(sydney.to_instant(at(9999, 12, 31, 23, 59)), Some(at(9999, 12, 31, 12, 59)));
        // Clocks were set by the sun, and only sometimes by the hour.
        assert_eq!(berlin.offset_at(at(1800, 1, 1, 0, 0)), 3208);
    }

    #[test]
    fn every_zone_can_be_read() {
        assert!(zone_names().count() > 500);
        for name in zone_names() {
            let zone = zone(name);
            for year in [1, 1900, 1970, 2026, 2200, 9999] {
                let noon = at(year, 6, 15, 12, 0);
                let local = zone.to_local(noon).expect("in the calendar");
                assert_eq!(zone.to_instant(local), Some(noon), "{name} {year}");
            }
        }
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
