//! The table of conversions: what may be assigned to what (four outcomes), which common type two sides of a comparison take,
//! and what `as` can do. The checker, the reference docs and the tests read this one place (D8).
//!
//! It knows types only, no expressions. What `as` can do is what the engines can, so that is asked of the evaluator.

use dfc_ir::types::MAX_PRECISION;
use dfc_ir::{DataType, Field, Type, types::IntType};

/// What assigning a value of one type to a place of another does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The same type.
    Exact,
    /// Always succeeds and loses nothing: silent.
    Widening,
    /// May fail or lose on a given row; says what.
    Checked(&'static str),
    /// Refused.
    Incompatible,
}

impl Outcome {
    fn worse(self, other: Outcome) -> Outcome {
        let rank = |o: &Outcome| match o {
            Outcome::Exact => 0,
            Outcome::Widening => 1,
            Outcome::Checked(_) => 2,
            Outcome::Incompatible => 3,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// Whether it is silent: exact or widening.
    pub fn is_silent(self) -> bool {
        matches!(self, Outcome::Exact | Outcome::Widening)
    }
}

/// Kinds of types, coarse enough for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is a type's name
enum Kind {
    Bool,
    Int,
    Float,
    Decimal,
    String,
    Bytes,
    Date,
    Time,
    DateTime,
    Timestamp,
    Duration,
    Json,
    List,
    Record,
    Secret,
    Null,
}

fn kind(ty: &Type) -> Kind {
    match ty {
        Type::Bool => Kind::Bool,
        Type::Int(_) => Kind::Int,
        Type::Float32 | Type::Float64 => Kind::Float,
        Type::Decimal(..) => Kind::Decimal,
        Type::String => Kind::String,
        Type::Bytes => Kind::Bytes,
        Type::Date => Kind::Date,
        Type::Time => Kind::Time,
        Type::DateTime => Kind::DateTime,
        Type::Timestamp => Kind::Timestamp,
        Type::Duration => Kind::Duration,
        Type::Json => Kind::Json,
        Type::List(_) => Kind::List,
        Type::Record(_) => Kind::Record,
        Type::Secret => Kind::Secret,
        Type::Null => Kind::Null,
    }
}

const ZEROS: &str = "text that is no value of that type is a row error";
const RANGE: &str = "a value outside the target's range is a row error";
const DIGITS: &str = "digits that the target has no room for are rounded away or are a row error";
const FLOAT_DIGITS: &str = "a float64 keeps about 15 digits, so long numbers lose their last ones";
const FRACTION: &str = "a fraction is rounded away, and a value outside the target's range is a row error";
const TIME_OF_DAY: &str = "the time of day is lost";
const DAY: &str = "the day is lost";
const NOT_UTF8: &str = "bytes that are no UTF-8 text are a row error";
const NULLS: &str = "a null is a row error";

/// Pairs of different kinds; a pair that is not here can't be assigned. Numbers among themselves are computed in
/// [`numeric`], because widths decide.
const PAIRS: &[(Kind, Kind, Outcome)] = &[
    (Kind::Bool, Kind::String, Outcome::Widening),
    (Kind::Int, Kind::String, Outcome::Widening),
    (Kind::Float, Kind::String, Outcome::Widening),
    (Kind::Decimal, Kind::String, Outcome::Widening),
    (Kind::Date, Kind::String, Outcome::Widening),
    (Kind::Time, Kind::String, Outcome::Widening),
    (Kind::DateTime, Kind::String, Outcome::Widening),
    (Kind::Timestamp, Kind::String, Outcome::Widening),
    (Kind::Duration, Kind::String, Outcome::Widening),
    (Kind::Json, Kind::String, Outcome::Widening),
    (Kind::Bytes, Kind::String, Outcome::Checked(NOT_UTF8)),
    (Kind::String, Kind::Bytes, Outcome::Widening),
    (Kind::String, Kind::Bool, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Int, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Float, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Decimal, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Date, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Time, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::DateTime, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Timestamp, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Duration, Outcome::Checked(ZEROS)),
    (Kind::String, Kind::Json, Outcome::Checked(ZEROS)),
    (Kind::Date, Kind::DateTime, Outcome::Widening),
    (Kind::DateTime, Kind::Date, Outcome::Checked(TIME_OF_DAY)),
    (Kind::DateTime, Kind::Time, Outcome::Checked(DAY)),
];

/// What assigning a value of type `from` to a place of type `to` does, nullability included.
pub fn assign_outcome(from: &DataType, to: &DataType) -> Outcome {
    if from == to {
        return Outcome::Exact;
    }
    if from.ty == Type::Null {
        return if to.nullable { Outcome::Widening } else { Outcome::Checked(NULLS) };
    }
    let nulls = match (from.nullable, to.nullable) {
        (true, false) => Outcome::Checked(NULLS),
        (false, true) => Outcome::Widening,
        _ => Outcome::Exact,
    };
    outcome(&from.ty, &to.ty).worse(nulls)
}

/// [`assign_outcome`] without nullability at the top.
pub fn outcome(from: &Type, to: &Type) -> Outcome {
    if from == to {
        return Outcome::Exact;
    }
    match (from, to) {
        (Type::List(a), Type::List(b)) => assign_outcome(a, b),
        (Type::Record(a), Type::Record(b)) => records(a, b),
        _ if from.is_numeric() && to.is_numeric() => numeric(from, to),
        _ => {
            let pair = (kind(from), kind(to));
            PAIRS.iter().find(|(a, b, _)| (*a, *b) == pair).map_or(Outcome::Incompatible, |(_, _, outcome)| *outcome)
        }
    }
}

/// Records: by name, in any order. A field that only the target has becomes null there; one that only the source has would be lost.
fn records(from: &[Field], to: &[Field]) -> Outcome {
    if from.iter().any(|a| to.iter().all(|b| a.name != b.name)) {
        return Outcome::Incompatible;
    }
    to.iter().fold(Outcome::Widening, |worst, b| {
        worst.worse(match from.iter().find(|a| a.name == b.name) {
            Some(a) => assign_outcome(&a.ty, &b.ty),
            None if b.ty.nullable => Outcome::Widening,
            None => Outcome::Incompatible,
        })
    })
}

/// Two different numeric types.
fn numeric(from: &Type, to: &Type) -> Outcome {
    let widening = |holds: bool, why: &'static str| if holds { Outcome::Widening } else { Outcome::Checked(why) };
    match (from, to) {
        (&Type::Int(a), &Type::Int(b)) => widening(b.min() <= a.min() && a.max() <= b.max(), RANGE),
        (Type::Int(a), Type::Decimal(p, s)) => widening(a.digits() <= p - s, RANGE),
        (Type::Int(a), Type::Float64) => widening(a.bits() <= 32, FLOAT_DIGITS),
        (Type::Int(a), Type::Float32) => widening(a.bits() <= 16, FLOAT_DIGITS),
        (Type::Decimal(p, s), Type::Int(b)) => widening(*s == 0 && *p < b.digits(), FRACTION),
        (Type::Decimal(p, s), Type::Decimal(p2, s2)) => widening(s2 >= s && p2 - s2 >= p - s, DIGITS),
        (Type::Decimal(p, _), Type::Float64) => widening(*p <= 15, FLOAT_DIGITS),
        (Type::Decimal(p, _), Type::Float32) => widening(*p <= 6, FLOAT_DIGITS),
        (Type::Float32, Type::Float64) => Outcome::Widening,
        (Type::Float64, Type::Float32) => Outcome::Checked(FLOAT_DIGITS),
        (_, Type::Int(_)) => Outcome::Checked(FRACTION),
        _ => Outcome::Checked(DIGITS),
    }
}

/// Whether `x as to` exists for an `x` of type `from`, nullability aside: what the engines can convert. (`datetime` or `date` with
/// `timestamp` is not: that takes a zone.)
pub fn castable(from: &Type, to: &Type) -> bool {
    *to != Type::Secret && dfc_eval::can_cast(from, to)
}

/// Whether one of both has a zone and the other needs one (`datetime` or `date` with `timestamp`).
pub fn needs_zone(a: &Type, b: &Type) -> bool {
    let local = |ty: &Type| matches!(ty, Type::DateTime | Type::Date);
    (local(a) && *b == Type::Timestamp) || (local(b) && *a == Type::Timestamp)
}

/// The type that values of both are converted to where they meet (comparison, join key, `in`, branches of `if`, union).
/// Text meets text only. `None`: they have none.
pub fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    let nullable = a.nullable || b.nullable;
    let ty = match (&a.ty, &b.ty) {
        (x, y) if x == y => x.clone(),
        (Type::Null, other) | (other, Type::Null) => other.clone(),
        (Type::Int(x), Type::Int(y)) => common_int(*x, *y),
        (Type::Int(i), Type::Decimal(p, s)) | (Type::Decimal(p, s), Type::Int(i)) => {
            common_decimal(i.digits(), 0, *p, *s)
        }
        (Type::Decimal(p, s), Type::Decimal(p2, s2)) => common_decimal(*p, *s, *p2, *s2),
        (Type::Int(i), Type::Float32) | (Type::Float32, Type::Int(i)) if i.bits() <= 16 => Type::Float32,
        (x, y) if x.is_numeric() && y.is_numeric() => Type::Float64,
        (Type::Date, Type::DateTime) | (Type::DateTime, Type::Date) => Type::DateTime,
        (Type::List(x), Type::List(y)) => Type::List(Box::new(common_type(x, y)?)),
        (Type::Record(x), Type::Record(y)) if x.len() == y.len() => {
            let fields = x.iter().zip(y).map(|(x, y)| {
                let ty = common_type(&x.ty, &y.ty)?;
                (x.name == y.name).then(|| Field { ty, ..x.clone() })
            });
            Type::Record(fields.collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    };
    Some(DataType { ty, nullable })
}

/// The narrowest integer type that holds both; `decimal(20, 0)` for uint64 with a signed one.
pub fn common_int(a: IntType, b: IntType) -> Type {
    let holds = |c: IntType| [a, b].iter().all(|&x| c.min() <= x.min() && x.max() <= c.max());
    match IntType::ALL.into_iter().filter(|c| holds(*c)).min_by_key(|c| c.bits()) {
        Some(int) => Type::Int(int),
        None => Type::Decimal(20, 0),
    }
}

/// A decimal that holds both; past 38 digits the integer digits stay and the scale shrinks.
fn common_decimal(p: u8, s: u8, p2: u8, s2: u8) -> Type {
    let scale = s.max(s2);
    let integer = (p - s).max(p2 - s2);
    let scale = scale.min(MAX_PRECISION - integer);
    Type::Decimal((integer + scale).max(1), scale)
}

#[cfg(test)]
#[path = "conversions_tests.rs"]
mod tests;
