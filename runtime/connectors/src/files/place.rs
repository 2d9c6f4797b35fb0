//! Where an output goes: the standard output, a pipe or device, or a file, free of links. It may not know what is written.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::input::Compression;
use super::output::Mode;
use super::paths::{io_error, refuse_nul};
use crate::ConnectError;

/// Where an output goes.
pub(crate) enum Place {
    /// `-`
    Stdout,
    /// A pipe or a device: it can't be replaced.
    Direct(File),
    /// A file.
    File {
        /// Its final path, free of links. Its folder exists.
        target: PathBuf,
        /// The rights of the file that is there now.
        present: Option<fs::Permissions>,
        /// The right to write it.
        claim: Claim,
    },
}

impl Place {
    /// Looks where a path leads. Missing folders are made.
    ///
    /// # Errors
    /// It is a folder, can't be written, or is written by another sink.
    pub(crate) fn find(name: &str) -> Result<Self, ConnectError> {
        let fail = |e: io::Error| io_error("write", name, &e);
        refuse_nul(name)?;
        if name == "-" {
            return Ok(Place::Stdout);
        }
        let path = Path::new(name);
        let present = match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(ConnectError::new("R0204", format!("can't write `{name}`: it is a folder"))
                    .help("name the file to write in it, or end the path with `/` for a folder of parts"));
            }
            Ok(meta) if !meta.is_file() => {
                return Ok(Place::Direct(OpenOptions::new().write(true).open(path).map_err(fail)?));
            }
            Ok(meta) => Some(meta.permissions()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(fail(e)),
        };
        let target = match present {
            // A link stays a link: the file that it points to is replaced.
            Some(_) => fs::canonicalize(path).map_err(fail)?,
            None => {
                if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
                    make_folder(parent).map_err(fail)?;
                }
                absent_target(path).map_err(fail)?
            }
        };
        let claim = Claim::new(&target, name)?;
        Ok(Place::File { target, present, claim })
    }
}

/// The error of a file that may not be there.
pub(crate) fn exists(name: &str) -> ConnectError {
    ConnectError::new("R0207", format!("`{name}` exists already"))
        .help("remove it, or write `mode: overwrite` or `mode: append`")
}

/// Copies what a file holds, so that new rows can follow: its last line gets its end. Gives the number of bytes it had.
pub(super) fn copy_old(target: &Path, into: &mut impl Write, compression: Compression) -> io::Result<u64> {
    let mut old = File::open(target)?;
    let bytes = io::copy(&mut old, into)?;
    if compression == Compression::None && bytes > 0 {
        old.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        old.read_exact(&mut last)?;
        if last[0] != b'\n' {
            into.write_all(b"\n")?;
        }
    }
    Ok(bytes)
}

/// The files and folders that this process is writing.
static CLAIMED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

/// The right to write a file: two outputs of one file would replace each other, and one's rows would be lost.
pub(crate) struct Claim(PathBuf);

impl Claim {
    /// `target` is free of links, so that one file has one name.
    pub(super) fn new(target: &Path, name: &str) -> Result<Self, ConnectError> {
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

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The hidden name of something that belongs to a file and lies beside it: `.NAME.dfc-MORE`.
pub(crate) fn hidden_beside(target: &Path, more: &str) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| io::Error::other("the path names no file"))?.to_string_lossy();
    // What is added must not make a name too long that is long itself.
    let name = &name[..name.floor_char_boundary(200)];
    Ok(target.with_file_name(format!(".{name}.dfc-{more}")))
}

/// The unfinished files of jobs with checkpoints that lie beside a file, each with the digits of the lineage whose it is.
pub(crate) fn unfinished_beside(target: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let hidden = hidden_beside(target, "")?;
    let prefix = hidden.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder_of(target))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let lineage = name.strip_prefix(&prefix).and_then(|rest| rest.split(['.', '-']).next());
        if let Some(lineage) = lineage.filter(|digits| digits.len() == LINEAGE && name.ends_with(".part")) {
            found.push((lineage.to_owned(), folder_of(target).join(&name)));
        }
    }
    found.sort();
    Ok(found)
}

/// The first digits of a lineage that hidden names carry.
const LINEAGE: usize = 12;

/// Gives a finished file its final name, which lasts.
pub(crate) fn publish(temp: &Path, target: &Path, mode: Mode) -> io::Result<()> {
    dfc_trial::point("file-publish")?;
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
    dfc_trial::point("file-published")?;
    // The rename itself is durable only when the folder is.
    sync_folder(folder_of(target))
}

/// Makes a folder with those above it, durably: what is written into it would be lost with its name.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let above = path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty());
    let missing = above.take_while(|above| !above.exists()).count();
    fs::create_dir_all(path)?;
    // That it is there doesn't say that it lasts: a run that was killed may have made it and got no further.
    path.ancestors().take(missing + 1).try_for_each(|made| match sync_folder(folder_of(made)) {
        // Whoever may not read the folder above has been given this one by somebody else.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    })
}

/// Makes the names in a folder last.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
