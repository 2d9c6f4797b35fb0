//! The editor's questions: what may be written here, what is this, what is called, where does it come from.
//!
//! Every question is a function of the compiler, a root file (whose program is meant), a file of that program and a byte
//! offset in its text; every answer is plain data (`data`). Any offset will do: one that is past the end or inside a
//! character is taken back to where a character starts. A file with mistakes is answered from its sound parts, and for an
//! item that is broken from the last version that was whole.
//!
//! It may not know a protocol, nor change a file.

mod actions;
mod completion;
mod cursor;
mod data;
mod docs;
mod expected;
mod hints;
mod hover;
mod lenses;
mod lineage;
mod meanings;
mod navigation;
mod paths;
mod place;
mod rows;
mod semantic;
mod signature;
mod symbols;
mod text;
mod view;
mod words;

pub use actions::code_actions;
pub use completion::{MOST as COMPLETIONS, completion};
pub use data::{
    ActionKind, CodeAction, CodeLens, Completion, CompletionKind, FileEdit, FileRange, HintKind, Hover, InlayHint,
    LensCommand, Lineage, LineageStep, Signature, SignatureHelp, SignatureParam, TextEdit, TextRange,
};
pub use hints::inlay_hints;
pub use hover::hover;
pub use lenses::code_lenses;
pub use lineage::lineage;
pub use meanings::TokenClass;
pub use navigation::{Named, Occurrence, definition, everywhere, prepare_rename, references, rename};
pub use semantic::{SemanticToken, semantic_tokens};
pub use signature::signature_help;
pub use symbols::{Fold, FoldKind, Symbol, SymbolKind, folds, selections, symbols};
