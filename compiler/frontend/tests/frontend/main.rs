//! The front end's layers, each from small pipelines: expected codes, plans, and how much is computed anew after an edit.

mod allowed;
mod editor;
mod fields;
mod graph;
mod outcomes;
mod pages;
mod parameters;
mod pipelines;
mod plans;
mod queries;
mod structure;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_compiler::files::MemoryFiles;
use dfc_compiler::{Checked, Compiler};

/// Declarations that the pipelines share.
pub const HEAD: &str = "\
job example {}
record Order { id: int64, user_id: int64, status: string, price: decimal(15, 2), discount: decimal(4, 2)?, at: datetime }
record User { id: int64, name: string, country: string? } // allow W0403: not every pipeline takes it
source orders = csv(\"orders.csv\", schema: Order)
";

/// A compiler over files in memory.
pub fn compiler(files: &[(&str, &str)]) -> Compiler {
    let files: BTreeMap<PathBuf, String> =
        files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect();
    Compiler::counting(Arc::new(MemoryFiles { files }))
}

/// A compiler over files that an editor holds.
pub fn held(files: &[(&str, &str)]) -> Compiler {
    let mut compiler = compiler(files);
    for (path, text) in files {
        compiler.set_file(Path::new(path), (*text).to_owned());
    }
    compiler
}

/// Checks one file.
pub fn check(text: &str) -> Checked {
    compiler(&[("p/main.df", text)]).check(Path::new("p/main.df"))
}

/// The codes found in `HEAD` followed by `text`.
pub fn codes(text: &str) -> Vec<&'static str> {
    check(&format!("{HEAD}{text}")).diagnostics.iter().map(|d| d.code).collect()
}

/// Asserts the codes found in `HEAD` followed by `text`, and shows the messages if they differ.
#[track_caller]
pub fn expect(text: &str, wanted: &[&str]) {
    let checked = check(&format!("{HEAD}{text}"));
    let found: Vec<&str> = checked.diagnostics.iter().map(|d| d.code).collect();
    let shown = dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false);
    assert_eq!(found, wanted, "\n{text}\n{shown}");
}
