//! The lock file: the fields of each source that declares none, as text for people and for version control.
//!
//! It is written in the language itself, one source with its `schema:` after another, sorted; the grammar reads it back. It
//! comes from outside like any file: nothing in it is believed before it is checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dfc_grammar::ast::{ExprKind, ItemKind, Source, Span, TypeExpr, TypeKind};
use dfc_ir::plan::OptionValue;
use dfc_ir::{Field, Schema, Value};
use dfc_typeck::{Checker, FunctionTable, Globals, ItemKey, Namespace, NoSites, Scope, written};

use super::record;
use crate::globals::record_fields;

const HEAD: &str = "\
//! The fields of the sources that declare none, as they were found outside. Made by dfc, for version control.
//! `dfc check --connect` compares them with what is there now, and renews them.
";

/// What version control writes where it could not merge.
const MARKS: [&str; 3] = ["<<<<<<< ", "=======", ">>>>>>> "];

/// The fields of sources, by what they read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// By the source's key.
    pub entries: BTreeMap<String, Entry>,
}

/// The fields of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What the source is called in the pipeline; for people.
    pub name: String,
    /// Its fields.
    pub schema: Schema,
}

impl Lock {
    /// Reads a lock file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        // What a merge leaves is no mistake in the language: it has words of its own.
        let merge = text.lines().position(|line| MARKS.iter().any(|mark| line.starts_with(mark)));
        if let Some(line) = merge {
            return Err(format!("line {}: a merge has left both sides here", line + 1));
        }
        let parse = dfc_grammar::parse(text);
        let line = |at: u32| 1 + text.as_bytes().iter().take(at as usize).filter(|b| **b == b'\n').count();
        if let Some(error) = parse.errors.first() {
            return Err(format!("line {}: {}", line(error.span.start), error.message));
        }
        let mut lock = Lock::default();
        for item in &parse.file.items {
            let at = |span: Span, why: &str| format!("line {}: {why}", line(item.start + span.start));
            let ItemKind::Source(source) = item.kind.as_ref() else {
                return Err(at(Span::default(), "it holds sources with their `schema:` and nothing else"));
            };
            let own = text.get(item.start as usize..).unwrap_or_default();
            let (key, entry) = entry(source, own).map_err(|(span, why)| at(span, &why))?;
            if lock.entries.insert(key.clone(), entry).is_some() {
                return Err(at(Span::default(), &format!("the fields of `{key}` are there twice")));
            }
        }
        Ok(lock)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut out = HEAD.to_owned();
        for (key, Entry { name, schema }) in &self.entries {
            let call = key.strip_suffix(')').unwrap_or(key);
            let comma = if call.ends_with('(') { "" } else { ", " };
            // Writing to a string does not fail.
            let _ =
                writeln!(out, "\nsource {} = {call}{comma}schema: {})", written(name), record::record(None, schema));
        }
        out
    }
}

/// A source's key: its connector and the arguments that decide its fields, each as it is written.
pub fn key<'n>(connector: &str, arguments: impl IntoIterator<Item = (&'n str, String)>) -> String {
    let arguments = arguments.into_iter().map(|(name, value)| format!("{}: {value}", written(name)));
    format!("{}({})", written(connector), arguments.collect::<Vec<_>>().join(", "))
}

/// A constant as it is written; `None` for kinds that no deciding parameter has.
pub fn constant(value: &OptionValue) -> Option<String> {
    match value {
        OptionValue::Value(Value::Str(text)) => Some(record::text(text)),
        OptionValue::Value(Value::Int(n)) => Some(n.to_string()),
        OptionValue::Value(Value::Bool(flag)) => Some(flag.to_string()),
        OptionValue::Name(name) => Some(written(name)),
        _ => None,
    }
}

type Wrong = (Span, String);

/// `text` begins with the source.
fn entry(source: &Source, text: &str) -> Result<(String, Entry), Wrong> {
    let ExprKind::Call(call) = &source.chain.head.kind else {
        return Err((source.chain.span, "a connector is expected, as in `csv(path: \"a.csv\", schema: …)`".into()));
    };
    if let Some(link) = source.chain.links.first() {
        return Err((link.span, "nothing may follow a connector here".into()));
    }
    let (mut schema, mut arguments) = (None, Vec::new());
    for arg in &call.args {
        let Some(label) = &arg.label else { return Err((arg.span, "an argument needs its name here".into())) };
        match &arg.value.kind {
            ExprKind::Type(TypeExpr { kind: TypeKind::Record(decls), nullable: false, .. })
                if label.text == "schema" =>
            {
                schema = Some(fields(decls).map_err(|(at, why)| (at.unwrap_or(arg.value.span), why))?);
            }
            _ if label.text == "schema" => {}
            _ => {
                let Span { start, end } = arg.value.span;
                let value = text.get(start as usize..end as usize).unwrap_or_default();
                arguments.push((label.text.as_str(), value.to_owned()));
            }
        }
    }
    match schema {
        Some(fields) if !fields.is_empty() => {
            let entry = Entry { name: source.name.text.clone(), schema: Schema { fields } };
            Ok((key(&call.name.text, arguments), entry))
        }
        _ => Err((call.span, "`schema: record { … }` with the fields is expected".into())),
    }
}

fn fields(decls: &[dfc_grammar::ast::FieldDecl]) -> Result<Vec<Field>, (Option<Span>, String)> {
    let item = ItemKey { file: 0, namespace: Namespace::Stream, name: String::new(), nth: 0 };
    let (globals, mut sites) = (Globals::default(), NoSites);
    let mut checker = Checker::new(FunctionTable::standard(), &globals, item, Scope::None, &mut sites);
    record_fields(&mut checker, decls).ok_or_else(|| match checker.diagnostics.first() {
        Some(problem) => (Some(problem.loc.span), problem.message.clone()),
        None => (None, "its fields can't be used".into()),
    })
}

#[cfg(test)]
mod tests {
    use dfc_ir::{DataType, Type};

    use super::*;

    fn lock() -> Lock {
        let inner = Type::Record(vec![
            Field::new("a b", DataType::optional(Type::Decimal(18, 2))),
            Field { external: Some("\"q\"\\".into()), ..Field::new("match", DataType::of(Type::Json)) },
        ]);
        let schema = Schema {
            fields: vec![
                Field::new("id", DataType::of(Type::INT64)),
                Field::new("Created At", DataType::optional(Type::DateTime)),
                Field::new("items", DataType::of(Type::List(Box::new(DataType::of(inner))))),
                Field { external: Some("a`b\n\u{7}".into()), ..Field::new("column_4", DataType::of(Type::String)) },
            ],
        };
        let path = constant(&OptionValue::Value(Value::string("data/*.csv"))).unwrap();
        let delimiter = constant(&OptionValue::Value(Value::string("\t\u{7}\""))).unwrap();
        let flag = constant(&OptionValue::Value(Value::Bool(false))).unwrap();
        let one = key("csv", [("path", path), ("delimiter", delimiter), ("header", flag)]);
        let name = constant(&OptionValue::Name("first".into())).unwrap();
        let two = key("parquet", [("path", "f\"data/{day}.parquet\"".into()), ("match", name)]);
        let entry = |name: &str| Entry { name: name.into(), schema: schema.clone() };
        Lock { entries: [(one, entry("orders")), (two, entry("match")), (key("x", []), entry("金额"))].into() }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let lock = lock();
        let text = lock.text();
        assert_eq!(Lock::parse(&text), Ok(lock), "{text}");
        assert_eq!(Lock::parse(&text.replace('\n', "\r\n")).map(|lock| lock.entries.len()), Ok(3));
        assert_eq!(Lock::parse(""), Ok(Lock::default()));
    }

    #[test]
    fn what_is_no_lock_file_is_refused_with_its_line() {
        for (text, why) in [
            ("\n<<<<<<< HEAD\n", "line 2: a merge"),
            ("source a = csv(path: \"a\", schema: record { x: int64 }", "line 1: "),
            ("\n\njob a {}", "line 3: it holds sources"),
            ("source a = b", "line 1: a connector is expected"),
            ("source a = csv(path: \"a\")", "line 1: `schema: record { … }` with the fields"),
            ("source a = csv(path: \"a\", schema: record {})", "line 1: `schema: record { … }` with the fields"),
            ("source a = csv(path: \"a\", schema: Order)", "line 1: `schema: record { … }` with the fields"),
            ("source a = csv(\"a\", schema: record { x: int64 })", "line 1: an argument needs its name"),
            ("source a = csv(path: \"a\", schema: record { x: int65 })", "line 1: there is no type `int65`"),
            ("source a = csv(path: \"a\", schema: record { x: secret })", "line 1: a field can't be a secret"),
            (
                "source a = csv(path: \"a\", schema: record {\n x: int64, x: int64 })",
                "line 2: the field `x` is declared twice",
            ),
            (
                "source a = x(schema: record { x: int64 })\nsource b = x(schema: record { x: int64 })",
                "line 2: the fields of `x()` are there twice",
            ),
            ("source a = csv(schema: record { x: int64 }) |> filter(true)", "line 1: nothing may follow"),
        ] {
            let found = Lock::parse(text).expect_err(text);
            assert!(found.starts_with(why), "{text:?}: {found}");
        }
    }

    #[test]
    fn damaged_lock_files_never_panic() {
        let text = lock().text();
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let _ = Lock::parse(&text[..at]);
            let mut other = text.clone();
            other.insert(at, '}');
            let _ = Lock::parse(&other);
        }
    }
}
