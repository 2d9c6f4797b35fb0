//! Who reads whom in a program: the sources, streams and sinks as points, each name that is read as an edge between two.
//!
//! Points are numbered, so that walks over the graph look nothing up by name. It may not know what is wrong with a graph, but for
//! names that are no stream.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dfc_typeck::nearest::nearest;
use dfc_typeck::{ItemKey, Loc, LocalDiagnostic, Namespace};

use crate::bind::listed;
use crate::db::{Db, SourceFile};
use crate::items::{ItemNode, Program, program};
use crate::operators::{Role, table};
use crate::references::References;

/// A point: its position among [`Edges::flows`].
pub type Point = usize;

/// An edge: who reads whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Who reads.
    pub reader: Point,
    /// Who is read.
    pub read: Point,
    /// Which of the reader's references it is.
    reference: usize,
}

/// Who reads whom in a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edges {
    /// The sources, streams and sinks: the root file's first, each file's in source order.
    pub flows: Vec<(ItemNode, Arc<References>)>,
    /// The edges, by reader and then in source order.
    pub list: Vec<Edge>,
    /// Each name that is no stream, and the stream that may be meant.
    pub meant: Vec<(String, Option<String>)>,
    /// Streams that may be read where nobody knows what is.
    pub perhaps: BTreeSet<String>,
    /// Names that are no stream (places are counted).
    pub problems: Vec<LocalDiagnostic>,
    /// The points by their items.
    points: HashMap<ItemNode, Point>,
    /// Who is read by whom, sorted.
    readers: Vec<(Point, Point)>,
}

impl Edges {
    /// The point of a source, stream or sink.
    pub fn point(&self, item: ItemNode) -> Option<Point> {
        self.points.get(&item).copied()
    }

    /// The edges of a reader.
    pub fn of(&self, reader: Point) -> &[Edge] {
        let start = self.list.partition_point(|edge| edge.reader < reader);
        let count = self.list[start..].partition_point(|edge| edge.reader == reader);
        &self.list[start..start + count]
    }

    /// The name of a point's item.
    pub fn name<'db>(&self, db: &'db dyn Db, point: Point) -> &'db str {
        &self.key(db, point).name
    }

    /// The key of a point's item.
    pub fn key<'db>(&self, db: &'db dyn Db, point: Point) -> &'db ItemKey {
        self.flows[point].0.key(db)
    }

    /// Where an edge's name is written.
    pub fn at(&self, edge: &Edge) -> &Loc {
        &self.flows[edge.reader].1.reads[edge.reference].at
    }

    /// What reads a point, as pairs of it and its reader.
    pub fn readers_of(&self, point: Point) -> &[(Point, Point)] {
        let start = self.readers.partition_point(|(read, _)| *read < point);
        let count = self.readers[start..].partition_point(|(read, _)| *read == point);
        &self.readers[start..start + count]
    }
}

/// Who reads whom in a program.
#[salsa::tracked]
pub fn edges(db: &dyn Db, root: SourceFile) -> Arc<Edges> {
    let program = program(db, root);
    let flows: Vec<(ItemNode, Arc<References>)> =
        program.files.iter().flat_map(|file| file.flows(db).iter().cloned()).collect();
    let points: HashMap<ItemNode, Point> = flows.iter().enumerate().map(|(point, (item, _))| (*item, point)).collect();
    let names: HashMap<&str, ItemNode> =
        program.declared(Namespace::Stream).map(|(slot, item)| (slot.name.as_str(), item)).collect();
    let mut edges = Edges::default();
    let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
    for (reader, (_, references)) in flows.iter().enumerate() {
        edges.perhaps.extend(references.perhaps.iter().cloned());
        for (position, reference) in references.reads.iter().enumerate() {
            if let Some(read) = names.get(reference.name.as_str()).and_then(|read| points.get(read)) {
                edges.list.push(Edge { reader, read: *read, reference: position });
                continue;
            }
            if program.hidden.contains(&reference.name) || program.unknown_names {
                continue;
            }
            if let Some(first) = unknown.get(reference.name.as_str()) {
                // One name, one mistake.
                let problem = &mut edges.problems[*first];
                if problem.related.len() < MAX_PLACES {
                    problem.related.push((reference.at.clone(), "and here".into()));
                }
                continue;
            }
            let near = nearest(&reference.name, program.names_of(Namespace::Stream)).map(str::to_string);
            unknown.insert(&reference.name, edges.problems.len());
            edges.problems.push(no_stream(program, &reference.name, reference.at.clone(), near.as_deref()));
            edges.meant.push((reference.name.clone(), near));
        }
    }
    edges.readers = edges.list.iter().map(|edge| (edge.read, edge.reader)).collect();
    edges.readers.sort_unstable();
    edges.readers.dedup();
    Arc::new(Edges { flows, points, ..edges })
}

/// The sources, streams and sinks that read one. Whoever asks so depends on these, and not on the whole graph.
#[salsa::tracked]
pub fn readers(db: &dyn Db, root: SourceFile, item: ItemNode) -> Vec<ItemNode> {
    let edges = edges(db, root);
    let Some(point) = edges.point(item) else { return Vec::new() };
    edges.readers_of(point).iter().map(|(_, reader)| edges.flows[*reader].0).collect()
}

/// Places at which a message shows one unknown name.
const MAX_PLACES: usize = 3;

fn no_stream(program: &Program, name: &str, at: Loc, near: Option<&str>) -> LocalDiagnostic {
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
