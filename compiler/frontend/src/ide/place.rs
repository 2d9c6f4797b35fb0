//! What may stand at a place: a stream, an operator, an argument of which parameter, a type, a setting.
//!
//! From the cursor's brackets and the declarations of the operators. It knows no streams and no fields.

use dfc_grammar::TokenKind as T;

use super::cursor::{Cursor, Frame, Inside, ends_value, is_name};
use crate::operators::{Kind, Operator, Param, Role, table};

/// What may stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing that could be said: a name that is given, a number, a comment.
    Nothing,
    /// An item.
    Item,
    /// The start of a chain.
    Head {
        /// A connector that reads.
        connectors: bool,
        /// A stream or `union(…)`.
        streams: bool,
    },
    /// An operator behind `|>`.
    Link {
        /// Where a sink may end the chain.
        sink: bool,
    },
    /// A type.
    Type,
    /// A setting of a job's block; the empty block is the job itself.
    Setting { block: String },
    /// A setting's value.
    SettingValue { block: String, name: String },
    /// An argument or a part of one.
    Arg(Arg),
    /// A value where no row is: of a `param` or `const`.
    Constant,
    /// A function's body, or a value in an operator's.
    Body,
    /// The start of a statement in an operator's body; `top` where states and handlers are declared.
    Statement { top: bool },
    /// Behind a dot.
    Member {
        /// Where the names before the dots stand, outermost first.
        base: Vec<usize>,
        /// The argument around.
        arg: Option<Arg>,
    },
    /// Behind a value: `and`, `is`, `as`.
    Infix,
    /// A path in quotes: what is written of it, and where it starts.
    Path {
        written: String,
        start: usize,
        /// Only pipelines (`use`).
        pipelines: bool,
    },
}

/// A place inside an operator's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// The frame of the operator's bracket.
    pub frame: usize,
    /// The operator; `None` if there is no such.
    pub operator: Option<&'static Operator>,
    /// The parameter that the argument belongs to.
    pub param: Option<&'static Param>,
    /// Whether nothing is written of the argument: a label may come.
    pub starts: bool,
    /// Whether the place is right where the argument's value starts (behind its label, if it has one).
    pub value_starts: bool,
    /// Whether a list of the argument's own is open, and the place is at the start of one of its elements.
    pub element_starts: bool,
    /// The innermost call of a function around the place: where its name stands, and how many of its arguments are before.
    pub function: Option<(usize, usize)>,
    /// Whether an argument of that function starts here.
    pub function_arg_starts: bool,
    /// Whether an aggregate is around.
    pub in_aggregate: bool,
}

/// An operator's call among the frames.
pub struct OperatorCall {
    /// Its declaration, where there is one.
    pub operator: Option<&'static Operator>,
    /// The chain before it: from its first token to its `|>`. `None` for what starts a chain.
    pub chain: Option<(usize, usize)>,
}

/// What may stand at the cursor.
pub fn place(cursor: &Cursor<'_>) -> Place {
    match cursor.inside {
        Inside::Other => return Place::Nothing,
        Inside::Text(token) => return text_place(cursor, token),
        Inside::Code => {}
    }
    if starts_item(cursor) {
        return Place::Item;
    }
    if cursor.last() == Some(T::Dot) {
        return member(cursor);
    }
    if is_type_place(cursor) {
        return Place::Type;
    }
    let Some(innermost) = cursor.innermost() else { return Place::Nothing };
    let depth = cursor.frames.len();
    if depth == 1 {
        return item_place(cursor, innermost);
    }
    match (cursor.item_word(), innermost.open) {
        ("job", Some(T::LBrace)) => return setting(cursor, innermost),
        ("record", Some(T::LBrace)) if depth == 2 => return Place::Nothing,
        ("sink", Some(T::LBrace)) if depth == 2 => return chain_place(cursor, innermost.part, true),
        ("fn" | "operator", Some(T::LParen)) if depth == 2 && innermost.at == 2 => return Place::Nothing,
        ("operator", Some(T::LBrace)) if matches!(cursor.last(), Some(T::LBrace | T::RBrace | T::Semicolon)) => {
            return if is_value_brace(cursor, innermost) {
                Place::Nothing
            } else {
                Place::Statement { top: depth == 2 }
            };
        }
        _ => {}
    }
    match arg(cursor) {
        Some(arg) => arg_place(cursor, arg),
        None => expression_place(cursor),
    }
}

/// The call of an operator that a frame is, if it is one.
pub fn operator_call(cursor: &Cursor<'_>, frame: usize) -> Option<OperatorCall> {
    let callee = cursor.frames.get(frame)?.callee?;
    let parent = frame.checked_sub(1)?;
    let name = cursor.name(callee);
    let before = callee.checked_sub(1)?;
    if cursor.kind(before) == Some(T::Pipe) {
        let start = chain_start(cursor, parent)?;
        let operator = table().get(name, Role::Shuffle).or_else(|| table().get(name, Role::Sink));
        return Some(OperatorCall { operator, chain: Some((start, before)) });
    }
    if chain_start(cursor, parent) != Some(callee) {
        return None;
    }
    let operator = match name {
        "union" => table().get(name, Role::Shuffle),
        _ => table().get(name, Role::Source),
    };
    Some(OperatorCall { operator, chain: None })
}

/// Where the chain starts that the open part of a frame is; `None` if no chain can be there.
pub fn chain_start(cursor: &Cursor<'_>, frame: usize) -> Option<usize> {
    let open = cursor.frames.get(frame)?;
    match (open.open, cursor.item_word()) {
        (None, "stream" | "source") => Some(open.assign? + 1),
        (None, "sink") => Some(1),
        (Some(T::LBrace), "sink") if frame == 1 && open.at == 1 => Some(open.part),
        (Some(T::LParen), _) => {
            let operator = operator_call(cursor, frame)?.operator;
            let chain = match operator {
                Some(operator) => param(cursor, open, operator)
                    .is_some_and(|(_, param)| matches!(param.kind, Kind::Stream | Kind::Source)),
                None => false,
            };
            (chain || !open.pipes.is_empty()).then(|| cursor.value_start(open))
        }
        _ => None,
    }
}

/// The parameter that the open argument of an operator's call belongs to, with its number.
pub fn param(cursor: &Cursor<'_>, frame: &Frame, operator: &'static Operator) -> Option<(usize, &'static Param)> {
    let params = operator.params.iter().enumerate();
    let variadic = || params.clone().find(|(_, p)| p.variadic);
    match cursor.label(frame) {
        Some(label) => params.clone().find(|(_, p)| p.name == label && !p.variadic).or_else(variadic),
        None => match variadic() {
            Some(variadic) => Some(variadic),
            None if frame.labels.is_empty() => operator.params.get(frame.index).map(|p| (frame.index, p)),
            None => None,
        },
    }
}

fn starts_item(cursor: &Cursor<'_>) -> bool {
    if !cursor.first_on_line {
        return false;
    }
    let goes_on = |kind: T| {
        matches!(
            kind,
            T::Pipe | T::Assign | T::Comma | T::Arrow | T::Colon | T::FatArrow | T::Dot | T::Coalesce | T::EqEq
        ) || matches!(kind, T::NotEq | T::Lt | T::Le | T::Gt | T::Ge | T::Plus | T::Minus | T::Star | T::Slash)
            || matches!(kind, T::And | T::Or | T::Not | T::In | T::If | T::Else | T::As | T::Percent | T::Div)
            || matches!(kind, T::LParen | T::LBracket | T::LBrace)
    };
    match cursor.last() {
        None => true,
        // The item's own word: its name comes now.
        Some(_) if cursor.solid.len() == 1 && !cursor.item_word().is_empty() => false,
        Some(last) if cursor.frames.len() == 1 => !goes_on(last),
        Some(last) => cursor.column_zero && !cursor.prefix.is_empty() && !goes_on(last),
    }
}

/// What stands at the type of a parameter beside types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A class of types: a function's parameter, or behind an operator's `row`.
    OfClass,
    /// `row`: an operator's parameter.
    OfAnyRow,
}

/// Whether the cursor is right at the type of a parameter of a function or an operator.
pub fn parameter_type(cursor: &Cursor<'_>) -> Option<ParameterType> {
    let frame = cursor.innermost().filter(|frame| frame.open == Some(T::LParen) && frame.at == 2)?;
    let (operator, start) = (cursor.item_word() == "operator", cursor.value_start(frame));
    let behind_row = cursor.solid.len() == start + 1 && cursor.str(start) == "row";
    match cursor.solid.len() == start {
        true if operator => Some(ParameterType::OfAnyRow),
        true if cursor.item_word() == "fn" => Some(ParameterType::OfClass),
        _ if operator && behind_row => Some(ParameterType::OfClass),
        _ => None,
    }
}

/// Whether a type is written here.
fn is_type_place(cursor: &Cursor<'_>) -> bool {
    let count = cursor.solid.len();
    let last = cursor.last();
    let before = |n: usize| count.checked_sub(n).and_then(|at| cursor.kind(at));
    if last == Some(T::As) || (last == Some(T::Question) && before(2) == Some(T::As)) {
        return true;
    }
    if last == Some(T::Lt) && count >= 2 && cursor.str(count - 2) == "list" {
        return true;
    }
    if parameter_type(cursor) == Some(ParameterType::OfClass) {
        return true;
    }
    if last == Some(T::Arrow) {
        return matches!(cursor.item_word(), "fn");
    }
    if last != Some(T::Colon) {
        return false;
    }
    let Some(frame) = cursor.innermost() else { return false };
    match (frame.open, cursor.item_word()) {
        (None, "param" | "const") => frame.assign.is_none(),
        (Some(T::LParen), "fn" | "operator") => frame.at == 2,
        (Some(T::LBrace), "record") => true,
        (Some(T::LBrace), "operator") => cursor.name(frame.part) == "state" || is_record_type(cursor, frame),
        (Some(T::LBrace), _) => is_record_type(cursor, frame),
        _ => false,
    }
}

/// Whether a brace is that of `record { … }` in a type's place.
fn is_record_type(cursor: &Cursor<'_>, frame: &Frame) -> bool {
    frame.at.checked_sub(1).is_some_and(|before| cursor.str(before) == "record")
}

/// Whether a brace of an operator's body is that of a record's value, or of fields, and no block.
fn is_value_brace(cursor: &Cursor<'_>, frame: &Frame) -> bool {
    let before = frame.at.checked_sub(1);
    let word = before.map_or("", |before| cursor.str(before));
    word == "emit" || matches!(before.and_then(|b| cursor.kind(b)), Some(T::Plus | T::Assign | T::Comma | T::Colon))
}

/// A place outside all brackets.
fn item_place(cursor: &Cursor<'_>, frame: &Frame) -> Place {
    match cursor.item_word() {
        "source" | "stream" => match frame.assign {
            Some(assign) => chain_place(cursor, assign + 1, false),
            None => Place::Nothing,
        },
        "sink" => chain_place(cursor, 1, true),
        "param" | "const" if frame.assign.is_some() => expression(cursor, Place::Constant),
        "fn" if frame.assign.is_some() => expression(cursor, Place::Body),
        _ => Place::Nothing,
    }
}

/// A place in a chain, outside the brackets of its calls.
fn chain_place(cursor: &Cursor<'_>, start: usize, sink: bool) -> Place {
    match cursor.last() {
        Some(T::Pipe) => Place::Link { sink },
        _ if cursor.solid.len() == start => {
            let source = cursor.item_word() == "source";
            Place::Head { connectors: source, streams: !source }
        }
        _ => Place::Nothing,
    }
}

fn setting(cursor: &Cursor<'_>, frame: &Frame) -> Place {
    let blocks: Vec<&str> =
        cursor.frames[2..].iter().filter_map(|f| f.at.checked_sub(1)).map(|before| cursor.name(before)).collect();
    let block = blocks.join(".");
    match cursor.label(frame) {
        Some(name) => expression(cursor, Place::SettingValue { block, name: name.to_string() }),
        None if cursor.solid.len() == frame.part => Place::Setting { block },
        None => Place::Nothing,
    }
}

/// The argument of an operator around the cursor.
fn arg(cursor: &Cursor<'_>) -> Option<Arg> {
    let here = cursor.solid.len();
    let innermost = cursor.frames.len() - 1;
    let mut function = None;
    let mut function_arg_starts = false;
    let mut in_aggregate = false;
    for at in (1..cursor.frames.len()).rev() {
        let frame = &cursor.frames[at];
        if let Some(call) = operator_call(cursor, at) {
            let param = call.operator.and_then(|operator| param(cursor, frame, operator)).map(|(_, param)| param);
            let list = cursor.frames.get(at + 1);
            let element_starts = list.is_some_and(|list| {
                at + 1 == innermost
                    && list.open == Some(T::LBracket)
                    && list.at == cursor.value_start(frame)
                    && (list.part == here || cursor.value_start(list) == here)
            });
            return Some(Arg {
                frame: at,
                operator: call.operator,
                param,
                starts: at == innermost && frame.part == here,
                value_starts: at == innermost && cursor.value_start(frame) == here,
                element_starts,
                function,
                function_arg_starts,
                in_aggregate,
            });
        }
        if let Some(callee) = frame.callee {
            if function.is_none() {
                function = Some((callee, frame.index));
                function_arg_starts = at == innermost && frame.part == here;
            }
            let native = dfc_typeck::FunctionTable::standard().get(cursor.name(callee));
            in_aggregate |= native.is_some_and(|function| function.aggregate);
        }
    }
    None
}

fn arg_place(cursor: &Cursor<'_>, arg: Arg) -> Place {
    let frame = &cursor.frames[arg.frame];
    let kind = arg.param.map(|param| &param.kind);
    let own = arg.frame + 1 == cursor.frames.len();
    if own && matches!(kind, Some(Kind::Stream | Kind::Source)) && !arg.starts {
        let start = cursor.value_start(frame);
        return match cursor.last() {
            Some(T::Pipe) => Place::Link { sink: false },
            _ if cursor.solid.len() == start => head_of(&arg),
            _ => Place::Nothing,
        };
    }
    if own && cursor.last() == Some(T::Pipe) {
        return Place::Link { sink: false };
    }
    if !own && innermost_is_record_type(cursor) {
        return Place::Nothing;
    }
    let is_order = cursor.innermost().and_then(|f| f.callee).is_some_and(|c| matches!(cursor.name(c), "asc" | "desc"));
    if is_order && cursor.innermost().and_then(|f| cursor.label(f)) == Some("nulls") {
        return Place::Arg(arg);
    }
    expression(cursor, Place::Arg(arg))
}

/// What a stream's or source's argument may start with.
pub fn head_of(arg: &Arg) -> Place {
    Place::Head { connectors: arg.param.is_some_and(|p| p.kind == Kind::Source), streams: true }
}

fn innermost_is_record_type(cursor: &Cursor<'_>) -> bool {
    cursor.innermost().is_some_and(|f| f.open == Some(T::LBrace) && is_record_type(cursor, f))
}

/// An expression outside of operators' calls.
fn expression_place(cursor: &Cursor<'_>) -> Place {
    if innermost_is_record_type(cursor) {
        return Place::Nothing;
    }
    match cursor.item_word() {
        "param" | "const" => expression(cursor, Place::Constant),
        "fn" | "operator" => expression(cursor, Place::Body),
        "job" => match cursor.frames.iter().rev().find(|f| f.open == Some(T::LBrace)) {
            Some(frame) => setting(cursor, frame),
            None => Place::Nothing,
        },
        _ => Place::Nothing,
    }
}

/// A value, or what comes behind one.
fn expression(cursor: &Cursor<'_>, value: Place) -> Place {
    let starts_part = cursor.innermost().is_some_and(|f| f.part == cursor.solid.len());
    match cursor.last() {
        Some(T::Name) if branch(cursor) == Branch::Value => value,
        Some(last) if ends_value(last) && !starts_part => {
            // In an enumeration's or a field's place nothing follows.
            match &value {
                Place::Arg(Arg {
                    param: Some(Param { kind: Kind::Enum(_) | Kind::Field | Kind::Type, .. }),
                    function: None,
                    ..
                }) => Place::Nothing,
                Place::SettingValue { .. } => Place::Nothing,
                _ => Place::Infix,
            }
        }
        Some(T::Is) => Place::Infix,
        Some(T::Not) if is_not_of(cursor) => Place::Infix,
        _ => value,
    }
}

/// What comes next of an `if` around the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// There is none that is open.
    None,
    /// A value: its `then` is the last token.
    Value,
    /// Its `then`, once the condition is whole.
    Then,
    /// Its `else`, once the value is whole.
    Else,
}

/// What comes next of the innermost `if` that is open in the innermost brackets.
pub fn branch(cursor: &Cursor<'_>) -> Branch {
    let start = cursor.innermost().map_or(0, |frame| frame.part);
    let (mut open, mut depth): (Vec<Branch>, usize) = (Vec::new(), 0);
    for at in start..cursor.solid.len() {
        match cursor.kind(at) {
            Some(T::LParen | T::LBracket | T::LBrace) => depth += 1,
            Some(T::RParen | T::RBracket | T::RBrace) => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            Some(T::If) => open.push(Branch::Then),
            Some(T::Name) if cursor.str(at) == "then" && open.last() == Some(&Branch::Then) => {
                open.pop();
                open.push(if at + 1 == cursor.solid.len() { Branch::Value } else { Branch::Else });
            }
            Some(T::Else) if open.last() == Some(&Branch::Else) => drop(open.pop()),
            _ => {}
        }
    }
    open.last().copied().unwrap_or(Branch::None)
}

/// Whether the `not` before the cursor is that of `x not in`, `x is not`.
fn is_not_of(cursor: &Cursor<'_>) -> bool {
    let before = cursor.solid.len().checked_sub(2).and_then(|at| cursor.kind(at));
    before.is_some_and(|kind| ends_value(kind) || kind == T::Is)
}

fn member(cursor: &Cursor<'_>) -> Place {
    let mut base = Vec::new();
    let mut at = cursor.solid.len();
    while at >= 2 && cursor.kind(at - 1) == Some(T::Dot) && cursor.kind(at - 2).is_some_and(is_name) {
        base.push(at - 2);
        at -= 2;
    }
    if base.is_empty() || (at > 0 && cursor.kind(at - 1) == Some(T::Dot)) {
        return Place::Nothing;
    }
    base.reverse();
    Place::Member { base, arg: arg(cursor) }
}

/// A text: a path, or nothing that could be completed.
fn text_place(cursor: &Cursor<'_>, token: dfc_grammar::Token) -> Place {
    let quoted = token.text(cursor.text);
    let open = match token.kind {
        T::String => 1,
        T::RawString => 2,
        _ => return Place::Nothing,
    };
    let start = token.span.start as usize + open;
    if cursor.offset < start || quoted.len() < open {
        return Place::Nothing;
    }
    let written = cursor.text.get(start..cursor.offset).unwrap_or("").to_string();
    if cursor.item_word() == "use" && cursor.solid.len() == 1 {
        return Place::Path { written, start, pipelines: true };
    }
    match arg(cursor) {
        Some(Arg { param: Some(param), value_starts: true, .. }) if is_path(param) => {
            Place::Path { written, start, pipelines: false }
        }
        _ => Place::Nothing,
    }
}

/// Whether a parameter takes the path of a file.
fn is_path(param: &Param) -> bool {
    param.name == "path" && matches!(param.kind, Kind::Const(_))
}
