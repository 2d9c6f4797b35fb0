//! The states of an aggregate without keys. There is one of each, so they are held in registers while a batch passes; and what can be
//! computed in vector registers is gathered over a block of rows before its state is touched. Sums of floats, whose order matters, and of what
//! has more than 15 digits are taken row by row. It may not know how a state takes a value: `aggregate` says that.

use cranelift_codegen::ir::{self, ConstantData, InstBuilder, types};
use cranelift_frontend::Variable;
use dfc_ir::plan::Aggregate;
use dfc_ir::{Expr, ExprKind, Program};
use dfc_table::{StateKind, StateSlot};

use super::aggregate::Argument;
use super::lanes::{self, in_lanes, lane};
use super::{Lowerer, Unsupported, memory, text_of};
use crate::kind::{Kind, Val};

/// Where a part of a state is held.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// In a group's row, that far behind its start.
    Memory(ir::Value, usize),
    /// In a register.
    Register(Variable),
}

/// The parts of a state.
#[derive(Clone, Copy)]
pub(super) struct Cells {
    pub(super) value: Cell,
    /// `None`: there is no second part.
    pub(super) second: Option<Cell>,
}

/// The type of a part in registers.
fn parts(slot: StateSlot, kind: Option<Kind>) -> (ir::Type, ir::Type) {
    match slot.kind {
        StateKind::Count | StateKind::Side => (types::I64, types::I64),
        StateKind::Sum => (types::I128, types::I8),
        StateKind::Mean => (types::I128, types::I64),
        StateKind::SumFloat => (types::F64, types::I8),
        StateKind::MeanFloat => (types::F64, types::I64),
        StateKind::NarrowSum => (types::I64, types::I8),
        StateKind::NarrowMean => (types::I64, types::I64),
        StateKind::Least(_) | StateKind::Largest(_) => (kind.map_or(types::I64, Kind::register), types::I8),
    }
}

/// The form in memory of a state's value that isn't that of its register.
fn stored(slot: StateSlot, kind: Option<Kind>) -> Option<Kind> {
    kind.filter(|_| matches!(slot.kind, StateKind::Least(_) | StateKind::Largest(_)))
}

impl Cells {
    /// In a group's row.
    pub(super) fn of_row(state: ir::Value, slot: StateSlot) -> Self {
        let second = (slot.second != slot.offset).then_some(Cell::Memory(state, slot.second));
        Cells { value: Cell::Memory(state, slot.offset), second }
    }

    /// In registers, which begin with what the row has.
    pub(super) fn held(l: &mut Lowerer<'_>, row: ir::Value, slot: StateSlot, kind: Option<Kind>) -> Self {
        let (value, second) = parts(slot, kind);
        let from = Cells::of_row(row, slot);
        let now = from.value.get(l, value, stored(slot, kind));
        let held = |l: &mut Lowerer<'_>, ty: ir::Type, now: ir::Value| {
            let variable = l.b.declare_var(ty);
            l.b.def_var(variable, now);
            Cell::Register(variable)
        };
        let value = held(l, value, now);
        let second = from.second.map(|from| {
            let now = from.get(l, second, None);
            held(l, second, now)
        });
        Cells { value, second }
    }

    /// Puts what was held in registers back into the row.
    pub(super) fn put_back(self, l: &mut Lowerer<'_>, row: ir::Value, slot: StateSlot, kind: Option<Kind>) {
        let (value, second) = parts(slot, kind);
        let to = Cells::of_row(row, slot);
        let now = self.value.get(l, value, None);
        to.value.set(l, now, stored(slot, kind));
        if let (Some(cell), Some(to)) = (self.second, to.second) {
            let now = cell.get(l, second, None);
            to.set(l, now, None);
        }
    }
}

impl Cell {
    /// What is there: of this register type, in memory in that of the kind, if there is one.
    pub(super) fn get(self, l: &mut Lowerer<'_>, ty: ir::Type, kind: Option<Kind>) -> ir::Value {
        match (self, kind) {
            (Cell::Register(variable), _) => l.b.use_var(variable),
            (Cell::Memory(state, at), Some(kind)) => {
                let at = l.int(at as i64);
                let place = l.b.ins().iadd(state, at);
                l.load(kind, place, memory())
            }
            (Cell::Memory(state, at), None) => l.b.ins().load(ty, memory(), state, at as i32),
        }
    }

    /// Puts a value there.
    pub(super) fn set(self, l: &mut Lowerer<'_>, value: ir::Value, kind: Option<Kind>) {
        match (self, kind) {
            (Cell::Register(variable), _) => l.b.def_var(variable, value),
            (Cell::Memory(state, at), Some(kind)) => l.store(kind, value, state, at as i32),
            (Cell::Memory(state, at), None) => {
                l.b.ins().store(memory(), value, state, at as i32);
            }
        }
    }
}

/// An expression over a program's outputs as one over its inputs; `None` where it reads what the program computes.
fn over_inputs(program: &Program, expr: &Expr) -> Option<Expr> {
    let input = |output: usize| match program.outputs.get(output)?.kind {
        ExprKind::Column(input) if input < program.inputs.len() => Some(input),
        _ => None,
    };
    if expr.columns().into_iter().any(|output| input(output).is_none()) {
        return None;
    }
    let mut expr = expr.clone();
    expr.map_columns(&|output| input(output).unwrap_or(output));
    Some(expr)
}

/// An aggregate's condition and argument over the program's inputs, if it can be gathered over a block of rows.
fn gathered(program: &Program, aggregate: &Aggregate, slot: StateSlot) -> Option<(Option<Expr>, Option<Expr>)> {
    let condition = match &aggregate.filter {
        Some(condition) => Some(over_inputs(program, condition).filter(in_lanes)?),
        None => None,
    };
    let arg = match aggregate.args.first() {
        Some(arg) => Some(over_inputs(program, arg)?),
        None => None,
    };
    let fits = match (slot.kind, &arg) {
        (StateKind::Count, Some(arg)) => matches!(arg.kind, ExprKind::Column(_)) || in_lanes(arg),
        (StateKind::Count, None) => true,
        (StateKind::NarrowSum | StateKind::NarrowMean | StateKind::Least(_) | StateKind::Largest(_), Some(arg)) => {
            let lane = Kind::of(&arg.ty.ty).and_then(lane);
            lane.is_some_and(|lane| lane.lane_type().is_int()) && in_lanes(arg)
        }
        _ => false,
    };
    fits.then_some((condition, arg))
}

/// Whether all of these can be gathered over blocks of rows.
pub(super) fn in_blocks(program: &Program, aggregates: &[Aggregate], slots: &[StateSlot]) -> bool {
    aggregates.iter().zip(slots).all(|(aggregate, slot)| gathered(program, aggregate, *slot).is_some())
}

impl Lowerer<'_> {
    /// What an aggregate's state takes of a block of rows, of those that have `passed`.
    pub(super) fn gather(
        &mut self,
        program: &Program,
        aggregate: &Aggregate,
        slot: StateSlot,
        passed: Option<ir::Value>,
    ) -> Result<Argument, Unsupported> {
        let (condition, arg) = gathered(program, aggregate, slot)
            .ok_or_else(|| Unsupported(format!("a block of `{}`", aggregate.function.name())))?;
        let mut mask = passed;
        if let Some(condition) = condition {
            let val = self.mask(&condition)?;
            let truth = self.truth(val);
            mask = self.both(mask, Some(truth));
        }
        if let Some(arg) = &arg {
            let valid = self.block_valid(arg);
            mask = self.both(mask, valid);
        }
        let rows = match mask {
            Some(mask) => {
                let bits = self.b.ins().vhigh_bits(types::I64, mask);
                self.b.ins().popcnt(bits)
            }
            None => self.int(lanes::ROWS as i64),
        };
        let active = mask.map(|_| {
            let zero = self.int(0);
            self.b.ins().icmp(ir::condcodes::IntCC::NotEqual, rows, zero)
        });
        let val = match (slot.kind, &arg) {
            (StateKind::NarrowSum | StateKind::NarrowMean, Some(arg)) => Some(self.sum_of_block(arg, mask)?),
            (StateKind::Least(_) | StateKind::Largest(_), Some(arg)) => {
                Some(self.best_of_block(arg, mask, matches!(slot.kind, StateKind::Least(_)))?)
            }
            _ => None,
        };
        Ok(Argument { val: val.map(Val::plain), active, rows: Some(rows) })
    }

    /// The sum of the rows that a mask has, which are so small that it fits 64 bits.
    fn sum_of_block(&mut self, arg: &Expr, mask: Option<ir::Value>) -> Result<ir::Value, Unsupported> {
        let (lane, signed) = self.whole_lane(arg)?;
        let mut values = self.registers(arg, lane)?;
        values = self.widened(values, lane, types::I64X2, signed);
        if let Some(mask) = mask {
            let masks = self.widened(vec![mask], types::I8X16, types::I64X2, true);
            values = values.into_iter().zip(masks).map(|(value, mask)| self.b.ins().band(value, mask)).collect();
        }
        let all = self.folded(values, |l, a, b| l.b.ins().iadd(a, b));
        let [low, high] = [0, 1].map(|lane| self.b.ins().extractlane(all, lane));
        Ok(self.b.ins().iadd(low, high))
    }

    /// The least or the largest of the rows that a mask has; if there is none, any value.
    fn best_of_block(&mut self, arg: &Expr, mask: Option<ir::Value>, least: bool) -> Result<ir::Value, Unsupported> {
        let (lane, signed) = self.whole_lane(arg)?;
        let mut values = self.registers(arg, lane)?;
        let better = move |l: &mut Self, a: ir::Value, b: ir::Value| match (least, signed) {
            (true, true) => l.b.ins().smin(a, b),
            (true, false) => l.b.ins().umin(a, b),
            (false, true) => l.b.ins().smax(a, b),
            (false, false) => l.b.ins().umax(a, b),
        };
        if let Some(mask) = mask {
            // What doesn't count is worse than anything else.
            let bits = lane.lane_bits();
            let worst = match (least, signed) {
                (true, true) => (1u64 << (bits - 1)) - 1,
                (true, false) => u64::MAX >> (64 - bits),
                (false, true) => 1u64 << (bits - 1),
                (false, false) => 0,
            };
            let worst: Vec<u8> = worst.to_le_bytes().into_iter().take(bits as usize / 8).cycle().take(16).collect();
            let worst = self.b.func.dfg.constants.insert(ConstantData::from(worst));
            let worst = self.b.ins().vconst(lane, worst);
            let masks = self.widened(vec![mask], types::I8X16, lane, true);
            values =
                values.into_iter().zip(masks).map(|(value, mask)| self.b.ins().bitselect(mask, value, worst)).collect();
        }
        let all = self.folded(values, better);
        let single: Vec<ir::Value> = (0..lane.lane_count() as u8)
            .map(|number| {
                let value = self.b.ins().extractlane(all, number);
                match (lane.lane_bits() < 64, signed) {
                    (false, _) => value,
                    (true, true) => self.b.ins().sextend(types::I64, value),
                    (true, false) => self.b.ins().uextend(types::I64, value),
                }
            })
            .collect();
        Ok(self.folded(single, better))
    }

    /// The lanes of whole numbers, and whether they have signs.
    fn whole_lane(&self, expr: &Expr) -> Result<(ir::Type, bool), Unsupported> {
        let kind = Kind::of(&expr.ty.ty).ok_or_else(|| Unsupported(text_of(expr)))?;
        let signed = !matches!(kind, Kind::Int(int) if !int.signed());
        let lane = lane(kind).filter(|lane| lane.lane_type().is_int()).ok_or_else(|| Unsupported(text_of(expr)))?;
        Ok((lane, signed))
    }

    fn registers(&mut self, expr: &Expr, lane: ir::Type) -> Result<Vec<ir::Value>, Unsupported> {
        (0..lanes::groups(lane)).map(|group| self.finite_lanes(expr, lane, group)).collect()
    }

    /// The same numbers, or masks, in wider lanes.
    fn widened(&mut self, mut values: Vec<ir::Value>, from: ir::Type, to: ir::Type, signed: bool) -> Vec<ir::Value> {
        let mut bits = from.lane_bits();
        while bits < to.lane_bits() {
            values = values
                .into_iter()
                .flat_map(|value| match signed {
                    true => [self.b.ins().swiden_low(value), self.b.ins().swiden_high(value)],
                    false => [self.b.ins().uwiden_low(value), self.b.ins().uwiden_high(value)],
                })
                .collect();
            bits *= 2;
        }
        values
    }

    /// Two by two, until there is one.
    fn folded(
        &mut self,
        mut values: Vec<ir::Value>,
        join: impl Fn(&mut Self, ir::Value, ir::Value) -> ir::Value,
    ) -> ir::Value {
        while values.len() > 1 {
            let pairs = values.chunks(2).map(|pair| match pair {
                [a, b] => join(self, *a, *b),
                _ => pair[0],
            });
            values = pairs.collect();
        }
        values[0]
    }
}
