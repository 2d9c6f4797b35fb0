//! Batches from batches: some of the rows, or the rows of several.

use arrow_array::{ArrayRef, UInt32Array};

use crate::Batch;

/// The rows at `indices`, in that order (a row may be taken twice). Keeps sequence number and origin.
///
/// Panics if an index is past the last row.
pub fn select(batch: &Batch, indices: &[u32]) -> Batch {
    if indices.len() == batch.rows && indices.iter().enumerate().all(|(k, &row)| k == row as usize) {
        return batch.clone();
    }
    let taken = UInt32Array::from(indices.to_vec());
    let columns = batch.columns.iter().map(|column| take(column, &taken)).collect();
    Batch {
        columns,
        rows: indices.len(),
        seq: batch.seq,
        origin: batch.origin.as_ref().map(|origin| origin.select(indices)),
    }
}

/// The values at `indices`; a null index gives a null.
///
/// Panics if an index is past the last row.
pub fn take(column: &ArrayRef, indices: &UInt32Array) -> ArrayRef {
    // Fails only for list columns whose result has over 2³¹ items.
    arrow_select::take::take(column.as_ref(), indices, None).unwrap_or_else(|e| panic!("rows taken from a column: {e}"))
}

/// Values of several columns of one type: each by the column's place among them, and the row there.
///
/// Panics if the columns' types differ, or a place or row is past the last.
pub fn interleave(columns: &[&ArrayRef], places: &[(usize, usize)]) -> ArrayRef {
    let parts: Vec<_> = columns.iter().map(|column| column.as_ref()).collect();
    // What else could fail is a list column whose result has over 2³¹ items.
    arrow_select::interleave::interleave(&parts, places).unwrap_or_else(|e| panic!("rows of several columns: {e}"))
}

/// All rows of batches with the same columns, in order. Keeps the first sequence number, no origin. No batch: no column, no row.
///
/// Panics if the columns' types differ, or a list column has over 2³¹ items.
pub fn concat(batches: &[Batch]) -> Batch {
    match batches {
        [] => Batch::new(Vec::new(), 0, 0),
        [one] => Batch::new(one.columns.clone(), one.rows, one.seq),
        [first, ..] => {
            let column = |i: usize| {
                let parts: Vec<_> = batches.iter().map(|batch| batch.columns[i].as_ref()).collect();
                arrow_select::concat::concat(&parts).unwrap_or_else(|e| panic!("batches of different columns: {e}"))
            };
            let columns = (0..first.columns.len()).map(column).collect();
            Batch::new(columns, batches.iter().map(|batch| batch.rows).sum(), first.seq)
        }
    }
}
