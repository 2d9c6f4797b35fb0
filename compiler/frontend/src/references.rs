//! Which streams an item reads, by name: all that the graph needs to know of it.
//!
//! The result holds no byte offsets, so that the graph is drawn anew only when an edge changes.

use dfc_grammar::ast::{Call, Chain, ExprKind, ItemKind, Span};
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
    /// A stream that begins with an operator or ends in a sink, or a chain that is no chain: its own check says so, and the graph takes it as whole.
    pub misplaced: bool,
}

/// The streams that an item reads.
pub fn references(key: &ItemKey, kind: &ItemKind) -> References {
    let mut walk = Walk { places: PartIndex::new(key, kind), out: References::default() };
    match kind {
        ItemKind::Stream(stream) => {
            walk.chain(&stream.chain);
            walk.out.misplaced = stream.chain.links.iter().any(|link| ends(&link.name.text))
                || matches!(&stream.chain.head.kind, ExprKind::Call(head) if !HEADS.contains(&head.name.text.as_str()));
        }
        ItemKind::Sink(sink) => sink.chains.iter().for_each(|chain| walk.chain(chain)),
        // A source that is only a name is refused; the stream it names is read all the same.
        ItemKind::Source(source) => walk.chain(&source.chain),
        _ => {}
    }
    walk.out
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
    fn chain(&mut self, chain: &Chain) {
        match &chain.head.kind {
            ExprKind::Name(name) => self.read(name, chain.head.span),
            ExprKind::Call(call) => self.call(call),
            _ => {}
        }
        self.links(&chain.links);
    }

    fn links(&mut self, links: &[Call]) {
        links.iter().for_each(|link| self.call(link));
    }

    /// The arguments that are streams, by the operator's declaration.
    fn call(&mut self, call: &Call) {
        let Some(operator) = table().get(&call.name.text, Role::Shuffle) else { return };
        let mut positional = operator.params.iter().filter(|p| !p.variadic);
        let variadic = operator.params.iter().find(|p| p.variadic);
        for arg in &call.args {
            let param = match &arg.label {
                Some(label) => operator.param(&label.text),
                None if variadic.is_some() => variadic,
                None => positional.next(),
            };
            if !matches!(param.map(|p| &p.kind), Some(Kind::Stream | Kind::Source)) {
                continue;
            }
            match &arg.value.kind {
                ExprKind::Name(name) => self.read(name, arg.value.span),
                ExprKind::Chain(chain) => self.chain(chain),
                ExprKind::Call(inner) => self.call(inner),
                _ => {}
            }
        }
    }

    fn read(&mut self, name: &str, span: Span) {
        let at = self.places.place(span);
        self.out.reads.push(Reference { name: name.to_string(), at });
    }
}
