//! States take values in: one by one, batch by batch, and from other tables.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use dfc_batch::{Batch, value_at};
use dfc_eval::{Env, EvalError, OVERFLOW, Row, cast_value, compare, eval};
use dfc_ir::plan::AggFunction;
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Type, Value};
use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::estimate::Estimate;
use crate::fixed;
use crate::key::{encode, hash_key};
use crate::layout::{StateKind, StateSlot, addend};
use crate::side::{Moments, Side};
use crate::table::{AggregateInfo, GroupIndex, GroupTable};

/// A row of a batch, as expressions see it.
#[derive(Clone, Copy)]
pub struct BatchRow<'a> {
    /// The batch's columns.
    pub columns: &'a [ArrayRef],
    /// Their types.
    pub types: &'a [DataType],
    /// Which row.
    pub row: usize,
}

impl Row for BatchRow<'_> {
    fn get(&self, column: usize) -> Value<'_> {
        value_at(self.columns[column].as_ref(), &self.types[column].ty, self.row)
    }
}

/// Which of two values a function keeps.
fn keep(function: AggFunction) -> Ordering {
    match function {
        AggFunction::Max | AggFunction::BoolOr | AggFunction::Last => Ordering::Greater,
        _ => Ordering::Less,
    }
}

fn sum_overflow(info: &AggregateInfo) -> EvalError {
    EvalError::new(OVERFLOW, format!("the `{}` has more than 38 digits", info.function.name())).at(info.site)
}

impl GroupTable {
    /// The rows of a batch, evaluated by the interpreter. A row for which a key, a condition or an argument has no value is
    /// passed to `on_error` and counts nowhere; conditions (`where:`) come before arguments, which are not evaluated where
    /// theirs isn't true. (A sum that passes 128 bits is reported too, when the row's other aggregates may have counted it.)
    pub fn update_batch(
        &mut self,
        batch: &Batch,
        spec: &AggregateSpec,
        env: &Env,
        on_error: &mut dyn FnMut(usize, EvalError),
    ) {
        let mut key = Vec::new();
        for row in 0..batch.rows {
            let at = BatchRow { columns: &batch.columns, types: &spec.inputs, row };
            let ordinal = batch.seq << 24 | row as u64;
            if let Err(error) = self.update_row(&at, spec, env, ordinal, &mut key) {
                on_error(row, error);
            }
        }
    }

    fn update_row(
        &mut self,
        row: &BatchRow,
        spec: &AggregateSpec,
        env: &Env,
        ordinal: u64,
        key: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        let value = |expr| eval(expr, row, env);
        let keys = spec.keys.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let mut args = Vec::with_capacity(spec.aggregates.len());
        for aggregate in &spec.aggregates {
            let counts = match &aggregate.filter {
                Some(condition) => value(condition)? == Value::Bool(true),
                None => true,
            };
            args.push(match counts {
                true => Some(aggregate.args.iter().map(value).collect::<Result<Vec<_>, _>>()?),
                false => None,
            });
        }
        self.key_layout().encode_key(&keys, key);
        let group = self.group(key, hash_key(key));
        for (aggregate, args) in args.iter().enumerate() {
            if let Some(args) = args {
                self.update(group, aggregate, args, ordinal)?;
            }
        }
        Ok(())
    }

    /// Lets one aggregate of a group see a row's arguments. `ordinal` is the row's place in the order of arrival (sequence number
    /// of the batch × 2²⁴ + row), by which `first`, `last`, `collect` and `string_agg` go.
    ///
    /// Errors: `R0101` if a sum passes 128 bits.
    pub fn update(
        &mut self,
        group: GroupIndex,
        aggregate: usize,
        args: &[Value],
        ordinal: u64,
    ) -> Result<(), EvalError> {
        let (info, row) = (&self.aggregates[aggregate], group.0 as usize);
        let (slot, function) = (info.slot, info.function);
        let value = match args.first() {
            Some(Value::Null) => return Ok(()),
            Some(value) => value,
            // `count()`
            None => &Value::Null,
        };
        match slot.kind {
            StateKind::Count => self.add_count(row, slot.offset, 1),
            StateKind::Sum | StateKind::Mean => {
                let sum =
                    addend(value).and_then(|n| i128::from_le_bytes(self.states.read(row, slot.offset)).checked_add(n));
                let sum = sum.ok_or_else(|| sum_overflow(info))?;
                self.states.write(row, slot.offset, &sum.to_le_bytes());
                self.mark(row, slot, 1);
            }
            StateKind::NarrowSum | StateKind::NarrowMean => {
                if let Some(number) = addend(value) {
                    self.add_narrow(row, aggregate, number);
                    self.mark(row, slot, 1);
                }
            }
            StateKind::SumFloat | StateKind::MeanFloat => {
                if let Value::Float(x) = value {
                    let sum = f64::from_le_bytes(self.states.read(row, slot.offset)) + x;
                    self.states.write(row, slot.offset, &sum.to_le_bytes());
                    self.mark(row, slot, 1);
                }
            }
            StateKind::Least(width) | StateKind::Largest(width) => {
                if self.states.read(row, slot.second) == [0]
                    || compare(value, &self.read_value(row, aggregate)) == Some(keep(function))
                {
                    let bytes = fixed::encode(value, &self.aggregates[aggregate].arg.ty);
                    self.states.write(row, slot.offset, &bytes[..width]);
                    self.states.write(row, slot.second, &[1]);
                }
            }
            StateKind::Side => self.update_side(row, aggregate, value, ordinal),
        }
        Ok(())
    }

    fn add_count(&mut self, row: usize, offset: usize, by: u64) {
        let count = u64::from_le_bytes(self.states.read(row, offset)) + by;
        self.states.write(row, offset, &count.to_le_bytes());
    }

    /// Adds to a narrow sum.
    fn add_narrow(&mut self, row: usize, aggregate: usize, number: i128) {
        let offset = self.aggregates[aggregate].slot.offset;
        let sum = number.saturating_add(i64::from_le_bytes(self.states.read(row, offset)).into());
        let narrow = i64::try_from(sum).unwrap_or_else(|_| {
            self.carried.add(row, aggregate, sum);
            0
        });
        self.states.write(row, offset, &narrow.to_le_bytes());
    }

    /// A narrow sum with what it carries.
    pub(crate) fn narrow_sum(&self, row: usize, aggregate: usize) -> i128 {
        let offset = self.aggregates[aggregate].slot.offset;
        self.carried.of(row, aggregate).saturating_add(i64::from_le_bytes(self.states.read(row, offset)).into())
    }

    /// Notes `count` values in the second part of a sum or a mean.
    fn mark(&mut self, row: usize, slot: StateSlot, count: u64) {
        match slot.kind {
            StateKind::Mean | StateKind::MeanFloat | StateKind::NarrowMean => self.add_count(row, slot.second, count),
            _ if slot.second == slot.offset => {}
            _ => self.states.write(row, slot.second, &[1]),
        }
    }

    /// The value of `Least` or `Largest`.
    pub(crate) fn read_value(&self, row: usize, aggregate: usize) -> Value<'static> {
        let info = &self.aggregates[aggregate];
        // A value has at most 16 bytes, but the row may end before that.
        macro_rules! decode {
            ($($width:literal)*) => {
                match fixed::width(&info.arg.ty) {
                    $(Some($width) => fixed::decode(&self.states.read::<$width>(row, info.slot.offset), &info.arg.ty),)*
                    _ => Value::Null,
                }
            };
        }
        decode!(1 2 4 8 16)
    }

    /// The side state of an aggregate, if it has seen a value.
    pub(crate) fn side(&self, row: usize, aggregate: usize) -> Option<&Side> {
        let index = u64::from_le_bytes(self.states.read(row, self.aggregates[aggregate].slot.offset));
        self.sides.get((index as usize).checked_sub(1)?).map(|(_, side)| side)
    }

    /// The same, to change it; `new` for the first value.
    fn side_mut(&mut self, row: usize, aggregate: usize, new: impl FnOnce() -> Side) -> &mut Side {
        let offset = self.aggregates[aggregate].slot.offset;
        let mut index = u64::from_le_bytes(self.states.read(row, offset)) as usize;
        if index == 0 {
            self.sides.push((aggregate as u32, new()));
            index = self.sides.len();
            self.states.write(row, offset, &(index as u64).to_le_bytes());
        }
        &mut self.sides.get_mut(index - 1).1
    }

    fn update_side(&mut self, row: usize, aggregate: usize, value: &Value, ordinal: u64) {
        use AggFunction::*;
        let function = self.aggregates[aggregate].function;
        let owned = || value.clone().into_owned();
        match function {
            Min | Max => {
                self.side_mut(row, aggregate, || Side::Extreme(owned()))
                    .extreme(dfc_eval::borrow(value), keep(function));
            }
            First | Last | AnyValue => {
                let side = self.side_mut(row, aggregate, || Side::Ordered(ordinal, owned()));
                side.ordered(ordinal, dfc_eval::borrow(value), keep(function));
            }
            CountDistinct | ApproxCountDistinct => {
                let mut bytes = std::mem::take(&mut self.scratch);
                bytes.clear();
                encode(value, &DataType::of(self.aggregates[aggregate].arg.ty.clone()), &mut bytes);
                if function == CountDistinct {
                    let none = || Side::Distinct(HashSet::with_hasher(FixedState::default()));
                    if let Side::Distinct(values) = self.side_mut(row, aggregate, none) {
                        values.get_or_insert_with(&bytes[..], |bytes| bytes.into());
                    }
                } else if let Side::Estimate(estimate) =
                    self.side_mut(row, aggregate, || Side::Estimate(Estimate::new()))
                {
                    estimate.add(hash_key(&bytes));
                }
                self.scratch = bytes;
            }
            Stddev | Variance => {
                let number = cast_value(value.clone(), &self.aggregates[aggregate].arg.ty, &Type::Float64);
                let side = self.side_mut(row, aggregate, || Side::Moments(Moments::default()));
                // Every number has a nearest float.
                if let (Side::Moments(moments), Ok(Value::Float(x))) = (side, number) {
                    moments.add(x);
                }
            }
            // The others are kept in the row for every type they take.
            Median | Collect | StringAgg | Count | Sum | Avg | BoolAnd | BoolOr => {
                if let Side::Values(values) = self.side_mut(row, aggregate, || Side::Values(Vec::new())) {
                    values.push((ordinal, owned()));
                }
            }
        }
    }

    /// Lets an aggregate of a group take in what the same aggregate of a group of another table has seen.
    pub(crate) fn merge_state(
        &mut self,
        group: GroupIndex,
        aggregate: usize,
        other: &GroupTable,
        from: GroupIndex,
    ) -> Result<(), EvalError> {
        let (row, theirs) = (group.0 as usize, from.0 as usize);
        let info = &self.aggregates[aggregate];
        let (slot, function) = (info.slot, info.function);
        let count = match slot.kind {
            StateKind::Count | StateKind::Side => u64::from_le_bytes(other.states.read(theirs, slot.offset)),
            StateKind::Mean | StateKind::MeanFloat | StateKind::NarrowMean => {
                u64::from_le_bytes(other.states.read(theirs, slot.second))
            }
            _ if slot.second == slot.offset => 1,
            _ => other.states.read::<1>(theirs, slot.second)[0].into(),
        };
        if count == 0 {
            return Ok(());
        }
        match slot.kind {
            StateKind::Count => self.add_count(row, slot.offset, count),
            StateKind::Sum | StateKind::Mean => {
                let mine = i128::from_le_bytes(self.states.read(row, slot.offset));
                let sum = mine.checked_add(i128::from_le_bytes(other.states.read(theirs, slot.offset)));
                let sum = sum.ok_or_else(|| sum_overflow(info))?;
                self.states.write(row, slot.offset, &sum.to_le_bytes());
                self.mark(row, slot, count);
            }
            StateKind::NarrowSum | StateKind::NarrowMean => {
                self.add_narrow(row, aggregate, other.narrow_sum(theirs, aggregate));
                self.mark(row, slot, count);
            }
            StateKind::SumFloat | StateKind::MeanFloat => {
                let sum = f64::from_le_bytes(self.states.read(row, slot.offset))
                    + f64::from_le_bytes(other.states.read(theirs, slot.offset));
                self.states.write(row, slot.offset, &sum.to_le_bytes());
                self.mark(row, slot, count);
            }
            StateKind::Least(_) | StateKind::Largest(_) => {
                return self.update(group, aggregate, &[other.read_value(theirs, aggregate)], 0);
            }
            StateKind::Side => {
                if let Some(theirs) = other.side(theirs, aggregate) {
                    match self.side(row, aggregate).is_none() {
                        true => drop(self.side_mut(row, aggregate, || theirs.clone())),
                        false => self.side_mut(row, aggregate, || theirs.clone()).merge(theirs, keep(function)),
                    }
                }
            }
        }
        Ok(())
    }
}
