//! What the bodies share: taking arguments apart, saying no, and the limit on results.
//!
//! The compiler has checked the arguments' types. A value of another kind is refused like any bad argument, so that
//! nothing can panic here.

use super::FnError;
use dfc_ir::Value;

/// The result of a body.
pub(super) type Result = std::result::Result<Value<'static>, FnError>;
/// A step of a body.
pub(super) type Checked<T> = std::result::Result<T, FnError>;

/// Texts and bytes longer than this are refused as results: 64 MiB.
pub(super) const MAX_RESULT: usize = 64 << 20;

/// `R0105`: the function refuses its arguments.
pub(super) fn refuse(message: impl Into<String>) -> FnError {
    FnError { code: "R0105", message: message.into() }
}

/// `R0101`: the result does not fit its type.
pub(super) fn overflow(message: impl Into<String>) -> FnError {
    FnError { code: "R0101", message: message.into() }
}

/// `R0102`: division by zero.
pub(super) fn division_by_zero() -> FnError {
    FnError { code: "R0102", message: "division by zero".to_owned() }
}

/// Argument `index`, whatever it is.
pub(super) fn value<'v, 'a>(args: &'v [Value<'a>], index: usize) -> Checked<&'v Value<'a>> {
    args.get(index).ok_or_else(|| refuse(format!("argument {} is missing", index + 1)))
}

/// Argument `index`, a text.
pub(super) fn text<'v>(args: &'v [Value<'_>], index: usize) -> Checked<&'v str> {
    value(args, index)?.as_str().ok_or_else(|| wrong_kind(index, "text"))
}

/// Argument `index`, an integer of any type.
pub(super) fn int(args: &[Value<'_>], index: usize) -> Checked<i128> {
    value(args, index)?.as_int().ok_or_else(|| wrong_kind(index, "an integer"))
}

/// Argument `index`, an integer as an i64; one past its range becomes its nearest end.
pub(super) fn small_int(args: &[Value<'_>], index: usize) -> Checked<i64> {
    int(args, index).map(|n| n.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

/// Argument `index`, a text or bytes, as bytes (a text's UTF-8).
pub(super) fn bytes<'v>(args: &'v [Value<'_>], index: usize) -> Checked<&'v [u8]> {
    match value(args, index)? {
        Value::Str(text) => Ok(text.as_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong_kind(index, "text or bytes")),
    }
}

/// The refusal of an argument of a kind that the compiler should not have let through.
pub(super) fn wrong_kind(index: usize, wanted: &str) -> FnError {
    refuse(format!("argument {} should be {wanted}", index + 1))
}

/// Refuses results above [`MAX_RESULT`] before they are made. `None`: a size past `usize`.
pub(super) fn check_size(bytes: Option<usize>) -> Checked<usize> {
    bytes.filter(|bytes| *bytes <= MAX_RESULT).ok_or_else(|| {
        overflow(format!("the result is longer than {} MiB, the most that a function gives", MAX_RESULT >> 20))
    })
}

/// A text as result.
pub(super) fn string(text: impl Into<String>) -> Result {
    let text = text.into();
    check_size(Some(text.len()))?;
    Ok(Value::string(text))
}

/// A count as result: lengths and positions fit any integer type that they are declared with.
pub(super) fn count(n: usize) -> Result {
    Ok(Value::Int(n as i128))
}

/// The beginning of a text, for messages.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 64;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
