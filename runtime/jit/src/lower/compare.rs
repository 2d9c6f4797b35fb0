//! Equality and order of two values of one kind.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_ir::BinaryOp;

use super::{Lowerer, constant_memory};
use crate::context::{HEAD, INLINE, view_words};
use crate::helpers;
use crate::kind::{Kind, Val, View};

/// Constants up to this length are compared in place, a word at a time.
const IN_WORDS: usize = 36;

/// The condition codes of a comparison: floats, signed, unsigned.
pub(super) fn codes(op: BinaryOp) -> Option<(FloatCC, IntCC, IntCC)> {
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
            (Some((_, signed, unsigned)), Kind::Text) => match (left.view, right.view) {
                (Some(left), Some(right)) if left.in_head() || right.in_head() => {
                    // All of one stands in its head: where the other begins with it, its length decides.
                    let (left, right) = (self.head_in_order(left), self.head_in_order(right));
                    self.b.ins().icmp(unsigned, left, right)
                }
                _ => {
                    let order = self.order(left, right);
                    let zero = self.int(0);
                    self.b.ins().icmp(signed, order, zero)
                }
            },
            (Some((float, ..)), _) if kind.is_float() => self.b.ins().fcmp(float, left.value, right.value),
            (Some((_, signed, unsigned)), _) => {
                let code = if kind.unsigned() { unsigned } else { signed };
                self.b.ins().icmp(code, left.value, right.value)
            }
        };
        Val::plain(value).with_valid(valid)
    }

    /// A number that is below, at or above 0 as the left text is to the right one.
    fn order(&mut self, left: Val, right: Val) -> ir::Value {
        let (left_len, right_len) = (self.len(left), self.len(right));
        let args = [left.value, left_len, right.value, right_len];
        let zero = self.int(0);
        let (Some(l), Some(r)) = (left.view, right.view) else {
            return self.call(&helpers::TEXT_COMPARE, &args).unwrap_or(zero);
        };
        // The first twelve bytes as numbers: where these differ, a 0 behind the end of a short text is less than what the other has
        // there. Where they don't, and one of the texts has no more, the longer one begins with the other.
        let (first_left, first_right) = (self.head_in_order(l), self.head_in_order(r));
        let distance = self.int(32);
        let [first_left, first_right] = [first_left, first_right].map(|head| self.b.ins().ushr(head, distance));
        let first = self.b.ins().isub(first_left, first_right);
        let (next_left, next_right) = (self.next_in_order(left, l), self.next_in_order(right, r));
        let above = self.b.ins().icmp(IntCC::UnsignedGreaterThan, next_left, next_right);
        let below = self.b.ins().icmp(IntCC::UnsignedLessThan, next_left, next_right);
        let [above, below] = [above, below].map(|flag| self.b.ins().uextend(types::I64, flag));
        let next = self.b.ins().isub(above, below);
        let lengths = self.b.ins().isub(left_len, right_len);
        let next_or_lengths = self.b.ins().select(next, next, lengths);
        let order = self.b.ins().select(first, first, next_or_lengths);
        if l.inline() || r.inline() {
            return order;
        }
        let differ = self.b.ins().bor(first, next);
        let shorter = self.b.ins().umin(left_len, right_len);
        let inline = self.int(INLINE as i64);
        let short = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, shorter, inline);
        let short = self.b.ins().uextend(types::I64, short);
        let known = self.b.ins().bor(differ, short);
        let (bytes, done) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::I64);
        self.b.ins().brif(known, done, &[order.into()], bytes, &[]);
        self.b.switch_to_block(bytes);
        let answer = self.call(&helpers::TEXT_COMPARE, &args).unwrap_or(zero);
        self.b.ins().jump(done, &[answer.into()]);
        self.b.switch_to_block(done);
        result
    }

    /// A view's head as an unsigned number in the order of texts: the first bytes, then the length.
    fn head_in_order(&mut self, view: View) -> ir::Value {
        let turned = self.b.ins().bswap(view.head);
        let half = self.int(32);
        let first = self.b.ins().ishl(turned, half);
        let low = self.int(i64::from(u32::MAX));
        let len = self.b.ins().band(view.head, low);
        self.b.ins().bor(first, len)
    }

    /// The eight bytes behind a head's as an unsigned number in the order of texts, 0 where there are none.
    fn next_in_order(&mut self, text: Val, view: View) -> ir::Value {
        let next = match view.tail {
            Some(tail) if view.inline() => tail,
            None => self.int(0),
            // Those of a short text stand behind its head too: its address is within its view.
            Some(_) => self.b.ins().load(types::I64, constant_memory(), text.value, HEAD as i32),
        };
        self.b.ins().bswap(next)
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
        // Most texts that differ have another length or begin with other bytes: only what doesn't is worth a call.
        let (left_len, right_len) = (self.len(left), self.len(right));
        let alike = match (left.view, right.view) {
            (Some(l), Some(r)) if l.inline() || r.inline() => return self.same_view(l, r),
            (Some(l), Some(r)) => {
                let alike = self.b.ins().icmp(IntCC::Equal, l.head, r.head);
                match l.constant.or(r.constant) {
                    Some(len) if len <= IN_WORDS => return self.same_words(alike, left.value, right.value, len),
                    _ => alike,
                }
            }
            _ => self.b.ins().icmp(IntCC::Equal, left_len, right_len),
        };
        let (bytes, done) = (self.b.create_block(), self.b.create_block());
        let equal = self.b.append_block_param(done, types::I8);
        self.b.ins().brif(alike, bytes, &[], done, &[alike.into()]);
        self.b.switch_to_block(bytes);
        let answer = self.call_flag(&helpers::SAME_BYTES, &[left.value, right.value, left_len]);
        self.b.ins().jump(done, &[answer.into()]);
        self.b.switch_to_block(done);
        equal
    }

    /// Whether two texts are equal that are of `len` bytes, more than a view holds, where their heads are alike. Without a branch:
    /// where the heads differ, the right one is compared with itself.
    fn same_words(&mut self, alike: ir::Value, left: ir::Value, right: ir::Value, len: usize) -> ir::Value {
        let left = self.b.ins().select(alike, left, right);
        let mut differs = self.int(0);
        let words = (HEAD..len - 8).step_by(8).chain([len - 8]);
        for at in words {
            let [left, right] =
                [left, right].map(|text| self.b.ins().load(types::I64, constant_memory(), text, at as i32));
            let word = self.b.ins().bxor(left, right);
            differs = self.b.ins().bor(differs, word);
        }
        let zero = self.int(0);
        let same = self.b.ins().icmp(IntCC::Equal, differs, zero);
        self.b.ins().band(alike, same)
    }

    /// Whether two texts are equal, one of which at least stands in its view: then all of the other does, if it is.
    fn same_view(&mut self, left: View, right: View) -> ir::Value {
        let (Some(left_tail), Some(right_tail)) = (left.tail, right.tail) else {
            // All of one stands in its head, which says by its length that it is all.
            return self.b.ins().icmp(IntCC::Equal, left.head, right.head);
        };
        let heads = self.b.ins().bxor(left.head, right.head);
        let tails = self.b.ins().bxor(left_tail, right_tail);
        let differs = self.b.ins().bor(heads, tails);
        let zero = self.int(0);
        self.b.ins().icmp(IntCC::Equal, differs, zero)
    }

    /// Whether a text with a view begins with a constant of at most twelve bytes. The rest of a short text's view is 0, and the
    /// constant has no such byte, so that the length needn't be asked.
    pub(super) fn begins(&mut self, text: Val, view: View, start: &[u8]) -> ir::Value {
        let [head, tail] = view_words(start);
        let mask = |bytes: usize| 1u64.checked_shl(8 * bytes as u32).map_or(u64::MAX, |end| end - 1);
        let zero = self.int(0);
        if start.len() <= HEAD {
            // Without the length.
            let wanted = self.int((head >> 32 << 32) as i64);
            let mask = self.int((mask(start.len()) << 32) as i64);
            let bytes = self.b.ins().band(view.head, mask);
            return self.b.ins().icmp(IntCC::Equal, bytes, wanted);
        }
        // Both a short text's view and a long one's bytes are longer than the constant.
        let first = self.b.ins().load(types::I64, constant_memory(), text.value, 0);
        let whole = u128::from(head >> 32) | u128::from(tail) << 32;
        let (wanted, first_mask) = (self.int(whole as u64 as i64), self.int(mask(start.len().min(8)) as i64));
        let mut differs = self.b.ins().bxor(first, wanted);
        differs = self.b.ins().band(differs, first_mask);
        if start.len() > 8 {
            let rest = self.b.ins().uload32(constant_memory(), text.value, 8);
            let (wanted, mask) = (self.int((whole >> 64) as i64), self.int(mask(start.len() - 8) as i64));
            let rest = self.b.ins().bxor(rest, wanted);
            let rest = self.b.ins().band(rest, mask);
            differs = self.b.ins().bor(differs, rest);
        }
        self.b.ins().icmp(IntCC::Equal, differs, zero)
    }
}
