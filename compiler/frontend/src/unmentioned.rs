//! Parameters, constants, records and functions that nothing uses (`W0403`).
//!
//! A library's are for whoever takes them in; only what a pipeline declares in its own file is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dfc_grammar::ast::ItemKind;
use dfc_typeck::{LocalDiagnostic, Namespace};

use crate::db::{Db, SourceFile};
use crate::items::{ItemNode, Slot, file_items, program};
use crate::mentions::Mentions;
use crate::places;

/// What a pipeline declares in its own file beside its streams and sinks.
#[salsa::tracked]
fn declared(db: &dyn Db, root: SourceFile) -> Arc<BTreeSet<Slot>> {
    let program = program(db, root);
    if program.in_root(db, Namespace::Job).is_empty() {
        return Arc::default();
    }
    let namespaces = [Namespace::Value, Namespace::Record, Namespace::Fn];
    let items = namespaces.into_iter().flat_map(|namespace| program.in_root(db, namespace));
    Arc::new(items.map(|item| slot(db, item)).collect())
}

fn slot(db: &dyn Db, item: ItemNode) -> Slot {
    let key = item.key(db);
    Slot::new(key.namespace, key.name.clone())
}

/// Items of a block.
const BLOCK: usize = 32;

/// Those of them that a block of a file's items mentions: none for most.
#[salsa::tracked]
fn mentioned(db: &dyn Db, root: SourceFile, file: SourceFile, number: usize) -> Arc<BTreeSet<Slot>> {
    let declared = declared(db, root);
    let mut found = BTreeSet::new();
    for item in file_items(db, file).iter().skip(number * BLOCK).take(BLOCK) {
        let mut names = Mentions::of(item.kind(db)).names;
        names.sort_unstable();
        names.dedup();
        let slots = names.into_iter().map(|(namespace, name)| Slot::new(namespace, name));
        found.extend(slots.filter(|slot| declared.contains(slot)));
    }
    Arc::new(found)
}

/// What a pipeline declares in its own file and nothing of the program uses.
#[salsa::tracked]
pub fn unmentioned(db: &dyn Db, root: SourceFile) -> Arc<Vec<LocalDiagnostic>> {
    let program = program(db, root);
    let mut idle: BTreeMap<&Slot, ItemNode> = BTreeMap::new();
    for slot in declared(db, root).iter() {
        idle.extend(program.names.get(slot).map(|item| (slot, *item)));
    }
    let blocks = program.files.iter().flat_map(|file| {
        (0..file_items(db, *file).len().div_ceil(BLOCK)).map(move |number| mentioned(db, root, *file, number))
    });
    for block in blocks {
        if idle.is_empty() {
            break;
        }
        for slot in block.iter() {
            idle.remove(slot);
        }
    }
    let found = idle.into_values().filter_map(|item| {
        let key = item.key(db);
        let (what, label) = match item.kind(db).as_ref() {
            ItemKind::Param(_) => ("parameter", "its value changes nothing"),
            ItemKind::Const(_) => ("constant", "declared in vain"),
            ItemKind::Record(_) => ("record", "declared in vain"),
            ItemKind::Fn(_) => ("function", "never called"),
            _ => return None,
        };
        let message = format!("nothing uses the {what} `{}`", key.name);
        let problem = LocalDiagnostic::warning("W0403", places::name_of(key), message, label);
        Some(problem.help("take it out, or use it where it was meant"))
    });
    Arc::new(found.collect())
}
