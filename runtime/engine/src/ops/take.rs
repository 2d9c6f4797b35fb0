//! The first rows, after some that are left out.

use dfc_batch::{Batch, select};

use super::{Operator, Out};
use crate::RunError;
use crate::state::{self, Kind, Piece, Restored, Saved, Share};

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

    fn save(&mut self, _fresh: bool) -> Vec<Piece> {
        vec![Piece::whole(Kind::Numbers, Saved::Numbers(vec![self.skip, self.left]))]
    }

    fn restore(&mut self, state: &Restored, _share: Share) -> Result<(), RunError> {
        for part in state.parts.all()? {
            match state::numbers(&part)?[..] {
                // One task takes: it has counted for all.
                [skip, left] if skip <= self.skip && left <= self.left => (self.skip, self.left) = (skip, left),
                _ => return Err(RunError::State("what was taken before doesn't fit what is to be taken".into())),
            }
        }
        Ok(())
    }

    fn satisfied(&self) -> bool {
        self.left == 0
    }
}
