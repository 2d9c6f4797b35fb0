//! What is computed in blocks of rows: each class, around the ends of blocks, with nulls, and with rows that go wrong in the midst.

use arrow_array::Array;
use dfc_ir::types::{Field, IntType, Schema, Type};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Program, Site, Step, UnaryOp, Value};

use super::agreement::{check, check_all};
use crate::lower::in_lanes;
use crate::testing::{self, Random};

/// Batches that end before, at and behind the end of a block.
const SIZES: [usize; 10] = [0, 1, 15, 16, 17, 31, 32, 33, 100, 1000];

fn make(kind: ExprKind, ty: Type, nullable: bool) -> Expr {
    Expr { kind, ty: DataType { ty, nullable }, site: Site(1) }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr, ty: &Type) -> Expr {
    let nullable = left.ty.nullable || right.ty.nullable;
    make(ExprKind::Binary(op, Box::new(left.clone()), Box::new(right.clone())), ty.clone(), nullable)
}

fn not(operand: &Expr) -> Expr {
    make(ExprKind::Unary(UnaryOp::Not, Box::new(operand.clone())), Type::Bool, operand.ty.nullable)
}

fn literal(value: Value<'static>, ty: &Type) -> Expr {
    Expr::literal(value, DataType::of(ty.clone()))
}

fn call(name: &str, args: &[&Expr], ty: &Type) -> Expr {
    let nullable = args.iter().any(|arg| arg.ty.nullable);
    make(ExprKind::Call(name.into(), args.iter().map(|arg| (*arg).clone()).collect()), ty.clone(), nullable)
}

/// Computes the expressions, beside a column that is passed on.
fn outputs(inputs: &[DataType], exprs: &[Expr]) -> Program {
    let outputs: Vec<Expr> = [Expr::column(0, inputs[0].clone())].into_iter().chain(exprs.iter().cloned()).collect();
    let fields = outputs.iter().enumerate().map(|(k, expr)| Field::new(format!("c{k}"), expr.ty.clone())).collect();
    Program { name: "case".into(), inputs: inputs.to_vec(), steps: Vec::new(), outputs, schema: Schema { fields } }
}

/// Keeps the rows for which all are true.
fn filters(inputs: &[DataType], conditions: &[Expr]) -> Program {
    let steps = conditions.iter().cloned().map(Step::Filter).collect();
    Program { steps, ..outputs(inputs, &[]) }
}

/// Checks the program with batches of all sizes: values at the edges of their types, and ordinary ones with one in the midst that isn't.
fn check_sizes(random: &mut Random, program: &Program, what: &str) {
    let mut batches = Vec::new();
    for rows in SIZES {
        batches.push((testing::batch(random, &program.inputs, rows), format!("{what}, {rows} wild rows")));
        for odd in [None, Some(random.below(rows.max(1)))] {
            let tame = tame(random, &program.inputs, rows, odd);
            batches.push((tame, format!("{what}, {rows} tame rows but {odd:?}")));
        }
    }
    assert!(check_all(program, batches), "{what}");
}

/// Small values, some of them null, with which arithmetic doesn't fail; in row `odd` any values. Slices of longer arrays.
fn tame(random: &mut Random, types: &[DataType], rows: usize, odd: Option<usize>) -> dfc_batch::Batch {
    let columns = types
        .iter()
        .map(|ty| {
            let before = random.below(20);
            let mut builder = dfc_batch::ColumnBuilder::new(ty, rows + before);
            for row in 0..before + rows {
                let value = match odd {
                    Some(odd) if row == before + odd => testing::value(random, ty),
                    _ => small(random, ty),
                };
                builder.push(&value);
            }
            builder.finish().slice(before, rows)
        })
        .collect();
    dfc_batch::Batch::new(columns, rows, 0)
}

fn small(random: &mut Random, ty: &DataType) -> Value<'static> {
    if ty.nullable && random.one_in(7) {
        return Value::Null;
    }
    let number = 1 + random.below(9) as i64;
    match &ty.ty {
        Type::Int(_) => Value::Int(number.into()),
        Type::Decimal(..) => Value::Decimal(number.into()),
        Type::Float32 | Type::Float64 => Value::Float(*random.pick(&[0.0, -0.0, 0.5, -1.5, number as f64])),
        Type::Date => Value::Date(number as i32),
        Type::Time => Value::Time(number),
        Type::DateTime => Value::DateTime(number),
        Type::Timestamp => Value::Timestamp(number),
        Type::Duration => Value::Duration(number),
        _ => testing::value(random, ty),
    }
}

/// Comparisons of every type with columns, with constants and in lists, as outputs and as filters.
#[test]
fn comparisons_of_every_type() {
    use BinaryOp::*;
    let random = &mut Random::new(21);
    for ty in testing::scalar_types() {
        for nullable in [false, true] {
            let inputs = [DataType { ty: ty.clone(), nullable }, DataType { ty: ty.clone(), nullable: false }];
            let [left, right] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
            let constant = literal(testing::value(random, &DataType::of(ty.clone())), &ty);
            let ops: &[BinaryOp] = if ty.is_ordered() { &[Eq, Ne, Lt, Le, Gt, Ge] } else { &[Eq, Ne] };
            let mut exprs: Vec<Expr> = ops
                .iter()
                .flat_map(|op| {
                    let of = [(&left, &right), (&left, &constant), (&constant, &right)];
                    of.map(|(l, r)| binary(*op, l, r, &Type::Bool))
                })
                .collect();
            let listed: Vec<Value<'static>> = match &constant.kind {
                ExprKind::Literal(value) => vec![value.clone()],
                _ => Vec::new(),
            };
            exprs.push(make(ExprKind::InList(Box::new(left.clone()), listed), Type::Bool, nullable));
            exprs.push(make(ExprKind::IsNull(Box::new(left.clone())), Type::Bool, false));
            let both = binary(And, &exprs[0], &not(&exprs[exprs.len() - 2]), &Type::Bool);
            let either = binary(Or, &both, &exprs[1], &Type::Bool);
            exprs.extend([both, either]);
            let blocks: Vec<Expr> = exprs.iter().filter(|expr| in_lanes(expr)).cloned().collect();
            check_sizes(random, &outputs(&inputs, &exprs), &format!("outputs over {ty}"));
            check_sizes(random, &outputs(&inputs, &blocks), &format!("blocks over {ty}"));
            for condition in blocks.iter().rev().take(3) {
                check_sizes(
                    random,
                    &filters(&inputs, std::slice::from_ref(condition)),
                    &format!("{:?} over {ty}", condition.kind),
                );
            }
        }
    }
}

/// Arithmetic that may go wrong, in any row of a block.
#[test]
fn arithmetic_that_goes_wrong() {
    use BinaryOp::*;
    let random = &mut Random::new(22);
    for ty in [Type::Float32, Type::Float64, Type::INT64] {
        let ops: &[BinaryOp] = if ty == Type::INT64 { &[Add, Sub] } else { &[Add, Sub, Mul, Div] };
        for nullable in [false, true] {
            let inputs = [DataType { ty: ty.clone(), nullable }, DataType::of(ty.clone())];
            let [left, right] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
            let two = literal(if ty == Type::INT64 { Value::Int(2) } else { Value::Float(2.0) }, &ty);
            for op in ops {
                let once = binary(*op, &left, &right, &ty);
                let twice = binary(Add, &once, &two, &ty);
                let negated = make(ExprKind::Unary(UnaryOp::Neg, Box::new(twice.clone())), ty.clone(), nullable);
                let condition = binary(Le, &twice, &right, &Type::Bool);
                assert_eq!(in_lanes(&once), *op != Div || !nullable, "{op:?} over {ty}");
                let exprs = [once, twice, negated];
                check_sizes(random, &outputs(&inputs, &exprs), &format!("{op:?} over {ty}"));
                check_sizes(random, &filters(&inputs, &[condition]), &format!("{op:?} over {ty}, compared"));
            }
        }
    }
}

/// Every row of two blocks may be the one that goes wrong; those before it are kept, and those behind it.
#[test]
fn each_row_may_go_wrong() {
    let inputs = [DataType::of(Type::Float64)];
    let column = Expr::column(0, inputs[0].clone());
    let program = outputs(&inputs, &[binary(BinaryOp::Mul, &column, &column, &Type::Float64)]);
    for wrong in 0..40 {
        let mut builder = dfc_batch::ColumnBuilder::new(&inputs[0], 40);
        (0..40).for_each(|row| builder.push(&Value::Float(if row == wrong { 1e300 } else { f64::from(row) })));
        let batch = dfc_batch::Batch::new(vec![builder.finish()], 40, 0);
        let (jit, _) = crate::prepare_program(&program, crate::Tier::Jit, crate::Env::default());
        let mut errors = Vec::new();
        let kept = jit.evaluate(&batch, &mut errors).kept;
        assert_eq!(errors.len(), 1, "row {wrong}");
        let others: Vec<u32> = (0..40).filter(|row| *row != wrong as u32).collect();
        assert_eq!(kept.as_deref(), Some(&others[..]), "row {wrong}");
        assert!(check(&program, &batch, &format!("row {wrong}")));
    }
}

/// Filters of which all, none, or some rows of a block pass.
#[test]
fn filters_of_all_sorts_of_blocks() {
    let random = &mut Random::new(23);
    let inputs = [DataType::of(Type::Date), DataType::optional(Type::Decimal(4, 2))];
    let [day, discount] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
    let early = binary(BinaryOp::Lt, &day, &literal(Value::Date(500), &Type::Date), &Type::Bool);
    let cheap = binary(BinaryOp::Ge, &discount, &literal(Value::Decimal(5), &Type::Decimal(4, 2)), &Type::Bool);
    let both = [early, cheap];
    for rows in SIZES {
        for run in [1, 16, 100] {
            let mut builders = inputs.clone().map(|ty| dfc_batch::ColumnBuilder::new(&ty, rows));
            for row in 0..rows {
                builders[0].push(&Value::Date(if row / run % 3 == 0 { 400 } else { 600 }));
                let none = random.one_in(4);
                builders[1].push(&if none { Value::Null } else { Value::Decimal(random.below(11) as i128) });
            }
            let batch = dfc_batch::Batch::new(builders.map(dfc_batch::ColumnBuilder::finish).into(), rows, 0);
            for conditions in [&both[..1], &both[1..], &both] {
                assert!(check(&filters(&inputs, conditions), &batch, &format!("{rows} rows in runs of {run}")));
            }
        }
    }
}

/// Texts beside constants of all lengths: shorter, equal, longer, with zero bytes, and null.
#[test]
fn texts_beside_constants() {
    let inputs = [DataType::optional(Type::String), DataType::of(Type::String)];
    let [maybe, text] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
    let whole = "abcdéfghijklmnopq";
    let constants: Vec<String> = (0..=whole.len())
        .filter(|end| whole.is_char_boundary(*end))
        .map(|end| whole[..end].to_string())
        .chain(["ab\0".into(), "\0".into(), "abcdé\0".into(), "abX".into(), "abcdéfghijkX".into()])
        .collect();
    let mut texts: Vec<Value<'static>> = constants.iter().map(|text| Value::string(text.clone())).collect();
    texts.extend(["é", "ééé", "金额金额", "abcdéfghijklmnopqXYZ", "abcdéfghijklmnopX"].map(Value::str));
    // Each is met in each half of a block, as the first and the last of a batch.
    let rows: Vec<[Value<'static>; 2]> = (0..texts.len() * 3)
        .map(|row| {
            let text = texts[row % texts.len()].clone();
            [if row % 5 == 3 { Value::Null } else { text.clone() }, texts[(row * 7 + 1) % texts.len()].clone()]
        })
        .collect();
    let mut builders = inputs.clone().map(|ty| dfc_batch::ColumnBuilder::new(&ty, rows.len()));
    rows.iter().for_each(|row| builders.iter_mut().zip(row).for_each(|(builder, value)| builder.push(value)));
    let batch = dfc_batch::Batch::new(builders.map(dfc_batch::ColumnBuilder::finish).into(), rows.len(), 0);
    for constant in &constants {
        let wanted = literal(Value::string(constant.clone()), &Type::String);
        for column in [&maybe, &text] {
            let exprs = [
                binary(BinaryOp::Eq, column, &wanted, &Type::Bool),
                binary(BinaryOp::Ne, &wanted, column, &Type::Bool),
                binary(BinaryOp::Le, column, &wanted, &Type::Bool),
                call("starts_with", &[column, &wanted], &Type::Bool),
                call("starts_with", &[&wanted, column], &Type::Bool),
                binary(BinaryOp::Eq, &maybe, &text, &Type::Bool),
                call("length", &[column], &Type::INT64),
                make(
                    ExprKind::InList(Box::new(column.clone()), vec![Value::str("ab"), Value::string(constant.clone())]),
                    Type::Bool,
                    column.ty.nullable,
                ),
            ];
            for expr in exprs {
                let what = format!("{:?} beside {constant:?}", expr.kind);
                assert!(check(&outputs(&inputs, std::slice::from_ref(&expr)), &batch, &what));
                if expr.ty.ty == Type::Bool {
                    assert!(check(&filters(&inputs, &[expr]), &batch, &what));
                }
            }
        }
    }
}

/// Which expressions are computed in blocks: those whose values stand in lanes and can't fail, or fail seldom.
#[test]
fn what_is_computed_in_blocks() {
    use BinaryOp::*;
    let column = |ty: Type| Expr::column(0, DataType::of(ty));
    let compare = |ty: Type| binary(Lt, &column(ty.clone()), &column(ty), &Type::Bool);
    for ty in [Type::Date, Type::Timestamp, Type::Float32, Type::Decimal(18, 2), Type::Int(IntType::U16)] {
        assert!(in_lanes(&compare(ty.clone())), "{ty}");
    }
    for ty in [Type::String, Type::Decimal(19, 2), Type::Bool] {
        assert!(!in_lanes(&compare(ty.clone())), "{ty}");
    }
    let status = column(Type::String);
    let text = |text: &'static str| literal(Value::str(text), &Type::String);
    assert!(in_lanes(&binary(Eq, &status, &text("twelve bytes"), &Type::Bool)));
    assert!(!in_lanes(&binary(Eq, &status, &text("thirteen byte"), &Type::Bool)));
    assert!(in_lanes(&call("starts_with", &[&status, &text("four")], &Type::Bool)));
    assert!(!in_lanes(&call("starts_with", &[&status, &text("five5")], &Type::Bool)));
    assert!(!in_lanes(&binary(Mul, &column(Type::INT64), &column(Type::INT64), &Type::INT64)));
}
