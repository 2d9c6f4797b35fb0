//! The types that native functions and aggregates give, named rules included (`stdlib/RULES.md` describes them).

use dfc_grammar::ast;
use dfc_ir::types::MAX_PRECISION;
use dfc_ir::{DataType, Expr, ExprKind, Type, Value};

use super::overloads::{Choice, instance};

/// The result's type for converted arguments, nullability as declared. `None`: a declaration that names a rule that is not here.
pub(crate) fn result_type(choice: &Choice<'_>, args: &[Expr]) -> Option<DataType> {
    let first = choice.types.first();
    let rule = match &choice.overload.decl.output {
        ast::NativeOutput::Type(ty) => {
            let plain = instance(ty, &choice.vars, first.unwrap_or(&Type::Null))?;
            return Some(DataType { ty: plain, nullable: ty.nullable });
        }
        ast::NativeOutput::Rule(rule) => rule.text.as_str(),
        _ => return None,
    };
    let first = first?;
    let ty = match rule {
        "coalesce" => first.clone(),
        "round" => round(first, digits(args)),
        "sum" => sum(first),
        "avg" => avg(first),
        "median" => median(first),
        _ => return None,
    };
    Some(DataType::of(ty))
}

/// The digits that a rounding keeps: `Some(None)` where they are not constant.
fn digits(args: &[Expr]) -> Option<i128> {
    match args.get(1) {
        None => Some(0),
        Some(Expr { kind: ExprKind::Literal(Value::Int(digits)), .. }) => Some(*digits),
        Some(_) => None,
    }
}

fn round(ty: &Type, digits: Option<i128>) -> Type {
    let Type::Decimal(p, s) = *ty else { return ty.clone() };
    match digits {
        None => Type::Decimal((p + 1).min(MAX_PRECISION), s),
        Some(d) if d >= i128::from(s) => ty.clone(),
        Some(d) if d >= 0 => {
            // d < s <= 38
            let d = d as u8;
            Type::Decimal((p - s + d + 1).min(MAX_PRECISION), d)
        }
        Some(_) => Type::Decimal((p - s + 1).min(MAX_PRECISION), 0),
    }
}

fn sum(ty: &Type) -> Type {
    match ty {
        Type::Decimal(_, s) => Type::Decimal(MAX_PRECISION, *s),
        ty if ty.is_float() => Type::Float64,
        _ => Type::INT64,
    }
}

fn avg(ty: &Type) -> Type {
    match ty {
        Type::Decimal(p, s) => Type::Decimal(MAX_PRECISION, (*s).max((MAX_PRECISION - (p - s)).min(12))),
        _ => Type::Float64,
    }
}

fn median(ty: &Type) -> Type {
    match ty {
        Type::Decimal(MAX_PRECISION, s) => Type::Decimal(MAX_PRECISION, *s),
        Type::Decimal(p, s) => Type::Decimal(p + 1, s + 1),
        _ => Type::Float64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_follows_the_digits() {
        let d = Type::Decimal(15, 4);
        assert_eq!(round(&d, Some(2)), Type::Decimal(14, 2));
        assert_eq!(round(&d, Some(0)), Type::Decimal(12, 0));
        assert_eq!(round(&d, Some(9)), d);
        assert_eq!(round(&d, Some(-2)), Type::Decimal(12, 0));
        assert_eq!(round(&d, None), Type::Decimal(16, 4));
        assert_eq!(round(&Type::INT64, Some(-2)), Type::INT64);
        assert_eq!(round(&Type::Decimal(9, 0), Some(0)), Type::Decimal(9, 0));
    }

    #[test]
    fn aggregates_widen() {
        assert_eq!(sum(&Type::Decimal(15, 2)), Type::Decimal(38, 2));
        assert_eq!(sum(&Type::INT32), Type::INT64);
        assert_eq!(avg(&Type::Decimal(15, 2)), Type::Decimal(38, 12));
        assert_eq!(avg(&Type::Decimal(38, 2)), Type::Decimal(38, 2));
        assert_eq!(avg(&Type::INT32), Type::Float64);
        assert_eq!(median(&Type::Decimal(15, 2)), Type::Decimal(16, 3));
    }
}
