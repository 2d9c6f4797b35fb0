//! One run of a job at a time: the lock beside its state. On one machine it decides; between machines the race for the manifest does.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::{Disk, LockKind, Locked};
use crate::error::{Error, StorageError};

/// Whoever only looks whether a job runs has its lock for an instant: a job that starts then asks again.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);
const LARGEST: u64 = 4096;

/// Who runs a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The process's number.
    pub pid: u32,
    /// The machine's name.
    pub host: String,
    /// Since when, in microseconds since 1970.
    pub since_micros: i64,
}

impl Holder {
    /// This process, from now on.
    pub(crate) fn here(now_micros: i64) -> Holder {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .or_else(|| std::env::var("HOSTNAME").ok())
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty());
        Holder {
            pid: std::process::id(),
            host: host.unwrap_or_else(|| "this machine".into()),
            since_micros: now_micros,
        }
    }
}

/// Takes the lock for a run.
pub(crate) fn take(disk: &dyn Disk, path: &Path, job: &str, holder: &Holder) -> Result<Box<dyn Locked>, Error> {
    for tried in 1.. {
        let taken = disk.try_lock(path, LockKind::Exclusive).map_err(|error| StorageError::io("lock", path, &error))?;
        if let Some(mut lock) = taken {
            // Its types can't fail to be written as JSON; who the holder is only serves a message.
            let text = serde_json::to_vec(holder).unwrap_or_default();
            lock.set_bytes(&text).map_err(|error| StorageError::io("write", path, &error))?;
            return Ok(lock);
        }
        if tried == TRIES {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Err(Error::Running { job: job.to_owned(), holder: read(disk, path), place: path.display().to_string() })
}

/// Who has the lock: `None` nobody, `Some(None)` somebody who didn't say.
pub(crate) fn look(disk: &dyn Disk, path: &Path) -> Result<Option<Option<Holder>>, Error> {
    match disk.len(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::io("read", path, &error).into()),
        Ok(_) => {}
    }
    match disk.try_lock(path, LockKind::Shared) {
        Ok(Some(_free)) => Ok(None),
        Ok(None) => Ok(Some(read(disk, path))),
        Err(error) => Err(StorageError::io("lock", path, &error).into()),
    }
}

fn read(disk: &dyn Disk, path: &Path) -> Option<Holder> {
    serde_json::from_slice(&disk.read(path, 0, LARGEST).ok()?).ok()
}
