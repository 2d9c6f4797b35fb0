//! The standard library: operators and functions as declared in `*.df`, and the functions' bodies in Rust.
//!
//! The compiler reads the declarations, the engines call the bodies. Neither knows a function by name otherwise.

mod cache;
pub mod calendar;
pub mod date_format;
mod json_scan;
pub mod natives;
pub mod zones;

pub use date_format::{DateFormat, validate_format};
pub use natives::{validate_regex, validate_unit};
pub use zones::{Zone, validate_zone, zone_names};

/// Embeds declarations, named by their path below `stdlib/`.
macro_rules! declarations {
    ($($path:literal),* $(,)?) => { &[$(($path, include_str!(concat!("../", $path)))),*] };
}

/// The declarations, as (file name, text).
pub const DECLARATIONS: &[(&str, &str)] = declarations![
    "functions/aggregates.df",
    "functions/conditionals.df",
    "functions/dates.df",
    "functions/hashes.df",
    "functions/json.df",
    "functions/lists.df",
    "functions/numbers.df",
    "functions/strings.df",
    "operators/databases.df",
    "operators/shuffles.df",
    "operators/sinks.df",
    "operators/sources.df",
];
