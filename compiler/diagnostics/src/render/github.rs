//! For GitHub Actions: a workflow command a diagnostic, shown beside the line in a pull request.
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>

use std::fmt::Write as _;

use super::FileText;
use crate::{Diagnostic, Severity};

/// The diagnostics as workflow commands, one a line.
pub fn github(diagnostics: &[Diagnostic], files: &[FileText]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let level = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let place = files.get(diagnostic.place.file.0 as usize).map_or(String::new(), |file| {
            let (line, column) = file.position(diagnostic.place.start);
            let (end_line, end_column) = file.position(diagnostic.place.end.max(diagnostic.place.start));
            let name = property(&file.name);
            format!("file={name},line={line},col={column},endLine={end_line},endColumn={end_column},")
        });
        let mut message = diagnostic.message.clone();
        for note in &diagnostic.notes {
            // Writing to a string does not fail.
            let _ = write!(message, "\nnote: {note}");
        }
        if let Some(help) = &diagnostic.help {
            let _ = write!(message, "\nhelp: {help}");
        }
        let _ = writeln!(out, "::{level} {place}title={}::{}", property(diagnostic.code), data(&message));
    }
    out
}

/// Text as the commands' data demand it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Text as the commands' properties demand it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
