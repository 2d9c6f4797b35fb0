//! Types of expressions: from a syntax tree and the fields in scope to a typed `dfc_ir::Expr`, or to diagnostics.
//!
//! It knows types, conversions, functions and the two sides of a join. It may not know files, salsa, streams or operators.
//!
//! The way in is [`Checker`]: one for each item and scope, any number of expressions. Whatever gives `None` has reported
//! an error (or its cause was reported elsewhere), so callers stay silent.

pub mod conversions;
pub mod diag;
pub mod functions;
pub mod nearest;

mod check;
mod checker;
mod scope;
mod target;

pub use check::assign::instead_of_null;
pub use check::overloads::is_class;
pub use checker::{AggregateKey, Aggregation, Checker, Predicate};
pub use dfc_ir::text::written;
pub use diag::{ItemKey, Loc, LocalDiagnostic, Namespace};
pub use functions::{Function, FunctionTable, Overload};
pub use scope::{
    Column, Global, GlobalKind, Globals, Gone, NoSites, OPTIONAL, PathStep, RecordType, Scope, SiteSink, UserFn,
};
pub use target::Target;
