//! The registry of codes, made from the pages in `codes/CODE.md`. A code is never reused for another meaning.
//!
//! Codes by layer: `E01xx` syntax, `E02xx` structure, `E03xx` the graph of streams, `E04xx` names and fields, `E05xx` types,
//! `E06xx` parameters, `E07xx` the outside world, `E08xx` guarantees, `W…` lints, `R…` at run time.

/// A code with its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `E0503`
    pub code: &'static str,
    /// What it means, in the user's words.
    pub title: &'static str,
    /// The whole page, Markdown: what it means and why, a wrong and a right example.
    pub page: &'static str,
}

/// Every code that has a page, sorted.
pub static CODES: &[Code] = include!(concat!(env!("OUT_DIR"), "/codes.rs"));

/// The page of a code, whatever its case.
pub fn explain(code: &str) -> Option<&'static Code> {
    CODES.iter().find(|known| known.code.eq_ignore_ascii_case(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_well_formed() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
        for code in CODES {
            assert!(matches!(code.code.as_bytes()[0], b'E' | b'W' | b'R'), "{}", code.code);
            assert!(code.code[1..].bytes().all(|b| b.is_ascii_digit()), "{}", code.code);
            assert!(!code.title.is_empty() && !code.title.ends_with('.'), "{}", code.code);
        }
    }

    #[test]
    fn a_code_is_found_in_any_case() {
        if let Some(first) = CODES.first() {
            assert_eq!(explain(&first.code.to_lowercase()), Some(first));
        }
        assert_eq!(explain("E9999"), None);
    }
}
