//! Which declarations an item mentions, by name: from its tree alone.
//!
//! It may not know whether they are there. It may name more than are meant (a field may be called like a constant), never fewer. A
//! stream where one is read is no mention: a parameter may have its name.

use dfc_grammar::ast::{
    self, Call, Chain, Expr, ExprKind, ItemKind, OutputTerm, ParamKind, Setting, SettingValue, Stmt, TypeExpr, TypeKind,
};
use dfc_typeck::Namespace;

use crate::items::Slot;
use crate::operators::{Kind, Role, table};

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
        self.rows(&chain.head);
        for link in &chain.links {
            self.names.push((Namespace::Operator, &link.name.text));
            self.arguments(link);
        }
    }

    /// What gives rows: a stream's name, a chain, a call such as `union(a, b)`.
    fn rows(&mut self, e: &'e Expr) {
        match &e.kind {
            ExprKind::Name(_) => {}
            ExprKind::Call(call) => self.arguments(call),
            _ => self.expr(e),
        }
    }

    /// The arguments of an operator, of which some are streams by its declaration.
    fn arguments(&mut self, call: &'e Call) {
        let operator = table().get(&call.name.text, Role::Shuffle);
        for (arg, param) in operator.into_iter().flat_map(|operator| operator.paired(call)) {
            match param.map(|param| &param.kind) {
                Some(Kind::Stream | Kind::Source) => self.rows(&arg.value),
                _ => self.expr(&arg.value),
            }
        }
        if operator.is_none() {
            self.all(call.args.iter().map(|arg| &arg.value));
        }
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

    fn expr(&mut self, e: &'e Expr) {
        match &e.kind {
            // A record's name is an argument: `schema: Order`.
            ExprKind::Name(name) => self.names.extend([(Namespace::Value, &**name), (Namespace::Record, &**name)]),
            ExprKind::Call(call) => self.names.push((Namespace::Fn, &call.name.text)),
            ExprKind::Chain(chain) => return self.chain(chain),
            ExprKind::Cast { ty, .. } | ExprKind::Type(ty) => self.ty(ty),
            _ => {}
        }
        e.for_each_child(&mut |child| self.expr(child));
    }
}
