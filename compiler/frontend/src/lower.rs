//! From checked items to one plan: nodes in order, names distinct, places numbered.
//!
//! It runs only on a program without errors, so every part is there; a part that is missing nevertheless gives no plan.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dfc_diagnostics::render::FileText;
use dfc_grammar::ast::Span;
use dfc_ir::plan::{Job, Join, SiteInfo};
use dfc_ir::{Expr, Node, NodeId, Op, Plan, Site};
use dfc_typeck::{ItemKey, Loc, Namespace};

use crate::check::{Input, ItemCheck, checks, item_check};
use crate::db::{Db, SourceFile};
use crate::guarantees::known_ends;
use crate::items::{Program, program};
use crate::joblints::rerun;
use crate::report::Places;
use crate::settings::job;

/// The longest text of a site, in characters.
const SITE_TEXT: usize = 80;

/// The plan of a sound program; `None` if a part of it is missing.
pub fn plan(db: &dyn Db, root: SourceFile, files: &[FileText]) -> Option<Plan> {
    let program = program(db, root);
    let settings = job(db, root).as_ref()?;
    let rerun = Some(rerun(settings, &known_ends(db, root).collect::<Vec<_>>()));
    let mut lowering = Lowering {
        db,
        root,
        program,
        places: Places::new(db, program),
        files,
        plan: Plan { job: Job { rerun, ..settings.job.clone() }, nodes: Vec::new(), sites: vec![SiteInfo::default()] },
        sites: HashMap::new(),
        streams: BTreeMap::new(),
        names: HashSet::new(),
    };
    for item in program.in_root(db, Namespace::Sink) {
        // All streams stand before the first target.
        checks(db, root, item).try_for_each(|check| lowering.upstream(check))?;
        checks(db, root, item).try_for_each(|check| lowering.item(check).map(drop))?;
    }
    Some(lowering.plan)
}

struct Lowering<'a> {
    db: &'a dyn Db,
    root: SourceFile,
    program: &'a Program,
    places: Places<'a, 'a>,
    files: &'a [FileText],
    plan: Plan,
    sites: HashMap<Loc, Site>,
    /// Where the rows of a source or stream come out.
    streams: BTreeMap<ItemKey, NodeId>,
    names: HashSet<String>,
}

impl Lowering<'_> {
    /// Adds an item's nodes after those of the streams it reads; where its rows come out, if anywhere.
    fn item(&mut self, check: &Arc<ItemCheck>) -> Option<Option<NodeId>> {
        self.upstream(check)?;
        let mut ids: Vec<NodeId> = Vec::with_capacity(check.nodes.len());
        for local in &check.nodes {
            let inputs: Option<Vec<NodeId>> = local.inputs.iter().map(|input| self.input(input, &ids)).collect();
            let mut op = local.op.clone();
            let site = self.site(local.site, check);
            if let Op::Require { condition, message } = &mut op
                && message.is_empty()
            {
                let at = self.site(condition.site, check);
                *message = format!("`{}` does not hold", self.plan.sites[at.0 as usize].text);
            }
            expressions(&mut op, &mut |e| self.renumber(e, check));
            if let Op::Aggregate { aggregates, .. } = &mut op {
                aggregates.iter_mut().for_each(|aggregate| aggregate.site = self.site(aggregate.site, check));
            }
            let name = self.distinct(&local.name);
            self.plan.nodes.push(Node { name, op, inputs: inputs?, schema: local.schema.clone(), site });
            ids.push(NodeId(self.plan.nodes.len() - 1));
        }
        Some(check.output.as_ref().and_then(|output| self.input(output, &ids)))
    }

    /// Adds the streams that an item reads. Depth is that of the graph, so it walks with a stack of its own.
    fn upstream(&mut self, check: &Arc<ItemCheck>) -> Option<()> {
        let mut waiting: Vec<(ItemKey, bool)> = reads(check).rev().map(|key| (key, false)).collect();
        while let Some((key, entered)) = waiting.pop() {
            if self.streams.contains_key(&key) {
                continue;
            }
            let item = self.program.find(Namespace::Stream, &key.name)?;
            let check = item_check(self.db, self.root, item);
            let open: Vec<ItemKey> = reads(check).filter(|read| !self.streams.contains_key(read)).collect();
            if entered || open.is_empty() {
                if !open.is_empty() {
                    return None;
                }
                // Its streams are there, so this goes no deeper.
                let output = self.item(check)??;
                self.streams.insert(key, output);
            } else {
                waiting.push((key, true));
                waiting.extend(open.into_iter().rev().map(|key| (key, false)));
            }
        }
        Some(())
    }

    fn input(&self, input: &Input, ids: &[NodeId]) -> Option<NodeId> {
        match input {
            Input::Node(index) => ids.get(*index).copied(),
            Input::Stream(key) => self.streams.get(key).copied(),
        }
    }

    fn distinct(&mut self, wanted: &str) -> String {
        let numbered = (2u32..).map(|n| format!("{wanted}.{n}"));
        let mut names = std::iter::once(wanted.to_string()).chain(numbered);
        // The numbers don't end before the names do.
        let name = names.find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }

    fn renumber(&mut self, e: &mut Expr, check: &Arc<ItemCheck>) {
        e.site = self.site(e.site, check);
        e.for_each_child_mut(&mut |child| self.renumber(child, check));
    }

    /// An item's own number to the plan's.
    fn site(&mut self, local: Site, check: &Arc<ItemCheck>) -> Site {
        let Some(loc) = check.loc(local) else { return Site::default() };
        if let Some(site) = self.sites.get(loc) {
            return *site;
        }
        let info = self.info(loc);
        self.plan.sites.push(info);
        let site = Site(self.plan.sites.len() as u32 - 1);
        self.sites.insert(loc.clone(), site);
        site
    }

    fn info(&self, loc: &Loc) -> SiteInfo {
        let place = self.places.place(loc);
        let Some(file) = self.files.get(place.file.0 as usize) else { return SiteInfo::default() };
        let (line, column) = file.position(place.start);
        SiteInfo {
            file: file.name.clone(),
            line,
            column,
            text: one_line(file, Span { start: place.start, end: place.end }),
        }
    }
}

/// The streams that an item's nodes read, each once.
fn reads(check: &ItemCheck) -> impl DoubleEndedIterator<Item = ItemKey> {
    let inputs = check.nodes.iter().flat_map(|node| &node.inputs).chain(&check.output);
    let mut out: Vec<ItemKey> = Vec::new();
    for input in inputs {
        if let Input::Stream(key) = input
            && !out.contains(key)
        {
            out.push(key.clone());
        }
    }
    out.into_iter()
}

/// A text on one line, shortened.
fn one_line(file: &FileText, span: Span) -> String {
    let text = file.text.get(span.start as usize..span.end as usize).unwrap_or_default();
    let mut out = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = out.char_indices().nth(SITE_TEXT) {
        let keep = out[..cut].char_indices().next_back().map_or(0, |(i, _)| i);
        out.truncate(keep);
        out.push('…');
    }
    out
}

/// Calls `f` on each expression of an operation.
fn expressions(op: &mut Op, f: &mut dyn FnMut(&mut Expr)) {
    match op {
        Op::Source(_) | Op::Sink(_) | Op::Union | Op::Take { .. } => {}
        Op::Filter(condition) | Op::Require { condition, .. } => f(condition),
        Op::Project(exprs) => exprs.iter_mut().for_each(f),
        Op::Aggregate { keys, aggregates } => {
            keys.iter_mut().for_each(&mut *f);
            for aggregate in aggregates {
                aggregate.args.iter_mut().chain(&mut aggregate.filter).for_each(&mut *f);
            }
        }
        Op::Distinct { order: keys, .. } | Op::Sort(keys) => keys.iter_mut().for_each(|key| f(&mut key.expr)),
        Op::Join(Join { left_keys, right_keys, residual, .. }) => {
            left_keys.iter_mut().chain(right_keys).chain(residual).for_each(f);
        }
    }
}
