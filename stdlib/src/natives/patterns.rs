//! Patterns: SQL's `like`, and regular expressions. The time of an expression grows with its text,
//! that of `like` at most with the product of both lengths; neither can run away.

use super::args::{Checked, check_size, int, refuse, shown, string, text};
use super::{FnError, Native};
use crate::cache::Cache;
use dfc_ir::Value;
use memchr::memmem::Finder;
use regex::Regex;
use std::cell::RefCell;
use std::rc::Rc;

pub(super) const TABLE: &[Native] = &[
    Native::strict("like", |args, _| {
        let (s, pattern) = (text(args, 0)?, text(args, 1)?);
        let pattern = Cache::get(&LIKES, pattern, Like::new)?;
        Ok(Value::Bool(pattern.matches(s)))
    }),
    Native::strict("matches", |args, _| {
        let (s, pattern) = (text(args, 0)?, text(args, 1)?);
        Ok(Value::Bool(compiled(pattern)?.is_match(s)))
    }),
    Native::strict("regexp_extract", |args, _| {
        let (s, pattern) = (text(args, 0)?, text(args, 1)?);
        let regex = compiled(pattern)?;
        if args.len() < 3 {
            return regex.find(s).map_or(Ok(Value::Null), |found| string(found.as_str()));
        }
        let group = int(args, 2)?;
        let groups = regex.captures_len() - 1;
        match usize::try_from(group) {
            Ok(group) if group <= groups => {
                let found = regex.captures(s).and_then(|captures| captures.get(group));
                found.map_or(Ok(Value::Null), |found| string(found.as_str()))
            }
            _ => Err(refuse(format!("the pattern `{}` has no group {group}; it has {groups}", shown(pattern)))),
        }
    }),
    Native::strict("regexp_replace", |args, _| {
        let (s, pattern, replacement) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
        let regex = compiled(pattern)?;
        check_replacement(&regex, replacement)?;
        let (mut out, mut copied) = (String::new(), 0);
        for captures in regex.captures_iter(s) {
            let found = captures.get_match();
            out.push_str(&s[copied..found.start()]);
            captures.expand(replacement, &mut out);
            copied = found.end();
            check_size(Some(out.len()))?;
        }
        out.push_str(&s[copied..]);
        string(out)
    }),
];

thread_local! {
    static REGEXES: RefCell<Cache<Regex>> = RefCell::default();
    static LIKES: RefCell<Cache<Like>> = RefCell::default();
}

/// A constant pattern of `like` or `matches`, compiled once.
pub struct Pattern(Kind);

enum Kind {
    Like(Like),
    Regex(Regex),
}

impl Pattern {
    /// The pattern of a function; `None` for other functions and for what is no pattern.
    pub fn of(function: &str, pattern: &str) -> Option<Pattern> {
        match function {
            "like" => Like::new(pattern).ok().map(|like| Pattern(Kind::Like(like))),
            "matches" => Regex::new(pattern).ok().map(|regex| Pattern(Kind::Regex(regex))),
            _ => None,
        }
    }

    /// Whether a text fits.
    pub fn fits(&self, text: &str) -> bool {
        match &self.0 {
            Kind::Like(like) => like.matches(text),
            Kind::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Whether this is a regular expression; the error says what is wrong with it.
pub fn validate_regex(pattern: &str) -> std::result::Result<(), String> {
    compile(pattern).map(|_| ())
}

fn compiled(pattern: &str) -> Checked<Rc<Regex>> {
    Cache::get(&REGEXES, pattern, |pattern| compile(pattern).map_err(refuse))
}

fn compile(pattern: &str) -> std::result::Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        // A syntax error comes as a drawing of several lines with the reason in the last one.
        let reason = match &error {
            regex::Error::CompiledTooBig(limit) => format!("it needs more than {limit} bytes when compiled"),
            other => other.to_string().lines().last().unwrap_or("").trim_start_matches("error: ").to_owned(),
        };
        format!("`{}` is no regular expression: {reason}", shown(pattern))
    })
}

/// Refuses a replacement that names a group which the pattern does not have (it would silently be empty), and `\1`.
fn check_replacement(regex: &Regex, replacement: &str) -> Checked<()> {
    let mut rest = replacement;
    while let Some(at) = rest.find(['$', '\\']) {
        let escape = rest[at..].starts_with('\\');
        rest = &rest[at + 1..];
        if escape {
            if let Some(digit) = rest.chars().next().filter(char::is_ascii_digit) {
                return Err(refuse(format!("a group is written `${digit}` in a replacement, not `\\{digit}`")));
            }
            continue;
        }
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
            continue;
        }
        let name = match rest.strip_prefix('{') {
            Some(inside) => inside.split_once('}').map_or("", |(name, _)| name),
            None => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                &rest[..end]
            }
        };
        let known = match name.parse::<usize>() {
            Ok(group) => group < regex.captures_len(),
            // A dollar sign with no name after it stands for itself.
            Err(_) => name.is_empty() || regex.capture_names().flatten().any(|group| group == name),
        };
        if !known {
            return Err(refuse(format!(
                "the replacement names the group `{name}`, which the pattern does not have; write `${{1}}x` to end a number before a letter, `$$` for a dollar sign"
            )));
        }
    }
    Ok(())
}

/// A compiled `like` pattern.
enum Like {
    /// Without `_`: what stands between the `%`, each searched behind the one before.
    Pieces { start: Box<[u8]>, inner: Vec<Finder<'static>>, end: Box<[u8]> },
    /// Without `_` and `%`.
    Whole(Box<[u8]>),
    /// Anything else, character by character.
    Items(Vec<LikeItem>),
}

#[derive(Clone, Copy, PartialEq)]
enum LikeItem {
    /// This character.
    Char(char),
    /// `_`: one character.
    One,
    /// `%`: any number of characters.
    Any,
}

/// What a pattern is made of; `%` next to `%` is one.
fn items(pattern: &str) -> std::result::Result<Vec<LikeItem>, FnError> {
    let mut items = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        items.push(match c {
            '%' if items.last() == Some(&LikeItem::Any) => continue,
            '%' => LikeItem::Any,
            '_' => LikeItem::One,
            '\\' => LikeItem::Char(chars.next().ok_or_else(|| {
                refuse(format!(
                    "the pattern `{}` ends with a single `\\`; write `\\\\` for the character itself",
                    shown(pattern)
                ))
            })?),
            c => LikeItem::Char(c),
        });
    }
    Ok(items)
}

impl Like {
    fn new(pattern: &str) -> std::result::Result<Like, FnError> {
        let items = items(pattern)?;
        if items.contains(&LikeItem::One) {
            return Ok(Like::Items(items));
        }
        let mut pieces = items.split(|item| *item == LikeItem::Any).map(|piece| -> Box<[u8]> {
            let chars = piece.iter().filter_map(|item| if let LikeItem::Char(c) = item { Some(*c) } else { None });
            chars.collect::<String>().into_bytes().into()
        });
        let start = pieces.next().unwrap_or_default();
        let mut inner: Vec<Box<[u8]>> = pieces.collect();
        Ok(match inner.pop() {
            None => Like::Whole(start),
            Some(end) => {
                Like::Pieces { start, inner: inner.iter().map(|piece| Finder::new(piece).into_owned()).collect(), end }
            }
        })
    }

    /// Pieces of UTF-8 that are equal byte by byte are equal character by character: no piece is found inside a character.
    fn matches(&self, s: &str) -> bool {
        match self {
            Like::Whole(text) => **text == *s.as_bytes(),
            Like::Items(items) => matches_items(items, s),
            Like::Pieces { start, inner, end } => {
                let rest = s.as_bytes().strip_prefix(&**start).and_then(|rest| rest.strip_suffix(&**end));
                let Some(mut rest) = rest else { return false };
                for piece in inner {
                    match piece.find(rest) {
                        // Found at the first place, so that most is left for those behind it.
                        Some(at) => rest = &rest[at + piece.needle().len()..],
                        None => return false,
                    }
                }
                true
            }
        }
    }
}

/// Two places move on together; after a mismatch the text goes on one character behind the last `%`.
fn matches_items(items: &[LikeItem], s: &str) -> bool {
    let mut rest = s.chars();
    let mut at = 0;
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let before = rest.clone();
        match (items.get(at), rest.next()) {
            (None, None) => return true,
            (Some(LikeItem::Any), _) => {
                if at + 1 == items.len() {
                    return true;
                }
                at += 1;
                rest = before.clone();
                retry = Some((at, before));
            }
            (Some(LikeItem::One), Some(_)) => at += 1,
            (Some(LikeItem::Char(wanted)), Some(c)) if *wanted == c => at += 1,
            (_, None) => return false,
            (_, Some(_)) => match &mut retry {
                None => return false,
                Some((after, from)) => {
                    // The text is not used up here, so there is a character to leave out.
                    from.next();
                    at = *after;
                    rest = from.clone();
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(s: &str, pattern: &str) -> bool {
        Like::new(pattern).unwrap().matches(s)
    }

    #[test]
    fn like_has_two_wildcards_and_an_escape() {
        for (s, pattern) in [
            ("", ""),
            ("", "%"),
            ("abc", "abc"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "%b%"),
            ("abc", "a_c"),
            ("é", "_"),
            ("abc", "%%_%%"),
            ("aXbXc", "a%b%c"),
            ("mississippi", "%iss%ip%"),
            ("50%", "50\\%"),
            ("a_b", "a\\_b"),
            ("a\\b", "a\\\\b"),
            ("x", "\\x"),
            ("aab", "%ab"),
        ] {
            assert!(like(s, pattern), "{s} like {pattern}");
        }
        for (s, pattern) in [
            ("abc", "ab"),
            ("abc", "b%"),
            ("", "_"),
            ("ab", "_"),
            ("50x", "50\\%"),
            ("ABC", "abc"),
            ("abc", "a%d"),
            ("a\n", "a"),
        ] {
            assert!(!like(s, pattern), "{s} not like {pattern}");
        }
        assert!(like("a\nb", "a_b"));
        assert!(Like::new("a\\").is_err());
    }

    proptest::proptest! {
        #[test]
        fn pieces_are_found_where_characters_are(pattern in "[abé%]{0,8}", text in "[abé]{0,10}") {
            let by_items = matches_items(&items(&pattern).unwrap(), &text);
            proptest::prop_assert_eq!(like(&text, &pattern), by_items, "{} like {}", text, pattern);
        }
    }

    #[test]
    fn a_hostile_like_ends() {
        assert!(!like(&"a".repeat(2_000), &("%a".repeat(500) + "b")));
    }

    #[test]
    fn wrong_patterns_are_told() {
        assert!(validate_regex(r"^\d{4}$").is_ok());
        assert!(validate_regex("(a").unwrap_err().contains("unclosed group"));
        assert!(validate_regex("(?=a)").unwrap_err().contains("look-around"));
        assert!(validate_regex(r"\w{1000}{1000}").unwrap_err().contains("bytes when compiled"));
    }
}
