//! Random programs over random batches, for tests that compare the tiers: with each other, or with something else.
//!
//! Every expression follows the contract of `dfc_ir::expr`; values crowd at the edges of their types.

use dfc_batch::{Batch, ColumnBuilder};
use dfc_eval::calendar::{DAY, FIRST_DAY, LAST_DAY};
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::{Field, IntType, Schema, Type};
use dfc_ir::{BinaryOp, CastMode, DataType, Expr, ExprKind, Program, Site, Step, UnaryOp, Value};

use crate::kind::Kind;

/// A reproducible source of random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the items, of which there is one at least.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    fn wide(&mut self) -> i128 {
        ((u128::from(self.word()) << 64) | u128::from(self.word())) as i128
    }
}

/// The types of columns and expressions, lists and records aside.
pub fn scalar_types() -> Vec<Type> {
    let mut types = vec![
        Type::Bool,
        Type::Float32,
        Type::Float64,
        Type::String,
        Type::Bytes,
        Type::Json,
        Type::Date,
        Type::Time,
        Type::DateTime,
        Type::Timestamp,
        Type::Duration,
    ];
    types.extend(IntType::ALL.map(Type::Int));
    let shapes =
        [(1, 0), (4, 2), (9, 9), (15, 2), (18, 0), (18, 6), (18, 18), (19, 0), (25, 4), (38, 0), (38, 10), (38, 38)];
    types.extend(shapes.map(|(precision, scale)| Type::Decimal(precision, scale)));
    types
}

/// A value of a type, often a special one; null now and then if it may be.
pub fn value(random: &mut Random, ty: &DataType) -> Value<'static> {
    if ty.nullable && random.one_in(5) {
        return Value::Null;
    }
    let small = random.below(7) as i128 - 3;
    match &ty.ty {
        Type::Bool => Value::Bool(random.one_in(2)),
        Type::Int(int) => {
            let int = *int;
            let any = int.min() + (random.wide().unsigned_abs() % (int.max() - int.min() + 1) as u128) as i128;
            let edges =
                [int.min(), int.max(), int.min() + 1, small.max(int.min()), small.max(int.min()), any, any % 1000];
            Value::Int(*random.pick(&edges))
        }
        Type::Float32 | Type::Float64 => {
            let any = f64::from_bits(random.word());
            let edges =
                [0.0, -0.0, 0.5, -1.5, 2.5, small as f64, 1e-3, 123.456, 1e15, -1e19, f64::MIN_POSITIVE, f64::MAX, any];
            let number = *random.pick(&edges);
            let number = if ty.ty == Type::Float32 { f64::from(number as f32) } else { number };
            Value::Float(if number.is_finite() { number } else { 1.0 })
        }
        Type::Decimal(precision, _) => {
            let limit = 10i128.pow((*precision).into()) - 1;
            let any = random.wide() % (limit + 1);
            let edges = [limit, -limit, small.clamp(-limit, limit), 0, any, any % 100_000, any];
            Value::Decimal(*random.pick(&edges))
        }
        Type::String => Value::string(text(random)),
        Type::Json => {
            Value::string(*random.pick(&["null", "1", "-2.50", "\"text\"", "[1, 2]", "{\"a\": {\"b\": null}}", "true"]))
        }
        Type::Bytes => Value::Bytes((0..random.below(20)).map(|_| random.word() as u8).collect::<Vec<u8>>().into()),
        Type::Date => {
            let any = FIRST_DAY + random.below((LAST_DAY - FIRST_DAY + 1) as usize) as i32;
            Value::Date(*random.pick(&[FIRST_DAY, LAST_DAY, 0, small as i32, any, 20_000, any]))
        }
        Type::Time => Value::Time(*random.pick(&[0, 1, DAY - 1, 36_000_000_000, DAY / 2])),
        Type::DateTime => Value::DateTime(moment(random)),
        Type::Timestamp => Value::Timestamp(moment(random)),
        Type::Duration => {
            let any = random.word() as i64;
            let days = DAY * small as i64;
            Value::Duration(*random.pick(&[0, 1, -1, DAY, days, days, 3_600_000_000, any, i64::MIN, i64::MAX]))
        }
        Type::List(item) => Value::List((0..random.below(4)).map(|_| value(random, item)).collect()),
        Type::Record(fields) => Value::Record(fields.iter().map(|field| value(random, &field.ty)).collect()),
        Type::Secret | Type::Null => Value::Null,
    }
}

fn moment(random: &mut Random) -> i64 {
    let first = i64::from(FIRST_DAY) * DAY;
    let last = (i64::from(LAST_DAY) + 1) * DAY - 1;
    let any = first + (random.word() % (last - first) as u64) as i64;
    *random.pick(&[first, last, 0, -1, any, 1_700_000_000_000_000, any])
}

fn text(random: &mut Random) -> String {
    const TEXTS: &[&str] = &[
        "",
        "a",
        "abc",
        "Ab",
        "1",
        "-42",
        "3.14",
        "9223372036854775808",
        "true",
        "2026-01-31",
        "10:00:00",
        "2026-01-31T10:00:00",
        "exactly12byt",
        "thirteen byte",
        "a text that is longer than twelve bytes",
        "金额",
        "naïve café — Straße, ΑΒΓ, ß",
        "🙂🙂🙂🙂",
        "  spaced  ",
        "1h30m",
        "1e3",
        "abcabc",
    ];
    let mut text = String::from(*random.pick(TEXTS));
    if random.one_in(8) {
        text = text.repeat(random.below(6));
    }
    text
}

/// A batch with columns of these types, some of them slices of larger arrays.
pub fn batch(random: &mut Random, types: &[DataType], rows: usize) -> Batch {
    let columns = types
        .iter()
        .map(|ty| {
            let before = if random.one_in(2) { random.below(11) } else { 0 };
            let mut builder = ColumnBuilder::new(ty, rows + before);
            // Some columns that may be null have none.
            let filled = if random.one_in(4) { ty.with_nullable(false) } else { ty.clone() };
            for _ in 0..rows + before {
                builder.push(&value(random, &filled));
            }
            builder.finish().slice(before, rows)
        })
        .collect();
    Batch::new(columns, rows, random.below(100) as u64)
}

/// Makes expressions over the columns of a program as it grows.
struct Grower<'r> {
    random: &'r mut Random,
    /// Columns, lets included.
    columns: Vec<DataType>,
    types: Vec<Type>,
}

impl Grower<'_> {
    fn make(&mut self, kind: ExprKind, ty: Type, nullable: bool) -> Expr {
        Expr { kind, ty: DataType { ty, nullable }, site: Site(self.random.below(5) as u32) }
    }

    fn leaf(&mut self, ty: &Type, nullable: bool) -> Expr {
        let fits: Vec<usize> = (0..self.columns.len())
            .filter(|k| self.columns[*k].ty == *ty && (nullable || !self.columns[*k].nullable))
            .collect();
        if !fits.is_empty() && !self.random.one_in(4) {
            let index = *self.random.pick(&fits);
            return Expr::column(index, self.columns[index].clone());
        }
        let literal = DataType { ty: ty.clone(), nullable };
        let value = value(self.random, &literal);
        // A literal's type is nullable if it is null.
        let is_null = value.is_null();
        self.make(ExprKind::Literal(value), ty.clone(), is_null)
    }

    /// An expression of this type; one that is never null unless `nullable`.
    fn expr(&mut self, ty: &Type, nullable: bool, depth: usize) -> Expr {
        if depth == 0 || self.random.one_in(6) {
            return self.leaf(ty, nullable);
        }
        if !self.random.one_in(3)
            && let Some(expr) = self.operator(ty, nullable, depth - 1)
        {
            return expr;
        }
        self.general(ty, nullable, depth - 1)
    }

    /// A form that there is for every type.
    fn general(&mut self, ty: &Type, nullable: bool, depth: usize) -> Expr {
        match self.random.below(4) {
            0 => {
                let arms: Vec<(Expr, Expr)> = (0..1 + self.random.below(2))
                    .map(|_| (self.expr(&Type::Bool, true, depth), self.expr(ty, nullable, depth)))
                    .collect();
                let otherwise = Box::new(self.expr(ty, nullable, depth));
                let any = otherwise.ty.nullable || arms.iter().any(|(_, value)| value.ty.nullable);
                self.make(ExprKind::Case { arms, otherwise }, ty.clone(), any)
            }
            1 => {
                let mut items = vec![self.expr(ty, true, depth)];
                if self.random.one_in(2) {
                    items.push(self.expr(ty, true, depth));
                }
                items.push(self.expr(ty, nullable, depth));
                let all = items.iter().all(|item| item.ty.nullable);
                self.make(ExprKind::Coalesce(items), ty.clone(), all)
            }
            _ => {
                let from = self.random.pick(&self.types.clone()).clone();
                if !dfc_eval::can_cast(&from, ty) {
                    return self.leaf(ty, nullable);
                }
                let operand = Box::new(self.expr(&from, true, depth));
                if nullable && self.random.one_in(2) {
                    return self.make(ExprKind::Cast(operand, CastMode::Try), ty.clone(), true);
                }
                // From a JSON null comes a null.
                let may = nullable && (operand.ty.nullable || from == Type::Json);
                self.make(ExprKind::Cast(operand, CastMode::Strict), ty.clone(), may)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, left: (&Type, &Type), ty: &Type, nullable: bool, depth: usize) -> Expr {
        let l = Box::new(self.expr(left.0, nullable, depth));
        let r = Box::new(self.expr(left.1, nullable, depth));
        let any = l.ty.nullable || r.ty.nullable;
        self.make(ExprKind::Binary(op, l, r), ty.clone(), any)
    }

    fn call(&mut self, name: &str, args: &[&Type], ty: &Type, nullable: bool, depth: usize) -> Expr {
        let args: Vec<Expr> = args.iter().map(|arg| self.expr(arg, nullable, depth)).collect();
        let any = args.iter().any(|arg| arg.ty.nullable);
        self.make(ExprKind::Call(name.into(), args), ty.clone(), any)
    }

    /// A form that this type has of its own.
    fn operator(&mut self, ty: &Type, nullable: bool, depth: usize) -> Option<Expr> {
        use BinaryOp::*;
        let text = &Type::String;
        Some(match ty {
            Type::Bool => return Some(self.condition(nullable, depth)),
            Type::Int(int) => match self.random.below(8) {
                0 if int.signed() => self.negation(ty, nullable, depth),
                1 if *int == IntType::I64 => self.binary(Sub, (&Type::Date, &Type::Date), ty, nullable, depth),
                2 if *int == IntType::I64 => self.call("length", &[text], ty, nullable, depth),
                3 if *int == IntType::I64 => {
                    let part = *self.random.pick(&["year", "month", "day", "quarter", "day_of_week"]);
                    self.call(part, &[&Type::Date], ty, nullable, depth)
                }
                _ => {
                    let op = *self.random.pick(&[Add, Sub, Mul, IntDiv, Mod]);
                    self.binary(op, (ty, ty), ty, nullable, depth)
                }
            },
            Type::Float32 | Type::Float64 => match self.random.below(6) {
                0 => self.negation(ty, nullable, depth),
                1 if *ty == Type::Float64 => self.binary(IntDiv, (ty, ty), ty, nullable, depth),
                _ => {
                    let op = *self.random.pick(&[Add, Sub, Mul, Div, Mod]);
                    self.binary(op, (ty, ty), ty, nullable, depth)
                }
            },
            Type::Decimal(precision, scale) => {
                let decimals: Vec<Type> =
                    self.types.iter().filter(|ty| matches!(ty, Type::Decimal(..))).cloned().collect();
                let (left, right) = (self.random.pick(&decimals).clone(), self.random.pick(&decimals).clone());
                match self.random.below(7) {
                    0 => self.negation(ty, nullable, depth),
                    1 if (*precision, *scale) == (38, 0) => self.binary(IntDiv, (&left, &right), ty, nullable, depth),
                    _ => {
                        let op = *self.random.pick(&[Add, Sub, Mul, Mul, Div, Mod]);
                        self.binary(op, (&left, &right), ty, nullable, depth)
                    }
                }
            }
            Type::String => match self.random.below(6) {
                0 => self.call("concat", &[text, text], ty, nullable, depth),
                1 => self.call("concat", &[text, text, text], ty, nullable, depth),
                2 => self.call("substring", &[text, &Type::INT64, &Type::INT64], ty, nullable, depth),
                3 => self.call("replace", &[text, text, text], ty, nullable, depth),
                _ => {
                    let name = *self.random.pick(&["upper", "lower", "trim", "reverse"]);
                    self.call(name, &[text], ty, nullable, depth)
                }
            },
            Type::Date => match self.random.below(4) {
                0 => self.make(ExprKind::Today, ty.clone(), false),
                _ => {
                    let op = *self.random.pick(&[Add, Sub]);
                    self.binary(op, (ty, &Type::Duration), ty, nullable, depth)
                }
            },
            Type::Timestamp if self.random.one_in(4) => self.make(ExprKind::Now, ty.clone(), false),
            Type::DateTime | Type::Timestamp => {
                let op = *self.random.pick(&[Add, Sub]);
                self.binary(op, (ty, &Type::Duration), ty, nullable, depth)
            }
            Type::Duration => match self.random.below(6) {
                0 => self.negation(ty, nullable, depth),
                1 => self.binary(Mul, (ty, &Type::INT64), ty, nullable, depth),
                2 | 3 => {
                    let of = self.random.pick(&[Type::DateTime, Type::Timestamp, Type::Time]).clone();
                    self.binary(Sub, (&of, &of), ty, nullable, depth)
                }
                _ => {
                    let op = *self.random.pick(&[Add, Sub]);
                    self.binary(op, (ty, ty), ty, nullable, depth)
                }
            },
            _ => return None,
        })
    }

    fn negation(&mut self, ty: &Type, nullable: bool, depth: usize) -> Expr {
        let operand = Box::new(self.expr(ty, nullable, depth));
        let any = operand.ty.nullable;
        self.make(ExprKind::Unary(UnaryOp::Neg, operand), ty.clone(), any)
    }

    fn condition(&mut self, nullable: bool, depth: usize) -> Expr {
        use BinaryOp::*;
        let (bool, text) = (&Type::Bool, &Type::String);
        let of = self.random.pick(&self.types.clone()).clone();
        match self.random.below(9) {
            0 => {
                let operand = Box::new(self.expr(bool, nullable, depth));
                let any = operand.ty.nullable;
                self.make(ExprKind::Unary(UnaryOp::Not, operand), Type::Bool, any)
            }
            1 | 2 => {
                let op = *self.random.pick(&[And, Or]);
                self.binary(op, (bool, bool), bool, nullable, depth)
            }
            3 => {
                // A list too, if there is a column of one.
                let list = self.columns.iter().position(|column| Kind::of(&column.ty).is_none());
                let operand = match list {
                    Some(index) if self.random.one_in(2) => Expr::column(index, self.columns[index].clone()),
                    _ => self.expr(&of, true, depth),
                };
                self.make(ExprKind::IsNull(Box::new(operand)), Type::Bool, false)
            }
            4 => {
                let operand = Box::new(self.expr(&of, nullable, depth));
                let count = *self.random.pick(&[1, 3, 12]);
                let mut values: Vec<Value<'static>> =
                    (0..count).map(|_| value(self.random, &DataType::of(of.clone()))).collect();
                if of.is_ordered() {
                    values.sort_by(|a, b| dfc_eval::compare(a, b).unwrap_or(std::cmp::Ordering::Equal));
                    values.dedup();
                }
                let any = operand.ty.nullable;
                self.make(ExprKind::InList(operand, values), Type::Bool, any)
            }
            5 => {
                let name = *self.random.pick(&["starts_with", "ends_with", "contains"]);
                self.call(name, &[text, text], bool, nullable, depth)
            }
            6 if self.columns.iter().any(|column| Kind::of(&column.ty).is_none() && (nullable || !column.nullable)) => {
                let lists: Vec<usize> = (0..self.columns.len())
                    .filter(|k| Kind::of(&self.columns[*k].ty).is_none() && (nullable || !self.columns[*k].nullable))
                    .collect();
                let index = *self.random.pick(&lists);
                let list = self.columns[index].clone();
                let (l, r) = (Expr::column(index, list.clone()), Expr::column(index, list.clone()));
                self.make(ExprKind::Binary(Eq, Box::new(l), Box::new(r)), Type::Bool, list.nullable)
            }
            _ => {
                let ops: &[BinaryOp] = if of.is_ordered() { &[Eq, Ne, Lt, Le, Gt, Ge] } else { &[Eq, Ne] };
                let op = *self.random.pick(ops);
                self.binary(op, (&of, &of), bool, nullable, depth)
            }
        }
    }
}

/// A program over a few columns of random types, with up to three steps and four outputs.
pub fn program(random: &mut Random) -> Program {
    let all = scalar_types();
    // Few types, so that columns and operators meet.
    let types: Vec<Type> = (0..4).map(|_| random.pick(&all).clone()).collect();
    let mut inputs: Vec<DataType> =
        (0..5).map(|_| DataType { ty: random.pick(&types).clone(), nullable: random.one_in(2) }).collect();
    if random.one_in(4) {
        let item = DataType { ty: random.pick(&types).clone(), nullable: random.one_in(2) };
        inputs.push(DataType { ty: Type::List(Box::new(item)), nullable: random.one_in(2) });
    }
    let mut grower = Grower { random, columns: inputs.clone(), types: types.clone() };
    let mut steps = Vec::new();
    for _ in 0..grower.random.below(4) {
        match grower.random.below(5) {
            0 | 1 => {
                let condition = grower.expr(&Type::Bool, true, 3);
                // Most random conditions are seldom true: some rows should get through.
                let kept = grower.leaf(&Type::Bool, true);
                let either = ExprKind::Binary(BinaryOp::Or, Box::new(condition), Box::new(kept));
                let either = grower.make(either, Type::Bool, true);
                steps.push(Step::Filter(either));
            }
            2 => steps.push(Step::Require(grower.expr(&Type::Bool, true, 2), "a rule".into())),
            _ => {
                let ty = grower.random.pick(&types).clone();
                let expr = grower.expr(&ty, true, 3);
                grower.columns.push(expr.ty.clone());
                steps.push(Step::Let(expr));
            }
        }
    }
    let mut outputs = Vec::new();
    for _ in 0..1 + grower.random.below(3) {
        let ty = grower.random.pick(&types).clone();
        let nullable = grower.random.one_in(2);
        let expr = grower.expr(&ty, nullable, 4);
        outputs.push(expr);
    }
    let index = grower.random.below(inputs.len());
    outputs.push(Expr::column(index, inputs[index].clone()));
    let fields = outputs.iter().enumerate().map(|(k, expr)| Field::new(format!("c{k}"), expr.ty.clone())).collect();
    Program { name: "random".into(), inputs, steps, outputs, schema: Schema { fields } }
}

/// An aggregate over columns of these types: up to three keys, up to four functions that keep their state in the row, most of the time.
pub fn aggregate(random: &mut Random, inputs: &[DataType]) -> AggregateSpec {
    use AggFunction::*;
    let types: Vec<Type> = inputs.iter().map(|ty| ty.ty.clone()).filter(|ty| Kind::of(ty).is_some()).collect();
    let mut grower = Grower { random, columns: inputs.to_vec(), types: types.clone() };
    let keys: Vec<Expr> = (0..grower.random.below(4))
        .map(|_| {
            let ty = grower.random.pick(&types).clone();
            let depth = *grower.random.pick(&[0, 0, 0, 2]);
            grower.expr(&ty, true, depth)
        })
        .collect();
    let mut aggregates = Vec::new();
    for _ in 0..1 + grower.random.below(4) {
        let ty = grower.random.pick(&types).clone();
        let arg = grower.expr(&ty, true, 2);
        let decimal = matches!(ty, Type::Decimal(..));
        let (function, result) = match grower.random.below(7) {
            0 => (Count, DataType::of(Type::INT64)),
            1 if decimal => (Sum, DataType::optional(Type::Decimal(38, decimal_scale(&ty)))),
            1 if ty.is_float() => (Sum, DataType::optional(Type::Float64)),
            1 if matches!(ty, Type::Int(_)) => (Sum, DataType::optional(Type::INT64)),
            2 if decimal => (Avg, DataType::optional(Type::Decimal(38, decimal_scale(&ty)))),
            2 if ty.is_numeric() => (Avg, DataType::optional(Type::Float64)),
            3 if ty.is_ordered() => (Min, DataType::optional(ty.clone())),
            4 if ty.is_ordered() && ty.is_fixed_width() => (Max, DataType::optional(ty.clone())),
            5 if ty == Type::Bool => (BoolAnd, DataType::optional(Type::Bool)),
            6 if ty == Type::Bool => (BoolOr, DataType::optional(Type::Bool)),
            _ => (Count, DataType::of(Type::INT64)),
        };
        let args = if function == Count && grower.random.one_in(2) { Vec::new() } else { vec![arg] };
        let filter = grower.random.one_in(3).then(|| grower.expr(&Type::Bool, true, 2));
        aggregates.push(Aggregate { function, args, filter, ty: result, site: Site(2) });
    }
    let types = keys.iter().map(|key| key.ty.clone()).chain(aggregates.iter().map(|a| a.ty.clone()));
    let fields = types.enumerate().map(|(k, ty)| Field::new(format!("c{k}"), ty)).collect();
    let output = Schema { fields };
    AggregateSpec { node: "aggregate".into(), inputs: inputs.to_vec(), keys, aggregates, output }
}

fn decimal_scale(ty: &Type) -> u8 {
    match ty {
        Type::Decimal(_, scale) => *scale,
        _ => 0,
    }
}
