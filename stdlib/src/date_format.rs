//! Formats of dates and times, `%Y-%m-%d`: compiled once, then used to read and to write texts. The letters are
//! described for users in `functions/dates.df`. Also what the CSV reader and writer use for a field's `format:`.

use crate::calendar::{self, DAY_MICROS, MAX_MICROS, MIN_MICROS};
use crate::zones::Zone;
use std::fmt::Write as _;

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    /// Stands for itself.
    Text(String),
    /// A letter; `false` after `%-`: written without leading zeros.
    Field(&'static Entry, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    Year,
    Year2,
    Month,
    MonthShort,
    MonthLong,
    Day,
    DayBlank,
    DayOfYear,
    WeekdayShort,
    WeekdayLong,
    Hour,
    Hour12,
    HalfDay,
    Minute,
    Second,
    Fraction,
    Millis,
    PointFraction,
    Offset,
}

/// What a letter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Date,
    Clock,
    Zone,
}

/// A letter as written after `%`, what it means, and what it belongs to.
type Entry = (&'static str, Letter, Part);

/// The letters.
static LETTERS: [Entry; 19] = [
    ("Y", Letter::Year, Part::Date),
    ("y", Letter::Year2, Part::Date),
    ("m", Letter::Month, Part::Date),
    ("b", Letter::MonthShort, Part::Date),
    ("B", Letter::MonthLong, Part::Date),
    ("d", Letter::Day, Part::Date),
    ("e", Letter::DayBlank, Part::Date),
    ("j", Letter::DayOfYear, Part::Date),
    ("a", Letter::WeekdayShort, Part::Date),
    ("A", Letter::WeekdayLong, Part::Date),
    ("H", Letter::Hour, Part::Clock),
    ("I", Letter::Hour12, Part::Clock),
    ("p", Letter::HalfDay, Part::Clock),
    ("M", Letter::Minute, Part::Clock),
    ("S", Letter::Second, Part::Clock),
    ("f", Letter::Fraction, Part::Clock),
    ("3f", Letter::Millis, Part::Clock),
    (".f", Letter::PointFraction, Part::Clock),
    ("z", Letter::Offset, Part::Zone),
];

/// Letters that stand for several others.
const SHORTHANDS: [(&str, &str); 2] = [("F", "%Y-%m-%d"), ("T", "%H:%M:%S")];

/// Letters that may be written without leading zeros, `%-d`.
const UNPADDED: &str = "mdjHIMS";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Whether this is a format; the error names the first letter that is none and those that are.
pub fn validate_format(format: &str) -> Result<(), String> {
    DateFormat::new(format).map(|_| ())
}

impl DateFormat {
    /// Compiles a format; the error names the first letter that is none and those that are.
    pub fn new(format: &str) -> Result<DateFormat, String> {
        let mut items = Vec::new();
        compile(format, &mut items)?;
        Ok(DateFormat { text: format.to_owned(), items })
    }

    /// The format as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a whole date can be read by it: year, month and day, or year and day of the year.
    pub fn has_date(&self) -> bool {
        self.has(&[Letter::Year, Letter::Year2])
            && (self.has(&[Letter::DayOfYear])
                || self.has(&[Letter::Month, Letter::MonthShort, Letter::MonthLong])
                    && self.has(&[Letter::Day, Letter::DayBlank]))
    }

    /// Whether a time of day can be read by it: an hour, `%I` only with `%p`.
    pub fn has_time(&self) -> bool {
        self.has(&[Letter::Hour]) || self.has(&[Letter::Hour12]) && self.has(&[Letter::HalfDay])
    }

    /// What it doesn't say, given for a parameter such as `date_format`: without that no value can be read.
    pub fn missing(&self, parameter: &str) -> Option<&'static str> {
        match parameter {
            "time_format" => (!self.has_time()).then_some("the hour: `%H`, or `%I` with `%p`"),
            _ => (!self.has_date()).then_some("the whole date: `%Y`, `%m` and `%d`"),
        }
    }

    /// Whether it says the distance from UTC.
    pub fn has_offset(&self) -> bool {
        self.has(&[Letter::Offset])
    }

    fn has(&self, letters: &[Letter]) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Field((_, letter, _), _) if letters.contains(letter)))
    }

    /// Reads a date: days since 1970-01-01. What the text says of the time is checked and left out.
    pub fn parse_date(&self, text: &str) -> Result<i32, String> {
        self.read(text).and_then(|read| read.date()).map_err(|fault| self.explain(text, fault))
    }

    /// Reads a time of day: microseconds since midnight. What the format leaves out below the hour is zero.
    pub fn parse_time(&self, text: &str) -> Result<i64, String> {
        let time = |read: Read| {
            if self.has_time() { read.time() } else { Err(Fault::Without("hour (`%H`, or `%I` with `%p`)")) }
        };
        self.read(text).and_then(time).map_err(|fault| self.explain(text, fault))
    }

    /// Reads a datetime: microseconds since 1970-01-01T00:00:00. What the format leaves out of the time is zero; a
    /// distance from UTC is left out.
    pub fn parse_datetime(&self, text: &str) -> Result<i64, String> {
        self.read(text).and_then(|read| read.datetime()).map_err(|fault| self.explain(text, fault))
    }

    /// Reads an instant: microseconds since the epoch. The distance from UTC in the text counts; a format without one
    /// needs a zone.
    pub fn parse_timestamp(&self, text: &str, zone: Option<&Zone>) -> Result<i64, String> {
        let instant = |read: Read| {
            let local = read.datetime()?;
            let instant = match (read.offset, zone) {
                (Some(seconds), _) => local - seconds * 1_000_000,
                (None, Some(zone)) => zone.to_instant(local).ok_or(Fault::Range)?,
                (None, None) => return Err(Fault::Without("distance from UTC (`%z`), and no zone is given")),
            };
            if (MIN_MICROS..=MAX_MICROS).contains(&instant) { Ok(instant) } else { Err(Fault::Range) }
        };
        self.read(text).and_then(instant).map_err(|fault| self.explain(text, fault))
    }

    /// Appends a date to `out`. Letters of the clock are refused.
    pub fn format_date(&self, days: i32, out: &mut String) -> Result<(), String> {
        self.write(&[Part::Date], "date", (days, 0), 0, out)
    }

    /// Appends a time of day, microseconds since midnight, to `out`. Letters of the date are refused.
    pub fn format_time(&self, micros: i64, out: &mut String) -> Result<(), String> {
        self.write(&[Part::Clock], "time", (0, micros), 0, out)
    }

    /// Appends a datetime, microseconds since 1970-01-01T00:00:00, to `out`. `%z` is refused.
    pub fn format_datetime(&self, micros: i64, out: &mut String) -> Result<(), String> {
        self.write(&[Part::Date, Part::Clock], "datetime", calendar::split(micros), 0, out)
    }

    /// Appends an instant, microseconds since the epoch, to `out` as the clocks of a zone show it.
    pub fn format_timestamp(&self, micros: i64, zone: &Zone, out: &mut String) -> Result<(), String> {
        let range = || "the instant is outside the calendar".to_owned();
        let offset = zone.offset_at(micros);
        let local = micros.checked_add(i64::from(offset) * 1_000_000).ok_or_else(range)?;
        self.write(&[Part::Date, Part::Clock, Part::Zone], "timestamp", calendar::split(local), offset, out)
    }

    fn explain(&self, text: &str, fault: Fault) -> String {
        let format = &self.text;
        let place = |at: usize| text.get(..at).map_or(at, |before| before.chars().count()) + 1;
        let shown: String = text.chars().take(64).collect();
        match fault {
            Fault::Expected(what, at) => {
                format!(
                    "`{shown}` does not fit the format `{format}`: at character {} there should be {what}",
                    place(at)
                )
            }
            Fault::Literal(item, at) => {
                let what = match self.items.get(item) {
                    Some(Item::Text(text)) => text.as_str(),
                    _ => "",
                };
                format!(
                    "`{shown}` does not fit the format `{format}`: at character {} there should be `{what}`",
                    place(at)
                )
            }
            Fault::More(at) => {
                format!("`{shown}` does not fit the format `{format}`: it should end before character {}", place(at))
            }
            Fault::NoSuchDay => format!("`{shown}` is no day of the calendar (format `{format}`)"),
            Fault::Weekday => format!("`{shown}` names a weekday that the date does not fall on (format `{format}`)"),
            Fault::Range => format!("`{shown}` is outside the years 0001 to 9999 (format `{format}`)"),
            Fault::Without(what) => format!("the format `{format}` has no {what}"),
        }
    }
}

/// Cuts `format` into items.
fn compile(format: &str, items: &mut Vec<Item>) -> Result<(), String> {
    let mut rest = format;
    while let Some(next) = rest.chars().next() {
        if next != '%' {
            push_text(items, next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        rest = &rest[1..];
        if let Some(after) = rest.strip_prefix('%') {
            push_text(items, '%');
            rest = after;
        } else if let Some((name, meaning)) = SHORTHANDS.iter().find(|(name, _)| rest.starts_with(name)) {
            compile(meaning, items)?;
            rest = &rest[name.len()..];
        } else {
            let (padded, letters) = match rest.strip_prefix('-') {
                Some(after) => (false, after),
                None => (true, rest),
            };
            let found = LETTERS.iter().find(|(name, ..)| letters.starts_with(name));
            match found {
                Some(entry) if padded || UNPADDED.contains(entry.0) => {
                    items.push(Item::Field(entry, padded));
                    rest = &letters[entry.0.len()..];
                }
                _ => return Err(unknown_letter(format, rest)),
            }
        }
    }
    Ok(())
}

fn push_text(items: &mut Vec<Item>, c: char) {
    match items.last_mut() {
        Some(Item::Text(text)) => text.push(c),
        _ => items.push(Item::Text(c.to_string())),
    }
}

fn unknown_letter(format: &str, rest: &str) -> String {
    let names: Vec<String> = LETTERS
        .iter()
        .map(|(name, ..)| *name)
        .chain(SHORTHANDS.map(|(name, _)| name))
        .map(|name| format!("%{name}"))
        .collect();
    let unpadded = rest.starts_with('-');
    let letter: String = rest.chars().take(if unpadded { 2 } else { 1 }).collect();
    if letter.is_empty() {
        format!("the format `{format}` ends with a single `%`; a percent sign is written `%%`")
    } else if unpadded {
        format!(
            "`%{letter}` in the format `{format}` has no meaning; `-` may stand before {}",
            UNPADDED.replace("", " ").trim()
        )
    } else {
        format!("`%{letter}` in the format `{format}` has no meaning; there are {} and %%", names.join(" "))
    }
}

/// Why a text could not be read. Cheap: it becomes words only where somebody reads them.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// At a byte something else should stand.
    Expected(&'static str, usize),
    /// At a byte the text of an item should stand.
    Literal(usize, usize),
    /// The text goes on after the format's end.
    More(usize),
    /// February 30.
    NoSuchDay,
    /// The weekday contradicts the date.
    Weekday,
    /// Outside the calendar.
    Range,
    /// The format lacks something.
    Without(&'static str),
}

/// What was read from a text.
#[derive(Debug, Default)]
struct Read {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    weekday: Option<u32>,
    hour: i64,
    hour12: Option<i64>,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    /// Seconds ahead of UTC.
    offset: Option<i64>,
}

impl Read {
    fn date(&self) -> Result<i32, Fault> {
        let year = self.year.ok_or(Fault::Without("year (`%Y`)"))?;
        let days = match (self.month, self.day, self.day_of_year) {
            (Some(month), Some(day), _) => calendar::from_civil(year, month, day).ok_or(Fault::NoSuchDay)?,
            (_, _, Some(n)) if n <= 365 + u32::from(calendar::is_leap(year)) => {
                // Its 1..=366 was checked when it was read.
                calendar::from_civil(year, 1, 1).ok_or(Fault::NoSuchDay)? + n as i32 - 1
            }
            (_, _, Some(_)) => return Err(Fault::NoSuchDay),
            (None, ..) => return Err(Fault::Without("month (`%m`)")),
            (_, None, _) => return Err(Fault::Without("day (`%d`)")),
        };
        match self.weekday {
            Some(weekday) if weekday != calendar::weekday(days) => Err(Fault::Weekday),
            _ => Ok(days),
        }
    }

    fn time(&self) -> Result<i64, Fault> {
        let hour = match (self.hour12, self.afternoon) {
            (Some(hour), Some(afternoon)) => hour % 12 + if afternoon { 12 } else { 0 },
            (Some(_), None) => return Err(Fault::Without("half of the day (`%p`), which `%I` needs")),
            (None, _) => self.hour,
        };
        Ok(((hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.micros)
    }

    fn datetime(&self) -> Result<i64, Fault> {
        Ok(i64::from(self.date()?) * DAY_MICROS + self.time()?)
    }
}

/// A text being read, and how far.
struct Cursor<'t> {
    text: &'t [u8],
    at: usize,
}

impl Cursor<'_> {
    /// A number of `least` to `most` digits (at most 9) between `low` and `high`.
    fn number(&mut self, (least, most): (usize, usize), low: i64, high: i64, what: &'static str) -> Result<i64, Fault> {
        let start = self.at;
        let mut value = 0;
        while self.at - start < most
            && let Some(digit) = self.text.get(self.at).filter(|b| b.is_ascii_digit())
        {
            value = value * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        if self.at - start < least || value < low || value > high {
            Err(Fault::Expected(what, start))
        } else {
            Ok(value)
        }
    }

    /// One of the names, whole or its first three letters, in any case: its index.
    fn name(&mut self, names: &[&str], short: bool, what: &'static str) -> Result<u32, Fault> {
        let rest = &self.text[self.at..];
        for (index, name) in names.iter().enumerate() {
            let name = if short { &name.as_bytes()[..3] } else { name.as_bytes() };
            if rest.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name)) {
                self.at += name.len();
                return Ok(index as u32);
            }
        }
        Err(Fault::Expected(what, self.at))
    }

    /// Digits of a fraction of a second, in microseconds; finer ones are cut off.
    fn fraction(&mut self, digits: (usize, usize)) -> Result<i64, Fault> {
        let start = self.at;
        let value = self.number(digits, 0, 999_999_999, "the digits of a fraction of a second")?;
        let count = (self.at - start) as u32;
        Ok(if count <= 6 { value * 10i64.pow(6 - count) } else { value / 10i64.pow(count - 6) })
    }

    /// Takes a byte if it is the next one.
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// `Z`, `+08`, `+0800`, `+08:00`, `+08:05:43`: seconds ahead of UTC.
    fn offset(&mut self) -> Result<i64, Fault> {
        const WHAT: &str = "a distance from UTC such as `+08:00` or `Z`";
        if self.eat(b'Z') || self.eat(b'z') {
            return Ok(0);
        }
        let sign = match (self.eat(b'+'), self.eat(b'-')) {
            (true, false) => 1,
            (false, true) => -1,
            _ => return Err(Fault::Expected(WHAT, self.at)),
        };
        let mut seconds = self.number((2, 2), 0, 23, WHAT)? * 3_600;
        for unit in [60, 1] {
            let digit = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_digit);
            if self.text.get(self.at) == Some(&b':') && digit(self.at + 1) {
                self.at += 1;
            } else if unit == 1 || !digit(self.at) {
                break;
            }
            seconds += self.number((2, 2), 0, 59, WHAT)? * unit;
        }
        Ok(sign * seconds)
    }
}

impl DateFormat {
    fn read(&self, text: &str) -> Result<Read, Fault> {
        let mut c = Cursor { text: text.as_bytes(), at: 0 };
        let mut read = Read::default();
        for (index, item) in self.items.iter().enumerate() {
            let letter = match item {
                Item::Text(text) => {
                    if !c.text[c.at..].starts_with(text.as_bytes()) {
                        return Err(Fault::Literal(index, c.at));
                    }
                    c.at += text.len();
                    continue;
                }
                Item::Field((_, letter, _), _) => *letter,
            };
            match letter {
                Letter::Year => read.year = Some(c.number((4, 4), 1, 9999, "a year in four digits")?),
                Letter::Year2 => {
                    let year = c.number((2, 2), 0, 99, "a year in two digits")?;
                    read.year = Some(if year < 69 { 2000 + year } else { 1900 + year });
                }
                Letter::Month => read.month = Some(c.number((1, 2), 1, 12, "a month, 1 to 12")? as u32),
                Letter::MonthShort => read.month = Some(c.name(&MONTHS, true, "a month's name in three letters")? + 1),
                Letter::MonthLong => read.month = Some(c.name(&MONTHS, false, "a month's name")? + 1),
                Letter::Day | Letter::DayBlank => {
                    if letter == Letter::DayBlank {
                        c.eat(b' ');
                    }
                    read.day = Some(c.number((1, 2), 1, 31, "a day, 1 to 31")? as u32);
                }
                Letter::DayOfYear => {
                    read.day_of_year = Some(c.number((1, 3), 1, 366, "a day of the year, 1 to 366")? as u32)
                }
                Letter::WeekdayShort => {
                    read.weekday = Some(c.name(&WEEKDAYS, true, "a weekday's name in three letters")?)
                }
                Letter::WeekdayLong => read.weekday = Some(c.name(&WEEKDAYS, false, "a weekday's name")?),
                Letter::Hour => read.hour = c.number((1, 2), 0, 23, "an hour, 0 to 23")?,
                Letter::Hour12 => read.hour12 = Some(c.number((1, 2), 1, 12, "an hour, 1 to 12")?),
                Letter::HalfDay => {
                    let half: &[&str] = &["AM", "PM"];
                    read.afternoon = Some(c.name(half, false, "`AM` or `PM`")? == 1);
                }
                Letter::Minute => read.minute = c.number((1, 2), 0, 59, "a minute, 0 to 59")?,
                Letter::Second => read.second = c.number((1, 2), 0, 59, "a second, 0 to 59")?,
                Letter::Fraction => read.micros = c.fraction((1, 9))?,
                Letter::Millis => read.micros = c.fraction((3, 3))?,
                Letter::PointFraction => {
                    if c.eat(b'.') {
                        read.micros = c.fraction((1, 9))?;
                    }
                }
                Letter::Offset => read.offset = Some(c.offset()?),
            }
        }
        if c.at < c.text.len() { Err(Fault::More(c.at)) } else { Ok(read) }
    }

    /// Writes by the format; `parts` are those that a `what` has.
    fn write(&self, parts: &[Part], what: &str, at: (i32, i64), offset: i32, out: &mut String) -> Result<(), String> {
        let (days, micros) = at;
        let (year, month, day) = calendar::civil(days);
        let seconds = micros.rem_euclid(DAY_MICROS) / 1_000_000;
        let fraction = micros.rem_euclid(1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        for item in &self.items {
            let (letter, padded) = match item {
                Item::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Item::Field((name, _, part), _) if !parts.contains(part) => {
                    return Err(format!("a {what} has nothing for `%{name}` in the format `{}`", self.text));
                }
                Item::Field((_, letter, _), padded) => (*letter, *padded),
            };
            let two = if padded { 2 } else { 1 };
            // Writing to a `String` cannot fail.
            let _ = match letter {
                Letter::Year => write!(out, "{year:04}"),
                Letter::Year2 => write!(out, "{:02}", year.rem_euclid(100)),
                Letter::Month => write!(out, "{month:0two$}"),
                Letter::MonthShort => out.write_str(&MONTHS[month as usize - 1][..3]),
                Letter::MonthLong => out.write_str(MONTHS[month as usize - 1]),
                Letter::Day => write!(out, "{day:0two$}"),
                Letter::DayBlank => write!(out, "{day:2}"),
                Letter::DayOfYear => {
                    write!(out, "{:0width$}", calendar::day_of_year(days), width = if padded { 3 } else { 1 })
                }
                Letter::WeekdayShort => out.write_str(&WEEKDAYS[calendar::weekday(days) as usize][..3]),
                Letter::WeekdayLong => out.write_str(WEEKDAYS[calendar::weekday(days) as usize]),
                Letter::Hour => write!(out, "{hour:0two$}"),
                Letter::Hour12 => write!(out, "{:0two$}", (hour + 11) % 12 + 1),
                Letter::HalfDay => out.write_str(if hour < 12 { "AM" } else { "PM" }),
                Letter::Minute => write!(out, "{minute:0two$}"),
                Letter::Second => write!(out, "{second:0two$}"),
                Letter::Fraction => write!(out, "{fraction:06}"),
                Letter::Millis => write!(out, "{:03}", fraction / 1_000),
                Letter::PointFraction => {
                    if fraction != 0 {
                        let digits = format!("{fraction:06}");
                        out.push('.');
                        out.push_str(digits.trim_end_matches('0'));
                    }
                    Ok(())
                }
                Letter::Offset => {
                    let (sign, ahead) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
                    let written = write!(out, "{sign}{:02}:{:02}", ahead / 3_600, ahead / 60 % 60);
                    if ahead % 60 != 0 { write!(out, ":{:02}", ahead % 60) } else { written }
                }
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
