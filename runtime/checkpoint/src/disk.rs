//! What checkpoints need of a file system, and nothing else: so that a model that crashes can stand in for it.
//!
//! A path may be durable in two ways: its bytes ([`DiskFile::sync`]) and its name ([`Disk::sync_folder`] of the folder it stands in).
//! Neither follows from the other.

#[cfg(any(test, feature = "model"))]
mod model;
mod real;

use std::io;
use std::path::Path;

#[cfg(any(test, feature = "model"))]
pub use model::{Crash, ModelDisk};
pub use real::RealDisk;

/// A file system.
pub trait Disk: Send + Sync + 'static {
    /// Creates an empty file that only its owner may read (0600).
    ///
    /// # Errors
    /// `AlreadyExists`: there is something under this name.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for appending.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Reads up to `limit` bytes from an offset; fewer only at the end of the file.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn read(&self, path: &Path, from: u64, limit: u64) -> io::Result<Vec<u8>>;

    /// A file's length in bytes.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Cuts a file to this length; durable only with a later sync.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()>;

    /// Gives a file another name, in place of what has it.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// `AlreadyExists`: somebody has taken the name. `PermissionDenied`, `Unsupported`: this file system has no links.
    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name of a file.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// What a folder holds, sorted by name.
    ///
    /// # Errors
    /// `NotFound`, and what the system says.
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>>;

    /// Creates one folder that only its owner may enter (0700).
    ///
    /// # Errors
    /// `AlreadyExists`; `NotFound`: its parent isn't there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Whether this is a folder (through links).
    fn is_folder(&self, path: &Path) -> bool;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Locks a file, created if needed, for this process; `None`: another one has it. The lock ends when the answer is dropped, or with
    /// the process.
    ///
    /// # Errors
    /// What the system says.
    fn try_lock(&self, path: &Path, how: LockKind) -> io::Result<Option<Box<dyn Locked>>>;

    /// A number that nobody else has: for names of temporary files and identities.
    fn token(&self) -> u128;
}

/// An open file.
pub trait DiskFile: Send {
    /// Writes at the end.
    ///
    /// # Errors
    /// What the system says; some of the bytes may have been written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes its bytes durable.
    ///
    /// # Errors
    /// What the system says. After that it isn't known which bytes are: the file must not be used any more.
    fn sync(&mut self) -> io::Result<()>;
}

/// How a file is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// To own it: nobody else has it in any way.
    Exclusive,
    /// To look whether somebody owns it.
    Shared,
}

/// A lock that is held.
pub trait Locked: Send + Sync {
    /// Puts these bytes in the place of the locked file's.
    ///
    /// # Errors
    /// What the system says.
    fn set_bytes(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name. Names that aren't UTF-8 are never dfc's and are left out.
    pub name: String,
    /// Whether it is a folder itself. Links count as what they are: as files.
    pub folder: bool,
    /// Bytes in it; 0 for folders.
    pub bytes: u64,
}

/// Creates a folder with its parents, and makes the names of all of them durable, also of those that are there: a process that was killed may
/// have created them and got no further.
///
/// # Errors
/// What the system says.
pub fn settle_folders(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    settle_below(disk, path, Path::new(""))
}

/// The same for a folder below one whose own name is durable already.
///
/// # Errors
/// What the system says.
pub fn settle_below(disk: &dyn Disk, path: &Path, durable: &Path) -> io::Result<()> {
    create_folders(disk, path)?;
    let parents = path.ancestors().skip(1).take_while(|parent| parent.starts_with(durable));
    for parent in parents.filter(|parent| !parent.as_os_str().is_empty()) {
        match disk.sync_folder(parent) {
            // Whoever may not read it hasn't created what is in it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            synced => synced?,
        }
    }
    Ok(())
}

/// Creates a folder with its parents, durably.
///
/// # Errors
/// What the system says.
pub fn create_folders(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if disk.is_folder(path) {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_folders(disk, parent)?;
    }
    match disk.create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && disk.is_folder(path) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(io::ErrorKind::NotADirectory.into()),
        Err(error) => return Err(error),
    }
    disk.sync_folder(parent.unwrap_or(Path::new(".")))
}
