//! The standard library: operators and functions as declared in `*.df`, and the functions' bodies in Rust.
//!
//! The compiler reads the declarations, the engines call the bodies. Neither knows a function by name otherwise.

pub mod natives;

/// The declarations, as (file name, text).
pub const DECLARATIONS: &[(&str, &str)] = &[];
