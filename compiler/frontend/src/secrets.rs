//! Where a secret is kept, as it is written in a pipeline. It doesn't look it up: that is for the start of a run.

use dfc_grammar::ast::{Arg, Expr, ExprKind, Literal};
use dfc_ir::plan::Secret;

/// The two forms, for help.
pub const FORMS: &str = "`secret(\"NAME\")`, an environment variable, or `secret_file(\"path\")`, a file's first line";

/// What `secret("NAME")` or `secret_file("path")` names, the path as it is written. `None`: it is something else.
pub fn place(e: &Expr) -> Option<Secret> {
    let ExprKind::Call(call) = &e.kind else { return None };
    let [Arg { label: None, value: Expr { kind: ExprKind::Literal(Literal::String(name)), .. }, .. }] =
        call.args.as_slice()
    else {
        return None;
    };
    if name.is_empty() || name.contains('\0') {
        return None;
    }
    match call.name.text.as_str() {
        "secret" if !name.contains('=') => Some(Secret::Env(name.clone())),
        "secret_file" => Some(Secret::File(name.clone())),
        _ => None,
    }
}
