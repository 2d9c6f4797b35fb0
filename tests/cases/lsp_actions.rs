//! The language server's code actions and formatting: what they change leaves a file without errors, with its own line ends.

use serde_json::json;

use crate::support::lsp::edited;
use crate::support::session::Session;

const TEXT: &str = r#"job j {}

record Target { id: int64, price: decimal(9, 2), note: string }

source orders = csv("o.csv", schema: record { id: int64, price: decimal(9, 2)?, note: string? })

stream big = orders
    |> filter(id > 1)  // the first is a test
    |> derive(double: id * 2)  // twice
    |> select(id: double, price, note)

sink big
    |> csv("out.csv", schema: Target)
"#;

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn a_default_for_each_field_that_may_be_null() {
    let mut s = Session::new(TEXT);
    assert_eq!(s.codes(), ["E0452", "E0452"]);
    let once = s.act("$csv(\"out.csv\"", "$csv(\"out.csv\"", "add `?? 0`");
    assert!(once.contains("sink big\n    |> derive(price: price ?? 0)\n    |> csv(\"out.csv\""), "{once}");
    assert_eq!(s.codes(), ["E0452"]);
    let twice = s.act("$csv(\"out.csv\"", "$csv(\"out.csv\"", "add `?? \"\"`");
    assert!(twice.contains("    |> derive(note: note ?? \"\")\n    |> csv"), "{twice}");
    assert_eq!(s.codes(), Vec::<String>::new());
    // On one line, and where an expression takes no null.
    let mut s = Session::new(
        "job j {}\n\nsource s = csv(\"s\", schema: record { a: int64? })\n\nsink s |> csv(\"o\", schema: record { a: int64 })\n",
    );
    let text = s.act("$csv(\"o\"", "$csv(\"o\"", "add `?? 0`");
    assert!(text.contains("sink s |> derive(a: a ?? 0) |> csv(\"o\""), "{text}");
    assert_eq!(s.codes(), Vec::<String>::new());
    let mut s = Session::new(
        "job j {}\n\nfn f(x: int64?) -> int64 = x\n\nsource s = csv(\"s\", schema: record { a: int64? })\n\nsink s |> derive(b: f(a)) |> csv(\"o\")\n",
    );
    assert_eq!(s.codes(), ["E0505"]);
    s.act("int64 = x$", "int64 = x$", "add `?? 0`");
    assert_eq!(s.codes(), Vec::<String>::new());
}

#[test]
fn a_record_is_declared_from_a_source() {
    let mut s = Session::new(TEXT);
    let text = s.act("source ord$ers", "source ord$ers", "declare the record `Order`");
    assert!(
        text.contains("record Order { id: int64, price: decimal(9, 2)?, note: string? }\n\nsource orders"),
        "{text}"
    );
    assert!(text.contains("csv(\"o.csv\", schema: Order)"), "{text}");
    assert_eq!(s.codes(), ["E0452", "E0452"], "no error that was not there");
    // From what the file holds.
    let mut s = Session::new("job j {}\n\nsource items = csv(\"items.csv\")\n\nsink items |> csv(\"out.csv\")\n");
    crate::support::write(&s.dir.path().join("items.csv"), "id,Bought At\n1,2026-01-01\n");
    let saved = json!({ "textDocument": { "uri": s.uri } });
    s.client.notify("textDocument/didSave", saved);
    let uri = s.uri.clone();
    s.client.wait_for(&uri, |list| *list == json!([]));
    let text = s.act("source it$ems", "source it$ems", "declare the record `Item`");
    assert!(text.contains("record Item {\n    id: int64\n    `Bought At`: date\n}"), "{text}");
    assert_eq!(s.codes(), Vec::<String>::new());
}

#[test]
fn a_stream_is_extracted_with_its_comments() {
    let mut s = Session::new(TEXT);
    let text = s.act("filter($id > 1)", "derive(double$:", "extract `filter |> derive`");
    let wanted = "stream big_part = orders\n    |> filter(id > 1)  // the first is a test\n    |> derive(double: id * 2)  // twice\n\n\
                  stream big = big_part\n    |> select(id: double, price, note)\n";
    assert!(text.contains(wanted), "{text}");
    assert_eq!(s.codes(), ["E0452", "E0452"], "no error that was not there");
}

#[test]
fn new_lines_end_as_those_of_the_file() {
    for (from, to, title) in [
        ("filter($id > 1)", "derive(double$:", "extract"),
        ("source ord$ers", "source ord$ers", "declare the record"),
        ("$csv(\"out.csv\"", "$csv(\"out.csv\"", "add `?? 0`"),
    ] {
        let text = Session::new(TEXT).act(from, to, title);
        assert_eq!(Session::new(&crlf(TEXT)).act(from, to, title), crlf(&text), "{title}");
    }
}

#[test]
fn formatting_keeps_the_ends_of_lines() {
    let loose = "job  j{}\n\n\n\nstream a=b|>filter(x>1)|>take(3) // why\n\nsource b=csv(\"b\",\n  schema:record{x:int64})\nsink a\n|>csv(\"o\")";
    let mut formatted = Vec::new();
    for text in [loose.to_owned(), crlf(loose)] {
        let mut s = Session::new(&text);
        let ask = json!({ "textDocument": { "uri": s.uri }, "options": { "tabSize": 4, "insertSpaces": true } });
        let edits = s.client.request("textDocument/formatting", ask).expect("edits");
        // Applied one by one as an editor does: none may start or end between the two bytes of a line end.
        formatted.push(edited(&text, &edits));
    }
    assert_eq!(formatted[0], dfc_grammar::format(loose).text);
    assert_eq!(formatted[1], crlf(&formatted[0]));
}
