//! Why a run failed: one cause, ready to be shown.

use std::fmt;
use std::path::PathBuf;

use dfc_batch::RowError;
use dfc_connect::ConnectError;

/// The one cause for which a run failed. Nothing is visible under the sinks' final names, except where [`RunError::Finish`] says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// More rows were rejected than `errors { limit, ratio }` tolerates.
    RowLimit {
        /// The rejected row that stands first, of those seen.
        first: Box<RowError>,
        /// Rows rejected until the run stopped.
        count: u64,
        /// What of `errors { limit, ratio }` was exceeded, in words: `10 rows`, `0.1 % of the rows`. `None`: the job tolerates none.
        exceeded: Option<String>,
        /// Where the rejected rows are, if they were kept.
        rejects: Option<PathBuf>,
    },
    /// An aggregate has no value (its sum overflows, say) once the tasks' shares are put together.
    Group(Box<RowError>),
    /// A connector failed.
    Connect {
        /// The operator's name.
        node: String,
        /// What it said.
        error: ConnectError,
    },
    /// A sink failed to make its result visible after others already had.
    Finish {
        /// The operator's name.
        node: String,
        /// What it said.
        error: ConnectError,
        /// The results that are visible all the same.
        visible: Vec<String>,
    },
    /// The rejected rows could not be written.
    Rejects {
        /// The file.
        path: PathBuf,
        /// What the system said.
        message: String,
        /// What to do.
        help: String,
    },
    /// The data pass a limit of the engine.
    Limit {
        /// The operator's name.
        node: String,
        /// Which limit, and what was there.
        message: String,
    },
    /// State passes the memory that the run was given, and can't go to disk.
    Memory {
        /// The operator's name.
        node: String,
        /// What is too much, and why it can't go there.
        message: String,
        /// What to do.
        help: String,
    },
    /// Checkpoints can't be taken, or the job can't go on from one.
    Checkpoint(dfc_checkpoint::Error),
    /// What a checkpoint kept of an operator's state can't be used.
    State(String),
    /// The pipeline isn't the one that took the checkpoint.
    Changed {
        /// The checkpoint's number.
        number: u64,
        /// What doesn't fit, each in a sentence.
        differences: Vec<String>,
    },
    /// What the targets have been given doesn't fit the checkpoint.
    Target {
        /// The operator's name.
        node: String,
        /// What doesn't fit.
        message: String,
        /// What to do.
        help: String,
    },
    /// A trial run (`--limit-rows`) would come between two parts of a run.
    Trial {
        /// The checkpoint from which the job goes on.
        number: u64,
    },
    /// Too many checkpoints in a row were given up.
    CheckpointsFail {
        /// How many.
        count: u32,
        /// Why the last one was.
        why: String,
        /// What helps against that.
        cure: Option<String>,
    },
    /// The run was stopped from outside.
    Cancelled,
    /// The run was stopped from outside, after a last checkpoint.
    Interrupted {
        /// Its number.
        checkpoint: u64,
    },
    /// The plan contradicts itself: an error of the program that made it.
    Plan(String),
    /// An operator broke down: an error of this program.
    Internal {
        /// The operator or stage.
        node: String,
        /// What happened.
        message: String,
    },
}

impl RunError {
    /// `R0…`: the code under which `dfc explain` has a page.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::RowLimit { first, .. } => first.code,
            RunError::Group(error) => error.code,
            RunError::Connect { error, .. } | RunError::Finish { error, .. } => error.code,
            RunError::Rejects { .. } => "R0401",
            RunError::Limit { .. } => "R0403",
            RunError::Memory { .. } => "R0404",
            RunError::Checkpoint(error) => error.code(),
            RunError::State(_) => "R0511",
            RunError::Changed { .. } => "R0512",
            RunError::Target { .. } => "R0513",
            RunError::CheckpointsFail { .. } => "R0514",
            RunError::Trial { .. } => "R0515",
            RunError::Cancelled | RunError::Interrupted { .. } => "R0402",
            RunError::Plan(_) | RunError::Internal { .. } => "R0499",
        }
    }

    /// Whether the same again may succeed: what is outside may have come back.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            RunError::Connect { error, .. } => error.code.starts_with("R02"),
            RunError::Checkpoint(error) => error.may_pass(),
            RunError::CheckpointsFail { .. } => true,
            _ => false,
        }
    }

    /// What to do about it, where something can be done.
    pub fn help(&self) -> Option<String> {
        match self {
            RunError::RowLimit { rejects: Some(path), .. } => {
                Some(format!("the rejected rows and their reasons are in `{}`", path.display()))
            }
            RunError::RowLimit { first, exceeded: Some(_), .. } => Some(format!(
                "{}, or tolerate more of them in `errors`; `to: \"./rejected\"` keeps them with their reasons",
                cure(first.code)
            )),
            RunError::RowLimit { first, .. } => Some(format!(
                "{}, or let the job go on past such rows with `errors {{ limit: 100, to: \"./rejected\" }}`",
                cure(first.code)
            )),
            RunError::Group(_) => {
                Some("filter the rows that lead there, or give the aggregate a wider type with `as`".to_owned())
            }
            RunError::Connect { error, .. } | RunError::Finish { error, .. } => error.help.clone(),
            RunError::Limit { .. } => {
                Some("filter the right side, or exchange the sides so that the smaller one stands right".to_owned())
            }
            RunError::Checkpoint(error) => Some(error.help()),
            RunError::State(_) => Some(
                "`dfc checkpoint verify FILE` looks at every byte; `dfc run FILE --allow-older` goes on from the checkpoint before, `--fresh` from the start".to_owned(),
            ),
            RunError::Changed { .. } => Some(
                "put back what was changed, or start anew with `dfc run FILE --fresh`".to_owned(),
            ),
            RunError::Target { help, .. } | RunError::Memory { help, .. } | RunError::Rejects { help, .. } => {
                Some(help.clone())
            }
            RunError::Trial { .. } => Some(
                "run the job to its end first, or try it in a copy of the pipeline, with a name and targets of its own".to_owned(),
            ),
            RunError::CheckpointsFail { cure, .. } => Some(match cure {
                Some(cure) => format!("{cure}; the last whole checkpoint stands, and the job goes on from it"),
                None => "the last whole checkpoint stands: see to the cause and run the job again".to_owned(),
            }),
            RunError::Cancelled => None,
            RunError::Interrupted { .. } => Some("run the same command again".to_owned()),
            RunError::Plan(_) | RunError::Internal { .. } => {
                Some("this is a mistake in dfc, not in your pipeline: please report it".to_owned())
            }
        }
    }
}

/// What helps against a row error, by its code.
const CURES: &[(&str, &str)] = &[
    ("R0101", "use a wider type, leave such rows out with `filter`"),
    ("R0102", "say what the result is then, as in `a / nullif(b, 0)`, leave such rows out with `filter`"),
    ("R0103", "write `as?` for null where a cast fails"),
    ("R0104", "put a value in its place with `??`, leave such rows out with `filter(… is not null)`"),
    ("R0105", "say with `if` what such rows give, leave them out with `filter`"),
    ("R0106", "correct the row or the rule"),
    ("R0107", "complete the table, write `missing: keep` or `missing: drop`"),
    ("R0108", "make the key unique in the table, write `match: first` or `match: all`"),
    ("R0199", "report this mistake in dfc"),
    ("R0310", "change the text with `replace` or `substring`, write a file in UTF-8 and with quotes"),
    (
        "R0311",
        "change the value in the pipeline, give the column a type that takes it, leave such rows out with `filter`",
    ),
];

fn cure(code: &str) -> &'static str {
    CURES.iter().find(|(known, _)| *known == code).map_or("correct the row", |(_, cure)| cure)
}

/// A row error in a sentence: `` `users.csv` line 3 (byte 120): field `age`: `abc` is not … ``.
pub(crate) fn describe(error: &RowError) -> String {
    let mut text = String::new();
    if let Some(place) = &error.place {
        text.push_str(&format!("`{}`", place.source));
        if let Some(line) = place.line {
            text.push_str(&format!(" line {line}"));
        }
        if let Some(row) = place.row {
            text.push_str(&format!(" row {row}"));
        }
        if let Some(offset) = place.offset {
            text.push_str(&format!(" (byte {offset})"));
        }
        text.push_str(": ");
    }
    // Many rules begin with the value: it is shown once.
    let value = error.value.as_ref().filter(|value| !begins_with_value(&error.rule, value));
    match (&error.field, value) {
        (Some(field), Some(value)) => text.push_str(&format!("field `{field}`, value `{value}`: ")),
        (Some(field), None) => text.push_str(&format!("field `{field}`: ")),
        (None, Some(value)) => text.push_str(&format!("value `{value}`: ")),
        (None, None) => {}
    }
    text.push_str(&error.rule);
    text
}

/// Whether a rule names the value, or the beginning of a long one, before anything else.
fn begins_with_value(rule: &str, value: &str) -> bool {
    let Some((shown, _)) = rule.strip_prefix('`').and_then(|rest| rest.split_once("` ")) else { return false };
    shown == value || shown.strip_suffix('…').is_some_and(|start| value.starts_with(start))
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::RowLimit { first, count, exceeded, .. } => {
                if !first.node.is_empty() {
                    write!(f, "`{}`: ", first.node)?;
                }
                write!(f, "{}", describe(first))?;
                match (count, exceeded.as_deref()) {
                    (0 | 1, None) => Ok(()),
                    (1, Some(tolerated)) => write!(f, "; 1 row was rejected, tolerated: {tolerated}"),
                    (_, tolerated) => {
                        write!(f, "; {count} rows were rejected, tolerated: {}", tolerated.unwrap_or("none"))
                    }
                }
            }
            RunError::Group(error) => write!(f, "`{}`: {}", error.node, describe(error)),
            RunError::Connect { node, error } => write!(f, "`{node}`: {}", error.message),
            RunError::Finish { node, error, visible } => {
                write!(f, "`{node}`: {}; already written: {}", error.message, visible.join(", "))
            }
            RunError::Rejects { path, message, .. } => {
                write!(f, "the rejected rows can't be written to `{}`: {message}", path.display())
            }
            RunError::Limit { node, message } | RunError::Memory { node, message, .. } => {
                write!(f, "`{node}`: {message}")
            }
            RunError::Checkpoint(error) => write!(f, "{error}"),
            RunError::State(message) => write!(f, "the checkpoint's state can't be used: {message}"),
            RunError::Changed { number, differences } => {
                write!(f, "the pipeline is not the one that took checkpoint {number}: {}", differences.join("; "))
            }
            RunError::Target { node, message, .. } => write!(f, "`{node}`: {message}"),
            RunError::Trial { number } => write!(
                f,
                "a trial run can't come between: the job goes on from checkpoint {number}, and its targets would be given the trial's rows too"
            ),
            RunError::CheckpointsFail { count: 1, why, .. } => write!(f, "a checkpoint couldn't be taken: {why}"),
            RunError::CheckpointsFail { count, why, .. } => {
                write!(f, "{count} checkpoints in a row couldn't be taken, the last one because {why}")
            }
            RunError::Interrupted { checkpoint } => {
                write!(f, "interrupted; the job goes on from checkpoint {checkpoint}")
            }
            RunError::Cancelled => f.write_str("interrupted; no result was written"),
            RunError::Plan(message) => write!(f, "the plan can't be run: {message}"),
            RunError::Internal { node, message } => write!(f, "`{node}` broke down: {message}"),
        }
    }
}

impl std::error::Error for RunError {}
