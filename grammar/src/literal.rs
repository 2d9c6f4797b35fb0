//! What literals mean: numbers, dates, texts, durations, sizes, from their spelling to their value.
//!
//! Each reader gives a value in any case, so that one fault in a literal is one message and the parser goes on; faults
//! carry spans relative to the literal's first byte. It knows nothing of types: whether `1000` fits an `int8` is the
//! compiler's.

use crate::ast::{Literal, Span};
use crate::error::{self, SyntaxError};
use crate::token::TokenKind;
use logos::Logos;

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

/// The units of durations, in microseconds.
const DURATIONS: &[(&str, i64)] =
    &[("ms", 1_000), ("s", SECOND), ("m", 60 * SECOND), ("h", 3_600 * SECOND), ("d", 86_400 * SECOND)];

/// The units of sizes, in bytes.
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Units as people write them elsewhere, and what they are here.
const UNIT_NAMES: &[(&str, &str)] = &[
    ("milli", "ms"),
    ("msec", "ms"),
    ("sec", "s"),
    ("min", "m"),
    ("hour", "h"),
    ("hr", "h"),
    ("day", "d"),
    ("kb", "KB"),
    ("mb", "MB"),
    ("gb", "GB"),
    ("tb", "TB"),
    ("k", "KB"),
    ("g", "GB"),
];

/// A span of the whole literal.
fn whole(text: &str) -> Span {
    Span::new(0, text.len())
}

fn bad_number(text: &str, message: String, label: &str) -> SyntaxError {
    SyntaxError::new(error::BAD_NUMBER, whole(text), message, label)
}

/// Reads a run of digits with the letters after it.
pub(crate) fn number(text: &str, faults: &mut Vec<SyntaxError>) -> Literal {
    match read_number(text) {
        Ok(literal) => literal,
        Err(fault) => {
            faults.push(*fault);
            Literal::Int(0)
        }
    }
}

/// Reads a size with its unit, as in `512MB`: its bytes.
///
/// # Errors
/// What is wrong with it, and the cure.
pub fn size(text: &str) -> Result<u64, String> {
    match read_number(text.trim()) {
        Ok(Literal::Bytes(bytes)) if bytes > 0 => Ok(bytes),
        Ok(_) => Err("expected a number of bytes with its unit, such as `512MB`".to_owned()),
        Err(fault) => Err(match fault.help {
            Some(help) => format!("{}; {help}", fault.message),
            None => fault.message,
        }),
    }
}

fn read_number(text: &str) -> Result<Literal, Box<SyntaxError>> {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let int_end = digits(0);
    let mut end = int_end;
    let mut fraction = "";
    if bytes.get(end) == Some(&b'.') {
        end = digits(int_end + 1);
        fraction = &text[int_end + 1..end];
    }
    let mut exponent = false;
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits((end + 1 + sign).min(bytes.len()));
        if after > end + 1 + sign {
            exponent = true;
            end = after;
        }
    }
    let (number, suffix) = text.split_at(end);
    if suffix.starts_with('_') && suffix.bytes().all(|b| b == b'_' || b.is_ascii_digit() || b == b'.') {
        let plain = text.replace('_', "");
        let fault = bad_number(text, format!("`{text}` has `_` between its digits"), "digits only")
            .help(format!("write `{plain}`"))
            .fix(whole(text), plain);
        return Err(Box::new(fault));
    }
    match suffix {
        "f" | "F" => return float(text, number),
        "" if exponent => return float(text, number),
        "" => return plain(text, &text[..int_end], fraction),
        _ => {}
    }
    let is_whole = fraction.is_empty() && !exponent;
    if let Some((_, micros)) = DURATIONS.iter().find(|(unit, _)| *unit == suffix) {
        return match number.parse::<i64>().ok().and_then(|n| n.checked_mul(*micros)) {
            Some(value) if is_whole => Ok(Literal::Duration(value)),
            _ if !is_whole => Err(Box::new(
                bad_number(text, format!("the duration `{text}` is not a whole number of its unit"), "not whole")
                    .help("use a smaller unit: `1500ms` instead of `1.5s`"),
            )),
            _ => Err(Box::new(
                bad_number(text, format!("the duration `{text}` is too long"), "too long")
                    .help("a duration has at most 106,751,991 days"),
            )),
        };
    }
    if let Some((_, bytes)) = SIZES.iter().find(|(unit, _)| *unit == suffix) {
        return match number.parse::<u64>().ok().and_then(|n| n.checked_mul(*bytes)) {
            Some(value) if is_whole => Ok(Literal::Bytes(value)),
            _ if !is_whole => Err(Box::new(
                bad_number(text, format!("the size `{text}` is not a whole number of its unit"), "not whole")
                    .help("use a smaller unit: `1500KB` instead of `1.5MB`"),
            )),
            _ => Err(Box::new(
                bad_number(text, format!("the size `{text}` is too large"), "too large")
                    .help("a size has at most 2⁶⁴ − 1 bytes"),
            )),
        };
    }
    let lower = suffix.to_lowercase();
    let near = UNIT_NAMES.iter().find(|(name, _)| lower == *name || (name.len() > 1 && lower.starts_with(name)));
    let fault = bad_number(text, format!("`{text}` is neither a number nor a number with a unit"), "unknown unit");
    Err(Box::new(match near {
        Some((_, unit)) if is_whole => {
            let fixed = format!("{number}{unit}");
            fault.help(format!("write `{fixed}`")).fix(whole(text), fixed)
        }
        _ if text.starts_with("0x") || text.starts_with("0b") || text.starts_with("0o") => {
            fault.help("numbers are written in decimal digits")
        }
        _ => fault.help("units are `ms s m h d` for durations, `B KB MB GB TB KiB MiB GiB TiB` for sizes, `f` for a float; a name starts with a letter"),
    }))
}

fn float(text: &str, number: &str) -> Result<Literal, Box<SyntaxError>> {
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Literal::Float(value.to_bits())),
        _ => Err(Box::new(
            bad_number(text, format!("`{text}` is too large for a float64"), "too large")
                .help("the largest is about 1.7976931348623157e308"),
        )),
    }
}

fn plain(text: &str, integer: &str, fraction: &str) -> Result<Literal, Box<SyntaxError>> {
    let digits = format!("{integer}{fraction}");
    let significant = digits.trim_start_matches('0').len();
    match digits.parse::<i128>() {
        Ok(value) if fraction.is_empty() => Ok(Literal::Int(value)),
        Ok(mantissa) if significant <= 38 && fraction.len() <= 38 => {
            Ok(Literal::Decimal { mantissa, scale: fraction.len() as u8 })
        }
        _ => Err(Box::new(
            bad_number(text, format!("`{text}` has more than 38 digits"), "too many digits")
                .help("the longest number is a decimal of 38 digits; add `f` for a float64"),
        )),
    }
}

/// Reads `@…`.
pub(crate) fn date_time(text: &str, faults: &mut Vec<SyntaxError>) -> Literal {
    match read_date_time(text) {
        Ok(literal) => literal,
        Err((message, label)) => {
            let help = "write `@2026-01-31`, `@10:00:00`, `@2026-01-31T10:00:00`, with a fraction up to `.123456`, \
                        and `Z` or `+08:00` for an instant";
            faults.push(SyntaxError::new(error::BAD_DATE, whole(text), message, label).help(help));
            Literal::Date(0)
        }
    }
}

/// A date or a time as other languages write it in a text, `2026-01-31 10:00:00`, in the form that it has here.
pub(crate) fn moment(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !matches!((digits, text.as_bytes().get(digits)), (4, Some(b'-')) | (2, Some(b':'))) {
        return None;
    }
    let text = match text.split_once(' ') {
        Some((date, clock)) => format!("@{date}T{}", clock.trim().replace(' ', "")),
        None => format!("@{text}"),
    };
    let seconds = format!("{text}:00");
    [text, seconds].into_iter().find(|text| read_date_time(text).is_ok())
}

fn read_date_time(text: &str) -> Result<Literal, (String, &'static str)> {
    let body = text.strip_prefix('@').unwrap_or(text);
    let form = || (format!("`{text}` is not a date or a time"), "not in a form that is known");
    if let Some((date, clock)) = body.split_once('T') {
        let day = i64::from(read_date(text, date)?);
        let (clock, offset) = match clock.find(['Z', '+', '-']) {
            None => (clock, None),
            Some(at) if &clock[at..] == "Z" => (&clock[..at], Some(0)),
            Some(at) => (&clock[..at], Some(read_offset(text, &clock[at..])?)),
        };
        let local = day * 86_400 * SECOND + read_clock(text, clock)?;
        return Ok(match offset {
            None => Literal::DateTime(local),
            Some(minutes) => {
                let instant = local - minutes * 60 * SECOND;
                let calendar = FIRST_DAY * 86_400 * SECOND..(LAST_DAY + 1) * 86_400 * SECOND;
                if !calendar.contains(&instant) {
                    let message = format!("`{text}` lies outside the years 0001 to 9999 in UTC");
                    return Err((message, "outside the calendar"));
                }
                Literal::Timestamp(instant)
            }
        });
    }
    match (body.contains('-'), body.contains(':')) {
        (true, false) => Ok(Literal::Date(read_date(text, body)?)),
        (false, true) => Ok(Literal::Time(read_clock(text, body)?)),
        _ => Err(form()),
    }
}

/// 0001-01-01 and 9999-12-31, in days since 1970-01-01.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// Digits of exactly this length.
fn fixed(text: &str, length: usize) -> Option<i64> {
    (text.len() == length && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn read_date(text: &str, date: &str) -> Result<i32, (String, &'static str)> {
    let mut parts = date.split('-');
    let mut next = |length| parts.next().and_then(|part| fixed(part, length));
    let (Some(year), Some(month), Some(day), None) = (next(4), next(2), next(2), next(1)) else {
        return Err((
            format!("`{text}` is not a date: a year has four digits, a month and a day have two"),
            "not a date",
        ));
    };
    if year == 0 || !(1..=12).contains(&month) {
        let what = if year == 0 { "year 0".to_owned() } else { format!("month {month}") };
        return Err((format!("`{text}` does not exist: there is no {what}"), "no such date"));
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=days).contains(&day) {
        return Err((format!("`{text}` does not exist: that month has {days} days"), "no such day"));
    }
    // Days since 1970-01-01 in the proleptic Gregorian calendar, counted in years that start in March.
    let y = if month <= 2 { year - 1 } else { year };
    let (era, m) = (y / 400, (month + 9) % 12);
    let year_of_era = y % 400;
    let day_of_year = (153 * m + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Ok((era * 146_097 + day_of_era - 719_468) as i32)
}

fn read_clock(text: &str, clock: &str) -> Result<i64, (String, &'static str)> {
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.split(':');
    let mut next = || parts.next().map(|part| fixed(part, 2));
    let (Some(Some(hour)), Some(Some(minute)), Some(Some(second)), None) = (next(), next(), next(), next()) else {
        return Err((
            format!("`{text}` is not a time: hours, minutes and seconds with two digits each are"),
            "not a time",
        ));
    };
    let fraction_ok = fraction.len() <= 6 && fraction.bytes().all(|b| b.is_ascii_digit());
    if !fraction_ok || (fraction.is_empty() && clock.contains('.')) {
        return Err((format!("the fraction of `{text}` is not one to six digits"), "bad fraction"));
    }
    if hour > 23 || minute > 59 || second > 59 {
        return Err((format!("`{text}` does not exist: a day ends at 23:59:59.999999"), "no such time"));
    }
    let micros = format!("{fraction:0<6}").parse::<i64>().unwrap_or(0);
    Ok((hour * 3_600 + minute * 60 + second) * SECOND + micros)
}

/// An offset like `+08:00`, in minutes.
fn read_offset(text: &str, offset: &str) -> Result<i64, (String, &'static str)> {
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let parts = offset.get(1..).and_then(|digits| digits.split_once(':'));
    match parts.map(|(h, m)| (fixed(h, 2), fixed(m, 2))) {
        Some((Some(h), Some(m))) if h <= 18 && m <= 59 => Ok(sign * (h * 60 + m)),
        _ => Err((format!("the offset of `{text}` is not hours and minutes such as `+08:00`"), "bad offset")),
    }
}

/// Reads a quoted text of any kind but `f"…"`; `quote` is what opens and closes it.
pub(crate) fn string(
    text: &str,
    open: &str,
    close: &str,
    escapes: bool,
    faults: &mut Vec<SyntaxError>,
) -> (String, bool) {
    let body = text.strip_prefix(open).unwrap_or("");
    let (content, closed) = match body.strip_suffix(close) {
        // In `"a\"` the last quote is part of the text.
        Some(content) if !escapes || !ends_in_escape(content) => (content, true),
        _ => (body, false),
    };
    if !closed {
        faults.push(unterminated(text, "this text", close));
        return (content.to_owned(), false);
    }
    let value = if escapes { unescape(content, open.len(), faults) } else { content.to_owned() };
    (value, true)
}

/// Whether the text ends in a backslash that is not itself escaped.
fn ends_in_escape(text: &str) -> bool {
    text.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
}

/// The content of `"""…"""`: as it is, without a line end directly after the opening quotes, lines ended by `\n`.
pub(crate) fn triple(text: &str, faults: &mut Vec<SyntaxError>) -> (String, bool) {
    if text.len() < 6 {
        faults.push(unterminated(text, "this text", "\"\"\""));
        return (String::new(), false);
    }
    let (content, closed) = string(text, "\"\"\"", "\"\"\"", false, faults);
    let content = content.replace("\r\n", "\n");
    (content.strip_prefix('\n').map(str::to_owned).unwrap_or(content), closed)
}

/// The error for a literal whose end is missing.
pub(crate) fn unterminated(text: &str, what: &str, close: &str) -> SyntaxError {
    let shown = text.trim_end();
    let span = Span::new(0, shown.len());
    let mark = if close == "`" { "backtick".to_owned() } else { format!("`{close}`") };
    SyntaxError::new(error::UNTERMINATED, span, format!("{what} has no closing {mark}"), "starts here")
        .help(format!("put {} where it ends, on the same line", if close == "`" { "a backtick" } else { &mark }))
}

/// Resolves escapes; `base` is where the text stands in its literal.
pub(crate) fn unescape(text: &str, base: usize, faults: &mut Vec<SyntaxError>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let here = base + (text.len() - rest.len()) + at;
        let mut chars = rest[at + 1..].chars();
        let kind = chars.next();
        let mut used = 1 + kind.map_or(0, char::len_utf8);
        match kind {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(c @ ('"' | '\\')) => out.push(c),
            Some('u') => {
                let body = chars.as_str();
                let hex = body.strip_prefix('{').and_then(|b| b.split_once('}')).map(|(hex, _)| hex);
                let value = hex
                    .filter(|hex| (1..=6).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .and_then(char::from_u32);
                if let Some(hex) = hex {
                    used += hex.len() + 2;
                }
                match value {
                    Some(c) => out.push(c),
                    None => faults.push(
                        SyntaxError::new(
                            error::BAD_ESCAPE,
                            Span::new(here, here + used),
                            "`\\u` does not name a character here",
                            "no such character",
                        )
                        .help("write one to six hexadecimal digits of a Unicode character in braces: `\\u{91d1}`"),
                    ),
                }
            }
            // One text with several of them, such as a path, is one mistake.
            _ if faults.iter().any(|fault| fault.code == error::BAD_ESCAPE.0) => {}
            other => {
                let shown = other.map(String::from).unwrap_or_default();
                let span = Span::new(here, here + used);
                faults.push(
                    SyntaxError::new(
                        error::BAD_ESCAPE,
                        span,
                        format!("there is no escape `\\{shown}`"),
                        "unknown escape",
                    )
                    .help("escapes are `\\n \\t \\r \\\" \\\\ \\u{…}`; write `\\\\` for a backslash, or a raw text `r\"…\"` for a pattern"),
                );
            }
        }
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    out
}

/// A piece of a format string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text with its escapes resolved.
    Text(String),
    /// An expression: its bytes in the literal, without the braces.
    Code(usize, usize),
}

/// Cuts `f"…"` into its pieces; `false` where its end is missing.
pub(crate) fn format(text: &str, faults: &mut Vec<SyntaxError>) -> (Vec<Piece>, bool) {
    let start = 2;
    // Scanned again rather than trusting the last quote: in `f"{x"` it belongs to the expression.
    let (_, closed) = crate::scan::format_parts(text.get(start..).unwrap_or(""));
    if !closed {
        let mut fault = unterminated(text, "this format string", "\"");
        if text.contains('{') {
            fault =
                fault.help("close it with `\"` on the same line, and every `{` in it with `}`; a plain brace is `{{`");
        }
        faults.push(fault);
        return (Vec::new(), false);
    }
    let end = text.len() - 1;
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let (mut from, mut i) = (start, start);
    let mut plain = String::new();
    while i < end {
        match bytes[i] {
            b'\\' if text[i..].starts_with("\\u{") => i += text[i..].find('}').map_or(3, |n| n + 1),
            b'\\' => i += 2,
            brace @ (b'{' | b'}') if bytes.get(i + 1) == Some(&brace) => {
                plain.push_str(&unescape(&text[from..=i], from, faults));
                i += 2;
                from = i;
            }
            b'}' => {
                plain.push_str(&unescape(&text[from..i], from, faults));
                let span = Span::new(i, i + 1);
                faults.push(
                    SyntaxError::new(
                        error::FORMAT_STRING,
                        span,
                        "`}` in a format string closes nothing",
                        "no `{` before it",
                    )
                    .help("write `}}` for a plain brace")
                    .fix(span, "}}"),
                );
                i += 1;
                from = i;
            }
            b'{' => {
                plain.push_str(&unescape(&text[from..i], from, faults));
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                let length = code_length(&text[i + 1..end]);
                pieces.push(Piece::Code(i + 1, i + 1 + length));
                i += length + 2;
                from = i;
            }
            _ => i += 1,
        }
    }
    plain.push_str(&unescape(text.get(from..end).unwrap_or(""), from, faults));
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    (pieces, true)
}

/// The length of an expression in a format string, up to its `}`.
fn code_length(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut lexer = TokenKind::lexer(rest);
    while let Some(kind) = lexer.next() {
        match kind {
            Ok(TokenKind::LBrace) => depth += 1,
            Ok(TokenKind::RBrace) if depth == 0 => return lexer.span().start,
            Ok(TokenKind::RBrace) => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}
