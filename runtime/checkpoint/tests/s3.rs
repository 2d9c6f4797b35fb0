//! Checkpoints in a bucket, against a real server of the S3 protocol, with a wire that loses answers.

#[path = "../../../tests/support/s3.rs"]
mod s3;

use std::path::Path;

use dfc_checkpoint::*;

fn print() -> PlanPrint {
    PlanPrint { job: "shop".into(), operators: vec![] }
}

fn take(job: &Job, lineage: &str, kind: Kind, number: u64) -> Result<Manifest, Error> {
    let part = job.write_part(number, "groups", 7, &number.to_le_bytes().repeat(10_000), &mut Vec::new())?;
    let mut manifest = Manifest::new(kind, number, lineage, print());
    let operators = vec![OperatorState { node: "a".into(), kind: "groups".into(), parts: vec![part] }];
    manifest.stages.push(StageState { name: "s".into(), ended: false, tasks: 1, operators });
    job.publish(&manifest)
}

/// One test: the variables that name the server are the whole process's.
#[test]
fn a_bucket_keeps_checkpoints() {
    let server = s3::S3Server::start();
    for (name, value) in server.variables() {
        // SAFETY: this test is alone in its process and has started no thread that reads variables yet.
        unsafe { std::env::set_var(name, value) };
    }
    let machines = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let place =
        |machine: usize| Place::open(Some("s3://dfc/state/of jobs"), machines[machine].path()).expect("a place");
    let open = |machine: usize| Job::open(place(machine), "shop", 0).expect("opens");

    let job = open(0);
    assert_eq!(job.describe(), "s3://dfc/state/of jobs/shop");
    assert!(job.home().starts_with(machines[0].path()), "{:?}", job.home());
    assert_eq!(Job::open(place(0), "shop", 0).err().expect("it runs").code(), "R0502");
    assert_eq!(job.newest(false), Ok(None));
    let (lineage, number) = job.begin_lineage();
    take(&job, &lineage, Kind::Start, number).expect("begins");

    // Every third answer is lost, though the request was carried out: a manifest that is there after all is one's own.
    server.cut_every(3);
    for number in 1..=6 {
        let published = take(&job, &lineage, Kind::Regular, number).expect("published");
        assert_eq!(job.newest(true).expect("whole"), Some(published));
        job.note_applied(&lineage, "sink", number).expect("noted");
    }
    let removed = job.retain(2).expect("retention");
    assert_eq!((removed.checkpoints, removed.parts), (vec![0, 1, 2, 3, 4], 5));
    server.cut_every(0);

    // On another machine: the same checkpoints; of two runs one wins the next number.
    let other = open(1);
    assert_eq!(other.newest(true).expect("whole").expect("there").number, 6);
    take(&other, &lineage, Kind::Regular, 7).expect("the second is faster");
    let error = take(&job, &lineage, Kind::Regular, 7).expect_err("the first has lost");
    assert_eq!((error.code(), error.may_pass()), ("R0504", false));
    assert_eq!(
        error.to_string(),
        "another run of this job has taken checkpoint 7: `s3://dfc/state/of jobs/shop/manifests/0000000007.json` is there already"
    );
    assert!(other.verify(7).expect("readable").iter().all(|finding| finding.wrong.is_none()));
    assert!(other.used_bytes().expect("a sum") > 100);

    // What isn't there, or can't be.
    assert_eq!(other.read(3).expect_err("gone").to_string(), "there is no checkpoint 3; there are 5, 6, 7");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let nowhere = Place::open(Some("s3://no-such-bucket/x"), elsewhere.path()).expect("a place");
    let error = Job::open(nowhere, "shop", 0).err().expect("no such bucket");
    assert_eq!(error.code(), "R0501");
    let text = error.to_string();
    let refused = "checkpoints can't be kept in `s3://no-such-bucket/x`: the service refuses to write `s3://no-such-bucket/x/shop/manifests/";
    assert!(text.starts_with(refused) && text.ends_with("`: The specified bucket does not exist"), "{text}");
    drop(server);
    let error = take(&other, &lineage, Kind::Regular, 8).expect_err("nobody answers");
    assert!(error.may_pass() && error.code() == "R0509", "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    assert!(Path::new(machines[1].path()).join(".dfc/shop/lock").exists());
}
