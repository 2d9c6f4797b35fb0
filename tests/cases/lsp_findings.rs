//! What the language server says of a file is what `dfc check` says: over every input of the golden diagnostics, pushed and
//! pulled, over files that use one another, and after edits.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::golden::inputs;
use crate::support::lsp::{Client, path, uri};
use crate::support::{dfc, folder, root, write};

/// What `dfc check` finds, by file: each as the client should see it.
fn checked(file: &Path) -> BTreeMap<String, Vec<Value>> {
    let output = dfc(file.parent().expect("a folder"), &["check", "--format", "json", file.to_str().expect("UTF-8")]);
    let mut out: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in output.stdout.lines() {
        let found: Value = serde_json::from_str(line).expect("a line of JSON");
        let mut message = found["message"].as_str().expect("a message").to_owned();
        for note in found["notes"].as_array().expect("notes") {
            message += &format!("\nnote: {}", note.as_str().expect("a note"));
        }
        if let Some(help) = found["help"].as_str() {
            message += &format!("\nhelp: {help}");
        }
        let labels = found["labels"].as_array().expect("labels");
        let related: Vec<Value> = labels[1..]
            .iter()
            .map(|label| json!({ "message": label["message"], "file": label["file"], "range": range(label) }))
            .collect();
        let fixes: Vec<Value> = found["fixes"]
            .as_array()
            .expect("fixes")
            .iter()
            .map(|fix| json!({ "title": fix["title"], "file": fix["file"], "range": range(fix), "newText": fix["text"] }))
            .collect();
        let shown = json!({
            "code": found["code"],
            "severity": if found["severity"] == "error" { 1 } else { 2 },
            "message": message,
            "range": range(&found),
            "label": labels[0]["message"],
            "related": related,
            "fixes": fixes,
        });
        out.entry(found["file"].as_str().expect("a file").to_owned()).or_default().push(shown);
    }
    out
}

/// A place of `dfc check` as the protocol counts it.
fn range(place: &Value) -> Value {
    let at = |line: &str, column: &str| {
        let from_0 = |name: &str| place[name].as_u64().expect("a number") - 1;
        json!({ "line": from_0(line), "character": from_0(column) })
    };
    json!({ "start": at("line", "column"), "end": at("end_line", "end_column") })
}

/// A finding of the server in the same form.
fn shown(found: &Value) -> Value {
    let file = |uri: &Value| path(uri.as_str().expect("a URI")).to_str().expect("UTF-8").to_owned();
    let related: Vec<Value> = found["relatedInformation"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|related| {
            let at = &related["location"];
            json!({ "message": related["message"], "file": file(&at["uri"]), "range": at["range"] })
        })
        .collect();
    let fixes: Vec<Value> = found["data"]["fixes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|fix| {
            json!({ "title": fix["title"], "file": file(&fix["uri"]), "range": fix["range"], "newText": fix["newText"] })
        })
        .collect();
    json!({
        "code": found["code"],
        "severity": found["severity"],
        "message": found["message"],
        "range": found["range"],
        "label": found["data"]["label"],
        "related": related,
        "fixes": fixes,
    })
}

/// A client that counts characters, as `dfc check` does, with no folder of its own.
fn client(more: Value) -> Client {
    let mut options = json!({
        "rootUri": null,
        "workspaceFolders": null,
        "capabilities": { "general": { "positionEncodings": ["utf-32"] } },
    });
    if let (Value::Object(into), Value::Object(from)) = (&mut options["capabilities"], more) {
        into.extend(from);
    }
    Client::start(&std::env::temp_dir(), options)
}

fn expect(file: &Path, checked: &BTreeMap<String, Vec<Value>>, pushed: &[Value], wrong: &mut Vec<String>) {
    let wanted = checked.get(file.to_str().expect("UTF-8")).cloned().unwrap_or_default();
    let given: Vec<Value> = pushed.iter().map(shown).collect();
    if wanted != given {
        wrong.push(format!("{}\n--- dfc check\n{wanted:#?}\n--- server\n{given:#?}", file.display()));
    }
}

#[test]
fn findings_are_those_of_check_over_all_golden_inputs() {
    let mut client = client(json!({}));
    let mut wrong = Vec::new();
    for file in inputs("diagnostics", "df") {
        // What isn't text can't be open in an editor.
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let uri = uri(&file);
        let checked = checked(&file);
        client.open(&uri, &text);
        expect(&file, &checked, &client.findings(&uri), &mut wrong);
        // Libraries with findings are shown beside it.
        for other in checked.keys().filter(|other| *other != file.to_str().expect("UTF-8")) {
            let name = crate::support::lsp::uri(Path::new(other));
            client.wait_for(&name, |list| *list != json!([]));
            let list = client.pushed[&name]["diagnostics"].as_array().expect("a list").clone();
            expect(Path::new(other), &checked, &list, &mut wrong);
        }
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn findings_are_the_same_when_the_text_came_by_edits() {
    let mut client = client(json!({}));
    let mut wrong = Vec::new();
    for file in inputs("diagnostics", "df").into_iter().step_by(7) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let uri = uri(&file);
        client.open(&uri, "job x {");
        client.findings(&uri);
        // Half of it first: what that broke or left must not show.
        let half = text.floor_char_boundary(text.len() / 2);
        client.replace(&uri, &text[..half]);
        client.findings(&uri);
        client.replace(&uri, &text);
        expect(&file, &checked(&file), &client.findings(&uri), &mut wrong);
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_pulled_is_what_is_pushed() {
    let mut client = client(json!({ "textDocument": { "diagnostic": {} } }));
    let mut wrong = Vec::new();
    for file in inputs("diagnostics", "df").into_iter().step_by(5) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let uri = uri(&file);
        // A library was pushed while it was closed, to a file that uses it.
        client.pushed.remove(&uri);
        client.open(&uri, &text);
        let ask = |previous: Value| json!({ "textDocument": { "uri": uri }, "previousResultId": previous });
        let report = client.request("textDocument/diagnostic", ask(Value::Null)).expect("a report");
        assert_eq!(report["kind"], "full");
        expect(&file, &checked(&file), report["items"].as_array().expect("items"), &mut wrong);
        let again = client.request("textDocument/diagnostic", ask(report["resultId"].clone())).expect("a report");
        assert_eq!(again["kind"], "unchanged", "{}", file.display());
        assert!(!client.pushed.contains_key(&uri), "an open file is not pushed to who asks");
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

const MAIN: &str = "use \"lib/orders.df\"\n\njob j {}\n\nsink orders |> csv(\"out.csv\")\n";
const LIBRARY: &str =
    "record Order { id: int64, price: decimal(9, 2) }\n\nsource orders = csv(\"orders.csv\", schema: Order)\n";

#[test]
fn a_library_is_seen_from_the_files_that_use_it() {
    let dir = folder(&[("main.df", MAIN), ("lib/orders.df", LIBRARY)]);
    let mut client = Client::start(dir.path(), json!({}));
    let (main, library) = (uri(&dir.path().join("main.df")), uri(&dir.path().join("lib/orders.df")));
    client.open(&library, LIBRARY);
    assert_eq!(client.findings(&library), Vec::<Value>::new());
    client.open(&main, MAIN);
    assert_eq!(client.findings(&main), Vec::<Value>::new());
    // A change of the library shows in the file that uses it, without a change of that.
    client.replace(&library, &LIBRARY.replace("source orders", "source sales"));
    client.wait(|message| message["params"]["uri"] == main && message["params"]["diagnostics"][0]["code"] == "E0302");
    client.replace(&library, LIBRARY);
    client.wait(|message| message["params"]["uri"] == main && message["params"]["diagnostics"] == json!([]));
    // A name of its user may be used in a library that is not whole by itself.
    client.replace(&library, &format!("{LIBRARY}stream more = orders |> filter(id > start)\n"));
    client.replace(&main, &MAIN.replace("sink orders", "const start = 5\n\nsink more"));
    // Between the two changes the library may have been told that the name is unknown.
    client.wait_for(&library, |list| *list == json!([]));
    client.replace(&main, &MAIN.replace("sink orders", "const start = 6\n\nsink more"));
    assert_eq!(client.findings(&main), Vec::<Value>::new());
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_library_that_is_not_open_shows_its_mistakes_and_they_go() {
    let dir = folder(&[("main.df", MAIN), ("lib/orders.df", "record Order { id int64 }\n")]);
    let mut client = Client::start(dir.path(), json!({}));
    let (main, library) = (uri(&dir.path().join("main.df")), uri(&dir.path().join("lib/orders.df")));
    client.open(&main, MAIN);
    client.findings(&main);
    client.wait_for(&library, |list| list.as_array().is_some_and(|list| !list.is_empty()));
    // Mended on the disk; the client watches.
    write(&dir.path().join("lib/orders.df"), LIBRARY);
    let change = json!({ "changes": [{ "uri": library, "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", change);
    client.wait_for(&library, |list| *list == json!([]));
    client.replace(&main, "job j {");
    assert!(!client.findings(&main).is_empty());
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": main } }));
    client.wait_for(&main, |list| *list == json!([]));
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn parameters_are_given_by_the_settings() {
    let text = "job j {}\nparam since: date\nrecord R { d: date }\nsource s = csv(\"x.csv\", schema: R)\n\
                sink s |> filter(d > since) |> csv(\"o.csv\")\n";
    let dir = folder(&[("p.df", text)]);
    let mut client = Client::start(dir.path(), json!({ "initializationOptions": { "params": { "since": "soon" } } }));
    let uri = uri(&dir.path().join("p.df"));
    client.open(&uri, text);
    assert!(!client.findings(&uri).is_empty(), "a value that doesn't fit is said");
    let settings = json!({ "settings": { "dfc": { "params": { "since": "2026-01-01" } } } });
    client.notify("workspace/didChangeConfiguration", settings);
    client.wait_for(&uri, |list| *list == json!([]));
}

#[test]
fn nothing_at_all_is_said_of_examples() {
    let mut client = Client::start(&root().join("examples"), json!({}));
    for file in crate::support::files_below(&root().join("examples")) {
        if file.extension().is_some_and(|e| e == "df") {
            let file = root().join("examples").join(file);
            let uri = uri(&file);
            client.open(&uri, &crate::support::read(&file));
            let wanted = checked(&file).remove(file.to_str().expect("UTF-8")).unwrap_or_default();
            assert_eq!(client.findings(&uri).len(), wanted.len(), "{}", file.display());
        }
    }
}
