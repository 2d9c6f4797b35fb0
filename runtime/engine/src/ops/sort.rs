//! Sorts everything, stable; or keeps only the first rows, where no more are wanted.

use std::sync::Arc;

use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;

use super::{BATCH_ROWS, Operator, Out};
use crate::RunError;
use crate::rowkey::{KeyOrder, RowKeys};
use crate::store::{RowRef, RowStore};

/// A sort, ready to be opened.
pub(crate) struct PreparedSort {
    pub(crate) node: Arc<str>,
    /// Computes the keys.
    pub(crate) program: Arc<dyn PreparedProgram>,
    /// Their types and orders.
    pub(crate) keys: Vec<(DataType, KeyOrder)>,
    /// Only so many rows are wanted.
    pub(crate) limit: Option<u64>,
}

impl PreparedSort {
    pub(crate) fn open(self: &Arc<Self>) -> Result<Box<dyn Operator>, RunError> {
        Ok(Box::new(Sort {
            keys: RowKeys::new(self.node.clone(), &self.keys)?,
            sort: self.clone(),
            rows: RowStore::default(),
            encoded: Vec::new(),
            sorted: None,
            given: 0,
            errors: Vec::new(),
        }))
    }
}

struct Sort {
    sort: Arc<PreparedSort>,
    keys: RowKeys,
    rows: RowStore,
    /// The keys of each stored batch.
    encoded: Vec<Rows>,
    /// All rows in order, once the input has ended.
    sorted: Option<Vec<RowRef>>,
    given: usize,
    errors: Vec<RowError>,
}

impl Sort {
    fn limit(&self) -> usize {
        self.sort.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// The first rows that are wanted, in order. Equal ones stay as they came.
    fn order(&self) -> Vec<RowRef> {
        let mut rows: Vec<RowRef> = Vec::with_capacity(self.rows.rows());
        for (batch, keys) in self.encoded.iter().enumerate() {
            rows.extend((0..keys.num_rows() as u32).map(|row| RowRef { batch, row }));
        }
        let key = |at: &RowRef| self.encoded[at.batch].row(at.row as usize);
        rows.sort_by(|a, b| key(a).cmp(&key(b)));
        rows.truncate(self.limit());
        rows
    }

    /// Lets the rows go that can't be among the first any more.
    fn compact(&mut self) -> Result<(), RunError> {
        let limit = self.limit();
        if self.rows.rows() < limit.saturating_mul(2).saturating_add(2 * BATCH_ROWS) {
            return Ok(());
        }
        let rows = self.order();
        self.rows.keep(&rows);
        self.encoded.clear();
        for batch in self.rows.batches() {
            // These rows had keys before: no errors now.
            let columns = self.sort.program.evaluate(batch, &mut Vec::new()).columns;
            self.encoded.push(self.keys.encode(&columns)?);
        }
        Ok(())
    }
}

impl Operator for Sort {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let evaluated = self.sort.program.evaluate(&batch, &mut self.errors);
        out.report(&mut self.errors)?;
        let batch = match &evaluated.kept {
            Some(kept) => select(&batch, kept),
            None => batch,
        };
        if batch.rows == 0 {
            return Ok(());
        }
        self.encoded.push(self.keys.encode(&evaluated.columns)?);
        self.rows.add(batch);
        self.compact()
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        let rows = match self.sorted.take() {
            Some(rows) => rows,
            None => {
                let rows = self.order();
                self.encoded = Vec::new();
                rows
            }
        };
        let end = rows.len().min(self.given + BATCH_ROWS);
        out.emit(self.rows.gather(&rows[self.given..end], (self.given / BATCH_ROWS) as u64))?;
        self.given = end;
        let done = end == rows.len();
        self.sorted = Some(rows);
        Ok(done)
    }
}
