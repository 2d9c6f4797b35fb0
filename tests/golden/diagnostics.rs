//! `diagnostics/CODE-situation.df` with what `dfc check` says of it (`.out`). One mistake, one message: a file named after a
//! code gives that code, once, and no other error. `many-*.df` hold several mistakes; `improve-*.df` are messages that are true and
//! still poor: the list of what to mend next.

use std::path::Path;

use crate::support::golden::{Golden, inputs};
use crate::support::{dfc, root};

/// The codes among JSON findings, with their severities.
pub fn codes(json: &str) -> Vec<(String, String)> {
    let field = |value: &serde_json::Value, name: &str| value[name].as_str().unwrap_or("").to_owned();
    json.lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .map(|value| (field(&value, "code"), field(&value, "severity")))
        .collect()
}

#[test]
fn messages() {
    let mut golden = Golden::default();
    let folder = root().join("tests/golden/diagnostics");
    let mut wrong = Vec::new();
    for file in inputs("diagnostics", "df") {
        let name = file.file_name().and_then(|n| n.to_str()).expect("golden files have plain names").to_owned();
        if name.starts_with("lib-") {
            continue; // used by another file
        }
        let asked = asked(&file, &name);
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let human = dfc(&folder, &asked);
        golden.check(&file.with_extension("out"), &human.stderr);
        let json = dfc(&folder, &[&asked[..], &["--format", "json"]].concat());
        assert_eq!(human.code, json.code, "{name}");
        let found = codes(&json.stdout);
        for (code, _) in &found {
            assert!(dfc_diagnostics::codes::explain(code).is_some(), "{name}: {code} has no page");
        }
        if let Some(reason) = unexpected(&name, &found) {
            wrong.push(format!("{name}: {reason}: {found:?}"));
        }
        assert_eq!(json.code == 1, found.iter().any(|(_, severity)| severity == "error"), "{name}: exit code");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    golden.finish();
}

/// What is asked of a file: `dfc check`, or what its first line says, `// dfc check --set since=yesterday`.
fn asked(file: &Path, name: &str) -> Vec<String> {
    let text = crate::support::read(file);
    let said = text.lines().next().and_then(|line| line.strip_prefix("// dfc ")).unwrap_or("check");
    let mut words: Vec<String> = said.split(' ').map(str::to_owned).collect();
    words.insert(1, name.to_owned());
    words
}

/// Codes that no small file shows alone, and where they are shown.
const WITHOUT_GOLDEN: [(&str, &str); 5] = [
    ("E0125", "a file of 16 MiB: `cases/robust.rs`"),
    ("E0213", "hundreds of files: `cases/robust.rs`"),
    ("E0299", "a defect of the compiler: there is no pipeline that gives it"),
    ("E0313", "a sink without a source has another mistake as well: `many-nothing-to-read.df`"),
    ("W0203", "a thousand findings: `cases/robust.rs`"),
];

/// Each code of the compiler has a golden file of its own.
#[test]
fn every_code_has_a_golden_file() {
    let names: Vec<String> =
        inputs("diagnostics", "df").iter().filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect();
    let shown = |code: &str| names.iter().any(|name| name.starts_with(&format!("{code}-")));
    let codes = dfc_diagnostics::codes::CODES.iter().map(|code| code.code).filter(|code| !code.starts_with('R'));
    let without: Vec<&str> = codes.filter(|code| !shown(code)).collect();
    assert_eq!(without, WITHOUT_GOLDEN.map(|(code, _)| code));
}

/// What is wrong with the codes that a file gives, judged by its name.
fn unexpected(name: &str, found: &[(String, String)]) -> Option<&'static str> {
    let (prefix, _) = name.split_once('-')?;
    if !prefix.starts_with(['E', 'W']) {
        return None;
    }
    let of_code = found.iter().filter(|(code, _)| code == prefix).count();
    let other_errors = found.iter().filter(|(code, severity)| code != prefix && severity == "error").count();
    match (of_code, other_errors) {
        (0, _) => Some("its code is missing"),
        (1, 0) => None,
        (1, _) => Some("another error follows from the one mistake"),
        _ => Some("one mistake gives several messages"),
    }
}

/// The message that each code's own page provokes, as people see it.
#[test]
fn messages_of_the_pages() {
    let mut golden = Golden::default();
    let folder = root().join("tests/golden/diagnostics/pages");
    for code in dfc_diagnostics::codes::CODES {
        // Codes at run time have golden runs.
        for (number, wrong) in crate::cases::codes::examples(code.page, "Wrong").iter().enumerate() {
            let checked = crate::cases::codes::check(wrong);
            let text = dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false);
            let more = if number == 0 { String::new() } else { format!("-{}", number + 1) };
            golden.check(&folder.join(format!("{}{more}.out", code.code)), &text);
        }
    }
    golden.finish();
}

/// The same findings in every form for tools; one SARIF log over several files.
#[test]
fn forms_for_tools() {
    let mut golden = Golden::default();
    let folder = root().join("tests/golden/diagnostics");
    for form in ["json", "github", "sarif"] {
        let output = dfc(&folder, &["check", "many-ten-mistakes.df", "E0205-circle.df", "--format", form]);
        assert_eq!((output.code, output.stderr.as_str()), (1, ""), "{form}");
        golden.check(&folder.join("forms").join(format!("findings.{form}")), &output.stdout);
        if form == "sarif" {
            let log: serde_json::Value = serde_json::from_str(&output.stdout).expect("SARIF is JSON");
            assert_eq!(log["runs"][0]["results"].as_array().map(Vec::len), Some(11));
        }
    }
    golden.finish();
}

#[test]
fn ten_mistakes_of_ten_kinds_give_ten_diagnostics() {
    let folder = root().join("tests/golden/diagnostics");
    assert!(Path::new(&folder).join("many-ten-mistakes.df").exists());
    let output = dfc(&folder, &["check", "many-ten-mistakes.df", "--format", "json"]);
    let found = codes(&output.stdout);
    let mut distinct: Vec<_> = found.iter().map(|(code, _)| code).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!((found.len(), distinct.len()), (10, 10), "{found:?}");
}

#[test]
fn json_holds_every_field_of_every_finding() {
    let folder = root().join("tests/golden/diagnostics");
    for file in ["many-ten-mistakes.df", "E0410-unicode-fields.df", "E0206-clash.df", "W0501-scale-lost.df"] {
        let output = dfc(&folder, &["check", file, "--format", "json"]);
        assert!(!output.stdout.is_empty(), "{file}");
        for line in output.stdout.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            for name in ["code", "severity", "message", "file"] {
                assert!(value[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {line}");
            }
            let labels = value["labels"].as_array().unwrap_or_else(|| panic!("labels: {line}"));
            let fixes = value["fixes"].as_array().unwrap_or_else(|| panic!("fixes: {line}"));
            assert!(value["notes"].is_array() && (value["help"].is_string() || value["help"].is_null()), "{line}");
            for placed in [&value].into_iter().chain(labels).chain(fixes) {
                let number = |name: &str| placed[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
                let (start, end) = ((number("line"), number("column")), (number("end_line"), number("end_column")));
                assert!(start.0 >= 1 && start.1 >= 1 && start <= end, "{line}");
            }
            assert!(labels.iter().all(|label| label["message"].is_string()), "{line}");
            assert!(fixes.iter().all(|fix| fix["title"].is_string() && fix["text"].is_string()), "{line}");
        }
    }
    // Columns count characters, not bytes.
    let output = dfc(&folder, &["check", "E0410-unicode-fields.df", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(output.stdout.trim()).expect("one finding");
    assert_eq!(
        (value["line"].as_u64(), value["column"].as_u64(), value["end_column"].as_u64()),
        (Some(4), Some(40), Some(42))
    );
}

#[test]
fn nothing_is_coloured_without_a_terminal() {
    let folder = root().join("tests/golden/diagnostics");
    for no_color in [true, false] {
        let mut command = crate::support::binary();
        command.current_dir(&folder).args(["check", "many-ten-mistakes.df"]);
        if !no_color {
            command.env_remove("NO_COLOR");
        }
        let output = crate::support::run(&mut command);
        assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
        assert!(output.stderr.lines().all(|line| line.trim_end() == line), "blanks at a line's end");
    }
}

/// Runs a command with a terminal of its own, and prints all that comes there.
const TERMINAL: &str = "
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        text = os.read(terminal, 65536)
    except OSError:
        break
    if not text:
        break
    sys.stdout.buffer.write(text)
os.waitpid(child, 0)
";

/// On a terminal there is colour, unless `NO_COLOR` is set and not empty (no-color.org). The words are the same.
#[test]
fn a_terminal_is_coloured() {
    let folder = root().join("tests/golden/diagnostics");
    let python = crate::support::python::environment().join("bin/python");
    let dfc = crate::support::binary();
    let on_terminal = |file: &str, no_color: Option<&str>| {
        let mut command = std::process::Command::new(&python);
        command.current_dir(&folder).args(["-c", TERMINAL]).arg(dfc.get_program()).args(["check", file]);
        command.env_remove("NO_COLOR").env("TERM", "xterm");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let output = crate::support::run(&mut command);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stdout.replace("\r\n", "\n")
    };
    for file in ["many-ten-mistakes.df", "W0401-computed-in-vain.df"] {
        let plain = crate::support::dfc(&folder, &["check", file]).stderr;
        assert_eq!(on_terminal(file, Some("1")), plain, "NO_COLOR=1");
        for unset in [None, Some("")] {
            let text = on_terminal(file, unset);
            assert!(text.contains("\u{1b}["), "no colour on a terminal, NO_COLOR={unset:?}: {text}");
            let mut parts = text.split("\u{1b}[");
            let first = parts.next().unwrap_or_default().to_owned();
            let words = parts.fold(first, |words, part| words + part.split_once('m').map_or("", |(_, rest)| rest));
            let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
            assert_eq!(trimmed(&words), trimmed(&plain), "NO_COLOR={unset:?}");
        }
    }
}
