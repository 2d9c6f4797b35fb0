//! Which type fits at a place, as far as the tokens around it and the declarations tell: what fits is offered first.

use dfc_grammar::TokenKind as T;
use dfc_grammar::ast::{Native, NativeOutput, ParamKind, TypeExpr, TypeKind};
use dfc_ir::{DataType, Type};
use dfc_typeck::{Column, FunctionTable, UserFn};

use super::cursor::{Cursor, is_name};
use super::place::Arg;
use super::view::View;

/// Types that stand for each other well enough to be offered first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Number,
    Text,
    Bool,
    Date,
    Time,
    Duration,
    Json,
    Bytes,
    List,
    Record,
}

fn family(ty: &Type) -> Option<Family> {
    Some(match ty {
        Type::Int(_) | Type::Float32 | Type::Float64 | Type::Decimal(..) => Family::Number,
        Type::String | Type::Secret => Family::Text,
        Type::Bool => Family::Bool,
        Type::Date | Type::DateTime | Type::Timestamp => Family::Date,
        Type::Time => Family::Time,
        Type::Duration => Family::Duration,
        Type::Json => Family::Json,
        Type::Bytes => Family::Bytes,
        Type::List(_) => Family::List,
        Type::Record(_) => Family::Record,
        Type::Null => return None,
    })
}

fn named(name: &str) -> Option<Family> {
    Some(match name {
        "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64" | "float32" | "float64"
        | "number" | "integer" | "float" | "decimal" => Family::Number,
        "string" | "secret" | "text" => Family::Text,
        "bool" => Family::Bool,
        "date" | "datetime" | "timestamp" | "temporal" => Family::Date,
        "time" => Family::Time,
        "duration" => Family::Duration,
        "json" => Family::Json,
        "bytes" => Family::Bytes,
        _ => return None,
    })
}

fn written(ty: &TypeExpr) -> Option<Family> {
    match &ty.kind {
        TypeKind::Name(name) => named(name),
        TypeKind::Decimal(_) => Some(Family::Number),
        TypeKind::List(_) => Some(Family::List),
        TypeKind::Record(_) => Some(Family::Record),
    }
}

/// The families that fit at a place; none known: everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected(Vec<Family>);

impl Expected {
    /// Values of this type.
    pub fn of(ty: &DataType) -> Self {
        Expected(family(&ty.ty).into_iter().collect())
    }

    /// Values of a type as it is declared.
    pub fn declared(ty: &TypeExpr) -> Self {
        Expected(written(ty).into_iter().collect())
    }

    /// Whether a type fits; `None` where nothing is expected.
    pub fn fits(&self, ty: &DataType) -> Option<bool> {
        if self.0.is_empty() { None } else { Some(family(&ty.ty).is_some_and(|family| self.0.contains(&family))) }
    }

    /// Whether what a function gives fits.
    pub fn fits_result(&self, output: &NativeOutput) -> bool {
        match output {
            NativeOutput::Type(ty) => self.0.is_empty() || written(ty).is_none_or(|family| self.0.contains(&family)),
            _ => true,
        }
    }
}

/// What fits in an expression over these fields.
pub fn of_place(view: &View<'_>, cursor: &Cursor<'_>, arg: &Arg, columns: &[Column]) -> Expected {
    let count = cursor.solid.len();
    match cursor.last() {
        Some(
            T::EqEq
            | T::NotEq
            | T::Lt
            | T::Le
            | T::Gt
            | T::Ge
            | T::Plus
            | T::Minus
            | T::Star
            | T::Slash
            | T::Percent
            | T::Coalesce
            | T::Between,
        ) => operand(view, cursor, count.checked_sub(2), columns),
        Some(T::Div) => Expected(vec![Family::Number]),
        Some(T::Like | T::Matches) => Expected(vec![Family::Text]),
        Some(T::LBracket) if count >= 2 && cursor.kind(count - 2) == Some(T::In) => {
            operand(view, cursor, count.checked_sub(3), columns)
        }
        Some(T::LParen | T::Comma) => match arg.function {
            Some((callee, index)) if arg.function_arg_starts => of_argument(view, cursor.name(callee), index),
            _ => Expected::default(),
        },
        _ => Expected::default(),
    }
}

/// The type of the operand that ends with a token.
fn operand(view: &View<'_>, cursor: &Cursor<'_>, at: Option<usize>, columns: &[Column]) -> Expected {
    let Some(at) = at else { return Expected::default() };
    let family = match cursor.kind(at) {
        Some(T::String | T::RawString | T::TripleString | T::FormatString) => Some(Family::Text),
        Some(T::Number) => match cursor.str(at).chars().last() {
            Some('s' | 'm' | 'h' | 'd') => Some(Family::Duration),
            _ => Some(Family::Number),
        },
        Some(T::DateTime) => Some(if cursor.str(at).contains('-') { Family::Date } else { Family::Time }),
        Some(T::True | T::False) => Some(Family::Bool),
        Some(kind) if is_name(kind) => {
            let name = cursor.name(at);
            let column = columns.iter().find(|column| column.name == name && !column.broken).map(|c| &c.ty);
            let ty = column.or_else(|| view.globals().values.get(name).map(|global| &global.ty));
            ty.and_then(|ty| family(&ty.ty))
        }
        _ => None,
    };
    Expected(family.into_iter().collect())
}

/// What a function's argument may be, by all of its declarations.
fn of_argument(view: &View<'_>, name: &str, index: usize) -> Expected {
    if let Some(function) = FunctionTable::standard().get(name) {
        let mut families = Vec::new();
        for overload in &function.overloads {
            match of_parameter(&overload.decl, index) {
                Some(found) => families.extend(found),
                None => return Expected::default(),
            }
        }
        return Expected(families);
    }
    match view.globals().functions.get(name) {
        Some(function) => of_user_parameter(function, index),
        None => Expected::default(),
    }
}

/// The families of a native function's parameter; `None`: anything. Empty: it has none at this place.
fn of_parameter(decl: &Native, index: usize) -> Option<Vec<Family>> {
    let param = decl.params.get(index).or(decl.params.last().filter(|param| param.variadic));
    let Some(param) = param else { return Some(Vec::new()) };
    let ty = match &param.kind {
        ParamKind::Const(ty) | ParamKind::Row(ty) | ParamKind::Agg(ty) | ParamKind::Pair(ty) => ty,
        ParamKind::Enum(_) | ParamKind::Bare(_) => return None,
    };
    if let TypeKind::Name(name) = &ty.kind
        && let Some((_, class)) = decl.generics.iter().find(|(variable, _)| variable.text == *name)
    {
        return named(&class.text).map(|family| vec![family]);
    }
    written(ty).map(|family| vec![family])
}

fn of_user_parameter(function: &UserFn, index: usize) -> Expected {
    match function.decl.params.get(index).map(|param| &param.kind) {
        Some(ParamKind::Const(ty)) => Expected::declared(ty),
        _ => Expected::default(),
    }
}

/// What a `param`'s default or a `const`'s value may be: what is declared before the `=`.
pub fn of_declaration(cursor: &Cursor<'_>) -> Expected {
    let starts = cursor.last() == Some(T::Assign);
    let declared = (starts && cursor.kind(2) == Some(T::Colon)).then(|| cursor.name(3)).and_then(named);
    Expected(declared.into_iter().collect())
}
