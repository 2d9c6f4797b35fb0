//! Every code's page: its wrong example gives exactly that code, its right example nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dfc_compiler::files::MemoryFiles;
use dfc_compiler::{Checked, Compiler};
use dfc_diagnostics::codes::CODES;

/// The examples of a page, `Wrong` or `Right` ones: each section of that heading (`## Wrong`, `## Wrong: appending to a file`) is one. Its
/// `df` blocks are files; one may begin with `// file: name.df`, without it it is `pipeline.df`.
pub fn examples(page: &str, heading: &str) -> Vec<Vec<(String, String)>> {
    let heading = format!("## {heading}");
    let sections = page.split("\n## ").skip(1).map(|section| format!("## {section}"));
    let of_heading = |section: &String| {
        let title = section.lines().next().unwrap_or_default();
        title == heading || title.starts_with(&format!("{heading}: "))
    };
    sections.filter(of_heading).map(|section| blocks(&section)).collect()
}

fn blocks(section: &str) -> Vec<(String, String)> {
    let texts = section.split("```df\n").skip(1).filter_map(|block| block.split_once("```"));
    texts
        .map(|(text, _)| {
            let name = text.lines().next().and_then(|line| line.strip_prefix("// file: ")).unwrap_or("pipeline.df");
            (name.trim().to_owned(), text.to_owned())
        })
        .collect()
}

/// What is found in the blocks, checked together.
pub fn check(blocks: &[(String, String)]) -> Checked {
    let files: BTreeMap<_, _> = blocks.iter().map(|(name, text)| (Path::new(name).to_owned(), text.clone())).collect();
    let compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
    compiler.check(Path::new("pipeline.df"))
}

fn codes(blocks: &[(String, String)]) -> Vec<&'static str> {
    check(blocks).diagnostics.iter().map(|d| d.code).collect()
}

/// Codes that no file alone can show: a file, a name or a number of files or findings too large to print, a defect of the compiler, values given with `--set`, and a
/// job whose sink can only name what doesn't exist.
const WITHOUT_EXAMPLES: [&str; 9] = ["E0125", "E0130", "E0213", "E0299", "E0313", "E0620", "E0621", "E0622", "W0203"];

#[test]
fn pages_are_true() {
    let mut wrong = Vec::new();
    for code in CODES.iter().filter(|code| !code.code.starts_with('R')) {
        let (bad, good) = (examples(code.page, "Wrong"), examples(code.page, "Right"));
        if WITHOUT_EXAMPLES.contains(&code.code) {
            assert!(bad.is_empty() && good.is_empty(), "{} has an example: take it off the list", code.code);
            continue;
        }
        if bad.is_empty() || bad.len() != good.len() {
            wrong.push(format!("{}: the page has {} wrong and {} right examples", code.code, bad.len(), good.len()));
        }
        for (number, example) in bad.iter().enumerate() {
            let found = codes(example);
            if found != [code.code] {
                wrong.push(format!("{}: the wrong example {} gives {found:?}", code.code, number + 1));
            }
        }
        for (number, example) in good.iter().enumerate() {
            let found = codes(example);
            if !found.is_empty() {
                wrong.push(format!("{}: the right example {} gives {found:?}", code.code, number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CODES.len() > 60, "only {} codes have pages", CODES.len());
}
