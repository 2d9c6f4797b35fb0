//! The engine: runs a [`dfc_ir::StagePlan`] on a fixed pool of worker threads (D1, D2).
//!
//! Stages become tasks, small state machines that are stepped until they would block; between stages stand bounded queues, so a
//! slow sink holds its source back. The first failure stops everything and is the one that is reported.
//!
//! It may not know the syntax of pipelines, nor connectors by name: they come from a [`ConnectorSet`].

mod connect;
mod error;
mod observe;
mod options;
mod summary;

pub use connect::{Builtin, ConnectorSet};
pub use error::RunError;
pub use observe::{Event, Moment, Observer, OperatorId, Progress, Silent};
pub use options::RunOptions;
pub use summary::{OperatorSummary, SinkReport, Summary};
