//! A temporary file that another run takes for residue before it gets its own name.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::disk::{DiskFile, Entry, LockKind, Locked};

/// A disk on which the next file to get its own name is removed just before.
struct Swept {
    disk: ModelDisk,
    due: AtomicBool,
}

impl Swept {
    fn sweep(&self, temporary: &Path) -> io::Result<()> {
        if self.due.swap(false, Ordering::Relaxed) { self.disk.remove(temporary) } else { Ok(()) }
    }
}

impl Disk for Swept {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create_new(path)
    }
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.disk.append(path)
    }
    fn read(&self, path: &Path, from: u64, limit: u64) -> io::Result<Vec<u8>> {
        self.disk.read(path, from, limit)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        self.disk.truncate(path, len)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.sweep(from)?;
        self.disk.rename(from, to)
    }
    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.sweep(from)?;
        self.disk.link_new(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.disk.list(folder)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn is_folder(&self, path: &Path) -> bool {
        self.disk.is_folder(path)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.sync_folder(folder)
    }
    fn try_lock(&self, path: &Path, how: LockKind) -> io::Result<Option<Box<dyn Locked>>> {
        self.disk.try_lock(path, how)
    }
    fn token(&self) -> u128 {
        self.disk.token()
    }
}

fn storage() -> (LocalStorage, Arc<Swept>) {
    let swept = Arc::new(Swept { disk: ModelDisk::new(1), due: AtomicBool::new(true) });
    (LocalStorage::new(swept.clone(), PathBuf::from(ROOT)), swept)
}

#[test]
fn it_is_written_once_more() {
    let (storage, swept) = storage();
    assert_eq!(storage.create("a", b"1"), Ok(true));
    swept.due.store(true, Ordering::Relaxed);
    assert_eq!(storage.put("a", b"2"), Ok(()));
    assert_eq!(storage.get("a", 9), Ok(b"2".to_vec()));
}

/// What the other run has put under the name stands, and tells this one that it isn't alone.
#[test]
fn the_other_runs_object_stays() {
    let (storage, swept) = storage();
    swept.due.store(false, Ordering::Relaxed);
    assert_eq!(storage.create("a", b"the other's"), Ok(true));
    swept.due.store(true, Ordering::Relaxed);
    assert_eq!(storage.create("a", b"mine"), Ok(false));
    assert_eq!(storage.get("a", 99), Ok(b"the other's".to_vec()));
}
