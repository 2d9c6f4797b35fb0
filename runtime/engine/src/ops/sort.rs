//! Sorts everything, stable; or keeps only the first rows, where no more are wanted.

use std::sync::Arc;

use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;

use super::runs::{Merge, Runs};
use super::{Operator, Out, batch_rows};
use crate::RunError;
use crate::budget::Account;
use crate::rowkey::{KeyOrder, RowKeys};
use crate::state::{self, Change, Kind, Piece, Restored, Saved, Share};
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
    pub(crate) fn open(self: &Arc<Self>, account: Option<Account>) -> Result<Box<dyn Operator>, RunError> {
        Ok(Box::new(Sort {
            keys: RowKeys::new(self.node.clone(), &self.keys)?,
            sort: self.clone(),
            rows: RowStore::default(),
            encoded: Vec::new(),
            account,
            runs: None,
            merge: None,
            sorted: None,
            given: 0,
            saved: 0,
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
    /// Where its rows are counted, if that matters.
    account: Option<Account>,
    /// Rows on disk; and once the input has ended, their merge.
    runs: Option<Runs>,
    merge: Option<Merge>,
    /// All rows in order, once the input has ended.
    sorted: Option<Vec<RowRef>>,
    given: usize,
    /// Batches that were saved.
    saved: usize,
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

    /// Holds a batch's rows with their keys; those whose keys have no value are left out.
    fn hold(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(), RunError> {
        let evaluated = self.sort.program.evaluate(&batch, errors);
        let batch = match &evaluated.kept {
            Some(kept) => select(&batch, kept),
            None => batch,
        };
        if batch.rows > 0 {
            self.encoded.push(self.keys.encode(&evaluated.columns)?);
            self.rows.add(batch);
        }
        Ok(())
    }

    /// Lets the rows go that can't be among the first any more.
    fn compact(&mut self) -> Result<(), RunError> {
        let limit = self.limit();
        if self.rows.rows() < limit.saturating_mul(2).saturating_add(2 * batch_rows()) {
            return Ok(());
        }
        let rows = self.order();
        self.rows.keep(&rows);
        self.encoded.clear();
        for batch in self.rows.batches() {
            self.encoded.push(keys_of(&self.sort, &self.keys, batch)?);
        }
        Ok(())
    }

    /// Puts all rows on disk, in order, if they are too many.
    fn put_away(&mut self) -> Result<(), RunError> {
        let bytes = self.rows.bytes() + self.encoded.iter().map(Rows::size).sum::<usize>();
        if self.account.as_mut().is_some_and(|account| account.holds(bytes)) {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<(), RunError> {
        let order = self.order();
        let Some(account) = self.account.as_mut().filter(|_| !order.is_empty()) else { return Ok(()) };
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => self.runs.insert(Runs::new(&self.sort.node, account.budget())?),
        };
        runs.add(&self.rows, &order)?;
        self.rows = RowStore::default();
        self.encoded = Vec::new();
        account.holds(0);
        Ok(())
    }

    /// Gives rows of runs on disk: true when it has given all that are wanted.
    fn give_merged(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        let limit = self.limit();
        let Sort { sort, keys, runs, merge, given, .. } = self;
        let mut keys_of = |batch: &Batch| keys_of(sort, keys, batch);
        if let Some(runs) = runs.take() {
            *merge = Some(runs.merge(&mut keys_of)?);
        }
        let Some(merge) = merge else { return Ok(true) };
        let most = batch_rows().min(limit - *given);
        let batch = merge.next(most, (*given / batch_rows()) as u64, &mut keys_of)?;
        *given += batch.rows;
        let done = merge.is_empty() || *given == limit;
        out.emit(batch)?;
        Ok(done)
    }
}

/// The keys of rows that had keys before: no errors now.
fn keys_of(sort: &PreparedSort, keys: &RowKeys, batch: &Batch) -> Result<Rows, RunError> {
    keys.encode(&sort.program.evaluate(batch, &mut Vec::new()).columns)
}

impl Operator for Sort {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let mut errors = std::mem::take(&mut self.errors);
        self.hold(batch, &mut errors)?;
        out.report(&mut errors)?;
        self.errors = errors;
        self.compact()?;
        self.put_away()
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if self.runs.is_some() {
            self.write_run()?;
        }
        if self.runs.is_some() || self.merge.is_some() {
            return self.give_merged(out);
        }
        let rows = match self.sorted.take() {
            Some(rows) => rows,
            None => {
                let rows = self.order();
                self.encoded = Vec::new();
                rows
            }
        };
        self.given = self.given.min(rows.len());
        let end = rows.len().min(self.given + batch_rows());
        out.emit(self.rows.gather(&rows[self.given..end], (self.given / batch_rows()) as u64))?;
        self.given = end;
        let done = end == rows.len();
        self.sorted = Some(rows);
        Ok(done)
    }

    fn save(&mut self, fresh: bool) -> Vec<Piece> {
        // With a limit rows are let go, so what was saved before may be gone.
        let whole = fresh || self.sort.limit.is_some();
        let first = if whole { 0 } else { self.saved };
        let batches = self.rows.batches()[first..].to_vec();
        self.saved = self.rows.batches().len();
        let change = match (whole, batches.is_empty()) {
            (true, _) => Change::Replace,
            (false, true) => Change::Keep,
            (false, false) => Change::Append,
        };
        let saved = (change != Change::Keep).then_some(Saved::Rows { batches, arrivals: Vec::new() });
        let given = Piece::whole(Kind::Numbers, Saved::Numbers(vec![self.given as u64]));
        vec![Piece { kind: Kind::Rows, change, saved }, given]
    }

    fn restore(&mut self, state: &Restored, _share: Share) -> Result<(), RunError> {
        for part in state.parts.all()? {
            if state.kind == Kind::Numbers {
                self.given = state::numbers(&part)?.first().map_or(0, |&given| given as usize);
                continue;
            }
            for batch in state::rows(&part, None)?.batches {
                self.hold(batch, &mut Vec::new())?;
            }
        }
        Ok(())
    }
}
