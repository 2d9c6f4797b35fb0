//! Parquet files. `convert` says which of a file's types fit which declared ones and turns arrays into declared form, `source` reads
//! row groups in parallel. `sink` opens what is written, `writer` writes a file, `lanes` encodes its columns, `epochs` is a single file of
//! a job with checkpoints.

mod convert;
mod epochs;
mod guard;
mod lanes;
mod schema;
mod sink;
mod source;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use schema::{find_fields, find_names};
pub(crate) use sink::open_sink;
pub(crate) use source::open_source;
