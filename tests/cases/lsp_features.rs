//! The language server's answers, each through the protocol.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::lsp::{Client, edited, marked, offset, position, uri};
use crate::support::session::Session;
use crate::support::{folder, read, root};

const TEXT: &str = r#"job nightly {}

/// What is sold.
record Order {
    id: int64,
    status: string,
    price: decimal(9, 2),
}

param least: decimal(9, 2) = 1.00

source orders = csv("orders.csv", schema: Order)

stream paid = orders
    |> filter(status == "paid" and price > least)

stream net = paid
    |> derive(net: price * 2, note: f"{status}-{id}")
    |> select(id, status, net, note)

stream by_status = net
    |> aggregate(by: [status], total: sum(net), notes: count(note))

sink by_status |> csv("out.csv")
"#;

#[test]
fn definitions_of_every_kind_of_name() {
    let mut s = Session::new(TEXT);
    for (part, wanted) in [
        ("stream paid = ord$ers", "11:orders"),
        ("schema: Ord$er", "3:Order"),
        ("price > lea$st", "9:least"),
        ("filter(sta$tus", "5:status"),
        ("sum(n$et)", "17:net"),
        ("{sta$tus}", "5:status"),
        ("select(id, status, net, no$te)", "17:note"),
        ("by: [sta$tus]", "5:status"),
        ("sink by_$status", "20:by_status"),
    ] {
        assert_eq!(s.definition(part), [wanted], "{part}");
    }
    // What is built in is declared nowhere.
    assert_eq!(s.definition("|> fil$ter"), Vec::<String>::new());
    assert_eq!(s.client.leave(), Some(0));
}

#[test]
fn references_follow_a_field_along_the_streams() {
    let mut s = Session::new(TEXT);
    let status = ["5:status", "14:status", "17:status", "18:status", "21:status"];
    assert_eq!(s.references("    sta$tus: string"), status);
    assert_eq!(s.references("by: [sta$tus]"), status);
    assert_eq!(s.references("net = pa$id"), ["13:paid", "16:paid"]);
    // The stream `net` and the field `net` are two things.
    assert_eq!(s.references("derive(n$et:"), ["17:net", "18:net", "21:net"]);
    assert_eq!(s.references("by_status = n$et"), ["16:net", "20:net"]);
    let highlights = s.ask("documentHighlight", "derive(n$et:", json!({})).expect("an answer");
    let kinds: Vec<&Value> = highlights.as_array().expect("a list").iter().map(|h| &h["kind"]).collect();
    assert_eq!(kinds, [&json!(3), &json!(2), &json!(2)], "written once, read twice");
}

#[test]
fn a_field_is_renamed_through_three_streams() {
    let mut s = Session::new(TEXT);
    let renamed = s.rename("select(id, sta$tus", "state").expect("edits");
    let wanted = TEXT
        .replace("status: string", "state: string = \"status\"")
        .replace("filter(status", "filter(state")
        .replace("{status}", "{state}")
        .replace("select(id, status", "select(id, state")
        .replace("[status]", "[state]");
    assert_eq!(renamed, wanted, "what is read keeps its name outside");
    s.client.replace(&s.uri, &renamed);
    assert_eq!(s.client.findings(&s.uri), Vec::<Value>::new());
}

#[test]
fn streams_records_parameters_and_computed_fields_are_renamed() {
    let mut s = Session::new(TEXT);
    for (part, new, from, to) in [
        ("stream pa$id", "settled", "paid", "settled"),
        ("record Or$der", "Sale", "Order", "Sale"),
        ("param le$ast", "at_least", "least", "at_least"),
        ("derive(net: price * 2, no$te", "remark", "note", "remark"),
        ("to$tal: sum", "the total", "total", "`the total`"),
        ("job night$ly", "daily", "nightly", "daily"),
    ] {
        let renamed = s.rename(part, new).unwrap_or_else(|error| panic!("{part}: {error}"));
        let wanted = TEXT.replace(from, to).replace("\"settled\"", "\"paid\"").replace("remarks", "notes");
        assert_eq!(renamed, wanted, "{part}");
    }
    let range = s.ask("prepareRename", "stream pa$id", json!({})).expect("a range");
    assert_eq!(range["placeholder"], "paid");
}

#[test]
fn a_name_that_would_break_something_is_refused() {
    let mut s = Session::new(TEXT);
    for (part, new, word) in [
        ("stream pa$id", "orders", "twice"),
        ("    sta$tus: string", "price", "price"),
        ("|> fil$ter", "keep", "belongs to the language"),
        ("\"pa$id\"", "x", "no name here"),
        ("stream pa$id", "", "at least one character"),
        ("stream pa$id", "a`b", "backticks"),
    ] {
        let error = s.rename(part, new).expect_err(part);
        assert!(error.contains(word), "{part}: {error}");
    }
    assert_eq!(s.rename("stream pa$id", "paid").expect("nothing to do"), TEXT);
}

#[test]
fn fields_are_tied_across_joins_and_unions() {
    let text = r#"record A { id: int64, x: string }

record B { id: int64, x: string, y: string }

source a = csv("a.csv", schema: A)

source b = csv("b.csv", schema: B)

stream both = union(a |> select(id, x), b |> select(id, x)) |> filter(x != "")

stream joined = a |> join(b, on: id, take: [y, other: right.x])

stream chosen = joined |> rename(why: y) |> drop(other) |> filter(why != "")

job j {}

sink {
    both |> csv("1.csv")
    chosen |> csv("2.csv")
}
"#;
    let mut s = Session::new(text);
    assert_eq!(s.references("filter(x$ !="), ["0:x", "2:x", "8:x", "8:x", "8:x", "10:x"]);
    let renamed = s.rename("on: i$d", "key").expect("edits");
    assert!(renamed.contains("on: key") && renamed.matches("key: int64 = \"id\"").count() == 2, "{renamed}");
    assert_eq!(s.references("drop(oth$er)"), ["10:other", "12:other"]);
    assert_eq!(s.references("why$ != "), ["12:why", "12:why"]);
    let renamed = s.rename("rename(why: y$)", "z").expect("edits");
    assert!(renamed.contains("y: string = \"y\"") || renamed.contains("z: string = \"y\""), "{renamed}");
    assert!(renamed.contains("take: [z, other") && renamed.contains("rename(why: z)"), "{renamed}");
}

#[test]
fn names_are_followed_across_files() {
    let library = "record Order { id: int64 }\n\nconst base = 10\n\nsource orders = csv(\"o.csv\", schema: Order)\n";
    let main = "use \"lib.df\"\n\njob j {}\n\nsink orders |> filter(id > base) |> csv(\"out.csv\")\n";
    let mut s = Session::new(main);
    crate::support::write(&s.dir.path().join("lib.df"), library);
    let (lib_uri, lib_path) = (uri(&s.dir.path().join("lib.df")), s.dir.path().join("lib.df"));
    s.client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": lib_uri, "type": 1 }] }));
    s.client.wait_for(&s.uri.clone(), |list| *list == json!([]));
    assert_eq!(s.definition("id > ba$se"), ["2:base"]);
    assert_eq!(s.definition("use \"li$b.df\""), ["0:"]);
    assert_eq!(s.references("sink ord$ers"), ["4:orders", "4:orders"]);
    let edit = s.ask("rename", "filter(i$d", json!({ "newName": "number" })).expect("edits");
    assert_eq!(edited(main, &edit["changes"][&s.uri]), main.replace("filter(id", "filter(number"));
    let renamed = edited(&read(&lib_path), &edit["changes"][&lib_uri]);
    assert_eq!(renamed, library.replace("{ id: int64", "{ number: int64 = \"id\""));
    // From the library, its user is found.
    s.client.open(&lib_uri, library);
    let at = position(library, library.find("base").expect("it is there"));
    let ask = json!({ "textDocument": { "uri": lib_uri }, "position": at, "context": { "includeDeclaration": false } });
    let found = s.client.request("textDocument/references", ask).expect("an answer");
    assert_eq!(found.as_array().map(Vec::len), Some(1));
    assert_eq!(found[0]["uri"], s.uri);
    // A version is named where the client can take one.
    let caps = json!({ "capabilities": { "workspace": { "workspaceEdit": { "documentChanges": true } } } });
    let mut s = Session::with(main.trim_start_matches("use \"lib.df\"\n\n"), caps);
    let edit = s.ask("rename", "job j$", json!({ "newName": "k" })).expect("edits");
    assert_eq!(edit["documentChanges"][0]["textDocument"]["version"], 1);
}

/// Whoever uses a library is followed, from whichever file the question comes.
#[test]
fn names_are_followed_into_every_program_that_knows_them() {
    let library = "record Order { id: int64 }\n\nsource orders = csv(\"o.csv\", schema: Order)\n\nstream paid = orders |> filter(id > 1)\n";
    let main = "use \"lib.df\"\n\njob j {}\n\nsink paid |> csv(\"out.csv\")\n";
    let mut s = Session::new(main);
    let other = s.dir.path().join("other.df");
    crate::support::write(&s.dir.path().join("lib.df"), library);
    crate::support::write(&other, &main.replace("out.csv", "other.csv"));
    let changed = json!({ "changes": [{ "uri": uri(&s.dir.path().join("lib.df")), "type": 1 }] });
    s.client.notify("workspace/didChangeWatchedFiles", changed);
    s.client.open(&uri(&other), &read(&other));
    s.client.wait_for(&s.uri.clone(), |list| *list == json!([]));
    let edit = s.ask("rename", "sink pai$d", json!({ "newName": "settled" })).expect("edits");
    for file in [&s.uri, &uri(&other)] {
        assert_eq!(edit["changes"][file].as_array().map(Vec::len), Some(1), "{file}: {edit}");
    }
    assert_eq!(s.references("sink pai$d").len(), 3);
}

/// A name that would come to mean something else, or hide something, is refused although the program would still be sound.
#[test]
fn a_name_that_would_change_the_meaning_is_refused() {
    let text = "job j {}\n\nrecord R { id: int64, x: int64, note: string }\n\nconst c = 10\n\nfn f(a: int64) = a * c\n\n\
                source r = csv(\"r.csv\", schema: R)\n\nsink r |> derive(y: f(x)) |> csv(\"out.csv\")\n";
    let mut s = Session::new(text);
    for (part, new, word) in [
        ("fn f(a$: int64)", "c", "something else is called `c`"),
        ("const c$ =", "a", "`a`"),
        ("int64, x$: int64", "y", "`y`"),
        ("derive(y$:", "note", "`note`"),
    ] {
        let error = s.rename(part, new).expect_err(part);
        assert!(error.contains(word), "{part}: {error}");
    }
    let broken = format!("{text}\nstream late = r |> filter(x > \n");
    s.client.replace(&s.uri, &broken);
    s.text = broken;
    let error = s.rename("int64, x$: int64", "z").expect_err("an unfinished line");
    assert!(error.contains("also stands in line 13"), "{error}");
}

#[test]
fn symbols_fold_and_select() {
    let mut s = Session::new(TEXT);
    let symbols = s.of_file("documentSymbol");
    let names: Vec<&str> = symbols.as_array().expect("a list").iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(names, ["nightly", "Order", "least", "orders", "paid", "net", "by_status", "sink csv"]);
    assert_eq!(symbols[1]["children"].as_array().map(Vec::len), Some(3));
    let folds = s.of_file("foldingRange");
    let lines: Vec<(u64, u64)> = folds
        .as_array()
        .expect("a list")
        .iter()
        .map(|fold| (fold["startLine"].as_u64().expect("a line"), fold["endLine"].as_u64().expect("a line")))
        .collect();
    assert!(lines.contains(&(3, 7)), "the record: {lines:?}");
    assert!(lines.contains(&(16, 18)), "a stream: {lines:?}");
    let ask = json!({ "textDocument": { "uri": s.uri }, "positions": [s.at("sum(n$et)")] });
    let mut range = s.client.request("textDocument/selectionRange", ask).expect("an answer")[0].clone();
    let mut around = Vec::new();
    while range.is_object() {
        let part = &TEXT[offset(TEXT, &range["range"]["start"])..offset(TEXT, &range["range"]["end"])];
        around.push(part.lines().next().unwrap_or_default().to_owned());
        range = range["parent"].clone();
    }
    let wanted = ["net", "sum(net)", "total: sum(net)", "by: [status], total: sum(net), notes: count(note)"];
    assert_eq!(around[..4], wanted);
    assert_eq!(around.last().map(String::as_str), Some("job nightly {}"));
    let found = s.client.request("workspace/symbol", json!({ "query": "bst" })).expect("an answer");
    assert_eq!(found[0]["name"], "by_status");
}

#[test]
fn semantic_tokens_say_what_words_are() {
    let mut s = Session::new(TEXT);
    let id = s.client.send("initialize", json!({}));
    assert!(s.client.answer(id).is_err());
    let tokens = s.of_file("semanticTokens/full");
    let data: Vec<u64> = tokens["data"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    let legend = legend();
    let (mut line, mut column) = (0, 0);
    let mut seen = Vec::new();
    for token in data.chunks(5) {
        let [lines, columns, length, class, _] = token else { panic!("five numbers a token") };
        column = if *lines > 0 { *columns } else { column + columns };
        line += lines;
        let at = offset(TEXT, &json!({ "line": line, "character": column }));
        let word: String = TEXT[at..].chars().take(*length as usize).collect();
        seen.push((word, legend[*class as usize].as_str()));
    }
    for (word, class) in [
        ("job", "keyword"),
        ("nightly", "namespace"),
        ("Order", "struct"),
        ("int64", "type"),
        ("price", "property"),
        ("orders", "variable"),
        ("csv", "method"),
        ("filter", "method"),
        ("least", "parameter"),
        ("sum", "macro"),
        ("\"paid\"", "string"),
        ("2", "number"),
        ("|>", "operator"),
        ("and", "keyword"),
        ("/// What is sold.", "comment"),
    ] {
        assert!(seen.iter().any(|(w, c)| w == word && *c == class), "{word} should be {class}: {seen:?}");
    }
    // The names inside a format string are names, the rest is text.
    assert!(seen.iter().any(|(w, c)| w == "f\"{" && *c == "string"), "{seen:?}");
}

/// The names of the token classes, as the server declares them.
fn legend() -> Vec<String> {
    let dir = folder(&[]);
    let mut client = Client::silent(dir.path());
    let result = client.request("initialize", json!({ "capabilities": {} })).expect("the agreement");
    let types = &result["capabilities"]["semanticTokensProvider"]["legend"]["tokenTypes"];
    types.as_array().expect("a list").iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn completion_knows_the_fields_at_this_point() {
    let (text, _) = marked(&TEXT.replace("sum(net)", "sum($0)"));
    let mut s = Session::new(&text);
    let labels = s.labels("sum($)");
    assert!(labels.contains(&"net".to_owned()) && !labels.contains(&"price".to_owned()), "{labels:?}");
    let labels = s.labels("    |> $aggregate");
    assert!(labels.contains(&"filter".to_owned()) && !labels.contains(&"postgres".to_owned()), "{labels:?}");
    // What was written is replaced, not repeated.
    let items = s.ask("completion", "filter(sta$tus", json!({})).expect("an answer");
    let item = items.as_array().expect("a list").iter().find(|i| i["label"] == "status").expect("the field").clone();
    assert_eq!(item["textEdit"]["newText"], "status");
    let range = &item["textEdit"]["range"];
    assert_eq!(&text[offset(&text, &range["start"])..offset(&text, &range["end"])], "status");
}

#[test]
fn hover_signatures_hints_and_lenses() {
    let mut s = Session::new(TEXT);
    let hover = s.ask("hover", "stream n$et", json!({})).expect("an answer");
    let words = hover["contents"]["value"].as_str().expect("a text");
    assert!(words.contains("note") && words.contains("decimal"), "{words}");
    let help = s.ask("signatureHelp", "csv(\"o$rders.csv\"", json!({})).expect("an answer");
    let label = help["signatures"][0]["label"].as_str().expect("a label");
    assert!(label.contains("path"), "{label}");
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let ask = json!({ "textDocument": { "uri": s.uri }, "range": whole });
    let hints = s.client.request("textDocument/inlayHint", ask).expect("an answer");
    let shown: Vec<&str> = hints.as_array().expect("a list").iter().filter_map(|h| h["label"].as_str()).collect();
    assert!(shown.iter().any(|hint| hint.contains("net")), "{shown:?}");
    let lenses = s.of_file("codeLens");
    let commands: Vec<&str> =
        lenses.as_array().expect("a list").iter().filter_map(|lens| lens["command"]["command"].as_str()).collect();
    assert_eq!(commands, ["dfc.check", "dfc.run", "dfc.plan"]);
}

#[test]
fn a_mistake_is_mended_by_its_quick_fix() {
    let text = TEXT.replace("filter(status", "filter(statos");
    let mut s = Session::new(&text);
    let found = s.client.findings(&s.uri);
    assert_eq!(found.len(), 1, "{found:?}");
    let context = json!({ "diagnostics": found, "only": ["quickfix"] });
    let ask = json!({ "textDocument": { "uri": s.uri }, "range": found[0]["range"], "context": context });
    let actions = s.client.request("textDocument/codeAction", ask).expect("an answer");
    let action = &actions[0];
    assert_eq!(action["kind"], "quickfix");
    assert_eq!(action["diagnostics"][0]["code"], found[0]["code"]);
    assert_eq!(edited(&text, &action["edit"]["changes"][&s.uri]), TEXT);
}

#[test]
fn commands_check_run_plan_and_tell_the_way() {
    let data = "id,status,price\n1,paid,2.00\n2,open,3.00\n";
    let mut s = Session::new(TEXT);
    crate::support::write(&s.dir.path().join("orders.csv"), data);
    let uri = s.uri.clone();
    let run = |s: &mut Session, command: &str, more: &[Value]| {
        let arguments: Vec<Value> = std::iter::once(json!(uri)).chain(more.iter().cloned()).collect();
        s.client.request("workspace/executeCommand", json!({ "command": command, "arguments": arguments }))
    };
    assert_eq!(run(&mut s, "dfc.check", &[]).expect("checked")["errors"], 0);
    assert!(run(&mut s, "dfc.plan", &[]).expect("a plan").as_str().is_some_and(|plan| plan.contains("csv")));
    let ran = run(&mut s, "dfc.run", &[]).expect("a run");
    assert_eq!(ran["code"], 0, "{ran}");
    assert_eq!(read(&s.dir.path().join("out.csv")).lines().count(), 2);
    let at = s.at("to$tal: sum");
    let way = run(&mut s, "dfc.lineage", &[at]).expect("a way");
    assert_eq!(way[0]["field"], "total");
    assert!(way[0]["text"].as_str().is_some_and(|text| text.contains("price")), "{way}");
    assert_eq!(run(&mut s, "dfc.fly", &[]).expect_err("no such command")["code"], -32803);
    let bad = s.client.request("workspace/executeCommand", json!({ "command": "dfc.check", "arguments": [] }));
    assert_eq!(bad.expect_err("no file")["code"], -32602);
    assert_eq!(s.client.leave(), Some(0));
}

#[test]
fn every_answer_at_every_word_of_the_examples() {
    let mut client = Client::start(&root().join("examples"), json!({}));
    let methods = ["hover", "definition", "references", "documentHighlight", "signatureHelp", "completion"];
    for file in crate::support::files_below(&root().join("examples")) {
        if file.extension().is_none_or(|e| e != "df") {
            continue;
        }
        let file = root().join("examples").join(file);
        let (uri, text) = (uri(&file), read(&file));
        client.open(&uri, &text);
        let mut asked = Vec::new();
        for (at, _) in text.char_indices().step_by(17) {
            for method in methods {
                let params = json!({
                    "textDocument": { "uri": uri },
                    "position": position(&text, at),
                    "context": { "includeDeclaration": true, "triggerKind": 1, "isRetrigger": false },
                });
                asked.push(client.send(&format!("textDocument/{method}"), params));
            }
        }
        for id in asked {
            client.answer(id).unwrap_or_else(|error| panic!("{}: {error}", Path::new(&uri).display()));
        }
    }
    assert_eq!(client.leave(), Some(0));
}
