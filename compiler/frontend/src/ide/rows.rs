//! The fields at a place of a chain, from the text of the chain before it: whether what comes after is whole doesn't matter.
//!
//! It may not know what is asked about the fields.

use std::sync::Arc;

use dfc_grammar::ast::{Chain, ExprKind, ItemKind};
use dfc_grammar::{Parse, TokenKind as T};
use dfc_ir::DataType;
use dfc_typeck::{Column, ItemKey, Loc, Namespace};

use super::cursor::{Cursor, Frame, closes, is_word, opens};
use super::place::{Arg, operator_call};
use super::view::{View, range};
use super::{FileRange, TextRange};
use crate::check::{Trace, trace};
use crate::operators::Kind;
use crate::places;

/// What a fragment's text starts with: a fragment is the chain of a stream that is in no file.
const HEAD: &str = "stream fragment = ";

/// A part of a file's text, read as a chain of its own.
pub struct Fragment {
    key: ItemKey,
    kind: ItemKind,
    /// Where the chain's text starts in the file.
    start: usize,
    trace: Trace,
}

impl Fragment {
    /// Reads the text as a chain. `more` is put behind it. `None` where it has mistakes.
    pub fn read(view: &View<'_>, text: TextRange, more: &str, table: bool) -> Option<Fragment> {
        Fragment::parsed(view, text, more, table, false)
    }

    /// Reads the text as a chain, without the parts of it that have mistakes.
    pub fn mended(view: &View<'_>, text: TextRange, table: bool) -> Option<Fragment> {
        Fragment::parsed(view, text, "", table, true)
    }

    fn parsed(view: &View<'_>, text: TextRange, more: &str, table: bool, mend: bool) -> Option<Fragment> {
        let code = view.text.get(text.start..text.end)?;
        let Parse { file, broken, errors, .. } = dfc_grammar::parse(&format!("{HEAD}{code}{more}"));
        if !errors.is_empty() && !mend {
            return None;
        }
        let item = file.items.into_iter().next().or_else(|| broken.into_iter().next()?.mended)?;
        let kind = Arc::unwrap_or_clone(item.kind);
        let key = ItemKey {
            file: view.file.index(view.db),
            namespace: Namespace::Stream,
            name: "fragment".into(),
            nth: u32::MAX,
        };
        let trace = trace(view.db, view.root, &key, &kind, table);
        Some(Fragment { key, kind, start: text.start, trace })
    }

    /// The chain.
    pub fn chain(&self) -> Option<&Chain> {
        match &self.kind {
            ItemKind::Stream(stream) => Some(&stream.chain),
            _ => None,
        }
    }

    /// The fields at the chain's end.
    pub fn columns(&self) -> Option<&[Column]> {
        let chain = self.chain()?;
        self.trace.after(chain.links.last().map_or(chain.head.span, |link| link.span))
    }

    /// A place of the program, or of this fragment, in its file.
    pub fn place(&self, view: &View<'_>, loc: &Loc) -> Option<FileRange> {
        if loc.item != self.key {
            return view.place(loc);
        }
        let span = range(places::resolve(&self.kind, loc.span));
        let back = |at: usize| (at + self.start).checked_sub(HEAD.len());
        let range = TextRange::new(back(span.start)?, back(span.end)?);
        (range.end <= view.text.len()).then(|| FileRange { file: view.file.path(view.db).clone(), range })
    }
}

/// The fields that an operator's arguments see.
#[derive(Default)]
pub struct Rows {
    /// Its input.
    pub left: Vec<Column>,
    /// The other side of a `join` or `lookup`.
    pub right: Option<Vec<Column>>,
    /// Where the fields' ways lead, as far as they are in the text at hand.
    pub fragments: Vec<Fragment>,
}

impl Rows {
    /// A place on a field's way.
    pub fn place(&self, view: &View<'_>, loc: &Loc) -> Option<FileRange> {
        match self.fragments.iter().find(|fragment| fragment.key == loc.item) {
            Some(fragment) => fragment.place(view, loc),
            None => view.place(loc),
        }
    }
}

/// The fields before the operator of a frame, and those of its other side.
pub fn rows(view: &View<'_>, cursor: &Cursor<'_>, arg: &Arg) -> Rows {
    let mut rows = Rows::default();
    let Some(call) = operator_call(cursor, arg.frame) else { return rows };
    if let Some((from, pipe)) = call.chain {
        rows.left = chain(view, cursor, from, pipe, &mut rows.fragments);
    }
    if let Some(operator) = call.operator
        && operator.params.iter().any(|param| param.kind == Kind::Pair)
    {
        let other = arguments(cursor, &cursor.frames[arg.frame]).into_iter().enumerate().find(|(number, given)| {
            let named = given.label.as_deref().and_then(|label| operator.param(label));
            let param = named.or(operator.params.get(*number).filter(|_| given.label.is_none()));
            param.is_some_and(|param| matches!(param.kind, Kind::Stream | Kind::Source))
        });
        let fragment = other.and_then(|(_, given)| {
            Fragment::read(view, given.value, "", true).or_else(|| Fragment::mended(view, given.value, true))
        });
        rows.right = Some(fragment.as_ref().and_then(Fragment::columns).unwrap_or_default().to_vec());
    }
    rows
}

/// The fields behind a chain that goes from one token to another.
pub fn chain(
    view: &View<'_>,
    cursor: &Cursor<'_>,
    from: usize,
    to: usize,
    fragments: &mut Vec<Fragment>,
) -> Vec<Column> {
    let Some(text) = cursor.slice(from, to) else { return Vec::new() };
    let fragment = match Fragment::read(view, text, "", true) {
        Some(fragment) => Some(fragment),
        None => match remembered(view, cursor, from, to) {
            Some(columns) => return columns,
            None => Fragment::mended(view, text, true),
        },
    };
    let columns = fragment.as_ref().and_then(Fragment::columns).unwrap_or_default().to_vec();
    fragments.extend(fragment);
    columns
}

/// The fields at the same link of the item's last version that was whole.
fn remembered(view: &View<'_>, cursor: &Cursor<'_>, from: usize, to: usize) -> Option<Vec<Column>> {
    let item = view.find(Namespace::Stream, cursor.item_name()?)?;
    let ItemKind::Stream(stream) = item.kind(view.db).as_ref() else { return None };
    if cursor.frames.first()?.assign? + 1 != from {
        return None;
    }
    let before = links(cursor, from, to);
    let trace = trace(view.db, view.root, item.key(view.db), item.kind(view.db), false);
    let span = match before.len() {
        0 => stream.chain.head.span,
        count => {
            let link = stream.chain.links.get(count - 1)?;
            (before.last()? == &link.name.text).then_some(link.span)?
        }
    };
    trace.after(span).map(<[Column]>::to_vec)
}

/// The names of the links between two tokens.
fn links<'a>(cursor: &Cursor<'a>, from: usize, to: usize) -> Vec<&'a str> {
    pipes(cursor, from, to).into_iter().map(|pipe| cursor.name(pipe + 1)).collect()
}

fn pipes(cursor: &Cursor<'_>, from: usize, to: usize) -> Vec<usize> {
    let mut depth = 0usize;
    let mut out = Vec::new();
    for at in from..to {
        match cursor.kind(at) {
            Some(kind) if opens(kind) => depth += 1,
            Some(kind) if closes(kind) => depth = depth.saturating_sub(1),
            Some(T::Pipe) if depth == 0 => out.push(at),
            _ => {}
        }
    }
    out
}

/// An argument of a call, by its text.
pub struct Given {
    pub label: Option<String>,
    /// From its value's first token to its last.
    pub value: TextRange,
}

/// The arguments of a frame's bracket, those behind the cursor too.
pub fn arguments(cursor: &Cursor<'_>, frame: &Frame) -> Vec<Given> {
    let mut tokens: Vec<(T, TextRange)> =
        cursor.solid.iter().skip(frame.at + 1).map(|t| (t.kind, range(t.span))).collect();
    if cursor.word.start < cursor.word.end {
        tokens.push((T::Name, cursor.word));
    }
    tokens.extend(cursor.behind.iter().map(|t| (t.kind, range(t.span))));
    let mut out = Vec::new();
    let mut part: Vec<(T, TextRange)> = Vec::new();
    let mut depth = 0usize;
    for (kind, at) in tokens {
        if opens(kind) {
            depth += 1;
        } else if closes(kind) {
            if depth == 0 {
                break;
            }
            depth -= 1;
        }
        if kind == T::Comma && depth == 0 {
            out.extend(given(cursor, &part));
            part.clear();
        } else {
            part.push((kind, at));
        }
    }
    out.extend(given(cursor, &part));
    out
}

fn given(cursor: &Cursor<'_>, part: &[(T, TextRange)]) -> Option<Given> {
    let labelled = part.len() >= 2 && is_word(part[0].0) && part[1].0 == T::Colon;
    let label = labelled.then(|| cursor.text[part[0].1.start..part[0].1.end].trim_matches('`').to_string());
    let value = &part[if labelled { 2 } else { 0 }..];
    let value = TextRange::new(value.first()?.1.start, value.last()?.1.end);
    Some(Given { label, value })
}

/// The keys of the `aggregate` around the cursor, as its aggregates see them.
pub fn keys(view: &View<'_>, cursor: &Cursor<'_>, arg: &Arg) -> Vec<(String, DataType)> {
    let Some((from, pipe)) = operator_call(cursor, arg.frame).and_then(|call| call.chain) else { return Vec::new() };
    let by = arguments(cursor, &cursor.frames[arg.frame]).into_iter().find(|a| a.label.as_deref() == Some("by"));
    let (Some(by), Some(before)) = (by, cursor.slice(from, pipe)) else { return Vec::new() };
    let by = &view.text[by.value.start..by.value.end];
    let more = format!(" |> aggregate(by: {by}, `\u{1}`: count())");
    let Some(fragment) = Fragment::read(view, before, &more, false) else { return Vec::new() };
    let columns = fragment.columns().unwrap_or_default();
    let keys = &columns[..columns.len().saturating_sub(1)];
    keys.iter().map(|column| (column.name.clone(), column.ty.clone())).collect()
}

/// Whether an expression is a name alone.
pub fn bare_name(kind: &ExprKind) -> Option<&str> {
    match kind {
        ExprKind::Name(name) => Some(name),
        _ => None,
    }
}
