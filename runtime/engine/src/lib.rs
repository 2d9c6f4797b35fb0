//! The engine: runs a [`dfc_ir::StagePlan`] on a fixed pool of worker threads (D1, D2).
//!
//! Stages become tasks, small state machines that are stepped until they would block; between stages stand bounded queues, so a
//! slow sink holds its source back. The first failure stops everything and is the one that is reported.
//!
//! It may not know the syntax of pipelines, nor connectors by name: they come from a [`ConnectorSet`].

mod align;
mod barrier;
mod bounds;
mod budget;
mod checkpoint;
mod connect;
mod counters;
mod early;
mod error;
mod exchange;
mod inspect;
mod layout;
mod memory;
mod observe;
mod ops;
mod options;
mod output;
mod prepare;
mod reject;
mod reorder;
mod restore;
mod rowkey;
mod run;
mod schedule;
mod setup;
mod sink;
mod spill;
mod state;
mod store;
mod summary;
mod table;
mod task;

pub use checkpoint::{Checkpointing, Start};
pub use connect::{Builtin, ConnectorSet};
pub use early::asked_first;
pub use error::RunError;
pub use inspect::{Give, Inspector};
pub use memory::MemoryConnectors;
pub use observe::{Event, Moment, Observer, OperatorId, Progress, Silent};
pub use options::RunOptions;
pub use run::{run, run_with};
pub use summary::{OperatorSummary, SinkReport, Summary};
