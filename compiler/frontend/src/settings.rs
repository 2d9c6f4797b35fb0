//! A job's settings, checked against one table and put into the plan's job (D9).

use std::sync::Arc;

use dfc_grammar::ast::{Expr, ExprKind, ItemKind, Setting, SettingValue};
use dfc_ir::plan::{ErrorPolicy, Job};
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
    /// A share between 0 and 1.
    Share,
    /// A length of time, longer than nothing.
    Duration,
    /// A text that isn't empty.
    Text,
}

/// The settings: (block, name, what it takes). An empty block is the job itself.
const SETTINGS: &[(&str, &str, Takes)] = &[
    ("", "parallelism", Takes::Count(1, 1024)),
    ("errors", "limit", Takes::Count(0, i64::MAX as i128)),
    ("errors", "ratio", Takes::Share),
    ("errors", "to", Takes::Text),
    ("checkpoint", "interval", Takes::Duration),
    ("checkpoint", "timeout", Takes::Duration),
    ("checkpoint", "retain", Takes::Count(1, 1000)),
    ("checkpoint", "storage", Takes::Text),
];

/// Settings of the language that this version doesn't have.
const LATER: &[&str] = &["delivery", "restart", "schedule"];

/// Other names of settings, and what they are called here.
const FOREIGN: &[(&str, &str)] = &[
    ("channel", "parallelism"),
    ("threads", "parallelism"),
    ("workers", "parallelism"),
    ("errorLimit", "errors { limit: … }"),
    ("errorLimit", "limit"),
    ("record", "limit"),
    ("percentage", "ratio"),
    ("dir", "to"),
    ("path", "storage"),
];

/// The job and what is wrong with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobCheck {
    /// For the plan.
    pub job: Job,
    /// What was found.
    pub diagnostics: Vec<LocalDiagnostic>,
}

/// Checks the root file's job; `None` for a library.
#[salsa::tracked]
pub fn job(db: &dyn Db, root: SourceFile) -> Option<Arc<JobCheck>> {
    let item = *program(db, root).in_root(db, Namespace::Job).first()?;
    Some(job_check(db, root, item).clone())
}

#[salsa::tracked]
fn job_check<'db>(db: &'db dyn Db, root: SourceFile, item: ItemNode<'db>) -> Arc<JobCheck> {
    let mut check = JobCheck::default();
    if let ItemKind::Job(declared) = item.kind(db).as_ref() {
        check.job.name.clone_from(&declared.name.text);
        let mut sites = NoSites;
        let globals = globals(db, root);
        let checker = Checker::new(FunctionTable::standard(), globals, item.key(db).clone(), Scope::None, &mut sites);
        let mut settings = Settings { checker, job: check.job, limit_given: false };
        settings.block("", &declared.settings);
        // A ratio alone is the only bound; without either no rejected row is tolerated.
        if !settings.limit_given && settings.job.errors.ratio_ppm.is_none() {
            settings.job.errors.limit = Some(0);
        }
        check = JobCheck { job: settings.job, diagnostics: settings.checker.diagnostics };
    }
    Arc::new(check)
}

struct Settings<'a> {
    checker: Checker<'a>,
    job: Job,
    limit_given: bool,
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
                    if name == "checkpoint" {
                        self.no_checkpoints(setting);
                    }
                    if let ("errors", [to]) = (name, inner.as_slice())
                        && to.name.text == "to"
                    {
                        self.nothing_kept(to);
                    }
                    self.block(name, inner);
                }
                (SettingValue::Expr(Expr { kind: ExprKind::Name(word), .. }), true)
                    if name == "checkpoint" && word == "off" => {}
                (SettingValue::Expr(value), true) => {
                    let problem = LocalDiagnostic::error(
                        "E0604",
                        self.loc(value.span),
                        format!("`{name}` takes a block of settings"),
                        "not a block",
                    )
                    .help(format!("write `{name} {{ {}: … }}`", first_of(name)));
                    self.checker.diagnostics.push(problem);
                }
                (SettingValue::Expr(value), false) => self.setting(block, setting, Some(value)),
                (SettingValue::Block(_), false) => self.setting(block, setting, None),
            }
        }
    }

    fn no_checkpoints(&mut self, setting: &Setting) {
        let problem = LocalDiagnostic::warning(
            "W0201",
            self.loc(setting.name.span),
            "this version does not take checkpoints yet: a run that is interrupted starts again from the beginning",
            "checked, and not used yet",
        )
        .help("write `checkpoint: off` to say that this is meant");
        self.checker.diagnostics.push(problem);
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
        let Some((_, _, takes)) = SETTINGS.iter().find(|(b, n, _)| *b == block && *n == name) else {
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
        if let Some(value) = self.value(name, *takes, value) {
            self.keep(block, name, value);
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
        let mut names: Vec<&str> = SETTINGS.iter().filter(|(b, ..)| *b == block).map(|(_, n, _)| *n).collect();
        if block.is_empty() {
            names.extend(["errors", "checkpoint"]);
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
        let ty = match takes {
            Takes::Count(..) => Type::INT64,
            Takes::Share => Type::Float64,
            Takes::Duration => Type::Duration,
            Takes::Text => Type::String,
        };
        let target = Target::Parameter { operator: "job".into(), name: name.into() };
        let value = self.checker.constant(e, &DataType::of(ty.clone()), &target)?;
        let expected = match (takes, &value) {
            (Takes::Count(low, high), Value::Int(n)) if !(low..=high).contains(n) => match high {
                high if high >= i64::MAX.into() => format!("{low} or more"),
                _ => format!("{low} to {high}"),
            },
            (Takes::Share, Value::Float(share)) if !(0.0..=1.0).contains(share) => "a share from 0 to 1".into(),
            (Takes::Duration, Value::Duration(micros)) if *micros <= 0 => {
                "a time longer than nothing, such as `30s`".into()
            }
            (Takes::Text, Value::Str(text)) if text.is_empty() => "a text that is not empty".into(),
            _ => return Some(value),
        };
        let at = self.loc(e.span);
        let given = match &value {
            Value::Str(_) => "an empty one".to_owned(),
            other => dfc_eval::format_value(other, &ty),
        };
        self.checker.diagnostics.push(LocalDiagnostic::error(
            "E0606",
            at,
            format!("`{name}` takes {expected}, not {given}"),
            "out of range",
        ));
        None
    }

    fn keep(&mut self, block: &str, name: &str, value: Value<'static>) {
        let ErrorPolicy { limit, ratio_ppm, to } = &mut self.job.errors;
        match (block, name, value) {
            ("", "parallelism", Value::Int(n)) => self.job.parallelism = usize::try_from(n).ok(),
            ("errors", "limit", Value::Int(n)) => {
                *limit = u64::try_from(n).ok();
                self.limit_given = true;
            }
            ("errors", "ratio", Value::Float(share)) => *ratio_ppm = Some((share * 1e6).round() as u64),
            ("errors", "to", Value::Str(path)) => *to = Some(path.into_owned()),
            // The rest belongs to checkpoints.
            _ => {}
        }
    }
}

fn first_of(block: &str) -> &'static str {
    SETTINGS.iter().find(|(b, ..)| *b == block).map_or("", |(_, name, _)| *name)
}
