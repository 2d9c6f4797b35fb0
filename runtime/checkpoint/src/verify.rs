//! Looks at everything that a checkpoint names, byte by byte. It may not know what the state means: only that it is what was written.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use dfc_epoch::{Sealed, SpoolFile};

use crate::error::{Damaged, Error};
use crate::manifest::Manifest;
use crate::view::Checkpoints;

/// Bytes that are looked at in one piece.
const PIECE: u64 = 1 << 20;
/// What looks damaged while the job runs is looked at again, so often and for so long.
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);

/// What was found at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file or object.
    pub place: String,
    /// Bytes that were looked at.
    pub bytes: u64,
    /// What is wrong with it; `None`: nothing.
    pub wrong: Option<String>,
}

impl Checkpoints {
    /// Reads all that checkpoint `number` names: manifest, parts, spooled rows. Largest part, in memory at once: one.
    ///
    /// # Errors
    /// `Unknown`, or the storage can't be read; what is damaged is a finding.
    pub fn verify(&self, number: u64) -> Result<Vec<Finding>, Error> {
        let place = self.manifest_place(number);
        let manifest = match self.read(number) {
            Ok(manifest) => manifest,
            Err(error @ (Error::Damaged { .. } | Error::Newer { .. } | Error::OtherJob { .. })) => {
                let wrong = match error {
                    Error::Damaged { damaged, .. } => damaged.why,
                    other => other.to_string(),
                };
                return Ok(vec![Finding { place, bytes: 0, wrong: Some(wrong) }]);
            }
            Err(error) => return Err(error),
        };
        let mut findings = vec![Finding { place, bytes: self.manifest_bytes(number)?, wrong: None }];
        let begun = Instant::now();
        loop {
            let looked = self.look_at(&manifest)?;
            // Of a running job rows are given to a target and their spool is gone, before that is noted; and a checkpoint may be removed.
            if looked.iter().all(|found| found.wrong.is_none())
                || begun.elapsed() > PATIENCE
                || self.running()?.is_none()
            {
                findings.extend(looked);
                return Ok(findings);
            }
            std::thread::sleep(PAUSE);
            self.read(number)?;
        }
    }

    /// Looks at every byte that a checkpoint names, once.
    ///
    /// # Errors
    /// `Damaged`: at the first place that is.
    pub fn examine(&self, manifest: &Manifest) -> Result<(), Error> {
        let wrong = self.look_at(manifest)?.into_iter().find_map(|found| Some((found.place, found.wrong?)));
        match wrong {
            Some((place, why)) => Err(Damaged { number: Some(manifest.number), place, why }.into()),
            None => Ok(()),
        }
    }

    /// The checkpoint that `--allow-older` takes instead of a damaged one; `None`: that isn't damaged, or none before it is whole.
    pub fn instead_of(&self, manifest: &Manifest) -> Option<u64> {
        self.examine(manifest).err()?;
        let before = self.manifests().ok()?.into_iter().rev().filter(|(number, _)| *number < manifest.number);
        let mut whole = before.filter_map(|(_, older)| older.ok()).filter(|older| self.examine(older).is_ok());
        whole.next().map(|older| older.number)
    }

    /// Reads all that a checkpoint names.
    fn look_at(&self, manifest: &Manifest) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for part in manifest.parts() {
            let wrong = match self.read_part(part, part.raw_bytes) {
                Ok(_) => None,
                Err(Error::Damaged { damaged, .. }) => Some(damaged.why),
                Err(other) => return Err(other),
            };
            findings.push(Finding { place: self.part_place(&part.name), bytes: part.bytes, wrong });
        }
        let applied = self.applied()?;
        for sink in &manifest.sinks {
            // What is in the target is needed no more: its spool may be gone, or hold something else under the same name.
            let done = applied.done(&manifest.lineage, sink);
            let needed = sink.sealed.iter().filter(|epoch| epoch.number > done);
            for epoch in needed {
                for (at, file) in epoch.files.iter().enumerate() {
                    let mut found = self.spooled(&sink.node, file, given_name(epoch, at));
                    // What isn't on this machine is fetched from where its copy is.
                    if found.wrong.is_some() && self.copy_is_whole(&sink.node, file)? == Some(true) {
                        found.wrong = None;
                    }
                    findings.push(found);
                }
            }
        }
        if applied.finished(&manifest.lineage) < manifest.number {
            let files = manifest.rejects.sealed.iter().flat_map(|epoch| &epoch.files);
            findings.extend(files.map(|file| self.spooled("rejects", file, None)));
        }
        Ok(findings)
    }

    /// `given`: the name below the target's folder that a part of a folder gets when its epoch is applied.
    fn spooled(&self, sink: &str, file: &SpoolFile, given: Option<&Path>) -> Finding {
        let mut path = self.spool_folder(sink).join(&file.path);
        // It is given its final name before that is noted: whoever was killed in between has noted nothing.
        let is_there = |path: &Path| self.disk().len(path).is_ok();
        let shown = match given {
            Some(given) => path.parent().and_then(Path::parent).map(|folder| folder.join(given)),
            None => final_name(&path),
        };
        if let Some(shown) = shown.filter(|shown| !is_there(&path) && is_there(shown)) {
            path = shown;
        }
        let finding = |wrong| Finding { place: path.display().to_string(), bytes: file.to - file.from, wrong };
        let mut hasher = crc32fast::Hasher::new();
        let mut at = file.from;
        while at < file.to {
            match self.disk().read(&path, at, PIECE.min(file.to - at)) {
                Ok(bytes) if bytes.is_empty() => {
                    return finding(Some(format!("it ends at byte {at}, the manifest says {}", file.to)));
                }
                Ok(bytes) => {
                    hasher.update(&bytes);
                    at += bytes.len() as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return finding(Some("it is not there".into()));
                }
                Err(error) => return finding(Some(error.to_string())),
            }
        }
        let right = hasher.finalize() == file.crc;
        let wrong = format!("bytes {} to {} don't have the check sum that the manifest says", file.from, file.to);
        finding((!right).then_some(wrong))
    }
}

/// The name below its target's folder that a part is given when its epoch is applied, where its sink says so.
fn given_name(epoch: &Sealed, at: usize) -> Option<&Path> {
    let name = Path::new(epoch.state.get("names")?.get(at)?.as_str()?);
    name.components().all(|part| matches!(part, Component::Normal(_))).then_some(name)
}

/// The name that a file with a hidden one, `.NAME.dfc-LINEAGE.part`, is given when it is whole.
fn final_name(hidden: &Path) -> Option<PathBuf> {
    let name = hidden.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(".part")?;
    let (name, _) = name.rsplit_once(".dfc-")?;
    Some(hidden.with_file_name(name))
}
