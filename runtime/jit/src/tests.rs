//! The tiers agree: random programs on random batches, and named cases.

mod agreement;
mod operators;
