//! Savepoints on demand: one process asks, the one that runs the job answers, through small files beside the lock.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::disk::{self, Disk};
use crate::error::{Error, StorageError};

const LARGEST: u64 = 64 << 10;
const FOLDER: &str = "savepoints";

/// Somebody wants a savepoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavepointRequest {
    /// Tells requests apart: 32 hexadecimal digits.
    pub id: String,
    /// What the savepoint is for, in the person's words.
    pub note: Option<String>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavepointAnswer {
    /// This checkpoint is it.
    Taken(u64),
    /// It couldn't be taken, because of this.
    Refused(String),
}

/// The files of all requests to one job.
pub(crate) struct Desk<'a> {
    pub disk: &'a dyn Disk,
    pub home: &'a Path,
}

impl Desk<'_> {
    fn path(&self, id: &str, kind: &str) -> PathBuf {
        self.home.join(FOLDER).join(format!("{id}.{kind}"))
    }

    /// Asks.
    pub(crate) fn ask(&self, note: Option<&str>) -> Result<SavepointRequest, Error> {
        let id = format!("{:032x}", self.disk.token());
        let request = SavepointRequest { id, note: note.map(str::to_owned) };
        self.write(&self.path(&request.id, "ask"), &request)?;
        Ok(request)
    }

    /// The requests that wait, oldest names first.
    pub(crate) fn asked(&self) -> Result<Vec<SavepointRequest>, Error> {
        let folder = self.home.join(FOLDER);
        let entries = match self.disk.list(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StorageError::io("list", &folder, &error).into()),
        };
        let mut requests = Vec::new();
        for id in entries.iter().filter_map(|entry| entry.name.strip_suffix(".ask")) {
            // What can't be read, or names another file than its own, is nobody's request.
            let request: Option<SavepointRequest> = self.read(&self.path(id, "ask"))?;
            requests.extend(request.filter(|request| request.id == id));
        }
        Ok(requests)
    }

    /// Answers.
    pub(crate) fn answer(&self, request: &SavepointRequest, answer: &SavepointAnswer) -> Result<(), Error> {
        self.write(&self.path(&request.id, "answer"), answer)?;
        self.remove(&self.path(&request.id, "ask"))
    }

    /// The answer, if there is one; it is given once.
    pub(crate) fn answered(&self, request: &SavepointRequest) -> Result<Option<SavepointAnswer>, Error> {
        let path = self.path(&request.id, "answer");
        let answer = self.read(&path)?;
        if answer.is_some() {
            self.remove(&path)?;
        }
        Ok(answer)
    }

    /// Takes a request back.
    pub(crate) fn withdraw(&self, request: &SavepointRequest) -> Result<(), Error> {
        self.remove(&self.path(&request.id, "ask"))?;
        self.remove(&self.path(&request.id, "answer"))
    }

    /// Under a temporary name first: the other side looks at any moment. It needn't be durable.
    fn write(&self, path: &Path, what: &impl Serialize) -> Result<(), Error> {
        let fail = |error: io::Error| StorageError::io("write", path, &error);
        disk::create_folders(self.disk, &self.home.join(FOLDER)).map_err(fail)?;
        let temporary = path.with_extension(format!("{:032x}", self.disk.token()));
        let text = serde_json::to_vec(what).unwrap_or_default();
        self.disk.create_new(&temporary).and_then(|mut file| file.write(&text)).map_err(fail)?;
        Ok(self.disk.rename(&temporary, path).map_err(fail)?)
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        match self.disk.read(path, 0, LARGEST) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StorageError::io("read", path, &error).into()),
        }
    }

    fn remove(&self, path: &Path) -> Result<(), Error> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StorageError::io("remove", path, &error).into())
            }
            _ => Ok(()),
        }
    }
}
