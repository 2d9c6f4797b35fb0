//! Values made of others: lists, records, `f"…"`; and taking them apart: `x.name`, `x[i]`.

use dfc_grammar::ast::{self, Span};
use dfc_ir::{DataType, Expr, ExprKind, Field, Type, Value};

use super::names::list_of;
use crate::Checker;
use crate::checker::record_fields;
use crate::conversions::castable;
use crate::nearest::nearest;
use dfc_ir::text::written;

/// An entry of a record literal so far.
struct Entry {
    name: String,
    external: Option<String>,
    value: Expr,
    /// Where it was written by name; `None` for one that a spread brought.
    written: Option<Span>,
}

impl Checker<'_> {
    /// `x.name`
    pub(crate) fn field(&mut self, base: &ast::Expr, field: &ast::Ident, span: Span) -> Option<Expr> {
        if let Some(side) = self.side(base, field, span) {
            return side;
        }
        let checked = self.infer(base, None)?;
        if checked.ty.ty == Type::Json {
            let step = Expr::literal(Value::string(field.text.clone()), DataType::of(Type::String));
            return self.json_step(checked, step, span);
        }
        let Some(fields) = record_fields(&checked.ty.ty) else {
            let ty = checked.ty.clone();
            let places = self.places_of(&checked);
            let report = self
                .error("E0516", field.span, format!("{ty} has no fields"), format!("`.{}` of {ty}", field.text))
                .related_all(places);
            match ty.ty {
                Type::List(_) => report.help("take an item of the list first: `x[0]`"),
                Type::Date | Type::DateTime | Type::Timestamp | Type::Time => {
                    let name = super::compare::written_name(base);
                    report.help(format!("parts of a date are functions: `{}({name})`", field.text))
                }
                _ => report.help("only records and json have fields"),
            };
            return None;
        };
        if let Some(index) = fields.iter().position(|f| f.name == field.text) {
            let mut ty = fields[index].ty.clone();
            ty.nullable |= checked.ty.nullable;
            return self.node(ExprKind::Field(Box::new(checked), index), ty, span);
        }
        let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
        let near = nearest(&field.text, names.iter().copied()).map(written);
        let list = list_of("its fields are", &names);
        let report = self
            .error("E0419", field.span, format!("the record has no field `{}`", field.text), "unknown field")
            .note(list);
        if let Some(near) = near {
            report.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), field.span, near);
        }
        None
    }

    /// `x[i]`
    pub(crate) fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Option<Expr> {
        let checked = self.infer(base, None);
        let position = self.infer(index, Some(&DataType::of(Type::INT64)));
        let (checked, position) = (checked?, position?);
        match &checked.ty.ty {
            Type::Json if position.ty.ty == Type::String => self.json_step(checked, position, span),
            Type::Json => {
                let position = self.position(position, index.span)?;
                self.json_step(checked, position, span)
            }
            Type::List(item) => {
                let ty = item.with_nullable(true);
                let position = self.position(position, index.span)?;
                self.node(ExprKind::Call("list_get".into(), vec![checked, position]), ty, span)
            }
            _ => {
                let ty = checked.ty.clone();
                let places = self.places_of(&checked);
                let report = self
                    .error("E0517", span, format!("{ty} has no items"), format!("`[…]` of {ty}"))
                    .related_all(places);
                match ty.ty {
                    Type::String => report.help("a part of a text is `substring(x, start, count)`"),
                    Type::Record(_) => report.help("a field of a record is `x.name`"),
                    _ => report.help("only lists and json have items"),
                };
                None
            }
        }
    }

    fn position(&mut self, index: Expr, span: Span) -> Option<Expr> {
        if let Type::Int(int) = index.ty.ty
            && int != dfc_ir::types::IntType::U64
        {
            return self.convert_plain(index, &Type::INT64, span);
        }
        let ty = index.ty.clone();
        self.error("E0517", span, format!("an item is counted by a whole number, and this is {ty}"), format!("{ty}"))
            .help("the first item is `x[0]`, the last one `x[-1]`");
        None
    }

    /// A step into json. Constant steps are collected in one call.
    fn json_step(&mut self, base: Expr, step: Expr, span: Span) -> Option<Expr> {
        let ty = DataType::optional(Type::Json);
        if !matches!(step.kind, ExprKind::Literal(_)) {
            return self.node(ExprKind::Call("json_get".into(), vec![base, step]), ty, span);
        }
        let args = match base.kind {
            ExprKind::Call(name, mut args) if name == "json_path" => {
                args.push(step);
                args
            }
            _ => vec![base, step],
        };
        self.node(ExprKind::Call("json_path".into(), args), ty, span)
    }

    /// `[a, b]`
    pub(crate) fn list(&mut self, items: &[ast::Arg], span: Span, expected: Option<&DataType>) -> Option<Expr> {
        let hint = match expected.map(|to| &to.ty) {
            Some(Type::List(item)) => Some((**item).clone()),
            _ => None,
        };
        let mut values = Vec::new();
        for item in items {
            if let Some(label) = &item.label {
                self.error("E0425", label.span, "the items of a list have no names", "a name here")
                    .help(format!("a record has: `{{ {}: … }}`", label.text));
                return None;
            }
            values.push(self.infer(&item.value, hint.as_ref()).map(|value| (value, &item.value)));
        }
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        if values.is_empty() {
            let Some(item) = hint else {
                self.error("E0507", span, "the type of this empty list is not known", "a list of what?")
                    .help("say its type: `[] as list<string>`");
                return None;
            };
            let ty = DataType::of(Type::List(Box::new(item)));
            return self.node(ExprKind::List(Vec::new()), ty, span);
        }
        let (values, item) = self.unify(values, hint.as_ref(), "the items of the list", span)?;
        if item.ty == Type::Null {
            self.error("E0507", span, "the type of this list's items is not known", "only nulls")
                .help("say their type: `[null as int64?]`");
            return None;
        }
        let ty = DataType::of(Type::List(Box::new(item)));
        self.node(ExprKind::List(values), ty, span)
    }

    /// `{ a: 1, ...row }`
    pub(crate) fn record(
        &mut self,
        entries: &[ast::RecordEntry],
        span: Span,
        expected: Option<&DataType>,
    ) -> Option<Expr> {
        let hints = expected.and_then(|to| record_fields(&to.ty)).unwrap_or_default();
        let mut out: Vec<Entry> = Vec::new();
        let mut sound = true;
        for entry in entries {
            match entry {
                ast::RecordEntry::Field(name, e) => {
                    let hint = hints.iter().find(|f| f.name == name.text).map(|f| &f.ty);
                    let Some(value) = self.check(e, hint) else {
                        sound = false;
                        continue;
                    };
                    let entry = Entry { name: name.text.clone(), external: None, value, written: Some(name.span) };
                    sound &= self.enter(&mut out, entry, name.span);
                }
                ast::RecordEntry::Spread(e, at) => {
                    let Some(value) = self.infer(e, None) else {
                        sound = false;
                        continue;
                    };
                    sound &= self.spread(&mut out, value, *at);
                }
            }
        }
        if !sound {
            return None;
        }
        let mut fields = Vec::new();
        let mut values = Vec::new();
        for entry in out {
            fields.push(Field { name: entry.name, ty: entry.value.ty.clone(), external: entry.external });
            values.push(entry.value);
        }
        self.node(ExprKind::Record(values), DataType::of(Type::Record(fields)), span)
    }

    /// Adds a field, or replaces one that a spread brought.
    fn enter(&mut self, out: &mut Vec<Entry>, entry: Entry, span: Span) -> bool {
        let Some(before) = out.iter_mut().find(|before| before.name == entry.name) else {
            out.push(entry);
            return true;
        };
        if let (Some(first), Some(_)) = (before.written, entry.written) {
            let first = self.loc(first);
            self.error("E0425", span, format!("the field `{}` is given twice", entry.name), "again")
                .related(first, "here first")
                .help("leave one of them out");
            return false;
        }
        before.value = entry.value;
        before.written = entry.written;
        true
    }

    fn spread(&mut self, out: &mut Vec<Entry>, value: Expr, span: Span) -> bool {
        let Some(fields) = record_fields(&value.ty.ty).map(<[Field]>::to_vec) else {
            let ty = value.ty.clone();
            let places = self.places_of(&value);
            self.error("E0522", span, format!("`...` takes a record, and this is {ty}"), format!("{ty}"))
                .related_all(places)
                .help("give the field a name: `name: value`");
            return false;
        };
        for (index, field) in fields.into_iter().enumerate() {
            let mut ty = field.ty.clone();
            ty.nullable |= value.ty.nullable;
            if !self.spend(super::names::size(&value), span) {
                return false;
            }
            let Some(part) = self.node(ExprKind::Field(Box::new(value.clone()), index), ty, span) else {
                return false;
            };
            let entry = Entry { name: field.name, external: field.external, value: part, written: None };
            if !self.enter(out, entry, span) {
                return false;
            }
        }
        true
    }

    /// `f"{name}-{id}"`: the parts as text, joined; null if one of them is.
    pub(crate) fn format(&mut self, parts: &[ast::FormatPart], span: Span) -> Option<Expr> {
        let text = DataType::of(Type::String);
        let mut args = Vec::new();
        let mut sound = true;
        for part in parts {
            match part {
                ast::FormatPart::Text(part) => {
                    args.push(Expr {
                        site: self.site(span),
                        ..Expr::literal(Value::string(part.clone()), text.clone())
                    });
                }
                ast::FormatPart::Expr(e) => match self.check(e, Some(&text.with_nullable(true))) {
                    Some(value) => match self.as_text(value, e.span) {
                        Some(value) => args.push(value),
                        None => sound = false,
                    },
                    None => sound = false,
                },
            }
        }
        if !sound {
            return None;
        }
        if args.is_empty() {
            args.push(Expr::literal(Value::string(""), text.clone()));
        }
        let ty = text.with_nullable(args.iter().any(|arg| arg.ty.nullable));
        self.node(ExprKind::Call("concat".into(), args), ty, span)
    }

    fn as_text(&mut self, value: Expr, span: Span) -> Option<Expr> {
        if castable(&value.ty.ty, &Type::String) {
            return self.convert_plain(value, &Type::String, span);
        }
        let ty = value.ty.clone();
        self.error("E0508", span, format!("{ty} has no text form"), format!("{ty}"))
            .help("a secret can only be given to a connector");
        None
    }
}
