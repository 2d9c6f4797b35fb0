//! Diagnostics while an item is checked: places are relative to items, so that an edit elsewhere leaves them equal.
//! The compiler turns them into `dfc_diagnostics::Diagnostic` when it knows where the items stand.

use dfc_diagnostics::Severity;
use dfc_grammar::ast::Span;

/// Kinds of items; each is a namespace of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // each is its item word
pub enum Namespace {
    Job,
    /// `param` and `const` share one namespace.
    Value,
    Record,
    /// `source` and `stream` share one namespace.
    Stream,
    Sink,
    Fn,
    Operator,
    Use,
    /// A declaration of the standard library.
    Native,
}

/// An item, named so that edits elsewhere don't change it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    /// The file: an index that the compiler hands out.
    pub file: u32,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name; empty for sinks and `use`.
    pub name: String,
    /// Which of several of that name in the file (an error, but each is checked), or which sink.
    pub nth: u32,
}

/// A place inside an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loc {
    /// The item.
    pub item: ItemKey,
    /// Relative to the item's start.
    pub span: Span,
}

/// A diagnostic with item-relative places. Fields as in `dfc_diagnostics::Diagnostic`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocalDiagnostic {
    /// Code of the registry.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub message: String,
    /// Where.
    pub loc: Loc,
    /// A few words at the place.
    pub label: String,
    /// Other places concerned.
    pub related: Vec<(Loc, String)>,
    /// Further facts.
    pub notes: Vec<String>,
    /// A change to make.
    pub help: Option<String>,
    /// Certain edits: title, place, new text.
    pub fixes: Vec<(String, Loc, String)>,
}

impl LocalDiagnostic {
    /// An error.
    pub fn error(code: &'static str, loc: Loc, message: impl Into<String>, label: impl Into<String>) -> Self {
        LocalDiagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            loc,
            label: label.into(),
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
            fixes: Vec::new(),
        }
    }

    /// A warning.
    pub fn warning(code: &'static str, loc: Loc, message: impl Into<String>, label: impl Into<String>) -> Self {
        LocalDiagnostic { severity: Severity::Warning, ..LocalDiagnostic::error(code, loc, message, label) }
    }

    /// With a further place.
    pub fn related(mut self, loc: Loc, words: impl Into<String>) -> Self {
        self.related.push((loc, words.into()));
        self
    }

    /// With further places.
    pub fn related_all(mut self, places: impl IntoIterator<Item = (Loc, String)>) -> Self {
        self.related.extend(places);
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
    pub fn fix(mut self, title: impl Into<String>, loc: Loc, text: impl Into<String>) -> Self {
        self.fixes.push((title.into(), loc, text.into()));
        self
    }
}
