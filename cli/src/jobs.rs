//! What the commands about a job's checkpoints share: finding them, saying what keeps them from being read, times as people read them.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use dfc_checkpoint::{Checkpoints, Error, Place};
use dfc_ir::plan::{CheckpointSettings, Plan};

use crate::Outcome;
use crate::args::{Format, JobArgs};
use crate::report;

/// A job with its checkpoints.
pub struct Found {
    /// What is run.
    pub plan: Plan,
    /// How it takes checkpoints.
    pub settings: CheckpointSettings,
    /// Where they are.
    pub place: Place,
    /// They.
    pub checkpoints: Checkpoints,
}

/// Finds a pipeline's checkpoints and gives them to `command`; what it can't do is said here, as a run would say it.
pub fn with(args: &JobArgs, command: impl FnOnce(Found) -> Result<Outcome, Trouble>) -> Result<Outcome> {
    let plan = match report::compiler(&args.set).plan(&args.file) {
        Ok(plan) => plan,
        Err(refused) => {
            report::findings(&[&refused], Format::Human)?;
            eprintln!("{}", report::verdict(&args.file, &refused));
            return Ok(Outcome::Failed);
        }
    };
    let settings = plan.job.checkpoint.clone().unwrap_or_default();
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let found = Place::open(settings.storage.as_deref(), folder).map(|place| {
        let checkpoints = Checkpoints::new(place.clone(), &plan.job.name);
        Found { plan, settings, place, checkpoints }
    });
    match found.map_err(Trouble::Checkpoint).and_then(command) {
        Ok(outcome) => Ok(outcome),
        Err(Trouble::Checkpoint(error)) => {
            eprintln!("error[{}]: {error}\nhelp: {}\nmore: dfc explain {}", error.code(), error.help(), error.code());
            Ok(Outcome::Failed)
        }
        Err(Trouble::Other(error)) => Err(error),
    }
}

/// Why a command couldn't do what it is for.
pub enum Trouble {
    /// Something with the checkpoints.
    Checkpoint(Error),
    /// Anything else.
    Other(anyhow::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Checkpoint(error)
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Trouble::Other(error.into())
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Trouble::Other(error.into())
    }
}

/// A failure of the checkpoints as a row of a list: one line.
pub fn in_a_line(error: &Error) -> String {
    format!("error[{}]: {error}", error.code())
}

/// `2026-11-30 06:12:25 UTC`
pub fn moment(micros: i64) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // A time that no calendar has is from a damaged or hostile file; the first day is as good as any.
    let (year, month, day) = dfc_eval::calendar::civil_from_days(i32::try_from(days).unwrap_or(0));
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

/// Now, in microseconds since 1970.
pub fn now_micros() -> i64 {
    // A clock before 1970 is a broken clock; the epoch is the least surprising answer.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// How long ago: `3 s`, `12 min`, `5 h 10 min`, `3 days 2 h`.
pub fn age(micros: i64) -> String {
    let seconds = Duration::from_micros((now_micros() - micros).max(0) as u64).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        (1, _, _) => format!("1 day {} h", hours % 24),
        _ => format!("{days} days {} h", hours % 24),
    }
}
