//! The pages of the codes: each wrong example gives exactly its code, each right one is clean. And every code that the front
//! end can give has a page.

use std::path::Path;

use dfc_diagnostics::codes::{CODES, Code, explain};

use crate::compiler;

/// The examples of a heading: of each section the blocks of code, with their files' names: `// file: NAME` on the first line, else
/// `main.df`.
pub fn examples<'p>(code: &'p Code, heading: &str) -> Vec<Vec<(String, &'p str)>> {
    let of_heading = |section: &&str| {
        let title = section.lines().next().unwrap_or_default();
        title == heading || title.starts_with(&format!("{heading}: "))
    };
    let blocks = |section: &'p str| -> Vec<(String, &'p str)> {
        let blocks = section.split("```df\n").skip(1).filter_map(|block| Some(block.split_once("```")?.0));
        let named = |text: &'p str| {
            let name = text.lines().next().and_then(|line| line.strip_prefix("// file: ")).unwrap_or("main.df");
            (format!("p/{name}"), text)
        };
        blocks.map(named).collect()
    };
    code.page.split("\n## ").skip(1).filter(of_heading).map(blocks).collect()
}

#[test]
fn wrong_examples_give_their_code_and_right_ones_none() {
    let mut failures = String::new();
    // E0704 is about a lock file beside a pipeline of a certain name: the whole program's tests have it.
    for code in CODES.iter().filter(|code| !code.code.starts_with('R') && code.code != "E0704") {
        for (heading, wanted) in [("Wrong", vec![code.code]), ("Right", Vec::new())] {
            for files in examples(code, heading) {
                let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
                let checked = compiler(&files).check(Path::new("p/main.df"));
                let found: Vec<&str> = checked.diagnostics.iter().map(|d| d.code).collect();
                if found != wanted {
                    failures.push_str(&format!("\n{} {heading}: {found:?}\n", code.code));
                    failures.push_str(&dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_code_of_the_front_end_has_a_page() {
    let sources = [
        include_str!("../../src/bind.rs"),
        include_str!("../../src/check/address.rs"),
        include_str!("../../src/check/chain.rs"),
        include_str!("../../src/check/ends.rs"),
        include_str!("../../src/check/forms.rs"),
        include_str!("../../src/check/grouping.rs"),
        include_str!("../../src/check/joins.rs"),
        include_str!("../../src/check/options.rs"),
        include_str!("../../src/check/refused.rs"),
        include_str!("../../src/check/rows.rs"),
        include_str!("../../src/check/together.rs"),
        include_str!("../../src/check/unions.rs"),
        include_str!("../../src/globals.rs"),
        include_str!("../../src/graph.rs"),
        include_str!("../../src/items.rs"),
        include_str!("../../src/report.rs"),
        include_str!("../../src/settings.rs"),
    ];
    for text in sources {
        for code in text.split('"').filter(|word| word.len() == 5 && matches!(word.as_bytes()[0], b'E' | b'W')) {
            if code[1..].bytes().all(|b| b.is_ascii_digit()) {
                assert!(explain(code).is_some(), "{code} has no page");
            }
        }
    }
}

#[test]
fn declared_operators_have_rules_and_docs() {
    use dfc_compiler::operators::{Role, table};
    assert_eq!(table().names(Role::Source), ["csv", "generate", "jsonl", "parquet", "postgres", "sqlite"]);
    assert_eq!(table().names(Role::Sink), ["csv", "discard", "jsonl", "parquet", "postgres", "print", "sqlite"]);
    assert_eq!(table().names(Role::Shuffle).len(), 14);
    for operator in table().all() {
        assert!(operator.doc.is_some(), "{}", operator.name);
    }
}
