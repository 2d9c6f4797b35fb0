//! Reads a connector's constant arguments with their defaults. It may not know which connector asks.

use std::time::Duration;

use dfc_ir::plan::{OptionValue, Options, Secret};

use crate::ConnectError;

/// Typed access to the arguments of one operator.
pub(crate) struct OptionReader<'a> {
    connector: &'a str,
    options: &'a Options,
}

impl<'a> OptionReader<'a> {
    /// Over the arguments of `connector`.
    pub(crate) fn new(connector: &'a str, options: &'a Options) -> Self {
        OptionReader { connector, options }
    }

    fn get(&self, name: &str) -> Option<&'a OptionValue> {
        match self.options.get(name) {
            None | Some(OptionValue::Absent) => None,
            Some(OptionValue::Value(value)) if value.is_null() => None,
            some => some,
        }
    }

    fn wrong<T>(&self, name: &str, wanted: &str) -> Result<T, ConnectError> {
        Err(ConnectError::new("R0202", format!("`{name}` of `{}` must be {wanted}", self.connector)))
    }

    /// A text or an enumeration's name, if given.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ConnectError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.text().map_or_else(|| self.wrong(name, "a text"), |text| Ok(Some(text))),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&'a str, ConnectError> {
        self.text(name)?.map_or_else(|| self.wrong(name, "given"), Ok)
    }

    /// A yes or no.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, ConnectError> {
        match self.get(name) {
            None => Ok(default),
            Some(OptionValue::Value(dfc_ir::Value::Bool(value))) => Ok(*value),
            Some(_) => self.wrong(name, "true or false"),
        }
    }

    /// A number from 0, if given.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, ConnectError> {
        match self.get(name) {
            None => Ok(None),
            Some(OptionValue::Value(dfc_ir::Value::Int(n))) => {
                u64::try_from(*n).map_or_else(|_| self.wrong(name, "a whole number from 0"), |n| Ok(Some(n)))
            }
            Some(_) => self.wrong(name, "a whole number from 0"),
        }
    }

    /// Field names, if given.
    pub(crate) fn names(&self, name: &str) -> Result<Option<Vec<String>>, ConnectError> {
        match self.get(name) {
            None => Ok(None),
            Some(OptionValue::Names(names)) => Ok(Some(names.clone())),
            Some(_) => self.wrong(name, "fields"),
        }
    }

    /// A length of time, if given.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>, ConnectError> {
        match self.get(name) {
            None => Ok(None),
            Some(OptionValue::Value(dfc_ir::Value::Duration(micros))) if *micros > 0 => {
                Ok(Some(Duration::from_micros(micros.unsigned_abs())))
            }
            Some(_) => self.wrong(name, "a length of time above 0"),
        }
    }

    /// What stays secret, looked up now. The caller shows it to nobody and keeps it nowhere.
    pub(crate) fn secret(&self, name: &str) -> Result<String, ConnectError> {
        let missing = |message: String, help: &str| {
            Err(ConnectError::new("R0236", format!("`{name}` of `{}`: {message}", self.connector)).help(help))
        };
        match self.get(name) {
            Some(OptionValue::Secret(Secret::Given(text))) => Ok(text.clone()),
            Some(OptionValue::Secret(Secret::Env(variable))) => match std::env::var(variable) {
                Ok(value) if !value.is_empty() => Ok(value),
                Err(std::env::VarError::NotUnicode(_)) => {
                    missing(format!("the environment variable `{variable}` is no text"), "it must be UTF-8")
                }
                _ => missing(
                    format!("the environment variable `{variable}` isn't set"),
                    "set it where the job is started, or write `secret_file(\"path\")`",
                ),
            },
            Some(OptionValue::Secret(Secret::File(path))) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(text.lines().next().unwrap_or_default().trim_end().to_string()),
                Err(error) => missing(
                    format!("the secret's file `{path}` can't be read: {}", error.kind()),
                    "its first line is the secret",
                ),
            },
            Some(_) => self.wrong(name, "a secret"),
            None => self.wrong(name, "given"),
        }
    }

    /// One of an enumeration's names, by the table of what they mean; the first is the default.
    pub(crate) fn choice<T: Copy>(&self, name: &str, table: &[(&str, T)]) -> Result<T, ConnectError> {
        let Some(given) = self.text(name)? else { return Ok(table[0].1) };
        if let Some((_, value)) = table.iter().find(|(n, _)| *n == given) {
            return Ok(*value);
        }
        let names: Vec<String> = table.iter().map(|(n, _)| format!("`{n}`")).collect();
        self.wrong(name, &format!("one of {}; `{given}` is none of them", names.join(", ")))
    }
}
