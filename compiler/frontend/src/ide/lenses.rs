//! The commands above a job: check, run, plan.

use std::path::Path;

use dfc_grammar::ast::ItemKind;

use super::view::{View, range};
use super::{CodeLens, LensCommand, TextRange};
use crate::Compiler;

/// The commands above a file's job.
pub fn code_lenses(compiler: &Compiler, root: &Path, file: &Path) -> Vec<CodeLens> {
    let view = View::new(compiler, root, file);
    let mut out = Vec::new();
    for (_, kind, start) in view.items_in(TextRange::new(0, view.text.len())) {
        let ItemKind::Job(job) = kind else { continue };
        let place = range(job.name.span.shift(start));
        let commands = [("Check", LensCommand::Check), ("Run", LensCommand::Run), ("Plan", LensCommand::Plan)];
        out.extend(commands.map(|(title, command)| CodeLens { range: place, title: title.into(), command }));
    }
    out
}
