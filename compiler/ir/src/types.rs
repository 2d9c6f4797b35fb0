//! Types of values, fields and schemas.

use std::fmt;

/// Largest precision of a decimal, in digits.
pub const MAX_PRECISION: u8 = 38;
/// Largest precision whose mantissa is kept in 64 bits.
pub const SHORT_PRECISION: u8 = 18;

/// A type without its nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `bool`
    Bool,
    /// `int8 … int64`, `uint8 … uint64`
    Int(IntType),
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `decimal(precision, scale)`: precision 1..=38, scale 0..=precision.
    Decimal(u8, u8),
    /// UTF-8 text.
    String,
    /// Bytes.
    Bytes,
    /// Days since 1970-01-01 (proleptic Gregorian), years 0001 to 9999.
    Date,
    /// Microseconds since midnight, below 86,400,000,000.
    Time,
    /// Wall clock without zone: microseconds since 1970-01-01T00:00:00.
    DateTime,
    /// An instant: microseconds since 1970-01-01T00:00:00Z.
    Timestamp,
    /// A length of time in microseconds, signed.
    Duration,
    /// JSON text (valid JSON, kept as written).
    Json,
    /// A list.
    List(Box<DataType>),
    /// A record.
    Record(Vec<Field>),
    /// A secret: only a parameter's type, never a field's.
    Secret,
    /// The type of the literal `null` before it met another type; never a field's.
    Null,
}

/// Integer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // each is its own name
pub enum IntType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl IntType {
    /// All of them, signed before unsigned, narrow before wide.
    pub const ALL: [IntType; 8] =
        [IntType::I8, IntType::I16, IntType::I32, IntType::I64, IntType::U8, IntType::U16, IntType::U32, IntType::U64];

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            IntType::I8 | IntType::U8 => 8,
            IntType::I16 | IntType::U16 => 16,
            IntType::I32 | IntType::U32 => 32,
            IntType::I64 | IntType::U64 => 64,
        }
    }

    /// Whether it has a sign.
    pub fn signed(self) -> bool {
        matches!(self, IntType::I8 | IntType::I16 | IntType::I32 | IntType::I64)
    }

    /// Smallest value.
    pub fn min(self) -> i128 {
        if self.signed() { -(1i128 << (self.bits() - 1)) } else { 0 }
    }

    /// Largest value.
    pub fn max(self) -> i128 {
        if self.signed() { (1i128 << (self.bits() - 1)) - 1 } else { (1i128 << self.bits()) - 1 }
    }

    /// Decimal digits that every value fits into: `int64` → 19.
    pub fn digits(self) -> u8 {
        match self {
            IntType::I8 | IntType::U8 => 3,
            IntType::I16 | IntType::U16 => 5,
            IntType::I32 | IntType::U32 => 10,
            IntType::I64 => 19,
            IntType::U64 => 20,
        }
    }

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            IntType::I8 => "int8",
            IntType::I16 => "int16",
            IntType::I32 => "int32",
            IntType::I64 => "int64",
            IntType::U8 => "uint8",
            IntType::U16 => "uint16",
            IntType::U32 => "uint32",
            IntType::U64 => "uint64",
        }
    }
}

/// A type and whether null is one of its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The type.
    pub ty: Type,
    /// Whether it may be null (`T?`).
    pub nullable: bool,
}

impl DataType {
    /// `T`: never null.
    pub fn of(ty: Type) -> Self {
        DataType { ty, nullable: false }
    }

    /// `T?`: may be null.
    pub fn optional(ty: Type) -> Self {
        DataType { ty, nullable: true }
    }

    /// The same type, nullable or not.
    pub fn with_nullable(&self, nullable: bool) -> Self {
        DataType { ty: self.ty.clone(), nullable }
    }
}

impl Type {
    /// `int64`
    pub const INT64: Type = Type::Int(IntType::I64);
    /// `int32`
    pub const INT32: Type = Type::Int(IntType::I32);

    /// Integers, floats and decimals.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Type::Int(_) | Type::Float32 | Type::Float64 | Type::Decimal(..))
    }

    /// `float32` and `float64`.
    pub fn is_float(&self) -> bool {
        matches!(self, Type::Float32 | Type::Float64)
    }

    /// `date`, `time`, `datetime`, `timestamp`.
    pub fn is_temporal(&self) -> bool {
        matches!(self, Type::Date | Type::Time | Type::DateTime | Type::Timestamp)
    }

    /// Whether values of it have an order (`<`, `sort`, `min`).
    pub fn is_ordered(&self) -> bool {
        !matches!(self, Type::Json | Type::List(_) | Type::Record(_) | Type::Secret | Type::Null)
    }

    /// Whether its values are kept in one machine word or two (no pointer): bool, numbers, temporal types, duration.
    pub fn is_fixed_width(&self) -> bool {
        matches!(
            self,
            Type::Bool
                | Type::Int(_)
                | Type::Float32
                | Type::Float64
                | Type::Decimal(..)
                | Type::Date
                | Type::Time
                | Type::DateTime
                | Type::Timestamp
                | Type::Duration
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int(int) => f.write_str(int.name()),
            Type::Float32 => f.write_str("float32"),
            Type::Float64 => f.write_str("float64"),
            Type::Decimal(p, s) => write!(f, "decimal({p}, {s})"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Date => f.write_str("date"),
            Type::Time => f.write_str("time"),
            Type::DateTime => f.write_str("datetime"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::Json => f.write_str("json"),
            Type::List(item) => write!(f, "list<{item}>"),
            Type::Record(fields) => {
                f.write_str("record { ")?;
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{}: {}", field.name, field.ty)?;
                }
                f.write_str(" }")
            }
            Type::Secret => f.write_str("secret"),
            Type::Null => f.write_str("null"),
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.ty, if self.nullable { "?" } else { "" })
    }
}

/// A named column or record field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name in the pipeline.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// The name it has outside (header, JSON key, column), where that differs.
    pub external: Option<String>,
}

impl Field {
    /// A field whose outside name is its own.
    pub fn new(name: impl Into<String>, ty: DataType) -> Self {
        Field { name: name.into(), ty, external: None }
    }

    /// The name it has outside.
    pub fn external_name(&self) -> &str {
        self.external.as_deref().unwrap_or(&self.name)
    }
}

/// An ordered list of fields with distinct names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Schema {
    /// The fields.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Position of the field with this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The types, in order.
    pub fn types(&self) -> Vec<DataType> {
        self.fields.iter().map(|f| f.ty.clone()).collect()
    }
}
