//! A folder as storage. Every write goes to a temporary name first, created exclusively, and is made durable before it gets its own.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_trial::{Planted, planted, point};

use crate::disk::{self, Disk};
use crate::error::StorageError;
use crate::storage::{Object, Storage};

/// Begins the names of temporary files: a crash may leave them behind.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// A folder.
pub struct LocalStorage {
    disk: Arc<dyn Disk>,
    root: PathBuf,
}

impl LocalStorage {
    /// This folder; it is created with the first object.
    pub fn new(disk: Arc<dyn Disk>, root: PathBuf) -> LocalStorage {
        LocalStorage { disk, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes the bytes under a temporary name beside `path`, durably, and lets `place` give them their own; then makes that durable too.
    fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        place: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), (io::Error, PathBuf)> {
        match self.write_once(path, bytes, &place) {
            // Another run took the temporary file for residue of a process that is dead. What that run has made of the job is seen by what
            // stands under the name now.
            Err((error, _)) if error.kind() == io::ErrorKind::NotFound => self.write_once(path, bytes, &place),
            written => written,
        }
    }

    fn write_once(
        &self,
        path: &Path,
        bytes: &[u8],
        place: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), (io::Error, PathBuf)> {
        let folder = path.parent().unwrap_or(Path::new("."));
        disk::create_folders(&*self.disk, folder).map_err(|error| (error, folder.to_owned()))?;
        let temporary = folder.join(format!("{TEMPORARY}{:032x}", self.disk.token()));
        let written = (|| {
            let mut file = self.disk.create_new(&temporary)?;
            point("storage-write")?;
            file.write(bytes)?;
            point("storage-sync")?;
            if !planted(Planted::BytesNotSynced) {
                file.sync()?;
            }
            drop(file);
            point("storage-name")?;
            place(&temporary, path)
        })();
        if written.is_err() {
            // Perhaps it isn't there; if it can't be removed it is residue, which retention takes away.
            let _ = self.disk.remove(&temporary);
        }
        let sync = || if planted(Planted::FolderNotSynced) { Ok(()) } else { self.disk.sync_folder(folder) };
        written.and_then(|()| point("storage-named")).and_then(|()| sync()).map_err(|error| (error, path.to_owned()))
    }
}

impl Storage for LocalStorage {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StorageError> {
        let path = self.path(name);
        let linked = self.write(&path, bytes, |temporary, path| {
            if planted(Planted::ManifestOverwritten) {
                return self.disk.rename(temporary, path);
            }
            self.disk.link_new(temporary, path).map_err(|error| match error.kind() {
                // EPERM: the temporary file could be created in this folder, so it is not a question of rights.
                io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => io::ErrorKind::Unsupported.into(),
                _ => error,
            })?;
            self.disk.remove(temporary)
        });
        match linked {
            Ok(()) => Ok(true),
            Err((error, _)) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Whoever put it there may not have got so far as to make its name durable; who relies on it must be able to.
                let folder = path.parent().unwrap_or(Path::new("."));
                self.disk.sync_folder(folder).map_err(|error| StorageError::io("write", &path, &error))?;
                Ok(false)
            }
            Err((error, at)) => Err(match error.kind() {
                io::ErrorKind::Unsupported => StorageError::NoCreate {
                    place: self.root.display().to_string(),
                    why: "it has no hard links".into(),
                },
                _ => StorageError::io("write", &at, &error),
            }),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let path = self.path(name);
        self.write(&path, bytes, |temporary, path| self.disk.rename(temporary, path))
            .map_err(|(error, at)| StorageError::io("write", &at, &error))
    }

    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, StorageError> {
        let path = self.path(name);
        let read = point("storage-read").and_then(|()| self.disk.read(&path, 0, limit.saturating_add(1)));
        let bytes = read.map_err(|e| StorageError::io("read", &path, &e))?;
        if bytes.len() as u64 > limit {
            return Err(StorageError::TooLarge { place: path.display().to_string(), limit });
        }
        Ok(bytes)
    }

    fn list(&self, below: &str) -> Result<Vec<Object>, StorageError> {
        let mut objects = Vec::new();
        let mut folders = vec![(self.path(below), below.trim_end_matches('/').to_owned())];
        while let Some((folder, name)) = folders.pop() {
            let entries = match self.disk.list(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(StorageError::io("list", &folder, &error)),
            };
            for entry in entries {
                let name = if name.is_empty() { entry.name.clone() } else { format!("{name}/{}", entry.name) };
                if entry.folder {
                    folders.push((folder.join(&entry.name), name));
                } else {
                    objects.push(Object { name, bytes: entry.bytes });
                }
            }
        }
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }

    fn delete(&self, names: &[String]) -> Result<(), StorageError> {
        let mut folders = BTreeSet::new();
        for name in names {
            let path = self.path(name);
            match point("storage-remove").and_then(|()| self.disk.remove(&path)) {
                Ok(()) => folders.extend(path.parent().map(Path::to_owned)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StorageError::io("remove", &path, &error)),
            }
        }
        for folder in folders {
            self.disk.sync_folder(&folder).map_err(|error| StorageError::io("write", &folder, &error))?;
        }
        Ok(())
    }

    fn probe(&self, below: &str) -> Result<(), StorageError> {
        // A file system without links says so itself, at the first object, which is the beginning of a state. Names that a run before this
        // one gave and didn't come to make durable are relied on from now on.
        let folder = self.path(below);
        match self.disk.sync_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(|error| StorageError::io("write", &folder, &error)),
        }
    }

    fn local_path(&self, name: &str) -> Option<PathBuf> {
        Some(self.path(name))
    }

    fn place(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}
