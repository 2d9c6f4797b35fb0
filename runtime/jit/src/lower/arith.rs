//! Arithmetic on integers, floats and temporal values. Every overflow, division by zero or infinite result rejects the row.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_eval::calendar::{DAY, FIRST_DAY, LAST_DAY};
use dfc_ir::types::IntType;
use dfc_ir::{BinaryOp, Expr, ExprKind, Type, Value};

use super::{Lowerer, Unsupported, compare, text_of};
use crate::helpers;
use crate::kind::{Kind, Val};

impl Lowerer<'_> {
    /// A comparison or an arithmetic operator.
    pub(crate) fn binary(&mut self, op: BinaryOp, expr: &Expr, left: &Expr, right: &Expr) -> Result<Val, Unsupported> {
        let kind = Kind::of(&left.ty.ty).ok_or_else(|| Unsupported(text_of(left)))?;
        let l = self.expr(left)?;
        let r = self.expr(right)?;
        if compare::is_comparison(op) {
            if left.ty.ty != right.ty.ty && matches!(left.ty.ty, Type::Decimal(..)) {
                // Numbers that no decimal type holds both exactly.
                return self.operand_island(expr, &[l, r], &[&left.ty, &right.ty]);
            }
            return Ok(self.compare(op, kind, l, r));
        }
        let valid = self.both(l.valid, r.valid);
        let value = match (&left.ty.ty, &right.ty.ty, &expr.ty.ty) {
            (Type::Int(_), Type::Int(_), Type::Int(int)) => {
                let divisor = match &right.kind {
                    ExprKind::Literal(Value::Int(divisor)) => Some(*divisor),
                    _ => None,
                };
                self.integers(op, *int, l.value, r.value, valid, divisor)
            }
            (Type::Float32 | Type::Float64, Type::Float32 | Type::Float64, result) => {
                self.floats(op, *result == Type::Float32, l.value, r.value, valid)
            }
            (Type::Decimal(..), Type::Decimal(..), Type::Decimal(..)) => {
                self.decimals(op, [&left.ty.ty, &right.ty.ty, &expr.ty.ty], l.value, r.value, valid)
            }
            (from, by, _) => match self.temporal(op, from, by, l.value, r.value, valid) {
                Some(value) => value,
                None => return self.operand_island(expr, &[l, r], &[&left.ty, &right.ty]),
            },
        };
        Ok(Val::plain(value).with_valid(valid))
    }

    /// `-x`
    pub(crate) fn negate(&mut self, expr: &Expr, operand: &Expr) -> Result<Val, Unsupported> {
        let val = self.expr(operand)?;
        let value = match &expr.ty.ty {
            Type::Float32 | Type::Float64 => self.b.ins().fneg(val.value),
            Type::Int(int) => {
                let zero = self.int(0);
                self.integers(BinaryOp::Sub, *int, zero, val.value, val.valid, None)
            }
            Type::Decimal(..) => {
                let register = self.b.func.dfg.value_type(val.value);
                let zero = self.constant(register, 0);
                self.b.ins().isub(zero, val.value)
            }
            _ => {
                let zero = self.int(0);
                self.integers(BinaryOp::Sub, IntType::I64, zero, val.value, val.valid, None)
            }
        };
        Ok(Val { value, ..val })
    }

    fn integers(
        &mut self,
        op: BinaryOp,
        int: IntType,
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
        divisor: Option<i128>,
    ) -> ir::Value {
        if matches!(op, BinaryOp::IntDiv | BinaryOp::Mod | BinaryOp::Div) {
            return self.integer_division(op, int, l, r, valid, divisor);
        }
        if int.bits() == 64 {
            let ins = self.b.ins();
            let (value, overflow) = match (op, int.signed()) {
                (BinaryOp::Add, true) => ins.sadd_overflow(l, r),
                (BinaryOp::Add, false) => ins.uadd_overflow(l, r),
                (BinaryOp::Sub, true) => ins.ssub_overflow(l, r),
                (BinaryOp::Sub, false) => ins.usub_overflow(l, r),
                (_, true) => ins.smul_overflow(l, r),
                (_, false) => ins.umul_overflow(l, r),
            };
            self.fail_if(overflow, valid);
            return value;
        }
        // 32 bits and less never wrap in 64: also the product of two uint32, seen as unsigned.
        let value = match op {
            BinaryOp::Add => self.b.ins().iadd(l, r),
            BinaryOp::Sub => self.b.ins().isub(l, r),
            _ => self.b.ins().imul(l, r),
        };
        self.check_range(value, int, valid);
        value
    }

    /// Rejects the row where a number of 64 bits is none of a narrower type's. For an unsigned type a negative number is a large one.
    pub(crate) fn check_range(&mut self, value: ir::Value, int: IntType, valid: Option<ir::Value>) {
        let bad = self.out_of_range(value, int);
        self.fail_if(bad, valid);
    }

    /// Whether a number of 64 bits is none of a narrower type's.
    pub(crate) fn out_of_range(&mut self, value: ir::Value, int: IntType) -> ir::Value {
        let low = self.int(int.min() as i64);
        let size = self.int((int.max() - int.min()) as i64);
        let above = self.b.ins().isub(value, low);
        self.b.ins().icmp(IntCC::UnsignedGreaterThan, above, size)
    }

    fn integer_division(
        &mut self,
        op: BinaryOp,
        int: IntType,
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
        divisor: Option<i128>,
    ) -> ir::Value {
        let remainder = op == BinaryOp::Mod;
        // A constant needs none of the checks (but 0 and −1).
        let harmless = divisor.is_some_and(|d| d != 0 && d != -1);
        let mut by = r;
        if !harmless {
            let zero = self.int(0);
            let one = self.int(1);
            let bad = self.b.ins().icmp(IntCC::Equal, r, zero);
            self.fail_if(bad, valid);
            // The division instruction traps: a null's arbitrary divisor must not be 0, and the smallest number not be divided by −1.
            by = self.b.ins().select(bad, one, r);
            if int.signed() {
                let minus = self.int(-1);
                let negates = self.b.ins().icmp(IntCC::Equal, by, minus);
                by = self.b.ins().select(negates, one, by);
                if remainder {
                    // Everything is a multiple of −1 as of 1.
                    return self.b.ins().srem(l, by);
                }
                let smallest = self.int(int.min() as i64);
                let least = self.b.ins().icmp(IntCC::Equal, l, smallest);
                let bad = self.b.ins().band(least, negates);
                self.fail_if(bad, valid);
                let quotient = self.b.ins().sdiv(l, by);
                let negated = self.b.ins().isub(zero, l);
                return self.b.ins().select(negates, negated, quotient);
            }
        }
        let ins = self.b.ins();
        match (remainder, int.signed()) {
            (true, true) => ins.srem(l, by),
            (true, false) => ins.urem(l, by),
            (false, true) => ins.sdiv(l, by),
            (false, false) => ins.udiv(l, by),
        }
    }

    fn floats(
        &mut self,
        op: BinaryOp,
        single: bool,
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
    ) -> ir::Value {
        let mut value = match op {
            BinaryOp::Add => self.b.ins().fadd(l, r),
            BinaryOp::Sub => self.b.ins().fsub(l, r),
            BinaryOp::Mul => self.b.ins().fmul(l, r),
            BinaryOp::Mod => self.call(&helpers::FLOAT_REM, &[l, r]).unwrap_or(l),
            _ => self.b.ins().fdiv(l, r),
        };
        if single {
            value = self.rounded_single(value);
        }
        // Also a division by zero, which gives an infinity or no number.
        let bad = self.not_finite(value);
        self.fail_if(bad, valid);
        if op == BinaryOp::IntDiv { self.b.ins().trunc(value) } else { value }
    }

    /// Rounds a float64 to a float32's value. (For the basic operations this is what computing in float32 gives.)
    pub(crate) fn rounded_single(&mut self, value: ir::Value) -> ir::Value {
        let narrow = self.b.ins().fdemote(types::F32, value);
        self.b.ins().fpromote(types::F64, narrow)
    }

    /// Whether a float is infinite or no number.
    pub(crate) fn not_finite(&mut self, value: ir::Value) -> ir::Value {
        let size = self.b.ins().fabs(value);
        let infinity = self.b.ins().f64const(f64::INFINITY);
        self.b.ins().fcmp(FloatCC::UnorderedOrGreaterThanOrEqual, size, infinity)
    }

    /// Dates, times and durations; `None` for a pair that has no meaning.
    fn temporal(
        &mut self,
        op: BinaryOp,
        from: &Type,
        by: &Type,
        l: ir::Value,
        r: ir::Value,
        valid: Option<ir::Value>,
    ) -> Option<ir::Value> {
        use BinaryOp::{Add, Mul, Sub};
        let signed = IntType::I64;
        Some(match (op, from, by) {
            (Add | Sub, Type::Date, Type::Duration) => {
                let day = self.int(DAY);
                let rest = self.b.ins().srem(r, day);
                let zero = self.int(0);
                let broken = self.b.ins().icmp(IntCC::NotEqual, rest, zero);
                self.fail_if(broken, valid);
                let days = self.b.ins().sdiv(r, day);
                // At most 10^8 days each: no overflow.
                let moved = if op == Add { self.b.ins().iadd(l, days) } else { self.b.ins().isub(l, days) };
                let bad = self.outside(moved, i64::from(FIRST_DAY), i64::from(LAST_DAY));
                self.fail_if(bad, valid);
                moved
            }
            (Add | Sub, Type::DateTime | Type::Timestamp, Type::Duration) => {
                let moved = self.integers(op, signed, l, r, valid, None);
                let (first, end) = (i64::from(FIRST_DAY) * DAY, (i64::from(LAST_DAY) + 1) * DAY);
                let bad = self.outside(moved, first, end - 1);
                self.fail_if(bad, valid);
                moved
            }
            (Sub, Type::Date, Type::Date) => self.b.ins().isub(l, r),
            (Add | Sub, Type::Duration, Type::Duration)
            | (Sub, Type::DateTime, Type::DateTime)
            | (Sub, Type::Timestamp, Type::Timestamp)
            | (Sub, Type::Time, Type::Time)
            | (Mul, Type::Duration, Type::Int(IntType::I64)) => self.integers(op, signed, l, r, valid, None),
            _ => return None,
        })
    }

    /// Whether an i64 lies outside of `first..=last`.
    pub(crate) fn outside(&mut self, value: ir::Value, first: i64, last: i64) -> ir::Value {
        let low = self.int(first);
        let above = self.b.ins().isub(value, low);
        let size = self.int(last.wrapping_sub(first));
        self.b.ins().icmp(IntCC::UnsignedGreaterThan, above, size)
    }
}
