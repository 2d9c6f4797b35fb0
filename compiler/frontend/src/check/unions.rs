//! `union(a, b, …)`: fields by name, brought to one type each (D7, D8).

use dfc_grammar::ast::{Call, ExprKind, Literal};
use dfc_ir::plan::Op;
use dfc_ir::text::written;
use dfc_ir::{DataType, Expr as Ir, Value};
use dfc_typeck::conversions::common_type;
use dfc_typeck::{Column, LocalDiagnostic, OPTIONAL, Scope, Target};

use super::chain::Position;
use super::{Flow, Input, ItemContext, LocalNode, Nature, schema};
use crate::bind::{Bound, bind};
use crate::operators::{Role, table};

/// A stream of the union.
struct Branch {
    columns: Vec<Column>,
    output: Option<Input>,
    name: String,
}

impl ItemContext<'_> {
    pub(super) fn union(&mut self, call: &Call) -> Flow {
        let Some(operator) = table().get("union", Role::Shuffle) else { return Flow::unknown() };
        let bound = bind(operator, call, &self.item.clone(), &mut self.out);
        let mut flows: Vec<(Flow, String)> = bound
            .all("streams")
            .iter()
            .map(|arg| {
                let name = match &arg.value.kind {
                    ExprKind::Name(name) => format!("`{name}`"),
                    _ => "a branch".to_string(),
                };
                (self.stream_arg(arg, Position::Stream), name)
            })
            .collect();
        let fill = self.fills(&bound);
        if self.guesses() {
            flows.retain(|(flow, _)| flow.columns.is_some());
        } else if bound.all("streams").len() < 2 && !bound.failed {
            let problem = LocalDiagnostic::error(
                "E0602",
                self.loc(call.span),
                "`union` needs two streams at least",
                "one stream is no union",
            )
            .help("write `union(a, b)`");
            self.error(problem);
            return Flow::unknown();
        }
        let natures: Vec<Nature> = flows.iter().map(|(flow, _)| flow.nature.clone()).collect();
        let branches: Option<Vec<Branch>> = flows
            .into_iter()
            .map(|(flow, name)| Some(Branch { columns: flow.columns?, output: flow.output, name }))
            .collect();
        let endless = natures.into_iter().find_map(|nature| nature.endless);
        let nature = Nature { endless, ..Nature::default() }.after(operator, call, &self.places);
        let flow = match (branches, fill) {
            (Some(branches), _) if self.guesses() && branches.is_empty() => Flow::unknown(),
            (Some(branches), fill) if self.guesses() => self.unite(call, branches, fill.unwrap_or(true)),
            (Some(branches), Some(fill)) if !bound.failed => self.unite(call, branches, fill),
            _ => Flow::unknown(),
        };
        Flow { nature, ..flow }
    }

    /// `fill: null`. `None`: something else was given.
    fn fills(&mut self, bound: &Bound<'_>) -> Option<bool> {
        let Some(arg) = bound.get("fill") else { return Some(false) };
        if matches!(arg.value.kind, ExprKind::Literal(Literal::Null)) {
            return Some(true);
        }
        let problem = LocalDiagnostic::error("E0605", self.loc(arg.value.span), "`fill` takes `null` only", "not null")
            .help("write `fill: null`, and `derive(x: x ?? value)` behind the union");
        self.error(problem);
        None
    }

    fn unite(&mut self, call: &Call, branches: Vec<Branch>, fill: bool) -> Flow {
        let mut columns: Vec<Column> = Vec::new();
        let mut sound = true;
        for branch in &branches {
            for column in &branch.columns {
                let Some(united) = columns.iter_mut().find(|c| c.name == column.name) else {
                    columns.push(column.clone());
                    continue;
                };
                if united.broken || column.broken {
                    united.broken = true;
                    continue;
                }
                match common_type(&united.ty, &column.ty) {
                    Some(ty) => {
                        // The branch that decides the type shows where it comes from.
                        if ty.ty == column.ty.ty && ty.ty != united.ty.ty {
                            united.path.clone_from(&column.path);
                        }
                        if ty.ty != column.ty.ty && ty.ty != united.ty.ty {
                            united.path.push(self.step(call.name.span, "widened by this union"));
                        } else if ty.nullable != united.ty.nullable {
                            united.path.clone_from(&column.path);
                        }
                        united.ty = ty;
                    }
                    None => {
                        let message = format!(
                            "the field `{}` has types that don't go together: {} and {}",
                            column.name, united.ty.ty, column.ty.ty
                        );
                        let mut problem =
                            LocalDiagnostic::error("E0408", self.loc(call.span), message, "in this union");
                        for (column, words) in [(&*united, "of one"), (column, "of the other")] {
                            if let Some(step) = column.path.last() {
                                problem = problem.related(step.loc.clone(), format!("{} {}", column.ty, words));
                            }
                        }
                        problem = problem.help(format!(
                            "convert one of them before: `cast({} as {})`",
                            written(&column.name),
                            united.ty.ty
                        ));
                        united.broken = true;
                        sound = false;
                        self.out.push(problem);
                    }
                }
            }
        }
        for column in &mut columns {
            let without: Vec<&Branch> =
                branches.iter().filter(|b| !b.columns.iter().any(|c| c.name == column.name)).collect();
            if without.is_empty() {
                continue;
            }
            if fill {
                if !column.ty.nullable {
                    column.ty.nullable = true;
                    let names = without.iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", ");
                    column.path.push(self.step(call.name.span, format!("{OPTIONAL} by this union: {names} has none")));
                }
                continue;
            }
            let missing = without.iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", ");
            let mut problem = LocalDiagnostic::error(
                "E0406",
                self.loc(call.span),
                format!("the field `{}` is not in every stream of this union: {missing} has none", column.name),
                "fields differ",
            );
            if let Some(step) = column.path.first() {
                problem = problem.related(step.loc.clone(), "it is here");
            }
            let name = written(&column.name);
            problem = problem
                .help(format!("add it (`derive({name}: …)`), drop it elsewhere, or write `union(…, fill: null)`"));
            self.out.push(problem);
            column.broken = true;
            sound = false;
        }
        if columns.iter().any(|c| c.broken) {
            sound = false;
        }
        let inputs = branches.iter().map(|branch| self.branch(call, branch, &columns).filter(|_| sound)).collect();
        self.node(call, sound.then_some(Op::Union), inputs, Some(columns))
    }

    /// A branch in the union's order and types.
    fn branch(&mut self, call: &Call, branch: &Branch, columns: &[Column]) -> Option<Input> {
        let same = branch.columns.len() == columns.len()
            && branch.columns.iter().zip(columns).all(|(a, b)| a.name == b.name && a.ty == b.ty);
        if same {
            return branch.output.clone();
        }
        let mut exprs = Vec::with_capacity(columns.len());
        for column in columns.iter().filter(|c| !c.broken) {
            exprs.push(match branch.columns.iter().position(|c| c.name == column.name) {
                Some(index) => self.widened(call, branch, index, column)?,
                None => Ir::literal(Value::Null, column.ty.clone()),
            });
        }
        let inputs = vec![branch.output.clone()?];
        let site = {
            use dfc_typeck::SiteSink as _;
            let loc = self.loc(call.span);
            self.sites.site(&loc)
        };
        let name = format!("{}.union.match", self.prefix());
        Some(self.push(LocalNode { name, op: Op::Project(exprs), inputs, schema: schema(columns), site }))
    }

    fn widened(&mut self, call: &Call, branch: &Branch, index: usize, column: &Column) -> Option<Ir> {
        let from = &branch.columns[index];
        let expr = Ir::column(index, from.ty.clone());
        if from.ty == column.ty {
            return Some(expr);
        }
        let target =
            Target::UnionBranch { column: column.name.clone(), other: column.path.last().map(|s| s.loc.clone()) };
        let to: DataType = column.ty.clone();
        self.with(Scope::Row(&branch.columns), |checker| checker.assign(expr, &to, call.span, &target))
    }
}
