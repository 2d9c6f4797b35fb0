//! Equality and order of two values of one kind.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_ir::BinaryOp;

use super::Lowerer;
use crate::helpers;
use crate::kind::{Kind, Val};

/// The condition codes of a comparison: floats, signed, unsigned.
fn codes(op: BinaryOp) -> Option<(FloatCC, IntCC, IntCC)> {
    Some(match op {
        BinaryOp::Eq => (FloatCC::Equal, IntCC::Equal, IntCC::Equal),
        BinaryOp::Ne => (FloatCC::NotEqual, IntCC::NotEqual, IntCC::NotEqual),
        BinaryOp::Lt => (FloatCC::LessThan, IntCC::SignedLessThan, IntCC::UnsignedLessThan),
        BinaryOp::Le => (FloatCC::LessThanOrEqual, IntCC::SignedLessThanOrEqual, IntCC::UnsignedLessThanOrEqual),
        BinaryOp::Gt => (FloatCC::GreaterThan, IntCC::SignedGreaterThan, IntCC::UnsignedGreaterThan),
        BinaryOp::Ge => {
            (FloatCC::GreaterThanOrEqual, IntCC::SignedGreaterThanOrEqual, IntCC::UnsignedGreaterThanOrEqual)
        }
        _ => return None,
    })
}

/// Whether it is a comparison.
pub(crate) fn is_comparison(op: BinaryOp) -> bool {
    codes(op).is_some()
}

impl Lowerer<'_> {
    /// Compares two values of one kind; null where one is.
    pub(crate) fn compare(&mut self, op: BinaryOp, kind: Kind, left: Val, right: Val) -> Val {
        let valid = self.both(left.valid, right.valid);
        let value = match (codes(op), kind) {
            (None, _) => self.flag(false),
            (Some(_), Kind::Text) if op == BinaryOp::Eq => self.equal(kind, left, right),
            (Some(_), Kind::Text) if op == BinaryOp::Ne => {
                let equal = self.equal(kind, left, right);
                self.not(equal)
            }
            (Some((_, signed, _)), Kind::Text) => {
                let (left_len, right_len) = (self.len(left), self.len(right));
                let args = [left.value, left_len, right.value, right_len];
                let zero = self.int(0);
                let order = self.call(&helpers::TEXT_COMPARE, &args).unwrap_or(zero);
                self.b.ins().icmp(signed, order, zero)
            }
            (Some((float, ..)), _) if kind.is_float() => self.b.ins().fcmp(float, left.value, right.value),
            (Some((_, signed, unsigned)), _) => {
                let code = if kind.unsigned() { unsigned } else { signed };
                self.b.ins().icmp(code, left.value, right.value)
            }
        };
        Val::plain(value).with_valid(valid)
    }

    /// The length of a text.
    pub(crate) fn len(&mut self, val: Val) -> ir::Value {
        val.len.unwrap_or_else(|| self.int(0))
    }

    /// Whether two values are equal, as an i8; their validity aside.
    pub(crate) fn equal(&mut self, kind: Kind, left: Val, right: Val) -> ir::Value {
        if kind.is_float() {
            return self.b.ins().fcmp(FloatCC::Equal, left.value, right.value);
        }
        if kind != Kind::Text {
            return self.b.ins().icmp(IntCC::Equal, left.value, right.value);
        }
        // Most texts that differ have different lengths: only equal lengths are worth a call.
        let (left_len, right_len) = (self.len(left), self.len(right));
        let same_len = self.b.ins().icmp(IntCC::Equal, left_len, right_len);
        let (bytes, done) = (self.b.create_block(), self.b.create_block());
        let equal = self.b.append_block_param(done, types::I8);
        self.b.ins().brif(same_len, bytes, &[], done, &[same_len.into()]);
        self.b.switch_to_block(bytes);
        let answer = self.call_flag(&helpers::SAME_BYTES, &[left.value, right.value, left_len]);
        self.b.ins().jump(done, &[answer.into()]);
        self.b.switch_to_block(done);
        equal
    }
}
