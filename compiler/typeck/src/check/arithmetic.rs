//! `+ - * / div %` and unary `-`: which operands they take, what they convert them to and what they give.

use dfc_grammar::ast::{self, Span};
use dfc_ir::types::{IntType, MAX_PRECISION};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Type, UnaryOp, Value};

use super::literals::{adapt_operands, is_loose, is_null};
use crate::Checker;
use crate::conversions::{common_int, common_type, needs_zone};

/// How two operands are combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What the left operand is converted to.
    pub left: Type,
    /// What the right operand is converted to.
    pub right: Type,
    /// The result.
    pub result: Type,
    /// The operands change places (`1d + date`).
    pub swap: bool,
}

impl Plan {
    fn of(left: Type, right: Type, result: Type) -> Option<Plan> {
        Some(Plan { left, right, result, swap: false })
    }

    fn same(ty: Type) -> Option<Plan> {
        Plan::of(ty.clone(), ty.clone(), ty)
    }
}

/// The plan for `left op right`; `None`: the operator doesn't take these types.
pub(crate) fn plan(op: BinaryOp, left: &Type, right: &Type) -> Option<Plan> {
    use BinaryOp::{Add, Mul, Sub};
    if left.is_numeric() && right.is_numeric() {
        return numbers(op, left, right);
    }
    match (op, left, right) {
        (Add | Sub, Type::Date | Type::DateTime | Type::Timestamp | Type::Duration, Type::Duration) => {
            Plan::of(left.clone(), Type::Duration, left.clone())
        }
        (Add, Type::Duration, Type::Date | Type::DateTime | Type::Timestamp) => {
            Some(Plan { left: left.clone(), right: right.clone(), result: right.clone(), swap: true })
        }
        (Sub, Type::Date, Type::Date) => Plan::of(Type::Date, Type::Date, Type::INT64),
        (Sub, Type::DateTime | Type::Date, Type::DateTime | Type::Date) => {
            Plan::of(Type::DateTime, Type::DateTime, Type::Duration)
        }
        (Sub, Type::Timestamp, Type::Timestamp) | (Sub, Type::Time, Type::Time) => {
            Plan::of(left.clone(), right.clone(), Type::Duration)
        }
        (Mul, Type::Duration, Type::Int(int)) if *int != IntType::U64 => {
            Plan::of(Type::Duration, Type::INT64, Type::Duration)
        }
        (Mul, Type::Int(int), Type::Duration) if *int != IntType::U64 => {
            Some(Plan { left: Type::INT64, right: Type::Duration, result: Type::Duration, swap: true })
        }
        _ => None,
    }
}

fn numbers(op: BinaryOp, left: &Type, right: &Type) -> Option<Plan> {
    match (left, right) {
        (Type::Int(a), Type::Int(b)) => {
            if op == BinaryOp::Div {
                return Plan::of(Type::Float64, Type::Float64, Type::Float64);
            }
            match common_int(*a, *b) {
                Type::Decimal(..) => decimals(op, &int_as_decimal(*a), &int_as_decimal(*b)),
                int => Plan::same(int),
            }
        }
        (Type::Int(int), decimal @ Type::Decimal(..)) => decimals(op, &int_as_decimal(*int), decimal),
        (decimal @ Type::Decimal(..), Type::Int(int)) => decimals(op, decimal, &int_as_decimal(*int)),
        (Type::Decimal(..), Type::Decimal(..)) => decimals(op, left, right),
        // A float on one side or on both.
        _ => {
            let common = common_type(&DataType::of(left.clone()), &DataType::of(right.clone()))?;
            if op == BinaryOp::IntDiv { Plan::same(Type::Float64) } else { Plan::same(common.ty) }
        }
    }
}

fn int_as_decimal(int: IntType) -> Type {
    Type::Decimal(int.digits(), 0)
}

fn decimals(op: BinaryOp, left: &Type, right: &Type) -> Option<Plan> {
    let (Type::Decimal(p1, s1), Type::Decimal(p2, s2)) = (left, right) else { return None };
    Plan::of(left.clone(), right.clone(), decimal_result(op, (*p1, *s1), (*p2, *s2)))
}

/// The type of an operation on decimals of (precision, scale).
pub(crate) fn decimal_result(op: BinaryOp, (p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> Type {
    let (p1, s1, p2, s2) = (u32::from(p1), u32::from(s1), u32::from(p2), u32::from(s2));
    let scale = s1.max(s2);
    let (precision, scale) = match op {
        BinaryOp::Mul => (p1 + p2 + 1, s1 + s2),
        BinaryOp::Div => {
            let scale = (s1 + p2 + 1).max(6);
            (p1 - s1 + s2 + scale, scale)
        }
        BinaryOp::IntDiv => (u32::from(MAX_PRECISION), 0),
        // The remainder is smaller than the divisor and not larger than the dividend.
        BinaryOp::Mod => ((p1 - s1).min(p2 - s2) + scale, scale),
        _ => ((p1 - s1).max(p2 - s2) + scale + 1, scale),
    };
    capped(precision.max(1), scale)
}

/// Past 38 digits the integer digits stay and the scale shrinks, not below min(scale, 6).
fn capped(precision: u32, scale: u32) -> Type {
    let max = u32::from(MAX_PRECISION);
    if precision <= max {
        return Type::Decimal(precision as u8, scale as u8);
    }
    let integer = precision - scale;
    let scale = max.saturating_sub(integer).max(scale.min(6));
    Type::Decimal(MAX_PRECISION, scale as u8)
}

/// The operator's spelling, its IR form and its verb.
const OPERATORS: &[(ast::BinaryOp, &str, BinaryOp, &str)] = &[
    (ast::BinaryOp::Add, "+", BinaryOp::Add, "add"),
    (ast::BinaryOp::Sub, "-", BinaryOp::Sub, "subtract"),
    (ast::BinaryOp::Mul, "*", BinaryOp::Mul, "multiply"),
    (ast::BinaryOp::Div, "/", BinaryOp::Div, "divide"),
    (ast::BinaryOp::IntDiv, "div", BinaryOp::IntDiv, "divide"),
    (ast::BinaryOp::Mod, "%", BinaryOp::Mod, "take a remainder of"),
];

impl Checker<'_> {
    /// `l op r` for the operators of this module.
    pub(crate) fn arithmetic(
        &mut self,
        op: ast::BinaryOp,
        at: Span,
        l: &ast::Expr,
        r: &ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let left = self.infer(l, None);
        let right = self.infer(r, None);
        let (mut left, mut right) = (left?, right?);
        let (_, spelling, ir_op, verb) = *OPERATORS.iter().find(|(ast_op, ..)| *ast_op == op)?;
        for (e, checked) in [(l, &left), (r, &right)] {
            if is_null(e) || checked.ty.ty == Type::Null {
                self.error("E0507", e.span, format!("`{spelling}` with null is always null"), "null here")
                    .help("give a value, or the typed null that is meant: `null as int64?`");
                return None;
            }
        }
        adapt_operands((l, &mut left), (r, &mut right));
        let Some(plan) = plan(ir_op, &left.ty.ty, &right.ty.ty) else {
            return self.refuse_operands(spelling, verb, (l, &left), (r, &right), at);
        };
        let mixed = |a: &Type, b: &Type| a.is_float() && matches!(b, Type::Decimal(..));
        if !is_loose(l) && !is_loose(r) && (mixed(&left.ty.ty, &right.ty.ty) || mixed(&right.ty.ty, &left.ty.ty)) {
            let message = format!("{} {spelling} {} is computed as float64", left.ty, right.ty);
            self.warning("W0500", span, message, "no longer exact")
                .help("to stay exact convert the float first: `x as decimal(18, 4)`");
        }
        left = self.convert_plain(left, &plan.left, l.span)?;
        right = self.convert_plain(right, &plan.right, r.span)?;
        if plan.swap {
            std::mem::swap(&mut left, &mut right);
        }
        let ty = DataType { ty: plan.result, nullable: left.ty.nullable || right.ty.nullable };
        self.node(ExprKind::Binary(ir_op, Box::new(left), Box::new(right)), ty, span)
    }

    fn refuse_operands(
        &mut self,
        spelling: &str,
        verb: &str,
        (_, left): (&ast::Expr, &Expr),
        (r, right): (&ast::Expr, &Expr),
        at: Span,
    ) -> Option<Expr> {
        let mut places = self.places_of(left);
        places.extend(self.places_of(right));
        let (lt, rt) = (left.ty.clone(), right.ty.clone());
        if needs_zone(&lt.ty, &rt.ty) {
            return self.refuse_without_zone(&format!("`{spelling}`"), &lt, &rt, at, places);
        }
        let message = format!("`{spelling}` can't {verb} {lt} and {rt}");
        let label = format!("{lt} {spelling} {rt}");
        let either = |test: fn(&Type) -> bool| test(&lt.ty) || test(&rt.ty);
        let is_date = |ty: &Type| matches!(ty, Type::Date | Type::DateTime | Type::Timestamp);
        let report = self.error("E0500", at, message, label).related_all(places);
        match (&lt.ty, &rt.ty) {
            (Type::String, Type::String) if spelling == "+" => {
                report.help("join texts with `concat(a, b)` or `f\"{a}{b}\"`")
            }
            (Type::String, other) | (other, Type::String) if other.is_numeric() && spelling == "+" => report.help(format!(
                "convert the text first, `… as {other}`, or join both as text with `concat(a, b)` or `f\"{{a}}{{b}}\"`"
            )),
            (Type::String, _) if spelling == "%" && matches!(left.kind, ExprKind::Literal(_)) => {
                report.help("values are put into a text by `f\"{id}-{name}\"`")
            }
            (Type::String, _) | (_, Type::String) if spelling == "+" => {
                report.help("join both as text with `f\"{a}{b}\"`")
            }
            (Type::String, other) | (other, Type::String) if other.is_numeric() => {
                report.help(format!("convert the text first: `… as {other}`"))
            }
            (date, Type::Int(_)) if is_date(date) && (spelling == "+" || spelling == "-") => {
                let text = match &r.kind {
                    ast::ExprKind::Literal(ast::Literal::Int(n)) => Some(format!("{n}d")),
                    _ => None,
                };
                match text {
                    Some(text) => report
                        .help(format!("write a duration: `{spelling} {text}` (also `h`, `m`, `s`, `ms`)"))
                        .fix(format!("write `{text}`"), r.span, text),
                    None => report.help("add a duration (`n * 1d`), or use `date_add(\"day\", n, x)`"),
                }
            }
            (Type::Duration, Type::Int(_) | Type::Duration) if spelling == "/" || spelling == "div" => report.help(
                "a duration can be multiplied, added and subtracted; `date_diff(\"second\", a, b)` gives a number",
            ),
            _ if either(|ty| *ty == Type::Bool) => report.help("make a number of the bool: `if x then 1 else 0`"),
            _ if either(|ty| *ty == Type::Json) => {
                report.help("take the value out of the json: `json_text(x) as int64?`")
            }
            _ => report.help(format!("`{spelling}` takes numbers, or dates and durations where that makes sense")),
        };
        None
    }

    /// A wall clock and an instant meet.
    pub(crate) fn refuse_without_zone(
        &mut self,
        what: &str,
        a: &DataType,
        b: &DataType,
        span: Span,
        places: Vec<(crate::Loc, String)>,
    ) -> Option<Expr> {
        self.error(
            "E0509",
            span,
            format!("{what} with {a} and {b} needs a time zone"),
            "a wall clock meets an instant",
        )
        .related_all(places)
        .help(
            "say the zone: `to_timestamp(x, \"Asia/Shanghai\")` makes a timestamp of a datetime, \
             `to_datetime(x, \"Asia/Shanghai\")` a datetime of a timestamp",
        );
        None
    }

    /// `-x`
    pub(crate) fn negate(&mut self, inner: &ast::Expr, span: Span) -> Option<Expr> {
        // `-9223372036854775808` is an int64 although its digits alone are not.
        if let ast::ExprKind::Literal(ast::Literal::Int(n)) = &inner.kind {
            return self.int_literal(-n, span);
        }
        let mut checked = self.infer(inner, None)?;
        let ty = match &checked.ty.ty {
            Type::Int(IntType::U8) => Type::Int(IntType::I16),
            Type::Int(IntType::U16) => Type::INT32,
            Type::Int(IntType::U32) => Type::INT64,
            Type::Int(IntType::U64) => Type::Decimal(20, 0),
            ty if ty.is_numeric() || *ty == Type::Duration => ty.clone(),
            other => {
                let message = format!("`-` takes a number or a duration, and this is {other}");
                let label = other.to_string();
                let places = self.places_of(&checked);
                self.error("E0500", inner.span, message, label).related_all(places).help(match checked.ty.ty {
                    Type::String => {
                        "a text is converted first, `-(x as int64)`; rows are sorted the other way round by `desc(x)`"
                    }
                    _ => "only numbers and durations have a sign; rows are sorted the other way round by `desc(x)`",
                });
                return None;
            }
        };
        // A literal keeps its smallest decimal.
        if let ExprKind::Literal(Value::Decimal(mantissa)) = &checked.kind {
            checked.kind = ExprKind::Literal(Value::Decimal(-mantissa));
            return Some(checked);
        }
        let checked = self.convert_plain(checked, &ty, inner.span)?;
        let ty = checked.ty.clone();
        self.node(ExprKind::Unary(UnaryOp::Neg, Box::new(checked)), ty, span)
    }
}
