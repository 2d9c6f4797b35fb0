//! Renderers: one for people (drawn by ariadne), the others for tools (JSON lines, SARIF, GitHub's workflow commands).
//!
//! They may not change what is said: the same data in other forms.

mod github;
mod human;
mod json;
mod sarif;

pub use github::github;
pub use human::human;
pub use json::json;
pub use sarif::sarif;

/// A file that diagnostics speak of; `FileId` is its index in the list given to a renderer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileText {
    /// Its name, as the user wrote it.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl FileText {
    /// Line and column of a byte, both from 1; columns count characters. A byte past the end is the end.
    pub fn position(&self, byte: u32) -> (u32, u32) {
        let before = &self.text[..self.floor(byte)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.matches('\n').count() as u32 + 1;
        (line, before[line_start..].chars().count() as u32 + 1)
    }

    /// The nearest character boundary at or before a byte.
    pub(crate) fn floor(&self, byte: u32) -> usize {
        let mut at = (byte as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// The nearest character boundary at or after a byte.
    pub(crate) fn ceil(&self, byte: u32) -> usize {
        let mut at = (byte as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        at
    }
}
