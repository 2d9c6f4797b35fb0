//! `dfc fmt`: what is written, what is not, exit codes. The style itself is tested with the grammar.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::support::{binary, dfc, folder, read, root};

const LOOSE: &str = "param  x:int64=1\nstream a=b|>filter( x>1 )";
const TIDY: &str = "param x: int64 = 1\nstream a = b |> filter(x > 1)\n";

#[test]
fn files_and_folders() {
    let dir = folder(&[
        ("a.df", LOOSE),
        ("b.txt", LOOSE),
        ("sub/c.df", LOOSE),
        ("sub/deep/d.df", TIDY),
        (".hidden/e.df", LOOSE),
    ]);
    let check = dfc(dir.path(), &["fmt", "--check", "."]);
    assert_eq!((check.code, check.stdout.as_str()), (1, ""));
    assert_eq!(check.stderr, "./a.df: would change\n./sub/c.df: would change\n");
    assert_eq!(read(&dir.path().join("a.df")), LOOSE, "--check writes nothing");
    let write = dfc(dir.path(), &["fmt", "."]);
    assert_eq!((write.code, write.stderr.as_str()), (0, "./a.df: formatted\n./sub/c.df: formatted\n"));
    for (name, text) in [("a.df", TIDY), ("sub/c.df", TIDY), ("b.txt", LOOSE), (".hidden/e.df", LOOSE)] {
        assert_eq!(read(&dir.path().join(name)), text, "{name}");
    }
    assert_eq!(dfc(dir.path(), &["fmt", "--check", "."]).code, 0);
    // A file that is named is formatted whatever its name is.
    assert_eq!(dfc(dir.path(), &["fmt", "b.txt"]).code, 0);
    assert_eq!(read(&dir.path().join("b.txt")), TIDY);
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 4, "nothing is left behind");
}

#[test]
fn a_file_that_has_the_style_is_not_touched() {
    let dir = folder(&[("a.df", TIDY)]);
    let path = dir.path().join("a.df");
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(&path).and_then(|f| f.set_modified(long_ago)).expect("a time can be set");
    assert_eq!(dfc(dir.path(), &["fmt", "a.df"]).code, 0);
    assert_eq!(fs::metadata(&path).and_then(|m| m.modified()).expect("a time"), long_ago);
}

#[test]
#[cfg(unix)]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder(&[("real/a.df", LOOSE)]);
    let real = dir.path().join("real/a.df");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("permissions can be set");
    std::os::unix::fs::symlink("real/a.df", dir.path().join("link.df")).expect("a link can be made");
    assert_eq!(dfc(dir.path(), &["fmt", "link.df"]).code, 0);
    assert!(dir.path().join("link.df").is_symlink());
    assert_eq!(read(&real), TIDY);
    assert_eq!(fs::metadata(&real).expect("the file").permissions().mode() & 0o777, 0o640);
}

#[test]
fn standard_input_to_standard_output() {
    for (args, text, code, out) in [
        (&["fmt", "-"][..], LOOSE, 0, TIDY),
        (&["fmt", "-"], TIDY, 0, TIDY),
        (&["fmt", "--check", "-"], LOOSE, 1, ""),
        (&["fmt", "--check", "-"], TIDY, 0, ""),
    ] {
        let mut child = binary()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dfc starts");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("dfc reads");
        let output = child.wait_with_output().expect("dfc ends");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()),
            (Some(code), out),
            "{args:?}"
        );
    }
}

#[test]
fn what_can_t_be_read_is_named_and_the_rest_goes_on() {
    let dir = folder(&[("a.df", LOOSE), ("broken.df", "stream  a = b |> filter(x ==)\n\nparam  x:int64")]);
    fs::write(dir.path().join("bad.df"), b"param x\xff").expect("a file can be written");
    let run = dfc(dir.path(), &["fmt", "missing.df", "bad.df", "a.df", "broken.df"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("error: can't read `missing.df`"), "{}", run.stderr);
    assert!(run.stderr.contains("error: `bad.df` is not UTF-8 (byte 7): save it in UTF-8"), "{}", run.stderr);
    assert_eq!(read(&dir.path().join("a.df")), TIDY);
    assert_eq!(read(&dir.path().join("broken.df")), "stream  a = b |> filter(x ==)\n\nparam x: int64\n");
    assert_eq!(dfc(dir.path(), &["fmt"]).code, 2);
}

#[test]
fn the_project_s_own_files_have_the_style() {
    let check = dfc(&root(), &["fmt", "--check", "examples", "stdlib", "cli/template"]);
    assert_eq!(check.code, 0, "{}", check.stderr);
}
