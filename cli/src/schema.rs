//! `dfc schema`: prints the fields of a source as a `record` to paste; and the catalog that the compiler asks for them.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use dfc_compiler::schemas::record::record;
use dfc_compiler::{Catalog, Compiler, NotFound, Request};
use dfc_connect::Reach;
use dfc_ir::Schema;

use crate::Outcome;
use crate::args::{Format, SchemaArgs};
use crate::report;

/// The connectors' knowledge of the fields outside.
pub enum Connectors {
    /// Only files of this machine are looked at.
    Offline,
    /// Databases and other services are asked too.
    Connected,
}

impl Catalog for Connectors {
    fn schema(&self, request: &Request) -> Result<Schema, NotFound> {
        let network = dfc_connect::schema_reach(&request.connector) == Some(Reach::Network);
        if network && matches!(self, Connectors::Offline) {
            let message = format!("`{}` is on the network, where a check doesn't look by itself", request.connector);
            return Err(NotFound { message, help: None, needs_connection: true });
        }
        dfc_connect::find_schema(&request.connector, &request.options).map_err(|error| NotFound {
            message: error.message,
            help: error.help,
            needs_connection: false,
        })
    }
}

/// Runs the command. The fields are those that the source has now, whatever the pipeline declares.
pub fn schema(args: &SchemaArgs) -> Result<Outcome> {
    let mut compiler = report::compiler(&args.set);
    compiler.set_catalog(std::sync::Arc::new(Connectors::Connected));
    let checked = compiler.check(&args.file);
    let Some(request) = request(&compiler, &args.file, &args.source) else {
        if checked.has_errors() {
            report::findings(&[&checked], Format::Human)?;
        }
        let known: Vec<String> = compiler.sources(&args.file).iter().map(|(name, _)| format!("`{name}`")).collect();
        match known.is_empty() {
            true => eprintln!("error: `{}` has no source whose fields could be looked up", args.file.display()),
            false => eprintln!(
                "error: `{}` has no source `{}` that could be asked; it has {}",
                args.file.display(),
                args.source,
                known.join(", ")
            ),
        }
        return Ok(if checked.has_errors() { Outcome::Failed } else { Outcome::WrongUse });
    };
    match Connectors::Connected.schema(&request) {
        Ok(schema) => {
            let name = record_name(&args.source);
            writeln!(std::io::stdout().lock(), "{}", record(Some(&name), &schema))?;
            Ok(Outcome::Fine)
        }
        Err(why) => {
            eprintln!("error: the fields of `{}` are not known: {}", args.source, why.message);
            if let Some(help) = why.help {
                eprintln!("help: {help}");
            }
            Ok(Outcome::Failed)
        }
    }
}

fn request(compiler: &Compiler, file: &Path, source: &str) -> Option<Request> {
    compiler.sources(file).into_iter().find(|(name, _)| name == source).map(|(_, request)| request)
}

/// `orders` → `Orders`, as records are called.
fn record_name(source: &str) -> String {
    let mut out = String::new();
    for part in source.split(['_', ' ', '-']).filter(|part| !part.is_empty()) {
        let mut chars = part.chars();
        out.extend(chars.next().map(char::to_uppercase).into_iter().flatten());
        out.push_str(chars.as_str());
    }
    out
}
