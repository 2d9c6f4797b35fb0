//! A crash or a fault at every single operation (D20): the newest checkpoint that was reported is there, and all of it.

use std::io::ErrorKind;

use super::*;
use crate::disk::Crash;

/// What a run has been told, so must be true after any crash.
#[derive(Default)]
struct Told {
    newest: Option<u64>,
    savepoints: Vec<u64>,
}

/// A run of a job: checkpoints, retention, a savepoint, notes. `give_up`: a checkpoint that fails is abandoned, as a coordinator does.
fn run(disk: &ModelDisk, checkpoints: u64, give_up: bool, told: &mut Told) -> Result<(), Error> {
    let job = open(disk)?;
    let mut last = begin(&job)?;
    told.newest = Some(last.number);
    for round in 0..checkpoints {
        match next(&job, &last) {
            Ok(manifest) => last = manifest,
            Err(error) if give_up => {
                assert!(!disk.is_stopped(), "{error}");
                // The number is used up: whether the manifest exists is not known.
                continue;
            }
            Err(error) => return Err(error),
        }
        told.newest = Some(last.number);
        let kept = Kept { note: Some("before the move".into()), at_micros: 1 };
        if round == 1 {
            match job.keep(last.number, &kept) {
                Ok(()) => told.savepoints.push(last.number),
                Err(_) if give_up => {}
                Err(error) => return Err(error),
            }
        }
        let notes = job
            .note_applied(&last.lineage, "sink", last.number)
            .and_then(|()| job.retain(2))
            .and_then(|_| job.record_failure(1, "none"));
        match notes {
            Err(error) if !give_up => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// After whatever happened: what was told is true, all that is there is whole, and the job can go on.
fn check(disk: &ModelDisk, told: &Told, what: &str) {
    let at = Checkpoints::new(place(disk), "shop");
    let newest = at.newest(false).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(
        newest.as_ref().map(|manifest| manifest.number) >= told.newest,
        "{what}: {newest:?}, told {:?}",
        told.newest
    );
    for (number, manifest) in at.manifests().expect("a list") {
        assert_whole(&at, &manifest.unwrap_or_else(|error| panic!("{what}: {number}: {error}")));
    }
    for savepoint in &told.savepoints {
        assert!(
            at.read(*savepoint).is_ok() && at.kept().expect("a list").contains_key(savepoint),
            "{what}: {savepoint}"
        );
    }
    let mut again = Told::default();
    run(disk, 3, false, &mut again).unwrap_or_else(|error| panic!("{what}, afterwards: {error}"));
    let left = disk.files();
    assert!(left.iter().all(|(path, _)| !path.to_string_lossy().contains(".tmp-")), "{what}: {left:?}");
    let numbers = at.manifests().expect("a list").len();
    assert!(numbers <= 2 + told.savepoints.len() + 2, "{what}: {numbers} are kept");
    let named: Vec<String> = at
        .manifests()
        .expect("a list")
        .into_iter()
        .flat_map(|(_, manifest)| manifest.expect("whole").parts().map(|part| part.name.clone()).collect::<Vec<_>>())
        .collect();
    for object in at.part_objects().expect("a list") {
        assert!(named.iter().any(|name| name == object.file_name()), "{what}: {} is nobody's", object.name);
    }
}

fn operations() -> u64 {
    let disk = ModelDisk::new(0);
    run(&disk, 4, false, &mut Told::default()).expect("without a crash");
    disk.operations()
}

#[test]
fn a_crash_at_every_operation() {
    let all = operations();
    assert!(all > 150, "{all}");
    for at in 0..all {
        let seeds: &[u64] = &[1, 2, 3];
        let crashes = seeds.iter().map(|seed| (*seed, Crash::Power)).chain([(0, Crash::Process)]);
        for (seed, crash) in crashes {
            let disk = ModelDisk::new(seed * 1000 + at);
            disk.crash_at(at, crash);
            let mut told = Told::default();
            run(&disk, 4, false, &mut told).expect_err("it has crashed");
            disk.restart(crash);
            check(&disk, &told, &format!("crash {crash:?} at {at}, seed {seed}"));
        }
    }
}

#[test]
fn a_crash_while_recovering_from_a_crash() {
    let all = operations();
    for seed in 0..150u64 {
        let disk = ModelDisk::new(seed);
        let mut told = Told::default();
        let mut random = seed;
        for _ in 0..4 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            disk.crash_at(disk.operations() + (random >> 33) % all, Crash::Power);
            // Whether it comes so far depends on the number.
            let _ = run(&disk, 4, false, &mut told);
            disk.restart(Crash::Power);
        }
        check(&disk, &told, &format!("seed {seed}"));
    }
}

/// What a run goes on from, and may have applied to its targets, is still the newest after a power cut: also where the run before it came
/// to give a manifest its name, but not to make that durable.
#[test]
fn what_is_gone_on_from_is_durable() {
    let mut seen = 0;
    for at in 0..operations() {
        for seed in 0..4 {
            let disk = ModelDisk::new(seed * 1000 + at);
            disk.crash_at(at, Crash::Process);
            run(&disk, 4, false, &mut Told::default()).expect_err("it has crashed");
            disk.restart(Crash::Process);
            let Some(newest) = open(&disk).expect("opens").newest(false).expect("whole") else { continue };
            disk.crash_at(disk.operations(), Crash::Power);
            assert!(open(&disk).is_err(), "the machine has stopped");
            disk.restart(Crash::Power);
            let again = open(&disk).expect("opens").newest(false).expect("whole").map(|manifest| manifest.number);
            assert_eq!(again, Some(newest.number), "stopped at {at}, seed {seed}");
            seen += 1;
        }
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn a_fault_at_every_operation_costs_one_checkpoint_at_most() {
    for kind in [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::PermissionDenied] {
        for at in 0..operations() {
            let disk = ModelDisk::new(at);
            disk.fault_at(at, kind);
            let mut told = Told::default();
            let first = run(&disk, 4, true, &mut told);
            disk.restart(Crash::Power);
            check(&disk, &told, &format!("{kind:?} at {at}, {first:?}"));
        }
    }
}

#[test]
fn an_answer_that_was_lost_is_no_loss() {
    // The link is there, its folder's sync failed: publishing again finds its own.
    for at in 0..30 {
        let disk = ModelDisk::new(at);
        let job = open(&disk).expect("opens");
        let start = begin(&job).expect("begins");
        let manifest = Manifest::new(Kind::Regular, 1, start.lineage.clone(), print());
        disk.fault_at(disk.operations() + at, ErrorKind::Other);
        let mut tries = 1;
        while let Err(error) = job.publish(&manifest) {
            assert!(error.may_pass() && tries < 3, "{at}: {error}");
            tries += 1;
        }
        drop(job);
        disk.restart(Crash::Power);
        let newest = Checkpoints::new(place(&disk), "shop").newest(false).expect("whole").expect("there");
        assert_eq!(newest.number, 1);
    }
}
