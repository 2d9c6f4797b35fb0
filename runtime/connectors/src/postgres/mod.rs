//! PostgreSQL: tables and queries as sources, tables as sinks.

mod address;
mod binary;
mod catalogue;
mod scratch;
mod session;
mod sink;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod tls;

pub(crate) use catalogue::{find_fields, find_names};
pub(crate) use scratch::{copy_table, drop_schema, in_schema};
pub(crate) use sink::open_sink;
pub(crate) use source::open_source;
