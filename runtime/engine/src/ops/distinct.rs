//! One row a key: the first that arrives, passed on at once; or the first in an order, known only at the end.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;
use dfc_table::{Arena, Place};
use hashbrown::HashTable;

use super::{Operator, Out, batch_rows};
use crate::RunError;
use crate::budget::Account;
use crate::rowkey::{KeyOrder, RowKeys, hash};
use crate::spill::{PARTITIONS, Spill, partition_of};
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
    pub(crate) fn open(&self, account: Option<Account>) -> Result<Box<dyn Operator>, RunError> {
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
            None => {
                let (node, later) = (self.node.clone(), None);
                Box::new(FirstArrived { node, seen, account, later, saved: None })
            }
            Some((program, types)) => Box::new(FirstInOrder {
                node: self.node.clone(),
                seen,
                account,
                spill: None,
                partition: 0,
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

    /// Forgets all keys.
    fn clear(&mut self) {
        self.bytes = Arena::default();
        self.lengths = Arena::default();
        self.groups = Vec::new();
        self.table = HashTable::new();
    }

    /// A key by its number.
    fn key(&self, group: usize) -> &[u8] {
        let (place, length) = self.groups[group];
        self.bytes.get(place, length as usize)
    }

    /// Bytes of memory that it holds.
    fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes()
            + self.lengths.memory_bytes()
            + self.groups.capacity() * size_of::<(Place, u32)>()
            + self.table.allocation_size()
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

/// What a distinct goes on with once its keys are on disk: whether a row's key has come before is known only at the end.
struct Later {
    /// By partition the keys whose rows were given; behind them, by partition, the rows that came afterwards.
    spill: Spill,
    /// Rows that are not on disk yet: the first of their keys since keys were last put there.
    rows: RowStore,
    /// The partition that is to be given next.
    partition: usize,
}

struct FirstArrived {
    node: Arc<str>,
    seen: Seen,
    /// Where its keys are counted, if that matters.
    account: Option<Account>,
    later: Option<Later>,
    /// How many keys were saved, and where their bytes and lengths end; `None`: none yet.
    saved: Option<(usize, Place, Place)>,
}

impl FirstArrived {
    /// The rows whose keys haven't come yet.
    fn new_rows(&mut self, batch: &Batch) -> Result<Batch, RunError> {
        let keys = self.seen.encode(batch)?;
        let new = |&row: &u32| self.seen.insert(key_of(keys.as_ref(), row as usize)).1;
        let kept: Vec<u32> = (0..batch.rows as u32).filter(new).collect();
        Ok(select(batch, &kept))
    }

    /// Puts the keys on disk, or the rows that carry them.
    fn put_away(&mut self) -> Result<(), RunError> {
        let Some(account) = &mut self.account else { return Ok(()) };
        match &mut self.later {
            None => {
                let mut spill = Spill::new(&self.node, account.budget())?;
                let mut parts: Vec<(Arena, Arena)> = (0..PARTITIONS).map(|_| Default::default()).collect();
                for group in 0..self.seen.groups.len() {
                    let key = self.seen.key(group);
                    let (bytes, lengths) = &mut parts[partition_of(hash(key))];
                    bytes.add(key);
                    lengths.add(&self.seen.groups[group].1.to_le_bytes());
                }
                for (partition, (bytes, lengths)) in parts.iter().enumerate() {
                    let saved = Saved::Seen { bytes: bytes.freeze(None), lengths: lengths.freeze(None) };
                    spill.write(partition, &saved.archive()?)?;
                }
                self.later = Some(Later { spill, rows: RowStore::default(), partition: 0 });
            }
            Some(later) => {
                let mut parts: Vec<Vec<RowRef>> = vec![Vec::new(); PARTITIONS];
                for (number, batch) in later.rows.batches().iter().enumerate() {
                    let keys = self.seen.encode(batch)?;
                    for row in 0..batch.rows {
                        let partition = partition_of(hash(key_of(keys.as_ref(), row)));
                        parts[partition].push(RowRef { batch: number, row: row as u32 });
                    }
                }
                for (partition, rows) in parts.iter().enumerate() {
                    for some in rows.chunks(batch_rows()) {
                        let saved = Saved::Rows { batches: vec![later.rows.gather(some, 0)], arrivals: Vec::new() };
                        later.spill.write(PARTITIONS + partition, &saved.archive()?)?;
                    }
                }
                later.rows = RowStore::default();
            }
        }
        self.seen.clear();
        account.holds(0);
        Ok(())
    }
}

impl Operator for FirstArrived {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let new = self.new_rows(&batch)?;
        let waiting = match &mut self.later {
            None => {
                out.emit(new)?;
                0
            }
            Some(later) => {
                if new.rows > 0 {
                    later.rows.add(new);
                }
                later.rows.bytes()
            }
        };
        let bytes = self.seen.memory_bytes() + waiting;
        if self.account.as_mut().is_some_and(|account| account.holds(bytes)) {
            self.put_away()?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if self.later.as_ref().is_some_and(|later| later.rows.rows() > 0) {
            self.put_away()?;
        }
        let Some(later) = &mut self.later else { return Ok(true) };
        let partition = later.partition;
        later.partition += 1;
        let (keys, rows) = (later.spill.blocks(partition), later.spill.blocks(PARTITIONS + partition));
        self.seen.clear();
        for block in keys {
            for key in state::seen(&later.spill.read(block)?)? {
                self.seen.insert(&key);
            }
        }
        for block in rows {
            let Some(later) = &self.later else { break };
            for batch in state::rows(&later.spill.read(block)?, None)?.batches {
                let new = self.new_rows(&batch)?;
                out.emit(new)?;
            }
        }
        Ok(partition + 1 >= PARTITIONS)
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
        for part in state.parts.all_for(share)? {
            for key in state::seen(&part)?.iter().filter(|key| owns(share, key)) {
                self.seen.insert(key);
            }
        }
        Ok(())
    }
}

struct FirstInOrder {
    node: Arc<str>,
    seen: Seen,
    /// Where its rows are counted, if that matters.
    account: Option<Account>,
    /// The best rows of keys so far, by partition, and the partition that is to be given next.
    spill: Option<Spill>,
    partition: usize,
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

    /// Takes rows that were the best of their keys somewhere.
    fn take_back(&mut self, bytes: &[u8], share: Share) -> Result<(), RunError> {
        let state::RestoredRows { batches, arrivals } = state::rows(bytes, None)?;
        let mut arrivals = arrivals.into_iter();
        for batch in batches {
            let arrivals: Vec<Arrival> = arrivals.by_ref().take(batch.rows).collect();
            self.see(batch, share, |row| arrivals.get(row).copied().unwrap_or_default(), &mut Vec::new())?;
        }
        Ok(())
    }

    /// Puts the best rows on disk.
    fn put_away(&mut self) -> Result<(), RunError> {
        let Some(account) = &mut self.account else { return Ok(()) };
        let spill = match &mut self.spill {
            Some(spill) => spill,
            None => self.spill.insert(Spill::new(&self.node, account.budget())?),
        };
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); PARTITIONS];
        for group in 0..self.best.len() {
            parts[partition_of(hash(self.seen.key(group)))].push(group);
        }
        for (partition, groups) in parts.iter().enumerate() {
            for some in groups.chunks(batch_rows()) {
                let best = some.iter().filter_map(|&group| self.places.get(group).copied());
                let (arrivals, rows): (Vec<Arrival>, Vec<RowRef>) = best.unzip();
                let saved = Saved::Rows { batches: vec![self.rows.gather(&rows, 0)], arrivals };
                spill.write(partition, &saved.archive()?)?;
            }
        }
        self.forget();
        if let Some(account) = &mut self.account {
            account.holds(0);
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.seen.clear();
        self.best = Vec::new();
        self.places = Places::default();
        self.rows = RowStore::default();
    }

    /// Puts together the rows of the next partition: false where there is none.
    fn next_partition(&mut self) -> Result<bool, RunError> {
        let Some(spill) = self.spill.as_ref().filter(|spill| self.partition < spill.partitions()) else {
            return Ok(false);
        };
        let blocks = spill.blocks(self.partition);
        self.partition += 1;
        self.given = 0;
        self.forget();
        for block in blocks {
            let Some(spill) = &self.spill else { break };
            let bytes = spill.read(block)?;
            self.take_back(&bytes, Share { part: 0, parts: 1 })?;
        }
        Ok(true)
    }

    /// Rows that are no longer anyone's best are let go when they are most of what is held.
    fn compact(&mut self) {
        if self.rows.rows() > 2 * self.best.len() + batch_rows() {
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
        let best = self.best.iter().map(|best| size_of::<(Box<[u8]>, Arrival, RowRef)>() + best.len()).sum::<usize>();
        let bytes = self.seen.memory_bytes() + self.rows.bytes() + best;
        if self.account.as_mut().is_some_and(|account| account.holds(bytes)) {
            self.put_away()?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if self.spill.is_some() && self.partition == 0 && !self.best.is_empty() {
            self.put_away()?;
        }
        if self.given == self.best.len() && !self.next_partition()? {
            return Ok(true);
        }
        let end = self.best.len().min(self.given + batch_rows());
        let rows: Vec<RowRef> = (self.given..end).filter_map(|at| self.places.get(at)).map(|(_, row)| *row).collect();
        out.emit(self.rows.gather(&rows, (self.given / batch_rows()) as u64))?;
        self.given = end;
        let on_disk = self.spill.as_ref().is_some_and(|spill| self.partition < spill.partitions());
        Ok(end == self.best.len() && !on_disk)
    }

    fn save(&mut self, _fresh: bool) -> Vec<Piece> {
        let batches = self.rows.batches().to_vec();
        vec![Piece::whole(Kind::Rows, Saved::Picked { batches, places: self.places.freeze(), from: self.given })]
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        for part in state.parts.all_for(share)? {
            self.take_back(&part, share)?;
        }
        Ok(())
    }
}
