//! The editor's answers, each from a small pipeline with a cursor in it, written `$0`.

mod actions;
mod completion;
mod hints;
mod hover;
mod lineage;
mod robust;
mod signature;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_compiler::Compiler;
use dfc_compiler::files::MemoryFiles;
use dfc_compiler::ide::{FileEdit, TextRange};

/// Where the pipelines of these tests are.
pub const MAIN: &str = "p/main.df";

/// Declarations that the pipelines share.
pub const HEAD: &str = "\
job example {}
/// What was bought.
record Order {
    id: int64
    user_id: int64
    /// `paid` or `open`.
    status: string
    price: decimal(15, 2)
    discount: decimal(4, 2)?
    at: datetime = \"Created At\"
}
record User { id: int64, name: string, country: string? }
param since: date = @1995-01-01
const vat = 0.19
/// The price without the discount.
fn net(price: decimal(15, 2), discount: decimal(4, 2)?) = price * (1 - discount ?? 0)
source orders = csv(\"orders.csv\", schema: Order)
source users = csv(\"users.csv\", schema: User)
";

/// A compiler over one pipeline: [`HEAD`] and `text` without its cursors; and where these are.
pub fn at(text: &str) -> (Compiler, Vec<usize>) {
    of(&[(MAIN, &format!("{HEAD}{text}"))])
}

/// A compiler over files, and where the cursors of the first one are.
pub fn of(files: &[(&str, &str)]) -> (Compiler, Vec<usize>) {
    let mut cursors = Vec::new();
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (number, (path, text)) in files.iter().enumerate() {
        let mut parts = text.split("$0");
        let mut whole = parts.next().unwrap_or_default().to_string();
        for part in parts {
            if number == 0 {
                cursors.push(whole.len());
            }
            whole.push_str(part);
        }
        texts.insert(PathBuf::from(path), whole);
    }
    (Compiler::with_files(Arc::new(MemoryFiles { files: texts })), cursors)
}

/// The text of the main file.
pub fn text(compiler: &Compiler) -> String {
    compiler.text(Path::new(MAIN)).map(|text| text.to_string()).unwrap_or_default()
}

/// Makes the changes of one file.
pub fn apply(text: &str, edits: &[FileEdit]) -> String {
    let mut out = text.to_string();
    let mut changes: Vec<_> = edits.iter().flat_map(|file| &file.edits).collect();
    changes.sort_by_key(|edit| (edit.range.start, edit.range.end));
    for edit in changes.into_iter().rev() {
        out.replace_range(edit.range.start..edit.range.end, &edit.text);
    }
    out
}

/// The range between two cursors, or at one.
pub fn between(cursors: &[usize]) -> TextRange {
    TextRange::new(cursors[0], *cursors.last().expect("a cursor"))
}
