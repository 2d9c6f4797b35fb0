//! Every code's page: its wrong example gives exactly that code, its right example nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dfc_compiler::files::MemoryFiles;
use dfc_compiler::{Checked, Compiler};
use dfc_diagnostics::codes::CODES;

/// The `df` blocks below a heading. A block may begin with `// file: name.df`; without it it is `pipeline.df`.
pub fn blocks(page: &str, heading: &str) -> Vec<(String, String)> {
    let Some((_, section)) = page.split_once(&format!("\n## {heading}")) else { return Vec::new() };
    let section = section.split_once("\n## ").map_or(section, |(this, _)| this);
    section
        .split("```df\n")
        .skip(1)
        .filter_map(|block| block.split_once("```").map(|(text, _)| text.to_owned()))
        .map(|text| {
            let name = text.lines().next().and_then(|line| line.strip_prefix("// file: ")).unwrap_or("pipeline.df");
            (name.trim().to_owned(), text.clone())
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
        let (bad, good) = (blocks(code.page, "Wrong"), blocks(code.page, "Right"));
        if WITHOUT_EXAMPLES.contains(&code.code) {
            assert!(bad.is_empty() && good.is_empty(), "{} has an example: take it off the list", code.code);
            continue;
        }
        if bad.is_empty() || good.is_empty() {
            wrong.push(format!("{}: the page lacks an example", code.code));
            continue;
        }
        let found = codes(&bad);
        if found != [code.code] {
            wrong.push(format!("{}: the wrong example gives {found:?}", code.code));
        }
        let found = codes(&good);
        if !found.is_empty() {
            wrong.push(format!("{}: the right example gives {found:?}", code.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CODES.len() > 60, "only {} codes have pages", CODES.len());
}
