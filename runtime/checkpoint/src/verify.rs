//! Looks at everything that a checkpoint names, byte by byte. It may not know what the state means: only that it is what was written.

use std::io;

use dfc_epoch::SpoolFile;

use crate::error::Error;
use crate::view::Checkpoints;

/// Bytes that are looked at in one piece.
const PIECE: u64 = 1 << 20;

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
            let done = applied.of(&manifest.lineage, &sink.node);
            for epoch in &sink.sealed {
                for file in &epoch.files {
                    findings.extend(self.spooled(&sink.node, file, epoch.number <= done));
                }
            }
        }
        for file in manifest.rejects.sealed.iter().flat_map(|epoch| &epoch.files) {
            findings.extend(self.spooled("rejects", file, false));
        }
        Ok(findings)
    }

    /// `None`: it is gone, and may be, because it was applied.
    fn spooled(&self, sink: &str, file: &SpoolFile, applied: bool) -> Option<Finding> {
        let path = self.spool_folder(sink).join(&file.path);
        let finding = |wrong| Finding { place: path.display().to_string(), bytes: file.to - file.from, wrong };
        let mut hasher = crc32fast::Hasher::new();
        let mut at = file.from;
        while at < file.to {
            match self.disk().read(&path, at, PIECE.min(file.to - at)) {
                Ok(bytes) if bytes.is_empty() => {
                    return Some(finding(Some(format!("it ends at byte {at}, the manifest says {}", file.to))));
                }
                Ok(bytes) => {
                    hasher.update(&bytes);
                    at += bytes.len() as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && applied => return None,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Some(finding(Some("it is not there".into())));
                }
                Err(error) => return Some(finding(Some(error.to_string()))),
            }
        }
        let right = hasher.finalize() == file.crc;
        let wrong = format!("bytes {} to {} don't have the check sum that the manifest says", file.from, file.to);
        Some(finding((!right).then_some(wrong)))
    }
}
