//! What one item can see of the program's declarations: so that an edit of a constant, a record or a function is felt by
//! those that mention it, and by no one else.
//!
//! It may not know what an item does with what it sees.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use dfc_typeck::{Globals, Namespace};

use crate::db::{Db, SourceFile};
use crate::globals::globals;
use crate::items::{ItemNode, Slot, find, program};

/// The declarations as an item sees them. Two are equal where the program has the same names and what the item mentions,
/// itself or by a function or an operator that it uses, is the same.
#[derive(Debug, Clone)]
pub struct Seen {
    print: u64,
    /// All of them.
    pub globals: Arc<Globals>,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl Eq for Seen {}

/// The declarations as an item sees them.
#[salsa::tracked]
pub fn seen<'db>(db: &'db dyn Db, root: SourceFile, item: ItemNode<'db>) -> Seen {
    let globals = globals(db, root);
    let mut hasher = DefaultHasher::new();
    keys(db, root).hash(&mut hasher);
    for name in &mentioned(db, root, item) {
        name.hash(&mut hasher);
        globals.values.get(name).hash(&mut hasher);
        globals.functions.get(name).hash(&mut hasher);
        globals.records.get(name).hash(&mut hasher);
        globals.streams.contains(name).hash(&mut hasher);
    }
    Seen { print: hasher.finish(), globals: globals.clone() }
}

/// Every name that means something without a row, streams left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Keys {
    print: u64,
    names: Arc<HashSet<String>>,
}

impl Hash for Keys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

#[salsa::tracked]
fn keys(db: &dyn Db, root: SourceFile) -> Keys {
    let globals = globals(db, root);
    let mut hasher = DefaultHasher::new();
    let kinds: [Vec<&String>; 4] = [
        globals.values.keys().collect(),
        globals.functions.keys().collect(),
        globals.records.keys().collect(),
        globals.broken.iter().collect(),
    ];
    kinds.hash(&mut hasher);
    let names = kinds.into_iter().flatten().cloned().collect();
    Keys { print: hasher.finish(), names: Arc::new(names) }
}

/// The names of functions and of users' operators: what is mentioned by way of another item goes through these.
#[salsa::tracked]
fn callable(db: &dyn Db, root: SourceFile) -> Arc<BTreeSet<Slot>> {
    let program = program(db, root);
    let of = |namespace| program.declared(namespace).map(|(slot, _)| slot.clone());
    Arc::new(of(Namespace::Fn).chain(of(Namespace::Operator)).collect())
}

#[salsa::tracked]
fn streams(db: &dyn Db, root: SourceFile) -> Arc<BTreeSet<String>> {
    Arc::new(globals(db, root).streams.clone())
}

/// The names of declarations that an item mentions, also through what it uses.
fn mentioned<'db>(db: &'db dyn Db, root: SourceFile, item: ItemNode<'db>) -> BTreeSet<String> {
    let (keys, streams, callable) = (keys(db, root), streams(db, root), callable(db, root));
    let mut out = BTreeSet::new();
    let mut open = vec![item];
    while let Some(item) = open.pop() {
        for name in names(db, item).iter() {
            let known = keys.names.contains(name) || streams.contains(name);
            // A user's operator is no value, but what its declaration mentions counts.
            let used = [Namespace::Fn, Namespace::Operator].map(|namespace| Slot::new(namespace, name.as_str()));
            let mut used = used.iter().filter(|slot| callable.contains(*slot)).peekable();
            if (known || used.peek().is_some()) && out.insert(name.clone()) {
                open.extend(used.filter_map(|slot| find(db, root, slot.namespace, name)));
            }
        }
    }
    out
}

/// Every text in an item's tree: its names, and some that are none.
#[salsa::tracked]
fn names<'db>(db: &'db dyn Db, item: ItemNode<'db>) -> Arc<BTreeSet<String>> {
    let mut texts = Texts::default();
    item.kind(db).hash(&mut texts);
    Arc::new(texts.0)
}

/// Keeps the texts of what is hashed, and nothing else.
#[derive(Default)]
struct Texts(BTreeSet<String>);

impl Hasher for Texts {
    fn write(&mut self, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes)
            && !text.is_empty()
        {
            self.0.insert(text.to_owned());
        }
    }

    fn finish(&self) -> u64 {
        0
    }

    // Numbers are no texts.
    fn write_u8(&mut self, _: u8) {}
    fn write_u16(&mut self, _: u16) {}
    fn write_u32(&mut self, _: u32) {}
    fn write_u64(&mut self, _: u64) {}
    fn write_u128(&mut self, _: u128) {}
    fn write_usize(&mut self, _: usize) {}
    fn write_i8(&mut self, _: i8) {}
    fn write_i16(&mut self, _: i16) {}
    fn write_i32(&mut self, _: i32) {}
    fn write_i64(&mut self, _: i64) {}
    fn write_i128(&mut self, _: i128) {}
    fn write_isize(&mut self, _: isize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_tree_are_its_names() {
        let parsed = dfc_grammar::parse("stream t = s |> derive(a: net(b, 3) ?? rate, c: d as list<Row>)\n");
        let mut texts = Texts::default();
        parsed.file.items[0].kind.hash(&mut texts);
        for name in ["t", "s", "derive", "a", "net", "b", "rate", "c", "d", "Row"] {
            assert!(texts.0.contains(name), "{name}: {:?}", texts.0);
        }
    }
}
