//! Writes a file so that it appears under its final name only when it is whole: everything goes to a temporary file in the same
//! folder, which is synced and renamed at the end. It may not know what is written.
//!
//! `append` copies the old content before the new one and replaces the file too, so that it is all or nothing as well.
//! Standard output (`-`), pipes and devices can't be replaced and are written as the bytes come.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::input::Compression;
use super::paths::io_error;
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
    writer: Writer,
    place: Place,
    mode: Mode,
    continues: bool,
}

enum Writer {
    Plain(Raw),
    Gzip(Box<flate2::write::GzEncoder<Raw>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Raw>>),
    Closed,
}

enum Place {
    /// Renamed at the end.
    Temporary { temp: PathBuf, target: PathBuf, _claim: Claim },
    /// Written directly.
    Direct,
}

enum RawTarget {
    File(File),
    Stdout(io::Stdout),
}

struct Raw {
    target: RawTarget,
    bytes: u64,
}

impl Write for Raw {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = match &mut self.target {
            RawTarget::File(file) => file.write(buf)?,
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
    /// Opens an output. Missing folders are made.
    ///
    /// # Errors
    /// When it can't be written, or exists and may not.
    pub(crate) fn open(options: &OutputOptions) -> Result<Self, ConnectError> {
        let name = &options.path;
        let fail = |e: io::Error| io_error("write", name, &e);
        let mut old_bytes = 0;
        let mut ends_in_line = true;
        let compression = options.compression.resolve(name);
        let (target, place) = if name == "-" {
            (RawTarget::Stdout(io::stdout()), Place::Direct)
        } else {
            let path = Path::new(name);
            match fs::metadata(path) {
                Ok(meta) if meta.is_dir() => {
                    return Err(ConnectError::new("R0204", format!("can't write `{name}`: it is a folder"))
                        .help("name the file to write in it"));
                }
                Ok(meta) if !meta.is_file() => {
                    (RawTarget::File(OpenOptions::new().write(true).open(path).map_err(fail)?), Place::Direct)
                }
                Ok(meta) => {
                    if options.mode == Mode::Fail {
                        return Err(ConnectError::new("R0207", format!("`{name}` exists already"))
                            .help("remove it, or write `mode: overwrite` or `mode: append`"));
                    }
                    // A link stays a link: the file that it points to is replaced.
                    let target = fs::canonicalize(path).map_err(fail)?;
                    let claim = Claim::new(&target, name)?;
                    let (mut file, temp) = create_temporary(&target).map_err(fail)?;
                    let prepared = fs::set_permissions(&temp, meta.permissions()).and_then(|()| {
                        if options.mode == Mode::Append {
                            let mut old = File::open(&target)?;
                            old_bytes = io::copy(&mut old, &mut file)?;
                            if compression == Compression::None && old_bytes > 0 {
                                old.seek(SeekFrom::End(-1))?;
                                let mut last = [0];
                                old.read_exact(&mut last)?;
                                ends_in_line = last[0] == b'\n';
                            }
                        }
                        Ok(())
                    });
                    if let Err(e) = prepared {
                        let _ = fs::remove_file(&temp);
                        return Err(fail(e));
                    }
                    (RawTarget::File(file), Place::Temporary { temp, target, _claim: claim })
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
                        fs::create_dir_all(parent).map_err(fail)?;
                    }
                    let target = absent_target(path).map_err(fail)?;
                    let claim = Claim::new(&target, name)?;
                    let (file, temp) = create_temporary(&target).map_err(fail)?;
                    (RawTarget::File(file), Place::Temporary { temp, target, _claim: claim })
                }
                Err(e) => return Err(fail(e)),
            }
        };
        let mut raw = Raw { target, bytes: 0 };
        if !ends_in_line {
            raw.write_all(b"\n").map_err(fail)?;
        }
        let writer = match compression {
            Compression::Gzip => {
                Writer::Gzip(Box::new(flate2::write::GzEncoder::new(raw, flate2::Compression::default())))
            }
            Compression::Zstd => Writer::Zstd(Box::new(zstd::stream::write::Encoder::new(raw, 3).map_err(fail)?)),
            Compression::None | Compression::Auto => Writer::Plain(raw),
        };
        Ok(Output { name: name.clone(), writer, place, mode: options.mode, continues: old_bytes > 0 })
    }

    /// Whether there is content before: a header is not repeated then.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    /// Where the result will be, as the user would name it.
    pub(crate) fn name(&self) -> &str {
        if self.name == "-" { "stdout" } else { &self.name }
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
        let mut raw = match std::mem::replace(&mut self.writer, Writer::Closed) {
            Writer::Plain(raw) => raw,
            Writer::Gzip(encoder) => encoder.finish().map_err(fail)?,
            Writer::Zstd(encoder) => encoder.finish().map_err(fail)?,
            Writer::Closed => return Ok(0),
        };
        raw.flush().map_err(fail)?;
        if let (RawTarget::File(file), Place::Temporary { temp, target, .. }) = (&raw.target, &self.place) {
            file.sync_all().map_err(fail)?;
            publish(temp, target, self.mode).map_err(fail)?;
            self.place = Place::Direct;
        }
        Ok(raw.bytes)
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Writer::Plain(raw) => raw.write(buf),
            Writer::Gzip(encoder) => encoder.write(buf),
            Writer::Zstd(encoder) => encoder.write(buf),
            Writer::Closed => Err(io::Error::other("the output is closed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Plain(raw) => raw.flush(),
            Writer::Gzip(encoder) => encoder.flush(),
            Writer::Zstd(encoder) => encoder.flush(),
            Writer::Closed => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Place::Temporary { temp, .. } = &self.place {
            // Nobody is left to be told.
            let _ = fs::remove_file(temp);
        }
    }
}

/// The files that this process is writing.
static CLAIMED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

/// The right to write a file: two outputs of one file would replace each other, and one's rows would be lost.
struct Claim(PathBuf);

impl Claim {
    /// `target` is free of links, so that one file has one name.
    fn new(target: &Path, name: &str) -> Result<Self, ConnectError> {
        // A set is whole whoever panicked.
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if !claimed.get_or_insert_default().insert(target.to_path_buf()) {
            return Err(ConnectError::new("R0214", format!("`{name}` is written by two sinks of this job"))
                .help("give each its own file, or bring the rows together before: `union(a, b)`"));
        }
        Ok(Claim(target.to_path_buf()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(claimed) = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            claimed.remove(&self.0);
        }
    }
}

/// Where a file that isn't there yet will be, free of links. Its folder exists.
fn absent_target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    // A link to nothing leads to the file to make; links in a circle were refused by the system before.
    while let Ok(to) = fs::read_link(&path) {
        path = folder_of(&path).join(to);
    }
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    Ok(fs::canonicalize(folder_of(&path))?.join(name))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn create_temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    let name = target.file_name().ok_or_else(|| io::Error::other("the path names no file"))?.to_string_lossy();
    // What is added must not make a name too long that is long itself.
    let name = &name[..name.floor_char_boundary(200)];
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let temp = target.with_file_name(format!(".{name}.dfc-{}-{n}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temp) {
            Ok(file) => return Ok((file, temp)),
            // Left behind by a process of the same number that was killed.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

fn publish(temp: &Path, target: &Path, mode: Mode) -> io::Result<()> {
    if mode == Mode::Fail {
        // A link refuses an existing name, a rename would replace it.
        match fs::hard_link(temp, target) {
            Ok(()) => fs::remove_file(temp)?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(e),
            // File systems without links.
            Err(_) => fs::rename(temp, target)?,
        }
    } else {
        fs::rename(temp, target)?;
    }
    // The rename itself is durable only when the folder is.
    File::open(folder_of(target))?.sync_all()
}
