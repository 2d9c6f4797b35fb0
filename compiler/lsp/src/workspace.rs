//! The folders that the client works in, and the pipeline files in them.

use std::path::{Path, PathBuf};

/// Files looked at most; a folder with more than these is no project, and only open files are known.
const ENTRIES: usize = 100_000;

/// Folders inside one another at most.
const DEPTH: usize = 24;

/// Folders that hold no one's own files.
const SKIPPED: &[&str] = &["target", "node_modules", "__pycache__"];

/// Whether a path is that of a pipeline file.
pub fn is_pipeline(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "df")
}

/// The pipeline files below some folders, sorted. Hidden folders are left out, and links are not followed.
pub fn pipelines(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut open: Vec<(PathBuf, usize)> = folders.iter().map(|folder| (folder.clone(), 0)).collect();
    while let Some((folder, depth)) = open.pop() {
        // What can't be read is not there.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            if seen > ENTRIES {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            let path = entry.path();
            if kind.is_file() && is_pipeline(&path) {
                found.push(path);
            } else if kind.is_dir() && !hidden && depth < DEPTH && !SKIPPED.iter().any(|skipped| name == *skipped) {
                open.push((path, depth + 1));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_are_found_below_folders() {
        let base = std::env::temp_dir().join(format!("dfc-lsp-workspace-{}", std::process::id()));
        for folder in ["a/b", ".git", "target", "a/node_modules"] {
            std::fs::create_dir_all(base.join(folder)).expect("a folder");
        }
        for file in ["x.df", "a/b/y.df", ".git/no.df", "target/no.df", "a/node_modules/no.df", "a/z.txt"] {
            std::fs::write(base.join(file), "").expect("a file");
        }
        let found = pipelines(std::slice::from_ref(&base));
        std::fs::remove_dir_all(&base).expect("the folder goes");
        assert_eq!(found, [base.join("a/b/y.df"), base.join("x.df")]);
        assert_eq!(pipelines(&[base]), Vec::<PathBuf>::new());
    }
}
