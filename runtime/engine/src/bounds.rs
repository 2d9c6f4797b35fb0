//! What a condition can be on rows of which only bounds are known: true, false, null, or several of these. A source that knows bounds of
//! many rows leaves them unread where it can't be true ([`dfc_connect::Possible`]).
//!
//! Everything here errs on one side: an outcome that rows may have is never left out, one that they can't have may be kept.

use std::sync::Arc;

use dfc_connect::{Bounds, Possible};
use dfc_eval::{Env, arith, eval};
use dfc_ir::{BinaryOp, Expr, ExprKind, Type, UnaryOp, Value};

/// Outcomes of a condition, as bits.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const NULL: u8 = 4;
const ANY: u8 = TRUE | FALSE | NULL;

/// Whether all these conditions can be true of one row, as a function of their columns' bounds; `None`: bounds say nothing about them.
pub(crate) fn possible(conditions: &[Expr], env: Env) -> Option<Possible> {
    let telling: Vec<Expr> = conditions.iter().filter(|condition| tells(condition)).cloned().collect();
    if telling.is_empty() {
        return None;
    }
    Some(Arc::new(move |columns: &[Bounds]| {
        telling.iter().all(|condition| Within { columns, env }.outcomes(condition) & TRUE != 0)
    }))
}

/// Whether any bounds exclude that a condition is true: those of no row at all do, where bounds are looked at.
fn tells(condition: &Expr) -> bool {
    let columns = condition.columns().last().map_or(0, |last| last + 1);
    let nothing = vec![Bounds { nulls: false, values: false, ..Bounds::default() }; columns];
    Within { columns: &nothing, env: Env::default() }.outcomes(condition) & TRUE == 0
}

struct Within<'b> {
    columns: &'b [Bounds],
    env: Env,
}

impl Within<'_> {
    /// What a condition can be.
    fn outcomes(&self, condition: &Expr) -> u8 {
        match &condition.kind {
            ExprKind::Unary(UnaryOp::Not, x) => {
                let x = self.outcomes(x);
                (x & NULL) | when(x & TRUE != 0, FALSE) | when(x & FALSE != 0, TRUE)
            }
            ExprKind::Binary(BinaryOp::And, left, right) => {
                each(
                    self.outcomes(left),
                    self.outcomes(right),
                    |a, b| {
                        if a == FALSE || b == FALSE { FALSE } else { a.max(b) }
                    },
                )
            }
            ExprKind::Binary(BinaryOp::Or, left, right) => {
                each(
                    self.outcomes(left),
                    self.outcomes(right),
                    |a, b| {
                        if a == TRUE || b == TRUE { TRUE } else { a.max(b) }
                    },
                )
            }
            ExprKind::Binary(
                op @ (BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge),
                left,
                right,
            ) => compared(*op, (&self.bounds(left), &left.ty.ty), (&self.bounds(right), &right.ty.ty)),
            ExprKind::IsNull(x) => {
                let x = self.bounds(x);
                when(x.nulls, TRUE) | when(x.values, FALSE)
            }
            ExprKind::InList(x, items) => {
                let (bounds, ty) = (self.bounds(x), &x.ty.ty);
                let outcomes = items.iter().map(|item| compared(BinaryOp::Eq, (&bounds, ty), (&exactly(item), ty)));
                let any = outcomes.fold(0, |any, outcome| any | outcome);
                // What one item can't exclude another may: only a run of one value is surely in the list.
                let sure = bounds.low.is_some() && bounds.low == bounds.high && any & TRUE != 0;
                (any & TRUE) | when(bounds.nulls, NULL) | when(bounds.values && !sure, FALSE)
            }
            ExprKind::Coalesce(items) => {
                let mut outcomes = 0;
                for item in items {
                    let outcome = self.outcomes(item);
                    outcomes |= outcome & (TRUE | FALSE);
                    if outcome & NULL == 0 {
                        return outcomes;
                    }
                }
                outcomes | NULL
            }
            ExprKind::Column(_) | ExprKind::Literal(_) => {
                let x = self.bounds(condition);
                let falsely = x.low != Some(Value::Bool(true));
                let truly = x.high != Some(Value::Bool(false));
                when(x.nulls, NULL) | when(x.values && truly, TRUE) | when(x.values && falsely, FALSE)
            }
            _ => ANY,
        }
    }

    /// What a value can be.
    fn bounds(&self, expr: &Expr) -> Bounds {
        match &expr.kind {
            ExprKind::Column(column) => self.columns.get(*column).cloned().unwrap_or_else(Bounds::unknown),
            _ if expr.columns().is_empty() => {
                let none: [Value; 0] = [];
                eval(expr, &none, &self.env).map_or_else(|_| Bounds::unknown(), |value| exactly(&value))
            }
            _ => Bounds::unknown(),
        }
    }
}

/// An outcome, if it is possible.
fn when(possible: bool, outcome: u8) -> u8 {
    if possible { outcome } else { 0 }
}

/// The bounds of one value.
fn exactly(value: &Value) -> Bounds {
    let value = value.clone().into_owned();
    match value.is_null() {
        true => Bounds { low: None, high: None, nulls: true, values: false },
        false => Bounds { low: Some(value.clone()), high: Some(value), nulls: false, values: true },
    }
}

/// All outcomes of two conditions joined.
fn each(left: u8, right: u8, join: impl Fn(u8, u8) -> u8) -> u8 {
    let bits = |set: u8| [TRUE, FALSE, NULL].into_iter().filter(move |bit| set & bit != 0);
    bits(left).flat_map(|a| bits(right).map(move |b| (a, b))).fold(0, |outcomes, (a, b)| outcomes | join(a, b))
}

/// What a comparison can be. Operands of one type, or decimals each of its own.
fn compared(op: BinaryOp, (a, of_a): (&Bounds, &Type), (b, of_b): (&Bounds, &Type)) -> u8 {
    let null = when(a.nulls || b.nulls, NULL);
    if !a.values || !b.values {
        return null;
    }
    // Whether it is known to hold for these ends.
    let holds = |op, x: &Option<Value>, of_x: &Type, y: &Option<Value>, of_y: &Type| match (x, y) {
        (Some(x), Some(y)) => {
            matches!(arith::binary(op, x, of_x, y, of_y, &Type::Bool), Ok(Value::Bool(true)))
        }
        _ => false,
    };
    let a_below_b = || holds(BinaryOp::Lt, &a.high, of_a, &b.low, of_b);
    let b_below_a = || holds(BinaryOp::Lt, &b.high, of_b, &a.low, of_a);
    let a_up_to_b = || holds(BinaryOp::Le, &a.high, of_a, &b.low, of_b);
    let b_up_to_a = || holds(BinaryOp::Le, &b.high, of_b, &a.low, of_a);
    let same = || {
        holds(BinaryOp::Eq, &a.low, of_a, &a.high, of_a)
            && holds(BinaryOp::Eq, &b.low, of_b, &b.high, of_b)
            && holds(BinaryOp::Eq, &a.low, of_a, &b.low, of_b)
    };
    let (never, always) = match op {
        BinaryOp::Lt => (b_up_to_a(), a_below_b()),
        BinaryOp::Le => (b_below_a(), a_up_to_b()),
        BinaryOp::Gt => (a_up_to_b(), b_below_a()),
        BinaryOp::Ge => (a_below_b(), b_up_to_a()),
        BinaryOp::Eq => (a_below_b() || b_below_a(), same()),
        BinaryOp::Ne => (same(), a_below_b() || b_below_a()),
        _ => (false, false),
    };
    null | when(!never, TRUE) | when(!always, FALSE)
}

#[cfg(test)]
mod tests {
    use dfc_ir::DataType;

    use super::*;

    /// Bounds of some rows of a nullable int64, and these rows.
    fn runs() -> Vec<(Bounds, Vec<Value<'static>>)> {
        let mut runs = Vec::new();
        for low in -1..3 {
            for high in low..4 {
                for nulls in [false, true] {
                    let mut rows: Vec<Value> = (low..=high).map(Value::Int).collect();
                    rows.extend(nulls.then_some(Value::Null));
                    let [low, high] = [low, high].map(|n| Some(Value::Int(n)));
                    runs.push((Bounds { low: low.clone(), high: high.clone(), nulls, values: true }, rows.clone()));
                    runs.push((Bounds { low: None, high, nulls, values: true }, rows.clone()));
                    runs.push((Bounds { low, high: None, nulls: true, values: true }, rows));
                }
            }
        }
        runs.push((Bounds { low: None, high: None, nulls: true, values: false }, vec![Value::Null]));
        runs
    }

    fn condition(kind: ExprKind) -> Expr {
        Expr { kind, ty: DataType::optional(Type::Bool), site: dfc_ir::Site::default() }
    }

    /// Every outcome that a row has is among those that its bounds leave, and where a run has all values within its bounds, no others are.
    #[test]
    fn bounds_leave_what_rows_may_have() {
        let int = DataType::optional(Type::INT64);
        let column = |at| Expr::column(at, int.clone());
        let number = |n: i128| Expr::literal(Value::Int(n), int.clone());
        let ops = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
        let mut conditions: Vec<Expr> = Vec::new();
        for op in ops {
            let compare = |a: Expr, b: Expr| condition(ExprKind::Binary(op, Box::new(a), Box::new(b)));
            for n in [-1, 0, 2] {
                conditions.push(compare(column(0), number(n)));
                conditions.push(compare(number(n), column(1)));
            }
            conditions.push(compare(column(0), column(1)));
        }
        conditions.push(condition(ExprKind::IsNull(Box::new(column(0)))));
        for items in [vec![1], vec![-5, 2], vec![0, 1, 2]] {
            let items = items.into_iter().map(Value::Int).collect();
            conditions.push(condition(ExprKind::InList(Box::new(column(1)), items)));
        }
        let parts = conditions.clone();
        for (k, a) in parts.iter().enumerate() {
            let b = Box::new(parts[(k * 7 + 3) % parts.len()].clone());
            let a = Box::new(a.clone());
            conditions.push(condition(ExprKind::Unary(UnaryOp::Not, a.clone())));
            conditions.push(condition(ExprKind::Binary(BinaryOp::And, a.clone(), b.clone())));
            conditions.push(condition(ExprKind::Binary(BinaryOp::Or, a.clone(), b.clone())));
            let falsely = Expr::literal(Value::Bool(false), DataType::of(Type::Bool));
            conditions.push(condition(ExprKind::Coalesce(vec![*a, falsely])));
        }
        let (mut exact, env) = (0, Env::default());
        for condition in &conditions {
            assert!(tells(condition), "{condition:?}");
            for (first, rows) in &runs() {
                for (second, others) in &runs() {
                    let columns = [first.clone(), second.clone()];
                    let left = Within { columns: &columns, env }.outcomes(condition);
                    let mut found = 0;
                    for a in rows {
                        for b in others {
                            let row = [a.clone(), b.clone()];
                            found |= match eval(condition, &row, &env).unwrap() {
                                Value::Bool(true) => TRUE,
                                Value::Bool(false) => FALSE,
                                _ => NULL,
                            };
                        }
                    }
                    assert_eq!(found & !left, 0, "{condition:?} of {columns:?}: {found} of {left}");
                    exact += usize::from(found == left);
                }
            }
        }
        assert!(exact > conditions.len() * runs().len() * runs().len() / 2, "{exact}");
    }

    #[test]
    fn a_condition_that_bounds_say_nothing_about_has_no_function() {
        let text = Expr::column(0, DataType::of(Type::String));
        let unknown = condition(ExprKind::Call("matches".into(), vec![text]));
        assert!(possible(std::slice::from_ref(&unknown), Env::default()).is_none());
        let above = Expr::literal(Value::Int(3), DataType::of(Type::INT64));
        let column = Expr::column(0, DataType::of(Type::INT64));
        let above = condition(ExprKind::Binary(BinaryOp::Gt, Box::new(column), Box::new(above)));
        let possible = possible(&[unknown, above], Env::default()).unwrap();
        let up_to = |high| Bounds { low: Some(Value::Int(0)), high: Some(Value::Int(high)), nulls: true, values: true };
        assert_eq!([3, 4].map(|high| possible(&[up_to(high)])), [false, true]);
    }
}
