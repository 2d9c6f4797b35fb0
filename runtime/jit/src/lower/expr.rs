//! The forms of an expression that are no operators: constants, columns, conditions, alternatives.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, Block, InstBuilder, types};
use dfc_ir::{BinaryOp, Expr, ExprKind, UnaryOp, Value};

use super::{Binding, Lowerer, Unsupported, constant_memory, text_of};
use crate::context::{Context, HEAD, TextRef};
use crate::helpers;
use crate::islands::Constants;
use crate::kind::{Kind, Val, View};

/// Longest list of an `in` that becomes a chain of comparisons.
pub(super) const CHAIN: usize = 8;

impl Lowerer<'_> {
    /// The value of an expression on the current row.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<Val, Unsupported> {
        let Some(kind) = Kind::of(&expr.ty.ty) else { return Err(Unsupported(text_of(expr))) };
        match &expr.kind {
            ExprKind::IsNull(operand) => return self.is_null(expr, operand),
            _ if has_nested_operand(expr) => return self.row_island(expr),
            _ => {}
        }
        match &expr.kind {
            ExprKind::Literal(value) => Ok(self.literal(kind, value)),
            ExprKind::Column(index) => match self.bindings[*index].0 {
                Binding::Input(input) => self.input(input),
                Binding::Known(val) => Ok(val),
            },
            ExprKind::Unary(UnaryOp::Not, operand) => {
                let val = self.expr(operand)?;
                let value = self.not(val.value);
                Ok(Val { value, ..val })
            }
            ExprKind::Unary(UnaryOp::Neg, operand) => self.negate(expr, operand),
            ExprKind::Binary(BinaryOp::And, left, right) => self.logic(true, left, right),
            ExprKind::Binary(BinaryOp::Or, left, right) => self.logic(false, left, right),
            ExprKind::Binary(op, left, right) => self.binary(*op, expr, left, right),
            ExprKind::Coalesce(items) => self.coalesce(kind, items),
            ExprKind::Case { arms, otherwise } => self.case(kind, expr.ty.nullable, arms, otherwise),
            ExprKind::InList(operand, values) => self.in_list(operand, values),
            ExprKind::Cast(operand, mode) => self.cast(expr, operand, *mode),
            ExprKind::Call(name, args) => self.native(name, expr, args),
            ExprKind::Now | ExprKind::Today => self.clock(expr),
            ExprKind::IsNull(_) | ExprKind::Field(..) | ExprKind::Record(_) | ExprKind::List(_) => {
                self.row_island(expr)
            }
        }
    }

    /// A constant of a kind.
    pub(crate) fn literal(&mut self, kind: Kind, value: &Value<'static>) -> Val {
        match value {
            Value::Bool(v) => Val::plain(self.flag(*v)),
            Value::Float(v) => Val::plain(self.b.ins().f64const(*v)),
            Value::Int(v) | Value::Decimal(v) => Val::plain(self.constant(kind.register(), *v)),
            Value::Date(v) => Val::plain(self.int(i64::from(*v))),
            Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => Val::plain(self.int(*v)),
            Value::Str(v) => self.text_constant(v.as_bytes()),
            Value::Bytes(v) => self.text_constant(v),
            Value::Null | Value::List(_) | Value::Record(_) => self.null(kind),
        }
    }

    /// A text constant.
    pub(crate) fn text_constant(&mut self, bytes: &[u8]) -> Val {
        let index = self.pool.text(bytes);
        let table = self.b.ins().load(
            types::I64,
            constant_memory(),
            self.context,
            std::mem::offset_of!(Context, constants) as i32,
        );
        let at = index * size_of::<TextRef>() + std::mem::offset_of!(TextRef, ptr);
        let value = self.b.ins().load(types::I64, constant_memory(), table, at as i32);
        let len = self.int(bytes.len() as i64);
        let [head, tail] = crate::context::view_words(bytes);
        let tail = (bytes.len() > HEAD).then(|| self.int(tail as i64));
        let view = View { head: self.int(head as i64), tail, constant: Some(bytes.len()) };
        Val { view: Some(view), ..Val::text(value, len) }
    }

    fn clock(&mut self, expr: &Expr) -> Result<Val, Unsupported> {
        let at = std::mem::offset_of!(Context, env) + std::mem::offset_of!(dfc_eval::Env, now);
        let now = self.b.ins().load(types::I64, constant_memory(), self.context, at as i32);
        if matches!(expr.kind, ExprKind::Now) {
            return Ok(Val::plain(now));
        }
        Ok(Val::plain(self.floor_div(now, dfc_eval::calendar::DAY)))
    }

    /// `value` divided by a positive constant, towards minus infinity.
    pub(crate) fn floor_div(&mut self, value: ir::Value, by: i64) -> ir::Value {
        let divisor = self.int(by);
        let quotient = self.b.ins().sdiv(value, divisor);
        let product = self.b.ins().imul(quotient, divisor);
        let below = self.b.ins().icmp(IntCC::SignedLessThan, value, product);
        let below = self.b.ins().uextend(types::I64, below);
        self.b.ins().isub(quotient, below)
    }

    fn is_null(&mut self, expr: &Expr, operand: &Expr) -> Result<Val, Unsupported> {
        let valid = match operand.kind {
            // A list's validity is read like any other column's.
            ExprKind::Column(index) => match self.bindings[index].0 {
                Binding::Input(input) => match self.loaded[input] {
                    Some(known) => known.valid,
                    None => self.input_valid(input),
                },
                Binding::Known(val) => val.valid,
            },
            _ if Kind::of(&operand.ty.ty).is_none() => return self.row_island(expr),
            _ => self.expr(operand)?.valid,
        };
        Ok(Val::plain(match valid {
            Some(valid) => self.not(valid),
            None => self.flag(false),
        }))
    }

    fn coalesce(&mut self, kind: Kind, items: &[Expr]) -> Result<Val, Unsupported> {
        // `x ?? 0`: no branch.
        if let [first, last] = items
            && kind != Kind::Text
            && matches!(last.kind, ExprKind::Literal(_) | ExprKind::Column(_))
        {
            let first = self.expr(first)?;
            let Some(valid) = first.valid else { return Ok(first) };
            let scope = self.scope();
            let last = self.expr(last)?;
            self.leave(scope);
            let value = self.b.ins().select(valid, first.value, last.value);
            let either = last.valid.map(|other| self.b.ins().bor(valid, other));
            return Ok(Val::plain(value).with_valid(either));
        }
        let nullable = items.iter().all(|item| item.ty.nullable);
        let meeting = self.meeting(kind, nullable);
        // What the first item loads is loaded on every way; what the others load is not.
        let mut scope = None;
        for (number, item) in items.iter().enumerate() {
            let val = self.expr(item)?;
            let valid = if number + 1 == items.len() { None } else { val.valid };
            scope.get_or_insert_with(|| self.scope());
            let Some(valid) = valid else {
                self.meet(&meeting, val);
                break;
            };
            let (found, next) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(valid, found, &[], next, &[]);
            self.b.switch_to_block(found);
            self.meet(&meeting, val.with_valid(None));
            self.b.switch_to_block(next);
        }
        if let Some(scope) = scope {
            self.leave(scope);
        }
        Ok(self.arrive(&meeting))
    }

    fn case(
        &mut self,
        kind: Kind,
        nullable: bool,
        arms: &[(Expr, Expr)],
        otherwise: &Expr,
    ) -> Result<Val, Unsupported> {
        let nullable = nullable || otherwise.ty.nullable || arms.iter().any(|(_, value)| value.ty.nullable);
        let meeting = self.meeting(kind, nullable);
        let scope = self.scope();
        for (condition, value) in arms {
            let (yes, no) = (self.b.create_block(), self.b.create_block());
            self.condition(condition, yes, no)?;
            self.b.switch_to_block(yes);
            let val = self.expr(value)?;
            self.meet(&meeting, val);
            self.leave(scope.clone());
            self.b.switch_to_block(no);
        }
        let val = self.expr(otherwise)?;
        self.meet(&meeting, val);
        self.leave(scope);
        Ok(self.arrive(&meeting))
    }

    /// Ends the current block: to `yes` where the condition is true, to `no` where it is false or null. What is loaded afterwards
    /// holds in `yes` only.
    pub(crate) fn condition(&mut self, condition: &Expr, yes: Block, no: Block) -> Result<(), Unsupported> {
        if let ExprKind::Binary(BinaryOp::And, left, right) = &condition.kind
            // A null on the left doesn't spare the right side its errors.
            && (!left.ty.nullable || super::logic::infallible(right))
        {
            let between = self.b.create_block();
            self.condition(left, between, no)?;
            self.b.switch_to_block(between);
            return self.condition(right, yes, no);
        }
        let val = self.expr(condition)?;
        let truth = self.truth(val);
        self.b.ins().brif(truth, yes, &[], no, &[]);
        Ok(())
    }

    fn in_list(&mut self, operand: &Expr, values: &[Value<'static>]) -> Result<Val, Unsupported> {
        let val = self.expr(operand)?;
        let kind = Kind::of(&operand.ty.ty).ok_or_else(|| Unsupported(text_of(operand)))?;
        let found = if values.len() <= CHAIN || kind.is_float() || kind == Kind::Bool {
            let mut any = self.flag(false);
            for value in values {
                let constant = self.literal(kind, value);
                let equal = self.equal(kind, val, constant);
                any = self.b.ins().bor(any, equal);
            }
            any
        } else if kind == Kind::Text {
            let texts = values.iter().filter_map(|value| match value {
                Value::Str(text) => Some(text.as_bytes().into()),
                Value::Bytes(bytes) => Some((**bytes).into()),
                _ => None,
            });
            self.pool.lists.push(Constants::Texts(texts.collect()));
            let list = self.int(self.pool.lists.len() as i64 - 1);
            let len = val.len.unwrap_or(list);
            self.call_flag(&helpers::IN_TEXTS, &[self.context, list, val.value, len])
        } else {
            let mut numbers: Vec<i128> = values
                .iter()
                .filter_map(|value| match value {
                    Value::Int(v) | Value::Decimal(v) => Some(*v),
                    Value::Date(v) => Some(i128::from(*v)),
                    Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => {
                        Some(i128::from(*v))
                    }
                    _ => None,
                })
                .collect();
            numbers.sort_unstable();
            self.pool.lists.push(Constants::Numbers(numbers));
            let list = self.int(self.pool.lists.len() as i64 - 1);
            let (low, high) = self.halves(kind, val.value);
            self.call_flag(&helpers::IN_NUMBERS, &[self.context, list, low, high])
        };
        Ok(Val::plain(found).with_valid(val.valid))
    }

    /// A helper's yes or no as an i8.
    pub(crate) fn call_flag(&mut self, helper: &'static helpers::Helper, args: &[ir::Value]) -> ir::Value {
        match self.call(helper, args) {
            Some(answer) => self.b.ins().ireduce(types::I8, answer),
            None => self.flag(false),
        }
    }

    /// An integer register as the two halves of an i128.
    pub(crate) fn halves(&mut self, kind: Kind, value: ir::Value) -> (ir::Value, ir::Value) {
        match kind {
            Kind::Wide => self.b.ins().isplit(value),
            _ if kind.unsigned() => {
                let zero = self.int(0);
                (value, zero)
            }
            _ => {
                let distance = self.int(63);
                let sign = self.b.ins().sshr(value, distance);
                (value, sign)
            }
        }
    }
}

/// Whether a direct operand is a list or a record, which have no register form.
fn has_nested_operand(expr: &Expr) -> bool {
    let mut nested = false;
    expr.for_each_child(&mut |child| nested |= Kind::of(&child.ty.ty).is_none());
    nested
}
