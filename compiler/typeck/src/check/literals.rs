//! Literals, and how a numeric one takes the type of what it meets.

use dfc_grammar::ast::{self, Span};
use dfc_ir::types::MAX_PRECISION;
use dfc_ir::{DataType, Expr, ExprKind, Type, Value};

use crate::Checker;

/// What a literal adapts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adapt {
    /// The other operand of an operator: with a decimal it becomes the smallest decimal that holds it.
    Operand,
    /// A place of a known type: it becomes exactly that type.
    Place,
}

/// Whether an expression consists of numeric literals only, whose type is not fixed yet: `5`, `-1.5`, `(24 * 60)`.
pub(crate) fn is_loose(e: &ast::Expr) -> bool {
    use ast::{BinaryOp, ExprKind as Kind, Literal};
    match &e.kind {
        Kind::Literal(literal) => matches!(literal, Literal::Int(_) | Literal::Decimal { .. } | Literal::Bytes(_)),
        Kind::Paren(inner) | Kind::Unary(ast::UnaryOp::Neg, inner) => is_loose(inner),
        Kind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, _, l, r) => is_loose(l) && is_loose(r),
        _ => false,
    }
}

/// Whether it is the literal `null`, parentheses aside.
pub(crate) fn is_null(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::Literal(ast::Literal::Null) => true,
        ast::ExprKind::Paren(inner) => is_null(inner),
        _ => false,
    }
}

/// Without the parentheses around it.
pub(crate) fn peel(e: &ast::Expr) -> &ast::Expr {
    match &e.kind {
        ast::ExprKind::Paren(inner) => peel(inner),
        _ => e,
    }
}

/// Decimal digits of a number, at least 1.
fn digits(mut n: u128) -> u8 {
    let mut count = 1;
    while n >= 10 {
        n /= 10;
        count += 1;
    }
    count
}

fn power(exponent: u8) -> i128 {
    10i128.pow(u32::from(exponent))
}

/// The smallest decimal type of `mantissa × 10^-scale`; `None` past 38 digits.
pub(crate) fn smallest_decimal(mantissa: i128, scale: u8) -> Option<Type> {
    let precision = digits(mantissa.unsigned_abs()).max(scale).max(1);
    (precision <= MAX_PRECISION).then_some(Type::Decimal(precision, scale))
}

/// A folded numeric literal as one of type `to`, if that holds it exactly (a float: to the nearest). Otherwise unchanged.
pub(crate) fn adapt(mut e: Expr, to: &Type, how: Adapt) -> Expr {
    let (mantissa, scale) = match (&e.kind, &e.ty.ty) {
        (ExprKind::Literal(Value::Int(n)), _) => (*n, 0),
        (ExprKind::Literal(Value::Decimal(m)), Type::Decimal(_, scale)) => (*m, *scale),
        _ => return e,
    };
    let adapted = match to {
        &Type::Int(int) => {
            let whole = scale == 0 || (how == Adapt::Place && mantissa % power(scale) == 0);
            let value = if scale == 0 { mantissa } else { mantissa / power(scale) };
            (whole && int.min() <= value && value <= int.max()).then_some((Value::Int(value), to.clone()))
        }
        Type::Decimal(..) if how == Adapt::Operand => {
            smallest_decimal(mantissa, scale).map(|ty| (Value::Decimal(mantissa), ty))
        }
        Type::Decimal(p, s) => rescale(mantissa, scale, *s)
            .filter(|m| digits(m.unsigned_abs()) <= *p)
            .map(|m| (Value::Decimal(m), to.clone())),
        Type::Float64 => format!("{mantissa}e-{scale}").parse().ok().map(|v: f64| (Value::Float(v), Type::Float64)),
        Type::Float32 => format!("{mantissa}e-{scale}")
            .parse()
            .ok()
            .filter(|v: &f32| v.is_finite())
            .map(|v| (Value::Float(f64::from(v)), Type::Float32)),
        _ => None,
    };
    if let Some((value, ty)) = adapted {
        e.kind = ExprKind::Literal(value);
        e.ty = DataType { ty, nullable: e.ty.nullable };
    }
    e
}

/// Numeric literals among two operands take the other's type; between two literals a decimal one decides.
pub(crate) fn adapt_operands((l, left): (&ast::Expr, &mut Expr), (r, right): (&ast::Expr, &mut Expr)) {
    let decimal = |e: &Expr| matches!(e.ty.ty, Type::Decimal(..));
    let (l, r) = (is_loose(l), is_loose(r));
    if l && (!r || decimal(right)) {
        *left = adapt(left.clone(), &right.ty.ty, Adapt::Operand);
    } else if r && (!l || decimal(left)) {
        *right = adapt(right.clone(), &left.ty.ty, Adapt::Operand);
    }
}

/// The same number at another scale, if it is exact.
fn rescale(mantissa: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return mantissa.checked_mul(power(to - from));
    }
    let factor = power(from - to);
    (mantissa % factor == 0).then_some(mantissa / factor)
}

impl Checker<'_> {
    /// A literal in its own type.
    pub(crate) fn literal(&mut self, literal: &ast::Literal, span: Span) -> Option<Expr> {
        use ast::Literal as L;
        let (value, ty) = match literal {
            L::Null => (Value::Null, Type::Null),
            L::Bool(v) => (Value::Bool(*v), Type::Bool),
            L::Int(n) => return self.int_literal(*n, span),
            L::Decimal { mantissa, scale } => match smallest_decimal(*mantissa, *scale) {
                Some(ty) => (Value::Decimal(*mantissa), ty),
                None => return self.too_many_digits(span),
            },
            L::Float(bits) => (Value::Float(f64::from_bits(*bits)), Type::Float64),
            L::String(text) => (Value::string(text.clone()), Type::String),
            L::Date(days) => (Value::Date(*days), Type::Date),
            L::Time(micros) => (Value::Time(*micros), Type::Time),
            L::DateTime(micros) => (Value::DateTime(*micros), Type::DateTime),
            L::Timestamp(micros) => (Value::Timestamp(*micros), Type::Timestamp),
            L::Duration(micros) => (Value::Duration(*micros), Type::Duration),
            L::Bytes(bytes) => return self.int_literal(i128::from(*bytes), span),
        };
        let nullable = ty == Type::Null;
        Some(Expr { kind: ExprKind::Literal(value), ty: DataType { ty, nullable }, site: self.site(span) })
    }

    /// A whole number: int64, or the smallest decimal where int64 is too narrow.
    pub(crate) fn int_literal(&mut self, n: i128, span: Span) -> Option<Expr> {
        let (value, ty) = if i64::try_from(n).is_ok() {
            (Value::Int(n), Type::INT64)
        } else {
            match smallest_decimal(n, 0) {
                Some(ty) => (Value::Decimal(n), ty),
                None => return self.too_many_digits(span),
            }
        };
        Some(Expr { kind: ExprKind::Literal(value), ty: DataType::of(ty), site: self.site(span) })
    }

    fn too_many_digits(&mut self, span: Span) -> Option<Expr> {
        self.error("E0514", span, "this number has more than 38 digits", "too long")
            .help("no type holds more than 38 digits exactly; a float64 (`1e40`) holds about 15 of them");
        None
    }
}
