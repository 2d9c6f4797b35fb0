//! Guarantees (`E08xx`): how often a row counts in the targets, how each source goes on after a failure, and which operator
//! weakens what the job asks for (D9).
//!
//! All of it follows from the clauses of the declarations (`resumes`, `guarantees`, `bounded`, `late`) and from the arguments
//! that these name; no connector is known by name.

use std::sync::Arc;

use dfc_ir::plan::{AggFunction, Aggregate, CheckpointSettings, Op, OptionValue};
use dfc_ir::{Options, Type};
use dfc_typeck::{ItemKey, Loc, LocalDiagnostic};

use crate::check::ItemCheck;
use crate::db::{Db, SourceFile};
use crate::items::program;
use crate::operators::{Operator, Role, table};
use crate::places;
use crate::said::said;
pub use crate::settings::Delivery;
use crate::settings::{JobCheck, job};

/// The words behind `resumes`, and what they mean.
const RESUMES: &[(&str, &str)] = &[
    ("byte_offset", "at the byte after the last whole record"),
    ("row_group", "at the row group and the row that it was at"),
    ("row_number", "at the number of the row"),
    ("keyset", "behind the key of the last row it read"),
    ("offset", "at the offset of each partition"),
];

/// What a job guarantees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarantees {
    /// How often a row counts in the targets.
    pub delivery: Delivery,
    /// Why it isn't more: one sentence for each operator that weakens it.
    pub weakened_by: Vec<String>,
    /// What happens after a failure.
    pub after_failure: String,
    /// How each source goes on.
    pub sources: Vec<End>,
    /// What each sink guarantees.
    pub sinks: Vec<End>,
    /// What a second run over the same rows may give differently.
    pub varies: Vec<String>,
    /// What is wrong with it.
    pub problems: Vec<LocalDiagnostic>,
}

/// A source or a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its name in plans: `orders`, `sink.csv`.
    pub name: String,
    /// The connector.
    pub connector: String,
    /// What it guarantees, as a sentence.
    pub words: String,
}

impl Guarantees {
    /// The guarantees as `dfc check -v` and editors show them.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("delivery: {}", self.delivery.words())];
        lines.extend(self.weakened_by.iter().map(|why| format!("  because {why}")));
        lines.push(format!("after a failure: {}", self.after_failure));
        let ends = self.sources.iter().map(|end| ("source", end)).chain(self.sinks.iter().map(|end| ("sink", end)));
        lines.extend(ends.map(|(role, end)| {
            let name = end.name.strip_prefix("sink.").unwrap_or(&end.name);
            let of = if name == end.connector { String::new() } else { format!(" ({})", end.connector) };
            format!("{role} {name}{of}: {}", end.words)
        }));
        lines.extend(self.varies.iter().map(|what| format!("not the same in every run: {what}")));
        lines
    }
}

/// An end of the graph with its declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    at: Loc,
    name: String,
    /// Its declaration.
    pub operator: &'static Operator,
    /// Its arguments.
    pub options: Options,
    /// The field by whose values it takes what is new, where a row may appear late with an earlier value, and be missed: of the fields
    /// that the clause `late` names, one that isn't a `timestamp`, by which the source can wait for whoever may still write an earlier one.
    late: Option<String>,
}

impl Known {
    /// Where it is written.
    pub fn loc(&self) -> Loc {
        self.at.clone()
    }

    /// Its file.
    pub fn path(&self) -> Option<&str> {
        self.options.get("path").and_then(OptionValue::text)
    }

    /// Its name in the plan.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its path is a pattern for many files.
    pub(crate) fn is_pattern(&self) -> bool {
        self.path().is_some_and(|path| path.contains(['*', '?', '[', '{']))
    }

    /// The standard input or output, or a device: what went through can't be had again.
    pub(crate) fn is_stream(&self) -> bool {
        self.path().is_some_and(is_stream)
    }

    /// Whether it reads the standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        self.operator.role == Role::Source && self.path().is_some_and(|path| STDIN.contains(&path))
    }

    /// Whether it writes rows to the standard output, for a program or (`print`) for a reader.
    pub(crate) fn is_stdout(&self) -> bool {
        self.operator.role == Role::Sink && (self.prints() || self.path().is_some_and(|path| STDOUT.contains(&path)))
    }

    /// Whether it shows rows to whoever reads the standard output.
    pub(crate) fn prints(&self) -> bool {
        self.operator.name == "print"
    }

    /// Whether a clause of its declaration holds for its arguments.
    pub fn has(&self, clause: &str) -> bool {
        self.operator.clause_for(clause, &self.options).is_some()
    }

    /// Whether each run replaces all that this sink's target holds.
    pub fn is_replaced(&self) -> bool {
        self.has("whole") && self.has("replaces") && !self.is_stream()
    }

    /// Why a source is read by one task, if it is.
    pub fn unsplittable(&self) -> Option<String> {
        let one_file = self.path().is_some() && !self.is_pattern();
        if self.is_stream() {
            Some(format!("`{}` is a stream", self.name))
        } else if one_file && is_compressed(&self.options) {
            Some(format!("`{}` is one compressed file", self.name))
        } else {
            None
        }
    }

    /// How a source goes on; `Err`: why it can't.
    fn resumes(&self) -> Result<String, String> {
        let name = &self.name;
        if self.is_stream() {
            return Err(format!("`{name}` reads a stream, which can't be read again"));
        }
        match self.operator.clause_for("resumes", &self.options).and_then(|words| words.first()) {
            Some(word) => {
                let known = RESUMES.iter().find(|(known, _)| known == word);
                let place =
                    known.map_or_else(|| format!("at its {}", word.replace('_', " ")), |(_, words)| (*words).into());
                let again = if is_compressed(&self.options) { ", reading again up to there" } else { "" };
                Ok(format!("goes on {place}{again}"))
            }
            None => Err(format!("`{name}` has no position to go on from")),
        }
    }

    /// Why a sink can't take rows back, so that a job with it takes no checkpoints.
    fn forgets(&self) -> Option<String> {
        let stream = self.is_stream().then(|| format!("`{}` writes to a stream", self.operator.name));
        let shows = || self.guarantees().0 < Delivery::ExactlyOnce;
        stream.or_else(|| shows().then(|| format!("`{}` can't take back what it has written", self.operator.name)))
    }

    /// What a sink guarantees.
    fn guarantees(&self) -> (Delivery, &'static str) {
        if self.is_stream() {
            return (Delivery::AtLeastOnce, "at least once: what was written to a stream can't be taken back");
        }
        match self.operator.clause_for("guarantees", &self.options).and_then(|words| words.first()).map(String::as_str)
        {
            Some("exactly_once") => (Delivery::ExactlyOnce, "exactly once"),
            Some("idempotent") => (Delivery::ExactlyOnce, "exactly once: a row that is written again is the same row"),
            _ => (Delivery::AtLeastOnce, "at least once: rows since the last checkpoint may be written again"),
        }
    }
}

/// The paths of the standard input.
const STDIN: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// The paths of the standard output.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Whether a path stands for a stream rather than a file.
pub fn is_stream(path: &str) -> bool {
    path == "-" || path.starts_with("/dev/")
}

/// Whether a file is compressed, by the arguments `compression` and `path`.
pub fn is_compressed(options: &Options) -> bool {
    let text = |name: &str| options.get(name).and_then(OptionValue::text);
    let named = |path: &str| {
        let path = path.to_lowercase();
        [".gz", ".gzip", ".zst", ".zstd"].iter().any(|end| path.ends_with(end))
    };
    match text("compression") {
        Some("auto") => text("path").is_some_and(named),
        Some(other) => other != "none",
        None => false,
    }
}

/// What the job of a program guarantees; `None` for a library.
#[salsa::tracked]
pub fn guarantees(db: &dyn Db, root: SourceFile) -> Option<Arc<Guarantees>> {
    let settings = job(db, root).as_ref()?;
    let (sources, sinks): (Vec<&Known>, Vec<&Known>) =
        known_ends(db, root).partition(|end| end.operator.role == Role::Source);
    let varies = judged(db, root).flat_map(|file| &file.varies).cloned().collect();
    Some(Arc::new(judge(settings, &sources, &sinks, on_disk(db, root, settings), varies)))
}

/// Why a job with `memory:` takes no checkpoints: it has an operator whose state may go to disk.
pub fn on_disk(db: &dyn Db, root: SourceFile, settings: &JobCheck) -> Option<String> {
    settings.job.memory?;
    let holder = judged(db, root).find_map(|file| file.holds.first())?;
    Some(format!("with limited memory, state of `{holder}` may go to disk, and no checkpoint holds that"))
}

/// The sources and sinks of a program, as far as they are sound.
pub fn known_ends(db: &dyn Db, root: SourceFile) -> impl Iterator<Item = &Known> {
    judged(db, root).flat_map(|file| &file.ends).map(Arc::as_ref)
}

fn judged(db: &dyn Db, root: SourceFile) -> impl Iterator<Item = &Arc<Judged>> {
    program(db, root).files.iter().map(move |file| judged_of(db, root, *file))
}

/// What the items of a file say to the job's guarantees. It stays the same over most edits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Judged {
    ends: Vec<Arc<Known>>,
    varies: Vec<String>,
    /// Operators that hold what they are given to the end, and can put it on disk.
    holds: Vec<String>,
}

#[salsa::tracked]
fn judged_of(db: &dyn Db, root: SourceFile, file: SourceFile) -> Arc<Judged> {
    let mut out = Judged::default();
    for said in said(db, root, file) {
        out.ends.extend_from_slice(&said.ends);
        out.varies.extend_from_slice(&said.varies);
        out.holds.extend_from_slice(&said.holds);
    }
    Arc::new(out)
}

/// The sources and sinks of an item, as far as they are sound.
pub fn ends<'a>(item: &'a ItemKey, check: &'a ItemCheck) -> impl Iterator<Item = Known> + use<'a> {
    check.nodes.iter().filter_map(move |node| {
        let (connector, role, options, schema) = match &node.op {
            Op::Source(source) => (&source.connector, Role::Source, &source.options, Some(&source.schema)),
            Op::Sink(sink) => (&sink.connector, Role::Sink, &sink.options, None),
            _ => return None,
        };
        let operator = table().get(connector, role)?;
        let late = operator.clause("late").into_iter().flatten().find_map(|param| match options.get(param) {
            Some(OptionValue::Names(names)) => names.iter().find(|name| {
                let field = schema.and_then(|schema| schema.fields.iter().find(|field| field.name == **name));
                field.is_some_and(|field| field.ty.ty != Type::Timestamp)
            }),
            _ => None,
        });
        let at = check.loc(node.site).cloned().unwrap_or_else(|| places::name_of(item));
        Some(Known { at, name: node.name.clone(), operator, options: options.clone(), late: late.cloned() })
    })
}

/// What a second run may give differently: operators that keep whichever row comes first, and floats that are added in whatever order the
/// rows come.
pub fn varying(check: &ItemCheck) -> impl Iterator<Item = String> {
    let adds_floats = |aggregate: &Aggregate| {
        use AggFunction::{Avg, Stddev, Sum, Variance};
        matches!(aggregate.function, Sum | Avg | Stddev | Variance)
            && aggregate.args.first().is_some_and(|arg| arg.ty.ty.is_float())
    };
    check.nodes.iter().filter_map(move |node| match &node.op {
        Op::Aggregate { aggregates, .. } if aggregates.iter().any(adds_floats) => Some(format!(
            "the last digits of what `{}` makes of floats: they are added in the order in which rows arrive",
            node.name
        )),
        Op::Distinct { keys, order } if order.is_empty() && !keys.is_empty() => {
            Some(format!("`{}` keeps the row that arrives first", node.name))
        }
        _ => None,
    })
}

/// Operators that hold what they are given to the end, and can put it on disk.
pub fn holding(check: &ItemCheck) -> impl Iterator<Item = String> {
    check.nodes.iter().filter_map(|node| match &node.op {
        Op::Aggregate { keys, .. } if keys.is_empty() => None,
        Op::Aggregate { .. } | Op::Distinct { .. } | Op::Sort { .. } => Some(node.name.clone()),
        _ => None,
    })
}

fn judge(
    settings: &JobCheck,
    sources: &[&Known],
    sinks: &[&Known],
    on_disk: Option<String>,
    varies: Vec<String>,
) -> Guarantees {
    let mut out = Guarantees {
        delivery: Delivery::ExactlyOnce,
        weakened_by: Vec::new(),
        after_failure: String::new(),
        sources: Vec::new(),
        sinks: Vec::new(),
        varies,
        problems: Vec::new(),
    };
    let mut beginning = on_disk;
    for source in sources {
        let words = match source.resumes() {
            Ok(words) => words,
            Err(why) => {
                beginning.get_or_insert_with(|| why.clone());
                "can't go on in the middle".into()
            }
        };
        if let Some(field) = &source.late {
            let why = format!(
                "`{}` may miss rows that appear late with an earlier `{field}`: a transaction takes it when it begins, and may end after later ones",
                source.name
            );
            weaken(&mut out, settings, Delivery::Inexact, why, source);
        }
        out.sources.push(end(source, words));
    }
    for sink in sinks {
        let (delivery, words) = sink.guarantees();
        if delivery < Delivery::ExactlyOnce {
            let why = format!("`{}` may write rows again after a failure", sink.operator.name);
            weaken(&mut out, settings, delivery, why, sink);
        }
        if let Some(why) = sink.forgets() {
            beginning.get_or_insert(why);
        }
        out.sinks.push(end(sink, words.into()));
    }
    out.after_failure = match (&settings.job.checkpoint, &beginning) {
        (None, _) => "a run starts again from the beginning (`checkpoint: off`)".into(),
        (Some(_), Some(why)) => format!("a run starts again from the beginning: {why}"),
        (Some(checkpoint), None) => resumed(checkpoint),
    };
    let endless = sources.iter().find(|s| s.operator.clause_for("bounded", &s.options).is_none());
    if let (Some(source), Some(off)) = (endless, &settings.off) {
        let message = "a job that never ends needs checkpoints: without them its rows never count as written";
        let problem = LocalDiagnostic::error("E0802", off.clone(), message, "switched off here")
            .related(source.loc(), format!("`{}` never ends", source.name))
            .help("take `checkpoint: off` out");
        out.problems.push(problem);
    }
    out
}

fn end(known: &Known, words: String) -> End {
    End { name: known.name.clone(), connector: known.operator.name.clone(), words }
}

fn resumed(checkpoint: &CheckpointSettings) -> String {
    let every = dfc_eval::format_value(
        &dfc_ir::Value::Duration(i64::try_from(checkpoint.interval_ms).unwrap_or(i64::MAX).saturating_mul(1_000)),
        &dfc_ir::Type::Duration,
    );
    let place = checkpoint.storage.as_deref().unwrap_or(".dfc");
    format!("a run goes on from the last checkpoint, taken every {every} in `{place}`")
}

/// Notes what an operator weakens, and refuses it where the job asks for more.
fn weaken(out: &mut Guarantees, settings: &JobCheck, to: Delivery, why: String, by: &Known) {
    out.delivery = out.delivery.min(to);
    if let Some((wanted, at)) = &settings.wanted
        && *wanted > to
    {
        let message = format!("this job must deliver {}, and {why}", wanted.words());
        let problem = LocalDiagnostic::error("E0801", by.loc(), message, to.words())
            .related(at.clone(), "asked for here")
            .help(match to {
                Delivery::AtLeastOnce => "write to a file or a database, or ask for less: `delivery: at_least_once`",
                _ => "take a field of type `timestamp` that the server sets as the increment, or the setting `delivery` out",
            });
        out.problems.push(problem);
    }
    out.weakened_by.push(why);
}
