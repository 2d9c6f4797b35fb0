//! What each name in an item means: which declaration, field or operator.
//!
//! One walk over an item's tree, with the fields that the checker had at each point of its chains. A field is known by the
//! step that gave it its name ([`Meaning::Field`]); where two such steps must have one name for the program to hold
//! together (both branches of a `union`, both sides of `on: id`), the walk says so ([`Meanings::same`]).
//!
//! It may not know files: places are those of the item.

use std::sync::Arc;

use dfc_grammar::ast::{
    Arg, Call, Chain, DeclParam, Expr, ExprKind, FieldDecl, Ident, ItemKind, OutputTerm, ParamKind, RecordEntry,
    Setting, SettingValue, Span, Stmt, TypeExpr, TypeKind,
};
use dfc_typeck::{Column, FunctionTable, ItemKey, Loc, Namespace};

use crate::check::{Trace, trace};
use crate::cycles::is_cyclic;
use crate::db::{Db, SourceFile};
use crate::items::{ItemNode, Program, is_flow, program};
use crate::operators::{Kind, Operator, Param, Role, table};
use crate::places::{self, PartIndex};

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

    // --- chains ---

    /// A chain; gives the fields behind it.
    fn chain(&mut self, chain: &Chain, sink: bool) -> Option<Vec<Column>> {
        let mut columns = self.head(&chain.head);
        for (position, link) in chain.links.iter().enumerate() {
            let last = position + 1 == chain.links.len();
            let role = if sink && last { Role::Sink } else { Role::Shuffle };
            let output = self.trace.after(link.span).map(<[Column]>::to_vec);
            self.call(link, role, columns.as_deref(), output.as_deref());
            columns = output;
        }
        columns
    }

    fn head(&mut self, head: &Expr) -> Option<Vec<Column>> {
        let columns = self.trace.after(head.span).map(<[Column]>::to_vec);
        match &head.kind {
            ExprKind::Name(name) => self.item_word(head.span, TokenClass::Stream, Namespace::Stream, name),
            ExprKind::Paren(inner) => return self.head(inner),
            ExprKind::Chain(chain) => return self.chain(chain, false),
            ExprKind::Call(call) => {
                let role = if call.name.text == "union" { Role::Shuffle } else { Role::Source };
                self.call(call, role, None, columns.as_deref());
            }
            _ => {}
        }
        columns
    }

    /// An operator's call, from its input's fields to its output's.
    fn call(&mut self, call: &Call, role: Role, input: Option<&[Column]>, output: Option<&[Column]>) {
        let Some(operator) = table().get(&call.name.text, role) else {
            self.users_call(call, input);
            return;
        };
        self.word(call.name.span, TokenClass::Operator, Vec::new(), false);
        let given = given(operator, call);
        let other = given.iter().find_map(|(arg, param)| match param.map(|p| &p.kind) {
            Some(Kind::Stream | Kind::Source) if operator.name != "union" => Some(arg),
            _ => None,
        });
        // The other side first: conditions see it.
        let right = other.and_then(|arg| self.stream(arg));
        let left = input.unwrap_or_default();
        for (arg, param) in &given {
            let names_param =
                arg.label.as_ref().is_some_and(|l| param.is_some_and(|p| p.name == l.text && !p.variadic));
            if let (Some(label), true) = (&arg.label, names_param) {
                self.word(label.span, TokenClass::Label, Vec::new(), false);
            }
            let Some(param) = param else {
                self.value(arg, Rows::One(left), output);
                continue;
            };
            match &param.kind {
                Kind::Stream | Kind::Source if operator.name == "union" => {
                    let branch = self.stream(arg);
                    for column in branch.iter().flatten() {
                        let united = output.and_then(|out| out.iter().find(|c| c.name == column.name));
                        self.unite(united.and_then(field), field(column));
                    }
                }
                Kind::Stream | Kind::Source => {}
                Kind::Enum(_) => self.word(arg.value.span, TokenClass::EnumValue, Vec::new(), false),
                Kind::Const(_) => self.expr(&arg.value, Rows::None),
                Kind::Type => self.type_arg(arg, role, left),
                Kind::Pair => self.condition(&arg.value, left, right.as_deref().unwrap_or_default()),
                Kind::Field | Kind::Fields if param.name == "take" && right.is_some() => {
                    let right = right.as_deref().unwrap_or_default();
                    self.expr_or_fields(&arg.value, Rows::Two(&[], right), output);
                }
                Kind::Row(_) | Kind::Agg(_) if !names_param => {
                    let label = arg.label.as_ref().map(|label| self.label(label, arg.span, output));
                    if let (Some(label), Some(before)) = (label, arg.label.as_ref()) {
                        // `derive(price: price * 2)` puts a new field in the old one's place: it must stay there.
                        let replaced = left.iter().find(|c| c.name == before.text && operator.name == "derive");
                        self.unite(replaced.and_then(field), Some(label));
                    }
                    self.expr(&arg.value, Rows::One(left));
                }
                _ if names_param => self.expr_or_fields(&arg.value, Rows::One(left), output),
                _ => self.value(arg, Rows::One(left), output),
            }
        }
    }

    /// A call of an operator that the program declares, or of none.
    fn users_call(&mut self, call: &Call, input: Option<&[Column]>) {
        self.item_word(call.name.span, TokenClass::Operator, Namespace::Operator, &call.name.text);
        let item = self.program.find(Namespace::Operator, &call.name.text);
        for arg in &call.args {
            if let Some(label) = &arg.label {
                self.parameter(label, item);
                if item.is_none() {
                    // It may be the name of a field.
                    self.out.lost.push((label.span, label.text.clone()));
                }
            }
            self.expr(&arg.value, Rows::One(input.unwrap_or_default()));
        }
    }

    /// The label of an argument of a function or an operator that the program declares.
    fn parameter(&mut self, label: &Ident, item: Option<ItemNode>) {
        let meaning = item.and_then(|item| {
            let params = match item.kind(self.db).as_ref() {
                ItemKind::Fn(decl) => &decl.params,
                ItemKind::Operator(decl) => &decl.params,
                _ => return None,
            };
            let param = params.iter().find(|param| param.name.text == label.text)?;
            Some(Meaning::Local(item.key(self.db).clone(), param.name.span.start))
        });
        self.word(label.span, TokenClass::Label, meaning.into_iter().collect(), false);
    }

    /// A stream in an argument's place; gives its fields.
    fn stream(&mut self, arg: &Arg) -> Option<Vec<Column>> {
        match &arg.value.kind {
            ExprKind::Chain(chain) => self.chain(chain, false),
            _ => self.head(&arg.value),
        }
    }

    /// An argument that may have a label of its own: `new: old`.
    fn value(&mut self, arg: &Arg, rows: Rows<'_>, output: Option<&[Column]>) {
        if let Some(label) = &arg.label {
            self.label(label, arg.span, output);
        }
        self.expr(&arg.value, rows);
    }

    /// A list of fields with labels, or one expression.
    fn expr_or_fields(&mut self, value: &Expr, rows: Rows<'_>, output: Option<&[Column]>) {
        match &value.kind {
            ExprKind::List(items) => items.iter().for_each(|item| self.value(item, rows, output)),
            _ => self.expr(value, rows),
        }
    }

    /// The fields of a source or sink.
    fn type_arg(&mut self, arg: &Arg, role: Role, left: &[Column]) {
        match &arg.value.kind {
            ExprKind::Name(name) => {
                self.item_word(arg.value.span, TokenClass::Record, Namespace::Record, name);
                let Some(record) = self.program.find(Namespace::Record, name) else { return };
                if role != Role::Sink {
                    return;
                }
                // A sink's record is filled by name.
                let ItemKind::Record(decl) = record.kind(self.db).as_ref() else { return };
                for (number, declared) in decl.fields.iter().enumerate() {
                    let target = named(&places::part(record.key(self.db), number + 1), &declared.name.text);
                    self.target(target, &declared.name.text, left);
                }
            }
            ExprKind::Type(ty) => {
                self.ty(ty);
                if let (TypeKind::Record(fields), Role::Sink) = (&ty.kind, role) {
                    for decl in fields {
                        let target = named(&self.parts.place(decl.name.span), &decl.name.text);
                        self.target(target, &decl.name.text, left);
                    }
                }
            }
            _ => {}
        }
    }

    fn target(&mut self, target: Meaning, name: &str, left: &[Column]) {
        let written = left.iter().find(|column| column.name == name);
        self.unite(written.and_then(field), Some(target));
    }

    /// A condition over two sides. `on: id` means both.
    fn condition(&mut self, e: &Expr, left: &[Column], right: &[Column]) {
        match &e.kind {
            ExprKind::Paren(inner) => self.condition(inner, left, right),
            ExprKind::Binary(dfc_grammar::ast::BinaryOp::And, _, a, b) => {
                self.condition(a, left, right);
                self.condition(b, left, right);
            }
            ExprKind::Name(name) => {
                let side = |columns: &[Column]| columns.iter().find(|c| c.name == *name).and_then(field);
                match (side(left), side(right)) {
                    (Some(l), Some(r)) => {
                        self.word(e.span, TokenClass::Field, vec![l.clone(), r.clone()], false);
                        self.unite(Some(l), Some(r));
                    }
                    _ => self.expr(e, Rows::Two(left, right)),
                }
            }
            _ => self.expr(e, Rows::Two(left, right)),
        }
    }

    // --- expressions ---

    fn name(&mut self, name: &str, span: Span, rows: Rows<'_>) {
        let columns = match rows {
            Rows::None => [&[][..], &[]],
            Rows::One(row) => [row, &[]],
            Rows::Two(left, right) => [left, right],
        };
        if let Some(column) = columns.into_iter().flatten().find(|column| column.name == name) {
            self.word(span, TokenClass::Field, field(column).into_iter().collect(), false);
            return;
        }
        if let Some((_, at)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            let meaning = Meaning::Local(self.key.clone(), *at);
            self.word(span, TokenClass::Parameter, vec![meaning], false);
            return;
        }
        let Some(item) = self.program.find(Namespace::Value, name) else {
            if is_flow(self.key) {
                self.out.lost.push((span, name.to_owned()));
            }
            return;
        };
        let constant = matches!(item.kind(self.db).as_ref(), ItemKind::Const(_));
        let class = if constant { TokenClass::Constant } else { TokenClass::Parameter };
        self.item_word(span, class, Namespace::Value, name);
    }

    fn expr(&mut self, e: &Expr, rows: Rows<'_>) {
        match &e.kind {
            ExprKind::Name(name) => self.name(name, e.span, rows),
            ExprKind::Call(call) => self.function(call, rows),
            ExprKind::Field(base, member) => self.member(base, member, rows),
            ExprKind::Chain(chain) => drop(self.chain(chain, false)),
            ExprKind::Type(ty) => self.ty(ty),
            ExprKind::List(items) => {
                for item in items {
                    if let Some(label) = &item.label {
                        self.label(label, item.span, None);
                    }
                    self.expr(&item.value, rows);
                }
            }
            kind => {
                if let ExprKind::Record(entries) = kind {
                    for entry in entries {
                        if let RecordEntry::Field(name, _) = entry {
                            self.word(name.span, TokenClass::Field, Vec::new(), true);
                        }
                    }
                }
                e.for_each_child(&mut |child| self.expr(child, rows));
                if let ExprKind::Cast { ty, .. } = kind {
                    self.ty(ty);
                }
            }
        }
    }

    fn function(&mut self, call: &Call, rows: Rows<'_>) {
        let name = &call.name.text;
        match FunctionTable::standard().get(name) {
            _ if self.program.find(Namespace::Fn, name).is_some() => {
                self.item_word(call.name.span, TokenClass::Function, Namespace::Fn, name);
            }
            Some(native) => {
                let class = if native.aggregate { TokenClass::Aggregate } else { TokenClass::Function };
                self.word(call.name.span, class, Vec::new(), false);
            }
            // `asc`, `desc` and what does not exist.
            None => self.word(call.name.span, TokenClass::Function, Vec::new(), false),
        }
        let item = self.program.find(Namespace::Fn, name);
        for arg in &call.args {
            if let Some(label) = &arg.label {
                self.parameter(label, item);
            }
            let order =
                matches!(name.as_str(), "asc" | "desc") && arg.label.as_ref().is_some_and(|l| l.text == "nulls");
            match &arg.value.kind {
                ExprKind::Name(_) if order => self.word(arg.value.span, TokenClass::EnumValue, Vec::new(), false),
                _ => self.expr(&arg.value, rows),
            }
        }
    }

    fn member(&mut self, base: &Expr, member: &Ident, rows: Rows<'_>) {
        if let (ExprKind::Name(side), Rows::Two(left, right)) = (&base.kind, rows)
            && (side == "left" || side == "right")
        {
            self.word(base.span, TokenClass::Keyword, Vec::new(), false);
            let columns = if side == "left" { left } else { right };
            let found = columns.iter().find(|column| column.name == member.text).and_then(field);
            self.word(member.span, TokenClass::Field, found.into_iter().collect(), false);
            return;
        }
        self.expr(base, rows);
        let found = self.declared_type(base, rows).and_then(|ty| self.field_of(&ty, &member.text));
        let meaning = found.map(|(meaning, _)| meaning);
        self.word(member.span, TokenClass::Field, meaning.into_iter().collect(), false);
    }

    /// The type of a field or a field of a field, as it is declared.
    fn declared_type<'t>(&'t self, e: &Expr, rows: Rows<'_>) -> Option<Declared<'t>> {
        let sides = match rows {
            Rows::None => return None,
            Rows::One(row) => [row, &[]],
            Rows::Two(left, right) => [left, right],
        };
        match &e.kind {
            ExprKind::Paren(inner) => self.declared_type(inner, rows),
            ExprKind::Name(name) => {
                self.type_of_column(sides.into_iter().flatten().find(|column| column.name == *name)?)
            }
            ExprKind::Field(base, member) => match (&base.kind, rows) {
                (ExprKind::Name(side), Rows::Two(left, right)) if side == "left" || side == "right" => {
                    let columns = if side == "left" { left } else { right };
                    self.type_of_column(columns.iter().find(|column| column.name == member.text)?)
                }
                _ => self.field_of(&self.declared_type(base, rows)?, &member.text).map(|(_, ty)| ty),
            },
            ExprKind::Index(base, _) => {
                let Declared { item, ty } = self.declared_type(base, rows)?;
                let TypeKind::List(inner) = &ty.kind else { return None };
                Some(Declared { item, ty: inner })
            }
            _ => None,
        }
    }

    /// The type of a field as it is declared where it comes from; of a computed one there is none.
    fn type_of_column<'t>(&'t self, column: &Column) -> Option<Declared<'t>> {
        let loc = &column.path.first()?.loc;
        let item = *self.program.items.iter().find(|item| *item.key(self.db) == loc.item)?;
        let kind = item.kind(self.db).as_ref();
        let span = places::resolve(kind, loc.span);
        let decl = declarations(kind).into_iter().find(|decl| decl.name.span == span)?;
        Some(Declared { item, ty: &decl.ty })
    }

    /// A field of a record's type.
    fn field_of<'t>(&'t self, of: &Declared<'t>, name: &str) -> Option<(Meaning, Declared<'t>)> {
        let (item, decls) = match &of.ty.kind {
            TypeKind::Name(record) => {
                let item = self.program.find(Namespace::Record, record)?;
                let ItemKind::Record(record) = item.kind(self.db).as_ref() else { return None };
                (item, &record.fields)
            }
            TypeKind::Record(decls) => (of.item, decls),
            _ => return None,
        };
        let decl = decls.iter().find(|decl| decl.name.text == name)?;
        let parts = PartIndex::new(item.key(self.db), item.kind(self.db));
        Some((declared_field(item.key(self.db), &parts, decl), Declared { item, ty: &decl.ty }))
    }
}

/// A type with the item that it is written in.
struct Declared<'t> {
    item: ItemNode,
    ty: &'t TypeExpr,
}

/// What the name of a declared field means. Of a field inside a field's type no part is counted.
fn declared_field(key: &ItemKey, parts: &PartIndex, decl: &FieldDecl) -> Meaning {
    match parts.place(decl.name.span) {
        Loc { span: Span { start: 0, .. }, .. } => Meaning::Local(key.clone(), decl.name.span.start),
        place => named(&place, &decl.name.text),
    }
}

/// The fields that an item declares, those inside the types of others too.
fn declarations(kind: &ItemKind) -> Vec<&FieldDecl> {
    let mut out = Vec::new();
    match kind {
        ItemKind::Record(record) => record.fields.iter().for_each(|decl| declared_in(decl, &mut out)),
        ItemKind::Source(source) => declared_in_chain(&source.chain, &mut out),
        ItemKind::Stream(stream) => declared_in_chain(&stream.chain, &mut out),
        ItemKind::Sink(sink) => sink.chains.iter().for_each(|chain| declared_in_chain(chain, &mut out)),
        _ => {}
    }
    out
}

fn declared_in<'a>(decl: &'a FieldDecl, out: &mut Vec<&'a FieldDecl>) {
    out.push(decl);
    declared_in_type(&decl.ty, out);
}

fn declared_in_type<'a>(ty: &'a TypeExpr, out: &mut Vec<&'a FieldDecl>) {
    match &ty.kind {
        TypeKind::Record(decls) => decls.iter().for_each(|decl| declared_in(decl, out)),
        TypeKind::List(inner) => declared_in_type(inner, out),
        TypeKind::Name(_) | TypeKind::Decimal(_) => {}
    }
}

fn declared_in_chain<'a>(chain: &'a Chain, out: &mut Vec<&'a FieldDecl>) {
    let head = match &chain.head.kind {
        ExprKind::Call(call) => Some(call),
        _ => None,
    };
    for arg in head.into_iter().chain(&chain.links).flat_map(|call| &call.args) {
        match &arg.value.kind {
            ExprKind::Type(ty) => declared_in_type(ty, out),
            ExprKind::Chain(inner) => declared_in_chain(inner, out),
            ExprKind::Call(call) => {
                for arg in &call.args {
                    if let ExprKind::Type(ty) = &arg.value.kind {
                        declared_in_type(ty, out);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The parameter of each argument of a call, as far as there is one.
fn given<'c>(operator: &'static Operator, call: &'c Call) -> Vec<(&'c Arg, Option<&'static Param>)> {
    let variadic = operator.params.iter().find(|param| param.variadic);
    let mut positional = operator.params.iter();
    call.args
        .iter()
        .map(|arg| {
            let param = match &arg.label {
                Some(label) => operator.params.iter().find(|p| p.name == label.text && !p.variadic).or(variadic),
                None => variadic.or_else(|| positional.next()),
            };
            (arg, param)
        })
        .collect()
}
