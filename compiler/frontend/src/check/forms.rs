//! Whether a constant has the form that its parameter needs: what no run could begin with is said now, not at the start (D9, A5).
//!
//! It knows parameters by their names, and not what a connector does with them.

use std::path::Path;

use dfc_grammar::ast::Expr;
use dfc_ir::{Type, Value};
use dfc_stdlib::DateFormat;
use dfc_typeck::LocalDiagnostic;

use super::ItemContext;
use crate::bind::Bound;
use crate::operators::{Param, Role};

/// What is wrong with a value: the end of a sentence that begins with the parameter, the label, and what to write instead.
struct Wrong(String, &'static str, String);

impl Wrong {
    fn new(why: impl Into<String>, label: &'static str, help: impl Into<String>) -> Option<Self> {
        Some(Wrong(why.into(), label, help.into()))
    }
}

impl ItemContext<'_> {
    /// Looks at one constant of a source or a sink.
    pub(super) fn well_formed(&mut self, bound: &Bound<'_>, param: &Param, value: &Value<'_>, e: &Expr) -> Option<()> {
        let wrong = match value {
            Value::Str(text) => text_form(bound, &param.name, text),
            Value::Duration(micros) if *micros <= 0 => {
                let given = dfc_eval::format_value(value, &Type::Duration);
                Wrong::new(
                    format!("takes a length of time above 0, not {given}"),
                    "out of range",
                    "write one such as `10s`",
                )
            }
            _ => None,
        };
        let Some(Wrong(why, label, help)) = wrong else { return Some(()) };
        let message = format!("`{}` of `{}` {why}", param.name, bound.operator.name);
        self.error(LocalDiagnostic::error("E0606", self.loc(e.span), message, label).help(help));
        None
    }
}

fn text_form(bound: &Bound<'_>, name: &str, text: &str) -> Option<Wrong> {
    match name {
        "path" => path_form(bound, text),
        "marker" | "suffix" if text.is_empty() || text.contains(['/', '\0']) => Wrong::new(
            "is no end of a file's name",
            "no such end",
            if name == "marker" {
                "write one such as `.done`: it stands behind the file's name"
            } else {
                "write one such as `.part`"
            },
        ),
        "delimiter" if text.contains(['\n', '\r']) => Wrong::new(
            "can't hold a line break: that ends a row",
            "a line break",
            "write what stands between two fields: `\",\"`, `\"\\t\"`",
        ),
        "quote" | "escape" if !text.bytes().all(|byte| byte.is_ascii_punctuation() && !b"+-.".contains(&byte)) => {
            Wrong::new(
                format!("can't be `{}`", text.escape_debug()),
                "this character",
                "write one ASCII punctuation character other than `+`, `-` and `.`",
            )
        }
        "table" | "ledger_schema" | "query" if text.contains('\0') => {
            Wrong::new("can't hold a NUL character", "a NUL character", "take the `\\0` out of it")
        }
        "table" | "ledger_schema" if text.is_empty() => Wrong::new("is empty", "no name", "write its name"),
        "query" if text.trim_matches([' ', '\t', '\r', '\n', ';']).is_empty() => {
            Wrong::new("is empty", "no query", "write one: `\"SELECT id, name FROM users\"`")
        }
        format if format.ends_with("_format") => {
            let help = "a date is written as `%Y-%m-%d`, a time as `%H:%M:%S`";
            match DateFormat::new(text) {
                Ok(format) => match format.missing(name) {
                    None => None,
                    Some(missing) => Wrong::new(format!("doesn't say {missing}"), "this format", help),
                },
                Err(why) => Wrong::new(format!("can't be used: {why}"), "this format", help),
            }
        }
        _ => None,
    }
}

/// A path that no file has, wherever the job runs.
fn path_form(bound: &Bound<'_>, path: &str) -> Option<Wrong> {
    let reads = bound.operator.role == Role::Source;
    if path.contains('\0') {
        return Wrong::new("can't hold a NUL character", "a NUL character", "take the `\\0` out of it");
    }
    if path.is_empty() {
        return Wrong::new("is empty", "no file", "name a file: `\"data/orders.csv\"`");
    }
    if let Some((scheme, rest)) = path.split_once("://")
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    {
        let help = match scheme {
            "file" => format!("write the path alone: `\"{rest}\"`"),
            _ => "bring the file here, and write its path".to_owned(),
        };
        return Wrong::new(format!("names a file, and `{scheme}://` begins an address"), "an address", help);
    }
    let dots = matches!(path.rsplit('/').next(), Some("." | ".."));
    let folder = path.ends_with('/') && (reads || !bound.operator.writes_folders());
    if !dots && !folder {
        return None;
    }
    let inside = Path::new(path.trim_end_matches('/')).join("*");
    let inside = if path == "/" { "/*".to_owned() } else { inside.display().to_string() };
    let several = reads && bound.operator.param("table").is_none();
    let help = match (several, bound.operator.writes_folders()) {
        (true, _) => format!("for all files in it write `\"{inside}\"`"),
        (false, true) => "name a file in it, or end the path with `/` for a folder of parts".to_owned(),
        (false, false) => "name a file in it".to_owned(),
    };
    Wrong::new("is a folder, and a file is meant here", "a folder", help)
}
