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
use arrow_array::types::{Decimal64Type, Decimal128Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, Scalar, StringViewArray,
};
use arrow_ord::cmp;
use dfc_batch::{Batch, ColumnBuilder};
use dfc_grammar::ast::ItemKind;
use dfc_ir::types::{Field, Schema};
use dfc_ir::{DataType, Program, Value};
use dfc_jit::{Env, PreparedProgram, Tier, prepare_program};
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
    ("date compare", "day <= @1998-09-02", |b| {
        bool(Ok(ok(cmp::lt_eq(column(b, "day"), &Date32Array::new_scalar(10_471)))))
    }),
    ("date part", "year(day)", |b| {
        ok(arrow_arith::temporal::date_part(column(b, "day"), arrow_arith::temporal::DatePart::Year))
    }),
    ("string compare", "status == \"open\"", |b| {
        bool(Ok(ok(cmp::eq(column(b, "status"), &StringViewArray::new_scalar("open")))))
    }),
    ("string function", "length(name)", |b| ok(arrow_string::length::bit_length(column(b, "name")))),
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
    ("nullable default", "maybe ?? 0", |b| {
        let maybe = column(b, "maybe");
        let there = ok(arrow_arith::boolean::is_not_null(maybe));
        ok(arrow_select::zip::zip(&there, maybe, &int(0)))
    }),
    ("cast", "id as string", |b| ok(arrow_cast::cast(column(b, "id"), &arrow_schema::DataType::Utf8View))),
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

/// Nanoseconds a row.
fn measure(seconds: f64, mut pass: impl FnMut() -> ArrayRef) -> f64 {
    let (start, mut passes) = (Instant::now(), 0u32);
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        black_box(pass());
        passes += 1;
    }
    start.elapsed().as_nanos() as f64 / f64::from(passes) / ROWS as f64
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.1);
    println!("| class | expression | interpreter | machine code | arrow | times the interpreter | times arrow |");
    println!("|---|---|---|---|---|---|---|");
    let wanted = std::env::args().nth(2);
    for (class, text, kernel) in CLASSES.iter().filter(|(class, ..)| wanted.as_ref().is_none_or(|name| name == class)) {
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
        let mut arrow = shown(&kernel(&usual));
        if *text == "length(name)" {
            // Arrow counts bits or bytes; all of these are one byte long.
            arrow.iter_mut().flatten().for_each(|bits| *bits = (bits.parse::<i64>().unwrap_or(0) / 8).to_string());
        }
        same(class, &arrow, &wanted);
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..5 {
            times[0].push(measure(seconds, || run(interpreter.as_ref(), &batch)));
            times[1].push(measure(seconds, || run(jit.as_ref(), &batch)));
            times[2].push(measure(seconds, || kernel(&usual)));
        }
        let [interpreted, compiled, arrow] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        let [a, b, c] = [interpreted, compiled, arrow].map(|nanos| 1_000.0 / nanos);
        println!(
            "| {class} | `{text}` | {a:.0} | {b:.0} | {c:.0} | {:.2} | {:.2} |",
            interpreted / compiled,
            arrow / compiled
        );
    }
}
