//! Fusion: filters, requirements and projections in a row become one program.
//!
//! Columns are kept as expressions over the program's input and substituted where they are used. One that is computed
//! and used more than once, or by a condition, becomes a `Let`, so that nothing is computed twice.

use dfc_ir::stage::{Program, Step};
use dfc_ir::{DataType, Expr, ExprKind, Schema};

/// A program under construction: what the columns are so far.
#[derive(Debug, Clone)]
pub struct Pending {
    inputs: Vec<DataType>,
    steps: Vec<Step>,
    lets: usize,
    outputs: Vec<Expr>,
    schema: Schema,
    names: Vec<String>,
}

impl Pending {
    /// Nothing done yet to rows of this schema.
    pub fn new(schema: &Schema) -> Self {
        let inputs = schema.types();
        let outputs = inputs.iter().enumerate().map(|(i, ty)| Expr::column(i, ty.clone())).collect();
        Pending { inputs, steps: Vec::new(), lets: 0, outputs, schema: schema.clone(), names: Vec::new() }
    }

    /// Adds a filter of operator `node`; `schema` is what it gives (a filter may rule out nulls).
    pub fn filter(&mut self, node: &str, condition: &Expr, schema: &Schema) {
        let condition = self.condition(condition);
        self.steps.push(Step::Filter(condition));
        self.passed(node, schema);
    }

    /// Adds a requirement of operator `node`; `schema` is what it gives.
    pub fn require(&mut self, node: &str, condition: &Expr, message: &str, schema: &Schema) {
        let condition = self.condition(condition);
        self.steps.push(Step::Require(condition, message.to_owned()));
        self.passed(node, schema);
    }

    /// Replaces the columns.
    pub fn project(&mut self, node: &str, exprs: &[Expr], schema: &Schema) {
        let mut uses = vec![0usize; self.outputs.len()];
        exprs.iter().for_each(|e| count_uses(e, &mut uses));
        for (index, uses) in uses.into_iter().enumerate() {
            if uses > 1 {
                self.name_value(index);
            }
        }
        self.outputs = exprs.iter().map(|e| self.substituted(e)).collect();
        self.schema = schema.clone();
        self.named(node);
    }

    /// The columns as they are now.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The finished program; `None` if it would hand its input on unchanged.
    pub fn finish(self) -> Option<Program> {
        let unchanged = self.steps.is_empty()
            && self.outputs.len() == self.inputs.len()
            && self.outputs.iter().enumerate().all(|(i, e)| e.kind == ExprKind::Column(i));
        if unchanged {
            return None;
        }
        let Pending { inputs, steps, outputs, schema, names, .. } = self;
        Some(Program { name: names.join(" → "), inputs, steps, outputs, schema })
    }

    fn passed(&mut self, node: &str, schema: &Schema) {
        for (index, field) in schema.fields.iter().enumerate() {
            if self.outputs[index].ty != field.ty {
                // Nulls are ruled out from here on; a computed value keeps its type under a name of its own.
                self.name_value(index);
                self.outputs[index].ty = field.ty.clone();
            }
        }
        self.schema = schema.clone();
        self.named(node);
    }

    fn named(&mut self, node: &str) {
        if self.names.last().is_none_or(|last| last != node) {
            self.names.push(node.to_owned());
        }
    }

    /// A condition over the present columns, over inputs and lets. What it reads is also a value that may be handed on: compute it once.
    fn condition(&mut self, condition: &Expr) -> Expr {
        for index in condition.columns() {
            self.name_value(index);
        }
        self.substituted(condition)
    }

    /// Makes a computed column a `Let`.
    fn name_value(&mut self, index: usize) {
        if matches!(self.outputs[index].kind, ExprKind::Column(_) | ExprKind::Literal(_)) {
            return;
        }
        let site = self.outputs[index].site;
        let named = Expr::column(self.inputs.len() + self.lets, self.outputs[index].ty.clone());
        let value = std::mem::replace(&mut self.outputs[index], Expr { site, ..named });
        self.steps.push(Step::Let(value));
        self.lets += 1;
    }

    fn substituted(&self, expr: &Expr) -> Expr {
        if let ExprKind::Column(index) = expr.kind {
            // A filter may have narrowed `T?` to `T` for what follows: the use knows.
            let mut value = self.outputs[index].clone();
            if matches!(value.kind, ExprKind::Column(_)) {
                value.ty = expr.ty.clone();
            }
            return value;
        }
        let mut out = expr.clone();
        out.for_each_child_mut(&mut |child| *child = self.substituted(child));
        out
    }
}

fn count_uses(expr: &Expr, uses: &mut [usize]) {
    if let ExprKind::Column(index) = expr.kind {
        uses[index] += 1;
    }
    expr.for_each_child(&mut |child| count_uses(child, uses));
}
