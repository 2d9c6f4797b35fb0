//! What the tests share: what must hold of a formatted text, and the files they read.
#![allow(dead_code)] // each test binary uses a part

use dfc_grammar::{Formatted, TokenKind, dump_ast, format, lex, parse};
use std::fs;
use std::path::{Path, PathBuf};

/// A tree without the places of its items.
pub fn tree(text: &str) -> Vec<String> {
    dump_ast(&parse(text)).lines().map(|line| line.split(" @").next().unwrap().to_owned()).collect()
}

/// What must hold of any text's formatted form: the same tree, mistakes and comments; formatted again, the same text; the
/// edits make it.
pub fn check_format(text: &str) -> Formatted {
    let formatted = format(text);
    let new = &formatted.text;
    if new != text {
        assert_eq!(tree(new), tree(text), "another tree for {text:?}");
        let mistakes = |text: &str| parse(text).errors.iter().map(|e| e.message.clone()).collect::<Vec<_>>();
        assert_eq!(mistakes(new), mistakes(text), "other mistakes for {text:?}");
        assert_eq!(comments(new), comments(text), "other comments for {text:?}");
        let again = format(new);
        if again.text != *new {
            let (line, other) = new.split('\n').zip(again.text.split('\n')).find(|(a, b)| a != b).unwrap_or(("…", "…"));
            panic!("not the same again: {line:?}, {other:?}\nonce:\n{new}\nagain:\n{}\nfor {text:?}", again.text);
        }
        assert!(again.edits.is_empty());
    }
    assert_eq!(apply(text, &formatted), *new, "the edits of {text:?}");
    formatted
}

/// A text after its edits.
pub fn apply(text: &str, formatted: &Formatted) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for edit in &formatted.edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        assert!(start >= at, "edits overlap");
        out.push_str(&text[at..start]);
        out.push_str(&edit.text);
        at = end;
    }
    out + &text[at..]
}

/// The letters of all comments.
fn comments(text: &str) -> String {
    let comments = lex(text).into_iter().filter(|t| t.kind.is_trivia() && t.kind != TokenKind::Whitespace);
    comments.flat_map(|t| t.text(text).chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>()).collect()
}

/// The files of a folder of this crate, sorted.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Every `.df` file of the repository with its text.
pub fn every_file() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if entry.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
                walk(&entry, out);
            } else if name.ends_with(".df") {
                out.push(entry);
            }
        }
    }
    let mut files = Vec::new();
    walk(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap(), &mut files);
    files.sort();
    assert!(files.len() > 300);
    let read = |path: PathBuf| fs::read_to_string(&path).ok().map(|text| (path, text));
    files.into_iter().filter_map(read).collect()
}
