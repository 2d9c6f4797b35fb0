//! Operators that look at many rows: `aggregate distinct sort` (D7).

use dfc_grammar::ast::{Arg, Expr, ExprKind, Literal};
use dfc_ir::plan::{AggFunction, Op, SortKey};
use dfc_ir::{Expr as Ir, Field, Schema, Site, Type};
use dfc_typeck::{AggregateKey, Aggregation, Column, Loc, LocalDiagnostic, Scope, written};

use super::rows::names_in;
use super::{Flow, Input, ItemContext, LocalNode, broken, schema};
use crate::bind::Bound;

/// Aggregates whose result depends on the order of the rows.
const ORDER_MATTERS: &[AggFunction] =
    &[AggFunction::First, AggFunction::Last, AggFunction::Collect, AggFunction::StringAgg];

impl ItemContext<'_> {
    pub(super) fn aggregate(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(input) = flow.columns else { return Flow::unknown() };
        let mut sound = !bound.failed;
        let mut columns: Vec<Column> = Vec::new();
        let mut keys: Vec<Option<Ir>> = Vec::new();
        let Some(elements) = self.elements(bound, "by") else { return Flow::unknown() };
        for element in elements {
            let Some(name) = self.element_name(element) else {
                sound = false;
                continue;
            };
            let (column, expr) = self.computed(&input, element, &name);
            let clash = columns.iter().any(|c| c.name == name);
            if clash {
                let problem = LocalDiagnostic::error(
                    "E0403",
                    self.loc(element.span),
                    format!("the key `{name}` is there already"),
                    "again",
                )
                .help("take it out, or give it another name: `other: …`");
                self.error(problem);
                sound = false;
                continue;
            }
            let usable = expr.as_ref().is_none_or(|e| self.can_be_key(&e.ty.ty, element));
            sound &= usable;
            columns.push(if usable { column } else { broken(&name, column.path) });
            keys.push(expr.filter(|_| usable));
        }
        // With a key refused, aggregates that use it would be told what is only fallout: they are not looked at.
        let keys: Option<Vec<Ir>> = keys.into_iter().collect::<Option<_>>().filter(|_| !bound.failed);
        let names = columns.iter().map(|c| AggregateKey { name: c.name.clone(), ty: c.ty.clone() }).collect();
        let mut aggregation = Aggregation::by(names);
        let mut outputs: Vec<Option<Ir>> =
            columns.iter().enumerate().map(|(i, c)| Some(Ir::column(i, c.ty.clone()))).collect();
        let before = self.out.len();
        let mut nameless = false;
        for arg in bound.all("aggs") {
            let Some(name) = self.output_name(arg, bound, false) else {
                nameless = true;
                continue;
            };
            if let Some(key) = columns.iter().position(|c| c.name == name) {
                let problem = LocalDiagnostic::error(
                    "E0403",
                    self.loc(arg.span),
                    format!("`{name}` is a key already"),
                    "a second field of this name",
                )
                .help(format!("give it another name: `{}: …`", written(&format!("{name}_{}", key + 1))));
                self.error(problem);
                sound = false;
                continue;
            }
            let step = self.step(arg.span, "aggregated here");
            let expr = match &keys {
                Some(_) => {
                    self.with(Scope::Row(&input), |checker| checker.check_aggregate(&arg.value, None, &mut aggregation))
                }
                None => None,
            };
            columns.push(match &expr {
                Some(expr) => Column::new(name, expr.ty.clone(), vec![step]),
                None => broken(&name, vec![step]),
            });
            outputs.push(expr);
        }
        self.siblings(before, bound, "aggs");
        for aggregate in &aggregation.aggregates {
            if ORDER_MATTERS.contains(&aggregate.function)
                && let Some(at) = self.sites.loc(aggregate.site)
            {
                self.order_matters(&flow.nature, &format!("`{}`", aggregate.function.name()), at);
            }
        }
        if bound.failed || nameless {
            // What it gives nobody knows: not how it was to be called, or not by what it was to be grouped.
            return Flow::unknown();
        }
        let outputs: Option<Vec<Ir>> = outputs.into_iter().collect::<Option<_>>().filter(|_| sound);
        let (Some(keys), Some(outputs), Some(from)) = (keys, outputs, flow.output) else {
            return Flow::new(Some(columns), None);
        };
        let output = self.aggregate_nodes(bound, keys, aggregation, outputs, &columns, from);
        self.note_computed(&output, &columns);
        Flow::new(Some(columns), Some(output))
    }

    /// The aggregation, and behind it a projection where an output is more than one aggregate.
    fn aggregate_nodes(
        &mut self,
        bound: &Bound<'_>,
        keys: Vec<Ir>,
        aggregation: Aggregation,
        outputs: Vec<Ir>,
        columns: &[Column],
        from: Input,
    ) -> Input {
        let site = self.site_of(bound);
        let name = format!("{}.aggregate", self.prefix());
        let key_count = keys.len();
        let mut fields: Vec<Field> =
            columns[..key_count].iter().map(|c| Field::new(c.name.clone(), c.ty.clone())).collect();
        for (number, aggregate) in aggregation.aggregates.iter().enumerate() {
            // The aggregate takes the name of the first output that is just it.
            let position = key_count + number;
            let plain = |e: &Ir| matches!(e.kind, dfc_ir::ExprKind::Column(c) if c == position);
            let taken = outputs.iter().position(plain).map(|i| columns[i].name.clone());
            let label = taken.unwrap_or_else(|| format!("{} {}", aggregate.function.name(), number + 1));
            fields.push(Field::new(label, aggregate.ty.clone()));
        }
        let just = outputs.len() == fields.len()
            && outputs.iter().enumerate().all(|(i, e)| matches!(e.kind, dfc_ir::ExprKind::Column(c) if c == i));
        let op = Op::Aggregate { keys, aggregates: aggregation.aggregates };
        let node = self.push(LocalNode { name: name.clone(), op, inputs: vec![from], schema: Schema { fields }, site });
        if just {
            return node;
        }
        let op = Op::Project(outputs);
        self.push(LocalNode { name, op, inputs: vec![node], schema: schema(columns), site })
    }

    fn site_of(&mut self, bound: &Bound<'_>) -> Site {
        use dfc_typeck::SiteSink as _;
        let loc = Loc { item: self.item.clone(), span: bound.call.span };
        self.sites.site(&loc)
    }

    /// Whether rows can be grouped by values of a type.
    fn can_be_key(&mut self, ty: &Type, element: &Arg) -> bool {
        let refused = matches!(ty, Type::Json | Type::List(_) | Type::Record(_));
        if refused {
            let problem = LocalDiagnostic::error(
                "E0453",
                self.loc(element.span),
                format!("rows can't be grouped by a value of type {ty}"),
                "not a key",
            )
            .help("group by a value in it, such as `data.id`, or by its text");
            self.error(problem);
        }
        !refused
    }

    /// The elements of a list of fields, `[day: date(at), country]`; empty if it isn't given. `None`: it is no list.
    pub(super) fn elements<'b>(&mut self, bound: &Bound<'b>, param: &str) -> Option<Vec<&'b Arg>> {
        let Some(arg) = bound.get(param) else { return Some(Vec::new()) };
        if let ExprKind::List(items) = &arg.value.kind {
            return Some(items.iter().collect());
        }
        let at = self.loc(arg.value.span);
        let problem =
            LocalDiagnostic::error("E0612", at.clone(), format!("`{param}` takes a list of fields"), "not a list");
        match &arg.value.kind {
            ExprKind::Error => {}
            ExprKind::Name(name) => {
                let name = written(name);
                self.error(problem.help(format!("write `[{name}]`")).fix(
                    "put it in brackets",
                    at,
                    format!("[{name}]"),
                ));
            }
            ExprKind::Literal(Literal::String(name)) => {
                let name = written(name);
                self.error(problem.help(format!("write `[{name}]`, without quotes")).fix(
                    "put it in brackets",
                    at,
                    format!("[{name}]"),
                ));
            }
            _ => self.error(problem.help(format!("write `{param}: [a, b]`"))),
        }
        None
    }

    fn element_name(&mut self, element: &Arg) -> Option<String> {
        match (&element.label, &element.value.kind) {
            (Some(label), _) => Some(label.text.clone()),
            (None, ExprKind::Name(name)) => Some(name.clone()),
            (None, ExprKind::Error) => None,
            (None, ExprKind::Literal(Literal::String(name))) => {
                let (at, name) = (self.loc(element.span), written(name));
                let message = "a field's name stands without quotes";
                let problem = LocalDiagnostic::error("E0612", at.clone(), message, "a text, not a field")
                    .help(format!("write `{name}`"))
                    .fix("take the quotes out", at, name);
                self.error(problem);
                None
            }
            _ => {
                let problem = LocalDiagnostic::error(
                    "E0611",
                    self.loc(element.span),
                    "a computed key needs a name",
                    "which name?",
                )
                .help("put a name before it: `by: [day: date(at)]`");
                self.error(problem);
                None
            }
        }
    }

    pub(super) fn distinct(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(columns) = flow.columns else { return Flow::unknown() };
        let mut sound = !bound.failed;
        let mut keys = Vec::new();
        let elements = self.elements(bound, "by");
        sound &= elements.is_some();
        for element in elements.unwrap_or_default() {
            match self.field(&columns, &element.value) {
                Some(index) if self.can_be_key(&columns[index].ty.ty.clone(), element) => keys.push(index),
                _ => sound = false,
            }
        }
        let order = bound.get("order").map(|arg| self.sort_keys(&columns, arg));
        let order = match order {
            None => Some(Vec::new()),
            Some(keys) => keys,
        };
        let op = order.filter(|_| sound).map(|order| Op::Distinct { keys, order });
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    pub(super) fn sort(&mut self, flow: Flow, bound: &Bound<'_>) -> Flow {
        let Some(columns) = flow.columns else { return Flow::unknown() };
        let keys: Vec<Option<SortKey>> =
            bound.all("keys").iter().map(|arg| self.sort_key(&columns, &arg.value)).collect();
        let op = keys.into_iter().collect::<Option<Vec<_>>>().filter(|_| !bound.failed).map(Op::Sort);
        self.node(bound.call, op, vec![flow.output], Some(columns))
    }

    /// `order: desc(at)` or `order: [desc(at), id]`.
    fn sort_keys(&mut self, columns: &[Column], arg: &Arg) -> Option<Vec<SortKey>> {
        match &arg.value.kind {
            ExprKind::List(items) => {
                let keys: Vec<_> = items.iter().map(|item| self.sort_key(columns, &item.value)).collect();
                keys.into_iter().collect()
            }
            _ => self.sort_key(columns, &arg.value).map(|key| vec![key]),
        }
    }

    /// `x`, `asc(x)`, `desc(x, nulls: first)`
    fn sort_key(&mut self, columns: &[Column], e: &Expr) -> Option<SortKey> {
        let (mut value, mut descending, mut nulls_first) = (e, false, false);
        if let ExprKind::Call(call) = &e.kind
            && matches!(call.name.text.as_str(), "asc" | "desc")
        {
            descending = call.name.text == "desc";
            let mut inner = None;
            for arg in &call.args {
                match (&arg.label, &arg.value.kind) {
                    (None, _) if inner.is_none() => inner = Some(&arg.value),
                    (Some(label), ExprKind::Name(place))
                        if label.text == "nulls" && matches!(place.as_str(), "first" | "last") =>
                    {
                        nulls_first = place == "first";
                    }
                    _ => {
                        let message =
                            format!("`{}` takes one value, and `nulls: first` or `nulls: last`", call.name.text);
                        let problem = LocalDiagnostic::error("E0615", self.loc(arg.span), message, "not understood")
                            .help(format!("write `{}(field, nulls: last)`", call.name.text));
                        self.error(problem);
                        return None;
                    }
                }
            }
            let Some(inner) = inner else {
                let message = format!("`{}` needs the value to sort by", call.name.text);
                let problem = LocalDiagnostic::error("E0615", self.loc(call.span), message, "by what?");
                self.error(problem.help(format!("write `{}(field)`", call.name.text)));
                return None;
            };
            value = inner;
        }
        if let Some(names) = names_in(&value.kind) {
            let message = "the values to sort by stand one after the other, not in a list";
            let problem = LocalDiagnostic::error("E0615", self.loc(value.span), message, "a list")
                .help(format!("leave the brackets out: `{names}`"));
            self.error(problem);
            return None;
        }
        let expr = self.expr(columns, value, None)?;
        if !expr.ty.ty.is_ordered() {
            let message = format!("values of type {} have no order", expr.ty.ty);
            let problem = LocalDiagnostic::error("E0454", self.loc(value.span), message, "can't be sorted")
                .help("sort by a value in it, or by its text");
            self.error(problem);
            return None;
        }
        if expr.columns().is_empty() {
            self.constant_sort_key(columns, value);
            return None;
        }
        Some(SortKey { expr, descending, nulls_first })
    }

    /// A key that no field decides sorts nothing: a name in quotes, an order beside its field, a column's number.
    fn constant_sort_key(&mut self, columns: &[Column], value: &Expr) {
        let at = self.loc(value.span);
        let text = match &value.kind {
            ExprKind::Literal(Literal::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let order =
            text.filter(|text| ["asc", "desc", "ascending", "descending"].contains(&text.to_lowercase().as_str()));
        let problem = if let Some(name) = text.filter(|text| columns.iter().any(|c| c.name == *text)) {
            let name = written(name);
            LocalDiagnostic::error("E0612", at.clone(), "a field's name stands without quotes", "a text, not a field")
                .help(format!("write `{name}`"))
                .fix("take the quotes out", at, name)
        } else if let Some(order) = order {
            let order = if order.to_lowercase().starts_with('d') { "desc" } else { "asc" };
            LocalDiagnostic::error("E0615", at, "an order is written around its value", "a text, no order")
                .help(format!("write `{order}(field)`"))
        } else {
            let number = matches!(value.kind, ExprKind::Literal(Literal::Int(_)));
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            let problem =
                LocalDiagnostic::error("E0458", at, "this sort key is the same for all rows", "depends on no field")
                    .help(if number {
                        "write the field's name, not its number"
                    } else {
                        "sort by a field, or by something computed from one"
                    });
            if names.len() <= 12 {
                problem.note(format!("the fields here are {}", crate::bind::listed(&names)))
            } else {
                problem
            }
        };
        self.error(problem);
    }
}
