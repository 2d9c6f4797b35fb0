//! Small constructors that the grammar's actions use.

use crate::ast::*;

/// A mistake that only an action can see, with its place in the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An `else` arm that is not the last one.
    ElseNotLast(Span),
}

pub(crate) fn span(start: u32, end: u32) -> Span {
    Span { start, end }
}

pub(crate) fn expr(start: u32, end: u32, kind: ExprKind) -> Expr {
    Expr { kind, span: span(start, end) }
}

pub(crate) fn binary(op: BinaryOp, place: Span, a: Expr, b: Expr) -> Expr {
    let span = a.span.to(b.span);
    Expr { kind: ExprKind::Binary(op, place, Box::new(a), Box::new(b)), span }
}

/// A size of a decimal as written; the compiler refuses what is too large.
pub(crate) fn size(value: i128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// An arm of a `match`, before its `else` is told apart.
pub(crate) enum Arm {
    Case(MatchArm),
    Else(Expr, Span),
}

/// A `match` from its arms: at most one `else`, and last.
pub(crate) fn matching<T, L>(
    subject: Option<Expr>,
    arms: Vec<Arm>,
) -> Result<ExprKind, lalrpop_util::ParseError<L, T, Refusal>> {
    let mut cases = Vec::with_capacity(arms.len());
    let mut otherwise: Option<(Expr, Span)> = None;
    for arm in arms {
        if let Some((_, place)) = otherwise {
            return Err(lalrpop_util::ParseError::User { error: Refusal::ElseNotLast(place) });
        }
        match arm {
            Arm::Case(case) => cases.push(case),
            Arm::Else(value, place) => otherwise = Some((value, place)),
        }
    }
    let otherwise = otherwise.map(|(value, _)| Box::new(value));
    Ok(ExprKind::Match { subject: subject.map(Box::new), arms: cases, otherwise })
}

/// A member of an operator's body.
pub(crate) enum Member {
    State(StateDecl),
    Handler(Handler),
}

pub(crate) fn operator(name: Ident, params: Vec<DeclParam>, output: OutputRule, members: Vec<Member>) -> OperatorDecl {
    let mut declared = OperatorDecl { name, params, output, states: Vec::new(), handlers: Vec::new() };
    for member in members {
        match member {
            Member::State(state) => declared.states.push(state),
            Member::Handler(handler) => declared.handlers.push(handler),
        }
    }
    declared
}

/// How many words a clause takes after its first; `None`: all up to the next word of this table. Other words are
/// clauses by themselves.
const CLAUSES: &[(&str, Option<usize>)] = &[
    ("excludes", None),
    ("fields_by", None),
    ("one_of", None),
    ("needs", Some(1)),
    ("only", Some(1)),
    ("never", Some(2)),
    ("differ", Some(2)),
    ("apart", None),
    ("keyed", Some(2)),
    ("guarantees", Some(1)),
    ("late", Some(1)),
    ("resumes", Some(1)),
    ("bounded", Some(0)),
    ("unbounded", Some(0)),
    ("stateful", Some(0)),
    ("unique_path", Some(0)),
    ("whole", Some(0)),
    ("replaces", Some(0)),
    ("continues", Some(0)),
    // Under which arguments the clause before holds: `bounded unless follow`, `resumes increment when increment`.
    ("when", None),
    ("unless", None),
];

pub(crate) fn native(
    role: NativeRole,
    name: Ident,
    generics: Vec<(Ident, Ident)>,
    params: Vec<DeclParam>,
    output: NativeOutput,
    words: Vec<Ident>,
) -> Native {
    let arity = |word: &Ident| CLAUSES.iter().find(|(known, _)| *known == word.text).map(|(_, arity)| *arity);
    let mut clauses: Vec<Clause> = Vec::new();
    // How many words the last clause still takes.
    let mut open = Some(0);
    for word in words {
        let joins = match (open, clauses.last_mut()) {
            (Some(0), _) | (_, None) => None,
            (None, Some(_)) if arity(&word).is_some() => None,
            (_, clause) => clause,
        };
        match joins {
            Some(clause) => {
                open = open.map(|n| n - 1);
                clause.words.push(word);
            }
            None => {
                open = arity(&word).unwrap_or(Some(0));
                clauses.push(Clause { name: word, words: Vec::new() });
            }
        }
    }
    Native { role, name, generics, params, output, clauses }
}

// What stands for a part in which a mistake was reported: in the trees of mended items only.

fn no_name(span: Span) -> Ident {
    Ident { text: String::new(), span }
}

fn no_expr(span: Span) -> Expr {
    Expr { kind: ExprKind::Error, span }
}

fn no_type(span: Span) -> TypeExpr {
    TypeExpr { kind: TypeKind::Name(String::new()), nullable: false, span }
}

pub(crate) fn broken_setting(span: Span) -> Setting {
    Setting { name: no_name(span), value: SettingValue::Block(Vec::new()), span }
}

pub(crate) fn broken_field(span: Span) -> FieldDecl {
    FieldDecl { doc: None, name: no_name(span), ty: no_type(span), external: None, span }
}

pub(crate) fn broken_param(span: Span) -> DeclParam {
    let kind = ParamKind::Const(no_type(span));
    DeclParam { doc: None, variadic: false, name: no_name(span), kind, default: None, range: None, span }
}

pub(crate) fn broken_stmt(span: Span) -> Stmt {
    Stmt::Emit(no_expr(span), span)
}

pub(crate) fn broken_call(span: Span) -> Call {
    Call { name: no_name(span), args: Vec::new(), span }
}
