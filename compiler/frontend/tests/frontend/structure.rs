//! Structure: duplicates, jobs and their settings, libraries, declarations (D5).

use std::collections::BTreeMap;
use std::path::Path;

use crate::{HEAD, check, compiler, expect};

fn settings(text: &str) -> Vec<&'static str> {
    let text = format!(
        "job j {{ {text} }}\nrecord R {{ id: int64 }}\nsource r = csv(\"r.csv\", schema: R)\nsink r |> print()\n"
    );
    check(&text).diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn names_are_declared_once() {
    expect("record User { id: int64 }\nsink orders |> print()\n", &["E0201"]);
    expect("job other {}\nsink orders |> print()\n", &["E0202"]);
    expect("const upper: int64 = 1\nfn upper(x: int64) = x\nsink orders |> print()\n", &["E0212"]);
}

#[test]
fn a_sink_needs_a_job() {
    let codes: Vec<_> = check(&HEAD.replace("job example {}\n", "").replacen("", "sink orders |> print()\n", 1))
        .diagnostics
        .iter()
        .map(|d| d.code)
        .collect();
    assert_eq!(codes, ["E0203"]);
}

#[test]
fn settings_are_checked() {
    assert_eq!(settings("parallelism: 4, errors { limit: 3, ratio: 0.5, to: \"x\" }"), [""; 0]);
    assert_eq!(settings("parallelism: 0"), ["E0606"]);
    assert_eq!(settings("paralelism: 1"), ["E0209"]);
    assert_eq!(settings("errors { limt: 3 }"), ["E0209"]);
    assert_eq!(settings("errors { ratio: 1.5 }"), ["E0606"]);
    assert_eq!(settings("errors: 5"), ["E0604"]);
    assert_eq!(settings("parallelism: 1, parallelism: 2"), ["E0603"]);
    assert_eq!(settings("checkpoint { interval: 30s }"), [""; 0]);
    assert_eq!(settings("checkpoint: off"), [""; 0]);
    assert_eq!(settings("delivery: exactly_once"), ["E0801"], "the standard output takes nothing back");
    assert_eq!(settings("delivery: at_least_once, rerun: restart, restart { attempts: 3, backoff: 10s }"), [""; 0]);
    assert_eq!(settings("delivery: twice"), ["E0605"]);
    assert_eq!(settings("restart: off"), [""; 0]);
    assert_eq!(settings("restart { attempts: -1 }"), ["E0606"]);
    assert_eq!(settings("schedule: 5m"), ["E0220"]);
}

#[test]
fn values_may_not_go_in_circles() {
    expect("const a: int64 = b\nconst b: int64 = a\nsink orders |> filter(id > a) |> print()\n", &["E0204"]);
    expect("record N { next: N }\nsink orders |> print()\n", &["E0204"]);
}

#[test]
fn parameters_take_values_from_outside() {
    let text = format!("{HEAD}param since: date\nsink orders |> filter(date(at) >= since) |> print()\n");
    let mut compiler = compiler(&[("main.df", &text)]);
    let root = Path::new("main.df");
    assert!(compiler.check(root).diagnostics.is_empty());
    assert_eq!(compiler.plan(root).unwrap_err().diagnostics[0].code, "E0622");
    compiler.set_params(BTreeMap::from([("since".into(), "2026-01-31".into())]));
    assert!(compiler.plan(root).is_ok());
    compiler.set_params(BTreeMap::from([("since".into(), "yesterday".into())]));
    assert_eq!(compiler.check(root).diagnostics[0].code, "E0621");
    compiler.set_params(BTreeMap::from([("sinse".into(), "2026-01-31".into())]));
    assert_eq!(compiler.check(root).diagnostics[0].code, "E0620");
}

#[test]
fn libraries_are_taken_in() {
    let main = "job j {}\nuse \"lib/types.df\"\nuse \"lib/types.df\"\nsource r = csv(\"r.csv\", schema: R)\nsink r |> derive(y: twice(id)) |> print()\n";
    let files = [
        ("p/main.df", main),
        ("p/lib/types.df", "use \"more.df\"\nfn twice(x: int64) = x * 2\n"),
        ("p/lib/more.df", "record R { id: int64 }\n"),
    ];
    let checked = compiler(&files).check(Path::new("p/main.df"));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    assert_eq!(checked.files.len(), 3);
}

#[test]
fn what_is_wrong_with_libraries_is_said_in_the_right_file() {
    let run = |lib: &str, main: &str| {
        let checked = compiler(&[("main.df", main), ("lib.df", lib)]).check(Path::new("main.df"));
        checked
            .diagnostics
            .iter()
            .map(|d| (d.code, checked.files[d.place.file.0 as usize].name.clone()))
            .collect::<Vec<_>>()
    };
    let main = "use \"lib.df\"\nrecord R { id: int64 }\n";
    assert_eq!(run("record R { id: int64 }\n", main), [("E0206", "main.df".to_string())]);
    assert_eq!(run("use \"main.df\"\n", main), [("E0205", "lib.df".to_string())]);
    assert_eq!(run("job x {}\n", main), [("E0208", "lib.df".to_string())]);
    assert_eq!(run("const a: int64 = \"x\"\n", main), [("E0504", "lib.df".to_string())]);
    assert_eq!(run("const a: int64 = = 1\n", main)[0].1, "lib.df");
    let checked = compiler(&[("main.df", "use \"nowhere.df\"\n")]).check(Path::new("main.df"));
    assert_eq!(checked.diagnostics.len(), 1);
    assert_eq!(checked.diagnostics[0].code, "E0207");
}

#[test]
fn a_root_that_can_not_be_read_is_said() {
    let checked = compiler(&[]).check(Path::new("none.df"));
    assert_eq!(checked.diagnostics[0].code, "E0207");
    assert!(checked.diagnostics[0].message.contains("no such file"));
}
