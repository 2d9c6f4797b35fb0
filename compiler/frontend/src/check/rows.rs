//! Operators that look at one row at a time: `filter require derive select drop rename cast take` (D7).

use std::collections::BTreeSet;

use dfc_grammar::ast::{Arg, Expr, ExprKind, Literal, RecordEntry, TypeKind, UnaryOp};
use dfc_ir::plan::{Op, OptionValue};
use dfc_ir::{Expr as Ir, Value};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{Column, FunctionTable, Gone, LocalDiagnostic, Scope, written};

use super::{Flow, ItemContext, broken, identity};
use crate::bind::Bound;

impl ItemContext<'_> {
    pub(super) fn filter(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let (Some(mut columns), Some(arg)) = (flow.columns, bound.get("predicate")) else { return Flow::unknown() };
        let checked = self.with(Scope::Row(&columns), |checker| checker.check_predicate(&arg.value));
        let op = checked.map(|predicate| {
            for index in predicate.narrowed {
                columns[index].ty.nullable = false;
                let step = self.step(bound.call.name.span, "not null from this filter on");
                columns[index].path.push(step);
            }
            Op::Filter(predicate.expr)
        });
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    pub(super) fn require(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let message = self.constant_arg(bound, "message");
        let (Some(columns), Some(arg)) = (flow.columns, bound.get("condition")) else { return Flow::unknown() };
        let checked = self.with(Scope::Row(&columns), |checker| checker.check_predicate(&arg.value));
        // The condition's own text is not known here; the plan puts it in where the message is empty.
        let message = match message {
            Some(OptionValue::Value(Value::Str(text))) => Some(text.into_owned()),
            Some(_) => Some(String::new()),
            None => None,
        };
        let op = checked.zip(message).map(|(predicate, message)| Op::Require { condition: predicate.expr, message });
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    pub(super) fn derive(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(input) = flow.columns else { return Flow::unknown() };
        let mut columns = input.clone();
        let mut exprs: Vec<Option<Ir>> = identity(&input).into_iter().map(Some).collect();
        let sound = !bound.failed;
        let before = self.out.len();
        let mut nameless = false;
        for arg in bound.all("fields") {
            let Some(name) = self.output_name(arg, bound, false) else {
                nameless = true;
                continue;
            };
            let (column, expr) = self.computed(&input, arg, &name);
            match columns.iter().position(|c| c.name == name) {
                Some(position) => {
                    columns[position] = column;
                    exprs[position] = expr;
                }
                None => {
                    columns.push(column);
                    exprs.push(expr);
                }
            }
        }
        self.siblings(before, bound, "fields");
        if nameless {
            // How the field was to be called nobody knows.
            return Flow::unknown();
        }
        let op = exprs.into_iter().collect::<Option<Vec<Ir>>>().filter(|_| sound).map(Op::Project);
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    /// Says of unknown names among the findings from `before` on which of them the same operator computes.
    pub(super) fn siblings(&mut self, before: usize, bound: &Bound<'_>, param: &str) {
        let operator = &bound.operator.name;
        for label in bound.all(param).iter().filter_map(|arg| arg.label.as_ref()) {
            let name = &label.text;
            let message = format!("there is no field `{name}` here");
            let at = self.loc(label.span);
            for problem in self.out[before..].iter_mut().filter(|p| p.code == "E0410" && p.message == message) {
                problem.related.clear();
                problem.related.push((at.clone(), "computed by the same operator".into()));
                problem.notes.clear();
                problem.fixes.clear();
                problem.help = Some(match operator.as_str() {
                    "aggregate" => format!(
                        "every argument sees the operator's input only: use `{name}` in a `derive` or `filter` behind it"
                    ),
                    _ => format!(
                        "every argument sees the operator's input only: compute `{name}` in a `{operator}` of its own before"
                    ),
                });
            }
        }
    }

    pub(super) fn select(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(input) = flow.columns else { return Flow::unknown() };
        let (mut columns, mut exprs): (Vec<Column>, Vec<Option<Ir>>) = (Vec::new(), Vec::new());
        let mut sound = !bound.failed;
        let before = self.out.len();
        let mut nameless = false;
        for arg in bound.all("fields") {
            let Some(name) = self.output_name(arg, bound, true) else {
                nameless = true;
                continue;
            };
            if columns.iter().any(|c| c.name == name) {
                // Two labels were refused by the binding already.
                self.clash(arg, &name);
                sound = false;
                continue;
            }
            let (column, expr) = self.computed(&input, arg, &name);
            columns.push(column);
            exprs.push(expr);
        }
        self.siblings(before, bound, "fields");
        if nameless {
            // How the field was to be called nobody knows.
            return Flow::unknown();
        }
        let op = exprs.into_iter().collect::<Option<Vec<Ir>>>().filter(|_| sound).map(Op::Project);
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    fn clash(&mut self, arg: &Arg, name: &str) {
        let problem = LocalDiagnostic::error(
            "E0403",
            self.loc(arg.span),
            format!("the field `{name}` is there already"),
            "a second one of this name",
        )
        .help(match (&arg.label, &arg.value.kind) {
            (None, ExprKind::Name(_)) => format!("take it out, or give it another name: `other_{name}: {name}`"),
            _ => format!("give it another name: `other_{name}: …`"),
        });
        self.error(problem);
    }

    pub(super) fn drop_fields(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(input) = flow.columns else { return Flow::unknown() };
        let mut gone = BTreeSet::new();
        let mut sound = !bound.failed;
        for arg in bound.all("names") {
            match self.field(&input, &arg.value) {
                Some(index) => {
                    gone.insert(index);
                }
                None => {
                    sound = false;
                    if let (ExprKind::Name(name), Some(problem)) = (&arg.value.kind, self.out.last_mut())
                        && Gone::find(&self.gone, name).is_some_and(|gone| gone.now.is_none())
                    {
                        problem.help = Some("leave it out here: it is gone already".into());
                    }
                }
            }
        }
        let keep: Vec<usize> = (0..input.len()).filter(|i| !gone.contains(i)).collect();
        if keep.is_empty() && !input.is_empty() {
            let problem = LocalDiagnostic::error(
                "E0456",
                self.loc(bound.call.span),
                "nothing is left after this",
                "drops every field",
            )
            .help("keep at least one field");
            self.error(problem);
            return Flow::unknown();
        }
        let exprs = keep.iter().map(|&i| Ir::column(i, input[i].ty.clone())).collect();
        let columns = keep.iter().map(|&i| input[i].clone()).collect();
        self.node(bound.call, sound.then_some(Op::Project(exprs)), vec![flow.output], Some(columns))
    }

    pub(super) fn rename(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(input) = flow.columns else { return Flow::unknown() };
        let mut columns = input.clone();
        let mut sound = !bound.failed;
        let mut renamed: Vec<(usize, &Arg)> = Vec::new();
        for arg in bound.all("fields") {
            let Some(label) = &arg.label else {
                let problem = LocalDiagnostic::error(
                    "E0611",
                    self.loc(arg.span),
                    "`rename` needs the new name",
                    "which new name?",
                )
                .help(match &arg.value.kind {
                    ExprKind::Record(entries) => match entries.first() {
                        // `{ status: "state" }` of other tools: the old name stands first there.
                        Some(RecordEntry::Field(old, Expr { kind: ExprKind::Literal(Literal::String(new)), .. })) => {
                            format!(
                                "leave the braces out, the new name first: `rename({}: {})`",
                                written(new),
                                old.text
                            )
                        }
                        _ => "leave the braces out: `rename(new: old)`".to_owned(),
                    },
                    _ => "write `rename(new: old)`".to_owned(),
                });
                self.error(problem);
                sound = false;
                continue;
            };
            let Some(index) = self.renamed_field(&input, arg, &label.text) else {
                // What it was to be called is used further on, whichever of both names was to be the new one.
                columns.push(broken(&label.text, vec![self.step(arg.span, "renamed here")]));
                if let ExprKind::Name(old) = &arg.value.kind {
                    columns.push(broken(old, vec![self.step(arg.span, "renamed here")]));
                }
                sound = false;
                continue;
            };
            if let Some((_, first)) = renamed.iter().find(|(other, _)| *other == index) {
                let copy =
                    format!("take one of both out; for both, `derive({}: {})` before", label.text, input[index].name);
                self.twice(first, arg, &input[index].name, "renamed", copy);
                columns.push(broken(&label.text, vec![self.step(arg.span, "renamed here")]));
                sound = false;
                continue;
            }
            columns[index].name.clone_from(&label.text);
            let step = self.renamed(arg.span, &input[index].name);
            columns[index].path.push(step);
            renamed.push((index, arg));
        }
        for (index, arg) in renamed {
            let name = &columns[index].name;
            if columns.iter().enumerate().any(|(i, c)| i != index && c.name == *name && !c.broken) {
                let name = name.clone();
                self.clash(arg, &name);
                sound = false;
            }
        }
        let op = sound.then(|| Op::Project(identity(&input)));
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    /// A field that an operator was told of by two arguments, of which one counts.
    fn twice(&mut self, first: &Arg, again: &Arg, field: &str, done: &str, help: String) {
        let problem =
            LocalDiagnostic::error("E0603", self.loc(again.span), format!("`{field}` is {done} twice"), "again")
                .related(self.loc(first.span), format!("first {done} here"))
                .help(help);
        self.error(problem);
    }

    /// The old field of `rename(new: old)`; knows the two turned round.
    fn renamed_field(&mut self, input: &[Column], arg: &Arg, new: &str) -> Option<usize> {
        if let ExprKind::Name(old) = &arg.value.kind
            && !input.iter().any(|c| c.name == *old)
            && input.iter().any(|c| c.name == new)
        {
            let message = format!("there is no field `{old}` to rename");
            let problem = LocalDiagnostic::error("E0404", self.loc(arg.value.span), message, "unknown field")
                .help(format!("the new name stands first: `rename({old}: {new})`"))
                .fix("turn the names round", self.loc(arg.span), format!("{old}: {new}"));
            self.error(problem);
            return None;
        }
        self.field(input, &arg.value)
    }

    pub(super) fn cast(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(input) = flow.columns else { return Flow::unknown() };
        let mut columns = input.clone();
        let mut exprs: Vec<Option<Ir>> = identity(&input).into_iter().map(Some).collect();
        let mut sound = !bound.failed;
        let mut casts: Vec<(usize, &Arg)> = Vec::new();
        for (number, arg) in bound.all("casts").iter().enumerate() {
            let ExprKind::Cast { value, .. } = &arg.value.kind else {
                let help = match (&arg.value.kind, bound.all("casts").get(number + 1).map(|next| &next.value.kind)) {
                    (ExprKind::Name(field), Some(ExprKind::Literal(Literal::String(ty)) | ExprKind::Name(ty))) => {
                        format!("write `cast({} as {ty})`", written(field))
                    }
                    _ => "write `cast(id as int32)`".to_owned(),
                };
                let problem = LocalDiagnostic::error(
                    "E0612",
                    self.loc(arg.span),
                    "`cast` takes fields with their new types",
                    "not a cast",
                )
                .help(help);
                self.error(problem);
                // What follows is probably the type of this one.
                sound = false;
                break;
            };
            let Some(index) = self.field(&input, value) else {
                sound = false;
                continue;
            };
            if let Some((_, first)) = casts.iter().find(|(other, _)| *other == index) {
                self.twice(first, arg, &input[index].name, "cast", "take one of both out".into());
                sound = false;
                continue;
            }
            casts.push((index, arg));
            let expr = self.expr(&input, &arg.value, None);
            let step = self.step(arg.span, "cast here");
            match &expr {
                Some(expr) => {
                    columns[index].ty = expr.ty.clone();
                    columns[index].of_text = Scope::Row(&input).made_of_text(expr);
                    columns[index].path.push(step);
                }
                None => columns[index] = broken(&input[index].name, input[index].path.clone()),
            }
            exprs[index] = expr;
        }
        let op = exprs.into_iter().collect::<Option<Vec<Ir>>>().filter(|_| sound).map(Op::Project);
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    pub(super) fn take(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let limit = self.constant_arg(bound, "n");
        let offset = self.constant_arg(bound, "offset");
        let number = |value: Option<OptionValue>| match value {
            Some(OptionValue::Value(Value::Int(n))) => u64::try_from(n).ok(),
            _ => None,
        };
        let op = number(limit).zip(number(offset)).map(|(limit, offset)| Op::Take { limit, offset });
        if op.is_some() {
            let at = self.loc(bound.call.name.span);
            self.order_matters(&flow.nature, "which rows `take` keeps", at);
        }
        self.node(bound.call, op, vec![flow.output], flow.columns)
    }

    /// The name that an argument's value gets: its label, or (where that will do) the field's own.
    pub(super) fn output_name(&mut self, arg: &Arg, bound: &Bound<'_>, bare: bool) -> Option<String> {
        match (&arg.label, &arg.value.kind) {
            (Some(label), _) => Some(label.text.clone()),
            (None, ExprKind::Name(name)) if bare => Some(name.clone()),
            (None, ExprKind::Error) => None,
            (None, kind) => {
                let help = nameless(kind, &bound.operator.name);
                let message = format!("`{}` needs a name for this value", bound.operator.name);
                self.error(LocalDiagnostic::error("E0611", self.loc(arg.span), message, "which name?").help(help));
                None
            }
        }
    }

    /// A computed field. A bare field keeps its way.
    pub(super) fn computed(&mut self, input: &[Column], arg: &Arg, name: &str) -> (Column, Option<Ir>) {
        let Some(expr) = self.expr(input, &arg.value, None) else {
            return (broken(name, vec![self.step(arg.span, "computed here")]), None);
        };
        let path = match expr.kind {
            dfc_ir::ExprKind::Column(index) => {
                let mut path = input[index].path.clone();
                if input[index].name != name {
                    path.push(self.renamed(arg.span, &input[index].name));
                }
                path
            }
            _ => vec![self.step(arg.span, "computed here")],
        };
        let of_text = Scope::Row(input).made_of_text(&expr);
        (Column { of_text, ..Column::new(name, expr.ty.clone(), path) }, Some(expr))
    }

    /// A field by its bare name. Broken fields are refused silently.
    pub(super) fn field(&mut self, columns: &[Column], e: &Expr) -> Option<usize> {
        let name = match &e.kind {
            ExprKind::Name(name) => name,
            ExprKind::Error => return None,
            ExprKind::Literal(Literal::String(text)) if columns.iter().any(|c| c.name == *text) => {
                let at = self.loc(e.span);
                let problem = LocalDiagnostic::error(
                    "E0612",
                    at.clone(),
                    "a field's name stands without quotes",
                    "a text, not a field",
                )
                .help(format!("write `{text}`"))
                .fix("take the quotes out", at, text.as_str());
                self.error(problem);
                return None;
            }
            kind => {
                let problem =
                    LocalDiagnostic::error("E0612", self.loc(e.span), "a field's name is expected here", "not a field")
                        .help(match names_in(kind) {
                            Some(names) => format!("leave the brackets out: `{names}`"),
                            None => "compute it with `derive` before, and name it here".to_owned(),
                        });
                self.error(problem);
                return None;
            }
        };
        if let Some(index) = columns.iter().position(|c| c.name == *name) {
            return (!columns[index].broken).then_some(index);
        }
        let at = self.loc(e.span);
        let problem =
            LocalDiagnostic::error("E0404", at.clone(), format!("there is no field `{name}` here"), "unknown field");
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let near = nearest(name, names.iter().copied()).map(str::to_string);
        let problem = match names.len() {
            1..=12 => problem.note(format!("the fields here are {}", crate::bind::listed(&names))),
            _ => problem,
        };
        self.error(match (Gone::find(&self.gone, name), near) {
            (Some(gone), _) => {
                let problem = problem.related_all(gone.places()).help(gone.help.clone());
                match &gone.now {
                    Some(now) => problem.fix(format!("write `{now}`"), at, written(now)),
                    None => problem,
                }
            }
            (None, Some(near)) => {
                problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, written(&near))
            }
            (None, None) => problem,
        });
        None
    }
}

/// The names in a list of names: `id, status`.
pub(super) fn names_in(kind: &ExprKind) -> Option<String> {
    let ExprKind::List(items) = kind else { return None };
    let name = |item: &Arg| match &item.value.kind {
        ExprKind::Name(name) | ExprKind::Literal(Literal::String(name)) => Some(written(name)),
        _ => None,
    };
    Some(items.iter().map(name).collect::<Option<Vec<_>>>()?.join(", "))
}

/// How a value without a name is given one.
fn nameless(kind: &ExprKind, operator: &str) -> String {
    match kind {
        ExprKind::Cast { value, ty, .. } if matches!(ty.kind, TypeKind::Name(_)) => {
            let TypeKind::Name(new) = &ty.kind else { return String::new() };
            let old = match &value.kind {
                ExprKind::Name(old) => written(old),
                ExprKind::Call(call) => format!("{}(…)", call.name.text),
                _ => "…".into(),
            };
            format!("a new name stands before the value, `{operator}({new}: {old})`; `as` converts to a type")
        }
        ExprKind::Name(field) if operator == "aggregate" => {
            format!("to group by it write `aggregate(by: [{0}], …)`; a value is `name: max({0})`", written(field))
        }
        ExprKind::Call(call) if operator != "aggregate" && is_aggregate(&call.name.text) => {
            let name = &call.name.text;
            format!("`{name}` looks at many rows: write `|> aggregate(by: […], {name}: {name}(…))`")
        }
        ExprKind::Call(call) => format!("put a name before it: `{operator}({}: …)`", call.name.text),
        ExprKind::Literal(Literal::Int(_)) => {
            format!("put a name before it, `{operator}(name: …)`; a long number has no commas, `1000`")
        }
        ExprKind::Literal(Literal::String(text)) if operator == "select" && is_word(text) => {
            format!("a field stands without quotes, `select({text})`; a text needs a name, `select(name: \"{text}\")`")
        }
        ExprKind::Unary(UnaryOp::Neg, value) if operator == "select" => match &value.kind {
            ExprKind::Name(field) => {
                format!(
                    "`drop({0})` takes a field away; its negative value needs a name, `select(name: -{0})`",
                    written(field)
                )
            }
            _ => format!("put a name before it: `{operator}(name: …)`"),
        },
        ExprKind::Field(rows, field) if matches!(rows.kind, ExprKind::Name(_)) => {
            let field = written(&field.text);
            format!(
                "put a name before it, `{operator}({field}: …)`; a field of the rows stands by its name alone, `{field}`"
            )
        }
        _ => match names_in(kind) {
            Some(names) => format!("leave the brackets out: `{operator}({names})`"),
            None => format!("put a name before it: `{operator}(name: …)`"),
        },
    }
}

/// Whether a text can be a name as it is.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_aggregate(function: &str) -> bool {
    FunctionTable::standard().get(function).is_some_and(|function| function.aggregate)
}
