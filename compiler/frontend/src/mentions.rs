//! Which declarations an item mentions, by name: from its tree alone.
//!
//! It may not know whether they are there. It may name more than are meant (a field may be called like a constant), never fewer.

use dfc_grammar::ast::{
    self, Arg, Call, Chain, Expr, ExprKind, FormatPart, ItemKind, OutputTerm, ParamKind, RecordEntry, Setting,
    SettingValue, Stmt, TypeExpr, TypeKind,
};
use dfc_typeck::Namespace;

use crate::items::Slot;

/// The names that a declaration uses.
#[derive(Default)]
pub struct Mentions<'e> {
    /// Each as often as it is used.
    pub names: Vec<(Namespace, &'e str)>,
}

impl<'e> Mentions<'e> {
    /// Those of an item.
    pub fn of(kind: &'e ItemKind) -> Self {
        let mut mentions = Mentions::default();
        mentions.item(kind);
        mentions
    }

    /// Those of a function's body.
    pub fn of_function(decl: &'e ast::FnDecl) -> Self {
        let mut mentions = Mentions::default();
        mentions.expr(&decl.body);
        let own = |name: &str| decl.params.iter().any(|p| p.name.text == name);
        mentions.names.retain(|(namespace, name)| *namespace != Namespace::Value || !own(name));
        mentions
    }

    /// As they are looked up.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.names.iter().map(|(namespace, name)| Slot::new(*namespace, *name))
    }

    fn item(&mut self, kind: &'e ItemKind) {
        match kind {
            ItemKind::Job(job) => self.settings(&job.settings),
            ItemKind::Param(param) => {
                self.ty(&param.ty);
                self.all(&param.default);
            }
            ItemKind::Const(constant) => {
                constant.ty.iter().for_each(|ty| self.ty(ty));
                self.expr(&constant.value);
            }
            ItemKind::Record(record) => record.fields.iter().for_each(|f| self.ty(&f.ty)),
            ItemKind::Source(source) => self.chain(&source.chain),
            ItemKind::Stream(stream) => self.chain(&stream.chain),
            ItemKind::Sink(sink) => sink.chains.iter().for_each(|chain| self.chain(chain)),
            ItemKind::Fn(decl) => {
                self.names.extend(Mentions::of_function(decl).names);
                self.params(&decl.params);
                decl.result.iter().for_each(|ty| self.ty(ty));
            }
            ItemKind::Operator(decl) => self.operator(decl),
            ItemKind::Use(_) | ItemKind::Native(_) => {}
        }
    }

    fn settings(&mut self, settings: &'e [Setting]) {
        for setting in settings {
            match &setting.value {
                SettingValue::Expr(e) => self.expr(e),
                SettingValue::Block(inner) => self.settings(inner),
            }
        }
    }

    fn operator(&mut self, decl: &'e ast::OperatorDecl) {
        self.params(&decl.params);
        for (_, term) in &decl.output.terms {
            if let OutputTerm::Fields(fields) = term {
                fields.iter().for_each(|f| self.ty(&f.ty));
            }
        }
        for state in &decl.states {
            self.ty(&state.ty);
            self.expr(&state.init);
        }
        decl.handlers.iter().for_each(|handler| self.statements(&handler.body));
    }

    fn params(&mut self, params: &'e [ast::DeclParam]) {
        for param in params {
            if let ParamKind::Const(ty) | ParamKind::Row(ty) | ParamKind::Agg(ty) | ParamKind::Pair(ty) = &param.kind {
                self.ty(ty);
            }
            self.all(&param.default);
            param.range.iter().for_each(|(low, high)| self.all([low, high]));
        }
    }

    fn statements(&mut self, statements: &'e [Stmt]) {
        for statement in statements {
            match statement {
                Stmt::Let(_, e) | Stmt::Assign(_, e) | Stmt::Emit(e, _) => self.expr(e),
                Stmt::If(condition, then, otherwise) => {
                    self.expr(condition);
                    self.statements(then);
                    self.statements(otherwise);
                }
            }
        }
    }

    fn chain(&mut self, chain: &'e Chain) {
        self.expr(&chain.head);
        for link in &chain.links {
            self.names.push((Namespace::Operator, &link.name.text));
            self.args(&link.args);
        }
    }

    fn args(&mut self, args: &'e [Arg]) {
        self.all(args.iter().map(|arg| &arg.value));
    }

    fn ty(&mut self, ty: &'e TypeExpr) {
        match &ty.kind {
            TypeKind::Name(name) => self.names.push((Namespace::Record, name)),
            TypeKind::List(item) => self.ty(item),
            TypeKind::Record(fields) => fields.iter().for_each(|f| self.ty(&f.ty)),
            TypeKind::Decimal(_) => {}
        }
    }

    fn all(&mut self, list: impl IntoIterator<Item = &'e Expr>) {
        list.into_iter().for_each(|e| self.expr(e));
    }

    fn call(&mut self, call: &'e Call) {
        self.names.push((Namespace::Fn, &call.name.text));
        self.args(&call.args);
    }

    fn expr(&mut self, e: &'e Expr) {
        match &e.kind {
            ExprKind::Error | ExprKind::Literal(_) => {}
            // A record's name is an argument: `schema: Order`.
            ExprKind::Name(name) => self.names.extend([(Namespace::Value, &**name), (Namespace::Record, &**name)]),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Chain(chain) => self.chain(chain),
            ExprKind::Field(x, _) | ExprKind::Unary(_, x) | ExprKind::Paren(x) => self.expr(x),
            ExprKind::IsNull { value, .. } => self.expr(value),
            ExprKind::Index(a, b) | ExprKind::Binary(_, _, a, b) => self.all([&**a, &**b]),
            ExprKind::Between { value, low, high, .. } => self.all([&**value, &**low, &**high]),
            ExprKind::In { value, list, .. } => self.all([&**value, &**list]),
            ExprKind::Pattern { value, pattern, .. } => self.all([&**value, &**pattern]),
            ExprKind::Cast { value, ty, .. } => {
                self.expr(value);
                self.ty(ty);
            }
            ExprKind::If(a, b, c) => self.all([&**a, &**b, &**c]),
            ExprKind::Match { subject, arms, otherwise } => {
                self.all(subject.iter().chain(otherwise).map(|e| &**e));
                for arm in arms {
                    self.all(arm.patterns.iter().chain([&arm.value]));
                }
            }
            ExprKind::List(items) => self.args(items),
            ExprKind::Record(entries) => self.all(entries.iter().map(|entry| match entry {
                RecordEntry::Field(_, value) | RecordEntry::Spread(value, _) => value,
            })),
            ExprKind::Format(parts) => self.all(parts.iter().filter_map(|part| match part {
                FormatPart::Expr(e) => Some(e),
                FormatPart::Text(_) => None,
            })),
            ExprKind::Type(ty) => self.ty(ty),
        }
    }
}
