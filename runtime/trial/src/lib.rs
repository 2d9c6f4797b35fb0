//! What a test may do to a running job: decide in which order its threads go on ([`turns`]), plant a fault that the tests must find
//! ([`Planted`]), and let an operation at a named place fail, stall or end the process ([`point`]).
//!
//! Without the feature `on`, which only dev-dependencies ask for, nothing of it is left: threads wait as they always do, no fault is planted,
//! and no place fails. It may not know what the threads do.

mod planted;
mod points;
pub mod turns;

pub use planted::{Planted, planted};
pub use points::point;
