//! The tiers agree: random programs on random batches, and named cases.

mod aggregates;
mod agreement;
mod blocks;
mod operators;
