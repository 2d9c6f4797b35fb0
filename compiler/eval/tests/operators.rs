//! Every form of expression: its value, its nulls, its errors.

use dfc_eval::{Env, EvalError, eval, eval_constant};
use dfc_ir::types::IntType;
use dfc_ir::{BinaryOp, CastMode, DataType, Expr, ExprKind, Field, Site, Type, UnaryOp, Value};

const DAY: i64 = 86_400_000_000;

fn constant(value: Value<'static>, ty: Type) -> Expr {
    let ty = if value.is_null() { DataType::optional(ty) } else { DataType::of(ty) };
    Expr::literal(value, ty)
}

fn int(n: i128) -> Expr {
    constant(Value::Int(n), Type::INT64)
}

fn boolean(value: Option<bool>) -> Expr {
    constant(value.map_or(Value::Null, Value::Bool), Type::Bool)
}

/// Something that fails when it is evaluated.
fn failing() -> Expr {
    let ty = DataType::of(Type::INT64);
    Expr { kind: ExprKind::Binary(BinaryOp::IntDiv, int(1).into(), int(0).into()), ty, site: Site(7) }
}

fn failing_bool() -> Expr {
    let ty = DataType::of(Type::Bool);
    Expr { kind: ExprKind::Binary(BinaryOp::Eq, failing().into(), int(0).into()), ty, site: Site(8) }
}

fn binary(op: BinaryOp, left: Expr, right: Expr, result: Type) -> Result<Value<'static>, EvalError> {
    run(ExprKind::Binary(op, left.into(), right.into()), DataType::optional(result))
}

fn run(kind: ExprKind, ty: DataType) -> Result<Value<'static>, EvalError> {
    let row: [Value; 2] = [Value::str("abc"), Value::Null];
    let expr = Expr { kind, ty, site: Site(3) };
    eval(&expr, &row, &Env { now: 3 * DAY / 2 }).map(Value::into_owned)
}

#[track_caller]
fn fails(result: Result<Value, EvalError>, code: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code, code, "{error:?}");
    assert_ne!(error.site, Site::default());
}

#[test]
fn integers_are_checked_against_their_type() {
    use BinaryOp::*;
    for ty in IntType::ALL {
        let at = |n| constant(Value::Int(n), Type::Int(ty));
        let run = |op, a, b| binary(op, at(a), at(b), Type::Int(ty));
        assert_eq!(run(Add, ty.max() - 1, 1), Ok(Value::Int(ty.max())));
        fails(run(Add, ty.max(), 1), "R0101");
        fails(run(Sub, ty.min(), 1), "R0101");
        fails(run(Mul, ty.max(), ty.max()), "R0101");
        assert_eq!(run(Mul, 5, 6), Ok(Value::Int(30)));
        assert_eq!(run(IntDiv, 7, 2), Ok(Value::Int(3)));
        assert_eq!(run(Mod, 7, 2), Ok(Value::Int(1)));
        fails(run(IntDiv, 7, 0), "R0102");
        fails(run(Mod, 7, 0), "R0102");
        if ty.signed() {
            assert_eq!(run(IntDiv, -7, 2), Ok(Value::Int(-3)));
            assert_eq!(run(Mod, -7, 2), Ok(Value::Int(-1)));
            fails(run(IntDiv, ty.min(), -1), "R0101");
            assert_eq!(run(Mod, ty.min(), -1), Ok(Value::Int(0)));
        }
    }
}

#[test]
fn floats_are_never_infinite_or_nan() {
    use BinaryOp::*;
    let run = |op, a, b| {
        binary(op, constant(Value::Float(a), Type::Float64), constant(Value::Float(b), Type::Float64), Type::Float64)
    };
    assert_eq!(run(Add, 0.1, 0.2), Ok(Value::Float(0.1 + 0.2)));
    assert_eq!(run(Div, 1.0, 4.0), Ok(Value::Float(0.25)));
    assert_eq!(run(IntDiv, -7.5, 2.0), Ok(Value::Float(-3.0)));
    assert_eq!(run(Mod, -7.5, 2.0), Ok(Value::Float(-1.5)));
    fails(run(Mul, f64::MAX, 2.0), "R0101");
    fails(run(Div, f64::MAX, f64::MIN_POSITIVE), "R0101");
    for op in [Div, IntDiv, Mod] {
        fails(run(op, 1.0, -0.0), "R0102");
    }
    let single = |x| constant(Value::Float(x), Type::Float32);
    let third = binary(Div, single(1.0), single(3.0), Type::Float32);
    assert_eq!(third, Ok(Value::Float(f64::from(1.0f32 / 3.0f32))));
    fails(binary(Add, single(f32::MAX.into()), single(f32::MAX.into()), Type::Float32), "R0101");
}

#[test]
fn decimals_keep_their_own_scales() {
    use BinaryOp::*;
    let price = || constant(Value::Decimal(1_999), Type::Decimal(15, 2));
    let rate = || constant(Value::Decimal(5), Type::Decimal(4, 3));
    assert_eq!(binary(Add, price(), rate(), Type::Decimal(17, 3)), Ok(Value::Decimal(19_995)));
    assert_eq!(binary(Sub, price(), rate(), Type::Decimal(17, 3)), Ok(Value::Decimal(19_985)));
    assert_eq!(binary(Mul, price(), rate(), Type::Decimal(20, 5)), Ok(Value::Decimal(9_995)));
    assert_eq!(binary(Div, price(), rate(), Type::Decimal(24, 7)), Ok(Value::Decimal(39_980_000_000)));
    assert_eq!(binary(IntDiv, price(), rate(), Type::Decimal(38, 0)), Ok(Value::Decimal(3_998)));
    assert_eq!(binary(Mod, price(), rate(), Type::Decimal(4, 3)), Ok(Value::Decimal(0)));
    // Compared exactly, where no decimal type holds both too.
    let whole = |n: i128| constant(Value::Decimal(n), Type::Decimal(38, 0));
    let (tiny, most) = (|n: i128| constant(Value::Decimal(n), Type::Decimal(38, 38)), 10i128.pow(38) - 1);
    for (left, right, less) in [
        (whole(0), tiny(1), true),
        (tiny(-1), whole(0), true),
        (whole(most), tiny(most), false),
        (whole(-most), tiny(-most), true),
        (tiny(most), whole(1), true),
    ] {
        assert_eq!(binary(Lt, left.clone(), right.clone(), Type::Bool), Ok(Value::Bool(less)));
        assert_eq!(binary(Ge, left.clone(), right.clone(), Type::Bool), Ok(Value::Bool(!less)));
        assert_eq!(binary(Eq, left, right, Type::Bool), Ok(Value::Bool(false)));
    }
    assert_eq!(binary(Eq, whole(0), tiny(0), Type::Bool), Ok(Value::Bool(true)));
    fails(binary(Div, price(), constant(Value::Decimal(0), Type::Decimal(4, 3)), Type::Decimal(24, 7)), "R0102");
    fails(binary(Mul, price(), price(), Type::Decimal(5, 4)), "R0101");
}

#[test]
fn dates_times_and_durations() {
    use BinaryOp::*;
    let date = |d| constant(Value::Date(d), Type::Date);
    let datetime = |t| constant(Value::DateTime(t), Type::DateTime);
    let timestamp = |t| constant(Value::Timestamp(t), Type::Timestamp);
    let time = |t| constant(Value::Time(t), Type::Time);
    let duration = |t| constant(Value::Duration(t), Type::Duration);
    assert_eq!(binary(Add, date(10), duration(2 * DAY), Type::Date), Ok(Value::Date(12)));
    assert_eq!(binary(Sub, date(10), duration(2 * DAY), Type::Date), Ok(Value::Date(8)));
    fails(binary(Add, date(10), duration(DAY / 2), Type::Date), "R0105");
    fails(binary(Add, date(2_932_896), duration(DAY), Type::Date), "R0101");
    assert_eq!(binary(Sub, date(10), date(12), Type::INT64), Ok(Value::Int(-2)));
    assert_eq!(binary(Add, datetime(5), duration(6), Type::DateTime), Ok(Value::DateTime(11)));
    assert_eq!(binary(Sub, timestamp(5), duration(6), Type::Timestamp), Ok(Value::Timestamp(-1)));
    fails(binary(Add, datetime(0), duration(i64::MAX), Type::DateTime), "R0101");
    assert_eq!(binary(Sub, datetime(5), datetime(7), Type::Duration), Ok(Value::Duration(-2)));
    assert_eq!(binary(Sub, timestamp(5), timestamp(7), Type::Duration), Ok(Value::Duration(-2)));
    assert_eq!(binary(Sub, time(5), time(7), Type::Duration), Ok(Value::Duration(-2)));
    assert_eq!(binary(Add, duration(5), duration(7), Type::Duration), Ok(Value::Duration(12)));
    fails(binary(Add, duration(i64::MAX), duration(1), Type::Duration), "R0101");
    assert_eq!(binary(Mul, duration(5), int(-3), Type::Duration), Ok(Value::Duration(-15)));
    fails(binary(Mul, duration(i64::MIN), int(-1), Type::Duration), "R0101");
    fails(binary(Add, date(1), date(1), Type::Date), "R0199");
}

#[test]
fn negation() {
    let negate = |x: Expr| {
        let ty = x.ty.clone();
        run(ExprKind::Unary(UnaryOp::Neg, x.into()), ty)
    };
    assert_eq!(negate(int(5)), Ok(Value::Int(-5)));
    fails(negate(int(i64::MIN.into())), "R0101");
    fails(negate(constant(Value::Int(1), Type::Int(IntType::U8))), "R0101");
    assert_eq!(negate(constant(Value::Float(1.5), Type::Float64)), Ok(Value::Float(-1.5)));
    assert_eq!(negate(constant(Value::Decimal(15), Type::Decimal(3, 1))), Ok(Value::Decimal(-15)));
    fails(negate(constant(Value::Duration(i64::MIN), Type::Duration)), "R0101");
    assert_eq!(negate(constant(Value::Null, Type::INT64)), Ok(Value::Null));
}

#[test]
fn comparisons() {
    use BinaryOp::*;
    let samples: [(Type, Value, Value); 9] = [
        (Type::Bool, Value::Bool(false), Value::Bool(true)),
        (Type::INT64, Value::Int(-1), Value::Int(1)),
        (Type::Float64, Value::Float(-1.0), Value::Float(0.5)),
        (Type::Decimal(5, 2), Value::Decimal(-1), Value::Decimal(1)),
        (Type::String, Value::str("B"), Value::str("a")),
        (Type::Date, Value::Date(-1), Value::Date(1)),
        (Type::Time, Value::Time(1), Value::Time(2)),
        (Type::DateTime, Value::DateTime(-1), Value::DateTime(1)),
        (Type::Duration, Value::Duration(-1), Value::Duration(1)),
    ];
    for (ty, small, large) in samples {
        let (a, b) = (constant(small, ty.clone()), constant(large, ty));
        for (op, less, same, greater) in [
            (Eq, false, true, false),
            (Ne, true, false, true),
            (Lt, true, false, false),
            (Le, true, true, false),
            (Gt, false, false, true),
            (Ge, false, true, true),
        ] {
            assert_eq!(binary(op, a.clone(), b.clone(), Type::Bool), Ok(Value::Bool(less)), "{op:?} {a:?}");
            assert_eq!(binary(op, a.clone(), a.clone(), Type::Bool), Ok(Value::Bool(same)));
            assert_eq!(binary(op, b.clone(), a.clone(), Type::Bool), Ok(Value::Bool(greater)));
            assert_eq!(binary(op, a.clone(), constant(Value::Null, Type::INT64), Type::Bool), Ok(Value::Null));
        }
    }
    let list = |items| constant(Value::List(items), Type::List(DataType::optional(Type::INT64).into()));
    let same = binary(Eq, list(vec![Value::Int(1), Value::Null]), list(vec![Value::Int(1), Value::Null]), Type::Bool);
    assert_eq!(same, Ok(Value::Bool(true)));
    fails(binary(Lt, list(vec![]), list(vec![]), Type::Bool), "R0199");
}

#[test]
fn logic_has_three_values_and_stops_early() {
    let (t, f, n) = (Some(true), Some(false), None);
    for (a, b, and, or) in [
        (t, t, t, t),
        (t, f, f, t),
        (f, t, f, t),
        (f, f, f, f),
        (t, n, n, t),
        (n, t, n, t),
        (f, n, f, n),
        (n, f, f, n),
        (n, n, n, n),
    ] {
        let value = |v: Option<bool>| Ok(v.map_or(Value::Null, Value::Bool));
        assert_eq!(binary(BinaryOp::And, boolean(a), boolean(b), Type::Bool), value(and), "{a:?} and {b:?}");
        assert_eq!(binary(BinaryOp::Or, boolean(a), boolean(b), Type::Bool), value(or), "{a:?} or {b:?}");
    }
    let not = |v| run(ExprKind::Unary(UnaryOp::Not, boolean(v).into()), DataType::optional(Type::Bool));
    assert_eq!((not(t), not(f), not(n)), (Ok(Value::Bool(false)), Ok(Value::Bool(true)), Ok(Value::Null)));
    assert_eq!(binary(BinaryOp::And, boolean(f), failing_bool(), Type::Bool), Ok(Value::Bool(false)));
    assert_eq!(binary(BinaryOp::Or, boolean(t), failing_bool(), Type::Bool), Ok(Value::Bool(true)));
    fails(binary(BinaryOp::And, boolean(n), failing_bool(), Type::Bool), "R0102");
    fails(binary(BinaryOp::Or, boolean(n), failing_bool(), Type::Bool), "R0102");
}

#[test]
fn an_error_names_the_innermost_expression() {
    assert_eq!(binary(BinaryOp::Add, failing(), int(1), Type::INT64).unwrap_err().site, Site(7));
    assert_eq!(binary(BinaryOp::IntDiv, int(1), int(0), Type::INT64).unwrap_err().site, Site(3));
    // A null on one side doesn't hide an error on the other.
    fails(binary(BinaryOp::Add, constant(Value::Null, Type::INT64), failing(), Type::INT64), "R0102");
}

#[test]
fn choices_evaluate_only_what_they_choose() {
    let optional = DataType::optional(Type::INT64);
    let null = || constant(Value::Null, Type::INT64);
    assert_eq!(run(ExprKind::Coalesce(vec![null(), int(2), failing()]), optional.clone()), Ok(Value::Int(2)));
    assert_eq!(run(ExprKind::Coalesce(vec![null(), null()]), optional.clone()), Ok(Value::Null));
    let case = |arms, otherwise: Expr| run(ExprKind::Case { arms, otherwise: otherwise.into() }, optional.clone());
    assert_eq!(
        case(vec![(boolean(None), failing()), (boolean(Some(true)), int(1)), (failing_bool(), int(2))], failing()),
        Ok(Value::Int(1))
    );
    assert_eq!(case(vec![(boolean(Some(false)), failing())], int(3)), Ok(Value::Int(3)));
    fails(case(vec![(failing_bool(), int(1))], int(3)), "R0102");
}

#[test]
fn columns_lists_records_and_tests() {
    let text = Expr::column(0, DataType::of(Type::String));
    let null = Expr::column(1, DataType::optional(Type::String));
    let boolean = DataType::optional(Type::Bool);
    assert_eq!(run(text.kind.clone(), text.ty.clone()), Ok(Value::str("abc")));
    assert_eq!(run(ExprKind::IsNull(null.clone().into()), boolean.clone()), Ok(Value::Bool(true)));
    assert_eq!(run(ExprKind::IsNull(text.clone().into()), boolean.clone()), Ok(Value::Bool(false)));
    let within =
        |x: &Expr| run(ExprKind::InList(x.clone().into(), vec![Value::str("abc"), Value::str("b")]), boolean.clone());
    assert_eq!((within(&text), within(&null)), (Ok(Value::Bool(true)), Ok(Value::Null)));
    let absent = run(ExprKind::InList(text.clone().into(), vec![Value::str("b")]), boolean);
    assert_eq!(absent, Ok(Value::Bool(false)));

    let fields = vec![Field::new("a", text.ty.clone()), Field::new("b", null.ty.clone())];
    let record = Expr {
        kind: ExprKind::Record(vec![text.clone(), null.clone()]),
        ty: DataType::of(Type::Record(fields)),
        site: Site(1),
    };
    assert_eq!(run(record.kind.clone(), record.ty.clone()), Ok(Value::Record(vec![Value::str("abc"), Value::Null])));
    assert_eq!(run(ExprKind::Field(record.into(), 0), text.ty.clone()), Ok(Value::str("abc")));
    assert_eq!(run(ExprKind::Field(null.clone().into(), 0), null.ty.clone()), Ok(Value::Null));
    let list = run(ExprKind::List(vec![text.clone(), text.clone()]), DataType::of(Type::List(text.ty.into())));
    assert_eq!(list, Ok(Value::List(vec![Value::str("abc"), Value::str("abc")])));
}

#[test]
fn now_and_today_are_the_runs() {
    assert_eq!(run(ExprKind::Now, DataType::of(Type::Timestamp)), Ok(Value::Timestamp(3 * DAY / 2)));
    assert_eq!(run(ExprKind::Today, DataType::of(Type::Date)), Ok(Value::Date(1)));
}

#[test]
fn casts_of_nulls_and_failures() {
    let cast = |x: Expr, ty: DataType, mode| run(ExprKind::Cast(x.into(), mode), ty);
    let (plain, optional) = (DataType::of(Type::INT64), DataType::optional(Type::INT64));
    let null = || constant(Value::Null, Type::String);
    let word = || constant(Value::str("abc"), Type::String);
    assert_eq!(cast(null(), optional.clone(), CastMode::Strict), Ok(Value::Null));
    fails(cast(null(), plain.clone(), CastMode::Strict), "R0104");
    fails(cast(word(), plain, CastMode::Strict), "R0103");
    assert_eq!(cast(word(), optional.clone(), CastMode::Try), Ok(Value::Null));
    assert_eq!(cast(null(), optional.clone(), CastMode::Try), Ok(Value::Null));
    // The operand's own error is not the cast's failure.
    fails(cast(failing(), optional, CastMode::Try), "R0102");
}

#[test]
fn functions_are_called_by_name() {
    let text = DataType::optional(Type::String);
    let upper = |arg: Expr| run(ExprKind::Call("upper".into(), vec![arg]), text.clone());
    assert_eq!(upper(constant(Value::str("aß"), Type::String)), Ok(Value::str("ASS")));
    assert_eq!(upper(constant(Value::Null, Type::String)), Ok(Value::Null));
    fails(run(ExprKind::Call("no such".into(), vec![]), text.clone()), "R0199");
}

#[test]
fn constants_fold_unless_they_fail() {
    let sum = Expr {
        kind: ExprKind::Binary(BinaryOp::Add, int(1).into(), int(2).into()),
        ty: DataType::of(Type::INT64),
        site: Site(0),
    };
    assert_eq!(eval_constant(&sum), Some(Value::Int(3)));
    assert_eq!(eval_constant(&failing()), None);
    assert_eq!(eval_constant(&Expr::column(0, DataType::of(Type::INT64))), None);
    let now = Expr { kind: ExprKind::Now, ty: DataType::of(Type::Timestamp), site: Site(0) };
    assert_eq!(eval_constant(&now), None);
}
