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

    /// What a folder holds: names, and whether each is a folder. Of what can't be read nothing, and of a large folder the
    /// first ones.
    fn list(&self, _folder: &Path) -> Vec<(String, bool)> {
        Vec::new()
    }
}

/// Entries of a folder that are listed at most.
const LISTED: usize = 2000;

/// The machine's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFiles;

impl FileSystem for RealFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        // A device may never end, and a file be larger than the memory; one byte more than is read tells that it was too much.
        let mut bytes = Vec::new();
        file.by_ref().take(dfc_grammar::LIMITS.file_bytes as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        std::fs::canonicalize(path).unwrap_or_else(|_| normalise(path))
    }

    fn list(&self, folder: &Path) -> Vec<(String, bool)> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(LISTED);
        let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path().is_dir())));
        named.collect()
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

    fn list(&self, folder: &Path) -> Vec<(String, bool)> {
        let folder = match normalise(folder) {
            dot if dot == Path::new(".") => PathBuf::new(),
            folder => folder,
        };
        let mut entries = BTreeMap::new();
        for path in self.files.keys() {
            let Some(mut parts) = path.strip_prefix(&folder).ok().map(|rest| rest.components()) else { continue };
            if let Some(name) = parts.next() {
                entries.insert(name.as_os_str().to_string_lossy().into_owned(), parts.next().is_some());
            }
        }
        entries.into_iter().collect()
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
