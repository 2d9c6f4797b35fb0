//! The value of an expression on a row.

use dfc_ir::{BinaryOp, CastMode, DataType, Expr, ExprKind, Type, UnaryOp, Value};
use dfc_stdlib::natives::{self, CallTypes};

use crate::calendar::DAY;
use crate::compare::equal;
use crate::{DEFECT, Env, EvalError, Row, UNEXPECTED_NULL, arith, cast_value};

/// The value of `expr` on `row`: one of exactly the expression's type.
///
/// Errors: see [`EvalError`]; they name the innermost expression that failed.
pub fn eval<'r>(expr: &'r Expr, row: &'r (impl Row + ?Sized), env: &Env) -> Result<Value<'r>, EvalError> {
    let operand = |expr: &'r Expr| eval(expr, row, env);
    let value = match &expr.kind {
        ExprKind::Literal(value) => crate::borrow(value),
        ExprKind::Column(index) => row.get(*index),
        ExprKind::Unary(UnaryOp::Neg, x) => match operand(x)? {
            Value::Null => Value::Null,
            value => arith::negate(&value, &expr.ty.ty).map_err(|error| error.at(expr.site))?,
        },
        ExprKind::Unary(UnaryOp::Not, x) => match operand(x)? {
            Value::Bool(v) => Value::Bool(!v),
            _ => Value::Null,
        },
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            logic(*op == BinaryOp::Or, operand(left)?, || operand(right))?
        }
        ExprKind::Binary(op, left, right) => {
            // Both sides are evaluated, even if one is null: an error on either side is an error of the row.
            let (a, b) = (operand(left)?, operand(right)?);
            if a.is_null() || b.is_null() {
                Value::Null
            } else {
                arith::binary(*op, &a, &left.ty.ty, &b, &right.ty.ty, &expr.ty.ty)
                    .map_err(|error| error.at(expr.site))?
            }
        }
        ExprKind::IsNull(x) => Value::Bool(operand(x)?.is_null()),
        ExprKind::Coalesce(items) => {
            let mut value = Value::Null;
            for item in items {
                value = operand(item)?;
                if !value.is_null() {
                    break;
                }
            }
            value
        }
        ExprKind::Case { arms, otherwise } => {
            for (condition, value) in arms {
                if operand(condition)? == Value::Bool(true) {
                    return operand(value);
                }
            }
            return operand(otherwise);
        }
        ExprKind::InList(x, items) => match operand(x)? {
            Value::Null => Value::Null,
            value => Value::Bool(items.iter().any(|item| equal(&value, item))),
        },
        ExprKind::Cast(x, mode) => return cast(operand(x)?, x, expr, *mode),
        ExprKind::Call(name, args) => call(name, args, expr, operand)?,
        ExprKind::Field(x, index) => match operand(x)? {
            Value::Record(mut values) => values.swap_remove(*index),
            _ => Value::Null,
        },
        ExprKind::Record(items) => Value::Record(items.iter().map(operand).collect::<Result<_, _>>()?),
        ExprKind::List(items) => Value::List(items.iter().map(operand).collect::<Result<_, _>>()?),
        ExprKind::Now => Value::Timestamp(env.now),
        // The days of 64 bits of microseconds fit 32 bits.
        ExprKind::Today => Value::Date(env.now.div_euclid(DAY) as i32),
    };
    Ok(value)
}

/// The value of an expression without columns, `now()` and `today()`: constant folding.
/// `None` if it has one of them or its value is an error (which a row must report).
pub fn eval_constant(expr: &Expr) -> Option<Value<'static>> {
    fn constant(expr: &Expr) -> bool {
        let mut all = !matches!(expr.kind, ExprKind::Column(_) | ExprKind::Now | ExprKind::Today);
        expr.for_each_child(&mut |child| all = all && constant(child));
        all
    }
    if !constant(expr) {
        return None;
    }
    let none: [Value; 0] = [];
    eval(expr, &none, &Env::default()).ok().map(Value::into_owned)
}

/// Three-valued `and` (`or`, where `decides` is true): the side that equals `decides` settles it.
fn logic<'r>(
    decides: bool,
    left: Value<'r>,
    right: impl FnOnce() -> Result<Value<'r>, EvalError>,
) -> Result<Value<'r>, EvalError> {
    if left == Value::Bool(decides) {
        return Ok(left);
    }
    let right = right()?;
    Ok(match right {
        Value::Bool(v) if v == decides => right,
        _ if left.is_null() => left,
        _ => right,
    })
}

fn cast<'r>(value: Value<'r>, operand: &Expr, expr: &Expr, mode: CastMode) -> Result<Value<'r>, EvalError> {
    let converted = cast_value(value, &operand.ty.ty, &expr.ty.ty).and_then(|value| not_null(value, &expr.ty));
    match mode {
        CastMode::Strict => converted.map_err(|error| error.at(expr.site)),
        CastMode::Try => Ok(converted.unwrap_or(Value::Null)),
    }
}

/// The value, unless it is a null where the type has none.
fn not_null<'r>(value: Value<'r>, ty: &DataType) -> Result<Value<'r>, EvalError> {
    if value.is_null() && !ty.nullable && ty.ty != Type::Null {
        return Err(EvalError::new(UNEXPECTED_NULL, format!("a null where the type {ty} has none")));
    }
    Ok(value)
}

fn call<'r>(
    name: &str,
    args: &'r [Expr],
    expr: &Expr,
    operand: impl Fn(&'r Expr) -> Result<Value<'r>, EvalError>,
) -> Result<Value<'r>, EvalError> {
    let Some(native) = natives::lookup(name) else {
        return Err(EvalError::new(DEFECT, format!("this version has no function `{name}`")).at(expr.site));
    };
    let values = args.iter().map(operand).collect::<Result<Vec<_>, _>>()?;
    if native.strict && values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let types: Vec<DataType> = args.iter().map(|arg| arg.ty.clone()).collect();
    (native.call)(&values, &CallTypes { args: &types, result: &expr.ty })
        .map_err(|error| EvalError::new(error.code, error.message))
        .and_then(|value| not_null(value, &expr.ty))
        .map_err(|error| error.at(expr.site))
}
