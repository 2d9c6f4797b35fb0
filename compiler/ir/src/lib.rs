//! The contract between the compiler and the runtime: types, values, typed expressions, the plan of operators
//! and the stages it is cut into. Plain data, no dependency, no IO.
//!
//! It may not know the syntax of `.df` files (names are resolved, types are explicit) nor how anything is executed:
//! nothing here assumes one process, so that another back end can translate a [`plan::Plan`].

pub mod expr;
pub mod plan;
mod reads;
pub mod stage;
pub mod text;
pub mod types;
pub mod value;

pub use expr::{BinaryOp, CastMode, Expr, ExprKind, Site, UnaryOp};
pub use plan::{Node, NodeId, Op, Options, Plan};
pub use stage::{Program, Stage, StagePlan, Step};
pub use types::{DataType, Field, Schema, Type};
pub use value::Value;
