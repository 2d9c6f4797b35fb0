//! The log: each operator's life, to standard error, with job, operator and task (D19, A4).

use dfc_engine::{Event, Moment};

use crate::args::LogFormat;

/// Starts the log: what this program says, not what the libraries under it do. Without a format there is none, unless the
/// environment asks for one (`DFC_LOG=dfc=debug`, in the form of `RUST_LOG`).
pub fn start(format: Option<LogFormat>) {
    let filter = match (std::env::var("DFC_LOG"), format) {
        (Ok(filter), _) => filter,
        (Err(_), Some(_)) => "dfc=info".to_owned(),
        (Err(_), None) => return,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false)
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter));
    // A second start (in one process) keeps the first one's settings: nothing to report.
    let _ = match format {
        Some(LogFormat::Json) => subscriber.json().flatten_event(true).try_init(),
        _ => subscriber.try_init(),
    };
}

/// Logs what happened in the engine while `job` ran. Times are milliseconds since the run's start.
pub fn event(job: &str, event: &Event) {
    match event {
        Event::Started { .. } => tracing::info!(job, event = "started"),
        Event::Compiled { stage, report } => tracing::info!(
            job,
            stage,
            program = report.program,
            micros = report.micros,
            code_bytes = report.code_bytes,
            interpreted = report.code_bytes == 0 || !report.not_compiled.is_empty(),
            event = "compiled"
        ),
        Event::BegunAnew { number, rows } => tracing::info!(job, given_up = number, rows, event = "begun_anew"),
        Event::WithoutCheckpoints { why } => tracing::info!(job, why, event = "without_checkpoints"),
        // Said by the engine itself, with more.
        Event::Resumed { .. }
        | Event::Checkpoint { .. }
        | Event::CheckpointAbandoned { .. }
        | Event::QuotaNearlyUsed { .. } => {}
        Event::StageStarted { stage, name, tasks, at } => {
            tracing::info!(job, stage, %name, tasks, at_ms = at.as_millis() as u64, event = "stage_started");
        }
        Event::StageFinished { stage, at } => {
            tracing::info!(job, stage, at_ms = at.as_millis() as u64, event = "stage_finished");
        }
        Event::Operator { id, moment, at } => {
            let (operator, stage, task) = (&id.operator, id.stage, id.task);
            let at_ms = at.as_millis() as u64;
            match moment {
                Moment::Opened => tracing::info!(job, %operator, stage, task, at_ms, event = "opened"),
                Moment::FirstRow => tracing::info!(job, %operator, stage, task, at_ms, event = "first_row"),
                Moment::Closed { rows_in, rows_out, batches, busy } => tracing::info!(
                    job,
                    %operator,
                    stage,
                    task,
                    at_ms,
                    rows_in,
                    rows_out,
                    batches,
                    busy_ms = busy.as_millis() as u64,
                    event = "closed"
                ),
            }
        }
    }
}
