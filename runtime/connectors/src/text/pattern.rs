//! The forms of dates and times that a text connector's user gave (`date_format:` and its kin).

use dfc_ir::{Type, Value};
use dfc_stdlib::date_format::DateFormat;
use dfc_stdlib::zones::Zone;

use crate::ConnectError;
use crate::options::OptionReader;

/// One form a temporal type, where one was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns {
    date: Option<Pattern>,
    time: Option<Pattern>,
    datetime: Option<Pattern>,
    timestamp: Option<Pattern>,
}

/// A form of dates or times.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    format: DateFormat,
    utc: Option<Zone>,
}

impl Patterns {
    /// From the arguments.
    ///
    /// # Errors
    /// A text that is no form, or leaves out what the type needs.
    pub(crate) fn read(options: &OptionReader) -> Result<Self, ConnectError> {
        let one = |name: &str| {
            let Some(text) = options.text(name)? else { return Ok(None) };
            let format = DateFormat::new(text)
                .map_err(|why| ConnectError::new("R0202", format!("`{name}`: `{text}` is no form of dates: {why}")))?;
            match format.missing(name) {
                Some(missing) => Err(ConnectError::new("R0202", format!("`{name}`: `{text}` doesn't say {missing}"))),
                None => Ok(Some(Pattern { format, utc: Zone::by_name("UTC").ok() })),
            }
        };
        Ok(Patterns {
            date: one("date_format")?,
            time: one("time_format")?,
            datetime: one("datetime_format")?,
            timestamp: one("timestamp_format")?,
        })
    }

    /// The form given for a type.
    pub(crate) fn of(&self, ty: &Type) -> Option<&Pattern> {
        match ty {
            Type::Date => self.date.as_ref(),
            Type::Time => self.time.as_ref(),
            Type::DateTime => self.datetime.as_ref(),
            Type::Timestamp => self.timestamp.as_ref(),
            _ => None,
        }
    }

    /// The parameter that gives the form for a type.
    pub(crate) fn parameter(ty: &Type) -> Option<&'static str> {
        match ty {
            Type::Date => Some("date_format"),
            Type::Time => Some("time_format"),
            Type::DateTime => Some("datetime_format"),
            Type::Timestamp => Some("timestamp_format"),
            _ => None,
        }
    }
}

impl Pattern {
    /// The value of a text in this form. An instant without a distance from UTC is read as UTC.
    ///
    /// # Errors
    /// Why the text isn't in this form.
    pub(crate) fn read(&self, text: &str, ty: &Type) -> Result<Value<'static>, String> {
        match ty {
            Type::Date => self.format.parse_date(text).map(Value::Date),
            Type::Time => self.format.parse_time(text).map(Value::Time),
            Type::DateTime => self.format.parse_datetime(text).map(Value::DateTime),
            _ => self.format.parse_timestamp(text, self.utc.as_ref()).map(Value::Timestamp),
        }
    }

    /// Appends a value in this form.
    ///
    /// # Errors
    /// Why the form can't show it.
    pub(crate) fn write(&self, value: &Value, out: &mut String) -> Result<(), String> {
        match (value, &self.utc) {
            (Value::Date(days), _) => self.format.format_date(*days, out),
            (Value::Time(micros), _) => self.format.format_time(*micros, out),
            (Value::DateTime(micros), _) => self.format.format_datetime(*micros, out),
            (Value::Timestamp(micros), Some(utc)) => self.format.format_timestamp(*micros, utc, out),
            _ => Ok(()),
        }
    }
}
