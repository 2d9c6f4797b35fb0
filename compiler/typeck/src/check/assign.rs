//! Assigning: the four outcomes of [`crate::conversions`], and the messages for them.

use dfc_grammar::ast::Span;
use dfc_ir::{DataType, Expr, ExprKind, Type, Value};

use super::compare::literal_of;
use crate::conversions::{Outcome, assign_outcome, castable, needs_zone, outcome};
use crate::{Checker, Target};

/// What a message writes in the place of null: `…` where no value suggests itself.
pub fn instead_of_null(ty: &Type) -> &'static str {
    match ty {
        Type::String | Type::Json => "\"\"",
        Type::Bool => "false",
        Type::Date => "@1970-01-01",
        Type::Int(_) | Type::Decimal(..) | Type::Float32 | Type::Float64 => "0",
        _ => "…",
    }
}

impl Checker<'_> {
    /// Converts a checked expression to the type of the place it goes to, by the table of [`crate::conversions`].
    /// `span` is where the expression stands. A numeric constant that the type holds exactly is always fine.
    pub fn assign(&mut self, e: Expr, to: &DataType, span: Span, target: &Target) -> Option<Expr> {
        if e.ty.ty == Type::Null && to.nullable {
            return Some(self.retype_null(e, to));
        }
        if let Some(constant) = self.constant_to(&e, to, span, target)? {
            return Some(constant);
        }
        match assign_outcome(&e.ty, to) {
            Outcome::Exact | Outcome::Widening => self.convert(e, to, span),
            Outcome::Checked(why) => self.assign_checked(e, to, span, target, why),
            Outcome::Incompatible => self.refuse_assign(&e, to, span, target),
        }
    }

    /// A numeric constant given to a numeric type: fits exactly (`Some`), or is an error. `Some(None)`: not that case.
    fn constant_to(&mut self, e: &Expr, to: &DataType, span: Span, target: &Target) -> Option<Option<Expr>> {
        let ExprKind::Literal(value) = &e.kind else { return Some(None) };
        let checked = matches!(outcome(&e.ty.ty, &to.ty), Outcome::Checked(_));
        if value.is_null() || !checked || !e.ty.ty.is_numeric() || !to.ty.is_numeric() {
            return Some(None);
        }
        let there = dfc_eval::cast_value(value.clone(), &e.ty.ty, &to.ty);
        let back = there.as_ref().ok().and_then(|v| dfc_eval::cast_value(v.clone(), &to.ty, &e.ty.ty).ok());
        match there {
            Ok(there) if back.as_ref() == Some(value) || to.ty.is_float() => {
                let literal = Expr { kind: ExprKind::Literal(there.into_owned()), ty: to.clone(), site: e.site };
                Some(Some(literal))
            }
            _ => {
                let text = dfc_eval::format_value(value, &e.ty.ty);
                let report = self
                    .error(
                        "E0514",
                        span,
                        format!("{text} doesn't fit {to}, the type of {}", target.words()),
                        "doesn't fit",
                    )
                    .help(match (&to.ty, &e.ty.ty) {
                        (Type::Int(_), Type::Decimal(..) | Type::Float64) => "write a whole number".to_owned(),
                        _ => format!("write a value that {} can hold", to.ty),
                    });
                if let Type::Int(int) = to.ty {
                    report.note(format!("{} holds whole numbers from {} to {}", to.ty, int.min(), int.max()));
                }
                None
            }
        }
    }

    fn assign_checked(
        &mut self,
        e: Expr,
        to: &DataType,
        span: Span,
        target: &Target,
        why: &'static str,
    ) -> Option<Expr> {
        let from = e.ty.clone();
        let mut places = self.places_of(&e);
        places.extend(target.declared().map(|loc| (loc.clone(), format!("{} is {to}", target.words()))));
        let only_null = outcome(&from.ty, &to.ty).is_silent() || from.ty == Type::Null;
        if target.allows_checked() {
            let code = if matches!(target, Target::UnionBranch { .. }) { "W0506" } else { "W0501" };
            let help = match only_null {
                true => "give a value for null before: `derive(x: x ?? 0)`, or `filter(x is not null)`".to_owned(),
                false => format!("write `… as {to}` in a `derive` or `cast` if that is meant"),
            };
            let more = (from.nullable && !to.nullable && !only_null).then_some("a null is a row error too");
            let report = self
                .warning(
                    code,
                    span,
                    format!("{} is {to} and is given {from}: {why}", target.words()),
                    format!("{from}"),
                )
                .related_all(places)
                .help(help);
            if let Some(more) = more {
                report.note(more);
            }
            return self.convert(e, to, span);
        }
        let message;
        let (code, label, help) = if only_null {
            message = format!("this may be null, and {} takes {to}", target.words());
            let instead = instead_of_null(&to.ty);
            let help = match target {
                Target::FnResult { .. } => format!("say what null becomes, `… ?? {instead}`, or declare `{to}?`"),
                Target::Parameter { .. } => format!("say what null becomes: `… ?? {instead}`"),
                _ => format!(
                    "say what null becomes, `… ?? {instead}`, or drop such rows before, `filter(… is not null)`"
                ),
            };
            ("E0505", format!("{from}"), help)
        } else {
            message = format!("{} takes {to}, and this is {from}", target.words());
            let literal = match &e.kind {
                ExprKind::Literal(Value::Str(text)) => literal_of(text, &to.ty),
                _ => None,
            };
            let is_text = matches!(&e.kind, ExprKind::Literal(Value::Str(_)));
            let help = match &literal {
                Some(literal) => format!("write `{literal}`"),
                None if is_text => format!("write a value of {}, without quotes", to.ty),
                None => format!("convert it: `… as {to}`"),
            };
            if is_text && literal.is_none() {
                self.error("E0504", span, message, format!("{from}")).related_all(places).help(help);
                return None;
            }
            if let Some(literal) = literal {
                self.error("E0504", span, message, format!("{from}")).related_all(places).help(help).fix(
                    format!("write `{literal}`"),
                    span,
                    literal,
                );
                return None;
            }
            ("E0504", format!("{from}"), help)
        };
        let report = self.error(code, span, message, label).related_all(places).help(help);
        if code == "E0504" {
            report.note(format!("this conversion must be written, because {why}"));
        }
        None
    }

    fn refuse_assign(&mut self, e: &Expr, to: &DataType, span: Span, target: &Target) -> Option<Expr> {
        let from = e.ty.clone();
        let mut places = self.places_of(e);
        places.extend(target.declared().map(|loc| (loc.clone(), format!("{} is {to}", target.words()))));
        if needs_zone(&from.ty, &to.ty) {
            return self.refuse_without_zone(&target.words(), &from, to, span, places);
        }
        let message = format!("{} takes {to}, and this is {from}", target.words());
        let constant = matches!(e.kind, ExprKind::Literal(_)) && !matches!(from.ty, Type::Record(_));
        let report = self.error("E0503", span, message, format!("{from}")).related_all(places);
        match (&from.ty, &to.ty) {
            (Type::Record(a), Type::Record(b)) => {
                let surplus = a.iter().find(|a| b.iter().all(|b| b.name != a.name));
                let missing = b.iter().find(|b| !b.ty.nullable && a.iter().all(|a| a.name != b.name));
                match (surplus, missing) {
                    (Some(field), _) => report.help(format!("the target has no field `{}`: leave it out", field.name)),
                    (_, Some(field)) => report.help(format!("the field `{}` is missing: add it", field.name)),
                    _ => report.help("the fields' types don't fit one another"),
                }
            }
            (a, Type::Date) if a.is_numeric() => report.help(
                "a date is written `@2026-01-31`; one is made of a number of days with `@1970-01-01 + n * 1d`, of 20260131 with `parse_date(x as string, \"%Y%m%d\")`",
            ),
            (a, Type::DateTime | Type::Timestamp) if a.is_numeric() => {
                report.help("an instant is made of seconds since 1970 with `from_epoch(x)`, or `from_epoch(x, \"millisecond\")`")
            }
            (a, b) if constant => report.help(match (a, b, &e.kind) {
                (Type::List(_), Type::String, _) => {
                    "give one text; several files are a pattern, `\"data/*.csv\"`".to_owned()
                }
                (a, Type::Duration, ExprKind::Literal(Value::Int(n))) if a.is_numeric() => {
                    format!("a duration has a unit: `{n}s`, `{n}m`, `{n}h`, `{n}d`")
                }
                _ => format!("write a value of {}{}", to.ty, example_of(b)),
            }),
            (a, b) if castable(a, b) => report.help(format!("convert it if that is meant: `… as {to}`")),
            (Type::List(_), _) => report.help("take one item of it: `x[0]`"),
            (Type::Record(_), _) => report.help("take one field of it: `x.name`"),
            (_, Type::List(_)) => report.help("make a list of it: `[x]`"),
            _ => report.help(format!("no conversion leads from {} to {}; give another value", from.ty, to.ty)),
        };
        None
    }
}

/// How a value of a type is written, for a message.
fn example_of(ty: &Type) -> &'static str {
    match ty {
        Type::Int(_) => ", such as `1`",
        Type::Decimal(..) => ", such as `1.50`",
        Type::Float32 | Type::Float64 => ", such as `1.5f`",
        Type::Bool => ": `true` or `false`",
        Type::String => ", such as `\"text\"`",
        Type::Date => ", such as `@2026-01-31`",
        Type::Time => ", such as `@10:00:00`",
        Type::DateTime => ", such as `@2026-01-31T10:00:00`",
        Type::Timestamp => ", such as `@2026-01-31T10:00:00Z`",
        Type::Duration => ", such as `30s`",
        Type::List(_) => ", such as `[1, 2]`",
        _ => "",
    }
}
