//! The requests: each from a snapshot and its parameters to its answer.
//!
//! A handler may panic or be stopped; who calls it catches that.

pub mod answers;
pub mod diagnostics;
pub mod edits;
pub mod navigation;
pub mod outline;
pub mod semantic;

use ls_types::request::*;
use serde_json::Value;

use crate::commands;
use crate::snapshot::{Failure, Snapshot};

/// A handler with its types taken off.
pub type Handler = fn(&Snapshot, Value) -> Result<Value, Failure>;

/// One table of methods: the request's type and what answers it.
macro_rules! table {
    ($($request:ty => $answer:path,)*) => {
        /// What answers a method.
        pub fn handler(method: &str) -> Option<Handler> {
            match method {
                $(<$request>::METHOD => {
                    fn answer(snapshot: &Snapshot, params: Value) -> Result<Value, Failure> {
                        let params: <$request as Request>::Params =
                            serde_json::from_value(params).map_err(|error| Failure::Parameters(error.to_string()))?;
                        let answer: <$request as Request>::Result = $answer(snapshot, params)?;
                        serde_json::to_value(answer).map_err(|error| Failure::refused(error.to_string()))
                    }
                    Some(answer)
                })*
                _ => None,
            }
        }
    };
}

table! {
    Completion => answers::completion,
    HoverRequest => answers::hover,
    SignatureHelpRequest => answers::signature_help,
    InlayHintRequest => answers::inlay_hints,
    CodeActionRequest => answers::code_actions,
    CodeLensRequest => answers::code_lenses,
    DocumentDiagnosticRequest => diagnostics::of_document,
    WorkspaceDiagnosticRequest => diagnostics::of_workspace,
    GotoDefinition => navigation::definition,
    References => navigation::references,
    DocumentHighlightRequest => navigation::highlights,
    PrepareRenameRequest => navigation::prepare_rename,
    Rename => navigation::rename,
    DocumentSymbolRequest => outline::document_symbols,
    WorkspaceSymbolRequest => outline::workspace_symbols,
    FoldingRangeRequest => outline::folding,
    SelectionRangeRequest => outline::selection,
    SemanticTokensFullRequest => semantic::full,
    SemanticTokensRangeRequest => semantic::range,
    Formatting => edits::formatting,
    RangeFormatting => edits::range_formatting,
    ExecuteCommand => commands::execute,
}
