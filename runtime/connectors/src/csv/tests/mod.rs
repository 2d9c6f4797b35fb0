//! Tests of the CSV connector: each feature by name, then random tables and hostile bytes.

mod features;
mod files;
mod random;
mod sink;
