//! A query that fails inside dfc: the server says so and goes on.

use std::io::{BufRead, BufReader, Write, pipe};
use std::sync::Arc;

use dfc_compiler::{Catalog, Compiler, NotFound, Request};
use dfc_ir::Schema;
use dfc_lsp::{Ended, serve};
use serde_json::{Value, json};

/// Fails whenever it is asked for fields.
struct Failing;

impl Catalog for Failing {
    fn schema(&self, _: &Request) -> Result<Schema, NotFound> {
        panic!("the catalog has failed")
    }
}

fn send(to: &mut impl Write, message: Value) {
    let body = message.to_string();
    write!(to, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
}

fn receive(from: &mut impl BufRead) -> Value {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).expect("the server writes");
        match line.trim_end().strip_prefix("Content-Length: ") {
            Some(number) => length = number.parse().expect("a number"),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).expect("the server writes");
    serde_json::from_slice(&body).expect("JSON")
}

/// The answer to a request; what comes before it goes into `said`.
fn answer(from: &mut impl BufRead, id: i64, said: &mut Vec<Value>) -> Value {
    loop {
        let message = receive(from);
        if message["id"] == json!(id) && message.get("method").is_none() {
            return message;
        }
        said.push(message);
    }
}

#[test]
fn a_query_that_crashes_does_not_end_the_server() {
    let mut compiler = Compiler::with_files(Arc::new(dfc_compiler::files::MemoryFiles::default()));
    compiler.set_catalog(Arc::new(Failing));
    let (input, mut to) = pipe().expect("a pipe");
    let (from, output) = pipe().expect("a pipe");
    let server = std::thread::spawn(move || serve(compiler, BufReader::new(input), output));
    let mut from = BufReader::new(from);
    let mut said = Vec::new();
    let ask = |id: i64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let tell = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });

    send(&mut to, ask(1, "initialize", json!({ "capabilities": {} })));
    answer(&mut from, 1, &mut said);
    let text = "record R { id: int64 }\n\nsource known = csv(\"a.csv\", schema: R)\n\nsource asked = csv(\"b.csv\")\n";
    let uri = "file:///p/main.df";
    let document = json!({ "uri": uri, "languageId": "df", "version": 1, "text": text });
    send(&mut to, tell("textDocument/didOpen", json!({ "textDocument": document })));
    let hover = |line: u32| json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 9 } });

    // The fields of `asked` come from the catalog.
    for round in 0..3 {
        send(&mut to, ask(10 + round, "textDocument/hover", hover(4)));
        let failed = answer(&mut from, 10 + round, &mut said);
        assert_eq!(failed["error"]["code"], -32603, "{failed}");
        let message = failed["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("please report it"), "{failed}");
        send(&mut to, ask(20 + round, "textDocument/hover", hover(2)));
        let answered = answer(&mut from, 20 + round, &mut said);
        assert!(answered["result"]["contents"]["value"].as_str().is_some_and(|m| m.contains("id")), "{answered}");
    }
    // Findings come again when the cause is gone.
    let mended = text.replace("csv(\"b.csv\")", "csv(\"b.csv\", schema: R)");
    let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": mended }] });
    send(&mut to, tell("textDocument/didChange", change));
    while !said.iter().any(|m| m["method"] == "textDocument/publishDiagnostics" && m["params"]["version"] == 2) {
        said.push(receive(&mut from));
    }
    let reports = |m: &Value| m["params"]["message"].as_str().is_some_and(|m| m.contains("please report it"));
    assert!(said.iter().any(reports), "the failure is told: {said:?}");
    send(&mut to, ask(30, "shutdown", Value::Null));
    assert!(answer(&mut from, 30, &mut said).get("error").is_none());
    send(&mut to, tell("exit", Value::Null));
    assert_eq!(server.join().expect("the server ends").expect("without an error"), Ended::Properly);
}
