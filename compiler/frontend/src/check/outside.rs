//! A source without `schema:`: its fields come from outside (D8).

use dfc_grammar::ast::Span;
use dfc_ir::Options;
use dfc_typeck::LocalDiagnostic;

use super::ItemContext;
use super::ends::Declared;
use crate::bind::Bound;
use crate::catalog::{NotFound, Request};
use crate::items::program;
use crate::schemas::{Failure, find, lock_path};

const DECLARE: &str = "declare them, `record Row { id: int64, name: string? }`, and write `schema: Row`";

impl ItemContext<'_> {
    /// The fields that a source has outside. `node` is what it is called in the plan.
    pub(super) fn outside_fields(
        &mut self,
        bound: &Bound<'_>,
        options: Option<&Options>,
        node: &str,
    ) -> Option<Declared> {
        // An argument that was refused may have been meant as the schema.
        let options = options.filter(|_| !bound.failed)?;
        let connector = &bound.operator.name;
        let name = if node == self.item.name { node.to_owned() } else { connector.clone() };
        let request = Request { connector: connector.clone(), options: options.clone() };
        let text = |span: Span| self.written(span);
        let (source, found) = find(self.db, self.root, &name, bound, request, !self.unknown_values, &text);
        let words = if source.as_ref().is_some_and(|source| source.locked) {
            "stands in the lock file"
        } else {
            "comes from outside here"
        };
        self.outside.extend(source);
        match found {
            Ok(schema) => {
                let place = self.places.place(bound.call.name.span);
                Some(Declared { fields: schema.fields.clone(), places: vec![place; schema.len()], words })
            }
            Err(failure) => {
                let problem = self.not_known(&name, bound, failure);
                self.error(problem);
                None
            }
        }
    }

    /// The text of a span of this item.
    fn written(&self, span: Span) -> Option<String> {
        let file = self.db.file_by_index(self.item.file)?;
        let start =
            program(self.db, self.root).items.iter().find(|item| *item.key(self.db) == self.item)?.start(self.db);
        let text = file.text(self.db).as_ref().ok()?;
        text.get((start + span.start) as usize..(start + span.end) as usize).map(str::to_owned)
    }

    fn not_known(&self, name: &str, bound: &Bound<'_>, failure: Failure) -> LocalDiagnostic {
        let at = self.loc(bound.call.name.span);
        let pipeline = self.root.path(self.db);
        let lock = lock_path(pipeline);
        match failure {
            Failure::Undeclared => {
                let message =
                    format!("`{name}` needs `schema:`: it has no fields of its own", name = bound.operator.name);
                LocalDiagnostic::error("E0701", at, message, "which fields?").help(DECLARE)
            }
            Failure::NoValue => {
                let message = format!(
                    "the fields of `{name}` are not known: what is read depends on a parameter without a value"
                );
                LocalDiagnostic::error("E0703", at, message, "which fields?")
                    .help(format!("give the parameter a default or a value (`--set NAME=…`), or {DECLARE}"))
            }
            Failure::Lock(why) => {
                let message = format!("the lock file `{}` can't be used: {why}", lock.display());
                LocalDiagnostic::error("E0704", at, message, "its fields stand there").help(format!(
                    "mend it, or delete it and let `dfc check --connect {}` write it anew",
                    pipeline.display()
                ))
            }
            Failure::NotFound(NotFound { message, help, needs_connection }) => {
                let message = format!("the fields of `{name}` are not known: {message}");
                let problem = LocalDiagnostic::error("E0703", at, message, "which fields?");
                match help {
                    _ if needs_connection => problem.help(format!(
                        "`dfc check --connect {}` asks for them and keeps them in `{}`; or {DECLARE}",
                        pipeline.display(),
                        lock.display()
                    )),
                    Some(help) => problem.note("without `schema:` the fields are taken from what is read").help(help),
                    None => problem.help(DECLARE),
                }
            }
        }
    }
}
