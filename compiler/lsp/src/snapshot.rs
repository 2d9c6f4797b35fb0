//! What a request is answered from: the compiler and the documents as they are when it comes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::Sender;
use dfc_compiler::Compiler;
use dfc_compiler::editor::Stopped;
use dfc_compiler::ide::{FileEdit, FileRange, TextRange};
use ls_types::notification::{LogMessage, Notification, ShowMessage};
use ls_types::{
    DocumentChanges, Location, LogMessageParams, MessageType, OneOf, OptionalVersionedTextDocumentIdentifier, Position,
    Range, ShowMessageParams, TextDocumentEdit, TextDocumentIdentifier, TextDocumentPositionParams, TextEdit, Uri,
    WorkspaceEdit,
};

use crate::client::Client;
use crate::documents::{Documents, path_of, uri_of};
use crate::positions::Text;
use crate::transport::Outgoing;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// What was asked makes no sense; the words go to the user.
    Refused(String),
    /// The parameters are not those of the request.
    Parameters(String),
    /// It was stopped.
    Stopped(Stopped),
}

impl Failure {
    /// A refusal.
    pub fn refused(words: impl Into<String>) -> Failure {
        Failure::Refused(words.into())
    }
}

/// The state of everything at one moment. It holds a compiler's snapshot: drop it when the request is answered.
pub struct Snapshot {
    /// The compiler.
    pub compiler: Compiler,
    /// The open documents.
    pub documents: Arc<Documents>,
    /// Every pipeline file of the workspace.
    pub known: Arc<Vec<PathBuf>>,
    /// What the client can.
    pub client: Arc<Client>,
    /// Where messages go.
    pub out: Sender<Outgoing>,
}

/// A file that a request asks about.
pub struct Asked {
    /// The root from whose side it is seen.
    pub root: PathBuf,
    /// The file.
    pub file: PathBuf,
    /// Its text.
    pub text: Arc<Text>,
}

impl Snapshot {
    /// The file of a request, with its root.
    pub fn asked(&self, document: &TextDocumentIdentifier) -> Result<Asked, Failure> {
        let (file, text) = self.file(&document.uri)?;
        let root = self.compiler.roots_of(&file, &self.known).into_iter().next().unwrap_or_else(|| file.clone());
        Ok(Asked { root, file, text })
    }

    /// The place of a request: the file and the byte.
    pub fn place(&self, at: &TextDocumentPositionParams) -> Result<(Asked, usize), Failure> {
        let asked = self.asked(&at.text_document)?;
        let offset = asked.text.offset(at.position, self.client.encoding);
        Ok((asked, offset))
    }

    /// A file's path and text.
    pub fn file(&self, uri: &Uri) -> Result<(PathBuf, Arc<Text>), Failure> {
        if let Some(document) = self.documents.get(uri) {
            return Ok((document.path.clone(), document.text.clone()));
        }
        let path = path_of(uri);
        match self.compiler.text(&path) {
            Some(text) => Ok((path, Arc::new(Text::new(text)))),
            None => Err(Failure::refused(format!("`{}` is not open and can't be read", uri.as_str()))),
        }
    }

    /// The text of a file that an answer speaks of.
    pub fn text(&self, path: &Path) -> Option<Arc<Text>> {
        match self.documents.by_path(path) {
            Some(document) => Some(document.text.clone()),
            None => self.compiler.text(path).map(|text| Arc::new(Text::new(text))),
        }
    }

    /// The name of a file, as the client writes it if it is open.
    pub fn uri(&self, path: &Path) -> Option<Uri> {
        match self.documents.by_path(path) {
            Some(document) => Some(document.uri.clone()),
            None => uri_of(path),
        }
    }

    /// A range of a text, as the client counts.
    pub fn range(&self, text: &Text, range: TextRange) -> Range {
        text.range(range, self.client.encoding)
    }

    /// A position of a text, as the client counts.
    pub fn position(&self, text: &Text, offset: usize) -> Position {
        text.position(offset, self.client.encoding)
    }

    /// A place in a file.
    pub fn location(&self, place: &FileRange) -> Option<Location> {
        let text = self.text(&place.file)?;
        Some(Location { uri: self.uri(&place.file)?, range: self.range(&text, place.range) })
    }

    /// Changes of files. With versions where the client can, so that it refuses what no longer fits.
    pub fn workspace_edit(&self, edits: &[FileEdit]) -> Option<WorkspaceEdit> {
        let mut changes = Vec::new();
        for edit in edits {
            let text = self.text(&edit.file)?;
            let uri = self.uri(&edit.file)?;
            let list: Vec<TextEdit> = edit
                .edits
                .iter()
                .map(|one| TextEdit { range: self.range(&text, one.range), new_text: one.text.clone() })
                .collect();
            let version = self.documents.by_path(&edit.file).map(|document| document.version);
            changes.push((uri, version, list));
        }
        if !self.client.versioned_edits {
            let changes = changes.into_iter().map(|(uri, _, edits)| (uri, edits)).collect();
            return Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() });
        }
        let changes = changes.into_iter().map(|(uri, version, edits)| TextDocumentEdit {
            text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
            edits: edits.into_iter().map(OneOf::Left).collect(),
        });
        Some(WorkspaceEdit {
            document_changes: Some(DocumentChanges::Edits(changes.collect())),
            ..WorkspaceEdit::default()
        })
    }
}

impl Snapshot {
    /// Writes into the client's log.
    pub fn note(&self, kind: MessageType, message: String) {
        self.notify::<LogMessage>(LogMessageParams { typ: kind, message });
    }

    /// Shows a message to the user.
    pub fn show(&self, kind: MessageType, message: String) {
        self.notify::<ShowMessage>(ShowMessageParams { typ: kind, message });
    }

    fn notify<N: Notification>(&self, params: N::Params) {
        let message = lsp_server::Notification::new(N::METHOD.to_owned(), params);
        // Without a client nobody reads it.
        let _ = self.out.send(Outgoing::Message(message.into()));
    }
}
