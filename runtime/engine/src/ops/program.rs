//! Filters and computations: a prepared program over each batch.

use std::sync::Arc;

use dfc_batch::{Batch, RowError};
use dfc_jit::PreparedProgram;

use super::{Operator, Out};
use crate::RunError;

/// A program, compiled once for all tasks.
pub(crate) struct PreparedRows(pub(crate) Arc<dyn PreparedProgram>);

impl PreparedRows {
    pub(crate) fn open(&self) -> Box<dyn Operator> {
        Box::new(Rows { program: self.0.clone(), errors: Vec::new() })
    }
}

struct Rows {
    program: Arc<dyn PreparedProgram>,
    errors: Vec<RowError>,
}

impl Operator for Rows {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let result = self.program.run(&batch, &mut self.errors);
        out.report(&mut self.errors)?;
        out.emit(result)
    }

    fn finish(&mut self, _out: &mut Out<'_>) -> Result<bool, RunError> {
        Ok(true)
    }
}
