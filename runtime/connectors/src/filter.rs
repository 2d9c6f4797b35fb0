//! Rows that needn't be read whole: conditions that the rows of a source have to pass, over some of its fields.
//! It may not know what the conditions are: whoever opens the source gives them as functions.

use std::sync::Arc;

use arrow_array::ArrayRef;

/// The rows that pass of some columns of so many rows, ascending; `None`: all of them.
pub type Pass = Arc<dyn Fn(Vec<ArrayRef>, usize) -> Option<Vec<u32>> + Send + Sync>;

/// A condition that has an answer for every row.
#[derive(Clone)]
pub struct Condition {
    /// Positions, in the source's projection, of the columns that it reads.
    pub columns: Vec<usize>,
    /// Tells for these columns.
    pub pass: Pass,
}

/// Conditions, one after the other: each sees only the rows that have passed those before.
#[derive(Clone)]
pub struct RowFilter(pub Vec<Condition>);
