//! Comparisons: `==` and its kin, `between`, `in`, `like`, `matches`. Both sides are converted to a common type; text meets text only.

use dfc_grammar::ast::{self, Span};
use dfc_ir::{BinaryOp, DataType, Expr, ExprKind, Type, Value};

use super::calls::as_written;
use super::literals::{adapt_operands, is_loose, is_null, peel};
use super::names::size;
use crate::Checker;
use crate::conversions::{castable, common_type, needs_zone};

/// Spellings and IR forms.
const OPERATORS: &[(ast::BinaryOp, &str, BinaryOp)] = &[
    (ast::BinaryOp::Eq, "==", BinaryOp::Eq),
    (ast::BinaryOp::Ne, "!=", BinaryOp::Ne),
    (ast::BinaryOp::Lt, "<", BinaryOp::Lt),
    (ast::BinaryOp::Le, "<=", BinaryOp::Le),
    (ast::BinaryOp::Gt, ">", BinaryOp::Gt),
    (ast::BinaryOp::Ge, ">=", BinaryOp::Ge),
];

impl Checker<'_> {
    /// `l == r` and its kin.
    pub(crate) fn comparison(&mut self, op: ast::BinaryOp, l: &ast::Expr, r: &ast::Expr, span: Span) -> Option<Expr> {
        let (_, spelling, ir_op) = *OPERATORS.iter().find(|(ast_op, ..)| *ast_op == op)?;
        if is_null(l) || is_null(r) {
            let value = if is_null(l) { r } else { l };
            // Only what is wrong with the other side matters more.
            self.infer(value, None)?;
            let word = if op == ast::BinaryOp::Ne { "is not null" } else { "is null" };
            let report = self.error("E0506", span, format!("`{spelling} null` is never true"), "compares with null");
            if let ast::ExprKind::Name(name) = &peel(value).kind {
                let text = format!("{} {word}", dfc_ir::text::written(name));
                report.help(format!("write `{text}`")).fix(format!("write `{text}`"), span, text);
            } else {
                report.help(format!("write `… {word}`"));
            }
            return None;
        }
        let outer = self.state.facing;
        self.state.facing = other_side(r);
        let left = self.infer(l, None);
        self.state.facing = other_side(l);
        let right = self.infer(r, None);
        self.state.facing = outer;
        match (&left, &right) {
            (Some(text), None) if text.ty.ty == Type::String => self.meant_as_text(r),
            (None, Some(text)) if text.ty.ty == Type::String => self.meant_as_text(l),
            _ => {}
        }
        let (left, right) = (left?, right?);
        self.lint_comparison(op, (l, &left), (r, &right), span);
        self.compared(ir_op, spelling, (l, left), (r, right), span)
    }

    /// `status == paid`: an unknown name beside a text was probably meant as one.
    fn meant_as_text(&mut self, e: &ast::Expr) {
        let (Some(name), Some(last)) = (name_of(e), self.diagnostics.last_mut()) else { return };
        if last.code == "E0410" && last.help.is_none() {
            let at = last.loc.clone();
            last.help = Some(format!("a text stands in double quotes: `\"{name}\"`"));
            last.fixes.push(("put it in quotes".into(), at, format!("\"{name}\"")));
        }
    }

    /// Two checked operands, compared.
    pub(crate) fn compared(
        &mut self,
        op: BinaryOp,
        spelling: &str,
        (l, mut left): (&ast::Expr, Expr),
        (r, mut right): (&ast::Expr, Expr),
        span: Span,
    ) -> Option<Expr> {
        adapt_operands((l, &mut left), (r, &mut right));
        let common = self.meet((l, &left), (r, &right), spelling, span)?;
        let ordering = !matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        if (ordering && !common.is_ordered()) || !comparable(&common) {
            let places = self.places_of(&left);
            let report = self
                .error(
                    "E0518",
                    span,
                    format!("values of type {common} can't be compared with `{spelling}`"),
                    format!("{common} {spelling} {common}"),
                )
                .related_all(places);
            match common {
                Type::Json => {
                    report.help("compare a value in it, `json_text(x, \"name\")`, or its text, `x as string`")
                }
                Type::Secret => report.help("a secret can only be given to a connector"),
                _ => report.help("compare a part of it: `x.name`, `x[0]`, `length(x)`"),
            };
            return None;
        }
        let (to_left, to_right) = sides(&common, &left.ty.ty, &right.ty.ty);
        let left = self.convert_plain(left, &to_left, l.span)?;
        let right = self.convert_plain(right, &to_right, r.span)?;
        let ty = DataType { ty: Type::Bool, nullable: left.ty.nullable || right.ty.nullable };
        self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span)
    }

    /// The common type of two sides of a comparison, or an error.
    fn meet(&mut self, l: (&ast::Expr, &Expr), r: (&ast::Expr, &Expr), spelling: &str, span: Span) -> Option<Type> {
        let ((le, left), (re, right)) = (l, r);
        if let Some(common) = common_type(&left.ty, &right.ty) {
            return Some(common.ty);
        }
        let mut places = self.places_of(left);
        places.extend(self.places_of(right));
        let (lt, rt) = (left.ty.clone(), right.ty.clone());
        if needs_zone(&lt.ty, &rt.ty) {
            self.refuse_without_zone(&format!("`{spelling}`"), &lt, &rt, span, places);
            return None;
        }
        // A text literal beside another type: what the literal should be.
        let literal = match (&left.kind, &right.kind) {
            (_, ExprKind::Literal(Value::Str(text))) if rt.ty == Type::String => Some((text.clone(), &lt.ty, re.span)),
            (ExprKind::Literal(Value::Str(text)), _) if lt.ty == Type::String => Some((text.clone(), &rt.ty, le.span)),
            _ => None,
        };
        let text_side = match (&lt.ty, &rt.ty) {
            (Type::String, other) => Some((le, other.clone())),
            (other, Type::String) => Some((re, other.clone())),
            _ => None,
        };
        // `"id" > 1`: a field's name in quotes.
        let quoted = literal.clone().filter(|(text, ..)| self.scope.names().contains(&text.as_ref()));
        let unfit = literal.clone();
        let better = literal.and_then(|(text, ty, span)| literal_of(&text, ty).map(|better| (better, span)));
        let report = self
            .error("E0501", span, format!("{lt} can't be compared with {rt}"), format!("{lt} {spelling} {rt}"))
            .related_all(places);
        if spelling == "in" && better.is_some() {
            let better = better.map(|(better, _)| better).unwrap_or_default();
            report.help(format!("write the values of the list without quotes: `{better}`"));
        } else if let Some((better, span)) = better {
            report.help(format!("write `{better}`")).fix(format!("write `{better}`"), span, better);
        } else if let Some((name, _, span)) = quoted {
            let name = dfc_ir::text::written(&name);
            report.help(format!("a field's name stands without quotes: write `{name}`")).fix(
                format!("write `{name}`"),
                span,
                name,
            );
        } else if let Some((text, ty, _)) = unfit {
            report.help(match (ty, literal_of(&text, &Type::Date)) {
                (Type::DateTime, Some(day)) => format!("write `{day}T00:00:00`"),
                (Type::Timestamp, Some(day)) => format!("write `{day}T00:00:00Z`, an instant in UTC"),
                _ => format!("`\"{text}\"` is no {ty}: compare with another value, or another field"),
            });
        } else if let Some((side, other)) = text_side {
            let name = written_name(side);
            if castable(&Type::String, &other) {
                report.help(format!("convert one side: `{name} as {other}`, or the other one `as string`"));
            } else {
                report.help("convert the other side to text: `… as string`");
            }
        } else if castable(&lt.ty, &rt.ty) || castable(&rt.ty, &lt.ty) {
            let to = if castable(&lt.ty, &rt.ty) { &rt.ty } else { &lt.ty };
            report.help(format!("convert one side: `… as {to}`"));
        } else if [&lt.ty, &rt.ty].contains(&&Type::Date) && (lt.ty.is_numeric() || rt.ty.is_numeric()) {
            report.help("compare it with a date, which is written `@2026-01-31`");
        } else {
            report.help("compare values of one type; no conversion leads from one of these to the other");
        }
        None
    }

    fn lint_comparison(
        &mut self,
        op: ast::BinaryOp,
        (l, left): (&ast::Expr, &Expr),
        (r, right): (&ast::Expr, &Expr),
        span: Span,
    ) {
        let equality = matches!(op, ast::BinaryOp::Eq | ast::BinaryOp::Ne);
        let literal = is_loose(l) || is_loose(r);
        if equality && !literal && left.ty.ty.is_float() && right.ty.ty.is_float() {
            self.warning(
                "W0502",
                span,
                "floats that should be equal often differ in their last digits",
                "an exact comparison",
            )
            .help("compare with a tolerance: `abs(a - b) < 0.001`, or use a decimal");
        }
        let optional = match (left.ty.nullable, right.ty.nullable) {
            (true, _) => name_of(l),
            (_, true) => name_of(r),
            _ => return,
        };
        let kept = optional.is_some_and(|name| self.state.nulls_kept.iter().any(|kept| kept == name));
        if op == ast::BinaryOp::Ne && self.state.in_predicate && !kept {
            let name = optional.unwrap_or("the value");
            self.warning(
                "W0503",
                span,
                format!("rows where {} is null are dropped by `!=`", tick(name, optional.is_some())),
                "null here is not true",
            )
            .help(format!(
                "to keep them write `(… or {0} is null)`, with the comparison in place of the dots",
                optional.unwrap_or("…")
            ))
            .note(format!("to drop them on purpose write `{} is not null and` before it", optional.unwrap_or("…")));
        }
    }

    /// `x [not] between low and high`
    pub(crate) fn between(
        &mut self,
        negated: bool,
        value: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let checked = self.infer(value, None);
        let bounds = [low, high].map(|bound| {
            if !is_null(bound) {
                return self.infer(bound, None);
            }
            self.error("E0506", bound.span, "`between` with null is never true", "compares with null")
                .help("leave the bound out: `x >= low`, `x <= high`");
            None
        });
        let (checked, [lower, upper]) = (checked?, bounds);
        let (lower, upper) = (lower?, upper?);
        if !self.spend(size(&checked), span) {
            return None;
        }
        let at = |bound: &ast::Expr| value.span.to(bound.span);
        let lower = self.compared(BinaryOp::Ge, "between", (value, checked.clone()), (low, lower), at(low))?;
        let upper = self.compared(BinaryOp::Le, "between", (value, checked), (high, upper), at(high))?;
        let ty = DataType { ty: Type::Bool, nullable: lower.ty.nullable || upper.ty.nullable };
        let both = self.node(ExprKind::Binary(BinaryOp::And, Box::new(lower), Box::new(upper)), ty, span)?;
        self.negated_if(negated, both, span)
    }

    /// `x [not] in list`
    pub(crate) fn is_in(&mut self, negated: bool, value: &ast::Expr, list: &ast::Expr, span: Span) -> Option<Expr> {
        let checked = self.infer(value, None)?;
        let found = match &peel(list).kind {
            ast::ExprKind::List(items) => {
                let items: Vec<&ast::Expr> = items.iter().map(|item| &item.value).collect();
                self.one_of((value, checked), &items, span)?
            }
            _ => self.in_constant_list((value, checked), list, span)?,
        };
        self.negated_if(negated, found, span)
    }

    /// Whether a value equals one of several: a list of constants, or equalities joined by `or`.
    pub(crate) fn one_of(
        &mut self,
        (value, checked): (&ast::Expr, Expr),
        items: &[&ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let mut equalities = Vec::new();
        let mut sound = true;
        for item in items {
            // One type that doesn't fit is one mistake, however long the list.
            if !sound {
                break;
            }
            if is_null(item) {
                let name = written_name(value);
                self.error("E0515", item.span, "null in a list of values is never equal to anything", "null here")
                    .help(format!("test for it apart: `{name} is null or {name} in […]`"));
                sound = false;
                continue;
            }
            let equal = self.infer(item, None).and_then(|right| {
                self.compared(BinaryOp::Eq, "in", (value, checked.clone()), (item, right), item.span)
            });
            match equal {
                Some(equal) => equalities.push(equal),
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        let nullable = checked.ty.nullable || equalities.iter().any(|e| e.ty.nullable);
        let ty = DataType { ty: Type::Bool, nullable };
        if let Some((value, constants)) = in_list(&checked, &equalities) {
            return self.node(ExprKind::InList(Box::new(value), constants), ty, span);
        }
        self.equal_to_any(checked, equalities, ty, span)
    }

    /// Whether one of the equalities is true.
    fn equal_to_any(&mut self, checked: Expr, equalities: Vec<Expr>, ty: DataType, span: Span) -> Option<Expr> {
        if !self.spend(size(&checked) * equalities.len(), span) {
            return None;
        }
        let mut equalities = equalities.into_iter();
        let Some(mut any) = equalities.next() else {
            return self.node(ExprKind::InList(Box::new(checked), Vec::new()), ty, span);
        };
        for equal in equalities {
            let ty = DataType { ty: Type::Bool, nullable: any.ty.nullable || equal.ty.nullable };
            any = self.node(ExprKind::Binary(BinaryOp::Or, Box::new(any), Box::new(equal)), ty, span)?;
        }
        Some(any)
    }

    /// `x in list` where the list is a parameter or constant.
    fn in_constant_list(&mut self, (value, checked): (&ast::Expr, Expr), list: &ast::Expr, span: Span) -> Option<Expr> {
        let right = self.infer(list, None)?;
        if let Type::List(item) = &right.ty.ty
            && !matches!(right.kind, ExprKind::Literal(_))
        {
            // A list of each row's own.
            if common_type(&checked.ty, item).is_none() {
                let (text, ty, item) = (as_written(value), &checked.ty.ty, &item.ty);
                let message = format!("`in` compares {ty} with the items of {}", right.ty);
                self.error("E0523", list.span, message, format!("its items are {item}"))
                    .help(format!("convert the value: `{text} as {item}`"));
                return None;
            }
            let arg = |e: &ast::Expr| ast::Arg { label: None, value: e.clone(), span: e.span };
            let name = ast::Ident { text: "list_contains".into(), span };
            return self.call(&ast::Call { name, args: vec![arg(list), arg(value)], span }, span);
        }
        let (ExprKind::Literal(Value::List(items)), Type::List(item)) = (&right.kind, &right.ty.ty) else {
            let ty = right.ty.clone();
            let report = self.error(
                "E0523",
                list.span,
                format!("`in` takes a list of values, and this is {ty}"),
                format!("{ty}"),
            );
            match ty.ty {
                Type::String if checked.ty.ty == Type::String => {
                    let (text, part) = (as_written(list), as_written(value));
                    report.help(format!("write `contains({text}, {part})` for whether one text holds the other; a list of values stands in square brackets, `in [\"a\", \"b\"]`"))
                }
                _ => report.help("write the values in square brackets: `in [1, 2]`"),
            };
            return None;
        };
        if items.iter().any(Value::is_null) {
            self.error("E0515", list.span, "null in a list of values is never equal to anything", "has a null")
                .help("leave the null out of the list");
            return None;
        }
        let mut equalities = Vec::new();
        for constant in items.clone() {
            let item = Expr { kind: ExprKind::Literal(constant), ty: (**item).clone(), site: right.site };
            equalities.push(self.compared(BinaryOp::Eq, "in", (value, checked.clone()), (list, item), span)?);
        }
        let ty = DataType { ty: Type::Bool, nullable: checked.ty.nullable };
        match in_list(&checked, &equalities) {
            Some((value, constants)) => self.node(ExprKind::InList(Box::new(value), constants), ty, span),
            None => self.equal_to_any(checked, equalities, ty, span),
        }
    }

    /// `x [not] like p`, `x [not] matches p`
    pub(crate) fn pattern(
        &mut self,
        negated: bool,
        regex: bool,
        value: &ast::Expr,
        pattern: &ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let function = if regex { "matches" } else { "like" };
        let text = DataType::of(Type::String);
        let mut args = Vec::new();
        for e in [value, pattern] {
            args.push(self.infer(e, Some(&text)).and_then(|checked| self.text_operand(checked, e.span, function)));
        }
        let args = args.into_iter().collect::<Option<Vec<_>>>()?;
        if regex {
            self.check_constant_argument("regexp_", "pattern", &args[1], pattern.span)?;
        }
        let ty = DataType { ty: Type::Bool, nullable: args.iter().any(|arg| arg.ty.nullable) };
        let call = self.node(ExprKind::Call(function.into(), args), ty, span)?;
        self.negated_if(negated, call, span)
    }

    fn text_operand(&mut self, checked: Expr, span: Span, what: &str) -> Option<Expr> {
        match checked.ty.ty {
            Type::String => Some(checked),
            Type::Null => Some(self.retype_null(checked, &DataType::optional(Type::String))),
            _ => {
                let ty = checked.ty.clone();
                let places = self.places_of(&checked);
                self.error("E0501", span, format!("`{what}` takes string, and this is {ty}"), format!("{ty}"))
                    .related_all(places)
                    .help("convert it to text: `… as string`");
                None
            }
        }
    }
}

/// If every equality compares one and the same converted value with a constant: that value and the constants, sorted.
fn in_list(checked: &Expr, equalities: &[Expr]) -> Option<(Expr, Vec<Value<'static>>)> {
    if let ExprKind::Literal(_) = checked.kind {
        return None;
    }
    let mut value: Option<&Expr> = None;
    let mut constants = Vec::new();
    for equal in equalities {
        let ExprKind::Binary(BinaryOp::Eq, left, right) = &equal.kind else { return None };
        let ExprKind::Literal(constant) = &right.kind else { return None };
        if constant.is_null() || left.ty.ty != right.ty.ty || value.is_some_and(|value| value.ty.ty != left.ty.ty) {
            return None;
        }
        value = Some(left);
        constants.push(constant.clone());
    }
    constants.sort_by(order);
    constants.dedup();
    value.map(|value| (value.clone(), constants))
}

/// What two sides of a comparison are converted to: their common type. Where that is a decimal which would round one of them, as
/// two numbers that differ could be equal then, each to the decimal type that holds it.
fn sides(common: &Type, left: &Type, right: &Type) -> (Type, Type) {
    let own = |ty: &Type| match ty {
        Type::Int(int) => Type::Decimal(int.digits(), 0),
        ty => ty.clone(),
    };
    match (common, own(left), own(right)) {
        (Type::Decimal(_, scale), Type::Decimal(p, s), Type::Decimal(p2, s2)) if *scale < s.max(s2) => {
            (Type::Decimal(p, s), Type::Decimal(p2, s2))
        }
        _ => (common.clone(), common.clone()),
    }
}

/// The order of values of one ordered type; others stay as they are.
pub(crate) fn order(a: &Value<'_>, b: &Value<'_>) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) | (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Str(a), Value::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b))
        | (Value::DateTime(a), Value::DateTime(b))
        | (Value::Timestamp(a), Value::Timestamp(b))
        | (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    }
}

/// Whether `==` is defined: json and secrets have none, nor what holds them.
fn comparable(ty: &Type) -> bool {
    match ty {
        Type::Json | Type::Secret => false,
        Type::List(item) => comparable(&item.ty),
        Type::Record(fields) => fields.iter().all(|field| comparable(&field.ty.ty)),
        _ => true,
    }
}

/// The name that an expression is, as a cure writes it; `…` where it is another expression.
pub(crate) fn written_name(e: &ast::Expr) -> String {
    name_of(e).map_or("…".to_owned(), dfc_ir::text::written)
}

/// The name, if the expression is one.
pub(crate) fn name_of(e: &ast::Expr) -> Option<&str> {
    match &peel(e).kind {
        ast::ExprKind::Name(name) => Some(name),
        _ => None,
    }
}

fn tick(name: &str, ticked: bool) -> String {
    if ticked { format!("`{name}`") } else { name.to_owned() }
}

/// How a text literal would be written as a literal of another type.
pub(crate) fn literal_of(text: &str, ty: &Type) -> Option<String> {
    if *ty == Type::Duration {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let whole = unit.len() < text.len() && ["ms", "s", "m", "h", "d"].contains(&unit);
        return whole.then(|| text.to_owned());
    }
    dfc_eval::parse_value(text, ty).ok()?;
    match ty {
        Type::Date | Type::Time | Type::DateTime | Type::Timestamp => Some(format!("@{}", text.replace(' ', "T"))),
        Type::Int(_) | Type::Decimal(..) | Type::Float64 | Type::Float32 | Type::Bool => Some(text.to_owned()),
        _ => None,
    }
}

/// The side of a join that an operand doesn't name, if it is a field of the other one: `left` for `right.id`.
fn other_side(e: &ast::Expr) -> Option<&'static str> {
    let ast::ExprKind::Field(base, _) = &peel(e).kind else { return None };
    match name_of(base)? {
        "left" => Some("right"),
        "right" => Some("left"),
        _ => None,
    }
}
