//! Computed fields that nothing reads (`W0401`).
//!
//! A field is followed through the streams by what each of them reads of its inputs, so that an edit asks only the neighbours
//! anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dfc_diagnostics::Severity;
use dfc_typeck::{ItemKey, Loc, LocalDiagnostic, Namespace};

use crate::check::{Input, ItemCheck, chain_check, chain_checks, item_check};
use crate::db::{Db, SourceFile};
use crate::edges::readers;
use crate::items::ItemNode;

/// A field computed by a node: which node, which of its columns, the field's name, where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computed {
    /// Position among the item's nodes.
    pub node: usize,
    /// Position among the node's columns.
    pub column: usize,
    /// The field's name.
    pub name: String,
    /// Where it is computed (counted).
    pub loc: Loc,
}

/// Columns that an item reads of another; `None`: it has errors, so nobody knows.
pub type Reads = Option<BTreeMap<ItemKey, BTreeSet<usize>>>;

/// What an item reads of others where all that it gives is wanted.
pub fn reads(check: &ItemCheck) -> Reads {
    if check.diagnostics.iter().any(|problem| problem.severity == Severity::Error) {
        return None;
    }
    let width = check.columns.as_ref().map_or(0, |columns| columns.len());
    let mut reads = needed_columns(check, (0..width).collect()).streams;
    if let Some(Input::Stream(passed)) = &check.output {
        reads.entry(passed.clone()).or_default().extend(0..width);
    }
    Some(reads)
}

/// Which of a sink's chains read which stream; `None`: one of them has errors. It stays the same when the fields change that they read.
#[salsa::tracked]
fn chains_reading(db: &dyn Db, root: SourceFile, sink: ItemNode) -> Option<Arc<BTreeMap<ItemKey, Vec<usize>>>> {
    let mut chains: BTreeMap<ItemKey, Vec<usize>> = BTreeMap::new();
    for (number, check) in chain_checks(db, root, sink).enumerate() {
        for stream in check.reads.as_ref()?.keys() {
            chains.entry(stream.clone()).or_default().push(number);
        }
    }
    Some(Arc::new(chains))
}

/// What an item reads of one other: an edit that changes what is read of one stream asks only that one anew.
#[salsa::tracked]
fn read_of(db: &dyn Db, root: SourceFile, reader: ItemNode, item: ItemNode) -> Option<Arc<BTreeSet<usize>>> {
    let key = item.key(db);
    let of = |check: &ItemCheck| Some(check.reads.as_ref()?.get(key).cloned().unwrap_or_default());
    if reader.key(db).namespace != Namespace::Sink {
        return of(item_check(db, root, reader)).map(Arc::new);
    }
    let mut read = BTreeSet::new();
    for number in chains_reading(db, root, reader).as_ref()?.get(key).into_iter().flatten() {
        read.extend(of(chain_check(db, root, reader, *number))?);
    }
    Some(Arc::new(read))
}

/// The columns of an item that its readers read; `None`: one of them has errors.
fn wanted(db: &dyn Db, root: SourceFile, item: ItemNode, check: &ItemCheck) -> Option<BTreeSet<usize>> {
    let mut wanted = BTreeSet::new();
    let readers = readers(db, root, item);
    if readers.is_empty() {
        wanted.extend(0..check.columns.as_ref().map_or(0, |columns| columns.len()));
    }
    for reader in readers {
        wanted.extend(read_of(db, root, *reader, item).as_ref()?.iter());
    }
    Some(wanted)
}

/// Computed fields of a stream that nothing reads.
#[salsa::tracked]
pub fn unused(db: &dyn Db, root: SourceFile, item: ItemNode) -> Vec<LocalDiagnostic> {
    let check = item_check(db, root, item);
    if check.computed.is_empty() || check.output.is_none() {
        return Vec::new();
    }
    wanted(db, root, item, check).map_or_else(Vec::new, |wanted| in_vain(check, wanted))
}

/// Fields that are computed and not needed for those that are `wanted` of what comes out.
pub fn in_vain(check: &ItemCheck, wanted: BTreeSet<usize>) -> Vec<LocalDiagnostic> {
    if check.computed.is_empty() || check.diagnostics.iter().any(|problem| problem.severity == Severity::Error) {
        return Vec::new();
    }
    let needed = needed_columns(check, wanted);
    let idle = check.computed.iter().filter(|computed| !needed.nodes[computed.node].contains(&computed.column));
    idle.map(|computed| {
        let name = &computed.name;
        LocalDiagnostic::warning(
            "W0401",
            computed.loc.clone(),
            format!("nothing reads the field `{name}`"),
            "computed in vain",
        )
        .help("take it out, or lead it to the sink")
    })
    .collect()
}

/// The columns needed of each node of an item, and of the streams that it reads.
struct Needed {
    nodes: Vec<BTreeSet<usize>>,
    streams: BTreeMap<ItemKey, BTreeSet<usize>>,
}

/// `output`: the columns that are wanted of what comes out.
fn needed_columns(check: &ItemCheck, output: BTreeSet<usize>) -> Needed {
    let mut nodes = vec![BTreeSet::new(); check.nodes.len()];
    let mut streams: BTreeMap<ItemKey, BTreeSet<usize>> = BTreeMap::new();
    if let Some(Input::Node(last)) = &check.output {
        nodes[*last] = output;
    }
    for (id, node) in check.nodes.iter().enumerate().rev() {
        let width = |_: usize| node.schema.len();
        for (input, read) in node.inputs.iter().zip(node.op.reads(&nodes[id], node.inputs.len(), &width)) {
            match input {
                Input::Node(input) => nodes[*input].extend(read),
                Input::Stream(stream) => streams.entry(stream.clone()).or_default().extend(read),
            }
        }
    }
    Needed { nodes, streams }
}
