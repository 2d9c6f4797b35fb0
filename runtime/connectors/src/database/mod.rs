//! What all databases share: reading in the order of a key, range by range; sinks that spool epochs and apply them with a ledger;
//! columns compared with a catalogue. It may not know a database's protocol or dialect.

mod began;
mod columns;
mod feed;
mod keys;
mod order;
mod sink;
mod splits;
mod spool;
#[cfg(test)]
pub(crate) mod testing;
mod window;

pub(crate) use began::Began;
pub(crate) use columns::{Class, Column, Fit, check, fits, match_columns, natural};
pub(crate) use feed::{
    Cap, Chunk, Connection, Database, DatabaseSource, KeyedRows, ReadFailure, Settings, Span, Survey,
};
pub(crate) use keys::{Key, KeyValue};
pub(crate) use order::{Catalogue, From, Order, OrderOptions};
pub(crate) use sink::{
    DatabaseSink, LedgerRow, Load, Loaded, MODES, Mode, Owner, Session, Target, TargetOptions, delete_mark, mark_last,
    unmarked, upsert_key,
};
pub(crate) use window::Tail;

use crate::ConnectError;

/// The database can't be reached, or the connection broke: may pass.
pub(crate) const UNREACHABLE: &str = "R0230";
/// The database refuses: no such table, no right, a query that is wrong.
pub(crate) const REFUSED: &str = "R0231";
/// Columns don't fit the fields.
pub(crate) const COLUMNS: &str = "R0232";
/// A value that the column doesn't take, which its type alone doesn't tell.
pub(crate) const UNFIT: &str = "R0311";
/// The rows can't be read in an order from which a job can go on.
pub(crate) const ORDER: &str = "R0233";
/// The target has been written by somebody else.
pub(crate) const LEDGER: &str = "R0603";
/// What was spooled is damaged.
pub(crate) const SPOOL: &str = "R0604";
/// A constraint is broken by a row.
pub(crate) const CONSTRAINT: &str = "R0601";
/// The target doesn't take a value.
pub(crate) const VALUE: &str = "R0602";

/// An identifier as SQL writes it, whatever is in it.
///
/// # Errors
/// It is empty or holds a NUL, which no database has in names.
pub(crate) fn quoted(name: &str) -> Result<String, ConnectError> {
    if name.is_empty() || name.contains('\0') {
        return Err(ConnectError::new(REFUSED, "a name of a table or column can't be empty or hold a NUL character"));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// Names for a message: "`a`, `b`".
pub(crate) fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ")
}
