//! Where files come from: a trait over the file system, the real one and one in memory.
//!
//! It may not know what is in the files.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Reads files for the compiler.
pub trait FileSystem: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// One name for each file, however it is reached. A path that can't be resolved is given back with `.` and `..` worked out.
    fn identity(&self, path: &Path) -> PathBuf {
        normalise(path)
    }
}

/// The machine's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFiles;

impl FileSystem for RealFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        if file.metadata()?.is_file() {
            return std::fs::read(path);
        }
        // A device may never end; one byte more than is read tells that it was too much.
        let mut bytes = Vec::new();
        file.by_ref().take(dfc_grammar::LIMITS.file_bytes as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        std::fs::canonicalize(path).unwrap_or_else(|_| normalise(path))
    }
}

/// Files in memory, for tests and for editors that hold all text themselves.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    /// Text by path.
    pub files: BTreeMap<PathBuf, String>,
}

impl FileSystem for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.files.get(&normalise(path)) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }
}

/// Works out `.` and `..` without looking at the disk.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                _ => out.push(".."),
            },
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() && !path.as_os_str().is_empty() {
        out.push(".");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_worked_out() {
        for (given, wanted) in
            [("a/./b", "a/b"), ("a/../b", "b"), ("../a", "../a"), ("/../a", "/a"), ("a/b/../../../c", "../c")]
        {
            assert_eq!(normalise(Path::new(given)), PathBuf::from(wanted), "{given}");
        }
    }
}
