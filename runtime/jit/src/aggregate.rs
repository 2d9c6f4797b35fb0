//! Aggregates made ready: updating a table of groups from batches, by the interpreter here.

use std::sync::Arc;

use dfc_batch::{Batch, RowError};
use dfc_eval::Env;
use dfc_ir::stage::AggregateSpec;
use dfc_table::GroupTable;

use crate::PreparedProgram;
use crate::interpret::eval_error;

/// An aggregate made ready, with the program before it, if there is one. Shared by the tasks of a stage; each has a table of its own.
pub trait PreparedAggregate: Send + Sync {
    /// An empty table.
    fn table(&self) -> GroupTable;

    /// Lets the table see a batch's rows. A rejected row counts nowhere; it is pushed to `errors` with place and raw text from the
    /// batch's origin.
    fn update(&self, batch: &Batch, table: &mut GroupTable, errors: &mut Vec<RowError>);
}

/// Runs the program, if there is one, and lets `dfc-table` evaluate keys and arguments.
pub(crate) struct Separate {
    pub(crate) program: Option<Arc<dyn PreparedProgram>>,
    pub(crate) spec: AggregateSpec,
    pub(crate) env: Env,
}

impl PreparedAggregate for Separate {
    fn table(&self) -> GroupTable {
        GroupTable::new(&self.spec)
    }

    fn update(&self, batch: &Batch, table: &mut GroupTable, errors: &mut Vec<RowError>) {
        let made;
        let batch = match &self.program {
            Some(program) => {
                made = program.run(batch, errors);
                &made
            }
            None => batch,
        };
        table.update_batch(batch, &self.spec, &self.env, &mut |row, error| {
            errors.push(eval_error(&self.spec.node, batch, row, error));
        });
    }
}
