//! Keyed state: one table from packed keys to fixed-width states, and the aggregate functions over it; and the table of a
//! join's right side.
//!
//! It may not know tasks, queues or plans.

mod archive;
mod arena;
mod columns;
mod estimate;
mod finish;
pub mod fixed;
mod join;
mod joined;
mod key;
mod keys;
mod layout;
mod narrow;
mod numbered;
mod numbers;
mod pages;
mod share;
mod shelves;
mod side;
mod table;
mod update;

pub use archive::{DamagedState, FrozenGroups, Rebuilding};
pub use arena::{Arena, FrozenBytes, Place};
pub use estimate::Estimate;
pub use join::{JoinTable, TooManyRows};
pub use key::{HASH_END, HASH_SEED, HASH_WORD, KeyLayout, KeyPart, fold, hash_key, partition};
pub use layout::{StateKind, StateLayout, StateSlot};
pub use numbered::KeyTable;
pub use share::ShareError;
pub use shelves::{FrozenShelves, Shelves};
pub use table::{GroupIndex, GroupTable, find_or_insert};
pub use update::BatchRow;
