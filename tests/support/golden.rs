//! Golden files: what a test gives is compared with a file, or with `BLESS=1` written to it.

use std::path::{Path, PathBuf};

use super::{read, write};

/// Collects the differences of one test, so that all are seen at once.
#[derive(Default)]
pub struct Golden {
    differences: Vec<String>,
    seen: usize,
}

impl Golden {
    /// Compares a text with its file.
    pub fn check(&mut self, file: &Path, actual: &str) {
        self.seen += 1;
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            if !file.exists() || read(file) != actual {
                write(file, actual);
            }
            return;
        }
        if !file.exists() {
            self.differences.push(format!("{}: missing\n--- is\n{actual}", file.display()));
            return;
        }
        let expected = read(file);
        if expected != actual {
            self.differences.push(format!("{}\n{}", file.display(), difference(&expected, actual)));
        }
    }

    /// Fails if anything differed, or if nothing was compared.
    pub fn finish(self) {
        assert!(self.seen > 0, "no golden file was compared: the folder is empty");
        assert!(
            self.differences.is_empty(),
            "{} of {} golden files differ (BLESS=1 rewrites them; read them before you commit):\n\n{}",
            self.differences.len(),
            self.seen,
            self.differences.join("\n\n")
        );
    }
}

/// The lines from the first to the last that differ.
fn difference(expected: &str, actual: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (expected.lines().collect(), actual.lines().collect());
    let same_before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - same_before;
    let same_after = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
    let part = |lines: &[&str]| lines[same_before..lines.len() - same_after].join("\n");
    format!("from line {}\n--- should be\n{}\n--- is\n{}", same_before + 1, part(&a), part(&b))
}

/// The files of a golden folder with this extension, sorted.
pub fn inputs(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = super::root().join("tests/golden").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    files
}
