//! What one item can see of the program's declarations: so that an edit of a constant, a record or a function is felt by
//! those that mention it, and by no one else.
//!
//! It may not know what an item does with what it sees.

use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dfc_typeck::{Global, Globals, Namespace, RecordType, UserFn};

use crate::db::{Db, SourceFile};
use crate::globals::{declaring, globals};
use crate::items::ItemNode;

/// The declarations that an item mentions, itself or by a function or an operator that it uses. All others are left out, and so
/// are the streams' names: these only make an error's words better.
#[salsa::tracked]
pub fn seen(db: &dyn Db, root: SourceFile, item: ItemNode) -> Arc<Globals> {
    let declared = declared(db, root);
    let mut out = Globals::default();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut open = vec![item];
    while let Some(item) = open.pop() {
        for name in names(db, item).iter().filter(|name| declared.contains(*name)) {
            if done.insert(name) {
                let meaning = meaning(db, root, name.clone());
                meaning.put(name, &mut out);
                open.extend(&meaning.through);
            }
        }
    }
    Arc::new(out)
}

/// Every name that is declared, those of streams left out.
#[salsa::tracked]
fn declared(db: &dyn Db, root: SourceFile) -> Arc<HashSet<String>> {
    let (globals, program) = (globals(db, root), declaring(db, root));
    let values = globals.values.keys().chain(globals.functions.keys()).chain(globals.records.keys());
    let names = values.chain(&globals.broken).map(String::as_str).chain(program.names_of(Namespace::Operator));
    Arc::new(names.map(str::to_owned).collect())
}

/// What a name means in a program where no row is asked. It may mean several things at once, each in its own namespace.
#[derive(Debug, Clone, PartialEq, Eq, salsa::SalsaValue)]
struct Meaning {
    value: Option<Global>,
    function: Option<Arc<UserFn>>,
    record: Option<RecordType>,
    broken: bool,
    /// Functions and operators of this name: what their declarations mention counts too.
    through: Vec<ItemNode>,
}

impl Meaning {
    fn put(&self, name: &str, out: &mut Globals) {
        out.values.extend(self.value.clone().map(|value| (name.to_owned(), value)));
        out.functions.extend(self.function.clone().map(|function| (name.to_owned(), function)));
        out.records.extend(self.record.clone().map(|record| (name.to_owned(), record)));
        out.broken.extend(self.broken.then(|| name.to_owned()));
    }
}

/// What a name means in a program. Who asks so depends on that name only.
#[salsa::tracked]
fn meaning(db: &dyn Db, root: SourceFile, name: String) -> Meaning {
    let (globals, program) = (globals(db, root), declaring(db, root));
    let through = [Namespace::Fn, Namespace::Operator].into_iter().filter_map(|of| program.find(of, &name)).collect();
    Meaning {
        value: globals.values.get(&name).cloned(),
        function: globals.functions.get(&name).cloned(),
        record: globals.records.get(&name).cloned(),
        broken: globals.broken.contains(&name),
        through,
    }
}

/// Every text in an item's tree: its names, and some that are none.
#[salsa::tracked]
fn names(db: &dyn Db, item: ItemNode) -> Arc<BTreeSet<String>> {
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
