//! Positions of sources and closed epochs of sinks as they are written down in a checkpoint (D11, F1): plain data, shared by those who make
//! them and those who keep them. It may not know either.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How far a source has been read, split by split: a split is a file, a range of keys, a partition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Positions {
    /// Every split that is known, read to its end or not begun included.
    pub splits: Vec<SplitPosition>,
}

/// How far a split has been read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPosition {
    /// Its name, the same in every run: a path, `id from 1 to 1000`, `orders/3`. Distinct within a source.
    pub split: String,
    /// The connector's own, with words as keys: people read it. `Null`: not begun.
    pub position: Value,
    /// It has been read to its end.
    pub ended: bool,
    /// Whether going on from here is a jump; otherwise everything before is read again and thrown away (A7).
    pub exact: bool,
}

/// A sink's closed epoch: durable, complete, not visible yet. It is recorded in the checkpoint, and all that the sink
/// needs, perhaps in another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The barrier's number.
    pub number: u64,
    /// Rows in it.
    pub rows: u64,
    /// Bytes in it, as spooled.
    pub bytes: u64,
    /// The files that hold it, beside the spool folder or wherever the sink put them, with length and check sum. Their names are relative to
    /// the spool folder, or absolute.
    pub files: Vec<SpoolFile>,
    /// The connector's own.
    pub state: Value,
}

/// A part of a file that holds spooled rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolFile {
    /// Its path: absolute, or relative to the spool folder.
    pub path: String,
    /// Where the epoch's bytes begin in it.
    pub from: u64,
    /// Where they end: the file may be longer, but not shorter.
    pub to: u64,
    /// CRC-32 of these bytes.
    pub crc: u32,
}
