//! Calls: which function a name means, its arguments, and native functions.

use dfc_grammar::ast::{self, Span};
use dfc_ir::{DataType, Expr, ExprKind, Type};

use super::branches::rounds;
use super::literals::is_loose;
use super::names::list_of;
use super::overloads::{Argument, Choice, choose, declared, is_strict, parameter, takes, technical};
use super::results::result_type;
use crate::Scope;
use crate::nearest::{FOREIGN_FORMS, FOREIGN_FUNCTIONS, foreign, nearest};
use crate::{Checker, Function};
use dfc_ir::text::written;

/// How dates are written.
const WRITTEN_DATES: &str = "a date is written `@2026-01-31`, with a time `@2026-01-31T10:00:00`";

impl Checker<'_> {
    /// `name(args)`
    pub(crate) fn call(&mut self, call: &ast::Call, span: Span) -> Option<Expr> {
        let name = call.name.text.as_str();
        let globals = self.globals;
        if let Some(function) = globals.functions.get(name) {
            return self.inline(&function.clone(), call, span);
        }
        if globals.broken.contains(name) && self.functions.get(name).is_none() {
            return None;
        }
        let functions = self.functions;
        let Some(function) = functions.get(name) else { return self.unknown_function(call) };
        if function.aggregate {
            return self.aggregate_call(function, call, span);
        }
        let args = self.arguments(function, &call.args)?;
        self.native(function, args, call, span)
    }

    /// Checks arguments and brings them into the order of the parameters.
    pub(crate) fn arguments<'e>(&mut self, function: &Function, args: &'e [ast::Arg]) -> Option<Vec<Argument<'e>>> {
        let hint = match function.overloads.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        let mut checked = Vec::new();
        let mut sound = true;
        let ordered = self.in_order(function, args)?;
        if let Some(bare) = ordered.iter().position(|arg| self.is_bare_unit(function, &arg.value)) {
            self.bare_unit(function, &ordered, bare);
            return None;
        }
        for (n, arg) in ordered.into_iter().enumerate() {
            let expected = hint
                .and_then(|overload| declared(parameter(overload, n)?))
                .and_then(|ty| super::overloads::instance(ty, &[], &Type::Null))
                .map(DataType::optional);
            match self.infer(&arg.value, expected.as_ref()) {
                Some(value) => {
                    let loose = is_loose(&arg.value);
                    checked.push(Argument { value, syntax: &arg.value, loose });
                }
                None => sound = false,
            }
        }
        sound.then_some(checked)
    }

    /// Whether an argument is a name that means nothing but a unit, of a function that takes one: `date_add(days, 3, placed)`.
    fn is_bare_unit(&self, function: &Function, arg: &ast::Expr) -> bool {
        let takes_unit = function.overloads.iter().any(|o| o.decl.params.iter().any(|p| p.name.text == "unit"));
        let name = super::compare::name_of(arg).filter(|name| takes_unit && !self.knows(name));
        name.and_then(unit).is_some()
    }

    /// Says that a unit is a text, and writes the call out if all else in it is sound.
    fn bare_unit(&mut self, function: &Function, args: &[&ast::Arg], bare: usize) {
        let span = args[bare].value.span;
        let Some(name) = super::compare::name_of(&args[bare].value) else { return };
        let unit = unit(name).unwrap_or(name);
        let text = ast::Expr { kind: ast::ExprKind::Literal(ast::Literal::String(unit.to_owned())), span };
        let mut whole = Vec::new();
        for (n, arg) in args.iter().enumerate() {
            let syntax = if n == bare { &text } else { &arg.value };
            let Some(value) = self.infer(syntax, None) else { return };
            whole.push(Argument { value, syntax, loose: is_loose(syntax) });
        }
        let right = match choose(function, &whole) {
            Some(_) => Some(call_of(function, whole.iter().map(|arg| arg.syntax))),
            None => turned(function, &whole),
        };
        let forms = forms(function);
        let report =
            self.error("E0410", span, format!("there is no field `{name}` here: a unit is a text"), "not a text");
        match right {
            Some(right) => report.help(format!("write `{right}`")),
            None => report.note(forms).help(format!("write `\"{unit}\"`")),
        };
    }

    /// Named arguments put at the place of their parameter in the declaration that has all of the names.
    fn in_order<'e>(&mut self, function: &Function, args: &'e [ast::Arg]) -> Option<Vec<&'e ast::Arg>> {
        let Some(first_named) = args.iter().position(|arg| arg.label.is_some()) else {
            return Some(args.iter().collect());
        };
        if let Some(arg) = args[first_named..].iter().find(|arg| arg.label.is_none()) {
            self.error(
                "E0418",
                arg.span,
                "an argument without a name stands after one with a name",
                "which parameter?",
            )
            .help("put it before the named ones, or name it");
            return None;
        }
        let name_of = |arg: &ast::Arg| arg.label.as_ref().map(|label| label.text.clone());
        for overload in &function.overloads {
            let params = &overload.decl.params;
            if params.len() != args.len() || params.iter().any(|p| p.variadic) {
                continue;
            }
            let mut ordered: Vec<&ast::Arg> = args[..first_named].iter().collect();
            for param in &params[first_named..] {
                ordered.extend(args[first_named..].iter().find(|arg| name_of(arg).as_ref() == Some(&param.name.text)));
            }
            if ordered.len() == args.len() {
                return Some(ordered);
            }
        }
        let known: Vec<&str> = function
            .overloads
            .iter()
            .flat_map(|overload| &overload.decl.params)
            .map(|param| param.name.text.as_str())
            .collect();
        let label =
            args.iter().filter_map(|arg| arg.label.as_ref()).find(|label| !known.contains(&label.text.as_str()));
        match label {
            Some(label) => {
                let near = nearest(&label.text, known.iter().copied());
                let forms = forms(function);
                let distinct = distinct_values(function.name.as_str(), &label.text, &args[..first_named]);
                let report = self
                    .error(
                        "E0418",
                        label.span,
                        format!("`{}` is not a parameter of `{}`", label.text, function.name),
                        "unknown parameter",
                    )
                    .note(forms);
                if let Some(distinct) = distinct {
                    report.help(distinct);
                } else if let Some(near) = near {
                    report.help(format!("did you mean `{near}`?")).fix(
                        format!("write `{near}`"),
                        label.span,
                        written(near),
                    );
                }
            }
            None => {
                let span = args[first_named].span;
                let forms = forms(function);
                self.error(
                    "E0418",
                    span,
                    format!("no form of `{}` takes these arguments", function.name),
                    "no form fits",
                )
                .note(forms);
            }
        }
        None
    }

    /// A native function on checked arguments.
    fn native(&mut self, function: &Function, args: Vec<Argument<'_>>, call: &ast::Call, span: Span) -> Option<Expr> {
        if function.name == "coalesce" && !args.is_empty() {
            let values = args.into_iter().map(|arg| (arg.value, arg.syntax)).collect();
            return self.coalesce(values, span, None, "the arguments of `coalesce`");
        }
        let choice = self.resolve(function, &args, call)?;
        for (n, arg) in args.iter().enumerate() {
            if let Some(param) = parameter(choice.overload, n) {
                self.check_constant_argument(&function.name, &param.name.text, &arg.value, arg.syntax.span)?;
            }
        }
        let values = self.convert_arguments(args, &choice)?;
        let mut ty = self.result(function, &choice, &values, span)?;
        if function.overloads.iter().any(is_coalescing) {
            ty.nullable = values.iter().all(|value| value.ty.nullable);
        } else if is_strict(choice.overload) {
            ty.nullable |= values.iter().any(|value| value.ty.nullable);
        }
        let kind = match function.name.as_str() {
            "now" => ExprKind::Now,
            "today" => ExprKind::Today,
            name => ExprKind::Call(name.to_owned(), values),
        };
        self.node(kind, ty, span)
    }

    /// The result's type as declared.
    pub(crate) fn result(
        &mut self,
        function: &Function,
        choice: &Choice<'_>,
        values: &[Expr],
        span: Span,
    ) -> Option<DataType> {
        let ty = result_type(choice, values);
        if ty.is_none() {
            let form = choice.overload.signature.clone();
            self.error("E0512", span, format!("the result of `{}` has no type here", function.name), "no type")
                .note(format!("its declaration is `{form}`"))
                .help(
                    "the standard library names a rule that this compiler doesn't know: the two don't belong together",
                );
        }
        ty
    }

    pub(crate) fn convert_arguments(&mut self, args: Vec<Argument<'_>>, choice: &Choice<'_>) -> Option<Vec<Expr>> {
        let mut values = Vec::new();
        if let Some((arg, to)) =
            args.iter().zip(&choice.types).find(|(arg, to)| !arg.loose && rounds(&arg.value.ty.ty, to))
        {
            let (from, at) = (arg.value.ty.ty.clone(), arg.syntax.span);
            self.lint_rounding(&from, to, "the arguments", at);
        }
        for (arg, to) in args.into_iter().zip(&choice.types) {
            let value = if arg.loose {
                super::literals::adapt(arg.value, to, super::literals::Adapt::Place)
            } else {
                arg.value
            };
            values.push(self.convert_plain(value, to, arg.syntax.span)?);
        }
        Some(values)
    }

    /// The declaration a call means, or an error that lists the forms.
    pub(crate) fn resolve<'t>(
        &mut self,
        function: &'t Function,
        args: &[Argument<'_>],
        call: &ast::Call,
    ) -> Option<Choice<'t>> {
        if let Some(choice) = choose(function, args) {
            return Some(choice);
        }
        let name = &function.name;
        let forms = forms(function);
        if !function.overloads.iter().any(|overload| takes(overload, args.len())) {
            let count = match args.len() {
                0 => "none".to_owned(),
                n => n.to_string(),
            };
            let message = format!("`{name}` takes {}, not {count}", counts(function));
            let label = format!("{count} given");
            let date = name == "date" || name == "datetime" || name == "timestamp";
            let constants = args.iter().all(|arg| matches!(arg.value.kind, ExprKind::Literal(_)));
            let report = self.error("E0418", call.span, message, label);
            if date && constants {
                report.note(forms).help(WRITTEN_DATES);
            } else if name == "date_add" && args.len() == 2 {
                let by = args.iter().find_map(|arg| match &arg.value.kind {
                    ExprKind::Literal(dfc_ir::Value::Int(days)) => Some(days.to_string()),
                    _ => None,
                });
                let by = by.unwrap_or_else(|| "7".into());
                report
                    .note(forms)
                    .help(format!("a date moves by a duration, `day + {by}d`, and by months with `add_months`"));
            } else {
                report.help(forms);
            }
            return None;
        }
        // With one argument that no form takes, that one is to blame.
        let mut places = Vec::new();
        for arg in args {
            places.extend(self.places_of(&arg.value));
        }
        let given: Vec<String> = args.iter().map(|arg| arg.value.ty.to_string()).collect();
        let wanted: Vec<Vec<Option<Type>>> = function
            .overloads
            .iter()
            .filter(|overload| takes(overload, args.len()))
            .map(|overload| {
                let declared = |n| declared(parameter(overload, n)?);
                // A type variable takes what it is given: it is not to blame.
                (0..args.len()).map(|n| super::overloads::instance(declared(n)?, &[], &Type::Null)).collect()
            })
            .collect();
        let zone = args.iter().enumerate().any(|(n, arg)| {
            wanted.iter().any(
                |types| matches!(types.get(n), Some(Some(ty)) if crate::conversions::needs_zone(&arg.value.ty.ty, ty)),
            )
        });
        let cast = args.iter().enumerate().find_map(|(n, arg)| {
            let to = wanted.iter().find_map(|types| types.get(n)?.as_ref())?;
            let from = &arg.value.ty.ty;
            let helps = crate::conversions::castable(from, to) && !crate::conversions::outcome(from, to).is_silent();
            // An optional value stays one: that it is null is no mistake.
            helps.then(|| (arg.syntax, DataType { ty: to.clone(), nullable: arg.value.ty.nullable }))
        });
        let turned = turned(function, args);
        // `date_trunc(1, day)`: what only a text can say.
        let technical = function.overloads.iter().filter(|overload| takes(overload, args.len())).find_map(|overload| {
            let no_text = |n: &usize| !matches!(args[*n].value.ty.ty, Type::String | Type::Null);
            (0..args.len()).filter(no_text).find_map(|n| technical(overload, n))
        });
        // `date("2026-01-31")`
        let date = match (name.as_str(), args.first().map(|arg| &arg.value.kind)) {
            ("date" | "datetime" | "timestamp", Some(ExprKind::Literal(dfc_ir::Value::Str(text)))) => {
                [Type::Date, Type::DateTime, Type::Timestamp].iter().find_map(|ty| super::compare::literal_of(text, ty))
            }
            _ => None,
        };
        let texts = args.len() == 1 && args[0].value.ty.ty == Type::String;
        let number =
            texts && function.overloads.iter().all(|o| o.decl.generics.iter().any(|(_, class)| class.text == "number"));
        let numbers = match self.scope {
            Scope::Row(columns) if function.aggregate => {
                let numbers = columns.iter().filter(|column| column.ty.ty.is_numeric()).take(6);
                numbers.map(|column| format!("`{}`", written(&column.name))).collect::<Vec<_>>().join(", ")
            }
            _ => String::new(),
        };
        let zone = zone && turned.is_none();
        let code = if zone { "E0509" } else { "E0512" };
        let message = format!("`{name}` can't take {}", given.join(", "));
        let label = if zone { "a wall clock meets an instant" } else { "no form fits" };
        let report = self.error(code, call.span, message, label).related_all(places).note(forms);
        if zone {
            report.help(
                "this needs a time zone: `to_datetime(x, \"Asia/Shanghai\")` makes a datetime of a timestamp, \
                 `to_timestamp(x, \"Asia/Shanghai\")` the reverse",
            );
        } else if let Some(right) = turned {
            let help = format!("the arguments stand in another order: `{right}`");
            // What can't be written out isn't put in place of what stands there.
            match right.contains('…') {
                true => report.help(help),
                false => report.help(help).fix(format!("write `{right}`"), call.span, right),
            };
        } else if let Some((param, example)) = technical {
            report.help(format!("`{param}` is a text, such as `{example}`"));
        } else if let Some(literal) = date {
            report.help(format!("write `{literal}`")).fix(format!("write `{literal}`"), call.span, literal);
        } else if number {
            let name = args.first().map_or("…".into(), |arg| super::compare::written_name(arg.syntax));
            let convert = format!("a text that holds numbers is converted first: `{name} as decimal(18, 2)`");
            report.help(match function.aggregate {
                true if numbers.is_empty() => {
                    format!(
                        "rows are counted with `count()`, the different values with `count_distinct({name})`; {convert}"
                    )
                }
                true => format!(
                    "the fields that are numbers here are {numbers}; rows are counted with `count()`; {convert}"
                ),
                false => format!("convert the text first: `{name} as decimal(18, 2)`"),
            });
        } else if let Some((syntax, to)) = cast {
            let name = super::compare::written_name(syntax);
            report.help(format!("convert the argument: `{name} as {to}`"));
        } else {
            report.help("convert the argument with `as`, or give another one");
        }
        None
    }

    fn unknown_function(&mut self, call: &ast::Call) -> Option<Expr> {
        let name = call.name.text.as_str();
        let span = call.name.span;
        let functions = self.functions;
        let globals = self.globals;
        let here = foreign(FOREIGN_FUNCTIONS, name).filter(|here| functions.get(here).is_some());
        let form = foreign(FOREIGN_FORMS, name);
        let own = globals.functions.keys().map(String::as_str);
        let near = nearest(name, own.chain(functions.iter().map(|f| f.name.as_str())));
        let is_field = self.scope.names().contains(&name);
        let report = self.error("E0413", span, format!("there is no function `{name}`"), "unknown function");
        if let Some(here) = here {
            report.help(format!("it is called `{here}` here")).fix(format!("write `{here}`"), span, here);
        } else if let Some(form) = form {
            report.help(format!("write {form}"));
        } else if let Some(near) = near {
            report.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), span, written(near));
        } else if is_field {
            report.help(format!("`{name}` is a field: leave out the parentheses"));
        } else {
            report.help("`dfc functions` lists all functions; `fn name(x: int64) = …` declares one");
        }
        None
    }
}

/// What to write for `count(id, distinct: true)`, and for its like of other aggregates.
fn distinct_values(function: &str, label: &str, before: &[ast::Arg]) -> Option<String> {
    if !["distinct", "unique"].contains(&label.to_lowercase().as_str()) {
        return None;
    }
    let counted = match before {
        [ast::Arg { value: ast::Expr { kind: ast::ExprKind::Name(name), .. }, .. }] => written(name),
        _ => "id".to_owned(),
    };
    Some(match function {
        "count" => format!("different values are counted with `count_distinct({counted})`"),
        _ => "rows that are there twice are taken out before, `|> distinct(by: [id])`".to_owned(),
    })
}

/// The call with its arguments in an order in which they fit, where there is one.
fn turned(function: &Function, args: &[Argument<'_>]) -> Option<String> {
    // With more of them an order that fits says little.
    let orders: &[&[usize]] = match args.len() {
        2 => &[&[1, 0]],
        // One of them moved from an end to the other comes first, two exchanged after that.
        3 => &[&[2, 0, 1], &[1, 2, 0], &[1, 0, 2], &[0, 2, 1], &[2, 1, 0]],
        _ => &[],
    };
    let fits = orders.iter().find(|order| {
        let turned = order.iter().map(|n| &args[*n]);
        let turned = turned.map(|arg| Argument { value: arg.value.clone(), syntax: arg.syntax, loose: arg.loose });
        let turned: Vec<Argument<'_>> = turned.collect();
        let units = choose(function, &turned).map(|choice| {
            // A text that is to be a unit has to be one: `split_part(status, 1, "-")` has its own order.
            let unit = choice.overload.decl.params.iter().position(|param| param.name.text == "unit");
            unit.and_then(|unit| turned.get(unit)).is_none_or(|arg| match &arg.value.kind {
                ExprKind::Literal(dfc_ir::Value::Str(text)) => dfc_stdlib::validate_unit(text).is_ok(),
                _ => false,
            })
        });
        units.unwrap_or(false)
    })?;
    Some(call_of(function, fits.iter().map(|n| args[*n].syntax)))
}

fn call_of<'e>(function: &Function, args: impl Iterator<Item = &'e ast::Expr>) -> String {
    let written: Vec<String> = args.map(as_written).collect();
    format!("{}({})", function.name, written.join(", "))
}

/// The unit that a word means: `days` is `day`.
fn unit(word: &str) -> Option<&str> {
    [word, word.strip_suffix('s').unwrap_or(word)].into_iter().find(|unit| dfc_stdlib::validate_unit(unit).is_ok())
}

/// A short expression as it is written; `…` for a longer one.
pub(crate) fn as_written(e: &ast::Expr) -> String {
    use ast::Literal;
    match &e.kind {
        ast::ExprKind::Name(name) => written(name),
        ast::ExprKind::Field(base, field) => format!("{}.{}", as_written(base), written(&field.text)),
        ast::ExprKind::Literal(Literal::Int(n)) => n.to_string(),
        ast::ExprKind::Literal(Literal::Bool(value)) => value.to_string(),
        ast::ExprKind::Literal(Literal::Null) => "null".to_owned(),
        ast::ExprKind::Literal(Literal::String(text)) if !text.contains(['"', '\\', '\n']) => format!("\"{text}\""),
        ast::ExprKind::Unary(ast::UnaryOp::Neg, value) => format!("-{}", as_written(value)),
        ast::ExprKind::Call(call) if call.args.is_empty() => format!("{}()", written(&call.name.text)),
        _ => "…".to_owned(),
    }
}

fn is_coalescing(overload: &crate::Overload) -> bool {
    matches!(&overload.decl.output, ast::NativeOutput::Rule(rule) if rule.text == "coalesce")
}

/// The declared forms, for a note.
fn forms(function: &Function) -> String {
    // Where the result follows from a rule its name says nothing to people.
    let form = |o: &crate::Overload| format!("`{}`", o.signature.split(" -> rule ").next().unwrap_or_default());
    let forms: Vec<String> = function.overloads.iter().map(form).collect();
    match forms.as_slice() {
        [only] => format!("it is declared as {only}"),
        _ => format!("the forms are {}", forms.join(", ")),
    }
}

/// "1 or 2 arguments"
fn counts(function: &Function) -> String {
    let mut counts: Vec<(usize, bool)> = function
        .overloads
        .iter()
        .map(|o| (o.decl.params.iter().filter(|p| !p.variadic).count(), o.decl.params.iter().any(|p| p.variadic)))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    let words: Vec<String> = counts
        .iter()
        .map(|(n, more)| match (n, more) {
            (0, false) => "no".to_owned(),
            (n, false) => n.to_string(),
            (n, true) => format!("{n} or more"),
        })
        .collect();
    let plural = if counts == [(1, false)] { "argument" } else { "arguments" };
    format!("{} {plural}", words.join(" or "))
}

/// Names of a function's parameters, for a note.
pub(crate) fn parameter_names(decl: &ast::FnDecl) -> String {
    let names: Vec<&str> = decl.params.iter().map(|p| p.name.text.as_str()).collect();
    match names.is_empty() {
        true => "it has no parameters".into(),
        false => list_of("its parameters are", &names),
    }
}
