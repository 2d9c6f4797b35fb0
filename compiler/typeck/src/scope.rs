//! What an expression can see: the fields of its input (or of two inputs), parameters, constants, user functions, records.
//!
//! Plain data that the front end fills. It may not know how a stream came by its fields, only the words for it ([`PathStep`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dfc_grammar::ast;
use dfc_ir::{DataType, Expr, ExprKind, Field, Site, Type, Value};

use crate::{ItemKey, Loc};

/// A step on the way of a field to where it is used, for labels: "declared here", "renamed here",
/// "made optional by this left join".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathStep {
    /// Where it happened.
    pub loc: Loc,
    /// What happened, a few words.
    pub words: String,
    /// The name that the field had before, where this step gave it another one.
    pub was: Option<String>,
}

impl PathStep {
    /// A step that leaves the field its name.
    pub fn new(loc: Loc, words: impl Into<String>) -> Self {
        PathStep { loc, words: words.into(), was: None }
    }

    /// A step that gives the field another name than `old`.
    pub fn renamed(loc: Loc, old: &str) -> Self {
        PathStep { loc, words: format!("renamed from `{old}` here"), was: Some(old.to_owned()) }
    }
}

/// Steps of a way that is shown whole.
const STEPS_SHOWN: usize = 4;

/// How the words of a step begin by which a field may be null.
pub const OPTIONAL: &str = "made optional";

/// A field of an input.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its name in the pipeline.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// Where it comes from, oldest step first. Messages show the first and the last step.
    pub path: Vec<PathStep>,
    /// The expression that gives it was refused, so its type is not known: an expression that uses it is dropped without a
    /// message, because the cause was reported there.
    pub broken: bool,
    /// It is a number that was made of text by a cast: zeros that led it are gone.
    pub of_text: bool,
}

impl Column {
    /// The way that it came, for labels: every step of a short way; of a long one the first, the last, and where it became optional.
    pub fn way(&self) -> Vec<(Loc, String)> {
        let mut name = self.name.as_str();
        let mut places = Vec::new();
        for (number, step) in self.path.iter().enumerate().rev() {
            let last = number + 1 == self.path.len();
            let telling = last || number == 0 || (self.ty.nullable && step.words.starts_with(OPTIONAL));
            if telling || self.path.len() <= STEPS_SHOWN {
                let ty = if last { format!(": {}", self.ty) } else { String::new() };
                places.push((step.loc.clone(), format!("`{name}` {}{ty}", step.words)));
            }
            name = step.was.as_deref().unwrap_or(name);
        }
        places.reverse();
        places
    }

    /// A sound column.
    pub fn new(name: impl Into<String>, ty: DataType, path: Vec<PathStep>) -> Self {
        Column { name: name.into(), ty, path, broken: false, of_text: false }
    }
}

/// A field that the rows had before, and an operator on their way took out: for the message where it is used all the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gone {
    /// The name it had.
    pub name: String,
    /// Where it went, as it is said: "`price` is left out by this `select`"; after a change of name what came later too.
    pub steps: Vec<PathStep>,
    /// The name that it (or its value) has now, where there is one.
    pub now: Option<String>,
    /// What brings it back.
    pub help: String,
}

impl Gone {
    /// The latest of these that had a name.
    pub fn find<'g>(list: &'g [Gone], name: &str) -> Option<&'g Gone> {
        list.iter().rev().find(|gone| gone.name == name)
    }

    /// The steps as places of a message.
    pub fn places(&self) -> impl Iterator<Item = (Loc, String)> {
        self.steps.iter().map(|step| (step.loc.clone(), step.words.clone()))
    }
}

/// The fields in scope. Columns are numbered in order; of a pair the left ones first, the right ones after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// No fields: constants, parameters and functions only.
    None,
    /// The fields of one input.
    Row(&'a [Column]),
    /// The fields of both sides of a join or lookup; a name on both sides is written `left.x` or `right.x`.
    Pair {
        /// The left side's fields: columns `0..left.len()`.
        left: &'a [Column],
        /// The right side's fields: columns `left.len()..`.
        right: &'a [Column],
    },
}

impl<'a> Scope<'a> {
    /// The column of this number.
    pub fn column(&self, index: usize) -> Option<&'a Column> {
        match self {
            Scope::None => None,
            Scope::Row(columns) => columns.get(index),
            Scope::Pair { left, right } => left.get(index).or_else(|| right.get(index.checked_sub(left.len())?)),
        }
    }

    /// Whether an expression is a number that a cast has made of text, here or on its way here.
    pub fn made_of_text(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Column(index) => self.column(*index).is_some_and(|column| column.of_text),
            ExprKind::Cast(inner, _) if e.ty.ty.is_numeric() => inner.ty.ty == Type::String || self.made_of_text(inner),
            _ => false,
        }
    }

    /// All names in scope, in order.
    pub fn names(&self) -> Vec<&'a str> {
        match self {
            Scope::None => Vec::new(),
            Scope::Row(columns) => columns.iter().map(|c| c.name.as_str()).collect(),
            Scope::Pair { left, right } => left.iter().chain(right.iter()).map(|c| c.name.as_str()).collect(),
        }
    }
}

/// `param` or `const`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GlobalKind {
    /// Set from outside.
    Param,
    /// Fixed in the file.
    Const,
}

impl GlobalKind {
    /// "parameter", "constant"
    pub fn words(self) -> &'static str {
        match self {
            GlobalKind::Param => "parameter",
            GlobalKind::Const => "constant",
        }
    }
}

/// A parameter or constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Global {
    /// Which of both.
    pub kind: GlobalKind,
    /// Its type.
    pub ty: DataType,
    /// Its value. `None`: a parameter without a default that was not set. Expressions over it are typed, but not fit to run:
    /// see [`crate::Checker::unknown_values`].
    pub value: Option<Value<'static>>,
    /// Where a secret parameter's value is kept, if it was given neither a value nor `--set`: its default.
    pub secret: Option<dfc_ir::plan::Secret>,
    /// Where its name is declared.
    pub loc: Loc,
}

/// A user's `fn`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserFn {
    /// The item it was declared in (spans of `decl` are relative to it).
    pub item: ItemKey,
    /// The declaration.
    pub decl: ast::FnDecl,
}

/// A declared record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordType {
    /// Its fields with their resolved types.
    pub fields: Vec<Field>,
    /// Where its name is declared.
    pub loc: Loc,
}

/// Everything in scope beside the fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Globals {
    /// Parameters and constants by name.
    pub values: BTreeMap<String, Global>,
    /// User functions by name.
    pub functions: BTreeMap<String, Arc<UserFn>>,
    /// Records by name.
    pub records: BTreeMap<String, RecordType>,
    /// Names of values, functions or records whose declarations were refused: using them is silent.
    pub broken: BTreeSet<String>,
    /// Streams and sources by name, for the message when one is used as a value.
    pub streams: BTreeSet<String>,
}

/// Gives places in the text their numbers in the plan.
pub trait SiteSink {
    /// The number of this place.
    fn site(&mut self, loc: &Loc) -> Site;
}

/// Numbers every place 0 ("unknown"): for checks without a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSites;

impl SiteSink for NoSites {
    fn site(&mut self, _loc: &Loc) -> Site {
        Site::default()
    }
}
