//! Two runs that don't know of one another (a stopped process that wakes up beside its successor, on another machine): the race for the
//! next number has one winner, whatever was given up or removed in between.

use super::*;
use crate::disk::LockKind;
use dfc_trial::Planted;
use dfc_trial::turns::Simulation;

fn far(disk: &ModelDisk, machine: &str) -> Job {
    open_far(disk, machine, false)
}

fn open_far(disk: &ModelDisk, machine: &str, hasty: bool) -> Job {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let storage = Arc::new(Far { storage: LocalStorage::new(shared.clone(), PathBuf::from("/far")), hasty });
    let place = Place { storage, local: PathBuf::from(format!("/{machine}")), disk: shared };
    Job::open(place, "shop", 0).expect("opens")
}

/// Two to four runs at once: how many numbers were won, and lost. Panics where one goes on from what isn't the newest.
fn race(seeds: std::ops::Range<u64>) -> (u64, u64) {
    let (mut won, mut lost) = (0, 0);
    for seed in seeds {
        let disk = ModelDisk::new(seed);
        let mut random = seed;
        let mut chance = move |of: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % of
        };
        let first = far(&disk, "one");
        let mut newest = begin(&first).expect("begins");
        // Each run with the checkpoint that it goes on from; `None`: it has stopped.
        let mut runs = vec![Some((first, newest.clone()))];
        for _ in 0..20 {
            let at = chance(runs.len() as u64) as usize;
            match chance(6) {
                0 if runs.len() < 4 => {
                    let job = far(&disk, &format!("machine{}", runs.len()));
                    let from = job.newest(false).expect("whole").expect("there");
                    assert_eq!(from.number, newest.number, "seed {seed}");
                    runs.push(Some((job, from)));
                }
                1 => {
                    if let Some((job, from)) = &runs[at] {
                        // Even one that is late removes nothing that the newest needs.
                        job.note_applied(&from.lineage, "sink", from.number).expect("a note");
                        job.retain(1).expect("retention");
                    }
                }
                _ => {
                    let Some((job, from)) = runs[at].take() else { continue };
                    // Some numbers are abandoned before.
                    let number = job.next_number() + chance(3);
                    let part =
                        job.write_part(number, "p", SCHEMA, &content(number, 0), &mut Vec::new()).expect("a part");
                    let mut manifest = Manifest::new(Kind::Regular, number, from.lineage.clone(), print());
                    let operators = vec![OperatorState { node: "a".into(), kind: "k".into(), parts: vec![part] }];
                    manifest.stages.push(StageState { name: "s".into(), ended: false, tasks: 1, operators });
                    match job.publish(&manifest) {
                        Ok(published) => {
                            assert_eq!(
                                from.number, newest.number,
                                "seed {seed}: it goes on from what isn't the newest"
                            );
                            newest = published.clone();
                            runs[at] = Some((job, published));
                            won += 1;
                        }
                        Err(Error::Lost { .. }) => {
                            assert_ne!(from.number, newest.number, "seed {seed}: nobody else has gone on");
                            lost += 1;
                        }
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
            }
            let at = far(&disk, "reader");
            let whole = at.newest(true).expect("whole").expect("there");
            assert_eq!(whole, newest, "seed {seed}");
        }
    }
    (won, lost)
}

#[test]
fn one_of_two_wins_each_number() {
    let (won, lost) = race(0..2000);
    assert!(won > 5000 && lost > 500, "{won} {lost}");
}

/// The other run's manifest is removed by its retention between the attempt to create one of the same name and the look at whose it is.
#[test]
fn a_number_whose_manifest_is_gone_already_is_lost() {
    let disk = ModelDisk::new(1);
    let first = open_far(&disk, "one", true);
    let newest = begin(&first).expect("begins");
    let second = far(&disk, "two");
    next(&second, &newest).expect("the second goes on");
    let error = next(&first, &newest).expect_err("the number is taken");
    assert_eq!(error.code(), "R0504", "{error}");
}

/// A planted fault: without it being created only if absent, a manifest takes another one's place, and that is seen.
#[test]
fn an_overwritten_manifest_is_seen() {
    let planted = Some(Planted::ManifestOverwritten);
    let seen = std::panic::catch_unwind(|| Simulation { planted, ..Simulation::new(1) }.run(|| race(0..20)));
    assert!(seen.is_err());
}

#[test]
fn one_run_at_a_time_on_one_machine() {
    let disk = ModelDisk::new(1);
    let at = Checkpoints::new(place(&disk), "shop");
    assert_eq!(at.running(), Ok(None));
    let job = open(&disk).expect("the first");
    let error = open(&disk).err().expect("the second");
    let text = error.to_string();
    assert!(text.starts_with("another run of job `shop` is going on: process "), "{text}");
    assert_eq!((error.code(), error.may_pass()), ("R0502", false));
    assert_eq!(at.running().expect("a look").expect("it runs").expect("says who").pid, std::process::id());
    drop(job);
    assert_eq!(at.running(), Ok(None));
    // Who only looks doesn't keep a run from starting.
    let looking = disk.try_lock(&at.home().join("lock"), LockKind::Shared).expect("a lock").expect("free");
    let later = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(looking);
    });
    open(&disk).expect("once nobody looks");
    later.join().expect("the thread");
}

#[test]
fn a_savepoint_is_asked_for_and_answered() {
    let disk = ModelDisk::new(1);
    let at = Checkpoints::new(place(&disk), "shop");
    let stale = at.ask_savepoint(None).expect("asks");
    let job = open(&disk).expect("opens");
    assert_eq!(job.savepoints_asked(), Ok(vec![]), "whoever asked the run before waits for nothing");
    assert_eq!(at.savepoint_answer(&stale), Ok(None));
    let one = at.ask_savepoint(Some("before the move")).expect("asks");
    let two = at.ask_savepoint(None).expect("asks");
    let asked = job.savepoints_asked().expect("a list");
    assert!(asked.len() == 2 && asked.contains(&one) && asked.contains(&two), "{asked:?}");
    job.answer_savepoint(&one, &SavepointAnswer::Taken(7)).expect("answers");
    at.withdraw_savepoint(&two).expect("withdraws");
    assert_eq!(job.savepoints_asked(), Ok(vec![]));
    assert_eq!(at.savepoint_answer(&one), Ok(Some(SavepointAnswer::Taken(7))));
    assert_eq!(at.savepoint_answer(&one), Ok(None), "it is given once");
}
