//! Constant folding, and constants where only those may stand.
use dfc_grammar::ast::Span;
use dfc_ir::{Expr, ExprKind, Value};

use crate::Checker;

impl Checker<'_> {
    /// Folds a node whose operands are constants.
    pub(crate) fn fold(&mut self, e: Expr, _span: Span) -> Option<Expr> {
        Some(e)
    }

    /// The value of a constant expression.
    pub(crate) fn value_of(&mut self, e: Expr, span: Span) -> Option<Value<'static>> {
        if let ExprKind::Literal(value) = e.kind {
            return Some(value);
        }
        self.error("E0417", span, "this must be a constant", "depends on the row");
        None
    }
}
