//! Random expressions over random rows: dfc, in both tiers, and DuckDB give the same values where SQL has the same rule.
//!
//! An expression is made once as a small tree and written in both languages. Operands are kept small enough that
//! nothing overflows: overflow is an error in both, with other words.

use std::fmt::Write;

use crate::support::random::Random;
use crate::support::{dfc, folder, python};

/// Types the generator knows, with the columns that have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ty {
    Int,
    Decimal,
    Float,
    Text,
    Date,
    Bool,
}

const FIELDS: &str = "i: int64?, j: int64, m: decimal(9, 2)?, f: float64?, s: string?, t: string, d: date?, b: bool?";
const SQL_COLUMNS: &str = "i BIGINT, j BIGINT, m DECIMAL(9,2), f DOUBLE, s VARCHAR, t VARCHAR, d DATE, b BOOLEAN";

/// An expression in both languages.
struct Both {
    df: String,
    sql: String,
}

fn same(text: impl Into<String>) -> Both {
    let df = text.into();
    Both { sql: df.clone(), df }
}

fn both(df: String, sql: String) -> Both {
    Both { df, sql }
}

/// An infix operator that both spell alike, or `(df, sql)`.
fn infix(a: &Both, op: (&str, &str), b: &Both) -> Both {
    both(format!("({} {} {})", a.df, op.0, b.df), format!("({} {} {})", a.sql, op.1, b.sql))
}

fn call(df: &str, sql: &str, args: &[&Both]) -> Both {
    let join = |part: fn(&Both) -> &str| args.iter().map(|a| part(a)).collect::<Vec<_>>().join(", ");
    both(format!("{df}({})", join(|a| &a.df)), format!("{sql}({})", join(|a| &a.sql)))
}

fn expression(random: &mut Random, ty: Ty, depth: usize) -> Both {
    if depth == 0 {
        return leaf(random, ty);
    }
    let mut of = |ty: Ty| expression(random, ty, depth - 1);
    match ty {
        Ty::Int => {
            let (a, b, s, d) = (of(Ty::Int), of(Ty::Int), of(Ty::Text), of(Ty::Date));
            match random.below(9) {
                0 => infix(&a, ("+", "+"), &b),
                1 => infix(&a, ("-", "-"), &b),
                2 => call("length", "length", &[&s]),
                3 => both(format!("({} as int64?)", call("year", "", &[&d]).df), format!("year({})", d.sql)),
                4 => both(format!("(month({}) as int64?)", d.df), format!("month({})", d.sql)),
                5 => call("coalesce", "coalesce", &[&a, &b]),
                6 => call("abs", "abs", &[&a]),
                7 => both(format!("({} div 7)", a.df), format!("({} // 7)", a.sql)),
                _ => choose(random, Ty::Int, depth),
            }
        }
        Ty::Decimal => {
            let (a, b) = (of(Ty::Decimal), of(Ty::Decimal));
            match random.below(4) {
                0 => infix(&a, ("+", "+"), &b),
                1 => infix(&a, ("-", "-"), &b),
                2 => call("coalesce", "coalesce", &[&a, &b]),
                _ => choose(random, Ty::Decimal, depth),
            }
        }
        Ty::Float => {
            let (a, b) = (of(Ty::Float), of(Ty::Float));
            match random.below(4) {
                0 => infix(&a, ("+", "+"), &b),
                1 => infix(&a, ("*", "*"), &b),
                2 => infix(&a, ("-", "-"), &b),
                _ => choose(random, Ty::Float, depth),
            }
        }
        Ty::Text => {
            let (a, b, i) = (of(Ty::Text), of(Ty::Text), of(Ty::Int));
            match random.below(10) {
                0 => call("upper", "upper", &[&a]),
                1 => call("lower", "lower", &[&a]),
                2 => call("trim", "trim", &[&a]),
                3 => infix(&a, ("+", "||"), &b).df_concat(&a, &b),
                4 => call("replace", "replace", &[&a, &same("'b'").quoted("b"), &same("").quoted("xy")]),
                5 => both(format!("substring({}, 2, 3)", a.df), format!("substring({}, 2, 3)", a.sql)),
                6 => both(format!("({} as string?)", i.df), format!("cast({} as varchar)", i.sql)),
                7 => call("coalesce", "coalesce", &[&a, &b]),
                8 => call("reverse", "reverse", &[&a]),
                _ => choose(random, Ty::Text, depth),
            }
        }
        Ty::Date => {
            let a = of(Ty::Date);
            match random.below(4) {
                0 => both(format!("last_day({})", a.df), format!("last_day({})", a.sql)),
                1 => both(format!("({} + 10d)", a.df), format!("cast({} + interval 10 day as date)", a.sql)),
                2 => both(
                    format!("date(date_trunc(\"month\", {}))", a.df),
                    format!("cast(date_trunc('month', {}) as date)", a.sql),
                ),
                _ => choose(random, Ty::Date, depth),
            }
        }
        Ty::Bool => {
            let (a, b) = (of(Ty::Bool), of(Ty::Bool));
            let inner = [Ty::Int, Ty::Decimal, Ty::Text, Ty::Date][random.below(4)];
            let (x, y, z) = (
                expression(random, inner, depth - 1),
                expression(random, inner, depth - 1),
                expression(random, inner, depth - 1),
            );
            match random.below(8) {
                0 => infix(&a, ("and", "and"), &b),
                1 => infix(&a, ("or", "or"), &b),
                2 => both(format!("(not {})", a.df), format!("(not {})", a.sql)),
                3 => both(format!("({} is null)", x.df), format!("({} is null)", x.sql)),
                4 => both(
                    format!("({} between {} and {})", x.df, y.df, z.df),
                    format!("({} between {} and {})", x.sql, y.sql, z.sql),
                ),
                5 => {
                    let (x, pattern) =
                        (expression(random, Ty::Text, depth - 1), random.pick(&["a%", "%b%", "_b%", "%"]));
                    both(format!("({} like \"{pattern}\")", x.df), format!("({} like '{pattern}')", x.sql))
                }
                _ => {
                    let op = [("==", "="), ("!=", "<>"), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">=")];
                    infix(&x, op[random.below(op.len())], &y)
                }
            }
        }
    }
}

/// `if c then a else b`
fn choose(random: &mut Random, ty: Ty, depth: usize) -> Both {
    let c = expression(random, Ty::Bool, depth - 1);
    let (a, b) = (expression(random, ty, depth - 1), expression(random, ty, depth - 1));
    both(
        format!("(if {} then {} else {})", c.df, a.df, b.df),
        format!("(case when {} then {} else {} end)", c.sql, a.sql, b.sql),
    )
}

impl Both {
    /// A text literal in both languages.
    fn quoted(self, text: &str) -> Both {
        both(format!("\"{text}\""), format!("'{text}'"))
    }

    /// Texts are joined by a function in dfc, where a null makes all of it null as with SQL's `||`.
    fn df_concat(self, a: &Both, b: &Both) -> Both {
        Both { df: format!("concat({}, {})", a.df, b.df), sql: self.sql }
    }
}

fn leaf(random: &mut Random, ty: Ty) -> Both {
    match ty {
        Ty::Int => same(random.pick(&["i", "j", "0", "7", "1000003"])),
        Ty::Decimal => {
            let text = random.pick(&["m", "m", "1.25", "0.01"]);
            if text == "m" { same("m") } else { both(text.into(), format!("cast({text} as decimal(9,2))")) }
        }
        Ty::Float => {
            let text = random.pick(&["f", "f", "0.5", "3.0"]);
            if text == "f" { same("f") } else { both(format!("{text}f"), format!("cast({text} as double)")) }
        }
        Ty::Text => match random.pick(&["s", "t", "abc", "Éa b"]) {
            column @ ("s" | "t") => same(column),
            text => same("").quoted(text),
        },
        Ty::Date => match random.pick(&["d", "d", "2024-02-29"]) {
            "d" => same("d"),
            text => both(format!("@{text}"), format!("date '{text}'")),
        },
        Ty::Bool => same(random.pick(&["b", "true", "false"])),
    }
}

fn data(random: &mut Random) -> String {
    let mut out = String::from("i,j,m,f,s,t,d,b\n");
    for _ in 0..300 {
        let row = [
            random.pick(&["", "0", "-1", "42", "1000000", "-999999"]),
            random.pick(&["0", "3", "-8", "77", "123456"]),
            random.pick(&["", "0.00", "-1.05", "99.99", "12345.67"]),
            random.pick(&["", "0.5", "-2.25", "1000.125"]),
            random.pick(&["", "\"\"", "abc", "Abcabcabcabcabc", "  padded ", "naïve 金", "b"]),
            random.pick(&["\"\"", "x", "ab", "longer than twelve bytes"]),
            random.pick(&["", "1970-01-01", "1999-12-31", "2024-02-29", "2026-11-30"]),
            random.pick(&["", "true", "false"]),
        ];
        out.push_str(&row.join(","));
        out.push('\n');
    }
    out
}

#[test]
fn random_expressions_agree_with_duckdb() {
    let rounds = if std::env::var_os("CI").is_some() { 12 } else { 4 };
    for seed in 1..=rounds {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let types = [Ty::Int, Ty::Decimal, Ty::Float, Ty::Text, Ty::Date, Ty::Bool];
        let expressions: Vec<Both> = (0..48).map(|k| expression(&mut random, types[k % 6], 1 + k % 3)).collect();
        let (mut df, mut sql) = (String::new(), String::new());
        for (k, e) in expressions.iter().enumerate() {
            writeln!(df, "    e{k}: {},", e.df).expect("text");
            writeln!(sql, "{}{} as e{k}", if k > 0 { ", " } else { "" }, e.sql).expect("text");
        }
        let pipeline = format!(
            "job random {{}}\nrecord R {{ {FIELDS} }}\nsource rows = csv(\"in.csv\", schema: R)\n\
             stream values = rows |> select(\n{df})\nsink values |> csv(f\"{{out}}.csv\")\nparam out: string = \"out\"\n"
        );
        let dir = folder(&[("pipeline.df", &pipeline), ("in.csv", &data(&mut random)), ("query.sql", &sql)]);
        for tier in ["jit", "interpreter"] {
            let output = dfc(dir.path(), &["run", "pipeline.df", "--engine", tier, "--set", &format!("out={tier}")]);
            assert_eq!(output.code, 0, "seed {seed}\n{pipeline}\n{}", output.stderr);
            let path = |name: &str| dir.path().join(name).display().to_string();
            python::script(
                "expressions.py",
                &[&path("in.csv"), SQL_COLUMNS, &path("query.sql"), &path(&format!("{tier}.csv"))],
            );
        }
    }
}
