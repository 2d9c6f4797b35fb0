//! Conditions that contradict themselves: `x > 5 and x < 3` is never true.
//!
//! Only plain comparisons of one value with constants are looked at, joined by `and`. It finds no more than people overlook.

use dfc_ir::{BinaryOp, Expr, ExprKind, Site, Value};

use super::compare::order;

/// What the comparisons seen so far leave of a value.
struct Range<'e> {
    value: Expr,
    low: Option<(&'e Value<'static>, bool)>,
    high: Option<(&'e Value<'static>, bool)>,
}

impl<'e> Range<'e> {
    /// Takes a comparison in; `bool`: whether the bound itself is left out.
    fn narrow(&mut self, op: BinaryOp, bound: &'e Value<'static>) {
        let (low, high) = match op {
            BinaryOp::Eq => (Some(false), Some(false)),
            BinaryOp::Gt => (Some(true), None),
            BinaryOp::Ge => (Some(false), None),
            BinaryOp::Lt => (None, Some(true)),
            BinaryOp::Le => (None, Some(false)),
            _ => (None, None),
        };
        if let Some(strict) = low
            && self.low.is_none_or(|(old, was)| order(bound, old).is_gt() || (old == bound && strict && !was))
        {
            self.low = Some((bound, strict));
        }
        if let Some(strict) = high
            && self.high.is_none_or(|(old, was)| order(bound, old).is_lt() || (old == bound && strict && !was))
        {
            self.high = Some((bound, strict));
        }
    }

    fn is_empty(&self) -> bool {
        let (Some((low, open)), Some((high, closed))) = (self.low, self.high) else { return false };
        order(low, high).is_gt() || (low == high && (open || closed))
    }
}

/// The value of which a condition says what can't be true at once.
pub(crate) fn contradiction(condition: &Expr) -> Option<Expr> {
    let mut comparisons = Vec::new();
    conjuncts(condition, &mut comparisons);
    let mut ranges: Vec<Range<'_>> = Vec::new();
    for (op, value, bound) in comparisons {
        let plain = without_sites(value);
        let range = match ranges.iter().position(|range| range.value == plain) {
            Some(known) => &mut ranges[known],
            None => {
                ranges.push(Range { value: plain, low: None, high: None });
                let last = ranges.len() - 1;
                &mut ranges[last]
            }
        };
        range.narrow(op, bound);
        if range.is_empty() {
            return Some(value.clone());
        }
    }
    None
}

fn conjuncts<'e>(e: &'e Expr, out: &mut Vec<(BinaryOp, &'e Expr, &'e Value<'static>)>) {
    match &e.kind {
        ExprKind::Binary(BinaryOp::And, l, r) => {
            conjuncts(l, out);
            conjuncts(r, out);
        }
        ExprKind::Binary(op, l, r) if l.ty.ty == r.ty.ty && l.ty.ty.is_ordered() => match (&l.kind, &r.kind) {
            (ExprKind::Literal(_), ExprKind::Literal(_)) => {}
            (_, ExprKind::Literal(bound)) if !bound.is_null() => out.push((*op, l, bound)),
            (ExprKind::Literal(bound), _) if !bound.is_null() => out.push((turned(*op), r, bound)),
            _ => {}
        },
        _ => {}
    }
}

/// `5 < x` is `x > 5`.
fn turned(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

fn without_sites(e: &Expr) -> Expr {
    fn clear(e: &mut Expr) {
        e.site = Site::default();
        e.for_each_child_mut(&mut clear);
    }
    let mut plain = e.clone();
    clear(&mut plain);
    plain
}
