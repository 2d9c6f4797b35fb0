//! Spooled rows in an object store: where checkpoints aren't on this machine, the rows that belong to them aren't only here either, so that
//! another machine goes on exactly where this one stopped (D12, D13, F4).
//!
//! A closed file of a spool is copied in pieces before the manifest that names it is published, and brought back by a run that doesn't have it.
//! A copy's name says what is in it, so two runs that know nothing of one another can't overwrite each other's. What a sink keeps beside its
//! target is the target's, and is not carried.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use dfc_epoch::{Sealed, SpoolFile};

use crate::error::{Error, StorageError};
use crate::job::Job;
use crate::manifest::Manifest;
use crate::names;
use crate::retain::Applied;
use crate::storage::TEMPORARY;
use crate::view::Checkpoints;

/// Bytes of an object.
const PIECE: u64 = 32 << 20;
const SPOOL: &str = "spool";

impl Job {
    /// Copies an epoch's closed files of a sink's spool, if they would be on this machine only.
    ///
    /// # Errors
    /// When one can't be read or written, or doesn't fit in the quota; what was copied does no harm.
    pub fn carry(&self, node: &str, sealed: &Sealed) -> Result<(), Error> {
        for file in sealed.files.iter().filter(|file| self.is_carried(file)) {
            let path = self.spool_folder(node).join(&file.path);
            for (name, at, bytes) in self.pieces(node, file) {
                let piece =
                    self.disk().read(&path, at, bytes).map_err(|error| StorageError::io("read", &path, &error))?;
                self.fits(piece.len())?;
                self.storage().put(&name, &piece)?;
                self.stored(piece.len());
            }
        }
        Ok(())
    }

    /// Brings back the files of epochs that may have to be applied and aren't here. What nobody has is left to the sink, which knows whether
    /// it needs it.
    ///
    /// # Errors
    /// When one can't be read or written.
    pub fn fetch(&self, lineage: &str, node: &str, epochs: &[Sealed]) -> Result<(), Error> {
        let folder = self.create_spool(node)?;
        let done = self.applied()?.of(lineage, node);
        let needed = epochs.iter().filter(|epoch| epoch.number > done).flat_map(|epoch| &epoch.files);
        for file in needed.filter(|file| self.is_carried(file)) {
            if !self.disk().len(&folder.join(&file.path)).is_ok_and(|len| len >= file.to) {
                self.fetch_file(node, file, &folder)?;
            }
        }
        Ok(())
    }

    fn fetch_file(&self, node: &str, file: &SpoolFile, folder: &Path) -> Result<(), Error> {
        let (path, temporary) = (folder.join(&file.path), folder.join(format!("{TEMPORARY}{}", file.path)));
        let failed = |error: io::Error| Error::from(StorageError::io("write", &path, &error));
        match self.disk().remove(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut to = self.disk().create_new(&temporary).map_err(failed)?;
        for (name, _, bytes) in self.pieces(node, file) {
            match self.storage().get(&name, bytes) {
                Ok(piece) => to.write(&piece).map_err(failed)?,
                Err(StorageError::Missing { .. }) => return self.disk().remove(&temporary).map_err(failed),
                Err(error) => return Err(error.into()),
            }
        }
        to.sync().map_err(failed)?;
        self.disk().rename(&temporary, &path).map_err(failed)?;
        self.disk().sync_folder(folder).map_err(failed)
    }

    /// Removes the copies that no target has to be given any more, as far as these checkpoints and `applied` say.
    ///
    /// # Errors
    /// When the storage can't be read or written.
    pub(crate) fn sweep_carried(&self, stay: &[Manifest], applied: &Applied) -> Result<(), Error> {
        if !self.carries() {
            return Ok(());
        }
        let mut needed = HashSet::new();
        for manifest in stay {
            for sink in &manifest.sinks {
                let done = applied.done(&manifest.lineage, sink);
                let files = sink.sealed.iter().filter(|epoch| epoch.number > done).flat_map(|epoch| &epoch.files);
                needed.extend(files.flat_map(|file| self.pieces(&sink.node, file)).map(|(name, ..)| name));
            }
        }
        let there = self.storage().list(&self.name(SPOOL))?.into_iter().map(|object| object.name);
        let go: Vec<String> = there.filter(|name| !needed.contains(name)).collect();
        Ok(self.storage().delete(&go)?)
    }
}

impl Checkpoints {
    /// Whether checkpoints are elsewhere, and spooled rows with them.
    fn carries(&self) -> bool {
        self.storage().local_path(&self.name(SPOOL)).is_none()
    }

    /// A file of the spool's folder, and nothing else.
    fn is_carried(&self, file: &SpoolFile) -> bool {
        let plain = Path::new(&file.path).file_name().is_some_and(|name| name == file.path.as_str());
        self.carries() && plain && file.from == 0
    }

    /// The objects of a file, each with the place and the number of its bytes.
    fn pieces<'f>(&self, node: &str, file: &'f SpoolFile) -> impl Iterator<Item = (String, u64, u64)> + 'f {
        let (node, path) = (names::safe_name(node), names::safe_name(&file.path));
        let name = self.name(&format!("{SPOOL}/{node}/{path}-{:08x}-{}", file.crc, file.to));
        let pieces = file.to.div_ceil(PIECE);
        (0..pieces).map(move |piece| (format!("{name}.{piece}"), piece * PIECE, PIECE.min(file.to - piece * PIECE)))
    }

    /// Whether a file's copy is what was written; `None`: there is none.
    pub(crate) fn copy_is_whole(&self, node: &str, file: &SpoolFile) -> Result<Option<bool>, Error> {
        if !self.is_carried(file) {
            return Ok(None);
        }
        let mut hasher = crc32fast::Hasher::new();
        for (name, _, bytes) in self.pieces(node, file) {
            match self.storage().get(&name, bytes) {
                Ok(piece) => hasher.update(&piece),
                Err(StorageError::Missing { .. }) => return Ok(None),
                Err(StorageError::TooLarge { .. }) => return Ok(Some(false)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(hasher.finalize() == file.crc))
    }
}
