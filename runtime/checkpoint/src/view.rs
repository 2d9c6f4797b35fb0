//! A job's checkpoints for reading: what commands need, and a run before it has the lock. It changes nothing but asks for savepoints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::error::{Damaged, Error, StorageError};
use crate::history::{self, History};
use crate::job::Place;
use crate::lock::{self, Holder};
use crate::manifest::{self, Manifest, Part};
use crate::names;
use crate::part::StoredPart;
use crate::retain::Applied;
use crate::savepoint::{Desk, SavepointAnswer, SavepointRequest};
use crate::storage::{Object, Storage};

const MANIFESTS: &str = "manifests";
const PARTS: &str = "parts";
const KEPT: &str = "kept";
const SMALL: u64 = 64 << 10;

/// What a checkpoint's number is given up with: it can't be taken any more, and makes no checkpoint.
pub(crate) const GIVEN_UP: &[u8] = b"given up\n";

/// A job's checkpoints.
pub struct Checkpoints {
    place: Place,
    job: String,
    folder: String,
    home: PathBuf,
}

/// Why a checkpoint is kept for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// In the words of the person who asked for it.
    pub note: Option<String>,
    /// When, in microseconds since 1970.
    pub at_micros: i64,
}

impl Checkpoints {
    /// Those of this job; there may be none.
    pub fn new(place: Place, job: &str) -> Checkpoints {
        let folder = names::safe_name(job);
        let home = place.storage.local_path(&folder).unwrap_or_else(|| place.local.join(&folder));
        Checkpoints { place, job: job.to_owned(), folder, home }
    }

    /// The job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Where they are, for people.
    pub fn describe(&self) -> String {
        self.storage().place(&self.folder)
    }

    /// The local folder of the lock and the spools.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The numbers that are taken, ascending: those of checkpoints, whole or not, and those that were given up.
    ///
    /// # Errors
    /// When the storage can't be listed.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, Error> {
        let objects = self.storage().list(&self.name(MANIFESTS))?;
        let mut numbers: Vec<u64> = objects.iter().filter_map(|object| names::number_of(object.file_name())).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// All checkpoints, ascending; instead of one that can't be read: why.
    ///
    /// # Errors
    /// When the storage can't be listed.
    pub fn manifests(&self) -> Result<Vec<(u64, Result<Manifest, Error>)>, Error> {
        let slots = self.slots()?;
        Ok(slots.into_iter().filter_map(|(number, slot)| Some((number, slot.transpose()?))).collect())
    }

    /// The checkpoint of a number.
    ///
    /// # Errors
    /// `Unknown`, or why it can't be read.
    pub fn read(&self, number: u64) -> Result<Manifest, Error> {
        match self.slot(number) {
            Ok(Some(manifest)) => Ok(manifest),
            Ok(None) | Err(Error::Storage(StorageError::Missing { .. })) => {
                let known = self.manifests()?.into_iter().map(|(number, _)| number).collect();
                Err(Error::Unknown { number, known })
            }
            Err(error) => Err(error),
        }
    }

    /// What is under a number; `None`: it was given up.
    pub(crate) fn slot(&self, number: u64) -> Result<Option<Manifest>, Error> {
        let bytes = self.storage().get(&self.manifest_name(number), manifest::LARGEST)?;
        if bytes.starts_with(GIVEN_UP) {
            return Ok(None);
        }
        manifest::decode(&bytes, &self.manifest_place(number), number, &self.job).map(Some)
    }

    /// The newest checkpoint; `None`: the job has never begun. Its manifest is whole, and its parts are there with their lengths.
    ///
    /// # Errors
    /// `Damaged` with the number of the newest older one that isn't, unless `allow_older`: then that one is the answer, and it is one of
    /// which every byte was looked at.
    pub fn newest(&self, allow_older: bool) -> Result<Option<Manifest>, Error> {
        let mut first = None;
        let mut parts = None;
        for number in self.numbers()?.into_iter().rev() {
            let manifest = match self.slot(number) {
                Ok(None) => continue,
                Ok(Some(manifest)) => {
                    if parts.is_none() {
                        parts = Some(self.part_objects()?);
                    }
                    let objects = parts.as_deref().unwrap_or_default();
                    self.parts_are_there(&manifest, objects)
                        .and_then(|()| match allow_older {
                            true => self.examine(&manifest),
                            false => Ok(()),
                        })
                        .map(|()| manifest)
                }
                Err(error) => Err(error),
            };
            match (manifest, &first) {
                (Ok(manifest), None) => return Ok(Some(manifest)),
                (Ok(manifest), Some(_)) if allow_older => return Ok(Some(manifest)),
                (Ok(manifest), Some(damaged)) => {
                    return Err(Error::Damaged { damaged: Damaged::clone(damaged), older: Some(manifest.number) });
                }
                (Err(Error::Damaged { damaged, .. }), _) => first = first.or(Some(damaged)),
                // Neither older nor damaged: somebody else's, or out of reach.
                (Err(error), _) => return Err(error),
            }
        }
        match first {
            Some(damaged) => Err(Error::Damaged { damaged, older: None }),
            None => Ok(None),
        }
    }

    fn parts_are_there(&self, manifest: &Manifest, objects: &[Object]) -> Result<(), Error> {
        let lengths: BTreeMap<&str, u64> = objects.iter().map(|object| (object.file_name(), object.bytes)).collect();
        for part in manifest.parts() {
            let why = match lengths.get(part.name.as_str()) {
                Some(bytes) if *bytes == part.bytes => continue,
                Some(bytes) => format!("it has {bytes} bytes, the manifest says {}", part.bytes),
                None => "it is not there".into(),
            };
            let place = self.part_place(&part.name);
            return Err(Damaged { number: Some(manifest.number), place, why }.into());
        }
        Ok(())
    }

    /// The bytes of a part.
    ///
    /// # Errors
    /// `Damaged`: it isn't there, isn't what was written, or holds more than `limit` bytes.
    pub fn read_part(&self, part: &Part, limit: u64) -> Result<Vec<u8>, Error> {
        let unpacked = self.read_stored(part, limit)?.unpack();
        unpacked.map_err(|why| self.damaged_part(part, why))
    }

    /// A part as it is stored, looked at byte for byte, but not yet unpacked.
    ///
    /// # Errors
    /// As with [`Checkpoints::read_part`].
    pub fn read_stored(&self, part: &Part, limit: u64) -> Result<StoredPart, Error> {
        if !names::is_safe(&part.name) {
            return Err(self.damaged_part(part, "this isn't the name of a part".into()));
        }
        let stored = match self.storage().get(&self.part_name(&part.name), part.bytes) {
            Ok(stored) => stored,
            Err(StorageError::Missing { .. }) => return Err(self.damaged_part(part, "it is not there".into())),
            Err(StorageError::TooLarge { .. }) => {
                let why = format!("it has more than the {} bytes that the manifest says", part.bytes);
                return Err(self.damaged_part(part, why));
            }
            Err(error) => return Err(error.into()),
        };
        StoredPart::new(part, stored, limit).map_err(|why| self.damaged_part(part, why))
    }

    /// What is wrong with a part, as an error that names its place.
    pub fn damaged_part(&self, part: &Part, why: String) -> Error {
        Damaged { number: Some(part.created_by), place: self.part_place(&part.name), why }.into()
    }

    /// What became of the last checkpoints. What can't be read is forgotten: it only serves people.
    ///
    /// # Errors
    /// When the storage can't be read.
    pub fn history(&self) -> Result<History, Error> {
        Ok(self.note(&self.name("history.json"), history::LARGEST)?.unwrap_or_default())
    }

    /// Whether a run has come to its end with a checkpoint: all that it wrote is applied.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn has_finished(&self, manifest: &Manifest) -> Result<bool, Error> {
        Ok(manifest.kind == manifest::Kind::Terminal && self.applied()?.finished(&manifest.lineage) >= manifest.number)
    }

    /// How far the sinks are. What can't be read counts as nothing: then more is kept, and the ledgers are asked.
    ///
    /// # Errors
    /// When the storage can't be read.
    pub fn applied(&self) -> Result<Applied, Error> {
        Ok(self.note(&self.name("applied.json"), SMALL)?.unwrap_or_default())
    }

    /// The checkpoints that were made savepoints, with the reasons.
    ///
    /// # Errors
    /// When the storage can't be read.
    pub fn kept(&self) -> Result<BTreeMap<u64, Kept>, Error> {
        let mut kept = BTreeMap::new();
        for object in self.storage().list(&self.name(KEPT))? {
            if let Some(number) = names::number_of(object.file_name()) {
                let unread = Kept { note: None, at_micros: 0 };
                kept.insert(number, self.note(&object.name, SMALL)?.unwrap_or(unread));
            }
        }
        Ok(kept)
    }

    /// Makes a checkpoint a savepoint: retention doesn't remove it any more.
    ///
    /// # Errors
    /// `Unknown`: there is none of this number. When the storage can't be written.
    pub fn keep(&self, number: u64, kept: &Kept) -> Result<(), Error> {
        self.read(number)?;
        self.put_note(&self.kept_name(number), kept)
    }

    /// Bytes that checkpoints and spools take.
    ///
    /// # Errors
    /// When they can't be listed.
    pub fn used_bytes(&self) -> Result<u64, Error> {
        let mut used: u64 = self.storage().list(&self.folder)?.iter().map(|object| object.bytes).sum();
        if self.storage().local_path(&self.folder).is_none() {
            let local = crate::LocalStorage::new(self.place.disk.clone(), self.home.clone());
            used += local.list("")?.iter().map(|object| object.bytes).sum::<u64>();
        }
        Ok(used)
    }

    /// Who runs the job on this machine: `None` nobody, `Some(None)` somebody who didn't say.
    ///
    /// # Errors
    /// When that can't be found out.
    pub fn running(&self) -> Result<Option<Option<Holder>>, Error> {
        lock::look(&*self.place.disk, &self.lock_path())
    }

    /// Asks the process that runs the job for a savepoint.
    ///
    /// # Errors
    /// When the request can't be written.
    pub fn ask_savepoint(&self, note: Option<&str>) -> Result<SavepointRequest, Error> {
        self.desk().ask(note)
    }

    /// The answer to a request, once.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn savepoint_answer(&self, request: &SavepointRequest) -> Result<Option<SavepointAnswer>, Error> {
        self.desk().answered(request)
    }

    /// Takes a request back.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn withdraw_savepoint(&self, request: &SavepointRequest) -> Result<(), Error> {
        self.desk().withdraw(request)
    }

    /// The local folder of a sink's spool. A run creates it with [`crate::Job::create_spool`].
    pub fn spool_folder(&self, node: &str) -> PathBuf {
        self.home.join("spool").join(names::safe_name(node))
    }

    pub(crate) fn desk(&self) -> Desk<'_> {
        Desk { disk: self.disk(), home: &self.home }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.place.disk
    }

    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.place.storage
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.home.join("lock")
    }

    /// Below the job's folder.
    pub(crate) fn name(&self, below: &str) -> String {
        format!("{}/{below}", self.folder)
    }

    pub(crate) fn manifest_name(&self, number: u64) -> String {
        self.name(&format!("{MANIFESTS}/{}", names::numbered(number)))
    }

    pub(crate) fn manifest_place(&self, number: u64) -> String {
        self.storage().place(&self.manifest_name(number))
    }

    pub(crate) fn manifest_bytes(&self, number: u64) -> Result<u64, Error> {
        let name = self.manifest_name(number);
        let objects = self.storage().list(&self.name(MANIFESTS))?;
        Ok(objects.iter().find(|object| object.name == name).map_or(0, |object| object.bytes))
    }

    pub(crate) fn kept_name(&self, number: u64) -> String {
        self.name(&format!("{KEPT}/{}", names::numbered(number)))
    }

    pub(crate) fn part_name(&self, part: &str) -> String {
        self.name(&format!("{PARTS}/{part}"))
    }

    pub(crate) fn part_place(&self, part: &str) -> String {
        self.storage().place(&self.part_name(part))
    }

    pub(crate) fn part_objects(&self) -> Result<Vec<Object>, Error> {
        Ok(self.storage().list(&self.name(PARTS))?)
    }

    fn note<T: DeserializeOwned>(&self, name: &str, limit: u64) -> Result<Option<T>, Error> {
        match self.storage().get(name, limit) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(StorageError::Missing { .. } | StorageError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn put_note(&self, name: &str, note: &impl Serialize) -> Result<(), Error> {
        // Plain data with words as keys: it can't fail to be written as JSON.
        Ok(self.storage().put(name, &serde_json::to_vec(note).unwrap_or_default())?)
    }
}

/// The checkpoint for which a part was written, by its name.
pub(crate) fn part_number(name: &str) -> Option<u64> {
    let (number, rest) = name.split_once('-')?;
    (number.len() >= 10 && !rest.is_empty()).then(|| number.parse().ok()).flatten()
}
