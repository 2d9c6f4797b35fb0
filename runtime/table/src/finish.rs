//! From states to results.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array};
use dfc_batch::{Batch, ColumnBuilder, arrow_type};
use dfc_eval::{EvalError, OVERFLOW, UNEXPECTED_NULL, arith, compare, decimal};
use dfc_ir::plan::AggFunction;
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::{IntType, SHORT_PRECISION};
use dfc_ir::{DataType, Type, Value};

use crate::layout::StateKind;
use crate::side::Side;
use crate::table::{AggregateInfo, GroupIndex, GroupTable};

impl GroupTable {
    /// These groups, which are numbered in the order of their arrival: the keys' columns, then the results'. Without keys there is exactly
    /// one row, so only one task may give the results of such an aggregate.
    ///
    /// Errors, which name the aggregate: `R0101` a result that its type can't hold, `R0104` no value where the type has no null.
    ///
    /// Panics if there aren't so many.
    pub fn results(&self, spec: &AggregateSpec, groups: Range<usize>) -> Result<Batch, EvalError> {
        let (first, rows) = (groups.start, groups.len());
        let mut columns = self.key_columns(first, rows, spec);
        for aggregate in 0..spec.aggregates.len() {
            columns.push(self.results_of(first, rows, aggregate)?);
        }
        Ok(Batch::new(columns, rows, 0))
    }

    /// The keys of so many groups from `first` on.
    fn key_columns(&self, first: usize, rows: usize, spec: &AggregateSpec) -> Vec<ArrayRef> {
        let groups = (first..first + rows).map(|group| self.key(GroupIndex(group as u32)));
        // The most usual key: one number, never null.
        if let [part] = &self.key_layout().parts[..]
            && part.ty == DataType::of(Type::INT64)
        {
            // Such a key has eight bytes.
            let numbers = groups.map(|key| i64::from_le_bytes(key.try_into().unwrap_or_default()));
            return vec![Arc::new(Int64Array::from_iter_values(numbers))];
        }
        let fields = &spec.output.fields[..spec.keys.len()];
        let mut columns: Vec<ColumnBuilder> = fields.iter().map(|field| ColumnBuilder::new(&field.ty, rows)).collect();
        for key in groups {
            let values = self.key_layout().decode_key(key);
            columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(value));
        }
        columns.into_iter().map(ColumnBuilder::finish).collect()
    }

    /// The results of an aggregate for so many groups from `first` on.
    fn results_of(&self, first: usize, rows: usize, aggregate: usize) -> Result<ArrayRef, EvalError> {
        if let Some(column) = self.plain_results(first, rows, aggregate) {
            return Ok(column);
        }
        let mut column = ColumnBuilder::new(&self.aggregates[aggregate].ty, rows);
        for group in first..first + rows {
            column.push(&self.result(group, aggregate)?);
        }
        Ok(column.finish())
    }

    /// The same where they stand in the state rows as they are; `None` where they don't.
    fn plain_results(&self, first: usize, rows: usize, aggregate: usize) -> Option<ArrayRef> {
        let info = &self.aggregates[aggregate];
        let slot = info.slot;
        match (slot.kind, &info.ty.ty) {
            (StateKind::Count, Type::Int(IntType::I64)) => {
                let counts = self.states.column(first, rows, slot.offset).map(i64::from_le_bytes);
                Some(Arc::new(Int64Array::from_iter_values(counts)))
            }
            (StateKind::NarrowSum, ty @ Type::Decimal(precision, scale))
                if *precision > SHORT_PRECISION && self.carried.is_empty() && exact(0, info).scale == *scale =>
            {
                let seen = slot.second == slot.offset
                    || self.states.column::<1>(first, rows, slot.second).all(|seen| seen != [0]);
                // Numbers of 64 bits fit 19 digits.
                let sums = || self.states.column(first, rows, slot.offset).map(|sum| i64::from_le_bytes(sum).into());
                let sums = || Decimal128Array::from_iter_values(sums()).with_data_type(arrow_type(ty));
                seen.then(|| Arc::new(sums()) as ArrayRef)
            }
            (StateKind::Sum, ty @ Type::Decimal(precision, scale)) if *precision > SHORT_PRECISION => {
                let limit = 10i128.pow((*precision).into());
                let same_scale = exact(0, info).scale == *scale;
                let seen = || self.states.column::<1>(first, rows, slot.second).all(|seen| seen != [0]);
                let sums =
                    || -> Vec<i128> { self.states.column(first, rows, slot.offset).map(i128::from_le_bytes).collect() };
                let sums = (same_scale && seen()).then(sums)?;
                let fits = sums.iter().all(|sum| -limit < *sum && *sum < limit);
                fits.then(|| Arc::new(Decimal128Array::from(sums).with_data_type(arrow_type(ty))) as ArrayRef)
            }
            _ => None,
        }
    }

    /// A group's key, and its results so far, in the order of the aggregates. Panics if there is no such group.
    pub fn entry(&self, group: usize) -> (Vec<Value<'_>>, Vec<Result<Value<'static>, EvalError>>) {
        let key = self.key_layout().decode_key(self.key(GroupIndex(group as u32)));
        (key, (0..self.aggregates.len()).map(|aggregate| self.value(group, aggregate)).collect())
    }

    /// The result of an aggregate for a group.
    fn result(&self, row: usize, aggregate: usize) -> Result<Value<'static>, EvalError> {
        let info = &self.aggregates[aggregate];
        let value = self.value(row, aggregate).map_err(|error| error.at(info.site))?;
        if value.is_null() && !info.ty.nullable {
            let message =
                format!("`{}` has no value in a group, but its type {} has no null", info.function.name(), info.ty);
            return Err(EvalError::new(UNEXPECTED_NULL, message).at(info.site));
        }
        Ok(value)
    }

    fn value(&self, row: usize, aggregate: usize) -> Result<Value<'static>, EvalError> {
        let info = &self.aggregates[aggregate];
        let slot = info.slot;
        let count = |offset| u64::from_le_bytes(self.states.read(row, offset));
        let seen = || slot.second == slot.offset || self.states.read(row, slot.second) != [0];
        let sum = || i128::from_le_bytes(self.states.read(row, slot.offset));
        let sum_float = || f64::from_le_bytes(self.states.read(row, slot.offset));
        match slot.kind {
            StateKind::Count => Ok(Value::Int(count(slot.offset).into())),
            StateKind::Sum if seen() => whole_sum(sum(), info),
            StateKind::NarrowSum if seen() => whole_sum(self.narrow_sum(row, aggregate), info),
            StateKind::SumFloat if seen() => arith::finite(sum_float(), &info.ty.ty),
            StateKind::Mean if count(slot.second) > 0 => mean(sum(), count(slot.second), info),
            StateKind::NarrowMean if count(slot.second) > 0 => {
                mean(self.narrow_sum(row, aggregate), count(slot.second), info)
            }
            StateKind::MeanFloat if count(slot.second) > 0 => {
                arith::finite(sum_float() / count(slot.second) as f64, &info.ty.ty)
            }
            StateKind::Least(_) | StateKind::Largest(_) if seen() => Ok(self.read_value(row, aggregate)),
            StateKind::Side => match self.side(row, aggregate) {
                Some(side) => side_value(side, info),
                None => Ok(match info.function {
                    AggFunction::CountDistinct | AggFunction::ApproxCountDistinct => Value::Int(0),
                    AggFunction::Collect => Value::List(Vec::new()),
                    _ => Value::Null,
                }),
            },
            _ => Ok(Value::Null),
        }
    }
}

/// A sum, or a part of one, as a decimal.
fn exact(number: i128, info: &AggregateInfo) -> decimal::Decimal {
    let scale = match info.arg.ty {
        Type::Decimal(_, scale) => scale,
        _ => 0,
    };
    decimal::Decimal { mantissa: number, scale }
}

fn duration(micros: i128) -> Result<Value<'static>, EvalError> {
    i64::try_from(micros).map(Value::Duration).map_err(|_| EvalError::new(OVERFLOW, "the result doesn't fit duration"))
}

fn whole_sum(sum: i128, info: &AggregateInfo) -> Result<Value<'static>, EvalError> {
    match info.ty.ty {
        Type::Int(int) => arith::in_range(sum, int).map(Value::Int),
        Type::Decimal(p, s) => decimal::rescale(exact(sum, info), p, s).map(Value::Decimal),
        Type::Duration => duration(sum),
        // Declared nowhere: sums are of the three above, and of floats.
        _ => Ok(Value::Float(sum as f64)),
    }
}

fn mean(sum: i128, count: u64, info: &AggregateInfo) -> Result<Value<'static>, EvalError> {
    let divisor = decimal::Decimal { mantissa: count.into(), scale: 0 };
    match info.ty.ty {
        Type::Decimal(p, s) => decimal::div(exact(sum, info), divisor, p, s).map(Value::Decimal),
        Type::Duration => decimal::div(exact(sum, info), divisor, 38, 0).and_then(duration),
        _ => arith::finite(sum as f64 / count as f64, &info.ty.ty),
    }
}

fn side_value(side: &Side, info: &AggregateInfo) -> Result<Value<'static>, EvalError> {
    Ok(match side {
        Side::Extreme(value) | Side::Ordered(_, value) => value.clone(),
        Side::Distinct(values) => Value::Int(values.len() as i128),
        Side::Estimate(estimate) => Value::Int(estimate.count().into()),
        Side::Moments(moments) => match moments.variance() {
            None => Value::Null,
            Some(variance) if info.function == AggFunction::Variance => arith::finite(variance, &info.ty.ty)?,
            Some(variance) => arith::finite(variance.sqrt(), &info.ty.ty)?,
        },
        Side::Values(values) if info.function == AggFunction::Median => median(values, info)?,
        Side::Values(values) => {
            let mut values: Vec<&(u64, Value<'static>)> = values.iter().collect();
            values.sort_by_key(|(ordinal, _)| *ordinal);
            let in_order = values.into_iter().map(|(_, value)| value);
            match info.function {
                AggFunction::Collect => Value::List(in_order.cloned().collect()),
                _ => Value::string(in_order.filter_map(Value::as_str).collect::<Vec<_>>().join(&info.separator)),
            }
        }
    })
}

fn median(values: &[(u64, Value<'static>)], info: &AggregateInfo) -> Result<Value<'static>, EvalError> {
    let mut sorted: Vec<&Value<'static>> = values.iter().map(|(_, value)| value).collect();
    sorted.sort_unstable_by(|a, b| compare(a, b).unwrap_or(Ordering::Equal));
    // At least one value was seen.
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    match (low, high, &info.ty.ty) {
        (Value::Decimal(a), Value::Decimal(b), Type::Decimal(p, s)) => {
            decimal::middle(exact(*a, info), exact(*b, info), *p, *s).map(Value::Decimal)
        }
        (Value::Int(a), Value::Int(b), ty) => arith::finite((a + b) as f64 / 2.0, ty),
        (Value::Float(a), Value::Float(b), ty) => {
            let sum = a + b;
            arith::finite(if sum.is_finite() { sum / 2.0 } else { a / 2.0 + b / 2.0 }, ty)
        }
        (Value::Duration(a), Value::Duration(b), _) => duration((i128::from(*a) + i128::from(*b)) / 2),
        (low, ..) => Ok(low.clone()),
    }
}
