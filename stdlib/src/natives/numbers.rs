//! Numbers: rounding, roots, logarithms, remainders. A decimal's scale is its type's. Results are checked against
//! their type.

use super::args::{Checked, Result, bytes, division_by_zero, overflow, refuse, small_int, value, wrong_kind};
use super::{CallTypes, Native};
use dfc_ir::{Type, Value};
use xxhash_rust::xxh64::Xxh64;

pub(super) const TABLE: &[Native] = &[
    Native::strict("abs", |args, types| match value(args, 0)? {
        Value::Int(n) => fit(Value::Int(n.checked_abs().ok_or_else(|| too_large(types))?), types),
        Value::Decimal(n) => fit(Value::Decimal(n.checked_abs().ok_or_else(|| too_large(types))?), types),
        Value::Float(x) => fit(Value::Float(x.abs()), types),
        _ => Err(wrong_kind(0, "a number")),
    }),
    Native::strict("round", |args, types| to_digits(args, types, Way::Nearest)),
    Native::strict("trunc", |args, types| to_digits(args, types, Way::Zero)),
    Native::strict("floor", |args, types| to_digits(args, types, Way::Down)),
    Native::strict("ceil", |args, types| to_digits(args, types, Way::Up)),
    Native::strict("sign", |args, _| match value(args, 0)? {
        Value::Int(n) | Value::Decimal(n) => Ok(Value::Int(n.signum())),
        Value::Float(x) if *x == 0.0 => Ok(Value::Int(0)),
        Value::Float(x) => Ok(Value::Int(if *x > 0.0 { 1 } else { -1 })),
        _ => Err(wrong_kind(0, "a number")),
    }),
    Native::strict("sqrt", |args, types| {
        let x = float(args, types, 0)?;
        if x < 0.0 { Err(refuse("a negative number has no square root")) } else { finite(x.sqrt()) }
    }),
    Native::strict("power", |args, types| {
        let (x, y) = (float(args, types, 0)?, float(args, types, 1)?);
        if x == 0.0 && y < 0.0 {
            Err(refuse("0 has no negative power"))
        } else if x < 0.0 && y.fract() != 0.0 {
            Err(refuse("a negative number has no fractional power"))
        } else {
            finite(x.powf(y))
        }
    }),
    Native::strict("exp", |args, types| finite(float(args, types, 0)?.exp())),
    Native::strict("ln", |args, types| finite(positive(args, types)?.ln())),
    Native::strict("log10", |args, types| finite(positive(args, types)?.log10())),
    Native::strict("mod", |args, types| match (value(args, 0)?, value(args, 1)?) {
        (Value::Int(_) | Value::Decimal(_), Value::Int(0) | Value::Decimal(0)) => Err(division_by_zero()),
        (Value::Float(_), Value::Float(0.0)) => Err(division_by_zero()),
        // The smallest value by −1: the remainder is 0, though the quotient does not fit.
        (Value::Int(x), Value::Int(y)) => fit(Value::Int(x.checked_rem(*y).unwrap_or(0)), types),
        (Value::Decimal(x), Value::Decimal(y)) => fit(Value::Decimal(x.checked_rem(*y).unwrap_or(0)), types),
        (Value::Float(x), Value::Float(y)) => fit(Value::Float(x % y), types),
        _ => Err(wrong_kind(1, "a number of the same type as argument 1")),
    }),
    Native::strict("random_by", |args, _| {
        let seed = if args.len() > 1 { small_int(args, 1)? as u64 } else { 0 };
        let mut hash = Xxh64::new(seed);
        digest(&mut hash, value(args, 0)?);
        // The 53 bits of a float's mantissa: every result is exact, and below 1.
        Ok(Value::Float((hash.digest() >> 11) as f64 / (1u64 << 53) as f64))
    }),
];

/// Feeds a value to a hash: its kind, its length where it has one, its bytes.
fn digest(hash: &mut Xxh64, value: &Value<'_>) {
    let kind = |hash: &mut Xxh64, kind: u8| hash.update(&[kind]);
    match value {
        Value::Null => kind(hash, 0),
        Value::Bool(v) => hash.update(&[1, u8::from(*v)]),
        Value::Int(v) => {
            kind(hash, 2);
            hash.update(&v.to_le_bytes());
        }
        Value::Float(v) => {
            kind(hash, 3);
            // −0 equals 0.
            hash.update(&(if *v == 0.0 { 0.0 } else { *v }).to_le_bytes());
        }
        Value::Decimal(v) => {
            kind(hash, 4);
            hash.update(&v.to_le_bytes());
        }
        Value::Str(_) | Value::Bytes(_) => {
            kind(hash, 5);
            // Both kinds have bytes.
            let content = bytes(std::slice::from_ref(value), 0).unwrap_or_default();
            hash.update(&(content.len() as u64).to_le_bytes());
            hash.update(content);
        }
        Value::Date(v) => {
            kind(hash, 6);
            hash.update(&v.to_le_bytes());
        }
        Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => {
            kind(hash, 7);
            hash.update(&v.to_le_bytes());
        }
        Value::List(items) | Value::Record(items) => {
            kind(hash, 8);
            hash.update(&(items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| digest(hash, item));
        }
    }
}

/// Where a number between two others goes.
#[derive(Clone, Copy)]
enum Way {
    /// To the nearer one, halves away from zero.
    Nearest,
    /// Towards zero.
    Zero,
    Down,
    Up,
}

/// `round(x)`, `round(x, digits)` and their like.
fn to_digits(args: &[Value<'_>], types: &CallTypes<'_>, way: Way) -> Result {
    let digits = if args.len() > 1 { small_int(args, 1)? } else { 0 };
    let rounded = match value(args, 0)? {
        Value::Int(n) => round_scaled(*n, 0, digits, 0, way).map(Value::Int),
        Value::Decimal(n) => {
            round_scaled(*n, scale(types, 0), digits, scale_of(&types.result.ty), way).map(Value::Decimal)
        }
        Value::Float(x) => Some(Value::Float(round_float(*x, digits, way))),
        _ => return Err(wrong_kind(0, "a number")),
    };
    fit(rounded.ok_or_else(|| too_large(types))?, types)
}

/// `n × 10^−scale`, rounded at `digits` digits after the point, as a mantissa of `result_scale`. `None` past 128 bits.
fn round_scaled(n: i128, scale: u8, digits: i64, result_scale: u8, way: Way) -> Option<i128> {
    let drop = (i64::from(scale)).saturating_sub(digits);
    let (rounded, at) = if drop <= 0 {
        (n, i64::from(scale))
    } else {
        let rounded = match pow10(drop) {
            Some(unit) => {
                let (quotient, rest) = (n / unit, n % unit);
                let step = match way {
                    Way::Zero => 0,
                    Way::Nearest if rest.abs() >= unit - rest.abs() => n.signum(),
                    Way::Down if rest < 0 => -1,
                    Way::Up if rest > 0 => 1,
                    _ => 0,
                };
                quotient + step
            }
            // The unit is greater than twice every i128.
            None => match way {
                Way::Down if n < 0 => -1,
                Way::Up if n > 0 => 1,
                _ => 0,
            },
        };
        (rounded, digits)
    };
    rescale(rounded, i64::from(result_scale).saturating_sub(at))
}

/// `n × 10^by`; with a negative `by` digits that are zero fall away.
fn rescale(n: i128, by: i64) -> Option<i128> {
    match (n, by) {
        (0, _) => Some(0),
        (_, 0..) => n.checked_mul(pow10(by)?),
        _ => pow10(-by).map(|unit| n / unit),
    }
}

fn pow10(exponent: i64) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// A float rounded at `digits` digits after the point, the way SQL engines do: multiplied, rounded, divided. Where the
/// power of ten or the product passes float64 the number has no such digits and stays.
fn round_float(x: f64, digits: i64, way: Way) -> f64 {
    let whole = |x: f64| match way {
        Way::Nearest => x.round(),
        Way::Zero => x.trunc(),
        Way::Down => x.floor(),
        Way::Up => x.ceil(),
    };
    let factor = 10f64.powi(digits.unsigned_abs().min(400) as i32);
    match digits {
        0 => whole(x),
        1.. => {
            let scaled = x * factor;
            if scaled.is_finite() && factor.is_finite() { whole(scaled) / factor } else { x }
        }
        _ if factor.is_finite() => whole(x / factor) * factor,
        _ => 0.0,
    }
}

/// The scale of argument `index`.
fn scale(types: &CallTypes<'_>, index: usize) -> u8 {
    types.args.get(index).map_or(0, |ty| scale_of(&ty.ty))
}

fn scale_of(ty: &Type) -> u8 {
    if let Type::Decimal(_, scale) = ty { *scale } else { 0 }
}

/// Argument `index` as the nearest float64.
fn float(args: &[Value<'_>], types: &CallTypes<'_>, index: usize) -> Checked<f64> {
    match value(args, index)? {
        Value::Float(x) => Ok(*x),
        Value::Int(n) => Ok(*n as f64),
        Value::Decimal(n) => Ok(decimal_as_float(*n, scale(types, index))),
        _ => Err(wrong_kind(index, "a number")),
    }
}

/// The float64 nearest to `n × 10^−scale`.
fn decimal_as_float(n: i128, scale: u8) -> f64 {
    // Both exact, so that the division rounds once.
    if n.unsigned_abs() < 1 << 53 && scale <= 22 {
        return n as f64 / 10f64.powi(i32::from(scale));
    }
    // What Rust writes as a number it reads as one.
    format!("{n}e-{scale}").parse().unwrap_or(f64::MAX)
}

fn positive(args: &[Value<'_>], types: &CallTypes<'_>) -> Checked<f64> {
    let x = float(args, types, 0)?;
    if x > 0.0 { Ok(x) } else { Err(refuse("only numbers above 0 have a logarithm")) }
}

fn finite(x: f64) -> Result {
    if x.is_finite() { Ok(Value::Float(x)) } else { Err(overflow("the result is too large for float64")) }
}

fn too_large(types: &CallTypes<'_>) -> super::FnError {
    overflow(format!("the result does not fit {}", types.result.ty))
}

/// A number as result, if it fits the declared type.
fn fit(result: Value<'static>, types: &CallTypes<'_>) -> Result {
    let fits = match (&result, &types.result.ty) {
        (Value::Int(n), &Type::Int(int)) => (int.min()..=int.max()).contains(n),
        (Value::Decimal(n), Type::Decimal(precision, _)) => {
            pow10(i64::from(*precision)).is_some_and(|limit| n.unsigned_abs() < limit.unsigned_abs())
        }
        (Value::Float(x), Type::Float32) => {
            let narrow = f64::from(*x as f32);
            return if narrow.is_finite() { Ok(Value::Float(narrow)) } else { Err(too_large(types)) };
        }
        (Value::Float(x), _) => x.is_finite(),
        _ => true,
    };
    if fits { Ok(result) } else { Err(too_large(types)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_away_from_zero_at_any_digit() {
        let cases = [
            (125, 2, 1, 1, Way::Nearest, 13),
            (-125, 2, 1, 1, Way::Nearest, -13),
            (124, 2, 1, 1, Way::Nearest, 12),
            (999, 2, 0, 0, Way::Nearest, 10),
            (1250, 0, -2, 0, Way::Nearest, 1300),
            (-1250, 0, -2, 0, Way::Nearest, -1300),
            (950, 1, -2, 0, Way::Nearest, 100),
            (5, 0, -1, 0, Way::Nearest, 10),
            (5, 0, -2, 0, Way::Nearest, 0),
            (-175, 2, 0, 0, Way::Zero, -1),
            (-125, 2, 0, 0, Way::Down, -2),
            (125, 2, 0, 0, Way::Up, 2),
            (-125, 2, 0, 0, Way::Up, -1),
            (125, 2, 5, 2, Way::Nearest, 125),
            (125, 2, 1, 2, Way::Nearest, 130),
            (7, 0, i64::MIN, 0, Way::Nearest, 0),
            (7, 0, i64::MAX, 0, Way::Nearest, 7),
        ];
        for (n, scale, digits, result_scale, way, expected) in cases {
            assert_eq!(round_scaled(n, scale, digits, result_scale, way), Some(expected), "{n} {scale} {digits}");
        }
        // Up, by more than every number: past 128 bits.
        assert_eq!(round_scaled(1, 0, -40, 0, Way::Up), None);
        assert_eq!(round_scaled(i128::MAX, 0, -38, 0, Way::Nearest), None);
        assert_eq!(round_scaled(i128::MAX, 0, -39, 0, Way::Nearest), Some(0));
    }

    #[test]
    fn floats_round_without_passing_their_range() {
        assert_eq!(round_float(2.5, 0, Way::Nearest), 3.0);
        assert_eq!(round_float(-2.5, 0, Way::Nearest), -3.0);
        assert_eq!(round_float(0.125, 2, Way::Nearest), 0.13);
        assert_eq!(round_float(1250.0, -2, Way::Nearest), 1300.0);
        assert_eq!(round_float(1e300, 300, Way::Nearest), 1e300);
        assert_eq!(round_float(1.5, 1000, Way::Nearest), 1.5);
        assert_eq!(round_float(1.5, i64::MIN, Way::Nearest), 0.0);
    }

    #[test]
    fn decimals_become_the_nearest_float() {
        assert_eq!(decimal_as_float(1, 1), 0.1);
        assert_eq!(decimal_as_float(12_345_678_901_234_567_890, 19), 1.234_567_890_123_456_8);
        assert_eq!(decimal_as_float(10i128.pow(37) * 9, 38), 0.9);
        assert!(decimal_as_float(i128::MIN, 0).is_finite());
    }
}
