//! The checker's face: what callers ask, and the small tools that every rule uses (reporting, sites, conversions' casts).
//!
//! The rules themselves are in the modules of [`crate::check`].

use dfc_grammar::ast::{self, Span};
use dfc_ir::{CastMode, DataType, Expr, ExprKind, Field, Type, Value, plan::Aggregate};

use crate::{FunctionTable, Globals, Gone, ItemKey, Loc, LocalDiagnostic, Scope, SiteSink, Target};

/// Types the expressions of one item.
pub struct Checker<'a> {
    /// The native functions.
    pub functions: &'a FunctionTable,
    /// Parameters, constants, user functions, records.
    pub globals: &'a Globals,
    /// The item whose spans are checked.
    pub item: ItemKey,
    /// The fields in scope.
    pub scope: Scope<'a>,
    /// Fields that operators before have taken out.
    pub gone: &'a [Gone],
    /// Numbers the places of expressions.
    pub sites: &'a mut dyn SiteSink,
    /// What was found, in the order it was found.
    pub diagnostics: Vec<LocalDiagnostic>,
    /// Set when an expression used a parameter whose value is not known: then the expressions are typed but not fit to run.
    pub unknown_values: bool,
    pub(crate) state: State,
    /// Only whether a function is sound is asked: what is wrong with it is said elsewhere.
    pub(crate) judging: bool,
}

/// What the rules keep while they walk.
#[derive(Default)]
pub(crate) struct State {
    /// Columns that a condition to the left has shown to be not null.
    pub narrowed: Vec<usize>,
    /// Inside a branch that is never taken: failing constants are left alone.
    pub dead: u32,
    /// Parameters of the user function whose body is checked; `None` outside of one.
    pub locals: Option<Vec<Local>>,
    /// Names of the user functions whose bodies are being checked, outermost first.
    pub calls: Vec<String>,
    /// The outermost of these is checked by itself, not where it is used.
    pub by_itself: bool,
    /// Nodes that functions' bodies have added.
    pub inlined: usize,
    /// The aggregates collected, inside an aggregate expression.
    pub aggregation: Option<Aggregation>,
    /// Inside the arguments of an aggregate.
    pub in_aggregate: bool,
    /// Forms around the one that is checked.
    pub depth: u32,
    /// Inside the condition of a filter.
    pub in_predicate: bool,
    /// Inside an operand of a comparison whose other one is a field of one side of a join: the other side.
    pub facing: Option<&'static str>,
    /// Names that an `or x is null` around keeps.
    pub nulls_kept: Vec<String>,
}

/// A parameter of a user function with its argument.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    pub name: String,
    pub value: Expr,
}

/// A key of an aggregation, as aggregate expressions see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateKey {
    /// Its name in the output.
    pub name: String,
    /// Its type.
    pub ty: DataType,
}

/// The aggregates of one `aggregate(…)`, collected over all of its output expressions; equal ones are kept once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aggregation {
    /// The keys (`by:`), in order.
    pub keys: Vec<AggregateKey>,
    /// What the expressions need.
    pub aggregates: Vec<Aggregate>,
}

impl Aggregation {
    /// An aggregation by these keys.
    pub fn by(keys: Vec<AggregateKey>) -> Self {
        Aggregation { keys, aggregates: Vec::new() }
    }
}

/// A checked condition of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predicate {
    /// The condition: bool, or optional bool.
    pub expr: Expr,
    /// Columns that are not null in every row that passes (conjuncts `x is not null`), ascending.
    pub narrowed: Vec<usize>,
}

impl<'a> Checker<'a> {
    /// A checker for the expressions of `item`.
    pub fn new(
        functions: &'a FunctionTable,
        globals: &'a Globals,
        item: ItemKey,
        scope: Scope<'a>,
        sites: &'a mut dyn SiteSink,
    ) -> Self {
        Checker {
            functions,
            globals,
            item,
            scope,
            gone: &[],
            sites,
            diagnostics: Vec::new(),
            unknown_values: false,
            state: State::default(),
            judging: false,
        }
    }

    /// Types an expression. `expected` is a hint: literals, `null` and empty lists take it where they can; the result may
    /// still have another type (see [`Checker::assign`]). `None`: an error was reported, here or at its cause.
    pub fn check(&mut self, e: &ast::Expr, expected: Option<&DataType>) -> Option<Expr> {
        let checked = self.infer(e, expected)?;
        if checked.ty.ty != Type::Null {
            return Some(checked);
        }
        match expected {
            Some(to) if to.nullable => Some(self.retype_null(checked, to)),
            Some(to) => {
                self.error(
                    "E0505",
                    e.span,
                    format!("a value of type {to} is expected here, and {to} has no null"),
                    "null",
                )
                .help(format!("write a value, or make the type `{to}?`"));
                None
            }
            None => {
                self.error("E0507", e.span, "the type of this `null` is not known", "null of which type?")
                    .help("say its type: `null as int64?`");
                None
            }
        }
    }

    /// [`Checker::check`] with `to` as the hint, then [`Checker::assign`].
    pub fn check_to(&mut self, e: &ast::Expr, to: &DataType, target: &Target) -> Option<Expr> {
        let checked = self.check(e, Some(to))?;
        self.assign(checked, to, e.span, target)
    }

    /// A condition: bool or optional bool. Knows which columns it shows to be not null.
    pub fn check_predicate(&mut self, e: &ast::Expr) -> Option<Predicate> {
        let outer = std::mem::replace(&mut self.state.in_predicate, true);
        let expr = self.condition(e, "a condition");
        self.state.in_predicate = outer;
        let expr = expr?;
        if let ExprKind::Literal(value) = &expr.kind {
            let words = if *value == Value::Bool(true) { "always true" } else { "never true" };
            self.warning("W0504", e.span, format!("this condition is {words}"), "doesn't depend on the row")
                .help("compare a field, or leave the condition out");
        }
        if let Some(value) = crate::check::ranges::contradiction(&expr) {
            let places = self.places_of(&value);
            let what = match places.is_empty() {
                true => "what is said of one value",
                false => "what is said of this field",
            };
            self.warning(
                "W0504",
                e.span,
                format!("this condition is never true: {what} can't hold at once"),
                "no row passes",
            )
            .related_all(places)
            .help("join the two with `or`, or mend a bound");
        }
        let mut narrowed = Vec::new();
        not_null_columns(&expr, &mut narrowed);
        narrowed.sort_unstable();
        narrowed.dedup();
        Some(Predicate { expr, narrowed })
    }

    /// An aggregate expression (`sum(a) / count()`): the aggregates go to `aggregation`, and the result is an expression
    /// over the columns [keys…, aggregates…]. The scope is the aggregation's input.
    pub fn check_aggregate(
        &mut self,
        e: &ast::Expr,
        expected: Option<&DataType>,
        aggregation: &mut Aggregation,
    ) -> Option<Expr> {
        self.state.aggregation = Some(std::mem::take(aggregation));
        let checked = self.check(e, expected);
        *aggregation = self.state.aggregation.take().unwrap_or_default();
        checked
    }

    /// A constant: an expression over literals, parameters and constants, converted to `expected`. An expression over a
    /// parameter without a value gives some value of the type and sets [`Checker::unknown_values`].
    pub fn constant(&mut self, e: &ast::Expr, expected: &DataType, target: &Target) -> Option<Value<'static>> {
        let checked = self.check_to(e, expected, target)?;
        self.value_of(checked, e.span)
    }

    /// A constant of whatever type it has.
    pub fn constant_any(&mut self, e: &ast::Expr) -> Option<(Value<'static>, DataType)> {
        let checked = self.check(e, None)?;
        let ty = checked.ty.clone();
        Some((self.value_of(checked, e.span)?, ty))
    }

    // --- tools ---

    /// The place of a span of this item.
    pub(crate) fn loc(&self, span: Span) -> Loc {
        Loc { item: self.item.clone(), span }
    }

    /// Reports an error; the caller adds help and places to what is returned.
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Report<'_> {
        let diagnostic = LocalDiagnostic::error(code, self.loc(span), message, label);
        self.report(diagnostic)
    }

    /// Reports a warning.
    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Report<'_> {
        let diagnostic = LocalDiagnostic::warning(code, self.loc(span), message, label);
        self.report(diagnostic)
    }

    fn report(&mut self, diagnostic: LocalDiagnostic) -> Report<'_> {
        let at = self.diagnostics.len();
        self.diagnostics.push(diagnostic);
        Report { diagnostic: &mut self.diagnostics[at] }
    }

    /// A node of the result with its place, its constant operands folded.
    pub(crate) fn node(&mut self, kind: ExprKind, ty: DataType, span: Span) -> Option<Expr> {
        let site = self.site(span);
        self.fold(Expr { kind, ty, site }, span)
    }

    /// The site of a span of this item.
    pub(crate) fn site(&mut self, span: Span) -> dfc_ir::Site {
        let loc = self.loc(span);
        self.sites.site(&loc)
    }

    /// A cast to `to`, folded.
    pub(crate) fn cast(&mut self, e: Expr, to: &DataType, mode: CastMode, span: Span) -> Option<Expr> {
        if to.ty == Type::String && e.ty.ty.is_numeric() && self.scope.made_of_text(&e) {
            let places = self.places_of(&e);
            self.warning(
                "W0508",
                span,
                "this number was text before, and is made text again: `001` is `1` now",
                "leading zeros are lost",
            )
            .related_all(places)
            .help("keep the text beside the number, or fill it up: `lpad(… as string, 3, \"0\")`");
        }
        self.node(ExprKind::Cast(Box::new(e), mode), to.clone(), span)
    }

    /// Converts to a type that is known to take it; nothing to do where only nullability is added.
    pub(crate) fn convert(&mut self, mut e: Expr, to: &DataType, span: Span) -> Option<Expr> {
        if e.ty.ty == Type::Null && to.nullable {
            return Some(self.retype_null(e, to));
        }
        if e.ty.ty == to.ty && (to.nullable || !e.ty.nullable) {
            e.ty.nullable = to.nullable;
            return Some(e);
        }
        self.cast(e, to, CastMode::Strict, span)
    }

    /// Converts to type `to`, nullability as it is.
    pub(crate) fn convert_plain(&mut self, e: Expr, to: &Type, span: Span) -> Option<Expr> {
        let to = DataType { ty: to.clone(), nullable: e.ty.nullable };
        self.convert(e, &to, span)
    }

    /// An expression that is always null, as one of type `to`.
    pub(crate) fn retype_null(&mut self, e: Expr, to: &DataType) -> Expr {
        Expr { kind: ExprKind::Literal(Value::Null), ty: to.with_nullable(true), site: e.site }
    }
}

/// A diagnostic being written.
pub(crate) struct Report<'d> {
    diagnostic: &'d mut LocalDiagnostic,
}

impl Report<'_> {
    pub fn help(self, help: impl Into<String>) -> Self {
        self.diagnostic.help = Some(help.into());
        self
    }

    pub fn note(self, note: impl Into<String>) -> Self {
        self.diagnostic.notes.push(note.into());
        self
    }

    pub fn related(self, loc: Loc, words: impl Into<String>) -> Self {
        self.diagnostic.related.push((loc, words.into()));
        self
    }

    pub fn related_all(self, places: Vec<(Loc, String)>) -> Self {
        self.diagnostic.related.extend(places);
        self
    }

    /// Where the field went that is looked for, and what to write instead.
    pub fn gone(self, gone: &Gone, span: Span) -> Self {
        let report = self.related_all(gone.places().collect()).help(gone.help.clone());
        match &gone.now {
            Some(now) => report.fix(format!("write `{now}`"), span, dfc_ir::text::written(now)),
            None => report,
        }
    }

    /// An edit at a place of the diagnostic's own item.
    pub fn fix(self, title: impl Into<String>, span: Span, text: impl Into<String>) -> Self {
        let loc = Loc { item: self.diagnostic.loc.item.clone(), span };
        self.diagnostic.fixes.push((title.into(), loc, text.into()));
        self
    }
}

/// The columns that are not null where `e` is true.
pub(crate) fn not_null_columns(e: &Expr, out: &mut Vec<usize>) {
    match &e.kind {
        ExprKind::Binary(dfc_ir::BinaryOp::And, l, r) => {
            not_null_columns(l, out);
            not_null_columns(r, out);
        }
        ExprKind::Unary(dfc_ir::UnaryOp::Not, x) => {
            if let ExprKind::IsNull(x) = &x.kind
                && let ExprKind::Column(index) = x.kind
            {
                out.push(index);
            }
        }
        _ => {}
    }
}

/// The fields of a record type.
pub(crate) fn record_fields(ty: &Type) -> Option<&[Field]> {
    match ty {
        Type::Record(fields) => Some(fields),
        _ => None,
    }
}
