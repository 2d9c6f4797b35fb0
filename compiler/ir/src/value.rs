//! One value, tagged. The form of literals, of native functions' arguments and of the interpreter's results.

use std::borrow::Cow;

/// A value of any type. Its [`crate::Type`] is known beside it and says how to read it: every integer type is `Int`,
/// `float32` is kept as an f64 that a f32 can hold, a decimal is its mantissa (the scale is the type's), JSON is `Str`.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// `bool`
    Bool(bool),
    /// Any integer type.
    Int(i128),
    /// `float32`, `float64`. Never NaN or infinite.
    Float(f64),
    /// The mantissa of a decimal: value × 10^scale.
    Decimal(i128),
    /// `string`, `json`
    Str(Cow<'a, str>),
    /// `bytes`
    Bytes(Cow<'a, [u8]>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970-01-01T00:00:00, no zone.
    DateTime(i64),
    /// Microseconds since the epoch.
    Timestamp(i64),
    /// Microseconds.
    Duration(i64),
    /// `list<T>`
    List(Vec<Value<'a>>),
    /// `record { … }`, in the order of its fields.
    Record(Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// Borrowed text.
    pub fn str(text: &'a str) -> Self {
        Value::Str(Cow::Borrowed(text))
    }

    /// Owned text.
    pub fn string(text: impl Into<String>) -> Self {
        Value::Str(Cow::Owned(text.into()))
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The text of a `Str`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The number of an `Int`.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// The same value, borrowing nothing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(v) => Value::Bool(v),
            Value::Int(v) => Value::Int(v),
            Value::Float(v) => Value::Float(v),
            Value::Decimal(v) => Value::Decimal(v),
            Value::Str(v) => Value::Str(Cow::Owned(v.into_owned())),
            Value::Bytes(v) => Value::Bytes(Cow::Owned(v.into_owned())),
            Value::Date(v) => Value::Date(v),
            Value::Time(v) => Value::Time(v),
            Value::DateTime(v) => Value::DateTime(v),
            Value::Timestamp(v) => Value::Timestamp(v),
            Value::Duration(v) => Value::Duration(v),
            Value::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
            Value::Record(items) => Value::Record(items.into_iter().map(Value::into_owned).collect()),
        }
    }
}

/// Two values of one type are equal and hash alike; floats by their bits except that −0 equals 0. (There is no NaN.)
impl Eq for Value<'_> {}

impl std::hash::Hash for Value<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Null => {}
            Value::Bool(v) => v.hash(state),
            Value::Int(v) | Value::Decimal(v) => v.hash(state),
            Value::Float(v) => (if *v == 0.0 { 0.0f64 } else { *v }).to_bits().hash(state),
            Value::Str(v) => v.hash(state),
            Value::Bytes(v) => v.hash(state),
            Value::Date(v) => v.hash(state),
            Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => v.hash(state),
            Value::List(items) | Value::Record(items) => items.hash(state),
        }
    }
}
