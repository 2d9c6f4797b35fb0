//! Constant arguments: their values, converted to the declared types, with defaults filled in (D9).

use std::path::Path;

use dfc_grammar::ast::{BinaryOp, Expr, ExprKind, Literal, TypeExpr, TypeKind};
use dfc_ir::plan::{OptionValue, Secret};
use dfc_ir::text::written;
use dfc_ir::{Options, Type, Value};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{Column, LocalDiagnostic, Scope, Target};

use super::ItemContext;
use crate::bind::{self, Bound};
use crate::items::beside;
use crate::operators::{Kind, Param};
use crate::secrets;

impl ItemContext<'_> {
    /// Every constant of a source or sink, by parameter. `None`: one was refused.
    pub(super) fn options(&mut self, bound: &Bound<'_>) -> Option<Options> {
        let mut options = Options::new();
        let mut sound = !bound.failed;
        for param in &bound.operator.params {
            let value = match &param.kind {
                Kind::Enum(values) => match bound.get(&param.name) {
                    Some(arg) => {
                        bind::choice(param, values, arg, &self.item.clone(), &mut self.out).map(OptionValue::Name)
                    }
                    None => match param.default.as_ref().map(|e| &e.kind) {
                        Some(ExprKind::Name(name)) => Some(OptionValue::Name(name.clone())),
                        _ => Some(OptionValue::Absent),
                    },
                },
                Kind::Const(ty) => self.constant(bound, param, ty),
                _ => continue,
            };
            match value {
                Some(value) => {
                    options.insert(param.name.clone(), value);
                }
                None => sound = false,
            }
        }
        sound.then_some(options)
    }

    /// A constant argument by name; `Absent` where an optional one is not given. `None`: refused, or missing.
    pub(super) fn constant_arg(&mut self, bound: &Bound<'_>, name: &str) -> Option<OptionValue> {
        let param = bound.operator.param(name)?;
        let Kind::Const(ty) = &param.kind else { return None };
        self.constant(bound, param, ty)
    }

    fn constant(&mut self, bound: &Bound<'_>, param: &Param, ty: &TypeExpr) -> Option<OptionValue> {
        let Some(arg) = bound.get(&param.name) else {
            return match &param.default {
                Some(default) => self.value(bound, param, ty, default),
                None if param.optional => Some(OptionValue::Absent),
                None => None,
            };
        };
        self.literal_password(param, &arg.value);
        let before = std::mem::take(&mut self.unknown_values);
        let value = self.value(bound, param, ty, &arg.value);
        // Of a parameter that has no value yet nothing is known but its type.
        let known = !self.unknown_values;
        self.unknown_values |= before;
        let value = value?;
        match &value {
            OptionValue::Value(value) if known => {
                self.in_range(bound, param, value, &arg.value)?;
                self.well_formed(bound, param, value, &arg.value)?;
                if let Value::Str(text) = value {
                    self.table_name(bound, param, text, &arg.value)?;
                }
            }
            OptionValue::Secret(Secret::Given(text)) if known => self.address(bound, param, text, &arg.value)?,
            _ => {}
        }
        Some(match value {
            OptionValue::Value(Value::Str(path)) if param.name == "path" => {
                OptionValue::Value(Value::string(resolve(self.folder, &path)))
            }
            other => other,
        })
    }

    /// The arguments of a source or a sink that name its fields: `key: [day, country]`, `increment: changed_at`. `None`: one was
    /// refused.
    pub(super) fn named_fields(&mut self, bound: &Bound<'_>, columns: &[Column]) -> Option<Options> {
        let mut options = Options::new();
        let mut sound = true;
        for param in &bound.operator.params {
            let named: Vec<&Expr> = match (&param.kind, bound.get(&param.name)) {
                (Kind::Field | Kind::Fields, None) => {
                    options.insert(param.name.clone(), OptionValue::Absent);
                    continue;
                }
                (Kind::Field, Some(arg)) => vec![&arg.value],
                (Kind::Fields, Some(_)) => match self.elements(bound, &param.name) {
                    Some(elements) => elements.iter().map(|arg| &arg.value).collect(),
                    None => {
                        sound = false;
                        continue;
                    }
                },
                _ => continue,
            };
            self.increment_has_nulls(bound, param, &named, columns);
            let indices: Vec<Option<usize>> = named.iter().map(|e| self.field(columns, e)).collect();
            match indices.into_iter().collect::<Option<Vec<usize>>>() {
                Some(indices) => {
                    sound &= self.marks_are_bool(param, &named, &indices, columns) && self.each_once(param, &named);
                    let names = indices.iter().map(|&i| columns[i].name.clone()).collect();
                    options.insert(param.name.clone(), OptionValue::Names(names));
                }
                None => sound = false,
            }
        }
        sound.then_some(options)
    }

    /// Whether a list of fields names none of them twice.
    fn each_once(&mut self, param: &Param, named: &[&Expr]) -> bool {
        let again = named.iter().enumerate().find_map(|(at, e)| {
            let first = named[..at].iter().find(|first| first.kind == e.kind)?;
            Some((e, first))
        });
        let Some((e, first)) = again else { return true };
        let ExprKind::Name(name) = &e.kind else { return true };
        let message = format!("`{}` names `{name}` twice", param.name);
        let problem = LocalDiagnostic::error("E0603", self.loc(e.span), message, "again")
            .related(self.loc(first.span), "first named here")
            .help("take one of both out");
        self.error(problem);
        false
    }

    /// Whether the field that says which rows are removed can say it.
    fn marks_are_bool(&mut self, param: &Param, named: &[&Expr], indices: &[usize], columns: &[Column]) -> bool {
        let ([e], [at]) = (named, indices) else { return true };
        let column = &columns[*at];
        if param.name != "delete" || column.ty.ty == Type::Bool {
            return true;
        }
        let message = format!("`delete` takes a field of type bool, `{}` is {}", column.name, column.ty.ty);
        let mut problem = LocalDiagnostic::error("E0604", self.loc(e.span), message, column.ty.to_string()).help(
            format!("compute one before: `derive(deleted: {} == …)`, and `delete: deleted`", written(&column.name)),
        );
        if let Some(step) = column.path.first() {
            problem = problem.related(step.loc.clone(), step.words.clone());
        }
        self.error(problem);
        false
    }

    /// A lint: rows without a value in the column that says what is new are never new.
    fn increment_has_nulls(&mut self, bound: &Bound<'_>, param: &Param, named: &[&Expr], columns: &[Column]) {
        let [Expr { kind: ExprKind::Name(name), span }] = named else { return };
        let Some(column) = columns.iter().find(|c| c.name == *name && c.ty.nullable) else { return };
        if param.name != "increment" || bound.get("nulls").is_some() {
            return;
        }
        let mut problem = LocalDiagnostic::warning(
            "W0402",
            self.loc(*span),
            format!("the increment column `{name}` may be null, and it isn't said what happens with such rows"),
            column.ty.to_string(),
        )
        .help("take a column that is never null, or say it: `nulls: skip`");
        if let Some(step) = column.path.first() {
            problem = problem.related(step.loc.clone(), step.words.clone());
        }
        self.error(problem);
    }

    /// A lint: a password that stands in the pipeline's text.
    fn literal_password(&mut self, param: &Param, e: &Expr) {
        let ExprKind::Literal(Literal::String(text)) = &e.kind else { return };
        if !(password_in(text) || (param.name.contains("password") && !text.is_empty())) {
            return;
        }
        let problem = LocalDiagnostic::warning(
            "W0601",
            self.loc(e.span),
            "a password stands in the pipeline's text, and goes wherever the text goes",
            "readable by everyone",
        )
        .help("keep it outside: `secret(\"NAME\")` reads an environment variable, `secret_file(\"path\")` a file");
        self.error(problem);
    }

    /// What stays secret: `secret("NAME")`, `secret_file("path")`, a `param` of the type `secret`, or a text, which then no plan shows.
    fn secret(&mut self, bound: &Bound<'_>, param: &Param, ty: &TypeExpr, e: &Expr) -> Option<OptionValue> {
        let place = match &e.kind {
            ExprKind::Name(name) => self.globals.values.get(name).and_then(|global| global.secret.clone()),
            _ => secrets::place(e),
        };
        if let Some(place) = place {
            return Some(OptionValue::Secret(match place {
                Secret::File(path) => Secret::File(resolve(self.folder, &path)),
                place => place,
            }));
        }
        if matches!(e.kind, ExprKind::Call(_)) {
            let message = format!("`{}` of `{}` takes a secret by its name", param.name, bound.operator.name);
            let problem = LocalDiagnostic::error("E0604", self.loc(e.span), message, "not a secret")
                .help(format!("write {}", secrets::FORMS));
            self.error(problem);
            return None;
        }
        let text = TypeExpr { kind: TypeKind::Name("string".into()), ..ty.clone() };
        let target = Target::Parameter { operator: bound.operator.name.clone(), name: param.name.clone() };
        let value = self.with(Scope::None, |checker| {
            // A `param` of the type `secret` is one already.
            let of_secret = matches!(&e.kind, ExprKind::Name(name) if matches!(checker.globals.values.get(name), Some(global) if global.ty.ty == Type::Secret));
            let expected = checker.resolve_type(if of_secret { ty } else { &text })?;
            checker.constant(e, &expected, &target)
        })?;
        Some(match value {
            Value::Str(text) => OptionValue::Secret(Secret::Given(text.into_owned())),
            _ => OptionValue::Absent,
        })
    }

    /// The value of a constant, converted to its declared type. `None`: refused.
    pub(super) fn value(&mut self, bound: &Bound<'_>, param: &Param, ty: &TypeExpr, e: &Expr) -> Option<OptionValue> {
        if param.optional && matches!(e.kind, ExprKind::Literal(Literal::Null)) {
            return Some(OptionValue::Absent);
        }
        if matches!(&ty.kind, TypeKind::Name(name) if name == "secret") {
            return self.secret(bound, param, ty, e);
        }
        if matches!(&ty.kind, TypeKind::Name(name) if name == "string")
            && let Some(text) = as_written(e, |name| self.is_declared(name))
        {
            let message = format!("`{}` of `{}` takes string, and this is no text", param.name, bound.operator.name);
            let at = self.loc(e.span);
            let problem = LocalDiagnostic::error("E0504", at.clone(), message, "without quotes")
                .help(format!("a text stands in double quotes: `\"{text}\"`"))
                .fix("put it in quotes", at, format!("\"{text}\""));
            self.error(problem);
            return None;
        }
        let target = Target::Parameter { operator: bound.operator.name.clone(), name: param.name.clone() };
        let value = self.with(Scope::None, |checker| {
            let ty = checker.resolve_type(ty)?;
            checker.constant(e, &ty, &target)
        })?;
        Some(if value.is_null() { OptionValue::Absent } else { OptionValue::Value(value) })
    }

    /// Whether a name is that of a parameter or constant, or near to one.
    fn is_declared(&self, name: &str) -> bool {
        let declared = || self.globals.values.keys().map(String::as_str);
        self.globals.broken.contains(name)
            || declared().any(|known| known == name)
            || nearest(name, declared()).is_some()
    }

    /// `range`: of a number its value, of a text its length.
    fn in_range(&mut self, bound: &Bound<'_>, param: &Param, value: &Value<'_>, e: &Expr) -> Option<()> {
        let Some((low, high)) = param.range else { return Some(()) };
        let (measure, unit) = match value {
            Value::Int(n) => (*n, ""),
            Value::Str(text) => (text.chars().count() as i128, "character"),
            _ => return Some(()),
        };
        if (low..=high).contains(&measure) {
            return Some(());
        }
        let count = |n: i128| match unit {
            "" => n.to_string(),
            _ => format!("{n} {unit}{}", if n == 1 { "" } else { "s" }),
        };
        let shown = if unit.is_empty() { measure.to_string() } else { format!("a text of {}", count(measure)) };
        let expected = match (low, high) {
            (low, high) if low == high => count(low),
            (low, high) if high >= i64::MAX.into() => format!("{} or more", count(low)),
            (0, 1) if !unit.is_empty() => format!("at most {}", count(1)),
            _ => format!("{low} to {}", count(high)),
        };
        let message = format!("`{}` of `{}` takes {expected}, not {shown}", param.name, bound.operator.name);
        let mut problem = LocalDiagnostic::error("E0606", self.loc(e.span), message, "out of range");
        if let (Some(doc), "character") = (&param.doc, unit) {
            problem = problem.note(format!("`{}`: {}", param.name, doc.trim().replace('\n', " ")));
        }
        self.error(problem);
        None
    }
}

/// A text that stands without its quotes: `data/orders.csv`, or a name that isn't `known` to mean anything.
fn as_written(e: &Expr, known: impl Fn(&str) -> bool) -> Option<String> {
    fn part(e: &Expr) -> Option<String> {
        match &e.kind {
            ExprKind::Name(name) => Some(name.clone()),
            ExprKind::Literal(Literal::Bool(value)) => Some(value.to_string()),
            ExprKind::Literal(Literal::Int(value)) => Some(value.to_string()),
            ExprKind::Field(base, field) => Some(format!("{}.{}", part(base)?, field.text)),
            ExprKind::Binary(BinaryOp::Div, _, l, r) => Some(format!("{}/{}", part(l)?, part(r)?)),
            _ => None,
        }
    }
    part(e).filter(|text| !known(text))
}

/// Whether a URL has a password: `postgres://user:password@host/db`.
fn password_in(text: &str) -> bool {
    let authority = text.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

/// A path as the runtime opens it: relative ones start at the pipeline's folder; `-` and URLs stay.
fn resolve(folder: &Path, path: &str) -> String {
    if path == "-" || path.contains("://") || Path::new(path).is_absolute() {
        return path.to_string();
    }
    let resolved = beside(&folder.join("_"), path).display().to_string();
    // A target that ends with `/` is a folder of parts.
    if path.ends_with('/') && !resolved.ends_with('/') { resolved + "/" } else { resolved }
}
