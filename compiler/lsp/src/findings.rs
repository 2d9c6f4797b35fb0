//! Findings for the client: those of `dfc check`, from every root that a file belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_compiler::editor::Findings;
use dfc_compiler::ide::TextRange;
use dfc_diagnostics::{Diagnostic, Place, Severity};
use ls_types::{DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location, NumberOrString};
use serde_json::json;

use crate::positions::Text;
use crate::snapshot::Snapshot;

/// The name under which findings are shown.
const SOURCE: &str = "dfc";

/// Warnings on what nothing uses: shown faded.
const UNUSED: &[&str] = &["E0303", "E0304"];

/// What the job as a whole is told, wherever it is shown.
const OF_THE_JOB: &[&str] = &["E0315", "E0318", "E0801", "E0802", "W0801", "W0802", "W0804"];

/// Whether a finding is one on the job as a whole.
pub fn is_of_the_job(finding: &ls_types::Diagnostic) -> bool {
    matches!(&finding.code, Some(NumberOrString::String(code)) if OF_THE_JOB.contains(&code.as_str()))
}

/// The findings on one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileFindings {
    /// The version of the open document that they are of.
    pub version: Option<i32>,
    /// The findings.
    pub list: Vec<ls_types::Diagnostic>,
}

/// The findings on the open files and on every file that is checked with them.
pub fn all(snapshot: &Snapshot) -> BTreeMap<PathBuf, FileFindings> {
    let mut out: BTreeMap<PathBuf, FileFindings> = BTreeMap::new();
    let mut seen: BTreeMap<PathBuf, Findings> = BTreeMap::new();
    for document in snapshot.documents.iter() {
        let roots = snapshot.compiler.roots_of(&document.path, &snapshot.known);
        for root in &roots {
            seen.entry(root.clone()).or_insert_with(|| snapshot.compiler.findings(root));
        }
        out.insert(document.path.clone(), FileFindings { version: Some(document.version), list: Vec::new() });
    }
    for (root, findings) in &seen {
        let open = snapshot.documents.by_path(root).is_some();
        let files = Files::new(snapshot, findings);
        for diagnostic in findings.diagnostics.iter() {
            let Some((path, _)) = findings.files.get(diagnostic.place.file.0 as usize) else { continue };
            // A root that isn't open itself is asked about the open files only.
            let path = match snapshot.documents.by_path(path) {
                Some(document) => document.path.clone(),
                None if open => path.clone(),
                None => continue,
            };
            let entry = out.entry(path).or_insert_with(|| FileFindings { version: None, list: Vec::new() });
            let shown = files.shown(diagnostic);
            // Two roots may say the same.
            if !entry.list.contains(&shown) {
                entry.list.push(shown);
            }
        }
    }
    out
}

/// The findings on one file, from all its roots.
pub fn of(snapshot: &Snapshot, file: &PathBuf) -> Vec<ls_types::Diagnostic> {
    from_roots(snapshot, file, |root| snapshot.compiler.findings(root))
}

/// The findings on one file that don't wait for other files, from all its roots. `None` for a root itself, of which the job as a
/// whole may say more.
pub fn own(snapshot: &Snapshot, file: &PathBuf) -> Option<Vec<ls_types::Diagnostic>> {
    let is_root = snapshot.compiler.roots_of(file, &snapshot.known).contains(file);
    (!is_root).then(|| from_roots(snapshot, file, |root| snapshot.compiler.file_findings(root, file)))
}

/// The findings on one file, as its roots are asked for.
pub fn from_roots(
    snapshot: &Snapshot,
    file: &PathBuf,
    mut ask: impl FnMut(&Path) -> Findings,
) -> Vec<ls_types::Diagnostic> {
    let mut list: Vec<ls_types::Diagnostic> = Vec::new();
    for root in snapshot.compiler.roots_of(file, &snapshot.known) {
        let findings = ask(&root);
        let files = Files::new(snapshot, &findings);
        let own = |place: &Place| {
            findings.files.get(place.file.0 as usize).is_some_and(|(path, _)| {
                path == file || snapshot.documents.by_path(path).is_some_and(|document| document.path == *file)
            })
        };
        for diagnostic in findings.diagnostics.iter().filter(|diagnostic| own(&diagnostic.place)) {
            let shown = files.shown(diagnostic);
            if !list.contains(&shown) {
                list.push(shown);
            }
        }
    }
    list
}

/// The files that a set of findings speaks of, with their lines, counted when the first finding needs them.
struct Files<'s> {
    snapshot: &'s Snapshot,
    findings: &'s Findings,
    texts: Vec<std::cell::OnceCell<Option<Arc<Text>>>>,
}

impl<'s> Files<'s> {
    fn new(snapshot: &'s Snapshot, findings: &'s Findings) -> Self {
        Files { snapshot, findings, texts: findings.files.iter().map(|_| Default::default()).collect() }
    }

    fn location(&self, place: &Place) -> Option<Location> {
        let index = place.file.0 as usize;
        let (path, _) = self.findings.files.get(index)?;
        let text = self.texts.get(index)?.get_or_init(|| self.snapshot.text(path)).clone();
        let text = text.unwrap_or_else(|| Arc::new(Text::new("")));
        let range = self.snapshot.range(&text, TextRange::new(place.start as usize, place.end as usize));
        Some(Location { uri: self.snapshot.uri(path)?, range })
    }

    fn shown(&self, diagnostic: &Diagnostic) -> ls_types::Diagnostic {
        let mut message = diagnostic.message.clone();
        for note in &diagnostic.notes {
            message.push_str(&format!("\nnote: {note}"));
        }
        if let Some(help) = &diagnostic.help {
            message.push_str(&format!("\nhelp: {help}"));
        }
        let related = diagnostic.related.iter().filter_map(|(place, words)| {
            Some(DiagnosticRelatedInformation { location: self.location(place)?, message: words.clone() })
        });
        let related: Vec<_> = related.collect();
        let fixes: Vec<_> = diagnostic
            .fixes
            .iter()
            .filter_map(|fix| {
                let at = self.location(&fix.place)?;
                Some(json!({ "title": fix.title, "uri": at.uri, "range": at.range, "newText": fix.text }))
            })
            .collect();
        ls_types::Diagnostic {
            range: self.location(&diagnostic.place).map(|location| location.range).unwrap_or_default(),
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(diagnostic.code.to_owned())),
            code_description: None,
            source: Some(SOURCE.to_owned()),
            message,
            related_information: (self.snapshot.client.related_information && !related.is_empty()).then_some(related),
            tags: UNUSED.contains(&diagnostic.code).then(|| vec![DiagnosticTag::UNNECESSARY]),
            // What the other members have no place for.
            data: Some(json!({ "label": diagnostic.label, "fixes": fixes })),
        }
    }
}
