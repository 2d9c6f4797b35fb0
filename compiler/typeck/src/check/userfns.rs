//! User functions: checked once by themselves, written out where they are called.

use std::sync::Arc;

use dfc_grammar::ast::{self, Span};
use dfc_ir::{DataType, Expr, ExprKind, Type, Value};

use super::calls::parameter_names;
use super::names::{BUDGET, size};
use super::overloads::{in_class, is_class};
use crate::checker::{Local, State};
use crate::nearest::nearest;
use crate::{Checker, Scope, Target, UserFn};

/// Functions inside functions at most.
const MAX_CALLS: usize = 32;
/// Levels of a written-out expression at most.
const MAX_LEVELS: usize = 400;

/// The class of a parameter that takes several types: `any`, `number` ….
fn class_of(param: &ast::DeclParam) -> Option<(&str, bool)> {
    match &param.kind {
        ast::ParamKind::Const(ty) | ast::ParamKind::Row(ty) => match &ty.kind {
            ast::TypeKind::Name(name) if is_class(name) => Some((name, ty.nullable)),
            _ => None,
        },
        _ => None,
    }
}

fn is_generic(param: &ast::DeclParam) -> bool {
    class_of(param).is_some()
}

impl Checker<'_> {
    /// Checks a user function by itself, with its parameters as declared. (The body of one with a parameter of a class —
    /// `any`, `number` … — is checked where it is used.) The checker's item must be the function's. `false`: an error was
    /// reported, here or at a function that it calls.
    pub fn check_fn(&mut self, function: &UserFn) -> bool {
        let decl = &function.decl;
        let mut locals: Vec<Local> = Vec::new();
        let mut sound = true;
        for (n, param) in decl.params.iter().enumerate() {
            if decl.params[..n].iter().any(|before| before.name.text == param.name.text) {
                self.error(
                    "E0425",
                    param.name.span,
                    format!("the parameter `{}` is declared twice", param.name.text),
                    "again",
                )
                .help("give it another name");
                sound = false;
            }
            let Some(ty) = self.parameter_type(param) else {
                sound &= is_generic(param);
                continue;
            };
            if let Some(default) = &param.default {
                let target = self.fn_target(function, param);
                sound &= self.in_body(function, Vec::new(), |this| this.check_to(default, &ty, &target)).is_some();
            }
            // A column that no engine sees: the body is only typed.
            locals.push(Local { name: param.name.text.clone(), value: Expr::column(usize::MAX - n, ty) });
        }
        let result = decl.result.as_ref().map(|ty| self.resolve_type(ty));
        if !sound || locals.len() < decl.params.len() || result == Some(None) {
            return sound && result != Some(None);
        }
        let result = result.flatten();
        self.state.by_itself = true;
        let body = self.in_body(function, locals, |this| this.body(function, result.as_ref()));
        self.state.by_itself = false;
        body.is_some()
    }

    /// The body, converted to the declared result.
    fn body(&mut self, function: &UserFn, result: Option<&DataType>) -> Option<Expr> {
        let body = &function.decl.body;
        let Some(result) = result else { return self.check(body, None) };
        let target = Target::FnResult { function: function.decl.name.text.clone() };
        self.check_to(body, result, &target)
    }

    fn fn_target(&self, function: &UserFn, param: &ast::DeclParam) -> Target {
        Target::FnParameter {
            function: function.decl.name.text.clone(),
            name: param.name.text.clone(),
            declared: crate::Loc { item: function.item.clone(), span: param.name.span },
        }
    }

    /// The type a parameter is declared with; `None` for a class, or an error.
    fn parameter_type(&mut self, param: &ast::DeclParam) -> Option<DataType> {
        if is_generic(param) && !param.variadic {
            return None;
        }
        match &param.kind {
            ast::ParamKind::Const(ty) | ast::ParamKind::Row(ty) if !param.variadic => self.resolve_type(ty),
            _ => {
                self.error(
                    "E0423",
                    param.span,
                    "a function's parameter has a type, and takes one value",
                    "of no single type",
                )
                .help(format!("write `{}: int64`, or `{}: any`", param.name.text, param.name.text));
                None
            }
        }
    }

    /// Works inside a function's body: its item, its parameters, no fields.
    fn in_body<T>(&mut self, function: &UserFn, locals: Vec<Local>, work: impl FnOnce(&mut Self) -> T) -> T {
        let item = std::mem::replace(&mut self.item, function.item.clone());
        let scope = std::mem::replace(&mut self.scope, Scope::None);
        let mut calls = self.state.calls.clone();
        calls.push(function.decl.name.text.clone());
        let inner = State {
            locals: Some(locals),
            calls,
            by_itself: self.state.by_itself,
            dead: self.state.dead,
            depth: self.state.depth,
            inlined: self.state.inlined,
            ..State::default()
        };
        let outer = std::mem::replace(&mut self.state, inner);
        let result = work(self);
        let spent = self.state.inlined;
        self.state = outer;
        self.state.inlined = spent;
        self.scope = scope;
        self.item = item;
        result
    }

    /// A call of a user function: its body with the arguments in the parameters' places.
    pub(crate) fn inline(&mut self, function: &Arc<UserFn>, call: &ast::Call, span: Span) -> Option<Expr> {
        let name = call.name.text.as_str();
        if let Some(at) = self.state.calls.iter().position(|caller| caller == name) {
            self.recursion(at, call);
            return None;
        }
        // Said where the budget was passed; going on would take as long as the expression is large.
        if self.state.inlined > BUDGET {
            return None;
        }
        if self.state.calls.len() >= MAX_CALLS {
            self.error("E0422", call.name.span, "functions call each other more than 32 deep", "one too many")
                .help("write shorter chains");
            return None;
        }
        let args = self.bind(function, call)?;
        let mut locals = Vec::new();
        let mut optional = Vec::new();
        let mut generic = false;
        let mut sound = true;
        for (param, arg) in function.decl.params.iter().zip(args) {
            generic |= is_generic(param);
            match self.argument(function, param, arg) {
                Some((value, guard)) => {
                    optional.extend(guard);
                    locals.push(Local { name: param.name.text.clone(), value });
                }
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        let result = match &function.decl.result {
            Some(ty) => Some(self.quietly(function, |this| this.resolve_type(ty))?),
            None => None,
        };
        let before = self.diagnostics.len();
        let body = self.in_body(function, locals, |this| this.body(function, result.as_ref()));
        self.blame(function, before, generic, span);
        let body = body?;
        if levels(&body, MAX_LEVELS) > MAX_LEVELS {
            self.error(
                "E0422",
                span,
                "with its functions written out this expression is nested too deeply",
                "too deep",
            )
            .help("compute the argument in a `derive` before, and pass the field");
            return None;
        }
        if optional.is_empty() {
            return Some(body);
        }
        // A null argument for a parameter without `?`: the result is null, and the body doesn't run.
        let ty = body.ty.with_nullable(true);
        let null = Expr { kind: ExprKind::Literal(Value::Null), ty: ty.clone(), site: body.site };
        let mut arms = Vec::new();
        for value in optional {
            if !self.spend(size(&value), span) {
                return None;
            }
            let test = self.node(ExprKind::IsNull(Box::new(value)), DataType::of(Type::Bool), span)?;
            if test.kind == ExprKind::Literal(Value::Bool(true)) {
                return Some(null);
            }
            arms.push((test, null.clone()));
        }
        self.node(ExprKind::Case { arms, otherwise: Box::new(body) }, ty, span)
    }

    /// A call that leads back to the `at`-th of the functions around it. Every cycle is reported once: where the function whose name
    /// comes first is checked by itself, or where a generic one is used (it is not checked by itself).
    fn recursion(&mut self, at: usize, call: &ast::Call) {
        let cycle = &self.state.calls[at..];
        let globals = self.globals;
        let generic = |name: &String| globals.functions.get(name).is_some_and(|f| f.decl.params.iter().any(is_generic));
        let first = self.state.by_itself && at == 0 && cycle.iter().min() == cycle.first();
        if !first && !cycle.iter().any(generic) {
            return;
        }
        let name = call.name.text.as_str();
        let mut way: Vec<&str> = cycle.iter().map(String::as_str).collect();
        way.push(name);
        let way = way.join(" → ");
        self.error("E0416", call.name.span, format!("the function `{name}` calls itself: {way}"), "recursion")
            .help("functions are written out where they are used, so none can call itself");
    }

    /// What a body's check reported at a call. The body of a plain function was reported at its declaration; that of a generic one is
    /// reported with its use. What is too large is reported at the outermost call, unless the function is so by itself.
    fn blame(&mut self, function: &UserFn, before: usize, generic: bool, span: Span) {
        let used = self.loc(span);
        let fresh = self.diagnostics.split_off(before);
        let outermost = self.state.calls.len() <= usize::from(self.state.by_itself);
        let mut too_large = false;
        for diagnostic in fresh {
            match diagnostic.code {
                "E0422" if outermost => too_large = true,
                "E0422" | "E0416" => self.diagnostics.push(diagnostic),
                _ if generic => self.diagnostics.push(diagnostic.related(used.clone(), "used here")),
                _ => {}
            }
        }
        if too_large && !self.judging && (generic || self.sound_by_itself(function)) {
            let name = &function.decl.name.text;
            self.error("E0422", span, format!("with `{name}` written out this expression is too large"), "grows here")
                .note("it may have 400 levels and 100,000 parts; a parameter is written out wherever it is used")
                .help("compute the argument in a `derive` before, and pass the field");
        }
    }

    /// Whether the function is sound where it is declared; says nothing.
    fn sound_by_itself(&mut self, function: &UserFn) -> bool {
        let outer = std::mem::take(&mut self.state);
        let item = std::mem::replace(&mut self.item, function.item.clone());
        let before = self.diagnostics.len();
        self.judging = true;
        let sound = self.check_fn(function);
        self.judging = false;
        self.diagnostics.truncate(before);
        self.item = item;
        self.state = outer;
        sound
    }

    /// Does work whose errors were reported at the function's declaration.
    fn quietly<T>(&mut self, function: &UserFn, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.diagnostics.len();
        let result = self.in_body(function, Vec::new(), work);
        self.diagnostics.truncate(before);
        result
    }

    /// An argument converted to its parameter's type, and the optional value that must not be null, if it is one.
    fn argument(
        &mut self,
        function: &UserFn,
        param: &ast::DeclParam,
        arg: Option<&ast::Arg>,
    ) -> Option<(Expr, Option<Expr>)> {
        let class = class_of(param).map(|(class, nullable)| (class.to_owned(), nullable));
        let declared = match &class {
            Some(_) => None,
            None => Some(self.quietly(function, |this| this.parameter_type(param))?),
        };
        let target = self.fn_target(function, param);
        let Some(arg) = arg else {
            let default = param.default.as_ref()?;
            let value = self.quietly(function, |this| match &declared {
                Some(ty) => this.check_to(default, ty, &target),
                None => this.check(default, None),
            });
            return value.map(|value| (value, None));
        };
        let span = arg.value.span;
        let hint = declared.as_ref().map(|ty| ty.with_nullable(true));
        let value = self.check(&arg.value, hint.as_ref())?;
        if let Some((class, takes_null)) = &class {
            if !in_class(&value.ty.ty, class) {
                let ty = value.ty.clone();
                let places = self.places_of(&value);
                self.error(
                    "E0512",
                    span,
                    format!("{} takes {class}, and this is {ty}", target.words()),
                    format!("{ty}"),
                )
                .related_all(places)
                .related(crate::Loc { item: function.item.clone(), span: param.span }, "declared here");
                return None;
            }
            return self.without_null(value, *takes_null, span);
        }
        let declared = declared?;
        let wanted = declared.with_nullable(declared.nullable || value.ty.nullable);
        let value = self.assign(value, &wanted, span, &target)?;
        self.without_null(value, declared.nullable, span)
    }

    /// For a parameter without `?`: the value as one that is not null, and the test that must come before.
    fn without_null(&mut self, value: Expr, takes_null: bool, span: Span) -> Option<(Expr, Option<Expr>)> {
        if takes_null || !value.ty.nullable {
            return Some((value, None));
        }
        let plain = value.ty.with_nullable(false);
        if let ExprKind::Literal(Value::Null) = value.kind {
            // Never used: the test before it is true.
            let kind = ExprKind::Cast(Box::new(value.clone()), dfc_ir::CastMode::Strict);
            return Some((Expr { kind, ty: plain, site: value.site }, Some(value)));
        }
        let inner = self.cast(value.clone(), &plain, dfc_ir::CastMode::Strict, span)?;
        Some((inner, Some(value)))
    }

    /// Which argument goes to which parameter; `None` in a place: its default.
    fn bind<'e>(&mut self, function: &UserFn, call: &'e ast::Call) -> Option<Vec<Option<&'e ast::Arg>>> {
        let params = &function.decl.params;
        let name = &call.name.text;
        let note = parameter_names(&function.decl);
        let mut slots: Vec<Option<&ast::Arg>> = vec![None; params.len()];
        let mut named = false;
        for (n, arg) in call.args.iter().enumerate() {
            let slot = match &arg.label {
                Some(label) => {
                    named = true;
                    let slot = params.iter().position(|param| param.name.text == label.text);
                    if slot.is_none() {
                        let near = nearest(&label.text, params.iter().map(|p| p.name.text.as_str()));
                        let report = self
                            .error(
                                "E0418",
                                label.span,
                                format!("`{}` is not a parameter of `{name}`", label.text),
                                "unknown parameter",
                            )
                            .note(note);
                        if let Some(near) = near {
                            report.help(format!("did you mean `{near}`?"));
                        }
                        return None;
                    }
                    slot
                }
                None if named => {
                    self.error(
                        "E0418",
                        arg.span,
                        "an argument without a name stands after one with a name",
                        "which parameter?",
                    )
                    .help("put it before the named ones, or name it");
                    return None;
                }
                None => Some(n),
            };
            match slot.and_then(|slot| slots.get_mut(slot)) {
                Some(place @ None) => *place = Some(arg),
                Some(Some(_)) => {
                    self.error("E0418", arg.span, "this parameter is given twice", "again").note(note);
                    return None;
                }
                None => {
                    let message = format!("`{name}` takes {} arguments, not {}", params.len(), call.args.len());
                    self.error("E0418", arg.span, message, "one too many").note(note);
                    return None;
                }
            }
        }
        let missing = params.iter().zip(&slots).find(|(param, slot)| slot.is_none() && param.default.is_none());
        if let Some((param, _)) = missing {
            let declared = crate::Loc { item: function.item.clone(), span: param.span };
            self.error(
                "E0418",
                call.span,
                format!("`{name}` is not given its parameter `{}`", param.name.text),
                "missing here",
            )
            .related(declared, "declared here")
            .note(note);
            return None;
        }
        Some(slots)
    }
}

/// Levels of an expression, counted to one more than `most` at most.
fn levels(e: &Expr, most: usize) -> usize {
    let mut stack = vec![(e, 1)];
    let mut deepest = 0;
    while let Some((e, level)) = stack.pop() {
        deepest = deepest.max(level);
        if deepest > most {
            break;
        }
        e.for_each_child(&mut |child| stack.push((child, level + 1)));
    }
    deepest
}
