//! JSON text (RFC 8259): values written as JSON, and JSON read as values of a type.
//!
//! Numbers are read from their digits, so that 64-bit integers and decimals are exact.

use std::borrow::Cow;

use dfc_ir::{DataType, Type, Value};

use crate::parse::{parse_value, shorten};
use crate::{CAST_FAILED, EvalError, UNEXPECTED_NULL, push_value};

/// How deep arrays and objects may be nested.
const MAX_DEPTH: usize = 128;

/// Appends a value as JSON: numbers and bools plain, lists as arrays, records as objects under their fields' outside names,
/// JSON as it is, null as `null`, everything else as a string of its canonical text.
pub(crate) fn push_json(out: &mut String, value: &Value, ty: &Type) {
    match (value, ty) {
        (Value::Null, _) => out.push_str("null"),
        (Value::List(items), Type::List(item)) => {
            out.push('[');
            for (i, value) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_json(out, value, &item.ty);
            }
            out.push(']');
        }
        (Value::Record(values), Type::Record(fields)) => {
            out.push('{');
            for (i, (value, field)) in values.iter().zip(fields).enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_string(out, field.external_name());
                out.push_str(": ");
                push_json(out, value, &field.ty.ty);
            }
            out.push('}');
        }
        (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Decimal(_), _) | (_, Type::Json) => {
            push_value(out, value, ty);
        }
        (Value::Str(text), _) => push_string(out, text),
        _ => push_string(out, &crate::format_value(value, ty)),
    }
}

/// Appends a JSON string.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The value of type `ty` that a JSON text stands for. For `json` that is the text itself, checked and without the blanks around it.
///
/// A JSON `null` gives null at the top; inside, a null under a type that is never null is an error. Objects are read by their
/// fields' outside names: unknown keys are skipped, the last of equal keys counts, a missing one is null. A string is read as
/// text of the type (`"12"` as a number, `"2026-01-31"` as a date); as a `string` it is its content, anything else its JSON text.
/// Errors: `R0103`, `R0104`.
pub(crate) fn parse_text(text: &str, ty: &Type) -> Result<Value<'static>, EvalError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.blanks();
    let start = reader.at;
    let skipped = reader.skip();
    let end = reader.at;
    reader.blanks();
    if skipped.is_err() || reader.at != text.len() {
        let why = skipped.err().unwrap_or("something follows the value");
        return Err(EvalError::new(
            CAST_FAILED,
            format!("`{}` is not JSON: byte {}: {why}", shorten(text), reader.at + 1),
        )
        .with_value(text));
    }
    read(&text[start..end], ty)
}

/// As [`parse_value`] of a JSON text, of one that is known to be well formed and to have no blanks around it.
pub fn read_json(json: &str, ty: &Type) -> Result<Value<'static>, EvalError> {
    read(json, ty)
}

/// The first byte from `at` on that a JSON string doesn't hold as it is: a quote, a backslash or a control character.
#[inline(always)]
pub fn special_in_string(text: &[u8], mut at: usize) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    // Has the highest bit of the first byte that is zero, maybe those of some behind it.
    let zeros = |word: u64| word.wrapping_sub(LOW) & !word & (LOW << 7);
    while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*bytes);
        let (quotes, escapes) = (word ^ (LOW * b'"' as u64), word ^ (LOW * b'\\' as u64));
        let found = zeros(quotes) | zeros(escapes) | zeros(word & (LOW * 0xe0));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text.get(at..)?;
    rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20)).map(|n| at + n)
}

/// A JSON value that is known to be well formed, as a value of `ty`.
fn read(json: &str, ty: &Type) -> Result<Value<'static>, EvalError> {
    let mismatch =
        || EvalError::new(CAST_FAILED, format!("`{}` is not a value of type {ty}", shorten(json))).with_value(json);
    match ty {
        Type::Json => return Ok(Value::string(json)),
        _ if json == "null" => return Ok(Value::Null),
        _ => {}
    }
    let mut reader = Reader { text: json, at: 1, depth: 0 };
    match (json.as_bytes().first(), ty) {
        (Some(b'['), Type::List(item)) => {
            let mut items = Vec::new();
            while let Some(element) = reader.element() {
                items.push(read_as(element, item, || format!("item {}", items.len()))?);
            }
            Ok(Value::List(items))
        }
        (Some(b'{'), Type::Record(fields)) => {
            let mut found: Vec<Option<&str>> = vec![None; fields.len()];
            while let Some((key, member)) = reader.member() {
                if let Some(at) = fields.iter().position(|field| field.external_name() == key) {
                    found[at] = Some(member);
                }
            }
            let values = fields.iter().zip(found).map(|(field, member)| {
                read_as(member.unwrap_or("null"), &field.ty, || format!("field `{}`", field.external_name()))
            });
            Ok(Value::Record(values.collect::<Result<_, _>>()?))
        }
        (_, Type::List(_) | Type::Record(_)) => Err(mismatch()),
        (Some(b'"'), _) => parse_value(&unquote(json), ty),
        (_, Type::String) => Ok(Value::string(json)),
        (Some(b'[' | b'{'), _) => Err(mismatch()),
        (Some(b't' | b'f'), Type::Bool) => parse_value(json, ty),
        (_, ty) if ty.is_numeric() => parse_value(json, ty),
        _ => Err(mismatch()),
    }
}

/// An item or a field.
fn read_as(json: &str, ty: &DataType, what: impl Fn() -> String) -> Result<Value<'static>, EvalError> {
    let value = read(json, &ty.ty)?;
    if value.is_null() && !ty.nullable {
        return Err(EvalError::new(UNEXPECTED_NULL, format!("{} is null, its type {ty} has no null", what())));
    }
    Ok(value)
}

/// The content of a well-formed JSON string. A lone surrogate becomes U+FFFD.
fn unquote(json: &str) -> Cow<'_, str> {
    let mut rest = &json[1..json.len() - 1];
    if !rest.contains('\\') {
        return Cow::Borrowed(rest);
    }
    let mut out = String::with_capacity(json.len());
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        match escape {
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'u' => {
                let unit = |text: &str| u32::from_str_radix(text.get(..4)?, 16).ok();
                let first = unit(rest).unwrap_or(0xFFFD);
                rest = &rest[4..];
                let second = rest.strip_prefix("\\u").and_then(unit).filter(|low| (0xDC00..0xE000).contains(low));
                match second {
                    Some(low) if (0xD800..0xDC00).contains(&first) => {
                        rest = &rest[6..];
                        let c = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
                        out.push(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    _ => out.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
            other => out.push(other as char),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Steps over JSON text.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over one value, which starts here.
    fn skip(&mut self) -> Result<(), &'static str> {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'[') => self.skip_all(b']', |reader| reader.skip()),
            Some(b'{') => self.skip_all(b'}', |reader| {
                reader.skip_string()?;
                reader.blanks();
                if !reader.take(b':') {
                    return Err("a colon is expected after a key");
                }
                reader.blanks();
                reader.skip()
            }),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            _ => match ["true", "false", "null"].into_iter().find(|word| self.text[self.at..].starts_with(word)) {
                Some(word) => {
                    self.at += word.len();
                    Ok(())
                }
                None => Err("a value is expected"),
            },
        }
    }

    /// Steps over an array or an object, whose opener stands here.
    fn skip_all(
        &mut self,
        close: u8,
        mut part: impl FnMut(&mut Self) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("more than 128 levels of arrays and objects");
        }
        self.at += 1;
        self.blanks();
        if !self.take(close) {
            loop {
                part(self)?;
                self.blanks();
                if self.take(close) {
                    break;
                }
                if !self.take(b',') {
                    return Err("a comma or a closing bracket is expected");
                }
                self.blanks();
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn skip_string(&mut self) -> Result<(), &'static str> {
        if !self.take(b'"') {
            return Err("a string is expected");
        }
        loop {
            self.at = special_in_string(self.text.as_bytes(), self.at).unwrap_or(self.text.len());
            match self.peek() {
                None => return Err("a string has no end"),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') => {
                            let digits = self.text.as_bytes().get(self.at + 1..self.at + 5);
                            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                                return Err("four hexadecimal digits are expected after \\u");
                            }
                            self.at += 4;
                        }
                        _ => return Err("an unknown escape in a string"),
                    }
                }
                Some(_) => return Err("a control character in a string"),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), &'static str> {
        fn digits(reader: &mut Reader) -> Result<(), &'static str> {
            let start = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            if reader.at == start { Err("a digit is expected") } else { Ok(()) }
        }
        self.take(b'-');
        if !self.take(b'0') {
            digits(self)?;
        }
        if self.take(b'.') {
            digits(self)?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            digits(self)?;
        }
        Ok(())
    }

    /// The text of the value here, in text that is well formed.
    fn value(&mut self) -> Option<&'t str> {
        self.blanks();
        let start = self.at;
        self.skip().ok()?;
        Some(&self.text[start..self.at])
    }

    /// The next element of a well-formed array.
    fn element(&mut self) -> Option<&'t str> {
        self.blanks();
        self.take(b',');
        self.blanks();
        if self.peek() == Some(b']') { None } else { self.value() }
    }

    /// The next key and value of a well-formed object.
    fn member(&mut self) -> Option<(Cow<'t, str>, &'t str)> {
        self.blanks();
        self.take(b',');
        self.blanks();
        if self.peek() == Some(b'}') {
            return None;
        }
        let key = unquote(self.value()?);
        self.blanks();
        self.take(b':');
        Some((key, self.value()?))
    }
}
