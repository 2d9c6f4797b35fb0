//! A join table between the stage that builds it and those that probe it: filled by all building tasks, complete once.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use arrow_array::ArrayRef;
use dfc_batch::Batch;
use dfc_ir::DataType;
use dfc_table::JoinTable;
use dfc_trial::turns;

use crate::RunError;
use crate::schedule::{Scheduler, TaskId};

/// Rows for a join table, with their keys.
pub(crate) struct BuildPart {
    /// Number of the packet they came from: the right side's order, where it has one.
    pub(crate) seq: u64,
    /// The rows.
    pub(crate) batch: Batch,
    /// Their keys.
    pub(crate) keys: Vec<ArrayRef>,
}

struct Filling {
    parts: Vec<BuildPart>,
    /// Tasks that may still add.
    tasks: usize,
    waiting: Vec<TaskId>,
}

/// The place of a join table.
pub(crate) struct TableSlot {
    filling: Mutex<Filling>,
    table: OnceLock<Arc<JoinTable>>,
    /// Types of columns and keys, for a side without a row.
    shape: TableShape,
    scheduler: Arc<Scheduler>,
}

/// What a join table holds.
#[derive(Debug, Clone)]
pub(crate) struct TableShape {
    /// The operator's name, for messages.
    pub(crate) node: Arc<str>,
    /// Types of the columns.
    pub(crate) columns: Vec<DataType>,
    /// Types of the keys.
    pub(crate) keys: Vec<DataType>,
}

impl Default for TableShape {
    fn default() -> Self {
        TableShape { node: "join".into(), columns: Vec::new(), keys: Vec::new() }
    }
}

impl TableSlot {
    pub(crate) fn new(tasks: usize, shape: TableShape, scheduler: Arc<Scheduler>) -> TableSlot {
        let filling = Mutex::new(Filling { parts: Vec::new(), tasks, waiting: Vec::new() });
        TableSlot { filling, table: OnceLock::new(), shape, scheduler }
    }

    /// Puts rows in place that a checkpoint kept.
    pub(crate) fn preload(&self, parts: Vec<BuildPart>) {
        self.lock().parts.extend(parts);
    }

    /// Whether it is complete; if not, `task` is woken when it is.
    pub(crate) fn wait(&self, task: TaskId) -> bool {
        let mut filling = self.lock();
        if self.table.get().is_some() {
            return true;
        }
        if !filling.waiting.contains(&task) {
            filling.waiting.push(task);
        }
        false
    }

    /// The table. `None` before it is complete.
    pub(crate) fn get(&self) -> Option<Arc<JoinTable>> {
        self.table.get().cloned()
    }

    /// A building task has ended, with these rows. The last one makes the table.
    pub(crate) fn task_done(&self, parts: Vec<BuildPart>) -> Result<(), RunError> {
        let mut filling = self.lock();
        filling.parts.extend(parts);
        filling.tasks -= 1;
        if filling.tasks > 0 {
            return Ok(());
        }
        let mut parts = std::mem::take(&mut filling.parts);
        drop(filling);
        turns::pass();
        // Stable: the batches that one packet became stay in their order.
        parts.sort_by_key(|part| part.seq);
        let TableShape { node, columns, keys } = &self.shape;
        let parts = parts.into_iter().map(|part| (part.batch, part.keys)).collect();
        let table = JoinTable::build(columns, keys, parts)
            .map_err(|error| RunError::Limit { node: node.to_string(), message: error.to_string() })?;
        let mut filling = self.lock();
        // Nobody else sets it: this was the last task.
        let _ = self.table.set(Arc::new(table));
        let woken = std::mem::take(&mut filling.waiting);
        drop(filling);
        self.scheduler.wake_all(woken);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Filling> {
        self.filling.lock().unwrap_or_else(|e| e.into_inner())
    }
}
