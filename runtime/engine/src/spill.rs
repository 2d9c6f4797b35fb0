//! State on disk: blocks of bytes in a file without a name, which is gone with the process, however that ends. It may not know what the
//! blocks hold.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::RunError;
use crate::budget::Budget;

/// Into how many partitions state is divided by the hash of its keys. At the end one at a time is in memory.
pub(crate) const PARTITIONS: usize = 64;

/// Level of the compression: states of groups are mostly zeros, and a slow disk is what it costs otherwise.
const LEVEL: i32 = 1;

/// Blocks of one operator, in partitions, in the order in which they were written.
pub(crate) struct Spill {
    file: File,
    folder: PathBuf,
    node: String,
    end: u64,
    blocks: Vec<Vec<Block>>,
}

/// Where a block stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    at: u64,
    bytes: usize,
    /// Bytes of what it holds.
    plain: usize,
    /// Bytes that takes in memory.
    held: usize,
}

impl Block {
    /// Bytes that what it holds takes in memory.
    pub(crate) fn held(self) -> usize {
        self.held
    }
}

impl Spill {
    /// For the operator of this name.
    ///
    /// # Errors
    /// When no file can be made.
    pub(crate) fn new(node: &str, budget: &Budget) -> Result<Spill, RunError> {
        let folder = budget.folder().to_path_buf();
        let made = std::fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder));
        let file = made.map_err(|error| failed(node, &folder, &error))?;
        Ok(Spill { file, folder, node: node.to_owned(), end: 0, blocks: Vec::new() })
    }

    /// Appends a block to a partition.
    ///
    /// # Errors
    /// When it can't be written.
    pub(crate) fn write(&mut self, partition: usize, plain: &[u8]) -> Result<(), RunError> {
        self.write_held(partition, plain, plain.len())
    }

    /// The same where what the block holds takes another number of bytes in memory.
    ///
    /// # Errors
    /// When it can't be written.
    pub(crate) fn write_held(&mut self, partition: usize, plain: &[u8], held: usize) -> Result<(), RunError> {
        let written = zstd::bulk::compress(plain, LEVEL).and_then(|bytes| {
            self.file.write_all_at(&bytes, self.end)?;
            Ok(Block { at: self.end, bytes: bytes.len(), plain: plain.len(), held })
        });
        let block = written.map_err(|error| failed(&self.node, &self.folder, &error))?;
        self.end += block.bytes as u64;
        if self.blocks.len() <= partition {
            self.blocks.resize(partition + 1, Vec::new());
        }
        self.blocks[partition].push(block);
        Ok(())
    }

    /// The blocks of a partition.
    pub(crate) fn blocks(&self, partition: usize) -> Vec<Block> {
        self.blocks.get(partition).cloned().unwrap_or_default()
    }

    /// Partitions that have blocks, or could have.
    pub(crate) fn partitions(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes that what all blocks hold takes in memory.
    pub(crate) fn held(&self) -> usize {
        self.blocks.iter().flatten().map(|block| block.held).sum()
    }

    /// What a block holds.
    ///
    /// # Errors
    /// When it can't be read.
    pub(crate) fn read(&self, block: Block) -> Result<Vec<u8>, RunError> {
        let mut bytes = vec![0; block.bytes];
        let read = self.file.read_exact_at(&mut bytes, block.at);
        let plain = read.and_then(|()| zstd::bulk::decompress(&bytes, block.plain));
        plain.map_err(|error| failed(&self.node, &self.folder, &error))
    }
}

/// The partition of a key.
pub(crate) fn partition_of(hash: u64) -> usize {
    // The high half has dealt the key to its task.
    hash as usize % PARTITIONS
}

fn failed(node: &str, folder: &std::path::Path, error: &io::Error) -> RunError {
    RunError::Memory {
        node: node.to_owned(),
        message: format!(
            "its state passes the memory it may take, and can't go to disk in `{}`: {error}",
            folder.display()
        ),
        help: "make room there, or give the run more with `--memory`".to_owned(),
    }
}
