//! The language server over a folder of pipelines: findings on those that nobody has opened; and that it reads nothing from
//! the network, whatever a pipeline names.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::lsp::{Client, uri};
use crate::support::{folder, write};

const LIBRARY: &str = "record Order { id: int64 }\n\nsource orders = csv(\"o.csv\", schema: Order)\n";
const GOOD: &str = "use \"lib.df\"\n\njob good {}\n\nsink orders |> filter(id > 1) |> csv(\"good.csv\")\n";
const BAD: &str = "use \"lib.df\"\n\njob bad {}\n\nsink orders |> filter(ids > 1) |> csv(\"bad.csv\")\n";

/// Asks for the findings of the workspace; by file the codes, `None` where nothing has changed.
fn pull(client: &mut Client, before: &mut Vec<Value>) -> Vec<(String, Option<Vec<String>>)> {
    let report = client.request("workspace/diagnostic", json!({ "previousResultIds": before })).expect("a report");
    let mut out = Vec::new();
    before.clear();
    for item in report["items"].as_array().expect("items") {
        let name = item["uri"].as_str().expect("a URI").rsplit('/').next().unwrap_or_default().to_owned();
        before.push(json!({ "uri": item["uri"], "value": item["resultId"] }));
        let codes = item["items"].as_array().map(|items| {
            items.iter().map(|found| found["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
        });
        assert_eq!(item["kind"] == "full", codes.is_some(), "{item}");
        out.push((name, codes));
    }
    out.sort();
    out
}

fn found(name: &str, codes: &[&str]) -> (String, Option<Vec<String>>) {
    (name.to_owned(), Some(codes.iter().map(|code| (*code).to_owned()).collect()))
}

#[test]
fn pipelines_that_are_closed_have_their_findings() {
    let dir = folder(&[("lib.df", LIBRARY), ("good.df", GOOD), ("sub/bad.df", &BAD.replace("lib.df", "../lib.df"))]);
    let capabilities =
        json!({ "textDocument": { "diagnostic": {} }, "workspace": { "diagnostics": { "refreshSupport": true } } });
    let mut client = Client::start(dir.path(), json!({ "capabilities": capabilities }));
    let mut before = Vec::new();
    // The folders are looked through beside the first requests.
    let first = loop {
        let first = pull(&mut client, &mut before);
        if !first.is_empty() {
            break first;
        }
    };
    assert_eq!(first, [found("bad.df", &["E0410"]), found("good.df", &[]), found("lib.df", &[])]);
    let same = pull(&mut client, &mut before);
    assert!(same.iter().all(|(_, codes)| codes.is_none()), "nothing has changed: {same:?}");
    // The library is opened and changed: the pipelines that use it follow, closed as they are.
    let library = uri(&dir.path().join("lib.df"));
    client.open(&library, LIBRARY);
    client.replace(&library, &LIBRARY.replace("id: int64", "ids: int64"));
    let changed = pull(&mut client, &mut before);
    assert_eq!(changed[0], found("bad.df", &[]));
    assert_eq!(changed[1], found("good.df", &["E0410"]));
    // On the disk, too; the client is told to ask again.
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": library } }));
    write(&dir.path().join("lib.df"), &LIBRARY.replace("orders", "sales"));
    client.said.clear();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": library, "type": 2 }] }));
    client.wait(|message| message["method"] == "workspace/diagnostic/refresh");
    let changed = pull(&mut client, &mut before);
    assert_eq!(changed[..2], [found("bad.df", &["E0302"]), found("good.df", &["E0302"])]);
    // A pipeline that is gone has none.
    std::fs::remove_file(dir.path().join("sub/bad.df")).expect("it goes");
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": library, "type": 2 }] }));
    let gone = loop {
        let gone = pull(&mut client, &mut before);
        if gone[0] != ("bad.df".to_owned(), None) {
            break gone;
        }
    };
    assert_eq!(gone[0], found("bad.df", &[]));
    assert_eq!(client.leave(), Some(0));
}

/// A pipeline names a database, a bucket and an address: nobody calls there.
#[test]
fn nothing_is_read_from_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket that doesn't wait");
    let port = listener.local_addr().expect("an address").port();
    let text = format!(
        "job j {{}}\n\n\
         source a = postgres(url: \"postgres://dfc@127.0.0.1:{port}/shop\", table: \"orders\")\n\n\
         source b = csv(\"http://127.0.0.1:{port}/orders.csv\")\n\n\
         source c = parquet(\"s3://bucket/orders.parquet\")\n\n\
         stream d = a |> filter(id > 1)\n\n\
         sink d |> postgres(url: \"postgres://dfc@127.0.0.1:{port}/shop\", table: \"out\")\n"
    );
    let dir = folder(&[("main.df", &text)]);
    let mut client = Client::start_with(
        dir.path(),
        json!({}),
        &[
            ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}")),
            ("http_proxy", &format!("http://127.0.0.1:{port}")),
        ],
    );
    let uri = uri(&dir.path().join("main.df"));
    client.open(&uri, &text);
    let codes: Vec<Value> = client.findings(&uri).iter().map(|found| found["code"].clone()).collect();
    assert!(codes.contains(&json!("E0703")), "fields that only the database knows: {codes:?}");
    for method in ["hover", "completion", "definition", "signatureHelp", "references"] {
        for line in [2, 4, 6, 8, 10] {
            let ask = json!({
                "textDocument": { "uri": uri }, "position": { "line": line, "character": 9 },
                "context": { "includeDeclaration": true, "triggerKind": 1, "isRetrigger": false },
            });
            client.request(&format!("textDocument/{method}"), ask).expect("an answer");
        }
    }
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    for method in ["inlayHint", "codeAction"] {
        let ask = json!({ "textDocument": { "uri": uri }, "range": whole, "context": { "diagnostics": [] } });
        client.request(&format!("textDocument/{method}"), ask).expect("an answer");
    }
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
    for command in ["dfc.check", "dfc.plan"] {
        // A pipeline with errors has no plan; that is an answer too.
        let _ = client.request("workspace/executeCommand", json!({ "command": command, "arguments": [uri] }));
    }
    assert_eq!(client.leave(), Some(0));
    let called = listener.accept().map(|(_, from)| from);
    assert!(called.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "somebody called");
}
