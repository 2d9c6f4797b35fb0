//! A join table between the stage that builds it and those that probe it: filled by all building tasks, complete once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use arrow_array::ArrayRef;
use dfc_batch::Batch;
use dfc_ir::DataType;
use dfc_table::JoinTable;
use dfc_trial::turns;

use crate::RunError;
use crate::budget::{Budget, Stays};
use crate::ops::{keys_of, put};
use crate::schedule::{Scheduler, TaskId};
use crate::spill::Spill;

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
    /// Where rows go that are too many for memory, once they are.
    disk: Option<Spill>,
    /// Rows there.
    written: u32,
}

/// The place of a join table.
pub(crate) struct TableSlot {
    filling: Mutex<Filling>,
    table: OnceLock<Arc<JoinTable>>,
    /// In place of the table: its rows, divided by their keys.
    divided: OnceLock<Arc<Spill>>,
    /// Rows go to disk now.
    on_disk: AtomicBool,
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
    /// Why it has to be in memory; `None`: it may go to disk, where no checkpoints are taken.
    pub(crate) stays: Option<Stays>,
}

impl Default for TableShape {
    fn default() -> Self {
        TableShape { node: "join".into(), columns: Vec::new(), keys: Vec::new(), stays: None }
    }
}

impl TableSlot {
    pub(crate) fn new(tasks: usize, shape: TableShape, scheduler: Arc<Scheduler>) -> TableSlot {
        let filling = Mutex::new(Filling { parts: Vec::new(), tasks, waiting: Vec::new(), disk: None, written: 0 });
        let (table, divided, on_disk) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
        TableSlot { filling, table, divided, on_disk, shape, scheduler }
    }

    /// Puts rows in place that a checkpoint kept.
    pub(crate) fn preload(&self, parts: Vec<BuildPart>) {
        self.lock().parts.extend(parts);
    }

    /// Whether it is complete; if not, `task` is woken when it is.
    pub(crate) fn wait(&self, task: TaskId) -> bool {
        let mut filling = self.lock();
        if self.table.get().is_some() || self.divided.get().is_some() {
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

    /// What stands on disk in place of the table. `None`: it isn't complete, or in memory.
    pub(crate) fn divided(&self) -> Option<Arc<Spill>> {
        self.divided.get().cloned()
    }

    /// What it holds.
    pub(crate) fn shape(&self) -> &TableShape {
        &self.shape
    }

    /// Whether rows go to disk.
    pub(crate) fn on_disk(&self) -> bool {
        self.on_disk.load(Ordering::Acquire)
    }

    /// Puts rows on disk; from now on all rows go there.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn put_away(&self, parts: Vec<BuildPart>, budget: &Budget) -> Result<(), RunError> {
        let mut filling = self.lock();
        let Filling { parts: before, disk, written, .. } = &mut *filling;
        let disk = match disk {
            Some(disk) => disk,
            None => disk.insert(Spill::new(&self.shape.node, budget)?),
        };
        self.on_disk.store(true, Ordering::Release);
        let keys = keys_of(&self.shape)?;
        for BuildPart { seq, batch, keys: of } in before.drain(..).chain(parts) {
            // Rows of one packet come in their order.
            let at: Vec<_> = (0..batch.rows as u32).map(|row| (seq, written.wrapping_add(row))).collect();
            *written = written.wrapping_add(batch.rows as u32);
            let columns = batch.columns.iter().chain(&of).cloned().collect();
            put(disk, &keys, &Batch { columns, ..batch }, &of, &at, 0)?;
        }
        Ok(())
    }

    /// A building task has ended, with these rows. The last one makes the table.
    pub(crate) fn task_done(&self, parts: Vec<BuildPart>, budget: Option<&Arc<Budget>>) -> Result<(), RunError> {
        self.lock().parts.extend(parts);
        if let Some(budget) = budget.filter(|_| self.on_disk()) {
            self.put_away(Vec::new(), budget)?;
        }
        let mut filling = self.lock();
        filling.tasks -= 1;
        if filling.tasks > 0 {
            return Ok(());
        }
        if let Some(disk) = filling.disk.take() {
            // Nobody else sets it: this was the last task, and what it had left is there too.
            let _ = self.divided.set(Arc::new(disk));
            let woken = std::mem::take(&mut filling.waiting);
            drop(filling);
            self.scheduler.wake_all(woken);
            return Ok(());
        }
        let mut parts = std::mem::take(&mut filling.parts);
        drop(filling);
        turns::pass();
        // Stable: the batches that one packet became stay in their order.
        parts.sort_by_key(|part| part.seq);
        let TableShape { node, columns, keys, .. } = &self.shape;
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
