//! `dfc status`: how a job stands with its checkpoints, at a glance (D17, F2, A6, A9).

use std::time::Duration;

use anyhow::Result;
use dfc_checkpoint::{Applied, Error, History, Holder, Kind, Manifest};
use serde_json::{Value, json};

use crate::Outcome;
use crate::args::{Form, StatusArgs};
use crate::checkpoint::plural;
use crate::cost::advice;
use crate::jobs::{self, Found, Trouble};
use crate::summary::{bytes, count, duration, rows};

/// A last checkpoint that is older than so many intervals is worth a warning.
const OLD: u64 = 10;

/// Everything that is shown.
struct Status {
    job: String,
    place: String,
    running: Option<Option<Holder>>,
    newest: Option<Manifest>,
    before: Option<Manifest>,
    damaged: Vec<Error>,
    kept: usize,
    savepoints: usize,
    used: u64,
    quota: Option<u64>,
    interval_ms: u64,
    history: History,
    applied: Applied,
}

/// Runs the command.
pub fn status(args: &StatusArgs) -> Result<Outcome> {
    jobs::with(&args.job, |found| {
        let status = Status::read(&found)?;
        match args.form {
            Form::Text => print!("{}", status.text()),
            Form::Json => println!("{}", serde_json::to_string_pretty(&status.json())?),
        }
        Ok(if status.damaged.is_empty() { Outcome::Fine } else { Outcome::Failed })
    })
}

impl Status {
    fn read(found: &Found) -> Result<Status, Trouble> {
        let at = &found.checkpoints;
        let kept = at.kept()?;
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        for (_, manifest) in at.manifests()? {
            match manifest {
                Ok(manifest) => whole.push(manifest),
                Err(error) => damaged.push(error),
            }
        }
        let savepoints = whole.iter().filter(|m| m.kind == Kind::Savepoint || kept.contains_key(&m.number)).count();
        let count = whole.len();
        let newest = whole.pop();
        Ok(Status {
            job: at.job().to_owned(),
            place: at.describe(),
            running: at.running()?,
            before: whole.pop().filter(|before| newest.as_ref().is_some_and(|newest| newest.lineage == before.lineage)),
            newest,
            damaged,
            kept: count,
            savepoints,
            used: at.used_bytes()?,
            quota: found.settings.quota_bytes,
            interval_ms: found.settings.interval_ms,
            history: at.history()?,
            applied: at.applied()?,
        })
    }

    /// Rows of a second between the last two checkpoints: what a second of work is worth.
    fn rows_per_second(&self) -> Option<f64> {
        let (newest, before) = (self.newest.as_ref()?, self.before.as_ref()?);
        let rows = newest.counters.rows_in.checked_sub(before.counters.rows_in)?;
        let micros = newest.created_micros.checked_sub(before.created_micros).filter(|micros| *micros > 0)?;
        Some(rows as f64 / (micros as f64 / 1e6))
    }

    /// Seconds since the last checkpoint, and the rows that are read again if the process died now: only while it runs.
    fn at_stake(&self) -> Option<(u64, Option<u64>)> {
        let newest = self.newest.as_ref().filter(|_| self.running.is_some())?;
        let seconds = (jobs::now_micros() - newest.created_micros).max(0) as u64 / 1_000_000;
        Some((seconds, self.rows_per_second().map(|rate| (rate * seconds as f64) as u64)))
    }

    /// By sink: rows and bytes that are part of a checkpoint and not in the target yet.
    fn unapplied(&self) -> Vec<(&str, u64, u64, u64)> {
        let Some(newest) = &self.newest else { return Vec::new() };
        let waiting = newest.sinks.iter().map(|sink| {
            let done = self.applied.of(&newest.lineage, &sink.node);
            let open = sink.sealed.iter().filter(|epoch| epoch.number > done);
            let (rows, bytes) = open.fold((0, 0), |sum, epoch| (sum.0 + epoch.rows, sum.1 + epoch.bytes));
            (sink.node.as_str(), rows, bytes, done)
        });
        waiting.filter(|(_, rows, ..)| *rows > 0).collect()
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("job {} in {}", self.job, self.place)];
        let mut say = |label: &str, text: String| lines.push(format!("  {label:<11}{text}"));
        say(
            "running",
            match &self.running {
                None => "no".into(),
                Some(None) => "yes".into(),
                Some(Some(holder)) => {
                    format!("process {} on {}, for {}", holder.pid, holder.host, jobs::age(holder.since_micros))
                }
            },
        );
        match &self.newest {
            None => say("last", "no checkpoint".into()),
            Some(newest) => {
                let taken = jobs::moment(newest.created_micros);
                let what = format!("checkpoint {} ({})", newest.number, newest.kind.word());
                say("last", format!("{what}, {} ago ({taken})", jobs::age(newest.created_micros)));
                if let Some((seconds, again)) = self.at_stake() {
                    let again = again.map_or(String::new(), |n| format!(", about {}", rows(n)));
                    say(
                        "at stake",
                        format!("{} of work{again}, if the process died now", duration(Duration::from_secs(seconds))),
                    );
                    if seconds.saturating_mul(1000) > self.interval_ms.saturating_mul(OLD) {
                        let interval = duration(Duration::from_millis(self.interval_ms));
                        say("warning", format!("a checkpoint is due every {interval}, and the last one is much older"));
                    }
                }
            }
        }
        let quota = self.quota.map_or(String::new(), |quota| format!(" of {}", bytes(quota)));
        let savepoints =
            if self.savepoints > 0 { format!(", {} of them kept for good", self.savepoints) } else { String::new() };
        say("kept", format!("{}{savepoints}; {}{quota}", plural(self.kept, "checkpoint"), bytes(self.used)));
        let History { begun, taken, failure, .. } = &self.history;
        if *begun > 0 {
            let share = *taken as f64 * 100.0 / *begun as f64;
            let times = self.history.durations().map_or(String::new(), |(middle, longest)| {
                format!(", in {} ms (median), {} ms (longest)", count(middle), count(longest))
            });
            say("taken", format!("{} of {} ({share:.1} %){times}", count(*taken), count(*begun)));
            if let Some((share, each)) = self.history.share() {
                let each = Duration::from_millis(each);
                let advice = advice(share, each).map_or(String::new(), |advice| format!("; {advice}"));
                say("cost", format!("in {:.1} % of the time one is being taken{advice}", share * 100.0));
            }
            if let Some((middle, most, longest)) = self.history.stops() {
                let [middle, most, longest] = [middle, most, longest].map(|micros| micros as f64 / 1000.0);
                let times = format!("{middle:.2} ms (median), {most:.2} ms (99 %), {longest:.2} ms (longest)");
                say("stops", format!("{times} of the task that stands still the longest at a checkpoint"));
            }
        }
        for (sink, waiting, size, done) in self.unapplied() {
            let done = if done == 0 { "nothing is applied".into() } else { format!("applied up to {done}") };
            say("unapplied", format!("{sink}: {} ({}) staged; {done}", rows(waiting), bytes(size)));
        }
        if let Some((entry, why)) = self.history.last_abandoned() {
            say("given up", format!("checkpoint {}, {} ago: {why}", entry.number, jobs::age(entry.at_micros)));
        }
        if let Some((at, why)) = failure {
            say("failed", format!("{} ago: {why}", jobs::age(*at)));
        }
        for error in &self.damaged {
            say("damaged", jobs::in_a_line(error));
        }
        lines.join("\n") + "\n"
    }

    fn json(&self) -> Value {
        let holder = self.running.as_ref().map(|holder| match holder {
            Some(holder) => {
                json!({ "pid": holder.pid, "host": holder.host, "since": jobs::moment(holder.since_micros) })
            }
            None => json!({}),
        });
        let last = self.newest.as_ref().map(|newest| {
            json!({
                "number": newest.number,
                "kind": newest.kind.word(),
                "taken": jobs::moment(newest.created_micros),
                "age_seconds": (jobs::now_micros() - newest.created_micros).max(0) / 1_000_000,
                "rows_in": newest.counters.rows_in,
                "rows_out": newest.counters.rows_out,
                "rejected": newest.rejects.count,
            })
        });
        let unapplied = self.unapplied();
        let unapplied = unapplied
            .iter()
            .map(|(sink, rows, bytes, done)| json!({ "sink": sink, "rows": rows, "bytes": bytes, "applied": done }));
        json!({
            "job": self.job,
            "place": self.place,
            "running": holder,
            "last": last,
            "at_stake": self.at_stake().map(|(seconds, rows)| json!({ "seconds": seconds, "rows": rows })),
            "checkpoints": self.kept,
            "savepoints": self.savepoints,
            "bytes": self.used,
            "quota": self.quota,
            "begun": self.history.begun,
            "taken": self.history.taken,
            "median_ms": self.history.durations().map(|(middle, _)| middle),
            "longest_ms": self.history.durations().map(|(_, longest)| longest),
            "cost_share": self.history.share().map(|(share, _)| (share * 1000.0).round() / 1000.0),
            "stops_us": self.history.stops().map(|(middle, most, longest)| {
                json!({ "median": middle, "p99": most, "longest": longest })
            }),
            "unapplied": unapplied.collect::<Vec<_>>(),
            "given_up": self.history.last_abandoned().map(|(entry, why)| json!({
                "number": entry.number, "at": jobs::moment(entry.at_micros), "why": why,
            })),
            "failed": self.history.failure.as_ref().map(|(at, why)| json!({ "at": jobs::moment(*at), "why": why })),
            "damaged": self.damaged.iter().map(Error::to_string).collect::<Vec<_>>(),
        })
    }
}
