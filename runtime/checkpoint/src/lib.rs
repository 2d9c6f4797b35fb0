//! Checkpoints as they lie on a storage (D11, D13, F2): manifests, parts, spools, the lock, retention, history.
//!
//! ```text
//! <storage>/<job>/manifests/0000000012.json   what makes checkpoint 12 exist; created only if absent, never changed
//!                 parts/0000000012-5f…-NAME   operators' state, written before the manifest that names it
//!                 kept/0000000012.json        a savepoint made of a checkpoint: never removed by retention
//!                 history.json, applied.json  for `dfc status` and retention; hints, not the authority
//!                 spool/SINK/…                copies of spooled rows, where <storage> isn't this machine's
//! <home>/lock, spool/SINK/…, savepoint-request    always local: <storage>/<job>, or .dfc/<job> beside the pipeline
//! ```
//!
//! Everything that is read back is taken for hostile: sizes, names, check sums and meaning are checked before anything is used.
//! The crate may not know what the state means, nor connectors: it shares with them only how positions and epochs are written down.

mod carry;
pub mod disk;
mod error;
mod history;
mod job;
mod lock;
mod manifest;
mod names;
mod part;
mod retain;
mod savepoint;
mod storage;
mod verify;
mod view;
mod words;

pub use dfc_epoch::{Positions, Sealed, SplitPosition, SpoolFile};
pub use error::{Damaged, Error, StorageError};
pub use history::{History, HistoryEntry, Outcome};
pub use job::{Job, Place, Room};
pub use lock::Holder;
pub use manifest::{
    Counters, Kind, Manifest, OperatorPrint, OperatorState, Part, PlanPrint, RejectsState, SinkState, SourceState,
    StageState,
};
pub use names::safe_name;
pub use part::StoredPart;
pub use retain::{Applied, Removed};
pub use savepoint::{SavepointAnswer, SavepointRequest};
pub use storage::{LocalStorage, Object, Storage, open_storage};
pub use verify::Finding;
pub use view::{Checkpoints, Kept};

#[cfg(test)]
mod tests;
