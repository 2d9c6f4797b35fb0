//! A run from beginning to end: set up, run the tasks, then make all results visible, or none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use dfc_connect::{Ledger, OpenContext, SinkEpochs, SinkResume};
use dfc_ir::plan::OptionValue;
use dfc_ir::stage::{Stage, StageInput, StageOp};
use dfc_ir::{StagePlan, Value};
use dfc_trial::turns;

use crate::barrier::Barriers;
use crate::budget::Budget;
use crate::checkpoint::{Begun, Start, Supervised, begin, begin_trial, goes_on_from};
use crate::connect::{Builtin, ConnectorSet};
use crate::observe::{Event, Observer, Progress};
use crate::reject::ErrorHandler;
use crate::schedule::{Scheduler, WATCH, broke_down};
use crate::setup::{Built, Setup};
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
    /// Where tasks and checkpoints meet, if any are taken.
    pub(crate) barriers: OnceLock<Arc<Barriers>>,
    /// What its state may take, if that is limited.
    pub(crate) budget: Option<Arc<Budget>>,
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
    let mut options = options;
    let mut attempts = 0;
    let mut pause = Duration::from_millis(plan.job.restart.backoff_ms);
    loop {
        let progressed = Arc::new(AtomicBool::new(false));
        let error = match attempt(connectors, plan, &options, &observer, &progressed) {
            Ok(summary) => return Ok(summary),
            Err(error) => error,
        };
        if progressed.load(Ordering::Acquire) {
            (attempts, pause) = (0, Duration::from_millis(plan.job.restart.backoff_ms));
        }
        if attempts >= plan.job.restart.attempts || !error.may_pass() || options.checkpoints.is_none() {
            return Err(stopped(error, plan, &options));
        }
        attempts += 1;
        let pause_ms = pause.as_millis() as u64;
        tracing::warn!(job = plan.job.name, %error, attempts, pause_ms, event = "restarted");
        let until = turns::now() + pause;
        while turns::now() < until {
            if options.cancelled.load(Ordering::Relaxed) {
                return Err(stopped(RunError::Cancelled, plan, &options));
            }
            turns::sleep(WATCH.min(until.saturating_duration_since(turns::now())));
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        if let Some(checkpoints) = &mut options.checkpoints {
            checkpoints.start = Start::Newest;
        }
    }
}

/// A run that was stopped from outside, before its last checkpoint could be taken, has earlier ones all the same: the job goes on from there.
fn stopped(error: RunError, plan: &StagePlan, options: &RunOptions) -> RunError {
    let how = options.checkpoints.as_ref().filter(|_| plan.job.checkpoint.is_some() && options.limit_rows.is_none());
    match (error, how.and_then(|how| goes_on_from(how, plan))) {
        (RunError::Cancelled, Some(checkpoint)) => RunError::Interrupted { checkpoint },
        (error, _) => error,
    }
}

/// The longest pause before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// One attempt, from its checkpoint or from the start.
fn attempt(
    connectors: &dyn ConnectorSet,
    plan: &StagePlan,
    options: &RunOptions,
    observer: &Arc<dyn Observer>,
    progressed: &Arc<AtomicBool>,
) -> Result<Summary, RunError> {
    let progress = Arc::new(Progress::default());
    let folder = options.rejects_folder.clone().or_else(|| plan.job.errors.to.as_ref().map(Into::into));
    let job = Arc::new(JobCx {
        job: plan.job.name.as_str().into(),
        started: Instant::now(),
        observer: observer.clone(),
        errors: ErrorHandler::new(plan, folder, progress.clone()),
        progress,
        stats: Mutex::default(),
        scheduler: Scheduler::new(),
        barriers: OnceLock::new(),
        budget: options.memory.map(|given| Budget::new(given, options.spill_folder.clone())),
    });
    let result = catch_unwind(AssertUnwindSafe(|| match (&options.checkpoints, options.limit_rows) {
        (Some(how), Some(_)) if plan.job.checkpoint.is_some() => begin_trial(how, plan).and_then(|held| {
            let result = execute(connectors, plan, options, &job, progressed);
            held.iter().for_each(dfc_checkpoint::Job::vanish);
            result
        }),
        _ => execute(connectors, plan, options, &job, progressed),
    }));
    // What it had written stays as it is: the next run knows it by its lineage.
    let result = result.unwrap_or_else(|panic| Err(broke_down("job", panic.as_ref())));
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
    progressed: &Arc<AtomicBool>,
) -> Result<Summary, RunError> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    };
    let begun = match &options.checkpoints {
        Some(how) if plan.job.checkpoint.is_some() && options.limit_rows.is_none() => {
            match unbroken(|| begin(how, plan))? {
                Ok(begun) => Some(begun),
                Err(why) => {
                    job.observer.event(&Event::WithoutCheckpoints { why });
                    None
                }
            }
        }
        _ => None,
    };
    let mut options = options.clone();
    if let Some(loaded) = begun.as_ref().and_then(|begun| begun.loaded.as_ref()) {
        options.env.now = loaded.manifest.now_micros;
    }
    let setup = Setup {
        connectors,
        plan,
        options: &options,
        job,
        threads,
        epochs: None,
        loaded: begun.as_ref().and_then(|begun| begun.loaded.as_ref()),
        fresh: options.checkpoints.as_ref().is_some_and(|how| how.start == Start::Fresh),
    };
    let mut sinks = Vec::new();
    let built = watched(&options.cancelled, &job.scheduler.stopping(), || {
        build(&setup, begun.as_ref(), options.env.now, &mut sinks)
    });
    let (built, with_epochs) = built.map_err(|failure| {
        if !begun.as_ref().is_some_and(Begun::is_resumed) {
            give_up_beginning(&sinks, begun.as_ref());
        }
        job.errors.conclude(lost_rows(failure, begun.as_ref()), false)
    })?;
    job.observer.event(&Event::Started {
        job: job.job.clone(),
        progress: job.progress.clone(),
        checkpoints: with_epochs,
    });
    match begun.filter(|_| with_epochs) {
        Some(begun) => supervised(plan, &options, job, threads, begun, built, &sinks, progressed),
        None => {
            let ran = job.scheduler.run(built.tasks, threads, &options.cancelled).and_then(|()| {
                let rejects = job.errors.finish()?;
                if options.cancelled.load(Ordering::Relaxed) { Err(RunError::Cancelled) } else { Ok(rejects) }
            });
            let rejects = ran.map_err(|failure| {
                sinks.iter().for_each(|sink| sink.abort());
                job.errors.conclude(failure, false)
            })?;
            let sinks = finish(&sinks, true)?;
            Ok(summary(job, sinks, rejects))
        }
    }
}

/// Rows that a checkpoint holds are gone or damaged.
pub(crate) const LOST: &str = "R0218";

/// Says of a checkpoint's lost rows which older one there is to go on from.
fn lost_rows(failure: RunError, begun: Option<&Begun>) -> RunError {
    let loaded = begun.and_then(|begun| Some((begun, begun.loaded.as_ref()?)));
    match (failure, loaded) {
        (RunError::Connect { node, mut error }, Some((begun, loaded))) if error.code == LOST => {
            if let Some(older) = begun.job.instead_of(&loaded.manifest) {
                let help = error.help.take().map_or_else(String::new, |help| format!("{help}; or "));
                error.help = Some(format!("{help}go on from checkpoint {older}, which is whole: `--allow-older`"));
            }
            RunError::Connect { node, error }
        }
        (failure, _) => failure,
    }
}

/// Opens everything. `true`: the run takes checkpoints; not where a source or a sink can't, which is said.
fn build(
    setup: &Setup<'_>,
    begun: Option<&Begun>,
    now_micros: i64,
    sinks: &mut Vec<Arc<SinkPort>>,
) -> Result<(Built, bool), RunError> {
    let opened = setup.open_sources()?;
    let on_disk = state_on_disk(setup, begun)?;
    let Some(begun) = begun else { return Ok((setup.build(opened, sinks)?, false)) };
    let without = |why: String| setup.job.observer.event(&Event::WithoutCheckpoints { why });
    if let Some(why) = on_disk.or_else(|| opened.not_resumable()).or_else(|| setup.without_epochs()) {
        without(why);
        begun.forget();
        return Ok((setup.build(opened, sinks)?, false));
    }
    if let Some(manifest) = &begun.given_up {
        let (number, rows) = (manifest.number, manifest.counters.rows_out);
        setup.job.observer.event(&Event::BegunAnew { number, rows });
        give_up(setup, begun, manifest);
    }
    begun.found(now_micros)?;
    let with_epochs = Setup { epochs: Some((&begun.lineage, &begun.job)), ..*setup };
    let built = with_epochs.build(opened, sinks)?;
    let unable = sinks.iter().find_map(|port| port.sink().epochs().err().map(|why| format!("`{}`: {why}", port.node)));
    let Some(why) = unable else { return Ok((built, true)) };
    without(why);
    sinks.drain(..).for_each(|port| port.abort());
    begun.forget();
    Ok((setup.build(setup.open_sources()?, sinks)?, false))
}

/// Why a run takes no checkpoints because its memory is limited: state on disk is part of none.
///
/// # Errors
/// Where it would have to go on from one, or would never come to what is on disk.
fn state_on_disk(setup: &Setup<'_>, begun: Option<&Begun>) -> Result<Option<String>, RunError> {
    let Some(holder) = setup.job.budget.as_ref().and_then(|_| setup.plan.stages.iter().find_map(holds_state)) else {
        return Ok(None);
    };
    let refuse = |node: &str, message: String, help: &str| {
        Err(RunError::Memory { node: node.to_owned(), message, help: help.to_owned() })
    };
    for stage in &setup.plan.stages {
        if let StageInput::Source { node, spec, .. } = &stage.input
            && spec.options.get("follow") == Some(&OptionValue::Value(Value::Bool(true)))
        {
            let message =
                format!("it is followed without an end, and what `{holder}` puts on disk is looked at only at the end");
            return refuse(node, message, "run such a job without a limit of its memory");
        }
    }
    if begun.is_some_and(Begun::is_resumed) {
        let message = "the job has a checkpoint to go on from; with limited memory its state may go to disk, and no checkpoint holds that";
        return refuse(
            holder,
            message.to_owned(),
            "run it without a limit of its memory, or start anew with `--fresh`",
        );
    }
    Ok(Some(format!("with limited memory, state of `{holder}` may go to disk, and no checkpoint holds that")))
}

/// The operator of a stage that holds what it is given to the end.
fn holds_state(stage: &Stage) -> Option<&str> {
    let mut holders = stage.ops.iter().filter_map(|op| match op {
        StageOp::AggregatePartial(spec) if !spec.keys.is_empty() => Some(spec.node.as_str()),
        StageOp::Distinct { node, .. } | StageOp::Sort { node, .. } => Some(node.as_str()),
        _ => None,
    });
    holders.next()
}

/// Removes what a state that is given up has left at the sinks and was not visible yet.
fn give_up(setup: &Setup<'_>, begun: &Begun, manifest: &dfc_checkpoint::Manifest) {
    // Nothing of it is kept, so it needn't be whole either.
    let nothing = SinkResume { number: manifest.number, sealed: Vec::new() };
    for stage in &setup.plan.stages {
        for output in &stage.outputs {
            let dfc_ir::stage::StageOutput::Sink { node, spec, .. } = output else { continue };
            let Ok(spool) = begun.job.create_spool(node) else { continue };
            let epochs = SinkEpochs { lineage: manifest.lineage.clone(), spool, resume: Some(nothing.clone()) };
            let cx = OpenContext { node: node.clone(), tasks: 1, epochs: Some(epochs), ..OpenContext::default() };
            // What can't be opened has left nothing that could be removed.
            if let Ok(sink) = setup.connectors.open_sink(spec, &stage.schema, &cx) {
                sink.abort();
            }
        }
    }
}

/// Runs the tasks while checkpoints are taken and applied.
fn supervised(
    plan: &StagePlan,
    options: &RunOptions,
    job: &Arc<JobCx>,
    threads: usize,
    begun: Begun,
    built: Built,
    sinks: &[Arc<SinkPort>],
    progressed: &Arc<AtomicBool>,
) -> Result<Summary, RunError> {
    let mut run = Supervised::new(plan, options, job, &begun, built, sinks, progressed)?;
    let ran = run.run(threads, &options.cancelled);
    let resumable = run.taken() || begun.is_resumed();
    match ran {
        Ok((reports, rejects)) => Ok(summary(job, reports, rejects)),
        Err(failure) => {
            if resumable {
                // For people: why it stopped.
                let _ = begun.job.record_failure(crate::checkpoint::now_micros(), &failure.to_string());
            } else {
                give_up_beginning(sinks, Some(&begun));
            }
            let failure = if run.taken() { failure } else { lost_rows(failure, Some(&begun)) };
            Err(job.errors.conclude(failure, resumable))
        }
    }
}

/// The work's result; a panic as an error.
fn unbroken<T>(work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(broke_down("setup", panic.as_ref())))
}

/// Removes what a run that came to no checkpoint has made at its sinks, and forgets that its state began. Where a target still has its entry,
/// since it couldn't be reached, say, or its disk is full, the beginning stays: the next run goes on from there, as the one that the target
/// knows, which would refuse any other.
fn give_up_beginning(sinks: &[Arc<SinkPort>], begun: Option<&Begun>) {
    sinks.iter().for_each(|sink| sink.abort());
    let Some(begun) = begun else { return };
    let is_forgotten = |port: &Arc<SinkPort>| {
        let sink = port.sink();
        sink.visible_at_end() || sink.ledger().is_ok_and(|ledger| !matches!(ledger, Ledger::Applied(_)))
    };
    if sinks.iter().all(is_forgotten) {
        begun.forget();
    }
}

fn summary(job: &JobCx, sinks: Vec<SinkReport>, rejects: Option<std::path::PathBuf>) -> Summary {
    let stats = std::mem::take(&mut *job.stats.lock().unwrap_or_else(|e| e.into_inner()));
    Summary {
        rows_in: job.progress.rows_in(),
        bytes_in: job.progress.bytes_in(),
        sinks,
        rejected: job.errors.count(),
        rejects,
        elapsed: job.started.elapsed(),
        operators: stats.into_iter().flatten().collect(),
    }
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
                turns::park(WATCH);
            }
        };
        // Without a thread to spare a waiting connector isn't interrupted: no reason not to run.
        let watcher = turns::spawn(scope, "dfc-watch", watch);
        let result = catch_unwind(AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        if let Ok(watcher) = watcher {
            watcher.unpark();
            // It does nothing that could panic.
            let _ = watcher.join();
        }
        match result {
            Err(panic) => Err(broke_down("setup", panic.as_ref())),
            Ok(_) if cancelled.load(Ordering::Relaxed) => Err(RunError::Cancelled),
            Ok(result) => result,
        }
    })
}

/// Makes all results visible, in the plan's order. After a failure the rest is removed, unless another run can go on with it.
pub(crate) fn finish(sinks: &[Arc<SinkPort>], for_good: bool) -> Result<Vec<SinkReport>, RunError> {
    let mut reports: Vec<SinkReport> = Vec::new();
    for (k, sink) in sinks.iter().enumerate() {
        match sink.finish() {
            Ok(written) => reports.push(SinkReport { node: sink.node.to_string(), written }),
            Err(error) => {
                if for_good {
                    sinks[k..].iter().for_each(|sink| sink.abort());
                }
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
