//! From findings inside items to diagnostics with places in files, sorted.
//!
//! Only here do byte offsets of whole files come in: everything before is untouched by an edit elsewhere.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use dfc_diagnostics::{Diagnostic, FileId, Fix, Place, Severity};
use dfc_grammar::SyntaxError;
use dfc_grammar::ast::{ItemKind, Span, TypeKind};
use dfc_grammar::token::{Token, TokenKind};
use dfc_ir::{Field, Schema};
use dfc_typeck::{ItemKey, Loc, LocalDiagnostic, Namespace};

use crate::allow;
use crate::check::{checks, stream_columns};
use crate::db::{Db, SourceFile};
use crate::globals::declarations;
use crate::graph::{graph, unknown_operator};
use crate::guarantees::guarantees;
use crate::items::{ItemNode, Program, Slot, file_items, parse, program};
use crate::joblints::job_lints;
use crate::operators::{Role, table};
use crate::places;
use crate::said::said;
use crate::settings::job;
use crate::unmentioned::unmentioned;
use crate::{StreamSummary, Summary};

/// Every finding on a program, sorted by file and place. `FileId`s count [`Program::files`].
#[salsa::tracked]
pub fn diagnostics(db: &dyn Db, root: SourceFile) -> Arc<Vec<Diagnostic>> {
    let program = program(db, root);
    let mut found = of_structure(db, root);
    if whole(program) {
        for file in &program.files {
            found.extend(of_items(db, root, *file));
        }
        if !program.broken {
            found.extend(guarantees(db, root).iter().flat_map(|guarantees| &guarantees.problems));
            found.extend(job_lints(db, root).iter());
            // A name with a mistake may have meant one of these.
            if found.iter().all(|problem| problem.severity != Severity::Error) {
                found.extend(unmentioned(db, root).iter());
            }
        }
    }
    let mut out = placed(db, program, &program.files, found);
    limited(&mut out);
    // One lock file that can't be used is one mistake, however many sources look into it.
    let mut lock = 0;
    out.retain(|problem| {
        lock += usize::from(problem.code == "E0704");
        problem.code != "E0704" || lock == 1
    });
    Arc::new(out)
}

/// The findings on one file that its own items give, and those on the program's structure: the answer to a key in it, which
/// [`diagnostics`] may complete by what other files and the job as a whole say of it.
pub fn file_diagnostics(db: &dyn Db, root: SourceFile, file: SourceFile) -> Vec<Diagnostic> {
    let program = program(db, root);
    let Some(index) = program.files.iter().position(|f| *f == file) else { return Vec::new() };
    let mut found: Vec<&LocalDiagnostic> = if program.broken_files.contains(&file.index(db)) {
        program.problems.iter().collect()
    } else {
        let items = whole(program).then(|| of_items(db, root, file));
        of_structure(db, root).into_iter().chain(items.into_iter().flatten()).collect()
    };
    found.retain(|problem| problem.loc.item.file == file.index(db));
    let mut out = placed(db, program, &[file], found);
    out.retain(|problem| problem.place.file == FileId(index as u32));
    limited(&mut out);
    out
}

/// Whether names can be told unknown: with a library missing, or an item whose name nobody knows, half of them would be.
fn whole(program: &Program) -> bool {
    !program.unknown_names && !program.problems.iter().any(|p| matches!(p.code, "E0205" | "E0207" | "E0208"))
}

/// What is wrong with a program beside its streams and sinks.
fn of_structure(db: &dyn Db, root: SourceFile) -> Vec<&LocalDiagnostic> {
    let program = program(db, root);
    let mut found: Vec<&LocalDiagnostic> = program.problems.iter().collect();
    if !program.unknown_names {
        found.extend(&declarations(db, root).problems);
        found.extend(job(db, root).iter().flat_map(|job| &job.diagnostics));
    }
    if whole(program) {
        found.extend(graph(db, root).iter());
    }
    found
}

/// What is wrong with a file's streams, sinks and operators.
fn of_items(db: &dyn Db, root: SourceFile, file: SourceFile) -> impl Iterator<Item = &LocalDiagnostic> {
    said(db, root, file).flat_map(|said| &said.problems)
}

/// Findings with their places, sorted, together with the syntax errors of these files.
fn placed(db: &dyn Db, program: &Program, files: &[SourceFile], mut found: Vec<&LocalDiagnostic>) -> Vec<Diagnostic> {
    let places = Places::new(db, program);
    let mut out = Vec::new();
    syntax(db, program, files, &mut out);
    // Of a file with a syntax error nothing more is said, but that a file it uses can't be read.
    found.retain(|problem| {
        matches!(problem.code, "E0205" | "E0207") || !program.broken_files.contains(&problem.loc.item.file)
    });
    out.extend(found.into_iter().map(|problem| places.diagnostic(problem)));
    allow::apply(db, program, files, &mut out);
    out.sort_by(|a, b| (a.place, a.severity, a.code).cmp(&(b.place, b.severity, b.code)));
    out.dedup();
    out
}

/// Findings that are shown. More come from a file of another kind, or from one mistake that is made everywhere.
const MAX_FINDINGS: usize = 1_000;

/// Keeps the first findings, errors before warnings.
fn limited(out: &mut Vec<Diagnostic>) {
    let surplus = out.len().saturating_sub(MAX_FINDINGS);
    let Some(place) = out.first().map(|first| first.place).filter(|_| surplus > 0) else { return };
    let errors = out.iter().filter(|problem| problem.severity == Severity::Error).count();
    let (mut errors_left, mut others_left) = (MAX_FINDINGS, MAX_FINDINGS.saturating_sub(errors));
    out.retain(|problem| {
        let left = if problem.severity == Severity::Error { &mut errors_left } else { &mut others_left };
        let keep = *left > 0;
        *left -= usize::from(keep);
        keep
    });
    let message = format!("{surplus} more findings are not shown");
    out.push(Diagnostic::warning("W0203", place, message, "").help("mend what is shown, and check again"));
}

/// Files that can't be read, and syntax errors.
fn syntax(db: &dyn Db, program: &Program, files: &[SourceFile], out: &mut Vec<Diagnostic>) {
    for (index, file) in program.files.iter().enumerate().filter(|(_, file)| files.contains(file)) {
        let place = |span: Span| Place { file: FileId(index as u32), start: span.start, end: span.end };
        if let Err(why) = file.text(db) {
            let message = format!("can't read `{}`: {why}", file.path(db).display());
            out.push(Diagnostic::error("E0207", place(Span::default()), message, ""));
        }
        for error in &parse(db, *file).errors {
            let mut diagnostic =
                Diagnostic::error(error.code, place(error.span), error.message.clone(), error.label.clone());
            for (span, words) in &error.related {
                diagnostic = diagnostic.related(place(*span), words.clone());
            }
            diagnostic.help.clone_from(&error.help);
            diagnostic.notes.extend(unknown_callee(db, program, *file, error));
            if let Some((span, text)) = &error.fix {
                let title = if text.is_empty() { "take it out".to_string() } else { format!("write `{text}`") };
                diagnostic = diagnostic.fix(title, place(*span), text.clone());
            }
            out.push(diagnostic);
        }
    }
}

/// `wher(status = "paid")`: of an operator that isn't there nothing would be said as long as the mistake inside its brackets stands.
fn unknown_callee(db: &dyn Db, program: &Program, file: SourceFile, error: &SyntaxError) -> Option<String> {
    if error.code != "E0113" {
        return None;
    }
    let (text, parsed) = (file.text(db).as_ref().ok()?, parse(db, file));
    let before = parsed.tokens.partition_point(|token| token.span.start < error.span.start);
    let mut tokens = parsed.tokens[..before].iter().rev().filter(|token| !token.kind.is_trivia());
    let mut closed = 0;
    let opened = |token: &&Token| {
        match token.kind {
            TokenKind::RParen => closed += 1,
            TokenKind::LParen if closed == 0 => return true,
            TokenKind::LParen => closed -= 1,
            _ => {}
        }
        false
    };
    tokens.find(opened)?;
    let name = tokens.next().filter(|token| token.kind == TokenKind::Name)?.text(text);
    let link = tokens.next().is_some_and(|token| token.kind == TokenKind::Pipe);
    let known = !table().roles(name).is_empty()
        || program.find(Namespace::Operator, name).is_some()
        || program.hidden.contains(name)
        || program.unknown_names;
    if !link || known {
        return None;
    }
    let nowhere =
        Loc { item: ItemKey { file: 0, namespace: Namespace::Job, name: String::new(), nth: 0 }, span: error.span };
    let unknown = unknown_operator(name, Role::Shuffle, nowhere);
    Some(match unknown.help.or(unknown.notes.into_iter().next()) {
        Some(help) => format!("{}: {help}", unknown.message),
        None => unknown.message,
    })
}

/// An item's key, its name borrowed.
type Named<'db> = (u32, Namespace, &'db str, u32);

/// Where the items of a program stand.
pub struct Places<'p, 'db> {
    db: &'db dyn Db,
    program: &'p Program,
    /// Counted when the first place is asked for: most programs have no findings.
    items: OnceCell<HashMap<Named<'db>, (FileId, ItemNode, u32)>>,
}

impl<'p, 'db> Places<'p, 'db> {
    /// The items of a program.
    pub fn new(db: &'db dyn Db, program: &'p Program) -> Self {
        Places { db, program, items: OnceCell::new() }
    }

    fn items(&self) -> &HashMap<Named<'db>, (FileId, ItemNode, u32)> {
        self.items.get_or_init(|| {
            let mut items = HashMap::new();
            for (i, file) in self.program.files.iter().enumerate() {
                let index = file.index(self.db);
                let mut counted: HashMap<&Slot, u32> = HashMap::new();
                let named = file_items(self.db, *file).iter().zip(file.slots(self.db).iter());
                for ((item, slot), start) in named.zip(file.starts(self.db).iter()) {
                    let nth = counted.entry(slot).or_default();
                    let named = (index, slot.namespace, slot.name.as_str(), *nth);
                    items.insert(named, (FileId(i as u32), *item, *start));
                    *nth += 1;
                }
            }
            items
        })
    }

    /// The place of a span inside an item.
    pub fn place(&self, loc: &Loc) -> Place {
        let ItemKey { file, namespace, name, nth } = &loc.item;
        match self.items().get(&(*file, *namespace, name.as_str(), *nth)) {
            Some((file, item, start)) => {
                let span = places::resolve(item.kind(self.db), loc.span).shift(*start);
                Place { file: *file, start: span.start, end: span.end }
            }
            None => Place { file: FileId(0), start: 0, end: 0 },
        }
    }

    fn diagnostic(&self, local: &LocalDiagnostic) -> Diagnostic {
        Diagnostic {
            code: local.code,
            severity: local.severity,
            message: local.message.clone(),
            place: self.place(&local.loc),
            label: local.label.clone(),
            related: local.related.iter().map(|(loc, words)| (self.place(loc), words.clone())).collect(),
            notes: local.notes.clone(),
            help: local.help.clone(),
            fixes: local
                .fixes
                .iter()
                .map(|(title, loc, text)| Fix { title: title.clone(), place: self.place(loc), text: text.clone() })
                .collect(),
        }
    }
}

/// What a program is, as far as it is known.
pub fn summary(db: &dyn Db, root: SourceFile) -> Summary {
    let program = program(db, root);
    if program.broken {
        return Summary::default();
    }
    let streams = program.in_root(db, Namespace::Stream).into_iter().map(|item| {
        let columns = stream_columns(db, root, item).as_ref();
        let fields = columns.map(|c| c.iter().map(|c| Field::new(c.name.clone(), c.ty.clone())).collect());
        let is_source = matches!(item.kind(db).as_ref(), dfc_grammar::ast::ItemKind::Source(_));
        StreamSummary {
            name: item.key(db).name.clone(),
            role: if is_source { "source" } else { "stream" },
            schema: fields.map(|fields| Schema { fields }),
        }
    });
    let sinks = program.in_root(db, Namespace::Sink).into_iter().flat_map(|item| checks(db, root, item));
    let sinks = sinks.flat_map(|check| check.sinks.clone());
    let sinks = sinks.map(|(name, schema)| StreamSummary { name, role: "sink", schema });
    Summary {
        job: job(db, root).as_ref().map(|job| job.job.name.clone()),
        guarantees: guarantees(db, root).clone(),
        streams: streams.collect(),
        sinks: sinks.collect(),
    }
}

/// The names of a program's parameters of the type `secret`.
pub fn secret_parameters(db: &dyn Db, root: SourceFile) -> Vec<String> {
    let is_secret = |item: &ItemNode| match item.kind(db).as_ref() {
        ItemKind::Param(param) => matches!(&param.ty.kind, TypeKind::Name(name) if name == "secret"),
        _ => false,
    };
    program(db, root).of(db, Namespace::Value).filter(is_secret).map(|item| item.key(db).name.clone()).collect()
}

/// What a program lacks to be run although it is sound: a job, values of parameters.
pub fn unfit_to_run(db: &dyn Db, root: SourceFile) -> Vec<Diagnostic> {
    let program = program(db, root);
    let places = Places::new(db, program);
    if program.in_root(db, Namespace::Job).is_empty() {
        let start = Place { file: FileId(0), start: 0, end: 0 };
        let message = "this file has no job: it is a library, and can't be run";
        return vec![
            Diagnostic::error("E0203", start, message, "")
                .help("add `job name {}` and a sink, or run a file that uses it"),
        ];
    }
    let unset = declarations(db, root).unset.iter().map(|(name, loc)| {
        Diagnostic::error("E0622", places.place(loc), format!("the parameter `{name}` has no value"), "no default")
            .help(format!("give one, `--set {name}=…`, or declare a default"))
    });
    unset.collect()
}

/// A sound program without a plan: a mistake of the compiler's own, said as such.
pub fn no_plan() -> Diagnostic {
    let start = Place { file: FileId(0), start: 0, end: 0 };
    Diagnostic::error("E0299", start, "the compiler found no error, but could not make a plan", "")
        .help("this is a defect of the compiler: please report it with the pipeline")
}
