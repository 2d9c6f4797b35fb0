//! The right side of a join, whole, found by key.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array, ArrayRef};
use arrow_row::Rows;
use dfc_batch::{Batch, ColumnBuilder, concat};
use hashbrown::HashTable;

use crate::RunError;
use crate::rowkey::{KeyOrder, RowKeys, hash};
use crate::table::{BuildPart, TableShape};

/// End of a chain of rows with equal keys.
const NONE: u32 = u32::MAX;

/// All rows of a join's right side. Rows are numbered in the side's order.
pub(crate) struct JoinTable {
    rows: Batch,
    encoder: RowKeys,
    /// `None`: a join without keys, every row matches.
    keys: Option<Rows>,
    /// Hash and first row of each key.
    index: HashTable<(u64, u32)>,
    /// The next row of the same key.
    next: Vec<u32>,
    /// A bit a row: it had a partner.
    matched: Vec<AtomicU64>,
}

impl JoinTable {
    /// Makes the table of these rows.
    pub(crate) fn build(shape: &TableShape, parts: Vec<BuildPart>) -> Result<JoinTable, RunError> {
        let orders: Vec<_> = shape.keys.iter().map(|ty| (ty.clone(), KeyOrder::default())).collect();
        let encoder = RowKeys::new(shape.node.clone(), &orders)?;
        let count: usize = parts.iter().map(|part| part.batch.rows).sum();
        if count >= NONE as usize {
            let message = format!("its right side has {count} rows; at most {} can be held", NONE - 1);
            return Err(RunError::Internal { node: shape.node.to_string(), message });
        }
        let (mut batches, mut keys) = (Vec::new(), Vec::new());
        for part in parts.into_iter().filter(|part| part.batch.rows > 0) {
            keys.push(Batch::new(part.keys, part.batch.rows, 0));
            batches.push(part.batch);
        }
        if batches.is_empty() {
            let none = |types: &[dfc_ir::DataType]| types.iter().map(|ty| ColumnBuilder::new(ty, 0).finish()).collect();
            batches.push(Batch::new(none(&shape.columns), 0, 0));
            keys.push(Batch::new(none(&shape.keys), 0, 0));
        }
        let rows = concat(&batches);
        drop(batches);
        let keys = concat(&keys).columns;
        let encoded = if keys.is_empty() { None } else { Some(encoder.encode(&keys)?) };
        let mut table = JoinTable {
            encoder,
            keys: encoded,
            index: HashTable::with_capacity(count),
            next: vec![NONE; count],
            matched: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            rows,
        };
        // Last row first, so that each chain runs in the side's order.
        for row in (0..count as u32).rev().filter(|&row| !any_null(&keys, row as usize)) {
            table.insert(row);
        }
        Ok(table)
    }

    fn insert(&mut self, row: u32) {
        let JoinTable { keys, index, next, .. } = self;
        let key = |row: u32| keys.as_ref().map_or(&[][..], |keys| keys.row(row as usize).data());
        let hash = hash(key(row));
        match index.find_mut(hash, |&(h, first)| h == hash && key(first) == key(row)) {
            Some((_, first)) => {
                next[row as usize] = *first;
                *first = row;
            }
            None => {
                index.insert_unique(hash, (hash, row), |&(h, _)| h);
            }
        }
    }

    /// Pairs of left rows and right rows with equal keys: left rows ascending, their partners in the right side's order.
    pub(crate) fn probe(&self, keys: &[ArrayRef], rows: usize) -> Result<(Vec<u32>, Vec<u32>), RunError> {
        let encoded = if keys.is_empty() { None } else { Some(self.encoder.encode(keys)?) };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for row in (0..rows).filter(|&row| !any_null(keys, row)) {
            let key = encoded.as_ref().map_or(&[][..], |encoded| encoded.row(row).data());
            let hash = hash(key);
            let equal = |&(h, first): &(u64, u32)| {
                h == hash && self.keys.as_ref().is_none_or(|keys| keys.row(first as usize).data() == key)
            };
            let mut partner = self.index.find(hash, equal).map_or(NONE, |&(_, first)| first);
            while partner != NONE {
                left.push(row as u32);
                right.push(partner);
                partner = self.next[partner as usize];
            }
        }
        Ok((left, right))
    }

    /// All right columns; rows as [`JoinTable::probe`] numbers them.
    pub(crate) fn columns(&self) -> &[ArrayRef] {
        &self.rows.columns
    }

    /// These right rows have a partner.
    pub(crate) fn mark(&self, rows: &[u32]) {
        for &row in rows {
            self.matched[row as usize / 64].fetch_or(1 << (row % 64), Ordering::Relaxed);
        }
    }

    /// The right rows that were never marked.
    pub(crate) fn unmarked(&self) -> Vec<u32> {
        let marked = |row: u32| self.matched[row as usize / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1;
        (0..self.rows.rows as u32).filter(|&row| !marked(row)).collect()
    }
}

fn any_null(keys: &[ArrayRef], row: usize) -> bool {
    keys.iter().any(|key| key.is_null(row))
}
