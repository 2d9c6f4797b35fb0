//! Text. Positions and lengths count characters; where all of them are ASCII that is found out first and bytes are
//! counted.

use super::Native;
use super::args::{Checked, Result, check_size, count, int, refuse, shown, small_int, string, text, value, wrong_kind};
use dfc_ir::Value;

pub(super) const TABLE: &[Native] = &[
    Native::strict("length", |args, _| match value(args, 0)? {
        Value::Str(s) => count(characters(s)),
        Value::Bytes(b) => count(b.len()),
        Value::List(items) => count(items.len()),
        _ => Err(wrong_kind(0, "text, bytes or a list")),
    }),
    Native::strict("lower", |args, _| string(text(args, 0)?.to_lowercase())),
    Native::strict("upper", |args, _| string(text(args, 0)?.to_uppercase())),
    Native::strict("trim", |args, _| {
        let (s, set) = (text(args, 0)?, cutset(args)?);
        string(s.trim_matches(|c| set.contains(c)))
    }),
    Native::strict("ltrim", |args, _| {
        let (s, set) = (text(args, 0)?, cutset(args)?);
        string(s.trim_start_matches(|c| set.contains(c)))
    }),
    Native::strict("rtrim", |args, _| {
        let (s, set) = (text(args, 0)?, cutset(args)?);
        string(s.trim_end_matches(|c| set.contains(c)))
    }),
    Native::strict("substring", |args, _| {
        let (s, start) = (text(args, 0)?, small_int(args, 1)?);
        let end = if args.len() > 2 {
            let count = small_int(args, 2)?;
            if count < 0 {
                return Err(refuse(format!("`substring` cannot take {count} characters; the count must be 0 or more")));
            }
            start.saturating_add(count)
        } else {
            i64::MAX
        };
        let (from, to) = (start.max(1) - 1, end.max(1) - 1);
        string(slice(s, from as usize, to as usize))
    }),
    Native::strict("left", |args, _| {
        let (s, n) = (text(args, 0)?, small_int(args, 1)?);
        string(slice(s, 0, from_end(s, n)))
    }),
    Native::strict("right", |args, _| {
        let (s, n) = (text(args, 0)?, small_int(args, 1)?);
        let skipped = if n < 0 {
            usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX)
        } else {
            from_end(s, n.saturating_neg())
        };
        string(slice(s, if n == 0 { usize::MAX } else { skipped }, usize::MAX))
    }),
    Native::strict("replace", |args, _| {
        let (s, part, replacement) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
        if part.is_empty() {
            return string(s);
        }
        let found = s.matches(part).count();
        check_size((s.len() - found * part.len()).checked_add(found.saturating_mul(replacement.len())))?;
        string(s.replace(part, replacement))
    }),
    Native::strict("concat", |args, _| {
        let parts = (0..args.len()).map(|index| text(args, index)).collect::<Checked<Vec<_>>>()?;
        check_size(parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.len())))?;
        string(parts.concat())
    }),
    Native::strict("split_part", |args, _| {
        let (s, separator, n) = (text(args, 0)?, text(args, 1)?, small_int(args, 2)?);
        let index = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX).wrapping_sub(1);
        let piece = match (separator.is_empty(), n) {
            (_, 0) => {
                return Err(refuse("`split_part` counts pieces from 1, or from −1 backwards; there is no piece 0"));
            }
            (true, _) => (index == 0).then_some(s),
            (false, 1..) => s.split(separator).nth(index),
            (false, _) => s.rsplit(separator).nth(index),
        };
        string(piece.unwrap_or(""))
    }),
    Native::strict("starts_with", |args, _| Ok(Value::Bool(text(args, 0)?.starts_with(text(args, 1)?)))),
    Native::strict("ends_with", |args, _| Ok(Value::Bool(text(args, 0)?.ends_with(text(args, 1)?)))),
    Native::strict("contains", |args, _| Ok(Value::Bool(text(args, 0)?.contains(text(args, 1)?)))),
    Native::strict("position", |args, _| {
        let (s, part) = (text(args, 0)?, text(args, 1)?);
        count(s.find(part).map_or(0, |at| characters(&s[..at]) + 1))
    }),
    Native::strict("lpad", |args, _| pad(args, |s, fill| fill + s)),
    Native::strict("rpad", |args, _| pad(args, |s, fill| s.to_owned() + &fill)),
    Native::strict("reverse", |args, _| string(text(args, 0)?.chars().rev().collect::<String>())),
    Native::strict("repeat", |args, _| {
        let (s, n) = (text(args, 0)?, small_int(args, 1)?.max(0));
        let n = if s.is_empty() { 0 } else { usize::try_from(n).unwrap_or(usize::MAX) };
        check_size(s.len().checked_mul(n))?;
        string(s.repeat(n))
    }),
    Native::strict("format", format),
    Native::strict("initcap", |args, _| {
        let mut out = String::new();
        let mut inside = false;
        for c in text(args, 0)?.chars() {
            match (c.is_alphanumeric(), inside) {
                (true, false) => out.extend(c.to_uppercase()),
                (true, true) => out.extend(c.to_lowercase()),
                (false, _) => out.push(c),
            }
            inside = c.is_alphanumeric();
        }
        string(out)
    }),
    Native::strict("ascii", |args, _| count(text(args, 0)?.chars().next().map_or(0, |c| c as usize))),
    Native::strict("chr", |args, _| {
        let code = int(args, 0)?;
        let character = u32::try_from(code).ok().and_then(char::from_u32);
        let character = character.ok_or_else(|| {
            refuse(format!("{code} is no character's code point; those are 0 to 1114111 without 55296 to 57343"))
        })?;
        string(character)
    }),
    Native::strict("translate", |args, _| {
        let (s, from, to) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
        let replace = |c: char| match from.chars().position(|f| f == c) {
            Some(at) => to.chars().nth(at),
            None => Some(c),
        };
        string(s.chars().filter_map(replace).collect::<String>())
    }),
];

/// The number of characters.
fn characters(s: &str) -> usize {
    // Counting takes no branches, so it is as fast as asking for ASCII first.
    s.chars().count()
}

/// The characters from `from` (0 is the first) up to `to`, as far as they exist.
fn slice(s: &str, from: usize, to: usize) -> &str {
    if to <= from {
        return "";
    }
    if s.is_ascii() {
        return &s[from.min(s.len())..to.min(s.len())];
    }
    let mut places = s.char_indices().map(|(at, _)| at);
    let Some(start) = places.nth(from) else { return "" };
    let end = places.nth(to - from - 1).unwrap_or(s.len());
    &s[start..end]
}

/// `n`, or the characters without the last `−n`.
fn from_end(s: &str, n: i64) -> usize {
    let size = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    if n < 0 { characters(s).saturating_sub(size) } else { size }
}

/// What `trim(s)` and `trim(s, characters)` cut off.
fn cutset<'v>(args: &'v [Value<'_>]) -> Checked<&'v str> {
    if args.len() > 1 { text(args, 1) } else { Ok(" ") }
}

/// `lpad`, `rpad`: `join` puts the text and the filling together.
fn pad(args: &[Value<'_>], join: impl Fn(&str, String) -> String) -> Result {
    let (s, width) = (text(args, 0)?, usize::try_from(small_int(args, 1)?.max(0)).unwrap_or(usize::MAX));
    let fill = if args.len() > 2 { text(args, 2)? } else { " " };
    let length = characters(s);
    if width <= length || fill.is_empty() {
        return string(slice(s, 0, width));
    }
    // Each character of the filling is a byte or more: a bound before it is made, the exact size after it.
    check_size((width - length).checked_add(s.len()))?;
    let filling: String = fill.chars().cycle().take(width - length).collect();
    string(join(s, filling))
}

/// `format("{} of {}", a, b)`.
fn format(args: &[Value<'_>], _: &super::CallTypes<'_>) -> Result {
    let template = text(args, 0)?;
    let values = args.len().saturating_sub(1);
    let (mut out, mut used, mut rest) = (String::new(), 0, template);
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
            out.push_str(&rest[..1]);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{}") {
            used += 1;
            if used <= values {
                out.push_str(text(args, used)?);
            }
            rest = after;
        } else {
            return Err(refuse(format!(
                "the template `{}` has a single brace; `{{}}` is a place for a value, `{{{{` and `}}}}` are braces",
                shown(template)
            )));
        }
        check_size(Some(out.len()))?;
    }
    if used != values {
        return Err(refuse(format!(
            "the template `{}` has {used} places for values, and the call gives {values}",
            shown(template)
        )));
    }
    out.push_str(rest);
    string(out)
}
