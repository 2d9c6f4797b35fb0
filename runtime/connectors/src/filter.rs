//! Rows that needn't be read whole: conditions that the rows of a source have to pass, over some of its fields.
//! It may not know what the conditions are: whoever opens the source gives them as functions.

use std::sync::Arc;

use arrow_array::ArrayRef;
use dfc_ir::Value;

/// The rows that pass of some columns of so many rows, ascending; `None`: all of them.
pub type Pass = Arc<dyn Fn(Vec<ArrayRef>, usize) -> Option<Vec<u32>> + Send + Sync>;

/// Whether any row can pass whose columns lie within these bounds, one for each of [`Condition::columns`].
pub type Possible = Arc<dyn Fn(&[Bounds]) -> bool + Send + Sync>;

/// A condition that has an answer for every row.
#[derive(Clone)]
pub struct Condition {
    /// Positions, in the source's projection, of the columns that it reads.
    pub columns: Vec<usize>,
    /// Tells for these columns.
    pub pass: Pass,
    /// Tells for many rows at once; `None`: bounds say nothing about it.
    pub possible: Option<Possible>,
}

/// What is known of a column in a run of rows. Each value of the run lies within it; not everything within it is a value of the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// No value lies below; `None`: unknown. Of the declared type.
    pub low: Option<Value<'static>>,
    /// No value lies above; `None`: unknown. Of the declared type.
    pub high: Option<Value<'static>>,
    /// Nulls may be among the rows.
    pub nulls: bool,
    /// Values may be among the rows.
    pub values: bool,
}

impl Bounds {
    /// Nothing is known.
    pub fn unknown() -> Self {
        Bounds { low: None, high: None, nulls: true, values: true }
    }
}

/// Conditions, one after the other: each sees only the rows that have passed those before.
#[derive(Clone)]
pub struct RowFilter(pub Vec<Condition>);
