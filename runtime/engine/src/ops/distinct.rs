//! One row a key: the first that arrives, passed on at once; or the first in an order, known only at the end.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;
use dfc_table::{Arena, Place};
use hashbrown::HashTable;

use super::{BATCH_ROWS, Operator, Out};
use crate::RunError;
use crate::rowkey::{KeyOrder, RowKeys, hash};
use crate::state::{self, Change, Kind, Piece, Restored, Saved, Share};
use crate::store::{Arrival, Places, RowRef, RowStore};

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
            bytes: Arena::default(),
            lengths: Arena::default(),
            groups: Vec::new(),
            table: HashTable::new(),
        };
        Ok(match &self.order {
            None => Box::new(FirstArrived { seen, saved: None }),
            Some((program, types)) => Box::new(FirstInOrder {
                seen,
                program: program.clone(),
                order: RowKeys::new(self.node.clone(), types)?,
                best: Vec::new(),
                places: Places::default(),
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
    bytes: Arena,
    /// The keys' lengths once more, for checkpoints.
    lengths: Arena,
    /// Where each key's bytes lie, and how many they are.
    groups: Vec<(Place, u32)>,
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

    /// The key's number, and whether it is new.
    fn insert(&mut self, key: &[u8]) -> (usize, bool) {
        let Seen { bytes, lengths, groups, table, .. } = self;
        let hash = hash(key);
        let text = |group: usize| {
            let (place, length) = groups[group];
            bytes.get(place, length as usize)
        };
        if let Some(&(_, group)) = table.find(hash, |&(h, group)| h == hash && text(group) == key) {
            return (group, false);
        }
        let group = groups.len();
        table.insert_unique(hash, (hash, group), |&(h, _)| h);
        // A key is a part of a batch, and those have less than 2³² bytes.
        let length = key.len() as u32;
        groups.push((bytes.add(key), length));
        lengths.add(&length.to_le_bytes());
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
    /// How many keys were saved, and where their bytes and lengths end; `None`: none yet.
    saved: Option<(usize, Place, Place)>,
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
        let before = self.saved.filter(|_| !fresh);
        let Seen { bytes, lengths, groups, .. } = &self.seen;
        self.saved = Some((groups.len(), bytes.end(), lengths.end()));
        let change = match before {
            None => Change::Replace,
            Some((saved, ..)) if saved == groups.len() => Change::Keep,
            Some(_) => Change::Append,
        };
        let saved = Saved::Seen {
            bytes: bytes.freeze(before.map(|(_, end, _)| end)),
            lengths: lengths.freeze(before.map(|(_, _, end)| end)),
        };
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

struct FirstInOrder {
    seen: Seen,
    program: Arc<dyn PreparedProgram>,
    order: RowKeys,
    /// Of each key's best row so far: what it is ordered by.
    best: Vec<Box<[u8]>>,
    /// The rows, and where they stood in the input: of those that are equal in the order the first one is best.
    places: Places,
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
        arrival: impl Fn(usize) -> Arrival,
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
            let place = (arrival, RowRef { batch: stored, row: row as u32 });
            if new {
                self.best.push(bytes.into());
                self.places.push(place);
                continue;
            }
            let before = self.places.get(group).map(|(arrival, _)| *arrival);
            if before.is_some_and(|before| (bytes, arrival) < (&*self.best[group], before)) {
                self.best[group] = bytes.into();
                *self.places.get_mut(group) = place;
            }
        }
        Ok(())
    }

    /// Rows that are no longer anyone's best are let go when they are most of what is held.
    fn compact(&mut self) {
        if self.rows.rows() > 2 * self.best.len() + BATCH_ROWS {
            let kept: Vec<RowRef> = self.places.iter().map(|(_, row)| *row).collect();
            for (group, row) in self.rows.keep(&kept).into_iter().enumerate() {
                self.places.get_mut(group).1 = row;
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
        let rows: Vec<RowRef> = (self.given..end).filter_map(|at| self.places.get(at)).map(|(_, row)| *row).collect();
        out.emit(self.rows.gather(&rows, (self.given / BATCH_ROWS) as u64))?;
        self.given = end;
        Ok(end == self.best.len())
    }

    fn save(&mut self, _fresh: bool) -> Vec<Piece> {
        let batches = self.rows.batches().to_vec();
        vec![Piece::whole(Kind::Rows, Saved::Picked { batches, places: self.places.freeze(), from: self.given })]
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        for part in &state.parts {
            let state::RestoredRows { batches, arrivals } = state::rows(part, None)?;
            let mut arrivals = arrivals.into_iter();
            for batch in batches {
                let arrivals: Vec<Arrival> = arrivals.by_ref().take(batch.rows).collect();
                self.see(batch, share, |row| arrivals.get(row).copied().unwrap_or_default(), &mut Vec::new())?;
            }
        }
        Ok(())
    }
}
