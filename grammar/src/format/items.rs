//! Writes items: declarations, settings and the statements of operators.

use super::cursor::{Cursor, Mismatch, Walk};
use super::exprs::{Slot, assigned, bound, chain, empty, expr, fields, lines, list, type_expr};
use super::layout::{STIFF, WIDTH};
use crate::ast::*;
use crate::token::TokenKind as T;

/// Columns of a record on one line: longer ones are read more easily with a line a field.
const RECORD_WIDTH: usize = 80;

/// A group that is never flat.
const NEVER: usize = 0;

pub(super) fn item(c: &mut Cursor<'_>, item: &ItemKind) -> Walk {
    // The item word.
    c.any()?;
    c.space();
    match item {
        ItemKind::Job(job) => {
            c.any()?;
            c.space();
            settings(c, &job.settings, NEVER)
        }
        ItemKind::Param(param) => {
            c.any()?;
            c.token(T::Colon)?;
            c.space();
            type_expr(c, &param.ty)?;
            default(c, &param.default)
        }
        ItemKind::Const(constant) => {
            c.any()?;
            if let Some(ty) = &constant.ty {
                c.token(T::Colon)?;
                c.space();
                type_expr(c, ty)?;
            }
            equals(c, &constant.value)
        }
        ItemKind::Record(record) => {
            c.any()?;
            c.space();
            fields(c, &record.fields, RECORD_WIDTH)
        }
        ItemKind::Source(Source { chain, .. }) | ItemKind::Stream(Stream { chain, .. }) => {
            c.any()?;
            c.space();
            c.token(T::Assign)?;
            c.space();
            own_chain(c, chain)
        }
        ItemKind::Sink(sink) if !sink.block => sink.chains.iter().try_for_each(|chain| own_chain(c, chain)),
        ItemKind::Sink(sink) if sink.chains.is_empty() => empty(c, T::LBrace, T::RBrace),
        ItemKind::Sink(sink) => {
            c.open_within(NEVER);
            lines(c, &sink.chains, own_chain)
        }
        ItemKind::Fn(function) => {
            c.any()?;
            params(c, &function.params)?;
            if let Some(ty) = &function.result {
                arrow(c)?;
                type_expr(c, ty)?;
            }
            equals(c, &function.body)
        }
        ItemKind::Operator(operator) => {
            c.any()?;
            params(c, &operator.params)?;
            arrow(c)?;
            output(c, &operator.output)?;
            c.space();
            members(c, operator)
        }
        ItemKind::Use(_) => c.any(),
        ItemKind::Native(declared) => native(c, declared),
    }
}

/// A chain with its lines for itself: one link may stay beside its head, more get a line each.
fn own_chain(c: &mut Cursor<'_>, own: &Chain) -> Walk {
    c.open_within(if own.links.len() < 2 { WIDTH } else { NEVER });
    chain(c, own)
}

fn equals(c: &mut Cursor<'_>, value: &Expr) -> Walk {
    c.space();
    c.token(T::Assign)?;
    bound(c, value)
}

fn default(c: &mut Cursor<'_>, default: &Option<Expr>) -> Walk {
    default.as_ref().map_or(Ok(()), |value| equals(c, value))
}

fn arrow(c: &mut Cursor<'_>) -> Walk {
    c.space();
    c.token(T::Arrow)?;
    c.space();
    Ok(())
}

fn settings(c: &mut Cursor<'_>, list: &[Setting], limit: usize) -> Walk {
    if list.is_empty() {
        return empty(c, T::LBrace, T::RBrace);
    }
    c.open_within(limit);
    lines(c, list, |c, setting| {
        c.any()?;
        match &setting.value {
            SettingValue::Expr(value) => {
                c.token(T::Colon)?;
                assigned(c, value)
            }
            SettingValue::Block(inner) => {
                c.space();
                settings(c, inner, WIDTH)
            }
        }
    })
}

fn params(c: &mut Cursor<'_>, params: &[DeclParam]) -> Walk {
    list(c, (T::LParen, T::RParen), false, params, |c, param| {
        if param.variadic {
            c.token(T::Ellipsis)?;
        }
        c.any()?;
        c.token(T::Colon)?;
        c.space();
        match &param.kind {
            ParamKind::Const(ty) => type_expr(c, ty)?,
            ParamKind::Row(ty) | ParamKind::Agg(ty) | ParamKind::Pair(ty) => {
                c.any()?;
                c.space();
                type_expr(c, ty)?;
            }
            ParamKind::Enum(names) => {
                c.any()?;
                for _ in 1..names.len() {
                    c.space();
                    c.token(T::Bar)?;
                    c.space();
                    c.any()?;
                }
            }
            ParamKind::Bare(_) => c.any()?,
        }
        default(c, &param.default)?;
        if let Some((low, high)) = &param.range {
            c.space();
            c.any()?;
            c.space();
            expr(c, low, Slot::After)?;
            c.token(T::Range)?;
            expr(c, high, Slot::After)?;
        }
        Ok(())
    })
}

fn output(c: &mut Cursor<'_>, rule: &OutputRule) -> Walk {
    for (i, (_, term)) in rule.terms.iter().enumerate() {
        if i > 0 {
            c.space();
            c.any()?;
            c.space();
        }
        match term {
            OutputTerm::Name(_) => c.any()?,
            OutputTerm::Rule(_) => {
                c.any()?;
                c.space();
                c.any()?;
            }
            OutputTerm::Fields(list) => fields(c, list, STIFF)?,
        }
    }
    Ok(())
}

fn native(c: &mut Cursor<'_>, native: &Native) -> Walk {
    // Its role and its name.
    c.any()?;
    c.space();
    c.any()?;
    if !native.generics.is_empty() {
        c.token(T::Lt)?;
        for i in 0..native.generics.len() {
            if i > 0 {
                c.token(T::Comma)?;
                c.space();
            }
            c.any()?;
            c.token(T::Colon)?;
            c.space();
            c.any()?;
        }
        if c.next_is(T::Comma) {
            c.drop(T::Comma)?;
        }
        c.token(T::Gt)?;
    }
    params(c, &native.params)?;
    match &native.output {
        NativeOutput::None => {}
        NativeOutput::Type(ty) => {
            arrow(c)?;
            type_expr(c, ty)?;
        }
        NativeOutput::Rule(_) => {
            arrow(c)?;
            c.any()?;
            c.space();
            c.any()?;
        }
        NativeOutput::Fields(rule) => {
            arrow(c)?;
            output(c, rule)?;
        }
    }
    c.open_within(STIFF);
    c.indent();
    while !c.finished() {
        c.fill();
        c.any()?;
    }
    c.dedent();
    c.close();
    Ok(())
}

/// A member of an operator's body, in the order of the text.
enum Member<'t> {
    State(&'t StateDecl),
    Handler(&'t Handler),
}

fn members(c: &mut Cursor<'_>, operator: &OperatorDecl) -> Walk {
    let states = operator.states.iter().map(|state| (state.span.start, Member::State(state)));
    let handlers = operator.handlers.iter().map(|handler| (handler.event.span.start, Member::Handler(handler)));
    let mut members: Vec<(u32, Member<'_>)> = states.chain(handlers).collect();
    members.sort_by_key(|(start, _)| *start);
    if members.is_empty() {
        return empty(c, T::LBrace, T::RBrace);
    }
    c.open_within(NEVER);
    lines(c, &members, |c, (_, member)| {
        c.any()?;
        c.space();
        c.any()?;
        match member {
            Member::State(state) => self::state(c, state),
            Member::Handler(handler) => {
                c.space();
                block(c, &handler.body)
            }
        }
    })
}

fn state(c: &mut Cursor<'_>, state: &StateDecl) -> Walk {
    c.token(T::Colon)?;
    c.space();
    type_expr(c, &state.ty)?;
    equals(c, &state.init)?;
    if c.next_text("by") {
        c.space();
        c.any()?;
        c.space();
        list(c, (T::LBracket, T::RBracket), false, &state.by, |c, _| c.any())?;
    }
    if c.next_is(T::Semicolon) { c.drop(T::Semicolon) } else { Ok(()) }
}

fn block(c: &mut Cursor<'_>, list: &[Stmt]) -> Walk {
    if list.is_empty() {
        return empty(c, T::LBrace, T::RBrace);
    }
    c.open_within(NEVER);
    lines(c, list, statement)
}

fn statement(c: &mut Cursor<'_>, statement: &Stmt) -> Walk {
    // `let`, `emit`, `if`, or the name of a state.
    c.any()?;
    c.space();
    match statement {
        Stmt::Let(_, value) => {
            c.any()?;
            equals(c, value)?;
        }
        Stmt::Assign(_, value) => {
            c.token(T::Assign)?;
            bound(c, value)?;
        }
        Stmt::Emit(value, _) => expr(c, value, Slot::After)?,
        Stmt::If(condition, then, otherwise) => {
            expr(c, condition, Slot::After)?;
            c.space();
            block(c, then)?;
            if !c.next_is(T::Else) {
                return Ok(());
            }
            c.space();
            c.token(T::Else)?;
            c.space();
            return match otherwise.first() {
                Some(next) if c.next_is(T::If) => self::statement(c, next),
                None if c.next_is(T::If) => Err(Mismatch),
                _ => block(c, otherwise),
            };
        }
    }
    c.token(T::Semicolon)
}
