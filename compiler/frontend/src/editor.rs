//! What a server for editors needs of the compiler besides answers: snapshots that other threads ask, stopping them, texts
//! as the compiler sees them, and which files use which.
//!
//! It may not know a protocol.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_diagnostics::Diagnostic;
use dfc_grammar::ast::ItemKind;
use dfc_typeck::Namespace;
use salsa::Database as _;

use crate::Compiler;
use crate::db::{Db, SourceFile};
use crate::items::{file_items, parse, program, used_file};
use crate::report;

/// Stops the questions that a snapshot is being asked.
#[derive(Debug, Clone)]
pub struct Stopper(salsa::CancellationToken);

impl Stopper {
    /// Stops them, from any thread; each ends in [`Stopped::Asked`].
    pub fn stop(&self) {
        self.0.cancel();
    }
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// A [`Stopper`] stopped it.
    Asked,
    /// A file was changed meanwhile.
    Changed,
    /// A mistake of the compiler's own; its words.
    Panicked(String),
}

/// Asks a question, and comes back in any case.
///
/// # Errors
/// Why there is no answer.
pub fn ask<T>(question: impl FnOnce() -> T) -> Result<T, Stopped> {
    // What a question leaves half done is in the database, which withstands that.
    panic::catch_unwind(AssertUnwindSafe(question)).map_err(|payload| match payload.downcast::<salsa::Cancelled>() {
        Ok(cancelled) => match *cancelled {
            salsa::Cancelled::Local => Stopped::Asked,
            salsa::Cancelled::PendingWrite => Stopped::Changed,
            other => Stopped::Panicked(other.to_string()),
        },
        Err(payload) => Stopped::Panicked(words(payload.as_ref())),
    })
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").to_owned()
}

/// The findings on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The files that the findings speak of, in the order of their `FileId`s, with their texts.
    pub files: Vec<(PathBuf, Arc<str>)>,
    /// The findings, sorted by file and place.
    pub diagnostics: Arc<Vec<Diagnostic>>,
}

impl Compiler {
    /// The same compiler for another thread. While one exists, changing a file stops what it is asked and waits until it is
    /// gone: drop it when the question is answered.
    pub fn snapshot(&self) -> Compiler {
        Compiler { db: self.db.clone() }
    }

    /// What stops the questions that this compiler is being asked.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.db.cancellation_token())
    }

    /// A file's text, if it can be read.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.db.file(path).text(&self.db).clone().ok()
    }

    /// The files of a root file's program, the root first.
    pub fn program_files(&self, root: &Path) -> Vec<PathBuf> {
        let files = program(&self.db, self.recalling(root)).files.iter();
        files.map(|file| file.path(&self.db).clone()).collect()
    }

    /// The findings of [`Compiler::check`], by way of the answers that an editor's questions need anyway.
    pub fn findings(&self, root: &Path) -> Findings {
        let twin = self.recalling(root);
        let root = if self.is_whole(twin) { twin } else { self.db.file(root) };
        Findings { files: self.texts(root), diagnostics: report::diagnostics(&self.db, root).clone() }
    }

    /// The findings on one file of a root file's program that its own items and the program's structure give: the part of
    /// [`Compiler::findings`] that doesn't wait for other files.
    pub fn file_findings(&self, root: &Path, file: &Path) -> Findings {
        let twin = self.recalling(root);
        let own = self.db.file(file);
        let (root, own) = if self.is_whole(twin) { (twin, self.db.twin(own)) } else { (self.db.file(root), own) };
        let diagnostics = Arc::new(report::file_diagnostics(&self.db, root, own));
        Findings { files: self.texts(root), diagnostics }
    }

    /// Whether a program of twins is that of the files themselves: with a mistake in one, what is remembered must not show.
    fn is_whole(&self, twin: SourceFile) -> bool {
        let mut files = program(&self.db, twin).files.iter();
        files.all(|file| parse(&self.db, *file).errors.is_empty() && file.remembered(&self.db).is_empty())
    }

    fn texts(&self, root: SourceFile) -> Vec<(PathBuf, Arc<str>)> {
        let files = program(&self.db, root).files.iter();
        let texts = files.map(|file| {
            let text = file.text(&self.db).clone().unwrap_or_default();
            (file.path(&self.db).clone(), text)
        });
        texts.collect()
    }

    /// From which roots a file is to be seen: those among `known` that use it and are used by none themselves (or have a
    /// job); the file itself where there is none, or where it has a job.
    pub fn roots_of(&self, path: &Path, known: &[PathBuf]) -> Vec<PathBuf> {
        let file = self.db.file(path);
        let mut users: BTreeSet<u32> = BTreeSet::from([file.index(&self.db)]);
        let known: Vec<(SourceFile, Vec<SourceFile>)> = known
            .iter()
            .map(|path| {
                let file = self.db.file(path);
                (file, uses(&self.db, file).clone())
            })
            .collect();
        // Everything that reaches the file.
        loop {
            let before = users.len();
            for (user, used) in &known {
                if used.iter().any(|used| users.contains(&used.index(&self.db))) {
                    users.insert(user.index(&self.db));
                }
            }
            if users.len() == before {
                break;
            }
        }
        let is_used = |file: SourceFile| {
            known
                .iter()
                .any(|(user, used)| *user != file && used.contains(&file) && users.contains(&user.index(&self.db)))
        };
        let wanted = |candidate: &SourceFile| {
            let job = has_job(&self.db, *candidate);
            users.contains(&candidate.index(&self.db)) && (job || !is_used(*candidate))
        };
        let mut roots: Vec<PathBuf> = Vec::new();
        if wanted(&file) {
            roots.push(path.to_path_buf());
        }
        let others = known.iter().map(|(other, _)| *other).filter(|other| *other != file && wanted(other));
        roots.extend(others.map(|other| other.path(&self.db).clone()));
        if roots.is_empty() {
            // Files that use each other in a circle.
            roots.push(path.to_path_buf());
        }
        roots
    }

    /// The recalling twin of a root file: see [`crate::recall`].
    pub(crate) fn recalling(&self, root: &Path) -> SourceFile {
        self.db.twin(self.db.file(root))
    }
}

/// The files that a file names in `use`.
#[salsa::tracked]
fn uses(db: &dyn Db, file: SourceFile) -> Vec<SourceFile> {
    let items = file_items(db, file).iter().filter(|item| item.key(db).namespace == Namespace::Use);
    let paths = items.filter_map(|item| match item.kind(db).as_ref() {
        ItemKind::Use(used) => Some(used.path.as_str()),
        _ => None,
    });
    paths.map(|path| used_file(db, file, path)).collect()
}

/// Whether a file declares a job.
fn has_job(db: &dyn Db, file: SourceFile) -> bool {
    file_items(db, file).iter().any(|item| item.key(db).namespace == Namespace::Job)
}
