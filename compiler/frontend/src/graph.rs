//! The graph of streams (D6): cycles, unknown streams, streams and sources that nothing reads, sources and sinks as the rules
//! of a job want them.
//!
//! It sees names and edges only; fields and types come later, and only where the graph is sound.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use dfc_grammar::ast::ItemKind;
use dfc_typeck::nearest::nearest;
use dfc_typeck::{ItemKey, Loc, LocalDiagnostic, Namespace};

use crate::bind::listed;
use crate::db::{Db, SourceFile};
use crate::items::{ItemNode, Program, program};
use crate::names;
use crate::operators::{Role, table};
use crate::places;
use crate::references::Reference;

/// What the graph says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Graph {
    /// What is wrong (places are counted).
    pub problems: Vec<LocalDiagnostic>,
    /// Streams that stand in a cycle.
    pub cyclic: BTreeSet<ItemKey>,
}

/// The graph of a program.
#[salsa::tracked]
pub fn graph(db: &dyn Db, root: SourceFile) -> Arc<Graph> {
    let program = program(db, root);
    let mut graph = Graph::default();
    let edges = edges(db, program, &mut graph);
    cycles(&edges, &mut graph);
    paths(db, program, &mut graph);
    if program.broken {
        // What is missing may stand in an item with a mistake.
    } else if !program.in_root(db, Namespace::Job).is_empty() {
        complete(db, program, &edges, &mut graph);
    } else if let Some(sink) = program.in_root(db, Namespace::Sink).first() {
        let at = places::name_of(sink.key(db));
        let problem = LocalDiagnostic::error("E0203", at, "this file writes to a sink but has no job", "written here")
            .note("a file without a job is a library: it is used by others and does nothing by itself")
            .help("add `job name {}` at its start");
        graph.problems.push(problem);
    }
    Arc::new(graph)
}

/// Whether a stream stands in a cycle.
pub fn is_cyclic(db: &dyn Db, root: SourceFile, item: ItemNode) -> bool {
    cyclic(db, root).contains(item.key(db))
}

/// The streams that stand in a cycle: one answer for all of them, which hardly ever changes. It depends on who reads whom, and
/// on nothing else that stands in the items.
#[salsa::tracked]
fn cyclic(db: &dyn Db, root: SourceFile) -> Arc<BTreeSet<ItemKey>> {
    let mut graph = Graph::default();
    cycles(&edges(db, program(db, root), &mut graph), &mut graph);
    Arc::new(graph.cyclic)
}

/// An edge: who reads whom, and where.
struct Edge {
    reader: ItemKey,
    read: ItemKey,
    at: Loc,
}

/// Places at which a message shows one unknown name.
const MAX_PLACES: usize = 3;

#[derive(Default)]
struct Edges {
    list: Vec<Edge>,
    /// For each name that is no stream, the stream that may be meant.
    meant: Vec<Option<String>>,
    /// The names that are no stream, each with its problem.
    unknown: BTreeMap<String, usize>,
    /// Streams that may be read where nobody knows what is.
    perhaps: BTreeSet<String>,
    misplaced: BTreeSet<ItemKey>,
}

fn edges(db: &dyn Db, program: &Program, graph: &mut Graph) -> Edges {
    let mut edges = Edges::default();
    for item in program.flows(db) {
        let key = item.key(db);
        let references = item.references(db);
        if references.misplaced {
            edges.misplaced.insert(key.clone());
        }
        edges.perhaps.extend(references.perhaps.iter().cloned());
        for reference in &references.reads {
            if let Some(read) = program.find(Namespace::Stream, &reference.name) {
                edges.list.push(Edge { reader: key.clone(), read: read.key(db).clone(), at: reference.at.clone() });
                continue;
            }
            if program.hidden.contains(&reference.name) || program.unknown_names {
                continue;
            }
            if let Some(first) = edges.unknown.get(&reference.name) {
                // One name, one mistake.
                let problem = &mut graph.problems[*first];
                if problem.related.len() < MAX_PLACES {
                    problem.related.push((reference.at.clone(), "and here".into()));
                }
                continue;
            }
            let near = nearest(&reference.name, program.names_of(Namespace::Stream)).map(str::to_string);
            edges.unknown.insert(reference.name.clone(), graph.problems.len());
            graph.problems.push(unknown(program, &reference.name, reference.at.clone(), near.as_deref()));
            edges.meant.push(near);
        }
    }
    edges
}

fn unknown(program: &Program, name: &str, at: Loc, near: Option<&str>) -> LocalDiagnostic {
    let problem =
        LocalDiagnostic::error("E0302", at.clone(), format!("there is no stream or source `{name}`"), "unknown stream");
    if let Some(near) = near {
        return problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, near);
    }
    if program.find(Namespace::Value, name).is_some() || program.find(Namespace::Record, name).is_some() {
        return problem.note(format!("`{name}` is declared, but not as a stream"));
    }
    if table().get(name, Role::Source).is_some() {
        return problem.help(format!("declare it: `source name = {name}(…)`, and start the chain with that name"));
    }
    let known: Vec<&str> = program.names_of(Namespace::Stream).collect();
    match known.len() {
        0 => problem.help("declare one with `source name = csv(\"…\", schema: …)`"),
        n if n <= 12 => problem.note(format!("the streams and sources here are {}", listed(&known))),
        _ => problem,
    }
}

/// Each cycle once, spelled out from its first stream in the text.
fn cycles(edges: &Edges, graph: &mut Graph) {
    let mut next: BTreeMap<&ItemKey, Vec<&Edge>> = BTreeMap::new();
    for edge in &edges.list {
        next.entry(&edge.reader).or_default().push(edge);
    }
    for component in components(&next) {
        let in_component: BTreeSet<&ItemKey> = component.iter().copied().collect();
        let first = edges.list.iter().map(|e| &e.reader).find(|key| in_component.contains(key));
        let Some(first) = first else { continue };
        let Some(path) = shortest(first, &next, &in_component) else { continue };
        graph.cyclic.extend(component.iter().map(|key| (*key).clone()));
        // `a` reads `b` reads `a`: rows flow the other way, but people read the text.
        let mut words: Vec<String> = path.iter().map(|edge| format!("`{}`", edge.reader.name)).collect();
        words.push(format!("`{}`", first.name));
        let message = match path.len() {
            1 => format!("`{}` reads itself", first.name),
            _ => format!("these streams read each other in a circle: {}", words.join(" → ")),
        };
        let mut problem = LocalDiagnostic::error("E0301", path[0].at.clone(), message, reads(path[0]));
        for edge in &path[1..] {
            problem = problem.related(edge.at.clone(), reads(edge));
        }
        let help = match path.len() {
            1 => "start it with a source or another stream: its rows must come from somewhere",
            _ => "take one of these steps out: rows flow from the sources to the sink, never back",
        };
        graph.problems.push(problem.help(help));
    }
}

fn reads(edge: &Edge) -> String {
    format!("`{}` reads `{}`", edge.reader.name, edge.read.name)
}

/// Groups of items that all reach each other (Tarjan's algorithm, without recursion), those with a cycle only.
fn components<'e>(next: &BTreeMap<&'e ItemKey, Vec<&'e Edge>>) -> Vec<Vec<&'e ItemKey>> {
    #[derive(Clone, Copy)]
    struct Mark {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let mut marks: BTreeMap<&ItemKey, Mark> = BTreeMap::new();
    let (mut stack, mut out, mut counter) = (Vec::new(), Vec::new(), 0);
    let none = Vec::new();
    for start in next.keys().copied() {
        if marks.contains_key(start) {
            continue;
        }
        let mut walk: Vec<(&ItemKey, usize)> = vec![(start, 0)];
        while let Some((node, at)) = walk.pop() {
            if at == 0 {
                marks.insert(node, Mark { index: counter, low: counter, on_stack: true });
                counter += 1;
                stack.push(node);
            }
            let targets = next.get(node).unwrap_or(&none);
            if let Some(edge) = targets.get(at) {
                walk.push((node, at + 1));
                match marks.get(&edge.read).copied() {
                    None => walk.push((&edge.read, 0)),
                    Some(mark) if mark.on_stack => {
                        if let Some(own) = marks.get_mut(node) {
                            own.low = own.low.min(mark.index);
                        }
                    }
                    Some(_) => {}
                }
                continue;
            }
            let Some(mark) = marks.get(node).copied() else { continue };
            if let Some((parent, _)) = walk.last()
                && let Some(parent) = marks.get_mut(parent)
            {
                parent.low = parent.low.min(mark.low);
            }
            if mark.low == mark.index {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    if let Some(mark) = marks.get_mut(member) {
                        mark.on_stack = false;
                    }
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                let own = next.get(node).is_some_and(|edges| edges.iter().any(|e| &e.read == node));
                if component.len() > 1 || own {
                    out.push(component);
                }
            }
        }
    }
    out
}

/// The shortest way from `first` back to itself inside a component.
fn shortest<'e>(
    first: &'e ItemKey,
    next: &BTreeMap<&'e ItemKey, Vec<&'e Edge>>,
    inside: &BTreeSet<&ItemKey>,
) -> Option<Vec<&'e Edge>> {
    let mut came: BTreeMap<&ItemKey, &'e Edge> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([first]);
    while let Some(node) = queue.pop_front() {
        for edge in next.get(node).into_iter().flatten().copied().filter(|e| inside.contains(&e.read)) {
            if came.contains_key(&edge.read) {
                continue;
            }
            came.insert(&edge.read, edge);
            if &edge.read == first {
                let mut path = vec![edge];
                while let Some(last) = path.last().filter(|e| &e.reader != first) {
                    path.push(came.get(&last.reader)?);
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(&edge.read);
        }
    }
    None
}

/// Streams that are looked at on the ways that lead to one operator: a longer way is nobody's mistake.
const MAX_WAY: usize = 1_000;

/// Where an operator demands that rows come to it by one path only, and those of a stream come by two.
fn paths(db: &dyn Db, program: &Program, graph: &mut Graph) {
    let mut said: HashSet<Loc> = HashSet::new();
    for item in program.flows(db).filter(|item| !graph.cyclic.contains(item.key(db))) {
        for branches in &item.references(db).unique {
            // By which branch each stream's rows came first.
            let mut came: BTreeMap<String, &Reference> = BTreeMap::new();
            for branch in branches {
                let way = unchanged(db, program, &graph.cyclic, &branch.name);
                let twice = way.iter().find_map(|name| Some((name, *came.get(name)?)));
                if let Some((name, first)) = twice
                    && said.insert(branch.at.clone())
                {
                    let words = |branch: &Reference, own: &str| match branch.name == *name {
                        true => own.to_string(),
                        false => format!("`{}` hands on all rows of `{name}`", branch.name),
                    };
                    let message = format!("the rows of `{name}` come in twice");
                    let problem = LocalDiagnostic::error("E0317", branch.at.clone(), message, words(branch, "again"))
                        .related(first.at.clone(), words(first, "the first time"))
                        .help("take one of both out; where every row is wanted twice, tell them apart: `|> derive(copy: 2)`");
                    graph.problems.push(problem);
                }
                for name in way {
                    came.entry(name).or_insert(branch);
                }
            }
        }
    }
}

/// A stream and those whose rows it hands on, all of them and as they are; the nearest first.
fn unchanged(db: &dyn Db, program: &Program, cyclic: &BTreeSet<ItemKey>, name: &str) -> Vec<String> {
    let mut way = vec![name.to_string()];
    let mut at = 0;
    while at < way.len().min(MAX_WAY) {
        let item = program.find(Namespace::Stream, &way[at]);
        at += 1;
        let Some(item) = item.filter(|item| !cyclic.contains(item.key(db))) else { continue };
        for same in &item.references(db).same {
            if !way.contains(&same.name) {
                way.push(same.name.clone());
            }
        }
    }
    way
}

/// The rules of a job: sources, one sink, nothing left over.
fn complete(db: &dyn Db, program: &Program, edges: &Edges, graph: &mut Graph) {
    let sinks = program.in_root(db, Namespace::Sink);
    let job = program.in_root(db, Namespace::Job);
    let Some(job) = job.first().map(|job| places::name_of(job.key(db))) else { return };
    if let [first, others @ ..] = sinks.as_slice() {
        for other in others {
            let message = "a job has one final sink, this is another";
            let problem = LocalDiagnostic::error("E0312", places::name_of(other.key(db)), message, "another sink")
                .related(places::name_of(first.key(db)), "the first sink")
                .help("write both into one block: `sink { a |> csv(\"…\")  b |> csv(\"…\") }`");
            graph.problems.push(problem);
        }
        if let ItemKind::Sink(sink) = first.kind(db).as_ref()
            && sink.chains.is_empty()
        {
            let problem =
                LocalDiagnostic::error("E0311", places::name_of(first.key(db)), "this sink writes nothing", "empty")
                    .help("name a stream and where it goes: `sink { by_day |> csv(\"out.csv\") }`");
            graph.problems.push(problem);
            return;
        }
    } else if edges.misplaced.is_empty() {
        let message = "this job has no sink: its results would go nowhere";
        let problem = LocalDiagnostic::error("E0311", job.clone(), message, "no sink in this job")
            .help("end it with `sink name |> csv(\"out.csv\")`, or `sink name |> print()`");
        graph.problems.push(problem);
        return;
    }
    let streams = program.items.iter().filter(|item| item.key(db).namespace == Namespace::Stream);
    let mut sources = streams.filter(|item| matches!(item.kind(db).as_ref(), ItemKind::Source(_)));
    if sources.next().is_none() && edges.meant.is_empty() && edges.misplaced.is_empty() && graph.cyclic.is_empty() {
        let problem = LocalDiagnostic::error(
            "E0313",
            job,
            "this job has no source: there is nothing to read",
            "no source in this job",
        )
        .help("declare one: `source orders = csv(\"orders.csv\", schema: Order)`");
        graph.problems.push(problem);
        return;
    }
    unread(db, program, edges, graph);
}

/// Streams and sources that nothing reads. Those that a misspelt name may have meant are left out: one mistake, one message.
fn unread(db: &dyn Db, program: &Program, edges: &Edges, graph: &mut Graph) {
    let read: BTreeSet<&ItemKey> = edges.list.iter().map(|e| &e.read).collect();
    let mut unread = Vec::new();
    for item in program.in_root(db, Namespace::Stream) {
        let key = item.key(db);
        let meant = edges.meant.iter().flatten().chain(&edges.perhaps).any(|name| *name == key.name);
        if !(read.contains(key) || meant || edges.misplaced.contains(key) || graph.cyclic.contains(key) || key.nth > 0)
        {
            unread.push(item);
        }
    }
    // One name without a stream and one stream without a reader belong together.
    if let ([item], [None]) = (unread.as_slice(), edges.meant.as_slice())
        && let Some(problem) = graph.problems.iter_mut().find(|problem| problem.code == "E0302")
    {
        let name = &item.key(db).name;
        problem.notes.clear();
        problem.help = Some(format!("did you mean `{name}`? nothing else reads it"));
        return;
    }
    for item in unread {
        let is_source = matches!(item.kind(db).as_ref(), ItemKind::Source(_));
        if is_source && !graph.cyclic.is_empty() {
            // Rows of a source were to come into the circle, probably.
            continue;
        }
        let key = item.key(db);
        let at = places::name_of(key);
        let name = &key.name;
        graph.problems.push(match item.kind(db).as_ref() {
            ItemKind::Source(_) => {
                LocalDiagnostic::error("E0304", at, format!("nothing reads the source `{name}`"), "stands alone")
                    .help(format!("start a stream with it (`stream x = {name} |> …`), or take it out"))
            }
            _ => LocalDiagnostic::error("E0303", at, format!("nothing reads the stream `{name}`"), "a dead end")
                .help(format!("lead it to the sink (`sink {{ {name} |> csv(\"…\") }}`), or take it out")),
        });
    }
}

/// The message for an operator that does not exist: one of a later version, another tool's name, a near miss.
pub fn unknown_operator(name: &str, role: Role, at: Loc) -> LocalDiagnostic {
    if let Some(instead) = names::later(name) {
        return LocalDiagnostic::error(
            "E0220",
            at,
            format!("`{name}` is not available in this version"),
            "not available yet",
        )
        .help(instead);
    }
    let word = match role {
        Role::Shuffle => "operator",
        other => other.word(),
    };
    let problem =
        LocalDiagnostic::error("E0401", at.clone(), format!("there is no {word} `{name}`"), format!("unknown {word}"));
    if let Some(write) = names::operator(name) {
        return problem.help(format!("that is {write} here"));
    }
    match nearest(name, table().names(role)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, near),
        None => problem.note(format!("there are {}", listed(&table().names(role)))),
    }
}
