//! Checkpoints as a whole, on a disk that crashes.

mod carried;
mod crashes;
mod damage;
mod races;
mod swept;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, ModelDisk};
use crate::*;

const ROOT: &str = "/p/.dfc";
const SCHEMA: u64 = 7;

/// A storage that isn't a folder of this machine, so that each run has a lock of its own.
struct Far {
    storage: LocalStorage,
    /// What is there already when it is to be created is removed before it can be looked at, as by another run's retention.
    hasty: bool,
}

impl Storage for Far {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StorageError> {
        let created = self.storage.create(name, bytes)?;
        if !created && self.hasty {
            self.storage.delete(&[name.to_owned()])?;
        }
        Ok(created)
    }
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        self.storage.put(name, bytes)
    }
    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, StorageError> {
        self.storage.get(name, limit)
    }
    fn list(&self, below: &str) -> Result<Vec<Object>, StorageError> {
        self.storage.list(below)
    }
    fn delete(&self, names: &[String]) -> Result<(), StorageError> {
        self.storage.delete(names)
    }
    fn probe(&self, below: &str) -> Result<(), StorageError> {
        self.storage.probe(below)
    }
    fn local_path(&self, _: &str) -> Option<PathBuf> {
        None
    }
    fn place(&self, name: &str) -> String {
        format!("far://{name}")
    }
}

fn place(disk: &ModelDisk) -> Place {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let storage = Arc::new(LocalStorage::new(shared.clone(), PathBuf::from(ROOT)));
    Place { storage, local: PathBuf::from(ROOT), disk: shared }
}

fn open(disk: &ModelDisk) -> Result<Job, Error> {
    Job::open(place(disk), "shop", 0)
}

fn print() -> PlanPrint {
    let operator = OperatorPrint { name: "a".into(), what: "csv(\"a.csv\")".into(), hash: "1".into() };
    PlanPrint { job: "shop".into(), operators: vec![operator] }
}

/// What the state of a checkpoint is, in these tests: follows from its number.
fn content(number: u64, part: usize) -> Vec<u8> {
    format!("state of {number}, part {part}; ").repeat(part * 20 + 1).into_bytes()
}

/// Begins a state, or goes on with the one that is there.
fn begin(job: &Job) -> Result<Manifest, Error> {
    match job.newest(false)? {
        Some(newest) => Ok(newest),
        None => {
            let (lineage, number) = job.begin_lineage();
            job.publish(&Manifest::new(Kind::Start, number, lineage, print()))
        }
    }
}

/// A checkpoint after another: a new part, the one of before taken over, and an epoch of a sink with a spooled file.
fn next(job: &Job, before: &Manifest) -> Result<Manifest, Error> {
    let number = job.next_number().max(before.number + 1);
    let mut parts = vec![job.write_part(number, "a b", SCHEMA, &content(number, 0), &mut Vec::new())?];
    let second = job.write_part(number, "big", SCHEMA, &content(number, 1), &mut Vec::new())?;
    parts.push(second);
    // Every second part lives through two checkpoints.
    parts.extend(before.parts().filter(|part| part.name.ends_with("-big") && part.created_by + 2 > number).cloned());
    let mut manifest = Manifest::new(Kind::Regular, number, before.lineage.clone(), print());
    let operators = vec![OperatorState { node: "a".into(), kind: "groups".into(), parts }];
    manifest.stages.push(StageState { name: "stage 1".into(), ended: false, tasks: 1, operators });
    manifest.sinks.push(SinkState {
        node: "sink".into(),
        target: None,
        at_end: false,
        sealed: vec![spool(job, number)?],
    });
    job.publish(&manifest)
}

fn spool(job: &Job, number: u64) -> Result<Sealed, Error> {
    let folder = job.create_spool("sink")?;
    let bytes = content(number, 2);
    let path = format!("{number}.rows");
    let io = |error: std::io::Error| StorageError::io("write", Path::new(&path), &error);
    if job.disk().len(&folder.join(&path)).is_ok() {
        // What an attempt before this one has left, as sinks do.
        job.disk().remove(&folder.join(&path)).map_err(io)?;
    }
    let mut file = job.disk().create_new(&folder.join(&path)).map_err(io)?;
    file.write(&bytes).map_err(io)?;
    file.sync().map_err(io)?;
    job.disk().sync_folder(&folder).map_err(io)?;
    let file = SpoolFile { path, from: 3, to: bytes.len() as u64, crc: crc32fast::hash(&bytes[3..]) };
    Ok(Sealed { number, rows: 1, bytes: bytes.len() as u64, files: vec![file], state: serde_json::Value::Null })
}

/// Whether everything that a checkpoint names is what was written.
fn assert_whole(at: &Checkpoints, manifest: &Manifest) {
    for part in manifest.parts() {
        let which = usize::from(part.name.ends_with("-big"));
        assert_eq!(at.read_part(part, u64::MAX).expect("a part"), content(part.created_by, which), "{}", part.name);
    }
    let findings = at.verify(manifest.number).expect("the storage can be read");
    let wrong: Vec<_> = findings.iter().filter(|finding| finding.wrong.is_some()).collect();
    assert!(wrong.is_empty(), "checkpoint {}: {wrong:?}", manifest.number);
    assert!(findings.len() >= manifest.parts().count(), "{findings:?}");
}
