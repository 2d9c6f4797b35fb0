//! What is wrong with a job as a whole: its settings against its sources and sinks (D9).
//!
//! Each rule is a function over the ends of the graph; none of them knows a connector by name.

use std::path::Path;
use std::sync::Arc;

use dfc_ir::plan::{ErrorPolicy, OptionValue, Rerun};
use dfc_typeck::{Loc, LocalDiagnostic};

use crate::db::{Db, SourceFile};
use crate::guarantees::{Known, known_ends, on_disk};
use crate::items::beside;
use crate::operators::Role;
use crate::settings::{JobCheck, job};

/// What is wrong with the job of a program.
#[salsa::tracked]
pub fn job_lints(db: &dyn Db, root: SourceFile) -> Arc<Vec<LocalDiagnostic>> {
    let Some(settings) = job(db, root) else { return Arc::default() };
    let ends: Vec<&Known> = known_ends(db, root).collect();
    let mut out = Vec::new();
    rejects_apart(root.path(db), settings, &ends, &mut out);
    source_is_replaced(&ends, &mut out);
    source_takes_its_target(&ends, &mut out);
    streams_apart(&ends, &mut out);
    more_tasks_than_splits(settings, &ends, &mut out);
    state_on_one_disk(settings, &ends, &mut out);
    news_replace_everything(settings, &ends, &mut out);
    if let (Some(why), Some(at)) = (on_disk(db, root, settings), settings.place("", "memory")) {
        checkpoints_of_memory_alone(settings, why, at, &mut out);
    }
    Arc::new(out)
}

/// What a run after a successful one does: as the job says, or as its sources and sinks let one expect. A source that knows what is new
/// goes on there, unless every target is replaced by each run: then it has to hold everything.
pub fn rerun(settings: &JobCheck, ends: &[&Known]) -> Rerun {
    let continues = ends.iter().any(|end| end.has("continues"));
    let mut sinks = ends.iter().filter(|end| end.operator.role == Role::Sink);
    let by_itself = match continues && !sinks.all(|sink| sink.is_replaced()) {
        true => Rerun::Continue,
        false => Rerun::Restart,
    };
    settings.job.rerun.unwrap_or(by_itself)
}

/// A target that each run replaces, while each run but the first takes only what is new.
fn news_replace_everything(settings: &JobCheck, ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    let endless = |end: &&Known| end.operator.role == Role::Source && !end.has("bounded");
    // A job that never ends has no second run.
    if settings.job.checkpoint.is_none() || rerun(settings, ends) == Rerun::Restart || ends.iter().any(endless) {
        return;
    }
    for sink in ends.iter().filter(|end| end.operator.role == Role::Sink && end.is_replaced()) {
        let (target, instead) = match sink.operator.writes_folders() {
            true => ("file", "a folder of parts (its path ends with `/`), or `mode: append` where the format has it"),
            false => ("table", "`mode: insert` or `mode: upsert`"),
        };
        let message = format!("each run replaces this {target}, and takes only what is new since the last one");
        let mut problem = LocalDiagnostic::error("E0803", sink.loc(), message, "would hold the news and nothing else")
            .help(format!("keep what is there: {instead}; or compute everything anew in each run: `rerun: restart`"));
        match settings.place("", "rerun") {
            Some(at) => problem = problem.related(at, "asked for here"),
            None => {
                for source in ends.iter().filter(|end| end.has("continues")) {
                    problem = problem.related(source.loc(), "a later run takes what is new here");
                }
            }
        }
        out.push(problem);
    }
}

/// Checkpoints that are asked for, and are not taken because state may be on disk.
fn checkpoints_of_memory_alone(settings: &JobCheck, why: String, at: Loc, out: &mut Vec<LocalDiagnostic>) {
    let Some(asked) = settings.place_in("checkpoint").filter(|_| settings.job.checkpoint.is_some()) else { return };
    let problem = LocalDiagnostic::warning("W0803", asked, format!("no checkpoints are taken: {why}"), "has no effect")
        .related(at, "limits the memory")
        .help("take one of both settings out; `checkpoint: off` says that a run may start again from the beginning");
    out.push(problem);
}

/// The rejected rows and a sink's can't go to one file.
fn rejects_apart(root: &Path, settings: &JobCheck, ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    let Some(folder) = &settings.job.errors.to else { return };
    let file = beside(root, &format!("{folder}/{}", ErrorPolicy::file_name(&settings.job.name)));
    let Some(at) = settings.place("errors", "to") else { return };
    for sink in ends.iter().filter(|end| end.operator.role == Role::Sink) {
        let Some(path) = sink.path().filter(|path| crate::files::normalise(Path::new(path)) == file) else { continue };
        let message = format!("`{path}` is written twice: the rejected rows go there too");
        let problem = LocalDiagnostic::error("E0315", sink.loc(), message, "written here")
            .related(at.clone(), "rejected rows are kept in this folder")
            .help("give the rejected rows a folder of their own");
        out.push(problem);
    }
}

/// A file that is read and then replaced by the result: the next run reads what this one has made of it.
fn source_is_replaced(ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    // A database's file holds other tables too.
    let alone = |end: &&&Known| !end.is_stream() && end.operator.param("table").is_none();
    let file = |end: &&&Known| end.path().filter(|_| alone(end)).map(|path| crate::files::normalise(Path::new(path)));
    let sources = || ends.iter().filter(|end| end.operator.role == Role::Source);
    for sink in ends.iter().filter(|end| end.operator.role == Role::Sink && end.is_replaced()) {
        let Some(target) = file(&sink) else { continue };
        let Some(source) = sources().find(|source| file(source).is_some_and(|path| path == target)) else { continue };
        let message = format!("`{}` is read, and then replaced by the result", sink.path().unwrap_or_default());
        let problem = LocalDiagnostic::warning("W0804", sink.loc(), message, "written here")
            .related(source.loc(), "read here")
            .note("another run would read what this one has made of it, and rows that are dropped here are gone")
            .help("write to another file");
        out.push(problem);
    }
}

/// A target that a source's pattern matches: the next run reads the result as well.
fn source_takes_its_target(ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    let path =
        |end: &Known| end.path().filter(|_| !end.is_stream()).map(|path| crate::files::normalise(Path::new(path)));
    let sources: Vec<(&&Known, glob::Pattern)> = ends
        .iter()
        .filter(|end| end.operator.role == Role::Source)
        .filter_map(|source| {
            let pattern = path(source).filter(|_| source.is_pattern())?;
            Some((source, glob::Pattern::new(pattern.to_str()?).ok()?))
        })
        .collect();
    for sink in ends.iter().filter(|end| end.operator.role == Role::Sink) {
        let (Some(target), Some(written)) = (path(sink), sink.path()) else { continue };
        // Of a folder of parts: one of them.
        let file = if written.ends_with('/') { target.join(format!("part-0.{}", sink.operator.name)) } else { target };
        let Some((source, pattern)) = sources.iter().find(|(_, pattern)| pattern.matches_path(&file)) else { continue };
        let message = format!("`{written}` is written where `{}` reads: `{pattern}` matches it", source.name());
        let problem = LocalDiagnostic::warning("W0804", sink.loc(), message, "written here")
            .related(source.loc(), "read here")
            .note("another run would read what this one has written as well")
            .help("write to another folder, or read with a narrower pattern");
        out.push(problem);
    }
}

/// Of the standard streams there is one each: two sources would take each other's bytes, the rows of two targets would be mixed.
fn streams_apart(ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    let mut sources = ends.iter().filter(|end| end.is_stdin());
    if let Some(first) = sources.next() {
        out.extend(sources.map(|again| {
            let message = "two sources read the standard input, and each byte comes only once";
            LocalDiagnostic::error("E0318", again.loc(), message, "and here")
                .related(first.loc(), "read here")
                .help("read it by one source, and start several streams with that; or give the other one a file")
        }));
    }
    let mut sinks: Vec<&&Known> = ends.iter().filter(|end| end.is_stdout()).collect();
    // What is printed is for a reader, and may stand side by side.
    sinks.sort_by_key(|end| end.prints());
    if let [first, rest @ ..] = sinks.as_slice()
        && !first.prints()
    {
        out.extend(rest.iter().map(|again| {
            let message = "rows of two targets would be mixed on the standard output";
            LocalDiagnostic::error("E0315", again.loc(), message, "written here too")
                .related(first.loc(), "written here")
                .help("give one of them a file, or write one `union(…)` of both streams")
        }));
    }
}

/// Tasks for which the sources have nothing to read.
fn more_tasks_than_splits(settings: &JobCheck, ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    let (Some(tasks), Some(at)) = (settings.job.parallelism, settings.place("", "parallelism")) else { return };
    let sources: Vec<&&Known> = ends.iter().filter(|end| end.operator.role == Role::Source).collect();
    let whole: Vec<String> = sources.iter().filter_map(|source| source.unsplittable()).collect();
    if whole.is_empty() || whole.len() < sources.len() || tasks <= whole.len() {
        return;
    }
    let reads = if whole.len() == 1 { "one task reads".into() } else { format!("{} tasks read", whole.len()) };
    let message = format!("{tasks} tasks are asked for, and only {reads}: {}", whole.join(", "));
    let problem = LocalDiagnostic::warning("W0801", at, message, "more tasks than there is to read")
        .help("split the input into several files, uncompressed or each compressed by itself, or take the setting out");
    out.push(problem);
}

/// State that is lost with this machine's disk, while the target is elsewhere and keeps what it has.
fn state_on_one_disk(settings: &JobCheck, ends: &[&Known], out: &mut Vec<LocalDiagnostic>) {
    let Some(checkpoint) = &settings.job.checkpoint else { return };
    if checkpoint.storage.as_ref().is_some_and(|storage| storage.contains("://")) {
        return;
    }
    let server = |end: &&&Known| {
        let url = matches!(end.options.get("url"), Some(url) if *url != OptionValue::Absent);
        end.operator.role == Role::Sink && url
    };
    let Some(sink) = ends.iter().find(server) else { return };
    let place = checkpoint.storage.as_deref().unwrap_or(".dfc");
    let message =
        format!("the job's checkpoints are on this machine's disk only (`{place}`), and its target is elsewhere");
    let mut problem = LocalDiagnostic::warning("W0802", sink.loc(), message, "outlives this disk")
        .note("with the disk the job's position would be lost: a new run could not tell what the target has already")
        .help("keep them on another machine too: `checkpoint { storage: \"s3://bucket/prefix\" }`");
    if let Some(at) = settings.place("checkpoint", "storage") {
        problem = problem.related(at, "on this disk");
    }
    out.push(problem);
}
