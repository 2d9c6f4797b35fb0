//! Batches of rows as Arrow arrays, the one form in which rows travel between connectors, compiled code and operators;
//! and row errors, which travel beside them.
//!
//! It may not know where rows come from nor what is done with them.

mod arrays;
mod build;
mod error;
mod rows;

pub use arrays::{arrow_fields, arrow_schema, arrow_type, value_at};
pub use build::ColumnBuilder;
pub use error::{Place, RowError};
pub use rows::{concat, interleave, select, take};

use std::sync::Arc;

use arrow_array::ArrayRef;

/// Some rows, column by column.
///
/// Arrays have exactly the Arrow type that [`arrow_type`] gives for the column's declared type, offset 0 or not, and a
/// column of a type that is never null has no null in it (its null buffer may be absent or all valid).
#[derive(Clone)]
pub struct Batch {
    /// One array a column, all of `rows` length.
    pub columns: Vec<ArrayRef>,
    /// Number of rows (kept apart: a batch may have no columns).
    pub rows: usize,
    /// Number of this batch in its input, from 0 without gaps. Ordered sinks write by it; meaningless after an exchange that mixes.
    pub seq: u64,
    /// Where its rows come from, for error messages.
    pub origin: Option<Origin>,
}

impl Batch {
    /// A batch without origin.
    pub fn new(columns: Vec<ArrayRef>, rows: usize, seq: u64) -> Self {
        Batch { columns, rows, seq, origin: None }
    }
}

/// Finds the place of a batch's rows in the source they were read from. Called only when a row failed, so it may be slow.
pub trait Locate: Send + Sync {
    /// The place of row `row` of the batch as it was read.
    fn place(&self, row: usize) -> Place;
    /// The row's text as it stands in the source, where it has one.
    fn raw(&self, row: usize) -> Option<String>;
}

/// The origin of a batch's rows.
#[derive(Clone)]
pub struct Origin {
    /// Finds a row of the batch as it was read.
    pub locate: Arc<dyn Locate>,
    /// Row k of this batch was row `rows[k]` of the batch as it was read; `None`: row k itself.
    pub rows: Option<Arc<[u32]>>,
}

impl Origin {
    /// The place of row `row` of this batch.
    pub fn place(&self, row: usize) -> Place {
        self.locate.place(self.read_row(row))
    }

    /// The text of row `row` of this batch.
    pub fn raw(&self, row: usize) -> Option<String> {
        self.locate.raw(self.read_row(row))
    }

    /// The origin of a batch that keeps these rows of this one.
    pub fn select(&self, kept: &[u32]) -> Origin {
        let rows = kept.iter().map(|&row| self.read_row(row as usize) as u32).collect();
        Origin { locate: self.locate.clone(), rows: Some(rows) }
    }

    fn read_row(&self, row: usize) -> usize {
        self.rows.as_ref().map_or(row, |rows| rows[row] as usize)
    }
}
