//! Sources and sinks: their constants, their fields (D7–D9), the sink against its target's schema.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_grammar::ast::{Arg, Call, ExprKind, Literal, Span, TypeExpr, TypeKind};
use dfc_ir::plan::{Op, OptionValue};
use dfc_ir::{DataType, Expr as Ir, Field, Options, Schema, Site, Type};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{
    Column, Gone, Loc, LocalDiagnostic, PathStep, Scope, SiteSink as _, Target, instead_of_null, written,
};

use super::{Flow, Input, ItemCheck, ItemContext, LocalNode, Nature, schema, sink_op, source_op};
use crate::bind::{Bound, bind};
use crate::globals::record_fields;
use crate::guarantees::is_stream;
use crate::operators::{Role, table};
use crate::places;

/// Fields as declared, each with the place of its declaration.
pub(super) struct Declared {
    pub fields: Vec<Field>,
    pub places: Vec<dfc_typeck::Loc>,
    /// What happened at these places.
    pub words: &'static str,
}

/// What happened where a field is declared.
pub(super) const DECLARED: &str = "declared here";

impl ItemContext<'_> {
    /// A source, declared or inline.
    pub(super) fn source(&mut self, call: &Call, node: String) -> Flow {
        let Some(operator) = table().get(&call.name.text, Role::Source) else {
            let at = self.loc(call.name.span);
            let problem = crate::graph::unknown_operator(&call.name.text, Role::Source, at);
            self.error(problem);
            return Flow::unknown();
        };
        let bound = bind(operator, call, &self.item.clone(), &mut self.out);
        self.unknown_values = false;
        let options = self.options(&bound);
        if options.as_ref().is_some_and(|options| !self.go_together(&bound, options)) {
            return Flow::unknown();
        }
        let declared = match bound.get("schema") {
            Some(arg) => self.declared_fields(arg, &bound),
            None => self.outside_fields(&bound, options.as_ref(), &node),
        };
        let Some(declared) = declared else { return Flow::unknown() };
        if !self.readable(&bound, &declared) {
            return Flow::unknown();
        }
        let columns: Vec<Column> = declared
            .fields
            .iter()
            .zip(&declared.places)
            .map(|(field, loc)| {
                let step = PathStep::new(loc.clone(), declared.words);
                Column::new(field.name.clone(), field.ty.clone(), vec![step])
            })
            .collect();
        let named = self.named_fields(&bound, &columns);
        let (Some(mut options), Some(named)) = (options, named) else { return Flow::new(Some(columns), None) };
        let nature = Nature::of_source(operator, &options, call, &self.places);
        options.extend(named);
        let schema = Schema { fields: declared.fields };
        let site = self.site(call.span);
        let op = source_op(&operator.name, options, schema.clone());
        let output = self.push(LocalNode { name: node, op, inputs: Vec::new(), schema, site });
        Flow { nature, ..Flow::new(Some(columns), Some(output)) }
    }

    fn site(&mut self, span: Span) -> Site {
        let loc = self.loc(span);
        self.sites.site(&loc)
    }

    /// The fields of a record's name or of `record { … }`.
    fn declared_fields(&mut self, arg: &Arg, bound: &Bound<'_>) -> Option<Declared> {
        let not_a_record = |cx: &mut Self, found: &str| {
            let message = format!("`schema` of `{}` takes a record, not {found}", bound.operator.name);
            let at = cx.loc(arg.value.span);
            let problem = LocalDiagnostic::error("E0604", at.clone(), message, "not a record");
            cx.error(match &arg.value.kind {
                ExprKind::Record(_) => problem.help("write `record` before the braces: `schema: record { … }`"),
                ExprKind::Literal(Literal::String(name)) if cx.globals.records.contains_key(name) => problem
                    .help(format!("write `{name}`, without quotes"))
                    .fix("take the quotes out", at, name.as_str()),
                _ => problem.help("write a record's name, or `record { id: int64, … }`"),
            });
            None
        };
        match &arg.value.kind {
            ExprKind::Error => None,
            ExprKind::Name(name) => {
                if let Some(record) = self.globals.records.get(name) {
                    let places = (0..record.fields.len()).map(|i| places::part(&record.loc.item, i + 1)).collect();
                    return Some(Declared { fields: record.fields.clone(), places, words: DECLARED });
                }
                if self.globals.broken.contains(name) {
                    return None;
                }
                let ty = TypeExpr { kind: TypeKind::Name(name.clone()), nullable: false, span: arg.value.span };
                let Some(resolved) = self.with(Scope::None, |checker| checker.resolve_type(&ty)) else {
                    // Only a record will do here.
                    let unknown = self.out.last_mut().filter(|found| found.code == "E0423" && found.fixes.is_empty());
                    if let Some(unknown) = unknown {
                        unknown.help = Some(format!(
                            "declare it, `record {} {{ … }}`, or leave `schema:` out: the fields are then those of the data",
                            written(name)
                        ));
                    }
                    return None;
                };
                not_a_record(self, &format!("the type {resolved}"))
            }
            ExprKind::Type(TypeExpr { kind: TypeKind::Record(decls), .. }) => {
                let fields = self.with(Scope::None, |checker| record_fields(checker, decls))?;
                let places = decls.iter().map(|d| self.places.place(d.name.span)).collect();
                Some(Declared { fields, places, words: DECLARED })
            }
            _ => not_a_record(self, "this"),
        }
    }

    /// Whether a source's format has values of these types.
    fn readable(&mut self, bound: &Bound<'_>, declared: &Declared) -> bool {
        let mut sound = true;
        if declared.fields.is_empty() {
            let problem = LocalDiagnostic::error(
                "E0702",
                self.loc(bound.call.name.span),
                "a schema without fields reads nothing",
                "no fields",
            )
            .help("declare at least one field");
            self.error(problem);
            return false;
        }
        for (field, place) in declared.fields.iter().zip(&declared.places) {
            let flat = bound.operator.name == "csv" && matches!(field.ty.ty, Type::List(_) | Type::Record(_));
            if !flat {
                continue;
            }
            let message =
                format!("the field `{}` can't be read from delimited text: its type is {}", field.name, field.ty.ty);
            let problem = LocalDiagnostic::error("E0702", self.loc(bound.call.name.span), message, "read here")
                .related(place.clone(), "declared here")
                .help("read it as `string` or `json`");
            self.error(problem);
            sound = false;
        }
        sound
    }

    /// A sink: the fields it writes, if they are known.
    pub(super) fn sink(&mut self, flow: Flow, call: &Call) -> Option<Schema> {
        let operator = table().get(&call.name.text, Role::Sink)?;
        let bound = bind(operator, call, &self.item.clone(), &mut self.out);
        self.gone = flow.gone.clone();
        let mut options = self.options(&bound);
        if options.as_ref().is_some_and(|found| !self.go_together(&bound, found)) {
            options = None;
        }
        let target = match bound.get("schema") {
            Some(arg) => Some(self.declared_fields(arg, &bound)?),
            None => None,
        };
        if let Some(options) = &options {
            self.target_must_come(&flow.nature, operator, options, call);
        }
        let columns = flow.columns?;
        let named = self.named_fields(&bound, &columns);
        let mut options: Option<Options> =
            options.zip(named).map(|(options, named)| options.into_iter().chain(named).collect());
        let (schema, from) = match target {
            Some(target) => {
                let projection = self.fitted(&columns, &target, call)?;
                let schema = Schema { fields: target.fields };
                (schema.clone(), self.projected(flow.output, projection, schema, call))
            }
            None => (schema(&columns), flow.output),
        };
        if options.as_ref().is_some_and(|options| !self.target_holds(&bound, options, &columns, &schema)) {
            options = None;
        }
        if let (Some(options), Some(from)) = (options, from) {
            let site = self.site(call.span);
            let node = LocalNode {
                name: format!("sink.{}", operator.name),
                op: sink_op(&operator.name, options),
                inputs: vec![from],
                schema: schema.clone(),
                site,
            };
            self.push(node);
        }
        Some(schema)
    }

    fn projected(&mut self, from: Option<Input>, exprs: Vec<Ir>, schema: Schema, call: &Call) -> Option<Input> {
        let site = self.site(call.span);
        let name = format!("sink.{}.fit", call.name.text);
        Some(self.push(LocalNode { name, op: Op::Project(exprs), inputs: vec![from?], schema, site }))
    }

    /// The stream's fields in the target's order and types. `None`: one of them doesn't fit.
    fn fitted(&mut self, columns: &[Column], target: &Declared, call: &Call) -> Option<Vec<Ir>> {
        let mut exprs = Vec::new();
        let mut sound = true;
        for (field, place) in target.fields.iter().zip(&target.places) {
            let Some(index) = columns.iter().position(|c| c.name == field.name) else {
                self.not_given(field, place, columns, call);
                sound = false;
                continue;
            };
            match self.fit(columns, index, field, place, call) {
                Some(expr) => exprs.push(expr),
                None => sound = false,
            }
        }
        // A field under another name was said above; what is left over then is the same mistake.
        let complete = sound;
        for column in columns.iter().filter(|_| complete) {
            if target.fields.iter().any(|f| f.name == column.name) {
                continue;
            }
            let message = format!("the target has no field `{}`", column.name);
            let mut problem = LocalDiagnostic::error("E0451", self.loc(call.name.span), message, "written here");
            if let Some(step) = column.path.first() {
                problem = problem.related(step.loc.clone(), "the field comes from here");
            }
            self.out.push(problem.help(format!("leave it out before: `drop({})`", written(&column.name))));
            sound = false;
        }
        sound.then_some(exprs)
    }

    fn not_given(&mut self, field: &Field, place: &dfc_typeck::Loc, columns: &[Column], call: &Call) {
        let message = format!("the target's field `{}` is not in the stream", field.name);
        let problem = LocalDiagnostic::error("E0450", self.loc(call.name.span), message, "written here")
            .related(place.clone(), "declared here");
        let near = nearest(&field.name, columns.iter().map(|c| c.name.as_str())).map(str::to_string);
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let problem = if names.len() <= 12 {
            problem.note(format!("the stream has {}", crate::bind::listed(&names)))
        } else {
            problem
        };
        self.error(match (Gone::find(&self.gone, &field.name), near) {
            (Some(gone), _) => match &gone.now {
                Some(now) => problem.help(format!(
                    "name it as the target does: `rename({}: {})`",
                    written(&field.name),
                    written(now)
                )),
                None => problem.help(gone.help.clone()),
            }
            .related_all(gone.places()),
            (None, Some(near)) => {
                problem.help(format!("did you mean `{near}`? `rename({}: {})`", written(&field.name), written(&near)))
            }
            (None, None) => problem.help(format!("compute it: `derive({}: …)`", written(&field.name))),
        });
    }

    fn fit(
        &mut self,
        columns: &[Column],
        index: usize,
        field: &Field,
        place: &dfc_typeck::Loc,
        call: &Call,
    ) -> Option<Ir> {
        let column = &columns[index];
        if column.broken {
            return None;
        }
        if column.ty.nullable && !field.ty.nullable {
            let name = &column.name;
            let message = format!("`{name}` may be null, the target's field may not");
            let mut problem = LocalDiagnostic::error("E0452", self.loc(call.name.span), message, "written here")
                .related(place.clone(), format!("declared as {}", field.ty));
            problem = problem.related_all(column.way());
            let problem = problem.help(format!(
                "put a value in its place, `derive({0}: {0} ?? {1})`, leave such rows out, `filter({0} is not null)`, or declare `{2}?`",
                written(name),
                instead_of_null(&field.ty.ty),
                field.ty
            ));
            self.error(problem);
            return None;
        }
        let expr = Ir::column(index, column.ty.clone());
        if column.ty == field.ty {
            return Some(expr);
        }
        let target = Target::SinkColumn { column: field.name.clone(), declared: Some(place.clone()) };
        let to: DataType = field.ty.clone();
        self.with(Scope::Row(columns), |checker| checker.assign(expr, &to, call.name.span, &target))
    }
}

/// Where a sink writes.
#[derive(PartialEq, Eq, Hash)]
enum Place<'n> {
    /// `out/./a.csv` is `out/a.csv`.
    File(PathBuf),
    Server(&'n OptionValue),
}

impl Place<'_> {
    fn file(&self) -> Option<&Path> {
        match self {
            Place::File(path) => Some(path),
            Place::Server(_) => None,
        }
    }
}

/// The first sink of each place and table: its path as it is written, and where.
type Targets<'n> = HashMap<(Place<'n>, Option<&'n str>), (Option<&'n str>, Option<&'n Loc>)>;

/// Two chains of a sink that write one file or table would each replace, or come between, what the other wrote.
pub(super) fn targets_differ(chains: &[&Arc<ItemCheck>]) -> Vec<LocalDiagnostic> {
    let mut first = Targets::new();
    let mut out = Vec::new();
    for (check, node) in chains.iter().flat_map(|check| check.nodes.iter().map(move |node| (check, node))) {
        let Op::Sink(sink) = &node.op else { continue };
        let path = sink.options.get("path").and_then(OptionValue::text).filter(|path| !is_stream(path));
        // A file or a server may hold many tables.
        let table = sink.options.get("table").and_then(OptionValue::text);
        let place = match (path, sink.options.get("url").filter(|url| **url != OptionValue::Absent)) {
            (Some(path), _) => Place::File(Path::new(path).components().collect()),
            (None, Some(url)) if table.is_some() => Place::Server(url),
            _ => continue,
        };
        let name =
            table.map_or_else(|| path.map(|path| format!("`{path}`")), |table| Some(format!("the table `{table}`")));
        match first.entry((place, table)) {
            Entry::Vacant(entry) => drop(entry.insert((path, check.loc(node.site)))),
            Entry::Occupied(entry) => {
                let (Some(at), Some(other)) = (check.loc(node.site), entry.get().1) else { continue };
                let message = format!("{} is written twice", name.unwrap_or_default());
                let problem = LocalDiagnostic::error("E0315", at.clone(), message, "and here")
                    .related(other.clone(), "written here")
                    .help("give each its own, or write one `union(…)` of both streams");
                out.push(problem);
            }
        }
    }
    out.extend(within_a_folder(&first));
    out
}

/// Targets that lie in a folder of parts, which is another's: a run that finds such a file there stops.
fn within_a_folder(targets: &Targets<'_>) -> Vec<LocalDiagnostic> {
    let files = || targets.iter().filter_map(|((place, _), (path, at))| Some((place.file()?, (*path)?, (*at)?)));
    let mut out = Vec::new();
    for (folder, written, at) in files().filter(|(_, path, _)| path.ends_with('/')) {
        for (_, inner, place) in files().filter(|(file, ..)| file.starts_with(folder) && *file != folder) {
            let message = format!("`{inner}` lies in the folder `{written}`, which is another target");
            let problem = LocalDiagnostic::error("E0315", place.clone(), message, "written into it")
                .related(at.clone(), "its parts are written here")
                .help("give each target a place of its own");
            out.push(problem);
        }
    }
    out.sort_by(|a, b| a.message.cmp(&b.message));
    out
}
