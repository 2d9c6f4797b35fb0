//! States that don't fit a row: texts, sets, lists, moments.

use std::cmp::Ordering;

use dfc_eval::compare;
use dfc_ir::Value;
use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::estimate::Estimate;
use crate::shelves::{FrozenShelves, Shelves};

/// The state of one aggregate of one group, which has seen a value.
#[derive(Clone)]
pub(crate) enum Side {
    /// The smallest or largest text or bytes.
    Extreme(Value<'static>),
    /// The first or last value, and its ordinal.
    Ordered(u64, Value<'static>),
    /// The distinct values, as keys are written.
    Distinct(HashSet<Box<[u8]>, FixedState>),
    /// Their estimated number.
    Estimate(Estimate),
    /// Mean and spread.
    Moments(Moments),
    /// All values with their ordinals.
    Values(Vec<(u64, Value<'static>)>),
}

/// Sides on a shelf: the first one that changes after a freeze copies them all.
const SHELF: usize = 64;

/// The sides of a table, each with the aggregate that it belongs to.
pub(crate) type Sides = Shelves<(u32, Side), SHELF>;

/// The same as they were at a freeze.
pub(crate) type FrozenSides = FrozenShelves<(u32, Side), SHELF>;

impl Side {
    /// Bytes of it, about.
    pub fn bytes(&self) -> usize {
        let value = |value: &Value<'static>| match value {
            Value::Str(text) => text.len() + 16,
            Value::Bytes(bytes) => bytes.len() + 16,
            _ => 16,
        };
        match self {
            Side::Extreme(one) | Side::Ordered(_, one) => value(one),
            Side::Distinct(values) => values.iter().map(|bytes| bytes.len() + 16).sum(),
            Side::Estimate(estimate) => estimate.registers().len(),
            Side::Moments(_) => size_of::<Moments>(),
            Side::Values(values) => values.iter().map(|(_, one)| value(one) + 8).sum(),
        }
    }

    /// Keeps the smaller (larger) of two values.
    pub fn extreme(&mut self, value: Value, keep: Ordering) {
        if let Side::Extreme(best) = self
            && compare(&value, best) == Some(keep)
        {
            *best = value.into_owned();
        }
    }

    /// Keeps the value with the smaller (larger) ordinal.
    pub fn ordered(&mut self, ordinal: u64, value: Value, keep: Ordering) {
        if let Side::Ordered(best, kept) = self
            && ordinal.cmp(best) == keep
        {
            (*best, *kept) = (ordinal, value.into_owned());
        }
    }

    /// Takes in what `other`, a state of the same aggregate, has seen; `keep` is what it keeps of two values.
    pub fn merge(&mut self, other: &Side, keep: Ordering) {
        match (self, other) {
            (side @ Side::Extreme(_), Side::Extreme(value)) => side.extreme(value.clone(), keep),
            (side @ Side::Ordered(..), Side::Ordered(ordinal, value)) => side.ordered(*ordinal, value.clone(), keep),
            (Side::Distinct(mine), Side::Distinct(theirs)) => {
                for value in theirs {
                    mine.get_or_insert_with(value, Box::clone);
                }
            }
            (Side::Estimate(mine), Side::Estimate(theirs)) => mine.merge(theirs),
            (Side::Moments(mine), Side::Moments(theirs)) => mine.merge(theirs),
            (Side::Values(mine), Side::Values(theirs)) => mine.extend_from_slice(theirs),
            // States of one aggregate are of one form.
            _ => {}
        }
    }

    /// Bytes that it holds, about.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Side>()
            + match self {
                Side::Distinct(values) => values.capacity() * 40,
                Side::Estimate(_) => Estimate::BYTES,
                Side::Values(values) => values.capacity() * size_of::<(u64, Value)>(),
                Side::Extreme(_) | Side::Ordered(..) | Side::Moments(_) => 0,
            }
    }
}

/// Number, mean, and sum of squared distances from the mean, kept up to date as Welford does ("Note on a Method for Calculating
/// Corrected Sums of Squares and Products", 1962).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    pub(crate) count: f64,
    pub(crate) mean: f64,
    pub(crate) squares: f64,
}

impl Moments {
    /// Sees a value.
    pub fn add(&mut self, x: f64) {
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.squares += before * (x - self.mean);
    }

    /// Sees what `other` has seen: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
    /// Variances" (1979).
    fn merge(&mut self, other: &Moments) {
        let count = self.count + other.count;
        if other.count == 0.0 {
            return;
        }
        let apart = other.mean - self.mean;
        self.mean += apart * (other.count / count);
        self.squares += other.squares + apart * apart * (self.count * other.count / count);
        self.count = count;
    }

    /// The sample variance, of two values or more.
    pub fn variance(&self) -> Option<f64> {
        (self.count >= 2.0).then(|| self.squares / (self.count - 1.0))
    }
}
