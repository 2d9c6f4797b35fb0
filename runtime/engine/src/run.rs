//! A run from beginning to end: set up, run the tasks, then make all results visible, or none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use dfc_ir::StagePlan;

use crate::connect::{Builtin, ConnectorSet};
use crate::observe::{Event, Observer, Progress};
use crate::reject::ErrorHandler;
use crate::schedule::{Scheduler, WATCH, broke_down};
use crate::setup::Setup;
use crate::sink::SinkPort;
use crate::summary::{OperatorSummary, SinkReport, Summary};
use crate::{RunError, RunOptions};

/// What all tasks of a job share.
pub(crate) struct JobCx {
    pub(crate) job: Arc<str>,
    pub(crate) started: Instant,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) errors: ErrorHandler,
    pub(crate) progress: Arc<Progress>,
    /// By stage, then input, operators, outputs.
    pub(crate) stats: Mutex<Vec<Vec<OperatorSummary>>>,
    pub(crate) scheduler: Arc<Scheduler>,
}

/// Runs a plan with the connectors of this build.
///
/// # Errors
/// The one cause for which the run stopped. Then no sink shows anything under its final name (but see [`RunError::Finish`]).
pub fn run(plan: &StagePlan, options: RunOptions, observer: Arc<dyn Observer>) -> Result<Summary, RunError> {
    run_with(&Builtin, plan, options, observer)
}

/// Runs a plan with other connectors.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    connectors: &dyn ConnectorSet,
    plan: &StagePlan,
    options: RunOptions,
    observer: Arc<dyn Observer>,
) -> Result<Summary, RunError> {
    let progress = Arc::new(Progress::default());
    let folder = options.rejects_folder.clone().or_else(|| plan.job.errors.to.as_ref().map(Into::into));
    let job = Arc::new(JobCx {
        job: plan.job.name.as_str().into(),
        started: Instant::now(),
        observer,
        errors: ErrorHandler::new(plan, folder, progress.clone()),
        progress,
        stats: Mutex::default(),
        scheduler: Scheduler::new(),
    });
    let mut sinks = Vec::new();
    let result = execute(connectors, plan, &options, &job, &mut sinks);
    match &result {
        Ok(summary) => {
            let (rows_in, rows_out) = (summary.rows_in, summary.rows_out());
            tracing::info!(job = %job.job, rows_in, rows_out, rejected = summary.rejected, event = "finished");
        }
        Err(error) => tracing::error!(job = %job.job, code = error.code(), %error, event = "failed"),
    }
    result
}

fn execute(
    connectors: &dyn ConnectorSet,
    plan: &StagePlan,
    options: &RunOptions,
    job: &Arc<JobCx>,
    sinks: &mut Vec<Arc<SinkPort>>,
) -> Result<Summary, RunError> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    };
    let setup = Setup { connectors, plan, options, job, threads };
    let ran = watched(&options.cancelled, &job.scheduler.stopping(), || setup.build(sinks)).and_then(|tasks| {
        job.observer.event(&Event::Started { job: job.job.clone(), progress: job.progress.clone() });
        job.scheduler.run(tasks, threads, &options.cancelled)?;
        let rejects = job.errors.finish()?;
        if options.cancelled.load(Ordering::Relaxed) { Err(RunError::Cancelled) } else { Ok(rejects) }
    });
    let rejects = ran.map_err(|failure| {
        sinks.iter().for_each(|sink| sink.abort());
        job.errors.conclude(failure)
    })?;
    let sinks = finish(sinks)?;
    let stats = std::mem::take(&mut *job.stats.lock().unwrap_or_else(|e| e.into_inner()));
    Ok(Summary {
        rows_in: job.progress.rows_in(),
        bytes_in: job.progress.bytes_in(),
        sinks,
        rejected: job.errors.count(),
        rejects,
        elapsed: job.started.elapsed(),
        operators: stats.into_iter().flatten().collect(),
    })
}

/// Sets things up while the caller's flag is passed on: opening may wait too.
fn watched<T>(
    cancelled: &AtomicBool,
    stopping: &AtomicBool,
    work: impl FnOnce() -> Result<T, RunError>,
) -> Result<T, RunError> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = || {
            while !done.load(Ordering::Relaxed) {
                if cancelled.load(Ordering::Relaxed) {
                    stopping.store(true, Ordering::Relaxed);
                }
                std::thread::park_timeout(WATCH);
            }
        };
        // Without a thread to spare a waiting connector isn't interrupted: no reason not to run.
        let watcher = std::thread::Builder::new().name("dfc-watch".into()).spawn_scoped(scope, watch);
        let result = catch_unwind(AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        if let Ok(watcher) = watcher {
            watcher.thread().unpark();
        }
        match result {
            Err(panic) => Err(broke_down("setup", panic.as_ref())),
            Ok(_) if cancelled.load(Ordering::Relaxed) => Err(RunError::Cancelled),
            Ok(result) => result,
        }
    })
}

/// Makes all results visible, in the plan's order. After a failure the rest is removed.
fn finish(sinks: &[Arc<SinkPort>]) -> Result<Vec<SinkReport>, RunError> {
    let mut reports: Vec<SinkReport> = Vec::new();
    for (k, sink) in sinks.iter().enumerate() {
        match sink.finish() {
            Ok(written) => reports.push(SinkReport { node: sink.node.to_string(), written }),
            Err(error) => {
                sinks[k..].iter().for_each(|sink| sink.abort());
                let node = sink.node.to_string();
                let visible: Vec<String> = reports.into_iter().filter_map(|report| report.written.target).collect();
                return Err(match visible.is_empty() {
                    true => RunError::Connect { node, error },
                    false => RunError::Finish { node, error, visible },
                });
            }
        }
    }
    Ok(reports)
}
