//! A client of the language server with one open file: its questions name places by the text around them, with a `$` in it.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::lsp::{Client, edited, offset, path, position, uri};
use super::{folder, read};

/// A server with one open file.
pub struct Session {
    pub client: Client,
    pub dir: TempDir,
    pub uri: String,
    pub text: String,
}

impl Session {
    /// A server with this text open.
    pub fn new(text: &str) -> Session {
        Session::with(text, json!({}))
    }

    /// The same, with options merged into the parameters of `initialize`.
    pub fn with(text: &str, options: Value) -> Session {
        let dir = folder(&[("main.df", text)]);
        let mut client = Client::start(dir.path(), options);
        let uri = uri(&dir.path().join("main.df"));
        client.open(&uri, text);
        Session { client, dir, uri, text: text.to_owned() }
    }

    /// A place: that of `$` in a part of the text.
    pub fn at(&self, part: &str) -> Value {
        let before = part.find('$').expect("a marker");
        let start = self.text.find(&part.replace('$', "")).unwrap_or_else(|| panic!("{part} is not in the text"));
        position(&self.text, start + before)
    }

    /// Asks about a place: that of `$` in a part of the text.
    pub fn ask(&mut self, method: &str, part: &str, more: Value) -> Result<Value, Value> {
        let mut params = json!({ "textDocument": { "uri": self.uri }, "position": self.at(part) });
        if let (Value::Object(into), Value::Object(from)) = (&mut params, more) {
            into.extend(from);
        }
        self.client.request(&format!("textDocument/{method}"), params)
    }

    /// Asks about the whole file.
    pub fn of_file(&mut self, method: &str) -> Value {
        let params = json!({ "textDocument": { "uri": self.uri } });
        self.client.request(&format!("textDocument/{method}"), params).expect("an answer")
    }

    /// The lines that locations point at, with what stands there.
    pub fn places(&self, locations: &Value) -> Vec<String> {
        let list = locations.as_array().cloned().unwrap_or_default();
        let mut places: Vec<String> = list
            .iter()
            .map(|location| {
                let file = path(location["uri"].as_str().expect("a URI"));
                let text = if location["uri"] == self.uri { self.text.clone() } else { read(&file) };
                let range = &location["range"];
                let what = &text[offset(&text, &range["start"])..offset(&text, &range["end"])];
                format!("{}:{what}", range["start"]["line"])
            })
            .collect();
        places.sort_by_key(|place| place.split(':').next().and_then(|line| line.parse::<u32>().ok()));
        places
    }

    /// Where the name at a place is declared.
    pub fn definition(&mut self, part: &str) -> Vec<String> {
        let found = self.ask("definition", part, json!({})).expect("an answer");
        self.places(&found)
    }

    /// Where the name at a place stands.
    pub fn references(&mut self, part: &str) -> Vec<String> {
        let context = json!({ "context": { "includeDeclaration": true } });
        let found = self.ask("references", part, context).expect("an answer");
        self.places(&found)
    }

    /// The text after the name at a place is changed, or why it can't be.
    pub fn rename(&mut self, part: &str, new: &str) -> Result<String, String> {
        let edit = self.ask("rename", part, json!({ "newName": new }));
        let edit = edit.map_err(|error| error["message"].as_str().expect("a message").to_owned())?;
        let edits = edit["changes"].get(&self.uri).cloned().unwrap_or(json!([]));
        Ok(edited(&self.text, &edits))
    }

    /// What is offered at a place.
    pub fn labels(&mut self, part: &str) -> Vec<String> {
        let items = self.ask("completion", part, json!({})).expect("an answer");
        let items = items.as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item["label"].as_str()).map(str::to_owned).collect()
    }

    /// The fields offered at a place.
    pub fn fields(&mut self, part: &str) -> Vec<String> {
        self.of_kind(part, 5)
    }

    /// What is offered at a place of one of the protocol's kinds.
    pub fn of_kind(&mut self, part: &str, kind: u64) -> Vec<String> {
        let items = self.ask("completion", part, json!({})).expect("an answer");
        let items = items.as_array().cloned().unwrap_or_default();
        let fit = items.iter().filter(|item| item["kind"] == json!(kind));
        fit.filter_map(|item| item["label"].as_str()).map(str::to_owned).collect()
    }

    /// What is shown of a place.
    pub fn hover(&mut self, part: &str) -> String {
        let hover = self.ask("hover", part, json!({})).expect("an answer");
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    /// The hints of the file: each with its line.
    pub fn hints(&mut self) -> Vec<(u64, String)> {
        let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9999, "character": 0 } });
        let ask = json!({ "textDocument": { "uri": self.uri }, "range": whole });
        let hints = self.client.request("textDocument/inlayHint", ask).expect("an answer");
        let shown = hints.as_array().expect("a list").iter().map(|hint| {
            let line = hint["position"]["line"].as_u64().expect("a line");
            (line, hint["label"].as_str().expect("a text").to_owned())
        });
        shown.collect()
    }

    /// Changes the text.
    pub fn replace(&mut self, text: &str) {
        self.text = text.to_owned();
        self.client.replace(&self.uri, text);
    }

    /// The text after the action whose title starts so, offered between two places; it stays the document's.
    pub fn act(&mut self, from: &str, to: &str, title: &str) -> String {
        let range = json!({ "start": self.at(from), "end": self.at(to) });
        let ask = json!({ "textDocument": { "uri": self.uri }, "range": range, "context": { "diagnostics": [] } });
        let actions = self.client.request("textDocument/codeAction", ask).expect("an answer");
        let actions = actions.as_array().expect("a list");
        let found = actions.iter().find(|action| action["title"].as_str().is_some_and(|t| t.starts_with(title)));
        let action = found.unwrap_or_else(|| panic!("no {title:?} among {actions:#?}"));
        let text = edited(&self.text, &action["edit"]["changes"][&self.uri]);
        self.replace(&text);
        text
    }

    /// The codes of what is found in the present text.
    pub fn codes(&mut self) -> Vec<String> {
        let found = self.client.findings(&self.uri);
        found.iter().map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
    }
}
