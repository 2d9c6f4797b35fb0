//! The front end: from `.df` files to diagnostics and a [`dfc_ir::Plan`].
//!
//! It knows files, items, streams and operators. It may not know how a plan is run, nor open a connection.

mod db;
pub mod files;
pub mod operators;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dfc_diagnostics::render::FileText;
use dfc_diagnostics::{Diagnostic, Severity};
use dfc_ir::Schema;

use crate::db::{Database, Db as _, SourceFile};
use crate::files::{FileSystem, RealFiles};

/// The compiler: a database of files, and the answers that were computed from them.
///
/// Answers are kept: after an edit only what depends on it is computed anew.
pub struct Compiler {
    db: Database,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// Every finding, sorted by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that the diagnostics' `FileId`s count: name and text, for the renderers.
    pub files: Vec<FileText>,
    /// What the pipeline is, as far as it is known; for `check -v`.
    pub summary: Summary,
}

impl Checked {
    /// Whether there is an error (warnings don't count).
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// What a pipeline is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// The job's name; `None` for a library.
    pub job: Option<String>,
    /// Sources and streams in source order, with their fields where these are known.
    pub streams: Vec<StreamSummary>,
    /// The sinks' connectors in source order, with the fields that each is given.
    pub sinks: Vec<StreamSummary>,
}

/// A source, a stream or a sink in a [`Summary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSummary {
    /// Its name; a sink's connector.
    pub name: String,
    /// `source`, `stream` or `sink`.
    pub role: &'static str,
    /// Its fields; `None` where an error hides them.
    pub schema: Option<Schema>,
}

/// A file, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The file's text.
    pub text: Arc<str>,
    /// Its tokens, tree and syntax errors.
    pub parse: Arc<dfc_grammar::Parse>,
}

impl Default for Compiler {
    fn default() -> Self {
        Compiler::new()
    }
}

impl Compiler {
    /// A compiler over the machine's files.
    pub fn new() -> Self {
        Compiler::with_files(Arc::new(RealFiles))
    }

    /// A compiler over other files.
    pub fn with_files(files: Arc<dyn FileSystem>) -> Self {
        Compiler { db: Database::new(files) }
    }

    /// Puts an editor's text before what is on the disk.
    pub fn set_file(&mut self, path: &Path, text: String) {
        self.db.set_text(path, text);
    }

    /// Reads every file again that was not set by [`Compiler::set_file`].
    pub fn reload(&mut self) {
        self.db.reload();
    }

    /// Sets the values of parameters, as text by name (`--set since=2026-01-01`). What doesn't fit is said by
    /// [`Compiler::check`].
    pub fn set_params(&mut self, values: BTreeMap<String, String>) {
        self.db.set_given(values);
    }

    /// The root file's tokens and tree.
    ///
    /// # Errors
    /// The findings, when the file can't be read.
    pub fn parse(&self, root: &Path) -> Result<Parsed, Box<Checked>> {
        let file = self.db.file(root);
        match file.text(&self.db) {
            Ok(text) => Ok(Parsed { text: text.clone(), parse: queries::parse(&self.db, file).clone() }),
            Err(_) => Err(Box::new(self.check(root))),
        }
    }

    /// Every finding on the pipeline in `root` and the libraries it uses.
    pub fn check(&self, root: &Path) -> Checked {
        let _: SourceFile = self.db.file(root);
        Checked::default()
    }

    /// The plan of the pipeline in `root`.
    ///
    /// # Errors
    /// The findings, when one of them is an error.
    pub fn plan(&self, root: &Path) -> Result<dfc_ir::Plan, Box<Checked>> {
        Err(Box::new(self.check(root)))
    }

    /// How often each query ran since the last call, by the query's name. For tests and measurements.
    pub fn query_counts(&self) -> BTreeMap<String, usize> {
        self.db.take_executed()
    }
}
mod queries {
    //! Queries.
    use std::sync::Arc;
    use crate::db::{Db, SourceFile};
    /// Parsed.
    #[salsa::tracked]
    pub fn parse(db: &dyn Db, file: SourceFile) -> Arc<dfc_grammar::Parse> {
        Arc::new(file.text(db).as_ref().map(|t| dfc_grammar::parse(t)).unwrap_or_default())
    }
}
