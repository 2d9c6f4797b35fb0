//! Constant arguments: their values, converted to the declared types, with defaults filled in (D9).

use std::path::Path;

use dfc_grammar::ast::{Expr, ExprKind, Literal, TypeExpr};
use dfc_ir::plan::OptionValue;
use dfc_ir::{Options, Value};
use dfc_typeck::{LocalDiagnostic, Scope, Target};

use super::ItemContext;
use crate::bind::{self, Bound};
use crate::items::beside;
use crate::operators::{Kind, Param};

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
        let value = self.value(bound, param, ty, &arg.value)?;
        if let OptionValue::Value(value) = &value {
            self.in_range(bound, param, value, &arg.value)?;
            self.well_formed(bound, param, value, &arg.value)?;
        }
        Some(match value {
            OptionValue::Value(Value::Str(path)) if param.name == "path" => {
                OptionValue::Value(Value::string(resolve(self.folder, &path)))
            }
            other => other,
        })
    }

    fn value(&mut self, bound: &Bound<'_>, param: &Param, ty: &TypeExpr, e: &Expr) -> Option<OptionValue> {
        if param.optional && matches!(e.kind, ExprKind::Literal(Literal::Null)) {
            return Some(OptionValue::Absent);
        }
        let target = Target::Parameter { operator: bound.operator.name.clone(), name: param.name.clone() };
        let value = self.with(Scope::None, |checker| {
            let ty = checker.resolve_type(ty)?;
            checker.constant(e, &ty, &target)
        })?;
        Some(if value.is_null() { OptionValue::Absent } else { OptionValue::Value(value) })
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
        self.error(LocalDiagnostic::error("E0606", self.loc(e.span), message, "out of range"));
        None
    }

    /// Formats of dates and times are tried now, not on the first row (A5).
    fn well_formed(&mut self, bound: &Bound<'_>, param: &Param, value: &Value<'_>, e: &Expr) -> Option<()> {
        let (Value::Str(format), true) = (value, param.name.ends_with("_format")) else { return Some(()) };
        let Err(why) = dfc_stdlib::validate_format(format) else { return Some(()) };
        let message = format!("`{}` of `{}` can't be used: {why}", param.name, bound.operator.name);
        self.error(
            LocalDiagnostic::error("E0606", self.loc(e.span), message, "this format")
                .help("a date is written as `%Y-%m-%d`, a time as `%H:%M:%S`"),
        );
        None
    }
}

/// A path as the runtime opens it: relative ones start at the pipeline's folder; `-` and URLs stay.
fn resolve(folder: &Path, path: &str) -> String {
    if path == "-" || path.contains("://") || Path::new(path).is_absolute() {
        return path.to_string();
    }
    beside(&folder.join("_"), path).display().to_string()
}
