//! The shape of a file: symbols, folding, selections.

use dfc_compiler::ide::{self, FoldKind, Symbol, SymbolKind as Kind};
use ls_types::*;

use crate::positions::Text;
use crate::snapshot::{Failure, Snapshot};

/// Symbols that a search gives at most.
const FOUND: usize = 500;

/// `textDocument/documentSymbol`
pub fn document_symbols(
    snapshot: &Snapshot,
    params: DocumentSymbolParams,
) -> Result<Option<DocumentSymbolResponse>, Failure> {
    let (file, text) = snapshot.file(&params.text_document.uri)?;
    let symbols = ide::symbols(&snapshot.compiler, &file);
    if snapshot.client.nested_symbols {
        let nested = symbols.iter().map(|symbol| nested(snapshot, &text, symbol)).collect();
        return Ok(Some(DocumentSymbolResponse::Nested(nested)));
    }
    let mut flat = Vec::new();
    for symbol in &symbols {
        flatten(snapshot, &params.text_document.uri, &text, symbol, None, &mut flat);
    }
    Ok(Some(DocumentSymbolResponse::Flat(flat)))
}

#[allow(deprecated)] // the type has a member that is no longer used
fn nested(snapshot: &Snapshot, text: &Text, symbol: &Symbol) -> DocumentSymbol {
    let children: Vec<_> = symbol.children.iter().map(|child| nested(snapshot, text, child)).collect();
    DocumentSymbol {
        name: symbol.name.clone(),
        detail: symbol.detail.clone(),
        kind: kind(symbol.kind),
        tags: None,
        deprecated: None,
        range: snapshot.range(text, symbol.range),
        selection_range: snapshot.range(text, symbol.name_range),
        children: (!children.is_empty()).then_some(children),
    }
}

#[allow(deprecated)] // the type has a member that is no longer used
fn flatten(
    snapshot: &Snapshot,
    uri: &Uri,
    text: &Text,
    symbol: &Symbol,
    container: Option<&str>,
    out: &mut Vec<SymbolInformation>,
) {
    out.push(SymbolInformation {
        name: symbol.name.clone(),
        kind: kind(symbol.kind),
        tags: None,
        deprecated: None,
        location: Location { uri: uri.clone(), range: snapshot.range(text, symbol.range) },
        container_name: container.map(str::to_owned),
    });
    for child in &symbol.children {
        flatten(snapshot, uri, text, child, Some(&symbol.name), out);
    }
}

fn kind(kind: Kind) -> SymbolKind {
    match kind {
        Kind::Job => SymbolKind::MODULE,
        Kind::Param => SymbolKind::VARIABLE,
        Kind::Const => SymbolKind::CONSTANT,
        Kind::Record => SymbolKind::STRUCT,
        Kind::Field => SymbolKind::FIELD,
        Kind::Source => SymbolKind::INTERFACE,
        Kind::Stream => SymbolKind::CLASS,
        Kind::Sink => SymbolKind::EVENT,
        Kind::Function => SymbolKind::FUNCTION,
        Kind::Operator => SymbolKind::METHOD,
        Kind::Library => SymbolKind::FILE,
    }
}

/// `workspace/symbol`: items of every pipeline file whose names hold the letters asked for, in order.
#[allow(deprecated)] // the type has a member that is no longer used
pub fn workspace_symbols(
    snapshot: &Snapshot,
    params: WorkspaceSymbolParams,
) -> Result<Option<WorkspaceSymbolResponse>, Failure> {
    let wanted = params.query.to_lowercase();
    let mut files: Vec<_> = snapshot.known.iter().cloned().collect();
    files.extend(snapshot.documents.iter().map(|document| document.path.clone()));
    files.sort();
    files.dedup();
    let mut found = Vec::new();
    for file in files {
        let (Some(uri), Some(text)) = (snapshot.uri(&file), snapshot.text(&file)) else { continue };
        for symbol in ide::symbols(&snapshot.compiler, &file) {
            if !has_letters(&symbol.name.to_lowercase(), &wanted) {
                continue;
            }
            if found.len() == FOUND {
                return Ok(Some(WorkspaceSymbolResponse::Flat(found)));
            }
            found.push(SymbolInformation {
                name: symbol.name,
                kind: kind(symbol.kind),
                tags: None,
                deprecated: None,
                location: Location { uri: uri.clone(), range: snapshot.range(&text, symbol.name_range) },
                container_name: None,
            });
        }
    }
    Ok(Some(WorkspaceSymbolResponse::Flat(found)))
}

fn has_letters(name: &str, letters: &str) -> bool {
    let mut chars = name.chars();
    letters.chars().all(|letter| chars.any(|c| c == letter))
}

/// `textDocument/foldingRange`
pub fn folding(snapshot: &Snapshot, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>, Failure> {
    let (file, text) = snapshot.file(&params.text_document.uri)?;
    let folds = ide::folds(&snapshot.compiler, &file).into_iter().filter_map(|fold| {
        let range = snapshot.range(&text, fold.range);
        let whole = snapshot.client.line_folding;
        (range.end.line > range.start.line).then(|| FoldingRange {
            start_line: range.start.line,
            start_character: (!whole).then_some(range.start.character),
            end_line: range.end.line,
            end_character: (!whole).then_some(range.end.character),
            kind: match fold.kind {
                FoldKind::Comment => Some(FoldingRangeKind::Comment),
                FoldKind::Uses => Some(FoldingRangeKind::Imports),
                FoldKind::Part => None,
            },
            collapsed_text: None,
        })
    });
    Ok(Some(folds.collect()))
}

/// `textDocument/selectionRange`
pub fn selection(snapshot: &Snapshot, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>, Failure> {
    let (file, text) = snapshot.file(&params.text_document.uri)?;
    let answers = params.positions.iter().map(|position| {
        let offset = text.offset(*position, snapshot.client.encoding);
        let ranges = ide::selections(&snapshot.compiler, &file, offset);
        // The widest first, each around the next.
        let chain = ranges.iter().rev().fold(None, |parent: Option<SelectionRange>, range| {
            Some(SelectionRange { range: snapshot.range(&text, *range), parent: parent.map(Box::new) })
        });
        chain.unwrap_or(SelectionRange { range: Range::new(*position, *position), parent: None })
    });
    Ok(Some(answers.collect()))
}
