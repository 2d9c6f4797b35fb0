//! Names: fields, the two sides of a join, keys of an aggregation, parameters and constants; and what is said of unknown ones.

use dfc_grammar::ast::{self, Span};
use dfc_ir::text::written;
use dfc_ir::{BinaryOp, CastMode, DataType, Expr, ExprKind, Type, UnaryOp, Value};

use crate::nearest::{FOREIGN_FUNCTIONS, foreign, nearest};
use crate::{Checker, Column, Gone, Loc, Scope};

/// Nodes that functions may add to an expression.
pub(crate) const BUDGET: usize = 100_000;

/// Names listed in a message at most.
const LISTED: usize = 12;

/// Words of other languages that are no fields, and what to write: (the word, letters' case aside, what is said).
const FOREIGN_WORDS: &[(&str, &str)] = &[
    ("none", "a missing value is `null`, and is tested with `is null`"),
    ("nil", "a missing value is `null`, and is tested with `is null`"),
    ("nan", "a missing value is `null`, and is tested with `is null`"),
    ("undefined", "a missing value is `null`, and is tested with `is null`"),
    ("true", "write `true`"),
    ("false", "write `false`"),
    ("yes", "a bool is `true` or `false`"),
    ("no", "a bool is `true` or `false`"),
    ("on", "a bool is `true` or `false`"),
    ("off", "a bool is `true` or `false`"),
];

/// What rows are called elsewhere: `row.status`, `this.status`.
const ROWS: &[&str] = &["row", "this", "self", "it", "df", "record", "input"];

/// What a bare name is among the fields.
enum Found {
    Column(usize),
    /// On both sides of a pair: left and right column.
    Both(usize, usize),
    Nothing,
}

fn position(columns: &[Column], name: &str) -> Option<usize> {
    columns.iter().position(|column| column.name == name)
}

impl Checker<'_> {
    /// A bare name.
    pub(crate) fn name(&mut self, name: &str, span: Span) -> Option<Expr> {
        if let Some(locals) = &self.state.locals {
            if let Some(local) = locals.iter().find(|local| local.name == name) {
                let value = local.value.clone();
                return self.spend(size(&value), span).then_some(value);
            }
            if self.globals.values.contains_key(name) {
                return self.global(name, span);
            }
            return self.unknown_name(name, span);
        }
        if let Some(aggregation) = &self.state.aggregation
            && !self.state.in_aggregate
        {
            if let Some(key) = aggregation.keys.iter().position(|key| key.name == name) {
                let ty = aggregation.keys[key].ty.clone();
                return Some(Expr { kind: ExprKind::Column(key), ty, site: self.site(span) });
            }
            if matches!(self.find(name), Found::Column(_)) {
                self.error(
                    "E0415",
                    span,
                    format!("`{name}` has many values in a group, and this expression needs one"),
                    "neither a key nor inside an aggregate",
                )
                .help(format!("aggregate it, `max({0})` for example, or add it to `by: [{0}]`", written(name)));
                return None;
            }
        }
        match self.find(name) {
            Found::Column(index) => {
                if let Some(global) = self.globals.values.get(name) {
                    let (kind, loc) = (global.kind.words(), global.loc.clone());
                    let places = self.path_of(index);
                    self.error("E0411", span, format!("`{name}` is a field here and a {kind} too"), "which of them?")
                        .related(loc, format!("the {kind} `{name}`"))
                        .related_all(places)
                        .help(format!(
                            "give the {kind} another name, or the field with `rename(new_name: {})`",
                            written(name)
                        ));
                    return None;
                }
                self.column(index, span)
            }
            Found::Both(left, right) => {
                let mut places = self.path_of(left);
                places.extend(self.path_of(right));
                let facing = self.state.facing;
                let report = self
                    .error("E0412", span, format!("both sides have a field `{name}`"), "which side's?")
                    .related_all(places);
                let name = written(name);
                match facing {
                    // An equality with a field of one side wants the other side's.
                    Some(side) => report.help(format!("write `{side}.{name}`")).fix(
                        format!("write `{side}.{name}`"),
                        span,
                        format!("{side}.{name}"),
                    ),
                    None => report.help(format!("write `left.{name}` or `right.{name}`")),
                };
                None
            }
            Found::Nothing if self.globals.values.contains_key(name) => self.global(name, span),
            Found::Nothing => self.unknown_name(name, span),
        }
    }

    /// Whether a bare name means something here.
    pub(crate) fn knows(&self, name: &str) -> bool {
        match &self.state.locals {
            Some(locals) if locals.iter().any(|local| local.name == name) => true,
            Some(_) => self.globals.values.contains_key(name),
            None => !matches!(self.find(name), Found::Nothing) || self.globals.values.contains_key(name),
        }
    }

    fn find(&self, name: &str) -> Found {
        match self.scope {
            Scope::None => Found::Nothing,
            Scope::Row(columns) => position(columns, name).map_or(Found::Nothing, Found::Column),
            Scope::Pair { left, right } => match (position(left, name), position(right, name)) {
                (Some(l), Some(r)) => Found::Both(l, left.len() + r),
                (Some(l), None) => Found::Column(l),
                (None, Some(r)) => Found::Column(left.len() + r),
                (None, None) => Found::Nothing,
            },
        }
    }

    /// `left.x`, `right.x` where the scope has two sides, `orders.x` where it needs no side; `None` if it is something else.
    pub(crate) fn side(&mut self, base: &ast::Expr, field: &ast::Ident, span: Span) -> Option<Option<Expr>> {
        self.bare_field(base, field, span)
            .or_else(|| self.stream_of_a_join(base, field, span))
            .or_else(|| self.side_of_a_join(base, field, span))
    }

    /// `orders.id == customers.id` between the sides of a join, as in SQL.
    fn stream_of_a_join(&mut self, base: &ast::Expr, field: &ast::Ident, span: Span) -> Option<Option<Expr>> {
        let (ast::ExprKind::Name(rows), Scope::Pair { left, right }) = (&base.kind, self.scope) else { return None };
        let known = !matches!(self.find(rows), Found::Nothing) || self.globals.values.contains_key(rows);
        if known || rows == "left" || rows == "right" || self.state.locals.is_some() {
            return None;
        }
        let name = written(&field.text);
        let sides: Vec<String> = [("left", left), ("right", right)]
            .into_iter()
            .filter(|(_, columns)| position(columns, &field.text).is_some())
            .map(|(side, _)| format!("{side}.{name}"))
            .collect();
        let [first, ..] = sides.as_slice() else { return None };
        let help = format!("write `{}`", sides.join("` or `"));
        let (only, fix) = (sides.len() == 1, first.clone());
        let message = format!("there is no field `{rows}` here");
        let report = self.error("E0410", base.span, message, "the sides are called `left` and `right`").help(help);
        if only {
            report.fix(format!("write `{fix}`"), span, fix);
        }
        Some(None)
    }

    /// `row.status`, `orders.status`: a field with the name of its rows before it.
    fn bare_field(&mut self, base: &ast::Expr, field: &ast::Ident, span: Span) -> Option<Option<Expr>> {
        let (ast::ExprKind::Name(rows), Scope::Row(columns)) = (&base.kind, self.scope) else { return None };
        let known = !matches!(self.find(rows), Found::Nothing) || self.globals.values.contains_key(rows);
        // A field that holds others may be misspelt.
        let holding = columns.iter().filter(|c| matches!(c.ty.ty, Type::Record(_) | Type::Json));
        let misspelt = nearest(rows, holding.map(|c| c.name.as_str())).is_some();
        let side = rows == "left" || rows == "right";
        if known || misspelt || side || self.state.locals.is_some() || position(columns, &field.text).is_none() {
            return None;
        }
        let name = written(&field.text);
        self.error("E0410", base.span, format!("there is no field `{rows}` here"), "not needed")
            .help(format!("a field stands without the name of its rows: write `{name}`"))
            .fix(format!("write `{name}`"), span, name);
        Some(None)
    }

    fn side_of_a_join(&mut self, base: &ast::Expr, field: &ast::Ident, span: Span) -> Option<Option<Expr>> {
        let ast::ExprKind::Name(side) = &base.kind else { return None };
        if self.state.locals.is_some() || (side != "left" && side != "right") {
            return None;
        }
        let Scope::Pair { left, right } = self.scope else {
            if matches!(self.find(side), Found::Nothing) && !self.globals.values.contains_key(side) {
                self.error(
                    "E0424",
                    base.span,
                    format!("`{side}.` names a side of a join, and there is only one input here"),
                    "no join here",
                )
                .help(format!("write `{}`", field.text))
                .fix(format!("write `{}`", field.text), span, field.text.clone());
                return Some(None);
            }
            return None;
        };
        let (columns, offset) = if side == "left" { (left, 0) } else { (right, left.len()) };
        if let Some(index) = position(columns, &field.text) {
            return Some(self.column(offset + index, span));
        }
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let near = nearest(&field.text, names.iter().copied());
        let list = list_of("the fields of this side are", &names);
        let gone = Gone::find(self.gone, &field.text);
        let report = self
            .error("E0410", field.span, format!("the {side} side has no field `{}`", field.text), "unknown field")
            .note(list);
        if let Some(gone) = gone {
            report.gone(gone, field.span);
        } else if let Some(near) = near {
            report.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), field.span, written(near));
        }
        Some(None)
    }

    /// A column of the input; one that a condition has shown to be not null loses its `?`.
    fn column(&mut self, index: usize, span: Span) -> Option<Expr> {
        let column = self.scope.column(index)?;
        if column.broken {
            return None;
        }
        let ty = column.ty.clone();
        let narrowed = ty.nullable && self.state.narrowed.contains(&index);
        let plain = ty.with_nullable(false);
        let e = Expr { kind: ExprKind::Column(index), ty, site: self.site(span) };
        if narrowed { self.cast(e, &plain, CastMode::Strict, span) } else { Some(e) }
    }

    /// A parameter or constant. One without a value is a call that no engine knows: typed, not fit to run.
    fn global(&mut self, name: &str, span: Span) -> Option<Expr> {
        let global = self.globals.values.get(name)?;
        let ty = global.ty.clone();
        // Connectors' arguments are constants: they see no row.
        if ty.ty == dfc_ir::Type::Secret && !matches!(self.scope, Scope::None) {
            let loc = global.loc.clone();
            self.error(
                "E0508",
                span,
                format!("the secret `{name}` can't become part of a row"),
                "would be seen by everyone",
            )
            .related(loc, "declared here")
            .help("a secret can only be given to a connector");
            return None;
        }
        let kind = match &global.value {
            Some(value) => ExprKind::Literal(value.clone()),
            None => {
                self.unknown_values = true;
                let name = Expr::literal(Value::string(name), DataType::of(dfc_ir::Type::String));
                ExprKind::Call("param".into(), vec![name])
            }
        };
        Some(Expr { kind, ty, site: self.site(span) })
    }

    fn unknown_name(&mut self, name: &str, span: Span) -> Option<Expr> {
        if self.globals.broken.contains(name) {
            return None;
        }
        let fields: Vec<String> = match (&self.state.locals, &self.state.aggregation) {
            (Some(locals), _) => locals.iter().map(|local| local.name.clone()).collect(),
            (None, Some(aggregation)) if !self.state.in_aggregate => {
                aggregation.keys.iter().map(|key| key.name.clone()).collect()
            }
            _ => self.scope.names().into_iter().map(str::to_owned).collect(),
        };
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let inside_fn = self.state.locals.is_some();
        let globals = self.globals;
        let near = nearest(name, fields.iter().copied().chain(globals.values.keys().map(String::as_str)));
        let lower = name.to_lowercase();
        let word = FOREIGN_WORDS.iter().find(|(word, _)| *word == lower).map(|(_, help)| *help);
        // `current_date` of SQL has no parentheses.
        let called = foreign(FOREIGN_FUNCTIONS, name).filter(|here| self.functions.get(here).is_some());
        let called = called.filter(|here| *here == "now" || *here == "today");
        let is_function = globals.functions.contains_key(name) || self.functions.get(name).is_some();
        let is_stream = globals.streams.contains(name);
        let constant = matches!(self.scope, Scope::None);
        let pair = matches!(self.scope, Scope::Pair { .. });
        let (message, list) = if inside_fn {
            (format!("the function has no parameter `{name}`"), list_of("its parameters are", &fields))
        } else if matches!(self.scope, Scope::None) {
            let names: Vec<&str> = globals.values.keys().map(String::as_str).collect();
            let list = match names.is_empty() {
                true => "no `param` and no `const` is declared".to_owned(),
                false => list_of("the parameters and constants are", &names),
            };
            (format!("there is no parameter or constant `{name}`"), list)
        } else {
            (format!("there is no field `{name}` here"), list_of("the fields here are", &fields))
        };
        let gone = if inside_fn || constant { None } else { Gone::find(self.gone, name) };
        let report = self.error("E0410", span, message, "unknown name").note(list);
        if let Some(gone) = gone {
            report.gone(gone, span);
        } else if let Some(help) = word {
            report.help(help);
        } else if let Some(near) = near {
            report.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), span, written(near));
        } else if let Some(here) = called {
            report.help(format!("it is the function `{here}()` here")).fix(
                format!("write `{here}()`"),
                span,
                format!("{here}()"),
            );
        } else if is_function {
            report.help(format!("`{name}` is a function: call it, `{name}(…)`"));
        } else if ROWS.contains(&name) && !inside_fn && !constant {
            report.help("a field stands by its bare name, without its row: `status`");
        } else if is_stream && pair {
            report.help("the two sides are called `left` and `right` here: `left.id == right.id`");
        } else if is_stream {
            report.help(format!("`{name}` is a stream: its fields come in with `join` or `lookup`"));
        } else if super::types::builtin(name).is_some() {
            report.help(format!("`{name}` is a type: a value is converted with `as {name}`"));
        } else if !inside_fn && constant {
            report.help("this is fixed before the first row is read: it is made of literals, `param`s and `const`s, not of fields");
        } else if inside_fn {
            report.help("a function sees its parameters, `param`s and `const`s only: pass the field as an argument");
        }
        None
    }

    /// The steps of a column's way that a message shows: where it was declared, what changed it last, and what lies between
    /// where that isn't much. Each with the name that the field had there.
    pub(crate) fn path_of(&self, index: usize) -> Vec<(Loc, String)> {
        self.scope.column(index).map(Column::way).unwrap_or_default()
    }

    /// Where the field came from, if the expression is one (conversions aside), or where those came from that decide its type.
    pub(crate) fn places_of(&self, e: &Expr) -> Vec<(Loc, String)> {
        let outside_of_groups = self.state.aggregation.is_some() && !self.state.in_aggregate;
        match &e.kind {
            ExprKind::Column(index) if !outside_of_groups => self.path_of(*index),
            ExprKind::Cast(inner, _) | ExprKind::Unary(UnaryOp::Neg, inner) => self.places_of(inner),
            ExprKind::Binary(
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod,
                l,
                r,
            ) => {
                let mut places = self.places_of(l);
                for place in self.places_of(r) {
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                places
            }
            _ => Vec::new(),
        }
    }

    /// Counts nodes that functions add; past the budget an error.
    pub(crate) fn spend(&mut self, nodes: usize, span: Span) -> bool {
        self.state.inlined += nodes;
        if self.state.inlined <= BUDGET {
            return true;
        }
        if self.state.inlined - nodes <= BUDGET {
            self.error("E0422", span, "this expression is too large", "grows here")
                .note(format!("it may have {BUDGET} parts, functions written out"))
                .help("compute parts of it in a `derive` before, and use the field");
        }
        false
    }
}

/// Number of nodes.
pub(crate) fn size(e: &Expr) -> usize {
    let mut count = 1;
    e.for_each_child(&mut |child| count += size(child));
    count
}

/// "the fields here are `a`, `b` and 3 more"
pub(crate) fn list_of(words: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return format!("{words}: none");
    }
    // Both sides of a join may have a field of one name.
    let mut seen = std::collections::BTreeSet::new();
    let names: Vec<&str> = names.iter().copied().filter(|name| seen.insert(*name)).collect();
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(LISTED) {
        0 => format!("{words} {}", shown.join(", ")),
        more => format!("{words} {} and {more} more", shown.join(", ")),
    }
}
