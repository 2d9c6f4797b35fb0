//! Connectors that read and write batches in memory, for programs that embed the engine and for tests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use dfc_batch::{Batch, RowError};
use dfc_connect::{
    ConnectError, Encoded, Encoder, Next, OpenContext, Reader, Sink, SinkSummary, Source, SourceCounters,
};
use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};

use crate::ConnectorSet;

/// Named tables in memory. A connector's name is the table's: a source `orders` reads what was put under that name, a sink `out` leaves
/// its rows under its own.
#[derive(Clone, Default)]
pub struct MemoryConnectors {
    tables: Arc<Mutex<HashMap<String, Arc<Vec<Batch>>>>>,
}

impl MemoryConnectors {
    /// Puts a table in place: batches of all declared fields of the source that will read it.
    pub fn put(&self, name: &str, batches: Vec<Batch>) {
        self.lock().insert(name.to_owned(), Arc::new(batches));
    }

    /// A table: what was put, or what a finished sink left. `None`: neither.
    pub fn get(&self, name: &str) -> Option<Arc<Vec<Batch>>> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Vec<Batch>>>> {
        self.tables.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl ConnectorSet for MemoryConnectors {
    fn open_source(&self, spec: &SourceSpec, _cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
        let batches = self.get(&spec.connector).ok_or_else(|| ConnectError {
            code: "R0201",
            message: format!("there is no table `{}` in memory", spec.connector),
            help: Some("put it in place before the run".to_owned()),
        })?;
        Ok(Box::new(MemorySource {
            batches,
            projection: spec.projection.clone(),
            next: Arc::new(AtomicUsize::new(0)),
            counters: Arc::default(),
        }))
    }

    fn open_sink(&self, spec: &SinkSpec, _schema: &Schema, _cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
        Ok(Box::new(MemorySink { name: spec.connector.clone(), tables: self.clone(), written: Mutex::default() }))
    }
}

struct MemorySource {
    batches: Arc<Vec<Batch>>,
    projection: Vec<usize>,
    next: Arc<AtomicUsize>,
    counters: Arc<SourceCounters>,
}

impl Source for MemorySource {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        Ok(Box::new(MemoryReader {
            batches: self.batches.clone(),
            projection: self.projection.clone(),
            next: self.next.clone(),
            counters: self.counters.clone(),
        }))
    }

    fn total_bytes(&self) -> Option<u64> {
        None
    }

    fn max_tasks(&self) -> usize {
        self.batches.len().max(1)
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.counters.clone()
    }
}

struct MemoryReader {
    batches: Arc<Vec<Batch>>,
    projection: Vec<usize>,
    next: Arc<AtomicUsize>,
    counters: Arc<SourceCounters>,
}

impl Reader for MemoryReader {
    fn next(&mut self, _errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(batch) = self.batches.get(number) else { return Ok(Next::End) };
        self.counters.rows.fetch_add(batch.rows as u64, Ordering::Relaxed);
        let columns = self.projection.iter().map(|&column| batch.columns[column].clone()).collect();
        Ok(Next::Batch(Batch { columns, rows: batch.rows, seq: number as u64, origin: batch.origin.clone() }))
    }
}

struct MemorySink {
    name: String,
    tables: MemoryConnectors,
    written: Mutex<Vec<Batch>>,
}

impl Sink for MemorySink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(Box::new(AsTheyAre))
    }

    fn write(&self, encoded: Encoded, _rows: u64) -> Result<(), ConnectError> {
        match encoded {
            Encoded::Rows(batch) => self.written.lock().unwrap_or_else(|e| e.into_inner()).push(batch),
            // `AsTheyAre` gives rows only.
            Encoded::Bytes(_) | Encoded::Parts(_) => {}
        }
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let batches = std::mem::take(&mut *self.written.lock().unwrap_or_else(|e| e.into_inner()));
        let rows = batches.iter().map(|batch| batch.rows as u64).sum();
        self.tables.put(&self.name, batches);
        Ok(SinkSummary { target: Some(self.name.clone()), rows, bytes: 0 })
    }

    fn abort(&self) {
        self.written.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

struct AsTheyAre;

impl Encoder for AsTheyAre {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let rows = batch.rows as u64;
        Ok((Encoded::Rows(batch), rows))
    }
}
