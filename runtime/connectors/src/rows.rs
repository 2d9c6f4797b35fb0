//! Rejected rows of a batch under construction, and leaving them out. It may not know the format.

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array};
use dfc_batch::{Batch, Locate, Origin, RowError};

/// Longest value that a message shows, in characters.
const VALUE_LIMIT: usize = 200;

/// A value as a message shows it: text, shortened.
pub(crate) fn shown(value: &[u8]) -> String {
    // Four bytes hold any character.
    let text = String::from_utf8_lossy(&value[..value.len().min(4 * VALUE_LIMIT + 4)]);
    let mut short: String = text.chars().take(VALUE_LIMIT).collect();
    if short.len() < value.len() && text.chars().count() > VALUE_LIMIT {
        short.push('…');
    }
    short
}

/// What is wrong with one field of a row.
pub(crate) struct Fault {
    /// `R03xx`.
    pub code: &'static str,
    /// The rule.
    pub rule: String,
    /// The value, where there is one.
    pub value: Option<String>,
}

/// The faults of a batch: at most one a row, that of its first field.
#[derive(Default)]
pub(crate) struct Faults {
    list: Vec<(u32, u32, Option<String>, Fault)>,
}

impl Faults {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a fault of a row's column, with the field's outside name.
    pub(crate) fn push(&mut self, row: usize, column: usize, field: Option<&str>, fault: Fault) {
        self.list.push((row as u32, column as u32, field.map(str::to_string), fault));
    }

    /// Turns the faults into row errors and gives the batch of the sound rows.
    pub(crate) fn leave_out(
        self,
        columns: Vec<ArrayRef>,
        rows: usize,
        seq: u64,
        locate: Arc<dyn Locate>,
        errors: &mut Vec<RowError>,
    ) -> Batch {
        let numbers: Vec<u32> = (0..rows as u32).collect();
        self.leave_out_of(columns, &numbers, seq, locate, errors)
    }

    /// The same where the columns hold only the rows of these numbers, ascending. Others may have faults too.
    pub(crate) fn leave_out_of(
        mut self,
        columns: Vec<ArrayRef>,
        numbers: &[u32],
        seq: u64,
        locate: Arc<dyn Locate>,
        errors: &mut Vec<RowError>,
    ) -> Batch {
        self.list.sort_by_key(|(row, column, ..)| (*row, *column));
        self.list.dedup_by_key(|(row, ..)| *row);
        let mut bad = self.list.iter().map(|(row, ..)| *row).peekable();
        let (mut kept, mut positions) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        for (position, &row) in (0u32..).zip(numbers) {
            while bad.next_if(|bad| *bad < row).is_some() {}
            if bad.next_if_eq(&row).is_none() {
                kept.push(row);
                positions.push(position);
            }
        }
        for (row, _, field, fault) in self.list {
            errors.push(RowError {
                place: Some(locate.place(row as usize)),
                field,
                value: fault.value,
                raw: locate.raw(row as usize),
                ..RowError::new(fault.code, fault.rule)
            });
        }
        let positions = UInt32Array::from(positions);
        let columns = columns.iter().map(|column| dfc_batch::take(column, &positions)).collect();
        let rows = kept.len();
        Batch { columns, rows, seq, origin: Some(Origin { locate, rows: Some(kept.into()) }) }
    }

    /// Adds those of other rows: row k of them is row `rows[k]` here, or row k itself.
    pub(crate) fn extend(&mut self, others: Faults, rows: Option<&[u32]>) {
        let here = |row: u32| rows.map_or(row, |rows| rows[row as usize]);
        self.list.extend(others.list.into_iter().map(|(row, column, field, fault)| (here(row), column, field, fault)));
    }

    /// The rows that have one, ascending, each once.
    pub(crate) fn rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = self.list.iter().map(|(row, ..)| *row).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Of the rows that a condition kept of those that had `passed` before (`None`: of all, which are so many), those without a fault.
    pub(crate) fn without(&self, kept: Option<Vec<u32>>, passed: Option<&[u32]>, all: usize) -> Option<Vec<u32>> {
        if self.is_empty() {
            return kept;
        }
        let faulty = self.rows();
        let mut kept = kept.unwrap_or_else(|| (0..passed.map_or(all, <[u32]>::len) as u32).collect());
        kept.retain(|&row| faulty.binary_search(&passed.map_or(row, |passed| passed[row as usize])).is_err());
        Some(kept)
    }
}
