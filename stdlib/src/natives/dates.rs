//! Dates, times, instants. (`now` and `today` are forms of the IR.)

use super::args::{Checked, Result, refuse, small_int, string, text, value, wrong_kind};
use super::{FnError, Native};
use crate::cache::Cache;
use crate::calendar::{self, DAY_MICROS, MAX_DAY, MAX_MICROS, MIN_DAY, MIN_MICROS, Unit};
use crate::date_format::DateFormat;
use crate::zones::Zone;
use dfc_ir::Value;
use std::cell::RefCell;
use std::rc::Rc;

pub(super) const TABLE: &[Native] = &[
    Native::strict("date", |args, _| Ok(Value::Date(clock(args)?.0))),
    Native::strict("time", |args, _| Ok(Value::Time(clock(args)?.1))),
    Native::strict("year", |args, _| number(calendar::civil(day(args, 0)?).0)),
    Native::strict("quarter", |args, _| number(calendar::civil(day(args, 0)?).1.div_ceil(3))),
    Native::strict("month", |args, _| number(calendar::civil(day(args, 0)?).1)),
    Native::strict("day", |args, _| number(calendar::civil(day(args, 0)?).2)),
    Native::strict("day_of_week", |args, _| number(calendar::weekday(day(args, 0)?) + 1)),
    Native::strict("day_of_year", |args, _| number(calendar::day_of_year(day(args, 0)?))),
    Native::strict("week", |args, _| number(calendar::iso_week(day(args, 0)?))),
    Native::strict("hour", |args, _| number(time_of_day(args)? / 3_600_000_000)),
    Native::strict("minute", |args, _| number(time_of_day(args)? / 60_000_000 % 60)),
    Native::strict("second", |args, _| number(time_of_day(args)? / 1_000_000 % 60)),
    Native::strict("date_trunc", date_trunc),
    Native::strict("date_add", |args, _| {
        let (unit, amount) = (unit(args, 0)?, small_int(args, 1)?);
        moved(value(args, 2)?, 2, unit, |micros| unit.add(micros, amount))
    }),
    Native::strict("add_months", |args, _| {
        let (unit, months) = (Unit::Months(1), small_int(args, 1)?);
        moved(value(args, 0)?, 0, unit, |micros| unit.add(micros, months))
    }),
    Native::strict("date_diff", date_diff),
    Native::strict("last_day", |args, _| {
        let days = day(args, 0)?;
        let (year, month, day) = calendar::civil(days);
        let last = calendar::days_in_month(i64::from(year), month);
        in_calendar(i64::from(days) + i64::from(last - day)).map(Value::Date)
    }),
    Native::strict("parse_date", |args, _| {
        let (s, format) = (text(args, 0)?, format(args, 1)?);
        format.parse_date(s).map(Value::Date).map_err(refuse)
    }),
    Native::strict("parse_datetime", |args, _| {
        let (s, format) = (text(args, 0)?, format(args, 1)?);
        format.parse_datetime(s).map(Value::DateTime).map_err(refuse)
    }),
    Native::strict("parse_timestamp", |args, _| {
        let (s, format) = (text(args, 0)?, format(args, 1)?);
        let zone = if args.len() > 2 { Some(zone(args, 2)?) } else { None };
        format.parse_timestamp(s, zone.as_deref()).map(Value::Timestamp).map_err(refuse)
    }),
    Native::strict("format_date", |args, _| {
        let (format, mut out) = (format(args, 1)?, String::new());
        let written = match value(args, 0)? {
            Value::Date(days) => format.format_date(*days, &mut out),
            Value::Time(micros) => format.format_time(*micros, &mut out),
            Value::DateTime(micros) => format.format_datetime(*micros, &mut out),
            Value::Timestamp(micros) => format.format_timestamp(*micros, &*zone(args, 2)?, &mut out),
            _ => return Err(wrong_kind(0, "a date, time, datetime or timestamp")),
        };
        written.map_err(refuse)?;
        string(out)
    }),
    Native::strict("to_timestamp", |args, _| {
        let Value::DateTime(local) = value(args, 0)? else { return Err(wrong_kind(0, "a datetime")) };
        micros_in_calendar(zone(args, 1)?.to_instant(*local)).map(Value::Timestamp)
    }),
    Native::strict("to_datetime", |args, _| {
        micros_in_calendar(zone(args, 1)?.to_local(instant(args, 0)?)).map(Value::DateTime)
    }),
    Native::strict("epoch_seconds", |args, _| number(instant(args, 0)?.div_euclid(1_000_000))),
    Native::strict("epoch_millis", |args, _| number(instant(args, 0)?.div_euclid(1_000))),
    Native::strict("from_epoch", |args, _| {
        let amount = small_int(args, 0)?;
        let name = if args.len() > 1 { text(args, 1)? } else { "second" };
        let size = match Unit::by_name(name) {
            Ok(Unit::Micros(size @ ..=1_000_000)) => size,
            _ => {
                return Err(refuse(format!(
                    "`from_epoch` counts in `second`, `millisecond` or `microsecond`, not in `{name}`"
                )));
            }
        };
        micros_in_calendar(amount.checked_mul(size)).map(Value::Timestamp)
    }),
];

thread_local! {
    static FORMATS: RefCell<Cache<DateFormat>> = RefCell::default();
    static ZONES: RefCell<Cache<Zone>> = RefCell::default();
}

/// Whether this is a unit of `date_trunc`, `date_add` or `date_diff`; the error names those that there are.
pub fn validate_unit(unit: &str) -> std::result::Result<(), String> {
    Unit::by_name(unit).map(|_| ())
}

fn format(args: &[Value<'_>], index: usize) -> Checked<Rc<DateFormat>> {
    Cache::get(&FORMATS, text(args, index)?, |text| DateFormat::new(text).map_err(refuse))
}

fn zone(args: &[Value<'_>], index: usize) -> Checked<Rc<Zone>> {
    Cache::get(&ZONES, text(args, index)?, |name| Zone::by_name(name).map_err(refuse))
}

fn unit(args: &[Value<'_>], index: usize) -> Checked<Unit> {
    Unit::by_name(text(args, index)?).map_err(refuse)
}

fn number(n: impl Into<i128>) -> Result {
    Ok(Value::Int(n.into()))
}

fn instant(args: &[Value<'_>], index: usize) -> Checked<i64> {
    match value(args, index)? {
        Value::Timestamp(micros) => Ok(*micros),
        _ => Err(wrong_kind(index, "a timestamp")),
    }
}

/// The day of a date or datetime.
fn day(args: &[Value<'_>], index: usize) -> Checked<i32> {
    match value(args, index)? {
        Value::Date(days) => Ok(*days),
        Value::DateTime(micros) => Ok(calendar::split(*micros).0),
        _ => Err(wrong_kind(index, "a date or datetime")),
    }
}

/// The microseconds since midnight of a time or datetime.
fn time_of_day(args: &[Value<'_>]) -> Checked<i64> {
    match value(args, 0)? {
        Value::Time(micros) => Ok(*micros),
        Value::DateTime(micros) => Ok(calendar::split(*micros).1),
        _ => Err(wrong_kind(0, "a time or datetime")),
    }
}

/// Day and time of a datetime, or of an instant in the zone after it.
fn clock(args: &[Value<'_>]) -> Checked<(i32, i64)> {
    match value(args, 0)? {
        Value::DateTime(micros) => Ok(calendar::split(*micros)),
        Value::Timestamp(micros) => micros_in_calendar(zone(args, 1)?.to_local(*micros)).map(calendar::split),
        _ => Err(wrong_kind(0, "a datetime or timestamp")),
    }
}

fn outside() -> FnError {
    super::args::overflow("the result is outside the years 0001 to 9999")
}

fn in_calendar(days: i64) -> Checked<i32> {
    // The range is that of an i32.
    if (i64::from(MIN_DAY)..=i64::from(MAX_DAY)).contains(&days) { Ok(days as i32) } else { Err(outside()) }
}

fn micros_in_calendar(micros: Option<i64>) -> Checked<i64> {
    micros.filter(|micros| (MIN_MICROS..=MAX_MICROS).contains(micros)).ok_or_else(outside)
}

/// The result of `to` on a date or datetime as a value of the same type. A date has no units of the clock.
fn moved(x: &Value<'_>, index: usize, unit: Unit, to: impl Fn(i64) -> Option<i64>) -> Result {
    match (x, unit) {
        (Value::Date(_), Unit::Micros(_)) => {
            Err(refuse("a date has no hours and no smaller units; convert it with `as datetime`"))
        }
        (Value::Date(days), _) => {
            let micros = micros_in_calendar(to(i64::from(*days) * DAY_MICROS))?;
            Ok(Value::Date(calendar::split(micros).0))
        }
        (Value::DateTime(micros), _) => micros_in_calendar(to(*micros)).map(Value::DateTime),
        _ => Err(wrong_kind(index, "a date or datetime")),
    }
}

fn date_trunc(args: &[Value<'_>], _: &super::CallTypes<'_>) -> Result {
    let unit = unit(args, 0)?;
    match value(args, 1)? {
        Value::Timestamp(micros) => {
            let zone = zone(args, 2)?;
            let local = zone.to_local(*micros);
            let start = local.and_then(|local| unit.start(local));
            // Where a clock shows an hour twice, its parts are those of the time that the instant lies in.
            let here = local.zip(start).and_then(|(local, start)| micros.checked_sub(local - start));
            let instant = match unit {
                Unit::Micros(_) if here.and_then(|here| zone.to_local(here)) == start => here,
                _ => start.and_then(|start| zone.to_instant(start)),
            };
            micros_in_calendar(instant).map(Value::Timestamp)
        }
        x => moved(x, 1, unit, |micros| unit.start(micros)),
    }
}

fn date_diff(args: &[Value<'_>], _: &super::CallTypes<'_>) -> Result {
    let unit = unit(args, 0)?;
    let (from, to) = match (value(args, 1)?, value(args, 2)?, unit) {
        (Value::Date(_), Value::Date(_), Unit::Micros(_)) => {
            return Err(refuse("dates are no hours or smaller units apart; convert them with `as datetime`"));
        }
        (Value::Timestamp(_), Value::Timestamp(_), Unit::Months(_) | Unit::Days(_)) => {
            return Err(refuse(
                "days and longer units of an instant depend on a zone; convert both with `to_datetime(x, zone)`",
            ));
        }
        (Value::Date(from), Value::Date(to), _) => (i64::from(*from) * DAY_MICROS, i64::from(*to) * DAY_MICROS),
        (Value::DateTime(from), Value::DateTime(to), _) | (Value::Timestamp(from), Value::Timestamp(to), _) => {
            (*from, *to)
        }
        _ => return Err(wrong_kind(2, "of the type of argument 2, a date, datetime or timestamp")),
    };
    number(i128::from(unit.index(to)) - i128::from(unit.index(from)))
}
