//! Checks one source, stream or sink (D5, D7): its chain link by link, from the fields of what it reads to the fields it gives,
//! and at the same time to the plan's nodes.
//!
//! An operator's own rule is in the modules below. It may not look at other items but through their names and fields.

mod address;
mod chain;
mod ends;
mod forms;
mod gone;
mod grouping;
mod guess;
mod joins;
mod nature;
mod options;
mod outside;
mod own;
mod refused;
mod rows;
mod together;
mod trace;
mod unions;

pub use guess::shown_columns;
pub use nature::Nature;
pub use trace::{Trace, trace};

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use dfc_diagnostics::Severity;
use dfc_grammar::ast::{Call, Expr, ItemKind, Span};
use dfc_ir::plan::{Op, SinkSpec, SourceSpec};
use dfc_ir::{DataType, Field, Schema, Site, Type};
use dfc_typeck::{
    Checker, Column, FunctionTable, Globals, Gone, ItemKey, Loc, LocalDiagnostic, Namespace, PathStep, Scope, SiteSink,
};

use crate::cycles::is_cyclic;
use crate::db::{Db, SourceFile};
use crate::globals::globals_and_streams;
use crate::guarantees::{Known, ends};
use crate::items::{ItemNode, find, is_twice};
use crate::places::PartIndex;
use crate::schemas::OutsideSource;
use crate::seen::seen;
use crate::unused::{Computed, Reads, in_vain, reads};

/// What checking an item gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemCheck {
    /// The fields it gives (a sink: none); `None` where an error hides them.
    pub columns: Option<Arc<Vec<Column>>>,
    /// What is known of its rows beside their fields.
    pub facts: Facts,
    /// Its part of the plan; whole only if nothing was refused.
    pub nodes: Vec<LocalNode>,
    /// Where its rows come out.
    pub output: Option<Input>,
    /// Places of expressions: `Site(n)` is `sites[n - 1]`.
    pub sites: Vec<Loc>,
    /// What was found.
    pub diagnostics: Vec<LocalDiagnostic>,
    /// Fields that its nodes compute.
    pub computed: Vec<Computed>,
    /// What it reads of other items; of a sink its chains' checks know it.
    pub reads: Reads,
    /// Of a sink's chain: its connector and the fields it is given.
    pub sinks: Vec<(String, Option<Schema>)>,
    /// Its sources and sinks, as far as they are sound.
    pub ends: Vec<Arc<Known>>,
    /// Its sources whose fields come from outside.
    pub outside: Vec<OutsideSource>,
}

/// What is known of rows beside their fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The fields that they had on their way and have no more.
    pub gone: Arc<Vec<Gone>>,
    /// Their order, and whether they end.
    pub nature: Nature,
}

/// A node of the plan inside an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalNode {
    /// Its name, not yet distinct.
    pub name: String,
    /// What it does; its sites are the item's.
    pub op: Op,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// The fields it gives.
    pub schema: Schema,
    /// Where it was written.
    pub site: Site,
}

impl ItemCheck {
    /// The place that a number stands for.
    pub fn loc(&self, site: Site) -> Option<&Loc> {
        self.sites.get((site.0 as usize).checked_sub(1)?)
    }

    fn flow(&mut self, flow: Flow) {
        (self.columns, self.output) = (flow.columns.map(Arc::new), flow.output);
        self.facts = Facts { gone: flow.gone, nature: flow.nature };
    }
}

/// Where rows come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A node of the same item.
    Node(usize),
    /// Another source or stream.
    Stream(ItemKey),
}

/// Checks a source or a stream; of a sink what its chains have to do with one another, each of which has a check of its own.
#[salsa::tracked]
pub fn item_check(db: &dyn Db, root: SourceFile, item: ItemNode) -> Arc<ItemCheck> {
    if item.key(db).namespace == Namespace::Sink {
        let chains: Vec<&Arc<ItemCheck>> = chain_checks(db, root, item).collect();
        let diagnostics = ends::targets_differ(&chains);
        return Arc::new(ItemCheck { diagnostics, ..ItemCheck::default() });
    }
    Arc::new(in_words(db, root, item, |globals| checked(db, root, item, globals)))
}

/// Checks one chain of a sink, by its number: an edit that is felt by one target of many checks that one anew.
#[salsa::tracked]
pub fn chain_check(db: &dyn Db, root: SourceFile, item: ItemNode, number: usize) -> Arc<ItemCheck> {
    let mut check = in_words(db, root, item, |globals| checked_chain(db, root, item, number, globals));
    check.diagnostics.extend(in_vain(&check, BTreeSet::new()));
    Arc::new(check)
}

/// The checks of a sink's chains.
pub fn chain_checks(db: &dyn Db, root: SourceFile, item: ItemNode) -> impl Iterator<Item = &Arc<ItemCheck>> {
    let chains = match item.kind(db).as_ref() {
        ItemKind::Sink(sink) => sink.chains.len(),
        _ => 0,
    };
    (0..chains).map(move |number| chain_check(db, root, item, number))
}

/// All that is known of an item: the checks of a sink's chains, and its own.
pub fn checks(db: &dyn Db, root: SourceFile, item: ItemNode) -> impl Iterator<Item = &Arc<ItemCheck>> {
    chain_checks(db, root, item).chain(std::iter::once(item_check(db, root, item)))
}

/// A check with what the item can see; where that finds an error, once more with all names, among which one may be near.
fn in_words(db: &dyn Db, root: SourceFile, item: ItemNode, check: impl Fn(&Arc<Globals>) -> ItemCheck) -> ItemCheck {
    let found = check(seen(db, root, item));
    match found.diagnostics.iter().any(|found| found.severity == Severity::Error) {
        true => check(globals_and_streams(db, root)),
        false => found,
    }
}

/// The places of an item's parts, for the checks of its chains.
#[salsa::tracked]
fn part_index(db: &dyn Db, item: ItemNode) -> Arc<PartIndex> {
    Arc::new(PartIndex::new(item.key(db), item.kind(db)))
}

fn checked_chain(db: &dyn Db, root: SourceFile, item: ItemNode, number: usize, globals: &Arc<Globals>) -> ItemCheck {
    let chain = match item.kind(db).as_ref() {
        ItemKind::Sink(sink) => sink.chains.get(number),
        _ => None,
    };
    let mut cx = ItemContext::new(db, root, globals, item.key(db), part_index(db, item).clone());
    let sinks = chain.map(|chain| cx.sink_chain(chain)).into_iter().collect();
    cx.into_check(ItemCheck { sinks, ..ItemCheck::default() })
}

fn checked(db: &dyn Db, root: SourceFile, item: ItemNode, globals: &Arc<Globals>) -> ItemCheck {
    let key = item.key(db);
    let kind = item.kind(db);
    let mut cx = ItemContext::new(db, root, globals, key, Arc::new(PartIndex::new(key, kind)));
    let mut check = ItemCheck::default();
    match kind.as_ref() {
        ItemKind::Source(source) => {
            let flow = cx.source_item(source);
            check.flow(flow);
        }
        ItemKind::Stream(stream) => {
            let flow = if is_cyclic(db, root, item) { Flow::unknown() } else { cx.stream_chain(&stream.chain) };
            check.flow(flow);
        }
        _ => {}
    }
    cx.into_check(check)
}

/// The rows that a source or stream gives: all that its readers look at. Changes only when they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Their fields; `None` where an error hides them.
    pub columns: Option<Arc<Vec<Column>>>,
    /// What else is known of them.
    pub facts: Facts,
}

/// The rows that a source or stream gives.
#[salsa::tracked]
pub fn stream_rows(db: &dyn Db, root: SourceFile, item: ItemNode) -> Rows {
    let check = item_check(db, root, item);
    Rows { columns: check.columns.clone(), facts: check.facts.clone() }
}

/// The fields of a source or stream.
pub fn stream_columns(db: &dyn Db, root: SourceFile, item: ItemNode) -> &Option<Arc<Vec<Column>>> {
    &stream_rows(db, root, item).columns
}

/// The steps of fields that are computed, for [`crate::unused`].
const COMPUTED: &[&str] = &["computed here", "aggregated here"];

/// Rows on their way through a chain.
#[derive(Debug, Clone)]
struct Flow {
    /// Their fields; `None` where an error hides them.
    columns: Option<Vec<Column>>,
    /// Where they come from; `None` where the plan has a hole.
    output: Option<Input>,
    /// The fields that they had before.
    gone: Arc<Vec<Gone>>,
    /// Their order, and whether they end.
    nature: Nature,
}

impl Flow {
    fn unknown() -> Self {
        Flow::new(None, None)
    }

    fn new(columns: Option<Vec<Column>>, output: Option<Input>) -> Self {
        Flow { columns, output, gone: Arc::default(), nature: Nature::default() }
    }
}

/// The item at hand and what was found in it.
struct ItemContext<'a> {
    db: &'a dyn Db,
    root: SourceFile,
    globals: &'a Arc<Globals>,
    places: Arc<PartIndex>,
    item: ItemKey,
    /// The folder that relative paths start from.
    folder: &'a Path,
    sites: Sites,
    out: Vec<LocalDiagnostic>,
    nodes: Vec<LocalNode>,
    computed: Vec<Computed>,
    /// The fields that the rows at hand had before.
    gone: Arc<Vec<Gone>>,
    /// The fields at every point, where they are asked for.
    trace: Option<Trace>,
    /// Sources whose fields come from outside.
    outside: Vec<OutsideSource>,
    /// Whether an expression used a parameter that has no value.
    unknown_values: bool,
}

impl<'a> ItemContext<'a> {
    fn new(db: &'a dyn Db, root: SourceFile, globals: &'a Arc<Globals>, key: &ItemKey, places: Arc<PartIndex>) -> Self {
        let file = db.file_by_index(key.file);
        ItemContext {
            db,
            root,
            globals,
            places,
            item: key.clone(),
            folder: file.and_then(|f| f.path(db).parent()).unwrap_or(Path::new("")),
            sites: Sites::default(),
            out: Vec::new(),
            nodes: Vec::new(),
            computed: Vec::new(),
            gone: Arc::default(),
            trace: None,
            outside: Vec::new(),
            unknown_values: false,
        }
    }

    /// What was found, beside what is in `check`.
    fn into_check(self, check: ItemCheck) -> ItemCheck {
        let mut check = ItemCheck {
            computed: self.computed,
            nodes: self.nodes,
            sites: self.sites.list,
            diagnostics: self.out,
            outside: self.outside,
            ..check
        };
        check.reads = reads(&check);
        check.ends = ends(&self.item, &check).map(Arc::new).collect();
        check
    }

    fn loc(&self, span: Span) -> Loc {
        Loc { item: self.item.clone(), span }
    }

    fn error(&mut self, problem: LocalDiagnostic) {
        self.out.push(problem);
    }

    /// Runs a checker over a scope and keeps what it found.
    fn with<'s, T>(&mut self, scope: Scope<'s>, work: impl FnOnce(&mut Checker<'_>) -> T) -> T
    where
        'a: 's,
    {
        let globals: &Globals = self.globals;
        let gone = self.gone.clone();
        let mut checker = Checker::new(FunctionTable::standard(), globals, self.item.clone(), scope, &mut self.sites);
        checker.gone = &gone;
        let result = work(&mut checker);
        self.unknown_values |= checker.unknown_values;
        self.out.append(&mut checker.diagnostics);
        result
    }

    /// Types an expression over a row.
    fn expr(&mut self, columns: &[Column], e: &Expr, expected: Option<&DataType>) -> Option<dfc_ir::Expr> {
        self.with(Scope::Row(columns), |checker| checker.check(e, expected))
    }

    /// The fields of a source or stream by name; unknown where the graph refused the name.
    fn stream(&mut self, name: &str) -> Flow {
        let found = find(self.db, self.root, Namespace::Stream, name).or_else(|| self.guessed_stream(name));
        let Some(item) = found else { return Flow::unknown() };
        if is_twice(self.db, self.root, Namespace::Stream, name) && !self.guesses() {
            return Flow::unknown();
        }
        let Rows { columns, facts } = stream_rows(self.db, self.root, item);
        let shown = if self.guesses() { shown_columns(self.db, self.root, item) } else { columns };
        let columns = shown.as_ref().map(|columns| columns.as_ref().clone());
        let output = Some(Input::Stream(item.key(self.db).clone()));
        let Facts { gone, nature } = facts.clone();
        Flow { columns, output, gone, nature }
    }

    /// A step on a field's way, at a part of this item.
    fn step(&self, span: Span, words: impl Into<String>) -> PathStep {
        PathStep::new(self.places.place(span), words)
    }

    /// The step that gives a field another name.
    fn renamed(&self, span: Span, old: &str) -> PathStep {
        PathStep::renamed(self.places.place(span), old)
    }

    /// Keeps which columns of a node are computed there.
    fn note_computed(&mut self, node: &Input, columns: &[Column]) {
        let Input::Node(node) = *node else { return };
        let made = |index: usize| match &self.nodes[node].op {
            Op::Project(exprs) => !matches!(exprs[index].kind, dfc_ir::ExprKind::Column(_)),
            Op::Aggregate { keys, .. } => index >= keys.len(),
            _ => false,
        };
        let computed = columns.iter().enumerate().filter(|(index, _)| made(*index)).filter_map(|(column, c)| {
            let step =
                c.path.last().filter(|step| step.loc.item == self.item && COMPUTED.contains(&step.words.as_str()))?;
            Some(Computed { node, column, name: c.name.clone(), loc: step.loc.clone() })
        });
        let computed: Vec<Computed> = computed.collect();
        self.computed.extend(computed);
    }

    /// Adds a node. Without an operation (it was refused) the rows go on, but there is no plan.
    fn node(&mut self, call: &Call, op: Option<Op>, inputs: Vec<Option<Input>>, columns: Option<Vec<Column>>) -> Flow {
        let inputs: Option<Vec<Input>> = inputs.into_iter().collect();
        let (Some(op), Some(inputs), Some(fields)) = (op, inputs, &columns) else {
            return Flow::new(columns, None);
        };
        let name = match op {
            Op::Source(_) | Op::Sink(_) => call.name.text.clone(),
            _ => format!("{}.{}", self.prefix(), call.name.text),
        };
        let schema = schema(fields);
        let site = self.sites.site(&Loc { item: self.item.clone(), span: call.span });
        let output = self.push(LocalNode { name, op, inputs, schema, site });
        self.note_computed(&output, fields);
        Flow::new(columns, Some(output))
    }

    fn push(&mut self, node: LocalNode) -> Input {
        self.nodes.push(node);
        Input::Node(self.nodes.len() - 1)
    }

    /// What operators of this item are called after.
    fn prefix(&self) -> &str {
        if self.item.namespace == Namespace::Sink { "sink" } else { &self.item.name }
    }
}

/// The schema of fields whose outside names are their own.
fn schema(columns: &[Column]) -> Schema {
    Schema { fields: columns.iter().map(|c| Field::new(c.name.clone(), c.ty.clone())).collect() }
}

/// A field whose expression was refused: using it is silent.
fn broken(name: &str, path: Vec<PathStep>) -> Column {
    Column { broken: true, ..Column::new(name, DataType::optional(Type::Null), path) }
}

/// References to all fields, unchanged.
fn identity(columns: &[Column]) -> Vec<dfc_ir::Expr> {
    columns.iter().enumerate().map(|(i, c)| dfc_ir::Expr::column(i, c.ty.clone())).collect()
}

/// A source's operation.
fn source_op(connector: &str, options: dfc_ir::Options, schema: Schema) -> Op {
    let projection = (0..schema.len()).collect();
    Op::Source(SourceSpec { connector: connector.to_string(), options, schema, projection })
}

/// A sink's operation.
fn sink_op(connector: &str, options: dfc_ir::Options) -> Op {
    Op::Sink(SinkSpec { connector: connector.to_string(), options })
}

/// Numbers the places of an item's expressions.
#[derive(Debug, Default)]
struct Sites {
    list: Vec<Loc>,
    numbers: HashMap<Loc, u32>,
}

impl Sites {
    /// The place that a number stands for.
    fn loc(&self, site: Site) -> Option<Loc> {
        self.list.get((site.0 as usize).checked_sub(1)?).cloned()
    }
}

impl SiteSink for Sites {
    fn site(&mut self, loc: &Loc) -> Site {
        if let Some(number) = self.numbers.get(loc) {
            return Site(*number);
        }
        self.list.push(loc.clone());
        let number = self.list.len() as u32;
        self.numbers.insert(loc.clone(), number);
        Site(number)
    }
}
