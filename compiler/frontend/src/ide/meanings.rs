//! What each name in an item means: which declaration, field or operator.
//!
//! One walk over an item's tree, with the fields that the checker had at each point of its chains. A field is known by the
//! step that gave it its name ([`Meaning::Field`]); where two such steps must have one name for the program to hold
//! together (both branches of a `union`, both sides of `on: id`), the walk says so ([`Meanings::same`]).
//!
//! It may not know files: places are those of the item.

mod chains;
mod members;

use std::sync::Arc;

use dfc_grammar::ast::{
    DeclParam, Expr, ExprKind, FieldDecl, Ident, ItemKind, OutputTerm, ParamKind, Setting, SettingValue, Span, Stmt,
    TypeExpr, TypeKind,
};
use dfc_typeck::{Column, ItemKey, Loc, Namespace};

use self::members::declared_field;
use crate::check::{Trace, trace};
use crate::cycles::is_cyclic;
use crate::db::{Db, SourceFile};
use crate::items::{ItemNode, Program, program};
use crate::places::PartIndex;

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    /// An item of the program.
    Item(ItemKey),
    /// A field, by the counted place of the step that gave it its name, and that name.
    Field(ItemKey, u32, String),
    /// A name that only its item declares: a parameter, a state, a field of a record inside a record; by where in the item.
    Local(ItemKey, u32),
}

/// What a word is, for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenClass {
    /// A word of the language.
    Keyword,
    /// A comment.
    Comment,
    /// A text.
    String,
    /// A number, a date, a length of time.
    Number,
    /// `|>`, `+`, `==` and their like.
    Symbol,
    /// A job's name.
    Job,
    /// A source or stream.
    Stream,
    /// An operator.
    Operator,
    /// A function.
    Function,
    /// An aggregate function.
    Aggregate,
    /// A parameter of the pipeline, a function or an operator.
    Parameter,
    /// An argument's name.
    Label,
    /// A field.
    Field,
    /// A built-in type.
    Type,
    /// A record.
    Record,
    /// A constant.
    Constant,
    /// One of the names that a parameter takes.
    EnumValue,
    /// A setting of a job.
    Setting,
}

/// A name in an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Word {
    /// Where, relative to the item.
    pub span: Span,
    /// What it is.
    pub class: TokenClass,
    /// What it means: nothing for what is built in, several where it stands for a field of each side.
    pub meanings: Vec<Meaning>,
    /// Whether it is declared here.
    pub declares: bool,
}

/// A declared field that has no name of its own outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unnamed {
    /// The field.
    pub field: Meaning,
    /// Where its declaration ends, relative to the item.
    pub end: u32,
}

/// The names of an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meanings {
    /// By place.
    pub words: Vec<Word>,
    /// Fields that must have one name.
    pub same: Vec<(Meaning, Meaning)>,
    /// Fields of records that are called outside as they are here.
    pub unnamed: Vec<Unnamed>,
    /// Names of rows and their fields that mean nothing because of a mistake, with their places relative to the item.
    pub lost: Vec<(Span, String)>,
}

impl Meanings {
    /// The word at an offset of the item: the one around it, else the one that ends there.
    pub fn at(&self, offset: u32) -> Option<&Word> {
        let touching = self.words.iter().filter(|w| w.span.start <= offset && offset <= w.span.end);
        touching.max_by_key(|word| word.span.start)
    }
}

/// The step that gave a field its name.
pub fn field(column: &Column) -> Option<Meaning> {
    let step = column.path.iter().rev().find(|step| step.was.is_some()).or(column.path.first())?;
    Some(named(&step.loc, &column.name))
}

fn named(loc: &Loc, name: &str) -> Meaning {
    Meaning::Field(loc.item.clone(), loc.span.start, name.to_owned())
}

/// The names of an item.
#[salsa::tracked]
pub fn meanings(db: &dyn Db, root: SourceFile, item: ItemNode) -> Arc<Meanings> {
    let (key, kind) = (item.key(db), item.kind(db));
    let trace = match kind.as_ref() {
        ItemKind::Source(_) | ItemKind::Sink(_) => trace(db, root, key, kind, false),
        ItemKind::Stream(_) if !is_cyclic(db, root, item) => trace(db, root, key, kind, false),
        _ => Trace::default(),
    };
    let mut walk = Walk {
        program: program(db, root),
        db,
        key,
        parts: PartIndex::new(key, kind),
        trace,
        locals: Vec::new(),
        out: Meanings::default(),
    };
    walk.item(kind);
    walk.out.words.sort_by_key(|word| (word.span.start, word.span.end));
    Arc::new(walk.out)
}

/// The fields that an expression sees.
#[derive(Clone, Copy)]
enum Rows<'r> {
    None,
    One(&'r [Column]),
    Two(&'r [Column], &'r [Column]),
}

struct Walk<'w, 'db> {
    db: &'db dyn Db,
    program: &'w Program,
    key: &'w ItemKey,
    parts: PartIndex,
    trace: Trace,
    /// Names of the item's own: parameters, states, `let`s, with where they are declared.
    locals: Vec<(String, u32)>,
    out: Meanings,
}

impl Walk<'_, '_> {
    fn item(&mut self, kind: &ItemKind) {
        match kind {
            ItemKind::Job(job) => {
                self.own(&job.name, TokenClass::Job);
                self.settings(&job.settings);
            }
            ItemKind::Param(param) => {
                self.own(&param.name, TokenClass::Parameter);
                self.ty(&param.ty);
                param.default.iter().for_each(|e| self.expr(e, Rows::None));
            }
            ItemKind::Const(constant) => {
                self.own(&constant.name, TokenClass::Constant);
                constant.ty.iter().for_each(|ty| self.ty(ty));
                self.expr(&constant.value, Rows::None);
            }
            ItemKind::Record(record) => {
                self.own(&record.name, TokenClass::Record);
                self.fields(&record.fields, true);
            }
            ItemKind::Source(source) => {
                self.own(&source.name, TokenClass::Stream);
                self.chain(&source.chain, false);
            }
            ItemKind::Stream(stream) => {
                self.own(&stream.name, TokenClass::Stream);
                self.chain(&stream.chain, false);
            }
            ItemKind::Sink(sink) => sink.chains.iter().for_each(|chain| {
                self.chain(chain, true);
            }),
            ItemKind::Fn(decl) => {
                self.own(&decl.name, TokenClass::Function);
                self.params(&decl.params);
                decl.result.iter().for_each(|ty| self.ty(ty));
                self.expr(&decl.body, Rows::None);
            }
            ItemKind::Operator(decl) => {
                self.own(&decl.name, TokenClass::Operator);
                self.params(&decl.params);
                for (_, term) in &decl.output.terms {
                    match term {
                        OutputTerm::Fields(fields) => self.fields(fields, false),
                        OutputTerm::Name(name) => self.name(&name.text, name.span, Rows::None),
                        OutputTerm::Rule(_) => {}
                    }
                }
                for state in &decl.states {
                    self.local(&state.name);
                    self.ty(&state.ty);
                    self.expr(&state.init, Rows::None);
                    state.by.iter().for_each(|key| self.name(&key.text, key.span, Rows::None));
                }
                decl.handlers.iter().for_each(|handler| self.statements(&handler.body));
            }
            ItemKind::Use(_) | ItemKind::Native(_) => {}
        }
    }

    // --- words ---

    fn word(&mut self, span: Span, class: TokenClass, meanings: Vec<Meaning>, declares: bool) {
        self.out.words.push(Word { span, class, meanings, declares });
    }

    /// The item's own name.
    fn own(&mut self, name: &Ident, class: TokenClass) {
        self.word(name.span, class, vec![Meaning::Item(self.key.clone())], true);
    }

    /// A name of the item's own.
    fn local(&mut self, name: &Ident) {
        self.locals.push((name.text.clone(), name.span.start));
        self.word(name.span, TokenClass::Parameter, vec![Meaning::Local(self.key.clone(), name.span.start)], true);
    }

    fn item_word(&mut self, span: Span, class: TokenClass, namespace: Namespace, name: &str) {
        let found = self.program.find(namespace, name).map(|item| Meaning::Item(item.key(self.db).clone()));
        if let Some(meaning) = found {
            self.word(span, class, vec![meaning], false);
        }
    }

    /// A field that gets its name at a label.
    fn label(&mut self, label: &Ident, at: Span, output: Option<&[Column]>) -> Meaning {
        let column = output.and_then(|columns| columns.iter().find(|column| column.name == label.text));
        let meaning = column.and_then(field).unwrap_or_else(|| named(&self.parts.place(at), &label.text));
        self.word(label.span, TokenClass::Field, vec![meaning.clone()], true);
        meaning
    }

    fn unite(&mut self, a: Option<Meaning>, b: Option<Meaning>) {
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            self.out.same.push((a, b));
        }
    }

    // --- declarations ---

    fn params(&mut self, params: &[DeclParam]) {
        for param in params {
            self.local(&param.name);
            match &param.kind {
                ParamKind::Const(ty) | ParamKind::Row(ty) | ParamKind::Agg(ty) | ParamKind::Pair(ty) => self.ty(ty),
                ParamKind::Enum(values) => {
                    values.iter().for_each(|value| self.word(value.span, TokenClass::EnumValue, Vec::new(), false));
                }
                ParamKind::Bare(kind) => self.word(kind.span, TokenClass::Type, Vec::new(), false),
            }
            param.default.iter().for_each(|e| self.expr(e, Rows::None));
        }
    }

    /// Declared fields. `outside`: of a record, whose names are also those of what is read and written.
    fn fields(&mut self, fields: &[FieldDecl], outside: bool) {
        for decl in fields {
            let field = declared_field(self.key, &self.parts, decl);
            if outside && decl.external.is_none() {
                self.out.unnamed.push(Unnamed { field: field.clone(), end: decl.ty.span.end });
            }
            self.word(decl.name.span, TokenClass::Field, vec![field], true);
            self.ty(&decl.ty);
        }
    }

    fn ty(&mut self, ty: &TypeExpr) {
        match &ty.kind {
            TypeKind::Name(name) => {
                let quotes = ty.span.end - ty.span.start - u32::from(ty.nullable) > name.len() as u32;
                let end = ty.span.start + name.len() as u32 + if quotes { 2 } else { 0 };
                let span = Span { start: ty.span.start, end: end.min(ty.span.end) };
                match self.program.find(Namespace::Record, name) {
                    Some(_) => self.item_word(span, TokenClass::Record, Namespace::Record, name),
                    None => self.word(span, TokenClass::Type, Vec::new(), false),
                }
            }
            TypeKind::Decimal(_) => self.prefix(ty.span.start, "decimal"),
            TypeKind::List(item) => {
                self.prefix(ty.span.start, "list");
                self.ty(item);
            }
            TypeKind::Record(fields) => {
                self.prefix(ty.span.start, "record");
                self.fields(fields, true);
            }
        }
    }

    fn prefix(&mut self, start: u32, word: &str) {
        let span = Span { start, end: start + word.len() as u32 };
        self.word(span, TokenClass::Type, Vec::new(), false);
    }

    fn settings(&mut self, settings: &[Setting]) {
        for setting in settings {
            self.word(setting.name.span, TokenClass::Setting, Vec::new(), false);
            match &setting.value {
                SettingValue::Block(inner) => self.settings(inner),
                SettingValue::Expr(Expr { kind: ExprKind::Name(name), span }) => {
                    match self.program.find(Namespace::Value, name) {
                        Some(_) => self.name(name, *span, Rows::None),
                        None => self.word(*span, TokenClass::EnumValue, Vec::new(), false),
                    }
                }
                SettingValue::Expr(e) => self.expr(e, Rows::None),
            }
        }
    }

    fn statements(&mut self, body: &[Stmt]) {
        for statement in body {
            match statement {
                Stmt::Let(name, e) => {
                    self.expr(e, Rows::None);
                    self.local(name);
                }
                Stmt::Assign(name, e) => {
                    self.name(&name.text, name.span, Rows::None);
                    self.expr(e, Rows::None);
                }
                Stmt::Emit(e, _) => self.expr(e, Rows::None),
                Stmt::If(condition, then, otherwise) => {
                    self.expr(condition, Rows::None);
                    self.statements(then);
                    self.statements(otherwise);
                }
            }
        }
    }
}
