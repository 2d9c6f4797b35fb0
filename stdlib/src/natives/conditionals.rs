//! Choosing between values, and the order of values. (`coalesce` is a form of the IR.)

use super::Native;
use super::args::value;
use dfc_ir::Value;
use std::cmp::Ordering;

pub(super) const TABLE: &[Native] = &[
    Native::with_nulls("nullif", |args, _| {
        let (x, y) = (value(args, 0)?, value(args, 1)?);
        Ok(if x == y { Value::Null } else { x.clone().into_owned() })
    }),
    Native::with_nulls("greatest", |args, _| Ok(extreme(args, Ordering::Greater))),
    Native::with_nulls("least", |args, _| Ok(extreme(args, Ordering::Less))),
];

/// The first of the values that lies on the `wanted` side of all others; nulls don't count.
fn extreme(args: &[Value<'_>], wanted: Ordering) -> Value<'static> {
    let values = args.iter().filter(|value| !value.is_null());
    let best = values.reduce(|best, next| if compare(next, best) == wanted { next } else { best });
    best.map_or(Value::Null, |best| best.clone().into_owned())
}

/// The order of two values of one ordered type: text and bytes by bytes, false before true. Others count as equal.
fn compare(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) | (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b))
        | (Value::DateTime(a), Value::DateTime(b))
        | (Value::Timestamp(a), Value::Timestamp(b))
        | (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}
