//! Where the tokens end that no regular expression can cut: strings, format strings, dates.
//!
//! Each function gets the text after the token's first characters and answers how many more bytes belong to it. None of
//! them fails: a literal without its end stops at the end of its line, and [`crate::literal`] complains. All are linear
//! and none recurses, whatever the nesting.

/// The rest of `"…"`: to the closing quote, or to the end of the line.
pub(crate) fn string(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'"' => return i + 1,
            b'\n' => return i,
            b'\\' => i += escape(bytes, i),
            _ => i += 1,
        }
    }
    bytes.len()
}

/// The rest of a literal without escapes: to the delimiter, or to the end of the line.
pub(crate) fn to_delimiter(rest: &str, delimiter: u8) -> usize {
    match rest.bytes().position(|b| b == delimiter || b == b'\n') {
        Some(at) if rest.as_bytes()[at] == delimiter => at + 1,
        Some(at) => at,
        None => rest.len(),
    }
}

/// The rest of `"""…"""`; without its end only the first line, so that the items below stay what they are.
pub(crate) fn triple_string(rest: &str) -> usize {
    closed_by(rest, "\"\"\"")
}

/// The rest of `/* … */`; without its end only the first line.
pub(crate) fn block_comment(rest: &str) -> usize {
    closed_by(rest, "*/")
}

fn closed_by(rest: &str, end: &str) -> usize {
    match rest.find(end) {
        Some(at) => at + end.len(),
        None => rest.find('\n').unwrap_or(rest.len()),
    }
}

/// What encloses the current byte of a format string.
enum Inside {
    /// The text of a format string.
    Text,
    /// An expression, with so many braces open in it.
    Code(usize),
    /// A string, raw string or backtick name inside an expression, closed by this byte.
    Quoted { by: u8, escapes: bool },
}

/// The rest of `f"…"`: to its closing quote, or to the end of the line.
pub(crate) fn format_string(rest: &str) -> usize {
    format_parts(rest).0
}

/// The same, and whether the closing quote is there.
pub(crate) fn format_parts(rest: &str) -> (usize, bool) {
    let bytes = rest.as_bytes();
    let mut inside = vec![Inside::Text];
    let mut i = 0;
    while i < bytes.len() {
        let byte = bytes[i];
        if byte == b'\n' {
            return (i, false);
        }
        let mut step = 1;
        match inside.last_mut() {
            None => return (i, true),
            Some(Inside::Text) => match byte {
                b'\\' => step = escape(bytes, i),
                b'{' | b'}' if bytes.get(i + 1) == Some(&byte) => step = 2,
                b'{' => inside.push(Inside::Code(0)),
                b'"' => {
                    inside.pop();
                    if inside.is_empty() {
                        return (i + 1, true);
                    }
                }
                _ => {}
            },
            Some(Inside::Code(depth)) => match byte {
                b'{' => *depth += 1,
                b'}' if *depth > 0 => *depth -= 1,
                b'}' => {
                    inside.pop();
                }
                b'"' => inside.push(match prefix(bytes, i) {
                    Some(b'f') => Inside::Text,
                    Some(b'r') => Inside::Quoted { by: byte, escapes: false },
                    _ => Inside::Quoted { by: byte, escapes: true },
                }),
                b'`' => inside.push(Inside::Quoted { by: byte, escapes: false }),
                _ => {}
            },
            Some(Inside::Quoted { by, escapes }) => {
                if byte == *by {
                    inside.pop();
                } else if byte == b'\\' && *escapes {
                    step = escape(bytes, i);
                }
            }
        }
        i += step;
    }
    (bytes.len(), false)
}

/// The letter before a quote, if it stands alone.
fn prefix(bytes: &[u8], quote: usize) -> Option<u8> {
    let letter = *bytes.get(quote.checked_sub(1)?)?;
    let before = quote.checked_sub(2).and_then(|i| bytes.get(i)).copied().unwrap_or(b' ');
    let alone = !(before.is_ascii_alphanumeric() || before == b'_' || before >= 0x80);
    alone.then_some(letter)
}

/// How many bytes a backslash takes with it: never a line end, never past the text.
fn escape(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        None | Some(b'\n') => 1,
        Some(byte) if byte.is_ascii() => 2,
        Some(_) => 1,
    }
}

/// The rest of `@…`: a date, a time or both, with the letters and digits that touch it.
///
/// `-` is taken only inside a date or before an offset, so `@2026-01-31-1d` is a date less a day.
pub(crate) fn date_time(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digit_after = |i: usize| bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
    let (mut dashes, mut clock, mut offset) = (0, false, false);
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'0'..=b'9' | b'_' | b'a'..=b'z' | b'A'..=b'Z' => {}
            b':' if digit_after(i) => clock = true,
            b'.' if digit_after(i) => {}
            b'-' if !clock && dashes < 2 && digit_after(i) => dashes += 1,
            b'+' | b'-' if clock && !offset && digit_after(i) && dashes == 2 => offset = true,
            _ => break,
        }
        i += 1;
    }
    i
}
