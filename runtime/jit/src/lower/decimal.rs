//! Decimals: 64-bit where every possible value fits 18 digits, else 128-bit, else (past 38 digits, and all division) by a helper.
//!
//! The types bound the values: a result whose type has room for every value of its operands needs no check. (Language, "Numbers".)

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_ir::types::{MAX_PRECISION, SHORT_PRECISION};
use dfc_ir::{BinaryOp, Expr, ExprKind, Type};

use super::Lowerer;
use crate::context::Slot;
use crate::helpers;

/// Precision and scale.
pub(crate) type Shape = (u8, u8);

/// Precision and scale of a decimal type; `None` for another.
pub(crate) fn shape(ty: &Type) -> Option<Shape> {
    match ty {
        Type::Decimal(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// 10^k, k ≤ 38.
pub(crate) fn pow10(k: u8) -> i128 {
    10i128.pow(k.into())
}

/// Digits and scale of the exact result of `+ − ×`.
fn exact(op: BinaryOp, (p1, s1): Shape, (p2, s2): Shape) -> (u32, u8) {
    if op == BinaryOp::Mul {
        return (u32::from(p1) + u32::from(p2), s1 + s2);
    }
    let scale = s1.max(s2);
    let digits = (p1 + (scale - s1)).max(p2 + (scale - s2));
    (u32::from(digits) + 1, scale)
}

/// Whether `+ − ×` over decimals has room for every result.
pub(crate) fn always_fits(op: BinaryOp, expr: &Expr) -> bool {
    let ExprKind::Binary(_, left, right) = &expr.kind else { return false };
    match (shape(&left.ty.ty), shape(&right.ty.ty), shape(&expr.ty.ty)) {
        (Some(l), Some(r), Some((precision, scale))) => {
            let (digits, exact_scale) = exact(op, l, r);
            scale == exact_scale && digits <= u32::from(precision)
        }
        _ => false,
    }
}

impl Lowerer<'_> {
    /// The operator over two decimals; `types` are the operands' and the result's.
    pub(crate) fn decimals(
        &mut self,
        op: BinaryOp,
        types: [&Type; 3],
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
    ) -> ir::Value {
        let [left, right, result] = types.map(|ty| shape(ty).unwrap_or((MAX_PRECISION, 0)));
        if !matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
            return self.decimal_helper(op, left, right, result, l, r, valid);
        }
        let (digits, scale) = exact(op, left, right);
        if op == BinaryOp::Mul && scale == result.1 && result.0 == MAX_PRECISION && digits > u32::from(MAX_PRECISION) {
            return self.product_of_mostly_small(left, right, result, l, r, valid);
        }
        if digits > u32::from(MAX_PRECISION) || scale != result.1 {
            return self.decimal_helper(op, left, right, result, l, r, valid);
        }
        let digits = digits as u8;
        let value = match op {
            BinaryOp::Mul => {
                let (l, r) = (self.at_width(l, digits), self.at_width(r, digits));
                self.b.ins().imul(l, r)
            }
            _ => {
                let (l, r) = (self.at_width(l, digits), self.at_width(r, digits));
                let (l, r) = (self.scale_up(l, scale - left.1), self.scale_up(r, scale - right.1));
                if op == BinaryOp::Add { self.b.ins().iadd(l, r) } else { self.b.ins().isub(l, r) }
            }
        };
        if digits > result.0 {
            let bad = self.passes(value, result.0);
            self.fail_if(bad, valid);
        }
        self.at_width(value, result.0)
    }

    /// A product whose type can pass 38 digits: values rarely do. Two mantissas of 64 bits have a product below 2^126, and
    /// that is below 10^38: no check. Anything larger goes to the helper.
    fn product_of_mostly_small(
        &mut self,
        left: Shape,
        right: Shape,
        result: Shape,
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
    ) -> ir::Value {
        let small = [l, r].map(|value| self.fits_64_bits(value));
        let small = self.both(small[0], small[1]);
        let (fast, slow, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let product = self.b.append_block_param(done, types::I128);
        self.b.set_cold_block(slow);
        let small = small.unwrap_or_else(|| self.flag(true));
        self.b.ins().brif(small, fast, &[], slow, &[]);
        self.b.switch_to_block(fast);
        // Two registers of 64 bits are multiplied by one instruction.
        let [low_l, low_r] = [l, r].map(|value| {
            let wide = self.b.func.dfg.value_type(value) == types::I128;
            let low = if wide { self.b.ins().isplit(value).0 } else { value };
            self.b.ins().sextend(types::I128, low)
        });
        let value = self.b.ins().imul(low_l, low_r);
        self.b.ins().jump(done, &[value.into()]);
        self.b.switch_to_block(slow);
        let value = self.decimal_helper(BinaryOp::Mul, left, right, result, l, r, valid);
        self.b.ins().jump(done, &[value.into()]);
        self.b.switch_to_block(done);
        product
    }

    /// Whether a 128-bit value is the sign extension of its low half; `None`: it is one of 64 bits.
    fn fits_64_bits(&mut self, value: ir::Value) -> Option<ir::Value> {
        if self.b.func.dfg.value_type(value) != types::I128 {
            return None;
        }
        let (low, high) = self.b.ins().isplit(value);
        let sign = self.b.ins().sshr_imm_u(low, 63);
        Some(self.b.ins().icmp(IntCC::Equal, high, sign))
    }

    /// A mantissa in the register for so many digits.
    pub(crate) fn at_width(&mut self, value: ir::Value, digits: u8) -> ir::Value {
        let wide = self.b.func.dfg.value_type(value) == types::I128;
        match (wide, digits > SHORT_PRECISION) {
            (false, true) => self.b.ins().sextend(types::I128, value),
            (true, false) => self.b.ins().ireduce(types::I64, value),
            _ => value,
        }
    }

    /// × 10^k, which must fit.
    pub(crate) fn scale_up(&mut self, value: ir::Value, k: u8) -> ir::Value {
        if k == 0 {
            return value;
        }
        let register = self.b.func.dfg.value_type(value);
        let factor = self.constant(register, pow10(k));
        self.b.ins().imul(value, factor)
    }

    /// Whether a mantissa has more than so many digits.
    pub(crate) fn passes(&mut self, value: ir::Value, digits: u8) -> ir::Value {
        let register = self.b.func.dfg.value_type(value);
        if register == types::I64 && digits > SHORT_PRECISION {
            return self.flag(false);
        }
        // −limit < value < limit, as one unsigned comparison.
        let limit = pow10(digits) - 1;
        let up = self.constant(register, limit);
        // As unsigned numbers: 2 × 10^38 passes an i128, but not its bits.
        let size = self.constant(register, (limit as u128 * 2) as i128);
        let above = self.b.ins().iadd(value, up);
        self.b.ins().icmp(IntCC::UnsignedGreaterThan, above, size)
    }

    /// The mantissa at scale `to.1`, and whether it passes `to.0` digits (`None`: it can't).
    pub(crate) fn rescale(&mut self, value: ir::Value, from: Shape, to: Shape) -> (ir::Value, Option<ir::Value>) {
        if to.1 >= from.1 {
            let up = to.1 - from.1;
            let mut bad = None;
            if from.0 + up > to.0 {
                // Checked before it is multiplied: it may not fit afterwards.
                bad = Some(self.passes(value, to.0 - up));
            }
            let value = self.at_width(value, to.0);
            return (self.scale_up(value, up), bad);
        }
        let down = from.1 - to.1;
        let value = self.scale_down(value, down);
        // Rounding can add a digit: 9.9 → 10.
        let digits = from.0 - down.min(from.0) + 1;
        let bad = (digits > to.0).then(|| self.passes(value, to.0));
        (self.at_width(value, to.0), bad)
    }

    /// ÷ 10^k, rounded half away from zero.
    pub(crate) fn scale_down(&mut self, value: ir::Value, k: u8) -> ir::Value {
        if self.b.func.dfg.value_type(value) == types::I128 {
            let (low, high) = self.b.ins().isplit(value);
            let (out, digits) = (self.stack(16), self.int(i64::from(k)));
            self.call(&helpers::SCALE_DOWN, &[out, low, high, digits]);
            return self.b.ins().load(types::I128, super::memory(), out, 0);
        }
        if k > SHORT_PRECISION {
            // Less than 18 digits: below a half.
            return self.int(0);
        }
        let divisor = pow10(k) as i64;
        let by = self.int(divisor);
        let quotient = self.b.ins().sdiv(value, by);
        let product = self.b.ins().imul(quotient, by);
        let rest = self.b.ins().isub(value, product);
        let half = self.int(divisor / 2);
        let minus_half = self.int(-(divisor / 2));
        let up = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, rest, half);
        let down = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, rest, minus_half);
        let up = self.b.ins().uextend(types::I64, up);
        let down = self.b.ins().uextend(types::I64, down);
        let quotient = self.b.ins().iadd(quotient, up);
        self.b.ins().isub(quotient, down)
    }

    /// Any operator over any decimals, exactly. Rejects the row where there is no result.
    fn decimal_helper(
        &mut self,
        op: BinaryOp,
        left: Shape,
        right: Shape,
        result: Shape,
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
    ) -> ir::Value {
        let operands = self.stack(2 * size_of::<Slot>());
        for (k, value) in [l, r].into_iter().enumerate() {
            let value = self.at_width(value, MAX_PRECISION);
            self.b.ins().store(super::memory(), value, operands, (k * 16) as i32);
        }
        let code = helpers::decimal::code(op, left, right, result);
        let code = self.int(code as i64);
        let ok = self.call_flag(&helpers::DECIMAL, &[operands, code]);
        let bad = self.not(ok);
        self.fail_if(bad, valid);
        let value = self.b.ins().load(types::I128, super::memory(), operands, 0);
        self.at_width(value, result.0)
    }
}
