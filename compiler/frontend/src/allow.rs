//! `// allow W0401`: a comment that switches lints off, by their codes.
//!
//! At the end of a line it counts for that line and for the brackets that the line opens or closes, behind an item's last line for
//! the whole item (a formatter may have cut one line into several). On a line of its own it counts for the next line with code, and where an item
//! starts there, for the whole item. Several codes are separated by commas or blanks; what follows a colon is the reason.

use std::sync::Arc;

use dfc_diagnostics::{Diagnostic, FileId, Place, Severity};
use dfc_grammar::ast::Span;
use dfc_grammar::token::{Token, TokenKind};

use crate::db::{Db, SourceFile};
use crate::items::{Program, parse};

/// What the comments of a file switch off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed {
    /// Codes, and the bytes of the file that they count for.
    ranges: Vec<(String, Span)>,
    /// Codes that are no lint's, where they stand.
    unknown: Vec<(String, Span)>,
}

/// The comments of a file that switch lints off.
#[salsa::tracked]
pub fn allowed(db: &dyn Db, file: SourceFile) -> Arc<Allowed> {
    let mut out = Allowed::default();
    let Ok(text) = file.text(db) else { return Arc::new(out) };
    let parse = parse(db, file);
    for (number, token) in parse.tokens.iter().enumerate() {
        let Some(codes) = (token.kind == TokenKind::Comment).then(|| codes(token.text(text))).flatten() else {
            continue;
        };
        let line = text[..token.span.start as usize].rfind('\n').map_or(0, |at| at + 1);
        let alone = text[line..token.span.start as usize].trim().is_empty();
        let range = if alone {
            let code = parse.tokens[number + 1..].iter().find(|t| {
                !matches!(t.kind, TokenKind::Whitespace | TokenKind::Comment | TokenKind::Doc | TokenKind::FileDoc)
            });
            let Some(code) = code else { continue };
            let item =
                parse.file.items.iter().find(|item| (item.start..item.start + item.len).contains(&code.span.start));
            match item {
                Some(item) if starts(item.start, code.span.start, text) => {
                    Span { start: item.start, end: item.start + item.len }
                }
                _ => line_of(text, code.span.start as usize),
            }
        } else {
            let before = parse.file.items.iter().rev().find(|item| item.start + item.len <= token.span.start);
            match before.filter(|item| (item.start + item.len) as usize > line) {
                Some(item) => Span { start: item.start.min(line as u32), end: token.span.end },
                None => with_brackets(text, &parse.tokens, number, line_of(text, line)),
            }
        };
        for (code, offset) in codes {
            let known = code.starts_with('W') && dfc_diagnostics::codes::explain(&code).is_some();
            let start = token.span.start as usize + offset;
            match known {
                true => out.ranges.push((code, range)),
                false => out.unknown.push((code.clone(), Span::new(start, start + code.len()))),
            }
        }
    }
    Arc::new(out)
}

/// Whether a token is an item's first one: only comments and its documentation stand before it.
fn starts(item: u32, token: u32, text: &str) -> bool {
    let between = text.get(item as usize..token as usize).unwrap_or_default();
    between.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with("//"))
}

/// A line, to the other ends of the brackets that it opens or closes before a comment (the number of its token).
fn with_brackets(text: &str, tokens: &[Token], comment: usize, line: Span) -> Span {
    use TokenKind::{LBrace, LBracket, LParen, RBrace, RBracket, RParen};
    let step = |token: &Token| match token.kind {
        LParen | LBracket | LBrace => 1,
        RParen | RBracket | RBrace => -1,
        _ => 0,
    };
    let first = tokens.partition_point(|token| token.span.start < line.start);
    let (mut depth, mut least) = (0i64, 0i64);
    for token in &tokens[first..comment] {
        depth += step(token);
        least = least.min(depth);
    }
    let mut out = line;
    // Brackets that were open before and are closed in the line, and those that stay open behind it.
    let (mut closed, mut open) = (-least, depth - least);
    let mut before = tokens[..first].iter().rev();
    while closed > 0
        && let Some(token) = before.next()
    {
        closed -= step(token);
        out.start = if closed == 0 { line_of(text, token.span.start as usize).start } else { out.start };
    }
    let mut behind = tokens[comment..].iter();
    while open > 0
        && let Some(token) = behind.next()
    {
        open += step(token);
        out.end = if open == 0 { token.span.end } else { out.end };
    }
    out
}

fn line_of(text: &str, at: usize) -> Span {
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    Span::new(start, end)
}

/// The codes of `// allow W0401, W0503: reason`, each with its place in the comment. `None`: another comment.
fn codes(comment: &str) -> Option<Vec<(String, usize)>> {
    let rest = comment.strip_prefix("//")?.trim_start().strip_prefix("allow ")?;
    let list = rest.split(':').next()?;
    let offset = comment.len() - rest.len();
    let mut out = Vec::new();
    for word in list.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
        let coded = matches!(word.as_bytes().first(), Some(b'W' | b'E' | b'R'))
            && word[1..].bytes().all(|b| b.is_ascii_digit());
        if !coded || word.len() != 5 {
            // A sentence that happens to start with "allow".
            return (!out.is_empty()).then_some(out);
        }
        out.push((word.to_string(), offset + (word.as_ptr() as usize - list.as_ptr() as usize)));
    }
    Some(out)
}

/// Takes out what comments of these files switch off, and says which comments name no lint.
pub fn apply(db: &dyn Db, program: &Program, files: &[SourceFile], found: &mut Vec<Diagnostic>) {
    let by_file = program.files.iter().map(|file| files.contains(file).then(|| allowed(db, *file)));
    let by_file: Vec<Option<&Arc<Allowed>>> = by_file.collect();
    found.retain(|problem| {
        let off = by_file.get(problem.place.file.0 as usize).copied().flatten().is_some_and(|allowed| {
            allowed
                .ranges
                .iter()
                .any(|(code, range)| *code == problem.code && (range.start..=range.end).contains(&problem.place.start))
        });
        !(off && problem.severity == Severity::Warning)
    });
    for (index, allowed) in by_file.iter().enumerate().filter_map(|(index, allowed)| Some((index, (*allowed)?))) {
        found.extend(allowed.unknown.iter().map(|(code, span)| {
            let place = Place { file: FileId(index as u32), start: span.start, end: span.end };
            let lint = code.starts_with('W');
            let message = match lint {
                true => format!("there is no lint `{code}`: this comment allows nothing"),
                false => format!("`{code}` is an error, and errors can't be allowed"),
            };
            let problem = Diagnostic::warning("W0204", place, message, "allows nothing");
            problem.help(if lint {
                "write the code that the warning shows"
            } else {
                "mend what it says, or take the comment out"
            })
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::codes;

    #[test]
    fn codes_are_read_out_of_a_comment() {
        let read = |text: &str| codes(text).map(|list| list.into_iter().map(|(code, _)| code).collect::<Vec<_>>());
        assert_eq!(read("// allow W0401"), Some(vec!["W0401".to_string()]));
        assert_eq!(read("//allow W0401, W0503: they are known"), Some(vec!["W0401".into(), "W0503".into()]));
        assert_eq!(read("// allow users to pay"), None);
        assert_eq!(read("// W0401"), None);
        assert_eq!(codes("// allow W0401").map(|list| list[0].1), Some(9));
    }
}
