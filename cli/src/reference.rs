//! `dfc functions` and `dfc operators`: the standard library, from its declarations.

use std::io::Write;

use anyhow::Result;
use dfc_compiler::operators::{self, Operator, Role};
use dfc_typeck::functions::{Function, FunctionTable};

use crate::Outcome;
use crate::args::NameArgs;

/// `dfc functions`
pub fn functions(args: &NameArgs) -> Result<Outcome> {
    let table = FunctionTable::standard();
    let mut out = std::io::stdout().lock();
    match &args.name {
        None => {
            let mut groups: Vec<&str> = table.iter().map(|f| f.group.as_str()).collect();
            groups.sort_unstable();
            groups.dedup();
            for group in groups {
                writeln!(out, "{group}")?;
                for function in table.iter().filter(|f| f.group == group) {
                    writeln!(out, "    {:24} {}", function.name, first_sentence(&function.overloads[0].doc))?;
                }
            }
            Ok(Outcome::Fine)
        }
        Some(name) => match table.get(name) {
            Some(function) => {
                describe_function(&mut out, function)?;
                Ok(Outcome::Fine)
            }
            None => Ok(missing("function", name, table.nearest(name), "dfc functions")),
        },
    }
}

fn describe_function(out: &mut impl Write, function: &Function) -> Result<()> {
    for overload in &function.overloads {
        writeln!(out, "{}{}", if function.aggregate { "aggregate " } else { "" }, overload.signature)?;
        for line in overload.doc.lines() {
            writeln!(out, "    {line}")?;
        }
        for (example, fails) in &overload.examples {
            writeln!(out, "    example: {example}{}", if *fails { "   is an error" } else { "" })?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// `dfc operators`
pub fn operators(args: &NameArgs) -> Result<Outcome> {
    let table = operators::table();
    let mut out = std::io::stdout().lock();
    let Some(name) = &args.name else {
        for role in [Role::Source, Role::Shuffle, Role::Sink] {
            writeln!(out, "{}s", role.word())?;
            for operator in table.all().filter(|o| o.role == role) {
                writeln!(out, "    {:12} {}", operator.name, first_sentence(operator.doc.as_deref().unwrap_or("")))?;
            }
        }
        return Ok(Outcome::Fine);
    };
    let found: Vec<&Operator> = table.roles(name).into_iter().filter_map(|role| table.get(name, role)).collect();
    if found.is_empty() {
        let near = dfc_typeck::nearest::nearest(name, table.all().map(|o| o.name.as_str()));
        return Ok(missing("operator", name, near, "dfc operators"));
    }
    for operator in found {
        describe_operator(&mut out, operator)?;
    }
    Ok(Outcome::Fine)
}

fn describe_operator(out: &mut impl Write, operator: &Operator) -> Result<()> {
    writeln!(out, "{} {}", operator.role.word(), operator.name)?;
    for line in operator.doc.as_deref().unwrap_or("").lines() {
        writeln!(out, "    {}", line.trim())?;
    }
    for param in &operator.params {
        let dots = if param.variadic { "..." } else { "" };
        let default = match (&param.default, param.required()) {
            (Some(default), _) => operators::default_text(default).map_or(String::new(), |d| format!(" = {d}")),
            (None, true) => "  (required)".to_owned(),
            (None, false) => String::new(),
        };
        writeln!(out, "  {dots}{}: {}{default}", param.name, param.kind_text())?;
        for line in param.doc.as_deref().unwrap_or("").lines() {
            writeln!(out, "      {}", line.trim())?;
        }
    }
    if !operator.output.is_empty() {
        writeln!(out, "  gives: {}", operator.output)?;
    }
    for clause in &operator.clauses {
        let condition = clause.condition.as_ref().map(|condition| {
            let word = if condition.negated { "unless" } else { "when" };
            let value = condition.value.as_ref().map_or(String::new(), |value| format!(" {value}"));
            format!(" {word} {}{value}", condition.param)
        });
        let words: Vec<&str> = std::iter::once(&clause.name).chain(&clause.words).map(String::as_str).collect();
        writeln!(out, "  {}{}", words.join(" "), condition.unwrap_or_default())?;
    }
    writeln!(out)?;
    Ok(())
}

fn missing(kind: &str, name: &str, near: Option<&str>, command: &str) -> Outcome {
    let near = near.map_or(String::new(), |near| format!(" did you mean `{near}`?"));
    eprintln!("error: there is no {kind} `{name}`;{near} `{command}` lists all of them");
    Outcome::WrongUse
}

fn first_sentence(doc: &str) -> &str {
    let line = doc.lines().next().unwrap_or("").trim();
    line.split_once(". ").map_or(line, |(first, _)| first)
}
