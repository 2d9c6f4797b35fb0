//! The graph of streams (D6): streams and sources that nothing reads, rows that come by two ways, sources and sinks as the rules
//! of a job want them; and what [`crate::edges`] and [`crate::cycles`] found.
//!
//! It sees names and edges only; fields and types come later, and only where the graph is sound.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use dfc_grammar::ast::ItemKind;
use dfc_typeck::nearest::nearest;
use dfc_typeck::{Loc, LocalDiagnostic, Namespace};

use crate::bind::listed;
use crate::cycles::{Cycles, cycles};
use crate::db::{Db, SourceFile};
use crate::edges::{Edges, Point, edges};
use crate::items::{Program, program};
use crate::names;
use crate::operators::{Role, table};
use crate::places;
use crate::references::Reference;

/// What is wrong with the graph of a program (places are counted).
#[salsa::tracked]
pub fn graph(db: &dyn Db, root: SourceFile) -> Arc<Vec<LocalDiagnostic>> {
    let (program, edges, cycles) = (program(db, root), edges(db, root), cycles(db, root));
    let mut graph = Graph { edges, cycles, problems: edges.problems.clone() };
    graph.problems.extend(cycles.problems.iter().cloned());
    graph.paths(db, program);
    if program.broken {
        // What is missing may stand in an item with a mistake.
    } else if !program.in_root(db, Namespace::Job).is_empty() {
        graph.complete(db, program);
    } else if let Some(sink) = program.in_root(db, Namespace::Sink).first() {
        let at = places::name_of(sink.key(db));
        let problem = LocalDiagnostic::error("E0203", at, "this file writes to a sink but has no job", "written here")
            .note("a file without a job is a library: it is used by others and does nothing by itself")
            .help("add `job name {}` at its start");
        graph.problems.push(problem);
    }
    Arc::new(graph.problems)
}

struct Graph<'a> {
    edges: &'a Edges,
    cycles: &'a Cycles,
    problems: Vec<LocalDiagnostic>,
}

/// Streams that are looked at on the ways that lead to one operator: a longer way is nobody's mistake.
const MAX_WAY: usize = 1_000;

impl Graph<'_> {
    /// Where an operator demands that rows come to it by one path only, and those of a stream come by two.
    fn paths(&mut self, db: &dyn Db, program: &Program) {
        let mut said: HashSet<&Loc> = HashSet::new();
        for (item, references) in self.edges.flows.iter().filter(|(_, references)| !references.unique.is_empty()) {
            if self.cycles.holds(*item) {
                continue;
            }
            for branches in &references.unique {
                // By which branch each stream's rows came first.
                let mut came: BTreeMap<Point, &Reference> = BTreeMap::new();
                for branch in branches {
                    let way = self.unchanged(program, &branch.name);
                    let twice = way.iter().find_map(|point| Some((*point, *came.get(point)?)));
                    if let Some((point, first)) = twice
                        && said.insert(&branch.at)
                    {
                        let name = self.edges.name(db, point);
                        let words = |branch: &Reference, own: &str| match branch.name == *name {
                            true => own.to_string(),
                            false => format!("`{}` hands on all rows of `{name}`", branch.name),
                        };
                        let message = format!("the rows of `{name}` come in twice");
                        let problem =
                            LocalDiagnostic::error("E0317", branch.at.clone(), message, words(branch, "again"))
                                .related(first.at.clone(), words(first, "the first time"))
                                .help("take one of both out; where every row is wanted twice, tell them apart: `|> derive(copy: 2)`");
                        self.problems.push(problem);
                    }
                    for point in way {
                        came.entry(point).or_insert(branch);
                    }
                }
            }
        }
    }

    /// A stream and those whose rows it hands on, all of them and as they are; the nearest first.
    fn unchanged(&self, program: &Program, name: &str) -> Vec<Point> {
        let point = |name: &str| {
            let item = program.find(Namespace::Stream, name).filter(|item| !self.cycles.holds(*item))?;
            self.edges.point(item)
        };
        let mut way: Vec<Point> = point(name).into_iter().collect();
        let mut at = 0;
        while at < way.len().min(MAX_WAY) {
            for same in &self.edges.flows[way[at]].1.same {
                if let Some(point) = point(&same.name).filter(|point| !way.contains(point)) {
                    way.push(point);
                }
            }
            at += 1;
        }
        way
    }

    /// Whether a stream begins or ends as none may: its own check says so.
    fn misplaced(&self) -> bool {
        self.edges.flows.iter().any(|(_, references)| references.misplaced)
    }

    /// The rules of a job: sources, one sink, nothing left over.
    fn complete(&mut self, db: &dyn Db, program: &Program) {
        let sinks = program.in_root(db, Namespace::Sink);
        let job = program.in_root(db, Namespace::Job);
        let Some(job) = job.first().map(|job| places::name_of(job.key(db))) else { return };
        if let [first, others @ ..] = sinks.as_slice() {
            for other in others {
                let message = "a job has one final sink, this is another";
                let problem = LocalDiagnostic::error("E0312", places::name_of(other.key(db)), message, "another sink")
                    .related(places::name_of(first.key(db)), "the first sink")
                    .help("write both into one block: `sink { a |> csv(\"…\")  b |> csv(\"…\") }`");
                self.problems.push(problem);
            }
            if let ItemKind::Sink(sink) = first.kind(db).as_ref()
                && sink.chains.is_empty()
            {
                let problem = LocalDiagnostic::error(
                    "E0311",
                    places::name_of(first.key(db)),
                    "this sink writes nothing",
                    "empty",
                )
                .help("name a stream and where it goes: `sink { by_day |> csv(\"out.csv\") }`");
                self.problems.push(problem);
                return;
            }
        } else if !self.misplaced() {
            let message = "this job has no sink: its results would go nowhere";
            let problem = LocalDiagnostic::error("E0311", job.clone(), message, "no sink in this job")
                .help("end it with `sink name |> csv(\"out.csv\")`, or `sink name |> print()`");
            self.problems.push(problem);
            return;
        }
        let mut streams = program.of(db, Namespace::Stream);
        let no_source = streams.all(|item| !matches!(item.kind(db).as_ref(), ItemKind::Source(_)));
        if no_source && self.edges.meant.is_empty() && !self.misplaced() && self.cycles.is_empty() {
            let problem = LocalDiagnostic::error(
                "E0313",
                job,
                "this job has no source: there is nothing to read",
                "no source in this job",
            )
            .help("declare one: `source orders = csv(\"orders.csv\", schema: Order)`");
            self.problems.push(problem);
            return;
        }
        self.unread(db, program);
    }

    /// Streams and sources that nothing reads. Those that a misspelt name may have meant are left out: one mistake, one message.
    fn unread(&mut self, db: &dyn Db, program: &Program) {
        let edges = self.edges;
        let mut unread = Vec::new();
        for item in program.in_root(db, Namespace::Stream) {
            let Some(point) = edges.point(item).filter(|point| edges.readers_of(*point).is_empty()) else { continue };
            let key = item.key(db);
            let meant = edges
                .meant
                .iter()
                .filter_map(|(_, near)| near.as_ref())
                .chain(&edges.perhaps)
                .any(|name| *name == key.name);
            if !(meant || edges.flows[point].1.misplaced || key.nth > 0) {
                unread.push(item);
            }
        }
        // One name without a stream and one stream without a reader belong together.
        if let ([item], [(unknown, near)]) = (unread.as_slice(), edges.meant.as_slice())
            && let name = &item.key(db).name
            && (near.is_none() || nearest(unknown, [name.as_str()]).is_some())
            && let Some(problem) = self.problems.iter_mut().find(|problem| problem.code == "E0302")
        {
            problem.notes.clear();
            problem.help = Some(match near {
                Some(near) => format!("did you mean `{near}`, or `{name}`, which nothing reads?"),
                None => format!("did you mean `{name}`? nothing else reads it"),
            });
            return;
        }
        // And so do one circle and one without a reader: its rows were to come into the circle, probably.
        if let [item] = unread.as_slice()
            && let [_] = self.cycles.problems.as_slice()
            && let Some(problem) = self.problems.iter_mut().find(|problem| problem.code == "E0301")
        {
            let name = &item.key(db).name;
            problem.help =
                Some(format!("start it with `{name}`, which nothing reads: its rows must come from somewhere"));
            return;
        }
        for item in unread {
            let is_source = matches!(item.kind(db).as_ref(), ItemKind::Source(_));
            if is_source && !self.cycles.is_empty() {
                // Rows of a source were to come into the circle, probably.
                continue;
            }
            let key = item.key(db);
            let at = places::name_of(key);
            let name = &key.name;
            self.problems.push(match item.kind(db).as_ref() {
                ItemKind::Source(_) => {
                    LocalDiagnostic::error("E0304", at, format!("nothing reads the source `{name}`"), "stands alone")
                        .help(format!("start a stream with it (`stream x = {name} |> …`), or take it out"))
                }
                _ => LocalDiagnostic::error("E0303", at, format!("nothing reads the stream `{name}`"), "a dead end")
                    .help(format!("lead it to the sink (`sink {{ {name} |> csv(\"…\") }}`), or take it out")),
            });
        }
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
