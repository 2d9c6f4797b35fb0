//! What an editor needs beside answers: how far an edit is felt, broken items as they last were, the roots of a file.

use std::path::{Path, PathBuf};

use dfc_compiler::Compiler;
use dfc_compiler::editor::{Stopped, ask};

use crate::{HEAD, compiler, held};

const TAIL: &str = "const low = 1
const high = 9
fn twice(x: int64) = x * low
stream a = orders |> filter(id > high)
stream b = a |> derive(x: twice(id)) |> select(x)
sink b |> print()
";

/// The queries that ran after an edit of a checked program, by name.
fn counts(edit: impl Fn(&str) -> String) -> impl Fn(&str) -> usize {
    let text = format!("{HEAD}{TAIL}");
    let mut compiler = held(&[("main.df", &text)]);
    let root = Path::new("main.df");
    assert_eq!(compiler.findings(root).diagnostics.len(), 0);
    compiler.query_counts();
    compiler.set_file(root, edit(&text));
    compiler.findings(root);
    let counts = compiler.query_counts();
    move |query| counts.get(query).copied().unwrap_or(0)
}

#[test]
fn a_declaration_is_felt_by_those_that_mention_it() {
    // `a` mentions `high`; `b` mentions `low` by `twice`.
    assert_eq!(counts(|text| text.replace("high = 9", "high = 8"))("item_check"), 1);
    assert_eq!(counts(|text| text.replace("low = 1", "low = 2"))("item_check"), 1);
    assert_eq!(counts(|text| text.replace("x * low", "x * 3"))("item_check"), 1);
    // A field more in a record that is not read here, and a stream that nobody reads yet.
    assert_eq!(counts(|text| text.replace("country: string?", "country: string?, age: int64"))("item_check"), 0);
    assert_eq!(counts(|text| format!("{text}stream c = b |> take(1)\n"))("item_check"), 1);
}

#[test]
fn a_program_is_put_together_anew_only_when_its_items_change() {
    assert_eq!(counts(|text| text.replace("high = 9", "high = 8"))("program"), 0);
    assert_eq!(counts(|text| text.replace("id > high", "id >= high"))("program"), 0);
}

#[test]
fn a_broken_item_is_remembered_and_says_nothing() {
    let text = format!("{HEAD}{TAIL}");
    let root = Path::new("main.df");
    let mut compiler = compiler(&[("main.df", &text)]);
    assert_eq!(compiler.findings(root).diagnostics.len(), 0);
    compiler.query_counts();
    // Whoever reads `a` has its fields still: nothing is checked anew for that.
    let broken = text.replace("filter(id > high)", "filter(id > )");
    compiler.set_file(root, broken.clone());
    let fields =
        dfc_compiler::ide::completion(&compiler, root, root, broken.find("select(x").expect("it is there") + 7);
    assert!(fields.iter().any(|item| item.label == "x"));
    // Said is what a compiler without a memory says.
    let fresh = crate::compiler(&[("main.df", &broken)]);
    assert_eq!(compiler.findings(root).diagnostics, fresh.findings(root).diagnostics);
    assert_eq!(*fresh.findings(root).diagnostics, fresh.check(root).diagnostics);
    // Gone is gone.
    let without = text.replace("stream a = orders |> filter(id > high)\n", "");
    compiler.set_file(root, without.clone());
    let fresh = crate::compiler(&[("main.df", &without)]);
    assert_eq!(*compiler.findings(root).diagnostics, fresh.check(root).diagnostics);
}

#[test]
fn roots_are_the_files_that_use_a_file() {
    let files = [
        ("main.df", "use \"lib/a.df\"\njob j {}\n"),
        ("other.df", "use \"lib/b.df\"\n"),
        ("lib/a.df", "use \"b.df\"\n"),
        ("lib/b.df", "const x = 1\n"),
        ("lib/job.df", "job k {}\n"),
        ("third.df", "use \"lib/job.df\"\n"),
        ("one.df", "use \"two.df\"\n"),
        ("two.df", "use \"one.df\"\n"),
    ];
    let compiler = compiler(&files);
    let known: Vec<PathBuf> = files.iter().map(|(path, _)| PathBuf::from(path)).collect();
    let roots = |path: &str| -> Vec<String> {
        let roots = compiler.roots_of(Path::new(path), &known);
        roots.into_iter().map(|root| root.display().to_string()).collect()
    };
    assert_eq!(roots("main.df"), ["main.df"]);
    assert_eq!(roots("lib/a.df"), ["main.df"]);
    assert_eq!(roots("lib/b.df"), ["main.df", "other.df"]);
    assert_eq!(roots("lib/job.df"), ["lib/job.df", "third.df"]);
    assert_eq!(roots("one.df"), ["one.df"], "in a circle each stands for itself");
    assert_eq!(roots("unknown.df"), ["unknown.df"]);
}

#[test]
fn a_question_ends_when_it_is_stopped_or_panics() {
    let compiler = compiler(&[("main.df", HEAD)]);
    let snapshot: Compiler = compiler.snapshot();
    snapshot.stopper().stop();
    let answer = ask(|| snapshot.findings(Path::new("main.df")));
    assert_eq!(answer.map(|found| found.diagnostics.len()), Err(Stopped::Asked));
    drop(snapshot);
    assert_eq!(ask(|| -> u8 { panic!("on purpose") }), Err(Stopped::Panicked("on purpose".into())));
    assert!(ask(|| compiler.findings(Path::new("main.df"))).is_ok());
}

#[test]
fn many_names_that_change_at_once_are_the_new_ones() {
    let root = Path::new("main.df");
    // More than are kept of items that are gone: some of those that go now are used again for those that come, in the same places.
    let text = |prefix: &str| {
        let streams = (0..100).map(|number| format!("stream {prefix}{number} = b |> take({number})\n"));
        format!("{HEAD}{TAIL}{}", streams.collect::<String>())
    };
    let mut compiler = held(&[("main.df", &text("s"))]);
    for prefix in ["t", "s", "u", "v", "s"] {
        compiler.set_file(root, text(prefix));
        let fresh = crate::compiler(&[("main.df", &text(prefix))]);
        assert_eq!(*compiler.findings(root).diagnostics, fresh.check(root).diagnostics, "{prefix}");
    }
}

#[test]
fn names_that_come_and_go_leave_nothing_behind() {
    let root = Path::new("main.df");
    let text = |name: &str| format!("{HEAD}{TAIL}stream {name} = b |> take(1)\nconst c_{name} = 1\n");
    let mut compiler = held(&[("main.df", &text("first"))]);
    compiler.findings(root);
    // More names than are kept of items that are gone.
    for turn in 0..150 {
        let now = text(&format!("s{}", turn % 97));
        compiler.set_file(root, now.clone());
        if turn % 10 == 0 {
            let fresh = crate::compiler(&[("main.df", &now)]);
            assert_eq!(*compiler.findings(root).diagnostics, fresh.check(root).diagnostics, "turn {turn}");
        }
    }
}
