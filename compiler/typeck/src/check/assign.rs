//! Assigning: the four outcomes, and the messages for them.
use dfc_grammar::ast::Span;
use dfc_ir::{DataType, Expr};

use crate::{Checker, Target};

impl Checker<'_> {
    /// Converts a checked expression to the type of the place it goes to, by the table of [`crate::conversions`].
    /// `span` is where the expression stands. Literals that fit lose their `Checked`.
    pub fn assign(&mut self, e: Expr, to: &DataType, span: Span, _target: &Target) -> Option<Expr> {
        self.convert(e, to, span)
    }
}
