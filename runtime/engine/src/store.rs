//! Rows that an operator holds to the end: whole batches, and rows of them picked out.

use arrow_array::ArrayRef;
use dfc_batch::Batch;

/// A held row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowRef {
    /// Number of the held batch.
    pub(crate) batch: usize,
    /// Row in it.
    pub(crate) row: u32,
}

/// Held batches of the same columns.
#[derive(Default)]
pub(crate) struct RowStore {
    batches: Vec<Batch>,
    rows: usize,
}

impl RowStore {
    /// Holds a batch: its number. What it was read from is let go.
    pub(crate) fn add(&mut self, batch: Batch) -> usize {
        self.rows += batch.rows;
        self.batches.push(Batch { origin: None, ..batch });
        self.batches.len() - 1
    }

    /// Rows held.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The batches held.
    pub(crate) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// These rows as a batch.
    pub(crate) fn gather(&self, rows: &[RowRef], seq: u64) -> Batch {
        let Some(first) = self.batches.first() else { return Batch::new(Vec::new(), 0, seq) };
        let indices: Vec<(usize, usize)> = rows.iter().map(|at| (at.batch, at.row as usize)).collect();
        let column = |column: usize| -> ArrayRef {
            let parts: Vec<_> = self.batches.iter().map(|batch| batch.columns[column].as_ref()).collect();
            // The batches have the same columns; what else could fail is a list column of over 2³¹ items.
            arrow_select::interleave::interleave(&parts, &indices)
                .unwrap_or_else(|e| panic!("rows picked from held batches: {e}"))
        };
        Batch::new((0..first.columns.len()).map(column).collect(), rows.len(), seq)
    }

    /// Lets go of all rows but these: where they are now.
    pub(crate) fn keep(&mut self, rows: &[RowRef]) -> Vec<RowRef> {
        let kept = self.gather(rows, 0);
        *self = RowStore::default();
        let batch = self.add(kept);
        (0..rows.len() as u32).map(|row| RowRef { batch, row }).collect()
    }
}
