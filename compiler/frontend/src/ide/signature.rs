//! Signature help: what the call around a place takes, and which of it the place belongs to.

use std::path::Path;

use dfc_grammar::ast::{Native, NativeOutput};
use dfc_typeck::functions::type_text;
use dfc_typeck::{FunctionTable, Namespace};

use super::cursor::{Cursor, Inside};
use super::docs;
use super::place::{operator_call, param};
use super::view::View;
use super::{Signature, SignatureHelp, SignatureParam, TextRange};
use crate::Compiler;
use crate::operators::Operator;

/// The signatures of the innermost call around a place.
pub fn signature_help(compiler: &Compiler, root: &Path, file: &Path, offset: usize) -> Option<SignatureHelp> {
    let view = View::new(compiler, root, file);
    let cursor = Cursor::new(view.text, view.tokens, view.offset(offset));
    // In a text too: it may be an argument. But not in a comment.
    if cursor.inside == Inside::Other && cursor.solid.last().is_none_or(|last| last.span.end as usize > cursor.offset) {
        return None;
    }
    for at in (1..cursor.frames.len()).rev() {
        let frame = &cursor.frames[at];
        let Some(callee) = frame.callee else { continue };
        if let Some(call) = operator_call(&cursor, at) {
            let Some(operator) = call.operator else {
                let operator = docs::own_operator(&view, cursor.name(callee))?;
                let labelled =
                    cursor.label(frame).and_then(|label| operator.params.iter().position(|p| p.name == label));
                let parameter = labelled.or((frame.index < operator.params.len()).then_some(frame.index));
                return Some(SignatureHelp { signatures: vec![of_operator(&operator)], active: 0, parameter });
            };
            let parameter = param(&cursor, frame, operator).map(|(number, _)| number);
            return Some(SignatureHelp { signatures: vec![of_operator(operator)], active: 0, parameter });
        }
        return of_function(&view, &cursor, cursor.name(callee), frame.index, cursor.label(frame));
    }
    None
}

/// Puts a signature together, and keeps where its parameters stand.
struct Builder {
    label: String,
    params: Vec<SignatureParam>,
}

impl Builder {
    fn new(head: String) -> Self {
        Builder { label: format!("{head}("), params: Vec::new() }
    }

    fn param(&mut self, text: &str, doc: Option<String>) {
        if !self.params.is_empty() {
            self.label.push_str(", ");
        }
        let start = self.label.len();
        self.label.push_str(text);
        self.params.push(SignatureParam { label: TextRange::new(start, self.label.len()), doc });
    }

    fn end(mut self, output: &str, doc: Option<String>) -> Signature {
        self.label.push(')');
        if !output.is_empty() {
            self.label.push_str(&format!(" -> {output}"));
        }
        Signature { label: self.label, doc: doc.filter(|doc| !doc.is_empty()), params: self.params }
    }
}

fn of_operator(operator: &Operator) -> Signature {
    let mut out = Builder::new(operator.name.clone());
    for param in &operator.params {
        let dots = if param.variadic { "..." } else { "" };
        out.param(&format!("{dots}{}: {}", param.name, docs::of_param_kind(param)), param.doc.clone());
    }
    out.end(&operator.output, operator.doc.clone())
}

fn of_function(
    view: &View<'_>,
    cursor: &Cursor<'_>,
    name: &str,
    index: usize,
    label: Option<&str>,
) -> Option<SignatureHelp> {
    let (signatures, decls): (Vec<Signature>, Vec<(usize, bool)>) = match FunctionTable::standard().get(name) {
        Some(function) => function
            .overloads
            .iter()
            .map(|overload| {
                let variadic = overload.decl.params.last().is_some_and(|param| param.variadic);
                (of_native(&overload.decl, overload.doc.clone()), (overload.decl.params.len(), variadic))
            })
            .unzip(),
        None => match view.globals().functions.get(name) {
            Some(function) => {
                let mut out = Builder::new(name.to_string());
                for param in &function.decl.params {
                    out.param(&docs::param_text(param), param.doc.clone());
                }
                let result = match &function.decl.result {
                    Some(ty) => type_text(ty),
                    None => docs::fn_result(view, function).map(|ty| ty.to_string()).unwrap_or_default(),
                };
                let item = view.find(Namespace::Fn, name);
                let doc = item.and_then(|item| docs::of_item(view, item));
                (vec![out.end(&result, doc)], vec![(function.decl.params.len(), false)])
            }
            None => return of_order(name, index),
        },
    };
    // As many arguments as there are, those behind the cursor too.
    let given = cursor.frames.iter().rev().find(|frame| frame.callee.is_some_and(|callee| cursor.name(callee) == name));
    let count = given.map_or(0, |frame| super::rows::arguments(cursor, frame).len()).max(index + 1);
    let fits = |(params, variadic): &(usize, bool)| *params >= count || *variadic;
    let active = decls.iter().position(fits).unwrap_or(decls.len().saturating_sub(1));
    let (params, variadic) = *decls.get(active)?;
    let parameter = match label {
        Some(_) => None,
        None if index < params => Some(index),
        None if variadic => Some(params - 1),
        None => None,
    };
    Some(SignatureHelp { signatures, active, parameter })
}

fn of_native(decl: &Native, doc: String) -> Signature {
    let generics = if decl.generics.is_empty() {
        String::new()
    } else {
        let variables: Vec<String> =
            decl.generics.iter().map(|(variable, class)| format!("{}: {}", variable.text, class.text)).collect();
        format!("<{}>", variables.join(", "))
    };
    let mut out = Builder::new(format!("{}{generics}", decl.name.text));
    for param in &decl.params {
        out.param(&docs::param_text(param), param.doc.clone());
    }
    let result = match &decl.output {
        NativeOutput::Type(ty) => type_text(ty),
        NativeOutput::Rule(rule) => format!("rule {}", rule.text),
        NativeOutput::Fields(_) | NativeOutput::None => String::new(),
    };
    out.end(&result, Some(doc))
}

/// `asc(x)`, `desc(x, nulls: last)`: the language's own.
fn of_order(name: &str, index: usize) -> Option<SignatureHelp> {
    let word = super::words::find(super::words::OTHERS, name).filter(|_| matches!(name, "asc" | "desc"))?;
    let mut out = Builder::new(name.to_string());
    out.param("value: row any", Some("What the rows are sorted by.".into()));
    out.param("nulls: first | last", Some("Where nulls come.".into()));
    let signature = out.end("order", Some(word.doc.into()));
    Some(SignatureHelp { signatures: vec![signature], active: 0, parameter: (index < 2).then_some(index) })
}
