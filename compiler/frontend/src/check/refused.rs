//! What a connector would refuse at its start though each argument is right by itself (D9): arguments that don't go together in ways
//! that the clauses of the declarations can't say, and fields that the target can't hold.
//!
//! It knows parameters by their names, and no connector.

use dfc_ir::plan::OptionValue;
use dfc_ir::{Options, Schema, Type, Value};
use dfc_typeck::{Column, LocalDiagnostic};

use super::ItemContext;
use crate::bind::Bound;
use crate::guarantees::is_compressed;

impl ItemContext<'_> {
    /// Arguments of a source or a sink beside one another.
    pub(super) fn go_beside(&mut self, bound: &Bound<'_>, options: &Options) {
        self.followed(bound, options);
        self.level(bound, options);
        let text = |name: &str| options.get(name).and_then(OptionValue::text).filter(|text| !text.is_empty());
        let (Some(delimiter), Some(quote)) = (text("delimiter"), text("quote")) else { return };
        // The default of `escape` stands for the quote, whatever that is.
        let escape = text("escape").filter(|escape| *escape != "\"");
        for (name, part) in [("quote", Some(quote)), ("escape", escape)] {
            let Some(arg) = bound.get("delimiter").or_else(|| bound.get(name)) else { continue };
            if part.is_some_and(|part| delimiter.contains(part) && (name, part) != ("quote", delimiter)) {
                let message = format!("`delimiter` can't hold the `{name}`");
                let problem = LocalDiagnostic::error("E0608", self.loc(arg.span), message, "it would end no field");
                self.error(problem.help("give one of both another text"));
                return;
            }
        }
    }

    /// Lines that are read as they are added have to be found again in the file as it is stored.
    fn followed(&mut self, bound: &Bound<'_>, options: &Options) {
        let name = |name: &str| options.get(name).and_then(OptionValue::text);
        let follows = matches!(options.get("follow"), Some(OptionValue::Value(Value::Bool(true))));
        if !follows || name("ready") != Some("any") {
            return;
        }
        let (cause, why) = match name("encoding") {
            Some(encoding) if encoding != "utf8" => ("encoding", format!("a file in {encoding}")),
            _ if is_compressed(options) => match name("compression") {
                Some("auto") => ("path", "a compressed file".to_owned()),
                _ => ("compression", "a compressed file".to_owned()),
            },
            _ => return,
        };
        let (Some(at), Some(other)) = (bound.get("follow"), bound.get(cause)) else { return };
        let message = format!("`follow` reads lines as they are added, and {why} is read when it is whole");
        let problem = LocalDiagnostic::error("E0608", self.loc(at.span), message, "can't be followed line by line")
            .related(self.loc(other.span), "because of this")
            .help("say when a file is whole: `ready: age` or `ready: marker`");
        self.error(problem);
    }

    /// The levels of gzip are fewer than those of zstd.
    fn level(&mut self, bound: &Bound<'_>, options: &Options) {
        let (Some(OptionValue::Value(Value::Int(level))), Some("gzip")) =
            (options.get("level"), options.get("compression").and_then(OptionValue::text))
        else {
            return;
        };
        let Some(arg) = bound.get("level").filter(|_| *level > 9) else { return };
        let message = format!("`level` takes 1 to 9 with `compression: gzip`, not {level}");
        let mut problem = LocalDiagnostic::error("E0606", self.loc(arg.span), message, "out of range");
        if let Some(compression) = bound.get("compression") {
            problem = problem.related(self.loc(compression.span), "given here");
        }
        self.error(problem.help("`zstd` has levels up to 22"));
    }

    /// The fields that a sink names and those that it writes, whose names outside are those of `schema`. `false`: one was refused.
    pub(super) fn target_holds(
        &mut self,
        bound: &Bound<'_>,
        options: &Options,
        columns: &[Column],
        schema: &Schema,
    ) -> bool {
        let before = self.out.len();
        self.partitions(bound, options, columns, schema);
        self.delete_is_no_key(bound, options);
        self.outside_names(bound, options, schema);
        self.out.len() == before
    }

    fn partitions(&mut self, bound: &Bound<'_>, options: &Options, columns: &[Column], schema: &Schema) {
        let (Some(OptionValue::Names(by)), Some(arg)) = (options.get("by"), bound.get("by")) else { return };
        for name in by {
            let Some(column) = columns.iter().find(|column| column.name == *name) else { continue };
            let Some(field) = schema.fields.iter().find(|field| field.name == *name) else {
                continue;
            };
            if !matches!(field.ty.ty, Type::List(_) | Type::Record(_) | Type::Json | Type::Bytes) {
                continue;
            }
            let message = format!("`by` takes fields whose values can name a folder, and `{name}` is {}", field.ty.ty);
            let mut problem = LocalDiagnostic::error("E0604", self.loc(arg.span), message, field.ty.to_string())
                .help("a folder's name is a text, a number, a date or a bool");
            if let Some(step) = column.path.first() {
                problem = problem.related(step.loc.clone(), step.words.clone());
            }
            self.error(problem);
        }
        if !by.is_empty() && schema.fields.iter().all(|field| by.contains(&field.name)) {
            let message = "`by` names every field: nothing stays to be written into the parts";
            let problem = LocalDiagnostic::error("E0608", self.loc(arg.span), message, "all of them");
            self.error(problem.help("leave at least one field out of it"));
        }
    }

    fn delete_is_no_key(&mut self, bound: &Bound<'_>, options: &Options) {
        let names = |name: &str| match options.get(name) {
            Some(OptionValue::Names(names)) => names.as_slice(),
            _ => &[],
        };
        let Some(mark) = names("delete").iter().find(|mark| names("key").contains(mark)) else { return };
        let (Some(delete), Some(key)) = (bound.get("delete"), bound.get("key")) else { return };
        let message = format!("`{mark}` can't be part of the key and say which rows are removed");
        let problem = LocalDiagnostic::error("E0608", self.loc(delete.span), message, "removes")
            .related(self.loc(key.span), "part of the key")
            .help("it is no column of the table: take it out of `key`");
        self.error(problem);
    }

    /// The columns' names in the target.
    fn outside_names(&mut self, bound: &Bound<'_>, options: &Options, schema: &Schema) {
        let at = bound.get("schema").map_or(bound.call.name.span, |arg| arg.span);
        let (by, mark) = (options.get("by"), options.get("delete"));
        let elsewhere = |name: &String| {
            [by, mark].into_iter().flatten().any(|of| matches!(of, OptionValue::Names(names) if names.contains(name)))
        };
        let database = bound.operator.param("table").is_some();
        for field in &schema.fields {
            let name = field.external_name();
            if database && (name.is_empty() || name.contains('\0')) {
                let what = if name.is_empty() { "is empty" } else { "holds a NUL character" };
                let message = format!("the field `{}` can't be a column: its name outside {what}", field.name);
                let problem = LocalDiagnostic::error("E0702", self.loc(at), message, "written here");
                self.error(problem.help("give it one in the record: `name: type = \"its name outside\"`"));
                return;
            }
        }
        let header = matches!(options.get("header"), Some(OptionValue::Value(Value::Bool(true))));
        for field in schema.fields.iter().filter(|field| header && !elsewhere(&field.name)) {
            let name = field.external_name();
            let Some((why, cause)) = unwritable(options, name) else { continue };
            let message = format!("the column name `{name}` can't stand in the header: {why}");
            let mut problem = LocalDiagnostic::error("E0702", self.loc(bound.call.name.span), message, "written here");
            if let Some(arg) = bound.get(cause) {
                problem = problem.related(self.loc(arg.span), "because of this");
            }
            self.error(problem.help("give the field another name with `rename`, or write `header: false`"));
            return;
        }
    }
}

/// Why a name can't stand in the header of a delimited file, and which argument makes it so.
fn unwritable(options: &Options, name: &str) -> Option<(String, &'static str)> {
    let text = |of: &str| options.get(of).and_then(OptionValue::text);
    let missing = match text("encoding")? {
        "latin1" => name.chars().find(|c| u32::from(*c) > 0xFF),
        "gbk" => name.chars().find(|c| encoding_rs::GBK.encode(c.encode_utf8(&mut [0; 4])).2),
        _ => None,
    };
    if let Some(c) = missing {
        return Some((format!("the file's encoding doesn't have the character `{c}`"), "encoding"));
    }
    let delimiter = text("delimiter").and_then(|delimiter| delimiter.chars().next());
    let bare = text("quote") == Some("")
        && (name.contains(['\n', '\r']) || delimiter.is_some_and(|c| name.contains(c)) || text("nulls") == Some(name));
    bare.then(|| {
        ("it holds the delimiter or a line break, or is the null text, and nothing is quoted".to_owned(), "quote")
    })
}
