//! What a question is about: a program, a file of it, the file's text and tokens; and the way from places inside items to
//! places in files.
//!
//! It may not know what is asked.

use std::path::Path;

use dfc_grammar::Token;
use dfc_grammar::ast::{ItemKind, Span};
use dfc_typeck::{Globals, ItemKey, Loc, Namespace};

use super::{FileRange, TextRange};
use crate::Compiler;
use crate::db::{Database, Db as _, SourceFile};
use crate::globals::globals;
use crate::items::{self, ItemNode, Program, file_items, program};
use crate::places;

/// A program and a file of it.
pub struct View<'a> {
    pub db: &'a Database,
    pub root: SourceFile,
    pub file: SourceFile,
    /// The file's text; empty where it can't be read.
    pub text: &'a str,
    /// All of its tokens.
    pub tokens: &'a [Token],
}

impl<'a> View<'a> {
    pub fn new(compiler: &'a Compiler, root: &Path, file: &Path) -> Self {
        let db = &compiler.db;
        let (root, file) = (compiler.recalling(root), compiler.recalling(file));
        let text = file.text(db).as_ref().map_or("", |text| &**text);
        View { db, root, file, text, tokens: &items::parse(db, file).tokens }
    }

    /// An offset taken back to where a character starts.
    pub fn offset(&self, offset: usize) -> usize {
        floor(self.text, offset)
    }

    pub fn program(&self) -> &'a Program {
        program(self.db, self.root)
    }

    pub fn globals(&self) -> &'a Globals {
        globals(self.db, self.root)
    }

    /// The program's item of this name.
    pub fn find(&self, namespace: Namespace, name: &str) -> Option<ItemNode> {
        self.program().find(namespace, name)
    }

    /// The sound item of the file around an offset, with its first byte.
    pub fn item_at(&self, offset: usize) -> Option<ItemNode> {
        let parsed = &items::parse(self.db, self.file).file.items;
        let at = parsed.partition_point(|item| item.start as usize <= offset).checked_sub(1)?;
        let item = &parsed[at];
        if offset > (item.start + item.len) as usize {
            return None;
        }
        self.node_at(item.start).filter(|node| !node.remembered(self.db))
    }

    /// The item of the file that starts at a byte.
    pub fn node_at(&self, start: u32) -> Option<ItemNode> {
        let starts = self.file.starts(self.db);
        let at = starts.partition_point(|other| *other < start);
        file_items(self.db, self.file).get(at).copied().filter(|_| starts.get(at) == Some(&start))
    }

    /// The file that an item stands in.
    pub fn file_of(&self, key: &ItemKey) -> Option<SourceFile> {
        self.db.file_by_index(key.file)
    }

    /// A place of the program in its file. `None` where the item is in no file (any more).
    pub fn place(&self, loc: &Loc) -> Option<FileRange> {
        let file = self.file_of(&loc.item)?;
        let item = file_items(self.db, file).iter().find(|item| *item.key(self.db) == loc.item)?;
        let span = places::resolve(item.kind(self.db), loc.span).shift(item.start(self.db));
        Some(FileRange { file: file.path(self.db).clone(), range: range(span) })
    }

    /// The text of a span of an item of this file.
    pub fn text_at(&self, item: ItemNode, span: Span) -> &'a str {
        let range = range(span.shift(item.start(self.db)));
        self.text.get(range.start..range.end).unwrap_or("")
    }

    /// The text of a file of the program.
    pub fn text_of(&self, path: &Path) -> Option<&'a str> {
        let file = self.program().files.iter().find(|file| file.path(self.db) == path)?;
        file.text(self.db).as_ref().ok().map(|text| &**text)
    }

    /// The file's items that meet a range, in source order.
    pub fn items_in(&self, wanted: TextRange) -> impl Iterator<Item = (ItemNode, &'a ItemKind, u32)> {
        let parsed = &items::parse(self.db, self.file).file.items;
        let first = parsed.partition_point(|item| ((item.start + item.len) as usize) < wanted.start);
        parsed[first..].iter().take_while(move |item| item.start as usize <= wanted.end).filter_map(move |item| {
            let node = self.node_at(item.start)?;
            Some((node, &**node.kind(self.db), item.start))
        })
    }
}

/// A span of a file as a range.
pub fn range(span: Span) -> TextRange {
    TextRange::new(span.start as usize, span.end as usize)
}

/// An offset taken back into the text and to where a character starts.
pub fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
