//! What may be an operator's argument or a part of one: labels, fields, names, constants, functions.

use dfc_grammar::TokenKind as T;
use dfc_grammar::ast::{TypeExpr, TypeKind};
use dfc_ir::{DataType, Type};
use dfc_typeck::{Column, FunctionTable, GlobalKind, Namespace};

use super::{Entry, List, Rank};
use crate::ide::CompletionKind as C;
use crate::ide::expected::{self, Expected};
use crate::ide::place::{self, Arg, Place};
use crate::ide::rows::{self, Rows};
use crate::ide::text::{UNKNOWN, escaped, written};
use crate::ide::{cursor, docs, words};
use crate::operators::{Kind, Operator, Param, type_text};

impl List<'_> {
    pub(super) fn arg(&mut self, arg: &Arg) {
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
                if arg.function.is_none() && arg.value_starts {
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
                if !(wrapped || arg.element_starts && self.cursor.prefix.is_empty()) {
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
        // Arguments without a label are the first parameters.
        let unlabelled = frame.index.saturating_sub(frame.labels.len());
        for (number, param) in operator.params.iter().enumerate() {
            let before = !variadic && number < unlabelled;
            if param.variadic || before || given.contains(&param.name) || excluded(operator, param, &given) {
                continue;
            }
            let rank = match param.required() || param.kind == Kind::Pair {
                _ if number == positional && param.kind != Kind::Pair => Rank::Common,
                true => Rank::Best,
                false => Rank::Possible,
            };
            // Declared in the standard library: no word there needs backticks in front of a colon.
            let name = param.name.clone();
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
        let detail = if column.broken { UNKNOWN.into() } else { column.ty.to_string() };
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
        if arg.function.is_none() && !arg.value_starts && self.cursor.last().is_some_and(cursor::ends_value) {
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
    pub(super) fn values(&mut self, expected: &Expected, rank: Rank) {
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

    pub(super) fn functions(&mut self, expected: &Expected, aggregates: bool) {
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
    pub(super) fn body(&mut self) {
        for (name, ty) in docs::parameters_in_text(self.cursor) {
            self.add(Rank::Best, Entry::plain(&name, C::Param).detail(ty));
        }
        self.values(&Expected::default(), Rank::Good);
        self.functions(&Expected::default(), false);
        self.words(Rank::Common, words::VALUES);
    }

    pub(super) fn members(&mut self, base: &[usize], arg: Option<&Arg>) {
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

/// Whether a parameter excludes one that is given.
fn excluded(operator: &Operator, param: &Param, given: &[String]) -> bool {
    let mut clauses = operator.clauses.iter().filter(|clause| clause.name == "excludes").map(|clause| &clause.words);
    clauses.any(|words| words.contains(&param.name) && words.iter().any(|word| given.contains(word)))
}

fn is_default(param: &Param, value: &str) -> bool {
    param.default.as_ref().is_some_and(|default| rows::bare_name(&default.kind) == Some(value))
}

/// What is put in for a parameter's value.
fn value_of(param: &Param) -> String {
    match &param.kind {
        Kind::Fields => "[$1]".into(),
        Kind::Const(ty) if type_text(ty).trim_end_matches('?') == "string" => "\"$1\"".into(),
        _ => "$1".into(),
    }
}
