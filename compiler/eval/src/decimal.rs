//! Exact arithmetic on decimals: mantissas with a scale each, 256-bit intermediates, one rounding (half away from zero) to the
//! result's scale, and a check against the result's precision.

use std::cmp::Ordering;

use dfc_ir::Type;

use crate::wide::{Wide, pow10};
use crate::{DIVISION_BY_ZERO, EvalError, OVERFLOW};

/// A number: `mantissa ÷ 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// The digits, signed.
    pub mantissa: i128,
    /// How many of them stand after the point. At most 38, but for a number that is only rescaled.
    pub scale: u8,
}

/// The result didn't fit `decimal(precision, scale)`.
fn overflow(precision: u8, scale: u8) -> EvalError {
    EvalError::new(
        OVERFLOW,
        format!(
            "the result doesn't fit decimal({precision}, {scale}), which has {} digits before the point",
            precision - scale
        ),
    )
}

/// `number ÷ 10^from` as the mantissa of a `decimal(precision, scale)`.
fn finish(number: Option<Wide>, from: u32, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let to = u32::from(scale);
    let moved = match from <= to {
        true => number.and_then(|number| number.scaled_up(to - from)),
        false => number.map(|number| number.scaled_down(from - to)),
    };
    moved
        .and_then(Wide::to_i128)
        .filter(|mantissa| mantissa.unsigned_abs() < pow10(precision.into()).unsigned_abs())
        .ok_or_else(|| overflow(precision, scale))
}

/// `x` in `decimal(precision, scale)`, rounded half away from zero.
///
/// Errors: `R0101` if it doesn't fit.
pub fn rescale(x: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    finish(Some(x.mantissa.into()), x.scale.into(), precision, scale)
}

/// `x` rounded half away from zero to a whole number.
pub fn to_whole(x: Decimal) -> i128 {
    // It only gets smaller: what fitted 128 bits still does.
    Wide::from(x.mantissa).scaled_down(x.scale.into()).to_i128().unwrap_or(x.mantissa)
}

/// Both mantissas at the larger of the two scales. `None` past 256 bits.
fn common(a: Decimal, b: Decimal) -> Option<(Wide, Wide, u32)> {
    let scale = u32::from(a.scale.max(b.scale));
    let up = |x: Decimal| Wide::from(x.mantissa).scaled_up(scale - u32::from(x.scale));
    Some((up(a)?, up(b)?, scale))
}

/// The order of two numbers of any scales, exactly.
pub fn compare(a: Decimal, b: Decimal) -> Ordering {
    if a.scale == b.scale {
        return a.mantissa.cmp(&b.mantissa);
    }
    // 38 digits, up to 38 places further, are less than 2²⁵⁴: there is always a difference.
    let difference = common(a, b).and_then(|(x, y, _)| x.checked_add(y.negated()));
    difference.map_or_else(|| a.mantissa.cmp(&b.mantissa), Wide::sign)
}

/// `a + b` in `decimal(precision, scale)`. Errors: `R0101`.
pub fn add(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let (x, y, at) = common(a, b).ok_or_else(|| overflow(precision, scale))?;
    finish(x.checked_add(y), at, precision, scale)
}

/// `a − b` in `decimal(precision, scale)`. Errors: `R0101`.
pub fn sub(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let (x, y, at) = common(a, b).ok_or_else(|| overflow(precision, scale))?;
    finish(x.checked_add(y.negated()), at, precision, scale)
}

/// `a × b` in `decimal(precision, scale)`. Errors: `R0101`.
pub fn mul(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let product = Wide::product(a.mantissa, b.mantissa);
    finish(Some(product), u32::from(a.scale) + u32::from(b.scale), precision, scale)
}

/// Dividend and divisor brought to whole numbers whose quotient is `a ÷ b × 10^scale`.
/// `None` when the dividend passes 256 bits: then the quotient has more than 38 digits.
fn quotient_parts(a: Decimal, b: Decimal, scale: u8) -> Result<Option<(Wide, Wide)>, EvalError> {
    if b.mantissa == 0 {
        return Err(division_by_zero());
    }
    let (up, down) = (u32::from(scale) + u32::from(b.scale), u32::from(a.scale));
    let dividend = Wide::from(a.mantissa).scaled_up(up.saturating_sub(down));
    let divisor = Wide::from(b.mantissa).scaled_up(down.saturating_sub(up));
    Ok(dividend.zip(divisor))
}

/// `a ÷ b` in `decimal(precision, scale)`, rounded half away from zero. Errors: `R0101`, `R0102`.
pub fn div(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let quotient = quotient_parts(a, b, scale)?.map(|(x, y)| x.div_round(y));
    finish(quotient, scale.into(), precision, scale)
}

/// `a ÷ b` towards zero, in `decimal(precision, scale)`. Errors: `R0101`, `R0102`.
pub fn int_div(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let quotient = quotient_parts(a, b, 0)?.map(|(x, y)| x.div_rem(y).0);
    finish(quotient, 0, precision, scale)
}

/// `(a + b) ÷ 2` in `decimal(precision, scale)`, rounded half away from zero. Errors: `R0101`.
pub fn middle(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    let (x, y, at) = common(a, b).ok_or_else(|| overflow(precision, scale))?;
    // Half of a number is five times it, one place further.
    let five = x.checked_add(y).and_then(|sum| {
        let twice = sum.checked_add(sum)?;
        twice.checked_add(twice)?.checked_add(sum)
    });
    finish(five, at + 1, precision, scale)
}

/// What `a` leaves when divided by `b`, with the sign of `a`, in `decimal(precision, scale)`. Errors: `R0101`, `R0102`.
pub fn rem(a: Decimal, b: Decimal, precision: u8, scale: u8) -> Result<i128, EvalError> {
    if b.mantissa == 0 {
        return Err(division_by_zero());
    }
    let (x, y, at) = common(a, b).ok_or_else(|| overflow(precision, scale))?;
    finish(Some(x.div_rem(y).1), at, precision, scale)
}

/// `R0102`.
pub(crate) fn division_by_zero() -> EvalError {
    EvalError::new(DIVISION_BY_ZERO, "division by zero")
}

/// Precision and scale of a decimal type; of any other type those of `decimal(38, 0)`.
pub fn shape(ty: &Type) -> (u8, u8) {
    match ty {
        Type::Decimal(p, s) => (*p, *s),
        _ => (dfc_ir::types::MAX_PRECISION, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(mantissa: i128, scale: u8) -> Decimal {
        Decimal { mantissa, scale }
    }

    #[test]
    fn sums_and_differences_meet_at_the_larger_scale() {
        assert_eq!(add(d(150, 2), d(5, 3), 10, 3), Ok(1505));
        assert_eq!(sub(d(150, 2), d(5, 3), 10, 3), Ok(1495));
        assert_eq!(add(d(15, 1), d(5, 2), 10, 1), Ok(16), "1.55 rounds up");
        assert_eq!(sub(d(-15, 1), d(5, 2), 10, 1), Ok(-16), "away from zero");
        assert_eq!(add(d(99, 0), d(1, 0), 2, 0).unwrap_err().code, OVERFLOW);
    }

    #[test]
    fn products_are_exact_before_they_are_rounded() {
        assert_eq!(mul(d(12_345, 2), d(95, 2), 20, 4), Ok(1_172_775));
        let large = 10i128.pow(38) - 1;
        // 0.99…9 × 0.99…9 (38 digits each) = 0.99…98 00…01: rounds to 1 − 2·10⁻³⁸.
        assert_eq!(mul(d(large, 38), d(large, 38), 38, 38), Ok(large - 1));
        assert_eq!(mul(d(large, 0), d(large, 0), 38, 0).unwrap_err().code, OVERFLOW);
        assert_eq!(mul(d(large, 0), d(-1, 0), 38, 0), Ok(-large));
    }

    #[test]
    fn quotients_round_once() {
        assert_eq!(div(d(1, 0), d(3, 0), 38, 6), Ok(333_333));
        assert_eq!(div(d(2, 0), d(3, 0), 38, 6), Ok(666_667));
        assert_eq!(div(d(-1, 0), d(8, 0), 38, 2), Ok(-13));
        assert_eq!(div(d(1, 0), d(0, 2), 38, 2).unwrap_err().code, DIVISION_BY_ZERO);
        let large = 10i128.pow(38) - 1;
        assert_eq!(div(d(large, 0), d(1, 38), 38, 6).unwrap_err().code, OVERFLOW);
        assert_eq!(div(d(1, 38), d(large, 0), 38, 38), Ok(0));
        assert_eq!(div(d(large, 0), d(large, 0), 38, 37), Ok(10i128.pow(37)));
    }

    #[test]
    fn whole_quotients_and_remainders() {
        assert_eq!(int_div(d(75, 1), d(2, 0), 38, 0), Ok(3));
        assert_eq!(int_div(d(-75, 1), d(2, 0), 38, 0), Ok(-3));
        assert_eq!(int_div(d(1, 38), d(10i128.pow(38) - 1, 0), 38, 0), Ok(0));
        assert_eq!(rem(d(75, 1), d(2, 0), 10, 1), Ok(15));
        assert_eq!(rem(d(-75, 1), d(2, 0), 10, 1), Ok(-15));
        assert_eq!(rem(d(75, 1), d(200, 2), 10, 2), Ok(150));
        assert_eq!(rem(d(75, 1), d(0, 0), 10, 1).unwrap_err().code, DIVISION_BY_ZERO);
    }

    #[test]
    fn the_middle_is_exact() {
        assert_eq!(middle(d(10, 1), d(15, 1), 10, 2), Ok(125));
        assert_eq!(middle(d(1, 0), d(2, 0), 10, 0), Ok(2));
        assert_eq!(middle(d(-1, 0), d(-2, 0), 10, 0), Ok(-2));
        let large = 10i128.pow(38) - 1;
        assert_eq!(middle(d(large, 0), d(large, 0), 38, 0), Ok(large));
    }

    #[test]
    fn rescaling_rounds_and_checks() {
        assert_eq!(rescale(d(1_235, 3), 10, 2), Ok(124));
        assert_eq!(rescale(d(-1_235, 3), 10, 2), Ok(-124));
        assert_eq!(rescale(d(1, 0), 10, 4), Ok(10_000));
        assert_eq!(rescale(d(9_995, 3), 3, 2).unwrap_err().code, OVERFLOW);
        assert_eq!(to_whole(d(25, 1)), 3);
        assert_eq!(to_whole(d(-24, 1)), -2);
    }
}
