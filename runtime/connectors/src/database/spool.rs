//! The spool of a sink: rows in the target's own form on local disk, in files that are closed at a barrier and read when they are applied.
//! It may not know what is in them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::SPOOL;
use crate::{ConnectError, Residue, SpoolFile};

/// Bytes that are written, and read, at once.
const BUFFER: usize = 256 << 10;

/// A file that rows are written to.
pub(crate) struct OpenFile {
    name: String,
    to: BufWriter<File>,
    crc: crc32fast::Hasher,
    bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// It couldn't be made durable once: which bytes are on the disk isn't known, whatever the system says the next time.
    lost: bool,
}

impl OpenFile {
    /// A new file of a folder, which only this user may read.
    ///
    /// # Errors
    /// When it can't be made.
    pub(crate) fn create(folder: &Path, name: String) -> Result<OpenFile, ConnectError> {
        let path = folder.join(&name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| failed("make", &path, &error))?;
        Ok(OpenFile {
            name,
            to: BufWriter::with_capacity(BUFFER, file),
            crc: crc32fast::Hasher::new(),
            bytes: 0,
            rows: 0,
            lost: false,
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn put(&mut self, bytes: &[u8], rows: u64) -> Result<(), ConnectError> {
        self.to.write_all(bytes).map_err(|error| failed("write", Path::new(&self.name), &error))?;
        self.crc.update(bytes);
        self.bytes += bytes.len() as u64;
        self.rows += rows;
        Ok(())
    }

    /// Bytes in it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it durable; the folder's entry is the caller's to sync. After a failed sync every further call
    /// fails too.
    ///
    /// # Errors
    /// When that fails.
    pub(crate) fn close(&mut self) -> Result<SpoolFile, ConnectError> {
        let failed = |error| failed("write", Path::new(&self.name), &error);
        if self.lost {
            return Err(failed(io::Error::other("it couldn't be made durable once")));
        }
        self.to.flush().map_err(failed)?;
        let synced = dfc_trial::point("spool-sync").and_then(|()| self.to.get_ref().sync_all());
        self.lost = synced.is_err();
        synced.map_err(failed)?;
        Ok(SpoolFile { path: self.name.clone(), from: 0, to: self.bytes, crc: self.crc.clone().finalize() })
    }
}

/// Makes a folder's entries durable.
///
/// # Errors
/// When that fails.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ConnectError> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| failed("write", folder, &error))
}

/// Removes what is in the folder and not among these names; how much that was.
///
/// # Errors
/// When the folder can't be listed or a file not be removed.
pub(crate) fn keep_only(folder: &Path, names: &[&str]) -> Result<Residue, ConnectError> {
    let mut residue = Residue::default();
    let entries = fs::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed("read", folder, &error))?.path();
        let kept = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains(&name));
        if !kept && path.is_file() {
            let bytes = path.metadata().map_or(0, |meta| meta.len());
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
            residue.add(bytes);
        }
    }
    Ok(residue)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> ConnectError {
    let path = path.display();
    if error.kind() == io::ErrorKind::StorageFull {
        return ConnectError::new("R0206", format!("can't {what} the spool `{path}`: no space is left on the disk"))
            .help("make room where checkpoints are kept");
    }
    ConnectError::new("R0205", format!("can't {what} the spool `{path}`: {error}"))
}

/// Reads the files of an epoch one after another, and looks whether they are as they were written.
pub(crate) struct SpoolReader {
    files: Vec<(PathBuf, SpoolFile)>,
    next: usize,
    open: Option<Open>,
}

struct Open {
    from: io::Take<File>,
    crc: crc32fast::Hasher,
    left: u64,
}

impl SpoolReader {
    /// Over files of a folder.
    pub(crate) fn new(folder: &Path, files: Vec<SpoolFile>) -> SpoolReader {
        SpoolReader {
            files: files.into_iter().map(|file| (folder.join(&file.path), file)).collect(),
            next: 0,
            open: None,
        }
    }

    /// Reads the next piece into `buffer`, which it fills as far as a file goes; empty at the end. The rows of a file are whole: a file's
    /// last byte ends one.
    ///
    /// # Errors
    /// A file is missing, shorter, or other than it was.
    pub(crate) fn piece(&mut self, buffer: &mut Vec<u8>) -> Result<(), ConnectError> {
        buffer.clear();
        loop {
            let Some((path, file)) = self.files.get(self.next) else { return Ok(()) };
            let damaged = |why: String| {
                ConnectError::new(SPOOL, format!("the spool `{}` {why}", path.display()))
                    .help("these rows are not in the target, and not whole here: start anew with `--fresh`, or from an older checkpoint")
            };
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let opened = File::open(path).map_err(|error| match error.kind() {
                        io::ErrorKind::NotFound => damaged("is gone".into()),
                        _ => failed("read", path, &error),
                    })?;
                    let left = file.to.saturating_sub(file.from);
                    let mut opened = opened;
                    io::Seek::seek(&mut opened, io::SeekFrom::Start(file.from))
                        .map_err(|error| failed("read", path, &error))?;
                    self.open.insert(Open { from: opened.take(left), crc: crc32fast::Hasher::new(), left })
                }
            };
            let wanted = (open.left).min(BUFFER as u64);
            let read =
                (&mut open.from).take(wanted).read_to_end(buffer).map_err(|error| failed("read", path, &error))?;
            if (read as u64) < wanted {
                return Err(damaged(format!("ends at byte {}, it had {}", file.to - open.left + read as u64, file.to)));
            }
            open.crc.update(buffer);
            open.left -= wanted;
            if open.left == 0 {
                let crc = open.crc.clone().finalize();
                if crc != file.crc {
                    return Err(damaged(format!("is damaged between bytes {} and {}", file.from, file.to)));
                }
                self.open = None;
                self.next += 1;
            }
            if !buffer.is_empty() {
                return Ok(());
            }
        }
    }
}
