//! What the functions give, edge cases above all. The examples in the declarations are tested through the compiler.

use super::{CallTypes, FnError, lookup};
use crate::calendar::{DAY_MICROS, from_civil};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Type, Value};
use proptest::prelude::*;

fn call_typed(name: &str, args: &[Value<'_>], types: &[Type], result: Type) -> Result<Value<'static>, FnError> {
    let native = lookup(name).unwrap_or_else(|| panic!("no function `{name}`"));
    let types: Vec<_> = types.iter().cloned().map(DataType::of).collect();
    (native.call)(args, &CallTypes { args: &types, result: &DataType::of(result) })
}

/// A call whose types follow from the values; the result has the type of the first.
fn call(name: &str, args: &[Value<'_>]) -> Result<Value<'static>, FnError> {
    let types: Vec<_> = args.iter().map(type_of).collect();
    let result = types.first().cloned().unwrap_or(Type::Null);
    call_typed(name, args, &types, result)
}

fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::INT64,
        Value::Float(_) => Type::Float64,
        Value::Decimal(_) => Type::Decimal(38, 2),
        Value::Str(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        Value::Date(_) => Type::Date,
        Value::Time(_) => Type::Time,
        Value::DateTime(_) => Type::DateTime,
        Value::Timestamp(_) => Type::Timestamp,
        Value::Duration(_) => Type::Duration,
        Value::List(items) => Type::List(Box::new(DataType::optional(items.first().map_or(Type::Null, type_of)))),
        Value::Record(_) => Type::Record(Vec::new()),
    }
}

fn s(text: &str) -> Value<'_> {
    Value::str(text)
}

fn i(n: i128) -> Value<'static> {
    Value::Int(n)
}

fn f(x: f64) -> Value<'static> {
    Value::Float(x)
}

fn d(year: i64, month: u32, day: u32) -> Value<'static> {
    Value::Date(from_civil(year, month, day).unwrap())
}

fn micros(year: i64, month: u32, day: u32, hour: i64, minute: i64) -> i64 {
    i64::from(from_civil(year, month, day).unwrap()) * DAY_MICROS + (hour * 60 + minute) * 60_000_000
}

fn dt(year: i64, month: u32, day: u32, hour: i64, minute: i64) -> Value<'static> {
    Value::DateTime(micros(year, month, day, hour, minute))
}

fn ts(year: i64, month: u32, day: u32, hour: i64, minute: i64) -> Value<'static> {
    Value::Timestamp(micros(year, month, day, hour, minute))
}

#[track_caller]
fn gives(name: &str, args: &[Value<'_>], expected: Value<'_>) {
    assert_eq!(call(name, args), Ok(expected.into_owned()), "{name}{args:?}");
}

#[track_caller]
fn fails(name: &str, args: &[Value<'_>], code: &str, words: &str) {
    match call(name, args) {
        Err(error) => {
            assert_eq!(error.code, code, "{name}{args:?}: {}", error.message);
            assert!(error.message.contains(words), "{name}{args:?}: {}", error.message);
        }
        Ok(value) => panic!("{name}{args:?} gives {value:?}"),
    }
}

#[test]
fn lengths_and_positions_count_characters() {
    gives("length", &[s("日本語😀")], i(4));
    gives("length", &[Value::Bytes(vec![1, 2].into())], i(2));
    gives("length", &[Value::List(vec![Value::Null, i(1)])], i(2));
    gives("position", &[s("日本語"), s("語")], i(3));
    gives("position", &[s(""), s("")], i(1));
    gives("substring", &[s("日本語"), i(2), i(1)], s("本"));
    gives("left", &[s("日本語"), i(2)], s("日本"));
    gives("right", &[s("日本語"), i(2)], s("本語"));
    gives("lpad", &[s("語"), i(3), s("日本")], s("日本語"));
    gives("rpad", &[s("日本語"), i(2)], s("日本"));
}

#[test]
fn parts_of_texts_end_where_the_text_ends() {
    for (start, count, expected) in [
        (1, 2, "he"),
        (0, 2, "h"),
        (-1, 2, ""),
        (-1, 3, "h"),
        (5, 9, "o"),
        (6, 1, ""),
        (i128::from(i64::MAX), 5, ""),
        (i128::from(i64::MIN), i128::from(i64::MAX), ""),
        (1, i128::from(i64::MAX), "hello"),
        (3, 0, ""),
    ] {
        gives("substring", &[s("hello"), i(start), i(count)], s(expected));
    }
    gives("substring", &[s("hello"), i(-5)], s("hello"));
    gives("substring", &[s("日本語"), i(4)], s(""));
    for (n, left, right) in
        [(0, "", ""), (9, "abc", "abc"), (-1, "ab", "bc"), (-3, "", ""), (-9, "", ""), (i128::from(i64::MIN), "", "")]
    {
        gives("left", &[s("abc"), i(n)], s(left));
        gives("right", &[s("abc"), i(n)], s(right));
    }
    for (n, expected) in [(1, "a"), (3, ""), (4, ""), (-1, ""), (-3, "a"), (-4, "")] {
        gives("split_part", &[s("a,b,"), s(","), i(n)], s(expected));
    }
    gives("split_part", &[s("abc"), s(""), i(1)], s("abc"));
    gives("split_part", &[s("abc"), s(""), i(-1)], s("abc"));
    gives("split_part", &[s("abc"), s(""), i(2)], s(""));
    fails("split_part", &[s("abc"), s(","), i(0)], "R0105", "from 1");
}

#[test]
fn texts_change() {
    gives("upper", &[s("straße")], s("STRASSE"));
    gives("lower", &[s("ΣΑΣ")], s("σας"));
    gives("initcap", &[s("élan VITAL, 2nd")], s("Élan Vital, 2nd"));
    gives("trim", &[s(" \t ")], s("\t"));
    gives("trim", &[s("éaé"), s("é")], s("a"));
    gives("trim", &[s("abc"), s("")], s("abc"));
    gives("reverse", &[s("a😀")], s("😀a"));
    gives("translate", &[s("aab"), s("aab"), s("xyz")], s("xxz"));
    gives("replace", &[s("aaa"), s("aa"), s("b")], s("ba"));
    gives("lpad", &[s("ab"), i(-1)], s(""));
    gives("lpad", &[s("ab"), i(5), s("")], s("ab"));
    gives("concat", &[s("a"), s(""), s("b")], s("ab"));
    gives("format", &[s("no places")], s("no places"));
    gives("format", &[s("{}{{{}}}é"), s("{}"), s("b")], s("{}{b}é"));
    fails("format", &[s("{} {}"), s("a")], "R0105", "2 places for values, and the call gives 1");
    fails("format", &[s("{"), s("a")], "R0105", "single brace");
    gives("chr", &[i(0x1F600)], s("😀"));
    fails("chr", &[i(i128::from(i64::MIN))], "R0105", "code point");
}

#[test]
fn results_have_a_limit() {
    let long = "x".repeat(1 << 20);
    fails("repeat", &[s(&long), i(65)], "R0101", "64 MiB");
    fails("repeat", &[s("ab"), i(i128::from(i64::MAX))], "R0101", "64 MiB");
    gives("repeat", &[s(""), i(i128::from(i64::MAX))], s(""));
    fails("lpad", &[s("a"), i(i128::from(i64::MAX))], "R0101", "64 MiB");
    fails("rpad", &[s("a"), i(40 << 20), s("é")], "R0101", "64 MiB");
    fails("replace", &[s(&long), s("x"), s(&"y".repeat(65))], "R0101", "64 MiB");
    fails("regexp_replace", &[s(&long), s("x"), s(&"y".repeat(65))], "R0101", "64 MiB");
}

#[test]
fn patterns_match_anywhere() {
    let yes = Value::Bool(true);
    gives("matches", &[s("order 12"), s(r"\d+")], yes.clone());
    gives("matches", &[s("order"), s(r"^\d")], Value::Bool(false));
    gives("like", &[s("order"), s("o%r")], yes);
    gives("regexp_replace", &[s("abc"), s("(?<x>b)"), s("[${x}$$]")], s("a[b$]c"));
    gives("regexp_replace", &[s("abc"), s(""), s("-")], s("-a-b-c-"));
    gives("regexp_replace", &[s("é"), s("."), s("$0$0")], s("éé"));
    gives("regexp_extract", &[s("ab"), s("a(x)?b"), i(1)], Value::Null);
    gives("regexp_extract", &[s("ab"), s("a(x)?b"), i(0)], s("ab"));
    fails("regexp_extract", &[s("ab"), s("a"), i(-1)], "R0105", "has no group -1");
    fails("regexp_replace", &[s("ab"), s("(a)"), s(r"\1")], "R0105", "`$1`");
    fails("regexp_replace", &[s("ab"), s("(a)"), s("$1x")], "R0105", "`1x`");
    fails("matches", &[s("a"), s("[")], "R0105", "unclosed character class");
}

#[test]
fn numbers_stay_inside_their_types() {
    let narrow = |name, n| call_typed(name, &[i(n)], &[Type::Int(IntType::I8)], Type::Int(IntType::I8));
    assert_eq!(narrow("abs", -127), Ok(i(127)));
    assert_eq!(narrow("abs", -128).unwrap_err().code, "R0101");
    fails("abs", &[i(i128::from(i64::MIN))], "R0101", "does not fit int64");
    gives("abs", &[f(-0.5)], f(0.5));
    gives("sign", &[f(-0.0)], i(0));
    gives("round", &[i(-1250), i(-2)], i(-1300));
    gives("round", &[i(7), i(i128::from(i64::MIN))], i(0));
    gives("trunc", &[f(-1.987), i(2)], f(-1.98));
    fails("round", &[i(i128::from(i64::MAX)), i(-1)], "R0101", "does not fit int64");
    fails("round", &[f(f64::MAX), i(-308)], "R0101", "does not fit float64");
    let decimal = |name, n, from: (u8, u8), to: (u8, u8), digits: Option<i128>| {
        let args: Vec<_> = [Value::Decimal(n)].into_iter().chain(digits.map(i)).collect();
        call_typed(name, &args, &[Type::Decimal(from.0, from.1), Type::INT64], Type::Decimal(to.0, to.1))
    };
    assert_eq!(decimal("round", 995, (3, 2), (3, 1), Some(1)), Ok(Value::Decimal(100)));
    assert_eq!(decimal("round", -125, (3, 2), (2, 0), None), Ok(Value::Decimal(-1)));
    assert_eq!(decimal("ceil", 999, (3, 2), (2, 0), None), Ok(Value::Decimal(10)));
    assert_eq!(decimal("floor", -901, (3, 2), (2, 0), None), Ok(Value::Decimal(-10)));
    assert_eq!(decimal("round", 999, (3, 0), (4, 0), Some(-3)), Ok(Value::Decimal(1000)));
    let limit = 10i128.pow(38) - 1;
    assert_eq!(decimal("round", limit, (38, 0), (38, 0), Some(-1)).unwrap_err().code, "R0101");
    assert_eq!(decimal("round", limit, (38, 38), (1, 0), None), Ok(Value::Decimal(1)));
    assert_eq!(decimal("abs", -limit, (38, 0), (38, 0), None), Ok(Value::Decimal(limit)));
}

#[test]
fn functions_of_real_numbers_refuse_what_has_no_value() {
    gives("sqrt", &[i(9)], f(3.0));
    gives("sqrt", &[Value::Decimal(225)], f(1.5));
    gives("power", &[i(-2), i(3)], f(-8.0));
    gives("power", &[i(0), i(0)], f(1.0));
    gives("ln", &[f(1.0)], f(0.0));
    gives("log10", &[i(1000)], f(3.0));
    gives("exp", &[f(-1e9)], f(0.0));
    fails("sqrt", &[f(-0.1)], "R0105", "square root");
    fails("ln", &[i(0)], "R0105", "above 0");
    fails("log10", &[i(-1)], "R0105", "above 0");
    fails("exp", &[i(1000)], "R0101", "too large");
    fails("power", &[i(10), i(400)], "R0101", "too large");
    fails("power", &[i(0), i(-1)], "R0105", "negative power");
    fails("power", &[i(-8), f(0.5)], "R0105", "fractional");
    gives("mod", &[i(-7), i(3)], i(-1));
    gives("mod", &[f(7.5), f(2.0)], f(1.5));
    gives("mod", &[Value::Decimal(-750), Value::Decimal(200)], Value::Decimal(-150));
    gives("mod", &[i(i128::from(i64::MIN)), i(-1)], i(0));
    for zero in [i(0), f(-0.0), Value::Decimal(0)] {
        let one = if let Value::Float(_) = zero { f(1.0) } else { zero.clone() };
        fails("mod", &[one, zero], "R0102", "zero");
    }
}

#[test]
fn extremes_leave_nulls_out() {
    gives("greatest", &[Value::Null, s("a"), s("b")], s("b"));
    gives("least", &[d(2026, 1, 2), Value::Null, d(2026, 1, 1)], d(2026, 1, 1));
    gives("greatest", &[Value::Null, Value::Null], Value::Null);
    gives("least", &[Value::Bool(true), Value::Bool(false)], Value::Bool(false));
    gives("nullif", &[f(0.0), f(-0.0)], Value::Null);
    gives("nullif", &[Value::Null, i(1)], Value::Null);
    gives("nullif", &[i(1), Value::Null], i(1));
    gives("list_get", &[Value::List(vec![i(1), Value::Null]), i(-2)], i(1));
    gives("list_get", &[Value::List(vec![i(1), Value::Null]), i(1)], Value::Null);
    gives("list_contains", &[Value::List(vec![Value::Null, f(0.0)]), f(-0.0)], Value::Bool(true));
    gives("list_contains", &[Value::List(vec![Value::Null, i(1)]), i(2)], Value::Bool(false));
    for index in [2, -3, i128::from(i64::MIN), i128::from(i64::MAX)] {
        gives("list_get", &[Value::List(vec![i(1), i(2)]), i(index)], Value::Null);
    }
}

#[test]
fn random_numbers_depend_on_key_and_seed_alone() {
    let number = |args: &[Value<'_>]| match call("random_by", args) {
        Ok(Value::Float(x)) => x,
        other => panic!("{other:?}"),
    };
    let all: Vec<f64> = (0..10_000).map(|n| number(&[i(n)])).collect();
    assert!(all.iter().all(|x| (0.0..1.0).contains(x)));
    let mean = all.iter().sum::<f64>() / 10_000.0;
    assert!((0.48..0.52).contains(&mean), "{mean}");
    assert_eq!(number(&[s("a")]), number(&[s("a"), i(0)]));
    assert_ne!(number(&[s("a"), i(1)]), number(&[s("a"), i(2)]));
    let lists = [vec![s("ab"), s("c")], vec![s("a"), s("bc")]].map(|items| number(&[Value::List(items)]));
    assert_ne!(lists[0], lists[1]);
}

#[test]
fn parts_of_dates() {
    let leap = d(2028, 2, 29);
    for (name, expected) in [
        ("year", 2028),
        ("quarter", 1),
        ("month", 2),
        ("day", 29),
        ("day_of_year", 60),
        ("day_of_week", 2),
        ("week", 9),
    ] {
        gives(name, std::slice::from_ref(&leap), i(expected));
    }
    gives("week", &[d(2027, 1, 1)], i(53));
    gives("day_of_week", &[d(2026, 2, 1)], i(7));
    gives("year", &[Value::DateTime(-1)], i(1969));
    gives("hour", &[Value::DateTime(-1)], i(23));
    gives("second", &[Value::Time(DAY_MICROS - 1)], i(59));
    gives("last_day", &[dt(2028, 2, 1, 10, 0)], d(2028, 2, 29));
    gives("last_day", &[d(9999, 12, 31)], d(9999, 12, 31));
    gives("date", &[Value::DateTime(-1)], d(1969, 12, 31));
    gives("time", &[dt(2026, 1, 1, 10, 30)], Value::Time(37_800_000_000));
}

#[test]
fn arithmetic_of_dates() {
    gives("date_add", &[s("month"), i(-1), d(2026, 3, 31)], d(2026, 2, 28));
    gives("date_add", &[s("WEEK"), i(1), d(2026, 12, 31)], d(2027, 1, 7));
    gives("date_add", &[s("minute"), i(-1), dt(2026, 1, 1, 0, 0)], dt(2025, 12, 31, 23, 59));
    gives("add_months", &[d(2028, 2, 29), i(12)], d(2029, 2, 28));
    fails("date_add", &[s("hour"), i(1), d(2026, 1, 1)], "R0105", "as datetime");
    fails("date_add", &[s("day"), i(1), d(9999, 12, 31)], "R0101", "9999");
    fails("date_add", &[s("year"), i(i128::from(i64::MAX)), d(2026, 1, 1)], "R0101", "9999");
    fails("add_months", &[d(1, 1, 1), i(-1)], "R0101", "0001");
    fails("date_add", &[s("fortnight"), i(1), d(2026, 1, 1)], "R0105", "quarter");
    gives("date_diff", &[s("week"), d(2026, 2, 1), d(2026, 2, 2)], i(1));
    gives("date_diff", &[s("quarter"), d(2026, 3, 31), d(2026, 4, 1)], i(1));
    gives("date_diff", &[s("year"), d(1, 1, 1), d(9999, 12, 31)], i(9998));
    gives("date_diff", &[s("hour"), dt(2026, 1, 1, 1, 59), dt(2026, 1, 1, 0, 0)], i(-1));
    fails("date_diff", &[s("day"), ts(2026, 1, 1, 0, 0), ts(2026, 1, 2, 0, 0)], "R0105", "zone");
    fails("date_diff", &[s("hour"), d(2026, 1, 1), d(2026, 1, 2)], "R0105", "as datetime");
    gives("date_trunc", &[s("quarter"), dt(2026, 6, 30, 10, 5)], dt(2026, 4, 1, 0, 0));
    gives("date_trunc", &[s("week"), d(2026, 2, 1)], d(2026, 1, 26));
    fails("date_trunc", &[s("minute"), d(2026, 2, 1)], "R0105", "as datetime");
    // The day on which Berlin's clocks went forward has 23 hours; its start is before that.
    gives("date_trunc", &[s("day"), ts(2026, 3, 29, 12, 0), s("Europe/Berlin")], ts(2026, 3, 28, 23, 0));
    // An hour that clocks show twice, and one that they leave out half of.
    for unit in ["hour", "minute", "second", "microsecond"] {
        for hour in [0, 1, 2] {
            let at = ts(2026, 10, 25, hour, 0);
            gives("date_trunc", &[s(unit), at.clone(), s("Europe/Berlin")], at);
        }
    }
    gives("date_trunc", &[s("hour"), ts(2026, 10, 25, 1, 30), s("Europe/Berlin")], ts(2026, 10, 25, 1, 0));
    gives("date_trunc", &[s("hour"), ts(2026, 10, 3, 15, 40), s("Australia/Lord_Howe")], ts(2026, 10, 3, 15, 30));
    gives("date_trunc", &[s("hour"), ts(2026, 6, 1, 10, 40), s("Asia/Kolkata")], ts(2026, 6, 1, 10, 30));
}

#[test]
fn zones_move_between_clock_and_instant() {
    gives("to_timestamp", &[dt(2026, 3, 8, 2, 30), s("America/New_York")], ts(2026, 3, 8, 7, 30));
    gives("to_timestamp", &[dt(2026, 11, 1, 1, 30), s("America/New_York")], ts(2026, 11, 1, 5, 30));
    gives("to_datetime", &[ts(2026, 11, 1, 6, 30), s("America/New_York")], dt(2026, 11, 1, 1, 30));
    gives("date", &[ts(2026, 1, 31, 20, 0), s("Asia/Shanghai")], d(2026, 2, 1));
    fails("to_timestamp", &[dt(1, 1, 1, 0, 0), s("Asia/Shanghai")], "R0101", "0001");
    fails("to_datetime", &[ts(9999, 12, 31, 23, 0), s("Asia/Shanghai")], "R0101", "9999");
    fails("to_datetime", &[ts(2026, 1, 1, 0, 0), s("Mars/Olympus")], "R0105", "IANA");
    gives("epoch_millis", &[Value::Timestamp(-1)], i(-1));
    gives("from_epoch", &[i(-1)], Value::Timestamp(-1_000_000));
    fails("from_epoch", &[i(i128::from(i64::MAX))], "R0101", "9999");
    fails("from_epoch", &[i(1), s("minute")], "R0105", "millisecond");
}

#[test]
fn dates_are_read_and_written() {
    gives("parse_timestamp", &[s("2026-01-31 10:30"), s("%F %H:%M"), s("Asia/Shanghai")], ts(2026, 1, 31, 2, 30));
    gives("parse_timestamp", &[s("10:30Z 2026-01-31"), s("%H:%M%z %F"), s("Asia/Shanghai")], ts(2026, 1, 31, 10, 30));
    fails("parse_timestamp", &[s("2026-01-31"), s("%F")], "R0105", "zone");
    fails("parse_date", &[s("2026-01-31"), s("%Q")], "R0105", "%Q");
    fails("format_date", &[d(2026, 1, 31), s("%F %T")], "R0105", "%H");
    gives("format_date", &[ts(2026, 1, 31, 2, 30), s("%F %T%z"), s("Asia/Shanghai")], s("2026-01-31 10:30:00+08:00"));
}

#[test]
fn known_digests() {
    gives("md5", &[s("")], s("d41d8cd98f00b204e9800998ecf8427e"));
    gives("sha256", &[s("")], s("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    gives("xxhash64", &[s("")], i(0xEF46_DB37_51D8_E999));
    gives("xxhash64", &[s("abc")], i(4_952_883_123_889_572_249));
    gives("crc32", &[s("123456789")], i(0xCBF4_3926));
    gives("hex", &[i(-1)], s("ffffffffffffffff"));
    gives("hex", &[i(0)], s("0"));
    gives("uuid_v5", &[s("dns"), s("python.org")], s("886313e1-3b8a-5372-9b90-0c9aee199e5d"));
    gives(
        "uuid_v5",
        &[s("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), s("python.org")],
        s("886313e1-3b8a-5372-9b90-0c9aee199e5d"),
    );
    fails("uuid_v5", &[s("mail"), s("x")], "R0105", "`dns`");
}

#[test]
fn masks_show_no_more_than_asked() {
    for (address, masked) in
        [("jane@x.org", "j***@x.org"), ("é@x", "é***@x"), ("@x", "***@x"), ("x", "***"), ("", "***")]
    {
        gives("mask_email", &[s(address)], s(masked));
    }
    for (text, first, last, masked) in [
        ("13812345678", 3, 4, "138****5678"),
        ("日本語です", 1, 1, "日***す"),
        ("abcd", 2, 2, "****"),
        ("ab", 0, 0, "**"),
        ("", 1, 1, ""),
        ("abc", i128::from(i64::MAX), i128::from(i64::MAX), "***"),
    ] {
        gives("mask_keep", &[s(text), i(first), i(last)], s(masked));
    }
    fails("mask_keep", &[s("abc"), i(1), i(-1)], "R0105", "0 or more");
}

#[test]
fn json_is_read_as_written() {
    let document = s(r#"{"a": {"b": [1.50, null, "x\u00e9"]}, "n": null}"#);
    let path = |steps: &[Value<'static>]| {
        let args: Vec<_> = [document.clone().into_owned()].into_iter().chain(steps.iter().cloned()).collect();
        call("json_path", &args).unwrap()
    };
    assert_eq!(path(&[s("a"), s("b"), i(0)]), s("1.50"));
    assert_eq!(path(&[s("a"), s("b"), i(1)]), Value::Null);
    assert_eq!(path(&[s("a"), s("b"), i(-1)]), s(r#""x\u00e9""#));
    assert_eq!(path(&[s("a"), s("z"), i(0)]), Value::Null);
    assert_eq!(path(&[i(0)]), Value::Null);
    assert_eq!(path(&[]), document.clone().into_owned());
    gives("json_get", &[document.clone(), s("n")], Value::Null);
    gives("json_text", &[s(r#""x\u00e9""#)], s("xé"));
    gives("json_text", &[s("null")], Value::Null);
    gives("json_text", &[document.clone(), s("a")], s(r#"{"b": [1.50, null, "x\u00e9"]}"#));
    gives("json_text", &[document.clone(), s("n")], Value::Null);
    gives("json_length", &[document], i(2));
    gives("json_length", &[s("\"ab\"")], Value::Null);
    gives("json_valid", &[s("")], Value::Bool(false));
}

#[test]
fn values_become_json() {
    let json = |value: Value<'static>, ty: Type| match call_typed("to_json", &[value], &[ty], Type::Json) {
        Ok(Value::Str(text)) => text.into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(json(Value::Decimal(-5), Type::Decimal(4, 2)), "-0.05");
    assert_eq!(json(f(0.1), Type::Float64), "0.1");
    assert_eq!(json(f(1e300), Type::Float64), "1e300");
    assert_eq!(json(f(f64::from(0.1f32)), Type::Float32), "0.1");
    assert_eq!(json(s("a\"\\\n\u{1}é"), Type::String), r#""a\"\\\n\u0001é""#);
    assert_eq!(json(s("{\"a\": 1}"), Type::Json), "{\"a\": 1}");
    assert_eq!(json(Value::Bytes(vec![0, 255].into()), Type::Bytes), "\"00ff\"");
    assert_eq!(json(d(2026, 1, 31), Type::Date), "\"2026-01-31\"");
    assert_eq!(json(Value::Time(1), Type::Time), "\"00:00:00.000001\"");
    assert_eq!(json(Value::DateTime(-1), Type::DateTime), "\"1969-12-31T23:59:59.999999\"");
    assert_eq!(json(ts(2026, 1, 31, 10, 0), Type::Timestamp), "\"2026-01-31T10:00:00Z\"");
    assert_eq!(json(Value::Duration(-95_400_500_000), Type::Duration), "\"-1d2h30m0.500000s\"");
    assert_eq!(json(Value::Duration(0), Type::Duration), "\"0s\"");
    let mut named = Field::new("at", DataType::of(Type::Date));
    named.external = Some("Created \"At\"".to_owned());
    let fields = vec![Field::new("n", DataType::optional(Type::INT64)), named];
    let record = Value::Record(vec![Value::Null, d(2026, 1, 31)]);
    assert_eq!(json(record, Type::Record(fields)), r#"{"n": null, "Created \"At\"": "2026-01-31"}"#);
    let list = Type::List(Box::new(DataType::optional(Type::Decimal(3, 1))));
    assert_eq!(json(Value::List(vec![Value::Decimal(15), Value::Null]), list), "[1.5, null]");
}

proptest! {
    #[test]
    fn base64_goes_there_and_back(content in proptest::collection::vec(any::<u8>(), 0..40)) {
        let bytes = Value::Bytes(content.into());
        let encoded = call("base64_encode", std::slice::from_ref(&bytes)).unwrap();
        prop_assert_eq!(call("base64_decode", std::slice::from_ref(&encoded)), Ok(bytes.clone()));
        let bare = encoded.as_str().unwrap().trim_end_matches('=').to_owned();
        prop_assert_eq!(call("base64_decode", &[s(&bare)]), Ok(bytes));
    }

    #[test]
    fn texts_split_join(text in ".*", at in 0i128..20) {
        let left = call("left", &[s(&text), i(at)]).unwrap();
        let rest = call("substring", &[s(&text), i(at + 1)]).unwrap();
        prop_assert_eq!(call("concat", &[left, rest]), Ok(Value::string(text.clone())));
        let reversed = call("reverse", &[s(&text)]).unwrap();
        prop_assert_eq!(call("reverse", &[reversed]), Ok(Value::string(text)));
    }

    /// A JSON string read as text is what was written.
    #[test]
    fn json_texts_go_there_and_back(text in any::<String>()) {
        let json = call_typed("to_json", &[s(&text)], &[Type::String], Type::Json).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(json.as_str().unwrap()).ok(), Some(text.clone()));
        prop_assert_eq!(call("json_text", &[json]), Ok(Value::string(text)));
    }

    /// Seen by the clock and back: the same instant, but in the hour that clocks show twice.
    #[test]
    fn zones_go_there_and_back(seconds in 0i64..4_000_000_000, zone in proptest::sample::select(vec!["UTC", "Asia/Shanghai", "Europe/Berlin", "Australia/Lord_Howe"])) {
        let at = Value::Timestamp(seconds * 1_000_000);
        let local = call("to_datetime", &[at.clone(), s(zone)]).unwrap();
        let Ok(Value::Timestamp(back)) = call("to_timestamp", &[local, s(zone)]) else { panic!() };
        let lost = seconds * 1_000_000 - back;
        prop_assert!([0, 1_800_000_000, 3_600_000_000].contains(&lost), "{}", lost);
    }
}
