//! `dfc checkpoint`: a job's checkpoints listed, shown, removed and looked at byte by byte (D17).

use std::io::Write;

use anyhow::{Result, anyhow};
use dfc_checkpoint::{
    Applied, Checkpoints, Error, Finding, Job, Kept, Kind, Manifest, OperatorState, Part, SourceState,
};
use dfc_engine::{Inspector, RunError};
use dfc_ir::StagePlan;
use serde_json::{Value, json};

use crate::Outcome;
use crate::args::{CheckpointCommand, Form, NumberArgs, PruneArgs, ShowArgs};
use crate::jobs::{self, Found, Trouble};
use crate::summary::{bytes, count, rows};

/// Most bytes of one part that `show --state` takes into memory.
const LARGEST_PART: u64 = 1 << 30;

/// Runs the command.
pub fn checkpoint(command: &CheckpointCommand) -> Result<Outcome> {
    match command {
        CheckpointCommand::List(args) => jobs::with(&args.job, |found| list(&found, args.form)),
        CheckpointCommand::Show(args) => jobs::with(&args.job, |found| show(&found, args)),
        CheckpointCommand::Prune(args) => jobs::with(&args.job, |found| prune(found, args)),
        CheckpointCommand::Verify(args) => jobs::with(&args.job, |found| verify(&found, args)),
    }
}

fn list(found: &Found, form: Form) -> Result<Outcome, Trouble> {
    let at = &found.checkpoints;
    let (all, kept) = (at.manifests()?, at.kept()?);
    let mut out = std::io::stdout().lock();
    if form == Form::Json {
        for (number, manifest) in &all {
            writeln!(out, "{}", line(*number, manifest, kept.get(number)))?;
        }
        return Ok(Outcome::Fine);
    }
    if all.is_empty() {
        writeln!(out, "job {} has no checkpoints in {}", at.job(), at.describe())?;
        return Ok(Outcome::Fine);
    }
    writeln!(
        out,
        "job {}: {} in {}, {}",
        at.job(),
        plural(all.len(), "checkpoint"),
        at.describe(),
        bytes(at.used_bytes()?)
    )?;
    let mut table = vec![["number", "taken", "kind", "took", "state", "spool", "rows read", ""].map(str::to_owned)];
    for (number, manifest) in all.iter().rev() {
        table.push(match manifest {
            Ok(manifest) => [
                number.to_string(),
                jobs::moment(manifest.created_micros),
                kind(manifest, kept.get(number)).to_owned(),
                format!("{} ms", count(manifest.duration_ms)),
                bytes(manifest.stored_state_bytes()),
                bytes(manifest.spool_bytes),
                count(manifest.counters.rows_in),
                note(manifest, kept.get(number)).map_or(String::new(), |note| format!("“{note}”")),
            ],
            Err(error) => {
                let mut row = [const { String::new() }; 8];
                (row[0], row[1]) = (number.to_string(), jobs::in_a_line(error));
                row
            }
        });
    }
    write_table(&mut out, &table)?;
    let damaged = all.iter().any(|(_, manifest)| manifest.is_err());
    Ok(if damaged { Outcome::Failed } else { Outcome::Fine })
}

/// One checkpoint for tools.
fn line(number: u64, manifest: &Result<Manifest, Error>, kept: Option<&Kept>) -> Value {
    match manifest {
        Ok(manifest) => json!({
            "number": number,
            "taken": jobs::moment(manifest.created_micros),
            "kind": kind(manifest, kept),
            "note": note(manifest, kept),
            "lineage": manifest.lineage,
            "duration_ms": manifest.duration_ms,
            "alignment_ms": manifest.alignment_ms,
            "state_bytes": manifest.stored_state_bytes(),
            "spool_bytes": manifest.spool_bytes,
            "rows_in": manifest.counters.rows_in,
            "rows_out": manifest.counters.rows_out,
        }),
        Err(error) => json!({ "number": number, "code": error.code(), "error": error.to_string() }),
    }
}

fn kind(manifest: &Manifest, kept: Option<&Kept>) -> &'static str {
    if kept.is_some() { Kind::Savepoint.word() } else { manifest.kind.word() }
}

fn note<'a>(manifest: &'a Manifest, kept: Option<&'a Kept>) -> Option<&'a str> {
    manifest.savepoint_note.as_deref().or_else(|| kept?.note.as_deref())
}

fn show(found: &Found, args: &ShowArgs) -> Result<Outcome, Trouble> {
    let at = &found.checkpoints;
    let manifest = match args.number {
        Some(number) => at.read(number)?,
        None => match at.newest(false)? {
            Some(newest) => newest,
            None => {
                eprintln!("job {} has no checkpoints in {}", at.job(), at.describe());
                return Ok(Outcome::Failed);
            }
        },
    };
    let applied = at.applied()?;
    let mut out = std::io::stdout().lock();
    if args.form == Form::Json || args.state {
        let text = serde_json::to_string_pretty(&manifest)?;
        match text.strip_suffix("\n}").filter(|_| args.state) {
            Some(open) => {
                write!(out, "{open},\n  \"state\": ")?;
                state(&mut out, at, &dfc_planner::plan_stages(&found.plan), &manifest)?;
                writeln!(out, "\n}}")?;
            }
            None => writeln!(out, "{text}")?,
        }
        return Ok(Outcome::Fine);
    }
    write!(out, "{}", page(at, &manifest, &applied)?)?;
    Ok(Outcome::Fine)
}

/// A checkpoint on one page.
fn page(at: &Checkpoints, manifest: &Manifest, applied: &Applied) -> Result<String, Error> {
    let kept = at.kept()?;
    let kept = kept.get(&manifest.number);
    let mut lines = vec![
        format!(
            "checkpoint {} of job {} ({}), taken {}",
            manifest.number,
            at.job(),
            kind(manifest, kept),
            jobs::moment(manifest.created_micros)
        ),
        format!("  lineage   {}", manifest.lineage),
        format!(
            "  took      {} ms, inputs were held back for {} ms at most",
            count(manifest.duration_ms),
            count(manifest.alignment_ms)
        ),
        format!(
            "  rows      {} read, {} written, {} rejected",
            count(manifest.counters.rows_in),
            count(manifest.counters.rows_out),
            count(manifest.rejects.count)
        ),
        format!("  now()     {}", jobs::moment(manifest.now_micros)),
        format!("  tasks     {} a stage", manifest.parallelism),
    ];
    lines.extend(note(manifest, kept).map(|note| format!("  note      “{note}”")));
    lines.push("sources".into());
    for source in &manifest.sources {
        let end = if source.ended { ", read to the end" } else { "" };
        lines.push(format!(
            "  {} ({}): {}, {}{end}",
            source.node,
            source.connector,
            rows(source.rows),
            bytes(source.bytes)
        ));
        lines.extend(splits(source));
    }
    let operators: Vec<&OperatorState> = manifest.stages.iter().flat_map(|stage| &stage.operators).collect();
    if !operators.is_empty() {
        lines.push("state".into());
    }
    for operator in operators {
        let (stored, raw) =
            operator.parts.iter().fold((0, 0), |sum, part| (sum.0 + part.bytes, sum.1 + part.raw_bytes));
        lines.push(format!(
            "  {} ({}): {} entries, {}, {} stored in {}",
            operator.node,
            operator.kind,
            count(operator.parts.iter().map(|part| part.rows).sum()),
            bytes(raw),
            bytes(stored),
            plural(operator.parts.len(), "part")
        ));
    }
    if !manifest.sinks.is_empty() {
        lines.push("sinks".into());
    }
    for sink in &manifest.sinks {
        let target = sink.target.as_ref().map_or(String::new(), |target| format!(" to {target}"));
        let done = applied.done(&manifest.lineage, sink);
        let open: Vec<_> = sink.sealed.iter().filter(|epoch| epoch.number > done).collect();
        let (waiting, size) = open.iter().fold((0, 0), |sum, epoch| (sum.0 + epoch.rows, sum.1 + epoch.bytes));
        lines.push(match open.last() {
            Some(last) => format!(
                "  {}{target}: {} ({}) up to checkpoint {} are staged, {}",
                sink.node,
                rows(waiting),
                bytes(size),
                last.number,
                if sink.at_end { "visible when the job has ended" } else { "not applied" }
            ),
            None => format!("  {}{target}: all applied", sink.node),
        });
    }
    Ok(lines.join("\n") + "\n")
}

/// Where a source's splits are. Those that are read or not begun are counted only.
fn splits(source: &SourceState) -> Vec<String> {
    let (ended, open): (Vec<_>, Vec<_>) = source.positions.splits.iter().partition(|split| split.ended);
    let (waiting, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|split| split.position.is_null());
    let mut lines: Vec<String> = open
        .iter()
        .map(|split| {
            let how = if split.exact { "goes on exactly there" } else { "is read again up to there" };
            format!("    `{}` at {}: {how}", split.split, split.position)
        })
        .collect();
    if !ended.is_empty() {
        lines.push(format!("    {} read to the end", plural(ended.len(), "split")));
    }
    if !waiting.is_empty() {
        lines.push(format!("    {} not begun", plural(waiting.len(), "split")));
    }
    lines
}

/// Every operator's state, entry by entry: it may be larger than memory. A pipeline that has changed since doesn't tell what it means; then
/// its parts are named.
fn state(out: &mut impl Write, at: &Checkpoints, plan: &StagePlan, manifest: &Manifest) -> Result<(), Trouble> {
    let inspector = Inspector::new(plan, manifest);
    write!(out, "[")?;
    let mut comma = "";
    for (number, stage) in manifest.stages.iter().enumerate() {
        for operator in &stage.operators {
            let (node, kind) = (json!(operator.node), json!(operator.kind));
            write!(out, "{comma}\n    {{ \"node\": {node}, \"kind\": {kind}, ")?;
            comma = ",";
            match &inspector {
                Ok(inspector) => {
                    write!(out, "\"entries\": [")?;
                    entries(out, at, inspector, number, operator)?;
                    write!(out, "\n    ] }}")?;
                }
                Err(why) => write!(out, "\"parts\": {}, \"not_shown\": {} }}", parts(operator), json!(why))?,
            }
        }
    }
    write!(out, "\n  ]")?;
    Ok(())
}

fn entries(
    out: &mut impl Write,
    at: &Checkpoints,
    inspector: &Inspector,
    stage: usize,
    operator: &OperatorState,
) -> Result<(), Trouble> {
    let mut comma = "";
    let mut unwritten = None;
    let mut give = |entry: Value| {
        let written = write!(out, "{comma}\n      {entry}");
        comma = ",";
        written.map_err(|error| {
            let message = error.to_string();
            unwritten = Some(error);
            RunError::State(message)
        })
    };
    let parts = operator.parts.iter().map(|part| at.read_part(part, LARGEST_PART).map_err(RunError::Checkpoint));
    let done = inspector.entries(stage, &operator.node, &operator.kind, parts, &mut give);
    match (done, unwritten) {
        (Ok(()), _) => Ok(()),
        // Whoever reads has closed the output, or the disk is full.
        (Err(_), Some(error)) => Err(error.into()),
        (Err(RunError::Checkpoint(error)), None) => Err(error.into()),
        (Err(error), None) => Err(Trouble::Other(anyhow!("the state of `{}` can't be shown: {error}", operator.node))),
    }
}

/// What an operator's parts are.
fn parts(operator: &OperatorState) -> Value {
    let part = |part: &Part| json!({ "part": part.name, "entries": part.rows, "bytes": part.raw_bytes });
    operator.parts.iter().map(part).collect()
}

fn prune(found: Found, args: &PruneArgs) -> Result<Outcome, Trouble> {
    let Found { place, checkpoints: at, settings, .. } = found;
    let all = at.manifests()?;
    if all.is_empty() {
        println!("job {} has no checkpoints in {}", at.job(), at.describe());
        return Ok(Outcome::Fine);
    }
    let newest = all.iter().rev().find(|(_, manifest)| manifest.is_ok()).map(|(number, _)| *number);
    if let Some(number) = args.numbers.iter().find(|number| Some(**number) == newest) {
        return Err(Trouble::Other(anyhow!(
            "checkpoint {number} is the newest: the job goes on from it; `dfc run FILE --fresh` starts without"
        )));
    }
    let job = Job::open(place, at.job(), jobs::now_micros())?;
    let (mut numbers, mut parts, mut size) = (Vec::new(), 0, 0);
    let mut add = |removed: dfc_checkpoint::Removed| {
        numbers.extend(removed.checkpoints);
        parts += removed.parts;
        size += removed.bytes;
    };
    for number in &args.numbers {
        add(job.remove(*number)?);
    }
    if args.numbers.is_empty() {
        add(job.retain(args.keep.unwrap_or(settings.retain))?);
    }
    match numbers.len() {
        0 if parts == 0 => {
            println!("nothing to remove: what is there is among the newest, a savepoint, or not applied yet")
        }
        0 => println!("removed {} that no checkpoint names ({})", plural(parts as usize, "part"), bytes(size)),
        n => {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let which = if n == 1 { "checkpoint" } else { "checkpoints" };
            println!(
                "removed {which} {} and {} of state ({})",
                numbers.join(", "),
                plural(parts as usize, "part"),
                bytes(size)
            );
        }
    }
    Ok(Outcome::Fine)
}

fn verify(found: &Found, args: &NumberArgs) -> Result<Outcome, Trouble> {
    let at = &found.checkpoints;
    let numbers: Vec<u64> = match args.number {
        Some(number) => vec![number],
        None => at.manifests()?.into_iter().map(|(number, _)| number).collect(),
    };
    let mut out = std::io::stdout().lock();
    if numbers.is_empty() {
        writeln!(out, "job {} has no checkpoints in {}", at.job(), at.describe())?;
    }
    let mut outcome = Outcome::Fine;
    for number in numbers {
        let findings = match at.verify(number) {
            // The job has removed it meanwhile.
            Err(Error::Unknown { .. }) if args.number.is_none() => continue,
            findings => findings?,
        };
        let size = findings.iter().map(|finding| finding.bytes).sum();
        let wrong: Vec<&Finding> = findings.iter().filter(|finding| finding.wrong.is_some()).collect();
        if wrong.is_empty() {
            writeln!(out, "checkpoint {number}: whole ({}, {})", plural(findings.len(), "file"), bytes(size))?;
            continue;
        }
        outcome = Outcome::Failed;
        writeln!(out, "checkpoint {number}: damaged")?;
        for finding in wrong {
            writeln!(out, "  {}: {}", finding.place, finding.wrong.as_deref().unwrap_or_default())?;
        }
    }
    Ok(outcome)
}

/// `1 part`, `2 parts`
pub fn plural(n: usize, word: &str) -> String {
    format!("{} {word}{}", count(n as u64), if n == 1 { "" } else { "s" })
}

/// Columns as wide as they need be; numbers on the right where a heading is one of numbers.
fn write_table<const N: usize>(out: &mut impl Write, table: &[[String; N]]) -> std::io::Result<()> {
    // A row with two cells only is a remark across the rest.
    let widths: Vec<usize> = (0..N)
        .map(|column| {
            let cells = table.iter().filter(|row| row[2..].iter().any(|cell| !cell.is_empty()));
            cells.map(|row| row[column].chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in table {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 3..=6 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "  {}", line.trim_end())?;
    }
    Ok(())
}
