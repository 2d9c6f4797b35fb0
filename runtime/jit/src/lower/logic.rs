//! Three-valued logic, and which expressions can't fail.

use cranelift_codegen::ir::{self, InstBuilder};
use dfc_ir::{BinaryOp, Expr, ExprKind, Type, UnaryOp};

use super::{Lowerer, Unsupported};
use crate::kind::{Kind, Val};

/// Largest right side of `and`, `or` that is computed in any case rather than jumped over, in expressions.
const SMALL: usize = 12;

/// Whether an expression has a value on every row. (Says no when in doubt.)
pub fn infallible(expr: &Expr) -> bool {
    let this = match &expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Column(_)
        | ExprKind::IsNull(_)
        | ExprKind::Coalesce(_)
        | ExprKind::Case { .. }
        | ExprKind::InList(..)
        | ExprKind::Now
        | ExprKind::Today
        | ExprKind::Unary(UnaryOp::Not, _) => true,
        ExprKind::Binary(op, left, _) => match op {
            BinaryOp::And | BinaryOp::Or => true,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                Kind::of(&left.ty.ty).is_some()
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => super::decimal::always_fits(*op, expr),
            BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod => false,
        },
        _ => false,
    };
    let mut all = this;
    expr.for_each_child(&mut |child| all = all && infallible(child));
    all
}

/// Number of expressions in it; texts count more.
fn size(expr: &Expr) -> usize {
    let mut total = if matches!(expr.ty.ty, Type::String | Type::Bytes | Type::Json) { 4 } else { 1 };
    expr.for_each_child(&mut |child| total += size(child));
    total
}

impl Lowerer<'_> {
    /// 1 where a bool is true, 0 where it is false or null.
    pub(crate) fn truth(&mut self, val: Val) -> ir::Value {
        match val.valid {
            Some(valid) => self.b.ins().band(val.value, valid),
            None => val.value,
        }
    }

    /// 1 where a bool is false, 0 where it is true or null.
    fn falsehood(&mut self, val: Val) -> ir::Value {
        let negated = self.not(val.value);
        self.truth(Val { value: negated, ..val })
    }

    /// `and` or `or`.
    pub(crate) fn logic(&mut self, and: bool, left: &Expr, right: &Expr) -> Result<Val, Unsupported> {
        let l = self.expr(left)?;
        if infallible(right) && size(right) <= SMALL {
            let r = self.expr(right)?;
            return Ok(self.combine(and, l, r));
        }
        let decided = if and { self.falsehood(l) } else { self.truth(l) };
        let meeting = self.meeting(Kind::Bool, left.ty.nullable || right.ty.nullable);
        let (short, long) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(decided, short, &[], long, &[]);
        self.b.switch_to_block(short);
        let value = self.flag(!and);
        self.meet(&meeting, Val::plain(value));
        self.b.switch_to_block(long);
        let scope = self.scope();
        let r = self.expr(right)?;
        self.leave(scope);
        let combined = self.combine(and, l, r);
        self.meet(&meeting, combined);
        Ok(self.arrive(&meeting))
    }

    pub(super) fn combine(&mut self, and: bool, l: Val, r: Val) -> Val {
        if l.valid.is_none() && r.valid.is_none() {
            let ins = self.b.ins();
            return Val::plain(if and { ins.band(l.value, r.value) } else { ins.bor(l.value, r.value) });
        }
        let (lt, rt) = (self.truth(l), self.truth(r));
        let (lf, rf) = (self.falsehood(l), self.falsehood(r));
        let (truth, falsehood) = if and {
            (self.b.ins().band(lt, rt), self.b.ins().bor(lf, rf))
        } else {
            (self.b.ins().bor(lt, rt), self.b.ins().band(lf, rf))
        };
        let valid = self.b.ins().bor(truth, falsehood);
        Val::plain(truth).with_valid(Some(valid))
    }
}
