//! Names of files and objects: made safe when written, distrusted when read.

use std::fmt::Write;

/// Longest name that is written, in bytes.
const LONGEST: usize = 120;

/// A name that every file system and object store takes, the same for the same text and another for another: letters, digits, `-`, `_`
/// and inner `.` stay; all else becomes `%XX`; long ones are cut and get a check sum.
pub fn safe_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0) {
            name.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    if name.is_empty() {
        name.push('%');
    }
    if name.len() > LONGEST {
        let sum = crc32fast::hash(text.as_bytes());
        name.truncate(LONGEST - 9);
        let _ = write!(name, "-{sum:08x}");
    }
    name
}

/// Whether a name that was read could have been written by [`safe_name`], with a number and a token before it at most.
pub(crate) fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST + 40
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'%'))
}

/// `0000000012.json`
pub(crate) fn numbered(number: u64) -> String {
    format!("{number:010}.json")
}

/// The number of `0000000012.json`; `None` for anything that isn't written so.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (numbered(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_distinct() {
        for text in ["a", "Täglich", "../../etc", ".", "..", "", "a/b", "a\\b", "a b", "x%2Fy", "CON", &"ü".repeat(300)]
        {
            let name = safe_name(text);
            assert!(is_safe(&name), "{text:?} gives {name:?}");
            assert!(!name.contains("..") || !name.starts_with('.'), "{name}");
        }
        assert_eq!(safe_name("by_day-2.x"), "by_day-2.x");
        assert_ne!(safe_name("a b"), safe_name("a%20b"));
        assert_ne!(safe_name(&"x".repeat(300)), safe_name(&"x".repeat(301)));
    }

    #[test]
    fn only_numbers_as_they_are_written_are_numbers() {
        assert_eq!(number_of(&numbered(12)), Some(12));
        assert_eq!(number_of(&numbered(u64::MAX)), Some(u64::MAX));
        for name in ["12.json", "+000000012.json", "0000000012", "0000000012.json.tmp", "00000000012.json", ""] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
