//! Bad snapshots (D20): every byte of manifest, parts and spool changed or cut is a named error, never a panic, never another content.

use super::*;

fn written() -> (ModelDisk, Manifest, Manifest) {
    let disk = ModelDisk::new(1);
    let job = open(&disk).expect("opens");
    let start = begin(&job).expect("begins");
    let older = next(&job, &start).expect("a checkpoint");
    let newest = next(&job, &older).expect("a checkpoint");
    (disk, older, newest)
}

fn file(disk: &ModelDisk, ends: &str) -> (PathBuf, Vec<u8>) {
    disk.files().into_iter().find(|(path, _)| path.to_string_lossy().ends_with(ends)).expect("the file")
}

#[test]
fn every_byte_of_a_manifest() {
    let (disk, older, newest) = written();
    let (path, bytes) = file(&disk, "manifests/0000000002.json");
    let at = Checkpoints::new(place(&disk), "shop");
    let damaged = |changed: &[u8], what: &str| {
        disk.damage(&path, changed);
        match at.newest(false) {
            Err(Error::Damaged { damaged, older: Some(1) }) => {
                assert_eq!(
                    (damaged.number, damaged.place.as_str()),
                    (Some(2), "/p/.dfc/shop/manifests/0000000002.json")
                );
                assert!(!damaged.why.is_empty());
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(at.newest(true), Ok(Some(older.clone())), "{what}");
    };
    for position in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[position] ^= 1 << (position % 8);
        damaged(&changed, &format!("byte {position} changed"));
        damaged(&bytes[..position], &format!("cut to {position}"));
    }
    damaged(&[&bytes[..], b"\n"].concat(), "longer");
    damaged(&[&bytes[..], &bytes[..]].concat(), "twice");
    disk.damage(&path, &bytes);
    assert_eq!(at.newest(false), Ok(Some(newest)));
}

#[test]
fn every_byte_of_parts_and_spools() {
    let (disk, older, newest) = written();
    let at = Checkpoints::new(place(&disk), "shop");
    let newest_part = newest.parts().next().expect("a part");
    for ends in [newest_part.name.as_str(), "spool/sink/2.rows"] {
        let (path, bytes) = file(&disk, ends);
        let mut tries: Vec<(Vec<u8>, String)> = Vec::new();
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << (position % 8);
            // The spool's first three bytes aren't this epoch's.
            if !(ends.starts_with("spool") && position < 3) {
                tries.push((changed, format!("{ends}: byte {position} changed")));
            }
            tries.push((bytes[..position].to_vec(), format!("{ends}: cut to {position}")));
        }
        for (changed, what) in tries {
            disk.damage(&path, &changed);
            let found = at.verify(2).expect("readable");
            let wrong: Vec<_> = found.iter().filter(|finding| finding.wrong.is_some()).collect();
            assert!(wrong.len() == 1 && wrong[0].place == path.display().to_string(), "{what}: {wrong:?}");
            assert_eq!(at.newest(true).expect(&what).expect(&what), older, "{what}");
            if !ends.starts_with("spool") {
                let error = at.read_part(newest_part, u64::MAX).expect_err(&what);
                assert_eq!(error.code(), "R0503", "{what}: {error}");
            }
        }
        disk.damage(&path, &bytes);
    }
    assert_eq!(at.newest(true), Ok(Some(newest)));
}

#[test]
fn what_is_missing_is_named() {
    let (disk, _, newest) = written();
    let at = Checkpoints::new(place(&disk), "shop");
    let (path, _) = file(&disk, &newest.parts().next().expect("a part").name);
    disk.remove(&path).expect("removed");
    let error = at.newest(false).expect_err("a part is missing");
    assert_eq!(error.to_string(), format!("checkpoint 2 is damaged: `{}`: it is not there", path.display()));
    assert!(error.help().starts_with("checkpoint 1 before it is whole"), "{}", error.help());
    let error = at.read(9).expect_err("there is none");
    assert_eq!(error.to_string(), "there is no checkpoint 9; there are 0, 1, 2");
    let nothing = Checkpoints::new(place(&disk), "other");
    assert_eq!(nothing.read(9).expect_err("there is none").to_string(), "there is no checkpoint 9: the job has none");
    assert_eq!(nothing.newest(false), Ok(None));
}

/// A manifest that somebody wrote with a right check sum is no better for it.
#[test]
fn hostile_manifests_are_refused() {
    let part = |name: &str, created_by| Part {
        name: name.into(),
        bytes: 1,
        raw_bytes: 1,
        crc: 0,
        schema: 0,
        rows: 0,
        created_by,
    };
    let with_part = |m: &mut Manifest, part: Part| m.stages[0].operators[0].parts.push(part);
    let file = |m: &mut Manifest, path: &str, from, to| {
        m.sinks[0].sealed[0].files[0] = SpoolFile { path: path.into(), from, to, crc: 0 };
    };
    fn twice<T: Clone>(list: &mut Vec<T>) {
        list.push(list[0].clone());
    }
    type Spoil<'a> = &'a dyn Fn(&mut Manifest);
    let cases: [(Spoil, &str); 16] = [
        (&|m| m.number = 3, "it says that it is checkpoint 3"),
        (&|m| m.lineage = "../../etc".into(), "its lineage isn't 32 hexadecimal digits"),
        (&|m| m.writer = "x".into(), "its writer isn't 16 hexadecimal digits"),
        (&|m| m.parallelism = 0, "its parallelism is 0"),
        (&|m| with_part(m, part("../secret", 1)), "`../secret` isn't the name of a part"),
        (&|m| with_part(m, part("/etc/passwd", 1)), "`/etc/passwd` isn't the name of a part"),
        (&|m| with_part(m, part("", 1)), "`` isn't the name of a part"),
        (&|m| with_part(m, part("a\0b", 1)), "`a\\0b` isn't the name of a part"),
        (&|m| with_part(m, part("0000000009-x-y", 9)), "part `0000000009-x-y` was written for a later checkpoint, 9"),
        (&|m| file(m, "../x", 0, 1), "`../x` isn't a path of a spooled file"),
        (&|m| file(m, "", 0, 1), "`` isn't a path of a spooled file"),
        (&|m| file(m, "a/..", 0, 1), "`a/..` isn't a path of a spooled file"),
        (&|m| file(m, "x", 2, 1), "`x` ends at byte 1 and begins at 2"),
        (&|m| m.sinks[0].sealed[0].number = 5, "`sink` has an epoch 5 after the checkpoint"),
        (&|m| twice(&mut m.sinks), "sink `sink` is in it twice"),
        (&|m| twice(&mut m.sinks[0].sealed), "the epochs of `sink` aren't in order"),
    ];
    let (disk, _, newest) = written();
    let at = Checkpoints::new(place(&disk), "shop");
    let (path, _) = self::file(&disk, "manifests/0000000002.json");
    for (spoil, why) in cases {
        let mut manifest = newest.clone();
        spoil(&mut manifest);
        disk.damage(&path, &crate::manifest::encode(&manifest));
        let text = at.newest(false).expect_err(why).to_string();
        assert_eq!(text, format!("checkpoint 2 is damaged: `{}`: {why}", path.display()));
    }
    let mut other = newest.clone();
    other.pipeline.job = "stock".into();
    disk.damage(&path, &crate::manifest::encode(&other));
    let error = at.newest(true).expect_err("another job's");
    assert_eq!(error.to_string(), format!("`{}` is a checkpoint of job `stock`, not of `shop`", path.display()));
    let newer = Manifest { format: 2, ..newest };
    disk.damage(&path, &crate::manifest::encode(&newer));
    let error = at.newest(true).expect_err("a newer dfc's");
    let text = format!("`{}` was written by a newer dfc: its format is 2, this one knows up to 1", path.display());
    assert_eq!((error.to_string(), error.code()), (text, "R0507"));
    let job = open(&disk).expect("opens");
    assert_eq!(job.retain(1).expect_err("its parts are not known").code(), "R0507");
}

#[test]
fn rooms_and_places_that_are_none() {
    let disk = ModelDisk::new(1);
    let job = open(&disk).expect("opens");
    let start = begin(&job).expect("begins");
    let newest = next(&job, &start).expect("a checkpoint");
    let used = job.used_bytes().expect("a sum");
    assert!(used > 1000, "{used}");
    assert_eq!(job.measure(used * 2), Ok(Room { used, quota: used * 2 }));
    assert!(!Room { used, quota: used * 2 }.is_tight() && Room { used, quota: used + 1 }.is_tight());
    // What is to be written counts too, and what was written since: for two parts there is room, not for a third, nor for a manifest.
    job.measure(used * 2).expect("there is room");
    let part = |name: &str| job.write_part(newest.number + 1, name, SCHEMA, &content(9, 0), &mut Vec::new());
    let bytes = part("p").expect("a part").bytes;
    let quota = used + 2 * bytes;
    job.measure(quota).expect("there is room");
    part("q").expect("a part");
    let error = part("r").expect_err("no room");
    let why = format!("{quota} bytes are taken, {bytes} are to be added, and the job's quota is {quota}");
    let manifest = Manifest { number: job.next_number(), ..newest };
    assert_eq!(job.publish(&manifest).expect_err("no room").code(), "R0505");
    job.measure(quota * 2).expect("there is room");
    job.publish(&manifest).expect("published");
    assert_eq!(error.to_string(), format!("there is no room for checkpoints: can't write `/p/.dfc/shop`: {why}"));
    assert_eq!(error.code(), "R0505");
    let folder = Path::new("/p");
    let refused = |location: &str| open_storage(location, folder).err().expect("refused").to_string();
    assert_eq!(
        refused("gopher://x"),
        "checkpoints can't be kept in `gopher://x`: this dfc doesn't know `gopher` as a storage"
    );
    assert_eq!(refused(""), "checkpoints can't be kept in ``: no folder can have this name");
}

#[test]
fn on_a_real_disk() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = |storage| Place::open(storage, dir.path()).expect("a place");
    let job = Job::open(place(None), "shop/../x", 0).expect("opens");
    let error = Job::open(place(None), "shop/../x", 0).err().expect("it runs");
    assert_eq!(error.code(), "R0502");
    let (lineage, number) = job.begin_lineage();
    let print = PlanPrint { job: "shop/../x".into(), operators: vec![] };
    let part = job.write_part(number, "p", SCHEMA, &[1; 100_000], &mut Vec::new()).expect("a part");
    let mut manifest = Manifest::new(Kind::Regular, number, lineage, print);
    let operators = vec![OperatorState { node: "a".into(), kind: "k".into(), parts: vec![part.clone()] }];
    manifest.stages.push(StageState { name: "s".into(), ended: false, tasks: 1, operators });
    let published = job.publish(&manifest).expect("published");
    assert_eq!(job.newest(true), Ok(Some(published)));
    assert_eq!(job.read_part(&part, 100_000).expect("read"), [1; 100_000]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &str| dir.path().join(".dfc").join(path).metadata().expect("there").permissions().mode() & 0o777;
        for folder in ["", "shop%2F..%2Fx", "shop%2F..%2Fx/manifests", "shop%2F..%2Fx/parts"] {
            assert_eq!(mode(folder), 0o700, "{folder}");
        }
        for file in ["lock", "manifests/0000000000.json", &format!("parts/{}", part.name)] {
            assert_eq!(mode(&format!("shop%2F..%2Fx/{file}")), 0o600, "{file}");
        }
    }
    drop(job);
    std::fs::write(dir.path().join("file"), "").expect("a file");
    let error = Job::open(place(Some("file")), "x", 0).err().expect("a file is no folder");
    assert_eq!(
        error.to_string(),
        format!("checkpoints can't be kept in `{}`: not a directory", dir.path().join("file/x").display())
    );
    assert_eq!(error.code(), "R0501");
}
