//! The editor's questions: what may be written here, what is this, what is called, where does it come from.
//!
//! Every question is a function of the compiler, a root file (whose program is meant), a file of that program and a byte
//! offset in its text; every answer is plain data ([`data`]). Any offset will do: one that is past the end or inside a
//! character is taken back to where a character starts. A file with mistakes is answered from its sound parts, and for an
//! item that is broken from the last version that was whole.
//!
//! It may not know a protocol, nor change a file.

mod data;

use std::path::Path;

pub use data::{
    ActionKind, CodeAction, CodeLens, Completion, CompletionKind, FileEdit, FileRange, HintKind, Hover, InlayHint,
    LensCommand, Lineage, LineageStep, Signature, SignatureHelp, SignatureParam, TextEdit, TextRange,
};

use crate::Compiler;

/// What may be written at a place, best first.
pub fn completion(_compiler: &Compiler, _root: &Path, _file: &Path, _offset: usize) -> Vec<Completion> {
    Vec::new()
}

/// What the word at a place is.
pub fn hover(_compiler: &Compiler, _root: &Path, _file: &Path, _offset: usize) -> Option<Hover> {
    None
}

/// The signatures of the innermost call around a place.
pub fn signature_help(_compiler: &Compiler, _root: &Path, _file: &Path, _offset: usize) -> Option<SignatureHelp> {
    None
}

/// What each link does to the fields, and types that aren't written, in a range of a file, by place.
pub fn inlay_hints(_compiler: &Compiler, _root: &Path, _file: &Path, _range: TextRange) -> Vec<InlayHint> {
    Vec::new()
}

/// Changes offered for a selection: the fixes of the findings that meet it, and rewritings of what is selected.
pub fn code_actions(_compiler: &Compiler, _root: &Path, _file: &Path, _range: TextRange) -> Vec<CodeAction> {
    Vec::new()
}

/// The commands above a file's job.
pub fn code_lenses(_compiler: &Compiler, _root: &Path, _file: &Path) -> Vec<CodeLens> {
    Vec::new()
}

/// Where the field at a place comes from. On a sink's connector or a stream's name: one answer for each of its fields.
pub fn lineage(_compiler: &Compiler, _root: &Path, _file: &Path, _offset: usize) -> Vec<Lineage> {
    Vec::new()
}
