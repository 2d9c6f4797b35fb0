//! JSON lines: one object a line, matched to fields by key. `places` finds the values in a chunk's lines, `source` makes columns of
//! them, by `line` where a line is out of the common; `scan` walks over the text of an object, `sink` writes.

mod line;
mod places;
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
