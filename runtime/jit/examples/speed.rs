//! How many rows a second pass a filter with a product, and a small aggregate (the shapes of TPC-H Q6 and Q1), in both tiers.
//!
//! `cargo run --release -p dfc-jit --example speed`

use std::time::Instant;

use dfc_batch::{Batch, ColumnBuilder};
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::{Field, Schema, Type};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Program, Site, Step, Value};
use dfc_jit::{Env, Tier, prepare_aggregate, prepare_program};

const ROWS: usize = 32 * 1024;

fn binary(op: BinaryOp, left: Expr, right: Expr, ty: Type) -> Expr {
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), ty: DataType::of(ty), site: Site(0) }
}

fn schema(exprs: &[Expr]) -> Schema {
    Schema { fields: exprs.iter().enumerate().map(|(k, expr)| Field::new(format!("c{k}"), expr.ty.clone())).collect() }
}

/// Runs `pass` over and over for a second; prints 10^9 rows a second.
fn measure(what: &str, mut pass: impl FnMut()) {
    pass();
    let (start, mut passes) = (Instant::now(), 0u64);
    while start.elapsed().as_millis() < 1000 {
        pass();
        passes += 1;
    }
    let rows = passes as f64 * ROWS as f64;
    println!("{what:<44} {:8.4} Grow/s", rows / start.elapsed().as_secs_f64() / 1e9);
}

fn main() {
    let money = Type::Decimal(15, 2);
    let inputs: Vec<DataType> =
        [money.clone(), Type::Decimal(4, 2), Type::Date, Type::String, Type::String].map(DataType::of).into();
    let [price, discount, day, flag, status] = std::array::from_fn(|k| Expr::column(k, inputs[k].clone()));
    let mut builders: Vec<ColumnBuilder> = inputs.iter().map(|ty| ColumnBuilder::new(ty, ROWS)).collect();
    for row in 0..ROWS {
        let mixed = (row as i128 * 2_654_435_761) % 100_003;
        builders[0].push(&Value::Decimal(90_000 + mixed * 90));
        builders[1].push(&Value::Decimal(mixed % 11));
        builders[2].push(&Value::Date(8_000 + (mixed % 2_500) as i32));
        builders[3].push(&Value::str(["A", "N", "R"][(mixed % 3) as usize]));
        builders[4].push(&Value::str(["F", "O"][(mixed % 2) as usize]));
    }
    let batch = Batch::new(builders.into_iter().map(ColumnBuilder::finish).collect(), ROWS, 0);

    let one = Expr::literal(Value::Decimal(1), DataType::of(Type::Decimal(1, 0)));
    let rest = binary(BinaryOp::Sub, one, discount.clone(), Type::Decimal(5, 2));
    let revenue = binary(BinaryOp::Mul, price.clone(), rest, Type::Decimal(21, 4));
    let limit = Expr::literal(Value::Date(9_500), DataType::of(Type::Date));
    let recent = binary(BinaryOp::Le, day, limit, Type::Bool);
    let outputs = vec![revenue.clone()];
    let filter = Program {
        name: "filter".into(),
        inputs: inputs.clone(),
        steps: vec![Step::Filter(recent.clone())],
        schema: schema(&outputs),
        outputs,
    };
    let outputs = vec![flag, status, price, discount, revenue];
    let before =
        Program { name: "derive".into(), inputs, steps: vec![Step::Filter(recent)], schema: schema(&outputs), outputs };
    let columns: Vec<Expr> = before.schema.types().into_iter().enumerate().map(|(k, ty)| Expr::column(k, ty)).collect();
    let aggregate = |function, arg: Option<usize>, ty: DataType| Aggregate {
        function,
        args: arg.map(|k| columns[k].clone()).into_iter().collect(),
        filter: None,
        ty,
        site: Site(0),
    };
    let sum = |k, scale| aggregate(AggFunction::Sum, Some(k), DataType::of(Type::Decimal(38, scale)));
    let avg = |k, scale| aggregate(AggFunction::Avg, Some(k), DataType::of(Type::Decimal(38, scale)));
    let aggregates = vec![
        sum(2, 2),
        sum(4, 4),
        avg(2, 12),
        avg(3, 12),
        aggregate(AggFunction::Count, None, DataType::of(Type::INT64)),
    ];
    let keys = columns[..2].to_vec();
    let types = keys.iter().map(|key| key.ty.clone()).chain(aggregates.iter().map(|a| a.ty.clone()));
    let output = Schema { fields: types.enumerate().map(|(k, ty)| Field::new(format!("c{k}"), ty)).collect() };
    let spec = AggregateSpec { node: "aggregate".into(), inputs: before.schema.types(), keys, aggregates, output };

    for tier in [Tier::Jit, Tier::Interpreter] {
        let (program, report) = prepare_program(&filter, tier, Env::default());
        println!("{tier:?}: filter compiled in {} µs, {} bytes", report.micros, report.code_bytes);
        measure("day <= limit, price * (1 - discount)", || {
            let mut errors = Vec::new();
            std::hint::black_box(program.run(&batch, &mut errors));
            assert!(errors.is_empty());
        });
        let (fused, report) = prepare_aggregate(Some(&before), &spec, tier, Env::default());
        println!("{tier:?}: aggregate compiled in {} µs, {} bytes", report.micros, report.code_bytes);
        let mut table = fused.table();
        measure("2 text keys, 2 sums, 2 averages, count", || {
            let mut errors = Vec::new();
            fused.update(&batch, &mut table, &mut errors);
            assert!(errors.is_empty());
        });
    }
}
