//! dfc-compiler
