//! Retention (D16): what is no longer needed goes, and nothing else.
//!
//! Never removed: the newest checkpoints, savepoints, what some target may still have to be given, and every part that a checkpoint which
//! stays names. Parts of a checkpoint that is being written by anybody have a number above the newest manifest's, and stay.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::job::Job;
use crate::manifest::{Kind, Manifest};
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

impl Applied {
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
    /// Damaged ones stay: they are removed by name only, see [`Job::remove`].
    ///
    /// # Errors
    /// When the storage can't be read or written; what should stay has stayed.
    pub fn retain(&self, keep: u32) -> Result<Removed, Error> {
        let applied = self.applied()?;
        let savepoints = self.kept()?;
        let mut whole = 0;
        let mut stay = Vec::new();
        let mut go = Vec::new();
        for (number, manifest) in self.slots()?.into_iter().rev() {
            match manifest {
                Ok(Some(manifest)) => {
                    whole += 1;
                    let needed = whole <= keep.max(1)
                        || manifest.kind == Kind::Savepoint
                        || savepoints.contains_key(&number)
                        || manifest.is_unapplied(&applied);
                    if needed { stay.push(manifest) } else { go.push(number) }
                }
                // A number that was given up is of use only above the newest checkpoint's.
                Ok(None) if whole > 0 => go.push(number),
                Ok(None) | Err(_) => {}
            }
        }
        self.sweep(&stay, go)
    }

    /// Removes these checkpoints, whatever they are, but not the newest whole one; then the parts that no other names.
    ///
    /// # Errors
    /// `Unknown`: one of them isn't there. When the storage can't be read or written.
    pub fn remove(&self, numbers: &BTreeSet<u64>) -> Result<Removed, Error> {
        let slots = self.slots()?;
        let known: Vec<u64> = slots.iter().filter(|(_, slot)| !matches!(slot, Ok(None))).map(|(n, _)| *n).collect();
        if let Some(&number) = numbers.iter().find(|number| !known.contains(number)) {
            return Err(Error::Unknown { number, known });
        }
        let newest = slots.iter().rev().find_map(|(number, slot)| matches!(slot, Ok(Some(_))).then_some(*number));
        let (go, rest): (Vec<_>, Vec<_>) =
            slots.into_iter().partition(|(number, _)| numbers.contains(number) && Some(*number) != newest);
        let stay: Vec<Manifest> = rest.into_iter().filter_map(|(_, slot)| slot.ok().flatten()).collect();
        self.sweep(&stay, go.into_iter().map(|(number, _)| number).collect())
    }

    /// Removes manifests, durably, then parts: a crash in between leaves parts that nobody names, and the next sweep finds them.
    fn sweep(&self, stay: &[Manifest], mut go: Vec<u64>) -> Result<Removed, Error> {
        let Some(newest) = stay.iter().map(|manifest| manifest.number).max() else { return Ok(Removed::default()) };
        go.sort_unstable();
        let mut names: Vec<String> = go.iter().map(|number| self.manifest_name(*number)).collect();
        names.extend(go.iter().map(|number| self.kept_name(*number)));
        self.storage().delete(&names)?;
        let named: HashSet<&str> = stay.iter().flat_map(Manifest::parts).map(|part| part.name.as_str()).collect();
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
        Ok(removed)
    }
}

impl Checkpoints {
    /// Every number that is taken, ascending: with its checkpoint, `None` if it was given up, or why that can't be read.
    pub(crate) fn slots(&self) -> Result<Vec<(u64, Result<Option<Manifest>, Error>)>, Error> {
        Ok(self.numbers()?.into_iter().map(|number| (number, self.slot(number))).collect())
    }
}
