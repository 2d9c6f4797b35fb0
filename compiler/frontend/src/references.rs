//! Which streams an item reads, by name: all that the graph needs to know of it.
//!
//! The result holds no byte offsets, so that the graph is drawn anew only when an edge changes.

use std::collections::BTreeSet;

use dfc_grammar::ast::{Call, Chain, Expr, ExprKind, ItemKind, Span};
use dfc_typeck::{ItemKey, Loc};

use crate::operators::{Kind, Role, table};
use crate::places::PartIndex;

/// A stream's name where one is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// Where (counted).
    pub at: Loc,
}

/// Calls that a chain may begin with.
const HEADS: &[&str] = &["union", "rejected"];

/// What the graph needs to know of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct References {
    /// Streams that are read, in source order.
    pub reads: Vec<Reference>,
    /// Streams named in arguments of an operator that isn't there, or of a parameter that isn't: meant to be read, probably.
    pub perhaps: BTreeSet<String>,
    /// Streams whose rows the item hands on, all of them and as they are.
    pub same: Vec<Reference>,
    /// For each call of an operator that demands unique paths: the streams whose rows come into it as they are.
    pub unique: Vec<Vec<Reference>>,
    /// A stream or a sink that begins with an operator, a stream that ends in a sink, or a chain that is no chain: its own check says so, and the graph takes it as whole.
    pub misplaced: bool,
}

/// The streams that an item reads.
pub fn references(key: &ItemKey, kind: &ItemKind) -> References {
    let mut walk = Walk { places: PartIndex::new(key, kind), out: References::default() };
    match kind {
        ItemKind::Stream(stream) => {
            walk.out.same = walk.chain(&stream.chain);
            walk.out.misplaced =
                stream.chain.links.iter().any(|link| ends(&link.name.text)) || starts_with_operator(&stream.chain);
        }
        ItemKind::Sink(sink) => {
            sink.chains.iter().for_each(|chain| drop(walk.chain(chain)));
            walk.out.misplaced = sink.chains.iter().any(|chain| !chain.links.is_empty() && starts_with_operator(chain));
        }
        // A source that is only a name is refused; the stream it names is read all the same.
        ItemKind::Source(source) => drop(walk.chain(&source.chain)),
        _ => {}
    }
    walk.out
}

fn starts_with_operator(chain: &Chain) -> bool {
    matches!(&chain.head.kind, ExprKind::Call(head) if !HEADS.contains(&head.name.text.as_str()))
}

/// Whether an operator can only stand at an end of the graph.
fn ends(name: &str) -> bool {
    table().get(name, Role::Shuffle).is_none() && table().get(name, Role::Sink).is_some()
}

struct Walk {
    places: PartIndex,
    out: References,
}

impl Walk {
    /// The streams whose rows it gives, all of them and as they are.
    fn chain(&mut self, chain: &Chain) -> Vec<Reference> {
        let rows = match &chain.head.kind {
            ExprKind::Name(name) => self.read(name, chain.head.span),
            ExprKind::Call(call) => self.call(call),
            _ => Vec::new(),
        };
        for link in &chain.links {
            self.call(link);
        }
        if chain.links.is_empty() { rows } else { Vec::new() }
    }

    /// The arguments that are streams, by the operator's declaration. Gives the streams whose rows come out as they are.
    fn call(&mut self, call: &Call) -> Vec<Reference> {
        let Some(operator) = table().get(&call.name.text, Role::Shuffle) else {
            call.args.iter().for_each(|arg| self.perhaps(&arg.value));
            return Vec::new();
        };
        let variadic = operator.params.iter().find(|p| p.variadic);
        let mut rows = Vec::new();
        for (arg, param) in operator.paired(call) {
            match param.map(|p| &p.kind) {
                Some(Kind::Stream | Kind::Source) => {}
                None if variadic.is_none_or(|p| p.kind == Kind::Stream) => {
                    self.perhaps(&arg.value);
                    continue;
                }
                _ => continue,
            }
            rows.extend(match &arg.value.kind {
                ExprKind::Name(name) => self.read(name, arg.value.span),
                ExprKind::Chain(chain) => self.chain(chain),
                ExprKind::Call(inner) => self.call(inner),
                _ => Vec::new(),
            });
        }
        if operator.clause("unique_path").is_none() {
            return Vec::new();
        }
        self.out.unique.push(rows.clone());
        rows
    }

    /// An argument that may have been meant as a stream.
    fn perhaps(&mut self, value: &Expr) {
        match &value.kind {
            ExprKind::Name(name) => {
                self.out.perhaps.insert(name.clone());
            }
            ExprKind::List(items) => items.iter().for_each(|item| self.perhaps(&item.value)),
            ExprKind::Chain(chain) => self.perhaps(&chain.head),
            ExprKind::Call(call) => call.args.iter().for_each(|arg| self.perhaps(&arg.value)),
            _ => {}
        }
    }

    fn read(&mut self, name: &str, span: Span) -> Vec<Reference> {
        let reference = Reference { name: name.to_string(), at: self.places.place(span) };
        self.out.reads.push(reference.clone());
        vec![reference]
    }
}
