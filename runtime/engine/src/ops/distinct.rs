//! One row a key: the first that arrives, passed on at once; or the first in an order, known only at the end.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;
use dfc_table::{Arena, KeyTable, Place, hash_key};

use super::{Operator, Out, batch_rows};
use crate::RunError;
use crate::budget::Account;
use crate::rowkey::{KeyOrder, RowKeys, hash};
use crate::spill::{PARTITIONS, Spill, partition_of};
use crate::state::{self, Change, KeyLengths, Kind, Piece, Restored, Saved, Share};
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
        let encoder = RowKeys::new(self.node.clone(), &types)?;
        let columns = self.keys.iter().map(|(column, _)| *column).collect();
        let keys = SeenKeys::new(encoder.width(&types)?);
        let seen = Seen { columns, encoder, keys };
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

/// Keys, numbered, in the form in which checkpoints and spills have them too.
struct SeenKeys {
    /// Bytes of every key, where they all have as many.
    width: Option<usize>,
    table: KeyTable,
    /// Where they don't: their lengths once more, for checkpoints.
    lengths: Arena,
}

/// Keys that are looked up together.
const AT_ONCE: usize = 64;

impl SeenKeys {
    fn new(width: Option<usize>) -> SeenKeys {
        SeenKeys { width, table: KeyTable::new(width), lengths: Arena::default() }
    }

    /// The key's number, and whether it is new; `hash` is its [`hash_key`].
    fn insert(&mut self, key: &[u8], hash: u64) -> (usize, bool) {
        let (number, new) = self.table.insert(key, hash);
        if new && self.width.is_none() {
            // A key is a part of a batch, and those have less than 2³² bytes.
            self.lengths.add(&(key.len() as u32).to_le_bytes());
        }
        (number, new)
    }

    /// Takes keys back that pass.
    fn take_back(&mut self, stored: &[u8], passes: impl Fn(&[u8]) -> bool) -> Result<(), RunError> {
        for key in state::seen(stored)?.iter().filter(|key| passes(key)) {
            if self.width.is_some_and(|width| width != key.len()) {
                return Err(RunError::State(format!("a key in it has {} bytes, which none of them has", key.len())));
            }
            self.insert(key, hash_key(key));
        }
        Ok(())
    }

    /// The keys from a number on, with the lengths from a place on; `None`: all.
    fn freeze(&self, from: Option<(usize, Place)>) -> Saved {
        let (first, place) = from.unzip();
        let first = first.unwrap_or(0);
        let lengths = match self.width {
            Some(width) => KeyLengths::All { width, keys: self.table.len() - first },
            None => KeyLengths::Each(self.lengths.freeze(place)),
        };
        Saved::Seen { bytes: self.table.freeze(first), lengths }
    }

    /// Bytes of memory that it holds.
    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.lengths.memory_bytes()
    }
}

/// The keys that have come.
struct Seen {
    columns: Vec<usize>,
    encoder: RowKeys,
    keys: SeenKeys,
}

impl Seen {
    fn encode(&self, batch: &Batch) -> Result<Option<Rows>, RunError> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = self.columns.iter().map(|&column| batch.columns[column].clone()).collect();
        self.encoder.encode(&columns).map(Some)
    }

    /// Forgets all keys.
    fn clear(&mut self) {
        self.keys = SeenKeys::new(self.keys.width);
    }

    /// The rows whose keys haven't come yet, of so many.
    fn new_rows(&mut self, rows: Option<&Rows>, count: usize) -> Vec<u32> {
        let mut new = Vec::new();
        let mut hashes = [0; AT_ONCE];
        for first in (0..count).step_by(AT_ONCE) {
            let hashes = &mut hashes[..AT_ONCE.min(count - first)];
            hashes.iter_mut().zip(first..).for_each(|(hash, row)| *hash = hash_key(key_of(rows, row)));
            self.keys.table.foresee(hashes.iter().copied());
            for (hash, row) in hashes.iter().zip(first..) {
                if self.keys.insert(key_of(rows, row), *hash).1 {
                    new.push(row as u32);
                }
            }
        }
        new
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
    /// How many keys were saved, and where their lengths end; `None`: none yet.
    saved: Option<(usize, Place)>,
}

impl FirstArrived {
    /// The rows whose keys haven't come yet.
    fn new_rows(&mut self, batch: &Batch) -> Result<Batch, RunError> {
        let keys = self.seen.encode(batch)?;
        let new = self.seen.new_rows(keys.as_ref(), batch.rows);
        Ok(if new.len() == batch.rows { batch.clone() } else { select(batch, &new) })
    }

    /// Puts the keys on disk, or the rows that carry them.
    fn put_away(&mut self) -> Result<(), RunError> {
        let Some(account) = &mut self.account else { return Ok(()) };
        match &mut self.later {
            None => {
                let mut spill = Spill::new(&self.node, account.budget())?;
                let keys = &self.seen.keys;
                let mut parts: Vec<SeenKeys> = (0..PARTITIONS).map(|_| SeenKeys::new(keys.width)).collect();
                for key in (0..keys.table.len()).map(|number| keys.table.get(number)) {
                    parts[partition_of(hash(key))].insert(key, hash_key(key));
                }
                for (partition, part) in parts.iter().enumerate() {
                    spill.write(partition, &part.freeze(None).archive()?)?;
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
        let bytes = self.seen.keys.memory_bytes() + waiting;
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
            self.seen.keys.take_back(&later.spill.read(block)?, |_| true)?;
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
        let keys = &self.seen.keys;
        self.saved = Some((keys.table.len(), keys.lengths.end()));
        let change = match before {
            None => Change::Replace,
            Some((saved, _)) if saved == keys.table.len() => Change::Keep,
            Some(_) => Change::Append,
        };
        let saved = keys.freeze(before);
        vec![Piece { kind: Kind::Seen, change, saved: (change != Change::Keep).then_some(saved) }]
    }

    fn restore(&mut self, state: &Restored, share: Share) -> Result<(), RunError> {
        for part in state.parts.all_for(share)? {
            self.seen.keys.take_back(&part, |key| owns(share, key))?;
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
            let (group, new) = self.seen.keys.insert(key, hash_key(key));
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
            parts[partition_of(hash(self.seen.keys.table.get(group)))].push(group);
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
        let bytes = self.seen.keys.memory_bytes() + self.rows.bytes() + best;
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
