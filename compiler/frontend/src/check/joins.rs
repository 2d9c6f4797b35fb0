//! `join` and `lookup`: which rows belong together, and which fields come out (D6, D7).

use std::sync::Arc;

use dfc_grammar::ast::{Arg, BinaryOp as AstOp, Expr, ExprKind, Ident, Literal, RecordEntry, Span};
use dfc_ir::plan::{Join, JoinColumn, JoinKind, MatchMode, Op};
use dfc_ir::{BinaryOp, DataType, Expr as Ir, ExprKind as IrKind, Type};
use dfc_typeck::conversions::common_type;
use dfc_typeck::{Column, LocalDiagnostic, OPTIONAL, Scope, written};

use super::chain::Position;
use super::{Flow, ItemContext};
use crate::bind::Bound;

/// What `on:` says.
#[derive(Default)]
struct Condition {
    left_keys: Vec<Ir>,
    right_keys: Vec<Ir>,
    residual: Option<Ir>,
    /// Plain fields that are equal: (left, right), each in its own side's numbers.
    equal: Vec<(usize, usize)>,
    /// An equality of decimals that have no key type in common: where, and the two types.
    inexact: Option<(Span, Type, Type)>,
}

impl Condition {
    /// The right field that a left one is equal to.
    fn partner(&self, left: usize) -> Option<usize> {
        self.equal.iter().find(|(l, _)| *l == left).map(|&(_, r)| r)
    }
}

/// The kind of a join and what follows from it.
struct Shape {
    kind: JoinKind,
    matches: MatchMode,
    required: bool,
    /// What the message calls it: "left join", "lookup".
    words: &'static str,
}

const KINDS: &[(&str, JoinKind, &str)] = &[
    ("inner", JoinKind::Inner, "inner join"),
    ("left", JoinKind::Left, "left join"),
    ("right", JoinKind::Right, "right join"),
    ("full", JoinKind::Full, "full join"),
    ("semi", JoinKind::Semi, "semi join"),
    ("anti", JoinKind::Anti, "anti join"),
];

impl ItemContext<'_> {
    pub(super) fn join(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let right = bound.get("right").map(|arg| self.stream_arg(arg, Position::Stream));
        let kind = bound.choice("kind", &self.item.clone(), &mut self.out);
        let kind = kind.and_then(|name| KINDS.iter().find(|(known, ..)| *known == name));
        let shape = kind.map(|(_, kind, words)| Shape { kind: *kind, matches: MatchMode::All, required: false, words });
        self.two_sides(flow, right, shape, bound)
    }

    pub(super) fn lookup(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let right = bound.get("table").map(|arg| self.stream_arg(arg, Position::Table));
        let missing = bound.choice("missing", &self.item.clone(), &mut self.out);
        let matches = bound.choice("match", &self.item.clone(), &mut self.out);
        let shape = missing.zip(matches).map(|(missing, matches)| Shape {
            kind: if missing == "drop" { JoinKind::Inner } else { JoinKind::Left },
            matches: match matches.as_str() {
                "first" => MatchMode::First,
                "all" => MatchMode::All,
                _ => MatchMode::One,
            },
            required: missing == "fail",
            words: "lookup",
        });
        self.two_sides(flow, right, shape, bound)
    }

    fn two_sides(&mut self, flow: Flow, right: Option<Flow>, shape: Option<Shape>, bound: &Bound<'_>) -> Flow {
        let (Some(right), Some(shape)) = (right, shape) else { return Flow::unknown() };
        // The other side is read whole before a row passes, whatever the operator.
        if flow.nature.endless.is_none() || bound.operator.clause("whole").is_none() {
            self.side_must_end(&right.nature, bound.call);
        }
        let (Some(left_columns), Some(right_columns)) = (&flow.columns, &right.columns) else { return Flow::unknown() };
        let guessed = self.guessed_join(left_columns, right_columns, bound);
        let Some(on) = bound.get("on").filter(|_| !bound.failed) else { return guessed };
        self.gone = Arc::new(flow.gone.iter().chain(right.gone.iter()).cloned().collect());
        let Some(condition) = self.condition(left_columns, right_columns, on, bound) else { return guessed };
        let Some((output, columns)) = self.joined(left_columns, right_columns, &condition, &shape, bound) else {
            return guessed;
        };
        let equal: Vec<(String, String)> = condition
            .equal
            .iter()
            .map(|&(l, r)| (left_columns[l].name.clone(), right_columns[r].name.clone()))
            .collect();
        let gone = match shape.kind {
            JoinKind::Semi | JoinKind::Anti => Vec::new(),
            kind => self.gone_right(
                right_columns,
                &columns,
                &equal,
                matches!(kind, JoinKind::Left | JoinKind::Full),
                bound.call,
            ),
        };
        let op = Op::Join(Join {
            kind: shape.kind,
            left_width: left_columns.len(),
            left_keys: condition.left_keys,
            right_keys: condition.right_keys,
            residual: condition.residual,
            matches: shape.matches,
            required: shape.required,
            output,
        });
        let joined = self.node(bound.call, Some(op), vec![flow.output, right.output], Some(columns));
        Flow { gone: Arc::new(gone), ..joined }
    }

    /// Types `on:` and takes its equalities out as keys. After a refusal nothing more is said about the output.
    fn condition(&mut self, left: &[Column], right: &[Column], on: &Arg, bound: &Bound<'_>) -> Option<Condition> {
        let mut conjuncts = Vec::new();
        let before = self.out.len();
        split(&on.value, &mut conjuncts);
        let mut condition = Condition::default();
        let mut sound = true;
        for conjunct in conjuncts {
            let conjunct = short_form(conjunct, left, right);
            if let Some((label, help)) = no_condition(&conjunct, left, right) {
                let message = format!("`{}` needs an equality between both sides", bound.operator.name);
                let problem = LocalDiagnostic::error("E0617", self.loc(conjunct.span), message, label).help(help);
                self.error(problem);
                sound = false;
                continue;
            }
            let checked = self.with(Scope::Pair { left, right }, |checker| checker.check_predicate(&conjunct));
            let Some(checked) = checked else {
                sound = false;
                continue;
            };
            match keys(&checked.expr, left.len()) {
                Some((a, b)) => {
                    if let (IrKind::Column(l), IrKind::Column(r)) = (&a.kind, &b.kind) {
                        condition.equal.push((*l, *r));
                    } else if let (Some(l), Some(r)) = (under_cast(&a), under_cast(&b)) {
                        // The same value in another width: it appears once, as the left side has it.
                        condition.equal.push((l, r));
                    }
                    condition.left_keys.push(a);
                    condition.right_keys.push(b);
                }
                None => {
                    if let IrKind::Binary(BinaryOp::Eq, a, b) = &checked.expr.kind
                        && a.ty.ty != b.ty.ty
                    {
                        condition.inexact.get_or_insert((conjunct.span, a.ty.ty.clone(), b.ty.ty.clone()));
                    }
                    condition.residual = Some(match condition.residual.take() {
                        Some(before) => and(before, checked.expr),
                        None => checked.expr,
                    });
                }
            }
        }
        if !sound {
            return None;
        }
        if condition.left_keys.is_empty()
            && let Some((at, l, r)) = condition.inexact
        {
            let message = format!("rows can't be matched by {l} and {r}: no decimal of 38 digits holds both");
            let problem = LocalDiagnostic::error("E0453", self.loc(at), message, "no key in common")
                .help(format!("bring one side to the other's type: `round(…, {}) as {r}`", scale(&r)));
            self.error(problem);
            return None;
        }
        if condition.left_keys.is_empty() {
            // That a constant is always true is the same mistake.
            let mut number = 0;
            self.out.retain(|problem| {
                number += 1;
                number <= before || problem.code != "W0504"
            });
            let name = &bound.operator.name;
            let message = format!("`{name}` needs an equality between both sides");
            let problem = LocalDiagnostic::error(
                "E0617",
                self.loc(on.value.span),
                message,
                "compares nothing of one side with the other by `==`",
            )
            .note("without one every row would meet every row")
            .help("write `on: user_id == right.id`, and further conditions behind it with `and`");
            self.error(problem);
            return None;
        }
        for key in condition.left_keys.iter().chain(&condition.right_keys) {
            if matches!(key.ty.ty, Type::Json | Type::List(_) | Type::Record(_)) {
                let message = format!("rows can't be matched by a value of type {}", key.ty.ty);
                let problem = LocalDiagnostic::error("E0453", self.loc(on.value.span), message, "not a key")
                    .help("compare a value in it, such as `data.id`, or its text");
                self.error(problem);
                return None;
            }
        }
        Some(condition)
    }

    /// The fields that come out.
    fn joined(
        &mut self,
        left: &[Column],
        right: &[Column],
        condition: &Condition,
        shape: &Shape,
        bound: &Bound<'_>,
    ) -> Option<(Vec<JoinColumn>, Vec<Column>)> {
        let only_left = matches!(shape.kind, JoinKind::Semi | JoinKind::Anti);
        if only_left && let Some(take) = bound.get("take") {
            let message = format!("a {} gives no fields of the right side", shape.words);
            let problem = LocalDiagnostic::error("E0608", self.loc(take.span), message, "nothing to take")
                .help("leave `take:` out, or write `kind: inner`");
            self.error(problem);
            return None;
        }
        let merges = matches!(shape.kind, JoinKind::Right | JoinKind::Full);
        let left_optional = merges;
        let right_optional = matches!(shape.kind, JoinKind::Left | JoinKind::Full) && !shape.required;
        let optional = format!("{OPTIONAL} by this {}", shape.words);
        let made_optional = |cx: &Self, column: &Column, apply: bool| {
            let mut column = column.clone();
            if apply && !column.ty.nullable {
                column.ty.nullable = true;
                column.path.push(cx.step(bound.call.name.span, optional.clone()));
            }
            column
        };
        let taken = if only_left { Vec::new() } else { self.taken(right, condition, merges, bound)? };
        // A key that is taken from the right too keeps each side's own value: it tells which side a row comes from.
        let both = |partner: usize| bound.get("take").is_some() && taken.iter().any(|(index, ..)| *index == partner);
        let (mut output, mut columns) = (Vec::new(), Vec::new());
        for (index, column) in left.iter().enumerate() {
            match condition.partner(index).filter(|&partner| merges && !both(partner)) {
                Some(partner) => {
                    let other = &right[partner];
                    if column.ty.ty != other.ty.ty {
                        self.different_keys(column, other, shape, bound);
                        return None;
                    }
                    let mut merged = column.clone();
                    merged.ty.nullable = match shape.kind {
                        JoinKind::Right => other.ty.nullable,
                        _ => column.ty.nullable || other.ty.nullable,
                    };
                    output.push(JoinColumn::Merged(index, partner));
                    columns.push(merged);
                }
                None => {
                    output.push(JoinColumn::Left(index));
                    columns.push(made_optional(self, column, left_optional));
                }
            }
        }
        if only_left {
            return Some((output, columns));
        }
        for (index, name, arg) in taken {
            if let Some(clash) = columns.iter().find(|c| c.name == name) {
                let at = arg.map_or(bound.call.name.span, |a| a.span);
                let mut problem = LocalDiagnostic::error(
                    "E0407",
                    self.loc(at),
                    format!("both sides have a field `{name}`"),
                    "twice in the output",
                );
                if let Some(step) = clash.path.first() {
                    problem = problem.related(step.loc.clone(), "the left one");
                }
                if let Some(step) = right[index].path.first() {
                    problem = problem.related(step.loc.clone(), "the right one");
                }
                let others = others(right, condition, left);
                self.error(problem.help(format!(
                    "say what is taken, and under which name: `take: [{others}{}: right.{}]`",
                    written(&format!("right_{name}")),
                    written(&name)
                )));
                return None;
            }
            let mut column = made_optional(self, &right[index], right_optional);
            if column.name != name {
                let at = arg.map_or(bound.call.name.span, |a| a.span);
                column.path.push(self.renamed(at, &column.name));
                column.name = name;
            }
            output.push(JoinColumn::Right(index));
            columns.push(column);
        }
        Some((output, columns))
    }

    fn different_keys(&mut self, left: &Column, right: &Column, shape: &Shape, bound: &Bound<'_>) {
        let message = format!(
            "a {} gives one field for `{}` of both sides, but their types differ: {} and {}",
            shape.words, left.name, left.ty.ty, right.ty.ty
        );
        let on = bound.get("on").map_or(bound.call.span, |arg| arg.span);
        // Of both types the one that loses nothing.
        let cures = common_type(&left.ty, &right.ty).map(|common| {
            let sides = [(left, "before the join"), (right, "on its right side")];
            let steps = sides.into_iter().filter(|(column, _)| column.ty.ty != common.ty).map(|(column, place)| {
                let ty = DataType { nullable: column.ty.nullable, ..common.clone() };
                format!("`cast({} as {ty})` {place}", written(&column.name))
            });
            steps.collect::<Vec<_>>().join(" and ")
        });
        let help = match cures {
            Some(steps) => format!("convert to the type that holds both: {steps}"),
            None => "convert one side with `cast`, before the join".to_owned(),
        };
        let problem = LocalDiagnostic::error("E0457", self.loc(on), message, "of two types").help(help);
        self.error(problem);
    }

    /// The right fields of the output: position, name, and where it was asked for.
    fn taken<'b>(
        &mut self,
        right: &[Column],
        condition: &Condition,
        merges: bool,
        bound: &Bound<'b>,
    ) -> Option<Vec<(usize, String, Option<&'b Arg>)>> {
        if bound.get("take").is_none() {
            // An equal key appears once: the left one stands for both. Where it merges, for the one that it merges with only:
            // in a row without a left side a second one can differ.
            let equal = |index: usize| {
                condition.equal.iter().any(|&(l, r)| r == index && (!merges || condition.partner(l) == Some(r)))
            };
            let rest = right.iter().enumerate().filter(|(index, _)| !equal(*index));
            return Some(rest.map(|(index, column)| (index, column.name.clone(), None)).collect());
        }
        let mut taken: Vec<(usize, String, Option<&'b Arg>)> = Vec::new();
        let mut sound = true;
        for element in self.elements(bound, "take")? {
            let field = match &element.value.kind {
                ExprKind::Field(base, field) if matches!(&base.kind, ExprKind::Name(side) if side == "right") => {
                    Expr { kind: ExprKind::Name(field.text.clone()), span: field.span }
                }
                _ => element.value.clone(),
            };
            match self.field(right, &field) {
                Some(index) => {
                    let name = element.label.as_ref().map_or(&right[index].name, |label| &label.text).clone();
                    taken.push((index, name, Some(element)));
                }
                None => sound = false,
            }
        }
        sound.then_some(taken)
    }
}

fn scale(ty: &Type) -> u8 {
    match ty {
        Type::Decimal(_, scale) => *scale,
        _ => 0,
    }
}

/// Right fields that don't clash, for the example in a message.
fn others(right: &[Column], condition: &Condition, left: &[Column]) -> String {
    let free = right.iter().enumerate().filter(|(index, column)| {
        !condition.equal.iter().any(|(_, r)| r == index) && !left.iter().any(|l| l.name == column.name)
    });
    free.take(3).map(|(_, column)| format!("{}, ", written(&column.name))).collect()
}

/// The parts of an `and`.
fn split<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &e.kind {
        ExprKind::Paren(inner) => split(inner, out),
        ExprKind::Binary(AstOp::And, _, l, r) => {
            split(l, out);
            split(r, out);
        }
        _ => out.push(e),
    }
}

/// `on: id` is short for `left.id == right.id` where both sides have the field.
fn short_form(e: &Expr, left: &[Column], right: &[Column]) -> Expr {
    let ExprKind::Name(name) = &e.kind else { return e.clone() };
    let has = |columns: &[Column]| columns.iter().any(|c| c.name == *name);
    if !has(left) || !has(right) {
        return e.clone();
    }
    let side = |side: &str| {
        let base = Expr { kind: ExprKind::Name(side.into()), span: e.span };
        let kind = ExprKind::Field(Box::new(base), Ident { text: name.clone(), span: e.span });
        Box::new(Expr { kind, span: e.span })
    };
    Expr { kind: ExprKind::Binary(AstOp::Eq, e.span, side("left"), side("right")), span: e.span }
}

/// What other tools take for a condition, a field alone or a list of fields: what it is, and what to write.
fn no_condition(e: &Expr, left: &[Column], right: &[Column]) -> Option<(&'static str, String)> {
    let find = |columns: &[Column], name: &str| columns.iter().find(|c| c.name == name && !c.broken).cloned();
    let (name, quoted) = match &e.kind {
        ExprKind::Name(name) => (name, false),
        ExprKind::Literal(Literal::String(text)) => (text, true),
        ExprKind::List(items) => return Some(("a list, not a condition", of_list(items, left, right))),
        ExprKind::Record(entries) => return Some(("a record, not a condition", of_record(entries, left, right))),
        _ => return None,
    };
    let shown = written(name);
    match (find(left, name), find(right, name)) {
        (Some(_), Some(_)) if quoted => Some(("a text, not a field", format!("write `on: {shown}`"))),
        // A bool is a condition by itself.
        (Some(c), _) | (_, Some(c)) if !quoted && matches!(c.ty.ty, Type::Bool | Type::Null) => None,
        (Some(c), _) => Some((
            "a field of one side only",
            format!("name the other side's field too: `on: {shown} == right.{}`", partner(right, &c.ty.ty)),
        )),
        (None, Some(c)) => Some((
            "a field of one side only",
            format!("name the other side's field too: `on: left.{} == {shown}`", partner(left, &c.ty.ty)),
        )),
        (None, None) => None,
    }
}

/// A field that could be equal to one of this type on the other side.
fn partner(columns: &[Column], ty: &Type) -> String {
    columns.iter().find(|c| c.ty.ty == *ty).map_or_else(|| "id".to_owned(), |c| written(&c.name))
}

/// What to write for `on: [id, day]`.
fn of_list(items: &[Arg], left: &[Column], right: &[Column]) -> String {
    let find = |columns: &[Column], name: &str| columns.iter().find(|c| c.name == name).map(|c| c.ty.ty.clone());
    let equality = |item: &Arg| {
        let ExprKind::Name(name) = &item.value.kind else { return None };
        let shown = written(name);
        Some(match (find(left, name), find(right, name)) {
            (Some(_), Some(_)) if items.len() == 1 => shown,
            (Some(_), Some(_)) => format!("left.{shown} == right.{shown}"),
            (Some(ty), None) => format!("{shown} == right.{}", partner(right, &ty)),
            (None, Some(ty)) => format!("left.{} == {shown}", partner(left, &ty)),
            (None, None) => return None,
        })
    };
    match items.iter().map(equality).collect::<Option<Vec<String>>>() {
        Some(equalities) if !equalities.is_empty() => format!("write `on: {}`", equalities.join(" and ")),
        _ => "join equalities with `and`: `left.a == right.a and left.b == right.b`".to_owned(),
    }
}

/// What to write for `on: { user_id: id }`.
fn of_record(entries: &[RecordEntry], left: &[Column], right: &[Column]) -> String {
    let has = |columns: &[Column], name: &str| columns.iter().any(|c| c.name == name);
    let equality = |entry: &RecordEntry| {
        let RecordEntry::Field(name, Expr { kind: ExprKind::Name(value), .. }) = entry else { return None };
        // Either side may stand first.
        let (l, r) = if has(left, &name.text) { (&name.text, value) } else { (value, &name.text) };
        (has(left, l) && has(right, r)).then(|| format!("left.{} == right.{}", written(l), written(r)))
    };
    match entries.iter().map(equality).collect::<Option<Vec<String>>>() {
        Some(equalities) if !equalities.is_empty() => format!("write `on: {}`", equalities.join(" and ")),
        _ => "join equalities with `and`: `left.a == right.a and left.b == right.b`".to_owned(),
    }
}

/// The two sides of an equality, the left input's first, each over its own side's columns.
fn keys(e: &Ir, left: usize) -> Option<(Ir, Ir)> {
    let IrKind::Binary(BinaryOp::Eq, a, b) = &e.kind else { return None };
    if a.ty.ty != b.ty.ty {
        // Decimals that are compared exactly have no key in common.
        return None;
    }
    let side = |e: &Ir| {
        let columns = e.columns();
        let (first, last) = (*columns.first()?, *columns.last()?);
        if last < left {
            Some(false)
        } else if first >= left {
            Some(true)
        } else {
            None
        }
    };
    let (l, mut r) = match (side(a)?, side(b)?) {
        (false, true) => ((**a).clone(), (**b).clone()),
        (true, false) => ((**b).clone(), (**a).clone()),
        _ => return None,
    };
    r.map_columns(&|column| column - left);
    Some((l, r))
}

/// The field under a conversion.
fn under_cast(e: &Ir) -> Option<usize> {
    match &e.kind {
        IrKind::Column(index) => Some(*index),
        IrKind::Cast(inner, _) => under_cast(inner),
        _ => None,
    }
}

fn and(a: Ir, b: Ir) -> Ir {
    let ty = DataType { ty: Type::Bool, nullable: a.ty.nullable || b.ty.nullable };
    let site = b.site;
    Ir { kind: IrKind::Binary(BinaryOp::And, Box::new(a), Box::new(b)), ty, site }
}
