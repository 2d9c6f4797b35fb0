//! A use of an operator of one's own: its arguments, and the fields it gives. Running it is refused, once all else is sound.

use std::collections::BTreeMap;

use dfc_diagnostics::Severity;
use dfc_grammar::ast::{Call, ItemKind, OperatorDecl, ParamKind};
use dfc_ir::DataType;
use dfc_typeck::{Column, LocalDiagnostic, Namespace, Scope, Target};

use super::{Flow, ItemContext};
use crate::bind::{Bound, bind};
use crate::items::{ItemNode, find};
use crate::places;
use crate::userops::{class_of, operator_check, output, signature, used_with};

fn is_error(problem: &LocalDiagnostic) -> bool {
    problem.severity == Severity::Error
}

impl ItemContext<'_> {
    /// The operator of this name that the program declares.
    pub(super) fn own_operator(&self, name: &str) -> Option<ItemNode> {
        find(self.db, self.root, Namespace::Operator, name)
    }

    /// Applies an operator of one's own.
    pub(super) fn own(&mut self, flow: Flow, call: &Call) -> Flow {
        let (db, root) = (self.db, self.root);
        let Some(item) = find(db, root, Namespace::Operator, &call.name.text) else { return Flow::unknown() };
        let kind = item.kind(db).clone();
        let ItemKind::Operator(decl) = kind.as_ref() else { return Flow::unknown() };
        let operator = signature(decl);
        let bound = bind(&operator, call, &self.item.clone(), &mut self.out);
        let constants = self.options(&bound);
        let Some(columns) = flow.columns.clone() else { return Flow::unknown() };
        let types = self.row_arguments(decl, &bound, &columns);
        if self.guesses() {
            return Flow { columns: self.given(decl, item, columns, call), output: None, ..flow };
        }
        // What is wrong with the declaration is said there.
        if constants.is_none() || bound.failed || operator_check(db, root, item).iter().any(is_error) {
            return Flow::unknown();
        }
        let Some(types) = types else { return Flow::unknown() };
        let at = self.loc(call.name.span);
        if let Some(first) = used_with(self.globals, item.key(db), decl, &types).into_iter().find(is_error) {
            let message = format!("`{}` can't be used so: {}", decl.name.text, first.message);
            let mut problem = LocalDiagnostic::error("E0227", at, message, "with these types")
                .related(places::name_of(item.key(db)), "declared for several types here");
            problem.help = first.help;
            self.error(problem);
            return Flow::unknown();
        }
        let Some(out) = self.given(decl, item, columns, call) else { return Flow::unknown() };
        let message =
            format!("running an operator of one's own (`{}`) is not available in this version", decl.name.text);
        let problem = LocalDiagnostic::error("E0220", at, message, "not available yet")
            .help("compute with `derive`, `aggregate` or a `fn`");
        self.error(problem);
        Flow { columns: Some(out), output: None, ..flow }
    }

    /// The fields that come out.
    fn given(&self, decl: &OperatorDecl, item: ItemNode, input: Vec<Column>, call: &Call) -> Option<Vec<Column>> {
        let (passes, own) = output(self.globals, item.key(self.db), decl)?;
        let mut out: Vec<Column> = if passes { input } else { Vec::new() };
        for field in own {
            let step = self.step(call.name.span, format!("given by `{}`", decl.name.text));
            let column = Column::new(field.name.clone(), field.ty, vec![step]);
            match out.iter_mut().find(|other| other.name == field.name) {
                Some(replaced) => *replaced = column,
                None => out.push(column),
            }
        }
        Some(out)
    }

    /// Checks the arguments that have a value for each row; the types of those that are declared for several.
    fn row_arguments(
        &mut self,
        decl: &OperatorDecl,
        bound: &Bound<'_>,
        columns: &[Column],
    ) -> Option<BTreeMap<String, DataType>> {
        let mut types = BTreeMap::new();
        let mut sound = true;
        for param in &decl.params {
            let (ParamKind::Row(ty), Some(arg)) = (&param.kind, bound.get(&param.name.text)) else { continue };
            if class_of(param).is_some() {
                match self.expr(columns, &arg.value, None) {
                    Some(value) => drop(types.insert(param.name.text.clone(), value.ty)),
                    None => sound = false,
                }
                continue;
            }
            let item = self.own_operator(&decl.name.text).map(|item| item.key(self.db).clone());
            // A type that is refused is said at the declaration.
            let globals = self.globals.clone();
            let ty = item.and_then(|item| crate::userops::resolve(&globals, &item, ty))?;
            let target = Target::Parameter { operator: decl.name.text.clone(), name: param.name.text.clone() };
            let value = self.with(Scope::Row(columns), |checker| checker.check_to(&arg.value, &ty, &target));
            sound &= value.is_some();
        }
        sound.then_some(types)
    }
}
