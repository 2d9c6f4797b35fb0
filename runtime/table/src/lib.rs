//! Keyed state: one table from packed keys to fixed-width states, and the aggregate functions over it.
//!
//! It may not know tasks, queues or plans.
