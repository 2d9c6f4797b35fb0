//! Named cases, each operator by itself: what once was wrong, and what is likely to be.

use dfc_ir::types::{Field, IntType, Schema, Type};
use dfc_ir::{BinaryOp, CastMode, DataType, Expr, ExprKind, Program, Site, Value};

use super::agreement::check;

fn make(kind: ExprKind, ty: Type, nullable: bool) -> Expr {
    Expr { kind, ty: DataType { ty, nullable }, site: Site(1) }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr, ty: &Type) -> Expr {
    let nullable = left.ty.nullable || right.ty.nullable;
    make(ExprKind::Binary(op, Box::new(left.clone()), Box::new(right.clone())), ty.clone(), nullable)
}

fn cast(operand: &Expr, ty: &Type) -> Expr {
    make(ExprKind::Cast(Box::new(operand.clone()), CastMode::Strict), ty.clone(), operand.ty.nullable)
}

/// A program that computes one expression.
fn program(inputs: &[DataType], expr: Expr) -> Program {
    let schema = Schema { fields: vec![Field::new("result", expr.ty.clone())] };
    Program { name: "case".into(), inputs: inputs.to_vec(), steps: Vec::new(), outputs: vec![expr], schema }
}

fn batch(inputs: &[DataType], rows: &[Vec<Value<'static>>]) -> dfc_batch::Batch {
    let columns = inputs
        .iter()
        .enumerate()
        .map(|(k, ty)| {
            let mut builder = dfc_batch::ColumnBuilder::new(ty, rows.len());
            rows.iter().for_each(|row| builder.push(&row[k]));
            builder.finish()
        })
        .collect();
    dfc_batch::Batch::new(columns, rows.len(), 0)
}

#[test]
fn a_bool_made_from_a_null_leaves_its_neighbours_alone() {
    let int = Type::Int(IntType::I64);
    let inputs = [DataType::optional(int.clone()), DataType::of(int.clone())];
    let [maybe, number] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
    // Where the first is null, the sum's register holds the second.
    let rows: Vec<Vec<Value<'static>>> = (0..20)
        .map(|k| {
            vec![if k % 3 == 0 { Value::Null } else { Value::Int(-1) }, Value::Int(if k % 3 == 0 { 254 } else { 1 })]
        })
        .collect();
    let sum = binary(BinaryOp::Add, &maybe, &number, &int);
    assert!(check(&program(&inputs, cast(&sum, &Type::Bool)), &batch(&inputs, &rows), "bool"));
}

/// Every operator over columns of each type it takes, without and with nulls, at the edges of the type.
#[test]
fn every_operator_of_every_type() {
    use BinaryOp::*;
    let random = &mut crate::testing::Random::new(7);
    let arithmetic: &[BinaryOp] = &[Add, Sub, Mul, IntDiv, Mod];
    let floats: &[BinaryOp] = &[Add, Sub, Mul, Div, Mod];
    for ty in crate::testing::scalar_types() {
        for nullable in [false, true] {
            let inputs = [DataType { ty: ty.clone(), nullable }, DataType { ty: ty.clone(), nullable }];
            let [left, right] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
            let rows = crate::testing::batch(random, &inputs, 200);
            let mut exprs: Vec<Expr> = [Eq, Ne].map(|op| binary(op, &left, &right, &Type::Bool)).into();
            if ty.is_ordered() {
                exprs.extend([Lt, Le, Gt, Ge].map(|op| binary(op, &left, &right, &Type::Bool)));
            }
            let ops = match ty {
                Type::Int(_) => arithmetic,
                Type::Float32 | Type::Float64 | Type::Decimal(..) => floats,
                Type::Duration => &[Add, Sub],
                _ => &[],
            };
            exprs.extend(ops.iter().map(|op| binary(*op, &left, &right, &ty)));
            if ty.is_numeric() || ty == Type::Duration {
                exprs.push(make(ExprKind::Unary(dfc_ir::UnaryOp::Neg, Box::new(left.clone())), ty.clone(), nullable));
            }
            exprs.push(make(ExprKind::IsNull(Box::new(left.clone())), Type::Bool, false));
            for expr in exprs {
                let what = format!("{:?} over {ty}", expr.kind);
                assert!(check(&program(&inputs, expr), &rows, &what), "{what}");
            }
        }
    }
}

/// Every cast there is between scalar types, strict and trying.
#[test]
fn every_cast() {
    let random = &mut crate::testing::Random::new(11);
    for from in crate::testing::scalar_types() {
        let inputs = [DataType::optional(from.clone())];
        let rows = crate::testing::batch(random, &inputs, 120);
        for to in crate::testing::scalar_types().into_iter().filter(|to| dfc_eval::can_cast(&from, to)) {
            for (mode, nullable) in [(CastMode::Strict, true), (CastMode::Strict, false), (CastMode::Try, true)] {
                let column = Box::new(Expr::column(0, inputs[0].clone()));
                let expr = make(ExprKind::Cast(column, mode), to.clone(), nullable);
                let what = format!("{from} to {to}, {mode:?}");
                assert!(check(&program(&inputs, expr), &rows, &what), "{what}");
            }
        }
    }
}

/// Constant patterns have a way of their own, others are islands; a null has no answer, and a text that is no pattern is an error.
#[test]
fn patterns_of_both_functions() {
    let inputs = [DataType::optional(Type::String), DataType::of(Type::String)];
    let texts = ["", "abc", "special requests", "a special, request", "é%", "12", "x_y"];
    let patterns = ["", "%", "%special%req%", "a%", "%c", "é\\%", "_b_", "\\", "^[0-9]+$", "(", "a|é"];
    let rows: Vec<Vec<Value<'static>>> = texts
        .iter()
        .flat_map(|text| patterns.iter().map(move |pattern| vec![Value::str(text), Value::str(pattern)]))
        .chain([vec![Value::Null, Value::str("a")]])
        .collect();
    let batch = batch(&inputs, &rows);
    for function in ["like", "matches"] {
        let call = |pattern: Expr| {
            let args = vec![Expr::column(0, inputs[0].clone()), pattern];
            program(&inputs, make(ExprKind::Call(function.into(), args), Type::Bool, true))
        };
        assert!(check(&call(Expr::column(1, inputs[1].clone())), &batch, function));
        for pattern in patterns {
            let literal = Expr::literal(Value::str(pattern), DataType::of(Type::String));
            assert!(check(&call(literal), &batch, &format!("{function} {pattern}")));
        }
    }
}

/// Texts that are alike as far as some step of their comparison looks: in the head, in the view, in each word of a constant.
fn look_alikes() -> Vec<String> {
    let whole = "COLLECT CODE OF TAKE BACK RETURNS, DELIVERED";
    let mut texts: Vec<String> =
        [0, 1, 3, 4, 5, 8, 11, 12, 13, 16, 20, 21, 36, 37, 44].map(|len| whole[..len].into()).into();
    for at in [0, 3, 4, 11, 12, 15, 19, 35, 36] {
        let mut other = whole.to_string();
        other.replace_range(at..=at, "\u{1}");
        texts.extend([13, 16, 37].iter().filter(|len| at < **len).map(|len| other[..*len].to_string()));
    }
    // What is behind a short text's end in its view is 0, as these are.
    texts.extend(
        ["\0", "C\0", "COLL\0", "COLLECT COD\0", "COLLECT CODE\0", "é", "COLé", "COLLECT COé", "\u{10ffff}"]
            .map(String::from),
    );
    texts
}

#[test]
fn texts_that_are_nearly_the_same() {
    use BinaryOp::*;
    let inputs = [DataType::optional(Type::String), DataType::of(Type::String)];
    let texts = look_alikes();
    let rows: Vec<Vec<Value<'static>>> = texts
        .iter()
        .flat_map(|left| {
            texts.iter().map(move |right| vec![Value::Str(left.clone().into()), Value::Str(right.clone().into())])
        })
        .chain([vec![Value::Null, Value::str("")]])
        .collect();
    let all = batch(&inputs, &rows);
    let [left, right] = [0, 1].map(|k| Expr::column(k, inputs[k].clone()));
    for op in [Eq, Ne, Lt, Le, Gt, Ge] {
        assert!(check(&program(&inputs, binary(op, &left, &right, &Type::Bool)), &all, &format!("{op:?}")));
    }
    let once: Vec<_> =
        rows.iter().step_by(texts.len() + 1).cloned().chain([vec![Value::Null, Value::str("")]]).collect();
    let once = batch(&inputs, &once);
    for text in &texts {
        let constant = Expr::literal(Value::Str(text.clone().into()), DataType::of(Type::String));
        let mut exprs: Vec<Expr> = [Eq, Ne, Lt, Le, Gt, Ge]
            .iter()
            .flat_map(|op| [binary(*op, &left, &constant, &Type::Bool), binary(*op, &constant, &left, &Type::Bool)])
            .collect();
        let list = vec![Value::Str(text.clone().into()), Value::str("TAKE")];
        exprs.push(make(ExprKind::InList(Box::new(left.clone()), list), Type::Bool, true));
        for expr in exprs {
            let what = format!("{:?}", expr.kind);
            assert!(check(&program(&inputs, expr), &once, &what), "{what}");
        }
    }
}
