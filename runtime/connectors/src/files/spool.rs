//! Parts: files that are finished one by one under names that nobody sees, each whole by itself, and made visible later (D12). A part is
//! closed when it is big enough, and when its epoch is sealed. It may not know what stands in them, nor what becomes of them.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::checked::Checked;
use super::compressor::Compressor;
use super::growing::remove;
use super::input::Compression;
use super::paths::io_error;
use super::place::sync_folder;
use crate::{ConnectError, Encoded, Residue};

/// The most parts that are open at once: each takes memory and a file handle.
const MOST_OPEN: usize = 64;

/// Writes the rows of one part.
pub(crate) trait PartWriter: Send {
    /// Writes rows.
    ///
    /// # Errors
    /// When that can't be done.
    fn write(&mut self, encoded: Encoded) -> Result<(), ConnectError>;

    /// Bytes it has so far, about.
    fn bytes(&self) -> u64;

    /// Ends it: everything is in the file then.
    ///
    /// # Errors
    /// When that can't be done.
    fn close(self: Box<Self>) -> Result<Checked, ConnectError>;
}

/// Begins a part in a new file.
pub(crate) type MakePart = Box<dyn Fn(Checked) -> Result<Box<dyn PartWriter>, ConnectError> + Send + Sync>;

/// A closed part.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// What its rows have in common; empty where that is nothing.
    pub partition: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub crc: u32,
}

/// Parts of text: a beginning, then the bytes of rows.
pub(crate) fn text_parts(name: &str, begin: Vec<u8>, compression: Compression) -> MakePart {
    let (name, compression) = (name.to_string(), compression.resolve(name));
    Box::new(move |file| {
        let mut part = TextPart { name: name.clone(), writer: Compressor::new(file, compression) };
        part.put(&begin)?;
        Ok(Box::new(part))
    })
}

struct TextPart {
    name: String,
    writer: Compressor<Checked>,
}

impl TextPart {
    fn put(&mut self, bytes: &[u8]) -> Result<(), ConnectError> {
        self.writer.write_all(bytes).map_err(|e| io_error("write", &self.name, &e))
    }
}

impl PartWriter for TextPart {
    fn write(&mut self, encoded: Encoded) -> Result<(), ConnectError> {
        match encoded {
            Encoded::Bytes(bytes) => self.put(&bytes),
            _ => Err(ConnectError::new("R0499", "a text takes bytes, not rows")),
        }
    }

    fn bytes(&self) -> u64 {
        self.writer.get().map_or(0, Checked::at)
    }

    fn close(self: Box<Self>) -> Result<Checked, ConnectError> {
        let TextPart { name, writer } = *self;
        writer.into_inner().map_err(|e| io_error("write", &name, &e))
    }
}

struct Open {
    partition: String,
    path: PathBuf,
    writer: Box<dyn PartWriter>,
}

/// The parts of an epoch that is being written.
pub(crate) struct Spool {
    /// As the user would name the target.
    name: String,
    folder: PathBuf,
    /// What the names of all its files begin with.
    prefix: String,
    next: u64,
    roll: u64,
    make: MakePart,
    open: Vec<Open>,
    by_partition: HashMap<String, usize>,
    closed: Vec<Part>,
    /// Why a part couldn't be closed: what was in it is gone.
    lost: Option<ConnectError>,
    /// What was removed when it was opened.
    pub residue: Residue,
}

impl Spool {
    /// Parts in a folder that is there, closed at about `roll` bytes. Files of its prefix whose names are not in `keep` are removed.
    ///
    /// # Errors
    /// When the folder can't be read or written.
    pub(crate) fn new(
        name: &str,
        folder: PathBuf,
        prefix: String,
        roll: u64,
        make: MakePart,
        keep: &[String],
    ) -> Result<Self, ConnectError> {
        let fail = |e: io::Error| io_error("write", name, &e);
        let ordinal = |file: &str| file.strip_prefix(&prefix)?.strip_suffix(".part")?.parse::<u64>().ok();
        // A part that has been moved away, though nobody noted it yet, is still asked for by its name: no other may have it.
        let next = keep.iter().filter_map(|file| ordinal(file)).max().map_or(0, |last| last.saturating_add(1));
        let mut residue = Residue::default();
        for entry in fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let file = entry.file_name().to_string_lossy().into_owned();
            let is_part = file.starts_with(&prefix) && file.ends_with(".part");
            if is_part && !keep.contains(&file) {
                let bytes = entry.metadata().map_or(0, |meta| meta.len());
                remove(&folder.join(&file)).map_err(fail)?;
                residue.add(bytes);
            }
        }
        let (open, closed) = (Vec::new(), Vec::new());
        let by_partition = HashMap::new();
        Ok(Spool {
            name: name.into(),
            folder,
            prefix,
            next,
            roll,
            make,
            open,
            by_partition,
            closed,
            lost: None,
            residue,
        })
    }

    fn fail(&self) -> impl Fn(io::Error) -> ConnectError + use<> {
        let name = self.name.clone();
        move |e| io_error("write", &name, &e)
    }

    /// Writes rows into the open part of their partition.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn write(&mut self, partition: &str, encoded: Encoded) -> Result<(), ConnectError> {
        self.is_whole()?;
        let at = match self.by_partition.get(partition) {
            Some(&at) => at,
            None => self.begin(partition)?,
        };
        let open = &mut self.open[at];
        open.writer.write(encoded)?;
        if open.writer.bytes() >= self.roll { self.close(at) } else { Ok(()) }
    }

    fn begin(&mut self, partition: &str) -> Result<usize, ConnectError> {
        if self.open.len() >= MOST_OPEN {
            let biggest = (0..self.open.len()).max_by_key(|&at| self.open[at].writer.bytes());
            biggest.map_or(Ok(()), |at| self.close(at))?;
        }
        let path = self.folder.join(format!("{}{:010}.part", self.prefix, self.next));
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(self.fail())?;
        self.next += 1;
        let writer = (self.make)(Checked::new(file, 0))?;
        self.open.push(Open { partition: partition.into(), path, writer });
        self.by_partition.insert(partition.into(), self.open.len() - 1);
        Ok(self.open.len() - 1)
    }

    fn close(&mut self, at: usize) -> Result<(), ConnectError> {
        let Open { partition, path, writer } = self.open.swap_remove(at);
        self.by_partition.remove(&partition);
        if let Some(moved) = self.open.get(at) {
            self.by_partition.insert(moved.partition.clone(), at);
        }
        let fail = self.fail();
        let sealed = writer.close().and_then(|mut checked| Ok((checked.seal().map_err(fail)?, checked.at())));
        match sealed {
            Ok((crc, bytes)) => {
                self.closed.push(Part { partition, path, bytes, crc });
                Ok(())
            }
            Err(error) => {
                // Its rows are in no part any more: no epoch without them may be sealed.
                self.lost = Some(error.clone());
                Err(error)
            }
        }
    }

    fn is_whole(&self) -> Result<(), ConnectError> {
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// Bytes of the epoch, about.
    pub(crate) fn bytes(&self) -> u64 {
        let open: u64 = self.open.iter().map(|open| open.writer.bytes()).sum();
        open + self.closed.iter().map(|part| part.bytes).sum::<u64>()
    }

    /// Closes the epoch's parts, durably.
    ///
    /// # Errors
    /// When that can't be done, or a part couldn't be closed once; what was closed belongs to the next epoch.
    pub(crate) fn seal(&mut self) -> Result<Vec<Part>, ConnectError> {
        self.is_whole()?;
        while let Some(last) = self.open.len().checked_sub(1) {
            self.close(last)?;
        }
        if !self.closed.is_empty() {
            sync_folder(&self.folder).map_err(self.fail())?;
        }
        self.closed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(std::mem::take(&mut self.closed))
    }

    /// Makes a part without rows.
    ///
    /// # Errors
    /// When that can't be done.
    pub(crate) fn empty(&mut self) -> Result<(), ConnectError> {
        self.begin("").map(|_| ())
    }

    /// Removes what isn't sealed.
    pub(crate) fn abort(&mut self) {
        let paths = self.open.drain(..).map(|open| open.path).chain(self.closed.drain(..).map(|part| part.path));
        for path in paths {
            // Nobody is left to be told.
            let _ = remove(&path);
        }
        self.by_partition.clear();
    }
}

/// The names, without folders, of files that a checkpoint names.
pub(crate) fn names_of<'a>(files: impl Iterator<Item = &'a crate::SpoolFile>) -> Vec<String> {
    files.filter_map(|file| Some(Path::new(&file.path).file_name()?.to_string_lossy().into_owned())).collect()
}
