//! Completion: what may be written at a place, and nothing else, what fits best first.
//!
//! [`super::place`] says what kind of thing may stand there, [`super::rows`] which fields there are.

mod args;

pub use args::record_fields;

use std::collections::HashSet;
use std::path::Path;

use dfc_grammar::TokenKind as T;
use dfc_grammar::ast::ItemKind;
use dfc_ir::DataType;
use dfc_typeck::Namespace;

use super::cursor::Cursor;
use super::docs;
use super::expected::{self, Expected};
use super::place::{self, Place};
use super::text::{escaped, field, fits, written};
use super::view::View;
use super::words::{self, Word};
use super::{Completion, CompletionKind as C, TextRange, paths};
use crate::Compiler;
use crate::operators::{Kind, Operator, Role, table, type_text};
use crate::settings;

/// Streams that are listed. A list of so many or more may lack some: it is asked for again when more letters are known.
pub const MOST: usize = 100;

/// What may be written at a place, best first.
pub fn completion(compiler: &Compiler, root: &Path, file: &Path, offset: usize) -> Vec<Completion> {
    let view = View::new(compiler, root, file);
    let offset = view.offset(offset);
    let cursor = Cursor::new(view.text, view.tokens, offset);
    let mut list = List { view: &view, cursor: &cursor, out: Vec::new(), seen: HashSet::new() };
    list.fill(place::place(&cursor));
    list.out.sort_by(|a, b| a.sort.cmp(&b.sort));
    list.out
}

/// How well something fits: the lower, the earlier in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// What must be given, or is of the wanted type.
    Best,
    /// What is probably meant.
    Good,
    /// What may be given.
    Possible,
    /// What is always possible.
    Common,
    /// What is possible but of another type.
    Unlikely,
}

struct List<'a> {
    view: &'a View<'a>,
    cursor: &'a Cursor<'a>,
    out: Vec<Completion>,
    /// What is in the list already.
    seen: HashSet<(C, String)>,
}

/// One entry, before it is put into the list.
struct Entry {
    label: String,
    kind: C,
    detail: Option<String>,
    doc: Option<String>,
    /// What is put in; with places to fill in where `snippet` is true.
    insert: String,
    snippet: bool,
}

impl Entry {
    fn plain(label: &str, kind: C) -> Entry {
        let insert = written(label);
        Entry { label: label.to_string(), kind, detail: None, doc: None, insert, snippet: false }
    }

    fn detail(mut self, detail: impl Into<String>) -> Entry {
        self.detail = Some(detail.into());
        self
    }

    fn doc(mut self, doc: Option<String>) -> Entry {
        self.doc = doc.filter(|doc| !doc.is_empty());
        self
    }

    fn insert(mut self, insert: impl Into<String>) -> Entry {
        self.insert = insert.into();
        self
    }

    fn snippet(mut self, insert: impl Into<String>) -> Entry {
        self.insert = insert.into();
        self.snippet = true;
        self
    }
}

impl List<'_> {
    fn add(&mut self, rank: Rank, entry: Entry) {
        self.replace(rank, entry, self.cursor.word);
    }

    fn replace(&mut self, rank: Rank, entry: Entry, range: TextRange) {
        let prefix = self.cursor.prefix.trim_start_matches('`');
        if range == self.cursor.word && !fits(&entry.label, prefix) {
            return;
        }
        let Entry { label, kind, detail, doc, insert, snippet } = entry;
        if !self.seen.insert((kind, label.clone())) {
            return;
        }
        let starts = label.to_lowercase().starts_with(&prefix.to_lowercase());
        let sort = format!("{}{}{:05}", rank as u8, if starts { 0 } else { 1 }, self.out.len());
        self.out.push(Completion { label, kind, detail, doc, range, insert, snippet, sort });
    }

    fn words(&mut self, rank: Rank, words: &'static [Word]) {
        for word in words {
            let entry = Entry::plain(word.word, C::Keyword).doc(Some(word.doc.to_string()));
            self.add(rank, entry.snippet(word.snippet));
        }
    }

    fn fill(&mut self, place: Place) {
        match place {
            Place::Nothing => {}
            Place::Item => self.items(),
            Place::Head { connectors, streams } => self.heads(connectors, streams),
            Place::Link { sink } => self.links(sink),
            Place::Type => self.types(),
            Place::Setting { block } => self.settings(&block),
            Place::SettingValue { block, name } => self.setting_value(&block, &name),
            Place::Arg(arg) => self.arg(&arg),
            Place::Constant => {
                let expected = expected::of_declaration(self.cursor);
                self.values(&expected, Rank::Good);
                self.functions(&expected, false);
                self.words(Rank::Common, words::VALUES);
            }
            Place::Body => self.body(),
            Place::Statement { top: true } => self.words(Rank::Good, words::PARTS),
            Place::Statement { top: false } => {
                for (name, ty) in docs::parameters_in_text(self.cursor) {
                    self.add(Rank::Best, Entry::plain(&name, C::Param).detail(ty));
                }
                self.words(Rank::Good, words::STATEMENTS);
            }
            Place::Member { base, arg } => self.members(&base, arg.as_ref()),
            Place::Infix => self.infix(),
            Place::Path { written, start, pipelines } => self.paths(&written, start, pipelines),
        }
    }

    fn items(&mut self) {
        let has_job = !self.view.program().in_root(self.view.db, Namespace::Job).is_empty();
        for word in words::ITEMS {
            let rank = if word.word == "job" && has_job { Rank::Unlikely } else { Rank::Good };
            let entry = Entry::plain(word.word, C::Keyword).doc(Some(word.doc.to_string()));
            // The rest of the item stands there already.
            let bare = self.cursor.next().is_some_and(|next| next != T::Name || self.cursor.word_text() == word.word);
            let on_this_line = self.line_goes_on();
            let entry = if bare && on_this_line { entry } else { entry.snippet(word.snippet) };
            self.add(rank, entry);
        }
    }

    /// Whether something is written behind the word on its line.
    fn line_goes_on(&self) -> bool {
        let rest = &self.view.text[self.cursor.word.end..];
        !rest.lines().next().unwrap_or("").trim().is_empty()
    }

    fn heads(&mut self, connectors: bool, streams: bool) {
        if streams {
            self.streams();
            if let Some(union) = table().get("union", Role::Shuffle)
                && !connectors
            {
                self.operator(Rank::Good, union);
            }
        }
        if connectors {
            for operator in table().all().filter(|operator| operator.role == Role::Source) {
                self.operator(Rank::Good, operator);
            }
        }
    }

    /// The program's sources and streams: as many as anybody looks through, this file's first.
    fn streams(&mut self) {
        let own = self.cursor.item_name().filter(|_| self.cursor.item_word() == "stream");
        let prefix = self.cursor.prefix.trim_start_matches('`');
        let (db, file) = (self.view.db, self.view.file.index(self.view.db));
        let fitting = |name: &str| Some(name) != own && fits(name, prefix);
        let all = self.view.program().declared(Namespace::Stream).filter(|(slot, _)| fitting(&slot.name));
        let (here, elsewhere): (Vec<_>, Vec<_>) = all.partition(|(_, item)| item.key(db).file == file);
        for (slot, item) in here.into_iter().chain(elsewhere).take(MOST) {
            let source = matches!(item.kind(db).as_ref(), ItemKind::Source(_));
            let entry = Entry::plain(&slot.name, C::Stream).detail(if source { "source" } else { "stream" });
            self.add(Rank::Best, entry.doc(docs::of_item(self.view, item)));
        }
    }

    fn links(&mut self, sink: bool) {
        for operator in table().all() {
            match operator.role {
                Role::Shuffle if operator.name != "union" => self.operator(Rank::Good, operator),
                Role::Sink if sink => self.operator(Rank::Good, operator),
                _ => {}
            }
        }
        let own: Vec<String> = self.view.program().names_of(Namespace::Operator).map(str::to_string).collect();
        for name in own {
            let Some(item) = self.view.find(Namespace::Operator, &name) else { continue };
            let entry = Entry::plain(&name, C::Operator).detail("operator").doc(docs::of_item(self.view, item));
            let entry = self.call(entry, &written(&name), "$1");
            self.add(Rank::Good, entry);
        }
    }

    fn operator(&mut self, rank: Rank, operator: &Operator) {
        let entry = Entry::plain(&operator.name, C::Operator).detail(operator.signature()).doc(operator.doc.clone());
        let entry = self.call(entry, &operator.name, &arguments(operator));
        self.add(rank, entry);
    }

    /// A call's brackets are put in where there are none.
    fn call(&self, entry: Entry, name: &str, arguments: &str) -> Entry {
        match self.cursor.next() {
            Some(T::LParen) => entry,
            _ => entry.snippet(format!("{}({arguments})", escaped(name))),
        }
    }

    fn types(&mut self) {
        let secret = self.cursor.item_word() == "param";
        for word in words::TYPES.iter().filter(|word| word.word != "secret" || secret) {
            let entry = Entry::plain(word.word, C::Type).doc(Some(word.doc.to_string()));
            self.add(Rank::Possible, entry.snippet(word.snippet));
        }
        self.records(Rank::Possible);
        match place::parameter_type(self.cursor) {
            Some(place::ParameterType::OfAnyRow) => {
                let row = Entry::plain("row", C::Keyword).snippet("row ${1:any}");
                self.add(Rank::Good, row.doc(Some("A value of each row: `row T`.".into())));
            }
            Some(place::ParameterType::OfClass) => {
                for word in words::CLASSES {
                    let entry = Entry::plain(word.word, C::Type).doc(Some(word.doc.to_string()));
                    self.add(Rank::Common, entry.detail("a class of types"));
                }
            }
            None => {}
        }
    }

    fn records(&mut self, rank: Rank) {
        for (name, record) in &self.view.globals().records {
            let fields: Vec<String> = record.fields.iter().map(|f| field(&f.name, &f.ty)).collect();
            let item = self.view.find(Namespace::Record, name);
            let doc = item.and_then(|item| docs::of_item(self.view, item));
            self.add(rank, Entry::plain(name, C::Record).detail(format!("{{ {} }}", fields.join(", "))).doc(doc));
        }
        // Those with a mistake in them are there too; what is in the list already is not put in again.
        let all: Vec<String> = self.view.program().names_of(Namespace::Record).map(str::to_string).collect();
        for name in all {
            let Some(item) = self.view.find(Namespace::Record, &name) else { continue };
            let fields = docs::fields_as_written(self.view, item).join(", ");
            let entry = Entry::plain(&name, C::Record).detail(format!("{{ {fields} }}"));
            self.add(rank, entry.doc(docs::of_item(self.view, item)));
        }
    }

    fn settings(&mut self, block: &str) {
        let given = self.cursor.innermost().map(|frame| self.cursor.labels_given(frame)).unwrap_or_default();
        let blocks = given_blocks(self.cursor);
        for setting in settings::of_block(block) {
            if given.iter().chain(&blocks).any(|name| *name == setting.name) {
                continue;
            }
            let entry = Entry::plain(setting.name, C::Setting).detail(setting.takes);
            let doc = if setting.is_block { words::block(setting.name) } else { setting.doc };
            let entry = entry.doc(Some(doc.to_string()));
            let entry = match (setting.is_block, self.cursor.next()) {
                (_, Some(T::Colon)) => entry,
                (true, _) => entry.snippet(format!("{} {{ $0 }}", setting.name)),
                (false, _) => entry.snippet(format!("{}: $0", setting.name)),
            };
            self.add(Rank::Good, entry);
        }
    }

    fn setting_value(&mut self, block: &str, name: &str) {
        let Some(setting) = settings::of_block(block).into_iter().find(|setting| setting.name == name) else { return };
        for value in setting.values {
            self.add(Rank::Best, Entry::plain(value, C::EnumValue));
        }
        if let Some(ty) = setting.ty {
            self.values(&Expected::of(&DataType::of(ty)), Rank::Good);
        }
    }

    fn infix(&mut self) {
        let after = self.cursor.last();
        let branch = match place::branch(self.cursor) {
            place::Branch::Then => Some(words::THEN),
            place::Branch::Else => Some(words::ELSE),
            place::Branch::None | place::Branch::Value => None,
        };
        if let Some(word) = branch.filter(|_| !matches!(after, Some(T::Is | T::Not))) {
            let entry = Entry::plain(word.word, C::Keyword).doc(Some(word.doc.to_string()));
            self.add(Rank::Good, entry.insert(word.snippet));
        }
        for word in words::INFIX {
            let insert = match after {
                Some(T::Is) => match word.word.strip_prefix("is ") {
                    Some(rest) => rest,
                    None => continue,
                },
                Some(T::Not) => match word.word.strip_prefix("not ") {
                    Some(_) => word.snippet.trim_start_matches("not "),
                    None if matches!(word.word, "between" | "like" | "matches") => word.snippet,
                    None => continue,
                },
                _ => word.snippet,
            };
            let label = if matches!(after, Some(T::Is | T::Not)) {
                insert.split(['$', '"', '[']).next().unwrap_or(insert).trim()
            } else {
                word.word
            };
            let entry = Entry { label: label.to_string(), ..Entry::plain(word.word, C::Keyword) };
            self.add(Rank::Common, entry.doc(Some(word.doc.into())).snippet(insert));
        }
    }

    fn paths(&mut self, written: &str, start: usize, pipelines: bool) {
        let typed = written.rfind('/').map_or(written, |at| &written[at + 1..]);
        let range = TextRange::new(start + written.len() - typed.len(), self.cursor.offset);
        for (name, folder) in paths::listed(self.view, written) {
            if !fits(&name, typed) || (pipelines && !folder && !name.ends_with(".df")) {
                continue;
            }
            let kind = if folder { C::Folder } else { C::File };
            let insert = if folder { format!("{name}/") } else { name.clone() };
            // A backslash or a quote would have to be escaped.
            if !insert.contains(['\\', '"', '\n']) {
                self.replace(Rank::Good, Entry { insert, ..Entry::plain(&name, kind) }, range);
            }
        }
    }
}

/// The blocks of settings that stand before and behind the cursor in the block around it.
fn given_blocks(cursor: &Cursor<'_>) -> Vec<String> {
    let Some(frame) = cursor.innermost() else { return Vec::new() };
    let tokens: Vec<_> = cursor.solid.iter().skip(frame.at + 1).chain(&cursor.behind).collect();
    let mut depth = 0usize;
    let mut names = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            T::LBrace => {
                if depth == 0 && i > 0 {
                    names.push(tokens[i - 1].text(cursor.text).to_string());
                }
                depth += 1;
            }
            T::RBrace if depth == 0 => break,
            T::RBrace => depth -= 1,
            _ => {}
        }
    }
    names
}

/// What is put in for an operator's arguments: those that must be given.
fn arguments(operator: &Operator) -> String {
    let mut out: Vec<String> = Vec::new();
    for param in &operator.params {
        let number = out.len() + 1;
        let wanted = param.required() || param.kind == Kind::Pair || param.name == "schema";
        let sink_schema = param.name == "schema" && operator.role == Role::Sink;
        if param.variadic && operator.params.len() == 1 {
            out.push(format!("${number}"));
        } else if wanted && !sink_schema {
            let quoted = matches!(&param.kind, Kind::Const(ty) if type_text(ty) == "string");
            let value = if quoted { format!("\"${number}\"") } else { format!("${number}") };
            out.push(if number == 1 { value } else { format!("{}: {value}", param.name) });
        }
    }
    if out.is_empty() && !operator.params.is_empty() {
        out.push("$1".into());
    }
    out.join(", ")
}
