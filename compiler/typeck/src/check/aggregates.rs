//! Aggregates: `sum(x)`, `count(where: c)` inside an aggregate expression. Each becomes a column after the keys.

use dfc_grammar::ast::{self, Span};
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::{BinaryOp, CastMode, DataType, Expr, ExprKind, Site, Type, UnaryOp};

use crate::{Checker, Function};
use dfc_ir::text::written;

/// Aggregates in which a row whose value is null is missing from the result.
const SKIPS: &[&str] = &["sum", "avg"];

/// Never null: over no values they are 0 or an empty list.
const NEVER_NULL: &[AggFunction] =
    &[AggFunction::Count, AggFunction::CountDistinct, AggFunction::ApproxCountDistinct, AggFunction::Collect];

impl Checker<'_> {
    /// A call of an aggregate function.
    pub(crate) fn aggregate_call(&mut self, function: &Function, call: &ast::Call, span: Span) -> Option<Expr> {
        let name = &function.name;
        if self.state.in_aggregate {
            self.error("E0421", span, format!("`{name}` stands inside another aggregate"), "aggregate of an aggregate")
                .help("compute the inner one in an `aggregate` before, and aggregate its result");
            return None;
        }
        if self.state.aggregation.is_none() || self.state.locals.is_some() {
            self.error(
                "E0414",
                span,
                format!("`{name}` is an aggregate of many rows, and here is one row"),
                "not in an `aggregate`",
            )
            .help(format!("write `|> aggregate(by: […], name: {name}(…))`"));
            return None;
        }
        self.state.in_aggregate = true;
        let parts = self.aggregate_parts(function, call);
        self.state.in_aggregate = false;
        let (args, filter, declared) = parts?;
        let Some(which) = AggFunction::by_name(name) else {
            self.error("E0512", span, format!("the aggregate `{name}` is declared, but no engine has it"), "")
                .help("the standard library and this compiler don't belong together");
            return None;
        };
        let aggregation = self.state.aggregation.as_ref()?;
        let empty = aggregation.keys.is_empty() || filter.is_some() || args.iter().any(|arg| arg.ty.nullable);
        let nullable = declared.nullable || (empty && !NEVER_NULL.contains(&which));
        let ty = DataType { ty: declared.ty, nullable };
        let site = self.site(span);
        let aggregate = Aggregate { function: which, args, filter, ty: ty.clone(), site };
        let aggregation = self.state.aggregation.as_mut()?;
        let index = match aggregation.aggregates.iter().position(|before| same(before, &aggregate)) {
            Some(index) => index,
            None => {
                aggregation.aggregates.push(aggregate);
                aggregation.aggregates.len() - 1
            }
        };
        let column = aggregation.keys.len() + index;
        Some(Expr { kind: ExprKind::Column(column), ty, site })
    }

    /// A lint: `sum(price * discount)` leaves out the price of rows whose discount is null. A sum of the optional field itself
    /// is meant so, and so is one whose `where:` looks at the field.
    fn lint_rows_left_out(&mut self, name: &str, value: &Expr, filter: Option<&Expr>, span: Span) {
        let mut optional = Vec::new();
        if operands(value, &mut optional) != Some(true) {
            return;
        }
        let looked_at = filter.map(Expr::columns).unwrap_or_default();
        let Some(index) = optional.into_iter().find(|index| !looked_at.contains(index)) else { return };
        let places = self.path_of(index);
        let field = self.scope.column(index).map_or(String::new(), |column| written(&column.name));
        self.warning(
            "W0511",
            span,
            format!("rows where `{field}` is null are left out of this `{name}`, with everything else in it"),
            "null as soon as one part is",
        )
        .related_all(places)
        .help(format!("say what null counts as, `{field} ?? 0`; to leave such rows out on purpose write `where: {field} is not null`"));
    }

    /// Arguments, `where:` and the declared type of the result.
    fn aggregate_parts(
        &mut self,
        function: &Function,
        call: &ast::Call,
    ) -> Option<(Vec<Expr>, Option<Expr>, DataType)> {
        let is_where = |arg: &&ast::Arg| arg.label.as_ref().is_some_and(|label| label.text == "where");
        let mut wheres = call.args.iter().filter(is_where);
        let filter = match wheres.next() {
            Some(arg) => self.condition(&arg.value, "`where:`").map(Some),
            None => Some(None),
        };
        if let Some(again) = wheres.next() {
            self.error("E0418", again.span, "`where:` is given twice", "again").help("join both conditions with `and`");
            return None;
        }
        let plain: Vec<ast::Arg> = call.args.iter().filter(|arg| !is_where(arg)).cloned().collect();
        if let Some(ast::Expr { kind: ast::ExprKind::Literal(ast::Literal::String(text)), span }) =
            plain.first().map(|arg| &arg.value)
            && self.scope.names().contains(&text.as_str())
        {
            let name = written(text);
            self.error("E0612", *span, "a field's name stands without quotes", "a text, not a field")
                .help(format!("write `{name}`"))
                .fix("take the quotes out", *span, name);
            return None;
        }
        let args = self.arguments(function, &plain);
        let (filter, args) = (filter?, args?);
        if let Some(arg) = args.first()
            && SKIPS.contains(&function.name.as_str())
        {
            self.lint_rows_left_out(&function.name, &arg.value, filter.as_ref(), arg.syntax.span);
        }
        let choice = self.resolve(function, &args, call)?;
        let mut values = self.convert_arguments(args, &choice)?;
        let declared = self.result(function, &choice, &values, call.span)?;
        if let Some(separator) = values.get(1)
            && !matches!(separator.kind, ExprKind::Literal(_))
        {
            let at = plain.get(1).map_or(call.span, |arg| arg.span);
            self.value_of(separator.clone(), at)?;
        }
        // A sum adds in its result's type.
        if function.name == "sum"
            && matches!(declared.ty, Type::Int(_) | Type::Float64)
            && let Some(value) = values.pop()
        {
            values.push(self.convert_plain(value, &declared.ty, call.span)?);
        }
        Some((values, filter, declared))
    }
}

/// The fields of an arithmetic expression that may be null and, as the second, whether it has others; conversions aside.
/// `None`: there is more than arithmetic.
fn operands(e: &Expr, optional: &mut Vec<usize>) -> Option<bool> {
    match &e.kind {
        ExprKind::Column(index) if e.ty.nullable => {
            optional.push(*index);
            Some(false)
        }
        ExprKind::Column(_) => Some(true),
        ExprKind::Literal(_) => Some(false),
        ExprKind::Cast(inner, CastMode::Strict) | ExprKind::Unary(UnaryOp::Neg, inner) => operands(inner, optional),
        ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, l, r) => {
            let (l, r) = (operands(l, optional)?, operands(r, optional)?);
            Some(l || r)
        }
        // What a coalesced or called value is made of was thought of.
        _ => (!e.ty.nullable).then_some(true),
    }
}

/// Whether two aggregates compute the same, wherever they were written.
fn same(a: &Aggregate, b: &Aggregate) -> bool {
    let exprs = |aggregate: &Aggregate| {
        let mut exprs: Vec<Expr> = aggregate.args.iter().chain(&aggregate.filter).cloned().collect();
        exprs.iter_mut().for_each(without_sites);
        exprs
    };
    a.function == b.function && a.ty == b.ty && a.args.len() == b.args.len() && exprs(a) == exprs(b)
}

fn without_sites(e: &mut Expr) {
    e.site = Site::default();
    e.for_each_child_mut(&mut without_sites);
}
