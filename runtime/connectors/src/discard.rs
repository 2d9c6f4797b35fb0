//! The sink that writes nowhere: rows are counted and forgotten.

use std::sync::atomic::{AtomicU64, Ordering};

use dfc_batch::{Batch, RowError};
use dfc_ir::Schema;
use dfc_ir::plan::SinkSpec;

use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink, SinkSummary};

/// Opens it.
pub(crate) fn open_sink(_: &SinkSpec, _: &Schema, _: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    Ok(Box::new(Discard { rows: AtomicU64::new(0) }))
}

struct Discard {
    rows: AtomicU64,
}

struct Forget;

impl Encoder for Forget {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        Ok((Encoded::Bytes(Vec::new()), batch.rows as u64))
    }
}

impl Sink for Discard {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(Box::new(Forget))
    }

    fn write(&self, _encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        Ok(SinkSummary { target: None, rows: self.rows.load(Ordering::Relaxed), bytes: 0 })
    }

    fn abort(&self) {}
}
