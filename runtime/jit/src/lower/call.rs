//! Calls out of compiled code: native functions that have a helper of their own, and islands for all others.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_ir::{DataType, Expr, ExprKind, Type, Value};
use dfc_stdlib::natives::Pattern;

use super::{Binding, Lowerer, Unsupported, memory, text_of};
use crate::context::{INLINE, Slot};
use crate::helpers::{self, Helper};
use crate::islands::{Island, Source};
use crate::kind::{Kind, Val, View};

/// Native functions over two texts that a helper answers with yes or no.
const TEXT_TESTS: &[(&str, &Helper)] = &[
    ("starts_with", &helpers::TEXT_STARTS),
    ("ends_with", &helpers::TEXT_ENDS),
    ("contains", &helpers::TEXT_CONTAINS),
];

/// Native functions over a date that give a part of it.
const DATE_PARTS: &[(&str, i64)] = &[("year", 0), ("month", 1), ("day", 2)];

/// The constant of a `starts_with` that fits a view. A zero byte in it could be taken for the end of a text.
pub(super) fn short_start<'e>(name: &str, args: &'e [Expr]) -> Option<&'e [u8]> {
    match args {
        [text, Expr { kind: ExprKind::Literal(Value::Str(start)), .. }]
            if name == "starts_with"
                && text.ty.ty == Type::String
                && start.len() <= INLINE
                && !start.contains('\0') =>
        {
            Some(start.as_bytes())
        }
        _ => None,
    }
}

impl Lowerer<'_> {
    /// A native function.
    pub(crate) fn native(&mut self, name: &str, expr: &Expr, args: &[Expr]) -> Result<Val, Unsupported> {
        let Some(native) = dfc_stdlib::natives::lookup(name) else { return Err(Unsupported(text_of(expr))) };
        let mut vals = Vec::with_capacity(args.len());
        for arg in args {
            vals.push(self.expr(arg)?);
        }
        if let Some(val) = self.direct(name, expr, args, &vals) {
            return Ok(val);
        }
        let types: Vec<DataType> = args.iter().map(|arg| arg.ty.clone()).collect();
        let island = Island::Native { native, args: types.clone(), result: expr.ty.clone() };
        let types: Vec<&DataType> = types.iter().collect();
        self.island(island, expr, &vals, &types, native.strict)
    }

    /// Native functions with a helper of their own. All are strict.
    fn direct(&mut self, name: &str, expr: &Expr, args: &[Expr], vals: &[Val]) -> Option<Val> {
        let texts = args.iter().all(|arg| arg.ty.ty == Type::String);
        let valid = vals.iter().fold(None, |valid, val| self.both(valid, val.valid));
        let val = match vals {
            [text] if name == "length" && texts && expr.ty.ty == Type::INT64 => Val::plain(self.characters(*text)?),
            [text, _]
                if let Some(view) = text.view
                    && !view.inline()
                    && let Some(start) = short_start(name, args) =>
            {
                Val::plain(self.begins(*text, view, start))
            }
            [left, right] if texts && let Some((_, helper)) = TEXT_TESTS.iter().find(|(known, _)| *known == name) => {
                let (left_len, right_len) = (self.len(*left), self.len(*right));
                Val::plain(self.call_flag(helper, &[left.value, left_len, right.value, right_len]))
            }
            [text, _]
                if texts
                    && let ExprKind::Literal(Value::Str(pattern)) = &args[1].kind
                    && let Some(pattern) = Pattern::of(name, pattern) =>
            {
                self.pool.patterns.push(pattern);
                let (number, len) = (self.int(self.pool.patterns.len() as i64 - 1), self.len(*text));
                Val::plain(self.call_flag(&helpers::TEXT_FITS, &[self.context, number, text.value, len]))
            }
            [date]
                if args[0].ty.ty == Type::Date
                    && expr.ty.ty == Type::INT64
                    && let Some((_, part)) = DATE_PARTS.iter().find(|(known, _)| *known == name) =>
            {
                let part = self.int(*part);
                Val::plain(self.call(&helpers::DATE_PART, &[date.value, part])?)
            }
            [text] if texts && expr.ty.ty == Type::String && matches!(name, "upper" | "lower") => {
                let out = self.stack(16);
                let (len, upper) = (self.len(*text), self.int(i64::from(name == "upper")));
                self.uses_arena = true;
                let ok = self.call_flag(&helpers::TEXT_CASE, &[self.context, out, text.value, len, upper]);
                let bad = self.not(ok);
                self.fail_if(bad, valid);
                self.text_at(out)
            }
            [_, _, ..] if name == "concat" && texts => self.concat(vals, valid),
            _ => return None,
        };
        Some(val.with_valid(valid))
    }

    /// How many characters a text has: as many as bytes where it stands in its view and has ASCII characters only.
    fn characters(&mut self, text: Val) -> Option<ir::Value> {
        let len = self.len(text);
        let Some(View { head, tail: Some(tail), .. }) = text.view else {
            return self.call(&helpers::TEXT_LENGTH, &[text.value, len]);
        };
        let bytes = self.b.ins().bor(head, tail);
        let others = self.int(0x8080_8080_8080_8080_u64 as i64);
        let others = self.b.ins().band(bytes, others);
        let zero = self.int(0);
        let others = self.b.ins().icmp(IntCC::NotEqual, others, zero);
        let inline = self.int(INLINE as i64);
        let long = self.b.ins().icmp(IntCC::UnsignedGreaterThan, len, inline);
        let counted = self.b.ins().bor(others, long);
        let (count, done) = (self.b.create_block(), self.b.create_block());
        let characters = self.b.append_block_param(done, types::I64);
        self.b.ins().brif(counted, count, &[], done, &[len.into()]);
        self.b.switch_to_block(count);
        let answer = self.call(&helpers::TEXT_LENGTH, &[text.value, len])?;
        self.b.ins().jump(done, &[answer.into()]);
        self.b.switch_to_block(done);
        Some(characters)
    }

    fn concat(&mut self, pieces: &[Val], valid: Option<ir::Value>) -> Val {
        let table = self.stack(16 * pieces.len());
        for (k, piece) in pieces.iter().enumerate() {
            let len = self.len(*piece);
            self.b.ins().store(memory(), piece.value, table, (16 * k) as i32);
            self.b.ins().store(memory(), len, table, (16 * k + 8) as i32);
        }
        let count = self.int(pieces.len() as i64);
        self.uses_arena = true;
        let ok = self.call_flag(&helpers::TEXT_CONCAT, &[self.context, table, count]);
        let bad = self.not(ok);
        self.fail_if(bad, valid);
        self.text_at(table)
    }

    /// An operator that `dfc-eval` computes, over operands that were computed here. A null operand gives null, or what the operator's
    /// type demands.
    pub(crate) fn operand_island(
        &mut self,
        expr: &Expr,
        vals: &[Val],
        types: &[&DataType],
    ) -> Result<Val, Unsupported> {
        let mut outer = expr.clone();
        let mut number = 0;
        outer.for_each_child_mut(&mut |child| {
            *child = Expr { kind: ExprKind::Column(number), ty: child.ty.clone(), site: child.site };
            number += 1;
        });
        let sources = types.iter().enumerate().map(|(k, ty)| Source::Slot(k, (*ty).clone())).collect();
        self.island(Island::Eval { expr: outer, sources }, expr, vals, types, expr.ty.nullable)
    }

    /// An expression that `dfc-eval` computes whole, over the row: one with lists or records inside.
    pub(crate) fn row_island(&mut self, expr: &Expr) -> Result<Val, Unsupported> {
        if Kind::of(&expr.ty.ty).is_none() {
            return Err(Unsupported(text_of(expr)));
        }
        let mut sources: Vec<Source> = self.bindings.iter().map(|_| Source::Unused).collect();
        let mut vals = Vec::new();
        let mut types = Vec::new();
        for column in expr.columns() {
            let (binding, ty) = self.bindings[column].clone();
            sources[column] = match binding {
                Binding::Input(input) => Source::Batch(input, ty),
                Binding::Known(val) => {
                    vals.push(val);
                    types.push(ty.clone());
                    Source::Slot(vals.len() - 1, ty)
                }
            };
        }
        let types: Vec<&DataType> = types.iter().collect();
        self.island(Island::Eval { expr: expr.clone(), sources }, expr, &vals, &types, false)
    }

    /// Runs an island over these slots. `strict`: it isn't run where one is null, the result is null then.
    fn island(
        &mut self,
        island: Island,
        expr: &Expr,
        vals: &[Val],
        types: &[&DataType],
        strict: bool,
    ) -> Result<Val, Unsupported> {
        let kind = Kind::of(&expr.ty.ty).ok_or_else(|| Unsupported(text_of(expr)))?;
        self.pool.islands.push(island);
        let index = self.int(self.pool.islands.len() as i64 - 1);
        self.uses_arena = true;
        let valid = if strict { vals.iter().fold(None, |valid, val| self.both(valid, val.valid)) } else { None };
        let Some(valid) = valid else { return Ok(self.run_island(index, kind, expr.ty.nullable, vals, types)) };
        let meeting = self.meeting(kind, true);
        let (run, skip) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(valid, run, &[], skip, &[]);
        self.b.switch_to_block(skip);
        let null = self.null(kind);
        self.meet(&meeting, null);
        self.b.switch_to_block(run);
        let val = self.run_island(index, kind, expr.ty.nullable, vals, types);
        self.meet(&meeting, val);
        Ok(self.arrive(&meeting))
    }

    fn run_island(&mut self, index: ir::Value, kind: Kind, nullable: bool, vals: &[Val], types: &[&DataType]) -> Val {
        let slots = self.slots(vals, types);
        let ok = self.call_flag(&helpers::ISLAND, &[self.context, index, slots, self.row]);
        let bad = self.not(ok);
        self.fail_if(bad, None);
        let valid = self.b.ins().load(types::I64, memory(), slots, offset_of!(Slot, valid) as i32);
        let valid = self.b.ins().ireduce(types::I8, valid);
        let value = self.b.ins().load(kind.register(), memory(), slots, offset_of!(Slot, low) as i32);
        if kind != Kind::Text {
            let val = Val::plain(value);
            return if nullable { val.with_valid(Some(valid)) } else { val };
        }
        let len = self.b.ins().load(types::I64, memory(), slots, offset_of!(Slot, high) as i32);
        // Where null, the slot has no address: an empty text has any.
        let one = self.int(1);
        let zero = self.int(0);
        let null = self.b.ins().icmp(IntCC::Equal, value, zero);
        let value = self.b.ins().select(null, one, value);
        Val::text(value, len).with_valid(nullable.then_some(valid))
    }

    /// Values side by side in memory, as helpers take them.
    pub(crate) fn slots(&mut self, vals: &[Val], types: &[&DataType]) -> ir::Value {
        let size = size_of::<Slot>();
        let slots = self.stack(size * vals.len().max(1));
        for (k, (val, ty)) in vals.iter().zip(types).enumerate() {
            let at = |offset: usize| (k * size + offset) as i32;
            let low = match Kind::of(&ty.ty) {
                Some(Kind::Bool) => self.b.ins().uextend(types::I64, val.value),
                _ => val.value,
            };
            // An i128 fills both halves.
            self.b.ins().store(memory(), low, slots, at(offset_of!(Slot, low)));
            if let Some(len) = val.len {
                self.b.ins().store(memory(), len, slots, at(offset_of!(Slot, high)));
            }
            let valid = match val.valid {
                Some(valid) => self.b.ins().uextend(types::I64, valid),
                None => self.int(1),
            };
            self.b.ins().store(memory(), valid, slots, at(offset_of!(Slot, valid)));
        }
        slots
    }
}
