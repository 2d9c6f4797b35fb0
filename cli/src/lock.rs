//! The lock file beside a pipeline (`orders.df.lock`): written by the first run, renewed and compared by `check --connect`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use dfc_compiler::schemas::drift::differences;
use dfc_compiler::schemas::{OutsideSource, lock_of, lock_path};
use dfc_compiler::{Catalog, Compiler};
use dfc_engine::RunError;
use dfc_ir::{Op, Schema};

use crate::schema::Connectors;

/// What `check --connect` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drift {
    /// Everything is as it was, or has changed only so that the pipeline means the same.
    None,
    /// A column is gone or has another type, or a source can't be asked.
    Some,
}

/// Asks every source without `schema:` for its fields, says what has changed, and writes the lock file anew.
///
/// # Errors
/// The lock file can't be written.
pub fn renew(compiler: &mut Compiler, pipeline: &Path) -> Result<Drift> {
    let path = lock_path(pipeline);
    // A lock file that can't be used is said by the check.
    let Ok(old) = compiler.lock(pipeline) else { return Ok(Drift::None) };
    let known = old.clone().unwrap_or_default();
    let mut drift = Drift::None;
    let mut found: Vec<(OutsideSource, Schema)> = Vec::new();
    for source in compiler.outside_sources(pipeline) {
        let before = known.entries.get(&source.key).map(|entry| &entry.schema);
        match Connectors::Connected.schema(&source.request) {
            Ok(live) => {
                for difference in before.into_iter().flat_map(|before| differences(before, &live)) {
                    eprintln!("{}: `{}`: {difference}", path.display(), source.name);
                    drift = drift.max(if difference.harmless() { Drift::None } else { Drift::Some });
                }
                found.push((source, live));
            }
            // Without an entry the check has no fields either, and says why.
            Err(why) => {
                if let Some(before) = before {
                    eprintln!("{}: `{}` can't be asked: {}", path.display(), source.name, why.message);
                    drift = Drift::Some;
                    found.push((source, before.clone()));
                }
            }
        }
    }
    let mut new = lock_of(found.iter().map(|(source, schema)| (source, schema.clone())));
    if compiler.check(pipeline).has_errors() {
        // A source may stand where a mistake hides it.
        for (key, entry) in known.entries {
            new.entries.entry(key).or_insert(entry);
        }
    }
    if old.is_some() && new.entries.is_empty() {
        std::fs::remove_file(&path).with_context(|| format!("can't remove `{}`", path.display()))?;
    } else if old.as_ref() != Some(&new) && !new.entries.is_empty() {
        write(&path, &new.text()).with_context(|| format!("can't write `{}`", path.display()))?;
        eprintln!("{} `{}`", if old.is_some() { "renewed" } else { "wrote" }, path.display());
    }
    compiler.reload();
    Ok(drift)
}

/// Compares what is outside with the plan, without reading rows: each source is opened as a run would open it.
pub fn connect(compiler: &Compiler, pipeline: &Path) -> Drift {
    let Ok(plan) = compiler.plan(pipeline) else { return Drift::None };
    let cx = dfc_connect::OpenContext { tasks: 1, ..dfc_connect::OpenContext::default() };
    let mut drift = Drift::None;
    for node in &plan.nodes {
        let Op::Source(spec) = &node.op else { continue };
        let piped = spec.options.get("path").and_then(|path| path.text()) == Some("-");
        if piped {
            continue;
        }
        if let Err(error) = dfc_connect::open_source(spec, &cx) {
            eprintln!("error[{}]: `{}`: {}", error.code, node.name, error.message);
            if let Some(help) = &error.help {
                eprintln!("help: {help}");
            }
            drift = Drift::Some;
        }
    }
    drift
}

/// Before a run: pins the fields that were found outside and are in no lock file yet. That it can't be written stops no run.
pub fn pin(compiler: &Compiler, pipeline: &Path) {
    let sources = compiler.outside_sources(pipeline);
    let (Ok(old), false) = (compiler.lock(pipeline), sources.iter().all(|source| source.locked)) else { return };
    let mut lock = old.unwrap_or_default();
    let found = sources.iter().filter_map(|source| Some((source, source.schema.as_deref()?.clone())));
    for (key, entry) in lock_of(found).entries {
        lock.entries.entry(key).or_insert(entry);
    }
    let path = lock_path(pipeline);
    match write(&path, &lock.text()) {
        Ok(()) => eprintln!("the fields of sources without `schema:` are kept in `{}`", path.display()),
        Err(error) => eprintln!("warning: the fields of sources can't be kept in `{}`: {error}", path.display()),
    }
}

/// Codes of columns that are gone or have another type.
const DRIFTED: [&str; 2] = ["R0210", "R0213"];

/// After a run that failed because the columns outside are not those of the lock file: says so.
pub fn after(error: &RunError, compiler: &Compiler, pipeline: &Path) {
    let RunError::Connect { node, error } = error else { return };
    let sources = compiler.outside_sources(pipeline);
    let locked = sources.iter().any(|source| source.locked && (source.name == *node || node.ends_with(&source.name)));
    if locked && DRIFTED.contains(&error.code) {
        eprintln!(
            "note: the fields are those of `{}`; `dfc check --connect {}` says what has changed, and renews it",
            lock_path(pipeline).display(),
            pipeline.display()
        );
    }
}

/// Says which columns have come that the plan doesn't have: they are left out.
pub fn added(plan: &dfc_ir::Plan, verbose: bool) {
    for node in &plan.nodes {
        let Op::Source(spec) = &node.op else { continue };
        // What can't be read is said where the run opens it.
        for column in dfc_connect::added_columns(spec).unwrap_or_default() {
            tracing::info!(job = %plan.job.name, operator = %node.name, column, event = "column_left_out");
            if verbose {
                eprintln!("{}: the column `{column}` is not in the schema, and left out", node.name);
            }
        }
    }
}

/// The whole file or none of it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let written = std::fs::File::create_new(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let result = written.and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        // It may not be there at all.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}
