//! Values as text, in the one canonical form that the whole project reads and writes: `31`, `-1.50`, `2026-01-31`,
//! `2026-01-31T10:00:00.5Z`. It may not know where the text stands.

pub(crate) mod blocks;
pub(crate) mod format;
pub(crate) mod number;
pub(crate) mod pattern;
pub(crate) mod sink;
pub(crate) mod time;
pub(crate) mod value;
pub(crate) mod window;
