//! One row a key: the first that arrives, passed on at once; or the first in an order, known only at the end.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;
use hashbrown::HashTable;

use super::{BATCH_ROWS, Operator, Out};
use crate::RunError;
use crate::rowkey::{KeyOrder, RowKeys, hash};
use crate::state::{self, Change, Kind, Piece, Restored, Saved, Share};
use crate::store::{RowRef, RowStore};

/// A distinct, ready to be opened.
pub(crate) struct PreparedDistinct {
    pub(crate) node: Arc<str>,
    /// Key columns, all of them if the pipeline names none.
    pub(crate) keys: Vec<(usize, DataType)>,
    /// Computes what rows of one key are ordered by.
    pub(crate) order: Option<(Arc<dyn PreparedProgram>, Vec<(DataType, KeyOrder)>)>,
}

impl PreparedDistinct {
    pub(crate) fn open(&self) -> Result<Box<dyn Operator>, RunError> {
        let types: Vec<_> = self.keys.iter().map(|(_, ty)| (ty.clone(), KeyOrder::default())).collect();
        let seen = Seen {
            columns: self.keys.iter().map(|(column, _)| *column).collect(),
            keys: RowKeys::new(self.node.clone(), &types)?,
            bytes: Vec::new(),
            groups: Vec::new(),
            table: HashTable::new(),
        };
        Ok(match &self.order {
            None => Box::new(FirstArrived { seen, saved: 0 }),
            Some((program, types)) => Box::new(FirstInOrder {
                seen,
                program: program.clone(),
                order: RowKeys::new(self.node.clone(), types)?,
                best: Vec::new(),
                rows: RowStore::default(),
                given: 0,
                errors: Vec::new(),
            }),
        })
    }
}

/// The keys that have come, numbered.
struct Seen {
    columns: Vec<usize>,
    keys: RowKeys,
    bytes: Vec<u8>,
    /// Where a key's bytes end; they begin where those before end.
    groups: Vec<usize>,
    table: HashTable<(u64, usize)>,
}

impl Seen {
    fn encode(&self, batch: &Batch) -> Result<Option<Rows>, RunError> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = self.columns.iter().map(|&column| batch.columns[column].clone()).collect();
        self.keys.encode(&columns).map(Some)
    }

    /// Where the keys from number `first` on begin.
    fn start(&self, first: usize) -> usize {
        first.checked_sub(1).map_or(0, |before| self.groups[before])
    }

    /// The key's number, and whether it is new.
    fn insert(&mut self, key: &[u8]) -> (usize, bool) {
        let Seen { bytes, groups, table, .. } = self;
        let hash = hash(key);
        let text = |group: usize| {
            let start = if group == 0 { 0 } else { groups[group - 1] };
            &bytes[start..groups[group]]
        };
        if let Some(&(_, group)) = table.find(hash, |&(h, group)| h == hash && text(group) == key) {
            return (group, false);
        }
        let group = groups.len();
        table.insert_unique(hash, (hash, group), |&(h, _)| h);
        bytes.extend_from_slice(key);
        groups.push(bytes.len());
        (group, true)
    }
}

/// Bytes of row `row`'s key; without key columns all rows are equal.
fn key_of(rows: Option<&Rows>, row: usize) -> &[u8] {
    rows.map_or(&[], |rows| rows.row(row).data())
}

/// Whether a key is a task's: as rows are dealt out by hash.
fn owns(share: Share, key: &[u8]) -> bool {
    (hash(key) >> 32) as usize % share.parts == share.part
}

struct FirstArrived {
    seen: Seen,
    /// Keys that were saved.
    saved: usize,
}

impl Operator for FirstArrived {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let keys = self.seen.encode(&batch)?;
        let new = |&row: &u32| self.seen.insert(key_of(keys.as_ref(), row as usize)).1;
        let kept: Vec<u32> = (0..batch.rows as u32).filter(new).collect();
        out.emit(select(&batch, &kept))
    }

    fn finish(&mut self, _out: &mut Out<'_>) -> Result<bool, RunError> {
        Ok(true)
    }

    fn save(&mut self, fresh: bool) -> Vec<Piece> {
        let first = if fresh { 0 } else { self.saved };
        let start = self.seen.start(first);
        let ends: Vec<u64> = self.seen.groups[first..].iter().map(|end| (end - start) as u64).collect();
        self.saved = self.seen.groups.len();
        let change = match (fresh, ends.is_empty()) {
            (true, _) => Change::Replace,
            (false, true) => Change::Keep,
            (false, false) => Change::Append,
        };
        let saved = Saved::Seen { bytes: self.seen.bytes[start..].to_vec(), ends };
        vec![Piece { kind: Kind::Seen, change, saved: (change != Change::Keep).then_some(saved) }]
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        for part in &state.parts {
            for key in state::seen(part)?.iter().filter(|key| owns(share, key)) {
                self.seen.insert(key);
            }
        }
        Ok(())
    }
}

/// The best row of a key so far.
struct Best {
    order: Box<[u8]>,
    /// Rows that are equal in the order: the one that stood first in the input.
    arrival: (u64, u32),
    row: RowRef,
}

struct FirstInOrder {
    seen: Seen,
    program: Arc<dyn PreparedProgram>,
    order: RowKeys,
    best: Vec<Best>,
    rows: RowStore,
    given: usize,
    errors: Vec<RowError>,
}

impl FirstInOrder {
    /// Looks at the rows whose keys are this task's; `arrival`: where a row of the batch stood in the input.
    fn see(
        &mut self,
        batch: Batch,
        share: Share,
        arrival: impl Fn(usize) -> (u64, u32),
        errors: &mut Vec<RowError>,
    ) -> Result<(), RunError> {
        let evaluated = self.program.evaluate(&batch, errors);
        let batch = match &evaluated.kept {
            Some(kept) => select(&batch, kept),
            None => batch,
        };
        let order = self.order.encode(&evaluated.columns)?;
        let keys = self.seen.encode(&batch)?;
        let stored = self.rows.add(batch);
        for row in 0..order.num_rows() {
            let key = key_of(keys.as_ref(), row);
            if share.parts > 1 && !owns(share, key) {
                continue;
            }
            let (group, new) = self.seen.insert(key);
            let (bytes, arrival) = (order.row(row).data(), arrival(row));
            let better = |best: &Best| (bytes, arrival) < (&best.order, best.arrival);
            if new || better(&self.best[group]) {
                let best = Best { order: bytes.into(), arrival, row: RowRef { batch: stored, row: row as u32 } };
                if new { self.best.push(best) } else { self.best[group] = best }
            }
        }
        Ok(())
    }

    /// Rows that are no longer anyone's best are let go when they are most of what is held.
    fn compact(&mut self) {
        if self.rows.rows() > 2 * self.best.len() + BATCH_ROWS {
            let kept: Vec<RowRef> = self.best.iter().map(|best| best.row).collect();
            let moved = self.rows.keep(&kept);
            for (best, row) in self.best.iter_mut().zip(moved) {
                best.row = row;
            }
        }
    }
}

impl Operator for FirstInOrder {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let mut errors = std::mem::take(&mut self.errors);
        let seq = batch.seq;
        self.see(batch, Share { part: 0, parts: 1 }, |row| (seq, row as u32), &mut errors)?;
        out.report(&mut errors)?;
        self.errors = errors;
        self.compact();
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        let end = self.best.len().min(self.given + BATCH_ROWS);
        let rows: Vec<RowRef> = self.best[self.given..end].iter().map(|best| best.row).collect();
        out.emit(self.rows.gather(&rows, (self.given / BATCH_ROWS) as u64))?;
        self.given = end;
        Ok(end == self.best.len())
    }

    fn save(&mut self, _fresh: bool) -> Vec<Piece> {
        let left = &self.best[self.given..];
        let rows: Vec<RowRef> = left.iter().map(|best| best.row).collect();
        let arrivals = left.iter().map(|best| best.arrival).collect();
        let batches = if rows.is_empty() { Vec::new() } else { vec![self.rows.gather(&rows, 0)] };
        vec![Piece::whole(Kind::Rows, Saved::Rows { batches, arrivals })]
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        for part in &state.parts {
            let state::RestoredRows { batches, arrivals } = state::rows(part, None)?;
            let mut arrivals = arrivals.into_iter();
            for batch in batches {
                let arrivals: Vec<(u64, u32)> = arrivals.by_ref().take(batch.rows).collect();
                self.see(batch, share, |row| arrivals.get(row).copied().unwrap_or_default(), &mut Vec::new())?;
            }
        }
        Ok(())
    }
}
