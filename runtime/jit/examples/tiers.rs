//! What the compiler to machine code is worth: classes of expressions in both tiers and by arrow's kernels, over the same columns.
//!
//! `cargo run --release -p dfc-jit --example tiers [seconds per figure] [class]`
//!
//! The three answers are compared before anything is timed. A kernel of arrow reads and writes whole columns; both tiers do
//! what a pipeline does: the errors of each row, the columns that the expression names. Printed: million rows a second,
//! the median of five turns that take the three in order, and machine code's ratio to the others.

use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_arith::numeric::{add, mul, sub};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Date32Type, Decimal64Type, Decimal128Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, Scalar, StringViewArray,
};
use arrow_ord::cmp;
use dfc_batch::{Batch, ColumnBuilder};
use dfc_grammar::ast::ItemKind;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::types::{Field, Schema, Type};
use dfc_ir::{DataType, Expr, Program, Site, Value};
use dfc_jit::{Env, PreparedAggregate, PreparedProgram, Tier, prepare_aggregate, prepare_program};
use dfc_typeck::{Checker, Column, FunctionTable, Globals, ItemKey, Namespace, NoSites, Scope};

const ROWS: usize = 16 * 1024;

const FIELDS: &str = "record Row {
    id: int64, count: int64, maybe: int64?, price: decimal(15, 2), discount: decimal(4, 2), wide: decimal(30, 10),
    x: float64, y: float64, day: date, status: string, name: string, note: string,
}";

/// What arrow makes of the columns.
type Kernel = fn(&Batch) -> ArrayRef;

/// Classes of expressions: the class, the expression, arrow's way.
const CLASSES: &[(&str, &str, Kernel)] = &[
    ("integer", "id * 3 + count", |b| {
        let product = ok(mul(column(b, "id"), &int(3)));
        ok(add(&product, column(b, "count")))
    }),
    ("integer compare", "id < count and count > 10", |b| {
        let both = ok(cmp::lt(column(b, "id"), column(b, "count")));
        bool(arrow_arith::boolean::and(&both, &ok(cmp::gt(column(b, "count"), &int(10)))))
    }),
    ("float", "x * 2.5 + y", |b| {
        let product = ok(mul(column(b, "x"), &Float64Array::new_scalar(2.5)));
        ok(add(&product, column(b, "y")))
    }),
    ("decimal", "price * (1 - discount)", |b| {
        let one = Scalar::new(decimal(vec![100], 3, 2));
        ok(mul(column(b, "price"), &ok(sub(&one, column(b, "discount")))))
    }),
    ("decimal compare", "discount between 0.05 and 0.07", |b| {
        let low = ok(cmp::gt_eq(column(b, "discount"), &Scalar::new(decimal(vec![5], 4, 2))));
        bool(arrow_arith::boolean::and(
            &low,
            &ok(cmp::lt_eq(column(b, "discount"), &Scalar::new(decimal(vec![7], 4, 2)))),
        ))
    }),
    ("wide decimal", "wide + wide", |b| ok(add(column(b, "wide"), column(b, "wide")))),
    ("float compare", "x < y and x >= 1.5", |b| {
        let both = ok(cmp::lt(column(b, "x"), column(b, "y")));
        bool(arrow_arith::boolean::and(&both, &ok(cmp::gt_eq(column(b, "x"), &Float64Array::new_scalar(1.5)))))
    }),
    ("date compare", "day <= @1998-09-02", |b| {
        bool(Ok(ok(cmp::lt_eq(column(b, "day"), &Date32Array::new_scalar(10_471)))))
    }),
    ("date part", "year(day)", |b| {
        ok(arrow_arith::temporal::date_part(column(b, "day"), arrow_arith::temporal::DatePart::Year))
    }),
    ("string compare", "status == \"open\"", |b| {
        bool(Ok(ok(cmp::eq(column(b, "status"), &StringViewArray::new_scalar("open")))))
    }),
    ("string order", "status < \"d\"", |b| {
        bool(Ok(ok(cmp::lt(column(b, "status"), &StringViewArray::new_scalar("d")))))
    }),
    ("string function", "length(name)", |b| {
        // The kernel counts bytes. Characters are as many where all are of one byte, which has to be known first.
        let names = column(b, "name").as_string_view();
        if names.is_ascii() {
            return ok(arrow_string::length::length(names));
        }
        std::sync::Arc::new(names.iter().map(|name| Some(name?.chars().count() as i64)).collect::<Int64Array>())
    }),
    ("string start", "starts_with(name, \"name 1\")", |b| {
        bool(arrow_string::like::starts_with(column(b, "name"), &StringViewArray::new_scalar("name 1")))
    }),
    ("pattern", "note like \"%special%requests%\"", |b| {
        bool(arrow_string::like::like(column(b, "note"), &StringViewArray::new_scalar("%special%requests%")))
    }),
    ("regex", "name matches \"[0-9]+7$\"", |b| {
        let names = column(b, "name").as_string_view();
        bool(arrow_string::regexp::regexp_is_match_scalar(names, "[0-9]+7$", None))
    }),
    ("nullable", "maybe + 1", |b| ok(add(column(b, "maybe"), &int(1)))),
    ("nullable compare", "maybe > 10", |b| bool(Ok(ok(cmp::gt(column(b, "maybe"), &int(10)))))),
    ("nullable default", "maybe ?? 0", |b| {
        let maybe = column(b, "maybe");
        let there = ok(arrow_arith::boolean::is_not_null(maybe));
        ok(arrow_select::zip::zip(&there, maybe, &int(0)))
    }),
    ("cast", "id as string", |b| ok(arrow_cast::cast(column(b, "id"), &arrow_schema::DataType::Utf8View))),
];

/// Aggregates of all rows as one: the class, as it is written, the function and its column, arrow's way.
const AGGREGATES: &[(&str, &str, AggFunction, &str, Kernel)] = &[
    ("aggregate", "sum(price)", AggFunction::Sum, "price", |b| {
        let sum = arrow_arith::aggregate::sum(column(b, "price").as_primitive::<Decimal128Type>());
        std::sync::Arc::new(decimal(vec![sum.unwrap_or_default()], 38, 2))
    }),
    ("aggregate of dates", "max(day)", AggFunction::Max, "day", |b| {
        let most = arrow_arith::aggregate::max(column(b, "day").as_primitive::<Date32Type>());
        std::sync::Arc::new(Date32Array::from(vec![most]))
    }),
];

fn ok<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    result.expect("arrow has a value for every row")
}

fn bool(result: Result<BooleanArray, arrow_schema::ArrowError>) -> ArrayRef {
    std::sync::Arc::new(ok(result))
}

fn int(value: i64) -> Scalar<Int64Array> {
    Int64Array::new_scalar(value)
}

fn decimal(values: Vec<i128>, precision: u8, scale: i8) -> Decimal128Array {
    ok(Decimal128Array::from(values).with_precision_and_scale(precision, scale))
}

/// The fields, and an expression over them, by the checker.
fn checked(text: &str) -> (Vec<Column>, dfc_ir::Expr) {
    let key = ItemKey { file: 0, namespace: Namespace::Stream, name: "s".into(), nth: 0 };
    let (globals, mut sites) = (Globals::default(), NoSites);
    let source = format!("{FIELDS}\nstream s = x |> f({text})\n");
    let parsed = dfc_grammar::parse(&source);
    let kinds: Vec<&ItemKind> = parsed.file.items.iter().map(|item| item.kind.as_ref()).collect();
    let [ItemKind::Record(record), ItemKind::Stream(stream)] = kinds.as_slice() else {
        panic!("{text}: {:?}", parsed.errors)
    };
    let mut checker = Checker::new(FunctionTable::standard(), &globals, key.clone(), Scope::None, &mut sites);
    let fields = checker.resolve_fields(&record.fields).expect("sound types");
    let columns: Vec<Column> = fields.into_iter().map(|f| Column::new(f.name, f.ty, Vec::new())).collect();
    let mut checker = Checker::new(FunctionTable::standard(), &globals, key, Scope::Row(&columns), &mut sites);
    let expr = checker.check(&stream.chain.links[0].args[0].value, None);
    let found = checker.diagnostics;
    (columns.clone(), expr.unwrap_or_else(|| panic!("{text}: {found:?}")))
}

fn number(name: &str) -> usize {
    let names = ["id", "count", "maybe", "price", "discount", "wide", "x", "y", "day", "status", "name", "note"];
    names.iter().position(|other| *other == name).expect("a field")
}

fn column<'b>(batch: &'b Batch, name: &str) -> &'b ArrayRef {
    &batch.columns[number(name)]
}

fn rows(types: &[DataType]) -> Batch {
    let mut builders: Vec<ColumnBuilder> = types.iter().map(|ty| ColumnBuilder::new(ty, ROWS)).collect();
    for row in 0..ROWS {
        let mixed = (row as i64 * 2_654_435_761) % 100_003;
        let note =
            format!("carefully {} deposits {}", mixed % 97, if mixed % 11 == 0 { "special requests" } else { "nag" });
        let values = [
            Value::Int(mixed.into()),
            Value::Int((mixed % 50_000).into()),
            if mixed % 5 == 0 { Value::Null } else { Value::Int(mixed.into()) },
            Value::Decimal(i128::from(90_000 + mixed * 90)),
            Value::Decimal(i128::from(mixed % 11)),
            Value::Decimal(i128::from(mixed) * 1_000_000_000_000_000_000_000),
            Value::Float(mixed as f64 / 7.0),
            Value::Float(mixed as f64 / 3.0),
            Value::Date(8_000 + (mixed % 3_500) as i32),
            Value::str(["open", "closed", "waiting"][(mixed % 3) as usize]),
            Value::string(format!("name {mixed}")),
            Value::string(note),
        ];
        for (builder, value) in builders.iter_mut().zip(&values) {
            builder.push(value);
        }
    }
    Batch::new(builders.into_iter().map(ColumnBuilder::finish).collect(), ROWS, 0)
}

/// The same columns as arrow's users have them: decimals of 128 bits, whatever their precision.
fn usual(batch: &Batch) -> Batch {
    let widened = batch.columns.iter().map(|column| match column.data_type() {
        arrow_schema::DataType::Decimal64(p, s) => {
            ok(arrow_cast::cast(column, &arrow_schema::DataType::Decimal128(*p, *s)))
        }
        _ => column.clone(),
    });
    Batch::new(widened.collect(), batch.rows, batch.seq)
}

/// A column's values as text, whatever its type's width.
fn shown(array: &ArrayRef) -> Vec<Option<String>> {
    let text = |at: usize| match array.data_type() {
        arrow_schema::DataType::Decimal128(_, scale) => {
            format!("{} / 10^{scale}", array.as_primitive::<Decimal128Type>().value(at))
        }
        arrow_schema::DataType::Decimal64(_, scale) => {
            format!("{} / 10^{scale}", array.as_primitive::<Decimal64Type>().value(at))
        }
        arrow_schema::DataType::Float64 => array.as_primitive::<Float64Type>().value(at).to_string(),
        arrow_schema::DataType::Int64 => array.as_primitive::<Int64Type>().value(at).to_string(),
        _ => ok(arrow_cast::display::array_value_to_string(array, at)),
    };
    (0..array.len()).map(|at| array.is_valid(at).then(|| text(at))).collect()
}

fn same(class: &str, made: &[Option<String>], wanted: &[Option<String>]) {
    let differs = made.iter().zip(wanted).position(|(a, b)| a != b);
    if let Some(row) = differs {
        panic!("{class}: row {row} is {:?}, the interpreter says {:?}", made[row], wanted[row]);
    }
    assert_eq!(made.len(), wanted.len(), "{class}");
}

fn run(program: &dyn PreparedProgram, batch: &Batch) -> ArrayRef {
    let mut errors = Vec::new();
    let made = program.evaluate(batch, &mut errors);
    assert!(errors.is_empty());
    made.columns.into_iter().next().expect("one output")
}

/// Nanoseconds a row: of the median pass, which is too short to be interrupted often.
fn measure(seconds: f64, pass: &mut dyn FnMut() -> ArrayRef) -> f64 {
    let (start, mut passes) = (Instant::now(), Vec::new());
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        let start = Instant::now();
        black_box(pass());
        passes.push(start.elapsed().as_nanos() as f64);
    }
    median(passes) / ROWS as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.1);
    println!("| class | expression | interpreter | machine code | arrow | times the interpreter | times arrow |");
    println!("|---|---|---|---|---|---|---|");
    let wanted = std::env::args().nth(2);
    let chosen = |class: &str| wanted.as_ref().is_none_or(|name| name == class);
    for (class, text, kernel) in CLASSES.iter().filter(|(class, ..)| chosen(class)) {
        let (columns, expr) = checked(text);
        let inputs: Vec<DataType> = columns.iter().map(|column| column.ty.clone()).collect();
        let batch = rows(&inputs);
        let usual = usual(&batch);
        let schema = Schema { fields: vec![Field::new("out".to_owned(), expr.ty.clone())] };
        let program = Program { name: (*class).into(), inputs, steps: Vec::new(), outputs: vec![expr], schema };
        let [jit, interpreter] = [Tier::Jit, Tier::Interpreter].map(|tier| {
            let (made, report) = prepare_program(&program, tier, Env::default());
            assert!(report.not_compiled.is_empty(), "{class}: {:?}", report.not_compiled);
            made
        });
        let wanted = shown(&run(interpreter.as_ref(), &batch));
        same(class, &shown(&run(jit.as_ref(), &batch)), &wanted);
        same(class, &shown(&kernel(&usual)), &wanted);
        compare(
            class,
            text,
            seconds,
            [&mut || run(interpreter.as_ref(), &batch), &mut || run(jit.as_ref(), &batch), &mut || kernel(&usual)],
        );
    }
    for (class, text, function, name, kernel) in AGGREGATES.iter().filter(|(class, ..)| chosen(class)) {
        let (columns, _) = checked("id");
        let inputs: Vec<DataType> = columns.iter().map(|column| column.ty.clone()).collect();
        let batch = rows(&inputs);
        let usual = usual(&batch);
        let arg = &inputs[number(name)];
        let ty = match (function, &arg.ty) {
            (AggFunction::Sum, Type::Decimal(_, scale)) => DataType::optional(Type::Decimal(38, *scale)),
            (_, ty) => DataType::optional(ty.clone()),
        };
        let args = vec![Expr::column(number(name), arg.clone())];
        let output = Schema { fields: vec![Field::new("out".to_owned(), ty.clone())] };
        let aggregates = vec![Aggregate { function: *function, args, filter: None, ty, site: Site(0) }];
        let spec = AggregateSpec { node: (*class).into(), inputs, keys: Vec::new(), aggregates, output };
        let [jit, interpreter] = [Tier::Jit, Tier::Interpreter].map(|tier| {
            let (made, report) = prepare_aggregate(None, &spec, tier, Env::default());
            assert!(report.not_compiled.is_empty(), "{class}: {:?}", report.not_compiled);
            made
        });
        let pass = |prepared: &dyn PreparedAggregate| {
            let (mut table, mut errors) = (prepared.table(), Vec::new());
            prepared.update(&batch, &mut table, &mut errors);
            assert!(errors.is_empty());
            ok(table.results(&spec, 0..table.len())).columns.swap_remove(0)
        };
        let wanted = shown(&pass(interpreter.as_ref()));
        same(class, &shown(&pass(jit.as_ref())), &wanted);
        same(class, &shown(&kernel(&usual)), &wanted);
        compare(
            class,
            text,
            seconds,
            [&mut || pass(interpreter.as_ref()), &mut || pass(jit.as_ref()), &mut || kernel(&usual)],
        );
    }
}

/// Times interpreter, machine code and arrow in turn, and prints their line.
fn compare(class: &str, text: &str, seconds: f64, ways: [&mut dyn FnMut() -> ArrayRef; 3]) {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..15 {
        times[turn % 3].push(measure(seconds, &mut *ways[turn % 3]));
    }
    let [interpreted, compiled, arrow] = times.map(median);
    let [a, b, c] = [interpreted, compiled, arrow].map(|nanos| 1_000.0 / nanos);
    let (slower, arrows) = (interpreted / compiled, arrow / compiled);
    println!("| {class} | `{text}` | {a:.0} | {b:.0} | {c:.0} | {slower:.0} | {arrows:.2} |");
}
