//! Types as written: names, decimals' bounds, records.
use dfc_grammar::ast;
use dfc_ir::DataType;

use crate::{Checker, UserFn};

impl Checker<'_> {
    /// The type that is written, or an error.
    pub fn resolve_type(&mut self, _t: &ast::TypeExpr) -> Option<DataType> {
        None
    }

    /// Checks a user function by itself, with its parameters as declared (one with a parameter of type `any` or of a class is
    /// checked where it is used). `item` of the checker must be the function's.
    pub fn check_fn(&mut self, _function: &UserFn) {
    }
}
