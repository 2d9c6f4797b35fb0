//! Operators of one's own: their declarations checked in full, and what a use of one takes and gives. (Running them is not part of
//! this version: a use is refused by name once everything about it is sound.)
//!
//! A body sees the parameters, the states and the opaque `row`. The input's fields are not known to it: they are one unnamed
//! field of `row`, which `emit { ...row }` passes on.

mod body;

use std::collections::BTreeMap;
use std::sync::Arc;

use dfc_grammar::ast::{
    DeclParam, FieldDecl, ItemKind, OperatorDecl, OutputTerm, ParamKind, Sign, Span, StateDecl, TypeExpr, TypeKind,
};
use dfc_ir::{DataType, Field, Type};
use dfc_typeck::{
    Checker, Column, FunctionTable, Globals, ItemKey, Loc, LocalDiagnostic, NoSites, PathStep, Scope, Target, is_class,
};

use crate::bind::listed;
use crate::db::{Db, SourceFile};
use crate::globals::{globals, globals_and_streams, record_fields};
use crate::items::ItemNode;
use crate::operators::{self, Operator, Role};

/// The field of `row` that stands for all fields of the input. No name in a file is empty.
const INPUT: &str = "";

/// What is wrong with the declaration of an operator.
#[salsa::tracked]
pub fn operator_check(db: &dyn Db, root: SourceFile, item: ItemNode) -> Arc<Vec<LocalDiagnostic>> {
    let ItemKind::Operator(decl) = item.kind(db).as_ref() else { return Arc::default() };
    let check = |globals: &Globals| OperatorCheck::new(globals, item.key(db), decl).run(&BTreeMap::new());
    let found = check(globals(db, root));
    // What may be meant is looked for among the streams too.
    Arc::new(if found.is_empty() { found } else { check(globals_and_streams(db, root)) })
}

/// What a use of an operator finds wrong in its body, given the types of the parameters that are declared for several.
pub fn used_with(
    globals: &Globals,
    item: &ItemKey,
    decl: &OperatorDecl,
    types: &BTreeMap<String, DataType>,
) -> Vec<LocalDiagnostic> {
    OperatorCheck::new(globals, item, decl).run(types)
}

/// An operator's declaration as the checks of calls read it.
pub fn signature(decl: &OperatorDecl) -> Operator {
    Operator {
        name: decl.name.text.clone(),
        role: Role::Shuffle,
        doc: None,
        params: decl.params.iter().map(operators::param).collect(),
        output: String::new(),
        clauses: Vec::new(),
    }
}

/// What an operator gives: whether the input's fields, and fields of its own. Only for a sound declaration.
pub fn output(globals: &Globals, item: &ItemKey, decl: &OperatorDecl) -> Option<(bool, Vec<Field>)> {
    OperatorCheck::new(globals, item, decl).output()
}

/// A type of a declaration; `None` where it is refused.
pub fn resolve(globals: &Globals, item: &ItemKey, ty: &TypeExpr) -> Option<DataType> {
    let mut sites = NoSites;
    Checker::new(FunctionTable::standard(), globals, item.clone(), Scope::None, &mut sites).resolve_type(ty)
}

/// The class (`any`, `number`, …) of a parameter that takes several types.
pub fn class_of(param: &DeclParam) -> Option<&str> {
    match &param.kind {
        ParamKind::Row(ty) => match &ty.kind {
            TypeKind::Name(name) if is_class(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// What a checker says of fields, said of what a body sees.
fn in_words_of_a_body(mut problem: LocalDiagnostic) -> LocalDiagnostic {
    match problem.code {
        // A look into `row`, which has no field that could be named.
        "E0419" if problem.notes.iter().any(|note| note.contains("``")) => {
            let message = "the fields of `row` are not known to an operator";
            LocalDiagnostic::error("E0226", problem.loc, message, "which type?")
                .help("take what is needed as a parameter: `amount: row decimal(18, 2)`")
        }
        "E0410" => {
            problem.message = problem.message.replacen("no field", "no parameter, state or value", 1);
            for note in &mut problem.notes {
                *note = note.replacen("the fields here are", "there are", 1);
            }
            problem
        }
        _ => problem,
    }
}

/// The check of one declaration.
struct OperatorCheck<'a> {
    globals: &'a Globals,
    item: &'a ItemKey,
    decl: &'a OperatorDecl,
    out: Vec<LocalDiagnostic>,
}

impl<'a> OperatorCheck<'a> {
    fn new(globals: &'a Globals, item: &'a ItemKey, decl: &'a OperatorDecl) -> Self {
        OperatorCheck { globals, item, decl, out: Vec::new() }
    }

    /// The whole declaration. `types`: of parameters of a class.
    fn run(mut self, types: &BTreeMap<String, DataType>) -> Vec<LocalDiagnostic> {
        let name = &self.decl.name;
        if !operators::table().roles(&name.text).is_empty() {
            let message =
                format!("the operator can't be called `{0}`: that is an operator of the standard library", name.text);
            self.error("E0212", name.span, message, "taken", "give it another name");
        }
        let mut names: Vec<Column> = Vec::new();
        let mut rows: Vec<bool> = Vec::new();
        for param in &self.decl.params {
            let ty = self.parameter(param, types);
            let is_row = matches!(param.kind, ParamKind::Row(_));
            self.declare(&mut names, &param.name.text, param.name.span, ty, "a parameter");
            rows.resize(names.len(), is_row);
        }
        let constants: Vec<Column> =
            names.iter().zip(&rows).filter(|(_, row)| !**row).map(|(column, _)| column.clone()).collect();
        let states: Vec<&StateDecl> = self.decl.states.iter().collect();
        for state in &states {
            let ty = self.with(&[], |checker| checker.resolve_type(&state.ty));
            if let Some(ty) = &ty {
                let target = Target::Declaration { kind: "state", name: state.name.text.clone() };
                self.with(&constants, |checker| checker.check_to(&state.init, ty, &target).is_some());
            }
            self.declare(&mut names, &state.name.text, state.name.span, ty, "a state");
            self.keys(state, &names, &rows);
        }
        self.one_key(&states);
        let output = self.output();
        self.handlers(&names, &rows, &states, output);
        self.out
    }

    fn loc(&self, span: Span) -> Loc {
        Loc { item: self.item.clone(), span }
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>, label: &str, help: &str) {
        let problem = LocalDiagnostic::error(code, self.loc(span), message, label).help(help);
        self.out.push(problem);
    }

    /// Checks something that sees these names.
    fn with<T>(&mut self, names: &[Column], work: impl FnOnce(&mut Checker<'_>) -> T) -> T {
        let mut sites = NoSites;
        let scope = Scope::Row(names);
        let mut checker = Checker::new(FunctionTable::standard(), self.globals, self.item.clone(), scope, &mut sites);
        let result = work(&mut checker);
        let found = std::mem::take(&mut checker.diagnostics);
        self.out.extend(found.into_iter().map(in_words_of_a_body));
        result
    }

    /// The type of a parameter; `None` where several fit, or it is refused.
    fn parameter(&mut self, param: &DeclParam, types: &BTreeMap<String, DataType>) -> Option<DataType> {
        let takes = "it takes a constant, `n: int64`, or a value of each row, `amount: row decimal(18, 2)`";
        if param.variadic {
            self.error(
                "E0225",
                param.span,
                "a parameter of one's own operator takes one argument",
                "takes many",
                takes,
            );
            return None;
        }
        match &param.kind {
            ParamKind::Row(_) if class_of(param).is_some() => types.get(&param.name.text).cloned(),
            ParamKind::Const(ty) | ParamKind::Row(ty) => {
                let ty = self.with(&[], |checker| checker.resolve_type(ty))?;
                if let (Some(default), ParamKind::Row(_)) = (&param.default, &param.kind) {
                    let help = "leave the default out, or make it a constant: without `row`";
                    self.error("E0225", default.span, "a value of each row has no default", "a default", help);
                } else if let Some(default) = &param.default {
                    let target =
                        Target::Parameter { operator: self.decl.name.text.clone(), name: param.name.text.clone() };
                    self.with(&[], |checker| checker.check_to(default, &ty, &target).is_some());
                }
                Some(ty)
            }
            _ => {
                let message = format!("`{}` can't be a parameter of one's own operator", param.name.text);
                self.error("E0225", param.span, message, "of another kind", takes);
                None
            }
        }
    }

    /// Adds a name that bodies see. Without a type, using it is silent.
    fn declare(&mut self, names: &mut Vec<Column>, name: &str, span: Span, ty: Option<DataType>, what: &str) {
        let first = names.iter().find(|column| column.name == name).and_then(|column| column.path.first());
        if let Some(first) = first {
            let problem =
                LocalDiagnostic::error("E0425", self.loc(span), format!("`{name}` is declared twice here"), "again")
                    .related(first.loc.clone(), "first declared here")
                    .help("give one of them another name");
            self.out.push(problem);
            return;
        }
        if name == "row" {
            self.error("E0425", span, "`row` is the row itself here", "taken", "give it another name");
            return;
        }
        let step = PathStep::new(self.loc(span), format!("declared here as {what}"));
        let broken = ty.is_none();
        let ty = ty.unwrap_or(DataType::optional(Type::Null));
        names.push(Column { broken, ..Column::new(name, ty, vec![step]) });
    }

    /// The keys of a state are values of each row.
    fn keys(&mut self, state: &StateDecl, names: &[Column], rows: &[bool]) {
        for key in &state.by {
            let found = names.iter().zip(rows).find(|(column, _)| column.name == key.text);
            let ty = match found {
                Some((column, true)) => column.ty.ty.clone(),
                Some((_, false)) => {
                    let help = "a key differs from row to row: declare it with `row`";
                    let message = format!("the key `{}` is the same for all rows", key.text);
                    self.error("E0222", key.span, message, "a constant", help);
                    continue;
                }
                None => {
                    let known: Vec<&str> =
                        names.iter().zip(rows).filter(|(_, row)| **row).map(|(c, _)| c.name.as_str()).collect();
                    let help = match known.as_slice() {
                        [] => "declare a parameter for it: `key: row any`".to_owned(),
                        known => format!("a key is one of the parameters {}", listed(known)),
                    };
                    let message = format!("there is no parameter `{}` to keep the state by", key.text);
                    self.error("E0222", key.span, message, "unknown key", &help);
                    continue;
                }
            };
            if matches!(ty, Type::Json | Type::List(_) | Type::Record(_)) {
                let message = format!("`{}` can't be a key: values of type {ty} are not compared", key.text);
                self.error("E0222", key.span, message, "no key", "take a part of it that is a text or a number");
            }
        }
    }

    /// All states are kept by the same key, so that they are found at once.
    fn one_key(&mut self, states: &[&StateDecl]) {
        let keys = |state: &StateDecl| -> Vec<String> { state.by.iter().map(|key| key.text.clone()).collect() };
        let Some((first, others)) = states.split_first() else { return };
        for other in others {
            if keys(first) == keys(other) {
                continue;
            }
            let message = format!("`{}` and `{}` are kept by different keys", first.name.text, other.name.text);
            let problem = LocalDiagnostic::error("E0222", self.loc(other.span), message, "another key")
                .related(self.loc(first.span), "the first state")
                .help(match first.by.is_empty() {
                    true => {
                        "all states of an operator have the same key: leave `by` out everywhere, or write it everywhere"
                            .to_owned()
                    }
                    false => {
                        format!("all states of an operator have the same key: write `by [{}]`", keys(first).join(", "))
                    }
                });
            self.out.push(problem);
            return;
        }
    }

    /// `input`, `{ … }`, `input + { … }`.
    fn output(&mut self) -> Option<(bool, Vec<Field>)> {
        let rule = &self.decl.output;
        let (mut input, mut own): (bool, Vec<FieldDecl>) = (false, Vec::new());
        for (sign, term) in &rule.terms {
            match (sign, term) {
                (Sign::Plus, OutputTerm::Name(name)) if name.text == "input" && !input => input = true,
                (Sign::Plus, OutputTerm::Fields(fields)) => own.extend(fields.iter().cloned()),
                _ => {
                    let message = "this is no output of one's own operator";
                    let help = "write `input`, fields of its own as in `{ total: int64 }`, or both: `input + { total: int64 }`";
                    self.error("E0225", rule.span, message, "can't be given", help);
                    return None;
                }
            }
        }
        let fields = self.with(&[], |checker| record_fields(checker, &own))?;
        let named = own.iter().find(|field| field.external.is_some());
        if let Some(field) = named {
            let help = "leave the name outside out";
            self.error("E0225", field.span, "only fields of files and tables have a name outside", "not outside", help);
            return None;
        }
        Some((input, fields))
    }
}
