//! `dfc audit`: compares what a job's sources hold, up to where they were read, with what its targets hold (F9): rows, the greatest value
//! of the increment, and on request the content by ranges of a key.
//!
//! Both sides are read with the connectors that the job uses. What isn't a copy of one source is refused by name.

pub(crate) mod content;
pub(crate) mod trace;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use dfc_checkpoint::{Checkpoints, Manifest, Place};
use dfc_connect::{OpenContext, Positions};
use dfc_ir::plan::SourceSpec;
use serde_json::{Value as Json, json};

use self::content::{Content, Wanted, read};
use self::trace::Pair;
use crate::Outcome;
use crate::args::{AuditArgs, Form, Format};
use crate::schema::Connectors;
use crate::summary::count;
use crate::{jobs, report};

/// Ranges that are named at most; all are counted.
const SHOWN: usize = 10;

/// Runs the command.
pub fn audit(args: &AuditArgs) -> Result<Outcome> {
    let mut compiler = report::compiler(&args.job.set);
    compiler.set_catalog(Arc::new(Connectors::Connected));
    let plan = match compiler.plan(&args.job.file) {
        Ok(plan) => plan,
        Err(refused) => {
            report::findings(&[&refused], Format::Human)?;
            eprintln!("{}", report::verdict(&args.job.file, &refused));
            return Ok(Outcome::Failed);
        }
    };
    let newest = match &plan.job.checkpoint {
        None => None,
        Some(settings) => {
            let folder = args.job.file.parent().unwrap_or(Path::new(""));
            let opened = Place::open(settings.storage.as_deref(), folder);
            let found = opened.and_then(|place| {
                let checkpoints = Checkpoints::new(place, &plan.job.name);
                Ok(checkpoints.newest(false)?.map(|manifest| (manifest, checkpoints)))
            });
            match found {
                Ok(found) => found,
                Err(error) => {
                    eprintln!("error[{}]: {error}\nhelp: {}", error.code(), error.help());
                    return Ok(Outcome::Failed);
                }
            }
        }
    };
    let at = match &newest {
        Some((manifest, _)) => {
            format!("up to checkpoint {}, taken {}", manifest.number, jobs::moment(manifest.created_micros))
        }
        None => "without a checkpoint: all rows of the sources".into(),
    };
    let mut found = Vec::new();
    for (sink, pair) in trace::pairs(&plan) {
        let answer = match pair {
            Ok(pair) => compare(pair, newest.as_ref(), args.hash),
            Err(why) => Err(why),
        };
        found.push((sink, answer));
    }
    let mut out = std::io::stdout().lock();
    match args.form {
        Form::Json => {
            let sinks: Vec<Json> = found.iter().map(|(sink, answer)| to_json(sink, answer)).collect();
            let checkpoint = newest.as_ref().map(|(manifest, _)| manifest.number);
            writeln!(out, "{}", json!({ "job": plan.job.name, "checkpoint": checkpoint, "sinks": sinks }))?;
        }
        Form::Text => {
            writeln!(out, "job {} {at}", plan.job.name)?;
            for (sink, answer) in &found {
                write!(out, "{}", to_text(sink, answer))?;
            }
        }
    }
    let fine = found.iter().all(|(_, answer)| answer.as_ref().is_ok_and(|answer| answer.equal()));
    Ok(if fine { Outcome::Fine } else { Outcome::Failed })
}

/// What was found of a pair.
struct Answer {
    pair: Pair,
    source: Content,
    target: Content,
    /// Row errors of the source's rows, which the job rejects, too.
    rejected: u64,
    /// Ranges, if they were wanted, and those that differ.
    ranges: Option<(usize, Vec<content::Difference>)>,
}

impl Answer {
    /// The greatest values of the increment, where there are both.
    fn greatest(&self) -> Option<(String, String)> {
        let increment = self.pair.increment.as_ref()?;
        let shown = |content: &Content| match &content.greatest {
            Some(value) => dfc_eval::format_value(value, &increment.ty),
            None => "none".into(),
        };
        Some((shown(&self.source), shown(&self.target)))
    }

    fn equal(&self) -> bool {
        self.source.rows == self.target.rows
            && self.greatest().is_none_or(|(source, target)| source == target)
            && self.ranges.as_ref().is_none_or(|(_, different)| different.is_empty())
    }
}

/// Reads both sides.
fn compare(pair: Pair, newest: Option<&(Manifest, Checkpoints)>, hash: bool) -> Result<Answer, String> {
    let mut positions: Option<Positions> = None;
    if let Some((manifest, checkpoints)) = newest {
        let applied = checkpoints.applied().map_err(|error| error.to_string())?;
        let done = applied.of(&manifest.lineage, &pair.sink);
        let epochs = manifest.sinks.iter().filter(|sink| sink.node == pair.sink).flat_map(|sink| &sink.sealed);
        let waiting: u64 = epochs.filter(|epoch| epoch.number > done).map(|epoch| epoch.rows).sum();
        if waiting > 0 {
            return Err(format!(
                "{} rows of the checkpoint are not in the target yet: `dfc run` brings them there",
                count(waiting)
            ));
        }
        let source = manifest.sources.iter().find(|source| source.node == pair.source);
        positions = source.map(|source| source.positions.clone());
    }
    if hash && pair.key.is_none() {
        return Err(format!(
            "no column of `{}` comes from `{}` as it is, so there is no content to compare",
            pair.sink, pair.source
        ));
    }
    let wanted = Wanted::new(&pair, hash);
    // What has come since is left out: it is read first, as the next run would.
    let mut since = HashMap::new();
    if positions.as_ref().is_some_and(|positions| !positions.splits.is_empty()) {
        let cx = OpenContext { tasks: 1, positions, continues: true, ..OpenContext::default() };
        wanted.new_rows(&pair.from, &cx, &mut since).map_err(|why| format!("`{}`: {why}", pair.source))?;
    }
    let cx = || OpenContext { tasks: 1, ..OpenContext::default() };
    let side = |spec: &SourceSpec, at_source: bool, since: &mut HashMap<u64, u64>| {
        let columns = if at_source { &wanted.source } else { &wanted.target };
        read(spec, columns, &cx(), since)
    };
    let (source, rejected) = side(&pair.from, true, &mut since).map_err(|why| format!("`{}`: {why}", pair.source))?;
    let (target, _) = side(&pair.to, false, &mut HashMap::new()).map_err(|why| format!("`{}`: {why}", pair.sink))?;
    let ranges = hash.then(|| source.ranges.differences(&target.ranges));
    Ok(Answer { pair, source, target, rejected, ranges })
}

fn to_text(sink: &str, answer: &Result<Answer, String>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return format!("  `{sink}` can't be compared: {why}\n"),
    };
    let pair = &answer.pair;
    let word = |equal: bool| if equal { "equal" } else { "DIFFERENT" };
    let mut lines = vec![format!("  `{}` → `{sink}`", pair.source)];
    let mut say = |what: &str, text: String| lines.push(format!("    {what:<10}{text}"));
    let (here, there) = (answer.source.rows, answer.target.rows);
    say(
        "rows",
        match here == there {
            true => format!("{}, equal", count(here)),
            false => format!("{} in the source, {} in the target: {}", count(here), count(there), word(false)),
        },
    );
    if answer.rejected > 0 {
        say("rejected", format!("{} more rows of the source don't fit their fields", count(answer.rejected)));
    }
    if let (Some(increment), Some((source, target))) = (&pair.increment, answer.greatest()) {
        say(
            "greatest",
            match source == target {
                true => format!("`{}` {source}, equal", increment.name),
                false => {
                    format!("`{}` {source} in the source, {target} in the target: {}", increment.name, word(false))
                }
            },
        );
    }
    if let (Some((all, different)), Some(key)) = (&answer.ranges, &pair.key) {
        say(
            "content",
            match different.len() {
                0 => format!("{} ranges of `{}`, equal", count(*all as u64), key.name),
                n => format!("{} of {} ranges of `{}`: {}", count(n as u64), count(*all as u64), key.name, word(false)),
            },
        );
        for range in different.iter().take(SHOWN) {
            say("", format!("  {}", range.text(&key.ty)));
        }
        if different.len() > SHOWN {
            say("", format!("  and {} more", count((different.len() - SHOWN) as u64)));
        }
        if !pair.computed.is_empty() {
            let names: Vec<String> = pair.computed.iter().map(|name| format!("`{name}`")).collect();
            say("", format!("not compared, as the job computes them: {}", names.join(", ")));
        }
    }
    lines.join("\n") + "\n"
}

fn to_json(sink: &str, answer: &Result<Answer, String>) -> Json {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return json!({ "sink": sink, "refused": why }),
    };
    let mut value = json!({
        "sink": sink,
        "source": answer.pair.source,
        "equal": answer.equal(),
        "rows": { "source": answer.source.rows, "target": answer.target.rows, "rejected": answer.rejected },
    });
    if let (Some(increment), Some((source, target))) = (&answer.pair.increment, answer.greatest()) {
        value["greatest"] = json!({ "field": increment.name, "source": source, "target": target });
    }
    if let (Some((all, different)), Some(key)) = (&answer.ranges, &answer.pair.key) {
        let shown: Vec<Json> = different.iter().map(|range| range.json(&key.ty)).collect();
        value["content"] =
            json!({ "key": key.name, "ranges": all, "different": shown, "not_compared": answer.pair.computed });
    }
    value
}
