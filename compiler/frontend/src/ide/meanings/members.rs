//! The names in expressions, and the declared fields that a member's name means.

use dfc_grammar::ast::{
    Call, Chain, Expr, ExprKind, FieldDecl, Ident, ItemKind, RecordEntry, Span, TypeExpr, TypeKind,
};
use dfc_typeck::{Column, FunctionTable, ItemKey, Loc, Namespace};

use super::{Meaning, Rows, TokenClass, Walk, field, named};
use crate::items::{ItemNode, is_flow};
use crate::places::{self, PartIndex};

impl Walk<'_, '_> {
    pub(super) fn name(&mut self, name: &str, span: Span, rows: Rows<'_>) {
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

    pub(super) fn expr(&mut self, e: &Expr, rows: Rows<'_>) {
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

    pub(super) fn function(&mut self, call: &Call, rows: Rows<'_>) {
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

    pub(super) fn member(&mut self, base: &Expr, member: &Ident, rows: Rows<'_>) {
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
pub(super) fn declared_field(key: &ItemKey, parts: &PartIndex, decl: &FieldDecl) -> Meaning {
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
