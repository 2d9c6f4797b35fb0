//! The right side of a join, whole, found by key.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::ArrayRef;
use dfc_batch::{Batch, ColumnBuilder, concat};
use dfc_ir::{DataType, Type};

use crate::archive::DamagedState;
use crate::columns::KeyColumns;
use crate::fixed;
use crate::key::hash_key;
// Also the end of a chain.
use crate::numbers::{AT_ONCE, NONE, Numbers};

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

/// A free slot, or the hash of a key and the first of its rows.
#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    first: u32,
}

/// From keys to the first of their rows.
enum Keys {
    /// No key column: every row matches every row.
    All,
    /// One column of numbers of at most 64 bits.
    Numbers(Numbers),
    /// The packed keys, and where each row's ends; open addressing, a power of two, at least half of the slots free.
    Packed { bytes: Vec<u8>, ends: Vec<u64>, slots: Vec<Slot> },
}

/// All rows of a join's right side. They are numbered in the order in which they were given.
///
/// A row with a null among its keys has no partner. −0 equals 0.
pub struct JoinTable {
    rows: Batch,
    types: Vec<Type>,
    keys: Keys,
    /// The next row of the same key.
    next: Vec<u32>,
    /// No two rows have the same key.
    unique: bool,
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
            [one] if plain(one) => Keys::Numbers(Numbers::new(0, 0, 0)),
            _ => {
                let slots = vec![Slot { hash: 0, first: NONE }; (count * 2).next_power_of_two()];
                Keys::Packed { bytes: Vec::new(), ends: Vec::with_capacity(count), slots }
            }
        };
        let mut table = JoinTable {
            rows: Batch::new(Vec::new(), 0, 0),
            types,
            keys,
            next: vec![NONE; count],
            unique: true,
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
        let types = self.types.clone();
        let columns: Vec<KeyColumns> = parts.iter().map(|(_, keys)| KeyColumns::new(keys, &types)).collect();
        // Last row first: each is put before the ones that follow it.
        let rows = || {
            let parts = parts.iter().zip(&columns).rev();
            let rows = parts.flat_map(|((batch, _), columns)| (0..batch.rows).rev().map(move |row| (columns, row)));
            (0..count).rev().zip(rows).filter(|(_, (columns, row))| !columns.is_null(*row))
        };
        match &mut self.keys {
            Keys::All => {
                for (row, next) in self.next.iter_mut().enumerate() {
                    *next = if row + 1 < count { row as u32 + 1 } else { NONE };
                }
            }
            Keys::Numbers(table) => {
                let numbers = || rows().filter_map(|(row, (columns, of))| Some((row, columns.number(of)?)));
                let (least, largest) = numbers()
                    .fold((u64::MAX, 0), |(least, largest), (_, number)| (number.min(least), number.max(largest)));
                *table = Numbers::new(least, largest, count);
                for (row, number) in numbers() {
                    self.next[row] = table.put(number, row as u32);
                }
            }
            Keys::Packed { bytes, ends, slots } => {
                for ((batch, _), columns) in parts.iter().zip(&columns) {
                    for row in 0..batch.rows {
                        if !columns.is_null(row) {
                            columns.encode(row, bytes);
                        }
                        ends.push(bytes.len() as u64);
                    }
                }
                for (row, _) in rows() {
                    let key = packed(bytes, ends, row as u32);
                    let hash = hash_key(key);
                    let at = find(bytes, ends, slots, hash, key);
                    self.next[row] = slots[at].first;
                    slots[at] = Slot { hash, first: row as u32 };
                }
            }
        }
        self.unique = self.next.iter().all(|&next| next == NONE);
    }

    /// Pairs of left rows and right rows with equal keys: left rows ascending, their partners in the right side's order.
    /// `keys` are the left rows' key columns, of `rows` rows.
    pub fn probe(&self, keys: &[ArrayRef], rows: usize) -> (Vec<u32>, Vec<u32>) {
        let (mut left, mut right) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        if self.unique {
            self.first_partners(keys, rows, |row, partner| {
                left.push(row);
                right.push(partner);
            });
            return (left, right);
        }
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
        match &self.keys {
            Keys::All if self.next.is_empty() => {}
            Keys::All => (0..rows as u32).for_each(|row| with(row, 0)),
            Keys::Numbers(table) => {
                let (mut numbers, mut found) = ([0; AT_ONCE], [NONE; AT_ONCE]);
                for first in (0..rows).step_by(AT_ONCE) {
                    let count = AT_ONCE.min(rows - first);
                    let (numbers, found) = (&mut numbers[..count], &mut found[..count]);
                    // They are numbers, as the right side's are of the same type.
                    if !columns.numbers(first, numbers) {
                        return;
                    }
                    table.rows(numbers, found);
                    for (row, &partner) in (first..).zip(found.iter()) {
                        if partner != NONE && !columns.is_null(row) {
                            with(row as u32, partner);
                        }
                    }
                }
            }
            Keys::Packed { bytes, ends, slots } => {
                let mut key = Vec::new();
                for row in (0..rows).filter(|&row| !columns.is_null(row)) {
                    key.clear();
                    columns.encode(row, &mut key);
                    let partner = slots[find(bytes, ends, slots, hash_key(&key), &key)].first;
                    if partner != NONE {
                        with(row as u32, partner);
                    }
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

/// The packed key of a row.
fn packed<'b>(bytes: &'b [u8], ends: &[u64], row: u32) -> &'b [u8] {
    let start = (row as usize).checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start as usize..ends[row as usize] as usize]
}

/// Where the slot of a packed key is, or would be.
fn find(bytes: &[u8], ends: &[u64], slots: &[Slot], hash: u64, key: &[u8]) -> usize {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    loop {
        let slot = slots[at];
        if slot.first == NONE || slot.hash == hash && packed(bytes, ends, slot.first) == key {
            return at;
        }
        at = (at + 1) & mask;
    }
}
