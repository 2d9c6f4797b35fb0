//! Where names are declared and used, and giving them others.

use std::path::Path;

use dfc_compiler::ide::{self, Occurrence};
use ls_types::*;

use crate::snapshot::{Failure, Snapshot};

/// `textDocument/definition`
pub fn definition(
    snapshot: &Snapshot,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>, Failure> {
    let (asked, offset) = snapshot.place(&params.text_document_position_params)?;
    let found = ide::definition(&snapshot.compiler, &asked.root, &asked.file, offset);
    let locations: Vec<Location> = found.iter().filter_map(|place| snapshot.location(place)).collect();
    Ok((!locations.is_empty()).then_some(GotoDefinitionResponse::Array(locations)))
}

/// The name at a place, in every program of the workspace that knows it.
fn everywhere(snapshot: &Snapshot, at: &TextDocumentPositionParams) -> Result<Vec<ide::Named>, Failure> {
    let (file, text) = snapshot.file(&at.text_document.uri)?;
    let offset = text.offset(at.position, snapshot.client.encoding);
    let roots = |file: &Path| snapshot.compiler.roots_of(file, &snapshot.known);
    Ok(ide::everywhere(&snapshot.compiler, &file, offset, roots))
}

/// Everything that means the same as the name at a place.
fn occurrences(snapshot: &Snapshot, at: &TextDocumentPositionParams) -> Result<Vec<Occurrence>, Failure> {
    Ok(ide::references(&snapshot.compiler, &everywhere(snapshot, at)?))
}

/// `textDocument/references`
pub fn references(snapshot: &Snapshot, params: ReferenceParams) -> Result<Option<Vec<Location>>, Failure> {
    let found = occurrences(snapshot, &params.text_document_position)?;
    let wanted = found.iter().filter(|found| params.context.include_declaration || !found.declares);
    Ok(Some(wanted.filter_map(|found| snapshot.location(&found.place)).collect()))
}

/// `textDocument/documentHighlight`
pub fn highlights(
    snapshot: &Snapshot,
    params: DocumentHighlightParams,
) -> Result<Option<Vec<DocumentHighlight>>, Failure> {
    let at = &params.text_document_position_params;
    let (file, text) = snapshot.file(&at.text_document.uri)?;
    let found = occurrences(snapshot, at)?;
    let here = found.iter().filter(|found| found.place.file == file).map(|found| DocumentHighlight {
        range: snapshot.range(&text, found.place.range),
        kind: Some(if found.declares { DocumentHighlightKind::WRITE } else { DocumentHighlightKind::READ }),
    });
    Ok(Some(here.collect()))
}

/// `textDocument/prepareRename`
pub fn prepare_rename(
    snapshot: &Snapshot,
    params: TextDocumentPositionParams,
) -> Result<Option<PrepareRenameResponse>, Failure> {
    let (asked, offset) = snapshot.place(&params)?;
    let (range, placeholder) =
        ide::prepare_rename(&snapshot.compiler, &asked.root, &asked.file, offset).map_err(Failure::Refused)?;
    Ok(Some(PrepareRenameResponse::RangeWithPlaceholder { range: snapshot.range(&asked.text, range), placeholder }))
}

/// `textDocument/rename`
pub fn rename(snapshot: &Snapshot, params: RenameParams) -> Result<Option<WorkspaceEdit>, Failure> {
    let names = everywhere(snapshot, &params.text_document_position)?;
    let edits = ide::rename(&snapshot.compiler, &names, &params.new_name).map_err(Failure::Refused)?;
    Ok(snapshot.workspace_edit(&edits))
}
