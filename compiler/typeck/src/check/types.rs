//! Types as written: names, decimals' bounds, records.

use std::collections::HashMap;

use dfc_grammar::ast::{self, Span};
use dfc_ir::types::{IntType, MAX_PRECISION};
use dfc_ir::{DataType, Field, Type};

use crate::Checker;
use crate::nearest::{FOREIGN_TYPES, foreign, nearest};

/// The types that have a name of their own.
const BUILTIN: &[(&str, Type)] = &[
    ("bool", Type::Bool),
    ("int8", Type::Int(IntType::I8)),
    ("int16", Type::Int(IntType::I16)),
    ("int32", Type::Int(IntType::I32)),
    ("int64", Type::Int(IntType::I64)),
    ("uint8", Type::Int(IntType::U8)),
    ("uint16", Type::Int(IntType::U16)),
    ("uint32", Type::Int(IntType::U32)),
    ("uint64", Type::Int(IntType::U64)),
    ("float32", Type::Float32),
    ("float64", Type::Float64),
    ("string", Type::String),
    ("bytes", Type::Bytes),
    ("date", Type::Date),
    ("time", Type::Time),
    ("datetime", Type::DateTime),
    ("timestamp", Type::Timestamp),
    ("duration", Type::Duration),
    ("json", Type::Json),
    ("secret", Type::Secret),
];

/// The type of this name.
pub(crate) fn builtin(name: &str) -> Option<Type> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty.clone())
}

impl Checker<'_> {
    /// The type that is written, or an error: an unknown name, a decimal out of bounds, a record with a field twice.
    pub fn resolve_type(&mut self, t: &ast::TypeExpr) -> Option<DataType> {
        let ty = match &t.kind {
            ast::TypeKind::Name(name) => self.named_type(name, t)?,
            ast::TypeKind::Decimal(None) => {
                self.error("E0519", t.span, "decimal needs its precision and scale", "how many digits?")
                    .help("write `decimal(18, 2)`: 18 digits, 2 of them after the point")
                    .fix("write `decimal(18, 2)`", t.span, "decimal(18, 2)");
                return None;
            }
            ast::TypeKind::Decimal(Some((p, s))) => self.decimal(*p, *s, t)?,
            ast::TypeKind::List(item) => Type::List(Box::new(self.value_type(item)?)),
            ast::TypeKind::Record(fields) => Type::Record(self.resolve_fields(fields)?),
        };
        Some(DataType { ty, nullable: t.nullable })
    }

    /// The fields of a record, declared or written in place. A field whose type is refused makes the whole `None`.
    pub fn resolve_fields(&mut self, fields: &[ast::FieldDecl]) -> Option<Vec<Field>> {
        let mut out: Vec<Field> = Vec::new();
        let mut sound = true;
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for decl in fields {
            let ty = self.value_type(&decl.ty);
            if let Some(first) = seen.get(decl.name.text.as_str()) {
                let first = self.loc(*first);
                self.error(
                    "E0425",
                    decl.name.span,
                    format!("the field `{}` is declared twice", decl.name.text),
                    "again",
                )
                .related(first, "here first")
                .help("leave one of them out, or give it another name");
                sound = false;
            } else {
                seen.insert(&decl.name.text, decl.name.span);
            }
            match ty {
                Some(ty) => out.push(Field {
                    name: decl.name.text.clone(),
                    ty,
                    external: decl.external.as_ref().map(|(name, _)| name.clone()),
                }),
                None => sound = false,
            }
        }
        sound.then_some(out)
    }

    /// A type of fields and items: no secret.
    fn value_type(&mut self, t: &ast::TypeExpr) -> Option<DataType> {
        let ty = self.resolve_type(t)?;
        if ty.ty != Type::Secret {
            return Some(ty);
        }
        self.error("E0525", t.span, "a field can't be a secret", "only a parameter's type")
            .help("take the secret as a `param`, or read it with `secret(\"NAME\")` in a connector's argument");
        None
    }

    fn named_type(&mut self, name: &str, t: &ast::TypeExpr) -> Option<Type> {
        if let Some(ty) = builtin(name) {
            return Some(ty);
        }
        let globals = self.globals;
        if let Some(record) = globals.records.get(name) {
            return Some(Type::Record(record.fields.clone()));
        }
        if globals.broken.contains(name) {
            return None;
        }
        let names = BUILTIN.iter().map(|(name, _)| *name).chain(globals.records.keys().map(String::as_str));
        let better = foreign(FOREIGN_TYPES, name).or_else(|| nearest(name, names.chain(["decimal", "list"])));
        let records: Vec<&str> = globals.records.keys().map(String::as_str).collect();
        let report = self.error("E0423", t.span, format!("there is no type `{name}`"), "unknown type");
        match better {
            Some(better) => {
                let mark = if t.nullable { "?" } else { "" };
                report.help(format!("write `{better}`")).fix(
                    format!("write `{better}`"),
                    t.span,
                    format!("{better}{mark}"),
                )
            }
            None => report
                .help(format!("declare it, `record {name} {{ … }}`, or write a type such as `string`"))
                .note(super::names::list_of("the declared records are", &records)),
        };
        None
    }

    fn decimal(&mut self, p: u64, s: u64, t: &ast::TypeExpr) -> Option<Type> {
        let max = u64::from(MAX_PRECISION);
        if (1..=max).contains(&p) && s <= p {
            // Both are at most 38.
            return Some(Type::Decimal(p as u8, s as u8));
        }
        let message = if (1..=max).contains(&p) {
            format!("a decimal of {p} digits can't have {s} of them after the point")
        } else {
            format!("a decimal has 1 to {max} digits, not {p}")
        };
        self.error("E0519", t.span, message, "can't be")
            .help("write `decimal(18, 2)`: 18 digits (at most 38), 2 of them after the point");
        None
    }
}
