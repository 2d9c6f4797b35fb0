//! Formats read and write.

use super::*;
use crate::calendar::{MAX_DAY, MIN_DAY, from_civil};
use proptest::prelude::*;

fn format(text: &str) -> DateFormat {
    DateFormat::new(text).unwrap()
}

fn micros(date: (i64, u32, u32), seconds: i64, fraction: i64) -> i64 {
    i64::from(from_civil(date.0, date.1, date.2).unwrap()) * DAY_MICROS + seconds * 1_000_000 + fraction
}

#[test]
fn dates_in_many_shapes() {
    let day = from_civil(2026, 1, 31).unwrap();
    for (text, pattern) in [
        ("2026-01-31", "%Y-%m-%d"),
        ("2026-01-31", "%F"),
        ("20260131", "%Y%m%d"),
        ("2026-1-31", "%Y-%m-%d"),
        ("1/31/26", "%-m/%-d/%y"),
        ("31. january 2026", "%e. %B %Y"),
        ("Sat, 31 JAN 2026", "%a, %d %b %Y"),
        ("Saturday 2026/031", "%A %Y/%j"),
        ("100% 2026年01月31日", "100%% %Y年%m月%d日"),
        ("2026-01-31 23:59:59", "%F %T"),
    ] {
        assert_eq!(format(pattern).parse_date(text), Ok(day), "{text} {pattern}");
    }
    assert_eq!(format("%y%m%d").parse_date("690101"), Ok(from_civil(1969, 1, 1).unwrap()));
    assert_eq!(format("%y%m%d").parse_date("681231"), Ok(from_civil(2068, 12, 31).unwrap()));
    assert_eq!(format("%Y-%j").parse_date("2028-366"), Ok(from_civil(2028, 12, 31).unwrap()));
}

#[test]
fn what_does_not_fit_is_told() {
    for (text, pattern, words) in [
        ("2026-02-30", "%F", "no day of the calendar"),
        ("2026-366", "%Y-%j", "no day of the calendar"),
        ("26-01-31", "%F", "at character 1 there should be a year in four digits"),
        ("2026/01/31", "%F", "at character 5 there should be `-`"),
        ("2026-13-01", "%F", "at character 6 there should be a month"),
        ("2026-01-31 ", "%F", "end before character 11"),
        ("2026年1", "%Y年%m月%d日", "at character 7 there should be `月`"),
        ("", "%F", "at character 1"),
        ("Sun 2026-01-31", "%a %F", "weekday"),
        ("31 Jam 2026", "%d %b %Y", "month's name"),
        ("12", "%m", "no year"),
        ("2026", "%Y", "no month"),
        ("2026-1", "%Y-%m", "no day"),
        ("2026-01-31 24:00:00", "%F %T", "an hour, 0 to 23"),
    ] {
        let error = format(pattern).parse_date(text).unwrap_err();
        assert!(error.contains(words), "{text} {pattern}: {error}");
    }
    assert!(format("%F").parse_time("2026-01-31").unwrap_err().contains("no hour"));
    assert!(format("%I:%M").parse_time("10:30").unwrap_err().contains("no hour"));
    assert!(format("%F %I").parse_datetime("2026-01-31 10").unwrap_err().contains("%p"));
}

#[test]
fn wrong_letters_are_told() {
    for (pattern, words) in [("%Q", "`%Q`"), ("%Y-%", "single `%`"), ("%-Y", "`%-Y`"), ("%-", "`%-`"), ("%é", "`%é`")]
    {
        let error = validate_format(pattern).unwrap_err();
        assert!(error.contains(words), "{pattern}: {error}");
    }
    assert!(validate_format("%Q").unwrap_err().contains("%Y %y %m"));
    assert_eq!(validate_format("plain % text").unwrap_err().matches("`% `").count(), 1);
    assert_eq!(validate_format(""), Ok(()));
}

#[test]
fn times_have_halves_and_fractions() {
    let time = |pattern: &str, text: &str| format(pattern).parse_time(text);
    assert_eq!(time("%I:%M %p", "12:05 am"), Ok(5 * 60_000_000));
    assert_eq!(time("%I %p", "12 PM"), Ok(12 * 3_600_000_000));
    assert_eq!(time("%H%M%S%3f", "010203456"), Ok(3_723_456_000));
    for (text, fraction) in [("1", 100_000), ("000001", 1), ("123456789", 123_456), ("000000999", 0)] {
        assert_eq!(time("%S.%f %H", &format!("00.{text} 0")), Ok(fraction), "{text}");
    }
    assert_eq!(time("%T%.f", "00:00:00.25"), Ok(250_000));
    assert_eq!(time("%T%.f", "00:00:00"), Ok(0));
    assert!(time("%T%.f", "00:00:00.").is_err());
    assert!(time("%T%.f", "00:00:00.1234567890").is_err());
    assert!(time("%T", "00:00:60").is_err());
}

#[test]
fn instants_need_an_offset_or_a_zone() {
    let at = micros((2026, 1, 31), 10 * 3_600, 0);
    let pattern = format("%FT%T%z");
    for (text, ahead) in
        [("Z", 0), ("z", 0), ("+08", 8 * 3_600), ("+0800", 8 * 3_600), ("-03:30", -12_600), ("+00:00:01", 1)]
    {
        let text = format!("2026-01-31T10:00:00{text}");
        assert_eq!(pattern.parse_timestamp(&text, None), Ok(at - ahead * 1_000_000), "{text}");
    }
    for offset in ["", "8", "+8", "+24:00", "+08:60", "+08:0", "08:00", "+-08"] {
        assert!(pattern.parse_timestamp(&format!("2026-01-31T10:00:00{offset}"), None).is_err(), "{offset}");
    }
    assert!(format("%F").parse_timestamp("2026-01-31", None).unwrap_err().contains("%z"));
    assert!(pattern.parse_timestamp("0001-01-01T00:00:00+01:00", None).unwrap_err().contains("0001"));
    assert_eq!(format("%F %z").parse_timestamp("2026-01-31 Z", None), Ok(micros((2026, 1, 31), 0, 0)));
}

#[test]
fn writing_refuses_what_a_value_has_not() {
    let mut out = String::new();
    assert!(format("%F %H").format_date(0, &mut out).unwrap_err().contains("`%H`"));
    assert!(format("%H %d").format_time(0, &mut out).unwrap_err().contains("`%d`"));
    assert!(format("%F%z").format_datetime(0, &mut out).unwrap_err().contains("`%z`"));
}

#[test]
fn writing_pads_unless_told_otherwise() {
    let at = micros((2026, 2, 3), 4 * 3_600 + 5 * 60 + 6, 70_000);
    for (pattern, expected) in [
        ("%Y %y %m %d %e %j", "2026 26 02 03  3 034"),
        ("%-m %-d %-j %-H %-M %-S %-I", "2 3 34 4 5 6 4"),
        ("%a %A %b %B", "Tue Tuesday Feb February"),
        ("%H:%M:%S.%f|%3f|%.f", "04:05:06.070000|070|.07"),
        ("%I %p %%", "04 AM %"),
    ] {
        let mut out = String::new();
        format(pattern).format_datetime(at, &mut out).unwrap();
        assert_eq!(out, expected);
    }
    let mut out = String::new();
    // Shanghai's own time before 1901.
    format("%T%z")
        .format_timestamp(micros((1900, 1, 1), 0, 0), &Zone::by_name("Asia/Shanghai").unwrap(), &mut out)
        .unwrap();
    assert_eq!(out, "08:05:43+08:05:43");
}

proptest! {
    #[test]
    fn what_is_written_is_read(days in MIN_DAY..=MAX_DAY, time in 0..DAY_MICROS, which in 0usize..5) {
        let pattern = ["%Y-%m-%dT%H:%M:%S.%f", "%A, %-d %B %Y %-I:%-M:%S%.f %p", "%Y%j%H%M%S%f", "%a %e %b %Y %T.%f", "%F %T%.f"][which];
        let at = i64::from(days) * DAY_MICROS + time;
        let mut out = String::new();
        format(pattern).format_datetime(at, &mut out).unwrap();
        prop_assert_eq!(format(pattern).parse_datetime(&out), Ok(at), "{}", out);
        prop_assert_eq!(format(pattern).parse_date(&out), Ok(days));
        prop_assert_eq!(format(pattern).parse_time(&out), Ok(time));
    }

    #[test]
    fn instants_written_with_their_offset_are_read(seconds in -60_000_000_000i64..200_000_000_000, zone in proptest::sample::select(vec!["UTC", "Asia/Shanghai", "America/St_Johns", "Europe/Amsterdam"])) {
        let pattern = format("%Y-%m-%d %H:%M:%S%z");
        let mut out = String::new();
        pattern.format_timestamp(seconds * 1_000_000, &Zone::by_name(zone).unwrap(), &mut out).unwrap();
        prop_assert_eq!(pattern.parse_timestamp(&out, None), Ok(seconds * 1_000_000), "{}", out);
    }

    #[test]
    fn nothing_panics(pattern in ".*|[%YymbBdejaAHIpMSf3.zFT -]{0,12}", text in ".*|[0-9 :./+-]{0,20}", at in any::<i64>()) {
        if let Ok(format) = DateFormat::new(&pattern) {
            let _ = (format.parse_date(&text), format.parse_time(&text), format.parse_datetime(&text), format.parse_timestamp(&text, None));
            let mut out = String::new();
            let _ = (format.format_datetime(at, &mut out), format.format_time(at, &mut out));
            let _ = format.format_timestamp(at, &Zone::by_name("Asia/Shanghai").unwrap(), &mut out);
        }
    }
}
