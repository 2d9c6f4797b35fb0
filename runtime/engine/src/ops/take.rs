//! The first rows, after some that are left out.

use dfc_batch::{Batch, select};

use super::{Operator, Out};
use crate::RunError;

/// How many.
pub(crate) struct PreparedTake {
    pub(crate) limit: u64,
    pub(crate) offset: u64,
}

impl PreparedTake {
    pub(crate) fn open(&self) -> Box<dyn Operator> {
        Box::new(Take { skip: self.offset, left: self.limit })
    }
}

struct Take {
    skip: u64,
    left: u64,
}

impl Operator for Take {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let rows = batch.rows as u64;
        let skipped = self.skip.min(rows);
        let taken = self.left.min(rows - skipped);
        self.skip -= skipped;
        self.left -= taken;
        if taken == rows {
            return out.emit(batch);
        }
        // A batch has less than 2³² rows.
        let kept: Vec<u32> = (skipped as u32..(skipped + taken) as u32).collect();
        out.emit(select(&batch, &kept))
    }

    fn finish(&mut self, _out: &mut Out<'_>) -> Result<bool, RunError> {
        Ok(true)
    }

    fn satisfied(&self) -> bool {
        self.left == 0
    }
}
