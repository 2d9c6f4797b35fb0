//! Which columns of its inputs an operator reads, given those of its result that someone needs.
//!
//! What decides *which* rows there are (conditions, keys, orders) is always read.

use std::collections::BTreeSet;

use crate::Expr;
use crate::plan::{Aggregate, JoinColumn, Op};

impl Op {
    /// The columns read of each input, in the inputs' order; `needed` are positions in the result. `width(n)`: the number of
    /// columns of input `n`.
    pub fn reads(
        &self,
        needed: &BTreeSet<usize>,
        inputs: usize,
        width: &dyn Fn(usize) -> usize,
    ) -> Vec<BTreeSet<usize>> {
        let mut own = needed.clone();
        match self {
            Op::Source(_) => return Vec::new(),
            Op::Sink(_) => own = (0..width(0)).collect(),
            Op::Filter(e) | Op::Require { condition: e, .. } => own.extend(e.columns()),
            Op::Project(exprs) => {
                own = needed.iter().filter_map(|&i| exprs.get(i)).flat_map(Expr::columns).collect();
            }
            Op::Aggregate { keys, aggregates } => {
                let kept = aggregates.iter().enumerate().filter(|(i, _)| needed.contains(&(keys.len() + i)));
                own = keys.iter().flat_map(Expr::columns).chain(kept.flat_map(|(_, a)| aggregate(a))).collect();
            }
            Op::Distinct { keys, order } => {
                own.extend(order.iter().flat_map(|key| key.expr.columns()));
                if keys.is_empty() { own.extend(0..width(0)) } else { own.extend(keys) }
            }
            Op::Join(join) => {
                let split = join.left_width;
                let mut left: BTreeSet<usize> = join.left_keys.iter().flat_map(Expr::columns).collect();
                let mut right: BTreeSet<usize> = join.right_keys.iter().flat_map(Expr::columns).collect();
                for column in join.residual.iter().flat_map(Expr::columns) {
                    let (side, at) = if column < split { (&mut left, column) } else { (&mut right, column - split) };
                    side.insert(at);
                }
                for output in needed.iter().filter_map(|&i| join.output.get(i)) {
                    let (l, r) = match *output {
                        JoinColumn::Left(l) => (Some(l), None),
                        JoinColumn::Right(r) => (None, Some(r)),
                        JoinColumn::Merged(l, r) => (Some(l), Some(r)),
                    };
                    left.extend(l);
                    right.extend(r);
                }
                return vec![left, right];
            }
            Op::Sort(keys) => own.extend(keys.iter().flat_map(|key| key.expr.columns())),
            Op::Union | Op::Take { .. } => {}
        }
        vec![own; inputs]
    }
}

fn aggregate(aggregate: &Aggregate) -> Vec<usize> {
    aggregate.args.iter().chain(&aggregate.filter).flat_map(Expr::columns).collect()
}
