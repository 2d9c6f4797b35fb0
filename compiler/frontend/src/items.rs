//! From files to items, and from a root file to the program: every item of it and of the libraries it uses, by name.
//!
//! Serves D5: duplicate names, libraries that can't be read, use each other or clash are found here, before anything is typed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_grammar::ast::ItemKind;
use dfc_typeck::{ItemKey, LocalDiagnostic, Namespace};

use crate::db::{Db, SourceFile};
pub use crate::parts::ItemNode;
use crate::places;

/// Files of a program, how deep they use each other, and their bytes together: whoever passes one of these has made a mistake, or
/// means harm.
const MAX_FILES: usize = 500;
const MAX_DEPTH: usize = 50;
const MAX_BYTES: usize = 64 << 20;

/// A file's tokens, tree and syntax errors.
#[salsa::tracked]
pub fn parse(db: &dyn Db, file: SourceFile) -> Arc<dfc_grammar::Parse> {
    if let Some(twin) = file.twin_of(db) {
        return parse(db, twin).clone();
    }
    let Ok(text) = file.text(db) else { return Arc::default() };
    let parsed = Arc::new(match db.parsed_before(file) {
        Some((earlier_text, earlier)) if Arc::ptr_eq(text, &earlier_text) => return earlier,
        Some((earlier_text, earlier)) => dfc_grammar::parse_again(text, &earlier_text, &earlier),
        None => dfc_grammar::parse(text),
    });
    db.keep_parsed(file, (text.clone(), parsed.clone()));
    parsed
}

/// The sound items of a file, in source order; of a recalling twin the broken ones too, as they last were.
pub fn file_items(db: &dyn Db, file: SourceFile) -> &[ItemNode] {
    file.items(db)
}

/// A name in its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub struct Slot {
    /// The namespace.
    pub namespace: Namespace,
    /// The name.
    pub name: String,
}

impl Slot {
    /// A name in a namespace.
    pub fn new(namespace: Namespace, name: impl Into<String>) -> Self {
        Slot { namespace, name: name.into() }
    }
}

/// A root file and its libraries.
#[derive(Debug, Clone, PartialEq, Eq, Default, salsa::SalsaValue)]
pub struct Program {
    /// Root first, then libraries in the order they are used.
    pub files: Vec<SourceFile>,
    /// All items of all files.
    pub items: Vec<ItemNode>,
    /// First declaration of each name, by namespace.
    pub names: BTreeMap<Arc<Slot>, ItemNode>,
    /// Whether a file can't be read or has syntax errors. Nothing else is said of such a file.
    pub broken: bool,
    /// The files that are broken, by their index.
    pub broken_files: Vec<u32>,
    /// Names that items with a mistake declare: using them is silent.
    pub hidden: BTreeSet<String>,
    /// Whether a broken item may declare any name: then nobody knows which names there are.
    pub unknown_names: bool,
    /// Names that are declared more than once: which of them is meant nobody knows.
    pub twice: BTreeSet<Slot>,
    /// What is wrong with the structure (places are counted).
    pub problems: Vec<LocalDiagnostic>,
}

impl<'db> Program {
    /// The item of this name.
    pub fn find(&self, namespace: Namespace, name: &str) -> Option<ItemNode> {
        self.names.get(&Slot::new(namespace, name)).copied()
    }

    /// The first declaration of each name of a namespace, sorted by name.
    pub fn declared(&self, namespace: Namespace) -> impl Iterator<Item = (&Slot, ItemNode)> {
        let first = Slot::new(namespace, "");
        let named = self.names.range::<Slot, _>(&first..).map(|(slot, item)| (slot.as_ref(), *item));
        named.take_while(move |(slot, _)| slot.namespace == namespace)
    }

    /// The names of a namespace, sorted.
    pub fn names_of(&self, namespace: Namespace) -> impl Iterator<Item = &str> {
        self.declared(namespace).map(|(slot, _)| slot.name.as_str())
    }

    /// The sources, streams and sinks.
    pub fn flows(&self, db: &'db dyn Db) -> impl Iterator<Item = ItemNode> {
        self.files.iter().flat_map(move |file| file.flows(db).iter().map(|(item, _)| *item))
    }

    /// Items in a namespace, the root file's first.
    pub fn of(&self, db: &'db dyn Db, namespace: Namespace) -> impl Iterator<Item = ItemNode> {
        self.files.iter().flat_map(move |file| of(db, *file, namespace))
    }

    /// Items of the root file in a namespace, in source order.
    pub fn in_root(&self, db: &'db dyn Db, namespace: Namespace) -> Vec<ItemNode> {
        self.files.first().into_iter().flat_map(|root| of(db, *root, namespace)).collect()
    }
}

/// Items of a file in a namespace, in source order.
pub fn of(db: &dyn Db, file: SourceFile, namespace: Namespace) -> impl Iterator<Item = ItemNode> {
    let named = file.items(db).iter().zip(file.slots(db).iter());
    named.filter(move |(_, slot)| slot.namespace == namespace).map(|(item, _)| *item)
}

/// Whether an item is a source, a stream or a sink.
pub fn is_flow(key: &ItemKey) -> bool {
    matches!(key.namespace, Namespace::Stream | Namespace::Sink)
}

/// Everything that belongs to a root file.
#[salsa::tracked]
pub fn program(db: &dyn Db, root: SourceFile) -> Program {
    let mut program = Program::default();
    let mut open = Vec::new();
    take_in(db, root, &mut program, &mut open);
    for file in program.files.clone() {
        for (item, slot) in file.items(db).iter().zip(file.slots(db).iter()) {
            declare(db, *item, slot, &mut program);
        }
    }
    program
}

/// The program's item of this name. Whoever asks so depends on that name only, and not on the whole program.
pub fn find(db: &dyn Db, root: SourceFile, namespace: Namespace, name: &str) -> Option<ItemNode> {
    named(db, root, Slot::new(namespace, name))
}

#[salsa::tracked(returns(copy))]
fn named(db: &dyn Db, root: SourceFile, slot: Slot) -> Option<ItemNode> {
    program(db, root).names.get(&slot).copied()
}

/// Whether the program declares this name more than once.
pub fn is_twice(db: &dyn Db, root: SourceFile, namespace: Namespace, name: &str) -> bool {
    let twice = twice(db, root);
    !twice.is_empty() && twice.contains(&Slot::new(namespace, name))
}

/// The names that are declared more than once: one answer for all of them, which hardly ever changes.
#[salsa::tracked]
fn twice(db: &dyn Db, root: SourceFile) -> BTreeSet<Slot> {
    program(db, root).twice.clone()
}

/// Takes in a file and, after it, the libraries it uses. `open` holds the files on the way here.
fn take_in(db: &dyn Db, file: SourceFile, program: &mut Program, open: &mut Vec<SourceFile>) {
    program.files.push(file);
    let mistakes = file.mistakes(db);
    if mistakes.any {
        program.broken = true;
        program.broken_files.push(file.index(db));
        program.hidden.extend(mistakes.hidden.iter().cloned());
        program.unknown_names |= mistakes.nameless;
    }
    program.items.extend(file_items(db, file));
    open.push(file);
    for item in of(db, file, Namespace::Use) {
        let ItemKind::Use(used) = item.kind(db).as_ref() else { continue };
        let at = places::name_of(item.key(db));
        let library = used_file(db, file, &used.path);
        if let Some(position) = open.iter().position(|f| *f == library) {
            let mut names: Vec<String> = open[position..].iter().map(|f| shown(f.path(db))).collect();
            names.push(shown(library.path(db)));
            program.problems.push(match names.as_slice() {
                [own, _] => LocalDiagnostic::error("E0205", at, format!("{own} uses itself"), "this very file")
                    .help("take the line out"),
                _ => {
                    let message = format!("these files use each other in a circle: {}", names.join(" → "));
                    LocalDiagnostic::error("E0205", at, message, "this closes the circle")
                        .help("move what both need into a file of its own, and use that from both")
                }
            });
        } else if let Some(why) = &library.mistakes(db).unreadable {
            let message = format!("can't read `{}`: {why}", used.path);
            let problem = LocalDiagnostic::error("E0207", at, message, "used here")
                .note("the path is relative to the file it is written in");
            program.problems.push(problem);
        } else if !program.files.contains(&library) {
            match past_limit(db, program, open) {
                None => take_in(db, library, program, open),
                Some(message) => {
                    let problem = LocalDiagnostic::error("E0213", at, message, "one too many")
                        .help("put what belongs together into one file");
                    program.problems.push(problem);
                    break;
                }
            }
        }
    }
    open.pop();
}

/// Why no further file may be taken in.
fn past_limit(db: &dyn Db, program: &Program, open: &[SourceFile]) -> Option<String> {
    let pages: usize = program.files.iter().map(|file| file.mistakes(db).pages).sum();
    if program.files.len() >= MAX_FILES {
        Some(format!("a pipeline has {MAX_FILES} files at most, with all that it uses"))
    } else if open.len() >= MAX_DEPTH {
        Some(format!("files use each other {MAX_DEPTH} deep at most"))
    } else if pages >= MAX_BYTES >> 12 {
        Some(format!("a pipeline has {} MiB at most, with all that it uses", MAX_BYTES >> 20))
    } else {
        None
    }
}

/// The file that another names in `use`; a recalling twin uses twins.
pub fn used_file(db: &dyn Db, file: SourceFile, path: &str) -> SourceFile {
    let used = db.file(&beside(file.path(db), path));
    if file.twin_of(db).is_some() { db.twin(used) } else { used }
}

/// The path of a file named in another.
pub fn beside(file: &Path, path: &str) -> PathBuf {
    crate::files::normalise(&file.parent().unwrap_or(Path::new("")).join(path))
}

fn shown(path: &Path) -> String {
    format!("`{}`", path.display())
}

fn declare(db: &dyn Db, item: ItemNode, slot: &Arc<Slot>, program: &mut Program) {
    // Asked for where there is something to say.
    let key = || item.key(db);
    let at = || places::name_of(key());
    let root = program.files.first().map_or(0, |file| file.index(db));
    match slot.namespace {
        Namespace::Use | Namespace::Sink => return,
        Namespace::Job if key().file != root => {
            let key = key();
            let message = format!("a file with a job can't be used as a library: it declares the job `{}`", key.name);
            let mut problem = LocalDiagnostic::error("E0208", at(), message, "this job")
                .help("move the declarations that both need into a file without a job");
            let uses = program.of(db, Namespace::Use).find(|other| match other.kind(db).as_ref() {
                ItemKind::Use(used) => {
                    let by = program.files.iter().find(|file| file.index(db) == other.key(db).file);
                    by.is_some_and(|by| used_file(db, *by, &used.path).index(db) == key.file)
                }
                _ => false,
            });
            if let Some(used) = uses {
                problem = problem.related(places::name_of(used.key(db)), "used here");
            }
            program.problems.push(problem);
            return;
        }
        Namespace::Job => {
            let first = program.declared(Namespace::Job).next().map(|(_, first)| first);
            if let Some(first) = first {
                let problem = LocalDiagnostic::error(
                    "E0202",
                    at(),
                    "a file describes one job, this is the second",
                    "second job",
                )
                .related(places::name_of(first.key(db)), "the first job")
                .help("put each job into a file of its own; shared declarations go into a third one that both `use`");
                program.problems.push(problem);
                return;
            }
        }
        Namespace::Native => {
            let message = "`native` declarations belong to the standard library";
            let problem = LocalDiagnostic::error("E0211", at(), message, "not here")
                .help("a function of your own is declared with `fn`");
            program.problems.push(problem);
            return;
        }
        _ => {}
    }
    let Some(first) = program.names.get(slot) else {
        program.names.insert(slot.clone(), item);
        return;
    };
    program.twice.insert(slot.as_ref().clone());
    let (key, first) = (key(), first.key(db));
    let what = what(key.namespace);
    let problem = if first.file == key.file {
        LocalDiagnostic::error("E0201", at(), format!("the {what} `{}` is declared twice", key.name), "declared again")
            .related(places::name_of(first), "first declared here")
            .help("give one of them another name, or take one out")
    } else {
        // The nearer to the root, the likelier the user can change it.
        let message = format!("the {what} `{}` is also declared in a file that is used", key.name);
        LocalDiagnostic::error("E0206", places::name_of(first), message, "declared here")
            .related(at(), "and here")
            .help("everything in a used file is taken in under its own name: give one of them another name")
    };
    program.problems.push(problem);
}

/// What an item of a namespace is called.
pub fn what(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Job => "job",
        Namespace::Value => "parameter or constant",
        Namespace::Record => "record",
        Namespace::Stream => "stream",
        Namespace::Sink => "sink",
        Namespace::Fn => "function",
        Namespace::Operator => "operator",
        Namespace::Use => "library",
        Namespace::Native => "declaration",
    }
}
