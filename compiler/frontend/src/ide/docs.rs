//! What is said of things: the documentation of items, functions and parameters, signatures with their types.

use std::sync::Arc;

use dfc_grammar::TokenKind as T;
use dfc_grammar::ast::{self, Expr, ExprKind, Ident, ParamKind, Span};
use dfc_ir::DataType;
use dfc_typeck::functions::type_text;
use dfc_typeck::{Checker, Column, Function, FunctionTable, Global, Namespace, NoSites, Scope, UserFn};

use super::cursor::Cursor;
use super::text::{code, written};
use super::view::View;
use crate::items::{ItemNode, parse};
use crate::operators::{Operator, Param, default_text};
use crate::userops;

/// The documentation above an item.
pub fn of_item(view: &View<'_>, item: ItemNode) -> Option<String> {
    let file = view.file_of(item.key(view.db))?;
    let items = &parse(view.db, file).file.items;
    let start = item.start(view.db);
    let at = items.binary_search_by_key(&start, |item| item.start).ok()?;
    items[at].doc.clone()
}

/// The fields of a record as its declaration has them, whether its types are known or not.
pub fn fields_as_written(view: &View<'_>, item: ItemNode) -> Vec<String> {
    let ast::ItemKind::Record(record) = item.kind(view.db).as_ref() else { return Vec::new() };
    let fields = record.fields.iter().filter(|field| !field.name.text.is_empty());
    fields.map(|field| format!("{}: {}", written(&field.name.text), type_text(&field.ty))).collect()
}

/// A parameter's kind with its default: `string = ","`.
pub fn of_param_kind(param: &Param) -> String {
    let default = param.default.as_ref().and_then(default_text).map(|text| format!(" = {text}")).unwrap_or_default();
    let range = param.range.map(|(low, high)| format!(" range {low}..{high}")).unwrap_or_default();
    format!("{}{default}{range}", param.kind_text())
}

/// `param since: date = 1995-01-01`: with the value, where there is one.
pub fn of_global(name: &str, global: &Global) -> String {
    let word = match global.kind {
        dfc_typeck::GlobalKind::Param => "param",
        dfc_typeck::GlobalKind::Const => "const",
    };
    let value = match &global.value {
        _ if global.ty.ty == dfc_ir::Type::Secret => String::new(),
        Some(value) => format!(" = {}", dfc_eval::format_value(value, &global.ty.ty)),
        None => String::new(),
    };
    format!("{word} {name}: {}{value}", global.ty)
}

/// The declaration of an operator of the program.
pub fn own_operator(view: &View<'_>, name: &str) -> Option<Operator> {
    let item = view.find(Namespace::Operator, name)?;
    match item.kind(view.db).as_ref() {
        ast::ItemKind::Operator(decl) => Some(Operator { doc: of_item(view, item), ..userops::signature(decl) }),
        _ => None,
    }
}

/// A native function's documentation: all of its declarations, with their examples.
pub fn of_function(function: &Function) -> String {
    let mut out = String::new();
    for overload in &function.overloads {
        if !out.is_empty() {
            out.push_str("\n\n---\n\n");
        }
        out.push_str(&code(&overload.signature));
        if !overload.doc.is_empty() {
            out.push_str(&format!("\n\n{}", overload.doc));
        }
        let examples: Vec<&str> =
            overload.examples.iter().filter(|(_, fails)| !fails).map(|(e, _)| e.as_str()).collect();
        if !examples.is_empty() {
            out.push_str(&format!("\n\n{}", code(&examples.join("\n"))));
        }
    }
    out
}

/// A user function's signature, with its result as declared or found.
pub fn fn_signature(view: &View<'_>, function: &Arc<UserFn>) -> String {
    let params: Vec<String> = function.decl.params.iter().map(param_text).collect();
    let result = match &function.decl.result {
        Some(ty) => format!(" -> {}", type_text(ty)),
        None => fn_result(view, function).map(|ty| format!(" -> {ty}")).unwrap_or_default(),
    };
    format!("{}({}){result}", function.decl.name.text, params.join(", "))
}

/// A declared parameter as it is written.
pub fn param_text(param: &ast::DeclParam) -> String {
    let dots = if param.variadic { "..." } else { "" };
    let kind = match &param.kind {
        ParamKind::Const(ty) => type_text(ty),
        ParamKind::Row(ty) => format!("row {}", type_text(ty)),
        ParamKind::Agg(ty) => format!("agg {}", type_text(ty)),
        ParamKind::Pair(ty) => format!("pair {}", type_text(ty)),
        ParamKind::Enum(names) => names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(" | "),
        ParamKind::Bare(name) => name.text.clone(),
    };
    let default = match &param.default {
        Some(default) => format!(" = {}", default_text(default).unwrap_or_else(|| "…".into())),
        None => String::new(),
    };
    format!("{dots}{}: {kind}{default}", param.name.text)
}

/// What a user function gives, where its parameters' types tell.
pub fn fn_result(view: &View<'_>, function: &Arc<UserFn>) -> Option<DataType> {
    let globals = view.globals();
    let mut sites = NoSites;
    let table = FunctionTable::standard();
    let mut columns = Vec::new();
    let mut args = Vec::new();
    for (number, param) in function.decl.params.iter().enumerate() {
        let ParamKind::Const(ty) = &param.kind else { return None };
        let mut checker = Checker::new(table, globals, function.item.clone(), Scope::None, &mut sites);
        let ty = checker.resolve_type(ty)?;
        // No name of the pipeline has a blank at its start.
        let name = format!(" {number}");
        columns.push(Column::new(name.clone(), ty, Vec::new()));
        let value = Expr { kind: ExprKind::Name(name), span: Span::default() };
        args.push(ast::Arg { label: None, value, span: Span::default() });
    }
    let name = Ident { text: function.decl.name.text.clone(), span: Span::default() };
    let call = ExprKind::Call(ast::Call { name, args, span: Span::default() });
    let mut checker = Checker::new(table, globals, function.item.clone(), Scope::Row(&columns), &mut sites);
    checker.check(&Expr { kind: call, span: Span::default() }, None).map(|e| e.ty)
}

/// The parameters of the function or operator around the cursor, and an operator's states before it, as the text says:
/// names with their types.
pub fn parameters_in_text(cursor: &Cursor<'_>) -> Vec<(String, String)> {
    let mut out = states_in_text(cursor);
    if cursor.kind(2) != Some(T::LParen) {
        return out;
    }
    let mut depth = 0usize;
    let mut start = 3;
    for at in 2..cursor.solid.len() {
        match cursor.kind(at) {
            Some(T::LParen | T::Lt | T::LBrace) => depth += 1,
            Some(T::RParen | T::Gt | T::RBrace) => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = depth == 0 || (depth == 1 && cursor.kind(at) == Some(T::Comma));
        if ends && at > start {
            if cursor.kind(start + 1) == Some(T::Colon) {
                let ty = cursor.slice(start + 2, at).and_then(|range| cursor.text.get(range.start..range.end));
                out.push((cursor.name(start).to_string(), ty.unwrap_or("").to_string()));
            }
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    out
}

/// `state total: int64 = 0`
fn states_in_text(cursor: &Cursor<'_>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    if cursor.item_word() != "operator" {
        return out;
    }
    for at in 3..cursor.solid.len() {
        if cursor.str(at) == "state" && cursor.kind(at + 2) == Some(T::Colon) {
            let end = (at + 3..cursor.solid.len()).find(|end| cursor.kind(*end) == Some(T::Assign));
            let ty =
                end.and_then(|end| cursor.slice(at + 3, end)).and_then(|range| cursor.text.get(range.start..range.end));
            out.push((cursor.name(at + 1).to_string(), ty.unwrap_or("").to_string()));
        }
    }
    out
}
