//! Writes a file so that it appears under its final name only when it is whole: everything goes to a temporary file in the same
//! folder, which is synced and renamed at the end. It may not know what is written.
//!
//! `append` copies the old content before the new one and replaces the file too, so that it is all or nothing as well.
//! Standard output (`-`), pipes and devices can't be replaced and are written as the bytes come. Files of a job with checkpoints are
//! written by `growing` instead.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::ahead::Ahead;
use super::compressor::Compressor;
use super::input::Compression;
use super::paths::io_error;
use super::place::{Claim, Place, copy_old, exists, hidden_beside, publish};
use crate::ConnectError;

/// What happens with a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is replaced at the end.
    Overwrite,
    /// It keeps its content, the new rows follow.
    Append,
    /// The job is refused.
    Fail,
}

/// What is to be written where.
#[derive(Debug, Clone)]
pub(crate) struct OutputOptions {
    /// The path, or `-` for standard output.
    pub path: String,
    /// What happens with an existing file.
    pub mode: Mode,
    /// Compression of the bytes.
    pub compression: Compression,
}

/// An output that is being written. Dropped without [`Output::finish`] it leaves nothing behind.
pub(crate) struct Output {
    name: String,
    writer: Compressor<Raw>,
    temporary: Option<Temporary>,
    mode: Mode,
    continues: bool,
}

/// Renamed at the end.
struct Temporary {
    temp: PathBuf,
    target: PathBuf,
    _claim: Claim,
}

enum RawTarget {
    File(File),
    Stdout(io::Stdout),
}

struct Raw {
    target: RawTarget,
    bytes: u64,
    ahead: Ahead,
}

impl Write for Raw {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = match &mut self.target {
            RawTarget::File(file) => {
                let n = file.write(buf)?;
                self.ahead.wrote(file, n)?;
                n
            }
            RawTarget::Stdout(out) => out.write(buf)?,
        };
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            RawTarget::File(file) => file.flush(),
            RawTarget::Stdout(out) => out.flush(),
        }
    }
}

/// Distinguishes the temporary files of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Output {
    /// Opens an output where its path leads.
    ///
    /// # Errors
    /// When it can't be written, or exists and may not.
    pub(crate) fn open_at(place: Place, options: &OutputOptions) -> Result<Self, ConnectError> {
        let name = &options.path;
        let fail = |e: io::Error| io_error("write", name, &e);
        let mut old_bytes = 0;
        let compression = options.compression.resolve(name);
        let (target, temporary) = match place {
            Place::Stdout => (RawTarget::Stdout(io::stdout()), None),
            Place::Direct(file) => (RawTarget::File(file), None),
            Place::File { present: Some(_), .. } if options.mode == Mode::Fail => return Err(exists(name)),
            Place::File { target, present, claim } => {
                let (mut file, temp) = create_temporary(&target).map_err(fail)?;
                let prepared = match present {
                    Some(rights) => fs::set_permissions(&temp, rights).and_then(|()| {
                        if options.mode == Mode::Append {
                            old_bytes = copy_old(&target, &mut file, compression)?;
                        }
                        Ok(())
                    }),
                    None => Ok(()),
                };
                if let Err(e) = prepared {
                    let _ = fs::remove_file(&temp);
                    return Err(fail(e));
                }
                (RawTarget::File(file), Some(Temporary { temp, target, _claim: claim }))
            }
        };
        let writer = Compressor::new(Raw { target, bytes: 0, ahead: Ahead::default() }, compression);
        Ok(Output { name: name.clone(), writer, temporary, mode: options.mode, continues: old_bytes > 0 })
    }

    /// Whether there is content before: a header is not repeated then.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    /// Where the result will be, as the user would name it.
    pub(crate) fn name(&self) -> &str {
        if self.name == "-" { "stdout" } else { &self.name }
    }

    /// Whether it is a file, which appears when it is whole.
    pub(crate) fn is_file(&self) -> bool {
        self.temporary.is_some()
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), ConnectError> {
        self.write_all(bytes).map_err(|e| io_error("write", &self.name, &e))
    }

    /// Makes the file visible under its final name and gives the bytes written (as stored, without an appended file's old ones).
    ///
    /// # Errors
    /// When that can't be done; the final name is as it was before.
    pub(crate) fn finish(mut self) -> Result<u64, ConnectError> {
        let name = self.name.clone();
        let fail = |e: io::Error| io_error("write", &name, &e);
        let empty = !self.continues && self.writer.inner().map_err(fail)?.bytes == 0;
        let raw = self.writer.close(empty).map_err(fail)?;
        let bytes = raw.bytes;
        if let (RawTarget::File(file), Some(Temporary { temp, target, .. })) = (&raw.target, &self.temporary) {
            raw.ahead.arrive().and_then(|()| file.sync_all()).map_err(fail)?;
            publish(temp, target, self.mode).map_err(fail)?;
            self.temporary = None;
        }
        Ok(bytes)
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(Temporary { temp, .. }) = &self.temporary {
            // Nobody is left to be told.
            let _ = fs::remove_file(temp);
        }
    }
}

fn create_temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let temp = hidden_beside(target, &format!("{}-{n}.tmp", std::process::id()))?;
        match OpenOptions::new().write(true).create_new(true).open(&temp) {
            Ok(file) => return Ok((file, temp)),
            // Left behind by a process of the same number that was killed.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}
