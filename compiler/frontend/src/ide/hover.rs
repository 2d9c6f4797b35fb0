//! Hover: what the word at a place is — a row with its fields, a field with its way, an operator, a function, a value.
//!
//! The word is told apart by where it stands ([`super::place`]), so half-written items are answered too.

use std::path::Path;

use dfc_grammar::ast::{self, ItemKind};
use dfc_grammar::{Token, TokenKind as T};
use dfc_typeck::{Checker, Column, FunctionTable, ItemKey, Namespace, NoSites, Scope};

use super::cursor::{self, Cursor, is_word};
use super::docs;
use super::place::{self, Arg, Place};
use super::rows::{self, Fragment, Rows};
use super::text::{UNKNOWN, code, column, field, table, written};
use super::view::{View, range};
use super::words;
use super::{Hover, TextRange};
use crate::Compiler;
use crate::guarantees::guarantees;
use crate::items::ItemNode;
use crate::operators::{self, Kind, Operator, Role};
use crate::settings;

/// What the word at a place is.
pub fn hover(compiler: &Compiler, root: &Path, file: &Path, offset: usize) -> Option<Hover> {
    let view = View::new(compiler, root, file);
    let offset = view.offset(offset);
    let tokens = cursor::spliced(view.text, view.tokens, offset);
    let tokens = tokens.as_deref().unwrap_or(view.tokens);
    let at = token_at(tokens, offset)?;
    let token = tokens[at];
    let about = About { view: &view, cursor: Cursor::on(view.text, tokens, at), token };
    Some(Hover { range: range(token.span), text: about.text()? })
}

/// The token at an offset; of two that meet there the one that is a word.
pub fn token_at(tokens: &[Token], offset: usize) -> Option<usize> {
    let after = tokens.partition_point(|token| (token.span.end as usize) <= offset);
    let here = tokens.get(after).filter(|token| (token.span.start as usize) <= offset);
    let before = after.checked_sub(1).filter(|at| tokens[*at].span.end as usize == offset);
    match (here, before) {
        (Some(token), _) if is_word(token.kind) => Some(after),
        (_, Some(before)) if is_word(tokens[before].kind) => Some(before),
        (Some(token), _) if !token.kind.is_trivia() => Some(after),
        (_, Some(before)) if !tokens[before].kind.is_trivia() => Some(before),
        _ => None,
    }
}

struct About<'a> {
    view: &'a View<'a>,
    /// In front of the word.
    cursor: Cursor<'a>,
    token: Token,
}

impl About<'_> {
    fn word(&self) -> &str {
        self.token.text(self.view.text).trim_matches('`')
    }

    fn text(&self) -> Option<String> {
        if self.token.kind == T::Pipe {
            return self.pipe();
        }
        if !is_word(self.token.kind) {
            return self.literal();
        }
        if self.cursor.solid.len() == 1 && !self.cursor.item_word().is_empty() {
            return self.declared();
        }
        match place::place(&self.cursor) {
            Place::Item => self.item_word(),
            Place::Head { .. } => self.head(),
            Place::Link { .. } => self.link(),
            Place::Type => self.type_name(),
            Place::Setting { block } => self.setting(&block),
            Place::Member { base, arg } => self.member(&base, arg.as_ref()?),
            Place::Arg(arg) => self.argument(&arg),
            Place::Constant | Place::SettingValue { .. } => self.value(),
            Place::Body => {
                let own = docs::parameters_in_text(&self.cursor).into_iter().find(|(name, _)| name == self.word());
                own.map(|(name, ty)| code(&format!("{name}: {ty}"))).or_else(|| self.value())
            }
            Place::Infix | Place::Statement { .. } => self.keyword(),
            Place::Nothing => self.field_declaration().or_else(|| self.keyword()),
            Place::Path { .. } => None,
        }
    }

    /// A word of the language.
    fn keyword(&self) -> Option<String> {
        let word = self.word();
        let tables = [words::VALUES, words::INFIX, words::OTHERS];
        let found = tables.iter().find_map(|table| words::find(table, word));
        found.map(|found| format!("{}\n\n{}", code(word), found.doc))
    }

    /// The word that an item starts with.
    fn item_word(&self) -> Option<String> {
        let word = words::find(words::ITEMS, self.word())?;
        if let Some(item) = self.item_here() {
            match item.kind(self.view.db).as_ref() {
                ItemKind::Job(job) => return Some(self.job(&job.name.text, item)),
                ItemKind::Sink(_) => return Some(self.sink(item).unwrap_or_else(|| word.doc.to_string())),
                _ => {}
            }
        }
        Some(format!("{}\n\n{}", code(word.word), word.doc))
    }

    /// The sound item around the word.
    fn item_here(&self) -> Option<ItemNode> {
        self.view.item_at(self.token.span.start as usize)
    }

    /// The name that an item is declared by.
    fn declared(&self) -> Option<String> {
        let name = self.word();
        match self.cursor.item_word() {
            "job" => Some(self.job(name, self.item_here()?)),
            "source" | "stream" | "sink" => self.stream(name),
            "param" | "const" => self.global(name),
            "record" => self.record(name),
            "fn" => self.function(name),
            "operator" => docs::own_operator(self.view, name).map(|operator| operator_text(&operator)),
            _ => None,
        }
    }

    fn job(&self, name: &str, item: ItemNode) -> String {
        let mut text = code(&format!("job {}", written(name)));
        if let Some(guarantees) = guarantees(self.view.db, self.view.root).as_ref() {
            let lines: Vec<String> = guarantees.lines().iter().map(|line| listed(line)).collect();
            text.push_str(&format!("\n\n{}", lines.join("\n")));
        }
        with_doc(text, docs::of_item(self.view, item))
    }

    /// What a sink writes where.
    fn sink(&self, item: ItemNode) -> Option<String> {
        let checks = crate::check::checks(self.view.db, self.view.root, item);
        let mut out = String::new();
        for (connector, schema) in checks.flat_map(|check| &check.sinks) {
            let Some(schema) = schema else { continue };
            let fields: Vec<String> = schema.fields.iter().map(|f| field(&f.name, &f.ty)).collect();
            out.push_str(&format!("{}\n\n", code(&format!("{connector}({})", fields.join(", ")))));
        }
        (!out.is_empty()).then(|| out.trim_end().to_string())
    }

    /// A source or stream by its name, with its fields.
    fn stream(&self, name: &str) -> Option<String> {
        let item = self.view.find(Namespace::Stream, name)?;
        let word = match item.kind(self.view.db).as_ref() {
            ItemKind::Source(source) => match &source.chain.head.kind {
                ast::ExprKind::Call(call) => format!("source {} = {}(…)", written(name), call.name.text),
                _ => format!("source {}", written(name)),
            },
            _ => format!("stream {}", written(name)),
        };
        let columns = crate::check::shown_columns(self.view.db, self.view.root, item);
        let fields = self.row(columns.as_deref().map(Vec::as_slice), None);
        Some(format!("{}\n\n{fields}", with_doc(code(&word), docs::of_item(self.view, item))))
    }

    /// A row's fields.
    fn row(&self, columns: Option<&[Column]>, rows: Option<&Rows>) -> String {
        match columns {
            Some(columns) => table(columns, |column| self.way(column, rows).join(" → ")),
            None => "Its fields are not known: an error hides them.".to_string(),
        }
    }

    /// The steps of a field's way, each with its place.
    fn way(&self, column: &Column, rows: Option<&Rows>) -> Vec<String> {
        let steps = column.path.iter().map(|step| {
            let place = match rows {
                Some(rows) => rows.place(self.view, &step.loc),
                None => self.view.place(&step.loc),
            };
            let Some(place) = place else { return step.words.clone() };
            let Some(text) = self.view.text_of(&place.file) else { return step.words.clone() };
            let line = text.get(..place.range.start).unwrap_or("").matches('\n').count() + 1;
            let file = match place.file.file_name() {
                Some(name) if place.file != *self.view.file.path(self.view.db) => {
                    format!("{} ", name.to_string_lossy())
                }
                _ => String::new(),
            };
            format!("{} ({file}line {line})", step.words)
        });
        steps.collect()
    }

    /// What a chain starts with.
    fn head(&self) -> Option<String> {
        let name = self.word();
        if self.cursor.next() == Some(T::LParen) {
            let role = if name == "union" { Role::Shuffle } else { Role::Source };
            return operators::table().get(name, role).map(operator_text);
        }
        self.stream(name)
    }

    /// An operator behind `|>`, and the fields behind it.
    fn link(&self) -> Option<String> {
        let name = self.word();
        let (shuffle, sink) = (operators::table().get(name, Role::Shuffle), operators::table().get(name, Role::Sink));
        let mut text = match shuffle.or(sink) {
            Some(operator) => operator_text(operator),
            None => operator_text(&docs::own_operator(self.view, name)?),
        };
        let depth = self.cursor.frames.len() - 1;
        let Some(from) = place::chain_start(&self.cursor, depth) else { return Some(text) };
        if shuffle.is_some() {
            let rows = self.behind_link(from)?;
            text.push_str(&format!("\n\n---\n\nThe row behind it:\n\n{}", self.row(rows.0.as_deref(), Some(&rows.1))));
        } else if sink.is_some() {
            let mut rows = Rows::default();
            let columns = rows::chain(self.view, &self.cursor, from, self.cursor.solid.len() - 1, &mut rows.fragments);
            text.push_str(&format!("\n\n---\n\nThe row it is given:\n\n{}", self.row(Some(&columns), Some(&rows))));
        }
        Some(text)
    }

    /// The fields behind the link that the word is the name of.
    fn behind_link(&self, from: usize) -> Option<(Option<Vec<Column>>, Rows)> {
        let start = self.cursor.solid.get(from)?.span.start as usize;
        let end = self.end_of_call()?;
        let mut rows = Rows::default();
        let text = TextRange::new(start, end);
        let fragment = Fragment::read(self.view, text, "", true).or_else(|| Fragment::mended(self.view, text, true));
        let columns = fragment.as_ref().and_then(|fragment| fragment.columns()).map(<[Column]>::to_vec);
        rows.fragments.extend(fragment);
        Some((columns, rows))
    }

    /// Where the call ends that the word is the name of.
    fn end_of_call(&self) -> Option<usize> {
        let mut depth = 0usize;
        for token in &self.cursor.behind {
            if cursor::opens(token.kind) {
                depth += 1;
            } else if cursor::closes(token.kind) {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(token.span.end as usize);
                }
            } else if depth == 0 {
                return None;
            }
        }
        None
    }

    /// The row between two links.
    fn pipe(&self) -> Option<String> {
        let depth = self.cursor.frames.len() - 1;
        let from = place::chain_start(&self.cursor, depth)?;
        let mut rows = Rows::default();
        let columns = rows::chain(self.view, &self.cursor, from, self.cursor.solid.len(), &mut rows.fragments);
        (!columns.is_empty()).then(|| format!("The row here:\n\n{}", self.row(Some(&columns), Some(&rows))))
    }

    fn type_name(&self) -> Option<String> {
        let name = self.word();
        self.record(name).or_else(|| {
            let word = words::find(words::TYPES, name)?;
            Some(format!("{}\n\n{}", code(name), word.doc))
        })
    }

    fn record(&self, name: &str) -> Option<String> {
        let item = self.view.find(Namespace::Record, name)?;
        let fields: String = match self.view.globals().records.get(name) {
            Some(record) => {
                let fields = record.fields.iter().map(|f| {
                    let outside = f.external.as_ref().map(|text| format!(" = {text:?}")).unwrap_or_default();
                    format!("    {}{outside}\n", field(&f.name, &f.ty))
                });
                fields.collect()
            }
            // One of its types is refused: as it is written.
            None => docs::fields_as_written(self.view, item).iter().map(|field| format!("    {field}\n")).collect(),
        };
        let text = code(&format!("record {} {{\n{fields}}}", written(name)));
        Some(with_doc(text, docs::of_item(self.view, item)))
    }

    fn setting(&self, block: &str) -> Option<String> {
        let name = self.word();
        let setting = settings::of_block(block).into_iter().find(|setting| setting.name == name)?;
        let doc = if setting.is_block { words::block(name) } else { setting.doc };
        Some(format!("{}\n\n{doc}", code(&format!("{name}: {}", setting.takes))))
    }

    fn global(&self, name: &str) -> Option<String> {
        let global = self.view.globals().values.get(name)?;
        let item = self.view.find(Namespace::Value, name);
        let doc = item.and_then(|item| docs::of_item(self.view, item));
        Some(with_doc(code(&docs::of_global(name, global)), doc))
    }

    fn function(&self, name: &str) -> Option<String> {
        if let Some(function) = FunctionTable::standard().get(name) {
            return Some(docs::of_function(function));
        }
        let function = self.view.globals().functions.get(name)?;
        let item = self.view.find(Namespace::Fn, name);
        let doc = item.and_then(|item| docs::of_item(self.view, item));
        Some(with_doc(code(&format!("fn {}", docs::fn_signature(self.view, function))), doc))
    }

    /// A value where no row is.
    fn value(&self) -> Option<String> {
        let name = self.word();
        if self.cursor.next() == Some(T::LParen) {
            return self.function(name);
        }
        self.global(name).or_else(|| self.keyword())
    }

    /// A word inside an operator's call.
    fn argument(&self, arg: &Arg) -> Option<String> {
        let name = self.word();
        let called = self.cursor.next() == Some(T::LParen);
        if self.cursor.next() == Some(T::Colon) && (arg.starts || arg.element_starts) {
            if arg.starts
                && let Some(param) = arg.operator.and_then(|operator| operator.param(name)).filter(|p| !p.variadic)
            {
                let text = code(&format!("{name}: {}", docs::of_param_kind(param)));
                return Some(with_doc(text, param.doc.clone()));
            }
            return self.computed(arg);
        }
        if let Some((callee, _)) = arg.function
            && self.cursor.next() == Some(T::Colon)
        {
            let words = match self.cursor.name(callee) {
                "asc" | "desc" => "Where nulls come: `first` or `last`.",
                _ => "Only rows for which this is true are counted in.",
            };
            return Some(words.to_string());
        }
        let param = arg.param?;
        match &param.kind {
            Kind::Enum(_) if arg.function.is_none() => {
                let text = code(&format!("{}: {}", param.name, docs::of_param_kind(param)));
                return Some(with_doc(text, param.doc.clone()));
            }
            Kind::Stream | Kind::Source => return self.head(),
            Kind::Type => return self.type_name(),
            Kind::Const(_) => return self.value(),
            _ => {}
        }
        if called {
            return self.function(name).or_else(|| self.keyword());
        }
        let rows = rows::rows(self.view, &self.cursor, arg);
        if rows.right.is_some() && matches!(name, "left" | "right") && self.cursor.next() == Some(T::Dot) {
            let columns = if name == "left" { &rows.left } else { rows.right.as_ref()? };
            let doc = words::find(words::OTHERS, name).map_or("", |word| word.doc);
            return Some(format!("{doc}\n\n{}", self.row(Some(columns), Some(&rows))));
        }
        let keys = if arg.param.is_some_and(|p| matches!(p.kind, Kind::Agg(_))) && !arg.in_aggregate {
            rows::keys(self.view, &self.cursor, arg)
        } else {
            Vec::new()
        };
        if let Some((key, ty)) = keys.iter().find(|(key, _)| key == name) {
            return Some(format!("{}\n\nA key: what the rows are grouped by.", code(&field(key, ty))));
        }
        let taken = param.name == "take";
        let left = rows.left.iter().filter(|_| !taken || rows.right.is_none());
        let found = left.chain(rows.right.iter().flatten()).find(|column| column.name == name);
        match found {
            Some(found) => Some(self.field(found, &rows)),
            None => self.value(),
        }
    }

    /// A field with its way.
    fn field(&self, found: &Column, rows: &Rows) -> String {
        let way = self.way(found, Some(rows));
        let steps: Vec<String> = way.iter().map(|step| format!("- {step}")).collect();
        let text = code(&column(found));
        let text = if found.broken { format!("{text}\n\nIts type is {UNKNOWN}.") } else { text };
        if steps.is_empty() { text } else { format!("{text}\n\n{}", steps.join("\n")) }
    }

    /// A field that the argument computes: the label is its name.
    fn computed(&self, arg: &Arg) -> Option<String> {
        let call = place::operator_call(&self.cursor, arg.frame)?;
        let (from, _) = call.chain?;
        let start = self.cursor.solid.get(from)?.span.start as usize;
        let frame = &self.cursor.frames[arg.frame];
        let open = self.cursor.solid.get(frame.at)?.span.start as usize;
        let end = closer(self.view, open)?;
        let mut rows = Rows::default();
        let fragment = Fragment::read(self.view, TextRange::new(start, end), "", true)?;
        let found = fragment.columns()?.iter().find(|column| column.name == self.word())?.clone();
        rows.fragments.push(fragment);
        Some(self.field(&found, &rows))
    }

    /// A name behind a dot.
    fn member(&self, base: &[usize], arg: &Arg) -> Option<String> {
        let rows = rows::rows(self.view, &self.cursor, arg);
        let names: Vec<&str> = base.iter().map(|at| self.cursor.name(*at)).collect();
        if let (["left" | "right"], Some(right)) = (names.as_slice(), &rows.right) {
            let columns = if names == ["left"] { &rows.left } else { right };
            let found = columns.iter().find(|column| column.name == self.word())?;
            return Some(self.field(found, &rows));
        }
        let fields = super::completion::record_fields(&rows, &names)?;
        let (name, ty) = fields.into_iter().find(|(name, _)| name == self.word())?;
        Some(code(&field(&name, &ty)))
    }

    /// A field where a record declares it.
    fn field_declaration(&self) -> Option<String> {
        if self.cursor.item_word() != "record" || self.cursor.frames.len() != 2 {
            return None;
        }
        let record = self.view.globals().records.get(self.cursor.item_name()?)?;
        let found = record.fields.iter().find(|field| field.name == self.word())?;
        let text = code(&field(&found.name, &found.ty));
        let outside = found.external.as_ref().map(|name| format!("\n\nOutside it is called `{name}`."));
        let item = self.view.find(Namespace::Record, self.cursor.item_name()?)?;
        let doc = match item.kind(self.view.db).as_ref() {
            ItemKind::Record(record) => record.fields.iter().find(|f| f.name.text == self.word())?.doc.clone(),
            _ => None,
        };
        Some(with_doc(format!("{text}{}", outside.unwrap_or_default()), doc))
    }

    /// A literal with its type.
    fn literal(&self) -> Option<String> {
        if !matches!(
            self.token.kind,
            T::Number | T::DateTime | T::String | T::RawString | T::TripleString | T::True | T::False
        ) {
            return None;
        }
        let text = self.token.text(self.view.text);
        let item = dfc_grammar::parse(&format!("const x = {text}")).file.items.into_iter().next()?;
        let ItemKind::Const(constant) = item.kind.as_ref() else { return None };
        let key = ItemKey {
            file: self.view.file.index(self.view.db),
            namespace: Namespace::Value,
            name: String::new(),
            nth: 0,
        };
        let mut sites = NoSites;
        let table = FunctionTable::standard();
        let mut checker = Checker::new(table, self.view.globals(), key, Scope::None, &mut sites);
        let (_, ty) = checker.constant_any(&constant.value)?;
        let shown: String = text.lines().next().unwrap_or("").chars().take(60).collect();
        Some(code(&format!("{shown}: {ty}")))
    }
}

/// Where the bracket that opens at a place is closed.
fn closer(view: &View<'_>, open: usize) -> Option<usize> {
    let first = view.tokens.partition_point(|token| (token.span.start as usize) < open);
    let mut depth = 0usize;
    for token in &view.tokens[first..] {
        if cursor::opens(token.kind) {
            depth += 1;
        } else if cursor::closes(token.kind) {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(token.span.end as usize);
            }
        }
    }
    None
}

fn operator_text(operator: &Operator) -> String {
    let mut text = with_doc(code(&operator.signature()), operator.doc.clone());
    let params: Vec<String> = operator
        .params
        .iter()
        .filter_map(|param| {
            let doc = param.doc.as_ref()?;
            Some(format!("- `{}`: {}", param.name, doc.replace('\n', " ")))
        })
        .collect();
    if !params.is_empty() {
        text.push_str(&format!("\n\n{}", params.join("\n")));
    }
    text
}

fn with_doc(text: String, doc: Option<String>) -> String {
    match doc.filter(|doc| !doc.is_empty()) {
        Some(doc) => format!("{text}\n\n{doc}"),
        None => text,
    }
}

/// A line of a list, as far in as its text is.
fn listed(line: &str) -> String {
    let text = line.trim_start();
    format!("{}- {text}", " ".repeat(line.len() - text.len()))
}
