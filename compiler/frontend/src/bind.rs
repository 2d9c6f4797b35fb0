//! From a call to an operator's parameters (D9): every argument finds its parameter, or is refused with what would fit.
//!
//! It knows the declarations, not what operators do: kinds and values of arguments are checked by their rules.

use dfc_grammar::ast::{Arg, Call, Expr, ExprKind, Ident, Literal, Span, TypeExpr, TypeKind};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{ItemKey, Loc, LocalDiagnostic, written};

use crate::names;
use crate::operators::{Kind, Operator, Param};

/// A call with its arguments in their parameters' places.
#[derive(Debug)]
pub struct Bound<'a> {
    /// The operator.
    pub operator: &'a Operator,
    /// The call.
    pub call: &'a Call,
    /// For each parameter its arguments (one at most, unless it is variadic).
    pub args: Vec<Vec<&'a Arg>>,
    /// Whether an argument was refused or is missing: then an output can't be told.
    pub failed: bool,
}

impl<'a> Bound<'a> {
    /// The argument of a parameter.
    pub fn get(&self, param: &str) -> Option<&'a Arg> {
        self.all(param).first().copied()
    }

    /// The arguments of a variadic parameter.
    pub fn all(&self, param: &str) -> &[&'a Arg] {
        let position = self.operator.params.iter().position(|p| p.name == param);
        position.map_or(&[], |i| self.args[i].as_slice())
    }

    /// The name of an enumeration: as given, or the default. `None`: what was given is refused (and reported).
    pub fn choice(&self, param: &str, item: &ItemKey, out: &mut Vec<LocalDiagnostic>) -> Option<String> {
        let declared = self.operator.param(param)?;
        let Kind::Enum(values) = &declared.kind else { return None };
        match self.get(param) {
            Some(arg) => choice(declared, values, arg, item, out),
            None => match declared.default.as_ref().map(|e| &e.kind) {
                Some(ExprKind::Name(name)) => Some(name.clone()),
                _ => None,
            },
        }
    }
}

/// The value of an enumeration.
pub fn choice(
    param: &Param,
    values: &[String],
    arg: &Arg,
    item: &ItemKey,
    out: &mut Vec<LocalDiagnostic>,
) -> Option<String> {
    let written = match &arg.value.kind {
        ExprKind::Name(name) => name.as_str(),
        ExprKind::Literal(Literal::Null) => "null",
        ExprKind::Literal(Literal::Bool(true)) => "true",
        ExprKind::Literal(Literal::Bool(false)) => "false",
        ExprKind::Literal(Literal::String(text)) => text.as_str(),
        _ => "",
    };
    let is_name = matches!(arg.value.kind, ExprKind::Name(_));
    if is_name && values.iter().any(|v| v == written) {
        return Some(written.to_string());
    }
    let at = Loc { item: item.clone(), span: arg.value.span };
    let message = match written {
        "" => format!("`{}` takes one of its names", param.name),
        _ if is_name => format!("`{written}` is not a value of `{}`", param.name),
        _ => format!("`{}` takes a bare name, not `{}`", param.name, shown(&arg.value)),
    };
    let problem = LocalDiagnostic::error("E0605", at.clone(), message, "not one of its values").note(format!(
        "`{}` is one of {}",
        param.name,
        listed(values)
    ));
    let lower = written.to_lowercase();
    let foreign = names::VALUES.iter().find(|(theirs, ours)| *theirs == lower && values.iter().any(|v| v == ours));
    out.push(
        match values
            .iter()
            .find(|v| **v == lower)
            .map(String::as_str)
            .or(foreign.map(|(_, ours)| *ours))
            .or_else(|| nearest(written, values.iter().map(String::as_str)))
        {
            Some(near) => problem.help(format!("write `{near}`")).fix(format!("write `{near}`"), at, near),
            None => problem,
        },
    );
    None
}

fn shown(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Literal(Literal::String(text)) => format!("\"{text}\""),
        ExprKind::Literal(Literal::Null) => "null".into(),
        ExprKind::Literal(Literal::Bool(value)) => value.to_string(),
        _ => "an expression".into(),
    }
}

fn is(ty: &TypeExpr, name: &str) -> bool {
    matches!(&ty.kind, TypeKind::Name(ty) if ty == name)
}

/// Names for a message: "`a`, `b`".
pub fn listed<S: AsRef<str>>(values: &[S]) -> String {
    values.iter().map(|v| format!("`{}`", v.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Binds the arguments of a call.
pub fn bind<'a>(operator: &'a Operator, call: &'a Call, item: &ItemKey, out: &mut Vec<LocalDiagnostic>) -> Bound<'a> {
    let mut binder = Binder {
        item,
        out,
        bound: Bound { operator, call, args: vec![Vec::new(); operator.params.len()], failed: false },
    };
    binder.run();
    binder.bound
}

struct Binder<'a, 'o> {
    item: &'o ItemKey,
    out: &'o mut Vec<LocalDiagnostic>,
    bound: Bound<'a>,
}

impl<'a> Binder<'a, '_> {
    fn run(&mut self) {
        let operator = self.bound.operator;
        let variadic = operator.params.iter().position(|p| p.variadic);
        let mut next = 0;
        let mut last_label: Option<&Ident> = None;
        for arg in &self.bound.call.args {
            match &arg.label {
                None => match variadic {
                    Some(position) => self.bound.args[position].push(arg),
                    None => {
                        if let Some(label) = last_label {
                            self.after_named(arg, label);
                            continue;
                        }
                        if self.second_path(next, arg) {
                            continue;
                        }
                        if next < operator.params.len() {
                            self.bound.args[next].push(arg);
                        } else {
                            self.surplus(arg);
                        }
                        next += 1;
                    }
                },
                Some(label) => {
                    last_label = Some(label);
                    let position = operator.params.iter().position(|p| p.name == label.text && !p.variadic);
                    match (position, variadic) {
                        (Some(position), _) => match self.bound.args[position].first() {
                            Some(first) => self.twice(arg, label, first.span),
                            None => self.bound.args[position].push(arg),
                        },
                        (None, Some(position)) if self.names_one(&operator.params[position], label, arg) => {
                            let first = self.bound.args[position]
                                .iter()
                                .find(|a| a.label.as_ref().is_some_and(|l| l.text == label.text));
                            match first {
                                Some(first) => self.twice(arg, label, first.span),
                                None => self.bound.args[position].push(arg),
                            }
                        }
                        _ => self.unknown(label, arg),
                    }
                }
            }
        }
        self.missing();
        self.exclusive();
    }

    /// Whether a label that is no parameter names one of a variadic parameter's values, as in `derive(day: …)`.
    fn names_one(&self, param: &Param, label: &Ident, arg: &Arg) -> bool {
        let takes_labels = match param.kind {
            Kind::Row(_) => self.bound.operator.output.contains(&param.name),
            Kind::Agg(_) => true,
            Kind::Field => self.bound.operator.output.contains("rename"),
            _ => false,
        };
        // `aggregate(group_by: [day], …)`: a list is never an aggregate.
        let list = matches!(arg.value.kind, ExprKind::List(_)) && matches!(param.kind, Kind::Agg(_));
        let where_clause = matches!(param.kind, Kind::Agg(_)) && ["where", "having"].contains(&label.text.as_str());
        takes_labels && !list && !where_clause
    }

    /// `csv("a.csv", "b.csv")`: a text where a schema is read.
    fn second_path(&mut self, position: usize, arg: &Arg) -> bool {
        let param = self.bound.operator.params.get(position);
        let text = matches!(arg.value.kind, ExprKind::Literal(Literal::String(_)));
        let paths = self.bound.operator.params.first().is_some_and(|first| first.name == "path");
        if !text || !paths || !param.is_some_and(|param| param.kind == Kind::Type) {
            return false;
        }
        let message = format!("`{}` takes one path", self.name());
        let problem = LocalDiagnostic::error("E0609", self.loc(arg.span), message, "a second one")
            .help("several files are a pattern: `\"data/*.csv\"`");
        self.fail(problem);
        true
    }

    fn loc(&self, span: Span) -> Loc {
        Loc { item: self.item.clone(), span }
    }

    fn fail(&mut self, problem: LocalDiagnostic) {
        self.bound.failed = true;
        self.out.push(problem);
    }

    fn name(&self) -> &'a str {
        &self.bound.operator.name
    }

    fn twice(&mut self, arg: &Arg, label: &Ident, first: Span) {
        let problem =
            LocalDiagnostic::error("E0603", self.loc(arg.span), format!("`{}` is given twice", label.text), "again")
                .related(self.loc(first), "first given here")
                .help("take one of both out");
        self.fail(problem);
    }

    fn after_named(&mut self, arg: &Arg, label: &Ident) {
        let message = "an argument without a name can't follow one with a name";
        let problem = LocalDiagnostic::error("E0607", self.loc(arg.span), message, "which parameter is this?")
            .related(self.loc(label.span), "a named one stands here")
            .help(match self.bound.operator.params.iter().zip(&self.bound.args).find(|(_, args)| args.is_empty()) {
                Some((param, _)) => format!("put it before the named ones, or give it its name: `{}: …`", param.name),
                None => "take it out: every parameter has its value".to_owned(),
            });
        self.fail(problem);
    }

    fn surplus(&mut self, arg: &Arg) {
        let count = self.bound.operator.params.len();
        let message = match count {
            0 => format!("`{}` takes no arguments", self.name()),
            1 => format!("`{}` takes one argument", self.name()),
            n => format!("`{}` takes {n} arguments at most", self.name()),
        };
        let problem = LocalDiagnostic::error("E0609", self.loc(arg.span), message, "one too many");
        let problem =
            if count > 0 { problem.note(format!("`{}` has {}", self.name(), self.params())) } else { problem };
        let problem = match self.name() {
            "filter" => problem.help("join conditions with `and`: `filter(a > 1 and b < 9)`"),
            _ => problem,
        };
        self.fail(problem);
    }

    fn params(&self) -> String {
        self.bound.operator.params.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")
    }

    fn unknown(&mut self, label: &Ident, arg: &Arg) {
        let operator = self.bound.operator;
        let at = self.loc(label.span);
        let message = format!("`{}` is not a parameter of `{}`", label.text, operator.name);
        let problem = LocalDiagnostic::error("E0601", at.clone(), message, "unknown parameter");
        let free = |name: &&str| operator.param(name).is_some();
        let translated = names::PARAMETERS.iter().filter(|(theirs, _)| *theirs == label.text).map(|(_, ours)| *ours);
        if let Some(ours) = translated.clone().find(free) {
            self.fail(problem.help(format!("it is called `{ours}` here")).fix(format!("write `{ours}`"), at, ours));
            return;
        }
        if operator.name == "aggregate" && label.text == "where" {
            self.fail(problem.help("write it into an aggregate, `sum(x, where: c)`, or put a `filter(c)` before"));
            return;
        }
        if operator.name == "cast" {
            let ty = match &arg.value.kind {
                ExprKind::Name(ty) | ExprKind::Literal(Literal::String(ty)) => ty,
                _ => "int64",
            };
            self.fail(problem.help(format!("the type stands after `as`: `cast({} as {ty})`", written(&label.text))));
            return;
        }
        if operator.name == "sort" {
            let value = match &arg.value.kind {
                ExprKind::Name(name) => written(name),
                _ => "price".into(),
            };
            self.fail(problem.help(match label.text.to_lowercase().as_str() {
                "by" | "key" | "keys" | "column" | "columns" | "field" | "fields" | "order_by" => {
                    format!("the values stand without a name: `sort({value})`")
                }
                field if ["asc", "desc"].contains(&value.as_str()) => {
                    format!("the order is written around the value: `sort({value}({}))`", written(field))
                }
                _ => "the order is written around a value: `sort(desc(price), day)`".to_owned(),
            }));
            return;
        }
        if let Some((_, instead)) = names::ELSEWHERE.iter().find(|(theirs, _)| *theirs == label.text) {
            self.fail(problem.help(*instead));
            return;
        }
        let known = operator.params.iter().map(|p| p.name.as_str());
        let problem = match nearest(&label.text, known) {
            Some(near) => problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, near),
            None if operator.params.is_empty() => problem.note(format!("`{}` takes no parameters", operator.name)),
            None => problem.note(format!("`{}` has {}", operator.name, self.params())),
        };
        self.fail(problem);
    }

    fn missing(&mut self) {
        // A refused argument may have been meant for the missing parameter.
        if self.bound.failed {
            return;
        }
        let operator = self.bound.operator;
        for (position, param) in operator.params.iter().enumerate() {
            let given = !self.bound.args[position].is_empty();
            let empty = param.variadic && !given && operator.name != "union";
            if given || !(param.required() || empty) {
                continue;
            }
            if param.variadic
                && operator.params.iter().zip(&self.bound.args).any(|(p, args)| !p.variadic && !args.is_empty())
            {
                continue;
            }
            let message = match param.variadic {
                true => format!("`{}` needs at least one argument", operator.name),
                false => format!("`{}` needs `{}`", operator.name, param.name),
            };
            let mut problem =
                LocalDiagnostic::error("E0602", self.loc(self.bound.call.name.span), message, "missing here");
            if let Some(doc) = &param.doc {
                problem = problem.note(format!("`{}`: {}", param.name, doc.lines().next().unwrap_or_default()));
            }
            problem = problem.help(match (param.variadic, &param.kind) {
                (true, _) => format!("it is declared as `{}`", operator.signature()),
                (false, Kind::Row(ty)) if is(ty, "bool") => {
                    format!("write what is to hold: `{}(status == \"paid\")`", operator.name)
                }
                (false, Kind::Const(ty)) if is(ty, "string") => {
                    format!("add `{}: \"…\"`", param.name)
                }
                (false, Kind::Const(ty)) if position == 0 && is(ty, "int64") => {
                    format!("write how many: `{}(10)`", operator.name)
                }
                (false, Kind::Stream | Kind::Source) => {
                    format!("write which stream: `{}(users, on: id == right.id)`", operator.name)
                }
                (false, Kind::Const(ty)) if is(ty, "secret") => {
                    format!("add `{}: secret(\"NAME\")`, an environment variable", param.name)
                }
                (false, Kind::Pair) => "add `on: id == right.id`, with the names of both sides".into(),
                (false, _) => format!("add `{}: …`", param.name),
            });
            self.fail(problem);
        }
    }

    /// Parameters that exclude one another, by the clause `excludes a b`.
    fn exclusive(&mut self) {
        let operator = self.bound.operator;
        for words in operator.excludes() {
            let given: Vec<(&String, &Arg)> =
                words.iter().filter_map(|word| Some((word, self.bound.get(word)?))).collect();
            if let [(first, first_arg), (second, second_arg), ..] = given.as_slice() {
                let message = format!("`{first}` and `{second}` can't be given together");
                let problem = LocalDiagnostic::error("E0608", self.loc(second_arg.span), message, "excludes the other")
                    .related(self.loc(first_arg.span), "given here")
                    .help("take one of both out");
                self.fail(problem);
            }
        }
    }
}
