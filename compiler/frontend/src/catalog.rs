//! Where the fields of sources without `schema:` come from: a trait that connectors stand behind, and what was asked of it.
//!
//! The compiler opens no file of data and no connection but through this trait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfc_ir::plan::Options;
use dfc_ir::{Schema, Type};
use salsa::Setter as _;

use crate::db::Db;

/// What a source reads: its connector and constant arguments, relative paths resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// The connector's name: `csv`.
    pub connector: String,
    /// Its arguments by parameter, every default filled in.
    pub options: Options,
}

/// Why the fields of a source are not known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NotFound {
    /// What failed: "there is no such file".
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// They are on the network, where this catalog doesn't look.
    pub needs_connection: bool,
}

/// Knows the fields that sources have outside.
pub trait Catalog: Send + Sync {
    /// The fields of a source as they are now.
    ///
    /// # Errors
    /// Why they are not known.
    fn schema(&self, request: &Request) -> Result<Schema, NotFound>;
}

/// Looks nowhere.
struct NoCatalog;

impl Catalog for NoCatalog {
    fn schema(&self, _: &Request) -> Result<Schema, NotFound> {
        Err(NotFound { message: "nothing outside of the pipeline is looked at here".into(), ..NotFound::default() })
    }
}

/// An answer of the catalog, as an input of the queries.
#[salsa::input]
pub struct Outside {
    /// The fields, or why they are not known.
    pub found: Arc<Result<Schema, NotFound>>,
}

/// The catalog and what it was asked.
pub struct Asked(Mutex<State>);

struct State {
    catalog: Arc<dyn Catalog>,
    known: HashMap<Request, Outside>,
}

impl Default for Asked {
    fn default() -> Self {
        Asked(Mutex::new(State { catalog: Arc::new(NoCatalog), known: HashMap::new() }))
    }
}

impl Asked {
    /// The answer to a request; the catalog is asked once.
    pub fn outside(&self, db: &dyn Db, request: &Request) -> Outside {
        let mut state = self.lock();
        if let Some(known) = state.known.get(request) {
            return *known;
        }
        let found = Arc::new(answer(state.catalog.as_ref(), request));
        let outside = Outside::builder(found).durability(salsa::Durability::HIGH).new(db);
        state.known.insert(request.clone(), outside);
        outside
    }

    /// Looks into another catalog from now on.
    pub fn use_catalog(&self, catalog: Arc<dyn Catalog>) {
        self.lock().catalog = catalog;
    }

    /// The catalog.
    pub fn catalog(&self) -> Arc<dyn Catalog> {
        self.lock().catalog.clone()
    }

    /// The catalog's present answer.
    pub fn now(&self, request: &Request) -> Result<Schema, NotFound> {
        let catalog = self.lock().catalog.clone();
        answer(catalog.as_ref(), request)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<(Request, Outside)> {
        self.lock().known.iter().map(|(request, outside)| (request.clone(), *outside)).collect()
    }

    /// A panic in another thread leaves the state whole: each change is one insertion.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a catalog says, if it makes sense: names distinct, types that fields can have.
fn answer(catalog: &dyn Catalog, request: &Request) -> Result<Schema, NotFound> {
    let schema = catalog.schema(request)?;
    let wrong = |message: String| Err(NotFound { message, ..NotFound::default() });
    if schema.is_empty() {
        return wrong("there are no fields".into());
    }
    let mut names = std::collections::HashSet::new();
    for field in &schema.fields {
        if !names.insert(field.name.as_str()) {
            return wrong(format!("the field `{}` is there more than once", field.name));
        }
        if matches!(field.ty.ty, Type::Secret | Type::Null) {
            return wrong(format!("the field `{}` has no type", field.name));
        }
    }
    Ok(schema)
}

/// Asks for everything again that was asked before.
pub fn refresh(db: &mut crate::db::Database) {
    let asked = db.asked().clone();
    for (request, outside) in asked.requests() {
        let found = asked.now(&request);
        if **outside.found(db) != found {
            // The old answer comes back; nobody wants it.
            let _ = outside.set_found(db).with_durability(salsa::Durability::HIGH).to(Arc::new(found));
        }
    }
}
