//! Sorted runs on disk and their merge. It may not know where the keys come from: whoever merges says how a batch's are made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow_row::Rows;
use dfc_batch::Batch;

use crate::RunError;
use crate::budget::Budget;
use crate::spill::{Block, Spill};
use crate::state::{self, Saved};
use crate::store::{RowRef, RowStore};

/// Rows of a block: one of each run is in memory while they are merged.
const BLOCK_ROWS: usize = 4096;

/// Makes the keys of a batch.
pub(super) type Keys<'k> = dyn FnMut(&Batch) -> Result<Rows, RunError> + 'k;

/// Runs on disk, each a partition, in the order in which their rows came.
pub(super) struct Runs {
    spill: Spill,
    count: usize,
}

impl Runs {
    pub(super) fn new(node: &str, budget: &Budget) -> Result<Runs, RunError> {
        Ok(Runs { spill: Spill::new(node, budget)?, count: 0 })
    }

    /// Writes rows behind those of the open run.
    pub(super) fn extend(&mut self, batch: &Batch) -> Result<(), RunError> {
        for start in (0..batch.rows).step_by(BLOCK_ROWS) {
            let rows = (batch.rows - start).min(BLOCK_ROWS);
            let columns = batch.columns.iter().map(|column| column.slice(start, rows)).collect();
            let saved = Saved::Rows { batches: vec![Batch::new(columns, rows, 0)], arrivals: Vec::new() };
            self.spill.write(self.count, &saved.archive()?)?;
        }
        Ok(())
    }

    /// Ends the open run.
    pub(super) fn end(&mut self) {
        self.count += 1;
    }

    /// Writes rows, in this order, as a run.
    pub(super) fn add(&mut self, rows: &RowStore, order: &[RowRef]) -> Result<(), RunError> {
        for some in order.chunks(BLOCK_ROWS) {
            let saved = Saved::Rows { batches: vec![rows.gather(some, 0)], arrivals: Vec::new() };
            self.spill.write(self.count, &saved.archive()?)?;
        }
        self.count += 1;
        Ok(())
    }

    /// Begins their merge.
    pub(super) fn merge(self, keys: &mut Keys<'_>) -> Result<Merge, RunError> {
        let mut merge = Merge { runs: Vec::new(), spill: self.spill, first: BinaryHeap::new() };
        for run in 0..self.count {
            let blocks = merge.spill.blocks(run).into_iter();
            let mut cursor = Cursor { blocks, open: None };
            if cursor.advance(&merge.spill, keys)? {
                merge.first.extend(cursor.key().map(|key| Reverse((key, run))));
            }
            merge.runs.push(cursor);
        }
        Ok(merge)
    }
}

/// Runs that are being merged.
pub(super) struct Merge {
    runs: Vec<Cursor>,
    spill: Spill,
    /// The first key of each run that has rows left. Equal ones stay as they came: the earlier run goes first.
    first: BinaryHeap<Reverse<(Box<[u8]>, usize)>>,
}

/// Where a run is.
struct Cursor {
    blocks: std::vec::IntoIter<Block>,
    open: Option<Open>,
}

/// A block in memory.
struct Open {
    batch: Batch,
    keys: Rows,
    row: usize,
}

impl Cursor {
    /// Opens the next block: false where there is none.
    fn advance(&mut self, spill: &Spill, keys: &mut Keys<'_>) -> Result<bool, RunError> {
        self.open = None;
        if let Some(block) = self.blocks.next() {
            let batches = state::rows(&spill.read(block)?, None)?.batches;
            // A block is one batch.
            if let Some(batch) = batches.into_iter().next() {
                self.open = Some(Open { keys: keys(&batch)?, batch, row: 0 });
            }
        }
        Ok(self.open.is_some())
    }

    /// The key of the row where it is.
    fn key(&self) -> Option<Box<[u8]>> {
        self.open.as_ref().map(|open| open.keys.row(open.row).data().into())
    }
}

impl Merge {
    /// Whether all rows were given.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The next rows in order, at most so many.
    pub(super) fn next(&mut self, most: usize, seq: u64, keys: &mut Keys<'_>) -> Result<Batch, RunError> {
        let mut rows = RowStore::default();
        let mut stored: Vec<Option<usize>> =
            self.runs.iter().map(|run| run.open.as_ref().map(|open| rows.add(open.batch.clone()))).collect();
        let mut picked = Vec::new();
        while picked.len() < most
            && let Some(Reverse((_, run))) = self.first.pop()
        {
            let cursor = &mut self.runs[run];
            let (Some(open), Some(batch)) = (&mut cursor.open, stored[run]) else { continue };
            picked.push(RowRef { batch, row: open.row as u32 });
            open.row += 1;
            if open.row == open.batch.rows {
                let more = cursor.advance(&self.spill, keys)?;
                stored[run] = cursor.open.as_ref().filter(|_| more).map(|open| rows.add(open.batch.clone()));
            }
            self.first.extend(cursor.key().map(|key| Reverse((key, run))));
        }
        Ok(rows.gather(&picked, seq))
    }
}
