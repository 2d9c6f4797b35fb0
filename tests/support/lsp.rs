//! A client of the language server: the real binary over its pipes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server and what it has said.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    next: i64,
    /// Notifications and requests of the server, in order, not looked at yet.
    pub said: Vec<Value>,
    /// Answers that came before they were waited for.
    answered: HashMap<i64, Value>,
    /// The findings pushed last, by URI.
    pub pushed: HashMap<String, Value>,
    versions: HashMap<String, i64>,
}

impl Client {
    /// Starts a server and makes the agreement with it: `options` are merged into the parameters of `initialize`.
    pub fn start(folder: &Path, options: Value) -> Client {
        Client::start_with(folder, options, &[])
    }

    /// The same, in an environment with these variables.
    pub fn start_with(folder: &Path, options: Value, variables: &[(&str, &str)]) -> Client {
        let mut client = Client::silent_with(folder, variables);
        let mut params = json!({
            "processId": null,
            "rootUri": uri(folder),
            "workspaceFolders": [{ "uri": uri(folder), "name": "test" }],
            "capabilities": {
                "general": { "positionEncodings": ["utf-16"] },
                "textDocument": {
                    "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
                    "completion": { "completionItem": { "snippetSupport": true } },
                },
            },
        });
        merge(&mut params, options);
        client.request("initialize", params).expect("the server agrees");
        client.notify("initialized", json!({}));
        client
    }

    /// Starts a server and says nothing.
    pub fn silent(folder: &Path) -> Client {
        Client::silent_with(folder, &[])
    }

    fn silent_with(folder: &Path, variables: &[(&str, &str)]) -> Client {
        let mut child = super::binary()
            .arg("lsp")
            .envs(variables.iter().copied())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server starts");
        let input = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let (to, output) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut stdout) {
                if to.send(message).is_err() {
                    break;
                }
            }
        });
        Client {
            child,
            input,
            output,
            next: 0,
            said: Vec::new(),
            answered: HashMap::new(),
            pushed: HashMap::new(),
            versions: HashMap::new(),
        }
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).expect("the server reads");
        input.flush().expect("the server reads");
    }

    /// Sends a text in a frame.
    pub fn framed(&mut self, body: &str) {
        self.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.framed(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request, and does not wait.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.framed(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let message = match self.answered.remove(&id) {
            Some(message) => message,
            None => self.wait(|message| message["id"] == json!(id) && message.get("method").is_none()),
        };
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The next message that fits; what comes before it is kept.
    pub fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let message = match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("the server has not said it in time; it said {:?}", self.said),
                Err(RecvTimeoutError::Disconnected) => panic!("the server has ended; it said {:?}", self.said),
            };
            if message["method"] == "textDocument/publishDiagnostics" {
                let uri = message["params"]["uri"].as_str().expect("a URI").to_owned();
                self.pushed.insert(uri, message["params"].clone());
            }
            if fits(&message) {
                return message;
            }
            match message["id"].as_i64() {
                Some(id) if message.get("method").is_none() => drop(self.answered.insert(id, message)),
                _ => self.said.push(message),
            }
        }
    }

    /// Opens a document.
    pub fn open(&mut self, uri: &str, text: &str) {
        self.versions.insert(uri.to_owned(), 1);
        let item = json!({ "uri": uri, "languageId": "df", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": item }));
    }

    /// Changes a document: each change is a range and a text, or a text alone.
    pub fn change(&mut self, uri: &str, changes: Value) {
        let version = self.versions.entry(uri.to_owned()).or_insert(1);
        *version += 1;
        let document = json!({ "uri": uri, "version": version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// The whole text of a document, new.
    pub fn replace(&mut self, uri: &str, text: &str) {
        self.change(uri, json!([{ "text": text }]));
    }

    /// Waits for the findings on the present version of a document.
    pub fn findings(&mut self, uri: &str) -> Vec<Value> {
        let version = json!(self.versions.get(uri));
        if self.pushed.get(uri).is_none_or(|pushed| pushed["version"] != version) {
            self.wait(|message| {
                message["method"] == "textDocument/publishDiagnostics"
                    && message["params"]["uri"] == uri
                    && message["params"]["version"] == version
            });
        }
        self.pushed[uri]["diagnostics"].as_array().expect("a list").clone()
    }

    /// Waits until the findings pushed last on a file fit.
    pub fn wait_for(&mut self, uri: &str, fits: impl Fn(&Value) -> bool) {
        if self.pushed.get(uri).is_some_and(|pushed| fits(&pushed["diagnostics"])) {
            return;
        }
        self.wait(|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && fits(&message["params"]["diagnostics"])
        });
    }

    /// Takes leave; gives the exit code.
    pub fn leave(mut self) -> Option<i32> {
        self.request("shutdown", Value::Null).expect("the server takes leave");
        self.notify("exit", Value::Null);
        self.end()
    }

    /// Closes the input and waits for the end; gives the exit code.
    pub fn end(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().expect("the server ends").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that fails leaves it running otherwise.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => {
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.parse().ok()?;
                }
            }
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

/// The URI of a path.
pub fn uri(path: &Path) -> String {
    let mut out = String::from("file://");
    for byte in path.to_str().expect("a path in UTF-8").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte as char),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The path of a URI.
pub fn path(uri: &str) -> PathBuf {
    let text = uri.strip_prefix("file://").expect("a file's URI");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let hex = std::str::from_utf8(&rest[..2]).expect("hexadecimal digits");
            bytes.push(u8::from_str_radix(hex, 16).expect("hexadecimal digits"));
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    PathBuf::from(String::from_utf8(bytes).expect("a path in UTF-8"))
}

/// Takes the marker `$0` out of a text; gives its position, in UTF-16.
pub fn marked(text: &str) -> (String, Value) {
    let at = text.find("$0").expect("a marker");
    (text.replacen("$0", "", 1), position(text, at))
}

/// The position of a byte of a text, in UTF-16.
pub fn position(text: &str, at: usize) -> Value {
    let line = text[..at].matches('\n').count();
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    json!({ "line": line, "character": text[start..at].encode_utf16().count() })
}

/// The byte of a position of a text, in UTF-16.
pub fn offset(text: &str, position: &Value) -> usize {
    let number = |name: &str| position[name].as_u64().expect("a number") as usize;
    let start: usize = text.split_inclusive('\n').take(number("line")).map(str::len).sum();
    let mut units = 0;
    for (at, c) in text[start..].char_indices() {
        if units >= number("character") {
            return start + at;
        }
        units += c.len_utf16();
    }
    text.len()
}

/// A text with edits of the protocol made in it.
pub fn edited(text: &str, edits: &Value) -> String {
    let mut edits: Vec<(usize, usize, &str)> = edits
        .as_array()
        .expect("a list of edits")
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            (offset(text, &range["start"]), offset(text, &range["end"]), edit["newText"].as_str().expect("a text"))
        })
        .collect();
    edits.sort();
    let mut out = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        out.replace_range(start..end, new);
    }
    out
}
