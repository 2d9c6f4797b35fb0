//! Types of expressions: from a syntax tree and the fields in scope to a typed `dfc_ir::Expr`, or to diagnostics.
//!
//! It knows types, conversions, functions and the two sides of a join. It may not know files, salsa, streams or operators.

pub mod diag;

pub use diag::{ItemKey, LocalDiagnostic, Loc, Namespace};
