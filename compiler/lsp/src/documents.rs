//! The documents that the client has open, and their changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;

use dfc_compiler::files::{FileSystem as _, RealFiles};
use ls_types::{TextDocumentContentChangeEvent, Uri};

use crate::positions::{Encoding, Text};

/// An open document.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its name as the client writes it.
    pub uri: Uri,
    /// Its path, as the compiler is told.
    pub path: PathBuf,
    /// The client's count of its changes.
    pub version: i32,
    /// Its text, as the client has it.
    pub text: Arc<Text>,
}

/// All open documents. A clone costs little.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    by_identity: HashMap<PathBuf, Document>,
}

impl Documents {
    /// Opens a document.
    pub fn open(&mut self, uri: Uri, version: i32, text: String) -> &Document {
        let path = path_of(&uri);
        let document = Document { uri, path: path.clone(), version, text: Arc::new(Text::new(without_mark(text))) };
        self.by_identity.entry(identity(&path)).insert_entry(document).into_mut()
    }

    /// Closes a document.
    pub fn close(&mut self, uri: &Uri) -> Option<Document> {
        self.by_identity.remove(&identity(&path_of(uri)))
    }

    /// The document of this name.
    pub fn get(&self, uri: &Uri) -> Option<&Document> {
        self.by_path(&path_of(uri))
    }

    /// The document of this path, however it is reached.
    pub fn by_path(&self, path: &Path) -> Option<&Document> {
        self.by_identity.get(path).or_else(|| self.by_identity.get(&identity(path)))
    }

    /// All documents.
    pub fn iter(&self) -> impl Iterator<Item = &Document> {
        self.by_identity.values()
    }

    /// Makes a document's changes, each in the text that the one before left. `None`: it is not open.
    pub fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> Option<&Document> {
        let document = self.by_identity.get_mut(&identity(&path_of(uri)))?;
        document.version = version;
        for change in changes {
            let text = match change.range {
                None => without_mark(change.text),
                Some(range) => {
                    let bytes = document.text.bytes(range, encoding);
                    let old = &document.text.text;
                    let mut text = String::with_capacity(old.len() + change.text.len());
                    text.push_str(&old[..bytes.start]);
                    text.push_str(&change.text);
                    text.push_str(&old[bytes.end..]);
                    text
                }
            };
            document.text = Arc::new(Text::new(text));
        }
        Some(document)
    }
}

/// One name for each file, however it is reached.
pub fn identity(path: &Path) -> PathBuf {
    RealFiles.identity(path)
}

/// The path that a document's name stands for. One that is on no disk (`untitled:…`) is its own path.
pub fn path_of(uri: &Uri) -> PathBuf {
    let file = uri.scheme().as_str().eq_ignore_ascii_case("file");
    let path = if file { uri.to_file_path() } else { None };
    path.map_or_else(|| PathBuf::from(uri.as_str()), |path| path.into_owned())
}

/// The name of a path; `None` where it can't be one.
pub fn uri_of(path: &Path) -> Option<Uri> {
    if path.is_absolute() { Uri::from_file_path(path) } else { path.to_str().and_then(|text| Uri::from_str(text).ok()) }
}

/// A text without the mark of its byte order: positions don't count it.
fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
