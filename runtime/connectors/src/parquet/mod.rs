//! Parquet files. `convert` says which of a file's types fit which declared ones and turns arrays into declared form, `source` reads
//! row groups in parallel, `group` one of them, `pieces` its bytes; `pruning` tells what needn't be read, by `statistics`. `sink` opens what is written, `writer` writes a file in the way that `choice` finds best, `lanes` encodes its columns, a
//! `leaf` at a time: most of them by `column`, from `values` with a `dictionary` or without as `encode` writes them down; `epochs` is a single file of
//! a job with checkpoints.

mod choice;
mod column;
#[cfg(test)]
mod column_tests;
mod convert;
mod dictionary;
mod encode;
mod epochs;
mod group;
mod guard;
mod lanes;
mod leaf;
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
mod values;
mod writer;

pub(crate) use schema::{find_fields, find_names};
pub(crate) use sink::open_sink;
pub(crate) use source::open_source;
