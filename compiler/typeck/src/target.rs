//! What an expression's value is given to: the words in messages, and which conversions are allowed silently there.

use crate::Loc;

/// Where a value goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// A column of a sink: conversions that may fail are allowed with a warning.
    SinkColumn {
        /// Its name in the target.
        column: String,
        /// Where its type is declared, if in the pipeline.
        declared: Option<Loc>,
    },
    /// An operator's parameter: conversions that may fail need `as`.
    Parameter {
        /// The operator.
        operator: String,
        /// The parameter.
        name: String,
    },
    /// A column of a union: conversions that may lose are allowed with a warning.
    UnionBranch {
        /// The column.
        column: String,
        /// The branch whose type differs, where it is known.
        other: Option<Loc>,
    },
    /// The value or default of a `param` or `const` of a declared type.
    Declaration {
        /// "parameter", "constant"
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A user function's parameter.
    FnParameter {
        /// The function.
        function: String,
        /// The parameter.
        name: String,
        /// Where it is declared.
        declared: Loc,
    },
    /// The declared result of a user function.
    FnResult {
        /// The function.
        function: String,
    },
}

impl Target {
    /// "the sink's column `x`"
    pub fn words(&self) -> String {
        match self {
            Target::SinkColumn { column, .. } => format!("the sink's column `{column}`"),
            Target::Parameter { operator, name } => format!("`{name}` of `{operator}`"),
            Target::UnionBranch { column, .. } => format!("the union's column `{column}`"),
            Target::Declaration { kind, name } => format!("the {kind} `{name}`"),
            Target::FnParameter { function, name, .. } => format!("`{name}` of the function `{function}`"),
            Target::FnResult { function } => format!("the result of the function `{function}`"),
        }
    }

    /// Where the target is declared, if known.
    pub fn declared(&self) -> Option<&Loc> {
        match self {
            Target::SinkColumn { declared, .. } => declared.as_ref(),
            Target::UnionBranch { other, .. } => other.as_ref(),
            Target::FnParameter { declared, .. } => Some(declared),
            _ => None,
        }
    }

    /// Whether conversions that may fail on a row are allowed (with a warning).
    pub fn allows_checked(&self) -> bool {
        matches!(self, Target::SinkColumn { .. } | Target::UnionBranch { .. })
    }
}
