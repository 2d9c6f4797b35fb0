//! The language server's protocol: its life, the documents' changes in every way of counting, cancellation, and input that
//! no client should send.

use serde_json::{Value, json};

use crate::support::folder;
use crate::support::lsp::{Client, edited, marked, position, uri};
use crate::support::random::Random;

const SMALL: &str = "record R { id: int64, name: string }\n\nsource s = csv(\"x.csv\", schema: R)\n";

#[test]
fn a_session_ends_as_it_should() {
    let dir = folder(&[]);
    assert_eq!(Client::start(dir.path(), json!({})).leave(), Some(0));
    // Without `shutdown` it was not the client's wish.
    assert_eq!(Client::start(dir.path(), json!({})).end(), Some(1));
    let mut client = Client::start(dir.path(), json!({}));
    client.notify("exit", Value::Null);
    assert_eq!(client.end(), Some(1));
}

#[test]
fn requests_out_of_order_are_refused_by_their_codes() {
    let dir = folder(&[]);
    let mut client = Client::silent(dir.path());
    let hover = json!({ "textDocument": { "uri": "file:///x.df" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(client.request("textDocument/hover", hover.clone()).expect_err("too early")["code"], -32002);
    client.notify("textDocument/didOpen", json!({}));
    client.request("initialize", json!({ "capabilities": {} })).expect("the agreement");
    assert_eq!(client.request("initialize", json!({ "capabilities": {} })).expect_err("twice")["code"], -32600);
    assert_eq!(client.request("textDocument/hover", hover.clone()).expect_err("no such file")["code"], -32803);
    assert_eq!(client.request("textDocument/hover", json!({})).expect_err("no parameters")["code"], -32602);
    assert_eq!(client.request("textDocument/fly", json!({})).expect_err("no such method")["code"], -32601);
    client.request("shutdown", Value::Null).expect("shutdown");
    assert_eq!(client.request("textDocument/hover", hover).expect_err("too late")["code"], -32600);
    client.notify("exit", Value::Null);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn it_lives_through_what_is_no_message() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    for body in ["", "{", "null", "[]", "7", "\"x\"", "{\"id\":3}", "\u{0}", "{\"method\":5}", "[{\"id\":1}]"] {
        client.framed(body);
    }
    client.framed("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":null}");
    client.raw(b"Content-Length: 3\r\nContent-Type: x\r\n\r\n\xff\xfe\xfd");
    for method in ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/cancelRequest", "$/x"]
    {
        for params in [json!(null), json!([]), json!({}), json!({ "textDocument": { "uri": "::" } }), json!(3)] {
            client.notify(method, params);
        }
    }
    // A change and the end of a document that was never opened.
    let never = json!({ "uri": "file:///never.df", "version": 4 });
    client.notify("textDocument/didChange", json!({ "textDocument": never, "contentChanges": [{ "text": "x" }] }));
    client.notify("textDocument/didClose", json!({ "textDocument": never }));
    client.notify("$/cancelRequest", json!({ "id": 99 }));
    let uri = uri(&dir.path().join("a.df"));
    client.open(&uri, SMALL);
    assert_eq!(client.findings(&uri), Vec::<Value>::new());
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_broken_header_ends_it_with_a_word() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    client.raw(b"Content-Length: many\r\n\r\n{}");
    assert_eq!(client.end(), Some(1));
}

/// How a client counts columns.
fn units(text: &str, encoding: &str) -> usize {
    match encoding {
        "utf-8" => text.len(),
        "utf-16" => text.encode_utf16().count(),
        _ => text.chars().count(),
    }
}

#[test]
fn edits_arrive_whole_in_every_way_of_counting() {
    // What the server has is told by formatting a text that has two spaces too many: its edits fit only the same text.
    let pieces = ["金", "😀", "é", "a", "\n", "\r\n", "  ", "\"x\"", "// 😀😀\n", "`ä ö`", "\u{301}", "\t", "param p"];
    for (seed, encoding) in [(1, "utf-8"), (2, "utf-16"), (3, "utf-32")] {
        let dir = folder(&[]);
        let options = json!({ "capabilities": { "general": { "positionEncodings": [encoding] } } });
        let mut client = Client::start(dir.path(), options);
        let uri = uri(&dir.path().join("a.df"));
        let mut text = SMALL.to_owned();
        client.open(&uri, &text);
        let mut random = Random(seed);
        for _ in 0..60 {
            let mut changes = Vec::new();
            for _ in 0..1 + random.below(3) {
                let (from, to) = (random.below(text.len() + 1), random.below(text.len() + 1));
                let from = text.floor_char_boundary(from.min(to));
                let to = text.floor_char_boundary((from + random.below(12)).min(text.len()));
                let within = |at: usize| !(text[..at].ends_with('\r') && text[at..].starts_with('\n'));
                if !within(from) || !within(to) {
                    continue;
                }
                let at = |byte: usize| {
                    let before = &text[..byte];
                    let lines = before.replace("\r\n", "\n").replace('\r', "\n").matches('\n').count();
                    let start = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
                    json!({ "line": lines, "character": units(&before[start..], encoding) })
                };
                let new: String = (0..random.below(4)).map(|_| random.pick(&pieces)).collect();
                changes.push(json!({ "range": { "start": at(from), "end": at(to) }, "text": new }));
                text.replace_range(from..to, &new);
            }
            client.change(&uri, json!(changes));
        }
        // The same text sent whole gives the same findings, places and all.
        let by_edits = client.findings(&uri);
        client.replace(&uri, &text);
        assert_eq!(by_edits, client.findings(&uri), "{encoding}: {text:?}");
        assert!(!by_edits.is_empty(), "the text is broken by now");
        assert_eq!(client.leave(), Some(0));
    }
}

#[test]
fn places_outside_the_text_are_taken_to_its_edges() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    let uri = uri(&dir.path().join("a.df"));
    client.open(&uri, SMALL);
    for (start, end) in [([0, 999], [0, 999]), ([99, 0], [99, 9]), ([0, u32::MAX], [u32::MAX, 0]), ([2, 5], [0, 1])] {
        let at = |[line, character]: [u32; 2]| json!({ "line": line, "character": character });
        client.change(&uri, json!([{ "range": { "start": at(start), "end": at(end) }, "text": "" }]));
        let place = json!({ "textDocument": { "uri": uri }, "position": at(start) });
        client.request("textDocument/hover", place.clone()).expect("any place has an answer");
        client.request("textDocument/completion", place).expect("any place has an answer");
    }
    assert_eq!(client.findings(&uri), Vec::<Value>::new());
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_request_is_cancelled() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    let uri = uri(&dir.path().join("a.df"));
    client.open(&uri, SMALL);
    let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 2, "character": 8 } });
    let mut cancelled = 0;
    for _ in 0..50 {
        let id = client.send("textDocument/hover", place.clone());
        client.notify("$/cancelRequest", json!({ "id": id }));
        match client.answer(id) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error["code"], -32800, "{error}");
                cancelled += 1;
            }
        }
    }
    assert!(cancelled > 0, "not one of 50 was cancelled in time");
    client.request("textDocument/hover", place).expect("it goes on");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_storm_of_edits_and_questions_leaves_it_whole() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    let uri = uri(&dir.path().join("a.df"));
    let text = format!("{SMALL}\nstream t = s |> filter(id > 1)\n\njob j {{}}\nsink t |> csv(\"o.csv\")\n");
    client.open(&uri, &text);
    let methods =
        ["hover", "completion", "documentSymbol", "semanticTokens/full", "foldingRange", "codeLens", "references"];
    let mut random = Random(9);
    let mut asked = Vec::new();
    for _ in 0..200 {
        let at = text.floor_char_boundary(random.below(text.len()));
        let place = position(&text, at);
        client.change(
            &uri,
            json!([{ "range": { "start": place, "end": place }, "text": random.pick(&["x", " ", "(", "|> "]) }]),
        );
        let params = json!({
            "textDocument": { "uri": uri }, "position": place, "context": { "includeDeclaration": true, "triggerKind": 1 },
        });
        asked.push(client.send(&format!("textDocument/{}", methods[random.below(methods.len())]), params));
    }
    for id in asked {
        if let Err(error) = client.answer(id) {
            assert_eq!(error["code"], -32801, "answered, or the content was changed: {error}");
        }
    }
    client.replace(&uri, &text);
    assert_eq!(client.findings(&uri), Vec::<Value>::new());
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_file_is_one_whatever_its_name() {
    // Escaped otherwise, and with a blank, by the same path.
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    let plain = uri(&dir.path().join("two words.df"));
    client.open(&plain, SMALL);
    client.findings(&plain);
    let other = plain.replace(".df", "%2Edf");
    let place = json!({ "textDocument": { "uri": other }, "position": { "line": 2, "character": 8 } });
    let found = client.request("textDocument/definition", place).expect("an answer");
    assert_eq!(found[0]["uri"], plain);
    // A text that is nowhere yet.
    client.open("untitled:Untitled-1", "record R { id: }\n");
    assert!(!client.findings("untitled:Untitled-1").is_empty());
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn broken_text_keeps_the_last_good_fields() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    let uri = uri(&dir.path().join("a.df"));
    let good = format!("{SMALL}\nstream t = s |> derive(total: id * 2)\n\nstream u = t |> select(total)\n");
    client.open(&uri, &good);
    client.findings(&uri);
    // `t` is broken while it is being written; `u` still knows what it gives.
    let (text, place) = marked(&good.replace("id * 2", "id * ").replace("select(total)", "select(to$0)"));
    client.replace(&uri, &text);
    let place = json!({ "textDocument": { "uri": uri }, "position": place });
    let items = client.request("textDocument/completion", place).expect("an answer");
    let labels: Vec<&str> =
        items.as_array().expect("a list").iter().filter_map(|item| item["label"].as_str()).collect();
    assert!(labels.contains(&"total"), "{labels:?}");
    assert_eq!(client.findings(&uri).len(), 1, "only the syntax error");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn formatting_gives_edits_that_fit() {
    let dir = folder(&[]);
    let mut client = Client::start(dir.path(), json!({}));
    let uri = uri(&dir.path().join("a.df"));
    let text = "record   R{id:int64,name:string}\n// 😀 金额\nparam   p : int64=1\n";
    client.open(&uri, text);
    let ask = json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = client.request("textDocument/formatting", ask).expect("edits");
    let formatted = edited(text, &edits);
    assert_eq!(formatted, dfc_grammar::format(text).text);
    assert_ne!(formatted, text);
    let range = json!({ "start": { "line": 2, "character": 0 }, "end": { "line": 2, "character": 5 } });
    let ask =
        json!({ "textDocument": { "uri": uri }, "range": range, "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = client.request("textDocument/rangeFormatting", ask).expect("edits");
    let part = edited(text, &edits);
    assert!(part.starts_with("record   R{") && part.contains("param p: int64 = 1"), "{part}");
    assert_eq!(client.leave(), Some(0));
}
