//! Typed scalar expressions over the columns of one input.
//!
//! All conversions are explicit. Evaluating an expression on a row gives a value of exactly its type or a *row error*
//! (overflow, division by zero, a failed cast, a null where none may be, a function's refusal). Two engines give the
//! same results: `dfc-eval` (the interpreter, the oracle) and `dfc-jit`.

use crate::{DataType, Value};

/// Where an expression was written: an index into [`crate::Plan::sites`]. Row errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Site(pub u32);

/// A typed expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: DataType,
    /// Where it was written.
    pub site: Site,
}

/// The forms of an expression. Unless said otherwise a null operand gives null.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// A constant.
    Literal(Value<'static>),
    /// A column of the input, by position.
    Column(usize),
    /// `-x` (overflow of the smallest integer is a row error), `not x`.
    Unary(UnaryOp, Box<Expr>),
    /// See [`BinaryOp`] for the operands' types.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `x is null`: a bool, never null.
    IsNull(Box<Expr>),
    /// The first operand that is not null; all of the result's type apart from nullability. Later operands are
    /// evaluated only when the earlier ones are null.
    Coalesce(Vec<Expr>),
    /// The value of the first arm whose condition is true (null is not true), else `otherwise`. Only the chosen value is
    /// evaluated, conditions in order until one is true. All values have the result's type apart from nullability.
    Case {
        /// Condition and value.
        arms: Vec<(Expr, Expr)>,
        /// The value when no condition is true.
        otherwise: Box<Expr>,
    },
    /// `x in (…)` over constants of x's type, none of them null, sorted and distinct where the type is ordered; a null `x` gives null.
    InList(Box<Expr>, Vec<Value<'static>>),
    /// A conversion to the expression's type (its nullability aside: see [`CastMode`]).
    Cast(Box<Expr>, CastMode),
    /// A native function of the standard library, by its implementation's name (see `dfc_stdlib::natives`), with its arguments
    /// already converted to the declared types. Null handling is the function's own declaration: a strict one gives
    /// null for a null argument without running.
    Call(String, Vec<Expr>),
    /// A field of a record, by position.
    Field(Box<Expr>, usize),
    /// A record built from its fields' values. Never null.
    Record(Vec<Expr>),
    /// A list built from its items' values. Never null.
    List(Vec<Expr>),
    /// `now()` (type timestamp): fixed at the start of a bounded job.
    Now,
    /// `today()` (type date, UTC): fixed at the start of a bounded job.
    Today,
}

/// One-sided operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Arithmetic negation: any numeric or duration; the operand has the result's type.
    Neg,
    /// Three-valued `not`.
    Not,
}

/// Two-sided operators and what they demand of their operands. `T` is the operands' type without nullability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Three-valued, short-circuit: the right side is evaluated unless the left one is false.
    And,
    /// Three-valued, short-circuit: the right side is evaluated unless the left one is true.
    Or,
    /// Both operands of one type, or decimals each of its own, compared exactly. Also lists and records.
    Eq,
    /// As `Eq`.
    Ne,
    /// Both operands of one ordered type, or decimals each of its own. Text is compared by bytes; false < true.
    Lt,
    /// As `Lt`.
    Le,
    /// As `Lt`.
    Gt,
    /// As `Lt`.
    Ge,
    /// Integers or floats: both operands and the result of one type, an overflow is a row error. Decimals: the operands
    /// keep their own decimal types, the exact result is rounded half away from zero to the result's scale, and one that
    /// passes its precision is a row error. `date + duration` (whole days: else a row error), `datetime + duration`,
    /// `timestamp + duration`, `duration + duration`; the temporal operand stands left.
    Add,
    /// As `Add`; also `date − date` (an int64 of days), `datetime − datetime`, `timestamp − timestamp`,
    /// `time − time` (durations).
    Sub,
    /// Numbers as `Add`; `duration * int64`.
    Mul,
    /// Floats, and decimals as `Add`. A zero divisor is a row error. (Integers are cast to float64 before.) An infinite result is a row error.
    Div,
    /// Integers of one type: towards zero. Zero divisor, or min div −1: a row error. The operands may be decimals or floats too: `trunc(a / b)` in the result's type (decimal(38, 0) / float64).
    IntDiv,
    /// The remainder with the dividend's sign; integers or floats of one type, decimals each of its own (result: scale max, as exact value). Zero divisor: a row error.
    Mod,
}

/// What a failing cast, or a null, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// A failure is a row error. A null stays null if the result is nullable, else it is a row error.
    Strict,
    /// A failure gives null (`as?`).
    Try,
}

impl Expr {
    /// A column reference.
    pub fn column(index: usize, ty: DataType) -> Self {
        Expr { kind: ExprKind::Column(index), ty, site: Site::default() }
    }

    /// A constant.
    pub fn literal(value: Value<'static>, ty: DataType) -> Self {
        Expr { kind: ExprKind::Literal(value), ty, site: Site::default() }
    }

    /// Calls `f` on each direct operand.
    pub fn for_each_child<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::Now | ExprKind::Today => {}
            ExprKind::Unary(_, x)
            | ExprKind::IsNull(x)
            | ExprKind::InList(x, _)
            | ExprKind::Cast(x, _)
            | ExprKind::Field(x, _) => f(x),
            ExprKind::Binary(_, l, r) => {
                f(l);
                f(r);
            }
            ExprKind::Coalesce(items) | ExprKind::Call(_, items) | ExprKind::Record(items) | ExprKind::List(items) => {
                items.iter().for_each(f)
            }
            ExprKind::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    f(condition);
                    f(value);
                }
                f(otherwise);
            }
        }
    }

    /// Calls `f` on each direct operand, to change it.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::Now | ExprKind::Today => {}
            ExprKind::Unary(_, x)
            | ExprKind::IsNull(x)
            | ExprKind::InList(x, _)
            | ExprKind::Cast(x, _)
            | ExprKind::Field(x, _) => f(x),
            ExprKind::Binary(_, l, r) => {
                f(l);
                f(r);
            }
            ExprKind::Coalesce(items) | ExprKind::Call(_, items) | ExprKind::Record(items) | ExprKind::List(items) => {
                items.iter_mut().for_each(f)
            }
            ExprKind::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    f(condition);
                    f(value);
                }
                f(otherwise);
            }
        }
    }

    /// The columns it reads, ascending and distinct.
    pub fn columns(&self) -> Vec<usize> {
        fn walk(expr: &Expr, out: &mut Vec<usize>) {
            if let ExprKind::Column(index) = expr.kind {
                out.push(index);
            }
            expr.for_each_child(&mut |child| walk(child, out));
        }
        let mut out = Vec::new();
        walk(self, &mut out);
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Renumbers its columns.
    pub fn map_columns(&mut self, map: &dyn Fn(usize) -> usize) {
        if let ExprKind::Column(index) = &mut self.kind {
            *index = map(*index);
        }
        self.for_each_child_mut(&mut |child| child.map_columns(map));
    }
}
