//! Checkpoints of a running job, and going on from them (D11–D14, D20, F1–F4).

mod apply;
mod coordinator;
mod load;
mod print;
mod start;
mod supervise;

pub use start::{Checkpointing, Start};

pub(crate) use coordinator::now_micros;
pub(crate) use load::Loaded;
pub(crate) use print::{differences, print};
pub(crate) use start::{Begun, begin, begin_trial, goes_on_from};
pub(crate) use supervise::Supervised;
