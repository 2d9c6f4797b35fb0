//! Every kind of syntax error: its code, its place, its cure, once. And what a broken file still gives.

use dfc_grammar::ast::ItemKind;
use dfc_grammar::{CODES, LIMITS, SyntaxError, dump_ast, parse};

/// Text, and the errors it must give: the code and the text they point at, in order.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    ("stream a = b § c", &[("E0101", "§")]),
    ("stream a = union(b，c)", &[("E0101", "，")]),
    ("stream a\u{a0}= b", &[("E0101", "\u{a0}")]),
    ("source s = csv(\"data.csv, schema: X)\n    |> x()\nstream a = s", &[("E0102", "\"data.csv, schema: X)")]),
    ("const x = \"a\\\"", &[("E0102", "\"a\\\"")]),
    ("stream a = b |> select(`order id)", &[("E0102", "`order id)")]),
    ("const q = \"\"\"select 'x';\nfrom t && y", &[("E0102", "\"\"\"select 'x';")]),
    ("const q = f\"{a\"", &[("E0102", "f\"{a\"")]),
    ("/* open\nstream a = b", &[("E0102", "/* open")]),
    ("const x = \"a\\qb\\u{110000}\\u12\"", &[("E0103", "\\q"), ("E0103", "\\u{110000}"), ("E0103", "\\u")]),
    (
        "const x = [10days, 1_000, 0x1F, 1.5s, 1.5MB, 1e999, 3x]",
        &[
            ("E0104", "10days"),
            ("E0104", "1_000"),
            ("E0104", "0x1F"),
            ("E0104", "1.5s"),
            ("E0104", "1.5MB"),
            ("E0104", "1e999"),
            ("E0104", "3x"),
        ],
    ),
    ("const x = 170141183460469231731687303715884105728", &[("E0104", "170141183460469231731687303715884105728")]),
    ("const x = 0.000000000000000000000000000000000000001", &[("E0104", "0.000000000000000000000000000000000000001")]),
    ("const x = 999999999999d", &[("E0104", "999999999999d")]),
    (
        "const x = [@2026-02-30, @2026-13-01, @2026-1-1, @24:00:00, @10:00:00.1234567, @today, @2026-01-01T10:00:00+8]",
        &[
            ("E0105", "@2026-02-30"),
            ("E0105", "@2026-13-01"),
            ("E0105", "@2026-1-1"),
            ("E0105", "@24:00:00"),
            ("E0105", "@10:00:00.1234567"),
            ("E0105", "@today"),
            ("E0105", "@2026-01-01T10:00:00+8"),
        ],
    ),
    ("stream a = b\n    |> filter(c == \"d\"\n    |> take(1)\nstream e = f", &[("E0106", "\"d\"")]),
    ("stream a = b |> filter(c in [1, 2)", &[("E0106", "2")]),
    ("record R {\n    a: int64\n\nsource s = csv()", &[("E0106", "int64")]),
    ("const x = f(a, (b + c, d)", &[("E0106", "c")]),
    ("stream a = b |> take(1))", &[("E0107", ")")]),
    ("stream a = b |> take(1]", &[("E0107", "]")]),
    ("stream a = b |> take(1])", &[("E0107", "]")]),
    ("stream a = b |> aggregate(by: c, d], e: count())", &[("E0107", "d")]),
    ("record R a: int64 }", &[("E0107", "a")]),
    ("strem a = b", &[("E0108", "strem")]),
    ("stream a = b\nstraem c = d\nstream e = f", &[("E0108", "straem")]),
    ("42", &[("E0108", "42")]),
    ("stream a = b |> filter(c ==)", &[("E0109", ")")]),
    ("const x = 1 +", &[("E0109", "+")]),
    ("const x = [1,,2]", &[("E0109", ",")]),
    ("stream = b", &[("E0110", "=")]),
    ("stream a = 3 |> take(1)", &[("E0110", "3")]),
    ("record \"R\" { a: int64 }", &[("E0110", "record")]),
    ("param a = 3", &[("E0111", "=")]),
    ("const a: 3 = 3", &[("E0111", "3")]),
    ("record R {\n    a:\n    b: int64\n}", &[("E0111", ":")]),
    ("stream a = b c", &[("E0112", "c")]),
    ("const a = b c", &[("E0112", "c")]),
    ("stream a = b |> derive(c: d.upper())", &[("E0112", "upper")]),
    ("const x: decimal(15) = 1", &[("E0112", ")")]),
    ("use common", &[("E0112", "common")]),
    ("native thing x() -> y", &[("E0112", "thing")]),
    ("record R { a = int64 }", &[("E0113", "=")]),
    ("record R { a int64 }", &[("E0113", "int64")]),
    ("source s: csv(\"x\")", &[("E0113", ":")]),
    ("param a: int64 == 3", &[("E0113", "==")]),
    ("stream a = b |> filter(c = 1)", &[("E0113", "=")]),
    ("stream a = b |> filter(c and d = 1)", &[("E0113", "=")]),
    ("fn f(x: int64): int64 = x", &[("E0113", ":")]),
    ("stream a = b |> filter(c && d || !e)", &[("E0114", "&&"), ("E0114", "||"), ("E0114", "!")]),
    ("stream a = b |> filter(c <> d)", &[("E0114", "<>")]),
    ("stream a = b |> filter(c AND d IS NOT NULL)", &[("E0114", "AND"), ("E0114", "IS NOT NULL")]),
    ("stream a = b |> filter(NOT c)", &[("E0114", "NOT")]),
    ("const x = 'text'", &[("E0115", "'text'")]),
    ("const x = 'text", &[("E0115", "'text")]),
    ("stream a = b;", &[("E0116", ";")]),
    ("operator o(x: row any) -> input { on row { emit row } }", &[("E0116", "row")]),
    ("stream a = b -> take(1)", &[("E0117", "->")]),
    ("stream a = b | take(1)", &[("E0117", "|")]),
    ("stream a = b.take(1)", &[("E0117", ".")]),
    ("stream a = b |> distinct |> take(1)", &[("E0118", "distinct")]),
    ("stream a = b |> filter c == 1 |> take(1)", &[("E0118", "filter")]),
    ("stream a = b |> filter(c < d < e)", &[("E0119", "<")]),
    ("stream a = b |> filter(c == d != e)", &[("E0119", "!=")]),
    ("stream match = b", &[("E0120", "match")]),
    ("stream a = b |> select(in, c)", &[("E0120", "in")]),
    ("record R { match: int64 }", &[("E0120", "match")]),
    ("SELECT a, b\nFROM t\nWHERE c\nstream x = y", &[("E0121", "SELECT")]),
    ("stream a = b\nselect * from c", &[("E0121", "select")]),
    ("const x = if a then b", &[("E0122", "b")]),
    ("const x = if a { b } else { c }", &[("E0122", "{")]),
    ("const x = [a ? b : c]", &[("E0122", "?")]),
    ("const x = 1 + if a then b else c", &[("E0122", "if")]),
    ("const x = f\"a } b\"", &[("E0123", "}")]),
    ("// c\n# d\nstream a = b", &[("E0126", "#")]),
    ("stream a = b /* c */", &[("E0126", "/*")]),
    ("const x = match a { else => 1, 2 => 3 }", &[("E0127", "else")]),
    // Habits of SQL, Python and others.
    ("record R { a: string NOT NULL, b: int64 null }", &[("E0112", "NOT NULL"), ("E0112", "null")]),
    ("record R { a: int64 primary key }", &[("E0112", "primary key")]),
    ("record R {\n    a: int64\n    unique: bool\n    key: string\n}", &[]),
    ("record R { a: varchar(20) }", &[("E0112", "varchar(20)")]),
    ("record R { a: array<string>, b: string[] }", &[("E0112", "array<string>"), ("E0112", "string[]")]),
    ("record R { a?: int64 }", &[("E0112", "?")]),
    ("record R { int64 a }", &[("E0113", "int64 a")]),
    ("record R { date: date, time: time }", &[]),
    ("record R { \"a\": int64, \"order id\": int64 }", &[("E0110", "\"a\""), ("E0110", "\"order id\"")]),
    ("stream a = b |> rename(\"c\": d)", &[("E0110", "\"c\"")]),
    ("stream a = b |> group by c", &[("E0121", "group by")]),
    ("stream a = b |> left join c on d == e", &[("E0121", "left join")]),
    ("stream a = b |> derive(c = d + 1)", &[("E0113", "=")]),
    ("const x = match a { 1: 2, else -> 3 }", &[("E0113", ":"), ("E0113", "->")]),
    ("const x = f'{a}'", &[("E0115", "'{a}'")]),
    ("const x = a - interval '3 days'", &[("E0115", "'3 days'")]),
    ("const x = a + 3 days", &[("E0104", "3 days")]),
    ("const x = [1 if a else 2]", &[("E0122", "if")]),
    ("const x = a || \"b\"", &[("E0114", "||")]),
    ("sink a > csv(\"b\")", &[("E0117", ">")]),
    ("stream a = b |> rename(c -> d)", &[("E0112", "->")]),
    ("stream a = b\nimport \"c\"", &[("E0108", "import")]),
    ("def f(x): return x", &[("E0108", "def")]),
    ("source a = csv(\"x\" header: true)", &[("E0128", "header")]),
    ("stream a = b |> select(c d)", &[("E0128", "d")]),
    ("const x = match a { 1 => 2 else => 3 }", &[("E0128", "else")]),
    ("record R { a: list<> }", &[("E0129", "<>")]),
];

fn at(text: &str, error: &SyntaxError) -> String {
    text[error.span.start as usize..error.span.end as usize].to_owned()
}

#[test]
fn each_mistake_is_one_message_at_its_place() {
    let mut seen: Vec<&str> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for (text, expected) in CASES {
        let parse = parse(text);
        let found: Vec<(&str, String)> = parse.errors.iter().map(|error| (error.code, at(text, error))).collect();
        let expected: Vec<(&str, String)> = expected.iter().map(|(code, text)| (*code, (*text).to_owned())).collect();
        if found != expected {
            let messages: Vec<&str> = parse.errors.iter().map(|error| error.message.as_str()).collect();
            wrong.push(format!("{text}\n  found {found:?}\n  expected {expected:?}\n  {messages:?}"));
        }
        for error in &parse.errors {
            seen.push(error.code);
            assert!(!error.message.is_empty() && !error.label.is_empty(), "{error:?}");
            assert!(!error.message.contains("invalid"), "{error:?}");
            assert!(error.message.len() < 140, "{error:?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (code, title) in CODES {
        let elsewhere = ["E0124", "E0125", "E0130"];
        assert!(seen.contains(code) || elsewhere.contains(code), "no case for {code}, {title}");
    }
}

/// A fix, where one is offered, mends its mistake and makes no other.
#[test]
fn fixes_mend() {
    for (text, _) in CASES {
        let errors = parse(text).errors;
        for error in &errors {
            let Some((span, new)) = &error.fix else { continue };
            let mut mended = (*text).to_owned();
            mended.replace_range(span.start as usize..span.end as usize, new);
            let left = parse(&mended).errors;
            let same = |other: &SyntaxError| other.message == error.message && other.span.start == error.span.start;
            assert!(left.len() <= errors.len() && !left.iter().any(same), "{text}\n→ {mended}\n{left:#?}");
        }
    }
}

#[test]
fn five_independent_mistakes_are_five_errors_and_all_sound_items() {
    let text = r#"
job j { parallelism: 4 }
param since: date = @2026-02-30
record R { id: int64, name string }
source a = csv("a.csv", schema: R
stream b = a |> filter(id == 1)
stream c = b |> filter(id == ) |> take(1)
strem d = c
/// Sound.
stream e = b |> take(2)
sink e |> print()
"#;
    let parse = parse(text);
    let codes: Vec<&str> = parse.errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, ["E0105", "E0113", "E0106", "E0109", "E0108"], "{:#?}", parse.errors);
    let tree = dump_ast(&parse);
    let items: Vec<&str> = tree.lines().filter(|l| l.contains(" @")).map(|l| l.split(" @").next().unwrap()).collect();
    assert_eq!(items, ["job j", "stream b", "stream e", "sink"]);
    assert!(tree.contains("doc \"Sound.\""));
}

#[test]
fn several_mistakes_in_one_item_are_all_found() {
    let text = "stream a = b\n    |> filter(c ==)\n    |> derive(d = 1, e: 2 +, f: g(h i), j: k < l < m)\n    |> take\n    |> x(y: [1,,])";
    let codes: Vec<&str> = parse(text).errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, ["E0109", "E0113", "E0109", "E0128", "E0119", "E0118", "E0109"]);
}

#[test]
fn an_open_bracket_is_shown() {
    let text = "stream a = b |> filter(c == 1";
    let error = &parse(text).errors[0];
    assert_eq!(error.message, "expected `)` to close `filter(`");
    assert_eq!(at(text, error), "1");
    let (opener, _) = error.related[0];
    assert_eq!(&text[opener.start as usize..], "(c == 1");
    assert_eq!(error.fix.as_ref().map(|(span, new)| (span.start as usize, new.as_str())), Some((text.len(), ")")));
}

#[test]
fn limits_are_errors_by_name() {
    let n = 10_000;
    let deep = [
        format!("const x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("const x = {}", "[".repeat(n)),
        format!("const x = {}1", "-".repeat(n)),
        format!("const x = {}a", "not ".repeat(n)),
        format!("const x = {}1", "if a then b else ".repeat(n)),
        format!("const x = a{}", ".b".repeat(n)),
        format!("const x = a{}", "[0]".repeat(n)),
        format!("const x = a{}", " ?? a".repeat(n)),
        format!("const x = a{}", " + a".repeat(n)),
        format!("const x = a{}", " as int64".repeat(n)),
        format!("const x: {}int64 = 1", "list<".repeat(n)),
        format!("const x = {}", "f\"{".repeat(20) + &"}\"".repeat(20)),
        format!("operator o(x: row any) -> input {{ on row {{ if a {{ }}{} }} }}", " else if a { }".repeat(n)),
        format!("stream x = {}", "f(a |> ".repeat(n)),
    ];
    for text in deep {
        let errors = parse(&text).errors;
        assert_eq!(errors.iter().map(|e| e.code).collect::<Vec<_>>(), ["E0124"], "{}", &text[..40]);
    }
    // Wide is not deep.
    let wide = [
        format!("stream x = a{}", " |> f(-1)".repeat(n)),
        format!("const x = [{}]", "a + 1, ".repeat(n)),
        format!("job j {{ {} }}", "a: -1\n".repeat(n)),
        format!("record R {{ {} }}", "a: list<int64>?\n".repeat(n)),
        format!("operator o(x: row any) -> input {{ on row {{ {} }} }}", "if a == 1 { }\n".repeat(n)),
        format!(
            "operator o(x: row any) -> input {{ on row {{ {} }} }}",
            "if a == 1 { b = 1; } else { b = 2; }\n".repeat(n)
        ),
        format!("const x = f\"{}\"", "{a}-".repeat(n)),
    ];
    for text in wide {
        assert_eq!(parse(&text).errors, [], "{}", &text[..40]);
    }
    let large = " ".repeat(LIMITS.file_bytes + 1);
    assert_eq!(parse(&large).errors[0].code, "E0125");
    let name = |bytes: usize| format!("const {} = 1", "a".repeat(bytes));
    assert_eq!(parse(&name(LIMITS.name_bytes)).errors, []);
    let long = parse(&name(LIMITS.name_bytes + 1)).errors;
    assert_eq!(long.iter().map(|error| error.code).collect::<Vec<_>>(), ["E0130"]);
}

#[test]
fn many_mistakes_in_one_item_stay_quick() {
    for text in [
        format!("stream x = a{}", " |> f(b ==)".repeat(10_000)),
        format!("const x = {}", ")".repeat(100_000)),
        format!("const x = a{}", " && a".repeat(100_000)),
        "strem a = b\n".repeat(10_000),
        "\"".repeat(100_000),
        "f\"{".repeat(100_000),
    ] {
        assert!(!parse(&text).errors.is_empty());
    }
}

/// The fields of a record with a mistake in one line are those of its other lines, and the name of that one.
#[test]
fn a_broken_record_keeps_its_other_lines() {
    let fields = |text: &str| {
        let broken = parse(text).broken;
        let Some(ItemKind::Record(record)) = broken[0].mended.as_ref().map(|item| item.kind.as_ref()) else {
            panic!("nothing is left of {text}");
        };
        record.fields.iter().map(|field| field.name.text.clone()).collect::<Vec<_>>()
    };
    for line in ["weight:", "weight: int64 not null,", "weight: = 3"] {
        let text = format!("record R {{\n    id: int64\n    {line}\n    name: string\n    last: date\n}}\n");
        assert_eq!(fields(&text), ["id", "weight", "name", "last"], "{line}");
    }
}
