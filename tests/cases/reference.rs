//! The reference in `docs/reference` is made from the declarations and the codes' pages, and is current: `BLESS=1` rewrites it.

use std::fmt::Write;

use dfc_compiler::operators::{self, Role};
use dfc_diagnostics::codes::CODES;
use dfc_typeck::functions::FunctionTable;

use crate::support::golden::Golden;
use crate::support::root;

const MADE: &str = "<!-- Made from the declarations by a test: BLESS=1 cargo test -p dfc reference -->\n";

#[test]
fn reference_is_current() {
    let mut golden = Golden::default();
    let folder = root().join("docs/reference");
    golden.check(&folder.join("functions.md"), &functions().expect("text"));
    golden.check(&folder.join("operators.md"), &operators().expect("text"));
    golden.check(&folder.join("codes.md"), &codes().expect("text"));
    golden.finish();
}

fn functions() -> Result<String, std::fmt::Error> {
    let table = FunctionTable::standard();
    let mut out = format!("{MADE}# Functions\n");
    let mut groups: Vec<&str> = table.iter().map(|f| f.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        writeln!(out, "\n## {group}")?;
        let declared = std::fs::read_to_string(root().join(format!("stdlib/functions/{group}.df"))).unwrap_or_default();
        let about: Vec<&str> = declared.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
        if !about.is_empty() {
            writeln!(out, "\n{}", about.join("\n"))?;
        }
        for function in table.iter().filter(|f| f.group == group) {
            writeln!(out, "\n### {}\n", function.name)?;
            for overload in &function.overloads {
                writeln!(out, "`{}`\n\n{}\n", overload.signature, overload.doc)?;
                if !overload.examples.is_empty() {
                    writeln!(out, "```df")?;
                    for (example, fails) in &overload.examples {
                        writeln!(out, "{example}{}", if *fails { "   // an error" } else { "" })?;
                    }
                    writeln!(out, "```\n")?;
                }
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
    }
    Ok(out)
}

fn operators() -> Result<String, std::fmt::Error> {
    let mut out = format!("{MADE}# Operators\n");
    for role in [Role::Source, Role::Shuffle, Role::Sink] {
        writeln!(out, "\n## {}s", role.word())?;
        for operator in operators::table().all().filter(|o| o.role == role) {
            writeln!(out, "\n### {}\n\n{}\n", operator.name, joined(operator.doc.as_deref()))?;
            writeln!(out, "| parameter | takes | default | |\n|---|---|---|---|")?;
            for param in &operator.params {
                let default = match &param.default {
                    Some(default) => {
                        operators::default_text(default).map_or(String::new(), |d| format!("`{}`", cell(&d)))
                    }
                    None if param.required() => "required".to_owned(),
                    None => String::new(),
                };
                let dots = if param.variadic { "..." } else { "" };
                let (kind, doc) = (cell(&param.kind_text()), cell(&joined(param.doc.as_deref())));
                writeln!(out, "| `{dots}{}` | `{kind}` | {default} | {doc} |", param.name)?;
            }
            if !operator.output.is_empty() {
                writeln!(out, "\nGives: `{}`", operator.output)?;
            }
        }
    }
    Ok(out)
}

fn codes() -> Result<String, std::fmt::Error> {
    let mut out = format!("{MADE}# Codes\n\nEach with its page: `dfc explain CODE`.\n");
    for code in CODES {
        writeln!(out, "\n#{}", code.page.trim().replace("\n## ", "\n### "))?;
    }
    Ok(out)
}

/// Documentation in one line.
fn joined(doc: Option<&str>) -> String {
    doc.unwrap_or("").lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
