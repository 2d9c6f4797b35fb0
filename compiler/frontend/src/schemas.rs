//! The fields of sources without `schema:` (D8): from the lock file beside the pipeline where it has them, else from outside.
//!
//! The lock file pins what was found, so that a check gives the same result on every machine, without the data and offline.

pub mod drift;
pub mod lock;
pub mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_grammar::ast::{ExprKind, ItemKind, Span};
use dfc_ir::plan::{Op, OptionValue};
use dfc_ir::{Schema, Value};
use dfc_typeck::Namespace;

use crate::Compiler;
use crate::bind::Bound;
use crate::catalog::{self, Catalog, NotFound, Request};
use crate::check::{checks, item_check};
use crate::db::{Db, NO_SUCH_FILE, SourceFile};
use crate::items::{ItemNode, program};
use crate::operators::{Role, table};
use crate::schemas::lock::{Entry, Lock};

/// The clause of a connector whose fields can be found outside; its words are the parameters that decide which they are.
const FIELDS_BY: &str = "fields_by";

/// A source whose fields come from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideSource {
    /// The source's name; of an inline one its connector.
    pub name: String,
    /// What it reads.
    pub request: Request,
    /// The same as text, without what differs from machine to machine: `csv(path: "data/a.csv")`.
    pub key: String,
    /// Its fields, if they are known.
    pub schema: Option<Arc<Schema>>,
    /// Whether they are those of the lock file.
    pub locked: bool,
}

/// Why fields are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The connector has no fields of its own.
    Undeclared,
    /// A parameter that decides what is read has no value.
    NoValue,
    /// The lock file can't be used.
    Lock(String),
    /// They are not there.
    NotFound(NotFound),
}

/// The lock file of a pipeline: `orders.df.lock` beside `orders.df`.
pub fn lock_path(pipeline: &Path) -> PathBuf {
    let mut name = pipeline.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// What the lock file of a program holds; `None` where there is none.
#[salsa::tracked]
pub fn locked(db: &dyn Db, root: SourceFile) -> Arc<Result<Option<Lock>, String>> {
    Arc::new(match db.file(&lock_path(root.path(db))).text(db) {
        Ok(text) => Lock::parse(text).map(Some),
        Err(why) if why == NO_SUCH_FILE => Ok(None),
        Err(why) => Err(why.clone()),
    })
}

/// A source without `schema:`, in the item whose text `text` gives by span; its fields, or why they are not known. `known`: every
/// parameter that decides what is read has a value.
pub fn find(
    db: &dyn Db,
    root: SourceFile,
    name: &str,
    bound: &Bound<'_>,
    request: Request,
    known: bool,
    text: &dyn Fn(Span) -> Option<String>,
) -> (Option<OutsideSource>, Result<Arc<Schema>, Failure>) {
    let Some(deciding) = bound.operator.clause(FIELDS_BY) else { return (None, Err(Failure::Undeclared)) };
    let key = key(root.path(db), deciding, bound, &request, text);
    let mut source = OutsideSource { name: name.to_owned(), request, key, schema: None, locked: false };
    let found = match locked(db, root).as_ref() {
        Err(why) => Err(Failure::Lock(why.clone())),
        Ok(lock) => match lock.as_ref().and_then(|lock| lock.entries.get(&source.key)) {
            Some(entry) => {
                source.locked = true;
                Ok(Arc::new(entry.schema.clone()))
            }
            None if !known => return (None, Err(Failure::NoValue)),
            None => match db.outside(&source.request).found(db).as_ref() {
                Ok(schema) => Ok(Arc::new(schema.clone())),
                Err(why) => Err(Failure::NotFound(why.clone())),
            },
        },
    };
    source.schema = found.as_ref().ok().cloned();
    (Some(source), found)
}

/// What decides a source's fields, as text: the given ones among its deciding arguments. Nothing else may stand here: the
/// address of a database differs from machine to machine, and may hold a password. What depends on parameters stands as it is
/// written, so that it is the same whatever their values are.
fn key(
    pipeline: &Path,
    deciding: &[String],
    bound: &Bound<'_>,
    request: &Request,
    text: &dyn Fn(Span) -> Option<String>,
) -> String {
    let arguments = deciding.iter().filter_map(|name| {
        let arg = bound.get(name)?;
        let value = request.options.get(name)?;
        let fixed = matches!(arg.value.kind, ExprKind::Literal(_)) || matches!(value, OptionValue::Name(_));
        // Over several lines there may be comments.
        let as_written = text(arg.value.span).filter(|text| !fixed && !text.contains('\n'));
        let value = as_written.or_else(|| match value {
            OptionValue::Value(Value::Str(path)) if name == "path" => {
                lock::constant(&OptionValue::Value(Value::string(from_folder_of(pipeline, path))))
            }
            value => lock::constant(value),
        })?;
        Some((name.as_str(), value))
    });
    lock::key(&request.connector, arguments)
}

/// A resolved path as it is written in a pipeline beside `pipeline`.
fn from_folder_of(pipeline: &Path, path: &str) -> String {
    let folder = crate::files::normalise(pipeline.parent().unwrap_or(Path::new("")));
    let (mut from, mut to) = (folder.components().peekable(), Path::new(path).components().peekable());
    if path == "-" || path.contains("://") || folder.is_absolute() != Path::new(path).is_absolute() {
        return path.to_owned();
    }
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let mut out: PathBuf = from.map(|_| "..").collect();
    out.extend(to);
    out.to_string_lossy().into_owned()
}

impl Compiler {
    /// Looks for the fields of sources without `schema:` in this catalog.
    pub fn set_catalog(&mut self, catalog: Arc<dyn Catalog>) {
        self.db.asked().use_catalog(catalog);
        self.refresh_catalog();
    }

    /// Asks the catalog again for everything that it was asked for: data may have changed.
    pub fn refresh_catalog(&mut self) {
        catalog::refresh(&mut self.db);
    }

    /// The sources of a program whose fields come from outside, in source order.
    pub fn outside_sources(&self, root: &Path) -> Vec<OutsideSource> {
        let root = self.db.file(root);
        let items = program(&self.db, root).items.iter();
        let checked = items.filter(|item| matches!(item.key(&self.db).namespace, Namespace::Stream | Namespace::Sink));
        checked.flat_map(|item| checks(&self.db, root, *item)).flat_map(|check| check.outside.clone()).collect()
    }

    /// The declared sources that can be asked for their fields, whether or not they have a `schema:`, in source order.
    pub fn sources(&self, root: &Path) -> Vec<(String, Request)> {
        let root = self.db.file(root);
        let items = program(&self.db, root).items.iter();
        let sources = items.filter(|item| matches!(item.kind(&self.db).as_ref(), ItemKind::Source(_)));
        let request = |item: &ItemNode| {
            let check = item_check(&self.db, root, *item);
            let outside = check.outside.first().map(|source| source.request.clone());
            let declared = check.nodes.iter().find_map(|node| match &node.op {
                Op::Source(spec) => {
                    table().get(&spec.connector, Role::Source)?.clause(FIELDS_BY)?;
                    Some(Request { connector: spec.connector.clone(), options: spec.options.clone() })
                }
                _ => None,
            });
            Some((item.key(&self.db).name.clone(), outside.or(declared)?))
        };
        sources.filter_map(request).collect()
    }

    /// The lock file of a pipeline; `None` where there is none.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn lock(&self, root: &Path) -> Result<Option<Lock>, String> {
        locked(&self.db, self.db.file(root)).as_ref().clone()
    }
}

/// A lock file that holds the fields of these sources, as they are known, and nothing else.
pub fn lock_of<'s>(sources: impl IntoIterator<Item = (&'s OutsideSource, Schema)>) -> Lock {
    let entries = sources.into_iter();
    Lock {
        entries: entries
            .map(|(source, schema)| (source.key.clone(), Entry { name: source.name.clone(), schema }))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_from_the_pipeline() {
        for (pipeline, path, wanted) in [
            ("a.df", "data/x.csv", "data/x.csv"),
            ("jobs/a.df", "jobs/data/x.csv", "data/x.csv"),
            ("./jobs/a.df", "jobs/data/x.csv", "data/x.csv"),
            ("jobs/a.df", "data/x.csv", "../data/x.csv"),
            ("../a.df", "../data/x.csv", "data/x.csv"),
            ("/p/a.df", "/p/data/*.csv", "data/*.csv"),
            ("/p/a.df", "/q/x.csv", "../q/x.csv"),
            ("a.df", "/q/x.csv", "/q/x.csv"),
            ("a.df", "s3://bucket/x.csv", "s3://bucket/x.csv"),
            ("a.df", "-", "-"),
        ] {
            assert_eq!(from_folder_of(Path::new(pipeline), path), wanted, "{pipeline} {path}");
        }
    }
}
