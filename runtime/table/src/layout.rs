//! Where the states of a group's aggregates lie, so that compiled code can update them in place.

use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{Type, Value};

use crate::fixed;

/// The state row of a group: fixed width, all zero for a new group. Numbers are in the machine's byte order, which is taken to be
/// little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLayout {
    /// One for each aggregate.
    pub slots: Vec<StateSlot>,
    /// Bytes of a row: a multiple of 8, at least 8; of 16 where a state of it has 16.
    pub row_bytes: usize,
}

/// The state of one aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateSlot {
    /// What it holds.
    pub kind: StateKind,
    /// Where its value lies in the row, aligned to the value's width.
    pub offset: usize,
    /// Where its second part lies: the `seen` byte (0: no value yet, else 1) or the number of values (a u64, aligned to 8);
    /// equal to `offset` if there is none: then a group that exists has seen a value.
    pub second: usize,
}

/// What a state holds, and how a value that is not null changes it. A null changes nothing, but counts for `count()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// A u64: plus 1.
    Count,
    /// An i128 and `seen`: the argument, an integer, a duration in microseconds or a decimal's mantissa, is added; a sum that passes
    /// 128 bits is a row error `R0101`. That can't happen, and need not be looked for, where the argument has at most 64 bits.
    /// Whether the result's type holds the sum is looked at in the end, so the order of the values doesn't matter.
    Sum,
    /// An f64 and `seen`: the argument is added as f64. Not checked before the end.
    SumFloat,
    /// An i128 and a count: as `Sum`, and count plus 1.
    Mean,
    /// An f64 and a count: as `SumFloat`, and count plus 1.
    MeanFloat,
    /// An i64 and `seen`, or nothing else: as `Sum`, of arguments so small that their sum hardly ever passes 64 bits, and never 128. When
    /// it would, the table is told what it was (`GroupTable::carry`), and it begins anew with the argument.
    NarrowSum,
    /// An i64 and a count: as `NarrowSum`, and count plus 1.
    NarrowMean,
    /// A value of this width in bytes as [`fixed`] says, and `seen`: replaced by a smaller one (booleans: false is smaller).
    Least(usize),
    /// The same, replaced by a larger one.
    Largest(usize),
    /// A u64, the table's own: nothing that compiled code may touch.
    Side,
}

impl StateLayout {
    /// How a table holds the states of these aggregates in memory.
    pub fn new(spec: &AggregateSpec) -> Self {
        let stored = StateLayout::stored(&spec.aggregates);
        let narrow = spec.aggregates.iter().zip(&stored.slots).map(|(aggregate, slot)| {
            let kind = narrow(slot.kind, aggregate);
            // The row that makes a group is seen by all that take every row.
            let every = !spec.keys.is_empty() && aggregate.filter.is_none();
            let always = every && aggregate.args.first().is_some_and(|arg| !arg.ty.nullable);
            (kind, if kind == StateKind::NarrowSum && always { (8, 0) } else { sizes(kind) })
        });
        let narrow: Vec<_> = narrow.collect();
        if narrow.iter().zip(&stored.slots).all(|((kind, _), slot)| *kind == slot.kind) {
            return stored;
        }
        let align = if narrow.iter().any(|(_, (first, _))| *first == 16) { 16 } else { 8 };
        StateLayout::of(&narrow, align)
    }

    /// How states are stored in checkpoints.
    pub fn stored(aggregates: &[Aggregate]) -> Self {
        let kind = |a: &Aggregate| kind(a.function, a.args.first().map(|arg| &arg.ty.ty));
        let kinds: Vec<_> = aggregates.iter().map(kind).map(|kind| (kind, sizes(kind))).collect();
        StateLayout::of(&kinds, 16)
    }

    /// Of these kinds, with the bytes of value and second part: values of 16 bytes first, single bytes last.
    fn of(kinds: &[(StateKind, (usize, usize))], align: usize) -> Self {
        let mut slots: Vec<StateSlot> =
            kinds.iter().map(|&(kind, _)| StateSlot { kind, offset: 0, second: 0 }).collect();
        let mut next = 0;
        for size in [16, 8, 4, 2, 1] {
            for (slot, (_, (first, second))) in slots.iter_mut().zip(kinds) {
                if *first == size {
                    slot.offset = next;
                    slot.second = if *second == 0 { next } else { slot.second };
                    next += size;
                }
                if *second == size {
                    slot.second = next;
                    next += size;
                }
            }
        }
        StateLayout { slots, row_bytes: next.next_multiple_of(align).max(align) }
    }
}

/// The narrow kind where arguments have at most 15 digits: even 2⁶⁴ of them don't pass 128 bits, and a thousand not 64.
fn narrow(kind: StateKind, aggregate: &Aggregate) -> StateKind {
    let small = match aggregate.args.first().map(|arg| &arg.ty.ty) {
        Some(Type::Int(int)) => int.bits() <= 32,
        Some(Type::Decimal(precision, _)) => *precision <= 15,
        _ => false,
    };
    match kind {
        StateKind::Sum if small => StateKind::NarrowSum,
        StateKind::Mean if small => StateKind::NarrowMean,
        other => other,
    }
}

fn kind(function: AggFunction, arg: Option<&Type>) -> StateKind {
    use AggFunction::*;
    let float = arg.is_some_and(Type::is_float);
    match (function, arg.and_then(fixed::width)) {
        (Count, _) => StateKind::Count,
        (Sum, _) => {
            if float {
                StateKind::SumFloat
            } else {
                StateKind::Sum
            }
        }
        (Avg, _) => {
            if float {
                StateKind::MeanFloat
            } else {
                StateKind::Mean
            }
        }
        (Min | BoolAnd, Some(width)) => StateKind::Least(width),
        (Max | BoolOr, Some(width)) => StateKind::Largest(width),
        _ => StateKind::Side,
    }
}

/// Bytes of the value and of the second part.
pub(crate) fn sizes(kind: StateKind) -> (usize, usize) {
    match kind {
        StateKind::Count | StateKind::Side => (8, 0),
        StateKind::Sum => (16, 1),
        StateKind::SumFloat | StateKind::NarrowSum => (8, 1),
        StateKind::Mean => (16, 8),
        StateKind::MeanFloat | StateKind::NarrowMean => (8, 8),
        StateKind::Least(width) | StateKind::Largest(width) => (width, 1),
    }
}

/// The number that `Sum` and `Mean` add for a value.
pub(crate) fn addend(value: &Value) -> Option<i128> {
    match value {
        Value::Int(n) | Value::Decimal(n) => Some(*n),
        Value::Duration(n) => Some((*n).into()),
        _ => None,
    }
}
