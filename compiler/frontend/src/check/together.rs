//! Arguments that belong together, or don't (D9): the clauses `one_of`, `needs`, `only`, `never`, `differ` and `apart` of the
//! declarations.
//!
//! It knows no operator by name, and not what the arguments mean.

use dfc_grammar::ast::ExprKind;
use dfc_ir::Options;
use dfc_ir::plan::OptionValue;
use dfc_typeck::LocalDiagnostic;

use super::ItemContext;
use crate::bind::{Bound, listed};
use crate::operators::{Clause, Condition, Kind, Role, type_text};

impl ItemContext<'_> {
    /// Whether the arguments of a source or a sink go together.
    pub(super) fn go_together(&mut self, bound: &Bound<'_>, options: &Options) -> bool {
        let before = self.out.len();
        for clause in &bound.operator.clauses {
            let holds = clause.condition.as_ref().is_none_or(|condition| condition.holds(options));
            match (clause.name.as_str(), clause.words.as_slice()) {
                ("one_of", words) if words.iter().all(|word| bound.get(word).is_none()) => self.none_of(bound, words),
                ("needs", [param]) if holds && !is_given(bound, param) => {
                    self.needed(bound, param, clause.condition.as_ref());
                }
                ("only", [param]) if !holds && !self.is_default(bound, options, param) => {
                    self.idle(bound, param, clause.condition.as_ref());
                }
                ("never", [param, value]) if holds => self.impossible(bound, options, param, value, clause),
                ("differ", [one, other]) => self.same(bound, options, one, other),
                ("apart", [one, others @ ..]) => self.held(bound, options, one, others),
                _ => {}
            }
        }
        if self.out.len() == before {
            self.go_beside(bound, options);
        }
        self.out.len() == before
    }

    /// A value that the operator can't do anything with, always or under the clause's condition.
    fn impossible(&mut self, bound: &Bound<'_>, options: &Options, param: &str, value: &str, clause: &Clause) {
        let given = Condition { negated: false, param: param.to_owned(), value: Some(value.to_owned()) };
        let Some(arg) = bound.get(param).filter(|_| given.holds(options)) else { return };
        let name = &bound.operator.name;
        let at = self.loc(arg.span);
        let problem = match &clause.condition {
            None if given.is_stream() => {
                let (verb, stream) = match bound.operator.role {
                    Role::Source => ("read from", "the standard input"),
                    _ => ("written to", "the standard output"),
                };
                LocalDiagnostic::error("E0606", at, format!("`{name}` can't be {verb} {stream}"), stream)
                    .help("name a file (one that is called `-` is `./-`)")
            }
            None => LocalDiagnostic::error("E0606", at, format!("`{name}` has no {}", said(&given)), "not here"),
            Some(condition) => {
                let message = format!("{} of `{name}` goes with a folder of parts only", said(&given));
                let mut problem = LocalDiagnostic::error("E0608", at, message, "a file's path is given");
                if let Some(other) = bound.get(&condition.param) {
                    problem = problem.related(self.loc(other.span), "this file");
                }
                problem.help(format!("let the `{}` end with `/`: a folder, to which parts are added", condition.param))
            }
        };
        self.error(problem);
    }

    /// Whether an argument is what it is without being given.
    fn is_default(&mut self, bound: &Bound<'_>, options: &Options, param: &str) -> bool {
        let Some(declared) = bound.operator.param(param).filter(|_| bound.get(param).is_some()) else { return true };
        let (Kind::Const(ty), Some(default)) = (&declared.kind, &declared.default) else { return false };
        self.value(bound, declared, ty, default).as_ref() == options.get(param)
    }

    fn none_of(&mut self, bound: &Bound<'_>, words: &[String]) {
        let names: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = format!("`{}` needs {}", bound.operator.name, names.join(" or "));
        let at = self.loc(bound.call.name.span);
        let help = words.iter().find_map(|word| added(bound, word)).unwrap_or_default();
        self.error(LocalDiagnostic::error("E0602", at, message, "missing here").help(help));
    }

    fn needed(&mut self, bound: &Bound<'_>, param: &str, condition: Option<&Condition>) {
        let cause = condition.map_or_else(|| format!("`{}`", bound.operator.name), said);
        let at = self.loc(bound.call.name.span);
        let mut problem = LocalDiagnostic::error("E0602", at, format!("{cause} needs `{param}`"), "missing here");
        if let Some(arg) = condition.and_then(|condition| bound.get(&condition.param)) {
            problem = problem.related(self.loc(arg.span), "because of this");
        }
        if let Some(doc) = bound.operator.param(param).and_then(|param| param.doc.as_ref()) {
            problem = problem.note(format!("`{param}`: {}", doc.replace('\n', " ")));
        }
        self.error(problem.help(added(bound, param).unwrap_or_default()));
    }

    fn idle(&mut self, bound: &Bound<'_>, param: &str, condition: Option<&Condition>) {
        let (Some(arg), Some(condition)) = (bound.get(param), condition) else { return };
        let folder = condition.value.as_deref() == Some("folder");
        let flag = bound
            .operator
            .param(&condition.param)
            .is_some_and(|other| matches!(&other.kind, Kind::Const(ty) if type_text(ty) == "bool"));
        let other = if flag { format!("`{}: true`", condition.param) } else { said(condition) };
        let (message, help) = match condition.negated {
            true if condition.is_stream() => (
                format!("`{param}` doesn't go with the standard input"),
                "leave it out: what comes there is read as it comes".to_owned(),
            ),
            true => (format!("`{param}` doesn't go with {other}"), "take one of both out".to_owned()),
            false if folder => (
                format!("`{param}` goes with a folder of parts only, and this `{}` is a file's", condition.param),
                format!("take it out, or let the `{}` end with `/`: a folder of parts", condition.param),
            ),
            false => (format!("`{param}` goes with {other} only"), format!("take it out, or write {other}")),
        };
        let mut problem = LocalDiagnostic::error("E0608", self.loc(arg.span), message, "without effect here");
        if let Some(other) = bound.get(&condition.param) {
            problem = problem.related(self.loc(other.span), "given here");
        }
        self.error(problem.help(help));
    }

    /// A text that holds another, or a line break.
    fn held(&mut self, bound: &Bound<'_>, options: &Options, one: &str, others: &[String]) {
        let text = |name: &str| options.get(name).and_then(OptionValue::text).filter(|text| !text.is_empty());
        let (Some(holder), Some(arg)) = (text(one), bound.get(one)) else { return };
        // What stands behind it could make a whole one of its first character.
        let first = |name: &str| text(name).and_then(|text| text.chars().next());
        let other = others.iter().find(|other| first(other).is_some_and(|first| holder.contains(first)));
        let message = match other {
            Some(other) if text(other).is_some_and(|text| holder.contains(text)) => {
                format!("`{one}` can't hold the `{other}`")
            }
            Some(other) => format!("`{one}` can't hold what the `{other}` begins with"),
            None if holder.contains(['\n', '\r']) => format!("`{one}` can't hold a line break"),
            None => return,
        };
        let problem = LocalDiagnostic::error("E0608", self.loc(arg.span), message, "this text");
        self.error(problem.help("it is written without quotes: choose one that differs from all texts, such as `\\N`"));
    }

    fn same(&mut self, bound: &Bound<'_>, options: &Options, one: &str, other: &str) {
        let text = |name: &str| options.get(name).and_then(OptionValue::text).filter(|text| !text.is_empty());
        let (Some(left), Some(right)) = (text(one), text(other)) else { return };
        if left != right {
            return;
        }
        let span = bound.get(one).or(bound.get(other)).map_or(bound.call.name.span, |arg| arg.span);
        let message = format!("{} can't be the same", listed(&[one, other]).replace(", ", " and "));
        let problem = LocalDiagnostic::error("E0608", self.loc(span), message, format!("`{left}` is both"));
        self.error(problem.help("give one of both another text"));
    }
}

/// Whether an argument is given, and not an empty list.
fn is_given(bound: &Bound<'_>, param: &str) -> bool {
    bound.get(param).is_some_and(|arg| !matches!(&arg.value.kind, ExprKind::List(items) if items.is_empty()))
}

/// A condition as it is written.
fn said(condition: &Condition) -> String {
    match condition.value.as_deref() {
        Some(value) => format!("`{}: {value}`", condition.param),
        None => format!("`{}`", condition.param),
    }
}

/// How a missing argument is written.
fn added(bound: &Bound<'_>, param: &str) -> Option<String> {
    Some(match &bound.operator.param(param)?.kind {
        Kind::Field => format!("add a field: `{param}: changed_at`"),
        Kind::Fields => format!("add fields: `{param}: [id]`"),
        _ => format!("add `{param}: \"…\"`"),
    })
}
