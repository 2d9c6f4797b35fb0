//! A job's checkpoints for the run that has the lock: parts, manifests, notes.
//!
//! Numbers are taken without gaps: before checkpoint n is published, every number since the last one that was given up is taken too. So two
//! runs that don't know of one another always want the same next number, and one of them loses.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{self, Disk, Locked, RealDisk};
use crate::error::{Error, StorageError};
use crate::history::{History, HistoryEntry};
use crate::lock::{self, Holder};
use crate::manifest::{self, FORMAT, Manifest, Part};
use crate::retain::Applied;
use crate::savepoint::{SavepointAnswer, SavepointRequest};
use crate::storage::{Storage, open_storage};
use crate::view::{Checkpoints, GIVEN_UP};
use crate::{names, part};

/// Where a job's checkpoints are, and what is always local.
#[derive(Clone)]
pub struct Place {
    /// Manifests and parts.
    pub storage: Arc<dyn Storage>,
    /// Lock and spools of jobs whose storage isn't a local folder: `.dfc` beside the pipeline.
    pub local: PathBuf,
    /// The local file system.
    pub disk: Arc<dyn Disk>,
}

impl Place {
    /// The place that a pipeline's `storage:` names, relative to its folder; without one `.dfc` beside it. Nothing is created yet.
    ///
    /// # Errors
    /// `Location`: it is no storage.
    pub fn open(storage: Option<&str>, pipeline_folder: &Path) -> Result<Place, Error> {
        let storage = open_storage(storage.unwrap_or(".dfc"), pipeline_folder)?;
        Ok(Place { storage, local: pipeline_folder.join(".dfc"), disk: Arc::new(RealDisk) })
    }
}

/// How much of a job's quota is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes taken.
    pub used: u64,
    /// Bytes that may be.
    pub quota: u64,
}

impl Room {
    /// Whether less than a tenth of the quota is left: worth a warning.
    pub fn is_tight(&self) -> bool {
        self.used > self.quota / 10 * 9
    }
}

/// A job's checkpoints, for its only run.
pub struct Job {
    at: Checkpoints,
    writer: String,
    notes: Mutex<Notes>,
    /// Given back when this is dropped.
    _lock: Box<dyn Locked>,
}

struct Notes {
    /// The largest number that is taken; `None`: none is.
    last: Option<u64>,
    applied: Applied,
    history: History,
    /// How much may be stored, once it was measured.
    room: Option<Room>,
}

impl Deref for Job {
    type Target = Checkpoints;

    fn deref(&self) -> &Checkpoints {
        &self.at
    }
}

impl Job {
    /// Locks the job, creates its folders, tries the storage and removes what a crash has left half-written.
    ///
    /// # Errors
    /// `Running`: another process has the lock. When the storage can't be used.
    pub fn open(place: Place, job: &str, now_micros: i64) -> Result<Job, Error> {
        let at = Checkpoints::new(place, job);
        let home = at.home();
        let settled = disk::settle_folders(at.disk(), home).and_then(|()| at.disk().sync_folder(home));
        settled.map_err(|error| match StorageError::io("create", home, &error) {
            StorageError::Failed { why, .. } | StorageError::Missing { place: why } => StorageError::Location {
                place: home.display().to_string(),
                why,
                help: "name a folder with `checkpoint { storage: \"…\" }`, or switch checkpoints off with `checkpoint: off`".into(),
            },
            other => other,
        })?;
        let lock = lock::take(at.disk(), &at.lock_path(), job, &Holder::here(now_micros))?;
        at.storage().probe(&at.name("manifests"))?;
        at.remove_temporary()?;
        for request in at.desk().asked()? {
            // Whoever asked the run before this one has waited for nothing.
            at.desk().withdraw(&request)?;
        }
        let notes =
            Notes { last: at.numbers()?.last().copied(), applied: at.applied()?, history: at.history()?, room: None };
        let writer = format!("{:016x}", at.disk().token() as u64);
        Ok(Job { at, writer, notes: Mutex::new(notes), _lock: lock })
    }

    /// Removes the job's folders if nothing is kept in them: a job that can't take checkpoints leaves nothing behind. The lock stays this
    /// run's until it is dropped.
    pub fn vanish(&self) {
        if self.numbers().is_ok_and(|numbers| numbers.is_empty()) && self.kept().is_ok_and(|kept| kept.is_empty()) {
            let home = self.home();
            for name in ["applied.json", "history.json", "lock"] {
                let _ = self.disk().remove(&home.join(name));
            }
            for folder in ["manifests", "parts", "kept", "savepoints"] {
                let _ = std::fs::remove_dir(home.join(folder));
            }
            if let Ok(spools) = std::fs::read_dir(home.join("spool")) {
                spools.flatten().for_each(|spool| drop(std::fs::remove_dir(spool.path())));
            }
            // Only where they are empty: others' stay.
            let _ = std::fs::remove_dir(home.join("spool"));
            let _ = std::fs::remove_dir(home);
            if let Some(folder) = home.parent().filter(|folder| folder.file_name().is_some_and(|name| name == ".dfc")) {
                let _ = std::fs::remove_dir(folder);
            }
        }
    }

    /// Draws the identity of a state that begins now, and the number for its [`crate::Kind::Start`].
    pub fn begin_lineage(&self) -> (String, u64) {
        let number = self.notes().last.map_or(0, |last| last + 1);
        (format!("{:032x}", self.disk().token()), number)
    }

    /// The number after all that are taken.
    pub fn next_number(&self) -> u64 {
        self.notes().last.map_or(0, |last| last + 1)
    }

    /// Writes a part, durably, under a name that no other run can use. `schema` identifies the form of its bytes; `room` is memory for
    /// their stored form, which the next part can use again.
    ///
    /// # Errors
    /// When it can't be written, or doesn't fit in the quota; nothing names it then.
    pub fn write_part(
        &self,
        checkpoint: u64,
        name: &str,
        schema: u64,
        bytes: &[u8],
        room: &mut Vec<u8>,
    ) -> Result<Part, Error> {
        let crc = part::encode(schema, bytes, room);
        let name = format!("{checkpoint:010}-{}-{}", self.writer, names::safe_name(name));
        self.fits(room.len())?;
        self.storage().put(&self.part_name(&name), room)?;
        self.stored(room.len());
        Ok(Part {
            name,
            bytes: room.len() as u64,
            raw_bytes: bytes.len() as u64,
            crc,
            schema,
            rows: 0,
            created_by: checkpoint,
        })
    }

    /// Makes a checkpoint exist. After an error that may pass the same manifest can be published again. The answer is it as it was written.
    ///
    /// # Errors
    /// `Lost`: another run has taken the number, or a later one. This run must stop, and apply nothing of it.
    pub fn publish(&self, manifest: &Manifest) -> Result<Manifest, Error> {
        let manifest = Manifest { format: FORMAT, writer: self.writer.clone(), ..manifest.clone() };
        let number = manifest.number;
        let bytes = manifest::encode(&manifest);
        // What couldn't be read again must not be relied on.
        manifest::decode(&bytes, &self.manifest_place(number), number, self.job())?;
        self.fits(bytes.len())?;
        let first = self.notes().last.map_or(number, |last| last + 1);
        for skipped in first..number {
            self.give_up(skipped)?;
        }
        let passed = |name| dfc_trial::point(name).map_err(|e| StorageError::io("write", Path::new(name), &e));
        passed("manifest")?;
        if !self.storage().create(&self.manifest_name(number), &bytes)? && !self.is_mine(number, &bytes)? {
            return Err(self.lost(number));
        }
        passed("manifest-there")?;
        // The number may have been free only because retention has long removed what was there.
        if let Some(later) = self.numbers()?.last().filter(|last| **last > number) {
            return Err(self.lost(*later));
        }
        self.notes().last = Some(number);
        self.stored(bytes.len());
        Ok(manifest)
    }

    /// Takes the next number without a checkpoint. Whoever else goes on from where this run does, a process that was stopped, given up for dead
    /// and wakes up, has no number any more that it could publish under: what it has left behind may be removed from now on.
    ///
    /// # Errors
    /// `Lost`: it was faster, and this run has to begin again. When the storage can't be written.
    pub fn fence(&self) -> Result<(), Error> {
        self.give_up(self.next_number())
    }

    /// Takes a number without a checkpoint. One of this run's own that exists after all (the answer was lost) stays.
    fn give_up(&self, number: u64) -> Result<(), Error> {
        let bytes = [GIVEN_UP, self.writer.as_bytes(), b"\n"].concat();
        if self.storage().create(&self.manifest_name(number), &bytes)? || self.is_mine(number, &bytes)? {
            self.notes().last = Some(number);
            return Ok(());
        }
        match self.slot(number) {
            Ok(Some(manifest)) if manifest.writer == self.writer => Ok(()),
            _ => Err(self.lost(number)),
        }
    }

    fn is_mine(&self, number: u64, bytes: &[u8]) -> Result<bool, Error> {
        match self.storage().get(&self.manifest_name(number), bytes.len() as u64) {
            Ok(there) => Ok(there == bytes),
            // It was there just now: one of this run's own would be, another's has been removed by that run's retention.
            Err(StorageError::TooLarge { .. } | StorageError::Missing { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn lost(&self, number: u64) -> Error {
        Error::Lost { number, place: self.manifest_place(number) }
    }

    /// A sink's spool folder, created.
    ///
    /// # Errors
    /// When it can't be created.
    pub fn create_spool(&self, node: &str) -> Result<PathBuf, Error> {
        let folder = self.spool_folder(node);
        // The job's own folder is durable since it was opened.
        let settled = disk::settle_below(self.disk(), &folder, self.home());
        settled.map_err(|error| StorageError::io("create", &folder, &error))?;
        Ok(folder)
    }

    /// Notes that a sink has been given everything up to this number.
    ///
    /// # Errors
    /// When the note can't be written: then more is kept than need be.
    pub fn note_applied(&self, lineage: &str, sink: &str, number: u64) -> Result<(), Error> {
        let mut notes = self.notes();
        if notes.applied.lineage != lineage {
            notes.applied = Applied { lineage: lineage.to_owned(), ..Applied::default() };
        }
        notes.applied.sinks.insert(sink.to_owned(), number);
        dfc_trial::point("note-applied").map_err(|e| StorageError::io("write", Path::new("applied.json"), &e))?;
        self.put_note(&self.name("applied.json"), &notes.applied)
    }

    /// Notes that the job has ended with this checkpoint and that everything is visible.
    ///
    /// # Errors
    /// When the note can't be written: then the next run looks whether anything is left to do.
    pub fn note_finished(&self, lineage: &str, number: u64) -> Result<(), Error> {
        self.note_applied(lineage, crate::retain::FINISHED, number)
    }

    /// Remembers what became of a checkpoint.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn record(&self, entry: HistoryEntry) -> Result<(), Error> {
        self.remember(|history| history.add(entry))
    }

    /// Remembers why the job stopped in the middle.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn record_failure(&self, at_micros: i64, why: &str) -> Result<(), Error> {
        self.remember(|history| history.failure = Some((at_micros, why.to_owned())))
    }

    fn remember(&self, change: impl FnOnce(&mut History)) -> Result<(), Error> {
        let mut notes = self.notes();
        change(&mut notes.history);
        self.put_note(&self.name("history.json"), &notes.history)
    }

    /// Measures how much of a quota is taken. From now on parts and manifests are written only where they fit in what is left of it.
    ///
    /// # Errors
    /// When it can't be found out how much there is.
    pub fn measure(&self, quota: u64) -> Result<Room, Error> {
        let room = Room { used: self.used_bytes()?, quota };
        self.notes().room = Some(room);
        Ok(room)
    }

    /// Whether so many more bytes fit in the quota.
    pub(crate) fn fits(&self, adding: usize) -> Result<(), Error> {
        match self.notes().room {
            Some(Room { used, quota }) if used.saturating_add(adding as u64) > quota => {
                let why = format!("{used} bytes are taken, {adding} are to be added, and the job's quota is {quota}");
                Err(StorageError::Full { place: self.describe(), why }.into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn stored(&self, bytes: usize) {
        if let Some(room) = &mut self.notes().room {
            room.used = room.used.saturating_add(bytes as u64);
        }
    }

    /// The savepoints that somebody waits for.
    ///
    /// # Errors
    /// When the requests can't be read.
    pub fn savepoints_asked(&self) -> Result<Vec<SavepointRequest>, Error> {
        self.desk().asked()
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the answer can't be written.
    pub fn answer_savepoint(&self, request: &SavepointRequest, answer: &SavepointAnswer) -> Result<(), Error> {
        self.desk().answer(request, answer)
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // What is in it is whole between any two statements.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpoints {
    /// What writes that a crash has cut off left behind. Only with the lock: nobody else writes then.
    fn remove_temporary(&self) -> Result<(), Error> {
        let spools = self.name("spool/");
        let mut names = self.storage().list(&self.name(""))?;
        names.retain(|object| {
            object.file_name().starts_with(crate::storage::TEMPORARY) && !object.name.starts_with(&spools)
        });
        let names: Vec<String> = names.into_iter().map(|object| object.name).collect();
        Ok(self.storage().delete(&names)?)
    }
}
