//! Conversions. Between numbers and dates they are inline; a text's canonical form comes from helpers; the rest is left to `dfc-eval`.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_eval::calendar::DAY;
use dfc_ir::types::IntType;
use dfc_ir::{CastMode, Expr, Type};

use super::decimal::{pow10, shape};
use super::{Lowerer, Unsupported};
use crate::helpers;
use crate::kind::{Kind, Val};

/// Decimals of so many digits are exact in a float64, and so is 10^scale: one division gives the nearest float.
const EXACT_DIGITS: u8 = 15;

impl Lowerer<'_> {
    /// `x as T`, `x as? T`
    pub(crate) fn cast(&mut self, expr: &Expr, operand: &Expr, mode: CastMode) -> Result<Val, Unsupported> {
        let val = self.expr(operand)?;
        let Some((converted, bad)) = self.convert(val, &operand.ty.ty, &expr.ty.ty) else {
            return self.operand_island(expr, &[val], &[&operand.ty]);
        };
        let mut valid = val.valid;
        match (mode, bad) {
            (CastMode::Strict, Some(bad)) => self.fail_if(bad, valid),
            (CastMode::Try, Some(bad)) => {
                let good = self.not(bad);
                valid = self.both(valid, Some(good));
            }
            (_, None) => {}
        }
        if let Some(known) = valid
            && mode == CastMode::Strict
            && !expr.ty.nullable
        {
            let null = self.not(known);
            self.fail_if(null, None);
            valid = None;
        }
        Ok(converted.with_valid(valid))
    }

    /// The converted value and whether it has none; `None`: not done here.
    fn convert(&mut self, val: Val, from: &Type, to: &Type) -> Option<(Val, Option<ir::Value>)> {
        if from == to || matches!((from, to), (Type::Json, Type::String)) {
            return Some((val, None));
        }
        let plain = |value| Some((Val::plain(value), None));
        match (from, to) {
            (Type::Bool, Type::String) => {
                let (yes, no) = (self.text_constant(b"true"), self.text_constant(b"false"));
                let (yes_len, no_len) = (self.len(yes), self.len(no));
                let value = self.b.ins().select(val.value, yes.value, no.value);
                let len = self.b.ins().select(val.value, yes_len, no_len);
                Some((Val::text(value, len), None))
            }
            (Type::Bool, _) => {
                let number = self.b.ins().uextend(types::I64, val.value);
                self.convert(Val::plain(number), &Type::Int(IntType::U8), to)
            }
            (Type::Int(_), Type::Bool) => {
                let one = self.int(1);
                let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThan, val.value, one);
                // 0 or 1 also where a null's number is neither.
                let zero = self.int(0);
                Some((Val::plain(self.b.ins().icmp(IntCC::NotEqual, val.value, zero)), Some(bad)))
            }
            (Type::Int(from), Type::Int(to)) => Some((val.with_valid(None), self.int_to_int(val.value, *from, *to))),
            (Type::Int(from), Type::Float64) => plain(self.int_to_float(val.value, *from, types::F64)),
            (Type::Int(from), Type::Float32) => {
                let single = self.int_to_float(val.value, *from, types::F32);
                plain(self.b.ins().fpromote(types::F64, single))
            }
            (Type::Int(from), Type::Decimal(precision, scale)) => {
                let wide = match from {
                    IntType::U64 => self.b.ins().uextend(types::I128, val.value),
                    _ if from.bits() == 64 => self.b.ins().sextend(types::I128, val.value),
                    _ => val.value,
                };
                let (value, bad) = self.rescale(wide, (from.digits(), 0), (*precision, *scale));
                Some((Val::plain(value), bad))
            }
            (Type::Int(from), Type::String) => {
                let unsigned = self.int(i64::from(*from == IntType::U64));
                Some((self.text_result(&helpers::INT_TEXT, &[val.value, unsigned]), None))
            }
            (Type::Float32 | Type::Float64, Type::Int(to)) => Some(self.float_to_int(val.value, *to)),
            (Type::Float32, Type::Float64) => plain(val.value),
            (Type::Float64, Type::Float32) => {
                let value = self.rounded_single(val.value);
                let bad = self.not_finite(value);
                Some((Val::plain(value), Some(bad)))
            }
            (Type::Decimal(..), Type::Decimal(..)) => {
                let (value, bad) = self.rescale(val.value, shape(from)?, shape(to)?);
                Some((Val::plain(value), bad))
            }
            (Type::Decimal(_, scale), Type::Int(to)) => {
                let whole = if *scale == 0 { val.value } else { self.scale_down(val.value, *scale) };
                Some(self.whole_to_int(whole, *to))
            }
            (Type::Decimal(precision, scale), Type::Float64) if *precision <= EXACT_DIGITS => {
                let number = self.b.ins().fcvt_from_sint(types::F64, val.value);
                let power = self.b.ins().f64const(pow10(*scale) as f64);
                plain(self.b.ins().fdiv(number, power))
            }
            (Type::Decimal(_, scale), Type::String) => {
                let (low, high) = self.halves(Kind::of(from)?, val.value);
                let scale = self.int(i64::from(*scale));
                Some((self.text_result(&helpers::DECIMAL_TEXT, &[low, high, scale]), None))
            }
            (Type::Date, Type::DateTime) => {
                let day = self.int(DAY);
                plain(self.b.ins().imul(val.value, day))
            }
            (Type::DateTime, Type::Date) => plain(self.floor_div(val.value, DAY)),
            (Type::DateTime, Type::Time) => {
                let days = self.floor_div(val.value, DAY);
                let day = self.int(DAY);
                let start = self.b.ins().imul(days, day);
                plain(self.b.ins().isub(val.value, start))
            }
            (Type::Date, Type::String) => {
                // A null's day is arbitrary, the helper must get one that has a date.
                let zero = self.int(0);
                let day = match val.valid {
                    Some(valid) => self.b.ins().select(valid, val.value, zero),
                    None => val.value,
                };
                Some((self.text_result(&helpers::DATE_TEXT, &[day]), None))
            }
            _ => None,
        }
    }

    fn int_to_int(&mut self, value: ir::Value, from: IntType, to: IntType) -> Option<ir::Value> {
        if from.min() >= to.min() && from.max() <= to.max() {
            return None;
        }
        let zero = self.int(0);
        if to == IntType::U64 {
            return Some(self.b.ins().icmp(IntCC::SignedLessThan, value, zero));
        }
        if from == IntType::U64 {
            let largest = self.int(to.max() as i64);
            return Some(self.b.ins().icmp(IntCC::UnsignedGreaterThan, value, largest));
        }
        Some(self.out_of_range(value, to))
    }

    fn int_to_float(&mut self, value: ir::Value, from: IntType, float: ir::Type) -> ir::Value {
        match from {
            IntType::U64 => self.b.ins().fcvt_from_uint(float, value),
            _ => self.b.ins().fcvt_from_sint(float, value),
        }
    }

    fn float_to_int(&mut self, value: ir::Value, to: IntType) -> (Val, Option<ir::Value>) {
        use cranelift_codegen::ir::condcodes::FloatCC;
        let rounded = self.call(&helpers::FLOAT_ROUND, &[value]).unwrap_or(value);
        // Both bounds are powers of two, or 0: exact.
        let low = self.b.ins().f64const(to.min() as f64);
        let end = self.b.ins().f64const((to.max() + 1) as f64);
        let below = self.b.ins().fcmp(FloatCC::LessThan, rounded, low);
        let above = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, rounded, end);
        let bad = self.b.ins().bor(below, above);
        let number = match to {
            IntType::U64 => self.b.ins().fcvt_to_uint_sat(types::I64, rounded),
            _ => self.b.ins().fcvt_to_sint_sat(types::I64, rounded),
        };
        (Val::plain(number), Some(bad))
    }

    /// The mantissa of a decimal without scale as an integer.
    fn whole_to_int(&mut self, whole: ir::Value, to: IntType) -> (Val, Option<ir::Value>) {
        if self.b.func.dfg.value_type(whole) == types::I64 {
            let bad = self.int_to_int(whole, IntType::I64, to);
            return (Val::plain(whole), bad);
        }
        let (low, high) = (self.wide(to.min()), self.wide(to.max()));
        let below = self.b.ins().icmp(IntCC::SignedLessThan, whole, low);
        let above = self.b.ins().icmp(IntCC::SignedGreaterThan, whole, high);
        let bad = self.b.ins().bor(below, above);
        (Val::plain(self.b.ins().ireduce(types::I64, whole)), Some(bad))
    }

    /// A text that a helper writes: it is given the context and room for the text before `args`.
    pub(crate) fn text_result(&mut self, helper: &'static helpers::Helper, args: &[ir::Value]) -> Val {
        let out = self.stack(16);
        let mut all = vec![self.context, out];
        all.extend_from_slice(args);
        self.uses_arena = true;
        self.call(helper, &all);
        self.text_at(out)
    }

    /// The text whose address and length are stored there.
    pub(crate) fn text_at(&mut self, address: ir::Value) -> Val {
        let value = self.b.ins().load(types::I64, super::memory(), address, 0);
        let len = self.b.ins().load(types::I64, super::memory(), address, 8);
        Val::text(value, len)
    }
}
