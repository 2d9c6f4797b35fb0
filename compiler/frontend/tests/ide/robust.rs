//! No question panics: every question at every offset of every input of the golden tests, whole and cut short.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_compiler::Compiler;
use dfc_compiler::files::MemoryFiles;
use dfc_compiler::ide::{self, TextRange};

/// Asks everything at an offset.
fn ask(compiler: &Compiler, path: &Path, offset: usize) {
    for item in ide::completion(compiler, path, path, offset) {
        assert!(item.range.start <= item.range.end);
    }
    ide::hover(compiler, path, path, offset);
    for found in ide::signature_help(compiler, path, path, offset).iter().flat_map(|help| &help.signatures) {
        assert!(found.params.iter().all(|param| found.label.get(param.label.start..param.label.end).is_some()));
    }
    ide::lineage(compiler, path, path, offset);
}

/// Asks at every `step`-th offset, and the questions about ranges.
fn ask_all(text: &str, step: usize) {
    let path = Path::new("p/main.df");
    let files = BTreeMap::from([(PathBuf::from(path), text.to_string())]);
    let compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
    for offset in (0..text.len() + 3).step_by(step) {
        ask(&compiler, path, offset);
        ide::code_actions(&compiler, path, path, TextRange::new(offset, offset + 20));
    }
    let whole = TextRange::new(0, text.len() + 5);
    for hint in ide::inlay_hints(&compiler, path, path, whole) {
        assert!(text.is_char_boundary(hint.offset), "{text}");
    }
    for action in ide::code_actions(&compiler, path, path, whole) {
        for edit in action.edits.iter().flat_map(|file| &file.edits) {
            assert!(text.get(edit.range.start..edit.range.end).is_some(), "{}", action.title);
        }
    }
    ide::code_lenses(&compiler, path, path);
}

fn inputs() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut open = vec![root];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("the golden inputs").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "df")
                && let Ok(bytes) = std::fs::read(&path)
            {
                found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 100, "{}", found.len());
    found
}

/// `DFC_LONG=1` asks at every offset; without it at a part of them, another one in each input.
fn step(number: usize) -> usize {
    if std::env::var_os("DFC_LONG").is_some() { 1 } else { 5 + number % 7 }
}

#[test]
fn at_every_place_of_the_golden_inputs() {
    for (number, (_, text)) in inputs().iter().enumerate().filter(|(_, (_, text))| text.len() < 20_000) {
        ask_all(text, step(number));
    }
}

#[test]
fn at_the_end_of_what_is_cut_short() {
    for (number, (_, text)) in inputs().iter().enumerate().filter(|(_, (_, text))| text.len() < 4_000) {
        let path = Path::new("p/main.df");
        let files = BTreeMap::from([(PathBuf::from(path), text.clone())]);
        let mut compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
        for end in (0..text.len()).step_by(step(number) * 2) {
            let Some(part) = text.get(..end) else { continue };
            compiler.set_file(path, part.to_string());
            ask(&compiler, path, end);
            ask(&compiler, path, end.saturating_sub(1));
        }
    }
}

#[test]
fn any_bytes() {
    let pieces = [
        "stream ", "a", " = ", "orders", " |> ", "filter(", ")", "(", "{", "}", "[", "]", ",", ":", ".", "\"", "f\"{",
        "`", "金额", "é", "\n", "sink ", "join(", "on: ", "right.", "job ", "record ", "as ", "@", "1", "\u{feff}",
        "//", "/*", "match ", "use \"", "\\",
    ];
    let mut seed = 7u64;
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        ask_all(&text, 1);
    }
}
