//! Chains: what they may start with, which operators may stand where (D6).

use dfc_grammar::ast::{Arg, Call, Chain, Expr, ExprKind, Source};
use dfc_typeck::{LocalDiagnostic, Namespace};

use super::{Flow, ItemContext};
use crate::bind::bind;
use crate::graph::unknown_operator;
use crate::items::{find, program};
use crate::names;
use crate::operators::{Role, table};

/// Where a chain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A stream, or the other side of a join.
    Stream,
    /// The table of a lookup: here a source may stand inline.
    Table,
}

impl ItemContext<'_> {
    /// `source name = connector(…)`
    pub(super) fn source_item(&mut self, source: &Source) -> Flow {
        let name = source.name.text.clone();
        let flow = match &source.chain.head.kind {
            ExprKind::Call(call) => self.source(call, name.clone()),
            ExprKind::Name(stream) => {
                // A name that is no stream was refused by the graph.
                if find(self.db, self.root, Namespace::Stream, stream).is_some() {
                    let at = self.loc(source.chain.head.span);
                    let message = format!("a source reads from outside, `{stream}` is a stream");
                    let problem = LocalDiagnostic::error("E0308", at, message, "not a connector")
                        .help(format!("write `stream {name} = {stream} |> …`"));
                    self.error(problem);
                }
                Flow::unknown()
            }
            _ => Flow::unknown(),
        };
        let flow = if self.hides(&flow) { self.guessed_head(&source.chain.head) } else { flow };
        if let Some(link) = source.chain.links.first() {
            let problem = LocalDiagnostic::error(
                "E0308",
                self.loc(link.name.span),
                format!("a source only reads: `{}` belongs in a stream", link.name.text),
                "not in a source",
            );
            self.error(problem.help(format!("write `stream x = {name} |> {}(…)`", link.name.text)));
        }
        flow
    }

    /// The chain of a stream.
    pub(super) fn stream_chain(&mut self, chain: &Chain) -> Flow {
        self.chain(chain, Position::Stream)
    }

    pub(super) fn chain(&mut self, chain: &Chain, position: Position) -> Flow {
        let flow = self.head(&chain.head, position);
        self.links(flow, &chain.links)
    }

    /// A stream in an argument's place.
    pub(super) fn stream_arg(&mut self, arg: &Arg, position: Position) -> Flow {
        match &arg.value.kind {
            ExprKind::Chain(chain) => self.chain(chain, position),
            _ => self.head(&arg.value, position),
        }
    }

    /// What a chain starts with.
    fn head(&mut self, head: &Expr, position: Position) -> Flow {
        let flow = match &head.kind {
            ExprKind::Name(name) => self.stream(name),
            ExprKind::Call(call) => self.head_call(call, position),
            ExprKind::Paren(inner) => self.head(inner, position),
            ExprKind::Error => Flow::unknown(),
            _ => {
                let problem =
                    LocalDiagnostic::error("E0613", self.loc(head.span), "a stream is expected here", "not a stream")
                        .help("write a stream's name, or a chain `name |> filter(…)`");
                self.error(problem);
                Flow::unknown()
            }
        };
        let flow = if self.hides(&flow) { self.guessed_head(head) } else { flow };
        self.note(head.span, &flow);
        flow
    }

    fn head_call(&mut self, call: &Call, position: Position) -> Flow {
        let name = call.name.text.as_str();
        if name == "union" {
            return self.union(call);
        }
        if table().get(name, Role::Source).is_some() {
            if position == Position::Table {
                // Named apart from the sink of the same connector that may end the chain.
                let node = format!("{}.lookup.{name}", self.prefix());
                return self.source(call, node);
            }
            let problem = LocalDiagnostic::error(
                "E0307",
                self.loc(call.name.span),
                format!("the source `{name}` can't stand inside a chain"),
                "a source of its own",
            );
            self.error(
                problem.help(format!("declare it, `source name = {name}(…)`, and start the chain with its name")),
            );
            return Flow::unknown();
        }
        let at = self.loc(call.name.span);
        if table().get(name, Role::Shuffle).is_some() || table().get(name, Role::Sink).is_some() {
            let problem = LocalDiagnostic::error(
                "E0314",
                at,
                format!("a chain can't start with `{name}`"),
                "needs rows to work on",
            )
            .help(format!("start with a stream: `orders |> {name}(…)`"));
            self.error(problem);
        } else {
            let problem = unknown_operator(name, Role::Source, at);
            self.error(problem);
        }
        Flow::unknown()
    }

    /// The links of a stream, in order.
    pub(super) fn links(&mut self, flow: Flow, links: &[Call]) -> Flow {
        self.links_before(flow, links, 0)
    }

    /// The links of a chain that goes on with `more` others.
    fn links_before(&mut self, mut flow: Flow, links: &[Call], more: usize) -> Flow {
        for (position, link) in links.iter().enumerate() {
            let last = position + 1 == links.len() + more;
            // What an editor shows behind an operator that can't be told.
            let shown = self.guesses().then(|| flow.columns.clone()).flatten();
            flow = match table().get(&link.name.text, Role::Shuffle) {
                Some(operator) => {
                    let (before, gone, nature) = (flow.columns.clone(), flow.gone.clone(), flow.nature.clone());
                    self.gone = gone.clone();
                    self.must_end(&nature, operator, link);
                    let mut next = self.apply(flow, link);
                    let right = std::mem::take(&mut next.gone);
                    next.gone = self.gone_after(&gone, before.as_deref(), next.columns.as_deref(), link, &right);
                    next.nature = nature.after(operator, link, &self.places);
                    next
                }
                None if self.own_operator(&link.name.text).is_some() => {
                    self.gone = flow.gone.clone();
                    self.own(flow, link)
                }
                None => {
                    self.misplaced(link, last);
                    Flow::unknown()
                }
            };
            flow.columns = flow.columns.or(shown);
            self.note(link.span, &flow);
        }
        flow
    }

    /// An operator that is no shuffle, in a stream.
    fn misplaced(&mut self, link: &Call, last: bool) {
        let name = link.name.text.as_str();
        if program(self.db, self.root).hidden.contains(name) {
            // Its declaration has a syntax error.
            return;
        }
        let at = self.loc(link.name.span);
        let (source, sink) = (table().get(name, Role::Source), table().get(name, Role::Sink));
        let labelled = |label: &str| link.args.iter().any(|a| a.label.as_ref().is_some_and(|l| l.text == label));
        // In a sink's own chain whoever writes a connector means to write to it.
        let may_read = self.item.namespace != Namespace::Sink && (labelled("schema") || (!last && !labelled("mode")));
        let reads = source.is_some() && (sink.is_none() || may_read);
        let problem = if reads {
            LocalDiagnostic::error(
                "E0305",
                at,
                format!("the source `{name}` stands in the middle of a chain"),
                "a source only starts a chain",
            )
            .note("a job's sources are its entry points; rows can't flow into one")
            .help(format!("to add fields of another table write `lookup({name}(…), on: …)`"))
        } else if sink.is_some() && last {
            let stream = self.item.name.clone();
            LocalDiagnostic::error("E0310", at, format!("a stream can't end in the sink `{name}`"), "a sink of its own")
                .help(format!("end the stream before, and write `sink {stream} |> {name}(…)`"))
        } else if sink.is_some() {
            LocalDiagnostic::error("E0306", at, format!("the sink `{name}` stands in the middle of a chain"), "a sink only ends a chain")
                .help("to write a stream twice, name it and list it in the sink block: `sink { a |> csv(\"…\")  b |> csv(\"…\") }`")
        } else {
            unknown_operator(name, Role::Shuffle, at)
        };
        self.error(problem);
    }

    /// `chain |> connector(…)`: the connector's name and the fields it is given.
    pub(super) fn sink_chain(&mut self, chain: &Chain) -> (String, Option<dfc_ir::Schema>) {
        let Some((last, before)) = chain.links.split_last() else {
            let problem = LocalDiagnostic::error(
                "E0309",
                self.loc(chain.span),
                "this sink doesn't say where to write",
                "goes nowhere",
            )
            .help("add a connector: `|> csv(\"out.csv\")`, `|> print()`");
            self.error(problem);
            return (String::new(), None);
        };
        let flow = self.head(&chain.head, Position::Stream);
        let flow = self.links_before(flow, before, 1);
        let name = last.name.text.clone();
        if table().get(&name, Role::Sink).is_some() {
            let schema = self.sink(flow, last);
            return (name, schema);
        }
        let at = self.loc(last.name.span);
        let problem = if table().get(&name, Role::Shuffle).is_some() {
            LocalDiagnostic::error(
                "E0309",
                at,
                format!("a sink must end in a connector, `{name}` is none"),
                "the rows go nowhere from here",
            )
            .help("add where to write: `|> csv(\"out.csv\")`, `|> print()`")
        } else if table().get(&name, Role::Source).is_some() {
            LocalDiagnostic::error(
                "E0305",
                at,
                format!("`{name}` only reads, a sink must end in a connector that writes"),
                "a source",
            )
            .note(format!("there are {}", crate::bind::listed(&table().names(Role::Sink))))
        } else {
            unknown_operator(&name, Role::Sink, at)
        };
        self.error(problem);
        (name, None)
    }

    /// One shuffle.
    fn apply(&mut self, flow: Flow, call: &Call) -> Flow {
        let Some(operator) = table().get(&call.name.text, Role::Shuffle) else { return Flow::unknown() };
        if operator.name == "union" {
            let problem = LocalDiagnostic::error(
                "E0314",
                self.loc(call.name.span),
                "`union` stands at the start of a chain",
                "not a link",
            )
            .help("write `union(a, b) |> …`");
            self.error(problem);
            return Flow::unknown();
        }
        let bound = bind(operator, call, &self.item.clone(), &mut self.out);
        match operator.name.as_str() {
            "filter" => self.filter(flow, &bound),
            "require" => self.require(flow, &bound),
            "derive" => self.derive(flow, &bound),
            "select" => self.select(flow, &bound),
            "drop" => self.drop_fields(flow, &bound),
            "rename" => self.rename(flow, &bound),
            "cast" => self.cast(flow, &bound),
            "take" => self.take(flow, &bound),
            "aggregate" => self.aggregate(flow, &bound),
            "distinct" => self.distinct(flow, &bound),
            "sort" => self.sort(flow, &bound),
            "join" => self.join(flow, &bound),
            "lookup" => self.lookup(flow, &bound),
            other => {
                // A declaration without a rule: the declarations and this table are tested against each other.
                let at = self.loc(call.name.span);
                let message = format!("`{other}` is not available in this version");
                self.error(
                    LocalDiagnostic::error("E0220", at, message, "not available yet")
                        .help(names::later(other).unwrap_or("leave it out")),
                );
                Flow::unknown()
            }
        }
    }
}
