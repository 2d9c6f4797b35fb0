//! Lists. (Their `length` is with the texts'.)

use super::Native;
use super::args::{small_int, value, wrong_kind};
use dfc_ir::Value;

pub(super) const TABLE: &[Native] = &[
    Native::strict("list_get", |args, _| {
        let Value::List(items) = value(args, 0)? else { return Err(wrong_kind(0, "a list")) };
        Ok(place(items.len(), small_int(args, 1)?).map_or(Value::Null, |at| items[at].clone().into_owned()))
    }),
    Native::strict("list_contains", |args, _| {
        let Value::List(items) = value(args, 0)? else { return Err(wrong_kind(0, "a list")) };
        Ok(Value::Bool(items.contains(value(args, 1)?)))
    }),
];

/// The place of `index` in so many items: from 0, or from −1 backwards.
fn place(length: usize, index: i64) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { length.checked_add(index)? } else { index };
    (0..length).contains(&at).then_some(at as usize)
}
