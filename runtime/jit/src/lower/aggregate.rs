//! The ending of a fused aggregate: the row's group is found and its states are updated in place.
//!
//! Without keys there is one group, whose states are held in registers (`registers`).
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
use super::registers::{self, Cell, Cells};
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
    /// The states, if there are no keys.
    held: Vec<Cells>,
    /// What they take of the current block of rows.
    gathered: Vec<Argument>,
}

/// An aggregate's argument on the current row, or what is to be taken of those of a block.
pub(super) struct Argument {
    /// The value, for all but `count()`.
    pub(super) val: Option<Val>,
    /// Whether the row counts, or any of the block; `None`: always.
    pub(super) active: Option<ir::Value>,
    /// How many rows count, if it is a block.
    pub(super) rows: Option<ir::Value>,
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
        Ok(UpdateStates {
            spec,
            slots,
            cached_words: None,
            base: None,
            table: None,
            held: Vec::new(),
            gathered: Vec::new(),
        })
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

    fn in_blocks(&self, program: &Program) -> bool {
        self.spec.keys.is_empty()
            && !outputs_fail(program)
            && registers::in_blocks(program, &self.spec.aggregates, &self.slots)
    }

    fn block(&mut self, l: &mut Lowerer<'_>, program: &Program, passed: Option<ir::Value>) -> Result<(), Unsupported> {
        let aggregates = self.spec.aggregates.iter().zip(&self.slots);
        let gathered = aggregates.map(|(aggregate, slot)| l.gather(program, aggregate, *slot, passed));
        self.gathered = gathered.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn settle(&mut self, l: &mut Lowerer<'_>) {
        let gathered = std::mem::take(&mut self.gathered);
        self.update_all(l, None, gathered);
    }

    fn prepare(&mut self, l: &mut Lowerer<'_>) -> Result<(), Unsupported> {
        let base = pointer(l, offset_of!(Context, cache));
        self.base = Some(base);
        self.table = Some(pointer(l, offset_of!(Context, table)));
        if self.spec.keys.is_empty() {
            let states = self.slots.iter().enumerate();
            self.held = states.map(|(number, slot)| Cells::held(l, base, *slot, self.kind(number))).collect();
        }
        Ok(())
    }

    fn finish(&mut self, l: &mut Lowerer<'_>) {
        let Some(base) = self.base else { return };
        for (number, cells) in self.held.iter().enumerate() {
            cells.put_back(l, base, self.slots[number], self.kind(number));
        }
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
            // The views of a column's texts are enough to find a group in the cache.
            keys.push(if text_column(l, key).is_some() { None } else { Some(l.expr(key)?) });
        }
        let mut arguments = Vec::with_capacity(self.spec.aggregates.len());
        for aggregate in &self.spec.aggregates {
            arguments.push(argument(l, aggregate)?);
        }
        let (Some(base), Some(table)) = (self.base, self.table) else { return Ok(()) };
        let state = if keys.is_empty() { None } else { Some(self.find(l, base, table, keys)?) };
        self.update_all(l, state, arguments);
        Ok(())
    }
}

impl UpdateStates<'_> {
    /// The form of an aggregate's argument.
    fn kind(&self, number: usize) -> Option<Kind> {
        self.spec.aggregates[number].args.first().and_then(|arg| Kind::of(&arg.ty.ty))
    }

    /// Updates the states of a group, or those in registers.
    fn update_all(&self, l: &mut Lowerer<'_>, state: Option<ir::Value>, arguments: Vec<Argument>) {
        let (Some(base), Some(table)) = (self.base, self.table) else { return };
        let mut sums: Vec<Option<ir::Value>> = Vec::with_capacity(arguments.len());
        for (number, argument) in arguments.into_iter().enumerate() {
            let slot = self.slots[number];
            let cells = match state {
                Some(state) => Cells::of_row(state, slot),
                None => self.held[number],
            };
            let sum = (0..number).find(|before| self.same_sum(*before, number)).and_then(|before| sums[before]);
            let numbers: Vec<usize> =
                (number..self.slots.len()).filter(|other| *other == number || self.same_sum(number, *other)).collect();
            let place = Place { table, row: state.unwrap_or(base), numbers: &numbers, slot, cells, sum };
            sums.push(update(l, place, self.kind(number), argument));
        }
    }

    /// Whether two narrow sums take the same column of the same rows: then they are the same at any time, as are their carries.
    fn same_sum(&self, one: usize, other: usize) -> bool {
        let column = |number: usize| {
            let (aggregate, slot) = (&self.spec.aggregates[number], self.slots[number]);
            match (aggregate.args.first()?.kind.clone(), slot.kind) {
                (ExprKind::Column(column), StateKind::NarrowSum | StateKind::NarrowMean) => {
                    aggregate.filter.is_none().then_some(column)
                }
                _ => None,
            }
        };
        column(one).is_some_and(|one| column(other) == Some(one))
    }

    /// The address of the state row of the group with these keys; those that are missing aren't computed yet.
    fn find(
        &mut self,
        l: &mut Lowerer<'_>,
        cache: ir::Value,
        table: ir::Value,
        keys: Vec<Option<Val>>,
    ) -> Result<ir::Value, Unsupported> {
        let types: Vec<&DataType> = self.spec.keys.iter().map(|key| &key.ty).collect();
        let words = self.words(l, &keys).filter(|(words, _)| words.len() <= CACHED_WORDS);
        self.cached_words = words.as_ref().map(|(words, _)| words.len());
        let Some((words, never_all)) = words else {
            let keys = self.whole(l, keys)?;
            let slots = l.slots(&keys, &types);
            let found = l.call(&helpers::GROUP, &[l.context, table, slots]);
            return Ok(found.unwrap_or(table));
        };
        // An entry: the key's words, then the state row's address. All bits of an empty one are set.
        let entry_bytes = (words.len() as i64 + 1) * 8;
        // Products that don't wait for each other: the row's sums wait for its group.
        let mut hash = l.int(0);
        for (number, word) in words.iter().enumerate() {
            let spread = l.int(SPREAD.rotate_left(8 * number as u32) | 1);
            let product = l.b.ins().imul(*word, spread);
            hash = l.b.ins().iadd(hash, product);
        }
        let distance = l.int(64 - i64::from(CACHE_ENTRIES.trailing_zeros()));
        let index = l.b.ins().ushr(hash, distance);
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
        let mut hit = l.b.ins().icmp(IntCC::Equal, differs, zero);
        if !never_all {
            let empty = l.int(-1);
            let filled = l.b.ins().icmp(IntCC::NotEqual, known, empty);
            hit = l.b.ins().band(hit, filled);
        }
        let (miss, done) = (l.b.create_block(), l.b.create_block());
        let state = l.b.append_block_param(done, types::I64);
        l.b.set_cold_block(miss);
        l.b.ins().brif(hit, done, &[known.into()], miss, &[]);
        l.b.switch_to_block(miss);
        let scope = l.scope();
        let keys = self.whole(l, keys)?;
        l.leave(scope);
        let found = match (&keys[..], &types[..]) {
            ([key], [ty]) if is_word(ty) => l.call(&helpers::GROUP_OF_WORD, &[table, key.value]),
            _ => {
                let slots = l.slots(&keys, &types);
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
        Ok(state)
    }

    /// All keys: those that weren't computed yet are read now.
    fn whole(&self, l: &mut Lowerer<'_>, keys: Vec<Option<Val>>) -> Result<Vec<Val>, Unsupported> {
        let keys = keys.into_iter().zip(&self.spec.keys);
        keys.map(|(key, expr)| key.map_or_else(|| l.expr(expr), Ok)).collect()
    }

    /// Words that are equal only for equal keys within a batch, and whether one of them never has all bits set; `None` where a key is a text that
    /// was made here, whose address says nothing.
    fn words(&self, l: &mut Lowerer<'_>, keys: &[Option<Val>]) -> Option<(Vec<ir::Value>, bool)> {
        let (mut words, mut never_all) = (Vec::new(), false);
        let zero = l.int(0);
        for (val, expr) in keys.iter().zip(&self.spec.keys) {
            let (mut of_key, valid) = match val {
                None => {
                    let input = text_column(l, expr)?;
                    // No text is so long.
                    never_all = true;
                    let (low, high) = l.view_words(input);
                    (vec![low, high], l.input_valid(input))
                }
                Some(val) => (register_words(l, Kind::of(&expr.ty.ty)?, val)?, val.valid),
            };
            if let Some(valid) = valid {
                for word in &mut of_key {
                    *word = l.b.ins().select(valid, *word, zero);
                }
                of_key.push(l.b.ins().uextend(types::I64, valid));
                never_all = true;
            }
            words.extend(of_key);
        }
        Some((words, never_all))
    }
}

/// The batch's text column that a key is.
fn text_column(l: &Lowerer<'_>, key: &Expr) -> Option<usize> {
    match (Kind::of(&key.ty.ty)?, &key.kind) {
        (Kind::Text, ExprKind::Column(column)) => match l.bindings.get(*column)?.0 {
            Binding::Input(input) => Some(input),
            Binding::Known(_) => None,
        },
        _ => None,
    }
}

/// A key's register as words; `None` for a text's.
fn register_words(l: &mut Lowerer<'_>, kind: Kind, val: &Val) -> Option<Vec<ir::Value>> {
    Some(match kind {
        Kind::Text => return None,
        Kind::Wide => {
            let (low, high) = l.b.ins().isplit(val.value);
            vec![low, high]
        }
        Kind::Bool => vec![l.b.ins().uextend(types::I64, val.value)],
        kind if kind.is_float() => vec![l.b.ins().bitcast(types::I64, ir::MemFlagsData::new(), val.value)],
        _ => vec![val.value],
    })
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
    let Some(arg) = aggregate.args.first() else { return Ok(Argument { val: None, active: counts, rows: None }) };
    let kind = Kind::of(&arg.ty.ty);
    // `count(x)` needs to know no more than whether there is an x.
    let Some(kind) = kind else {
        let null = Expr { kind: ExprKind::IsNull(Box::new(arg.clone())), ty: DataType::of(Type::Bool), site: arg.site };
        if !infallible(&null) {
            return Err(Unsupported(text_of(arg)));
        }
        let null = l.expr(&null)?;
        let there = l.not(null.value);
        return Ok(Argument { val: None, active: l.both(counts, Some(there)), rows: None });
    };
    let Some(counts) = counts.filter(|_| !infallible(arg)) else {
        let val = l.expr(arg)?;
        return Ok(Argument { val: Some(val), active: l.both(counts, val.valid), rows: None });
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
    Ok(Argument { val: Some(val), active: val.valid, rows: None })
}

/// The state of one aggregate.
struct Place<'n> {
    table: ir::Value,
    /// The group's row.
    row: ir::Value,
    /// The aggregate's, and those of later ones that have the same sum.
    numbers: &'n [usize],
    slot: StateSlot,
    cells: Cells,
    /// Its sum with this argument, if an earlier one has it.
    sum: Option<ir::Value>,
}

/// Updates one aggregate's state: without a branch, except where a sum passes its bits. `kind` is its argument's. Gives a narrow sum as it is now.
fn update(l: &mut Lowerer<'_>, place: Place<'_>, kind: Option<Kind>, argument: Argument) -> Option<ir::Value> {
    let Place { table, row, numbers, slot, cells, sum } = place;
    let Argument { val, active, rows } = argument;
    let value = cells.value;
    if let Some(sum) = sum {
        value.set(l, sum, None);
        note(l, &cells, slot, active, rows);
        return Some(sum);
    }
    match (slot.kind, val, kind) {
        (StateKind::Count, ..) => add_count(l, value, active, rows),
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
            let before = value.get(l, types::I128, None);
            let sum = if kind == Kind::Wide {
                let (sum, overflow) = l.b.ins().sadd_overflow(before, addend);
                let (broken, whole) = (l.b.create_block(), l.b.create_block());
                l.b.set_cold_block(broken);
                l.b.ins().brif(overflow, broken, &[], whole, &[]);
                l.b.switch_to_block(broken);
                let number = l.int(numbers[0] as i64);
                l.call(&helpers::SUM_OVERFLOW, &[l.context, l.row, number]);
                l.b.ins().jump(l.fail, &[]);
                l.b.switch_to_block(whole);
                sum
            } else {
                l.b.ins().iadd(before, addend)
            };
            value.set(l, sum, None);
            note(l, &cells, slot, active, rows);
        }
        (StateKind::NarrowSum | StateKind::NarrowMean, Some(val), _) => {
            let addend = match active {
                Some(active) => {
                    let zero = l.int(0);
                    l.b.ins().select(active, val.value, zero)
                }
                None => val.value,
            };
            let before = value.get(l, types::I64, None);
            let (sum, overflow) = l.b.ins().sadd_overflow(before, addend);
            let (full, whole) = (l.b.create_block(), l.b.create_block());
            let now = l.b.append_block_param(whole, types::I64);
            l.b.set_cold_block(full);
            l.b.ins().brif(overflow, full, &[], whole, &[sum.into()]);
            l.b.switch_to_block(full);
            for number in numbers {
                let number = l.int(*number as i64);
                l.call(&helpers::CARRY, &[table, row, number, before]);
            }
            l.b.ins().jump(whole, &[addend.into()]);
            l.b.switch_to_block(whole);
            value.set(l, now, None);
            note(l, &cells, slot, active, rows);
            return Some(now);
        }
        (StateKind::SumFloat | StateKind::MeanFloat, Some(val), _) => {
            let before = value.get(l, types::F64, None);
            let mut sum = l.b.ins().fadd(before, val.value);
            if let Some(active) = active {
                sum = l.b.ins().select(active, sum, before);
            }
            value.set(l, sum, None);
            note(l, &cells, slot, active, rows);
        }
        (StateKind::Least(_) | StateKind::Largest(_), Some(val), Some(kind)) => {
            let least = matches!(slot.kind, StateKind::Least(_));
            let before = value.get(l, kind.register(), Some(kind));
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
            let mut taken = better;
            if let Some(seen) = cells.second {
                let seen = seen.get(l, types::I8, None);
                let first = l.not(seen);
                taken = l.b.ins().bor(better, first);
            }
            if let Some(active) = active {
                taken = l.b.ins().band(taken, active);
            }
            let kept = l.b.ins().select(taken, val.value, before);
            value.set(l, kept, Some(kind));
            note(l, &cells, slot, active, rows);
        }
        // `UpdateStates::new` refuses side states; all but `count` have an argument.
        _ => {}
    }
    None
}

/// Adds the rows that count: `rows`, or 1 where `active`.
fn add_count(l: &mut Lowerer<'_>, cell: Cell, active: Option<ir::Value>, rows: Option<ir::Value>) {
    let count = cell.get(l, types::I64, None);
    let more = match (rows, active) {
        (Some(rows), _) => rows,
        (None, Some(active)) => l.b.ins().uextend(types::I64, active),
        (None, None) => l.int(1),
    };
    let count = l.b.ins().iadd(count, more);
    cell.set(l, count, None);
}

/// Notes that there was a value.
fn note(l: &mut Lowerer<'_>, cells: &Cells, slot: StateSlot, active: Option<ir::Value>, rows: Option<ir::Value>) {
    let Some(second) = cells.second else { return };
    if matches!(slot.kind, StateKind::Mean | StateKind::MeanFloat | StateKind::NarrowMean) {
        return add_count(l, second, active, rows);
    }
    let seen = match active {
        Some(active) => {
            let before = second.get(l, types::I8, None);
            l.b.ins().bor(before, active)
        }
        None => l.flag(true),
    };
    second.set(l, seen, None);
}
