//! What a file is made of, as inputs of the queries: its items one by one, their places, and what is known of its mistakes.
//!
//! A text is cut into its items outside of the queries, when it is set. So a query depends on the items that it asks about
//! and not on the text, and an edit inside one item is an edit of one input.
//!
//! The sources, streams and sinks of a file that an editor holds are of low durability, everything else is of high: answers that
//! don't depend on what is being edited are known to hold without a look at what they depend on. So what a whole program
//! is made of (names, declarations, who reads whom) must not depend on what stands inside a stream. Names and edges are kept
//! for a file as one, so that whoever wants those of a whole program depends on its files and not on thousands of items.
//!
//! It may not know what items mean to each other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dfc_grammar::Parse;
use dfc_grammar::ast::{Item, ItemKind};
use dfc_typeck::{ItemKey, Namespace};
use salsa::{Durability, Setter as _};

use crate::db::{Database, Db, SourceFile};
use crate::items::{Slot, is_flow, parse};
use crate::references::{References, references};

/// An item of a file. Its identity is its key, so that an edit elsewhere leaves it what it was.
#[salsa::input(debug)]
pub struct ItemNode {
    /// Its name.
    pub key: ItemKey,
    /// What it declares.
    pub kind: Arc<ItemKind>,
    /// Whether it is broken now, and this is what it last was (its spans are those of an older text) or what can be read of it.
    #[returns(copy)]
    pub remembered: bool,
}

impl ItemNode {
    /// First byte in the file. It changes with every edit above: ask where places are shown, and nowhere else.
    pub fn start(self, db: &dyn Db) -> u32 {
        let found = db.file_by_index(self.key(db).file).and_then(|file| {
            let position = file.items(db).iter().position(|item| *item == self)?;
            file.starts(db).get(position).copied()
        });
        found.unwrap_or_default()
    }
}

/// The sources, streams and sinks of a file, in source order, each with the streams that it reads.
pub type Flows = Arc<Vec<(ItemNode, Arc<References>)>>;

/// The names of a file's items, in source order.
pub type Slots = Arc<Vec<Arc<Slot>>>;

/// What a program needs to know of a file's text: it stays the same over most edits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mistakes {
    /// Why it can't be read.
    pub unreadable: Option<String>,
    /// Whether it can't be read or has syntax errors.
    pub any: bool,
    /// Names that items with a mistake declare, and that nothing stands for.
    pub hidden: Vec<String>,
    /// Whether a broken item may declare any name.
    pub nameless: bool,
    /// Its size in whole pages of 4 KiB.
    pub pages: usize,
}

/// The items of a text, sound ones and remembered ones, in source order.
fn in_order<'a>(parsed: &'a Parse, remembered: &'a [Item]) -> Vec<(&'a Item, bool)> {
    let mut items: Vec<(&Item, bool)> = parsed.file.items.iter().map(|item| (item, false)).collect();
    items.extend(remembered.iter().map(|item| (item, true)));
    items.sort_by_key(|(item, _)| item.start);
    items
}

/// The keys of items: those of one name are counted.
fn keys<'a>(file: u32, items: impl Iterator<Item = &'a Item>) -> Vec<ItemKey> {
    let mut counted: HashMap<(Namespace, &str), u32> = HashMap::new();
    let keys = items.map(|item| {
        let (namespace, name) = identity(&item.kind);
        let count = counted.entry((namespace, name)).or_default();
        *count += 1;
        ItemKey { file, namespace, name: name.to_owned(), nth: *count - 1 }
    });
    keys.collect()
}

fn starts(items: &[(&Item, bool)]) -> Vec<u32> {
    items.iter().map(|(item, _)| item.start).collect()
}

/// What a file is made of.
pub struct Parts {
    /// Its items.
    pub items: Vec<ItemNode>,
    /// Their names.
    pub slots: Slots,
    /// Those that rows flow through.
    pub flows: Flows,
    /// The first byte of each item.
    pub starts: Arc<Vec<u32>>,
    /// What is known of its mistakes.
    pub mistakes: Mistakes,
}

/// What a file of this text is made of, as new inputs. `held`: whether an editor holds the file. `remembered`: what stands for
/// its broken items.
pub fn inputs(
    db: &dyn Db,
    file: u32,
    held: bool,
    text: &Result<Arc<str>, String>,
    parsed: &Parse,
    remembered: &[Item],
) -> Parts {
    let items = in_order(parsed, remembered);
    let (mut nodes, mut slots, mut flows) = (Vec::new(), Vec::new(), Vec::new());
    // Nothing is asked of the new inputs: a query that comes upon a new file must not depend on more than at its next run.
    for (key, (item, remembered)) in keys(file, items.iter().map(|(item, _)| *item)).into_iter().zip(&items) {
        slots.push(slot(&key));
        let reads = is_flow(&key).then(|| Arc::new(references(&key, &item.kind)));
        let node = node(db, key, &item.kind, *remembered, held);
        flows.extend(reads.map(|reads| (node, reads)));
        nodes.push(node);
    }
    Parts {
        items: nodes,
        slots: Arc::new(slots),
        flows: Arc::new(flows),
        starts: Arc::new(starts(&items)),
        mistakes: Mistakes::of(text, parsed, remembered),
    }
}

fn slot(key: &ItemKey) -> Arc<Slot> {
    Arc::new(Slot::new(key.namespace, key.name.clone()))
}

fn node(db: &dyn Db, key: ItemKey, kind: &Arc<ItemKind>, remembered: bool, held: bool) -> ItemNode {
    let durability = durability(&key, held);
    let node = ItemNode::builder(key, kind.clone(), remembered).durability(Durability::HIGH);
    node.kind_durability(durability).remembered_durability(durability).new(db)
}

fn durability(key: &ItemKey, held: bool) -> Durability {
    if held && is_flow(key) { Durability::LOW } else { Durability::HIGH }
}

/// What an editor takes hold of is edited from now on.
pub fn hold(db: &mut Database, file: SourceFile) {
    for node in file.items(db).clone() {
        let (kind, durability) = (node.kind(db).clone(), durability(node.key(db), true));
        if durability == Durability::LOW {
            // The same comes back.
            let _ = node.set_kind(db).with_durability(durability).to(kind);
        }
    }
}

impl Mistakes {
    fn of(text: &Result<Arc<str>, String>, parsed: &Parse, remembered: &[Item]) -> Mistakes {
        let is_remembered = |start: u32| remembered.iter().any(|item| item.start == start);
        let hidden = parsed.broken.iter().filter(|item| !is_remembered(item.span.start));
        let nameless = |item: &dfc_grammar::Broken| item.name.is_none() && !matches!(item.word, Some("sink" | "job"));
        Mistakes {
            unreadable: text.as_ref().err().cloned(),
            any: text.is_err() || !parsed.errors.is_empty(),
            hidden: hidden.filter_map(|item| item.name.clone()).collect(),
            nameless: parsed.broken.iter().any(nameless),
            pages: text.as_ref().map_or(0, |text| text.len() >> 12),
        }
    }
}

/// Nodes without an item that a file keeps.
const SPARE: usize = 64;

/// Sets what a file is made of after its text or what is remembered of it has changed: only what differs. `spare` are the
/// nodes of items that are not in the file now; an item that comes back gets its node, and with it what was known of it. `held`:
/// whether an editor holds the file.
pub fn refresh(db: &mut Database, file: SourceFile, held: bool, spare: &mut Vec<ItemNode>) {
    let (parsed, remembered) = (parse(db, file).clone(), file.remembered(db).clone());
    let items = in_order(&parsed, &remembered);
    let mistakes = Mistakes::of(file.text(db), &parsed, &remembered);
    let before = file.items(db).clone();
    let same = before.len() == items.len()
        && before.iter().zip(&items).all(|(node, (item, _))| {
            Arc::ptr_eq(node.kind(db), &item.kind) || identity(node.kind(db)) == identity(&item.kind)
        });
    let nodes = if same { before.clone() } else { matched(db, file, held, &items, spare) };
    let mut changed = Vec::new();
    for (node, (item, remembered)) in nodes.iter().zip(&items) {
        if change(db, *node, &item.kind, *remembered, held) {
            changed.push(*node);
        }
    }
    // The old values come back from each of these; nobody wants them.
    if let Some(flows) = flows(db, file, &nodes, &changed, nodes == before) {
        let _ = file.set_flows(db).with_durability(Durability::HIGH).to(Arc::new(flows));
    }
    if nodes != before {
        let slots = Arc::new(nodes.iter().map(|node| slot(node.key(db))).collect());
        let _ = file.set_slots(db).with_durability(Durability::HIGH).to(slots);
        let _ = file.set_items(db).with_durability(Durability::HIGH).to(nodes);
    }
    let starts = starts(&items);
    if **file.starts(db) != starts {
        let _ = file.set_starts(db).with_durability(Durability::LOW).to(Arc::new(starts));
    }
    if *file.mistakes(db) != mistakes {
        let _ = file.set_mistakes(db).with_durability(Durability::HIGH).to(mistakes);
    }
}

/// What a file's sources, streams and sinks read now, if that is something else than before. `changed`: the nodes with another
/// tree; `same`: whether the nodes are the file's still.
fn flows(
    db: &dyn Db,
    file: SourceFile,
    nodes: &[ItemNode],
    changed: &[ItemNode],
    same: bool,
) -> Option<Vec<(ItemNode, Arc<References>)>> {
    let before = file.flows(db);
    if same && changed.iter().all(|node| !is_flow(node.key(db))) {
        return None;
    }
    let known: HashMap<ItemNode, &Arc<References>> =
        before.iter().map(|(node, references)| (*node, references)).collect();
    let flows = nodes.iter().filter(|node| is_flow(node.key(db))).map(|node| {
        let known = known.get(node).copied();
        let kept = known.filter(|_| !changed.contains(node)).cloned();
        (*node, kept.unwrap_or_else(|| Arc::new(references(node.key(db), node.kind(db)))))
    });
    let flows: Vec<(ItemNode, Arc<References>)> = flows.collect();
    (flows != **before).then_some(flows)
}

/// A node for each item: the one of the same key, or one that has none, or a new one. One that gets another key
/// never stays in its place, so that the file has other nodes wherever it has other names.
fn matched(
    db: &mut Database,
    file: SourceFile,
    held: bool,
    items: &[(&Item, bool)],
    spare: &mut Vec<ItemNode>,
) -> Vec<ItemNode> {
    // In the order in which they lost their items: the same edits give the same nodes.
    let mut free: Vec<ItemNode> = spare.drain(..).chain(file.items(db).iter().copied()).collect();
    let known: HashMap<ItemKey, ItemNode> = free.iter().map(|node| (node.key(db).clone(), *node)).collect();
    let keys = keys(file.index(db), items.iter().map(|(item, _)| *item));
    let own: Vec<Option<ItemNode>> = keys.iter().map(|key| known.get(key).copied()).collect();
    let used: HashSet<ItemNode> = own.iter().flatten().copied().collect();
    free.retain(|node| !used.contains(node));
    // An input can't be given back: of many without an item, those that lost theirs first are used again. As many as are kept have lost
    // theirs later.
    let mut again = free.drain(..free.len().saturating_sub(SPARE)).collect::<Vec<_>>().into_iter();
    let mut nodes = Vec::with_capacity(items.len());
    for ((own, key), (item, remembered)) in own.into_iter().zip(keys).zip(items) {
        nodes.push(match own.or_else(|| again.next()) {
            Some(own) if *own.key(db) == key => own,
            Some(free) => {
                let _ = free.set_key(db).with_durability(Durability::HIGH).to(key);
                free
            }
            None => node(db, key, &item.kind, *remembered, held),
        });
    }
    spare.extend(again.chain(free));
    nodes
}

/// Sets what a node is; whether its tree is another now.
fn change(db: &mut Database, node: ItemNode, kind: &Arc<ItemKind>, remembered: bool, held: bool) -> bool {
    let (key, old) = (node.key(db), node.kind(db));
    let durability = durability(key, held);
    let changed = !Arc::ptr_eq(old, kind) && old != kind;
    if changed {
        let _ = node.set_kind(db).with_durability(durability).to(kind.clone());
    }
    if node.remembered(db) != remembered {
        let _ = node.set_remembered(db).with_durability(durability).to(remembered);
    }
    changed
}

fn identity(kind: &ItemKind) -> (Namespace, &str) {
    match kind {
        ItemKind::Job(job) => (Namespace::Job, &job.name.text),
        ItemKind::Param(param) => (Namespace::Value, &param.name.text),
        ItemKind::Const(constant) => (Namespace::Value, &constant.name.text),
        ItemKind::Record(record) => (Namespace::Record, &record.name.text),
        ItemKind::Source(source) => (Namespace::Stream, &source.name.text),
        ItemKind::Stream(stream) => (Namespace::Stream, &stream.name.text),
        ItemKind::Sink(_) => (Namespace::Sink, ""),
        ItemKind::Fn(decl) => (Namespace::Fn, &decl.name.text),
        ItemKind::Operator(decl) => (Namespace::Operator, &decl.name.text),
        ItemKind::Use(_) => (Namespace::Use, ""),
        ItemKind::Native(native) => (Namespace::Native, &native.name.text),
    }
}
