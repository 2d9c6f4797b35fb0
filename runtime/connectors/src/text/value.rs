//! One value from text, with the reason where there is none: what a reader asks when its fast form has no answer.

use dfc_eval::parse_value;
use dfc_ir::{Type, Value};

use super::pattern::Patterns;
use crate::rows::{Fault, shown};

/// Code of a value that doesn't fit its type.
pub(crate) const MISFIT: &str = "R0301";
/// Code of a null where none may be.
pub(crate) const NULL: &str = "R0302";
/// Code of a row with too few or too many fields.
pub(crate) const RAGGED: &str = "R0303";
/// Code of bytes that are no text.
pub(crate) const ENCODING: &str = "R0304";
/// Code of quotes that don't close, or close too early; of JSON that is none.
pub(crate) const DAMAGED: &str = "R0305";

/// The value of a text. `patterns`: the forms of dates and times that the user gave, where the format has such parameters.
///
/// # Errors
/// Why the text is no value of the type.
pub(crate) fn read(text: &[u8], ty: &Type, patterns: Option<&Patterns>) -> Result<Value<'static>, Fault> {
    let Ok(text) = std::str::from_utf8(text) else { return Err(bad_encoding(text)) };
    let fault = |rule: String| Fault { code: MISFIT, rule, value: Some(shown(text.as_bytes())) };
    if let Some(pattern) = patterns.and_then(|p| p.of(ty)) {
        return pattern.read(text, ty).map_err(fault);
    }
    parse_value(text, ty).map_err(|error| {
        let parameter = patterns.and_then(|_| Patterns::parameter(ty));
        fault(match parameter {
            Some(name) => format!("{}; for another form give `{name}:`", error.message),
            None => error.message,
        })
    })
}

/// The fault of bytes that are no text in the file's encoding.
pub(crate) fn bad_encoding(text: &[u8]) -> Fault {
    Fault {
        code: ENCODING,
        rule: "the field holds bytes that are no text in the file's encoding; if it is written in another one, give `encoding:`"
            .into(),
        value: Some(shown(text)),
    }
}

/// The fault of a null under a type that has none.
pub(crate) fn unexpected_null(ty: &Type) -> Fault {
    Fault { code: NULL, rule: format!("null, where {ty} is never null; `{ty}?` takes nulls"), value: None }
}
