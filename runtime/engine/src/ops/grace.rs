//! A join whose right side is on disk, divided by the hash of its keys: left rows are divided in the same way as they come, and when all have
//! come, one part after the other is joined. The result is put in the order of the left rows again, as if nothing had been on disk.
//!
//! A part that is too large is divided further. Rows of one key stay together: where they alone are too many the job ends.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_row::Rows;
use dfc_batch::{Batch, RowError, select};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Type};
use dfc_table::JoinTable;

use super::probe::{PreparedProbe, Probe};
use super::runs::{Merge, Runs};
use super::{Operator, Out, batch_rows};
use crate::RunError;
use crate::budget::{Budget, size};
use crate::rowkey::{KeyOrder, RowKeys, hash};
use crate::spill::{Block, PARTITIONS, Spill};
use crate::state::{self, Saved};
use crate::store::{Arrival, RowRef, RowStore, bytes_of};
use crate::table::TableShape;

/// How often a part may be divided.
const DEEPEST: u32 = 3;

/// One task's probe.
pub(super) struct Grace {
    probe: Arc<PreparedProbe>,
    budget: Arc<Budget>,
    right: Arc<Spill>,
    left: Option<Spill>,
    keys: RowKeys,
    errors: Vec<RowError>,
    /// The packet that came last, and the rows of it so far.
    last: Arrival,
    state: State,
}

enum State {
    /// Left rows are coming.
    Dividing,
    /// The result, in its order, with the batches that were given.
    Giving(Merge, u64),
    /// Another task gives the result.
    Nothing,
}

/// A block in a file.
type At = (Arc<Spill>, Block);

/// For each partition its rows, by the hash's bits at this depth. Rows with a null in their key have no partner, wherever they are: they are
/// spread, so that many of them don't have to fit together.
fn divide(keys: &RowKeys, of: &[ArrayRef], at: &[Arrival], depth: u32) -> Result<Vec<Vec<u32>>, RunError> {
    let mut rows = vec![Vec::new(); PARTITIONS];
    let nulls: Vec<&ArrayRef> = of.iter().filter(|column| column.null_count() > 0).collect();
    for (row, key) in keys.encode(of)?.iter().enumerate() {
        let hash = match nulls.iter().any(|column| column.is_null(row)) {
            true => hash(&at[row].1.to_le_bytes()),
            false => hash(key.as_ref()),
        };
        rows[(hash >> (depth * PARTITIONS.trailing_zeros())) as usize % PARTITIONS].push(row as u32);
    }
    Ok(rows)
}

/// An encoder of the keys of a join.
pub(crate) fn keys_of(shape: &TableShape) -> Result<RowKeys, RunError> {
    let types: Vec<_> = shape.keys.iter().map(|ty| (ty.clone(), KeyOrder::default())).collect();
    RowKeys::new(shape.node.clone(), &types)
}

/// Puts rows on disk, each in the partition of its key, with the places where they came.
pub(crate) fn put(
    spill: &mut Spill,
    keys: &RowKeys,
    rows: &Batch,
    of: &[ArrayRef],
    at: &[Arrival],
    depth: u32,
) -> Result<(), RunError> {
    let rows = Batch { origin: None, ..rows.clone() };
    for (partition, some) in divide(keys, of, at, depth)?.iter().enumerate().filter(|(_, some)| !some.is_empty()) {
        let arrivals = some.iter().map(|&row| at[row as usize]).collect();
        let rows = select(&rows, some);
        let held = bytes_of(&rows.columns);
        let saved = Saved::Rows { batches: vec![rows], arrivals };
        spill.write_held(partition, &saved.archive()?, held)?;
    }
    Ok(())
}

impl Grace {
    pub(super) fn open(probe: Arc<PreparedProbe>, right: Arc<Spill>, budget: &Arc<Budget>) -> Result<Grace, RunError> {
        let keys = keys_of(probe.table().shape())?;
        let left = Some(Spill::new(probe.node(), budget)?);
        let (errors, last, budget) = (Vec::new(), (0, 0), budget.clone());
        Ok(Grace { probe, budget, right, left, keys, errors, last, state: State::Dividing })
    }

    /// Joins all parts.
    fn join(&self, lefts: Vec<Spill>) -> Result<Merge, RunError> {
        let lefts: Vec<Arc<Spill>> = lefts.into_iter().map(Arc::new).collect();
        let mut joining = Joining { grace: self, runs: Runs::new(self.probe.node(), &self.budget)? };
        for partition in 0..PARTITIONS {
            let blocks = |spill: &Arc<Spill>| -> Vec<At> {
                spill.blocks(partition).into_iter().map(|block| (spill.clone(), block)).collect()
            };
            joining.part(blocks(&self.right), lefts.iter().flat_map(blocks).collect(), 0)?;
        }
        joining.runs.merge(&mut |batch| places(&self.probe, batch))
    }
}

/// The places of the rows of a result, which stand behind its columns.
fn places(probe: &PreparedProbe, batch: &Batch) -> Result<Rows, RunError> {
    let number = (DataType::of(Type::Int(IntType::U64)), KeyOrder::default());
    let keys = RowKeys::new(probe.node().into(), &vec![number; PLACE])?;
    keys.encode(&batch.columns[batch.columns.len() - PLACE..])
}

/// Columns of a place: 1 for a right row by itself, which come last; its packet and the row in it.
const PLACE: usize = 3;

/// Puts the places of its rows behind a batch's columns.
fn place(batch: &mut Batch, alone: bool, at: &dyn Fn(usize) -> Arrival) {
    let column =
        |of: &dyn Fn(usize) -> u64| Arc::new(UInt64Array::from_iter_values((0..batch.rows).map(of))) as ArrayRef;
    let places = [column(&|_| u64::from(alone)), column(&|row| at(row).0), column(&|row| at(row).1.into())];
    batch.columns.extend(places);
}

/// Rows that were read back, with their places.
#[derive(Default)]
struct Loaded {
    store: RowStore,
    rows: Vec<(RowRef, Arrival)>,
}

impl Loaded {
    fn load(&mut self, (spill, block): &At) -> Result<(), RunError> {
        let loaded = state::rows(&spill.read(*block)?, None)?;
        let mut arrivals = loaded.arrivals.into_iter();
        for batch in loaded.batches {
            let rows = 0..batch.rows as u32;
            let batch = self.store.add(batch);
            self.rows.extend(rows.map(|row| RowRef { batch, row }).zip(arrivals.by_ref()));
        }
        Ok(())
    }

    /// Some of them, as they stand.
    fn in_order(&self, rows: Range<usize>) -> (Batch, Vec<Arrival>) {
        let (refs, at): (Vec<RowRef>, Vec<Arrival>) = self.rows[rows].iter().copied().unzip();
        (self.store.gather(&refs, 0), at)
    }
}

/// Parts are being joined.
struct Joining<'g> {
    grace: &'g Grace,
    runs: Runs,
}

impl Joining<'_> {
    /// Joins what may be partners.
    fn part(&mut self, right: Vec<At>, left: Vec<At>, depth: u32) -> Result<(), RunError> {
        let grace = self.grace;
        let bytes: usize = right.iter().map(|(_, block)| block.held()).sum();
        if bytes > grace.budget.part() {
            return self.divided(right, left, bytes, depth + 1);
        }
        let TableShape { node, columns, keys, .. } = grace.probe.table().shape();
        // As the table would have them: partners in the right side's order.
        let mut some = Loaded::default();
        right.iter().try_for_each(|at| some.load(at))?;
        some.rows.sort_unstable_by_key(|(_, arrival)| *arrival);
        let (mut rows, of_right) = some.in_order(0..some.rows.len());
        let of = rows.columns.split_off(columns.len().min(rows.columns.len()));
        let parts = if rows.rows > 0 { vec![(rows, of)] } else { Vec::new() };
        let table = JoinTable::build(columns, keys, parts)
            .map_err(|error| RunError::Limit { node: node.to_string(), message: error.to_string() })?;
        let mut probe = Probe::of(&grace.probe, Arc::new(table));
        let mut some = Loaded::default();
        for at in &left {
            some.load(at)?;
            if some.store.bytes() > grace.budget.part() {
                self.matched(&mut probe, std::mem::take(&mut some))?;
            }
        }
        self.matched(&mut probe, some)?;
        let alone = probe.alone();
        for rows in alone.chunks(batch_rows()) {
            let mut batch = probe.without_left(rows);
            place(&mut batch, true, &|row| of_right[rows[row] as usize]);
            self.runs.extend(&batch)?;
        }
        if !alone.is_empty() {
            self.runs.end();
        }
        Ok(())
    }

    /// Joins left rows with a part of the right side: a run of the result.
    fn matched(&mut self, probe: &mut Probe, mut left: Loaded) -> Result<(), RunError> {
        left.rows.sort_unstable_by_key(|(_, arrival)| *arrival);
        let rows = left.rows.len();
        for start in (0..rows).step_by(batch_rows()) {
            let (batch, at) = left.in_order(start..rows.min(start + batch_rows()));
            probe.matched(&batch, &mut |left, mut joined| {
                place(&mut joined, false, &|row| at[left[row] as usize]);
                self.runs.extend(&joined)
            })?;
        }
        if rows > 0 {
            self.runs.end();
        }
        Ok(())
    }

    /// Divides a part further, and joins what comes of it.
    fn divided(&mut self, right: Vec<At>, left: Vec<At>, bytes: usize, depth: u32) -> Result<(), RunError> {
        let grace = self.grace;
        let TableShape { node, columns, keys, .. } = grace.probe.table().shape();
        let mut rights = Spill::new(node, &grace.budget)?;
        for (spill, block) in right {
            let rows = state::rows(&spill.read(block)?, Some(columns.len() + keys.len()))?;
            let mut at = rows.arrivals.into_iter();
            for batch in rows.batches {
                let at: Vec<Arrival> = at.by_ref().take(batch.rows).collect();
                put(&mut rights, &grace.keys, &batch, &batch.columns[columns.len()..], &at, depth)?;
            }
        }
        let parts = (0..PARTITIONS).filter(|part| !rights.blocks(*part).is_empty()).count();
        if depth > DEEPEST || (parts == 1 && depth == DEEPEST) {
            return Err(RunError::Memory {
                node: node.to_string(),
                message: format!(
                    "right rows of one key are joined in memory; they take {}, of which {} may be there at once",
                    size(bytes as u64),
                    size(grace.budget.part() as u64)
                ),
                help: "give the run more with `--memory`, or leave rows of that key out before the join".to_owned(),
            });
        }
        let mut lefts = Spill::new(grace.probe.node(), &grace.budget)?;
        for (spill, block) in left {
            let rows = state::rows(&spill.read(block)?, None)?;
            let mut at = rows.arrivals.into_iter();
            for batch in rows.batches {
                let at: Vec<Arrival> = at.by_ref().take(batch.rows).collect();
                let of = grace.probe.keys(&batch, &mut Vec::new()).columns;
                put(&mut lefts, &grace.keys, &batch, &of, &at, depth)?;
            }
        }
        let (rights, lefts) = (Arc::new(rights), Arc::new(lefts));
        for part in 0..PARTITIONS {
            let blocks = |spill: &Arc<Spill>| -> Vec<At> {
                spill.blocks(part).into_iter().map(|block| (spill.clone(), block)).collect()
            };
            self.part(blocks(&rights), blocks(&lefts), depth)?;
        }
        Ok(())
    }
}

impl Operator for Grace {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let mut errors = std::mem::take(&mut self.errors);
        let keys = self.probe.keys(&batch, &mut errors);
        out.report(&mut errors)?;
        self.errors = errors;
        let rows = match &keys.kept {
            Some(kept) => select(&batch, kept),
            None => batch,
        };
        if self.last.0 != rows.seq {
            self.last = (rows.seq, 0);
        }
        let first = self.last.1;
        self.last.1 += rows.rows as u32;
        let at: Vec<Arrival> = (first..self.last.1).map(|row| (rows.seq, row)).collect();
        let Some(mut left) = self.left.take() else { return Ok(()) };
        put(&mut left, &self.keys, &rows, &keys.columns, &at, 0)?;
        self.left = Some(left);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if let (State::Dividing, Some(left)) = (&self.state, self.left.take()) {
            self.state = match self.probe.hand_over(left) {
                Some(lefts) => {
                    out.note(format!("{} of its right side were joined on disk", size(self.right.held() as u64)));
                    State::Giving(self.join(lefts)?, 0)
                }
                None => State::Nothing,
            };
        }
        let State::Giving(merge, given) = &mut self.state else { return Ok(true) };
        let probe = self.probe.clone();
        let mut batch = merge.next(batch_rows(), *given, &mut |batch| places(&probe, batch))?;
        *given += 1;
        let done = merge.is_empty();
        batch.columns.truncate(probe.width());
        out.emit(batch)?;
        Ok(done)
    }
}
