//! Helpers over numbers and dates: what is too long to be inline.

use arrow_buffer::i256;
use dfc_ir::BinaryOp;
use dfc_ir::types::MAX_PRECISION;

use crate::context::Context;
use crate::islands::Constants;
use crate::lower::Shape;

/// Operators in the order of their numbers in [`code`].
const OPERATORS: [BinaryOp; 6] =
    [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::IntDiv, BinaryOp::Mod];

/// Operator, scales of the operands, precision and scale of the result in one word.
pub(crate) fn code(op: BinaryOp, left: Shape, right: Shape, result: Shape) -> u64 {
    let number = OPERATORS.iter().position(|known| *known == op).unwrap_or(0);
    u64::from_le_bytes([number as u8, left.1, right.1, result.0, result.1, 0, 0, 0])
}

/// `operands[0] op operands[1]`, exact, rounded half away from zero to the result's scale; the result replaces the first operand.
/// 1 if there is one, 0 for a division by zero and a result past the precision.
///
/// # Safety
/// Two mantissas at `operands`.
pub(super) unsafe extern "C" fn operate(operands: *mut i128, code: u64) -> u64 {
    let [op, s1, s2, precision, scale, ..] = code.to_le_bytes();
    // SAFETY: promised by the caller.
    let (a, b) = unsafe { (*operands, *operands.add(1)) };
    match compute(OPERATORS[usize::from(op) % OPERATORS.len()], (a, s1), (b, s2), (precision, scale)) {
        Some(value) => {
            // SAFETY: promised by the caller.
            unsafe { *operands = value };
            1
        }
        None => 0,
    }
}

/// 10^k.
fn pow10(k: u8) -> Option<i256> {
    if k <= MAX_PRECISION {
        return Some(i256::from_i128(10i128.pow(k.into())));
    }
    i256::from_i128(10).checked_pow(k.into())
}

/// `None` past the range of 256 bits, 76 digits.
fn up(value: i128, k: u8) -> Option<i256> {
    i256::from_i128(value).checked_mul(pow10(k)?)
}

/// The quotient rounded half away from zero.
fn round_div(value: i256, divisor: i256) -> Option<i256> {
    let quotient = value.checked_div(divisor)?;
    let rest = value.wrapping_sub(quotient.wrapping_mul(divisor)).wrapping_abs();
    // |rest| ≥ |divisor| − |rest|: the sum can't overflow.
    if rest < divisor.wrapping_abs().wrapping_sub(rest) {
        return Some(quotient);
    }
    let negative = value.is_negative() != divisor.is_negative();
    let one = i256::from_i128(1);
    if negative { quotient.checked_sub(one) } else { quotient.checked_add(one) }
}

fn compute(op: BinaryOp, (a, s1): (i128, u8), (b, s2): (i128, u8), (precision, scale): Shape) -> Option<i128> {
    if matches!(op, BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod) && b == 0 {
        return None;
    }
    let common = s1.max(s2);
    let (value, at) = match op {
        BinaryOp::Mul => (i256::from_i128(a).checked_mul(i256::from_i128(b))?, s1 + s2),
        BinaryOp::Div => return quotient(a, s1, b, s2, scale).and_then(|value| within(value, precision)),
        _ => {
            let (x, y) = (up(a, common - s1)?, up(b, common - s2)?);
            match op {
                BinaryOp::Add => (x.checked_add(y)?, common),
                BinaryOp::Sub => (x.checked_sub(y)?, common),
                BinaryOp::IntDiv => (x.checked_div(y)?, 0),
                _ => (x.checked_rem(y)?, common),
            }
        }
    };
    let value =
        if at > scale { round_div(value, pow10(at - scale)?)? } else { value.checked_mul(pow10(scale - at)?)? };
    within(value, precision)
}

/// `a / b` at `scale`. `None` where the dividend passes 256 bits: with a divisor below 10^38 the quotient then has more than 38 digits.
fn quotient(a: i128, s1: u8, b: i128, s2: u8, scale: u8) -> Option<i256> {
    let (gain, loss) = (scale + s2, s1);
    if gain >= loss {
        let k = gain - loss;
        // Most quotients need no 256 bits.
        if k <= MAX_PRECISION
            && let Some(dividend) = a.checked_mul(10i128.pow(k.into()))
            && b != -1
        {
            let (quotient, rest) = (dividend / b, (dividend % b).unsigned_abs());
            let away = rest >= b.unsigned_abs() - rest;
            let step = if (dividend < 0) == (b < 0) { 1 } else { -1 };
            return Some(i256::from_i128(quotient + if away { step } else { 0 }));
        }
        return round_div(up(a, k)?, i256::from_i128(b));
    }
    round_div(i256::from_i128(a), up(b, loss - gain)?)
}

fn within(value: i256, precision: u8) -> Option<i128> {
    let value = value.to_i128()?;
    (value.unsigned_abs() < 10u128.pow(precision.into())).then_some(value)
}

/// A mantissa ÷ 10^k, rounded half away from zero.
///
/// # Safety
/// Room for an i128 at `out`.
pub(super) unsafe extern "C" fn scale_down(out: *mut i128, low: u64, high: u64, k: u64) {
    let value = (i128::from(high) << 64) | i128::from(low);
    let divisor = 10i128.pow((k as u32).min(MAX_PRECISION.into()));
    let (quotient, rest) = (value / divisor, value % divisor);
    let half = divisor / 2;
    let rounded = quotient + i128::from(rest >= half) - i128::from(rest <= -half);
    // SAFETY: promised by the caller.
    unsafe { *out = rounded };
}

/// The remainder with the dividend's sign.
pub(super) extern "C" fn float_rem(a: f64, b: f64) -> f64 {
    a % b
}

/// To a whole number, half away from zero.
pub(super) extern "C" fn float_round(a: f64) -> f64 {
    a.round()
}

/// Whether a number is in list number `list`.
///
/// # Safety
/// The context is that of the running call.
pub(super) unsafe extern "C" fn in_numbers(context: *mut Context, list: u64, low: u64, high: u64) -> u64 {
    // SAFETY: promised by the caller.
    let pool = unsafe { &*(*context).pool };
    let value = (i128::from(high) << 64) | i128::from(low);
    match &pool.lists[list as usize] {
        Constants::Numbers(numbers) => u64::from(numbers.binary_search(&value).is_ok()),
        Constants::Texts(_) => 0,
    }
}

/// Year (0), month (1), or day (2) of a day.
pub(super) extern "C" fn date_part(day: i64, part: u64) -> i64 {
    // A null's day is arbitrary: clamped, it can't overflow.
    let day = day.clamp(dfc_eval::calendar::FIRST_DAY.into(), dfc_eval::calendar::LAST_DAY.into());
    let (year, month, date) = dfc_eval::calendar::civil_from_days(day as i32);
    match part {
        0 => year.into(),
        1 => month.into(),
        _ => date.into(),
    }
}
