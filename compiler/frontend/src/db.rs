//! The salsa database: inputs (files, values of parameters), and counting of the queries that ran.
//!
//! It may not know what the queries compute.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfc_grammar::Parse;
use dfc_grammar::ast::Item;
use salsa::{Durability, Setter as _};

use crate::catalog::{Asked, Outside, Request};
use crate::files::FileSystem;
use crate::parts::{Flows, ItemNode, Mistakes, Parts, Slots, hold, inputs, refresh};
use crate::recall::mended;

/// Why there is no text, where a file is not there at all.
pub const NO_SUCH_FILE: &str = "there is no such file";

/// A file as an input of the queries.
#[salsa::input(debug)]
pub struct SourceFile {
    /// Its index: `ItemKey::file` and `FileId`.
    #[returns(copy)]
    pub index: u32,
    /// Its path as the user (or the `use` that led to it) wrote it.
    pub path: PathBuf,
    /// Its text, or why there is none.
    pub text: Result<Arc<str>, String>,
    /// The file that this is the recalling twin of. See [`crate::recall`].
    #[returns(copy)]
    pub twin_of: Option<SourceFile>,
    /// Of a recalling twin: what its broken items last were, or what can be read of them.
    pub remembered: Arc<Vec<Item>>,
    /// Its sound items, in source order; of a recalling twin the broken ones too.
    pub items: Vec<ItemNode>,
    /// Their names.
    pub slots: Slots,
    /// Those of its items that rows flow through, with what each reads.
    pub flows: Flows,
    /// The first byte of each of its items.
    pub starts: Arc<Vec<u32>>,
    /// What is known of its mistakes.
    pub mistakes: Mistakes,
}

/// The values given on the command line.
#[salsa::input(singleton)]
pub struct Given {
    /// Text by parameter's name.
    pub values: BTreeMap<String, String>,
}

/// What queries may ask the database for.
#[salsa::db]
pub trait Db: salsa::Database {
    /// The input of a file; it is read when it was not known yet.
    fn file(&self, path: &Path) -> SourceFile;

    /// The recalling twin of a file.
    fn twin(&self, file: SourceFile) -> SourceFile;

    /// The file of this index.
    fn file_by_index(&self, index: u32) -> Option<SourceFile>;

    /// The fields that a source has outside.
    fn outside(&self, request: &Request) -> Outside;

    /// A file's last text that was parsed, with its tree, if there was one.
    fn parsed_before(&self, file: SourceFile) -> Option<Earlier>;

    /// Keeps a file's text and tree for the next [`Db::parsed_before`].
    fn keep_parsed(&self, file: SourceFile, parsed: Earlier);
}

/// A text and its tree. What a parse takes over of them is what it would have made itself, so that no query's answer depends
/// on them.
pub type Earlier = (Arc<str>, Arc<dfc_grammar::Parse>);

/// Every file that was ever asked for.
#[derive(Default)]
struct Files {
    by_identity: HashMap<PathBuf, SourceFile>,
    /// By the paths that they were asked for: to ask the system for a file's identity each time would be slow.
    by_path: HashMap<PathBuf, SourceFile>,
    by_index: Vec<SourceFile>,
    /// Recalling twins by the index of their files.
    twins: HashMap<u32, SourceFile>,
    /// Files whose text was set by the editor, by their index.
    overlays: HashSet<u32>,
    /// Nodes of items that are in no file now, by the index of the file that they were in.
    spare: HashMap<u32, Vec<ItemNode>>,
}

/// The database.
#[salsa::db]
#[derive(Clone)]
pub struct Database {
    storage: salsa::Storage<Self>,
    system: Arc<dyn FileSystem>,
    files: Arc<Mutex<Files>>,
    asked: Arc<Asked>,
    parsed: Arc<Mutex<HashMap<u32, Earlier>>>,
    /// How often each query ran; `None`: nobody counts.
    executed: Option<Counts>,
}

type Counts = Arc<Mutex<HashMap<salsa::IngredientIndex, usize>>>;

#[salsa::db]
impl salsa::Database for Database {}

#[salsa::db]
impl Db for Database {
    fn file(&self, path: &Path) -> SourceFile {
        if let Some(&file) = lock(&self.files).by_path.get(path) {
            return file;
        }
        let identity = self.system.identity(path);
        let mut files = lock(&self.files);
        if let Some(&file) = files.by_identity.get(&identity) {
            files.by_path.insert(path.to_path_buf(), file);
            return file;
        }
        let text = read(self.system.as_ref(), path);
        let index = files.by_index.len() as u32;
        let parsed = Arc::new(text.as_ref().map_or_else(|_| Parse::default(), |text| dfc_grammar::parse(text)));
        let parts = inputs(self, index, false, &text, &parsed, &[]);
        if let Ok(text) = &text {
            lock(&self.parsed).insert(index, (text.clone(), parsed));
        }
        let file = new_file(self, index, path.to_path_buf(), text, None, Arc::default(), parts);
        files.by_path.insert(path.to_path_buf(), file);
        files.by_identity.insert(identity, file);
        files.by_index.push(file);
        file
    }

    fn twin(&self, file: SourceFile) -> SourceFile {
        if file.twin_of(self).is_some() {
            return file;
        }
        let mut files = lock(&self.files);
        if let Some(&twin) = files.twins.get(&file.index(self)) {
            return twin;
        }
        // Not by a query: whoever is being computed doesn't depend on what is only copied.
        let (text, parsed) = match self.parsed_before(file) {
            Some((text, parsed)) => (Ok(text), parsed),
            None => (file.text(self).clone(), Arc::default()),
        };
        let (path, index) = (file.path(self).clone(), files.by_index.len() as u32);
        let held = files.overlays.contains(&file.index(self));
        let remembered = Arc::new(mended(&parsed));
        let parts = inputs(self, index, held, &text, &parsed, &remembered);
        let twin = new_file(self, index, path, text, Some(file), remembered, parts);
        files.twins.insert(file.index(self), twin);
        files.by_index.push(twin);
        twin
    }

    fn file_by_index(&self, index: u32) -> Option<SourceFile> {
        lock(&self.files).by_index.get(index as usize).copied()
    }

    fn outside(&self, request: &Request) -> Outside {
        self.asked.outside(self, request)
    }

    fn parsed_before(&self, file: SourceFile) -> Option<Earlier> {
        lock(&self.parsed).get(&file.index(self)).cloned()
    }

    fn keep_parsed(&self, file: SourceFile, parsed: Earlier) {
        lock(&self.parsed).insert(file.index(self), parsed);
    }
}

fn new_file(
    db: &dyn Db,
    index: u32,
    path: PathBuf,
    text: Result<Arc<str>, String>,
    twin_of: Option<SourceFile>,
    remembered: Arc<Vec<Item>>,
    parts: Parts,
) -> SourceFile {
    let Parts { items, slots, flows, starts, mistakes } = parts;
    SourceFile::builder(index, path, text, twin_of, remembered, items, slots, flows, starts, mistakes)
        .durability(Durability::HIGH)
        .new(db)
}

impl Database {
    /// A database over these files.
    pub fn new(system: Arc<dyn FileSystem>) -> Self {
        Database::build(system, None)
    }

    /// A database that counts the queries that run, which costs time.
    pub fn counting(system: Arc<dyn FileSystem>) -> Self {
        Database::build(system, Some(Counts::default()))
    }

    fn build(system: Arc<dyn FileSystem>, executed: Option<Counts>) -> Self {
        let counts = executed.clone();
        let count = counts.map(|counts| -> Box<dyn Fn(salsa::Event) + Send + Sync> {
            Box::new(move |event| {
                if let salsa::EventKind::WillExecute { database_key } = event.kind {
                    *lock(&counts).entry(database_key.ingredient_index()).or_default() += 1;
                }
            })
        });
        let storage = salsa::Storage::new(count);
        let db = Database {
            storage,
            system,
            files: Arc::default(),
            asked: Arc::default(),
            parsed: Arc::default(),
            executed,
        };
        // Found again as the only one of its kind.
        let _ = Given::builder(BTreeMap::new()).durability(Durability::HIGH).new(&db);
        db
    }

    /// The files that the database reads.
    pub fn system(&self) -> &dyn FileSystem {
        self.system.as_ref()
    }

    /// The catalog, and what it was asked.
    pub fn asked(&self) -> &Arc<Asked> {
        &self.asked
    }

    /// Puts an editor's text before what is on the disk.
    pub fn set_text(&mut self, file: SourceFile, text: String) {
        let new = lock(&self.files).overlays.insert(file.index(self));
        self.put(file, Ok(text.into()));
        if new {
            hold(self, file);
            if let Some(twin) = self.existing_twin(file) {
                hold(self, twin);
            }
        }
    }

    /// Takes an editor's text away: what is on the disk counts again.
    pub fn unset_text(&mut self, file: SourceFile) {
        lock(&self.files).overlays.remove(&file.index(self));
        self.read_again(file);
    }

    /// Reads a file again.
    pub fn read_again(&mut self, file: SourceFile) {
        let text = read(self.system.as_ref(), file.path(self));
        self.put(file, text);
    }

    /// Every known file that no editor holds.
    pub fn on_disk(&self) -> Vec<SourceFile> {
        let files = lock(&self.files);
        let on_disk = files.by_identity.values().filter(|file| !files.overlays.contains(&file.index(self)));
        on_disk.copied().collect()
    }

    /// The twin of a file, if anybody asked for it yet.
    pub fn existing_twin(&self, file: SourceFile) -> Option<SourceFile> {
        lock(&self.files).twins.get(&file.index(self)).copied()
    }

    /// Sets what a twin's broken items last were, after its text was set.
    pub fn set_remembered(&mut self, twin: SourceFile, items: Arc<Vec<Item>>) {
        if *twin.remembered(self) != items {
            // The old items come back; nobody wants them.
            let _ = twin.set_remembered(self).to(items);
        }
        self.refresh(twin);
    }

    /// Sets a file's text and what it is made of, and its twin's text: what that one is made of is known when it is known what is
    /// remembered. Setting waits until every clone of the database is gone: queries that run on one are cancelled.
    fn put(&mut self, file: SourceFile, text: Result<Arc<str>, String>) {
        if *file.text(self) == text {
            return;
        }
        // The old texts come back; nobody wants them.
        if let Some(twin) = self.existing_twin(file) {
            let _ = twin.set_text(self).with_durability(Durability::LOW).to(text.clone());
        }
        if text.is_err() {
            lock(&self.parsed).remove(&file.index(self));
        }
        let _ = file.set_text(self).with_durability(Durability::LOW).to(text);
        self.refresh(file);
    }

    fn refresh(&mut self, file: SourceFile) {
        let index = file.index(self);
        let own = file.twin_of(self).unwrap_or(file).index(self);
        let (held, mut spare) = {
            let mut files = lock(&self.files);
            (files.overlays.contains(&own), files.spare.remove(&index).unwrap_or_default())
        };
        refresh(self, file, held, &mut spare);
        lock(&self.files).spare.insert(index, spare);
    }

    /// Sets the values given for parameters.
    pub fn set_given(&mut self, values: BTreeMap<String, String>) {
        let given = Given::get(self);
        if *given.values(self) != values {
            let _ = given.set_values(self).with_durability(Durability::HIGH).to(values);
        }
    }

    /// How often each query ran since the last call, by its name; empty where nobody counts.
    pub fn take_executed(&self) -> BTreeMap<String, usize> {
        let mut named = BTreeMap::new();
        let executed = self.executed.as_ref().map(|counts| std::mem::take(&mut *lock(counts)));
        for (query, count) in executed.unwrap_or_default() {
            *named.entry(salsa::Database::ingredient_debug_name(self, query).into_owned()).or_default() += count;
        }
        named
    }
}

/// A panic in another thread leaves these maps whole: each change is one insertion.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(system: &dyn FileSystem, path: &Path) -> Result<Arc<str>, String> {
    let bytes = system.read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => NO_SUCH_FILE.to_string(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_string(),
        std::io::ErrorKind::IsADirectory => "it is a folder".to_string(),
        std::io::ErrorKind::InvalidInput => "that is no path".to_string(),
        // The system's number says nothing to people.
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    })?;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").map(<[u8]>::to_vec).unwrap_or(bytes);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        // Only the start of a large file was read, perhaps to the middle of a character; that it is too large is said later.
        Err(error)
            if error.as_bytes().len() > dfc_grammar::LIMITS.file_bytes && error.utf8_error().error_len().is_none() =>
        {
            Ok(String::from_utf8_lossy(error.as_bytes()).into())
        }
        Err(error) => Err(format!("it is not UTF-8 text (byte {} can't be read)", error.utf8_error().valid_up_to())),
    }
}
