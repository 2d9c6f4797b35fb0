//! The server's loop: one thread owns the compiler and the documents, others answer from snapshots.
//!
//! Notifications are taken in order, here. A request gets a snapshot and goes to the threads. An edit stops what runs on
//! older snapshots; a request that was stopped so is asked again if its own document is the same, and otherwise answered
//! with "content modified". Findings are computed after all messages that have come are taken in, on a thread of their
//! own, so that a burst of keystrokes is checked once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use dfc_compiler::Compiler;
use dfc_compiler::editor::{Stopped, Stopper, ask};
use ls_types::notification::*;
use ls_types::request::{
    ExecuteCommand, Initialize, InlayHintRefreshRequest, RegisterCapability, Request as _, Shutdown,
    WorkspaceDiagnosticRefresh,
};
use ls_types::*;
use lsp_server::{Message, Request, RequestId, Response, ResponseError};
use serde_json::{Value, json};

use crate::capabilities::capabilities;
use crate::client::{self, Client};
use crate::commands;
use crate::documents::{Documents, path_of, uri_of};
use crate::features;
use crate::findings::{self, FileFindings};
use crate::pool::Pool;
use crate::snapshot::{Failure, Snapshot};
use crate::transport::{Incoming, Outgoing};
use crate::workspace;

/// Threads that answer requests, beside the one for findings.
const THREADS: usize = 2;

/// Errors of the protocol.
mod code {
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL: i32 = -32603;
    pub const NOT_INITIALIZED: i32 = -32002;
    pub const REQUEST_FAILED: i32 = -32803;
    pub const SERVER_CANCELLED: i32 = -32802;
    pub const CONTENT_MODIFIED: i32 = -32801;
    pub const REQUEST_CANCELLED: i32 = -32800;
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As the protocol wants: `shutdown`, then `exit` or the end of the input.
    Properly,
    /// Without `shutdown`.
    Abruptly,
}

/// What the threads report.
enum Event {
    /// A request was worked on: with its answer.
    Done(RequestId, Result<Value, Failure>),
    /// The findings of a generation on one file, as far as they don't wait for other files.
    Own(u64, PathBuf, FileFindings),
    /// The findings of a generation.
    Findings(u64, Result<BTreeMap<PathBuf, FileFindings>, Stopped>),
    /// The pipeline files below the folders.
    Known(Vec<PathBuf>),
}

/// A request that is being answered.
struct Running {
    request: Request,
    stopper: Option<Stopper>,
    /// The version of its document when it came.
    version: Option<i32>,
    cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    ShutDown,
}

/// A server with one client.
pub struct Server {
    state: State,
    out: Sender<Outgoing>,
    compiler: Compiler,
    client: Arc<Client>,
    documents: Arc<Documents>,
    folders: Vec<PathBuf>,
    /// The pipeline files below the folders.
    found: Vec<PathBuf>,
    /// Those and the open ones.
    known: Arc<Vec<PathBuf>>,
    running: HashMap<RequestId, Running>,
    /// What was pushed last, by file.
    shown: BTreeMap<PathBuf, FileFindings>,
    /// Whether something has changed since findings were asked for.
    stale: bool,
    /// The documents that were changed since then.
    edited: BTreeSet<PathBuf>,
    /// Whether the client has asked for the findings of the workspace: those on files that aren't open are pushed no more.
    pulls_workspace: bool,
    /// Counts what was asked for: older findings are thrown away.
    generation: u64,
    sent: i32,
    events: Sender<Event>,
    reports: Receiver<Event>,
    answering: Pool,
    checking: Pool,
}

impl Server {
    /// A server that writes to `out`.
    ///
    /// # Errors
    /// When the system has no threads.
    pub fn new(out: Sender<Outgoing>, compiler: Compiler) -> std::io::Result<Server> {
        let (events, reports) = unbounded();
        Ok(Server {
            state: State::New,
            out,
            compiler,
            client: Arc::new(Client::new(&InitializeParams::default())),
            documents: Arc::default(),
            folders: Vec::new(),
            found: Vec::new(),
            known: Arc::default(),
            running: HashMap::new(),
            shown: BTreeMap::new(),
            stale: false,
            edited: BTreeSet::new(),
            pulls_workspace: false,
            generation: 0,
            sent: 0,
            events,
            reports,
            answering: Pool::new("answers", THREADS)?,
            checking: Pool::new("findings", 1)?,
        })
    }

    /// Serves until the client says `exit` or its messages end.
    pub fn run(mut self, incoming: &Receiver<Incoming>) -> Ended {
        let reports = self.reports.clone();
        loop {
            select! {
                recv(incoming) -> message => match message {
                    Ok(message) => if self.take(message) { break },
                    Err(_) => break,
                },
                recv(reports) -> event => if let Ok(event) = event { self.report(event) },
            }
            // Everything that has come already is taken in before anything is computed.
            let mut ended = false;
            while let Ok(message) = incoming.try_recv() {
                ended = self.take(message);
                if ended {
                    break;
                }
            }
            if ended {
                break;
            }
            if std::mem::take(&mut self.stale) {
                self.check();
            }
        }
        for running in self.running.values() {
            if let Some(stopper) = &running.stopper {
                stopper.stop();
            }
        }
        if self.state == State::ShutDown { Ended::Properly } else { Ended::Abruptly }
    }

    /// Takes a message in; `true` at the end.
    fn take(&mut self, incoming: Incoming) -> bool {
        match incoming {
            Incoming::Refused(answer) => self.send(Outgoing::Refusal(answer)),
            Incoming::Message(Message::Request(request)) => self.request(request),
            Incoming::Message(Message::Notification(notification)) => {
                if notification.method == Exit::METHOD {
                    return true;
                }
                if self.state == State::Open {
                    let method = notification.method.clone();
                    if let Err(error) = self.notification(notification) {
                        self.note(MessageType::WARNING, format!("`{method}`: {error}"));
                    }
                }
            }
            // Nothing that is asked of the client has an answer that matters.
            Incoming::Message(Message::Response(_)) => {}
        }
        false
    }

    // --- requests ---

    fn request(&mut self, request: Request) {
        match (self.state, request.method.as_str()) {
            (State::New, Initialize::METHOD) => self.initialize(request),
            (State::New, method) => {
                let words = format!("`{method}` comes before `initialize`");
                self.refuse(request.id, code::NOT_INITIALIZED, words);
            }
            (State::Open, Initialize::METHOD) => {
                self.refuse(request.id, code::INVALID_REQUEST, "`initialize` comes once".to_owned());
            }
            (State::Open, Shutdown::METHOD) => {
                self.state = State::ShutDown;
                self.answer(Response::new_ok(request.id, Value::Null));
            }
            (State::Open, _) => self.dispatch(request),
            (State::ShutDown, method) => {
                let words = format!("`{method}` comes after `shutdown`");
                self.refuse(request.id, code::INVALID_REQUEST, words);
            }
        }
    }

    fn initialize(&mut self, request: Request) {
        let params: InitializeParams = match serde_json::from_value(request.params) {
            Ok(params) => params,
            Err(error) => {
                self.refuse(request.id, code::INVALID_PARAMS, format!("`initialize`: {error}"));
                return;
            }
        };
        self.client = Arc::new(Client::new(&params));
        self.folders = folders(&params);
        if let Some(values) = client::params(params.initialization_options.as_ref()) {
            self.compiler.set_params(values);
        }
        self.state = State::Open;
        let result = json!({
            "capabilities": capabilities(&self.client),
            "serverInfo": { "name": "dfc", "version": env!("CARGO_PKG_VERSION") },
        });
        self.answer(Response::new_ok(request.id, result));
        self.look();
    }

    /// Gives a request to the threads.
    fn dispatch(&mut self, request: Request) {
        if self.running.contains_key(&request.id) {
            self.refuse(request.id, code::INVALID_REQUEST, "a request of this id is being answered".to_owned());
            return;
        }
        let Some(handler) = features::handler(&request.method) else {
            let words = format!("there is no method `{}`", request.method);
            self.refuse(request.id, code::METHOD_NOT_FOUND, words);
            return;
        };
        let (id, params, events) = (request.id.clone(), request.params.clone(), self.events.clone());
        let version = self.version_of(&params);
        if let Some(params) = running_command(&request) {
            // It takes its time, and must not hold a snapshot.
            let done = id.clone();
            let run = move || drop(events.send(Event::Done(done, commands::run(&params))));
            if std::thread::Builder::new().name("command".to_owned()).spawn(run).is_err() {
                self.refuse(id, code::INTERNAL, "the system has no threads left".to_owned());
                return;
            }
            self.running.insert(id, Running { request, stopper: None, version, cancelled: false });
            return;
        }
        let snapshot = self.snapshot();
        let stopper = snapshot.compiler.stopper();
        let done = id.clone();
        // What takes long must not stand in the way of what somebody waits for.
        let whole = request.method == request::WorkspaceDiagnosticRequest::METHOD;
        if whole && self.client.pulls && !std::mem::replace(&mut self.pulls_workspace, true) {
            self.take_back();
        }
        let pool = if whole { &self.checking } else { &self.answering };
        pool.spawn(move || {
            let answer = ask(|| handler(&snapshot, params)).unwrap_or_else(|stopped| Err(Failure::Stopped(stopped)));
            drop(snapshot);
            drop(events.send(Event::Done(done, answer)));
        });
        self.running.insert(id, Running { request, stopper: Some(stopper), version, cancelled: false });
    }

    fn done(&mut self, id: RequestId, answer: Result<Value, Failure>) {
        let Some(running) = self.running.remove(&id) else { return };
        if running.cancelled {
            self.refuse(id, code::REQUEST_CANCELLED, "cancelled".to_owned());
            return;
        }
        let method = &running.request.method;
        match answer {
            Ok(value) => self.answer(Response::new_ok(id, value)),
            Err(Failure::Refused(words)) => self.refuse(id, code::REQUEST_FAILED, words),
            Err(Failure::Parameters(words)) => self.refuse(id, code::INVALID_PARAMS, format!("`{method}`: {words}")),
            Err(Failure::Stopped(Stopped::Asked)) => self.refuse(id, code::REQUEST_CANCELLED, "cancelled".to_owned()),
            Err(Failure::Stopped(Stopped::Changed)) => {
                if self.version_of(&running.request.params) == running.version {
                    self.dispatch(running.request);
                } else if method == request::DocumentDiagnosticRequest::METHOD {
                    let error = ResponseError {
                        code: code::SERVER_CANCELLED,
                        message: "the content was changed".to_owned(),
                        data: Some(json!({ "retriggerRequest": true })),
                    };
                    self.answer(Response { id, response_result: Err(error) });
                } else {
                    self.refuse(id, code::CONTENT_MODIFIED, "the content was changed".to_owned());
                }
            }
            Err(Failure::Stopped(Stopped::Panicked(words))) => {
                let message = format!("`{method}` failed inside dfc; please report it: {words}");
                self.note(MessageType::ERROR, message.clone());
                self.refuse(id, code::INTERNAL, message);
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            compiler: self.compiler.snapshot(),
            documents: self.documents.clone(),
            known: self.known.clone(),
            client: self.client.clone(),
            out: self.out.clone(),
        }
    }

    /// The version of the document that a request asks about.
    fn version_of(&self, params: &Value) -> Option<i32> {
        let uri = params.get("textDocument")?.get("uri")?;
        let uri: Uri = serde_json::from_value(uri.clone()).ok()?;
        self.documents.get(&uri).map(|document| document.version)
    }

    // --- notifications ---

    fn notification(&mut self, message: lsp_server::Notification) -> Result<(), serde_json::Error> {
        let lsp_server::Notification { method, params } = message;
        match method.as_str() {
            Initialized::METHOD => self.watch(),
            Cancel::METHOD => {
                let params: CancelParams = serde_json::from_value(params)?;
                let id = match params.id {
                    NumberOrString::Number(number) => RequestId::from(number),
                    NumberOrString::String(text) => RequestId::from(text),
                };
                if let Some(running) = self.running.get_mut(&id) {
                    running.cancelled = true;
                    if let Some(stopper) = &running.stopper {
                        stopper.stop();
                    }
                }
            }
            DidOpenTextDocument::METHOD => {
                let item = serde_json::from_value::<DidOpenTextDocumentParams>(params)?.text_document;
                let document = Arc::make_mut(&mut self.documents).open(item.uri, item.version, item.text);
                self.compiler.set_file(&document.path, document.text.text.to_string());
                self.compiler.refresh_catalog();
                self.know();
            }
            DidChangeTextDocument::METHOD => {
                let DidChangeTextDocumentParams { text_document, content_changes } = serde_json::from_value(params)?;
                let VersionedTextDocumentIdentifier { uri, version } = text_document;
                let documents = Arc::make_mut(&mut self.documents);
                match documents.change(&uri, version, content_changes, self.client.encoding) {
                    Some(document) => {
                        self.compiler.set_file(&document.path, document.text.text.to_string());
                        self.edited.insert(document.path.clone());
                        self.stale = true;
                    }
                    None => {
                        self.note(MessageType::WARNING, format!("a change of `{}`, which is not open", uri.as_str()))
                    }
                }
            }
            DidCloseTextDocument::METHOD => {
                let uri = serde_json::from_value::<DidCloseTextDocumentParams>(params)?.text_document.uri;
                if let Some(document) = Arc::make_mut(&mut self.documents).close(&uri) {
                    self.compiler.unset_file(&document.path);
                    self.know();
                }
            }
            // Data that a source takes its fields from is not watched: that it has changed is seen now.
            DidSaveTextDocument::METHOD => self.reload(),
            DidChangeWatchedFiles::METHOD => {
                serde_json::from_value::<DidChangeWatchedFilesParams>(params)?;
                self.reload();
            }
            DidChangeWorkspaceFolders::METHOD => {
                let event = serde_json::from_value::<DidChangeWorkspaceFoldersParams>(params)?.event;
                let gone: Vec<PathBuf> = event.removed.iter().map(|folder| path_of(&folder.uri)).collect();
                self.folders.retain(|folder| !gone.contains(folder));
                self.folders.extend(event.added.iter().map(|folder| path_of(&folder.uri)));
                self.look();
            }
            DidChangeConfiguration::METHOD => {
                let settings = serde_json::from_value::<DidChangeConfigurationParams>(params)?.settings;
                if let Some(values) = client::params(Some(&settings)) {
                    self.compiler.set_params(values);
                    self.stale = true;
                }
            }
            // Others are for others; those that begin with `$/` may be passed over, and so may the rest.
            _ => {}
        }
        Ok(())
    }

    /// Reads again what is on the disk. Whoever asked for the findings on files that aren't open may ask again.
    fn reload(&mut self) {
        self.compiler.reload();
        self.compiler.refresh_catalog();
        self.stale = true;
        self.look();
        if self.client.pulls && self.client.refreshes_diagnostics {
            self.ask_client(WorkspaceDiagnosticRefresh::METHOD, Value::Null);
        }
    }

    /// Asks the client to say when pipeline files change.
    fn watch(&mut self) {
        if !self.client.watches_files {
            return;
        }
        let watchers = ["**/*.df", "**/*.df.lock"]
            .map(|glob| FileSystemWatcher { glob_pattern: GlobPattern::String(glob.to_owned()), kind: None });
        let options = DidChangeWatchedFilesRegistrationOptions { watchers: watchers.to_vec() };
        let registration = Registration {
            id: "files".to_owned(),
            method: DidChangeWatchedFiles::METHOD.to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        self.ask_client(RegisterCapability::METHOD, json!(RegistrationParams { registrations: vec![registration] }));
    }

    /// Counts the files whose programs may hold another.
    fn know(&mut self) {
        let open = self.documents.iter().map(|document| document.path.clone());
        let mut known: Vec<PathBuf> = self.found.iter().cloned().chain(open).collect();
        known.sort();
        known.dedup();
        self.known = Arc::new(known);
        self.stale = true;
    }

    /// Looks for pipeline files in the folders, on a thread.
    fn look(&self) {
        let (folders, events) = (self.folders.clone(), self.events.clone());
        self.answering.spawn(move || drop(events.send(Event::Known(workspace::pipelines(&folders)))));
    }

    // --- findings ---

    /// Has the findings computed: first those on the documents that were changed, whose author waits for them.
    fn check(&mut self) {
        self.generation += 1;
        let (snapshot, events, generation) = (self.snapshot(), self.events.clone(), self.generation);
        let edited = if self.client.pulls { BTreeSet::new() } else { std::mem::take(&mut self.edited) };
        self.checking.spawn(move || {
            for path in edited {
                let Some(version) = snapshot.documents.by_path(&path).map(|document| document.version) else {
                    continue;
                };
                // If it fails, so does the whole below, which says why.
                if let Ok(Some(list)) = ask(|| findings::own(&snapshot, &path)) {
                    let findings = FileFindings { version: Some(version), list };
                    drop(events.send(Event::Own(generation, path, findings)));
                }
            }
            let found = ask(|| findings::all(&snapshot));
            drop(events.send(Event::Findings(generation, found)));
        });
    }

    fn report(&mut self, event: Event) {
        match event {
            Event::Done(id, answer) => self.done(id, answer),
            Event::Known(files) => {
                if self.found != files {
                    self.found = files;
                    self.know();
                }
            }
            Event::Own(generation, ..) | Event::Findings(generation, _) if generation != self.generation => {}
            Event::Own(_, path, findings) => self.publish_own(path, findings),
            Event::Findings(_, Ok(found)) => self.publish(found),
            // What changed asks anew.
            Event::Findings(_, Err(Stopped::Changed | Stopped::Asked)) => {}
            Event::Findings(_, Err(Stopped::Panicked(words))) => {
                self.note(MessageType::ERROR, format!("checking failed inside dfc; please report it: {words}"));
            }
        }
    }

    /// Pushes what a changed document says by itself. What the job as a whole says stays until it is known anew.
    fn publish_own(&mut self, path: PathBuf, findings: FileFindings) {
        let before = self.shown.get(&path);
        let of_the_job = |before: &FileFindings| before.list.iter().any(findings::is_of_the_job);
        let Some(document) = self.documents.by_path(&path) else { return };
        if before == Some(&findings) || before.is_some_and(of_the_job) {
            return;
        }
        self.push(document.uri.clone(), &findings);
        self.shown.insert(path, findings);
    }

    fn push(&self, uri: Uri, findings: &FileFindings) {
        let params = PublishDiagnosticsParams { uri, diagnostics: findings.list.clone(), version: findings.version };
        let message = lsp_server::Notification::new(PublishDiagnostics::METHOD.to_owned(), params);
        self.send(Outgoing::Message(message.into()));
    }

    /// Takes back what was pushed on files that aren't open: the client asks for it from now on.
    fn take_back(&self) {
        let nothing = FileFindings { version: None, list: Vec::new() };
        let closed =
            self.shown.iter().filter(|(path, shown)| !shown.list.is_empty() && self.documents.by_path(path).is_none());
        for (path, _) in closed {
            if let Some(uri) = uri_of(path) {
                self.push(uri, &nothing);
            }
        }
    }

    /// Pushes what is new.
    fn publish(&mut self, found: BTreeMap<PathBuf, FileFindings>) {
        let nothing = FileFindings { version: None, list: Vec::new() };
        let gone: Vec<PathBuf> = self.shown.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        let mut others_changed = false;
        for (path, findings) in gone.iter().map(|path| (path, &nothing)).chain(&found) {
            let before = self.shown.get(path);
            if before == Some(findings) {
                continue;
            }
            let document = self.documents.by_path(path);
            if self.client.pulls && (document.is_some() || self.pulls_workspace) {
                // The client asks for the document that it changed itself, not for others.
                others_changed |= before.is_none_or(|b| b.version == findings.version && b.list != findings.list);
                continue;
            }
            let Some(uri) = document.map(|d| d.uri.clone()).or_else(|| uri_of(path)) else { continue };
            self.push(uri, findings);
        }
        self.shown = found;
        if others_changed && self.client.refreshes_diagnostics {
            self.ask_client(WorkspaceDiagnosticRefresh::METHOD, Value::Null);
        }
        if others_changed && self.client.refreshes_hints {
            self.ask_client(InlayHintRefreshRequest::METHOD, Value::Null);
        }
    }

    // --- sending ---

    fn send(&self, message: Outgoing) {
        // Without a client the input ends too.
        let _ = self.out.send(message);
    }

    fn answer(&self, response: Response) {
        self.send(Outgoing::Message(response.into()));
    }

    fn refuse(&self, id: RequestId, code: i32, message: String) {
        self.answer(Response::new_err(id, code, message));
    }

    fn ask_client(&mut self, method: &str, params: Value) {
        self.sent += 1;
        let request = Request { id: RequestId::from(format!("dfc-{}", self.sent)), method: method.to_owned(), params };
        self.send(Outgoing::Message(request.into()));
    }

    fn note(&self, kind: MessageType, message: String) {
        let params = LogMessageParams { typ: kind, message };
        let message = lsp_server::Notification::new(LogMessage::METHOD.to_owned(), params);
        self.send(Outgoing::Message(message.into()));
    }
}

/// The parameters of a command that outlives a snapshot.
fn running_command(request: &Request) -> Option<ExecuteCommandParams> {
    if request.method != ExecuteCommand::METHOD {
        return None;
    }
    let params: ExecuteCommandParams = serde_json::from_value(request.params.clone()).ok()?;
    (params.command == commands::RUN).then_some(params)
}

/// The folders that the client works in.
#[allow(deprecated)] // older clients send nothing else
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.as_ref().filter(|folders| !folders.is_empty());
    match (folders, &params.root_uri, &params.root_path) {
        (Some(folders), ..) => folders.iter().map(|folder| path_of(&folder.uri)).collect(),
        (None, Some(uri), _) => vec![path_of(uri)],
        (None, None, Some(path)) => vec![PathBuf::from(path)],
        (None, None, None) => Vec::new(),
    }
}
