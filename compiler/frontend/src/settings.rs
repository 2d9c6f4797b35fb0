//! A job's settings, checked against one table and put into the plan's job (D9).

use std::sync::Arc;

use dfc_grammar::ast::{Expr, ExprKind, ItemKind, Literal, Setting, SettingValue};
use dfc_ir::plan::{ErrorPolicy, Job, Rerun};
use dfc_ir::{DataType, Type, Value};
use dfc_typeck::nearest::nearest;
use dfc_typeck::{Checker, FunctionTable, Loc, LocalDiagnostic, Namespace, NoSites, Scope, Target};

use crate::db::{Db, SourceFile};
use crate::globals::globals;
use crate::items::{ItemNode, program};

/// What a setting takes.
#[derive(Clone, Copy)]
enum Takes {
    /// An integer between these.
    Count(i128, i128),
    /// A number of bytes: `64MB`.
    Bytes,
    /// A share between 0 and 1.
    Share,
    /// A length of time, a millisecond at least.
    Duration,
    /// A text that isn't empty.
    Text,
    /// A folder, or `s3://bucket/prefix`.
    Storage,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The settings: (block, name, what it takes, what it is for). An empty block is the job itself.
const SETTINGS: &[(&str, &str, Takes, &str)] = &[
    ("", "parallelism", Takes::Count(1, 1024), "Tasks of a stage; without it as many as the machine has cores."),
    (
        "",
        "memory",
        Takes::Bytes,
        "What a run may take, about: state that passes half of it goes to disk; as much as there is without it.",
    ),
    (
        "",
        "delivery",
        Takes::Word(&["exactly_once", "at_least_once"]),
        "What the job must guarantee: a weaker source or sink is an error.",
    ),
    (
        "",
        "rerun",
        Takes::Word(&["continue", "restart"]),
        "What a run after a successful one does: goes on with what is new, or computes everything anew.",
    ),
    ("errors", "limit", Takes::Count(0, i64::MAX as i128), "Rejected rows that are tolerated; one more stops the job."),
    ("errors", "ratio", Takes::Share, "The largest share of rejected rows that is tolerated."),
    ("errors", "to", Takes::Text, "The folder that keeps the rejected rows."),
    ("checkpoint", "interval", Takes::Duration, "The time between two checkpoints; 30s without it."),
    ("checkpoint", "timeout", Takes::Duration, "A checkpoint that takes longer is abandoned; 10m without it."),
    ("checkpoint", "retain", Takes::Count(1, 1000), "How many of the newest checkpoints are kept; 3 without it."),
    (
        "checkpoint",
        "tolerate",
        Takes::Count(0, 1000),
        "How many checkpoints in a row may be abandoned before the job stops; 3 without it.",
    ),
    ("checkpoint", "storage", Takes::Storage, "Where checkpoints are kept; without it `.dfc` beside the pipeline."),
    (
        "checkpoint",
        "max_epoch",
        Takes::Bytes,
        "A checkpoint is taken early when the sinks have so many bytes waiting; 256MB without it.",
    ),
    (
        "checkpoint",
        "max_unapplied",
        Takes::Count(1, 1000),
        "How many checkpoints may wait for their target before the sources are held back; 4 without it.",
    ),
    ("checkpoint", "quota", Takes::Bytes, "The most that the checkpoints of the job may take; no limit without it."),
    ("restart", "attempts", Takes::Count(0, 1000), "How often a job that failed starts again by itself; 0 without it."),
    (
        "restart",
        "backoff",
        Takes::Duration,
        "The time before the first attempt, doubled for each further one; 1s without it.",
    ),
];

/// Blocks that can be switched off with `off`.
const SWITCHES: &[&str] = &["checkpoint", "restart"];

/// Settings of the language that this version doesn't have.
const LATER: &[&str] = &["schedule"];

/// Other names of settings, and what they are called here.
const FOREIGN: &[(&str, &str)] = &[
    ("channel", "parallelism"),
    ("threads", "parallelism"),
    ("workers", "parallelism"),
    ("memory_limit", "memory"),
    ("max_memory", "memory"),
    ("errorLimit", "errors { limit: … }"),
    ("errorLimit", "limit"),
    ("record", "limit"),
    ("percentage", "ratio"),
    ("dir", "to"),
    ("path", "storage"),
];

/// How often a row of the sources counts in the targets, whatever fails on the way. The stronger the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Delivery {
    /// Rows may be missed, or come more than once.
    Inexact,
    /// Every row, some of them twice after a failure.
    AtLeastOnce,
    /// Every row once.
    ExactlyOnce,
}

impl Delivery {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Delivery::Inexact => "not exact",
            Delivery::AtLeastOnce => "at least once",
            Delivery::ExactlyOnce => "exactly once",
        }
    }
}

/// The job and what is wrong with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobCheck {
    /// For the plan.
    pub job: Job,
    /// The delivery that is asked for, and where.
    pub wanted: Option<(Delivery, Loc)>,
    /// Where checkpoints are switched off.
    pub off: Option<Loc>,
    /// Where each sound setting is given: block, name, place.
    given: Vec<(String, String, Loc)>,
    /// What was found.
    pub diagnostics: Vec<LocalDiagnostic>,
}

impl JobCheck {
    /// Where a setting is given.
    pub fn place(&self, block: &str, name: &str) -> Option<Loc> {
        self.given.iter().find(|(b, n, _)| b == block && n == name).map(|(.., at)| at.clone())
    }

    /// Where the first setting of a block is given.
    pub fn place_in(&self, block: &str) -> Option<Loc> {
        self.given.iter().find(|(b, ..)| b == block).map(|(.., at)| at.clone())
    }
}

/// Checks the root file's job; `None` for a library.
#[salsa::tracked]
pub fn job(db: &dyn Db, root: SourceFile) -> Option<Arc<JobCheck>> {
    let item = *program(db, root).in_root(db, Namespace::Job).first()?;
    Some(job_check(db, root, item).clone())
}

#[salsa::tracked]
fn job_check(db: &dyn Db, root: SourceFile, item: ItemNode) -> Arc<JobCheck> {
    let mut check = JobCheck::default();
    if let ItemKind::Job(declared) = item.kind(db).as_ref() {
        check.job.name.clone_from(&declared.name.text);
        let mut sites = NoSites;
        let globals = globals(db, root);
        let checker = Checker::new(FunctionTable::standard(), globals, item.key(db).clone(), Scope::None, &mut sites);
        let mut settings =
            Settings { checker, job: check.job, limit_given: false, wanted: None, off: None, given: Vec::new() };
        settings.block("", &declared.settings);
        settings.together(&declared.settings);
        // A ratio alone is the only bound; without either no rejected row is tolerated.
        if !settings.limit_given && settings.job.errors.ratio_ppm.is_none() {
            settings.job.errors.limit = Some(0);
        }
        check = JobCheck {
            job: settings.job,
            wanted: settings.wanted,
            off: settings.off,
            given: settings.given,
            diagnostics: settings.checker.diagnostics,
        };
    }
    Arc::new(check)
}

struct Settings<'a> {
    checker: Checker<'a>,
    job: Job,
    limit_given: bool,
    wanted: Option<(Delivery, Loc)>,
    off: Option<Loc>,
    given: Vec<(String, String, Loc)>,
}

impl Settings<'_> {
    fn loc(&self, span: dfc_grammar::ast::Span) -> Loc {
        Loc { item: self.checker.item.clone(), span }
    }

    fn block(&mut self, block: &str, settings: &[Setting]) {
        for (position, setting) in settings.iter().enumerate() {
            let name = setting.name.text.as_str();
            if let Some(first) = settings[..position].iter().find(|s| s.name.text == name) {
                let problem = LocalDiagnostic::error(
                    "E0603",
                    self.loc(setting.span),
                    format!("`{name}` is given twice"),
                    "again",
                )
                .related(self.loc(first.span), "first given here")
                .help("take one of both out");
                self.checker.diagnostics.push(problem);
                continue;
            }
            let is_block = block.is_empty() && SETTINGS.iter().any(|(b, ..)| *b == name);
            match (&setting.value, is_block) {
                (SettingValue::Block(inner), true) => {
                    if let ("errors", [to]) = (name, inner.as_slice())
                        && to.name.text == "to"
                    {
                        self.nothing_kept(to);
                    }
                    self.block(name, inner);
                }
                (SettingValue::Expr(Expr { kind: ExprKind::Name(word), .. }), true)
                    if SWITCHES.contains(&name) && word == "off" =>
                {
                    if name == "checkpoint" {
                        self.job.checkpoint = None;
                        self.off = Some(self.loc(setting.span));
                    }
                }
                (SettingValue::Expr(value), true) => {
                    let problem = LocalDiagnostic::error(
                        "E0604",
                        self.loc(value.span),
                        format!("`{name}` takes a block of settings"),
                        "not a block",
                    )
                    .help(match &value.kind {
                        ExprKind::Record(_) => format!("leave the `:` out: `{name} {{ {}: … }}`", first_of(name)),
                        ExprKind::Literal(Literal::Bool(false)) if SWITCHES.contains(&name) => {
                            format!("write `{name}: off`")
                        }
                        _ => format!("write `{name} {{ {}: … }}`", first_of(name)),
                    });
                    self.checker.diagnostics.push(problem);
                }
                (SettingValue::Expr(value), false) => self.setting(block, setting, Some(value)),
                (SettingValue::Block(_), false) => self.setting(block, setting, None),
            }
        }
    }

    fn nothing_kept(&mut self, to: &Setting) {
        let problem = LocalDiagnostic::warning(
            "W0202",
            self.loc(to.name.span),
            "no rejected row is tolerated here, so none is kept: the first one stops the job",
            "has no effect alone",
        )
        .help("say how many are tolerated: `limit: 100`, or as a share of the rows `ratio: 0.001`");
        self.checker.diagnostics.push(problem);
    }

    fn setting(&mut self, block: &str, setting: &Setting, value: Option<&Expr>) {
        let name = setting.name.text.as_str();
        let Some((_, _, takes, _)) = SETTINGS.iter().find(|(b, n, ..)| *b == block && *n == name) else {
            self.unknown(block, setting);
            return;
        };
        let Some(value) = value else {
            let problem = LocalDiagnostic::error(
                "E0604",
                self.loc(setting.span),
                format!("`{name}` takes a value, not a block"),
                "a block",
            )
            .help(format!("write `{name}: …`"));
            self.checker.diagnostics.push(problem);
            return;
        };
        let at = self.loc(setting.span);
        if let Some(value) = self.value(name, *takes, value) {
            self.given.push((block.to_string(), name.to_string(), at.clone()));
            self.keep(block, name, value, at);
        }
    }

    fn unknown(&mut self, block: &str, setting: &Setting) {
        let name = setting.name.text.as_str();
        let at = self.loc(setting.name.span);
        if LATER.contains(&name) && block.is_empty() {
            let problem = LocalDiagnostic::error(
                "E0220",
                at,
                format!("the setting `{name}` is not available in this version"),
                "not available yet",
            )
            .help("take it out");
            self.checker.diagnostics.push(problem);
            return;
        }
        let place = if block.is_empty() { "a job".to_string() } else { format!("`{block}`") };
        let mut names: Vec<&str> = SETTINGS.iter().filter(|(b, ..)| *b == block).map(|(_, n, ..)| *n).collect();
        if block.is_empty() {
            names.extend(blocks());
        }
        let problem = LocalDiagnostic::error(
            "E0209",
            at.clone(),
            format!("`{name}` is not a setting of {place}"),
            "unknown setting",
        );
        let foreign =
            FOREIGN.iter().find(|(theirs, ours)| *theirs == name && names.iter().any(|n| ours.starts_with(n)));
        let problem = match (foreign, nearest(name, names.iter().copied())) {
            (Some((_, ours)), _) => problem.help(format!("it is called `{ours}` here")),
            (None, Some(near)) => {
                problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, near)
            }
            (None, None) => problem.note(format!("{place} has {}", crate::bind::listed(&names))),
        };
        self.checker.diagnostics.push(problem);
    }

    fn value(&mut self, name: &str, takes: Takes, e: &Expr) -> Option<Value<'static>> {
        if let Takes::Word(words) = takes {
            return self.word(name, words, e);
        }
        let ty = takes.ty()?;
        let target = Target::Parameter { operator: "job".into(), name: name.into() };
        self.checker.unknown_values = false;
        let value = self.checker.constant(e, &DataType::of(ty.clone()), &target)?;
        // Of a parameter that has no value yet nothing is known but its type.
        if self.checker.unknown_values {
            return Some(value);
        }
        let expected = match (takes, &value) {
            (Takes::Count(low, high), Value::Int(n)) if !(low..=high).contains(n) => match high {
                high if high >= i64::MAX.into() => format!("{low} or more"),
                _ => format!("{low} to {high}"),
            },
            (Takes::Bytes, Value::Int(n)) if *n < 1 => "a number of bytes, such as `256MB`".into(),
            (Takes::Share, Value::Float(share)) if !(0.0..=1.0).contains(share) => "a share from 0 to 1".into(),
            (Takes::Duration, Value::Duration(micros)) if *micros < MILLISECOND => {
                "a time of a millisecond at least, such as `30s`".into()
            }
            (Takes::Text | Takes::Storage, Value::Str(text)) if text.is_empty() => "a text that is not empty".into(),
            (Takes::Text | Takes::Storage, Value::Str(text)) if text.contains('\0') => {
                "a text without NUL characters".into()
            }
            (Takes::Storage, Value::Str(text)) if text.contains("://") && !is_bucket(text) => {
                "a folder or `s3://bucket/prefix`".into()
            }
            _ => return Some(value),
        };
        let given = match &value {
            Value::Str(text) if text.is_empty() => "an empty one".to_owned(),
            Value::Str(text) if text.contains('\0') => format!("`{}`", text.escape_debug()),
            other => dfc_eval::format_value(other, &ty),
        };
        self.out_of_range(e, format!("`{name}` takes {expected}, not {given}"));
        None
    }

    fn out_of_range(&mut self, e: &Expr, message: String) {
        let problem = LocalDiagnostic::error("E0606", self.loc(e.span), message, "out of range");
        self.checker.diagnostics.push(problem);
    }

    fn word(&mut self, name: &str, words: &'static [&'static str], e: &Expr) -> Option<Value<'static>> {
        let at = self.loc(e.span);
        let listed = crate::bind::listed(words);
        let written = match &e.kind {
            ExprKind::Error => return None,
            ExprKind::Name(word) => match words.iter().find(|known| *known == word) {
                Some(word) => return Some(Value::string(*word)),
                None => Some(word.as_str()),
            },
            _ => None,
        };
        let problem = LocalDiagnostic::error(
            "E0605",
            at.clone(),
            match written {
                Some(word) => format!("`{word}` is not a value of `{name}`"),
                None => format!("`{name}` takes a bare name"),
            },
            "not one of its values",
        )
        .note(format!("`{name}` is one of {listed}"));
        let near = written.and_then(|word| nearest(word, words.iter().copied()));
        self.checker.diagnostics.push(match near {
            Some(near) => problem.help(format!("did you mean `{near}`?")).fix(format!("write `{near}`"), at, near),
            None => problem.help(format!("write `{name}: {}`", words[0])),
        });
        None
    }

    fn keep(&mut self, block: &str, name: &str, value: Value<'static>, at: Loc) {
        let ErrorPolicy { limit, ratio_ppm, to } = &mut self.job.errors;
        let restart = &mut self.job.restart;
        let checkpoint = self.job.checkpoint.get_or_insert_default();
        match (block, name, value) {
            ("", "parallelism", Value::Int(n)) => self.job.parallelism = usize::try_from(n).ok(),
            ("", "memory", Value::Int(n)) => self.job.memory = Some(clamped(n)),
            ("", "delivery", Value::Str(word)) => {
                let wanted = if word == "exactly_once" { Delivery::ExactlyOnce } else { Delivery::AtLeastOnce };
                self.wanted = Some((wanted, at));
            }
            ("", "rerun", Value::Str(word)) => {
                self.job.rerun = Some(if word == "continue" { Rerun::Continue } else { Rerun::Restart });
            }
            ("errors", "limit", Value::Int(n)) => {
                *limit = u64::try_from(n).ok();
                self.limit_given = true;
            }
            ("errors", "ratio", Value::Float(share)) => *ratio_ppm = Some((share * 1e6).round() as u64),
            ("errors", "to", Value::Str(path)) => *to = Some(path.into_owned()),
            ("checkpoint", "interval", Value::Duration(micros)) => checkpoint.interval_ms = milliseconds(micros),
            ("checkpoint", "timeout", Value::Duration(micros)) => checkpoint.timeout_ms = milliseconds(micros),
            ("checkpoint", "retain", Value::Int(n)) => checkpoint.retain = clamped(n),
            ("checkpoint", "tolerate", Value::Int(n)) => checkpoint.tolerate = clamped(n),
            ("checkpoint", "storage", Value::Str(place)) => checkpoint.storage = Some(place.into_owned()),
            ("checkpoint", "max_epoch", Value::Int(n)) => checkpoint.max_epoch_bytes = clamped(n),
            ("checkpoint", "max_unapplied", Value::Int(n)) => checkpoint.max_unapplied = clamped(n),
            ("checkpoint", "quota", Value::Int(n)) => checkpoint.quota_bytes = Some(clamped(n)),
            ("restart", "attempts", Value::Int(n)) => restart.attempts = clamped(n),
            ("restart", "backoff", Value::Duration(micros)) => restart.backoff_ms = milliseconds(micros),
            // The table and this list are tested against each other.
            _ => {}
        }
    }

    /// Settings that contradict each other.
    fn together(&mut self, settings: &[Setting]) {
        let Some(checkpoint) = &self.job.checkpoint else { return };
        let Some(quota) = checkpoint.quota_bytes.filter(|quota| *quota < checkpoint.max_epoch_bytes) else { return };
        let inner = settings.iter().filter_map(|s| match &s.value {
            SettingValue::Block(inner) if s.name.text == "checkpoint" => Some(inner),
            _ => None,
        });
        let Some(setting) = inner.flatten().find(|s| s.name.text == "quota") else { return };
        let message = format!(
            "`quota` of {quota} bytes is less than one checkpoint may hold: `max_epoch` is {} bytes",
            checkpoint.max_epoch_bytes
        );
        let problem = LocalDiagnostic::error("E0606", self.loc(setting.span), message, "too little")
            .help("give more, or a smaller `max_epoch`");
        self.checker.diagnostics.push(problem);
    }
}

impl Takes {
    /// The type of the value; `None` for words.
    fn ty(self) -> Option<Type> {
        Some(match self {
            Takes::Count(..) | Takes::Bytes => Type::INT64,
            Takes::Share => Type::Float64,
            Takes::Duration => Type::Duration,
            Takes::Text | Takes::Storage => Type::String,
            Takes::Word(_) => return None,
        })
    }

    fn words(self) -> String {
        match self {
            Takes::Count(..) => "a whole number".into(),
            Takes::Bytes => "a number of bytes, `64MB`".into(),
            Takes::Share => "a share from 0 to 1".into(),
            Takes::Duration => "a length of time, `30s`".into(),
            Takes::Text => "a text".into(),
            Takes::Storage => "a folder or `s3://bucket/prefix`".into(),
            Takes::Word(words) => crate::bind::listed(words),
        }
    }
}

/// `s3+http` says that the service may be spoken to in plain text.
fn is_bucket(text: &str) -> bool {
    let Some(place) = text.strip_prefix("s3://").or_else(|| text.strip_prefix("s3+http://")) else { return false };
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let in_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let sound = |part: &str| !matches!(part, "." | "..") && !part.contains(char::is_control);
    !bucket.is_empty() && bucket.bytes().all(in_names) && prefix.split('/').all(sound)
}

/// In microseconds.
const MILLISECOND: i64 = 1_000;

fn milliseconds(micros: i64) -> u64 {
    (micros / MILLISECOND).unsigned_abs()
}

/// A number whose range was checked.
fn clamped<T: TryFrom<i128> + From<u32>>(n: i128) -> T {
    T::try_from(n).unwrap_or_else(|_| T::from(u32::MAX))
}

fn first_of(block: &str) -> &'static str {
    SETTINGS.iter().find(|(b, ..)| *b == block).map_or("", |(_, name, ..)| *name)
}

/// The names of the blocks.
fn blocks() -> Vec<&'static str> {
    let mut names: Vec<&str> = SETTINGS.iter().map(|(block, ..)| *block).filter(|block| !block.is_empty()).collect();
    names.dedup();
    names
}

/// A setting that a block may hold, for editors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// What it takes, in words.
    pub takes: String,
    /// What it is for; empty for blocks.
    pub doc: &'static str,
    /// Whether it is a block of settings.
    pub is_block: bool,
    /// The type of its value; `None` for blocks and for names.
    pub ty: Option<Type>,
    /// The words that it takes, where it takes words.
    pub values: &'static [&'static str],
}

/// The settings of a block; the empty block is the job itself.
pub fn of_block(block: &str) -> Vec<Known> {
    let own = SETTINGS.iter().filter(|(of, ..)| *of == block);
    let mut known: Vec<Known> = own
        .map(|(_, name, takes, doc)| {
            let values = if let Takes::Word(words) = takes { *words } else { &[] };
            Known { name, takes: takes.words(), doc, is_block: false, ty: takes.ty(), values }
        })
        .collect();
    if block.is_empty() {
        known.extend(blocks().into_iter().map(|name| {
            let (off, values): (_, &'static [_]) =
                if SWITCHES.contains(&name) { (", or `off`", &["off"]) } else { ("", &[]) };
            Known { name, takes: format!("a block of settings{off}"), doc: "", is_block: true, ty: None, values }
        }));
    }
    known
}
