//! Every lint is switched off by a comment with its code, and stays switched off when the file is formatted.

use std::path::Path;

use dfc_diagnostics::Diagnostic;
use dfc_diagnostics::codes::CODES;

use crate::pages::examples;
use crate::{codes, compiler};

/// Chains that compute `tax`, which nothing reads, with a comment that says so.
const CHAINS: &[&str] = &[
    "orders |> derive(tax: price * 2) |> select(id, price) // allow W0401",
    "orders |> derive(tax: price * 2) // allow W0401\n    |> select(id, price)",
    "orders\n    |> derive(tax: price * 2, more: price * 3) // allow W0401\n    |> select(id, price)",
    "orders\n    |> derive(\n        tax: price * 2, // allow W0401\n        more: price * 3, // allow W0401\n    )\n    |> select(id, price)",
    "orders\n    |> derive(tax: price * 2, // allow W0401\n        more: price * 3) // allow W0401\n    |> select(id, price)",
    "orders\n    |> derive(tax: price * 2, // allow W0401\n        kept: price * 3)\n    |> select(id, price, kept)",
    "orders\n    |> derive(kept: price * 3,\n        tax: price * 2) // allow W0401\n    |> select(id, price, kept)",
    "orders\n    |> derive(\n        kept: price * 3, tax: price * 2, // allow W0401\n    )\n    |> select(id, price, kept)",
    "orders\n    |> derive( // allow W0401\n        kept: price * 3, tax: price * 2\n    ) |> select(id, price, kept)",
    "orders\n    // allow W0401\n    |> derive(tax: price * 2, kept: price * 3)\n    |> select(id, price, kept)",
    "union(orders |> derive(tax: price * 2) |> select(id, price), // allow W0401\n    orders |> derive(tax: price * 4) |> select(id, price)) // allow W0401",
    "union(\n    orders |> select(id, price), // both\n    orders |> derive(tax: price * 2) |> select(id, price), // allow W0401\n)",
    "orders\n    |> join(\n        orders |> derive(tax: price * 2) |> select(id, price), // allow W0401\n        on: id,\n        take: [again: price],\n    )",
];

#[test]
fn a_lint_that_is_switched_off_stays_so_when_formatted() {
    for chain in CHAINS {
        let text = |chain: &str| format!("stream a = {chain}\nsink a |> csv(\"a.csv\")\n");
        let lint = |text: &str| codes(text).contains(&"W0401");
        assert!(lint(&text(&chain.replace("// allow", "//"))), "nothing to switch off: {chain}");
        let mut text = text(chain);
        assert!(!lint(&text), "{text}");
        for _ in 0..2 {
            text = dfc_grammar::format(&text).text;
            assert!(!lint(&text), "formatted: {text}");
        }
    }
}

/// Lints that no comment switches off.
const NEVER_ALLOWED: [(&str, &str); 2] = [
    ("W0203", "it says that findings are left out, and has no place of its own"),
    ("W0204", "it is about such a comment: the comment is what is wrong"),
];

/// For each lint: its page's wrong example gives it, and gives nothing once the line where it is shown ends in a comment that allows it.
#[test]
fn every_lint_is_switched_off_by_a_comment() {
    let mut failures = Vec::new();
    let mut tried = Vec::new();
    for code in CODES.iter().filter(|code| code.code.starts_with('W')) {
        if NEVER_ALLOWED.iter().any(|(never, _)| *never == code.code) {
            continue;
        }
        tried.push(code.code);
        for files in examples(code, "Wrong") {
            let mut files: Vec<(String, String)> =
                files.into_iter().map(|(name, text)| (name, text.to_owned())).collect();
            let found = found(&files);
            let Some(lint) = found.iter().find(|problem| problem.code == code.code) else {
                failures.push(format!("{}: nothing to switch off: {found:?}", code.code));
                continue;
            };
            let main = files.iter_mut().find(|(name, _)| name == "p/main.df").expect("a page has a pipeline");
            let line = lint.place.start as usize + main.1[lint.place.start as usize..].find('\n').unwrap_or(0);
            main.1.insert_str(line, &format!(" // allow {}: it is meant", code.code));
            let still = self::found(&files);
            if !still.is_empty() {
                failures.push(format!("{}: {still:?}\n{}", code.code, files[0].1));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(tried.len() > 15, "{tried:?}");
}

fn found(files: &[(String, String)]) -> Vec<Diagnostic> {
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    compiler(&files).check(Path::new("p/main.df")).diagnostics
}
