//! How far a file was read, and whether the file of that name is still the one that was read (F3): its size, a hash of its first block, of
//! its last one, and of the text before the position. Node number and time of change are hints for messages alone: both may differ for the same content,
//! and be the same for another. It may not know what the file contains.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh64::xxh64;

use super::paths::io_error;
use crate::ConnectError;

/// Bytes of a block that is compared.
pub(crate) const BLOCK: usize = 4 << 10;
/// Bytes of the text before a position that are compared: a row that was mended there without changing its length is noticed.
pub(crate) const TAIL: usize = 64 << 10;
/// The file of a name is shorter than it was, or another.
pub(crate) const OTHER_FILE: &str = "R0216";

/// The hash of some bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Block {
    /// How many.
    pub bytes: u64,
    /// Their XXH64, in hexadecimal digits.
    pub xxh64: String,
}

impl Block {
    /// Of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Block { bytes: bytes.len() as u64, xxh64: format!("{:016x}", xxh64(bytes, 0)) }
    }
}

/// What a file of a name was when it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Its stored bytes: what is appended later is not read by a run that ends.
    pub size: u64,
    /// Its first stored bytes.
    pub start: Block,
    /// Its last ones: they stay where they are when something is appended, and move when something before them changes its length.
    #[serde(default)]
    pub end: Block,
    /// Its node's number, where the system has such.
    pub inode: Option<u64>,
    /// Microseconds since 1970 of its last change.
    pub modified: Option<u64>,
}

impl Identity {
    /// Looks at a file.
    ///
    /// # Errors
    /// When it can't be read.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Identity::of_first(path, u64::MAX)
    }

    /// Looks at the first `size` bytes of a file that may have grown beyond them meanwhile; at fewer if it hasn't so many.
    ///
    /// # Errors
    /// When it can't be read.
    pub(crate) fn of_first(path: &Path, size: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        let size = meta.len().min(size);
        let last = size.min(BLOCK as u64);
        let mut start = Vec::new();
        Read::by_ref(&mut file).take(last).read_to_end(&mut start)?;
        Ok(Identity {
            size,
            start: Block::of(&start),
            end: Block::of(&read_block(path, size - last, last)?),
            inode: inode(&meta),
            modified: meta
                .modified()
                .ok()
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                .and_then(|since| u64::try_from(since.as_micros()).ok()),
        })
    }

    /// What differs from the file that was read before; `None`: nothing, it may have grown.
    ///
    /// # Errors
    /// When the file can't be read.
    pub(crate) fn difference(&self, path: &Path) -> io::Result<Option<String>> {
        let size = std::fs::metadata(path)?.len();
        if size < self.size {
            return Ok(Some(format!("it has {size} bytes, and had {}", self.size)));
        }
        if Block::of(&read_block(path, 0, self.start.bytes)?) != self.start {
            return Ok(Some(format!("its first {} bytes are others", self.start.bytes)));
        }
        let end = &self.end;
        let moved = end.bytes > 0 && Block::of(&read_block(path, self.size - end.bytes, end.bytes)?) != *end;
        Ok(moved.then(|| format!("what stood at its end, before byte {}, stands there no longer", self.size)))
    }
}

#[cfg(unix)]
fn inode(meta: &std::fs::Metadata) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(meta.ino())
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> Option<u64> {
    None
}

/// How far a file was read, as it stands in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct FilePosition {
    /// The byte after the last whole record, in the text (which is the file itself unless that is compressed or in another encoding).
    pub byte: u64,
    /// The line that begins there, from 1.
    pub line: u64,
    /// The text just before it.
    pub before: Block,
    /// The file.
    pub file: Identity,
}

impl FilePosition {
    /// From a checkpoint.
    ///
    /// # Errors
    /// When it isn't what [`FilePosition::to_value`] gave.
    pub(crate) fn from_value(value: &Value, name: &str) -> Result<Self, ConnectError> {
        let sound = |p: &FilePosition| {
            let block = BLOCK as u64;
            p.before.bytes <= p.byte.min(TAIL as u64)
                && p.file.start.bytes <= p.file.size.min(block)
                && p.file.end.bytes <= p.file.size.min(block)
                && p.line > 0
        };
        serde_json::from_value(value.clone()).ok().filter(sound).ok_or_else(|| bad_position(name, value))
    }

    /// For a checkpoint.
    pub(crate) fn to_value(&self) -> Value {
        // Numbers and texts under fixed names are always JSON.
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// The stored bytes before the position, where the text is the file.
    ///
    /// # Errors
    /// They are others than those that were read, or can't be read.
    pub(crate) fn text_before(&self, path: &Path, name: &str) -> Result<Vec<u8>, ConnectError> {
        if self.before.bytes == 0 {
            return Ok(Vec::new());
        }
        let block = read_block(path, self.byte - self.before.bytes, self.before.bytes);
        let block = block.map_err(|e| io_error("read", name, &e))?;
        if Block::of(&block) == self.before { Ok(block) } else { Err(self.other_before(name)) }
    }

    /// The error of a file whose text before the position is another.
    pub(crate) fn other_before(&self, name: &str) -> ConnectError {
        other_file(name, &format!("what stands before byte {} is not what was read there", self.byte))
    }
}

/// The error of a position that this source can't have given.
pub(crate) fn bad_position(name: &str, value: &Value) -> ConnectError {
    ConnectError::new("R0217", format!("`{name}`: the checkpoint's position `{value}` is none of this source"))
        .help("the checkpoint is damaged, or of another version: `--fresh` starts anew")
}

/// The error of a file that isn't the one that was read.
pub(crate) fn other_file(name: &str, why: &str) -> ConnectError {
    ConnectError::new(OTHER_FILE, format!("`{name}` is not the file that was read before: {why}")).help(
        "bring the file back as it was, and put what is new into a file of its own; `--fresh` reads everything anew",
    )
}

fn read_block(path: &Path, from: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut block = Vec::new();
    file.take(bytes).read_to_end(&mut block)?;
    Ok(block)
}

/// The last bytes of a text that is read piece by piece.
#[derive(Default)]
pub(crate) struct Tail(Vec<u8>);

impl Tail {
    /// The text goes on.
    pub(crate) fn push(&mut self, text: &[u8]) {
        let kept = self.0.len().min(TAIL.saturating_sub(text.len()));
        self.0.drain(..self.0.len() - kept);
        self.0.extend_from_slice(&text[text.len() - text.len().min(TAIL)..]);
    }

    /// The very last one.
    pub(crate) fn last(&self) -> Option<u8> {
        self.0.last().copied()
    }

    /// Their hash.
    pub(crate) fn block(&self) -> Block {
        Block::of(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that was mended to a longer one pushes the last rows past the size that the run had found: nothing may be lost unsaid.
    #[test]
    fn what_is_appended_changes_nothing_and_what_is_inserted_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.csv");
        let rows: Vec<String> = (0..4_000).map(|n| format!("{n},row {n}\n")).collect();
        std::fs::write(&path, rows.concat()).expect("written");
        let found = Identity::of(&path).expect("read");
        std::fs::write(&path, rows.concat() + "4000,new\n").expect("written");
        assert_eq!(found.difference(&path).expect("read"), None);
        let mut mended = rows.clone();
        mended[2_000] = "2000,row two thousand\n".into();
        std::fs::write(&path, mended.concat()).expect("written");
        let why = found.difference(&path).expect("read").expect("another file");
        assert!(why.contains("what stood at its end"), "{why}");
    }
}
