//! What a broken item last was: an editor's answers keep the last good fields while a line is being written.
//!
//! A file has a *recalling twin* beside it, made when an editor first asks: the same text, but where an item has a mistake
//! the twin has that item as it was when it was last sound, and where it never was, what can be read of it. A `use` whose file
//! can't be read is remembered too. In a program without a mistake both are equal. Diagnostics of a program with mistakes come
//! from the files themselves and never from what is remembered.

use std::collections::HashSet;
use std::sync::Arc;

use dfc_grammar::ast::{Item, ItemKind, Span};
use dfc_grammar::{Broken, Parse};

use crate::db::{Database, SourceFile};
use crate::items::{parse, used_file};

/// Makes a change of one file's text, and keeps for its twin what the change broke.
pub fn edit(db: &mut Database, file: SourceFile, change: impl FnOnce(&mut Database)) {
    let Some(twin) = db.existing_twin(file) else {
        change(db);
        return;
    };
    let before = parse(db, file).clone();
    let older = twin.remembered(db).clone();
    change(db);
    let after = parse(db, file);
    let lost = lost_use(db, file, after);
    let remembered = if after.broken.is_empty() && lost.is_none() {
        Arc::default()
    } else {
        // What was only read of a broken item is read again.
        let sound = |old: &&Item| !before.broken.iter().any(|item| is_same(item.mended.as_ref(), old));
        let mut known: Vec<&Item> = before.file.items.iter().chain(older.iter().filter(sound)).collect();
        known.sort_by_key(|item| item.start);
        let mut items = recalled(&after.broken, &known, &after.file.items);
        items.extend(lost.into_iter().flat_map(|at| recalled_uses(db, file, at, &after.file.items, &known)));
        Arc::new(items)
    };
    db.set_remembered(twin, remembered);
}

/// What can be read of the broken items of a text.
pub fn mended(parsed: &Parse) -> Vec<Item> {
    parsed.broken.iter().filter_map(|item| item.mended.clone()).collect()
}

fn is_same(item: Option<&Item>, other: &Item) -> bool {
    item.is_some_and(|item| Arc::ptr_eq(&item.kind, &other.kind))
}

/// Where the first `use` stands that is broken, or whose file can't be read.
fn lost_use(db: &Database, file: SourceFile, parsed: &Parse) -> Option<Span> {
    let broken = parsed.broken.iter().filter(|item| item.word == Some("use")).map(|item| item.span);
    let unread =
        parsed.file.items.iter().filter(|item| used(db, file, item).is_some_and(|used| used.text(db).is_err()));
    broken.chain(unread.map(|item| Span { start: item.start, end: item.start + item.len })).min()
}

/// The uses of files that are named no more, while a `use` stands there that names none: it is being written anew.
fn recalled_uses(db: &Database, file: SourceFile, at: Span, sound: &[Item], known: &[&Item]) -> Vec<Item> {
    let named: HashSet<SourceFile> = sound.iter().filter_map(|item| used(db, file, item)).collect();
    let mut taken = HashSet::new();
    let missing = known.iter().filter(|item| {
        used(db, file, item).is_some_and(|used| used.text(db).is_ok() && !named.contains(&used) && taken.insert(used))
    });
    missing.map(|item| Item { start: at.start, len: at.end - at.start, doc: None, kind: item.kind.clone() }).collect()
}

/// The file that an item takes in, if it is a `use`.
fn used(db: &Database, file: SourceFile, item: &Item) -> Option<SourceFile> {
    let ItemKind::Use(used) = item.kind.as_ref() else { return None };
    Some(used_file(db, file, &used.path))
}

/// What the broken items of a text were before, each at its present place; of what is new, what can be read.
fn recalled(broken: &[Broken], known: &[&Item], sound: &[Item]) -> Vec<Item> {
    let found = broken.iter().filter_map(|item| match before(item, broken, known, sound) {
        Some(old) => {
            let len = item.span.end - item.span.start;
            Some(Item { start: item.span.start, len, doc: old.doc.clone(), kind: old.kind.clone() })
        }
        None => item.mended.clone(),
    });
    found.collect()
}

/// What a broken item was before.
fn before<'k>(item: &Broken, broken: &[Broken], known: &[&'k Item], sound: &[Item]) -> Option<&'k Item> {
    let word = item.word?;
    let mut same = known.iter().copied().filter(|old| item_word(&old.kind) == Some(word));
    match word {
        // Without a name of their own: the same number of them stand before.
        "sink" | "job" => {
            let others = broken.iter().filter(|b| b.word == Some(word)).map(|b| b.span.start);
            let before = sound.iter().filter(|s| item_word(&s.kind) == Some(word)).map(|s| s.start).chain(others);
            same.nth(before.filter(|start| *start < item.span.start).count())
        }
        _ => same.find(|old| name(&old.kind) == item.name.as_deref()),
    }
}

/// The item word of what is recalled by itself. What became of a `use` is decided for all of them together.
fn item_word(kind: &ItemKind) -> Option<&'static str> {
    Some(match kind {
        ItemKind::Job(_) => "job",
        ItemKind::Param(_) => "param",
        ItemKind::Const(_) => "const",
        ItemKind::Record(_) => "record",
        ItemKind::Source(_) => "source",
        ItemKind::Stream(_) => "stream",
        ItemKind::Sink(_) => "sink",
        ItemKind::Fn(_) => "fn",
        ItemKind::Operator(_) => "operator",
        ItemKind::Use(_) | ItemKind::Native(_) => return None,
    })
}

/// The name of an item that has one.
fn name(kind: &ItemKind) -> Option<&str> {
    Some(match kind {
        ItemKind::Param(item) => &item.name.text,
        ItemKind::Const(item) => &item.name.text,
        ItemKind::Record(item) => &item.name.text,
        ItemKind::Source(item) => &item.name.text,
        ItemKind::Stream(item) => &item.name.text,
        ItemKind::Fn(item) => &item.name.text,
        ItemKind::Operator(item) => &item.name.text,
        ItemKind::Job(_) | ItemKind::Sink(_) | ItemKind::Use(_) | ItemKind::Native(_) => return None,
    })
}
