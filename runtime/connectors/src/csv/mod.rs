//! Delimited text, RFC 4180 and what is found in the wild. Replaces a library on purpose: reading CSV is the main job's
//! hottest part, and typed columns straight from a block of text are several times faster than through rows of strings.
//!
//! The way of a file: `chunks` cuts it into chunks of whole rows (where they end is said by `index`, quickly by `fast` or to the
//! letter by `exact`); each task finds the fields of its chunk (`index`), takes the projected ones out of it (`places`) and has
//! them read to arrays (`text::columns`). Out again: `sink`, in the usual style by `lines`, a block's
//! fields by `slots`.

mod exact;
mod fast;
mod header;
mod index;
mod lines;
mod places;
mod schema;
mod sink;
mod slots;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use schema::{find_fields, find_names};
pub(crate) use sink::{CsvEncoder, CsvStyle, open_sink};
pub(crate) use source::open_source;
#[cfg(test)]
pub(crate) use source::open_with_chunk;
