//! What the tests share: a row of fields of many types, globals, and text in, text out.

use std::sync::Arc;

use dfc_diagnostics::Severity;
use dfc_grammar::ast::{Arg, Expr as Ast, ItemKind, Span};
use dfc_ir::{DataType, Expr, Type, Value};
use dfc_typeck::{
    Aggregation, Checker, Column, FunctionTable, Global, GlobalKind, Globals, ItemKey, Loc, LocalDiagnostic, Namespace,
    NoSites, PathStep, RecordType, Scope, Target, UserFn,
};

/// The fields that the tests' expressions see.
pub const FIELDS: &str = "
record Row {
    id: int64, small: int8, n32: int32, u8: uint8, u64: uint64,
    price: decimal(15, 2), discount: decimal(4, 2)?, wide: decimal(38, 10),
    ratio: float64, ratio32: float32,
    name: string, nick: string?, flag: bool, maybe: bool?,
    day: date, at: datetime, moment: timestamp, clock: time, span: duration,
    raw: bytes, doc: json, tags: list<string>, address: record { city: string, zip: int32? },
    due: date?, born: date
}";

pub fn item(namespace: Namespace, name: &str) -> ItemKey {
    ItemKey { file: 0, namespace, name: name.into(), nth: 0 }
}

fn loc(namespace: Namespace, name: &str) -> Loc {
    Loc { item: item(namespace, name), span: Span::new(0, 1) }
}

/// Some place in a function.
pub fn loc_of(function: &str) -> Loc {
    loc(Namespace::Fn, function)
}

/// The arguments of the only link of `stream s = x |> f(…)`.
pub fn parse(text: &str) -> Vec<Arg> {
    let source = format!("stream s = x |> f({text})\n");
    let parse = dfc_grammar::parse(&source);
    assert!(parse.errors.is_empty(), "{text}: {:?}", parse.errors);
    match parse.file.items.first().map(|item| item.kind.as_ref()) {
        Some(ItemKind::Stream(stream)) => stream.chain.links[0].args.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

pub fn parse_one(text: &str) -> Ast {
    parse(text).remove(0).value
}

/// Columns from a record's text.
pub fn columns(record: &str) -> Vec<Column> {
    let parse = dfc_grammar::parse(record);
    assert!(parse.errors.is_empty(), "{:?}", parse.errors);
    let Some(ItemKind::Record(record)) = parse.file.items.first().map(|item| item.kind.as_ref()) else {
        panic!("no record")
    };
    let globals = Globals::default();
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::None, &mut sites);
    let fields = checker.resolve_fields(&record.fields).expect("sound types");
    let step = |name: &str| PathStep::new(loc(Namespace::Record, name), "declared here");
    fields.into_iter().map(|f| Column::new(f.name.clone(), f.ty, vec![step(&f.name)])).collect()
}

pub fn checker<'a>(globals: &'a Globals, scope: Scope<'a>, sites: &'a mut NoSites) -> Checker<'a> {
    Checker::new(FunctionTable::standard(), globals, item(Namespace::Stream, "s"), scope, sites)
}

/// Parameters, constants, functions.
pub fn globals(fns: &str) -> Globals {
    let mut globals = Globals::default();
    let mut value = |name: &str, kind, ty, value| {
        globals.values.insert(name.into(), Global { kind, ty, value, secret: None, loc: loc(Namespace::Value, name) });
    };
    value("since", GlobalKind::Param, DataType::of(Type::Date), Some(Value::Date(9131)));
    value("limit", GlobalKind::Const, DataType::of(Type::INT64), Some(Value::Int(10)));
    value("unset", GlobalKind::Param, DataType::of(Type::INT64), None);
    value("day", GlobalKind::Param, DataType::of(Type::Date), Some(Value::Date(0)));
    let codes = vec![Value::Int(3), Value::Int(1)];
    let list = Type::List(Box::new(DataType::of(Type::INT64)));
    value("codes", GlobalKind::Const, DataType::of(list), Some(Value::List(codes)));
    globals.streams.insert("orders".into());
    globals.broken.insert("shattered".into());
    let point = vec![dfc_ir::Field::new("x", DataType::of(Type::INT64))];
    globals.records.insert("Point".into(), RecordType { fields: point, loc: loc(Namespace::Record, "Point") });
    let parse = dfc_grammar::parse(fns);
    assert!(parse.errors.is_empty(), "{fns}: {:?}", parse.errors);
    for parsed in parse.file.items {
        let ItemKind::Fn(decl) = Arc::unwrap_or_clone(parsed.kind) else { panic!("only fns") };
        let name = decl.name.text.clone();
        let item = item(Namespace::Fn, &name);
        globals.functions.insert(name, Arc::new(UserFn { item, decl }));
    }
    globals
}

/// What checking gave.
pub struct Checked {
    pub expr: Option<Expr>,
    pub diagnostics: Vec<LocalDiagnostic>,
}

pub fn check_with(text: &str, expected: Option<&DataType>, fns: &str) -> Checked {
    let columns = columns(FIELDS);
    let globals = globals(fns);
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    let expr = checker.check(&parse_one(text), expected);
    let checked = Checked { expr, diagnostics: checker.diagnostics };
    if fns.is_empty() {
        checked.consistent(text);
    }
    checked
}

pub fn show(e: &Expr) -> String {
    let columns = columns(FIELDS);
    let text = dfc_ir::text::expr(e, &|i| columns.get(i).map_or_else(|| format!("#{i}"), |c| c.name.clone()));
    format!("{text}: {}", e.ty)
}

impl Checked {
    /// No result exactly where there is an error.
    pub fn consistent(&self, text: &str) {
        let errors = self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        assert_eq!(self.expr.is_none(), errors > 0, "{text}: {:?} {:?}", self.expr, self.diagnostics);
    }
}

/// The IR and type of a sound expression without warnings.
pub fn typed(text: &str) -> String {
    let checked = check_with(text, None, "");
    assert!(checked.diagnostics.is_empty(), "{text}: {:?}", checked.diagnostics);
    show(&checked.expr.expect("no error"))
}

/// Only the type.
pub fn type_of(text: &str) -> String {
    check_with(text, None, "").expr.map_or_else(|| panic!("{text}: {:?}", errors(text)), |e| e.ty.to_string())
}

/// The IR, warnings allowed.
pub fn ir(text: &str) -> String {
    show(&check_with(text, None, "").expr.unwrap_or_else(|| panic!("{text}: {:?}", errors(text))))
}

pub fn line(d: &LocalDiagnostic) -> String {
    let help = d.help.as_ref().map_or(String::new(), |help| format!(" | {help}"));
    format!("{}: {}{help}", d.code, d.message)
}

/// Code, message and help of everything reported.
pub fn errors(text: &str) -> Vec<String> {
    check_with(text, None, "").diagnostics.iter().map(line).collect()
}

/// The only thing reported, which must have this code.
pub fn refused(text: &str, code: &str) -> String {
    let all = errors(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    assert!(all[0].starts_with(code), "{text}: {all:?}");
    all[0].clone()
}

/// The only thing reported about a filter's condition.
pub fn filter(text: &str) -> (Option<dfc_typeck::Predicate>, Vec<String>) {
    let columns = columns(FIELDS);
    let globals = globals("");
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    let predicate = checker.check_predicate(&parse_one(text));
    (predicate, checker.diagnostics.iter().map(line).collect())
}

/// An expression given to a place.
pub fn assigned(text: &str, to: DataType, target: &Target) -> (Option<String>, Vec<String>) {
    let columns = columns(FIELDS);
    let globals = globals("");
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    let expr = checker.check_to(&parse_one(text), &to, target);
    if let Some(expr) = &expr {
        assert_eq!(expr.ty, to, "{text}");
    }
    (expr.map(|e| show(&e)), checker.diagnostics.iter().map(line).collect())
}

/// Aggregate expressions: `by` names the keys, each text one output.
pub fn aggregated(by: &[&str], texts: &[&str]) -> (Vec<Option<String>>, Vec<String>, Vec<String>) {
    let columns = columns(FIELDS);
    let globals = globals("");
    let mut sites = NoSites;
    let mut checker = checker(&globals, Scope::Row(&columns), &mut sites);
    let keys = by
        .iter()
        .map(|name| {
            let ty = columns.iter().find(|c| c.name == *name).expect("a field").ty.clone();
            dfc_typeck::AggregateKey { name: (*name).into(), ty }
        })
        .collect();
    let mut aggregation = Aggregation::by(keys);
    let exprs = texts
        .iter()
        .map(|text| {
            let e = checker.check_aggregate(&parse_one(text), None, &mut aggregation)?;
            Some(format!("{}: {}", dfc_ir::text::expr(&e, &|i| format!("#{i}")), e.ty))
        })
        .collect();
    let lines = checker.diagnostics.iter().map(line).collect();
    let name = |i: usize| columns[i].name.clone();
    let aggregates = aggregation
        .aggregates
        .iter()
        .map(|a| {
            let args: Vec<_> = a.args.iter().map(|e| dfc_ir::text::expr(e, &name)).collect();
            let filter =
                a.filter.as_ref().map_or(String::new(), |e| format!(" where {}", dfc_ir::text::expr(e, &name)));
            format!("{}({}){filter}: {}", a.function.name(), args.join(", "), a.ty)
        })
        .collect();
    (exprs, aggregates, lines)
}
