//! Spooled rows of a job whose checkpoints are elsewhere: what another machine finds, and what nobody needs any more.

use super::*;
use crate::disk::RealDisk;

struct Machines {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
}

impl Machines {
    fn new() -> Machines {
        Machines { folder: tempfile::tempdir().expect("a folder"), disk: Arc::new(RealDisk) }
    }

    fn place(&self, machine: &str) -> Place {
        let bucket = LocalStorage::new(self.disk.clone(), self.folder.path().join("bucket"));
        let local = self.folder.path().join(machine).join(".dfc");
        Place { storage: Arc::new(Far { storage: bucket, hasty: false }), local, disk: self.disk.clone() }
    }

    fn job(&self, machine: &str) -> Job {
        Job::open(self.place(machine), "shop", 0).expect("the job is free")
    }

    /// Objects of spooled rows in the bucket.
    fn copies(&self) -> Vec<PathBuf> {
        let folder = self.folder.path().join("bucket/shop/spool/sink");
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        files
    }
}

/// An epoch of a file with these bytes.
fn sealed(job: &Job, number: u64, bytes: &[u8]) -> Sealed {
    let folder = job.create_spool("sink").expect("made");
    let path = format!("{number}.rows");
    std::fs::write(folder.join(&path), bytes).expect("written");
    let file = SpoolFile { path, from: 0, to: bytes.len() as u64, crc: crc32fast::hash(bytes) };
    Sealed { number, rows: 1, bytes: bytes.len() as u64, files: vec![file], state: serde_json::Value::Null }
}

fn publish(job: &Job, sealed: Vec<Sealed>) -> Manifest {
    let lineage = job.newest(false).expect("whole").map_or_else(|| "1".repeat(32), |newest| newest.lineage);
    let mut manifest = Manifest::new(Kind::Regular, job.next_number() + 2, lineage, print());
    manifest.sinks.push(SinkState { node: "sink".into(), target: None, at_end: false, sealed });
    job.publish(&manifest).expect("published")
}

#[test]
fn another_machine_finds_what_was_spooled() {
    let machines = Machines::new();
    // More than one object, and none.
    let large: Vec<u8> = (0..70_000_001u32).map(|n| (n / 7) as u8).collect();
    let first = machines.job("first");
    let epochs = vec![sealed(&first, 1, &large), sealed(&first, 2, b"")];
    for epoch in &epochs {
        first.carry("sink", epoch).expect("copied");
    }
    let manifest = publish(&first, epochs.clone());
    assert_eq!(machines.copies().len(), 3);
    drop(first);

    let second = machines.job("second");
    assert!(second.verify(manifest.number).expect("readable").iter().all(|found| found.wrong.is_none()));
    second.fetch(&manifest.lineage, "sink", &epochs).expect("brought");
    let brought = |epoch: &Sealed| std::fs::read(second.spool_folder("sink").join(&epoch.files[0].path)).expect("here");
    assert!(brought(&epochs[0]) == large && brought(&epochs[1]).is_empty());
    // A copy that is another one's, or nobody's, is what it says.
    let copies = machines.copies();
    std::fs::write(&copies[1], b"something else").expect("written");
    std::fs::remove_dir_all(second.spool_folder("sink")).expect("removed");
    let wrong = |job: &Job| {
        let findings = job.verify(manifest.number).expect("readable");
        findings.into_iter().find_map(|found| found.wrong)
    };
    assert_eq!(wrong(&second).as_deref(), Some("it is not there"));
    std::fs::remove_file(&copies[1]).expect("removed");
    second.fetch(&manifest.lineage, "sink", &epochs[..1]).expect("left to the sink");
    assert!(std::fs::read_dir(second.spool_folder("sink")).expect("a folder").next().is_none());
}

#[test]
fn copies_count_for_the_quota() {
    let machines = Machines::new();
    let job = machines.job("first");
    let epoch = sealed(&job, 1, &[7; 5_000]);
    // The file itself is counted too.
    let used = job.used_bytes().expect("listed");
    job.measure(used + 4_999).expect("there is room");
    let refused = job.carry("sink", &epoch).expect_err("one byte too many");
    assert!(matches!(refused, Error::Storage(StorageError::Full { .. })), "{refused}");
    assert!(machines.copies().is_empty());
    job.measure(used + 5_000).expect("there is room");
    job.carry("sink", &epoch).expect("copied");
}

#[test]
fn what_is_applied_is_neither_kept_nor_fetched() {
    let machines = Machines::new();
    let first = machines.job("first");
    let epochs = vec![sealed(&first, 1, b"one"), sealed(&first, 2, b"two")];
    for epoch in &epochs {
        first.carry("sink", epoch).expect("copied");
    }
    let manifest = publish(&first, epochs.clone());
    first.retain(3).expect("retained");
    assert_eq!(machines.copies().len(), 2, "both may have to be applied");
    first.note_applied(&manifest.lineage, "sink", 1).expect("noted");
    first.retain(3).expect("retained");
    assert_eq!(machines.copies().len(), 1);
    drop(first);
    let second = machines.job("second");
    second.fetch(&manifest.lineage, "sink", &epochs).expect("brought");
    let here = std::fs::read_dir(second.spool_folder("sink")).expect("a folder").flatten();
    let names: Vec<String> = here.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["2.rows"]);
}
