//! Retention (D16): what is no longer needed goes, and nothing else.
//!
//! Never removed: the newest checkpoints, savepoints, what some target may still have to be given, and every part that a checkpoint which
//! stays names. Parts of a checkpoint that is being written by anybody have a number above the newest manifest's, and stay.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use dfc_trial::{Planted, planted};
use serde::{Deserialize, Serialize};

use crate::error::{Error, StorageError};
use crate::job::Job;
use crate::manifest::{Kind, Manifest, SinkState};
use crate::view::{Checkpoints, part_number};

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// The checkpoints' numbers.
    pub checkpoints: Vec<u64>,
    /// Parts of state.
    pub parts: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How far each sink has been given what was sealed: a hint for retention and for people; the target's own ledger is the authority.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Applied {
    /// The state that it is about.
    pub lineage: String,
    /// The last applied number of each sink.
    pub sinks: BTreeMap<String, u64>,
}

/// The note under which it stands that a job has ended and everything is visible.
pub(crate) const FINISHED: &str = "(finished)";

impl Applied {
    /// The number of the checkpoint with which the job has ended; 0: it hasn't.
    pub fn finished(&self, lineage: &str) -> u64 {
        self.of(lineage, FINISHED)
    }

    /// Up to which number a sink's epochs are in its target and needed no more.
    pub fn done(&self, lineage: &str, sink: &SinkState) -> u64 {
        if sink.at_end { self.finished(lineage) } else { self.of(lineage, &sink.node) }
    }

    /// The last applied number of a sink, 0 if none is known.
    pub fn of(&self, lineage: &str, sink: &str) -> u64 {
        if self.lineage == lineage { self.sinks.get(sink).copied().unwrap_or(0) } else { 0 }
    }
}

impl Manifest {
    /// Whether some sink may still have to be given an epoch that it names.
    pub fn is_unapplied(&self, applied: &Applied) -> bool {
        self.sinks
            .iter()
            .any(|sink| sink.sealed.last().is_some_and(|last| last.number > applied.of(&self.lineage, &sink.node)))
    }
}

impl Job {
    /// Removes checkpoints but for the newest `keep` (at least one), savepoints and unapplied ones; then the parts that no other names.
    /// Damaged ones stay: they are removed one by one only, see [`Job::remove`].
    ///
    /// # Errors
    /// When the storage can't be read or written; what should stay has stayed.
    pub fn retain(&self, keep: u32) -> Result<Removed, Error> {
        let applied = self.applied()?;
        let savepoints = self.kept()?;
        let mut slots = Slots::read(self)?;
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        let lineage = slots.whole.last().map(|newest| newest.lineage.clone());
        for (place, manifest) in slots.whole.drain(..).rev().enumerate() {
            let needed = place < keep.max(1) as usize
                || manifest.kind == Kind::Savepoint
                || savepoints.contains_key(&manifest.number)
                // What was never applied of a state that was given up never will be.
                || Some(&manifest.lineage) == lineage.as_ref() && manifest.is_unapplied(&applied);
            if needed { stay.push(manifest) } else { go.push(manifest.number) }
        }
        // A number that was given up is of use only above the newest checkpoint's.
        let newest = stay.iter().map(|manifest| manifest.number).max();
        slots.given_up.retain(|number| Some(*number) < newest);
        self.sweep(&stay, go, &slots.given_up)
    }

    /// Removes a checkpoint, whatever it is, the newest too; then the parts that no other names.
    ///
    /// # Errors
    /// `Unknown`: it isn't there. When the storage can't be read or written.
    pub fn remove(&self, number: u64) -> Result<Removed, Error> {
        let mut slots = Slots::read(self)?;
        let known: Vec<u64> = slots.whole.iter().map(|manifest| manifest.number).chain(slots.damaged).collect();
        if !known.contains(&number) {
            return Err(Error::Unknown { number, known });
        }
        slots.whole.retain(|manifest| manifest.number != number);
        self.sweep(&slots.whole, vec![number], &[])
    }

    /// Removes manifests, durably, then parts: a crash in between leaves parts that nobody names, and the next sweep finds them.
    fn sweep(&self, stay: &[Manifest], mut go: Vec<u64>, given_up: &[u64]) -> Result<Removed, Error> {
        go.sort_unstable();
        let newest = stay.iter().map(|manifest| manifest.number).chain(go.last().copied()).max().unwrap_or(0);
        let mut names: Vec<String> = go.iter().chain(given_up).map(|number| self.manifest_name(*number)).collect();
        names.extend(go.iter().map(|number| self.kept_name(*number)));
        let passed = |name| dfc_trial::point(name).map_err(|e| StorageError::io("remove", Path::new(name), &e));
        passed("retain-manifests")?;
        self.storage().delete(&names)?;
        passed("retain-parts")?;
        let named = stay.iter().flat_map(Manifest::parts).map(|part| part.name.as_str());
        let named: HashSet<&str> = named.filter(|_| !planted(Planted::NamedPartRemoved)).collect();
        let mut removed = Removed { checkpoints: go, ..Removed::default() };
        let mut parts = Vec::new();
        for object in self.part_objects()? {
            let name = object.file_name();
            if part_number(name).is_some_and(|number| number <= newest) && !named.contains(name) {
                removed.parts += 1;
                removed.bytes += object.bytes;
                parts.push(object.name);
            }
        }
        self.storage().delete(&parts)?;
        self.sweep_carried(stay, &self.applied()?)?;
        Ok(removed)
    }
}

/// The numbers that are taken, each list ascending.
struct Slots {
    whole: Vec<Manifest>,
    damaged: Vec<u64>,
    given_up: Vec<u64>,
}

impl Slots {
    /// A checkpoint that can't be read for another reason than damage may be somebody's, and so may its parts: then nothing is removed.
    fn read(at: &Checkpoints) -> Result<Slots, Error> {
        let mut slots = Slots { whole: Vec::new(), damaged: Vec::new(), given_up: Vec::new() };
        for (number, slot) in at.slots()? {
            match slot {
                Ok(Some(manifest)) => slots.whole.push(manifest),
                Ok(None) => slots.given_up.push(number),
                Err(Error::Damaged { .. }) => slots.damaged.push(number),
                Err(error) => return Err(error),
            }
        }
        Ok(slots)
    }
}

impl Checkpoints {
    /// Every number that is taken, ascending: with its checkpoint, `None` if it was given up, or why that can't be read.
    pub(crate) fn slots(&self) -> Result<Vec<(u64, Result<Option<Manifest>, Error>)>, Error> {
        Ok(self.numbers()?.into_iter().map(|number| (number, self.slot(number))).collect())
    }
}
