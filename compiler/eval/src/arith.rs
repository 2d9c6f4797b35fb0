//! Two-sided and one-sided operators on values that are not null.
//!
//! Everything is checked: a result that its type can't hold is a row error, never wrapped, infinite or NaN.

use std::cmp::Ordering;

use dfc_ir::types::IntType;
use dfc_ir::{BinaryOp, Type, Value};

use crate::calendar::{self, DAY};
use crate::compare::{compare, equal};
use crate::decimal::{self, Decimal, division_by_zero};
use crate::{DEFECT, EvalError, OVERFLOW, REFUSED};

/// The value of `left op right` for operands that are not null; `and` and `or` of two known sides too.
///
/// `left_ty`, `right_ty` and `result` are the types that [`BinaryOp`] demands.
/// Errors: `R0101` overflow, `R0102` division by zero, `R0105` part of a day added to a date, `R0199` operands that the
/// operator has no meaning for, which the checker refuses.
pub fn binary(
    op: BinaryOp,
    left: &Value,
    left_ty: &Type,
    right: &Value,
    right_ty: &Type,
    result: &Type,
) -> Result<Value<'static>, EvalError> {
    use BinaryOp::*;
    let ordering = match (left, right) {
        (Value::Decimal(a), Value::Decimal(b)) => {
            let number = |mantissa: i128, ty: &Type| Decimal { mantissa, scale: decimal::shape(ty).1 };
            Some(decimal::compare(number(*a, left_ty), number(*b, right_ty)))
        }
        _ => None,
    };
    let ordered = |holds: fn(Ordering) -> bool| {
        ordering
            .or_else(|| compare(left, right))
            .map(|ordering| Value::Bool(holds(ordering)))
            .ok_or_else(|| refused(op, left_ty, right_ty))
    };
    match op {
        And | Or => match (left, right) {
            (Value::Bool(a), Value::Bool(b)) => Ok(Value::Bool(if op == And { *a && *b } else { *a || *b })),
            _ => Err(refused(op, left_ty, right_ty)),
        },
        Eq => Ok(Value::Bool(ordering.map_or_else(|| equal(left, right), Ordering::is_eq))),
        Ne => Ok(Value::Bool(ordering.map_or_else(|| !equal(left, right), Ordering::is_ne))),
        Lt => ordered(Ordering::is_lt),
        Le => ordered(Ordering::is_le),
        Gt => ordered(Ordering::is_gt),
        Ge => ordered(Ordering::is_ge),
        Add | Sub | Mul | Div | IntDiv | Mod => match (left, right) {
            (Value::Int(a), Value::Int(b)) => integers(op, *a, *b, result),
            (Value::Float(a), Value::Float(b)) => floats(op, *a, *b, result),
            (Value::Decimal(a), Value::Decimal(b)) => {
                let a = Decimal { mantissa: *a, scale: decimal::shape(left_ty).1 };
                let b = Decimal { mantissa: *b, scale: decimal::shape(right_ty).1 };
                decimals(op, a, b, result)
            }
            _ => temporal(op, left, right).unwrap_or_else(|| Err(refused(op, left_ty, right_ty))),
        },
    }
}

/// `-x` for an `x` that is not null. Errors: `R0101`.
pub fn negate(value: &Value, ty: &Type) -> Result<Value<'static>, EvalError> {
    match (value, ty) {
        (Value::Int(n), Type::Int(int)) => in_range(-n, *int).map(Value::Int),
        (Value::Float(x), _) => Ok(Value::Float(-x)),
        (Value::Decimal(n), _) => Ok(Value::Decimal(-n)),
        (Value::Duration(n), _) => n.checked_neg().map(Value::Duration).ok_or_else(duration_overflow),
        _ => Err(EvalError::new(DEFECT, format!("`-` has no meaning for {ty}"))),
    }
}

/// `number` if it is one of the type's. Errors: `R0101`.
pub fn in_range(number: i128, int: IntType) -> Result<i128, EvalError> {
    if (int.min()..=int.max()).contains(&number) {
        Ok(number)
    } else {
        Err(int_overflow(int).with_value(number.to_string()))
    }
}

/// `x` as a value of the float type, if it is finite. Errors: `R0101`.
pub fn finite(x: f64, ty: &Type) -> Result<Value<'static>, EvalError> {
    if x.is_finite() {
        Ok(Value::Float(x))
    } else {
        Err(EvalError::new(OVERFLOW, format!("the result is not a finite number of type {ty}")))
    }
}

fn refused(op: BinaryOp, left: &Type, right: &Type) -> EvalError {
    EvalError::new(DEFECT, format!("{op:?} has no meaning between {left} and {right}"))
}

fn int_overflow(int: IntType) -> EvalError {
    EvalError::new(
        OVERFLOW,
        format!("the result doesn't fit {}, whose values are {} to {}", int.name(), int.min(), int.max()),
    )
}

fn duration_overflow() -> EvalError {
    EvalError::new(OVERFLOW, "the result doesn't fit duration, whose values are below 292,000 years")
}

fn integers(op: BinaryOp, a: i128, b: i128, result: &Type) -> Result<Value<'static>, EvalError> {
    let &Type::Int(int) = result else {
        return Err(refused(op, result, result));
    };
    // Both are of at most 64 bits: no operation here passes 128.
    let number = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.checked_mul(b).ok_or_else(|| int_overflow(int))?,
        _ if b == 0 => return Err(division_by_zero()),
        BinaryOp::Mod => a % b,
        _ => a / b,
    };
    in_range(number, int).map(Value::Int)
}

fn floats(op: BinaryOp, a: f64, b: f64, result: &Type) -> Result<Value<'static>, EvalError> {
    if matches!(op, BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod) && b == 0.0 {
        return Err(division_by_zero());
    }
    macro_rules! compute {
        ($a:expr, $b:expr) => {
            match op {
                BinaryOp::Add => $a + $b,
                BinaryOp::Sub => $a - $b,
                BinaryOp::Mul => $a * $b,
                BinaryOp::Div => $a / $b,
                BinaryOp::Mod => $a % $b,
                _ => ($a / $b).trunc(),
            }
        };
    }
    let number = match result {
        Type::Float32 => f64::from(compute!(a as f32, b as f32)),
        _ => compute!(a, b),
    };
    finite(number, result)
}

fn decimals(op: BinaryOp, a: Decimal, b: Decimal, result: &Type) -> Result<Value<'static>, EvalError> {
    let (precision, scale) = decimal::shape(result);
    let compute = match op {
        BinaryOp::Add => decimal::add,
        BinaryOp::Sub => decimal::sub,
        BinaryOp::Mul => decimal::mul,
        BinaryOp::Div => decimal::div,
        BinaryOp::Mod => decimal::rem,
        _ => decimal::int_div,
    };
    compute(a, b, precision, scale).map(Value::Decimal)
}

/// Arithmetic with dates, times and durations; `None` for a pair without meaning.
fn temporal(op: BinaryOp, left: &Value, right: &Value) -> Option<Result<Value<'static>, EvalError>> {
    use BinaryOp::{Add, Mul, Sub};
    let sign = if op == Sub { -1i128 } else { 1 };
    let duration = |micros: i128| i64::try_from(micros).map(Value::Duration).map_err(|_| duration_overflow());
    Some(match (op, left, right) {
        (Add | Sub, Value::Date(day), Value::Duration(by)) => shift_date(*day, *by, sign),
        (Add | Sub, Value::DateTime(at), Value::Duration(by)) => {
            calendar::check_moment(i128::from(*at) + sign * i128::from(*by)).map(Value::DateTime)
        }
        (Add | Sub, Value::Timestamp(at), Value::Duration(by)) => {
            calendar::check_moment(i128::from(*at) + sign * i128::from(*by)).map(Value::Timestamp)
        }
        (Add | Sub, Value::Duration(a), Value::Duration(b)) => duration(i128::from(*a) + sign * i128::from(*b)),
        (Sub, Value::Date(a), Value::Date(b)) => Ok(Value::Int(i128::from(*a) - i128::from(*b))),
        (Sub, Value::DateTime(a), Value::DateTime(b))
        | (Sub, Value::Timestamp(a), Value::Timestamp(b))
        | (Sub, Value::Time(a), Value::Time(b)) => duration(i128::from(*a) - i128::from(*b)),
        (Mul, Value::Duration(a), Value::Int(b)) => {
            i128::from(*a).checked_mul(*b).ok_or_else(duration_overflow).and_then(duration)
        }
        _ => return None,
    })
}

fn shift_date(day: i32, by: i64, sign: i128) -> Result<Value<'static>, EvalError> {
    if by % DAY != 0 {
        return Err(EvalError::new(
            REFUSED,
            "a date moves by whole days only; for a part of a day make it a datetime (`x as datetime`)",
        )
        .with_value(crate::format_value(&Value::Duration(by), &Type::Duration)));
    }
    calendar::check_day(i128::from(day) + sign * i128::from(by / DAY)).map(Value::Date)
}
