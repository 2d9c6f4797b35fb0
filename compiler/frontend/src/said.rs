//! What the items of a file say for the whole: findings, and what the job's guarantees depend on. Gathered in blocks of
//! items, so that after an edit one block is gathered anew and not a file of thousands of items.
//!
//! It may not know what is made of it.

use std::sync::Arc;

use dfc_typeck::{LocalDiagnostic, Namespace};

use crate::check::checks;
use crate::db::{Db, SourceFile};
use crate::guarantees::{Known, holding, varying};
use crate::items::{file_items, is_flow};
use crate::unused::unused;
use crate::userops::operator_check;

/// Items of a block.
const BLOCK: usize = 32;

/// What the items of a block say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// What is wrong with its streams, sinks and operators.
    pub problems: Vec<LocalDiagnostic>,
    /// Its sources and sinks, as far as they are sound.
    pub ends: Vec<Arc<Known>>,
    /// What a second run over the same rows may give differently.
    pub varies: Vec<String>,
    /// Operators that hold what they are given to the end, and can put it on disk.
    pub holds: Vec<String>,
}

/// What the items of a file say, in their order.
pub fn said(db: &dyn Db, root: SourceFile, file: SourceFile) -> impl Iterator<Item = &Said> {
    (0..file_items(db, file).len().div_ceil(BLOCK)).map(move |number| block(db, root, file, number).as_ref())
}

#[salsa::tracked]
fn block(db: &dyn Db, root: SourceFile, file: SourceFile, number: usize) -> Arc<Said> {
    let mut said = Said::default();
    for item in file_items(db, file).iter().skip(number * BLOCK).take(BLOCK) {
        let key = item.key(db);
        if is_flow(key) {
            for check in checks(db, root, *item) {
                said.problems.extend_from_slice(&check.diagnostics);
                said.ends.extend_from_slice(&check.ends);
                said.varies.extend(varying(check));
                said.holds.extend(holding(check));
            }
            said.problems.extend_from_slice(unused(db, root, *item));
        }
        if key.namespace == Namespace::Operator {
            said.problems.extend_from_slice(operator_check(db, root, *item));
        }
    }
    Arc::new(said)
}
