//! Parquet files. `convert` says which of a file's types fit which declared ones and turns arrays into declared form, `source` reads
//! row groups in parallel, `group` one of them, `pieces` its bytes; `pruning` tells what needn't be read, by `statistics`. `sink` opens what is written, `writer` writes a file in the way that `choice` finds best, `lanes` encodes its columns, `epochs` is a single file of
//! a job with checkpoints.

mod choice;
mod convert;
mod epochs;
mod group;
mod guard;
mod lanes;
mod pieces;
mod pruning;
#[cfg(test)]
mod pruning_tests;
mod schema;
mod sink;
mod source;
mod statistics;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use schema::{find_fields, find_names};
pub(crate) use sink::open_sink;
pub(crate) use source::open_source;
