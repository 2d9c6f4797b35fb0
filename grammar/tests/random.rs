//! The lexer loses nothing, the parser survives anything and the formatter changes no meaning: random bytes, random tokens,
//! damaged valid files, and the corpus of the fuzz targets.

mod common;

use common::{check_format, files};
use dfc_grammar::{dump_ast, dump_tokens, lex, parse, parse_again};
use proptest::prelude::*;
use std::fs;

/// What must hold of any text.
fn check(text: &str) {
    let tokens = lex(text);
    let mut end = 0;
    for token in &tokens {
        assert_eq!(token.span.start, end, "a gap in {text:?}");
        assert!(token.span.end > token.span.start, "an empty token in {text:?}");
        assert!(text.is_char_boundary(token.span.end as usize));
        end = token.span.end;
    }
    assert_eq!(end as usize, text.len());

    let parse = parse(text);
    assert_eq!(parse.tokens, tokens);
    let inside = |start: u32, end: u32| text.get(start as usize..end as usize).is_some();
    for error in &parse.errors {
        assert!(inside(error.span.start, error.span.end), "{error:?} in {text:?}");
        assert!(error.related.iter().all(|(span, _)| inside(span.start, span.end)), "{error:?} in {text:?}");
        assert!(error.fix.iter().all(|(span, _)| inside(span.start, span.end)), "{error:?} in {text:?}");
    }
    let mut at = 0;
    for item in &parse.file.items {
        assert!(item.start >= at, "items overlap in {text:?}");
        assert!(inside(item.start, item.start + item.len));
        at = item.start + item.len;
    }
    // A file is either sound or has an error: nothing is dropped in silence.
    if parse.errors.is_empty() && parse.file.items.is_empty() {
        assert!(tokens.iter().all(|token| token.kind.is_trivia()), "nothing is said about {text:?}");
    }
    dump_ast(&parse);
    dump_tokens(&parse, text);
    check_format(text);
}

fn good() -> Vec<String> {
    files("tests/good").iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Pieces of files: tokens that fit, and some that never do.
const PIECES: &[&str] = &[
    "job",
    "param",
    "const",
    "record",
    "source",
    "stream",
    "sink",
    "fn",
    "operator",
    "use",
    "native",
    "shuffle",
    "agg",
    "and",
    "or",
    "not",
    "in",
    "is",
    "between",
    "like",
    "matches",
    "as",
    "if",
    "then",
    "else",
    "match",
    "true",
    "null",
    "div",
    "row",
    "pair",
    "range",
    "rule",
    "state",
    "on",
    "let",
    "emit",
    "by",
    "decimal",
    "list",
    "a",
    "b",
    "`c d`",
    "金额",
    "1",
    "1.5",
    "1..2",
    "10days",
    "@2026-01-31",
    "@x",
    "\"t\"",
    "r\"\\d\"",
    "\"\"\"q\"\"\"",
    "f\"{a}\"",
    "f\"{\"",
    "\"",
    "\"\"\"",
    "`",
    "'",
    "'x'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "?",
    "??",
    ".",
    "..",
    "...",
    "|>",
    "|",
    "->",
    "=>",
    ";",
    "&&",
    "||",
    "!",
    "<>",
    "#",
    "//",
    "///",
    "//!",
    "/*",
    "*/",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\t",
    "，",
    "\u{feff}",
    "\u{a0}",
    "AND",
    "SELECT",
    "\\",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60), blank in prop::sample::select(&["", " "][..])) {
        check(&pieces.join(blank));
    }

    #[test]
    fn token_soup_in_items(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30), start in 0..9usize) {
        let starts = [
            "stream a = b |> f(", "const x = ", "record R {", "job j {", "sink { a |> b() ", "fn f(", "const x = match a {",
            "operator o(x: row any) -> input { on row { ", "native shuffle x(",
        ];
        check(&format!("{} {}", starts[start], pieces.join(" ")));
    }

    /// What a parse takes over of the text before is what it would have found itself: small files and long ones, whose start and
    /// end stay as they were.
    #[test]
    fn a_file_parsed_again(
        parts in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        cuts in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..40usize, prop::sample::select(PIECES), prop::sample::select(&["", "\n", " "][..])),
            1..6,
        ),
    ) {
        let files = good();
        let mut text: String = parts.iter().map(|part| files[part.index(files.len())].as_str()).collect();
        let mut earlier = parse(&text);
        for (at, length, put, blank) in cuts {
            let start = (0..=at.index(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let end = (start + length..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            let edited = format!("{}{blank}{put}{blank}{}", &text[..start], &text[end..]);
            let again = parse_again(&edited, &text, &earlier);
            assert_eq!(again, parse(&edited), "{text:?} → {edited:?}");
            (text, earlier) = (edited, again);
        }
    }

    #[test]
    fn damaged_files(file in 0..5usize, at in any::<prop::sample::Index>(), length in 0..12usize, put in prop::sample::select(PIECES)) {
        let files = good();
        let text = &files[file % files.len()];
        let tokens = lex(text);
        let from = at.index(tokens.len());
        let to = (from + length).min(tokens.len() - 1);
        let (start, end) = (tokens[from].span.start as usize, tokens[to].span.start as usize);
        check(&format!("{}{put}{}", &text[..start], &text[end..]));
        check(&text[..start]);
        check(&text[start..]);
    }
}

/// A file without one of its tokens has at most a few errors: recovery does not make one mistake into many.
#[test]
fn one_missing_token_is_few_errors() {
    let (mut files_damaged, mut messages, mut worst) = (0usize, 0usize, 0usize);
    for text in good() {
        for token in lex(&text).iter().filter(|token| !token.kind.is_trivia()) {
            let (start, end) = (token.span.start as usize, token.span.end as usize);
            let damaged = format!("{} {}", &text[..start], &text[end..]);
            let errors = parse(&damaged).errors;
            files_damaged += 1;
            messages += errors.len();
            worst = worst.max(errors.len());
        }
    }
    assert!(worst <= 4, "one missing token gives {worst} messages");
    assert!(messages <= files_damaged, "{messages} messages for {files_damaged} missing tokens");
}

#[test]
fn corpus_of_the_fuzz_targets() {
    for folder in ["fuzz/corpus/lexer", "fuzz/corpus/parser"] {
        let files = files(folder);
        assert!(files.len() >= 10, "{folder} is small");
        for path in files {
            let bytes = fs::read(&path).unwrap();
            check(&String::from_utf8_lossy(&bytes));
        }
    }
}
