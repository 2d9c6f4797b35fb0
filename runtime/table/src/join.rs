//! The right side of a join, whole, found by key.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::ArrayRef;
use dfc_batch::{Batch, ColumnBuilder, concat};
use dfc_ir::{DataType, Type};

use crate::archive::DamagedState;
use crate::columns::KeyColumns;
use crate::fixed;
use crate::key::{HASH_SEED, HASH_WORD, fold, hash_key};

/// No row: the end of a chain, or a free slot.
const NONE: u32 = u32::MAX;

/// Rows whose slots are looked up together.
const PROBED_AT_ONCE: usize = 64;

/// The right side has more rows than can be numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyRows(
    /// How many it has.
    pub usize,
);

impl fmt::Display for TooManyRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the right side of a join has {} rows; at most {} can be held", self.0, NONE - 1)
    }
}

impl std::error::Error for TooManyRows {}

/// A free slot, or a key and the first of its rows.
#[derive(Clone, Copy)]
struct Slot {
    /// The key itself where it is a number, else its hash.
    key: u64,
    first: u32,
}

/// The keys of all rows, for those that a slot doesn't hold whole.
enum Keys {
    /// No key column: every row matches every row.
    All,
    /// One column of numbers of at most 64 bits.
    Numbers,
    /// The packed keys, and where each row's ends.
    Packed { bytes: Vec<u8>, ends: Vec<u64> },
}

/// All rows of a join's right side. They are numbered in the order in which they were given.
///
/// A row with a null among its keys has no partner. −0 equals 0.
pub struct JoinTable {
    rows: Batch,
    types: Vec<Type>,
    keys: Keys,
    /// Open addressing; a power of two, at least half of them free.
    slots: Vec<Slot>,
    /// The next row of the same key.
    next: Vec<u32>,
    /// A bit a row: it had a partner.
    matched: Vec<AtomicU64>,
}

impl JoinTable {
    /// The table of the rows of these batches, each with its key columns. `columns` and `keys` are the types of the
    /// right columns and of the key columns; the left keys have the same types, nullability aside.
    pub fn build(
        columns: &[DataType],
        keys: &[DataType],
        parts: Vec<(Batch, Vec<ArrayRef>)>,
    ) -> Result<JoinTable, TooManyRows> {
        let count: usize = parts.iter().map(|(batch, _)| batch.rows).sum();
        if count >= NONE as usize {
            return Err(TooManyRows(count));
        }
        let types: Vec<Type> = keys.iter().map(|key| key.ty.clone()).collect();
        let plain = |ty: &Type| fixed::width(ty).is_some_and(|width| width <= 8) && !ty.is_float() && *ty != Type::Bool;
        let keys = match &types[..] {
            [] => Keys::All,
            [one] if plain(one) => Keys::Numbers,
            _ => Keys::Packed { bytes: Vec::new(), ends: Vec::with_capacity(count) },
        };
        let mut table = JoinTable {
            rows: Batch::new(Vec::new(), 0, 0),
            types,
            keys,
            slots: vec![Slot { key: 0, first: NONE }; (count * 2).next_power_of_two().max(2)],
            next: vec![NONE; count],
            matched: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        };
        table.index(&parts, count);
        let mut batches: Vec<Batch> =
            parts.into_iter().map(|(batch, _)| batch).filter(|batch| batch.rows > 0).collect();
        if batches.is_empty() {
            batches.push(Batch::new(columns.iter().map(|ty| ColumnBuilder::new(ty, 0).finish()).collect(), 0, 0));
        }
        table.rows = concat(&batches);
        Ok(table)
    }

    /// Chains the rows of each key in their order.
    fn index(&mut self, parts: &[(Batch, Vec<ArrayRef>)], count: usize) {
        if matches!(self.keys, Keys::All) {
            for (row, next) in self.next.iter_mut().enumerate() {
                *next = if row + 1 < count { row as u32 + 1 } else { NONE };
            }
            return;
        }
        let types = self.types.clone();
        let columns: Vec<KeyColumns> = parts.iter().map(|(_, keys)| KeyColumns::new(keys, &types)).collect();
        if let Keys::Packed { bytes, ends } = &mut self.keys {
            for ((batch, _), columns) in parts.iter().zip(&columns) {
                for row in 0..batch.rows {
                    if !columns.is_null(row) {
                        columns.encode(row, bytes);
                    }
                    ends.push(bytes.len() as u64);
                }
            }
        }
        // Last row first: each is put before the ones that follow it.
        let mut number = count as u32;
        for ((batch, _), columns) in parts.iter().zip(&columns).rev() {
            for row in (0..batch.rows).rev() {
                number -= 1;
                if columns.is_null(row) {
                    continue;
                }
                let packed = match &self.keys {
                    Keys::Packed { .. } => self.packed(number),
                    _ => &[],
                };
                let key = columns.number(row).unwrap_or_else(|| hash_key(packed));
                let at = self.find(key, packed);
                self.next[number as usize] = self.slots[at].first;
                self.slots[at] = Slot { key, first: number };
            }
        }
    }

    /// The packed key of a row.
    fn packed(&self, row: u32) -> &[u8] {
        match &self.keys {
            Keys::Packed { bytes, ends } => {
                let start = (row as usize).checked_sub(1).map_or(0, |before| ends[before]);
                &bytes[start as usize..ends[row as usize] as usize]
            }
            Keys::All | Keys::Numbers => &[],
        }
    }

    /// Where the search for a key begins.
    fn place(&self, key: u64) -> usize {
        let numbers = matches!(self.keys, Keys::Numbers);
        let hash = if numbers { fold(key ^ HASH_SEED, HASH_WORD) } else { key };
        hash as usize & (self.slots.len() - 1)
    }

    /// Where the slot of this key is, or would be.
    fn find(&self, key: u64, packed: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let numbers = matches!(self.keys, Keys::Numbers);
        let mut at = self.place(key);
        loop {
            let slot = self.slots[at];
            if slot.first == NONE || slot.key == key && (numbers || self.packed(slot.first) == packed) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Pairs of left rows and right rows with equal keys: left rows ascending, their partners in the right side's order.
    /// `keys` are the left rows' key columns, of `rows` rows.
    pub fn probe(&self, keys: &[ArrayRef], rows: usize) -> (Vec<u32>, Vec<u32>) {
        let (mut left, mut right) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        self.first_partners(keys, rows, |row, mut partner| {
            while partner != NONE {
                left.push(row);
                right.push(partner);
                partner = self.next[partner as usize];
            }
        });
        (left, right)
    }

    /// The rows that have a partner, ascending. `keys` are their key columns, of `rows` rows.
    pub fn partnered(&self, keys: &[ArrayRef], rows: usize) -> Vec<u32> {
        let mut found = Vec::with_capacity(rows);
        self.first_partners(keys, rows, |row, _| found.push(row));
        found
    }

    /// Hands on each row that has a partner, with the first one.
    fn first_partners(&self, keys: &[ArrayRef], rows: usize, mut with: impl FnMut(u32, u32)) {
        let columns = KeyColumns::new(keys, &self.types);
        let mut packed = Vec::new();
        let mut numbers = [0; PROBED_AT_ONCE];
        for first in (0..rows).step_by(PROBED_AT_ONCE) {
            let block = first..rows.min(first + PROBED_AT_ONCE);
            let numbers = &mut numbers[..block.len()];
            if matches!(self.keys, Keys::Numbers) && columns.numbers(first, numbers) {
                // Loads that don't wait for each other: what follows finds the slots in the cache.
                let slots = numbers.iter().map(|&number| self.slots[self.place(number)].key);
                std::hint::black_box(slots.fold(0, |all, slot| all ^ slot));
            }
            for row in block.filter(|&row| !columns.is_null(row)) {
                let partner = match self.keys {
                    Keys::All if self.next.is_empty() => NONE,
                    Keys::All => 0,
                    Keys::Numbers => self.slots[self.find(numbers[row - first], &[])].first,
                    Keys::Packed { .. } => {
                        packed.clear();
                        columns.encode(row, &mut packed);
                        self.slots[self.find(hash_key(&packed), &packed)].first
                    }
                };
                if partner != NONE {
                    with(row as u32, partner);
                }
            }
        }
    }

    /// All right columns; rows as [`JoinTable::probe`] numbers them.
    pub fn columns(&self) -> &[ArrayRef] {
        &self.rows.columns
    }

    /// Number of right rows.
    pub fn rows(&self) -> usize {
        self.rows.rows
    }

    /// Notes that these right rows have a partner. Tasks may do so at once.
    pub fn mark(&self, rows: &[u32]) {
        for &row in rows {
            self.matched[row as usize / 64].fetch_or(1 << (row % 64), Ordering::Relaxed);
        }
    }

    /// The marks: a bit a row.
    pub fn marks(&self) -> Vec<u64> {
        self.matched.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    /// Marks the rows that are marked there too. Tasks may do so at once.
    ///
    /// # Errors
    /// When the marks are those of a table with another number of rows.
    pub fn set_marks(&self, marks: &[u64]) -> Result<(), DamagedState> {
        if marks.len() != self.matched.len() {
            let (given, wanted) = (marks.len(), self.matched.len());
            return Err(DamagedState(format!("marks of {given} × 64 rows were kept, the table has {wanted} × 64")));
        }
        for (word, marks) in self.matched.iter().zip(marks) {
            word.fetch_or(*marks, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The right rows that were never marked, ascending.
    pub fn unmarked(&self) -> Vec<u32> {
        let marked = |row: u32| self.matched[row as usize / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1;
        (0..self.rows.rows as u32).filter(|&row| !marked(row)).collect()
    }
}
