//! Which declaration of a native function a call means (the rules are in `stdlib/RULES.md`).

use dfc_grammar::ast;
use dfc_ir::{DataType, Expr, Type};

use super::literals::{Adapt, adapt};
use crate::conversions::{common_type, outcome};
use crate::{Function, Overload};

/// A checked argument.
pub(crate) struct Argument<'e> {
    pub value: Expr,
    pub syntax: &'e ast::Expr,
    /// A numeric literal whose type is not fixed yet.
    pub loose: bool,
}

/// A declaration that fits, with the type each argument is converted to (nullability aside).
pub(crate) struct Choice<'t> {
    pub overload: &'t Overload,
    pub types: Vec<Type>,
    /// Type variables and what they are bound to.
    pub vars: Vec<(String, Type)>,
}

/// The parameter that the `n`-th argument goes to.
pub(crate) fn parameter(overload: &Overload, n: usize) -> Option<&ast::DeclParam> {
    let params = &overload.decl.params;
    params.get(n).or_else(|| params.last().filter(|last| last.variadic))
}

/// Whether the declaration takes this number of arguments.
pub(crate) fn takes(overload: &Overload, count: usize) -> bool {
    let params = &overload.decl.params;
    let needed = params.iter().filter(|p| !p.variadic).count();
    count == needed || (count > needed && params.last().is_some_and(|last| last.variadic))
}

/// Parameters whose texts say how to do it, and an example of each: nothing else is converted to one, so that arguments in another
/// order don't pass.
const TECHNICAL: &[(&str, &str)] =
    &[("unit", "\"day\""), ("zone", "\"Europe/Berlin\""), ("format", "\"%Y-%m-%d\""), ("pattern", "r\"[0-9]+\"")];

/// Whether the `n`-th argument is such a text: the parameter's name and an example.
pub(crate) fn technical(overload: &Overload, n: usize) -> Option<(&'static str, &'static str)> {
    let name = &parameter(overload, n)?.name.text;
    TECHNICAL.iter().find(|(technical, _)| technical == name).copied()
}

/// The type a parameter is declared with.
pub(crate) fn declared(param: &ast::DeclParam) -> Option<&ast::TypeExpr> {
    match &param.kind {
        ast::ParamKind::Const(ty) | ast::ParamKind::Row(ty) | ast::ParamKind::Agg(ty) => Some(ty),
        _ => None,
    }
}

/// Whether the function is strict: none of its parameters takes null, so a null argument gives null.
pub(crate) fn is_strict(overload: &Overload) -> bool {
    overload.decl.params.iter().all(|p| declared(p).is_none_or(|ty| !ty.nullable))
}

/// The declaration that the arguments mean: the first that fits exactly, else the first that they reach silently.
pub(crate) fn choose<'t>(function: &'t Function, args: &[Argument<'_>]) -> Option<Choice<'t>> {
    let of_count = || function.overloads.iter().filter(|o| takes(o, args.len()));
    [true, false].into_iter().find_map(|exact| of_count().find_map(|overload| fit(overload, args, exact)))
}

fn fit<'t>(overload: &'t Overload, args: &[Argument<'_>], exact: bool) -> Option<Choice<'t>> {
    let mut vars: Vec<(String, Type)> = Vec::new();
    for generic in &overload.decl.generics {
        let ty = bind(overload, &generic.0.text, args)?;
        if !in_class(&ty, &generic.1.text) {
            return None;
        }
        vars.push((generic.0.text.clone(), ty));
    }
    let mut types = Vec::new();
    for (n, arg) in args.iter().enumerate() {
        let pattern = declared(parameter(overload, n)?)?;
        let from = &arg.value.ty.ty;
        if technical(overload, n).is_some() && !matches!(from, Type::String | Type::Null) {
            return None;
        }
        let to = instance(pattern, &vars, from)?;
        let bound = mentions_var(pattern, &overload.decl.generics);
        let reaches = if *from == Type::Null || (bound && common_type_of(from, &to)) {
            true
        } else if exact {
            *from == to
        } else {
            outcome(from, &to).is_silent() || (arg.loose && adapt(arg.value.clone(), &to, Adapt::Place).ty.ty == to)
        };
        if !reaches {
            return None;
        }
        types.push(to);
    }
    Some(Choice { overload, types, vars })
}

fn common_type_of(a: &Type, b: &Type) -> bool {
    common_type(&DataType::of(a.clone()), &DataType::of(b.clone())).is_some()
}

/// What a type variable stands for: the common type of the arguments declared with it; literals take the others' type.
fn bind(overload: &Overload, var: &str, args: &[Argument<'_>]) -> Option<Type> {
    let mut firm: Option<DataType> = None;
    let mut loose = Vec::new();
    for (n, arg) in args.iter().enumerate() {
        let pattern = declared(parameter(overload, n)?)?;
        let part = match &pattern.kind {
            ast::TypeKind::Name(name) if name == var => DataType::of(arg.value.ty.ty.clone()),
            ast::TypeKind::List(item) if matches!(&item.kind, ast::TypeKind::Name(name) if name == var) => {
                match &arg.value.ty.ty {
                    Type::List(item) => DataType::of(item.ty.clone()),
                    Type::Null => continue,
                    _ => return None,
                }
            }
            _ => continue,
        };
        if arg.loose {
            loose.push(&arg.value);
        } else {
            firm = Some(match firm {
                None => part,
                Some(before) => common_type(&before, &part)?,
            });
        }
    }
    for value in loose {
        let part = match &firm {
            Some(firm) => adapt(value.clone(), &firm.ty, Adapt::Operand).ty,
            None => value.ty.clone(),
        };
        firm = Some(match firm {
            None => part,
            Some(before) => common_type(&before, &part)?,
        });
    }
    firm.map(|firm| firm.ty)
}

fn mentions_var(pattern: &ast::TypeExpr, generics: &[(ast::Ident, ast::Ident)]) -> bool {
    match &pattern.kind {
        ast::TypeKind::Name(name) => generics.iter().any(|(var, _)| var.text == *name),
        ast::TypeKind::List(item) => mentions_var(item, generics),
        _ => false,
    }
}

/// The type that a pattern means for an argument of type `from`.
pub(crate) fn instance(pattern: &ast::TypeExpr, vars: &[(String, Type)], from: &Type) -> Option<Type> {
    match &pattern.kind {
        ast::TypeKind::Name(name) => {
            if let Some((_, ty)) = vars.iter().find(|(var, _)| var == name) {
                return Some(ty.clone());
            }
            if let Some(ty) = super::types::builtin(name) {
                return Some(ty);
            }
            (is_class(name) && in_class(from, name)).then(|| from.clone())
        }
        ast::TypeKind::Decimal(None) => matches!(from, Type::Decimal(..)).then(|| from.clone()),
        ast::TypeKind::Decimal(Some((p, s))) => Some(Type::Decimal(u8::try_from(*p).ok()?, u8::try_from(*s).ok()?)),
        ast::TypeKind::List(item) => {
            let inner = match from {
                Type::List(inner) => inner.as_ref().clone(),
                _ => DataType::of(Type::Null),
            };
            let ty = instance(item, vars, &inner.ty)?;
            Some(Type::List(Box::new(DataType { ty, nullable: inner.nullable || item.nullable })))
        }
        ast::TypeKind::Record(_) => None,
    }
}

/// The classes of type variables.
pub(crate) const CLASSES: &[(&str, fn(&Type) -> bool)] = &[
    ("any", |ty| *ty != Type::Secret),
    ("number", Type::is_numeric),
    ("integer", |ty| matches!(ty, Type::Int(_))),
    ("float", Type::is_float),
    ("decimal", |ty| matches!(ty, Type::Decimal(..))),
    ("text", |ty| *ty == Type::String),
    ("temporal", Type::is_temporal),
    ("ordered", Type::is_ordered),
];

/// Whether a name is that of a class.
pub fn is_class(name: &str) -> bool {
    CLASSES.iter().any(|(class, _)| *class == name)
}

/// Whether a type belongs to a class.
pub(crate) fn in_class(ty: &Type, class: &str) -> bool {
    CLASSES.iter().any(|(name, test)| *name == class && (test(ty) || *ty == Type::Null && class == "any"))
}
