//! The expressions inside an expression. Whoever walks a tree says what it does with the kinds that it knows, and leaves the others to this.

use crate::ast::{Expr, ExprKind, FormatPart, RecordEntry};

impl Expr {
    /// Calls `visit` with each expression right inside this one, in source order: arguments and elements without their labels, of a
    /// chain its head and the arguments of its links. What stands inside a type is none.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match &self.kind {
            ExprKind::Error | ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::Type(_) => {}
            ExprKind::Call(call) => call.args.iter().for_each(|arg| visit(&arg.value)),
            ExprKind::Chain(chain) => {
                visit(&chain.head);
                chain.links.iter().flat_map(|link| &link.args).for_each(|arg| visit(&arg.value));
            }
            ExprKind::Field(value, _)
            | ExprKind::Unary(_, value)
            | ExprKind::Paren(value)
            | ExprKind::IsNull { value, .. }
            | ExprKind::Cast { value, .. } => visit(value),
            ExprKind::Index(a, b)
            | ExprKind::Binary(_, _, a, b)
            | ExprKind::In { value: a, list: b, .. }
            | ExprKind::Pattern { value: a, pattern: b, .. } => [a, b].into_iter().for_each(|e| visit(e)),
            ExprKind::Between { value: a, low: b, high: c, .. } | ExprKind::If(a, b, c) => {
                [a, b, c].into_iter().for_each(|e| visit(e));
            }
            ExprKind::Match { subject, arms, otherwise } => {
                subject.iter().for_each(|e| visit(e));
                for arm in arms {
                    arm.patterns.iter().chain([&arm.value]).for_each(&mut *visit);
                }
                otherwise.iter().for_each(|e| visit(e));
            }
            ExprKind::List(items) => items.iter().for_each(|item| visit(&item.value)),
            ExprKind::Record(entries) => entries.iter().for_each(|entry| match entry {
                RecordEntry::Field(_, value) | RecordEntry::Spread(value, _) => visit(value),
            }),
            ExprKind::Format(parts) => {
                for part in parts {
                    if let FormatPart::Expr(e) = part {
                        visit(e);
                    }
                }
            }
        }
    }
}
