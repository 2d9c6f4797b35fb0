//! Streams that read each other in a circle (D6).
//!
//! It sees who reads whom, and nothing else.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use dfc_typeck::LocalDiagnostic;

use crate::db::{Db, SourceFile};
use crate::edges::{Edge, Edges, Point, edges};
use crate::items::ItemNode;

/// The circles of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cycles {
    items: HashSet<ItemNode>,
    /// Each circle once (places are counted).
    pub problems: Vec<LocalDiagnostic>,
}

impl Cycles {
    /// Whether an item stands in a circle.
    pub fn holds(&self, item: ItemNode) -> bool {
        self.items.contains(&item)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Whether a stream stands in a circle.
pub fn is_cyclic(db: &dyn Db, root: SourceFile, item: ItemNode) -> bool {
    cycles(db, root).holds(item)
}

/// The circles of a program: one answer for all of its streams, which hardly ever changes. It depends on who reads whom, and on
/// nothing else that stands in the items.
#[salsa::tracked]
pub fn cycles(db: &dyn Db, root: SourceFile) -> Arc<Cycles> {
    let edges = edges(db, root);
    let mut cycles = Cycles::default();
    for component in components(edges) {
        let inside: HashSet<Point> = component.iter().copied().collect();
        // Spelled out from the first stream in the text.
        let Some(path) = component.iter().min().and_then(|first| shortest(*first, edges, &inside)) else { continue };
        cycles.items.extend(component.iter().map(|point| edges.flows[*point].0));
        cycles.problems.push(circle(db, edges, &path));
    }
    Arc::new(cycles)
}

fn circle(db: &dyn Db, edges: &Edges, path: &[&Edge]) -> LocalDiagnostic {
    let name = |point: Point| edges.name(db, point);
    let reads = |edge: &Edge| format!("`{}` reads `{}`", name(edge.reader), name(edge.read));
    let first = path[0];
    // `a` reads `b` reads `a`: rows flow the other way, but people read the text.
    let mut words: Vec<String> = path.iter().map(|edge| format!("`{}`", name(edge.reader))).collect();
    words.push(format!("`{}`", name(first.reader)));
    let message = match path.len() {
        1 => format!("`{}` reads itself", name(first.reader)),
        _ => format!("these streams read each other in a circle: {}", words.join(" → ")),
    };
    let mut problem = LocalDiagnostic::error("E0301", edges.at(first).clone(), message, reads(first));
    for edge in &path[1..] {
        problem = problem.related(edges.at(edge).clone(), reads(edge));
    }
    problem.help(match path.len() {
        1 => "start it with a source or another stream: its rows must come from somewhere",
        _ => "take one of these steps out: rows flow from the sources to the sink, never back",
    })
}

/// Groups of points that all reach each other (Tarjan's algorithm, without recursion), those with a circle only.
fn components(edges: &Edges) -> Vec<Vec<Point>> {
    #[derive(Clone, Copy)]
    struct Mark {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let mut marks: Vec<Option<Mark>> = vec![None; edges.flows.len()];
    let (mut stack, mut out, mut counter) = (Vec::new(), Vec::new(), 0);
    for start in 0..edges.flows.len() {
        if marks[start].is_some() {
            continue;
        }
        let mut walk: Vec<(Point, usize)> = vec![(start, 0)];
        while let Some((point, at)) = walk.pop() {
            let own = *marks[point].get_or_insert_with(|| {
                stack.push(point);
                counter += 1;
                Mark { index: counter, low: counter, on_stack: true }
            });
            if let Some(edge) = edges.of(point).get(at) {
                walk.push((point, at + 1));
                match marks[edge.read] {
                    None => walk.push((edge.read, 0)),
                    Some(mark) if mark.on_stack => {
                        marks[point] = Some(Mark { low: own.low.min(mark.index), ..own });
                    }
                    Some(_) => {}
                }
                continue;
            }
            if let Some((parent, _)) = walk.last()
                && let Some(parent) = &mut marks[*parent]
            {
                parent.low = parent.low.min(own.low);
            }
            if own.low == own.index {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    if let Some(mark) = &mut marks[member] {
                        mark.on_stack = false;
                    }
                    component.push(member);
                    if member == point {
                        break;
                    }
                }
                if component.len() > 1 || edges.of(point).iter().any(|edge| edge.read == point) {
                    out.push(component);
                }
            }
        }
    }
    out
}

/// The shortest way from `first` back to itself inside a component.
fn shortest<'e>(first: Point, edges: &'e Edges, inside: &HashSet<Point>) -> Option<Vec<&'e Edge>> {
    let mut came: BTreeMap<Point, &'e Edge> = BTreeMap::new();
    let mut queue = VecDeque::from([first]);
    while let Some(point) = queue.pop_front() {
        for edge in edges.of(point).iter().filter(|edge| inside.contains(&edge.read)) {
            if came.contains_key(&edge.read) {
                continue;
            }
            came.insert(edge.read, edge);
            if edge.read == first {
                let mut path = vec![edge];
                while let Some(last) = path.last().filter(|edge| edge.reader != first) {
                    path.push(came.get(&last.reader)?);
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(edge.read);
        }
    }
    None
}
