//! The ending of a fused aggregate: the row's group is found and its states are updated in place.
//!
//! Groups that were met lately stand in a small direct-mapped cache, by the registers of their keys (for a text column its view: within
//! one batch equal views are equal texts). Only what misses it goes to the table, by a helper.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use dfc_ir::plan::Aggregate;
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Expr, ExprKind, Program, Type};
use dfc_table::{StateKind, StateLayout, StateSlot};

use super::function::{Ending, output_values, outputs_fail, passed, pointer};
use super::logic::infallible;
use super::{Binding, Lowerer, Unsupported, memory, text_of};
use crate::context::Context;
use crate::helpers;
use crate::kind::{Kind, Val};

/// Entries of the cache; a power of two.
pub(crate) const CACHE_ENTRIES: usize = 256;
/// Keys of more registers than this aren't cached.
const CACHED_WORDS: usize = 8;
/// Spreads keys over the cache.
const SPREAD: i64 = dfc_table::HASH_WORD as i64;

/// Updates states. The program's outputs are the aggregate's input.
pub(crate) struct UpdateStates<'s> {
    spec: &'s AggregateSpec,
    slots: Vec<StateSlot>,
    /// Words of a key in the cache; `None`: nothing is cached. Known once a row was lowered.
    pub(crate) cached_words: Option<usize>,
    /// The group's state row if there are no keys, else the cache.
    base: Option<ir::Value>,
    table: Option<ir::Value>,
}

/// An aggregate's argument on the current row.
struct Argument {
    /// The value, for all but `count()`.
    val: Option<Val>,
    /// Whether the row counts; `None`: always.
    active: Option<ir::Value>,
}

impl<'s> UpdateStates<'s> {
    /// Errors: an aggregate whose state is not in the row, or a key that has no registers.
    pub(crate) fn new(spec: &'s AggregateSpec) -> Result<Self, Unsupported> {
        let slots = StateLayout::new(spec).slots;
        if let Some((aggregate, _)) = spec.aggregates.iter().zip(&slots).find(|(_, slot)| slot.kind == StateKind::Side)
        {
            return Err(Unsupported(format!("the state of `{}`", aggregate.function.name())));
        }
        if let Some(key) = spec.keys.iter().find(|key| Kind::of(&key.ty.ty).is_none()) {
            return Err(Unsupported(text_of(key)));
        }
        Ok(UpdateStates { spec, slots, cached_words: None, base: None, table: None })
    }

    /// Every expression over the aggregate's input.
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let aggregates = self.spec.aggregates.iter();
        self.spec.keys.iter().chain(aggregates.flat_map(|aggregate| aggregate.args.iter().chain(&aggregate.filter)))
    }
}

impl Ending for UpdateStates<'_> {
    fn columns(&self, program: &Program) -> Vec<usize> {
        let read: Vec<usize> = self.exprs().flat_map(Expr::columns).collect();
        let outputs = program.outputs.iter().zip(&program.schema.fields).enumerate();
        outputs
            .filter(|(k, (expr, field))| {
                passed(program, expr).is_none_or(|_| read.contains(k) || (expr.ty.nullable && !field.ty.nullable))
            })
            .flat_map(|(_, (expr, _))| expr.columns())
            .collect()
    }

    fn selective(&self, program: &Program) -> bool {
        outputs_fail(program) || !self.exprs().all(infallible)
    }

    fn wants_selection(&self) -> bool {
        false
    }

    fn prepare(&mut self, l: &mut Lowerer<'_>) -> Result<(), Unsupported> {
        self.base = Some(pointer(l, offset_of!(Context, cache)));
        self.table = Some(pointer(l, offset_of!(Context, table)));
        Ok(())
    }

    fn row(&mut self, l: &mut Lowerer<'_>, program: &Program, _kept: ir::Value) -> Result<(), Unsupported> {
        let outputs = output_values(l, program)?;
        let bindings = outputs.into_iter().zip(&program.outputs).map(|(val, expr)| {
            let binding = match (val, &expr.kind) {
                (None, ExprKind::Column(input)) => Binding::Input(*input),
                (Some(val), _) => Binding::Known(val),
                (None, _) => return Err(Unsupported(text_of(expr))),
            };
            Ok((binding, expr.ty.clone()))
        });
        l.bindings = bindings.collect::<Result<_, _>>()?;
        // Whatever may fail comes before the first state is touched.
        let mut keys = Vec::with_capacity(self.spec.keys.len());
        for key in &self.spec.keys {
            keys.push(l.expr(key)?);
        }
        let mut arguments = Vec::with_capacity(self.spec.aggregates.len());
        for aggregate in &self.spec.aggregates {
            arguments.push(argument(l, aggregate)?);
        }
        let (Some(base), Some(table)) = (self.base, self.table) else { return Ok(()) };
        let state = if keys.is_empty() { base } else { self.find(l, base, table, &keys) };
        for (number, argument) in arguments.into_iter().enumerate() {
            let ty = self.spec.aggregates[number].args.first().map(|arg| &arg.ty.ty);
            update(l, table, state, number, self.slots[number], ty, argument);
        }
        Ok(())
    }
}

impl UpdateStates<'_> {
    /// The address of the state row of the group with these keys.
    fn find(&mut self, l: &mut Lowerer<'_>, cache: ir::Value, table: ir::Value, keys: &[Val]) -> ir::Value {
        let types: Vec<&DataType> = self.spec.keys.iter().map(|key| &key.ty).collect();
        let words = self.words(l, keys).filter(|words| words.len() <= CACHED_WORDS);
        self.cached_words = words.as_ref().map(Vec::len);
        let Some(words) = words else {
            let slots = l.slots(keys, &types);
            let found = l.call(&helpers::GROUP, &[l.context, table, slots]);
            return found.unwrap_or(table);
        };
        // An entry: the key's words, then the state row's address (0 in an empty one).
        let entry_bytes = (words.len() as i64 + 1) * 8;
        let spread = l.int(SPREAD);
        let mut hash = l.int(0);
        for word in &words {
            let mixed = l.b.ins().bxor(hash, *word);
            let product = l.b.ins().imul(mixed, spread);
            let distance = l.int(32);
            let high = l.b.ins().ushr(product, distance);
            hash = l.b.ins().bxor(product, high);
        }
        let mask = l.int(CACHE_ENTRIES as i64 - 1);
        let index = l.b.ins().band(hash, mask);
        let size = l.int(entry_bytes);
        let offset = l.b.ins().imul(index, size);
        let entry = l.b.ins().iadd(cache, offset);
        let state_at = entry_bytes as i32 - 8;
        let known = l.b.ins().load(types::I64, memory(), entry, state_at);
        let zero = l.int(0);
        let mut differs = zero;
        for (k, word) in words.iter().enumerate() {
            let there = l.b.ins().load(types::I64, memory(), entry, k as i32 * 8);
            let bits = l.b.ins().bxor(there, *word);
            differs = l.b.ins().bor(differs, bits);
        }
        let same = l.b.ins().icmp(IntCC::Equal, differs, zero);
        let filled = l.b.ins().icmp(IntCC::NotEqual, known, zero);
        let hit = l.b.ins().band(same, filled);
        let (miss, done) = (l.b.create_block(), l.b.create_block());
        let state = l.b.append_block_param(done, types::I64);
        l.b.ins().brif(hit, done, &[known.into()], miss, &[]);
        l.b.switch_to_block(miss);
        let found = match (keys, &types[..]) {
            ([key], [ty]) if is_word(ty) => l.call(&helpers::GROUP_OF_WORD, &[table, key.value]),
            _ => {
                let slots = l.slots(keys, &types);
                l.call(&helpers::GROUP, &[l.context, table, slots])
            }
        };
        let found = found.unwrap_or(known);
        for (k, word) in words.iter().enumerate() {
            l.b.ins().store(memory(), *word, entry, k as i32 * 8);
        }
        l.b.ins().store(memory(), found, entry, state_at);
        l.b.ins().jump(done, &[found.into()]);
        l.b.switch_to_block(done);
        state
    }

    /// Words that are equal only for equal keys within a batch; `None` where a key is a text that was made here, whose address says nothing.
    fn words(&self, l: &mut Lowerer<'_>, keys: &[Val]) -> Option<Vec<ir::Value>> {
        let mut words = Vec::new();
        let zero = l.int(0);
        for (val, expr) in keys.iter().zip(&self.spec.keys) {
            let mut of_key = match Kind::of(&expr.ty.ty)? {
                Kind::Text => {
                    let ExprKind::Column(column) = expr.kind else { return None };
                    let Binding::Input(input) = l.bindings[column].0 else { return None };
                    let (low, high) = l.view_words(input);
                    vec![low, high]
                }
                Kind::Wide => {
                    let (low, high) = l.b.ins().isplit(val.value);
                    vec![low, high]
                }
                Kind::Bool => vec![l.b.ins().uextend(types::I64, val.value)],
                kind if kind.is_float() => {
                    vec![l.b.ins().bitcast(types::I64, ir::MemFlagsData::new(), val.value)]
                }
                _ => vec![val.value],
            };
            if let Some(valid) = val.valid {
                for word in &mut of_key {
                    *word = l.b.ins().select(valid, *word, zero);
                }
                of_key.push(l.b.ins().uextend(types::I64, valid));
            }
            words.extend(of_key);
        }
        Some(words)
    }
}

/// Whether a key of this type alone is the eight bytes of its register.
fn is_word(ty: &DataType) -> bool {
    !ty.nullable && !ty.ty.is_float() && dfc_table::fixed::width(&ty.ty) == Some(8)
}

/// Computes an aggregate's argument, where its condition is true.
fn argument(l: &mut Lowerer<'_>, aggregate: &Aggregate) -> Result<Argument, Unsupported> {
    let counts = match &aggregate.filter {
        Some(condition) => {
            let val = l.expr(condition)?;
            Some(l.truth(val))
        }
        None => None,
    };
    let Some(arg) = aggregate.args.first() else { return Ok(Argument { val: None, active: counts }) };
    let kind = Kind::of(&arg.ty.ty);
    // `count(x)` needs to know no more than whether there is an x.
    let Some(kind) = kind else {
        let null = Expr { kind: ExprKind::IsNull(Box::new(arg.clone())), ty: DataType::of(Type::Bool), site: arg.site };
        if !infallible(&null) {
            return Err(Unsupported(text_of(arg)));
        }
        let null = l.expr(&null)?;
        let there = l.not(null.value);
        return Ok(Argument { val: None, active: l.both(counts, Some(there)) });
    };
    let Some(counts) = counts.filter(|_| !infallible(arg)) else {
        let val = l.expr(arg)?;
        return Ok(Argument { val: Some(val), active: l.both(counts, val.valid) });
    };
    // Not computed where it doesn't count: it may fail there.
    let meeting = l.meeting(kind, true);
    let (yes, no) = (l.b.create_block(), l.b.create_block());
    l.b.ins().brif(counts, yes, &[], no, &[]);
    l.b.switch_to_block(no);
    let null = l.null(kind);
    l.meet(&meeting, null);
    l.b.switch_to_block(yes);
    let scope = l.scope();
    let val = l.expr(arg)?;
    l.meet(&meeting, val);
    l.leave(scope);
    let val = l.arrive(&meeting);
    Ok(Argument { val: Some(val), active: val.valid })
}

/// Updates one aggregate's state: without a branch, except where a sum passes its bits.
fn update(
    l: &mut Lowerer<'_>,
    table: ir::Value,
    state: ir::Value,
    number: usize,
    slot: StateSlot,
    ty: Option<&Type>,
    argument: Argument,
) {
    let at = slot.offset as i32;
    let Argument { val, active } = argument;
    let kind = ty.and_then(Kind::of);
    match (slot.kind, val, kind) {
        (StateKind::Count, ..) => add_count(l, state, at, active),
        (StateKind::Sum | StateKind::Mean, Some(val), Some(kind)) => {
            let wide = match kind {
                Kind::Wide => val.value,
                _ if kind.unsigned() => l.b.ins().uextend(types::I128, val.value),
                _ => l.b.ins().sextend(types::I128, val.value),
            };
            let addend = match active {
                Some(active) => {
                    let zero = l.wide(0);
                    l.b.ins().select(active, wide, zero)
                }
                None => wide,
            };
            let before = l.b.ins().load(types::I128, memory(), state, at);
            let sum = if kind == Kind::Wide {
                let (sum, overflow) = l.b.ins().sadd_overflow(before, addend);
                let (broken, whole) = (l.b.create_block(), l.b.create_block());
                l.b.set_cold_block(broken);
                l.b.ins().brif(overflow, broken, &[], whole, &[]);
                l.b.switch_to_block(broken);
                let number = l.int(number as i64);
                l.call(&helpers::SUM_OVERFLOW, &[l.context, l.row, number]);
                l.b.ins().jump(l.fail, &[]);
                l.b.switch_to_block(whole);
                sum
            } else {
                l.b.ins().iadd(before, addend)
            };
            l.b.ins().store(memory(), sum, state, at);
            note(l, state, slot, active);
        }
        (StateKind::NarrowSum | StateKind::NarrowMean, Some(val), _) => {
            let addend = match active {
                Some(active) => {
                    let zero = l.int(0);
                    l.b.ins().select(active, val.value, zero)
                }
                None => val.value,
            };
            let before = l.b.ins().load(types::I64, memory(), state, at);
            let (sum, overflow) = l.b.ins().sadd_overflow(before, addend);
            let (full, whole) = (l.b.create_block(), l.b.create_block());
            let now = l.b.append_block_param(whole, types::I64);
            l.b.set_cold_block(full);
            l.b.ins().brif(overflow, full, &[], whole, &[sum.into()]);
            l.b.switch_to_block(full);
            let number = l.int(number as i64);
            l.call(&helpers::CARRY, &[table, state, number, before]);
            l.b.ins().jump(whole, &[addend.into()]);
            l.b.switch_to_block(whole);
            l.b.ins().store(memory(), now, state, at);
            note(l, state, slot, active);
        }
        (StateKind::SumFloat | StateKind::MeanFloat, Some(val), _) => {
            let before = l.b.ins().load(types::F64, memory(), state, at);
            let mut sum = l.b.ins().fadd(before, val.value);
            if let Some(active) = active {
                sum = l.b.ins().select(active, sum, before);
            }
            l.b.ins().store(memory(), sum, state, at);
            note(l, state, slot, active);
        }
        (StateKind::Least(_) | StateKind::Largest(_), Some(val), Some(kind)) => {
            let least = matches!(slot.kind, StateKind::Least(_));
            let place = l.int(at.into());
            let place = l.b.ins().iadd(state, place);
            let before = l.load(kind, place, memory());
            let better = match (kind.is_float(), least) {
                (true, true) => l.b.ins().fcmp(FloatCC::LessThan, val.value, before),
                (true, false) => l.b.ins().fcmp(FloatCC::GreaterThan, val.value, before),
                (false, _) => {
                    let code = match (least, kind.unsigned()) {
                        (true, false) => IntCC::SignedLessThan,
                        (true, true) => IntCC::UnsignedLessThan,
                        (false, false) => IntCC::SignedGreaterThan,
                        (false, true) => IntCC::UnsignedGreaterThan,
                    };
                    l.b.ins().icmp(code, val.value, before)
                }
            };
            let seen = l.b.ins().load(types::I8, memory(), state, slot.second as i32);
            let first = l.not(seen);
            let mut taken = l.b.ins().bor(better, first);
            if let Some(active) = active {
                taken = l.b.ins().band(taken, active);
            }
            let kept = l.b.ins().select(taken, val.value, before);
            l.store(kind, kept, place, 0);
            note(l, state, slot, active);
        }
        // `UpdateStates::new` refuses side states; all but `count` have an argument.
        _ => {}
    }
}

fn add_count(l: &mut Lowerer<'_>, state: ir::Value, at: i32, active: Option<ir::Value>) {
    let count = l.b.ins().load(types::I64, memory(), state, at);
    let one = match active {
        Some(active) => l.b.ins().uextend(types::I64, active),
        None => l.int(1),
    };
    let count = l.b.ins().iadd(count, one);
    l.b.ins().store(memory(), count, state, at);
}

/// Notes that there was a value.
fn note(l: &mut Lowerer<'_>, state: ir::Value, slot: StateSlot, active: Option<ir::Value>) {
    let second = slot.second as i32;
    if matches!(slot.kind, StateKind::Mean | StateKind::MeanFloat | StateKind::NarrowMean) {
        return add_count(l, state, second, active);
    }
    if slot.second == slot.offset {
        return;
    }
    let seen = match active {
        Some(active) => {
            let before = l.b.ins().load(types::I8, memory(), state, second);
            l.b.ins().bor(before, active)
        }
        None => l.flag(true),
    };
    l.b.ins().store(memory(), seen, state, second);
}
