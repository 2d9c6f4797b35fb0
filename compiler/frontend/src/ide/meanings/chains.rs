//! The names in chains: streams, operators, their parameters and the fields that they name.

use dfc_grammar::ast::{Arg, Call, Chain, Expr, ExprKind, Ident, ItemKind, TypeKind};
use dfc_typeck::{Column, Namespace};

use super::{Meaning, Rows, TokenClass, Walk, field, named};
use crate::items::ItemNode;
use crate::operators::{Kind, Operator, Param, Role, table};
use crate::places;

impl Walk<'_, '_> {
    /// A chain; gives the fields behind it.
    pub(super) fn chain(&mut self, chain: &Chain, sink: bool) -> Option<Vec<Column>> {
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

    pub(super) fn head(&mut self, head: &Expr) -> Option<Vec<Column>> {
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
    pub(super) fn call(&mut self, call: &Call, role: Role, input: Option<&[Column]>, output: Option<&[Column]>) {
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
    pub(super) fn users_call(&mut self, call: &Call, input: Option<&[Column]>) {
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
    pub(super) fn parameter(&mut self, label: &Ident, item: Option<ItemNode>) {
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
    pub(super) fn stream(&mut self, arg: &Arg) -> Option<Vec<Column>> {
        match &arg.value.kind {
            ExprKind::Chain(chain) => self.chain(chain, false),
            _ => self.head(&arg.value),
        }
    }

    /// An argument that may have a label of its own: `new: old`.
    pub(super) fn value(&mut self, arg: &Arg, rows: Rows<'_>, output: Option<&[Column]>) {
        if let Some(label) = &arg.label {
            self.label(label, arg.span, output);
        }
        self.expr(&arg.value, rows);
    }

    /// A list of fields with labels, or one expression.
    pub(super) fn expr_or_fields(&mut self, value: &Expr, rows: Rows<'_>, output: Option<&[Column]>) {
        match &value.kind {
            ExprKind::List(items) => items.iter().for_each(|item| self.value(item, rows, output)),
            _ => self.expr(value, rows),
        }
    }

    /// The fields of a source or sink.
    pub(super) fn type_arg(&mut self, arg: &Arg, role: Role, left: &[Column]) {
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

    pub(super) fn target(&mut self, target: Meaning, name: &str, left: &[Column]) {
        let written = left.iter().find(|column| column.name == name);
        self.unite(written.and_then(field), Some(target));
    }

    /// A condition over two sides. `on: id` means both.
    pub(super) fn condition(&mut self, e: &Expr, left: &[Column], right: &[Column]) {
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
