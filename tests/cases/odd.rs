//! Pipelines that nobody writes on purpose: each gets findings, quickly, and never a panic.

use std::time::{Duration, Instant};

use crate::support::{dfc, folder, write};

/// What `dfc check` says of a text, which must take no more than seconds.
fn check(text: &str) -> (i32, String) {
    let dir = folder(&[("p.df", text)]);
    let start = Instant::now();
    let output = dfc(dir.path(), &["check", "p.df"]);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?} on {:.100}", start.elapsed(), text);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert!(output.code == 0 || output.code == 1, "exit code {}: {}", output.code, output.stderr);
    (output.code, output.stderr)
}

const SOUND: &str =
    "job a {}\nrecord R { id: int64 }\nsource s = csv(\"a.csv\", schema: R)\nsink s |> filter(id > 1) |> print()\n";

#[test]
fn nothing_blanks_and_comments_are_libraries() {
    for text in ["", "\n", " \t\r\n", "\u{feff}", "// nothing\n//! at all\n/// here\n"] {
        assert_eq!(check(text).0, 0, "{text:?}");
    }
}

#[test]
fn marks_line_ends_and_tabs_change_nothing() {
    for text in
        [format!("\u{feff}{SOUND}"), SOUND.replace('\n', "\r\n"), SOUND.replace(' ', "\t"), format!("{SOUND}//")]
    {
        assert_eq!(check(&text), (0, "p.df: no errors\n".to_owned()), "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let dir = folder(&[]);
    for (bytes, word) in
        [(&b"job caf\xe9 {}"[..], "byte 7"), (b"\xff\xfej\0o\0b\0", "byte 0"), (b"job a\0 {}\n", "U+0000")]
    {
        std::fs::write(dir.path().join("p.df"), bytes).expect("the pipeline can be written");
        let output = dfc(dir.path(), &["check", "p.df"]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.contains(word), "`{word}` is missing: {}", output.stderr);
    }
}

#[test]
fn files_that_are_none() {
    let dir = folder(&[("uses-folder.df", "use \"d\"\n"), ("uses-itself.df", "use \"uses-itself.df\"\n")]);
    write(&dir.path().join("d/inside.df"), "");
    for (file, words) in [
        ("missing.df", "there is no such file"),
        ("d", "it is a folder"),
        ("uses-folder.df", "it is a folder"),
        ("uses-itself.df", "`uses-itself.df` uses itself"),
    ] {
        let output = dfc(dir.path(), &["check", file]);
        assert_eq!(output.code, 1, "{file}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{file}: {}", output.stderr);
    }
}

#[cfg(unix)]
#[test]
fn links_in_a_loop_and_devices_without_an_end() {
    let dir = folder(&[("uses-loop.df", "use \"one.df\"\n"), ("uses-device.df", "use \"/dev/zero\"\n")]);
    for (link, to) in [("one.df", "two.df"), ("two.df", "one.df")] {
        std::os::unix::fs::symlink(to, dir.path().join(link)).expect("a link can be made");
    }
    for (file, words) in [
        ("one.df", "too many levels of symbolic links"),
        ("uses-loop.df", "can't read `one.df`"),
        ("uses-device.df", "a file has 16 MiB at most"),
    ] {
        let output = dfc(dir.path(), &["check", file]);
        assert_eq!(output.code, 1, "{file}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{file}: {}", output.stderr);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for deep in ["(", "[", "{", "-", "not ", "f\"{", "match { ", "if a then ", "list<", "upper(", "a |> "] {
        let text = SOUND.replace("id > 1", &deep.repeat(20_000));
        let (code, stderr) = check(&text);
        assert_eq!(code, 1, "{deep}");
        assert!(stderr.len() < 10_000, "{deep}: a line of {} bytes is shown", text.len());
    }
}

#[test]
fn large_files_are_checked_in_seconds() {
    let comments = format!("{SOUND}{}", format!("// {}\n", "y".repeat(97)).repeat(100_000));
    assert_eq!(check(&comments).0, 0);
    let streams: String =
        (0..2000).map(|i| format!("stream t{} = t{i} |> filter(id > {i})\n", i + 1)).collect::<Vec<_>>().concat();
    let chain = SOUND.replace("source s", "source t0").replace("sink s", "sink t2000");
    assert_eq!(check(&format!("{chain}{streams}")).0, 0);
    let fields: Vec<String> = (0..10_000).map(|i| format!("c{i}: int64")).collect();
    assert_eq!(check(&SOUND.replace("id: int64", &format!("id: int64, {}", fields.join(", ")))).0, 0);
}

#[test]
fn functions_that_double_are_one_message() {
    let doubled = |i: usize| format!("fn f{}(x: int64) -> int64 = f{i}(x) + f{i}(x)\n", i + 1);
    let functions: String = (0..30).map(doubled).collect::<Vec<_>>().concat();
    let text = format!("{}fn f0(x: int64) -> int64 = x\n{functions}", SOUND.replace("id > 1", "f30(id) > 1"));
    let (code, stderr) = check(&text);
    assert_eq!((code, stderr.matches("[E").count()), (1, 1), "{stderr}");
    assert!(stderr.contains("E0422"), "{stderr}");
}
