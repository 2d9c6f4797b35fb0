//! Rows that an operator holds to the end: whole batches, and rows of them picked out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use dfc_batch::Batch;
use dfc_table::{FrozenShelves, Shelves};

/// Where a row stood in the input: its batch's number, and the row in it.
pub(crate) type Arrival = (u64, u32);

/// Places on a shelf: the first one that changes after a checkpoint copies them all.
const SHELF: usize = 256;

/// Held rows and where they stood in the input.
pub(crate) type Places = Shelves<(Arrival, RowRef), SHELF>;

/// The same as they were at a barrier.
pub(crate) type FrozenPlaces = FrozenShelves<(Arrival, RowRef), SHELF>;

/// A held row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowRef {
    /// Number of the held batch.
    pub(crate) batch: usize,
    /// Row in it.
    pub(crate) row: u32,
}

/// Held batches of the same columns.
#[derive(Default)]
pub(crate) struct RowStore {
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
}

impl RowStore {
    /// Holds a batch: its number.
    pub(crate) fn add(&mut self, batch: Batch) -> usize {
        self.rows += batch.rows;
        let batch = to_hold(batch);
        self.bytes += bytes_of(&batch.columns);
        self.batches.push(batch);
        self.batches.len() - 1
    }

    /// Rows held.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Their bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The batches held.
    pub(crate) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// These rows as a batch.
    pub(crate) fn gather(&self, rows: &[RowRef], seq: u64) -> Batch {
        gather(&self.batches, rows, seq)
    }

    /// Lets go of all rows but these: where they are now.
    pub(crate) fn keep(&mut self, rows: &[RowRef]) -> Vec<RowRef> {
        let kept = self.gather(rows, 0);
        *self = RowStore::default();
        let batch = self.add(kept);
        (0..rows.len() as u32).map(|row| RowRef { batch, row }).collect()
    }
}

/// These rows of batches of the same columns as a batch.
pub(crate) fn gather(batches: &[Batch], rows: &[RowRef], seq: u64) -> Batch {
    let Some(first) = batches.first() else { return Batch::new(Vec::new(), 0, seq) };
    let indices: Vec<(usize, usize)> = rows.iter().map(|at| (at.batch, at.row as usize)).collect();
    let column = |column: usize| -> ArrayRef {
        let parts: Vec<_> = batches.iter().map(|batch| batch.columns[column].as_ref()).collect();
        // The batches have the same columns; what else could fail is a list column of over 2³¹ items.
        arrow_select::interleave::interleave(&parts, &indices)
            .unwrap_or_else(|e| panic!("rows picked from held batches: {e}"))
    };
    Batch::new((0..first.columns.len()).map(column).collect(), rows.len(), seq)
}

/// Bytes of arrays, about: what their rows take, whoever else holds the memory behind them.
pub(crate) fn bytes_of(columns: &[ArrayRef]) -> usize {
    let of = |column: &ArrayRef| match (column.as_string_view_opt(), column.as_binary_view_opt()) {
        (Some(texts), _) => texts.total_buffer_bytes_used() + VIEW * texts.len(),
        (_, Some(bytes)) => bytes.total_buffer_bytes_used() + VIEW * bytes.len(),
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
    };
    columns.iter().map(of).sum()
}

/// Bytes of a view.
const VIEW: usize = 16;

/// Texts that use less than half of the memory they hold on to are copied.
const WORTH_COPYING: usize = 64 * 1024;

/// A batch to be held to the end: without the text it was read from, neither as origin nor behind its strings.
pub(crate) fn to_hold(batch: Batch) -> Batch {
    Batch { columns: batch.columns.into_iter().map(compact).collect(), origin: None, ..batch }
}

fn compact(column: ArrayRef) -> ArrayRef {
    if let Some(texts) = column.as_string_view_opt() {
        return compact_views(texts).unwrap_or(column);
    }
    if let Some(bytes) = column.as_binary_view_opt() {
        return compact_views(bytes).unwrap_or(column);
    }
    column
}

fn compact_views<T: ByteViewType>(column: &GenericByteViewArray<T>) -> Option<ArrayRef> {
    let held: usize = column.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    let wasteful = held > WORTH_COPYING && column.total_buffer_bytes_used() * 2 < held;
    wasteful.then(|| Arc::new(column.gc()) as ArrayRef)
}
