//! Writes expressions, types and chains.
//!
//! Where an expression does not fit into its line, it breaks at its loosest operators first, each at the start of a line
//! of its own; lists of arguments break with one a line.

use super::cursor::{Cursor, Mismatch, Walk};
use super::layout::WIDTH;
use crate::ast::*;
use crate::token::TokenKind as T;

/// Where an expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// It has its lines for itself: further lines start below the first.
    Own,
    /// Something stands before it: further lines start one step to the right.
    After,
}

/// How tightly a two-sided operator binds; operators of one tightness break together.
fn tightness(op: BinaryOp) -> u8 {
    use BinaryOp::*;
    match op {
        Or => 0,
        And => 1,
        Eq | Ne | Lt | Le | Gt | Ge => 2,
        Add | Sub => 3,
        Mul | Div | IntDiv | Mod => 4,
        Coalesce => 5,
    }
}

pub(super) fn expr(c: &mut Cursor<'_>, expr: &Expr, slot: Slot) -> Walk {
    match &expr.kind {
        ExprKind::Error => Err(Mismatch),
        // A format string is one token.
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::Format(_) => c.any(),
        ExprKind::Call(inner) => call(c, inner),
        ExprKind::Field(value, _) => {
            self::expr(c, value, slot)?;
            c.token(T::Dot)?;
            c.any()
        }
        ExprKind::Index(value, index) => {
            self::expr(c, value, slot)?;
            bracketed(c, T::LBracket, T::RBracket, index)
        }
        ExprKind::Paren(inner) => bracketed(c, T::LParen, T::RParen, inner),
        ExprKind::Unary(UnaryOp::Neg, value) => {
            c.token(T::Minus)?;
            self::expr(c, value, slot)
        }
        ExprKind::Unary(UnaryOp::Not, value) => {
            c.token(T::Not)?;
            c.space();
            self::expr(c, value, Slot::After)
        }
        ExprKind::Binary(op, _, a, b) => binary(c, *op, a, b, slot),
        ExprKind::Between { negated, value, low, high } => condition(c, value, *negated, T::Between, slot, |c| {
            self::expr(c, low, Slot::After)?;
            c.space();
            c.token(T::And)?;
            c.space();
            self::expr(c, high, Slot::After)
        }),
        ExprKind::In { negated, value, list } => match list.kind {
            // The list itself breaks better.
            ExprKind::List(_) => {
                self::expr(c, value, slot)?;
                c.space();
                negation(c, *negated)?;
                c.token(T::In)?;
                c.space();
                self::expr(c, list, slot)
            }
            _ => condition(c, value, *negated, T::In, slot, |c| self::expr(c, list, Slot::After)),
        },
        ExprKind::Pattern { negated, regex, value, pattern } => {
            let word = if *regex { T::Matches } else { T::Like };
            condition(c, value, *negated, word, slot, |c| self::expr(c, pattern, Slot::After))
        }
        ExprKind::IsNull { negated, value } => {
            self::expr(c, value, slot)?;
            c.space();
            c.token(T::Is)?;
            c.space();
            negation(c, *negated)?;
            c.token(T::Null)
        }
        ExprKind::Cast { value, ty, fallible } => {
            self::expr(c, value, slot)?;
            c.space();
            c.token(T::As)?;
            if *fallible {
                c.token(T::Question)?;
            }
            c.space();
            type_expr(c, ty)
        }
        ExprKind::If(..) => conditional(c, expr, slot),
        ExprKind::Match { subject, arms, otherwise } => matching(c, subject.as_deref(), arms, otherwise.as_deref()),
        ExprKind::List(elements) if is_plain(elements) => filled(c, elements),
        ExprKind::List(elements) => list(c, (T::LBracket, T::RBracket), false, elements, argument),
        ExprKind::Record(entries) => list(c, (T::LBrace, T::RBrace), true, entries, |c, entry| match entry {
            RecordEntry::Field(_, value) => {
                c.any()?;
                c.token(T::Colon)?;
                assigned(c, value)
            }
            RecordEntry::Spread(value, _) => {
                c.token(T::Ellipsis)?;
                self::expr(c, value, Slot::After)
            }
        }),
        ExprKind::Chain(inner) => {
            c.open();
            chain(c, inner)
        }
        ExprKind::Type(ty) => type_expr(c, ty),
    }
}

/// What stands after a `:`, with the blank or the line end before it.
pub(super) fn assigned(c: &mut Cursor<'_>, value: &Expr) -> Walk {
    if matches!(value.kind, ExprKind::If(..)) {
        return below(c, value);
    }
    c.space();
    expr(c, value, Slot::After)
}

/// What stands after `=` or `=>`: an expression with operators outside all brackets breaks before its first operand.
pub(super) fn bound(c: &mut Cursor<'_>, value: &Expr) -> Walk {
    use ExprKind::*;
    if matches!(
        value.kind,
        If(..) | Binary(..) | Between { .. } | In { .. } | Pattern { .. } | Cast { .. } | Unary(UnaryOp::Not, _)
    ) {
        return below(c, value);
    }
    c.space();
    expr(c, value, Slot::After)
}

/// A value on the same line, or below and one step to the right.
fn below(c: &mut Cursor<'_>, value: &Expr) -> Walk {
    c.open();
    c.indent();
    c.line(true);
    expr(c, value, Slot::Own)?;
    c.dedent();
    c.close();
    Ok(())
}

fn bracketed(c: &mut Cursor<'_>, open: T, close: T, inner: &Expr) -> Walk {
    c.open();
    c.enter(open, false)?;
    expr(c, inner, Slot::Own)?;
    c.leave(close, false)?;
    c.close();
    Ok(())
}

fn negation(c: &mut Cursor<'_>, negated: bool) -> Walk {
    if negated {
        c.token(T::Not)?;
        c.space();
    }
    Ok(())
}

/// A value, a break, a word of comparison, and what it is compared with.
fn condition<'a>(
    c: &mut Cursor<'a>,
    value: &Expr,
    negated: bool,
    word: T,
    slot: Slot,
    with: impl FnOnce(&mut Cursor<'a>) -> Walk,
) -> Walk {
    c.open();
    expr(c, value, Slot::After)?;
    further(c, slot, |c| {
        c.line(true);
        negation(c, negated)?;
        c.token(word)?;
        c.space();
        with(c)
    })
}

/// The lines of a group after its first; ends the group.
fn further<'a>(c: &mut Cursor<'a>, slot: Slot, lines: impl FnOnce(&mut Cursor<'a>) -> Walk) -> Walk {
    if slot == Slot::After {
        c.indent();
    }
    lines(c)?;
    if slot == Slot::After {
        c.dedent();
    }
    c.close();
    Ok(())
}

fn binary(c: &mut Cursor<'_>, op: BinaryOp, a: &Expr, b: &Expr, slot: Slot) -> Walk {
    let level = tightness(op);
    let same = |expr: &Expr| matches!(expr.kind, ExprKind::Binary(op, ..) if tightness(op) == level);
    // Operands on one level, whichever way the operator leans.
    let (mut first, mut rest) = (a, vec![b]);
    while let ExprKind::Binary(_, _, a, b) = &first.kind
        && same(first)
    {
        rest.push(b);
        first = a;
    }
    rest.reverse();
    while let Some(ExprKind::Binary(_, _, a, b)) = rest.last().filter(|last| same(last)).map(|last| &last.kind) {
        rest.pop();
        rest.extend([&**a, &**b]);
    }
    c.open();
    expr(c, first, Slot::After)?;
    further(c, slot, |c| {
        rest.into_iter().try_for_each(|operand| {
            c.line(true);
            c.any()?;
            c.space();
            expr(c, operand, Slot::After)
        })
    })
}

/// `if c then a else if d then b else e`: a line a case.
fn conditional(c: &mut Cursor<'_>, first: &Expr, slot: Slot) -> Walk {
    c.open();
    let mut case = first;
    let ExprKind::If(condition, then, otherwise) = &case.kind else { return Err(Mismatch) };
    case_of(c, condition, then)?;
    case = otherwise;
    further(c, slot, |c| {
        while let ExprKind::If(condition, then, otherwise) = &case.kind {
            c.line(true);
            c.token(T::Else)?;
            c.space();
            case_of(c, condition, then)?;
            case = otherwise;
        }
        c.line(true);
        c.token(T::Else)?;
        c.space();
        expr(c, case, Slot::After)
    })
}

/// `if c then a`
fn case_of(c: &mut Cursor<'_>, condition: &Expr, then: &Expr) -> Walk {
    c.open();
    c.token(T::If)?;
    c.space();
    expr(c, condition, Slot::After)?;
    further(c, Slot::After, |c| {
        c.line(true);
        c.token(T::Name)?;
        c.space();
        expr(c, then, Slot::After)
    })
}

fn matching(c: &mut Cursor<'_>, subject: Option<&Expr>, arms: &[MatchArm], otherwise: Option<&Expr>) -> Walk {
    c.token(T::Match)?;
    c.space();
    if let Some(subject) = subject {
        expr(c, subject, Slot::After)?;
        c.space();
    }
    let arms: Vec<(&[Expr], &Expr)> =
        arms.iter().map(|arm| (&*arm.patterns, &arm.value)).chain(otherwise.map(|value| (&[][..], value))).collect();
    list(c, (T::LBrace, T::RBrace), true, &arms, |c, (patterns, value)| {
        for (i, pattern) in patterns.iter().enumerate() {
            if i > 0 {
                c.token(T::Comma)?;
                c.space();
            }
            expr(c, pattern, Slot::After)?;
        }
        if patterns.is_empty() {
            c.token(T::Else)?;
        }
        c.space();
        c.token(T::FatArrow)?;
        bound(c, value)
    })
}

/// Parts in brackets: on one line, or one a line with a comma after the last.
pub(super) fn list<'a, P>(
    c: &mut Cursor<'a>,
    (open, close): (T, T),
    space: bool,
    parts: &[P],
    mut part: impl FnMut(&mut Cursor<'a>, &P) -> Walk,
) -> Walk {
    if parts.is_empty() {
        return empty(c, open, close);
    }
    c.open();
    c.enter(open, space)?;
    for (i, one) in parts.iter().enumerate() {
        if i > 0 {
            c.comma()?;
            c.part(true);
        }
        part(c, one)?;
    }
    c.last_comma(",")?;
    c.leave(close, space)?;
    c.close();
    Ok(())
}

/// Brackets with nothing but comments in them.
pub(super) fn empty(c: &mut Cursor<'_>, open: T, close: T) -> Walk {
    c.token(open)?;
    if !c.has_comments() {
        return c.token(close);
    }
    c.open();
    c.indent();
    c.leave(close, false)?;
    c.close();
    Ok(())
}

/// Whether a list holds nothing but literals.
fn is_plain(elements: &[Arg]) -> bool {
    let literal = |expr: &Expr| matches!(expr.kind, ExprKind::Literal(_));
    elements.iter().all(|element| {
        element.label.is_none()
            && match &element.value.kind {
                ExprKind::Unary(UnaryOp::Neg, value) => literal(value),
                _ => literal(&element.value),
            }
    })
}

/// A list of literals: as many on a line as fit.
fn filled(c: &mut Cursor<'_>, elements: &[Arg]) -> Walk {
    if elements.is_empty() {
        return empty(c, T::LBracket, T::RBracket);
    }
    c.open();
    c.enter(T::LBracket, false)?;
    for (i, element) in elements.iter().enumerate() {
        if i > 0 {
            c.comma()?;
            c.fill();
        }
        expr(c, &element.value, Slot::Own)?;
    }
    c.last_comma(",")?;
    c.leave(T::RBracket, false)?;
    c.close();
    Ok(())
}

/// An argument of a call or an element of a list.
fn argument(c: &mut Cursor<'_>, argument: &Arg) -> Walk {
    if argument.label.is_none() {
        return expr(c, &argument.value, Slot::Own);
    }
    c.any()?;
    c.token(T::Colon)?;
    assigned(c, &argument.value)
}

pub(super) fn call(c: &mut Cursor<'_>, call: &Call) -> Walk {
    c.any()?;
    list(c, (T::LParen, T::RParen), false, &call.args, argument)
}

/// The head and the links of a chain in a group that is open already; ends it.
pub(super) fn chain(c: &mut Cursor<'_>, chain: &Chain) -> Walk {
    expr(c, &chain.head, Slot::After)?;
    further(c, Slot::After, |c| {
        chain.links.iter().try_for_each(|link| {
            c.line(true);
            c.token(T::Pipe)?;
            c.space();
            call(c, link)
        })
    })
}

pub(super) fn type_expr(c: &mut Cursor<'_>, ty: &TypeExpr) -> Walk {
    c.any()?;
    match &ty.kind {
        TypeKind::Name(_) | TypeKind::Decimal(None) => {}
        TypeKind::Decimal(Some(_)) => {
            c.token(T::LParen)?;
            c.any()?;
            c.token(T::Comma)?;
            c.space();
            c.any()?;
            c.token(T::RParen)?;
        }
        TypeKind::List(inner) => {
            c.token(T::Lt)?;
            type_expr(c, inner)?;
            c.token(T::Gt)?;
        }
        TypeKind::Record(fields) => {
            c.space();
            self::fields(c, fields, WIDTH)?;
        }
    }
    if ty.nullable { c.token(T::Question) } else { Ok(()) }
}

/// Declared fields in braces: on one line of at most `limit` columns, or one a line, the types below one another.
pub(super) fn fields(c: &mut Cursor<'_>, fields: &[FieldDecl], limit: usize) -> Walk {
    if fields.is_empty() {
        return empty(c, T::LBrace, T::RBrace);
    }
    c.open_within(limit);
    lines(c, fields, |c, field| {
        c.any()?;
        c.token(T::Colon)?;
        c.column();
        type_expr(c, &field.ty)?;
        if field.external.is_some() {
            c.space();
            c.token(T::Assign)?;
            c.space();
            c.any()?;
        }
        Ok(())
    })
}

/// Parts in braces, commas between them only where they share a line, in a group that is open already; ends it.
pub(super) fn lines<'a, P>(c: &mut Cursor<'a>, parts: &[P], mut part: impl FnMut(&mut Cursor<'a>, &P) -> Walk) -> Walk {
    c.enter(T::LBrace, true)?;
    for (i, one) in parts.iter().enumerate() {
        if i > 0 {
            c.light_comma()?;
            c.part(true);
        }
        part(c, one)?;
    }
    c.last_comma("")?;
    c.leave(T::RBrace, true)?;
    c.close();
    Ok(())
}
