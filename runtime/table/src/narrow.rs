//! Sums in 64 bits: what passes them is carried beside the rows; and rows as tables hold them, made rows as checkpoints store them and
//! back. It may not know groups or pages.

use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::layout::{StateLayout, sizes};

/// What sums carry beside their 64 bits, by row and aggregate. Hardly any ever does.
#[derive(Clone, Default)]
pub(crate) struct Carried(HashMap<(u32, u32), i128, FixedState>);

impl Carried {
    /// Whether no sum carries anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a sum carries.
    pub fn of(&self, row: usize, aggregate: usize) -> i128 {
        if self.0.is_empty() {
            return 0;
        }
        self.0.get(&(row as u32, aggregate as u32)).copied().unwrap_or(0)
    }

    /// A sum carries so much more.
    pub fn add(&mut self, row: usize, aggregate: usize, more: i128) {
        let carried = self.0.entry((row as u32, aggregate as u32)).or_insert(0);
        // Sums of arguments can't come near the end; one that was stored by somebody else stays out of range.
        *carried = carried.saturating_add(more);
    }

    /// It carries exactly this.
    pub fn set(&mut self, row: usize, aggregate: usize, carried: i128) {
        let place = (row as u32, aggregate as u32);
        if carried == 0 {
            if !self.0.is_empty() {
                self.0.remove(&place);
            }
        } else {
            self.0.insert(place, carried);
        }
    }

    /// Bytes of memory, about.
    pub fn memory_bytes(&self) -> usize {
        self.0.len() * size_of::<((u32, u32), i128)>()
    }
}

/// Rows in memory and rows as they are stored, where these differ.
pub(crate) struct Forms {
    held: StateLayout,
    stored: StateLayout,
}

impl Forms {
    /// `None`: rows are stored as they are held.
    pub fn new(held: &StateLayout, stored: StateLayout) -> Option<Arc<Forms>> {
        (*held != stored).then(|| Arc::new(Forms { held: held.clone(), stored }))
    }

    /// How rows are stored.
    pub fn stored(&self) -> &StateLayout {
        &self.stored
    }

    /// Appends a page as it is stored; those of its rows that aren't in use are zeros.
    pub fn store_page(&self, rows: Range<usize>, held: &[u8], carried: &Carried, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + held.len() / self.held.row_bytes * self.stored.row_bytes, 0);
        let stored = to[start..].chunks_exact_mut(self.stored.row_bytes);
        for ((row, held), stored) in rows.zip(held.chunks_exact(self.held.row_bytes)).zip(stored) {
            self.store(row, held, carried, stored);
        }
    }

    /// A page as it is held, whose first row has this number.
    pub fn hold_page(&self, first: usize, stored: &[u8], carried: &mut Carried) -> Vec<u8> {
        let mut held = vec![0; stored.len() / self.stored.row_bytes * self.held.row_bytes];
        let rows = stored.chunks_exact(self.stored.row_bytes).zip(held.chunks_exact_mut(self.held.row_bytes));
        for (row, (stored, held)) in (first..).zip(rows) {
            self.hold(row, stored, carried, held);
        }
        held
    }

    /// Writes row number `row` as it is stored; `to` is all zeros.
    fn store(&self, row: usize, held: &[u8], carried: &Carried, to: &mut [u8]) {
        for (aggregate, (from, slot)) in self.held.slots.iter().zip(&self.stored.slots).enumerate() {
            let (first, second) = sizes(slot.kind);
            if from.kind == slot.kind {
                to[slot.offset..slot.offset + first].copy_from_slice(&held[from.offset..from.offset + first]);
            } else {
                let sum = i128::from(narrow_at(held, from.offset)).saturating_add(carried.of(row, aggregate));
                to[slot.offset..slot.offset + 16].copy_from_slice(&sum.to_le_bytes());
            }
            if second > 0 && from.second == from.offset {
                // It has no byte for that: whoever is there was seen.
                to[slot.second] = 1;
            } else {
                to[slot.second..slot.second + second].copy_from_slice(&held[from.second..from.second + second]);
            }
        }
    }

    /// Writes row number `row` as it is held.
    pub fn hold(&self, row: usize, stored: &[u8], carried: &mut Carried, to: &mut [u8]) {
        for (aggregate, (slot, from)) in self.held.slots.iter().zip(&self.stored.slots).enumerate() {
            let (first, second) = sizes(from.kind);
            if from.kind == slot.kind {
                to[slot.offset..slot.offset + first].copy_from_slice(&stored[from.offset..from.offset + first]);
            } else {
                let mut wide = [0; 16];
                wide.copy_from_slice(&stored[from.offset..from.offset + 16]);
                let sum = i128::from_le_bytes(wide);
                let (narrow, rest) = i64::try_from(sum).map_or((0, sum), |narrow| (narrow, 0));
                to[slot.offset..slot.offset + 8].copy_from_slice(&narrow.to_le_bytes());
                carried.set(row, aggregate, rest);
            }
            if slot.second != slot.offset {
                to[slot.second..slot.second + second].copy_from_slice(&stored[from.second..from.second + second]);
            }
        }
    }
}

fn narrow_at(row: &[u8], offset: usize) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&row[offset..offset + 8]);
    i64::from_le_bytes(bytes)
}
