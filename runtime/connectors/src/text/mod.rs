//! Values as text, in the one canonical form that the whole project reads and writes: `31`, `-1.50`, `2026-01-31`,
//! `2026-01-31T10:00:00.5Z`. It may not know where the text stands.
//!
//! Whole columns of a chunk become arrays in `columns`, out of the fields that `cells` shows it, their numbers and dates by `blocks` and
//! `decimals`, else one by one (`number`, `time`, `value`).

pub(crate) mod blocks;
pub(crate) mod cells;
pub(crate) mod columns;
mod decimals;
pub(crate) mod dialect;
pub(crate) mod format;
pub(crate) mod number;
pub(crate) mod pattern;
pub(crate) mod sink;
pub(crate) mod time;
pub(crate) mod value;
pub(crate) mod window;
