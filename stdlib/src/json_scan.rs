//! Finding values inside JSON text without building a tree: everything stays as it was written, numbers keep their
//! digits.
//!
//! RFC 8259, nested [`MAX_DEPTH`] deep at most. It knows nothing of types or functions.

/// How many arrays and objects may lie inside one another.
pub const MAX_DEPTH: usize = 128;

/// Whether the text is one JSON value.
pub fn valid(text: &str) -> bool {
    let mut scan = Scan::new(text);
    scan.blanks();
    scan.value(0).is_some() && {
        scan.blanks();
        scan.at == text.len()
    }
}

/// The member of this name of an object, as written; of several with one name the last.
pub fn member<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut last = None;
    entries(text, |entry| {
        if entry.key.is_some_and(|name| unquote(name) == key) {
            last = Some(entry.value);
        }
        None::<()>
    })?;
    last
}

/// The item at this place of an array, as written; −1 is the last.
pub fn item(text: &str, index: i128) -> Option<&str> {
    let index =
        if index < 0 { length(text)?.checked_add(i64::try_from(index).ok()?)? } else { i64::try_from(index).ok()? };
    let mut left = index;
    entries(text, |entry| {
        left -= 1;
        (entry.key.is_none() && left == -1).then_some(entry.value)
    })
    .flatten()
}

/// The number of items of an array or members of an object; `None` for other values.
pub fn length(text: &str) -> Option<i64> {
    let mut count = 0;
    entries(text, |_| {
        count += 1;
        None::<()>
    })
    .map(|_| count)
}

/// Whether the value is `null`.
pub fn is_null(text: &str) -> bool {
    text.trim_matches(BLANKS) == "null"
}

/// The value as text: a string without quotes and escapes, anything else as written, without blanks around it.
pub fn text_of(text: &str) -> String {
    let text = text.trim_matches(BLANKS);
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) => unescape(inside),
        None => text.to_owned(),
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// An item of an array (no key) or a member of an object (the key with its quotes).
struct Entry<'t> {
    key: Option<&'t str>,
    value: &'t str,
}

/// Calls `found` on each entry of an array or object until it gives something. `None` if the text is neither.
fn entries<'t, T>(text: &'t str, mut found: impl FnMut(Entry<'t>) -> Option<T>) -> Option<Option<T>> {
    let mut scan = Scan::new(text);
    scan.blanks();
    let object = scan.peek()? == b'{';
    let close = if object { b'}' } else { b']' };
    if !object && scan.peek()? != b'[' {
        return None;
    }
    scan.at += 1;
    scan.blanks();
    if scan.peek()? == close {
        return Some(None);
    }
    loop {
        let key = if object { Some(scan.key()?) } else { None };
        let start = scan.at;
        scan.value(1)?;
        if let Some(result) = found(Entry { key, value: &text[start..scan.at] }) {
            return Some(Some(result));
        }
        if scan.end_of_entries(close)? {
            return Some(None);
        }
    }
}

/// A member's name without quotes and escapes.
fn unquote(quoted: &str) -> std::borrow::Cow<'_, str> {
    let inside = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or("");
    if inside.contains('\\') { unescape(inside).into() } else { inside.into() }
}

/// Resolves the escapes of a string; half a surrogate pair becomes U+FFFD.
fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else { break };
        rest = &rest[letter.len_utf8()..];
        match letter {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let unit = |text: &str| u32::from_str_radix(text.get(..4)?, 16).ok();
                let first = unit(rest).unwrap_or(0xFFFD);
                rest = rest.get(4..).unwrap_or("");
                let second = rest.strip_prefix("\\u").and_then(unit).filter(|low| (0xDC00..0xE000).contains(low));
                match second {
                    Some(low) if (0xD800..0xDC00).contains(&first) => {
                        let code = 0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00);
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                        rest = &rest[6..];
                    }
                    _ => out.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    out
}

/// A text being scanned. Each method stands before what it takes and leaves the place after it; `None` where it isn't
/// there.
struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Scan { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    /// One value, `depth` arrays and objects deep.
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.nested(depth, b'}'),
            b'[' => self.nested(depth, b']'),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn nested(&mut self, depth: usize, close: u8) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.blanks();
        if self.peek()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            if close == b'}' {
                self.key()?;
            }
            self.value(depth + 1)?;
            if self.end_of_entries(close)? {
                return Some(());
            }
        }
    }

    /// A member's name with its quotes, and the colon after it.
    fn key(&mut self) -> Option<&'t str> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.string()?;
        let key = &self.text[start..self.at];
        self.blanks();
        self.word(":")?;
        self.blanks();
        Some(key)
    }

    /// What follows a value: `close` (true) or a comma.
    fn end_of_entries(&mut self, close: u8) -> Option<bool> {
        self.blanks();
        let next = self.peek()?;
        self.at += 1;
        if next == close {
            return Some(true);
        }
        self.blanks();
        (next == b',').then_some(false)
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(()),
                b'\\' => {
                    let escape = self.peek()?;
                    self.at += 1;
                    match escape {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            for _ in 0..4 {
                                self.peek().filter(u8::is_ascii_hexdigit)?;
                                self.at += 1;
                            }
                        }
                        _ => return None,
                    }
                }
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        let _sign = self.word("-");
        if self.word("0").is_none() {
            self.digits()?;
        }
        if self.word(".").is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let _sign = self.word("+").or_else(|| self.word("-"));
            self.digits()?;
        }
        Some(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_json_and_what_is_not() {
        for good in ["0", "-0.5e+10", "\"\\u00e9\\n\"", "[]", " { } ", "[1, [2, {\"a\": null}], true]", "\"é\"", "1E5"]
        {
            assert!(valid(good), "{good}");
        }
        let bad = [
            "",
            " ",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "nul",
            "tru",
            "\"\\x\"",
            "\"\\u12\"",
            "\"",
            "\"\n\"",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{a: 1}",
            "{\"a\" 1}",
            "{\"a\": 1,}",
            "{\"a\": }",
            "1 2",
            "[",
            "]",
            "{",
            "NaN",
            "\u{feff}1",
        ];
        for bad in bad {
            assert!(!valid(bad), "{bad}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(valid(&nested(MAX_DEPTH)));
        assert!(!valid(&nested(MAX_DEPTH + 1)));
        assert!(!valid(&"[".repeat(1_000_000)));
    }

    #[test]
    fn members_and_items_stay_as_written() {
        let text = r#" {"a": 1.50, "b" : [1, {"x": [ ]}, "z"], "\u0061b": 1.50, "a": 3} "#;
        assert_eq!(member(text, "a"), Some("3"));
        assert_eq!(member(text, "ab"), Some("1.50"));
        assert_eq!(member(text, "c"), None);
        let list = member(text, "b").unwrap();
        assert_eq!(
            (item(list, 1), item(list, -1), item(list, 3), item(list, -4)),
            (Some("{\"x\": [ ]}"), Some("\"z\""), None, None)
        );
        assert_eq!((item(list, i128::MAX), item(list, i128::MIN)), (None, None));
        assert_eq!(
            (length(list), length(text), length("[]"), length("{}"), length("5")),
            (Some(3), Some(4), Some(0), Some(0), None)
        );
        assert_eq!((member("[1]", "a"), item("{\"a\": 1}", 0)), (None, None));
    }

    #[test]
    fn strings_lose_their_escapes() {
        assert_eq!(text_of(r#" "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00" "#), "a\"\\/\u{8}\u{c}\n\r\té😀");
        assert_eq!(text_of(r#""\ud83d!\ude00""#), "\u{fffd}!\u{fffd}");
        assert_eq!(text_of(" 1.50 "), "1.50");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*|[\\[\\]{}\",:\\\\u0-9a-e ]*", key in ".*", index in any::<i128>()) {
            let _ = (valid(&text), member(&text, &key), item(&text, index), length(&text), text_of(&text), is_null(&text));
        }

        /// What serde_json takes is what this takes.
        #[test]
        fn agrees_with_serde_json(text in "[\\[\\]{}\",:\\\\u0-9a-en.+E -]{0,12}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            // Half a surrogate pair and numbers past float64 are JSON by the RFC, but not for serde_json.
            if !text.contains("\\u") && !text.contains(['e', 'E']) {
                prop_assert_eq!(valid(&text), theirs.is_ok());
            } else if theirs.is_ok() {
                prop_assert!(valid(&text));
            }
        }
    }
}
