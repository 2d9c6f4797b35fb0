//! Places inside items that survive edits: a *part* is counted, not measured in bytes.
//!
//! What one item says about itself to others (a field was declared here, computed there) must not change when blanks are
//! added, or everything that reads it would be computed anew. So such places are written as the number of a part: the
//! span `{ start: number, end: u32::MAX }`. They become bytes only when a diagnostic is shown ([`resolve`]).
//!
//! The parts of an item are the spans that [`parts`] gives, in its order. Part 0 is the item's name.

use std::collections::HashMap;

use dfc_grammar::ast::{Arg, Chain, Expr, ExprKind, ItemKind, Span, TypeExpr, TypeKind};
use dfc_typeck::{ItemKey, Loc};

/// The end of a counted place. No file is that long.
const COUNTED: u32 = u32::MAX;

/// The item's name (a sink's first stream).
pub fn name_of(item: &ItemKey) -> Loc {
    part(item, 0)
}

/// The place of a part.
pub fn part(item: &ItemKey, number: usize) -> Loc {
    Loc { item: item.clone(), span: Span { start: number as u32, end: COUNTED } }
}

/// From a counted place to bytes relative to the item; other spans are given back.
pub fn resolve(kind: &ItemKind, span: Span) -> Span {
    if span.end != COUNTED {
        return span;
    }
    let parts = parts(kind);
    parts.get(span.start as usize).or(parts.first()).copied().unwrap_or_default()
}

/// The number of each part by its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartIndex {
    item: ItemKey,
    by_span: HashMap<Span, usize>,
}

impl PartIndex {
    /// Counts the parts of an item.
    pub fn new(item: &ItemKey, kind: &ItemKind) -> Self {
        let mut by_span = HashMap::new();
        for (number, span) in parts(kind).into_iter().enumerate() {
            by_span.entry(span).or_insert(number);
        }
        PartIndex { item: item.clone(), by_span }
    }

    /// The counted place of a span; of the item's name, if the span is no part.
    pub fn place(&self, span: Span) -> Loc {
        part(&self.item, self.by_span.get(&span).copied().unwrap_or(0))
    }
}

/// The parts of an item, in a fixed order.
pub fn parts(kind: &ItemKind) -> Vec<Span> {
    let mut out = Vec::new();
    match kind {
        ItemKind::Job(job) => {
            out.push(job.name.span);
            out.extend(job.settings.iter().map(|s| s.name.span));
        }
        ItemKind::Param(param) => out.push(param.name.span),
        ItemKind::Const(constant) => out.push(constant.name.span),
        ItemKind::Record(record) => {
            out.push(record.name.span);
            out.extend(record.fields.iter().map(|f| f.name.span));
        }
        ItemKind::Source(source) => {
            out.push(source.name.span);
            chain(&source.chain, &mut out);
        }
        ItemKind::Stream(stream) => {
            out.push(stream.name.span);
            chain(&stream.chain, &mut out);
        }
        ItemKind::Sink(sink) => {
            out.push(sink.chains.first().map_or(Span::new(0, 4), |c| c.head.span));
            sink.chains.iter().for_each(|c| chain(c, &mut out));
        }
        ItemKind::Fn(decl) => out.push(decl.name.span),
        ItemKind::Operator(decl) => out.push(decl.name.span),
        ItemKind::Use(path) => out.push(path.span),
        ItemKind::Native(native) => out.push(native.name.span),
    }
    out
}

fn chain(chain: &Chain, out: &mut Vec<Span>) {
    out.push(chain.head.span);
    if let ExprKind::Call(call) = &chain.head.kind {
        out.push(call.name.span);
        args(&call.args, out);
    }
    for link in &chain.links {
        out.push(link.name.span);
        args(&link.args, out);
    }
}

fn args(args: &[Arg], out: &mut Vec<Span>) {
    for arg in args {
        out.push(arg.span);
        out.push(arg.value.span);
        value(&arg.value, out);
    }
}

fn value(expr: &Expr, out: &mut Vec<Span>) {
    match &expr.kind {
        ExprKind::Chain(inner) => chain(inner, out),
        ExprKind::Call(call) => {
            out.push(call.name.span);
            args(&call.args, out);
        }
        ExprKind::List(items) => items.iter().for_each(|item| {
            out.push(item.span);
            out.push(item.value.span);
        }),
        ExprKind::Type(TypeExpr { kind: TypeKind::Record(fields), .. }) => {
            out.extend(fields.iter().map(|f| f.name.span));
        }
        _ => {}
    }
}
