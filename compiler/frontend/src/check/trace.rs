//! The fields at every point of an item's chains, for editors: [`item_check`](super::item_check) keeps only those that come
//! out at the end.
//!
//! No query: an item is walked again when an editor asks about it, also one that is in no file, such as the part of a
//! chain before the cursor.

use std::sync::Arc;

use dfc_grammar::ast::{ItemKind, Span};
use dfc_typeck::{Column, ItemKey};

use super::chain::Position;
use super::{Flow, ItemContext};
use crate::db::{Db, SourceFile};
use crate::globals::globals;
use crate::places::PartIndex;

/// Fields at the points of an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    points: Vec<(Span, Option<Vec<Column>>)>,
}

impl Trace {
    /// The fields behind a part of a chain: its head, a link, or a stream in an argument's place. `None`: no such part, or
    /// an error hides them.
    pub fn after(&self, part: Span) -> Option<&[Column]> {
        self.points.iter().rev().find(|(span, _)| *span == part).and_then(|(_, columns)| columns.as_deref())
    }
}

impl ItemContext<'_> {
    /// Keeps the fields at a point, where they are asked for.
    pub(super) fn note(&mut self, part: Span, flow: &Flow) {
        if let Some(trace) = &mut self.trace {
            trace.points.push((part, flow.columns.clone()));
        }
    }
}

/// Walks an item. `key` says what it is called and in which file it stands; the item itself may be in no file. A chain
/// that runs in a circle must not be walked: what it reads is then nothing.
pub fn trace(db: &dyn Db, root: SourceFile, key: &ItemKey, kind: &ItemKind, table: bool) -> Trace {
    walked(db, root, key, kind, table).1
}

/// The fields that an item gives and those on the way to them.
pub(super) fn walked(
    db: &dyn Db,
    root: SourceFile,
    key: &ItemKey,
    kind: &ItemKind,
    table: bool,
) -> (Option<Vec<Column>>, Trace) {
    let places = Arc::new(PartIndex::new(key, kind));
    let mut cx =
        ItemContext { trace: Some(Trace::default()), ..ItemContext::new(db, root, globals(db, root), key, places) };
    let columns = match kind {
        ItemKind::Source(source) => {
            let flow = cx.source_item(source);
            cx.note(source.chain.head.span, &flow);
            flow.columns
        }
        ItemKind::Stream(stream) => {
            cx.chain(&stream.chain, if table { Position::Table } else { Position::Stream }).columns
        }
        ItemKind::Sink(sink) => {
            for chain in &sink.chains {
                cx.sink_chain(chain);
            }
            None
        }
        _ => None,
    };
    (columns, cx.trace.unwrap_or_default())
}
