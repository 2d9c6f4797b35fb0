//! How a value of a declared type is held in registers and in memory. It may not know expressions.

use cranelift_codegen::ir::{self, types};
use dfc_ir::Type;
use dfc_ir::types::{IntType, SHORT_PRECISION};

use crate::context::{HEAD, INLINE};

/// The forms of a value in compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 0 or 1 in an i8; a bit in memory.
    Bool,
    /// Any integer, extended to an i64 by its own sign (`uint64` is the same 64 bits).
    Int(IntType),
    /// A `float32`, held as the f64 of the same value.
    Float32,
    /// A `float64`.
    Float64,
    /// The mantissa of a decimal of at most 18 digits: an i64.
    Short,
    /// The mantissa of a wider decimal: an i128.
    Wide,
    /// Days, as an i64; an i32 in memory.
    Date,
    /// Microseconds of `time`, `datetime`, `timestamp` and `duration`: an i64.
    Micros,
    /// Text, JSON or bytes: an address and a length; a 16-byte view in memory.
    Text,
}

impl Kind {
    /// The form of a type; `None` for lists, records and what is never a field.
    pub(crate) fn of(ty: &Type) -> Option<Kind> {
        Some(match ty {
            Type::Bool => Kind::Bool,
            Type::Int(int) => Kind::Int(*int),
            Type::Float32 => Kind::Float32,
            Type::Float64 => Kind::Float64,
            Type::Decimal(precision, _) if *precision <= SHORT_PRECISION => Kind::Short,
            Type::Decimal(..) => Kind::Wide,
            Type::Date => Kind::Date,
            Type::Time | Type::DateTime | Type::Timestamp | Type::Duration => Kind::Micros,
            Type::String | Type::Bytes | Type::Json => Kind::Text,
            Type::List(_) | Type::Record(_) | Type::Secret | Type::Null => return None,
        })
    }

    /// The register type (of the address, for text).
    pub(crate) fn register(self) -> ir::Type {
        match self {
            Kind::Bool => types::I8,
            Kind::Float32 | Kind::Float64 => types::F64,
            Kind::Wide => types::I128,
            Kind::Int(_) | Kind::Short | Kind::Date | Kind::Micros | Kind::Text => types::I64,
        }
    }

    /// Bytes of a value in an output buffer. Bools are written as bytes and packed afterwards.
    pub(crate) fn width(self) -> usize {
        match self {
            Kind::Bool => 1,
            Kind::Int(int) => int.bits() as usize / 8,
            Kind::Float32 | Kind::Date => 4,
            Kind::Float64 | Kind::Short | Kind::Micros => 8,
            Kind::Wide | Kind::Text => 16,
        }
    }

    /// Whether the order of its registers is that of unsigned numbers.
    pub(crate) fn unsigned(self) -> bool {
        matches!(self, Kind::Bool | Kind::Int(IntType::U64))
    }

    /// Whether it is held in a float register.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Kind::Float32 | Kind::Float64)
    }
}

/// A value of an expression in compiled code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Val {
    /// The value; for text its address. Arbitrary where `valid` is 0, but a bool is 0 or 1 even then, and a text has an address that
    /// may be read for its length.
    pub(crate) value: ir::Value,
    /// The length in bytes, for text.
    pub(crate) len: Option<ir::Value>,
    /// What of its view is known, for text.
    pub(crate) view: Option<View>,
    /// An i8, 1 where there is a value, 0 where it is null. `None`: never null.
    pub(crate) valid: Option<ir::Value>,
}

/// The words of a text's view: equal texts have equal ones, as far as they are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// The length and the first four bytes (0 where there are less). 0 where the text is null.
    pub(crate) head: ir::Value,
    /// The next eight bytes of a text that stands in its view. `None`: all of it stands in the head.
    pub(crate) tail: Option<ir::Value>,
    /// The length of a constant, in bytes.
    pub(crate) constant: Option<usize>,
}

impl View {
    /// Whether the text is known to stand in its view.
    pub(crate) fn inline(self) -> bool {
        self.constant.is_some_and(|len| len <= INLINE)
    }

    /// Whether the text is known to stand in the head of its view.
    pub(crate) fn in_head(self) -> bool {
        self.constant.is_some_and(|len| len <= HEAD)
    }
}

impl Val {
    /// A value that is never null and no text.
    pub(crate) fn plain(value: ir::Value) -> Self {
        Val { value, len: None, view: None, valid: None }
    }

    /// A text that is never null.
    pub(crate) fn text(address: ir::Value, len: ir::Value) -> Self {
        Val { len: Some(len), ..Val::plain(address) }
    }

    /// The same value, null where `valid` is 0.
    pub(crate) fn with_valid(self, valid: Option<ir::Value>) -> Self {
        Val { valid, ..self }
    }
}
