//! Commands: what the lenses above a job do, and the way of a field.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr as _;

use dfc_compiler::ide::{self, Lineage, LineageStep};
use dfc_diagnostics::Severity;
use ls_types::{ExecuteCommandParams, MessageType, Position, Uri};
use serde_json::{Value, json};

use crate::documents::path_of;
use crate::snapshot::{Failure, Snapshot};

/// Checks a pipeline: `[uri]` → `{ errors, warnings, text }`.
pub const CHECK: &str = "dfc.check";

/// Runs a pipeline, as it is on the disk: `[uri]` → `{ code, stdout, stderr }`.
pub const RUN: &str = "dfc.run";

/// Shows the stages of a pipeline: `[uri]` → a text.
pub const PLAN: &str = "dfc.plan";

/// Shows where fields come from: `[uri, position]` → `[{ field, type, text, steps }]`.
pub const LINEAGE: &str = "dfc.lineage";

/// All commands.
pub const NAMES: &[&str] = &[CHECK, RUN, PLAN, LINEAGE];

/// Does a command. [`RUN`] is done by [`run`], because it outlives a snapshot.
pub fn execute(snapshot: &Snapshot, params: ExecuteCommandParams) -> Result<Option<Value>, Failure> {
    let uri = uri(&params)?;
    let (file, text) = snapshot.file(&uri)?;
    match params.command.as_str() {
        CHECK => Ok(Some(check(snapshot, &file))),
        PLAN => Ok(Some(plan(snapshot, &file)?.into())),
        LINEAGE => {
            let position = params.arguments.get(1).cloned().unwrap_or_default();
            let position: Position = serde_json::from_value(position)
                .map_err(|error| Failure::Parameters(format!("the second argument is a position: {error}")))?;
            let root = snapshot.compiler.roots_of(&file, &snapshot.known).into_iter().next().unwrap_or(file.clone());
            let offset = text.offset(position, snapshot.client.encoding);
            let found = ide::lineage(&snapshot.compiler, &root, &file, offset);
            if found.is_empty() {
                return Err(Failure::refused("there is no field here whose way could be told"));
            }
            let words: Vec<&str> = found.iter().map(|lineage| lineage.text.as_str()).collect();
            snapshot.note(MessageType::INFO, words.join("\n"));
            Ok(Some(found.iter().map(|lineage| way(snapshot, lineage)).collect()))
        }
        other => Err(Failure::Refused(format!("there is no command `{other}`; there are {}", NAMES.join(", ")))),
    }
}

/// The file that a command is for.
pub fn uri(params: &ExecuteCommandParams) -> Result<Uri, Failure> {
    let text = params.arguments.first().and_then(Value::as_str).unwrap_or_default();
    Uri::from_str(text)
        .map_err(|_| Failure::Parameters(format!("the first argument of `{}` is a file's URI", params.command)))
}

fn check(snapshot: &Snapshot, file: &Path) -> Value {
    let found = snapshot.compiler.findings(file);
    let count = |severity| found.diagnostics.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("{name}: {}, {}", plural(errors, "error"), plural(warnings, "warning"));
    snapshot.show(if errors > 0 { MessageType::ERROR } else { MessageType::INFO }, text.clone());
    json!({ "errors": errors, "warnings": warnings, "text": text })
}

fn plan(snapshot: &Snapshot, file: &Path) -> Result<String, Failure> {
    match snapshot.compiler.plan(file) {
        Ok(plan) => {
            let text = dfc_ir::text::stages(&dfc_planner::plan_stages(&plan));
            snapshot.note(MessageType::INFO, text.clone());
            Ok(text)
        }
        Err(checked) => {
            let first = checked.diagnostics.iter().find(|d| d.severity == Severity::Error);
            Err(Failure::Refused(format!(
                "a pipeline with errors has no plan: {}",
                first.map_or("see its errors", |d| d.message.as_str())
            )))
        }
    }
}

fn way(snapshot: &Snapshot, lineage: &Lineage) -> Value {
    json!({
        "field": lineage.root.field,
        "type": lineage.root.ty,
        "text": lineage.text,
        "steps": step(snapshot, &lineage.root),
    })
}

fn step(snapshot: &Snapshot, at: &LineageStep) -> Value {
    json!({
        "field": at.field,
        "type": at.ty,
        "words": at.words,
        "stream": at.stream,
        "location": at.place.as_ref().and_then(|place| snapshot.location(place)),
        "from": at.from.iter().map(|from| step(snapshot, from)).collect::<Value>(),
    })
}

/// Runs a pipeline in a process of its own, in the file's folder.
///
/// # Errors
/// When the process can't be started.
pub fn run(params: &ExecuteCommandParams) -> Result<Value, Failure> {
    let file: PathBuf = path_of(&uri(params)?);
    let folder = file.parent().filter(|folder| folder.is_dir());
    let folder = folder.ok_or_else(|| Failure::refused("only a file that is saved can be run"))?;
    let binary = std::env::current_exe().map_err(|error| Failure::Refused(format!("can't find dfc: {error}")))?;
    let output = Command::new(binary)
        .arg("run")
        .arg(&file)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .output()
        .map_err(|error| Failure::Refused(format!("can't start dfc: {error}")))?;
    Ok(json!({
        "code": output.status.code(),
        "stdout": String::from_utf8_lossy(&output.stdout),
        "stderr": String::from_utf8_lossy(&output.stderr),
    }))
}
