//! Diagnostics as plain data, the registry of codes, and the renderers (human, JSON).
//!
//! It may not know what is diagnosed: places are byte ranges of files.

pub mod codes;
pub mod render;

use serde::Serialize;

/// A file among those that a set of diagnostics speaks of: an index into the renderer's list of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct FileId(pub u32);

/// A half-open byte range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The pipeline can't run.
    Error,
    /// It can, but may not do what was meant.
    Warning,
}

/// One finding. The message stands alone; labels are short; help is a change to make; notes are the rest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// A code of the registry: `E0401`.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What is wrong, in the user's words, one sentence without a full stop.
    pub message: String,
    /// Where.
    pub place: Place,
    /// A few words at the place ("unknown field"); may be empty.
    pub label: String,
    /// Other places concerned, each with its words: where the field was declared, what it conflicts with.
    pub related: Vec<(Place, String)>,
    /// Further facts, each a sentence.
    pub notes: Vec<String>,
    /// What to do, one sentence.
    pub help: Option<String>,
    /// Edits that mend it, where that is certain.
    pub fixes: Vec<Fix>,
}

/// An edit that mends a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Fix {
    /// What it does: "write `status`".
    pub title: String,
    /// Replace this range …
    pub place: Place,
    /// … by this text.
    pub text: String,
}

impl Diagnostic {
    /// An error with its place and label.
    pub fn error(code: &'static str, place: Place, message: impl Into<String>, label: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            place,
            label: label.into(),
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
            fixes: Vec::new(),
        }
    }

    /// A warning with its place and label.
    pub fn warning(code: &'static str, place: Place, message: impl Into<String>, label: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, place, message, label) }
    }

    /// With a further place.
    pub fn related(mut self, place: Place, words: impl Into<String>) -> Self {
        self.related.push((place, words.into()));
        self
    }

    /// With a note.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With help.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With a fix.
    pub fn fix(mut self, title: impl Into<String>, place: Place, text: impl Into<String>) -> Self {
        self.fixes.push(Fix { title: title.into(), place, text: text.into() });
        self
    }
}
