//! The columns that a source reads, as they were when the job began, compared with those of now (A3): a table can be changed while it
//! is followed. It may not know how a catalogue is asked.

use super::{COLUMNS, Column, listed, natural};
use crate::ConnectError;

/// The columns that are read.
pub(crate) struct Began {
    /// Whose they are, for messages.
    what: String,
    columns: Vec<Column>,
}

impl Began {
    /// Of the columns there are those with these names.
    pub(crate) fn new<'n>(what: &str, names: impl IntoIterator<Item = &'n str>, columns: &[Column]) -> Began {
        let named = |name: &str| columns.iter().find(|column| column.name == name).cloned();
        Began { what: what.into(), columns: names.into_iter().filter_map(named).collect() }
    }

    /// Compares. What has come since is nobody's concern.
    ///
    /// # Errors
    /// A column is gone, or of another type.
    pub(crate) fn compare(&self, now: &[Column]) -> Result<(), ConnectError> {
        let what = &self.what;
        for Column { name, declared, class, .. } in &self.columns {
            let Some(found) = now.iter().find(|column| column.name == *name) else {
                return Err(ConnectError::new(COLUMNS, format!("{what} has no column `{name}` any more"))
                    .help(format!("it has {}", listed(now.iter().map(|column| &column.name)))));
            };
            if found.declared != *declared || natural(&found.class) != natural(class) {
                let message = format!(
                    "the column `{name}` of {what} was {declared} when the job began, and is {} now",
                    found.declared
                );
                return Err(ConnectError::new(COLUMNS, message).help("change the pipeline, and run the job again"));
            }
        }
        Ok(())
    }
}
