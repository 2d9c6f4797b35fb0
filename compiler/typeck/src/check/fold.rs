//! Constant folding, and constants where only those may stand.

use dfc_eval::Env;
use dfc_grammar::ast::Span;
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Type, Value};

use crate::Checker;
use crate::nearest::nearest;

/// Longer constants (`repeat("x", 1000000)`) are left to the run.
const LONGEST: usize = 64 << 10;

impl Checker<'_> {
    /// Computes a node whose operands are constants; one that fails is an error, except where it is never reached.
    pub(crate) fn fold(&mut self, e: Expr, span: Span) -> Option<Expr> {
        let e = match decided(e) {
            Ok(simpler) => return Some(simpler),
            Err(e) => e,
        };
        if !foldable(&e) {
            return Some(e);
        }
        let no_columns: [Value<'static>; 0] = [];
        match dfc_eval::eval(&e, &no_columns, &Env::default()) {
            Ok(value) if weight(&value) <= LONGEST => {
                Some(Expr { kind: ExprKind::Literal(value.into_owned()), ty: e.ty, site: e.site })
            }
            Ok(_) => Some(e),
            Err(_) if self.state.dead > 0 => Some(e),
            Err(error) => {
                let (code, message) = match &e.kind {
                    ExprKind::Cast(inner, _) => {
                        ("E0514", format!("this {} can't be converted to {}: {}", inner.ty, e.ty, error.message))
                    }
                    _ => ("E0513", format!("this constant expression has no value: {}", error.message)),
                };
                self.error(code, span, message, "fails on every row").help(match code {
                    "E0514" => "write a value that the type has, or another type; `as?` gives null where it fails",
                    _ => "correct the constants; what fails on every row can't be meant",
                });
                None
            }
        }
    }

    /// The value of a constant expression; an error names what is not constant.
    pub(crate) fn value_of(&mut self, e: Expr, span: Span) -> Option<Value<'static>> {
        if let ExprKind::Literal(value) = e.kind {
            return Some(value);
        }
        let Some(culprit) = not_constant(&e) else {
            // Only parameters without a value, or a constant too long to keep, are left.
            if !self.unknown_values {
                let no_columns: [Value<'static>; 0] = [];
                if let Ok(value) = dfc_eval::eval(&e, &no_columns, &Env::default()) {
                    return Some(value.into_owned());
                }
            }
            return Some(some_value(&e.ty));
        };
        let (what, places) = match culprit {
            ExprKind::Column(index) => {
                let name = self.scope.column(*index).map_or("a field", |column| column.name.as_str());
                (format!("the field `{name}`"), self.path_of(*index))
            }
            ExprKind::Today => ("`today()`".to_owned(), Vec::new()),
            _ => ("`now()`".to_owned(), Vec::new()),
        };
        self.error("E0417", span, format!("a constant is needed here, and this depends on {what}"), "not constant")
            .related_all(places)
            .help("a constant is made of literals, `param`s and `const`s");
        None
    }

    /// Checks constant arguments whose form is known: regular expressions, formats of dates, zones, units.
    pub(crate) fn check_constant_argument(&mut self, function: &str, name: &str, arg: &Expr, span: Span) -> Option<()> {
        let ExprKind::Literal(Value::Str(text)) = &arg.kind else { return Some(()) };
        if self.state.dead > 0 {
            return Some(());
        }
        let (code, verdict) = match name {
            "pattern" if function.starts_with("regexp_") => ("E0520", dfc_stdlib::validate_regex(text)),
            "format" if !text.contains('%') => (
                "E0521",
                Err(format!("`{text}` has no `%` and so no part of a date: it is the same text for every row")),
            ),
            "format" => ("E0521", dfc_stdlib::validate_format(text)),
            "zone" => ("E0524", dfc_stdlib::validate_zone(text)),
            "unit" => ("E0526", dfc_stdlib::validate_unit(text)),
            _ => return Some(()),
        };
        let Err(why) = verdict else { return Some(()) };
        let label = match code {
            "E0520" => "this pattern",
            "E0521" => "this format",
            "E0524" => "not a zone",
            _ => "not a unit",
        };
        let near = match code {
            "E0524" if text.contains('/') => nearest(text, dfc_stdlib::zone_names()),
            "E0526" => nearest(text, dfc_stdlib::calendar::UNITS.iter().map(|(name, _)| *name)),
            _ => None,
        };
        let report = self.error(code, span, why, label);
        match (code, near) {
            ("E0520", _) => {
                report.help("the syntax is that of Rust's `regex`; a sign that is meant itself has `\\` before it")
            }
            ("E0521", _) => report.help("a format looks like \"%Y-%m-%d\""),
            ("E0524", None) => {
                report.help("the name of a zone is a continent and a city, such as `Europe/Berlin`, or `UTC`")
            }
            (_, Some(near)) => report.help(format!("did you mean `{near}`?")).fix(
                format!("write `{near}`"),
                span,
                format!("\"{near}\""),
            ),
            _ => report,
        };
        None
    }
}

/// `and`, `or` whose left side is a constant that leaves the right side alone.
fn decided(e: Expr) -> Result<Expr, Expr> {
    match e.kind {
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            let neutral = Value::Bool(op == BinaryOp::And);
            if matches!(&left.kind, ExprKind::Literal(value) if *value == neutral) {
                return Ok(*right);
            }
            Err(Expr { kind: ExprKind::Binary(op, left, right), ty: e.ty, site: e.site })
        }
        kind => Err(Expr { kind, ty: e.ty, site: e.site }),
    }
}

/// Whether every operand is a constant and an engine knows the form.
fn foldable(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::Now | ExprKind::Today => return false,
        ExprKind::Call(name, _) if dfc_stdlib::natives::lookup(name).is_none() => return false,
        _ => {}
    }
    let mut constant = true;
    e.for_each_child(&mut |child| constant &= matches!(child.kind, ExprKind::Literal(_)));
    constant
}

fn weight(value: &Value<'_>) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) | Value::Record(items) => items.iter().map(|item| 1 + weight(item)).sum(),
        _ => 1,
    }
}

/// The first part that differs between rows or runs.
fn not_constant(e: &Expr) -> Option<&ExprKind> {
    if matches!(e.kind, ExprKind::Column(_) | ExprKind::Now | ExprKind::Today) {
        return Some(&e.kind);
    }
    let mut found = None;
    e.for_each_child(&mut |child| {
        if found.is_none() {
            found = not_constant(child);
        }
    });
    found
}

/// Some value of the type, for a parameter whose value is not known yet.
fn some_value(ty: &DataType) -> Value<'static> {
    if ty.nullable {
        return Value::Null;
    }
    match &ty.ty {
        Type::Bool => Value::Bool(false),
        Type::Int(_) => Value::Int(1),
        Type::Float32 | Type::Float64 => Value::Float(1.0),
        Type::Decimal(..) => Value::Decimal(1),
        Type::String | Type::Secret => Value::string(""),
        Type::Json => Value::string("null"),
        Type::Bytes => Value::Bytes(Vec::new().into()),
        Type::Date => Value::Date(0),
        Type::Time => Value::Time(0),
        Type::DateTime => Value::DateTime(0),
        Type::Timestamp => Value::Timestamp(0),
        Type::Duration => Value::Duration(0),
        Type::List(_) => Value::List(Vec::new()),
        Type::Record(fields) => Value::Record(fields.iter().map(|field| some_value(&field.ty)).collect()),
        Type::Null => Value::Null,
    }
}
