//! The engine on plans built by hand, with tables in memory.

mod aggregates;
mod checkpoints;
mod failures;
mod files;
mod flow;
mod joins;
mod model;
mod operators;
mod pruning;
mod rejects;
mod simulated;
mod spill;
mod stress;
mod support;
