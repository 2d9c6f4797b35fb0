//! Findings for clients that ask for them: of a document, and of every pipeline of the workspace, open or not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use dfc_compiler::editor::Findings;
use ls_types::*;

use crate::findings;
use crate::snapshot::{Failure, Snapshot};

/// A name for a list of findings: the same list has the same one.
fn result_id(items: &[Diagnostic]) -> Result<String, Failure> {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(items).map_err(|error| Failure::refused(error.to_string()))?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// `textDocument/diagnostic`
pub fn of_document(
    snapshot: &Snapshot,
    params: DocumentDiagnosticParams,
) -> Result<DocumentDiagnosticReportResult, Failure> {
    let (file, _) = snapshot.file(&params.text_document.uri)?;
    let items = findings::of(snapshot, &file);
    let result_id = result_id(&items)?;
    let report = match params.previous_result_id == Some(result_id.clone()) {
        true => DocumentDiagnosticReport::Unchanged(RelatedUnchangedDocumentDiagnosticReport {
            related_documents: None,
            unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
        }),
        false => DocumentDiagnosticReport::Full(RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id: Some(result_id), items },
        }),
    };
    Ok(DocumentDiagnosticReportResult::Report(report))
}

/// `workspace/diagnostic`: of every pipeline file below the folders and of those that are open.
pub fn of_workspace(
    snapshot: &Snapshot,
    params: WorkspaceDiagnosticParams,
) -> Result<WorkspaceDiagnosticReportResult, Failure> {
    let before: HashMap<&str, &str> =
        params.previous_result_ids.iter().map(|previous| (previous.uri.as_str(), previous.value.as_str())).collect();
    // A root is asked once, however many files are seen from it.
    let mut roots: BTreeMap<PathBuf, Findings> = BTreeMap::new();
    let mut reports = Vec::new();
    // What they use may lie elsewhere.
    let mut files: BTreeSet<PathBuf> = snapshot.known.iter().cloned().collect();
    files.extend(snapshot.known.iter().flat_map(|file| snapshot.compiler.program_files(file)));
    for file in &files {
        if snapshot.compiler.text(file).is_none() {
            continue;
        }
        let Some(uri) = snapshot.uri(file) else { continue };
        let items = findings::from_roots(snapshot, file, |root| {
            roots.entry(root.to_path_buf()).or_insert_with(|| snapshot.compiler.findings(root)).clone()
        });
        let result_id = result_id(&items)?;
        let version = snapshot.documents.by_path(file).map(|document| i64::from(document.version));
        reports.push(match before.get(uri.as_str()) == Some(&result_id.as_str()) {
            true => WorkspaceDocumentDiagnosticReport::Unchanged(WorkspaceUnchangedDocumentDiagnosticReport {
                uri,
                version,
                unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
            }),
            false => WorkspaceDocumentDiagnosticReport::Full(WorkspaceFullDocumentDiagnosticReport {
                uri,
                version,
                full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id: Some(result_id), items },
            }),
        });
    }
    // What is gone has no findings any more.
    let gone = params.previous_result_ids.iter().filter(|previous| {
        reports.iter().all(|report| match report {
            WorkspaceDocumentDiagnosticReport::Full(report) => report.uri != previous.uri,
            WorkspaceDocumentDiagnosticReport::Unchanged(report) => report.uri != previous.uri,
        })
    });
    let gone: Vec<_> = gone
        .map(|previous| {
            WorkspaceDocumentDiagnosticReport::Full(WorkspaceFullDocumentDiagnosticReport {
                uri: previous.uri.clone(),
                version: None,
                full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id: None, items: Vec::new() },
            })
        })
        .collect();
    reports.extend(gone);
    Ok(WorkspaceDiagnosticReportResult::Report(WorkspaceDiagnosticReport { items: reports }))
}
