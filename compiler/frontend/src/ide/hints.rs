//! Inlay hints: what each link of a chain does to the fields (`+ revenue: decimal(18, 4)`, `− discount`), and the types of
//! streams, constants and functions that aren't written.

use std::path::Path;

use dfc_grammar::TokenKind as T;
use dfc_grammar::ast::{Call, Chain, Expr, ExprKind, ItemKind};
use dfc_typeck::Column;

use super::docs;
use super::text::{column, table, written};
use super::view::View;
use super::{HintKind, InlayHint, TextRange};
use crate::Compiler;
use crate::check::{Trace, shown_columns, trace};
use crate::items::ItemNode;

/// Fields that a hint names at most, of those that come and of those that go.
const NAMED: usize = 3;

/// What each link does to the fields, and types that aren't written, in a range of a file, by place.
pub fn inlay_hints(compiler: &Compiler, root: &Path, file: &Path, range: TextRange) -> Vec<InlayHint> {
    let view = View::new(compiler, root, file);
    let mut out = Vec::new();
    for (item, kind, start) in view.items_in(range) {
        let mut hints = Hints { view: &view, start: start as usize, out: Vec::new() };
        hints.item(item, kind);
        out.extend(hints.out.into_iter().filter(|hint| range.touches(hint.offset)));
    }
    out.sort_by_key(|hint| hint.offset);
    out
}

struct Hints<'a> {
    view: &'a View<'a>,
    /// The item's first byte.
    start: usize,
    out: Vec<InlayHint>,
}

impl Hints<'_> {
    fn item(&mut self, item: ItemNode, kind: &ItemKind) {
        let view = self.view;
        match kind {
            ItemKind::Source(source) => {
                let declared = match &source.chain.head.kind {
                    ExprKind::Call(call) => {
                        call.args.iter().any(|a| a.label.as_ref().is_some_and(|l| l.text == "schema"))
                    }
                    _ => true,
                };
                let columns = shown_columns(view.db, view.root, item);
                if !declared && let Some(columns) = columns {
                    self.stream(source.name.span.end, columns);
                }
            }
            ItemKind::Stream(stream) => {
                if let Some(columns) = shown_columns(view.db, view.root, item) {
                    self.stream(stream.name.span.end, columns);
                }
                if !crate::cycles::is_cyclic(view.db, view.root, item) {
                    let trace = trace(view.db, view.root, item.key(view.db), kind, false);
                    self.chain(&stream.chain, &trace);
                }
            }
            ItemKind::Sink(sink) => {
                let trace = trace(view.db, view.root, item.key(view.db), kind, false);
                sink.chains.iter().for_each(|chain| self.chain(chain, &trace));
            }
            ItemKind::Const(constant) if constant.ty.is_none() => {
                if let Some(global) = view.globals().values.get(&constant.name.text) {
                    let text = format!(": {}", global.ty);
                    self.push(constant.name.span.end, text, HintKind::Type, None);
                }
            }
            ItemKind::Fn(decl) if decl.result.is_none() => {
                let function = view.globals().functions.get(&decl.name.text);
                if let Some(ty) = function.and_then(|function| docs::fn_result(view, function))
                    && let Some(end) = self.before_assign(decl.body.span.start)
                {
                    self.push(end, format!("-> {ty}"), HintKind::Type, None);
                }
            }
            _ => {}
        }
    }

    /// The end of what stands before the `=` in front of a body; relative to the item.
    fn before_assign(&self, body: u32) -> Option<u32> {
        let body = self.start + body as usize;
        let end = self.view.tokens.partition_point(|token| (token.span.start as usize) < body);
        let mut solid = self.view.tokens[..end].iter().rev().filter(|token| !token.kind.is_trivia());
        solid.find(|token| token.kind == T::Assign)?;
        solid.next()?.span.end.checked_sub(self.start as u32)
    }

    fn push(&mut self, at: u32, text: String, kind: HintKind, tooltip: Option<String>) {
        self.out.push(InlayHint { offset: self.start + at as usize, text, kind, tooltip });
    }

    /// The fields of a source or stream, behind its name.
    fn stream(&mut self, at: u32, columns: &[Column]) {
        let names: Vec<String> = columns.iter().take(NAMED).map(|column| written(&column.name)).collect();
        let more = match columns.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", … {more} more"),
        };
        self.push(at, format!(": {{ {}{more} }}", names.join(", ")), HintKind::Type, Some(row(columns)));
    }

    fn chain(&mut self, chain: &Chain, trace: &Trace) {
        if let ExprKind::Call(call) = &chain.head.kind {
            self.inner(call, trace);
        }
        let mut before = trace.after(chain.head.span);
        for link in &chain.links {
            self.inner(link, trace);
            let after = trace.after(link.span);
            if let (Some(before), Some(after)) = (before, after) {
                let text = change(before, after, link.name.text == "rename");
                if !text.is_empty() {
                    self.push(link.span.end, text, HintKind::Change, Some(row(after)));
                }
            }
            before = after;
        }
    }

    /// Chains inside the arguments.
    fn inner(&mut self, call: &Call, trace: &Trace) {
        for arg in &call.args {
            if let Expr { kind: ExprKind::Chain(chain), .. } = &arg.value {
                self.chain(chain, trace);
            }
        }
    }
}

fn row(columns: &[Column]) -> String {
    let steps = |column: &Column| column.path.iter().map(|step| step.words.as_str()).collect::<Vec<_>>().join(" → ");
    table(columns, steps)
}

/// What became of the fields, in a few words; empty where they are the same.
pub fn change(before: &[Column], after: &[Column], renames: bool) -> String {
    if renames {
        let renamed = before.iter().zip(after).filter(|(old, new)| old.name != new.name);
        let words: Vec<String> =
            renamed.map(|(old, new)| format!("{} → {}", written(&old.name), written(&new.name))).collect();
        return words.join(", ");
    }
    let old = |name: &str| before.iter().find(|column| column.name == name);
    let come: Vec<String> =
        after.iter().filter(|c| old(&c.name).is_none()).map(|c| format!("+ {}", column(c))).collect();
    let changed: Vec<String> = after
        .iter()
        .filter(|c| old(&c.name).is_some_and(|old| old.ty != c.ty && !old.broken && !c.broken))
        .map(|c| format!("~ {}", column(c)))
        .collect();
    let gone: Vec<String> = before
        .iter()
        .filter(|c| after.iter().all(|new| new.name != c.name))
        .map(|c| format!("− {}", written(&c.name)))
        .collect();
    let parts = [come, changed, gone].into_iter().filter(|part| !part.is_empty()).map(|part| cut(&part));
    parts.collect::<Vec<_>>().join(", ")
}

/// The first of a list's words, and how many more there are.
fn cut(words: &[String]) -> String {
    match words.len().saturating_sub(NAMED) {
        0 => words.join(", "),
        more => format!("{}, … {more} more", words[..NAMED].join(", ")),
    }
}
