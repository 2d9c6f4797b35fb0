//! The handlers of an operator of one's own: `on row { … }`, `on end { … }` and their statements.

use dfc_grammar::ast::{self, Expr, Handler, Ident, Span, StateDecl, Stmt};
use dfc_ir::{DataType, Expr as Ir, ExprKind, Field, Type};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{Checker, Column, LocalDiagnostic, PathStep, Target};

use super::{INPUT, OperatorCheck};
use crate::bind::listed;

/// When a handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Row,
    End,
}

/// What the statements of a handler see and give.
struct Body<'b> {
    event: Event,
    states: &'b [&'b StateDecl],
    /// The names that belong to a row.
    of_row: Vec<String>,
    /// The record that `emit` gives: the input's fields, then those of the operator; `None` where it was refused.
    output: Option<Vec<Field>>,
    emits: bool,
}

impl OperatorCheck<'_> {
    pub(super) fn handlers(
        &mut self,
        names: &[Column],
        rows: &[bool],
        states: &[&StateDecl],
        output: Option<(bool, Vec<Field>)>,
    ) {
        let mut seen: Vec<&Handler> = Vec::new();
        let (mut emits, mut unknown) = (false, false);
        let decl = self.decl;
        for handler in &decl.handlers {
            let event = match handler.event.text.as_str() {
                "row" => Event::Row,
                "end" => Event::End,
                other => {
                    let message = format!("there is no event `{other}`");
                    self.error("E0221", handler.event.span, message, "unknown event", "write `on row` or `on end`");
                    unknown = true;
                    continue;
                }
            };
            if let Some(first) = seen.iter().find(|first| first.event.text == handler.event.text) {
                let message = format!("`on {}` is there twice", handler.event.text);
                let problem = LocalDiagnostic::error("E0221", self.loc(handler.event.span), message, "again")
                    .related(self.loc(first.event.span), "the first")
                    .help("put the statements of both into one");
                self.out.push(problem);
                continue;
            }
            seen.push(handler);
            let input = || Field::new(INPUT, DataType::of(Type::Bool));
            let step = PathStep::new(self.loc(handler.event.span), "the row");
            let row = Column::new("row", DataType::of(Type::Record(vec![input()])), vec![step]);
            let mut scope: Vec<Column> = names.iter().cloned().chain([row]).collect();
            let of_row = names.iter().zip(rows).filter(|(_, row)| **row).map(|(column, _)| column.name.clone());
            let output = output.as_ref().map(|(passes, own)| {
                let passed = passes.then(input);
                passed.into_iter().chain(own.iter().cloned()).collect()
            });
            let of_row = of_row.chain(["row".to_owned()]).collect();
            let mut body = Body { event, states, of_row, output, emits: false };
            self.statements(&handler.body, &mut scope, &mut body);
            emits |= body.emits;
        }
        let name = &decl.name.text;
        if unknown {
            return;
        }
        if !seen.iter().any(|handler| handler.event.text == "row") {
            let message = format!("`{name}` does nothing with its rows");
            let help = "add what happens with each row: `on row { emit row; }`";
            self.error("E0221", decl.name.span, message, "no `on row`", help);
        } else if !emits {
            let help = "give a row somewhere: `emit row;`";
            self.error("E0224", decl.name.span, format!("`{name}` never gives a row"), "no `emit`", help);
        }
    }

    fn statements(&mut self, list: &[Stmt], scope: &mut Vec<Column>, body: &mut Body<'_>) {
        let outer = scope.len();
        for statement in list {
            match statement {
                Stmt::Let(name, value) => {
                    let ty = self.value(value, scope, body, |checker| checker.check(value, None)).map(|value| value.ty);
                    self.declare(scope, &name.text, name.span, ty, "a value");
                }
                Stmt::Assign(name, value) => self.assign(name, value, scope, body),
                Stmt::Emit(value, span) => {
                    body.emits = true;
                    self.emit(value, *span, scope, body);
                }
                Stmt::If(condition, then, otherwise) => {
                    self.value(condition, scope, body, |checker| checker.check_predicate(condition).map(|c| c.expr));
                    self.statements(then, scope, body);
                    self.statements(otherwise, scope, body);
                }
            }
        }
        scope.truncate(outer);
    }

    /// Checks an expression; what belongs to a row is refused where there is none.
    fn value(
        &mut self,
        e: &Expr,
        scope: &[Column],
        body: &Body<'_>,
        check: impl FnOnce(&mut Checker<'_>) -> Option<Ir>,
    ) -> Option<Ir> {
        let value = self.with(scope, check)?;
        let used = (body.event == Event::End).then(|| row_name(&value, scope, &body.of_row)).flatten();
        let Some(name) = used else { return Some(value) };
        let message = format!("`{name}` belongs to a row, and at the end there is none");
        self.error("E0226", e.span, message, "of a row", "keep what is needed at the end in a state");
        None
    }

    fn assign(&mut self, name: &Ident, value: &Expr, scope: &[Column], body: &Body<'_>) {
        if !body.states.iter().any(|state| state.name.text == name.text) {
            self.no_state(name, scope, body);
            return;
        }
        let known = scope.iter().find(|column| column.name == name.text && !column.broken);
        let ty = known.map(|column| column.ty.clone());
        let target = Target::Declaration { kind: "state", name: name.text.clone() };
        self.value(value, scope, body, |checker| match &ty {
            Some(ty) => checker.check_to(value, ty, &target),
            None => checker.check(value, None),
        });
    }

    fn no_state(&mut self, name: &Ident, scope: &[Column], body: &Body<'_>) {
        let column = scope.iter().find(|column| column.name == name.text);
        let message = match column {
            Some(_) => format!("`{}` is no state: it can't be given another value", name.text),
            None => format!("there is no state `{}`", name.text),
        };
        let mut problem = LocalDiagnostic::error("E0223", self.loc(name.span), message, "no state");
        if let Some(step) = column.and_then(|column| column.path.first()) {
            problem = problem.related(step.loc.clone(), step.words.clone());
        }
        let states: Vec<&str> = body.states.iter().map(|state| state.name.text.as_str()).collect();
        let near = if column.is_none() { nearest(&name.text, states.iter().copied()) } else { None };
        let problem = match near {
            Some(near) => {
                let at = self.loc(name.span);
                problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, near)
            }
            None if column.is_some() => problem.help("give the new value a name of its own: `let x = …;`"),
            None if states.is_empty() => problem.help(format!("declare it: `state {}: int64 = 0`", name.text)),
            None => {
                problem.help(format!("the states are {}; a value of this row is named with `let`", listed(&states)))
            }
        };
        self.out.push(problem);
    }

    /// A row that is given must have the fields of the output.
    fn emit(&mut self, e: &Expr, span: Span, scope: &[Column], body: &Body<'_>) {
        let expected = body.output.as_ref().map(|fields| DataType::of(Type::Record(fields.clone())));
        let passes = body.output.iter().flatten().any(|field| field.name == INPUT);
        let given = if passes && body.event == Event::End {
            // That there is no row is said once, below.
            self.with(scope, |checker| checker.check(e, expected.as_ref()))
        } else {
            self.value(e, scope, body, |checker| checker.check(e, expected.as_ref()))
        };
        let (Some(given), Some(output)) = (given, &body.output) else { return };
        let Type::Record(fields) = &given.ty.ty else {
            let message = format!("`emit` gives a row, not a value of type {}", given.ty);
            self.error("E0224", e.span, message, "no row", "write `emit row;` or `emit { ...row, name: value };`");
            return;
        };
        let mut missing: Vec<&str> = Vec::new();
        for field in output {
            let Some(at) = fields.iter().position(|other| other.name == field.name) else {
                missing.push(&field.name);
                continue;
            };
            let value = match &given.kind {
                ExprKind::Record(values) => values.get(at).cloned(),
                _ => None,
            };
            let value = value.unwrap_or_else(|| Ir::column(usize::MAX, fields[at].ty.clone()));
            let target = Target::Declaration { kind: "field", name: field.name.clone() };
            let at = span_of(e, &field.name);
            self.with(scope, |checker| checker.assign(value, &field.ty, at, &target).is_some());
        }
        let known = |name: &str| output.iter().any(|field| field.name == name);
        let surplus: Vec<&str> = fields.iter().map(|field| field.name.as_str()).filter(|name| !known(name)).collect();
        if let Some((message, help)) = misfit(&missing, &surplus, passes && body.event == Event::End) {
            let problem = LocalDiagnostic::error("E0224", self.loc(span), message, "given here")
                .related(self.loc(self.decl.output.span), "the output")
                .help(help);
            self.out.push(problem);
        }
    }
}

/// Where the value of a field stands in a record.
fn span_of(record: &Expr, name: &str) -> Span {
    let ast::ExprKind::Record(entries) = &record.kind else { return record.span };
    let value = entries.iter().find_map(|entry| match entry {
        ast::RecordEntry::Field(field, value) if field.text == name => Some(value.span),
        _ => None,
    });
    value.unwrap_or(record.span)
}

/// What is wrong with the fields of a row that is given, and what to do.
fn misfit(missing: &[&str], surplus: &[&str], without_row: bool) -> Option<(String, &'static str)> {
    let named = |names: &[&str]| listed(&names.iter().copied().filter(|name| *name != INPUT).collect::<Vec<_>>());
    Some(if without_row {
        let help = "an operator that gives rows at the end gives only fields of its own: `-> { total: int64 }`";
        ("at the end there is no row whose fields could be given".to_owned(), help)
    } else if missing.contains(&INPUT) {
        ("the fields of the input are missing in this row".to_owned(), "pass them on: `emit { ...row, … };`")
    } else if !missing.is_empty() {
        (format!("this row lacks {}", named(missing)), "give every field that the output declares")
    } else if surplus.contains(&INPUT) {
        let help = "leave `...row` out, or declare them: `-> input + { … }`";
        ("the output doesn't have the fields of the input".to_owned(), help)
    } else if !surplus.is_empty() {
        (format!("the output has no {}", named(surplus)), "declare it behind `->`, or leave it out")
    } else {
        return None;
    })
}

/// The first of these names that an expression uses.
fn row_name<'s>(e: &Ir, scope: &'s [Column], of_row: &[String]) -> Option<&'s str> {
    if let ExprKind::Column(index) = e.kind {
        let name = scope.get(index).map(|column| column.name.as_str());
        return name.filter(|name| of_row.iter().any(|of_row| of_row == name));
    }
    let mut found = None;
    e.for_each_child(&mut |child| found = found.or_else(|| row_name(child, scope, of_row)));
    found
}
