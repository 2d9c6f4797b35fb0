//! What expressions see beside fields: parameters, constants, functions, records, each resolved once for the whole program.
//!
//! Declarations may stand in any order and use each other; a circle among them is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dfc_grammar::ast::{self, FieldDecl, ItemKind};
use dfc_ir::{Field, Type, Value};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{
    Checker, FunctionTable, Global, GlobalKind, Globals, Loc, LocalDiagnostic, Namespace, NoSites, RecordType, Scope,
    Target, UserFn,
};

use crate::db::{Db, Given, SourceFile};
use crate::items::{ItemNode, Program, Slot, program};
use crate::mentions::Mentions;
use crate::places;
use crate::secrets;

/// Names of the built-in types: no record may be called so.
pub const TYPE_NAMES: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal",
    "string",
    "bytes",
    "date",
    "time",
    "datetime",
    "timestamp",
    "duration",
    "json",
    "list",
    "record",
    "secret",
    "any",
];

/// The declarations of a program, resolved, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declarations {
    /// What expressions see. Its places are counted.
    pub globals: Arc<Globals>,
    /// What is wrong.
    pub problems: Vec<LocalDiagnostic>,
    /// Parameters that have neither a default nor a given value.
    pub unset: Vec<(String, Loc)>,
}

/// A program without what rows flow through: it stays the same when a stream comes, goes or gets another name.
#[salsa::tracked]
pub fn declaring(db: &dyn Db, root: SourceFile) -> Arc<Program> {
    let whole = program(db, root);
    let flows = |slot: &Slot| matches!(slot.namespace, Namespace::Stream | Namespace::Sink);
    let mut program = Program { files: whole.files.clone(), hidden: whole.hidden.clone(), ..Program::default() };
    for file in &whole.files {
        let named = file.items(db).iter().zip(file.slots(db).iter());
        program.items.extend(named.filter(|(_, slot)| !flows(slot)).map(|(item, _)| *item));
    }
    let names = whole.names.iter().filter(|(slot, _)| !flows(slot));
    program.names = names.map(|(slot, item)| (slot.clone(), *item)).collect();
    program.twice = whole.twice.iter().filter(|slot| !flows(slot)).cloned().collect();
    Arc::new(program)
}

/// Resolves the declarations of a program.
#[salsa::tracked]
pub fn declarations(db: &dyn Db, root: SourceFile) -> Arc<Declarations> {
    let program = declaring(db, root).as_ref();
    let mut resolver = Resolver {
        db,
        program,
        given: Given::get(db).values(db),
        globals: Globals::default(),
        problems: Vec::new(),
        unset: Vec::new(),
        done: BTreeSet::new(),
        open: Vec::new(),
    };
    resolver.run();
    let Resolver { globals, problems, unset, .. } = resolver;
    Arc::new(Declarations { globals: Arc::new(globals), problems, unset })
}

/// [`Declarations::globals`], with the names of streams, which make an error's words better: for what has an error, and for editors.
#[salsa::tracked]
pub fn globals_and_streams(db: &dyn Db, root: SourceFile) -> Arc<Globals> {
    let mut globals = Globals::clone(globals(db, root));
    globals.streams = program(db, root).names_of(Namespace::Stream).map(str::to_string).collect();
    Arc::new(globals)
}

/// [`Declarations::globals`]: changes only when a declaration changes its meaning.
#[salsa::tracked]
pub fn globals(db: &dyn Db, root: SourceFile) -> Arc<Globals> {
    declarations(db, root).globals.clone()
}

struct Resolver<'p, 'db> {
    db: &'db dyn Db,
    program: &'p Program,
    given: &'p BTreeMap<String, String>,
    globals: Globals,
    problems: Vec<LocalDiagnostic>,
    unset: Vec<(String, Loc)>,
    done: BTreeSet<Slot>,
    /// Declarations on the way to the one at hand.
    open: Vec<Slot>,
}

impl<'p, 'db> Resolver<'p, 'db> {
    fn run(&mut self) {
        self.globals.broken.extend(self.program.hidden.iter().cloned());
        let functions: Vec<(ItemNode, Arc<UserFn>)> =
            self.items(Namespace::Fn).filter_map(|item| self.function(item)).collect();
        for (item, function) in &functions {
            let name = &function.decl.name.text;
            if self.program.twice.contains(&Slot::new(Namespace::Fn, name.as_str())) {
                self.globals.broken.insert(name.clone());
            } else {
                self.globals.functions.insert(name.clone(), function.clone());
            }
            if FunctionTable::standard().get(name).is_some() {
                self.taken(*item, "function", name, "a function of the standard library");
            }
        }
        // Records first: types of parameters and constants may name them.
        for namespace in [Namespace::Record, Namespace::Value] {
            for item in self.items(namespace) {
                self.resolve(item);
            }
        }
        for (item, function) in functions {
            let too_large = self.with_checker(item, |checker| {
                let sound = checker.check_fn(&function);
                let found = &checker.diagnostics;
                found.iter().any(|problem| problem.code == "E0422") || (!sound && found.is_empty())
            });
            if too_large {
                // Every use would find out again, and that takes as long as the function is large.
                let name = function.decl.name.text.clone();
                self.globals.functions.remove(&name);
                self.globals.broken.insert(name);
            }
        }
        for name in self.given.keys() {
            if self
                .program
                .find(Namespace::Value, name)
                .is_none_or(|item| !matches!(item.kind(self.db).as_ref(), ItemKind::Param(_)))
            {
                self.unknown_given(name);
            }
        }
    }

    /// The program's declarations in a namespace.
    fn items(&self, namespace: Namespace) -> impl Iterator<Item = ItemNode> + use<'p, 'db> {
        let (db, program) = (self.db, self.program);
        program.items.iter().copied().filter(move |item| item.key(db).namespace == namespace)
    }

    fn function(&self, item: ItemNode) -> Option<(ItemNode, Arc<UserFn>)> {
        let ItemKind::Fn(decl) = item.kind(self.db).as_ref() else { return None };
        Some((item, Arc::new(UserFn { item: item.key(self.db).clone(), decl: decl.clone() })))
    }

    /// A name that something built in has already.
    fn taken(&mut self, item: ItemNode, what: &str, name: &str, by: &str) {
        let at = places::name_of(item.key(self.db));
        let message = format!("the {what} can't be called `{name}`: that is {by}");
        self.problems.push(LocalDiagnostic::error("E0212", at, message, "taken").help("give it another name"));
    }

    fn unknown_given(&mut self, name: &str) {
        let params: Vec<&str> = self
            .program
            .declared(Namespace::Value)
            .filter(|(_, item)| matches!(item.kind(self.db).as_ref(), ItemKind::Param(_)))
            .map(|(slot, _)| slot.name.as_str())
            .collect();
        let Some(first) = self.program.items.first() else { return };
        let at = Loc { item: first.key(self.db).clone(), span: ast::Span::new(0, 0) };
        let problem =
            LocalDiagnostic::error("E0620", at, format!("a value was given for `{name}`, which is no parameter"), "");
        self.problems.push(match nearest(name, params.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None if params.is_empty() => problem.note("this pipeline declares no parameters"),
            None => problem.note(format!("there are {}", crate::bind::listed(&params))),
        });
    }

    /// Resolves an item after everything that it names.
    fn resolve(&mut self, item: ItemNode) {
        let key = item.key(self.db).clone();
        let slot = Slot::new(key.namespace, key.name.clone());
        let first = self.program.names.get(&slot) == Some(&item);
        if first && !self.done.insert(slot.clone()) {
            return;
        }
        self.open.push(slot.clone());
        let kind = item.kind(self.db).clone();
        let mut circular = false;
        for name in self.reachable(&kind) {
            if self.open.contains(&name) {
                self.circle(&name, item);
                circular = true;
                break;
            }
            if let Some(other) = self.program.names.get(&name).copied()
                && matches!(name.namespace, Namespace::Record | Namespace::Value)
            {
                self.resolve(other);
            }
        }
        self.open.pop();
        if circular {
            self.globals.broken.insert(key.name.clone());
            return;
        }
        match kind.as_ref() {
            ItemKind::Record(record) => self.record(item, record, first),
            ItemKind::Param(param) => self.param(item, param, first),
            ItemKind::Const(constant) => self.constant(item, constant, first),
            _ => {}
        }
    }

    /// Names used, those in the bodies of used functions included.
    fn reachable(&self, kind: &ItemKind) -> Vec<Slot> {
        let mut out: Vec<Slot> = Vec::new();
        let mut waiting: Vec<Slot> = Mentions::of(kind).slots().collect();
        while let Some(name) = waiting.pop() {
            if out.contains(&name) {
                continue;
            }
            if let (Namespace::Fn, Some(function)) = (name.namespace, self.globals.functions.get(&name.name)) {
                waiting.extend(Mentions::of_function(&function.decl).slots());
            }
            out.push(name);
        }
        out
    }

    fn circle(&mut self, back: &Slot, item: ItemNode) {
        let from = self.open.iter().position(|open| open == back).unwrap_or(0);
        let mut names: Vec<String> = self.open[from..].iter().map(|open| format!("`{}`", open.name)).collect();
        names.push(format!("`{}`", back.name));
        let at = places::name_of(item.key(self.db));
        let message = match back.namespace {
            Namespace::Record => format!("a record can't contain itself: {}", names.join(" → ")),
            _ => format!("these values depend on each other in a circle: {}", names.join(" → ")),
        };
        self.problems.push(
            LocalDiagnostic::error("E0204", at, message, "the circle closes here").help("take one of these steps out"),
        );
    }

    fn with_checker<T>(&mut self, item: ItemNode, work: impl FnOnce(&mut Checker<'_>) -> T) -> T {
        let mut sites = NoSites;
        let mut checker =
            Checker::new(FunctionTable::standard(), &self.globals, item.key(self.db).clone(), Scope::None, &mut sites);
        let result = work(&mut checker);
        let found = std::mem::take(&mut checker.diagnostics);
        self.problems.extend(found);
        result
    }

    fn record(&mut self, item: ItemNode, record: &ast::Record, first: bool) {
        let key = item.key(self.db).clone();
        if TYPE_NAMES.contains(&key.name.as_str()) {
            self.taken(item, "record", &key.name, "a built-in type");
        }
        let fields = self.with_checker(item, |checker| record_fields(checker, &record.fields));
        if !first {
            return;
        }
        match fields.filter(|_| self.is_single(item)) {
            Some(fields) => {
                let loc = places::name_of(&key);
                self.globals.records.insert(key.name.clone(), RecordType { fields, loc });
            }
            None => {
                self.globals.broken.insert(key.name.clone());
            }
        }
    }

    /// Whether its name is declared once: of two nobody knows which is meant.
    fn is_single(&self, item: ItemNode) -> bool {
        let key = item.key(self.db);
        !self.program.twice.contains(&Slot::new(key.namespace, key.name.clone()))
    }

    fn param(&mut self, item: ItemNode, param: &ast::Param, first: bool) {
        let name = param.name.text.clone();
        let ty = self.with_checker(item, |checker| checker.resolve_type(&param.ty));
        let Some(ty) = ty else {
            self.globals.broken.insert(name);
            return;
        };
        let target = Target::Declaration { kind: "parameter", name: name.clone() };
        let mut broken = false;
        let mut value = None;
        let mut secret = None;
        if let (Some(default), Type::Secret) = (&param.default, &ty.ty) {
            secret = secrets::place(default);
            if secret.is_none() {
                let at = Loc { item: item.key(self.db).clone(), span: default.span };
                let message =
                    format!("the default of the secret `{name}` must say where its value is kept, not what it is");
                self.problems.push(
                    LocalDiagnostic::error("E0503", at, message, "no place of a secret")
                        .help(format!("write {}; without a default, it is given by `--set {name}=…`", secrets::FORMS)),
                );
                broken = true;
            }
        } else if let Some(default) = &param.default {
            // The default is checked even where another value is given.
            value = self.with_checker(item, |checker| checker.constant(default, &ty, &target));
            broken = value.is_none();
        }
        if let Some(text) = self.given.get(&name)
            && first
        {
            match given_value(text, &ty) {
                Ok(given) => {
                    value = Some(given);
                    broken = false;
                }
                Err(why) => {
                    let at = places::name_of(item.key(self.db));
                    let message = format!("the value given for `{name}` doesn't fit its type {ty}: {why}");
                    let problem = LocalDiagnostic::error("E0621", at, message, "declared here");
                    self.problems.push(match ty.ty {
                        Type::List(_) => {
                            problem.help(format!("a list is given as JSON: `--set '{name}=[\"a\", \"b\"]'`"))
                        }
                        _ => problem,
                    });
                    broken = true;
                }
            }
        }
        if !first {
            return;
        }
        if broken || !self.is_single(item) {
            self.globals.broken.insert(name);
            return;
        }
        let loc = places::name_of(item.key(self.db));
        if value.is_some() {
            secret = None;
        } else if secret.is_none() {
            self.unset.push((name.clone(), loc.clone()));
        }
        self.globals.values.insert(name, Global { kind: GlobalKind::Param, ty, value, secret, loc });
    }

    fn constant(&mut self, item: ItemNode, constant: &ast::Const, first: bool) {
        let name = constant.name.text.clone();
        let target = Target::Declaration { kind: "constant", name: name.clone() };
        let found = self.with_checker(item, |checker| {
            let (value, ty) = match &constant.ty {
                Some(ty) => {
                    let ty = checker.resolve_type(ty)?;
                    (checker.constant(&constant.value, &ty, &target)?, ty)
                }
                None => checker.constant_any(&constant.value)?,
            };
            // A constant over a parameter without a value has none either.
            Some((if checker.unknown_values { None } else { Some(value) }, ty))
        });
        if !first {
            return;
        }
        match found.filter(|_| self.is_single(item)) {
            Some((value, ty)) => {
                let loc = places::name_of(item.key(self.db));
                self.globals.values.insert(name, Global { kind: GlobalKind::Const, ty, value, secret: None, loc });
            }
            None => {
                self.globals.broken.insert(name);
            }
        }
    }
}

/// The fields of a record, resolved; `None` if one of them is refused.
pub fn record_fields(checker: &mut Checker<'_>, decls: &[FieldDecl]) -> Option<Vec<Field>> {
    let fields = checker.resolve_fields(decls)?;
    let mut seen: BTreeMap<&str, &FieldDecl> = BTreeMap::new();
    let mut sound = true;
    for decl in decls {
        let outside = decl.external.as_ref().map_or(&decl.name.text, |(name, _)| name).as_str();
        let Some(other) = seen.get(outside) else {
            seen.insert(outside, decl);
            continue;
        };
        let at = |span| Loc { item: checker.item.clone(), span };
        let span = decl.external.as_ref().map_or(decl.name.span, |(_, span)| *span);
        let message = format!("two fields stand for the same name outside, `{outside}`");
        let problem = LocalDiagnostic::error("E0403", at(span), message, "again")
            .related(at(other.span), "the first")
            .help("each column outside is one field here; a second copy is made with `derive`");
        checker.diagnostics.push(problem);
        sound = false;
    }
    sound.then_some(fields)
}

/// The value of a text given on the command line.
fn given_value(text: &str, ty: &dfc_ir::DataType) -> Result<Value<'static>, String> {
    match &ty.ty {
        Type::String | Type::Secret => Ok(Value::string(text)),
        _ if ty.nullable && text == "null" => Ok(Value::Null),
        plain => match dfc_eval::parse_value(text, plain) {
            Ok(Value::Null) => Err(format!("{ty} is never null")),
            Ok(value) => Ok(value.into_owned()),
            Err(error) => Err(error.message),
        },
    }
}
