//! The type of every form of expression.
use dfc_grammar::ast;
use dfc_ir::{DataType, Expr};

use crate::Checker;

impl Checker<'_> {
    /// Types an expression; a bare `null` has the type null.
    pub(crate) fn infer(&mut self, _e: &ast::Expr, _expected: Option<&DataType>) -> Option<Expr> {
        None
    }

    /// A condition: bool or optional bool.
    pub(crate) fn condition(&mut self, e: &ast::Expr, _what: &str) -> Option<Expr> {
        self.infer(e, None)
    }
}
