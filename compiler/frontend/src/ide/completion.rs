//! Completion: what may be written at a place, and nothing else, what fits best first.
//!
//! [`place`](super::place) says what kind of thing may stand there, [`rows`](super::rows) which fields there are.

use std::collections::HashSet;
use std::path::Path;

use dfc_grammar::TokenKind as T;
use dfc_grammar::ast::{ItemKind, TypeExpr, TypeKind};
use dfc_ir::{DataType, Type};
use dfc_typeck::{Column, FunctionTable, GlobalKind, Namespace};

use super::cursor::Cursor;
use super::docs;
use super::expected::{self, Expected};
use super::place::{self, Arg, Place};
use super::rows::{self, Rows};
use super::text::{escaped, field, fits, written};
use super::view::View;
use super::words::{self, Word};
use super::{Completion, CompletionKind as C, TextRange, paths};
use crate::Compiler;
use crate::operators::{Kind, Operator, Param, Role, table, type_text};
use crate::settings;

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
                let expected = expected::of_declaration(self.view, self.cursor);
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
        let has_job = self.view.program().in_root(self.view.db, Namespace::Job).first().is_some();
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
            let own = self.cursor.item_name().filter(|_| self.cursor.item_word() == "stream");
            let names: Vec<String> = self.view.program().names_of(Namespace::Stream).map(str::to_string).collect();
            for name in names.iter().filter(|name| Some(name.as_str()) != own) {
                let Some(item) = self.view.find(Namespace::Stream, name) else { continue };
                let source = matches!(item.kind(self.view.db).as_ref(), ItemKind::Source(_));
                let entry = Entry::plain(name, C::Stream).detail(if source { "source" } else { "stream" });
                self.add(Rank::Best, entry.doc(docs::of_item(self.view, item)));
            }
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
    }

    fn records(&mut self, rank: Rank) {
        for (name, record) in &self.view.globals().records {
            let fields: Vec<String> = record.fields.iter().map(|f| field(&f.name, &f.ty)).collect();
            let item = self.view.find(Namespace::Record, name);
            let doc = item.and_then(|item| docs::of_item(self.view, item));
            self.add(rank, Entry::plain(name, C::Record).detail(format!("{{ {} }}", fields.join(", "))).doc(doc));
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

    fn arg(&mut self, arg: &Arg) {
        if let Some(operator) = arg.operator
            && arg.starts
        {
            self.labels(arg, operator);
        }
        let Some(param) = arg.param else { return self.own_operator(arg) };
        let wrapped = arg.value_starts && matches!(param.kind, Kind::Fields);
        match &param.kind {
            Kind::Const(ty) => self.constants(arg, ty),
            Kind::Enum(values) => {
                if arg.function.is_none() && (arg.value_starts) {
                    for value in values {
                        let rank = if is_default(param, value) { Rank::Good } else { Rank::Best };
                        let detail = if is_default(param, value) { "default" } else { "" };
                        let entry = Entry::plain(value, C::EnumValue);
                        self.add(rank, if detail.is_empty() { entry } else { entry.detail(detail) });
                    }
                }
            }
            Kind::Stream | Kind::Source => {
                if arg.value_starts
                    && let Place::Head { connectors, streams } = place::head_of(arg)
                {
                    self.heads(connectors, streams);
                }
            }
            Kind::Type => {
                if arg.value_starts {
                    self.records(Rank::Best);
                    let entry = Entry::plain("record", C::Type).snippet("record { $1 }");
                    self.add(Rank::Possible, entry.doc(Some("Fields with their types, written here.".into())));
                }
            }
            Kind::Field => self.bare_fields(arg),
            Kind::Fields => {
                let rows = rows::rows(self.view, self.cursor, arg);
                let other = param.name == "take" && rows.right.is_some();
                let columns = if other { rows.right.as_deref().unwrap_or_default() } else { &rows.left[..] };
                let given = self.elements_given();
                for column in columns.iter().filter(|column| !given.contains(&column.name)) {
                    let entry = self.field(column, None);
                    let entry = if wrapped { Entry { insert: format!("[{}]", entry.insert), ..entry } } else { entry };
                    self.add(Rank::Best, entry);
                }
                if !wrapped && !(arg.element_starts && self.cursor.prefix.is_empty()) {
                    let expected = expected::of_place(self.view, self.cursor, arg, columns);
                    self.values(&expected, Rank::Possible);
                    self.functions(&expected, false);
                }
            }
            Kind::Row(_) | Kind::Pair | Kind::Order => self.expression(arg, param),
            Kind::Agg(_) => self.aggregates(arg),
        }
    }

    /// An argument of an operator that the program declares.
    fn own_operator(&mut self, arg: &Arg) {
        let frame = &self.cursor.frames[arg.frame];
        let name = frame.callee.filter(|_| arg.operator.is_none()).map(|callee| self.cursor.name(callee));
        let Some(operator) = name.and_then(|name| docs::own_operator(self.view, name)) else { return };
        if arg.starts {
            self.labels(arg, &operator);
        }
        let rows = rows::rows(self.view, self.cursor, arg);
        let expected = expected::of_place(self.view, self.cursor, arg, &rows.left);
        self.fields(&rows, &expected);
        self.values(&expected, Rank::Possible);
        self.functions(&expected, false);
        self.words(Rank::Common, words::VALUES);
    }

    /// The labels that may stand at an argument's start: parameters not given yet.
    fn labels(&mut self, arg: &Arg, operator: &Operator) {
        let frame = &self.cursor.frames[arg.frame];
        let given = self.cursor.labels_given(frame);
        let variadic = operator.params.iter().any(|param| param.variadic);
        let positional = if variadic || !given.is_empty() { usize::MAX } else { frame.index };
        let colon = self.cursor.next() == Some(T::Colon);
        for (number, param) in operator.params.iter().enumerate() {
            let before = !variadic && frame.labels.is_empty() && number < frame.index;
            if param.variadic || before || given.contains(&param.name) || excluded(operator, param, &given) {
                continue;
            }
            let rank = match param.required() || param.kind == Kind::Pair {
                _ if number == positional && param.kind != Kind::Pair => Rank::Common,
                true => Rank::Best,
                false => Rank::Possible,
            };
            let name = written(&param.name);
            let entry = Entry::plain(&param.name, C::Parameter).detail(docs::of_param_kind(param));
            let entry = entry.doc(param.doc.clone());
            let entry = if colon { entry } else { entry.snippet(format!("{}: {}", escaped(&name), value_of(param))) };
            self.add(rank, entry);
        }
    }

    /// Fields by name alone.
    fn bare_fields(&mut self, arg: &Arg) {
        if arg.function.is_some() {
            return;
        }
        let rows = rows::rows(self.view, self.cursor, arg);
        let renames = arg.operator.is_some_and(|operator| operator.name == "rename");
        let given = self.arguments_given(arg);
        for column in rows.left.iter().filter(|column| !given.contains(&column.name)) {
            let entry = self.field(column, None);
            if renames && arg.starts {
                let insert = format!("${{1:new_name}}: {}", escaped(&written(&column.name)));
                self.add(Rank::Best, entry.snippet(insert));
            } else if arg.value_starts {
                self.add(Rank::Best, entry);
            }
        }
    }

    fn field(&self, column: &Column, side: Option<&str>) -> Entry {
        let name = written(&column.name);
        let label = side.map_or(column.name.clone(), |side| format!("{side}.{name}"));
        let insert = side.map_or(name.clone(), |side| format!("{side}.{name}"));
        let detail =
            if column.broken { "not known: its expression has an error".into() } else { column.ty.to_string() };
        let way: Vec<&str> = column.path.iter().map(|step| step.words.as_str()).collect();
        let doc = (!way.is_empty()).then(|| way.join(", "));
        Entry { label, insert, ..Entry::plain(&column.name, C::Field) }.detail(detail).doc(doc)
    }

    /// A value over a row, or over two.
    fn expression(&mut self, arg: &Arg, param: &'static Param) {
        let rows = rows::rows(self.view, self.cursor, arg);
        let name = arg.operator.map_or("", |operator| &operator.name);
        let order = self.in_order(arg);
        if order == Some("nulls") {
            for (value, doc) in [("first", "Nulls come first."), ("last", "Nulls come last.")] {
                self.add(Rank::Best, Entry::plain(value, C::EnumValue).doc(Some(doc.into())));
            }
            return;
        }
        // Of `derive` and `select` each value has a name first.
        let names = arg.starts && param.variadic;
        match name {
            "derive" if names => {
                for column in &rows.left {
                    let entry = self.field(column, None);
                    let insert = format!("{}: $0", escaped(&written(&column.name)));
                    let entry = if self.cursor.next() == Some(T::Colon) { entry } else { entry.snippet(insert) };
                    self.add(Rank::Good, entry);
                }
                return;
            }
            "select" if names => {
                let given = self.arguments_given(arg);
                for column in rows.left.iter().filter(|column| !given.contains(&column.name)) {
                    let entry = self.field(column, None);
                    self.add(Rank::Best, entry);
                }
                return;
            }
            "cast" if arg.function.is_none() => {
                let given = self.arguments_given(arg);
                for column in rows.left.iter().filter(|column| arg.starts && !given.contains(&column.name)) {
                    let entry = self.field(column, None);
                    let insert =
                        format!("{} as ${{1:{}}}", escaped(&written(&column.name)), escaped(&column.ty.to_string()));
                    self.add(Rank::Best, entry.snippet(insert));
                }
                return;
            }
            _ => {}
        }
        if order == Some("") && self.cursor.innermost().is_some_and(|frame| frame.index > 0) {
            let doc = "Where nulls come: `first` or `last`.".to_string();
            self.add(Rank::Best, Entry::plain("nulls", C::Parameter).snippet("nulls: ${1:last}").doc(Some(doc)));
            return;
        }
        let expected = expected::of_place(self.view, self.cursor, arg, &rows.left);
        self.fields(&rows, &expected);
        if param.kind == Kind::Order && arg.function.is_none() {
            for word in words::OTHERS.iter().filter(|word| matches!(word.word, "asc" | "desc")) {
                let entry = Entry::plain(word.word, C::Function).doc(Some(word.doc.into()));
                let entry = self.call(entry, word.word, "$1");
                self.add(Rank::Good, entry);
            }
        }
        self.values(&expected, Rank::Possible);
        self.functions(&expected, false);
        self.words(Rank::Common, words::VALUES);
    }

    /// Inside `asc(…)` or `desc(…)`: the label of the argument, empty without one.
    fn in_order(&self, arg: &Arg) -> Option<&str> {
        let (callee, _) = arg.function?;
        let frame = self.cursor.innermost().filter(|frame| frame.callee == Some(callee))?;
        matches!(self.cursor.name(callee), "asc" | "desc").then(|| self.cursor.label(frame).unwrap_or(""))
    }

    /// The fields of one side or two.
    fn fields(&mut self, rows: &Rows, expected: &Expected) {
        let rank = |column: &Column| match expected.fits(&column.ty) {
            Some(true) => Rank::Best,
            Some(false) => Rank::Unlikely,
            None => Rank::Good,
        };
        let Some(right) = &rows.right else {
            for column in &rows.left {
                let entry = self.field(column, None);
                self.add(rank(column), entry);
            }
            return;
        };
        let both = |name: &str| rows.left.iter().any(|c| c.name == name) && right.iter().any(|c| c.name == name);
        for (side, columns) in [("left", &rows.left), ("right", right)] {
            for column in columns {
                if both(&column.name) {
                    if side == "left" {
                        let entry = self.field(column, None);
                        let detail = format!("{}, of both sides", column.ty);
                        self.add(Rank::Best, entry.detail(detail));
                    }
                    let entry = self.field(column, Some(side));
                    self.add(rank(column), entry);
                } else {
                    let entry = self.field(column, None);
                    let detail = format!("{}, of the {side} side", column.ty);
                    self.add(rank(column), entry.detail(detail));
                }
            }
        }
        for side in ["left", "right"] {
            let doc = words::find(words::OTHERS, side).map(|word| word.doc.to_string());
            self.add(Rank::Possible, Entry::plain(side, C::Side).insert(format!("{side}.")).doc(doc));
        }
    }

    /// A value of an `aggregate`.
    fn aggregates(&mut self, arg: &Arg) {
        if arg.in_aggregate {
            let rows = rows::rows(self.view, self.cursor, arg);
            let expected = expected::of_place(self.view, self.cursor, arg, &rows.left);
            self.fields(&rows, &expected);
            self.values(&expected, Rank::Possible);
            self.functions(&expected, false);
            self.words(Rank::Common, words::VALUES);
            let frame = self.cursor.innermost();
            if arg.function_arg_starts && frame.is_some_and(|f| !self.cursor.labels_given(f).contains(&"where".into()))
            {
                let doc = "Only rows for which this is true are counted in.".to_string();
                self.add(Rank::Possible, Entry::plain("where", C::Parameter).snippet("where: $0").doc(Some(doc)));
            }
            return;
        }
        if arg.starts {
            // A name comes first.
            for function in FunctionTable::standard().iter().filter(|function| function.aggregate) {
                let entry = self.function(&function.name);
                let insert = format!("${{1:name}}: {}($2)", function.name);
                self.add(Rank::Possible, entry.snippet(insert));
            }
            return;
        }
        self.functions(&Expected::default(), true);
        for (name, ty) in rows::keys(self.view, self.cursor, arg) {
            self.add(Rank::Good, Entry::plain(&name, C::Field).detail(format!("{ty}, a key")));
        }
        self.values(&Expected::default(), Rank::Possible);
        self.functions(&Expected::default(), false);
        self.words(Rank::Common, words::VALUES);
    }

    /// A constant argument.
    fn constants(&mut self, arg: &Arg, ty: &TypeExpr) {
        if arg.function.is_none() && !arg.value_starts && self.cursor.last().is_some_and(super::cursor::ends_value) {
            return;
        }
        if matches!(&ty.kind, TypeKind::Name(name) if name == "null") {
            self.add(Rank::Best, Entry::plain("null", C::EnumValue).insert("null"));
            return;
        }
        let expected = Expected::declared(ty);
        if matches!(&ty.kind, TypeKind::Name(name) if name == "bool") && arg.function.is_none() {
            for word in words::VALUES.iter().filter(|word| matches!(word.word, "true" | "false")) {
                let entry = Entry::plain(word.word, C::Keyword).doc(Some(word.doc.into())).insert(word.word);
                self.add(Rank::Best, entry);
            }
        }
        self.values(&expected, Rank::Good);
        if !self.cursor.prefix.is_empty() {
            self.functions(&expected, false);
        }
    }

    /// Parameters and constants of the pipeline.
    fn values(&mut self, expected: &Expected, rank: Rank) {
        let own = self.cursor.item_name().filter(|_| matches!(self.cursor.item_word(), "param" | "const"));
        for (name, global) in &self.view.globals().values {
            if Some(name.as_str()) == own {
                continue;
            }
            let kind = if global.kind == GlobalKind::Const { C::Const } else { C::Param };
            let rank = match expected.fits(&global.ty) {
                Some(true) => Rank::Good.min(rank),
                Some(false) => Rank::Unlikely,
                None => rank,
            };
            let item = self.view.find(Namespace::Value, name);
            let doc = item.and_then(|item| docs::of_item(self.view, item));
            self.add(rank, Entry::plain(name, kind).detail(docs::of_global(name, global)).doc(doc));
        }
    }

    fn function(&self, name: &str) -> Entry {
        let entry = Entry::plain(name, C::Function);
        let Some(function) = FunctionTable::standard().get(name) else { return entry };
        let Some(first) = function.overloads.first() else { return entry };
        let entry = entry.detail(first.signature.clone()).doc(Some(docs::of_function(function)));
        let none = function.overloads.iter().all(|overload| overload.decl.params.is_empty());
        self.call(entry, name, if none { "" } else { "$1" })
    }

    fn functions(&mut self, expected: &Expected, aggregates: bool) {
        for function in FunctionTable::standard().iter().filter(|function| function.aggregate == aggregates) {
            let gives = function.overloads.iter().any(|overload| expected.fits_result(&overload.decl.output));
            let entry = self.function(&function.name);
            let rank = if aggregates {
                Rank::Best
            } else if gives {
                Rank::Possible
            } else {
                Rank::Common
            };
            self.add(rank, entry);
        }
        if aggregates {
            return;
        }
        let own: Vec<(&String, String)> =
            self.view.globals().functions.iter().map(|(name, f)| (name, docs::fn_signature(self.view, f))).collect();
        for (name, signature) in own {
            let item = self.view.find(Namespace::Fn, name);
            let doc = item.and_then(|item| docs::of_item(self.view, item));
            let entry = Entry::plain(name, C::Function).detail(signature).doc(doc);
            let entry = self.call(entry, &written(name), "$1");
            self.add(Rank::Possible, entry);
        }
    }

    /// A function's body: its parameters.
    fn body(&mut self) {
        for (name, ty) in docs::parameters_in_text(self.cursor) {
            self.add(Rank::Best, Entry::plain(&name, C::Param).detail(ty));
        }
        self.values(&Expected::default(), Rank::Good);
        self.functions(&Expected::default(), false);
        self.words(Rank::Common, words::VALUES);
    }

    fn members(&mut self, base: &[usize], arg: Option<&Arg>) {
        let Some(arg) = arg else { return };
        let rows = rows::rows(self.view, self.cursor, arg);
        let names: Vec<&str> = base.iter().map(|at| self.cursor.name(*at)).collect();
        if let (["left" | "right"], Some(right)) = (names.as_slice(), &rows.right) {
            let columns = if names == ["left"] { &rows.left } else { right };
            let expected = expected::of_place(self.view, self.cursor, arg, &rows.left);
            for column in columns {
                let rank = if expected.fits(&column.ty) == Some(false) { Rank::Unlikely } else { Rank::Best };
                let entry = self.field(column, None);
                self.add(rank, entry);
            }
            return;
        }
        if let Some(fields) = record_fields(&rows, &names) {
            for (name, ty) in fields {
                self.add(Rank::Best, Entry::plain(&name, C::Field).detail(ty.to_string()));
            }
        }
    }

    fn infix(&mut self) {
        let after = self.cursor.last();
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

    /// The names in the list around the cursor.
    fn elements_given(&self) -> Vec<String> {
        match self.cursor.innermost() {
            Some(frame) if frame.open == Some(T::LBracket) => self.bare_names(rows::arguments(self.cursor, frame)),
            _ => Vec::new(),
        }
    }

    /// The fields named by an operator's other arguments.
    fn arguments_given(&self, arg: &Arg) -> Vec<String> {
        self.bare_names(rows::arguments(self.cursor, &self.cursor.frames[arg.frame]))
    }

    fn bare_names(&self, given: Vec<rows::Given>) -> Vec<String> {
        let others = given.iter().filter(|given| !given.value.touches(self.cursor.offset) && given.label.is_none());
        let names =
            others.map(|given| self.view.text[given.value.start..given.value.end].trim_matches('`').to_string());
        names.collect()
    }
}

/// The fields of a record that is reached by names and dots.
pub fn record_fields(rows: &Rows, names: &[&str]) -> Option<Vec<(String, DataType)>> {
    let (columns, rest) = match (names, &rows.right) {
        (["left", rest @ ..], Some(_)) => (rows.left.iter().collect::<Vec<_>>(), rest),
        (["right", rest @ ..], Some(right)) => (right.iter().collect(), rest),
        _ => (rows.left.iter().chain(rows.right.iter().flatten()).collect(), names),
    };
    let (first, rest) = rest.split_first()?;
    let mut ty = &columns.into_iter().find(|column| column.name == *first && !column.broken)?.ty;
    for name in rest {
        let Type::Record(fields) = &ty.ty else { return None };
        ty = &fields.iter().find(|field| field.name == *name)?.ty;
    }
    let Type::Record(fields) = &ty.ty else { return None };
    Some(fields.iter().map(|field| (field.name.clone(), field.ty.clone())).collect())
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

/// Whether a parameter excludes one that is given.
fn excluded(operator: &Operator, param: &Param, given: &[String]) -> bool {
    let mut clauses = operator.clauses.iter().filter(|clause| clause.name == "excludes").map(|clause| &clause.words);
    clauses.any(|words| words.contains(&param.name) && words.iter().any(|word| given.contains(word)))
}

fn is_default(param: &Param, value: &str) -> bool {
    param.default.as_ref().is_some_and(|default| rows::bare_name(&default.kind) == Some(value))
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

/// What is put in for a parameter's value.
fn value_of(param: &Param) -> String {
    match &param.kind {
        Kind::Fields => "[$1]".into(),
        Kind::Const(ty) if type_text(ty).trim_end_matches('?') == "string" => "\"$1\"".into(),
        _ => "$1".into(),
    }
}
