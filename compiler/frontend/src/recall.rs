//! What a broken item last was: an editor's answers keep the last good fields while a line is being written.
//!
//! A file has a *recalling twin* beside it, made when an editor first asks: the same text, but where an item has a mistake
//! the twin has that item as it was when it was last sound. A program of twins therefore answers from whole items only. In
//! a program without a mistake both are equal. Diagnostics of a program with mistakes come from the files themselves and
//! never from what is remembered.

use std::sync::Arc;

use dfc_grammar::Broken;
use dfc_grammar::ast::{Item, ItemKind};

use crate::db::{Database, SourceFile};
use crate::items::parse;

/// Makes a change of one file's text, and keeps for its twin what the change broke.
pub fn edit(db: &mut Database, file: SourceFile, change: impl FnOnce(&mut Database)) {
    let Some(twin) = db.existing_twin(file) else {
        change(db);
        return;
    };
    let before = parse(db, file).clone();
    let older = twin.remembered(db).clone();
    change(db);
    let broken = &parse(db, file).broken;
    let remembered = if broken.is_empty() {
        Arc::default()
    } else {
        let mut known: Vec<&Item> = before.file.items.iter().chain(older.iter()).collect();
        known.sort_by_key(|item| item.start);
        Arc::new(recalled(broken, &known, &parse(db, file).file.items))
    };
    db.set_remembered(twin, remembered);
}

/// What the broken items of a text were before, each at its present place.
fn recalled(broken: &[Broken], known: &[&Item], sound: &[Item]) -> Vec<Item> {
    let found = broken.iter().filter_map(|item| {
        let word = item.word?;
        let same = known.iter().filter(|old| item_word(&old.kind) == Some(word));
        let old = match word {
            // Without a name of their own: the same number of them stand before.
            "sink" | "job" => {
                let others = broken.iter().filter(|b| b.word == Some(word)).map(|b| b.span.start);
                let before = sound.iter().filter(|s| item_word(&s.kind) == Some(word)).map(|s| s.start).chain(others);
                same.clone().nth(before.filter(|start| *start < item.span.start).count())?
            }
            _ => same.clone().find(|old| name(&old.kind) == item.name.as_deref())?,
        };
        let len = item.span.end - item.span.start;
        Some(Item { start: item.span.start, len, doc: old.doc.clone(), kind: old.kind.clone() })
    });
    found.collect()
}

/// The item word of what can be recalled. A broken `use` is not: it would say what its file no longer says.
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
