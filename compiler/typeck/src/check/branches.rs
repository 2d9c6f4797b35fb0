//! Choosing: `if`, `match`, `??`, and the common type of several values.

use dfc_grammar::ast::{self, Span};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Type, Value};

use super::literals::{Adapt, adapt, is_loose, is_null};
use super::names::size;
use crate::Checker;
use crate::checker::not_null_columns;
use crate::conversions::{common_type, needs_zone};

impl Checker<'_> {
    /// `if c then a else b`
    pub(crate) fn if_else(
        &mut self,
        condition: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        span: Span,
        expected: Option<&DataType>,
    ) -> Option<Expr> {
        let checked = self.condition(condition, "`if`");
        let arm = self.arm(checked.as_ref(), then, expected);
        let always = checked.as_ref().is_some_and(is_true);
        let otherwise_checked = self.in_branch(always, |this| this.infer(otherwise, expected));
        let (checked, arm, last) = (checked?, arm?, otherwise_checked?);
        let values = vec![(arm, then), (last, otherwise)];
        self.case(vec![checked], values, span, expected)
    }

    /// The value of an arm, which may rely on its condition.
    fn arm(&mut self, condition: Option<&Expr>, value: &ast::Expr, expected: Option<&DataType>) -> Option<Expr> {
        let narrowed = self.state.narrowed.len();
        if let Some(condition) = condition {
            not_null_columns(condition, &mut self.state.narrowed);
        }
        let never = condition.is_some_and(|c| matches!(&c.kind, ExprKind::Literal(v) if *v != Value::Bool(true)));
        let checked = self.in_branch(never, |this| this.infer(value, expected));
        self.state.narrowed.truncate(narrowed);
        checked
    }

    fn in_branch<T>(&mut self, dead: bool, work: impl FnOnce(&mut Self) -> T) -> T {
        self.state.dead += u32::from(dead);
        let result = work(self);
        self.state.dead -= u32::from(dead);
        result
    }

    /// Conditions and one value more than conditions; arms that are decided are dropped.
    fn case(
        &mut self,
        conditions: Vec<Expr>,
        values: Vec<(Expr, &ast::Expr)>,
        span: Span,
        expected: Option<&DataType>,
    ) -> Option<Expr> {
        let (values, ty) = self.unify(values, expected, "the branches", span)?;
        let mut values = values.into_iter();
        let mut arms = Vec::new();
        let mut otherwise = None;
        for condition in conditions {
            let value = values.next()?;
            match &condition.kind {
                ExprKind::Literal(Value::Bool(true)) => {
                    otherwise = Some(value);
                    break;
                }
                ExprKind::Literal(_) => {}
                _ => arms.push((condition, value)),
            }
        }
        let otherwise = match otherwise {
            Some(value) => value,
            None => values.next_back()?,
        };
        if arms.is_empty() {
            return self.convert(otherwise, &ty, span);
        }
        self.node(ExprKind::Case { arms, otherwise: Box::new(otherwise) }, ty, span)
    }

    /// `match`
    pub(crate) fn match_arms(
        &mut self,
        subject: Option<&ast::Expr>,
        arms: &[ast::MatchArm],
        otherwise: Option<&ast::Expr>,
        span: Span,
        expected: Option<&DataType>,
    ) -> Option<Expr> {
        let checked_subject = match subject {
            Some(subject) => Some((subject, self.infer(subject, None)?)),
            None => None,
        };
        // `_ => 0` of other languages.
        let blank = arms.iter().flat_map(|arm| &arm.patterns).find(|p| super::compare::name_of(p) == Some("_"));
        if let (Some(blank), None) = (blank, otherwise)
            && !self.scope.names().contains(&"_")
        {
            self.error(
                "E0511",
                blank.span,
                "this `match` has no value where no arm fits: `_` is no pattern",
                "no `else`",
            )
            .help("write the last arm as `else => …`")
            .fix("write `else`", blank.span, "else");
            return None;
        }
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        let mut sound = true;
        if subject.is_some() {
            self.lint_patterns_twice(arms);
        }
        for arm in arms {
            let condition = match &checked_subject {
                Some((subject, checked)) => self.patterns(subject, checked, &arm.patterns),
                None => self.any_of(&arm.patterns),
            };
            let value = self.arm(condition.as_ref(), &arm.value, expected);
            match (condition, value) {
                (Some(condition), Some(value)) => {
                    conditions.push(condition);
                    values.push((value, &arm.value));
                }
                _ => sound = false,
            }
        }
        match otherwise {
            Some(e) => match self.infer(e, expected) {
                Some(value) => values.push((value, e)),
                None => sound = false,
            },
            None => {
                let covers = covers_bool(checked_subject.as_ref().map(|(_, checked)| checked), arms);
                if !covers {
                    self.error("E0511", span, "this `match` has no value where no arm fits", "no `else`")
                        .help("add a last arm: `else => …`");
                    return None;
                }
                conditions.pop();
            }
        }
        if !sound || values.is_empty() {
            return None;
        }
        self.case(conditions, values, span, expected)
    }

    /// A value that an arm above matches already.
    fn lint_patterns_twice(&mut self, arms: &[ast::MatchArm]) {
        let mut known: Vec<(&ast::Literal, Span)> = Vec::new();
        for pattern in arms.iter().flat_map(|arm| &arm.patterns) {
            let ast::ExprKind::Literal(value) = &pattern.kind else { continue };
            match known.iter().find(|(other, _)| *other == value) {
                Some((_, first)) => {
                    let first = self.loc(*first);
                    self.warning("W0504", pattern.span, "this value is matched by an arm above", "never reached")
                        .related(first, "matched here")
                        .help("take it out, or write the value that was meant");
                }
                None => known.push((value, pattern.span)),
            }
        }
    }

    /// Whether the subject equals one of an arm's patterns; `null` is a pattern too.
    fn patterns(&mut self, subject: &ast::Expr, checked: &Expr, patterns: &[ast::Expr]) -> Option<Expr> {
        let span = patterns.first()?.span.to(patterns.last()?.span);
        if !self.spend(size(checked), span) {
            return None;
        }
        let values: Vec<&ast::Expr> = patterns.iter().filter(|p| !is_null(p)).collect();
        let nulls = values.len() < patterns.len();
        let is_null = if nulls {
            let kind = ExprKind::IsNull(Box::new(checked.clone()));
            Some(self.node(kind, DataType::of(Type::Bool), span)?)
        } else {
            None
        };
        let equal = match values.as_slice() {
            [] => None,
            [one] => {
                let right = self.infer(one, None)?;
                Some(self.compared(BinaryOp::Eq, "match", (subject, checked.clone()), (one, right), span)?)
            }
            many => Some(self.one_of((subject, checked.clone()), many, span)?),
        };
        match (is_null, equal) {
            (Some(a), Some(b)) => {
                let ty = DataType { ty: Type::Bool, nullable: b.ty.nullable };
                self.node(ExprKind::Binary(BinaryOp::Or, Box::new(a), Box::new(b)), ty, span)
            }
            (one, other) => one.or(other),
        }
    }

    /// Several conditions of one arm, joined by `or`.
    fn any_of(&mut self, conditions: &[ast::Expr]) -> Option<Expr> {
        let mut any: Option<Expr> = None;
        for e in conditions {
            let next = self.condition(e, "an arm of `match`")?;
            any = Some(match any {
                None => next,
                Some(before) => {
                    let ty = DataType { ty: Type::Bool, nullable: before.ty.nullable || next.ty.nullable };
                    self.node(ExprKind::Binary(BinaryOp::Or, Box::new(before), Box::new(next)), ty, e.span)?
                }
            });
        }
        any
    }

    /// `a ?? b ?? c`
    pub(crate) fn or_else(
        &mut self,
        l: &ast::Expr,
        r: &ast::Expr,
        span: Span,
        expected: Option<&DataType>,
    ) -> Option<Expr> {
        let mut operands = vec![l];
        let mut last = r;
        while let ast::ExprKind::Binary(ast::BinaryOp::Coalesce, _, l, r) = &last.kind {
            operands.push(l);
            last = r;
        }
        operands.push(last);
        let optional = expected.map(|to| to.with_nullable(true));
        let mut values = Vec::new();
        for e in operands {
            values.push(self.infer(e, optional.as_ref()).map(|checked| (checked, e)));
        }
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        if let Some((first, e)) = values.first()
            && !first.ty.nullable
        {
            let places = self.places_of(first);
            self.warning("W0505", e.span, "this is never null, so `??` has no effect", format!("{}", first.ty))
                .related_all(places)
                .help("leave out `??` and what follows it");
        }
        self.coalesce(values, span, expected, "the values around `??`")
    }

    /// The first of several values that is not null.
    pub(crate) fn coalesce(
        &mut self,
        values: Vec<(Expr, &ast::Expr)>,
        span: Span,
        expected: Option<&DataType>,
        what: &str,
    ) -> Option<Expr> {
        let (mut values, common) = self.unify(values, expected, what, span)?;
        let nullable = values.iter().all(|value| value.ty.nullable);
        let ty = common.with_nullable(nullable);
        // A null constant adds nothing; after a value that is never null none is looked at.
        values.retain(|value| value.kind != ExprKind::Literal(Value::Null));
        if let Some(certain) = values.iter().position(|value| !value.ty.nullable) {
            values.truncate(certain + 1);
        }
        match values.len() {
            0 => Some(Expr { kind: ExprKind::Literal(Value::Null), ty, site: self.site(span) }),
            1 => values.pop(),
            _ => self.node(ExprKind::Coalesce(values), ty, span),
        }
    }

    /// Several values converted to their common type (each keeps its own nullability), and that type.
    pub(crate) fn unify(
        &mut self,
        mut values: Vec<(Expr, &ast::Expr)>,
        expected: Option<&DataType>,
        what: &str,
        span: Span,
    ) -> Option<(Vec<Expr>, DataType)> {
        let mut firm: Option<DataType> = None;
        for (value, e) in &values {
            if is_loose(e) || value.ty.ty == Type::Null {
                continue;
            }
            firm = match firm {
                None => Some(value.ty.clone()),
                Some(before) => match common_type(&before, &value.ty) {
                    Some(common) => Some(common),
                    None => return self.no_common_type(&values, what, span),
                },
            };
        }
        // Among literals alone a decimal one decides.
        let leading = firm.clone().or_else(|| {
            values.iter().map(|(value, _)| &value.ty).find(|ty| matches!(ty.ty, Type::Decimal(..))).cloned()
        });
        if let Some(leading) = &leading {
            for (value, e) in &mut values {
                if is_loose(e) {
                    *value = adapt(value.clone(), &leading.ty, Adapt::Operand);
                }
            }
        }
        let mut common: Option<DataType> = None;
        for (value, _) in &values {
            common = match common {
                None => Some(value.ty.clone()),
                Some(before) => match common_type(&before, &value.ty) {
                    Some(common) => Some(common),
                    None => return self.no_common_type(&values, what, span),
                },
            };
        }
        let mut common = common?;
        if common.ty == Type::Null
            && let Some(expected) = expected
        {
            common = expected.with_nullable(true);
        }
        if let Some((value, e)) = values.iter().find(|(value, e)| !is_loose(e) && rounds(&value.ty.ty, &common.ty)) {
            let from = value.ty.ty.clone();
            self.lint_rounding(&from, &common.ty, what, e.span);
        }
        let mut converted = Vec::new();
        for (value, e) in values {
            let value = if common.ty == Type::Null { value } else { self.convert_plain(value, &common.ty, e.span)? };
            converted.push(value);
        }
        Some((converted, common))
    }

    /// A lint where values that meet are rounded to a common decimal type.
    pub(crate) fn lint_rounding(&mut self, from: &Type, to: &Type, what: &str, span: Span) {
        self.warning("W0509", span, format!("{what} are brought to {to}, which rounds this one"), format!("{from}"))
            .note("no decimal of 38 digits holds both, so the digits after the point give way")
            .help(format!("say how it is rounded, `round(…, n)`, or convert it: `… as {to}`"));
    }

    fn no_common_type<T>(&mut self, values: &[(Expr, &ast::Expr)], what: &str, span: Span) -> Option<T> {
        let clash = values.iter().enumerate().find_map(|(i, (a, ea))| {
            values[..i].iter().find(|(b, _)| common_type(&a.ty, &b.ty).is_none()).map(|(b, eb)| ((b, *eb), (a, *ea)))
        });
        let Some(((a, ea), (b, eb))) = clash else {
            self.error("E0510", span, format!("{what} have no common type"), "of several types");
            return None;
        };
        let (at, bt) = (a.ty.clone(), b.ty.clone());
        let first = (self.loc(ea.span), format!("this is {at}"));
        let report = self
            .error("E0510", eb.span, format!("{what} have no common type: {at} and {bt}"), format!("this is {bt}"))
            .related_all(vec![first]);
        if needs_zone(&at.ty, &bt.ty) {
            report.help("say the zone: `to_timestamp(x, \"Asia/Shanghai\")` makes a timestamp of a datetime");
        } else if at.ty == Type::String || bt.ty == Type::String {
            let other = if at.ty == Type::String { eb } else { ea };
            let name = super::compare::written_name(other);
            report.help(format!("make both of one type; a text of the other one is `{name} as string`"));
        } else {
            report.help("convert one of them with `as`, so that both have one type");
        }
        None
    }
}

/// Whether a decimal loses digits after the point in another decimal type.
pub(crate) fn rounds(from: &Type, to: &Type) -> bool {
    matches!((from, to), (Type::Decimal(_, s), Type::Decimal(_, s2)) if s2 < s)
}

fn is_true(e: &Expr) -> bool {
    e.kind == ExprKind::Literal(Value::Bool(true))
}

/// Whether the arms name both values of a bool that is never null.
fn covers_bool(subject: Option<&Expr>, arms: &[ast::MatchArm]) -> bool {
    let Some(subject) = subject else { return false };
    let names = |value: bool| {
        arms.iter().flat_map(|arm| &arm.patterns).any(|p| p.kind == ast::ExprKind::Literal(ast::Literal::Bool(value)))
    };
    subject.ty == DataType::of(Type::Bool) && names(true) && names(false)
}
