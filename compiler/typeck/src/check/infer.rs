//! The forms of expressions, and conditions: which rule types which form.

use dfc_grammar::ast::{self, Span};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Type, UnaryOp, Value};

use super::literals::{Adapt, adapt, is_loose, peel};
use crate::Checker;
use crate::checker::not_null_columns;

/// Forms inside forms; more is refused, so that no walk over an expression runs out of stack.
pub(crate) const MAX_DEPTH: u32 = 400;

impl Checker<'_> {
    /// Types an expression; a bare `null` has the type null. `expected` is a hint for literals.
    pub(crate) fn infer(&mut self, e: &ast::Expr, expected: Option<&DataType>) -> Option<Expr> {
        if self.state.depth >= MAX_DEPTH {
            self.error("E0422", e.span, "this expression is nested too deeply", "more than 400 levels deep")
                .help("compute parts of it in a `derive` before");
            return None;
        }
        if self.state.depth == 0 && self.state.calls.is_empty() {
            self.state.inlined = 0;
        }
        self.state.depth += 1;
        let checked = self.infer_form(e, expected);
        self.state.depth -= 1;
        let checked = checked?;
        match expected {
            Some(to) if is_loose(e) => Some(adapt(checked, &to.ty, Adapt::Place)),
            _ => Some(checked),
        }
    }

    /// The operand of `is null`; a lint where it is never null.
    fn never_null(&mut self, value: &ast::Expr, negated: bool, span: Span) -> Option<Expr> {
        let checked = self.infer(value, None)?;
        let certain = !checked.ty.nullable && !matches!(checked.kind, ExprKind::Literal(_) | ExprKind::Cast(..));
        if certain && self.state.locals.is_none() && self.state.dead == 0 {
            let places = self.places_of(&checked);
            let always = if negated { "always" } else { "never" };
            self.warning("W0510", span, format!("this is {always} true: its type has no null"), checked.ty.to_string())
                .related_all(places)
                .help("leave the test out, or declare the field with `?` if it may be null");
        }
        Some(checked)
    }

    fn infer_form(&mut self, e: &ast::Expr, expected: Option<&DataType>) -> Option<Expr> {
        use ast::ExprKind as Kind;
        let span = e.span;
        match &e.kind {
            Kind::Error => None,
            Kind::Literal(literal) => self.literal(literal, span),
            Kind::Name(name) => self.name(name, span),
            Kind::Call(call) => self.call(call, span),
            Kind::Field(base, field) => self.field(base, field, span),
            Kind::Index(base, index) => self.index(base, index, span),
            Kind::Unary(ast::UnaryOp::Not, inner) => {
                let inner = self.condition(inner, "`not`")?;
                let ty = inner.ty.clone();
                self.node(ExprKind::Unary(UnaryOp::Not, Box::new(inner)), ty, span)
            }
            Kind::Unary(ast::UnaryOp::Neg, inner) => self.negate(inner, span),
            Kind::Binary(op, at, l, r) => self.binary(*op, *at, l, r, span, expected),
            Kind::Between { negated, value, low, high } => self.between(*negated, value, low, high, span),
            Kind::In { negated, value, list } => self.is_in(*negated, value, list, span),
            Kind::Pattern { negated, regex, value, pattern } => self.pattern(*negated, *regex, value, pattern, span),
            Kind::IsNull { negated, value } => {
                let value = self.never_null(value, *negated, span)?;
                let is_null = self.node(ExprKind::IsNull(Box::new(value)), DataType::of(Type::Bool), span)?;
                self.negated_if(*negated, is_null, span)
            }
            Kind::Cast { value, ty, fallible } => self.as_type(value, ty, *fallible, span),
            Kind::If(condition, then, otherwise) => self.if_else(condition, then, otherwise, span, expected),
            Kind::Match { subject, arms, otherwise } => {
                self.match_arms(subject.as_deref(), arms, otherwise.as_deref(), span, expected)
            }
            Kind::List(items) => self.list(items, span, expected),
            Kind::Record(entries) => self.record(entries, span, expected),
            Kind::Format(parts) => self.format(parts, span),
            Kind::Paren(inner) => self.infer(inner, expected),
            Kind::Chain(_) => {
                self.error("E0427", span, "a stream can't be used as a value", "a value is expected here")
                    .help("a value of another stream's rows comes in with `join` or `lookup`");
                None
            }
            Kind::Type(_) => {
                self.error("E0427", span, "a type can't be used as a value", "a value is expected here")
                    .help("a value is converted with `x as T`");
                None
            }
        }
    }

    fn binary(
        &mut self,
        op: ast::BinaryOp,
        at: Span,
        l: &ast::Expr,
        r: &ast::Expr,
        span: Span,
        expected: Option<&DataType>,
    ) -> Option<Expr> {
        use ast::BinaryOp as Op;
        match op {
            Op::And => self.logic(BinaryOp::And, l, r, span),
            Op::Or => self.logic(BinaryOp::Or, l, r, span),
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => self.comparison(op, l, r, span),
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::IntDiv | Op::Mod => self.arithmetic(op, at, l, r, span),
            Op::Coalesce => self.or_else(l, r, span, expected),
        }
    }

    /// `and`, `or`: three-valued; the right side of `and` knows what the left one has shown.
    fn logic(&mut self, op: BinaryOp, l: &ast::Expr, r: &ast::Expr, span: Span) -> Option<Expr> {
        let word = if op == BinaryOp::And { "`and`" } else { "`or`" };
        let known_nulls = self.state.nulls_kept.len();
        if op == BinaryOp::Or {
            for side in [l, r] {
                self.note_null_tests(side);
            }
        }
        let left = self.condition(l, word);
        let narrowed = self.state.narrowed.len();
        let mut decided = false;
        if let Some(left) = &left {
            if op == BinaryOp::And {
                not_null_columns(left, &mut self.state.narrowed);
            }
            let decides = Value::Bool(op == BinaryOp::Or);
            decided = matches!(&left.kind, ExprKind::Literal(value) if *value == decides);
        }
        self.state.dead += u32::from(decided);
        // `note or ""`: with the left side refused the right one would be told the same.
        let refused =
            self.diagnostics.last().is_some_and(|d| d.code == "E0502" && d.loc.span == l.span && left.is_none());
        let literal = matches!(peel(r).kind, ast::ExprKind::Literal(_));
        let right = if refused && literal { None } else { self.condition(r, word) };
        self.state.dead -= u32::from(decided);
        self.state.narrowed.truncate(narrowed);
        self.state.nulls_kept.truncate(known_nulls);
        let (left, right) = (left?, right?);
        if decided {
            return Some(left);
        }
        let nullable = left.ty.nullable || right.ty.nullable;
        let ty = DataType { ty: Type::Bool, nullable };
        self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span)
    }

    /// Remembers names that `name is null` keeps beside `or`, for the lint on `!=`.
    fn note_null_tests(&mut self, e: &ast::Expr) {
        match &e.kind {
            ast::ExprKind::IsNull { negated: false, value } => {
                if let ast::ExprKind::Name(name) = &value.kind {
                    self.state.nulls_kept.push(name.clone());
                }
            }
            ast::ExprKind::Paren(inner) => self.note_null_tests(inner),
            ast::ExprKind::Binary(ast::BinaryOp::Or, _, l, r) => {
                self.note_null_tests(l);
                self.note_null_tests(r);
            }
            _ => {}
        }
    }

    /// An expression that must be a bool or optional bool; `what` is named in the message.
    pub(crate) fn condition(&mut self, e: &ast::Expr, what: &str) -> Option<Expr> {
        let checked = self.infer(e, Some(&DataType::optional(Type::Bool)))?;
        match checked.ty.ty {
            Type::Bool => Some(checked),
            Type::Null => Some(self.retype_null(checked, &DataType::optional(Type::Bool))),
            _ => {
                let ty = checked.ty.clone();
                let places = self.places_of(&checked);
                let text = matches!(peel(e).kind, ast::ExprKind::Literal(ast::Literal::String(_)));
                let shown = match &peel(e).kind {
                    ast::ExprKind::Name(name) => dfc_ir::text::written(name),
                    _ => "…".to_owned(),
                };
                let report = self
                    .error("E0502", e.span, format!("{what} takes bool, and this is {ty}"), format!("{ty}"))
                    .related_all(places);
                match ty.ty {
                    _ if ty.nullable && what == "`or`" => {
                        report.help(format!("what stands for null is written with `??`: `{shown} ?? …`"))
                    }
                    _ if ty.ty.is_numeric() => report.help(format!("compare it: `{shown} != 0`")),
                    Type::String if text => report.help("fields and conditions stand without quotes"),
                    Type::String => {
                        report.help(format!("compare it: `{shown} == \"yes\"`, or read it: `{shown} as bool`"))
                    }
                    _ => report.help("a comparison gives a bool: `… == …`, `… is not null`"),
                };
                None
            }
        }
    }

    /// `not e` where `negated`.
    pub(crate) fn negated_if(&mut self, negated: bool, e: Expr, span: Span) -> Option<Expr> {
        if !negated {
            return Some(e);
        }
        let ty = e.ty.clone();
        self.node(ExprKind::Unary(UnaryOp::Not, Box::new(e)), ty, span)
    }
}
