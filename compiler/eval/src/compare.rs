//! Order and equality of two values of one type.

use std::cmp::Ordering;

use dfc_ir::Value;

/// The order of two values of one ordered type, neither of them null: numbers and temporal values by size (−0 equals 0),
/// text and bytes by bytes, false before true. `None` for anything else.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) | (Value::Decimal(a), Value::Decimal(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Str(a), Value::Str(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b))
        | (Value::DateTime(a), Value::DateTime(b))
        | (Value::Timestamp(a), Value::Timestamp(b))
        | (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Whether two values of one type are the same. Inside lists and records a null equals a null.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    left == right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_ordered_by_bytes_and_zeros_are_equal() {
        assert_eq!(compare(&Value::str("Z"), &Value::str("a")), Some(Ordering::Less));
        assert_eq!(compare(&Value::str("a"), &Value::str("ab")), Some(Ordering::Less));
        assert_eq!(compare(&Value::Float(-0.0), &Value::Float(0.0)), Some(Ordering::Equal));
        assert_eq!(compare(&Value::Bool(false), &Value::Bool(true)), Some(Ordering::Less));
        assert_eq!(compare(&Value::Int(1), &Value::str("1")), None);
        assert!(equal(
            &Value::List(vec![Value::Null, Value::Float(0.0)]),
            &Value::List(vec![Value::Null, Value::Float(-0.0)])
        ));
    }
}
