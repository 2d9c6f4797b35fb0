//! Valid files give no error, and the tree that was meant (D1: the whole syntax of the language).

use dfc_grammar::{dump_ast, dump_tokens, parse};
use std::fs;
use std::path::PathBuf;

fn folder(name: &str) -> Vec<(PathBuf, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The value of `const x = …`, dumped.
fn value(text: &str) -> String {
    let parse = parse(&format!("const x = {text}"));
    assert_eq!(parse.errors, [], "{text}");
    let dump = dump_ast(&parse);
    let (_, value) = dump.trim_end().split_once(" = ").unwrap();
    value.rsplit_once(" @").unwrap().0.to_owned()
}

#[test]
fn good_files_have_no_errors() {
    for (path, text) in folder("good") {
        let parse = parse(&text);
        assert_eq!(parse.errors, [], "{}", path.display());
        assert!(!parse.file.items.is_empty());
        let joined: String = parse.tokens.iter().map(|token| token.text(&text)).collect();
        assert_eq!(joined, text);
        assert_eq!(dump_tokens(&parse, &text).lines().count(), parse.tokens.len());
    }
}

#[test]
fn newlines_mean_nothing() {
    for (path, text) in folder("good") {
        let blank = |text: &str| {
            dump_ast(&parse(text)).lines().map(|l| l.split(" @").next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(blank(&text.replace('\n', "\r\n")), blank(&text), "{}", path.display());
        assert_eq!(blank(&format!("\u{feff}{text}")), blank(&text), "{}", path.display());
    }
}

#[test]
fn precedence() {
    let cases = [
        ("a or b and not c == d", "(or a (and b (not (== c d))))"),
        ("a and b or c and d", "(or (and a b) (and c d))"),
        ("not not a", "(not (not a))"),
        ("not a and b", "(and (not a) b)"),
        ("a + b * c - d", "(- (+ a (* b c)) d)"),
        ("a - b - c", "(- (- a b) c)"),
        ("a / b div c % d", "(% (div (/ a b) c) d)"),
        ("1 - discount ?? 0", "(- 1 (?? discount 0))"),
        ("a * b ?? c ?? d", "(* a (?? b (?? c d)))"),
        ("-a ?? b", "(?? (- a) b)"),
        ("-a as int8", "(- (as a int8))"),
        ("--a.b[0]", "(- (- (index (. a b) 0)))"),
        ("a as int8 as? string?", "(as? (as a int8) string?)"),
        ("a + 1 between b and c + 1 and d", "(and (between (+ a 1) b (+ c 1)) d)"),
        ("a not between b and c", "(not-between a b c)"),
        ("a not in [1] or b in c", "(or (not-in a [1]) (in b c))"),
        ("a is null and b is not null", "(and (is-null a) (is-not-null b))"),
        ("a not like b", "(not-like a b)"),
        ("a not matches b", "(not-matches a b)"),
        ("(a < b) == c", "(== (paren (< a b)) c)"),
        ("if a then b else if c then d else e or f", "(if a b (if c d (or e f)))"),
        ("if a or b then c else d", "(if (or a b) c d)"),
        ("match x { \"a\" => 1, else => 0 }", "(match x [\"a\" => 1] [else => 0])"),
        ("match { a > b => 1, else => 0 }", "(match [(> a b) => 1] [else => 0])"),
    ];
    for (text, tree) in cases {
        assert_eq!(value(text), tree, "{text}");
    }
}

#[test]
fn literals() {
    let cases = [
        ("42", "42"),
        ("1.25", "125e-2d"),
        ("1.25f", "1.25f"),
        ("1e3", "1000.0f"),
        ("170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
        ("0.00000000000000000000000000000000000001", "1e-38d"),
        ("@1970-01-01", "date(0)"),
        ("@1969-12-31", "date(-1)"),
        ("@2000-02-29", "date(11016)"),
        ("@9999-12-31", "date(2932896)"),
        ("@0001-01-01", "date(-719162)"),
        ("@23:59:59.999999", "time(86399999999)"),
        ("@1970-01-01T00:00:01.5", "datetime(1500000)"),
        ("@1970-01-01T08:00:00+08:00", "timestamp(0)"),
        ("@1969-12-31T23:59:59.999999Z", "timestamp(-1)"),
        ("500ms", "duration(500000)"),
        ("7d", "duration(604800000000)"),
        ("64MB", "bytes(64000000)"),
        ("64MiB", "bytes(67108864)"),
        (r#""a\n\u{1F600}""#, "\"a\\n😀\""),
        (r#"r"\d\""#, r#""\\d\\""#),
        (r#"f"{{{a}}}""#, r#"(format "{" a "}")"#),
        (r#"f"{f"{a}"}""#, "(format (format a))"),
        (r#"f"{ {b: "}"}.b }""#, r#"(format (. {b: "}"} b))"#),
    ];
    for (text, tree) in cases {
        assert_eq!(value(text), tree, "{text}");
    }
}

#[test]
fn spans_are_relative_to_the_item() {
    let item = |text: &str| parse(text).file.items.pop().unwrap();
    let alone = item("/// Doc.\nstream a = b |> filter(c == \"d\")");
    let later = item("// above\n\nstream x = y\n\n/// Doc.\nstream a = b |> filter(c == \"d\")\n// below");
    assert_eq!(alone.kind, later.kind);
    assert_eq!(alone.len, later.len);
    assert_eq!(alone.doc.as_deref(), Some("Doc."));
    assert_ne!(alone.start, later.start);
}
