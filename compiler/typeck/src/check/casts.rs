//! `x as T` and `x as? T`.

use dfc_grammar::ast::{self, Span};
use dfc_ir::{CastMode, Expr, Type};

use super::compare::name_of;
use crate::Checker;
use crate::conversions::{castable, needs_zone};
use crate::functions::type_text;

impl Checker<'_> {
    /// `value as ty`: exactly that type; a null under a plain `T` is a row error. `value as? ty`: null where it fails.
    pub(crate) fn as_type(
        &mut self,
        value: &ast::Expr,
        ty: &ast::TypeExpr,
        fallible: bool,
        span: Span,
    ) -> Option<Expr> {
        let target = self.resolve_type(ty);
        let hint = target.as_ref().map(|to| to.with_nullable(true));
        // A hint lets empty lists and nulls take the type; numbers convert below, so that one out of range is named.
        let hint = hint.filter(|to| !to.ty.is_numeric());
        let checked = self.infer(value, hint.as_ref());
        let (mut target, checked) = (target?, checked?);
        if fallible {
            target.nullable = true;
        }
        if checked.ty.ty == Type::Null {
            if target.nullable {
                return Some(self.retype_null(checked, &target));
            }
            let optional = format!("{}?", type_text(ty));
            self.error("E0505", span, format!("null is no {target}"), "a null under a type without `?`")
                .help(format!("write `null as {optional}`"))
                .fix(format!("write `{optional}`"), ty.span, optional);
            return None;
        }
        let from = checked.ty.clone();
        if castable(&from.ty, &target.ty) {
            if from.ty == target.ty && (target.nullable || !from.nullable) {
                return self.convert(checked, &target, span);
            }
            let mode = if fallible { CastMode::Try } else { CastMode::Strict };
            return self.cast(checked, &target, mode, span);
        }
        let places = self.places_of(&checked);
        let name = name_of(value).map_or("x".into(), dfc_ir::text::written);
        if needs_zone(&from.ty, &target.ty) {
            let call = match (&from.ty, &target.ty) {
                (Type::Timestamp, Type::Date) => format!("date({name}, \"Asia/Shanghai\")"),
                (Type::Timestamp, _) => format!("to_datetime({name}, \"Asia/Shanghai\")"),
                _ => format!("to_timestamp({name}, \"Asia/Shanghai\")"),
            };
            self.error("E0509", span, format!("{from} as {target} needs a time zone"), "which zone's clock?")
                .related_all(places)
                .help(format!("write `{call}` with the zone that is meant"));
            return None;
        }
        let report = self
            .error("E0508", span, format!("no conversion leads from {from} to {target}"), format!("this is {from}"))
            .related_all(places);
        match (&from.ty, &target.ty) {
            (Type::Timestamp, Type::Int(_)) => report.help(format!("count from 1970: `epoch_seconds({name})`")),
            (Type::Int(_), Type::Timestamp) => report.help(format!("count from 1970: `from_epoch({name})`")),
            (Type::List(_), _) => report.help("take one item of the list: `x[0]`"),
            (Type::Record(_), _) => report.help("take one field of the record: `x.name`"),
            (Type::Bool, _) => report.help(format!("choose the values: `if {name} then … else …`")),
            _ => report.help("`as string` and back again may be what is meant, or a function of `dfc functions`"),
        };
        None
    }
}
