//! What editors are shown where an error hides the fields: the best that can be told. A field of an unknown type keeps its
//! name, an unknown operator gives what it is given, a name that nothing has stands for the nearest that something has.
//!
//! Only a walk with a trace guesses, and its findings go nowhere: what `dfc check` says never depends on this.

use std::sync::Arc;

use dfc_grammar::ast::{Call, Expr, ExprKind, FieldDecl, ItemKind, TypeExpr, TypeKind};
use dfc_ir::{DataType, Field, Type};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{Column, Loc, Namespace, Scope};

use super::ends::DECLARED;
use super::{Flow, ItemContext, broken, stream_columns};
use crate::bind::Bound;
use crate::cycles::is_cyclic;
use crate::db::{Db, SourceFile};
use crate::items::{ItemNode, find, program};
use crate::places;

/// Records inside one another that are looked into: a circle of them is an error that is told elsewhere.
const DEPTH: usize = 8;

/// The fields of a source or stream as editors show them.
#[salsa::tracked(cycle_result = in_a_circle)]
pub fn shown_columns(db: &dyn Db, root: SourceFile, item: ItemNode) -> Option<Arc<Vec<Column>>> {
    if let Some(columns) = stream_columns(db, root, item) {
        return Some(columns.clone());
    }
    if is_cyclic(db, root, item) {
        return None;
    }
    super::trace::walked(db, root, item.key(db), item.kind(db), false).0.map(Arc::new)
}

/// Guesses may lead in a circle where names as they are written don't.
fn in_a_circle(_: &dyn Db, _: salsa::Id, _: SourceFile, _: ItemNode) -> Option<Arc<Vec<Column>>> {
    None
}

/// The name that is probably meant: the nearest, or one that starts so.
fn meant<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let starts = |known: &&&str| !name.is_empty() && known.starts_with(name);
    nearest(name, known.iter().copied()).or_else(|| known.iter().find(starts).copied())
}

impl ItemContext<'_> {
    /// Whether what an error hides is guessed.
    pub(super) fn guesses(&self) -> bool {
        self.trace.is_some()
    }

    /// Whether an error hides fields that are to be guessed.
    pub(super) fn hides(&self, flow: &Flow) -> bool {
        self.guesses() && flow.columns.is_none()
    }

    /// The item that a name is meant for, whether it is written right or not.
    fn meant(&self, namespace: Namespace, name: &str) -> Option<ItemNode> {
        find(self.db, self.root, namespace, name).or_else(|| {
            let program = program(self.db, self.root);
            let others: Vec<&str> = program.names_of(namespace).filter(|other| *other != self.item.name).collect();
            program.find(namespace, meant(name, &others)?)
        })
    }

    /// The source or stream that a name is probably meant for.
    pub(super) fn guessed_stream(&self, name: &str) -> Option<ItemNode> {
        self.guesses().then(|| self.meant(Namespace::Stream, name)).flatten()
    }

    /// The fields of what a chain starts with, where an error hides them.
    pub(super) fn guessed_head(&mut self, head: &Expr) -> Flow {
        match &head.kind {
            ExprKind::Name(name) => self.stream(name),
            ExprKind::Call(call) => Flow::new(self.guessed_source(call), None),
            _ => Flow::unknown(),
        }
    }

    /// The fields that a call's schema declares, whatever else is wrong with it.
    fn guessed_source(&mut self, call: &Call) -> Option<Vec<Column>> {
        let labelled = call.args.iter().find(|arg| arg.label.as_ref().is_some_and(|label| label.text == "schema"));
        if let Some(columns) = labelled.and_then(|arg| self.guessed_fields(&arg.value, true)) {
            return Some(columns);
        }
        if let Some(columns) = call.args.iter().find_map(|arg| self.guessed_fields(&arg.value, false)) {
            return Some(columns);
        }
        // What can't be read may be the schema: the program's record, if there is only one.
        let unread = call.args.iter().any(|arg| matches!(arg.value.kind, ExprKind::Error));
        let mut records = program(self.db, self.root).declared(Namespace::Record).filter(|_| unread);
        let (Some((_, only)), None) = (records.next(), records.next()) else { return None };
        self.record_fields(only)
    }

    /// The fields of a record's name or of `record { … }`. `near`: a name that no record has is one of a record.
    fn guessed_fields(&mut self, value: &Expr, near: bool) -> Option<Vec<Column>> {
        match &value.kind {
            ExprKind::Type(TypeExpr { kind: TypeKind::Record(decls), .. }) => {
                let places: Vec<Loc> = decls.iter().map(|decl| self.places.place(decl.name.span)).collect();
                Some(self.guessed_columns(decls, &places))
            }
            ExprKind::Name(name) => {
                let found = match near {
                    true => self.meant(Namespace::Record, name),
                    false => find(self.db, self.root, Namespace::Record, name),
                };
                self.record_fields(found?)
            }
            _ => None,
        }
    }

    fn record_fields(&mut self, item: ItemNode) -> Option<Vec<Column>> {
        let ItemKind::Record(record) = item.kind(self.db).as_ref() else { return None };
        let places = (1..=record.fields.len()).map(|part| places::part(item.key(self.db), part));
        Some(self.guessed_columns(&record.fields, &places.collect::<Vec<_>>()))
    }

    fn guessed_columns(&mut self, decls: &[FieldDecl], places: &[Loc]) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for (decl, place) in decls.iter().zip(places) {
            let name = &decl.name.text;
            if name.is_empty() || columns.iter().any(|column| column.name == *name) {
                continue;
            }
            let path = vec![dfc_typeck::PathStep::new(place.clone(), DECLARED)];
            columns.push(match self.guessed_type(&decl.ty, 0) {
                Some(ty) => Column::new(name.clone(), ty, path),
                None => broken(name, path),
            });
        }
        columns
    }

    /// A type as far as it is known: of records the fields whose types are.
    fn guessed_type(&mut self, ty: &TypeExpr, depth: usize) -> Option<DataType> {
        let known = self.with(Scope::None, |checker| checker.resolve_type(ty));
        if known.is_some() || depth == DEPTH {
            return known;
        }
        let inner = match &ty.kind {
            TypeKind::Name(name) => {
                let item = find(self.db, self.root, Namespace::Record, name)?;
                let ItemKind::Record(record) = item.kind(self.db).as_ref() else { return None };
                Type::Record(self.guessed_members(&record.fields, depth + 1))
            }
            TypeKind::Record(decls) => Type::Record(self.guessed_members(decls, depth + 1)),
            TypeKind::List(item) => Type::List(Box::new(self.guessed_type(item, depth + 1)?)),
            TypeKind::Decimal(_) => return None,
        };
        Some(DataType { ty: inner, nullable: ty.nullable })
    }

    fn guessed_members(&mut self, decls: &[FieldDecl], depth: usize) -> Vec<Field> {
        let members = decls.iter().filter(|decl| !decl.name.text.is_empty());
        members
            .filter_map(|decl| Some(Field::new(decl.name.text.clone(), self.guessed_type(&decl.ty, depth)?)))
            .collect()
    }

    /// The fields behind a join or lookup with an error: those of both sides, or those of the left and what is taken.
    pub(super) fn guessed_join(&self, left: &[Column], right: &[Column], bound: &Bound<'_>) -> Flow {
        if !self.guesses() {
            return Flow::unknown();
        }
        let mut columns = left.to_vec();
        let mut add = |column: Column| {
            if !columns.iter().any(|other| other.name == column.name) {
                columns.push(column);
            }
        };
        match bound.get("take").map(|arg| &arg.value.kind) {
            Some(ExprKind::List(items)) => {
                for item in items {
                    let field = match &item.value.kind {
                        ExprKind::Name(name) => name,
                        ExprKind::Field(_, field) => &field.text,
                        _ => continue,
                    };
                    let name = item.label.as_ref().map_or(field, |label| &label.text);
                    let found = right.iter().find(|column| column.name == *field);
                    add(match found {
                        Some(column) if name == field => column.clone(),
                        Some(column) => {
                            let mut path = column.path.clone();
                            path.push(self.renamed(item.span, field));
                            Column { name: name.clone(), path, ..column.clone() }
                        }
                        None => broken(name, vec![self.step(item.span, "taken here")]),
                    });
                }
            }
            _ => right.iter().cloned().for_each(add),
        }
        Flow::new(Some(columns), None)
    }
}
