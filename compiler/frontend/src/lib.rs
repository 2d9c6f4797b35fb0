//! The front end: from `.df` files to diagnostics and a [`dfc_ir::Plan`].
//!
//! It knows files, items, streams and operators. It may not know how a plan is run, nor open a connection.

mod allow;
mod bind;
mod catalog;
mod check;
mod cycles;
mod db;
mod edges;
pub mod editor;
pub mod files;
mod globals;
mod graph;
pub mod guarantees;
pub mod ide;
mod items;
mod joblints;
mod lower;
mod mentions;
mod names;
pub mod operators;
mod parts;
mod places;
mod recall;
mod references;
mod report;
mod said;
pub mod schemas;
mod secrets;
mod seen;
mod settings;
mod unmentioned;
mod unused;
mod userops;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dfc_diagnostics::render::FileText;
use dfc_diagnostics::{Diagnostic, Severity};
use dfc_ir::Schema;

pub use crate::catalog::{Catalog, NotFound, Request};
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
    /// What the job guarantees; `None` for a library.
    pub guarantees: Option<Arc<guarantees::Guarantees>>,
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

    /// A compiler that counts the queries that run, for [`Compiler::query_counts`].
    pub fn counting(files: Arc<dyn FileSystem>) -> Self {
        Compiler { db: Database::counting(files) }
    }

    /// A compiler over other files.
    pub fn with_files(files: Arc<dyn FileSystem>) -> Self {
        Compiler { db: Database::new(files) }
    }

    /// Puts an editor's text before what is on the disk.
    pub fn set_file(&mut self, path: &Path, text: String) {
        let file = self.db.file(path);
        recall::edit(&mut self.db, file, |db| db.set_text(file, text));
    }

    /// Takes an editor's text away again: what is on the disk counts.
    pub fn unset_file(&mut self, path: &Path) {
        let file = self.db.file(path);
        recall::edit(&mut self.db, file, |db| db.unset_text(file));
    }

    /// Reads every file again that was not set by [`Compiler::set_file`].
    pub fn reload(&mut self) {
        for file in self.db.on_disk() {
            recall::edit(&mut self.db, file, |db| db.read_again(file));
        }
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
            Ok(text) => Ok(Parsed { text: text.clone(), parse: items::parse(&self.db, file).clone() }),
            Err(_) => Err(Box::new(self.check(root))),
        }
    }

    /// Every finding on the pipeline in `root` and the libraries it uses.
    pub fn check(&self, root: &Path) -> Checked {
        self.checked(self.db.file(root))
    }

    fn checked(&self, file: SourceFile) -> Checked {
        Checked { diagnostics: report::diagnostics(&self.db, file).as_ref().clone(), files: self.files(file) }
    }

    /// The names of the parameters of the type `secret`.
    pub fn secret_parameters(&self, root: &Path) -> Vec<String> {
        report::secret_parameters(&self.db, self.db.file(root))
    }

    /// What the pipeline in `root` is, as far as it is known.
    pub fn summary(&self, root: &Path) -> Summary {
        report::summary(&self.db, self.db.file(root))
    }

    /// The files of a program, in the order of `FileId`s.
    fn files(&self, root: SourceFile) -> Vec<FileText> {
        let files = items::program(&self.db, root).files.iter();
        let shown = files.map(|file| FileText {
            name: file.path(&self.db).display().to_string(),
            text: file.text(&self.db).as_ref().map(|text| text.to_string()).unwrap_or_default(),
        });
        shown.collect()
    }

    /// The plan of the pipeline in `root`.
    ///
    /// # Errors
    /// The findings, when one of them is an error: a library or a parameter without a value has no plan either.
    pub fn plan(&self, root: &Path) -> Result<dfc_ir::Plan, Box<Checked>> {
        let mut checked = self.check(root);
        let file = self.db.file(root);
        if !checked.has_errors() {
            checked.diagnostics.extend(report::unfit_to_run(&self.db, file));
        }
        if checked.has_errors() {
            return Err(Box::new(checked));
        }
        match lower::plan(&self.db, file, &checked.files) {
            Some(plan) => Ok(plan),
            None => {
                checked.diagnostics.push(report::no_plan());
                Err(Box::new(checked))
            }
        }
    }

    /// How often each query ran since the last call, by the query's name. For tests and measurements.
    pub fn query_counts(&self) -> BTreeMap<String, usize> {
        self.db.take_executed()
    }
}
