//! The sink that writes nowhere: rows are counted and forgotten.

use std::sync::atomic::{AtomicU64, Ordering};

use dfc_batch::{Batch, RowError};
use dfc_ir::Schema;
use dfc_ir::plan::SinkSpec;

use crate::{ConnectError, Encoded, Encoder, Ledger, OpenContext, Sealed, Sink, SinkSummary};

/// Opens it.
pub(crate) fn open_sink(_: &SinkSpec, _: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    let resume = cx.epochs.as_ref().and_then(|epochs| epochs.resume.as_ref());
    let before: u64 = resume.map_or(0, |resume| resume.sealed.iter().map(|sealed| sealed.rows).sum());
    Ok(Box::new(Discard { rows: AtomicU64::new(before), sealed: AtomicU64::new(before) }))
}

struct Discard {
    rows: AtomicU64,
    /// Those of them that were sealed.
    sealed: AtomicU64,
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

    fn epochs(&self) -> Result<(), String> {
        Ok(())
    }

    fn visible_at_end(&self) -> bool {
        // What counts is the number of all rows: every epoch is kept in the checkpoints.
        true
    }

    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        let rows = self.rows.load(Ordering::Relaxed);
        let before = self.sealed.swap(rows, Ordering::Relaxed);
        Ok(Sealed { number, rows: rows - before, bytes: 0, files: Vec::new(), state: serde_json::Value::Null })
    }

    fn apply(&self, _sealed: &Sealed) -> Result<(), ConnectError> {
        Ok(())
    }

    fn ledger(&self) -> Result<Ledger, ConnectError> {
        Ok(Ledger::Idempotent)
    }
}
