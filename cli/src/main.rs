//! The `dfc` binary.
fn main() {}
