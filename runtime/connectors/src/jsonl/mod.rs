//! JSON lines: one object a line, matched to fields by key. `scan` walks over the text of an object, `source` makes columns of it,
//! `sink` writes.

mod scan;
mod schema;
mod sink;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use schema::find_fields;
pub(crate) use sink::{JsonEncoder, open_sink};
pub(crate) use source::open_source;
#[cfg(test)]
pub(crate) use source::open_with_chunk;
