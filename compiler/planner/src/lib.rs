//! From the logical plan to stages: columns that nobody reads are pruned, filters and computations are fused into programs,
//! and the graph is cut where rows must change tasks or where an operator must see everything.
//!
//! It may not know connectors, files or syntax. Entry: [`plan_stages`]. Serves D1, D2, D3.

mod cut;
mod fuse;
mod prune;

use dfc_ir::{Plan, StagePlan};

/// Plans a job.
///
/// An expression is evaluated only for the rows and the columns that reach a use: a computed column that nothing reads is
/// never computed, and one that only follows a filter is computed for the rows that pass.
pub fn plan_stages(plan: &Plan) -> StagePlan {
    cut::cut(&prune::prune(plan))
}

/// The logical plan with pruned columns, as the stages are cut from it.
pub fn pruned(plan: &Plan) -> Plan {
    prune::prune(plan)
}
