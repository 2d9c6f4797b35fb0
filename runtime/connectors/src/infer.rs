//! From the texts of a column to a type that all of them have, the careful way: `001` stays text, money stays exact, and what is
//! not certain is a string. The same texts give the same type, in whatever order they come.
//!
//! It may not know where the texts come from.

use dfc_eval::parse_value;
use dfc_ir::types::{IntType, MAX_PRECISION, SHORT_PRECISION};
use dfc_ir::{DataType, Type};

use crate::text::pattern::Patterns;
use crate::text::value::read;

/// The types that a text may show beside numbers and bools, the narrower first.
const TIMES: [Type; 4] = [Type::Date, Type::DateTime, Type::Timestamp, Type::Time];
/// Digits that a float64 keeps.
const FLOAT_DIGITS: usize = 15;

/// What the texts of a column have in common.
#[derive(Debug, Clone)]
pub(crate) struct Guess {
    /// Whether a null was among them.
    pub null: bool,
    /// Whether a text was among them.
    pub seen: bool,
    bools: bool,
    numbers: bool,
    /// Of each of [`TIMES`].
    times: [bool; 4],
    exponents: bool,
    /// Most digits before and after the point.
    digits: (usize, usize),
    int64: bool,
    uint64: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Guess {
            null: false,
            seen: false,
            bools: true,
            numbers: true,
            times: [true; 4],
            exponents: false,
            digits: (0, 0),
            int64: true,
            uint64: true,
        }
    }
}

/// What the digits of a number look like.
struct Digits {
    whole: usize,
    fraction: usize,
    exponent: bool,
}

impl Guess {
    /// Another text.
    pub(crate) fn text(&mut self, text: &str, patterns: Option<&Patterns>) {
        self.seen = true;
        self.bools &= text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
        self.numbers = self.numbers && self.number(text);
        for (may, ty) in self.times.iter_mut().zip(&TIMES) {
            *may = *may && read(text.as_bytes(), ty, patterns).is_ok();
        }
    }

    /// Another number, which is written as JSON writes them.
    pub(crate) fn json_number(&mut self, text: &str) {
        self.seen = true;
        (self.bools, self.times) = (false, [false; 4]);
        self.numbers = self.numbers && self.number(text);
        // What has more digits was a float before it was written.
        self.exponents |= self.digits.1 > 0 && self.digits.0 + self.digits.1 > FLOAT_DIGITS;
    }

    /// Another bool.
    pub(crate) fn bool(&mut self) {
        self.seen = true;
        (self.numbers, self.times) = (false, [false; 4]);
    }

    fn number(&mut self, text: &str) -> bool {
        let Some(Digits { whole, fraction, exponent }) = digits(text) else { return false };
        self.exponents |= exponent;
        self.digits = (self.digits.0.max(whole), self.digits.1.max(fraction));
        self.int64 = self.int64 && parse_value(text, &Type::INT64).is_ok();
        self.uint64 = self.uint64 && parse_value(text, &Type::Int(IntType::U64)).is_ok();
        !exponent || parse_value(text, &Type::Float64).is_ok()
    }

    /// The type of all texts: text where they have no other in common, or where there were none.
    pub(crate) fn ty(&self, patterns: Option<&Patterns>) -> DataType {
        DataType { ty: self.plain(patterns), nullable: self.null || !self.seen }
    }

    fn plain(&self, patterns: Option<&Patterns>) -> Type {
        if !self.seen {
            return Type::String;
        }
        let times = || TIMES.iter().zip(self.times).filter(|(_, may)| *may).map(|(ty, _)| ty.clone());
        // A form that the user gave is meant, even where its texts look like numbers.
        if let Some(ty) = times().find(|ty| patterns.is_some_and(|p| p.of(ty).is_some())) {
            return ty;
        }
        if self.bools {
            return Type::Bool;
        }
        if !self.numbers {
            return times().next().unwrap_or(Type::String);
        }
        if self.exponents {
            return Type::Float64;
        }
        match self.digits {
            (_, 0) if self.int64 => Type::INT64,
            (_, 0) if self.uint64 => Type::Int(IntType::U64),
            (whole, scale) => {
                // Room for larger numbers than those seen; the scale is that of the data.
                let fits = |precision: u8| whole + scale <= usize::from(precision);
                let precision = [SHORT_PRECISION, MAX_PRECISION].into_iter().find(|p| fits(*p));
                // The scale is below the precision, which is at most 38.
                precision.map_or(Type::String, |precision| Type::Decimal(precision, scale as u8))
            }
        }
    }
}

/// The digits of a number as people write it: an optional minus, no zero in front of other digits, no blanks, no separators.
fn digits(text: &str) -> Option<Digits> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let all = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let power = |power: &str| all(power.strip_prefix(['+', '-']).unwrap_or(power));
    let padded = whole.len() > 1 && whole.starts_with('0');
    if !all(whole) || padded || !fraction.is_none_or(all) || !exponent.is_none_or(power) {
        return None;
    }
    Some(Digits {
        whole: if whole == "0" { 0 } else { whole.len() },
        fraction: fraction.map_or(0, str::len),
        exponent: exponent.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(texts: &[&str]) -> String {
        let mut guess = Guess::default();
        texts.iter().for_each(|text| guess.text(text, None));
        let forward = guess.ty(None).to_string();
        let mut guess = Guess::default();
        texts.iter().rev().for_each(|text| guess.text(text, None));
        assert_eq!(forward, guess.ty(None).to_string(), "the order changes the type of {texts:?}");
        forward
    }

    #[test]
    fn types_are_guessed_with_care() {
        for (texts, ty) in [
            (&["1", "-2", "0"][..], "int64"),
            (&["001", "2"], "string"),
            (&["+49", "1"], "string"),
            (&["9223372036854775807"], "int64"),
            (&["9223372036854775808"], "uint64"),
            (&["-1", "9223372036854775808"], "decimal(38, 0)"),
            (&["18446744073709551616"], "decimal(38, 0)"),
            (&["123456789012345678901234567890123456789"], "string"),
            (&["1.25", "3"], "decimal(18, 2)"),
            (&["0.5", "12345678901234567"], "decimal(18, 1)"),
            (&["0.25", "12345678901234567"], "decimal(38, 2)"),
            (&["1e5", "2"], "float64"),
            (&["1e999"], "string"),
            (&["1,000"], "string"),
            (&["1.", ".5"], "string"),
            (&["true", "FALSE"], "bool"),
            (&["true", "1"], "string"),
            (&["2026-01-31"], "date"),
            (&["0000-00-00", "2026-01-31"], "string"),
            (&["2026-02-30"], "string"),
            (&["2026-01-31T10:00:00", "2026-01-31 10:00:00.5"], "datetime"),
            (&["2026-01-31T10:00:00Z", "2026-01-31T10:00:00+08:00"], "timestamp"),
            (&["2026-01-31T10:00:00Z", "2026-01-31T10:00:00"], "string"),
            (&["2026-01-31", "2026-01-31T10:00:00"], "string"),
            (&["10:00:00"], "time"),
            (&["nan", "1.5"], "string"),
            (&[""], "string"),
            (&["١٢"], "string"),
            (&[], "string?"),
        ] {
            assert_eq!(guess(texts), ty, "{texts:?}");
        }
    }
}
