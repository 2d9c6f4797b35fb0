//! Texts of values, and every pair of types that can be converted.

use dfc_eval::{can_cast, cast_value, format_value, parse_value};
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Type, Value};

fn list(item: Type) -> Type {
    Type::List(Box::new(DataType::optional(item)))
}

fn point() -> Type {
    Type::Record(vec![Field::new("x", DataType::of(Type::INT64)), Field::new("s", DataType::optional(Type::String))])
}

/// One of every kind of type.
fn types() -> Vec<Type> {
    let mut types: Vec<Type> = IntType::ALL.into_iter().map(Type::Int).collect();
    types.extend([
        Type::Bool,
        Type::Float32,
        Type::Float64,
        Type::Decimal(15, 2),
        Type::Decimal(38, 10),
        Type::String,
        Type::Bytes,
        Type::Date,
        Type::Time,
        Type::DateTime,
        Type::Timestamp,
        Type::Duration,
        Type::Json,
        list(Type::INT64),
        point(),
    ]);
    types
}

/// A value of a type, and its canonical text.
fn texts() -> Vec<(Type, Value<'static>, &'static str)> {
    vec![
        (Type::Bool, Value::Bool(true), "true"),
        (Type::Int(IntType::I8), Value::Int(-128), "-128"),
        (Type::Int(IntType::U64), Value::Int(u64::MAX as i128), "18446744073709551615"),
        (Type::Float64, Value::Float(1.0), "1.0"),
        (Type::Float64, Value::Float(-0.1), "-0.1"),
        (Type::Float64, Value::Float(1e16), "1e16"),
        (Type::Float64, Value::Float(123_456_789_012_345_680.0), "1.2345678901234568e17"),
        (Type::Float64, Value::Float(1e15), "1000000000000000.0"),
        (Type::Float64, Value::Float(0.00001), "0.00001"),
        (Type::Float64, Value::Float(2.5e-7), "2.5e-7"),
        (Type::Float64, Value::Float(-0.0), "-0.0"),
        (Type::Float32, Value::Float(0.1f32 as f64), "0.1"),
        (Type::Float32, Value::Float(16_777_216.0), "16777216.0"),
        (Type::Float32, Value::Float(1e13f32 as f64), "1e13"),
        (Type::Decimal(15, 2), Value::Decimal(-5), "-0.05"),
        (Type::Decimal(15, 2), Value::Decimal(150), "1.50"),
        (Type::Decimal(5, 0), Value::Decimal(42), "42"),
        (Type::Decimal(38, 38), Value::Decimal(1), "0.00000000000000000000000000000000000001"),
        (Type::String, Value::str(" a "), " a "),
        (Type::Json, Value::str(r#"{"a": [1, "x"]}"#), r#"{"a": [1, "x"]}"#),
        (Type::Bytes, Value::Bytes(vec![0, 255].into()), "00ff"),
        (Type::Date, Value::Date(0), "1970-01-01"),
        (Type::Date, Value::Date(-719_162), "0001-01-01"),
        (Type::Date, Value::Date(2_932_896), "9999-12-31"),
        (Type::Time, Value::Time(36_000_000_000), "10:00:00"),
        (Type::Time, Value::Time(86_399_250_000), "23:59:59.250000"),
        (Type::DateTime, Value::DateTime(-1), "1969-12-31T23:59:59.999999"),
        (Type::Timestamp, Value::Timestamp(1_000_000), "1970-01-01T00:00:01Z"),
        (Type::Duration, Value::Duration(0), "0s"),
        (Type::Duration, Value::Duration(-95_400_000_000), "-1d2h30m"),
        (Type::Duration, Value::Duration(1_500_000), "1.500000s"),
        (Type::Duration, Value::Duration(i64::MIN), "-106751991d4h54.775808s"),
        (list(Type::INT64), Value::List(vec![Value::Int(1), Value::Null]), "[1, null]"),
        (point(), Value::Record(vec![Value::Int(1), Value::str("a\"\n金")]), r#"{"x": 1, "s": "a\"\n金"}"#),
    ]
}

#[test]
fn a_text_reads_back_to_its_value() {
    for (ty, value, text) in texts() {
        assert_eq!(format_value(&value, &ty), text, "{ty}");
        assert_eq!(parse_value(text, &ty), Ok(value.clone()), "{ty}: {text}");
        // The same through casts and through JSON.
        if ty != Type::Bytes {
            assert_eq!(cast_value(value.clone(), &ty, &Type::String), Ok(Value::str(text)));
        }
        let json = cast_value(value.clone(), &ty, &Type::Json);
        if ty != Type::String {
            let json = json.unwrap();
            assert_eq!(cast_value(json, &Type::Json, &ty), Ok(value), "{ty} through json");
        }
    }
}

#[test]
fn other_forms_that_are_read() {
    for (ty, text, value) in [
        (Type::Bool, "TRUE", Value::Bool(true)),
        (Type::INT64, "+007", Value::Int(7)),
        (Type::Float64, "1e3", Value::Float(1000.0)),
        (Type::Float64, ".5", Value::Float(0.5)),
        (Type::Decimal(5, 2), "1.5", Value::Decimal(150)),
        (Type::Decimal(5, 2), "000123.450000", Value::Decimal(12_345)),
        (Type::Decimal(5, 2), "-.5", Value::Decimal(-50)),
        (Type::Decimal(5, 2), "7.", Value::Decimal(700)),
        (Type::Time, "10:00:00.5", Value::Time(36_000_500_000)),
        (Type::DateTime, "1970-01-02 00:00:00", Value::DateTime(86_400_000_000)),
        (Type::Timestamp, "1970-01-01T08:00:00+08:00", Value::Timestamp(0)),
        (Type::Timestamp, "1969-12-31 18:30:00-05:30", Value::Timestamp(0)),
        (Type::Duration, "500ms", Value::Duration(500_000)),
        (Type::Duration, "9223372036854775807us", Value::Duration(i64::MAX)),
        (Type::Json, "  [1]\n", Value::str("[1]")),
        (list(Type::Date), r#"["2026-01-31"]"#, Value::List(vec![Value::Date(20_484)])),
        (
            point(),
            r#"{"s":"\u00e9\ud83d\ude00","y":[{}],"x":2,"x":"3"}"#,
            Value::Record(vec![Value::Int(3), Value::str("é😀")]),
        ),
    ] {
        assert_eq!(parse_value(text, &ty), Ok(value), "{ty}: {text}");
    }
}

#[test]
fn what_is_not_a_value_is_refused_in_words() {
    for (ty, text, words) in [
        (Type::Bool, "yes", "`yes` is not a bool: expected true or false"),
        (Type::INT64, "abc", "`abc` is not a number of type int64: digits with an optional sign are expected"),
        (Type::INT64, "", "`` is not a number of type int64: digits with an optional sign are expected"),
        (Type::INT64, "1e5", "`1e5` is not a number of type int64: digits with an optional sign are expected"),
        (Type::Int(IntType::I8), "128", "`128` doesn't fit int8, whose values are -128 to 127"),
        (
            Type::INT64,
            &"9".repeat(50),
            &format!(
                "`{}` doesn't fit int64, whose values are -9223372036854775808 to 9223372036854775807",
                "9".repeat(50)
            ),
        ),
        (Type::Float64, "nan", "`nan` is not a number of type float64: expected digits, as 1.5 or 2e10"),
        (Type::Float64, "1e999", "`1e999` is too large for float64"),
        (Type::Float32, "1e39", "`1e39` is too large for float32"),
        (
            Type::Decimal(5, 2),
            "1.234",
            "`1.234` has 3 digits after the point, decimal(5, 2) takes 2: round it first, or widen the type",
        ),
        (Type::Decimal(5, 2), "1234", "`1234` has 4 digits before the point, decimal(5, 2) takes 3"),
        (Type::Decimal(5, 2), ".", "`.` is not a number of type decimal(5, 2): expected digits, as 12.50"),
        (Type::Bytes, "abc", "`abc` is not bytes: expected pairs of hexadecimal digits, as 00ff"),
        (Type::Date, "2026-02-29", "`2026-02-29` is not a date: expected a day of the calendar as 2026-01-31"),
        (Type::Date, "0000-01-01", "`0000-01-01` is not a date: expected a day of the calendar as 2026-01-31"),
        (Type::Time, "24:00:00", "`24:00:00` is not a time: expected 10:00:00, with up to six digits of fraction"),
        (
            Type::DateTime,
            "2026-01-31",
            "`2026-01-31` is not a datetime: expected 2026-01-31T10:00:00, or a space for the T",
        ),
        (
            Type::Timestamp,
            "2026-01-31T10:00:00",
            "`2026-01-31T10:00:00` is not a timestamp: expected 2026-01-31T10:00:00Z, or an offset as +08:00 for the Z",
        ),
        (
            Type::Timestamp,
            "0001-01-01T00:00:00+08:00",
            "`0001-01-01T00:00:00+08:00` lies outside the years 0001 to 9999 in UTC",
        ),
        (
            Type::Duration,
            "5",
            "`5` is not a duration: expected numbers with the units d, h, m, s, ms, us, as 1d12h or 1.5s",
        ),
        (Type::Json, "[1,]", "`[1,]` is not JSON: byte 4: a value is expected"),
        (Type::Json, "01", "`01` is not JSON: byte 2: something follows the value"),
        (list(Type::INT64), "3", "`3` is not a value of type list<int64?>"),
        (point(), "{}", "field `x` is null, its type int64 has no null"),
    ] {
        let error = parse_value(text, &ty).unwrap_err();
        assert_eq!(error.message, words);
    }
    for bad in ["", "1h5d", "s", "1.s", "1x", "--1s", "0.0000001s", "99999999999999999999d"] {
        assert!(parse_value(bad, &Type::Duration).is_err(), "{bad}");
    }
    let deep = "[".repeat(100_000);
    assert!(parse_value(&deep, &Type::Json).is_err());
}

#[test]
fn numbers_to_numbers() {
    let cast = |value: Value<'static>, from: &Type, to: &Type| cast_value(value, from, to).map_err(|error| error.code);
    let (int8, float, single, decimal) = (Type::Int(IntType::I8), Type::Float64, Type::Float32, Type::Decimal(5, 2));
    for (value, from, to, expected) in [
        (Value::Int(127), &Type::INT64, &int8, Ok(Value::Int(127))),
        (Value::Int(128), &Type::INT64, &int8, Err("R0101")),
        (Value::Int(16_777_217), &Type::INT64, &single, Ok(Value::Float(16_777_216.0))),
        (Value::Int(i64::MAX.into()), &Type::INT64, &float, Ok(Value::Float(9_223_372_036_854_775_807.0))),
        (Value::Int(999), &Type::INT64, &decimal, Ok(Value::Decimal(99_900))),
        (Value::Int(1_000), &Type::INT64, &decimal, Err("R0101")),
        (Value::Float(2.5), &float, &int8, Ok(Value::Int(3))),
        (Value::Float(-2.5), &float, &int8, Ok(Value::Int(-3))),
        (Value::Float(127.5), &float, &int8, Err("R0101")),
        (Value::Float(1e300), &float, &Type::INT64, Err("R0101")),
        (Value::Float(9.3e18), &float, &Type::INT64, Err("R0101")),
        (Value::Float(0.1), &float, &single, Ok(Value::Float(0.1f32 as f64))),
        (Value::Float(1e39), &float, &single, Err("R0101")),
        (Value::Float(0.615), &float, &decimal, Ok(Value::Decimal(62))),
        (Value::Float(-0.615), &float, &decimal, Ok(Value::Decimal(-62))),
        (Value::Float(999.995), &float, &decimal, Err("R0101")),
        (Value::Float(5e-324), &float, &decimal, Ok(Value::Decimal(0))),
        (Value::Float(4.5e-38), &float, &Type::Decimal(38, 37), Ok(Value::Decimal(0))),
        (Value::Float(1e300), &float, &decimal, Err("R0101")),
        (Value::Float(0.1f32 as f64), &single, &decimal, Ok(Value::Decimal(10))),
        (Value::Decimal(250), &decimal, &int8, Ok(Value::Int(3))),
        (Value::Decimal(-249), &decimal, &int8, Ok(Value::Int(-2))),
        (Value::Decimal(99_999), &decimal, &int8, Err("R0101")),
        (Value::Decimal(10), &decimal, &float, Ok(Value::Float(0.1))),
        (Value::Decimal(12_345), &decimal, &Type::Decimal(4, 1), Ok(Value::Decimal(1_235))),
        (Value::Decimal(99_999), &decimal, &Type::Decimal(4, 1), Err("R0101")),
        (Value::Bool(true), &Type::Bool, &int8, Ok(Value::Int(1))),
        (Value::Bool(true), &Type::Bool, &decimal, Ok(Value::Decimal(100))),
        (Value::Bool(true), &Type::Bool, &float, Ok(Value::Float(1.0))),
        (Value::Int(1), &Type::INT64, &Type::Bool, Ok(Value::Bool(true))),
        (Value::Int(2), &Type::INT64, &Type::Bool, Err("R0103")),
    ] {
        assert_eq!(cast(value.clone(), from, to), expected, "{value:?} as {to}");
    }
}

#[test]
fn other_conversions() {
    let at = Value::DateTime(-1);
    assert_eq!(cast_value(Value::Date(1), &Type::Date, &Type::DateTime), Ok(Value::DateTime(86_400_000_000)));
    assert_eq!(cast_value(at.clone(), &Type::DateTime, &Type::Date), Ok(Value::Date(-1)));
    assert_eq!(cast_value(at, &Type::DateTime, &Type::Time), Ok(Value::Time(86_399_999_999)));
    let utf8 = Value::Bytes("é".as_bytes().into());
    assert_eq!(cast_value(Value::str("é"), &Type::String, &Type::Bytes), Ok(utf8.clone()));
    assert_eq!(cast_value(utf8, &Type::Bytes, &Type::String), Ok(Value::str("é")));
    let error = cast_value(Value::Bytes(vec![b'a', 255].into()), &Type::Bytes, &Type::String).unwrap_err();
    assert_eq!((error.code, error.value.as_deref()), ("R0103", Some("61ff")));
    let numbers = Value::List(vec![Value::Int(1), Value::Null]);
    assert_eq!(
        cast_value(numbers.clone(), &list(Type::INT64), &list(Type::String)),
        Ok(Value::List(vec![Value::str("1"), Value::Null]))
    );
    let strict = Type::List(Box::new(DataType::of(Type::String)));
    assert_eq!(cast_value(numbers, &list(Type::INT64), &strict).unwrap_err().code, "R0104");
    let wider = Type::Record(vec![
        Field::new("new", DataType::optional(Type::Bool)),
        Field::new("x", DataType::of(Type::String)),
    ]);
    assert_eq!(
        cast_value(Value::Record(vec![Value::Int(1), Value::Null]), &point(), &wider),
        Ok(Value::Record(vec![Value::Null, Value::str("1")]))
    );
    assert_eq!(cast_value(Value::str("null"), &Type::Json, &Type::INT64), Ok(Value::Null));
    assert_eq!(cast_value(Value::str("\"12\""), &Type::Json, &Type::INT64), Ok(Value::Int(12)));
    assert_eq!(cast_value(Value::str("1.5"), &Type::Json, &Type::INT64).unwrap_err().code, "R0103");
    assert_eq!(cast_value(Value::str("{}"), &Type::Json, &Type::Date).unwrap_err().code, "R0103");
}

#[test]
fn every_pair_either_converts_or_is_refused() {
    let mut samples = texts();
    samples.extend(types().into_iter().filter(Type::is_numeric).map(|ty| {
        let one = if ty.is_float() { Value::Float(1.0) } else { Value::Int(1) };
        let one = if let Type::Decimal(_, s) = ty { Value::Decimal(10i128.pow(s.into())) } else { one };
        (ty, one, "")
    }));
    for (from, value, _) in &samples {
        for to in types() {
            let result = cast_value(value.clone(), from, &to);
            if !can_cast(from, &to) && *from != to {
                assert!(result.unwrap_err().message.contains("can't be converted"), "{from} to {to}");
            } else if let Ok(value) = result {
                // What came out is a value of the target: it has a text that reads back.
                assert_eq!(parse_value(&format_value(&value, &to), &to), Ok(value), "{from} to {to}");
            }
        }
    }
    assert!(!can_cast(&Type::DateTime, &Type::Timestamp));
    assert!(!can_cast(&Type::Bool, &Type::Date));
    assert!(!can_cast(&list(Type::INT64), &Type::INT64));
}

#[test]
fn floats_read_back_from_their_text() {
    let mut bits = 0x9E37_79B9_7F4A_7C15u64;
    for _ in 0..100_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (double, single) = (f64::from_bits(bits), f32::from_bits((bits >> 32) as u32));
        for (x, ty) in [(double, Type::Float64), (single.into(), Type::Float32)] {
            if x.is_finite() {
                assert_eq!(parse_value(&format_value(&Value::Float(x), &ty), &ty), Ok(Value::Float(x)));
            }
        }
    }
}
