//! The engine on plans built by hand, with tables in memory.

mod aggregates;
mod failures;
mod files;
mod flow;
mod joins;
mod operators;
mod rejects;
mod stress;
mod support;
